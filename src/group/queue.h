/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/queue.h - what the order of a group's collectives (queue.c), their end (queue_end.c), the asynchronous ones
 * (progress.c) and the threads that run these (workers.c) share. The lock is the runner's. */
#ifndef TTI_GROUP_QUEUE_H
#define TTI_GROUP_QUEUE_H

#include "group/group.h"

/** From here on the lock has the order. Lock held. */
void tti_queue_hold(tutti_group *group);
/** What a finished group answers, in words. Lock held. */
tutti_status tti_queue_refuse(const tutti_group *group);
/** Run call, whose turn it is; is_begun: the backend has begun it. The lock is held, also on return, and released in
 * between; group stays, the caller is counted inside. */
tutti_status tti_queue_run_turn(tutti_group *group, tutti_call *call, bool is_begun);
/** Run a compound in its turns: compound.c. No lock held. */
tutti_status tti_compound_run(tutti_group *group, tti_compound *compound, tti_turns *turns);
/** Run a compound whose turns begin with number first, and give them back. As above. */
tutti_status tti_queue_run_compound(tutti_group *group, tti_compound *compound, uint64_t first, bool is_worker);
/** Do so much of call as waits for nobody, in its turn, or when all before it have given all. False: it has not ended,
 * and is to be run. True: with *st_out. Lock held as above. */
bool tti_queue_advance_turn(tutti_group *group, tutti_call *call, tutti_progress *progress_out, tutti_status *st_out);
/** From here on the group refuses: st, by what, in words. The first failure stays. Lock held. */
void tti_queue_finish(tutti_group *group, const char *by, tutti_status st, const char *words);
/** End the works of group that nobody has begun, because it was "destroyed" or so. Lock held. */
void tti_queue_abort_works(tutti_group *group, const char *happened);

/* progress.c, for workers. The lock is held, also on return. */

/** The oldest work that needs a worker; NULL: none does. */
tutti_work *tti_queue_oldest(const tti_runner *runner);
/** Whether a work is put off. */
bool tti_queue_any_put_off(const tti_runner *runner);
/** A nap is over: nothing is put off any more, if the program has gone to something else, or all are meant. */
void tti_queue_recall(tti_runner *runner, bool all);
/** Run a work whose turn it is, on a worker or on another thread. The lock is released in between. */
void tti_queue_run_work(tti_runner *runner, tutti_work *work, bool is_worker);

/* workers.c. Lock held. */

/** If there is a work that needs a worker, let one come for it. */
void tti_queue_rouse(tti_runner *runner);
tutti_status tti_worker_start(tti_runner *runner);

#endif
