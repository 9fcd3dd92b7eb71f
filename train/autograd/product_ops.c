/* SPDX-License-Identifier: BSD-3-Clause
 *
 * product_ops.c - matrix products, with their gradients. Transposes are flags of the product, never
 * copies. */
#include "autograd/autograd.h"

/* y = a b: g b' and a' g */
static void mm_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    if (tti_wants(node, 0))
        out[0] = tti_raw_mm("mm", g, tti_temp(tti_raw_transpose(tti_saved(node, 1), 0, 1)));
    if (tti_wants(node, 1))
        out[1] = tti_raw_mm("mm", tti_temp(tti_raw_transpose(tti_saved(node, 0), 0, 1)), g);
}

tutti_tensor *tutti_tensor_mm(tutti_tensor *a, tutti_tensor *b)
{
    static const tti_node_class mm_class = { .name = "mm", .apply = mm_apply };
    tutti_tensor *y = tti_raw_mm("mm", a, b);
    tti_node *node = tti_record(&y, &mm_class, 2, (tutti_tensor *[]){ a, b });

    if (node != NULL && tti_wants(node, 1))
        tti_save(node, 0, a);
    if (node != NULL && tti_wants(node, 0))
        tti_save(node, 1, b);
    return tti_temp(y);
}

/* Vectors become matrices of one row or one column; that dimension is taken out of the result. */
static tutti_tensor *product(tutti_tensor *a, tutti_tensor *b)
{
    const bool row = a->nd == 1, column = b->nd == 1;
    tutti_tensor *y = tutti_tensor_mm(row ? tutti_tensor_unsqueeze(a, 0) : a,
                                      column ? tutti_tensor_unsqueeze(b, 1) : b);

    if (column && y != NULL)
        y = tutti_tensor_squeeze(y, 1);
    if (row && y != NULL)
        y = tutti_tensor_squeeze(y, 0);
    return y;
}

tutti_tensor *tutti_tensor_matmul(tutti_tensor *a, tutti_tensor *b)
{
    tutti_tensor *y;

    if (a == NULL || b == NULL)
        return tti_poisoned("matmul");
    if (a->nd == 0 || b->nd == 0)
        return tti_poison(TUTTI_E_ARG, "matmul", "a scalar tensor has no rows or columns");
    if (a->nd > 2 || b->nd > 2)
        return tti_poison(TUTTI_E_UNSUPPORTED, "matmul", "%s times %s: at most two dimensions",
                          tti_shape_str(a->nd, a->shape).s, tti_shape_str(b->nd, b->shape).s);
    tutti_scope_begin();
    y = tutti_tensor_retain(product(a, b));
    tutti_scope_end();
    return tti_temp(y);
}
