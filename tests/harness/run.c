/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - the parent: for each test and transport it prepares, forks, waits, judges and clears away.
 *
 * True    One thread, so that fork is safe under every sanitizer. Each rank leads a process group, whose
 *         members are reaped here when orphaned (child subreaper): what a rank leaves behind is seen.
 *         Nothing is ever signalled but these groups, by the leader's pid, before it has been reaped or
 *         while a member of its group is still there. */
#include "harness/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tutti/private.h>
#include "harness/scratch.h"

enum { GRACE_MS = 3000, TAIL_LINES = 30, WORDS_MAX = 8 };

static const int64_t MS = 1000000;

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

/* A process of a run, as far as it is known. */
typedef struct child {
    pid_t pid; /* 0: never started */
    bool  done;
    bool  overdue; /* ended by the harness */
    bool  strays;  /* left processes behind */
    int   status;
} child;

void tt_rank_log(const tt_run *run, int rank, char path_out[TT_PATH_MAX])
{
    snprintf(path_out, TT_PATH_MAX, "%s/rank%d.log", run->dir, rank);
}

bool tt_run_threads(const tt_run *run)
{
    return strncmp(run->word, "threads", strlen("threads")) == 0;
}

int tt_run_processes(const tt_run *run)
{
    return tt_run_threads(run) ? 1 : run->test->ranks;
}

/* ---- starting and waiting ---------------------------------------------------------------------- */

static bool start_all(const tt_run *run, child *children)
{
    int i;

    fflush(NULL);
    for (i = 0; i < tt_run_processes(run); i++) {
        children[i].pid = fork();
        if (children[i].pid == 0)
            tt_rank_main(run, i);
        if (children[i].pid < 0) {
            fprintf(stderr, "cannot start rank %d: %s\n", i, strerror(errno));
            children[i].pid = 0;
            return false;
        }
        setpgid(children[i].pid, children[i].pid); /* whoever comes first: the child does it too */
    }
    return true;
}

/* End what is left of a rank's process group; true if there was anything alive. */
static bool clear_group(pid_t group)
{
    while (waitpid(-group, NULL, WNOHANG) > 0)
        ;
    if (kill(-group, 0) != 0)
        return false;
    kill(-group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0)
        ;
    return true;
}

static bool must_die(const tt_run *run, int i)
{
    return i == run->test->dies || (i < 32 && (run->test->also_die >> i & 1u) != 0);
}

static bool ended_well(const tt_run *run, int i, const child *c)
{
    if (c->overdue || c->strays)
        return false;
    if (must_die(run, i))
        return WIFSIGNALED(c->status) || WEXITSTATUS(c->status) == TT_DIED;
    return WIFEXITED(c->status) && WEXITSTATUS(c->status) == TT_PASSED;
}

/* Look who has ended: how many are left; *bad_out becomes true when one ended badly. */
static int look(const tt_run *run, child *children, bool *bad_out)
{
    int left = 0;
    int i;

    for (i = 0; i < tt_run_processes(run); i++) {
        child *c = &children[i];

        if (c->pid == 0 || c->done)
            continue;
        if (waitpid(c->pid, &c->status, WNOHANG) != c->pid) {
            left++;
            continue;
        }
        c->done = true;
        c->strays = clear_group(c->pid) && WIFEXITED(c->status) && !must_die(run, i);
        if (!ended_well(run, i, c))
            *bad_out = true;
    }
    return left;
}

static void wait_all(const tt_run *run, child *children)
{
    int64_t  deadline = tti_now_ns() + run->test->limit_ms * MS;
    bool     bad = false;
    bool     hurried = false;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (look(run, children, &bad) > 0) {
        const int64_t   now = tti_now_ns();
        struct timespec left;

        if (bad && !hurried && deadline > now + GRACE_MS * MS)
            deadline = now + GRACE_MS * MS;
        hurried = bad;
        if (now >= deadline)
            return;
        left.tv_sec = (time_t)((deadline - now) / (1000 * MS));
        left.tv_nsec = (long)((deadline - now) % (1000 * MS));
        sigtimedwait(&chld, NULL, &left);
    }
}

