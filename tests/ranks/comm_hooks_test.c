/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_hooks_test.c
 * Goal    PowerSGD gives the average of gradients that have so few directions, in every dtype, form and mode, and the
 *         same bits on all ranks for all others, whatever the buckets; what one step leaves out comes with later ones;
 *         a state that was saved goes on with the same bits; directions that are lost come back. Post-local SGD averages
 *         where it is to. Averages of 8 bits are within their bound, in one group after the other, and of many steps without
 *         it if errors are fed back. What goes wrong on one rank ends on all, in time, also between the two messages of a
 *         bucket.
 * Method  gradients drawn from step, parameter and rank; averages are computed by every rank alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
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

enum { N = 6, LARGEST = 96 * 50 };

static const int64_t shapes[N][3] = { { 40, 64, 1 }, { 64, 1, 1 }, { 96, 5, 10 }, { 7, 1, 1 }, { 40, 64, 1 }, { 3, 50, 20 } };

typedef struct model {
    tt_ctx         *t;
    tutti_reducer  *r;
    tutti_powersgd *s;
    tutti_dtype     dtype;
    float          *grads[N]; /* [numel], before they are averaged */
} model;

typedef void (*draw_fn)(const model *m, int step, int i, int rank, float *out);

/* ---- gradients ---- */

static int64_t numel(int i)
{
    return shapes[i][0] * shapes[i][1] * shapes[i][2];
}

static float drawn(int step, int i, int rank, int64_t k)
{
    uint32_t x = (uint32_t)(step * 7919 + i * 104729 + rank * 1299709) + (uint32_t)k * 2654435761u;

    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return (float)(int)(x >> 22) / 256.0f - 2.0f;
}

/* One direction on each of two ranks, and so two of the average: rows stay, and columns come from the step. */
static void few_directions(const model *m, int step, int i, int rank, float *out)
{
    const int64_t cols = numel(i) / shapes[i][0];
    int64_t       k;

    for (k = 0; k < numel(i); k++)
        out[k] = m->t->size > 2 && rank > 1 ? 0.0f
                                            : drawn(step, i, rank, k / cols) * drawn(0, i + 10, rank, k % cols) / 4.0f;
}

static void all_directions(const model *m, int step, int i, int rank, float *out)
{
    int64_t k;

    (void)m;
    for (k = 0; k < numel(i); k++)
        out[k] = drawn(step, i, rank, k);
}

static void always_the_same(const model *m, int step, int i, int rank, float *out)
{
    (void)step;
    all_directions(m, 0, i, rank, out);
}

/* One number: of a square, but for its last rows, there is one direction. */
static void one_number(const model *m, int step, int i, int rank, float *out)
{
    int64_t k;

    (void)m;
    for (k = 0; k < numel(i); k++)
        out[k] = (float)(step + 1 + rank * 2) + 0.0f * (float)i;
}

static void put(model *m, int i, const float *from)
{
    void   *grad = tutti_reducer_grad(m->r, i);
    int64_t k;

    for (k = 0; k < numel(i); k++)
        if (m->dtype == TUTTI_F64)
            ((double *)grad)[k] = (double)from[k];
        else if (m->dtype == TUTTI_F32)
            ((float *)grad)[k] = from[k];
        else if (m->dtype == TUTTI_F16)
            ((uint16_t *)grad)[k] = tti_f16_from_f32(from[k]);
        else
            ((uint16_t *)grad)[k] = tti_bf16_from_f32(from[k]);
}

static double get(const model *m, int i, int64_t k)
{
    const void *grad = tutti_reducer_grad(m->r, i);

    if (m->dtype == TUTTI_F64)
        return ((const double *)grad)[k];
    if (m->dtype == TUTTI_F32)
        return (double)((const float *)grad)[k];
    return (double)(m->dtype == TUTTI_F16 ? tti_f32_from_f16(((const uint16_t *)grad)[k])
                                          : tti_f32_from_bf16(((const uint16_t *)grad)[k]));
}

static double average(const model *m, int step, int i, draw_fn draw, float *scratch, double *out)
{
    double  norm = 0.0;
    int64_t k;
    int     q;

    memset(out, 0, (size_t)numel(i) * sizeof *out);
    for (q = 0; q < m->t->size; q++) {
        draw(m, step, i, q, scratch);
        for (k = 0; k < numel(i); k++)
            out[k] += (double)scratch[k] / m->t->size;
    }
    for (k = 0; k < numel(i); k++)
        norm += out[k] * out[k];
    return sqrt(norm);
}

/* ---- models ---- */

static tutti_reducer *make_reducer(tt_ctx *t, tutti_dtype dtype, int64_t cap, bool views)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[N];
    tutti_reducer        *r = NULL;
    int                   i;

    for (i = 0; i < N; i++)
        params[i] = (tutti_reducer_param){ .name = "p", .dtype = dtype, .numel = numel(i), .ndim = 3, .sizes = shapes[i],
                                           .grad = views ? NULL : tt_alloc(t, (size_t)numel(i) * 8) };
    opts.group = t->group;
    opts.bucket_cap_bytes = cap;
    opts.gradient_as_bucket_view = views;
    OK(tutti_reducer_create(params, N, &opts, &r));
    return r;
}

static model make(tt_ctx *t, tutti_dtype dtype, int64_t cap, const tutti_powersgd_options *opts)
{
    model m = { .t = t, .dtype = dtype };
    int   i;

    m.r = make_reducer(t, dtype, cap, cap % 2 == 1);
    OK(tutti_powersgd_create(m.r, opts, &m.s));
    OK(tutti_reducer_register_comm_hook(m.r, tutti_powersgd_hook(m.s), m.s));
    for (i = 0; i < N; i++)
        m.grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    return m;
}

static tutti_status step(model *m, int number, draw_fn draw)
{
    tutti_status st = TUTTI_OK;
    int          i;

    OK(tutti_reducer_prepare_for_forward(m->r));
    OK(tutti_reducer_prepare_for_backward(m->r, NULL, 0));
    for (i = N - 1; i >= 0; i--) {
        draw(m, number, i, m->t->rank, m->grads[i]);
        put(m, i, m->grads[i]);
        st = tutti_reducer_mark_ready(m->r, i);
    }
    return st == TUTTI_OK ? tutti_reducer_finish(m->r) : st;
}

