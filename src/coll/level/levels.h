/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/level/levels.h - the two levels of a group: its members on this host, and this rank's counterparts. */
#ifndef TTI_COLL_LEVEL_LEVELS_H
#define TTI_COLL_LEVEL_LEVELS_H

#include "coll/choose.h"
#include "coll/host/channel.h"
#include "coll/level/layout.h"
#include "coll/level/level.h"
#include "coll/net/run.h"

enum {
    TTI_LEVEL_LAG = 2, /* pieces whose messages are under way while the next one is collected */
    TTI_LEVEL_FLIGHTS = TTI_LEVEL_LAG + 1,
};

/** A piece under way. */
typedef struct tti_flight {
    tti_net    net;
    tutti_call across; /* between this rank and its counterparts */
    int64_t    first;  /* element of the call, or of each part */
    int64_t    count;
    char      *scratch;
    void     **list;   /* [n_hosts] for across */
    int64_t   *counts; /* [n_hosts] */
    bool       begun;  /* messages are under way, or may be */
} tti_flight;

struct tti_levels {
    tti_team         *whole;
    tti_hosts        layout;
    int               host;     /* of this rank */
    int               place;    /* on it */
    int               carriers; /* of a large call; known when members have met */
    tti_team          here;     /* the members of this host */
    tti_team          across;   /* those with this rank's place on each host, if all hosts have one */
    tti_host_channel *channel;  /* NULL: the host has one member */
    tti_decision      decision; /* of what goes across by carriers, who share a link, and */
    tti_decision      alone;    /* where a host has one in a call */
    char             *scratch;
    size_t            scratch_bytes;
    tti_flight        flights[TTI_LEVEL_FLIGHTS];
};

/** Allocate this rank's part of the channel of its host. NULL: the group has no two levels. whole is borrowed until the
 * close, and from now on publishes its calls where the members of this host look. */
tutti_status tti_levels_create(tti_team *whole, const tti_host_patience *patience, tti_levels **levels_out);
/** All have met: find the memory of those of this host, and settle who carries. */
tutti_status tti_levels_connect(tti_levels *levels, const tti_join *all);
/** Choose for what goes across, from what was asked for the whole group. */
void tti_levels_settle(tti_levels *levels, const tti_question *whole);
/** Waits for nobody. NULL is fine. */
void tti_levels_close(tti_levels *levels);

tti_level_figures tti_levels_figures(const tti_levels *levels);

/** Memory of so many bytes at scratch, which begins on a line; what was there is lost.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_levels_room(tti_levels *levels, size_t bytes);

/** After a failure of a call: end the messages under way, on all members, and give the flights' buffers back. Returns status,
 * with the words that it has. */
tutti_status tti_levels_give_up(tti_levels *levels, tutti_status status);

/** The group was aborted on this rank. Any thread. */
void tti_levels_abort(tti_levels *levels);

#endif
