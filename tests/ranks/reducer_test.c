/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reducer_test.c
 * Goal    gradients become their averages, with the same bits on all ranks, whatever the order in which each rank has
 *         them ready, on which threads, in which dtypes and modes; buckets are rebuilt in rank 0's order; parameters that
 *         some or all ranks do not use come out as torch has it; hooks reduce in the place of the average.
 * Method  gradients drawn from step, parameter and rank; the average is computed by every rank alone. */
#include <math.h>
#include <pthread.h>
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

static const int64_t numels[] = { 1000, 10, 65536, 256, 3, 0, 70000, 1, 5000, 5000 };
enum { N = sizeof numels / sizeof numels[0], LARGEST = 70000 };

typedef struct model {
    tt_ctx             *t;
    tutti_reducer      *r;
    tutti_dtype         dtypes[N];
    tutti_reducer_param params[N];
} model;

/* ---- numbers ---- */

static double drawn(int step, int i, int rank, int64_t k)
{
    const uint32_t x = (uint32_t)(step * 7919 + i * 104729 + rank * 1299709) + (uint32_t)k * 2654435761u;

    return (double)(int)(x >> 20 & 0x7ff) / 64.0 - 16.0; /* exact in f16 */
}

static void put(void *grad, tutti_dtype dtype, int64_t k, double value)
{
    if (dtype == TUTTI_F64)
        ((double *)grad)[k] = value;
    else if (dtype == TUTTI_F32)
        ((float *)grad)[k] = (float)value;
    else if (dtype == TUTTI_F16)
        ((uint16_t *)grad)[k] = tti_f16_from_f32((float)value);
    else
        ((uint16_t *)grad)[k] = tti_bf16_from_f32((float)value);
}

static double get(const void *grad, tutti_dtype dtype, int64_t k)
{
    if (dtype == TUTTI_F64)
        return ((const double *)grad)[k];
    if (dtype == TUTTI_F32)
        return (double)((const float *)grad)[k];
    return (double)(dtype == TUTTI_F16 ? tti_f32_from_f16(((const uint16_t *)grad)[k])
                                       : tti_f32_from_bf16(((const uint16_t *)grad)[k]));
}

static double precision(tutti_dtype dtype)
{
    return dtype == TUTTI_F64 ? 1e-15 : dtype == TUTTI_F32 ? 1e-7 : dtype == TUTTI_F16 ? 1e-3 : 8e-3;
}

static void draw(model *m, int step, int i)
{
    void   *grad = tutti_reducer_grad(m->r, i);
    int64_t k;

    for (k = 0; k < numels[i]; k++)
        put(grad, m->dtypes[i], k, drawn(step, i, m->t->rank, k));
}

static void expect_average(model *m, int step, int i, double loose)
{
    const void *grad = tutti_reducer_grad(m->r, i);
    double      want;
    int64_t     k;
    int         q;

    for (k = 0; k < numels[i]; k++) {
        for (want = 0.0, q = 0; q < m->t->size; q++)
            want += drawn(step, i, q, k);
        want /= m->t->size;
        if (fabs(get(grad, m->dtypes[i], k) - want) > loose * (1.0 + fabs(want)))
            fail_msg("step %d: gradient %d[%lld] is %.9g, not %.9g", step, i, (long long)k,
                     get(grad, m->dtypes[i], k), want);
    }
}

static void expect_same_bits(model *m, int i)
{
    const size_t bytes = (size_t)numels[i] * tutti_dtype_size(m->dtypes[i]);
    uint8_t     *copy = tt_alloc(m->t, bytes + 1);

    if (bytes > 0)
        memcpy(copy, tutti_reducer_grad(m->r, i), bytes);
    OK(tutti_broadcast_in_group(TUTTI_SPAN(copy, (int64_t)bytes), 0, m->t->group));
    if (bytes > 0)
        assert_memory_equal(copy, tutti_reducer_grad(m->r, i), bytes);
}

