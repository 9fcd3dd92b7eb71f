/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/vigil.h - while a world is made: whether somebody who is waited for can come at all. */
#ifndef TTI_TRANSPORT_VIGIL_H
#define TTI_TRANSPORT_VIGIL_H

#include "transport/board.h"

/** How far a list of endings was looked at. */
typedef struct tti_endings {
    uint32_t n;
    uint32_t came;  /* the first whose piece is there, and one more; 0: none */
    uint32_t ended; /* the same of the one that leaves us waiting for ever */
} tti_endings;

/** One wait for everybody's pieces on the board. Fill in the first part. */
typedef struct tti_vigil {
    tti_port        *port;
    const tti_board *board;
    int              rank, n_ranks;
    const char      *what;        /* the pieces, as in tti_roll */
    bool             is_last;     /* nobody is waited for behind them: who has left one may be through, and end */
    int64_t          deadline_ns; /* of the wait */

    tti_endings launchers, stores, known;
} tti_vigil;

/** From here on waits of this thread on the board end early, as time-outs, when a launcher tells of an ending. */
void tti_vigil_begin(const tti_vigil *vigil);
void tti_vigil_end(const tti_vigil *vigil);

/** Rank is the first whose piece is not there. Waits for nothing but the board's answers.
 * @errors TUTTI_E_PEER  somebody has ended without whom the others do not come
 *         what somebody else has given up for */
tutti_status tti_vigil_look(tti_vigil *vigil, int rank);

/** The board itself is gone, with st, while n_come pieces had come: who has ended that had not come, as far as is known here;
 * else st. */
tutti_status tti_vigil_name_the_ended(const tti_vigil *vigil, int n_come, tutti_status st);

#endif
