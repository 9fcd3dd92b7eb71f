/* SPDX-License-Identifier: BSD-3-Clause
 *
 * connect_test.c
 * Goal    of a name's addresses the one that answers is taken, soon, whatever the others do: refuse, be
 *         silent, or be of a family that this host lacks; when none answers the words tell why.
 * Method  a port whose clock stands still but for poll, and whose addresses behave by their last number. */
#include "wire/addr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/debug.h>
#include <tutti/private.h>
#include "base/doubt.h"

enum { REFUSES = 1, SILENT = 2, ANSWERS = 3, LACKS = 4, LATE = 5, CUT_OFF = 6, HANDLES = 64 };

#define LATE_NS (400 * TTI_MS)

static struct {
    const char *addrs[4];
    int64_t     now_ns;
    int         no_way;  /* errno of CUT_OFF */
    int64_t     back_ns; /* when there is a way to CUT_OFF, which then answers */
    bool        no_loopback;
    int         n_listed; /* so often were the interfaces asked for */
    int         n_opened, n_open;
    int         how[HANDLES];
    int64_t     began_ns[HANDLES];
} world;

static int64_t now(tti_port *port)
{
    (void)port;
    return world.now_ns;
}

static void sleep_until(tti_port *port, int64_t deadline_ns)
{
    (void)port;
    world.now_ns = deadline_ns;
}

static void dice(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, 0x40, bytes);
}

static tutti_status resolve(tti_port *port, const char *name, uint16_t tcp_port, tti_addr *out, int max,
                            int *n_out)
{
    (void)port;
    (void)name;
    for (*n_out = 0; *n_out < max && world.addrs[*n_out] != NULL; ++*n_out)
        assert_int_equal(tti_addr_parse(world.addrs[*n_out], tcp_port, &out[*n_out]), TUTTI_OK);
    return TUTTI_OK;
}

static int begin(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    int how = to->ip[to->family == TTI_ADDR_IP4 ? 3 : 15];

    (void)port;
    if (how == LACKS)
        return -EAFNOSUPPORT;
    if (how == CUT_OFF && world.now_ns < world.back_ns)
        return -world.no_way;
    how = how == CUT_OFF ? ANSWERS : how;
    assert_true(world.n_opened < HANDLES);
    world.how[world.n_opened] = how;
    world.began_ns[world.n_opened] = world.now_ns;
    world.n_open++;
    *handle_out = world.n_opened++;
    return 0;
}

static bool has_ended(tti_handle handle)
{
    const int how = world.how[handle];

    return how == REFUSES || how == ANSWERS ||
           (how == LATE && world.now_ns - world.began_ns[handle] >= LATE_NS);
}

static int wait_for(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    int i, ready = 0;

    (void)port;
    for (;; world.now_ns += TTI_MS) {
        for (i = 0; i < n; i++) {
            set[i].got = set[i].handle != TTI_NO_HANDLE && has_ended(set[i].handle) ? TTI_WRITE : 0;
            ready += set[i].got != 0;
        }
        if (ready > 0 || world.now_ns >= deadline_ns)
            return ready;
    }
}

static int result(tti_port *port, tti_handle handle)
{
    (void)port;
    return world.how[handle] == REFUSES ? -ECONNREFUSED : 0;
}

static void end(tti_port *port, tti_handle handle)
{
    (void)port;
    world.n_open -= handle != TTI_NO_HANDLE;
}

/* A bridge, and, where it is up, loopback. */
static int list(tti_port *port, tti_interface *out, int max)
{
    (void)port;
    assert_true(max >= 2);
    memset(out, 0, 2 * sizeof *out);
    memcpy(out[0].name, "br0", 4);
    memcpy(out[1].name, "lo", 3);
    world.n_listed++;
    out[0].up = out[1].up = out[1].loopback = true;
    assert_int_equal(tti_addr_parse("172.17.0.1", 0, &out[0].addr), TUTTI_OK);
    assert_int_equal(tti_addr_parse("127.0.0.1", 0, &out[1].addr), TUTTI_OK);
    return world.no_loopback ? 1 : 2;
}

