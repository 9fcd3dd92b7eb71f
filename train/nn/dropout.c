/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dropout.c - elements, or whole channels, set to zero at random.
 *
 * How     y = x m with m = Bernoulli(1-p) / (1-p), kept for backward: dx = g m. */
#include "nn/nn.h"

static void dropout_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_mul(g, tti_saved(node, 0));
}

/* Owned. p = 1 keeps nothing, and draws nothing. */
static tutti_tensor *make_mask(tutti_dtype dtype, int nd, const int64_t *shape, double p)
{
    tutti_tensor *mask = tti_raw_zeros(dtype, nd, shape);

    if (mask == NULL || p == 1.0)
        return mask;
    if (tti_raw_bernoulli_(mask, 1.0 - p, NULL) == TUTTI_OK &&
        tti_raw_op1_(TTI_DIV_C, mask, 1.0 - p) == TUTTI_OK)
        return mask;
    tutti_tensor_release(mask);
    return NULL;
}

static tutti_tensor *masked(const tti_node_class *cls, tutti_tensor *x, const int64_t *shape,
                            double p)
{
    tutti_tensor *mask = make_mask(x->dtype, x->nd, shape, p);
    tutti_tensor *y = tti_raw_mul(x, mask);
    tti_node *node = tti_record(&y, cls, 1, &x);

    if (node != NULL)
        tti_save(node, 0, mask);
    tutti_tensor_release(mask);
    return tti_temp(y);
}

static tutti_status check(const char *op, const tutti_tensor *x, double p)
{
    if (x == NULL)
        return tti_refuse_null(op);
    if (!(p >= 0.0 && p <= 1.0))
        return tti_refuse(TUTTI_E_ARG, op, "the probability %g is not within 0..1", p);
    if (!tti_is_floating(x->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, op, "elements of %s, real types are offered",
                          tutti_dtype_name(x->dtype));
    return TUTTI_OK;
}

tutti_tensor *tutti_tensor_dropout(tutti_tensor *x, double p, bool training)
{
    static const tti_node_class dropout_class = { .name = "dropout", .apply = dropout_apply };

    if (check("dropout", x, p) != TUTTI_OK)
        return NULL;
    if (!training || p == 0.0)
        return tti_temp(tutti_tensor_retain(x));
    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_dropout(tti_widened(x), p, training), x->dtype);
    }
    return masked(&dropout_class, x, x->shape, p);
}

tutti_tensor *tutti_tensor_dropout2d(tutti_tensor *x, double p, bool training)
{
    static const tti_node_class dropout_class = { .name = "dropout2d", .apply = dropout_apply };
    int64_t shape[TUTTI_MAX_DIMS];

    if (check("dropout2d", x, p) != TUTTI_OK)
        return NULL;
    if (x->nd < 2)
        return tti_poison(TUTTI_E_ARG, "dropout2d", "input %s has no channels",
                          tti_shape_str(x->nd, x->shape).s);
    if (!training || p == 0.0)
        return tti_temp(tutti_tensor_retain(x));
    if (tti_has_half(x)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_dropout2d(tti_widened(x), p, training), x->dtype);
    }
    for (int d = 0; d < x->nd; d++)
        shape[d] = d < 2 ? x->shape[d] : 1;
    return masked(&dropout_class, x, shape, p);
}
