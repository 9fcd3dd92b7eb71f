/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/carried/carried.h - carrier and links as their files see them.
 *
 *   carrier.c  life, the thread, what the transport tells
 *   carried.c  the link: bytes to parcels and back, their order, how many may be under way
 *   pact.c     what two ends say to each other over their connection: before the first parcel, and after the last
 *
 * Lock    The carrier's lock guards all of this and the transport. Taken behind the messenger's by those who use a
 *         link, alone by the carrier's thread; nobody takes the messenger's inside of it. */
#ifndef TTI_TRANSPORT_CARRIED_CARRIED_H
#define TTI_TRANSPORT_CARRIED_CARRIED_H

#include "base/thread.h"
#include "transport/carried/carrier.h"

enum {
    TTI_PARCEL_HEAD = 40,
    TTI_PARCEL_BYTES = 64 << 10,              /* with its head */
    TTI_CARRIED_WINDOW = 1 << 20,             /* bytes of parcels with their heads that the receiver has not read, at most */
    TTI_CARRIED_TELL = TTI_CARRIED_WINDOW / 4, /* read since the sender was last told: it is told again */
    TTI_CARRIED_LENT_LEAST = 4 << 10,         /* bytes of a parcel for which a transport's buffer is kept */
    TTI_CARRIED_TOKEN = 16,
    TTI_PACT_CARD = 64, /* before the address */
    TTI_PACT_WORD = 16,
    TTI_CARRIED_WORDS = 320, /* of why a way is broken */
    TTI_CARRIED_GRACE_MS = 50, /* for parcels that were on their way when the connection ended */
};

/** A parcel that has come and was not read to its end. */
typedef struct tti_arrival {
    struct tti_arrival *next;
    uint64_t            number;
    const uint8_t      *data; /* behind its head */
    size_t              bytes;
    void               *loan; /* the transport's memory; NULL: copy */
    uint8_t             copy[];
} tti_arrival;

typedef enum tti_carried_state {
    TTI_CARRIED_MEETS, /* cards are exchanged; nothing can be sent */
    TTI_CARRIED_OPEN,
    TTI_CARRIED_PARTS, /* its user has closed it: what was sent has to arrive */
} tti_carried_state;

typedef struct tti_carried {
    tti_link             base;
    struct tti_carried  *next_link; /* in the carrier's list */
    tti_carrier         *carrier;
    int                  peer;
    tti_carried_state    state;
    tutti_transport_way *way; /* NULL: not yet */
    /* For those who sleep: the bell is to be rung when something has come, or there is room; and whether it is. */
    tti_handle bell;
    bool       watched, rung;
    bool       blocked; /* somebody has something to send */
    /* Out. */
    uint8_t  token_out[TTI_CARRIED_TOKEN];
    uint64_t n_sent;     /* parcels with bytes in them */
    uint64_t bytes_sent;  /* with their heads */
    uint64_t bytes_taken; /* of them by the peer's reader, as far as it has told: a head with the last byte behind it */
    /* In. */
    uint8_t      token_in[TTI_CARRIED_TOKEN];
    tti_arrival *first, *last; /* rising numbers, perhaps with gaps */
    size_t       at;           /* of first, what was read */
    uint64_t     next;         /* number of the parcel that is to be read */
    uint64_t     n_arrived;
    uint64_t     bytes_arrived; /* counted as the peer counts them */
    uint64_t     got;  /* of them read */
    uint64_t     told; /* and that the peer was told */
    tti_frame    frame; /* a copy of that which lies there, aligned */
    /* How it ends. */
    bool     has_end;  /* the peer has said how many parcels it has sent in all */
    uint64_t end;
    bool     has_said; /* that all of them are here */
    bool     is_taken; /* the peer has said so of ours */
    bool     is_cut;   /* the connection has ended */
    int64_t  cut_ns;
    int      err;      /* errno; 0: it is whole */
    int64_t  err_ns;
    bool     may_be_dead; /* the transport has said so: the connection may know better */
    char     words[TTI_CARRIED_WORDS]; /* the transport's, for err; a next step may end them */
    int64_t  part_ns;  /* when it was closed */
    /* pact.c's. */
    tti_handle stream;
    int        polled; /* where it stands in the poll set; -1: nowhere */
    uint8_t   *card; /* ours: card and address; NULL: it has gone */
    size_t     card_bytes, card_gone;
    uint8_t    in[TTI_PACT_CARD];
    size_t     in_have;
    uint8_t   *address; /* the peer's, that is coming; NULL: not yet, or no more */
    size_t     address_bytes, address_have;
} tti_carried;

struct tti_carrier {
    tti_port                  *port;
    const tutti_transport_ops *ops;
    tti_link_ops               link_ops; /* under the transport's name */
    tutti_transport_hooks      hooks;
    int                        rank, n_ranks;
    tti_mutex                  lock; /* guards everything below */
    tutti_transport           *transport;
    tti_carried              **by_rank; /* [n_ranks]; NULL: none */
    uint8_t                  (*tokens)[TTI_CARRIED_TOKEN]; /* [n_ranks] of links that there are or were; 0: none yet */
    tti_carried               *links;
    int                        n_links;
    int                        n_flying; /* parcels that the transport still reads */
    uint32_t                   uses;     /* of links: whoever uses one moves all */
    bool                       wanted;   /* somebody goes to sleep, and the thread is to look after everything at once */
    bool                       armed;    /* the thread sleeps on the transport's handle, */
    bool                       called;   /* and its bell was rung since it went to sleep */
    bool                       ending;
    int64_t                    ending_ns; /* when to give up */
    unsigned                   n_strange;
    int64_t                    warn_ns;  /* of parcels of strangers: not before */
    tti_handle                 bell;
    tti_thread                 thread;
    tti_poll                  *set; /* [n_ranks + 2]; the thread's */
};

/* ---- carrier.c, lock held ---- */

/** Move what can be moved. */
void tti_carrier_move(tti_carrier *carrier);
/** Have the thread look after the transport. */
void tti_carrier_call(tti_carrier *carrier);
/** What the transport is told to call. */
tutti_transport_hooks tti_carrier_hooks(tti_carrier *carrier);
/** Take a link out, and free it with all that it has. The thread's. */
void tti_carrier_free_link(tti_carrier *carrier, tti_carried *link);

/* ---- carried.c, lock held ---- */

extern const tti_link_ops tti_carried_ops;
/** A parcel for this link, which has its token. Whether its loan is kept. */
bool tti_carried_take(tti_carried *link, const uint8_t *parcel, size_t bytes, void *loan);
/** Something has changed for those who sleep on the link. */
void tti_carried_tell(tti_carried *link);
/** A sender whose window is full waits to hear what was taken. Where that cannot be sent now, as before the peer's card is
 * there, the thread asks again. Calls the transport: not for hooks. */
void tti_carried_tell_taken(tti_carried *link);
/** It is broken, if it was not. */
void tti_carried_break(tti_carried *link, int err, const char *words);
/** Give back what has come and nobody reads any more. */
void tti_carried_drop_arrivals(tti_carried *link);

/* ---- pact.c, lock held ---- */

/** Begin to exchange cards. */
tutti_status tti_pact_begin(tti_carried *link);
/** What the stream is to be polled for; 0: nothing. */
uint8_t tti_pact_wants(const tti_carried *link);
/** Move what can be moved on the stream. */
void tti_pact_turn(tti_carried *link);
/** The last parcel was sent. */
void tti_pact_say_end(tti_carried *link);
/** Tell the peer, once it has said how many it has sent, that all are here. */
void tti_pact_say_taken(tti_carried *link);

#endif
