/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank.c - the forked side: one rank, or all ranks as threads, run the body under cmocka.
 *
 * cmocka's jump out of a failed assertion and its words belong to the thread, so each rank runs a cmocka
 * group of one test of its own. What it prints goes to the rank's log, which the parent shows on failure. */
#include "harness/run.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/port.h"

enum { URL_MAX = TT_PATH_MAX + 64, DEFAULT_PORT = 29500 };

/* One rank at work. */
typedef struct rank_job {
    const tt_run *run;
    void         *store; /* ranks as threads share it */
    tt_ctx        ctx;
    char          url[URL_MAX];
} rank_job;

typedef struct owned {
    struct owned *next;
    max_align_t   data[];
} owned;

void *tt_alloc(tt_ctx *t, size_t bytes)
{
    owned *block = calloc(1, sizeof *block + bytes);

    assert_non_null(block);
    block->next = t->owned;
    t->owned = block;
    return block->data;
}

float *tt_floats(tt_ctx *t, size_t count, float value)
{
    float *x = tt_alloc(t, count * sizeof *x);
    size_t i;

    for (i = 0; i < count; i++)
        x[i] = value;
    return x;
}

/* Not by _exit(): a sanitizer makes it wait for the other threads. */
void tt_die(void)
{
    for (;;)
        syscall(SYS_exit_group, TT_DIED);
}

void tt_post(tt_ctx *t, int mark)
{
    tti_port *port = tti_port_system();

    atomic_fetch_add(&t->marks[mark], 1);
    port->ops->wake_word(port, &t->marks[mark]);
}

void tt_await(tt_ctx *t, int mark, uint32_t at_least)
{
    tti_port *port = tti_port_system();
    uint32_t  seen;

    while ((seen = atomic_load(&t->marks[mark])) < at_least)
        port->ops->wait_word(port, &t->marks[mark], seen, TTI_FOREVER);
}

static void free_owned(tt_ctx *t)
{
    while (t->owned != NULL) {
        owned *block = t->owned;

        t->owned = block->next;
        free(block);
    }
}

/* What the parent's tests are to the child: join, body, leave. A failed assertion jumps out of it. */
static void rank_test(void **state)
{
    rank_job           *job = *state;
    const tt_run       *run = job->run;
    const tt_world_ops *world = run->test->init == TT_INIT_WORLD ? run->world : NULL;
    int                 timeout_ms = run->test->timeout_ms;

    if (timeout_ms == 0)
        timeout_ms = run->test->limit_ms / 2;
    if (world != NULL && world->join(&job->ctx, timeout_ms, job->store) != TUTTI_OK)
        fail_msg("rank %d cannot join: %s", job->ctx.rank, tutti_last_error());
    run->test->body(&job->ctx);
    if (world != NULL)
        world->leave(&job->ctx);
    free_owned(&job->ctx);
}

static void job_prepare(rank_job *job, const tt_run *run, int rank, void *store)
{
    const tt_test *test = run->test;

    *job = (rank_job){ .run = run, .store = store };
    job->ctx = (tt_ctx){
        .rank = rank,
        .size = test->ranks,
        .backend = test->backend,
        .host = tt_host_of(test, rank),
        .transport = run->word,
        .dir = run->dir,
        .addr = test->hosts > 1 ? tt_hosts_addr(0) : "127.0.0.1",
        .port = test->hosts > 1 ? DEFAULT_PORT : run->port,
        .init_method = job->url,
        .limit_ms = test->limit_ms,
        .marks = run->marks,
    };
    if (test->hosts > 1)
        snprintf(job->url, sizeof job->url, "tcp://%s:%d?rank=%d&world_size=%d", job->ctx.addr,
                 job->ctx.port, rank, test->ranks);
    else
        snprintf(job->url, sizeof job->url, "file://%s/store?rank=%d&world_size=%d", run->dir, rank,
                 test->ranks);
}

static bool job_passes(rank_job *job)
{
    char              name[128];
    struct CMUnitTest test = { .test_func = rank_test, .initial_state = job };

    snprintf(name, sizeof name, "%s, rank %d, %s", job->run->test->name, job->ctx.rank,
             job->run->word);
    test.name = name;
    return _cmocka_run_group_tests(name, &test, 1, NULL, NULL) == 0;
}

