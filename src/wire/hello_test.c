/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello_test.c - both ends of the hello in one thread, with somebody in between.
 *
 * Goal    nobody gets in without the secret, nothing recorded or reflected works, and no more bytes
 *         are taken from the stream than the hello has. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "wire/bytes.h"
#include "wire/hello.h"

static const tti_secret secret_a = { .present = true, .padded = { 1, 2, 3 } };
static const tti_secret secret_b = { .present = true, .padded = { 1, 2, 4 } };
static const tti_secret zeros = { .present = true };

static tti_hello_config config_of(bool client, const tti_secret *secret)
{
    return (tti_hello_config){ .client = client,
                               .purpose = TTI_PURPOSE_STORE,
                               .generation = 7,
                               .scope = { 9, 8, 7 },
                               .rank = client ? 3 : 0,
                               .secret = secret };
}

typedef struct pair {
    tti_hello client;
    tti_hello server;
} pair;

static void begin(pair *p, const tti_secret *client, const tti_secret *server)
{
    tti_hello_config config = config_of(true, client);

    tti_hello_begin(&p->client, tti_port_system(), &config);
    config = config_of(false, server);
    tti_hello_begin(&p->server, tti_port_system(), &config);
}

/* Take all output of one end: its bytes. */
static size_t drain(tti_hello *from, uint8_t out[TTI_HELLO_SERVER_BYTES])
{
    size_t      bytes;
    const void *data = tti_hello_output(from, &bytes);

    memcpy(out, data, bytes);
    tti_hello_sent(from, bytes);
    return bytes;
}

static tutti_status move(tti_hello *from, tti_hello *to)
{
    uint8_t bytes[TTI_HELLO_SERVER_BYTES];
    size_t  n = drain(from, bytes);

    assert_int_equal(n, tti_hello_wants(to));
    return tti_hello_feed(to, bytes, n);
}

static void honest_ends_agree(void **state)
{
    static const tti_secret *const secrets[] = { NULL, &secret_a };
    pair                           p;
    size_t                         i;

    (void)state;
    for (i = 0; i < 2; i++) {
        begin(&p, secrets[i], secrets[i]);
        assert_int_equal(tti_hello_wants(&p.client), 0);
        assert_int_equal(move(&p.client, &p.server), TUTTI_OK);
        assert_int_equal(move(&p.server, &p.client), TUTTI_OK);
        assert_false(tti_hello_done(&p.client));
        assert_false(tti_hello_done(&p.server));
        assert_int_equal(move(&p.client, &p.server), TUTTI_OK);
        assert_true(tti_hello_done(&p.client));
        assert_true(tti_hello_done(&p.server));
        assert_int_equal(tti_hello_peer_rank(&p.server), 3);
        assert_int_equal(tti_hello_peer_rank(&p.client), 0);
        assert_int_equal(tti_hello_wants(&p.server), 0);
    }
}

/* One byte at a time each way: progress is the same. */
static void pieces_of_one_byte_are_enough(void **state)
{
    pair        p;
    tti_hello  *ends[2] = { &p.client, &p.server };
    const void *data;
    size_t      bytes;
    int         moved = 0, i;

    (void)state;
    begin(&p, &secret_a, &secret_a);
    while (!tti_hello_done(&p.client) || !tti_hello_done(&p.server)) {
        for (i = 0; i < 2; i++) {
            data = tti_hello_output(ends[i], &bytes);
            if (bytes == 0)
                continue;
            assert_int_equal(tti_hello_feed(ends[!i], data, 1), TUTTI_OK);
            tti_hello_sent(ends[i], 1);
            assert_true(++moved < 1000);
        }
    }
    assert_int_equal(moved,
                     TTI_HELLO_CLIENT_BYTES + TTI_HELLO_SERVER_BYTES + TTI_HELLO_FINISH_BYTES);
}

