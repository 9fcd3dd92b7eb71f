/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cover.c - few cells with every pair of values in them.
 *
 * Why     Most faults need one value, or two that meet (this dtype with that transport); all pairs need a
 *         thousandth of the product's cells.
 * How     One pass over the product notes which pairs can be had at all. Then, until none is missing: take
 *         a missing pair, draw cells that have it (the other values at random, until the cell applies),
 *         and keep the one that brings most missing pairs. Should the draw find none, the product is
 *         searched, so the end is certain.
 * True    The same seed and selection give the same cells. */
#include "cells.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES = 128, DRAWS = 400, GOOD = 12 };

/* Values of all axes numbered in one row; a pair is a place in a table. */
typedef struct cover {
    const tt_selection *selection;
    uint64_t            random;
    int                 base[TT_AXES + 1];
    bool                missing[VALUES][VALUES]; /* [a][b], a of an earlier axis */
    int                 n_missing;
} cover;

static int place(const cover *c, const tt_cell *cell, int axis)
{
    return c->base[axis] + cell->at[axis];
}

static bool usable(const cover *c, const tt_cell *cell)
{
    int rule;

    return tt_selected(c->selection, cell) && tt_cell_rule(cell, &rule) == NULL;
}

/* How many missing pairs a cell has; mark: set them all to this. */
static int missing_in(cover *c, const tt_cell *cell, const bool *mark)
{
    int n = 0;
    int a, b;

    for (a = 0; a < TT_AXES; a++)
        for (b = a + 1; b < TT_AXES; b++) {
            bool *pair = &c->missing[place(c, cell, a)][place(c, cell, b)];

            n += *pair;
            if (mark != NULL)
                *pair = *mark;
        }
    return n;
}

static void find_pairs(cover *c)
{
    const bool yes = true;
    tt_cell    cell = { { 0 } };
    int        a, b;

    do {
        if (usable(c, &cell))
            missing_in(c, &cell, &yes);
    } while (tt_cell_next(&cell));
    for (a = 0; a < VALUES; a++)
        for (b = 0; b < VALUES; b++)
            c->n_missing += c->missing[a][b];
}

static int random_below(cover *c, int n)
{
    c->random = tt_mix(c->random);
    return (int)(c->random % (uint64_t)n);
}

static int axis_of(const cover *c, int at)
{
    int axis = 0;

    while (at >= c->base[axis + 1])
        axis++;
    return axis;
}

/* Any missing pair, as two places. */
static void pick(cover *c, int pair_out[2])
{
    int skip = random_below(c, c->n_missing);
    int a, b;

    for (a = 0; a < VALUES; a++)
        for (b = 0; b < VALUES; b++)
            if (c->missing[a][b] && skip-- == 0) {
                pair_out[0] = a;
                pair_out[1] = b;
                return;
            }
}

static void fix(const cover *c, tt_cell *cell, const int pair[2])
{
    int k;

    for (k = 0; k < 2; k++)
        cell->at[axis_of(c, pair[k])] = (unsigned char)(pair[k] - c->base[axis_of(c, pair[k])]);
}

static bool has(const cover *c, const tt_cell *cell, const int pair[2])
{
    return place(c, cell, axis_of(c, pair[0])) == pair[0] && place(c, cell, axis_of(c, pair[1])) == pair[1];
}

static tt_cell search(const cover *c, const int pair[2])
{
    tt_cell cell = { { 0 } };

    while (!(has(c, &cell, pair) && usable(c, &cell)) && tt_cell_next(&cell))
        ;
    return cell;
}

static tt_cell best_with(cover *c, const int pair[2])
{
    tt_cell best = { { 0 } };
    int     most = 0;
    int     good = 0;
    int     draw, axis;

    for (draw = 0; draw < DRAWS && good < GOOD; draw++) {
        tt_cell cell;
        int     n;

        for (axis = 0; axis < TT_AXES; axis++)
            cell.at[axis] = (unsigned char)random_below(c, tt_axis_size((tt_axis)axis));
        fix(c, &cell, pair);
        if (!usable(c, &cell))
            continue;
        good++;
        n = missing_in(c, &cell, NULL);
        if (n > most) {
            most = n;
            best = cell;
        }
    }
    return most > 0 ? best : search(c, pair);
}

tt_cell *tt_cover(const tt_selection *selection, uint64_t seed, int *n_out, int *pairs_out)
{
    const bool no = false;
    cover     *c = calloc(1, sizeof *c);
    tt_cell   *cells = NULL;
    int        n = 0;
    int        pair[2] = { 0, 0 };
    int        axis;

    if (c == NULL)
        return NULL;
    c->selection = selection;
    c->random = seed;
    for (axis = 0; axis < TT_AXES; axis++)
        c->base[axis + 1] = c->base[axis] + tt_axis_size((tt_axis)axis);
    find_pairs(c);
    *pairs_out = c->n_missing;
    cells = calloc((size_t)c->n_missing + 1, sizeof *cells); /* no step brings less than one pair */
    while (cells != NULL && c->n_missing > 0) {
        pick(c, pair);
        cells[n] = best_with(c, pair);
        c->n_missing -= missing_in(c, &cells[n], &no);
        n++;
    }
    free(c);
    *n_out = n;
    return cells;
}
