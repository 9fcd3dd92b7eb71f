/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/crowd.h - whether the ranks of a host have a core each. Arithmetic without state. */
#ifndef TTI_COLL_HOST_CROWD_H
#define TTI_COLL_HOST_CROWD_H

#include "coll/team.h"

/** Cores that n_on_host ranks of one host share, as far as the n_members of a group among them can tell from
 * what they told each other: all come to the same number. At least 1. */
int tti_crowd_cores(const tti_join *joins, int n_members, int n_on_host);

#endif
