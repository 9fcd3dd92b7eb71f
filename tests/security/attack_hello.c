/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attack_hello.c - who does not know the secret, or makes something of what others said. Each is tried at the store and at
 * the port of a rank. */
#include "attacks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "wire/mac.h"

enum { SOON_MS = 6000 /* the store ends what says nothing after 10 s */, PEER = 0, STORE = -1 };
enum { AT_FIELD_SIZE = 6, AT_PURPOSE = 8, AT_RANK = 12, AT_GENERATION = 16, AT_SCOPE = 24, AT_NONCE = 40 };

static const char *name_of(int rank)
{
    return rank < 0 ? "the store" : "a rank";
}

static tti_secret secret_of(const job *j)
{
    tti_secret secret = { .present = false };

    (void)tti_secret_make(j->key, &secret);
    return secret;
}

/* Both ends of a world have one, and neither is this. */
static outcome refused_with(const job *j, const tti_hello_config *at_store, const tti_hello_config *at_peer)
{
    const uint8_t nonsense[TTI_HELLO_FINISH_BYTES] = { 1, 2, 3 };
    int           rank;

    for (rank = STORE; rank <= PEER; rank++) {
        const int fd = dial(j, rank);
        bool      taken;

        if (fd < 0)
            return failed("%s does not answer", name_of(rank));
        taken = shake_hands(fd, rank < 0 ? at_store : at_peer);
        push(fd, nonsense, sizeof nonsense); /* who knows no better goes on with something */
        if (taken || !is_closed_within(fd, SOON_MS, 0)) {
            close(fd);
            return failed("%s %s", name_of(rank), taken ? "took it in" : "kept the connection");
        }
        close(fd);
    }
    return held("closed by the store and by a rank");
}

static outcome wrong_secret(const job *j, bool at_length)
{
    uint8_t          key[TTI_SECRET_BYTES];
    tti_secret       wrong = { .present = false };
    tti_hello_config store, peer;

    (void)at_length;
    memcpy(key, j->key, sizeof key);
    key[31] ^= 1;
    if (tti_secret_make(key, &wrong) != TUTTI_OK)
        return failed("no memory");
    store = genuine(j, STORE, &wrong);
    peer = genuine(j, PEER, &wrong);
    return refused_with(j, &store, &peer);
}

static outcome no_secret(const job *j, bool at_length)
{
    const tti_hello_config store = genuine(j, STORE, NULL), peer = genuine(j, PEER, NULL);

    (void)at_length;
    return refused_with(j, &store, &peer);
}

static outcome another_purpose(const job *j, bool at_length)
{
    const tti_secret secret = secret_of(j);
    tti_hello_config store = genuine(j, STORE, &secret), peer = genuine(j, PEER, &secret);

    (void)at_length;
    store.purpose = TTI_PURPOSE_PEER;
    peer.purpose = TTI_PURPOSE_STORE;
    return refused_with(j, &store, &peer);
}

static outcome another_generation(const job *j, bool at_length)
{
    const tti_secret secret = secret_of(j);
    tti_hello_config store = genuine(j, STORE, &secret), peer = genuine(j, PEER, &secret);

    (void)at_length;
    store.generation = peer.generation = 1;
    return refused_with(j, &store, &peer);
}

static outcome another_world(const job *j, bool at_length)
{
    const tti_secret secret = secret_of(j);
    tti_hello_config store = genuine(j, STORE, &secret), peer = genuine(j, PEER, &secret);

    (void)at_length;
    store.scope[0] ^= 1;
    peer.scope[0] ^= 1;
    return refused_with(j, &store, &peer);
}

/* ---- byte by byte --------------------------------------------------------------------------------------- */

/* One who knows the secret says hello; what it sends is kept. */
typedef struct recording {
    uint8_t hello[TTI_HELLO_CLIENT_BYTES];
    uint8_t proof[TTI_HELLO_FINISH_BYTES];
    uint8_t answer[TTI_HELLO_SERVER_BYTES];
} recording;

/* The server's answer to a hello. */
static bool get_answer(int fd, uint8_t answer[TTI_HELLO_SERVER_BYTES])
{
    return tti_io_recv_all(tti_port_system(), fd, answer, TTI_HELLO_SERVER_BYTES, "the job",
                           tti_deadline(tti_port_system(), SOON_MS, 0)) == TUTTI_OK;
}

