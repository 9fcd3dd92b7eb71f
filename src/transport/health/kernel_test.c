/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_test.c
 * Goal    how a process ended is told by its descriptor, whenever its parent collects it.
 * Method  children that end; a thread collects each at the moment at which this one asks, which is a little later each time. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "transport/health/health.h"

enum { CHILDREN = 400, CODE = 7, PAUSES_MORE = 5, PAUSES_MAX = 1000 };

typedef struct collecting {
    pid_t       pid;
    int         pauses; /* before it is done */
    atomic_bool begins;
    bool        done;
} collecting;

static void collect(void *arg)
{
    collecting *c = arg;
    int         i;

    while (!atomic_load(&c->begins))
        continue;
    for (i = 0; i < c->pauses; i++)
        tti_pause();
    c->done = waitpid(c->pid, NULL, 0) == c->pid;
}

/* A child that has ended, and is not collected. */
static int end_child(pid_t *pid_out)
{
    struct pollfd ended = { .events = POLLIN };
    const pid_t   pid = fork();

    if (pid == 0)
        _exit(CODE);
    assert_true(pid > 0);
    ended.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    assert_true(ended.fd >= 0);
    assert_int_equal(poll(&ended, 1, -1), 1);
    *pid_out = pid;
    return ended.fd;
}

static void check(tti_end_cause cause)
{
    assert_int_equal(cause.kind, TTI_CAUSE_EXIT);
    assert_int_equal(cause.value, CODE);
}

/* Kernels before 6.15 tell nothing then. */
static bool tells_of_the_collected(void)
{
    tti_end_cause cause;
    pid_t         pid;
    const int     pidfd = end_child(&pid);

    check(tti_kernel_cause_of(pidfd));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    cause = tti_kernel_cause_of(pidfd);
    close(pidfd);
    if (cause.kind != TTI_CAUSE_UNKNOWN)
        check(cause);
    return cause.kind != TTI_CAUSE_UNKNOWN;
}

static void an_end_is_told_while_it_is_collected(void **state)
{
    int i;

    (void)state;
    if (!tells_of_the_collected())
        skip();
    for (i = 0; i < CHILDREN; i++) {
        collecting c = { .pauses = i * PAUSES_MORE % PAUSES_MAX };
        tti_thread thread = { 0 };
        const int  pidfd = end_child(&c.pid);

        assert_int_equal(tti_thread_start(&thread, "collect", collect, &c), TUTTI_OK);
        atomic_store(&c.begins, true);
        check(tti_kernel_cause_of(pidfd));
        tti_thread_join(&thread);
        assert_true(c.done);
        close(pidfd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_end_is_told_while_it_is_collected) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
