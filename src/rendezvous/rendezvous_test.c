/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous_test.c
 * Goal    each way of starting leads to the same store, rank and size on all ranks; each missing or
 *         wrong piece, an absent master and a port in use are said in time and by name.
 * Method  the environment is set by the test; ranks are threads; ports come from the system. */
#include "rendezvous/rendezvous.h"

#include "base/thread.h"
#include "rendezvous/listen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness/scratch.h"
#include "harness/torch_server.h"
#include "store/store.h"
#include <tutti/private.h>

enum { N = 3, LONG_MS = 20000, SHORT_MS = 300 };

static const char *const variables[] = {
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_RESTART_COUNT",
    "TUTTI_AGENT_STORE",
    "TUTTI_SECRET_FILE",
    "TUTTI_SOCKET_IFNAME",
    "TUTTI_TIMEOUT_MS",
};

static int clean_environment(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return 0;
}

static tti_addr loopback(void)
{
    tti_addr at;

    assert_int_equal(tti_addr_parse("127.0.0.1", 0, &at), TUTTI_OK);
    return at;
}

/* A port that nobody else gets until this program ends, or, with the listener kept, one that is taken. */
static int some_port(tti_handle *keep_out)
{
    tti_port  *port = tti_port_system();
    tti_addr   at = loopback();
    tti_addr   bound;
    int        tcp_port, lock;

    if (keep_out == NULL) {
        tcp_port = tt_port_take(&lock);
        assert_true(tcp_port > 0);
        return tcp_port;
    }
    assert_int_equal(port->ops->listen(port, &at, 1, &bound, keep_out), 0);
    return bound.port;
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static tti_rendezvous_config config_of(const char *url)
{
    return (tti_rendezvous_config){ .port = tti_port_system(), .url = url, .timeout_ms = LONG_MS };
}

static void assert_said(const char *word)
{
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

static void assert_refused(const tti_rendezvous_config *config, tutti_status status,
                           const char *word)
{
    tti_join     join = { .rank = 42 };
    tutti_status got = tti_rendezvous(config, &join);

    if (got != status)
        fail_msg("%s instead of %s: %s", tutti_status_name(got), tutti_status_name(status),
                 tutti_last_error());
    assert_said(word);
    assert_int_equal(join.rank, 42);
}

/* ---- what is missing or wrong ---- */

static void test_env_variables(void **state)
{
    tti_rendezvous_config config = config_of(NULL);

    (void)state;
    assert_refused(&config, TUTTI_E_ARG, "RANK, which is not set");
    assert_said("tutti run");
    setenv("RANK", "", 1);
    assert_refused(&config, TUTTI_E_ARG, "RANK, which is not set");
    setenv("RANK", "one", 1);
    assert_refused(&config, TUTTI_E_ARG, "RANK is 'one'");
    setenv("RANK", "1", 1);
    assert_refused(&config, TUTTI_E_ARG, "WORLD_SIZE, which is not set");
    setenv("WORLD_SIZE", "0", 1);
    assert_refused(&config, TUTTI_E_ARG, "WORLD_SIZE is '0'");
    setenv("WORLD_SIZE", "1", 1);
    assert_refused(&config, TUTTI_E_ARG, "rank 1 is outside of 0 .. 0");
    setenv("WORLD_SIZE", "2", 1);
    assert_refused(&config, TUTTI_E_ARG, "MASTER_ADDR, which is not set");
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    assert_refused(&config, TUTTI_E_ARG, "MASTER_PORT, which is not set");
    setenv("MASTER_PORT", "70000", 1);
    assert_refused(&config, TUTTI_E_ARG, "MASTER_PORT is '70000'");
    setenv("MASTER_PORT", "0", 1);
    assert_refused(&config, TUTTI_E_ARG, "port 0");
}

static void test_options(void **state)
{
    tti_rendezvous_config config = config_of("file:///nowhere/x");

    (void)state;
    assert_refused(&config, TUTTI_E_ARG, "no rank");
    config.url = "file:///nowhere/x?rank=0";
    assert_refused(&config, TUTTI_E_ARG, "no world_size");
    config.world_size = 2;
    assert_refused(&config, TUTTI_E_ARG, "rank is given twice");
    config.url = "file:///nowhere/x?world_size=2";
    assert_refused(&config, TUTTI_E_ARG, "world_size is given twice");
    config.is_newcomer = true; /* it will have another rank than the URL that all processes were given says: reaching it fails */
    config.rank = 1;
    config.url = "file:///nowhere/x?rank=0&world_size=2";
    assert_refused(&config, TUTTI_E_IO, "/nowhere");
    config.is_newcomer = false;
    config.rank = 0;
    config.url = "file:///nowhere/x";
    config.rank = 2;
    assert_refused(&config, TUTTI_E_ARG, "rank 2 is outside of 0 .. 1 (world size 2)");
    config.rank = -1;
    assert_refused(&config, TUTTI_E_ARG, "rank -1");
    config.world_size = -3;
    assert_refused(&config, TUTTI_E_ARG, "world size -3");
    config.world_size = 1 << 21;
    assert_refused(&config, TUTTI_E_ARG, "world size 2097152 is above");
    config.timeout_ms = -2;
    assert_refused(&config, TUTTI_E_ARG, "timeout_ms is -2");
    config.timeout_ms = 0;
    setenv("TUTTI_TIMEOUT_MS", "soon", 1);
    assert_refused(&config, TUTTI_E_ARG, "TUTTI_TIMEOUT_MS is 'soon'");
    setenv("TUTTI_TIMEOUT_MS", "0", 1);
    assert_refused(&config, TUTTI_E_ARG, "TUTTI_TIMEOUT_MS is 0");
}

static void test_explicit_store(void **state)
{
    tti_rendezvous_config config = config_of(NULL);
    tutti_store          *store = NULL;
    tti_join              join;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    config.store = store;
    assert_refused(&config, TUTTI_E_ARG, "without world_size");
    config.world_size = 4;
    config.rank = 4;
    assert_refused(&config, TUTTI_E_ARG, "rank 4 is outside");
    config.rank = 3;
    config.url = "env://";
    assert_refused(&config, TUTTI_E_ARG, "both a store and an init URL");
    config.url = NULL;
    config.timeout_ms = 0;
    assert_int_equal(tti_rendezvous(&config, &join), TUTTI_OK);
    assert_int_equal(join.rank, 3);
    assert_int_equal(join.world_size, 4);
    assert_int_equal(join.timeout_ms, 1800000);
    assert_true(join.user_store);
    assert_string_equal(join.listen_host, "127.0.0.1");
    tti_join_release(&join);
    tti_join_release(&join);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK); /* still the caller's */
    tutti_store_close(store);
}

static void test_master_absent(void **state)
{
    tti_rendezvous_config config = config_of(NULL);
    char                  number[16];
    const int64_t         began = tti_now_ns();
    int                   tcp_port = some_port(NULL);

    (void)state;
    snprintf(number, sizeof number, "%d", tcp_port);
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", number, 1);
    config.timeout_ms = SHORT_MS;
    assert_refused(&config, TUTTI_E_NETWORK, number);
    assert_said("127.0.0.1");
    assert_said("ms");
    assert_in_range(tti_now_ns() - began, SHORT_MS * TTI_MS / 2, 20 * SHORT_MS * TTI_MS);
}

static void test_port_taken(void **state)
{
    tti_port             *port = tti_port_system();
    tti_handle            listener;
    char                  url[80];
    char                  number[16];
    int                   tcp_port = some_port(&listener);
    tti_rendezvous_config config = config_of(url);

    (void)state;
    snprintf(number, sizeof number, "%d", tcp_port);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d?rank=0&world_size=2", tcp_port);
    assert_refused(&config, TUTTI_E_NETWORK, number);
    port->ops->close(port, listener);
}

/* ---- ranks as threads ---- */

typedef struct rank_thread {
    tti_thread   thread;
    char         url[128];
    int          rank;
    tutti_status status;
    char         words[512];
    int64_t      sum;
    tti_join     join;
} rank_thread;

/* Join, and meet the others through the store: the sum is N once all have come. */
static void join_and_count(void *arg)
{
    rank_thread          *t = arg;
    tti_rendezvous_config config = config_of(t->url);
    const char           *all = "all";

    t->status = tti_rendezvous(&config, &t->join);
    if (t->status == TUTTI_OK)
        t->status = tutti_store_add(t->join.store, "count", 1, &t->sum);
    if (t->status == TUTTI_OK && t->sum == N)
        t->status = tutti_store_set(t->join.store, all, "", 0);
    if (t->status == TUTTI_OK)
        t->status = tutti_store_wait(t->join.store, &all, 1, LONG_MS);
    if (t->status != TUTTI_OK)
        snprintf(t->words, sizeof t->words, "%s", tutti_last_error());
}

/* Run N ranks; format has a %d for the rank, after at (an URL's part before the query). */
static void run_ranks(rank_thread *ranks, const char *at)
{
    int i;

    memset(ranks, 0, N * sizeof *ranks);
    for (i = 0; i < N; i++) {
        snprintf(ranks[i].url, sizeof ranks[i].url, "%s?rank=%d&world_size=%d", at, i, N);
        assert_int_equal(tti_thread_start(&ranks[i].thread, "rank", join_and_count, &ranks[i]),
                         TUTTI_OK);
    }
    for (i = 0; i < N; i++)
        tti_thread_join(&ranks[i].thread);
    for (i = 0; i < N; i++) {
        if (ranks[i].status != TUTTI_OK)
            fail_msg("rank %d: %s", i, ranks[i].words);
        assert_int_equal(ranks[i].join.rank, i);
        assert_int_equal(ranks[i].join.world_size, N);
        assert_int_equal(ranks[i].join.timeout_ms, LONG_MS);
        assert_false(ranks[i].join.user_store);
        assert_string_equal(ranks[i].join.listen_host, "127.0.0.1");
    }
}

static void release_ranks(rank_thread *ranks)
{
    int i;

    for (i = N - 1; i >= 0; i--) /* rank 0 serves */
        tti_join_release(&ranks[i].join);
}

static void test_tcp(void **state)
{
    rank_thread ranks[N];
    char        at[64];

    (void)state;
    snprintf(at, sizeof at, "tcp://127.0.0.1:%d", some_port(NULL));
    run_ranks(ranks, at);
    release_ranks(ranks);
}

static void test_env(void **state)
{
    rank_thread ranks[N];

    (void)state;
    setenv("RANK", "77", 1); /* the query wins */
    setenv("WORLD_SIZE", "1", 1);
    setenv("MASTER_ADDR", "localhost", 1);
    set_number("MASTER_PORT", some_port(NULL));
    setenv("TUTTI_SOCKET_IFNAME", "127.0.0.1", 1); /* localhost may be ::1 */
    run_ranks(ranks, "env://");
    release_ranks(ranks);
}

static void test_file(void **state)
{
    rank_thread ranks[N];
    char        dir[] = "/tmp/tutti-rendezvous-XXXXXX";
    char        path[64];
    char        at[80];

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store", dir);
    snprintf(at, sizeof at, "file://%s", path);
    run_ranks(ranks, at);
    release_ranks(ranks);
    assert_int_equal(access(path, F_OK), -1); /* the last one removed it */
    assert_int_equal(rmdir(dir), 0);
}

static void test_world_of_one_on_any_port(void **state)
{
    tti_rendezvous_config config = config_of("tcp://127.0.0.1:0?rank=0&world_size=1");
    tti_join              join;

    (void)state;
    assert_int_equal(tti_rendezvous(&config, &join), TUTTI_OK);
    assert_in_range(tutti_tcp_store_port(join.store), 1, 65535);
    tti_join_release(&join);
}

/* ---- under a launcher ---- */

static void set_launcher(int tcp_port)
{
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set_number("MASTER_PORT", tcp_port);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
}

static bool server_has(int tcp_port, const char *key)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    bool                    all = false;

    options.host = "127.0.0.1";
    options.port = tcp_port;
    assert_int_equal(tutti_tcp_store_open(&options, &store), TUTTI_OK);
    assert_int_equal(tutti_store_check(store, &key, 1, &all), TUTTI_OK);
    tutti_store_close(store);
    return all;
}

