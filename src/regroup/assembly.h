/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/assembly.h - messages among the members of a group when there is no store: one connection from each to each
 * that it has something to say to, made when it is wanted. Driven by one thread at a time. */
#ifndef TTI_REGROUP_ASSEMBLY_H
#define TTI_REGROUP_ASSEMBLY_H

#include "transport/mesh.h"

typedef struct tti_assembly tti_assembly;

/** What the assembly tells, from within tti_assembly_turn(). */
typedef struct tti_assembly_hooks {
    void *ctx;
    bool (*wants)(void *ctx, int rank); /* whether a connection to rank is of use */
    void (*present)(void *ctx, int rank);
    void (*absent)(void *ctx, int rank);
    void (*gone)(void *ctx, int rank); /* once */
    void (*heard)(void *ctx, int rank, const void *message, size_t bytes);
} tti_assembly_hooks;

/** For a group of n members, of which member r is ranks[r] in mesh; rank is this one. All messages have
 * message_bytes. topic: what keeps groups of one mesh apart.
 * mesh can assemble.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_assembly_open(tti_mesh *mesh, const int *ranks, int n, int rank, uint64_t topic, size_t message_bytes,
                               const tti_assembly_hooks *hooks, tti_assembly **assembly_out);
/** Close what is open; what was not sent is not. NULL is fine. */
void tti_assembly_close(tti_assembly *as);

/** Queue a message; it goes when the way to rank is there, and is lost with it. */
void tti_assembly_send(tti_assembly *as, int rank, const void *message, size_t bytes);
/** Move what moves, until the deadline at the latest, or until tti_assembly_wake(). */
void tti_assembly_turn(tti_assembly *as, int64_t until_ns);
/** From any thread: end the turn that is under way, or the next one. */
void tti_assembly_wake(tti_assembly *as);
/** Let what is queued for connections that are there go out, until the deadline at the latest. */
void tti_assembly_flush(tti_assembly *as, int64_t until_ns);

/** What is known of a member that is gone. */
const char *tti_assembly_words(const tti_assembly *as, int rank);

#endif
