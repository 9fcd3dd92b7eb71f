/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/here.h - who is here while a world is made, though it does not go on yet. */
#ifndef TTI_TRANSPORT_HERE_H
#define TTI_TRANSPORT_HERE_H

#include "transport/board.h"

/** Which of n ranks of a world have said that they wait for others of their host: here_out[n], as ranks. False, and none has: the
 * board did not answer by deadline_ns. */
bool tti_here_find(const tti_board *board, const int *ranks, int n, int64_t deadline_ns, bool *here_out);

#endif
