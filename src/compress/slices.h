/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compress/slices.h - who owns which blocks, and in which pieces they are sent: the same on all ranks, from numbers that all
 * ranks have. */
#ifndef TTI_COMPRESS_SLICES_H
#define TTI_COMPRESS_SLICES_H

#include <stddef.h>
#include <stdint.h>

typedef struct tti_slices {
    int64_t count;       /* numbers */
    int     block;       /* numbers in a block */
    int     n_ranks;
    int64_t n_blocks;    /* the last one may be shorter */
    int64_t piece;       /* blocks of a slice in one piece */
    int64_t n_pieces;    /* of the longest slice: 0 if there are no numbers */
} tti_slices;

/** Numbers from .. from + count - 1 in n_blocks blocks; count 0: nothing. */
typedef struct tti_stretch {
    int64_t from;
    int64_t count;
    int64_t n_blocks;
} tti_stretch;

tti_slices tti_slices_of(int64_t count, int block, int n_ranks);
/** Piece k of what a rank owns. Slices differ by a block at most, so the last piece of some may be empty. */
tti_stretch tti_slices_part(const tti_slices *slices, int rank, int64_t k);
/** What a piece has as a message: its scales, and behind them its codes. */
size_t tti_stretch_bytes(const tti_stretch *part);
/** The largest message. */
size_t tti_slices_room(const tti_slices *slices);

#endif
