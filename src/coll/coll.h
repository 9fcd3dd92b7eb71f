/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/coll.h - the collectives: patterns, schedules, algorithms and the choice among them.
 *
 *   choose.c     the table of algorithms: (kind, where the members are, bytes) -> one of them; cost.c says
 *                what each costs, choice.c makes one choice for all members
 *   host/        all members on one host: small calls in one phase through lines, others in rounds through slots of
 *                shared memory, or by members that read each other's buffers through the kernel (pull.h)
 *   net/         members anywhere: schedules of messages; cut.c cuts a large call into chunks, plan_*.c makes the schedule
 *                of one (both pure arithmetic), run.c moves the data of several at a time
 *   level/       members on several hosts, several on one: through memory inside hosts, by messages between them
 *   pattern.c    who talks to whom, and who owns which slice: arithmetic without state
 *
 * In which order is added up is a rule of what all members share (choose.h), so that results have the same bits whichever
 * algorithm is taken. */
#ifndef TTI_COLL_COLL_H
#define TTI_COLL_COLL_H

#include "transport/messenger.h"
#include <tutti/plugin/backend.h>

/** What a group's collectives run on. Filled by the backend; ranks in ranks[] are mesh ranks. */
typedef struct tti_coll_config {
    tti_mesh      *mesh;
    tti_messenger *messenger;
    uint32_t       group_id;
    bool           founds; /* the mesh was made for it: who does not come as far as here had to end, or to give up, before */
    int            rank;
    int            n_ranks;
    const int     *ranks; /* [n_ranks] group rank -> mesh rank; copied */
    const char    *name;  /* of the group, for texts; copied */
    const tti_board *board; /* for the exchange at creation; its context is borrowed until the close */
    int64_t        deadline_ns;
    bool           lazy;    /* meet the members in the first call, not at creation */
    const uint32_t *within; /* a group of these members and others: who is told of its failure does not come; borrowed while
                               the group is made. NULL: none */
    bool           has_queued; /* tutti_backend_config */
    const struct tti_machine *machine; /* what the choice of algorithms goes by; NULL: this one; borrowed
                                          while the group is made */
    const struct tti_host_patience *patience; /* how members of one host wait; NULL: as its cores ask for; copied */
    int            cores;   /* go about as if the host had so many, for all; 0: as it is */
} tti_coll_config;

typedef struct tti_coll tti_coll;

/** Prepare a group's channels. With all members on one host: allocates the own region of the shared
 * channel, and finds the others' through the board. Blocks until all members have come, unless lazy. */
tutti_status tti_coll_open(const tti_coll_config *config, tti_coll **coll_out);
/** Free everything; waits for nobody. NULL is fine. */
void tti_coll_close(tti_coll *coll);

/** Do a call to its end. One at a time, in sequence. After a failure every later call fails the same way. */
tutti_status tti_coll_run(tti_coll *coll, const tutti_call *call);

/** Do so much of a call as waits for nobody, and say how far it has come. Unless it has ended, this may be asked
 * again, and tti_coll_run() does the rest, also if the group has failed meanwhile. Calls in their order; one behind
 * another that has not ended only ends in its run. */
tutti_status tti_coll_advance(tti_coll *coll, const tutti_call *call, tutti_progress *progress_out);

/** A thread waits for the call of number seq: none up to it needs to leave the core to others. A hint. Any thread. */
void tti_coll_hasten(tti_coll *coll, uint64_t seq);

/** How many calls were done on registered memory, with nothing staged. */
uint64_t tti_coll_count_registered(const tti_coll *coll);

/** Make a running and every later call fail with TUTTI_E_ABORTED, here and on the members of this host. Any
 * thread. */
void tti_coll_abort(tti_coll *coll);

/** This rank has failed in the group, in a message: a running and every later call, and every message,
 * fail with status. Here they have the words of this thread's last error, on the other members such as
 * say that this rank has reported it. Nothing after an abort or another failure. Any thread. */
void tti_coll_fail(tti_coll *coll, tutti_status status);

#endif
