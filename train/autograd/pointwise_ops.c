/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise_ops.c - operations element by element, with their gradients.
 *
 * g is the gradient that comes in, y the result. Gradients of broadcast operands are left in the
 * result's shape: the engine sums them. */
#include "autograd/autograd.h"

/* ---- two operands ----------------------------------------------------------------------------- */

static void add_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const double alpha = node->real[0];

    if (tti_wants(node, 0))
        out[0] = tutti_tensor_retain(g);
    if (tti_wants(node, 1))
        out[1] = alpha == 1.0 ? tutti_tensor_retain(g) : tti_raw_scale(g, alpha);
}

static void mul_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    if (tti_wants(node, 0))
        out[0] = tti_raw_mul(g, tti_saved(node, 1));
    if (tti_wants(node, 1))
        out[1] = tti_raw_mul(g, tti_saved(node, 0));
}

/* y = a / b: g / b and -g y / b */
static void div_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *share = tti_temp(tti_raw_div(g, tti_saved(node, 0)));

    if (tti_wants(node, 0))
        out[0] = tutti_tensor_retain(share);
    if (tti_wants(node, 1))
        out[1] = tti_raw_neg(tti_temp(tti_raw_mul(share, tti_saved(node, 1))));
}

static const tti_node_class add_class = { .name = "add", .apply = add_apply };
static const tti_node_class mul_class = { .name = "mul", .apply = mul_apply };
static const tti_node_class div_class = { .name = "div", .apply = div_apply };

tutti_tensor *tutti_tensor_add_scaled(tutti_tensor *a, tutti_tensor *b, double alpha)
{
    tutti_tensor *y = tti_raw_op2(TTI_ADD, a, b, alpha);
    tti_node *node = tti_record(&y, &add_class, 2, (tutti_tensor *[]){ a, b });

    if (node != NULL)
        node->real[0] = alpha;
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_add(tutti_tensor *a, tutti_tensor *b)
{
    return tutti_tensor_add_scaled(a, b, 1.0);
}

tutti_tensor *tutti_tensor_sub(tutti_tensor *a, tutti_tensor *b)
{
    return tutti_tensor_add_scaled(a, b, -1.0);
}

tutti_tensor *tutti_tensor_mul(tutti_tensor *a, tutti_tensor *b)
{
    tutti_tensor *y = tti_raw_mul(a, b);
    tti_node *node = tti_record(&y, &mul_class, 2, (tutti_tensor *[]){ a, b });

    if (node != NULL && tti_wants(node, 1))
        tti_save(node, 0, a);
    if (node != NULL && tti_wants(node, 0))
        tti_save(node, 1, b);
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_div(tutti_tensor *a, tutti_tensor *b)
{
    tutti_tensor *y = tti_raw_div(a, b);
    tti_node *node = tti_record(&y, &div_class, 2, (tutti_tensor *[]){ a, b });

    if (node != NULL)
        tti_save(node, 0, b);
    if (node != NULL && tti_wants(node, 1))
        tti_save_result(node, 1, y);
    return tti_temp(y);
}

/* ---- the larger, the smaller, one or the other -------------------------------------------------- */

/* number[0]: which of the two it is. */
static void extreme_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tti_op3 back = (tti_op3)node->number[0];

    if (tti_wants(node, 0))
        out[0] = tti_raw_op3(back, g, tti_saved(node, 0), tti_saved(node, 1));
    if (tti_wants(node, 1))
        out[1] = tti_raw_op3(back, g, tti_saved(node, 1), tti_saved(node, 0));
}

static const tti_node_class maximum_class = { .name = "maximum", .apply = extreme_apply };
static const tti_node_class minimum_class = { .name = "minimum", .apply = extreme_apply };

static tutti_tensor *extreme(tti_op2 op, tti_op3 back, const tti_node_class *cls, tutti_tensor *a,
                             tutti_tensor *b)
{
    tutti_tensor *y = tti_raw_op2(op, a, b, 0.0);
    tti_node *node = tti_record(&y, cls, 2, (tutti_tensor *[]){ a, b });

    if (node != NULL) {
        tti_save(node, 0, a);
        tti_save(node, 1, b);
        node->number[0] = back;
    }
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_maximum(tutti_tensor *a, tutti_tensor *b)
{
    return extreme(TTI_MAXIMUM, TTI_MAXIMUM_BACK, &maximum_class, a, b);
}

tutti_tensor *tutti_tensor_minimum(tutti_tensor *a, tutti_tensor *b)
{
    return extreme(TTI_MINIMUM, TTI_MINIMUM_BACK, &minimum_class, a, b);
}

static void where_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *zero = tti_temp(tti_raw_full(g->dtype, 0, NULL, 0.0));

    if (tti_wants(node, 0))
        out[0] = tti_raw_where(tti_saved(node, 0), g, zero);
    if (tti_wants(node, 1))
        out[1] = tti_raw_where(tti_saved(node, 0), zero, g);
}

tutti_tensor *tutti_tensor_where(const tutti_tensor *cond, tutti_tensor *a, tutti_tensor *b)
{
    static const tti_node_class where_class = { .name = "where", .apply = where_apply };
    tutti_tensor *y = tti_raw_where(cond, a, b);
    tti_node *node = tti_record(&y, &where_class, 2, (tutti_tensor *[]){ a, b });

    if (node != NULL)
        tti_save(node, 0, (tutti_tensor *)(uintptr_t)cond);
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_masked_fill(tutti_tensor *x, const tutti_tensor *mask, double value)
{
    tutti_tensor *filling, *y;

    if (x == NULL || mask == NULL)
        return tti_poisoned("masked_fill");
    tutti_scope_begin();
    filling = tti_temp(tti_raw_full(x->dtype, 0, NULL, value));
    y = tutti_tensor_retain(tutti_tensor_where(mask, filling, x));
    tutti_scope_end();
    return tti_temp(y);
}

/* ---- one operand ------------------------------------------------------------------------------ */

static void pass_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    (void)node;
    out[0] = tutti_tensor_retain(g);
}

static void scale_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_scale(g, node->real[0]);
}

