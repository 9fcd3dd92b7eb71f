/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_store_test.c - the tcp store over real sockets: opening, joining, secrets, the server's end.
 *
 * What every store does stands in tests/conformance/store_conformance.c, what needs time in
 * store_sim_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store.h>
#include "base/thread.h"
#include "harness/scratch.h"
#include "store/store.h"
#include "store/store_server.h"
#include "store/tcp_pool.h"
#include "wire/addr.h"

enum { FDS_MAX = 1024 };

static void says(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
}

static tutti_tcp_store_options client_of(const tutti_store_server *server)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.port = tutti_store_server_port(server);
    options.timeout_ms = 20000;
    return options;
}

static void bad_options_are_refused(void **state)
{
    tutti_tcp_store_options    options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store_server_options server_options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;
    tutti_store               *store = NULL;

    (void)state;
    assert_int_equal(tutti_tcp_store_open(NULL, &store), TUTTI_E_ARG);
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_ARG);
    says("needs a host");
    options.host = "127.0.0.1";
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_ARG);
    says("port is 0");
    options.port = 65536;
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_ARG);
    options.port = 1;
    options.world_size = -1;
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_ARG);
    options.world_size = 0;
    options.timeout_ms = -2;
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_ARG);
    server_options.port = -1;
    assert_int_equal(tutti_store_server_start(&server_options, &server), TUTTI_E_ARG);
    server_options.port = 0;
    server_options.host = "192.0.2.1"; /* for documentation: nobody's */
    assert_int_equal(tutti_store_server_start(&server_options, &server), TUTTI_E_AUTH);
    says("will not serve a store at 192.0.2.1:0 without a secret");
    assert_int_equal(setenv("TUTTI_AUTH", "none", 1), 0);
    assert_int_equal(tutti_store_server_start(&server_options, &server), TUTTI_E_NETWORK);
    says("192.0.2.1:0");
    assert_int_equal(unsetenv("TUTTI_AUTH"), 0);
    assert_null(store);
    assert_null(server);
}

static void a_taken_port_is_named(void **state)
{
    tutti_store_server_options options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *first = NULL, *second = NULL;
    char                       where[32];

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &first), TUTTI_OK);
    options.port = tutti_store_server_port(first);
    assert_true(options.port > 0);
    assert_int_equal(tutti_store_server_start(&options, &second), TUTTI_E_NETWORK);
    snprintf(where, sizeof where, "127.0.0.1:%d", options.port);
    says(where);
    says("the port is taken");
    assert_null(second);
    tutti_store_server_stop(first);
    /* Free again at once. */
    assert_int_equal(tutti_store_server_start(&options, &second), TUTTI_OK);
    tutti_store_server_stop(second);
}

typedef struct opener {
    tti_thread              thread;
    tutti_tcp_store_options options;
    tutti_store            *store;
    tutti_status            st;
} opener;

static void open_store(void *arg)
{
    opener *o = arg;

    o->st = tutti_tcp_store_open(&o->options, &o->store);
}

static void the_master_waits_for_all(void **state)
{
    enum { CLIENTS = 3 };
    opener  openers[CLIENTS + 1];
    int     lock = -1, i;
    int64_t n = 0;

    /* A free port, for a master that starts last: the clients try until it is there. */
    const int port = tt_port_take(&lock);

    (void)state;
    assert_true(port > 0);
    memset(openers, 0, sizeof openers);
    for (i = 0; i <= CLIENTS; i++) {
        openers[i].options = (tutti_tcp_store_options)TUTTI_TCP_STORE_OPTIONS;
        openers[i].options.host = "127.0.0.1";
        openers[i].options.port = port;
        openers[i].options.world_size = CLIENTS + 1;
        openers[i].options.wait_for_workers = true;
        openers[i].options.timeout_ms = 20000;
        openers[i].options.is_master = i == CLIENTS;
        assert_int_equal(tti_thread_start(&openers[i].thread, "opener", open_store, &openers[i]),
                         TUTTI_OK);
    }
    for (i = 0; i <= CLIENTS; i++) {
        tti_thread_join(&openers[i].thread);
        assert_int_equal(openers[i].st, TUTTI_OK);
    }
    assert_int_equal(tutti_store_num_keys(openers[0].store, &n), TUTTI_OK);
    assert_int_equal(n, 1); /* the count of those who joined */
    for (i = 0; i <= CLIENTS; i++)
        tutti_store_close(openers[i].store);
    tt_port_give_back(lock);
}

static void missing_workers_are_counted(void **state)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    (void)state;
    options.host = "127.0.0.1";
    options.is_master = true;
    options.world_size = 3;
    options.wait_for_workers = true;
    options.timeout_ms = 1000; /* in which the master itself joins */
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_TIMEOUT);
    says("1 of 3 processes joined");
    assert_null(store);
}

typedef struct getter {
    tti_thread       thread;
    tutti_store     *store;
    _Atomic uint32_t runs;
    tutti_status     st;
    char             words[256];
} getter;

