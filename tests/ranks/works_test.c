/* SPDX-License-Identifier: BSD-3-Clause
 *
 * works_test.c
 * Goal    batches of messages end in whatever order ranks list them; several works are waited for
 *         together; callbacks hear of messages and collectives that nobody waits for, and waiting for
 *         messages sleeps.
 * Method  the same bodies over shared memory, TCP, threads and two hosts. */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { RANKS_MAX = 4, OPS_MAX = 2 * RANKS_MAX };

static void shuffle(tutti_p2p_op *ops, int n, unsigned seed)
{
    int i;

    for (i = n - 1; i > 0; i--) {
        int          j = (int)((seed = seed * 1103515245u + 12345u) >> 16) % (i + 1);
        tutti_p2p_op kept = ops[i];

        ops[i] = ops[j];
        ops[j] = kept;
    }
}

/* Everybody to everybody, large enough that no message fits into a ring, in another order each time. */
static void batches_in_any_order(tt_ctx *t)
{
    const int64_t n = 1 << 18;
    float        *out = tt_floats(t, (size_t)n, (float)t->rank);
    float        *in[RANKS_MAX] = { NULL };
    tutti_p2p_op  ops[OPS_MAX];
    tutti_work   *works[OPS_MAX];
    int           round, peer, i, n_ops;

    for (peer = 0; peer < t->size; peer++)
        in[peer] = tt_floats(t, (size_t)n, -1.0f);
    for (round = 0; round < 4; round++) {
        n_ops = 0;
        for (peer = 0; peer < t->size; peer++) {
            if (peer == t->rank)
                continue;
            ops[n_ops++] = (tutti_p2p_op){ true, TUTTI_SPAN(out, n), peer, round };
            ops[n_ops++] = (tutti_p2p_op){ false, TUTTI_SPAN(in[peer], n), peer, round };
        }
        shuffle(ops, n_ops, (unsigned)(t->rank * 31 + round));
        OK(tutti_batch_isend_irecv(ops, n_ops, t->group, works));
        OK(tutti_wait_all(works, n_ops, 0));
        for (i = 0; i < n_ops; i++) {
            assert_int_equal(tutti_work_source_rank(works[i]), ops[i].is_send ? -1 : ops[i].peer);
            tutti_work_free(works[i]);
        }
        for (peer = 0; peer < t->size; peer++)
            for (i = 0; peer != t->rank && i < n; i += 4099)
                assert_true(in[peer][i] == (float)peer);
    }
    OK(tutti_barrier(t->group));
}

enum { LONG_BATCH = 100, LONGEST = 40000 };

/* Round the ranks, more than are posted at a time, of sizes that go by all ways; with one tag, so that their order tells
 * which is which. Some list what they send first, some what they receive. */
static void long_batches_of_all_sizes(tt_ctx *t)
{
    static const int64_t counts[] = { 1, 2048, 0, 14, LONGEST, 256 };
    const int            n_counts = sizeof counts / sizeof counts[0];
    const int            next = (t->rank + 1) % t->size, last = (t->rank + t->size - 1) % t->size;
    float               *out = tt_floats(t, (size_t)LONG_BATCH * LONGEST, (float)t->rank);
    float               *in = tt_floats(t, (size_t)LONG_BATCH * LONGEST, -1.0f);
    tutti_p2p_op         ops[2 * LONG_BATCH];
    tutti_work          *works[2 * LONG_BATCH];
    int                  i, k;

    for (i = 0; i < LONG_BATCH; i++) {
        const int64_t n = counts[i % n_counts];
        const int     sends_at = t->rank % 2 == 0 ? i : LONG_BATCH + i, recvs_at = LONG_BATCH + 2 * i - sends_at;

        for (k = 0; k < n; k += 7)
            out[(size_t)i * LONGEST + (size_t)k] = (float)(1000 * t->rank + i + k);
        ops[sends_at] = (tutti_p2p_op){ true, TUTTI_SPAN(out + (size_t)i * LONGEST, n), next, 5 };
        ops[recvs_at] = (tutti_p2p_op){ false, TUTTI_SPAN(in + (size_t)i * LONGEST, n), last, 5 };
    }
    OK(tutti_batch_isend_irecv(ops, 2 * LONG_BATCH, t->group, works));
    OK(tutti_wait_all(works, 2 * LONG_BATCH, 0));
    for (i = 0; i < 2 * LONG_BATCH; i++) {
        assert_int_equal(tutti_work_source_rank(works[i]), ops[i].is_send ? -1 : last);
        tutti_work_free(works[i]);
    }
    for (i = 0; i < LONG_BATCH; i++)
        for (k = 0; k < counts[i % n_counts]; k += 7)
            assert_true(in[(size_t)i * LONGEST + (size_t)k] == (float)(1000 * last + i + k));
    OK(tutti_barrier(t->group));
}

