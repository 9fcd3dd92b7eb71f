/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carried_test.c
 * Goal    a link over a transport that knows no order and proves nothing is a stream: whole, in order, bounded, told of its
 *         end, and closed to strangers.
 * Method  a transport of this program's, between two carriers in it: it delivers what has come in the wrong order, lends its
 *         memory or does not, reports late what was sent, and hands over parcels that nobody has sent. The connection is a pair
 *         of sockets; carriers, links and threads are the real ones. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "transport/carried/carried.h"
#include "wire/bytes.h"

enum { FULL = TTI_PARCEL_BYTES - TTI_PARCEL_HEAD, WINDOW_FULL = TTI_CARRIED_WINDOW / TTI_PARCEL_BYTES };
enum { SIDES = 2, QUEUE = 4096, PATIENCE_MS = 30000, WAIT_MS = 5000, LARGE = 3 << 20 };

/* ---- a transport ---- */

typedef struct mail {
    uint8_t *bytes;
    size_t   size;
    void    *cookie; /* NULL: its sender was told already */
    int      from;
} mail;

struct tutti_transport_way {
    tutti_transport *from;
    int              to;
    void            *peer;
};

struct tutti_transport {
    const tutti_transport_hooks *hooks;
    int                          side;
    int                          handle;
    mail                         queue[QUEUE]; /* what has come, by the lock below */
    int                          n;
    void                        *done[QUEUE]; /* cookies that are to be reported here */
    int                          n_done;
    tutti_transport_way         *way;
    int                          n_loans;
};

/* How it breaks its contract. */
typedef enum misdeed { NONE, GIVES_NO_INSTANCE, FAILS_WITHOUT_WORDS, GIVES_NO_STATUS, GIVES_NO_ADDRESS, GIVES_NO_WAY, SENDS_NONSENSE } misdeed;

static struct {
    pthread_mutex_t  lock;
    tutti_transport *at[SIDES];
    _Atomic misdeed  misdeed;
    bool             shuffles, lends, reports_late, is_stuck, refuses;
} net = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void behave(bool shuffles, bool lends, bool reports_late, bool is_stuck)
{
    pthread_mutex_lock(&net.lock);
    net.shuffles = shuffles;
    net.lends = lends;
    net.reports_late = reports_late;
    net.is_stuck = is_stuck;
    pthread_mutex_unlock(&net.lock);
}

static tutti_status loop_open(const tutti_transport_config *config, tutti_transport **out)
{
    tutti_transport *t;

    if (net.misdeed == GIVES_NO_INSTANCE)
        return TUTTI_OK;
    if (net.misdeed == FAILS_WITHOUT_WORDS || net.misdeed == GIVES_NO_STATUS)
        return net.misdeed == GIVES_NO_STATUS ? (tutti_status)77 : TUTTI_E_NETWORK;
    t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->hooks = config->hooks;
    t->side = config->rank;
    t->handle = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_true(t->handle >= 0);
    pthread_mutex_lock(&net.lock);
    net.at[t->side] = t;
    pthread_mutex_unlock(&net.lock);
    *out = t;
    return TUTTI_OK;
}

static const void *loop_address(tutti_transport *t, size_t *bytes_out)
{
    *bytes_out = sizeof t->side;
    return net.misdeed == GIVES_NO_ADDRESS ? NULL : &t->side;
}

static int loop_connect(tutti_transport *t, const void *address, size_t bytes, void *peer, tutti_transport_way **way_out)
{
    int side;

    assert_int_equal(bytes, sizeof side);
    memcpy(&side, address, sizeof side);
    if (net.refuses) {
        t->hooks->broken(t->hooks->context, peer, EHOSTUNREACH, "there is no cable\n  next: lay one");
        return -EHOSTUNREACH;
    }
    if (net.misdeed == GIVES_NO_WAY)
        return 0;
    t->way = calloc(1, sizeof *t->way);
    assert_non_null(t->way);
    *t->way = (tutti_transport_way){ .from = t, .to = side, .peer = peer };
    *way_out = t->way;
    return 0;
}

static void wake(tutti_transport *t)
{
    assert_int_equal(eventfd_write(t->handle, 1), 0);
}

/* Lock held. */
static void post(tutti_transport *to, int from, const void *bytes, size_t size, void *cookie)
{
    assert_true(to->n < QUEUE);
    to->queue[to->n] = (mail){ .bytes = malloc(size), .size = size, .cookie = cookie, .from = from };
    assert_non_null(to->queue[to->n].bytes);
    memcpy(to->queue[to->n].bytes, bytes, size);
    to->n++;
    wake(to);
}

static int loop_send(tutti_transport_way *way, const void *parcel, size_t bytes, void *cookie)
{
    bool late;

    if (net.misdeed == SENDS_NONSENSE)
        return 7;
    pthread_mutex_lock(&net.lock);
    late = net.reports_late && net.at[way->to] != NULL;
    if (net.at[way->to] != NULL)
        post(net.at[way->to], way->from->side, parcel, bytes, late ? cookie : NULL);
    pthread_mutex_unlock(&net.lock);
    return late ? 0 : 1;
}

