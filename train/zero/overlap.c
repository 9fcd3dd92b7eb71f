/* SPDX-License-Identifier: BSD-3-Clause
 *
 * overlap.c - a divided optimizer that steps inside of the backward of a ddp, as its communication hook.
 *
 * How     Each bucket is averaged as ever. When a bucket is worked off, its averages are waited for, this rank steps those
 *         of its parameters that it owns, and all of them begin their way from owners to all. That happens when the last
 *         bucket has begun, for all of them in order; or, interleaved, for each bucket when the next one has begun.
 *         Buckets have owners, so that few ranks send for each: when the buckets are others than in the step before,
 *         as they were rebuilt, parameters get other owners, and what these remember moves to them.
 * True    All collectives are issued by the thread of the backward, in an order that follows from the buckets alone: no rank
 *         can begin them in another one, however fast its averages come. So it works over any transport.
 *         A parameter moves, or is written by its owner's broadcast, only when this rank's backward is done with it: its
 *         bucket has begun.
 * Fails   A rank that fails goes on to issue what others wait for, and tells the reducer at the last bucket; so the
 *         others hear of it in the same step. */
#include "zero/zero.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

struct tti_overlap {
    tti_zero *z; /* NULL: the optimizer is gone */
    tutti_ddp *ddp;
    const tutti_comm_hook *hook; /* NULL: the average */
    void *hook_state;
    bool interleaved, shard_buckets, has_warned;

    int n;                      /* of the ddp's parameters */
    int *index;                 /* [n] in the optimizer; -1: not there */
    tutti_tensor **grads;       /* [n] over the results; counted; NULL: not yet */
    tutti_grad_bucket *buckets; /* [n] of this step */
    tutti_future **futures;     /* [n] of this step; counted; NULL: none */
    int *seen;                  /* [n] parameters, in the order of the buckets that owners were chosen for */
    int *ends;                  /* [n] where each of those ends */
    int n_seen;                 /* such buckets; 0: none yet */
    int *owner;                 /* [n] of the optimizer's parameters, the next ones */
    bool *requires;             /* [n] whether they did when this began */

    tutti_status sent; /* whether all of this step has begun its way */
    tutti_status st;   /* of this step: the first failure */
    tti_zero_words words;
};

static void note(tti_overlap *ov, tutti_status st)
{
    if (st == TUTTI_OK || ov->st != TUTTI_OK)
        return;
    ov->st = st;
    ov->words = tti_zero_keep_words();
}

/* ---- owners ------------------------------------------------------------------------------------ */

static int64_t numel_of(const tti_overlap *ov, int i)
{
    return ov->ddp->params[i]->numel;
}

static bool has_changed(const tti_overlap *ov)
{
    const int count = tutti_reducer_bucket_count(ov->ddp->reducer);
    int at = 0;

    if (count != ov->n_seen)
        return true;
    for (int b = 0; b < count; b++) {
        const tutti_grad_bucket bucket = tutti_reducer_bucket(ov->ddp->reducer, b);

        if (ov->ends[b] != at + bucket.n_params ||
            memcmp(ov->seen + at, bucket.params, (size_t)bucket.n_params * sizeof *ov->seen) != 0)
            return true;
        at = ov->ends[b];
    }
    return false;
}

static void remember_buckets(tti_overlap *ov)
{
    int at = 0;

    ov->n_seen = tutti_reducer_bucket_count(ov->ddp->reducer);
    for (int b = 0; b < ov->n_seen; b++) {
        const tutti_grad_bucket bucket = tutti_reducer_bucket(ov->ddp->reducer, b);

        memcpy(ov->seen + at, bucket.params, (size_t)bucket.n_params * sizeof *ov->seen);
        at += bucket.n_params;
        ov->ends[b] = at;
    }
}

/* Places of all parameters by bucket; numbers of those that are averaged only are left out. */
static tutti_status choose_owners(tti_overlap *ov)
{
    int64_t *numel = calloc((size_t)ov->n, sizeof *numel);
    int *owner = calloc((size_t)ov->n, sizeof *owner);
    tutti_status st = TUTTI_OK;

    for (int k = 0; k < ov->n && numel != NULL; k++)
        numel[k] = numel_of(ov, ov->seen[k]);
    if (numel == NULL || owner == NULL ||
        !tti_zero_assign(numel, ov->ends, ov->n_seen, ov->z->size, ov->shard_buckets, owner))
        st = tti_fail(TUTTI_E_NOMEM, "zero: no memory for the owners of %d buckets", ov->n_seen);
    for (int k = 0, at = 0; k < ov->n && st == TUTTI_OK; k++) {
        const int i = ov->index[ov->seen[k]];

        if (i < 0)
            continue;
        ov->owner[i] = owner[k];
        ov->z->order[at++] = i;
    }
    free(numel);
    free(owner);
    return st;
}

