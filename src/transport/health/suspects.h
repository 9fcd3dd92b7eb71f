/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/suspects.h - ranks whose stream has ended without a goodbye, or who have refused one before there was any,
 * until it is known whether they live: their doors are knocked at. proof.h says what the answers prove.
 *
 * Never waits. Times are those of the book's awake time: who was stopped himself has not waited. */
#ifndef TTI_TRANSPORT_HEALTH_SUSPECTS_H
#define TTI_TRANSPORT_HEALTH_SUSPECTS_H

#include "base/port.h"
#include "transport/health/proof.h"

enum { TTI_SUSPECTS_MAX = 64, TTI_KNOCKS_MAX = 3 };
enum { TTI_KNOCK_WAY_MS = 250 }; /* a round trip that takes longer may outlast a round of knocks, all of which are answered */

typedef struct tti_suspect {
    int        rank;
    bool       in_time;  /* its stream ended while the net was well, and the way is short: silence proves something */
    bool       closed;   /* the stream came to its end: what its own kernel says, and no firewall (proof.h) */
    bool       unheard;  /* it had none: nobody had ever spoken for its host */
    bool       answered; /* its kernel has taken a connection since */
    bool       stays;    /* the first knock is such a one, and open */
    int        n_knocks; /* of this round */
    int        failed;   /* of them */
    int64_t    over_ns;  /* when this round, or the one that stays, has told all that it can */
    int64_t    knock_ns; /* when to knock next; TTI_FOREVER: not in this round */
    tti_handle knocks[TTI_KNOCKS_MAX]; /* TTI_NO_HANDLE: failed */
    unsigned   ready;    /* a bit for each knock: the last poll told something of it */
} tti_suspect;

typedef struct tti_suspects {
    tti_port   *port;
    const void *context;
    const tti_addr *(*addr_of)(const void *context, int rank);
    int         n;
    tti_suspect list[TTI_SUSPECTS_MAX];
} tti_suspects;

/** Rank is one from now on, and knocked at with the next tti_suspects_turn(). One that is one already goes on as it is.
 * False: there is no room. */
bool tti_suspects_add(tti_suspects *s, int rank, bool in_time, int64_t now_ns);
/** A stream of it came to its end, and was not reset; fine if it is none. */
void tti_suspects_note_closed(tti_suspects *s, int rank);
/** The same of one that there was no stream with: it is knocked at from at_ns on. */
bool tti_suspects_doubt(tti_suspects *s, int rank, int64_t at_ns);
/** It is none any more; fine if it is not. */
void tti_suspects_drop(tti_suspects *s, int rank);
void tti_suspects_drop_all(tti_suspects *s);
/** Knock anew, from then on, which is not now. */
void tti_suspects_again(tti_suspects *s, int rank, int64_t at_ns);
/** NULL: rank is none. */
const tti_suspect *tti_suspects_find(const tti_suspects *s, int rank);

/** Knock, and look what has come: a rank whose door says something, which the caller rules on and drops, or knocks at again;
 * -1: there is none. To be called until then. */
int tti_suspects_turn(tti_suspects *s, int64_t now_ns, tti_sign *sign_out);
/** When to turn at the latest, if nothing comes. */
int64_t tti_suspects_next_ns(const tti_suspects *s);

/** What to poll: how many, TTI_SUSPECTS_MAX * TTI_KNOCKS_MAX at most. */
int tti_suspects_fill(const tti_suspects *s, tti_poll *set);
/** What the poll of those has told; before anything else happens to them. */
void tti_suspects_note(tti_suspects *s, const tti_poll *set);

#endif
