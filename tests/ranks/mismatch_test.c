/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mismatch_test.c
 * Goal    one rank calls something else than the others: every rank is told within a second, with both calls and a next
 *         step, whatever the calls are, whoever is the odd one, over every way; who has done its part already is told by its
 *         next call. The group is finished then, its world is not.
 * Method  Cells are generated: what differs, in which kind of call; who is odd, how large the call is, how it is made, and
 *         whether it is the group's first vary from cell to cell, and all of them are combined with --long. Each cell has a
 *         group of its own, in one world. A rank whose call returns well stays out of the library until those who wait
 *         have been told: they must not need it. Then it is told by the next call, or by one of those that follow: it may have
 *         all it needs in the next one, too, before it hears of what another has found there.
 *         --survey=FILE goes through all cells and writes there which ones do not hold. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

/* What a busy machine adds to the second is not the library's. */
enum { TOLD_MS = 1000, BUSY_MS = 3000, ANSWER_MS = 600, GROUP_MS = 8000 };
enum { START, DONE, FIRST /* and the one behind it */ }; /* marks */
enum { TINY = 3, MEDIUM = 2000, LARGE = 150000, RANKS_MOST = 8, PARTS_MOST = 40000 };

typedef enum kind {
    BARRIER,
    ALL_REDUCE,
    BROADCAST,
    REDUCE,
    ALL_GATHER,
    GATHER,
    SCATTER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    ALL_GATHER_V,
    REDUCE_SCATTER_V,
    GATHER_V,
    SCATTER_V,
    SEGMENTS,
    QUANTIZED,
    BLOCK_SPARSE,
    KINDS
} kind;

typedef enum fault { ANOTHER_KIND, LEFT_OUT, ANOTHER_DTYPE, ANOTHER_OP, ANOTHER_COUNT, ANOTHER_ROOT, FAULTS } fault;

typedef enum manner { BLOCKING, ASYNC, REGISTERED, MANNERS } manner;

static const char *const names[KINDS] = {
    "barrier",     "all_reduce",     "broadcast", "reduce",    "all_gather", "gather",     "scatter",    "reduce_scatter",
    "all_to_all",  "all_gather",     "reduce_scatter", "gather_v", "scatter_v", "all_reduce", "all_gather", "all_reduce",
};
static const char *const kinds[KINDS] = {
    "barrier",    "all_reduce",   "broadcast",        "reduce",   "all_gather", "gather",   "scatter",   "reduce_scatter",
    "all_to_all", "all_gather_v", "reduce_scatter_v", "gather_v", "scatter_v",  "segments", "quantized", "block_sparse",
};
static const char *const faults[FAULTS] = { "kind", "left out", "dtype", "op", "count", "root" };
static const char *const manners[MANNERS] = { "blocking", "async", "registered" };

static bool  is_long;
static FILE *survey; /* NULL: a cell that does not hold is a failure */

/* One rank's call. */
typedef struct deed {
    kind        kind;
    tutti_dtype dtype;
    tutti_op    op;
    int64_t     count; /* of one rank's part */
    int         root;
} deed;

typedef struct cell {
    kind   kind;
    fault  fault;
    int    odd;
    int64_t count;
    manner manner;
    int    before; /* calls of the group that go well */
} cell;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- calls ------------------------------------------------------------------------------------------ */

/* Memory of a rank: in and out, each with room for a part of every rank. */
typedef struct buffers {
    char *in, *out;
} buffers;

static size_t room(int size)
{
    return (size_t)size * 2 * LARGE * 8;
}

static void take_buffers(tt_ctx *t, bool registered, buffers *b)
{
    void *memory[2] = { NULL, NULL };
    int   i;

    for (i = 0; i < 2; i++) {
        if (!registered)
            memory[i] = tt_alloc(t, room(t->size));
        else if (tutti_alloc(room(t->size), &memory[i]) != TUTTI_OK)
            fail_msg("tutti_alloc: %s", tutti_last_error());
        memset(memory[i], 0, room(t->size));
    }
    b->in = memory[0];
    b->out = memory[1];
}

static bool has_root(kind k)
{
    return k == BROADCAST || k == REDUCE || k == GATHER || k == SCATTER || k == GATHER_V || k == SCATTER_V;
}

static bool reduces(kind k)
{
    return k == ALL_REDUCE || k == REDUCE || k == REDUCE_SCATTER || k == REDUCE_SCATTER_V || k == SEGMENTS;
}

/* Parts that every rank knows differ from rank to rank. */
static int64_t part(const deed *d, int r)
{
    return r % 2 == 0 ? d->count : d->count / 2 + 1;
}

static int64_t parts(const deed *d, int size, int64_t counts[RANKS_MOST])
{
    int64_t sum = 0;
    int     r;

    for (r = 0; r < size; r++)
        sum += counts[r] = part(d, r);
    return sum;
}

static tutti_span span(const deed *d, char *at, int64_t first, int64_t count)
{
    return tutti_span_of(at + (size_t)first * tutti_dtype_size(d->dtype), count, d->dtype);
}

/* One span per rank, each of its part if they differ. */
static void cut(const deed *d, char *at, int size, bool uneven, tutti_span list[RANKS_MOST])
{
    int64_t first = 0;
    int     r;

    for (r = 0; r < size; r++) {
        list[r] = span(d, at, first, uneven ? part(d, r) : d->count);
        first += list[r].count;
    }
}

