/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backward.c - a step, from its beginning to the last reduction that begins.
 *
 * How     prepare      every bucket waits for all of its gradients
 *         mark_ready   copy the gradient into its place; one less to wait for; a bucket that waits for none begins,
 *                      if all before it have begun, and then those behind it that wait for none either
 *         Unused parameters are marked with the first gradient, not before: the result of the forward may never be
 *         used. With static_graph a rank's first step only counts marks, and finish() does the rest; in later ones a
 *         parameter is ready with its last mark. A step of others (reducer_join.c) counts none: the first one of the
 *         rank's own does, whenever that is.
 * True    Reductions begin in the order of buckets on every rank: this is what keeps ranks together.
 *         A failure of this rank's own does not keep reductions from beginning, see account.c. */
#include "parallel/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

void tti_reducer_keep_error(tutti_reducer *r)
{
    r->has_error = true;
    snprintf(r->error, sizeof r->error, "%s", tutti_last_error());
}

void tti_reducer_fail_locked(tutti_reducer *r, tutti_status st)
{
    if (r->failure != TUTTI_OK)
        return;
    r->failure = st;
    snprintf(r->failure_words, sizeof r->failure_words, "%s", tutti_last_error());
    tti_reducer_keep_error(r);
}

/* ---- beginning reductions ---- */

static tutti_op average(const tutti_reducer *r)
{
    return r->divisor == r->size ? TUTTI_AVG : tutti_premul_sum(1.0 / r->divisor);
}

