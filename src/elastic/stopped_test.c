/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stopped_test.c
 * Goal    for how long those that are left have been stopped: as long as was looked; not while the launcher, too, did not run;
 *         and not at all once one of them runs.
 * Method  children that stop themselves, and looks at times of our own making. */
#include "elastic/stopped.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/port.h"

#define LOOK_NS (TTI_STOPPED_LOOK_MS * TTI_MS)
#define BEGAN   (1000 * TTI_SECOND)

static pid_t start_stopped(void)
{
    const pid_t pid = fork();
    int         status;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        raise(SIGSTOP);
        for (;;)
            pause();
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void as_long_as_somebody_looks(void **state)
{
    const tti_left left = { .pid = start_stopped(), .rank = 1 };
    tti_stopped    stopped = { 0 };
    int            i;

    (void)state;
    for (i = 0; i < 8; i++)
        assert_int_equal(tti_stopped_look(&stopped, &left, 1, BEGAN + i * LOOK_NS, 0), i * LOOK_NS + 1);
    assert_int_equal(tti_stopped_look(&stopped, &left, 1, BEGAN + 7 * LOOK_NS + LOOK_NS * 3 / 2, 0), LOOK_NS * 17 / 2 + 1); /* a late one */
    end(left.pid);
}

/* An hour in which nobody ran is no hour in which the others could have gone on. */
static void a_launcher_that_was_stopped_counts_little(void **state)
{
    const tti_left left = { .pid = start_stopped(), .rank = 1 };
    tti_stopped    stopped = { 0 };

    (void)state;
    assert_int_equal(tti_stopped_look(&stopped, &left, 1, BEGAN, 0), 1);
    assert_int_equal(tti_stopped_look(&stopped, &left, 1, BEGAN + 3600 * TTI_SECOND, 0), 2 * LOOK_NS + 1);
    assert_int_equal(tti_stopped_look(&stopped, &left, 1, BEGAN + 3600 * TTI_SECOND + LOOK_NS, 0), 3 * LOOK_NS + 1);
    end(left.pid);
}

static void who_runs_ends_the_count(void **state)
{
    const tti_left left[] = { { .pid = start_stopped(), .rank = 0 }, { .pid = start_stopped(), .rank = 1 } };
    tti_stopped    stopped = { 0 };
    int            status;

    (void)state;
    assert_int_equal(tti_stopped_look(&stopped, left, 2, BEGAN, 0), 1);
    assert_int_equal(tti_stopped_look(&stopped, left, 2, BEGAN + LOOK_NS, 0), LOOK_NS + 1);
    assert_int_equal(kill(left[1].pid, SIGCONT), 0);
    assert_int_equal(waitpid(left[1].pid, &status, WCONTINUED), left[1].pid);
    assert_int_equal(tti_stopped_look(&stopped, left, 2, BEGAN + 2 * LOOK_NS, 0), 0);
    assert_int_equal(tti_stopped_look(&stopped, left, 1, BEGAN + 3 * LOOK_NS, 0), 1); /* anew */
    end(left[0].pid);
    end(left[1].pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_long_as_somebody_looks),
        cmocka_unit_test(a_launcher_that_was_stopped_counts_little),
        cmocka_unit_test(who_runs_ends_the_count),
    };

    return cmocka_run_group_tests_name("stopped", tests, NULL, NULL);
}
