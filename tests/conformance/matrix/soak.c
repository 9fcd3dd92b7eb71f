/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conformance_soak - random operations on random groups, many under way at once, for a set time.
 *
 * Why     The matrix runs one kind of operation at a time on one group. What breaks between operations,
 *         between groups that share ranks, or when groups come and go, shows only in company.
 * How     A schedule is drawn from the seed, the same on all ranks: make a group of some ranks, end one,
 *         or run an operation of the table (ops.c) on one, blocking or not. Each rank takes the steps of
 *         groups that it is in. Up to FLIGHT operations of a rank are under way; which it waits for, and
 *         when, is drawn from a number of its own. Every ROUND steps the ranks agree whether time is up.
 * True    All ranks issue in one order, on all groups; so none can wait for another for ever, whatever
 *         order they wait in. A group is ended by a rank when its own works are complete: at times after
 *         a barrier, at times while other members are still at work.
 * Fails   With the seed, the step and what was wrong; --seed and --layout take the same steps again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <tutti/private.h>
#include "harness/harness.h"
#include "ops.h"

enum { SLOTS = 6, FLIGHT = 8, ROUND = 64, GROUPS_MAX = 65536, TIMEOUT_MS = 60000, MARGIN_MS = 180000,
       STORY = 3 * TT_WORDS };

static const int64_t MS = 1000000;

/* Made before the ranks are forked; read by the parent after them. */
typedef struct shared {
    uint64_t         seed;
    int64_t          run_ms;
    int              hosts;
    long             steps, operations, groups; /* rank 0's */
    char             words[TT_WORLD_MAX][STORY];
    _Atomic uint32_t arrivals[GROUPS_MAX]; /* at the barriers of each group ever made */
} shared;

static shared *the;

/* A group that some rank is in; the same slot on all ranks. */
typedef struct slot {
    bool         taken;
    tutti_group *group;
    int          number;   /* among all groups made */
    int          size;     /* members */
    bool         member;   /* this rank is */
    uint32_t     barriers; /* so far */
} slot;

typedef struct soak {
    tt_ctx  *ctx;
    uint64_t common, own; /* the two sources of chance */
    long     step, operations;
    int      groups; /* made so far; the world is number 0 */
    slot     slots[SLOTS];
    tt_try  *flight[FLIGHT];
    int      flight_slot[FLIGHT];
} soak;

static int draw(uint64_t *from, int n)
{
    *from = tt_mix(*from);
    return (int)((*from >> 16) % (uint64_t)n);
}

static void stop(soak *s, const char *what)
{
    snprintf(the->words[s->ctx->rank], STORY, "step %ld: %s", s->step, what);
    fail_msg("step %ld: %s", s->step, what);
}

static void must(soak *s, tutti_status st, const char *what)
{
    char words[TT_WORDS];

    if (st == TUTTI_OK)
        return;
    snprintf(words, sizeof words, "%s: %s: %s", what, tutti_status_name(st), tutti_last_error());
    stop(s, words);
}

/* ---- operations --------------------------------------------------------------------------------- */

static void end_try(soak *s, tt_try *t, bool ok)
{
    char words[2 * TT_WORDS];

    if (!ok || !tt_try_check(t)) {
        snprintf(words, sizeof words, "%s, %s, %s, %lld elements, rank %d of %d: %s", t->row->name,
                 tutti_dtype_name(t->dtype), tutti_op_name(t->red), (long long)t->count, t->rank, t->size,
                 t->words);
        stop(s, words);
    }
    tt_try_release(t);
    free(t);
}

/* Wait for the one at a place, if there is one. */
static void land(soak *s, int at)
{
    tt_try *t = s->flight[at];

    s->flight[at] = NULL;
    if (t != NULL)
        end_try(s, t, tt_try_wait(t));
}

/* A free place; where there is none, one is made. */
static int room(soak *s)
{
    int at;

    for (at = 0; at < FLIGHT; at++)
        if (s->flight[at] == NULL)
            return at;
    at = draw(&s->own, FLIGHT);
    land(s, at);
    return at;
}

