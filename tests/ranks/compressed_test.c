/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compressed_test.c
 * Goal    sums of 8 bits are what their header says, within its bound, the same bits on all ranks, blocking or not, among
 *         other operations; sums without zero blocks have the bits of dense ones; ranks that want different things
 *         hear of it with a name and go on; a rank that dies is named, and nobody hangs.
 * Method  drawn numbers that every rank can make of all ranks; the quantised sum once more by plain scalar code; digests of
 *         results gathered. In shared memory, over TCP, and with ranks as threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)
#define REFUSED(call, st, word)                                                                        \
    do {                                                                                               \
        assert_int_equal((call), (st));                                                                \
        if (strstr(tutti_last_error(), (word)) == NULL)                                                \
            fail_msg("%s: no '%s' in: %s", #call, (word), tutti_last_error());                         \
    } while (0)

enum { BLOCK = 256, MANY = 700001 };

/* Number i of a rank: all ranks can make it. Sizes differ from block to block. */
static float number(int rank, int64_t i)
{
    uint64_t h = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(rank + 1) * 0xbf58476d1ce4e5b9u;

    h = (h ^ h >> 31) * 0x94d049bb133111ebu;
    return ldexpf((float)((int64_t)(h >> 40) - (1 << 23)), (int)(i / BLOCK % 9) - 25);
}

static float *numbers_of(tt_ctx *t, int rank, int64_t count)
{
    float  *x = tt_alloc(t, (size_t)count * sizeof *x + 1);
    int64_t i;

    for (i = 0; i < count; i++)
        x[i] = number(rank, i);
    return x;
}

/* All ranks have these bytes. */
static void expect_same(tt_ctx *t, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t            *all = tt_alloc(t, (size_t)t->size * sizeof *all), print = 0xcbf29ce484222325u;
    size_t               i;
    int                  r;

    for (i = 0; i < bytes; i++)
        print = (print ^ p[i]) * 0x100000001b3u;
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(all, t->size), TUTTI_SPAN(&print, 1), t->group));
    for (r = 0; r < t->size; r++)
        assert_int_equal(all[r], print);
}

/* ---- 8 bits ---- */

