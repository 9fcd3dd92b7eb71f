/* SPDX-License-Identifier: BSD-3-Clause
 *
 * motion.c - what a call is in NCCL's operations.
 *
 * How     What only moves goes as bytes. Of what combines NCCL has most: the types and operations that it lacks are refused,
 *         by what is the same on all members. bool is bytes of 0 and 1: or is their largest, and is their smallest. Complex numbers
 *         are pairs, which add as such.
 *         Parts that follow each other in memory are one operation of NCCL's. Others, and parts of different sizes, are one
 *         for each member: a broadcast from it, or a reduction to it. gather, scatter and all_to_all are messages. All of a call, its
 *         segments too, is one group of operations, which NCCL begins at once.
 * True    Elements are added in the order that NCCL chooses, not in that of ranks; all ranks get the same bits of an all_reduce. */
#include "nccl_backend.h"

#include <stdio.h>
#include <string.h>

/* ---- words ---- */

static const char *const kind_names[TUTTI_CALL_KIND_COUNT] = {
    [TUTTI_CALL_BARRIER] = "barrier",
    [TUTTI_CALL_ALL_REDUCE] = "all_reduce",
    [TUTTI_CALL_BROADCAST] = "broadcast",
    [TUTTI_CALL_REDUCE] = "reduce",
    [TUTTI_CALL_ALL_GATHER] = "all_gather",
    [TUTTI_CALL_GATHER] = "gather",
    [TUTTI_CALL_SCATTER] = "scatter",
    [TUTTI_CALL_REDUCE_SCATTER] = "reduce_scatter",
    [TUTTI_CALL_ALL_TO_ALL] = "all_to_all",
    [TUTTI_CALL_GATHER_V] = "gather_v",
    [TUTTI_CALL_SCATTER_V] = "scatter_v",
};

static const char *kind_name(tutti_call_kind kind)
{
    return (unsigned)kind < TUTTI_CALL_KIND_COUNT && kind_names[kind] != NULL ? kind_names[kind] : "?";
}

static bool reduces(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_REDUCE_SCATTER;
}

void tnccl_describe(const tutti_call *call, char text[TNCCL_WHAT])
{
    const int used = snprintf(text, TNCCL_WHAT, "%s #%llu", kind_name(call->kind), (unsigned long long)call->seq);

    if (call->kind == TUTTI_CALL_BARRIER || used < 0 || used >= TNCCL_WHAT)
        return;
    if (reduces(call->kind))
        snprintf(text + used, (size_t)(TNCCL_WHAT - used), " (%s, %lld %s)", tnccl_host->op_name(call->op.kind),
                 (long long)call->count, tnccl_host->dtype_name(call->dtype));
    else
        snprintf(text + used, (size_t)(TNCCL_WHAT - used), " (%lld %s)", (long long)call->count,
                 tnccl_host->dtype_name(call->dtype));
}

/* ---- what NCCL has ---- */

/* Elements of a dtype, for arithmetic: each is so many of NCCL's; 0: NCCL has nothing for it. */
typedef struct element {
    ncclDataType_t type;
    int            each;
} element;

enum { FIRST_WITH_F8 = 22400 };

/* What is built with a header that does not have f8 yet has no arithmetic for it either. */
static element f8_of(tutti_dtype dtype)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
    if (tnccl.version >= FIRST_WITH_F8)
        return (element){ dtype == TUTTI_F8E4M3FN ? ncclFloat8e4m3 : ncclFloat8e5m2, 1 };
#endif
    (void)dtype;
    return (element){ ncclUint8, 0 };
}

static element element_of(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_BOOL: return (element){ ncclUint8, 1 };
    case TUTTI_U8: return (element){ ncclUint8, 1 };
    case TUTTI_I8: return (element){ ncclInt8, 1 };
    case TUTTI_U32: return (element){ ncclUint32, 1 };
    case TUTTI_I32: return (element){ ncclInt32, 1 };
    case TUTTI_U64: return (element){ ncclUint64, 1 };
    case TUTTI_I64: return (element){ ncclInt64, 1 };
    case TUTTI_F16: return (element){ ncclFloat16, 1 };
    case TUTTI_BF16: return (element){ ncclBfloat16, 1 };
    case TUTTI_F32: return (element){ ncclFloat32, 1 };
    case TUTTI_F64: return (element){ ncclFloat64, 1 };
    case TUTTI_C64: return (element){ ncclFloat32, 2 };
    case TUTTI_C128: return (element){ ncclFloat64, 2 };
    case TUTTI_F8E4M3FN:
    case TUTTI_F8E5M2: return f8_of(dtype);
    default: return (element){ ncclUint8, 0 };
    }
}