static void expect_same_bits(model *m)
{
    const size_t each = tutti_dtype_size(m->dtype);
    uint8_t     *copy = tt_alloc(m->t, LARGEST * 8);
    int          i;

    for (i = 0; i < N; i++) {
        memcpy(copy, tutti_reducer_grad(m->r, i), (size_t)numel(i) * each);
        OK(tutti_broadcast_in_group(TUTTI_SPAN(copy, numel(i) * (int64_t)each), 0, m->t->group));
        assert_memory_equal(copy, tutti_reducer_grad(m->r, i), (size_t)numel(i) * each);
    }
}

/* Each gradient within loose of the average's length. */
static void expect_average(model *m, int number, draw_fn draw, double loose)
{
    double *want = tt_alloc(m->t, LARGEST * sizeof *want), norm, off;
    float  *scratch = tt_alloc(m->t, LARGEST * sizeof *scratch);
    int64_t k;
    int     i;

    for (i = 0; i < N; i++) {
        norm = average(m, number, i, draw, scratch, want);
        for (off = 0.0, k = 0; k < numel(i); k++)
            off += (get(m, i, k) - want[k]) * (get(m, i, k) - want[k]);
        if (!(sqrt(off) <= loose * norm))
            fail_msg("step %d: gradient %d is off by %g of its length", number, i, sqrt(off) / norm);
    }
}

static tutti_powersgd_options options(int rank, bool feedback, bool warm, bool batched)
{
    tutti_powersgd_options opts = TUTTI_POWERSGD_OPTIONS;

    opts.matrix_approximation_rank = rank;
    opts.start_iter = 2;
    opts.no_error_feedback = !feedback;
    opts.no_warm_start = !warm;
    opts.batched = batched;
    return opts;
}

/* ---- few directions ---- */

static const struct {
    tutti_dtype dtype;
    double      loose;
} dtypes[] = { { TUTTI_F32, 3e-5 }, { TUTTI_F64, 1e-11 }, { TUTTI_F16, 1e-2 }, { TUTTI_BF16, 8e-2 } };

static void few_directions_are_averaged(tt_ctx *t)
{
    tutti_powersgd_options opts;
    model                  m;
    int                    mode, d, number;

    for (d = 0; d < 4; d++)
        for (mode = 0; mode < 8; mode++) {
            opts = options(3, mode & 1, mode & 2, mode & 4);
            m = make(t, dtypes[d].dtype, mode & 1 ? 20000 : 30001, &opts);
            for (number = 0; number < 5; number++) {
                OK(step(&m, number, mode & 4 ? one_number : few_directions));
                expect_average(&m, number, mode & 4 ? one_number : few_directions, dtypes[d].loose);
                expect_same_bits(&m);
            }
            assert_true(tutti_reducer_bucket_count(m.r) > 1 || d > 1);
            tutti_reducer_free(m.r);
        }
}

/* From the first step on, which is one bucket. A shorter message than the gradients, of which statistics tell. */
static void from_the_first_step(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, false, false, false);
    tutti_powersgd_stats   stats;
    model                  m;
    /* 2 columns of 40 + 64, of 96 + 50, of 40 + 64; of 3 x 1000 they would be two thirds: whole, as 64 and 7 are */
    const int64_t          after = 2 * (104 + 146 + 104) + 3000 + 64 + 7;
    const int64_t          before = 2560 + 64 + 4800 + 7 + 2560 + 3000;

    opts.start_iter = TUTTI_POWERSGD_AT_ONCE;
    m = make(t, TUTTI_F32, 20000, &opts);
    OK(tutti_powersgd_get_stats(m.s, &stats));
    assert_true(stats.iter == 0 && stats.rate == 0.0);
    OK(step(&m, 0, few_directions));
    expect_average(&m, 0, few_directions, 3e-6);
    OK(step(&m, 1, few_directions));
    expect_average(&m, 1, few_directions, 3e-6);
    OK(tutti_powersgd_get_stats(m.s, &stats));
    assert_int_equal(stats.iter, 2);
    assert_int_equal(stats.n_before, 2 * before);
    assert_int_equal(stats.n_after, 2 * after);
    assert_true(stats.rate == (double)before / (double)after);
    tutti_reducer_free(m.r);
}

static void on_16_bits(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, true, true, false);
    model                  m = { .t = t, .dtype = TUTTI_F32 };
    int                    i, number;

    m.r = make_reducer(t, TUTTI_F32, 20000, false);
    for (i = 0; i < N; i++)
        m.grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    OK(tutti_powersgd_create(m.r, &opts, &m.s));
    OK(tutti_reducer_register_compressed_comm_hook(m.r, TUTTI_F16, tutti_powersgd_hook(m.s), m.s));
    for (number = 0; number < 5; number++) {
        OK(step(&m, number, few_directions));
        expect_average(&m, number, few_directions, 1e-2);
        expect_same_bits(&m);
    }
    tutti_reducer_free(m.r);
}

/* ---- all directions ---- */

/* How far the sum of all results is from the sum of all averages, in lengths of one. */
static double left_out(tt_ctx *t, bool feedback, bool batched)
{
    enum { STEPS = 80 };
    tutti_powersgd_options opts = options(2, feedback, true, batched);
    model                  m = make(t, TUTTI_F32, 20000, &opts);
    double                *sum = tt_alloc(t, LARGEST * sizeof *sum), *want = tt_alloc(t, LARGEST * sizeof *want);
    float                 *scratch = tt_alloc(t, LARGEST * sizeof *scratch);
    double                 off = 0.0, norm = average(&m, 0, 2, always_the_same, scratch, want);
    int                    number;
    int64_t                k;

    for (number = 0; number < STEPS; number++) {
        OK(step(&m, number, always_the_same));
        expect_same_bits(&m);
        for (k = 0; k < numel(2); k++)
            sum[k] += get(&m, 2, k) / STEPS;
    }
    for (k = 0; k < numel(2); k++)
        off += (sum[k] - want[k]) * (sum[k] - want[k]);
    tutti_reducer_free(m.r);
    return sqrt(off) / norm;
}

