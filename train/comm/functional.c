/* SPDX-License-Identifier: BSD-3-Clause
 *
 * functional.c - collectives out of place, without gradients.
 *
 * How     The input, of any strides, is copied once: into the result where the collective works in
 *         place (all_reduce, broadcast, all_gather's own part), else into memory that the deferred
 *         keeps. So the caller may change his input at once, and spans are contiguous. Ranks one after
 *         the other along a dimension are parts of a flat buffer; for any but the outermost one the
 *         parts are put in order when the work has ended (tti_blocks).
 * True    Every rank that finds its arguments right issues exactly one collective.
 * Fails   A rank that refuses its arguments issues none: the others' time-out names it. */
#include "comm/comm.h"

#include <stdlib.h>
#include <string.h>

bool tti_team_of(const char *what, tutti_group *group, tti_team *team_out)
{
    const tti_team team = { .size = tutti_get_world_size(group), .rank = tutti_get_rank(group) };

    if (team.size < 1 || team.rank < 0) {
        (void)tti_refuse(TUTTI_E_STATE, what,
                         "this rank is not in the group, or there is no world");
        return false;
    }
    *team_out = team;
    return true;
}

tutti_tensor *tti_part(const tutti_tensor *whole, int64_t r, int nd, const int64_t *shape)
{
    int64_t stride[TUTTI_MAX_DIMS], numel = 1;

    for (int d = 0; d < nd; d++)
        numel *= shape[d];
    tti_contiguous_strides(nd, shape, stride);
    return tti_raw_alias(whole, nd, shape, stride, whole->offset + r * numel);
}

/* part r of whole = x. False: kept. */
static bool put_part(const tutti_tensor *whole, int64_t r, const tutti_tensor *x)
{
    tutti_tensor *part = tti_part(whole, r, x->nd, x->shape);
    const bool ok = part != NULL && tti_raw_copy_(part, x) == TUTTI_OK;

    tutti_tensor_release(part);
    return ok;
}

/* The elements of part r, of parts. Waits for nothing: whole is ours, and not under way. */
static tutti_span span_of_part(const tutti_tensor *whole, int64_t r, int64_t parts)
{
    const int64_t n = whole->numel / parts;

    return tutti_span_of((char *)tti_at(whole) + (size_t)(r * n) * tutti_dtype_size(whole->dtype),
                         n, whole->dtype);
}

/* ---- in place on a copy ----------------------------------------------------------------------- */

tutti_tensor *tti_raw_all_reduce(const tutti_tensor *x, tutti_op op, tutti_group *group)
{
    static const char what[] = "all_reduce";
    tti_team team;
    tti_deferred *d;
    tutti_tensor *y;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team))
        return NULL;
    d = tti_deferred_make(what, 0);
    y = tti_raw_clone(x);
    if (d == NULL || y == NULL)
        return tti_deferred_give_up(d, y);
    return tti_deferred_end(d, tutti_all_reduce_async(tutti_tensor_span(y), op, group, &d->work),
                            y);
}

tutti_tensor *tti_raw_broadcast(const tutti_tensor *x, int src, tutti_group *group)
{
    static const char what[] = "broadcast";
    tti_team team;
    tti_deferred *d;
    tutti_tensor *y;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team))
        return NULL;
    d = tti_deferred_make(what, 0);
    if (tutti_get_group_rank(group, src) == team.rank)
        y = tti_raw_clone(x);
    else
        y = tti_raw_empty(x->dtype, x->nd, x->shape);
    if (d == NULL || y == NULL)
        return tti_deferred_give_up(d, y);
    return tti_deferred_end(d, tutti_broadcast_async(tutti_tensor_span(y), src, group, &d->work),
                            y);
}

tutti_tensor *tti_raw_reduce(const tutti_tensor *x, int dst, tutti_op op, tutti_group *group)
{
    static const char what[] = "reduce";
    tti_team team;
    tti_deferred *d;
    tutti_tensor *y, *own;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team))
        return NULL;
    d = tti_deferred_make(what, 1);
    own = tti_raw_clone(x);
    if (d == NULL || own == NULL)
        return tti_deferred_give_up(d, own);
    y = own;
    if (tutti_get_group_rank(group, dst) != team.rank) {
        y = tti_raw_zeros(x->dtype, x->nd, x->shape);
        d->keep[0] = own;
    }
    if (y == NULL)
        return tti_deferred_give_up(d, NULL);
    return tti_deferred_end(d, tutti_reduce_async(tutti_tensor_span(own), dst, op, group, &d->work),
                            y);
}

