/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loops.h - the source of a table of loops; included once by each of math_*.c, which name it TTI_MATH.
 *
 * How     Each loop has a branch for rows side by side and for one side repeated, which the compiler
 *         vectorises. f32 takes the functions of math_f32.h, f64 those of libm.
 * True    A row may be its own operand. */
#include "tensor/level.h"
#include "tensor/math_f32.h"

/* Wrapping integer arithmetic, as two's complement. */
#define WRAP(expr) ((int64_t)(expr))
#define U(x)       ((uint64_t)(x))

/* ---- element by element ----------------------------------------------------------------------- */

#define LOOP1(name, T, expr)                                                                      \
    static void name(int64_t n, void *vo, int64_t so, const void *va, int64_t sa, const void *vb, \
                     int64_t sb, const double *pc)                                                \
    {                                                                                             \
        T *o = vo;                                                                                \
        const T *a = va;                                                                          \
        const T c = (T)pc[0], d = (T)pc[1];                                                       \
                                                                                                  \
        (void)vb, (void)sb, (void)c, (void)d;                                                     \
        if (so == 1 && sa == 1)                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i];                                                                 \
                o[i] = expr;                                                                      \
            }                                                                                     \
        else                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i * sa];                                                            \
                o[i * so] = expr;                                                                 \
            }                                                                                     \
    }

#define LOOP2(name, T, R, expr)                                                                   \
    static void name(int64_t n, void *vo, int64_t so, const void *va, int64_t sa, const void *vb, \
                     int64_t sb, const double *pc)                                                \
    {                                                                                             \
        R *o = vo;                                                                                \
        const T *a = va, *b = vb;                                                                 \
        const T c = (T)pc[0], d = (T)pc[1];                                                       \
                                                                                                  \
        (void)c, (void)d;                                                                         \
        if (so == 1 && sa == 1 && sb == 1)                                                        \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i], y = b[i];                                                       \
                o[i] = (R)(expr);                                                                 \
            }                                                                                     \
        else if (so == 1 && sa == 1 && sb == 0) {                                                 \
            const T y = b[0];                                                                     \
                                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i];                                                                 \
                o[i] = (R)(expr);                                                                 \
            }                                                                                     \
        } else                                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i * sa], y = b[i * sb];                                             \
                o[i * so] = (R)(expr);                                                            \
            }                                                                                     \
    }

/* Three operands: x, y of type T and k of type K. */
#define LOOP3(name, T, expr)                                                                      \
    static void name(int64_t n, void *vo, int64_t so, const void *va, int64_t sa, const void *vb, \
                     int64_t sb, const void *ve, int64_t se, const double *pc)                    \
    {                                                                                             \
        T *o = vo;                                                                                \
        const T *a = va, *b = vb, *e = ve;                                                        \
                                                                                                  \
        (void)pc;                                                                                 \
        if (so == 1 && sa == 1 && sb == 1 && se == 1)                                             \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T g = a[i], x = b[i], y = e[i];                                             \
                o[i] = expr;                                                                      \
            }                                                                                     \
        else                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T g = a[i * sa], x = b[i * sb], y = e[i * se];                              \
                o[i * so] = expr;                                                                 \
            }                                                                                     \
    }

