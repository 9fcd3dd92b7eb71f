/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collectives_test.c
 * Goal    every collective gives what a plain loop gives, for sizes around every boundary (nothing, one
 *         element, fewer than ranks, one round of staging, several, not divisible), several dtypes and
 *         worlds, blocking and asynchronous, over shared memory, TCP, threads and two hosts.
 * Method  element i of rank r is a small whole number, so sums are exact in every dtype and any wrong
 *         element shows. The same bits on all ranks are checked with numbers that are not exact. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

static const int64_t     sizes[] = { 0, 1, 3, 64, 1000, 4097, 65537, 300001 };
static const tutti_dtype dtypes[] = { TUTTI_F32, TUTTI_I64, TUTTI_U8, TUTTI_BF16 };

enum { N_SIZES = sizeof sizes / sizeof sizes[0], N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

static int value_of(int64_t i, int rank)
{
    return (int)((i * 3 + rank * 5) % 4);
}

/* Small whole numbers in any of the dtypes; bf16 is the upper half of an f32. */
static void put(void *data, tutti_dtype dtype, int64_t i, int value)
{
    const float f = (float)value;
    uint32_t    bits;

    switch (dtype) {
    case TUTTI_F32: ((float *)data)[i] = f; break;
    case TUTTI_I64: ((int64_t *)data)[i] = value; break;
    case TUTTI_U8: ((uint8_t *)data)[i] = (uint8_t)value; break;
    default:
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    }
}

static int take(const void *data, tutti_dtype dtype, int64_t i)
{
    uint32_t bits;
    float    f;

    switch (dtype) {
    case TUTTI_F32: return (int)((const float *)data)[i];
    case TUTTI_I64: return (int)((const int64_t *)data)[i];
    case TUTTI_U8: return ((const uint8_t *)data)[i];
    default:
        bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return (int)f;
    }
}

static tutti_span make(tt_ctx *t, int64_t count, tutti_dtype dtype, int rank)
{
    tutti_span span = tutti_span_of(tt_alloc(t, (size_t)count * tutti_dtype_size(dtype) + 1), count, dtype);
    int64_t    i;

    for (i = 0; rank >= 0 && i < count; i++)
        put(span.data, dtype, i, value_of(i, rank));
    return span;
}

static void expect_rank(tutti_span span, int rank)
{
    int64_t i;

    for (i = 0; i < span.count; i++)
        if (take(span.data, span.dtype, i) != value_of(i, rank))
            fail_msg("element %lld of %lld %s is %d, not %d", (long long)i, (long long)span.count,
                     tutti_dtype_name(span.dtype), take(span.data, span.dtype, i), value_of(i, rank));
}

static void expect_sum(tutti_span span, int size)
{
    int64_t i;
    int     rank, sum;

    for (i = 0; i < span.count; i++) {
        for (sum = 0, rank = 0; rank < size; rank++)
            sum += value_of(i, rank);
        if (take(span.data, span.dtype, i) != sum)
            fail_msg("sum %lld of %lld %s is %d, not %d", (long long)i, (long long)span.count,
                     tutti_dtype_name(span.dtype), take(span.data, span.dtype, i), sum);
    }
}

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

static void check_reductions(tt_ctx *t, int64_t count, tutti_dtype dtype, int root)
{
    tutti_span a = make(t, count, dtype, t->rank);
    tutti_span b = make(t, count, dtype, t->rank);

    OK(tutti_all_reduce(a, TUTTI_SUM, t->group));
    expect_sum(a, t->size);
    OK(tutti_reduce(b, root, TUTTI_SUM, t->group));
    if (t->rank == root)
        expect_sum(b, t->size);
    else
        expect_rank(b, t->rank); /* only read */
}

static void check_moves(tt_ctx *t, int64_t count, tutti_dtype dtype, int root)
{
    tutti_span own = make(t, count, dtype, t->rank);
    tutti_span buf = make(t, count, dtype, t->rank == root ? root : -1);
    tutti_span list[TT_RANKS_MAX];
    int        rank;

    OK(tutti_broadcast(buf, root, t->group));
    expect_rank(buf, root);

    for (rank = 0; rank < t->size; rank++)
        list[rank] = make(t, count, dtype, -1);
    OK(tutti_all_gather(list, t->size, own, t->group));
    for (rank = 0; rank < t->size; rank++)
        expect_rank(list[rank], rank);

    for (rank = 0; rank < t->size; rank++)
        list[rank] = make(t, count, dtype, -1);
    OK(tutti_gather(t->rank == root ? list : NULL, t->rank == root ? t->size : 0, own, root, t->group));
    for (rank = 0; t->rank == root && rank < t->size; rank++)
        expect_rank(list[rank], rank);

    for (rank = 0; rank < t->size; rank++)
        list[rank] = make(t, count, dtype, rank);
    buf = make(t, count, dtype, -1);
    OK(tutti_scatter(buf, t->rank == root ? list : NULL, t->rank == root ? t->size : 0, root, t->group));
    expect_rank(buf, t->rank);
}

/* Element i of part (or block) p of rank r is that of element i + 7 p of rank r. */
static void put_part(tutti_span span, int rank, int part)
{
    int64_t i;

    for (i = 0; i < span.count; i++)
        put(span.data, span.dtype, i, value_of(i + 7 * part, rank));
}

static void expect_part(tutti_span span, int rank, int part)
{
    int64_t i;

    for (i = 0; i < span.count; i++)
        if (take(span.data, span.dtype, i) != value_of(i + 7 * part, rank))
            fail_msg("element %lld of %lld %s from rank %d is %d, not %d", (long long)i, (long long)span.count,
                     tutti_dtype_name(span.dtype), rank, take(span.data, span.dtype, i),
                     value_of(i + 7 * part, rank));
}

static void expect_part_sum(tutti_span span, int size, int part)
{
    int64_t i;
    int     rank, sum;

    for (i = 0; i < span.count; i++) {
        for (sum = 0, rank = 0; rank < size; rank++)
            sum += value_of(i + 7 * part, rank);
        if (take(span.data, span.dtype, i) != sum)
            fail_msg("sum %lld of %lld %s of part %d is %d, not %d", (long long)i, (long long)span.count,
                     tutti_dtype_name(span.dtype), part, take(span.data, span.dtype, i), sum);
    }
}

static tutti_span piece(tutti_span whole, int64_t first, int64_t count)
{
    return tutti_span_of((char *)whole.data + (size_t)first * tutti_dtype_size(whole.dtype), count, whole.dtype);
}

static void check_reduce_scatter(tt_ctx *t, int64_t count, tutti_dtype dtype)
{
    tutti_span out = make(t, count, dtype, -1);
    tutti_span flat = make(t, count * t->size, dtype, -1);
    tutti_span list[TT_RANKS_MAX];
    int        r;

    for (r = 0; r < t->size; r++)
        put_part(list[r] = piece(flat, r * count, count), t->rank, r);
    OK(tutti_reduce_scatter(out, list, t->size, TUTTI_SUM, t->group));
    expect_part_sum(out, t->size, t->rank);
    OK(tutti_reduce_scatter_tensor(list[t->rank], flat, TUTTI_SUM, t->group)); /* in place */
    for (r = 0; r < t->size; r++)
        if (r == t->rank)
            expect_part_sum(list[r], t->size, r);
        else
            expect_part(list[r], t->rank, r);
    for (r = 0; r < t->size; r++) {
        list[r] = piece(flat, r * count, count * (r % 3) / 2); /* parts of other sizes, some empty */
        put_part(list[r], t->rank, r);
    }
    out.count = list[t->rank].count;
    OK(tutti_reduce_scatter(out, list, t->size, TUTTI_SUM, t->group));
    expect_part_sum(out, t->size, t->rank);
}

/* Elements that one rank gives another: no relation to what it gets back, many are none. */
static int64_t block_count(int64_t count, int from, int to)
{
    return count * ((from * 5 + to * 3) % 4) / 3;
}

static void check_all_to_all(tt_ctx *t, int64_t count, tutti_dtype dtype)
{
    tutti_span in = make(t, count * t->size, dtype, -1);
    tutti_span out = make(t, count * t->size, dtype, -1);
    tutti_span ins[TT_RANKS_MAX], outs[TT_RANKS_MAX];
    int64_t    in_splits[TT_RANKS_MAX], out_splits[TT_RANKS_MAX];
    int64_t    given = 0, taken = 0;
    int        r;

    for (r = 0; r < t->size; r++)
        put_part(piece(in, r * count, count), t->rank, r);
    OK(tutti_all_to_all_single(out, in, NULL, NULL, t->group));
    for (r = 0; r < t->size; r++)
        expect_part(piece(out, r * count, count), r, t->rank);

    for (r = 0; r < t->size; r++) {
        in_splits[r] = block_count(count, t->rank, r);
        out_splits[r] = block_count(count, r, t->rank);
        put_part(ins[r] = piece(in, given, in_splits[r]), t->rank, r);
        outs[r] = piece(out, taken, out_splits[r]);
        given += in_splits[r];
        taken += out_splits[r];
    }
    OK(tutti_all_to_all_single(piece(out, 0, taken), piece(in, 0, given), out_splits, in_splits, t->group));
    for (r = 0; r < t->size; r++)
        expect_part(outs[r], r, t->rank);
    memset(out.data, 0x5a, (size_t)out.count * tutti_dtype_size(dtype));
    outs[t->rank] = ins[t->rank]; /* the own block stays where it is */
    OK(tutti_all_to_all(outs, t->size, ins, t->size, t->group));
    for (r = 0; r < t->size; r++)
        expect_part(outs[r], r, t->rank);
}

static void every_size_and_dtype(tt_ctx *t)
{
    int s, d;

    for (s = 0; s < N_SIZES; s++)
        for (d = 0; d < N_DTYPES; d++) {
            const int root = (s + d) % t->size;

            check_reductions(t, sizes[s], dtypes[d], root);
            check_moves(t, sizes[s], dtypes[d], root);
            check_reduce_scatter(t, sizes[s], dtypes[d]);
            check_all_to_all(t, sizes[s], dtypes[d]);
            OK(tutti_barrier(t->group));
        }
}

static void a_few_sizes(tt_ctx *t)
{
    const int64_t few[] = { 0, 3, 1000, 65537 };
    size_t        s;

    for (s = 0; s < sizeof few / sizeof few[0]; s++) {
        check_reductions(t, few[s], TUTTI_F32, (int)s % t->size);
        check_moves(t, few[s], TUTTI_F32, (int)s % t->size);
        check_reduce_scatter(t, few[s], TUTTI_F32);
        check_all_to_all(t, few[s], TUTTI_F32);
        OK(tutti_barrier(t->group));
    }
}

/* Several operations under way at once, waited for out of order. */
static void asynchronous_calls_keep_their_order(tt_ctx *t)
{
    enum { N_WORKS = 12 };
    tutti_work *works[N_WORKS];
    tutti_span  bufs[N_WORKS];
    int         i;

    for (i = 0; i < N_WORKS; i++) {
        bufs[i] = make(t, 1000 + i, TUTTI_F32, t->rank);
        OK(tutti_all_reduce_async(bufs[i], TUTTI_SUM, t->group, &works[i]));
    }
    for (i = N_WORKS - 1; i >= 0; i -= 2)
        OK(tutti_work_wait(works[i]));
    OK(tutti_barrier(t->group));
    for (i = 0; i < N_WORKS; i++) {
        assert_true(tutti_work_is_completed(works[i]));
        OK(tutti_work_wait(works[i]));
        tutti_work_free(works[i]);
        expect_sum(bufs[i], t->size);
    }
}

/* The sum of element i over ranks [from, to). */
static float sum_over(const float *all, int64_t count, int64_t i, int from, int to)
{
    float sum = all[from * count + i];
    int   rank;

    for (rank = from + 1; rank < to; rank++)
        sum += all[rank * count + i];
    return sum;
}

/* Inexact numbers: whatever order is taken, it is one order for all ranks, and for shm and TCP alike. On several hosts
 * their ranks are summed first; `first_host` of them are on the first. */
static void same_bits(tt_ctx *t, int first_host)
{
    const int64_t count = 70001;
    float        *x = tt_floats(t, (size_t)count, 0.0f);
    float        *mine = tt_floats(t, (size_t)count, 0.0f);
    float        *all = tt_floats(t, (size_t)count * (size_t)t->size, 0.0f);
    float        *scattered = tt_floats(t, (size_t)count, 0.0f);
    tutti_span    parts[TT_RANKS_MAX];
    int64_t       i;
    int           rank;

    for (i = 0; i < count; i++)
        mine[i] = x[i] = 1.0f / (float)(1 + (i * 7 + t->rank * 13) % 1001);
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(all, count * t->size), TUTTI_SPAN(mine, count), t->group));
    for (rank = 0; rank < t->size; rank++)
        parts[rank] = TUTTI_SPAN(mine, count); /* the same for everybody: each gets all_reduce's result */
    OK(tutti_reduce_scatter(TUTTI_SPAN(scattered, count), parts, t->size, TUTTI_SUM, t->group));
    OK(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group));
    if (memcmp(scattered, x, (size_t)count * sizeof *x) != 0)
        fail_msg("reduce_scatter has other bits than all_reduce");
    for (i = 0; i < count; i++) {
        float sum = sum_over(all, count, i, 0, first_host);

        if (first_host < t->size)
            sum += sum_over(all, count, i, first_host, t->size);
        if (memcmp(&sum, &x[i], sizeof sum) != 0)
            fail_msg("element %lld is not the sum in the promised order", (long long)i);
    }
}

