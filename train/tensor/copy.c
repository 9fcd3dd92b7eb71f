/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy.c - copies, conversions between element types, fills; reading one value.
 *
 * True    Real to whole drops the fraction and stays within i64 (NaN gives 0), then keeps the low
 *         bits; anything to bool is "not zero". */
#include "tensor/half.h"
#include "tensor/tensor.h"

#include <string.h>

enum { TYPES = 8 };

static int type_index(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_BOOL: return 0;
    case TUTTI_U8: return 1;
    case TUTTI_I32: return 2;
    case TUTTI_I64: return 3;
    case TUTTI_F32: return 4;
    case TUTTI_F16: return 6;
    case TUTTI_BF16: return 7;
    default: return 5; /* TUTTI_F64: tensors of other types cannot be made */
    }
}

static int64_t whole(double x)
{
    if (x >= 9223372036854775808.0)
        return INT64_MAX;
    if (x < -9223372036854775808.0)
        return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

#define PLAIN(T, x)    ((T)(x))
#define TO_WHOLE(T, x) ((T)whole((double)(x)))
#define TO_BOOL(T, x)  ((x) != 0)
#define TO_F16(T, x)   (tti_f16_write((float)(x)))
#define TO_BF16(T, x)  (tti_bf16_write((float)(x)))
#define AS_IS(x)       (x)

/* A loop that converts elements of type F, which READ gives as numbers, to type T. */
#define CONVERT(name, F, READ, T, HOW)                                                            \
    static void name(int64_t n, void *vo, int64_t so, const void *va, int64_t sa, const void *vb, \
                     int64_t sb, const double *c)                                                 \
    {                                                                                             \
        T *o = vo;                                                                                \
        const F *a = va;                                                                          \
                                                                                                  \
        (void)vb, (void)sb, (void)c;                                                              \
        if (so == 1 && sa == 1)                                                                   \
            for (int64_t i = 0; i < n; i++)                                                       \
                o[i] = HOW(T, READ(a[i]));                                                        \
        else                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                       \
                o[i * so] = HOW(T, READ(a[i * sa]));                                              \
    }

#define CONVERT_FROM(word, F, READ, HOW_INT)        \
    CONVERT(word##_bool, F, READ, uint8_t, TO_BOOL) \
    CONVERT(word##_u8, F, READ, uint8_t, HOW_INT)   \
    CONVERT(word##_i32, F, READ, int32_t, HOW_INT)  \
    CONVERT(word##_i64, F, READ, int64_t, HOW_INT)  \
    CONVERT(word##_f32, F, READ, float, PLAIN)      \
    CONVERT(word##_f64, F, READ, double, PLAIN)     \
    CONVERT(word##_f16, F, READ, uint16_t, TO_F16)  \
    CONVERT(word##_bf16, F, READ, uint16_t, TO_BF16)

CONVERT_FROM(byte, uint8_t, AS_IS, PLAIN) /* bool and u8 */
CONVERT_FROM(i32, int32_t, AS_IS, PLAIN)
CONVERT_FROM(i64, int64_t, AS_IS, PLAIN)
CONVERT_FROM(f32, float, AS_IS, TO_WHOLE)
CONVERT_FROM(f64, double, AS_IS, TO_WHOLE)
CONVERT_FROM(f16, uint16_t, tti_f16_read, TO_WHOLE)
CONVERT_FROM(bf16, uint16_t, tti_bf16_read, TO_WHOLE)

/* Between halves of one type bits are moved: a NaN keeps its own. */
CONVERT(half_half, uint16_t, AS_IS, uint16_t, PLAIN)

#define ROW(word)                                                                           \
    {                                                                                       \
        word##_bool, word##_u8, word##_i32, word##_i64, word##_f32, word##_f64, word##_f16, \
            word##_bf16                                                                     \
    }

static const tti_loop convert[TYPES][TYPES] = { ROW(byte), ROW(byte), ROW(i32), ROW(i64),
                                                ROW(f32),  ROW(f64),  ROW(f16), ROW(bf16) };

static tti_loop loop_between(tutti_dtype from, tutti_dtype to)
{
    return from == to && tti_is_half(from) ? half_half : convert[type_index(from)][type_index(to)];
}

/* Same shape, or src broadcasts; memory does not overlap. */
static void copy_into(tutti_tensor *t, const tutti_tensor *src)
{
    if (t->dtype == src->dtype && tti_same_shape(t, src) && tutti_tensor_is_contiguous(t) &&
        tutti_tensor_is_contiguous(src)) {
        if (t->numel > 0)
            memcpy(tti_at(t), tti_at(src), (size_t)t->numel * tutti_dtype_size(t->dtype));
        return;
    }
    tti_iterate(loop_between(src->dtype, t->dtype), NULL, t, src, NULL);
}

static tutti_tensor *copy_as(const tutti_tensor *x, tutti_dtype dtype)
{
    tutti_tensor *y = tti_raw_empty(dtype, x->nd, x->shape);

    if (y != NULL)
        copy_into(y, x);
    return y;
}

tutti_tensor *tti_raw_to(const tutti_tensor *x, tutti_dtype dtype)
{
    if (x == NULL)
        return tti_poisoned("to");
    if (x->dtype == dtype)
        return tutti_tensor_retain((tutti_tensor *)(uintptr_t)x);
    return copy_as(x, dtype);
}

tutti_tensor *tti_raw_clone(const tutti_tensor *x)
{
    return x == NULL ? tti_poisoned("clone") : copy_as(x, x->dtype);
}

tutti_tensor *tti_raw_contiguous(const tutti_tensor *x)
{
    if (x == NULL)
        return tti_poisoned("contiguous");
    if (tutti_tensor_is_contiguous(x))
        return tutti_tensor_retain((tutti_tensor *)(uintptr_t)x);
    return copy_as(x, x->dtype);
}

static tutti_status fits(const tutti_tensor *t, const tutti_tensor *src)
{
    int64_t shape[TUTTI_MAX_DIMS];
    int nd;

    if (tti_broadcast_shape("copy_", t, src, &nd, shape) != TUTTI_OK)
        return TUTTI_E_ARG;
    if (nd == t->nd && (nd == 0 || memcmp(shape, t->shape, (size_t)nd * sizeof shape[0]) == 0))
        return TUTTI_OK;
    return tti_refuse(TUTTI_E_ARG, "copy_", "shape %s does not broadcast to %s",
                      tti_shape_str(src->nd, src->shape).s, tti_shape_str(t->nd, t->shape).s);
}

tutti_status tti_raw_copy_(tutti_tensor *t, const tutti_tensor *src)
{
    tutti_tensor *apart = NULL;

    if (t == NULL || src == NULL)
        return tti_refuse_null("copy_");
    if (fits(t, src) != TUTTI_OK)
        return TUTTI_E_ARG;
    if (t->st == src->st) { /* the two may overlap in any way: read first, then write */
        apart = tti_raw_clone(src);
        if (apart == NULL)
            return tti_refused();
        src = apart;
    }
    copy_into(t, src);
    tti_version_bump(t);
    tutti_tensor_release(apart);
    return TUTTI_OK;
}

tutti_status tti_raw_fill_(tutti_tensor *t, double value)
{
    const int64_t one[TUTTI_MAX_DIMS] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    tti_storage st = { .data = &value };
    const tutti_tensor src = { .dtype = TUTTI_F64, .nd = t->nd, .numel = 1, .st = &st };
    tutti_tensor from = src;

    memcpy(from.shape, one, sizeof one);
    if (value == 0.0 && tutti_tensor_is_contiguous(t)) {
        if (t->numel > 0)
            memset(tti_at(t), 0, (size_t)t->numel * tutti_dtype_size(t->dtype));
    } else {
        copy_into(t, &from);
    }
    tti_version_bump(t);
    return TUTTI_OK;
}

tutti_status tutti_tensor_item(const tutti_tensor *t, double *value_out)
{
    double value;

    if (t == NULL)
        return tti_refuse_null("item");
    if (t->numel != 1)
        return tti_refuse(TUTTI_E_ARG, "item", "shape %s is not one element",
                          tti_shape_str(t->nd, t->shape).s);
    if (tti_ready(t) != TUTTI_OK)
        return tti_refused();
    convert[type_index(t->dtype)][type_index(TUTTI_F64)](1, &value, 1, tti_at(t), 1, NULL, 0, NULL);
    *value_out = value;
    return TUTTI_OK;
}
