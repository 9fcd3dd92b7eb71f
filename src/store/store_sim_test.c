/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_sim_test.c - the tcp store's real client and server in a world of memory.
 *
 * Goal    waits, time-outs, deaths, back-off and strangers behave as the contract says, in virtual
 *         time, and a run is a function of its seed.
 * Method  the engine on the host "server", driven over port streams; clients on hosts of their own;
 *         one thread each. A test is a list of programs, then what they saw. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/store_collectives.h>
#include "harness/mem_port.h"
#include "store/store.h"
#include "store/store_engine_conn.h"
#include "wire/hello.h"

enum { TCP_PORT = 29500, CONNS_MAX = 64, CLIENTS_MAX = 8 };

/* ---- a server over port streams ---- */

typedef struct sim_conn {
    tti_handle       handle;
    tti_engine_conn *conn;
} sim_conn;

typedef struct sim_server {
    tti_port         *port;
    tti_engine       *engine;
    tti_handle        listener;
    tti_handle        bell; /* rung: end */
    tti_engine_limits limits;
    sim_conn          conns[CONNS_MAX];
    int               n_conns;
    int64_t           dies_ns;  /* ends by itself then; 0: at the bell */
    int               n_served; /* connections that the engine took */
    int               n_pushed; /* of those that come next so many are closed before their proof is read */
} sim_server;

static void server_drop(sim_server *s, int i)
{
    tti_engine_drop(s->engine, s->conns[i].conn);
    s->port->ops->close(s->port, s->conns[i].handle);
    s->conns[i] = s->conns[--s->n_conns];
}

static int index_of(const sim_server *s, const tti_engine_conn *conn)
{
    int i;

    for (i = 0; i < s->n_conns && s->conns[i].conn != conn; i++)
        continue;
    assert_true(i < s->n_conns);
    return i;
}

static void server_flush(sim_server *s)
{
    tti_engine_conn *conn;

    while ((conn = tti_engine_next(s->engine)) != NULL) {
        const int i = index_of(s, conn);
        tti_part  part;
        int64_t   n;

        part.data = tti_engine_output(conn, &part.size);
        n = part.size > 0 ? s->port->ops->send(s->port, s->conns[i].handle, &part, 1) : 0;
        if (n > 0)
            tti_engine_sent(s->engine, conn, (size_t)n);
        if (tti_engine_closing(conn) || (n < 0 && n != -EAGAIN))
            server_drop(s, i);
        else if (n == -EAGAIN) {
            tti_engine_sent(s->engine, conn, 0); /* it comes back when the poll says that it may be written */
            break;
        }
    }
}

static void server_accept(sim_server *s)
{
    tti_addr         from;
    tti_handle       handle = s->port->ops->accept(s->port, s->listener, &from);
    tti_engine_conn *conn;

    if (handle < 0)
        return;
    conn = s->n_conns < CONNS_MAX
               ? tti_engine_accept(s->engine, tti_port_now(s->port), "a client", &from, NULL)
               : NULL;
    if (conn == NULL) {
        s->port->ops->close(s->port, handle);
        return;
    }
    s->n_served++;
    s->conns[s->n_conns++] = (sim_conn){ .handle = handle, .conn = conn };
}

/* As a crowd of strangers does. */
static bool server_pushes_out(sim_server *s, int i)
{
    if (s->n_pushed == 0 || s->conns[i].conn->crowd != &s->engine->spoken)
        return false;
    s->n_pushed--;
    server_drop(s, i);
    return true;
}

static void server_read(sim_server *s, int i)
{
    char    data[4096];
    int64_t n = s->port->ops->recv(s->port, s->conns[i].handle, data, sizeof data);

    if (n > 0)
        tti_engine_input(s->engine, s->conns[i].conn, data, (size_t)n);
    else if (n != -EAGAIN)
        server_drop(s, i);
}

static int64_t server_until(const sim_server *s)
{
    const int64_t tick = tti_engine_deadline(s->engine);

    return s->dies_ns != 0 && s->dies_ns < tick ? s->dies_ns : tick;
}

static uint8_t wants(const tti_engine_conn *conn)
{
    size_t bytes = 0;

    tti_engine_output(conn, &bytes);
    return (uint8_t)((tti_engine_reads(conn) ? TTI_READ : 0) | (bytes > 0 ? TTI_WRITE : 0));
}

