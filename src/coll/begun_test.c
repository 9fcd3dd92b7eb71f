/* SPDX-License-Identifier: BSD-3-Clause
 *
 * begun_test.c
 * Goal    a small call that a rank has only begun holds up nobody; what is left of it gives the values of a call
 *         that was run, whoever began, and what cannot be begun is left to the run; mistakes are found as ever.
 * Method  Ranks are threads on one host. Who begins does so before the others call, and goes on when all others have
 *         come to the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/coll_ranks.h"
#include "coll/host/channel.h"

enum { RANKS = 4, COUNT_MAX = 300, LARGE = 200000, ROUNDS = 30 };

/* Buffers of a call of any kind: parts of count elements. */
typedef struct buffers {
    int32_t in[RANKS * COUNT_MAX], out[RANKS * COUNT_MAX];
    void   *in_list[RANKS], *out_list[RANKS];
} buffers;

static int32_t value_of(int rank, int64_t i, uint64_t seq)
{
    return (int32_t)(rank * 1000 + i * 7 + (int64_t)(seq % 1009));
}

static int32_t sum_of(int size, int64_t i, uint64_t seq)
{
    int32_t sum = 0;
    int     r;

    for (r = 0; r < size; r++)
        sum += value_of(r, i, seq);
    return sum;
}

static tutti_call make(tt_rank *t, tutti_call_kind kind, int64_t count, buffers *b)
{
    tutti_call call = tt_call(t, kind, TUTTI_I32, kind == TUTTI_CALL_BARRIER ? 0 : count);
    int64_t    i;
    int        r;

    for (i = 0; i < RANKS * COUNT_MAX; i++)
        b->in[i] = value_of(t->rank, i, call.seq);
    memset(b->out, 0x55, sizeof b->out);
    for (r = 0; r < t->size; r++) {
        b->in_list[r] = b->in + r * count;
        b->out_list[r] = b->out + r * count;
    }
    if (kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER)
        call.root = (int)(call.seq % (uint64_t)t->size);
    call.in = b->in;
    call.out = b->out;
    if (kind == TUTTI_CALL_BROADCAST && t->rank == call.root)
        call.out = b->in;
    if (kind == TUTTI_CALL_ALL_GATHER || (kind == TUTTI_CALL_GATHER && t->rank == call.root))
        call.list = b->out_list;
    if (kind == TUTTI_CALL_REDUCE_SCATTER || (kind == TUTTI_CALL_SCATTER && t->rank == call.root))
        call.list = b->in_list;
    return call;
}

static void check_parts(tt_rank *t, const tutti_call *call, const buffers *b)
{
    int64_t i;
    int     r;

    for (r = 0; r < t->size; r++)
        for (i = 0; i < call->count; i++)
            TT_CHECK(t, b->out[r * call->count + i] == value_of(r, i, call->seq));
}

static void check(tt_rank *t, const tutti_call *call, const buffers *b)
{
    const int64_t own = t->rank * call->count;
    int64_t       i;

    switch (call->kind) {
    case TUTTI_CALL_ALL_GATHER: check_parts(t, call, b); return;
    case TUTTI_CALL_GATHER:
        if (t->rank == call->root)
            check_parts(t, call, b);
        return;
    case TUTTI_CALL_BROADCAST:
    case TUTTI_CALL_REDUCE:
        if ((t->rank == call->root) == (call->kind == TUTTI_CALL_BROADCAST))
            return;
        break;
    default: break;
    }
    for (i = 0; i < call->count; i++)
        switch (call->kind) {
        case TUTTI_CALL_BROADCAST: TT_CHECK(t, b->out[i] == value_of(call->root, i, call->seq)); break;
        case TUTTI_CALL_SCATTER: TT_CHECK(t, b->out[i] == value_of(call->root, own + i, call->seq)); break;
        case TUTTI_CALL_REDUCE_SCATTER: TT_CHECK(t, b->out[i] == sum_of(t->size, own + i, call->seq)); break;
        default: TT_CHECK(t, b->out[i] == sum_of(t->size, i, call->seq));
        }
}

/* Whether this rank takes nothing in the call: it is done with it as soon as it has given. */
static bool only_gives(const tt_rank *t, const tutti_call *call)
{
    switch (call->kind) {
    case TUTTI_CALL_BROADCAST:
    case TUTTI_CALL_SCATTER: return t->rank == call->root;
    case TUTTI_CALL_REDUCE:
    case TUTTI_CALL_GATHER: return t->rank != call->root;
    default: return false;
    }
}

