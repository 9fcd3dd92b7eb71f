/* SPDX-License-Identifier: BSD-3-Clause
 *
 * p2p_torture_test.c
 * Goal    whatever sizes, tags and orders, every message arrives whole, in its order, where it belongs; and a message
 *         that is on its way when a rank dies or aborts comes whole or not at all.
 * Method  what is sent follows from (sender, receiver, number), so a receiver knows what it must get. Sizes lie at the
 *         edges of what goes through lines, rings and the kernel. More ranks than cores make them sleep. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { TAGS = 3, PER_TAG = 7, ROUNDS = 6, ANY_TAG = 9, RANKS = 5, BIG = 12 << 20 };

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t x = a * 0x9e3779b9u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;

    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    return x ^ x >> 13;
}

static int64_t size_of(uint32_t key)
{
    static const int64_t sizes[] = { 0,    1,    47,   48,    49,    104,    1023,    1024,   1025,   4095,
                                     4096, 4097, 9000, 65536, 70001, 300000, 1048576, 1048577, 1300000 };

    return sizes[key % (sizeof sizes / sizeof sizes[0])];
}

static void fill(uint8_t *data, int64_t n, uint32_t key)
{
    int64_t i;

    for (i = 0; i < n; i++)
        data[i] = (uint8_t)(key + (uint32_t)i * 7 + (uint32_t)(i >> 11));
}

static void check(const uint8_t *data, int64_t n, uint32_t key)
{
    int64_t i;

    for (i = 0; i < n && data[i] == (uint8_t)(key + (uint32_t)i * 7 + (uint32_t)(i >> 11)); i++)
        continue;
    assert_int_equal(i, n);
}

static uint32_t key_of(int round, int src, int dst, int tag, int i)
{
    return mix((uint32_t)(round * 64 + src), (uint32_t)(dst * 16 + tag), (uint32_t)i);
}

typedef struct message {
    tutti_work *work;
    uint8_t    *data;
    int64_t     bytes;
    uint32_t    key;
    int         peer, tag;
} message;

static message make(int peer, int tag, uint32_t key)
{
    message m = { .bytes = size_of(key), .key = key, .peer = peer, .tag = tag };

    m.data = malloc((size_t)m.bytes + 1);
    assert_non_null(m.data);
    return m;
}

static void finish(message *m, bool received)
{
    OK(tutti_work_wait(m->work));
    if (received)
        check(m->data, m->bytes, m->key);
    tutti_work_free(m->work);
    free(m->data);
}

/* All messages of a round, of equal (peer, tag) in order, otherwise in an order of this rank's own. */
static int plan(const tt_ctx *t, int round, bool sends, message *to)
{
    int n = 0, next[RANKS][TAGS] = { { 0 } }, left = (t->size - 1) * TAGS * PER_TAG;
    uint32_t turn = (uint32_t)(t->rank * 2 + sends);

    while (left > 0) {
        const uint32_t r = mix(turn++, (uint32_t)round, 77);
        const int      peer = (int)(r % (uint32_t)t->size), tag = (int)(r >> 8) % TAGS;
        int           *i = &next[peer][tag];

        if (peer == t->rank || *i == PER_TAG)
            continue;
        to[n++] = make(peer, tag, sends ? key_of(round, t->rank, peer, tag, *i) : key_of(round, peer, t->rank, tag, *i));
        ++*i;
        left--;
    }
    return n;
}

static void everybody_to_everybody(tt_ctx *t)
{
    message *out = tt_alloc(t, RANKS * TAGS * PER_TAG * sizeof *out), *in = tt_alloc(t, RANKS * TAGS * PER_TAG * sizeof *in);
    int      round, i, n;

    for (round = 0; round < ROUNDS; round++) {
        n = plan(t, round, true, out);
        assert_int_equal(plan(t, round, false, in), n);
        for (i = 0; i < n; i++) {
            fill(out[i].data, out[i].bytes, out[i].key);
            if (i % 2 == round % 2) /* some receives wait, some messages do */
                OK(tutti_irecv(TUTTI_SPAN(in[i].data, in[i].bytes), in[i].peer, in[i].tag, t->group, &in[i].work));
            OK(tutti_isend(TUTTI_SPAN(out[i].data, out[i].bytes), out[i].peer, out[i].tag, t->group, &out[i].work));
            if (i % 2 != round % 2)
                OK(tutti_irecv(TUTTI_SPAN(in[i].data, in[i].bytes), in[i].peer, in[i].tag, t->group, &in[i].work));
        }
        for (i = 0; i < n; i++)
            finish(&in[n - 1 - i], true);
        for (i = 0; i < n; i++)
            finish(&out[i], false);
    }
}

/* Blocking, in a ring: even ranks send first. */
static void blocking_round_a_ring(tt_ctx *t)
{
    const int right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;
    int       i, step;

    for (i = 0; i < 300; i++) {
        message out = make(right, 1, mix((uint32_t)t->rank, 5, (uint32_t)i));
        message in = make(left, 1, mix((uint32_t)left, 5, (uint32_t)i));

        fill(out.data, out.bytes, out.key);
        for (step = 0; step < 2; step++) {
            if (t->rank % 2 == step)
                OK(tutti_send(TUTTI_SPAN(out.data, out.bytes), right, 1, t->group));
            else
                OK(tutti_recv(TUTTI_SPAN(in.data, in.bytes), left, 1, t->group, NULL));
        }
        check(in.data, in.bytes, in.key);
        free(out.data);
        free(in.data);
    }
}

