/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti_side.c - tutti's calls, blocking and asynchronous. */
#include "tutti_side.h"

#include <stdio.h>
#include <tutti/tutti.h>

enum { EXCHANGE_MAX = 32 };

tutti_group *bench_tutti_group;

static tutti_span span(void *data, int64_t count, const bench_call *c)
{
    static const tutti_dtype dtypes[BENCH_DTYPES] = { TUTTI_F32, TUTTI_F64, TUTTI_BF16 };

    return tutti_span_of(data, count, dtypes[c->cell->dtype]);
}

static bool ok(tutti_status st)
{
    return st == TUTTI_OK || bench_fail("%s", tutti_last_error());
}

/* A call that was begun: its end. */
static bool awaited(tutti_status st, tutti_work **work)
{
    if (st == TUTTI_OK) {
        st = tutti_work_wait(*work);
        tutti_work_free(*work);
    }
    return ok(st);
}

static bool all_reduce(const bench_call *c)
{
    const tutti_span in = span(c->in, c->count, c);
    tutti_work *work;

    if (!c->cell->async)
        return ok(tutti_all_reduce(in, TUTTI_SUM, bench_tutti_group));
    return awaited(tutti_all_reduce_async(in, TUTTI_SUM, bench_tutti_group, &work), &work);
}

static bool broadcast(const bench_call *c)
{
    const tutti_span in = span(c->in, c->count, c);
    tutti_work *work;

    if (!c->cell->async)
        return ok(tutti_broadcast(in, c->root, bench_tutti_group));
    return awaited(tutti_broadcast_async(in, c->root, bench_tutti_group, &work), &work);
}

static bool reduce(const bench_call *c)
{
    const tutti_span in = span(c->in, c->count, c);
    tutti_work *work;

    if (!c->cell->async)
        return ok(tutti_reduce(in, c->root, TUTTI_SUM, bench_tutti_group));
    return awaited(tutti_reduce_async(in, c->root, TUTTI_SUM, bench_tutti_group, &work), &work);
}

static bool all_gather(const bench_call *c)
{
    const tutti_span in = span(c->in, c->part, c), out = span(c->out, c->count, c);
    tutti_work *work;

    if (!c->cell->async)
        return ok(tutti_all_gather_into_tensor(out, in, bench_tutti_group));
    return awaited(tutti_all_gather_into_tensor_async(out, in, bench_tutti_group, &work), &work);
}

static bool reduce_scatter(const bench_call *c)
{
    const tutti_span in = span(c->in, c->count, c), out = span(c->out, c->part, c);
    tutti_work *work;

    if (!c->cell->async)
        return ok(tutti_reduce_scatter_tensor(out, in, TUTTI_SUM, bench_tutti_group));
    return awaited(tutti_reduce_scatter_tensor_async(out, in, TUTTI_SUM, bench_tutti_group, &work), &work);
}

static bool all_to_all(const bench_call *c)
{
    const tutti_span in = span(c->in, c->count, c), out = span(c->out, c->count, c);
    tutti_work *work;

    if (!c->cell->async)
        return ok(tutti_all_to_all_single(out, in, NULL, NULL, bench_tutti_group));
    return awaited(tutti_all_to_all_single_async(out, in, NULL, NULL, bench_tutti_group, &work), &work);
}

/* The parts of a tensor that has one for each rank; none where this rank is not the root. */
static int parts_of(const bench_call *c, void *whole, tutti_span parts[BENCH_RANKS_MAX])
{
    const size_t size = bench_dtype_size(c->cell->dtype);
    int i;

    if (c->rank != c->root)
        return 0;
    for (i = 0; i < c->ranks; i++)
        parts[i] = span((char *)whole + (size_t)c->begins[i] * size, c->begins[i + 1] - c->begins[i], c);
    return c->ranks;
}

typedef tutti_status gather_fn(const tutti_span *, int, tutti_span, int, tutti_group *);
typedef tutti_status gather_async_fn(const tutti_span *, int, tutti_span, int, tutti_group *, tutti_work **);
typedef tutti_status scatter_fn(tutti_span, const tutti_span *, int, int, tutti_group *);
typedef tutti_status scatter_async_fn(tutti_span, const tutti_span *, int, int, tutti_group *, tutti_work **);

static bool gather_by(const bench_call *c, gather_fn *wait, gather_async_fn *begin)
{
    const tutti_span in = span(c->in, c->part, c);
    tutti_span parts[BENCH_RANKS_MAX];
    const int n = parts_of(c, c->out, parts);
    const tutti_span *outs = n > 0 ? parts : NULL;
    tutti_work *work;

    if (!c->cell->async)
        return ok(wait(outs, n, in, c->root, bench_tutti_group));
    return awaited(begin(outs, n, in, c->root, bench_tutti_group, &work), &work);
}

