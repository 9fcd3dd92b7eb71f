/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fit.c - what memory takes here while all cores use it, and what cores take from each other.
 *
 * Why     The choice of algorithms needs no more than what one core takes (coll/calibrate.c): it ranks. A prediction needs
 *         what is left for each when all copy, or combine, more than the last cache holds; what it costs to store where
 *         another core has read; and how long a core is on its way from one process to the next.
 * How     memory   A thread on each core copies and combines in turn, in buffers of its own, several times; what counts is
 *                  the median of its runs, since at both ends others may not be there, and then the mean over threads.
 *                  Reading and writing alone have their other end in a block that stays in the core's own cache; what is
 *                  written goes past the caches, as results of that size do (coll/host/past.h).
 *         cores    Two threads on two cores by turns: one stores into a block, the other loads it. The second time both
 *                  touch other memory in between, more than their caches hold, so that the block has fallen out of them.
 *         pass     Two processes on one core by turns; who waits gives the core away. Threads of one process would be
 *                  quicker at it: they share page tables. With four of them, which give the core away all the time, it is
 *                  from one turn of the first to its next one behind which all others have had theirs, by the number of them:
 *                  their pages and tables push each other out, and the kernel need not take them in order.
 * Share   Each thread writes its own place of the crew, or of the pair; who started the threads reads them when it has joined
 *         them. Of the pair and of the processes who has the turn writes it, with release order, and the other one waits
 *         for it, with acquire order: then a block has one user at a time.
 * Fails   What cannot be measured, with one core or without a second process, is as usual. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tutti/private.h>
#include <tutti/simulate.h>
#include <unistd.h>
#include "base/machine.h"
#include "base/thread.h"
#include "coll/calibrate.h"
#include "coll/host/past.h"
#include "coll/volley.h"
#include "kernel/kernel.h"
#include "simulate/figures.h"
#include "transport/heap.h"

enum {
    CREW_MAX = 64,
    RUNS = 9,
    BUFFERS = 3,
    MIB = 1024 * 1024,
    ALL_BYTES = 128 * MIB, /* of a sort of buffer, on all cores together */
    LEAST_BYTES = 8 * MIB, /* and on one */
    BLOCK = 64 * 1024,
    HANDS = 65, /* times that a block goes over, of which the first ones do not count */
    HANDS_WARM = 8,
    MANY = 4,      /* processes of a core */
    ROUNDS = 400,  /* of them */
    PASSES = 400, /* of a core, in a run */
    GIVE_UP_MS = 500,
};

typedef struct member {
    tti_thread thread;
    int        core;
    size_t     bytes;   /* of a buffer */
    char      *memory;  /* BUFFERS of them, and a block */
    double     copy;    /* ns of a byte that is written */
    double     combine; /* ns of a byte that is read */
    double     read, write;
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

static double copy_run(const member *m)
{
    const int64_t begin = now();

    memcpy(m->memory, m->memory + m->bytes, m->bytes);
    KEEP(m->memory);
    return (double)(now() - begin) / (double)m->bytes;
}

static double combine_run(const member *m)
{
    const void   *in[2] = { m->memory + m->bytes, m->memory + 2 * m->bytes };
    const int64_t begin = now();

    tti_reduce(tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_F32), m->memory, in, 2, (int64_t)(m->bytes / sizeof(float)), 2);
    return (double)(now() - begin) / (2.0 * (double)m->bytes);
}

static double read_run(const member *m)
{
    char         *block = m->memory + BUFFERS * m->bytes;
    const int64_t begin = now();
    size_t        at;

    for (at = 0; at < m->bytes; at += BLOCK) {
        memcpy(block, m->memory + at, BLOCK);
        KEEP(block);
    }
    return (double)(now() - begin) / (double)m->bytes;
}