/* The first bucket of a step has come. */
static void begin(tti_overlap *ov)
{
    tutti_status st;

    ov->st = ov->sent = TUTTI_OK;
    for (int i = 0; i < ov->n; i++)
        if (ov->index[i] >= 0 && tutti_tensor_requires_grad(ov->ddp->params[i]) != ov->requires[i])
            note(ov, tti_fail(TUTTI_E_STATE, "zero: parameter %d requires gradients now, or no longer, which must not change",
                              ov->index[i]));
    if (!has_changed(ov))
        return;
    remember_buckets(ov);
    st = choose_owners(ov);
    if (st == TUTTI_OK)
        st = tti_zero_move(ov->z, ov->owner);
    else
        (void)tutti_abort_process_group(ov->z->group); /* the others move on */
    if (st != TUTTI_OK)
        ov->n_seen = 0; /* once more in the next step */
    note(ov, st);
}

/* ---- a bucket ---------------------------------------------------------------------------------- */

static tutti_status await_average(tutti_future *future, tutti_span *result)
{
    tutti_spans *spans = NULL;
    tutti_status st = tutti_future_wait(future, 0);

    if (st == TUTTI_OK)
        st = tutti_future_value(future, (void **)&spans);
    if (st == TUTTI_OK && spans != NULL && spans->n > 0)
        *result = spans->at[0];
    return st;
}

static tutti_status step_mine(tti_overlap *ov, const tutti_grad_bucket *bucket, tutti_span result)
{
    tutti_status st = TUTTI_OK;

    if (result.count != bucket->buffer.count)
        return TUTTI_OK; /* the reducer tells */
    for (int k = 0; k < bucket->n_params && st == TUTTI_OK; k++) {
        const int i = bucket->params[k], at = ov->index[i];
        char *data = (char *)result.data + (size_t)bucket->offsets[k] * tutti_dtype_size(result.dtype);
        tutti_tensor *grad;

        if (at < 0 || !ov->z->mine[at])
            continue;
        grad = tti_ddp_result(ov->ddp->params[i], data, result.dtype, &ov->grads[i]);
        st = grad != NULL ? tti_optim_step_at(ov->z->o, at, grad) : tti_take_kept();
        tutti_tensor_release(grad);
    }
    return st;
}

/* Those of a bucket that one rank has; with views neighbours as one. */
static tutti_status send_from(tti_overlap *ov, const tutti_grad_bucket *bucket, int from)
{
    tutti_status st = TUTTI_OK;
    tutti_span run = { .count = 0 };

    for (int k = 0; k < bucket->n_params && st == TUTTI_OK; k++) {
        const int at = ov->index[bucket->params[k]];
        tutti_span one;

        if (at < 0 || ov->z->owner[at] != from)
            continue;
        if (!ov->z->views) {
            st = tti_zero_send(ov->z, at);
            continue;
        }
        one = tutti_tensor_span(ov->z->o->params[at]);
        if (run.count > 0 && (char *)run.data + (size_t)run.count * tutti_dtype_size(run.dtype) == one.data) {
            run.count += one.count;
            continue;
        }
        if (run.count > 0)
            st = tti_zero_send_span(ov->z, run, from);
        run = one;
    }
    return st == TUTTI_OK && run.count > 0 ? tti_zero_send_span(ov->z, run, from) : st;
}

static void work_off(tti_overlap *ov, int b)
{
    const tutti_grad_bucket *bucket = &ov->buckets[b];
    tutti_span result = bucket->buffer;
    tutti_status st = TUTTI_OK;

    if (ov->futures[b] != NULL)
        st = await_average(ov->futures[b], &result);
    if (st == TUTTI_OK && ov->futures[b] != NULL)
        st = step_mine(ov, bucket, result);
    note(ov, st);
    for (int r = 0; r < ov->z->size && ov->sent == TUTTI_OK; r++) {
        ov->sent = send_from(ov, bucket, r);
        note(ov, ov->sent);
    }
}

