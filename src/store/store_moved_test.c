/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_moved_test.c
 * Goal    a store whose world has gone on elsewhere says so, and its handles are led there, step by step; what it says of an earlier
 *         world, or what is not there, leads nobody anywhere.
 * Method  several tcp stores of this process, and a child that serves one and is stopped. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store.h>
#include "store/store_moved.h"
#include "store/tcp_pool.h"
#include <tutti/private.h>

enum { LIMIT_MS = 60000 };

static int64_t in_time(void)
{
    return tti_port_now(tti_port_system()) + LIMIT_MS * TTI_MS;
}

static tutti_store *serve(void)
{
    tutti_tcp_store_options o = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    o.host = "127.0.0.1";
    o.is_master = true;
    o.timeout_ms = LIMIT_MS;
    assert_int_equal(tutti_tcp_store_open(&o, &store), TUTTI_OK);
    return store;
}

static tutti_store *reach(int port)
{
    tutti_store *store = NULL;

    assert_int_equal(tti_tcp_store_reach(tti_port_system(), "127.0.0.1", (uint16_t)port, LIMIT_MS, in_time(), &store), TUTTI_OK);
    return store;
}

static tutti_store *view_of(tutti_store *store)
{
    tutti_store *view = NULL;

    assert_int_equal(tutti_prefix_store_open("job 7", store, &view), TUTTI_OK);
    return view;
}

/* A handle with a view is led to the place of served, and a fresh one is: members see the same below the view. */
static void give_up(tutti_store *served, tutti_store *view)
{
    tti_store_tell_moved(served, view, "127.0.0.1");
    assert_true(tti_tcp_store_redirect(tutti_store_underlying_non_prefix(view), "127.0.0.1", (uint16_t)tutti_tcp_store_port(served)));
}

static void await_moved(tutti_store *store, const char *key)
{
    const char *one = key;

    assert_int_equal(tti_store_wait_until(store, &one, 1, in_time()), TUTTI_OK);
}

static void expect_led_to(tutti_store *view, bool led, int port)
{
    bool moved = !led;

    assert_int_equal(tti_store_follow(view, in_time(), &moved), TUTTI_OK);
    assert_int_equal(moved, led);
    assert_int_equal(tutti_tcp_store_port(tutti_store_underlying_non_prefix(view)), port);
}

static void who_comes_is_led_to_the_last_one(void **state)
{
    tutti_store *stores[3] = { serve(), serve(), serve() };
    const int    ports[3] = { tutti_tcp_store_port(stores[0]), tutti_tcp_store_port(stores[1]), tutti_tcp_store_port(stores[2]) };
    tutti_store *member = reach(ports[0]), *late = reach(ports[0]), *first = reach(ports[0]);
    tutti_store *member_view = view_of(member), *late_view = view_of(late), *first_view = view_of(first);
    char         last[64];
    tutti_bytes  said = { 0 };

    (void)state;
    expect_led_to(late_view, false, ports[0]);
    give_up(stores[1], member_view);
    await_moved(first, "job 7/tutti/moved");
    expect_led_to(late_view, true, ports[1]);
    expect_led_to(late_view, false, ports[1]);
    expect_led_to(late, false, ports[1]); /* of what is not below the view nothing is said */
    give_up(stores[2], member_view);
    snprintf(last, sizeof last, "127.0.0.1 %d ", ports[2]);
    while (said.data == NULL || strncmp(said.data, last, strlen(last)) != 0) { /* the one that all were given at first says the latest */
        tutti_bytes_free(&said);
        assert_int_equal(tutti_store_get(first, "job 7/tutti/moved", LIMIT_MS, &said), TUTTI_OK);
        poll(NULL, 0, 1);
    }
    tutti_bytes_free(&said);
    await_moved(stores[1], "job 7/tutti/moved");
    expect_led_to(late_view, true, ports[2]); /* from the second one, which was told, too */
    expect_led_to(first_view, true, ports[2]);
    tutti_store_close(member_view), tutti_store_close(late_view), tutti_store_close(first_view);
    tutti_store_close(member), tutti_store_close(late), tutti_store_close(first);
    tutti_store_close(stores[2]), tutti_store_close(stores[1]), tutti_store_close(stores[0]);
}

