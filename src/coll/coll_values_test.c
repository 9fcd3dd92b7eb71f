/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_values_test.c
 * Goal    every collective gives what its kind says, by every algorithm, for groups of 1 to 5
 *         ranks, many types, and counts that are nothing, less than the ranks, odd, and many rounds
 *         long; operations follow each other without anything between them; sums have the same bits
 *         everywhere; averages are right where sums would be too large.
 *         The same on registered memory, by all ranks and by some, beginning anywhere.
 * Method  Ranks are threads with a fixed row of calls, whose inputs every rank can compute; the
 *         expected reduction is one kernel call over the inputs of ranks 0..P-1, and for f32 also a
 *         plain loop. Bytes behind every buffer must stay as they were. Algorithms are taken from their
 *         table, so a new one is tried without a word here; `coll_values_test --long [NAME]` tries all with
 *         all numbers of ranks, sizes and operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/choose.h"
#include "coll/coll_ranks.h"
#include "coll/host/channel.h"
#include <tutti/memory.h>
#include "kernel/kernel.h"

enum { GUARD = 64, GUARD_BYTE = 0xa5, SHIFT = 48, N_LIST = TT_RANKS_MOST, SEVERAL = 10000, MANY = 100000 };

static const int64_t *counts; /* of the row of calls; the last is -1 */
#ifdef __SANITIZE_THREAD__ /* each element costs a hundred times as much; several rounds remain */
static const int64_t all_counts[] = { 0, 1, 3, 1000, 40009, -1 };
enum { FEW = 3, MORE = 3, EVERY = 2 };
#else
enum { FEW = 4, MORE = TT_RANKS_MAX, EVERY = 1 }; /* ranks, where all algorithms are tried; of layouts, every so manyth */
static const int64_t all_counts[] = { 0, 1, 3, 1000, 65537, 200001, -1 };
#endif
static const int64_t few_counts[] = { 0, 3, 1000, 40009, -1 };

/* Numbers of which all sums are exact, as of algorithms that have another order of adding than the kernel here: which one
 * is plan_test.c's to see. */
static bool mild;

static void fill_mildly(void *out, int64_t i, tutti_dtype dtype, uint32_t x)
{
    switch (dtype) {
    case TUTTI_BF16: ((uint16_t *)out)[i] = (uint16_t)(0x3f80 + ((x & 1) << 6)); break; /* 1, 1.5 */
    case TUTTI_F16: ((uint16_t *)out)[i] = (uint16_t)(0x3c00 + ((x & 3) << 8)); break; /* 1, 1.25, ... */
    case TUTTI_F32: ((float *)out)[i] = (float)(x & 1023); break;
    case TUTTI_F64: ((double *)out)[i] = (double)(x & 1023); break;
    default:
        ((float *)out)[2 * i] = (float)(x & 255);
        ((float *)out)[2 * i + 1] = 100.0f - (float)(x & 127);
        break;
    }
}

static bool is_rounded(tutti_dtype dtype)
{
    return tti_numbers_of(dtype) == TTI_ROUNDED;
}

/* Small numbers, none special, with every pattern valid for its type. */
static void fill(void *out, int64_t count, tutti_dtype dtype, int rank, uint64_t seq)
{
    const uint32_t start = (uint32_t)rank * 7919 + (uint32_t)seq * 104729;
    int64_t        i;

    for (i = 0; i < count; i++) {
        const uint32_t x = (start + (uint32_t)i) * 2654435761u >> 16;

        if (mild && is_rounded(dtype)) {
            fill_mildly(out, i, dtype, x);
            continue;
        }
        switch (dtype) {
        case TUTTI_BOOL: ((uint8_t *)out)[i] = x & 1; break;
        case TUTTI_I32: ((int32_t *)out)[i] = (int32_t)x - 30000; break;
        case TUTTI_BF16: ((uint16_t *)out)[i] = (uint16_t)(0x3f80 + (x & 0x7f)); break;
        case TUTTI_F16: ((uint16_t *)out)[i] = (uint16_t)(0x3c00 + (x & 0x3ff)); break;
        case TUTTI_F32: ((float *)out)[i] = (float)x * 0.37f - 9000.0f; break;
        case TUTTI_F64: ((double *)out)[i] = (double)x * 0.37 - 9000.0; break;
        case TUTTI_C64:
            ((float *)out)[2 * i] = (float)x * 0.37f;
            ((float *)out)[2 * i + 1] = 100.0f - (float)x;
            break;
        default: ((uint8_t *)out)[i] = (uint8_t)x; break;
        }
    }
}

/* The buffers of one rank for one call, each followed by a guard. */
typedef struct buffers {
    size_t bytes;
    char  *in;
    char  *out;
    char  *list[N_LIST];
    char  *want;
    char  *inputs[N_LIST + 1]; /* one more to keep */
} buffers;

static bool rank_order = true; /* how sums are made: or host by host */
static enum { ORDINARY, REGISTERED, MIXED } memory;
static _Thread_local uint32_t n_taken; /* buffers, by this rank; it starts elsewhere for each */

/* Not at the beginning of a line or of a page. */
static char *take(size_t bytes)
{
    const bool ordinary = memory == ORDINARY || (memory == MIXED && n_taken++ * 2654435761u >> 24 < 16);
    void      *at = NULL;

    if (ordinary)
        return malloc(bytes);
    return tutti_alloc(bytes + SHIFT, &at) == TUTTI_OK ? (char *)at + SHIFT : NULL;
}

static void give_back(char *buffer)
{
    if (buffer == NULL || !tutti_is_registered(buffer, 1))
        free(buffer);
    else if (tutti_free(buffer - SHIFT) != TUTTI_OK)
        abort();
}

static char *guarded(size_t bytes)
{
    char *buffer = take(bytes + GUARD);

    if (buffer == NULL)
        abort();
    memset(buffer, GUARD_BYTE, bytes + GUARD);
    return buffer;
}

static bool guard_is_whole(const char *buffer, size_t bytes)
{
    int i;

    for (i = 0; i < GUARD; i++)
        if ((uint8_t)buffer[bytes + (size_t)i] != GUARD_BYTE)
            return false;
    return true;
}