/* Every kind of small call, begun by a rank in turn, or by all but one. */
static void begin_and_go_on(tt_rank *t)
{
    static const tutti_call_kind kinds[] = { TUTTI_CALL_BARRIER,    TUTTI_CALL_ALL_REDUCE, TUTTI_CALL_REDUCE,
                                             TUTTI_CALL_BROADCAST,  TUTTI_CALL_ALL_GATHER, TUTTI_CALL_GATHER,
                                             TUTTI_CALL_SCATTER,    TUTTI_CALL_REDUCE_SCATTER };
    static const int64_t counts[] = { 1, 14, COUNT_MAX };
    buffers             *b = malloc(sizeof *b);
    size_t               k;
    int                  round;

    for (round = 0; round < ROUNDS && b != NULL; round++)
        for (k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            const int      turn = (int)((size_t)round + k / 3) % t->size;
            const bool     begins = round % 2 == 0 ? t->rank == turn : t->rank != turn;
            tutti_call     call = make(t, kinds[k], counts[round % 3], b);
            tutti_progress progress = TUTTI_PROGRESS_NONE;

            if (begins)
                TT_CHECK(t, tti_coll_advance(t->coll, &call, &progress) == TUTTI_OK);
            /* A taker may find what it needs, of others that begin; nobody is left with nothing begun. */
            TT_CHECK(t, !begins || progress == TUTTI_PROGRESS_DONE ||
                            (progress == TUTTI_PROGRESS_GIVEN && !only_gives(t, &call)));
            tt_all_here(t);
            if (!begins)
                TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
            tt_all_here(t); /* nobody who has run it waited for one who had begun it */
            if (begins && progress != TUTTI_PROGRESS_DONE && round % 4 < 2)
                TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
            else if (begins && progress != TUTTI_PROGRESS_DONE)
                TT_CHECK(t, tti_coll_advance(t->coll, &call, &progress) == TUTTI_OK &&
                                progress == TUTTI_PROGRESS_DONE);
            check(t, &call, b);
        }
    free(b);
}

/* Large ones are entered at most; small ones after them begin again. */
static void large_between(tt_rank *t)
{
    int32_t       *x = calloc(LARGE, sizeof *x);
    buffers       *b = malloc(sizeof *b);
    tutti_progress progress;
    int            round;

    for (round = 0; round < ROUNDS && x != NULL && b != NULL; round++) {
        tutti_call large = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_I32, LARGE);
        tutti_call small;

        x[0] = x[LARGE - 1] = t->rank;
        large.in = large.out = x;
        progress = TUTTI_PROGRESS_DONE;
        if (t->rank == round % t->size)
            TT_CHECK(t, tti_coll_advance(t->coll, &large, &progress) == TUTTI_OK && progress <= TUTTI_PROGRESS_BEGUN);
        TT_CHECK(t, tti_coll_run(t->coll, &large) == TUTTI_OK);
        TT_CHECK(t, x[0] == RANKS * (RANKS - 1) / 2 && x[LARGE - 1] == x[0]);
        small = make(t, TUTTI_CALL_ALL_REDUCE, 5, b);
        if (t->rank == round % t->size)
            TT_CHECK(t, tti_coll_advance(t->coll, &small, &progress) == TUTTI_OK);
        if (progress != TUTTI_PROGRESS_DONE || t->rank != round % t->size)
            TT_CHECK(t, tti_coll_run(t->coll, &small) == TUTTI_OK);
        check(t, &small, b);
    }
    free(x);
    free(b);
}

/* A root that gives once more would wait for the others to enter earlier calls: it does not begin that. Of what is
 * larger than a packet that is so in the second call, of lines and packets after a number of calls. */
static void begin_until_somebody_must_come(tt_rank *t, int64_t count, int n_ahead)
{
    int32_t       *x = calloc((size_t)count, sizeof *x);
    tutti_call     calls[TTI_HOST_AHEAD + 1];
    tutti_progress progress;
    int            i;

    for (i = 0; i <= n_ahead; i++) {
        calls[i] = tt_call(t, TUTTI_CALL_BROADCAST, TUTTI_I32, count);
        calls[i].root = 0;
        calls[i].in = calls[i].out = x;
    }
    tt_all_here(t);
    for (i = 0; i <= n_ahead && t->rank == 0; i++)
        TT_CHECK(t, tti_coll_advance(t->coll, &calls[i], &progress) == TUTTI_OK &&
                        (i < n_ahead ? progress == TUTTI_PROGRESS_DONE : progress <= TUTTI_PROGRESS_BEGUN));
    tt_all_here(t);
    for (i = 0; i < n_ahead && t->rank != 0; i++)
        TT_CHECK(t, tti_coll_run(t->coll, &calls[i]) == TUTTI_OK);
    tt_all_here(t);
    if (t->rank == 0)
        TT_CHECK(t, tti_coll_advance(t->coll, &calls[n_ahead], &progress) == TUTTI_OK && progress == TUTTI_PROGRESS_DONE);
    else
        TT_CHECK(t, tti_coll_run(t->coll, &calls[n_ahead]) == TUTTI_OK);
    free(x);
}

