/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clip.c - norms of gradients, and gradients made smaller.
 *
 * How     Powers are added up in f64, in eight sums side by side for the vectoriser: no overflow where an f32 sum
 *         would have one, and no second pass. The norms of tensors are combined like elements.
 * True    Everything that can fail comes before the first change. */
#include "optim/optim.h"

#include <math.h>
#include <tutti/private.h>

enum { LANES = 8 };

typedef struct sum {
    double p;           /* of the norm */
    double lane[LANES]; /* of powers; p infinite: lane[0] is the largest size */
} sum;

#define SUM_OF(name, T, term)                       \
    static void name(sum *s, int64_t n, const T *x) \
    {                                               \
        double lane[LANES] = { 0.0 };               \
        int64_t i = 0;                              \
                                                    \
        for (; i + LANES <= n; i += LANES)          \
            for (int k = 0; k < LANES; k++) {       \
                const double v = (double)x[i + k];  \
                                                    \
                lane[k] += term;                    \
            }                                       \
        for (; i < n; i++) {                        \
            const double v = (double)x[i];          \
                                                    \
            lane[0] += term;                        \
        }                                           \
        for (int k = 0; k < LANES; k++)             \
            s->lane[k] += lane[k];                  \
    }

SUM_OF(squares_f32, float, v *v)
SUM_OF(squares_f64, double, v *v)
SUM_OF(sizes_f32, float, fabs(v))
SUM_OF(sizes_f64, double, fabs(v))
SUM_OF(powers_f32, float, pow(fabs(v), s->p))
SUM_OF(powers_f64, double, pow(fabs(v), s->p))

static double larger(double a, double b)
{
    return b > a || isnan(b) ? b : a; /* a NaN stays */
}

static void largest(sum *s, int64_t n, const void *x, tutti_dtype dtype)
{
    double top = s->lane[0];

    for (int64_t i = 0; i < n; i++)
        top = larger(
            top, fabs(dtype == TUTTI_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i]));
    s->lane[0] = top;
}

static void add_block(void *ctx, int64_t n, void *x, tutti_dtype dtype)
{
    const bool f32 = dtype == TUTTI_F32;
    sum *s = ctx;

    if (isinf(s->p))
        largest(s, n, x, dtype);
    else if (s->p == 2.0)
        f32 ? squares_f32(s, n, x) : squares_f64(s, n, x);
    else if (s->p == 1.0)
        f32 ? sizes_f32(s, n, x) : sizes_f64(s, n, x);
    else
        f32 ? powers_f32(s, n, x) : powers_f64(s, n, x);
}

static double norm_of(tutti_tensor *t, double p)
{
    sum s = { .p = p };
    double all = 0.0;

    tti_blocks_visit(t, false, add_block, &s);
    if (isinf(p))
        return s.lane[0];
    for (int k = 0; k < LANES; k++)
        all += s.lane[k];
    return p == 2.0 ? sqrt(all) : p == 1.0 ? all : pow(all, 1.0 / p);
}

/* Both are norms of order p. */
static double combine(double a, double b, double p)
{
    if (isinf(p))
        return larger(a, b);
    return p == 2.0 ? hypot(a, b) : p == 1.0 ? a + b : pow(pow(a, p) + pow(b, p), 1.0 / p);
}

/* ---- lists ------------------------------------------------------------------------------------ */

/* What stands at place i: a tensor, or where grads is set the gradient of a parameter. */
static tutti_tensor *entry(tutti_tensor *const *list, int i, bool grads)
{
    return grads && list[i] != NULL ? tutti_tensor_grad(list[i]) : list[i];
}

static tutti_status check_entry(const char *op, tutti_tensor *t, int i)
{
    const tutti_status before = tti_kept();

    if (!tti_is_floating(t->dtype))
        return tti_fail(TUTTI_E_ARG, "%s: tensor %d is %s, f16, bf16, f32 and f64 have norms", op, i,
                        tutti_dtype_name(t->dtype));
    return tti_unkeep(before, tti_ready(t));
}

