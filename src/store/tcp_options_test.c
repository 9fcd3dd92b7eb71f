/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_options_test.c
 * Goal    the options of a tcp store do what they say: sharing a server, serving on a socket that is
 *         given, waiting for workers, both kinds of addresses.
 * Method  real sockets on loopback; ports are those that the system gave to a server just ended, or, where there is none for a while,
 *         one that it gives to nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/debug.h>
#include <tutti/store.h>
#include "base/thread.h"
#include "harness/scratch.h"

enum { VAIN_MS = 1000 }; /* for who waits in vain, but has joined */

static char dir[] = "/tmp/tutti-tcpopt-XXXXXX";
static char key_path[2][64];

static void says(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
}

static tutti_tcp_store_options master_at(int port)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.port = port;
    options.is_master = true;
    options.timeout_ms = 20000;
    return options;
}

static tutti_tcp_store_options client_at(int port)
{
    tutti_tcp_store_options options = master_at(port);

    options.is_master = false;
    return options;
}

static tutti_store *opened(const tutti_tcp_store_options *options)
{
    tutti_store *store = NULL;

    if (tutti_tcp_store_open(options, &store) != TUTTI_OK)
        fail_msg("cannot open: %s", tutti_last_error());
    return store;
}

static void set_text(tutti_store *store, const char *key, const char *text)
{
    assert_int_equal(tutti_store_set(store, key, text, strlen(text)), TUTTI_OK);
}

static void has_text(tutti_store *store, const char *key, const char *text)
{
    tutti_bytes value = { .data = NULL };

    assert_int_equal(tutti_store_get(store, key, 10000, &value), TUTTI_OK);
    assert_string_equal(value.data, text);
    tutti_bytes_free(&value);
}

/* ---- one server for several masters ---- */

static void tenants_share_a_server(void **state)
{
    tutti_tcp_store_options options = master_at(0);
    tutti_store            *a, *b, *c;

    (void)state;
    options.multi_tenant = true;
    a = opened(&options);
    options.port = tutti_tcp_store_port(a);
    assert_true(options.port > 0);
    b = opened(&options);
    assert_int_equal(tutti_tcp_store_port(b), options.port);
    set_text(a, "from a", "x");
    has_text(b, "from a", "x");
    tutti_store_close(a); /* who started it leaves first */
    set_text(b, "from b", "y");
    options = client_at(options.port);
    c = opened(&options);
    has_text(c, "from b", "y");
    tutti_store_close(b); /* the last: the server ends, also for the client */
    assert_int_equal(tutti_store_set(c, "k", "v", 1), TUTTI_E_NETWORK);
    tutti_store_close(c);
    options = master_at(options.port);
    a = opened(&options); /* free again, and empty */
    assert_int_equal(tutti_store_delete_key(a, "from b", NULL), TUTTI_OK);
    tutti_store_close(a);
}

static void only_who_asks_for_it_shares(void **state)
{
    tutti_tcp_store_options options = master_at(0);
    tutti_store            *a, *none = NULL;

    (void)state;
    a = opened(&options);
    options.port = tutti_tcp_store_port(a);
    options.multi_tenant = true;
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_NETWORK);
    says("the port is taken");
    tutti_store_close(a);
    a = opened(&options);
    options.multi_tenant = false;
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_NETWORK);
    says("the port is taken");
    options.multi_tenant = true;
    options.secret_file = key_path[0];
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_AUTH);
    says("with another secret");
    tutti_store_close(a);
    a = opened(&options);
    options.secret_file = key_path[1];
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_AUTH);
    options.is_master = false;
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_ARG);
    says("multi_tenant is for the master");
    assert_null(none);
    tutti_store_close(a);
}

enum { TENANTS = 6, ROUNDS = 25 };

typedef struct tenant {
    tti_thread   thread;
    int          port;
    tutti_status st;
    char         words[256];
} tenant;

/* The server starts and ends all the time: nobody may ever meet a port that is taken. */
static void come_and_go(void *arg)
{
    tenant                 *t = arg;
    tutti_tcp_store_options options = master_at(t->port);
    int                     i;

    options.multi_tenant = true;
    for (i = 0; i < ROUNDS && t->st == TUTTI_OK; i++) {
        tutti_store *store = NULL;

        t->st = tutti_tcp_store_open(&options, &store);
        if (t->st == TUTTI_OK)
            t->st = tutti_store_add(store, "n", 1, NULL);
        if (t->st != TUTTI_OK)
            snprintf(t->words, sizeof t->words, "%s", tutti_last_error());
        tutti_store_close(store);
    }
}