/* ---- ranks along a dimension ------------------------------------------------------------------ */

/* Blocks of the result of a gather along dim: of x's shape, or [1] for a scalar. */
static tti_blocks blocks_along(const tutti_tensor *x, int dim, int parts)
{
    tti_blocks b = { .outer = 1, .parts = parts, .bytes = tutti_dtype_size(x->dtype) };

    for (int d = 0; d < x->nd; d++)
        if (d < dim)
            b.outer *= x->shape[d];
        else
            b.bytes *= (size_t)x->shape[d];
    return b;
}

/* Memory for the parts to arrive in: the result itself, if they lie there one after the other; else
 * memory that d keeps. NULL: kept. Never does d hold the result: it would hold itself. */
static tutti_tensor *arrivals(tti_deferred *d, const tti_blocks *blocks, tutti_tensor *y)
{
    if (blocks->outer == 1)
        return y;
    d->keep[0] = tti_raw_empty(y->dtype, y->nd, y->shape);
    if (d->keep[0] == NULL)
        return NULL;
    d->blocks = *blocks;
    d->blocks.to = tti_at(y);
    d->blocks.from = tti_at(d->keep[0]);
    return d->keep[0];
}

/* x of all ranks along dim, not filled. */
static tutti_tensor *gather_result(const tutti_tensor *x, int dim, int parts)
{
    int64_t shape[TUTTI_MAX_DIMS] = { 1 };

    for (int i = 0; i < x->nd; i++)
        shape[i] = x->shape[i];
    shape[dim] *= parts;
    return tti_raw_empty(x->dtype, x->nd > 0 ? x->nd : 1, shape);
}

tutti_tensor *tti_raw_all_gather(const tutti_tensor *x, int dim, tutti_group *group)
{
    static const char what[] = "all_gather_tensor";
    tti_team team;
    tti_blocks blocks;
    tti_deferred *d;
    tutti_tensor *y, *into;

    if (x == NULL)
        return tti_poisoned(what);
    dim = tti_dim_check_or_scalar(what, dim, x->nd);
    if (dim < 0 || !tti_team_of(what, group, &team))
        return NULL;
    blocks = blocks_along(x, dim, team.size);
    d = tti_deferred_make(what, 1);
    y = gather_result(x, dim, team.size);
    if (d == NULL || y == NULL)
        return tti_deferred_give_up(d, y);
    into = arrivals(d, &blocks, y);
    if (into == NULL || !put_part(into, team.rank, x))
        return tti_deferred_give_up(d, y);
    return tti_deferred_end(
        d,
        tutti_all_gather_into_tensor_async(
            tutti_tensor_span(into), span_of_part(into, team.rank, team.size), group, &d->work),
        y);
}

bool tti_part_shape(const char *what, const tutti_tensor *x, int *dim, int parts, int *nd_out,
                    int64_t *shape_out)
{
    if (x->nd < 1) {
        (void)tti_refuse(TUTTI_E_ARG, what, "a scalar tensor cannot be cut into parts");
        return false;
    }
    *dim = tti_dim_check(what, *dim, x->nd);
    if (*dim < 0)
        return false;
    if (x->shape[*dim] % parts != 0) {
        (void)tti_refuse(TUTTI_E_ARG, what,
                         "dimension %d of shape %s does not divide into %d parts", *dim,
                         tti_shape_str(x->nd, x->shape).s, parts);
        return false;
    }
    memcpy(shape_out, x->shape, (size_t)x->nd * sizeof shape_out[0]);
    shape_out[*dim] /= parts;
    *nd_out = x->nd;
    return true;
}

