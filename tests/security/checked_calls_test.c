/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checked_calls_test.c
 * Goal    in a build with TUTTI_CFI a call through a pointer reaches a function of its own type, or one of others, or ends the process.
 * Method  children call through pointers that were spoiled, ours and one in a table of the library, and how they end is looked at.
 *         There is no such test in other builds: there they go on. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/port.h"

enum { WENT_ON = 42, STEP = 7 };

typedef int (*one_number)(int);

static int add_step(int a)
{
    return a + STEP;
}

static int64_t add_two(int64_t a, int64_t b)
{
    return a + b;
}

static const char data[64] = "no code";

/* What a pointer holds after somebody has written over it: the compiler is not to know. */
static one_number spoiled(const void *with)
{
    const void *volatile hidden = with;
    const void *seen = hidden;
    one_number  call;

    memcpy(&call, &seen, sizeof call);
    return call;
}

static const void *address_of_add_two(void)
{
    int64_t (*volatile from)(int64_t, int64_t) = add_two;
    int64_t (*seen)(int64_t, int64_t) = from;
    const void *at;

    memcpy(&at, &seen, sizeof at);
    return at;
}

static void call_it(const void *with)
{
    (void)spoiled(with)(1);
}

/* The signal that ended a child which did this; 0: it went on. */
static int ended_by(void (*deed)(const void *), const void *with)
{
    static const int ends[] = { SIGILL, SIGSEGV, SIGBUS, SIGTRAP };
    int              status = 0;
    size_t           i;
    pid_t            pid = fork();

    if (pid == 0) {
        for (i = 0; i < sizeof ends / sizeof ends[0]; i++)
            (void)signal(ends[i], SIG_DFL); /* cmocka would have them */
        deed(with);
        _exit(WENT_ON);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), WENT_ON);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void its_own_type_is_called(void **state)
{
    one_number volatile call = add_step;
    one_number          seen = call;
    const void         *at;

    (void)state;
    memcpy(&at, &seen, sizeof at);
    assert_int_equal(spoiled(at)(1), 1 + STEP);
}

static void another_type_ends_the_process(void **state)
{
    (void)state;
    assert_int_equal(ended_by(call_it, address_of_add_two()), SIGILL);
}

static void the_middle_of_a_function_ends_it(void **state)
{
    (void)state;
    assert_int_equal(ended_by(call_it, (const char *)address_of_add_two() + 4), SIGILL);
}

static void what_is_no_code_ends_it(void **state)
{
    (void)state;
    assert_int_equal(ended_by(call_it, data), SIGILL);
}

/* Of others nothing is known: SECURITY.md says so. */
static void what_is_of_others_is_called(void **state)
{
    int (*volatile from)(int) = abs;
    int (*seen)(int) = from;
    const void *at;

    (void)state;
    memcpy(&at, &seen, sizeof at);
    assert_int_equal(spoiled(at)(-3), 3);
}

/* The clock of a port is asked inside of the library. */
static void ask_port(const void *with)
{
    tti_port_ops ops = { .name = "spoiled" };
    tti_port     port = { &ops };

    memcpy(&ops.now_ns, &with, sizeof with);
    (void)tti_port_now(&port);
}

static void a_table_of_the_library_is_looked_at(void **state)
{
    (void)state;
    assert_int_equal(ended_by(ask_port, address_of_add_two()), SIGILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_type_is_called),
        cmocka_unit_test(another_type_ends_the_process),
        cmocka_unit_test(the_middle_of_a_function_ends_it),
        cmocka_unit_test(what_is_no_code_ends_it),
        cmocka_unit_test(what_is_of_others_is_called),
        cmocka_unit_test(a_table_of_the_library_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