static bool scatter_by(const bench_call *c, scatter_fn *wait, scatter_async_fn *begin)
{
    const tutti_span out = span(c->out, c->part, c);
    tutti_span parts[BENCH_RANKS_MAX];
    const int n = parts_of(c, c->in, parts);
    const tutti_span *ins = n > 0 ? parts : NULL;
    tutti_work *work;

    if (!c->cell->async)
        return ok(wait(out, ins, n, c->root, bench_tutti_group));
    return awaited(begin(out, ins, n, c->root, bench_tutti_group, &work), &work);
}

static bool gather(const bench_call *c)
{
    return gather_by(c, tutti_gather, tutti_gather_async);
}

static bool scatter(const bench_call *c)
{
    return scatter_by(c, tutti_scatter, tutti_scatter_async);
}

/* ---- sizes that differ by rank ---- */

static void counts_of(const bench_call *c, int64_t counts[BENCH_RANKS_MAX])
{
    int i;

    for (i = 0; i < c->ranks; i++)
        counts[i] = c->begins[i + 1] - c->begins[i];
}

static bool all_gather_v(const bench_call *c)
{
    const tutti_span in = span(c->in, c->part, c), out = span(c->out, c->count, c);
    int64_t counts[BENCH_RANKS_MAX];
    tutti_work *work;

    counts_of(c, counts);
    if (!c->cell->async)
        return ok(tutti_all_gather_into_tensor_v(out, in, counts, bench_tutti_group));
    return awaited(tutti_all_gather_into_tensor_v_async(out, in, counts, bench_tutti_group, &work), &work);
}

static bool gather_v(const bench_call *c)
{
    return gather_by(c, tutti_gather_v, tutti_gather_v_async);
}

static bool scatter_v(const bench_call *c)
{
    return scatter_by(c, tutti_scatter_v, tutti_scatter_v_async);
}

static bool all_to_all_v(const bench_call *c)
{
    const tutti_span in = span(c->in, c->count, c), out = span(c->out, c->count, c);
    int64_t counts[BENCH_RANKS_MAX];
    tutti_work *work;

    counts_of(c, counts); /* of what it gives, and of what it takes */
    if (!c->cell->async)
        return ok(tutti_all_to_all_single(out, in, counts, counts, bench_tutti_group));
    return awaited(tutti_all_to_all_single_async(out, in, counts, counts, bench_tutti_group, &work), &work);
}

/* ---- without parts ---- */

static bool barrier(const bench_call *c)
{
    tutti_work *work;

    if (!c->cell->async)
        return ok(tutti_barrier(bench_tutti_group));
    return awaited(tutti_barrier_async(bench_tutti_group, &work), &work);
}

static bool send_recv(const bench_call *c)
{
    const bool sends = c->rank % 2 == 0;
    const int peer = sends ? c->rank + 1 : c->rank - 1;
    const tutti_span in = span(c->in, c->count, c);
    tutti_work *work;

    if (peer >= c->ranks)
        return true;
    if (!c->cell->async)
        return ok(sends ? tutti_send(in, peer, 0, bench_tutti_group) : tutti_recv(in, peer, 0, bench_tutti_group, NULL));
    return awaited(sends ? tutti_isend(in, peer, 0, bench_tutti_group, &work) : tutti_irecv(in, peer, 0, bench_tutti_group, &work),
                   &work);
}

/* All messages of an exchange in one batch. */
static bool exchange_batch(const bench_call *c, int n)
{
    const int next = (c->rank + 1) % c->ranks, last = (c->rank + c->ranks - 1) % c->ranks;
    const size_t step = (size_t)c->part * bench_dtype_size(c->cell->dtype);
    tutti_p2p_op ops[2 * EXCHANGE_MAX];
    tutti_work *works[2 * EXCHANGE_MAX];
    tutti_status st;
    int i;

    for (i = 0; i < n; i++) {
        ops[2 * i] = (tutti_p2p_op){ false, span((char *)c->out + (size_t)i * step, c->part, c), last, i };
        ops[2 * i + 1] = (tutti_p2p_op){ true, span((char *)c->in + (size_t)i * step, c->part, c), next, i };
    }
    st = tutti_batch_isend_irecv(ops, 2 * n, bench_tutti_group, works);
    if (st != TUTTI_OK)
        return ok(st);
    st = tutti_wait_all(works, 2 * n, 0);
    for (i = 0; i < 2 * n; i++)
        tutti_work_free(works[i]);
    return ok(st);
}