static void what_is_left_out_comes_later(tt_ctx *t)
{
    const double without = left_out(t, false, false), with = left_out(t, true, false);
    const double batched = left_out(t, false, true), batched_with = left_out(t, true, true);

    if (!(without > 0.6 && with < 0.5 * without && batched_with < 0.8 * batched))
        fail_msg("%g without, %g with; %g and %g batched", without, with, batched, batched_with);
}

/* Parameters keep what they have when buckets change, so buckets do not matter. */
static void buckets_do_not_matter(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, true, true, false);
    model                  one = make(t, TUTTI_F32, 1 << 30, &opts), many = make(t, TUTTI_F32, 3000, &opts);
    int                    number, i;

    for (number = 0; number < 6; number++) {
        if (number == 4)
            OK(tutti_reducer_reset_state(many.r)); /* and once more */
        OK(step(&one, number, all_directions));
        OK(step(&many, number, all_directions));
        for (i = 0; i < N; i++)
            assert_memory_equal(tutti_reducer_grad(one.r, i), tutti_reducer_grad(many.r, i), (size_t)numel(i) * 4);
    }
    assert_int_equal(tutti_reducer_bucket_count(one.r), 1);
    assert_true(tutti_reducer_bucket_count(many.r) >= 4);
    tutti_reducer_free(one.r);
    tutti_reducer_free(many.r);
}

/* ---- 8 bits in blocks ---- */

static model make_quantized(tt_ctx *t, tutti_dtype dtype, int64_t cap, bool feedback)
{
    tutti_quantized_hook_options opts = TUTTI_QUANTIZED_HOOK_OPTIONS;
    tutti_quantized_hook        *hook = NULL;
    model                        m = { .t = t, .dtype = dtype };
    int                          i;

    m.r = make_reducer(t, dtype, cap, cap % 2 == 1);
    opts.block = 128;
    opts.error_feedback = feedback;
    OK(tutti_quantized_hook_create(m.r, &opts, &hook));
    OK(tutti_reducer_register_comm_hook(m.r, tutti_quantized_hook_table(hook), hook));
    for (i = 0; i < N; i++)
        m.grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    return m;
}

static void eight_bits_in_blocks(tt_ctx *t)
{
    static const tutti_dtype taken[] = { TUTTI_F32, TUTTI_F16, TUTTI_BF16 };
    model                    m;
    int                      d, number;

    for (d = 0; d < 3; d++) {
        m = make_quantized(t, taken[d], d == 1 ? 20001 : 30000, d == 2);
        for (number = 0; number < 5; number++) {
            OK(step(&m, number, all_directions));
            expect_average(&m, number, all_directions, 0.02); /* of numbers up to 2, each off by 2 / 127 at most */
            expect_same_bits(&m);
        }
        tutti_reducer_free(m.r);
    }
}

/* The mean of many steps with the same gradients, in lengths of the average, from the step on in which errors are kept. */
static double left_out_by_rounding(tt_ctx *t, bool feedback)
{
    enum { STEPS = 60 };
    model   m = make_quantized(t, TUTTI_F32, 20000, feedback);
    double *sum = tt_alloc(t, LARGEST * sizeof *sum), *want = tt_alloc(t, LARGEST * sizeof *want);
    float  *scratch = tt_alloc(t, LARGEST * sizeof *scratch);
    double  off = 0.0, norm = average(&m, 0, 2, always_the_same, scratch, want);
    int     number;
    int64_t k;

    OK(step(&m, 0, always_the_same)); /* buckets are rebuilt after it */
    for (number = 1; number <= STEPS; number++) {
        OK(step(&m, number, always_the_same));
        expect_same_bits(&m);
        for (k = 0; k < numel(2); k++)
            sum[k] += get(&m, 2, k) / STEPS;
    }
    for (k = 0; k < numel(2); k++)
        off += (sum[k] - want[k]) * (sum[k] - want[k]);
    tutti_reducer_free(m.r);
    return sqrt(off) / norm;
}

static void roundings_are_made_up_for(tt_ctx *t)
{
    const double without = left_out_by_rounding(t, false), with = left_out_by_rounding(t, true);

    if (!(without > 1e-3 && with < 0.1 * without))
        fail_msg("%g without feedback, %g with", without, with);
}

static void blocks_that_make_no_sense(tt_ctx *t)
{
    tutti_quantized_hook_options opts = TUTTI_QUANTIZED_HOOK_OPTIONS;
    tutti_quantized_hook        *hook = NULL;
    tutti_reducer               *r = make_reducer(t, TUTTI_F32, 20000, false), *wide = make_reducer(t, TUTTI_F64, 20000, false);

    opts.block = 200;
    REFUSED(tutti_quantized_hook_create(r, &opts, &hook), TUTTI_E_ARG, "200");
    REFUSED(tutti_quantized_hook_create(wide, NULL, &hook), TUTTI_E_UNSUPPORTED, "f64");
    REFUSED(tutti_quantized_hook_create(NULL, NULL, &hook), TUTTI_E_ARG, "reducer");
    OK(tutti_quantized_hook_create(r, NULL, &hook));
    tutti_quantized_hook_free(hook);
    tutti_quantized_hook_free(NULL);
    tutti_reducer_free(r);
    tutti_reducer_free(wide);
}

/* ---- what is saved ---- */

