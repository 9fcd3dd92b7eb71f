/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.c - the processes of a job: the store, as a launcher would have it, and the ranks; and what became of them.
 *
 * The runner stays single threaded. It ends what it has started by its pid, and ranks end with the runner. */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness/scratch.h"
#include <tutti/private.h>

enum { LOOK_MS = 5, STACKS_MAX = 16384 };

typedef struct rank_process {
    pid_t pid; /* 0: has ended */
    int   status;
} rank_process;

/* ---- the store ---- */

static _Noreturn void keep_store(const tt_job *job, int port_fd)
{
    tutti_store_server_options opts = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;
    char                       path[200];
    int                        port;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (job->net != NULL && !tt_hosts_enter(job->net, RANKS_MAX))
        _exit(1);
    snprintf(path, sizeof path, "%s/secret", job->dir);
    opts.host = job->store_host;
    opts.secret_file = path;
    if (tutti_store_server_start(&opts, &server) != TUTTI_OK) {
        fprintf(stderr, "no store: %s\n", tutti_last_error());
        _exit(1);
    }
    port = tutti_store_server_port(server);
    if (write(port_fd, &port, sizeof port) != sizeof port)
        _exit(1);
    for (;;)
        pause();
}

static pid_t start_store(tt_job *job)
{
    int   ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid = fork();
    if (pid == 0)
        keep_store(job, ends[1]);
    close(ends[1]);
    if (pid > 0 && read(ends[0], &job->store_port, sizeof job->store_port) != sizeof job->store_port) {
        waitpid(pid, NULL, 0);
        pid = -1;
    }
    close(ends[0]);
    return pid;
}

/* ---- the ranks ---- */

static bool start_ranks(const tt_job *job, rank_process *ranks)
{
    int slot;

    for (slot = 0; slot < job->size; slot++) {
        ranks[slot].pid = fork();
        if (ranks[slot].pid == 0)
            tt_fault_rank(job, slot);
        if (ranks[slot].pid < 0)
            return false;
        atomic_store(&job->board->pids[slot], (int)ranks[slot].pid);
    }
    return true;
}

static void end_rank(rank_process *r)
{
    if (r->pid <= 0)
        return;
    kill(r->pid, SIGKILL);
    while (waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR)
        ;
    r->pid = 0;
}

/* How a process may end whose rank was a victim, or left. */
static bool ended_as_planned(const round_page *page, int slot, int status)
{
    static const int signals[FAULTS] = { [F_KILL] = SIGKILL, [F_SEGV] = SIGSEGV, [F_ABORT] = SIGABRT };
    const tt_draw      *d = &page->plan;

    if (page->size == 0)
        return false;
    if (d->leaves >= 0 && page->slots[d->leaves] == slot)
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (page->slots[d->victim] != slot || atomic_load(&page->hit_ns) == 0)
        return false;
    return WIFSIGNALED(status) && WTERMSIG(status) == signals[d->what];
}

static bool ended_well(const tt_job *job, int slot, int status)
{
    int round;

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    for (round = 0; round < ROUNDS_MAX; round++)
        if (ended_as_planned(&job->board->rounds[round], slot, status))
            return true;
    return false;
}

/* As a launcher does: those that wait for it to join look there. */
static void tell_end(const tt_job *job, int slot, pid_t pid, int status)
{
    tti_ending ending = { .version = TTI_ENDING_VERSION, .rank = slot, .local = slot, .pid = pid };

    if (WIFSIGNALED(status))
        ending.signal = WTERMSIG(status);
    else
        ending.exit_code = WEXITSTATUS(status);
    gethostname(ending.host, sizeof ending.host - 1);
    tti_bulletin_post(job->bulletin, &ending);
}

/* Take the ends of ranks; how many are left, or -1: one has ended that should not have. */
static int reap(const tt_job *job, rank_process *ranks, char *words, size_t bytes)
{
    int left = 0, slot;

    for (slot = 0; slot < job->size; slot++) {
        rank_process *r = &ranks[slot];

        if (r->pid > 0 && waitpid(r->pid, &r->status, WNOHANG) == r->pid) {
            tell_end(job, slot, r->pid, r->status);
            r->pid = 0;
            if (!ended_well(job, slot, r->status)) {
                snprintf(words, bytes, "process %d ended with %s %d: %s", slot,
                         WIFSIGNALED(r->status) ? "signal" : "exit code",
                         WIFSIGNALED(r->status) ? WTERMSIG(r->status) : WEXITSTATUS(r->status),
                         job->board->where[slot]);
                return -1;
            }
        }
        left += r->pid > 0;
    }
    return left;
}

/* Start processes for the slots that the ranks want filled, once those that sat there have ended. */
static void start_newcomers(const tt_job *job, rank_process *ranks)
{
    unsigned wanted = atomic_load(&job->board->wanted);
    int      slot;

    for (slot = 0; slot < job->size; slot++) {
        if ((wanted & 1u << slot) == 0 || ranks[slot].pid > 0)
            continue;
        ranks[slot].pid = fork();
        if (ranks[slot].pid == 0)
            tt_fault_newcomer(job, slot);
        atomic_store(&job->board->pids[slot], (int)ranks[slot].pid);
        atomic_fetch_and(&job->board->wanted, ~(1u << slot));
    }
}