#define EITHER(name, ...) (work != NULL ? name##_async(__VA_ARGS__, work) : name(__VA_ARGS__))

static tutti_status call_rooted(const tt_ctx *t, const deed *d, const buffers *b, tutti_group *g, tutti_work **work)
{
    const bool is_root = t->rank == d->root;
    tutti_span list[RANKS_MOST];
    const int  n = is_root ? t->size : 0;

    cut(d, d->kind == GATHER || d->kind == GATHER_V ? b->out : b->in, t->size, d->kind == GATHER_V || d->kind == SCATTER_V,
        list);
    switch (d->kind) {
    case BROADCAST: return EITHER(tutti_broadcast, span(d, b->out, 0, d->count), d->root, g);
    case REDUCE: return EITHER(tutti_reduce, span(d, b->out, 0, d->count), d->root, d->op, g);
    case GATHER: return EITHER(tutti_gather, is_root ? list : NULL, n, span(d, b->in, 0, d->count), d->root, g);
    case SCATTER: return EITHER(tutti_scatter, span(d, b->out, 0, d->count), is_root ? list : NULL, n, d->root, g);
    case GATHER_V:
        return EITHER(tutti_gather_v, is_root ? list : NULL, n, span(d, b->in, 0, part(d, t->rank)), d->root, g);
    default: return EITHER(tutti_scatter_v, span(d, b->out, 0, part(d, t->rank)), is_root ? list : NULL, n, d->root, g);
    }
}

static tutti_status call_all(const tt_ctx *t, const deed *d, const buffers *b, tutti_group *g, tutti_work **work)
{
    const int64_t      all = d->count * t->size;
    int64_t            counts[RANKS_MOST];
    const int64_t      sum = parts(d, t->size, counts);
    const tutti_span   own = span(d, b->out, 0, d->count);
    const tutti_span   two[] = { span(d, b->out, 0, d->count), span(d, b->out, d->count, d->count) };

    switch (d->kind) {
    case BARRIER: return EITHER(tutti_barrier, g);
    case ALL_REDUCE: return EITHER(tutti_all_reduce, own, d->op, g);
    case ALL_GATHER: return EITHER(tutti_all_gather_into_tensor, span(d, b->out, 0, all), span(d, b->in, 0, d->count), g);
    case REDUCE_SCATTER: return EITHER(tutti_reduce_scatter_tensor, own, span(d, b->in, 0, all), d->op, g);
    case ALL_TO_ALL: return EITHER(tutti_all_to_all_single, span(d, b->out, 0, all), span(d, b->in, 0, all), NULL, NULL, g);
    case ALL_GATHER_V:
        return EITHER(tutti_all_gather_into_tensor_v, span(d, b->out, 0, sum), span(d, b->in, 0, counts[t->rank]), counts, g);
    case REDUCE_SCATTER_V:
        return EITHER(tutti_reduce_scatter_tensor_v, span(d, b->out, 0, counts[t->rank]), span(d, b->in, 0, sum), counts,
                      d->op, g);
    case QUANTIZED: return EITHER(tutti_all_reduce_quantized, own, TUTTI_SUM, NULL, g);
    case BLOCK_SPARSE: return EITHER(tutti_all_reduce_block_sparse, own, TUTTI_SUM, NULL, g);
    default: return EITHER(tutti_all_reduce_coalesced, two, 2, d->op, g);
    }
}

static tutti_status call(const tt_ctx *t, const deed *d, const buffers *b, manner how, tutti_group *g)
{
    tutti_work  *own = NULL, **work = how == ASYNC ? &own : NULL;
    tutti_status st = has_root(d->kind) ? call_rooted(t, d, b, g, work) : call_all(t, d, b, g, work);

    if (st == TUTTI_OK && own != NULL)
        st = tutti_work_wait(own);
    tutti_work_free(own);
    return st;
}

/* ---- what is said ----------------------------------------------------------------------------------- */

/* The beginning of what is said of a call, as far as it is the same on all ranks. Of one that was only seen in passing no
 * count is known. */
static void describe_as(const deed *d, unsigned seq, bool counted, char out[120])
{
    int n = snprintf(out, 120, "%s #%u", names[d->kind], seq);

    if (d->kind == BARRIER || d->kind == QUANTIZED || d->kind == BLOCK_SPARSE)
        return;
    n += snprintf(out + n, 120 - (size_t)n, " (%s%s", reduces(d->kind) ? tutti_op_name(d->op.kind) : "",
                  reduces(d->kind) ? ", " : "");
    if (counted && d->kind != ALL_TO_ALL && d->kind != GATHER_V && d->kind != SCATTER_V && d->kind != ALL_GATHER_V &&
        d->kind != REDUCE_SCATTER_V)
        n += snprintf(out + n, 120 - (size_t)n, "%lld ", (long long)(d->kind == SEGMENTS ? 2 * d->count : d->count));
    if (d->kind == ALL_GATHER_V || d->kind == REDUCE_SCATTER_V)
        return;
    n += snprintf(out + n, 120 - (size_t)n, "%s", tutti_dtype_name(d->dtype));
    if (has_root(d->kind))
        snprintf(out + n, 120 - (size_t)n, ", root %d)", d->root);
}

