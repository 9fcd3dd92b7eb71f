/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attack_flood.c - too many connections, from several processes: 10,000; also where that is far more than the store's process may
 * have files. */
#include "attacks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { SOURCES = 8, EACH = 1250, PATIENCE_MS = 20000, BEGIN_MS = 10000, FEW_FILES = 512 };
enum { LEAST = 300 /* of a flood: a rank has room for 64 */ };

/* A process of the flood: it opens all it can, says nothing, and stays. Where one is closed it opens another. It takes no
 * core from the job, as one on another host would not. */
static _Noreturn void flood_main(const job *j, int rank, _Atomic long *opened)
{
    const struct rlimit files = { EACH + 64, EACH + 64 };
    int                 fds[EACH], i;

    setrlimit(RLIMIT_NOFILE, &files);
    (void)!nice(19);
    for (i = 0; i < EACH; i++)
        fds[i] = -1;
    for (i = 0;; i = (i + 1) % EACH) {
        if (fds[i] >= 0 && !is_closed_within(fds[i], 0, 0))
            continue;
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = dial(j, rank);
        atomic_fetch_add(opened, fds[i] >= 0);
    }
}

static int start_flood(const job *j, int rank, pid_t *sources, _Atomic long *opened)
{
    int n;

    for (n = 0; n < SOURCES; n++) {
        sources[n] = fork();
        if (sources[n] == 0)
            flood_main(j, rank, opened);
        if (sources[n] < 0)
            break;
    }
    return n;
}

static void end_flood(const pid_t *sources, int n)
{
    int i;

    for (i = 0; i < n; i++)
        kill(sources[i], SIGKILL);
    for (i = 0; i < n; i++)
        waitpid(sources[i], NULL, 0);
}

/* Up to the welcome: a client is done with its hello before the rank has read its proof. */
static bool member_gets_in(const job *j)
{
    const struct timespec pause = { .tv_nsec = 60000000 };
    tti_secret       secret = { .present = false };
    tti_hello_config config;
    const int64_t    until = now_ms() + PATIENCE_MS;
    bool             in = false, again = false;
    int              fd;

    if (tti_secret_make(j->key, &secret) != TUTTI_OK)
        return false;
    config = genuine(j, 0, &secret);
    config.rank |= (uint32_t)WATCH_STRIPE << STRIPE_SHIFT; /* the ways of the world are open already */
    for (; !in && now_ms() < until; again = true) { /* as a member does, for as long as it has time */
        if (again)
            nanosleep(&pause, NULL);
        fd = dial(j, 0);
        in = fd >= 0 && shake_hands(fd, &config) && is_welcome(fd);
        if (fd >= 0)
            close(fd);
    }
    return in;
}

/* In short, until the flood is at work and somebody was served; at length, until all of it was opened. */
static outcome flood(const job *j, int rank, bool at_length)
{
    const long     wanted = at_length ? (long)SOURCES * EACH : 2000;
    const int64_t  start = now_ms();
    _Atomic long  *opened = mmap(NULL, sizeof *opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t          sources[SOURCES];
    int64_t        worst = 0, took = 0;
    struct timespec pause = { .tv_nsec = 5000000 };
    int            n, served = 0;
    long           n_opened;

    if (opened == MAP_FAILED)
        return failed("no memory");
    n = start_flood(j, rank, sources, opened);
    while (atomic_load(opened) < wanted && now_ms() - start < (at_length ? 6 : 1) * BEGIN_MS && took >= 0) {
        nanosleep(&pause, NULL);
        took = rank >= 0 && !member_gets_in(j) ? -1 : proven_client_ms(j, PATIENCE_MS);
        served += took >= 0;
        worst = took > worst ? took : worst;
    }
    n_opened = atomic_load(opened);
    end_flood(sources, n);
    munmap(opened, sizeof *opened);
    if (took < 0 || served == 0)
        return failed("with %ld opened a proven client was not served within %d s", n_opened, PATIENCE_MS / 1000);
    if (n_opened < LEAST)
        return failed("%ld connections are no flood", n_opened);
    return held("%ld opened, %d clients served meanwhile, the slowest in %lld ms", n_opened, served, (long long)worst);
}

static outcome flood_store(const job *j, bool at_length)
{
    return flood(j, -1, at_length);
}

/* The process that has the store may open far fewer files than there are connections. */
static outcome flood_few_files(const job *j, bool at_length)
{
    const struct rlimit few = { FEW_FILES, FEW_FILES };
    struct rlimit       before;
    outcome             o;

    if (prlimit(j->launcher, RLIMIT_NOFILE, &few, &before) != 0)
        return skipped("the launcher's limits cannot be set");
    o = flood(j, -1, at_length);
    (void)prlimit(j->launcher, RLIMIT_NOFILE, &before, NULL);
    return o;
}

static outcome flood_rank(const job *j, bool at_length)
{
    return flood(j, 0, at_length);
}

const attack flood_attacks[] = {
    { "half-open at the store", "10,000 connections of 8 processes that say nothing", "a proven client is served",
      flood_store, false },
    { "half-open, few files", "the same, where the store's process may have 512 files", "a proven client is served",
      flood_few_files, false },
    { "half-open at a rank", "the same at the port of a rank", "a member gets in", flood_rank, false },
};
const size_t n_flood_attacks = sizeof flood_attacks / sizeof flood_attacks[0];
