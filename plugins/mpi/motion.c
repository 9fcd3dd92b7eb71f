/* SPDX-License-Identifier: BSD-3-Clause
 *
 * motion.c - moving what a call moves.
 *
 * Why     MPI's own reductions know neither f16, bf16 and f8, nor what a NaN is to MIN and MAX, promise no order, and not
 *         that all ranks get the same bits. So MPI moves, and the library's kernels reduce, in the order of ranks.
 * How     reductions     a block of P parts is exchanged, so that member r has part r of all; it combines them, and
 *                        all_reduce spreads the results. 2S(P-1)/P bytes sent per rank, as by the best of MPI's own
 *         others         the collective of MPI that does it
 *         In slices, through two buffers of ours: MPI sees no memory of the caller's, whose parts may lie anywhere, have more
 *         bytes than an int counts, and are free again at once if the call fails.
 * True    The number of slices, and so of MPI's calls, follows from what the cards have: it is the same on all members.
 *         Results do not depend on where slices end, nor on whether data came with the cards. */
#include "mpi_backend.h"

#include <stdlib.h>
#include <string.h>

typedef struct motion {
    tmpi_backend     *b;
    const tutti_call *call;
    const tmpi_wait  *wait;
    size_t            element;
    int64_t           slice; /* elements of one member's part that fit into a buffer */
    int              *out_bytes, *out_at, *in_bytes, *in_at; /* [n_ranks] */
} motion;

/* ---- pieces ---- */

static int64_t at_most(int64_t n, int64_t most)
{
    return n < 0 ? 0 : n < most ? n : most;
}

static void copy(void *to, const void *from, int64_t count, size_t element)
{
    if (count > 0 && to != from)
        memcpy(to, from, (size_t)count * element);
}

static const void *from(const void *data, int64_t element, size_t size)
{
    return data != NULL ? (const char *)data + (size_t)element * size : NULL;
}

static void *into(void *data, int64_t element, size_t size)
{
    return data != NULL ? (char *)data + (size_t)element * size : NULL;
}

static bool is_scaled(const tutti_call *call)
{
    return call->op.kind == TUTTI_OP_PREMUL_SUM;
}

static bool is_on_device(const motion *m)
{
    return m->call->device != TUTTI_CPU;
}

/* Operands of a reduction, on their way to MPI. */
static tutti_status bring(const motion *m, void *to, const void *data, int64_t count)
{
    tutti_status st = TUTTI_OK;

    if (count > 0 && is_on_device(m)) {
        st = tmpi_device_copy(m->b, to, data, (size_t)count * m->element, m->wait);
        data = to;
    }
    if (st == TUTTI_OK && count > 0 && is_scaled(m->call))
        tmpi_host->scale(m->call->dtype, to, data, count, m->call->op.factor);
    else if (st == TUTTI_OK)
        copy(to, data, count, m->element);
    return st;
}

/* Results of a reduction, on their way to the caller. */
static tutti_status deliver(const motion *m, void *to, const void *data, int64_t count)
{
    if (count > 0 && is_on_device(m))
        return tmpi_device_copy(m->b, to, data, (size_t)count * m->element, m->wait);
    copy(to, data, count, m->element);
    return TUTTI_OK;
}

/* count elements of each member, one after the other, combined. */
static void combine(const motion *m, void *out, int64_t count)
{
    const tmpi_backend *b = m->b;
    int                 r;

    if (count == 0)
        return;
    for (r = 0; r < b->n_ranks; r++)
        b->operands[r] = b->in + (size_t)r * (size_t)count * m->element;
    tmpi_host->reduce(m->call->op.kind, m->call->dtype, out, b->operands, b->n_ranks, count, b->n_ranks);
}

/* ---- calls of MPI, each with its end ---- */

static tutti_status finish(const motion *m, int code, MPI_Request *request)
{
    tmpi_unlock();
    return code == MPI_SUCCESS ? tmpi_await(m->b, request, m->wait) : tmpi_fail_mpi(code, m->wait->what, m->b->name);
}

