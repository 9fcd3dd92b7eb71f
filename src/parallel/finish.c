/* SPDX-License-Identifier: BSD-3-Clause
 *
 * finish.c - the end of a step: what was begun is waited for, bucket by bucket, and put where the gradients are.
 *
 * How     While a later bucket is on its way the results of the one before are copied. Gradients that lie in their
 *         buckets are there already. Whether a parameter that this rank has not used was used by any is looked up in
 *         the map that travels behind the last bucket; where nobody has, its gradient stays, or comes back, as it was.
 * True    A rank that fails on its own (words.c) still begins all reductions, and hears from the others (account.c).
 *         One that cannot begin a reduction, as its hook has failed there or there is no memory, tells by the map, too,
 *         which meets the maps of the others where they have left out the same. Where they have not it meets another call:
 *         the group is finished on all ranks, and the words are those of that.
 *         Nothing of a step is left when finish() returns, whatever it returns. */
#include "parallel/parallel.h"

#include <stdio.h>
#include <string.h>
#include <tutti/debug.h>
#include <tutti/private.h>

/* ---- the last marks ---- */

/* The others have made the first step without this rank, and what they did not use then stays as it is on each of them. */
static void check_used_locked(tutti_reducer *r)
{
    int i;

    for (i = 0; i < r->n; i++)
        if (r->used[i] != 0 && r->used_sum[i] == 0) {
            tti_reducer_fail_locked(r, tti_fail_unknown(r, i));
            return;
        }
}

/* This rank's first step of a static graph: what was never marked is unused; everything is handed in at once. */
static void mark_all_locked(tutti_reducer *r)
{
    char text[256];
    int  i;

    for (i = 0; i < r->n; i++) {
        r->slots[i].unused = r->slots[i].triggers == 0;
        if (r->slots[i].unused && tutti_get_debug_level() != TUTTI_DEBUG_OFF)
            tti_log(TTI_LOG_INFO, "reducer: rank %d does not use %s in the first step of a static graph", r->rank,
                    tti_param_text(r, i, text, sizeof text));
    }
    if (!tti_is_first_static(r))
        check_used_locked(r);
    r->unused_marked = true;
    for (i = 0; i < r->n; i++)
        tti_mark_locked(r, i);
}

/* Parameters are missing: fail, and let reductions begin for the others' sake. */
static void mark_missing_locked(tutti_reducer *r)
{
    int i;

    tti_reducer_fail_locked(r, tti_fail_unfinished(r));
    for (i = 0; i < r->n; i++)
        if (!r->slots[i].ready)
            tti_mark_locked(r, i);
}

/* ---- waiting ---- */

/* What a bucket came to: where its result is. A hook's may be elsewhere, until its future is freed. */
static tutti_status await(tti_reducer_bucket *bucket, tutti_span *result_out)
{
    tutti_spans *spans = NULL;
    tutti_status st = TUTTI_OK;

    *result_out = tutti_span_of(bucket->data, bucket->count, bucket->dtype);
    if (bucket->work != NULL)
        return tutti_work_wait(bucket->work);
    if (bucket->future != NULL)
        st = tutti_future_wait(bucket->future, 0);
    if (st == TUTTI_OK && bucket->future != NULL)
        st = tutti_future_value(bucket->future, (void **)&spans);
    if (st == TUTTI_OK && spans != NULL && spans->n > 0)
        *result_out = spans->at[0];
    return st;
}

static void release(tti_reducer_bucket *bucket)
{
    tutti_work_free(bucket->work);
    tutti_future_free(bucket->future);
    bucket->work = NULL;
    bucket->future = NULL;
}

static tutti_status await_map(tutti_reducer *r)
{
    tutti_status st = TUTTI_OK;

    if (r->used_work != NULL)
        st = tutti_work_wait(r->used_work);
    tutti_work_free(r->used_work);
    r->used_work = NULL;
    if (st == TUTTI_OK && tti_sums_used(r))
        r->used_known = true;
    return st;
}