static tutti_status check_list(const char *op, tutti_tensor *const *list, int n, bool grads)
{
    tutti_status st = TUTTI_OK;

    if (n < 0 || (list == NULL && n > 0))
        return tti_fail(TUTTI_E_ARG, "%s: no list of %d tensors", op, n);
    for (int i = 0; i < n && st == TUTTI_OK; i++) {
        tutti_tensor *t = entry(list, i, grads);

        if (grads && list[i] == NULL)
            st = tti_fail(TUTTI_E_ARG, "%s: parameter %d is NULL", op, i);
        else if (t != NULL)
            st = check_entry(op, t, i);
    }
    return st;
}

static tutti_status total(const char *op, tutti_tensor *const *list, int n, bool grads, double p,
                          bool error_if_nonfinite, double *norm_out)
{
    double norm = 0.0;
    tutti_status st;

    if (!(p > 0.0))
        return tti_fail(TUTTI_E_ARG, "%s: a norm of order %g", op, p);
    st = check_list(op, list, n, grads);
    if (st != TUTTI_OK)
        return st;
    for (int i = 0; i < n; i++)
        if (entry(list, i, grads) != NULL)
            norm = combine(norm, norm_of(entry(list, i, grads), p), p);
    if (error_if_nonfinite && !isfinite(norm))
        return tti_fail(TUTTI_E_STATE, "%s: the norm of order %g of %d tensors is %g", op, p, n,
                        norm);
    *norm_out = norm;
    return TUTTI_OK;
}

tutti_status tutti_get_total_norm(tutti_tensor *const *tensors, int n, double norm_type,
                                  bool error_if_nonfinite, double *norm_out)
{
    return total("get_total_norm", tensors, n, false, norm_type, error_if_nonfinite, norm_out);
}

/* ---- smaller gradients ------------------------------------------------------------------------ */

static tutti_status scale(const char *op, tutti_tensor *const *params, int n, double max_norm,
                          double norm)
{
    const double factor = max_norm / (norm + 1e-6);
    tutti_status st = check_list(op, params, n, true);

    for (int i = 0; i < n && st == TUTTI_OK; i++)
        if (tutti_tensor_grad(params[i]) != NULL && !(factor >= 1.0))
            st = tti_raw_op1_(TTI_MUL_C, tutti_tensor_grad(params[i]), factor);
    return st;
}

static tutti_status check_bound(const char *op, double bound)
{
    return bound >= 0.0 ? TUTTI_OK : tti_fail(TUTTI_E_ARG, "%s: a bound of %g", op, bound);
}

tutti_status tutti_clip_grads_with_norm_(tutti_tensor *const *params, int n, double max_norm,
                                         double total_norm)
{
    const tutti_status st = check_bound("clip_grads_with_norm_", max_norm);

    return st == TUTTI_OK ? scale("clip_grads_with_norm_", params, n, max_norm, total_norm) : st;
}

tutti_status tutti_clip_grad_norm_(tutti_tensor *const *params, int n, double max_norm,
                                   double norm_type, bool error_if_nonfinite, double *norm_out)
{
    tutti_status st = check_bound("clip_grad_norm_", max_norm);
    double norm = NAN;

    if (st == TUTTI_OK)
        st = total("clip_grad_norm_", params, n, true, norm_type, error_if_nonfinite, &norm);
    if (st == TUTTI_OK)
        st = scale("clip_grad_norm_", params, n, max_norm, norm);
    if (st == TUTTI_OK && norm_out != NULL)
        *norm_out = norm;
    return st;
}

static void clamp_block(void *ctx, int64_t n, void *elements, tutti_dtype dtype)
{
    const double bound = *(const double *)ctx;

    if (dtype == TUTTI_F32) {
        const float high = (float)bound;
        float *x = elements;

        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] > high ? high : x[i] < -high ? -high : x[i];
    } else {
        double *x = elements;

        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] > bound ? bound : x[i] < -bound ? -bound : x[i];
    }
}

tutti_status tutti_clip_grad_value_(tutti_tensor *const *params, int n, double clip_value)
{
    tutti_status st = check_bound("clip_grad_value_", clip_value);

    if (st == TUTTI_OK)
        st = check_list("clip_grad_value_", params, n, true);
    for (int i = 0; i < n && st == TUTTI_OK; i++)
        if (tutti_tensor_grad(params[i]) != NULL)
            tti_blocks_visit(tutti_tensor_grad(params[i]), true, clamp_block, &clip_value);
    return st;
}
