/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise.c - arithmetic element by element.
 *
 * How     A table of row loops, one for each operation and type (f32, f64, i64). Operands are
 *         brought to the type they meet in first; iterate.c hands out the rows. Each loop has a
 *         branch for rows side by side and for one side repeated, which the compiler vectorises.
 * True    No function is called per element but libm's. A row may be its own operand. */
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

enum { ARITH = 3 }; /* f32, f64, i64 */

static int arith_index(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 ? 0 : dtype == TUTTI_F64 ? 1 : dtype == TUTTI_I64 ? 2 : -1;
}

#define LOOP1(name, T, expr)                                                                      \
    static void name(int64_t n, void *vo, int64_t so, const void *va, int64_t sa, const void *vb, \
                     int64_t sb, const double *pc)                                                \
    {                                                                                             \
        T *o = vo;                                                                                \
        const T *a = va;                                                                          \
        const T c = (T)*pc;                                                                       \
                                                                                                  \
        (void)vb, (void)sb, (void)c;                                                              \
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
        const T c = (T)*pc;                                                                       \
                                                                                                  \
        (void)c;                                                                                  \
        if (so == 1 && sa == 1 && sb == 1)                                                        \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i], y = b[i];                                                       \
                o[i] = expr;                                                                      \
            }                                                                                     \
        else if (so == 1 && sa == 1 && sb == 0) {                                                 \
            const T y = b[0];                                                                     \
                                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i];                                                                 \
                o[i] = expr;                                                                      \
            }                                                                                     \
        } else                                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                     \
                const T x = a[i * sa], y = b[i * sb];                                             \
                o[i * so] = expr;                                                                 \
            }                                                                                     \
    }

/* Wrapping integer arithmetic, as two's complement. */
#define WRAP(expr) ((int64_t)(expr))
#define U(x)       ((uint64_t)(x))

