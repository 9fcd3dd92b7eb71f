/* SPDX-License-Identifier: BSD-3-Clause
 *
 * index_ops.c - elements taken by number, tensors joined and cut, triangles, with their gradients. */
#include "autograd/autograd.h"

/* ---- taken by number: the gradient goes back to where the elements came from -------------------- */

static void index_select_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tti_edge *in = &node->edge[0];

    out[0] = tti_raw_index_add(g, (int)node->number[0], tti_saved(node, 0), in->nd, in->shape);
}

tutti_tensor *tutti_tensor_index_select(tutti_tensor *x, int dim, const tutti_tensor *index)
{
    static const tti_node_class select_class = { .name = "index_select",
                                                 .apply = index_select_apply };
    tutti_tensor *y = tti_raw_index_select("index_select", x, dim, index);
    tti_node *node = tti_record(&y, &select_class, 1, &x);
    tutti_tensor *kept;

    if (node != NULL) {
        kept = tti_raw_contiguous(index);
        node->number[0] = dim < 0 ? dim + x->nd : dim;
        if (kept != NULL)
            tti_save(node, 0, kept);
        tutti_tensor_release(kept);
    }
    return tti_temp(y);
}

static void gather_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tti_edge *in = &node->edge[0];

    out[0] = tti_raw_scatter_add(g, (int)node->number[0], tti_saved(node, 0), in->nd, in->shape);
}

/* y, taken from x at index along dim, recorded; owned. */
static tutti_tensor *gather_recorded(tutti_tensor *x, int dim, const tutti_tensor *index,
                                     tutti_tensor *y)
{
    static const tti_node_class gather_class = { .name = "gather", .apply = gather_apply };
    tti_node *node = tti_record(&y, &gather_class, 1, &x);

    if (node != NULL) {
        node->number[0] = dim < 0 ? dim + x->nd : dim;
        tti_save(node, 0, (tutti_tensor *)(uintptr_t)index);
    }
    return y;
}

tutti_tensor *tutti_tensor_index_gather(tutti_tensor *x, int dim, const tutti_tensor *index)
{
    return tti_temp(gather_recorded(x, dim, index, tti_raw_index_gather(x, dim, index)));
}

/* ---- the largest, the smallest along a dimension ------------------------------------------------- */

/* Inside of a scope: t, or what it is without dimension dim. */
static tutti_tensor *dropped(tutti_tensor *t, int dim, bool keepdim)
{
    return keepdim || t == NULL ? t : tutti_tensor_squeeze(t, dim);
}

static tutti_tensor *extreme(const char *op, tutti_tensor *x, int dim, bool keepdim, bool smallest,
                             tutti_tensor **index_out)
{
    tutti_tensor *y, *at;

    tutti_scope_begin();
    at = tti_temp(tti_raw_argextreme(op, x, dim, smallest));
    y = at == NULL ? NULL : tutti_tensor_index_gather(x, dim, at);
    y = tutti_tensor_retain(dropped(y, dim, keepdim));
    at = y == NULL ? NULL : tutti_tensor_retain(dropped(at, dim, keepdim));
    tutti_scope_end();
    if (index_out != NULL)
        *index_out = tti_temp(at);
    else
        tutti_tensor_release(at);
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_max(tutti_tensor *x, int dim, bool keepdim, tutti_tensor **index_out)
{
    return extreme("max", x, dim, keepdim, false, index_out);
}

tutti_tensor *tutti_tensor_min(tutti_tensor *x, int dim, bool keepdim, tutti_tensor **index_out)
{
    return extreme("min", x, dim, keepdim, true, index_out);
}

/* ---- joined and cut ------------------------------------------------------------------------------ */

/* Each input gets its part of g: number[0] is the dimension. */
static void cat_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const int dim = (int)node->number[0];
    int64_t at = 0;

    for (int i = 0; i < node->n_edges; i++) {
        const int64_t length = node->edge[i].shape[dim];

        if (tti_wants(node, i))
            out[i] = tti_raw_narrow(g, dim, at, length);
        at += length;
    }
}

