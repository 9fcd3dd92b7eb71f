/* SPDX-License-Identifier: BSD-3-Clause
 *
 * embedding.c - rows of a table by their numbers.
 *
 * Back    dW[index[i]] += g[i], in the order of i; the row of the padding gets none. */
#include "nn/nn.h"

#include <string.h>

/* saved: the numbers, as a vector. number[0]: the padding. */
static void embedding_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tutti_tensor *index = tti_saved(node, 0);
    const tti_edge *in = &node->edge[0];
    tutti_tensor *row;

    out[0] = tti_raw_index_add(g, 0, index, in->nd, in->shape);
    if (out[0] == NULL || node->number[0] < 0)
        return;
    row = tti_temp(tti_raw_select(out[0], 0, node->number[0]));
    if (row != NULL)
        (void)tti_raw_fill_(row, 0.0);
}

static tutti_status check(const tutti_tensor *weight, const tutti_tensor *index, int64_t padding)
{
    if (!tti_is_floating(weight->dtype) || index->dtype != TUTTI_I64)
        return tti_refuse(TUTTI_E_UNSUPPORTED, "embedding",
                          "rows of %s by numbers of %s: real types, and i64, are offered",
                          tutti_dtype_name(weight->dtype), tutti_dtype_name(index->dtype));
    if (weight->nd != 2 || index->nd >= TUTTI_MAX_DIMS || padding >= weight->shape[0])
        return tti_refuse(TUTTI_E_ARG, "embedding", "weight %s, numbers %s, padding %lld",
                          tti_shape_str(weight->nd, weight->shape).s,
                          tti_shape_str(index->nd, index->shape).s, (long long)padding);
    return TUTTI_OK;
}

/* Inside of a scope; owned. */
static tutti_tensor *recorded(tutti_tensor *weight, const tutti_tensor *index, int64_t padding)
{
    static const tti_node_class embedding_class = { .name = "embedding", .apply = embedding_apply };
    tutti_tensor *flat = tti_temp(tti_raw_contiguous(index)), *y;
    int64_t shape[TUTTI_MAX_DIMS];
    tti_node *node;

    flat = tti_temp(tti_raw_view(flat, 1, &index->numel));
    y = tti_temp(tti_raw_index_select("embedding", weight, 0, flat));
    memcpy(shape, index->shape, sizeof shape);
    shape[index->nd] = weight->shape[1];
    y = tti_raw_view(y, index->nd + 1, shape);
    node = tti_record(&y, &embedding_class, 1, &weight);
    if (node != NULL) {
        tti_save(node, 0, flat);
        node->number[0] = padding;
    }
    return y;
}

tutti_tensor *tutti_tensor_embedding(tutti_tensor *weight, const tutti_tensor *index,
                                     int64_t padding_idx)
{
    tutti_tensor *y;

    if (weight == NULL || index == NULL)
        return tti_poisoned("embedding");
    if (check(weight, index, padding_idx) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    y = recorded(weight, index, padding_idx);
    tutti_scope_end();
    return tti_temp(y);
}
