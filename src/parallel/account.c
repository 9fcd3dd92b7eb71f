/* SPDX-License-Identifier: BSD-3-Clause
 *
 * account.c - a rank that cannot finish a step tells the others, at no cost where all can.
 *
 * Why     A rank that has not marked a parameter, or has marked one twice, cannot begin the reductions that others
 *         wait for; and if it did so with what it has, the others would train on with a wrong average.
 * How     Behind the last bucket lies one element more, zero on ranks that are fine and NaN on one that is not. NaN goes
 *         through every sum. The failing rank then begins what it has not yet, with what it has; all see, by the same
 *         bits, that the step is lost, and exchange words. A rank that has not begun the last bucket when it fails
 *         can still tell by it, as buckets begin in order. With a hook, which reduces as it pleases, and where the map
 *         of used parameters travels anyway, a count of failing ranks at its end takes the element's place.
 * Fails   What a rank does wrong after its last bucket has begun harms nobody else, and only it fails. */
#include "parallel/parallel.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

typedef struct report {
    int32_t status;
    char    words[TTI_REDUCER_WORDS_MAX];
} report;

size_t tti_tail_bytes(const tti_reducer_bucket *bucket)
{
    return tutti_dtype_size(bucket->dtype);
}

static char *tail(const tti_reducer_bucket *bucket)
{
    return bucket->data + (size_t)bucket->count * tti_tail_bytes(bucket);
}

/* All ones is a NaN in every dtype that can be averaged. */
void tti_tail_set(const tti_reducer_bucket *bucket, bool failed)
{
    memset(tail(bucket), failed ? 0xff : 0, tti_tail_bytes(bucket));
}

bool tti_tail_says(const tti_reducer_bucket *bucket)
{
    static const char zeros[16];

    return memcmp(tail(bucket), zeros, tti_tail_bytes(bucket)) != 0;
}

static tutti_status judge(const tutti_reducer *r, const report *all)
{
    int k;

    if (r->failure != TUTTI_OK)
        return tti_fail(r->failure, "%s", r->failure_words);
    for (k = 0; k < r->size; k++)
        if (all[k].status != TUTTI_OK)
            return tti_fail(TUTTI_E_REMOTE, "step %lld is lost on all ranks: rank %d failed [%s]: %.*s",
                            (long long)r->iterations, k, tutti_status_name((tutti_status)all[k].status),
                            TTI_REDUCER_WORDS_MAX, all[k].words);
    return tti_fail(TUTTI_E_REMOTE, "step %lld is lost on all ranks: one failed, and did not say how",
                    (long long)r->iterations);
}

tutti_status tti_reducer_account(tutti_reducer *r)
{
    report      *all = r->reports;
    report      *ours = &all[r->size];
    tutti_status st;

    ours->status = (int32_t)r->failure;
    snprintf(ours->words, sizeof ours->words, "%s", r->failure != TUTTI_OK ? r->failure_words : "");
    st = tutti_all_gather_into_tensor(TUTTI_SPAN((uint8_t *)all, (int64_t)sizeof *all * r->size),
                                      TUTTI_SPAN((uint8_t *)ours, (int64_t)sizeof *ours), r->group);
    return st == TUTTI_OK ? judge(r, all) : st;
}

tutti_status tutti_reducer_fail(tutti_reducer *reducer, tutti_status status, const char *why)
{
    tutti_reducer *r = reducer;
    char           words[TTI_REDUCER_WORDS_MAX];
    tutti_status   st;

    if (r == NULL || why == NULL || status == TUTTI_OK)
        return tti_fail(TUTTI_E_ARG, "reducer_fail: %s", r == NULL     ? "the reducer is NULL"
                                                         : why == NULL ? "there are no words"
                                                                       : "the status is no failure");
    snprintf(words, sizeof words, "%s", why); /* it may be the last error itself */
    st = r->expect ? TUTTI_OK : tti_reducer_prepare(r, NULL, 0);
    if (st != TUTTI_OK)
        return st;
    st = tti_fail(status, "%s", words);
    if (!r->expect)
        return st;
    tti_lock(&r->lock);
    tti_reducer_fail_locked(r, st);
    tti_unlock(&r->lock);
    tti_reducer_close(r);
    return tti_fail(status, "%s", r->failure_words);
}

size_t tti_reports_bytes(int size)
{
    return ((size_t)size + 1) * sizeof(report);
}
