/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/acquaintance.h - members of a world that is being made whom this process knows from an earlier one.
 *
 * Why     Who makes a world beside one that is at work has connections to some of those it waits for: those of the old one.
 *         They tell of an end at once, whatever store the members meet in, and without a launcher.
 * How     Who makes it says so for the calling thread, and its waits for pieces of others look there (transport/vigil.c).
 * True    Of the thread, because a wait is: the calls between who knows and who waits are a backend's. Nobody else sees it. */
#ifndef TTI_WATCH_ACQUAINTANCE_H
#define TTI_WATCH_ACQUAINTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tti_acquaintance {
    /* Number i, from 0, of those that have ended, in the order in which that became known: a rank of the world that is being made.
     * False: there is none yet. Neither waits nor fails; may change the last error. */
    bool (*read)(void *context, uint32_t i, int *rank_out);
    /* Who that is, and how it ended: "rank 3 (host 'n2', pid 40112) ...". False: it is not known. */
    bool (*words)(void *context, int rank, char *out, size_t bytes);
    void *context;
} tti_acquaintance;

/** Waits for others that the calling thread begins look there; NULL: nowhere. Borrowed until then. */
void                    tti_acquaintance_heed(const tti_acquaintance *known);
const tti_acquaintance *tti_acquaintance_heeded(void);

#endif