static void end_stragglers(const tt_run *run, child *children)
{
    int i;

    for (i = 0; i < tt_run_processes(run); i++) {
        child *c = &children[i];

        if (c->pid == 0 || c->done)
            continue;
        kill(-c->pid, SIGKILL);
        while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
            ;
        c->done = true;
        c->overdue = true;
        clear_group(c->pid);
    }
}

/* ---- judging ----------------------------------------------------------------------------------- */

static void say_end(const tt_run *run, int i, const child *c, char *out, size_t bytes)
{
    const char *must = must_die(run, i) ? "was to die, but " : "";

    if (c->pid != 0 && must_die(run, i) && ended_well(run, i, c))
        snprintf(out, bytes, "died, as it was to");
    else if (c->pid == 0)
        snprintf(out, bytes, "was not started");
    else if (c->overdue)
        snprintf(out, bytes, "was still running and had to be ended");
    else if (WIFSIGNALED(c->status))
        snprintf(out, bytes, "was ended by signal %d (%s)", WTERMSIG(c->status),
                 strsignal(WTERMSIG(c->status)));
    else if (WEXITSTATUS(c->status) == TT_PASSED)
        snprintf(out, bytes, "%s%s", must, c->strays ? "left processes behind" : "passed");
    else if (WEXITSTATUS(c->status) == TT_FAILED)
        snprintf(out, bytes, "%sfailed", must);
    else
        snprintf(out, bytes, "%sended with exit code %d", must, WEXITSTATUS(c->status));
}

static void report(const tt_run *run, const child *children)
{
    const char *who = tt_run_threads(run) ? "the ranks' process" : "rank";
    int         i;

    fflush(stdout);
    for (i = 0; i < tt_run_processes(run); i++) {
        char words[128];
        char path[TT_PATH_MAX];

        say_end(run, i, &children[i], words, sizeof words);
        fprintf(stderr, "---- %s %d %s; its last lines:\n", who, i, words);
        tt_rank_log(run, i, path);
        tt_tail(path, "  | ", TAIL_LINES);
    }
}

static verdict judge(const tt_run *run, const child *children)
{
    int i;

    for (i = 0; i < tt_run_processes(run); i++)
        if (children[i].pid == 0 || !ended_well(run, i, &children[i]))
            return FAILED;
    return PASSED;
}

/* ---- one run ----------------------------------------------------------------------------------- */

/* Whether hosts are joined by a relay. */
static bool is_far(const tt_test *test)
{
    const tt_relay_link *link = &test->link;

    return link->delay_ns > 0 || link->jitter_ns > 0 || link->loss > 0 || link->rate_bps > 0;
}

static bool open_hosts(tt_run *run, char *reason, size_t bytes)
{
    const bool made = is_far(run->test) ? tt_hosts_open_far(&run->test->link, &run->hosts, reason, bytes)
                                        : tt_hosts_open(&run->hosts, reason, bytes);

    if (made && tt_run_rails(run) && !tt_hosts_join_again(&run->hosts, reason, bytes)) {
        tt_hosts_close(&run->hosts);
        return false;
    }
    if (!made || tt_run_carried(run) == NULL || tt_hosts_can_show_devices(&run->hosts))
        return made;
    snprintf(reason, bytes, "no /sys of a host's own to be had, where a library looks for its devices: %s", strerror(errno));
    tt_hosts_close(&run->hosts);
    return false;
}

/* Words for a table entry that makes no sense; NULL if it does. */
static const char *nonsense(const tt_run *run)
{
    const tt_test *test = run->test;

    if (test->ranks < 1 || test->ranks > TT_RANKS_MAX || test->dies >= test->ranks)
        return "there is no such number of ranks, or no rank that is to die";
    if (test->hosts < 1 || test->hosts > TT_HOSTS_MAX || test->hosts > test->ranks)
        return "there is no such number of hosts";
    if (strcmp(run->word, "shm") != 0 && strcmp(run->word, "tcp") != 0 &&
        strcmp(run->word, "threads") != 0 && strcmp(run->word, "threads-tcp") != 0)
        return "transports are shm, tcp, threads and threads-tcp";
    if (is_far(test) && test->hosts != TT_HOSTS)
        return "what is between hosts needs two of them";
    if (tt_run_threads(run) && (test->dies >= 0 || test->also_die != 0 || test->hosts > 1))
        return "a thread cannot die alone, or be on another host";
    return NULL;
}