static void get_never(void *arg)
{
    getter     *g = arg;
    tutti_bytes value = { .data = NULL };

    atomic_store(&g->runs, 1);
    g->st = tutti_store_get(g->store, "never", TUTTI_INFINITE, &value);
    snprintf(g->words, sizeof g->words, "%s", tutti_last_error());
}

static void a_stopped_server_ends_waits(void **state)
{
    tutti_store_server     *server = NULL;
    tutti_tcp_store_options options;
    getter                  g = { .st = TUTTI_OK };
    char                    where[48];

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &server), TUTTI_OK);
    options = client_of(server);
    assert_int_equal(tutti_tcp_store_open(&options, &g.store), TUTTI_OK);
    assert_int_equal(tti_thread_start(&g.thread, "getter", get_never, &g), TUTTI_OK);
    while (atomic_load(&g.runs) == 0)
        tti_port_system()->ops->yield(tti_port_system());
    tutti_store_server_stop(server);
    tti_thread_join(&g.thread);
    assert_int_equal(g.st, TUTTI_E_NETWORK);
    snprintf(where, sizeof where, "127.0.0.1"); /* "store 127.0.0.1:p" or "127.0.0.1 port p" */
    assert_non_null(strstr(g.words, where));
    assert_int_equal(tutti_store_set(g.store, "k", "v", 1), TUTTI_E_NETWORK);
    tutti_store_close(g.store);
}

/* Take all connections of this process to a port from it, as something on the way does. How many. */
static int cut_connections(int to_port)
{
    struct sockaddr_in to;
    socklen_t          bytes;
    int                fd, n = 0;

    for (fd = 3; fd < FDS_MAX; fd++) {
        bytes = sizeof to;
        if (getpeername(fd, (struct sockaddr *)&to, &bytes) != 0 || to.sin_family != AF_INET || ntohs(to.sin_port) != to_port)
            continue;
        shutdown(fd, SHUT_RDWR);
        n++;
    }
    return n;
}

static void a_connection_lost_while_idle_is_replaced(void **state)
{
    tutti_store_server     *server = NULL;
    tutti_tcp_store_options options;
    tutti_store            *store = NULL;
    bool                    there = false;
    const char             *key = "k";

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &server), TUTTI_OK);
    options = client_of(server);
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_OK);
    assert_true(cut_connections(options.port) > 0);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    assert_true(cut_connections(options.port) > 0);
    assert_int_equal(tutti_store_check(store, &key, 1, &there), TUTTI_OK);
    assert_true(there);
    tutti_store_close(store);
    tutti_store_server_stop(server);
}

static char dir[] = "/tmp/tutti-tcp-XXXXXX";
static char key_path[2][64];

static int make_keys(void **state)
{
    int i, fd;

    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    for (i = 0; i < 2; i++) {
        char text[65];

        snprintf(key_path[i], sizeof key_path[i], "%s/key-%d", dir, i);
        memset(text, i == 0 ? 'a' : 'b', 64);
        text[64] = '\n';
        fd = open(key_path[i], O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || write(fd, text, sizeof text) != (ssize_t)sizeof text)
            return -1;
        close(fd);
    }
    return unsetenv("TUTTI_SECRET_FILE");
}

static int remove_keys(void **state)
{
    (void)state;
    unlink(key_path[0]);
    unlink(key_path[1]);
    return rmdir(dir);
}

static void only_who_knows_the_secret_gets_in(void **state)
{
    tutti_store_server_options server_options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;
    tutti_tcp_store_options    options;
    tutti_store               *store = NULL;

    (void)state;
    server_options.secret_file = key_path[0];
    assert_int_equal(tutti_store_server_start(&server_options, &server), TUTTI_OK);
    options = client_of(server);
    options.secret_file = key_path[0];
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    tutti_store_close(store);
    store = NULL;
    options.secret_file = key_path[1];
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_AUTH);
    says("does not know this job's secret");
    says("store 127.0.0.1:");
    options.secret_file = NULL;
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_AUTH);
    assert_int_equal(chmod(key_path[1], 0644), 0);
    options.secret_file = key_path[1];
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_E_AUTH);
    says("mode 0644");
    assert_null(store);
    tutti_store_server_stop(server);
}

/* A store that is served here, and a client of it; each through a view. */
typedef struct pair {
    tutti_store *master, *client, *here, *there;
} pair;

static void open_pair(pair *p)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.is_master = true;
    assert_int_equal(tutti_tcp_store_open(&options, &p->master), TUTTI_OK);
    options.is_master = false;
    options.port = tutti_tcp_store_port(p->master);
    assert_int_equal(tutti_tcp_store_open(&options, &p->client), TUTTI_OK);
    assert_int_equal(tutti_prefix_store_open("job", p->master, &p->here), TUTTI_OK);
    assert_int_equal(tutti_prefix_store_open("job", p->client, &p->there), TUTTI_OK);
}