/* What came is taken out in one go, and handed on the last one first where that is asked for. */
static bool loop_progress(tutti_transport *t)
{
    static _Thread_local mail taken[QUEUE];
    void  *done[QUEUE];
    bool   shuffles, lends;
    int    n, n_done, i;

    pthread_mutex_lock(&net.lock);
    n = net.is_stuck && t->side == 1 ? 0 : t->n;
    memcpy(taken, t->queue, (size_t)n * sizeof *taken);
    t->n -= n;
    n_done = t->n_done;
    memcpy(done, t->done, (size_t)n_done * sizeof *done);
    t->n_done = 0;
    shuffles = net.shuffles;
    lends = net.lends;
    for (i = 0; i < n; i++)
        if (taken[i].cookie != NULL && net.at[taken[i].from] != NULL) {
            net.at[taken[i].from]->done[net.at[taken[i].from]->n_done++] = taken[i].cookie;
            wake(net.at[taken[i].from]);
        }
    pthread_mutex_unlock(&net.lock);
    for (i = 0; i < n_done; i++)
        t->hooks->sent(t->hooks->context, done[i]);
    for (i = 0; i < n; i++) {
        const mail *m = &taken[shuffles ? n - 1 - i : i];

        t->n_loans++;
        if (t->hooks->arrived(t->hooks->context, m->bytes, m->size, lends ? m->bytes : NULL)) {
            assert_true(lends);
            continue;
        }
        t->n_loans--;
        free(m->bytes);
    }
    return n + n_done > 0;
}

static int loop_handle(tutti_transport *t)
{
    return t->handle;
}

static bool loop_arm(tutti_transport *t)
{
    eventfd_t count;
    bool      quiet;

    (void)eventfd_read(t->handle, &count);
    pthread_mutex_lock(&net.lock);
    quiet = t->n_done == 0 && (t->n == 0 || (net.is_stuck && t->side == 1));
    pthread_mutex_unlock(&net.lock);
    return quiet;
}

static void loop_give_back(tutti_transport *t, void *loan)
{
    t->n_loans--;
    free(loan);
}

static void loop_disconnect(tutti_transport_way *way)
{
    way->from->way = NULL;
    free(way);
}

static void loop_close(tutti_transport *t)
{
    int i, side;

    pthread_mutex_lock(&net.lock);
    net.at[t->side] = NULL;
    for (i = 0; i < t->n; i++) {
        tutti_transport *from = net.at[t->queue[i].from];

        if (t->queue[i].cookie != NULL && from != NULL)
            from->done[from->n_done++] = t->queue[i].cookie;
        free(t->queue[i].bytes);
    }
    t->n = 0;
    for (side = 0; side < SIDES; side++) /* what this one has sent is not read any more */
        for (i = 0; net.at[side] != NULL && i < net.at[side]->n; i++)
            if (net.at[side]->queue[i].from == t->side && net.at[side]->queue[i].cookie != NULL) {
                t->done[t->n_done++] = net.at[side]->queue[i].cookie;
                net.at[side]->queue[i].cookie = NULL;
            }
    pthread_mutex_unlock(&net.lock);
    for (i = 0; i < t->n_done; i++)
        t->hooks->sent(t->hooks->context, t->done[i]);
    assert_int_equal(t->n_loans, 0);
    assert_null(t->way);
    close(t->handle);
    free(t);
}

#define LOOP_OPS(called)                                                                                          \
    {                                                                                                             \
        .api = TUTTI_TRANSPORT_API, .size = sizeof(tutti_transport_ops), .name = (called), .open = loop_open,     \
        .address = loop_address, .connect = loop_connect, .send = loop_send, .progress = loop_progress,           \
        .handle = loop_handle, .arm = loop_arm, .give_back = loop_give_back, .disconnect = loop_disconnect,       \
        .close = loop_close,                                                                                      \
    }

static const tutti_transport_ops loop_ops = LOOP_OPS("loop"), other_ops = LOOP_OPS("other");

/* ---- two ends ---- */

typedef struct ends {
    tti_carrier *carrier[SIDES];
    tti_link    *link[SIDES];
    int          stream[SIDES];
} ends;

static tti_port *port(void)
{
    return tti_port_system();
}

static void open_carriers(ends *e, const tutti_transport_ops *first, const tutti_transport_ops *second)
{
    int i;

    for (i = 0; i < SIDES; i++)
        assert_int_equal(tti_carrier_open(port(), i == 0 ? first : second, i, SIDES, &e->carrier[i]), TUTTI_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, e->stream), 0);
}

static ends open_ends(void)
{
    ends e = { .link = { NULL } };
    int  i;

    behave(false, false, false, false);
    open_carriers(&e, &loop_ops, &loop_ops);
    for (i = 0; i < SIDES; i++)
        assert_int_equal(tti_carrier_link(e.carrier[i], 1 - i, e.stream[i], &e.link[i]), TUTTI_OK);
    return e;
}

