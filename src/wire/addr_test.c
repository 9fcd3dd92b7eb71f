/* SPDX-License-Identifier: BSD-3-Clause
 *
 * addr_test.c - addresses to text and back, and what connecting says when nobody is there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "wire/addr.h"

static void numeric_addresses_go_both_ways(void **state)
{
    static const struct {
        const char *host, *text;
        bool        loopback;
    } cases[] = {
        { "127.0.0.1", "127.0.0.1:80", true },
        { "127.9.0.1", "127.9.0.1:80", true },
        { "10.1.2.3", "10.1.2.3:80", false },
        { "::1", "[::1]:80", true },
        { "fe80::1%2", "[fe80::1%2]:80", false },
        { "::ffff:127.0.0.1", "[::ffff:127.0.0.1]:80", true },
        { "2001:db8::7", "[2001:db8::7]:80", false },
    };
    char     text[TTI_ADDR_TEXT_MAX];
    tti_addr addr;
    size_t   i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tti_addr_parse(cases[i].host, 80, &addr), TUTTI_OK);
        assert_string_equal(tti_addr_format(&addr, text, sizeof text), cases[i].text);
        assert_int_equal(tti_addr_is_loopback(&addr), cases[i].loopback);
    }
    addr = (tti_addr){ .family = TTI_ADDR_LOCAL, .name = "x" };
    assert_true(tti_addr_is_loopback(&addr));
    assert_string_equal(tti_addr_format(&addr, text, sizeof text), "local:x");
}

static void names_are_not_numeric(void **state)
{
    static const char *const wrong[] = {
        "",
        "localhost",
        "1.2.3",
        "1.2.3.4.5",
        "fe80::1%",
        "fe80::1%x",
        "fe80::1%0",
        "[::1]",
        "1:2:3:4:5:6:7:8:9",
        "1111111111111111111111111111111111111111111111111111111111111"
    };
    tti_addr addr;
    size_t   i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tti_addr_parse(wrong[i], 1, &addr), TUTTI_E_ARG);
}

static void host_and_port_are_split(void **state)
{
    char     host[TTI_HOST_MAX];
    uint16_t port = 0;

    (void)state;
    assert_int_equal(tti_addr_split("node-1:29500", false, host, &port), TUTTI_OK);
    assert_string_equal(host, "node-1");
    assert_int_equal(port, 29500);
    assert_int_equal(tti_addr_split("[fe80::1%2]:65535", false, host, &port), TUTTI_OK);
    assert_string_equal(host, "fe80::1%2");
    assert_int_equal(port, 65535);
    assert_int_equal(tti_addr_split("h:0", true, host, &port), TUTTI_OK);
    assert_int_equal(port, 0);
}

static void brackets_of_an_address_are_taken_off(void **state)
{
    char host[TTI_HOST_MAX], endless[2 * TTI_HOST_MAX];

    (void)state;
    assert_string_equal(tti_host_bare("[fd99::10]", host), "fd99::10");
    assert_string_equal(tti_host_bare("[fe80::1%eth0]", host), "fe80::1%eth0");
    assert_string_equal(tti_host_bare("fd99::10", host), "fd99::10");
    assert_string_equal(tti_host_bare("node-1", host), "node-1");
    assert_string_equal(tti_host_bare("[node-1]", host), "[node-1]"); /* a name has none: the resolver refuses it */
    assert_string_equal(tti_host_bare("[", host), "[");
    assert_string_equal(tti_host_bare("[]", host), "[]");
    assert_string_equal(tti_host_bare("", host), "");
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(strlen(tti_host_bare(endless, host)), TTI_HOST_MAX - 1);
}

static void bad_pairs_are_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "host", "has no port" },      { ":80", "has no host" },
        { "[]:80", "has no host" },     { "h:", "is not a port" },
        { "h:0", "is not a port" },     { "h:65536", "is not a port" },
        { "h:-1", "is not a port" },    { "h:8o", "is not a port" },
        { "::1:80", "several colons" }, { "[::1]80", "has no port" },
        { "[::1:80", "has no port" },   { "", "has no port" },
        { "h: 80", "is not a port" },   { "h:99999999999999999999", "is not a port" },
    };
    char     host[TTI_HOST_MAX];
    char     endless[TTI_HOST_MAX + 4];
    uint16_t port;
    size_t   i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tti_addr_split(cases[i].text, false, host, &port), TUTTI_E_ARG);
        if (strstr(tutti_last_error(), cases[i].words) == NULL)
            fail_msg("'%s' gives '%s'", cases[i].text, tutti_last_error());
    }
    memset(endless, 'h', sizeof endless);
    memcpy(endless + TTI_HOST_MAX, ":80", 4);
    assert_int_equal(tti_addr_split(endless, false, host, &port), TUTTI_E_ARG);
}