static void expect_goes_on(tt_ctx *t, bool batched)
{
    enum { BEFORE = 5, AFTER = 4 };
    tutti_powersgd_options opts = options(2, true, true, batched);
    model                  whole = make(t, TUTTI_F32, batched ? 1 << 30 : 20000, &opts), second;
    tutti_bytes            bytes = { 0 };
    tutti_powersgd_stats   stats, others;
    int                    number, i;

    for (number = 0; number < BEFORE; number++)
        OK(step(&whole, number, all_directions));
    OK(tutti_powersgd_save(whole.s, &bytes));
    second = make(t, TUTTI_F32, batched ? 1 << 30 : 9000, &opts);
    for (number = 0; number < 2 && batched; number++)
        OK(step(&second, number, all_directions)); /* until the buckets are the same */
    OK(tutti_powersgd_load(second.s, bytes.data, bytes.size));
    for (number = BEFORE; number < BEFORE + AFTER; number++) {
        OK(step(&whole, number, all_directions));
        OK(step(&second, number, all_directions));
        for (i = 0; i < N; i++)
            assert_memory_equal(tutti_reducer_grad(whole.r, i), tutti_reducer_grad(second.r, i), (size_t)numel(i) * 4);
    }
    OK(tutti_powersgd_get_stats(whole.s, &stats));
    OK(tutti_powersgd_get_stats(second.s, &others));
    assert_memory_equal(&stats, &others, sizeof stats);
    tutti_bytes_free(&bytes);
    tutti_reducer_free(whole.r);
    tutti_reducer_free(second.r);
}

static void a_saved_state_goes_on(tt_ctx *t)
{
    expect_goes_on(t, false);
    expect_goes_on(t, true);
}

/* Other buckets than those it was saved with: the batched form takes along what it can. */
static void a_batched_state_in_other_buckets(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, true, true, true);
    model                  one = make(t, TUTTI_F32, 1 << 30, &opts), other = make(t, TUTTI_F32, 9000, &opts);
    tutti_bytes            bytes = { 0 };
    int                    number;

    for (number = 0; number < 4; number++)
        OK(step(&one, number, one_number));
    OK(tutti_powersgd_save(one.s, &bytes));
    OK(tutti_powersgd_load(other.s, bytes.data, bytes.size));
    for (number = 4; number < 8; number++) {
        OK(step(&other, number, one_number));
        expect_average(&other, number, one_number, 1e-5);
        expect_same_bits(&other);
    }
    tutti_bytes_free(&bytes);
    tutti_reducer_free(one.r);
    tutti_reducer_free(other.r);
}

static void only_its_own_is_loaded(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, true, true, false), three = options(3, true, true, false);
    tutti_powersgd_options plain = options(2, false, true, false);
    model                  m = make(t, TUTTI_F32, 20000, &opts);
    tutti_powersgd        *other = NULL;
    tutti_bytes            bytes = { 0 };
    size_t                 size;
    int                    number;

    for (number = 0; number < 3; number++)
        OK(step(&m, number, all_directions));
    OK(tutti_powersgd_save(m.s, &bytes));
    for (size = 0; size < bytes.size; size += 1 + size / 3)
        REFUSED(tutti_powersgd_load(m.s, bytes.data, size), TUTTI_E_ARG, "not what powersgd_save() has made");
    OK(tutti_powersgd_create(m.r, &three, &other));
    REFUSED(tutti_powersgd_load(other, bytes.data, bytes.size), TUTTI_E_MISMATCH, "with rank 2, and here it is 3");
    tutti_powersgd_free(other);
    OK(tutti_powersgd_create(m.r, &plain, &other));
    REFUSED(tutti_powersgd_load(other, bytes.data, bytes.size), TUTTI_E_MISMATCH, "error feedback 1");
    tutti_powersgd_free(other);
    ((char *)bytes.data)[0] ^= 1;
    REFUSED(tutti_powersgd_load(m.s, bytes.data, bytes.size), TUTTI_E_ARG, "not what");
    REFUSED(tutti_powersgd_load(m.s, NULL, 0), TUTTI_E_ARG, "NULL");
    OK(step(&m, 3, all_directions)); /* as if nothing had been */
    tutti_bytes_free(&bytes);
    tutti_reducer_free(m.r);
}

/* The state of a bucket as the file has it, behind a head and N parameters of which nothing is kept. */
typedef struct bucket_record {
    uint32_t m_each, q_each;
    int64_t  side, n_m, n_q;
    uint64_t list;
} bucket_record;

/* Other columns of the first bucket than were saved; as many as that side has. */
static tutti_status load_with(model *m, const tutti_bytes *bytes, uint32_t q_each, int64_t side, int64_t n_q)
{
    enum { HEAD = 72 };
    const size_t at = HEAD + N * sizeof(bucket_record);
    char        *data = tt_alloc(m->t, bytes->size);
    const float  first = 1.0f;
    size_t       old, new;
    bucket_record r;

    memcpy(data, bytes->data, bytes->size);
    memcpy(&r, data + at, sizeof r);
    assert_int_equal(r.m_each, 0);
    assert_int_equal(r.q_each, sizeof first);
    old = (size_t)r.n_q * r.q_each;
    new = q_each > 0 ? sizeof first : 0;
    r.q_each = q_each;
    r.side = side > 0 ? side : r.side;
    r.n_q = side > 0 ? n_q : r.n_q;
    memcpy(data + at, &r, sizeof r);
    memcpy(data + at + sizeof r, &first, new);
    memcpy(data + at + sizeof r + new, (const char *)bytes->data + at + sizeof r + old,
           bytes->size - at - sizeof r - old);
    return tutti_powersgd_load(m->s, data, bytes->size - old + new);
}

/* A file that says that the columns of a square are those of a smaller one: as if it had none. */
static void squares_of_another_side(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, false, true, true);
    model                  none = make(t, TUTTI_F32, 1 << 30, &opts), lying = make(t, TUTTI_F32, 1 << 30, &opts);
    tutti_bytes            bytes = { 0 };
    int                    number, i;

    for (number = 0; number < 4; number++) {
        OK(step(&none, number, all_directions));
        OK(step(&lying, number, all_directions));
    }
    OK(tutti_powersgd_save(none.s, &bytes));
    OK(load_with(&none, &bytes, 0, 0, 0));
    OK(load_with(&lying, &bytes, sizeof(float), 1, 1));
    OK(step(&none, number, all_directions));
    OK(step(&lying, number, all_directions));
    for (i = 0; i < N; i++)
        assert_memory_equal(tutti_reducer_grad(none.r, i), tutti_reducer_grad(lying.r, i), (size_t)numel(i) * 4);
    tutti_bytes_free(&bytes);
    tutti_reducer_free(none.r);
    tutti_reducer_free(lying.r);
}

