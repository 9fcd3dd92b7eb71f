/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cross_entropy.c - the loss of scores against classes, in one pass over the scores.
 *
 * Why     Probabilities of a batch are as large as its scores: for a language model the largest thing
 *         there is. They are not kept, but computed again from the scores, the largest of each row and
 *         the sum.
 * How     Per row, with p = softmax(x), smoothing e, C classes of weights w with sum W:
 *             loss = -(1-e) w[t] log p[t] - e/C sum of w log p
 *             dx   = ((1-e) w[t] + e/C W) p - (1-e) w[t] [c = t] - e/C w
 *         The mean divides by the sum of w[t] over the targets that count.
 * True    Rows that do not count get zeros, whatever their scores are. */
#include "nn/nn.h"

#include <math.h>
#include <string.h>

#include "tensor/level.h"

/* Everything about one call. Rows are contiguous. */
typedef struct entropy {
    const tti_row_ops *rows;
    const char *x;
    const int64_t *target;
    const void *weight; /* NULL: all 1 */
    int64_t n, c;       /* rows, classes */
    int64_t ignored;
    tutti_reduction reduction;
    double smoothing;
    double all_weights; /* W */
    bool wide;          /* f64 */
    double *stats;      /* per row: the largest score, the sum of e^(x - it) */
} entropy;

static double number_at(const entropy *e, const void *at, int64_t i)
{
    return e->wide ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

static void put(const entropy *e, void *at, int64_t i, double v)
{
    if (e->wide)
        ((double *)at)[i] = v;
    else
        ((float *)at)[i] = (float)v;
}

static double weight_of(const entropy *e, int64_t c)
{
    return e->weight != NULL ? number_at(e, e->weight, c) : 1.0;
}

static size_t row_bytes(const entropy *e)
{
    return (size_t)e->c * (e->wide ? sizeof(double) : sizeof(float));
}

/* The loss of row i, of target t. */
static double forward_row(const entropy *e, int64_t i, int64_t t)
{
    const char *x = e->x + (size_t)i * row_bytes(e);
    const double max = e->rows->max(e->c, x), shift = isinf(max) && max < 0 ? 0.0 : max;
    const double sum = e->rows->exp_sum(e->c, x, shift, NULL), log_sum = log(sum);
    double loss = -weight_of(e, t) * (number_at(e, x, t) - shift - log_sum);

    e->stats[2 * i] = shift;
    e->stats[2 * i + 1] = sum;
    if (e->smoothing > 0.0) {
        const double dealt =
            e->weight != NULL ? e->rows->dot(e->c, e->weight, x) : e->rows->sum(e->c, x);
        const double all = e->all_weights * (shift + log_sum) - dealt;

        loss = (1.0 - e->smoothing) * loss + e->smoothing / (double)e->c * all;
    }
    return loss;
}

/* The losses into y, or their sum or mean; the sum of the weights that count. */
static double forward(const entropy *e, void *y)
{
    double sum = 0.0, total = 0.0;

    for (int64_t i = 0; i < e->n; i++) {
        const bool counts = e->target[i] != e->ignored;
        const double loss = counts ? forward_row(e, i, e->target[i]) : 0.0;

        if (e->reduction == TUTTI_REDUCTION_NONE)
            put(e, y, i, loss);
        sum += loss;
        total += counts ? weight_of(e, e->target[i]) : 0.0;
    }
    if (e->reduction != TUTTI_REDUCTION_NONE)
        put(e, y, 0, e->reduction == TUTTI_REDUCTION_MEAN ? sum / total : sum);
    return total;
}

/* g: what the row's loss is multiplied by. */
static void backward_row(const entropy *e, int64_t i, double g, char *dx)
{
    const int64_t t = e->target[i];
    const double own = (1.0 - e->smoothing) * weight_of(e, t) * g;
    const double dealt = e->smoothing / (double)e->c * g;

    e->rows->exp_scaled(e->c, e->x + (size_t)i * row_bytes(e), e->stats[2 * i],
                        (own + dealt * e->all_weights) / e->stats[2 * i + 1], dx);
    for (int64_t c = 0; c < e->c && dealt != 0.0; c++)
        put(e, dx, c, number_at(e, dx, c) - dealt * weight_of(e, c));
    put(e, dx, t, number_at(e, dx, t) - own);
}

static entropy describe(const tutti_tensor *x, const tutti_tensor *target,
                        const tutti_tensor *weight)
{
    entropy e = { .rows = tti_rows(x->dtype), .x = tti_at(x), .target = tti_at(target) };

    e.wide = x->dtype == TUTTI_F64;
    e.c = x->shape[x->nd - 1];
    e.n = target->numel;
    e.weight = weight != NULL ? tti_at(weight) : NULL;
    e.all_weights = weight != NULL ? e.rows->sum(e.c, e.weight) : (double)e.c;
    return e;
}

/* saved: scores, targets, weights, stats. number: ignored, reduction. real: smoothing, total. */
static void entropy_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tutti_tensor *x = tti_saved(node, 0);
    entropy e = describe(x, tti_saved(node, 1), tti_saved(node, 2));
    char *dx;

    e.stats = tti_at(tti_saved(node, 3));
    e.ignored = node->number[0];
    e.smoothing = node->real[0];
    g = tti_temp(tti_raw_contiguous(g));
    out[0] = tti_raw_empty(x->dtype, x->nd, x->shape);
    if (g == NULL || out[0] == NULL)
        return;
    dx = tti_at(out[0]);
    for (int64_t i = 0; i < e.n; i++, dx += row_bytes(&e)) {
        const bool each = node->number[1] == TUTTI_REDUCTION_NONE;
        const double in = number_at(&e, tti_at(g), each ? i : 0);

        if (e.target[i] == e.ignored)
            memset(dx, 0, row_bytes(&e));
        else
            backward_row(&e, i, in / node->real[1], dx);
    }
}