static bool record(const job *j, int rank, recording *out)
{
    const tti_secret       secret = secret_of(j);
    const tti_hello_config config = genuine(j, rank, &secret);
    const int              fd = dial(j, rank);
    tti_hello              hello;
    size_t                 bytes = 0;
    bool                   ok;

    tti_hello_begin(&hello, tti_port_system(), &config);
    memcpy(out->hello, tti_hello_output(&hello, &bytes), sizeof out->hello);
    push(fd, out->hello, sizeof out->hello);
    tti_hello_sent(&hello, bytes);
    ok = get_answer(fd, out->answer) && tti_hello_feed(&hello, out->answer, sizeof out->answer) == TUTTI_OK;
    if (ok)
        memcpy(out->proof, tti_hello_output(&hello, &bytes), sizeof out->proof);
    tti_hello_release(&hello);
    close(fd);
    return ok;
}

/* Send a hello, take the answer, send a proof that is none of it: closed, without another word. */
static bool is_refused(const job *j, int rank, const uint8_t *hello, const uint8_t *proof)
{
    uint8_t   answer[TTI_HELLO_SERVER_BYTES];
    const int fd = dial(j, rank);
    bool      refused = false;

    push(fd, hello, TTI_HELLO_CLIENT_BYTES);
    if (get_answer(fd, answer)) {
        push(fd, proof, TTI_HELLO_FINISH_BYTES);
        refused = is_closed_within(fd, SOON_MS, 0);
    }
    close(fd);
    return refused;
}

static outcome replay(const job *j, bool at_length)
{
    recording r;
    int       rank;

    (void)at_length;
    for (rank = STORE; rank <= PEER; rank++) {
        if (!record(j, rank, &r))
            return failed("no hello of %s to record", name_of(rank));
        if (!is_refused(j, rank, r.hello, r.proof))
            return failed("%s took a recorded hello", name_of(rank));
    }
    return held("a recorded hello and proof are refused");
}

/* A proof that a server has made, sent back to it: as it is, and one that it makes for the nonce that it has just sent. */
static outcome reflection(const job *j, bool at_length)
{
    uint8_t answer[TTI_HELLO_SERVER_BYTES], other[TTI_HELLO_SERVER_BYTES];
    recording r;
    int       rank, fd, second;
    bool      closed;

    (void)at_length;
    for (rank = STORE; rank <= PEER; rank++) {
        if (!record(j, rank, &r) || !is_refused(j, rank, r.hello, r.answer + TTI_HELLO_FIELDS_BYTES))
            return failed("%s took its own proof for ours", name_of(rank));
        fd = dial(j, rank);
        second = dial(j, rank);
        push(fd, r.hello, sizeof r.hello);
        if (!get_answer(fd, answer))
            return failed("%s does not answer", name_of(rank));
        memcpy(r.hello + AT_NONCE, answer + AT_NONCE, TTI_HELLO_NONCE_BYTES);
        push(second, r.hello, sizeof r.hello);
        closed = get_answer(second, other);
        push(fd, other + TTI_HELLO_FIELDS_BYTES, TTI_HELLO_PROOF_BYTES);
        closed = closed && is_closed_within(fd, SOON_MS, 0);
        close(fd);
        close(second);
        if (!closed)
            return failed("%s proved us to itself", name_of(rank));
    }
    return held("a server's proof proves nobody else");
}

/* ---- proofs of another connection -------------------------------------------------------------------------- */

/* What a proof is made for that differs by a bit from the connection on which it is shown. */
typedef struct flaw {
    const char *of;
    int         at; /* in the transcript: what the client has said, then the server; -1: nowhere */
    const char *label;
} flaw;

static const flaw flaws[] = {
    { "purpose", AT_PURPOSE, "tutti-client-1" },
    { "rank", AT_RANK, "tutti-client-1" },
    { "generation", AT_GENERATION, "tutti-client-1" },
    { "world", AT_SCOPE, "tutti-client-1" },
    { "client's nonce", AT_NONCE, "tutti-client-1" },
    { "server's purpose", TTI_HELLO_FIELDS_BYTES + AT_PURPOSE, "tutti-client-1" },
    { "server's nonce", TTI_HELLO_FIELDS_BYTES + AT_NONCE, "tutti-client-1" },
    { "role", -1, "tutti-server-1" },
};

