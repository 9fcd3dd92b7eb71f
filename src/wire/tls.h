/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/tls.h - what a connection goes through after its hello, where TUTTI_TLS is 1: TLS 1.3.
 *
 *           client                                   server
 *             | hello: who is there, plain  <------->  |
 *             | ClientHello ------------------------>  |
 *             | <-------------- ServerHello, Finished  |
 *             | Finished, CONFIRM ------------------>  |
 *             | <---------------------------- CONFIRM  |
 *
 * Why     The hello comes first, so that no stranger ever reaches a parser of TLS, and two ends that would not do the
 *         same say so to each other in words.
 * Keys    TTI_SEAL_KEY: an external PSK with an ephemeral exchange (psk_dhe_ke, X25519): who learns the secret later reads
 *         nothing of what was recorded. psk = HMAC-SHA-256(secret, label, transcript of the hello): it holds for this
 *         connection, purpose, scope and generation alone. Its identity, which is sent in plain, names those.
 *         TTI_SEAL_CERT: each end shows a certificate, whose chain must lead to an authority of TUTTI_TLS_CA.
 * Confirm The first record each way is HMAC-SHA-256(secret, role label, transcript, exporter of this TLS connection). It
 *         ties a connection with certificates to the secret, so that whoever has only one of the two is not let in
 *         between (where there are certificates and no secret its key is empty, as the hello's: then it is the
 *         certificate alone that lets in); and a client knows that the server has accepted it before it goes on.
 * Suite   TLS_AES_128_GCM_SHA256, and nothing else: no older version, no ticket, no early data, no compression.
 *         After RECORDS_MAX records a direction has a new key (RFC 8446, 5.5).
 * True    The machine does no I/O but through tti_tls_io. One thread at a time.
 * End     That a stream ends says nothing by itself, as in plain: what is said on it has its own goodbyes. So its end
 *         without a close_notify, which every process that is killed leaves behind, is the end and no error. */
#ifndef TTI_WIRE_TLS_H
#define TTI_WIRE_TLS_H

#include "wire/hello.h"

enum { TTI_TLS_RECORD_BYTES = 16384 /* of plain text, at most */ };

typedef struct tti_tls tti_tls;

/** Where its bytes come from and go to. */
typedef struct tti_tls_io {
    void *context;
    /* Keep what is to be sent, all of it. False: no memory. */
    bool (*write)(void *context, const void *data, size_t bytes);
    /* What has come: as the port's recv. */
    int64_t (*read)(void *context, void *out, size_t bytes);
} tti_tls_io;

/** One end of a connection whose hello is done. What it needs of the hello is copied.
 * @errors TUTTI_E_NOMEM; of certificates TUTTI_E_IO and TUTTI_E_AUTH, whose text names the file and what is wrong */
tutti_status tti_tls_create(const tti_hello *hello, const tti_tls_io *io, tti_tls **tls_out);
/** NULL is fine. */
void tti_tls_free(tti_tls *tls);

/** Go on with the handshake: what it has to say is written, what has come is read. Not done: it waits for more to come.
 * @errors TUTTI_E_AUTH     the peer has another key or none, or a certificate that is not believed; or it said so of ours
 *         TUTTI_E_NETWORK  the stream ended or failed
 *         TUTTI_E_NOMEM    words that were written before a failure are worth sending */
tutti_status tti_tls_shake(tti_tls *tls, bool *done_out);

/** After the handshake. Take bytes, TTI_TLS_RECORD_BYTES at most, all or none: their number or -errno. */
int64_t tti_tls_write(tti_tls *tls, const void *data, size_t bytes);
/** As the port's recv; less than was asked for means that nothing more is there, or that the next read tells why it ends.
 * -EBADMSG: somebody has tampered. */
int64_t tti_tls_read(tti_tls *tls, void *out, size_t bytes);
/** Whether there is more to be read, or to be told, than the stream shows. */
bool tti_tls_has_more(const tti_tls *tls);
/** Reading has ended; every read says how. */
bool tti_tls_is_over(const tti_tls *tls);
/** Write that nothing follows. */
void tti_tls_say_end(tti_tls *tls);

/** What is spoken, for logs: "TLSv1.3, TLS_AES_128_GCM_SHA256, X25519, with the job's secret". */
void tti_tls_describe(const tti_tls *tls, char *out, size_t bytes);
/** For tests: a direction has a new key after so many records. */
void tti_tls_renew_after(tti_tls *tls, uint64_t records);

#endif
