/* SPDX-License-Identifier: BSD-3-Clause
 *
 * half_ops_test.c
 * Goal    tensors of f16 and bf16 convert as their formats say, and every operation on them is the one in
 *         f32 rounded once, forward and back.
 * Method  all codes of both formats against their definition; numbers at, beside and between steps; then
 *         operation by operation against widening, computing and rounding by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>
#include <tutti/nn.h>
#include <tutti/optim.h>

#include "tensor/half.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
    tutti_manual_seed(7);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

/* ---- formats ---------------------------------------------------------------------------------- */

typedef struct format {
    tutti_dtype dtype;
    int exponent, mantissa; /* bits */
    float (*read)(uint16_t code);
    uint16_t (*write)(float x);
} format;

static const format formats[2] = { { TUTTI_F16, 5, 10, tti_f16_read, tti_f16_write },
                                   { TUTTI_BF16, 8, 7, tti_bf16_read, tti_bf16_write } };

/* What a code without its sign stands for, by definition; its exponent is not the last one. */
static double value_of(const format *f, int code)
{
    const int bias = (1 << (f->exponent - 1)) - 1, e = code >> f->mantissa;
    const int m = code & ((1 << f->mantissa) - 1);

    if (e == 0)
        return ldexp(m, 1 - bias - f->mantissa);
    return ldexp(m + (1 << f->mantissa), e - bias - f->mantissa);
}

static void codes_by_definition(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const format *f = &formats[k];
        const int inf = ((1 << f->exponent) - 1) << f->mantissa;

        for (int code = 0; code < inf; code++) {
            const uint16_t minus = (uint16_t)(code | 0x8000);

            assert_true((double)f->read((uint16_t)code) == value_of(f, code));
            assert_true((double)f->read(minus) == -value_of(f, code));
            assert_int_equal(f->write(f->read((uint16_t)code)), code);
            assert_int_equal(f->write(f->read(minus)), minus);
        }
        assert_true(f->read((uint16_t)inf) == INFINITY);
        assert_true(f->read((uint16_t)(inf | 0x8000)) == -INFINITY);
        assert_int_equal(f->write(INFINITY), inf);
        for (int code = inf + 1; code < 0x8000; code++) {
            assert_true(isnan(f->read((uint16_t)code)));
            assert_true(isnan(f->read(f->write(f->read((uint16_t)code)))));
        }
    }
}

/* Half-way between neighbours the even one is taken; a little to either side, the nearer one. */
static void writing_rounds_to_nearest(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const format *f = &formats[k];
        const int last = (((1 << f->exponent) - 1) << f->mantissa) - 1;

        for (int code = 0; code <= last; code++) {
            const double low = value_of(f, code);
            const double high =
                code < last ? value_of(f, code + 1) : 2 * low - value_of(f, code - 1);
            const float middle = (float)((low + high) / 2);

            if ((double)middle != (low + high) / 2)
                continue; /* a subnormal of bf16, between which f32 has nothing */
            assert_int_equal(f->write(middle), code + (code & 1));
            assert_int_equal(f->write(nextafterf(middle, 0.0f)), code);
            assert_int_equal(f->write(nextafterf(middle, INFINITY)), code + 1);
            assert_int_equal(f->write(-middle), (code + (code & 1)) | 0x8000);
        }
        assert_int_equal(f->write(FLT_MAX), last + 1);
    }
}

static void conversions_between_all_types(void **state)
{
    const tutti_dtype types[] = { TUTTI_BOOL, TUTTI_U8,   TUTTI_I32, TUTTI_I64,
                                  TUTTI_F16,  TUTTI_BF16, TUTTI_F32, TUTTI_F64 };
    double v;

    (void)state;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            tutti_tensor *x = tutti_tensor_full(types[i], 2, SHAPE(2, 3), i > 0 ? 5.0 : 1.0);
            tutti_tensor *y = tutti_tensor_to(tutti_tensor_transpose(x, 0, 1), types[j]);

            assert_int_equal(tutti_tensor_dtype(y), types[j]);
            assert_int_equal(
                tutti_tensor_item(tutti_tensor_select(tutti_tensor_select(y, 0, 2), 0, 1), &v),
                TUTTI_OK);
            assert_true(v == (i > 0 && j > 0 ? 5.0 : 1.0));
        }
}

