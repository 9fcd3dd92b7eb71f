/* SPDX-License-Identifier: BSD-3-Clause
 *
 * async_test.c
 * Goal    asynchronous collectives of several groups, begun in another order on every rank, all end, and their
 *         results are those of blocking ones.
 * Method  the same bodies over shared memory, TCP, threads and two hosts. */
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { GROUPS = 4, SIZES = 3, ROUNDS = 5 };

static const int64_t counts[SIZES] = { 1, 5000, 300000 };

/* Group g adds up rank * (g + 1). */
static void check(const tt_ctx *t, const float *x, int64_t count, int g)
{
    const float wanted = (float)(t->size * (t->size - 1) / 2 * (g + 1));
    int64_t     i;

    for (i = 0; i < count; i++)
        if (x[i] != wanted)
            fail_msg("group %d, element %lld is %g, not %g", g, (long long)i, x[i], wanted);
}

/* Everybody begins with another group, and waits in the order of its own. Whoever had one thing done after the other
 * would wait for a member that waits for it. */
static void groups_in_any_order(tt_ctx *t)
{
    tutti_group *groups[GROUPS] = { t->group };
    tutti_work  *works[GROUPS];
    float       *x[GROUPS];
    int          round, size, i, g;
    int64_t      k;

    for (g = 1; g < GROUPS; g++)
        OK(tutti_new_group(NULL, 0, NULL, &groups[g]));
    for (g = 0; g < GROUPS; g++)
        x[g] = tt_floats(t, (size_t)counts[SIZES - 1], 0.0f);
    for (round = 0; round < ROUNDS; round++) {
        size = round % SIZES;
        for (i = 0; i < GROUPS; i++) {
            g = (i + t->rank + round) % GROUPS;
            for (k = 0; k < counts[size]; k++)
                x[g][k] = (float)(t->rank * (g + 1));
            OK(tutti_all_reduce_async(TUTTI_SPAN(x[g], counts[size]), TUTTI_SUM, groups[g], &works[g]));
        }
        for (i = 0; i < GROUPS; i++) {
            g = (i + t->rank + round) % GROUPS;
            OK(tutti_work_wait(works[g]));
            check(t, x[g], counts[size], g);
            tutti_work_free(works[g]);
        }
    }
    OK(tutti_barrier(t->group));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(groups_in_any_order, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(groups_in_any_order, .ranks = 4, .hosts = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
