/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/suspects.h - ranks whose stream has ended without a goodbye, until it is known whether they live.
 *
 * A state machine without I/O. Times are those of the book's awake_ns: who was stopped itself has not waited. */
#ifndef TTI_TRANSPORT_HEALTH_SUSPECTS_H
#define TTI_TRANSPORT_HEALTH_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

enum { TTI_SUSPECTS_MAX = 64 };

typedef struct tti_suspect {
    int     rank;
    int64_t ask_ns;  /* when to knock at its door */
    bool    in_time; /* no answer is a proof: its host was in reach */
} tti_suspect;

typedef struct tti_suspects {
    tti_suspect list[TTI_SUSPECTS_MAX];
    int         n;
} tti_suspects;

/** Of one that is there already the earlier time counts. False: there is no room. */
bool tti_suspects_add(tti_suspects *suspects, const tti_suspect *suspect);
/** Whether it was there; then out has it. */
bool tti_suspects_drop(tti_suspects *suspects, int rank, tti_suspect *out);
/** One that is to be asked now; -1: none is. Each once for every time that it is added. */
int tti_suspects_ask(tti_suspects *suspects, int64_t now_ns);

#endif