/* Each member's piece of b->out to it, into pieces of b->in. */
static tutti_status exchange(const motion *m)
{
    MPI_Request request;

    tmpi_lock();
    return finish(m, TMPI_CALL(MPI_Ialltoallv(m->b->out, m->out_bytes, m->out_at, MPI_BYTE, m->b->in, m->in_bytes, m->in_at,
                                              MPI_BYTE, m->b->comm, &request)), &request);
}

/* bytes of data of each member to all, or to root. */
static tutti_status spread(const motion *m, const void *data, int bytes, void *to, const int *to_bytes, const int *to_at)
{
    MPI_Request request;

    tmpi_lock();
    return finish(m, TMPI_CALL(MPI_Iallgatherv(data, bytes, MPI_BYTE, to, to_bytes, to_at, MPI_BYTE, m->b->comm, &request)),
                  &request);
}

static tutti_status bring_together(const motion *m, const void *data, int bytes, void *to, const int *to_bytes,
                                   const int *to_at)
{
    MPI_Request request;

    tmpi_lock();
    return finish(m, TMPI_CALL(MPI_Igatherv(data, bytes, MPI_BYTE, to, to_bytes, to_at, MPI_BYTE, m->call->root, m->b->comm,
                                            &request)), &request);
}

/* ---- reductions ---- */

/* Member r's part of a block of n elements: bytes and places of it in b->out; of the own part in b->in. */
static int64_t lay_out_block(const motion *m, int64_t n)
{
    const int     n_ranks = m->b->n_ranks;
    const int64_t part = (n + n_ranks - 1) / n_ranks;
    const int64_t own = at_most(n - part * m->b->rank, part);
    int           r;

    for (r = 0; r < n_ranks; r++) {
        m->out_at[r] = (int)((size_t)at_most(part * r, n) * m->element);
        m->out_bytes[r] = (int)((size_t)at_most(n - part * r, part) * m->element);
        m->in_at[r] = (int)((size_t)(own * r) * m->element);
        m->in_bytes[r] = (int)((size_t)own * m->element);
    }
    return own;
}

static tutti_status reduce_block(const motion *m, int64_t begin, int64_t n)
{
    const tutti_call *call = m->call;
    tmpi_backend     *b = m->b;
    const int64_t     own = lay_out_block(m, n);
    const int         own_bytes = (int)((size_t)own * m->element);
    tutti_status      st;

    st = bring(m, b->out, from(call->in, begin, m->element), n);
    if (st == TUTTI_OK)
        st = exchange(m);
    if (st != TUTTI_OK)
        return st;
    combine(m, b->in, own);
    if (call->kind == TUTTI_CALL_ALL_REDUCE)
        st = spread(m, b->in, own_bytes, b->out, m->out_bytes, m->out_at);
    else
        st = bring_together(m, b->in, own_bytes, b->out, m->out_bytes, m->out_at);
    if (st == TUTTI_OK && (call->kind == TUTTI_CALL_ALL_REDUCE || call->root == b->rank))
        st = deliver(m, into(call->out, begin, m->element), b->out, n);
    return st;
}

static tutti_status reduce_all(const motion *m)
{
    const int64_t step = m->slice * m->b->n_ranks;
    tutti_status  st = TUTTI_OK;
    int64_t       at;

    for (at = 0; at < m->call->count && st == TUTTI_OK; at += step)
        st = reduce_block(m, at, at_most(m->call->count - at, step));
    return st;
}

/* ---- parts of sizes that all know ---- */

static int64_t part_of(const tutti_call *call, int member)
{
    return call->n_parts > 0 ? call->list_counts[member] : call->count;
}

static int64_t largest_part(const motion *m)
{
    int64_t most = 0;
    int     r;

    for (r = 0; r < m->b->n_ranks; r++)
        most = part_of(m->call, r) > most ? part_of(m->call, r) : most;
    return most;
}