static tutti_status run(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tti_overlap *ov = state;
    const int b = bucket->index;

    if (ov->z == NULL)
        return tti_fail(TUTTI_E_STATE, "zero: the ddp has no optimizer to step: it is gone, or could not be put to it on all ranks\n"
                                       "  next: another ddp");
    if (bucket->group != ov->z->group)
        return tti_fail(TUTTI_E_STATE, "zero: the ddp has another group now than the optimizer");
    if (b == 0)
        begin(ov);
    ov->buckets[b] = *bucket;
    tutti_future_free(ov->futures[b]);
    ov->futures[b] = NULL;
    note(ov, tti_ddp_begin_average(ov->hook, ov->hook_state, bucket, &ov->futures[b]));
    if (ov->interleaved && b > 0)
        work_off(ov, b - 1);
    for (int c = ov->interleaved ? b : 0; c <= b && bucket->is_last; c++)
        work_off(ov, c);
    if (bucket->is_last)
        note(ov, tti_zero_await(ov->z, ov->sent));
    if (ov->futures[b] == NULL || (bucket->is_last && ov->st != TUTTI_OK))
        return tti_fail(ov->st, "%s", ov->words.text);
    *future_out = tutti_future_retain(ov->futures[b]);
    return TUTTI_OK;
}

/* ---- registering ------------------------------------------------------------------------------- */

static void end(void *state)
{
    tti_overlap *ov = state;

    if (ov->z != NULL)
        ov->z->overlap = NULL;
    for (int i = 0; i < ov->n; i++) {
        if (ov->grads != NULL)
            tutti_tensor_release(ov->grads[i]);
        if (ov->futures != NULL)
            tutti_future_free(ov->futures[i]);
    }
    if (ov->hook != NULL && ov->hook->free_state != NULL)
        ov->hook->free_state(ov->hook_state);
    free(ov->index);
    free(ov->grads);
    free(ov->buckets);
    free(ov->futures);
    free(ov->seen);
    free(ov->ends);
    free(ov->owner);
    free(ov->requires);
    free(ov);
}

void tti_overlap_leave(tti_overlap *ov)
{
    if (ov != NULL)
        ov->z = NULL;
}

tutti_status tti_overlap_no_step(tti_overlap *ov, tutti_status st)
{
    if (!ov->has_warned)
        tti_log(TTI_LOG_WARN, "zero: steps are made inside of the backward: this one is left out, as are all after it");
    ov->has_warned = true;
    return st;
}

static const tutti_comm_hook overlap_hook = { .api = TUTTI_COMM_HOOK_API, .size = sizeof(tutti_comm_hook),
                                              .name = "zero_overlap", .run = run, .free_state = end };

static tutti_status match(tti_overlap *ov, const tutti_optim *o)
{
    const size_t n = (size_t)ov->n + 1;
    int found = 0;

    ov->index = calloc(n, sizeof *ov->index);
    ov->grads = calloc(n, sizeof(tutti_tensor *));
    ov->buckets = calloc(n, sizeof *ov->buckets);
    ov->futures = calloc(n, sizeof(tutti_future *));
    ov->seen = calloc(n, sizeof *ov->seen);
    ov->ends = calloc(n, sizeof *ov->ends);
    ov->owner = calloc(n, sizeof *ov->owner);
    ov->requires = calloc(n, sizeof *ov->requires);
    if (ov->index == NULL || ov->grads == NULL || ov->buckets == NULL || ov->futures == NULL || ov->seen == NULL ||
        ov->ends == NULL || ov->owner == NULL || ov->requires == NULL)
        return tti_fail(TUTTI_E_NOMEM, "zero: no memory for %d parameters", ov->n);
    for (int i = 0; i < ov->n; i++) {
        ov->index[i] = tti_optim_find(o, ov->ddp->params[i]);
        ov->requires[i] = tutti_tensor_requires_grad(ov->ddp->params[i]);
        found += ov->index[i] >= 0;
    }
    return found == o->n ? TUTTI_OK
                         : tti_fail(TUTTI_E_ARG, "zero: the ddp averages %d of the %d parameters of the optimizer", found, o->n);
}