tutti_tensor *tti_scatter_parts(const tutti_tensor *x, int dim, int parts)
{
    const int64_t length = x->shape[dim] / parts;
    tutti_tensor *whole = tti_raw_empty(x->dtype, x->nd, x->shape);
    bool ok = whole != NULL;

    for (int r = 0; r < parts && ok; r++) {
        tutti_tensor *from = tti_raw_narrow(x, dim, r * length, length);

        ok = from != NULL && put_part(whole, r, from);
        tutti_tensor_release(from);
    }
    if (ok)
        return whole;
    tutti_tensor_release(whole);
    return NULL;
}

tutti_tensor *tti_raw_reduce_scatter(const tutti_tensor *x, tutti_op op, int dim,
                                     tutti_group *group)
{
    static const char what[] = "reduce_scatter_tensor";
    int64_t shape[TUTTI_MAX_DIMS];
    tti_team team;
    tti_deferred *d;
    tutti_tensor *y;
    int nd;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team) || !tti_part_shape(what, x, &dim, team.size, &nd, shape))
        return NULL;
    d = tti_deferred_make(what, 1);
    y = tti_raw_empty(x->dtype, nd, shape);
    if (d == NULL || y == NULL)
        return tti_deferred_give_up(d, y);
    d->keep[0] = tti_scatter_parts(x, dim, team.size);
    if (d->keep[0] == NULL)
        return tti_deferred_give_up(d, y);
    return tti_deferred_end(d,
                            tutti_reduce_scatter_tensor_async(tutti_tensor_span(y),
                                                              tutti_tensor_span(d->keep[0]), op,
                                                              group, &d->work),
                            y);
}

/* ---- to and from one rank --------------------------------------------------------------------- */

/* One span for each part of whole; NULL on other ranks than the root. False: out of memory, kept. */
static bool part_spans(const char *what, const tutti_tensor *whole, int parts,
                       tutti_span **spans_out)
{
    tutti_span *spans;

    *spans_out = NULL;
    if (whole == NULL)
        return true;
    spans = malloc((size_t)parts * sizeof *spans);
    if (spans == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, what, "no memory for a list of %d parts", parts);
        return false;
    }
    for (int r = 0; r < parts; r++)
        spans[r] = span_of_part(whole, r, parts);
    *spans_out = spans;
    return true;
}

tutti_tensor *tti_raw_gather(const tutti_tensor *x, int dst, tutti_group *group)
{
    static const char what[] = "gather";
    int64_t shape[TUTTI_MAX_DIMS + 1];
    tti_team team;
    tti_deferred *d;
    tutti_tensor *y;
    tutti_span *outs = NULL;
    tutti_status status;
    bool root;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team))
        return NULL;
    root = tutti_get_group_rank(group, dst) == team.rank;
    shape[0] = team.size;
    memcpy(shape + 1, x->shape, sizeof x->shape);
    d = tti_deferred_make(what, 1);
    y = root ? tti_raw_empty(x->dtype, x->nd + 1, shape)
             : tti_raw_zeros(x->dtype, x->nd + 1, shape);
    if (d == NULL || y == NULL)
        return tti_deferred_give_up(d, y);
    d->keep[0] = tti_raw_clone(x);
    if (d->keep[0] == NULL || !part_spans(what, root ? y : NULL, team.size, &outs))
        return tti_deferred_give_up(d, y);
    status = tutti_gather_async(outs, root ? team.size : 0, tutti_tensor_span(d->keep[0]), dst,
                                group, &d->work);
    free(outs);
    return tti_deferred_end(d, status, y);
}

tutti_tensor *tti_raw_scatter(const tutti_tensor *x, int src, tutti_group *group)
{
    static const char what[] = "scatter";
    tti_team team;
    tti_deferred *d;
    tutti_tensor *y;
    tutti_span *ins = NULL;
    tutti_status status;
    bool root;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team))
        return NULL;
    if (x->nd < 1 || x->shape[0] != team.size)
        return tti_poison(TUTTI_E_ARG, what, "shape %s does not begin with the group's size, %d",
                          tti_shape_str(x->nd, x->shape).s, team.size);
    root = tutti_get_group_rank(group, src) == team.rank;
    d = tti_deferred_make(what, 1);
    y = tti_raw_empty(x->dtype, x->nd - 1, x->shape + 1);
    if (d == NULL || y == NULL)
        return tti_deferred_give_up(d, y);
    d->keep[0] = root ? tti_raw_clone(x) : NULL;
    if ((root && d->keep[0] == NULL) || !part_spans(what, d->keep[0], team.size, &ins))
        return tti_deferred_give_up(d, y);
    status =
        tutti_scatter_async(tutti_tensor_span(y), ins, root ? team.size : 0, src, group, &d->work);
    free(ins);
    return tti_deferred_end(d, status, y);
}

