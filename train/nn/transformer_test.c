/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transformer_test.c
 * Goal    softmax, norms, embedding, cross entropy and attention have the values and gradients that their
 *         formulas say, from any memory, at the corners, too; and the modules around them do.
 * Method  gradients by differences in f64, see gradcheck.h. Attention and cross entropy against the plain
 *         forms, made of simple operations; f32 against f64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tutti/nn.h>

#include "autograd/gradcheck.h"
#include "nn/nn.h"
#include "tensor/checks.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* The largest distance of two tensors of one shape; NaN if an element is. */
static double distance(tutti_tensor *a, tutti_tensor *b)
{
    tutti_tensor *x = tutti_tensor_to(tutti_tensor_contiguous(a), TUTTI_F64);
    tutti_tensor *y = tutti_tensor_to(tutti_tensor_contiguous(b), TUTTI_F64);
    const double *p = tutti_tensor_data(x), *q = tutti_tensor_data(y);
    double far = 0.0;

    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(tutti_tensor_numel(x), tutti_tensor_numel(y));
    for (int64_t i = 0; i < tutti_tensor_numel(x); i++)
        if (!(fabs(p[i] - q[i]) <= far))
            far = fabs(p[i] - q[i]);
    return far;
}

/* ---- softmax ---------------------------------------------------------------------------------- */

typedef struct along {
    int dim;
    bool log_of;
} along;

static tutti_tensor *call_softmax(tutti_tensor *const *in, const void *ctx)
{
    const along *a = ctx;

    return a->log_of ? tutti_tensor_log_softmax(in[0], a->dim)
                     : tutti_tensor_softmax(in[0], a->dim);
}

static tutti_tensor *call_softmax_of_view(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *view = tutti_tensor_narrow(tutti_tensor_transpose(in[0], 0, 2), 1, 1, 2);

    return call_softmax(&view, ctx);
}

static void softmax_gradients(void **state)
{
    tutti_tensor *x = tt_leaf(-2, 2, 3, SHAPE(2, 3, 4)), *scalar = tt_leaf(-2, 2, 0, NULL);
    tutti_tensor *none = tt_leaf(0, 1, 2, SHAPE(3, 0));

    (void)state;
    for (int i = 0; i < 8; i++) {
        const along a = { i / 2 - 1, i % 2 != 0 };

        tt_gradcheck("softmax", call_softmax, &a, &x, 1);
        tt_gradcheck("softmax of a view", call_softmax_of_view, &a, &x, 1);
        if (a.dim < 1)
            tt_gradcheck("softmax of a scalar", call_softmax, &a, &scalar, 1);
        if (a.dim < 2)
            assert_int_equal(tutti_tensor_numel(call_softmax(&none, &a)), 0);
    }
    assert_true(item(tutti_tensor_softmax(scalar, -1)) == 1.0);
    assert_null(tutti_tensor_softmax(x, 3));
    assert_null(tutti_tensor_softmax(NULL, 0));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_null(tutti_tensor_softmax(tutti_tensor_zeros(TUTTI_I64, 1, SHAPE(2)), 0));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

/* Rows longer than a block, in f32, against f64; sums of rows are 1. */
static void softmax_of_long_rows(void **state)
{
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F64, 2, SHAPE(3, 5000), NULL);
    tutti_tensor *f = tutti_tensor_to(tutti_tensor_mul_scalar(x, 5.0), TUTTI_F32);
    tutti_tensor *y = tutti_tensor_softmax(f, 1), *wide = tutti_tensor_to(f, TUTTI_F64);
    const int last = 1;
    const double *sums =
        tutti_tensor_data(tutti_tensor_sum(tutti_tensor_to(y, TUTTI_F64), &last, 1, false));

    (void)state;
    assert_true(distance(y, tutti_tensor_softmax(wide, 1)) < 1e-7);
    assert_true(distance(tutti_tensor_log_softmax(f, 1), tutti_tensor_log_softmax(wide, 1)) < 2e-5);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(sums[i] - 1.0) < 1e-6);
}

static void softmax_of_infinities(void **state)
{
    const float data[6] = { -INFINITY, 0, 0, -INFINITY, -INFINITY, -INFINITY };
    tutti_tensor *x = tutti_tensor_from_data(data, TUTTI_F32, 2, SHAPE(2, 3));
    const float *y = tutti_tensor_data(tutti_tensor_softmax(x, 1));

    (void)state;
    assert_true(y[0] == 0.0f && y[1] == 0.5f && y[2] == 0.5f);
    assert_true(isnan(y[3])); /* as in torch */
}