/* Inside of a scope: the loss of scores whose classes stand last; owned. */
static tutti_tensor *recorded(tutti_tensor *x, tutti_tensor *t, const tutti_loss_options *o)
{
    static const tti_node_class entropy_class = { .name = "cross_entropy", .apply = entropy_apply };
    tutti_tensor *from = tti_temp(tti_raw_contiguous(x));
    tutti_tensor *weight = o->weight != NULL ? tti_temp(tti_raw_contiguous(o->weight)) : NULL;
    tutti_tensor *stats, *y;
    double total;
    tti_node *node;
    entropy e;

    t = tti_temp(tti_raw_contiguous(t));
    if (from == NULL || t == NULL || (o->weight != NULL && weight == NULL) ||
        tti_targets_check("cross_entropy", t, x->shape[x->nd - 1], o->ignore_index) != TUTTI_OK)
        return NULL;
    stats = tti_temp(tti_raw_empty(TUTTI_F64, 2, (const int64_t[]){ t->numel, 2 }));
    y = tti_raw_empty(x->dtype, o->reduction == TUTTI_REDUCTION_NONE ? t->nd : 0, t->shape);
    if (stats == NULL || y == NULL) {
        tutti_tensor_release(y);
        return NULL;
    }
    e = describe(from, t, weight);
    e.stats = tti_at(stats);
    e.ignored = o->ignore_index;
    e.reduction = o->reduction;
    e.smoothing = o->label_smoothing;
    total = forward(&e, tti_at(y));
    node = tti_record(&y, &entropy_class, 1, &x);
    if (node != NULL) {
        tti_save(node, 0, from);
        tti_save(node, 1, t);
        if (weight != NULL)
            tti_save(node, 2, weight);
        tti_save(node, 3, stats);
        node->number[0] = o->ignore_index;
        node->number[1] = o->reduction;
        node->real[0] = o->label_smoothing;
        node->real[1] = o->reduction == TUTTI_REDUCTION_MEAN ? total : 1.0;
    }
    return y;
}

/* Inside of a scope: [N, C, ..] as [N, .., C]. */
static tutti_tensor *classes_last(tutti_tensor *x)
{
    int order[TUTTI_MAX_DIMS];

    if (x->nd <= 2)
        return x;
    for (int d = 0; d < x->nd; d++)
        order[d] = d == 0 ? 0 : d == x->nd - 1 ? 1 : d + 1;
    return tutti_tensor_permute(x, order);
}

tutti_tensor *tutti_tensor_cross_entropy(tutti_tensor *logits, tutti_tensor *target,
                                         const tutti_loss_options *opts)
{
    tutti_loss_options o;
    tutti_tensor *y;

    if (logits == NULL || target == NULL)
        return tti_poisoned("cross_entropy");
    if (logits->nd < 1)
        return tti_poison(TUTTI_E_ARG, "cross_entropy", "logits %s have no classes",
                          tti_shape_str(logits->nd, logits->shape).s);
    if (!tti_loss_options_get("cross_entropy", opts, &o))
        return NULL;
    if (tti_has_half(logits)) {
        o.has_ignore_index = true; /* it has been filled in */
        tutti_scope_begin();
        o.weight = tti_widened(o.weight);
        return tti_rounded(tutti_tensor_cross_entropy(tti_widened(logits), target, &o),
                           logits->dtype);
    }
    if (tti_loss_check("cross_entropy", logits, target, o.weight) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    logits = classes_last(logits);
    y = logits == NULL ? NULL : recorded(logits, target, &o);
    tutti_scope_end();
    return tti_temp(y);
}