/* ---- corners ---- */

static void nothing(const model *m, int step_no, int i, int rank, float *out)
{
    (void)m;
    (void)step_no;
    (void)rank;
    memset(out, 0, (size_t)numel(i) * sizeof *out);
}

static void with_a_nan(const model *m, int step_no, int i, int rank, float *out)
{
    few_directions(m, step_no, i, rank, out);
    if (rank == 1 && i == 2)
        out[77] = NAN;
}

/* Gradients that are zero for a while leave no direction behind, and those that are not finite leave nothing else. */
static void directions_come_back(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, true, true, false);
    model                  m = make(t, TUTTI_F32, 20000, &opts);
    int64_t                k;
    int                    number;

    for (number = 0; number < 4; number++)
        OK(step(&m, number, nothing));
    assert_true(get(&m, 2, 77) == 0.0);
    OK(step(&m, 4, few_directions));
    expect_average(&m, 4, few_directions, 1e-4);
    OK(step(&m, 5, with_a_nan));
    for (k = 0; k < numel(2); k++)
        assert_true(isnan(get(&m, 2, k)));
    assert_true(isfinite(get(&m, 0, 5)));
    OK(step(&m, 6, few_directions));
    expect_average(&m, 6, few_directions, 1e-4);
    expect_same_bits(&m);
    tutti_reducer_free(m.r);
}

/* Buckets that are left out, the first and the last one too: steps are counted all the same. */
static void buckets_left_out(tt_ctx *t)
{
    enum { STEPS = 8 };
    tutti_reducer_options  ropts = TUTTI_REDUCER_OPTIONS;
    tutti_powersgd_options opts = options(1, true, true, false);
    tutti_reducer_param    params[2] = { { .dtype = TUTTI_F32, .numel = 2560, .ndim = 2, .sizes = shapes[0] } };
    tutti_reducer         *r = NULL;
    tutti_powersgd        *s = NULL;
    tutti_powersgd_stats   stats;
    int                    number, i, k;

    params[1] = params[0];
    ropts.group = t->group;
    ropts.bucket_cap_bytes = 2560 * 4;
    ropts.find_unused_parameters = ropts.skip_all_reduce_unused_params = ropts.gradient_as_bucket_view = true;
    OK(tutti_reducer_create(params, 2, &ropts, &r));
    OK(tutti_powersgd_create(r, &opts, &s));
    OK(tutti_reducer_register_comm_hook(r, tutti_powersgd_hook(s), s));
    assert_int_equal(tutti_reducer_bucket_count(r), 2);
    for (number = 0; number < STEPS; number++) {
        i = number / 2 % 2; /* the other one is not used */
        OK(tutti_reducer_prepare_for_backward(r, (const int[]){ 1 - i }, 1));
        for (k = 0; k < 2560; k++)
            ((float *)tutti_reducer_grad(r, i))[k] = (float)(number + t->rank);
        OK(tutti_reducer_mark_ready(r, i));
        OK(tutti_reducer_finish(r));
        for (k = 0; k < 2560; k++)
            assert_true(fabs((double)((float *)tutti_reducer_grad(r, i))[k] - number - 0.5 * (t->size - 1)) < 1e-4);
    }
    OK(tutti_powersgd_get_stats(s, &stats));
    assert_true(stats.iter >= STEPS - 2 && stats.iter <= STEPS);
    tutti_reducer_free(r);
}

/* A rank without inputs plays along. */
static void uneven_inputs(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, true, true, false);
    model                  m = make(t, TUTTI_F32, 20000, &opts);
    tutti_joinable         joinable;
    tutti_join            *join = NULL;
    int                    number;

    OK(tutti_reducer_joinable(m.r, NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (number = 0; number < 4 + 3 * t->rank; number++)
        OK(step(&m, number, all_directions));
    OK(tutti_join_end(join, TUTTI_OK));
    tutti_reducer_free(m.r);
}

static void by_number_and_name(tt_ctx *t)
{
    static const char *const names[] = { "POWER_SGD", "POWER_SGD_RANK2", "BATCHED_POWER_SGD", "BATCHED_POWER_SGD_RANK2" };
    tutti_builtin_comm_hook  kind;
    model                    m = { .t = t, .dtype = TUTTI_F32 };
    int                      i, k;

    for (i = 0; i < N; i++)
        m.grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    for (k = 0; k < 4; k++) {
        m.r = make_reducer(t, TUTTI_F32, 20000, true);
        OK(tutti_builtin_comm_hook_from_name(names[k], &kind));
        OK(tutti_reducer_register_builtin_comm_hook(m.r, kind));
        REFUSED(tutti_reducer_register_builtin_comm_hook(m.r, kind), TUTTI_E_STATE, "can only be called once");
        OK(step(&m, 0, all_directions)); /* plain averages for long */
        expect_average(&m, 0, all_directions, 1e-6);
        tutti_reducer_free(m.r);
    }
    REFUSED(tutti_builtin_comm_hook_from_name("power", &kind), TUTTI_E_ARG, "no hook 'power'");
}

static void senseless_options(tt_ctx *t)
{
    const tutti_reducer_param complex = { .name = "w", .dtype = TUTTI_C64, .numel = 4 };
    tutti_reducer            *r = make_reducer(t, TUTTI_F32, 20000, true), *c = NULL;
    tutti_reducer_options     ropts = TUTTI_REDUCER_OPTIONS;
    tutti_powersgd_options    opts = options(1, true, false, false);
    tutti_powersgd           *s = NULL;

    opts.start_iter = 1;
    REFUSED(tutti_powersgd_create(r, &opts, &s), TUTTI_E_ARG, "must be larger than 1");
    opts = options(1, false, true, false);
    opts.start_iter = TUTTI_POWERSGD_AT_ONCE;
    REFUSED(tutti_powersgd_create(r, &opts, &s), TUTTI_E_ARG, "must be larger than 1");
    opts.start_iter = -2;
    REFUSED(tutti_powersgd_create(r, &opts, &s), TUTTI_E_ARG, "a start_iter of -2");
    opts = options(-1, true, true, false);
    REFUSED(tutti_powersgd_create(r, &opts, &s), TUTTI_E_ARG, "rank of -1");
    opts = options(1, true, true, false);
    opts.min_compression_rate = NAN;
    REFUSED(tutti_powersgd_create(r, &opts, &s), TUTTI_E_ARG, "min_compression_rate of");
    REFUSED(tutti_powersgd_create(NULL, NULL, &s), TUTTI_E_ARG, "the reducer is NULL");
    ropts.group = t->group;
    OK(tutti_reducer_create(&complex, 1, &ropts, &c));
    REFUSED(tutti_powersgd_create(c, NULL, &s), TUTTI_E_UNSUPPORTED, "'w'");
    assert_null(s);
    tutti_reducer_free(c);
    tutti_reducer_free(r);
}

/* ---- failures ---- */

/* Ranks that compress differently are told so. */
static void other_options_on_one_rank(tt_ctx *t)
{
    tutti_powersgd_options opts = options(1 + (t->rank == 1), true, true, false);
    model                  m = make(t, TUTTI_F32, 20000, &opts);
    tutti_status           st = TUTTI_OK;
    int                    number;

    for (number = 0; number < 3 && st == TUTTI_OK; number++)
        st = step(&m, number, all_directions);
    assert_int_equal(number, 1); /* before anything is averaged */
    assert_int_equal(st, TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "rank 1 of the group has other options than rank 0"));
    assert_int_equal(step(&m, number, all_directions), TUTTI_E_MISMATCH); /* and so on */
    tutti_reducer_free(m.r);
    OK(tutti_barrier(t->group)); /* nobody is left behind */
}

