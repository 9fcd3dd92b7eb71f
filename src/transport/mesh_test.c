/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_test.c
 * Goal    members meet and exchange messages, through shared memory and through TCP, and say clearly who
 *         is missing, gone or wrong.
 * Method  ranks are threads of this process on a board in its memory; every case runs once per transport.
 *         The same code, the same memfds and sockets as between processes, so a race detector sees it all. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "transport/card.h"
#include "transport/frame.h"
#include "transport/meet.h"
#include "transport/mesh_links.h"
#include "transport/messenger_core.h"
#include "transport/trouble.h"
#include "transport/window.h"

enum { RANKS_MAX = 5, KEYS_MAX = 64, LIMIT_MS = 30000 };

/* ---- a board in memory ------------------------------------------------------------------------------ */

typedef struct test_board {
    tti_mutex lock;
    tti_event changed;
    int       n;
    int       n_cards; /* that were read */
    bool      patient; /* whoever waits for what is said inside a host, or for a card, looks for nothing else meanwhile, however long it takes */
    struct {
        char    key[32];
        uint8_t data[512];
        size_t  bytes;
    } entry[KEYS_MAX];
} test_board;

static int find_key(const test_board *board, const char *key)
{
    int i;

    for (i = 0; i < board->n; i++)
        if (strcmp(board->entry[i].key, key) == 0)
            return i;
    return -1;
}

static tutti_status board_put(void *context, const char *key, const void *data, size_t bytes,
                              int64_t deadline_ns)
{
    test_board  *board = context;
    tutti_status st = TUTTI_OK;

    (void)deadline_ns;
    tti_lock(&board->lock);
    if (find_key(board, key) >= 0) {
        st = tti_fail(TUTTI_E_STATE, "key '%s' is there", key);
    } else {
        snprintf(board->entry[board->n].key, sizeof board->entry[0].key, "%s", key);
        memcpy(board->entry[board->n].data, data, bytes);
        board->entry[board->n++].bytes = bytes;
    }
    tti_unlock(&board->lock);
    tti_event_signal(tti_port_system(), &board->changed);
    return st;
}

static tutti_status board_get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    test_board *board = context;
    int         i;

    if (board->patient && (strncmp(key, "hand/", 5) == 0 || strncmp(key, "card/", 5) == 0)) /* cards of a second look would be counted */
        deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0);
    for (;;) {
        uint32_t seen = tti_event_now(&board->changed);

        tti_lock(&board->lock);
        i = find_key(board, key);
        if (i >= 0)
            memcpy(out, board->entry[i].data, bytes);
        board->n_cards += i >= 0 && strncmp(key, "card/", 5) == 0;
        tti_unlock(&board->lock);
        if (i >= 0)
            return TUTTI_OK;
        if (tti_port_now(tti_port_system()) >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come", key);
        tti_event_wait(tti_port_system(), &board->changed, seen, deadline_ns);
    }
}

static tutti_status board_has(void *context, const char *key, int64_t deadline_ns,
                              bool *there_out)
{
    test_board *board = context;

    (void)deadline_ns;
    tti_lock(&board->lock);
    *there_out = find_key(board, key) >= 0;
    tti_unlock(&board->lock);
    return TUTTI_OK;
}

/* ---- ranks as threads ------------------------------------------------------------------------------- */

typedef struct rank_ctx rank_ctx;
typedef void (*rank_body)(rank_ctx *ctx);

struct rank_ctx {
    int            rank, size;
    bool           tcp;
    tti_port      *port;
    test_board    *board;
    rank_body      body;
    int64_t        deadline_ns;
    tti_mesh      *mesh;
    tti_messenger *messenger;
    char           failure[1024]; /* empty: fine */
};

/* Assertions of cmocka belong to the test's thread: ranks note what went wrong. */
#define CHECK(ctx, cond)                                                                               \
    do {                                                                                               \
        if (!(cond) && (ctx)->failure[0] == '\0')                                                      \
            snprintf((ctx)->failure, sizeof(ctx)->failure, "rank %d, line %d: %s (%s)", (ctx)->rank,   \
                     __LINE__, #cond, tutti_last_error());                                             \
    } while (0)

static int together; /* from how many ranks on a host reads together; 0: as usual */

static tti_mesh_config config_of(const rank_ctx *ctx, const tti_board *board)
{
    return (tti_mesh_config){ .port = ctx->port != NULL ? ctx->port : tti_port_system(), .board = board,
                              .rank = ctx->rank, .n_ranks = ctx->size, .listen_host = "127.0.0.1",
                              .tcp_only = ctx->tcp, .together_from = together, .deadline_ns = ctx->deadline_ns };
}

static void *rank_main(void *arg)
{
    rank_ctx               *ctx = arg;
    const tti_board         board = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config   config = config_of(ctx, &board);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_OK);
    if (ctx->mesh != NULL) {
        CHECK(ctx, tti_mesh_ranks_on_machine(ctx->mesh) == ctx->size); /* by TCP, too, as from another host */
        CHECK(ctx, tti_messenger_open(ctx->mesh, &ctx->messenger) == TUTTI_OK);
        if (ctx->messenger != NULL)
            ctx->body(ctx);
        tti_messenger_close(ctx->messenger);
        tti_mesh_close(ctx->mesh);
    }
    return NULL;
}

