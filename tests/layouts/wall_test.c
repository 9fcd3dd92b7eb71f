/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wall_test.c
 * Goal    who lives behind a firewall that has just come up is not called dead, and a job survives one that goes again: whatever
 *         the firewall answers where that can be told from a process's end; where it cannot, the words have both.
 * Method  two hosts made of network namespaces, a rank on each. Both have met; rank 1 computes, which is waiting for a word of this
 *         process, and rank 0 waits for it in an all_reduce. Then rules come up on rank 1's host. Rank 0's log and its outcome are
 *         read through pipes. Where the job is to survive, the rules stay until rank 0 has said that rank 1 is unreachable, and
 *         for HOLD_BEATS heartbeats more, in each of which its watch thread knocks; then they go, and rank 1 goes on.
 *         Beside that: a rank that is killed when the rules have gone is told as dead for certain, one whose way is slow is not
 *         called silent, and what a rank has sent before it leaves arrives, though the other asks for it behind the wall, or while a
 *         slow way is full of it.
 *
 *     wall_test [NAME]      all walls, or one; prints a line for each */
#include "harness/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tutti/tutti.h>
#include "harness/scratch.h"

enum { RANKS = 2, BEAT_MS = 300, HOLD_BEATS = 6, LIMIT_MS = 60000, LOG_MAX = 1 << 16, COUNT = 400000, TRIES = 3, RESENT_MS = 300,
       ASKED_MS = 600, HURRY_MS = 500, PASSED_ON = 60000 /* floats; a second of a slow way */ };
enum { PASSED = 0, FAILED = 1, SKIPPED = 77 };

typedef struct wall {
    const char *name;
    const char *master;
    const char *rules; /* of rank 1's host */
    const char *told; /* NULL: the job survives; else what each word of an end of rank 1 has */
    bool        kills; /* when the rules have gone, and both hear each other, rank 1 is killed */
    bool        leaves; /* rank 0, behind a message that the rules keep back; rank 1 comes for it then */
    bool        hurries; /* it leaves with a receive under way, which nobody has time for */
    int64_t     rate_bps; /* not 0: no rules come up, but the way is so slow, and data fills it */
    bool        hands_on; /* that data is rank 0's, which leaves as soon as its kernel has it */
} wall;

#define WALL(rule) "table inet w { chain in { type filter hook input priority 0; iifname \"tt0\" " rule "; }\n }\n"
#define NO_WALL    "delete table inet w\n"

static const wall walls[] = {
    { .name = "drop", .master = "10.77.0.1", .rules = WALL("drop") },
    { .name = "reject", .master = "10.77.0.1", .rules = WALL("reject") },
    /* neighbours are found by messages, too: those are let through */
    { .name = "reject6", .master = "fd00:77::1", .rules = WALL("meta l4proto tcp reject") },
    { .name = "reset", .master = "10.77.0.1", .rules = WALL("meta l4proto tcp reject with tcp reset"), .told = "a firewall" },
    { .name = "killed", .master = "10.77.0.1", .rules = WALL("drop"), .kills = true,
      .told = "its process has ended (nobody listens where it did" },
    { .name = "leaves", .master = "10.77.0.1", .rules = WALL("drop"), .leaves = true },
    { .name = "hurries", .master = "10.77.0.1", .rules = WALL("drop"), .leaves = true, .hurries = true },
    { .name = "slow", .master = "10.77.0.1", .rate_bps = 1000000 },
    { .name = "hands_on", .master = "10.77.0.1", .rate_bps = 2000000, .hands_on = true },
};

typedef struct job {
    const wall *wall;
    tt_hosts    hosts;
    char        dir[256];
    int         tell[2]; /* a byte when a rank has met the other, and one when it has ended: it is well, or not */
    int         go[RANKS][2]; /* the rank goes on */
    int         said[2]; /* rank 0's log, and what it was told in the end */
    pid_t       pids[RANKS];
    char        log[LOG_MAX];
    size_t      used;
} job;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* ---- a rank ---- */

static void set_environment(const job *j, int rank)
{
    char text[300];

    tt_env_clear();
    snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", j->wall->master, 1);
    setenv("MASTER_PORT", "20000", 1);
    snprintf(text, sizeof text, "%d", BEAT_MS);
    setenv("TUTTI_HEARTBEAT_MS", text, 1);
    setenv("TUTTI_TIMEOUT_MS", "50000", 1);
    setenv("TUTTI_LOG", "info", 1);
    snprintf(text, sizeof text, "%s/secret", j->dir);
    setenv("TUTTI_SECRET_FILE", text, 1);
}