/* A client's proof, by the definition in wire/hello.h, and not by its code. */
static bool prove(const job *j, const flaw *f, const uint8_t *hello, const uint8_t *answer, uint8_t out[TTI_HELLO_FINISH_BYTES])
{
    enum { LABEL = 16, HEAD = LABEL + 1 };
    uint8_t text[HEAD + 2 * TTI_HELLO_FIELDS_BYTES] = { 0 };

    memcpy(text, f->label, strlen(f->label));
    text[LABEL] = 1; /* there is a secret */
    memcpy(text + HEAD, hello, TTI_HELLO_FIELDS_BYTES);
    memcpy(text + HEAD + TTI_HELLO_FIELDS_BYTES, answer, TTI_HELLO_FIELDS_BYTES);
    if (f->at >= 0)
        text[HEAD + f->at] ^= 1;
    return tti_mac(j->key, sizeof j->key, text, sizeof text, out);
}

/* All that is said is right, but for what the proof is made for. A connection to show it on; -1: there is none. */
static int show_proof(const job *j, int rank, const flaw *f)
{
    const tti_secret secret = secret_of(j);
    tti_hello_config config = genuine(j, rank, &secret);
    tti_hello        hello;
    const void      *said;
    size_t           bytes = 0;
    uint8_t          mine[TTI_HELLO_CLIENT_BYTES], answer[TTI_HELLO_SERVER_BYTES], proof[TTI_HELLO_FINISH_BYTES];
    int              fd = dial(j, rank);

    if (rank >= 0)
        config.rank |= (uint32_t)WATCH_STRIPE << STRIPE_SHIFT;
    tti_hello_begin(&hello, tti_port_system(), &config);
    said = tti_hello_output(&hello, &bytes);
    memcpy(mine, said, sizeof mine);
    tti_hello_release(&hello);
    push(fd, mine, sizeof mine);
    if (fd >= 0 && get_answer(fd, answer) && prove(j, f, mine, answer, proof)) {
        push(fd, proof, sizeof proof);
        return fd;
    }
    close(fd);
    return -1;
}

/* With nothing wrong in it such a proof gets in: it is the flaw that is refused. */
static bool sound_proof_gets_in(const job *j, int rank)
{
    static const flaw none = { "nothing", -1, "tutti-client-1" };
    const int         fd = show_proof(j, rank, &none);
    bool              in = fd >= 0;

    if (in)
        in = rank >= 0 ? is_welcome(fd) : !is_closed_within(fd, 200, 0);
    close(fd);
    return in;
}

static outcome moved_proof(const job *j, bool at_length)
{
    const int rounds = at_length ? 50 : 1;
    size_t    i;
    int       rank, round, fd, n = 0;
    bool      closed;

    for (rank = STORE; rank <= PEER; rank++) {
        if (!sound_proof_gets_in(j, rank))
            return failed("%s refuses a proof with nothing wrong in it", name_of(rank));
        for (round = 0; round < rounds; round++)
            for (i = 0; i < sizeof flaws / sizeof flaws[0]; i++, n++) {
                fd = show_proof(j, rank, &flaws[i]);
                closed = fd >= 0 && is_closed_within(fd, SOON_MS, 0);
                close(fd);
                if (!closed)
                    return failed("%s took a proof of another %s", name_of(rank), flaws[i].of);
            }
    }
    return held("%d closed; with nothing wrong in it such a proof gets in", n);
}

/* ---- cut, long and slow ones -------------------------------------------------------------------------------- */

static outcome truncated(const job *j, bool at_length)
{
    const int step = at_length ? 1 : 9;
    recording r;
    int       rank, bytes, fd, n = 0;

    for (rank = STORE; rank <= PEER; rank++) {
        if (!record(j, rank, &r))
            return failed("no hello of %s to cut", name_of(rank));
        for (bytes = 0; bytes < TTI_HELLO_CLIENT_BYTES; bytes += step, n++) {
            fd = dial(j, rank);
            if (fd < 0)
                return failed("%s does not answer after %d of them", name_of(rank), n);
            push(fd, r.hello, (size_t)bytes);
            close(fd);
        }
    }
    return proven_client_ms(j, SOON_MS) >= 0 ? held("%d cut hellos, and the next client is served", n)
                                             : failed("nobody is served after %d cut hellos", n);
}

