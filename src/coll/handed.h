/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/handed.h - the joins of a group, from the member that has read them to the others of its host. */
#ifndef TTI_COLL_HANDED_H
#define TTI_COLL_HANDED_H

#include "coll/team.h"
#include "transport/scribe.h"

/** Who reads the joins for this rank's host: a number in the group. -1: everybody reads for himself. The same on all
 * members of a host. */
int tti_team_scribe(const tti_team *team);

/** Lay out all for the others of the host; false: they cannot be handed over. at_out and nonce_out are for
 * tti_joins_take(). They stay until all others have taken them, or the heap goes. */
bool tti_joins_hand(tti_team *team, const tti_join *all, uint64_t *at_out, uint64_t *nonce_out);
/** Copy them; false: they are not there. */
bool tti_joins_take(const tti_team *team, int scribe, const tti_scribe_note *note, tti_join *all_out);
/** The team goes. */
void tti_joins_let_go(tti_team *team);

#endif