static bool is_complex(tutti_dtype dtype)
{
    return dtype == TUTTI_C64 || dtype == TUTTI_C128;
}

/* False: NCCL has none. */
static bool find_op(tutti_op_kind kind, tutti_dtype dtype, ncclRedOp_t *op_out)
{
    switch (kind) {
    case TUTTI_OP_SUM: *op_out = dtype == TUTTI_BOOL ? ncclMax : ncclSum; return true;
    case TUTTI_OP_PRODUCT: *op_out = dtype == TUTTI_BOOL ? ncclMin : ncclProd; return !is_complex(dtype);
    case TUTTI_OP_MIN: *op_out = ncclMin; return true;
    case TUTTI_OP_MAX: *op_out = ncclMax; return true;
    case TUTTI_OP_AVG: *op_out = ncclAvg; return true;
    case TUTTI_OP_BAND: *op_out = ncclMin; return dtype == TUTTI_BOOL;
    case TUTTI_OP_BOR: *op_out = ncclMax; return dtype == TUTTI_BOOL;
    case TUTTI_OP_PREMUL_SUM: *op_out = ncclSum; return true; /* made for the call: see make_op() */
    default: return false;
    }
}

static tutti_status check_device(const tnccl_backend *b, const tutti_call *call)
{
    if (call->device == TUTTI_CUDA)
        return TUTTI_OK;
    return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': backend 'nccl' takes memory of GPUs only\n"
                                                 "  next: name a backend for the host, too, as \"cpu:native,cuda:nccl\"", b->name);
}

tutti_status tnccl_check_call(const tnccl_backend *b, const tutti_call *call)
{
    ncclRedOp_t  op;
    tutti_status st = check_device(b, call);

    if (st != TUTTI_OK || !reduces(call->kind))
        return st;
    if (element_of(call->dtype).each == 0)
        return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': NCCL %d.%d does not combine %s\n"
                                                     "  next: convert to a type that it has, or use another backend",
                                b->name, tnccl.version / 10000, tnccl.version / 100 % 100, tnccl_host->dtype_name(call->dtype));
    if (!find_op(call->op.kind, call->dtype, &op))
        return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': NCCL has no %s of %s\n  next: use another backend for it", b->name,
                                tnccl_host->op_name(call->op.kind), tnccl_host->dtype_name(call->dtype));
    return TUTTI_OK;
}

/* 1 in each type that can be scaled; real and imaginary part are scaled alike. */
static void make_one(tutti_dtype dtype, void *out)
{
    const uint16_t f16 = 0x3c00, bf16 = 0x3f80;
    const uint8_t  e4m3 = 0x38, e5m2 = 0x3c;
    const float    f32 = 1.0f;
    const double   f64 = 1.0;

    switch (dtype) {
    case TUTTI_F16: memcpy(out, &f16, sizeof f16); break;
    case TUTTI_BF16: memcpy(out, &bf16, sizeof bf16); break;
    case TUTTI_F8E4M3FN: memcpy(out, &e4m3, sizeof e4m3); break;
    case TUTTI_F8E5M2: memcpy(out, &e5m2, sizeof e5m2); break;
    case TUTTI_F64: memcpy(out, &f64, sizeof f64); break;
    default: memcpy(out, &f32, sizeof f32); break;
    }
}

/* The element that is added when one of dtype is. */
static tutti_dtype real_of(tutti_dtype dtype)
{
    return dtype == TUTTI_C64 ? TUTTI_F32 : dtype == TUTTI_C128 ? TUTTI_F64 : dtype;
}