static double write_run(const member *m)
{
    const char   *block = m->memory + BUFFERS * m->bytes;
    const int64_t begin = now();
    size_t        at;

    for (at = 0; at < m->bytes; at += BLOCK) {
        tti_host_put(m->memory + at, block, BLOCK, true);
        KEEP(m->memory);
    }
    return (double)(now() - begin) / (double)m->bytes;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static void stay_on(int core)
{
    cpu_set_t own;

    CPU_ZERO(&own);
    CPU_SET(core, &own);
    pthread_setaffinity_np(pthread_self(), sizeof own, &own); /* or wherever it is */
}

static void work(void *arg)
{
    member *m = arg;
    double  copies[RUNS], combines[RUNS], reads[RUNS], writes[RUNS];
    int     run;

    stay_on(m->core);
    for (run = 0; run < RUNS; run++) {
        copies[run] = copy_run(m);
        combines[run] = combine_run(m);
        reads[run] = read_run(m);
        writes[run] = write_run(m);
    }
    m->copy = median(copies, RUNS);
    m->combine = median(combines, RUNS);
    m->read = median(reads, RUNS);
    m->write = median(writes, RUNS);
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
    const size_t bytes = c->n * LEAST_BYTES < ALL_BYTES ? (size_t)(ALL_BYTES / c->n / BLOCK * BLOCK) : LEAST_BYTES;
    const size_t all = BUFFERS * bytes + BLOCK;
    int          i;

    for (i = 0; i < c->n; i++) {
        c->members[i].bytes = bytes;
        c->members[i].memory = malloc(all);
        if (c->members[i].memory == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory to measure what %d cores take for it", c->n);
        memset(c->members[i].memory, 0, all);
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

static void take_means(const crew *c, tti_figures *f)
{
    double copy = 0, combine = 0, read = 0, write = 0;
    int    i;

    for (i = 0; i < c->n; i++) {
        copy += c->members[i].copy / c->n;
        combine += c->members[i].combine / c->n;
        read += c->members[i].read / c->n;
        write += c->members[i].write / c->n;
    }
    f->copy_all = copy;
    f->combine_all = combine;
    f->read_main = read;
    f->write_main = write;
}

static tutti_status measure_together(crew *c, tti_figures *f)
{
    tutti_status st = take_memory(c);
    int          i;

    if (st == TUTTI_OK)
        st = run_threads(c);
    if (st == TUTTI_OK)
        take_means(c, f);
    for (i = 0; i < c->n; i++)
        free(c->members[i].memory);
    return st;
}

/* ---- two cores --------------------------------------------------------------------------------- */

typedef struct pair {
    tti_volley at; /* even: who stores */
    int        core[2];
    size_t     between; /* bytes that each touches before its turn */
    char      *memory;  /* of each: that, and a block */
    double     ns[2][HANDS];
    bool       done[2];
    char       block[BLOCK];
} pair;

/* who 0 stores, 1 loads. */
static void hand(pair *p, uint32_t who)
{
    char    *own = p->memory + who * (p->between + BLOCK), *other = own + BLOCK;
    uint32_t i;

    stay_on(p->core[who]);
    for (i = 0; i < HANDS && tti_volley_await(&p->at, 2 * i + who, false); i++) {
        int64_t begin;

        /* A copy: to fill as much with one value would go past the caches, and leave the block in them. */
        memcpy(other, other + p->between / 2, p->between / 2);
        KEEP(other);
        begin = now();
        memcpy(who == 0 ? p->block : own, who == 0 ? own : p->block, BLOCK);
        KEEP(p);
        p->ns[who][i] = (double)(now() - begin) / BLOCK;
        atomic_store_explicit(&p->at.turn, 2 * i + who + 1, memory_order_release);
    }
    p->done[who] = i == HANDS;
}

static void store_blocks(void *arg)
{
    hand(arg, 0);
}

static void load_blocks(void *arg)
{
    hand(arg, 1);
}

/* False: they did not come to the end. */
static bool hand_over(pair *p, size_t between, double *store_out, double *load_out)
{
    tti_thread threads[2] = { { .running = false }, { .running = false } };

    p->between = between;
    p->memory = malloc(2 * (between + BLOCK));
    if (p->memory == NULL)
        return false;
    memset(p->memory, 1, 2 * (between + BLOCK)); /* what was never written is one page of zeros, and pushes nothing out */
    p->done[0] = p->done[1] = false;
    atomic_store(&p->at.turn, 0);
    atomic_store(&p->at.over, false);
    p->at.deadline_ns = now() + GIVE_UP_MS * TTI_MS;
    if (tti_thread_start(&threads[0], "tutti-measure", store_blocks, p) == TUTTI_OK &&
        tti_thread_start(&threads[1], "tutti-measure", load_blocks, p) != TUTTI_OK)
        atomic_store(&p->at.over, true);
    tti_thread_join(&threads[0]);
    tti_thread_join(&threads[1]);
    free(p->memory);
    if (!p->done[0] || !p->done[1])
        return false;
    *store_out = median(p->ns[0] + HANDS_WARM, HANDS - HANDS_WARM);
    *load_out = median(p->ns[1] + HANDS_WARM, HANDS - HANDS_WARM);
    return true;
}

static void measure_two_cores(const crew *c, tti_figures *f)
{
    pair  *p = c->n > 1 ? aligned_alloc(_Alignof(pair), sizeof *p) : NULL;
    double store, load, ignored;

    if (p == NULL)
        return;
    memset(p, 0, sizeof *p);
    p->core[0] = c->members[0].core;
    p->core[1] = c->members[1].core;
    if (hand_over(p, 0, &store, &load)) {
        f->store = store;
        f->load = load;
    }
    if (hand_over(p, (size_t)(2 * tti_cache_near()), &store, &ignored))
        f->store_out = store;
    free(p);
}

/* ---- two processes ----------------------------------------------------------------------------- */

typedef struct passes {
    _Atomic uint32_t turn;
} passes;

/* From its turn on, every second one, up to last. */
static bool pass_on(passes *p, uint32_t turn, uint32_t last, int64_t deadline_ns)
{
    for (; turn < last; turn += 2) {
        while (atomic_load_explicit(&p->turn, memory_order_acquire) != turn) {
            if (now() > deadline_ns)
                return false;
            sched_yield();
        }
        atomic_store_explicit(&p->turn, turn + 1, memory_order_release);
    }
    return true;
}

/* The child only looks and yields; it ends when time is up, whatever becomes of its parent. */
static bool time_passes(passes *p, int core, double *ns_out)
{
    const uint32_t last = 2 * PASSES * (RUNS + 1);
    const int64_t  deadline = now() + GIVE_UP_MS * TTI_MS;
    double         ns[RUNS];
    int            run;
    bool           goes = true;
    const pid_t    child = fork();

    if (child < 0)
        return false;
    if (child == 0) {
        stay_on(core);
        _exit(pass_on(p, 1, last, deadline) ? 0 : 1);
    }
    stay_on(core);
    goes = pass_on(p, 0, 2 * PASSES, deadline);
    for (run = 0; run < RUNS && goes; run++) {
        const int64_t begin = now();

        goes = pass_on(p, 2 * PASSES * (uint32_t)(run + 1), 2 * PASSES * (uint32_t)(run + 2), deadline);
        ns[run] = (double)(now() - begin) / (2 * PASSES);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (goes)
        *ns_out = median(ns, RUNS);
    return goes;
}

typedef struct turns {
    _Atomic uint32_t had[MANY - 1];
    _Atomic bool     over;
} turns;

static void have_turns(turns *t, int who, int64_t deadline_ns)
{
    while (!atomic_load_explicit(&t->over, memory_order_relaxed) && now() < deadline_ns) {
        atomic_fetch_add_explicit(&t->had[who], 1, memory_order_relaxed);
        sched_yield();
    }
}

/* Give the core away until all others have had it. */
static bool go_around(turns *t, int64_t deadline_ns)
{
    uint32_t before[MANY - 1];
    int      i;

    for (i = 0; i < MANY - 1; i++)
        before[i] = atomic_load_explicit(&t->had[i], memory_order_relaxed);
    for (i = 0; i < MANY - 1 && now() < deadline_ns; i++)
        while (atomic_load_explicit(&t->had[i], memory_order_relaxed) == before[i] && now() < deadline_ns)
            sched_yield();
    return i == MANY - 1 && now() < deadline_ns;
}

/* The children only count and yield; they end when time is up, whatever becomes of their parent. */
static bool time_rounds(turns *t, int core, double *ns_out)
{
    const int64_t deadline = now() + GIVE_UP_MS * TTI_MS;
    pid_t         children[MANY - 1];
    double        ns[ROUNDS];
    bool          goes = true;
    int           n, i;

    stay_on(core);
    for (n = 0; n < MANY - 1 && goes; n += goes) {
        children[n] = fork();
        goes = children[n] >= 0;
        if (children[n] == 0) {
            have_turns(t, n, deadline);
            _exit(0);
        }
    }
    for (i = 0; i < ROUNDS && goes; i++) {
        const int64_t begin = now();

        goes = go_around(t, deadline);
        ns[i] = (double)(now() - begin) / MANY;
    }
    atomic_store_explicit(&t->over, true, memory_order_relaxed);
    for (i = 0; i < n; i++)
        while (waitpid(children[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    if (goes)
        *ns_out = median(ns, ROUNDS);
    return goes;
}

typedef struct passing {
    int    core;
    double ns; /* 0: not measured */
    double many_ns;
} passing;

/* On a thread of its own, as it is pinned. */
static void measure_pass(void *arg)
{
    passing *job = arg;
    struct {
        passes two;
        turns  many;
    }       *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double   ns;

    if (p == MAP_FAILED)
        return;
    atomic_store(&p->two.turn, 0);
    if (time_passes(&p->two, job->core, &ns))
        job->ns = ns;
    if (time_rounds(&p->many, job->core, &ns))
        job->many_ns = ns;
    munmap(p, sizeof *p);
}

static void measure_processes(const crew *c, tti_figures *f)
{
    passing    job = { .core = c->members[0].core };
    tti_thread thread = { .running = false };

    if (tti_thread_start(&thread, "tutti-measure", measure_pass, &job) == TUTTI_OK)
        tti_thread_join(&thread);
    if (job.ns > 0)
        f->pass = job.ns;
    f->pass_many = job.many_ns;
}

static tutti_status measure_host(tti_figures *f)
{
    crew c = { .n = 0 };

    c.n = find_cores(c.members);
    if (c.n == 0)
        return TUTTI_OK; /* what is usual */
    measure_two_cores(&c, f);
    measure_processes(&c, f);
    return measure_together(&c, f);
}

/* ---- */

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
        st = measure_host(&f);
    if (st != TUTTI_OK)
        return st;
    f.machine = *tti_machine_here();
    if (gbit_per_s > 0)
        f.port_byte = tti_port_byte(gbit_per_s);
    return tti_figures_write(file, &f);
}