static void test_agent_store(void **state)
{
    tutti_store_server *server = NULL;
    rank_thread         ranks[N];
    char                at[64];
    int                 tcp_port;

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &server), TUTTI_OK);
    tcp_port = tutti_store_server_port(server);
    set_launcher(tcp_port);
    setenv("TUTTI_AGENT_STORE", "1", 1);
    run_ranks(ranks, "env://"); /* rank 0 does not serve: the port is taken */
    release_ranks(ranks);
    assert_true(server_has(tcp_port, "/worker/attempt_0/count"));

    setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
    snprintf(at, sizeof at, "tcp://127.0.0.1:%d", tcp_port); /* the same place, by URL */
    run_ranks(ranks, at);
    release_ranks(ranks);
    assert_true(server_has(tcp_port, "/worker/attempt_2/count"));
    tutti_store_server_stop(server);
}

/* Every rank is a client, counts itself, and works below the attempt. */
static void test_torch_launcher(void **state)
{
    tt_torch_server      *server = tt_torch_server_start(NULL);
    tti_rendezvous_config config = config_of("env://?rank=0&world_size=2");
    tti_join              join;
    tutti_bytes           value = { .data = NULL };
    int64_t               n = 0;

    (void)state;
    assert_non_null(server);
    set_launcher(tt_torch_server_port(server));
    assert_int_equal(tti_rendezvous(&config, &join), TUTTI_OK);
    assert_true(tti_store_is_foreign(join.store));
    assert_false(join.rank0_serves);
    assert_int_equal(join.world_size, 2);
    assert_int_equal(tutti_store_set(join.store, "k", "v", 1), TUTTI_OK);
    assert_int_equal(tutti_store_num_keys(join.store, &n), TUTTI_OK);
    assert_int_equal(n, 2); /* ours, and the count of those who joined */
    assert_int_equal(tutti_store_get(tutti_store_underlying(join.store), "/worker/attempt_0/k", 5000,
                                     &value),
                     TUTTI_OK);
    tutti_bytes_free(&value);
    tti_join_release(&join);
    tt_torch_server_stop(server);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "true", 1); /* exactly "True", as in torch */
    config = config_of("env://?rank=0&world_size=1");
    assert_int_equal(tti_rendezvous(&config, &join), TUTTI_OK);
    assert_false(tti_store_is_foreign(join.store));
    tti_join_release(&join);
}

