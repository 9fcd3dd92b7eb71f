/* SPDX-License-Identifier: BSD-3-Clause
 *
 * level.h - the loops over rows of numbers, compiled once for each set of instructions.
 *
 * Why     Arithmetic on rows is as fast as the registers are wide, and one library runs on processors
 *         that differ in that. Which table is taken is decided when the program runs.
 * How     loops.h has the source; math_base.c, math_avx2.c and math_avx512.c compile it. TUTTI_ISA asks
 *         for less than the best.
 * True    In f32 every table gives the same bits: sums are kept in LANES partial sums whatever the
 *         width, and no two operations are fused. In f64 the functions are libm's. */
#ifndef TTI_TRAIN_TENSOR_LEVEL_H
#define TTI_TRAIN_TENSOR_LEVEL_H

#include "tensor/tensor.h"

enum { TTI_ARITH = 3 }; /* f32, f64, i64, in this order in every table */

/* An operation element by element; no loop: whole numbers are taken as f32. */
typedef struct tti_op1_row {
    const char *name;
    tti_loop loop[TTI_ARITH];
} tti_op1_row;

typedef struct tti_op3_row {
    const char *name;
    tti_loop3 loop[TTI_ARITH];
} tti_op3_row;

/* Rows of neighbouring numbers, for softmax and normalisation; f32 or f64. Sums are f64, of blocks that
 * are added up in LANES partial sums. */
typedef struct tti_row_ops {
    double (*max)(int64_t n, const void *x); /* of what is no NaN; -inf if there is nothing */
    /* y = e^(x - shift), and its sum. y may be x; NULL: only the sum. */
    double (*exp_sum)(int64_t n, const void *x, double shift, void *y);
    double (*sum)(int64_t n, const void *x);
    double (*dot)(int64_t n, const void *a, const void *b);
    double (*spread)(int64_t n, const void *x, double mean); /* sum of (x - mean)^2 */
    void (*scale)(int64_t n, void *x, double by);            /* x *= by */
    /* y = x - by - more, in this order */
    void (*shift)(int64_t n, const void *x, double by, double more, void *y);
    /* y = e^(x - shift) * by */
    void (*exp_scaled)(int64_t n, const void *x, double shift, double by, void *y);
    /* dx = y (g - s), of y = softmax(x); dx = g - e^y s, of y = log_softmax(x) */
    void (*softmax_back)(int64_t n, const void *g, const void *y, double s, void *dx);
    void (*log_softmax_back)(int64_t n, const void *g, const void *y, double s, void *dx);
    /* y = (x - mean) by * w + b; w and b may be NULL */
    void (*norm)(int64_t n, const void *x, double mean, double by, const void *w, const void *b,
                 void *y);
    /* Of h = (x - mean) by, with gw = g w: *gw_out = the sum of gw, *gwh_out = that of gw h */
    void (*norm_sums)(int64_t n, const void *g, const void *x, double mean, double by,
                      const void *w, double *gw_out, double *gwh_out);
    /* dx = by (gw - m1 - h m2) */
    void (*norm_back)(int64_t n, const void *g, const void *x, double mean, double by,
                      const void *w, double m1, double m2, void *dx);
    /* dw += g h, db += g; either may be NULL */
    void (*norm_params)(int64_t n, const void *g, const void *x, double mean, double by, double *dw,
                        double *db);
} tti_row_ops;

typedef struct tti_math {
    tti_op1_row op1[TTI_OP1_COUNT], op2[TTI_OP2_COUNT];
    tti_op3_row op3[TTI_OP3_COUNT];
    tti_row_ops rows[2]; /* f32, f64 */
} tti_math;

extern const tti_math tti_math_base, tti_math_avx2, tti_math_avx512;

typedef enum tti_math_level {
    TTI_MATH_BASE,
    TTI_MATH_AVX2,
    TTI_MATH_AVX512,
    TTI_MATH_COUNT
} tti_math_level;

/* The table of a level; NULL where this processor, or this build, has none. */
const tti_math *tti_math_of(tti_math_level level);
/* The table in use: the best, or the one that TUTTI_ISA names. */
const tti_math *tti_math_now(void);

static inline const tti_row_ops *tti_rows(tutti_dtype dtype)
{
    return &tti_math_now()->rows[dtype == TUTTI_F64];
}

#endif
