/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calibrate.c - measures what the cost model goes by, inside this host.
 *
 * Why     Crossovers between algorithms lie where a wait costs as much as some bytes. Machines differ in
 *         both by more than ten times, and one machine by four, as its cores are near or far.
 * How     Each figure is the least of several short runs, since whatever disturbs a run makes it longer:
 *         a line goes to and fro between this thread and a helper on another core; two helpers give one
 *         core to each other; buffers are copied and combined, inside and beyond a core's cache; the
 *         kernel copies from this process itself.
 *         A job pays it once, on rank 0 of its first group within one host: about 5 ms while the others
 *         still start. No file keeps it: nothing is left behind, and a job never runs by the figures of
 *         another machine. Where one choice for always is wanted, a table says so (TUTTI_TUNE).
 * True    Figures are advice: whatever comes out, results stay the same bits. A run that hangs is given
 *         up, and what is out of all proportion is cut to it.
 * State   One set of figures per process, since they are the machine's: written once, before anybody
 *         reads them. */
#include "coll/calibrate.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/machine.h"
#include "base/thread.h"
#include "coll/volley.h"
#include "kernel/kernel.h"
#include "transport/heap.h"

enum {
    RUNS = 5,
    EXCHANGES = 100,          /* of a line, in a run */
    GIVES = 50,               /* of a core */
    GIVE_UP_MS = 3,           /* a run that should take tens of microseconds */
    NEAR_BYTES = 64 * 1024,   /* of a buffer: several fit into a core's second cache */
    FAR_BYTES = 2048 * 1024,  /* two do not fit into its second one */
    N_INPUTS = 4,
    OUT_OF_PROPORTION = 50,
};

/* The compiler must believe that somebody reads it. */
#define KEEP(memory) __asm__ __volatile__("" : : "r"(memory) : "memory")

static int64_t now(void)
{
    return tti_port_now(tti_port_system());
}

/* Zero is none yet. */
static double lesser(double least, double value)
{
    return least > 0 && least < value ? least : value;
}

/* ---- this thread and another one --------------------------------------------------------------- */

typedef struct pair {
    tti_volley at;
    uint32_t   turns;
    bool       yields; /* they give their core away while they wait */
    bool       writes; /* the helper, into bytes, in each of its turns */
    cpu_set_t  place;  /* of the helper */
    tti_thread helper;
    char       bytes[NEAR_BYTES];
} pair;

static bool await_turn(pair *p, uint32_t turn)
{
    return tti_volley_await(&p->at, turn, p->yields);
}

static void end_turn(pair *p, uint32_t turn)
{
    atomic_store_explicit(&p->at.turn, turn + 1, memory_order_release);
}

/* The odd turns. */
static void help(void *arg)
{
    pair    *p = arg;
    uint32_t turn;

    pthread_setaffinity_np(pthread_self(), sizeof p->place, &p->place); /* or wherever it is */
    for (turn = 1; turn < p->turns && await_turn(p, turn); turn += 2) {
        if (p->writes)
            memset(p->bytes, (int)turn, sizeof p->bytes);
        end_turn(p, turn);
    }
}

/* The cores beside the one of this thread. A thread that was pinned has the others' cores beside it. */
static bool find_other_cores(cpu_set_t *out)
{
    const int core = sched_getcpu();
    int       c;

    CPU_ZERO(out);
    if (core < 0 || core >= CPU_SETSIZE)
        return false;
    if (sched_getaffinity(0, sizeof *out, out) != 0 || CPU_COUNT(out) <= 1)
        for (c = 0; c < tti_running_cores() && c < CPU_SETSIZE; c++)
            CPU_SET(c, out);
    CPU_CLR(core, out);
    return CPU_COUNT(out) > 0;
}

static bool start(pair *p, uint32_t turns)
{
    p->turns = turns;
    p->at.deadline_ns = now() + GIVE_UP_MS * TTI_MS;
    return tti_thread_start(&p->helper, "tutti-measure", help, p) == TUTTI_OK;
}

static void finish(pair *p)
{
    atomic_store_explicit(&p->at.over, true, memory_order_relaxed);
    tti_thread_join(&p->helper);
}

/* The least ns of a turn, over RUNS runs of n turns each. */
static double time_turns(pair *p, uint32_t n)
{
    double   least = 0;
    uint32_t turn = 0, run;
    bool     goes = start(p, RUNS * n);

    for (run = 0; run < RUNS && goes; run++) {
        const int64_t begin = now();

        for (; turn < (run + 1) * n && goes; turn += 2) {
            end_turn(p, turn);
            goes = await_turn(p, turn + 2);
        }
        if (goes)
            least = lesser(least, (double)(now() - begin) / n);
    }
    finish(p);
    return least;
}

static void measure_line(pair *p, tti_machine *m)
{
    *p = (pair){ .yields = false };
    if (find_other_cores(&p->place))
        m->line = time_turns(p, EXCHANGES);
}

/* What another core has just written, from its cache to a buffer of this one. */
static void measure_fetch(pair *p, tti_machine *m)
{
    static const uint32_t last = 2 * RUNS;
    char                 *copy = calloc(1, NEAR_BYTES);
    uint32_t              turn;
    bool                  goes;

    *p = (pair){ .writes = true };
    goes = copy != NULL && find_other_cores(&p->place) && start(p, last);
    for (turn = 0; turn < last && goes; turn += 2) {
        end_turn(p, turn);
        goes = await_turn(p, turn + 2);
        if (goes) {
            const int64_t begin = now();

            memcpy(copy, p->bytes, NEAR_BYTES);
            KEEP(copy);
            m->fetch = lesser(m->fetch, (double)(now() - begin) / NEAR_BYTES);
        }
    }
    finish(p);
    free(copy);
}

