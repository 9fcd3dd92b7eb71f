/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deed.h - what this rank is in, as those hear that it dies to: the call that the program has made, and not the collectives that the
 * call is made of. */
#ifndef TTI_REGROUP_DEED_H
#define TTI_REGROUP_DEED_H

#include "group/group.h"
#include "transport/health/health.h"

/** A call that makes a group of this one begins; kind is a TTI_DEED_.... */
void tti_regroup_begins(const tutti_group *group, unsigned kind);

/** It has ended, and the group is there still; where another one has the place of its connections nobody is told. */
void tti_regroup_ends(const tutti_group *group);

#endif
