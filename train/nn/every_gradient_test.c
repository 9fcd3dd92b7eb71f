/* SPDX-License-Identifier: BSD-3-Clause
 *
 * every_gradient_test.c
 * Goal    no operation is without a comparison of its gradient with finite differences, and in f32, f16 and bf16
 *         its gradient is that of f64 to the precision of the type.
 * Method  a table with a row for each public operation; the house test `gradients` compares it with the headers.
 *         Odd shapes, views and corners are the business of the tests beside each operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <tutti/nn.h>

#include "autograd/gradcheck.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { INPUTS = 3, ROWS = 4, COLUMNS = 5 };

/* ---- what an operation is given --------------------------------------------------------------- */

typedef struct input {
    bool is_there;
    int nd;
    int64_t shape[4];
} input;

#define PLANE          { true, 2, { ROWS, COLUMNS } }
#define INPUT(nd, ...) { true, nd, { __VA_ARGS__ } }

static const input ONE[INPUTS] = { PLANE };
static const input TWO[INPUTS] = { PLANE, PLANE };
static const input PRODUCT[INPUTS] = { PLANE, INPUT(2, COLUMNS, 3) };
static const input BATCHES[INPUTS] = { INPUT(3, 2, 3, 4), INPUT(3, 2, 4, 2) };
static const input LINEAR[INPUTS] = { PLANE, INPUT(2, 3, COLUMNS), INPUT(1, 3) };
static const input CONV[INPUTS] = { INPUT(4, 2, 2, 4, 5), INPUT(4, 3, 2, 3, 2), INPUT(1, 3) };
static const input IMAGES[INPUTS] = { INPUT(4, 2, 3, 4, 4) };
static const input NORM[INPUTS] = { PLANE, INPUT(1, COLUMNS), INPUT(1, COLUMNS) };
static const input HEADS[INPUTS] = { INPUT(4, 2, 2, 3, 4), INPUT(4, 2, 2, 5, 4), INPUT(4, 2, 2, 5, 2) };

/* ---- operations that need more than their operands ---------------------------------------------- */

static tutti_tensor *numbers(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return tutti_tensor_from_data(SHAPE(a, b, c, d), TUTTI_I64, 1, SHAPE(ROWS));
}

static tutti_tensor *table_of_numbers(void)
{
    return tutti_tensor_from_data(SHAPE(3, 0, 0, 2, 1, 1), TUTTI_I64, 2, SHAPE(2, 3));
}

/* Where a fixed pattern says so. */
static tutti_tensor *pattern(void)
{
    const uint8_t on[ROWS * COLUMNS] = { 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1 };

    return tutti_tensor_from_data(on, TUTTI_BOOL, 2, SHAPE(ROWS, COLUMNS));
}

/* The same draws each time. */
static tutti_tensor *seeded(tutti_tensor *x)
{
    tutti_manual_seed(11);
    return x;
}

static tutti_tensor *of_squares(tutti_tensor *const *in)
{
    return tutti_tensor_mul(tutti_tensor_to(tutti_tensor_mul(in[0], in[0]), TUTTI_F64), in[0]);
}

static tutti_tensor *cut_and_joined(tutti_tensor *const *in)
{
    tutti_tensor *part[3];

    if (tutti_tensor_split(in[0], 1, 1, 3, part) != TUTTI_OK)
        return NULL;
    return tutti_tensor_mul(tutti_tensor_mul(part[0], part[1]), part[2]);
}

static tutti_tensor *halves_multiplied(tutti_tensor *const *in)
{
    tutti_tensor *part[2];

    return tutti_tensor_chunk(in[0], 2, 0, part) == TUTTI_OK ? tutti_tensor_mul(part[0], part[1]) : NULL;
}

static tutti_tensor *many_logits(tutti_tensor *const *in)
{
    tutti_loss_options opts = TUTTI_LOSS_OPTIONS;

    opts.label_smoothing = 0.1;
    opts.reduction = TUTTI_REDUCTION_NONE;
    return tutti_tensor_cross_entropy(in[0], numbers(3, 0, 4, 4), &opts);
}

static tutti_tensor *region(tutti_tensor *const *in, int n, void *ctx)
{
    (void)n;
    (void)ctx;
    return tutti_tensor_mul(tutti_tensor_exp(in[0]), tutti_tensor_tanh(in[1]));
}