static void tenants_come_and_go(void **state)
{
    tenant    tenants[TENANTS];
    int       lock = -1, i;
    const int port = tt_port_take(&lock); /* which the system gives to nobody while the server is away */

    (void)state;
    assert_true(port > 0);
    memset(tenants, 0, sizeof tenants);
    for (i = 0; i < TENANTS; i++) {
        tenants[i].port = port;
        assert_int_equal(tti_thread_start(&tenants[i].thread, "tenant", come_and_go, &tenants[i]),
                         TUTTI_OK);
    }
    for (i = 0; i < TENANTS; i++) {
        tti_thread_join(&tenants[i].thread);
        if (tenants[i].st != TUTTI_OK)
            fail_msg("tenant %d: %s", i, tenants[i].words);
    }
    tt_port_give_back(lock);
}

/* ---- workers ---- */

static void only_the_master_waits(void **state)
{
    tutti_tcp_store_options options = client_at(0);
    tutti_store_server     *server = NULL;
    tutti_store            *client;

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &server), TUTTI_OK);
    options.port = tutti_store_server_port(server);
    options.world_size = 5;
    options.wait_for_workers = true;
    options.timeout_ms = TUTTI_INFINITE; /* if it waited, it would be for ever */
    client = opened(&options);
    tutti_store_close(client);
    tutti_store_server_stop(server);
}

static void note_warning(tutti_log_level level, const char *line, void *ctx)
{
    (void)level;
    if (strstr(line, "net.core.somaxconn=") != NULL)
        ++*(int *)ctx;
}

/* A world of one client more than the kernel queues. */
static void a_short_queue_is_warned_of(void **state)
{
    tutti_tcp_store_options options = master_at(0);
    FILE                   *file = fopen("/proc/sys/net/core/somaxconn", "re");
    int                     most = 0, warnings = 0;

    (void)state;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &most), 1);
    fclose(file);
    assert_int_equal(tutti_log_set_sink("test", note_warning, &warnings), TUTTI_OK);
    options.world_size = most;
    tutti_store_close(opened(&options));
    assert_int_equal(warnings, 0);
    options.world_size = most + 1;
    tutti_store_close(opened(&options));
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    assert_int_equal(warnings, 1);
}

static tutti_status wait_for_two(int port, int64_t timeout_ms, tutti_store **store_out)
{
    tutti_tcp_store_options options = master_at(port);

    options.multi_tenant = true;
    options.world_size = 2;
    options.wait_for_workers = true;
    options.timeout_ms = timeout_ms;
    return tutti_tcp_store_open(&options, store_out);
}

static tutti_store *worker_joins(int port)
{
    tutti_tcp_store_options options = client_at(port);

    options.world_size = 2;
    options.wait_for_workers = true;
    return opened(&options);
}

/* A server that lives on does not count the workers of one master for the next. */
static void each_master_waits_for_its_own_workers(void **state)
{
    tutti_tcp_store_options options = master_at(0);
    tutti_store            *keeper, *masters[2] = { NULL }, *none = NULL, *workers[2];
    int                     port;

    (void)state;
    options.multi_tenant = true;
    keeper = opened(&options);
    port = tutti_tcp_store_port(keeper);
    workers[0] = worker_joins(port);
    assert_int_equal(wait_for_two(port, 20000, &masters[0]), TUTTI_OK);
    assert_int_equal(wait_for_two(port, VAIN_MS, &none), TUTTI_E_TIMEOUT);
    says("1 of 2 processes joined within");
    assert_null(none);
    /* It has taken itself back: it is not among the two of the next. */
    assert_int_equal(wait_for_two(port, VAIN_MS, &none), TUTTI_E_TIMEOUT);
    says("1 of 2 processes joined within");
    workers[1] = worker_joins(port);
    assert_int_equal(wait_for_two(port, 20000, &masters[1]), TUTTI_OK);
    tutti_store_close(workers[0]);
    tutti_store_close(workers[1]);
    tutti_store_close(masters[0]);
    tutti_store_close(masters[1]);
    tutti_store_close(keeper);
}

/* ---- a socket that is given ---- */

static int bound_socket(int type, int *port_out)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          bytes = sizeof at;
    int                fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    assert_true(fd > 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    *port_out = ntohs(at.sin_port);
    return fd;
}

static void serves_on(int fd, int port, bool with_port)
{
    tutti_tcp_store_options options = master_at(with_port ? port : 0);
    tutti_store            *master, *client;

    options.listen_fd = fd;
    master = opened(&options);
    assert_int_equal(tutti_tcp_store_port(master), port);
    close(fd); /* it has its own */
    options = client_at(port);
    client = opened(&options);
    set_text(client, "k", "v");
    has_text(master, "k", "v");
    tutti_store_close(client);
    tutti_store_close(master);
    options = master_at(port);
    master = opened(&options); /* nobody holds the port any more */
    tutti_store_close(master);
}

static void given_sockets_are_served_on(void **state)
{
    int port = 0;
    int fd = bound_socket(SOCK_STREAM, &port);

    (void)state;
    serves_on(fd, port, true);
    fd = bound_socket(SOCK_STREAM, &port);
    assert_int_equal(listen(fd, 16), 0);
    serves_on(fd, port, false);
}

