/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/herald.h - tells a job's ranks, on every host, which of its processes have ended. */
#ifndef TTI_ELASTIC_HERALD_H
#define TTI_ELASTIC_HERALD_H

#include <stdbool.h>
#include <stdint.h>
#include <tutti/store.h>
#include "elastic/supervisor.h"
#include "watch/bulletin.h"

typedef struct tti_herald tti_herald;

/** The job as this host sees it. Strings are borrowed until tti_herald_end(). */
typedef struct tti_herald_config {
    int         nproc;  /* ranks on each host */
    int         spares; /* and replacements behind them */
    int         nnodes;
    int         node;
    const char *store_host; /* where the launchers of several hosts meet */
    int         store_port;
    const char *secret_file;
    bool        keep;           /* ranks are kept when others fail */
    const char *run_id;         /* as it was given; NULL: none */
    tutti_store_server *server; /* of that store, where it is; NULL elsewhere. Outlives the herald */
} tti_herald_config;

/** Begin; with several hosts this starts threads, which find the job's store when it is there.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_herald_begin(const tti_herald_config *config, tti_herald **herald_out);

/** The descriptor that ranks inherit; close-on-exec here. */
int tti_herald_fd(const tti_herald *herald);

/* The rest: one thread, that of the supervisor. Nothing of it waits, but for the end. */

/** A process of this host has ended. NULL is fine, and nobody is told.
 * @param n_coming  replacements that run, or are about to be started */
void tti_herald_tell(tti_herald *herald, int local, const tti_rank_end *end, int n_coming);

/** This launcher is going to end its ranks: because of the end of one of them, which has been told, or, with local -1, because of
 * a signal that came. */
void tti_herald_tell_why(tti_herald *herald, int local, int signal);

/** Whether all launchers that are there know that, or cannot be told; at once without other hosts. */
bool tti_herald_is_told(const tti_herald *herald);
/** Becomes readable then; -1: it need not be waited for. */
int tti_herald_bell(const tti_herald *herald);

/** Nothing more is told. Wait until what was is known elsewhere, until deadline_ns at the latest where no store was found
 * yet. NULL is fine. */
void tti_herald_finish(tti_herald *herald, int64_t deadline_ns);

/** What was first in the whole job, if that was on another host; as far as it is known, which is best when finished. */
bool tti_herald_first_elsewhere(const tti_herald *herald, tti_ending *out);

/** With keep: the launchers of other hosts that are gone without a word; how many. free() the list. NULL is fine: none. */
int tti_herald_gone(tti_herald *herald, tti_ending **list_out);

/** Finish, if that was not done, and free. NULL is fine. */
void tti_herald_end(tti_herald *herald);

#endif