static void describe(const deed *d, unsigned seq, char out[120])
{
    describe_as(d, seq, true, out);
}

/* Whether a call is quoted: as a whole, unless nobody on its rank has come to say more in time. */
static bool quotes(const char *said, const deed *d, unsigned seq, int64_t ms)
{
    char whole[120], known[120];

    describe_as(d, seq, true, whole);
    describe_as(d, seq, false, known);
    return strstr(said, whole) != NULL || (ms >= ANSWER_MS && strstr(said, known) != NULL);
}

/* Both calls are quoted; or the one that is heard of, where this rank has gone on by more calls than its board has. */
static bool quotes_both(const char *said, const deed *usual, const deed *odd, unsigned seq, int64_t ms)
{
    const bool one = quotes(said, usual, seq, ms), other = quotes(said, odd, seq, ms);

    return (one && other) || (strstr(said, "another of the group's calls") != NULL &&
                              (quotes(said, usual, seq, ANSWER_MS) || quotes(said, odd, seq, ANSWER_MS)));
}

static const char *whole_of(kind k)
{
    return k == QUANTIZED ? " of all_reduce_quantized" : k == BLOCK_SPARSE ? " of all_reduce_block_sparse" : "";
}

/* What is wrong with what this rank was told, ms after it began to wait, and since_ms after the first of the calls that differ began,
 * when others may have begun to wait for an answer; "": nothing. */
static void judge(const cell *c, const deed *usual, const deed *odd, tutti_status st, int64_t ms, int64_t since_ms, char wrong[600])
{
    const char *said = tutti_last_error();
    const unsigned seq = (unsigned)c->before + 1;
    char        one[120], other[120], who[24];

    wrong[0] = '\0';
    describe(usual, seq, one);
    describe(odd, seq, other);
    snprintf(who, sizeof who, "  rank %d: ", c->odd);
    if (st != TUTTI_E_MISMATCH)
        snprintf(wrong, 600, "%s after %lld ms: %.400s", tutti_status_name(st), (long long)ms, said);
    else if (!quotes_both(said, usual, odd, seq, since_ms) || strstr(said, whole_of(usual->kind)) == NULL ||
             strstr(said, whole_of(odd->kind)) == NULL)
        snprintf(wrong, 600, "'%s' or '%s' is not in: %.300s", one, other, said);
    else if ((strstr(said, who) == NULL && strstr(said, "another of the group's calls") == NULL) || strstr(said, "next: ") == NULL)
        snprintf(wrong, 600, "rank %d or a next step is not in: %.400s", c->odd, said);
    else if (ms > TOLD_MS + BUSY_MS)
        snprintf(wrong, 600, "told after %lld ms", (long long)ms);
}

/* ---- cells ------------------------------------------------------------------------------------------ */

static deed usual_deed(const cell *c)
{
    return (deed){ .kind = c->kind, .dtype = TUTTI_F32, .op = TUTTI_SUM, .count = c->count, .root = 0 };
}

static deed odd_deed(const cell *c, int size)
{
    static const kind after[KINDS] = { ALL_REDUCE, BROADCAST,  REDUCE_SCATTER, ALL_REDUCE, ALL_TO_ALL, BROADCAST,
                                       GATHER,     ALL_GATHER, ALL_REDUCE,     ALL_GATHER, REDUCE,     SCATTER_V,
                                       GATHER_V,   ALL_REDUCE, ALL_REDUCE,     QUANTIZED };
    deed              d = usual_deed(c);

    switch (c->fault) {
    case ANOTHER_KIND: d.kind = after[c->kind]; break;
    case ANOTHER_DTYPE: d.dtype = c->count == MEDIUM ? TUTTI_F64 : TUTTI_I32; break;
    case ANOTHER_OP: d.op = TUTTI_MAX; break;
    case ANOTHER_COUNT: d.count = c->count == TINY ? TINY + 1 : c->count == MEDIUM ? 20000 : 10; break;
    case ANOTHER_ROOT: d.root = size - 1; break;
    default: break;
    }
    return d;
}

/* The others begin with a barrier that the odd one leaves out. */
static deed first_deed(const cell *c)
{
    deed d = usual_deed(c);

    if (c->fault == LEFT_OUT)
        d.kind = BARRIER;
    return d;
}

static bool makes_sense(const cell *c)
{
    const bool compressed = c->kind == QUANTIZED || c->kind == BLOCK_SPARSE;

    switch (c->fault) {
    case LEFT_OUT: return c->kind != BARRIER;
    case ANOTHER_DTYPE: return c->kind != BARRIER && !compressed;
    case ANOTHER_COUNT:
        return c->kind != BARRIER && c->kind != ALL_TO_ALL && c->kind != GATHER_V && c->kind != SCATTER_V && !compressed;
    case ANOTHER_OP: return reduces(c->kind);
    case ANOTHER_ROOT: return has_root(c->kind);
    default: return true;
    }
}

