/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rails_test.c
 * Goal    whole names, two and more, are rails in the order of the list, each with an address of the wanted family; anything
 *         else is none. A name that is not there, is down or comes twice is said, with what there is; so is what has one address
 *         for all.
 * Method  a port with a made-up list of interfaces. */
#include "wire/rails.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "wire/interfaces.h"

static const struct {
    const char *name, *addr;
    bool        up;
} host[] = {
    { "lo", "127.0.0.1", true },   { "eth0", "fe80::5%2", true }, { "eth0", "10.0.0.1", true }, { "eth0", "fd00::1", true },
    { "eth1", "10.1.0.1", true },  { "eth1", "fd01::1", true },   { "ib0", "10.2.0.1", false }, { "six", "fd06::1", true },
    { "e0", "10.3.0.1", true },    { "e1", "10.3.1.1", true },    { "e2", "10.3.2.1", true },   { "e3", "10.3.3.1", true },
    { "e4", "10.3.4.1", true },    { "e5", "10.3.5.1", true },    { "e6", "10.3.6.1", true },   { "e7", "10.3.7.1", true },
    { "e8", "10.3.8.1", true },
};

static int list(tti_port *port, tti_interface *out, int max)
{
    int i, n = (int)(sizeof host / sizeof host[0]);

    (void)port;
    assert_true(n <= max);
    for (i = 0; i < n; i++) {
        memset(&out[i], 0, sizeof out[i]);
        memcpy(out[i].name, host[i].name, strlen(host[i].name));
        assert_int_equal(tti_addr_parse(host[i].addr, 0, &out[i].addr), TUTTI_OK);
        out[i].up = host[i].up;
        out[i].loopback = i == 0;
    }
    return n;
}

static int no_list(tti_port *port, tti_interface *out, int max)
{
    (void)port, (void)out, (void)max;
    return -EPERM;
}

static const tti_port_ops ops = { .name = "made up", .interfaces = list };
static const tti_port_ops refusing_ops = { .name = "refusing", .interfaces = no_list };
static const tti_port_ops blind_ops = { .name = "blind" };
static tti_port           port = { .ops = &ops };

static int clean(void **state)
{
    (void)state;
    unsetenv("TUTTI_SOCKET_IFNAME");
    unsetenv("GLOO_SOCKET_IFNAME");
    unsetenv("TUTTI_LISTEN");
    unsetenv("TUTTI_ADVERTISE");
    return 0;
}

static void is(const tti_rail *rail, const char *name, const char *addr)
{
    tti_addr wanted;

    assert_int_equal(tti_addr_parse(addr, 0, &wanted), TUTTI_OK);
    assert_string_equal(rail->name, name);
    assert_int_equal(rail->addr.family, wanted.family);
    assert_memory_equal(rail->addr.ip, wanted.ip, sizeof wanted.ip);
}

