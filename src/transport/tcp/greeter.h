/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/tcp/greeter.h - connections to other members that are on their way, in both directions.
 *
 * The greeter owns a stream from its first moment until messages may pass, then hands it over. It never
 * waits and has no lock: one thread turns it (connector.c), and asks whoever owns the ways to the members
 * through hooks. handshake.h has the rules for two members that connect to each other at once. */
#ifndef TTI_TRANSPORT_TCP_GREETER_H
#define TTI_TRANSPORT_TCP_GREETER_H

#include "transport/request.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/tcp_link.h"

/** Called from within the greeter's functions, on the thread that called those. */
typedef struct tti_greeter_hooks {
    void *context;
    /* Rank has come by itself; own: we may be on the way to it as well. TTI_WELCOME_IT: the way is being
     * made from now on, and opened or lost follows. */
    tti_verdict (*judge)(void *context, int rank, tti_attempt own);
    /* The way is there; its streams, as many as were configured, are the hook's. */
    void (*opened)(void *context, int rank, const tti_handle *streams);
    /* The way that was being made is not to be had. */
    void (*lost)(void *context, int rank, const tti_cause *why);
    /* A stream for the watch threads of both members, made here or there; it is the hook's. NULL: none is wanted. */
    void (*watched)(void *context, int rank, tti_handle stream);
    /* Connecting for such a stream was refused: nobody listens where rank did, and nobody from there is at the door here, who may
     * have come to say goodbye. NULL: nobody wants to know. */
    void (*shut)(void *context, int rank);
    /* Connecting for such a stream has got as far as rank's kernel, which answers for its process also while that stands still.
     * NULL: nobody wants to know. */
    void (*reached)(void *context, int rank);
} tti_greeter_hooks;

typedef struct tti_greeter_config {
    tti_port         *port;
    int               rank;
    int               n_ranks;
    int               n_stripes; /* connections that a way has, TTI_TCP_STRIPES_MAX at most; 0 is 1. The same on all members */
    tti_handle        listener; /* borrowed */
    const char       *congestion; /* borrowed; that connections are begun with, as the listener's are. NULL: the system's */
    const tti_rails  *rails;    /* borrowed; connection k is on rail k % n, from its address to that of the other end. NULL, or n 0: none */
    const tti_handle *rail_listeners; /* [TTI_RAILS_MAX] borrowed; of rails from 1 on, the first has the listener */
    /* Where rank listens on a rail from 1 on, as tti_greeter_connect() is told of the first. */
    const tti_addr *(*addr_on)(void *context, int rank, int rail);
    const tti_secret *secret;   /* borrowed */
    uint8_t           scope[TTI_HELLO_SCOPE_BYTES];
    const char *(*whereabouts)(void *context, int rank); /* "host 'n2', pid 40112" */
    tti_greeter_hooks hooks;
} tti_greeter_config;

typedef struct tti_greeter tti_greeter;

tutti_status tti_greeter_create(const tti_greeter_config *config, tti_greeter **greeter_out);
/** Closes what is under way without a word to anybody. NULL is fine. */
void tti_greeter_free(tti_greeter *greeter);

/** Begin to connect to rank; opened or lost follows, perhaps at once. */
void tti_greeter_connect(tti_greeter *greeter, int rank, const tti_addr *addr);
/** Begin to make a stream for the watch threads, beside the way: reached and watched follow, or shut, with a turn, or nothing. One at
 * a time to a rank: one that is under way goes on, however long the way. */
void tti_greeter_watch(tti_greeter *greeter, int rank, const tti_addr *addr);
/** Give up an attempt at rank, if nothing has passed yet and it does not wait for ours: whether it was
 * given up. Neither opened nor lost follows then. */
bool tti_greeter_withdraw(tti_greeter *greeter, int rank);

/** Fill set, which has room for tti_greeter_room(), with what to poll: how many, and until when at most. */
int tti_greeter_fill(tti_greeter *greeter, tti_poll *set, int64_t *until_ns_out);
int tti_greeter_room(const tti_greeter *greeter);
/** Move what can move after a poll of that set. */
void tti_greeter_turn(tti_greeter *greeter, const tti_poll *set, int n);

#endif