/* ---- models ---- */

static void make(model *m, tt_ctx *t, tutti_reducer_options *opts, bool mixed)
{
    static const tutti_dtype kinds[] = { TUTTI_F32, TUTTI_F16, TUTTI_F64, TUTTI_F32, TUTTI_BF16 };
    int                      i;

    *m = (model){ .t = t };
    for (i = 0; i < N; i++) {
        m->dtypes[i] = mixed ? kinds[i % 5] : TUTTI_F32;
        m->params[i] = (tutti_reducer_param){ .dtype = m->dtypes[i], .numel = numels[i] };
        if (!opts->gradient_as_bucket_view)
            m->params[i].grad = tt_alloc(t, (size_t)numels[i] * 8 + 1);
    }
    opts->group = t->group;
    OK(tutti_reducer_create(m->params, N, opts, &m->r));
}

/* Mark all in an order of this rank's own. */
static void mark_all(model *m, int step)
{
    const int stride = 3 + 4 * (m->t->rank % 2), begin = step + m->t->rank; /* 3 and 7 have no factor with N */
    int       k;

    for (k = 0; k < N; k++) {
        const int i = (begin + k * stride) % N;

        draw(m, step, i);
        OK(tutti_reducer_mark_ready(m->r, i));
    }
}

static void run_steps(model *m, int from, int n)
{
    int step, i;

    for (step = from; step < from + n; step++) {
        OK(tutti_reducer_prepare_for_forward(m->r));
        OK(tutti_reducer_prepare_for_backward(m->r, NULL, 0));
        mark_all(m, step);
        OK(tutti_reducer_finish(m->r));
        for (i = 0; i < N; i++) {
            expect_average(m, step, i, 2 * precision(m->dtypes[i]));
            expect_same_bits(m, i);
        }
    }
}

/* The same buckets everywhere, and parameter first before the other one, both f64: rank 0 had them so. */
static void expect_layout_of_rank_0(model *m, int first, int second)
{
    int32_t list[2 * N] = { 0 }, theirs[2 * N];
    int     b, k, n = 0;

    for (b = 0; b < tutti_reducer_bucket_count(m->r); b++) {
        const tutti_grad_bucket bucket = tutti_reducer_bucket(m->r, b);

        for (k = 0; k < bucket.n_params; k++, n++) {
            list[n] = bucket.params[k];
            list[N + n] = b;
        }
    }
    memcpy(theirs, list, sizeof list);
    OK(tutti_broadcast_in_group(TUTTI_SPAN(theirs, 2 * N), 0, m->t->group));
    assert_memory_equal(list, theirs, sizeof list);
    assert_int_equal(n, N);
    for (k = 0; list[k] != first && list[k] != second; k++)
        ;
    assert_int_equal(list[k], first);
}

static void average_in_mode(tt_ctx *t, int mode)
{
    static const int64_t  caps[] = { 100, 50000, 300000 };
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    model                 m;

    opts.gradient_as_bucket_view = mode & 1;
    opts.find_unused_parameters = mode & 2;
    opts.static_graph = mode & 4;
    if (mode & 8) {
        opts.bucket_caps = caps;
        opts.n_bucket_caps = 3;
    } else {
        opts.bucket_cap_bytes = 100000;
    }
    make(&m, t, &opts, true);
    run_steps(&m, 0, 4);
    expect_layout_of_rank_0(&m, opts.static_graph || opts.find_unused_parameters ? 7 : 2,
                            opts.static_graph || opts.find_unused_parameters ? 2 : 7);
    assert_true(tutti_reducer_bucket_count(m.r) >= 4);
    tutti_reducer_free(m.r);
}

static void averages_in_all_modes(tt_ctx *t)
{
    int mode;

    for (mode = 0; mode < 16; mode++)
        average_in_mode(t, mode);
}

/* ---- several threads ---- */

enum { THREADS = 4 };