static buffers make_buffers(const tt_rank *t, const tutti_call *call)
{
    buffers b = { .bytes = (size_t)call->count * tutti_dtype_size(call->dtype) };
    int     r;

    b.in = guarded(b.bytes);
    b.out = guarded(b.bytes);
    b.want = guarded(b.bytes);
    for (r = 0; r < t->size; r++) {
        b.list[r] = guarded(b.bytes);
        b.inputs[r] = guarded(b.bytes);
        fill(b.inputs[r], call->count, call->dtype, r, call->seq);
    }
    memcpy(b.in, b.inputs[t->rank], b.bytes);
    return b;
}

static void free_buffers(tt_rank *t, buffers *b)
{
    int r;

    TT_CHECK(t, guard_is_whole(b->in, b->bytes) && guard_is_whole(b->out, b->bytes));
    for (r = 0; r < t->size; r++) {
        TT_CHECK(t, guard_is_whole(b->list[r], b->bytes));
        give_back(b->list[r]);
        give_back(b->inputs[r]);
    }
    give_back(b->in);
    give_back(b->out);
    give_back(b->want);
}

static tutti_op op_of_rank(tutti_op op, int rank)
{
    return op.kind == TUTTI_OP_PREMUL_SUM ? tutti_premul_sum(op.factor + rank) : op;
}

/* in[] as a group combines them: in rank order, or those of each host first, and then host by host. */
static void combine_all(const tt_rank *t, const void *const *in, tutti_op op, tutti_dtype dtype, int64_t count, char *want)
{
    const tti_reduce_kernel *kernel = tti_reduce_kernel_for(op.kind, dtype);
    const tti_reduce_kernel *inside = op.kind == TUTTI_OP_AVG ? tti_reduce_kernel_for(TUTTI_OP_SUM, dtype) : kernel;
    const void              *of_hosts[N_LIST], *here[N_LIST];
    int                      host, n, r, n_hosts = 0;

    for (host = 0; rank_order || host < t->size; host++) { /* hosts are numbered as they first come */
        char *sum;

        if (rank_order)
            break;
        for (n = 0, r = 0; r < t->size; r++)
            if (t->hosts[r] == host)
                here[n++] = in[r];
        if (n == 0)
            break;
        of_hosts[n_hosts++] = sum = malloc((size_t)count * tutti_dtype_size(dtype) + 1);
        if (sum == NULL)
            abort();
        tti_reduce(inside, sum, here, n, count, n);
    }
    tti_reduce(kernel, want, rank_order ? in : of_hosts, rank_order ? t->size : n_hosts, count, t->size);
    for (host = 0; host < n_hosts; host++)
        free((char *)(uintptr_t)of_hosts[host]);
}

static void expect_reduction(const tt_rank *t, const tutti_call *call, buffers *b, tutti_op op)
{
    const void *in[N_LIST];
    int         r;

    for (r = 0; r < t->size; r++) {
        if (op.kind == TUTTI_OP_PREMUL_SUM)
            tti_scale(b->inputs[r], b->inputs[r], call->count, op_of_rank(op, r).factor,
                      call->dtype);
        in[r] = b->inputs[r];
    }
    combine_all(t, in, op, call->dtype, call->count, b->want);
}

static void check_plain_sum(tt_rank *t, const tutti_call *call, const buffers *b, tutti_op op)
{
    int64_t i;
    int     r;

    if (call->dtype != TUTTI_F32 || op.kind != TUTTI_OP_SUM || !rank_order)
        return;
    for (i = 0; i < call->count; i++) {
        float sum = ((const float *)b->inputs[0])[i];

        for (r = 1; r < t->size; r++)
            sum += ((const float *)b->inputs[r])[i];
        if (memcmp(&sum, b->in + (size_t)i * sizeof sum, sizeof sum) != 0) {
            TT_CHECK(t, !"the bits of a sum");
            return;
        }
    }
}

static void do_reduction(tt_rank *t, tutti_call_kind kind, tutti_dtype dtype, int64_t count,
                         tutti_op op)
{
    tutti_call call = tt_call(t, kind, dtype, count);
    buffers    b = make_buffers(t, &call);
    const int  root = (int)(call.seq % (uint64_t)t->size);
    const bool gets = kind == TUTTI_CALL_ALL_REDUCE || root == t->rank;

    if (kind == TUTTI_CALL_REDUCE)
        call.root = root;
    call.op = op_of_rank(op, t->rank);
    call.in = b.in;
    call.out = gets ? b.in : NULL;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    if (gets)
        expect_reduction(t, &call, &b, op);
    else
        memcpy(b.want, b.inputs[t->rank], b.bytes); /* only read */
    TT_CHECK(t, memcmp(b.in, b.want, b.bytes) == 0);
    if (gets)
        check_plain_sum(t, &call, &b, op);
    free_buffers(t, &b);
}

static void do_broadcast(tt_rank *t, tutti_dtype dtype, int64_t count)
{
    tutti_call call = tt_call(t, TUTTI_CALL_BROADCAST, dtype, count);
    buffers    b = make_buffers(t, &call);

    call.root = (int)(call.seq % (uint64_t)t->size);
    call.in = call.root == t->rank ? b.in : NULL;
    call.out = call.root == t->rank ? NULL : b.in;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, memcmp(b.in, b.inputs[call.root], b.bytes) == 0);
    free_buffers(t, &b);
}

/* Every second time the own part lies in the list already. */
static void do_gather(tt_rank *t, tutti_call_kind kind, tutti_dtype dtype, int64_t count)
{
    tutti_call call = tt_call(t, kind, dtype, count);
    buffers    b = make_buffers(t, &call);
    const int  root = (int)(call.seq % (uint64_t)t->size);
    const bool gets = kind == TUTTI_CALL_ALL_GATHER || root == t->rank;
    int        r;

    call.root = kind == TUTTI_CALL_GATHER ? root : -1;
    call.in = b.in;
    if (gets && call.seq % 2 == 0) {
        memcpy(b.list[t->rank], b.in, b.bytes);
        call.in = b.list[t->rank];
    }
    call.list = gets ? (void *const *)b.list : NULL;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (r = 0; r < t->size && gets; r++)
        TT_CHECK(t, memcmp(b.list[r], b.inputs[r], b.bytes) == 0);
    TT_CHECK(t, memcmp(b.in, b.inputs[t->rank], b.bytes) == 0);
    free_buffers(t, &b);
}

