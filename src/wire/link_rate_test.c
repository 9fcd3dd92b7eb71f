/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link_rate_test.c
 * Goal    what one interface carries is taken as it is told, several carry as much as the slowest, times their number, and one that is
 *         not known leaves all unknown; the machine's own port tells of loopback that nobody knows what it carries.
 * Method  a port that knows three interfaces by their addresses; the system's. */
#include "wire/link_rate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int facts_of(tti_port *port, const tti_addr *at, tti_link_facts *facts_out)
{
    static const tti_link_facts host[] = { { "eth0", 1000, "speed", 0 }, { "eth1", 400, "tbf", 20000 }, { "br0", 0, "", 0 } };

    (void)port;
    if (at->ip[0] != 10 || at->ip[1] >= 3)
        return -ENODEV;
    *facts_out = host[at->ip[1]];
    return 0;
}

static const tti_port_ops ops = { .name = "made up", .link_facts = facts_of };
static const tti_port_ops blind_ops = { .name = "blind" };
static tti_port           knowing = { .ops = &ops }, blind = { .ops = &blind_ops };

static tti_addr address(const char *text)
{
    tti_addr addr;

    assert_int_equal(tti_addr_parse(text, 0, &addr), TUTTI_OK);
    return addr;
}

static void expect(tti_port *port, const char *at, const char *const *rails, int64_t mbit, const char *text)
{
    const tti_addr own = address(at);
    tti_link_rate  rate;
    tti_rails      all = { .n = 0 };

    for (; *rails != NULL; rails++)
        all.rail[all.n++].addr = address(*rails);
    tti_link_rate_of(port, &own, &all, &rate);
    assert_int_equal(rate.mbit, mbit);
    assert_string_equal(rate.text, text);
}

static void one_is_as_it_says(void **state)
{
    static const char *const none[] = { NULL };

    (void)state;
    expect(&knowing, "10.0.0.1", none, 1000, "eth0 1000 Mb/s (speed)");
    expect(&knowing, "10.1.0.1", none, 400, "eth1 400 Mb/s (tbf)");
    expect(&knowing, "10.2.0.1", none, 0, "br0 unknown");
    expect(&knowing, "10.3.0.1", none, 0, "");
    expect(&blind, "10.0.0.1", none, 0, "");
}

/* What passes at once counts where every one of them has it. */
static void a_burst_is_that_of_all(void **state)
{
    static const char *const buckets[] = { "10.1.0.1", "10.1.0.2", NULL }, *const one[] = { "10.0.0.1", "10.1.0.1", NULL };
    const tti_addr           own = address("10.1.0.1");
    tti_link_rate            rate;
    tti_rails                rails = { .n = 0 };

    (void)state;
    tti_link_rate_of(&knowing, &own, &rails, &rate);
    assert_int_equal(rate.burst, 20000);
    for (; rails.n < 2; rails.n++)
        rails.rail[rails.n].addr = address(buckets[rails.n]);
    tti_link_rate_of(&knowing, &own, &rails, &rate);
    assert_int_equal(rate.burst, 40000);
    rails.rail[0].addr = address(one[0]);
    tti_link_rate_of(&knowing, &own, &rails, &rate);
    assert_int_equal(rate.burst, 0);
}

static void several_are_as_fast_as_the_slowest(void **state)
{
    static const char *const both[] = { "10.0.0.1", "10.1.0.1", NULL }, *const other[] = { "10.0.0.1", "10.2.0.1", NULL };
    static const char *const same[] = { "10.0.0.1", "10.0.0.1", "10.0.0.1", NULL };

    (void)state;
    expect(&knowing, "10.0.0.1", both, 800, "eth0 1000 Mb/s (speed), eth1 400 Mb/s (tbf)");
    expect(&knowing, "10.0.0.1", same, 3000, "eth0 1000 Mb/s (speed), eth0 1000 Mb/s (speed), eth0 1000 Mb/s (speed)");
    expect(&knowing, "10.0.0.1", other, 0, "eth0 1000 Mb/s (speed), br0 unknown");
    expect(&blind, "10.0.0.1", both, 0, "");
}

static void loopback_carries_nobody_knows_what(void **state)
{
    const tti_addr own = address("127.0.0.1"), nobodys = address("192.0.2.7");
    tti_rails      none = { .n = 0 };
    tti_link_rate  rate;

    (void)state;
    tti_link_rate_of(tti_port_system(), &own, &none, &rate);
    assert_int_equal(rate.mbit, 0);
    assert_string_equal(rate.text, "lo unknown");
    tti_link_rate_of(tti_port_system(), &nobodys, &none, &rate);
    assert_int_equal(rate.mbit, 0);
    assert_string_equal(rate.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_as_it_says),
        cmocka_unit_test(a_burst_is_that_of_all),
        cmocka_unit_test(several_are_as_fast_as_the_slowest),
        cmocka_unit_test(loopback_carries_nobody_knows_what),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
