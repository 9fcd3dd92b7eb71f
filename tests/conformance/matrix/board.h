/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board.h - what ranks tell the program that started them: memory that is shared before they are forked.
 *
 * How     The parent puts the cells of a launch down and starts the ranks. Each rank notes which cell it has
 *         begun, and for each cell whether it passed and the bits of what was combined. The first failures
 *         also leave their words.
 * True    Columns are of the ranks that take part, by their rank in the group. A rank writes only its own one
 *         and the words whose number it took; the parent reads after the ranks are gone. So nothing is
 *         locked. Where threads are ranks the same holds. */
#ifndef TT_BOARD_H
#define TT_BOARD_H

#include "cells.h"

enum { TT_CELLS_MAX = 8192, TT_NOTES = 24 };
enum { TT_NOT_RUN = 0, TT_CELL_PASSED, TT_CELL_FAILED, TT_CELL_REFUSED };

typedef struct tt_note {
    int  cell, rank;
    char words[TT_WORDS];
} tt_note;

typedef struct tt_board {
    uint64_t         seed;
    bool             may_refuse; /* the backend may lack operations */
    int              n_cells;
    tt_cell          cells[TT_CELLS_MAX];
    _Atomic uint32_t arrivals; /* at barriers of the cells */
    int              begun[TT_WORLD_MAX]; /* cells that each rank has begun */
    bool             left[TT_WORLD_MAX];  /* whether it went through all of them */
    unsigned char    state[TT_CELLS_MAX][TT_WORLD_MAX];
    uint64_t         bits[TT_CELLS_MAX][TT_WORLD_MAX];
    char             refusals[TT_OPS_MAX][TT_WORDS]; /* of the first cell of an operation that was refused; by rank 0 of the group */
    _Atomic int      n_notes;
    tt_note          notes[TT_NOTES];
} tt_board;

/** The one of this program, made by tt_board_open(): forked ranks find it at its place. */
extern tt_board *tt_the_board;

bool tt_board_open(void);
/** One that ranks share which others have started: memory of a file, which is new and empty for the first of them. */
bool tt_board_open_file(const char *path);
/** Forget everything but the seed, and whether calls may be refused. */
void tt_board_clear(void);

void tt_board_note(int cell, int rank, const char *words);

#endif
