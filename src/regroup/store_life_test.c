/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_life_test.c
 * Goal    a store that lives, one that dies after it has answered, and one that is stopped are told apart; a stopped one
 *         is given its time from the first question on.
 * Method  a child serves a store, and is stopped and killed. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store.h>
#include "regroup/store_life.h"
#include <tutti/private.h>

#define LIMIT_NS (60 * TTI_SECOND)
#define SILENCE_NS (300 * TTI_MS)

typedef struct server {
    pid_t        pid;
    tutti_store *store; /* a handle of it */
} server;

static _Noreturn void serve(int out)
{
    tutti_store_server_options o = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *serving = NULL;
    int                        port;

    o.host = "127.0.0.1";
    if (tutti_store_server_start(&o, &serving) != TUTTI_OK)
        _exit(1);
    port = tutti_store_server_port(serving);
    if (write(out, &port, sizeof port) != sizeof port)
        _exit(1);
    for (;;)
        pause();
}

static int setup(void **state)
{
    static server           s;
    tutti_tcp_store_options o = TUTTI_TCP_STORE_OPTIONS;
    int                     ends[2], port = 0;

    assert_int_equal(pipe(ends), 0);
    s.pid = fork();
    if (s.pid == 0)
        serve(ends[1]);
    assert_int_equal(read(ends[0], &port, sizeof port), sizeof port);
    close(ends[0]);
    close(ends[1]);
    o.host = "127.0.0.1";
    o.port = port;
    assert_int_equal(tutti_tcp_store_open(&o, &s.store), TUTTI_OK);
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    server *s = *state;
    int     status;

    kill(s->pid, SIGKILL);
    (void)waitpid(s->pid, &status, 0);
    tutti_store_close(s->store);
    return 0;
}

static void end_with(const server *s, int number)
{
    int status;

    kill(s->pid, number);
    assert_int_equal(waitpid(s->pid, &status, WUNTRACED), s->pid);
}

static int64_t in_time(void)
{
    return tti_port_now(tti_port_system()) + LIMIT_NS;
}

static void one_that_lives_is_not_over_and_may_die_then(void **state)
{
    const server   *s = *state;
    tti_store_life *life = tti_store_life_ask(s->store, LIMIT_NS);

    assert_non_null(life);
    assert_false(tti_store_life_is_over(life, in_time()));
    end_with(s, SIGKILL);
    assert_true(tti_store_life_is_over(life, in_time()));
    assert_string_equal(tti_store_life_words(life), "is dead");
    tti_store_life_end(life);
}

static void one_that_is_stopped_is_over_when_its_time_is_up(void **state)
{
    const server   *s = *state;
    const int64_t   began_ns = tti_port_now(tti_port_system());
    tti_store_life *life;

    end_with(s, SIGSTOP);
    life = tti_store_life_ask(s->store, SILENCE_NS);
    assert_non_null(life);
    assert_true(tti_store_life_is_over(life, in_time()));
    assert_true(tti_port_now(tti_port_system()) - began_ns >= SILENCE_NS);
    assert_non_null(strstr(tti_store_life_words(life), "has not answered for "));
    tti_store_life_end(life);
    assert_false(tti_store_life_answers(s->store, tti_port_now(tti_port_system()) + SILENCE_NS));
}

/* Who leads has no more time than that, and who ends does not wait. */
static void one_that_is_stopped_holds_nobody(void **state)
{
    const server   *s = *state;
    const int64_t   began_ns = tti_port_now(tti_port_system());
    tti_store_life *life;

    end_with(s, SIGSTOP);
    life = tti_store_life_ask(s->store, LIMIT_NS);
    assert_non_null(life);
    assert_true(tti_store_life_is_over(life, tti_port_now(tti_port_system()) + SILENCE_NS));
    tti_store_life_end(life);
    assert_true(tti_port_now(tti_port_system()) - began_ns < LIMIT_NS / 2);
}

/* It goes on while it is asked. */
static void one_that_goes_on_in_time_lives(void **state)
{
    const server   *s = *state;
    tti_store_life *life;

    end_with(s, SIGSTOP);
    life = tti_store_life_ask(s->store, LIMIT_NS);
    assert_non_null(life);
    assert_true(tti_store_life_is_over(life, tti_port_now(tti_port_system()) + SILENCE_NS));
    kill(s->pid, SIGCONT);
    assert_false(tti_store_life_is_over(life, in_time()));
    tti_store_life_end(life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_lives_is_not_over_and_may_die_then, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_stopped_is_over_when_its_time_is_up, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_stopped_holds_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_goes_on_in_time_lives, setup, teardown),
    };

    return cmocka_run_group_tests_name("store_life", tests, NULL, NULL);
}
