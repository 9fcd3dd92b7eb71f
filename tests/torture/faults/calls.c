/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls.c - the calls in which ranks die, each on numbers whose results are known.
 *
 * A rank's element i is (rank + 1) * (i % 7 + 1) + salt. A call that says TUTTI_OK must have the right values: an error
 * is allowed at any time, wrong data never. */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "torture/points.h"

enum { TAG = 5 };

/* What a call works on. */
typedef struct buffers {
    const call_args *c;
    int32_t         *in;  /* [count], or [size][part] */
    int32_t         *out; /* the same */
    int64_t          part; /* count / size, at least 1 */
} buffers;

typedef tutti_status (*call_fn)(buffers *b, bool *wrong_out);

static int32_t value_of(const call_args *c, int rank, int64_t i)
{
    return (int32_t)((rank + 1) * (i % 7 + 1) + c->salt);
}

static int32_t sum_of(const call_args *c, int64_t i)
{
    return (int32_t)(c->size * (c->size + 1) / 2 * (i % 7 + 1) + c->size * c->salt);
}

static void fill(const call_args *c, int32_t *x, int64_t n)
{
    int64_t i;

    for (i = 0; i < n; i++)
        x[i] = value_of(c, c->rank, i);
}

/* n elements are those of rank (-1: sums), of which the first one is its element number first. */
static bool right(const call_args *c, const int32_t *x, int64_t n, int rank, int64_t first)
{
    int64_t i;

    for (i = 0; i < n; i++)
        if (x[i] != (rank < 0 ? sum_of(c, first + i) : value_of(c, rank, first + i)))
            return false;
    return true;
}

static int root_of(const call_args *c)
{
    return c->salt % c->size;
}

/* ---- collectives ---- */

static tutti_status all_reduce(buffers *b, bool *wrong_out)
{
    const tutti_status st = tutti_all_reduce(TUTTI_SPAN(b->in, b->c->count), TUTTI_SUM, b->c->world);

    *wrong_out = st == TUTTI_OK && !right(b->c, b->in, b->c->count, -1, 0);
    return st;
}

static tutti_status broadcast(buffers *b, bool *wrong_out)
{
    const tutti_status st = tutti_broadcast(TUTTI_SPAN(b->in, b->c->count), root_of(b->c), b->c->world);

    *wrong_out = st == TUTTI_OK && !right(b->c, b->in, b->c->count, root_of(b->c), 0);
    return st;
}

static tutti_status reduce(buffers *b, bool *wrong_out)
{
    const tutti_status st = tutti_reduce(TUTTI_SPAN(b->in, b->c->count), root_of(b->c), TUTTI_SUM, b->c->world);

    *wrong_out = st == TUTTI_OK && b->c->rank == root_of(b->c) && !right(b->c, b->in, b->c->count, -1, 0);
    return st;
}

static bool parts_are_right(const buffers *b)
{
    int r;

    for (r = 0; r < b->c->size; r++)
        if (!right(b->c, b->out + r * b->part, b->part, r, 0))
            return false;
    return true;
}

static tutti_status all_gather(buffers *b, bool *wrong_out)
{
    const tutti_status st = tutti_all_gather_into_tensor(TUTTI_SPAN(b->out, b->part * b->c->size),
                                                         TUTTI_SPAN(b->in, b->part), b->c->world);

    *wrong_out = st == TUTTI_OK && !parts_are_right(b);
    return st;
}

static void list_parts(const buffers *b, int32_t *x, tutti_span *out)
{
    int r;

    for (r = 0; r < b->c->size; r++)
        out[r] = TUTTI_SPAN(x + r * b->part, b->part);
}

static tutti_status gather(buffers *b, bool *wrong_out)
{
    tutti_span   list[RANKS_MAX];
    const bool   root = b->c->rank == root_of(b->c);
    tutti_status st;

    list_parts(b, b->out, list);
    st = tutti_gather(root ? list : NULL, root ? b->c->size : 0, TUTTI_SPAN(b->in, b->part), root_of(b->c), b->c->world);
    *wrong_out = st == TUTTI_OK && root && !parts_are_right(b);
    return st;
}

static tutti_status scatter(buffers *b, bool *wrong_out)
{
    tutti_span   list[RANKS_MAX];
    const bool   root = b->c->rank == root_of(b->c);
    tutti_status st;

    list_parts(b, b->in, list);
    st = tutti_scatter(TUTTI_SPAN(b->out, b->part), root ? list : NULL, root ? b->c->size : 0, root_of(b->c),
                       b->c->world);
    *wrong_out = st == TUTTI_OK && !right(b->c, b->out, b->part, root_of(b->c), b->c->rank * b->part);
    return st;
}