static outcome oversized(const job *j, bool at_length)
{
    const size_t more = at_length ? (size_t)64 << 20 : (size_t)1 << 20;
    uint8_t     *data = calloc(1, more);
    recording    r;
    int          rank, fd;
    bool         closed = data != NULL;

    for (rank = STORE; rank <= PEER && closed; rank++) {
        closed = record(j, rank, &r);
        r.hello[AT_FIELD_SIZE] = r.hello[AT_FIELD_SIZE + 1] = 0xff; /* it says that it has 65535 bytes, */
        memcpy(data, r.hello, sizeof r.hello);
        fd = dial(j, rank);
        push(fd, data, more);
        closed = closed && is_closed_within(fd, SOON_MS, 0);
        close(fd);
        fd = dial(j, rank); /* and this one begins as none does */
        memset(data, 'G', sizeof r.hello);
        push(fd, data, more);
        closed = closed && is_closed_within(fd, SOON_MS, 0);
        close(fd);
    }
    free(data);
    return closed ? held("closed after the first 8 bytes") : failed("more than 8 bytes of a wrong hello were taken");
}

/* Every second one, from the first or the second on, until that time. */
static bool are_closed_until(const int *fds, int first, int n, int64_t until_ms)
{
    bool closed = true;
    int  i;

    for (i = first; i < n; i += 2)
        closed = closed && is_closed_within(fds[i], until_ms - now_ms(), 0);
    return closed;
}

/* A byte at a time. In short, others are served meanwhile; at length, the connection is closed. */
static outcome slow(const job *j, bool at_length)
{
    enum { CONNECTIONS = 20, BYTES = 10, STORE_MS = 12000, PEER_MS = 33000 };
    const int64_t start = now_ms();
    int           fds[CONNECTIONS], i, n;
    int64_t       served = 0;
    recording     r;
    bool          closed = true;

    if (!record(j, STORE, &r))
        return failed("no hello to send slowly");
    for (i = 0; i < CONNECTIONS; i++)
        fds[i] = dial(j, i % 2 == 0 ? STORE : PEER);
    for (n = 0; n < BYTES && served >= 0; n++) {
        for (i = 0; i < CONNECTIONS; i++)
            push(fds[i], r.hello + n, 1);
        served = proven_client_ms(j, SOON_MS);
    }
    if (at_length) /* the store's first, whose time is up first */
        closed = are_closed_until(fds, 0, CONNECTIONS, start + STORE_MS) && are_closed_until(fds, 1, CONNECTIONS, start + PEER_MS);
    for (i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    if (served < 0 || !closed)
        return failed(served < 0 ? "nobody else is served meanwhile" : "they were still open after 12 and 33 s");
    return held(at_length ? "closed within 12 s at the store, 33 s at a rank" : "others are served meanwhile, in %lld ms",
                (long long)served);
}

const attack hello_attacks[] = {
    { "wrong secret", "a hello with a key that differs in one bit", "closed", wrong_secret, false },
    { "no secret", "a hello with the empty key", "closed", no_secret, false },
    { "another purpose", "the right key, for what this port does not serve", "closed", another_purpose, false },
    { "another generation", "the right key, of another generation", "closed", another_generation, false },
    { "another world", "the right key, of another world", "closed", another_world, false },
    { "proof of another", "right fields; the proof is for another purpose, rank, generation, world, nonce, role", "closed", moved_proof, false },
    { "replay", "what a member has said, once more", "closed", replay, false },
    { "reflection", "what the server has said, sent back to it", "closed", reflection, false },
    { "truncated hello", "a part of one, then the end", "others served", truncated, false },
    { "oversized hello", "one that claims to be longer, and what begins as none does", "closed early", oversized, false },
    { "slow hello", "a byte now and then, on 20 connections", "others served; closed", slow, false },
};
const size_t n_hello_attacks = sizeof hello_attacks / sizeof hello_attacks[0];
