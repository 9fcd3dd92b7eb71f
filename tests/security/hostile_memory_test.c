/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostile_memory_test.c
 * Goal    whatever stands in memory that processes of a host share, no rank reads or writes outside of it, or hangs, or dies.
 * Method  three ranks make calls of all kinds through shared memory. A thread of the last one writes into the heaps of all,
 *         which it has mapped as every member has: random words, small numbers, changed bits, at places where somebody
 *         has written before. Results may be wrong, calls may fail; what counts is that every rank comes to its end in
 *         time, by itself. Built with a sanitizer, it also tells of what merely did no harm.
 *         Arguments: --rounds N (8): worlds that are made and spoiled. SEED, in the environment: other words. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { RANKS = 3, BAD = RANKS - 1, PAGE = 4096, PAGES_MAX = 1 << 14, LARGE = 100000, MOST_CALLS = 400, CALL_MS = 1500, LIMIT_MS = 40000 };
enum { PREPARED };

typedef struct scribbler {
    uint64_t      state; /* of the random numbers */
    uint8_t     **pages; /* [n_pages] */
    size_t        n_pages;
    int64_t       pause_ns; /* between two words; 0: none */
    _Atomic bool  over;
    _Atomic long  words; /* written */
    pthread_t     thread;
} scribbler;

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- who scribbles ------------------------------------------------------------------------------------ */

/* Pages of [begin, end) that are there: others take memory when they are touched. */
static void add_pages(scribbler *s, uint8_t *begin, uint8_t *end)
{
    enum { AT_ONCE = 1024 };
    unsigned char there[AT_ONCE];
    size_t        n, i;

    for (; begin < end && s->n_pages + AT_ONCE <= PAGES_MAX; begin += n * PAGE) {
        n = (size_t)(end - begin) / PAGE;
        n = n < AT_ONCE ? n : AT_ONCE;
        if (n == 0 || mincore(begin, n * PAGE, there) != 0)
            return;
        for (i = 0; i < n; i++)
            if ((there[i] & 1) != 0)
                s->pages[s->n_pages++] = begin + i * PAGE;
    }
}

static void find_pages(scribbler *s)
{
    FILE         *maps = fopen("/proc/self/maps", "re");
    char          line[512];
    unsigned long begin, end;

    s->n_pages = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "memfd:tutti-heap") != NULL && sscanf(line, "%lx-%lx", &begin, &end) == 2)
            add_pages(s, (uint8_t *)begin, (uint8_t *)end);
    if (maps != NULL)
        fclose(maps);
}

static uint64_t word_for(scribbler *s, uint64_t there)
{
    const uint64_t r = draw(&s->state);

    switch (r % 8) {
    case 0: return draw(&s->state);
    case 1: return 0;
    case 2: return UINT64_MAX;
    case 3: return r >> 8 & 0xffff;
    case 4: return there + 1;
    case 5: return there ^ UINT64_C(1) << (r >> 8 & 63);
    case 6: return r & UINT64_C(0xffffffff00000000);
    default: return there - (r >> 8 & 0xff);
    }
}

#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
static void write_one(scribbler *s)
{
    const uint64_t     r = draw(&s->state);
    volatile uint64_t *at = (volatile uint64_t *)(void *)s->pages[r % s->n_pages] + (r >> 32) % (PAGE / sizeof *at);

    *at = word_for(s, *at);
}

static void *scribble(void *arg)
{
    scribbler      *s = arg;
    struct timespec pause = { .tv_nsec = s->pause_ns };
    long            n;

    for (n = 0; !atomic_load(&s->over); n++) {
        if (n % 4096 == 0)
            find_pages(s);
        if (s->n_pages > 0)
            write_one(s);
        if (s->pause_ns > 0)
            nanosleep(&pause, NULL);
        else
            sched_yield();
        atomic_store(&s->words, n + 1);
    }
    return NULL;
}

/* ---- what is called ------------------------------------------------------------------------------------ */

typedef struct buffers {
    float        *in, *out; /* [RANKS * LARGE] */
    float        *shared;   /* registered */
    tutti_window *window;
    int           rank;
} buffers;

static tutti_status call_splits(buffers *b, int64_t count)
{
    const int64_t ins[RANKS] = { count, count / 2, 7 }, outs[RANKS] = { ins[b->rank], ins[b->rank], ins[b->rank] };

    return tutti_all_to_all_single(TUTTI_SPAN(b->out, RANKS * ins[b->rank]), TUTTI_SPAN(b->in, count + count / 2 + 7),
                                   outs, ins, NULL);
}

static tutti_status call_messages(buffers *b, int64_t count)
{
    const int    right = (b->rank + 1) % RANKS, left = (b->rank + RANKS - 1) % RANKS;
    tutti_work  *work = NULL;
    tutti_status st = tutti_isend(TUTTI_SPAN(b->in, count), right, 3, NULL, &work);

    if (st == TUTTI_OK)
        st = tutti_recv(TUTTI_SPAN(b->out, count), left, 3, NULL, NULL);
    if (work != NULL && st == TUTTI_OK)
        st = tutti_work_wait(work);
    tutti_work_free(work);
    return st;
}

