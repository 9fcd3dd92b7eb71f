/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tests/ranks/far_hosts_test.c
 * Goal    A job whose hosts are 10 ms apart, over a link that loses one packet of a thousand, or one of fifty, does all kinds of
 *         collectives and messages with the right results, and nobody's time runs out.
 * Method  Two hosts joined by the relay; the loss is a generator's, with a seed, so that about as much is lost every time. Sizes
 *         of one packet, of some, and of many. That the delay is there shows in the time of a barrier. */
#include "harness/harness.h"

#include <time.h>
#include <tutti/tutti.h>

enum { MS = 1000000, DELAY_MS = 10, ROUNDS = 3, RANKS = 4 };

static const size_t counts[] = { 1, 1000, 60000 };

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void assert_all(const float *x, size_t n, float value)
{
    size_t i;

    for (i = 0; i < n; i++)
        assert_true(x[i] == value);
}

static float sum_of_ranks(void)
{
    return RANKS * (RANKS - 1) / 2;
}

static void reductions(tt_ctx *t, size_t n, int root)
{
    float *x = tt_floats(t, n, (float)t->rank);
    float *all = tt_floats(t, n * RANKS, (float)t->rank);

    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, n), TUTTI_SUM, t->group), TUTTI_OK);
    assert_all(x, n, sum_of_ranks());
    assert_int_equal(tutti_reduce_scatter_tensor(TUTTI_SPAN(x, n), TUTTI_SPAN(all, n * RANKS), TUTTI_SUM, t->group), TUTTI_OK);
    assert_all(x, n, sum_of_ranks());
    assert_int_equal(tutti_reduce(TUTTI_SPAN(all, n), root, TUTTI_SUM, t->group), TUTTI_OK);
    if (t->rank == root)
        assert_all(all, n, sum_of_ranks());
}

static void moves(tt_ctx *t, size_t n, int root)
{
    float *x = tt_floats(t, n, (float)t->rank);
    float *all = tt_floats(t, n * RANKS, -1);
    float *mine = tt_floats(t, n * RANKS, (float)t->rank);
    int    r;

    assert_int_equal(tutti_all_gather_into_tensor(TUTTI_SPAN(all, n * RANKS), TUTTI_SPAN(x, n), t->group), TUTTI_OK);
    for (r = 0; r < RANKS; r++)
        assert_all(all + (size_t)r * n, n, (float)r);
    assert_int_equal(tutti_all_to_all_single(TUTTI_SPAN(all, n * RANKS), TUTTI_SPAN(mine, n * RANKS), NULL, NULL, t->group),
                     TUTTI_OK);
    for (r = 0; r < RANKS; r++)
        assert_all(all + (size_t)r * n, n, (float)r);
    assert_int_equal(tutti_broadcast(TUTTI_SPAN(x, n), root, t->group), TUTTI_OK);
    assert_all(x, n, (float)root);
}

/* Each rank to the one that is two further on, which is on the other host, and back. */
static void messages(tt_ctx *t, size_t n)
{
    const int   to = (t->rank + 2) % RANKS;
    float      *x = tt_floats(t, n, (float)t->rank), *got = tt_floats(t, n, -1);
    tutti_work *work = NULL;

    assert_int_equal(tutti_isend(TUTTI_SPAN(x, n), to, 7, t->group, &work), TUTTI_OK);
    assert_int_equal(tutti_recv(TUTTI_SPAN(got, n), to, 7, t->group, NULL), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
    assert_all(got, n, (float)to);
}

static void far_away(tt_ctx *t)
{
    int64_t start, least = INT64_MAX;
    size_t  i;
    int     round;

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            reductions(t, counts[i], (round + 1) % RANKS);
            moves(t, counts[i], round % RANKS);
            messages(t, counts[i]);
        }
        start = now_ns();
        assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
        assert_int_equal(tutti_barrier(t->group), TUTTI_OK); /* the first may have begun long ago on the other host */
        least = now_ns() - start < least ? now_ns() - start : least;
    }
    assert_true(least >= DELAY_MS * (int64_t)MS);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(far_away, .ranks = RANKS, .hosts = 2, .transports = "shm,tcp", .limit_ms = 90000,
                .link = { .delay_ns = DELAY_MS * (int64_t)MS, .loss = 0.001, .seed = 11 }),
        TT_TEST(far_away, .ranks = RANKS, .hosts = 2, .transports = "shm", .limit_ms = 120000,
                .link = { .delay_ns = DELAY_MS * (int64_t)MS, .jitter_ns = 2 * MS, .loss = 0.02, .seed = 12 }),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