static void the_same_bits_everywhere(tt_ctx *t)
{
    same_bits(t, t->size);
}

static void the_same_bits_on_two_hosts(tt_ctx *t)
{
    same_bits(t, t->size / 2);
}

static void operations_are_what_they_say(tt_ctx *t)
{
    double  d = t->rank + 1.0;
    int32_t n = 1 << t->rank;
    float   f = 2.0f;
    bool    b = t->rank == 1;

    OK(tutti_all_reduce(TUTTI_SPAN(&d, 1), TUTTI_MAX, t->group));
    assert_true(d == t->size);
    d = t->rank + 1.0;
    OK(tutti_all_reduce(TUTTI_SPAN(&d, 1), TUTTI_AVG, t->group));
    assert_true(d == (t->size + 1.0) / 2.0);
    OK(tutti_all_reduce(TUTTI_SPAN(&n, 1), TUTTI_BOR, t->group));
    assert_int_equal(n, (1 << t->size) - 1);
    OK(tutti_all_reduce(TUTTI_SPAN(&f, 1), tutti_premul_sum(t->rank + 1.0), t->group));
    assert_true(f == (float)(t->size * (t->size + 1)));
    OK(tutti_all_reduce(TUTTI_SPAN(&b, 1), TUTTI_SUM, t->group));
    assert_true(b);
}

