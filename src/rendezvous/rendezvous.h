/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous/rendezvous.h - how a process learns who it is and where the others' store stands. */
#ifndef TTI_RENDEZVOUS_RENDEZVOUS_H
#define TTI_RENDEZVOUS_RENDEZVOUS_H

#include "wire/addr.h"
#include <tutti/store.h>

enum { TTI_JOIN_BACKENDS_MAX = 128 };

typedef struct tti_rendezvous_config {
    tti_port    *port;
    const char  *url;        /* NULL: env:// */
    tutti_store *store;      /* instead of url; borrowed */
    const char  *store_host; /* NULL; or where that store stands, if it is not one of ours */
    int          rank;       /* counts only if world_size > 0 */
    int          world_size; /* 0: from the URL or the environment */
    bool         is_newcomer; /* to a world that has members: rank and world_size are any that serve nothing, and what the
                                 URL tells of them does not count */
    int64_t      timeout_ms; /* 0: TUTTI_TIMEOUT_MS; -1: none */
} tti_rendezvous_config;

/** What a rendezvous gives. Release it with tti_join_release(). */
typedef struct tti_join {
    tutti_store *store;      /* a reference of this join's */
    bool         user_store; /* the store came from the caller: its keys get no prefix of ours */
    int          rank;
    int          world_size;
    int64_t      timeout_ms;                /* never 0; -1: none */
    int64_t      deadline_ns;               /* when joining must be over */
    char         listen_host[TTI_HOST_MAX]; /* numeric address that other hosts can reach */
    bool         rank0_serves;              /* the store ends with the process of rank 0 */
    bool         another_serves;            /* on rank 0: the store is another rank 0's; no world is opened in it */
    tti_addr     way;                       /* where the connection to the store begins; family NONE: not known */
    struct tti_beacon *beacon;              /* rank 0, under a scheduler on one host: tells the store's port */
    int64_t     *number_out;                /* NULL; or where joining leaves the world's number, also when the
                                               world cannot be made then */
    int64_t     *refused_out; /* NULL; or where joining leaves the number of the world that this process may not be in, as
                                 somebody else has its place, or rank 0 has another size or backend */
    const _Atomic bool *stop; /* NULL; or when it has become true joining waits for rank 0 no longer, as if time were up */
    char         backends[TTI_JOIN_BACKENDS_MAX]; /* what this rank makes the world of, "cpu:native"; "": it is not compared */
    bool         launched; /* these are the rank and the size that tutti's launcher has given, and its store: its bulletin is
                              about the ranks of this world */
    bool         alone;                     /* there is no other process, whatever world_size says */
    uint32_t     generation; /* of the world that is to be made, for who looks at what its members recorded; 0: 1, or the
                                number that joining finds */
} tti_join;

/** Reach, or on rank 0 of a job without a launcher's store also serve, the store of the job.
 *
 * Does not wait for other ranks, only for the store.
 *
 * @errors TUTTI_E_ARG          a piece of the URL, a variable, the rank or the size is missing,
 *                              wrong or given twice; the text names it
 *         TUTTI_E_UNSUPPORTED  another scheme
 *         TUTTI_E_NETWORK      the master is absent (host, port, ms waited), or its port is taken
 *         TUTTI_E_AUTH         the store does not know this job's secret
 *         TUTTI_E_TIMEOUT, TUTTI_E_IO, TUTTI_E_NOMEM */
tutti_status tti_rendezvous(const tti_rendezvous_config *config, tti_join *join_out);

/** Give the store back. A join that is all zeros is fine. */
void tti_join_release(tti_join *join);

#endif