/* ---- cross entropy ---------------------------------------------------------------------------- */

typedef struct loss_case {
    tutti_tensor *target, *weight;
    tutti_reduction reduction;
    double smoothing;
} loss_case;

static tutti_tensor *call_entropy(tutti_tensor *const *in, const void *ctx)
{
    const loss_case *c = ctx;
    tutti_loss_options opts = TUTTI_LOSS_OPTIONS;

    opts.weight = c->weight;
    opts.reduction = c->reduction;
    opts.label_smoothing = c->smoothing;
    return tutti_tensor_cross_entropy(in[0], c->target, &opts);
}

/* By definition, one number: [N, C] only, mean or sum. */
static double entropy_by_definition(tutti_tensor *x, const loss_case *c, const int64_t *t)
{
    const int64_t n = tutti_tensor_size(x, 0), classes = tutti_tensor_size(x, 1);
    const double *at = tutti_tensor_data(x);
    const double *w = tutti_tensor_data(c->weight);
    double loss = 0.0, total = 0.0;

    for (int64_t i = 0; i < n; i++, at += classes) {
        double sum = 0.0, all = 0.0;

        if (t[i] == -100)
            continue;
        for (int64_t k = 0; k < classes; k++)
            sum += exp(at[k]);
        for (int64_t k = 0; k < classes; k++)
            all -= (w != NULL ? w[k] : 1.0) * (at[k] - log(sum));
        loss -= (1 - c->smoothing) * (w != NULL ? w[t[i]] : 1.0) * (at[t[i]] - log(sum));
        loss += c->smoothing / (double)classes * all;
        total += w != NULL ? w[t[i]] : 1.0;
    }
    return c->reduction == TUTTI_REDUCTION_MEAN ? loss / total : loss;
}

static void cross_entropy_by_definition(void **state)
{
    const int64_t t[6] = { 2, 0, -100, 3, 3, 1 };
    tutti_tensor *flat = tutti_tensor_from_data(t, TUTTI_I64, 1, SHAPE(6));
    tutti_tensor *plane = tutti_tensor_reshape(flat, 2, SHAPE(2, 3));
    tutti_tensor *w = tutti_tensor_arange(TUTTI_F64, 0.5, 2.5, 0.5);
    tutti_tensor *x1 = tt_leaf(-2, 2, 2, SHAPE(6, 4)), *x2 = tt_leaf(-2, 2, 3, SHAPE(2, 4, 3));
    tutti_tensor *x0 = tt_leaf(-2, 2, 1, SHAPE(4)), *one = tutti_tensor_select(flat, 0, 0);

    (void)state;
    for (int i = 0; i < 12; i++) {
        loss_case c = { flat, i & 1 ? w : NULL, (tutti_reduction)(i / 4), i & 2 ? 0.3 : 0.0 };

        tt_gradcheck("cross_entropy", call_entropy, &c, &x1, 1);
        if (c.reduction != TUTTI_REDUCTION_NONE)
            assert_true(fabs(item(call_entropy(&x1, &c)) - entropy_by_definition(x1, &c, t)) <
                        1e-12);
        c.target = plane;
        tt_gradcheck("cross_entropy of planes", call_entropy, &c, &x2, 1);
        c.target = one;
        tt_gradcheck("cross_entropy of one", call_entropy, &c, &x0, 1);
    }
}

