/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/absent.h - who has not come when a group is not made in time. */
#ifndef TTI_COLL_ABSENT_H
#define TTI_COLL_ABSENT_H

#include "coll/team.h"
#include "transport/board.h"

/** For one meeting of team, which leaves its pieces as roll says. Both are borrowed. */
typedef struct tti_absent {
    const tti_team *team;
    const tti_roll *roll;
    bool           *known; /* [2 * n_ranks] who had not come when time was nearly up, and behind that who of them was here; NULL: the
                            * board has not said */
} tti_absent;

/** Of a world's first group, which waits for rank: if time is nearly up, ask who has not come from rank on, and who of them is here.
 * What the board does not say now stays as it was. */
void tti_absent_keep(tti_absent *absent, int rank, int64_t deadline_ns);
/** Time is up while rank is awaited: add who has not come, and who of them is here, or that nobody knows. founds: it is a world's
 * first group; *answered: the board did at the latest look, and, behind that, then or now. ranks_out[n_ranks]: the *n_out that are told
 * of as not joined, as the mesh knows them. False: no memory. */
bool tti_absent_add(const tti_absent *absent, int rank, bool founds, bool *answered, tti_words *words, int *ranks_out, int *n_out);
void tti_absent_release(tti_absent *absent);

#endif