/* n numbers of a block become what they come back as. */
static void round_block(float *x, int64_t n)
{
    float   most = 0.0f, scale, by;
    int64_t i;

    for (i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    if (most < 0x1p-119f) {
        memset(x, 0, (size_t)n * sizeof *x);
        return;
    }
    scale = most / 127.0f;
    by = 127.0f / most;
    for (i = 0; i < n; i++)
        x[i] = (float)lrintf(x[i] * by) * scale;
}

static int owner_of(int64_t block, int64_t n_blocks, int n_ranks)
{
    int r = 0;

    while (n_blocks / n_ranks * (r + 1) + n_blocks % n_ranks * (r + 1) / n_ranks <= block)
        r++;
    return r;
}

/* The sum as tutti/compressed.h tells it. */
static float *sum_slowly(tt_ctx *t, int64_t count, bool average)
{
    const int64_t n_blocks = (count + BLOCK - 1) / BLOCK;
    float        *sum = tt_alloc(t, (size_t)count * sizeof *sum + 1), x[BLOCK];
    int64_t       b, i, n;
    int           r;

    for (b = 0; b < n_blocks; b++) {
        n = count - b * BLOCK < BLOCK ? count - b * BLOCK : BLOCK;
        for (r = 0; r < t->size; r++) {
            for (i = 0; i < n; i++)
                x[i] = number(r, b * BLOCK + i);
            if (owner_of(b, n_blocks, t->size) != r)
                round_block(x, n);
            for (i = 0; i < n; i++)
                sum[b * BLOCK + i] = r == 0 ? x[i] : sum[b * BLOCK + i] + x[i];
        }
        for (i = 0; i < n && average; i++)
            sum[b * BLOCK + i] /= (float)t->size;
        round_block(sum + b * BLOCK, n);
    }
    return sum;
}

static const int64_t counts[] = { 0, 1, 255, 256, 257, 1000, 5000, MANY };

static void sums_are_as_told(tt_ctx *t)
{
    size_t c;
    int    average;

    for (c = 0; c < sizeof counts / sizeof *counts; c++)
        for (average = 0; average < 2; average++) {
            float *x = numbers_of(t, t->rank, counts[c]);

            OK(tutti_all_reduce_quantized(TUTTI_SPAN(x, counts[c]), average ? TUTTI_AVG : TUTTI_SUM, NULL, t->group));
            if (t->size > 1)
                assert_memory_equal(x, sum_slowly(t, counts[c], average), (size_t)counts[c] * sizeof *x);
        }
}

static float half_to_float(uint16_t code, tutti_dtype dtype)
{
    uint32_t bits = (uint32_t)code << 16;
    float    x;

    if (dtype == TUTTI_F16) /* whole numbers below 2048 only */
        return ldexpf((float)(1024 + (code & 1023)), (code >> 10 & 31) - 25) * (code >> 15 != 0 ? -1.0f : 1.0f);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every number is within the bound of the true sum, and 1/32 for rounding to 16 bits. */
static void sixteen_bits_are_near(tt_ctx *t)
{
    static const tutti_dtype  dtypes[] = { TUTTI_F16, TUTTI_BF16 };
    static const uint16_t     ones[] = { 0x3c00, 0x3f80 };
    const int64_t             count = 9001;
    tutti_quantize_options    opts = TUTTI_QUANTIZE_OPTIONS;
    uint16_t                 *x = tt_alloc(t, (size_t)count * sizeof *x);
    size_t                    d;
    int64_t                   i;

    opts.block = 64;
    for (d = 0; d < 2; d++) {
        for (i = 0; i < count; i++) /* 1.0 to 1.99 by the lowest bits, and signs that all ranks have */
            x[i] = (uint16_t)((ones[d] + (i + t->rank) % 100) | (i % 3 == 0 ? 0x8000 : 0));
        OK(tutti_all_reduce_quantized(tutti_span_of(x, count, dtypes[d]), TUTTI_AVG, &opts, t->group));
        expect_same(t, x, (size_t)count * sizeof *x);
        for (i = 0; i < count; i++) {
            float want = 0.0f;
            int   r;

            for (r = 0; r < t->size; r++)
                want += half_to_float((uint16_t)((ones[d] + (i + r) % 100) | (i % 3 == 0 ? 0x8000 : 0)), dtypes[d]) /
                        (float)t->size;
            assert_true(fabsf(half_to_float(x[i], dtypes[d]) - want) < 2.0f * 2.0f / 254 + 1.0f / 32);
        }
    }
}

static void what_is_not_finite_is_seen_by_all(tt_ctx *t)
{
    const int64_t count = 20 * BLOCK;
    float        *x = numbers_of(t, t->rank, count);
    int64_t       i;

    if (t->rank == t->size - 1) {
        x[3 * BLOCK + 5] = NAN;
        x[12 * BLOCK] = INFINITY;
    }
    x[17 * BLOCK + 1] = 3e38f; /* the sum is beyond f32 */
    OK(tutti_all_reduce_quantized(TUTTI_SPAN(x, count), TUTTI_SUM, NULL, t->group));
    expect_same(t, x, (size_t)count * sizeof *x);
    for (i = 0; i < count; i++)
        assert_int_equal(isnan(x[i]) != 0, i / BLOCK == 3 || i / BLOCK == 12 || i / BLOCK == 17);
}

/* A sum that f32 holds is no reason to give its block up: what f16 cannot hold is infinite, and the others are numbers. */
static void a_sum_beyond_f16_is_infinite_alone(tt_ctx *t)
{
    enum { AT = 5, INFINITE = 0x7c00, LARGE = 0x7b53 }; /* 60000 */
    uint16_t *x = tt_alloc(t, 2 * BLOCK * sizeof *x);
    int       i;

    for (i = 0; i < 2 * BLOCK; i++)
        x[i] = i == AT ? LARGE : 0x3c00;
    OK(tutti_all_reduce_quantized(tutti_span_of(x, 2 * BLOCK, TUTTI_F16), TUTTI_SUM, NULL, t->group));
    expect_same(t, x, 2 * BLOCK * sizeof *x);
    assert_int_equal(x[AT], INFINITE);
    for (i = 0; i < 2 * BLOCK; i++)
        assert_int_equal((x[i] & INFINITE) == INFINITE, i == AT);
}

/* With feedback the mean of many calls comes near to the true one; without, it stays off. */
static void errors_are_fed_back(tt_ctx *t)
{
    enum { COUNT = 3000, CALLS = 200 };
    tutti_quantize_options opts = TUTTI_QUANTIZE_OPTIONS;
    float                 *x = tt_alloc(t, COUNT * sizeof *x);
    double                *mean = tt_alloc(t, COUNT * sizeof *mean), off[2] = { 0 };
    int                    fed, k, i, r;

    for (fed = 0; fed < 2; fed++) {
        opts.error = fed ? tt_floats(t, COUNT, 0.0f) : NULL;
        memset(mean, 0, COUNT * sizeof *mean);
        for (k = 0; k < CALLS; k++) {
            for (i = 0; i < COUNT; i++)
                x[i] = number(t->rank, i);
            OK(tutti_all_reduce_quantized(TUTTI_SPAN(x, COUNT), TUTTI_AVG, &opts, t->group));
            expect_same(t, x, COUNT * sizeof *x);
            for (i = 0; i < COUNT; i++)
                mean[i] += x[i] / (double)CALLS;
        }
        for (i = 0; i < COUNT; i++) {
            double want = 0;

            for (r = 0; r < t->size; r++)
                want += number(r, i) / (double)t->size;
            off[fed] += (mean[i] - want) * (mean[i] - want);
        }
    }
    assert_true(off[0] > 0);
    assert_true(off[1] < off[0] / 400);
}

/* Asynchronous ones, between dense ones that are not waited for either, end in order and right. */
static void works_keep_their_order(tt_ctx *t)
{
    enum { COUNT = 60001, WORKS = 4 };
    const float *want = sum_slowly(t, COUNT, false);
    float       *x[WORKS], *dense[WORKS];
    tutti_work  *works[2 * WORKS];
    uint64_t     before = tutti_get_sequence_number(t->group);
    tutti_span   result;
    int          k, r, n_result = 0;

    for (k = 0; k < WORKS; k++) {
        tutti_quantize_options opts = TUTTI_QUANTIZE_OPTIONS; /* gone before the work ends */

        x[k] = numbers_of(t, t->rank, COUNT);
        dense[k] = tt_floats(t, COUNT, (float)(t->rank + k));
        OK(tutti_all_reduce_quantized_async(TUTTI_SPAN(x[k], COUNT), TUTTI_SUM, &opts, t->group, &works[2 * k]));
        OK(tutti_all_reduce_async(TUTTI_SPAN(dense[k], COUNT), TUTTI_SUM, t->group, &works[2 * k + 1]));
    }
    assert_int_equal(tutti_get_sequence_number(t->group), before + 3 * WORKS);
    assert_non_null(strstr(tutti_work_name(works[0]), "all_reduce_quantized"));
    OK(tutti_work_wait(works[0]));
    OK(tutti_work_result(works[0], &result, 1, &n_result));
    assert_true(n_result == 1 && result.data == x[0] && result.count == COUNT);
    for (k = 2 * WORKS - 1; k >= 0; k--) {
        OK(tutti_work_wait(works[k]));
        tutti_work_free(works[k]);
    }
    for (k = 0; k < WORKS; k++) {
        assert_memory_equal(x[k], want, COUNT * sizeof **x);
        for (r = 0; r < COUNT; r++)
            assert_true(dense[k][r] == (float)(t->size * (t->size - 1) / 2 + t->size * k));
    }
}

static void wrong_calls_are_refused(tt_ctx *t)
{
    float                      x[300] = { 0 };
    double                     d[4] = { 0 };
    int32_t                    n[4] = { 0 };
    tutti_quantize_options     q = TUTTI_QUANTIZE_OPTIONS;
    tutti_block_sparse_options s = TUTTI_BLOCK_SPARSE_OPTIONS;
    tutti_work                *work = NULL;

    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(d, 4), TUTTI_SUM, NULL, t->group), TUTTI_E_ARG, "f64");
    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, 300), TUTTI_MAX, NULL, t->group), TUTTI_E_ARG, "'max'");
    q.block = 100;
    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, 300), TUTTI_SUM, &q, t->group), TUTTI_E_ARG, "100");
    q.size = 0;
    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, 300), TUTTI_SUM, &q, t->group), TUTTI_E_ARG, "OPTIONS");
    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN((float *)NULL, 3), TUTTI_SUM, NULL, t->group), TUTTI_E_ARG, "buf");
    REFUSED(tutti_all_reduce_quantized_async(TUTTI_SPAN(x, 3), TUTTI_SUM, NULL, t->group, NULL), TUTTI_E_ARG, "work_out");
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(n, 4), TUTTI_SUM, NULL, t->group), TUTTI_E_ARG, "i32");
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, 4), TUTTI_MIN, NULL, t->group), TUTTI_E_ARG, "'min'");
    s.block = 31;
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, 4), TUTTI_SUM, &s, t->group), TUTTI_E_ARG, "31");
    s.block = 0;
    s.dense_above = 1.5;
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, 4), TUTTI_SUM, &s, t->group), TUTTI_E_ARG, "1.5");
    OK(tutti_all_reduce_quantized_async(TUTTI_SPAN(x, 3), TUTTI_SUM, NULL, TUTTI_NON_MEMBER, &work));
    OK(tutti_work_wait(work));
    tutti_work_free(work);
}

