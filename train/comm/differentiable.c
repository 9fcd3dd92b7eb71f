/* SPDX-License-Identifier: BSD-3-Clause
 *
 * differentiable.c - collectives that gradients flow through: what tutti/comm.h promises.
 *
 * Why     The loss of a distributed program is the sum of all ranks' losses. What a rank puts into a
 *         collective reaches other ranks' losses, so its gradient comes from there, by another
 *         collective: what was copied to many is summed from them, what was cut is joined.
 * True    x [P ranks] -> y is linear in all of them together, and apply is its transpose:
 *
 *             broadcast   reduce to src, else zeros      reduce      broadcast from dst
 *             gather      scatter from dst               scatter     gather to src, else zeros
 *             all_gather  reduce_scatter                 reduce_scatter   all_gather
 *             all_reduce  all_reduce                     all_to_all  all_to_all, splits swapped
 *
 *         always with SUM; the factor of AVG and PREMUL_SUM follows, this rank's own. Other ops are
 *         not linear and are refused where a gradient is asked for.
 * Fails   apply is a collective, so every rank has to come, in the same order: tutti/comm.h. */
#include "autograd/autograd.h"
#include "comm/comm.h"

enum { GROUP, OP, WHERE }; /* of node->number; WHERE is a rank or a dimension */

static tutti_group *group_of(const tti_node *node)
{
    return (tutti_group *)(intptr_t)node->number[GROUP];
}

/* Record y, made from x; returns what the caller may keep on filling in, or NULL. */
static tti_node *record(tutti_tensor **y, const tti_node_class *cls, tutti_tensor *x, int where,
                        tutti_group *group)
{
    tti_node *node = tti_record(y, cls, 1, &x);

    if (node != NULL) {
        node->number[GROUP] = (int64_t)(intptr_t)group;
        node->number[WHERE] = where;
    }
    return node;
}

/* ---- the factor of an op ---------------------------------------------------------------------- */

/* Whether gradients can go back through op, if they have to. */
static bool flows(const char *what, const tutti_tensor *x, tutti_op op)
{
    if (op.kind == TUTTI_OP_SUM || op.kind == TUTTI_OP_AVG || op.kind == TUTTI_OP_PREMUL_SUM ||
        !tutti_is_grad_enabled() || !tutti_tensor_requires_grad(x))
        return true;
    (void)tti_refuse(TUTTI_E_UNSUPPORTED, what,
                     "no gradient flows through '%s', only through sum, avg and premul_sum"
                     "\n  next: pass tutti_tensor_detach() of the input",
                     tutti_op_name(op.kind));
    return false;
}

static void note_op(tti_node *node, tutti_op op)
{
    if (node == NULL)
        return;
    node->number[OP] = op.kind;
    node->real[0] = op.factor;
}

/* What the op of node made of one rank's elements, made of its gradient: g times the factor. Owned. */
static tutti_tensor *times_factor(const tti_node *node, tutti_tensor *g)
{
    double factor = node->real[0];

    if (node->number[OP] == TUTTI_OP_SUM)
        return g;
    if (node->number[OP] == TUTTI_OP_AVG)
        factor = 1.0 / tutti_get_world_size(group_of(node));
    return tti_raw_scale(tti_temp(g), factor);
}

/* ---- all to all alike ------------------------------------------------------------------------- */

static void all_reduce_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = times_factor(node, tti_raw_all_reduce(g, TUTTI_SUM, group_of(node)));
}

tutti_tensor *tutti_tensor_all_reduce(tutti_tensor *x, tutti_op op, tutti_group *group)
{
    static const tti_node_class cls = { .name = "all_reduce", .apply = all_reduce_apply };
    tutti_tensor *y;

    if (!flows(cls.name, x, op))
        return NULL;
    y = tti_raw_all_reduce(x, op, group);
    note_op(record(&y, &cls, x, 0, group), op);
    return tti_temp(y);
}

/* ---- one and all ------------------------------------------------------------------------------ */