static tutti_tensor *of_region(tutti_tensor *const *in)
{
    return tutti_checkpoint(region, in, 2, NULL, NULL);
}

static tutti_tensor *causal(tutti_tensor *const *in)
{
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;

    opts.is_causal = true;
    return tutti_tensor_scaled_dot_product_attention(in[0], in[1], in[2], &opts);
}

/* ---- the table ---------------------------------------------------------------------------------- */

/* CASE(operation, what it is given, its arguments): in[k] are the operands.
 * CASE_BY(operation, what it is given, a function of them all that calls it). */
#define TABLE                                                                              \
    CASE(tutti_tensor_add, TWO, in[0], in[1])                                              \
    CASE(tutti_tensor_add_scaled, TWO, in[0], in[1], -0.7)                                 \
    CASE(tutti_tensor_sub, TWO, in[0], in[1])                                              \
    CASE(tutti_tensor_mul, TWO, in[0], in[1])                                              \
    CASE(tutti_tensor_div, TWO, in[0], in[1])                                              \
    CASE(tutti_tensor_add_scalar, ONE, in[0], 1.5)                                         \
    CASE(tutti_tensor_mul_scalar, ONE, in[0], -2.5)                                        \
    CASE(tutti_tensor_neg, ONE, in[0])                                                     \
    CASE(tutti_tensor_exp, ONE, in[0])                                                     \
    CASE(tutti_tensor_log, ONE, in[0])                                                     \
    CASE(tutti_tensor_sqrt, ONE, in[0])                                                    \
    CASE(tutti_tensor_rsqrt, ONE, in[0])                                                   \
    CASE(tutti_tensor_tanh, ONE, in[0])                                                    \
    CASE(tutti_tensor_erf, ONE, in[0])                                                     \
    CASE(tutti_tensor_sigmoid, ONE, in[0])                                                 \
    CASE(tutti_tensor_relu, ONE, tutti_tensor_add_scalar(in[0], -1.0))                     \
    CASE(tutti_tensor_gelu, ONE, tutti_tensor_add_scalar(in[0], -1.0))                     \
    CASE(tutti_tensor_gelu_tanh, ONE, tutti_tensor_add_scalar(in[0], -1.0))                \
    CASE(tutti_tensor_silu, ONE, tutti_tensor_add_scalar(in[0], -1.0))                     \
    CASE(tutti_tensor_abs, ONE, tutti_tensor_add_scalar(in[0], -1.0))                      \
    CASE(tutti_tensor_clamp, ONE, in[0], 0.7, 1.3)                                         \
    CASE(tutti_tensor_pow_scalar, ONE, in[0], -1.7)                                        \
    CASE(tutti_tensor_maximum, TWO, in[0], in[1])                                          \
    CASE(tutti_tensor_minimum, TWO, in[0], in[1])                                          \
    CASE(tutti_tensor_where, TWO, pattern(), in[0], in[1])                                 \
    CASE(tutti_tensor_masked_fill, ONE, in[0], pattern(), 3.0)                             \
    CASE_BY(tutti_tensor_to, ONE, of_squares)                                       \
    CASE(tutti_tensor_sum, ONE, in[0], (const int[]){ 1 }, 1, false)                       \
    CASE(tutti_tensor_mean, ONE, in[0], (const int[]){ 0 }, 1, true)                       \
    CASE(tutti_tensor_max, ONE, in[0], 1, false, NULL)                                     \
    CASE(tutti_tensor_min, ONE, in[0], 0, true, NULL)                                      \
    CASE(tutti_tensor_var, ONE, in[0], (const int[]){ 1 }, 1, 1.0, false)                  \
    CASE(tutti_tensor_norm, ONE, in[0], (const int[]){ 1 }, 1, false)                      \
    CASE(tutti_tensor_logsumexp, ONE, in[0], 1, false)                                     \
    CASE(tutti_tensor_view, ONE, in[0], 3, SHAPE(2, 2, COLUMNS))                           \
    CASE(tutti_tensor_reshape, ONE, tutti_tensor_transpose(in[0], 0, 1), 2, SHAPE(2, 10))  \
    CASE(tutti_tensor_flatten, ONE, in[0], 0)                                              \
    CASE(tutti_tensor_transpose, ONE, in[0], 0, 1)                                         \
    CASE(tutti_tensor_permute, IMAGES, in[0], (const int[]){ 2, 0, 3, 1 })                 \
    CASE(tutti_tensor_narrow, ONE, in[0], 1, 1, 3)                                         \
    CASE(tutti_tensor_select, ONE, in[0], 1, -2)                                           \
    CASE(tutti_tensor_expand, LINEAR, in[2], 2, SHAPE(4, 3))                               \
    CASE(tutti_tensor_unsqueeze, ONE, in[0], 1)                                            \
    CASE(tutti_tensor_squeeze, ONE, tutti_tensor_narrow(in[0], 1, 2, 1), 1)                \
    CASE(tutti_tensor_contiguous, ONE, tutti_tensor_transpose(in[0], 0, 1))                \
    CASE(tutti_tensor_clone, ONE, in[0])                                                   \
    CASE(tutti_tensor_cat, TWO, in, 2, 1)                                                  \
    CASE_BY(tutti_tensor_split, IMAGES, cut_and_joined)                                    \
    CASE_BY(tutti_tensor_chunk, ONE, halves_multiplied)                                    \
    CASE(tutti_tensor_index_select, ONE, in[0], 1, numbers(4, 0, 4, 1))                    \
    CASE(tutti_tensor_index_gather, ONE, in[0], 0, table_of_numbers())                     \
    CASE(tutti_tensor_tril, ONE, in[0], 1)                                                 \
    CASE(tutti_tensor_triu, ONE, in[0], -1)                                                \
    CASE(tutti_tensor_mm, PRODUCT, in[0], in[1])                                           \
    CASE(tutti_tensor_bmm, BATCHES, in[0], in[1])                                          \
    CASE(tutti_tensor_matmul, PRODUCT, in[0], in[1])                                       \
    CASE_BY(tutti_checkpoint, TWO, of_region)                                              \
    CASE(tutti_tensor_linear, LINEAR, in[0], in[1], in[2])                                 \
    CASE(tutti_tensor_conv2d, CONV, in[0], in[1], in[2], NULL)                             \
    CASE(tutti_tensor_max_pool2d, IMAGES, in[0], 2, 2, NULL)                               \
    CASE(tutti_tensor_dropout, ONE, seeded(in[0]), 0.4, true)                              \
    CASE(tutti_tensor_dropout2d, IMAGES, seeded(in[0]), 0.5, true)                         \
    CASE(tutti_tensor_log_softmax, ONE, in[0], 1)                                          \
    CASE(tutti_tensor_softmax, ONE, in[0], 0)                                              \
    CASE(tutti_tensor_nll_loss, ONE, in[0], numbers(1, 1, 4, 0), NULL)                     \
    CASE_BY(tutti_tensor_cross_entropy, ONE, many_logits)                                  \
    CASE(tutti_tensor_layer_norm, NORM, in[0], 1, SHAPE(COLUMNS), in[1], in[2], 1e-5)      \
    CASE(tutti_tensor_rms_norm, NORM, in[0], 1, SHAPE(COLUMNS), in[1], 1e-5)               \
    CASE(tutti_tensor_embedding, ONE, in[0], numbers(2, 0, 2, 1), -1)                      \
    CASE_BY(tutti_tensor_scaled_dot_product_attention, HEADS, causal)

