/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello.c - the state machine of the hello, and its driver over a port; the design stands in
 * hello.h. */
#include "wire/hello.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <openssl/crypto.h>
#include <tutti/private.h>
#include "base/doubt.h"
#include "wire/bytes.h"
#include "wire/crypto.h"
#include "wire/mac.h"
#include "wire/tls_stream.h"

enum state {
    SEND_CLIENT,
    READ_CLIENT,
    SEND_SERVER,
    READ_SERVER,
    SEND_FINISH,
    READ_FINISH,
    DONE,
    FAILED
};

/* Where the fields of a hello stand. */
enum {
    AT_VERSION = 4,
    AT_SIZE = 6,
    AT_PURPOSE = 8,
    AT_RANK = 12,
    AT_GENERATION = 16,
    AT_SCOPE = 24,
    AT_NONCE = 40,
    HEAD_BYTES = 8 /* magic, version, size: the part that every version has */
};
_Static_assert(AT_SCOPE + TTI_HELLO_SCOPE_BYTES == AT_NONCE, "scope ends where the nonce begins");
_Static_assert(AT_NONCE + TTI_HELLO_NONCE_BYTES == TTI_HELLO_FIELDS_BYTES,
               "the nonce ends the fields");
_Static_assert((int)TTI_HELLO_PROOF_BYTES == (int)TTI_MAC_BYTES, "a proof is a whole HMAC");
_Static_assert(TTI_HELLO_CLIENT_BYTES == 72 && TTI_HELLO_SERVER_BYTES == 104 &&
                   TTI_HELLO_FINISH_BYTES == 32,
               "version 1 on the wire");

enum { SEAL_SHIFT = 16 }; /* in the purpose */

static const uint8_t magic[4] = { 'T', 'U', 'T', 'I' };
static const char    server_label[16] = "tutti-server-1";
static const char    client_label[16] = "tutti-client-1";

static const char *peer_name(const tti_hello *hello)
{
    return hello->config.peer != NULL ? hello->config.peer : "the peer";
}

tti_seal tti_hello_seal(const tti_hello *hello)
{
    const tti_secret *secret = hello->config.secret;

    return hello->config.local || hello->config.purpose == TTI_PURPOSE_LOCAL || secret == NULL ? TTI_SEAL_NONE
                                                                                                 : secret->seal;
}

static void write_fields(tti_hello *hello, tti_port *port, uint16_t size)
{
    uint8_t *at = hello->out;

    memcpy(at, magic, sizeof magic);
    at = tti_put_u16(at + sizeof magic, TTI_HELLO_VERSION);
    at = tti_put_u16(at, size);
    at = tti_put_u32(at, (uint32_t)hello->config.purpose | (uint32_t)tti_hello_seal(hello) << SEAL_SHIFT);
    at = tti_put_u32(at, hello->config.rank);
    at = tti_put_u64(at, hello->config.generation);
    memcpy(at, hello->config.scope, TTI_HELLO_SCOPE_BYTES);
    port->ops->random(port, hello->out + AT_NONCE, TTI_HELLO_NONCE_BYTES);
}

/* The byte after the label keeps "no secret" apart from a secret of zeros, which pads to the same
 * key. */
static bool make_proof(const tti_hello *hello, const char label[16],
                       uint8_t out[TTI_HELLO_PROOF_BYTES])
{
    const tti_secret *secret = hello->config.secret;
    const bool        present = secret != NULL && secret->present;
    uint8_t           text[16 + 1 + sizeof hello->transcript];
    uint8_t           key[TTI_SECRET_BYTES];
    bool              made;

    memcpy(text, label, 16);
    text[16] = present;
    memcpy(text + 17, hello->transcript, sizeof hello->transcript);
    if (present)
        tti_secret_reveal(secret, key);
    made = tti_mac(key, present ? sizeof key : 0, text, sizeof text, out);
    OPENSSL_cleanse(key, sizeof key);
    return made;
}

void tti_hello_begin(tti_hello *hello, tti_port *port, const tti_hello_config *config)
{
    tti_crypto_begin();
    *hello = (tti_hello){ .config = *config, .peer_rank = TTI_HELLO_NO_RANK };
    if (config->client) {
        write_fields(hello, port, TTI_HELLO_CLIENT_BYTES);
        hello->out_size = TTI_HELLO_CLIENT_BYTES;
        hello->state = SEND_CLIENT;
    } else {
        write_fields(hello, port,
                     TTI_HELLO_SERVER_BYTES); /* the proof follows when it can be made */
        hello->state = READ_CLIENT;
    }
}

