/* SPDX-License-Identifier: BSD-3-Clause
 *
 * view.c - other shapes and strides over the same elements; nothing is copied, but by reshape. */
#include "tensor/tensor.h"

#include <string.h>

int tti_dim_check(const char *op, int d, int nd)
{
    const int at = d < 0 ? d + nd : d;

    if (at >= 0 && at < nd)
        return at;
    (void)tti_refuse(TUTTI_E_ARG, op, "there is no dimension %d, the tensor has %d", d, nd);
    return -1;
}

int tti_dim_check_or_scalar(const char *op, int d, int nd)
{
    return nd == 0 && (d == 0 || d == -1) ? 0 : tti_dim_check(op, d, nd);
}

/* Replace the one -1 in shape by what the others leave over. */
static tutti_status infer_size(const char *op, const tutti_tensor *x, int nd, const int64_t *shape,
                               int64_t *shape_out)
{
    int64_t known = 1, numel = 0;
    int open = -1;

    if (nd < 0 || nd > TUTTI_MAX_DIMS || (nd > 0 && shape == NULL))
        return tti_shape_check(op, nd, shape, &numel);
    for (int d = 0; d < nd; d++) {
        shape_out[d] = shape[d];
        if (shape[d] != -1) {
            if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known))
                return tti_refuse(TUTTI_E_ARG, op, "the shape %s is not possible",
                                  tti_shape_str(nd, shape).s);
        } else if (open >= 0) {
            return tti_refuse(TUTTI_E_ARG, op, "two sizes of %s are left open",
                              tti_shape_str(nd, shape).s);
        } else {
            open = d;
        }
    }
    if (open >= 0 && known > 0 && x->numel % known == 0) {
        shape_out[open] = x->numel / known;
        known = x->numel;
    }
    if (known != x->numel || (open >= 0 && shape_out[open] < 0))
        return tti_refuse(TUTTI_E_ARG, op, "shape %s does not hold the %lld elements of %s",
                          tti_shape_str(nd, shape).s, (long long)x->numel,
                          tti_shape_str(x->nd, x->shape).s);
    return tti_shape_check(op, nd, shape_out, &numel);
}

/* Strides that show x in another shape. Dimensions of x that follow each other without a gap form a
 * run, from the right; each run must be cut up exactly by new dimensions. */
static bool view_strides(const tutti_tensor *x, int nd, const int64_t *shape, int64_t *stride_out)
{
    int64_t step, run = 1;
    int d = nd - 1;

    if (x->numel == 0 || x->nd == 0) {
        tti_contiguous_strides(nd, shape, stride_out);
        return true;
    }
    step = x->stride[x->nd - 1];
    for (int xd = x->nd - 1; xd >= 0; xd--) {
        int64_t cut = 1;

        run *= x->shape[xd];
        if (xd > 0 && (x->shape[xd - 1] == 1 || x->stride[xd - 1] == run * step))
            continue;
        for (; d >= 0 && (cut < run || shape[d] == 1); d--) {
            stride_out[d] = cut * step;
            cut *= shape[d];
        }
        if (cut != run)
            return false;
        run = 1;
        step = xd > 0 ? x->stride[xd - 1] : 0;
    }
    return d == -1;
}

tutti_tensor *tti_raw_view(const tutti_tensor *x, int nd, const int64_t *shape)
{
    int64_t full[TUTTI_MAX_DIMS], stride[TUTTI_MAX_DIMS];

    if (x == NULL)
        return tti_poisoned("view");
    if (infer_size("view", x, nd, shape, full) != TUTTI_OK)
        return NULL;
    if (!view_strides(x, nd, full, stride))
        return tti_poison(TUTTI_E_ARG, "view",
                          "no strides show %s as %s\n  next: use tutti_tensor_reshape()",
                          tti_shape_str(x->nd, x->shape).s, tti_shape_str(nd, full).s);
    return tti_raw_alias(x, nd, full, stride, x->offset);
}

tutti_tensor *tti_raw_reshape(const tutti_tensor *x, int nd, const int64_t *shape)
{
    int64_t full[TUTTI_MAX_DIMS], stride[TUTTI_MAX_DIMS];
    tutti_tensor *copy, *y;

    if (x == NULL)
        return tti_poisoned("reshape");
    if (infer_size("reshape", x, nd, shape, full) != TUTTI_OK)
        return NULL;
    if (view_strides(x, nd, full, stride))
        return tti_raw_alias(x, nd, full, stride, x->offset);
    copy = tti_raw_clone(x);
    y = tti_raw_view(copy, nd, full);
    tutti_tensor_release(copy);
    return y;
}

tutti_tensor *tti_raw_permute(const tutti_tensor *x, const int *order)
{
    int64_t shape[TUTTI_MAX_DIMS], stride[TUTTI_MAX_DIMS];
    unsigned seen = 0;

    if (x == NULL)
        return tti_poisoned("permute");
    for (int d = 0; d < x->nd; d++) {
        const int from = tti_dim_check("permute", order[d], x->nd);

        if (from < 0)
            return NULL;
        seen |= 1u << from;
        shape[d] = x->shape[from];
        stride[d] = x->stride[from];
    }
    if (seen != (1u << x->nd) - 1)
        return tti_poison(TUTTI_E_ARG, "permute", "a dimension is named twice");
    return tti_raw_alias(x, x->nd, shape, stride, x->offset);
}