typedef struct share {
    model *m;
    int    step, thread;
    bool   failed;
} share;

static void *mark_share(void *arg)
{
    share *s = arg;
    int    i;

    for (i = s->thread; i < N; i += THREADS) {
        draw(s->m, s->step, i);
        s->failed |= tutti_reducer_mark_ready(s->m->r, i) != TUTTI_OK;
    }
    return NULL;
}

static void marks_may_come_from_several_threads(tt_ctx *t)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    pthread_t             ids[THREADS];
    share                 shares[THREADS];
    model                 m;
    int                   step, i;

    opts.bucket_cap_bytes = 20000;
    make(&m, t, &opts, false);
    for (step = 0; step < 20; step++) {
        OK(tutti_reducer_prepare_for_backward(m.r, NULL, 0));
        for (i = 0; i < THREADS; i++) {
            shares[i] = (share){ .m = &m, .step = step, .thread = i };
            assert_int_equal(pthread_create(&ids[i], NULL, mark_share, &shares[i]), 0);
        }
        for (i = 0; i < THREADS; i++)
            pthread_join(ids[i], NULL);
        OK(tutti_reducer_finish(m.r));
        for (i = 0; i < THREADS; i++)
            assert_false(shares[i].failed);
        for (i = 0; i < N; i++)
            expect_average(&m, step, i, 2e-7);
    }
    tutti_reducer_free(m.r);
}

/* ---- accumulating ---- */

/* torch's example: 1 and 2, then 10 and 20 on top. */
static void the_whole_sum_is_averaged(tt_ctx *t)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   param = { .name = "w", .dtype = TUTTI_F32, .numel = 1 };
    tutti_reducer        *r = NULL;
    bool                  views = false;
    float                *grad;

    do {
        opts.group = t->group;
        opts.gradient_as_bucket_view = views;
        param.grad = views ? NULL : tt_floats(t, 1, 0.0f);
        OK(tutti_reducer_create(&param, 1, &opts, &r));
        tutti_reducer_set_sync(r, false);
        OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
        grad = tutti_reducer_grad(r, 0);
        *grad += t->rank == 0 ? 1.0f : 2.0f;
        OK(tutti_reducer_mark_ready(r, 0));
        OK(tutti_reducer_finish(r));
        assert_true(*grad == (t->rank == 0 ? 1.0f : 2.0f));
        tutti_reducer_set_sync(r, true);
        OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
        *grad += t->rank == 0 ? 10.0f : 20.0f;
        tutti_reducer_set_sync(r, false); /* too late for this step: prepare decides */
        OK(tutti_reducer_mark_ready(r, 0));
        OK(tutti_reducer_finish(r));
        assert_true(*grad == 16.5f);
        tutti_reducer_free(r);
        views = !views;
    } while (views);
}

/* ---- unused parameters ---- */

/* Parameter 0: all use it; 1: rank 0 alone; 2: nobody; 3: nobody in odd steps. */
static bool uses(const tt_ctx *t, int step, int i)
{
    return i == 0 || (i == 1 && t->rank == 0) || (i == 3 && step % 2 == 0);
}

static void unused_step(tt_ctx *t, tutti_reducer *r, int step)
{
    int unused[4], n = 0, i;

    for (i = 0; i < 4; i++) {
        float *grad = tutti_reducer_grad(r, i);

        if (!uses(t, step, i))
            unused[n++] = i;
        if (i != 2 && grad != NULL)
            *grad = 0.0f; /* the program's zero_grad; 2 has something old in it */
    }
    OK(tutti_reducer_prepare_for_backward(r, unused, n));
    for (i = 3; i >= 0; i--)
        if (uses(t, step, i)) {
            *(float *)tutti_reducer_grad(r, i) = 1.0f;
            OK(tutti_reducer_mark_ready(r, i));
        }
    OK(tutti_reducer_finish(r));
}