static tutti_status check(const tti_zero *z, const tutti_ddp *ddp, const tutti_zero_overlap_options *opts)
{
    if (opts != NULL && opts->size != sizeof *opts)
        return tti_fail(TUTTI_E_ARG, "zero: no options\n  next: begin with TUTTI_ZERO_OVERLAP_OPTIONS");
    if (ddp->group != z->group)
        return tti_fail(TUTTI_E_ARG, "zero: the ddp is of another group");
    if (ddp->find_unused)
        return tti_fail(TUTTI_E_UNSUPPORTED, "zero: with find_unused_parameters it is known too late who used what"
                                             "\n  next: tutti_optim_step() after the backward");
    if (ddp->mixed != NULL)
        return tti_fail(TUTTI_E_UNSUPPORTED, "zero: with mixed_precision parameters have no place of their own in a backward"
                                             "\n  next: tutti_optim_step() after the backward");
    if (z->o->n_groups != 1)
        return tti_fail(TUTTI_E_ARG, "zero: %d groups of parameters, and there must be one", z->o->n_groups);
    return z->overlap == NULL ? TUTTI_OK : tti_fail(TUTTI_E_STATE, "zero: it steps inside of the backward already");
}

/* Whether all ranks are well and mean the same. */
static tutti_status agree(const tti_zero *z, tutti_status ours, int32_t mode)
{
    const tti_zero_words words = tti_zero_keep_words();
    int32_t most[3] = { ours != TUTTI_OK ? 1 + z->rank : 0, ours == TUTTI_OK ? mode : -1, ours == TUTTI_OK ? -mode : -8 };
    tutti_status st = tutti_all_reduce(TUTTI_SPAN(most, 3), TUTTI_MAX, z->group);

    if (ours != TUTTI_OK)
        return tti_fail(ours, "%s", words.text);
    if (st == TUTTI_OK && most[0] != 0)
        return tti_fail(TUTTI_E_REMOTE, "zero: rank %d cannot step inside of the backward", most[0] - 1);
    if (st == TUTTI_OK && most[1] != -most[2])
        return tti_fail(TUTTI_E_MISMATCH, "zero: ranks want to step inside of the backward in different modes");
    return st;
}

static tutti_status make(tti_zero *z, tutti_ddp *ddp, const tutti_zero_overlap_options *opts, tti_overlap **ov_out)
{
    tutti_status st = check(z, ddp, opts);
    tti_overlap *ov;

    if (st != TUTTI_OK)
        return st;
    ov = calloc(1, sizeof *ov);
    if (ov == NULL)
        return tti_fail(TUTTI_E_NOMEM, "zero: no memory");
    *ov = (tti_overlap){ .ddp = ddp, .n = ddp->n, .interleaved = opts != NULL && opts->interleaved,
                         .shard_buckets = opts != NULL && opts->shard_buckets };
    st = match(ov, z->o);
    if (st == TUTTI_OK)
        *ov_out = ov;
    else
        end(ov);
    return st;
}

tutti_status tutti_zero_overlap_with_ddp(tutti_optim *optim, tutti_ddp *ddp, const tutti_zero_overlap_options *opts)
{
    tti_zero *z = tti_zero_of(optim, "zero_overlap_with_ddp");
    tti_overlap *ov = NULL;
    tutti_status st;

    if (z == NULL || ddp == NULL)
        return z == NULL ? TUTTI_E_ARG : tti_fail(TUTTI_E_ARG, "zero: the ddp is NULL");
    st = make(z, ddp, opts, &ov);
    st = agree(z, st, ov != NULL ? ov->interleaved + 2 * ov->shard_buckets + 4 * (opts != NULL && opts->hook != NULL) : 0);
    if (st == TUTTI_OK) {
        const tutti_status registered = tutti_reducer_register_comm_hook(ddp->reducer, &overlap_hook, ov);

        st = agree(z, registered, 0);
        if (st != TUTTI_OK && registered == TUTTI_OK)
            return st; /* the hook stays, and fails: it has no optimizer */
    }
    if (st != TUTTI_OK) {
        if (ov != NULL)
            end(ov);
        return st;
    }
    ov->z = z;
    z->overlap = ov;
    ov->hook = opts != NULL ? opts->hook : NULL;
    ov->hook_state = opts != NULL ? opts->hook_state : NULL;
    return TUTTI_OK;
}