/* What g is combined with, and how, stands in the table below. number[0]: the operation. */
static void slope_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out);

typedef enum keeps { KEEPS_NOTHING, KEEPS_INPUT, KEEPS_RESULT } keeps;

static const struct {
    tti_node_class cls;
    keeps keeps;
    tti_op2 back; /* of g and what is kept, for slope_apply */
} table[TTI_OP1_COUNT] = {
    [TTI_NEG] = { { "neg", scale_apply }, KEEPS_NOTHING, 0 },
    [TTI_EXP] = { { "exp", slope_apply }, KEEPS_RESULT, TTI_MUL },
    [TTI_LOG] = { { "log", slope_apply }, KEEPS_INPUT, TTI_DIV },
    [TTI_SQRT] = { { "sqrt", slope_apply }, KEEPS_RESULT, TTI_SQRT_BACK },
    [TTI_RSQRT] = { { "rsqrt", slope_apply }, KEEPS_RESULT, TTI_RSQRT_BACK },
    [TTI_TANH] = { { "tanh", slope_apply }, KEEPS_RESULT, TTI_TANH_BACK },
    [TTI_ERF] = { { "erf", slope_apply }, KEEPS_INPUT, TTI_ERF_BACK },
    [TTI_SIGMOID] = { { "sigmoid", slope_apply }, KEEPS_RESULT, TTI_SIGMOID_BACK },
    [TTI_RELU] = { { "relu", slope_apply }, KEEPS_RESULT, TTI_RELU_BACK },
    [TTI_GELU] = { { "gelu", slope_apply }, KEEPS_INPUT, TTI_GELU_BACK },
    [TTI_GELU_TANH] = { { "gelu_tanh", slope_apply }, KEEPS_INPUT, TTI_GELU_TANH_BACK },
    [TTI_SILU] = { { "silu", slope_apply }, KEEPS_INPUT, TTI_SILU_BACK },
    [TTI_ABS] = { { "abs", slope_apply }, KEEPS_INPUT, TTI_ABS_BACK },
    [TTI_ADD_C] = { { "add_scalar", pass_apply }, KEEPS_NOTHING, 0 },
    [TTI_MUL_C] = { { "mul_scalar", scale_apply }, KEEPS_NOTHING, 0 },
};

static void slope_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_op2(table[node->number[0]].back, g, tti_saved(node, 0), 0.0);
}