static void broadcast_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_reduce(g, (int)node->number[WHERE], TUTTI_SUM, group_of(node));
}

tutti_tensor *tutti_tensor_broadcast(tutti_tensor *x, int src, tutti_group *group)
{
    static const tti_node_class cls = { .name = "broadcast", .apply = broadcast_apply };
    tutti_tensor *y = tti_raw_broadcast(x, src, group);

    (void)record(&y, &cls, x, src, group);
    return tti_temp(y);
}

static void reduce_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = times_factor(node, tti_raw_broadcast(g, (int)node->number[WHERE], group_of(node)));
}

tutti_tensor *tutti_tensor_reduce(tutti_tensor *x, int dst, tutti_op op, tutti_group *group)
{
    static const tti_node_class cls = { .name = "reduce", .apply = reduce_apply };
    tutti_tensor *y;

    if (!flows(cls.name, x, op))
        return NULL;
    y = tti_raw_reduce(x, dst, op, group);
    note_op(record(&y, &cls, x, dst, group), op);
    return tti_temp(y);
}

static void gather_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_scatter(g, (int)node->number[WHERE], group_of(node));
}

tutti_tensor *tutti_tensor_gather(tutti_tensor *x, int dst, tutti_group *group)
{
    static const tti_node_class cls = { .name = "gather", .apply = gather_apply };
    tutti_tensor *y = tti_raw_gather(x, dst, group);

    (void)record(&y, &cls, x, dst, group);
    return tti_temp(y);
}

static void scatter_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = tti_raw_gather(g, (int)node->number[WHERE], group_of(node));
}

tutti_tensor *tutti_tensor_scatter(tutti_tensor *x, int src, tutti_group *group)
{
    static const tti_node_class cls = { .name = "scatter", .apply = scatter_apply };
    tutti_tensor *y = tti_raw_scatter(x, src, group);

    (void)record(&y, &cls, x, src, group);
    return tti_temp(y);
}

/* ---- along a dimension ------------------------------------------------------------------------ */

static void all_gather_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *mine =
        tti_temp(tti_raw_reduce_scatter(g, TUTTI_SUM, (int)node->number[WHERE], group_of(node)));

    out[0] = tti_raw_view(mine, node->edge[0].nd, node->edge[0].shape); /* [1] of a scalar */
}

tutti_tensor *tutti_tensor_all_gather_tensor(tutti_tensor *x, int gather_dim, tutti_group *group)
{
    static const tti_node_class cls = { .name = "all_gather_tensor", .apply = all_gather_apply };
    tutti_tensor *y = tti_raw_all_gather(x, gather_dim, group);

    (void)record(&y, &cls, x, gather_dim, group);
    return tti_temp(y);
}

static void reduce_scatter_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    out[0] = times_factor(node, tti_raw_all_gather(g, (int)node->number[WHERE], group_of(node)));
}

tutti_tensor *tutti_tensor_reduce_scatter_tensor(tutti_tensor *x, tutti_op op, int scatter_dim,
                                                 tutti_group *group)
{
    static const tti_node_class cls = { .name = "reduce_scatter_tensor",
                                        .apply = reduce_scatter_apply };
    tutti_tensor *y;

    if (!flows(cls.name, x, op))
        return NULL;
    y = tti_raw_reduce_scatter(x, op, scatter_dim, group);
    note_op(record(&y, &cls, x, scatter_dim, group), op);
    return tti_temp(y);
}

/* One more dimension in front, which holds the ranks. */

tutti_tensor *tutti_tensor_all_gather(tutti_tensor *x, tutti_group *group)
{
    return tutti_tensor_all_gather_tensor(tutti_tensor_unsqueeze(x, 0), 0, group);
}