static void close_ends(ends *e)
{
    int i;

    for (i = 0; i < SIDES; i++)
        if (e->link[i] != NULL)
            e->link[i]->ops->close(e->link[i]);
    for (i = 0; i < SIDES; i++)
        tti_carrier_close(e->carrier[i], 0);
}

/* As a driver does who has found nothing. */
static void sleep_on(tti_link *link)
{
    tti_poll set = { .handle = link->ops->handle(link), .want = TTI_READ };

    assert_int_equal(port()->ops->poll(port(), &set, 1, tti_port_now(port()) + PATIENCE_MS * TTI_MS), 1);
}

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 7 + (at >> 8) * 3 + (at >> 16));
}

static uint8_t *pattern(size_t bytes)
{
    uint8_t *data = malloc(bytes);
    size_t   i;

    assert_non_null(data);
    for (i = 0; i < bytes; i++)
        data[i] = byte_at(i);
    return data;
}

/* All of it, in two parts as messages are. */
static void send_all(tti_link *link, const uint8_t *data, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        const size_t   left = bytes - done, head = left < 40 ? left : 40;
        const tti_part parts[2] = { { data + done, head }, { data + done + head, left - head } };
        const int64_t  n = link->ops->send(link, parts, 2);

        if (n == -EAGAIN)
            sleep_on(link);
        else if (n > 0)
            done += (size_t)n;
        else
            fail_msg("send: %d", (int)n);
    }
}

static size_t receive(tti_link *link, size_t from, size_t bytes)
{
    static _Thread_local uint8_t out[100000];
    size_t                       i, piece = 1 + (from * 31 + 17) % sizeof out;
    int64_t                      n;

    piece = piece < bytes ? piece : bytes;
    n = link->ops->recv(link, out, piece);
    if (n == -EAGAIN) {
        sleep_on(link);
        return 0;
    }
    assert_true(n > 0 && (size_t)n <= piece);
    for (i = 0; i < (size_t)n; i++)
        if (out[i] != byte_at(from + i))
            fail_msg("byte %zu is %u, not %u", from + i, out[i], byte_at(from + i));
    return (size_t)n;
}

static void receive_all(tti_link *link, size_t from, size_t bytes)
{
    size_t done = 0;

    while (done < bytes)
        done += receive(link, from + done, bytes - done);
}

static int64_t recv_at_last(tti_link *link)
{
    const int64_t until_ns = tti_port_now(port()) + PATIENCE_MS * TTI_MS;
    uint8_t       out[16];
    int64_t       n;

    while ((n = link->ops->recv(link, out, sizeof out)) == -EAGAIN && tti_port_now(port()) < until_ns)
        sleep_on(link);
    return n;
}

/* ---- the stream ---- */

static void *receiver(void *link)
{
    receive_all(link, 0, LARGE);
    return NULL;
}

static void stream_in_order(bool shuffles, bool lends, bool late)
{
    ends      e = open_ends();
    uint8_t  *data = pattern(LARGE);
    pthread_t thread;

    behave(shuffles, lends, late, false);
    assert_int_equal(pthread_create(&thread, NULL, receiver, e.link[1]), 0);
    send_all(e.link[0], data, LARGE);
    pthread_join(thread, NULL);
    free(data);
    close_ends(&e);
}

static void test_order(void **state)
{
    (void)state;
    stream_in_order(false, false, false);
    stream_in_order(true, false, false);
    stream_in_order(true, true, false);
    stream_in_order(true, true, true);
}

/* The second end can send, too: what it has read is told. */
static void open_back(ends *e)
{
    const uint8_t byte = byte_at(0);

    send_all(e->link[1], &byte, 1);
    receive_all(e->link[0], 0, 1);
}

/* Nobody reads: so much is taken, and no more, until some was. */
static void test_window(void **state)
{
    /* Of full parcels: what is behind their heads. */
    enum { WHOLE = WINDOW_FULL * FULL, TELLS = TTI_CARRIED_TELL / TTI_PARCEL_BYTES * FULL };

    ends     e = open_ends();
    uint8_t *data = pattern(WHOLE);
    tti_part one = { data, 1 };

    (void)state;
    behave(false, true, false, false);
    open_back(&e);
    send_all(e.link[0], data, WHOLE);
    assert_int_equal(e.link[0]->ops->send(e.link[0], &one, 1), -EAGAIN);
    receive_all(e.link[1], 0, TELLS - 1);
    assert_int_equal(e.link[0]->ops->send(e.link[0], &one, 1), -EAGAIN);
    receive_all(e.link[1], TELLS - 1, 1);
    sleep_on(e.link[0]); /* its bell is rung: there is room */
    assert_int_equal(e.link[0]->ops->send(e.link[0], &one, 1), 1);
    free(data);
    close_ends(&e);
}