/* The odd one ends the reducer's group when some of its buckets are on their way. */
static void a_group_ended_in_a_backward(tt_ctx *t)
{
    tutti_powersgd_options opts = options(2, true, true, false);
    model                  m = make(t, TUTTI_F32, 3000, &opts);
    tutti_status           st = TUTTI_OK;
    int                    number, i;

    for (number = 0; number < 3; number++)
        OK(step(&m, number, all_directions));
    OK(tutti_reducer_prepare_for_backward(m.r, NULL, 0));
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size);
    for (i = N - 1; i >= 0; i--) {
        if (t->rank == 1 && i == 2)
            OK(tutti_abort_process_group(t->group));
        tutti_reducer_mark_ready(m.r, i);
    }
    st = tutti_reducer_finish(m.r);
    assert_int_equal(st, TUTTI_E_ABORTED);
    assert_int_equal(step(&m, 4, all_directions), TUTTI_E_ABORTED);
    tutti_reducer_free(m.r);
}

/* PowerSGD that is held up where a rank is to know more than another one, or less. */
typedef struct held_hook {
    tt_ctx                *t;
    const tutti_comm_hook *inner;
    tutti_powersgd        *s;
    bool                   on;
    tutti_future          *kept; /* of the bucket in which the odd one ends it */
} held_hook;

/* The group of second messages, which is split from the reducer's. */
static tutti_group *group_of_powersgd(tt_ctx *t)
{
    char         name[64];
    tutti_group *group;
    int          k;

    for (k = 0; k < 16; k++) {
        snprintf(name, sizeof name, "%s:split:%d.0", tutti_get_group_name(t->group), k);
        group = tutti_find_group(name);
        if (group != TUTTI_NO_GROUP && strcmp(tutti_get_group_desc(group), "powersgd") == 0)
            return group;
    }
    fail_msg("there is no group of PowerSGD");
    return NULL;
}

/* Rank 2 issues everything before rank 1 ends the group of second messages, and rank 0, which is in the step by then, nothing
 * more before it knows. */
static tutti_status run_held(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    enum { ENDED = 1 }; /* the first bucket that has a matrix */
    held_hook   *h = state;
    const int    rank = h->t->rank;
    tutti_status st;

    if (h->on && rank == 1 && bucket->index == ENDED) {
        tt_await(h->t, 0, 2);
        OK(tutti_abort_process_group(group_of_powersgd(h->t)));
    }
    if (h->on && rank == 0 && bucket->index == ENDED + 1) {
        tt_post(h->t, 0);
        REFUSED(tutti_future_wait(h->kept, TUTTI_INFINITE), TUTTI_E_ABORTED, "rank 1 aborted");
    }
    st = h->inner->run(h->s, bucket, future_out);
    if (h->on && st == TUTTI_OK && bucket->index == ENDED)
        h->kept = tutti_future_retain(*future_out);
    if (h->on && rank == 2 && bucket->is_last)
        tt_post(h->t, 0);
    return st;
}

/* A rank whose PowerSGD has failed takes part in what others issue that do not know yet, and in later steps: the
 * reducer's group is left as it was. */
static void some_know_before_others(tt_ctx *t)
{
    static const tutti_comm_hook table = { .api = TUTTI_COMM_HOOK_API, .size = sizeof table, .name = "held", .run = run_held };
    tutti_powersgd_options       opts = options(2, true, true, false);
    held_hook                    h = { .t = t };
    model                        m = { .t = t, .dtype = TUTTI_F32, .r = make_reducer(t, TUTTI_F32, 3000, false) };
    int                          number, i;

    for (i = 0; i < N; i++)
        m.grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    OK(tutti_powersgd_create(m.r, &opts, &h.s));
    h.inner = tutti_powersgd_hook(h.s);
    OK(tutti_reducer_register_comm_hook(m.r, &table, &h));
    for (number = 0; number < 3; number++)
        OK(step(&m, number, all_directions));
    assert_true(tutti_reducer_bucket_count(m.r) > 3);
    h.on = true;
    for (; number < 6; number++) {
        assert_int_equal(step(&m, number, all_directions), TUTTI_E_ABORTED);
        h.on = false;
    }
    tutti_future_free(h.kept);
    OK(tutti_barrier(t->group));
    tutti_reducer_free(m.r);
    tutti_powersgd_free(h.s);
}

