/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layers_test.c
 * Goal    layers compute what they promise, their gradients are right, and wrong operands are refused.
 * Method  convolution against seven nested loops, gradients against differences in f64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <string.h>
#include <tutti/nn.h>

#include "autograd/gradcheck.h"
#include "tensor/checks.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* ---- conv2d ----------------------------------------------------------------------------------- */

typedef struct conv_case {
    int64_t x[4], w[4];
    tutti_conv2d_options opts;
} conv_case;

#define OPTS(...)                                         \
    {                                                     \
        .size = sizeof(tutti_conv2d_options), __VA_ARGS__ \
    }

static const conv_case conv_cases[] = {
    { { 2, 3, 5, 6 }, { 4, 3, 3, 2 }, OPTS(.groups = 1) },
    { { 3, 2, 4, 4 }, { 2, 2, 4, 4 }, OPTS(.groups = 0) },
    { { 2, 2, 6, 5 }, { 3, 2, 3, 3 }, OPTS(.stride = { 2, 1 }, .padding = { 1, 2 }) },
    { { 1, 2, 7, 8 }, { 2, 2, 2, 3 }, OPTS(.stride = { 3, 2 }, .dilation = { 2, 3 }) },
    { { 2, 4, 5, 5 }, { 6, 2, 3, 3 }, OPTS(.padding = { 2, 1 }, .groups = 2) },
    { { 2, 4, 3, 12 }, { 4, 1, 1, 1 }, OPTS(.stride = { 1, 3 }, .groups = 4) },
    { { 1, 1, 2, 2 }, { 1, 1, 2, 2 }, OPTS(.padding = { 3, 3 }, .stride = { 2, 2 }) },
    { { 0, 1, 3, 3 }, { 2, 1, 2, 2 }, OPTS(.groups = 1) },
};

static tutti_tensor *call_conv2d(tutti_tensor *const *in, const void *ctx)
{
    return tutti_tensor_conv2d(in[0], in[1], in[2], &((const conv_case *)ctx)->opts);
}

/* One output, by definition. */
static double conv_at(const conv_case *c, const double *x, const double *w, const int64_t *at)
{
    const int sh = c->opts.stride[0] ? c->opts.stride[0] : 1;
    const int sw = c->opts.stride[1] ? c->opts.stride[1] : 1;
    const int dh = c->opts.dilation[0] ? c->opts.dilation[0] : 1;
    const int dw = c->opts.dilation[1] ? c->opts.dilation[1] : 1;
    const int groups = c->opts.groups ? c->opts.groups : 1;
    const int64_t first = at[1] / (c->w[0] / groups) * c->w[1];
    double sum = 0.0;

    for (int64_t k = 0; k < c->w[1]; k++)
        for (int64_t i = 0; i < c->w[2]; i++)
            for (int64_t j = 0; j < c->w[3]; j++) {
                const int64_t h = at[2] * sh - c->opts.padding[0] + i * dh;
                const int64_t v = at[3] * sw - c->opts.padding[1] + j * dw;

                if (h >= 0 && h < c->x[2] && v >= 0 && v < c->x[3])
                    sum += x[((at[0] * c->x[1] + first + k) * c->x[2] + h) * c->x[3] + v] *
                           w[((at[1] * c->w[1] + k) * c->w[2] + i) * c->w[3] + j];
            }
    return sum;
}

static void conv2d_by_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++) {
        const conv_case *c = &conv_cases[i];
        tutti_tensor *x = tt_leaf(-1, 1, 4, c->x), *w = tt_leaf(-1, 1, 4, c->w);
        tutti_tensor *b = tt_leaf(-1, 1, 1, c->w);
        tutti_tensor *y = tutti_tensor_conv2d(x, w, b, &c->opts);
        const double *got = tutti_tensor_data(y), *bias = tutti_tensor_data(b);

        assert_non_null(y);
        for (int64_t k = 0; k < tutti_tensor_numel(y); k++) {
            const int64_t ho = tutti_tensor_size(y, 2), wo = tutti_tensor_size(y, 3);
            const int64_t at[4] = { k / (c->w[0] * ho * wo), k / (ho * wo) % c->w[0], k / wo % ho,
                                    k % wo };
            const double want =
                conv_at(c, tutti_tensor_data(x), tutti_tensor_data(w), at) + bias[at[1]];

            assert_true(fabs(got[k] - want) < 1e-12);
        }
    }
}

