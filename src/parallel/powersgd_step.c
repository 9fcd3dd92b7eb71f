/* SPDX-License-Identifier: BSD-3-Clause
 *
 * powersgd_step.c - a bucket's way through its two reductions.
 *
 * Why     A rank learns that a bucket's first reduction is over at a moment of its own, and the second one must be issued
 *         after that. On the reducer's group it would stand between the first ones of later buckets, elsewhere on each
 *         rank: ranks would add up different things.
 * How     First messages go through the reducer's group, as the hook is called in the order of buckets. Second ones go
 *         through a group of the hook's own (follow), which nothing else uses, in that order, too: a bucket whose first
 *         message has arrived waits until those before it have been issued. Whoever notes an arrival issues what
 *         is due, one thread at a time (driving):
 *
 *             run()  fit, fill the first message ---all_reduce, reducer's group---> on_first() ---.
 *             drive()  next in order, arrived? fill the second one ---all_reduce, follow--> on_second()
 *                      result into the bucket; the future is complete
 *
 *         Both callbacks run on the thread that the world has for them (tutti_work_then): no thread that computes gradients
 *         waits, and none of the library's that moves data.
 * True    Every group sees one order on all ranks: b0 b1 b2 ... first messages and then the reducer's own; b0 b1 b2 ...
 *         second ones. So no rank waits in one for a rank that waits for it in the other, as long as a work of each
 *         can be under way: two workers, as for any two groups.
 *         Who writes what of a bucket: run(), before the first message is issued; then the callbacks, one after
 *         the other on their thread. tutti_work_then() and the completed future order the three.
 *         The future of a bucket is completed last: nothing of the state is touched after it, unless another bucket's is
 *         not complete. drive() keeps driving set while it has a next one, so that nobody else completes that; and
 *         what it issues ends in on_second() on the same thread, or while run() has not returned.
 * Fails   What fails on one rank fails on all: the rank ends the follow group, in which others may wait for it, and every
 *         later bucket fails with the same words. The state is finished then, as a group would be. A rank that is gone
 *         is seen by all in that group, too, which then name it: it is left to them.
 *         Ranks hear of it at moments of their own, and some still issue first messages while others know. So once the
 *         ranks have met, every bucket has its first message, or its plain average, on the reducer's group, whether the
 *         state has failed or not: else the next thing that this rank issues there would meet another rank's message.
 *         Of a state that has failed it is zeros, as nobody uses it: no rank gets the second one. The future fails
 *         behind it. Ranks that have never met refuse, as all of them do, in the same bucket.
 *         What has no memory for its message, or cannot be issued, leaves it out: the reducer tells of that. */
#include "parallel/powersgd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

static tutti_status give_up(tutti_powersgd *s, tutti_status st)
{
    bool first;

    tti_lock(&s->lock);
    first = s->failed == TUTTI_OK;
    if (first) {
        s->failed = st;
        snprintf(s->words, sizeof s->words, "%s", tutti_last_error());
    }
    st = s->failed;
    tti_unlock(&s->lock);
    if (first && s->owns_follow && st != TUTTI_E_PEER)
        tutti_abort_process_group(s->follow);
    return tti_fail(st, "%s", s->words); /* constant by now */
}

/* The failure of an earlier bucket, or step. */
static tutti_status failure(tutti_powersgd *s)
{
    tutti_status st;

    tti_lock(&s->lock);
    st = s->failed;
    tti_unlock(&s->lock);
    return st == TUTTI_OK ? TUTTI_OK : tti_fail(st, "%s", s->words);
}

/* Nothing of the state is touched afterwards. The thread's last error has the words. */
static void complete(tutti_future *done, tutti_status st)
{
    if (st == TUTTI_OK)
        tutti_future_set_result(done, NULL, NULL);
    else
        tutti_future_set_error(done, st, tutti_last_error());
    tutti_future_free(done);
}

/* Issue a message, and have fn called when it has arrived. */
static tutti_status issue(tti_powersgd_bucket *b, void *data, int64_t count, tutti_group *group, tutti_work_fn fn)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(tutti_span_of(data, count, b->dtype), TUTTI_AVG, group, &work);

    if (st == TUTTI_OK)
        st = tutti_work_then(work, fn, b);
    if (st != TUTTI_OK && work != NULL)
        tutti_work_wait(work); /* the message is in use until then; its outcome tells nothing more */
    tutti_work_free(work);
    return st;
}

/* ---- the second message ---- */

static void on_second(tutti_work *work, void *ctx)
{
    tti_powersgd_bucket *b = ctx;
    tutti_future        *done = b->done;
    tutti_status         st = tutti_work_wait(work);

    if (st == TUTTI_OK)
        tti_powersgd_finish(b);
    else
        st = give_up(b->of, st);
    complete(done, st);
}

static tutti_status issue_second(tti_powersgd_bucket *b)
{
    tutti_status st = failure(b->of);

    if (st == TUTTI_OK && b->status != TUTTI_OK)
        st = give_up(b->of, tti_fail(b->status, "%s", b->words));
    if (st != TUTTI_OK)
        return st;
    tti_powersgd_fill_second(b);
    st = issue(b, b->second.data, b->n_second, b->of->follow, on_second);
    return st == TUTTI_OK ? TUTTI_OK : give_up(b->of, st);
}

static tti_powersgd_bucket *take_due_locked(tutti_powersgd *s)
{
    return s->turn < s->n_begun && s->order[s->turn]->arrived ? s->order[s->turn++] : NULL;
}