/* Run all messages with bit `bit` of message `which` flipped. True: somebody refused. */
static bool refused(int which, size_t bit)
{
    uint8_t bytes[TTI_HELLO_SERVER_BYTES];
    pair    p;
    int     i;

    begin(&p, &secret_a, &secret_a);
    for (i = 0; i < 3; i++) {
        tti_hello *from = i == 1 ? &p.server : &p.client;
        tti_hello *to = i == 1 ? &p.client : &p.server;
        size_t     n = drain(from, bytes);

        if (i == which)
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (tti_hello_feed(to, bytes, n) != TUTTI_OK) {
            assert_int_equal(tti_hello_wants(to), 0);
            assert_false(tti_hello_done(to));
            tti_hello_output(to, &n);
            assert_int_equal(n, 0);
            return true;
        }
    }
    return false;
}

static void every_flipped_bit_is_refused(void **state)
{
    static const size_t sizes[3] = { TTI_HELLO_CLIENT_BYTES, TTI_HELLO_SERVER_BYTES,
                                     TTI_HELLO_FINISH_BYTES };
    size_t              bit;
    int                 which;

    (void)state;
    for (which = 0; which < 3; which++)
        for (bit = 0; bit < 8 * sizes[which]; bit++)
            if (!refused(which, bit))
                fail_msg("bit %zu of message %d does not matter", bit, which);
}

static void another_secret_is_refused(void **state)
{
    static const struct {
        const tti_secret *client, *server;
    } cases[] = { { &secret_a, &secret_b },
                  { NULL, &secret_a },
                  { &secret_a, NULL },
                  { &zeros, NULL },
                  { NULL, &zeros } };
    pair   p;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(&p, cases[i].client, cases[i].server);
        assert_int_equal(move(&p.client, &p.server), TUTTI_OK);
        assert_int_equal(move(&p.server, &p.client), TUTTI_E_AUTH);
        assert_non_null(strstr(tutti_last_error(), "does not know this job's secret"));
    }
}

/* A client that skips the check of the server still cannot prove itself: its proof is a guess. */
static void server_checks_for_itself(void **state)
{
    uint8_t bytes[TTI_HELLO_SERVER_BYTES];
    pair    p;

    (void)state;
    begin(&p, &secret_a, &secret_a);
    assert_int_equal(move(&p.client, &p.server), TUTTI_OK);
    drain(&p.server, bytes);
    /* Reflection: the server's own proof sent back to it. */
    assert_int_equal(
        tti_hello_feed(&p.server, bytes + TTI_HELLO_FIELDS_BYTES, TTI_HELLO_PROOF_BYTES),
        TUTTI_E_AUTH);
}

/* A server hello reflected from the client's own first message, and a client hello back to a
 * client. */
static void reflected_hellos_are_refused(void **state)
{
    uint8_t bytes[TTI_HELLO_SERVER_BYTES] = { 0 };
    pair    p;

    (void)state;
    begin(&p, &secret_a, &secret_a);
    drain(&p.client, bytes);
    assert_int_equal(tti_hello_feed(&p.client, bytes, 8),
                     TUTTI_E_AUTH); /* its size gives it away */
    begin(&p, &secret_a, &secret_a);
    drain(&p.client, bytes);
    tti_put_u16(bytes + 6, TTI_HELLO_SERVER_BYTES);
    assert_int_equal(tti_hello_feed(&p.client, bytes, sizeof bytes), TUTTI_E_AUTH);
}

static void replays_are_refused(void **state)
{
    uint8_t first[TTI_HELLO_SERVER_BYTES], third[TTI_HELLO_SERVER_BYTES];
    uint8_t second[TTI_HELLO_SERVER_BYTES];
    pair    p;

    (void)state;
    begin(&p, &secret_a, &secret_a);
    drain(&p.client, first);
    assert_int_equal(tti_hello_feed(&p.server, first, TTI_HELLO_CLIENT_BYTES), TUTTI_OK);
    drain(&p.server, second);
    assert_int_equal(tti_hello_feed(&p.client, second, TTI_HELLO_SERVER_BYTES), TUTTI_OK);
    drain(&p.client, third);
    assert_int_equal(tti_hello_feed(&p.server, third, TTI_HELLO_FINISH_BYTES), TUTTI_OK);

    /* The client's messages again, to a new server. */
    begin(&p, &secret_a, &secret_a);
    assert_int_equal(tti_hello_feed(&p.server, first, TTI_HELLO_CLIENT_BYTES), TUTTI_OK);
    drain(&p.server, first);
    assert_int_equal(tti_hello_feed(&p.server, third, TTI_HELLO_FINISH_BYTES), TUTTI_E_AUTH);
    /* The server's message again, to a new client. */
    drain(&p.client, first);
    assert_int_equal(tti_hello_feed(&p.client, second, TTI_HELLO_SERVER_BYTES), TUTTI_E_AUTH);
}

