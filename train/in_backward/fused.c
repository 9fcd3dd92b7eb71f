/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused.c - an optimizer that steps the parameters of a bucket when its averages are there.
 *
 * How     The communication hook averages, or has another one do it, and chains the step to the future of that. The
 *         reducer waits for the chain, so that when the backward returns all has been stepped.
 *         Where parameters may be unused all steps wait for the end of the backward, when their gradients tell.
 * Who     A chain runs on the thread that learns of the average, or on that of the backward if it came sooner: the
 *         lock has one step at a time. What a chain writes is seen by the thread of the backward, which waits for its future.
 *         Parameters of a bucket are not read meanwhile: the backward has come to all of their leaves.
 * True    All ranks step with the same bits, also in a step that is about to fail. */
#include "in_backward/in_backward.h"

#include <pthread.h>
#include <stdlib.h>
#include <tutti/private.h>

typedef struct fused fused;

/* A bucket on its way. */
typedef struct passing {
    fused *f;
    tutti_grad_bucket bucket; /* what it points to holds until its future is complete */
    tutti_future *averages;   /* counted, until the next step: its value may be where the result lies */
} passing;

struct fused {
    tutti_ddp *ddp;
    tutti_optim *optim; /* borrowed */
    int n;              /* of the ddp's parameters */
    int *index;         /* [n] in the optimizer; -1: not there */
    const tutti_comm_hook *hook; /* NULL: the average */
    void *hook_state;
    bool drops, at_end;
    pthread_mutex_t lock;  /* the optimizer, and grads */
    tutti_tensor **grads;  /* [n] over the results; counted; NULL: not yet */
    passing *passing;      /* [n] by bucket */
};

/* ---- a bucket ---------------------------------------------------------------------------------- */

static tutti_status step_bucket(fused *f, const tutti_grad_bucket *bucket, tutti_span result)
{
    tutti_status st = TUTTI_OK;

    if (result.count != bucket->buffer.count)
        return TUTTI_OK; /* the reducer tells */
    for (int k = 0; k < bucket->n_params && st == TUTTI_OK; k++) {
        const int i = bucket->params[k];
        char *data = (char *)result.data + (size_t)bucket->offsets[k] * tutti_dtype_size(result.dtype);
        tutti_tensor *grad;

        if (f->index[i] < 0)
            continue;
        grad = tti_ddp_result(f->ddp->params[i], data, result.dtype, &f->grads[i]);
        st = grad != NULL ? tti_optim_step_at(f->optim, f->index[i], grad) : tti_take_kept();
        tutti_tensor_release(grad);
    }
    return st;
}

/* What the reducer is given: where the result lies. */
static tutti_status value_of(tutti_span span, void **value_out)
{
    tutti_spans *spans = malloc(sizeof *spans + sizeof span);

    if (spans == NULL)
        return tti_fail(TUTTI_E_NOMEM, "fused_optim: no memory for the result of a bucket");
    *spans = (tutti_spans){ .at = (tutti_span *)(void *)(spans + 1), .n = 1 };
    spans->at[0] = span;
    *value_out = spans;
    return TUTTI_OK;
}

static tutti_status on_averages(tutti_future *future, void *ctx, void **value_out, tutti_value_free_fn *free_out)
{
    passing *p = ctx;
    tutti_span result = p->bucket.buffer;
    tutti_spans *spans = NULL;
    tutti_status st = tutti_future_value(future, (void **)&spans);

    if (st == TUTTI_OK && spans != NULL && spans->n > 0)
        result = spans->at[0];
    if (st == TUTTI_OK && !p->f->at_end) {
        pthread_mutex_lock(&p->f->lock);
        st = step_bucket(p->f, &p->bucket, result);
        pthread_mutex_unlock(&p->f->lock);
    }
    *free_out = free;
    return st == TUTTI_OK ? value_of(result, value_out) : st;
}

/* ---- the end of a backward --------------------------------------------------------------------- */

static tutti_status drop(fused *f, int i)
{
    tutti_tensor *p = f->ddp->params[i], *grad = tutti_tensor_grad(p);

    if (grad == NULL || f->index[i] < 0)
        return TUTTI_OK;
    return f->ddp->views ? tti_raw_fill_(grad, 0.0) : tutti_tensor_set_grad(p, NULL);
}

/* The ddp is through: gradients are averages, or those that they were where nobody has used the parameter. */
static tutti_status at_end(tutti_status so_far, void *ctx)
{
    fused *f = ctx;
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < f->n && so_far == TUTTI_OK && f->at_end && st == TUTTI_OK; i++) {
        const tutti_tensor *grad = tutti_tensor_grad(f->ddp->params[i]);

        if (f->index[i] >= 0 && grad != NULL)
            st = tti_optim_step_at(f->optim, f->index[i], grad);
    }
    for (int i = 0; i < f->n && f->drops && st == TUTTI_OK; i++)
        st = drop(f, i);
    return st;
}