static bool say(const job *j, char word)
{
    return write(j->tell[1], &word, 1) == 1;
}

static tutti_status add_up(int n)
{
    static float x[COUNT];
    tutti_status st;
    int          i;

    for (i = 0; i < n; i++)
        x[i] = 1;
    st = tutti_all_reduce(TUTTI_SPAN(x, n), TUTTI_SUM, NULL);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        if (x[i] != RANKS)
            st = TUTTI_E_MISMATCH;
    return st;
}

/* Rank 1 tells that it waits before all of it has come. */
static tutti_status hand_on(int rank)
{
    static float x[PASSED_ON];
    tutti_status st;
    int          i;

    for (i = 0; i < PASSED_ON && rank == 0; i++)
        x[i] = (float)i;
    st = tutti_broadcast(TUTTI_SPAN(x, PASSED_ON), 0, NULL);
    for (i = 0; i < PASSED_ON && st == TUTTI_OK; i++)
        if (x[i] != (float)i)
            st = TUTTI_E_MISMATCH;
    return st;
}

/* Rank 0 leaves when its kernel has sent again what had no answer. */
static tutti_status send_and_leave(const job *j, int rank)
{
    const struct timespec pause = { .tv_nsec = RESENT_MS * 1000000L };
    int                   x = 7 * (1 - rank);
    tutti_status          st = rank == 0 ? tutti_send(TUTTI_SPAN(&x, 1), 1, 0, NULL) : tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, NULL, NULL);

    if (rank == 0)
        nanosleep(&pause, NULL);
    return st != TUTTI_OK ? st : x != 7 ? TUTTI_E_MISMATCH : rank == 0 && !say(j, 's') ? TUTTI_E_IO : TUTTI_OK;
}

static tutti_status hurry_away(const job *j)
{
    static int   x;
    tutti_work  *work = NULL;
    tutti_status st = tutti_irecv(TUTTI_SPAN(&x, 1), 1, 1, NULL, &work);
    int64_t      start = 0;

    if (st == TUTTI_OK)
        st = send_and_leave(j, 0);
    start = now_ms();
    if (st == TUTTI_OK)
        st = tutti_destroy_process_group(NULL);
    tutti_work_free(work);
    return st == TUTTI_OK && now_ms() - start > HURRY_MS ? TUTTI_E_TIMEOUT : st;
}

static tutti_status take_part(const job *j, int rank)
{
    tutti_status st = tutti_init_process_group(NULL);
    char         word;

    if (st == TUTTI_OK)
        st = add_up(1);
    if (st != TUTTI_OK || !say(j, 'm'))
        return st;
    if ((rank == 1 || j->wall->leaves) && read(j->go[rank][0], &word, 1) != 1) /* it computes */
        return TUTTI_E_IO;
    if (rank == 0 && j->wall->hurries)
        return hurry_away(j);
    st = j->wall->leaves ? send_and_leave(j, rank) : j->wall->hands_on ? hand_on(rank) : add_up(j->wall->rate_bps > 0 ? COUNT : 1);
    return st == TUTTI_OK ? tutti_destroy_process_group(NULL) : st;
}

static _Noreturn void be_rank(job *j, int rank)
{
    tutti_status st;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(j->go[0][1]);
    close(j->go[1][1]);
    set_environment(j, rank);
    if (rank == 0)
        dup2(j->said[1], 2);
    if (!tt_hosts_enter(&j->hosts, rank))
        _exit(1);
    st = take_part(j, rank);
    if (st != TUTTI_OK)
        fprintf(stderr, "rank %d: %s\n", rank, tutti_last_error());
    (void)say(j, st == TUTTI_OK ? 'w' : 'f');
    while (st != TUTTI_OK) /* its watch thread goes on, until this process is ended */
        pause();
    _exit(0);
}

/* ---- the job ---- */