/* ---- everybody to everybody ------------------------------------------------------------------- */

/* The rows that splits add up to, their elements in out; -1 and kept if one is negative. */
static int64_t sum_of_splits(const char *what, const int64_t *splits, int n, int64_t row,
                             int64_t *out)
{
    int64_t rows = 0;

    for (int r = 0; r < n; r++) {
        if (splits[r] < 0 || __builtin_add_overflow(rows, splits[r], &rows) ||
            __builtin_mul_overflow(splits[r], row, &out[r])) {
            (void)tti_refuse(TUTTI_E_ARG, what, "split %lld of rank %d", (long long)splits[r], r);
            return -1;
        }
    }
    return rows;
}

/* Elements of each block, of out and in, and out's rows. False: kept. */
static bool read_splits(const char *what, const tutti_tensor *x, const int64_t *out_splits,
                        const int64_t *in_splits, int n, int64_t *elements, int64_t *rows_out)
{
    int64_t row = 1, rows;

    for (int d = 1; d < x->nd; d++)
        row *= x->shape[d];
    if (out_splits == NULL && in_splits == NULL) {
        if (x->shape[0] % n != 0) {
            (void)tti_refuse(TUTTI_E_ARG, what,
                             "%lld rows do not divide into %d blocks\n"
                             "  next: give both lists of splits",
                             (long long)x->shape[0], n);
            return false;
        }
        for (int r = 0; r < 2 * n; r++)
            elements[r] = x->shape[0] / n * row;
        *rows_out = x->shape[0];
        return true;
    }
    if (out_splits == NULL || in_splits == NULL) {
        (void)tti_refuse(TUTTI_E_ARG, what,
                         "one list of splits, where both are needed, or neither");
        return false;
    }
    rows = sum_of_splits(what, in_splits, n, row, elements + n);
    if (rows >= 0 && rows != x->shape[0]) {
        (void)tti_refuse(TUTTI_E_ARG, what, "the splits of the input add up to %lld of %lld rows",
                         (long long)rows, (long long)x->shape[0]);
        return false;
    }
    *rows_out = rows < 0 ? -1 : sum_of_splits(what, out_splits, n, row, elements);
    return *rows_out >= 0;
}

tutti_tensor *tti_raw_all_to_all(const tutti_tensor *x, const int64_t *out_splits,
                                 const int64_t *in_splits, tutti_group *group)
{
    static const char what[] = "all_to_all_single";
    int64_t shape[TUTTI_MAX_DIMS];
    int64_t *elements; /* [P] of out, [P] of in */
    tti_team team;
    tti_deferred *d = NULL;
    tutti_tensor *y = NULL;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team))
        return NULL;
    if (x->nd < 1)
        return tti_poison(TUTTI_E_ARG, what, "a scalar tensor has no rows");
    elements = malloc(2 * (size_t)team.size * sizeof *elements);
    if (elements == NULL)
        return tti_poison(TUTTI_E_NOMEM, what, "no memory for %d splits", 2 * team.size);
    memcpy(shape, x->shape, sizeof shape);
    if (read_splits(what, x, out_splits, in_splits, team.size, elements, &shape[0])) {
        d = tti_deferred_make(what, 1);
        y = tti_raw_empty(x->dtype, x->nd, shape);
    }
    if (d != NULL)
        d->keep[0] = tti_raw_clone(x);
    if (d == NULL || y == NULL || d->keep[0] == NULL)
        y = tti_deferred_give_up(d, y);
    else
        y = tti_deferred_end(d,
                             tutti_all_to_all_single_async(tutti_tensor_span(y),
                                                           tutti_tensor_span(d->keep[0]), elements,
                                                           elements + team.size, group, &d->work),
                             y);
    free(elements);
    return y;
}
