/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leaving_test.c
 * Goal    a process that has begun to end is told from one that runs, also when its main thread has ended.
 * Method  children in each state; that of the kernel is awaited by looking at it. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "elastic/leaving.h"

enum { READY = 'r' };

static int pipe_ends[2];

static pid_t start(void (*child)(void))
{
    pid_t pid;
    char  word = 0;

    assert_int_equal(pipe(pipe_ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child();
        _exit(9);
    }
    close(pipe_ends[1]);
    assert_int_equal(read(pipe_ends[0], &word, 1), 1);
    assert_int_equal(word, READY);
    close(pipe_ends[0]);
    return pid;
}

static void say_ready(void)
{
    const char word = READY;

    if (write(pipe_ends[1], &word, 1) != 1)
        _exit(8);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool main_thread_is_gone(pid_t pid)
{
    char  path[32], text[512] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    return strstr(text, ") Z ") != NULL;
}

static void wait_for_a_signal(void)
{
    say_ready();
    pause();
}

static void who_runs_or_sleeps_does_not_leave(void **state)
{
    const pid_t pid = start(wait_for_a_signal);

    (void)state;
    assert_false(tti_is_leaving(getpid()));
    assert_false(tti_is_leaving(pid));
    end(pid);
    assert_false(tti_is_leaving(pid)); /* there is none */
}

static void who_was_killed_leaves(void **state)
{
    const pid_t pid = start(wait_for_a_signal);
    siginfo_t   info;

    (void)state;
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(tti_is_leaving(pid));
    end(pid);
}

static void *stay(void *arg)
{
    (void)arg;
    say_ready();
    for (;;)
        pause();
    return NULL;
}

static void end_the_main_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, stay, NULL) != 0)
        _exit(8);
    pthread_exit(NULL);
}

static void a_process_without_its_main_thread_does_not_leave(void **state)
{
    const pid_t pid = start(end_the_main_thread);

    (void)state;
    while (!main_thread_is_gone(pid))
        sched_yield();
    assert_false(tti_is_leaving(pid));
    end(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_runs_or_sleeps_does_not_leave),
        cmocka_unit_test(who_was_killed_leaves),
        cmocka_unit_test(a_process_without_its_main_thread_does_not_leave),
    };

    return cmocka_run_group_tests_name("leaving", tests, NULL, NULL);
}