static tutti_status call_window(buffers *b)
{
    const int    right = (b->rank + 1) % RANKS, left = (b->rank + RANKS - 1) % RANKS;
    tutti_status st = tutti_window_put(b->window, TUTTI_SPAN(b->in, 100), right, 0);

    if (st == TUTTI_OK)
        st = tutti_window_signal(b->window, right);
    return st == TUTTI_OK ? tutti_window_wait_signal(b->window, left, 1000) : st;
}

/* The n-th call, the same on all ranks. */
static tutti_status call(buffers *b, uint64_t *state)
{
    static const int64_t counts[] = { 1, 13, 200, 3000, 20000, LARGE };
    const uint64_t       r = draw(state);
    const int64_t        count = counts[(r >> 8) % 6];
    const tutti_span     in = TUTTI_SPAN(b->in, count), out = TUTTI_SPAN(b->out, count);
    const int            root = (int)((r >> 16) % RANKS);

    switch (r % 11) {
    case 0: return tutti_barrier(NULL);
    case 1: return tutti_broadcast(out, root, NULL);
    case 2: return tutti_reduce(out, root, TUTTI_SUM, NULL);
    case 3: return tutti_all_gather_into_tensor(TUTTI_SPAN(b->out, RANKS * count), in, NULL);
    case 4: return tutti_reduce_scatter_tensor(out, TUTTI_SPAN(b->in, RANKS * count), TUTTI_SUM, NULL);
    case 5: return call_splits(b, count);
    case 6: return tutti_all_to_all_single(TUTTI_SPAN(b->out, RANKS * count), TUTTI_SPAN(b->in, RANKS * count), NULL, NULL, NULL);
    case 7: return call_messages(b, count);
    case 8: return tutti_all_reduce(TUTTI_SPAN(b->shared, count), TUTTI_SUM, NULL);
    case 9: return call_window(b);
    default: return tutti_all_reduce(out, TUTTI_SUM, NULL);
    }
}

static uint64_t seed_of(const tt_ctx *t)
{
    const char *more = getenv("SEED");

    return (uint64_t)t->port * UINT64_C(0x9e3779b97f4a7c15) + (more != NULL ? strtoull(more, NULL, 0) : 0) + 1;
}

static void begin_to_scribble(scribbler *s, uint64_t seed)
{
    static const int64_t pauses_ns[] = { 2000000, 200000, 20000, 0 };

    *s = (scribbler){ .state = seed ^ 77, .pages = malloc(PAGES_MAX * sizeof(uint8_t *)), .pause_ns = pauses_ns[seed >> 20 & 3] };
    assert_non_null(s->pages);
    assert_int_equal(pthread_create(&s->thread, NULL, scribble, s), 0);
    while (atomic_load(&s->words) == 0) /* or nothing would be tried */
        sched_yield();
}

static void end_to_scribble(scribbler *s)
{
    atomic_store(&s->over, true);
    pthread_join(s->thread, NULL);
    free(s->pages);
}

/* Before the first word is wrong all goes well. */
static void prepare(tt_ctx *t, buffers *b)
{
    void *shared = NULL;

    *b = (buffers){ .in = tt_floats(t, (size_t)RANKS * LARGE, 1), .out = tt_floats(t, (size_t)RANKS * LARGE, 2), .rank = t->rank };
    assert_int_equal(tutti_alloc(LARGE * sizeof(float), &shared), TUTTI_OK);
    b->shared = memset(shared, 0, LARGE * sizeof(float));
}

static void ranks_outlive_a_neighbour_who_scribbles(tt_ctx *t)
{
    uint64_t     seed = seed_of(t), state = seed;
    void        *lent = NULL;
    tutti_status st = TUTTI_OK;
    scribbler    s;
    buffers      b;
    tutti_span   part;
    int          n;

    prepare(t, &b);
    assert_int_equal(tutti_alloc(PAGE, &lent), TUTTI_OK);
    part = TUTTI_SPAN((float *)lent, 100);
    assert_int_equal(tutti_window_create(&part, NULL, &b.window), TUTTI_OK);
    assert_int_equal(tutti_set_timeout(NULL, CALL_MS), TUTTI_OK);
    tt_post(t, PREPARED); /* nobody is inside of what has to go well any more */
    tt_await(t, PREPARED, RANKS);
    if (t->rank == BAD)
        begin_to_scribble(&s, seed);
    for (n = 0; n < MOST_CALLS && st == TUTTI_OK; n++)
        st = call(&b, &state);
    for (n = 0; n < 3; n++) /* and of a group that has failed */
        (void)call(&b, &state);
    (void)tutti_window_free(b.window);
    if (t->rank == BAD)
        end_to_scribble(&s);
    (void)tutti_free(b.shared);
    (void)tutti_free(lent);
}

int main(int argc, char **argv)
{
    const size_t rounds = argc > 2 && strcmp(argv[1], "--rounds") == 0 ? (size_t)atoi(argv[2]) : 8;
    tt_test     *tests = calloc(rounds, sizeof *tests);
    size_t       i;
    int          failed = 1;

    for (i = 0; tests != NULL && i < rounds; i++)
        tests[i] = (tt_test)TT_TEST(ranks_outlive_a_neighbour_who_scribbles, .ranks = RANKS, .limit_ms = LIMIT_MS,
                                    .timeout_ms = LIMIT_MS / 2);
    if (tests != NULL && rounds > 0)
        failed = tt_main(tests, rounds);
    free(tests);
    return failed;
}