static void do_scatter(tt_rank *t, tutti_dtype dtype, int64_t count)
{
    tutti_call call = tt_call(t, TUTTI_CALL_SCATTER, dtype, count);
    buffers    b = make_buffers(t, &call);
    int        r;

    call.root = (int)(call.seq % (uint64_t)t->size);
    for (r = 0; r < t->size && call.root == t->rank; r++)
        memcpy(b.list[r], b.inputs[r], b.bytes);
    call.list = call.root == t->rank ? (void *const *)b.list : NULL;
    call.out = call.root == t->rank && call.seq % 2 == 0 ? b.list[t->rank] : b.out;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    TT_CHECK(t, memcmp(call.out, b.inputs[t->rank], b.bytes) == 0);
    free_buffers(t, &b);
}

/* Elements of rank's part: a third of the parts is empty. */
static int64_t part_count(int64_t count, int rank)
{
    return count * (rank % 3) / 2;
}

/* What rank r puts into the part of owner. */
static void fill_part(void *out, int64_t count, const tutti_call *call, int r, int owner)
{
    fill(out, count, call->dtype, r + 8 * owner, call->seq);
}

/* Every second time out is the own entry of the list; the other entries are only read. */
static void do_reduce_scatter(tt_rank *t, tutti_dtype dtype, int64_t count, tutti_op op, bool uneven)
{
    tutti_call call = tt_call(t, TUTTI_CALL_REDUCE_SCATTER, dtype, count);
    buffers    b = make_buffers(t, &call);
    int64_t    parts[N_LIST];
    size_t     bytes;
    int        r;

    for (call.count = 0, r = 0; r < t->size; r++) {
        parts[r] = uneven ? part_count(count, r) : count;
        call.count += uneven ? parts[r] : 0;
    }
    for (r = 0; r < t->size; r++) {
        fill_part(b.list[r], parts[r], &call, t->rank, r);
        fill_part(b.inputs[r], parts[t->rank], &call, r, t->rank);
    }
    if (uneven) {
        call.n_parts = t->size;
        call.list_counts = parts;
    } else {
        call.count = count;
    }
    bytes = (size_t)parts[t->rank] * tutti_dtype_size(dtype);
    call.op = op_of_rank(op, t->rank);
    call.list = (void *const *)b.list;
    call.out = call.seq % 2 == 0 ? b.list[t->rank] : b.out;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    call.count = parts[t->rank];
    expect_reduction(t, &call, &b, op);
    TT_CHECK(t, memcmp(call.out, b.want, bytes) == 0);
    memcpy(b.in, call.out, bytes);
    check_plain_sum(t, &call, &b, op);
    for (r = 0; r < t->size; r++) {
        fill_part(b.inputs[r], parts[r], &call, t->rank, r);
        TT_CHECK(t, (r == t->rank && call.out != b.out) ||
                        memcmp(b.list[r], b.inputs[r],
                               (size_t)parts[r] * tutti_dtype_size(dtype)) == 0);
    }
    free_buffers(t, &b);
}

/* Parts of different sizes, a third of them empty; every second time the own one lies in the list already.
 * Behind each nothing is written. */
static void do_uneven_gather(tt_rank *t, tutti_dtype dtype, int64_t count)
{
    tutti_call   call = tt_call(t, TUTTI_CALL_ALL_GATHER, dtype, count);
    buffers      b = make_buffers(t, &call);
    const size_t element = tutti_dtype_size(dtype);
    int64_t      parts[N_LIST];
    int          r;

    for (call.count = 0, r = 0; r < t->size; r++)
        call.count += parts[r] = part_count(count, r);
    call.in = b.in;
    if (call.seq % 2 == 0) {
        memcpy(b.list[t->rank], b.in, (size_t)parts[t->rank] * element);
        call.in = b.list[t->rank];
    }
    call.list = (void *const *)b.list;
    call.n_parts = t->size;
    call.list_counts = parts;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (r = 0; r < t->size; r++) {
        const size_t bytes = (size_t)parts[r] * element;

        TT_CHECK(t, memcmp(b.list[r], b.inputs[r], bytes) == 0);
        TT_CHECK(t, bytes == b.bytes || (uint8_t)b.list[r][bytes] == GUARD_BYTE);
    }
    free_buffers(t, &b);
}

/* Whether one rank may give another something at all: in the rooted kinds, where one of them is the root. */
static bool may_give(const tutti_call *call, int from, int to)
{
    return call->kind == TUTTI_CALL_ALL_TO_ALL ||
           (call->kind == TUTTI_CALL_GATHER_V ? to : from) == call->root;
}

/* Elements that one rank gives another: no relation to what it gets back. */
static int64_t block_count(const tutti_call *call, int64_t count, bool uneven, int from, int to)
{
    if (!may_give(call, from, to))
        return 0;
    return uneven ? count * ((from * 5 + to * 3) % 4) / 3 : count;
}

/* Every second time the own entries of the two lists are one buffer. Behind each block, as behind
 * each buffer, nothing is written. */
static void do_blocks(tt_rank *t, tutti_call_kind kind, tutti_dtype dtype, int64_t count, bool uneven)
{
    tutti_call   call = tt_call(t, kind, dtype, count);
    buffers      b = make_buffers(t, &call);
    const size_t element = tutti_dtype_size(dtype);
    int64_t      gives[N_LIST], gets[N_LIST];
    int          r;

    if (kind != TUTTI_CALL_ALL_TO_ALL)
        call.root = (int)(call.seq % (uint64_t)t->size);
    for (r = 0; r < t->size; r++) {
        gives[r] = block_count(&call, count, uneven, t->rank, r);
        gets[r] = block_count(&call, count, uneven, r, t->rank);
        fill_part(b.inputs[r], gives[r], &call, t->rank, r);
    }
    if (call.seq % 2 == 0)
        memcpy(b.list[t->rank], b.inputs[t->rank], (size_t)gives[t->rank] * element);
    b.inputs[N_LIST] = b.inputs[t->rank];
    if (call.seq % 2 == 0)
        b.inputs[t->rank] = b.list[t->rank];
    call.count = 0;
    call.list = (void *const *)b.list;
    call.ins = (const void *const *)b.inputs;
    call.n_parts = t->size;
    call.list_counts = gets;
    call.in_counts = gives;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    b.inputs[t->rank] = b.inputs[N_LIST];
    for (r = 0; r < t->size; r++) {
        const size_t bytes = (size_t)gets[r] * element;

        fill_part(b.want, gets[r], &call, r, t->rank);
        TT_CHECK(t, memcmp(b.list[r], b.want, bytes) == 0);
        TT_CHECK(t, bytes == b.bytes || (uint8_t)b.list[r][bytes] == GUARD_BYTE);
    }
    free_buffers(t, &b);
}

