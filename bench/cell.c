/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cell.c - names and sizes of cells. */
#include "cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const bench_op_names[BENCH_OPS] = {
    "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all",
    "gather", "scatter", "barrier", "send_recv", "exchange16", "exchange64", "line", "yield", "empty",
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

    if (sscanf(line, "%23s %7s %" SCNd64 " %15s %15s %7s %d %" SCNu64 " %15s", op, dtype, &c.bytes, form, mode,
               buffers, &c.budget_ms, &c.seed, memory) < 8)
        return false;
    i_op = bench_find_name(bench_op_names, BENCH_OPS, op);
    i_dtype = bench_find_name(bench_dtype_names, BENCH_DTYPES, dtype);
    i_form = bench_find_name(bench_form_names, BENCH_FORMS, form);
    i_memory = bench_find_name(bench_memory_names, BENCH_MEMORIES, memory);
    if (i_op < 0 || i_dtype < 0 || i_form < 0 || i_memory < 0 || c.bytes < 0 || c.budget_ms < 1)
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

static bool has_parts(bench_op op)
{
    return op == BENCH_ALL_GATHER || op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_TO_ALL || op == BENCH_GATHER ||
           op == BENCH_SCATTER;
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

size_t bench_in_bytes(const bench_cell *cell, int ranks)
{
    const size_t whole = (size_t)bench_tensor_count(cell, ranks) * bench_dtype_size(cell->dtype);

    return cell->op == BENCH_ALL_GATHER || cell->op == BENCH_GATHER ? whole / (size_t)ranks : whole;
}

size_t bench_out_bytes(const bench_cell *cell, int ranks)
{
    const size_t whole = (size_t)bench_tensor_count(cell, ranks) * bench_dtype_size(cell->dtype);

    if (!has_parts(cell->op) && bench_messages(cell->op) == 0)
        return 0;
    return cell->op == BENCH_REDUCE_SCATTER || cell->op == BENCH_SCATTER ? whole / (size_t)ranks : whole;
}