/* Rank 1 dies when some buckets have had their first message, and some their second, or not. */
static void die_at(tt_ctx *t, int index)
{
    tutti_powersgd_options opts = options(2, true, true, false);
    model                  m = make(t, TUTTI_F32, 3000, &opts);
    tutti_status           st = TUTTI_OK;
    int                    number, i;

    for (number = 0; number < 3; number++)
        OK(step(&m, number, all_directions));
    OK(tutti_reducer_prepare_for_forward(m.r));
    OK(tutti_reducer_prepare_for_backward(m.r, NULL, 0));
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size); /* all are in the step */
    for (i = N - 1; i >= 0; i--) {
        if (t->rank == 1 && i == index)
            tt_die();
        tutti_reducer_mark_ready(m.r, i);
    }
    st = tutti_reducer_finish(m.r);
    assert_true(st == TUTTI_E_PEER || st == TUTTI_E_ABORTED);
    assert_non_null(strstr(tutti_last_error(), "rank 1"));
    tt_post(t, 1);
    tt_await(t, 1, (uint32_t)t->size - 1); /* who waited for one that has left by now would name that one */
    tutti_reducer_free(m.r);
}

static void death_in_the_middle(tt_ctx *t)
{
    die_at(t, 3);
}

static void death_before_the_last(tt_ctx *t)
{
    die_at(t, 0);
}

/* What is left after a death goes on: in another group, with columns of its own. */
static void others_go_on(tt_ctx *t)
{
    enum { DEAD = 1 };
    const int              dead = DEAD;
    tutti_powersgd_options opts = options(2, true, true, false);
    model                  m = make(t, TUTTI_F32, 3000, &opts);
    tutti_group           *left = NULL, *before = t->group;
    tutti_status           st = TUTTI_OK;
    int                    number, i;

    for (number = 0; number < 3; number++)
        OK(step(&m, number, few_directions));
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size); /* all have come so far */
    if (t->rank == DEAD)
        tt_die();
    for (; st == TUTTI_OK && number < 5; number++)
        st = step(&m, number, few_directions);
    assert_true(st == TUTTI_E_PEER || st == TUTTI_E_ABORTED);
    OK(tutti_shrink_group(&dead, 1, t->group, TUTTI_SHRINK_ABORT, NULL, &left));
    tutti_reducer_reset_state(m.r);
    OK(tutti_reducer_update_process_group(m.r, left));
    t->group = left;
    for (i = 0; i < 4; i++) {
        OK(step(&m, number + i, one_number));
        expect_same_bits(&m);
    }
    tutti_reducer_free(m.r);
    OK(tutti_destroy_process_group(left));
    t->group = before;
}

/* ---- post-local SGD ---- */

static void expect_number(model *m, double want)
{
    int i;

    for (i = 0; i < N; i++)
        assert_true(fabs(get(m, i, numel(i) - 1) - want) <= 1e-6 * want);
}

/* Step s has s + 1 + 2 r on rank r: averages over ranks from .. to. */
static void expect_mean(model *m, int number, int from, int to)
{
    expect_number(m, (double)(number + 1 + from + to));
}

static void run_post_local(tt_ctx *t, tutti_group *subgroup, bool own, int from, int to)
{
    enum { START = 3 };
    tutti_post_local_hook_options opts = TUTTI_POST_LOCAL_HOOK_OPTIONS;
    tutti_post_local_hook        *s = NULL;
    model                        m = { .t = t, .dtype = TUTTI_F32, .r = make_reducer(t, TUTTI_F32, 3000, true) };
    int                          number, i;

    for (i = 0; i < N; i++)
        m.grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    opts.start_iter = START;
    opts.subgroup = subgroup;
    opts.no_gradient_all_reduce = own;
    OK(tutti_post_local_hook_create(m.r, &opts, &s));
    OK(tutti_reducer_register_comm_hook(m.r, tutti_post_local_hook_table(s), s));
    for (number = 0; number < START + 3; number++) {
        OK(step(&m, number, one_number));
        if (number < START)
            expect_mean(&m, number, 0, t->size - 1);
        else
            expect_mean(&m, number, from, to);
    }
    tutti_reducer_free(m.r);
}

static void hosts_average_alone(tt_ctx *t)
{
    const int half = t->size / 2, first = t->rank / half * half;

    run_post_local(t, NULL, false, first, first + half - 1);
}

static void averages_over_a_subgroup_or_none(tt_ctx *t)
{
    tutti_group                 *pair = NULL;
    tutti_reducer               *r;
    tutti_post_local_hook_options opts = TUTTI_POST_LOCAL_HOOK_OPTIONS;
    tutti_post_local_hook        *s = NULL;

    run_post_local(t, NULL, false, 0, t->size - 1); /* one host */
    run_post_local(t, NULL, true, t->rank, t->rank);
    OK(tutti_split_group_by_color(t->group, t->rank / 2, NULL, &pair));
    run_post_local(t, pair, false, t->rank / 2 * 2, t->rank / 2 * 2 + 1);
    r = make_reducer(t, TUTTI_F32, 3000, true);
    opts.start_iter = -1;
    REFUSED(tutti_post_local_hook_create(r, &opts, &s), TUTTI_E_ARG, "a start_iter of -1");
    opts.start_iter = 0;
    opts.subgroup = TUTTI_NON_MEMBER;
    REFUSED(tutti_post_local_hook_create(r, &opts, &s), TUTTI_E_ARG, "not in the subgroup");
    tutti_reducer_free(r);
    OK(tutti_destroy_process_group(pair));
}

static tutti_post_local_hook *post_local_model(tt_ctx *t, tutti_group *pair, model *m_out)
{
    tutti_post_local_hook_options opts = TUTTI_POST_LOCAL_HOOK_OPTIONS;
    tutti_post_local_hook        *s = NULL;
    int                           i;

    *m_out = (model){ .t = t, .dtype = TUTTI_F32, .r = make_reducer(t, TUTTI_F32, 3000, true) };
    for (i = 0; i < N; i++)
        m_out->grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    opts.start_iter = 3;
    opts.subgroup = pair;
    OK(tutti_post_local_hook_create(m_out->r, &opts, &s));
    OK(tutti_reducer_register_comm_hook(m_out->r, tutti_post_local_hook_table(s), s));
    return s;
}