static void cross_entropy_in_f32_and_at_corners(void **state)
{
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(9, 3000), NULL);
    tutti_tensor *t = tutti_tensor_randint(0, 3000, 1, SHAPE(9), NULL);
    tutti_tensor *far =
        tutti_tensor_from_data((const float[]){ 1e4f, -1e4f, 0 }, TUTTI_F32, 2, SHAPE(1, 3));
    tutti_tensor *second = tutti_tensor_ones(TUTTI_I64, 1, SHAPE(1));
    tutti_loss_options opts = TUTTI_LOSS_OPTIONS;
    double wide;

    (void)state;
    wide = item(tutti_tensor_cross_entropy(tutti_tensor_to(x, TUTTI_F64), t, NULL));
    assert_true(fabs(item(tutti_tensor_cross_entropy(x, t, NULL)) - wide) < 1e-6 * wide);
    assert_true(item(tutti_tensor_cross_entropy(far, second, NULL)) == 2e4);
    opts.has_ignore_index = true;
    opts.ignore_index = 1;
    assert_true(isnan(item(tutti_tensor_cross_entropy(far, second, &opts))));
    opts.label_smoothing = 1.5;
    assert_null(tutti_tensor_cross_entropy(far, second, &opts));
    opts.label_smoothing = 0.5;
    opts.weight = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F32, 1, SHAPE(3)), true);
    assert_null(tutti_tensor_cross_entropy(far, second, &opts));
    assert_null(
        tutti_tensor_cross_entropy(far, tutti_tensor_full(TUTTI_I64, 1, SHAPE(1), 3.0), NULL));
    assert_non_null(strstr(tutti_last_error(), "cross_entropy: target 3 at 0 is none of 3"));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    opts.weight = NULL;
    assert_null(tutti_tensor_nll_loss(far, second, &opts));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

/* Rows that do not count get zero gradients, even of scores that are NaN. */
static void ignored_rows_get_nothing(void **state)
{
    const float data[4] = { NAN, 1, 1, 1 };
    tutti_tensor *x =
        tutti_tensor_requires_grad_(tutti_tensor_from_data(data, TUTTI_F32, 2, SHAPE(2, 2)), true);
    tutti_tensor *t = tutti_tensor_from_data(SHAPE(-100, 0), TUTTI_I64, 1, SHAPE(2));
    const float *g;

    (void)state;
    assert_int_equal(tutti_tensor_backward(tutti_tensor_cross_entropy(x, t, NULL)), TUTTI_OK);
    g = tutti_tensor_data(tutti_tensor_grad(x));
    assert_true(g[0] == 0.0f && g[1] == 0.0f && g[2] == -0.5f && g[3] == 0.5f);
}

/* ---- norms ------------------------------------------------------------------------------------ */

typedef struct norm_case {
    int nd;
    bool rms;
    double eps;
} norm_case;

static tutti_tensor *call_norm(tutti_tensor *const *in, const void *ctx)
{
    const norm_case *c = ctx;
    const int64_t shape[2] = { 3, 4 };

    if (c->rms)
        return tutti_tensor_rms_norm(in[0], c->nd, shape + 2 - c->nd, in[1], c->eps);
    return tutti_tensor_layer_norm(in[0], c->nd, shape + 2 - c->nd, in[1], in[2], c->eps);
}

static tutti_tensor *call_norm_of_view(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *moved[3] = { tutti_tensor_permute(in[0], (const int[]){ 1, 2, 0 }),
                               in[1] != NULL ? tutti_tensor_transpose(in[1], 0, 1) : NULL,
                               in[2] != NULL ? tutti_tensor_transpose(in[2], 0, 1) : NULL };

    return call_norm(moved, ctx);
}

/* A bias without a weight. */
static tutti_tensor *call_biased(tutti_tensor *const *in, const void *ctx)
{
    return call_norm((tutti_tensor *[]){ in[0], NULL, in[1] }, ctx);
}

static void norm_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const norm_case c = { i & 1 ? 2 : 1, (i & 2) != 0, 1e-5 };
        const int64_t shape[2] = { 3, 4 };
        tutti_tensor *in[3] = { tt_leaf(-1, 1, 3, SHAPE(2, 3, 4)), NULL, NULL };
        tutti_tensor *w = tt_leaf(0.5, 1.5, c.nd, shape + 2 - c.nd);
        tutti_tensor *b = tt_leaf(-1, 1, c.nd, shape + 2 - c.nd);

        tt_gradcheck("norm", call_norm, &c, in, 1);
        in[1] = w;
        tt_gradcheck("norm with weight", call_norm, &c, in, 2);
        if (c.rms)
            continue;
        in[2] = b;
        tt_gradcheck("norm with both", call_norm, &c, in, 3);
        in[1] = b;
        tt_gradcheck("norm with bias", call_biased, &c, in, 2);
        in[1] = tutti_tensor_ones(TUTTI_F64, c.nd, shape + 2 - c.nd);
        in[0] = tutti_tensor_ones(TUTTI_F64, 3, SHAPE(2, 3, 4));
        tt_gradcheck("norm that only the bias learns from", call_norm, &c, in, 3);
    }
}

