/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_listen_test.c
 * Goal    a server keeps to TUTTI_PORT_RANGE; one whose address is not this host's says so within five
 *         seconds, with what to set; with TUTTI_LISTEN=any it serves all the same.
 * Method  servers on this machine; 192.0.2.1 is nobody's (RFC 5737). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>
#include <tutti/store.h>

static int clean(void **state)
{
    (void)state;
    unsetenv("TUTTI_PORT_RANGE");
    unsetenv("TUTTI_LISTEN");
    unsetenv("TUTTI_SECRET_FILE");
    setenv("TUTTI_AUTH", "none", 1);
    return 0;
}

static void says(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void an_address_that_never_comes(void **state)
{
    tutti_store_server_options options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;
    const int64_t              began_ns = tti_now_ns();

    (void)state;
    options.host = "192.0.2.1";
    assert_int_equal(tutti_store_server_start(&options, &server), TUTTI_E_NETWORK);
    says("cannot serve a store at 192.0.2.1:0: this host has no such address");
    says("TUTTI_LISTEN=any");
    assert_in_range((tti_now_ns() - began_ns) / 1000000, 3000, 4999);
    setenv("TUTTI_LISTEN", "some", 1);
    assert_int_equal(tutti_store_server_start(&options, &server), TUTTI_E_ARG);
    setenv("TUTTI_LISTEN", "any", 1);
    if (tutti_store_server_start(&options, &server) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    tutti_store_server_stop(server);
}

static void a_master_behind_a_service(void **state)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    (void)state;
    setenv("TUTTI_LISTEN", "any", 1);
    options.host = "192.0.2.1"; /* leads nowhere from here */
    options.is_master = true;
    options.timeout_ms = 20000;
    if (tutti_tcp_store_open(&options, &store) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    tutti_store_close(store);
}

static void the_range_of_ports(void **state)
{
    tutti_store_server *first = NULL, *second = NULL;
    char                range[32];
    int                 tcp_port;

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &first), TUTTI_OK);
    tcp_port = tutti_store_server_port(first);
    snprintf(range, sizeof range, "%d-%d", tcp_port, tcp_port);
    setenv("TUTTI_PORT_RANGE", range, 1);
    assert_int_equal(tutti_store_server_start(NULL, &second), TUTTI_E_NETWORK);
    says("are taken");
    says("TUTTI_PORT_RANGE");
    tutti_store_server_stop(first);
    if (tutti_store_server_start(NULL, &second) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(tutti_store_server_port(second), tcp_port);
    tutti_store_server_stop(second);
    setenv("TUTTI_PORT_RANGE", "high", 1);
    assert_int_equal(tutti_store_server_start(NULL, &second), TUTTI_E_ARG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_address_that_never_comes),
        TEST(a_master_behind_a_service),
        TEST(the_range_of_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
