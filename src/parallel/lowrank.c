/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lowrank.c - a matrix as the product of two thin ones, for ranks that must come to the same bits.
 *
 * Why     The matrix is long, the others have a few columns: every loop is bound by reading M, so four rows at a time
 *         with plain vectors are as fast as a BLAS, which libtutti has none of.
 * How     A sum runs over the lanes of a vector of 32 bytes, which are added up at the end, halves first; rows go four by
 *         four. The compiler makes of a vector what the machine has.
 * True    The order of all additions is written here: no machine, and no instruction set, has other bits. Lengths
 *         and projections of f32 are added up in f64, rounded once. Random numbers are sums of whole numbers: they
 *         need no function of the C library, which rounds as it likes.
 *         A column of which less than NOISE is left when what it has in common with those before it is taken out
 *         is zero: what is left are rounding errors, which do not stand at right angles to anything. */
#include "parallel/lowrank.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { VECTOR_BYTES = 32, ROWS = 4 };

static const double AGAIN = 0.1;

#define T       float
#define NAME(x) x##_f32
#define LANES   8
#define NOISE   (32.0 * (double)FLT_EPSILON)
#include "parallel/lowrank_loops.h"
#undef T
#undef NAME
#undef LANES
#undef NOISE

#define T       double
#define NAME(x) x##_f64
#define LANES   4
#define NOISE   (32.0 * DBL_EPSILON)
#include "parallel/lowrank_loops.h"
#undef T
#undef NAME
#undef LANES
#undef NOISE

static bool is_f32(tutti_dtype dtype)
{
    assert(dtype == TUTTI_F32 || dtype == TUTTI_F64);
    return dtype == TUTTI_F32;
}

void tti_lowrank_left(const tti_matrix *of, const void *m, const void *q, void *p)
{
    if (is_f32(of->dtype))
        left_f32(of, m, q, p);
    else
        left_f64(of, m, q, p);
}

void tti_lowrank_right(const tti_matrix *of, const void *m, const void *p, void *q)
{
    if (is_f32(of->dtype))
        right_f32(of, m, p, q);
    else
        right_f64(of, m, p, q);
}

void tti_lowrank_row(const tti_matrix *of, const void *p, const void *q, int64_t i, void *out)
{
    if (is_f32(of->dtype))
        row_f32(of, p, q, i, out);
    else
        row_f64(of, p, q, i, out);
}

void tti_lowrank_add(tutti_dtype dtype, void *x, const void *y, int64_t n)
{
    if (is_f32(dtype))
        add_f32(x, y, n);
    else
        add_f64(x, y, n);
}

void tti_lowrank_subtract(tutti_dtype dtype, void *x, const void *y, int64_t n)
{
    if (is_f32(dtype))
        subtract_f32(x, y, n);
    else
        subtract_f64(x, y, n);
}

void tti_lowrank_orthogonalise(tutti_dtype dtype, void *a, int64_t n, int k, double epsilon)
{
    if (is_f32(dtype))
        orthogonalise_f32(a, n, k, epsilon);
    else
        orthogonalise_f64(a, n, k, epsilon);
}

bool tti_lowrank_is_zero(tutti_dtype dtype, const void *x, int64_t n)
{
    return is_f32(dtype) ? is_zero_f32(x, n) : is_zero_f64(x, n);
}

bool tti_lowrank_is_finite(tutti_dtype dtype, const void *x, int64_t n)
{
    return is_f32(dtype) ? is_finite_f32(x, n) : is_finite_f64(x, n);
}

/* ---- random numbers ---- */

/* The end of splitmix64 (Steele, Lea & Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t tti_lowrank_key(uint64_t seed, uint64_t a, uint64_t b)
{
    return mix(mix(mix(seed + 1) + a) + b);
}

/* Twelve numbers of 16 bits have a variance of 2^32: their sum, less its mean, is 65536 times a normal number, nearly. */
static double nearly_normal(uint64_t key, uint64_t element)
{
    enum { WORDS = 3, MEAN = 6 * 0xffff };
    int64_t sum = -MEAN;
    int     w;

    for (w = 0; w < WORDS; w++) {
        const uint64_t x = mix(key + (element * WORDS + (uint64_t)w + 1) * UINT64_C(0x9e3779b97f4a7c15));

        sum += (int64_t)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48));
    }
    return (double)sum / 65536.0;
}

void tti_lowrank_draw(tutti_dtype dtype, void *out, int64_t n, uint64_t key, uint64_t first)
{
    int64_t j;

    for (j = 0; j < n; j++)
        if (is_f32(dtype))
            ((float *)out)[j] = (float)nearly_normal(key, first + (uint64_t)j);
        else
            ((double *)out)[j] = nearly_normal(key, first + (uint64_t)j);
}