/* torch-tcp:// needs no launcher, and adds no prefix. */
static void test_torch_url(void **state)
{
    tt_torch_server      *server = tt_torch_server_start(NULL);
    tti_rendezvous_config config;
    tti_join              join;
    char                  url[64];

    (void)state;
    assert_non_null(server);
    snprintf(url, sizeof url, "torch-tcp://127.0.0.1:%d?rank=1&world_size=2",
             tt_torch_server_port(server));
    config = config_of(url);
    assert_int_equal(tti_rendezvous(&config, &join), TUTTI_OK);
    assert_true(tti_store_is_foreign(join.store));
    assert_int_equal(join.rank, 1);
    assert_string_equal(join.listen_host, "127.0.0.1");
    assert_null(tutti_store_underlying(join.store));
    tti_join_release(&join);
    tt_torch_server_stop(server);
}

/* A part of a tcp store leads where the whole of it does. */
static void test_part_of_a_store(void **state)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tti_rendezvous_config   config = config_of(NULL);
    tutti_store            *whole = NULL, *part = NULL;
    tti_join                join;

    (void)state;
    opts.host = "127.0.0.1";
    opts.is_master = true;
    assert_int_equal(tutti_tcp_store_open(&opts, &whole), TUTTI_OK);
    assert_int_equal(tutti_prefix_store_open("part", whole, &part), TUTTI_OK);
    config.store = part;
    config.rank = 0;
    config.world_size = 1;
    assert_int_equal(tti_rendezvous(&config, &join), TUTTI_OK);
    assert_int_equal(join.way.family, TTI_ADDR_IP4);
    tti_join_release(&join);
    tutti_store_close(part);
    tutti_store_close(whole);
}