static void complain(const tt_ctx *t, const cell *c, const char *when, const char *wrong)
{
    char text[900];

    snprintf(text, sizeof text, "%s, %d ranks: %s, other %s on rank %d, %lld elements, %s, call #%d: rank %d, %s: %s",
             t->transport, t->size, kinds[c->kind], faults[c->fault], c->odd, (long long)c->count, manners[c->manner],
             c->before + 1, t->rank, when, wrong);
    if (survey == NULL)
        fail_msg("%s", text);
    fprintf(survey, "%s\n", text);
    fflush(survey);
}

static tutti_group *fresh_group(void)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.timeout_ms = survey != NULL ? 2500 : GROUP_MS;
    if (tutti_new_group(NULL, 0, &opts, &group) != TUTTI_OK)
        fail_msg("new_group: %s", tutti_last_error());
    return group;
}

/* All ranks are here, for the n-th time. */
static void meet(tt_ctx *t, int mark, uint32_t n)
{
    tt_post(t, mark);
    tt_await(t, mark, n * (uint32_t)t->size);
}

/* The same, but for half a second at most: what was sent to a rank whose call is over may not fit on its way before that rank makes its
 * next one, and then who sends it is not through. */
static void meet_for_a_while(tt_ctx *t, int mark, uint32_t n)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    const int64_t         until = now_ms() + 500;

    tt_post(t, mark);
    while (atomic_load(&t->marks[mark]) < n * (uint32_t)t->size && now_ms() < until)
        nanosleep(&pause, NULL);
}

/* The n-th call that differs begins here, all ranks having met before. When the first rank does so is kept for all, as the clock is the
 * machine's; nobody needs the mark of the call before any more, which is the next one's. */
static void begin_call(tt_ctx *t, uint32_t n)
{
    const uint32_t now = (uint32_t)now_ms();
    uint32_t       none = 0;

    atomic_store(&t->marks[FIRST + (n + 1) % 2], 0);
    (void)atomic_compare_exchange_strong(&t->marks[FIRST + n % 2], &none, now != 0 ? now : UINT32_MAX);
}

static int64_t ms_since_first(const tt_ctx *t, uint32_t n)
{
    return (int32_t)((uint32_t)now_ms() - atomic_load(&t->marks[FIRST + n % 2]));
}

/* Do one cell; how long it took until this rank was told. */
static int64_t do_cell(tt_ctx *t, const cell *c, const buffers *b, uint32_t n)
{
    const deed   usual = first_deed(c), odd = odd_deed(c, t->size);
    tutti_group *group = fresh_group();
    tutti_status st = TUTTI_OK;
    const char  *when = "in the call";
    char         wrong[600];
    int64_t      began, ms;
    int          i;

    for (i = 0; i < c->before; i++)
        if (tutti_barrier(group) != TUTTI_OK)
            fail_msg("barrier: %s", tutti_last_error());
    meet(t, START, n);
    begin_call(t, n);
    began = now_ms();
    st = call(t, t->rank == c->odd ? &odd : &usual, b, c->manner, group);
    ms = now_ms() - began;
    if (st == TUTTI_OK) {
        when = "in the next call";
        meet_for_a_while(t, DONE, n);
        began = now_ms();
        do {
            st = tutti_barrier(group);
            ms = now_ms() - began;
        } while (st == TUTTI_OK && ms < TOLD_MS + BUSY_MS);
        judge(c, &usual, &odd, st, ms, ms_since_first(t, n), wrong);
    } else {
        judge(c, &usual, &odd, st, ms, ms_since_first(t, n), wrong);
        tt_post(t, DONE);
    }
    if (wrong[0] != '\0')
        complain(t, c, when, wrong);
    st = tutti_barrier(group);
    if (st != TUTTI_E_MISMATCH)
        complain(t, c, "afterwards", tutti_status_name(st));
    if (tutti_destroy_process_group(group) != TUTTI_OK)
        complain(t, c, "destroy", tutti_last_error());
    return ms;
}

/* Cell number i of a fault in a kind: what varies comes by turns, of lengths that have no common factor. */
static cell cell_of(kind k, fault f, int i, int size)
{
    static const int64_t counts[] = { TINY, MEDIUM, LARGE };
    const int            odds[] = { size - 1, 0, size / 2 };

    return (cell){ .kind = k, .fault = f, .odd = odds[i % 3], .count = counts[i / 3 % 3], .manner = (manner)(i / 9 % 3),
                   .before = i / 27 % 2 * 2 };
}

enum { VARIANTS = 3 * 3 * 3 * 2 };

static void every_rank_is_told(tt_ctx *t)
{
    const int seed = t->size * 7 + (int)strlen(t->transport);
    buffers   plain, registered;
    uint32_t  n = 0;
    int64_t   worst = 0;
    int       k, f, i, number = 0;

    take_buffers(t, false, &plain);
    take_buffers(t, true, &registered);
    for (k = 0; k < KINDS; k++)
        for (f = 0; f < FAULTS; f++)
            for (i = 0; i < (is_long ? VARIANTS : 1); i++) {
                const cell c = cell_of((kind)k, (fault)f, is_long ? i : (number + seed) * 17 % VARIANTS, t->size);
                int64_t    ms;

                if (!makes_sense(&c))
                    continue;
                number++;
                ms = do_cell(t, &c, c.manner == REGISTERED ? &registered : &plain, ++n);
                worst = ms > worst ? ms : worst;
            }
    if (tutti_barrier(t->group) != TUTTI_OK) /* of the world, which goes on */
        fail_msg("the world: %s", tutti_last_error());
    fprintf(stderr, "rank %d: %u cells, told after %lld ms at most\n", t->rank, n, (long long)worst);
    tutti_free(registered.in);
    tutti_free(registered.out);
}