static void run_ranks_over(tti_port *port, int size, bool tcp, rank_body body)
{
    test_board board = { .n = 0 };
    rank_ctx   ctx[RANKS_MAX];
    pthread_t  threads[RANKS_MAX];
    int        rank;

    tti_mutex_init(&board.lock);
    for (rank = 0; rank < size; rank++) {
        ctx[rank] = (rank_ctx){ .rank = rank, .size = size, .tcp = tcp, .port = port, .board = &board, .body = body,
                                .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
        assert_int_equal(pthread_create(&threads[rank], NULL, rank_main, &ctx[rank]), 0);
    }
    for (rank = 0; rank < size; rank++)
        pthread_join(threads[rank], NULL);
    tti_mutex_release(&board.lock);
    for (rank = 0; rank < size; rank++)
        if (ctx[rank].failure[0] != '\0')
            fail_msg("%s: %s", tcp ? "tcp" : "shm", ctx[rank].failure);
}

static void run_ranks_on(int size, bool tcp, rank_body body)
{
    run_ranks_over(tti_port_system(), size, tcp, body);
}

static void run_ranks(int size, rank_body body)
{
    run_ranks_on(size, false, body);
    run_ranks_on(size, true, body);
}

static const tti_channel p2p = { .group = 0, .plane = TTI_PLANE_P2P };
static const tti_channel coll = { .group = 0, .plane = TTI_PLANE_COLLECTIVE };

static tti_request *begin(rank_ctx *ctx, bool send, tti_channel channel, int peer, int tag, void *data,
                          size_t bytes)
{
    const tti_parcel parcel = { .peer = peer, .tag = tag, .dtype = TUTTI_U8, .data = data, .bytes = bytes };
    tti_request     *request = NULL;

    CHECK(ctx, (send ? tti_messenger_send : tti_messenger_recv)(ctx->messenger, channel, &parcel,
                                                                &request) == TUTTI_OK);
    return request;
}

static tutti_status finish(rank_ctx *ctx, tti_request *request)
{
    tutti_status st = tti_request_wait(request, ctx->deadline_ns);

    tti_request_release(request);
    return st;
}

static tutti_status do_send(rank_ctx *ctx, int peer, int tag, void *data, size_t bytes)
{
    return finish(ctx, begin(ctx, true, p2p, peer, tag, data, bytes));
}

static tutti_status do_recv(rank_ctx *ctx, int peer, int tag, void *data, size_t bytes)
{
    return finish(ctx, begin(ctx, false, p2p, peer, tag, data, bytes));
}

/* ---- cases ------------------------------------------------------------------------------------------ */

static void body_all_pairs(rank_ctx *ctx)
{
    int values[RANKS_MAX];
    int peer, got;

    for (peer = 0; peer < ctx->size; peer++)
        if (peer != ctx->rank) {
            values[peer] = ctx->rank * 100 + peer;
            CHECK(ctx, do_send(ctx, peer, 0, &values[peer], sizeof(int)) == TUTTI_OK);
        }
    for (peer = 0; peer < ctx->size; peer++)
        if (peer != ctx->rank) {
            CHECK(ctx, do_recv(ctx, peer, 0, &got, sizeof got) == TUTTI_OK);
            CHECK(ctx, got == peer * 100 + ctx->rank);
        }
}

static void every_pair_exchanges(void **state)
{
    (void)state;
    run_ranks(1, body_all_pairs);
    run_ranks(2, body_all_pairs);
    run_ranks(5, body_all_pairs);
}

static void body_tags(rank_ctx *ctx)
{
    int a = 1, b = 2, c = 3, got = 0;

    if (ctx->rank == 0) {
        CHECK(ctx, do_send(ctx, 1, 7, &a, sizeof a) == TUTTI_OK);
        CHECK(ctx, do_send(ctx, 1, 9, &b, sizeof b) == TUTTI_OK);
        CHECK(ctx, do_send(ctx, 1, 7, &c, sizeof c) == TUTTI_OK);
        CHECK(ctx, finish(ctx, begin(ctx, true, coll, 1, 7, &b, sizeof b)) == TUTTI_OK);
        CHECK(ctx, do_send(ctx, 1, 1, NULL, 0) == TUTTI_OK);
    } else {
        CHECK(ctx, finish(ctx, begin(ctx, false, coll, 0, 7, &got, sizeof got)) == TUTTI_OK && got == 2);
        CHECK(ctx, do_recv(ctx, 0, 9, &got, sizeof got) == TUTTI_OK && got == 2);
        CHECK(ctx, do_recv(ctx, 0, 7, &got, sizeof got) == TUTTI_OK && got == 1);
        CHECK(ctx, do_recv(ctx, 0, 7, &got, sizeof got) == TUTTI_OK && got == 3);
        CHECK(ctx, do_recv(ctx, 0, 1, NULL, 0) == TUTTI_OK);
    }
}

static void tags_select_and_keep_order(void **state)
{
    (void)state;
    run_ranks(2, body_tags);
}

/* Both send more than any buffer holds before either receives: only the messenger's thread, or a wait
 * that drives everything, gets them through. */
static void body_large_both_ways(rank_ctx *ctx)
{
    const size_t n = 3 << 20;
    uint8_t     *out = malloc(n), *in = malloc(n);
    tti_request *sent;
    size_t       i;
    const int    peer = 1 - ctx->rank;

    for (i = 0; i < n; i++)
        out[i] = (uint8_t)(i * 7 + (size_t)ctx->rank);
    sent = begin(ctx, true, p2p, peer, 0, out, n);
    CHECK(ctx, do_recv(ctx, peer, 0, in, n) == TUTTI_OK);
    CHECK(ctx, finish(ctx, sent) == TUTTI_OK);
    for (i = 0; i < n && in[i] == (uint8_t)(i * 7 + (size_t)peer); i++)
        continue;
    CHECK(ctx, i == n);
    free(out);
    free(in);
}

static void large_messages_cross(void **state)
{
    (void)state;
    run_ranks(2, body_large_both_ways);
}

static void body_thread_drives(rank_ctx *ctx)
{
    const size_t n = 3 << 20;
    uint8_t     *data = calloc(1, n);
    tti_request *request = begin(ctx, ctx->rank == 0, p2p, 1 - ctx->rank, 0, data, n);

    /* Nobody waits: the messenger's own thread must bring it to its end. */
    while (!tti_request_ended(request) && tti_now_ns() < ctx->deadline_ns)
        sched_yield();
    CHECK(ctx, tti_request_ended(request));
    CHECK(ctx, finish(ctx, request) == TUTTI_OK);
    free(data);
}

static void requests_progress_without_waiting(void **state)
{
    (void)state;
    run_ranks(2, body_thread_drives);
}

static void body_any_source(rank_ctx *ctx)
{
    int  seen[RANKS_MAX] = { 0 };
    int  i, value = ctx->rank;

    if (ctx->rank != 0) {
        CHECK(ctx, do_send(ctx, 0, 4, &value, sizeof value) == TUTTI_OK);
        return;
    }
    for (i = 1; i < ctx->size; i++) {
        tti_request *request = begin(ctx, false, p2p, -1, 4, &value, sizeof value);

        CHECK(ctx, tti_request_wait(request, ctx->deadline_ns) == TUTTI_OK);
        CHECK(ctx, tti_request_peer(request) == value && value > 0 && seen[value]++ == 0);
        tti_request_release(request);
    }
}

static void any_source_tells_who(void **state)
{
    (void)state;
    run_ranks(4, body_any_source);
}

static void body_wrong_size(rank_ctx *ctx)
{
    int pair[2] = { 5, 6 }, got[2] = { 0, 0 };

    if (ctx->rank == 0) {
        CHECK(ctx, do_send(ctx, 1, 0, pair, sizeof pair) == TUTTI_OK);
        CHECK(ctx, do_send(ctx, 1, 0, pair, sizeof(int)) == TUTTI_OK);
        CHECK(ctx, do_recv(ctx, 1, 3, got, sizeof(int)) == TUTTI_OK);
    } else {
        CHECK(ctx, do_recv(ctx, 0, 0, got, sizeof(int)) == TUTTI_E_MISMATCH);
        CHECK(ctx, strstr(tutti_last_error(), "from rank 0 with tag 0 has 8 ") != NULL && got[0] == 0);
        CHECK(ctx, do_recv(ctx, 0, 0, got, sizeof(int)) == TUTTI_OK && got[0] == 5);
        CHECK(ctx, do_send(ctx, 0, 3, got, sizeof(int)) == TUTTI_OK);
    }
}

static void wrong_sizes_are_refused_and_consumed(void **state)
{
    (void)state;
    run_ranks(2, body_wrong_size);
}

static void body_time_out(rank_ctx *ctx)
{
    int          value = 3;
    tti_request *request;

    if (ctx->rank == 0) {
        CHECK(ctx, do_recv(ctx, 1, 1, &value, sizeof value) == TUTTI_OK);
        value = 8;
        CHECK(ctx, do_send(ctx, 1, 0, &value, sizeof value) == TUTTI_OK);
        return;
    }
    request = begin(ctx, false, p2p, 0, 0, &value, sizeof value);
    CHECK(ctx, tti_request_wait(request, tti_deadline(tti_port_system(), 30, 0)) == TUTTI_E_TIMEOUT);
    CHECK(ctx, strstr(tutti_last_error(), "rank 0") != NULL);
    CHECK(ctx, do_send(ctx, 0, 1, &(int){ 1 }, sizeof(int)) == TUTTI_OK);
    CHECK(ctx, finish(ctx, request) == TUTTI_OK && value == 8); /* it went on */
}

static void a_wait_that_times_out_can_be_repeated(void **state)
{
    (void)state;
    run_ranks(2, body_time_out);
}

static void body_connected_time_out(rank_ctx *ctx)
{
    int          value = 3;
    tti_request *request;

    if (ctx->rank == 0) {
        CHECK(ctx, do_send(ctx, 1, 1, &value, sizeof value) == TUTTI_OK);
        CHECK(ctx, do_recv(ctx, 1, 2, &value, sizeof value) == TUTTI_OK); /* it has seen the end of its patience */
        CHECK(ctx, do_send(ctx, 1, 3, &value, sizeof value) == TUTTI_OK);
        return;
    }
    CHECK(ctx, do_recv(ctx, 0, 1, &value, sizeof value) == TUTTI_OK);
    request = begin(ctx, false, p2p, 0, 3, &value, sizeof value);
    CHECK(ctx, tti_request_wait(request, tti_deadline(tti_port_system(), 20, 0)) == TUTTI_E_TIMEOUT);
    CHECK(ctx, (strstr(tutti_last_error(), "\n  connection: ") != NULL) == ctx->tcp);
    CHECK(ctx, (strstr(tutti_last_error(), " retransmissions") != NULL) == ctx->tcp); /* none, or as many as the kernel saw fit */
    CHECK(ctx, do_send(ctx, 0, 2, &value, sizeof value) == TUTTI_OK);
    CHECK(ctx, finish(ctx, request) == TUTTI_OK);
}

static void a_time_out_says_what_the_kernel_knows(void **state)
{
    (void)state;
    run_ranks(2, body_connected_time_out);
}

/* Of "reno", which every kernel has. */
static _Atomic int n_reno;

static tutti_status count_reno(tti_port *port, tti_handle handle, const char *name)
{
    tti_port        *system = tti_port_system();
    tti_stream_facts facts;
    tutti_status     st = system->ops->set_congestion(system, handle, name);

    (void)port;
    if (st == TUTTI_OK && strcmp(name, "reno") == 0 && system->ops->stream_facts(system, handle, &facts) == 0 &&
        strcmp(facts.congestion, "reno") == 0)
        atomic_fetch_add(&n_reno, 1);
    return st;
}

/* Connections that had it before their first packet: what a kernel begins with may stay on, whatever it is told later. */
static _Atomic int n_begun;

static int count_begun(tti_port *port, const tti_addr *from, const char *congestion, const tti_addr *to, tti_handle *handle_out)
{
    tti_port        *system = tti_port_system();
    const int        err = system->ops->connect_from(system, from, congestion, to, handle_out);
    tti_stream_facts facts;

    (void)port;
    if (err == 0 && congestion != NULL && strcmp(congestion, "reno") == 0 &&
        system->ops->stream_facts(system, *handle_out, &facts) == 0 && strcmp(facts.congestion, "reno") == 0)
        atomic_fetch_add(&n_begun, 1);
    return err;
}

static void every_connection_takes_the_congestion_control(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    ops.set_congestion = count_reno;
    ops.connect_from = count_begun;
    setenv("TUTTI_TCP_CONGESTION", "reno", 1);
    atomic_store(&n_reno, 0);
    atomic_store(&n_begun, 0);
    run_ranks_over(&port, 3, true, body_all_pairs);
    unsetenv("TUTTI_TCP_CONGESTION");
    assert_int_equal(atomic_load(&n_reno), 3); /* listeners */
    assert_true(atomic_load(&n_begun) >= 3);
}

/* A system whose own is as told here, over a way of so long. */
static const char *system_congestion;
static uint32_t    way_us;
static _Atomic int n_systems;

static int tell_way(tti_port *port, tti_handle handle, tti_stream_facts *facts_out)
{
    tti_port *system = tti_port_system();
    const int err = system->ops->stream_facts(system, handle, facts_out);

    (void)port;
    snprintf(facts_out->congestion, sizeof facts_out->congestion, "%s", system_congestion);
    facts_out->least_trip_us = way_us;
    return err;
}

static tutti_status count_systems(tti_port *port, tti_handle handle, const char *name)
{
    if (strcmp(name, system_congestion) != 0)
        return count_reno(port, handle, name);
    atomic_fetch_add(&n_systems, 1);
    return TUTTI_OK;
}

/* Of those that were spoken with. */
static void body_trips(rank_ctx *ctx)
{
    static const int all[] = { 0, 1 };

    body_all_pairs(ctx);
    CHECK(ctx, tti_messenger_trip_us(ctx->messenger, all, 2) == way_us);
    CHECK(ctx, tti_messenger_trip_us(ctx->messenger, &all[ctx->rank], 1) == 0);
}

/* One that sends at a rate which it has found out is for long ways only; all others are the system's affair. */
static void a_near_way_is_not_paced(void **state)
{
    static const struct {
        const char *congestion;
        uint32_t    way_us;
        int         listeners, ends; /* that are made "reno", and that get the system's again */
    } rows[] = { { "bbr", 100, 2, 0 }, { "bbr", 9000, 2, 2 }, { "bbr3", 9000, 2, 2 }, { "cubic", 100, 0, 0 }, { "cubic", 9000, 0, 0 } };
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };
    size_t       i;

    (void)state;
    ops.set_congestion = count_systems;
    ops.connect_from = count_begun;
    ops.stream_facts = tell_way;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        system_congestion = rows[i].congestion;
        way_us = rows[i].way_us;
        atomic_store(&n_reno, 0);
        atomic_store(&n_begun, 0);
        atomic_store(&n_systems, 0);
        run_ranks_over(&port, 2, true, body_trips);
        assert_int_equal(atomic_load(&n_reno), rows[i].listeners);
        assert_int_equal(atomic_load(&n_begun) > 0, rows[i].listeners > 0);
        assert_int_equal(atomic_load(&n_systems), rows[i].ends);
    }
}

static void *refused_main(void *arg)
{
    rank_ctx             *ctx = arg;
    const tti_board       board = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config config = config_of(ctx, &board);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_OK);
    if (ctx->mesh != NULL) {
        CHECK(ctx, tti_messenger_open(ctx->mesh, &ctx->messenger) == TUTTI_E_ARG);
        CHECK(ctx, strstr(tutti_last_error(), "'fastest'") != NULL && strstr(tutti_last_error(), "reno") != NULL &&
                       strstr(tutti_last_error(), "TUTTI_TCP_CONGESTION") != NULL);
        tti_mesh_close(ctx->mesh);
    }
    return NULL;
}

static void run_refused(void *(*main_of_rank)(void *), int n)
{
    test_board board = { .n = 0 };
    rank_ctx   ctx[2];
    pthread_t  threads[2];
    int        rank;

    tti_mutex_init(&board.lock);
    for (rank = 0; rank < n; rank++) {
        ctx[rank] = (rank_ctx){ .rank = rank, .size = 2, .tcp = true, .board = &board,
                                .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
        assert_int_equal(pthread_create(&threads[rank], NULL, main_of_rank, &ctx[rank]), 0);
    }
    for (rank = 0; rank < n; rank++)
        pthread_join(threads[rank], NULL);
    tti_mutex_release(&board.lock);
    for (rank = 0; rank < n; rank++)
        if (ctx[rank].failure[0] != '\0')
            fail_msg("%s", ctx[rank].failure);
}

static void an_unknown_congestion_control_is_refused(void **state)
{
    (void)state;
    setenv("TUTTI_TCP_CONGESTION", "fastest", 1);
    run_refused(refused_main, 2);
    unsetenv("TUTTI_TCP_CONGESTION");
}

/* Messages of any size in both directions at once, over ways of several connections. */
static void body_striped(rank_ctx *ctx)
{
    enum { MESSAGES = 24 };
    const int    peer = 1 - ctx->rank;
    tti_request *sends[MESSAGES], *recvs[MESSAGES];
    uint8_t     *out[MESSAGES], *in[MESSAGES];
    size_t       bytes, k;
    int          i;

    for (i = 0; i < MESSAGES; i++) {
        bytes = (size_t)1 << (i % 22);
        out[i] = malloc(bytes);
        in[i] = calloc(1, bytes);
        for (k = 0; k < bytes; k++)
            out[i][k] = (uint8_t)(k * 31 + (k >> 9) + (size_t)(i + ctx->rank));
        recvs[i] = begin(ctx, false, p2p, peer, 0, in[i], bytes);
        sends[i] = begin(ctx, true, p2p, peer, 0, out[i], bytes);
    }
    for (i = 0; i < MESSAGES; i++) {
        CHECK(ctx, finish(ctx, sends[i]) == TUTTI_OK);
        CHECK(ctx, finish(ctx, recvs[i]) == TUTTI_OK);
        bytes = (size_t)1 << (i % 22);
        for (k = 0; k < bytes; k++)
            if (in[i][k] != (uint8_t)(k * 31 + (k >> 9) + (size_t)(i + peer)))
                break;
        CHECK(ctx, k == bytes);
        free(out[i]);
        free(in[i]);
    }
}

static void ways_may_have_several_connections(void **state)
{
    (void)state;
    setenv("TUTTI_TCP_STRIPES", "3", 1);
    run_ranks_on(2, true, body_striped);
    run_ranks_on(5, true, body_all_pairs);
    setenv("TUTTI_TCP_STRIPES", "8", 1);
    run_ranks_on(2, true, body_striped);
    unsetenv("TUTTI_TCP_STRIPES");
}

static void *nine_stripes_main(void *arg)
{
    rank_ctx             *ctx = arg;
    const tti_board       board = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config config = config_of(ctx, &board);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_E_ARG);
    CHECK(ctx, strstr(tutti_last_error(), "TUTTI_TCP_STRIPES") != NULL);
    return NULL;
}