/* ---- ranks that want different things ---- */

static void differences_are_named_and_the_group_goes_on(tt_ctx *t)
{
    const bool                 odd = t->rank == t->size - 1;
    float                     *x = tt_floats(t, 4096, 1.0f);
    tutti_quantize_options     q = TUTTI_QUANTIZE_OPTIONS;
    tutti_block_sparse_options s = TUTTI_BLOCK_SPARSE_OPTIONS;
    char                       name[32];
    int                        i;

    snprintf(name, sizeof name, "rank %d has another", t->size - 1);
    q.block = odd ? 512 : 128;
    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, 4096), TUTTI_SUM, &q, t->group), TUTTI_E_MISMATCH, name);
    assert_non_null(strstr(tutti_last_error(), "block"));
    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, odd ? 4096 : 4000), TUTTI_SUM, NULL, t->group), TUTTI_E_MISMATCH,
            "count");
    REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, 4096), odd ? TUTTI_SUM : TUTTI_AVG, NULL, t->group),
            TUTTI_E_MISMATCH, "operation");
    assert_non_null(strstr(tutti_last_error(), " f32, sum, in blocks"));
    assert_non_null(strstr(tutti_last_error(), " f32, avg, in blocks"));
    s.block = odd ? 250 : 256; /* as many bits */
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, 4000), TUTTI_SUM, &s, t->group), TUTTI_E_MISMATCH, name);
    s.block = odd ? 32 : 256; /* one word of bits, and two */
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, 4096), TUTTI_SUM, &s, t->group), TUTTI_E_MISMATCH, name);
    assert_non_null(strstr(tutti_last_error(), "another block than"));
    s.block = 0;
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, odd ? 0 : 4096), TUTTI_SUM, &s, t->group), TUTTI_E_MISMATCH, name);
    assert_non_null(strstr(tutti_last_error(), "another count than"));
    s.block = 0;
    s.dense_above = odd ? 0.5 : 0.6;
    REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, 4000), TUTTI_SUM, &s, t->group), TUTTI_E_MISMATCH, "dense");
    assert_non_null(strstr(tutti_last_error(), "dense above 0.5"));
    assert_non_null(strstr(tutti_last_error(), "dense above 0.6"));
    for (i = 0; i < 4096; i++)
        assert_true(x[i] == 1.0f);
    OK(tutti_all_reduce_quantized(TUTTI_SPAN(x, 4096), TUTTI_SUM, NULL, t->group));
    for (i = 0; i < 4096; i++)
        assert_true(fabsf(x[i] - (float)t->size) < 1e-4f);
}