/* Frames are seen before they are taken; their payload follows, or comes later. */
static void test_frames(void **state)
{
    ends             e = open_ends();
    uint8_t         *data = pattern(140);
    const tti_frame *frame;
    uint8_t          out[100];

    (void)state;
    send_all(e.link[0], data, 140);
    while ((frame = e.link[1]->ops->next(e.link[1])) == NULL)
        sleep_on(e.link[1]);
    assert_memory_equal(frame, data, sizeof *frame);
    assert_ptr_equal(e.link[1]->ops->next(e.link[1]), frame);
    assert_true(e.link[1]->ops->is_ahead(e.link[1]));
    assert_int_equal(e.link[1]->ops->body(e.link[1], out, 100), 100);
    assert_memory_equal(out, data + sizeof *frame, 100);
    assert_null(e.link[1]->ops->next(e.link[1]));
    assert_false(e.link[1]->ops->is_ahead(e.link[1]));
    free(data);
    close_ends(&e);
}

static const tti_carried *inside(const tti_link *link)
{
    return (const tti_carried *)link;
}

/* Messages without payload are taken out as frames alone: what they take of the window is told at once, too. */
static void test_empty_messages(void **state)
{
    enum { MESSAGES = TTI_CARRIED_TELL / sizeof(tti_frame) + 1, BYTES = MESSAGES * sizeof(tti_frame),
           HEADS = (BYTES + FULL - 1) / FULL * TTI_PARCEL_HEAD };

    const int64_t until_ns = tti_port_now(port()) + PATIENCE_MS * TTI_MS;
    ends          e = open_ends();
    uint8_t      *data = pattern(BYTES);
    uint64_t      n = 0;
    int           i;

    (void)state;
    open_back(&e);
    send_all(e.link[0], data, BYTES);
    while (n < BYTES + HEADS && tti_port_now(port()) < until_ns) {
        tti_lock(&e.carrier[1]->lock);
        n = inside(e.link[1])->bytes_arrived;
        tti_unlock(&e.carrier[1]->lock);
        port()->ops->yield(port());
    }
    for (i = 0; i < MESSAGES; i++)
        assert_int_equal(e.link[1]->ops->body(e.link[1], NULL, 0), 0);
    tti_lock(&e.carrier[1]->lock);
    n = inside(e.link[1])->told;
    tti_unlock(&e.carrier[1]->lock);
    assert_true(n >= TTI_CARRIED_TELL);
    free(data);
    close_ends(&e);
}

/* Until so many parcels have come: what is not moved on by this thread the carrier's moves. */
static void await_arrivals(const ends *e, uint64_t n_parcels)
{
    const int64_t until_ns = tti_port_now(port()) + PATIENCE_MS * TTI_MS;
    uint64_t      n = 0;

    while (n < n_parcels && tti_port_now(port()) < until_ns) {
        tti_lock(&e->carrier[1]->lock);
        n = inside(e->link[1])->n_arrived;
        tti_unlock(&e->carrier[1]->lock);
        port()->ops->yield(port());
    }
    assert_int_equal(n, n_parcels);
}

/* Parcels of one byte that nobody reads: their heads count, too, as a note of each is kept. */
static void test_many_small_ones(void **state)
{
    enum { MOST = TTI_CARRIED_WINDOW / (TTI_PARCEL_HEAD + 1) };

    ends     e = open_ends();
    uint8_t *data = pattern(MOST);
    uint64_t n;

    (void)state;
    for (n = 0; n < MOST; n++) {
        send_all(e.link[0], data + n, 1);
        if (n % (QUEUE / 2) == 0)
            await_arrivals(&e, n + 1);
    }
    await_arrivals(&e, MOST);
    assert_int_equal(e.link[0]->ops->send(e.link[0], &(tti_part){ data, 1 }, 1), -EAGAIN);
    receive_all(e.link[1], 0, MOST);
    free(data);
    close_ends(&e);
}

/* What is lent for a small parcel may be much larger than it: it is given back at once. */
static void test_small_ones_are_copied(void **state)
{
    enum { SMALL = 100, LARGE_ONE = TTI_CARRIED_LENT_LEAST };

    ends     e = open_ends();
    uint8_t *data = pattern(SMALL + LARGE_ONE);
    int      n_loans;

    (void)state;
    behave(false, true, false, false);
    for (n_loans = 0; n_loans < SMALL; n_loans++)
        send_all(e.link[0], data + n_loans, 1);
    send_all(e.link[0], data + SMALL, LARGE_ONE);
    await_arrivals(&e, SMALL + 1);
    tti_lock(&e.carrier[1]->lock);
    n_loans = net.at[1]->n_loans;
    tti_unlock(&e.carrier[1]->lock);
    assert_int_equal(n_loans, 1);
    receive_all(e.link[1], 0, SMALL + LARGE_ONE);
    free(data);
    close_ends(&e);
}

/* ---- who gets in ---- */