static tutti_status put_more_stripes(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    tti_card card;

    if (bytes != sizeof card)
        return board_put(context, key, data, bytes, deadline_ns);
    memcpy(&card, data, sizeof card);
    card.stripes = 2;
    return board_put(context, key, &card, sizeof card, deadline_ns);
}

static void *more_stripes_main(void *arg)
{
    rank_ctx             *ctx = arg;
    const tti_board       board = { .context = ctx->board, .put = ctx->rank == 1 ? put_more_stripes : board_put,
                                    .get = board_get, .has = board_has };
    const tti_mesh_config config = config_of(ctx, &board);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_E_ARG);
    CHECK(ctx, strstr(tutti_last_error(), "rank 1 was started with TUTTI_TCP_STRIPES=2") != NULL);
    return NULL;
}

static void ranks_that_count_on_other_numbers_are_named(void **state)
{
    (void)state;
    run_refused(more_stripes_main, 2);
}

static void too_many_connections_are_refused(void **state)
{
    (void)state;
    setenv("TUTTI_TCP_STRIPES", "9", 1);
    run_refused(nine_stripes_main, 1);
    setenv("TUTTI_TCP_STRIPES", "two", 1);
    run_refused(nine_stripes_main, 1);
    unsetenv("TUTTI_TCP_STRIPES");
}

/* What is read where bytes go by TCP says nothing to a world whose bytes a plug-in carries. */
static void what_is_not_read_is_not_refused(void **state)
{
    static const tutti_transport_ops plugin = { .name = "other" };

    (void)state;
    assert_int_equal(tti_mesh_check_env(NULL), TUTTI_OK);
    setenv("TUTTI_TCP_STRIPES", "9", 1);
    assert_int_equal(tti_mesh_check_env(NULL), TUTTI_E_ARG);
    assert_int_equal(tti_mesh_check_env(&plugin), TUTTI_OK);
    unsetenv("TUTTI_TCP_STRIPES");
    setenv("TUTTI_SOCKET_IFNAME", "=none0,=none1", 1);
    assert_int_equal(tti_mesh_check_env(NULL), TUTTI_E_ARG);
    assert_int_equal(tti_mesh_check_env(&plugin), TUTTI_OK);
    unsetenv("TUTTI_SOCKET_IFNAME");
    setenv("TUTTI_HEARTBEAT_MS", "often", 1);
    assert_int_equal(tti_mesh_check_env(&plugin), TUTTI_E_ARG); /* this one is read */
    unsetenv("TUTTI_HEARTBEAT_MS");
}

/* A clock that goes slowly: what the library gives a moment for has many, however late the machine gives it a core. */
enum { SLOWNESS = 30 };

static int64_t slow_since_ns; /* written before there are threads that look at the clock */

static int64_t slow_now(tti_port *port)
{
    (void)port;
    return slow_since_ns + (tti_port_now(tti_port_system()) - slow_since_ns) / SLOWNESS;
}

/* When the machine's clock shows what the slow one is to show then. */
static int64_t on_machine(int64_t slow_ns)
{
    return slow_ns == TTI_FOREVER || slow_ns < slow_since_ns ? slow_ns : slow_since_ns + (slow_ns - slow_since_ns) * SLOWNESS;
}

static void slow_sleep_until(tti_port *port, int64_t deadline_ns)
{
    (void)port;
    tti_port_system()->ops->sleep_until(tti_port_system(), on_machine(deadline_ns));
}

static void slow_wait_word(tti_port *port, const _Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    (void)port;
    tti_port_system()->ops->wait_word(tti_port_system(), word, seen, on_machine(deadline_ns));
}

static int slow_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    (void)port;
    return tti_port_system()->ops->poll(tti_port_system(), set, n, on_machine(deadline_ns));
}

static void slow_down(tti_port_ops *ops)
{
    slow_since_ns = tti_port_now(tti_port_system());
    ops->now_ns = slow_now;
    ops->sleep_until = slow_sleep_until;
    ops->wait_word = slow_wait_word;
    ops->poll = slow_poll;
}

/* A network on which connecting takes a while, but not longer than a rank that leaves stays for those it tells. */
static int connect_late(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    tti_port *system = tti_port_system();

    (void)port;
    system->ops->sleep_until(system, tti_port_now(system) + 20 * TTI_MS);
    return system->ops->connect(system, to, handle_out);
}

static void body_late_way(rank_ctx *ctx)
{
    static const int         ranks[] = { 0, 1 };
    static const tti_channel failing = { .group = 5, .plane = TTI_PLANE_COLLECTIVE };
    tti_request             *request;
    int                      value;

    CHECK(ctx, tti_messenger_enter(ctx->messenger, failing.group, ranks, 2) == TUTTI_OK);
    if (ctx->rank == 0) {
        (void)tti_fail(TUTTI_E_REMOTE, "it went wrong");
        tti_messenger_fail(ctx->messenger, failing.group, TUTTI_E_REMOTE, ranks, 2);
        return; /* and leaves, before there is a connection */
    }
    request = begin(ctx, false, failing, 0, 0, &value, sizeof value);
    CHECK(ctx, finish(ctx, request) == TUTTI_E_REMOTE);
    CHECK(ctx, strstr(tutti_last_error(), "rank 0 reported: it went wrong") != NULL);
}

static void who_leaves_tells_those_it_is_late_with(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    slow_down(&ops); /* a rank that leaves stays for 70 ms, in which two threads need a core some times: no test of how soon they have it */
    ops.connect = connect_late;
    run_ranks_over(&port, 2, true, body_late_way);
}

/* ---- a host that has two interfaces, both named ---- */

static _Atomic int left_by[2], crossed; /* connections from one interface to the same of the peer's, and to the other */

static int two_interfaces(tti_port *port, tti_interface *out, int max)
{
    int i;

    (void)port;
    assert_true(max >= 2);
    for (i = 0; i < 2; i++) {
        out[i] = (tti_interface){ .up = true, .addr = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, (uint8_t)(i + 1) } } };
        snprintf(out[i].name, sizeof out[i].name, "r%d", i);
    }
    return 2;
}

static int connect_from_one(tti_port *port, const tti_addr *from, const char *congestion, const tti_addr *to, tti_handle *handle_out)
{
    tti_port *system = tti_port_system();

    (void)port;
    atomic_fetch_add(from->ip[3] == to->ip[3] ? &left_by[from->ip[3] - 1] : &crossed, 1);
    return system->ops->connect_from(system, from, congestion, to, handle_out);
}

/* By two interfaces, which tti_port_system() need not have. */
static void run_on_rails(int size, rank_body body)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    ops.interfaces = two_interfaces;
    ops.connect_from = connect_from_one;
    setenv("TUTTI_SOCKET_IFNAME", "=r0,=r1", 1);
    left_by[0] = left_by[1] = crossed = 0;
    run_ranks_over(&port, size, true, body);
    unsetenv("TUTTI_SOCKET_IFNAME");
    assert_int_equal(crossed, 0);
}

static void ways_go_by_all_interfaces(void **state)
{
    (void)state;
    run_on_rails(2, body_striped);
    assert_true(left_by[0] >= 1 && left_by[1] >= 1); /* more where two began at once, or one began anew */
    setenv("TUTTI_TCP_STRIPES", "3", 1);
    run_on_rails(2, body_striped);
    assert_true(left_by[0] >= 3 && left_by[1] >= 3);
    unsetenv("TUTTI_TCP_STRIPES");
    run_on_rails(5, body_all_pairs);
    assert_true(left_by[0] >= 10 && left_by[1] >= 10);
}

/* What rank 1 leaves of its interfaces is spoilt at a place, and what both ranks say of it. */
static struct {
    size_t       at;
    uint8_t      byte;
    tutti_status status;
    const char  *words;
} spoilt;

static tutti_status put_spoilt(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    uint8_t left[512];

    if (strncmp(key, "rails/", 6) != 0)
        return board_put(context, key, data, bytes, deadline_ns);
    assert_in_range(bytes, spoilt.at + 1, sizeof left);
    memcpy(left, data, bytes);
    left[spoilt.at] = spoilt.byte;
    return board_put(context, key, left, bytes, deadline_ns);
}

static void *spoilt_main(void *arg)
{
    rank_ctx       *ctx = arg;
    tti_port_ops    ops = *tti_port_system()->ops;
    tti_port        port = { .ops = &ops };
    const tti_board board = { .context = ctx->board, .put = ctx->rank == 1 ? put_spoilt : board_put, .get = board_get, .has = board_has };
    tti_mesh_config config = config_of(ctx, &board);

    ops.interfaces = two_interfaces;
    config.port = &port;
    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == spoilt.status);
    if (ctx->mesh == NULL)
        CHECK(ctx, strstr(tutti_last_error(), spoilt.words) != NULL);
    tti_mesh_close(ctx->mesh);
    return NULL;
}

static void what_is_left_of_interfaces_is_looked_at(void **state)
{
    enum { RANK = 8, N = 12, FIRST = 16, EACH = TTI_INTERFACE_NAME_MAX + 24, FAMILY = EACH - 2 };
    static const struct {
        size_t  at;
        uint8_t byte;
    } damaged[] = { { 0, 0 }, { 4, 9 }, { 6, 1 }, { RANK, 0 }, { N, 3 }, { N + 3, 0x80 }, { FIRST + FAMILY, 5 } };
    size_t i;

    (void)state;
    setenv("TUTTI_SOCKET_IFNAME", "=r0,=r1", 1);
    for (i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        spoilt.at = damaged[i].at;
        spoilt.byte = damaged[i].byte;
        spoilt.status = TUTTI_E_STORE;
        spoilt.words = "what rank 1 has left of its interfaces is damaged";
        run_refused(spoilt_main, 2);
    }
    spoilt.at = FIRST + EACH + FAMILY; /* its second is of another kind than ours */
    spoilt.byte = 6;
    spoilt.status = TUTTI_E_MISMATCH;
    spoilt.words = "rank 1 has an IPv6 address on its interface 'r1', rank";
    run_refused(spoilt_main, 2);
    unsetenv("TUTTI_SOCKET_IFNAME");
}

static _Atomic int n_in_vain; /* questions for what was left of interfaces that had no time for an answer to come */

/* A board that is far away. */
static tutti_status get_late(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    enum { TRIP_MS = 10 };
    tti_port     *port = tti_port_system();
    const int64_t comes_ns = port->ops->now_ns(port) + TRIP_MS * TTI_MS;

    if (strncmp(key, "rails/", 6) != 0)
        return board_get(context, key, out, bytes, deadline_ns);
    if (comes_ns > deadline_ns) {
        atomic_fetch_add(&n_in_vain, 1);
        return tti_fail(TUTTI_E_TIMEOUT, "the board did not answer in time");
    }
    port->ops->sleep_until(port, comes_ns); /* the way there and back */
    return board_get(context, key, out, bytes, deadline_ns);
}

static void *far_from_board_main(void *arg)
{
    rank_ctx       *ctx = arg;
    tti_port_ops    ops = *tti_port_system()->ops;
    tti_port        port = { .ops = &ops };
    const tti_board board = { .context = ctx->board, .put = board_put, .get = get_late, .has = board_has };
    tti_mesh_config config = config_of(ctx, &board);

    ops.interfaces = two_interfaces;
    config.port = &port;
    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_OK);
    tti_mesh_close(ctx->mesh);
    return NULL;
}

/* Every question has time for its answer: one that has none is asked in vain, and again. On a machine that stands still for long a
 * question may come late, but not in every world. */