/* Bits go in one piece up to 3968 blocks, and in two from there on: sums there, and one rank on the other side. */
static void bits_in_one_piece_and_in_two(tt_ctx *t)
{
    enum { SHORT = 32, LAST_OF_ONE = 3968, MOST = 8100 };
    static const int           blocks[] = { LAST_OF_ONE - 1, LAST_OF_ONE, LAST_OF_ONE + 1, LAST_OF_ONE + 64, MOST };
    const bool                 odd = t->rank == t->size - 1;
    float                     *x = tt_floats(t, MOST * SHORT, 0.0f);
    tutti_block_sparse_options s = TUTTI_BLOCK_SPARSE_OPTIONS;
    int64_t                    sent = 0;
    size_t                     b;
    int                        i;

    s.block = SHORT;
    s.sent = &sent;
    for (b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
        const int n = blocks[b] * SHORT;

        memset(x, 0, (size_t)MOST * SHORT * sizeof *x);
        x[5] = 1.0f;
        x[n / 2] = 1.0f;
        x[n - 1] = 1.0f;
        OK(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, n), TUTTI_SUM, &s, t->group));
        assert_int_equal(sent, 3);
        for (i = 0; i < n; i++)
            assert_true(x[i] == (i == 5 || i == n / 2 || i == n - 1 ? (float)t->size : 0.0f));
        if (t->size > 1)
            REFUSED(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, odd ? 4 : n), TUTTI_SUM, &s, t->group), TUTTI_E_MISMATCH, "count");
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they need the addresses */
static rlim_t pages_now(void)
{
    FILE         *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    return pages;
}

