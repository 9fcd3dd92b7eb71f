/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/solo.h - the collectives of a group of one rank: nobody to wait for. */
#ifndef TTI_COLL_SOLO_H
#define TTI_COLL_SOLO_H

#include <tutti/plugin/backend.h>

/** Do call as the only member: gives the values that combining one rank's elements gives. */
void tti_solo_run(const tutti_call *call);

#endif