static tutti_status reduce_scatter(buffers *b, bool *wrong_out)
{
    const tutti_status st = tutti_reduce_scatter_tensor(
        TUTTI_SPAN(b->out, b->part), TUTTI_SPAN(b->in, b->part * b->c->size), TUTTI_SUM, b->c->world);

    *wrong_out = st == TUTTI_OK && !right(b->c, b->out, b->part, -1, b->c->rank * b->part);
    return st;
}

static tutti_status all_to_all(buffers *b, bool *wrong_out)
{
    const tutti_span   out = TUTTI_SPAN(b->out, b->part * b->c->size), in = TUTTI_SPAN(b->in, b->part * b->c->size);
    const tutti_status st = tutti_all_to_all_single(out, in, NULL, NULL, b->c->world);
    int                r;

    for (r = 0; r < b->c->size && st == TUTTI_OK; r++)
        if (!right(b->c, b->out + r * b->part, b->part, r, b->c->rank * b->part))
            *wrong_out = true;
    return st;
}

static tutti_status barrier(buffers *b, bool *wrong_out)
{
    (void)wrong_out;
    return tutti_barrier(b->c->world);
}

/* Both are waited for, whatever the first one says. */
static tutti_status both(tutti_work *one, tutti_work *other)
{
    const tutti_status st = tutti_work_wait(one), second = other != NULL ? tutti_work_wait(other) : TUTTI_OK;

    tutti_work_free(one);
    tutti_work_free(other);
    return st != TUTTI_OK ? st : second;
}

static tutti_status two_at_once(buffers *b, bool *wrong_out)
{
    const int64_t half = (b->c->count + 1) / 2;
    tutti_work   *one = NULL, *other = NULL;
    tutti_status  st = tutti_all_reduce_async(TUTTI_SPAN(b->in, half), TUTTI_SUM, b->c->world, &one), second;

    if (st != TUTTI_OK)
        return st;
    second = tutti_all_reduce_async(TUTTI_SPAN(b->in + half, b->c->count - half), TUTTI_SUM, b->c->world, &other);
    st = both(one, other);
    st = st != TUTTI_OK ? st : second;
    *wrong_out = st == TUTTI_OK && !right(b->c, b->in, b->c->count, -1, 0);
    return st;
}

static tutti_status on_registered(buffers *b, bool *wrong_out)
{
    void        *memory = NULL;
    tutti_status st = tutti_alloc((size_t)b->c->count * sizeof(int32_t), &memory);

    if (st != TUTTI_OK)
        return st;
    fill(b->c, memory, b->c->count);
    st = tutti_all_reduce(TUTTI_SPAN((int32_t *)memory, b->c->count), TUTTI_SUM, b->c->world);
    *wrong_out = st == TUTTI_OK && !right(b->c, memory, b->c->count, -1, 0);
    tutti_free(memory);
    return st;
}

/* ---- messages ---- */

static tutti_status around(buffers *b, bool *wrong_out)
{
    const call_args *c = b->c;
    const int        left = (c->rank + c->size - 1) % c->size, to = (c->rank + 1) % c->size;
    tutti_work      *work = NULL;
    tutti_status     st = tutti_isend(TUTTI_SPAN(b->in, c->count), to, TAG, c->world, &work), sent;

    if (st != TUTTI_OK)
        return st;
    st = tutti_recv(TUTTI_SPAN(b->out, c->count), left, TAG, c->world, NULL);
    *wrong_out = st == TUTTI_OK && !right(c, b->out, c->count, left, 0);
    sent = tutti_work_wait(work);
    tutti_work_free(work);
    return st != TUTTI_OK ? st : sent;
}

/* All send to one, who takes them as they come. */
static tutti_status from_any(buffers *b, bool *wrong_out)
{
    const call_args *c = b->c;
    tutti_status     st = TUTTI_OK;
    int              i, from = -1;

    if (c->rank != root_of(c))
        return tutti_send(TUTTI_SPAN(b->in, c->count), root_of(c), TAG, c->world);
    for (i = 1; i < c->size && st == TUTTI_OK; i++) {
        st = tutti_recv(TUTTI_SPAN(b->out, c->count), TUTTI_ANY_SOURCE, TAG, c->world, &from);
        if (st == TUTTI_OK && !right(c, b->out, c->count, from, 0))
            *wrong_out = true;
    }
    return st;
}

