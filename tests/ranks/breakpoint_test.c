/* SPDX-License-Identifier: BSD-3-Clause
 *
 * breakpoint_test.c
 * Goal    tutti_breakpoint() starts the debugger on one rank, with its process, while all others wait;
 *         skipped calls do nothing; where no debugger can be started SIGCONT lets the rank go on; where
 *         nobody comes, the others go on, too.
 * Method  the debugger is a script that waits for the word of all others that they pause, a line of their
 *         logs, and then writes down how it was called. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { LOOKED_AT = 1, WRITTEN = 0 };

static void pause_path(const tt_ctx *t, int rank, char out[512])
{
    snprintf(out, 512, "%s/pauses.%d", t->dir, rank);
}

/* Nothing is left behind: the shell that starts the debugger is nobody's child, and may end later than the call that it was for. From here
 * on it is this process's, which waits for it in the end. */
static void adopt_shells(void)
{
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

static void await_shells(void)
{
    while (wait(NULL) > 0 || errno == EINTR)
        continue;
}

/* A pipe for each of the others, made by the one that is looked at before anybody pauses. */
static void make_pipes(tt_ctx *t)
{
    char path[512];
    int  rank;

    for (rank = 0; rank < t->size; rank++) {
        pause_path(t, rank, path);
        assert_int_equal(mkfifo(path, 0600), 0);
    }
}

/* A sink: this rank pauses. Opening the pipe waits for the debugger. */
static void tell_debugger(tutti_log_level level, const char *line, void *ctx)
{
    char  path[512];
    FILE *pipe;

    (void)level;
    if (strstr(line, "this one pauses") == NULL)
        return;
    pause_path(ctx, ((tt_ctx *)ctx)->rank, path);
    pipe = fopen(path, "w");
    if (pipe != NULL)
        fclose(pipe);
}

/* A debugger that reads the pipes of all others to their end, and writes its arguments into the file
 * "called". */
static void write_debugger(tt_ctx *t)
{
    char  path[512], command[600];
    FILE *script;
    int   rank;

    snprintf(path, sizeof path, "%s/debugger.%d", t->dir, t->rank);
    script = fopen(path, "w");
    assert_non_null(script);
    for (rank = 0; rank < t->size; rank++)
        if (rank != LOOKED_AT)
            fprintf(script, "cat %s/pauses.%d\n", t->dir, rank);
    fprintf(script, "echo \"$*\" >%s/called\n", t->dir);
    assert_int_equal(fclose(script), 0);
    snprintf(command, sizeof command, "sh %s", path);
    setenv("TUTTI_DEBUGGER", command, 1);
}

static bool read_called(tt_ctx *t, char *out, size_t bytes)
{
    char  path[512];
    FILE *called;
    bool  there;

    snprintf(path, sizeof path, "%s/called", t->dir);
    called = fopen(path, "r");
    if (called == NULL)
        return false;
    there = fgets(out, (int)bytes, called) != NULL;
    fclose(called);
    return there;
}

static void others_wait_for_the_debugger(tt_ctx *t)
{
    char     called[64] = "", expected[64];
    uint32_t pid = 0;

    write_debugger(t);
    adopt_shells();
    if (t->rank == LOOKED_AT)
        make_pipes(t);
    else
        OK(tutti_log_set_sink("pauses", tell_debugger, t));
    OK(tutti_breakpoint(LOOKED_AT, 1, 0)); /* skipped */
    assert_false(read_called(t, called, sizeof called));
    OK(tutti_barrier(t->group));
    OK(tutti_breakpoint(LOOKED_AT, 1, 0));
    assert_true(read_called(t, called, sizeof called));
    if (t->rank == LOOKED_AT)
        pid = (uint32_t)getpid();
    OK(tutti_broadcast(TUTTI_SPAN(&pid, 1), LOOKED_AT, t->group));
    snprintf(expected, sizeof expected, "-p %u\n", pid);
    assert_string_equal(called, expected);
    assert_int_equal(tutti_breakpoint(t->size, 0, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_breakpoint(0, -1, 0), TUTTI_E_ARG);
    await_shells();
}

static void *let_go_on(void *arg)
{
    while (atomic_load((_Atomic int *)arg) == 0) {
        kill(getpid(), SIGCONT);
        sched_yield();
    }
    return NULL;
}

static void without_a_debugger_a_signal_will_do(tt_ctx *t)
{
    static _Atomic int over;
    pthread_t          helper;

    setenv("TUTTI_DEBUGGER", "/nowhere/debugger", 1);
    adopt_shells();
    if (t->rank == LOOKED_AT)
        assert_int_equal(pthread_create(&helper, NULL, let_go_on, &over), 0);
    OK(tutti_breakpoint(LOOKED_AT, 0, 0));
    atomic_store(&over, 1);
    if (t->rank == LOOKED_AT)
        pthread_join(helper, NULL);
    await_shells();
}

static void nobody_comes_in_time(tt_ctx *t)
{
    setenv("TUTTI_DEBUGGER", "/nowhere/debugger", 1);
    adopt_shells();
    if (t->rank != LOOKED_AT) { /* an hour, but for the one that is looked at, who comes without a debugger */
        OK(tutti_breakpoint(LOOKED_AT, 0, 0));
        return;
    }
    assert_int_equal(tutti_breakpoint(LOOKED_AT, 0, 500), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "no debugger came"));
    await_shells();
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(others_wait_for_the_debugger, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(without_a_debugger_a_signal_will_do, .ranks = 2),
        TT_TEST(nobody_comes_in_time, .ranks = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
