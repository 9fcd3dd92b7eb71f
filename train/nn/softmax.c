/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softmax.c - softmax and its logarithm.
 *
 * How     The dimension is brought to the end, which costs a copy where it does not stand there, and the
 *         rows are taken one by one: e^(x - max) and its sum in one pass, in f64 across blocks.
 *         softmax:      y = e^(x - max) / sum           dx = y (g - sum of g y)
 *         log_softmax:  y = x - max - log(sum)          dx = g - e^y sum of g
 * True    A row of nothing but -inf gives NaN, as a quotient of zeros does. */
#include "nn/nn.h"

#include <math.h>

#include "tensor/level.h"

/* x with dimension dim last, contiguous; a scalar as a row of one. The scope's. */
static tutti_tensor *rows_of(const tutti_tensor *x, int dim)
{
    const int64_t one = 1;

    if (x == NULL)
        return NULL;
    if (x->nd == 0)
        return tti_temp(tti_raw_view(x, 1, &one));
    return tti_temp(tti_raw_contiguous(tti_temp(tti_raw_transpose(x, dim, x->nd - 1))));
}

/* The way back, to the shape that x has; owned. */
static tutti_tensor *from_rows(tutti_tensor *rows, const tutti_tensor *x, int dim)
{
    if (rows == NULL)
        return NULL;
    if (x->nd == 0)
        return tti_raw_view(rows, 0, NULL);
    return tti_raw_contiguous(tti_temp(tti_raw_transpose(rows, dim, x->nd - 1)));
}

static int64_t length_of(const tutti_tensor *rows)
{
    return rows->shape[rows->nd - 1];
}

static void forward_row(const tti_row_ops *rows, bool log_of, int64_t n, const void *x, void *y)
{
    const double max = rows->max(n, x), shift = isinf(max) && max < 0 ? 0.0 : max;

    if (log_of)
        rows->shift(n, x, shift, log(rows->exp_sum(n, x, shift, NULL)), y);
    else
        rows->scale(n, y, 1.0 / rows->exp_sum(n, x, shift, y));
}

/* Inside of a scope; owned. */
static tutti_tensor *forward(const tutti_tensor *x, int dim, bool log_of)
{
    const tti_row_ops *rows = tti_rows(x->dtype);
    const tutti_tensor *from = rows_of(x, dim);
    tutti_tensor *y =
        from == NULL ? NULL : tti_temp(tti_raw_empty(x->dtype, from->nd, from->shape));

    if (y != NULL && y->numel > 0) {
        const int64_t n = length_of(y);
        const size_t bytes = (size_t)n * tutti_dtype_size(x->dtype);
        const char *at = tti_at(from);
        char *to = tti_at(y);

        for (int64_t i = 0; i < y->numel / n; i++, at += bytes, to += bytes)
            forward_row(rows, log_of, n, at, to);
    }
    return from_rows(y, x, dim);
}

/* number[0]: the dimension; number[1]: of the logarithm */
static void softmax_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tti_row_ops *rows = tti_rows(g->dtype);
    const int dim = (int)node->number[0];
    const tutti_tensor *y = rows_of(tti_saved(node, 0), dim), *from = rows_of(g, dim);
    tutti_tensor *dx = y == NULL ? NULL : tti_temp(tti_raw_empty(y->dtype, y->nd, y->shape));

    if (from != NULL && dx != NULL && dx->numel > 0) {
        const int64_t n = length_of(y);
        const size_t bytes = (size_t)n * tutti_dtype_size(y->dtype);
        const char *at_y = tti_at(y), *at_g = tti_at(from);
        char *to = tti_at(dx);

        for (int64_t i = 0; i < dx->numel / n; i++, at_y += bytes, at_g += bytes, to += bytes)
            if (node->number[1])
                rows->log_softmax_back(n, at_g, at_y, rows->sum(n, at_g), to);
            else
                rows->softmax_back(n, at_g, at_y, rows->dot(n, at_g, at_y), to);
    }
    if (from != NULL)
        out[0] = from_rows(dx, g, dim);
}

static tutti_tensor *recorded(const tti_node_class *cls, tutti_tensor *x, int dim, bool log_of)
{
    tutti_tensor *y;
    tti_node *node;

    if (x == NULL)
        return tti_poisoned(cls->name);
    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(recorded(cls, tti_widened(x), dim, log_of), x->dtype);
    }
    if (!tti_is_real(x->dtype))
        return tti_poison(TUTTI_E_UNSUPPORTED, cls->name, "elements of %s, real types are offered",
                          tutti_dtype_name(x->dtype));
    dim = tti_dim_check_or_scalar(cls->name, dim, x->nd);
    if (dim < 0)
        return NULL;
    tutti_scope_begin();
    y = forward(x, dim, log_of);
    tutti_scope_end();
    node = tti_record(&y, cls, 1, &x);
    if (node != NULL) {
        tti_save_result(node, 0, y);
        node->number[0] = dim;
        node->number[1] = log_of;
    }
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_softmax(tutti_tensor *x, int dim)
{
    static const tti_node_class softmax_class = { .name = "softmax", .apply = softmax_apply };

    return recorded(&softmax_class, x, dim, false);
}

tutti_tensor *tutti_tensor_log_softmax(tutti_tensor *x, int dim)
{
    static const tti_node_class log_class = { .name = "log_softmax", .apply = softmax_apply };

    return recorded(&log_class, x, dim, true);
}
