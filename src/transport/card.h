/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/card.h - what a member leaves on the board for the others. */
#ifndef TTI_TRANSPORT_CARD_H
#define TTI_TRANSPORT_CARD_H

#include "transport/mesh.h"
#include "transport/vigil.h"
#include "wire/hello.h"

enum { TTI_CARD_VERSION = 8, TTI_CARD_HINT_BYTES = 32, TTI_CARD_MACHINE_BYTES = 16, TTI_CARD_HOST_MAX = 64 };

/** Crosses processes and hosts: fixed size, little endian, versioned. */
typedef struct tti_card {
    uint32_t magic;
    uint16_t version;
    uint16_t size;
    int32_t  rank;
    int32_t  n_ranks;
    int64_t  pid;
    uint8_t  host_hint[TTI_CARD_HINT_BYTES]; /* equal: perhaps the same host; then it must be proved */
    uint8_t  machine[TTI_CARD_MACHINE_BYTES]; /* equal: they share cores, as containers of one machine do */
    uint8_t  token[TTI_TOKEN_BYTES];         /* stands in the member's heap */
    char     local_name[TTI_LOCAL_NAME_MAX]; /* of its abstract socket */
    char     host_name[TTI_CARD_HOST_MAX];   /* for people */
    uint8_t  family;                         /* of its TCP listener: 4 or 6 */
    uint8_t  stripes;                        /* connections of a pair by TCP, on each rail; all members have as many */
    uint16_t tcp_port;
    uint32_t scope;
    uint8_t  ip[16];
    uint8_t  world[TTI_HELLO_SCOPE_BYTES]; /* rank 0's: the world's random number, which binds every connection to it */
    uint64_t pid_space;                    /* where pid counts: with machine and pid it names a process */
    uint16_t assembly_port; /* of the TCP listener for agreeing without a store; 0: none */
    uint8_t  seal;          /* tti_seal of its TCP connections; the same on all members */
    uint8_t  tcp_only;      /* 1: every member counts as a host of its own; 0: memory inside a host */
    uint8_t  transport[4];  /* of the name of what carries the bytes, a fingerprint; 0: TCP. The same on all members */
    uint8_t  rails;         /* interfaces that connections are dealt to; more than 1: it has left them beside (meet_rails.c) */
    uint8_t  unused[7];
} tti_card;

_Static_assert(sizeof(tti_card) == 280, "the card crosses processes and hosts");

/** Fill in everything but the listeners. */
void tti_card_begin(tti_card *card, const tti_mesh_config *config);

/** Who reads the cards for the ranks of a host, and is its office: what it leaves on the board, under a key of the host.
 * Crosses processes, as cards do. */
typedef struct tti_clerk {
    uint32_t magic;
    uint16_t version;
    uint16_t size;
    int32_t  rank; /* -1, here: there is none, and everybody reads for himself */
    uint32_t unused;
    uint8_t  host_hint[TTI_CARD_HINT_BYTES];
    uint8_t  scope[TTI_HELLO_SCOPE_BYTES];   /* binds connections to it */
    char     local_name[TTI_LOCAL_NAME_MAX]; /* of its abstract socket */
} tti_clerk;

_Static_assert(sizeof(tti_clerk) == 64 + TTI_LOCAL_NAME_MAX, "the clerk crosses processes");

/** Leave own, and wait until everybody's are to be had. They are in cards[n_ranks] then, checked for versions and world sizes;
 * or *unread_out, and they are to be fetched from clerk_out. */
tutti_status tti_cards_exchange(const tti_mesh_config *config, const tti_card *own, tti_card *cards, tti_clerk *clerk_out,
                                bool *unread_out);
/** Read them, after all, where they cannot be fetched. */
tutti_status tti_cards_read_alone(const tti_mesh_config *config, tti_card *cards);
/** The same checks, of cards that were fetched. */
tutti_status tti_cards_check(const tti_mesh_config *config, const tti_card *cards);

/** Waiting for cards, or for what comes before them. */
tti_vigil tti_card_vigil(const tti_mesh_config *config);

/** Whether two members are threads of one process. */
bool tti_card_same_process(const tti_card *a, const tti_card *b);

/** Whether it is certain that a's loopback is not b's: they are on two machines, or in two network namespaces of one. */
bool tti_card_is_elsewhere(const tti_card *a, const tti_card *b);
/** Whether each card's address can be one for all: one of loopback is for those of its own host alone.
 * @errors TUTTI_E_ARG  names the rank, its address, and one that is elsewhere */
tutti_status tti_cards_check_addresses(const tti_card *cards, int n_ranks);

tti_addr tti_card_addr(const tti_card *card);

#endif
