/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layouts_test.c
 * Goal    in each way that hosts are joined in the field, a job on two of them works, or a rank says within
 *         five seconds, in one line, why it cannot, and which variable to set.
 * Method  network namespaces as hosts, four ranks, two on each, with /etc/hosts and resolv.conf of their
 *         own. A job joins, adds up what crosses the hosts in many segments, sends across, and leaves. Each
 *         rank writes its outcome to a pipe; where one is to fail, the others are ended then, as a launcher
 *         does. Bounds, which were set before anything ran: joining takes at most 10 s, failing 5 s, from when a rank
 *         is on its host.
 *
 *     layouts_test [NAME]      all layouts, or one; prints a table */
#include "layouts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tutti/tutti.h>
#include "harness/scratch.h"

enum { RANKS = 4, COUNT = 200000, JOIN_MS = 10000, FAIL_MS = 5000, LIMIT_MS = 40000, LATE_MS = 1500 };
enum { PASSED = 0, FAILED = 1, SKIPPED = 77 };

/** What a rank tells; shorter than PIPE_BUF, so that it arrives whole. */
typedef struct outcome {
    int32_t rank;
    int32_t ok;
    int64_t joined_ms, ended_ms; /* since it has moved in */
    char    words[2000];
} outcome;

typedef struct job {
    const tt_layout *layout;
    tt_hosts         hosts;
    char             dir[256];
    int64_t          began_ms;
    int              tell[2]; /* pipe of outcomes */
    pid_t            pids[RANKS];
    outcome          seen[RANKS];
    int              n_seen;
} job;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* ---- a rank ---- */

static bool bind_file(const job *j, const char *name, const char *text, const char *over)
{
    char path[300];
    int  fd;
    bool done;

    snprintf(path, sizeof path, "%s/%s", j->dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return done && (access(over, F_OK) != 0 || mount(path, over, NULL, MS_BIND, NULL) == 0);
}

/* Become a process of that host: its network, its name, its names for others. */
static bool move_in(const job *j, int rank)
{
    const int   host = rank / (RANKS / 2);
    const char *names = j->layout->hosts_file[host];
    char        file[32];

    if (!tt_hosts_enter(&j->hosts, host) || unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        sethostname(host == 0 ? "n0" : "n1", 2) != 0)
        return false;
    snprintf(file, sizeof file, "hosts-%d", rank);
    if (!bind_file(j, file, names != NULL ? names : "127.0.0.1 localhost\n", "/etc/hosts"))
        return false;
    snprintf(file, sizeof file, "resolv-%d", rank);
    return bind_file(j, file, "nameserver 192.0.2.53\n", "/etc/resolv.conf"); /* nobody's, and no way there */
}

static void set_env(const char *const entries[TT_ENV_MAX])
{
    char name[64];
    int  i;

    for (i = 0; i < TT_ENV_MAX && entries[i] != NULL; i++) {
        const size_t length = strcspn(entries[i], "=");

        memcpy(name, entries[i], length);
        name[length] = '\0';
        setenv(name, entries[i] + length + 1, 1);
    }
}

static void set_environment(const job *j, int rank)
{
    char text[300];

    tt_env_clear();
    snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof text, "%d", RANKS);
    setenv("WORLD_SIZE", text, 1);
    setenv("MASTER_ADDR", j->layout->master, 1);
    setenv("MASTER_PORT", "20000", 1);
    snprintf(text, sizeof text, "%s/secret", j->dir);
    setenv("TUTTI_SECRET_FILE", text, 1);
    set_env(j->layout->env);
    if (rank < RANKS / 2)
        set_env(j->layout->env0);
}

/* Between the hosts, both ways: rank r and r + 2. */
static tutti_status send_across(int rank)
{
    static float out[COUNT], in[COUNT];
    const int    other = (rank + RANKS / 2) % RANKS;
    tutti_work  *works[2] = { NULL, NULL };
    tutti_status st;
    int          i;

    for (i = 0; i < COUNT; i++)
        out[i] = (float)(rank * 1000 + i % 1000);
    st = tutti_isend(TUTTI_SPAN(out, COUNT), other, 7, NULL, &works[0]);
    if (st == TUTTI_OK)
        st = tutti_irecv(TUTTI_SPAN(in, COUNT), other, 7, NULL, &works[1]);
    for (i = 0; i < 2 && st == TUTTI_OK; i++)
        st = tutti_work_wait(works[i]);
    for (i = 0; i < COUNT && st == TUTTI_OK; i++)
        if (in[i] != (float)(other * 1000 + i % 1000))
            st = TUTTI_E_MISMATCH;
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    return st;
}

