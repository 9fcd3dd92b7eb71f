/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/level/layout.h - which members of a group share a host. Arithmetic without state.
 *
 * Hosts are numbered in the order of their lowest group ranks; a member has a place among those of its host, in rank
 * order. All members compute the same answers. */
#ifndef TTI_COLL_LEVEL_LAYOUT_H
#define TTI_COLL_LEVEL_LAYOUT_H

#include <stdbool.h>
#include <tutti/status.h>

typedef struct tti_hosts {
    int  n_ranks;
    int  n_hosts;
    int  least; /* members of the host that has fewest */
    int  most;
    int *host;    /* [n_ranks] number of its host */
    int *place;   /* [n_ranks] among the members of its host */
    int *members; /* [n_ranks] ranks, host by host */
    int *begins;  /* [n_hosts + 1] where those of a host begin in members */
} tti_hosts;

/** From a mark of each rank's host, 0 .. n_marks-1: equal marks are one host. Takes as long as there are ranks and marks.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_hosts_make(const int *marks, int n_marks, int n_ranks, tti_hosts *layout_out);
/** Zeroed memory is fine. */
void tti_hosts_release(tti_hosts *layout);

static inline int tti_hosts_local(const tti_hosts *layout, int host)
{
    return layout->begins[host + 1] - layout->begins[host];
}

/** The rank at place of host. */
static inline int tti_hosts_rank(const tti_hosts *layout, int host, int place)
{
    return layout->members[layout->begins[host] + place];
}

/** Whether calls have two levels: several hosts, and one with several members. */
static inline bool tti_hosts_has_levels(const tti_hosts *layout)
{
    return layout->n_hosts > 1 && layout->most > 1;
}

#endif