/* One core for both: the helper of this run goes where the one that times it is. */
static void give_and_take(void *arg)
{
    tti_machine *m = arg;
    const int    core = sched_getcpu();
    cpu_set_t    own;
    pair        *p = aligned_alloc(_Alignof(pair), sizeof *p);

    CPU_ZERO(&own);
    if (core >= 0 && core < CPU_SETSIZE)
        CPU_SET(core, &own);
    if (p != NULL && pthread_setaffinity_np(pthread_self(), sizeof own, &own) == 0) {
        *p = (pair){ .yields = true, .place = own };
        m->give = time_turns(p, GIVES);
    }
    free(p);
}

/* On a thread of its own, as it is pinned. */
static void measure_give(tti_machine *m)
{
    tti_thread thread = { .running = false };

    if (tti_thread_start(&thread, "tutti-measure", give_and_take, m) == TUTTI_OK)
        tti_thread_join(&thread);
}

/* ---- this thread alone ------------------------------------------------------------------------- */

static double time_copy(char *to, const char *from, size_t bytes)
{
    double least = 0;
    int    run;

    for (run = 0; run < RUNS; run++) {
        const int64_t begin = now();

        memcpy(to, from, bytes);
        KEEP(to);
        least = lesser(least, (double)(now() - begin) / (double)bytes);
    }
    return least;
}

static void measure_combine(const char *memory, char *out, tti_machine *m)
{
    const tti_reduce_kernel *kernel = tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_F32);
    const void              *in[N_INPUTS];
    int                      i, run;

    for (i = 0; i < N_INPUTS; i++)
        in[i] = memory + i * NEAR_BYTES;
    for (run = 0; run < RUNS; run++) {
        const int64_t begin = now();

        tti_reduce(kernel, out, in, N_INPUTS, NEAR_BYTES / (int)sizeof(float), N_INPUTS);
        m->combine = lesser(m->combine, (double)(now() - begin) / (N_INPUTS * NEAR_BYTES));
    }
}

/* The least ns of a copy of bytes by the kernel; 0: it refuses. */
static double time_pull(char *to, char *from, size_t bytes)
{
    struct iovec local = { to, bytes }, remote = { from, bytes };
    double       least = 0;
    int          run;

    for (run = 0; run < RUNS; run++) {
        const int64_t begin = now();

        if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)bytes)
            return 0;
        least = lesser(least, (double)(now() - begin));
    }
    return least;
}

static void measure_copies(tti_machine *m)
{
    char *memory = malloc(2 * FAR_BYTES);

    if (memory == NULL)
        return;
    memset(memory, 0, 2 * FAR_BYTES);
    m->copy_far = time_copy(memory, memory + FAR_BYTES, FAR_BYTES);
    m->copy = time_copy(memory, memory + FAR_BYTES, NEAR_BYTES);
    measure_combine(memory, memory + FAR_BYTES, m);
    m->pull_call = time_pull(memory, memory + FAR_BYTES, 64);
    m->pull = (time_pull(memory, memory + FAR_BYTES, FAR_BYTES / 4) - m->pull_call) / (FAR_BYTES / 4);
    free(memory);
}

/* ---- together ---------------------------------------------------------------------------------- */

static void in_proportion(double *figure, double usual)
{
    if (!(*figure > 0))
        *figure = usual;
    else if (*figure > usual * OUT_OF_PROPORTION)
        *figure = usual * OUT_OF_PROPORTION;
    else if (*figure < usual / OUT_OF_PROPORTION)
        *figure = usual / OUT_OF_PROPORTION;
}

/* Of the process, as it is of the machine; written inside pthread_once(). */
static tti_machine here;

static void measure(void)
{
    const tti_machine *usual = &tti_machine_default;
    const int64_t      begin = now();
    tti_machine        m = { .line = 0 };
    pair              *p = aligned_alloc(_Alignof(pair), sizeof *p);

    if (p != NULL) {
        measure_line(p, &m);
        measure_fetch(p, &m);
    }
    free(p);
    measure_give(&m);
    measure_copies(&m);
    in_proportion(&m.line, usual->line);
    in_proportion(&m.give, usual->give);
    in_proportion(&m.copy, usual->copy);
    in_proportion(&m.copy_far, usual->copy_far);
    in_proportion(&m.fetch, usual->fetch);
    in_proportion(&m.combine, usual->combine);
    in_proportion(&m.pull, usual->pull);
    in_proportion(&m.pull_call, usual->pull_call);
    m.message = usual->message;
    m.post = usual->post;
    m.wire = usual->wire;
    m.cache_bytes = usual->cache_bytes;
    m.near_bytes = (double)tti_cache_near();
    m.last_bytes = (double)tti_cache_share();
    here = m;
    tti_log(TTI_LOG_DEBUG,
            "measured in %lld us: line %.0f ns, core given %.0f ns; GB/s: copy %.1f, far %.1f, fetch %.1f, "
            "combine %.1f, pull %.1f, a call of it %.0f ns",
            (long long)(now() - begin) / 1000, m.line, m.give, 1 / m.copy, 1 / m.copy_far, 1 / m.fetch,
            1 / m.combine, 1 / m.pull, m.pull_call);
}

const tti_machine *tti_machine_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, measure);
    return &here;
}