static tutti_status run(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    fused *f = state;
    passing *p = &f->passing[bucket->index];
    tutti_status st;

    tutti_future_free(p->averages);
    p->averages = NULL;
    p->f = f;
    p->bucket = *bucket;
    st = tti_ddp_begin_average(f->hook, f->hook_state, bucket, &p->averages);
    if (st == TUTTI_OK && bucket->is_last && (f->drops || f->at_end) && tti_backward_is_running())
        st = tti_backward_at_end(at_end, f);
    if (st == TUTTI_OK)
        st = tutti_future_then(p->averages, on_averages, p, future_out);
    if (st != TUTTI_OK && p->averages != NULL)
        (void)tutti_future_wait(p->averages, TUTTI_INFINITE); /* the buffer is in use until then */
    return st;
}

/* ---- registering ------------------------------------------------------------------------------- */

static void end(void *state)
{
    fused *f = state;

    for (int i = 0; i < f->n; i++) {
        if (f->grads != NULL)
            tutti_tensor_release(f->grads[i]);
        if (f->passing != NULL)
            tutti_future_free(f->passing[i].averages);
    }
    if (f->hook != NULL && f->hook->free_state != NULL)
        f->hook->free_state(f->hook_state);
    pthread_mutex_destroy(&f->lock);
    free(f->index);
    free(f->grads);
    free(f->passing);
    free(f);
}

/* The inner hook is told, if its table goes as far. */
static void group_changed(void *state)
{
    const fused *f = state;

    if (f->hook != NULL && f->hook->size >= sizeof *f->hook && f->hook->group_changed != NULL)
        f->hook->group_changed(f->hook_state);
}

/* Only then it is known what nobody has used. */
static bool steps_at_end(const tutti_ddp *ddp)
{
    return ddp->find_unused || ddp->static_graph;
}

static const tutti_comm_hook fused_hook = { .api = TUTTI_COMM_HOOK_API, .size = sizeof(tutti_comm_hook),
                                            .name = "fused_optim", .run = run, .free_state = end,
                                            .group_changed = group_changed };

/* What can be said before anything is made. */
static tutti_status check(const tutti_ddp *ddp, const tutti_optim *optim, const tutti_fused_optim_options *opts)
{
    if (ddp == NULL || optim == NULL || (opts != NULL && opts->size != sizeof *opts))
        return tti_fail(TUTTI_E_ARG, "fused_optim: %s",
                        ddp == NULL     ? "the ddp is NULL"
                        : optim == NULL ? "the optimizer is NULL"
                                        : "no options\n  next: begin with TUTTI_FUSED_OPTIM_OPTIONS");
    if (optim->part != NULL)
        return tti_fail(TUTTI_E_ARG, "fused_optim: the optimizer is divided among ranks\n"
                                     "  next: tutti_zero_overlap_with_ddp()");
    if (ddp->is_joinable && steps_at_end(ddp))
        return tti_fail(TUTTI_E_UNSUPPORTED, "fused_optim: inputs may be uneven, and a rank without some has no end of a "
                                             "backward to step at\n  next: tutti_optim_step() after the backward");
    return TUTTI_OK;
}

static tutti_status match(fused *f)
{
    int found = 0;

    f->index = calloc((size_t)f->n + 1, sizeof *f->index);
    f->grads = calloc((size_t)f->n + 1, sizeof(tutti_tensor *));
    f->passing = calloc((size_t)f->n + 1, sizeof *f->passing);
    if (f->index == NULL || f->grads == NULL || f->passing == NULL)
        return tti_fail(TUTTI_E_NOMEM, "fused_optim: no memory for %d parameters", f->n);
    for (int i = 0; i < f->n; i++) {
        f->index[i] = tti_optim_find(f->optim, f->ddp->params[i]);
        found += f->index[i] >= 0;
    }
    if (found != f->optim->n)
        return tti_fail(TUTTI_E_ARG, "fused_optim: the ddp averages %d of the %d parameters of the optimizer", found,
                        f->optim->n);
    return tutti_optim_init_state(f->optim); /* so that no step fails for want of memory */
}

tutti_status tutti_ddp_register_fused_optim(tutti_ddp *ddp, tutti_optim *optim, const tutti_fused_optim_options *opts)
{
    tutti_status st = check(ddp, optim, opts);
    fused *f;

    if (st != TUTTI_OK)
        return st;
    f = calloc(1, sizeof *f);
    if (f == NULL)
        return tti_fail(TUTTI_E_NOMEM, "fused_optim: no memory");
    *f = (fused){ .ddp = ddp, .optim = optim, .n = ddp->n, .drops = opts != NULL && opts->drop_gradients,
                  .at_end = steps_at_end(ddp) };
    pthread_mutex_init(&f->lock, NULL);
    st = match(f);
    if (st == TUTTI_OK && opts != NULL) {
        f->hook = opts->hook;
        f->hook_state = opts->hook_state;
    }
    if (st == TUTTI_OK)
        st = tutti_reducer_register_comm_hook(ddp->reducer, &fused_hook, f);
    if (st == TUTTI_OK) {
        ddp->steps_at_end = f->at_end;
    } else {
        f->hook = NULL; /* its state stays the caller's */
        end(f);
    }
    return st;
}