/* The operation of a call; one that is made for it is given back by drop_op(), as soon as NCCL has been told the rest. */
static ncclResult_t make_op(const tnccl_backend *b, const tutti_call *call, ncclRedOp_t *op_out)
{
    const tutti_dtype real = real_of(call->dtype);
    uint64_t          one = 0, factor = 0;

    if (!reduces(call->kind) || call->op.kind != TUTTI_OP_PREMUL_SUM) {
        find_op(call->op.kind, call->dtype, op_out);
        return ncclSuccess;
    }
    make_one(real, &one);
    tnccl_host->scale(real, &factor, &one, 1, call->op.factor);
    return tnccl.ncclRedOpCreatePreMulSum(op_out, &factor, element_of(real).type, ncclScalarHostImmediate, b->comm);
}

static ncclResult_t drop_op(const tnccl_backend *b, const tutti_call *call, ncclRedOp_t op)
{
    return reduces(call->kind) && call->op.kind == TUTTI_OP_PREMUL_SUM ? tnccl.ncclRedOpDestroy(op, b->comm) : ncclSuccess;
}

/* ---- one buffer, or one segment ---- */

/* What the functions below share. */
typedef struct motion {
    tnccl_backend    *b;
    const tutti_call *call;
    ncclRedOp_t       op;
    size_t            size; /* of an element */
    int64_t           count; /* of one part, where they are equal */
    const void       *in;
    void             *out;
    void *const      *list;
    ncclResult_t      code; /* the first that was not good; nothing is done after it */
} motion;

static void note(motion *m, ncclResult_t code)
{
    if (m->code == ncclSuccess || (m->code == ncclInProgress && code != ncclSuccess))
        m->code = code;
}

static bool failed(const motion *m)
{
    return m->code != ncclSuccess && m->code != ncclInProgress;
}

static int64_t part_count(const motion *m, int r)
{
    return m->call->list_counts != NULL ? m->call->list_counts[r] : m->count;
}

/* Whether list's parts are of one size, and lie one behind the other. */
static bool is_flat(const motion *m)
{
    int r;

    for (r = 1; r < m->b->n_ranks; r++)
        if ((const char *)m->list[r] != (const char *)m->list[0] + (size_t)r * (size_t)m->count * m->size)
            return false;
    return m->call->list_counts == NULL;
}

static void copy_own(motion *m, void *out, const void *in, int64_t count)
{
    if (count == 0 || out == in)
        return;
    if (tnccl.cudaMemcpyAsync(out, in, (size_t)count * m->size, cudaMemcpyDeviceToDevice, m->b->stream) != cudaSuccess)
        note(m, ncclUnhandledCudaError);
}

static void give(motion *m, const void *data, int64_t count, int to)
{
    if (count > 0)
        note(m, tnccl.ncclSend(data, (size_t)count * m->size, ncclUint8, to, m->b->comm, m->b->stream));
}

static void take(motion *m, void *data, int64_t count, int from)
{
    if (count > 0)
        note(m, tnccl.ncclRecv(data, (size_t)count * m->size, ncclUint8, from, m->b->comm, m->b->stream));
}

static void all_reduce(motion *m)
{
    const element e = element_of(m->call->dtype);

    if (m->count > 0)
        note(m, tnccl.ncclAllReduce(m->in, m->out, (size_t)m->count * (size_t)e.each, e.type, m->op, m->b->comm, m->b->stream));
}

static void reduce_to(motion *m, const void *in, void *out, int64_t count, int root)
{
    const element e = element_of(m->call->dtype);

    if (count > 0)
        note(m, tnccl.ncclReduce(in, out, (size_t)count * (size_t)e.each, e.type, m->op, root, m->b->comm, m->b->stream));
}

static void broadcast_from(motion *m, const void *in, void *out, int64_t count, int root)
{
    if (count > 0)
        note(m, tnccl.ncclBroadcast(in, out, (size_t)count * m->size, ncclUint8, root, m->b->comm, m->b->stream));
}

static void broadcast(motion *m)
{
    void *buffer = m->b->rank == m->call->root ? (void *)(uintptr_t)m->in : m->out;

    broadcast_from(m, buffer, buffer, m->count, m->call->root);
}

static void all_gather(motion *m)
{
    int r;

    if (is_flat(m) && m->count > 0)
        note(m, tnccl.ncclAllGather(m->in, m->list[0], (size_t)m->count * m->size, ncclUint8, m->b->comm, m->b->stream));
    else
        for (r = 0; r < m->b->n_ranks && !failed(m); r++)
            broadcast_from(m, r == m->b->rank ? m->in : m->list[r], m->list[r], part_count(m, r), r);
}