static void make_parcel(uint8_t out[TTI_PARCEL_HEAD + 1], const uint8_t *token, uint32_t from, uint64_t number, uint64_t taken)
{
    uint8_t *at = out + TTI_CARRIED_TOKEN;

    memcpy(out, token, TTI_CARRIED_TOKEN);
    at = tti_put_u32(at, from);
    at = tti_put_u16(at, 1); /* version */
    at = tti_put_u16(at, 1); /* with bytes */
    at = tti_put_u64(at, number);
    at = tti_put_u64(at, taken);
    *at = 'x';
}

static void slip_in(int side, const void *parcel, size_t bytes)
{
    pthread_mutex_lock(&net.lock);
    post(net.at[side], 1 - side, parcel, bytes, NULL);
    pthread_mutex_unlock(&net.lock);
}

/* Until the carrier's own thread has seen to everything that was slipped in. */
static unsigned strangers_at_last(tti_carrier *c, int side)
{
    const int64_t until_ns = tti_port_now(port()) + PATIENCE_MS * TTI_MS;
    unsigned      n = 0;
    int           left = 1;

    while (left > 0 && tti_port_now(port()) < until_ns) {
        tti_lock(&c->lock); /* what is taken out is handed on under it */
        pthread_mutex_lock(&net.lock);
        left = net.at[side]->n;
        pthread_mutex_unlock(&net.lock);
        n = c->n_strange;
        tti_unlock(&c->lock);
        port()->ops->yield(port());
    }
    assert_int_equal(left, 0);
    return n;
}

/* Parcels overtake the peer's card: what was read of them before it came is told when it is there, though nobody reads again. */
static void test_late_card(void **state)
{
    enum { PARCELS = 9, BYTES = TTI_CARRIED_TELL / 8 };

    const int64_t until_ns = tti_port_now(port()) + PATIENCE_MS * TTI_MS;
    ends          e = { .link = { NULL } };
    uint8_t      *parcel = calloc(1, TTI_PARCEL_HEAD + BYTES);
    uint8_t       card[TTI_PACT_CARD + sizeof(int)] = { 'T', 'U', 'T', 'C', 2, 0, TTI_PACT_CARD };
    uint8_t       out[4096];
    size_t        got = 0;
    uint64_t      told = 0;
    int           i;

    (void)state;
    assert_non_null(parcel);
    behave(false, false, false, false);
    open_carriers(&e, &loop_ops, &loop_ops);
    assert_int_equal(tti_carrier_link(e.carrier[1], 0, e.stream[1], &e.link[1]), TUTTI_OK);
    for (i = 0; i < PARCELS; i++) {
        make_parcel(parcel, inside(e.link[1])->token_in, 0, (uint64_t)i, 0);
        slip_in(1, parcel, TTI_PARCEL_HEAD + BYTES);
    }
    while (got < PARCELS * BYTES) {
        const int64_t n = e.link[1]->ops->recv(e.link[1], out, sizeof out);

        assert_true(n > 0 || n == -EAGAIN);
        if (n < 0)
            sleep_on(e.link[1]);
        else
            got += (size_t)n;
    }
    tti_put_u32(card + 8, sizeof(int)); /* its address is side 0 */
    tti_put_u32(card + 12, TTI_CARRIED_WINDOW);
    memcpy(card + 32, "loop", 5);
    assert_int_equal(write(e.stream[0], card, sizeof card), sizeof card);
    while (told < TTI_CARRIED_TELL && tti_port_now(port()) < until_ns) {
        tti_lock(&e.carrier[1]->lock);
        told = inside(e.link[1])->told;
        tti_unlock(&e.carrier[1]->lock);
        port()->ops->yield(port());
    }
    assert_true(told >= TTI_CARRIED_TELL);
    free(parcel);
    close_ends(&e);
    close(e.stream[0]);
}

/* Parcels of somebody who has not seen the token, or has it but for one bit: nothing of them is taken, and the link goes on. */
static void test_strangers(void **state)
{
    ends     e = open_ends();
    uint8_t *data = pattern(1000);
    uint8_t  token[TTI_CARRIED_TOKEN], parcel[TTI_PARCEL_HEAD + 1];

    (void)state;
    send_all(e.link[0], data, 500);
    receive_all(e.link[1], 0, 500);
    memcpy(token, inside(e.link[1])->token_in, sizeof token);
    token[15] ^= 1;
    make_parcel(parcel, token, 0, 1, 0);
    slip_in(1, parcel, sizeof parcel);
    slip_in(1, parcel, 3);
    memset(token, 0, sizeof token);
    make_parcel(parcel, token, 0, 1, UINT64_MAX);
    slip_in(1, parcel, sizeof parcel);
    make_parcel(parcel, inside(e.link[1])->token_in, 77, 1, 0); /* no such rank */
    slip_in(1, parcel, sizeof parcel);
    make_parcel(parcel, inside(e.link[1])->token_in, 1, 1, 0); /* another rank than the one who was given it */
    slip_in(1, parcel, sizeof parcel);
    send_all(e.link[0], data + 500, 500);
    receive_all(e.link[1], 500, 500);
    assert_int_equal(strangers_at_last(e.carrier[1], 1), 5);
    assert_int_equal(e.link[1]->ops->recv(e.link[1], token, 1), -EAGAIN); /* and all is well with it */
    free(data);
    close_ends(&e);
}