/* Rank 0 takes what comes, one after the other, a collective among them. */
static void whichever_is_first(tt_ctx *t)
{
    float       x[RANKS_MAX] = { 0 }, sum = 1.0f;
    tutti_work *works[RANKS_MAX] = { NULL };
    bool        seen[RANKS_MAX] = { false };
    int         i, index = -5;

    if (t->rank != 0) {
        x[0] = (float)t->rank;
        OK(tutti_send(TUTTI_SPAN(&x[0], 1), 0, 0, t->group));
        OK(tutti_all_reduce(TUTTI_SPAN(&sum, 1), TUTTI_SUM, t->group));
        return;
    }
    OK(tutti_all_reduce_async(TUTTI_SPAN(&sum, 1), TUTTI_SUM, t->group, &works[0]));
    for (i = 1; i < t->size; i++)
        OK(tutti_irecv(TUTTI_SPAN(&x[i], 1), i, 0, t->group, &works[i]));
    for (i = 0; i < t->size; i++) {
        OK(tutti_wait_any(works, t->size, 0, &index));
        assert_in_range(index, 0, t->size - 1);
        assert_false(seen[index]);
        OK(tutti_work_status(works[index]));
        assert_true(index == 0 ? sum == (float)t->size : x[index] == (float)index);
        seen[index] = true;
        tutti_work_free(works[index]);
        works[index] = NULL;
    }
    OK(tutti_wait_any(works, t->size, 0, &index));
    assert_int_equal(index, -1);
}

static void count_good(tutti_work *work, void *ctx)
{
    if (tutti_work_status(work) == TUTTI_OK)
        atomic_fetch_add((_Atomic int *)ctx, 1);
}

/* Nobody waits for the works, nobody even holds them: they are told of all the same. */
static void callbacks_come_without_a_wait(tt_ctx *t)
{
    const int    right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;
    const int    n = 1 << 18;
    float       *out = tt_floats(t, (size_t)n, (float)t->rank), *in = tt_floats(t, (size_t)n, -1.0f);
    float       *sum = tt_floats(t, (size_t)n, 1.0f);
    tutti_work  *works[3];
    _Atomic int *good = calloc(1, sizeof *good);
    int          i;

    assert_non_null(good);
    OK(tutti_irecv(TUTTI_SPAN(in, n), left, 0, t->group, &works[0]));
    OK(tutti_isend(TUTTI_SPAN(out, n), right, 0, t->group, &works[1]));
    OK(tutti_all_reduce_async(TUTTI_SPAN(sum, n), TUTTI_SUM, t->group, &works[2]));
    for (i = 0; i < 3; i++) {
        OK(tutti_work_then(works[i], count_good, good));
        tutti_work_free(works[i]);
    }
    while (atomic_load(good) < 3)
        sched_yield(); /* the harness limits it */
    assert_true(in[n - 1] == (float)left);
    assert_true(sum[n - 1] == (float)t->size);
    free(good);
    OK(tutti_barrier(t->group));
}

/* How often threads of this process have gone to sleep. */
static long sleeps(void)
{
    struct rusage used;

    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return used.ru_nvcsw;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Nothing happens for QUIET_MS, while rank 1 waits for any of two messages and one has a callback: looking
 * every millisecond would be several hundred sleeps. What takes longer, as there is no core, has more of them. */
static void waiting_sleeps(tt_ctx *t)
{
    enum { QUIET_MS = 400, SLEEPS_MAX = 100 };
    float        x[2] = { 1.0f, 2.0f };
    tutti_work  *works[2] = { NULL, NULL };
    _Atomic int *good = calloc(1, sizeof *good);
    int          index = -5;
    long         before;
    int64_t      began_ms, more_ms;

    assert_non_null(good);
    if (t->rank == 0) {
        tt_await(t, 0, 1);
        OK(tutti_send(TUTTI_SPAN(&x[0], 1), 1, 0, t->group));
        tt_await(t, 1, 1);
        OK(tutti_send(TUTTI_SPAN(&x[1], 1), 1, 1, t->group));
    } else {
        OK(tutti_irecv(TUTTI_SPAN(&x[0], 1), 0, 0, t->group, &works[0]));
        OK(tutti_irecv(TUTTI_SPAN(&x[1], 1), 0, 1, t->group, &works[1]));
        before = sleeps();
        began_ms = now_ms();
        assert_int_equal(tutti_wait_any(works, 2, QUIET_MS, &index), TUTTI_E_TIMEOUT);
        OK(tutti_work_then(works[1], count_good, good));
        assert_int_equal(poll(NULL, 0, QUIET_MS), 0);
        more_ms = now_ms() - began_ms - 2 * QUIET_MS;
        assert_true(sleeps() - before < SLEEPS_MAX + more_ms * SLEEPS_MAX / (2 * QUIET_MS));
        tt_post(t, 0);
        OK(tutti_wait_any(works, 2, 0, &index));
        assert_int_equal(index, 0);
        tt_post(t, 1);
        while (atomic_load(good) < 1)
            sched_yield(); /* the harness limits it */
        assert_true(x[0] == 1.0f && x[1] == 2.0f);
        tutti_work_free(works[0]);
        tutti_work_free(works[1]);
    }
    OK(tutti_barrier(t->group));
    free(good);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(batches_in_any_order, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(batches_in_any_order, .ranks = 4, .hosts = 2),
        TT_TEST(long_batches_of_all_sizes, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(long_batches_of_all_sizes, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(long_batches_of_all_sizes, .ranks = 4, .hosts = 2),
        TT_TEST(whichever_is_first, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(callbacks_come_without_a_wait, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(callbacks_come_without_a_wait, .ranks = 4, .hosts = 2),
        TT_TEST(waiting_sleeps, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(waiting_sleeps, .ranks = 2, .hosts = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