/* ---- several segments in one call ---- */

enum { N_SEGMENTS = 6 };

/* Sizes around count: some empty, some long enough to be left where they are. */
static int64_t segment_count(int64_t count, int s)
{
    const int64_t sizes[N_SEGMENTS] = { count / 3, 0, count, 3, count / 2, 0 };

    return sizes[s];
}

/* Rank's input number p of a segment. */
static void fill_segment(void *out, int64_t count, const tutti_call *call, int rank, int p, int s)
{
    fill(out, count, call->dtype, rank + 8 * p + 64 * s, call->seq);
}

typedef struct segment_buffers {
    tutti_segment segments[N_SEGMENTS];
    char         *own[N_SEGMENTS]; /* in and out */
    char         *list[N_SEGMENTS * N_LIST];
    size_t        bytes[N_SEGMENTS];
} segment_buffers;

static void make_segments(tt_rank *t, tutti_call *call, segment_buffers *b, int64_t count)
{
    const bool scatters = call->kind == TUTTI_CALL_REDUCE_SCATTER;
    int        s, r;

    for (call->count = 0, s = 0; s < N_SEGMENTS; s++) {
        tutti_segment *seg = &b->segments[s];

        call->count += seg->count = segment_count(count, s);
        b->bytes[s] = (size_t)seg->count * tutti_dtype_size(call->dtype);
        b->own[s] = guarded(b->bytes[s]);
        fill_segment(b->own[s], seg->count, call, t->rank, 0, s);
        for (r = 0; r < t->size; r++) {
            char *entry = b->list[s * t->size + r] = guarded(b->bytes[s]);

            if (scatters)
                fill_segment(entry, seg->count, call, t->rank, r, s);
        }
        seg->in = scatters ? NULL : b->own[s];
        seg->out = call->kind == TUTTI_CALL_ALL_GATHER ? NULL : b->own[s];
    }
    call->segments = b->segments;
    call->n_segments = N_SEGMENTS;
    if (call->kind != TUTTI_CALL_ALL_REDUCE)
        call->list = (void *const *)b->list;
}

/* The combination over ranks of their inputs number p of a segment. */
static void expect_segment(const tt_rank *t, const tutti_call *call, tutti_op op, int p, int s, char *want)
{
    const int64_t count = call->segments[s].count;
    const void   *in[N_LIST];
    int           r;

    for (r = 0; r < t->size; r++) {
        char *input = guarded((size_t)count * tutti_dtype_size(call->dtype));

        fill_segment(input, count, call, r, p, s);
        if (op.kind == TUTTI_OP_PREMUL_SUM)
            tti_scale(input, input, count, op_of_rank(op, r).factor, call->dtype);
        in[r] = input;
    }
    combine_all(t, in, op, call->dtype, count, want);
    for (r = 0; r < t->size; r++)
        give_back((char *)(uintptr_t)in[r]);
}

static void check_segment(tt_rank *t, const tutti_call *call, const segment_buffers *b, tutti_op op, int s)
{
    char *want = guarded(b->bytes[s]);
    int   r;

    if (call->kind == TUTTI_CALL_ALL_GATHER)
        fill_segment(want, call->segments[s].count, call, t->rank, 0, s);
    else
        expect_segment(t, call, op, call->kind == TUTTI_CALL_REDUCE_SCATTER ? t->rank : 0, s, want);
    TT_CHECK(t, memcmp(b->own[s], want, b->bytes[s]) == 0);
    for (r = 0; r < t->size && call->list != NULL; r++) {
        const bool gathers = call->kind == TUTTI_CALL_ALL_GATHER;

        fill_segment(want, call->segments[s].count, call, gathers ? r : t->rank, gathers ? 0 : r, s);
        TT_CHECK(t, memcmp(b->list[s * t->size + r], want, b->bytes[s]) == 0);
    }
    give_back(want);
}

static void do_segments(tt_rank *t, tutti_call_kind kind, tutti_dtype dtype, int64_t count, tutti_op op)
{
    tutti_call      call = tt_call(t, kind, dtype, 0);
    segment_buffers b;
    int             s, r;

    make_segments(t, &call, &b, count);
    call.op = op_of_rank(op, t->rank);
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    for (s = 0; s < N_SEGMENTS; s++) {
        check_segment(t, &call, &b, op, s);
        TT_CHECK(t, guard_is_whole(b.own[s], b.bytes[s]));
        for (r = 0; r < t->size; r++) {
            TT_CHECK(t, guard_is_whole(b.list[s * t->size + r], b.bytes[s]));
            give_back(b.list[s * t->size + r]);
        }
        give_back(b.own[s]);
    }
}

/* Fifteen calls a time: so in turn parts are even and uneven, each in place and out of place. */
static void do_all_kinds(tt_rank *t, tutti_dtype dtype, int64_t count, tutti_op op)
{
    const bool uneven = (t->seq >> 1 & 1) != 0;

    do_reduction(t, TUTTI_CALL_ALL_REDUCE, dtype, count, op);
    do_broadcast(t, dtype, count);
    do_reduction(t, TUTTI_CALL_REDUCE, dtype, count, op);
    if (uneven)
        do_uneven_gather(t, dtype, count);
    else
        do_gather(t, TUTTI_CALL_ALL_GATHER, dtype, count);
    do_scatter(t, dtype, count);
    do_gather(t, TUTTI_CALL_GATHER, dtype, count);
    do_reduce_scatter(t, dtype, count, op, uneven);
    do_blocks(t, TUTTI_CALL_ALL_TO_ALL, dtype, count, uneven);
    do_blocks(t, TUTTI_CALL_GATHER_V, dtype, count, uneven);
    do_blocks(t, TUTTI_CALL_SCATTER_V, dtype, count, uneven);
    do_segments(t, TUTTI_CALL_ALL_REDUCE, dtype, count, op);
    do_segments(t, TUTTI_CALL_ALL_GATHER, dtype, count, op);
    do_segments(t, TUTTI_CALL_REDUCE_SCATTER, dtype, count, op);
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
    TT_CHECK(t, tt_barrier(t) == TUTTI_OK);
}

/* Of what takes several rounds, in which only sizes of elements differ, one dtype of each size: every_op() and cells() have
 * others there. */