/* No token was drawn for a rank that has no link yet, so none is right; one that had a link is no stranger when that is
 * closed. */
static void test_before_and_after(void **state)
{
    static const uint8_t none[TTI_CARRIED_TOKEN];
    ends                 e = { .link = { NULL } };
    uint8_t              token[TTI_CARRIED_TOKEN], byte = byte_at(0), parcel[TTI_PARCEL_HEAD + 1];
    int                  i;

    (void)state;
    open_carriers(&e, &loop_ops, &loop_ops);
    make_parcel(parcel, none, 0, 0, 0);
    slip_in(1, parcel, sizeof parcel);
    assert_int_equal(strangers_at_last(e.carrier[1], 1), 1);
    for (i = 0; i < SIDES; i++)
        assert_int_equal(tti_carrier_link(e.carrier[i], 1 - i, e.stream[i], &e.link[i]), TUTTI_OK);
    send_all(e.link[0], &byte, 1);
    receive_all(e.link[1], 0, 1);
    memcpy(token, inside(e.link[1])->token_in, sizeof token);
    e.link[1]->ops->close(e.link[1]);
    e.link[1] = NULL;
    make_parcel(parcel, token, 0, 1, 0);
    slip_in(1, parcel, sizeof parcel);
    assert_int_equal(strangers_at_last(e.carrier[1], 1), 1);
    close_ends(&e);
}

/* A peer that has the token, and says what cannot be. */
static void breaks(uint64_t number, uint64_t taken, size_t bytes)
{
    ends    e = open_ends();
    uint8_t byte = byte_at(0), parcel[TTI_PARCEL_HEAD + 1];

    send_all(e.link[0], &byte, 1);
    receive_all(e.link[1], 0, 1);
    make_parcel(parcel, inside(e.link[1])->token_in, 0, number, taken);
    slip_in(1, parcel, bytes);
    assert_int_equal(recv_at_last(e.link[1]), -EPROTO);
    assert_int_equal(e.link[1]->ops->send(e.link[1], &(tti_part){ &byte, 1 }, 1), -EPROTO);
    close_ends(&e);
}

static void test_nonsense(void **state)
{
    (void)state;
    breaks(0, 0, TTI_PARCEL_HEAD + 1);                  /* a number that was there */
    breaks(TTI_CARRIED_WINDOW + 1, 0, TTI_PARCEL_HEAD + 1); /* one beyond all windows */
    breaks(1, 7, TTI_PARCEL_HEAD + 1);                  /* more taken than was sent */
    breaks(1, 0, TTI_PARCEL_HEAD);                      /* bytes that are none */
}

static void test_twice(void **state)
{
    ends    e = open_ends();
    uint8_t byte = byte_at(0), parcel[TTI_PARCEL_HEAD + 1];

    (void)state;
    send_all(e.link[0], &byte, 1);
    receive_all(e.link[1], 0, 1);
    make_parcel(parcel, inside(e.link[1])->token_in, 0, 2, 0); /* one too early, */
    slip_in(1, parcel, sizeof parcel);
    slip_in(1, parcel, sizeof parcel); /* twice */
    assert_int_equal(recv_at_last(e.link[1]), -EPROTO);
    close_ends(&e);
}

/* What stands where a card should. */
static void card_breaks(const void *card, size_t bytes)
{
    ends e = { .link = { NULL } };

    open_carriers(&e, &loop_ops, &loop_ops);
    assert_int_equal(write(e.stream[0], card, bytes), (ssize_t)bytes);
    assert_int_equal(tti_carrier_link(e.carrier[1], 0, e.stream[1], &e.link[1]), TUTTI_OK);
    assert_int_equal(recv_at_last(e.link[1]), -EPROTO);
    close_ends(&e);
    close(e.stream[0]);
}

static void test_cards(void **state)
{
    uint8_t card[TTI_PACT_CARD] = { 'T', 'U', 'T', 'C', 2, 0, TTI_PACT_CARD };
    ends    e = { .link = { NULL } };
    int     i;

    (void)state;
    tti_put_u32(card + 8, 4);
    tti_put_u32(card + 12, TTI_CARRIED_WINDOW);
    memcpy(card + 32, "loop", 5);
    card[0] = 'U';
    card_breaks(card, sizeof card);
    card[0] = 'T';
    card[4] = 1;
    card_breaks(card, sizeof card);
    card[4] = 2;
    card[33] = 'u';
    card_breaks(card, sizeof card);
    card[33] = 'o';
    tti_put_u32(card + 8, TUTTI_TRANSPORT_ADDRESS_MAX + 1);
    card_breaks(card, sizeof card);
    tti_put_u32(card + 8, 0);
    card_breaks(card, sizeof card);
    open_carriers(&e, &loop_ops, &other_ops);
    for (i = 0; i < SIDES; i++)
        assert_int_equal(tti_carrier_link(e.carrier[i], 1 - i, e.stream[i], &e.link[i]), TUTTI_OK);
    assert_int_equal(recv_at_last(e.link[0]), -EPROTO);
    assert_int_equal(recv_at_last(e.link[1]), -EPROTO);
    close_ends(&e);
}