/* Any combination that there is; the same number of draws whatever comes out. */
static void choose(soak *s, tt_try *t, int size)
{
    static const int64_t counts[] = { 0, 1, 3, 100, 1000, 5000, 20000 };

    do {
        t->row = &tt_ops[draw(&s->common, tt_n_ops)];
    } while (size < 2 && (t->row->traits & TT_PEERS) != 0);
    do {
        t->red = (tutti_op_kind)draw(&s->common, TUTTI_OP_COUNT);
        t->dtype = (tutti_dtype)draw(&s->common, TUTTI_DTYPE_COUNT);
    } while (tutti_op_check((tutti_op){ .kind = t->red }, t->dtype) != TUTTI_OK);
    t->dtype = tt_row_dtype(t->row, t->dtype);
    t->red = tt_row_red(t->row, t->red);
    t->count = counts[draw(&s->common, sizeof counts / sizeof counts[0])];
    t->seed = tt_mix(s->common ^ (uint64_t)s->step);
    t->tag = (int)(s->step % 100000000) * TT_TAGS;
}

static void operate(soak *s, int where)
{
    slot      *g = &s->slots[where];
    tt_try    *t = calloc(1, sizeof *t);
    const bool async = draw(&s->common, 3) > 0;
    int        at;

    if (t == NULL)
        stop(s, "no memory");
    choose(s, t, g->size);
    g->barriers += (t->row->traits & TT_NO_DATA) != 0;
    if (!g->member) {
        free(t);
        return;
    }
    s->operations++;
    t->group = g->group;
    t->rank = tutti_get_rank(g->group);
    t->size = tutti_get_world_size(g->group);
    t->world = s->ctx->size;
    t->hosts = the->hosts;
    if ((t->row->traits & TT_NO_DATA) != 0) {
        t->arrivals = &the->arrivals[g->number % GROUPS_MAX];
        t->arrivals_due = g->barriers * (uint32_t)t->size;
    }
    if (!tt_try_prepare(t))
        stop(s, t->words);
    if (t->row->start == NULL || (!async && t->row->block != NULL)) {
        end_try(s, t, tt_try_block(t));
        return;
    }
    at = room(s);
    s->flight[at] = t;
    s->flight_slot[at] = where;
    if (!tt_try_start(t))
        stop(s, t->words);
}

/* ---- groups ------------------------------------------------------------------------------------- */

static void make_group(soak *s, int where)
{
    slot *g = &s->slots[where];
    int   ranks[TT_WORLD_MAX];
    int   n = 0;
    int   r;

    for (r = 0; r < s->ctx->size; r++)
        if (draw(&s->common, 3) > 0)
            ranks[n++] = r;
    if (n == 0)
        ranks[n++] = draw(&s->common, s->ctx->size);
    *g = (slot){ .taken = true, .number = ++s->groups, .size = n };
    must(s, tutti_new_group(ranks, n, NULL, &g->group), "new_group");
    g->member = g->group != TUTTI_NON_MEMBER;
}

static void end_group(soak *s, int where)
{
    slot      *g = &s->slots[where];
    const bool together = draw(&s->common, 2) == 0;
    int        at;

    for (at = 0; at < FLIGHT; at++)
        if (s->flight[at] != NULL && s->flight_slot[at] == where)
            land(s, at);
    if (together && g->member)
        must(s, tutti_barrier(g->group), "barrier before the end of a group");
    must(s, tutti_destroy_process_group(g->group), "destroy");
    g->taken = false;
}

static int taken_slot(soak *s, int from)
{
    int at;

    do {
        at = from + draw(&s->common, SLOTS - from);
    } while (!s->slots[at].taken);
    return at;
}

static int n_taken(const soak *s)
{
    int n = 0;
    int at;

    for (at = 1; at < SLOTS; at++)
        n += s->slots[at].taken;
    return n;
}

static int free_slot(const soak *s)
{
    int at = 1;

    while (s->slots[at].taken)
        at++;
    return at;
}

/* ---- the way ------------------------------------------------------------------------------------ */

static void take_step(soak *s)
{
    const int what = draw(&s->common, 40);

    if (what == 0 && n_taken(s) > 0)
        end_group(s, taken_slot(s, 1));
    else if (what <= 2 && n_taken(s) < SLOTS - 1)
        make_group(s, free_slot(s));
    else
        operate(s, taken_slot(s, 0));
    if (draw(&s->own, 6) == 0)
        land(s, draw(&s->own, FLIGHT));
}

/* All ranks go on, or none. */
static bool time_is_up(soak *s, int64_t deadline)
{
    int32_t up = tti_now_ns() >= deadline;

    must(s, tutti_all_reduce(TUTTI_SPAN(&up, 1), TUTTI_MAX, s->ctx->group), "all_reduce of the time");
    return up != 0;
}

