/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank.c - calls, one after the other, whose results are known, until the runner has enough. */
#include "calm.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>
#include <tutti/tutti.h>

enum { SMALL = 64, LARGE = 200000, TAG = 3 };

typedef struct me {
    const calm_job *job;
    int             rank, size;
    int64_t         round;
    int32_t        *x, *y; /* [LARGE] */
} me;

static _Noreturn void accuse(const me *m, const char *what)
{
    snprintf(m->job->board->words[m->rank], CALM_WORDS_MAX, "%s: %s", what, tutti_last_error());
    atomic_fetch_add(&m->job->board->accusations, 1);
    fprintf(stderr, "ACCUSES %s\n", m->job->board->words[m->rank]);
    fflush(NULL);
    _exit(1);
}

static int32_t value(const me *m, int rank, int64_t i)
{
    return (int32_t)((rank + 1) * (i % 11 + 1) + m->round);
}

static void fill(const me *m, int64_t n)
{
    int64_t i;

    for (i = 0; i < n; i++)
        m->x[i] = value(m, m->rank, i);
}

static void sum(me *m, int64_t n)
{
    int64_t i;

    fill(m, n);
    if (tutti_all_reduce(TUTTI_SPAN(m->x, n), TUTTI_SUM, NULL) != TUTTI_OK)
        accuse(m, "all_reduce");
    for (i = 0; i < n; i += n / SMALL + 1)
        if (m->x[i] != (int32_t)(m->size * (m->size + 1) / 2 * (i % 11 + 1) + m->size * m->round))
            accuse(m, "all_reduce has a wrong value");
}

static void ring(me *m, int64_t n)
{
    const int   left = (m->rank + m->size - 1) % m->size, right = (m->rank + 1) % m->size;
    tutti_work *work = NULL;

    fill(m, n);
    if (tutti_isend(TUTTI_SPAN(m->x, n), right, TAG, NULL, &work) != TUTTI_OK ||
        tutti_recv(TUTTI_SPAN(m->y, n), left, TAG, NULL, NULL) != TUTTI_OK || tutti_work_wait(work) != TUTTI_OK)
        accuse(m, "a message to the next rank");
    tutti_work_free(work);
    if (m->y[0] != value(m, left, 0) || m->y[n - 1] != value(m, left, n - 1))
        accuse(m, "a message has a wrong value");
}

/* Whether all go on: what rank 0 has seen counts. */
static bool all_go_on(const me *m)
{
    int32_t stop = atomic_load(&m->job->board->enough);

    if (tutti_broadcast(TUTTI_SPAN(&stop, 1), 0, NULL) != TUTTI_OK)
        accuse(m, "broadcast");
    return stop == 0;
}

static void work(me *m)
{
    const bool large = m->round % 8 == 0;

    sum(m, large ? LARGE : SMALL);
    ring(m, large ? LARGE : 1);
    if (tutti_barrier(NULL) != TUTTI_OK)
        accuse(m, "barrier");
    if (tutti_all_gather_into_tensor(TUTTI_SPAN(m->y, (int64_t)SMALL * m->size), TUTTI_SPAN(m->x, SMALL), NULL) != TUTTI_OK)
        accuse(m, "all_gather");
    m->round++;
    if (m->rank == 0)
        atomic_fetch_add(&m->job->board->calls, 5);
}

static void enter(const calm_job *job, int rank)
{
    char text[224];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    calm_log_path(job, rank, text, sizeof text);
    if (freopen(text, "w", stderr) == NULL || (job->hosts != NULL && !tt_hosts_enter(job->hosts, calm_host(job, rank))))
        _exit(1);
    setvbuf(stderr, NULL, _IOLBF, 0);
    snprintf(text, sizeof text, "%s/secret", job->dir);
    setenv("TUTTI_SECRET_FILE", text, 1);
    setenv("TUTTI_LOG", "info", 1);
    snprintf(text, sizeof text, "%d", CALM_BEAT_MS);
    setenv("TUTTI_HEARTBEAT_MS", text, 1);
    snprintf(text, sizeof text, "%d", CALM_SILENT_MS);
    setenv("TUTTI_SILENT_MS", text, 1);
}

static void join(me *m)
{
    tutti_tcp_store_options to = TUTTI_TCP_STORE_OPTIONS;
    tutti_init_options      opts = TUTTI_INIT_OPTIONS;
    tutti_store            *store = NULL;

    to.host = m->job->store_host;
    to.port = m->job->store_port;
    if (tutti_tcp_store_open(&to, &store) != TUTTI_OK)
        accuse(m, "the store");
    opts.store = store;
    opts.rank = m->rank;
    opts.world_size = m->size;
    opts.timeout_ms = CALM_TIMEOUT_MS;
    if (tutti_init_process_group(&opts) != TUTTI_OK)
        accuse(m, "joining");
    tutti_store_close(store);
}

void calm_rank(const calm_job *job, int rank)
{
    me m = { .job = job, .rank = rank, .size = job->n_ranks };

    enter(job, rank);
    m.x = malloc(LARGE * sizeof *m.x);
    m.y = malloc(LARGE * sizeof *m.y);
    if (m.x == NULL || m.y == NULL)
        _exit(2);
    join(&m);
    atomic_store(&job->board->ready[rank], true);
    do
        work(&m);
    while (all_go_on(&m));
    if (tutti_destroy_process_group(NULL) != TUTTI_OK)
        accuse(&m, "destroying");
    free(m.x);
    free(m.y);
    fflush(NULL);
    _exit(0);
}
