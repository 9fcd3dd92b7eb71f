/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cells.h - the product: operations x reductions x dtypes x sizes x worlds x transports x modes.
 *
 * How     A cell is one value on each axis. Not every cell applies; tt_cell_rule() says which rule forbids
 *         it. A selection is a set of values on each axis, as bits; the command line makes one from lists
 *         of names. A launch is a world, a transport and a mode: one set of ranks runs all its cells. */
#ifndef TT_CELLS_H
#define TT_CELLS_H

#include "ops.h"

typedef enum tt_axis {
    TT_AXIS_OP,
    TT_AXIS_RED,
    TT_AXIS_DTYPE,
    TT_AXIS_SIZE,
    TT_AXIS_WORLD,
    TT_AXIS_TRANSPORT,
    TT_AXIS_MODE,
    TT_AXES
} tt_axis;

/* Operations that combine nothing have this one value on the axis of reductions. */
enum { TT_RED_NONE = TUTTI_OP_COUNT };
enum { TT_SHM, TT_TCP, TT_HOSTS, TT_TRANSPORTS };
enum { TT_BLOCKING, TT_ASYNC, TT_THREADS, TT_MODES };
/* The last world is a group of some of its ranks, which have other numbers there. */
enum { TT_SIZES = 6, TT_SIZE_LARGE = 5, TT_WORLDS = 7, TT_WORLD_GROUP = 6, TT_GROUP_MEMBERS = 3 };

typedef struct tt_cell {
    unsigned char at[TT_AXES];
} tt_cell;

/** Which values are wanted on each axis. */
typedef struct tt_selection {
    uint64_t on[TT_AXES];
} tt_selection;

extern const int64_t tt_sizes[TT_SIZES];
extern const int     tt_worlds[TT_WORLDS];  /* ranks */
extern const int     tt_members[TT_WORLDS]; /* those that take part */
extern const int     tt_group_ranks[TT_GROUP_MEMBERS]; /* of the last world */

int         tt_axis_size(tt_axis axis);
const char *tt_axis_name(tt_axis axis); /* as an option: "op", "red", ... */
/** The name of a value; the text is constant. */
const char *tt_value_name(tt_axis axis, int value);

tt_selection tt_select_all(void);
/** Take a list of names, with commas, as the values of an axis. false: a name that is none, in bad_out, if
 * that is not NULL. */
bool tt_select(tt_selection *selection, tt_axis axis, const char *names, const char **bad_out);
bool tt_selected(const tt_selection *selection, const tt_cell *cell);

/** Why a cell does not apply, NULL if it does. The number of rules is TT_RULES; the texts are constant. */
enum { TT_RULE_RED = 0, TT_RULES = 9 };
const char *tt_cell_rule(const tt_cell *cell, int *rule_out);

/** Step through the product in a fixed order, starting from a cell of zeros. false: that was the last. */
bool tt_cell_next(tt_cell *cell);

/** Elements of one part. */
int64_t tt_cell_count(const tt_cell *cell);
/** What its data are made from. */
uint64_t tt_cell_seed(const tt_cell *cell, uint64_t seed);
/** "--op all_reduce --red avg ...", which selects this cell and no other. */
void tt_cell_text(const tt_cell *cell, char *out, size_t bytes);

/** A set of selected cells in which every pair of values that the selection can have occurs: greedy, one
 * cell per step, the best of some random ones that have a pair still missing. The caller frees it.
 *
 * @param n_out      cells
 * @param pairs_out  pairs covered: all there are
 * @return NULL: no memory */
tt_cell *tt_cover(const tt_selection *selection, uint64_t seed, int *n_out, int *pairs_out);

#endif