static tutti_status add_up(int rank)
{
    static float x[COUNT];
    tutti_status st;
    int          i;

    for (i = 0; i < COUNT; i++)
        x[i] = (float)(rank + i % 100);
    st = tutti_all_reduce(TUTTI_SPAN(x, COUNT), TUTTI_SUM, NULL);
    for (i = 0; i < COUNT && st == TUTTI_OK; i++)
        if (x[i] != (float)(0 + 1 + 2 + 3 + RANKS * (i % 100)))
            st = TUTTI_E_MISMATCH;
    return st;
}

static tutti_status take_part(int rank, int64_t began_ms, outcome *told)
{
    tutti_status st = tutti_init_process_group(NULL);

    told->joined_ms = now_ms() - began_ms;
    if (st == TUTTI_OK)
        st = add_up(rank);
    if (st == TUTTI_OK)
        st = send_across(rank);
    if (st == TUTTI_OK)
        st = tutti_destroy_process_group(NULL);
    return st;
}

static _Noreturn void be_rank(const job *j, int rank)
{
    outcome told = { .rank = rank };
    int64_t began_ms = now_ms();

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!move_in(j, rank)) {
        told.ok = -1;
        snprintf(told.words, sizeof told.words, "cannot make a host: %s", strerror(errno));
    } else {
        set_environment(j, rank);
        began_ms = now_ms();
        told.ok = take_part(rank, began_ms, &told) == TUTTI_OK;
        if (told.ok == 0)
            snprintf(told.words, sizeof told.words, "%s", tutti_last_error());
    }
    told.ended_ms = now_ms() - began_ms;
    if (write(j->tell[1], &told, sizeof told) != (ssize_t)sizeof told)
        _exit(1);
    _exit(0);
}

/* ---- the job ---- */

static bool write_number(const char *path, const char *digit)
{
    int  fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, digit, 1) == 1;

    if (fd >= 0)
        close(fd);
    return done;
}

