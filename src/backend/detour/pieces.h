/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/detour/pieces.h - what a call is cut into, and what of it goes where. No device in it, no memory of its own. */
#ifndef TTI_BACKEND_DETOUR_PIECES_H
#define TTI_BACKEND_DETOUR_PIECES_H

#include <tutti/plugin/backend.h>

enum { TTI_PIECE_BYTES = 4 << 20 }; /* of one rank's host memory that a piece takes: all ranks have to cut alike */

/** Elements first .. first + n - 1 of each part of a segment; or all of a call whose parts have sizes of their own. */
typedef struct tti_piece {
    int     segment;
    int64_t first, n;
} tti_piece;

/** The pieces of a call that have not been taken. A buffer without elements is one, too, as the others wait for it. */
typedef struct tti_pieces {
    const tutti_call *call;
    int               rank, n_ranks;
    int64_t           most; /* elements of a part in one piece */
    int               segment;
    int64_t           first; /* of segment, not taken yet */
} tti_pieces;

tti_pieces tti_pieces_of(const tutti_call *call, int rank, int n_ranks);
/** The next one; false: there is none. The same on all ranks, wherever ranks have to agree on counts. */
bool tti_pieces_next(tti_pieces *pieces, tti_piece *piece_out);

/** What a piece takes of host memory, at most. */
size_t tti_piece_bytes(const tti_pieces *of, const tti_piece *piece);
/** The call that host memory is given for a piece: its buffers lie in memory, whose places go to ins[n_ranks] and
 * list[n_ranks]. Its number, deadline and background are the caller's to set. */
tutti_call tti_piece_call(const tti_pieces *of, const tti_piece *piece, char *memory, const void **ins, void **list);

/** Copies bytes; what is not TUTTI_OK ends it. */
typedef tutti_status tti_piece_copy(void *context, void *to, const void *from, size_t bytes);
/** Copy what this rank gives from the device's buffers to those of on_host, the call above; or what it gets, back. */
tutti_status tti_piece_fetch(const tti_pieces *of, const tti_piece *piece, const tutti_call *on_host, tti_piece_copy *copy,
                             void *context);
tutti_status tti_piece_return(const tti_pieces *of, const tti_piece *piece, const tutti_call *on_host, tti_piece_copy *copy,
                              void *context);
/** Whether this rank gives anything to the call. */
bool tti_pieces_give(const tti_pieces *of);

#endif
