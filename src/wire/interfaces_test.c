/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interfaces_test.c
 * Goal    of a host's addresses the one is chosen that the rules of TUTTI_SOCKET_IFNAME ask for; a rule that
 *         matches nothing says what there is; bridges, loopback and link-local addresses are not guessed.
 * Method  a port with a made-up list of interfaces and a route that the test turns. */
#include "wire/interfaces.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

static const struct {
    const char *name, *addr;
    bool        up, loopback;
} host[] = {
    { "lo", "127.0.0.1", true, true },     { "docker0", "172.17.0.1", true, false },
    { "eth0", "fe80::5%2", true, false },  { "eth0", "10.0.0.1", true, false },
    { "eth0", "fd00::1", true, false },    { "eth1", "10.1.0.1", true, false },
    { "eth10", "10.10.0.1", true, false }, { "ib0", "10.2.0.1", false, false },
    { "lo", "::1", true, true }, /* not behind its other address */
};

static const char *way_out; /* what routes leave from; NULL: there are none */

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
        out[i].loopback = host[i].loopback;
    }
    return n;
}

static int route(tti_port *port, const tti_addr *to, tti_addr *local_out)
{
    (void)port;
    if (way_out == NULL)
        return -ENETUNREACH;
    assert_int_equal(tti_addr_parse(way_out, 0, local_out), TUTTI_OK);
    return local_out->family == to->family ? 0 : -ENETUNREACH;
}

static const tti_port_ops ops = { .name = "made up", .interfaces = list, .route = route };
static tti_port           port = { .ops = &ops };

static int clean(void **state)
{
    (void)state;
    unsetenv("TUTTI_SOCKET_IFNAME");
    unsetenv("GLOO_SOCKET_IFNAME");
    unsetenv("TUTTI_SECRET_FILE");
    unsetenv("TUTTI_AUTH");
    unsetenv("LOCAL_WORLD_SIZE");
    unsetenv("WORLD_SIZE");
    way_out = NULL;
    return 0;
}

static void is(const tti_addr *addr, const char *expected)
{
    tti_addr wanted;
    char     text[TTI_ADDR_TEXT_MAX];

    assert_int_equal(tti_addr_parse(expected, 0, &wanted), TUTTI_OK);
    if (addr->family != wanted.family || memcmp(addr->ip, wanted.ip, 16) != 0)
        fail_msg("%s instead of %s", tti_addr_format(addr, text, sizeof text), expected);
}

/* setting, and where packets go: NULL is not known. */
static void takes(const char *setting, const char *to, const char *expected)
{
    tti_addr addr, target;
    bool     set = false;

    setenv("TUTTI_SOCKET_IFNAME", setting, 1);
    if (to != NULL)
        assert_int_equal(tti_addr_parse(to, 0, &target), TUTTI_OK);
    if (tti_interface_wanted(&port, to != NULL ? &target : NULL, &set, &addr) != TUTTI_OK)
        fail_msg("%s: %s", setting, tutti_last_error());
    assert_true(set);
    is(&addr, expected);
}