static void unused_in_mode(tt_ctx *t, bool views, int hook)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[4] = { { 0 } };
    tutti_reducer        *r = NULL;
    float                 stale = 1.0f / (float)(3 + t->rank);
    int                   step, i;

    opts.group = t->group;
    opts.find_unused_parameters = true;
    opts.gradient_as_bucket_view = views;
    for (i = 0; i < 4; i++)
        params[i] = (tutti_reducer_param){ .dtype = TUTTI_F32, .numel = 1, .grad = views ? NULL : tt_floats(t, 1, 0.0f) };
    OK(tutti_reducer_create(params, 4, &opts, &r));
    if (hook >= 0)
        OK(tutti_reducer_register_builtin_comm_hook(r, (tutti_builtin_comm_hook)hook));
    *(float *)tutti_reducer_grad(r, 2) = stale;
    for (step = 0; step < 4; step++) {
        unused_step(t, r, step);
        assert_true(*(float *)tutti_reducer_grad(r, 0) == 1.0f);
        assert_true(*(float *)tutti_reducer_grad(r, 1) == 1.0f / (float)t->size);
        assert_true(*(float *)tutti_reducer_grad(r, 2) == stale); /* to the bit: each rank's own */
        assert_true(*(float *)tutti_reducer_grad(r, 3) == (step % 2 == 0 ? 1.0f : 0.0f));
    }
    tutti_reducer_free(r);
}

static void unused_parameters(tt_ctx *t)
{
    unused_in_mode(t, false, -1);
    unused_in_mode(t, true, -1);
    unused_in_mode(t, false, TUTTI_HOOK_ALLREDUCE);
    unused_in_mode(t, true, TUTTI_HOOK_FP16_COMPRESS);
}

/* A gradient that is undefined on the rank that does not use it: the average is in the bucket. */
static void undefined_where_unused(tt_ctx *t)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[2] = { { .dtype = TUTTI_F64, .numel = 2 }, { .dtype = TUTTI_F64, .numel = 2 } };
    const int             first = 0, both[] = { 0, 1 };
    double                grad[2] = { 1.0, 3.0 };
    tutti_reducer        *r = NULL;

    opts.group = t->group;
    opts.find_unused_parameters = true;
    OK(tutti_reducer_create(params, 2, &opts, &r));
    if (t->rank == 0)
        OK(tutti_reducer_set_grad(r, 1, grad));
    OK(tutti_reducer_prepare_for_backward(r, t->rank == 0 ? &first : both, t->rank == 0 ? 1 : 2));
    if (t->rank == 0)
        OK(tutti_reducer_mark_ready(r, 1));
    OK(tutti_reducer_finish(r)); /* on the others nothing was marked at all */
    assert_null(tutti_reducer_grad(r, 0));
    assert_true(((double *)tutti_reducer_grad(r, 1))[1] == 3.0 / t->size);
    tutti_reducer_free(r);
}

/* Marked twice a step, one by rank 0 alone, one by nobody. */
static void static_graphs_count_marks(tt_ctx *t)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[3] = { { 0 } };
    tutti_reducer        *r = NULL;
    int                   step, i, k;

    opts.group = t->group;
    opts.static_graph = true;
    for (i = 0; i < 3; i++)
        params[i] = (tutti_reducer_param){ .dtype = TUTTI_F32, .numel = 1, .grad = tt_floats(t, 1, 7.0f) };
    OK(tutti_reducer_create(params, 3, &opts, &r));
    for (step = 0; step < 5; step++) {
        *(float *)tutti_reducer_grad(r, 0) = *(float *)tutti_reducer_grad(r, 1) = 0.0f;
        OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
        for (k = 0; k < 2; k++) {
            *(float *)tutti_reducer_grad(r, 0) += 1.0f;
            OK(tutti_reducer_mark_ready(r, 0));
        }
        if (t->rank == 0) {
            *(float *)tutti_reducer_grad(r, 1) = 1.0f;
            OK(tutti_reducer_mark_ready(r, 1));
        }
        OK(tutti_reducer_finish(r));
        assert_true(*(float *)tutti_reducer_grad(r, 0) == 2.0f);
        assert_true(*(float *)tutti_reducer_grad(r, 1) == 1.0f / (float)t->size);
        assert_true(*(float *)tutti_reducer_grad(r, 2) == 7.0f);
    }
    tutti_reducer_free(r);
}

