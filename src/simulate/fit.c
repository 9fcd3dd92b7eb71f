/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fit.c - what memory takes here while all cores use it.
 *
 * Why     The choice of algorithms needs no more than what one core takes (coll/calibrate.c): it ranks. A prediction needs
 *         what is left for each when all copy, or combine, more than their caches hold.
 * How     A thread on each core copies and combines in turn, in buffers of its own, several times; what counts is the
 *         median of its runs, since at both ends others may not be there, and then the mean over threads.
 * Share   Each thread writes its own place of the crew; who started the threads reads them when it has joined them. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <tutti/simulate.h>
#include "base/thread.h"
#include "coll/calibrate.h"
#include "kernel/kernel.h"
#include "simulate/figures.h"

enum { CREW_MAX = 64, RUNS = 9, BYTES = 8 * 1024 * 1024, BUFFERS = 3 };

typedef struct member {
    tti_thread thread;
    int        core;
    char      *memory;  /* BUFFERS of BYTES each */
    double     copy;    /* ns of a byte that is written */
    double     combine; /* ns of a byte that is read */
} member;

typedef struct crew {
    member members[CREW_MAX];
    int    n;
} crew;

/* The compiler must believe that somebody reads it. */
#define KEEP(memory) __asm__ __volatile__("" : : "r"(memory) : "memory")

static int64_t now(void)
{
    return tti_port_now(tti_port_system());
}

static double copy_run(char *memory)
{
    const int64_t begin = now();

    memcpy(memory, memory + BYTES, BYTES);
    KEEP(memory);
    return (double)(now() - begin) / BYTES;
}

static double combine_run(char *memory)
{
    const void   *in[2] = { memory + BYTES, memory + 2 * BYTES };
    const int64_t begin = now();

    tti_reduce(tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_F32), memory, in, 2, BYTES / (int)sizeof(float), 2);
    return (double)(now() - begin) / (2.0 * BYTES);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void work(void *arg)
{
    member   *m = arg;
    double    copies[RUNS], combines[RUNS];
    cpu_set_t own;
    int       run;

    CPU_ZERO(&own);
    CPU_SET(m->core, &own);
    pthread_setaffinity_np(pthread_self(), sizeof own, &own); /* or wherever it is */
    for (run = 0; run < RUNS; run++) {
        copies[run] = copy_run(m->memory);
        combines[run] = combine_run(m->memory);
    }
    qsort(copies, RUNS, sizeof copies[0], by_value);
    qsort(combines, RUNS, sizeof combines[0], by_value);
    m->copy = copies[RUNS / 2];
    m->combine = combines[RUNS / 2];
}

/* A core for each member, of those that this process may use. */
static int find_cores(member *members)
{
    cpu_set_t all;
    int       n = 0, core;

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return 0;
    for (core = 0; core < CPU_SETSIZE && n < CREW_MAX; core++)
        if (CPU_ISSET(core, &all))
            members[n++].core = core;
    return n;
}

/* Touched, so that no thread begins with page faults. */
static tutti_status take_memory(crew *c)
{
    int i;

    for (i = 0; i < c->n; i++) {
        c->members[i].memory = malloc((size_t)BUFFERS * BYTES);
        if (c->members[i].memory == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory to measure what %d cores take for it", c->n);
        memset(c->members[i].memory, 0, (size_t)BUFFERS * BYTES);
    }
    return TUTTI_OK;
}

static tutti_status run_threads(crew *c)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < c->n && st == TUTTI_OK; i++)
        st = tti_thread_start(&c->members[i].thread, "tutti-measure", work, &c->members[i]);
    for (i = 0; i < c->n; i++)
        tti_thread_join(&c->members[i].thread);
    return st;
}

static tutti_status measure_together(tti_figures *f)
{
    crew         c = { .n = 0 };
    double       copy = 0, combine = 0;
    tutti_status st;
    int          i;

    c.n = find_cores(c.members);
    if (c.n == 0)
        return TUTTI_OK; /* what is usual */
    st = take_memory(&c);
    if (st == TUTTI_OK)
        st = run_threads(&c);
    for (i = 0; i < c.n; i++) {
        copy += c.members[i].copy / c.n;
        combine += c.members[i].combine / c.n;
        free(c.members[i].memory);
    }
    if (st == TUTTI_OK) {
        f->copy_all = copy;
        f->combine_all = combine;
    }
    return st;
}

static tutti_status take_messages(const tutti_sim_messages *from, tti_tier *to)
{
    if (from == NULL)
        return TUTTI_OK;
    if (!(from->message_us >= 0 && from->post_us >= 0 && from->send_ns_per_byte >= 0 && from->recv_ns_per_byte >= 0))
        return tti_fail(TUTTI_E_ARG, "what messages take is no positive number");
    *to = tti_tier_of(from->message_us, from->post_us, from->send_ns_per_byte, from->recv_ns_per_byte);
    return TUTTI_OK;
}

tutti_status tutti_sim_fit(const char *file, const tutti_sim_messages *local, const tutti_sim_messages *far,
                           double gbit_per_s)
{
    tti_figures  f = tti_figures_default;
    tutti_status st;

    if (file == NULL || !(gbit_per_s >= 0))
        return tti_fail(TUTTI_E_ARG, "figures need a file to go to, and a rate that is no negative number");
    st = take_messages(local, &f.local);
    if (st == TUTTI_OK)
        st = take_messages(far, &f.far);
    if (st == TUTTI_OK)
        st = measure_together(&f);
    if (st != TUTTI_OK)
        return st;
    f.machine = *tti_machine_here();
    if (gbit_per_s > 0)
        f.port_byte = tti_port_byte(gbit_per_s);
    return tti_figures_write(file, &f);
}