/* The same, one after the other. */
static bool exchange_each(const bench_call *c, int n)
{
    const int next = (c->rank + 1) % c->ranks, last = (c->rank + c->ranks - 1) % c->ranks;
    const size_t step = (size_t)c->part * bench_dtype_size(c->cell->dtype);
    tutti_work *works[2 * EXCHANGE_MAX];
    bool fine = true;
    int i, begun = 0;

    for (i = 0; i < n && fine; i++) {
        const tutti_span to = span((char *)c->out + (size_t)i * step, c->part, c);
        const tutti_span from = span((char *)c->in + (size_t)i * step, c->part, c);

        fine = ok(tutti_irecv(to, last, i, bench_tutti_group, &works[begun]));
        begun += fine;
        fine = fine && ok(tutti_isend(from, next, i, bench_tutti_group, &works[begun]));
        begun += fine;
    }
    for (i = 0; i < begun; i++)
        fine = awaited(TUTTI_OK, &works[i]) && fine;
    return fine;
}

static bool exchange(const bench_call *c)
{
    const int n = bench_messages(c->cell->op);

    return c->cell->async ? exchange_each(c, n) : exchange_batch(c, n);
}

static bench_op_fn op(const bench_cell *cell)
{
    static const bench_op_fn ops[BENCH_OPS] = {
        [BENCH_ALL_REDUCE] = all_reduce,         [BENCH_BROADCAST] = broadcast,
        [BENCH_REDUCE] = reduce,                 [BENCH_ALL_GATHER] = all_gather,
        [BENCH_REDUCE_SCATTER] = reduce_scatter, [BENCH_ALL_TO_ALL] = all_to_all,
        [BENCH_GATHER] = gather,                 [BENCH_SCATTER] = scatter,
        [BENCH_ALL_GATHER_V] = all_gather_v,     [BENCH_GATHER_V] = gather_v,
        [BENCH_SCATTER_V] = scatter_v,           [BENCH_ALL_TO_ALL_V] = all_to_all_v,
        [BENCH_BARRIER] = barrier,               [BENCH_SEND_RECV] = send_recv,
        [BENCH_EXCHANGE_16] = exchange,          [BENCH_EXCHANGE_64] = exchange,
    };

    return ops[cell->op];
}

static const char *cannot(const bench_cell *cell, int ranks)
{
    if (cell->form != BENCH_PLAIN || op(cell) == NULL)
        return "for limits only";
    return (cell->op == BENCH_SEND_RECV || bench_messages(cell->op) > 0) && ranks < 2 ? "a message needs two ranks" : NULL;
}

static tutti_work *begun; /* one at a time */

static bool begin(const bench_call *c)
{
    return ok(tutti_all_reduce_async(span(c->in, c->count, c), TUTTI_SUM, NULL, &begun));
}

static bool finish(const bench_call *c)
{
    (void)c;
    return awaited(TUTTI_OK, &begun);
}

/* Registered memory is zeroed and taken from the system, as fresh pages are not before they are written. */
static bool take_registered(size_t bytes, char **at_out)
{
    void *at = NULL;

    if (bytes > 0 && !ok(tutti_alloc(bytes, &at)))
        return false;
    *at_out = at;
    return true;
}

static bool take(const bench_cell *cell, bench_board *board, size_t in_bytes, size_t out_bytes, char **in_out,
                 char **out_out)
{
    (void)board;
    if (cell->memory == BENCH_REGISTERED)
        return take_registered(in_bytes, in_out) && take_registered(out_bytes, out_out);
    return bench_take_pages(in_bytes, in_out) && bench_take_pages(out_bytes, out_out);
}

static void give(const bench_cell *cell, char *in, size_t in_bytes, char *out, size_t out_bytes)
{
    if (cell->memory == BENCH_REGISTERED) {
        tutti_free(in);
        tutti_free(out);
        return;
    }
    bench_give_pages(in, in_bytes);
    bench_give_pages(out, out_bytes);
}

static bool join(int *rank_out, int *ranks_out)
{
    if (!ok(tutti_init_process_group(NULL)))
        return false;
    *rank_out = tutti_get_rank(NULL);
    *ranks_out = tutti_get_world_size(NULL);
    return true;
}

static void version(char *text, size_t size)
{
    snprintf(text, size, "tutti %s", TUTTI_VERSION);
}

static void leave(void)
{
    tutti_destroy_process_group(NULL);
}

const bench_side bench_tutti_side = {
    .name = "tutti",
    .join = join,
    .version = version,
    .cannot = cannot,
    .take = take,
    .give = give,
    .op = op,
    .begin = begin,
    .finish = finish,
    .leave = leave,
};