/* The logistic function without overflow: e to a negative power only. */
static inline float sigmoid_f(float x)
{
    const float e = expf(-fabsf(x));

    return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

static inline double sigmoid_d(double x)
{
    const double e = exp(-fabs(x));

    return x >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

#define REALS1(name, expr_f, expr_d) \
    LOOP1(name##_f32, float, expr_f) \
    LOOP1(name##_f64, double, expr_d)
#define REALS2(name, expr)                \
    LOOP2(name##_f32, float, float, expr) \
    LOOP2(name##_f64, double, double, expr)
#define COMPARE(name, expr)                  \
    LOOP2(name##_f32, float, uint8_t, expr)  \
    LOOP2(name##_f64, double, uint8_t, expr) \
    LOOP2(name##_i64, int64_t, uint8_t, expr)

REALS1(neg, -x, -x)
LOOP1(neg_i64, int64_t, WRAP(0 - U(x)))
REALS1(exp, expf(x), exp(x))
REALS1(log, logf(x), log(x))
REALS1(sqrt, sqrtf(x), sqrt(x))
REALS1(tanh, tanhf(x), tanh(x))
REALS1(sigmoid, sigmoid_f(x), sigmoid_d(x))
REALS1(relu, x <= 0 ? 0 : x, x <= 0 ? 0 : x)
LOOP1(relu_i64, int64_t, x <= 0 ? 0 : x)
REALS1(add_c, x + c, x + c)
REALS1(mul_c, x *c, x *c)
REALS1(div_c, x / c, x / c)

REALS2(add, x + c * y)
LOOP2(add_i64, int64_t, int64_t, WRAP(U(x) + U(c) * U(y)))
REALS2(mul, x *y)
LOOP2(mul_i64, int64_t, int64_t, WRAP(U(x) * U(y)))
REALS2(div, x / y)
REALS2(relu_back, y <= 0 ? 0 : x)
REALS2(tanh_back, x *(1 - y * y))
REALS2(sigmoid_back, x *y *(1 - y))
COMPARE(eq, x == y)
COMPARE(lt, x < y)
COMPARE(le, x <= y)

typedef struct op_row {
    const char *name;
    tti_loop loop[ARITH]; /* NULL for i64: whole numbers are taken as f32 */
} op_row;

#define REAL_ROW(name)               \
    {                                \
        name##_f32, name##_f64, NULL \
    }
#define FULL_ROW(name)                     \
    {                                      \
        name##_f32, name##_f64, name##_i64 \
    }

static const op_row table1[TTI_OP1_COUNT] = {
    [TTI_NEG] = { "neg", FULL_ROW(neg) },
    [TTI_EXP] = { "exp", REAL_ROW(exp) },
    [TTI_LOG] = { "log", REAL_ROW(log) },
    [TTI_SQRT] = { "sqrt", REAL_ROW(sqrt) },
    [TTI_TANH] = { "tanh", REAL_ROW(tanh) },
    [TTI_SIGMOID] = { "sigmoid", REAL_ROW(sigmoid) },
    [TTI_RELU] = { "relu", FULL_ROW(relu) },
    [TTI_ADD_C] = { "add_scalar", REAL_ROW(add_c) },
    [TTI_MUL_C] = { "mul_scalar", REAL_ROW(mul_c) },
    [TTI_DIV_C] = { "div_scalar", REAL_ROW(div_c) },
};

static const op_row table2[TTI_OP2_COUNT] = {
    [TTI_ADD] = { "add", FULL_ROW(add) },
    [TTI_MUL] = { "mul", FULL_ROW(mul) },
    [TTI_DIV] = { "div", REAL_ROW(div) },
    [TTI_RELU_BACK] = { "relu", REAL_ROW(relu_back) },
    [TTI_TANH_BACK] = { "tanh", REAL_ROW(tanh_back) },
    [TTI_SIGMOID_BACK] = { "sigmoid", REAL_ROW(sigmoid_back) },
    [TTI_EQ] = { "eq", FULL_ROW(eq) },
    [TTI_LT] = { "lt", FULL_ROW(lt) },
    [TTI_LE] = { "le", FULL_ROW(le) },
};

static bool is_comparison(tti_op2 op)
{
    return op == TTI_EQ || op == TTI_LT || op == TTI_LE;
}

/* bool 0, whole 1, real 2 */
static int kind_of(tutti_dtype dtype)
{
    return tti_is_real(dtype) ? 2 : dtype == TUTTI_BOOL ? 0 : 1;
}

tutti_dtype tti_promote(const tutti_tensor *a, const tutti_tensor *b)
{
    const tutti_dtype wider = b == NULL || a->dtype > b->dtype ? a->dtype : b->dtype;

    if (b == NULL || (a->nd == 0) == (b->nd == 0))
        return wider; /* the enum lists bool u8 i32 i64 f32 f64 in this order */
    if (a->nd == 0)
        return kind_of(a->dtype) > kind_of(b->dtype) ? a->dtype : b->dtype;
    return kind_of(b->dtype) > kind_of(a->dtype) ? b->dtype : a->dtype;
}

/* The loop of an operation for operands that meet in *dtype, which becomes the type to compute in.
 */
static tti_loop choose(const op_row *row, bool comparison, tutti_dtype *dtype)
{
    int k;

    if (!tti_is_real(*dtype) && row->loop[2] == NULL)
        *dtype = TUTTI_F32;
    else if (!tti_is_real(*dtype) && comparison)
        *dtype = TUTTI_I64;
    k = arith_index(*dtype);
    if (k >= 0)
        return row->loop[k];
    (void)tti_refuse(TUTTI_E_UNSUPPORTED, row->name,
                     "no arithmetic on %s\n  next: convert with tutti_tensor_to()",
                     tutti_dtype_name(*dtype));
    return NULL;
}

tutti_tensor *tti_raw_op1(tti_op1 op, const tutti_tensor *x, double c)
{
    const op_row *row = &table1[op];
    tutti_dtype dtype;
    tutti_tensor *from, *y = NULL;
    tti_loop loop;

    if (x == NULL)
        return tti_poisoned(row->name);
    dtype = x->dtype;
    loop = choose(row, false, &dtype);
    if (loop == NULL)
        return NULL;
    from = tti_raw_to(x, dtype);
    if (from != NULL)
        y = tti_raw_empty(dtype, x->nd, x->shape);
    if (y != NULL)
        tti_iterate(loop, &c, y, from, NULL);
    tutti_tensor_release(from);
    return y;
}

tutti_tensor *tti_raw_op2(tti_op2 op, const tutti_tensor *a, const tutti_tensor *b, double c)
{
    const op_row *row = &table2[op];
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *from_a = NULL, *from_b = NULL, *y = NULL;
    tutti_dtype dtype;
    tti_loop loop;
    int nd;

    if (a == NULL || b == NULL)
        return tti_poisoned(row->name);
    dtype = tti_promote(a, b);
    loop = choose(row, is_comparison(op), &dtype);
    if (loop == NULL || tti_broadcast_shape(row->name, a, b, &nd, shape) != TUTTI_OK)
        return NULL;
    from_a = tti_raw_to(a, dtype);
    from_b = tti_raw_to(b, dtype);
    if (from_a != NULL && from_b != NULL)
        y = tti_raw_empty(is_comparison(op) ? TUTTI_BOOL : dtype, nd, shape);
    if (y != NULL)
        tti_iterate(loop, &c, y, from_a, from_b);
    tutti_tensor_release(from_a);
    tutti_tensor_release(from_b);
    return y;
}

/* ---- in place ---------------------------------------------------------------------------------
 */

/* The loop for t, whose type cannot change. */
static tti_loop choose_in_place(const op_row *row, const tutti_tensor *t)
{
    tutti_dtype dtype = t->dtype;
    tti_loop loop = choose(row, false, &dtype);

    if (loop != NULL && dtype != t->dtype) {
        (void)tti_refuse(TUTTI_E_ARG, row->name, "the result is real and does not fit into %s",
                         tutti_dtype_name(t->dtype));
        return NULL;
    }
    return loop;
}

tutti_status tti_raw_op1_(tti_op1 op, tutti_tensor *t, double c)
{
    tti_loop loop;

    if (t == NULL)
        return tti_refuse_null(table1[op].name);
    loop = choose_in_place(&table1[op], t);
    if (loop == NULL)
        return tti_refused();
    tti_iterate(loop, &c, t, t, NULL);
    tti_version_bump(t);
    return TUTTI_OK;
}

/* b in the type of t, in memory that does not overlap with it but element for element. */
static tutti_tensor *operand_for(const char *name, const tutti_tensor *t, const tutti_tensor *b)
{
    int64_t shape[TUTTI_MAX_DIMS];
    int nd;

    if (kind_of(b->dtype) > kind_of(t->dtype))
        return tti_poison(TUTTI_E_ARG, name, "%s does not fit into %s", tutti_dtype_name(b->dtype),
                          tutti_dtype_name(t->dtype));
    if (tti_broadcast_shape(name, t, b, &nd, shape) != TUTTI_OK)
        return NULL;
    if (nd != t->nd || (nd > 0 && memcmp(shape, t->shape, (size_t)nd * sizeof shape[0]) != 0))
        return tti_poison(TUTTI_E_ARG, name, "shape %s does not broadcast to %s",
                          tti_shape_str(b->nd, b->shape).s, tti_shape_str(t->nd, t->shape).s);
    if (b->st == t->st && (b->offset != t->offset || !tti_same_layout(b, t)))
        b = tti_temp(tti_raw_clone(b));
    return tti_raw_to(b, t->dtype);
}

tutti_status tti_raw_op2_(tti_op2 op, tutti_tensor *t, const tutti_tensor *b, double c)
{
    tutti_tensor *from;
    tti_loop loop;

    if (t == NULL || b == NULL)
        return tti_refuse_null(table2[op].name);
    loop = choose_in_place(&table2[op], t);
    if (loop == NULL)
        return tti_refused();
    tutti_scope_begin();
    from = tti_temp(operand_for(table2[op].name, t, b));
    if (from != NULL) {
        tti_iterate(loop, &c, t, t, from);
        tti_version_bump(t);
    }
    tutti_scope_end();
    return from != NULL ? TUTTI_OK : tti_refused();
}

/* ---- comparisons ------------------------------------------------------------------------------
 */

tutti_tensor *tutti_tensor_eq(const tutti_tensor *a, const tutti_tensor *b)
{
    return tti_temp(tti_raw_op2(TTI_EQ, a, b, 0.0));
}

tutti_tensor *tutti_tensor_lt(const tutti_tensor *a, const tutti_tensor *b)
{
    return tti_temp(tti_raw_op2(TTI_LT, a, b, 0.0));
}

tutti_tensor *tutti_tensor_le(const tutti_tensor *a, const tutti_tensor *b)
{
    return tti_temp(tti_raw_op2(TTI_LE, a, b, 0.0));
}

bool tutti_tensor_equal(const tutti_tensor *a, const tutti_tensor *b)
{
    const int all = 0;
    tutti_tensor *same, *count;
    double n = -1.0;

    if (a == NULL || b == NULL || a->dtype != b->dtype || !tti_same_shape(a, b) ||
        tti_ready(a) != TUTTI_OK || tti_ready(b) != TUTTI_OK)
        return false;
    same = tti_raw_op2(TTI_EQ, a, b, 0.0);
    count = tti_raw_sum(same, &all, 0, false);
    if (count != NULL)
        (void)tutti_tensor_item(count, &n);
    tutti_tensor_release(same);
    tutti_tensor_release(count);
    return n == (double)a->numel;
}