static void interfaces_are_asked_for_with_patience(void **state)
{
    enum { WORLDS = 10 };
    int i = 0;

    (void)state;
    setenv("TUTTI_SOCKET_IFNAME", "=r0,=r1", 1);
    do {
        atomic_store(&n_in_vain, 0);
        run_refused(far_from_board_main, 2);
    } while (atomic_load(&n_in_vain) > 0 && ++i < WORLDS);
    unsetenv("TUTTI_SOCKET_IFNAME");
    assert_true(i < WORLDS);
}

/* ---- two threads of a rank, of which one sleeps in poll ---- */

enum { NEVER_MS = 10000 }; /* long, for a sleep that somebody is to end */

static _Atomic int slow_bell; /* whoever polls it sleeps until it is rung, or something in its set is ready */
static _Atomic bool hears_only; /* the bell, as if others took what comes by sockets before */
static _Atomic int  n_unrung; /* sleeps that nobody ended */

static int poll_slowly(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    tti_port *system = tti_port_system();
    int       ready;

    (void)port;
    if (n == 0 || set[0].handle != atomic_load(&slow_bell))
        return system->ops->poll(system, set, n, deadline_ns);
    ready = system->ops->poll(system, set, atomic_load(&hears_only) ? 1 : n, tti_deadline(system, NEVER_MS, 0));
    if (ready == 0)
        atomic_fetch_add(&n_unrung, 1);
    return ready;
}

/* ---- a wait beside what is computed ---- */

static _Atomic int n_polls_back, n_polls_front; /* of ranks' own threads that wait, asleep, standing back or not */
static _Thread_local bool is_watched;

static int poll_watched(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    (void)port;
    if (is_watched)
        atomic_fetch_add(syscall(SYS_sched_getscheduler, 0) == SCHED_BATCH ? &n_polls_back : &n_polls_front, 1);
    return tti_port_system()->ops->poll(tti_port_system(), set, n, deadline_ns);
}

/* Until rank 0 sleeps, as many times as were seen so far not counted. */
static void await_more(rank_ctx *ctx, const _Atomic int *n, int seen)
{
    while (atomic_load(n) <= seen && tti_now_ns() < ctx->deadline_ns)
        sched_yield();
    CHECK(ctx, atomic_load(n) > seen);
}

static void body_beside(rank_ctx *ctx)
{
    const bool   back = true;
    int          value = 7, got = 0, n_back;
    tti_request *request;

    if (ctx->rank == 1) {
        await_more(ctx, &n_polls_back, 0);
        CHECK(ctx, do_send(ctx, 0, 0, &value, sizeof value) == TUTTI_OK);
        await_more(ctx, &n_polls_front, 0);
        CHECK(ctx, do_send(ctx, 0, 1, &value, sizeof value) == TUTTI_OK);
        return;
    }
    is_watched = true;
    request = begin(ctx, false, p2p, 1, 0, &got, sizeof got);
    CHECK(ctx, tti_request_wait_any(request, tti_messenger_ended(ctx->messenger), ctx->deadline_ns, back));
    CHECK(ctx, finish(ctx, request) == TUTTI_OK && got == value);
    CHECK(ctx, syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER);
    n_back = atomic_load(&n_polls_back);
    request = begin(ctx, false, p2p, 1, 1, &got, sizeof got);
    CHECK(ctx, tti_request_wait_any(request, tti_messenger_ended(ctx->messenger), ctx->deadline_ns, !back));
    CHECK(ctx, finish(ctx, request) == TUTTI_OK && atomic_load(&n_polls_back) == n_back);
    is_watched = false;
}

static void who_waits_beside_a_program_stands_back(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    if (!ops.stand_back(tti_port_system(), true))
        skip(); /* these tests were started in another class */
    (void)ops.stand_back(tti_port_system(), false);
    ops.poll = poll_watched;
    atomic_store(&n_polls_back, 0);
    atomic_store(&n_polls_front, 0);
    run_ranks_over(&port, 2, true, body_beside);
}

static void never_expires(void *context, int64_t waited_ns)
{
    (void)context;
    (void)waited_ns;
}

static tutti_status transfer(rank_ctx *ctx, bool send, int peer, int tag, void *data, size_t bytes)
{
    const tti_parcel parcel = { .peer = peer, .tag = tag, .dtype = TUTTI_U8, .data = data, .bytes = bytes };
    const tti_expiry never = { .timeout_ms = -1, .expired = never_expires };
    int              from;

    return tti_messenger_transfer(ctx->messenger, p2p, &parcel, send, &never, &from);
}

/* ---- a wait beside somebody who keeps the core ---- */

enum { KEPT_MS = 2, KEPT_WAITS = 40 };

static _Atomic int n_given; /* times that rank 0 gave its core away, or slept, since it had a message */
static _Atomic int n_kept;  /* and that it gave it away, in all */
static _Atomic int n_taken; /* messages that it has */

/* Whoever has the core meanwhile computes for his slice of time. */
static void yield_to_one_who_computes(tti_port *port)
{
    if (is_watched) {
        atomic_fetch_add(&n_kept, 1);
        atomic_fetch_add(&n_given, 1);
        slow_sleep_until(port, slow_now(port) + KEPT_MS * TTI_MS);
        return;
    }
    sched_yield();
}

static int poll_beside_one_who_computes(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    if (is_watched)
        atomic_fetch_add(&n_given, 1);
    return slow_poll(port, set, n, deadline_ns);
}

/* Each message is sent when rank 0 has found that it is not there. Both kinds of receive, in turns. */
static void body_in_company(rank_ctx *ctx)
{
    int i, value;

    is_watched = ctx->rank == 0;
    for (i = 0; i < KEPT_WAITS; i++) {
        if (ctx->rank == 0) {
            CHECK(ctx, (i % 2 == 0 ? do_recv(ctx, 1, i, &value, sizeof value)
                                   : transfer(ctx, false, 1, i, &value, sizeof value)) == TUTTI_OK && value == i);
            atomic_store(&n_given, 0);
            atomic_fetch_add(&n_taken, 1);
            continue;
        }
        while (atomic_load(&n_taken) < i && tti_now_ns() < ctx->deadline_ns)
            sched_yield();
        await_more(ctx, &n_given, 0);
        CHECK(ctx, do_send(ctx, 0, i, &i, sizeof i) == TUTTI_OK);
    }
    is_watched = false;
}

/* Every wait gives the core away if it does not know better; one that does tries again now and then. */
static void who_keeps_the_core_is_not_given_it_again(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    slow_down(&ops);
    ops.yield = yield_to_one_who_computes;
    ops.poll = poll_beside_one_who_computes;
    atomic_store(&n_given, 0);
    atomic_store(&n_kept, 0);
    atomic_store(&n_taken, 0);
    run_ranks_over(&port, 2, true, body_in_company);
    assert_in_range(atomic_load(&n_kept), 1, KEPT_WAITS / 2);
}

typedef struct sleeper {
    rank_ctx    *ctx;
    int          tag;
    int          got;
    _Atomic bool done;
    pthread_t    thread;
} sleeper;

static void *sleeper_main(void *arg)
{
    sleeper *s = arg;

    CHECK(s->ctx, transfer(s->ctx, false, 1, s->tag, &s->got, sizeof s->got) == TUTTI_OK);
    atomic_store(&s->done, true);
    return NULL;
}

static bool is_asleep(tti_messenger *m)
{
    bool asleep;

    tti_lock(&m->lock);
    asleep = m->asleep && m->waiters > 0;
    tti_unlock(&m->lock);
    return asleep;
}

/* Another thread of rank 0 waits for a message of rank 1, asleep. */
static void begin_sleeper(sleeper *s, rank_ctx *ctx, int tag)
{
    *s = (sleeper){ .ctx = ctx, .tag = tag };
    CHECK(ctx, pthread_create(&s->thread, NULL, sleeper_main, s) == 0);
    while (!is_asleep(ctx->messenger))
        sched_yield();
}

static void body_sleeper(rank_ctx *ctx)
{
    enum { LARGE = 32 << 20 };
    uint8_t *data = calloc(1, LARGE);
    sleeper  s;
    int      value = 5;

    CHECK(ctx, data != NULL);
    if (ctx->rank == 1) {
        CHECK(ctx, do_recv(ctx, 0, 8, &value, sizeof value) == TUTTI_OK);
        CHECK(ctx, do_recv(ctx, 0, 9, &value, sizeof value) == TUTTI_OK);
        CHECK(ctx, do_send(ctx, 0, 1, &value, sizeof value) == TUTTI_OK);
        CHECK(ctx, do_recv(ctx, 0, 3, data, LARGE) == TUTTI_OK);
        CHECK(ctx, do_send(ctx, 0, 2, &value, sizeof value) == TUTTI_OK);
        free(data);
        return;
    }
    CHECK(ctx, do_send(ctx, 1, 8, &value, sizeof value) == TUTTI_OK); /* there is a connection now */
    atomic_store(&hears_only, true);
    atomic_store(&slow_bell, tti_mesh_bell(ctx->mesh));
    begin_sleeper(&s, ctx, 1);
    CHECK(ctx, do_send(ctx, 1, 9, &value, sizeof value) == TUTTI_OK);
    while (!atomic_load(&s.done)) /* takes in what the other thread waits for */
        CHECK(ctx, tti_messenger_heard(ctx->messenger, 77) == TUTTI_OK);
    pthread_join(s.thread, NULL);
    atomic_store(&hears_only, false);
    begin_sleeper(&s, ctx, 2);
    CHECK(ctx, transfer(ctx, true, 1, 3, data, LARGE) == TUTTI_OK); /* which the other thread has to go on with */
    pthread_join(s.thread, NULL);
    atomic_store(&slow_bell, TTI_NO_HANDLE);
    CHECK(ctx, atomic_load(&n_unrung) == 0);
    free(data);
}

static void who_sleeps_is_woken_by_other_threads(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    ops.poll = poll_slowly;
    atomic_store(&slow_bell, TTI_NO_HANDLE);
    run_ranks_over(&port, 2, true, body_sleeper);
}

enum { POLLED_MAX = 8 };

static pthread_mutex_t polled_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static tti_handle      polled[POLLED_MAX]; /* that somebody sleeps on */
static int             n_polled;
static int             n_closed_under; /* that were closed then */

static void note_polled(const tti_poll *set, int n)
{
    int i;

    pthread_mutex_lock(&polled_lock);
    n_polled = n < POLLED_MAX ? n : POLLED_MAX;
    for (i = 0; i < n_polled; i++)
        polled[i] = set[i].handle;
    pthread_mutex_unlock(&polled_lock);
}

static int poll_and_note(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    const bool is_noted = n > 0 && set[0].handle == atomic_load(&slow_bell);
    int        ready;

    if (is_noted)
        note_polled(set, n);
    ready = poll_slowly(port, set, n, deadline_ns);
    if (is_noted)
        note_polled(NULL, 0);
    return ready;
}

static void close_and_look(tti_port *port, tti_handle handle)
{
    int i;

    (void)port;
    pthread_mutex_lock(&polled_lock);
    for (i = 0; i < n_polled; i++)
        n_closed_under += polled[i] == handle;
    pthread_mutex_unlock(&polled_lock);
    tti_port_system()->ops->close(tti_port_system(), handle);
}

static void *loser_main(void *arg)
{
    sleeper *s = arg;

    CHECK(s->ctx, transfer(s->ctx, false, 1, s->tag, &s->got, sizeof s->got) == TUTTI_E_NETWORK);
    return NULL;
}

static int count_closed_under(void)
{
    int n;

    pthread_mutex_lock(&polled_lock);
    n = n_closed_under;
    pthread_mutex_unlock(&polled_lock);
    return n;
}

static bool sleeps_on_a_socket(tti_messenger *m)
{
    bool sleeps;

    pthread_mutex_lock(&polled_lock);
    sleeps = n_polled > 1;
    pthread_mutex_unlock(&polled_lock);
    return sleeps && is_asleep(m);
}