/* One round; false: the bell has rung. */
static bool server_round(sim_server *s)
{
    tti_poll set[CONNS_MAX + 2];
    int      n = s->n_conns, i;

    for (i = 0; i < n; i++)
        set[i] = (tti_poll){ .handle = s->conns[i].handle, .want = wants(s->conns[i].conn) };
    set[n] = (tti_poll){ .handle = s->listener, .want = TTI_READ };
    set[n + 1] = (tti_poll){ .handle = s->bell, .want = TTI_READ };
    s->port->ops->poll(s->port, set, n + 2, server_until(s));
    tti_engine_tick(s->engine, tti_port_now(s->port));
    for (i = n - 1; i >= 0; i--) /* a drop moves the last one to its place: go downwards */
        if ((set[i].got & (TTI_READ | TTI_HANGUP)) != 0 && !server_pushes_out(s, i))
            server_read(s, i);
    if (set[n].got != 0)
        server_accept(s);
    server_flush(s);
    return set[n + 1].got == 0;
}

static void server_body(void *arg)
{
    sim_server    *s = arg;
    const tti_addr at = { .family = TTI_ADDR_IP4, .port = TCP_PORT };
    tti_addr       bound;

    assert_int_equal(tti_engine_create(s->port, NULL, &s->limits, &s->engine), TUTTI_OK);
    assert_int_equal(s->port->ops->listen(s->port, &at, 16, &bound, &s->listener), 0);
    while (server_round(s))
        if (s->dies_ns != 0 && tti_port_now(s->port) >= s->dies_ns)
            break;
    while (s->n_conns > 0)
        server_drop(s, s->n_conns - 1);
    s->port->ops->close(s->port, s->listener);
    tti_engine_destroy(s->engine);
}

/* ---- clients ---- */

typedef struct client client;

struct client {
    tti_port *port;
    void (*run)(client *c, tutti_store *store);
    int64_t      timeout_ms;
    int64_t      opens_ns; /* virtual time at which the store was open */
    int64_t      ends_ns;  /* and at which run had returned */
    tutti_status st;       /* of opening, then of whatever run kept */
    char         words[512];
    tutti_bytes  value;
    int64_t      number;
};

typedef struct sim {
    tt_mem_world *world;
    sim_server    server;
    client        clients[CLIENTS_MAX];
    int           n_clients;
    int           n_left; /* clients that have not ended: the last one stops the server */
} sim;

static sim *now_running; /* cmocka runs one test at a time, a world one thread */

static void keep(client *c, tutti_status st)
{
    c->st = st;
    snprintf(c->words, sizeof c->words, "%s", st == TUTTI_OK ? "" : tutti_last_error());
}

static void client_end(client *c)
{
    c->ends_ns = tti_port_now(c->port);
    if (--now_running->n_left == 0)
        now_running->server.port->ops->bell_ring(now_running->server.port,
                                                 now_running->server.bell);
}

static void client_body(void *arg)
{
    client                 *c = arg;
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    options.host = "server";
    options.port = TCP_PORT;
    options.timeout_ms = c->timeout_ms;
    keep(c, tti_tcp_store_open_on(c->port, &options, &store));
    c->opens_ns = tti_port_now(c->port);
    if (store != NULL)
        c->run(c, store);
    tutti_store_close(store);
    client_end(c);
}

static void sim_begin(sim *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    now_running = s;
    s->world = tt_mem_world_new(seed);
    s->server.port = tt_mem_host(s->world, "server");
    assert_int_equal(s->server.port->ops->bell_create(s->server.port, &s->server.bell), 0);
}

static client *sim_add(sim *s, int64_t start_ns, void (*body)(void *arg),
                       void (*run)(client *c, tutti_store *store))
{
    client *c = &s->clients[s->n_clients++];
    char    name[32];

    snprintf(name, sizeof name, "client-%d", s->n_clients);
    *c = (client){ .port = tt_mem_host(s->world, name), .run = run, .st = TUTTI_E_STATE };
    s->n_left++;
    tt_mem_spawn(s->world, name, start_ns, body, c);
    return c;
}

