/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pinned_test.c
 * Goal    ranks that are pinned and share cores, as MPI launchers place them, wait for each other by giving the core
 *         away, which helps some and not others. Whatever they wait for comes, and is right.
 * Method  four ranks on two cores join a world after they were pinned; messages of sizes that go each way there is, with
 *         receivers and senders that come first by turns, and roots that go round. */
#include <sched.h>
#include <stdlib.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { TIMEOUT_MS = 60000, LIMIT_MS = 120000 /* others may have a part of these cores */, CALLS = 300, COUNT_MAX = 100000 };

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* To the first or second core of those that this process may use. */
static void pin(int rank)
{
    cpu_set_t all, one;
    int       left, cpu;

    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    left = CPU_COUNT(&all) > 1 ? rank % 2 : 0;
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && left-- == 0)
            break;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static tutti_group *join_pinned(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;

    pin(t->rank);
    opts.init_method = t->init_method;
    opts.group_name = "pinned";
    opts.timeout_ms = TIMEOUT_MS;
    OK(tutti_create_process_group(&opts, &world));
    return world;
}

/* There and back, so that each is late by turns: to the rank of the other core, then to that of the same. */
static void messages(tt_ctx *t)
{
    static const int64_t counts[] = { 1, 100, 2048, 12000, COUNT_MAX };
    tutti_group         *world = join_pinned(t);
    float               *x = tt_floats(t, COUNT_MAX, -1.0f);
    int                  i, way;

    for (i = 0; i < CALLS; i++) {
        const int64_t    n = counts[(size_t)i % (sizeof counts / sizeof counts[0])];
        const int        peer = t->rank ^ (i % 2 == 0 ? 1 : 2);
        const tutti_span span = TUTTI_SPAN(x, n);

        for (way = 0; way < 2; way++) {
            if ((t->rank < peer) == (way == 0)) {
                x[0] = x[n - 1] = (float)(i + way);
                OK(tutti_send(span, peer, way, world));
            } else {
                x[0] = x[n - 1] = -1.0f;
                OK(tutti_recv(span, peer, way, world, NULL));
                assert_true(x[0] == (float)(i + way) && x[n - 1] == (float)(i + way));
            }
        }
    }
    OK(tutti_destroy_process_group(world));
}

static void roots_go_round(tt_ctx *t)
{
    tutti_group *world = join_pinned(t);
    int32_t      x, sum;
    int          i;

    for (i = 0; i < 10 * CALLS; i++) {
        x = t->rank == i % t->size ? i : -1;
        OK(tutti_broadcast(TUTTI_SPAN(&x, 1), i % t->size, world));
        assert_int_equal(x, i);
    }
    for (i = 0; i < CALLS; i++) {
        sum = i + t->rank;
        OK(tutti_all_reduce(TUTTI_SPAN(&sum, 1), TUTTI_SUM, world));
        assert_int_equal(sum, t->size * i + t->size * (t->size - 1) / 2);
    }
    OK(tutti_destroy_process_group(world));
}

/* Blocks that are read from their owners: some are ready long before others. */
static void blocks_of_any_size(tt_ctx *t)
{
    tutti_group *world = join_pinned(t);
    float       *in = tt_floats(t, 4 * COUNT_MAX, (float)t->rank), *out = tt_floats(t, 4 * COUNT_MAX, -1.0f);
    int64_t      n;
    int          i, r;

    for (i = 0; i < CALLS / 10; i++) {
        n = i % 3 == 0 ? 16 : i % 3 == 1 ? 12000 : COUNT_MAX;
        OK(tutti_all_to_all_single(TUTTI_SPAN(out, n * t->size), TUTTI_SPAN(in, n * t->size), NULL, NULL, world));
        for (r = 0; r < t->size; r++) {
            assert_true(out[r * n] == (float)r && out[r * n + n - 1] == (float)r);
            out[r * n] = out[r * n + n - 1] = -1.0f;
        }
    }
    OK(tutti_destroy_process_group(world));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(messages, .ranks = 4, .transports = "shm", .limit_ms = LIMIT_MS),
        TT_TEST(roots_go_round, .ranks = 4, .transports = "shm", .limit_ms = LIMIT_MS),
        TT_TEST(blocks_of_any_size, .ranks = 4, .transports = "shm", .limit_ms = LIMIT_MS),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