static void norms_of_views(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const norm_case c = { 2, i != 0, 1e-3 };
        tutti_tensor *in[3] = { tt_leaf(-1, 1, 3, SHAPE(4, 2, 3)),
                                tt_leaf(0.5, 1.5, 2, SHAPE(4, 3)), tt_leaf(-1, 1, 2, SHAPE(4, 3)) };

        tt_gradcheck("norm of views", call_norm_of_view, &c, in, i == 0 ? 3 : 2);
    }
}

/* Long rows far from 0 in f32, where a careless variance is lost; against f64. */
static void norms_by_definition(void **state)
{
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(3, 3000), NULL), *wide, *y, *h, *var;
    const int last = 1;

    (void)state;
    x = tutti_tensor_add_scalar(x, 1000.0);
    wide = tutti_tensor_to(x, TUTTI_F64);
    var = tutti_tensor_var(wide, &last, 1, 0.0, true);
    h = tutti_tensor_sub(wide, tutti_tensor_mean(wide, &last, 1, true));
    h = tutti_tensor_mul(h, tutti_tensor_rsqrt(tutti_tensor_add_scalar(var, 1e-5)));
    y = tutti_tensor_layer_norm(x, 1, SHAPE(3000), NULL, NULL, 1e-5);
    assert_true(distance(y, h) < 2e-4);
    assert_true(distance(tutti_tensor_layer_norm(wide, 1, SHAPE(3000), NULL, NULL, 1e-5), h) <
                1e-12);
    var = tutti_tensor_mean(tutti_tensor_mul(wide, wide), &last, 1, true);
    h = tutti_tensor_div(wide, tutti_tensor_sqrt(var));
    assert_true(distance(tutti_tensor_rms_norm(x, 1, SHAPE(3000), NULL, -1.0), h) < 1e-6);
}

static void norm_refusals(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(2, 3));
    tutti_tensor *w = tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(2));

    (void)state;
    assert_null(tutti_tensor_layer_norm(x, 1, SHAPE(2), NULL, NULL, 1e-5));
    assert_non_null(strstr(tutti_last_error(), "layer_norm: input [2, 3] does not end in [2]"));
    assert_null(tutti_tensor_layer_norm(x, 1, SHAPE(3), w, NULL, 1e-5));
    assert_null(tutti_tensor_rms_norm(x, 3, SHAPE(1, 2, 3), NULL, 1e-5));
    assert_null(tutti_tensor_rms_norm(NULL, 1, SHAPE(3), NULL, 1e-5));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    x = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(0, 3));
    assert_int_equal(tutti_tensor_numel(tutti_tensor_rms_norm(x, 1, SHAPE(3), NULL, 0.0)), 0);
}

/* ---- embedding -------------------------------------------------------------------------------- */

static tutti_tensor *call_embedding(tutti_tensor *const *in, const void *ctx)
{
    return tutti_tensor_embedding(in[0], ctx, -1);
}