/* ---- the world's first call ------------------------------------------------------------------------- */

/* Nothing is connected yet, and who is told leaves at once: the others hear why, not that somebody has left. */
static void first_and_last(tt_ctx *t, int odd, int64_t count)
{
    const cell   c = { .kind = ALL_REDUCE, .fault = ANOTHER_COUNT, .odd = odd, .count = count };
    const deed   usual = usual_deed(&c), other = odd_deed(&c, t->size);
    buffers      b;
    tutti_status st;
    char         wrong[600];
    int64_t      began;

    take_buffers(t, false, &b);
    meet(t, START, 1);
    begin_call(t, 1);
    began = now_ms();
    st = call(t, t->rank == odd ? &other : &usual, &b, BLOCKING, t->group);
    judge(&c, &usual, &other, st, now_ms() - began, ms_since_first(t, 1), wrong);
    if (wrong[0] != '\0')
        complain(t, &c, "in the world's first call", wrong);
}

static void few_elements_at_first(tt_ctx *t)
{
    first_and_last(t, t->size - 1, TINY);
}

static void many_elements_at_first(tt_ctx *t)
{
    first_and_last(t, 0, LARGE);
}

/* ---- late, and no mistake --------------------------------------------------------------------------- */

/* Of each two neighbours in the circle of ranks; which of them is this rank's with the next one. */
static void make_pairs(tt_ctx *t, tutti_group **with_next, tutti_group **with_former)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    int                 r;

    opts.timeout_ms = GROUP_MS;
    for (r = 0; r < t->size; r++) {
        const int    pair[] = { r, (r + 1) % t->size };
        tutti_group *group = NULL;

        if (tutti_new_group(pair, 2, &opts, &group) != TUTTI_OK)
            fail_msg("new_group: %s", tutti_last_error());
        if (pair[0] == t->rank)
            *with_next = group;
        else if (pair[1] == t->rank)
            *with_former = group;
    }
}

/* Each rank waits for the next one, and the last of them is only late: nobody is told anything. */
static void a_chain_of_groups(tt_ctx *t)
{
    static const struct timespec lateness = { .tv_nsec = 900 * 1000 * 1000 };
    tutti_group                 *next = NULL, *former = NULL;
    int32_t                      x = 1;

    make_pairs(t, &next, &former);
    if (t->rank == t->size - 1) {
        nanosleep(&lateness, NULL);
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, former), TUTTI_OK);
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, next), TUTTI_OK);
        return;
    }
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, next), TUTTI_OK);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, former), TUTTI_OK);
}

/* What is waited for in a call and in a message comes. */
static void a_late_message_is_no_mistake(tt_ctx *t)
{
    static const struct timespec lateness = { .tv_nsec = 400 * 1000 * 1000 };
    tutti_group                 *group = fresh_group();
    int32_t                      x = 5, y = 0;

    if (t->rank == 0) {
        nanosleep(&lateness, NULL);
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 1, 3, group), TUTTI_OK);
        nanosleep(&lateness, NULL);
    } else if (t->rank == 1) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), 0, 3, group, NULL), TUTTI_OK);
        assert_int_equal(y, 5);
    }
    assert_int_equal(tutti_barrier(group), TUTTI_OK);
}

/* ---- two groups --------------------------------------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__ /* which starts a thread in every process: nobody is told that nothing else goes on there */
/* One rank calls b first, where the others begin with a. Both groups end, on all ranks, the rest of the world goes on. */
static int64_t mix_up(tt_ctx *t, const cell *c, const buffers *b, uint32_t n)
{
    tutti_group *groups[2] = { fresh_group(), fresh_group() };
    const int    mine = t->rank == c->odd;
    const deed   d = usual_deed(c);
    int64_t      began, ms;
    tutti_status st;
    char         names_of[2][80], who[24];
    int          i;

    for (i = 0; i < 2; i++)
        snprintf(names_of[i], sizeof names_of[i], "on group '%s'", tutti_get_group_name(groups[i]));
    snprintf(who, sizeof who, "  rank %d: ", c->odd);
    meet(t, START, n);
    began = now_ms();
    st = call(t, &d, b, BLOCKING, groups[mine]);
    ms = now_ms() - began;
    if (st != TUTTI_E_MISMATCH || strstr(tutti_last_error(), who) == NULL || ms > TOLD_MS + BUSY_MS ||
        strstr(tutti_last_error(), names_of[0]) == NULL || strstr(tutti_last_error(), names_of[1]) == NULL)
        complain(t, c, "in one of two groups", tutti_last_error());
    meet(t, DONE, n); /* a call of one that has been told is nothing for another to compare with */
    for (i = 0; i < 2; i++) {
        st = tutti_barrier(groups[i]);
        if (st != TUTTI_E_MISMATCH)
            complain(t, c, i == mine ? "afterwards" : "in the other group", tutti_status_name(st));
        if (tutti_destroy_process_group(groups[i]) != TUTTI_OK)
            complain(t, c, "destroy", tutti_last_error());
    }
    return ms;
}