/* The arrays are gone when an asynchronous call returns; several exchanges are under way at once. */
static void asynchronous_exchanges_keep_their_arrays(tt_ctx *t)
{
    enum { N_WORKS = 6, COUNT = 5000 };
    tutti_work *works[N_WORKS];
    tutti_span  outs[N_WORKS][TT_RANKS_MAX];
    int         i, r;

    for (i = 0; i < N_WORKS; i++) {
        tutti_span ins[TT_RANKS_MAX], places[TT_RANKS_MAX];

        for (r = 0; r < t->size; r++) {
            put_part(ins[r] = make(t, COUNT + i, TUTTI_F32, -1), t->rank, r);
            places[r] = outs[i][r] = make(t, COUNT + i, TUTTI_F32, -1);
        }
        OK(i % 2 ? tutti_all_to_all_async(places, t->size, ins, t->size, t->group, &works[i])
                 : tutti_reduce_scatter_async(places[t->rank], ins, t->size, TUTTI_SUM, t->group, &works[i]));
        memset(ins, 0, sizeof ins);
        memset(places, 0, sizeof places);
    }
    for (i = N_WORKS - 1; i >= 0; i--) {
        OK(tutti_work_wait(works[i]));
        tutti_work_free(works[i]);
        if (i % 2 == 0)
            expect_part_sum(outs[i][t->rank], t->size, t->rank);
        for (r = 0; r < t->size && i % 2; r++)
            expect_part(outs[i][r], r, t->rank);
    }
}