/* ---- operations ------------------------------------------------------------------------------- */

typedef tutti_tensor *(*operation)(tutti_tensor *const *in);

static tutti_tensor *op_exp(tutti_tensor *const *in)
{
    return tutti_tensor_exp(in[0]);
}

static tutti_tensor *op_gelu(tutti_tensor *const *in)
{
    return tutti_tensor_gelu_tanh(in[0]);
}

static tutti_tensor *op_add(tutti_tensor *const *in)
{
    return tutti_tensor_add(in[0], in[1]);
}

static tutti_tensor *op_div(tutti_tensor *const *in)
{
    return tutti_tensor_div(in[0], in[1]);
}

static tutti_tensor *op_maximum(tutti_tensor *const *in)
{
    return tutti_tensor_maximum(in[0], in[1]);
}

static tutti_tensor *op_where(tutti_tensor *const *in)
{
    return tutti_tensor_where(tutti_tensor_lt(in[0], in[1]), in[0], in[1]);
}

static tutti_tensor *op_matmul(tutti_tensor *const *in)
{
    return tutti_tensor_matmul(in[0], tutti_tensor_transpose(in[1], 0, 1));
}

static tutti_tensor *op_linear(tutti_tensor *const *in)
{
    return tutti_tensor_linear(in[0], in[1], NULL);
}

static tutti_tensor *op_sum(tutti_tensor *const *in)
{
    return tutti_tensor_sum(in[0], (const int[]){ 1 }, 1, false);
}

static tutti_tensor *op_mean(tutti_tensor *const *in)
{
    return tutti_tensor_mean(in[0], NULL, 0, true);
}

static tutti_tensor *op_var(tutti_tensor *const *in)
{
    return tutti_tensor_var(in[0], (const int[]){ 0 }, 1, 1.0, true);
}

static tutti_tensor *op_norm(tutti_tensor *const *in)
{
    return tutti_tensor_norm(in[0], NULL, 0, false);
}

static tutti_tensor *op_logsumexp(tutti_tensor *const *in)
{
    return tutti_tensor_logsumexp(in[0], 1, false);
}

static tutti_tensor *op_max(tutti_tensor *const *in)
{
    return tutti_tensor_max(in[0], 0, false, NULL);
}

static tutti_tensor *op_cat(tutti_tensor *const *in)
{
    return tutti_tensor_cat(in, 2, 1);
}

static tutti_tensor *op_narrow(tutti_tensor *const *in)
{
    return tutti_tensor_contiguous(tutti_tensor_narrow(in[0], 1, 2, 3));
}

static tutti_tensor *op_softmax(tutti_tensor *const *in)
{
    return tutti_tensor_softmax(in[0], 1);
}

static tutti_tensor *op_log_softmax(tutti_tensor *const *in)
{
    return tutti_tensor_log_softmax(in[0], 0);
}

static tutti_tensor *op_layer_norm(tutti_tensor *const *in)
{
    return tutti_tensor_layer_norm(in[0], 1, SHAPE(8), tutti_tensor_select(in[1], 0, 0),
                                   tutti_tensor_select(in[1], 0, 1), 1e-5);
}

static tutti_tensor *op_rms_norm(tutti_tensor *const *in)
{
    return tutti_tensor_rms_norm(in[0], 1, SHAPE(8), NULL, 1e-5);
}

static tutti_tensor *op_attention(tutti_tensor *const *in)
{
    return tutti_tensor_scaled_dot_product_attention(in[0], in[1], in[1], NULL);
}

static tutti_tensor *op_cross_entropy(tutti_tensor *const *in)
{
    tutti_tensor *target = tutti_tensor_from_data(SHAPE(3, -7, 0, 7, 1), TUTTI_I64, 1, SHAPE(5));
    tutti_loss_options opts = TUTTI_LOSS_OPTIONS;

    opts.has_ignore_index = true;
    opts.ignore_index = -7;
    opts.label_smoothing = 0.1;
    return tutti_tensor_cross_entropy(in[0], target, &opts);
}

static tutti_tensor *op_embedding(tutti_tensor *const *in)
{
    tutti_tensor *index = tutti_tensor_from_data(SHAPE(3, 3, 0, 3), TUTTI_I64, 1, SHAPE(4));

    return tutti_tensor_embedding(in[0], index, -1);
}

