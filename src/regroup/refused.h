/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/refused.h - a shrink of a list that one of those that are to stay cannot make: the others are told why. */
#ifndef TTI_REGROUP_REFUSED_H
#define TTI_REGROUP_REFUSED_H

#include "group/group.h"

typedef struct tti_refused tti_refused;

/** This member does not come to the shrink of old, because of this thread's last error, which stays: those that wait for it hear of
 * it. Within a second; says nothing of a store that does not answer. */
void tti_refused_tell(tutti_group *old, tutti_status failure);
/** It comes after all: nobody is to read what it has said before. Within a second. */
void tti_refused_take_back(tutti_group *old);

/** Whether what rank says counts: false if it has come since. On the thread that looks, which heeds the end of looking; may ask a store.
 * words: what is found then. */
typedef bool tti_refused_counts(void *context, int rank, const char *words);

/** Look for members that refuse, but for those of excluded[old->size], which is borrowed, from now on, but not in the last moment before
 * the deadline. counts NULL: all do, as who waits
 * knows by itself which come too late. NULL: it is not looked for, as there is no memory for that, or no store. */
tti_refused *tti_refused_begin(tutti_group *old, const bool *excluded, int64_t deadline_ns, tti_refused_counts *counts, void *context);
/** Whether one does; then words_out is what it says, until the end. Never waits. */
bool tti_refused_found(const tti_refused *refused, const char **words_out);
/** What becomes true when one does; NULL: nothing. */
const _Atomic bool *tti_refused_flag(const tti_refused *refused);
/** Look no more. NULL is fine. */
void tti_refused_end(tti_refused *refused);
/** The same. st is what the wait has come to: if that is a failure, and a member refuses, this is why. NULL: st. */
tutti_status tti_refused_conclude(tti_refused *refused, tutti_status st);

#endif