static void two_groups_in_another_order(tt_ctx *t)
{
    static const kind of_all[] = { BARRIER, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BARRIER };
    static const int64_t counts[] = { TINY, LARGE, MEDIUM };
    buffers           b;
    int64_t           worst = 0;
    uint32_t          i;

    take_buffers(t, false, &b);
    for (i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        const cell    c = { .kind = of_all[i], .odd = (int)i % t->size, .count = counts[i % 3] };
        const int64_t ms = mix_up(t, &c, &b, i + 1);

        worst = ms > worst ? ms : worst;
    }
    if (tutti_barrier(t->group) != TUTTI_OK)
        fail_msg("the world: %s", tutti_last_error());
    fprintf(stderr, "rank %d: two groups, told after %lld ms at most\n", t->rank, (long long)worst);
}

/* Each rank waits for the next one, in a call of their own; in the second round the last one waits for a message. */
static void a_circle_of_groups(tt_ctx *t)
{
    uint32_t round;

    for (round = 1; round <= 2; round++) {
        const bool   receives = round == 2 && t->rank == t->size - 1;
        tutti_group *next = NULL, *former = NULL;
        int32_t      x = 0;
        tutti_status st;
        int64_t      began;

        make_pairs(t, &next, &former);
        meet(t, START, round);
        began = now_ms();
        st = receives ? tutti_recv(TUTTI_SPAN(&x, 1), 0, 3, next, NULL) : tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, next);
        if (st != TUTTI_E_MISMATCH || now_ms() - began > TOLD_MS + BUSY_MS)
            fail_msg("%s after %lld ms: %s", tutti_status_name(st), (long long)(now_ms() - began), tutti_last_error());
        if (strstr(tutti_last_error(), " ranks wait for each other in a circle, in ") == NULL)
            fail_msg("%s", tutti_last_error());
        fprintf(stderr, "rank %d: a circle, told after %lld ms\n", t->rank, (long long)(now_ms() - began));
        meet(t, DONE, round);
        if (tutti_barrier(former) != TUTTI_E_MISMATCH)
            fail_msg("with the former: %s", tutti_last_error());
        assert_int_equal(tutti_destroy_process_group(next), TUTTI_OK);
        assert_int_equal(tutti_destroy_process_group(former), TUTTI_OK);
    }
    if (tutti_barrier(t->group) != TUTTI_OK)
        fail_msg("the world: %s", tutti_last_error());
}

/* The odd one waits for a message of a rank that waits in a call for it. */
static void a_call_against_a_receive(tt_ctx *t)
{
    static const kind of_all[] = { BARRIER, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };
    buffers           b;
    uint32_t          i;

    take_buffers(t, false, &b);
    for (i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        const cell   c = { .kind = of_all[i], .odd = t->size - 1 - (int)i % 2, .count = i % 2 == 0 ? TINY : LARGE };
        const deed   d = usual_deed(&c);
        const int    from = (c.odd + 1) % t->size;
        tutti_group *group = fresh_group();
        char         one[120], other[80];
        float        x;
        tutti_status st;
        int64_t      began;

        describe(&d, 1, one);
        snprintf(other, sizeof other, "  rank %d: recv with tag 3 from rank %d\n", c.odd, from);
        meet(t, START, i + 1);
        began = now_ms();
        st = t->rank == c.odd ? tutti_recv(TUTTI_SPAN(&x, 1), from, 3, group, NULL) : call(t, &d, &b, BLOCKING, group);
        if (st != TUTTI_E_MISMATCH || strstr(tutti_last_error(), one) == NULL || strstr(tutti_last_error(), other) == NULL ||
            now_ms() - began > TOLD_MS + BUSY_MS)
            complain(t, &c, "against a receive", tutti_last_error());
        if (tutti_barrier(group) != TUTTI_E_MISMATCH || tutti_destroy_process_group(group) != TUTTI_OK)
            complain(t, &c, "afterwards", tutti_last_error());
    }
    if (tutti_barrier(t->group) != TUTTI_OK)
        fail_msg("the world: %s", tutti_last_error());
}

/* ---- receives that wait for each other -------------------------------------------------------------- */

/* Each rank waits for a message of the next one. In the second round there is one from it, with another tag, which nobody takes. */
static void receives_in_a_circle(tt_ctx *t)
{
    const int next = (t->rank + 1) % t->size, former = (t->rank + t->size - 1) % t->size;
    uint32_t  round;

    for (round = 1; round <= 2; round++) {
        tutti_group *group = fresh_group();
        float        x = 1.0f, y = 0.0f;
        char         own[80];
        tutti_status st;
        int64_t      began;

        if (round == 2)
            assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), former, 4, group), TUTTI_OK);
        meet(t, START, round);
        began = now_ms();
        st = tutti_recv(TUTTI_SPAN(&y, 1), next, 3, group, NULL);
        snprintf(own, sizeof own, "\n  rank %d: recv with tag 3 from rank %d\n", t->rank, next);
        if (st != TUTTI_E_MISMATCH || now_ms() - began > TOLD_MS + BUSY_MS)
            fail_msg("%s after %lld ms: %s", tutti_status_name(st), (long long)(now_ms() - began), tutti_last_error());
        if (strstr(tutti_last_error(), t->size == 2 ? "ranks wait for each other in receives\n" : " ranks wait for each other in a circle, in ") == NULL ||
            strstr(tutti_last_error(), "\n  next: let one of them send before it receives") == NULL ||
            (t->size == 2 && strstr(tutti_last_error(), own) == NULL))
            fail_msg("%s", tutti_last_error());
        fprintf(stderr, "rank %d: told after %lld ms\n", t->rank, (long long)(now_ms() - began));
        meet(t, DONE, round);
        assert_int_equal(tutti_barrier(group), TUTTI_E_MISMATCH);
        assert_int_equal(tutti_destroy_process_group(group), TUTTI_OK);
    }
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}
#endif