/* The last rank may have 1 MiB more than it has, which is less than what a large sum works in. */
static void a_rank_without_memory_tells_the_others(tt_ctx *t)
{
    enum { COUNT = 4 << 20 };
    const bool    short_of = t->rank == t->size - 1;
    const rlim_t  page = (rlim_t)sysconf(_SC_PAGESIZE);
    float        *x = numbers_of(t, t->rank, COUNT);
    struct rlimit before, tight;

    OK(tutti_barrier(t->group));
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (pages_now() + (1 << 20) / page) * page;
    if (short_of)
        assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    if (short_of)
        REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, COUNT), TUTTI_SUM, NULL, t->group), TUTTI_E_NOMEM, "memory");
    else
        REFUSED(tutti_all_reduce_quantized(TUTTI_SPAN(x, COUNT), TUTTI_SUM, NULL, t->group), TUTTI_E_REMOTE, "rank 2");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(x[COUNT / 2] == number(t->rank, COUNT / 2));
    OK(tutti_all_reduce_quantized(TUTTI_SPAN(x, COUNT), TUTTI_SUM, NULL, t->group));
    expect_same(t, x, COUNT * sizeof *x);
}
#endif

/* ---- blocks of zeros ---- */

/* Of a block of numbers, whether a rank has something in it: some blocks nobody, some one rank, some all. */
static bool has_block(int rank, int64_t block)
{
    return block % 7 == rank || block % 11 == 3;
}

static void fill(tutti_span buf, int rank, int64_t block, bool negative_zeros)
{
    const size_t size = tutti_dtype_size(buf.dtype);
    int64_t      i;

    memset(buf.data, 0, (size_t)buf.count * size);
    for (i = 0; i < buf.count; i++) {
        unsigned char *p = (unsigned char *)buf.data + (size_t)i * size;
        const float    x = number(rank, i);
        const double   wide = x;

        if (!has_block(rank, i / block)) {
            if (negative_zeros && i % 5 == 0)
                p[size - 1] = 0x80;
        } else if (buf.dtype == TUTTI_F64) {
            memcpy(p, &wide, sizeof wide);
        } else if (buf.dtype == TUTTI_F32) {
            memcpy(p, &x, sizeof x);
        } else { /* any bits of small f16 or bf16, -0.0 among them */
            const uint16_t half = (uint16_t)(i % 9 == 4 ? 0x8000 : 0x3000 + i % 700);

            memcpy(p, &half, sizeof half);
        }
    }
}

