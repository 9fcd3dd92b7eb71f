/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iterate.c - walk tensors of one shape together, row by row.
 *
 * How     Dimensions of size 1 are left out, and neighbours that every operand lays out without a
 *         gap become one; tensors that are all contiguous are a single row. What remains outside
 *         of the last dimension is counted like an odometer. A broadcast dimension has stride 0.
 * True    The loop is called once per row, never per element. */
#include "tensor/tensor.h"

enum { OPERANDS = 4 };

typedef struct walk {
    int nd;
    int64_t size[TUTTI_MAX_DIMS];
    int64_t stride[TUTTI_MAX_DIMS][OPERANDS]; /* in elements */
    char *at[OPERANDS];
    int64_t bytes[OPERANDS]; /* of an element */
} walk;

/* The stride of operand t along dimension d of out. */
static int64_t stride_in(const tutti_tensor *t, const tutti_tensor *out, int d)
{
    const int td = t == NULL ? -1 : d - (out->nd - t->nd);

    return td < 0 || t->shape[td] == 1 ? 0 : t->stride[td];
}

static void add_dim(walk *w, int64_t size, const int64_t *stride)
{
    bool joins = w->nd > 0;

    for (int k = 0; k < OPERANDS && joins; k++)
        joins = w->stride[w->nd - 1][k] == size * stride[k];
    if (!joins) {
        w->size[w->nd] = 1;
        w->nd++;
    }
    w->size[w->nd - 1] *= size;
    for (int k = 0; k < OPERANDS; k++)
        w->stride[w->nd - 1][k] = stride[k];
}

static void prepare(walk *w, const tutti_tensor *const *operand)
{
    const tutti_tensor *out = operand[0];

    w->nd = 0;
    for (int k = 0; k < OPERANDS; k++) {
        w->at[k] = operand[k] != NULL ? tti_at(operand[k]) : NULL;
        w->bytes[k] = operand[k] != NULL ? (int64_t)tutti_dtype_size(operand[k]->dtype) : 0;
    }
    for (int d = 0; d < out->nd; d++) {
        int64_t stride[OPERANDS];

        if (out->shape[d] == 1)
            continue;
        for (int k = 0; k < OPERANDS; k++)
            stride[k] = stride_in(operand[k], out, d);
        add_dim(w, out->shape[d], stride);
    }
    if (w->nd == 0)
        add_dim(w, 1, (const int64_t[OPERANDS]){ 1, 1, 1, 1 });
}

/* Move to the next row. False after the last one. */
static bool next_row(walk *w, int64_t *index)
{
    for (int d = w->nd - 2; d >= 0; d--) {
        const bool wraps = ++index[d] == w->size[d];
        const int64_t steps = wraps ? 1 - w->size[d] : 1;

        for (int k = 0; k < OPERANDS; k++)
            if (w->at[k] != NULL)
                w->at[k] += steps * w->stride[d][k] * w->bytes[k];
        if (!wraps)
            return true;
        index[d] = 0;
    }
    return false;
}

void tti_iterate(tti_loop loop, const double *c, tutti_tensor *out, const tutti_tensor *a,
                 const tutti_tensor *b)
{
    const tutti_tensor *operand[OPERANDS] = { out, a, b, NULL };
    int64_t index[TUTTI_MAX_DIMS] = { 0 };
    const int64_t *inner;
    walk w;

    if (out->numel == 0)
        return;
    prepare(&w, operand);
    inner = w.stride[w.nd - 1];
    do {
        loop(w.size[w.nd - 1], w.at[0], inner[0], w.at[1], inner[1], w.at[2], inner[2], c);
    } while (next_row(&w, index));
}

void tti_iterate3(tti_loop3 loop, const double *c, tutti_tensor *out, const tutti_tensor *a,
                  const tutti_tensor *b, const tutti_tensor *e)
{
    const tutti_tensor *operand[OPERANDS] = { out, a, b, e };
    int64_t index[TUTTI_MAX_DIMS] = { 0 };
    const int64_t *inner;
    walk w;

    if (out->numel == 0)
        return;
    prepare(&w, operand);
    inner = w.stride[w.nd - 1];
    do {
        loop(w.size[w.nd - 1], w.at[0], inner[0], w.at[1], inner[1], w.at[2], inner[2], w.at[3],
             inner[3], c);
    } while (next_row(&w, index));
}

tutti_status tti_broadcast_shape(const char *op, const tutti_tensor *a, const tutti_tensor *b,
                                 int *nd_out, int64_t *shape_out)
{
    const int nd = a->nd > b->nd ? a->nd : b->nd;

    for (int d = 0; d < nd; d++) {
        const int da = d - (nd - a->nd), db = d - (nd - b->nd);
        const int64_t na = da < 0 ? 1 : a->shape[da];
        const int64_t nb = db < 0 ? 1 : b->shape[db];

        if (na != nb && na != 1 && nb != 1)
            return tti_refuse(TUTTI_E_ARG, op, "shapes %s and %s do not broadcast",
                              tti_shape_str(a->nd, a->shape).s, tti_shape_str(b->nd, b->shape).s);
        shape_out[d] = na == 1 ? nb : na;
    }
    *nd_out = nd;
    return TUTTI_OK;
}
