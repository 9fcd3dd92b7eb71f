/* SPDX-License-Identifier: BSD-3-Clause
 *
 * normalise.c - layer norm and RMS norm.
 *
 * How     Rows are runs of the last dimensions. Of each, mean m (RMS: 0) and r = 1 / sqrt(spread + eps) are
 *         kept, in f64.  h = (x - m) r;  y = h w + b
 * Back    With u = g w:  dx = r (u - mean of u - h mean of u h), RMS without the mean of u;
 *         dw = sum of g h over the rows, db = sum of g, added up in f64.
 * True    The order of additions depends on the shape alone. */
#include "nn/nn.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/level.h"

typedef struct sizes {
    int64_t rows, n; /* of n numbers */
    size_t bytes;    /* of a row */
} sizes;

static sizes measure(const tutti_tensor *x, int nd)
{
    sizes s = { 1, 1, 0 };

    for (int d = 0; d < x->nd; d++)
        *(d < x->nd - nd ? &s.rows : &s.n) *= x->shape[d];
    s.bytes = (size_t)s.n * tutti_dtype_size(x->dtype);
    return s;
}

static void forward(const tutti_tensor *x, sizes s, bool centre, double eps, const void *w,
                    const void *b, double *stats, tutti_tensor *y)
{
    const tti_row_ops *rows = tti_rows(x->dtype);
    const char *from = tti_at(x);
    char *to = tti_at(y);

    for (int64_t i = 0; i < s.rows; i++, from += s.bytes, to += s.bytes) {
        const double mean = centre ? rows->sum(s.n, from) / (double)s.n : 0.0;
        const double spread = rows->spread(s.n, from, mean) / (double)s.n;

        stats[2 * i] = mean;
        stats[2 * i + 1] = 1.0 / sqrt(spread + eps);
        rows->norm(s.n, from, mean, stats[2 * i + 1], w, b, to);
    }
}

/* The sums in f64 as what a parameter has: its type and shape. Owned. */
static tutti_tensor *as_parameter(const tutti_tensor *sums, const tti_edge *edge)
{
    tutti_tensor *shaped = tti_temp(tti_raw_view(sums, edge->nd, edge->shape));

    return tti_raw_to(shaped, edge->dtype);
}

/* saved: x, weight, stats. number: dimensions of a row, whether the mean is taken. */
static void norm_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tutti_tensor *x = tti_saved(node, 0), *w = tti_saved(node, 1);
    const double *stats = tti_at(tti_saved(node, 2));
    const sizes s = measure(x, (int)node->number[0]);
    const tti_row_ops *rows = tti_rows(x->dtype);
    const bool wants[3] = { tti_wants(node, 0), tti_wants(node, 1), tti_wants(node, 2) };
    tutti_tensor *sums[3] = { NULL, NULL, NULL };
    const char *at, *at_g;
    char *to = NULL;

    g = tti_temp(tti_raw_contiguous(g));
    for (int k = 1; k < 3; k++)
        sums[k] = wants[k] ? tti_temp(tti_raw_zeros(TUTTI_F64, 1, &s.n)) : NULL;
    if (wants[0])
        out[0] = tti_raw_empty(x->dtype, x->nd, x->shape);
    if (g == NULL || (wants[0] && out[0] == NULL) || (wants[1] && sums[1] == NULL) ||
        (wants[2] && sums[2] == NULL))
        return;
    at = tti_at(x);
    at_g = tti_at(g);
    to = wants[0] ? tti_at(out[0]) : NULL;
    for (int64_t i = 0; i < s.rows; i++, at += s.bytes, at_g += s.bytes) {
        const double mean = stats[2 * i], by = stats[2 * i + 1];
        const void *weight = w != NULL ? tti_at(w) : NULL;
        double gw, gwh;

        if (to != NULL) {
            rows->norm_sums(s.n, at_g, at, mean, by, weight, &gw, &gwh);
            rows->norm_back(s.n, at_g, at, mean, by, weight,
                            node->number[1] ? gw / (double)s.n : 0.0, gwh / (double)s.n,
                            to + (size_t)i * s.bytes);
        }
        rows->norm_params(s.n, at_g, at, mean, by, wants[1] ? tti_at(sums[1]) : NULL,
                          wants[2] ? tti_at(sums[2]) : NULL);
    }
    for (int k = 1; k < 3; k++)
        if (wants[k])
            out[k] = as_parameter(sums[k], &node->edge[k]);
}