static client *sim_client(sim *s, int64_t start_ns, void (*run)(client *c, tutti_store *store))
{
    return sim_add(s, start_ns, client_body, run);
}

static void sim_server_at(sim *s, int64_t start_ns)
{
    tt_mem_spawn(s->world, "server", start_ns, server_body, &s->server);
}

/* Run the world; its trace. */
static uint64_t sim_end(sim *s)
{
    uint64_t trace;

    tt_mem_run(s->world);
    trace = tt_mem_trace(s->world);
    tt_mem_world_free(s->world);
    return trace;
}

/* ---- tests ---- */

static void get_x(client *c, tutti_store *store)
{
    keep(c, tutti_store_get(store, "x", 0, &c->value));
}

static void set_x(client *c, tutti_store *store)
{
    keep(c, tutti_store_set(store, "x", "five", 4));
}

static void get_waits_for_a_later_set(void **state)
{
    sim     s;
    client *getter, *setter;

    (void)state;
    sim_begin(&s, 1);
    sim_server_at(&s, 0);
    getter = sim_client(&s, 0, get_x);
    setter = sim_client(&s, 6 * TTI_SECOND, set_x);
    sim_end(&s);
    assert_int_equal(setter->st, TUTTI_OK);
    assert_int_equal(getter->st, TUTTI_OK);
    assert_string_equal(getter->value.data, "five");
    assert_true(getter->ends_ns >= 6 * TTI_SECOND);
    assert_true(getter->ends_ns < 6 * TTI_SECOND + 5 * TTI_MS);
    tutti_bytes_free(&getter->value);
}

static void set_x_push_and_get(client *c, tutti_store *store)
{
    keep(c, tutti_store_set(store, "x", "five", 4));
    if (c->st != TUTTI_OK)
        return;
    tt_mem_cut(now_running->world, "client-1"); /* nothing is under way: the next call makes another one, and does not fail */
    now_running->server.n_pushed = 3;
    get_x(c, store);
}

/* Whoever is pushed out when its proof is under way has asked for nothing yet, and comes again: as it opens the store, and
 * with a later connection. */
static void who_is_pushed_out_comes_again(void **state)
{
    sim     s;
    client *c;

    (void)state;
    sim_begin(&s, 1);
    sim_server_at(&s, 0);
    s.server.n_pushed = 2;
    c = sim_client(&s, 0, set_x_push_and_get);
    sim_end(&s);
    assert_string_equal(c->words, "");
    assert_int_equal(c->st, TUTTI_OK);
    assert_string_equal(c->value.data, "five");
    assert_int_equal(s.server.n_pushed, 0);
    assert_int_equal(s.server.n_served, 2 + 1 + 3 + 1);
    tutti_bytes_free(&c->value);
}

/* The default of 300 s; afterwards the same connection still works: the CANCEL did its part. */
static void time_out_then_go_on(client *c, tutti_store *store)
{
    tutti_status st = tutti_store_get(store, "never", 0, &c->value);

    keep(c, st);
    if (st == TUTTI_E_TIMEOUT && tutti_store_add(store, "n", 3, &c->number) != TUTTI_OK)
        c->number = -1;
}

static void time_outs_take_virtual_time(void **state)
{
    const int64_t really = tti_port_now(tti_port_system());
    sim           s;
    client       *c;

    (void)state;
    sim_begin(&s, 2);
    sim_server_at(&s, 0);
    c = sim_client(&s, 0, time_out_then_go_on);
    sim_end(&s);
    assert_int_equal(c->st, TUTTI_E_TIMEOUT);
    assert_non_null(strstr(c->words, "'never' did not come within 300000 ms"));
    assert_non_null(strstr(c->words, "store server:29500"));
    assert_int_equal(c->number, 3);
    assert_int_equal(s.server.n_served, 1); /* one connection was enough */
    assert_true(c->ends_ns >= 301 * TTI_SECOND && c->ends_ns < 302 * TTI_SECOND);
    assert_true(tti_port_now(tti_port_system()) - really < 20 * TTI_SECOND);
}

/* The value and the CANCEL cross on a slow wire: the value counts. */
static void get_x_for_a_second(client *c, tutti_store *store)
{
    keep(c, tutti_store_get(store, "x", 1000, &c->value));
    if (tutti_store_add(store, "n", 1, &c->number) != TUTTI_OK)
        c->number = -1;
}