static size_t dtypes_of(int64_t count)
{
    return count > MANY ? 2 : count > SEVERAL ? 3 : 6;
}

static void all_calls(tt_rank *t)
{
    static const tutti_dtype dtypes[] = { TUTTI_F32, TUTTI_U8, TUTTI_F64, TUTTI_BF16, TUTTI_I32, TUTTI_C64 };
    int                      i;
    size_t                   d;

    n_taken = (uint32_t)t->rank * 1000;
    for (i = 0; counts[i] >= 0; i++)
        for (d = 0; d < dtypes_of(counts[i]); d++)
            do_all_kinds(t, dtypes[d], counts[i], TUTTI_SUM);
}

static void every_op(tt_rank *t)
{
    static const int64_t sizes[] = { 1, 1000, 30001 };
    size_t               i;

    n_taken = (uint32_t)t->rank * 1000;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        do_all_kinds(t, TUTTI_F32, sizes[i], TUTTI_AVG);
        do_all_kinds(t, TUTTI_BF16, sizes[i], TUTTI_AVG);
        do_all_kinds(t, TUTTI_F32, sizes[i], tutti_premul_sum(0.5));
        do_all_kinds(t, TUTTI_F16, sizes[i], tutti_premul_sum(1.5));
        do_all_kinds(t, TUTTI_I32, sizes[i], TUTTI_MAX);
        do_all_kinds(t, TUTTI_F64, sizes[i], TUTTI_MIN);
        do_all_kinds(t, TUTTI_I32, sizes[i], TUTTI_PRODUCT);
        do_all_kinds(t, TUTTI_U8, sizes[i], TUTTI_BXOR);
        do_all_kinds(t, TUTTI_BOOL, sizes[i], TUTTI_SUM);
    }
}

/* No rank waits for another but through the calls: roots run ahead, kinds and sizes change. */
static void random_calls(tt_rank *t)
{
    uint32_t state = 12345;
    int      i;

    n_taken = (uint32_t)t->rank * 1000;
    for (i = 0; i < 400; i++) {
        int64_t count;

        state = state * 1664525u + 1013904223u;
        count = state >> 28 ? (state >> 8) % 700 : (state >> 8) % 60000;
        switch (state >> 24 & 15) {
        case 0: do_reduction(t, TUTTI_CALL_ALL_REDUCE, TUTTI_F32, count, TUTTI_SUM); break;
        case 1: do_reduction(t, TUTTI_CALL_REDUCE, TUTTI_I32, count, TUTTI_SUM); break;
        case 2: do_gather(t, TUTTI_CALL_ALL_GATHER, TUTTI_U8, count); break;
        case 3: do_gather(t, TUTTI_CALL_GATHER, TUTTI_F64, count); break;
        case 4: do_scatter(t, TUTTI_F32, count); break;
        case 5: TT_CHECK(t, tt_barrier(t) == TUTTI_OK); break;
        case 6: do_reduce_scatter(t, TUTTI_F32, count, TUTTI_SUM, state & 1); break;
        case 7: do_blocks(t, TUTTI_CALL_ALL_TO_ALL, TUTTI_U8, count, true); break;
        case 8: do_blocks(t, TUTTI_CALL_GATHER_V, TUTTI_U8, count, true); break;
        case 9: do_blocks(t, TUTTI_CALL_SCATTER_V, TUTTI_U8, count, true); break;
        case 11: do_segments(t, TUTTI_CALL_ALL_REDUCE, TUTTI_F32, count, TUTTI_SUM); break;
        case 12: do_segments(t, TUTTI_CALL_REDUCE_SCATTER, TUTTI_BF16, count, TUTTI_AVG); break;
        case 13: do_segments(t, TUTTI_CALL_ALL_GATHER, TUTTI_U8, count, TUTTI_SUM); break;
        case 10: do_uneven_gather(t, TUTTI_F64, count); break;
        default: do_broadcast(t, TUTTI_F32, count); break;
        }
    }
}

/* Groups come and go; one that is closed while others still read must not take its memory away. */
static void many_groups(tt_rank *t)
{
    tti_coll *world = t->coll;
    uint32_t  group;

    for (group = 1; group <= 30; group++) {
        t->seq = 0;
        TT_CHECK(t, tt_open(t, group, t->deadline_ns, &t->coll) == TUTTI_OK);
        do_gather(t, TUTTI_CALL_ALL_GATHER, TUTTI_F32, 40000);
        do_broadcast(t, TUTTI_F32, 20000);
        tti_coll_close(t->coll);
        /* and one that nothing is done with */
        TT_CHECK(t, tt_open(t, 1000 + group, t->deadline_ns, &t->coll) == TUTTI_OK);
        tti_coll_close(t->coll);
    }
    t->coll = world;
}

enum { GROUPS_AT_ONCE = 300 };

/* A program with a group for each row and column of a large mesh. */
static void groups_that_stay(tt_rank *t)
{
    tti_coll *groups[GROUPS_AT_ONCE] = { NULL }, *world = t->coll;
    int       i;

    for (i = 0; i < GROUPS_AT_ONCE && t->failure[0] == '\0'; i++)
        TT_CHECK(t, tt_open(t, (uint32_t)i + 1, t->deadline_ns, &groups[i]) == TUTTI_OK);
    for (i = GROUPS_AT_ONCE - 1; i > 0 && t->failure[0] == '\0'; i /= 2) {
        t->seq = 0;
        t->coll = groups[i];
        do_broadcast(t, TUTTI_F32, 200000);
    }
    for (i = 0; i < GROUPS_AT_ONCE; i++)
        tti_coll_close(groups[i]);
    t->coll = world;
}

static void run_all_sizes(bool tcp, tt_body *body)
{
    tt_rank ranks[TT_RANKS_MAX];
    int     size;

    for (size = 1; size <= TT_RANKS_MAX; size++)
        tt_run(size, tcp, body, ranks);
}

static void values_on_one_host(void **state)
{
    (void)state;
    counts = all_counts;
    run_all_sizes(false, all_calls);
}

static void values_between_hosts(void **state)
{
    (void)state;
    counts = all_counts;
    run_all_sizes(true, all_calls);
}

static void ops_on_one_host(void **state)
{
    (void)state;
    run_all_sizes(false, every_op);
}

static void ops_between_hosts(void **state)
{
    (void)state;
    run_all_sizes(true, every_op);
}

