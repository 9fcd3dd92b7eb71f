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

static void exp_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_mul(g, tti_saved(node, 0));
}

static void log_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_div(g, tti_saved(node, 0));
}

static void sqrt_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_div(g, tti_temp(tti_raw_scale(tti_saved(node, 0), 2.0)));
}

static void tanh_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_op2(TTI_TANH_BACK, g, tti_saved(node, 0), 0.0);
}

static void sigmoid_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_op2(TTI_SIGMOID_BACK, g, tti_saved(node, 0), 0.0);
}

static void relu_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_op2(TTI_RELU_BACK, g, tti_saved(node, 0), 0.0);
}

typedef enum keeps { KEEPS_NOTHING, KEEPS_INPUT, KEEPS_RESULT } keeps;

static const struct {
    tti_node_class cls;
    keeps keeps;
} table[TTI_OP1_COUNT] = {
    [TTI_NEG] = { { "neg", scale_apply }, KEEPS_NOTHING },
    [TTI_EXP] = { { "exp", exp_apply }, KEEPS_RESULT },
    [TTI_LOG] = { { "log", log_apply }, KEEPS_INPUT },
    [TTI_SQRT] = { { "sqrt", sqrt_apply }, KEEPS_RESULT },
    [TTI_TANH] = { { "tanh", tanh_apply }, KEEPS_RESULT },
    [TTI_SIGMOID] = { { "sigmoid", sigmoid_apply }, KEEPS_RESULT },
    [TTI_RELU] = { { "relu", relu_apply }, KEEPS_RESULT },
    [TTI_ADD_C] = { { "add_scalar", pass_apply }, KEEPS_NOTHING },
    [TTI_MUL_C] = { { "mul_scalar", scale_apply }, KEEPS_NOTHING },
};

static tutti_tensor *recorded(tti_op1 op, tutti_tensor *x, double c)
{
    tutti_tensor *y = tti_raw_op1(op, x, c);
    tti_node *node = tti_record(&y, &table[op].cls, 1, &x);

    if (node != NULL) {
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

tutti_tensor *tutti_tensor_tanh(tutti_tensor *x)
{
    return recorded(TTI_TANH, x, 0.0);
}

tutti_tensor *tutti_tensor_sigmoid(tutti_tensor *x)
{
    return recorded(TTI_SIGMOID, x, 0.0);
}

tutti_tensor *tutti_tensor_relu(tutti_tensor *x)
{
    return recorded(TTI_RELU, x, 0.0);
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