static void a_reply_that_crosses_the_cancel_counts(void **state)
{
    sim     s;
    client *getter;

    (void)state;
    sim_begin(&s, 3);
    tt_mem_latency(s.world, 50 * TTI_MS);
    sim_server_at(&s, 0);
    /* Opening takes 300 ms: the getter gives up at 2400 ms, and its CANCEL arrives at 2450 ms. The
     * setter's value arrives at 2400 ms, and the reply to the getter at 2450 ms. */
    getter = sim_client(&s, 1100 * TTI_MS, get_x_for_a_second);
    sim_client(&s, 2050 * TTI_MS, set_x);
    sim_end(&s);
    assert_true(getter->opens_ns == 1400 * TTI_MS);
    assert_int_equal(getter->st, TUTTI_OK);
    assert_string_equal(getter->value.data, "five");
    assert_int_equal(getter->number, 1); /* the connection is in step */
    assert_int_equal(s.server.n_served, 2);
    tutti_bytes_free(&getter->value);
}

enum { FAR_KEYS = 64 };

static void wait_for_many(client *c, tutti_store *store)
{
    static char room[FAR_KEYS][16];
    const char *keys[FAR_KEYS];
    int         i;

    for (i = 0; i < FAR_KEYS; i++) {
        snprintf(room[i], sizeof room[i], "k%d", i);
        keys[i] = room[i];
    }
    c->opens_ns = tti_port_now(c->port);
    keep(c, tutti_store_wait(store, keys, FAR_KEYS, 1000));
}

/* Each question takes 200 ms: to take back the wait is one, and to find the first of 64 keys that is missing takes six. All of them
 * together have half a second. */
static void a_far_server_has_one_grace(void **state)
{
    sim     s;
    client *waiter;

    (void)state;
    sim_begin(&s, 5);
    tt_mem_latency(s.world, 100 * TTI_MS);
    sim_server_at(&s, 0);
    waiter = sim_client(&s, 0, wait_for_many);
    sim_end(&s);
    assert_int_equal(waiter->st, TUTTI_E_TIMEOUT);
    assert_non_null(strstr(waiter->words, "did not come within"));
    assert_true(waiter->ends_ns <= waiter->opens_ns + 1500 * TTI_MS);
}

static void barrier_of_many(client *c, tutti_store *store)
{
    tutti_store_collectives *all = NULL;

    assert_int_equal(tutti_store_collectives_create(store, 99, 100, &all), TUTTI_OK);
    c->opens_ns = tti_port_now(c->port);
    keep(c, tutti_store_collectives_barrier(all, "b", 1000, true));
    tutti_store_collectives_free(all);
}

/* Who is missing is asked for one by one, 10 ms each: there is no time for all hundred, and those that are known are named. */
static void a_far_server_names_some_that_are_missing(void **state)
{
    sim     s;
    client *waiter;

    (void)state;
    sim_begin(&s, 6);
    tt_mem_latency(s.world, 5 * TTI_MS);
    sim_server_at(&s, 0);
    waiter = sim_client(&s, 0, barrier_of_many);
    sim_end(&s);
    assert_int_equal(waiter->st, TUTTI_E_TIMEOUT);
    assert_non_null(strstr(waiter->words, "barrier 'b' over a store: at least "));
    assert_non_null(strstr(waiter->words, " of 100 ranks did not come"));
    assert_non_null(strstr(waiter->words, "not arrived: ranks 0, 1, "));
    assert_true(waiter->ends_ns <= waiter->opens_ns + 1500 * TTI_MS);
}

static void get_for_ever(client *c, tutti_store *store)
{
    tutti_bytes value = { .data = NULL };

    keep(c, tutti_store_get(store, "never", TUTTI_INFINITE, &c->value));
    c->number = tti_port_now(c->port);
    /* The handle says so at once from now on. */
    assert_int_equal(tutti_store_get(store, "never", TUTTI_INFINITE, &value), TUTTI_E_NETWORK);
}

