/* SPDX-License-Identifier: BSD-3-Clause */
#include "cells.h"

#include <stdio.h>
#include <string.h>

const int64_t tt_sizes[TT_SIZES] = { 0, 1, 3, 1000, 65537, 1048577 };
const int     tt_worlds[TT_WORLDS] = { 1, 2, 3, 4, 5, 8, 5 };
const int     tt_members[TT_WORLDS] = { 1, 2, 3, 4, 5, 8, TT_GROUP_MEMBERS };
const int     tt_group_ranks[TT_GROUP_MEMBERS] = { 1, 2, 4 };

static const char *const size_names[] = { "0", "1", "3", "1000", "65537", "1048577" };
static const char *const world_names[] = { "1", "2", "3", "4", "5", "8", "3of5" };
static const char *const transport_names[] = { "shm", "tcp", "hosts" };
static const char *const mode_names[] = { "blocking", "async", "threads" };
static const char *const axis_names[] = { "op", "red", "dtype", "size", "world", "transport", "mode" };

int tt_axis_size(tt_axis axis)
{
    const int sizes[TT_AXES] = { tt_n_ops, TT_RED_NONE + 1, TUTTI_DTYPE_COUNT, TT_SIZES,
                                 TT_WORLDS, TT_TRANSPORTS, TT_MODES };

    return sizes[axis];
}

const char *tt_axis_name(tt_axis axis)
{
    return axis_names[axis];
}

const char *tt_value_name(tt_axis axis, int value)
{
    switch (axis) {
    case TT_AXIS_OP: return tt_ops[value].name;
    case TT_AXIS_RED: return value == TT_RED_NONE ? "none" : tutti_op_name((tutti_op_kind)value);
    case TT_AXIS_DTYPE: return tutti_dtype_name((tutti_dtype)value);
    case TT_AXIS_SIZE: return size_names[value];
    case TT_AXIS_WORLD: return world_names[value];
    case TT_AXIS_TRANSPORT: return transport_names[value];
    default: return mode_names[value];
    }
}

/* ---- selections --------------------------------------------------------------------------------- */

tt_selection tt_select_all(void)
{
    tt_selection selection;
    int          axis;

    for (axis = 0; axis < TT_AXES; axis++)
        selection.on[axis] = ~(uint64_t)0;
    return selection;
}

static int value_named(tt_axis axis, const char *name, size_t length)
{
    int value;

    for (value = 0; value < tt_axis_size(axis); value++)
        if (strlen(tt_value_name(axis, value)) == length && memcmp(tt_value_name(axis, value), name, length) == 0)
            return value;
    return -1;
}

bool tt_select(tt_selection *selection, tt_axis axis, const char *names, const char **bad_out)
{
    uint64_t on = 0;

    while (*names != '\0') {
        const size_t length = strcspn(names, ",");
        const int    value = value_named(axis, names, length);

        if (value < 0) {
            if (bad_out != NULL)
                *bad_out = names;
            return false;
        }
        on |= (uint64_t)1 << value;
        names += length + (names[length] == ',');
    }
    selection->on[axis] = on;
    return true;
}

bool tt_selected(const tt_selection *selection, const tt_cell *cell)
{
    int axis;

    for (axis = 0; axis < TT_AXES; axis++)
        if ((selection->on[axis] >> cell->at[axis] & 1) == 0)
            return false;
    return true;
}

/* ---- which cells there are ---------------------------------------------------------------------- */

bool tt_cell_next(tt_cell *cell)
{
    int axis;

    for (axis = 0; axis < TT_AXES; axis++) {
        if (++cell->at[axis] < tt_axis_size((tt_axis)axis))
            return true;
        cell->at[axis] = 0;
    }
    return false;
}

const char *tt_cell_rule(const tt_cell *cell, int *rule_out)
{
    const tt_op_row *row = &tt_ops[cell->at[TT_AXIS_OP]];
    const int        red = cell->at[TT_AXIS_RED];
    const int        dtype = cell->at[TT_AXIS_DTYPE];
    const int        world = tt_worlds[cell->at[TT_AXIS_WORLD]];
    const int        mode = cell->at[TT_AXIS_MODE];
    const bool       hosts = cell->at[TT_AXIS_TRANSPORT] == TT_HOSTS;
    const tutti_op   op = { .kind = (tutti_op_kind)red };
    const bool broken[TT_RULES] = {
        ((row->traits & (TT_REDUCES | TT_SUMS)) != 0) == (red == TT_RED_NONE),
        red != TT_RED_NONE && tutti_op_check(op, (tutti_dtype)dtype) != TUTTI_OK,
        (row->traits & TT_NO_DATA) != 0 && (dtype != 0 || cell->at[TT_AXIS_SIZE] != 0),
        (row->traits & TT_PEERS) != 0 && world < 2,
        hosts && world < 2,
        hosts && mode == TT_THREADS,
        (mode == TT_BLOCKING && row->block == NULL) || (mode == TT_ASYNC && row->start == NULL),
        (row->traits & TT_IN_GROUP) != 0 && cell->at[TT_AXIS_WORLD] != TT_WORLD_GROUP,
        (int)tt_row_dtype(row, (tutti_dtype)dtype) != dtype ||
            (red != TT_RED_NONE && (int)tt_row_red(row, (tutti_op_kind)red) != red),
    };
    static const char *const texts[TT_RULES] = {
        "a reduction belongs to operations that reduce, and to no other",
        "the reduction is not defined for the dtype",
        "the operation has no elements: one dtype and one size stand for all",
        "a message needs two ranks",
        "two hosts need two ranks",
        "threads of one process are on one host",
        "the operation has no such form",
        "ranks of a group are said where they are not those of the world",
        "objects are bytes, and sparse tensors are summed",
    };
    int rule;

    for (rule = 0; rule < TT_RULES; rule++)
        if (broken[rule]) {
            *rule_out = rule;
            return texts[rule];
        }
    return NULL;
}

int64_t tt_cell_count(const tt_cell *cell)
{
    const int64_t size = tt_sizes[cell->at[TT_AXIS_SIZE]];

    if ((tt_ops[cell->at[TT_AXIS_OP]].traits & TT_WIDE) != 0 && cell->at[TT_AXIS_SIZE] == TT_SIZE_LARGE)
        return size / tt_members[cell->at[TT_AXIS_WORLD]] + 1;
    return size;
}

uint64_t tt_cell_seed(const tt_cell *cell, uint64_t seed)
{
    int axis;

    for (axis = 0; axis < TT_AXES; axis++)
        seed = tt_mix_text(seed, tt_value_name((tt_axis)axis, cell->at[axis]));
    return seed;
}

void tt_cell_text(const tt_cell *cell, char *out, size_t bytes)
{
    size_t used = 0;
    int    axis;

    for (axis = 0; axis < TT_AXES && used < bytes; axis++)
        used += (size_t)snprintf(out + used, bytes - used, "%s--%s %s", axis > 0 ? " " : "",
                                 tt_axis_name((tt_axis)axis), tt_value_name((tt_axis)axis, cell->at[axis]));
}