static void what_is_not_there_is_named(void **state)
{
    tutti_store *store = serve(), *fresh = serve(), *member = reach(tutti_tcp_store_port(store));
    const int    port = tutti_tcp_store_port(store);
    bool         moved = true;
    char         words[64];

    (void)state;
    snprintf(words, sizeof words, "with one at 127.0.0.1 port %d of host '", tutti_tcp_store_port(fresh));
    give_up(fresh, member);
    await_moved(store, "tutti/moved");
    tutti_store_close(member);
    tutti_store_close(fresh);
    member = reach(port);
    assert_int_equal(tti_store_follow(member, in_time(), &moved), TUTTI_E_NETWORK);
    assert_false(moved);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
    tti_store_forget_moved(member, in_time()); /* as a new world does */
    expect_led_to(member, false, port);
    assert_int_equal(tutti_store_set(store, "tutti/moved", "no address", 10), TUTTI_OK);
    expect_led_to(member, false, port);
    tutti_store_close(member);
    tutti_store_close(store);
}

/* A call that was under way with the old one gives its connection back to nobody. */
static void a_connection_of_before_is_not_used_again(void **state)
{
    tutti_store  *stores[2] = { serve(), serve() };
    tutti_store  *member = reach(tutti_tcp_store_port(stores[0]));
    tti_tcp_pool *pool = tti_tcp_store_pool(member);
    uint32_t      led = atomic_load(&pool->led);
    tti_handle    handle = TTI_NO_HANDLE;
    int64_t       sum = 0;

    (void)state;
    assert_int_equal(tti_tcp_pool_take(pool, in_time(), &handle), TUTTI_OK);
    assert_true(tti_tcp_store_redirect(member, "127.0.0.1", (uint16_t)tutti_tcp_store_port(stores[1])));
    tti_tcp_pool_put_back(pool, handle, led);
    assert_int_equal(tutti_store_add(member, "sum", 10, &sum), TUTTI_OK);
    assert_int_equal(tutti_store_add(stores[0], "sum", 1, &sum), TUTTI_OK);
    assert_int_equal(sum, 1);
    assert_int_equal(tutti_store_add(stores[1], "sum", 1, &sum), TUTTI_OK);
    assert_int_equal(sum, 11);
    tutti_store_close(member);
    tutti_store_close(stores[1]), tutti_store_close(stores[0]);
}

/* A process of its own, which serves until it is killed. */
static _Noreturn void play_server(int out)
{
    tutti_store_server_options o = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;
    int                        port;

    o.host = "127.0.0.1";
    if (tutti_store_server_start(&o, &server) != TUTTI_OK)
        _exit(1);
    port = tutti_store_server_port(server);
    if (write(out, &port, sizeof port) != sizeof port)
        _exit(1);
    for (;;)
        pause();
}

static void one_that_was_stopped_says_it_when_it_goes_on(void **state)
{
    tutti_store *fresh, *member, *late;
    int          ends[2], port = 0, status;
    pid_t        child;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0)
        play_server(ends[1]);
    assert_int_equal(read(ends[0], &port, sizeof port), sizeof port);
    fresh = serve();
    member = reach(port);
    late = reach(port);
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    give_up(fresh, member);
    kill(child, SIGCONT);
    await_moved(late, "tutti/moved");
    expect_led_to(late, true, tutti_tcp_store_port(fresh));
    tutti_store_close(late);
    tutti_store_close(member);
    kill(child, SIGSTOP); /* and one that is told while it is stopped holds nobody who closes */
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    tutti_store_close(fresh);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[0]);
    close(ends[1]);
}

/* No more descriptors until the end, which gives back what there was. */
static struct rlimit take_descriptors(void)
{
    struct rlimit was, none;
    const int     next = dup(0);

    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return was;
}

/* Who cannot open a connection for a while tells it afterwards: only a store that refuses is given up. */
static void who_has_no_descriptors_tells_it_later(void **state)
{
    const struct timespec some_tries = { 1, 500000000 };
    tutti_store  *stores[2] = { serve(), serve() };
    tutti_store  *member = reach(tutti_tcp_store_port(stores[0])), *late = reach(tutti_tcp_store_port(stores[0]));
    struct rlimit was;

    (void)state;
    was = take_descriptors();
    tti_store_tell_moved(stores[1], member, "127.0.0.1");
    nanosleep(&some_tries, NULL); /* all of them fail: there is nobody who could say so */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    await_moved(late, "tutti/moved");
    expect_led_to(late, true, tutti_tcp_store_port(stores[1]));
    tutti_store_close(late), tutti_store_close(member);
    tutti_store_close(stores[1]), tutti_store_close(stores[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_was_stopped_says_it_when_it_goes_on), /* first: it forks, and there are no threads yet */
        cmocka_unit_test(who_comes_is_led_to_the_last_one),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test(a_connection_of_before_is_not_used_again),
        cmocka_unit_test(who_has_no_descriptors_tells_it_later),
    };

    return cmocka_run_group_tests_name("store_moved", tests, NULL, NULL);
}