/* ---- the end ---- */

/* What was sent before a link was closed is read after it, and then comes the end; also by a peer that was not in a call. */
static void test_leaving(void **state)
{
    ends          e = open_ends();
    uint8_t      *data = pattern(300000);
    const int64_t until_ns = tti_port_now(port()) + PATIENCE_MS * TTI_MS;
    bool          has_said = false;

    (void)state;
    open_back(&e); /* its card has gone, so its word can */
    behave(true, false, true, false);
    send_all(e.link[0], data, 300000);
    e.link[0]->ops->close(e.link[0]);
    while (!has_said && tti_port_now(port()) < until_ns) { /* that all is there: nobody has to read for that */
        tti_lock(&e.carrier[1]->lock);
        has_said = inside(e.link[1])->has_said;
        tti_unlock(&e.carrier[1]->lock);
        port()->ops->yield(port());
    }
    assert_true(has_said);
    e.link[0] = NULL;
    tti_carrier_close(e.carrier[0], PATIENCE_MS);
    e.carrier[0] = NULL;
    receive_all(e.link[1], 0, 300000);
    assert_int_equal(recv_at_last(e.link[1]), 0);
    free(data);
    close_ends(&e);
}

/* A peer that takes nothing does not hold it up for longer than was said. */
static void test_leaving_the_stopped(void **state)
{
    ends     e = open_ends();
    uint8_t *data = pattern(1000);
    int64_t  began_ns, took_ns;

    (void)state;
    send_all(e.link[0], data, 500);
    receive_all(e.link[1], 0, 500);
    behave(false, false, false, true);
    send_all(e.link[0], data, 500);
    began_ns = tti_port_now(port());
    e.link[0]->ops->close(e.link[0]);
    e.link[0] = NULL;
    tti_carrier_close(e.carrier[0], 100);
    e.carrier[0] = NULL;
    took_ns = tti_port_now(port()) - began_ns;
    assert_true(took_ns >= 100 * TTI_MS && took_ns < WAIT_MS * TTI_MS);
    free(data);
    close_ends(&e);
}

/* The connection ends with no word: what has come by then is read, then comes the end; not before the grace is over. */
static void test_death(void **state)
{
    ends     e = open_ends();
    uint8_t *data = pattern(1000);
    int64_t  began_ns;

    (void)state;
    send_all(e.link[0], data, 500);
    receive_all(e.link[1], 0, 400);
    began_ns = tti_port_now(port());
    assert_int_equal(shutdown(e.stream[0], SHUT_RDWR), 0);
    receive_all(e.link[1], 400, 100);
    assert_int_equal(recv_at_last(e.link[1]), 0);
    assert_true(tti_port_now(port()) - began_ns >= TTI_CARRIED_GRACE_MS * TTI_MS);
    assert_int_equal(recv_at_last(e.link[0]), 0);
    free(data);
    close_ends(&e);
}

/* The transport is the first to tell of a death, in words of its own; the connection knows better what it is. */
static void test_death_of_both(void **state)
{
    ends    e = open_ends();
    uint8_t byte = byte_at(0);

    (void)state;
    open_back(&e);
    send_all(e.link[0], &byte, 1);
    receive_all(e.link[1], 0, 1);
    tti_lock(&e.carrier[1]->lock);
    net.at[1]->hooks->broken(net.at[1]->hooks->context, net.at[1]->way->peer, ETIMEDOUT, "nobody answers");
    assert_int_equal(shutdown(e.stream[0], SHUT_RDWR), 0);
    tti_pact_turn((tti_carried *)e.link[1]); /* within the grace, however slow the machine is */
    tti_unlock(&e.carrier[1]->lock);
    assert_int_equal(recv_at_last(e.link[1]), 0);
    assert_int_equal(e.link[1]->ops->send(e.link[1], &(tti_part){ &byte, 1 }, 1), -EPIPE);
    close_ends(&e);
}

/* The transport alone tells: what has come is read first, and the words are there for texts. */
static void test_broken(void **state)
{
    ends     e = open_ends();
    uint8_t *data = pattern(500);
    char     words[160];

    (void)state;
    open_back(&e);
    send_all(e.link[0], data, 500);
    receive_all(e.link[1], 0, 499);
    tti_lock(&e.carrier[1]->lock);
    net.at[1]->hooks->broken(net.at[1]->hooks->context, net.at[1]->way->peer, ETIMEDOUT, "the cable is out");
    tti_unlock(&e.carrier[1]->lock);
    receive_all(e.link[1], 499, 1);
    assert_int_equal(recv_at_last(e.link[1]), -ETIMEDOUT);
    assert_int_equal(e.link[1]->ops->send(e.link[1], &(tti_part){ data, 1 }, 1), -ETIMEDOUT);
    e.link[1]->ops->describe(e.link[1], words, sizeof words);
    assert_string_equal(words, "by 'loop': the cable is out");
    free(data);
    close_ends(&e);
}