static void conv2d_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++) {
        const conv_case *c = &conv_cases[i];
        tutti_tensor *in[3] = { tt_leaf(-1, 1, 4, c->x), tt_leaf(-1, 1, 4, c->w),
                                tt_leaf(-1, 1, 1, c->w) };

        tt_gradcheck("conv2d", call_conv2d, c, in, 3);
        in[2] = NULL;
        tt_gradcheck("conv2d without bias", call_conv2d, c, in, 2);
    }
}

/* More images than are taken together, the last group smaller, from transposed memory. */
static tutti_tensor *conv_of_views(tutti_tensor *const *in, const void *ctx)
{
    tutti_tensor *x = tutti_tensor_transpose(in[0], 2, 3), *w = tutti_tensor_transpose(in[1], 0, 1);

    (void)ctx;
    return tutti_tensor_conv2d(x, w, NULL, NULL);
}

static void conv2d_of_views_and_many_images(void **state)
{
    tutti_tensor *in[2] = { tt_leaf(-1, 1, 4, SHAPE(150, 1, 3, 3)),
                            tt_leaf(-1, 1, 4, SHAPE(1, 2, 2, 2)) };

    (void)state;
    tt_gradcheck("conv2d of views", conv_of_views, NULL, in, 2); /* 4 columns each, 128 together */
}