static tutti_status batch(buffers *b, bool *wrong_out)
{
    const call_args *c = b->c;
    tutti_p2p_op     ops[2 * RANKS_MAX] = { { 0 } };
    tutti_work      *works[2 * RANKS_MAX] = { NULL };
    tutti_status     st;
    int              n = 0, r, i;

    for (r = 0; r < c->size; r++) {
        if (r == c->rank)
            continue;
        ops[n++] = (tutti_p2p_op){ true, TUTTI_SPAN(b->in + r * b->part, b->part), r, TAG };
        ops[n++] = (tutti_p2p_op){ false, TUTTI_SPAN(b->out + r * b->part, b->part), r, TAG };
    }
    st = tutti_batch_isend_irecv(ops, n, c->world, works);
    if (st != TUTTI_OK)
        return st;
    st = tutti_wait_all(works, n, 0);
    for (i = 0; i < n; i++) {
        tutti_work_wait(works[i]); /* all have ended before the buffers go */
        tutti_work_free(works[i]);
    }
    for (r = 0; r < c->size && st == TUTTI_OK; r++)
        if (r != c->rank && !right(c, b->out + r * b->part, b->part, r, c->rank * b->part))
            *wrong_out = true;
    return st;
}

/* Put to the right, signal, and read what the left has put. */
static tutti_status through_window(buffers *b, bool *wrong_out)
{
    const call_args *c = b->c;
    const int        left = (c->rank + c->size - 1) % c->size, to = (c->rank + 1) % c->size;
    void            *memory = NULL;
    tutti_window    *window = NULL;
    tutti_span       span;
    tutti_status     st = tutti_alloc((size_t)c->count * sizeof(int32_t), &memory), freed;

    if (st != TUTTI_OK)
        return st;
    span = TUTTI_SPAN((int32_t *)memory, c->count);
    st = tutti_window_create(&span, c->world, &window);
    if (st == TUTTI_OK)
        st = tutti_window_put(window, TUTTI_SPAN(b->in, c->count), to, 0);
    if (st == TUTTI_OK)
        st = tutti_window_signal(window, to);
    if (st == TUTTI_OK)
        st = tutti_window_wait_signal(window, left, 0);
    *wrong_out = st == TUTTI_OK && !right(c, memory, c->count, left, 0);
    freed = window != NULL ? tutti_window_free(window) : TUTTI_OK;
    tutti_free(memory);
    return st != TUTTI_OK ? st : freed;
}

/* ---- the tables ---- */

static const struct call {
    const char *name;
    call_fn     fn;
} collectives[] = {
    { "all_reduce", all_reduce },         { "broadcast", broadcast },   { "reduce", reduce },
    { "all_gather", all_gather },         { "gather", gather },         { "scatter", scatter },
    { "reduce_scatter", reduce_scatter }, { "all_to_all", all_to_all }, { "barrier", barrier },
    { "two_at_once", two_at_once },       { "registered", on_registered },
}, messages[] = {
    { "ring", around }, { "any_source", from_any }, { "batch", batch }, { "window", through_window },
};

int tt_n_calls(tt_phase when)
{
    if (when == P_P2P)
        return (int)(sizeof messages / sizeof messages[0]);
    return when == P_ALGORITHM ? (int)(sizeof collectives / sizeof collectives[0]) : 1;
}

static const struct call *find(tt_phase when, int call)
{
    return when == P_P2P ? &messages[call] : &collectives[when == P_ALGORITHM ? call : 0];
}

const char *tt_call_name(tt_phase when, int call)
{
    return when == P_P2P || when == P_ALGORITHM ? find(when, call)->name : tt_phase_name(when);
}

tutti_status tt_call(tt_phase when, int call, const call_args *args, bool *wrong_out)
{
    buffers      b = { .c = args, .part = args->count / args->size > 0 ? args->count / args->size : 1 };
    const size_t n = (size_t)(b.part * args->size > args->count ? b.part * args->size : args->count);
    tutti_status st = TUTTI_E_NOMEM;

    *wrong_out = false;
    b.in = calloc(n, sizeof *b.in);
    b.out = calloc(n, sizeof *b.out);
    if (b.in != NULL && b.out != NULL) {
        fill(args, b.in, (int64_t)n);
        st = find(when, call)->fn(&b, wrong_out);
    }
    free(b.in);
    free(b.out);
    return st;
}

void tt_wish_algorithms(uint64_t dice, bool every)
{
    static const char *const ops[] = { "all_reduce", "broadcast", "reduce", "all_gather", "gather",
                                       "scatter", "reduce_scatter", "all_to_all", "barrier" };
    char   text[512] = "";
    size_t used = 0, i;

    for (i = 0; i < sizeof ops / sizeof ops[0] && !every; i++) {
        int n = 0, which;

        while (tutti_algorithm_name(ops[i], n) != NULL)
            n++;
        which = (int)(tt_dice(dice, i) % (uint64_t)(n + 1));
        if (which < n)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", used > 0 ? "," : "", ops[i],
                                     tutti_algorithm_name(ops[i], which));
    }
    setenv("TUTTI_ALGO", text, 1);
}