#define REALS1(name, expr_f, expr_d) \
    LOOP1(name##_f32, float, expr_f) \
    LOOP1(name##_f64, double, expr_d)
#define REALS2(name, expr_f, expr_d)        \
    LOOP2(name##_f32, float, float, expr_f) \
    LOOP2(name##_f64, double, double, expr_d)
/* One expression for both. */
#define SAME1(name, expr)          \
    LOOP1(name##_f32, float, expr) \
    LOOP1(name##_f64, double, expr)
#define SAME2(name, expr)                 \
    LOOP2(name##_f32, float, float, expr) \
    LOOP2(name##_f64, double, double, expr)
#define REALS3(name, expr)         \
    LOOP3(name##_f32, float, expr) \
    LOOP3(name##_f64, double, expr)
#define COMPARE(name, expr)                  \
    LOOP2(name##_f32, float, uint8_t, expr)  \
    LOOP2(name##_f64, double, uint8_t, expr) \
    LOOP2(name##_i64, int64_t, uint8_t, expr)

static inline double sigmoid_d(double x)
{
    const double e = exp(-fabs(x));

    return x < 0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

/* x times the share of a normal distribution below x, and its slope. */
static inline float gelu_f(float x)
{
    return x * tti_normal_f32(x, tti_exp_f32(-0.5f * x * x));
}

static inline double gelu_d(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static inline float gelu_slope_f(float x)
{
    const float e = tti_exp_f32(-0.5f * x * x);

    return tti_normal_f32(x, e) + x * e * 0.398942280f;
}

static inline double gelu_slope_d(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * 0.398942280401432678;
}

/* The tanh form, 0.5 x (1 + tanh(u)), is x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3). The slope is
 * taken no further out than 16, where it is 0 or 1, lest a power of x overflow. */
#define GELU_2U(x)         (1.59576912160573081 * ((x) + 0.044715 * (x) * (x) * (x)))
#define GELU_2U_SLOPE(x)   (1.59576912160573081 * (1.0 + 0.134145 * (x) * (x)))
#define GELU_2U_F(x)       (1.59576912f * ((x) + 0.044715f * (x) * (x) * (x)))
#define GELU_2U_SLOPE_F(x) (1.59576912f * (1.0f + 0.134145f * (x) * (x)))

static inline float gelu_tanh_slope_f(float x)
{
    const float low = x < -16.0f ? -16.0f : x, in = low > 16.0f ? 16.0f : low;
    const float s = tti_sigmoid_f32(GELU_2U_F(in));

    return s + in * s * (1.0f - s) * GELU_2U_SLOPE_F(in);
}

static inline double gelu_tanh_slope_d(double x)
{
    const double low = x < -16.0 ? -16.0 : x, in = low > 16.0 ? 16.0 : low;
    const double s = sigmoid_d(GELU_2U(in));

    return s + in * s * (1.0 - s) * GELU_2U_SLOPE(in);
}

static inline float silu_slope_f(float x)
{
    const float s = tti_sigmoid_f32(x);
    const float part = x * (1.0f - s); /* inf 0 where x is inf */

    return s * (1.0f + (s == 1.0f ? 0.0f : part));
}

static inline double silu_slope_d(double x)
{
    const double s = sigmoid_d(x);
    const double part = x * (1.0 - s);

    return s * (1.0 + (s == 1.0 ? 0.0 : part));
}

#define CLAMPED (x < c ? c : x) > d ? d : x < c ? c : x
#define LARGER  x > y || x != x ? x : y
#define SMALLER x < y || x != x ? x : y

SAME1(neg, -x)
LOOP1(neg_i64, int64_t, WRAP(0 - U(x)))
REALS1(exp, tti_exp_f32(x), exp(x))
REALS1(log, tti_log_f32(x), log(x))
REALS1(sqrt, sqrtf(x), sqrt(x))
REALS1(rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))
REALS1(tanh, tti_tanh_f32(x), tanh(x))
REALS1(erf, tti_erf_f32(x), erf(x))
REALS1(sigmoid, tti_sigmoid_f32(x), sigmoid_d(x))
SAME1(relu, x <= 0 ? 0 : x)
LOOP1(relu_i64, int64_t, x <= 0 ? 0 : x)
REALS1(gelu, gelu_f(x), gelu_d(x))
REALS1(gelu_tanh, x *tti_sigmoid_f32(GELU_2U_F(x)), x *sigmoid_d(GELU_2U(x)))
REALS1(silu, x *tti_sigmoid_f32(x), x *sigmoid_d(x))
REALS1(abs, fabsf(x), fabs(x))
LOOP1(abs_i64, int64_t, WRAP(x < 0 ? 0 - U(x) : U(x)))
SAME1(clamp, CLAMPED)
REALS1(pow, powf(x, c), pow(x, c))
SAME1(add_c, x + c)
SAME1(mul_c, x *c)
SAME1(div_c, x / c)

SAME2(add, x + c * y)
LOOP2(add_i64, int64_t, int64_t, WRAP(U(x) + U(c) * U(y)))
SAME2(mul, x *y)
LOOP2(mul_i64, int64_t, int64_t, WRAP(U(x) * U(y)))
SAME2(div, x / y)
SAME2(maximum, LARGER)
LOOP2(maximum_i64, int64_t, int64_t, x > y ? x : y)
SAME2(minimum, SMALLER)
LOOP2(minimum_i64, int64_t, int64_t, x < y ? x : y)
SAME2(sqrt_back, x / (2 * y))
REALS2(rsqrt_back, -0.5f * x * y * y * y, -0.5 * x * y * y * y)
SAME2(tanh_back, x *(1 - y * y))
REALS2(erf_back, x * 1.12837917f * tti_exp_f32(-y * y), x *M_2_SQRTPI *exp(-y *y))
SAME2(sigmoid_back, x *y *(1 - y))
SAME2(relu_back, y <= 0 ? 0 : x)
REALS2(gelu_back, x *gelu_slope_f(y), x *gelu_slope_d(y))
REALS2(gelu_tanh_back, x *gelu_tanh_slope_f(y), x *gelu_tanh_slope_d(y))
REALS2(silu_back, x *silu_slope_f(y), x *silu_slope_d(y))
SAME2(abs_back, y > 0 ? x : y < 0 ? -x : 0)
SAME2(clamp_back, y >= c && y <= d ? x : 0)
COMPARE(eq, x == y)
COMPARE(lt, x < y)
COMPARE(le, x <= y)

/* The share of g that goes to x, and to y with the operands exchanged; equals share it. */
REALS3(maximum_back, x < y ? 0 : x == y ? g / 2 : g)
REALS3(minimum_back, x > y ? 0 : x == y ? g / 2 : g)

/* ---- rows ------------------------------------------------------------------------------------- */

enum { LANES = 16, BLOCK = 512 };

/* Vectors of LANES numbers, which the compiler cuts into registers. */
typedef float lanes_float __attribute__((vector_size(LANES * sizeof(float))));
typedef double lanes_double __attribute__((vector_size(LANES * sizeof(double))));

#define LOAD(T, name, from) \
    lanes_##T name;         \
    memcpy(&name, from, sizeof name)

/* The sum of expr over a block of n <= BLOCK numbers, where `at` is the first of LANES: into total. */
#define BLOCK_SUM(T, n, total, LOADS, vector_expr, scalar_expr) \
    do {                                                        \
        lanes_##T part = { 0 };                                 \
        int64_t at = 0;                                         \
                                                                \
        for (; at + LANES <= (n); at += LANES) {                \
            LOADS;                                              \
            part += vector_expr;                                \
        }                                                       \
        for (int k = 0; at < (n); at++, k++)                    \
            part[k] += scalar_expr;                             \
        for (int half = LANES / 2; half > 0; half /= 2)         \
            for (int k = 0; k < half; k++)                      \
                part[k] += part[k + half];                      \
        (total) += (double)part[0];                             \
    } while (0)

#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))

#define ROWS(T, EXP)                                                                               \
    static double T##_row_max(int64_t n, const void *vx)                                           \
    {                                                                                              \
        const T *x = vx;                                                                           \
        T lane[LANES], max = -INFINITY;                                                            \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (int k = 0; k < LANES; k++)                                                            \
            lane[k] = -INFINITY;                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];                                 \
        for (; i < n; i++)                                                                         \
            max = x[i] > max ? x[i] : max;                                                         \
        for (int k = 0; k < LANES; k++)                                                            \
            max = lane[k] > max ? lane[k] : max;                                                   \
        return (double)max;                                                                        \
    }                                                                                              \
                                                                                                   \
    static double T##_row_exp_sum(int64_t n, const void *vx, double dshift, void *vy)              \
    {                                                                                              \
        const T *x = vx, shift = (T)dshift;                                                        \
        T *y = vy, spare[BLOCK];                                                                   \
        double total = 0.0;                                                                        \
                                                                                                   \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                   \
            const int64_t m = MIN_OF(n - i, BLOCK);                                                \
            T *to = y != NULL ? y + i : spare;                                                     \
                                                                                                   \
            for (int64_t k = 0; k < m; k++)                                                        \
                to[k] = EXP(x[i + k] - shift);                                                     \
            BLOCK_SUM(T, m, total, LOAD(T, v, to + at), v, to[at]);                                \
        }                                                                                          \
        return total;                                                                              \
    }                                                                                              \
                                                                                                   \
    static double T##_row_sum(int64_t n, const void *vx)                                           \
    {                                                                                              \
        const T *x = vx;                                                                           \
        double total = 0.0;                                                                        \
                                                                                                   \
        for (int64_t i = 0; i < n; i += BLOCK, x += BLOCK)                                         \
            BLOCK_SUM(T, MIN_OF(n - i, BLOCK), total, LOAD(T, v, x + at), v, x[at]);               \
        return total;                                                                              \
    }                                                                                              \
                                                                                                   \
    static double T##_row_dot(int64_t n, const void *va, const void *vb)                           \
    {                                                                                              \
        const T *a = va, *b = vb;                                                                  \
        double total = 0.0;                                                                        \
                                                                                                   \
        for (int64_t i = 0; i < n; i += BLOCK, a += BLOCK, b += BLOCK)                             \
            BLOCK_SUM(T, MIN_OF(n - i, BLOCK), total, LOAD(T, v, a + at);                          \
                      LOAD(T, w, b + at), v * w, a[at] * b[at]);                                   \
        return total;                                                                              \
    }                                                                                              \
                                                                                                   \
    static double T##_row_spread(int64_t n, const void *vx, double dmean)                          \
    {                                                                                              \
        const T *x = vx, mean = (T)dmean;                                                          \
        double total = 0.0;                                                                        \
                                                                                                   \
        for (int64_t i = 0; i < n; i += BLOCK, x += BLOCK)                                         \
            BLOCK_SUM(T, MIN_OF(n - i, BLOCK), total, LOAD(T, v, x + at);                          \
                      v -= mean, v * v, (x[at] - mean) * (x[at] - mean));                          \
        return total;                                                                              \
    }                                                                                              \
                                                                                                   \
    static void T##_row_scale(int64_t n, void *vx, double by)                                      \
    {                                                                                              \
        T *x = vx;                                                                                 \
        const T c = (T)by;                                                                         \
                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] *= c;                                                                             \
    }                                                                                              \
                                                                                                   \
    static void T##_row_shift(int64_t n, const void *vx, double by, double more, void *vy)         \
    {                                                                                              \
        const T *x = vx, c = (T)by, d = (T)more;                                                   \
        T *y = vy;                                                                                 \
                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = x[i] - c - d;                                                                   \
    }                                                                                              \
                                                                                                   \
    static void T##_row_exp_scaled(int64_t n, const void *vx, double dshift, double by, void *vy)  \
    {                                                                                              \
        const T *x = vx, shift = (T)dshift, c = (T)by;                                             \
        T *y = vy;                                                                                 \
                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = EXP(x[i] - shift) * c;                                                          \
    }                                                                                              \
                                                                                                   \
    static void T##_row_softmax_back(int64_t n, const void *vg, const void *vy, double s,          \
                                     void *vdx)                                                    \
    {                                                                                              \
        const T *g = vg, *y = vy, c = (T)s;                                                        \
        T *dx = vdx;                                                                               \
                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = y[i] * (g[i] - c);                                                             \
    }                                                                                              \
                                                                                                   \
    static void T##_row_log_softmax_back(int64_t n, const void *vg, const void *vy, double s,      \
                                         void *vdx)                                                \
    {                                                                                              \
        const T *g = vg, *y = vy, c = (T)s;                                                        \
        T *dx = vdx;                                                                               \
                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = g[i] - EXP(y[i]) * c;                                                          \
    }                                                                                              \
                                                                                                   \
    static void T##_row_norm(int64_t n, const void *vx, double dmean, double dby, const void *vw,  \
                             const void *vb, void *vy)                                             \
    {                                                                                              \
        const T *x = vx, *w = vw, *b = vb, mean = (T)dmean, by = (T)dby;                           \
        T *y = vy;                                                                                 \
                                                                                                   \
        if (w != NULL && b != NULL)                                                                \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (x[i] - mean) * by * w[i] + b[i];                                           \
        else if (w != NULL)                                                                        \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (x[i] - mean) * by * w[i];                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (x[i] - mean) * by + (b != NULL ? b[i] : 0);                                \
    }                                                                                              \
                                                                                                   \
    static void T##_row_norm_sums(int64_t n, const void *vg, const void *vx, double dmean,         \
                                  double dby, const void *vw, double *gw_out, double *gwh_out)     \
    {                                                                                              \
        const T *g = vg, *x = vx, *w = vw, mean = (T)dmean, by = (T)dby;                           \
        double gw = 0.0, gwh = 0.0;                                                                \
        T a[BLOCK], b[BLOCK];                                                                      \
                                                                                                   \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                   \
            const int64_t m = MIN_OF(n - i, BLOCK);                                                \
                                                                                                   \
            if (w != NULL)                                                                         \
                for (int64_t k = 0; k < m; k++)                                                    \
                    a[k] = g[i + k] * w[i + k];                                                    \
            else                                                                                   \
                memcpy(a, g + i, (size_t)m * sizeof *a);                                           \
            for (int64_t k = 0; k < m; k++)                                                        \
                b[k] = a[k] * ((x[i + k] - mean) * by);                                            \
            BLOCK_SUM(T, m, gw, LOAD(T, v, a + at), v, a[at]);                                     \
            BLOCK_SUM(T, m, gwh, LOAD(T, v, b + at), v, b[at]);                                    \
        }                                                                                          \
        *gw_out = gw;                                                                              \
        *gwh_out = gwh;                                                                            \
    }                                                                                              \
                                                                                                   \
    static void T##_row_norm_back(int64_t n, const void *vg, const void *vx, double dmean,         \
                                  double dby, const void *vw, double dm1, double dm2, void *vdx)   \
    {                                                                                              \
        const T *g = vg, *x = vx, *w = vw, mean = (T)dmean, by = (T)dby, m1 = (T)dm1, m2 = (T)dm2; \
        T *dx = vdx;                                                                               \
                                                                                                   \
        if (w != NULL)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                dx[i] = by * (g[i] * w[i] - m1 - (x[i] - mean) * by * m2);                         \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                dx[i] = by * (g[i] - m1 - (x[i] - mean) * by * m2);                                \
    }                                                                                              \
                                                                                                   \
    static void T##_row_norm_params(int64_t n, const void *vg, const void *vx, double dmean,       \
                                    double dby, double *dw, double *db)                            \
    {                                                                                              \
        const T *g = vg, *x = vx, mean = (T)dmean, by = (T)dby;                                    \
                                                                                                   \
        for (int64_t i = 0; i < n && dw != NULL; i++)                                              \
            dw[i] += (double)(g[i] * ((x[i] - mean) * by));                                        \
        for (int64_t i = 0; i < n && db != NULL; i++)                                              \
            db[i] += (double)g[i];                                                                 \
    }

ROWS(float, tti_exp_f32)
ROWS(double, exp)

#define ROW_OPS(T)                                                                             \
    {                                                                                          \
        T##_row_max, T##_row_exp_sum, T##_row_sum, T##_row_dot, T##_row_spread, T##_row_scale, \
            T##_row_shift, T##_row_exp_scaled, T##_row_softmax_back, T##_row_log_softmax_back, \
            T##_row_norm, T##_row_norm_sums, T##_row_norm_back, T##_row_norm_params            \
    }

/* ---- the table -------------------------------------------------------------------------------- */

#define REAL_ROW(name)               \
    {                                \
        name##_f32, name##_f64, NULL \
    }
#define FULL_ROW(name)                     \
    {                                      \
        name##_f32, name##_f64, name##_i64 \
    }

const tti_math TTI_MATH = {
    .op1 = { [TTI_NEG] = { "neg", FULL_ROW(neg) },
             [TTI_EXP] = { "exp", REAL_ROW(exp) },
             [TTI_LOG] = { "log", REAL_ROW(log) },
             [TTI_SQRT] = { "sqrt", REAL_ROW(sqrt) },
             [TTI_RSQRT] = { "rsqrt", REAL_ROW(rsqrt) },
             [TTI_TANH] = { "tanh", REAL_ROW(tanh) },
             [TTI_ERF] = { "erf", REAL_ROW(erf) },
             [TTI_SIGMOID] = { "sigmoid", REAL_ROW(sigmoid) },
             [TTI_RELU] = { "relu", FULL_ROW(relu) },
             [TTI_GELU] = { "gelu", REAL_ROW(gelu) },
             [TTI_GELU_TANH] = { "gelu_tanh", REAL_ROW(gelu_tanh) },
             [TTI_SILU] = { "silu", REAL_ROW(silu) },
             [TTI_ABS] = { "abs", FULL_ROW(abs) },
             [TTI_CLAMP] = { "clamp", REAL_ROW(clamp) },
             [TTI_POW] = { "pow", REAL_ROW(pow) },
             [TTI_ADD_C] = { "add_scalar", REAL_ROW(add_c) },
             [TTI_MUL_C] = { "mul_scalar", REAL_ROW(mul_c) },
             [TTI_DIV_C] = { "div_scalar", REAL_ROW(div_c) } },
    .op2 = { [TTI_ADD] = { "add", FULL_ROW(add) },
             [TTI_MUL] = { "mul", FULL_ROW(mul) },
             [TTI_DIV] = { "div", REAL_ROW(div) },
             [TTI_MAXIMUM] = { "maximum", FULL_ROW(maximum) },
             [TTI_MINIMUM] = { "minimum", FULL_ROW(minimum) },
             [TTI_SQRT_BACK] = { "sqrt", REAL_ROW(sqrt_back) },
             [TTI_RSQRT_BACK] = { "rsqrt", REAL_ROW(rsqrt_back) },
             [TTI_TANH_BACK] = { "tanh", REAL_ROW(tanh_back) },
             [TTI_ERF_BACK] = { "erf", REAL_ROW(erf_back) },
             [TTI_SIGMOID_BACK] = { "sigmoid", REAL_ROW(sigmoid_back) },
             [TTI_RELU_BACK] = { "relu", REAL_ROW(relu_back) },
             [TTI_GELU_BACK] = { "gelu", REAL_ROW(gelu_back) },
             [TTI_GELU_TANH_BACK] = { "gelu_tanh", REAL_ROW(gelu_tanh_back) },
             [TTI_SILU_BACK] = { "silu", REAL_ROW(silu_back) },
             [TTI_ABS_BACK] = { "abs", REAL_ROW(abs_back) },
             [TTI_CLAMP_BACK] = { "clamp", REAL_ROW(clamp_back) },
             [TTI_EQ] = { "eq", FULL_ROW(eq) },
             [TTI_LT] = { "lt", FULL_ROW(lt) },
             [TTI_LE] = { "le", FULL_ROW(le) } },
    .op3 = { [TTI_MAXIMUM_BACK] = { "maximum", REAL_ROW(maximum_back) },
             [TTI_MINIMUM_BACK] = { "minimum", REAL_ROW(minimum_back) } },
    .rows = { ROW_OPS(float), ROW_OPS(double) },
};