/* Read what rank 0 says, until a word of a rank comes, or something was said; '\0': neither until then. */
static char listen_to(job *j, const char *awaited, int64_t until_ms)
{
    struct pollfd set[2] = { { .fd = j->tell[0], .events = POLLIN }, { .fd = j->said[0], .events = POLLIN } };
    char          word = '\0';
    ssize_t       got;

    while (now_ms() < until_ms && (awaited == NULL || strstr(j->log, awaited) == NULL)) {
        if (poll(set, 2, (int)(until_ms - now_ms())) <= 0)
            continue;
        if ((set[1].revents & POLLIN) != 0 && j->used + 1 < sizeof j->log) {
            got = read(j->said[0], j->log + j->used, sizeof j->log - 1 - j->used);
            j->used += got > 0 ? (size_t)got : 0;
            j->log[j->used] = '\0';
        } else if ((set[0].revents & POLLIN) != 0) {
            return read(j->tell[0], &word, 1) == 1 ? word : 'f';
        }
    }
    return '\0';
}

static bool hear(job *j, char awaited, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (listen_to(j, NULL, now_ms() + LIMIT_MS) != awaited)
            return false;
    return true;
}

static bool start_ranks(job *j)
{
    int rank;

    fflush(NULL);
    for (rank = 0; rank < RANKS; rank++) {
        j->pids[rank] = fork();
        if (j->pids[rank] == 0)
            be_rank(j, rank);
        if (j->pids[rank] < 0)
            return false;
    }
    return true;
}

static const char *script(job *j, const char *rules)
{
    static char words[160];

    return tt_hosts_script(&j->hosts, 1, "nft", rules, words, sizeof words) ? NULL : words;
}

static int row(job *j, const char *word, int result)
{
    printf("| %-8s | %s |\n", j->wall->name, word);
    if (result == FAILED) {
        (void)listen_to(j, NULL, now_ms() + 500); /* the rest of it */
        fprintf(stderr, "rank 0 said:\n%s", j->log);
    }
    return result;
}

/* It comes, is seen, and goes. */
static int survive(job *j)
{
    const char *refused;

    if (listen_to(j, "is unreachable", now_ms() + LIMIT_MS) != '\0' ||
        listen_to(j, "is gone", now_ms() + HOLD_BEATS * BEAT_MS) != '\0')
        return row(j, "a rank has ended behind the wall", FAILED);
    if (strstr(j->log, "is unreachable") == NULL || strstr(j->log, "is gone") != NULL)
        return row(j, "who lives is called gone, or is not missed", FAILED);
    refused = script(j, NO_WALL);
    if (refused != NULL || write(j->go[1][1], "g", 1) != 1)
        return row(j, "the wall does not go", FAILED);
    return hear(j, 'w', RANKS) ? row(j, "survived", PASSED) : row(j, "a rank has failed", FAILED);
}

/* It stays, and what rank 0 is told of it says what it may be. */
static int be_told(job *j)
{
    const char *gone;
    int         n = 0;

    if (listen_to(j, NULL, now_ms() + LIMIT_MS) != 'f' || listen_to(j, "is gone", now_ms() + LIMIT_MS) != '\0' ||
        listen_to(j, NULL, now_ms() + HOLD_BEATS * BEAT_MS) != '\0')
        return row(j, "rank 0 was told nothing, or rank 1 has ended", FAILED);
    for (gone = j->log; (gone = strstr(gone, "is gone")) != NULL; gone++, n++)
        if (memmem(gone, strcspn(gone, "\n"), j->wall->told, strlen(j->wall->told)) == NULL)
            return row(j, "told as another end", FAILED);
    return n > 0 ? row(j, "told as it is", PASSED) : row(j, "rank 1 is not told of", FAILED);
}

/* By then the watch threads have met, and its kernel closes their stream. It resets it, if just then something has come that nobody
 * has read: so what they say of being heard again has some beats of time, and main() has some tries. */
static int end_behind_wall(job *j)
{
    if (listen_to(j, "is unreachable", now_ms() + LIMIT_MS) != '\0' || script(j, NO_WALL) != NULL ||
        listen_to(j, "is heard again", now_ms() + LIMIT_MS) != '\0' ||
        listen_to(j, NULL, now_ms() + HOLD_BEATS * BEAT_MS) != '\0')
        return row(j, "a rank has ended behind the wall", FAILED);
    kill(j->pids[1], SIGKILL);
    return be_told(j);
}

/* Words of who watches wait for seconds behind the data, and nobody is called silent for it, nor given up. Who has no core for as long
 * is silent, where the machine has others to run: so main() has some tries here, too. */
static int be_slow(job *j)
{
    if (write(j->go[1][1], "g", 1) != 1 || !hear(j, 'w', RANKS))
        return row(j, "a rank has failed", FAILED);
    (void)listen_to(j, "no sign of life", now_ms());
    return strstr(j->log, "no sign of life") == NULL ? row(j, "survived", PASSED) : row(j, "who sends is called silent", FAILED);
}

