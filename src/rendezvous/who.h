/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous/who.h - rank and size of this process, and where the job's store stands. */
#ifndef TTI_RENDEZVOUS_WHO_H
#define TTI_RENDEZVOUS_WHO_H

#include "rendezvous/rendezvous.h"
#include "rendezvous/scheduler.h"
#include "rendezvous/url.h"

/** What options, URL, environment and scheduler say. */
typedef struct tti_who {
    tti_url       url; /* env:// has become tcp:// in all but the scheme: host and port are filled in */
    int           rank;
    int           world_size;
    tti_scheduler scheduler;   /* its name is NULL where it had nothing to say */
    bool          beacon;      /* rank 0 takes any free port and tells it on this host, under the job's name */
    bool          port_chosen; /* the port is made of the job's name: another job's store may be there */
    bool          rank_by_variable; /* RANK has said the rank: no scheduler was asked */
} tti_who;

/** config->url, or env://, and no store.
 * @errors TUTTI_E_ARG  a piece is missing, wrong, or given twice; the text names it */
tutti_status tti_who_find(const tti_rendezvous_config *config, tti_who *out);

/** A rank within a world of a possible size.
 * @errors TUTTI_E_ARG */
tutti_status tti_who_check(int rank, int world_size);

#endif