/* Links that are set aside for who sleeps on them, once that one has had a core to wake up on. */
static int left_parting(rank_ctx *ctx)
{
    int n;

    do {
        sched_yield();
        tti_lock(&ctx->messenger->lock);
        n = ctx->messenger->n_parting;
        tti_unlock(&ctx->messenger->lock);
    } while (n > 0 && tti_now_ns() < ctx->deadline_ns);
    return n;
}

/* Rank 0 finds the way to rank 1 lost while another thread of it sleeps on the socket. */
static void body_lost_under_a_sleeper(rank_ctx *ctx)
{
    const tti_cause why = { .status = TUTTI_E_NETWORK, .words = "the way is lost" };
    sleeper         s = { .ctx = ctx, .tag = 1 };
    int             value = 5;

    if (ctx->rank == 1) {
        CHECK(ctx, do_recv(ctx, 0, 8, &value, sizeof value) == TUTTI_OK);
        CHECK(ctx, do_recv(ctx, 0, 9, &value, sizeof value) == TUTTI_E_PEER); /* it hears of the end */
        return;
    }
    CHECK(ctx, do_send(ctx, 1, 8, &value, sizeof value) == TUTTI_OK); /* there is a connection now */
    atomic_store(&slow_bell, tti_mesh_bell(ctx->mesh));
    CHECK(ctx, pthread_create(&s.thread, NULL, loser_main, &s) == 0);
    while (!sleeps_on_a_socket(ctx->messenger))
        sched_yield();
    tti_lock(&ctx->messenger->lock);
    tti_lose_lane(ctx->messenger, &ctx->messenger->lanes[1], &why);
    tti_unlock(&ctx->messenger->lock);
    pthread_join(s.thread, NULL);
    CHECK(ctx, left_parting(ctx) == 0);
    atomic_store(&slow_bell, TTI_NO_HANDLE);
    CHECK(ctx, atomic_load(&n_unrung) == 0);
    CHECK(ctx, count_closed_under() == 0);
}

static void who_sleeps_on_a_link_closes_it(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    ops.poll = poll_and_note;
    ops.close = close_and_look;
    atomic_store(&slow_bell, TTI_NO_HANDLE);
    run_ranks_over(&port, 2, true, body_lost_under_a_sleeper);
}

/* A socket that takes half of a frame at a time, as one that is almost full does. */
static int64_t send_half_a_frame(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    const tti_part half = { parts[0].data, sizeof(tti_frame) / 2 };

    (void)port;
    if (parts[0].size == sizeof(tti_frame))
        return tti_port_system()->ops->send(tti_port_system(), handle, &half, 1);
    return tti_port_system()->ops->send(tti_port_system(), handle, parts, n_parts);
}

static void post(rank_ctx *ctx, int peer, int tag, void *data, size_t bytes)
{
    const tti_parcel parcel = { .peer = peer, .tag = tag, .dtype = TUTTI_U8, .data = data, .bytes = bytes };

    if (!tti_messenger_at_once(ctx->messenger, p2p, &parcel, true))
        CHECK(ctx, do_send(ctx, peer, tag, data, bytes) == TUTTI_OK);
}

static void body_halves(rank_ctx *ctx)
{
    int value = 7, tag;

    for (tag = 0; tag < 4; tag++)
        if (ctx->rank == 0)
            post(ctx, 1, tag, &value, tag % 2 == 0 ? sizeof value : 0);
        else
            CHECK(ctx, do_recv(ctx, 0, tag, &value, tag % 2 == 0 ? sizeof value : 0) == TUTTI_OK);
    if (ctx->rank == 0)
        CHECK(ctx, do_recv(ctx, 1, 9, &value, sizeof value) == TUTTI_OK);
    else
        CHECK(ctx, do_send(ctx, 0, 9, &value, sizeof value) == TUTTI_OK);
}

/* Also a message without a payload, of which the frame is all there is. */
static void a_frame_may_go_in_pieces(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    ops.send = send_half_a_frame;
    run_ranks_over(&port, 2, false, body_halves);
    run_ranks_over(&port, 2, true, body_halves);
}

static void count_end(void *count)
{
    atomic_fetch_add((_Atomic int *)count, 1);
}

/* One is told of when it ends, one that has ended at once, one that gets no message at the latest when the
 * messenger is closed. */
static void body_notify(rank_ctx *ctx)
{
    _Atomic int  count = 0;
    int          value = 5, unused = 0;
    tti_request *request;

    if (ctx->rank == 1) {
        CHECK(ctx, do_recv(ctx, 0, 1, &value, sizeof value) == TUTTI_OK);
        CHECK(ctx, do_send(ctx, 0, 0, &value, sizeof value) == TUTTI_OK);
        CHECK(ctx, do_recv(ctx, 0, 9, NULL, 0) == TUTTI_OK);
        return;
    }
    request = begin(ctx, false, p2p, 1, 0, &value, sizeof value);
    tti_request_notify(request, count_end, &count);
    CHECK(ctx, atomic_load(&count) == 0);
    CHECK(ctx, do_send(ctx, 1, 1, &value, sizeof value) == TUTTI_OK);
    CHECK(ctx, tti_request_wait(request, ctx->deadline_ns) == TUTTI_OK);
    tti_messenger_abort(ctx->messenger, 3); /* takes the lock: whoever ended the request has let go of it */
    CHECK(ctx, atomic_load(&count) == 1);
    tti_request_release(request);
    request = begin(ctx, true, p2p, 1, 9, &value, 0);
    CHECK(ctx, tti_request_wait(request, ctx->deadline_ns) == TUTTI_OK);
    tti_request_notify(request, count_end, &count);
    CHECK(ctx, atomic_load(&count) == 2);
    tti_request_release(request);
    request = begin(ctx, false, p2p, 1, 7, &unused, sizeof unused);
    tti_request_notify(request, count_end, &count);
    tti_messenger_close(ctx->messenger);
    ctx->messenger = NULL;
    CHECK(ctx, tti_request_ended(request) && atomic_load(&count) == 3);
    tti_request_release(request);
}

static void ends_are_told_of(void **state)
{
    (void)state;
    run_ranks(2, body_notify);
}

static void body_leaves(rank_ctx *ctx)
{
    int value = 0;

    if (ctx->rank == 1) {
        value = 77;
        CHECK(ctx, do_send(ctx, 0, 0, &value, sizeof value) == TUTTI_OK);
        return; /* and closes */
    }
    CHECK(ctx, do_recv(ctx, 1, 5, &value, sizeof value) == TUTTI_E_PEER);
    CHECK(ctx, strstr(tutti_last_error(), "rank 1") != NULL);
    CHECK(ctx, do_recv(ctx, 1, 0, &value, sizeof value) == TUTTI_OK && value == 77); /* kept before */
    CHECK(ctx, do_recv(ctx, 1, 0, &value, sizeof value) == TUTTI_E_PEER);
}

static void a_peer_that_leaves_is_named(void **state)
{
    (void)state;
    run_ranks(2, body_leaves);
}

/* ---- more words of a lost connection (learn.c) */

static _Thread_local int n_sleeps; /* of this rank, not of the threads beside it */

static void sleep_counted(tti_port *port, int64_t deadline_ns)
{
    n_sleeps++;
    tti_port_system()->ops->sleep_until(port, deadline_ns);
}

static void expects_no_expiry(void *context, int64_t waited_ns)
{
    rank_ctx *ctx = context;

    (void)waited_ns;
    CHECK(ctx, !"the message ended before its time was up");
}

/* The connection with rank 1 is lost before the message begins, nothing tells of that rank's end, and the message may take a
 * millisecond: that is one sleep, and where the machine rounds down another. */
static void expect_short_words(rank_ctx *ctx, bool is_send)
{
    const tti_expiry expiry = { .timeout_ms = 1, .expired = expects_no_expiry, .ctx = ctx };
    int              value = 0, peer = -1;
    const tti_parcel parcel = { .peer = 1, .tag = 5, .dtype = TUTTI_U8, .data = &value, .bytes = sizeof value };

    n_sleeps = 0;
    CHECK(ctx, tti_messenger_transfer(ctx->messenger, p2p, &parcel, is_send, &expiry, &peer) == TUTTI_E_PEER);
    CHECK(ctx, strstr(tutti_last_error(), "the connection to rank 1 (") == tutti_last_error());
    CHECK(ctx, n_sleeps <= 2);
}

/* Rank 1 closes its messenger, and stays in the world: all that is seen of it is the end of the connection. */
static void body_lets_go(rank_ctx *ctx)
{
    static const int ranks[2] = { 0, 1 };
    char             word = 0;
    int              value = 0;

    CHECK(ctx, tti_messenger_enter(ctx->messenger, 0, ranks, 2) == TUTTI_OK);
    if (ctx->rank == 1) {
        CHECK(ctx, do_send(ctx, 0, 0, &value, sizeof value) == TUTTI_OK);
        tti_messenger_close(ctx->messenger);
        ctx->messenger = NULL;
        CHECK(ctx, board_get(ctx->board, "looked", &word, 0, ctx->deadline_ns) == TUTTI_OK);
        return;
    }
    CHECK(ctx, do_recv(ctx, 1, 0, &value, sizeof value) == TUTTI_OK);
    CHECK(ctx, do_recv(ctx, 1, 5, &value, sizeof value) == TUTTI_E_PEER);
    expect_short_words(ctx, false);
    expect_short_words(ctx, true);
    tti_messenger_fail(ctx->messenger, 0, TUTTI_E_PEER, ranks, 2);
    expect_short_words(ctx, false); /* the group is finished, too */
    tti_messenger_abort(ctx->messenger, 0);
    n_sleeps = 0;
    CHECK(ctx, tti_messenger_learn(ctx->messenger, 0, NULL, ctx->deadline_ns, TUTTI_E_PEER) == TUTTI_E_PEER);
    CHECK(ctx, strstr(tutti_last_error(), "the connection to rank 1 (") == tutti_last_error());
    CHECK(ctx, n_sleeps == 0); /* although the group was not finished by the abort */
    CHECK(ctx, board_put(ctx->board, "looked", &word, 0, 0) == TUTTI_OK);
}

static void more_words_are_waited_for_no_longer_than_may_be(void **state)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = { .ops = &ops };

    (void)state;
    ops.sleep_until = sleep_counted;
    run_ranks_over(&port, 2, true, body_lets_go);
}

/* Every other rank leaves: a receive from any source has nobody to wait for. */
static void body_deserted(rank_ctx *ctx)
{
    int value = 0;

    if (ctx->rank != 0)
        return; /* and closes */
    CHECK(ctx, do_recv(ctx, -1, 5, &value, sizeof value) == TUTTI_E_PEER);
    CHECK(ctx, strstr(tutti_last_error(), "rank ") != NULL);
    CHECK(ctx, do_recv(ctx, -1, 5, &value, sizeof value) == TUTTI_E_PEER);
}

static void any_source_ends_when_everybody_is_gone(void **state)
{
    (void)state;
    run_ranks(3, body_deserted);
}

static _Atomic int64_t left_ns; /* when rank 2 began to leave; 0: not yet */

/* Rank 2 leaves while rank 1 keeps rank 0 busy: traffic must not hide it. */
static void body_busy(rank_ctx *ctx)
{
    int64_t      quiet;
    int          value = 0, i;
    bool         seen = false;
    tti_request *request;

    if (ctx->rank == 2) {
        atomic_store(&left_ns, tti_now_ns());
        return; /* and closes */
    }
    if (ctx->rank == 1) {
        for (i = 0; i < LIMIT_MS / 2 && !seen; i++) { /* one message a millisecond */
            board_has(ctx->board, "seen", 0, &seen);
            if (do_send(ctx, 0, 9, &value, sizeof value) != TUTTI_OK)
                break;
            tti_port_system()->ops->sleep_until(tti_port_system(), tti_now_ns() + TTI_MS);
        }
        return;
    }
    quiet = tti_now_ns();
    request = begin(ctx, false, p2p, 2, 5, &value, sizeof value);
    CHECK(ctx, finish(ctx, request) == TUTTI_E_PEER);
    quiet = quiet > atomic_load(&left_ns) ? quiet : atomic_load(&left_ns);
    CHECK(ctx, tti_now_ns() - quiet < TTI_SECOND);
    CHECK(ctx, board_put(ctx->board, "seen", &value, sizeof value, 0) == TUTTI_OK);
}