static tutti_tensor *op_take(tutti_tensor *const *in)
{
    tutti_tensor *index = tutti_tensor_from_data(SHAPE(1, 0, 1, 4), TUTTI_I64, 2, SHAPE(2, 2));

    return tutti_tensor_index_gather(in[0], 0, index);
}

static tutti_tensor *op_dropout(tutti_tensor *const *in)
{
    tutti_manual_seed(3);
    return tutti_tensor_dropout(in[0], 0.5, true);
}

static tutti_tensor *leaf(tutti_tensor *x, tutti_dtype dtype)
{
    return tutti_tensor_requires_grad_(tutti_tensor_clone(tutti_tensor_to(x, dtype)), true);
}

static void backward_of(tutti_tensor *y)
{
    tutti_tensor *g = tutti_tensor_to(tutti_tensor_detach(y), tutti_tensor_dtype(y));

    assert_int_equal(tutti_backward(&y, &g, 1, 0), TUTTI_OK);
}

/* op of x and w in dtype, against the same in f32 with everything rounded by hand. */
static void check_operation(const char *what, operation op, tutti_dtype dtype)
{
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(5, 8), NULL);
    tutti_tensor *w = tutti_tensor_rand(TUTTI_F32, 2, SHAPE(5, 8), NULL), *y, *want;
    tutti_tensor *in[2] = { leaf(x, dtype), leaf(tutti_tensor_add_scalar(w, 0.5), dtype) };
    tutti_tensor *wide[2] = { leaf(tutti_tensor_detach(in[0]), TUTTI_F32),
                              leaf(tutti_tensor_detach(in[1]), TUTTI_F32) };

    y = op(in);
    want = op(wide);
    if (y == NULL || want == NULL)
        fail_msg("%s", tutti_last_error());
    assert_int_equal(tutti_tensor_dtype(y), dtype);
    assert_true(tutti_tensor_equal(tutti_tensor_detach(y),
                                   tutti_tensor_to(tutti_tensor_detach(want), dtype)));
    backward_of(y);
    want = tutti_tensor_to(want, dtype); /* so that both are given the same gradient */
    backward_of(want);
    for (int k = 0; k < 2; k++) {
        tutti_tensor *g = tutti_tensor_grad(in[k]), *full = tutti_tensor_grad(wide[k]);

        assert_true((g == NULL) == (full == NULL));
        if (g == NULL)
            continue;
        assert_int_equal(tutti_tensor_dtype(g), dtype);
        full = tutti_tensor_to(tutti_tensor_sub(full, tutti_tensor_to(g, TUTTI_F32)), TUTTI_F32);
        full = tutti_tensor_norm(full, NULL, 0, false);
        full = tutti_tensor_div(
            full, tutti_tensor_add_scalar(
                      tutti_tensor_norm(tutti_tensor_grad(wide[k]), NULL, 0, false), 1e-6));
        if (!(*(float *)tutti_tensor_data(full) < (dtype == TUTTI_F16 ? 2e-3f : 1.6e-2f)))
            fail_msg("%s: gradient %d is %g away", what, k,
                     (double)*(float *)tutti_tensor_data(full));
    }
}

static void operations_are_those_of_f32_rounded(void **state)
{
    static const struct {
        const char *name;
        operation op;
    } ops[] = { { "exp", op_exp },
                { "gelu", op_gelu },
                { "add", op_add },
                { "div", op_div },
                { "maximum", op_maximum },
                { "where", op_where },
                { "matmul", op_matmul },
                { "linear", op_linear },
                { "sum", op_sum },
                { "mean", op_mean },
                { "var", op_var },
                { "norm", op_norm },
                { "logsumexp", op_logsumexp },
                { "max", op_max },
                { "cat", op_cat },
                { "narrow", op_narrow },
                { "softmax", op_softmax },
                { "log_softmax", op_log_softmax },
                { "layer_norm", op_layer_norm },
                { "rms_norm", op_rms_norm },
                { "attention", op_attention },
                { "cross_entropy", op_cross_entropy },
                { "embedding", op_embedding },
                { "take", op_take },
                { "dropout", op_dropout } };

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        check_operation(ops[i].name, ops[i].op, TUTTI_F16);
        check_operation(ops[i].name, ops[i].op, TUTTI_BF16);
    }
}