tutti_status tti_reducer_drain(tutti_reducer *r)
{
    tutti_status first = TUTTI_OK, st;
    tutti_span   result;
    int          b;

    for (b = 0; b < r->layout.n_buckets; b++) {
        st = await(&r->buckets[b], &result);
        first = first == TUTTI_OK ? st : first;
        release(&r->buckets[b]);
    }
    st = await_map(r);
    return first == TUTTI_OK ? st : first;
}

/* ---- averages to their places ---- */

/* Nobody has used it. Local marks answer without waiting for the map. */
static tutti_status is_unused_by_all(tutti_reducer *r, int i, bool *unused_out)
{
    const bool   tracks = r->caps.find_unused || r->caps.static_graph;
    tutti_status st = TUTTI_OK;

    if (tracks && r->used[i] == 0 && !r->used_known)
        st = await_map(r);
    *unused_out = tracks && r->used[i] == 0 && r->used_known && r->used_sum[i] == 0;
    return st;
}

static tutti_status put_back(tutti_reducer *r, int i, const char *result, tutti_dtype dtype)
{
    tti_reducer_slot *s = &r->slots[i];
    bool              stays = r->shadow;
    tutti_status      st = stays ? TUTTI_OK : is_unused_by_all(r, i, &stays);

    if (st != TUTTI_OK)
        return st;
    if (stays && s->is_kept && s->bytes > 0)
        memcpy(s->grad, s->kept, s->bytes);
    if (stays)
        return TUTTI_OK;
    if (s->grad == NULL)
        s->grad = tti_place(r, i);
    tti_convert(s->grad, s->dtype, result + (size_t)s->offset * tutti_dtype_size(dtype), dtype, s->numel);
    return TUTTI_OK;
}

static tutti_status check_result(const tutti_reducer *r, int b, tutti_span result)
{
    const tti_reducer_bucket *bucket = &r->buckets[b];

    if (result.count != bucket->count)
        return tti_fail(TUTTI_E_ARG, "communication hook '%s' gave %lld elements for bucket %d, which has %lld",
                        tti_hook_name(r), (long long)result.count, b, (long long)bucket->count);
    if (!tti_can_convert(bucket->dtype, result.dtype))
        return tti_fail(TUTTI_E_ARG, "Expected %s, got %s: the result of communication hook '%s' for bucket %d",
                        tutti_dtype_name(bucket->dtype), tutti_dtype_name(result.dtype), tti_hook_name(r), b);
    return TUTTI_OK;
}

static tutti_status finish_bucket(tutti_reducer *r, int b)
{
    tti_reducer_bucket *bucket = &r->buckets[b];
    tutti_span          result;
    tutti_status        st = await(bucket, &result);
    int                 k;

    if (st == TUTTI_OK && r->hook != NULL && !bucket->left_out)
        st = check_result(r, b, result);
    for (k = 0; k < bucket->n && st == TUTTI_OK && r->failure == TUTTI_OK && !bucket->left_out; k++)
        st = put_back(r, bucket->params[k], result.data, result.dtype);
    release(bucket);
    return st;
}

/* ---- the end ---- */

/* Whether a rank has said that it fails, the same answer on all ranks. */
static bool somebody_fails(const tutti_reducer *r)
{
    if (r->lost)
        return true;
    if (r->hook == NULL && tti_tail_says(&r->buckets[r->layout.n_buckets - 1]))
        return true;
    return (r->hook != NULL || tti_sums_used(r)) && r->used_sum[r->n] > 0;
}

static void record(tutti_reducer *r)
{
    int i, n = 0;

    memcpy(r->order_before, r->arrived, (size_t)r->n_arrived * sizeof(int));
    r->n_order_before = r->n_arrived;
    for (i = 0, r->n_reduced = 0; i < r->layout.n_buckets; i++)
        r->n_reduced += !r->buckets[i].left_out;
    if (r->has_rebuilt || tti_is_dynamic(r) || tti_is_first_static(r))
        return;
    memcpy(r->recorded, r->arrived, (size_t)r->n_arrived * sizeof(int));
    n = r->n_arrived;
    for (i = 0; i < r->n && r->caps.static_graph; i++)
        if (r->slots[i].unused)
            r->recorded[n++] = i;
    r->may_rebuild = n == r->n;
}

