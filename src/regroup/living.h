/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/living.h - whether anybody is left who could let a process in. */
#ifndef TTI_REGROUP_LIVING_H
#define TTI_REGROUP_LIVING_H

#include "regroup/admission.h"
#include "watch/bulletin.h"

enum { TTI_ASKER_MAX = 32 };

/** What this process writes when it asks: "NODE LOCAL" of a replacement and "rank R" of a rank, as its launcher counts them; "newcomer" of
 * others. Never empty: an empty one could be written over. */
void tti_living_name(char out[TTI_ASKER_MAX]);

/** What the launcher of this process says of its job; NULL: it is in none. */
tti_bulletin *tti_living_bulletin(void);

/** Whether nobody is left who could let this process in, which asks as own. May ask the store until deadline_ns. */
bool tti_living_none(const tti_bulletin *bulletin, const tti_admission *to, const char *own, int64_t deadline_ns);

#endif