tutti_tensor *tutti_tensor_reduce_scatter(tutti_tensor *x, tutti_op op, tutti_group *group)
{
    tti_team team;

    if (x == NULL)
        return tti_poisoned("reduce_scatter");
    if (!tti_team_of("reduce_scatter", group, &team))
        return NULL;
    if (x->nd < 1 || x->shape[0] != team.size)
        return tti_poison(TUTTI_E_ARG, "reduce_scatter",
                          "shape %s does not begin with the group's size, %d",
                          tti_shape_str(x->nd, x->shape).s, team.size);
    return tutti_tensor_squeeze(tutti_tensor_reduce_scatter_tensor(x, op, 0, group), 0);
}

/* ---- everybody to everybody ------------------------------------------------------------------- */

/* Splits are kept as a tensor [2, P], of the output and the input, or not at all: equal ones. */
static void all_to_all_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    tutti_tensor *saved = tti_saved(node, 0);
    const int64_t *splits = saved != NULL ? tti_at(saved) : NULL;

    out[0] = tti_raw_all_to_all(g, saved != NULL ? splits + saved->shape[1] : NULL, splits,
                                group_of(node));
}

static void save_splits(tti_node *node, const int64_t *out_splits, const int64_t *in_splits, int n)
{
    const int64_t shape[] = { 2, n };
    tutti_tensor *both = tti_raw_empty(TUTTI_I64, 2, shape);
    int64_t *to = both != NULL ? tti_at(both) : NULL;

    for (int r = 0; r < n && to != NULL; r++) {
        to[r] = out_splits[r];
        to[n + r] = in_splits[r];
    }
    if (both != NULL)
        tti_save(node, 0, both);
    tutti_tensor_release(both);
}

tutti_tensor *tutti_tensor_all_to_all_single(tutti_tensor *x, const int64_t *out_splits,
                                             const int64_t *in_splits, tutti_group *group)
{
    static const tti_node_class cls = { .name = "all_to_all_single", .apply = all_to_all_apply };
    tutti_tensor *y = tti_raw_all_to_all(x, out_splits, in_splits, group);
    tti_node *node = record(&y, &cls, x, 0, group);

    if (node != NULL && out_splits != NULL)
        save_splits(node, out_splits, in_splits, tutti_get_world_size(group));
    return tti_temp(y);
}

/* ---- a permutation of ranks ------------------------------------------------------------------- */

/* Every rank of n is there once: it is also read the other way round. False: kept. */
static bool check_permutation(const char *what, const int *to, int n)
{
    for (int i = 0; i < n; i++) {
        bool dup = false;

        for (int j = 0; j < i; j++)
            dup = dup || to[j] == to[i];
        if (dup || to[i] < 0 || to[i] >= n) {
            (void)tti_refuse(TUTTI_E_ARG, what, "destination %d of rank %d is %s", to[i], i,
                             dup ? "another rank's, too" : "no rank of the group");
            return false;
        }
    }
    return true;
}

tutti_tensor *tutti_tensor_permute_tensor(tutti_tensor *x, const int *destinations,
                                          tutti_group *group)
{
    static const char what[] = "permute_tensor";
    tti_team team;
    tutti_tensor *splits, *y;
    int64_t *rows;

    if (x == NULL)
        return tti_poisoned(what);
    if (!tti_team_of(what, group, &team))
        return NULL;
    if (destinations == NULL)
        return tti_poison(TUTTI_E_ARG, what, "destinations is NULL");
    if (!check_permutation(what, destinations, team.size))
        return NULL;
    splits = tti_raw_zeros(TUTTI_I64, 1, (int64_t[]){ 2 * (int64_t)team.size });
    if (splits == NULL)
        return NULL;
    rows = tti_at(splits);
    rows[team.size + destinations[team.rank]] = x->numel;
    for (int r = 0; r < team.size; r++)
        if (destinations[r] == team.rank)
            rows[r] = x->numel;
    y = tutti_tensor_reshape(x, 1, &x->numel);
    y = tutti_tensor_all_to_all_single(y, rows, rows + team.size, group);
    y = tutti_tensor_view(y, x->nd, x->shape);
    tutti_tensor_release(splits);
    return y;
}
