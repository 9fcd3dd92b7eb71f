/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_ops.c - sums, means, variances and norms, with their gradients. */
#include "autograd/autograd.h"

#include <math.h>

#include "tensor/level.h"

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

/* Which dimensions a reduction of reals names, and how many elements come together in each sum. */
static tutti_status check(const char *op, const tutti_tensor *x, const int *dims, int n_dims,
                          unsigned *mask_out, double *terms_out)
{
    if (x == NULL)
        return tti_refuse_null(op);
    if (!tti_is_real(x->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, op, "elements of %s, real types are offered",
                          tutti_dtype_name(x->dtype));
    if (tti_dims_mask(op, dims, n_dims, x->nd, mask_out) != TUTTI_OK)
        return TUTTI_E_ARG;
    *terms_out = 1.0;
    for (int d = 0; d < x->nd; d++)
        *terms_out *= *mask_out & 1u << d ? (double)x->shape[d] : 1.0;
    return TUTTI_OK;
}

tutti_tensor *tutti_tensor_mean(tutti_tensor *x, const int *dims, int n_dims, bool keepdim)
{
    static const tti_node_class mean_class = { .name = "mean", .apply = mean_apply };
    unsigned mask = 0;
    double terms = 1.0;
    tutti_tensor *y;
    tti_node *node;

    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_mean(tti_widened(x), dims, n_dims, keepdim), x->dtype);
    }
    if (check("mean", x, dims, n_dims, &mask, &terms) != TUTTI_OK)
        return NULL;
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

/* ---- variance ---------------------------------------------------------------------------------- */

/* 2 (x - mean) / (n - correction) g; what was saved is x - mean, real[0] the divisor */
static void var_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *share = tti_temp(tti_raw_scale(g, 2.0 / node->real[0]));

    out[0] = tti_raw_mul(tti_saved(node, 0), tti_temp(spread(node, share)));
}

/* Inside of a scope: x minus its mean over dims. */
static tutti_tensor *centred(const tutti_tensor *x, const int *dims, int n_dims, double terms)
{
    tutti_tensor *mean = tti_temp(tti_raw_sum(x, dims, n_dims, true));

    mean = tti_temp(tti_raw_op1(TTI_DIV_C, mean, terms));
    return tti_temp(tti_raw_op2(TTI_ADD, x, mean, -1.0));
}

/* Inside of a scope; owned. */
static tutti_tensor *var_recorded(tutti_tensor *x, const int *dims, int n_dims, double correction,
                                  bool keepdim, unsigned mask, double terms)
{
    static const tti_node_class var_class = { .name = "var", .apply = var_apply };
    const double divisor = terms > correction ? terms - correction : 0.0;
    tutti_tensor *off = centred(x, dims, n_dims, terms);
    tutti_tensor *squares = tti_temp(tti_raw_op2(TTI_MUL, off, off, 0.0));
    tutti_tensor *y = tti_raw_sum(squares, dims, n_dims, keepdim);
    tti_node *node;

    if (y != NULL)
        (void)tti_raw_op1_(TTI_DIV_C, y, divisor);
    node = tti_record(&y, &var_class, 1, &x);
    if (node != NULL) {
        tti_save(node, 0, off);
        node->number[0] = mask;
        node->real[0] = divisor;
    }
    return y;
}

tutti_tensor *tutti_tensor_var(tutti_tensor *x, const int *dims, int n_dims, double correction,
                               bool keepdim)
{
    unsigned mask = 0;
    double terms = 1.0;
    tutti_tensor *y;

    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_var(tti_widened(x), dims, n_dims, correction, keepdim),
                           x->dtype);
    }
    if (check("var", x, dims, n_dims, &mask, &terms) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    y = var_recorded(x, dims, n_dims, correction, keepdim, mask, terms);
    tutti_scope_end();
    return tti_temp(y);
}

/* ---- the 2-norm -------------------------------------------------------------------------------- */

/* x / norm g, and 0 where the norm is 0 */
static void norm_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *zero = tti_temp(tti_raw_full(g->dtype, 0, NULL, 0.0));
    const tutti_tensor *norm = tti_saved(node, 1);
    tutti_tensor *share = tti_temp(tti_raw_div(g, norm));

    share = tti_temp(tti_raw_where(tti_temp(tti_raw_op2(TTI_EQ, norm, zero, 0.0)), zero, share));
    out[0] = tti_raw_mul(tti_saved(node, 0), tti_temp(spread(node, share)));
}

