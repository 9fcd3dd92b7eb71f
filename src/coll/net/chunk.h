/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/net/chunk.h - a chunk of a call: a call of its own, planned and bound to its buffers. */
#ifndef TTI_COLL_NET_CHUNK_H
#define TTI_COLL_NET_CHUNK_H

#include "coll/net/cut.h"
#include "coll/net/pack.h"
#include "coll/team.h"

/** Zeroed memory is ready for use; it keeps what it has from one chunk to the next, and is not moved while one is
 * under way. */
typedef struct tti_chunk {
    int           number;
    tutti_call    call; /* the whole call, where that is not cut */
    tti_schedule  schedule;
    tti_pack      pack; /* of calls with segments */
    tti_binding   binding;
    void        **arrays; /* of call */
    size_t        arrays_room;
    char         *scratch;
    size_t        scratch_bytes;

    /* Its motion (motion.c). What is counted are places in the schedule's rows, over all phases. */
    int           phase;       /* under way; as many as there are: it has ended */
    int           n_received;  /* those before have ended */
    int           n_sent;      /* the same */
    int           n_sending;   /* those before have been posted */
    int           n_ahead;     /* the last phase of which receives were posted before it began; 0: none */
    tti_request **recvs;       /* one for each receive; NULL: not posted, or over */
    tti_request **sends;
    int           n_requests;    /* of both together, and */
    int           requests_room;
} tti_chunk;

void tti_chunk_release(tti_chunk *chunk);

/** Whether ranks tell each other the sizes of a call's blocks, in its first chunk. */
bool tti_exchanges_sizes(const tutti_call *call);

/** Make it number k of a call that is cut so: its schedule by plan, bound to the buffers, with all that is to be done before
 * a message is sent. call is borrowed.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_chunk_make(tti_chunk *chunk, const tti_team *team, tti_plan *plan, const tutti_call *call,
                            const tti_cut *cut, int k);

/** The chunk has ended: what was packed is brought to where it belongs. */
void tti_chunk_finish(tti_chunk *chunk);

/** What this rank told the others of its blocks, and they told it, in the first chunk: whether they agree.
 * @errors TUTTI_E_MISMATCH */
tutti_status tti_chunk_compare_sizes(const tti_chunk *chunk, const tti_team *team, const tti_call_note *note);

#endif