static void a_dead_server_ends_every_wait(void **state)
{
    sim s;
    int i;

    (void)state;
    sim_begin(&s, 4);
    s.server.dies_ns = 100 * TTI_SECOND;
    sim_server_at(&s, 0);
    for (i = 0; i < 4; i++)
        sim_client(&s, i * TTI_SECOND, get_for_ever);
    sim_end(&s);
    for (i = 0; i < 4; i++) {
        assert_int_equal(s.clients[i].st, TUTTI_E_NETWORK);
        assert_non_null(strstr(s.clients[i].words, "store server:29500"));
        assert_true(s.clients[i].number >= 100 * TTI_SECOND);
        assert_true(s.clients[i].number < 100 * TTI_SECOND + 5 * TTI_MS);
        assert_true(s.clients[i].ends_ns < 101 * TTI_SECOND);
    }
}

static void pop_q(client *c, tutti_store *store)
{
    keep(c, tutti_store_queue_pop(store, "q", true, 10000, &c->value));
    if (c->st == TUTTI_E_TIMEOUT && tutti_store_queue_len(store, "q", &c->number) != TUTTI_OK)
        c->number = -1;
}

static void push_q(client *c, tutti_store *store)
{
    keep(c, tutti_store_queue_push(store, "q", "element", 7));
}

/* Two wait, one value comes: the first gets it when it comes, the second times out in good order. */
static void a_pop_waits_for_a_push(void **state)
{
    sim     s;
    client *first, *second, *pusher;

    (void)state;
    sim_begin(&s, 12);
    sim_server_at(&s, 0);
    first = sim_client(&s, TTI_SECOND, pop_q);
    second = sim_client(&s, 2 * TTI_SECOND, pop_q);
    pusher = sim_client(&s, 6 * TTI_SECOND, push_q);
    sim_end(&s);
    assert_int_equal(pusher->st, TUTTI_OK);
    assert_int_equal(first->st, TUTTI_OK);
    assert_string_equal(first->value.data, "element");
    assert_true(first->ends_ns >= 6 * TTI_SECOND);
    assert_true(first->ends_ns < 6 * TTI_SECOND + 5 * TTI_MS);
    assert_int_equal(second->st, TUTTI_E_TIMEOUT);
    assert_non_null(strstr(second->words, "nothing came to queue 'q' within 10000 ms"));
    assert_int_equal(second->number, 0); /* the connection is in step */
    assert_true(second->ends_ns >= 12 * TTI_SECOND);
    assert_true(second->ends_ns < 12 * TTI_SECOND + 20 * TTI_MS);
    assert_int_equal(s.server.n_served, 3);
    tutti_bytes_free(&first->value);
}

static void cutter_body(void *arg)
{
    tt_mem_cut(now_running->world, "server");
    client_end(arg);
}

static void a_reset_in_mid_wait_is_seen(void **state)
{
    sim     s;
    client *c;

    (void)state;
    sim_begin(&s, 5);
    sim_server_at(&s, 0);
    c = sim_client(&s, 0, get_x);
    sim_add(&s, 10 * TTI_SECOND, cutter_body, NULL);
    sim_end(&s);
    assert_int_equal(c->st, TUTTI_E_NETWORK);
    assert_non_null(strstr(c->words, "Connection reset"));
    assert_true(c->ends_ns < 10 * TTI_SECOND + TTI_MS);
}

/* Cut in the middle of the greeting, which is tried again: the hello, the proof, the question that shows that it was taken. Then
 * in the middle of a request, which is not: it may have arrived. */
static void set_large(client *c, tutti_store *store)
{
    char *data = calloc(1, 1 << 20);

    keep(c, tutti_store_set(store, "large", data, 1 << 20));
    free(data);
}

static void cuts_end_in_an_error_or_a_second_hello(void **state)
{
    static const int64_t after[] = { 1, 71, 72, 73, 103, 104, 110, 116, 117, 130, 300000 };
    const int64_t        greeting = TTI_HELLO_CLIENT_BYTES + TTI_HELLO_FINISH_BYTES + TTI_STORE_HEAD_BYTES;
    sim                  s;
    client              *c;
    size_t               i;

    (void)state;
    for (i = 0; i < sizeof after / sizeof after[0]; i++) {
        sim_begin(&s, 6 + i);
        sim_server_at(&s, 0);
        c = sim_client(&s, 0, set_large);
        tt_mem_cut_after(s.world, "client-1", after[i]);
        sim_end(&s);
        assert_int_equal(c->st, after[i] <= greeting ? TUTTI_OK : TUTTI_E_NETWORK);
        assert_true(c->ends_ns < 2 * TTI_SECOND);
    }
}

