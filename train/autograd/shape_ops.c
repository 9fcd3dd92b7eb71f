/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shape_ops.c - views and copies, with their gradients. */
#include "autograd/autograd.h"

/* ---- the gradient takes the input's shape ----------------------------------------------------- */

static void reshape_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_reshape(g, node->edge[0].nd, node->edge[0].shape);
}

static tutti_tensor *reshaped(tutti_tensor *x, tutti_tensor *y)
{
    static const tti_node_class reshape_class = { .name = "reshape", .apply = reshape_apply };

    (void)tti_record(&y, &reshape_class, 1, &x);
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_view(tutti_tensor *x, int nd, const int64_t *shape)
{
    return reshaped(x, tti_raw_view(x, nd, shape));
}

tutti_tensor *tutti_tensor_reshape(tutti_tensor *x, int nd, const int64_t *shape)
{
    return reshaped(x, tti_raw_reshape(x, nd, shape));
}

tutti_tensor *tutti_tensor_flatten(tutti_tensor *x, int start)
{
    int64_t shape[TUTTI_MAX_DIMS + 1];

    if (x == NULL)
        return tti_poisoned("flatten");
    start = tti_dim_check_or_scalar("flatten", start, x->nd);
    if (start < 0)
        return NULL;
    for (int d = 0; d < start; d++)
        shape[d] = x->shape[d];
    shape[start] = 1;
    for (int d = start; d < x->nd; d++)
        shape[start] *= x->shape[d];
    return reshaped(x, tti_raw_reshape(x, start + 1, shape));
}

tutti_tensor *tutti_tensor_unsqueeze(tutti_tensor *x, int dim)
{
    return reshaped(x, tti_raw_unsqueeze(x, dim));
}

tutti_tensor *tutti_tensor_squeeze(tutti_tensor *x, int dim)
{
    return reshaped(x, tti_raw_squeeze(x, dim));
}

/* ---- the gradient passes through -------------------------------------------------------------- */

static void pass_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    (void)node;
    out[0] = tutti_tensor_retain(g);
}

tutti_tensor *tutti_tensor_expand(tutti_tensor *x, int nd, const int64_t *shape)
{
    static const tti_node_class expand_class = { .name = "expand", .apply = pass_apply };
    tutti_tensor *y = tti_raw_expand(x, nd, shape);

    (void)tti_record(&y, &expand_class, 1, &x); /* the engine sums what was repeated */
    return tti_temp(y);
}

static const tti_node_class clone_class = { .name = "clone", .apply = pass_apply };

tutti_tensor *tutti_tensor_clone(tutti_tensor *x)
{
    tutti_tensor *y = tti_raw_clone(x);

    (void)tti_record(&y, &clone_class, 1, &x);
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_contiguous(tutti_tensor *x)
{
    tutti_tensor *y = tti_raw_contiguous(x);

    if (y != x)
        (void)tti_record(&y, &clone_class, 1, &x);
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_detach(tutti_tensor *x)
{
    return tti_temp(tti_raw_detach(x));
}

/* ---- the gradient is permuted back ------------------------------------------------------------ */

static void permute_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    int back[TUTTI_MAX_DIMS];

    for (int d = 0; d < g->nd; d++)
        back[node->number[d]] = d;
    out[0] = tti_raw_permute(g, back);
}

tutti_tensor *tutti_tensor_permute(tutti_tensor *x, const int *order)
{
    static const tti_node_class permute_class = { .name = "permute", .apply = permute_apply };
    tutti_tensor *y = tti_raw_permute(x, order);
    tti_node *node = tti_record(&y, &permute_class, 1, &x);

    for (int d = 0; node != NULL && d < x->nd; d++)
        node->number[d] = order[d] < 0 ? order[d] + x->nd : order[d];
    return tti_temp(y);
}

static void transpose_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_transpose(g, (int)node->number[0], (int)node->number[1]);
}

tutti_tensor *tutti_tensor_transpose(tutti_tensor *x, int d0, int d1)
{
    static const tti_node_class transpose_class = { .name = "transpose", .apply = transpose_apply };
    tutti_tensor *y = tti_raw_transpose(x, d0, d1);
    tti_node *node = tti_record(&y, &transpose_class, 1, &x);

    if (node != NULL) {
        node->number[0] = d0;
        node->number[1] = d1;
    }
    return tti_temp(y);
}

/* ---- the gradient is written into zeros ------------------------------------------------------- */

/* Zeros of the input's shape with g in the part that was taken: number[] = dim, start, length, or
 * length -1 where the dimension had disappeared. */
static void part_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tti_edge *in = &node->edge[0];
    const int dim = (int)node->number[0];
    tutti_tensor *whole = tti_temp(tti_raw_zeros(in->dtype, in->nd, in->shape));
    tutti_tensor *part;

    if (node->number[2] >= 0)
        part = tti_temp(tti_raw_narrow(whole, dim, node->number[1], node->number[2]));
    else
        part = tti_temp(tti_raw_select(whole, dim, node->number[1]));
    if (tti_raw_copy_(part, g) == TUTTI_OK)
        out[0] = tutti_tensor_retain(whole);
}

static tutti_tensor *part_of(tutti_tensor *x, tutti_tensor *y, int dim, int64_t start,
                             int64_t length)
{
    static const tti_node_class part_class = { .name = "narrow", .apply = part_apply };
    tti_node *node = tti_record(&y, &part_class, 1, &x);

    if (node != NULL) {
        node->number[0] = dim;
        node->number[1] = start;
        node->number[2] = length;
    }
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_narrow(tutti_tensor *x, int dim, int64_t start, int64_t length)
{
    return part_of(x, tti_raw_narrow(x, dim, start, length), dim, start, length);
}

tutti_tensor *tutti_tensor_select(tutti_tensor *x, int dim, int64_t index)
{
    return part_of(x, tti_raw_select(x, dim, index), dim, index, -1);
}