/* ---- hooks ---- */

static void hooks_of_the_library(tt_ctx *t)
{
    static const double   loose[] = { 2e-7, 2e-3, 1.6e-2, 0.0, 0.07, 0.07 };
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    model                 m;
    int                   kind, step, i;
    double                local;

    for (kind = TUTTI_HOOK_ALLREDUCE; kind <= TUTTI_HOOK_QUANTIZE_PER_CHANNEL; kind++) {
        opts.gradient_as_bucket_view = kind % 2;
        opts.bucket_cap_bytes = 100000;
        make(&m, t, &opts, false);
        OK(tutti_reducer_register_builtin_comm_hook(m.r, (tutti_builtin_comm_hook)kind));
        assert_int_equal(tutti_reducer_register_builtin_comm_hook(m.r, TUTTI_HOOK_NOOP), TUTTI_E_STATE);
        assert_non_null(strstr(tutti_last_error(), "can only be called once"));
        for (step = 0; step < 3; step++) {
            OK(tutti_reducer_prepare_for_backward(m.r, NULL, 0));
            mark_all(&m, step);
            OK(tutti_reducer_finish(m.r));
            for (i = 0; i < N && kind != TUTTI_HOOK_NOOP; i++) {
                expect_average(&m, step, i, loose[kind]);
                expect_same_bits(&m, i);
            }
            local = get(tutti_reducer_grad(m.r, 2), TUTTI_F32, 5);
            if (kind == TUTTI_HOOK_NOOP)
                assert_true(local == drawn(step, 2, t->rank, 5));
        }
        tutti_reducer_free(m.r);
    }
}

/* Where the scale is a power of two every multiple of it comes through. Rank r has one of 2^-r, in rows of 512. */
static void quantized_exactly(tt_ctx *t)
{
    enum { EACH = 1200 };
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   param = { .dtype = TUTTI_F32, .numel = EACH, .grad = tt_floats(t, EACH, 0.0f) };
    float                *grad = param.grad, want;
    tutti_reducer        *r = NULL;
    int                   kind, k, q;

    opts.group = t->group;
    for (kind = TUTTI_HOOK_QUANTIZE_PER_TENSOR; kind <= TUTTI_HOOK_QUANTIZE_PER_CHANNEL; kind++) {
        OK(tutti_reducer_create(&param, 1, &opts, &r));
        OK(tutti_reducer_register_builtin_comm_hook(r, (tutti_builtin_comm_hook)kind));
        for (k = 0; k < EACH; k++) /* codes 0 .. 255, all of them in each row, the extremes included; zero is 55 */
            grad[k] = (float)(k % 512 % 256 - 55) / (float)(1 << t->rank);
        for (k = 1024; k < EACH; k++) /* the short row */
            grad[k] = (float)(k == 1024 ? -55 : 200) / (float)(1 << t->rank);
        OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
        OK(tutti_reducer_mark_ready(r, 0));
        OK(tutti_reducer_finish(r));
        for (k = 0; k < EACH; k++) {
            for (want = 0.0f, q = 0; q < t->size; q++)
                want += (float)(k > 1024 ? 200 : k == 1024 ? -55 : k % 512 % 256 - 55) / (float)(1 << q);
            if (grad[k] != want / (float)t->size)
                fail_msg("hook %d: element %d is %.9g, not %.9g", kind, k, (double)grad[k],
                         (double)(want / (float)t->size));
        }
        grad[7] = NAN;
        OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
        OK(tutti_reducer_mark_ready(r, 0));
        OK(tutti_reducer_finish(r));
        assert_true(isnan(grad[9])); /* not hidden */
        assert_int_equal(isnan(grad[600]) != 0, kind == TUTTI_HOOK_QUANTIZE_PER_TENSOR);
        tutti_reducer_free(r);
    }
}