static void clients_wait_for_a_late_server(void **state)
{
    sim     s;
    client *c;

    (void)state;
    sim_begin(&s, 7);
    sim_server_at(&s, 42 * TTI_SECOND);
    c = sim_client(&s, 0, set_x);
    sim_end(&s);
    assert_int_equal(c->st, TUTTI_OK);
    assert_true(c->opens_ns >= 42 * TTI_SECOND);
    assert_true(c->opens_ns < 46 * TTI_SECOND); /* the longest pause is 2 s times at most 1.5 */
}

/* Somebody who forwards to a server that is not there yet: takes connections, and closes them. */
static void forwarder_body(void *arg)
{
    client        *c = arg;
    tti_port      *port = now_running->server.port;
    const tti_addr at = { .family = TTI_ADDR_IP4, .port = TCP_PORT };
    tti_addr       bound;
    tti_poll       set = { .want = TTI_READ };

    assert_int_equal(port->ops->listen(port, &at, 16, &bound, &set.handle), 0);
    while (port->ops->poll(port, &set, 1, 30 * TTI_SECOND) > 0) {
        port->ops->close(port, port->ops->accept(port, set.handle, NULL));
        c->number++;
    }
    port->ops->close(port, set.handle);
    client_end(c);
}

static void hellos_are_tried_until_the_deadline(void **state)
{
    sim     s;
    client *forwarder, *patient, *hasty;
    int     lost = 0;

    (void)state;
    sim_begin(&s, 13);
    forwarder = sim_add(&s, 0, forwarder_body, NULL);
    sim_server_at(&s, 31 * TTI_SECOND);
    patient = sim_client(&s, 2 * TTI_SECOND, set_x);
    hasty = sim_client(&s, 2 * TTI_SECOND, set_x);
    hasty->timeout_ms = 15000;
    sim_end(&s);
    assert_int_equal(patient->st, TUTTI_OK);
    assert_true(patient->opens_ns < 36 * TTI_SECOND);
    assert_int_equal(hasty->st, TUTTI_E_NETWORK);
    assert_int_equal(sscanf(hasty->words, "no store at server port 29500: %d connections", &lost),
                     1);
    assert_true(lost >= 8 && lost <= 40); /* back-off: not a busy loop, not a single try */
    assert_non_null(strstr(hasty->words, "failed during the hello"));
    assert_true(hasty->ends_ns < 18 * TTI_SECOND);
    assert_true(forwarder->number > lost);
}

static void nobody_there_is_said_with_numbers(void **state)
{
    sim     s;
    client *c;
    int     tries = 0;

    (void)state;
    sim_begin(&s, 8);
    c = sim_client(&s, 0, set_x);
    c->timeout_ms = 30000;
    sim_end(&s);
    assert_int_equal(c->st, TUTTI_E_NETWORK);
    assert_int_equal(
        sscanf(c->words, "cannot connect to server port 29500: tried %d times", &tries), 1);
    assert_true(tries >= 15 && tries <= 60); /* back-off: not a busy loop, not a single try */
    assert_non_null(strstr(c->words, "in 30000 ms"));
    assert_non_null(strstr(c->words, "Connection refused"));
    assert_true(c->ends_ns < 32 * TTI_SECOND);
}

static void isolator_body(void *arg)
{
    client *c = arg;

    tt_mem_isolate(now_running->world, "server", true);
    c->port->ops->sleep_until(c->port, 60 * TTI_SECOND);
    tt_mem_isolate(now_running->world, "server", false);
    client_end(c);
}