static void embeddings(void **state)
{
    const int64_t at[6] = { 3, 0, 1, 3, 3, 1 };
    tutti_tensor *index = tutti_tensor_from_data(at, TUTTI_I64, 2, SHAPE(2, 3)), *y;
    tutti_tensor *w = tt_leaf(-1, 1, 2, SHAPE(4, 2));
    const double *g;

    (void)state;
    tt_gradcheck("embedding", call_embedding, index, &w, 1);
    tt_gradcheck("embedding by a view", call_embedding, tutti_tensor_transpose(index, 0, 1), &w, 1);
    tt_gradcheck("embedding by one", call_embedding,
                 tutti_tensor_select(tutti_tensor_select(index, 0, 0), 0, 0), &w, 1);
    y = tutti_tensor_embedding(w, index, 3);
    assert_int_equal(tutti_tensor_dim(y), 3);
    assert_memory_equal(tutti_tensor_data(tutti_tensor_select(tutti_tensor_select(y, 0, 0), 0, 0)),
                        (const double *)tutti_tensor_data(w) + 6, 2 * sizeof(double));
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    g = tutti_tensor_data(tutti_tensor_grad(w));
    assert_true(g[0] == 1.0 && g[2] == 2.0 && g[4] == 0.0 && g[6] == 0.0); /* row 3 is padding */
    assert_null(tutti_tensor_embedding(w, tutti_tensor_full(TUTTI_I64, 1, SHAPE(2), 4.0), -1));
    assert_non_null(strstr(tutti_last_error(), "embedding: index 4 at 0 is not within 0 .. 3"));
    assert_null(tutti_tensor_embedding(w, index, 4));
    assert_null(tutti_tensor_embedding(NULL, index, -1));
    assert_null(tutti_tensor_embedding(w, NULL, -1));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_null(tutti_tensor_embedding(w, w, -1));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

/* ---- attention -------------------------------------------------------------------------------- */

typedef struct attention_case {
    int nd;
    int64_t lead[2], t, s, e, v;
    bool causal;
    double p, scale;
} attention_case;

/* Dropout draws its stream here, so that every call sees the same one. */
static tutti_tensor *blocked(tutti_tensor *const *in, const void *ctx)
{
    const attention_case *c = ctx;
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;

    opts.is_causal = c->causal;
    opts.dropout_p = c->p;
    opts.scale = c->scale;
    tutti_manual_seed(77);
    return tutti_tensor_scaled_dot_product_attention(in[0], in[1], in[2], &opts);
}

/* What is kept, as a factor of the probabilities. */
static tutti_tensor *kept(const attention_case *c, const tutti_tensor *like)
{
    const int64_t n = tutti_tensor_numel(like);
    tutti_tensor *flat = tutti_tensor_empty(TUTTI_U8, 1, &n);
    int64_t shape[4];

    tutti_manual_seed(77);
    tti_attention_keep(tutti_generator_random64(NULL), 0, n, c->p, tutti_tensor_data(flat));
    for (int d = 0; d < tutti_tensor_dim(like); d++)
        shape[d] = tutti_tensor_size(like, d);
    flat = tutti_tensor_view(flat, tutti_tensor_dim(like), shape);
    return tutti_tensor_mul_scalar(tutti_tensor_to(flat, tutti_tensor_dtype(like)),
                                   1.0 / (1.0 - c->p));
}

/* softmax(q k' scale + mask) v, all of it at once. */
static tutti_tensor *plain(tutti_tensor *const *in, const void *ctx)
{
    const attention_case *c = ctx;
    const double scale = c->scale != 0.0 ? c->scale : 1.0 / sqrt((double)c->e);
    tutti_tensor *s = tutti_tensor_matmul(in[0], tutti_tensor_transpose(in[1], -2, -1));
    tutti_tensor *hidden = tutti_tensor_ones(TUTTI_BOOL, 2, SHAPE(c->t, c->s));

    s = tutti_tensor_mul_scalar(s, scale);
    if (c->causal)
        s = tutti_tensor_masked_fill(s, tutti_tensor_triu(hidden, 1), -INFINITY);
    s = tutti_tensor_softmax(s, -1);
    if (c->p > 0.0)
        s = tutti_tensor_mul(s, kept(c, s));
    return tutti_tensor_matmul(s, in[2]);
}

static tutti_tensor *operand(const attention_case *c, tutti_dtype dtype, int64_t rows,
                             int64_t length)
{
    int64_t shape[4];
    tutti_tensor *t;

    memcpy(shape, c->lead, sizeof c->lead);
    shape[c->nd - 2] = rows;
    shape[c->nd - 1] = length;
    t = tutti_tensor_to(tutti_tensor_randn(TUTTI_F64, c->nd, shape, NULL), dtype);
    return tutti_tensor_requires_grad_(t, true);
}

static void operands(const attention_case *c, tutti_dtype dtype, tutti_tensor **in)
{
    in[0] = operand(c, dtype, c->t, c->e);
    in[1] = operand(c, dtype, c->s, c->e);
    in[2] = operand(c, dtype, c->s, c->v);
}

static const attention_case small[] = {
    { 4, { 2, 2 }, 5, 5, 3, 3, true, 0.0, 0.0 }, { 4, { 1, 2 }, 3, 6, 2, 4, false, 0.0, 0.7 },
    { 3, { 2 }, 6, 3, 4, 2, true, 0.0, 0.0 },    { 2, { 0 }, 4, 4, 1, 1, true, 0.4, 0.0 },
    { 3, { 3 }, 2, 7, 3, 3, false, 0.3, 0.0 },   { 3, { 2 }, 1, 1, 2, 2, true, 0.0, 0.0 },
};

static void attention_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        tutti_tensor *in[3];

        operands(&small[i], TUTTI_F64, in);
        assert_true(distance(blocked(in, &small[i]), plain(in, &small[i])) < 1e-13);
        tt_gradcheck("attention", blocked, &small[i], in, 3);
        tt_gradcheck("plain attention", plain, &small[i], in, 3);
        assert_non_null(tutti_tensor_requires_grad_(in[1], false));
        tt_gradcheck("attention of given keys", blocked, &small[i], in, 3);
    }
}