const void *tti_hello_output(const tti_hello *hello, size_t *bytes_out)
{
    *bytes_out = hello->out_size - hello->sent;
    return *bytes_out > 0 ? hello->out + hello->sent : NULL;
}

static void enter(tti_hello *hello, enum state state)
{
    hello->state = state;
    hello->got = 0;
    hello->sent = 0;
    hello->out_size = 0;
}

void tti_hello_sent(tti_hello *hello, size_t bytes)
{
    assert(bytes <= hello->out_size - hello->sent);
    hello->sent += bytes;
    if (hello->sent < hello->out_size || hello->out_size == 0)
        return;
    if (hello->state == SEND_CLIENT) {
        memcpy(hello->transcript, hello->out, TTI_HELLO_FIELDS_BYTES);
        enter(hello, READ_SERVER);
    } else if (hello->state == SEND_SERVER) {
        enter(hello, READ_FINISH);
    } else if (hello->state == SEND_FINISH) {
        enter(hello, DONE);
    }
}

static size_t message_bytes(const tti_hello *hello)
{
    switch (hello->state) {
    case READ_CLIENT: return TTI_HELLO_CLIENT_BYTES;
    case READ_SERVER: return TTI_HELLO_SERVER_BYTES;
    case READ_FINISH: return TTI_HELLO_FINISH_BYTES;
    default: return 0;
    }
}

size_t tti_hello_wants(const tti_hello *hello)
{
    return message_bytes(hello) - hello->got;
}

static tutti_status foreign(const tti_hello *hello)
{
    return tti_fail(TUTTI_E_AUTH, "%s is not a tutti peer: it began with %02x %02x %02x %02x",
                    peer_name(hello), hello->in[0], hello->in[1], hello->in[2], hello->in[3]);
}

/* The first eight bytes are judged as soon as they are there: a stranger may never send more. */
static tutti_status check_head(const tti_hello *hello)
{
    const unsigned version = tti_get_u16(hello->in + AT_VERSION);
    const unsigned size = tti_get_u16(hello->in + AT_SIZE);

    if (memcmp(hello->in, magic, hello->got < sizeof magic ? hello->got : sizeof magic) != 0)
        return foreign(hello);
    if (hello->got < HEAD_BYTES)
        return TUTTI_OK;
    if (version != TTI_HELLO_VERSION)
        return tti_fail(TUTTI_E_MISMATCH,
                        "%s speaks version %u of the hello, we speak version %d\n"
                        "  next: use the same build of tutti in the whole job",
                        peer_name(hello), version, TTI_HELLO_VERSION);
    if (size != message_bytes(hello))
        return tti_fail(TUTTI_E_AUTH, "%s sent a hello of %u bytes, version %d has %zu",
                        peer_name(hello), size, TTI_HELLO_VERSION, message_bytes(hello));
    return TUTTI_OK;
}

static const char *seal_words(unsigned seal)
{
    switch (seal) {
    case TTI_SEAL_NONE: return "plain TCP";
    case TTI_SEAL_KEY: return "TLS with the job's secret";
    case TTI_SEAL_CERT: return "TLS with certificates";
    default: return "an encryption that is not known here";
    }
}

/* After the other fields: who gets an answer to this belongs here by all the rest. */
static tutti_status check_seal(const tti_hello *hello)
{
    const unsigned theirs = tti_get_u32(hello->in + AT_PURPOSE) >> SEAL_SHIFT;
    const unsigned ours = tti_hello_seal(hello);

    if (theirs == ours)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_MISMATCH,
                    "%s goes on with %s, this process with %s\n"
                    "  next: set TUTTI_TLS, and TUTTI_TLS_CERT where it is used, in all processes of the job or in none",
                    peer_name(hello), seal_words(theirs), seal_words(ours));
}