/* What a hook fails with. It may have called the library, whose words are kept then; before are those that were there. */
static tutti_status fail_hook(const tutti_reducer *r, int b, tutti_status st, const char *before)
{
    char words[TTI_REDUCER_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(st, "communication hook '%s' failed on bucket %d [%s]%s%s", tti_hook_name(r), b,
                    tutti_status_name(st), strcmp(words, before) != 0 ? ": " : "",
                    strcmp(words, before) != 0 ? words : "");
}

static tutti_status run_hook(tutti_reducer *r, int b)
{
    const tutti_grad_bucket bucket = tti_bucket_for_hook(r, b);
    char                    before[TTI_REDUCER_WORDS_MAX];
    tutti_status            st;

    snprintf(before, sizeof before, "%s", tutti_last_error());
    st = r->hook->run(r->hook_state, &bucket, &r->buckets[b].future);
    if (st != TUTTI_OK) {
        r->buckets[b].future = NULL;
        return fail_hook(r, b, st, before);
    }
    if (r->buckets[b].future == NULL)
        return tti_fail(TUTTI_E_ARG, "communication hook '%s' gave no future for bucket %d", tti_hook_name(r), b);
    return TUTTI_OK;
}

/* Nothing in it is used by this rank, and so, as the program has promised, by any. */
static bool is_left_out(const tutti_reducer *r, const tti_reducer_bucket *bucket)
{
    int k;

    if (!r->skips || !tti_is_dynamic(r))
        return false;
    for (k = 0; k < bucket->n && r->slots[bucket->params[k]].unused; k++)
        ;
    return k == bucket->n;
}

static tutti_status launch(tutti_reducer *r, int b, bool failed)
{
    tti_reducer_bucket *bucket = &r->buckets[b];
    const bool          last = b == r->layout.n_buckets - 1;
    tutti_status        st;

    bucket->left_out = is_left_out(r, bucket);
    if (bucket->left_out) {
        tti_tail_set(bucket, false); /* whether ranks fail travels with the map, too */
        return TUTTI_OK;
    }
    if (r->hook != NULL)
        return run_hook(r, b);
    st = b == 0 ? tti_join_divisor(r) : TUTTI_OK;
    if (st != TUTTI_OK)
        return st;
    tti_tail_set(bucket, failed);
    return tutti_all_reduce_async(tutti_span_of(bucket->data, bucket->count + last, bucket->dtype), average(r),
                                  r->group, &bucket->work);
}

/* What travels behind the last bucket: the map of used parameters, and how many ranks fail. */
static tutti_status launch_map(tutti_reducer *r)
{
    const int first = tti_sums_used(r) ? 0 : r->n;

    return tutti_all_reduce_async(TUTTI_SPAN(r->used_sum + first, r->n + 1 - first), TUTTI_SUM, r->group,
                                  &r->used_work);
}

/* Begin the last thing of a step. The lock is let go of. */
static void close_locked(tutti_reducer *r)
{
    tutti_status st;
    int          i;

    for (i = 0; i < r->n && tti_sums_used(r); i++)
        r->used_sum[i] = r->shadow ? 0 : r->used[i];
    if (!tti_sums_used(r) && r->hook == NULL)
        return;
    r->used_sum[r->n] = r->failure != TUTTI_OK;
    tti_unlock(&r->lock);
    st = launch_map(r);
    tti_lock(&r->lock);
    if (st != TUTTI_OK) {
        r->lost = true;
        tti_reducer_fail_locked(r, st);
    }
}

/* Begin what can begin. Others only count meanwhile: who is here sees their buckets when it comes back. */
static void launch_due_locked(tutti_reducer *r)
{
    while (!r->launching && r->next < r->layout.n_buckets && r->buckets[r->next].pending == 0) {
        const bool   failed = r->failure != TUTTI_OK;
        tutti_status st;

        r->launching = true;
        if (r->next == 0)
            tti_times_comm_start(r);
        tti_unlock(&r->lock);
        st = launch(r, r->next, failed); /* next is changed only by who launches */
        tti_lock(&r->lock);
        if (st != TUTTI_OK) {
            r->lost = true;
            tti_reducer_fail_locked(r, st);
        }
        if (r->next == r->layout.n_buckets - 1)
            close_locked(r);
        r->next++;
        r->launching = false;
    }
}

/* ---- one gradient ---- */

/* A gradient that lies in its bucket, and that perhaps nobody has used: the reduction must not be seen in it then. */
static tutti_status keep(tti_reducer_slot *s)
{
    if (s->kept == NULL)
        s->kept = malloc(s->bytes > 0 ? s->bytes : 1);
    if (s->kept == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a gradient of %zu bytes", s->bytes);
    if (s->bytes > 0)
        memcpy(s->kept, s->grad, s->bytes);
    s->is_kept = true;
    return TUTTI_OK;
}

/* Put a gradient into its place. Only the one who marks it is here: no lock. */
static tutti_status fill(tutti_reducer *r, int i, bool maybe_unused)
{
    tti_reducer_slot *s = &r->slots[i];
    void             *place = tti_place(r, i);
    tutti_status      st = TUTTI_OK;

    if (r->shadow ? s->grad == place : maybe_unused && s->grad != NULL && (r->views || s->grad == place))
        st = keep(s);
    if (s->grad == NULL || r->shadow) {
        memset(place, 0, s->bytes);
        return st;
    }
    if (s->grad != place && s->bytes > 0)
        memcpy(place, s->grad, s->bytes);
    if (r->views)
        s->grad = place;
    return st;
}

tutti_status tti_mark_locked(tutti_reducer *r, int i)
{
    tti_reducer_slot *s = &r->slots[i];
    const bool        tracks = r->caps.find_unused || r->caps.static_graph;
    const bool        maybe_unused = tracks && r->used[i] == 0;
    tutti_status      st;

    if (s->ready) {
        st = tti_fail_twice(r, i);
        tti_reducer_fail_locked(r, st);
        return st;
    }
    s->ready = true;
    r->n_ready++;
    tti_unlock(&r->lock);
    st = fill(r, i, maybe_unused);
    tti_lock(&r->lock);
    if (st != TUTTI_OK)
        tti_reducer_fail_locked(r, st);
    r->buckets[s->bucket].pending--;
    launch_due_locked(r);
    return st;
}

void tti_mark_unused_locked(tutti_reducer *r)
{
    int i;

    if (r->unused_marked)
        return;
    r->unused_marked = true;
    for (i = 0; i < r->n; i++)
        if (r->slots[i].unused)
            tti_mark_locked(r, i);
}

/* Whether this mark is the last one that its parameter needs. */
static tutti_status count_down(tutti_reducer *r, int i, bool *ready_out)
{
    tti_reducer_slot *s = &r->slots[i];
    tutti_status      st;

    if (s->remaining == 0) {
        st = tti_fail_changed(r, i);
        tti_reducer_fail_locked(r, st);
        return st;
    }
    s->remaining--;
    *ready_out = s->remaining == 0;
    return TUTTI_OK;
}

static tutti_status mark_in_step(tutti_reducer *r, int i)
{
    bool         ready = true;
    tutti_status st = TUTTI_OK;

    if (!r->begun)
        r->begun = true;
    tti_mark_unused_locked(r);
    if (r->caps.static_graph)
        st = count_down(r, i, &ready);
    if (st != TUTTI_OK || !ready)
        return st;
    if (!r->slots[i].ready)
        r->arrived[r->n_arrived++] = i;
    return tti_mark_locked(r, i);
}

/* In a step without sync it counts for nothing, see begin_parameters(). */
static void count_up(tutti_reducer *r, int i)
{
    if (r->slots[i].triggers == 0 && r->expect && !r->closed)
        r->arrived[r->n_arrived++] = i;
    r->slots[i].triggers++;
}

tutti_status tutti_reducer_mark_ready(tutti_reducer *reducer, int index)
{
    tutti_reducer *r = reducer;
    tutti_status   st = TUTTI_OK;

    if (r == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_mark_ready: the reducer is NULL");
    tti_lock(&r->lock);
    if (index < 0 || index >= r->n) {
        st = tti_fail(TUTTI_E_ARG, "reducer_mark_ready: there is no parameter %d, only 0 to %d", index, r->n - 1);
        if (r->expect)
            tti_reducer_fail_locked(r, st);
        tti_unlock(&r->lock);
        return st;
    }
    if ((tti_is_dynamic(r) || tti_counts_marks(r)) && r->slots[index].grad != NULL)
        r->used[index] = 1;
    if (tti_counts_marks(r))
        count_up(r, index);
    else if (r->expect)
        st = mark_in_step(r, index);
    tti_unlock(&r->lock);
    return st;
}

/* ---- the beginning of a step ---- */

tutti_status tutti_reducer_prepare_for_forward(tutti_reducer *reducer)
{
    tutti_reducer *r = reducer;
    tutti_status   st = TUTTI_OK;
    bool           unfinished;

    if (r == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_prepare_for_forward: the reducer is NULL");
    tti_lock(&r->lock);
    unfinished = r->expect && (r->begun || r->next > 0);
    if (unfinished) {
        st = tti_fail_unfinished(r);
        tti_reducer_keep_error(r);
    }
    tti_unlock(&r->lock);
    if (st != TUTTI_OK)
        return st;
    if (r->sync) {
        r->iterations++;
        tti_times_forward(r);
    }
    st = tti_join_step(r);
    if (st == TUTTI_OK && r->may_rebuild && !r->has_rebuilt)
        st = tti_reducer_rebuild(r);
    if (st == TUTTI_OK)
        st = tti_join_tell_sync(r);
    r->forward = st == TUTTI_OK;
    return st;
}

static tutti_status check_unused(const tutti_reducer *r, const int *unused, int n_unused)
{
    int k;

    if (n_unused < 0 || (unused == NULL && n_unused > 0))
        return tti_fail(TUTTI_E_ARG, "reducer_prepare_for_backward: a list of %d unused parameters%s", n_unused,
                        unused == NULL ? " that is NULL" : "");
    for (k = 0; k < n_unused; k++)
        if (unused[k] < 0 || unused[k] >= r->n)
            return tti_fail(TUTTI_E_ARG, "reducer_prepare_for_backward: unused[%d] is %d, and parameters are 0 to %d", k,
                            unused[k], r->n - 1);
    return TUTTI_OK;
}

static void begin_parameters(tutti_reducer *r, const int *unused, int n_unused)
{
    const bool counts = tti_counts_marks(r);
    int        i, b;

    for (i = 0; i < r->n; i++) {
        tti_reducer_slot *s = &r->slots[i];

        s->ready = s->is_kept = false;
        if (counts)
            s->triggers = 0; /* marks of steps without sync do not count */
        s->remaining = s->triggers;
        s->unused = r->caps.static_graph && !counts && s->triggers == 0;
    }
    for (i = 0; i < n_unused && tti_is_dynamic(r); i++)
        r->slots[unused[i]].unused = true;
    for (i = 0; i < r->n && tti_is_dynamic(r); i++) {
        r->varies |= r->iterations > 1 && r->slots[i].was_unused != r->slots[i].unused;
        r->slots[i].was_unused = r->slots[i].unused;
    }
    for (b = 0; b < r->layout.n_buckets; b++)
        r->buckets[b].pending = r->buckets[b].n;
}

void tti_begin_locked(tutti_reducer *r, const int *unused, int n_unused)
{
    begin_parameters(r, unused, n_unused);
    r->expect = true;
    r->begun = r->closed = r->unused_marked = r->launching = r->lost = false;
    r->next = r->n_ready = r->n_arrived = 0;
    r->failure = TUTTI_OK;
    r->divisor = r->size;
    if (tti_sums_used(r))
        r->used_known = false;
}

static void warn_if_needless(tutti_reducer *r, int n_unused)
{
    if (!tti_is_dynamic(r) || r->has_warned || n_unused > 0 || r->iterations > 1)
        return;
    r->has_warned = true;
    tti_log(TTI_LOG_WARN, "reducer: find_unused_parameters is set, and no parameter is unused in the first step: every "
                          "step pays for a map of used parameters");
}

tutti_status tti_reducer_prepare(tutti_reducer *r, const int *unused, int n_unused)
{
    tutti_status st = r->forward ? TUTTI_OK : tutti_reducer_prepare_for_forward(r);

    if (st != TUTTI_OK)
        return st;
    r->forward = false;
    if (!r->sync)
        return TUTTI_OK;
    tti_lock(&r->lock);
    tti_begin_locked(r, unused, n_unused);
    tti_times_backward(r);
    tti_unlock(&r->lock);
    return TUTTI_OK;
}

tutti_status tutti_reducer_prepare_for_backward(tutti_reducer *reducer, const int *unused, int n_unused)
{
    tutti_reducer *r = reducer;
    tutti_status   st;

    if (r == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_prepare_for_backward: the reducer is NULL");
    st = check_unused(r, unused, n_unused);
    if (st == TUTTI_OK)
        st = tti_reducer_prepare(r, unused, n_unused);
    if (st == TUTTI_OK && r->expect)
        warn_if_needless(r, n_unused);
    return st;
}