static void traffic_does_not_hide_a_loss(void **state)
{
    (void)state;
    atomic_store(&left_ns, 0);
    run_ranks_on(3, false, body_busy);
    atomic_store(&left_ns, 0);
    run_ranks_on(3, true, body_busy);
}

static void body_abort(rank_ctx *ctx)
{
    const size_t      n = 48 << 20;
    const tti_channel other = { .group = 9, .plane = TTI_PLANE_P2P };
    uint8_t          *data = calloc(1, n);
    tti_request      *request;
    char              word = 0;
    int               value = ctx->rank;

    if (ctx->rank == 0) {
        request = begin(ctx, true, other, 1, 0, data, n); /* more than any buffer holds: stuck half-way */
        CHECK(ctx, !tti_request_ended(request));
        tti_messenger_abort(ctx->messenger, 9);
        free(data); /* no longer borrowed */
        CHECK(ctx, board_put(ctx->board, "aborted", &word, 0, 0) == TUTTI_OK);
        CHECK(ctx, finish(ctx, request) == TUTTI_E_ABORTED);
        CHECK(ctx, do_send(ctx, 1, 0, &value, sizeof value) == TUTTI_OK); /* the stream is whole */
        CHECK(ctx, do_recv(ctx, 1, 0, &value, sizeof value) == TUTTI_OK);
        return;
    }
    /* Whoever receives drains the link, and would keep the message: not before it is given up. */
    CHECK(ctx, board_get(ctx->board, "aborted", &word, 0, ctx->deadline_ns) == TUTTI_OK);
    CHECK(ctx, do_recv(ctx, 0, 0, &value, sizeof value) == TUTTI_OK && value == 0);
    CHECK(ctx, do_send(ctx, 0, 0, &value, sizeof value) == TUTTI_OK);
    free(data);
}

static void an_aborted_group_leaves_the_others_alone(void **state)
{
    (void)state;
    run_ranks(2, body_abort);
}

/* Rank 0 fails with a large message half-way and makes no further call; its notice must still come. */
static void body_fails_and_idles(rank_ctx *ctx)
{
    const size_t n = 48 << 20;
    const int    ranks[2] = { 0, 1 };
    uint8_t     *data = calloc(1, n);
    tti_request *request;
    char         word = 0;

    CHECK(ctx, tti_messenger_enter(ctx->messenger, 0, ranks, 2) == TUTTI_OK);
    if (ctx->rank == 0) {
        request = begin(ctx, true, coll, 1, 0, data, n); /* more than any buffer holds */
        tti_fail(TUTTI_E_STATE, "the moon is down");
        tti_messenger_fail(ctx->messenger, 0, TUTTI_E_STATE, ranks, 2);
        CHECK(ctx, strcmp(tutti_last_error(), "the moon is down") == 0);
        CHECK(ctx, finish(ctx, request) == TUTTI_E_STATE);
        CHECK(ctx, board_put(ctx->board, "failed", &word, 0, 0) == TUTTI_OK);
        CHECK(ctx, board_get(ctx->board, "heard", &word, 0, ctx->deadline_ns) == TUTTI_OK);
    } else {
        CHECK(ctx, board_get(ctx->board, "failed", &word, 0, ctx->deadline_ns) == TUTTI_OK);
        CHECK(ctx, finish(ctx, begin(ctx, false, coll, 0, 1, data, 1)) == TUTTI_E_STATE);
        CHECK(ctx, strstr(tutti_last_error(), "rank 0 reported: the moon is down") != NULL);
        CHECK(ctx, board_put(ctx->board, "heard", &word, 0, 0) == TUTTI_OK);
    }
    free(data);
}

static void a_failure_is_told_without_further_calls(void **state)
{
    (void)state;
    run_ranks(2, body_fails_and_idles);
}

static void open_alone(void **state, int size, int64_t timeout_ms, test_board *board, const char *expected,
                       tutti_status wanted)
{
    const tti_board         table = { .context = board, .put = board_put, .get = board_get, .has = board_has };
    rank_ctx                ctx = { .rank = 0, .size = size,
                                    .deadline_ns = tti_deadline(tti_port_system(), timeout_ms, 0) };
    const tti_mesh_config   config = config_of(&ctx, &table);
    tti_mesh               *mesh = NULL;

    (void)state;
    assert_int_equal(tti_mesh_open(&config, &mesh), wanted);
    assert_null(mesh);
    if (strstr(tutti_last_error(), expected) == NULL)
        fail_msg("'%s' is not in: %s", expected, tutti_last_error());
}

static void a_secret_is_needed_beyond_loopback(void **state)
{
    test_board            board = { .n = 0 };
    const tti_board       table = { .context = &board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config config = { .port = tti_port_system(), .board = &table, .n_ranks = 2,
                                     .listen_host = "192.0.2.1" };
    tti_mesh             *mesh = NULL;

    (void)state;
    assert_int_equal(tti_mesh_open(&config, &mesh), TUTTI_E_AUTH);
    assert_non_null(strstr(tutti_last_error(), "will not listen for other ranks at 192.0.2.1"));
    assert_null(mesh);
}

static void missing_ranks_are_named(void **state)
{
    test_board board = { .n = 0 };

    tti_mutex_init(&board.lock);
    open_alone(state, 4, 50, &board, "ranks 1, 2, 3 did not come", TUTTI_E_TIMEOUT);
    open_alone(state, 4, 50, &board, "rank 0 has joined this world already", TUTTI_E_ARG);
    board.n = 0;
    open_alone(state, 5000, 50, &board, "and perhaps others did not come", TUTTI_E_TIMEOUT);
    tti_mutex_release(&board.lock);
}

static int64_t silent_from_ns; /* the board says nothing about pieces from then on */

static tutti_status has_in_time(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    if (tti_port_now(tti_port_system()) >= silent_from_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "the board does not say whether '%s' is there", key);
    return board_has(context, key, deadline_ns, there_out);
}

/* When time is up the board does not answer any more: whom this rank waited for until then it knows. */
static void who_was_awaited_is_named_without_the_board(void **state)
{
    test_board            board = { .n = 0 };
    const tti_board       table = { .context = &board, .put = board_put, .get = board_get, .has = has_in_time };
    rank_ctx              ctx = { .rank = 0, .size = 2, .deadline_ns = tti_deadline(tti_port_system(), 1500, 0) };
    const tti_mesh_config config = config_of(&ctx, &table);
    tti_mesh             *mesh = NULL;

    (void)state;
    tti_mutex_init(&board.lock);
    silent_from_ns = ctx.deadline_ns;
    assert_int_equal(tti_mesh_open(&config, &mesh), TUTTI_E_TIMEOUT);
    if (strstr(tutti_last_error(), "ranks 1 and perhaps others did not come") == NULL)
        fail_msg("%s", tutti_last_error());
    tti_mutex_release(&board.lock);
}

/* Rank leaves its card and goes. */
static tutti_status put_card(test_board *board, int rank, int size)
{
    const tti_board       table = { .context = board, .put = board_put, .get = board_get, .has = board_has };
    rank_ctx              ctx = { .rank = rank, .size = size };
    const tti_mesh_config config = config_of(&ctx, &table);
    tti_card              card, cards[RANKS_MAX];
    tti_clerk             clerk;
    bool                  unread = false;

    tti_card_begin(&card, &config);
    card.family = 4;
    card.stripes = 1;
    return tti_cards_exchange(&config, &card, cards, &clerk, &unread);
}

static void leave_card(test_board *board, int rank, int size)
{
    assert_int_equal(put_card(board, rank, size), TUTTI_E_TIMEOUT);
}

static void who_did_not_come_to_the_local_socket_is_named(void **state)
{
    test_board board = { .n = 0 };
    int        rank;

    tti_mutex_init(&board.lock);
    for (rank = 1; rank < 4; rank++)
        leave_card(&board, rank, 4);
    open_alone(state, 4, 100, &board,
               "ranks 1, 2, 3 of this host did not come to the local socket of rank 0",
               TUTTI_E_TIMEOUT);
    tti_mutex_release(&board.lock);
}

static void *join_with_a_dead_one(void *arg)
{
    rank_ctx              *ctx = arg;
    const tti_board        table = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config  config = config_of(ctx, &table);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_E_PEER);
    CHECK(ctx, strstr(tutti_last_error(), "rank 3 (") != NULL);
    return NULL;
}

/* Its local socket is closed: rank 0 finds that, and leaves, but rank 0 is not whom the others lack. */
static void who_ended_is_named_not_who_found_it(void **state)
{
    test_board board = { .n = 0 };
    rank_ctx   ctx[3];
    pthread_t  threads[3];
    int        rank;

    (void)state;
    tti_mutex_init(&board.lock);
    leave_card(&board, 3, 4);
    for (rank = 0; rank < 3; rank++) {
        ctx[rank] = (rank_ctx){ .rank = rank, .size = 4, .board = &board,
                                .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
        assert_int_equal(pthread_create(&threads[rank], NULL, join_with_a_dead_one, &ctx[rank]), 0);
    }
    for (rank = 0; rank < 3; rank++) {
        assert_int_equal(pthread_join(threads[rank], NULL), 0);
        if (ctx[rank].failure[0] != '\0')
            fail_msg("%s", ctx[rank].failure);
    }
    tti_mutex_release(&board.lock);
}

static void *join_without_office(void *arg)
{
    rank_ctx              *ctx = arg;
    const tti_board        table = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config  config = config_of(ctx, &table);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_E_PEER);
    CHECK(ctx, strstr(tutti_last_error(), "rank 0 (host '") != NULL);
    return NULL;
}

