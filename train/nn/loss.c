/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss.c - the negative log-likelihood of targets.
 *
 * How     The log-probabilities, contiguous, are seen as [A, R, B] around the dimension of the classes.
 *         -w[t] logp[t] over the targets that count; the mean divides by the sum of their w. */
#include "nn/nn.h"

#include <math.h>
#include <string.h>

typedef struct block3 {
    int64_t a, r, b;
} block3;

static block3 block_around(const tutti_tensor *x, int dim)
{
    block3 s = { 1, 1, 1 };

    for (int d = 0; d < x->nd; d++)
        *(d < dim ? &s.a : d == dim ? &s.r : &s.b) *= x->shape[d];
    return s;
}

/* Everything about one call; target and weight are contiguous. */
typedef struct nll {
    block3 s; /* [N, C, D] */
    const int64_t *target;
    const void *weight; /* C of the type of the log-probabilities; NULL: all 1 */
    int64_t ignored;
    tutti_reduction reduction;
} nll;

/* The term of each target that counts, and the sums; the way back. scale: what a term's gradient is
 * multiplied by (NONE: by its own entry of g instead). */
#define NLL(word, T)                                                                              \
    static T word##_weight(const nll *p, int64_t t)                                               \
    {                                                                                             \
        return p->weight != NULL ? ((const T *)p->weight)[t] : 1;                                 \
    }                                                                                             \
                                                                                                  \
    static void word##_nll(const nll *p, const T *logp, T *terms, double *sum_out, double *w_out) \
    {                                                                                             \
        double sum = 0.0, total = 0.0;                                                            \
                                                                                                  \
        for (int64_t i = 0; i < p->s.a * p->s.b; i++) {                                           \
            const int64_t t = p->target[i];                                                       \
            const int64_t at = i / p->s.b * p->s.r * p->s.b + t * p->s.b + i % p->s.b;            \
            const bool counts = t != p->ignored;                                                  \
            const T w = counts ? word##_weight(p, t) : 0;                                         \
            const T term = counts ? -w * logp[at] : 0;                                            \
                                                                                                  \
            if (terms != NULL)                                                                    \
                terms[i] = term;                                                                  \
            sum += (double)term;                                                                  \
            total += (double)w;                                                                   \
        }                                                                                         \
        *sum_out = sum;                                                                           \
        *w_out = total;                                                                           \
    }                                                                                             \
                                                                                                  \
    static void word##_nll_back(const nll *p, const T *g, double total, T *dx)                    \
    {                                                                                             \
        for (int64_t i = 0; i < p->s.a * p->s.b; i++) {                                           \
            const int64_t t = p->target[i];                                                       \
            const int64_t at = i / p->s.b * p->s.r * p->s.b + t * p->s.b + i % p->s.b;            \
            const T in = p->reduction == TUTTI_REDUCTION_NONE ? g[i] : g[0];                      \
                                                                                                  \
            if (t == p->ignored)                                                                  \
                continue;                                                                         \
            dx[at] = -word##_weight(p, t) * in;                                                   \
            if (p->reduction == TUTTI_REDUCTION_MEAN)                                             \
                dx[at] /= (T)total;                                                               \
        }                                                                                         \
    }

NLL(f32, float)
NLL(f64, double)

static void nll_loss_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tti_edge *in = &node->edge[0];
    const tutti_tensor *weight = tti_saved(node, 1);
    nll p = { .target = tti_at(tti_saved(node, 0)),
              .weight = tutti_tensor_data(weight),
              .ignored = node->number[0],
              .reduction = (tutti_reduction)node->number[1] };

    g = tti_temp(tti_raw_contiguous(g));
    out[0] = tti_raw_zeros(in->dtype, in->nd, in->shape);
    if (g == NULL || out[0] == NULL)
        return;
    p.s = block_around(out[0], tti_class_dim(out[0]));
    if (in->dtype == TUTTI_F32)
        f32_nll_back(&p, tti_at(g), node->real[0], tti_at(out[0]));
    else
        f64_nll_back(&p, tti_at(g), node->real[0], tti_at(out[0]));
}

/* The loss itself; owned. total_out: the sum of the weights that counted. */
static tutti_tensor *nll_of(const nll *p, const tutti_tensor *x, const tutti_tensor *t,
                            double *total_out)
{
    const bool each = p->reduction == TUTTI_REDUCTION_NONE;
    tutti_tensor *y = tti_raw_empty(x->dtype, each ? t->nd : 0, t->shape);
    double sum = 0.0;

    if (y == NULL)
        return NULL;
    if (x->dtype == TUTTI_F32)
        f32_nll(p, tti_at(x), each ? tti_at(y) : NULL, &sum, total_out);
    else
        f64_nll(p, tti_at(x), each ? tti_at(y) : NULL, &sum, total_out);
    if (p->reduction == TUTTI_REDUCTION_MEAN)
        sum /= *total_out;
    if (!each)
        (void)tti_raw_fill_(y, sum);
    return y;
}

/* Inside of a scope: the loss of operands that fit, owned by the caller. */
static tutti_tensor *nll_recorded(tutti_tensor *x, tutti_tensor *t, const tutti_loss_options *o)
{
    static const tti_node_class nll_class = { .name = "nll_loss", .apply = nll_loss_apply };
    const tutti_tensor *from = tti_temp(tti_raw_contiguous(x));
    tutti_tensor *weight = o->weight != NULL ? tti_temp(tti_raw_contiguous(o->weight)) : NULL;
    nll p = { .ignored = o->ignore_index, .reduction = o->reduction };
    double total = 0.0;
    tutti_tensor *y;
    tti_node *node;

    t = tti_temp(tti_raw_contiguous(t));
    if (from == NULL || t == NULL || (o->weight != NULL && weight == NULL))
        return NULL;
    p.s = block_around(from, tti_class_dim(from));
    if (tti_targets_check("nll_loss", t, p.s.r, p.ignored) != TUTTI_OK)
        return NULL;
    p.target = tti_at(t);
    p.weight = tutti_tensor_data(weight);
    y = nll_of(&p, from, t, &total);
    node = tti_record(&y, &nll_class, 1, &x);
    if (node != NULL) {
        tti_save(node, 0, t);
        if (weight != NULL)
            tti_save(node, 1, weight);
        node->number[0] = p.ignored;
        node->number[1] = p.reduction;
        node->real[0] = total;
    }
    return y;
}

tutti_tensor *tutti_tensor_nll_loss(tutti_tensor *log_probs, tutti_tensor *target,
                                    const tutti_loss_options *opts)
{
    tutti_loss_options o;
    tutti_tensor *y;

    if (log_probs == NULL || target == NULL)
        return tti_poisoned("nll_loss");
    if (!tti_loss_options_get("nll_loss", opts, &o))
        return NULL;
    if (tti_has_half(log_probs)) {
        o.has_ignore_index = true; /* it has been filled in */
        tutti_scope_begin();
        o.weight = tti_widened(o.weight);
        return tti_rounded(tutti_tensor_nll_loss(tti_widened(log_probs), target, &o), log_probs->dtype);
    }
    if (tti_loss_check("nll_loss", log_probs, target, o.weight) != TUTTI_OK)
        return NULL;
    if (o.label_smoothing != 0.0)
        return tti_poison(TUTTI_E_UNSUPPORTED, "nll_loss",
                          "label smoothing\n  next: tutti_tensor_cross_entropy() has it");
    tutti_scope_begin();
    y = nll_recorded(log_probs, target, &o);
    tutti_scope_end();
    return tti_temp(y);
}
