/* SPDX-License-Identifier: BSD-3-Clause
 *
 * beside.c - runs that wait more than they compute, several at a time.
 *
 * How     Each has a process of its own, the runner, which does with it what the harness does with one run, and says what
 *         came of it by its exit code. What it prints is kept, and shown in one piece when it has ended.
 * True    The harness stays single threaded, and a run has its directory, port and hosts as if it were alone. A runner
 *         dies with the harness, and its ranks with it. */
#include "harness/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the runner prints goes to the file. */
static _Noreturn void be_runner(const tt_run *run, int words, pid_t harness)
{
    tt_run own = *run;
    int    verdict;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (getppid() != harness || dup2(words, 1) < 0 || dup2(words, 2) < 0)
        _exit(TT_FAILED);
    own.parent = getpid();
    verdict = tt_run_and_say(&own);
    fflush(NULL);
    _exit(verdict);
}

static void show(int words)
{
    char    text[4096];
    ssize_t got;
    off_t   at = 0;

    fflush(NULL);
    while ((got = pread(words, text, sizeof text, at)) > 0) {
        fwrite(text, 1, (size_t)got, stdout);
        at += got;
    }
    close(words);
}

static int verdict_of(int status, const tt_run *run)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    printf("%s (%s): its runner was ended by signal %d (%s)\n", run->test->name, run->word, WTERMSIG(status),
           strsignal(WTERMSIG(status)));
    return TT_FAILED;
}

/* Take leave of those that have ended: whether there was one. */
static bool reap(tt_beside *b)
{
    bool any = false;
    int  i, status;

    for (i = 0; i < TT_BESIDE_MAX; i++) {
        tt_runner *r = &b->runners[i];

        if (r->pid == 0 || waitpid(r->pid, &status, WNOHANG) != r->pid)
            continue;
        r->pid = 0;
        b->n--;
        show(r->words);
        tt_verdicts_add(&b->verdicts, verdict_of(status, &r->run));
        any = true;
    }
    return any;
}

static void await_one(tt_beside *b)
{
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD); /* blocked: one that comes before the wait ends it */
    while (!reap(b))
        sigwaitinfo(&chld, NULL);
}

void tt_beside_start(tt_beside *b, const tt_run *run)
{
    const pid_t harness = getpid();
    tt_runner  *r = b->runners;

    if (b->n == TT_BESIDE_MAX)
        await_one(b);
    while (r->pid != 0)
        r++;
    r->run = *run;
    r->words = memfd_create("tutti-test", MFD_CLOEXEC);
    fflush(NULL);
    r->pid = r->words >= 0 ? fork() : -1;
    if (r->pid == 0)
        be_runner(&r->run, r->words, harness);
    if (r->pid > 0) {
        b->n++;
        return;
    }
    printf("%s (%s): cannot start its runner: %s\n", run->test->name, run->word, strerror(errno));
    if (r->words >= 0)
        close(r->words);
    r->pid = 0;
    tt_verdicts_add(&b->verdicts, TT_FAILED);
}

void tt_beside_end(tt_beside *b)
{
    while (b->n > 0)
        await_one(b);
}