static void nobody_waits_to_begin(tt_rank *t)
{
    begin_until_somebody_must_come(t, COUNT_MAX, 1);
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    tt_all_here(t);
    begin_until_somebody_must_come(t, 2, TTI_HOST_AHEAD);
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    tt_all_here(t);
    begin_until_somebody_must_come(t, TTI_LINES_MIDDLE / 4, TTI_HOST_AHEAD);
}

static void another_call_is_a_mismatch(tt_rank *t)
{
    int32_t        x[2] = { 1, 2 };
    tutti_progress progress;
    tutti_call     call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_I32, t->rank == 0 ? 1 : 2);

    call.in = call.out = x;
    if (t->rank == 0)
        TT_CHECK(t, tti_coll_advance(t->coll, &call, &progress) == TUTTI_OK && progress == TUTTI_PROGRESS_GIVEN);
    tt_all_here(t);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_E_MISMATCH);
    TT_CHECK(t, strstr(tutti_last_error(), "all_reduce #1") != NULL);
}

static void an_abort_ends_what_was_begun(tt_rank *t)
{
    int32_t        x = 1;
    tutti_progress progress;
    tutti_call     call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_I32, 1);

    call.in = call.out = &x;
    if (t->rank == 0) {
        TT_CHECK(t, tti_coll_advance(t->coll, &call, &progress) == TUTTI_OK && progress == TUTTI_PROGRESS_GIVEN);
        tti_coll_abort(t->coll);
        TT_CHECK(t, tti_coll_advance(t->coll, &call, &progress) == TUTTI_OK && progress == TUTTI_PROGRESS_NONE);
    }
    tt_all_here(t);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_E_ABORTED);
}

/* ---- by messages ---- */

enum { BEGUN_MAX = 4 }; /* NETS of coll.c */

/* Begin a call, and again until all it gives is on its way: others have to be connected first. */
static tutti_progress begin_by_messages(tt_rank *t, const tutti_call *call)
{
    tutti_progress progress;

    do {
        progress = TUTTI_PROGRESS_NONE;
        TT_CHECK(t, tti_coll_advance(t->coll, call, &progress) == TUTTI_OK);
        TT_CHECK(t, progress != TUTTI_PROGRESS_NONE);
        t->port.base.ops->yield(&t->port.base);
    } while (progress == TUTTI_PROGRESS_BEGUN);
    return progress;
}

/* Several calls that all give at once, begun by one rank: the others come to the end of all, and then it does. */
static void several_by_messages(tt_rank *t)
{
    static const tutti_call_kind kinds[] = { TUTTI_CALL_ALL_REDUCE, TUTTI_CALL_ALL_GATHER, TUTTI_CALL_GATHER,
                                             TUTTI_CALL_ALL_REDUCE };
    buffers       *b = malloc((BEGUN_MAX + 1) * sizeof *b);
    tutti_call     calls[BEGUN_MAX + 1];
    tutti_progress progress;
    int            round, i;

    for (round = 0; round < ROUNDS && b != NULL; round++) {
        const bool begins = t->rank == round % t->size;

        for (i = 0; i <= BEGUN_MAX; i++) {
            calls[i] = make(t, kinds[(i + round) % BEGUN_MAX], 1 + (round + i) % COUNT_MAX, &b[i]);
            if (calls[i].root >= 0) /* it takes: a pure giver might have ended */
                calls[i].root = round % t->size;
            if (calls[i].kind == TUTTI_CALL_GATHER)
                calls[i].list = begins ? b[i].out_list : NULL;
        }
        for (i = 0; i < BEGUN_MAX && begins; i++)
            TT_CHECK(t, begin_by_messages(t, &calls[i]) == TUTTI_PROGRESS_GIVEN);
        if (begins)
            TT_CHECK(t, tti_coll_advance(t->coll, &calls[BEGUN_MAX], &progress) == TUTTI_OK &&
                            progress == TUTTI_PROGRESS_NONE);
        tt_all_here(t);
        for (i = 0; i < BEGUN_MAX && !begins; i++)
            TT_CHECK(t, tti_coll_run(t->coll, &calls[i]) == TUTTI_OK);
        tt_all_here(t);
        for (i = 0; i < BEGUN_MAX && begins; i++)
            TT_CHECK(t, tti_coll_run(t->coll, &calls[i]) == TUTTI_OK);
        TT_CHECK(t, tti_coll_run(t->coll, &calls[BEGUN_MAX]) == TUTTI_OK);
        for (i = 0; i <= BEGUN_MAX; i++)
            check(t, &calls[i], &b[i]);
    }
    free(b);
}

