/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/refused.h - a shrink of a list that one of those that are to stay cannot make: the others are told why. */
#ifndef TTI_REGROUP_REFUSED_H
#define TTI_REGROUP_REFUSED_H

#include "group/group.h"

typedef struct tti_refused tti_refused;

/** This member does not come to the shrink of old, because of this thread's last error, which stays: those that wait for it hear of
 * it. Within a second, and not much later than the call's deadline (TTI_FOREVER: it has not begun); says nothing of a store that does not
 * answer. TUTTI_E_MISMATCH is nothing to those that have failed of it before, in a call of this number or of a higher one, as members
 * count theirs (old->shrinks, old->parted); parted: the members called it with different lists, else nobody who has none heeds it. */
void tti_refused_tell(tutti_group *old, tutti_status failure, bool parted, int64_t deadline_ns);
/** It comes after all: nobody is to read what it has said before. Within a second. */
void tti_refused_take_back(tutti_group *old);

/** Whether what rank says counts: false if it has come since. On the thread that looks, which heeds the end of looking; may ask a store.
 * st and words: what is found then. */
typedef bool tti_refused_counts(void *context, int rank, tutti_status st, const char *words);

/** Another member's call of old has that number: this one's has it, too, if it was lower. Any thread. */
void tti_refused_meet(tutti_group *old, uint64_t number);

/** This member passes excluded[old->size], for members that compare what others pass.
 * @errors as the store */
tutti_status tti_refused_pass(tutti_group *old, const bool *excluded, int64_t deadline_ns);
/** Its call is over: nobody is to compare that any more. Within a second, and not much later than the call's deadline. */
void tti_refused_pass_no_more(tutti_group *old, int64_t deadline_ns);

/** Look for members that refuse, but for those of excluded[old->size], which is borrowed (NULL: there is no list; then only for those
 * that have failed of lists that differ), from now on, but not in the last moment before the deadline; with compares also for those
 * that have passed other ranks, as nothing else tells them. counts NULL: all do, as who waits knows by itself which come too late.
 * NULL: it is not looked for, as there is no memory for that, or no store. */
tti_refused *tti_refused_begin(tutti_group *old, const bool *excluded, bool compares, int64_t deadline_ns, tti_refused_counts *counts,
                               void *context);
/** Whether one does; then st_out is what the call comes to, parted_out whether lists differ, and words_out what it says, until the end.
 * Never waits. */
bool tti_refused_found(const tti_refused *refused, tutti_status *st_out, bool *parted_out, const char **words_out);
/** What becomes true when one does; NULL: nothing. */
const _Atomic bool *tti_refused_flag(const tti_refused *refused);
enum { TTI_REFUSED_RIVAL_MAX = 192 };

/** A member that this one excludes, and that excludes this one: "; rank 2, which this one excludes, ...". "": none is known. Never waits;
 * only while members that can talk without the store wait for each other (compares is false). */
const char *tti_refused_rival(const tti_refused *refused);
/** Look no more; the call has come to st, whose words stay. NULL is fine. */
void tti_refused_end(tti_refused *refused, tutti_status st);
/** The same. st is what the wait has come to: if that is a failure, and a member refuses, this is why. NULL: st. */
tutti_status tti_refused_conclude(tti_refused *refused, tutti_status st);

#endif