static tutti_status reduce_scatter_slice(const motion *m, int64_t at)
{
    const tutti_call *call = m->call;
    tmpi_backend     *b = m->b;
    const int64_t     own = at_most(part_of(call, b->rank) - at, m->slice);
    tutti_status      st = TUTTI_OK;
    int64_t           n;
    int               r;

    for (r = 0; r < b->n_ranks && st == TUTTI_OK; r++) {
        n = at_most(part_of(call, r) - at, m->slice);
        m->out_at[r] = (int)((size_t)(m->slice * r) * m->element);
        m->out_bytes[r] = (int)((size_t)n * m->element);
        m->in_at[r] = (int)((size_t)(own * r) * m->element);
        m->in_bytes[r] = (int)((size_t)own * m->element);
        st = bring(m, b->out + m->out_at[r], n > 0 ? from(call->list[r], at, m->element) : NULL, n);
    }
    if (st == TUTTI_OK)
        st = exchange(m);
    if (st != TUTTI_OK || own == 0)
        return st;
    if (!is_on_device(m)) {
        combine(m, into(call->out, at, m->element), own);
        return TUTTI_OK;
    }
    combine(m, b->out, own); /* what went out from there has gone */
    return deliver(m, into(call->out, at, m->element), b->out, own);
}

static tutti_status all_gather_slice(const motion *m, int64_t at)
{
    const tutti_call *call = m->call;
    tmpi_backend     *b = m->b;
    const int64_t     own = at_most(part_of(call, b->rank) - at, m->slice);
    tutti_status      st;
    int               r;

    for (r = 0; r < b->n_ranks; r++) {
        m->in_at[r] = (int)((size_t)(m->slice * r) * m->element);
        m->in_bytes[r] = (int)((size_t)at_most(part_of(call, r) - at, m->slice) * m->element);
    }
    copy(b->out, own > 0 ? from(call->in, at, m->element) : NULL, own, m->element);
    st = spread(m, b->out, (int)((size_t)own * m->element), b->in, m->in_bytes, m->in_at);
    for (r = 0; r < b->n_ranks && st == TUTTI_OK; r++)
        copy(into(call->list[r], at, m->element), b->in + m->in_at[r], at_most(part_of(call, r) - at, m->slice), m->element);
    return st;
}

static tutti_status gather_slice(const motion *m, int64_t at)
{
    const tutti_call *call = m->call;
    tmpi_backend     *b = m->b;
    const int64_t     n = at_most(call->count - at, m->slice);
    tutti_status      st;
    int               r;

    for (r = 0; r < b->n_ranks; r++) {
        m->in_bytes[r] = (int)((size_t)n * m->element);
        m->in_at[r] = m->in_bytes[r] * r;
    }
    copy(b->out, from(call->in, at, m->element), n, m->element);
    st = bring_together(m, b->out, (int)((size_t)n * m->element), b->in, m->in_bytes, m->in_at);
    for (r = 0; r < b->n_ranks && st == TUTTI_OK && call->root == b->rank; r++)
        copy(into(call->list[r], at, m->element), b->in + m->in_at[r], n, m->element);
    return st;
}

static tutti_status scatter_slice(const motion *m, int64_t at)
{
    const tutti_call *call = m->call;
    tmpi_backend     *b = m->b;
    const int64_t     n = at_most(call->count - at, m->slice);
    const int         bytes = (int)((size_t)n * m->element);
    MPI_Request       request;
    tutti_status      st;
    int               r;

    for (r = 0; r < b->n_ranks && call->root == b->rank; r++)
        copy(b->out + (size_t)bytes * (size_t)r, from(call->list[r], at, m->element), n, m->element);
    tmpi_lock();
    st = finish(m, TMPI_CALL(MPI_Iscatter(b->out, bytes, MPI_BYTE, b->in, bytes, MPI_BYTE, call->root, b->comm, &request)), &request);
    if (st == TUTTI_OK)
        copy(into(call->out, at, m->element), b->in, n, m->element);
    return st;
}