tutti_tensor *tutti_tensor_cat(tutti_tensor *const *xs, int n, int dim)
{
    static const tti_node_class cat_class = { .name = "cat", .apply = cat_apply };
    tutti_tensor *y = n > 0 && xs == NULL ? tti_poisoned("cat") : tti_raw_cat(n, xs, dim);
    tti_node *node = tti_record(&y, &cat_class, n, xs);

    if (node != NULL) {
        dim = dim < 0 ? dim + y->nd : dim;
        node->number[0] = dim;
        for (int i = 0; i < n; i++) /* also of those that want no gradient */
            node->edge[i].shape[dim] = xs[i]->shape[dim];
    }
    return tti_temp(y);
}

static tutti_status cut(tutti_tensor *x, int64_t size, int dim, int n, tutti_tensor **parts_out)
{
    const int64_t all = x->shape[dim];

    for (int i = 0; i < n; i++) {
        const int64_t at = i * size < all ? i * size : all;

        parts_out[i] = tutti_tensor_narrow(x, dim, at, all - at < size ? all - at : size);
        if (parts_out[i] == NULL)
            return tti_refused();
    }
    return TUTTI_OK;
}

tutti_status tutti_tensor_split(tutti_tensor *x, int64_t size, int dim, int n,
                                tutti_tensor **parts_out)
{
    int64_t parts;

    for (int i = 0; i < n; i++)
        parts_out[i] = NULL;
    if (x == NULL)
        return tti_refuse_null("split");
    dim = tti_dim_check("split", dim, x->nd);
    if (dim < 0)
        return TUTTI_E_ARG;
    parts = size < 1 ? 0 : x->shape[dim] == 0 ? 1 : (x->shape[dim] - 1) / size + 1;
    if (parts != n)
        return tti_refuse(TUTTI_E_ARG, "split",
                          "%lld elements in parts of %lld are %lld parts, not %d",
                          (long long)x->shape[dim], (long long)size, (long long)parts, n);
    return cut(x, size, dim, n, parts_out);
}

tutti_status tutti_tensor_chunk(tutti_tensor *x, int n, int dim, tutti_tensor **parts_out)
{
    for (int i = 0; i < n; i++)
        parts_out[i] = NULL;
    if (x == NULL)
        return tti_refuse_null("chunk");
    dim = tti_dim_check("chunk", dim, x->nd);
    if (dim < 0)
        return TUTTI_E_ARG;
    if (n < 1 || x->shape[dim] % n != 0)
        return tti_refuse(TUTTI_E_ARG, "chunk", "%lld elements do not make %d equal parts",
                          (long long)x->shape[dim], n);
    return cut(x, x->shape[dim] / n, dim, n, parts_out);
}

/* ---- triangles ----------------------------------------------------------------------------------- */

static void triangle_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_triangle(node->cls->name, g, node->number[0], node->number[1] != 0);
}

static tutti_tensor *triangle(const tti_node_class *cls, tutti_tensor *x, int64_t diagonal,
                              bool upper)
{
    tutti_tensor *y = tti_raw_triangle(cls->name, x, diagonal, upper);
    tti_node *node = tti_record(&y, cls, 1, &x);

    if (node != NULL) {
        node->number[0] = diagonal;
        node->number[1] = upper;
    }
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_tril(tutti_tensor *x, int64_t diagonal)
{
    static const tti_node_class tril_class = { .name = "tril", .apply = triangle_apply };

    return triangle(&tril_class, x, diagonal, false);
}

tutti_tensor *tutti_tensor_triu(tutti_tensor *x, int64_t diagonal)
{
    static const tti_node_class triu_class = { .name = "triu", .apply = triangle_apply };

    return triangle(&triu_class, x, diagonal, true);
}