/* Everybody sends before anybody receives: what nobody has asked for is kept. */
static void blocking_sends_cross(tt_ctx *t)
{
    uint8_t *out = tt_alloc(t, BIG), *in = tt_alloc(t, BIG);
    int      other = 1 - t->rank;

    fill(out, BIG, (uint32_t)t->rank);
    OK(tutti_send(TUTTI_SPAN(out, BIG), other, 0, t->group));
    OK(tutti_recv(TUTTI_SPAN(in, BIG), other, 0, t->group, NULL));
    check(in, BIG, (uint32_t)other);
}

static void anybody(tt_ctx *t)
{
    int32_t got[2], mine[2];
    int     next[RANKS] = { 0 }, src = -1;
    int     i;

    for (i = 0; i < 500 && t->rank != 0; i++) {
        mine[0] = t->rank;
        mine[1] = i;
        OK(tutti_send(TUTTI_SPAN(mine, 2), 0, ANY_TAG, t->group));
    }
    for (i = 0; i < 500 * (t->size - 1) && t->rank == 0; i++) {
        OK(tutti_recv(TUTTI_SPAN(got, 2), TUTTI_ANY_SOURCE, ANY_TAG, t->group, &src));
        assert_int_equal(got[0], src);
        assert_int_equal(got[1], next[src]++);
    }
    OK(tutti_barrier(t->group));
}

/* ---- in the middle ---- */

typedef struct stop {
    tt_ctx *t;
    void (*how)(tt_ctx *t);
} stop;

/* Some time after the third message, in the middle of another. */
static void *stop_later(void *arg)
{
    stop *s = arg;

    tt_await(s->t, 0, 3);
    s->how(s->t);
    return NULL;
}

static void die(tt_ctx *t)
{
    (void)t;
    tt_die();
}

static void give_up(tt_ctx *t)
{
    (void)tutti_abort_process_group(t->group);
}

/* Rank 0 sends to rank 1 until something ends it; whatever arrives is whole. The buffer is written again as soon as a
 * send has returned. */
static tutti_status stream(tt_ctx *t)
{
    const int64_t n = t->size > 2 ? BIG : 1 << 20;
    uint8_t      *data = tt_alloc(t, (size_t)n);
    tutti_status  st = TUTTI_OK;
    uint32_t      i;

    for (i = 0; st == TUTTI_OK && t->rank < 2; i++) {
        if (t->rank == 0) {
            fill(data, n, i);
            st = tutti_send(TUTTI_SPAN(data, n), 1, 0, t->group);
            memset(data, 0, (size_t)n);
            continue;
        }
        st = tutti_recv(TUTTI_SPAN(data, n), 0, 0, t->group, NULL);
        if (st == TUTTI_OK)
            check(data, n, i);
        tt_post(t, 0);
    }
    return st;
}

static tutti_status stream_until(tt_ctx *t, int who, void (*how)(tt_ctx *t))
{
    stop         s = { t, how };
    pthread_t    thread;
    tutti_status st;

    if (t->rank == who)
        assert_int_equal(pthread_create(&thread, NULL, stop_later, &s), 0);
    st = stream(t);
    if (t->rank == who)
        pthread_join(thread, NULL);
    return st;
}

static void the_sender_dies(tt_ctx *t)
{
    if (stream_until(t, 0, die) == TUTTI_E_PEER)
        assert_non_null(strstr(tutti_last_error(), "rank 0"));
    else
        assert_int_equal(t->rank, 2);
}

static void the_receiver_dies(tt_ctx *t)
{
    if (stream_until(t, 1, die) == TUTTI_E_PEER)
        assert_non_null(strstr(tutti_last_error(), "rank 1"));
    else
        assert_int_equal(t->rank, 2);
}

static void the_sender_aborts(tt_ctx *t)
{
    const tutti_status st = stream_until(t, 0, give_up);

    assert_true(t->rank >= 2 || st == TUTTI_E_ABORTED || st == TUTTI_E_PEER);
}

static void the_receiver_aborts(tt_ctx *t)
{
    const tutti_status st = stream_until(t, 1, give_up);

    assert_true(t->rank >= 2 || st == TUTTI_E_ABORTED || st == TUTTI_E_PEER);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(everybody_to_everybody, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(everybody_to_everybody, .ranks = 5, .transports = "shm,tcp,threads,threads-tcp", .limit_ms = 120000),
        TT_TEST(everybody_to_everybody, .ranks = 4, .hosts = 2, .limit_ms = 120000),
        TT_TEST(blocking_round_a_ring, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(blocking_round_a_ring, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 120000),
        TT_TEST(blocking_sends_cross, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(anybody, .ranks = 5, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(the_sender_dies, .ranks = 2, .dies = 0),
        TT_TEST(the_sender_dies, .ranks = 3, .dies = 0),
        TT_TEST(the_receiver_dies, .ranks = 2, .dies = 1),
        TT_TEST(the_receiver_dies, .ranks = 3, .dies = 1),
        TT_TEST(the_sender_aborts, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(the_sender_aborts, .ranks = 3, .transports = "shm,threads"),
        TT_TEST(the_receiver_aborts, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(the_receiver_aborts, .ranks = 3, .transports = "shm,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
