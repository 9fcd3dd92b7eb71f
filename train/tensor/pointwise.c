/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise.c - arithmetic element by element.
 *
 * How     level.h has the tables of row loops, one loop for each operation and type (f32, f64, i64).
 *         Operands are brought to the type they meet in first; iterate.c hands out the rows.
 * True    An operation looks at shapes and strides once per row, and at nothing per element. */
#include "tensor/level.h"

#include <string.h>

static int arith_index(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 ? 0 : dtype == TUTTI_F64 ? 1 : dtype == TUTTI_I64 ? 2 : -1;
}

static bool is_comparison(tti_op2 op)
{
    return op == TTI_EQ || op == TTI_LT || op == TTI_LE;
}

/* bool 0, whole 1, real 2 */
static int kind_of(tutti_dtype dtype)
{
    return tti_is_floating(dtype) ? 2 : dtype == TUTTI_BOOL ? 0 : 1;
}

tutti_dtype tti_promote(const tutti_tensor *a, const tutti_tensor *b)
{
    const tutti_dtype wider = b == NULL || a->dtype > b->dtype ? a->dtype : b->dtype;

    if (b == NULL || (a->nd == 0) == (b->nd == 0)) /* the enum lists the types in this order, but */
        return b != NULL && tti_is_half(a->dtype) && tti_is_half(b->dtype) && a->dtype != b->dtype
                   ? TUTTI_F32 /* neither half holds the other */
                   : wider;
    if (a->nd == 0)
        return kind_of(a->dtype) > kind_of(b->dtype) ? a->dtype : b->dtype;
    return kind_of(b->dtype) > kind_of(a->dtype) ? b->dtype : a->dtype;
}

/* Which column of a table is for operands that meet in *dtype, which becomes the type to compute in;
 * -1 and kept if there is none. whole: there is a loop for whole numbers. */
static int column(const char *name, bool whole, tutti_dtype *dtype)
{
    if (!tti_is_real(*dtype))
        *dtype = whole && !tti_is_half(*dtype) ? *dtype : TUTTI_F32;
    if (arith_index(*dtype) < 0)
        (void)tti_refuse(TUTTI_E_UNSUPPORTED, name,
                         "no arithmetic on %s\n  next: convert with tutti_tensor_to()",
                         tutti_dtype_name(*dtype));
    return arith_index(*dtype);
}

static tti_loop choose(const tti_op1_row *row, bool comparison, tutti_dtype *dtype)
{
    int k;

    if (!tti_is_floating(*dtype) && comparison)
        *dtype = TUTTI_I64;
    k = column(row->name, row->loop[2] != NULL, dtype);
    return k < 0 ? NULL : row->loop[k];
}

static const tti_op1_row *row1(tti_op1 op)
{
    return &tti_math_now()->op1[op];
}

static const tti_op1_row *row2(tti_op2 op)
{
    return &tti_math_now()->op2[op];
}

/* y, a reference of ours, in the type that the operands met in, if that was a half. */
static tutti_tensor *rounded(tutti_tensor *y, tutti_dtype met)
{
    tutti_tensor *half;

    if (y == NULL || !tti_is_half(met))
        return y;
    half = tti_raw_to(y, met);
    tutti_tensor_release(y);
    return half;
}

/* c: two numbers for the loop. */
static tutti_tensor *one_operand(tti_op1 op, const tutti_tensor *x, const double *c)
{
    const tti_op1_row *row = row1(op);
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
        tti_iterate(loop, c, y, from, NULL);
    tutti_tensor_release(from);
    return rounded(y, x->dtype);
}

static tutti_tensor *two_operands(tti_op2 op, const tutti_tensor *a, const tutti_tensor *b,
                                  const double *c)
{
    const tti_op1_row *row = row2(op);
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *from_a = NULL, *from_b = NULL, *y = NULL;
    tutti_dtype dtype, met;
    tti_loop loop;
    int nd;

    if (a == NULL || b == NULL)
        return tti_poisoned(row->name);
    dtype = met = tti_promote(a, b);
    loop = choose(row, is_comparison(op), &dtype);
    if (loop == NULL || tti_broadcast_shape(row->name, a, b, &nd, shape) != TUTTI_OK)
        return NULL;
    from_a = tti_raw_to(a, dtype);
    from_b = tti_raw_to(b, dtype);
    if (from_a != NULL && from_b != NULL)
        y = tti_raw_empty(is_comparison(op) ? TUTTI_BOOL : dtype, nd, shape);
    if (y != NULL)
        tti_iterate(loop, c, y, from_a, from_b);
    tutti_tensor_release(from_a);
    tutti_tensor_release(from_b);
    return is_comparison(op) ? y : rounded(y, met);
}

tutti_tensor *tti_raw_op1(tti_op1 op, const tutti_tensor *x, double c)
{
    return one_operand(op, x, (const double[]){ c, 0.0 });
}

tutti_tensor *tti_raw_op2(tti_op2 op, const tutti_tensor *a, const tutti_tensor *b, double c)
{
    return two_operands(op, a, b, (const double[]){ c, 0.0 });
}

tutti_tensor *tti_raw_clamp(const tutti_tensor *x, double low, double high)
{
    return one_operand(TTI_CLAMP, x, (const double[]){ low, high });
}

tutti_tensor *tti_raw_clamp_back(const tutti_tensor *g, const tutti_tensor *x, double low,
                                 double high)
{
    return two_operands(TTI_CLAMP_BACK, g, x, (const double[]){ low, high });
}

