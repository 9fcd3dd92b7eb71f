/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loops.h - the loops of a reduction, written once and compiled once for each set of instructions.
 *
 * Why     Sets of instructions differ in how many numbers they take at once, not in what the answer is.
 * How     A file such as avx2.c says how wide a vector is (vectors.h) and how it is read, written,
 *         converted and compared; then it includes this one, which makes of it a table of loops.
 *         A loop holds four vectors of the result in registers, brings in the inputs from left to right,
 *         ends them (division, one kind of NaN, rounding to the format) and stores them to all outputs.
 *         So every input is loaded once and every output stored once, whatever their number, and
 *         formats below f32 are rounded once. What is left over goes one vector at a time, and the last
 *         part of a vector by way of memory or masks.
 * True    All inputs of a step are loaded before an output of it is stored, so an output may be an input.
 *         Lanes do not see each other: where a vector begins changes nothing in the result.
 *         Signed integers are added and multiplied as unsigned ones: they wrap. min and max take the
 *         right one of two equal numbers, also of zeros that differ in sign, and a NaN of either side.
 *         A NaN that comes out is the positive quiet one without payload. Which payload a sum of two NaN
 *         has is up to the order of operands that the compiler chose, and the sign of inf - inf to the
 *         processor; so none of it is kept.
 *         Bool bytes are made 0 or 1 as they are read.
 *
 * The including file defines: the types raw_1, raw_2, raw_4 (the bytes of a vector, of its half, of its
 * quarter), load_part_1/2/4() and store_part_1/2/4() (their first bytes, fewer than all),
 * stream_1/2/4() (stores past the caches), lanes_of_2/4(), codes_2/4() (between codes of 2 bytes or 1
 * in memory and 4-byte lanes), f32_of_f16(), f16_of_f32(), f32_of_f8e5m2(), LOOP_TABLE (a name), and of
 * MIN, MAX, CANON and ANY_NAN what it does better than this. */
#ifndef TTI_KERNEL_LOOPS_H
#define TTI_KERNEL_LOOPS_H

#include <stddef.h>
#include <string.h>
#include "kernel/copy.h"
#include "kernel/level.h"
#include "kernel/vectors.h"

typedef unsigned char byte;

enum { WIDTH_MAX = 8 };

/* ---- Moving: whole, and the first bytes only. ---- */
#define MOVES(share)                                    \
    INLINE raw_##share load_##share(const byte *p)      \
    {                                                   \
        raw_##share raw;                                \
                                                        \
        memcpy(&raw, p, sizeof raw);                    \
        return raw;                                     \
    }                                                   \
    INLINE void store_##share(byte *p, raw_##share raw) \
    {                                                   \
        memcpy(p, &raw, sizeof raw);                    \
    }

MOVES(1)
MOVES(2)
MOVES(4)

/* ---- Formats: what is in memory, and what is computed with. ----
 * For each: the type of a vector, bytes in memory of one element, which share of a vector's bytes they
 * are, and GET and PUT between the two. */
#define SAME(type, x) ((type)(x))