/* What only a process inside can set: forwarding on the router, IPv6 off. */
static bool set_kernel(const job *j, int host)
{
    pid_t pid = fork();
    int   status = -1;

    if (pid == 0) {
        bool done = tt_hosts_enter(&j->hosts, host);

        if (host == 2)
            done = done && write_number("/proc/sys/net/ipv4/ip_forward", "1");
        if (j->layout->no_ip6)
            done = done && write_number("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        _exit(done ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The router's own link to host 1 is made there, so host 1's part of it comes last. */
static bool join_hosts(const job *j, char *words, size_t bytes)
{
    static const char routed[] = "link set tt0 up\naddr add 10.77.0.2/24 dev tt0\n";
    static const char by_router[] = "route add default via 192.168.5.1\n";
    const tt_layout  *l = j->layout;
    int               i;

    for (i = 0; i < j->hosts.n; i++) {
        snprintf(words, bytes, "cannot set the kernel of a namespace");
        if (!set_kernel(j, i))
            return false;
        if (l->ip[i] != NULL && !tt_hosts_script(&j->hosts, i, "ip", l->ip[i], words, bytes))
            return false;
    }
    if (j->hosts.n == 3 && (!tt_hosts_script(&j->hosts, 1, "ip", routed, words, bytes) ||
                            !tt_hosts_script(&j->hosts, 0, "ip", by_router, words, bytes)))
        return false;
    for (i = 0; i < j->hosts.n; i++)
        if (l->nft[i] != NULL && !tt_hosts_script(&j->hosts, i, "nft", l->nft[i], words, bytes))
            return false;
    return true;
}

static bool start_ranks(job *j)
{
    int rank;

    fflush(NULL);
    j->began_ms = now_ms();
    for (rank = 0; rank < RANKS; rank++) {
        j->pids[rank] = fork();
        if (j->pids[rank] == 0)
            be_rank(j, rank);
        if (j->pids[rank] < 0)
            return false;
    }
    close(j->tell[1]);
    j->tell[1] = -1;
    return true;
}

/* Whether this is what a rank of that layout is to say: the line that has the cause, or NULL. */
static const char *line_of_cause(const tt_layout *layout, const char *words)
{
    const char *cause = layout->says != NULL ? strstr(words, layout->says) : NULL;
    const char *next = strstr(words, "\n  next: ");

    if (cause == NULL || next == NULL || cause > next || strstr(next, layout->next) == NULL)
        return NULL;
    while (cause > words && cause[-1] != '\n')
        cause--;
    return cause;
}

/* Until all have told, one has failed and said why, or the limit. The interface that is late comes up
 * meanwhile. */
static void watch(job *j)
{
    const int   limit_ms = LIMIT_MS;
    const char *late = j->layout->late;
    char        words[160];

    while (j->n_seen < RANKS) {
        const int64_t until = j->began_ms + (late != NULL ? LATE_MS : limit_ms);
        const int64_t left = until - now_ms();
        struct pollfd set = { .fd = j->tell[0], .events = POLLIN };

        if (left > 0 && poll(&set, 1, (int)left) > 0) {
            if (read(j->tell[0], &j->seen[j->n_seen], sizeof j->seen[0]) != (ssize_t)sizeof j->seen[0])
                return;
            j->n_seen++;
            if (j->seen[j->n_seen - 1].ok < 0)
                return;
            if (j->seen[j->n_seen - 1].ok == 0 &&
                (j->layout->says == NULL || line_of_cause(j->layout, j->seen[j->n_seen - 1].words) != NULL))
                return;
        } else if (late != NULL && now_ms() >= until) {
            if (!tt_hosts_script(&j->hosts, 0, "ip", late, words, sizeof words))
                return;
            late = NULL;
        } else if (left <= 0) {
            return;
        }
    }
}

static void end_ranks(job *j)
{
    int rank;

    for (rank = 0; rank < RANKS; rank++)
        if (j->pids[rank] > 0 && j->n_seen < RANKS)
            kill(j->pids[rank], SIGKILL);
    for (rank = 0; rank < RANKS; rank++)
        if (j->pids[rank] > 0)
            waitpid(j->pids[rank], NULL, 0);
}

/* ---- the table ---- */

static int row(const job *j, const char *word, int64_t ms, const char *words, int result)
{
    printf("| %-16s | %-7s | %5lld ms | %s: %.*s |\n", j->layout->name, word, (long long)ms, j->layout->what,
           (int)strcspn(words, "\n"), words);
    return result;
}

static int judge_work(const job *j)
{
    int64_t slowest = 0;
    int     i;

    for (i = 0; i < j->n_seen; i++)
        if (j->seen[i].joined_ms > slowest)
            slowest = j->seen[i].joined_ms;
    if (j->n_seen < RANKS)
        return row(j, "HANGS", LIMIT_MS, "not all ranks ended", FAILED);
    if (slowest > JOIN_MS)
        return row(j, "SLOW", slowest, "joining took too long", FAILED);
    return row(j, "works", slowest, "joined, added up, sent, left", PASSED);
}

/* The last one seen has failed. */
static int judge_failure(const job *j)
{
    const outcome *o = &j->seen[j->n_seen - 1];
    const char    *cause = line_of_cause(j->layout, o->words);

    if (o->ok < 0)
        return row(j, "skipped", 0, o->words, SKIPPED);
    if (cause == NULL) {
        fprintf(stderr, "%s: rank %d: %s\n", j->layout->name, o->rank, o->words);
        return row(j, "FAILS", o->ended_ms, o->words, FAILED);
    }
    return row(j, o->ended_ms > FAIL_MS ? "LATE" : "says", o->ended_ms, cause,
               o->ended_ms > FAIL_MS ? FAILED : PASSED);
}

static int judge(const job *j)
{
    const bool failed = j->n_seen > 0 && j->seen[j->n_seen - 1].ok != 1;

    if (failed)
        return judge_failure(j);
    if (j->layout->says != NULL)
        return row(j, "SILENT", LIMIT_MS, "no rank has failed", FAILED);
    return judge_work(j);
}

static int run_in(job *j)
{
    char words[200] = "", path[300];

    snprintf(path, sizeof path, "%s/secret", j->dir);
    if (!tt_secret_write(path))
        return row(j, "FAILS", 0, "no secret could be written", FAILED);
    if (!tt_hosts_bare(j->layout->ip[2] != NULL ? 3 : 2, &j->hosts, words, sizeof words))
        return row(j, "skipped", 0, words, SKIPPED);
    if (!join_hosts(j, words, sizeof words))
        return row(j, "skipped", 0, words, SKIPPED);
    if (pipe2(j->tell, O_CLOEXEC) != 0)
        return row(j, "FAILS", 0, strerror(errno), FAILED);
    if (start_ranks(j))
        watch(j);
    end_ranks(j);
    return judge(j);
}

static int run_layout(const tt_layout *layout)
{
    job j = { .layout = layout, .tell = { -1, -1 } };
    int result;

    if (!tt_dir_make(j.dir, sizeof j.dir))
        return FAILED;
    result = run_in(&j);
    tt_hosts_close(&j.hosts);
    if (j.tell[0] >= 0)
        close(j.tell[0]);
    if (j.tell[1] >= 0)
        close(j.tell[1]);
    tt_dir_remove(j.dir);
    return result;
}

int main(int argc, char **argv)
{
    int worst = PASSED, n = 0, i, result;

    for (i = 0; i < tt_n_layouts; i++) {
        if (argc > 1 && strcmp(argv[1], tt_layouts[i].name) != 0)
            continue;
        n++;
        result = run_layout(&tt_layouts[i]);
        if (result == FAILED || (result == SKIPPED && worst == PASSED))
            worst = result;
    }
    if (n == 0)
        fprintf(stderr, "there is no layout '%s'\n", argv[1]);
    return n == 0 ? FAILED : worst;
}