/* A failed rank ends its process at once, past the sanitizers: what a body that was cut short has left
 * open, or threads that still run, would only hide its words. */
static void end_if_failed(bool passed)
{
    if (passed)
        return;
    fflush(NULL);
    syscall(SYS_exit_group, TT_FAILED);
}

static void *thread_main(void *arg)
{
    end_if_failed(job_passes(arg));
    return NULL;
}

static void run_threads(const tt_run *run)
{
    static rank_job     jobs[TT_RANKS_MAX];
    const tt_world_ops *world = run->test->init == TT_INIT_WORLD ? run->world : NULL;
    pthread_t           id[TT_RANKS_MAX];
    void               *store = NULL;
    int                 i;

    if (world != NULL && (store = world->store_open()) == NULL)
        end_if_failed(false);
    for (i = 0; i < run->test->ranks; i++) {
        job_prepare(&jobs[i], run, i, store);
        if (pthread_create(&id[i], NULL, thread_main, &jobs[i]) != 0)
            end_if_failed(false);
    }
    for (i = 0; i < run->test->ranks; i++)
        pthread_join(id[i], NULL);
    if (world != NULL)
        world->store_close(store);
}

static void redirect(const tt_run *run, int rank)
{
    char path[TT_PATH_MAX];
    int  log;
    int  nothing;

    tt_rank_log(run, rank, path);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (log < 0 || nothing < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || dup2(nothing, 0) < 0)
        _exit(TT_FAILED);
    close(log);
    close(nothing);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

const char *tt_run_carried(const tt_run *run)
{
    if (run->test->tls)
        return NULL;
    return run->test->carried != NULL ? run->test->carried : getenv("TT_CARRIED");
}

bool tt_run_rails(const tt_run *run)
{
    const tt_relay_link *link = &run->test->link;
    const bool           far = link->delay_ns > 0 || link->jitter_ns > 0 || link->loss > 0 || link->rate_bps > 0;

    return run->test->hosts > 1 && !far && (run->test->rails || getenv("TT_RAILS") != NULL);
}

static void transport(const tt_run *run, char out[TT_PATH_MAX])
{
    const bool  everywhere = strstr(run->word, "tcp") != NULL;
    const char *carried = tt_run_carried(run);

    if (carried != NULL)
        snprintf(out, TT_PATH_MAX, "%s%s", everywhere ? "only:" : "", carried);
    else
        snprintf(out, TT_PATH_MAX, "%s", everywhere ? "tcp" : "auto");
}

static void environment(const tt_run *run)
{
    char path[TT_PATH_MAX];

    transport(run, path);
    setenv("TUTTI_TRANSPORT", path, 1);
    if (run->test->hosts > 1 || run->test->tls) {
        snprintf(path, sizeof path, "%s/secret", run->dir);
        setenv("TUTTI_SECRET_FILE", path, 1);
    }
    if (run->test->tls)
        setenv("TUTTI_TLS", "1", 1);
    if (run->test->plugins != NULL || getenv("TT_PLUGINS") != NULL)
        setenv("TUTTI_PLUGIN_PATH", run->test->plugins != NULL ? run->test->plugins : getenv("TT_PLUGINS"), 1);
    if (run->test->stripes > 0) {
        snprintf(path, sizeof path, "%d", run->test->stripes);
        setenv("TUTTI_TCP_STRIPES", path, 1);
    }
    if (tt_run_rails(run))
        setenv("TUTTI_SOCKET_IFNAME", "=tt0,=tt1", 1);
}

void tt_rank_main(const tt_run *run, int rank)
{
    const int       host = tt_host_of(run->test, rank);
    static rank_job job;
    sigset_t        none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != run->parent) /* it was gone before the line above */
        _exit(TT_FAILED);
    redirect(run, rank);
    if (run->test->hosts > 1 && !tt_hosts_enter(&run->hosts, host)) {
        perror("cannot enter the host of this rank");
        _exit(TT_FAILED);
    }
    if (run->test->hosts > 1 && tt_run_carried(run) != NULL && !tt_hosts_show_devices()) {
        perror("cannot show the host's network devices to a library that looks for them in /sys");
        _exit(TT_FAILED);
    }
    environment(run);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (tt_run_threads(run)) {
        run_threads(run);
    } else {
        job_prepare(&job, run, rank, NULL);
        end_if_failed(job_passes(&job));
    }
    exit(TT_PASSED);
}