#define FORMAT(format, vector, type, bytes, raw_share, GET, PUT)                 \
    typedef vector vec_##format;                                                 \
    enum { LANES_##format = RAW / (int)sizeof(type), BYTES_##format = (bytes) }; \
    INLINE vec_##format get_##format(const byte *p)                              \
    {                                                                            \
        return GET(vector, load_##raw_share(p));                                 \
    }                                                                            \
    INLINE vec_##format get_part_##format(const byte *p, size_t n)               \
    {                                                                            \
        return GET(vector, load_part_##raw_share(p, n));                         \
    }                                                                            \
    INLINE void put_##format(byte *p, vec_##format x, bool past_caches)          \
    {                                                                            \
        const raw_##raw_share raw = PUT(raw_##raw_share, x);                     \
                                                                                 \
        if (past_caches)                                                         \
            stream_##raw_share(p, raw);                                          \
        else                                                                     \
            store_##raw_share(p, raw);                                           \
    }                                                                            \
    INLINE void put_part_##format(byte *p, vec_##format x, size_t n)             \
    {                                                                            \
        store_part_##raw_share(p, PUT(raw_##raw_share, x), n);                   \
    }

#define GET_truth(type, raw)    ((type)((type)(raw) != 0) & 1)
#define GET_bf16(type, raw)     f32_of_bf16(lanes_of_2(raw))
#define PUT_bf16(type, x)       codes_2(bf16_of_f32(x))
#define GET_f16(type, raw)      f32_of_f16(raw)
#define PUT_f16(type, x)        f16_of_f32(x)
#define GET_f8e4m3fn(type, raw) f32_of_f8e4m3fn(lanes_of_4(raw))
#define PUT_f8e4m3fn(type, x)   codes_4(f8e4m3fn_of_f32(x))
#define GET_f8e5m2(type, raw)   f32_of_f8e5m2(raw)
#define PUT_f8e5m2(type, x)     codes_4(f8e5m2_of_f32(x))

FORMAT(truth, v_u8, uint8_t, 1, 1, GET_truth, SAME)
FORMAT(u8, v_u8, uint8_t, 1, 1, SAME, SAME)
FORMAT(i8, v_i8, int8_t, 1, 1, SAME, SAME)
FORMAT(u16, v_u16, uint16_t, 2, 1, SAME, SAME)
FORMAT(i16, v_i16, int16_t, 2, 1, SAME, SAME)
FORMAT(u32, v_u32, uint32_t, 4, 1, SAME, SAME)
FORMAT(i32, v_i32, int32_t, 4, 1, SAME, SAME)
FORMAT(u64, v_u64, uint64_t, 8, 1, SAME, SAME)
FORMAT(i64, v_i64, int64_t, 8, 1, SAME, SAME)
FORMAT(f32, v_f32, float, 4, 1, SAME, SAME)
FORMAT(f64, v_f64, double, 8, 1, SAME, SAME)
FORMAT(f16, v_f32, float, 2, 2, GET_f16, PUT_f16)
FORMAT(bf16, v_f32, float, 2, 2, GET_bf16, PUT_bf16)
FORMAT(f8e4m3fn, v_f32, float, 1, 4, GET_f8e4m3fn, PUT_f8e4m3fn)
FORMAT(f8e5m2, v_f32, float, 1, 4, GET_f8e5m2, PUT_f8e5m2)

/* ---- What is done to finished vectors, four of them or one, before they are put. ---- */
#ifndef CANON_f32
#define CANON_f32(x) SELECT(v_f32, (x) == (x), x, (v_u32){ 0 } + NAN_F32)
#define CANON_f64(x) SELECT(v_f64, (x) == (x), x, (v_u64){ 0 } + NAN_F64)
#endif
#ifndef ANY_NAN_f32
#define ANY_NAN_f32(a, b, c, d) true
#define ANY_NAN_f64(a, b, c, d) true
#endif

#define LAST_STEP(type, number)                                                 \
    INLINE v_##type last_step_##type(v_##type x, double by, tti_last_step last) \
    {                                                                           \
        return last == TTI_LAST_DIVIDE ? x / (number)by : x * (number)by;       \
    }

LAST_STEP(f32, float)
LAST_STEP(f64, double)

#define END_REAL(type, a, by, last)              \
    do {                                         \
        if ((last) != TTI_LAST_NONE)             \
            (a) = last_step_##type(a, by, last); \
        (a) = CANON_##type(a);                   \
    } while (0)

#define END_REALS(type, a, b, c, d, by, last)    \
    do {                                         \
        if ((last) != TTI_LAST_NONE) {           \
            (a) = last_step_##type(a, by, last); \
            (b) = last_step_##type(b, by, last); \
            (c) = last_step_##type(c, by, last); \
            (d) = last_step_##type(d, by, last); \
        }                                        \
        if (ANY_NAN_##type(a, b, c, d)) {        \
            (a) = CANON_##type(a);               \
            (b) = CANON_##type(b);               \
            (c) = CANON_##type(c);               \
            (d) = CANON_##type(d);               \
        }                                        \
    } while (0)

#define NOTHING(by, last) ((void)(by), (void)(last))

#define END_ONE_truth(a, by, last)              NOTHING(by, last)
#define END_FOUR_truth(a, b, c, d, by, last)    NOTHING(by, last)
#define END_ONE_u8(a, by, last)                 NOTHING(by, last)
#define END_FOUR_u8(a, b, c, d, by, last)       NOTHING(by, last)
#define END_ONE_i8(a, by, last)                 NOTHING(by, last)
#define END_FOUR_i8(a, b, c, d, by, last)       NOTHING(by, last)
#define END_ONE_u16(a, by, last)                NOTHING(by, last)
#define END_FOUR_u16(a, b, c, d, by, last)      NOTHING(by, last)
#define END_ONE_i16(a, by, last)                NOTHING(by, last)
#define END_FOUR_i16(a, b, c, d, by, last)      NOTHING(by, last)
#define END_ONE_u32(a, by, last)                NOTHING(by, last)
#define END_FOUR_u32(a, b, c, d, by, last)      NOTHING(by, last)
#define END_ONE_i32(a, by, last)                NOTHING(by, last)
#define END_FOUR_i32(a, b, c, d, by, last)      NOTHING(by, last)
#define END_ONE_u64(a, by, last)                NOTHING(by, last)
#define END_FOUR_u64(a, b, c, d, by, last)      NOTHING(by, last)
#define END_ONE_i64(a, by, last)                NOTHING(by, last)
#define END_FOUR_i64(a, b, c, d, by, last)      NOTHING(by, last)
#define END_ONE_f32(a, by, last)                END_REAL(f32, a, by, last)
#define END_FOUR_f32(a, b, c, d, by, last)      END_REALS(f32, a, b, c, d, by, last)
#define END_ONE_f64(a, by, last)                END_REAL(f64, a, by, last)
#define END_FOUR_f64(a, b, c, d, by, last)      END_REALS(f64, a, b, c, d, by, last)
#define END_ONE_f16(a, by, last)                END_REAL(f32, a, by, last)
#define END_FOUR_f16(a, b, c, d, by, last)      END_REALS(f32, a, b, c, d, by, last)
#define END_ONE_bf16(a, by, last)               END_REAL(f32, a, by, last)
#define END_FOUR_bf16(a, b, c, d, by, last)     END_REALS(f32, a, b, c, d, by, last)
#define END_ONE_f8e4m3fn(a, by, last)           END_REAL(f32, a, by, last)
#define END_FOUR_f8e4m3fn(a, b, c, d, by, last) END_REALS(f32, a, b, c, d, by, last)
#define END_ONE_f8e5m2(a, by, last)             END_REAL(f32, a, by, last)
#define END_FOUR_f8e5m2(a, b, c, d, by, last)   END_REALS(f32, a, b, c, d, by, last)

/* ---- Operations. ---- */
#define LEFT_IF(type, test, x, y) SELECT(type, test, x, y)
#define LESS(type, x, y)          SELECT(type, (x) < (y), x, y)
#define MORE(type, x, y)          SELECT(type, (x) > (y), x, y)
#define LESS_REAL(type, x, y)     SELECT(type, ((x) < (y)) | ((x) != (x)), x, y)
#define MORE_REAL(type, x, y)     SELECT(type, ((x) > (y)) | ((x) != (x)), x, y)

#ifndef MIN_u8
#define MIN_u8(x, y) LESS(v_u8, x, y)
#define MAX_u8(x, y) MORE(v_u8, x, y)
#endif
#ifndef MIN_i8
#define MIN_i8(x, y) LESS(v_i8, x, y)
#define MAX_i8(x, y) MORE(v_i8, x, y)
#endif
#ifndef MIN_u16
#define MIN_u16(x, y) LESS(v_u16, x, y)
#define MAX_u16(x, y) MORE(v_u16, x, y)
#endif
#ifndef MIN_i16
#define MIN_i16(x, y) LESS(v_i16, x, y)
#define MAX_i16(x, y) MORE(v_i16, x, y)
#endif
#ifndef MIN_u32
#define MIN_u32(x, y) LESS(v_u32, x, y)
#define MAX_u32(x, y) MORE(v_u32, x, y)
#define MIN_i32(x, y) LESS(v_i32, x, y)
#define MAX_i32(x, y) MORE(v_i32, x, y)
#endif
#ifndef MIN_u64
#define MIN_u64(x, y) LESS(v_u64, x, y)
#define MAX_u64(x, y) MORE(v_u64, x, y)
#define MIN_i64(x, y) LESS(v_i64, x, y)
#define MAX_i64(x, y) MORE(v_i64, x, y)
#endif
#ifndef MIN_f32
#define MIN_f32(x, y) LESS_REAL(v_f32, x, y)
#define MAX_f32(x, y) MORE_REAL(v_f32, x, y)
#define MIN_f64(x, y) LESS_REAL(v_f64, x, y)
#define MAX_f64(x, y) MORE_REAL(v_f64, x, y)
#endif
#define MIN_f16      MIN_f32
#define MAX_f16      MAX_f32
#define MIN_bf16     MIN_f32
#define MAX_bf16     MAX_f32
#define MIN_f8e4m3fn MIN_f32
#define MAX_f8e4m3fn MAX_f32
#define MIN_f8e5m2   MIN_f32
#define MAX_f8e5m2   MAX_f32

#define ONE_sum(format, x, y)     ((x) + (y))
#define ONE_product(format, x, y) ((x) * (y))
#define ONE_min(format, x, y)     MIN_##format(x, y)
#define ONE_max(format, x, y)     MAX_##format(x, y)
#define ONE_band(format, x, y)    ((x) & (y))
#define ONE_bor(format, x, y)     ((x) | (y))
#define ONE_bxor(format, x, y)    ((x) ^ (y))

/* ---- A loop. ---- width is the number of inputs where the compiler shall know it, else 0. */
#define LOOP_BODY(op, format)                                                                  \
    INLINE void op##_##format##_by(const tti_pass *pass, const int width)                      \
    {                                                                                          \
        enum { LANES = LANES_##format, BYTES = BYTES_##format, STEP = LANES * BYTES };         \
        typedef vec_##format vec;                                                              \
        const void *const *in = pass->in;                                                      \
        void *const *outs = pass->outs;                                                        \
        const int n_in = width > 0 ? width : pass->n_in, n_outs = pass->n_outs;                \
        const tti_last_step last = pass->last;                                                 \
        const bool past = pass->past_caches;                                                   \
        const double by = pass->by;                                                            \
        const int64_t to = pass->to;                                                           \
        int64_t i = pass->from;                                                                \
        const byte *p[WIDTH_MAX];                                                              \
                                                                                               \
        _Pragma("GCC unroll 8") for (int k = 0; k < width; k++) p[k] = in[k];                  \
        for (; to - i >= 4 * LANES; i += 4 * LANES) {                                          \
            const int64_t at = i * BYTES;                                                      \
            const byte *q = (const byte *)(width > 0 ? p[0] : in[0]) + at;                     \
            vec a = get_##format(q), b = get_##format(q + STEP);                               \
            vec c = get_##format(q + 2 * STEP), d = get_##format(q + 3 * STEP);                \
                                                                                               \
            _Pragma("GCC unroll 8") for (int k = 1; k < n_in; k++)                             \
            {                                                                                  \
                q = (const byte *)(width > 0 ? p[k] : in[k]) + at;                             \
                a = ONE_##op(format, a, get_##format(q));                                      \
                b = ONE_##op(format, b, get_##format(q + STEP));                               \
                c = ONE_##op(format, c, get_##format(q + 2 * STEP));                           \
                d = ONE_##op(format, d, get_##format(q + 3 * STEP));                           \
            }                                                                                  \
            END_FOUR_##format(a, b, c, d, by, last);                                           \
            for (int m = 0; m < n_outs; m++) {                                                 \
                byte *o = (byte *)outs[m] + at;                                                \
                                                                                               \
                put_##format(o, a, past);                                                      \
                put_##format(o + STEP, b, past);                                               \
                put_##format(o + 2 * STEP, c, past);                                           \
                put_##format(o + 3 * STEP, d, past);                                           \
            }                                                                                  \
        }                                                                                      \
        for (; i < to; i += LANES) {                                                           \
            const int64_t at = i * BYTES;                                                      \
            const size_t left = (size_t)(to - i) * BYTES;                                      \
            const bool whole = left >= STEP;                                                   \
            const byte *q = (const byte *)in[0] + at;                                          \
            vec a = whole ? get_##format(q) : get_part_##format(q, left);                      \
                                                                                               \
            for (int k = 1; k < n_in; k++) {                                                   \
                q = (const byte *)in[k] + at;                                                  \
                a = ONE_##op(format, a, whole ? get_##format(q) : get_part_##format(q, left)); \
            }                                                                                  \
            END_ONE_##format(a, by, last);                                                     \
            for (int m = 0; m < n_outs; m++)                                                   \
                if (whole)                                                                     \
                    put_##format((byte *)outs[m] + at, a, past);                               \
                else                                                                           \
                    put_part_##format((byte *)outs[m] + at, a, left);                          \
        }                                                                                      \
    }

/* Any number of inputs by one loop. */
#define LOOP_PLAIN(op, format)                      \
    LOOP_BODY(op, format)                           \
    static void op##_##format(const tti_pass *pass) \
    {                                               \
        op##_##format##_by(pass, 0);                \
    }

/* 2 to 8 inputs by loops of their own. */
#define LOOP(op, format)                             \
    LOOP_BODY(op, format)                            \
    static void op##_##format(const tti_pass *pass)  \
    {                                                \
        switch (pass->n_in) {                        \
        case 2: op##_##format##_by(pass, 2); break;  \
        case 3: op##_##format##_by(pass, 3); break;  \
        case 4: op##_##format##_by(pass, 4); break;  \
        case 5: op##_##format##_by(pass, 5); break;  \
        case 6: op##_##format##_by(pass, 6); break;  \
        case 7: op##_##format##_by(pass, 7); break;  \
        case 8: op##_##format##_by(pass, 8); break;  \
        default: op##_##format##_by(pass, 0); break; \
        }                                            \
    }

#define SMALLS(each, op)   each(op, f16) each(op, bf16) each(op, f8e4m3fn) each(op, f8e5m2)
#define UNSIGNED(each, op) each(op, u8) each(op, u16) each(op, u32) each(op, u64)
#define SIGNED(each, op)   each(op, i8) each(op, i16) each(op, i32) each(op, i64)

LOOP(sum, f32)
LOOP(sum, f64)
LOOP(sum, f16)
LOOP(sum, bf16)
LOOP_PLAIN(sum, f8e4m3fn)
LOOP_PLAIN(sum, f8e5m2)
UNSIGNED(LOOP_PLAIN, sum)
LOOP_PLAIN(product, f32)
LOOP_PLAIN(product, f64)
SMALLS(LOOP_PLAIN, product)
UNSIGNED(LOOP_PLAIN, product)
LOOP_PLAIN(min, f32)
LOOP_PLAIN(min, f64)
SMALLS(LOOP_PLAIN, min)
UNSIGNED(LOOP_PLAIN, min)
SIGNED(LOOP_PLAIN, min)
LOOP_PLAIN(max, f32)
LOOP_PLAIN(max, f64)
SMALLS(LOOP_PLAIN, max)
UNSIGNED(LOOP_PLAIN, max)
SIGNED(LOOP_PLAIN, max)
LOOP_PLAIN(band, u8)
LOOP_PLAIN(bor, u8)
LOOP_PLAIN(bxor, u8)
LOOP_PLAIN(band, truth)
LOOP_PLAIN(bor, truth)
LOOP_PLAIN(bxor, truth)

/* ---- The table. ---- */
#define REALS_OF(op)                                                        \
    [TUTTI_F32] = op##_f32, [TUTTI_F64] = op##_f64, [TUTTI_F16] = op##_f16, \
    [TUTTI_BF16] = op##_bf16, [TUTTI_F8E4M3FN] = op##_f8e4m3fn, [TUTTI_F8E5M2] = op##_f8e5m2
#define UNSIGNED_OF(op) \
    [TUTTI_U8] = op##_u8, [TUTTI_U16] = op##_u16, [TUTTI_U32] = op##_u32, [TUTTI_U64] = op##_u64
#define SIGNED_OF(op) \
    [TUTTI_I8] = op##_i8, [TUTTI_I16] = op##_i16, [TUTTI_I32] = op##_i32, [TUTTI_I64] = op##_i64

const tti_loop_table LOOP_TABLE = {
    [TUTTI_OP_SUM] = { [TUTTI_BOOL] = bor_truth, UNSIGNED_OF(sum), REALS_OF(sum) },
    [TUTTI_OP_PRODUCT] = { [TUTTI_BOOL] = band_truth, UNSIGNED_OF(product), REALS_OF(product) },
    [TUTTI_OP_MIN] = { [TUTTI_BOOL] = band_truth, UNSIGNED_OF(min), SIGNED_OF(min), REALS_OF(min) },
    [TUTTI_OP_MAX] = { [TUTTI_BOOL] = bor_truth, UNSIGNED_OF(max), SIGNED_OF(max), REALS_OF(max) },
    [TUTTI_OP_BAND] = { [TUTTI_BOOL] = band_truth, [TUTTI_U8] = band_u8 },
    [TUTTI_OP_BOR] = { [TUTTI_BOOL] = bor_truth, [TUTTI_U8] = bor_u8 },
    [TUTTI_OP_BXOR] = { [TUTTI_BOOL] = bxor_truth, [TUTTI_U8] = bxor_u8 },
};

#endif