/* A partition that heals is only a delay; one that lasts longer than the limit is a time-out. */
static void partitions_delay_or_time_out(void **state)
{
    sim     s;
    client *getter, *setter;

    (void)state;
    sim_begin(&s, 9);
    sim_server_at(&s, 0);
    getter = sim_client(&s, 0, get_x);
    setter = sim_client(&s, 0, set_x);
    setter->run = get_x_for_a_second;
    sim_add(&s, TTI_SECOND + 5 * TTI_MS, isolator_body, NULL);
    sim_client(&s, 61 * TTI_SECOND, set_x);
    sim_end(&s);
    assert_int_equal(getter->st, TUTTI_OK);
    assert_true(getter->ends_ns >= 61 * TTI_SECOND);
    assert_int_equal(setter->st, TUTTI_E_TIMEOUT); /* 1 s, and 5 s for the CANCEL */
    assert_non_null(strstr(setter->words, "stopped answering"));
    assert_true(setter->opens_ns < 2 * TTI_SECOND);
    tutti_bytes_free(&getter->value);
}

/* As who waits for a member does: it can be told meanwhile to stop. */
static void look_for_x(client *c, tutti_store *store)
{
    tutti_bytes value = { .data = NULL };

    do
        keep(c, tti_store_look(store, "x", 200, &c->value));
    while (c->st == TUTTI_E_TIMEOUT && tti_port_now(c->port) < 90 * TTI_SECOND);
    (void)tutti_store_get(store, "never", TUTTI_INFINITE, &value); /* the server ends, and a look says so, too */
    c->number = tti_store_look(store, "x", 200, &value);
}

/* The connection is given up with the first look that hears nothing, and others cannot make one until the partition heals. */
static void who_looks_again_and_again_outlives_a_partition(void **state)
{
    sim     s;
    client *looker;

    (void)state;
    sim_begin(&s, 9);
    s.server.dies_ns = 100 * TTI_SECOND;
    sim_server_at(&s, 0);
    looker = sim_client(&s, 0, look_for_x);
    sim_add(&s, TTI_SECOND + 5 * TTI_MS, isolator_body, NULL);
    sim_client(&s, 61 * TTI_SECOND, set_x);
    sim_end(&s);
    assert_int_equal(looker->st, TUTTI_OK);
    assert_string_equal(looker->value.data, "five");
    assert_int_equal(looker->number, TUTTI_E_NETWORK);
    tutti_bytes_free(&looker->value);
}

/* One chunk of the reply arrives each 100 ms, from 200 ms on. */
static void get_large_for_a_second(client *c, tutti_store *store)
{
    tt_mem_latency(now_running->world, 100 * TTI_MS);
    keep(c, tutti_store_get(store, "large", 1000, &c->value));
}

/* A server that vanishes in the middle of a reply: the caller's time counts, and a little more. */
static void the_rest_of_a_reply_is_waited_for_briefly(void **state)
{
    sim     s;
    client *getter;

    (void)state;
    sim_begin(&s, 17);
    sim_server_at(&s, 0);
    sim_client(&s, 0, set_large);
    getter = sim_client(&s, 10 * TTI_SECOND, get_large_for_a_second);
    sim_add(&s, 10 * TTI_SECOND + 500 * TTI_MS, isolator_body, NULL);
    sim_end(&s);
    assert_int_equal(getter->st, TUTTI_E_TIMEOUT);
    assert_non_null(strstr(getter->words, "of 1048576 bytes"));
    assert_true(getter->ends_ns < 10 * TTI_SECOND + 6100 * TTI_MS);
}

/* Strangers: one that sends an HTTP request, one that sends nothing. */
static void talk(client *c, const char *text)
{
    const tti_addr to = { .family = TTI_ADDR_IP4, .port = TCP_PORT, .ip = { 10, 0, 0, 1 } };
    const tti_part part = { .data = text, .size = strlen(text) };
    tti_handle     handle = TTI_NO_HANDLE;
    tti_poll       set;
    char           answer[16];

    assert_int_equal(c->port->ops->connect(c->port, &to, &handle), 0);
    set = (tti_poll){ .handle = handle, .want = TTI_WRITE };
    c->port->ops->poll(c->port, &set, 1, TTI_FOREVER);
    c->opens_ns = tti_port_now(c->port);
    if (part.size > 0)
        assert_int_equal(c->port->ops->send(c->port, handle, &part, 1), part.size);
    set.want = TTI_READ;
    c->port->ops->poll(c->port, &set, 1, TTI_FOREVER);
    c->number = c->port->ops->recv(c->port, handle, answer, sizeof answer);
    c->port->ops->close(c->port, handle);
    client_end(c);
}