/* Three join a world whose lowest rank has left a card and nothing else. */
static void check_without_office(test_board *board)
{
    rank_ctx  ctx[4];
    pthread_t threads[4];
    int       rank;

    for (rank = 1; rank < 4; rank++) {
        ctx[rank] = (rank_ctx){ .rank = rank, .size = 4, .board = board,
                                .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
        assert_int_equal(pthread_create(&threads[rank], NULL, join_without_office, &ctx[rank]), 0);
    }
    for (rank = 1; rank < 4; rank++) {
        assert_int_equal(pthread_join(threads[rank], NULL), 0);
        if (ctx[rank].failure[0] != '\0')
            fail_msg("%s", ctx[rank].failure);
    }
}

static void who_ends_before_its_host_meets_is_named(void **state)
{
    test_board board = { .n = 0 };

    (void)state;
    tti_mutex_init(&board.lock);
    leave_card(&board, 0, 4);
    check_without_office(&board);
    tti_mutex_release(&board.lock);
}

/* It said that it has the cards, which are all there; then it has failed, said why, and ended. */
static void what_a_clerk_failed_of_is_told(void **state)
{
    const char           *reason = "no memory to meet 2 ranks of this host";
    const char           *told = "rank 0 has given up, and reported: no memory to meet 2 ranks of this host";
    test_board            board = { .n = 0 };
    const tti_board       table = { .context = &board, .put = board_put, .get = board_get, .has = board_has };
    rank_ctx              ctx = { .rank = 1, .size = 2, .board = &board, .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
    const tti_mesh_config config = config_of(&ctx, &table);
    tti_card              cards[2];
    tti_mesh              mesh = { .port = config.port, .rank = 1, .n_ranks = 2, .cards = cards, .clerk_stream = TTI_NO_HANDLE };

    (void)state;
    tti_mutex_init(&board.lock);
    leave_card(&board, 0, 2);
    assert_int_equal(put_card(&board, 1, 2), TUTTI_OK);
    tti_fail(TUTTI_E_NOMEM, "%s", reason);
    tti_trouble_leave(&table, config.port, 0, TUTTI_E_NOMEM);
    snprintf(mesh.clerk.local_name, sizeof mesh.clerk.local_name, "tutti-nobody-%ld", (long)getpid());
    assert_int_equal(tti_meet_clerk(&mesh, &config), TUTTI_E_NOMEM);
    if (strncmp(tutti_last_error(), told, strlen(told)) != 0 || strstr(tutti_last_error() + strlen(told), "rank 0") != NULL)
        fail_msg("%s", tutti_last_error());
    tti_mutex_release(&board.lock);
}

/* It accepts one, and ends, with the hello unread. */
static void *end_in_the_hello(void *listener)
{
    tti_port  *port = tti_port_system();
    tti_poll   poll = { .handle = *(tti_handle *)listener, .want = TTI_READ };
    tti_handle stream;

    port->ops->poll(port, &poll, 1, tti_deadline(port, LIMIT_MS, 0));
    stream = port->ops->accept(port, poll.handle, NULL);
    port->ops->close(port, poll.handle);
    poll.handle = stream;
    port->ops->poll(port, &poll, 1, tti_deadline(port, LIMIT_MS, 0));
    port->ops->close(port, stream);
    return NULL;
}

static void who_ends_in_its_hello_is_named(void **state)
{
    test_board board = { .n = 0 };
    tti_card  *card = (tti_card *)(void *)board.entry[0].data;
    tti_addr   at = { .family = TTI_ADDR_LOCAL }, bound;
    tti_handle listener = TTI_NO_HANDLE;
    pthread_t  office;

    (void)state;
    tti_mutex_init(&board.lock);
    leave_card(&board, 0, 4);
    memcpy(at.name, card->local_name, sizeof at.name);
    assert_int_equal(tti_port_system()->ops->listen(tti_port_system(), &at, 4, &bound, &listener), 0);
    assert_int_equal(pthread_create(&office, NULL, end_in_the_hello, &listener), 0);
    check_without_office(&board);
    pthread_join(office, NULL);
    tti_mutex_release(&board.lock);
}

/* It takes one, and hangs up on it; then it ends, or lives, and takes nobody any more. */
typedef struct hasty_office {
    tti_handle listener;
    bool       lives;
} hasty_office;

/* Closes what a process closes that ends, the stream before the socket where it listens, and that only when the other end looks whether
 * it listens. */
static void *end_stream_first(void *arg)
{
    const hasty_office *office = arg;
    tti_port           *port = tti_port_system();
    const int64_t       deadline_ns = tti_deadline(port, LIMIT_MS, 0);
    tti_poll            poll = { .handle = office->listener, .want = TTI_READ }, hello = { .want = TTI_READ };
    uint8_t             read[TTI_HELLO_CLIENT_BYTES]; /* what is left unread resets the stream */

    port->ops->poll(port, &poll, 1, deadline_ns);
    hello.handle = port->ops->accept(port, office->listener, NULL);
    port->ops->poll(port, &hello, 1, deadline_ns);
    (void)port->ops->recv(port, hello.handle, read, sizeof read);
    port->ops->close(port, hello.handle);
    port->ops->poll(port, &poll, 1, deadline_ns);
    if (!office->lives)
        port->ops->close(port, office->listener);
    return NULL;
}

/* Rank 1 meets rank 0, which does that: what it has to say. */
static void meet_a_hasty_office(bool lives, tutti_status wanted, const char *words)
{
    test_board            board = { .n = 0 };
    const tti_board       table = { .context = &board, .put = board_put, .get = board_get, .has = board_has };
    rank_ctx              ctx = { .rank = 1, .size = 2, .board = &board, .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
    const tti_mesh_config config = config_of(&ctx, &table);
    tti_card             *card = (tti_card *)(void *)board.entry[0].data;
    tti_addr              at = { .family = TTI_ADDR_LOCAL }, bound;
    hasty_office          office = { .listener = TTI_NO_HANDLE, .lives = lives };
    pthread_t             thread;

    tti_mutex_init(&board.lock);
    leave_card(&board, 0, 2);
    memcpy(at.name, card->local_name, sizeof at.name);
    assert_int_equal(tti_port_system()->ops->listen(tti_port_system(), &at, 4, &bound, &office.listener), 0);
    assert_int_equal(pthread_create(&thread, NULL, end_stream_first, &office), 0);
    assert_int_equal(tti_mesh_open(&config, &ctx.mesh), wanted);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
    pthread_join(thread, NULL);
    if (lives)
        tti_port_system()->ops->close(tti_port_system(), office.listener);
    tti_mutex_release(&board.lock);
}

static void who_ends_is_told_from_one_with_another_secret(void **state)
{
    (void)state;
    meet_a_hasty_office(false, TUTTI_E_PEER, "the first of this host, has ended or given up");
    meet_a_hasty_office(true, TUTTI_E_NETWORK, "it may have another secret");
}

/* A visitor of the office that fails there, and whether it hangs up before its words are on the board. */
typedef struct quitter {
    tti_port     base; /* first: the two pointers convert both ways */
    tti_port_ops ops;
    test_board  *board;
    bool         in_hello;  /* it fails there; else behind it */
    tti_handle   office;    /* its stream */
    bool         hung_up, left_words_first;
} quitter;

static int connect_to_quit(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    quitter  *q = (quitter *)port;
    const int err = tti_port_system()->ops->connect(tti_port_system(), to, handle_out);

    if (err == 0 && to->family == TTI_ADDR_LOCAL && q->office == TTI_NO_HANDLE)
        q->office = *handle_out;
    return err;
}

static int64_t recv_and_quit(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    const quitter *q = (const quitter *)port;

    return q->in_hello && handle == q->office ? -EIO : tti_port_system()->ops->recv(port, handle, out, bytes);
}

static int64_t recv_fds_and_quit(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds_out, int n_fds_max,
                                 int *n_fds_out)
{
    (void)port;
    (void)handle;
    (void)out;
    (void)bytes;
    (void)fds_out;
    (void)n_fds_max;
    *n_fds_out = 0;
    return -EIO;
}

static void hang_up_and_look(tti_port *port, tti_handle handle)
{
    quitter *q = (quitter *)port;

    if (handle != TTI_NO_HANDLE && handle == q->office && !q->hung_up) {
        q->hung_up = true;
        (void)board_has(q->board, TTI_TROUBLE_KEY, 0, &q->left_words_first);
    }
    tti_port_system()->ops->close(port, handle);
}

static void *join_and_quit(void *arg)
{
    rank_ctx             *ctx = arg;
    const tti_board       table = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config config = config_of(ctx, &table);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) != TUTTI_OK);
    CHECK(ctx, strstr(tutti_last_error(), "seen here") == NULL);
    return NULL;
}

/* Rank 0 has the office of two; rank 1 comes, and gives up. */
static void quit_the_office(bool in_hello, const char *words)
{
    test_board board = { .n = 0 };
    quitter    q = { .ops = *tti_port_system()->ops, .board = &board, .in_hello = in_hello, .office = TTI_NO_HANDLE };
    rank_ctx   ctx[2];
    pthread_t  threads[2];
    int        rank;

    q.base.ops = &q.ops;
    q.ops.connect = connect_to_quit;
    q.ops.recv = recv_and_quit;
    q.ops.recv_fds = recv_fds_and_quit;
    q.ops.close = hang_up_and_look;
    tti_mutex_init(&board.lock);
    for (rank = 0; rank < 2; rank++) {
        ctx[rank] = (rank_ctx){ .rank = rank, .size = 2, .board = &board, .port = rank == 1 ? &q.base : NULL,
                                .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
        assert_int_equal(pthread_create(&threads[rank], NULL, join_and_quit, &ctx[rank]), 0);
    }
    for (rank = 0; rank < 2; rank++)
        pthread_join(threads[rank], NULL);
    tti_mutex_release(&board.lock);
    for (rank = 0; rank < 2; rank++)
        if (ctx[rank].failure[0] != '\0')
            fail_msg("%s", ctx[rank].failure);
    assert_true(q.hung_up);
    if (!q.left_words_first)
        fail_msg("%s: it hung up on the office before its words were on the board", words);
}

/* The office looks for words when it sees the end of the stream: they have to be there. */
static void who_gives_up_hangs_up_behind_its_words(void **state)
{
    (void)state;
    quit_the_office(true, "in the hello");
    quit_the_office(false, "behind the hello");
}

static void *join_with_another_size(void *arg)
{
    rank_ctx               *ctx = arg;
    const tti_board         table = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config   config = config_of(ctx, &table);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_E_ARG);
    CHECK(ctx, strstr(tutti_last_error(), "world size mismatch") != NULL);
    return NULL;
}

static void world_sizes_must_agree(void **state)
{
    test_board board = { .n = 0 };
    rank_ctx   ctx[2];
    pthread_t  threads[2];
    int        rank;

    (void)state;
    tti_mutex_init(&board.lock);
    for (rank = 0; rank < 2; rank++) {
        ctx[rank] = (rank_ctx){ .rank = rank, .size = rank == 0 ? 2 : 4, .board = &board,
                                .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
        assert_int_equal(pthread_create(&threads[rank], NULL, join_with_another_size, &ctx[rank]), 0);
    }
    for (rank = 0; rank < 2; rank++)
        pthread_join(threads[rank], NULL);
    tti_mutex_release(&board.lock);
    for (rank = 0; rank < 2; rank++)
        if (ctx[rank].failure[0] != '\0')
            fail_msg("%s", ctx[rank].failure);
}

/* ---- hosts that read together ------------------------------------------------------------------------ */

/* The last rank is the first that comes. */
static tutti_status put_clerk(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    const tti_clerk *clerk = data;
    tti_clerk        there;

    if (strncmp(key, "clerk/", 6) == 0 && clerk->rank != RANKS_MAX - 1)
        (void)board_get(context, key, &there, sizeof there, tti_deadline(tti_port_system(), LIMIT_MS, 0));
    return board_put(context, key, data, bytes, deadline_ns);
}

static void *together_main(void *arg)
{
    rank_ctx             *ctx = arg;
    const tti_board       board = { .context = ctx->board, .put = put_clerk, .get = board_get, .has = board_has };
    const tti_mesh_config config = config_of(ctx, &board);
    int                   r;

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_OK);
    for (r = 0; ctx->mesh != NULL && r < ctx->size; r++) {
        CHECK(ctx, tti_mesh_host(ctx->mesh, r) == 0 && tti_mesh_heap(ctx->mesh, r) != NULL);
        CHECK(ctx, strstr(tti_mesh_whereabouts(ctx->mesh, r), "pid ") != NULL);
    }
    if (ctx->mesh != NULL)
        CHECK(ctx, tti_messenger_open(ctx->mesh, &ctx->messenger) == TUTTI_OK);
    if (ctx->messenger != NULL)
        body_all_pairs(ctx);
    tti_messenger_close(ctx->messenger);
    tti_mesh_close(ctx->mesh);
    return NULL;
}

static void run_together(test_board *board, int size, void *(*main_of_rank)(void *))
{
    rank_ctx  ctx[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    int       rank;

    tti_mutex_init(&board->lock);
    for (rank = 0; rank < size; rank++) {
        ctx[rank] = (rank_ctx){ .rank = rank, .size = size, .board = board,
                                .deadline_ns = tti_deadline(tti_port_system(), LIMIT_MS, 0) };
        assert_int_equal(pthread_create(&threads[rank], NULL, main_of_rank, &ctx[rank]), 0);
    }
    for (rank = 0; rank < size; rank++)
        pthread_join(threads[rank], NULL);
    tti_mutex_release(&board->lock);
    for (rank = 0; rank < size; rank++)
        if (ctx[rank].failure[0] != '\0')
            fail_msg("%s", ctx[rank].failure);
}

/* By its clerk, whichever rank that is; the others have the cards from it, and the same memory of each other. */
static void a_host_reads_its_cards_once(void **state)
{
    test_board board = { .patient = true };

    (void)state;
    together = 2;
    run_together(&board, RANKS_MAX, together_main);
    assert_int_equal(board.n_cards, RANKS_MAX);
    together = 0;
}

/* A clerk that is refused its world is nobody's, and the others find out the same, each in its own words. */
static void what_is_wrong_with_a_card_is_told_to_all(void **state)
{
    test_board board = { .patient = true };

    (void)state;
    together = 2;
    run_together(&board, 2, more_stripes_main);
    world_sizes_must_agree(state);
    together = 0;
}

static void a_clerk_that_ends_is_named(void **state)
{
    (void)state;
    together = 2;
    who_ended_is_named_not_who_found_it(state);
    who_ends_before_its_host_meets_is_named(state);
    who_ends_in_its_hello_is_named(state);
    together = 0;
}

/* Its clerk has read the cards, said so, and does not run any more: each reads them, and then waits for the clerk as for any rank
 * of its host that does not run. */
static void *join_with_a_stopped_clerk(void *arg)
{
    rank_ctx              *ctx = arg;
    const tti_board        table = { .context = ctx->board, .put = board_put, .get = board_get, .has = board_has };
    const tti_mesh_config  config = config_of(ctx, &table);

    CHECK(ctx, tti_mesh_open(&config, &ctx->mesh) == TUTTI_E_TIMEOUT);
    CHECK(ctx, strstr(tutti_last_error(), "rank 0") != NULL);
    return NULL;
}

static void a_clerk_that_is_stopped_is_named(void **state)
{
    test_board board = { .n = 0 };
    rank_ctx   ctx = { .rank = 1, .size = 2, .board = &board };
    tti_card  *card = (tti_card *)(void *)board.entry[0].data;
    tti_addr   at = { .family = TTI_ADDR_LOCAL }, bound;
    tti_handle listener = TTI_NO_HANDLE;

    (void)state;
    together = 2;
    tti_mutex_init(&board.lock);
    leave_card(&board, 0, 2);
    memcpy(at.name, card->local_name, sizeof at.name);
    assert_int_equal(tti_port_system()->ops->listen(tti_port_system(), &at, 4, &bound, &listener), 0);
    ctx.deadline_ns = tti_deadline(tti_port_system(), 1500, 0);
    join_with_a_stopped_clerk(&ctx);
    if (ctx.failure[0] != '\0')
        fail_msg("%s", ctx.failure);
    tti_port_system()->ops->close(tti_port_system(), listener);
    tti_mutex_release(&board.lock);
    together = 0;
}

/* ---- windows ---------------------------------------------------------------------------------------- */

enum { WINDOW_BYTES = 4096, GROUP = 0 /* as the messages that exchange cards */ };

/* Open and exchange; rank r gives the window number id + r * apart. */
static tti_window *open_window(rank_ctx *ctx, uint32_t apart, unsigned char *memory)
{
    static const int ranks[2] = { 0, 1 };
    tti_window_card  cards[2];
    tti_window      *window = NULL;

    CHECK(ctx, tti_messenger_enter(ctx->messenger, GROUP, ranks, 2) == TUTTI_OK);
    CHECK(ctx, tti_window_open(ctx->messenger, GROUP, 8 + (uint32_t)ctx->rank * apart, ranks, 2, memory, WINDOW_BYTES,
                               &cards[ctx->rank], &window) == TUTTI_OK);
    if (window == NULL)
        return NULL;
    CHECK(ctx, do_send(ctx, 1 - ctx->rank, 0, &cards[ctx->rank], sizeof cards[0]) == TUTTI_OK);
    CHECK(ctx, do_recv(ctx, 1 - ctx->rank, 0, &cards[1 - ctx->rank], sizeof cards[0]) == TUTTI_OK);
    CHECK(ctx, tti_window_attach(window, cards) == TUTTI_OK);
    return window;
}

/* Rank 1 does what the layers above would not let it do. Rank 0 must lose the connection, in words, with its
 * memory as it was. */
static void refuse(rank_ctx *ctx, uint32_t apart, void (*attack)(rank_ctx *ctx, tti_window *window), const char *words)
{
    unsigned char *memory = NULL, byte = 0;
    tti_window    *window;
    tti_request   *request = NULL;
    int            i;

    CHECK(ctx, tutti_alloc(WINDOW_BYTES, (void **)&memory) == TUTTI_OK);
    window = open_window(ctx, apart, memory);
    if (window != NULL && ctx->rank == 1) {
        attack(ctx, window);
        CHECK(ctx, tti_window_flush(window, 0, &request) == TUTTI_OK);
        CHECK(ctx, request == NULL || finish(ctx, request) == TUTTI_E_PEER);
        CHECK(ctx, do_recv(ctx, 0, 1, &byte, 1) == TUTTI_E_PEER);
    } else if (window != NULL) {
        CHECK(ctx, do_recv(ctx, 1, 1, &byte, 1) == TUTTI_E_PEER);
        CHECK(ctx, strstr(tutti_last_error(), words) != NULL);
        for (i = 0; i < WINDOW_BYTES; i++)
            CHECK(ctx, memory[i] == 0);
    }
    tti_window_close(window, false);
    CHECK(ctx, tutti_free(memory) == TUTTI_OK);
}

static void put_at(rank_ctx *ctx, tti_window *window, uint64_t offset, size_t bytes)
{
    static unsigned char ones[2 * WINDOW_BYTES] = { 1 };
    tti_request         *request = NULL;

    CHECK(ctx, tti_window_put(window, 0, offset, ones, bytes, &request) == TUTTI_OK);
    (void)finish(ctx, request); /* it has gone, or the connection was faster */
}

static void put_beyond(rank_ctx *ctx, tti_window *window)
{
    put_at(ctx, window, WINDOW_BYTES - 10, 11);
}

static void put_far(rank_ctx *ctx, tti_window *window)
{
    put_at(ctx, window, UINT64_MAX - 5, 10);
}

static void put_inside(rank_ctx *ctx, tti_window *window)
{
    put_at(ctx, window, 0, 1);
}

static void get_beyond(rank_ctx *ctx, tti_window *window)
{
    static unsigned char into[2 * WINDOW_BYTES];
    tti_request         *request = NULL;

    CHECK(ctx, tti_window_get(window, 0, 1, into, WINDOW_BYTES, &request) == TUTTI_OK);
    CHECK(ctx, finish(ctx, request) == TUTTI_E_PEER);
}

static void body_put_beyond(rank_ctx *ctx)
{
    refuse(ctx, 0, put_beyond, "writes outside of a window");
}

static void body_put_far(rank_ctx *ctx)
{
    refuse(ctx, 0, put_far, "writes outside of a window");
}

static void body_get_beyond(rank_ctx *ctx)
{
    refuse(ctx, 0, get_beyond, "reads outside of a window");
}

static void body_other_window(rank_ctx *ctx)
{
    refuse(ctx, 1, put_inside, "that it has no part in");
}

static void what_is_outside_of_a_window_loses_the_connection(void **state)
{
    (void)state;
    run_ranks_on(2, true, body_put_beyond);
    run_ranks_on(2, true, body_put_far);
    run_ranks_on(2, true, body_get_beyond);
    run_ranks_on(2, true, body_other_window);
}

/* Inside a host offsets come with the card: one that points outside is refused before anybody follows it. */
static void body_bad_cards(rank_ctx *ctx)
{
    static const int ranks[2] = { 0, 1 };
    tti_window_card  cards[2] = { { .bytes = 0 } };
    tti_window      *window = NULL;
    void            *memory = NULL;
    int              variant;

    CHECK(ctx, tutti_alloc(WINDOW_BYTES, &memory) == TUTTI_OK);
    CHECK(ctx, tti_messenger_enter(ctx->messenger, GROUP, ranks, 2) == TUTTI_OK);
    for (variant = 0; variant < 3; variant++) {
        CHECK(ctx, tti_window_open(ctx->messenger, GROUP, (uint32_t)variant, ranks, 2, memory, WINDOW_BYTES,
                                   &cards[ctx->rank], &window) == TUTTI_OK);
        if (window == NULL)
            break;
        cards[1 - ctx->rank] = cards[ctx->rank];
        if (variant == 0)
            cards[1 - ctx->rank].control = UINT64_MAX - 127;
        else if (variant == 1)
            cards[1 - ctx->rank].offset = UINT64_MAX - 5;
        else
            cards[1 - ctx->rank].bytes = UINT64_MAX;
        CHECK(ctx, tti_window_attach(window, cards) == TUTTI_E_AUTH);
        tti_window_close(window, true);
    }
    CHECK(ctx, tutti_free(memory) == TUTTI_OK);
}

static void cards_are_checked(void **state)
{
    (void)state;
    run_ranks_on(2, false, body_bad_cards);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_exchanges),
        cmocka_unit_test(what_is_outside_of_a_window_loses_the_connection),
        cmocka_unit_test(cards_are_checked),
        cmocka_unit_test(tags_select_and_keep_order),
        cmocka_unit_test(large_messages_cross),
        cmocka_unit_test(requests_progress_without_waiting),
        cmocka_unit_test(any_source_tells_who),
        cmocka_unit_test(wrong_sizes_are_refused_and_consumed),
        cmocka_unit_test(a_wait_that_times_out_can_be_repeated),
        cmocka_unit_test(a_time_out_says_what_the_kernel_knows),
        cmocka_unit_test(who_leaves_tells_those_it_is_late_with),
        cmocka_unit_test(every_connection_takes_the_congestion_control),
        cmocka_unit_test(a_near_way_is_not_paced),
        cmocka_unit_test(an_unknown_congestion_control_is_refused),
        cmocka_unit_test(ways_go_by_all_interfaces),
        cmocka_unit_test(what_is_not_read_is_not_refused),
        cmocka_unit_test(what_is_left_of_interfaces_is_looked_at),
        cmocka_unit_test(interfaces_are_asked_for_with_patience),
        cmocka_unit_test(ways_may_have_several_connections),
        cmocka_unit_test(ranks_that_count_on_other_numbers_are_named),
        cmocka_unit_test(too_many_connections_are_refused),
        cmocka_unit_test(who_waits_beside_a_program_stands_back),
        cmocka_unit_test(who_keeps_the_core_is_not_given_it_again),
        cmocka_unit_test(who_sleeps_is_woken_by_other_threads),
        cmocka_unit_test(who_sleeps_on_a_link_closes_it),
        cmocka_unit_test(a_frame_may_go_in_pieces),
        cmocka_unit_test(ends_are_told_of),
        cmocka_unit_test(a_peer_that_leaves_is_named),
        cmocka_unit_test(more_words_are_waited_for_no_longer_than_may_be),
        cmocka_unit_test(any_source_ends_when_everybody_is_gone),
        cmocka_unit_test(traffic_does_not_hide_a_loss),
        cmocka_unit_test(an_aborted_group_leaves_the_others_alone),
        cmocka_unit_test(a_failure_is_told_without_further_calls),
        cmocka_unit_test(a_secret_is_needed_beyond_loopback),
        cmocka_unit_test(missing_ranks_are_named),
        cmocka_unit_test(who_was_awaited_is_named_without_the_board),
        cmocka_unit_test(who_did_not_come_to_the_local_socket_is_named),
        cmocka_unit_test(who_ended_is_named_not_who_found_it),
        cmocka_unit_test(who_ends_before_its_host_meets_is_named),
        cmocka_unit_test(what_a_clerk_failed_of_is_told),
        cmocka_unit_test(who_ends_in_its_hello_is_named),
        cmocka_unit_test(who_ends_is_told_from_one_with_another_secret),
        cmocka_unit_test(who_gives_up_hangs_up_behind_its_words),
        cmocka_unit_test(world_sizes_must_agree),
        cmocka_unit_test(a_host_reads_its_cards_once),
        cmocka_unit_test(what_is_wrong_with_a_card_is_told_to_all),
        cmocka_unit_test(a_clerk_that_ends_is_named),
        cmocka_unit_test(a_clerk_that_is_stopped_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