static const tti_port_ops ops = {
    .name = "made up", .now_ns = now, .sleep_until = sleep_until, .random = dice, .resolve = resolve,
    .connect = begin, .connect_result = result, .poll = wait_for, .close = end, .interfaces = list,
};
static tti_port port = { .ops = &ops };

static int clean(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    return 0;
}

/* Connect within limit_ms of the clock; to which kind of address? */
static int reaches(int64_t limit_ms)
{
    tti_handle handle = TTI_NO_HANDLE;

    if (tti_connect(&port, "n1", 80, 60 * TTI_SECOND, &handle) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(world.n_open, 1); /* the losers are closed */
    assert_true(world.now_ns <= limit_ms * TTI_MS);
    return world.how[handle];
}

static void a_silent_address_costs_a_moment(void **state)
{
    (void)state;
    world.addrs[0] = "10.0.0.2"; /* SILENT */
    world.addrs[1] = "10.0.0.3"; /* ANSWERS */
    assert_int_equal(reaches(300), ANSWERS);
}

static void a_refusal_costs_nothing(void **state)
{
    (void)state;
    world.addrs[0] = "10.0.0.1";
    world.addrs[1] = "fd00::4"; /* a family that is not there */
    world.addrs[2] = "10.0.0.3";
    assert_int_equal(reaches(1), ANSWERS);
}

static void the_first_may_still_win(void **state)
{
    (void)state;
    world.addrs[0] = "10.0.0.5"; /* LATE */
    world.addrs[1] = "10.0.0.2";
    assert_int_equal(reaches(450), LATE);
}

/* A server that is not there yet, beside a dead address: it is asked again soon. */
static void a_silent_address_does_not_hold_up_rounds(void **state)
{
    tti_handle handle = TTI_NO_HANDLE;

    (void)state;
    world.addrs[0] = "10.0.0.2";
    world.addrs[1] = "10.0.0.1"; /* REFUSES */
    assert_int_equal(tti_connect(&port, "n1", 80, 8 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_true(world.n_opened >= 8); /* at least four rounds in eight seconds */
    assert_int_equal(world.n_open, 0);
}

static void none_answers(void **state)
{
    tti_handle handle = TTI_NO_HANDLE;

    (void)state;
    world.addrs[0] = "10.0.0.2";
    world.addrs[1] = "10.0.0.1";
    assert_int_equal(tti_connect(&port, "n1", 80, 3 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_int_equal(world.now_ns / TTI_MS, 3000); /* the deadline, not ten seconds */
    assert_int_equal(world.n_open, 0);
    assert_non_null(strstr(tutti_last_error(), "10.0.0.2:80: Connection timed out"));
    clean(NULL);
    world.addrs[0] = "fd00::4";
    assert_int_not_equal(tti_connect(&port, "n1", 80, 3 * TTI_SECOND, &handle), TUTTI_OK);
    assert_int_equal(world.now_ns, 0); /* waiting would not help */
    assert_non_null(strstr(tutti_last_error(), "cannot open a connection to n1"));
}

static bool is_vain_after_a_second(void *context)
{
    (void)context;
    return world.now_ns >= TTI_SECOND;
}

/* That it was given up is the cause, and not that time was up, which it was not. */
static void what_is_in_vain_is_no_time_out(void **state)
{
    const tti_doubt doubt = { .is_vain = is_vain_after_a_second };
    tti_handle      handle = TTI_NO_HANDLE;
    tutti_status    st;

    (void)state;
    world.addrs[0] = "10.0.0.2";
    tti_doubt_waits(&doubt);
    st = tti_connect(&port, "n1", 80, 60 * TTI_SECOND, &handle);
    tti_doubt_waits(NULL);
    assert_int_equal(st, TUTTI_E_NETWORK);
    assert_in_range(world.now_ns / TTI_MS, 1000, 1050);
    assert_int_equal(world.n_open, 0);
    assert_non_null(strstr(tutti_last_error(), "n1 port 80 is not waited for any more"));
}

static void an_address_of_our_own(void **state)
{
    tti_handle handle = TTI_NO_HANDLE;

    (void)state;
    world.addrs[0] = "172.17.0.1"; /* the bridge that every host has */
    assert_int_equal(tti_connect(&port, "172.17.0.1", 80, 2 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_non_null(strstr(tutti_last_error(), "that is this host itself"));
    assert_non_null(strstr(tutti_last_error(), "MASTER_ADDR"));
    assert_non_null(strstr(tutti_last_error(), "start who is to listen here (rank 0"));
}

static void a_refusal_asks_for_rank_0(void **state)
{
    tti_handle handle = TTI_NO_HANDLE;

    (void)state;
    world.addrs[0] = "10.0.0.1";
    assert_int_equal(tti_connect(&port, "10.0.0.1", 80, 2 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_non_null(strstr(tutti_last_error(), "10.0.0.1:80: Connection refused\n  next: start who is to listen there (rank 0"));
}

static struct {
    const char *part;
    int64_t     first_ns;
    int         n;
} words;

static void note_words(tutti_log_level level, const char *line, void *ctx)
{
    (void)level;
    (void)ctx;
    if (strstr(line, words.part) == NULL)
        return;
    words.first_ns = words.n++ == 0 ? world.now_ns : words.first_ns;
}

/* When the first word comes on an address that does not connect for 20 s, and how many more do. */
static void listen_to(const char *addr, const char *part)
{
    tti_handle handle = TTI_NO_HANDLE;

    clean(NULL);
    world.addrs[0] = addr;
    memset(&words, 0, sizeof words);
    words.part = part;
    assert_int_equal(tutti_log_set_sink("test", note_words, NULL), TUTTI_OK);
    assert_int_equal(tti_connect(&port, addr, 80, 20 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    assert_true(words.first_ns >= 3 * TTI_SECOND && words.first_ns < 5 * TTI_SECOND);
    assert_int_equal(words.n, 2);
}

/* Whoever waits for half an hour is told why within five seconds, and then now and again. */
static void waiting_is_explained(void **state)
{
    (void)state;
    listen_to("10.0.0.1", "10.0.0.1:80: Connection refused");
    listen_to("10.0.0.2", "still trying to connect to 10.0.0.2 port 80");
    listen_to("172.17.0.1", "that is this host itself");
}

static void without_loopback(void **state)
{
    tti_handle handle = TTI_NO_HANDLE;

    (void)state;
    world.addrs[0] = "172.17.0.1";
    world.no_loopback = true;
    assert_int_equal(tti_connect(&port, "n1", 80, 60 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_int_equal(world.now_ns, 0);
    assert_non_null(strstr(tutti_last_error(), "loopback interface is down"));
    clean(NULL);
    world.addrs[0] = "127.0.0.1"; /* REFUSES */
    world.no_loopback = true;
    assert_int_equal(tti_connect(&port, "localhost", 80, 60 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_int_equal(world.now_ns, 0);
    assert_non_null(strstr(tutti_last_error(), "loopback interface is down"));
    clean(NULL);
    world.addrs[0] = "10.0.0.3"; /* others are reached all the same */
    world.no_loopback = true;
    assert_int_equal(reaches(1), ANSWERS);
}

/* That takes longer than to connect. */
static void nobody_lists_interfaces_to_reach_loopback(void **state)
{
    (void)state;
    world.addrs[0] = "127.0.0.3";
    assert_int_equal(reaches(1), ANSWERS);
    assert_int_equal(world.n_listed, 0);
}

/* On the host behind a service its address may lead nowhere; other hosts do not look at themselves. */
static void behind_a_service(void **state)
{
    tti_handle handle = TTI_NO_HANDLE;

    (void)state;
    world.addrs[0] = "10.0.0.2"; /* SILENT; loopback's last number REFUSES */
    setenv("TUTTI_LISTEN", "any", 1);
    assert_int_equal(tti_connect(&port, "svc", 80, TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_int_equal(world.how[1], REFUSES);
    unsetenv("TUTTI_LISTEN");
    clean(NULL);
    world.addrs[0] = "10.0.0.2";
    assert_int_equal(tti_connect(&port, "svc", 80, TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_int_equal(world.n_opened, 1);
}

/* A call to a server that was there, with 60 s of time. */
static tutti_status again(const char *addr, const char *other, int no_way, int64_t back_ns)
{
    tti_handle handle = TTI_NO_HANDLE;

    clean(NULL);
    world.addrs[0] = addr;
    world.addrs[1] = other;
    world.no_way = no_way;
    world.back_ns = back_ns;
    return tti_connect_once(&port, "n1", 80, 60 * TTI_SECOND, &handle);
}

/* The interface was down for a second, or the route or the address gone. */
static void a_way_that_is_lost_for_a_second_ends_nothing(void **state)
{
    static const int no_way[] = { ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL };
    size_t           i;

    (void)state;
    for (i = 0; i < sizeof no_way / sizeof no_way[0]; i++) {
        assert_int_equal(again("10.0.0.6", NULL, no_way[i], TTI_SECOND), TUTTI_OK);
        assert_int_equal(world.n_open, 1);
        assert_in_range(world.now_ns / TTI_MS, 1000, 1400);
    }
    setenv("TUTTI_LISTEN", "any", 1); /* that nobody listens on loopback says nothing of a server behind a service */
    assert_int_equal(again("10.0.0.6", NULL, ENETUNREACH, TTI_SECOND), TUTTI_OK);
    unsetenv("TUTTI_LISTEN");
}

/* It is waited for as silence is, and no longer; not beyond the call's own time either. */
static void a_way_that_stays_lost_is_told(void **state)
{
    tti_handle handle = TTI_NO_HANDLE;

    (void)state;
    assert_int_equal(again("10.0.0.6", NULL, ENETUNREACH, TTI_FOREVER), TUTTI_E_NETWORK);
    assert_in_range(world.now_ns / TTI_MS, 10000, 10400);
    assert_non_null(strstr(tutti_last_error(), "last: 10.0.0.6:80: Network is unreachable"));
    world.now_ns = 0;
    assert_int_equal(tti_connect_once(&port, "n1", 80, 2 * TTI_SECOND, &handle), TUTTI_E_NETWORK);
    assert_int_equal(world.now_ns / TTI_MS, 2000);
}

/* Who refuses has ended: also where another of its addresses is of a family that leads nowhere from here. */
static void a_server_that_has_ended_is_told_at_once(void **state)
{
    (void)state;
    assert_int_equal(again("10.0.0.1", NULL, 0, 0), TUTTI_E_NETWORK);
    assert_int_equal(world.now_ns, 0);
    assert_int_equal(again("10.0.0.1", "fd00::6", ENETUNREACH, TTI_FOREVER), TUTTI_E_NETWORK);
    assert_int_equal(world.now_ns, 0);
    assert_int_equal(again("fd00::6", "10.0.0.1", ENETUNREACH, TTI_FOREVER), TUTTI_E_NETWORK);
    assert_int_equal(world.now_ns, 0);
}

/* Whoever waits for a way hears that the job is over. */
static void waiting_for_a_way_may_be_in_vain(void **state)
{
    const tti_doubt doubt = { .is_vain = is_vain_after_a_second };
    tutti_status    st;

    (void)state;
    tti_doubt_waits(&doubt);
    st = again("10.0.0.6", NULL, ENETUNREACH, TTI_FOREVER);
    tti_doubt_waits(NULL);
    assert_int_equal(st, TUTTI_E_NETWORK);
    assert_in_range(world.now_ns / TTI_MS, 1000, 1400);
    assert_non_null(strstr(tutti_last_error(), "n1 port 80 is not waited for any more"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_silent_address_costs_a_moment),
        TEST(a_refusal_costs_nothing),
        TEST(the_first_may_still_win),
        TEST(a_silent_address_does_not_hold_up_rounds),
        TEST(none_answers),
        TEST(what_is_in_vain_is_no_time_out),
        TEST(an_address_of_our_own),
        TEST(a_refusal_asks_for_rank_0),
        TEST(waiting_is_explained),
        TEST(without_loopback),
        TEST(nobody_lists_interfaces_to_reach_loopback),
        TEST(behind_a_service),
        TEST(a_way_that_is_lost_for_a_second_ends_nothing),
        TEST(a_way_that_stays_lost_is_told),
        TEST(a_server_that_has_ended_is_told_at_once),
        TEST(waiting_for_a_way_may_be_in_vain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