#define CASE(operation, given, ...)                                                    \
    static tutti_tensor *of_##operation(tutti_tensor *const *in)                       \
    {                                                                                  \
        return operation(__VA_ARGS__);                                                 \
    }
#define CASE_BY(operation, given, helper)
TABLE
#undef CASE
#undef CASE_BY

typedef struct row {
    const char *name;
    const input *given;
    tutti_tensor *(*call)(tutti_tensor *const *in);
} row;

#define CASE(operation, given, ...)       { #operation, given, of_##operation },
#define CASE_BY(operation, given, helper) { #operation, given, helper },
static const row table[] = { TABLE };

/* ---- against differences ------------------------------------------------------------------------ */

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

static tutti_tensor *call(tutti_tensor *const *in, const void *ctx)
{
    return ((const row *)ctx)->call(in);
}

/* Operands that a row does not use have no gradient: they are not handed to tt_gradcheck() as such. */
static bool is_used(const row *r, int k)
{
    return !(r->call == of_tutti_tensor_expand && k != 2) && !(r->call == of_tutti_tensor_rms_norm && k == 2);
}

static int operands(const row *r, tutti_tensor *in[INPUTS])
{
    int n = 0;

    for (; n < INPUTS && r->given[n].is_there; n++)
        in[n] = tutti_tensor_requires_grad_(tt_leaf(0.3, 1.9, r->given[n].nd, r->given[n].shape), is_used(r, n));
    return n;
}

