/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/hello.h - the first bytes on every connection: who is there, and the proof that they belong.
 *
 * How     Three messages of fixed size, little endian, nothing else before the third has been
 *         checked:
 *
 *           client                                   server
 *             | CLIENT_HELLO  fields, nonce            |
 *             |--------------------------------------->|  checks fields
 *             | SERVER_HELLO  fields, nonce, proof     |
 *             |<---------------------------------------|
 *   checks    | CLIENT_PROOF  proof                    |
 *             |--------------------------------------->|  checks proof
 *
 *         proof = HMAC-SHA-256(secret, role label, CLIENT_HELLO, fields and nonce of SERVER_HELLO),
 *         with one label per role, so that nobody's proof can be sent back to him. Both nonces are
 *         fresh and random, so that nothing recorded works twice. A job without a secret runs the
 *         same messages with an empty key.
 * TLS     The upper half of the purpose says what the connection goes through from here on (tti_seal), so that both
 *         proofs cover it and nobody in between can talk the two ends out of it. A server that does something else
 *         answers all the same before it closes: both ends can say what is wrong then. tls.h has what follows.
 * True    The machine does no I/O. It never wants more bytes than the message it waits for, so what
 *         the peer sends behind its hello stays in the socket. After a failure it wants nothing and
 *         has no output: close the connection.
 * Fails   TUTTI_E_AUTH for a stranger (magic, purpose, scope, generation, proof), TUTTI_E_MISMATCH
 *         for another version of the protocol. */
#ifndef TTI_WIRE_HELLO_H
#define TTI_WIRE_HELLO_H

#include "base/port.h"
#include "wire/secret.h"

enum {
    TTI_HELLO_VERSION = 1,
    TTI_HELLO_SCOPE_BYTES = 16,
    TTI_HELLO_NONCE_BYTES = 32,
    TTI_HELLO_PROOF_BYTES = 32,
    /* magic 4, version 2, size 2, purpose 4, rank 4, generation 8, scope 16, nonce 32 */
    TTI_HELLO_FIELDS_BYTES = 72,
    TTI_HELLO_CLIENT_BYTES = TTI_HELLO_FIELDS_BYTES,
    TTI_HELLO_SERVER_BYTES = TTI_HELLO_FIELDS_BYTES + TTI_HELLO_PROOF_BYTES,
    TTI_HELLO_FINISH_BYTES = TTI_HELLO_PROOF_BYTES,
    TTI_HELLO_TRANSCRIPT_BYTES = 2 * TTI_HELLO_FIELDS_BYTES
};

/** What the connection is for; a server serves one purpose. */
typedef enum tti_purpose {
    TTI_PURPOSE_STORE = 1,
    TTI_PURPOSE_PEER = 2,
    TTI_PURPOSE_LOCAL = 3,
    TTI_PURPOSE_ASSEMBLY = 4
} tti_purpose;

/** A rank that is not known yet. */
#define TTI_HELLO_NO_RANK UINT32_MAX

typedef struct tti_hello_config {
    bool              client;                       /* this end opened the connection */
    tti_purpose       purpose;                      /* equal at both ends */
    uint64_t          generation;                   /* equal at both ends */
    uint8_t           scope[TTI_HELLO_SCOPE_BYTES]; /* the world's id; equal at both ends */
    uint32_t          rank;                         /* ours; told, not compared */
    bool              local;  /* a Unix socket, which no network sees: it stays plain whatever the secret says */
    const tti_secret *secret; /* borrowed until the hello, and a handshake behind it, is done; NULL: none */
    const char       *peer;   /* who it is, for words: "store 10.0.0.1:29500"; NULL: "the peer" */
} tti_hello_config;

/** One end's progress. Treat as opaque; zero it or tti_hello_release() it when done. */
typedef struct tti_hello {
    tti_hello_config config;
    int              state;
    uint32_t         peer_rank;
    size_t           got;  /* bytes of in[] that have come */
    size_t           sent; /* bytes of out[] that have gone */
    size_t           out_size;
    uint8_t          in[TTI_HELLO_SERVER_BYTES];
    uint8_t          out[TTI_HELLO_SERVER_BYTES];
    uint8_t          transcript[TTI_HELLO_TRANSCRIPT_BYTES]; /* equal at both ends when it is done */
    bool             has_last_words;
} tti_hello;

/** Start: the client has its first message ready, the server waits. port gives the nonce. */
void tti_hello_begin(tti_hello *hello, tti_port *port, const tti_hello_config *config);

/** Bytes to be sent now; NULL and 0 when there are none. */
const void *tti_hello_output(const tti_hello *hello, size_t *bytes_out);
/** So many bytes of them were taken by the stream. */
void tti_hello_sent(tti_hello *hello, size_t bytes);

/** How many bytes the next message still needs; read no more than that. 0: none (sending, done,
 * failed). */
size_t tti_hello_wants(const tti_hello *hello);
/** Take what was read, at most tti_hello_wants() bytes. */
tutti_status tti_hello_feed(tti_hello *hello, const void *data, size_t bytes);

/** The peer has proved itself and has been sent everything it needs. */
bool tti_hello_done(const tti_hello *hello);
/** Client: the server has answered, and waits for the proof, of which nothing has gone: whatever it has to say comes behind that. */
bool tti_hello_is_answered(const tti_hello *hello);
/** Whether the other end has seen this one's proof, or may have, and its own is all that is left to come. */
bool tti_hello_awaits_proof(const tti_hello *hello);
/** The rank that the peer told; TTI_HELLO_NO_RANK if it has none. After tti_hello_done(). */
uint32_t tti_hello_peer_rank(const tti_hello *hello);
/** What the connection is to go through from here on. */
tti_seal tti_hello_seal(const tti_hello *hello);
/** After a failure: what the peer may still be sent, as far as it fits at once, so that it can say what is wrong, too.
 * NULL and 0 as a rule. */
const void *tti_hello_last_words(const tti_hello *hello, size_t *bytes_out);
/** Wipe it. */
void tti_hello_release(tti_hello *hello);

/** The part of a hello that was begun, on a connected stream, waiting through port until until_ns at most: after TUTTI_E_TIMEOUT it
 * may be advanced further, after anything else it is over. What goes on behind it is the caller's.
 * @errors as tti_hello_run() */
tutti_status tti_hello_advance(tti_port *port, tti_handle handle, tti_hello *hello, int64_t until_ns);
/** All of it on a connected stream, waiting through port, and the handshake of TLS behind it where there is one.
 * peer_rank_out may be NULL. The stream stays the caller's; close it after a failure.
 *
 * @errors as above and in tls.h, TUTTI_E_TIMEOUT, TUTTI_E_NETWORK when the peer closes or the stream fails */
tutti_status tti_hello_run(tti_port *port, tti_handle handle, const tti_hello_config *config,
                           int64_t deadline_ns, uint32_t *peer_rank_out);

#endif
