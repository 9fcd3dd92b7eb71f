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

/** @errors TUTTI_E_NOMEM; TUTTI_E_UNSUPPORTED: it takes more events than are numbered, or more than TTI_PS_MAX
 *          TUTTI_E_STATE: ranks wait for messages that nobody sends; the text names one */
tutti_status tti_motion_play(const tti_cluster *cluster, const tti_tape *tape, tti_played *played_out);

#endif