static void end(tutti_reducer *r, bool complete)
{
    tti_lock(&r->lock);
    if (complete)
        record(r);
    if (tti_is_dynamic(r) || (!complete && tti_counts_marks(r)))
        memset(r->used, 0, (size_t)r->n * sizeof *r->used);
    if (complete && r->caps.static_graph) {
        r->first_done = true;
        r->counted |= !r->shadow;
    }
    r->expect = r->begun = false;
    tti_unlock(&r->lock);
}

/* The calls of a step differ. A rank that could not begin what the others wait for is the cause: what it began next, as
 * the map, met that. It knows why, which goes before what came of it. The others are told whose call was another one,
 * and where to look: a hook issues what it likes, and may have failed there. */
static tutti_status tell_why(const tutti_reducer *r, tutti_status st)
{
    char words[TTI_REDUCER_WORDS_MAX];

    if (st != TUTTI_E_MISMATCH)
        return st;
    if (r->lost && r->failure != TUTTI_E_MISMATCH)
        return tti_fail(r->failure, "%s", r->failure_words);
    if (r->hook == NULL)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(st, "%s\n  step %lld is reduced by communication hook '%s': if it failed on one of these ranks, that one tells why",
                    words, (long long)r->iterations, tti_hook_name(r));
}

static tutti_status wait_for_all(tutti_reducer *r)
{
    tutti_status st = TUTTI_OK;
    int          b;

    for (b = 0; b < r->layout.n_buckets && st == TUTTI_OK; b++)
        st = finish_bucket(r, b);
    if (st == TUTTI_OK)
        st = await_map(r);
    if (st != TUTTI_OK) {
        st = tell_why(r, st);
        tti_reducer_keep_error(r);
        tti_reducer_drain(r);
        return tti_fail(st, "%s", r->error);
    }
    return somebody_fails(r) ? tti_reducer_account(r) : TUTTI_OK;
}

tutti_status tti_reducer_complete(tutti_reducer *r)
{
    tutti_status st = wait_for_all(r);

    end(r, st == TUTTI_OK);
    tti_times_comm_end(r);
    if (st == TUTTI_OK && r->failure != TUTTI_OK) /* after everything had begun: nobody else's concern */
        st = tti_fail(r->failure, "%s", r->failure_words);
    if (st != TUTTI_OK)
        tti_reducer_keep_error(r);
    return st;
}

void tti_reducer_close(tutti_reducer *r)
{
    tti_lock(&r->lock);
    if (!r->closed) {
        r->closed = true;
        tti_times_backward_end(r);
        if (tti_counts_marks(r))
            mark_all_locked(r);
        tti_mark_unused_locked(r);
        if (r->n_ready < r->n)
            mark_missing_locked(r);
    }
    tti_unlock(&r->lock);
}

tutti_status tutti_reducer_finish(tutti_reducer *reducer)
{
    tutti_reducer *r = reducer;

    if (r == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_finish: the reducer is NULL");
    if (!r->expect)
        return TUTTI_OK;
    tti_reducer_close(r);
    return tti_reducer_complete(r);
}

tutti_status tutti_reducer_reset_state(tutti_reducer *reducer)
{
    tutti_reducer *r = reducer;
    tutti_status   st;

    if (r == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_reset_state: the reducer is NULL");
    st = tutti_reducer_finish(r); /* begins what others wait for, and tells them */
    if (st == TUTTI_E_STATE || st == TUTTI_E_REMOTE)
        st = TUTTI_OK;
    tti_lock(&r->lock);
    r->forward = r->may_rebuild = r->has_rebuilt = false;
    memset(r->used, 0, (size_t)r->n * sizeof *r->used);
    tti_unlock(&r->lock);
    return st;
}
