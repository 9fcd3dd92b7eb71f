/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/trouble.h - why a member could not join, on the board, for those that wait for it or lose it.
 *
 * Who fails leaves, and what it has found goes with it: the others see only that it is gone, and would accuse it. So it
 * says why before it lets go of them. The first words stay, and who comes after them leaves its number.
 *
 * That is what makes them true of the whole world: who wrote them had lost nobody that had given up before, for that one
 * would have written first. */
#ifndef TTI_TRANSPORT_TROUBLE_H
#define TTI_TRANSPORT_TROUBLE_H

#include "transport/board.h"
#include "watch/trouble.h"

/** Leave what this thread's last error says, which stays, as rank of the world; within a second. Before anything is closed that others look at. */
void tti_trouble_leave(const tti_board *board, tti_port *port, int rank, tutti_status st);
/** Whether somebody has; asks the board until deadline_ns at most. The last error may be another then. */
bool tti_trouble_find(const tti_board *board, int64_t deadline_ns, tti_trouble *trouble_out);
/** The same of a group of some ranks that goes over the world's connections, and of rank of the world, which is awaited there: whether it
 * has refused to make it, or makes it with another backend. */
bool tti_refusal_find(const tti_board *board, int rank, int64_t deadline_ns, tti_trouble *trouble_out);
/** The failure st, with this thread's words, of one that has lost a member: what others have said is the reason, if they have
 * said anything, and it is not about that member itself. What was seen here is left out where it is of one that has given up,
 * with those words or after them: that one has gone because of it. Returns the status. */
tutti_status tti_trouble_explain(const tti_board *board, tti_port *port, tutti_status st);
/** The same, in place; whether others have said a reason. */
bool tti_trouble_explains(const tti_board *board, tti_port *port, tutti_status *st);

#endif