static void check_sparse(tt_ctx *t, tutti_dtype dtype, int64_t count, int block, tutti_op op, double dense_above)
{
    const size_t               bytes = (size_t)count * tutti_dtype_size(dtype);
    const tutti_span           dense = tutti_span_of(tt_alloc(t, bytes + 1), count, dtype);
    const tutti_span           mine = tutti_span_of(tt_alloc(t, bytes + 1), count, dtype);
    tutti_block_sparse_options opts = TUTTI_BLOCK_SPARSE_OPTIONS;
    const int64_t              n_blocks = (count + block - 1) / block;
    int64_t                    sent = -1, want = 0, b;
    int                        r;

    for (b = 0; b < n_blocks; b++) {
        bool any = false;

        for (r = 0; r < t->size; r++)
            any = any || has_block(r, b);
        want += any;
    }
    opts.block = block;
    opts.dense_above = dense_above;
    opts.sent = &sent;
    fill(dense, t->rank, block, t->rank == 0 && t->size > 1); /* 0.0 + -0.0 is 0.0 */
    fill(mine, t->rank, block, t->rank == 0 && t->size > 1);
    OK(tutti_all_reduce(dense, op, t->group));
    OK(tutti_all_reduce_block_sparse(mine, op, &opts, t->group));
    assert_memory_equal(mine.data, dense.data, bytes);
    assert_int_equal(sent, (double)want > dense_above * (double)n_blocks ? n_blocks : want);
}

static void sparse_sums_have_the_bits_of_dense_ones(tt_ctx *t)
{
    static const tutti_dtype dtypes[] = { TUTTI_F32, TUTTI_F64, TUTTI_F16, TUTTI_BF16 };
    static const int64_t     sizes[] = { 0, 1, 40, 8000, 300001 };
    size_t                   d, c;

    for (d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (c = 0; c < sizeof sizes / sizeof *sizes; c++) {
            check_sparse(t, dtypes[d], sizes[c], 256, TUTTI_SUM, 1.0);
            check_sparse(t, dtypes[d], sizes[c], 33, TUTTI_AVG, 1.0);
            check_sparse(t, dtypes[d], sizes[c], 256, TUTTI_SUM, 0.05);
        }
}

static void zeros_of_all_ranks_are_plain(tt_ctx *t)
{
    enum { COUNT = 1000 };
    float       *x = tt_floats(t, COUNT, -0.0f);
    tutti_work  *work = NULL;
    const float *zeros = tt_floats(t, COUNT, 0.0f);

    OK(tutti_all_reduce_block_sparse_async(TUTTI_SPAN(x, COUNT), TUTTI_SUM, NULL, t->group, &work));
    OK(tutti_work_wait(work));
    tutti_work_free(work);
    assert_memory_equal(x, zeros, COUNT * sizeof *x);
}

/* NaN is something. */
static void nan_is_sent(tt_ctx *t)
{
    enum { COUNT = 2048 };
    float *x = tt_floats(t, COUNT, 0.0f);
    int    i;

    if (t->rank == t->size - 1)
        x[1000] = NAN;
    OK(tutti_all_reduce_block_sparse(TUTTI_SPAN(x, COUNT), TUTTI_SUM, NULL, t->group));
    for (i = 0; i < COUNT; i++)
        assert_true(i == 1000 ? isnan(x[i]) : x[i] == 0.0f);
}

/* ---- what hooks see, and the end of things ---- */

typedef struct seen {
    int pre, done;
} seen;

static void on_event(const tutti_op_event *event, void *ctx)
{
    seen *s = ctx;

    assert_string_equal(event->op, "all_reduce_quantized");
    assert_int_equal(event->n_ins, 1);
    assert_int_equal(event->n_outs, 1);
    s->pre += event->hook == TUTTI_HOOK_PRE;
    s->done += event->hook == TUTTI_HOOK_COMPLETION;
}

static void hooks_see_one_operation(tt_ctx *t)
{
    float      *x = tt_floats(t, 5000, 1.0f);
    seen        s = { 0 };
    tutti_work *work = NULL;
    int         ids[2];

    OK(tutti_register_hook(t->group, TUTTI_HOOK_PRE, on_event, &s, &ids[0]));
    OK(tutti_register_hook(t->group, TUTTI_HOOK_COMPLETION, on_event, &s, &ids[1]));
    OK(tutti_all_reduce_quantized(TUTTI_SPAN(x, 5000), TUTTI_SUM, NULL, t->group));
    assert_int_equal(s.pre, 1);
    assert_int_equal(s.done, 1);
    OK(tutti_all_reduce_quantized_async(TUTTI_SPAN(x, 5000), TUTTI_SUM, NULL, t->group, &work));
    OK(tutti_work_wait(work));
    tutti_work_free(work);
    assert_int_equal(s.pre, 2);
    OK(tutti_remove_hook(t->group, ids[0]));
    OK(tutti_remove_hook(t->group, ids[1]));
}

/* Rank 1 is gone after the ranks agreed, or before: whoever is left hears of it. */
static void a_rank_that_dies_is_named(tt_ctx *t)
{
    float *x = tt_floats(t, MANY, 1.0f);

    OK(tutti_all_reduce_quantized(TUTTI_SPAN(x, MANY), TUTTI_SUM, NULL, t->group));
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size); /* nobody is in that any more */
    if (t->rank == 1)
        tt_die();
    assert_int_equal(tutti_all_reduce_quantized(TUTTI_SPAN(x, MANY), TUTTI_SUM, NULL, t->group), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "rank 1"));
    assert_int_equal(tutti_all_reduce_quantized(TUTTI_SPAN(x, MANY), TUTTI_SUM, NULL, t->group), TUTTI_E_PEER);
}