tutti_tensor *tti_raw_pow(const tutti_tensor *x, double p)
{
    if (p == 2.0)
        return tti_raw_op2(TTI_MUL, x, x, 0.0);
    if (p == 1.0)
        return tti_raw_op1(TTI_MUL_C, x, 1.0);
    if (p == 0.5)
        return tti_raw_op1(TTI_SQRT, x, 0.0);
    if (p == -0.5)
        return tti_raw_op1(TTI_RSQRT, x, 0.0);
    return tti_raw_op1(TTI_POW, x, p);
}

tutti_tensor *tti_raw_op3(tti_op3 op, const tutti_tensor *a, const tutti_tensor *b,
                          const tutti_tensor *e)
{
    const tti_op3_row *row = &tti_math_now()->op3[op];
    tutti_tensor *y = NULL, *from_a, *from_b, *from_e;
    tutti_dtype dtype;

    if (a == NULL || b == NULL || e == NULL)
        return tti_poisoned(row->name);
    dtype = tti_is_half(a->dtype) ? TUTTI_F32 : a->dtype;
    from_a = tti_raw_to(a, dtype);
    from_b = tti_raw_to(b, dtype);
    from_e = tti_raw_to(e, dtype);
    if (from_a != NULL && from_b != NULL && from_e != NULL)
        y = tti_raw_empty(dtype, a->nd, a->shape);
    if (y != NULL)
        tti_iterate3(row->loop[arith_index(dtype)], NULL, y, from_a, from_b, from_e);
    tutti_tensor_release(from_a);
    tutti_tensor_release(from_b);
    tutti_tensor_release(from_e);
    return rounded(y, a->dtype);
}

/* ---- where ------------------------------------------------------------------------------------
 */

/* Elements are only moved, so their size is all that counts. */
#define WHERE(T)                                                                       \
    static void where_##T(int64_t n, void *vo, int64_t so, const void *vc, int64_t sc, \
                          const void *va, int64_t sa, const void *vb, int64_t sb,      \
                          const double *pc)                                            \
    {                                                                                  \
        T *o = vo;                                                                     \
        const uint8_t *c = vc;                                                         \
        const T *a = va, *b = vb;                                                      \
                                                                                       \
        (void)pc;                                                                      \
        if (so == 1 && sc == 1 && sa == 0 && sb == 1) {                                \
            const T filled = a[0];                                                     \
                                                                                       \
            for (int64_t i = 0; i < n; i++)                                            \
                o[i] = c[i] != 0 ? filled : b[i];                                      \
        } else                                                                         \
            for (int64_t i = 0; i < n; i++)                                            \
                o[i * so] = c[i * sc] != 0 ? a[i * sa] : b[i * sb];                    \
    }

WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)

static tti_loop3 where_of(size_t size)
{
    return size == 1   ? where_uint8_t
           : size == 2 ? where_uint16_t
           : size == 4 ? where_uint32_t
                       : where_uint64_t;
}

/* The shape that all three broadcast to. */
static tutti_status where_shape(const tutti_tensor *cond, const tutti_tensor *a,
                                const tutti_tensor *b, int *nd_out, int64_t *shape_out)
{
    tutti_tensor both = { 0 };

    if (tti_broadcast_shape("where", a, b, &both.nd, both.shape) != TUTTI_OK)
        return TUTTI_E_ARG;
    return tti_broadcast_shape("where", cond, &both, nd_out, shape_out);
}

tutti_tensor *tti_raw_where(const tutti_tensor *cond, const tutti_tensor *a, const tutti_tensor *b)
{
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *from_a, *from_b, *y = NULL;
    tutti_dtype dtype;
    int nd;

    if (cond == NULL || a == NULL || b == NULL)
        return tti_poisoned("where");
    if (cond->dtype != TUTTI_BOOL && cond->dtype != TUTTI_U8)
        return tti_poison(TUTTI_E_ARG, "where", "the condition is %s, not bool",
                          tutti_dtype_name(cond->dtype));
    if (where_shape(cond, a, b, &nd, shape) != TUTTI_OK)
        return NULL;
    dtype = tti_promote(a, b);
    from_a = tti_raw_to(a, dtype);
    from_b = tti_raw_to(b, dtype);
    if (from_a != NULL && from_b != NULL)
        y = tti_raw_empty(dtype, nd, shape);
    if (y != NULL)
        tti_iterate3(where_of(tutti_dtype_size(dtype)), NULL, y, cond, from_a, from_b);
    tutti_tensor_release(from_a);
    tutti_tensor_release(from_b);
    return y;
}

/* ---- in place ---------------------------------------------------------------------------------
 */

/* The loop for t, whose type cannot change. */
static tti_loop choose_in_place(const tti_op1_row *row, const tutti_tensor *t)
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

/* t = y, a reference of ours: how halves are changed in place. */
static tutti_status put_back(tutti_tensor *t, tutti_tensor *y)
{
    const tutti_status st = y != NULL ? tti_raw_copy_(t, y) : tti_refused();

    tutti_tensor_release(y);
    return st;
}

tutti_status tti_raw_op1_(tti_op1 op, tutti_tensor *t, double c)
{
    tti_loop loop;

    if (t == NULL)
        return tti_refuse_null(row1(op)->name);
    if (tti_is_half(t->dtype))
        return put_back(t, tti_raw_op1(op, t, c));
    loop = choose_in_place(row1(op), t);
    if (loop == NULL)
        return tti_refused();
    tti_iterate(loop, (const double[]){ c, 0.0 }, t, t, NULL);
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
        return tti_refuse_null(row2(op)->name);
    if (tti_is_half(t->dtype))
        return put_back(t, tti_raw_op2(op, t, b, c));
    loop = choose_in_place(row2(op), t);
    if (loop == NULL)
        return tti_refused();
    tutti_scope_begin();
    from = tti_temp(operand_for(row2(op)->name, t, b));
    if (from != NULL) {
        tti_iterate(loop, (const double[]){ c, 0.0 }, t, t, from);
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