static tutti_status in_slices(const motion *m, int64_t most, tutti_status (*slice)(const motion *m, int64_t at))
{
    tutti_status st = TUTTI_OK;
    int64_t      at;

    for (at = 0; at < most && st == TUTTI_OK; at += m->slice)
        st = slice(m, at);
    return st;
}

static tutti_status broadcast(const motion *m)
{
    const tutti_call *call = m->call;
    tmpi_backend     *b = m->b;
    const int64_t     step = TMPI_STAGE / (int64_t)m->element;
    MPI_Request       request;
    tutti_status      st = TUTTI_OK;
    int64_t           at, n;

    for (at = 0; at < call->count && st == TUTTI_OK; at += step) {
        n = at_most(call->count - at, step);
        if (call->root == b->rank)
            copy(b->out, from(call->in, at, m->element), n, m->element);
        tmpi_lock();
        st = finish(m, TMPI_CALL(MPI_Ibcast(b->out, (int)((size_t)n * m->element), MPI_BYTE, call->root, b->comm, &request)),
                    &request);
        if (st == TUTTI_OK && call->root != b->rank)
            copy(into(call->out, at, m->element), b->out, n, m->element);
    }
    return st;
}

/* ---- parts of sizes that each pair has for itself ---- */

/* counts has, of each member, what it gives to each, and then what it expects of each. */
static tutti_status compare_counts(const motion *m, const int64_t *counts)
{
    const tmpi_backend *b = m->b;
    const size_t        n = (size_t)b->n_ranks;
    size_t              giver, taker;

    for (giver = 0; giver < n; giver++)
        for (taker = 0; taker < n; taker++)
            if (counts[giver * 2 * n + taker] != counts[taker * 2 * n + n + giver])
                return tmpi_host->fail(TUTTI_E_MISMATCH,
                                       "%s on group '%s': rank %d gives %lld elements to rank %d, which expects %lld\n"
                                       "  next: let what one rank gives be what the other expects",
                                       m->wait->what, b->name, b->global_ranks[giver],
                                       (long long)counts[giver * 2 * n + taker], b->global_ranks[taker],
                                       (long long)counts[taker * 2 * n + n + giver]);
    return TUTTI_OK;
}

/* Every member sees all counts, and so the same difference. */
static tutti_status agree_on_counts(const motion *m)
{
    const tutti_call *call = m->call;
    const size_t      n = (size_t)m->b->n_ranks, row = 2 * n * sizeof(int64_t);
    int64_t          *counts = malloc((n + 1) * row), *own = counts + 2 * n * n;
    MPI_Request       request;
    tutti_status      st;

    if (counts == NULL)
        return tmpi_host->fail(TUTTI_E_NOMEM, "%s on group '%s': no memory for the counts of %zu ranks", m->wait->what,
                               m->b->name, n);
    memcpy(own, call->in_counts, row / 2);
    memcpy(own + n, call->list_counts, row / 2);
    tmpi_lock();
    st = finish(m, TMPI_CALL(MPI_Iallgather(own, (int)row, MPI_BYTE, counts, (int)row, MPI_BYTE, m->b->comm, &request)), &request);
    if (m->b->stuck)
        return st; /* MPI may still write there */
    if (st == TUTTI_OK)
        st = compare_counts(m, counts);
    free(counts);
    return st;
}

tutti_status tmpi_agree_on_counts(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait)
{
    const motion m = { .b = b, .call = call, .wait = wait };

    return agree_on_counts(&m);
}

