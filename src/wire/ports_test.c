/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ports_test.c
 * Goal    listeners keep to TUTTI_PORT_RANGE and say when it is used up; the wildcard needs
 *         TUTTI_LISTEN=any; what others are told is TUTTI_ADVERTISE, with the listener's port.
 * Method  loopback sockets; names are resolved by the test. */
#include "wire/ports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

static const tti_secret secret = { .present = true };

/* What every name means here. */
static tutti_status resolve(tti_port *port, const char *name, uint16_t tcp_port, tti_addr *out, int max,
                            int *n_out)
{
    (void)port;
    (void)name;
    assert_true(max >= 2);
    assert_int_equal(tti_addr_parse("fd00::1", tcp_port, &out[0]), TUTTI_OK);
    assert_int_equal(tti_addr_parse("192.0.2.1", tcp_port, &out[1]), TUTTI_OK);
    *n_out = 2;
    return TUTTI_OK;
}

static tti_port_ops ops;
static tti_port     port = { .ops = &ops };

static int clean(void **state)
{
    (void)state;
    unsetenv("TUTTI_PORT_RANGE");
    unsetenv("TUTTI_LISTEN");
    unsetenv("TUTTI_ADVERTISE");
    unsetenv("TUTTI_SOCKET_IFNAME");
    unsetenv("GLOO_SOCKET_IFNAME");
    ops = *tti_port_system()->ops;
    ops.resolve = resolve;
    return 0;
}

static void says(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static tti_addr loopback(uint16_t tcp_port)
{
    tti_addr at;

    assert_int_equal(tti_addr_parse("127.0.0.1", tcp_port, &at), TUTTI_OK);
    return at;
}

static tutti_status listen_here(tti_addr *bound, tti_handle *handle)
{
    const tti_addr at = loopback(0);

    return tti_listen_tcp(&port, &at, 4, &secret, bound, handle);
}

/* A range of two ports that were free a moment ago: the kernel's choice, and the next. */
static int make_range(void)
{
    tti_addr   bound;
    tti_handle handle;
    char       text[32];

    unsetenv("TUTTI_PORT_RANGE");
    assert_int_equal(listen_here(&bound, &handle), TUTTI_OK);
    port.ops->close(&port, handle);
    snprintf(text, sizeof text, "%d-%d", bound.port, bound.port + 1);
    setenv("TUTTI_PORT_RANGE", text, 1);
    return bound.port;
}

static void a_range_is_kept(void **state)
{
    tti_handle handles[3] = { TTI_NO_HANDLE, TTI_NO_HANDLE, TTI_NO_HANDLE };
    tti_addr   bound = { 0 };
    int        first, n, tries, i;

    (void)state;
    for (tries = 0;; tries++) { /* other programs take ports, too */
        assert_true(tries < 20);
        first = make_range();
        for (n = 0; n < 3 && listen_here(&bound, &handles[n]) == TUTTI_OK; n++)
            assert_in_range(bound.port, first, first + 1);
        for (i = 0; i < n; i++)
            port.ops->close(&port, handles[i]);
        assert_true(n < 3);
        if (n == 2)
            break;
    }
    says("are taken");
    says("widen TUTTI_PORT_RANGE");
}

static void wrong_settings(void **state)
{
    static const char *const wrong[] = { "20000", "20-10", "0-5", "1-65536", "1-2x", "a-b", "-1-5", "1-" };
    tti_ports                ports = { 7, 8 };
    tti_addr                 bound;
    tti_handle               handle;
    size_t                   i;

    (void)state;
    assert_int_equal(tti_ports_wanted(&ports), TUTTI_OK);
    assert_int_equal(ports.first, 7); /* not set: untouched */
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("TUTTI_PORT_RANGE", wrong[i], 1);
        assert_int_equal(tti_ports_wanted(&ports), TUTTI_E_ARG);
        says("not a range of ports");
    }
    setenv("TUTTI_PORT_RANGE", "65535-65535", 1);
    assert_int_equal(tti_ports_wanted(&ports), TUTTI_OK);
    assert_int_equal(ports.last, 65535);
    setenv("TUTTI_LISTEN", "all", 1);
    assert_int_equal(listen_here(&bound, &handle), TUTTI_E_ARG);
    says("TUTTI_LISTEN is 'all'");
}

static void any_address(void **state)
{
    const tti_secret none = { .present = false };
    tti_addr         bound, told, at = loopback(0);
    tti_handle       handle;

    (void)state;
    setenv("TUTTI_LISTEN", "any", 1);
    assert_int_equal(tti_listen_tcp(&port, &at, 4, &none, &bound, &handle), TUTTI_E_AUTH);
    assert_int_equal(listen_here(&bound, &handle), TUTTI_OK);
    assert_int_equal(bound.ip[0], 0);
    assert_true(bound.port != 0);
    port.ops->close(&port, handle);

    assert_int_equal(tti_advertised(&port, &at, &bound, &told), TUTTI_OK);
    assert_int_equal(told.ip[0], 127);
    assert_int_equal(told.port, bound.port);
    setenv("TUTTI_ADVERTISE", "outside", 1);
    assert_int_equal(tti_advertised(&port, &at, &bound, &told), TUTTI_OK);
    assert_int_equal(told.ip[0], 192); /* of the family that is listened on, though not the first */
    assert_int_equal(told.port, bound.port);
}

/* Whose address it was decides what to do: that is in the words. */
static void an_address_of_others(void **state)
{
    tti_addr   bound, at;
    tti_handle handle;

    (void)state;
    assert_int_equal(tti_addr_parse("192.0.2.7", 0, &at), TUTTI_OK);
    assert_int_equal(tti_listen_tcp(&port, &at, 4, &secret, &bound, &handle), TUTTI_E_NETWORK);
    says("cannot listen for other ranks at 192.0.2.7:0: this host has no such address\n  next: ");
    setenv("TUTTI_SOCKET_IFNAME", "192.0.2.7", 1);
    assert_int_equal(tti_listen_tcp(&port, &at, 4, &secret, &bound, &handle), TUTTI_E_ARG);
    says("TUTTI_SOCKET_IFNAME is '192.0.2.7': no interface with an address matches; there are: ");
    says("\n  next: name interfaces");
    setenv("TUTTI_SOCKET_IFNAME", "lo", 1); /* this one is not to blame */
    assert_int_equal(tti_listen_tcp(&port, &at, 4, &secret, &bound, &handle), TUTTI_E_NETWORK);
    says("this host has no such address");
}

static tutti_status resolve_nothing(tti_port *of, const char *name, uint16_t tcp_port, tti_addr *out, int max, int *n_out)
{
    (void)of;
    (void)tcp_port;
    (void)out;
    (void)max;
    (void)n_out;
    return tti_fail(TUTTI_E_NETWORK, "cannot resolve host '%s': not today\n  next: something about hosts", name);
}

static void an_unknown_name_to_tell_others(void **state)
{
    tti_addr told, at = loopback(0);

    (void)state;
    ops.resolve = resolve_nothing;
    setenv("TUTTI_ADVERTISE", "n1.nowhere", 1);
    assert_int_equal(tti_advertised(&port, &at, &at, &told), TUTTI_E_NETWORK);
    says("TUTTI_ADVERTISE is 'n1.nowhere': cannot resolve host 'n1.nowhere': not today\n"
         "  next: give the address under which the others reach this rank");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_range_is_kept),
        TEST(wrong_settings),
        TEST(any_address),
        TEST(an_address_of_others),
        TEST(an_unknown_name_to_tell_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
