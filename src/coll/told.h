/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/told.h - what members that make a group tell each other when it cannot be made, and what each of them is told.
 *
 * What looks waits for nobody, and asks the board no longer than tti_board_patience() says; TUTTI_OK: nothing is known. */
#ifndef TTI_COLL_TOLD_H
#define TTI_COLL_TOLD_H

#include "coll/team.h"

/* ---- calls that differ ---- */

/** Leave the last error for members that wait for somebody who will not come; it stays. Returns TUTTI_E_MISMATCH. */
tutti_status tti_team_tell_mismatch(const tti_team *team, const tti_board *board);
/** Whether somebody has said that lists differ.
 * @errors TUTTI_E_MISMATCH */
tutti_status tti_team_look_for_mismatch(const tti_team *team, const tti_board *board, int64_t until_ns);
/** The same; *answered_out: the board says whether. */
tutti_status tti_team_ask_for_mismatch(const tti_team *team, const tti_board *board, int64_t until_ns, bool *answered_out);

/* ---- who gives up ---- */

/** This rank has left its piece, and goes without the group, for want of time: let those know that read the piece. The last error, of
 * st, stays; returns st. */
tutti_status tti_team_tell_time_up(const tti_team *team, const tti_board *board, int64_t deadline_ns, tutti_status st);
/** Whether a member has given up making the group for want of time, whose piece is there all the same; for those that have read all.
 * @errors TUTTI_E_PEER      it has
 *         TUTTI_E_MISMATCH  lists differ, which is why */
tutti_status tti_team_look_who_gave_up(const tti_team *team, const tti_board *board, int64_t deadline_ns);
/** Its words: group, rank, whereabouts, rank. */
#define TTI_GAVE_UP_WORDS "group '%s': rank %d (%s) gave up while the group was made\n  next: see what rank %d reports"

/* ---- who never comes ---- */

/** Whether rank, which is awaited, could not make the group for a reason of its own, such as its arguments (group/new_group.c), and
 * never comes. What others have refused is nothing to this rank: they may be no members.
 * @errors as it was told */
tutti_status tti_team_look_for_refusal(const tti_team *team, const tti_board *board, int rank, int64_t deadline_ns);
/** Somebody is gone, as st and the last error say, while rank is awaited: st, with its words, unless somebody has told why. Who has
 * left because calls differ was told so after all others could read it here, and who has refused the group said so before it went. */
tutti_status tti_team_unless_told(const tti_team *team, const tti_board *board, int rank, int64_t deadline_ns, tutti_status st);

/* ---- the group that this one is made in ---- */

/** Whether it has failed: whoever was told of that does not come here. Not by calls that differ, which finish it only for those that
 * go on calling it.
 * @errors as it has failed */
tutti_status tti_team_look_within(const tti_team *team);
/** The board failed with st; has_left: or that tells of somebody who has left, perhaps with it. If it is lost, whoever served it may have
 * died, or left because of a failure of the group that this one is made in, calls that differ included, and what tells of that is on its
 * way here: it is waited for, for a second, and is the reason then. Else st, with its words. */
tutti_status tti_team_hear_why(const tti_team *team, const tti_board *board, tutti_status st, bool has_left, int64_t deadline_ns);

#endif
