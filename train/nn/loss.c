/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss.c - log_softmax and the negative log-likelihood of targets.
 *
 * How     Both look at a contiguous tensor as [A, R, B] around the dimension of the classes.
 *         log_softmax: y = x - max - log(sum of e^(x - max)); dx = g - e^y * sum of g. Sums over the
 *         classes are taken in f64.
 *         nll: -w[t] logp[t] over the targets that count; the mean divides by the sum of their w. */
#include "nn/nn.h"

#include <math.h>
#include <string.h>

enum { IGNORED = -100 };

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

/* ---- log_softmax ------------------------------------------------------------------------------ */

#define SOFTMAX(word, T, EXP)                                                       \
    static void word##_column(const T *x, T *y, int64_t n, int64_t step)            \
    {                                                                               \
        T max = x[0];                                                               \
        double sum = 0.0;                                                           \
        T shift;                                                                    \
                                                                                    \
        for (int64_t i = 1; i < n; i++)                                             \
            max = x[i * step] > max ? x[i * step] : max;                            \
        max = isinf(max) && max < 0 ? 0 : max;                                      \
        for (int64_t i = 0; i < n; i++)                                             \
            sum += (double)EXP(x[i * step] - max);                                  \
        shift = (T)log(sum);                                                        \
        for (int64_t i = 0; i < n; i++)                                             \
            y[i * step] = x[i * step] - max - shift;                                \
    }                                                                               \
                                                                                    \
    static void word##_softmax(block3 s, const T *x, T *y)                          \
    {                                                                               \
        for (int64_t i = 0; i < s.a * s.b && s.r > 0; i++) {                        \
            const int64_t at = i / s.b * s.r * s.b + i % s.b;                       \
                                                                                    \
            word##_column(x + at, y + at, s.r, s.b);                                \
        }                                                                           \
    }                                                                               \
                                                                                    \
    static void word##_softmax_back(block3 s, const T *g, const T *y, T *dx)        \
    {                                                                               \
        for (int64_t i = 0; i < s.a * s.b && s.r > 0; i++) {                        \
            const int64_t at = i / s.b * s.r * s.b + i % s.b;                       \
            double sum = 0.0;                                                       \
                                                                                    \
            for (int64_t k = 0; k < s.r; k++)                                       \
                sum += (double)g[at + k * s.b];                                     \
            for (int64_t k = 0; k < s.r; k++)                                       \
                dx[at + k * s.b] = g[at + k * s.b] - EXP(y[at + k * s.b]) * (T)sum; \
        }                                                                           \
    }

SOFTMAX(f32, float, expf)
SOFTMAX(f64, double, exp)

static void log_softmax_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tutti_tensor *y = tti_saved(node, 0);
    const block3 s = block_around(y, (int)node->number[0]);

    g = tti_temp(tti_raw_contiguous(g));
    out[0] = tti_raw_empty(y->dtype, y->nd, y->shape);
    if (g == NULL || out[0] == NULL)
        return;
    if (y->dtype == TUTTI_F32)
        f32_softmax_back(s, tti_at(g), tti_at(y), tti_at(out[0]));
    else
        f64_softmax_back(s, tti_at(g), tti_at(y), tti_at(out[0]));
}

/* The arithmetic; owned. dim is within x. */
static tutti_tensor *log_softmax_of(const tutti_tensor *x, int dim)
{
    tutti_tensor *from = tti_raw_contiguous(x);
    tutti_tensor *y = from != NULL ? tti_raw_empty(x->dtype, x->nd, x->shape) : NULL;

    if (y != NULL && x->dtype == TUTTI_F32)
        f32_softmax(block_around(x, dim), tti_at(from), tti_at(y));
    else if (y != NULL)
        f64_softmax(block_around(x, dim), tti_at(from), tti_at(y));
    tutti_tensor_release(from);
    return y;
}

tutti_tensor *tutti_tensor_log_softmax(tutti_tensor *x, int dim)
{
    static const tti_node_class softmax_class = { .name = "log_softmax",
                                                  .apply = log_softmax_apply };
    tutti_tensor *y;
    tti_node *node;

    if (x == NULL)
        return tti_poisoned("log_softmax");
    if (!tti_is_real(x->dtype))
        return tti_poison(TUTTI_E_UNSUPPORTED, "log_softmax",
                          "elements of %s, f32 and f64 are offered", tutti_dtype_name(x->dtype));
    dim = tti_dim_check_or_scalar("log_softmax", dim, x->nd);
    if (dim < 0)
        return NULL;
    y = log_softmax_of(x, dim);
    node = tti_record(&y, &softmax_class, 1, &x);
    if (node != NULL) {
        tti_save_result(node, 0, y);
        node->number[0] = dim;
    }
    return tti_temp(y);
}