static void reduce_scatter(motion *m)
{
    const element e = element_of(m->call->dtype);
    int           r;

    if (is_flat(m) && m->count > 0)
        note(m, tnccl.ncclReduceScatter(m->list[0], m->out, (size_t)m->count * (size_t)e.each, e.type, m->op, m->b->comm,
                                        m->b->stream));
    else
        for (r = 0; r < m->b->n_ranks && !failed(m); r++)
            reduce_to(m, m->list[r], r == m->b->rank ? m->out : m->list[r], part_count(m, r), r);
}

static void gather(motion *m)
{
    const int root = m->call->root;
    int       r;

    if (m->b->rank != root) {
        give(m, m->in, m->count, root);
        return;
    }
    for (r = 0; r < m->b->n_ranks && !failed(m); r++)
        if (r != root)
            take(m, m->list[r], m->count, r);
    copy_own(m, m->list[root], m->in, m->count);
}

static void scatter(motion *m)
{
    const int root = m->call->root;
    int       r;

    if (m->b->rank != root) {
        take(m, m->out, m->count, root);
        return;
    }
    for (r = 0; r < m->b->n_ranks && !failed(m); r++)
        if (r != root)
            give(m, m->list[r], m->count, r);
    copy_own(m, m->out, m->list[root], m->count);
}

/* Also gather_v and scatter_v, in which most counts are 0. */
static void all_to_all(motion *m)
{
    const tutti_call *c = m->call;
    const int         own = m->b->rank;
    int               r;

    for (r = 0; r < m->b->n_ranks && !failed(m); r++) {
        if (r == own)
            continue;
        give(m, c->ins[r], c->in_counts[r], r);
        take(m, m->list[r], c->list_counts[r], r);
    }
    copy_own(m, m->list[own], c->ins[own], c->in_counts[own]);
}

static void barrier(motion *m)
{
    note(m, tnccl.ncclAllReduce(m->b->scratch, m->b->scratch, 1, ncclUint8, ncclMax, m->b->comm, m->b->stream));
}

static void move_one(motion *m)
{
    switch (m->call->kind) {
    case TUTTI_CALL_BARRIER: barrier(m); break;
    case TUTTI_CALL_ALL_REDUCE: all_reduce(m); break;
    case TUTTI_CALL_BROADCAST: broadcast(m); break;
    case TUTTI_CALL_REDUCE: reduce_to(m, m->in, m->out, m->count, m->call->root); break;
    case TUTTI_CALL_ALL_GATHER: all_gather(m); break;
    case TUTTI_CALL_GATHER: gather(m); break;
    case TUTTI_CALL_SCATTER: scatter(m); break;
    case TUTTI_CALL_REDUCE_SCATTER: reduce_scatter(m); break;
    case TUTTI_CALL_ALL_TO_ALL:
    case TUTTI_CALL_GATHER_V:
    case TUTTI_CALL_SCATTER_V: all_to_all(m); break;
    default: note(m, ncclInvalidArgument); break;
    }
}

/* ---- a call ---- */

static void move_all(motion *m)
{
    const tutti_call *c = m->call;
    int               i;

    if (c->n_segments == 0)
        move_one(m);
    for (i = 0; i < c->n_segments && !failed(m); i++) {
        m->count = c->segments[i].count;
        m->in = c->segments[i].in;
        m->out = c->segments[i].out;
        m->list = c->list != NULL ? c->list + (size_t)i * (size_t)m->b->n_ranks : NULL;
        move_one(m);
    }
}

ncclResult_t tnccl_move(tnccl_backend *b, const tutti_call *call)
{
    motion m = { .b = b, .call = call, .op = ncclSum, .size = tnccl_host->dtype_size(call->dtype), .count = call->count,
                 .in = call->in, .out = call->out, .list = call->list };

    m.code = make_op(b, call, &m.op);
    if (failed(&m))
        return m.code;
    note(&m, tnccl.ncclGroupStart());
    move_all(&m);
    note(&m, tnccl.ncclGroupEnd());
    note(&m, drop_op(b, call, m.op));
    return m.code;
}