static void refuses(int fd, int port, const char *words)
{
    tutti_tcp_store_options options = master_at(port);
    tutti_store            *none = NULL;

    options.listen_fd = fd;
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_ARG);
    says(words);
    options.multi_tenant = true;
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_ARG);
    assert_null(none);
}

static void other_descriptors_are_refused(void **state)
{
    tutti_tcp_store_options options = client_at(1);
    tutti_store            *none = NULL;
    struct sockaddr_in      at = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int                     pipes[2], port = 0, other = 0;
    int                     udp = bound_socket(SOCK_DGRAM, &port);
    int                     tcp = bound_socket(SOCK_STREAM, &port);
    int                     unbound = socket(AF_INET, SOCK_STREAM, 0);
    int                     connected = bound_socket(SOCK_STREAM, &other);

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(listen(tcp, 4), 0);
    at.sin_port = htons((uint16_t)port);
    assert_int_equal(connect(connected, (struct sockaddr *)&at, sizeof at), 0);
    refuses(-1, 0, "no TCP socket");
    refuses(pipes[0], 0, "no TCP socket");
    refuses(udp, 0, "no TCP socket");
    refuses(unbound, 0, "bound to no port");
    refuses(connected, 0, "it is connected");
    refuses(tcp, other, "is bound to port");
    options.listen_fd = tcp;
    assert_int_equal(tutti_tcp_store_open(&options, &none), TUTTI_E_ARG);
    says("listen_fd is for the master");
    close(pipes[0]);
    close(pipes[1]);
    close(udp);
    close(tcp);
    close(unbound);
    close(connected);
}

/* An inherited wildcard socket does not go around the rule that others need a secret. */
static void a_given_wildcard_needs_a_secret(void **state)
{
    tutti_store_server_options options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;
    struct sockaddr_in         any = { .sin_family = AF_INET };
    int                        fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_true(fd > 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof any), 0);
    options.listen_fd = fd;
    assert_int_equal(tutti_store_server_start(&options, &server), TUTTI_E_AUTH);
    assert_null(server);
    options.secret_file = key_path[0];
    assert_int_equal(tutti_store_server_start(&options, &server), TUTTI_OK);
    tutti_store_server_stop(server);
    close(fd);
}

/* ---- addresses of both kinds ---- */

static bool has_ip6(void)
{
    struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int                 fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool                ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

static void reaches(const char *host, int port, const char *secret_file)
{
    tutti_tcp_store_options options = client_at(port);
    tutti_store            *client;

    options.host = host;
    options.secret_file = secret_file;
    client = opened(&options);
    set_text(client, host, "was here");
    tutti_store_close(client);
}

static void loopback_of_both_kinds_is_served(void **state)
{
    tutti_tcp_store_options options = master_at(0);
    tutti_store            *master;

    (void)state;
    options.host = "localhost";
    master = opened(&options); /* at all addresses that the name has here */
    reaches("localhost", tutti_tcp_store_port(master), NULL);
    reaches("127.0.0.1", tutti_tcp_store_port(master), NULL);
    tutti_store_close(master);
    if (!has_ip6())
        skip();
    options.host = "::1";
    master = opened(&options);
    reaches("::1", tutti_tcp_store_port(master), NULL);
    tutti_store_close(master);
}

static void the_wildcard_of_ip6_takes_both_kinds(void **state)
{
    tutti_tcp_store_options options = master_at(0);
    tutti_store            *master;

    (void)state;
    if (!has_ip6())
        skip();
    options.listen = "::";
    options.secret_file = key_path[0];
    master = opened(&options);
    reaches("127.0.0.1", tutti_tcp_store_port(master), key_path[0]);
    reaches("::1", tutti_tcp_store_port(master), key_path[0]);
    tutti_store_close(master);
}

/* ---- */

static int make_keys(void **state)
{
    int i, fd;

    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    for (i = 0; i < 2; i++) {
        char text[64];

        snprintf(key_path[i], sizeof key_path[i], "%s/key-%d", dir, i);
        memset(text, i == 0 ? 'a' : 'b', sizeof text);
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

static void nothing_has_no_port_and_no_time(void **state)
{
    (void)state;
    assert_int_equal(tutti_store_server_port(NULL), 0);
    assert_int_equal(tutti_store_timeout(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_no_port_and_no_time),
        cmocka_unit_test(tenants_share_a_server),
        cmocka_unit_test(only_who_asks_for_it_shares),
        cmocka_unit_test(tenants_come_and_go),
        cmocka_unit_test(only_the_master_waits),
        cmocka_unit_test(a_short_queue_is_warned_of),
        cmocka_unit_test(each_master_waits_for_its_own_workers),
        cmocka_unit_test(given_sockets_are_served_on),
        cmocka_unit_test(other_descriptors_are_refused),
        cmocka_unit_test(a_given_wildcard_needs_a_secret),
        cmocka_unit_test(loopback_of_both_kinds_is_served),
        cmocka_unit_test(the_wildcard_of_ip6_takes_both_kinds),
    };

    return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
