/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hooks_golden_test.c
 * Goal    every communication hook gives the gradients of PyTorch's, on 2 and 4 ranks, over steps in which it keeps
 *         something: quantised to the bit; the others to what the order of sums leaves open.
 * Method  hooks.tsv against a run of make_hooks.py's settings here: gradients of the same hash, in the same buckets
 *         (parameters are marked in the order in which PyTorch had them), PowerSGD with the same columns drawn.
 *         A gradient is told by its length, sums of its elements with drawn signs, and a fingerprint of its bits: what is
 *         off in any direction is off in the sums. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fnv.h"
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                           \
    do {                                                   \
        if ((call) != TUTTI_OK)                            \
            fail_msg("%s: %s", #call, tutti_last_error()); \
    } while (0)

enum { N = 6, CAP = 4000, STEPS = 5, START = 2, SIGNS = 3, LARGEST = 1200 };
enum { COLUMNS = 1000, COMMON = 2000, SIGN = 3000, LINES = 4000, NAME = 32 };

static const int64_t shapes[N][4] = { { 16, 24 }, { 24 }, { 8, 3, 3, 3 }, { 5 }, { 16, 24 }, { 40, 30 } };
static const int     dims[N] = { 2, 1, 4, 1, 2, 2 };

/* ---- what both sides draw ---- */

static double drawn(int64_t step, int what, int rank, int64_t k)
{
    uint32_t x = (uint32_t)(step * 7919 + what * 104729 + rank * 1299709) + (uint32_t)k * 2654435761u;

    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    x ^= x >> 16;
    return (double)(x >> 8) / 8388608.0 - 1.0;
}

static int64_t numel(int i)
{
    int64_t n = 1;
    int     d;

    for (d = 0; d < dims[i]; d++)
        n *= shapes[i][d];
    return n;
}

static void draw_columns(void *ctx, const tutti_powersgd_matrix *matrix, double *q)
{
    int64_t k;

    (void)ctx;
    for (k = 0; k < matrix->rows * matrix->cols; k++)
        q[k] = drawn(matrix->iter, COLUMNS + matrix->index, 0, k);
}

/* ---- what PyTorch had ---- */

typedef struct line {
    char     hook[NAME];
    int      size, rank, step, i;
    double   norm, sums[SIGNS];
    uint64_t print;
} line;

typedef struct golden {
    line *at;     /* [n] */
    int   n;
    int   order[N], bucket[N]; /* of the second step: parameters, and which bucket each of them is in */
    int   n_order;
} golden;

static void read_bucket(golden *g, int size, const char *text)
{
    int of, step, b, used, i;

    if (sscanf(text, "bucket\t%d\t%d\t%d\t%n", &of, &step, &b, &used) != 3 || of != size || step != 1)
        return;
    for (text += used; sscanf(text, "%d%n", &i, &used) == 1; text += used) {
        assert_in_range(g->n_order, 0, N - 1);
        g->order[g->n_order] = i;
        g->bucket[g->n_order++] = b;
    }
}

static golden read_golden(tt_ctx *t)
{
    FILE  *f = fopen(GOLDEN, "r");
    golden g = { .at = tt_alloc(t, LINES * sizeof(line)) };
    char   text[512];

    assert_non_null(f);
    while (fgets(text, sizeof text, f) != NULL) {
        line *l = &g.at[g.n];

        read_bucket(&g, t->size, text);
        g.n += sscanf(text, "grad\t%31[^\t]\t%d\t%d\t%d\t%d\t%lf\t%lf\t%lf\t%lf\t%lx", l->hook, &l->size, &l->rank, &l->step,
                      &l->i, &l->norm, &l->sums[0], &l->sums[1], &l->sums[2], &l->print) == 10;
        assert_in_range(g.n, 0, LINES - 1);
    }
    fclose(f);
    assert_int_equal(g.n_order, N);
    return g;
}

/* Of rank 0, where all have the same. */
static const line *find(const golden *g, const tt_ctx *t, const char *hook, int step, int i)
{
    const line *best = NULL;
    int         n;

    for (n = 0; n < g->n; n++) {
        const line *l = &g->at[n];

        if (strcmp(l->hook, hook) == 0 && l->size == t->size && l->step == step && l->i == i &&
            (l->rank == t->rank || (l->rank == 0 && best == NULL)))
            best = l;
    }
    if (best == NULL)
        fail_msg("hooks.tsv has no '%s' of %d ranks, step %d, parameter %d", hook, t->size, step, i);
    return best;
}

/* ---- comparing ---- */

/* How far off, in lengths; and whether every bit is the same. */
static double compare(const line *want, const float *grad, bool *same_out)
{
    double  norm = 0.0, off, sum;
    int64_t k;
    int     s;

    for (k = 0; k < numel(want->i); k++)
        norm += (double)grad[k] * (double)grad[k];
    off = fabs(sqrt(norm) - want->norm);
    for (s = 0; s < SIGNS; s++) {
        for (sum = 0.0, k = 0; k < numel(want->i); k++)
            sum += drawn(s, SIGN + want->i, 0, k) < 0.0 ? -(double)grad[k] : (double)grad[k];
        off = fmax(off, fabs(sum - want->sums[s]) / 3.0); /* one of three deviations is rare where |off| is one */
    }
    *same_out = tti_fnv(TTI_FNV_BEGIN, grad, (size_t)numel(want->i) * sizeof *grad) == want->print;
    return off / want->norm;
}

/* ---- hooks ---- */

static void use_powersgd(tutti_reducer *r, const char *hook)
{
    tutti_powersgd_options opts = TUTTI_POWERSGD_OPTIONS;
    tutti_powersgd        *s = NULL;
    int                    rank, feedback, warm;
    char                   form[NAME];

    assert_int_equal(sscanf(hook, "%31[^_]_k%d_ef%d_ws%d", form, &rank, &feedback, &warm), 4);
    opts.matrix_approximation_rank = rank;
    opts.start_iter = START;
    opts.no_error_feedback = !feedback;
    opts.no_warm_start = !warm;
    opts.batched = strcmp(form, "batched") == 0;
    opts.orthogonalization_epsilon = strcmp(form, "epsilon") == 0 ? 0.01 : 0.0;
    opts.draw = draw_columns;
    OK(tutti_powersgd_create(r, &opts, &s));
    OK(tutti_reducer_register_comm_hook(r, tutti_powersgd_hook(s), s));
}

static void use_post_local(tutti_reducer *r, tutti_group *near, bool own)
{
    tutti_post_local_hook_options opts = TUTTI_POST_LOCAL_HOOK_OPTIONS;
    tutti_post_local_hook        *s = NULL;

    opts.start_iter = START;
    opts.subgroup = near;
    opts.no_gradient_all_reduce = own;
    OK(tutti_post_local_hook_create(r, &opts, &s));
    OK(tutti_reducer_register_comm_hook(r, tutti_post_local_hook_table(s), s));
}

static tutti_status average(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(bucket->buffer, TUTTI_AVG, bucket->group, &work);

    (void)state;
    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    tutti_work_free(work);
    return st;
}

static void use(tutti_reducer *r, const char *hook, tutti_group *near)
{
    static const tutti_comm_hook plain = { .api = TUTTI_COMM_HOOK_API, .size = sizeof plain, .name = "mean", .run = average };
    static const struct {
        const char             *hook;
        tutti_builtin_comm_hook kind;
    } kinds[] = { { "allreduce", TUTTI_HOOK_ALLREDUCE }, { "fp16", TUTTI_HOOK_FP16_COMPRESS },
                  { "bf16", TUTTI_HOOK_BF16_COMPRESS }, { "quantize_tensor", TUTTI_HOOK_QUANTIZE_PER_TENSOR },
                  { "quantize_channel", TUTTI_HOOK_QUANTIZE_PER_CHANNEL } };
    size_t k;

    for (k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (strcmp(hook, kinds[k].hook) == 0) {
            OK(tutti_reducer_register_builtin_comm_hook(r, kinds[k].kind));
            return;
        }
    if (strcmp(hook + 4, "_wrapper") == 0)
        OK(tutti_reducer_register_compressed_comm_hook(r, hook[0] == 'f' ? TUTTI_F16 : TUTTI_BF16, &plain, NULL));
    else if (strncmp(hook, "post_local", 10) == 0)
        use_post_local(r, near, hook[10] != '\0');
    else
        use_powersgd(r, hook);
}

/* ---- a run ---- */

static tutti_reducer *make(tt_ctx *t)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[N];
    tutti_reducer        *r = NULL;
    int                   i;

    for (i = 0; i < N; i++)
        params[i] = (tutti_reducer_param){ .dtype = TUTTI_F32, .numel = numel(i), .ndim = dims[i], .sizes = shapes[i],
                                           .grad = tt_floats(t, LARGEST, 0.0f) };
    opts.group = t->group;
    opts.bucket_cap_bytes = CAP;
    OK(tutti_reducer_create(params, N, &opts, &r));
    return r;
}

static void expect_buckets(const golden *g, tutti_reducer *r)
{
    int b, k, n = 0;

    for (b = 0; b < tutti_reducer_bucket_count(r); b++)
        for (k = 0; k < tutti_reducer_bucket(r, b).n_params; k++, n++) {
            assert_int_equal(tutti_reducer_bucket(r, b).params[k], g->order[n]);
            assert_int_equal(b, g->bucket[n]);
        }
    assert_int_equal(n, N);
}

static void step(const golden *g, tt_ctx *t, tutti_reducer *r, int number)
{
    int64_t k;
    int     n, i;

    OK(tutti_reducer_prepare_for_forward(r));
    if (number > 0)
        expect_buckets(g, r);
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    for (n = 0; n < N; n++) {
        i = g->order[n];
        for (k = 0; k < numel(i); k++)
            ((float *)tutti_reducer_grad(r, i))[k] =
                (float)(drawn(0, COMMON + i, 0, k) + 0.5 * drawn(number, i, t->rank, k));
        OK(tutti_reducer_mark_ready(r, i));
    }
    OK(tutti_reducer_finish(r));
}

/* Gradients within loose lengths, and each bit where exact. */
static void compare_hook(const golden *g, tt_ctx *t, const char *hook, double loose, bool exact, tutti_group *near)
{
    tutti_reducer *r = make(t);
    double         worst = 0.0;
    int            number, i, n_same = 0;
    bool           same;

    use(r, hook, near);
    for (number = 0; number < STEPS; number++) {
        step(g, t, r, number);
        for (i = 0; i < N; i++) {
            const double off = compare(find(g, t, hook, number, i), tutti_reducer_grad(r, i), &same);

            worst = fmax(worst, off);
            n_same += same;
            if (!(off <= loose) || (exact && !same))
                fail_msg("%s, %d ranks, step %d, gradient %d: off by %.2g of its length%s", hook, t->size, number, i, off,
                         same ? "" : ", and other bits");
        }
    }
    if (t->rank == 0)
        print_message("%-22s %d ranks: off by %.1e at most, %d of %d the same bits\n", hook, t->size, worst, n_same,
                      STEPS * N);
    tutti_reducer_free(r);
}

/* Sums of two numbers have one order. */
static void plain_hooks(tt_ctx *t)
{
    const golden g = read_golden(t);
    const bool   two = t->size == 2;
    tutti_group *near = NULL;

    OK(tutti_split_group_by_color(t->group, t->rank / (t->size / 2), NULL, &near));
    compare_hook(&g, t, "allreduce", 1e-6, two, NULL);
    compare_hook(&g, t, "fp16", two ? 1e-6 : 2e-3, two, NULL);
    compare_hook(&g, t, "bf16", two ? 1e-6 : 2e-2, two, NULL);
    compare_hook(&g, t, "fp16_wrapper", two ? 1e-6 : 2e-3, two, NULL);
    compare_hook(&g, t, "bf16_wrapper", two ? 1e-6 : 2e-2, two, NULL);
    compare_hook(&g, t, "quantize_tensor", 1e-6, true, NULL);
    compare_hook(&g, t, "quantize_channel", 1e-6, true, NULL);
    compare_hook(&g, t, "post_local", 1e-6, two, near);
    compare_hook(&g, t, "post_local_own", 1e-6, two, near);
    OK(tutti_destroy_process_group(near));
}

static void powersgd(tt_ctx *t)
{
    const golden g = read_golden(t);
    char         hook[2 * NAME];
    int          k, modes;

    for (k = 1; k <= 4; k *= 2)
        for (modes = 0; modes < 4; modes++) {
            snprintf(hook, sizeof hook, "power_k%d_ef%d_ws%d", k, modes / 2, modes % 2);
            compare_hook(&g, t, hook, 1e-5, false, NULL);
            snprintf(hook, sizeof hook, "batched_k%d_ef%d_ws%d", k, modes / 2, modes % 2);
            if (k < 4)
                compare_hook(&g, t, hook, 1e-5, false, NULL);
        }
    compare_hook(&g, t, "stacked_k2_ef1_ws1", 1e-5, false, NULL);
    compare_hook(&g, t, "epsilon_k2_ef1_ws1", 1e-5, false, NULL);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(plain_hooks, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(plain_hooks, .ranks = 4, .limit_ms = 60000),
        TT_TEST(powersgd, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(powersgd, .ranks = 4, .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