static void body(tt_ctx *t)
{
    const int64_t deadline = tti_now_ns() + the->run_ms * MS;
    soak          s = { .ctx = t, .common = the->seed, .own = tt_mix(the->seed + 1 + (uint64_t)t->rank) };
    int           at;

    s.slots[0] = (slot){ .taken = true, .group = t->group, .size = t->size, .member = true };
    do {
        take_step(&s);
        s.step++;
    } while (s.step % ROUND != 0 || !time_is_up(&s, deadline));
    for (at = 0; at < FLIGHT; at++)
        land(&s, at);
    must(&s, tutti_barrier(t->group), "barrier at the end"); /* groups that are left end with the world */
    if (t->rank == 0) {
        the->steps = s.step;
        the->operations = s.operations;
        the->groups = s.groups;
    }
}

/* ---- the program -------------------------------------------------------------------------------- */

typedef struct layout {
    const char *name, *transport;
    int         ranks, hosts;
} layout;

static const layout layouts[] = {
    { "shm", "shm", 4, 1 },
    { "tcp", "tcp", 3, 1 },
    { "threads", "threads", 5, 1 },
    { "threads-tcp", "threads-tcp", 3, 1 },
    { "hosts", "shm", 4, 2 },
};

enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static int run(const layout *l, uint64_t seed, int64_t run_ms)
{
    const tt_test test = { .name = "soak",
                           .body = body,
                           .ranks = l->ranks,
                           .transports = l->transport,
                           .limit_ms = (int)(run_ms + MARGIN_MS),
                           .timeout_ms = TIMEOUT_MS,
                           .dies = -1,
                           .hosts = l->hosts };
    int           result, r;

    memset(the, 0, sizeof *the);
    the->seed = seed;
    the->run_ms = run_ms;
    the->hosts = l->hosts;
    result = tt_main(&test, 1);
    if (result == TT_PASSED)
        printf("  %ld steps, %ld operations of rank 0, %ld groups\n", the->steps, the->operations, the->groups);
    if (result != TT_FAILED)
        return result;
    for (r = 0; r < l->ranks; r++)
        if (the->words[r][0] != '\0')
            printf("  rank %d, %s\n", r, the->words[r]);
    printf("  again: conformance_soak --seed %llu --seconds %lld --layout %s\n", (unsigned long long)seed,
           (long long)(run_ms / 1000 + 1), l->name);
    return result;
}

static int usage(void)
{
    int i;

    fprintf(stderr, "usage: conformance_soak [--seconds N] [--seed N] [--layout NAME]\n  layouts:");
    for (i = 0; i < LAYOUTS; i++)
        fprintf(stderr, " %s", layouts[i].name);
    fprintf(stderr, "\n  N seconds are for all layouts together; without a layout all, one after the other\n");
    return 2;
}

/* A number from 1 on, -1 if it is none. */
static long long number(const char *text)
{
    char     *end;
    long long n;

    errno = 0;
    n = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && n > 0 ? n : -1;
}

static int run_layouts(const char *wanted, uint64_t seed, long long seconds)
{
    bool skipped = false, failed = false, known = false;
    int  i, result;

    for (i = 0; i < LAYOUTS; i++) {
        if (wanted != NULL && strcmp(wanted, layouts[i].name) != 0)
            continue;
        known = true;
        result = run(&layouts[i], seed, seconds * 1000 / (wanted != NULL ? 1 : LAYOUTS));
        failed = failed || result == TT_FAILED;
        skipped = skipped || result == TT_SKIPPED;
    }
    if (!known)
        return usage();
    return failed ? TT_FAILED : skipped ? TT_SKIPPED : TT_PASSED;
}

int main(int argc, char **argv)
{
    struct timespec now;
    const char     *wanted = NULL;
    long long       seed, seconds = 30;
    int             i;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = 1 + (long long)(tt_mix((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) % 1000000000u);
    for (i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = number(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = number(argv[i + 1]);
        else if (strcmp(argv[i], "--layout") == 0)
            wanted = argv[i + 1];
        else
            return usage();
    if (i != argc || seconds < 1 || seconds > 1000000 || seed < 1)
        return usage();
    the = mmap(NULL, sizeof *the, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (the == MAP_FAILED)
        return TT_FAILED;
    tt_values_init();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %lld\n", seed);
    return run_layouts(wanted, (uint64_t)seed, seconds);
}
