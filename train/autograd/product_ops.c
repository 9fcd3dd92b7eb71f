/* SPDX-License-Identifier: BSD-3-Clause
 *
 * product_ops.c - matrix products, with their gradients. Transposes are flags of the product, never
 * copies. */
#include "autograd/autograd.h"

/* All matrices of x one below the other. The scope's. */
static tutti_tensor *stacked(const tutti_tensor *x)
{
    int64_t shape[2] = { 1, x->shape[x->nd - 1] };

    for (int d = 0; d < x->nd - 1; d++)
        shape[0] *= x->shape[d];
    return tti_temp(tti_raw_reshape(x, 2, shape));
}

/* y = a b: g b' and a' g. Where one matrix b met many, its gradient is one product, too. */
static void product_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tutti_tensor *a = tti_saved(node, 0), *b = tti_saved(node, 1);
    const char *op = node->cls->name;

    if (tti_wants(node, 0))
        out[0] = tti_raw_bmm(op, g, tti_temp(tti_raw_transpose(b, -2, -1)));
    if (!tti_wants(node, 1))
        return;
    if (node->edge[1].nd == 2 && a->nd > 2) {
        a = stacked(a);
        g = stacked(g);
    }
    if (a != NULL && g != NULL)
        out[1] = tti_raw_bmm(op, tti_temp(tti_raw_transpose(a, -2, -1)), g);
}

static tutti_tensor *product_recorded(const tti_node_class *cls, tutti_tensor *a, tutti_tensor *b)
{
    tutti_tensor *y = tti_raw_bmm(cls->name, a, b);
    tti_node *node = tti_record(&y, cls, 2, (tutti_tensor *[]){ a, b });

    if (node != NULL && tti_wants(node, 1))
        tti_save(node, 0, a);
    if (node != NULL && tti_wants(node, 0))
        tti_save(node, 1, b);
    return tti_temp(y);
}

static tutti_tensor *not_of(const char *op, int nd, const tutti_tensor *a, const tutti_tensor *b)
{
    return tti_poison(TUTTI_E_ARG, op, "%s times %s: both need %d dimensions",
                      tti_shape_str(a->nd, a->shape).s, tti_shape_str(b->nd, b->shape).s, nd);
}

tutti_tensor *tutti_tensor_mm(tutti_tensor *a, tutti_tensor *b)
{
    static const tti_node_class mm_class = { .name = "mm", .apply = product_apply };

    if (a != NULL && b != NULL && (a->nd != 2 || b->nd != 2))
        return not_of("mm", 2, a, b);
    return product_recorded(&mm_class, a, b);
}

tutti_tensor *tutti_tensor_bmm(tutti_tensor *a, tutti_tensor *b)
{
    static const tti_node_class bmm_class = { .name = "bmm", .apply = product_apply };

    if (a != NULL && b != NULL && (a->nd != 3 || b->nd != 3))
        return not_of("bmm", 3, a, b);
    if (a != NULL && b != NULL && a->shape[0] != b->shape[0])
        return tti_poison(TUTTI_E_ARG, "bmm", "%lld matrices times %lld", (long long)a->shape[0],
                          (long long)b->shape[0]);
    return product_recorded(&bmm_class, a, b);
}

/* Vectors become matrices of one row or one column; that dimension is taken out of the result. */
static tutti_tensor *product(tutti_tensor *a, tutti_tensor *b)
{
    static const tti_node_class matmul_class = { .name = "matmul", .apply = product_apply };
    const bool row = a->nd == 1, column = b->nd == 1;
    tutti_tensor *y = product_recorded(&matmul_class, row ? tutti_tensor_unsqueeze(a, 0) : a,
                                       column ? tutti_tensor_unsqueeze(b, 1) : b);

    if (column && y != NULL)
        y = tutti_tensor_squeeze(y, -1);
    if (row && y != NULL)
        y = tutti_tensor_squeeze(y, column ? -1 : -2);
    return y;
}

tutti_tensor *tutti_tensor_matmul(tutti_tensor *a, tutti_tensor *b)
{
    tutti_tensor *y;

    if (a == NULL || b == NULL)
        return tti_poisoned("matmul");
    if (a->nd == 0 || b->nd == 0)
        return tti_poison(TUTTI_E_ARG, "matmul", "a scalar tensor has no rows or columns");
    tutti_scope_begin();
    y = tutti_tensor_retain(product(a, b));
    tutti_scope_end();
    return tti_temp(y);
}
