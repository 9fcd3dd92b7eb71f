/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/unasked.h - replacements that have ended before they asked to come in, or before they were let in, as launchers say. */
#ifndef TTI_REGROUP_UNASKED_H
#define TTI_REGROUP_UNASKED_H

#include "regroup/admission.h"
#include "watch/bulletin.h"

/** One that comes no more. */
typedef struct tti_unasked {
    tti_ending ending;
    bool       asked; /* it had asked, and nobody had let it in yet */
} tti_unasked;

/** One that has ended so, and for which its launcher starts no other one, where none that runs, on any host, has still to ask.
 * One is told of, once in the life of a world and of those that take its place, for all that have ended by then. False: there is none, or no launcher.
 * @param admitted     the numbers up to this one have been let in
 * @param t            the number that is waited for: who has taken it since is not missing. All between these two have been looked at
 * @param deadline_ns  for the store */
bool tti_unasked_find(tutti_group *world, const tti_admission *to, int64_t admitted, int64_t t, int64_t deadline_ns,
                      tti_unasked *found_out);

/** All that was needed has come: nobody need hear of those that have ended so far. */
void tti_unasked_settle(tutti_group *world);

#endif