/* t, if there is one, is of x's type and has that shape. */
static bool is_like(const tutti_tensor *t, const tutti_tensor *x, int nd, const int64_t *shape)
{
    return t == NULL || (t->dtype == x->dtype && t->nd == nd &&
                         memcmp(t->shape, shape, (size_t)nd * sizeof *shape) == 0);
}

static tutti_status check(const char *op, const tutti_tensor *x, int nd, const int64_t *shape,
                          const tutti_tensor *w, const tutti_tensor *b)
{
    if (x == NULL)
        return tti_refuse_null(op);
    if (!tti_is_real(x->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, op, "elements of %s, real types are offered",
                          tutti_dtype_name(x->dtype));
    if (nd < 1 || nd > x->nd || shape == NULL ||
        memcmp(x->shape + x->nd - nd, shape, (size_t)nd * sizeof *shape) != 0)
        return tti_refuse(
            TUTTI_E_ARG, op, "input %s does not end in %s", tti_shape_str(x->nd, x->shape).s,
            nd >= 1 && nd <= TUTTI_MAX_DIMS && shape != NULL ? tti_shape_str(nd, shape).s
                                                             : "that shape");
    if (!is_like(w, x, nd, shape) || !is_like(b, x, nd, shape))
        return tti_refuse(TUTTI_E_ARG, op, "weight and bias must be %s of shape %s",
                          tutti_dtype_name(x->dtype), tti_shape_str(nd, shape).s);
    return TUTTI_OK;
}

/* Inside of a scope; owned. params: weight and bias, each may be NULL. */
static tutti_tensor *recorded(const tti_node_class *cls, tutti_tensor *x, int nd,
                              tutti_tensor *const *params, double eps, bool centre)
{
    tutti_tensor *w = params[0] != NULL ? tti_temp(tti_raw_contiguous(params[0])) : NULL;
    tutti_tensor *b = params[1] != NULL ? tti_temp(tti_raw_contiguous(params[1])) : NULL;
    tutti_tensor *from = tti_temp(tti_raw_contiguous(x)), *stats, *y;
    const sizes s = measure(x, nd);
    tti_node *node;

    stats = tti_temp(tti_raw_empty(TUTTI_F64, 2, (const int64_t[]){ s.rows, 2 }));
    if (from == NULL || stats == NULL || (params[0] != NULL && w == NULL) ||
        (params[1] != NULL && b == NULL))
        return NULL;
    y = tti_raw_empty(x->dtype, x->nd, x->shape);
    if (y != NULL && y->numel > 0)
        forward(from, s, centre, eps, w != NULL ? tti_at(w) : NULL, b != NULL ? tti_at(b) : NULL,
                tti_at(stats), y);
    node = tti_record(&y, cls, 3, (tutti_tensor *[]){ x, params[0], params[1] });
    if (node != NULL) {
        tti_save(node, 0, from);
        if (w != NULL)
            tti_save(node, 1, w);
        tti_save(node, 2, stats);
        node->number[0] = nd;
        node->number[1] = centre;
    }
    return y;
}

tutti_tensor *tutti_tensor_layer_norm(tutti_tensor *x, int nd, const int64_t *shape,
                                      tutti_tensor *weight, tutti_tensor *bias, double eps)
{
    static const tti_node_class layer_class = { .name = "layer_norm", .apply = norm_apply };
    tutti_tensor *y;

    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_layer_norm(tti_widened(x), nd, shape, tti_widened(weight),
                                                   tti_widened(bias), eps),
                           x->dtype);
    }
    if (check("layer_norm", x, nd, shape, weight, bias) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    y = recorded(&layer_class, x, nd, (tutti_tensor *[]){ weight, bias }, eps, true);
    tutti_scope_end();
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_rms_norm(tutti_tensor *x, int nd, const int64_t *shape,
                                    tutti_tensor *weight, double eps)
{
    static const tti_node_class rms_class = { .name = "rms_norm", .apply = norm_apply };
    tutti_tensor *y;

    if (tti_has_half(x)) {
        tutti_scope_begin();
        eps = eps < 0.0 ? (x->dtype == TUTTI_F16 ? 0x1p-10 : 0x1p-7) : eps;
        return tti_rounded(
            tutti_tensor_rms_norm(tti_widened(x), nd, shape, tti_widened(weight), eps), x->dtype);
    }
    if (check("rms_norm", x, nd, shape, weight, NULL) != TUTTI_OK)
        return NULL;
    if (eps < 0.0)
        eps = x->dtype == TUTTI_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    tutti_scope_begin();
    y = recorded(&rms_class, x, nd, (tutti_tensor *[]){ weight, NULL }, eps, false);
    tutti_scope_end();
    return tti_temp(y);
}