static void conv2d_refusals(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 4, SHAPE(1, 2, 4, 4));
    tutti_tensor *w = tutti_tensor_zeros(TUTTI_F32, 4, SHAPE(3, 2, 3, 3));
    tutti_tensor *big = tutti_tensor_zeros(TUTTI_F32, 4, SHAPE(3, 2, 5, 5));
    tutti_tensor *w64 = tutti_tensor_to(w, TUTTI_F64);
    tutti_conv2d_options opts = TUTTI_CONV2D_OPTIONS;

    (void)state;
    assert_null(tutti_tensor_conv2d(x, tutti_tensor_narrow(w, 1, 0, 1), NULL, NULL));
    assert_null(tutti_tensor_conv2d(x, big, NULL, NULL));
    assert_non_null(strstr(tutti_last_error(), "does not fit into input [1, 2, 4, 4]"));
    assert_null(tutti_tensor_conv2d(x, w64, NULL, NULL));
    assert_null(tutti_tensor_conv2d(x, w, tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(2)), NULL));
    assert_null(tutti_tensor_conv2d(x, tutti_tensor_narrow(w, 0, 0, 0), NULL, NULL));
    assert_non_null(strstr(tutti_last_error(), "conv2d: weight [0, 2, 3, 3] has no elements"));
    opts.groups = 2;
    assert_null(tutti_tensor_conv2d(x, w, NULL, &opts));
    opts.groups = 1;
    opts.stride[1] = -1;
    assert_null(tutti_tensor_conv2d(x, w, NULL, &opts));
    assert_null(tutti_tensor_conv2d(x, w, NULL, &(tutti_conv2d_options){ 0 }));
    assert_null(tutti_tensor_conv2d(x, NULL, NULL, NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

static void refused_as(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("no '%s' in '%s'", words, tutti_last_error());
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

/* What is too large is refused by the layer that was asked for it, before memory is. */
static void sizes_beyond_the_products_are_refused(void **state)
{
    const int64_t huge = INT64_C(1) << 40;
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 4, SHAPE(1, 1, 4, 4));
    tutti_tensor *w = tutti_tensor_zeros(TUTTI_F32, 4, SHAPE(1, 1, 3, 3));
    tutti_conv2d_options opts = TUTTI_CONV2D_OPTIONS;

    (void)state;
    opts.padding[0] = opts.padding[1] = 1 << 20;
    assert_null(tutti_tensor_conv2d(x, w, NULL, &opts));
    refused_as("conv2d: 2097154 x 2097154 windows in an image, padding 1048576 and 1048576");
    opts.padding[0] = opts.padding[1] = INT_MAX;
    assert_null(tutti_tensor_conv2d(x, w, NULL, &opts));
    refused_as("conv2d: 4294967296 x 4294967296 windows");
    x = tutti_tensor_expand(tutti_tensor_zeros(TUTTI_F32, 0, NULL), 4,
                            SHAPE(1, 1, 1 << 15, 1 << 15));
    assert_null(tutti_tensor_conv2d(x, w, NULL, NULL));
    refused_as("conv2d: images of input [1, 1, 32768, 32768] have more");
    x = tutti_tensor_expand(tutti_tensor_zeros(TUTTI_F32, 0, NULL), 4,
                            SHAPE(huge, 1, 1 << 9, 1 << 9));
    assert_null(
        tutti_tensor_conv2d(x, tutti_tensor_expand(w, 4, SHAPE(1024, 1, 3, 3)), NULL, NULL));
    refused_as("conv2d: input [1099511627776, 1, 512, 512] and weight [1024, 1, 3, 3] make more");
    assert_null(tutti_linear(huge, huge, true));
    refused_as("linear: 1099511627776 inputs");
    assert_null(tutti_linear(INT_MAX, INT_MAX, true));
    refused_as("linear: 2147483647 inputs, 2147483647 outputs");
    assert_null(tutti_conv2d(huge, huge, 3, 3, NULL));
    refused_as("conv2d: weight [1099511627776, 1099511627776, 3, 3] has more");
}

/* ---- max_pool2d ------------------------------------------------------------------------------- */

static tutti_tensor *pool_pairs(tutti_tensor *const *in, const void *ctx)
{
    (void)ctx;
    return tutti_tensor_max_pool2d(in[0], 2, 2, NULL);
}

static tutti_tensor *pool_overlapping(tutti_tensor *const *in, const void *ctx)
{
    tutti_pool2d_options opts = TUTTI_POOL2D_OPTIONS;

    (void)ctx;
    opts.stride[0] = opts.stride[1] = 1;
    opts.padding[0] = opts.padding[1] = 1;
    opts.dilation[1] = 2;
    return tutti_tensor_max_pool2d(in[0], 3, 2, &opts);
}

static void max_pool2d_gradients(void **state)
{
    tutti_tensor *x = tt_leaf(-1, 1, 4, SHAPE(2, 2, 5, 7));

    (void)state;
    tt_gradcheck("pairs", pool_pairs, NULL, &x, 1);
    tt_gradcheck("overlapping", pool_overlapping, NULL, &x, 1);
}

static void max_pool2d_with_nan_and_equals(void **state)
{
    const float data[16] = { 1, NAN, 4, 4, 3, 2, 4, 4, -5, -6, NAN, NAN, -7, -5, NAN, NAN };
    const float gradient[16] = { 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1 };
    tutti_tensor *x = tutti_tensor_requires_grad_(
        tutti_tensor_from_data(data, TUTTI_F32, 4, SHAPE(1, 1, 4, 4)), true);
    tutti_tensor *y = tutti_tensor_max_pool2d(x, 2, 2, NULL);
    const float *v = tutti_tensor_data(y);

    (void)state;
    assert_true(isnan(v[0]) && v[1] == 4.0f && v[2] == -5.0f && isnan(v[3]));
    assert_int_equal(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)), TUTTI_OK);
    assert_memory_equal(tutti_tensor_data(tutti_tensor_grad(x)), gradient, sizeof gradient);
}