static void *send_late(void *arg)
{
    static const struct timespec lateness = { .tv_nsec = 900 * 1000 * 1000 };
    const tt_ctx                *t = arg;
    int32_t                      x = t->rank;

    nanosleep(&lateness, NULL);
    return (void *)(intptr_t)tutti_send(TUTTI_SPAN(&x, 1), (t->rank + t->size - 1) % t->size, 3, t->group);
}

/* The same, and no mistake: each rank has a thread that works on what it sends, and has called nothing before. */
static void another_thread_may_send(tt_ctx *t)
{
    const int next = (t->rank + 1) % t->size;
    pthread_t thread;
    void     *sent = NULL;
    int32_t   y = -1;

    assert_int_equal(pthread_create(&thread, NULL, send_late, t), 0);
    assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), next, 3, t->group, NULL), TUTTI_OK);
    assert_int_equal(y, next);
    assert_int_equal(pthread_join(thread, &sent), 0);
    assert_int_equal((int)(intptr_t)sent, TUTTI_OK);
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
}

/* Rank 0 waits in a call, which the last rank comes to behind a message of rank 0: that of another thread, which works on it, and has
 * called nothing before. */
static void a_thread_may_send_during_a_call(tt_ctx *t)
{
    const int last = t->size - 1;
    pthread_t thread;
    void     *sent = NULL;
    int32_t   y = -1;

    if (t->rank == 0)
        assert_int_equal(pthread_create(&thread, NULL, send_late, t), 0);
    if (t->rank == last)
        assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), 0, 3, t->group, NULL), TUTTI_OK);
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    if (t->rank == last)
        assert_int_equal(y, 0);
    if (t->rank == 0) {
        assert_int_equal(pthread_join(thread, &sent), 0);
        assert_int_equal((int)(intptr_t)sent, TUTTI_OK);
    }
}

static void pass_on(tutti_work *work, void *ctx)
{
    (void)work;
    assert_int_equal(tutti_send(TUTTI_SPAN((int32_t *)ctx, 1), 1, 5, NULL), TUTTI_OK);
}

/* Ranks 0 and 1 wait for each other's message, and rank 0 has said what to do when rank 2 sends, which is late: to send to rank 1. */
static void a_callback_may_send(tt_ctx *t)
{
    static const struct timespec lateness = { .tv_nsec = 900 * 1000 * 1000 };
    static int32_t               passed = 7;
    tutti_work                  *work = NULL;
    int32_t                      x = 7, y = 0;

    if (t->rank == 2) {
        nanosleep(&lateness, NULL);
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 4, NULL), TUTTI_OK);
    } else if (t->rank == 1) {
        assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), 0, 5, NULL, NULL), TUTTI_OK);
        assert_int_equal(tutti_send(TUTTI_SPAN(&y, 1), 0, 6, NULL), TUTTI_OK);
    } else {
        assert_int_equal(tutti_irecv(TUTTI_SPAN(&x, 1), 2, 4, NULL, &work), TUTTI_OK);
        assert_int_equal(tutti_work_then(work, pass_on, &passed), TUTTI_OK);
        assert_int_equal(tutti_recv(TUTTI_SPAN(&y, 1), 1, 6, NULL, NULL), TUTTI_OK);
        assert_int_equal(y, 7);
        assert_int_equal(tutti_work_wait(work), TUTTI_OK);
        tutti_work_free(work);
    }
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
}

/* A rank's threads, one for each of two groups, of which one is late. */
typedef struct user {
    tutti_group *group;
    bool         late;
    tutti_status st;
    pthread_t    thread;
} user;

static void *use_group(void *arg)
{
    static const struct timespec lateness = { .tv_nsec = 600 * 1000 * 1000 };
    user                        *u = arg;

    if (u->late)
        nanosleep(&lateness, NULL);
    u->st = tutti_barrier(u->group);
    return NULL;
}

/* Rank 0 waits in a for rank 1, which waits in b for rank 0: but each has another thread, which comes. */
static void who_is_only_late_is_not_accused(tt_ctx *t)
{
    user users[2] = { { .group = fresh_group() }, { .group = fresh_group() } };
    int  i;

    users[1 - t->rank % 2].late = true;
    for (i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&users[i].thread, NULL, use_group, &users[i]), 0);
    for (i = 0; i < 2; i++)
        assert_int_equal(pthread_join(users[i].thread, NULL), 0);
    assert_int_equal(users[0].st, TUTTI_OK);
    assert_int_equal(users[1].st, TUTTI_OK);
}