/* The gradients of f at in, weighted in a fixed way; taken off the leaves. */
static void gradients_of(tt_function f, const attention_case *c, tutti_tensor **in,
                         tutti_tensor **g_out)
{
    tutti_tensor *y = f(in, c), *w;
    const int64_t n = tutti_tensor_numel(y);

    w = tutti_tensor_arange(TUTTI_F64, 0, (double)n, 1);
    w = tutti_tensor_mul_scalar(w, 6.28 / (double)n);
    w = tutti_tensor_to(tutti_tensor_tanh(w), tutti_tensor_dtype(y));
    y = tutti_tensor_sum(tutti_tensor_mul(tutti_tensor_reshape(y, 1, &n), w), NULL, 0, false);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    for (int k = 0; k < 3; k++) {
        g_out[k] = tutti_tensor_clone(tutti_tensor_grad(in[k]));
        assert_int_equal(tutti_tensor_set_grad(in[k], NULL), TUTTI_OK);
    }
}

/* More queries and keys than a block has, in both types. */
static void attention_of_many_blocks(void **state)
{
    const attention_case large[] = { { 4, { 1, 2 }, 300, 300, 16, 16, true, 0.0, 0.0 },
                                     { 3, { 2 }, 150, 600, 8, 24, false, 0.0, 0.0 },
                                     { 3, { 1 }, 600, 270, 8, 8, true, 0.25, 0.0 },
                                     { 3, { 2 }, 150, 150, 16, 8, true, 0.0, 0.0 },
                                     { 3, { 1 }, 200, 100, 8, 8, true, 0.25, 0.0 } };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof large / sizeof large[0]; i++) {
        const attention_case *c = &large[i / 2];
        const double near = i % 2 == 0 ? 1e-12 : 2e-5;
        tutti_tensor *in[3], *one[3], *two[3];

        operands(c, i % 2 == 0 ? TUTTI_F64 : TUTTI_F32, in);
        assert_true(distance(blocked(in, c), plain(in, c)) < near);
        gradients_of(blocked, c, in, one);
        gradients_of(plain, c, in, two);
        for (int k = 0; k < 3; k++)
            assert_true(distance(one[k], two[k]) < 10 * near);
    }
}

/* Operands as a model makes them: parts of one product, heads moved in front of time. */
static tutti_tensor *of_parts(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *part[3];

    assert_int_equal(tutti_tensor_chunk(in[0], 3, -1, part), TUTTI_OK);
    for (int k = 0; k < 3; k++)
        part[k] = tutti_tensor_transpose(tutti_tensor_view(part[k], 4, SHAPE(2, 5, 2, 3)), 1, 2);
    return blocked(part, ctx);
}

/* Keys and values whose columns lie side by side. */
static tutti_tensor *of_turned(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *turned[3];

    for (int k = 0; k < 3; k++)
        turned[k] = tutti_tensor_transpose(in[k], 1, 2);
    return blocked(turned, ctx);
}

static void attention_of_views(void **state)
{
    const attention_case c = { 4, { 2, 2 }, 5, 5, 3, 3, true, 0.0, 0.0 };
    tutti_tensor *x = tt_leaf(-1, 1, 3, SHAPE(2, 5, 18)), *y;
    tutti_tensor *in[3] = { tt_leaf(-1, 1, 3, SHAPE(2, 3, 4)), tt_leaf(-1, 1, 3, SHAPE(2, 3, 5)),
                            tt_leaf(-1, 1, 3, SHAPE(2, 2, 5)) };

    (void)state;
    tt_gradcheck("attention of parts", of_parts, &c, &x, 1);
    tt_gradcheck("attention of turned operands", of_turned, &small[4], in, 3);
    y = of_parts(&x, &c);
    assert_true(tutti_tensor_is_contiguous(tutti_tensor_transpose(y, 1, 2)));
}