static void refuses(const char *setting, const char *words)
{
    tti_addr addr;
    bool     set = false;

    setenv("TUTTI_SOCKET_IFNAME", setting, 1);
    assert_int_equal(tti_interface_wanted(&port, NULL, &set, &addr), TUTTI_E_ARG);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void beginnings_and_whole_names(void **state)
{
    (void)state;
    takes("eth0", NULL, "10.0.0.1");
    takes("eth0", "fd00::9", "fd00::1"); /* the family of the master */
    takes("eth1", NULL, "10.1.0.1");     /* the whole name before eth10, which begins so */
    takes("=eth10", NULL, "10.10.0.1");
    takes("e", NULL, "10.0.0.1");
    takes("eth1,eth0", NULL, "10.1.0.1"); /* order of the list */
    takes("lo", NULL, "127.0.0.1");       /* named */
    takes("10.10.0.1", NULL, "10.10.0.1");
    takes("10.99.0.1", NULL, "10.99.0.1"); /* listening will tell */
    takes("ib,10.1.0.1", NULL, "10.1.0.1");
    refuses("l", "no interface with an address matches"); /* loopback is never a beginning */
    refuses("=eth", "there are: lo, docker0, eth0, eth1, eth10, ib0 (down)");
    assert_null(strstr(tutti_last_error(), "(down), ")); /* each name once */
    refuses("ib0", "TUTTI_SOCKET_IFNAME is 'ib0'");
    refuses("eth0,", "empty");
    refuses("^", "empty");
    refuses("^^lo", "an entry has '^' twice");
    refuses("eth0,^=^ib0", "an entry has '^' twice");
    refuses("==eth0", "an entry has '=' twice");
    takes("^=eth0", NULL, "172.17.0.1"); /* one of each is a whole name that is left out */
}

static void exclusions(void **state)
{
    (void)state;
    takes("^docker", NULL, "10.0.0.1");
    takes("^docker,eth0", NULL, "10.1.0.1"); /* the mark of the first holds for all, as in NCCL */
    takes("^=eth1,docker0,eth0", NULL, "10.10.0.1");
    takes("eth,^eth0", NULL, "10.1.0.1");
    refuses("^docker,eth", "matches");
}

static void routes_come_first(void **state)
{
    (void)state;
    way_out = "10.10.0.1";
    takes("eth", "10.50.0.1", "10.10.0.1");
    takes("eth0", "10.50.0.1", "10.0.0.1"); /* not among those that match */
    takes("^docker", "10.50.0.1", "10.10.0.1");
}

static void gloo(void **state)
{
    tti_addr addr;
    bool     set = true;

    (void)state;
    assert_int_equal(tti_interface_wanted(&port, NULL, &set, &addr), TUTTI_OK);
    assert_false(set);
    setenv("GLOO_SOCKET_IFNAME", "eth1,eth0", 1);
    assert_int_equal(tti_interface_wanted(&port, NULL, &set, &addr), TUTTI_OK);
    assert_true(set);
    is(&addr, "10.1.0.1");
    setenv("GLOO_SOCKET_IFNAME", "eth", 1); /* whole names only, as gloo has it */
    assert_int_equal(tti_interface_wanted(&port, NULL, &set, &addr), TUTTI_E_ARG);
    takes("eth10", NULL, "10.10.0.1"); /* ours wins */
}

static void the_own_address(void **state)
{
    tti_addr addr;

    (void)state;
    assert_true(tti_own_addr(&port, &addr));
    is(&addr, "10.0.0.1"); /* not docker0, not link-local */
    way_out = "10.10.0.1";
    assert_true(tti_own_addr(&port, &addr));
    is(&addr, "10.10.0.1");
    setenv("TUTTI_SOCKET_IFNAME", "=eth1", 1);
    assert_true(tti_own_addr(&port, &addr));
    is(&addr, "10.1.0.1");
    assert_int_equal(tti_addr_parse("172.17.0.1", 0, &addr), TUTTI_OK);
    assert_true(tti_addr_is_own(&port, &addr));
    assert_int_equal(tti_addr_parse("172.17.0.2", 0, &addr), TUTTI_OK);
    assert_false(tti_addr_is_own(&port, &addr));
}

static bool beyond(const char *name, const char *resolved, tti_addr *out)
{
    tti_addr addr;

    assert_int_equal(tti_addr_parse(resolved, 29500, &addr), TUTTI_OK);
    return tti_addr_beyond_loopback(&port, name, &addr, 1, out);
}

static void a_host_name_that_means_loopback(void **state)
{
    tti_addr addr;

    (void)state;
    assert_false(beyond("n1", "127.0.1.1", &addr)); /* without a secret nobody from elsewhere gets in */
    setenv("TUTTI_AUTH", "none", 1);
    assert_true(beyond("n1", "127.0.1.1", &addr));
    is(&addr, "10.0.0.1");
    assert_int_equal(addr.port, 29500);
    assert_false(beyond("n1", "10.0.0.1", &addr));
    assert_false(beyond("localhost", "127.0.0.1", &addr));
    assert_false(beyond("127.0.1.1", "127.0.1.1", &addr));
    setenv("TUTTI_AUTH", "secret", 1);
    setenv("TUTTI_SECRET_FILE", "/some/file", 1);
    assert_true(beyond("n1", "127.0.1.1", &addr));
    setenv("LOCAL_WORLD_SIZE", "4", 1);
    setenv("WORLD_SIZE", "4", 1); /* all ranks are here */
    assert_false(beyond("n1", "127.0.1.1", &addr));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(beginnings_and_whole_names), TEST(exclusions),      TEST(routes_come_first),
        TEST(gloo),                       TEST(the_own_address), TEST(a_host_name_that_means_loopback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