static void calls_follow_each_other(void **state)
{
    (void)state;
    run_all_sizes(false, random_calls);
    run_all_sizes(true, random_calls);
}

static void groups_come_and_go(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    tt_run(3, false, many_groups, ranks);
    tt_run(3, true, many_groups, ranks);
    tt_run(2, false, groups_that_stay, ranks);
}

/* ---- every algorithm, by its name -------------------------------------------------------------- */

enum { WISHES_MAX = 1024, DRAWN_MACHINES = 20 };

/* The turn-th algorithm of a kind, counted round; how many it has. */
static const tti_algorithm *row_of(int kind, int turn, int *n_out)
{
    int                  n, i, of_kind = 0, seen = 0;
    const tti_algorithm *rows = tti_algorithms(&n);

    for (i = 0; i < n; i++)
        of_kind += (int)rows[i].kind == kind;
    *n_out = of_kind;
    for (i = 0; (int)rows[i].kind != kind || seen++ < turn % of_kind; i++)
        ;
    return &rows[i];
}

/* "op=name,...": the turn-th algorithm of each kind. How many turns bring all on. */
static int wish_for(int turn, char text[WISHES_MAX])
{
    int    n, kind, turns = 1;
    size_t used = 0;

    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++) {
        const tti_algorithm *row = row_of(kind, turn, &n);

        used += (size_t)snprintf(text + used, WISHES_MAX - used, "%s%s=%s", used > 0 ? "," : "",
                                 tti_call_kind_name((tutti_call_kind)kind), row->name);
        turns = n > turns ? n : turns;
    }
    assert_true(used < WISHES_MAX);
    return turns;
}

/* Whether a row that wish_for() names adds in another order. */
static bool leaves_rank_order(int turn)
{
    int  kind, n;
    bool leaves = false;

    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
        leaves = leaves || row_of(kind, turn, &n)->order != TTI_IN_RANK_ORDER;
    return leaves;
}