tutti_tensor *tutti_tensor_norm(tutti_tensor *x, const int *dims, int n_dims, bool keepdim)
{
    static const tti_node_class norm_class = { .name = "norm", .apply = norm_apply };
    tutti_tensor *squares, *y;
    unsigned mask = 0;
    double terms;
    tti_node *node;

    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_norm(tti_widened(x), dims, n_dims, keepdim), x->dtype);
    }
    if (check("norm", x, dims, n_dims, &mask, &terms) != TUTTI_OK)
        return NULL;
    squares = tti_raw_op2(TTI_MUL, x, x, 0.0);
    y = tti_raw_sum(squares, dims, n_dims, keepdim);
    tutti_tensor_release(squares);
    if (y != NULL)
        (void)tti_raw_op1_(TTI_SQRT, y, 0.0);
    node = tti_record(&y, &norm_class, 1, &x);
    if (node != NULL) {
        tti_save(node, 0, x);
        tti_save_result(node, 1, y);
        node->number[0] = mask;
    }
    return tti_temp(y);
}

/* ---- logsumexp --------------------------------------------------------------------------------- */

/* e^(x - y) g */
static void logsumexp_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *y = tti_temp(spread(node, tti_saved(node, 1)));
    tutti_tensor *off = tti_temp(tti_raw_op2(TTI_ADD, tti_saved(node, 0), y, -1.0));

    out[0] = tti_raw_mul(tti_temp(tti_raw_op1(TTI_EXP, off, 0.0)), tti_temp(spread(node, g)));
}

static double logsumexp_of(const tti_row_ops *rows, int64_t n, const void *row)
{
    const double max = rows->max(n, row), shift = isinf(max) ? 0.0 : max;

    if (isinf(max) && max > 0)
        return max;
    return shift + log(rows->exp_sum(n, row, shift, NULL));
}

/* Inside of a scope: over dimension dim, which stays with size 1; owned. */
static tutti_tensor *logsumexp_rows(const tutti_tensor *x, int dim)
{
    tutti_tensor *turned = tti_temp(tti_raw_transpose(x, dim, x->nd - 1));
    const tti_row_ops *rows = tti_rows(x->dtype);
    int64_t shape[TUTTI_MAX_DIMS], n;
    tutti_tensor *y;

    turned = tti_temp(tti_raw_contiguous(turned));
    if (turned == NULL)
        return NULL;
    for (int d = 0; d < x->nd; d++)
        shape[d] = d == x->nd - 1 ? 1 : turned->shape[d];
    y = tti_temp(tti_raw_empty(x->dtype, x->nd, shape));
    if (y == NULL)
        return NULL;
    n = x->shape[dim];
    for (int64_t i = 0; i < y->numel; i++) {
        const size_t size = tutti_dtype_size(x->dtype);
        const double v =
            logsumexp_of(rows, n, (const char *)tti_at(turned) + (size_t)(i * n) * size);

        if (x->dtype == TUTTI_F32)
            ((float *)tti_at(y))[i] = (float)v;
        else
            ((double *)tti_at(y))[i] = v;
    }
    return tti_raw_transpose(y, dim, x->nd - 1);
}

tutti_tensor *tutti_tensor_logsumexp(tutti_tensor *x, int dim, bool keepdim)
{
    static const tti_node_class lse_class = { .name = "logsumexp", .apply = logsumexp_apply };
    unsigned mask = 0;
    double terms;
    tutti_tensor *y;
    tti_node *node;

    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_logsumexp(tti_widened(x), dim, keepdim), x->dtype);
    }
    if (x != NULL && (dim = tti_dim_check("logsumexp", dim, x->nd)) < 0)
        return NULL;
    if (check("logsumexp", x, &dim, 1, &mask, &terms) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    y = logsumexp_rows(x, dim);
    if (y != NULL && !keepdim)
        y = tti_raw_without_dims(tti_temp(y), mask);
    tutti_scope_end();
    node = tti_record(&y, &lse_class, 1, &x);
    if (node != NULL) {
        tti_save(node, 0, x);
        tti_save_result(node, 1, y);
        node->number[0] = mask;
    }
    return tti_temp(y);
}