/* Saved after so many steps and loaded into another one, both do the rest with the same bits. */
static void expect_post_local_goes_on(tt_ctx *t, tutti_group *pair, int saved_after)
{
    model                  whole, second;
    tutti_post_local_hook *from = post_local_model(t, pair, &whole), *to = post_local_model(t, pair, &second);
    tutti_bytes            bytes = { 0 };
    char                   spoilt[64];
    int                    number, i;

    for (number = 0; number < saved_after; number++)
        OK(step(&whole, number, all_directions));
    OK(tutti_post_local_hook_save(from, &bytes));
    REFUSED(tutti_post_local_hook_load(to, bytes.data, bytes.size - 1), TUTTI_E_ARG, "or not all of it");
    OK(tutti_post_local_hook_load(to, bytes.data, bytes.size));
    assert_true(bytes.size <= sizeof spoilt);
    memcpy(spoilt, bytes.data, bytes.size);
    spoilt[0] ^= 1;
    REFUSED(tutti_post_local_hook_load(to, spoilt, bytes.size), TUTTI_E_ARG, "are not what");
    for (; number < 6; number++) {
        OK(step(&whole, number, all_directions));
        OK(step(&second, number, all_directions));
        for (i = 0; i < N; i++)
            assert_memory_equal(tutti_reducer_grad(whole.r, i), tutti_reducer_grad(second.r, i), (size_t)numel(i) * 4);
    }
    tutti_bytes_free(&bytes);
    tutti_reducer_free(whole.r);
    tutti_reducer_free(second.r);
}

static void saved_steps_of_post_local_sgd(tt_ctx *t)
{
    tutti_group *pair = NULL;

    OK(tutti_split_group_by_color(t->group, t->rank / 2, NULL, &pair));
    expect_post_local_goes_on(t, pair, 2); /* a step before the start */
    expect_post_local_goes_on(t, pair, 4); /* after it */
    expect_post_local_goes_on(t, NULL, 4);
    REFUSED(tutti_post_local_hook_save(NULL, NULL), TUTTI_E_ARG, "the state is NULL");
    REFUSED(tutti_post_local_hook_load(NULL, "", 0), TUTTI_E_ARG, "the state is NULL");
    OK(tutti_destroy_process_group(pair));
}

/* ---- 8 bits as torch has them ---- */

/* All, two of them, all again: what is gathered has another size each time. */
static void eight_bits_in_another_group(tt_ctx *t)
{
    tutti_group *whole = t->group, *pair = NULL;
    const int    first = t->rank / 2 * 2;
    model        m = { .t = t, .dtype = TUTTI_F32 };
    int          kind, number, i;

    for (i = 0; i < N; i++)
        m.grads[i] = tt_alloc(t, LARGEST * sizeof(float));
    OK(tutti_split_group_by_color(whole, t->rank / 2, NULL, &pair));
    for (kind = TUTTI_HOOK_QUANTIZE_PER_TENSOR; kind <= TUTTI_HOOK_QUANTIZE_PER_CHANNEL; kind++) {
        m.r = make_reducer(t, TUTTI_F32, 3000, kind == TUTTI_HOOK_QUANTIZE_PER_CHANNEL);
        OK(tutti_reducer_register_builtin_comm_hook(m.r, (tutti_builtin_comm_hook)kind));
        for (number = 0; number < 9; number++) {
            const bool in_pair = number / 3 == 1;

            if (number == 3 || number == 6) {
                OK(tutti_reducer_reset_state(m.r));
                OK(tutti_reducer_update_process_group(m.r, in_pair ? pair : whole));
                t->group = in_pair ? pair : whole;
            }
            OK(step(&m, number, one_number));
            expect_mean(&m, number, in_pair ? first : 0, in_pair ? first + 1 : t->size - 1);
            expect_same_bits(&m);
        }
        tutti_reducer_free(m.r);
    }
    OK(tutti_destroy_process_group(pair));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(few_directions_are_averaged, .ranks = 1, .limit_ms = 60000),
        TT_TEST(few_directions_are_averaged, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 90000),
        TT_TEST(few_directions_are_averaged, .ranks = 4, .transports = "shm", .hosts = 2, .limit_ms = 90000),
        TT_TEST(from_the_first_step, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(on_16_bits, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(what_is_left_out_comes_later, .ranks = 2, .transports = "shm,tcp", .limit_ms = 120000),
        TT_TEST(buckets_do_not_matter, .ranks = 3, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(a_saved_state_goes_on, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(a_batched_state_in_other_buckets, .ranks = 2),
        TT_TEST(only_its_own_is_loaded, .ranks = 2),
        TT_TEST(squares_of_another_side, .ranks = 2),
        TT_TEST(directions_come_back, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(buckets_left_out, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(uneven_inputs, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(eight_bits_in_blocks, .ranks = 1),
        TT_TEST(eight_bits_in_blocks, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(eight_bits_in_blocks, .ranks = 4, .transports = "shm", .hosts = 2),
        TT_TEST(roundings_are_made_up_for, .ranks = 2, .transports = "shm,tcp", .limit_ms = 120000),
        TT_TEST(blocks_that_make_no_sense, .ranks = 2),
        TT_TEST(by_number_and_name, .ranks = 2),
        TT_TEST(senseless_options, .ranks = 2),
        TT_TEST(other_options_on_one_rank, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_group_ended_in_a_backward, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(some_know_before_others, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(death_in_the_middle, .ranks = 3, .transports = "shm,tcp", .dies = 1),
        TT_TEST(death_before_the_last, .ranks = 3, .transports = "shm,tcp", .dies = 1),
        TT_TEST(others_go_on, .ranks = 4, .transports = "shm,tcp", .dies = 1),
        TT_TEST(hosts_average_alone, .ranks = 4, .transports = "shm", .hosts = 2),
        TT_TEST(averages_over_a_subgroup_or_none, .ranks = 4, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(saved_steps_of_post_local_sgd, .ranks = 4, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(eight_bits_in_another_group, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