/* What is queued behind an operation that cannot end goes with the group, memory included. */
static void queued_ones_end_with_the_group(tt_ctx *t)
{
    float      *x = tt_floats(t, 1000, 1.0f), *y = tt_floats(t, 1000, 1.0f);
    tutti_work *works[2];

    tt_post(t, 1);
    tt_await(t, 1, (uint32_t)t->size); /* an abort ends the world also for one that is still making it */
    if (t->rank == 0) {
        OK(tutti_all_reduce_quantized_async(TUTTI_SPAN(x, 1000), TUTTI_SUM, NULL, t->group, &works[0]));
        OK(tutti_all_reduce_block_sparse_async(TUTTI_SPAN(y, 1000), TUTTI_SUM, NULL, t->group, &works[1]));
        OK(tutti_abort_process_group(t->group));
        assert_int_equal(tutti_work_wait(works[0]), TUTTI_E_ABORTED);
        assert_int_equal(tutti_work_wait(works[1]), TUTTI_E_ABORTED);
        tutti_work_free(works[0]);
        tutti_work_free(works[1]);
    }
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(sums_are_as_told, .ranks = 1),
        TT_TEST(sums_are_as_told, .ranks = 2, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(sums_are_as_told, .ranks = 3, .transports = "shm,tcp,threads-tcp", .limit_ms = 40000),
        TT_TEST(sums_are_as_told, .ranks = 7, .transports = "tcp", .limit_ms = 60000),
        TT_TEST(sums_are_as_told, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(sixteen_bits_are_near, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(what_is_not_finite_is_seen_by_all, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_sum_beyond_f16_is_infinite_alone, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(errors_are_fed_back, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(works_keep_their_order, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(wrong_calls_are_refused, .transports = "shm"),
        TT_TEST(differences_are_named_and_the_group_goes_on, .ranks = 3, .transports = "shm,tcp,threads"),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        TT_TEST(a_rank_without_memory_tells_the_others, .ranks = 3, .transports = "shm,tcp"),
#endif
        TT_TEST(bits_in_one_piece_and_in_two, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(sparse_sums_have_the_bits_of_dense_ones, .ranks = 1),
        TT_TEST(sparse_sums_have_the_bits_of_dense_ones, .ranks = 2, .transports = "shm,tcp,threads-tcp"),
        TT_TEST(sparse_sums_have_the_bits_of_dense_ones, .ranks = 5, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(zeros_of_all_ranks_are_plain, .transports = "shm,tcp"),
        TT_TEST(nan_is_sent, .transports = "shm,tcp"),
        TT_TEST(hooks_see_one_operation, .transports = "shm,tcp"),
        TT_TEST(a_rank_that_dies_is_named, .ranks = 3, .transports = "shm,tcp", .dies = 1),
        TT_TEST(queued_ones_end_with_the_group, .transports = "shm,tcp,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