static void close_client(pair *p)
{
    tutti_store_close(p->there);
    tutti_store_close(p->client);
}

static void close_master(pair *p)
{
    tutti_store_close(p->here);
    tutti_store_close(p->master);
}

static bool is_needed(const pair *p, const char *below)
{
    return !tti_store_await_unneeded(p->here, NULL, below, 0);
}

/* A need is said with the request behind it, and known from then on until it is taken back, to whoever serves the store. */
static void who_serves_knows_who_needs_it(void **state)
{
    tti_port       *port = tti_port_system();
    tti_store_need *need;
    pair            p;

    (void)state;
    open_pair(&p);
    assert_null(tti_store_need_begin(p.here, "g/0"));
    need = tti_store_need_begin(p.there, "g/1");
    assert_non_null(need);
    assert_false(is_needed(&p, ""));
    assert_int_equal(tutti_store_set(p.there, "k", "v", 1), TUTTI_OK);
    assert_true(is_needed(&p, "g/") && !is_needed(&p, "h/"));
    assert_false(tti_store_await_unneeded(p.there, p.master, "g/", 0)); /* by way of another handle */
    assert_true(tti_store_await_unneeded(p.there, NULL, "g/", 0));      /* which serves nothing */
    tti_store_need_end(need);
    assert_true(tti_store_await_unneeded(p.here, NULL, "g/", tti_deadline(port, 20000, 0)));
    need = tti_store_need_begin(p.there, "g/1"); /* of which nothing is made */
    tti_store_need_end(need);
    assert_int_equal(tutti_store_set(p.there, "k", "v", 1), TUTTI_OK);
    assert_false(is_needed(&p, ""));
    close_client(&p);
    close_master(&p);
}

/* Who closes the store that it serves gives those that need it some time, and a client that is gone none. */
static void a_store_that_is_needed_ends_a_little_later(void **state)
{
    tti_port       *port = tti_port_system();
    tti_store_need *need;
    int64_t         start_ns;
    pair            p;

    (void)state;
    open_pair(&p);
    need = tti_store_need_begin(p.there, "g/1");
    assert_int_equal(tutti_store_set(p.there, "k", "v", 1), TUTTI_OK);
    assert_true(is_needed(&p, ""));
    start_ns = tti_port_now(port);
    close_master(&p);
    assert_true(tti_port_now(port) - start_ns >= 40 * TTI_MS);
    assert_int_equal(tutti_store_set(p.there, "k", "v", 1), TUTTI_E_NETWORK);
    tti_store_need_end(need);
    close_client(&p);
    open_pair(&p);
    need = tti_store_need_begin(p.there, "g/1");
    assert_int_equal(tutti_store_set(p.there, "k", "v", 1), TUTTI_OK);
    tti_tcp_pool_close(tti_tcp_store_pool(p.client));
    assert_true(tti_store_await_unneeded(p.here, NULL, "", tti_deadline(port, 20000, 0)));
    tti_store_need_end(need);
    close_client(&p);
    close_master(&p);
}

/* Somebody who speaks first and otherwise is closed on, and harms nobody. */
static void strangers_are_closed_on(void **state)
{
    tti_port               *port = tti_port_system();
    const int64_t           deadline = tti_deadline(port, 10000, 0);
    const tti_engine_limits limits = { .hello_ns = 50 * TTI_MS };
    tutti_store_server     *server = NULL;
    tti_handle              loud, quiet;
    char                    byte;

    (void)state;
    assert_int_equal(tti_store_server_start_limited(NULL, &limits, &server), TUTTI_OK);
    assert_int_equal(
        tti_connect(port, "127.0.0.1", (uint16_t)tutti_store_server_port(server), deadline, &loud),
        TUTTI_OK);
    assert_int_equal(
        tti_connect(port, "127.0.0.1", (uint16_t)tutti_store_server_port(server), deadline, &quiet),
        TUTTI_OK);
    assert_int_equal(tti_io_send_all(port, loud, "GET / HTTP/1.1\r\n\r\n", 18, "it", deadline),
                     TUTTI_OK);
    assert_int_equal(tti_io_recv_all(port, loud, &byte, 1, "it", deadline), TUTTI_E_NETWORK);
    assert_int_equal(tti_io_recv_all(port, quiet, &byte, 1, "it", deadline), TUTTI_E_NETWORK);
    port->ops->close(port, loud);
    port->ops->close(port, quiet);
    tutti_store_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(the_master_waits_for_all),
        cmocka_unit_test(missing_workers_are_counted),
        cmocka_unit_test(a_stopped_server_ends_waits),
        cmocka_unit_test(a_connection_lost_while_idle_is_replaced),
        cmocka_unit_test(only_who_knows_the_secret_gets_in),
        cmocka_unit_test(who_serves_knows_who_needs_it),
        cmocka_unit_test(a_store_that_is_needed_ends_a_little_later),
        cmocka_unit_test(strangers_are_closed_on),
    };

    return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