static tutti_status meet(const tti_hello_config *client, const tti_hello_config *server)
{
    pair         p;
    tutti_status st;

    tti_hello_begin(&p.client, tti_port_system(), client);
    tti_hello_begin(&p.server, tti_port_system(), server);
    st = move(&p.client, &p.server);
    return st != TUTTI_OK ? st : move(&p.server, &p.client);
}

static void purpose_scope_generation_must_match(void **state)
{
    const tti_hello_config server = config_of(false, NULL);
    tti_hello_config       client = config_of(true, NULL);

    (void)state;
    assert_int_equal(meet(&client, &server), TUTTI_OK);
    client.purpose = TTI_PURPOSE_PEER;
    assert_int_equal(meet(&client, &server), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "purpose 2"));
    client = config_of(true, NULL);
    client.scope[15] = 1;
    assert_int_equal(meet(&client, &server), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "another world"));
    client = config_of(true, NULL);
    client.generation = 8;
    assert_int_equal(meet(&client, &server), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "generation 8"));
}

static void strangers_are_known_by_their_first_bytes(void **state)
{
    uint8_t bytes[TTI_HELLO_SERVER_BYTES];
    pair    p;

    (void)state;
    begin(&p, NULL, NULL);
    assert_int_equal(tti_hello_feed(&p.server, "GET ", 4), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "is not a tutti peer"));
    begin(&p, NULL, NULL);
    assert_int_equal(tti_hello_feed(&p.server, "TUTX", 4), TUTTI_E_AUTH);
    begin(&p, NULL, NULL);
    drain(&p.client, bytes);
    tti_put_u16(bytes + 4, 2);
    assert_int_equal(tti_hello_feed(&p.server, bytes, 8), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "speaks version 2"));
    assert_non_null(strstr(tutti_last_error(), "we speak version 1"));
}

static void join_tcp(tti_port *port, tti_handle *a, tti_handle *b)
{
    tti_addr   at = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } };
    tti_addr   bound;
    tti_handle listener;
    tti_poll   set;

    assert_int_equal(port->ops->listen(port, &at, 4, &bound, &listener), 0);
    assert_int_equal(port->ops->connect(port, &bound, a), 0);
    set = (tti_poll){ .handle = listener, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &set, 1, tti_deadline(port, 5000, 0)), 1);
    *b = port->ops->accept(port, listener, NULL);
    assert_true(*b >= 0);
    port->ops->close(port, listener);
}

/* A peer that says nothing, and one that leaves. */
static void driver_ends_on_close_and_deadline(void **state)
{
    const tti_hello_config config = config_of(true, NULL);
    tti_port              *port = tti_port_system();
    tti_handle             a, b;

    (void)state;
    join_tcp(port, &a, &b);
    assert_int_equal(tti_hello_run(port, a, &config, tti_deadline(port, 20, 0), NULL),
                     TUTTI_E_TIMEOUT);
    port->ops->close(port, a);
    port->ops->close(port, b);

    join_tcp(port, &a, &b);
    port->ops->close(port, b);
    assert_int_equal(tti_hello_run(port, a, &config, TTI_FOREVER, NULL), TUTTI_E_NETWORK);
    port->ops->close(port, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_ends_agree),
        cmocka_unit_test(pieces_of_one_byte_are_enough),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(another_secret_is_refused),
        cmocka_unit_test(server_checks_for_itself),
        cmocka_unit_test(reflected_hellos_are_refused),
        cmocka_unit_test(replays_are_refused),
        cmocka_unit_test(purpose_scope_generation_must_match),
        cmocka_unit_test(strangers_are_known_by_their_first_bytes),
        cmocka_unit_test(driver_ends_on_close_and_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