static bool prepare(tt_run *run, int *port_lock_out)
{
    char secret[TT_PATH_MAX];

    if (!tt_dir_make(run->dir, sizeof run->dir)) {
        fprintf(stderr, "cannot make a private directory: %s\n", strerror(errno));
        run->dir[0] = '\0';
        return false;
    }
    run->port = tt_port_take(port_lock_out);
    if (run->port == 0) {
        fprintf(stderr, "there is no free TCP port\n");
        return false;
    }
    run->marks = mmap(NULL, TT_MARKS * sizeof *run->marks, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run->marks == MAP_FAILED) {
        run->marks = NULL;
        return false;
    }
    snprintf(secret, sizeof secret, "%s/secret", run->dir);
    return (run->test->hosts == 1 && !run->test->tls) || tt_secret_write(secret);
}

static void clear_away(tt_run *run, int port_lock)
{
    tt_hosts_close(&run->hosts);
    tt_port_give_back(port_lock);
    if (run->marks != NULL)
        munmap(run->marks, TT_MARKS * sizeof *run->marks);
    if (run->dir[0] != '\0')
        tt_dir_remove(run->dir);
}

static verdict run_one(tt_run *run)
{
    child       children[TT_RANKS_MAX] = { { 0 } };
    char        reason[256];
    const char *wrong = nonsense(run);
    verdict     result = FAILED;
    int         port_lock = -1;

    if (wrong != NULL) {
        fprintf(stderr, "%s (%s): %s\n", run->test->name, run->word, wrong);
        return FAILED;
    }
    if (run->test->hosts > 1 && !open_hosts(run, reason, sizeof reason)) {
        printf("%s (%s): SKIP: %s\n", run->test->name, run->word, reason);
        return SKIPPED;
    }
    if (!prepare(run, &port_lock))
        goto out;
    if (start_all(run, children))
        wait_all(run, children);
    end_stragglers(run, children);
    result = judge(run, children);
    if (result != PASSED)
        report(run, children);

out:
    clear_away(run, port_lock);
    return result;
}

int tt_run_and_say(tt_run *run)
{
    const tt_test *test = run->test;
    const int64_t  begin = tti_now_ns();
    const char    *hosts = tt_run_rails(run) ? ", 2 hosts, 2 rails" : test->hosts > 1 ? ", 2 hosts" : "";
    const verdict  result = run_one(run);

    if (result == SKIPPED)
        return TT_SKIPPED;
    printf("%s (%s, %d ranks%s): %s, %lld ms\n", test->name, run->word, test->ranks, hosts,
           result == PASSED ? "ok" : "FAILED", (long long)((tti_now_ns() - begin) / MS));
    return result == PASSED ? TT_PASSED : TT_FAILED;
}

/* All transports of a test. */
static void run_transports(const tt_test *test, const tt_world_ops *world, tt_beside *beside)
{
    char  words[128];
    char *rest = words;
    char *word;

    snprintf(words, sizeof words, "%s%s", test->transports, test->threads ? ",threads" : "");
    while ((word = strsep(&rest, ", ")) != NULL) {
        tt_run run = { .test = test, .world = world, .parent = getpid() };

        if (*word == '\0')
            continue;
        snprintf(run.word, sizeof run.word, "%s", word);
        if (test->waits) {
            tt_beside_start(beside, &run);
        } else {
            tt_beside_end(beside);
            tt_verdicts_add(&beside->verdicts, tt_run_and_say(&run));
        }
    }
}

int tt_run_all(const tt_test *tests, size_t n, const tt_world_ops *world)
{
    tt_beside beside = { .n = 0 };
    sigset_t  chld;
    size_t    i;

    setvbuf(stdout, NULL, _IOLBF, 0);
    tt_env_clear();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    for (i = 0; i < n; i++)
        run_transports(&tests[i], world, &beside);
    tt_beside_end(&beside);
    if (beside.verdicts.failed)
        return TT_FAILED;
    return beside.verdicts.skipped ? TT_SKIPPED : TT_PASSED;
}

int tt_main_bare(const tt_test *tests, size_t n)
{
    return tt_run_all(tests, n, NULL);
}
