/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous/generation.h - which world of a store a rank joins, and its place in it. */
#ifndef TTI_RENDEZVOUS_GENERATION_H
#define TTI_RENDEZVOUS_GENERATION_H

#include "base/port.h"
#include "rendezvous/rendezvous.h"

/** Agree with rank 0 on the number of a world that nobody has used, and take this rank's place there.
 *
 * Waits for rank 0, until join's deadline. A number that was given out is never given out again,
 * whatever becomes of the world.
 *
 * Whatever it comes to, tti_generation_end() must follow.
 *
 * @errors TUTTI_E_STATE     another thread of this process is joining with this rank, at the same time
 *         TUTTI_E_ARG       another process has taken this rank's place; the text has its pid and host
 *         TUTTI_E_MISMATCH  rank 0 was started with another world size, or other backends; the text has both
 *         TUTTI_E_TIMEOUT   rank 0 did not come
 *         TUTTI_E_NETWORK   the store was another rank 0's (join->another_serves), which has ended since
 *         what the store fails with */
tutti_status tti_generation_join(tti_port *port, const tti_join *join, int64_t *generation_out);

/** Whether rank 0 takes its place in the latest world of a store until then, another process, and none that is known to be
 * dead: a store may outlive it. Changes this thread's last error. */
bool tti_generation_has_rank0(tti_port *port, tutti_store *store, int64_t until_ns);

/** Joining has failed since: on rank 0, let nobody join that number any more, as far as the store still
 * answers within a second. Changes this thread's last error. */
void tti_generation_fail(tti_port *port, const tti_join *join, int64_t generation);

/** Joining, or making the world then, has run out of time: which ranks have not taken their place in that
 * number, as far as the store still answers; 0, no number: rank 0. absent_out is [world_size]. */
void tti_generation_absent(tti_port *port, const tti_join *join, int64_t generation, bool *absent_out);

/** Whether nobody has taken rank's place in that number; false also where the store does not answer within a second. */
bool tti_generation_is_free(tti_port *port, const tti_join *join, int64_t generation, int rank);

/** What the world that was made knows of its members, for tti_generation_arrive(). */
typedef struct tti_members {
    bool (*is_gone)(void *context, int rank); /* its process is known to have ended; never waits */
    void *context;
} tti_members;

/** The last step of joining, once the world is made: where rank 0 serves the store, it stays until the
 * others need it no more, or are gone. Does nothing elsewhere.
 *
 * @param members  NULL: nothing is known of them
 *
 * @errors TUTTI_E_TIMEOUT  on rank 0: ranks are not through; the text names them
 *         what the store fails with, on rank 0 */
tutti_status tti_generation_arrive(tti_port *port, const tti_join *join, int64_t generation, const tti_members *members);

/** This rank has its place in that number, and its world cannot be made: where rank 0 serves the store, in which the reason is left, and it stays, it
 * does until the others have failed as well, some seconds at most. Before
 * tti_generation_fail(). Changes this thread's last error. */
void tti_generation_part(tti_port *port, const tti_join *join, int64_t generation, bool stays);

/** Joining is over, well or not. */
void tti_generation_end(const tti_join *join);

#endif
