/* SPDX-License-Identifier: BSD-3-Clause
 *
 * step.c - the innermost loops in plain C, one function per operation and unit type.
 *
 * Why     They are written so that a compiler makes vector code of them: one loop per number of
 *         inputs, no branch inside, iterations independent.
 * True    Signed integers are added and multiplied as unsigned ones: they wrap, and nothing is
 *         undefined. min and max give NaN if either side is one: an ordered comparison with NaN is
 *         false and takes the right side, and NaN on the left is asked for.
 *         Bit-wise operations do not care for the width of a number and work on bytes. bool bytes
 *         are made 0 or 1 as they are read. */
#include <stddef.h>
#include "kernel/step.h"

#define SELF(x)  (x)
#define TRUTH(x) ((uint8_t)((x) != 0))

#define EACH(expression)                \
    TTI_INDEPENDENT                     \
    for (int64_t i = 0; i < count; i++) \
        out[i] = (expression);

/* The operation ONE on two numbers, and the step made of it. READ is applied to what is loaded. */
#define STEP(ONE, T, READ, result)                                                              \
    static inline T ONE(T x, T y)                                                               \
    {                                                                                           \
        return (T)(result);                                                                     \
    }                                                                                           \
                                                                                                \
    static void step_##ONE(void *to, const void *const *in, int width, int64_t count)           \
    {                                                                                           \
        const int last = width - 1;                                                             \
        T *out = to;                                                                            \
        const T *a = in[0];                                                                     \
        const T *b = in[last < 1 ? last : 1];                                                   \
        const T *c = in[last < 2 ? last : 2];                                                   \
        const T *d = in[last < 3 ? last : 3];                                                   \
        const T *e = in[last < 4 ? last : 4];                                                   \
        const T *f = in[last < 5 ? last : 5];                                                   \
        const T *g = in[last < 6 ? last : 6];                                                   \
        const T *h = in[last];                                                                  \
                                                                                                \
        switch (width) {                                                                        \
        case 1: EACH(READ(a[i])) break;                                                         \
        case 2: EACH(ONE(READ(a[i]), READ(b[i]))) break;                                        \
        case 3: EACH(ONE(ONE(READ(a[i]), READ(b[i])), READ(c[i]))) break;                       \
        case 4: EACH(ONE(ONE(ONE(READ(a[i]), READ(b[i])), READ(c[i])), READ(d[i]))) break;      \
        case 8:                                                                                 \
            EACH(ONE(ONE(ONE(ONE(ONE(ONE(ONE(READ(a[i]), READ(b[i])), READ(c[i])), READ(d[i])), \
                                 READ(e[i])),                                                   \
                             READ(f[i])),                                                       \
                         READ(g[i])),                                                           \
                     READ(h[i])))                                                               \
            break;                                                                              \
        default: break;                                                                         \
        }                                                                                       \
    }

/* clang-format off: it takes a product of x and y for a declaration */
STEP(add_u8, uint8_t, SELF, x + y)
STEP(add_u16, uint16_t, SELF, x + y)
STEP(add_u32, uint32_t, SELF, x + y)
STEP(add_u64, uint64_t, SELF, x + y)
STEP(add_f32, float, SELF, x + y)
STEP(add_f64, double, SELF, x + y)

/* 1u: two u16 would meet as signed int, and their product overflow it. */
STEP(mul_u8, uint8_t, SELF, 1u * x * y)
STEP(mul_u16, uint16_t, SELF, 1u * x * y)
STEP(mul_u32, uint32_t, SELF, x *y)
STEP(mul_u64, uint64_t, SELF, x *y)
STEP(mul_f32, float, SELF, x *y)
STEP(mul_f64, double, SELF, x *y)

STEP(min_u8, uint8_t, SELF, x < y ? x : y)
STEP(min_i8, int8_t, SELF, x < y ? x : y)
STEP(min_u16, uint16_t, SELF, x < y ? x : y)
STEP(min_i16, int16_t, SELF, x < y ? x : y)
STEP(min_u32, uint32_t, SELF, x < y ? x : y)
STEP(min_i32, int32_t, SELF, x < y ? x : y)
STEP(min_u64, uint64_t, SELF, x < y ? x : y)
STEP(min_i64, int64_t, SELF, x < y ? x : y)
STEP(min_f32, float, SELF, x != x ? x : (x < y ? x : y))
STEP(min_f64, double, SELF, x != x ? x : (x < y ? x : y))

STEP(max_u8, uint8_t, SELF, x > y ? x : y)
STEP(max_i8, int8_t, SELF, x > y ? x : y)
STEP(max_u16, uint16_t, SELF, x > y ? x : y)
STEP(max_i16, int16_t, SELF, x > y ? x : y)
STEP(max_u32, uint32_t, SELF, x > y ? x : y)
STEP(max_i32, int32_t, SELF, x > y ? x : y)
STEP(max_u64, uint64_t, SELF, x > y ? x : y)
STEP(max_i64, int64_t, SELF, x > y ? x : y)
STEP(max_f32, float, SELF, x != x ? x : (x > y ? x : y))
STEP(max_f64, double, SELF, x != x ? x : (x > y ? x : y))

STEP(and_u8, uint8_t, SELF, x &y)
STEP(or_u8, uint8_t, SELF, x | y)
STEP(xor_u8, uint8_t, SELF, x ^ y)

STEP(and_bool, uint8_t, TRUTH, x &y)
STEP(or_bool, uint8_t, TRUTH, x | y)
STEP(xor_bool, uint8_t, TRUTH, x ^ y)
/* clang-format on */

/* Rows of the table. A signed unit that is only added or multiplied is listed as unsigned. */
#define ADD_MUL(one)                                                                              \
    [TUTTI_U8] = step_##one##_u8, [TUTTI_U16] = step_##one##_u16, [TUTTI_U32] = step_##one##_u32, \
    [TUTTI_U64] = step_##one##_u64, [TUTTI_F32] = step_##one##_f32, [TUTTI_F64] = step_##one##_f64

#define MIN_MAX(one)                                                            \
    ADD_MUL(one), [TUTTI_I8] = step_##one##_i8, [TUTTI_I16] = step_##one##_i16, \
                  [TUTTI_I32] = step_##one##_i32, [TUTTI_I64] = step_##one##_i64

const tti_step_table tti_steps_c = {
    [TUTTI_OP_SUM] = { [TUTTI_BOOL] = step_or_bool, ADD_MUL(add) },
    [TUTTI_OP_PRODUCT] = { [TUTTI_BOOL] = step_and_bool, ADD_MUL(mul) },
    [TUTTI_OP_MIN] = { [TUTTI_BOOL] = step_and_bool, MIN_MAX(min) },
    [TUTTI_OP_MAX] = { [TUTTI_BOOL] = step_or_bool, MIN_MAX(max) },
    [TUTTI_OP_BAND] = { [TUTTI_BOOL] = step_and_bool, [TUTTI_U8] = step_and_u8 },
    [TUTTI_OP_BOR] = { [TUTTI_BOOL] = step_or_bool, [TUTTI_U8] = step_or_u8 },
    [TUTTI_OP_BXOR] = { [TUTTI_BOOL] = step_xor_bool, [TUTTI_U8] = step_xor_u8 },
};