/* Let those that were stopped go on; again and again, for one may stop later than it says. */
static void let_go(const tt_job *job, const rank_process *ranks)
{
    int round, slot;

    for (round = 0; round < ROUNDS_MAX; round++) {
        const pid_t pid = (pid_t)atomic_load(&job->board->rounds[round].let_go_pid);

        for (slot = 0; slot < job->size && pid > 0; slot++)
            if (ranks[slot].pid == pid)
                kill(pid, SIGCONT);
    }
}

/* ---- what hangs ---- */

static void print_stacks(pid_t pid)
{
    char  command[256];
    char *text = calloc(1, STACKS_MAX);
    FILE *out;
    size_t n;

    snprintf(command, sizeof command,
             "kill -CONT %d; timeout 30 gdb -p %d -batch -ex 'thread apply all bt 14' 2>/dev/null | grep '^[#T]'",
             (int)pid, (int)pid);
    out = text != NULL ? popen(command, "r") : NULL;
    if (out != NULL) {
        n = fread(text, 1, STACKS_MAX - 1, out);
        text[n] = '\0';
        fprintf(stderr, "%s", text);
        pclose(out);
    }
    free(text);
}

/* Whether the kernel sees it run, sleep, stopped or dead. */
static void print_state(pid_t pid)
{
    char  path[64], line[128];
    FILE *status;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    status = pid > 0 ? fopen(path, "r") : NULL;
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "State:", 6) == 0)
            fprintf(stderr, "  %s", line);
    if (status != NULL)
        fclose(status);
}

static void print_all(const tt_job *job, const rank_process *ranks, bool stacks)
{
    char path[200], prefix[32];
    int  slot;

    for (slot = 0; slot < job->size; slot++) {
        fprintf(stderr, "---- process %d (%s): %s\n", slot, ranks[slot].pid > 0 ? "there" : "has ended",
                job->board->where[slot]);
        print_state(ranks[slot].pid);
        snprintf(path, sizeof path, "%s/rank-%d.log", job->dir, slot);
        snprintf(prefix, sizeof prefix, "  %d | ", slot);
        tt_tail(path, prefix, 8);
        if (stacks && ranks[slot].pid > 0)
            print_stacks(ranks[slot].pid);
    }
}

/* ---- a job ---- */

static void wait_a_little(void)
{
    const struct timespec a_little = { .tv_nsec = LOOK_MS * 1000000L };
    sigset_t              chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigtimedwait(&chld, NULL, &a_little);
}

static job_end watch(const tt_job *job, rank_process *ranks, char *words, size_t bytes)
{
    int64_t since = tti_now_ns();
    int     round = -1, left;

    while ((left = reap(job, ranks, words, bytes)) > 0) {
        if (atomic_load(&job->board->round) != round) {
            round = atomic_load(&job->board->round);
            since = tti_now_ns();
        }
        start_newcomers(job, ranks);
        let_go(job, ranks);
        if (tti_now_ns() - since > HANG_MS * TTI_MS) {
            snprintf(words, bytes, "round %d has lasted longer than %d ms", round, HANG_MS);
            return JOB_HUNG;
        }
        wait_a_little();
    }
    return left < 0 ? JOB_BROKEN : JOB_OVER;
}

job_end tt_job_run(tt_job *job, char *words_out, size_t bytes)
{
    rank_process ranks[RANKS_MAX] = { { 0 } };
    job_end      end = JOB_BROKEN;
    pid_t        store;
    int          slot;

    memset(job->board->rounds, 0, sizeof job->board->rounds);
    memset(job->board->met, 0, sizeof job->board->met);
    memset(job->board->where, 0, sizeof job->board->where);
    atomic_store(&job->board->round, 0);
    atomic_store(&job->board->wanted, 0);
    snprintf(words_out, bytes, "%s", "there is no memory for who has ended");
    if (tti_bulletin_make(job->size, job->size, &job->bulletin, &job->bulletin_fd) != TUTTI_OK)
        return JOB_BROKEN;
    store = start_store(job);
    snprintf(words_out, bytes, "the store cannot be started");
    if (store > 0) {
        snprintf(words_out, bytes, "a process cannot be forked");
        if (start_ranks(job, ranks))
            end = watch(job, ranks, words_out, bytes);
        if (end != JOB_OVER)
            print_all(job, ranks, true);
        kill(store, SIGKILL);
        waitpid(store, NULL, 0);
    }
    for (slot = 0; slot < job->size; slot++)
        end_rank(&ranks[slot]);
    tti_bulletin_close(job->bulletin);
    close(job->bulletin_fd);
    for (slot = 0; slot < RANKS_MAX && job->net != NULL; slot++)
        tt_net_plug(job->switch_fd, slot, true);
    return end;
}
