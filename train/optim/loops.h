/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loops.h - the arithmetic of all steps for one type. Included once for each type and set of
 * instructions, with T, SQRT, ABS and FN(name) defined.
 *
 * How     One pass: every element of every array is read and written once. Options that choose between
 *         formulas are constants of an inlined body, so that no loop has a branch in it.
 * True    Each operation rounds to T, in the order in which PyTorch's operations on whole tensors do;
 *         numbers that come from the options were computed in f64. The bits do not depend on the width
 *         of vectors: nothing is contracted, and elements do not meet.
 *         Arrays are one and the same or do not overlap, which is what ivdep says. */

#define EACH      _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)
#define ARGUMENTS int64_t n, void *vp, const void *vg, void *const *state, const double *c
#define INLINED   static inline __attribute__((always_inline))

/* a + w (b - a), from the nearer end. */
INLINED T FN(lerp)(T a, T b, T w, T rest)
{
    return w < (T)0.5 ? a + w * (b - a) : b - (b - a) * rest;
}

/* c: lr */
static void FN(sgd)(ARGUMENTS)
{
    const T lr = (T)-c[0];
    const T *g = vg;
    T *p = vp;

    (void)state;
    EACH p[i] = p[i] + lr * g[i];
}

/* c: lr, momentum, 1 - dampening */
INLINED void FN(momentum)(ARGUMENTS, const bool first, const bool nesterov)
{
    const T lr = (T)-c[0], keep = (T)c[1], take = (T)c[2];
    const T *g = vg;
    T *p = vp, *buf = state[0];

    EACH
    {
        const T b = first ? g[i] : buf[i] * keep + take * g[i];

        buf[i] = b;
        p[i] = p[i] + lr * (nesterov ? g[i] + keep * b : b);
    }
}

static void FN(sgd_first)(ARGUMENTS)
{
    FN(momentum)(n, vp, vg, state, c, true, false);
}

static void FN(sgd_momentum)(ARGUMENTS)
{
    FN(momentum)(n, vp, vg, state, c, false, false);
}

static void FN(sgd_first_nesterov)(ARGUMENTS)
{
    FN(momentum)(n, vp, vg, state, c, true, true);
}

static void FN(sgd_nesterov)(ARGUMENTS)
{
    FN(momentum)(n, vp, vg, state, c, false, true);
}

/* c: what p keeps, 1 - beta1, beta1, beta2, 1 - beta2, root of 1 - beta2^t, eps, lr / (1 - beta1^t) */
INLINED void FN(adam_body)(ARGUMENTS, const bool amsgrad)
{
    const T keep = (T)c[0], w1 = (T)c[1], b1 = (T)c[2], b2 = (T)c[3], w2 = (T)c[4];
    const T root = (T)c[5], eps = (T)c[6], size = (T)-c[7];
    const T *g = vg;
    T *p = vp, *m = state[0], *v = state[1], *top = state[2];

    EACH
    {
        const T mi = FN(lerp)(m[i], g[i], w1, b1);
        const T vi = v[i] * b2 + w2 * g[i] * g[i];
        T high = vi;

        m[i] = mi;
        v[i] = vi;
        if (amsgrad) {
            high = top[i] > vi || top[i] != top[i] ? top[i] : vi; /* NaN stays */
            top[i] = high;
        }
        p[i] = p[i] * keep + size * mi / (SQRT(high) / root + eps);
    }
}

static void FN(adam)(ARGUMENTS)
{
    FN(adam_body)(n, vp, vg, state, c, false);
}

static void FN(amsgrad)(ARGUMENTS)
{
    FN(adam_body)(n, vp, vg, state, c, true);
}

/* c: 1 - beta1, beta1, beta2, eps, lr / (1 - beta1^t) */
static void FN(adamax)(ARGUMENTS)
{
    const T w1 = (T)c[0], b1 = (T)c[1], b2 = (T)c[2], eps = (T)c[3], size = (T)-c[4];
    const T *g = vg;
    T *p = vp, *m = state[0], *top = state[1];

    EACH
    {
        const T mi = FN(lerp)(m[i], g[i], w1, b1);
        const T old = top[i] * b2, now = ABS(g[i]) + eps;
        const T high = old > now || old != old ? old : now; /* NaN stays */

        m[i] = mi;
        top[i] = high;
        p[i] = p[i] + size * mi / high;
    }
}