/* A port of loopback that no other process is given while the socket is open, which does not listen, and lets listeners be. */
static int keep_port(uint16_t *port_out)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          bytes = sizeof at;
    const int          one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    *port_out = ntohs(at.sin_port);
    return fd;
}

static void connecting_to_nobody_says_what_was_tried(void **state)
{
    tti_port  *port = tti_port_system();
    tti_addr   at = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } };
    const int  kept = keep_port(&at.port);
    tti_addr   bound;
    tti_handle listener, handle = TTI_NO_HANDLE;

    (void)state;
    assert_int_equal(port->ops->listen(port, &at, 1, &bound, &listener), 0);
    assert_int_equal(tti_connect(port, "127.0.0.1", bound.port, 0, &handle), TUTTI_OK);
    port->ops->close(port, handle);
    port->ops->close(port, listener);
    handle = TTI_NO_HANDLE;
    assert_int_equal(tti_connect(port, "127.0.0.1", bound.port, tti_deadline(port, 600, 0), &handle),
                     TUTTI_E_NETWORK); /* time for a second try, whenever this thread has a core */
    assert_int_equal(handle, TTI_NO_HANDLE);
    close(kept);
    assert_non_null(strstr(tutti_last_error(), "cannot connect to 127.0.0.1 port "));
    assert_non_null(strstr(tutti_last_error(), "Connection refused"));
    assert_null(strstr(tutti_last_error(), "tried 1 time "));
    assert_int_equal(tti_connect(port, "no-such-host.invalid", 1, 0, &handle), TUTTI_E_NETWORK);
    assert_non_null(strstr(tutti_last_error(), "cannot resolve host 'no-such-host.invalid'"));
}

/* A port whose connections end in one way, at once. */
static int ends_with;

static int connect_never(tti_port *port, const tti_addr *addr, tti_handle *handle_out)
{
    (void)port;
    (void)addr;
    (void)handle_out;
    return -ends_with;
}

static void connect_fails_with(int err, const char *host, const char *words)
{
    tti_port_ops ops = *tti_port_system()->ops;
    tti_port     port = *tti_port_system();
    tti_handle   handle = TTI_NO_HANDLE;

    port.ops = &ops;
    ops.connect = connect_never;
    ends_with = err;
    assert_int_not_equal(tti_connect_once(&port, host, 29500, tti_deadline(&port, 0, 0), &handle), TUTTI_OK);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

/* Whatever the net says, there is a next step. */
static void every_way_not_to_connect_has_a_next_step(void **state)
{
    (void)state;
    connect_fails_with(ETIMEDOUT, "192.0.2.7", "\n  next: see whether that host is up (ping), and whether a firewall drops");
    connect_fails_with(ETIMEDOUT, "192.0.2.7", "tried 1 time in ");
    connect_fails_with(EHOSTUNREACH, "192.0.2.7", "\n  next: see whether that host is up");
    connect_fails_with(ENETUNREACH, "192.0.2.7", "\n  next: see which way leads there (ip route get)");
    connect_fails_with(ECONNREFUSED, "192.0.2.7", "\n  next: start who is to listen there");
    connect_fails_with(EINVAL, "fe80::1", "does not say which link is meant\n  next: write its interface behind it: fe80::1%eth0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numeric_addresses_go_both_ways),
        cmocka_unit_test(names_are_not_numeric),
        cmocka_unit_test(host_and_port_are_split),
        cmocka_unit_test(brackets_of_an_address_are_taken_off),
        cmocka_unit_test(bad_pairs_are_refused),
        cmocka_unit_test(connecting_to_nobody_says_what_was_tried),
        cmocka_unit_test(every_way_not_to_connect_has_a_next_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