/* The transport has no way to the peer, and knows why: so do texts, at once. The connection is fine, and says nothing. */
static void test_no_way(void **state)
{
    ends e = { .link = { NULL } };
    char words[160];
    int  i;

    (void)state;
    behave(false, false, false, false);
    net.refuses = true; /* nobody else runs yet */
    open_carriers(&e, &loop_ops, &loop_ops);
    for (i = 0; i < SIDES; i++)
        assert_int_equal(tti_carrier_link(e.carrier[i], 1 - i, e.stream[i], &e.link[i]), TUTTI_OK);
    for (i = 0; i < SIDES; i++) {
        assert_int_equal(recv_at_last(e.link[i]), -EHOSTUNREACH);
        e.link[i]->ops->describe(e.link[i], words, sizeof words);
        assert_string_equal(words, "by 'loop': there is no cable\n  next: lay one");
    }
    close_ends(&e);
    net.refuses = false;
}

static void opening_fails(misdeed what, tutti_status st, const char *words)
{
    tti_carrier *c = NULL;

    net.misdeed = what;
    (void)tti_fail(TUTTI_E_IO, "somebody else's words");
    assert_int_equal(tti_carrier_open(port(), &loop_ops, 0, SIDES, &c), st);
    assert_null(c);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
    net.misdeed = NONE;
}

static void says(tti_link *link, const char *what)
{
    char words[200];

    assert_int_equal(recv_at_last(link), -EIO);
    link->ops->describe(link, words, sizeof words);
    if (strstr(words, what) == NULL)
        fail_msg("'%s' is not in: %s", what, words);
}

/* What a transport gives is looked at before it is used. */
static void test_misdeeds_at_first(void **state)
{
    (void)state;
    opening_fails(GIVES_NO_INSTANCE, TUTTI_E_BACKEND, "transport 'loop' is broken: its entry 'open' has succeeded, and gives no instance");
    opening_fails(FAILS_WITHOUT_WORDS, TUTTI_E_NETWORK, "its entry 'open' has failed with TUTTI_E_NETWORK, and has no words");
    opening_fails(GIVES_NO_STATUS, TUTTI_E_BACKEND, "its entry 'open' has failed with status 77, which there is not");
}

static void test_misdeeds_of_ways(void **state)
{
    ends e = { .link = { NULL } };
    int  i;

    (void)state;
    behave(false, false, false, false);
    open_carriers(&e, &loop_ops, &loop_ops);
    net.misdeed = GIVES_NO_ADDRESS;
    assert_int_equal(tti_carrier_link(e.carrier[0], 1, e.stream[0], &e.link[0]), TUTTI_E_BACKEND);
    assert_non_null(strstr(tutti_last_error(), "its entry 'address' has succeeded, and gives no address"));
    net.misdeed = GIVES_NO_WAY;
    for (i = 0; i < SIDES; i++)
        assert_int_equal(tti_carrier_link(e.carrier[i], 1 - i, e.stream[i], &e.link[i]), TUTTI_OK);
    for (i = 0; i < SIDES; i++)
        says(e.link[i], "its 'connect' has succeeded, and gives no way");
    close_ends(&e);
    net.misdeed = NONE;
}

static void test_misdeeds_in_sending(void **state)
{
    const uint8_t byte = 1;
    ends          e = open_ends();

    (void)state;
    open_back(&e); /* so the second end has its way, and sends at once */
    net.misdeed = SENDS_NONSENSE;
    (void)e.link[1]->ops->send(e.link[1], &(tti_part){ &byte, 1 }, 1);
    says(e.link[1], "its 'send' gives neither 1, 0 nor -errno");
    net.misdeed = NONE;
    close_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_window),  cmocka_unit_test(test_frames),
        cmocka_unit_test(test_strangers), cmocka_unit_test(test_nonsense), cmocka_unit_test(test_twice),
        cmocka_unit_test(test_before_and_after), cmocka_unit_test(test_empty_messages),
        cmocka_unit_test(test_many_small_ones),
        cmocka_unit_test(test_small_ones_are_copied), cmocka_unit_test(test_late_card),
        cmocka_unit_test(test_cards),     cmocka_unit_test(test_leaving), cmocka_unit_test(test_leaving_the_stopped),
        cmocka_unit_test(test_death),     cmocka_unit_test(test_death_of_both), cmocka_unit_test(test_broken),
        cmocka_unit_test(test_no_way),   cmocka_unit_test(test_misdeeds_at_first), cmocka_unit_test(test_misdeeds_of_ways),
        cmocka_unit_test(test_misdeeds_in_sending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