/* c: lr of this step, eps */
static void FN(adagrad)(ARGUMENTS)
{
    const T lr = (T)-c[0], eps = (T)c[1];
    const T *g = vg;
    T *p = vp, *sum = state[0];

    EACH
    {
        const T s = sum[i] + g[i] * g[i];

        sum[i] = s;
        p[i] = p[i] + lr * g[i] / (SQRT(s) + eps);
    }
}

/* c: lr, alpha, 1 - alpha, eps, momentum */
INLINED void FN(rmsprop_body)(ARGUMENTS, const bool centered, const bool momentum)
{
    const T lr = (T)-c[0], alpha = (T)c[1], rest = (T)c[2], eps = (T)c[3], keep = (T)c[4];
    const T *g = vg;
    T *p = vp, *sq = state[0], *buf = state[1], *mean = state[2];

    EACH
    {
        const T s = sq[i] * alpha + rest * g[i] * g[i];
        T scale = s;

        sq[i] = s;
        if (centered) {
            const T mu = FN(lerp)(mean[i], g[i], rest, alpha);

            mean[i] = mu;
            scale = s - mu * mu;
        }
        scale = SQRT(scale) + eps;
        if (momentum) {
            const T b = buf[i] * keep + g[i] / scale;

            buf[i] = b;
            p[i] = p[i] + lr * b;
        } else {
            p[i] = p[i] + lr * g[i] / scale;
        }
    }
}

static void FN(rmsprop)(ARGUMENTS)
{
    FN(rmsprop_body)(n, vp, vg, state, c, false, false);
}

static void FN(rmsprop_centered)(ARGUMENTS)
{
    FN(rmsprop_body)(n, vp, vg, state, c, true, false);
}

static void FN(rmsprop_momentum)(ARGUMENTS)
{
    FN(rmsprop_body)(n, vp, vg, state, c, false, true);
}

static void FN(rmsprop_centered_momentum)(ARGUMENTS)
{
    FN(rmsprop_body)(n, vp, vg, state, c, true, true);
}

/* c: lr, rho, 1 - rho, eps */
static void FN(adadelta)(ARGUMENTS)
{
    const T lr = (T)-c[0], rho = (T)c[1], rest = (T)c[2], eps = (T)c[3];
    const T *g = vg;
    T *p = vp, *sq = state[0], *acc = state[1];

    EACH
    {
        const T s = sq[i] * rho + rest * g[i] * g[i];
        const T delta = SQRT(acc[i] + eps) / SQRT(s + eps) * g[i];

        sq[i] = s;
        acc[i] = acc[i] * rho + rest * delta * delta;
        p[i] = p[i] + lr * delta;
    }
}

/* c: factor after a change of sign, factor without, smallest and largest step */
static void FN(rprop)(ARGUMENTS)
{
    const T down = (T)c[0], up = (T)c[1], low = (T)c[2], high = (T)c[3];
    const T *g = vg;
    T *p = vp, *prev = state[0], *size = state[1];

    EACH
    {
        const T turn = g[i] * prev[i];
        const T want = size[i] * (turn > 0 ? up : turn < 0 ? down : 1);
        const T s = want < low ? low : want > high ? high : want;
        const T used = turn < 0 ? 0 : g[i];

        size[i] = s;
        prev[i] = used;
        p[i] = p[i] - (used > 0 ? s : used < 0 ? -s : 0);
    }
}

/* c: sign */
static void FN(sign)(ARGUMENTS)
{
    const T sign = (T)c[0];
    const T *g = vg;
    T *out = vp;

    (void)state;
    EACH out[i] = sign * g[i];
}

/* c: sign, decay; the parameter is state[0] */
static void FN(gradient)(ARGUMENTS)
{
    const T sign = (T)c[0], decay = (T)c[1];
    const T *g = vg, *p = state[0];
    T *out = vp;

    EACH out[i] = sign * g[i] + decay * p[i];
}

#undef EACH
#undef ARGUMENTS
#undef INLINED