/* Large scores: the running maximum moves, nothing overflows. Same bits each time. */
static void attention_of_large_scores(void **state)
{
    const attention_case c = { 3, { 1 }, 200, 520, 4, 4, false, 0.0, 30.0 };
    tutti_tensor *in[3], *y;

    (void)state;
    operands(&c, TUTTI_F32, in);
    y = blocked(in, &c);
    assert_true(distance(y, plain(in, &c)) < 1e-3);
    assert_true(tutti_tensor_equal(y, blocked(in, &c)));
}

static void dropout_of_attention_keeps_its_share(void **state)
{
    enum { N = 100000 };
    static uint8_t all[N], part[N];
    int count = 0;

    (void)state;
    tti_attention_keep(99, 0, N, 0.3, all);
    for (int i = 0; i < N; i++)
        count += all[i];
    assert_true(count > 69000 && count < 71000); /* 70000, deviation 145 */
    for (int start = 0; start < 9; start++) {
        tti_attention_keep(99, (uint64_t)start, 37, 0.3, part);
        assert_memory_equal(part, all + start, 37);
    }
    tti_attention_keep(99, 0, 100, 1.0, part);
    for (int i = 0; i < 100; i++)
        assert_int_equal(part[i], 0);
}

static void attention_corners(void **state)
{
    tutti_tensor *q = tutti_tensor_ones(TUTTI_F32, 3, SHAPE(2, 3, 4));
    tutti_tensor *none = tutti_tensor_ones(TUTTI_F32, 3, SHAPE(2, 0, 4)), *y;
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;

    (void)state;
    y = tutti_tensor_scaled_dot_product_attention(q, none, none, NULL);
    assert_true(item(tutti_tensor_sum(y, NULL, 0, false)) == 0.0);
    y = tutti_tensor_scaled_dot_product_attention(none, q, q, NULL);
    assert_int_equal(tutti_tensor_numel(y), 0);
    assert_null(tutti_tensor_scaled_dot_product_attention(q, q, none, NULL));
    assert_non_null(strstr(tutti_last_error(), "keys [2, 3, 4] and values [2, 0, 4] do not fit"));
    opts.dropout_p = -1.0;
    assert_null(tutti_tensor_scaled_dot_product_attention(q, q, q, &opts));
    assert_null(tutti_tensor_scaled_dot_product_attention(NULL, q, q, NULL));
    assert_null(tutti_tensor_scaled_dot_product_attention(q, q, NULL, NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_null(
        tutti_tensor_scaled_dot_product_attention(q, q, tutti_tensor_to(q, TUTTI_F64), NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

/* ---- modules ---------------------------------------------------------------------------------- */

static void check_names(tutti_module *m, int n, const char *const *names)
{
    int got;
    const char *const *have = tutti_module_parameter_names(m, &got);

    assert_int_equal(got, n);
    for (int i = 0; i < n; i++)
        assert_string_equal(have[i], names[i]);
}

static void names_and_first_values(void **state)
{
    const char *const both[] = { "weight", "bias" };
    const char *const heads[] = { "in_proj_weight", "in_proj_bias", "out_proj.weight",
                                  "out_proj.bias" };
    const char *const bare[] = { "in_proj_weight", "out_proj.weight" };
    tutti_multihead_options opts = TUTTI_MULTIHEAD_OPTIONS;
    tutti_module *m = tutti_layer_norm(2, SHAPE(3, 4), 1e-5);

    (void)state;
    check_names(m, 2, both);
    assert_true(item(tutti_tensor_sum(tutti_module_parameter(m, "weight"), NULL, 0, false)) == 12);
    assert_true(item(tutti_tensor_sum(tutti_module_parameter(m, "bias"), NULL, 0, false)) == 0);
    tutti_module_free(m);
    m = tutti_rms_norm(1, SHAPE(3), -1.0);
    check_names(m, 1, both);
    tutti_module_free(m);
    m = tutti_embedding(5, 3, 2);
    check_names(m, 1, both);
    assert_true(
        item(tutti_tensor_norm(tutti_tensor_select(tutti_module_parameter(m, "weight"), 0, 2), NULL,
                               0, false)) == 0.0);
    tutti_module_free(m);
    m = tutti_multihead_attention(8, 2, NULL);
    check_names(m, 4, heads);
    tutti_module_free(m);
    opts.no_bias = true;
    m = tutti_multihead_attention(8, 2, &opts);
    check_names(m, 2, bare);
    tutti_module_free(m);
}

static void modules_compute(void **state)
{
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F32, 3, SHAPE(2, 4, 8), NULL), *y, *again;
    tutti_multihead_options opts = TUTTI_MULTIHEAD_OPTIONS;
    tutti_module *m = tutti_gelu(false);

    (void)state;
    assert_true(distance(tutti_forward(m, x), tutti_tensor_gelu(x)) == 0.0);
    tutti_module_free(m);
    m = tutti_gelu(true);
    assert_true(distance(tutti_forward(m, x), tutti_tensor_gelu_tanh(x)) == 0.0);
    tutti_module_free(m);
    m = tutti_silu();
    assert_true(distance(tutti_forward(m, x), tutti_tensor_silu(x)) == 0.0);
    tutti_module_free(m);
    m = tutti_softmax(-1);
    assert_true(distance(tutti_forward(m, x), tutti_tensor_softmax(x, 2)) == 0.0);
    tutti_module_free(m);
    m = tutti_layer_norm(1, SHAPE(8), 1e-5);
    y = tutti_tensor_layer_norm(x, 1, SHAPE(8), NULL, NULL, 1e-5);
    assert_true(distance(tutti_forward(m, x), y) == 0.0);
    tutti_module_free(m);
    m = tutti_rms_norm(1, SHAPE(8), 1e-5);
    y = tutti_tensor_rms_norm(x, 1, SHAPE(8), NULL, 1e-5);
    assert_true(distance(tutti_forward(m, x), y) == 0.0);
    tutti_module_free(m);
    opts.dropout = 0.5;
    opts.is_causal = true;
    m = tutti_multihead_attention(8, 2, &opts);
    y = tutti_forward(m, x);
    assert_int_equal(tutti_tensor_size(y, 2), 8);
    tutti_module_train(m, false);
    again = tutti_forward(m, x);
    assert_true(distance(y, again) > 0.0); /* it drops in training only */
    assert_true(tutti_tensor_equal(again, tutti_forward(m, x)));
    assert_null(tutti_forward(m, tutti_tensor_narrow(x, 2, 0, 7)));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    tutti_module_free(m);
}

static void module_refusals(void **state)
{
    (void)state;
    assert_null(tutti_embedding(0, 3, -1));
    assert_null(tutti_embedding(4, 3, 4));
    assert_null(tutti_layer_norm(0, NULL, 1e-5));
    assert_null(tutti_rms_norm(1, SHAPE(-1), 1e-5));
    assert_null(tutti_multihead_attention(8, 3, NULL));
    assert_null(tutti_multihead_attention(8, 2, &(tutti_multihead_options){ 0 }));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(softmax_gradients, begin, end),
        cmocka_unit_test_setup_teardown(softmax_of_long_rows, begin, end),
        cmocka_unit_test_setup_teardown(softmax_of_infinities, begin, end),
        cmocka_unit_test_setup_teardown(cross_entropy_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(cross_entropy_in_f32_and_at_corners, begin, end),
        cmocka_unit_test_setup_teardown(ignored_rows_get_nothing, begin, end),
        cmocka_unit_test_setup_teardown(norm_gradients, begin, end),
        cmocka_unit_test_setup_teardown(norms_of_views, begin, end),
        cmocka_unit_test_setup_teardown(norms_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(norm_refusals, begin, end),
        cmocka_unit_test_setup_teardown(embeddings, begin, end),
        cmocka_unit_test_setup_teardown(attention_gradients, begin, end),
        cmocka_unit_test_setup_teardown(attention_of_many_blocks, begin, end),
        cmocka_unit_test_setup_teardown(attention_of_views, begin, end),
        cmocka_unit_test_setup_teardown(attention_of_large_scores, begin, end),
        cmocka_unit_test_setup_teardown(dropout_of_attention_keeps_its_share, begin, end),
        cmocka_unit_test_setup_teardown(attention_corners, begin, end),
        cmocka_unit_test_setup_teardown(names_and_first_values, begin, end),
        cmocka_unit_test_setup_teardown(modules_compute, begin, end),
        cmocka_unit_test_setup_teardown(module_refusals, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