/* Rank 0 gives rank 1 seven elements, which expects eight: nobody hangs, nothing is written behind the
 * eighth, and the text has all four numbers. */
static void sizes_that_do_not_fit_are_an_error(tt_ctx *t)
{
    int64_t      in_splits[TT_RANKS_MAX], out_splits[TT_RANKS_MAX], given = 0, taken = 0;
    tutti_span   in = make(t, 8 * t->size, TUTTI_I64, 0), out = make(t, 8 * t->size, TUTTI_I64, -1);
    tutti_status st;
    int          r;

    for (r = 0; r < t->size; r++) {
        given += in_splits[r] = t->rank == 0 && r == 1 ? 7 : 8;
        taken += out_splits[r] = 8;
    }
    st = tutti_all_to_all_single(piece(out, 0, taken), piece(in, 0, given), out_splits, in_splits, t->group);
    if (st != TUTTI_E_MISMATCH && t->rank > 1)
        st = tutti_barrier(t->group); /* it had all it needed before it heard of it */
    assert_int_equal(st, TUTTI_E_MISMATCH);
    if (strstr(tutti_last_error(), "rank 0 gives rank 1 7 elements, which expects 8") == NULL &&
        strstr(tutti_last_error(), "E_MISMATCH") == NULL)
        fail_msg("neither the cause nor who reported it is in: %s", tutti_last_error());
    assert_int_equal(tutti_barrier(t->group), TUTTI_E_MISMATCH); /* the group is finished */
}