static void every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        tutti_tensor *in[INPUTS];
        const int n = operands(&table[i], in);

        tt_gradcheck(table[i].name, call, &table[i], in, n);
    }
}

/* ---- in other types ------------------------------------------------------------------------------ */

static tutti_tensor *leaf(tutti_tensor *x, tutti_dtype dtype, bool on)
{
    return tutti_tensor_requires_grad_(tutti_tensor_clone(tutti_tensor_to(tutti_tensor_detach(x), dtype)), on);
}

/* Backward with 1, 1.25, ... 2.75, 1, ..., numbers that every type has. */
static void backward_of(const row *r, tutti_tensor *y)
{
    tutti_tensor *g;
    double *at;

    if (y == NULL)
        fail_msg("%s: %s", r->name, tutti_last_error());
    g = tutti_tensor_contiguous(tutti_tensor_to(tutti_tensor_detach(y), TUTTI_F64));
    g = tutti_tensor_clone(g);
    at = tutti_tensor_data(g);
    for (int64_t i = 0; i < tutti_tensor_numel(g); i++)
        at[i] = 1.0 + 0.25 * (double)(i % 8);
    g = tutti_tensor_to(g, tutti_tensor_dtype(y));
    if (tutti_backward(&y, &g, 1, 0) != TUTTI_OK)
        fail_msg("%s: %s", r->name, tutti_last_error());
}

/* What a gradient of a type with steps of eps may be away: of its largest element, and of the terms that it is a
 * difference of, which are some times as large as what backward was given. */
static void compare(const row *r, int k, tutti_tensor *got, tutti_tensor *want, double eps)
{
    const double *g = tutti_tensor_data(tutti_tensor_contiguous(tutti_tensor_to(got, TUTTI_F64)));
    const double *w = tutti_tensor_data(tutti_tensor_contiguous(want));
    const int64_t n = tutti_tensor_numel(want);
    double largest = 0.0;

    assert_non_null(g);
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(w[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(g[i] - w[i]) <= 8.0 * eps * (largest + 4.0)))
            fail_msg("%s in %s: input %d, element %lld: %.8g, in f64 %.8g", r->name,
                     tutti_dtype_name(tutti_tensor_dtype(got)), k, (long long)i, g[i], w[i]);
}

static void check_in(const row *r, tutti_dtype dtype, double eps)
{
    tutti_tensor *full[INPUTS], *in[INPUTS], *wide[INPUTS];
    const int n = operands(r, full);

    for (int k = 0; k < n; k++) {
        in[k] = leaf(full[k], dtype, is_used(r, k));
        wide[k] = leaf(in[k], TUTTI_F64, is_used(r, k));
    }
    backward_of(r, r->call(in));
    backward_of(r, r->call(wide));
    for (int k = 0; k < n; k++) {
        if (!is_used(r, k))
            continue;
        assert_non_null(tutti_tensor_grad(in[k]));
        assert_int_equal(tutti_tensor_dtype(tutti_tensor_grad(in[k])), dtype);
        compare(r, k, tutti_tensor_grad(in[k]), tutti_tensor_grad(wide[k]), eps);
    }
}

static void in_every_type(void **state)
{
    static const struct {
        tutti_dtype dtype;
        double eps;
    } types[] = { { TUTTI_F32, 0x1p-23 }, { TUTTI_F16, 0x1p-10 }, { TUTTI_BF16, 0x1p-7 } };

    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
            check_in(&table[i], types[t].dtype, types[t].eps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_operation, begin, end),
        cmocka_unit_test_setup_teardown(in_every_type, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