static void http_body(void *arg)
{
    talk(arg, "GET / HTTP/1.1\r\n\r\n");
}

static void silent_body(void *arg)
{
    talk(arg, "");
}

static void strangers_get_no_service(void **state)
{
    sim     s;
    client *http, *silent, *honest;

    (void)state;
    sim_begin(&s, 10);
    s.server.limits.hello_ns = 7 * TTI_SECOND;
    sim_server_at(&s, 0);
    http = sim_add(&s, 2 * TTI_SECOND, http_body, NULL);
    silent = sim_add(&s, 2 * TTI_SECOND, silent_body, NULL);
    honest = sim_client(&s, 3 * TTI_SECOND, set_x);
    sim_end(&s);
    assert_true(http->number <= 0); /* closed or reset, not a byte */
    assert_true(http->ends_ns < http->opens_ns + 5 * TTI_MS);
    assert_int_equal(silent->number, 0);
    assert_true(silent->ends_ns >= silent->opens_ns + 6 * TTI_SECOND);
    assert_true(silent->ends_ns < silent->opens_ns + 8 * TTI_SECOND);
    assert_int_equal(honest->st, TUTTI_OK);
}

/* Eight clients, each waiting for its neighbour in every round. */
static void ring(client *c, tutti_store *store)
{
    char        key[32];
    tutti_bytes value = { .data = NULL };
    int         i, me = (int)(c - now_running->clients);

    for (i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "%d/%d", me, i);
        keep(c, tutti_store_set(store, key, key, strlen(key)));
        snprintf(key, sizeof key, "%d/%d", (me + 1) % CLIENTS_MAX, i);
        if (c->st == TUTTI_OK)
            keep(c, tutti_store_get(store, key, 0, &value));
        tutti_bytes_free(&value);
        if (c->st == TUTTI_OK)
            keep(c, tutti_store_add(store, "sum", 1, &c->number));
        if (c->st != TUTTI_OK)
            return;
    }
}

static uint64_t run_ring(uint64_t seed)
{
    sim      s;
    uint64_t trace;
    int64_t  most = 0;
    int      i;

    sim_begin(&s, seed);
    sim_server_at(&s, 0);
    for (i = 0; i < CLIENTS_MAX; i++)
        sim_client(&s, 0, ring);
    trace = sim_end(&s);
    for (i = 0; i < CLIENTS_MAX; i++) {
        assert_int_equal(s.clients[i].st, TUTTI_OK);
        most = s.clients[i].number > most ? s.clients[i].number : most;
    }
    assert_int_equal(most, 20 * CLIENTS_MAX);
    return trace;
}

static void a_seed_is_a_run(void **state)
{
    const uint64_t first = run_ring(100);

    (void)state;
    assert_true(run_ring(100) == first);
    assert_true(run_ring(101) != first);
    assert_true(run_ring(100) == first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_waits_for_a_later_set),
        cmocka_unit_test(time_outs_take_virtual_time),
        cmocka_unit_test(a_reply_that_crosses_the_cancel_counts),
        cmocka_unit_test(a_far_server_has_one_grace),
        cmocka_unit_test(a_far_server_names_some_that_are_missing),
        cmocka_unit_test(a_pop_waits_for_a_push),
        cmocka_unit_test(a_dead_server_ends_every_wait),
        cmocka_unit_test(a_reset_in_mid_wait_is_seen),
        cmocka_unit_test(cuts_end_in_an_error_or_a_second_hello),
        cmocka_unit_test(clients_wait_for_a_late_server),
        cmocka_unit_test(hellos_are_tried_until_the_deadline),
        cmocka_unit_test(who_is_pushed_out_comes_again),
        cmocka_unit_test(nobody_there_is_said_with_numbers),
        cmocka_unit_test(partitions_delay_or_time_out),
        cmocka_unit_test(who_looks_again_and_again_outlives_a_partition),
        cmocka_unit_test(the_rest_of_a_reply_is_waited_for_briefly),
        cmocka_unit_test(strangers_get_no_service),
        cmocka_unit_test(a_seed_is_a_run),
    };

    unsetenv("TUTTI_SECRET_FILE");
    /* The hosts of these worlds have no secret files. */
    if (setenv("TUTTI_AUTH", "none", 1) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
