/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cell.c - names and sizes of cells. */
#include "cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const bench_op_names[BENCH_OPS] = {
    "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all",
    "gather", "scatter", "all_gather_v", "gather_v", "scatter_v", "all_to_all_v", "barrier", "send_recv", "exchange16", "exchange64", "line", "yield", "empty",
};
const char *const bench_dtype_names[BENCH_DTYPES] = { "f32", "f64", "bf16" };
const char *const bench_form_names[BENCH_FORMS] = { "plain", "pass", "pass-nt", "staged", "staged-nt",
                                                  "bare",  "bare-pass" };
const char *const bench_memory_names[BENCH_MEMORIES] = { "ordinary", "registered" };

int bench_find_name(const char *const *names, int n, const char *name)
{
    int i;

    for (i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

size_t bench_dtype_size(bench_dtype dtype)
{
    return dtype == BENCH_BF16 ? 2 : dtype == BENCH_F64 ? 8 : 4;
}

bool bench_cell_read(const char *line, bench_cell *cell_out)
{
    char op[24], dtype[8], form[16], mode[16], buffers[8], memory[16] = "ordinary";
    bench_cell c = { .op = BENCH_EMPTY };
    int i_op, i_dtype, i_form, i_memory;

    if (sscanf(line, "%23s %7s %" SCNd64 " %15s %15s %7s %d %" SCNu64 " %15s %d", op, dtype, &c.bytes, form, mode,
               buffers, &c.budget_ms, &c.seed, memory, &c.products) < 8)
        return false;
    i_op = bench_find_name(bench_op_names, BENCH_OPS, op);
    i_dtype = bench_find_name(bench_dtype_names, BENCH_DTYPES, dtype);
    i_form = bench_find_name(bench_form_names, BENCH_FORMS, form);
    i_memory = bench_find_name(bench_memory_names, BENCH_MEMORIES, memory);
    if (i_op < 0 || i_dtype < 0 || i_form < 0 || i_memory < 0 || c.bytes < 0 || c.budget_ms < 1 || c.products < 0)
        return false;
    c.op = (bench_op)i_op;
    c.dtype = (bench_dtype)i_dtype;
    c.form = (bench_form)i_form;
    c.memory = (bench_memory)i_memory;
    c.async = strcmp(mode, "async") == 0;
    c.cold = strcmp(buffers, "cold") == 0;
    *cell_out = c;
    return true;
}

/* One for each rank, as long as all others. */
static bool has_parts(bench_op op)
{
    return op == BENCH_ALL_GATHER || op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_TO_ALL || op == BENCH_GATHER ||
           op == BENCH_SCATTER;
}

/* Whose sizes differ by rank; they may be nothing. */
static bool is_uneven(bench_op op)
{
    return op == BENCH_ALL_GATHER_V || op == BENCH_GATHER_V || op == BENCH_SCATTER_V || op == BENCH_ALL_TO_ALL_V;
}

int bench_messages(bench_op op)
{
    return op == BENCH_EXCHANGE_16 ? 8 : op == BENCH_EXCHANGE_64 ? 32 : 0;
}

static bool has_data(bench_op op)
{
    return op != BENCH_BARRIER && op < BENCH_LINE;
}

int64_t bench_part_count(const bench_cell *cell, int ranks)
{
    const int64_t elements = cell->bytes / (int64_t)bench_dtype_size(cell->dtype);

    if (bench_messages(cell->op) > 0)
        return elements > 0 ? elements : 1;
    return elements >= ranks ? elements / ranks : 1;
}

int64_t bench_tensor_count(const bench_cell *cell, int ranks)
{
    const int64_t elements = cell->bytes / (int64_t)bench_dtype_size(cell->dtype);

    if (!has_data(cell->op))
        return 0;
    if (bench_messages(cell->op) > 0)
        return bench_part_count(cell, ranks) * bench_messages(cell->op);
    if (has_parts(cell->op))
        return bench_part_count(cell, ranks) * ranks;
    return elements > 0 ? elements : 1;
}

/* Where part i begins, if it is longer than the one before by the first one's length. */
static int64_t edge(int64_t elements, int ranks, int i)
{
    return elements * i * (i + 1) / ((int64_t)ranks * (ranks + 1));
}

int64_t bench_part_begin(const bench_cell *cell, int rank, int ranks, int i)
{
    const int64_t whole = bench_tensor_count(cell, ranks);
    int64_t begin = 0;
    int q;

    if (!is_uneven(cell->op))
        return bench_part_count(cell, ranks) * i;
    if (cell->op != BENCH_ALL_TO_ALL_V)
        return edge(whole, ranks, i);
    for (q = 0; q < i; q++)
        begin += edge(whole, ranks, (rank + q) % ranks + 1) - edge(whole, ranks, (rank + q) % ranks);
    return begin;
}

static size_t part_bytes(const bench_cell *cell, int rank, int ranks)
{
    const int64_t count = bench_part_begin(cell, rank, ranks, rank + 1) - bench_part_begin(cell, rank, ranks, rank);

    return (size_t)count * bench_dtype_size(cell->dtype);
}

static size_t tensor_bytes(const bench_cell *cell, int ranks)
{
    return (size_t)bench_tensor_count(cell, ranks) * bench_dtype_size(cell->dtype);
}

size_t bench_in_bytes(const bench_cell *cell, int rank, int ranks)
{
    switch (cell->op) {
    case BENCH_ALL_GATHER:
    case BENCH_GATHER:
    case BENCH_ALL_GATHER_V:
    case BENCH_GATHER_V: return part_bytes(cell, rank, ranks);
    default: return tensor_bytes(cell, ranks);
    }
}

size_t bench_out_bytes(const bench_cell *cell, int rank, int ranks)
{
    switch (cell->op) {
    case BENCH_REDUCE_SCATTER:
    case BENCH_SCATTER:
    case BENCH_SCATTER_V: return part_bytes(cell, rank, ranks);
    default: return has_parts(cell->op) || is_uneven(cell->op) || bench_messages(cell->op) > 0 ? tensor_bytes(cell, ranks) : 0;
    }
}