static void groups_do_not_disturb_each_other(tt_ctx *t)
{
    const int    even[] = { 2, 0 }, odd[] = { 1, 3 };
    tutti_group *mine = NULL, *other = NULL, *all = NULL;
    float        x = (float)(t->rank + 1);

    OK(tutti_new_group(even, 2, NULL, t->rank % 2 == 0 ? &mine : &other));
    OK(tutti_new_group(odd, 2, NULL, t->rank % 2 == 1 ? &mine : &other));
    OK(tutti_new_group(NULL, 0, NULL, &all));
    assert_ptr_equal(other, TUTTI_NON_MEMBER);
    assert_int_equal(tutti_get_rank(mine), t->rank / 2);
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, mine));
    assert_true(x == (t->rank % 2 == 0 ? 4.0f : 6.0f));
    OK(tutti_broadcast(TUTTI_SPAN(&x, 1), t->rank % 2 == 0 ? 2 : 3, mine)); /* global ranks */
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, all));
    assert_true(x == 20.0f);
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, other)); /* warns, touches nothing */
    assert_true(x == 20.0f);
    OK(tutti_destroy_process_group(mine));
    OK(tutti_barrier(all));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_size_and_dtype, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(every_size_and_dtype, .ranks = 3, .transports = "shm,tcp", .limit_ms = 90000),
        TT_TEST(a_few_sizes, .ranks = 1, .transports = "shm"),
        TT_TEST(a_few_sizes, .ranks = 5, .transports = "shm,tcp,threads,threads-tcp", .limit_ms = 60000),
        TT_TEST(a_few_sizes, .ranks = 8, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(a_few_sizes, .ranks = 2, .hosts = 2, .limit_ms = 60000),
        TT_TEST(a_few_sizes, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(a_few_sizes, .name = "a_few_sizes_with_tls", .ranks = 4, .hosts = 2, .tls = true, .limit_ms = 60000),
        TT_TEST(asynchronous_calls_keep_their_order, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(the_same_bits_everywhere, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(the_same_bits_on_two_hosts, .ranks = 4, .hosts = 2),
        TT_TEST(operations_are_what_they_say, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(asynchronous_exchanges_keep_their_arrays, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(sizes_that_do_not_fit_are_an_error, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(sizes_that_do_not_fit_are_an_error, .ranks = 4, .hosts = 2),
        TT_TEST(groups_do_not_disturb_each_other, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(groups_do_not_disturb_each_other, .ranks = 4, .hosts = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
