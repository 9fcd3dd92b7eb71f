/* SPDX-License-Identifier: BSD-3-Clause
 *
 * values.c - inputs and expected results. */
#include "values.h"

#include <string.h>

/* What an index adds to a value, below 16. */
static unsigned of_index(int64_t i)
{
    return (unsigned)((uint64_t)i ^ ((uint64_t)i >> 7)) & 15;
}

static unsigned value(const bench_cell *cell, int rank, int64_t i)
{
    return (of_index(i) + 5 * (unsigned)rank + (unsigned)cell->seed) & 15;
}

static void put(void *data, int64_t i, bench_dtype dtype, unsigned v)
{
    const float f = (float)v;
    uint32_t bits;

    switch (dtype) {
    case BENCH_F64: ((double *)data)[i] = (double)v; break;
    case BENCH_BF16: /* the upper half: integers up to 256 need no rounding */
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        break;
    default: ((float *)data)[i] = f; break;
    }
}

static bool is(const void *data, int64_t i, bench_dtype dtype, unsigned v)
{
    const size_t size = bench_dtype_size(dtype);
    uint64_t wanted = 0;

    put(&wanted, 0, dtype, v);
    return memcmp((const char *)data + (size_t)i * size, &wanted, size) == 0;
}

void bench_fill(void *data, int64_t count, const bench_cell *cell, int rank)
{
    int64_t i;

    for (i = 0; i < count; i++)
        put(data, i, cell->dtype, value(cell, rank, i));
}

/* The sum of all ranks' values, by what the index adds. */
static void sum_all(const bench_cell *cell, int ranks, unsigned sums[16])
{
    int64_t i;
    int q;

    for (i = 0; i < 16; i++)
        for (sums[i] = 0, q = 0; q < ranks; q++)
            sums[i] += value(cell, q, i);
}

/* What stands at index i of this rank's result, where that is not put together from parts of others. */
static unsigned expected(const bench_cell *cell, const unsigned sums[16], int rank, int ranks, int root, int64_t begin, int64_t i)
{
    if (bench_messages(cell->op) > 0)
        return value(cell, (rank + ranks - 1) % ranks, i);
    switch (cell->op) {
    case BENCH_ALL_REDUCE:
    case BENCH_REDUCE: return sums[of_index(i)];
    case BENCH_REDUCE_SCATTER: return sums[of_index(begin + i)];
    case BENCH_BROADCAST: return value(cell, root, i);
    case BENCH_SCATTER:
    case BENCH_SCATTER_V: return value(cell, root, begin + i);
    default: return value(cell, rank - rank % 2, i); /* send_recv: the even rank's */
    }
}

static bool is_all_to_all(bench_op op)
{
    return op == BENCH_ALL_TO_ALL || op == BENCH_ALL_TO_ALL_V;
}

static bool is_gather(bench_op op)
{
    return op == BENCH_GATHER || op == BENCH_GATHER_V;
}

/* Of a result that has a part of each rank. */
static int64_t first_wrong_of_parts(const void *result, const bench_cell *cell, int rank, int ranks)
{
    int64_t i;
    int q;

    for (q = 0; q < ranks; q++) {
        const int64_t begin = bench_part_begin(cell, rank, ranks, q), end = bench_part_begin(cell, rank, ranks, q + 1);
        const int64_t there = is_all_to_all(cell->op) ? bench_part_begin(cell, q, ranks, rank) : 0; /* in what q gave */

        for (i = begin; i < end; i++)
            if (!is(result, i, cell->dtype, value(cell, q, there + i - begin)))
                return i;
    }
    return -1;
}

int64_t bench_first_wrong(const void *result, const bench_cell *cell, int rank, int ranks, int root)
{
    const int64_t begin = bench_part_begin(cell, rank, ranks, rank), part = bench_part_begin(cell, rank, ranks, rank + 1) - begin;
    const bool one_part = cell->op == BENCH_REDUCE_SCATTER || cell->op == BENCH_SCATTER || cell->op == BENCH_SCATTER_V;
    const int64_t count = one_part ? part : bench_tensor_count(cell, ranks);
    unsigned sums[16];
    int64_t i;

    if ((cell->op == BENCH_REDUCE || is_gather(cell->op)) && rank != root)
        return -1;
    if (is_gather(cell->op) || is_all_to_all(cell->op) || cell->op == BENCH_ALL_GATHER || cell->op == BENCH_ALL_GATHER_V)
        return first_wrong_of_parts(result, cell, rank, ranks);
    sum_all(cell, ranks, sums);
    for (i = 0; i < count; i++)
        if (!is(result, i, cell->dtype, expected(cell, sums, rank, ranks, root, begin, i)))
            return i;
    return -1;
}