/* A window with NaN in the general path: a row of three. */
static void max_pool2d_general_path_with_nan(void **state)
{
    const float data[6] = { NAN, 1, 2, 5, -1, 5 };
    tutti_tensor *x = tutti_tensor_from_data(data, TUTTI_F32, 4, SHAPE(1, 1, 1, 6));
    const float *v = tutti_tensor_data(tutti_tensor_max_pool2d(x, 1, 3, NULL));

    (void)state;
    assert_true(isnan(v[0]) && v[1] == 5.0f);
    assert_null(tutti_tensor_max_pool2d(x, 2, 2, NULL));
    assert_null(tutti_tensor_max_pool2d(x, 0, 2, NULL));
    assert_null(tutti_tensor_max_pool2d(tutti_tensor_flatten(x, 1), 1, 1, NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* A window that, dilated, steps over a small image has nothing to choose from. */
static void max_pool2d_windows_that_miss(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 4, SHAPE(1, 1, 1, 1));
    tutti_pool2d_options opts = TUTTI_POOL2D_OPTIONS;

    (void)state;
    opts.padding[0] = opts.padding[1] = 1;
    opts.dilation[0] = opts.dilation[1] = 2;
    assert_null(tutti_tensor_max_pool2d(x, 2, 2, &opts));
    assert_non_null(strstr(tutti_last_error(), "steps over"));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* ---- linear, softmax, losses ------------------------------------------------------------------ */

static tutti_tensor *call_linear(tutti_tensor *const *in, const void *ctx)
{
    return tutti_tensor_linear(ctx != NULL ? tutti_tensor_transpose(in[0], 0, 1) : in[0], in[1],
                               in[2]);
}

static void linear_gradients(void **state)
{
    tutti_tensor *in[3] = { tt_leaf(-1, 1, 3, SHAPE(2, 3, 4)), tt_leaf(-1, 1, 2, SHAPE(5, 4)),
                            tt_leaf(-1, 1, 1, SHAPE(5)) };

    (void)state;
    tt_gradcheck("linear", call_linear, NULL, in, 3);
    tt_gradcheck("linear of a transpose", call_linear, "", in, 3);
    in[0] = tt_leaf(-1, 1, 1, SHAPE(4));
    tt_gradcheck("linear of a vector", call_linear, NULL, in, 3);
    in[2] = NULL;
    tt_gradcheck("linear without bias", call_linear, NULL, in, 2);
    assert_null(tutti_tensor_linear(in[1], in[0], NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    in[0] = tutti_tensor_to(in[1], TUTTI_BF16);
    assert_null(tutti_tensor_linear(in[0], in[1], NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "of one real type: input is "));
}

/* [R, I] times [O, I] with each size 0 in turn: shapes fit both ways, sums over nothing are 0. */
static void linear_without_elements(void **state)
{
    (void)state;
    for (int zero = 0; zero < 3; zero++) {
        const int64_t r = zero == 0 ? 0 : 3, i = zero == 1 ? 0 : 4, o = zero == 2 ? 0 : 2;
        tutti_tensor *in[3] = { tt_leaf(-1, 1, 2, SHAPE(r, i)), tt_leaf(-1, 1, 2, SHAPE(o, i)),
                                tt_leaf(-1, 1, 1, SHAPE(o)) };

        tt_gradcheck("linear without elements", call_linear, NULL, in, 3);
        if (i == 0)
            assert_true(tutti_tensor_equal(
                tutti_tensor_linear(in[0], in[1], in[2]),
                tutti_tensor_contiguous(tutti_tensor_expand(in[2], 2, SHAPE(r, o)))));
    }
}

static tutti_tensor *call_log_softmax(tutti_tensor *const *in, const void *ctx)
{
    return tutti_tensor_log_softmax(in[0], *(const int *)ctx);
}

static void log_softmax_gradients(void **state)
{
    tutti_tensor *x = tt_leaf(-2, 2, 3, SHAPE(2, 3, 4));

    (void)state;
    for (int dim = -1; dim < 3; dim++)
        tt_gradcheck("log_softmax", call_log_softmax, &dim, &x, 1);
    x = tt_leaf(-2, 2, 0, NULL);
    for (int dim = -1; dim < 1; dim++)
        tt_gradcheck("log_softmax of a scalar", call_log_softmax, &dim, &x, 1);
    assert_true(item(tutti_tensor_log_softmax(x, 0)) == 0.0);
    assert_null(tutti_tensor_log_softmax(x, 1));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

static void log_softmax_of_large_numbers(void **state)
{
    const float x[6] = { 1000, 1000, -1000, -INFINITY, 0, 0 };
    tutti_tensor *t = tutti_tensor_from_data(x, TUTTI_F32, 2, SHAPE(2, 3));
    const float *y = tutti_tensor_data(tutti_tensor_log_softmax(t, 1));

    (void)state;
    assert_true(fabsf(y[0] + 0.693147f) < 1e-6f && y[2] == -2000.693147f);
    assert_true(isinf(y[3]) && fabsf(y[4] + 0.693147f) < 1e-6f);
}

typedef struct loss_case {
    tutti_tensor *target, *weight;
    tutti_reduction reduction;
    bool entropy;
} loss_case;

static tutti_tensor *call_loss(tutti_tensor *const *in, const void *ctx)
{
    const loss_case *c = ctx;
    tutti_loss_options opts = TUTTI_LOSS_OPTIONS;

    opts.weight = c->weight;
    opts.reduction = c->reduction;
    return (c->entropy ? tutti_tensor_cross_entropy : tutti_tensor_nll_loss)(in[0], c->target,
                                                                             &opts);
}

static void loss_gradients(void **state)
{
    const int64_t t[6] = { 2, 0, -100, 3, 3, 1 };
    tutti_tensor *flat = tutti_tensor_from_data(t, TUTTI_I64, 1, SHAPE(6));
    tutti_tensor *plane = tutti_tensor_reshape(flat, 2, SHAPE(2, 3));
    tutti_tensor *w = tutti_tensor_arange(TUTTI_F64, 0.5, 2.5, 0.5);
    tutti_tensor *x1 = tt_leaf(-2, 2, 2, SHAPE(6, 4)), *x2 = tt_leaf(-2, 2, 3, SHAPE(2, 4, 3));

    (void)state;
    for (int i = 0; i < 12; i++) {
        loss_case c = { flat, i & 1 ? w : NULL, (tutti_reduction)(i / 4), (i & 2) != 0 };

        tt_gradcheck("loss", call_loss, &c, &x1, 1);
        c.target = plane;
        tt_gradcheck("loss of planes", call_loss, &c, &x2, 1);
    }
}

static void losses_by_hand(void **state)
{
    const float logp[6] = { -1, -2, -3, -4, -5, -6 };
    const int64_t t[2] = { 2, 0 }, none[2] = { -100, -100 }, bad[2] = { 0, 3 };
    tutti_tensor *x = tutti_tensor_from_data(logp, TUTTI_F32, 2, SHAPE(2, 3));
    tutti_tensor *target = tutti_tensor_from_data(t, TUTTI_I64, 1, SHAPE(2));
    const tutti_loss_options defaults = TUTTI_LOSS_OPTIONS;
    tutti_loss_options opts = defaults;

    (void)state;
    assert_true(item(tutti_tensor_nll_loss(x, target, NULL)) == 3.5);
    opts.weight = tutti_tensor_from_data((const float[]){ 1, 9, 3 }, TUTTI_F32, 1, SHAPE(3));
    assert_true(item(tutti_tensor_nll_loss(x, target, &opts)) == 13.0 / 4.0);
    opts.has_ignore_index = true; /* class 0 does not count */
    assert_true(item(tutti_tensor_nll_loss(x, target, &opts)) == 3.0);
    opts = defaults;
    opts.reduction = TUTTI_REDUCTION_SUM;
    assert_true(item(tutti_tensor_nll_loss(x, target, &opts)) == 7.0);
    target = tutti_tensor_from_data(none, TUTTI_I64, 1, SHAPE(2));
    assert_true(isnan(item(tutti_tensor_nll_loss(x, target, NULL))));
    target = tutti_tensor_from_data(bad, TUTTI_I64, 1, SHAPE(2));
    assert_null(tutti_tensor_nll_loss(x, target, NULL));
    assert_non_null(strstr(tutti_last_error(), "target 3 at 1 is none of 3 classes"));
    assert_null(tutti_tensor_nll_loss(x, tutti_tensor_narrow(target, 0, 0, 1), NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* ---- dropout ---------------------------------------------------------------------------------- */

/* The same draws every time, so that differences see one function. */
static tutti_tensor *call_dropout(tutti_tensor *const *in, const void *ctx)
{
    tutti_manual_seed(5);
    return ctx != NULL ? tutti_tensor_dropout2d(in[0], 0.4, true)
                       : tutti_tensor_dropout(in[0], 0.4, true);
}

static void dropout_gradients(void **state)
{
    tutti_tensor *x = tt_leaf(-1, 1, 4, SHAPE(3, 4, 2, 2));

    (void)state;
    tt_gradcheck("dropout", call_dropout, NULL, &x, 1);
    tt_gradcheck("dropout2d", call_dropout, "", &x, 1);
}

static void dropout_drops_whole_channels_or_elements(void **state)
{
    tutti_tensor *x = tutti_tensor_ones(TUTTI_F32, 3, SHAPE(10, 10, 4));
    const float *y = tutti_tensor_data(tutti_tensor_dropout2d(x, 0.5, true));
    const float *e = tutti_tensor_data(tutti_tensor_dropout(x, 0.75, true));
    int kept = 0, kept_e = 0;

    (void)state;
    for (int i = 0; i < 400; i++) {
        assert_true(y[i] == 0.0f || y[i] == 2.0f);
        assert_true(y[i] == y[i / 4 * 4]);
        assert_true(e[i] == 0.0f || e[i] == 4.0f);
        kept += y[i] != 0.0f;
        kept_e += e[i] != 0.0f;
    }
    assert_true(kept > 120 && kept < 280); /* 200 are expected, deviation 20 */
    assert_true(kept_e > 50 && kept_e < 150);
    assert_ptr_equal(tutti_tensor_dropout(x, 0.5, false), x);
    assert_ptr_equal(tutti_tensor_dropout2d(x, 0.0, true), x);
    assert_true(item(tutti_tensor_sum(tutti_tensor_dropout(x, 1.0, true), NULL, 0, false)) == 0.0);
    assert_null(tutti_tensor_dropout(x, 1.5, true));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* ---- NULL through everything ------------------------------------------------------------------ */

/* Operations with a NULL in every operand's place; each function counts what did not come out as
 * NULL. */
static int alive(tutti_tensor *const *out, size_t n)
{
    int count = 0;

    for (size_t i = 0; i < n; i++)
        count += out[i] != NULL;
    return count;
}

#define ALIVE(...)                                \
    alive((tutti_tensor *const[]){ __VA_ARGS__ }, \
          sizeof((tutti_tensor *const[]){ __VA_ARGS__ }) / sizeof(tutti_tensor *))

static tutti_tensor *const no = NULL;

static int poison_two_operands(tutti_tensor *x)
{
    return ALIVE(tutti_tensor_add(x, no), tutti_tensor_add(no, x),
                 tutti_tensor_add_scaled(no, x, 2), tutti_tensor_sub(x, no),
                 tutti_tensor_sub(no, x), tutti_tensor_mul(x, no), tutti_tensor_mul(no, x),
                 tutti_tensor_div(x, no), tutti_tensor_div(no, x), tutti_tensor_mm(x, no),
                 tutti_tensor_mm(no, x), tutti_tensor_matmul(x, no), tutti_tensor_matmul(no, x),
                 tutti_tensor_eq(x, no), tutti_tensor_lt(no, x), tutti_tensor_le(no, no));
}

static int poison_one_operand(void)
{
    return ALIVE(tutti_tensor_add_scalar(no, 1), tutti_tensor_mul_scalar(no, 1),
                 tutti_tensor_neg(no), tutti_tensor_exp(no), tutti_tensor_log(no),
                 tutti_tensor_sqrt(no), tutti_tensor_tanh(no), tutti_tensor_sigmoid(no),
                 tutti_tensor_relu(no), tutti_tensor_to(no, TUTTI_F64),
                 tutti_tensor_sum(no, NULL, 0, false), tutti_tensor_mean(no, NULL, 0, false),
                 tutti_tensor_argmax(no, 0, false), tutti_tensor_requires_grad_(no, true));
}

static int poison_views(void)
{
    const int64_t shape[1] = { 1 };
    const int order[1] = { 0 };

    return ALIVE(tutti_tensor_view(no, 1, shape), tutti_tensor_reshape(no, 1, shape),
                 tutti_tensor_flatten(no, 0), tutti_tensor_transpose(no, 0, 1),
                 tutti_tensor_permute(no, order), tutti_tensor_narrow(no, 0, 0, 1),
                 tutti_tensor_select(no, 0, 0), tutti_tensor_expand(no, 1, shape),
                 tutti_tensor_unsqueeze(no, 0), tutti_tensor_squeeze(no, 0),
                 tutti_tensor_detach(no), tutti_tensor_contiguous(no), tutti_tensor_clone(no));
}

static int poison_layers(tutti_tensor *x)
{
    return ALIVE(tutti_tensor_linear(x, no, x), tutti_tensor_linear(no, x, x),
                 tutti_tensor_conv2d(no, x, x, NULL), tutti_tensor_conv2d(x, no, x, NULL),
                 tutti_tensor_max_pool2d(no, 2, 2, NULL), tutti_tensor_dropout(no, 0.5, true),
                 tutti_tensor_dropout2d(no, 0.5, false), tutti_tensor_log_softmax(no, 0),
                 tutti_tensor_nll_loss(no, x, NULL), tutti_tensor_nll_loss(x, no, NULL),
                 tutti_tensor_cross_entropy(no, x, NULL), tutti_tensor_cross_entropy(x, no, NULL));
}

static void null_passes_through_every_operation(void **state)
{
    tutti_tensor *x = tutti_tensor_ones(TUTTI_F32, 2, SHAPE(2, 2));

    (void)state;
    assert_null(tutti_tensor_select(x, 7, 0));
    assert_int_equal(poison_two_operands(x), 0);
    assert_int_equal(poison_one_operand(), 0);
    assert_int_equal(poison_views(), 0);
    assert_int_equal(poison_layers(x), 0);
    assert_int_equal(tutti_tensor_zero_(NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_mul_(x, NULL), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "select: there is no dimension 7"));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "select: there is no dimension 7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(conv2d_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(conv2d_gradients, begin, end),
        cmocka_unit_test_setup_teardown(conv2d_of_views_and_many_images, begin, end),
        cmocka_unit_test_setup_teardown(conv2d_refusals, begin, end),
        cmocka_unit_test_setup_teardown(sizes_beyond_the_products_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(max_pool2d_gradients, begin, end),
        cmocka_unit_test_setup_teardown(max_pool2d_with_nan_and_equals, begin, end),
        cmocka_unit_test_setup_teardown(max_pool2d_general_path_with_nan, begin, end),
        cmocka_unit_test_setup_teardown(max_pool2d_windows_that_miss, begin, end),
        cmocka_unit_test_setup_teardown(linear_gradients, begin, end),
        cmocka_unit_test_setup_teardown(linear_without_elements, begin, end),
        cmocka_unit_test_setup_teardown(log_softmax_gradients, begin, end),
        cmocka_unit_test_setup_teardown(log_softmax_of_large_numbers, begin, end),
        cmocka_unit_test_setup_teardown(loss_gradients, begin, end),
        cmocka_unit_test_setup_teardown(losses_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(null_passes_through_every_operation, begin, end),
        cmocka_unit_test_setup_teardown(dropout_gradients, begin, end),
        cmocka_unit_test_setup_teardown(dropout_drops_whole_channels_or_elements, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