static void by_every_algorithm_in(const tt_setting *setting, int least, int most, bool tcp, tt_body *body)
{
    tt_rank ranks[TT_RANKS_MAX];
    char    wish[WISHES_MAX];
    int     turns, turn, size;

    turns = wish_for(0, wish);
    for (turn = 0; turn < turns; turn++) {
        wish_for(turn, wish);
        mild = leaves_rank_order(turn);
        assert_int_equal(setenv("TUTTI_ALGO", wish, 1), 0);
        for (size = least; size <= most; size++)
            tt_run_in(setting, size, tcp, body, ranks);
    }
    mild = false;
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

static void by_every_algorithm(int least, int most, bool tcp, tt_body *body)
{
    const tt_setting usual = { .machine = &tti_machine_default };

    by_every_algorithm_in(&usual, least, most, tcp, body);
}

static void every_algorithm_on_one_host(void **state)
{
    (void)state;
    counts = few_counts;
    by_every_algorithm(4, 4, false, all_calls);
}

static void every_algorithm_between_hosts(void **state)
{
    (void)state;
    counts = few_counts;
    by_every_algorithm(3, FEW, true, all_calls);
}

/* With a core for each rank there are more and smaller slots, of which several are under way, and flags in another
 * order; where two share one, few and large ones. Whatever this machine has, all is tried. They wait as ranks do that
 * share cores, for that is what they do here. */
static const tti_host_patience few_looks = { .glances = 16, .checks = 1, .yields = 32 };
static const tt_setting        many_cores = { .machine = &tti_machine_default, .patience = &few_looks, .cores = 64 };
static const tt_setting        many_fenceless = { .machine = &tti_machine_default, .patience = &few_looks, .cores = 64,
                                                  .fenceless = true };
static const tt_setting        one_core = { .machine = &tti_machine_default, .patience = &few_looks, .cores = 1 };

static void every_algorithm_however_cores_are_shared(void **state)
{
    (void)state;
    counts = few_counts;
    by_every_algorithm_in(&many_cores, FEW, FEW, false, all_calls);
    by_every_algorithm_in(&one_core, 2, 2, false, all_calls);
}

static void calls_follow_each_other_however_cores_are_shared(void **state)
{
    static const tt_setting *const settings[] = { &many_cores, &many_fenceless, &one_core };
    tt_rank ranks[TT_RANKS_MAX];
    int     i, size;

    (void)state;
    for (i = 0; i < 3; i++)
        for (size = 2; size <= MORE; size++)
            tt_run_in(settings[i], size, false, random_calls, ranks);
}

/* ---- in two levels ------------------------------------------------------------------------------- */

#define TWO_LEVELS                                                                                      \
    "barrier=leaders,all_reduce=two_level,reduce=two_level,broadcast=two_level,all_gather=two_level,"   \
    "reduce_scatter=two_level,gather=two_level,scatter=two_level,all_to_all=two_level,gather_v=two_level," \
    "scatter_v=two_level"
#define LEADERS                                                                                         \
    "barrier=leaders,all_reduce=leaders,reduce=leaders,broadcast=leaders,all_gather=leaders,"           \
    "reduce_scatter=leaders,gather=leaders,scatter=leaders,all_to_all=leaders,gather_v=leaders,scatter_v=leaders"

/* Which ranks share a host; in hosts with unequal numbers of members, and with ranks that do not follow each other. */
static const struct in_hosts {
    int size;
    int hosts[TT_RANKS_MOST];
} in_hosts[] = {
    { 4, { 0, 0, 1, 1 } }, { 5, { 0, 1, 0, 1, 0 } }, { 6, { 0, 1, 1, 2, 2, 2 } }, { 8, { 0, 0, 0, 0, 1, 1, 1, 1 } },
    { 6, { 0, 1, 0, 2, 1, 0 } },
};
enum { LAYOUTS = sizeof in_hosts / sizeof in_hosts[0] };

static void in_levels(const struct in_hosts *where, const char *wish, int cores, tt_body *body)
{
    const tt_setting setting = { .machine = &tti_machine_default, .patience = &few_looks, .cores = cores,
                                 .hosts = where->hosts };
    tt_rank          ranks[TT_RANKS_MOST];

    if (wish != NULL)
        assert_int_equal(setenv("TUTTI_ALGO", wish, 1), 0);
    rank_order = false;
    tt_run_in(&setting, where->size, false, body, ranks);
    rank_order = true;
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

static void values_in_two_levels(void **state)
{
    int i;

    (void)state;
    counts = few_counts;
    for (i = 0; i < LAYOUTS; i += EVERY)
        in_levels(&in_hosts[i], TWO_LEVELS, 64, all_calls);
    for (i = 0; i < LAYOUTS; i += 2 * EVERY)
        in_levels(&in_hosts[i], LEADERS, i % 4 ? 1 : 64, all_calls);
    if (EVERY > 1)
        return;
    counts = all_counts;
    in_levels(&in_hosts[0], TWO_LEVELS, 2, all_calls);
    in_levels(&in_hosts[2], TWO_LEVELS, 1, all_calls);
}

static void ops_in_two_levels(void **state)
{
    (void)state;
    in_levels(&in_hosts[0], NULL, 64, every_op);
    in_levels(&in_hosts[1], TWO_LEVELS, 64, every_op);
    in_levels(&in_hosts[4], LEADERS, 1, every_op);
}

static void calls_follow_each_other_in_two_levels(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < LAYOUTS; i += EVERY)
        in_levels(&in_hosts[i], i % 2 ? TWO_LEVELS : NULL, i % 3 ? 64 : 1, random_calls);
}

/* A number of a type with a narrow range, of which two are too large a sum. */
static size_t large(tutti_dtype dtype, void *out)
{
    static const uint16_t f16 = 0x78e2; /* 40000 */
    static const uint8_t  f8[] = { 0x7a /* 320 */, 0x7a /* 49152 */ };

    if (dtype == TUTTI_F16)
        memcpy(out, &f16, sizeof f16);
    else
        memcpy(out, &f8[dtype == TUTTI_F8E5M2], 1);
    return tutti_dtype_size(dtype);
}

/* The average of equal numbers is that number, however large it is. */
static void average(tt_rank *t, tutti_call_kind kind, tutti_dtype dtype, int64_t count)
{
    tutti_call call = tt_call(t, kind, dtype, count);
    buffers    b = make_buffers(t, &call);
    size_t     element = tutti_dtype_size(dtype);
    int64_t    i, r;

    for (i = 0; i < count; i++)
        for (r = 0, large(dtype, b.in + (size_t)i * element); r < t->size; r++)
            large(dtype, b.list[r] + (size_t)i * element);
    call.op = TUTTI_AVG;
    call.root = kind == TUTTI_CALL_REDUCE ? (int)(call.seq % (uint64_t)t->size) : -1;
    call.in = kind == TUTTI_CALL_REDUCE_SCATTER ? NULL : b.in;
    call.list = kind == TUTTI_CALL_REDUCE_SCATTER ? (void *const *)b.list : NULL;
    call.out = call.root < 0 || call.root == t->rank ? b.out : NULL;
    TT_CHECK(t, tti_coll_run(t->coll, &call) == TUTTI_OK);
    if (call.out != NULL)
        TT_CHECK(t, memcmp(b.out, b.list[0], b.bytes) == 0);
    free_buffers(t, &b);
}

static void averages(tt_rank *t)
{
    static const tutti_call_kind kinds[] = { TUTTI_CALL_ALL_REDUCE, TUTTI_CALL_REDUCE, TUTTI_CALL_REDUCE_SCATTER };
    static const tutti_dtype     dtypes[] = { TUTTI_F16, TUTTI_F8E4M3FN, TUTTI_F8E5M2 };
    int                          k, d;

    for (k = 0; k < 3; k++)
        for (d = 0; d < 3; d++) {
            average(t, kinds[k], dtypes[d], 3);
            average(t, kinds[k], dtypes[d], 70001);
        }
}

static void averages_of_large_numbers_are_not_too_large(void **state)
{
    static const char *const others[] = { "all_reduce=doubling,reduce=binomial,reduce_scatter=halving",
                                          "all_reduce=ring,reduce=chain,reduce_scatter=ring" };
    tt_rank                  ranks[TT_RANKS_MOST];
    int                      i;

    (void)state;
    in_levels(&in_hosts[1], NULL, 64, averages);
    in_levels(&in_hosts[0], TWO_LEVELS, 64, averages);
    for (i = 0; i < 2; i++) {
        assert_int_equal(setenv("TUTTI_ALGO", others[i], 1), 0);
        tt_run(4, true, averages, ranks);
        assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
    }
}

/* Promised sums in rank order are made so wherever the ranks are. */
static void reproducible_sums_on_several_hosts(void **state)
{
    const tt_setting setting = { .machine = &tti_machine_default, .hosts = in_hosts[4].hosts };
    tt_rank          ranks[TT_RANKS_MOST];

    (void)state;
    counts = few_counts;
    assert_int_equal(setenv("TUTTI_REPRODUCIBLE", "1", 1), 0);
    tt_run_in(&setting, in_hosts[4].size, false, all_calls, ranks);
    assert_int_equal(unsetenv("TUTTI_REPRODUCIBLE"), 0);
}

/* The long form: all numbers of ranks, sizes and operations, and calls in any order. */
static void long_sizes(void **state)
{
    (void)state;
    counts = all_counts;
    by_every_algorithm(2, TT_RANKS_MAX, false, all_calls);
}

static void long_ops(void **state)
{
    (void)state;
    by_every_algorithm(2, TT_RANKS_MAX, false, every_op);
}

static void long_rows(void **state)
{
    (void)state;
    by_every_algorithm(2, TT_RANKS_MAX, false, random_calls);
}

static void long_rows_by_messages(void **state)
{
    (void)state;
    by_every_algorithm(2, TT_RANKS_MAX, true, random_calls);
}

static void long_sizes_with_many_cores(void **state)
{
    (void)state;
    counts = all_counts;
    by_every_algorithm_in(&many_cores, 3, TT_RANKS_MAX, false, all_calls);
}

static void long_rows_with_many_cores(void **state)
{
    (void)state;
    by_every_algorithm_in(&many_cores, 3, TT_RANKS_MAX, false, random_calls);
    by_every_algorithm_in(&many_fenceless, 3, 3, false, random_calls);
}

static void long_rows_with_one_core(void **state)
{
    (void)state;
    by_every_algorithm_in(&one_core, 2, 3, false, random_calls);
}

/* One of each sort of dtype and operation, small, medium and several rounds long. */
static void cells(tt_rank *t)
{
    static const int64_t sizes[] = { 1, 14, 500, 9001, 70001 };
    size_t               i;

    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        do_all_kinds(t, TUTTI_F32, sizes[i], TUTTI_SUM);
        do_all_kinds(t, TUTTI_BF16, sizes[i], TUTTI_AVG);
        do_all_kinds(t, TUTTI_F64, sizes[i], tutti_premul_sum(0.3));
        do_all_kinds(t, TUTTI_I32, sizes[i], TUTTI_MAX);
    }
}