/* ---- nll_loss --------------------------------------------------------------------------------- */

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

static int class_dim(const tutti_tensor *x)
{
    return x->nd == 1 ? 0 : 1;
}

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
    p.s = block_around(out[0], class_dim(out[0]));
    if (in->dtype == TUTTI_F32)
        f32_nll_back(&p, tti_at(g), node->real[0], tti_at(out[0]));
    else
        f64_nll_back(&p, tti_at(g), node->real[0], tti_at(out[0]));
}

static tutti_status check_shapes(const tutti_tensor *x, const tutti_tensor *t,
                                 const tutti_tensor *w)
{
    const int c = class_dim(x);
    bool fits = x->nd >= 1 && t->nd == x->nd - 1;

    if (!tti_is_real(x->dtype) || t->dtype != TUTTI_I64 || (w != NULL && w->dtype != x->dtype))
        return tti_refuse(
            TUTTI_E_UNSUPPORTED, "nll_loss",
            "log-probabilities of %s, targets of %s: f32 or f64, and i64, are offered",
            tutti_dtype_name(x->dtype), tutti_dtype_name(t->dtype));
    for (int d = 0; d < t->nd && fits; d++)
        fits = t->shape[d] == x->shape[d < c ? d : d + 1];
    if (!fits)
        return tti_refuse(TUTTI_E_ARG, "nll_loss", "targets %s do not fit to log-probabilities %s",
                          tti_shape_str(t->nd, t->shape).s, tti_shape_str(x->nd, x->shape).s);
    if (w != NULL && (w->nd != 1 || w->shape[0] != x->shape[c]))
        return tti_refuse(TUTTI_E_ARG, "nll_loss", "weights %s do not fit to log-probabilities %s",
                          tti_shape_str(w->nd, w->shape).s, tti_shape_str(x->nd, x->shape).s);
    return TUTTI_OK;
}

static tutti_status check_targets(const tutti_tensor *t, int64_t classes, int64_t ignored)
{
    const int64_t *target = tti_at(t);

    for (int64_t i = 0; i < t->numel; i++)
        if (target[i] != ignored && (target[i] < 0 || target[i] >= classes))
            return tti_refuse(TUTTI_E_ARG, "nll_loss",
                              "target %lld at %lld is none of %lld classes", (long long)target[i],
                              (long long)i, (long long)classes);
    return TUTTI_OK;
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

static bool options_get(const tutti_loss_options *opts, tutti_loss_options *full_out)
{
    tutti_loss_options o = TUTTI_LOSS_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o || o.reduction < TUTTI_REDUCTION_MEAN ||
        o.reduction > TUTTI_REDUCTION_NONE) {
        (void)tti_refuse(
            TUTTI_E_ARG, "nll_loss",
            "options of %zu bytes, reduction %d\n  next: begin with TUTTI_LOSS_OPTIONS", o.size,
            (int)o.reduction);
        return false;
    }
    if (!o.has_ignore_index)
        o.ignore_index = IGNORED;
    *full_out = o;
    return true;
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
    p.s = block_around(from, class_dim(from));
    if (check_targets(t, p.s.r, p.ignored) != TUTTI_OK)
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
    if (!options_get(opts, &o) || check_shapes(log_probs, target, o.weight) != TUTTI_OK)
        return NULL;
    if (tutti_tensor_requires_grad(o.weight))
        return tti_poison(TUTTI_E_ARG, "nll_loss", "class weights that require gradients");
    tutti_scope_begin();
    y = nll_recorded(log_probs, target, &o);
    tutti_scope_end();
    return tti_temp(y);
}

tutti_tensor *tutti_tensor_cross_entropy(tutti_tensor *logits, tutti_tensor *target,
                                         const tutti_loss_options *opts)
{
    tutti_tensor *y;

    if (logits == NULL || target == NULL)
        return tti_poisoned("cross_entropy");
    if (logits->nd < 1)
        return tti_poison(TUTTI_E_ARG, "cross_entropy", "logits %s have no classes",
                          tti_shape_str(logits->nd, logits->shape).s);
    tutti_scope_begin();
    y = tutti_tensor_log_softmax(logits, class_dim(logits));
    y = tutti_tensor_retain(tutti_tensor_nll_loss(y, target, opts));
    tutti_scope_end();
    return tti_temp(y);
}