/* Rank 1 has told that it waits, by now, to whoever has rank 0's end of the connection: rank 0, or a kernel that throws the message away.
 * Rank 0 stays for some seconds only, so main() has some tries. */
static int leave(job *j)
{
    if (write(j->go[0][1], "g", 1) != 1 || listen_to(j, NULL, now_ms() + LIMIT_MS) != 's' ||
        write(j->go[1][1], "g", 1) != 1)
        return row(j, "rank 0 has not sent", FAILED);
    if (j->wall->hurries)
        return hear(j, 'w', 1) ? row(j, "left at once", PASSED) : row(j, "rank 0 stays", FAILED);
    if (listen_to(j, NULL, now_ms() + ASKED_MS) != '\0')
        return row(j, "rank 0 does not stay", FAILED);
    if (script(j, NO_WALL) != NULL)
        return row(j, "the wall does not go", FAILED);
    return hear(j, 'w', RANKS) ? row(j, "arrived", PASSED) : row(j, "a rank has failed", FAILED);
}

static int watch(job *j)
{
    const char *refused;

    if (!start_ranks(j) || !hear(j, 'm', RANKS))
        return row(j, "the ranks have not met", FAILED);
    if (j->wall->rate_bps > 0)
        return be_slow(j);
    refused = script(j, j->wall->rules);
    if (refused != NULL)
        return row(j, refused, SKIPPED);
    if (j->wall->kills)
        return end_behind_wall(j);
    if (j->wall->leaves)
        return leave(j);
    return j->wall->told == NULL ? survive(j) : be_told(j);
}

static void end_ranks(job *j)
{
    int rank;

    for (rank = 0; rank < RANKS; rank++)
        if (j->pids[rank] > 0) {
            kill(j->pids[rank], SIGKILL);
            waitpid(j->pids[rank], NULL, 0);
        }
}

static bool join_hosts(job *j, char *words, size_t bytes)
{
    static const char *const six[] = { "addr add fd00:77::1/64 dev tt0 nodad\n", "addr add fd00:77::2/64 dev tt0 nodad\n" };
    int                      i;
    const tt_relay_link      slow = { .rate_bps = j->wall->rate_bps, .queue_bytes = j->wall->rate_bps / 8 * 4 }; /* of four seconds */

    if (!(slow.rate_bps > 0 ? tt_hosts_open_far(&slow, &j->hosts, words, bytes) : tt_hosts_open(&j->hosts, words, bytes)))
        return false;
    for (i = 0; i < RANKS && strchr(j->wall->master, ':') != NULL; i++)
        if (!tt_hosts_script(&j->hosts, i, "ip", six[i], words, bytes))
            return false;
    return true;
}

static int run_wall(const wall *w)
{
    static job j;
    char       words[200] = "", path[300];
    int        result = FAILED, i;

    j = (job){ .wall = w };
    if (!tt_dir_make(j.dir, sizeof j.dir) || pipe2(j.tell, O_CLOEXEC) != 0 || pipe2(j.go[0], O_CLOEXEC) != 0 ||
        pipe2(j.go[1], O_CLOEXEC) != 0 || pipe2(j.said, O_CLOEXEC) != 0)
        return FAILED;
    snprintf(path, sizeof path, "%s/secret", j.dir);
    if (!join_hosts(&j, words, sizeof words))
        result = row(&j, words, SKIPPED);
    else if (tt_secret_write(path))
        result = watch(&j);
    end_ranks(&j);
    tt_hosts_close(&j.hosts);
    for (i = 0; i < 2; i++) {
        close(j.tell[i]);
        close(j.go[0][i]);
        close(j.go[1][i]);
        close(j.said[i]);
    }
    tt_dir_remove(j.dir);
    return result;
}

int main(int argc, char **argv)
{
    int    worst = PASSED, n = 0, result = FAILED, tries;
    size_t i;

    for (i = 0; i < sizeof walls / sizeof walls[0]; i++) {
        if (argc > 1 && strcmp(argv[1], walls[i].name) != 0)
            continue;
        n++;
        for (tries = walls[i].kills || walls[i].leaves || walls[i].rate_bps > 0 ? TRIES : 1; tries > 0 && (result = run_wall(&walls[i])) == FAILED; tries--)
            continue;
        fflush(stdout);
        if (result == FAILED || worst == PASSED)
            worst = result;
    }
    return n > 0 ? worst : FAILED;
}
