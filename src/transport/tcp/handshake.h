/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/tcp/handshake.h - what stands before the first message on a connection of two members.
 *
 * How     The hello, which proves who is there, that of TLS where it is wanted (wire/tls.h), and behind it one word of the
 *         server's, who may have a better connection to the same member:
 *
 *           client                       server
 *             | hello  <------------->  hello |
 *             |                               |  asks: what becomes of this one?
 *             | <------------------- WELCOME  |  8 bytes: magic, version, size
 *
 *         Messages follow, in both directions. A connection that is not wanted is closed instead.
 * True    The machine does no I/O, and never wants more bytes than it waits for. The client sends no
 *         message before it was welcomed, so that a connection that is dropped has carried none.
 * Rivals  Two members may begin to connect to each other at once. The attempt of the lower rank is the one
 *         that stays: the lower keeps the other's waiting until its own is over, and takes it if its own fails; the higher welcomes it and
 *         drops its own. Only an attempt that has not got through to the other yet, perhaps because it
 *         cannot, gives way to one that has, whoever's it is.
 *         No message is lost with that: a member has an attempt under way, or has welcomed the other's,
 *         never both, so an attempt that is dropped was not welcomed. Whoever is kept waiting has a stream
 *         to the other all the while, whose end tells it of the other's. */
#ifndef TTI_TRANSPORT_TCP_HANDSHAKE_H
#define TTI_TRANSPORT_TCP_HANDSHAKE_H

#include "wire/hello.h"

enum { TTI_WELCOME_BYTES = 8, TTI_WELCOME_VERSION = 1 };

/** One end's progress. Treat as opaque. */
typedef struct tti_handshake {
    tti_hello hello;
    int       state;
    size_t    done; /* bytes of word that have come or gone */
    uint8_t   word[TTI_WELCOME_BYTES];
} tti_handshake;

/** Start; config as for tti_hello_begin(). */
void tti_handshake_begin(tti_handshake *shake, tti_port *port, const tti_hello_config *config);
/** Bytes to be sent now; NULL and 0 when there are none. */
const void *tti_handshake_output(const tti_handshake *shake, size_t *bytes_out);
/** So many of them have gone. */
void tti_handshake_sent(tti_handshake *shake, size_t bytes);
/** How many bytes to read at most; 0: none (sending, asking, done, failed). */
size_t tti_handshake_wants(const tti_handshake *shake);
/** Take what was read.
 * @errors as tti_hello_feed(); TUTTI_E_AUTH when the word is none */
tutti_status tti_handshake_feed(tti_handshake *shake, const void *data, size_t bytes);

/** After a failure: as tti_hello_last_words(). */
const void *tti_handshake_last_words(const tti_handshake *shake, size_t *bytes_out);

/** The hello is over, and the stream is to be sealed: nothing else goes on until tti_handshake_sealed(). */
bool tti_handshake_seals(const tti_handshake *shake);
const tti_hello *tti_handshake_hello(const tti_handshake *shake);
void tti_handshake_sealed(tti_handshake *shake);

/** Server: the peer has proved itself, and waits for tti_handshake_welcome() or the end of the stream. */
bool tti_handshake_asks(const tti_handshake *shake);
void tti_handshake_welcome(tti_handshake *shake);
/** Messages may follow. */
bool tti_handshake_done(const tti_handshake *shake);
/** The rank that the peer told; when it asks or is done. */
uint32_t tti_handshake_peer_rank(const tti_handshake *shake);
/** Wipe it. */
void tti_handshake_release(tti_handshake *shake);

/** How the way to another member stands. */
typedef enum tti_way {
    TTI_WAY_NONE,   /* nobody has needed it yet */
    TTI_WAY_WANTED, /* an attempt is to begin */
    TTI_WAY_MAKING, /* an attempt is under way, or a welcome to the peer's */
    TTI_WAY_OPEN,   /* there is a link */
    TTI_WAY_LOST    /* the peer is gone, for ever; or it is this member */
} tti_way;

/** An attempt of our own at a member. */
typedef enum tti_attempt { TTI_ATTEMPT_NONE, TTI_ATTEMPT_CALLS, TTI_ATTEMPT_TALKS } tti_attempt;

typedef enum tti_verdict { TTI_WELCOME_IT, TTI_HOLD_IT, TTI_REFUSE_IT } tti_verdict;

/** What becomes of a connection that peer has made, with that attempt of our own under way. */
tti_verdict tti_judge_rival(int rank, int peer, tti_way way, tti_attempt own);

#endif