/* Whatever was measured, sums have the bits of one kernel call over ranks 0..P-1. */
static void any_measured_machine_gives_the_same_bits(void **state)
{
    tt_rank  ranks[TT_RANKS_MAX];
    uint32_t seed = 5;
    int      i, size;

    (void)state;
    for (i = 0; i < DRAWN_MACHINES; i++) {
        const tti_machine machine = tt_drawn_machine(&seed);

        for (size = 2; size <= 4; size++)
            tt_run_on(&machine, size, i % 5 == 4, cells, ranks);
    }
}

#define ALL_FUSED                                                                                       \
    "all_reduce=fused,reduce=fused,broadcast=fused,all_gather=fused,gather=fused,scatter=fused,"        \
    "reduce_scatter=fused,all_to_all=fused,gather_v=fused,scatter_v=fused"

/* Asked for as soon as there is anything to do, whatever its size. */
static void all_calls_fused(tt_rank *t)
{
    all_calls(t);
    every_op(t);
    /* Without: calls without elements, the barriers, several segments, factors. */
    TT_CHECK(t, tti_coll_count_registered(t->coll) > t->seq / 3);
}

static void all_calls_mixed(tt_rank *t)
{
    all_calls(t);
    every_op(t);
    random_calls(t);
    TT_CHECK(t, tti_coll_count_registered(t->coll) > 0 && tti_coll_count_registered(t->coll) < t->seq * 3 / 5);
}

/* Unasked: where all have registered memory, from the second call on, and large enough. */
static void random_calls_registered(tt_rank *t)
{
    random_calls(t);
    TT_CHECK(t, tti_coll_count_registered(t->coll) >= 10);
}

static void run_on_registered_in(const tt_setting *setting, const char *wish, int size, tt_body *body)
{
    tt_rank ranks[TT_RANKS_MAX];

    if (wish != NULL)
        assert_int_equal(setenv("TUTTI_ALGO", wish, 1), 0);
    tt_run_in(setting, size, false, body, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

static void run_on_registered(const char *wish, int size, tt_body *body)
{
    const tt_setting usual = { .machine = &tti_machine_default };

    run_on_registered_in(&usual, wish, size, body);
}

static void values_on_registered_memory(void **state)
{
    int size;

    (void)state;
    counts = all_counts;
    memory = REGISTERED;
    for (size = 2; size <= TT_RANKS_MAX; size++)
        run_on_registered(ALL_FUSED, size, all_calls_fused);
    for (size = 2; size <= TT_RANKS_MAX; size++)
        run_on_registered(NULL, size, random_calls_registered);
    memory = ORDINARY;
}

/* Slices of their own for more ranks than this machine has cores, and pieces that are taken for as few. */
static void registered_memory_however_cores_are_shared(void **state)
{
    (void)state;
    counts = few_counts;
    memory = REGISTERED;
    run_on_registered_in(&many_cores, ALL_FUSED, 4, all_calls_fused);
    run_on_registered_in(&many_fenceless, NULL, 3, random_calls_registered);
    run_on_registered_in(&one_core, ALL_FUSED, 2, all_calls_fused);
    memory = ORDINARY;
}

static void values_on_memory_that_some_have_registered(void **state)
{
    (void)state;
    counts = few_counts;
    memory = MIXED;
    run_on_registered(NULL, 2, all_calls_mixed);
    run_on_registered(ALL_FUSED, 3, all_calls_mixed);
    run_on_registered(NULL, 5, all_calls_mixed);
    memory = ORDINARY;
}

/* Registered memory is no reason where something else is asked for. */
static void staged_calls(tt_rank *t)
{
    all_calls(t);
    TT_CHECK(t, tti_coll_count_registered(t->coll) == 0);
}

static void another_wish_leaves_registered_memory_alone(void **state)
{
    (void)state;
    counts = few_counts;
    memory = REGISTERED;
    run_on_registered("all_reduce=sliced,reduce=sliced,broadcast=staged,all_gather=staged,gather=staged,scatter=staged,"
                      "reduce_scatter=staged,all_to_all=staged,gather_v=staged,scatter_v=staged", 3, staged_calls);
    memory = ORDINARY;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_on_one_host),      cmocka_unit_test(values_between_hosts),
        cmocka_unit_test(ops_on_one_host),         cmocka_unit_test(ops_between_hosts),
        cmocka_unit_test(calls_follow_each_other), cmocka_unit_test(groups_come_and_go),
        cmocka_unit_test(every_algorithm_on_one_host),
        cmocka_unit_test(every_algorithm_between_hosts),
        cmocka_unit_test(every_algorithm_however_cores_are_shared),
        cmocka_unit_test(calls_follow_each_other_however_cores_are_shared),
        cmocka_unit_test(any_measured_machine_gives_the_same_bits),
        cmocka_unit_test(values_in_two_levels),
        cmocka_unit_test(ops_in_two_levels),
        cmocka_unit_test(calls_follow_each_other_in_two_levels),
        cmocka_unit_test(averages_of_large_numbers_are_not_too_large),
        cmocka_unit_test(reproducible_sums_on_several_hosts),
        cmocka_unit_test(values_on_registered_memory),
        cmocka_unit_test(registered_memory_however_cores_are_shared),
        cmocka_unit_test(values_on_memory_that_some_have_registered),
        cmocka_unit_test(another_wish_leaves_registered_memory_alone),
    };
    const struct CMUnitTest long_tests[] = {
        cmocka_unit_test(long_sizes),                 cmocka_unit_test(long_ops),
        cmocka_unit_test(long_rows),                  cmocka_unit_test(long_rows_by_messages),
        cmocka_unit_test(long_sizes_with_many_cores), cmocka_unit_test(long_rows_with_many_cores),
        cmocka_unit_test(long_rows_with_one_core),
    };

    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    if (argc > 1 && strcmp(argv[1], "--long") == 0)
        return cmocka_run_group_tests_name("coll_values, long", long_tests, NULL, NULL);
    return cmocka_run_group_tests_name("coll_values", tests, NULL, NULL);
}