static void drive(tutti_powersgd *s)
{
    tti_powersgd_bucket *b, *next;

    tti_lock(&s->lock);
    b = s->driving ? NULL : take_due_locked(s);
    s->driving = s->driving || b != NULL;
    tti_unlock(&s->lock);
    for (; b != NULL; b = next) {
        tutti_future *done = b->done;
        tutti_status  st = issue_second(b);

        tti_lock(&s->lock);
        next = take_due_locked(s);
        s->driving = next != NULL;
        tti_unlock(&s->lock);
        if (st != TUTTI_OK)
            complete(done, st);
    }
}

/* ---- the first one ---- */

static void on_first(tutti_work *work, void *ctx)
{
    tti_powersgd_bucket *b = ctx;
    const tutti_status   st = tutti_work_wait(work);

    if (st != TUTTI_OK)
        snprintf(b->words, sizeof b->words, "%s", tutti_last_error());
    tti_lock(&b->of->lock);
    b->status = st;
    b->arrived = true;
    tti_unlock(&b->of->lock);
    drive(b->of);
}

static void enqueue(tti_powersgd_bucket *b)
{
    tti_lock(&b->of->lock);
    b->arrived = false;
    b->of->order[b->of->n_begun++] = b;
    tti_unlock(&b->of->lock);
}

/* It is the last one, and has not arrived: nobody has looked at it. */
static void dequeue(tutti_powersgd *s)
{
    tti_lock(&s->lock);
    s->n_begun--;
    tti_unlock(&s->lock);
}

static tutti_status issue_first(tti_powersgd_bucket *b, tutti_group *group, tutti_future **future_out)
{
    tutti_future *future = NULL;
    tutti_status  st = tutti_future_create(&future);

    if (st != TUTTI_OK)
        return st;
    b->done = tutti_future_retain(future);
    enqueue(b);
    st = issue(b, b->first.data, b->n_first, group, on_first);
    if (st == TUTTI_OK) {
        *future_out = future;
        return TUTTI_OK;
    }
    dequeue(b->of);
    tutti_future_free(future);
    tutti_future_free(b->done);
    return st;
}

/* ---- the hook ---- */

/* For the average of a bucket, of a state that has failed. */
static tutti_status fail_behind(tutti_future *future, void *ctx, void **value_out, tutti_value_free_fn *free_out)
{
    (void)future;
    (void)value_out;
    (void)free_out;
    return failure(ctx);
}

/* The plain average, on all ranks: those whose state has failed take part. */
static tutti_status average(tutti_powersgd *s, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_future *future = NULL;
    tutti_status  st = tti_hook_average(bucket->buffer, bucket->group, &future);

    if (st != TUTTI_OK)
        return st;
    if (failure(s) == TUTTI_OK) {
        *future_out = future;
        return TUTTI_OK;
    }
    st = tutti_future_then(future, fail_behind, s, future_out);
    if (st != TUTTI_OK)
        tutti_future_wait(future, TUTTI_INFINITE); /* the bucket is in use until then */
    tutti_future_free(future);
    return st;
}

static void count(tutti_powersgd *s, tti_powersgd_bucket *b)
{
    tti_powersgd_view v = { .at = 0 };

    while (tti_powersgd_next(b, &v))
        s->n_after += (v.of.rows + v.of.cols) * v.of.k;
    s->n_after += b->n_whole;
    s->n_before += b->buffer.count;
}

static void report(tutti_powersgd *s, int64_t iter)
{
    if (iter < s->next_report)
        return;
    s->next_report = iter + s->opts.compression_stats_logging_frequency;
    if (s->rank == 0)
        tti_log(TTI_LOG_INFO, "powersgd: step %lld: %lld elements in the place of %lld so far, a rate of %.1f",
                (long long)iter, (long long)s->n_after, (long long)s->n_before,
                s->n_after > 0 ? (double)s->n_before / (double)s->n_after : 0.0);
}

static tutti_status compress(tti_powersgd_bucket *b, const tutti_grad_bucket *bucket, int64_t iter,
                             tutti_future **future_out)
{
    tutti_powersgd *s = b->of;
    tutti_status    st = tti_powersgd_fit(b, bucket);

    if (st != TUTTI_OK)
        return st;
    count(s, b);
    if (bucket->is_last)
        report(s, iter);
    if (b->n_matrices == 0)
        return average(s, bucket, future_out);
    st = failure(s);
    if (st == TUTTI_OK) {
        st = tti_powersgd_fill_first(b, iter);
        if (st != TUTTI_OK)
            give_up(s, st);
    }
    if (st != TUTTI_OK)
        memset(b->first.data, 0, (size_t)b->n_first * tutti_dtype_size(b->dtype));
    return issue_first(b, bucket->group, future_out);
}

/* A step begins: the futures of the one before are complete. */
static tutti_status begin_step(tutti_powersgd *s, tutti_group *group)
{
    tti_lock(&s->lock);
    s->n_begun = s->turn = 0;
    tti_unlock(&s->lock);
    return s->has_met ? TUTTI_OK : tti_powersgd_meet(s, group);
}

tutti_status tti_powersgd_run(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_powersgd *s = state;
    tutti_status    st = s->has_met ? TUTTI_OK : failure(s);
    int64_t         iter;

    if (st == TUTTI_OK && bucket->index <= s->steps.last)
        st = begin_step(s, bucket->group);
    tti_hook_steps_note(&s->steps, bucket);
    iter = s->steps.n - 1;
    if (st == TUTTI_OK)
        st = iter < s->opts.start_iter ? average(s, bucket, future_out)
                                       : compress(&s->buckets[bucket->index], bucket, iter, future_out);
    return st == TUTTI_OK ? TUTTI_OK : give_up(s, st);
}
