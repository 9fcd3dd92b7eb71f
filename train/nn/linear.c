/* SPDX-License-Identifier: BSD-3-Clause
 *
 * linear.c - y = x W' + b over the last dimension.
 *
 * Shapes  x [.., I] seen as [R, I]; W [O, I]; b [O]; y [.., O]
 * Back    dx = g W;  dW = g' x;  db = sum of g over R. W' is a flag of the product, never a copy. */
#include "nn/nn.h"

#include <string.h>

/* x as a matrix of its last dimension. Rows are counted by sizes: elements there may be none. */
static tutti_tensor *as_rows(const tutti_tensor *x)
{
    int64_t shape[2] = { 1, 0 };

    for (int d = 0; d < x->nd - 1; d++)
        shape[0] *= x->shape[d];
    shape[1] = x->shape[x->nd - 1];
    return tti_raw_reshape(x, 2, shape);
}

static void linear_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *w = tti_saved(node, 1);
    const int zero = 0;
    tutti_tensor *rows = tti_temp(as_rows(g));

    if (tti_wants(node, 0)) {
        tutti_tensor *dx = tti_temp(tti_raw_mm("linear", rows, w));

        out[0] = tti_raw_reshape(dx, node->edge[0].nd, node->edge[0].shape);
    }
    if (tti_wants(node, 1)) {
        tutti_tensor *x = tti_temp(as_rows(tti_saved(node, 0)));

        out[1] = tti_raw_mm("linear", tti_temp(tti_raw_transpose(rows, 0, 1)), x);
    }
    if (tti_wants(node, 2))
        out[2] = tti_raw_sum(rows, &zero, 1, false);
}

static tutti_status check(const tutti_tensor *x, const tutti_tensor *w, const tutti_tensor *b)
{
    if (x->dtype != w->dtype || !tti_is_real(x->dtype) || (b != NULL && b->dtype != x->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, "linear",
                          "all operands must be of one real type: input is %s, weight %s%s%s", tutti_dtype_name(x->dtype),
                          tutti_dtype_name(w->dtype), b != NULL ? ", bias " : "",
                          b != NULL ? tutti_dtype_name(b->dtype) : "");
    if (w->nd != 2 || x->nd < 1 || x->shape[x->nd - 1] != w->shape[1])
        return tti_refuse(TUTTI_E_ARG, "linear", "input %s does not fit to weight %s",
                          tti_shape_str(x->nd, x->shape).s, tti_shape_str(w->nd, w->shape).s);
    if (b != NULL && (b->nd != 1 || b->shape[0] != w->shape[0]))
        return tti_refuse(TUTTI_E_ARG, "linear", "bias %s does not fit to weight %s",
                          tti_shape_str(b->nd, b->shape).s, tti_shape_str(w->nd, w->shape).s);
    return TUTTI_OK;
}

/* Inside of a scope; the result belongs to it. */
static tutti_tensor *forward(const tutti_tensor *x, const tutti_tensor *w, const tutti_tensor *b)
{
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *rows = tti_temp(as_rows(x));
    tutti_tensor *y = tti_temp(tti_raw_mm("linear", rows, tti_temp(tti_raw_transpose(w, 0, 1))));

    if (y != NULL && b != NULL && tti_raw_op2_(TTI_ADD, y, b, 1.0) != TUTTI_OK)
        return NULL;
    memcpy(shape, x->shape, sizeof shape);
    shape[x->nd - 1] = w->shape[0];
    return tti_temp(tti_raw_view(y, x->nd, shape));
}

tutti_tensor *tutti_tensor_linear(tutti_tensor *x, tutti_tensor *weight, tutti_tensor *bias)
{
    static const tti_node_class linear_class = { .name = "linear", .apply = linear_apply };
    tutti_tensor *y;
    tti_node *node;

    if (x == NULL || weight == NULL)
        return tti_poisoned("linear");
    if (tti_has_half(x) && weight->dtype == x->dtype && (bias == NULL || bias->dtype == x->dtype)) {
        tutti_scope_begin();
        return tti_rounded(
            tutti_tensor_linear(tti_widened(x), tti_widened(weight), tti_widened(bias)), x->dtype);
    }
    if (check(x, weight, bias) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    y = tutti_tensor_retain(forward(x, weight, bias));
    tutti_scope_end();
    node = tti_record(&y, &linear_class, 3, (tutti_tensor *[]){ x, weight, bias });
    if (node != NULL) {
        tti_save(node, 0, x);
        tti_save(node, 1, weight);
    }
    return tti_temp(y);
}