tutti_tensor *tti_raw_transpose(const tutti_tensor *x, int d0, int d1)
{
    int order[TUTTI_MAX_DIMS];

    if (x == NULL)
        return tti_poisoned("transpose");
    d0 = tti_dim_check("transpose", d0, x->nd);
    d1 = d0 < 0 ? -1 : tti_dim_check("transpose", d1, x->nd);
    if (d1 < 0)
        return NULL;
    for (int d = 0; d < x->nd; d++)
        order[d] = d == d0 ? d1 : d == d1 ? d0 : d;
    return tti_raw_permute(x, order);
}

tutti_tensor *tti_raw_narrow(const tutti_tensor *x, int dim, int64_t start, int64_t length)
{
    int64_t shape[TUTTI_MAX_DIMS];

    if (x == NULL)
        return tti_poisoned("narrow");
    dim = tti_dim_check("narrow", dim, x->nd);
    if (dim < 0)
        return NULL;
    if (start < 0 || length < 0 || start > x->shape[dim] || length > x->shape[dim] - start)
        return tti_poison(TUTTI_E_ARG, "narrow",
                          "%lld elements from %lld on are not within the %lld of dimension %d",
                          (long long)length, (long long)start, (long long)x->shape[dim], dim);
    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = length;
    return tti_raw_alias(x, x->nd, shape, x->stride, x->offset + start * x->stride[dim]);
}

tutti_tensor *tti_raw_select(const tutti_tensor *x, int dim, int64_t index)
{
    int64_t shape[TUTTI_MAX_DIMS], stride[TUTTI_MAX_DIMS];
    int nd = 0;

    if (x == NULL)
        return tti_poisoned("select");
    dim = tti_dim_check("select", dim, x->nd);
    if (dim < 0)
        return NULL;
    if (index < -x->shape[dim] || index >= x->shape[dim])
        return tti_poison(TUTTI_E_ARG, "select", "there is no element %lld, dimension %d has %lld",
                          (long long)index, dim, (long long)x->shape[dim]);
    index += index < 0 ? x->shape[dim] : 0;
    for (int d = 0; d < x->nd; d++) {
        if (d == dim)
            continue;
        shape[nd] = x->shape[d];
        stride[nd++] = x->stride[d];
    }
    return tti_raw_alias(x, nd, shape, stride, x->offset + index * x->stride[dim]);
}

tutti_tensor *tti_raw_expand(const tutti_tensor *x, int nd, const int64_t *shape)
{
    int64_t full[TUTTI_MAX_DIMS], stride[TUTTI_MAX_DIMS], numel;

    if (x == NULL)
        return tti_poisoned("expand");
    if (nd < x->nd || nd > TUTTI_MAX_DIMS || (nd > 0 && shape == NULL))
        return tti_poison(TUTTI_E_ARG, "expand", "%d dimensions cannot become %d", x->nd, nd);
    for (int d = 0; d < nd; d++) {
        const int xd = d - (nd - x->nd);

        full[d] = shape[d] == -1 && xd >= 0 ? x->shape[xd] : shape[d];
        stride[d] = xd >= 0 && full[d] == x->shape[xd] ? x->stride[xd] : 0;
        if (xd >= 0 && full[d] != x->shape[xd] && x->shape[xd] != 1)
            return tti_poison(TUTTI_E_ARG, "expand", "shape %s does not expand to %s",
                              tti_shape_str(x->nd, x->shape).s, tti_shape_str(nd, shape).s);
    }
    if (tti_shape_check("expand", nd, full, &numel) != TUTTI_OK)
        return NULL;
    return tti_raw_alias(x, nd, full, stride, x->offset);
}

tutti_tensor *tti_raw_unsqueeze(const tutti_tensor *x, int dim)
{
    int64_t shape[TUTTI_MAX_DIMS], stride[TUTTI_MAX_DIMS];

    if (x == NULL)
        return tti_poisoned("unsqueeze");
    if (x->nd == TUTTI_MAX_DIMS)
        return tti_poison(TUTTI_E_ARG, "unsqueeze", "the tensor has %d dimensions already", x->nd);
    dim = tti_dim_check("unsqueeze", dim, x->nd + 1);
    if (dim < 0)
        return NULL;
    for (int d = 0; d <= x->nd; d++) {
        const int from = d < dim ? d : d - 1;

        shape[d] = d == dim ? 1 : x->shape[from];
        stride[d] = d == dim ? 1 : x->stride[from];
    }
    return tti_raw_alias(x, x->nd + 1, shape, stride, x->offset);
}

tutti_tensor *tti_raw_squeeze(const tutti_tensor *x, int dim)
{
    if (x == NULL)
        return tti_poisoned("squeeze");
    dim = tti_dim_check("squeeze", dim, x->nd);
    if (dim < 0)
        return NULL;
    if (x->shape[dim] == 1)
        return tti_raw_select(x, dim, 0);
    return tti_raw_alias(x, x->nd, x->shape, x->stride, x->offset);
}

tutti_tensor *tti_raw_detach(const tutti_tensor *x)
{
    if (x == NULL)
        return tti_poisoned("detach");
    return tti_raw_alias(x, x->nd, x->shape, x->stride, x->offset);
}