static tutti_status check_fields(const tti_hello *hello)
{
    const unsigned purpose = tti_get_u32(hello->in + AT_PURPOSE) & ((1U << SEAL_SHIFT) - 1);
    const uint64_t generation = tti_get_u64(hello->in + AT_GENERATION);

    if (purpose != (unsigned)hello->config.purpose)
        return tti_fail(TUTTI_E_AUTH, "%s came for purpose %u, this connection is for purpose %u",
                        peer_name(hello), purpose, (unsigned)hello->config.purpose);
    if (memcmp(hello->in + AT_SCOPE, hello->config.scope, TTI_HELLO_SCOPE_BYTES) != 0)
        return tti_fail(TUTTI_E_AUTH, "%s belongs to another world", peer_name(hello));
    if (generation != hello->config.generation)
        return tti_fail(TUTTI_E_AUTH,
                        "%s is of generation %" PRIu64 ", we are of generation %" PRIu64,
                        peer_name(hello), generation, hello->config.generation);
    return TUTTI_OK;
}

static tutti_status check_proof(const tti_hello *hello, const char label[16], const uint8_t *theirs)
{
    uint8_t wanted[TTI_HELLO_PROOF_BYTES];
    int     differs;

    if (!make_proof(hello, label, wanted))
        return tti_fail(TUTTI_E_NOMEM, "cannot compute the proof of %s", peer_name(hello));
    differs = CRYPTO_memcmp(wanted, theirs, sizeof wanted);
    OPENSSL_cleanse(wanted, sizeof wanted);
    if (differs != 0)
        return tti_fail(TUTTI_E_AUTH,
                        "%s does not know this job's secret\n"
                        "  next: give all processes the same TUTTI_SECRET_FILE",
                        peer_name(hello));
    return TUTTI_OK;
}

static tutti_status take_client(tti_hello *hello)
{
    uint8_t      ours[TTI_HELLO_SERVER_BYTES];
    tutti_status st = check_fields(hello);

    if (st != TUTTI_OK)
        return st;
    memcpy(hello->transcript, hello->in, TTI_HELLO_FIELDS_BYTES);
    memcpy(hello->transcript + TTI_HELLO_FIELDS_BYTES, hello->out, TTI_HELLO_FIELDS_BYTES);
    memcpy(ours, hello->out, TTI_HELLO_FIELDS_BYTES);
    if (!make_proof(hello, server_label, ours + TTI_HELLO_FIELDS_BYTES))
        return tti_fail(TUTTI_E_NOMEM, "cannot compute our proof for %s", peer_name(hello));
    hello->peer_rank = tti_get_u32(hello->in + AT_RANK);
    enter(hello, SEND_SERVER);
    memcpy(hello->out, ours, sizeof ours);
    st = check_seal(hello);
    hello->has_last_words = st != TUTTI_OK;
    if (st == TUTTI_OK)
        hello->out_size = sizeof ours;
    return st;
}

static tutti_status take_server(tti_hello *hello)
{
    tutti_status st = check_fields(hello);

    if (st != TUTTI_OK)
        return st;
    memcpy(hello->transcript + TTI_HELLO_FIELDS_BYTES, hello->in, TTI_HELLO_FIELDS_BYTES);
    st = check_proof(hello, server_label, hello->in + TTI_HELLO_FIELDS_BYTES);
    if (st == TUTTI_OK)
        st = check_seal(hello);
    if (st != TUTTI_OK)
        return st;
    hello->peer_rank = tti_get_u32(hello->in + AT_RANK);
    enter(hello, SEND_FINISH);
    if (!make_proof(hello, client_label, hello->out))
        return tti_fail(TUTTI_E_NOMEM, "cannot compute our proof for %s", peer_name(hello));
    hello->out_size = TTI_HELLO_FINISH_BYTES;
    return TUTTI_OK;
}

static tutti_status take_finish(tti_hello *hello)
{
    tutti_status st = check_proof(hello, client_label, hello->in);

    if (st == TUTTI_OK)
        enter(hello, DONE);
    return st;
}

static tutti_status take_message(tti_hello *hello)
{
    switch (hello->state) {
    case READ_CLIENT: return take_client(hello);
    case READ_SERVER: return take_server(hello);
    default: return take_finish(hello);
    }
}

tutti_status tti_hello_feed(tti_hello *hello, const void *data, size_t bytes)
{
    tutti_status st = TUTTI_OK;

    assert(bytes <= tti_hello_wants(hello));
    if (bytes == 0)
        return TUTTI_OK;
    memcpy(hello->in + hello->got, data, bytes);
    hello->got += bytes;
    if (hello->state != READ_FINISH)
        st = check_head(hello);
    if (st == TUTTI_OK && hello->got == message_bytes(hello))
        st = take_message(hello);
    if (st != TUTTI_OK)
        enter(hello, FAILED);
    return st;
}

