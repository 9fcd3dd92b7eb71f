/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/shm/pull.h - large payloads that the receiver copies out of the sender's memory, once.
 *
 * pull.c has the protocol. */
#ifndef TTI_TRANSPORT_SHM_PULL_H
#define TTI_TRANSPORT_SHM_PULL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Payloads of these sizes are offered; others go through the bulk ring. */
typedef struct tti_pull_sizes {
    uint64_t min, max;
} tti_pull_sizes;

/** own_cores: every rank of the host can have a core. ring_bytes: what a bulk ring holds. */
tti_pull_sizes tti_pull_sizes_of(bool own_cores, size_t ring_bytes);

/** In shared memory, on a line of its own; zero at first. Both sides write it, by compare and exchange. */
typedef _Atomic uint64_t tti_offer_word;

/** The sender's side. */
typedef struct tti_offerer {
    tti_offer_word *word;
    uint64_t        seen;    /* the word, as it was last read or written */
    uint64_t        bytes;   /* of the offer */
    uint64_t        told;    /* of them, those that were told of */
    bool            open;    /* the receiver may be reading */
    bool            refused; /* it cannot: nothing is offered any more */
} tti_offerer;

/** Offer bytes; the frame that tells of them goes out afterwards, with release order. */
void tti_offer_begin(tti_offerer *offerer, uint64_t bytes);
/** The frame could not go out: nobody was told of the offer. */
void tti_offer_undo(tti_offerer *offerer);
/** How many bytes more were taken, 0 if none; looks at the word if the offer is open, and closes it when all were
 * taken, or it was refused. */
uint64_t tti_offer_progress(tti_offerer *offerer);
/** From here on nothing more is taken. */
void tti_offer_retract(tti_offerer *offerer);

/** The pid of a process of this host, as this process sees it; 0: it does not, or cannot. */
pid_t tti_pid_of(int pidfd);

/** The receiver's side. */
typedef struct tti_puller {
    pid_t           pid; /* of the sender, as this process sees it; 0: unknown, or not asked for yet: */
    int             pidfd; /* of the sender; 0: none */
    bool            proved;
    tti_offer_word *word;
    uint64_t        seen;    /* what the word must be for this side to go on */
    uint64_t        address; /* of the offer, in the sender's memory */
    uint64_t        done;
    unsigned        number; /* of the offer */
    bool            open;
} tti_puller;

/** What proves that the process of that pid is the sender: bytes that lie at an address of its memory. */
typedef struct tti_proof {
    uint64_t    address;
    const void *expected;
    size_t      bytes;
} tti_proof;

/** An offer has come. Refuses it if the sender's memory cannot be read. */
void tti_pull_begin(tti_puller *puller, uint64_t address, const tti_proof *proof);
/** Copy at most bytes: how many. 0: the offer is closed, the rest comes another way. -EAGAIN: the sender may be
 * dead. */
int64_t tti_pull(tti_puller *puller, void *out, size_t bytes);

#endif