/* All kinds, whatever their steps, begun by all: what is left of them is done in their order. */
static void all_begin_by_messages(tt_rank *t)
{
    static const tutti_call_kind kinds[] = { TUTTI_CALL_BARRIER, TUTTI_CALL_ALL_REDUCE, TUTTI_CALL_BROADCAST,
                                             TUTTI_CALL_REDUCE,  TUTTI_CALL_SCATTER,    TUTTI_CALL_REDUCE_SCATTER };
    buffers       *b = malloc(2 * sizeof *b);
    tutti_call     calls[2];
    tutti_progress progress[2];
    int            round, i;

    for (round = 0; round < 4 * ROUNDS && b != NULL; round++) {
        for (i = 0; i < 2; i++)
            calls[i] = make(t, kinds[(round + i) % 6], 1 + (7 * round) % COUNT_MAX, &b[i]);
        for (i = 0; i < 2; i++)
            TT_CHECK(t, tti_coll_advance(t->coll, &calls[i], &progress[i]) == TUTTI_OK);
        for (i = 0; i < 2; i++) {
            if (progress[i] != TUTTI_PROGRESS_DONE)
                TT_CHECK(t, tti_coll_run(t->coll, &calls[i]) == TUTTI_OK);
            check(t, &calls[i], &b[i]);
        }
    }
    free(b);
}

static void failures_let_go(tt_rank *t)
{
    buffers    *b = malloc(2 * sizeof *b);
    tutti_call  calls[2];
    const bool  mistaken = t->rank != 0;
    int         i;

    for (i = 0; i < 2; i++)
        calls[i] = make(t, TUTTI_CALL_ALL_REDUCE, 3 + mistaken, &b[i]);
    for (i = 0; i < 2 && t->rank == 0; i++)
        TT_CHECK(t, begin_by_messages(t, &calls[i]) == TUTTI_PROGRESS_GIVEN);
    tt_all_here(t);
    TT_CHECK(t, tti_coll_run(t->coll, &calls[0]) == TUTTI_E_MISMATCH);
    TT_CHECK(t, tti_coll_run(t->coll, &calls[1]) == TUTTI_E_MISMATCH);
    free(b); /* nobody writes there any more */
}

static void aborts_let_go(tt_rank *t)
{
    buffers   *b = malloc(2 * sizeof *b);
    tutti_call calls[2];
    int        i;

    for (i = 0; i < 2; i++)
        calls[i] = make(t, TUTTI_CALL_ALL_REDUCE, 3, &b[i]);
    if (t->rank == 0) {
        for (i = 0; i < 2; i++)
            TT_CHECK(t, begin_by_messages(t, &calls[i]) == TUTTI_PROGRESS_GIVEN);
        tti_coll_abort(t->coll);
        for (i = 0; i < 2; i++)
            TT_CHECK(t, tti_coll_run(t->coll, &calls[i]) == TUTTI_E_ABORTED);
    }
    free(b);
    tt_all_here(t);
}

static void test_several_by_messages(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, true, several_by_messages, ranks);
    tt_run(RANKS, true, several_by_messages, ranks);
}

static void test_all_begin_by_messages(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, true, all_begin_by_messages, ranks);
    tt_run(RANKS, true, all_begin_by_messages, ranks);
}

static void test_failures_by_messages(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, true, failures_let_go, ranks);
    tt_run(3, true, aborts_let_go, ranks);
}

static void test_begin_and_go_on(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, begin_and_go_on, ranks);
    tt_run(RANKS, false, begin_and_go_on, ranks);
}

static void test_large_between(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(RANKS, false, large_between, ranks);
}

static void test_nobody_waits_to_begin(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, nobody_waits_to_begin, ranks);
}

static void test_mismatch(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(2, false, another_call_is_a_mismatch, ranks);
}

static void test_abort(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, an_abort_ends_what_was_begun, ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin_and_go_on), cmocka_unit_test(test_large_between),
        cmocka_unit_test(test_nobody_waits_to_begin), cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_abort), cmocka_unit_test(test_several_by_messages),
        cmocka_unit_test(test_all_begin_by_messages), cmocka_unit_test(test_failures_by_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
