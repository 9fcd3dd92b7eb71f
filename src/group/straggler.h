/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/straggler.h - who is always the last to come. */
#ifndef TTI_GROUP_STRAGGLER_H
#define TTI_GROUP_STRAGGLER_H

#include "group/group.h"

enum { TTI_STRAGGLER_CALLS = 64 }; /* that are looked at together */

/** What is known of the last calls of a group; whoever has its turn uses it. */
typedef struct tti_straggler {
    uint64_t from;     /* the first of them; 0: none was waited in yet */
    int64_t  began_ns;
    int64_t  since_ns; /* suspect has been late */
    int      suspect;  /* group rank that was late in the latest window; -1: nobody */
    int      named;    /* group rank that the log has named, -1: nobody; until it comes in time again */
    struct {
        uint32_t calls;
        int64_t  waited_ns;
    } late[]; /* [group->size] */
} tti_straggler;

/** In call seq this rank has waited for rank late (group rank; below 0: it is not known who), waited_ns long, at now_ns.
 * Returns true, and what to say, if that makes somebody a straggler. */
bool tti_straggler_note(tti_straggler *s, int size, uint64_t seq, int late, int64_t waited_ns, int64_t now_ns,
                        int *rank_out, uint32_t *calls_out, int64_t *waited_ns_out, int64_t *window_ns_out);

/** The same for what this thread has noted, of the call that it has run in group: the line goes to the log. What is noted
 * stays for the call's record, if it has one. */
void tti_straggler_look(tutti_group *group, const tutti_call *call);

#endif