/* A store of the program's own, of which nothing is called but close. */
static tutti_status not_called(void)
{
    return tutti_store_fail(TUTTI_E_STATE, "nobody calls this store");
}

static tutti_status own_set(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    (void)store, (void)key, (void)val, (void)len, (void)deadline_ns;
    return not_called();
}

static tutti_status own_get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    (void)store, (void)key, (void)deadline_ns, (void)val_out;
    return not_called();
}

static tutti_status own_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    (void)store, (void)key, (void)delta, (void)deadline_ns, (void)sum_out;
    return not_called();
}

static void own_close(tutti_store *store)
{
    (void)store;
}

static void assert_listens(const tti_rendezvous_config *config, const char *host)
{
    tti_join join;

    assert_int_equal(tti_rendezvous(config, &join), TUTTI_OK);
    assert_string_equal(join.listen_host, host);
    tti_join_release(&join);
}

/* The options say where a store of the program's own stands, and MASTER_ADDR before them; a store of ours needs neither. */
static void test_host_of_an_own_store(void **state)
{
    static const tutti_store_ops ops = { .api = TUTTI_STORE_API, .size = sizeof ops, .scheme = "own", .set = own_set,
                                         .get = own_get, .add = own_add, .close = own_close };
    tutti_store                  own = { .ops = &ops };
    tutti_store                 *hash = NULL;
    tti_rendezvous_config        config = config_of(NULL);

    (void)state;
    assert_int_equal(tutti_store_adopt(&own), TUTTI_OK);
    config.store = &own;
    config.world_size = 1;
    assert_listens(&config, "127.0.0.1");
    config.store_host = "127.0.0.7";
    assert_listens(&config, "127.0.0.7");
    setenv("MASTER_ADDR", "127.0.0.9", 1);
    assert_listens(&config, "127.0.0.9");
    setenv("MASTER_ADDR", "[::1]", 1); /* as it is written before a port */
    assert_listens(&config, "::1");
    assert_int_equal(tutti_hash_store_open(&hash), TUTTI_OK);
    config.store = hash;
    assert_listens(&config, "127.0.0.1");
    tutti_store_close(hash);
    tutti_store_close(&own);
}

