/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_ops.c - sums and means, with their gradients. */
#include "autograd/autograd.h"

/* g back in the input's shape, without a copy: number[0] is the mask of summed dimensions. */
static tutti_tensor *spread(const tti_node *node, tutti_tensor *g)
{
    const tti_edge *in = &node->edge[0];
    int64_t shape[TUTTI_MAX_DIMS];

    for (int d = 0; d < in->nd; d++)
        shape[d] = node->number[0] & 1 << d ? 1 : in->shape[d];
    return tti_raw_expand(tti_temp(tti_raw_reshape(g, in->nd, shape)), in->nd, in->shape);
}

static void sum_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = spread(node, g);
}

static void mean_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = spread(node, tti_temp(tti_raw_op1(TTI_DIV_C, g, node->real[0])));
}

tutti_tensor *tutti_tensor_sum(tutti_tensor *x, const int *dims, int n_dims, bool keepdim)
{
    static const tti_node_class sum_class = { .name = "sum", .apply = sum_apply };
    tutti_tensor *y = tti_raw_sum(x, dims, n_dims, keepdim);
    tti_node *node = tti_record(&y, &sum_class, 1, &x);
    unsigned mask = 0;

    if (node != NULL) {
        (void)tti_dims_mask("sum", dims, n_dims, x->nd, &mask);
        node->number[0] = mask;
    }
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_mean(tutti_tensor *x, const int *dims, int n_dims, bool keepdim)
{
    static const tti_node_class mean_class = { .name = "mean", .apply = mean_apply };
    unsigned mask = 0;
    double terms = 1.0;
    tutti_tensor *y;
    tti_node *node;

    if (x == NULL)
        return tti_poisoned("mean");
    if (!tti_is_real(x->dtype))
        return tti_poison(TUTTI_E_UNSUPPORTED, "mean", "elements of %s, f32 and f64 are offered",
                          tutti_dtype_name(x->dtype));
    if (tti_dims_mask("mean", dims, n_dims, x->nd, &mask) != TUTTI_OK)
        return NULL;
    for (int d = 0; d < x->nd; d++)
        terms *= mask & 1u << d ? (double)x->shape[d] : 1.0;
    y = tti_raw_sum(x, dims, n_dims, keepdim);
    if (y != NULL)
        (void)tti_raw_op1_(TTI_DIV_C, y, terms);
    node = tti_record(&y, &mean_class, 1, &x);
    if (node != NULL) {
        node->number[0] = mask;
        node->real[0] = terms;
    }
    return tti_temp(y);
}
