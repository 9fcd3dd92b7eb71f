/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slices.c - the geometry of a quantised sum: pure arithmetic.
 *
 * How     Slices are equal but for a block. A piece is as many blocks as make about PIECE_BYTES of codes, less where there
 *         are many ranks, for there is one on the way to each and from each of them. */
#include "compress/slices.h"

enum { PIECE_BYTES = 128 * 1024, PIECES_BYTES = 512 * 1024, PIECE_LEAST = 8 * 1024 };

/* The first block of a rank. n_blocks * n_ranks is far below 63 bits: blocks are counted, not bytes. */
static int64_t first_of(const tti_slices *s, int rank)
{
    return s->n_blocks / s->n_ranks * rank + s->n_blocks % s->n_ranks * rank / s->n_ranks;
}

static int64_t piece_of(int block, int n_ranks)
{
    int bytes = PIECES_BYTES / n_ranks;

    bytes = bytes > PIECE_BYTES ? PIECE_BYTES : bytes < PIECE_LEAST ? PIECE_LEAST : bytes;
    return bytes / block;
}

tti_slices tti_slices_of(int64_t count, int block, int n_ranks)
{
    tti_slices s = { .count = count, .block = block, .n_ranks = n_ranks, .piece = piece_of(block, n_ranks) };
    int64_t    longest;

    s.n_blocks = count / block + (count % block != 0);
    longest = s.n_blocks / n_ranks + (s.n_blocks % n_ranks != 0);
    s.n_pieces = (longest + s.piece - 1) / s.piece;
    return s;
}

tti_stretch tti_slices_part(const tti_slices *s, int rank, int64_t k)
{
    const int64_t end = first_of(s, rank + 1);
    const int64_t first = first_of(s, rank) + k * s->piece;
    const int64_t left = end > first ? end - first : 0;
    tti_stretch      part = { .n_blocks = left < s->piece ? left : s->piece };

    if (part.n_blocks == 0)
        return part;
    part.from = first * s->block;
    part.count = part.n_blocks * s->block;
    if (part.count > s->count - part.from)
        part.count = s->count - part.from;
    return part;
}

size_t tti_stretch_bytes(const tti_stretch *part)
{
    return (size_t)part->n_blocks * sizeof(float) + (size_t)part->count;
}

size_t tti_slices_room(const tti_slices *s)
{
    const int64_t longest = s->n_blocks / s->n_ranks + (s->n_blocks % s->n_ranks != 0);
    const int64_t blocks = longest < s->piece ? longest : s->piece;
    const size_t  bytes = (size_t)blocks * (sizeof(float) + (size_t)s->block);

    return (bytes + 63) & ~(size_t)63;
}