/* ---- where to listen ---- */

static void test_listen_host(void **state)
{
    tti_port *port = tti_port_system();
    char      host[TTI_HOST_MAX];
    tti_addr  addr;

    (void)state;
    assert_int_equal(tti_listen_host(port, NULL, NULL, host), TUTTI_OK);
    assert_string_equal(host, "127.0.0.1");
    assert_int_equal(tti_listen_host(port, "127.0.0.7", NULL, host), TUTTI_OK);
    assert_string_equal(host, "127.0.0.7");
    assert_int_equal(tti_listen_host(port, "::1", NULL, host), TUTTI_OK);
    assert_string_equal(host, "::1");
    setenv("TUTTI_SOCKET_IFNAME", "lo", 1);
    assert_int_equal(tti_listen_host(port, "ignored.invalid", NULL, host), TUTTI_OK);
    assert_int_equal(tti_addr_parse(host, 0, &addr), TUTTI_OK);
    assert_true(tti_addr_is_loopback(&addr));
    setenv("TUTTI_SOCKET_IFNAME", "fe80::1%3", 1);
    assert_int_equal(tti_listen_host(port, NULL, NULL, host), TUTTI_OK);
    assert_string_equal(host, "fe80::1%3");
    setenv("TUTTI_SOCKET_IFNAME", "nope0", 1);
    assert_int_equal(tti_listen_host(port, NULL, NULL, host), TUTTI_E_ARG);
    assert_said("'nope0'");
}

static int fake_route_error;

static int fake_resolve_count;

static tutti_status fake_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out,
                                 int max, int *n_out)
{
    (void)port;
    (void)host;
    (void)max;
    fake_resolve_count++;
    *n_out = 1;
    return tti_addr_parse("10.9.8.7", tcp_port, out);
}

static int fake_route(tti_port *port, const tti_addr *to, tti_addr *local_out)
{
    (void)port;
    if (fake_route_error != 0)
        return fake_route_error;
    assert_int_equal(to->ip[0], 10);
    assert_int_equal(tti_addr_parse("192.0.2.33", 0, local_out), TUTTI_OK);
    return 0;
}

/* A master elsewhere: the address that routes there, through a port of our own. */
static void test_listen_by_route(void **state)
{
    tti_port_ops ops = { .name = "fake", .resolve = fake_resolve, .route = fake_route };
    tti_port     port = { .ops = &ops };
    char         host[TTI_HOST_MAX];

    (void)state;
    assert_int_equal(tti_listen_host(&port, "master", NULL, host), TUTTI_OK);
    assert_string_equal(host, "192.0.2.33");
    assert_int_equal(fake_resolve_count, 1);
    fake_route_error = -101; /* ENETUNREACH */
    assert_int_equal(tti_listen_host(&port, "master", NULL, host), TUTTI_E_NETWORK);
    assert_said("'master'");
    ops.route = NULL;
    assert_int_equal(tti_listen_host(&port, "master", NULL, host), TUTTI_E_UNSUPPORTED);
    setenv("TUTTI_SOCKET_IFNAME", "eth0", 1);
    assert_int_equal(tti_listen_host(&port, "master", NULL, host), TUTTI_E_UNSUPPORTED);
}

static void test_route_of_the_system(void **state)
{
    tti_port *port = tti_port_system();
    tti_addr  to = loopback();
    tti_addr  local = { 0 };
    tti_interface faces[1];

    (void)state;
    assert_int_equal(port->ops->route(port, &to, &local), 0);
    assert_true(tti_addr_is_loopback(&local));
    assert_int_equal(local.port, 0);
    to.family = TTI_ADDR_LOCAL;
    assert_true(port->ops->route(port, &to, &local) < 0);
    assert_true(port->ops->interfaces(port, faces, 1) == 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean_environment, clean_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_env_variables),
        TEST(test_options),
        TEST(test_explicit_store),
        TEST(test_master_absent),
        TEST(test_port_taken),
        TEST(test_tcp),
        TEST(test_env),
        TEST(test_file),
        TEST(test_world_of_one_on_any_port),
        TEST(test_agent_store),
        TEST(test_torch_launcher),
        TEST(test_torch_url),
        TEST(test_part_of_a_store),
        TEST(test_host_of_an_own_store),
        TEST(test_listen_host),
        TEST(test_listen_by_route),
        TEST(test_route_of_the_system),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