/* Sums are kept in f32: in bf16 a sum of ones would stop at 256. */
static void sums_are_kept_in_f32(void **state)
{
    tutti_tensor *ones = tutti_tensor_ones(TUTTI_BF16, 1, SHAPE(4096)), *w, *y;
    tutti_tensor *index = tutti_tensor_zeros(TUTTI_I64, 1, SHAPE(300));
    double v;

    (void)state;
    assert_int_equal(tutti_tensor_item(tutti_tensor_sum(ones, NULL, 0, false), &v), TUTTI_OK);
    assert_true(v == 4096.0);
    assert_int_equal(tutti_tensor_item(tutti_tensor_matmul(ones, ones), &v), TUTTI_OK);
    assert_true(v == 4096.0);
    w = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_BF16, 2, SHAPE(2, 1)), true);
    y = tutti_tensor_sum(tutti_tensor_embedding(w, index, -1), NULL, 0, false);
    assert_int_equal(tutti_tensor_backward(y), TUTTI_OK);
    assert_int_equal(tutti_tensor_item(tutti_tensor_select(tutti_tensor_grad(w), 0, 0), &v),
                     TUTTI_OK);
    assert_true(v == 300.0);
}

static void types_meet(void **state)
{
    tutti_tensor *h = tutti_tensor_ones(TUTTI_F16, 1, SHAPE(2));
    tutti_tensor *b = tutti_tensor_ones(TUTTI_BF16, 1, SHAPE(2));
    tutti_tensor *f = tutti_tensor_ones(TUTTI_F32, 1, SHAPE(2));
    tutti_tensor *i = tutti_tensor_ones(TUTTI_I64, 1, SHAPE(2)), *pair[2] = { h, b };

    (void)state;
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_add(h, b)), TUTTI_F32);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_add(b, f)), TUTTI_F32);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_add(i, h)), TUTTI_F16);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_mul(b, tutti_tensor_scalar(TUTTI_F32, 2))),
                     TUTTI_BF16);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_add(i, tutti_tensor_scalar(TUTTI_BF16, 2))),
                     TUTTI_BF16);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_mul_scalar(h, 2.0)), TUTTI_F16);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_cat(pair, 2, 0)), TUTTI_F32);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_eq(h, b)), TUTTI_BOOL);
    assert_true(tutti_tensor_equal(h, tutti_tensor_to(b, TUTTI_F16)));
    assert_null(tutti_tensor_matmul(h, b));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

static void in_place(void **state)
{
    tutti_tensor *h = tutti_tensor_full(TUTTI_BF16, 2, SHAPE(2, 3), 1.5);
    tutti_tensor *t = tutti_tensor_transpose(h, 0, 1);
    double v;

    (void)state;
    assert_int_equal(tutti_tensor_add_(t, tutti_tensor_scalar(TUTTI_F32, 0.25), 2.0), TUTTI_OK);
    assert_int_equal(tutti_tensor_mul_(t, tutti_tensor_ones(TUTTI_F32, 1, SHAPE(2))), TUTTI_OK);
    assert_int_equal(tutti_tensor_div_scalar_(h, 4.0), TUTTI_OK);
    assert_int_equal(tutti_tensor_item(tutti_tensor_sum(h, NULL, 0, false), &v), TUTTI_OK);
    assert_true(v == 3.0);
    assert_int_equal(tutti_tensor_add_(h, tutti_tensor_ones(TUTTI_F32, 1, SHAPE(4)), 1.0),
                     TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* What is not there says so: drawn numbers, and two of the types in one product. */
static void what_is_not_offered(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F16, 4, SHAPE(1, 1, 4, 4));

    (void)state;
    assert_int_equal(tutti_tensor_normal_(x, 0.0, 1.0, NULL), TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
    assert_null(tutti_tensor_conv2d(x, tutti_tensor_to(x, TUTTI_BF16), NULL, NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(codes_by_definition, begin, end),
        cmocka_unit_test_setup_teardown(writing_rounds_to_nearest, begin, end),
        cmocka_unit_test_setup_teardown(conversions_between_all_types, begin, end),
        cmocka_unit_test_setup_teardown(operations_are_those_of_f32_rounded, begin, end),
        cmocka_unit_test_setup_teardown(sums_are_kept_in_f32, begin, end),
        cmocka_unit_test_setup_teardown(types_meet, begin, end),
        cmocka_unit_test_setup_teardown(in_place, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_offered, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