static void has(int n, tti_addr_family family, tti_rails *out)
{
    if (tti_rails_wanted(&port, family, out) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(out->n, n);
}

static void refuses(const char *setting, const char *words)
{
    tti_rails    rails = { .n = -1 };
    tti_addr     addr;
    bool         set;
    tutti_status st;

    setenv("TUTTI_SOCKET_IFNAME", setting, 1);
    st = tti_rails_wanted(&port, TTI_ADDR_IP4, &rails);
    assert_int_equal(st, TUTTI_E_ARG);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
    assert_int_equal(tti_interface_wanted(&port, NULL, &set, &addr), TUTTI_E_ARG); /* nor is there an address to listen on */
}

static void names_one_by_one_are_rails(void **state)
{
    tti_rails rails;
    tti_addr  addr, to;
    bool      set = false;
    char      text[TTI_RAILS_TEXT_MAX];

    (void)state;
    setenv("TUTTI_SOCKET_IFNAME", "=eth1,eth0", 1); /* the mark of the first holds for all */
    has(2, TTI_ADDR_IP4, &rails);
    is(&rails.rail[0], "eth1", "10.1.0.1");
    is(&rails.rail[1], "eth0", "10.0.0.1");
    assert_string_equal(tti_rails_text(&rails, text), "eth1, eth0");
    has(2, TTI_ADDR_IP6, &rails);
    is(&rails.rail[0], "eth1", "fd01::1");
    is(&rails.rail[1], "eth0", "fd00::1"); /* not the link-local one before it */
    assert_int_equal(tti_addr_parse("10.9.0.1", 0, &to), TUTTI_OK);
    assert_int_equal(tti_interface_wanted(&port, &to, &set, &addr), TUTTI_OK);
    assert_true(set && addr.ip[1] == 1); /* the first, wherever the route leaves */

    setenv("TUTTI_SOCKET_IFNAME", "=eth0,=six", 1);
    has(2, TTI_ADDR_IP4, &rails);
    is(&rails.rail[1], "six", "fd06::1"); /* it has no other */
    setenv("TUTTI_SOCKET_IFNAME", "=e0,=e1,=e2,=e3,=e4,=e5,=e6,=e7", 1);
    has(TTI_RAILS_MAX, TTI_ADDR_IP4, &rails);
    is(&rails.rail[7], "e7", "10.3.7.1");
}

static void gloo_names_whole_ones(void **state)
{
    tti_rails rails;

    (void)state;
    setenv("GLOO_SOCKET_IFNAME", "eth0,eth1", 1);
    has(2, TTI_ADDR_IP4, &rails);
    is(&rails.rail[0], "eth0", "10.0.0.1");
    setenv("TUTTI_SOCKET_IFNAME", "eth", 1); /* goes before, and is one */
    has(0, TTI_ADDR_IP4, &rails);
}

static void anything_else_is_none(void **state)
{
    static const char *const settings[] = { "eth0", "=eth0", "eth0,eth1", "eth,ib", "^=eth0,eth1", "10.0.0.1", "10.0.0.1,10.1.0.1",
                                            "=eth0,10.1.0.1", "=eth0,^eth1" };
    tti_port                 blind = { .ops = &blind_ops };
    tti_rails                rails;
    size_t                   i;

    (void)state;
    has(0, TTI_ADDR_IP4, &rails);
    for (i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        setenv("TUTTI_SOCKET_IFNAME", settings[i], 1);
        has(0, TTI_ADDR_IP4, &rails);
    }
    setenv("TUTTI_SOCKET_IFNAME", "=eth0,=eth1", 1);
    assert_int_equal(tti_rails_wanted(&blind, TTI_ADDR_IP4, &rails), TUTTI_OK);
    assert_int_equal(rails.n, 0);
}

static void what_cannot_be_is_said(void **state)
{
    tti_port  refusing = { .ops = &refusing_ops };
    tti_rails rails;

    (void)state;
    refuses("=eth0,=eth9", "no interface with an address is called 'eth9'; there are: lo, eth0, eth1, ib0 (down), six");
    refuses("=eth0,=eth", "is called 'eth'"); /* a beginning of a name is no name */
    refuses("=eth0,=ib0", "interface 'ib0' is down");
    refuses("=eth0,=eth1,=eth0", "'eth0' is named twice");
    refuses("=e0,=e1,=e2,=e3,=e4,=e5,=e6,=e7,=e8", "there may be 8");
    refuses("=eth0,", "empty");
    assert_int_equal(tti_rails_wanted(&refusing, TTI_ADDR_IP4, &rails), TUTTI_E_ARG); /* the list is not asked for then */
    setenv("TUTTI_SOCKET_IFNAME", "=eth0,=eth1", 1);
    assert_int_equal(tti_rails_wanted(&refusing, TTI_ADDR_IP4, &rails), TUTTI_E_NETWORK);
}

static void one_address_for_all_is_none_for_each(void **state)
{
    (void)state;
    setenv("TUTTI_LISTEN", "any", 1);
    refuses("=eth0,=eth1", "TUTTI_LISTEN=any says one for all");
    setenv("TUTTI_LISTEN", "route", 1);
    setenv("TUTTI_ADVERTISE", "10.7.7.7", 1);
    refuses("=eth0,=eth1", "TUTTI_ADVERTISE says one for all");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_one_by_one_are_rails), TEST(gloo_names_whole_ones), TEST(anything_else_is_none), TEST(what_cannot_be_is_said),
        TEST(one_address_for_all_is_none_for_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