/* Rank 0 waits in a, to which the others come behind b; and its other thread, which has called nothing before, comes to b. */
static void a_thread_may_come_to_another_group(tt_ctx *t)
{
    user a = { .group = fresh_group() }, b = { .group = fresh_group(), .late = true };

    if (t->rank == 0) {
        assert_int_equal(pthread_create(&b.thread, NULL, use_group, &b), 0);
        (void)use_group(&a);
        assert_int_equal(pthread_join(b.thread, NULL), 0);
    } else {
        b.late = false;
        (void)use_group(&b);
        (void)use_group(&a);
    }
    assert_int_equal(a.st, TUTTI_OK);
    assert_int_equal(b.st, TUTTI_OK);
}

int main(int argc, char **argv)
{
    static const tt_test tests[] = {
        TT_TEST(every_rank_is_told, .ranks = 2, .transports = "shm,tcp", .limit_ms = 100000, .timeout_ms = 20000),
        TT_TEST(every_rank_is_told, .ranks = 3, .transports = "shm,tcp", .limit_ms = 100000, .timeout_ms = 20000),
        TT_TEST(every_rank_is_told, .ranks = 4, .hosts = 2, .limit_ms = 100000, .timeout_ms = 20000),
        TT_TEST(every_rank_is_told, .ranks = 3, .hosts = 2, .limit_ms = 100000, .timeout_ms = 20000),
        TT_TEST(every_rank_is_told, .ranks = 7, .transports = "shm,tcp", .limit_ms = 100000, .timeout_ms = 20000,
                .waits = true),
        TT_TEST(every_rank_is_told, .ranks = 6, .hosts = 2, .limit_ms = 100000, .timeout_ms = 20000, .waits = true),
        TT_TEST(few_elements_at_first, .ranks = 4, .transports = "shm,tcp"),
        TT_TEST(few_elements_at_first, .ranks = 4, .hosts = 2),
        TT_TEST(many_elements_at_first, .ranks = 4, .transports = "shm,tcp"),
        TT_TEST(many_elements_at_first, .ranks = 5, .hosts = 2),
#ifndef __SANITIZE_THREAD__ /* which starts a thread in every process: nobody is told that nothing else goes on there */
        TT_TEST(two_groups_in_another_order, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(two_groups_in_another_order, .ranks = 4, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(two_groups_in_another_order, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(a_circle_of_groups, .ranks = 3, .transports = "shm,tcp", .waits = true),
        TT_TEST(a_circle_of_groups, .ranks = 4, .transports = "shm,tcp", .waits = true),
        TT_TEST(a_circle_of_groups, .ranks = 5, .hosts = 2, .waits = true),
        TT_TEST(a_call_against_a_receive, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(a_call_against_a_receive, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000, .waits = true),
        TT_TEST(a_call_against_a_receive, .ranks = 4, .hosts = 2, .limit_ms = 60000, .waits = true),
        TT_TEST(receives_in_a_circle, .ranks = 2, .transports = "shm,tcp", .waits = true),
        TT_TEST(receives_in_a_circle, .ranks = 3, .transports = "shm,tcp", .waits = true),
        TT_TEST(receives_in_a_circle, .ranks = 5, .hosts = 2, .waits = true),
#endif
        TT_TEST(a_chain_of_groups, .ranks = 3, .transports = "shm,tcp", .waits = true),
        TT_TEST(a_chain_of_groups, .ranks = 5, .hosts = 2, .waits = true),
        TT_TEST(a_thread_may_send_during_a_call, .ranks = 2, .transports = "shm,tcp,threads", .waits = true),
        TT_TEST(a_thread_may_send_during_a_call, .ranks = 4, .hosts = 2, .waits = true),
        TT_TEST(a_thread_may_come_to_another_group, .ranks = 2, .transports = "shm,tcp,threads", .waits = true),
        TT_TEST(a_thread_may_come_to_another_group, .ranks = 4, .hosts = 2, .waits = true),
        TT_TEST(another_thread_may_send, .ranks = 2, .transports = "shm,tcp,threads", .waits = true),
        TT_TEST(another_thread_may_send, .ranks = 4, .hosts = 2, .waits = true),
        TT_TEST(a_callback_may_send, .ranks = 3, .transports = "shm,tcp", .waits = true),
        TT_TEST(a_late_message_is_no_mistake, .ranks = 4, .transports = "shm,tcp", .waits = true),
        TT_TEST(who_is_only_late_is_not_accused, .ranks = 4, .transports = "shm,tcp,threads", .waits = true),
    };
    static tt_test all[sizeof tests / sizeof tests[0]];
    size_t         i, n = sizeof tests / sizeof tests[0];

    for (i = 1; i < (size_t)argc; i++) {
        is_long = is_long || strcmp(argv[i], "--long") == 0;
        if (strncmp(argv[i], "--survey=", 9) == 0)
            survey = fopen(argv[i] + 9, "a");
    }
    memcpy(all, tests, sizeof tests);
    for (i = 0; i < n && (is_long || survey != NULL); i++)
        all[i].limit_ms *= is_long ? 60 : 6;
    return tt_main(all, n);
}
