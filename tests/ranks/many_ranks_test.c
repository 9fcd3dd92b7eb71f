/* SPDX-License-Identifier: BSD-3-Clause
 *
 * many_ranks_test.c
 * Goal    collectives of more ranks than most tables have places for, far more than cores: every way that members of a
 *         host hand data to each other.
 * Method  66 real processes; every value can be computed, and what nobody writes to stays as it was. */
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { RANKS = 66, LARGE = 20000, PART_MAX = 400, GUARD = 77 };

static int32_t value_of(int rank, int64_t i)
{
    return (int32_t)(rank * 1009 + i % 4099);
}

static int32_t *values(tt_ctx *t, int64_t count)
{
    int32_t *x = calloc((size_t)count + 1, sizeof *x);
    int64_t  i;

    assert_non_null(x);
    for (i = 0; i < count; i++)
        x[i] = value_of(t->rank, i);
    x[count] = GUARD;
    return x;
}

static void reduce_all(tt_ctx *t, int64_t count)
{
    int32_t *x = values(t, count);
    int64_t  i;

    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, NULL), TUTTI_OK);
    for (i = 0; i < count; i++)
        assert_int_equal(x[i], RANKS * (int32_t)(i % 4099) + 1009 * (RANKS * (RANKS - 1) / 2));
    assert_int_equal(x[count], GUARD);
    free(x);
}

static void gather_all(tt_ctx *t, int64_t count)
{
    int32_t *x = values(t, count), *all = values(t, RANKS * count);
    int64_t  i;

    assert_int_equal(tutti_all_gather_into_tensor(TUTTI_SPAN(all, RANKS * count), TUTTI_SPAN(x, count), NULL), TUTTI_OK);
    for (i = 0; i < RANKS * count; i++)
        assert_int_equal(all[i], value_of((int)(i / count), i % count));
    assert_int_equal(all[RANKS * count], GUARD);
    free(x);
    free(all);
}

static void scatter_sums(tt_ctx *t, int64_t count)
{
    int32_t *x = values(t, RANKS * count), *sum = values(t, count);
    int64_t  i;

    assert_int_equal(tutti_reduce_scatter_tensor(TUTTI_SPAN(sum, count), TUTTI_SPAN(x, RANKS * count), TUTTI_SUM, NULL),
                     TUTTI_OK);
    for (i = 0; i < count; i++)
        assert_int_equal(sum[i], RANKS * (int32_t)((t->rank * count + i) % 4099) + 1009 * (RANKS * (RANKS - 1) / 2));
    assert_int_equal(sum[count], GUARD);
    free(x);
    free(sum);
}

/* Elements that rank gives to peer. */
static int64_t part_of(int rank, int peer, int64_t count, bool even)
{
    return even ? count : (int64_t)(rank * 7 + peer * 13) % (count + 1);
}

static void exchange(tt_ctx *t, int64_t count, bool even)
{
    static int32_t from[RANKS][PART_MAX], to[RANKS][PART_MAX];
    tutti_span     ins[RANKS], outs[RANKS];
    int64_t        i;
    int            r;

    memset(to, 0x55, sizeof to);
    for (r = 0; r < RANKS; r++) {
        ins[r] = tutti_span_of(from[r], part_of(t->rank, r, count, even), TUTTI_I32);
        outs[r] = tutti_span_of(to[r], part_of(r, t->rank, count, even), TUTTI_I32);
        for (i = 0; i < ins[r].count; i++)
            from[r][i] = value_of(t->rank, i + r);
    }
    assert_int_equal(tutti_all_to_all(outs, RANKS, ins, RANKS, NULL), TUTTI_OK);
    for (r = 0; r < RANKS; r++)
        for (i = 0; i < PART_MAX; i++)
            assert_int_equal(to[r][i], i < outs[r].count ? value_of(r, i + t->rank) : 0x55555555);
}

static void every_way(tt_ctx *t)
{
    static const int64_t counts[] = { 1, 14, 100, PART_MAX };
    int32_t              x = t->rank;
    size_t               i;

    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        reduce_all(t, counts[i]);
        gather_all(t, counts[i]);
        scatter_sums(t, counts[i]);
        exchange(t, counts[i], true);
        exchange(t, counts[i], false);
        assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    }
    reduce_all(t, LARGE);
    for (i = 0; i < 20; i++) {
        x = t->rank == (int)i * 3 ? (int)i : -1; /* roots go on, the others follow */
        assert_int_equal(tutti_broadcast(TUTTI_SPAN(&x, 1), (int)i * 3, NULL), TUTTI_OK);
        assert_int_equal(x, (int)i);
    }
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_way, .ranks = RANKS, .transports = "shm,tcp", .limit_ms = 120000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
