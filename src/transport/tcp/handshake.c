/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.c - the hello and the word behind it; the design stands in handshake.h. */
#include "transport/tcp/handshake.h"

#include <assert.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/bytes.h"

enum state { HELLO, SEALS, ASKS, SEND_WORD, READ_WORD, DONE, FAILED };

static const uint8_t magic[4] = { 'T', 'U', 'T', 'W' };

static void write_word(uint8_t out[TTI_WELCOME_BYTES])
{
    memcpy(out, magic, sizeof magic);
    tti_put_u16(tti_put_u16(out + sizeof magic, TTI_WELCOME_VERSION), TTI_WELCOME_BYTES);
}

void tti_handshake_begin(tti_handshake *shake, tti_port *port, const tti_hello_config *config)
{
    *shake = (tti_handshake){ .state = HELLO };
    tti_hello_begin(&shake->hello, port, config);
}

static void go_on(tti_handshake *shake)
{
    shake->state = shake->hello.config.client ? READ_WORD : ASKS;
}

/* After every step of the hello: is it over? */
static void look_at_hello(tti_handshake *shake)
{
    if (shake->state != HELLO || !tti_hello_done(&shake->hello))
        return;
    if (tti_hello_seal(&shake->hello) != TTI_SEAL_NONE)
        shake->state = SEALS;
    else
        go_on(shake);
}

const void *tti_handshake_last_words(const tti_handshake *shake, size_t *bytes_out)
{
    return tti_hello_last_words(&shake->hello, bytes_out);
}

bool tti_handshake_seals(const tti_handshake *shake)
{
    return shake->state == SEALS;
}

const tti_hello *tti_handshake_hello(const tti_handshake *shake)
{
    return &shake->hello;
}

void tti_handshake_sealed(tti_handshake *shake)
{
    assert(shake->state == SEALS);
    go_on(shake);
}

const void *tti_handshake_output(const tti_handshake *shake, size_t *bytes_out)
{
    *bytes_out = 0;
    if (shake->state == HELLO)
        return tti_hello_output(&shake->hello, bytes_out);
    if (shake->state != SEND_WORD)
        return NULL;
    *bytes_out = TTI_WELCOME_BYTES - shake->done;
    return shake->word + shake->done;
}

void tti_handshake_sent(tti_handshake *shake, size_t bytes)
{
    if (shake->state == HELLO) {
        tti_hello_sent(&shake->hello, bytes);
        look_at_hello(shake);
        return;
    }
    assert(shake->state == SEND_WORD && bytes <= TTI_WELCOME_BYTES - shake->done);
    shake->done += bytes;
    if (shake->done == TTI_WELCOME_BYTES)
        shake->state = DONE;
}

size_t tti_handshake_wants(const tti_handshake *shake)
{
    if (shake->state == HELLO)
        return tti_hello_wants(&shake->hello);
    return shake->state == READ_WORD ? TTI_WELCOME_BYTES - shake->done : 0;
}

tutti_status tti_handshake_feed(tti_handshake *shake, const void *data, size_t bytes)
{
    uint8_t      wanted[TTI_WELCOME_BYTES];
    tutti_status st = TUTTI_OK;

    assert(bytes <= tti_handshake_wants(shake));
    if (shake->state == HELLO) {
        st = tti_hello_feed(&shake->hello, data, bytes);
        look_at_hello(shake);
    } else if (bytes > 0) {
        memcpy(shake->word + shake->done, data, bytes);
        shake->done += bytes;
        write_word(wanted);
        if (memcmp(shake->word, wanted, shake->done) != 0)
            st = tti_fail(TUTTI_E_AUTH, "its hello is followed by something else than a welcome");
        else if (shake->done == TTI_WELCOME_BYTES)
            shake->state = DONE;
    }
    if (st != TUTTI_OK)
        shake->state = FAILED;
    return st;
}

bool tti_handshake_asks(const tti_handshake *shake)
{
    return shake->state == ASKS;
}

void tti_handshake_welcome(tti_handshake *shake)
{
    assert(shake->state == ASKS);
    write_word(shake->word);
    shake->state = SEND_WORD;
}

bool tti_handshake_done(const tti_handshake *shake)
{
    return shake->state == DONE;
}

uint32_t tti_handshake_peer_rank(const tti_handshake *shake)
{
    return tti_hello_peer_rank(&shake->hello);
}

void tti_handshake_release(tti_handshake *shake)
{
    tti_hello_release(&shake->hello);
    shake->state = FAILED;
}

tti_verdict tti_judge_rival(int rank, int peer, tti_way way, tti_attempt own)
{
    switch (way) {
    case TTI_WAY_NONE:
    case TTI_WAY_WANTED: return TTI_WELCOME_IT;
    case TTI_WAY_MAKING:
        if (own == TTI_ATTEMPT_NONE)
            return TTI_REFUSE_IT; /* it was welcomed on another one */
        return own == TTI_ATTEMPT_TALKS && rank < peer ? TTI_HOLD_IT : TTI_WELCOME_IT;
    default: return TTI_REFUSE_IT;
    }
}