/* The inner hook sees 16 bits, and takes their maximum in place, or elsewhere. */
static tutti_status run_max_of_16_bits(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_work  *work = NULL;
    tutti_status st;

    assert_int_equal(bucket->buffer.dtype, *(tutti_dtype *)state);
    st = tutti_all_reduce_async(bucket->buffer, TUTTI_MAX, bucket->group, &work);
    if (st == TUTTI_OK && bucket->index % 2)
        st = tutti_work_get_future(work, future_out);
    if (st == TUTTI_OK && bucket->index % 2 == 0) {
        st = tutti_work_wait(work);
        if (st == TUTTI_OK)
            st = tutti_future_create(future_out);
        if (st == TUTTI_OK)
            st = tutti_future_set_result(*future_out, NULL, NULL);
    }
    tutti_work_free(work);
    return st;
}

static void hooks_on_16_bits(tt_ctx *t)
{
    static const tutti_comm_hook hook = { .api = TUTTI_COMM_HOOK_API, .size = sizeof hook, .name = "max16",
                                          .run = run_max_of_16_bits };
    static tutti_dtype           dtypes[] = { TUTTI_F16, TUTTI_BF16 };
    tutti_reducer_options        opts = TUTTI_REDUCER_OPTIONS;
    double                       want, got;
    model                        m;
    int                          d, step, q;

    for (d = 0; d < 2; d++) {
        opts.bucket_cap_bytes = 50000;
        make(&m, t, &opts, false);
        assert_int_equal(tutti_reducer_register_compressed_comm_hook(m.r, TUTTI_F32, &hook, NULL), TUTTI_E_ARG);
        OK(tutti_reducer_register_compressed_comm_hook(m.r, dtypes[d], &hook, &dtypes[d]));
        for (step = 0; step < 3; step++) {
            OK(tutti_reducer_prepare_for_backward(m.r, NULL, 0));
            mark_all(&m, step);
            OK(tutti_reducer_finish(m.r));
            for (want = -1e9, q = 0; q < t->size; q++)
                want = fmax(want, drawn(step, 6, q, 999));
            got = get(tutti_reducer_grad(m.r, 6), TUTTI_F32, 999);
            assert_true(fabs(got - want) <= (d == 0 ? 0.0 : 0.05));
            expect_same_bits(&m, 6);
        }
        tutti_reducer_free(m.r);
    }
}

/* A hook of the program's: the maximum of what ranks have, in f64, in memory of its own. */
typedef struct seen {
    int calls, last_calls, freed;
    int next;
} seen;

static void free_spans(void *value)
{
    tutti_spans *spans = value;

    free(spans->at[0].data);
    free(spans);
}

static tutti_status run_max(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    seen         *s = state;
    tutti_spans  *spans = malloc(sizeof *spans + sizeof spans->at[0]);
    double       *wide = malloc((size_t)bucket->buffer.count * sizeof *wide + 1);
    tutti_future *future = NULL;
    tutti_status  st;
    int64_t       k;

    assert_int_equal(bucket->index, s->next);
    s->next = bucket->is_last ? 0 : s->next + 1;
    s->calls++;
    s->last_calls += bucket->is_last;
    for (k = 0; k < bucket->buffer.count; k++)
        wide[k] = (double)((float *)bucket->buffer.data)[k];
    *spans = (tutti_spans){ .at = (tutti_span *)(spans + 1), .n = 1 };
    spans->at[0] = TUTTI_SPAN(wide, bucket->buffer.count);
    st = tutti_all_reduce(spans->at[0], TUTTI_MAX, bucket->group);
    if (st == TUTTI_OK)
        st = tutti_future_create(&future);
    if (st == TUTTI_OK)
        st = tutti_future_set_result(future, spans, free_spans);
    *future_out = future;
    return st;
}