static tutti_status all_to_all_slice(const motion *m, int64_t at)
{
    const tutti_call *call = m->call;
    tmpi_backend     *b = m->b;
    tutti_status      st;
    int64_t           gives, takes;
    int               r;

    for (r = 0; r < b->n_ranks; r++) {
        gives = at_most(call->in_counts[r] - at, m->slice);
        takes = at_most(call->list_counts[r] - at, m->slice);
        m->out_at[r] = m->in_at[r] = (int)((size_t)(m->slice * r) * m->element);
        m->out_bytes[r] = (int)((size_t)gives * m->element);
        m->in_bytes[r] = (int)((size_t)takes * m->element);
        copy(b->out + m->out_at[r], gives > 0 ? from(call->ins[r], at, m->element) : NULL, gives, m->element);
    }
    st = exchange(m);
    for (r = 0; r < b->n_ranks && st == TUTTI_OK; r++) {
        takes = at_most(call->list_counts[r] - at, m->slice);
        if (takes > 0)
            copy(into(call->list[r], at, m->element), b->in + m->in_at[r], takes, m->element);
    }
    return st;
}

static tutti_status all_to_all(const motion *m, const tmpi_card *cards)
{
    tutti_status st = agree_on_counts(m);
    int64_t      most = 0;
    int          r;

    for (r = 0; r < m->b->n_ranks; r++)
        most = cards[r].most > most ? cards[r].most : most;
    return st == TUTTI_OK ? in_slices(m, most, all_to_all_slice) : st;
}

/* ---- calls ---- */

tutti_status tmpi_move(tmpi_backend *b, const tutti_call *call, const tmpi_card *cards, const tmpi_wait *wait)
{
    const size_t  n = (size_t)b->n_ranks;
    const size_t  stage = n * TMPI_SLICE_LEAST > TMPI_STAGE ? n * TMPI_SLICE_LEAST : TMPI_STAGE;
    const motion  m = { .b = b, .call = call, .wait = wait, .element = tmpi_host->dtype_size(call->dtype),
                        .slice = (int64_t)(stage / n / tmpi_host->dtype_size(call->dtype)), .out_bytes = b->counts,
                        .out_at = b->counts + n, .in_bytes = b->counts + 2 * n, .in_at = b->counts + 3 * n };

    switch (call->kind) {
    case TUTTI_CALL_ALL_REDUCE:
    case TUTTI_CALL_REDUCE: return reduce_all(&m);
    case TUTTI_CALL_BROADCAST: return broadcast(&m);
    case TUTTI_CALL_REDUCE_SCATTER: return in_slices(&m, largest_part(&m), reduce_scatter_slice);
    case TUTTI_CALL_ALL_GATHER: return in_slices(&m, largest_part(&m), all_gather_slice);
    case TUTTI_CALL_GATHER: return in_slices(&m, call->count, gather_slice);
    case TUTTI_CALL_SCATTER: return in_slices(&m, call->count, scatter_slice);
    case TUTTI_CALL_ALL_TO_ALL:
    case TUTTI_CALL_GATHER_V:
    case TUTTI_CALL_SCATTER_V: return all_to_all(&m, cards);
    default:
        return tmpi_host->fail(TUTTI_E_UNSUPPORTED, "%s on group '%s': backend 'mpi' does not know calls of kind %d", wait->what,
                               b->name, (int)call->kind);
    }
}

void tmpi_take_small(tmpi_backend *b, const tutti_call *call, const tmpi_card *cards)
{
    const size_t element = tmpi_host->dtype_size(call->dtype);
    const bool   has_list = call->kind == TUTTI_CALL_ALL_GATHER || (call->kind == TUTTI_CALL_GATHER && call->root == b->rank);
    int          r;

    for (r = 0; r < b->n_ranks; r++) {
        b->operands[r] = cards[r].data;
        if (has_list)
            copy(call->list[r], cards[r].data, call->count, element);
    }
    if (call->kind == TUTTI_CALL_BROADCAST && call->root != b->rank)
        copy(call->out, cards[call->root].data, call->count, element);
    if (call->count > 0 && (call->kind == TUTTI_CALL_ALL_REDUCE || (call->kind == TUTTI_CALL_REDUCE && call->root == b->rank)))
        tmpi_host->reduce(call->op.kind, call->dtype, call->out, b->operands, b->n_ranks, call->count, b->n_ranks);
}