static tutti_tensor *recorded(tti_op1 op, tutti_tensor *x, double c)
{
    tutti_tensor *y = tti_raw_op1(op, x, c);
    tti_node *node = tti_record(&y, &table[op].cls, 1, &x);

    if (node != NULL) {
        node->number[0] = op;
        node->real[0] = op == TTI_NEG ? -1.0 : c;
        if (table[op].keeps == KEEPS_INPUT)
            tti_save(node, 0, x);
        if (table[op].keeps == KEEPS_RESULT)
            tti_save_result(node, 0, y);
    }
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_add_scalar(tutti_tensor *x, double c)
{
    return recorded(TTI_ADD_C, x, c);
}

tutti_tensor *tutti_tensor_mul_scalar(tutti_tensor *x, double c)
{
    return recorded(TTI_MUL_C, x, c);
}

tutti_tensor *tutti_tensor_neg(tutti_tensor *x)
{
    return recorded(TTI_NEG, x, 0.0);
}

tutti_tensor *tutti_tensor_exp(tutti_tensor *x)
{
    return recorded(TTI_EXP, x, 0.0);
}

tutti_tensor *tutti_tensor_log(tutti_tensor *x)
{
    return recorded(TTI_LOG, x, 0.0);
}

tutti_tensor *tutti_tensor_sqrt(tutti_tensor *x)
{
    return recorded(TTI_SQRT, x, 0.0);
}

tutti_tensor *tutti_tensor_rsqrt(tutti_tensor *x)
{
    return recorded(TTI_RSQRT, x, 0.0);
}

tutti_tensor *tutti_tensor_tanh(tutti_tensor *x)
{
    return recorded(TTI_TANH, x, 0.0);
}

tutti_tensor *tutti_tensor_erf(tutti_tensor *x)
{
    return recorded(TTI_ERF, x, 0.0);
}

tutti_tensor *tutti_tensor_sigmoid(tutti_tensor *x)
{
    return recorded(TTI_SIGMOID, x, 0.0);
}

tutti_tensor *tutti_tensor_relu(tutti_tensor *x)
{
    return recorded(TTI_RELU, x, 0.0);
}

tutti_tensor *tutti_tensor_gelu(tutti_tensor *x)
{
    return recorded(TTI_GELU, x, 0.0);
}

tutti_tensor *tutti_tensor_gelu_tanh(tutti_tensor *x)
{
    return recorded(TTI_GELU_TANH, x, 0.0);
}

tutti_tensor *tutti_tensor_silu(tutti_tensor *x)
{
    return recorded(TTI_SILU, x, 0.0);
}

tutti_tensor *tutti_tensor_abs(tutti_tensor *x)
{
    return recorded(TTI_ABS, x, 0.0);
}

/* ---- one operand and numbers ------------------------------------------------------------------ */

static void clamp_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_clamp_back(g, tti_saved(node, 0), node->real[0], node->real[1]);
}

tutti_tensor *tutti_tensor_clamp(tutti_tensor *x, double low, double high)
{
    static const tti_node_class clamp_class = { .name = "clamp", .apply = clamp_apply };
    tutti_tensor *y = tti_raw_clamp(x, low, high);
    tti_node *node = tti_record(&y, &clamp_class, 1, &x);

    if (node != NULL) {
        tti_save(node, 0, x);
        node->real[0] = low;
        node->real[1] = high;
    }
    return tti_temp(y);
}

/* g p x^(p-1); nothing for p = 0, also where x is 0 */
static void pow_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const double p = node->real[0];

    if (p != 0.0)
        out[0] = tti_raw_mul(tti_temp(tti_raw_scale(g, p)),
                             tti_temp(tti_raw_pow(tti_saved(node, 0), p - 1.0)));
}

tutti_tensor *tutti_tensor_pow_scalar(tutti_tensor *x, double p)
{
    static const tti_node_class pow_class = { .name = "pow", .apply = pow_apply };
    tutti_tensor *y = tti_raw_pow(x, p);
    tti_node *node = tti_record(&y, &pow_class, 1, &x);

    if (node != NULL) {
        tti_save(node, 0, x);
        node->real[0] = p;
    }
    return tti_temp(y);
}

/* The engine converts the gradient back to the input's type. */
tutti_tensor *tutti_tensor_to(tutti_tensor *x, tutti_dtype dtype)
{
    static const tti_node_class to_class = { .name = "to", .apply = pass_apply };
    tutti_tensor *y = tti_raw_to(x, dtype);

    if (y != x)
        (void)tti_record(&y, &to_class, 1, &x);
    return tti_temp(y);
}