static void note_free(void *state)
{
    ((seen *)state)->freed++;
}

static void a_hook_of_the_program(tt_ctx *t)
{
    static const tutti_comm_hook hook = { .api = TUTTI_COMM_HOOK_API, .size = sizeof hook, .name = "max",
                                          .run = run_max, .free_state = note_free };
    tutti_reducer_options        opts = TUTTI_REDUCER_OPTIONS;
    tutti_comm_hook              wrong = hook;
    seen                         s = { 0 };
    model                        m;
    double                       want;
    int                          q, step, buckets = 0;

    opts.bucket_cap_bytes = 100000;
    opts.gradient_as_bucket_view = true;
    make(&m, t, &opts, false);
    wrong.api = 0;
    assert_int_equal(tutti_reducer_register_comm_hook(m.r, &wrong, &s), TUTTI_E_ARG);
    OK(tutti_reducer_register_comm_hook(m.r, &hook, &s));
    for (step = 0; step < 3; step++) {
        OK(tutti_reducer_prepare_for_backward(m.r, NULL, 0));
        buckets += tutti_reducer_bucket_count(m.r);
        mark_all(&m, step);
        OK(tutti_reducer_finish(m.r));
        for (want = -1e9, q = 0; q < t->size; q++)
            want = fmax(want, drawn(step, 6, q, 999));
        assert_true(get(tutti_reducer_grad(m.r, 6), TUTTI_F32, 999) == want); /* not divided */
    }
    tutti_reducer_free(m.r);
    assert_int_equal(s.calls, buckets);
    assert_int_equal(s.last_calls, 3);
    assert_int_equal(s.freed, 1);
}

/* ---- the first broadcast ---- */

static void parameters_of_one_rank_for_all(tt_ctx *t)
{
    const int   src = t->size - 1;
    tutti_span  spans[N];
    int64_t     caps[] = { 0, 1, 30000 }, k;
    tutti_dtype dtype;
    int         c, i;

    for (c = 0; c < 3; c++) {
        for (i = 0; i < N; i++) {
            dtype = i % 3 == 1 ? TUTTI_F64 : TUTTI_F32;
            spans[i] = tutti_span_of(tt_alloc(t, (size_t)numels[i] * 8 + 1), numels[i], dtype);
            for (k = 0; k < numels[i]; k++)
                put(spans[i].data, dtype, k, drawn(c, i, t->rank, k));
        }
        OK(tutti_broadcast_coalesced(spans, N, caps[c], src, t->group));
        for (i = 0; i < N; i++)
            for (k = 0; k < numels[i]; k++)
                if (get(spans[i].data, spans[i].dtype, k) != drawn(c, i, src, k))
                    fail_msg("cap %lld: span %d[%lld] is not rank %d's", (long long)caps[c], i, (long long)k, src);
    }
    assert_int_equal(tutti_broadcast_coalesced(NULL, 1, 0, 0, t->group), TUTTI_E_ARG);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(averages_in_all_modes, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(averages_in_all_modes, .ranks = 4, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(averages_in_all_modes, .ranks = 4, .transports = "shm", .hosts = 2, .limit_ms = 60000),
        TT_TEST(marks_may_come_from_several_threads, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(the_whole_sum_is_averaged, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(unused_parameters, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(unused_parameters, .ranks = 4, .transports = "shm"),
        TT_TEST(undefined_where_unused, .ranks = 4, .transports = "shm,threads"),
        TT_TEST(static_graphs_count_marks, .ranks = 4, .transports = "shm,tcp"),
        TT_TEST(hooks_of_the_library, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(quantized_exactly, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(hooks_on_16_bits, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(a_hook_of_the_program, .ranks = 4, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(parameters_of_one_rank_for_all, .ranks = 4, .transports = "shm,tcp"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