bool tti_hello_done(const tti_hello *hello)
{
    return hello->state == DONE;
}

bool tti_hello_is_answered(const tti_hello *hello)
{
    return hello->state == SEND_FINISH && hello->sent == 0;
}

bool tti_hello_awaits_proof(const tti_hello *hello)
{
    return hello->state == READ_FINISH;
}

uint32_t tti_hello_peer_rank(const tti_hello *hello)
{
    return hello->peer_rank;
}

const void *tti_hello_last_words(const tti_hello *hello, size_t *bytes_out)
{
    *bytes_out = hello->has_last_words ? TTI_HELLO_SERVER_BYTES : 0;
    return hello->has_last_words ? hello->out : NULL;
}

void tti_hello_release(tti_hello *hello)
{
    OPENSSL_cleanse(hello, sizeof *hello);
    hello->state = FAILED;
}

static tutti_status wait_for(tti_port *port, tti_handle handle, uint8_t want,
                             const tti_hello *hello, int64_t deadline_ns)
{
    tti_poll set = { .handle = handle, .want = want };

    tti_doubt_poll(port, &set, 1, deadline_ns);
    if (set.got == 0 && tti_doubt_is_vain())
        return tti_doubt_fail(peer_name(hello));
    if (set.got == 0 && tti_port_now(port) >= deadline_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "%s did not finish its hello in time\n"
                                         "  next: see that a process of this job listens there, and not another program",
                        peer_name(hello));
    return TUTTI_OK;
}

static tutti_status take(tti_port *port, tti_handle handle, tti_hello *hello, const uint8_t *data, size_t bytes)
{
    const tutti_status st = tti_hello_feed(hello, data, bytes);
    tti_part           part;

    part.data = st != TUTTI_OK ? tti_hello_last_words(hello, &part.size) : NULL;
    if (part.data != NULL)
        (void)port->ops->send(port, handle, &part, 1);
    return st;
}

/* One send or one receive; -EAGAIN becomes a wait. */
static tutti_status step(tti_port *port, tti_handle handle, tti_hello *hello, int64_t deadline_ns)
{
    uint8_t  in[TTI_HELLO_SERVER_BYTES];
    tti_part part;
    int64_t  n;

    part.data = tti_hello_output(hello, &part.size);
    if (part.size > 0) {
        n = port->ops->send(port, handle, &part, 1);
        if (n > 0)
            tti_hello_sent(hello, (size_t)n);
    } else {
        n = port->ops->recv(port, handle, in, tti_hello_wants(hello));
        if (n > 0)
            return take(port, handle, hello, in, (size_t)n);
        if (n == 0)
            return tti_fail(
                TUTTI_E_NETWORK,
                "%s closed the connection during the hello: it may have another secret, "
                "version or world",
                peer_name(hello));
    }
    if (n == -EAGAIN)
        return wait_for(port, handle, part.size > 0 ? TTI_WRITE : TTI_READ, hello, deadline_ns);
    if (n < 0)
        return tti_fail_errno_as(TUTTI_E_NETWORK, (int)-n,
                                 "connection to %s failed during the hello", peer_name(hello));
    return TUTTI_OK;
}

tutti_status tti_hello_advance(tti_port *port, tti_handle handle, tti_hello *hello, int64_t until_ns)
{
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && !tti_hello_done(hello))
        st = step(port, handle, hello, until_ns);
    return st;
}

tutti_status tti_hello_run(tti_port *port, tti_handle handle, const tti_hello_config *config,
                           int64_t deadline_ns, uint32_t *peer_rank_out)
{
    tti_hello    hello;
    tutti_status st;

    tti_hello_begin(&hello, port, config);
    st = tti_hello_advance(port, handle, &hello, deadline_ns);
    if (st == TUTTI_OK && tti_hello_seal(&hello) != TTI_SEAL_NONE)
        st = tti_tls_run(port, handle, &hello, deadline_ns);
    if (st == TUTTI_OK && peer_rank_out != NULL)
        *peer_rank_out = tti_hello_peer_rank(&hello);
    tti_hello_release(&hello);
    return st;
}
