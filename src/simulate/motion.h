/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulate/motion.h - a tape, played in virtual time. */
#ifndef TTI_SIMULATE_MOTION_H
#define TTI_SIMULATE_MOTION_H

#include "simulate/tape.h"

typedef struct tti_played {
    int64_t end_ps;        /* when the last rank has ended */
    int64_t events;
    int64_t messages;      /* that the tape's ranks have sent */
    int64_t messages_far;  /* to other hosts */
    int64_t bytes;
    int64_t bytes_far;
    int64_t received;      /* messages, and bytes */
    int64_t bytes_received;
    int64_t port_bytes;    /* through the busiest port, out or in */
    int64_t uplink_bytes;  /* through the busiest rack's uplink, either way */
} tti_played;

/** Calls one after the other: each begins when the one before has ended, gap_ps later. */
typedef struct tti_calls {
    int      n;
    int64_t  gap_ps;
    int      every;    /* after so many calls the root is on the next host; 0: it stays */
    int64_t *each_ps;  /* [n] what each took; written */
} tti_calls;

/** @errors TUTTI_E_NOMEM; TUTTI_E_UNSUPPORTED: it takes more events than are numbered, or more than TTI_PS_MAX
 *          TUTTI_E_STATE: ranks wait for messages that nobody sends; the text names one */
tutti_status tti_motion_play(const tti_cluster *cluster, const tti_tape *tape, tti_played *played_out);
/** The same of several calls. What is played is told of the first one, the times of all. */
tutti_status tti_motion_play_calls(const tti_cluster *cluster, const tti_tape *tape, tti_calls *calls, tti_played *played_out);

#endif
