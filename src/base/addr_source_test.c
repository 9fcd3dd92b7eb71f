/* SPDX-License-Identifier: BSD-3-Clause
 *
 * addr_source_test.c
 * Goal    addresses that one owner can have many of are one source, and those of others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "base/addr_source.h"

static tti_addr at(const char *text)
{
    tti_addr addr = { .family = TTI_ADDR_IP4, .port = 1 };

    if (inet_pton(AF_INET, text, addr.ip) == 1)
        return addr;
    addr.family = TTI_ADDR_IP6;
    assert_int_equal(inet_pton(AF_INET6, text, addr.ip), 1);
    return addr;
}

static bool same_source(const tti_addr *a, const tti_addr *b)
{
    const tti_addr_source one = tti_addr_source_of(a), other = tti_addr_source_of(b);

    return tti_same_source(&one, &other);
}

static bool same(const char *a, const char *b)
{
    tti_addr one = at(a), other = at(b);

    other.port = 2;
    return same_source(&one, &other);
}

static void loopback_is_one(void **state)
{
    (void)state;
    assert_true(same("127.0.0.1", "127.255.3.9"));
    assert_true(same("127.0.0.1", "::ffff:127.9.9.9"));
    assert_true(same("127.0.0.1", "::1"));
    assert_false(same("127.0.0.1", "126.0.0.1"));
    assert_false(same("127.0.0.1", "::2"));
}

static void ip4_is_told_apart_by_all_of_it(void **state)
{
    (void)state;
    assert_true(same("10.1.2.3", "10.1.2.3"));
    assert_true(same("10.1.2.3", "::ffff:10.1.2.3"));
    assert_false(same("10.1.2.3", "10.1.2.4"));
    assert_false(same("::ffff:10.1.2.3", "::ffff:10.1.2.4"));
}

static void ip6_is_told_apart_by_its_net(void **state)
{
    (void)state;
    assert_true(same("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff"));
    assert_true(same("fe80::1", "fe80::abcd"));
    assert_false(same("2001:db8:0:1::1", "2001:db8:0:2::1"));
    assert_false(same("a01:203::", "10.1.2.3")); /* the same bytes in front */
}

static void the_other_kinds_are_one_each(void **state)
{
    tti_addr none = { .family = TTI_ADDR_NONE }, a = { .family = TTI_ADDR_LOCAL, .name = "a" };
    tti_addr b = { .family = TTI_ADDR_LOCAL, .name = "b" };

    (void)state;
    assert_true(same_source(&a, &b));
    assert_false(same_source(&a, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_is_one),
        cmocka_unit_test(ip4_is_told_apart_by_all_of_it),
        cmocka_unit_test(ip6_is_told_apart_by_its_net),
        cmocka_unit_test(the_other_kinds_are_one_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
