/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulate/tape.h - what ranks do in a call, as short as a simulation needs it. */
#ifndef TTI_SIMULATE_TAPE_H
#define TTI_SIMULATE_TAPE_H

#include <tutti/plugin/backend.h>
#include "coll/net/cut.h"
#include "simulate/cluster.h"
#include "simulate/levels.h"

typedef struct tti_tape_send {
    int32_t  peer;
    uint32_t bytes_low;
    uint32_t bytes_high;
} tti_tape_send;

static inline int64_t tti_tape_bytes(const tti_tape_send *send)
{
    return (int64_t)((uint64_t)send->bytes_high << 32 | send->bytes_low);
}

/** Phases in which a rank has nothing to do are left out. */
typedef struct tti_tape_phase {
    uint32_t number;    /* in the schedule: by which ranks tell messages apart */
    uint32_t sends_end; /* in the tape's row; they begin where those of the phase before end */
    uint32_t n_recvs;
    int64_t  work_ps; /* of the local steps, on the rank's core */
} tti_tape_phase;

/** What a rank does in a piece of a call. */
typedef struct tti_tape_part {
    uint32_t sends_begin;
    uint32_t phases_begin;
    uint32_t n_phases;
} tti_tape_part;

/** A call's ranks 0 .. n_ranks-1 of those of the cluster. Pieces of the call, as coll/net/cut.h cuts it, are under way side
 * by side, each with its own phases; all of them but the last are alike. */
typedef struct tti_tape {
    int             n_ranks;   /* that are there; the others do the same, unit after unit */
    int             n_pieces;
    int             window;    /* so many of them at a time */
    int             in_flight; /* sends of a rank's phase at a time */
    tti_tape_part  *parts;     /* [n_ranks * 2]: of a piece, and of the last one */
    tti_tape_phase *phases;
    tti_tape_send  *sends;
    size_t          n_phases, n_sends;
    size_t          phases_room, sends_room;
    size_t          parts_n, parts_room;
} tti_tape;

/** What rank does in piece number piece. */
static inline const tti_tape_part *tti_tape_part_of(const tti_tape *tape, int rank, int piece)
{
    return &tape->parts[2 * rank + (piece + 1 == tape->n_pieces)];
}

/** What is to be done, by a plan or in levels. */
typedef struct tti_tape_call {
    tti_plan       *plan;
    tti_sim_levels *levels; /* instead of plan; NULL: none */
    tutti_call_kind kind;
    int             root;
    int64_t         count; /* elements of one rank's part */
    tutti_dtype     dtype;
    double          wire;  /* ns of a byte between hosts, as ranks were told: tti_cut_of(); 0: they were not */
} tti_tape_call;

/** Messages of a tape. */
typedef struct tti_tape_limits {
    int64_t full; /* up to here all ranks are on it, even if all hosts do the same */
    int64_t most;
} tti_tape_limits;

enum { TTI_TAPE_FULL = 1 << 20 }; /* the usual limit: a second to play */

/** Make the tape of a call on a cluster: of all its ranks, or, where every unit of hosts does the same, of the first
 * unit. Zeroed memory may be released.
 * @errors TUTTI_E_NOMEM; TUTTI_E_UNSUPPORTED: more messages than limits allow */
tutti_status tti_tape_make(const tti_cluster *cluster, const tti_tape_call *call, const tti_tape_limits *limits,
                           tti_tape *tape_out);
void         tti_tape_release(tti_tape *tape);

#endif
