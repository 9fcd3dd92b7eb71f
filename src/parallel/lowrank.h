/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lowrank.h - a matrix as the product of two thin ones: the four loops that PowerSGD is made of.
 *
 * M is [rows][cols], row by row. The thin ones lie column by column, each column without gaps: P is [k][rows] and Q is
 * [k][cols]. All of one dtype, f32 or f64. Bits depend on the numbers alone, not on the machine: lowrank.c. */
#ifndef TTI_PARALLEL_LOWRANK_H
#define TTI_PARALLEL_LOWRANK_H

#include <stdbool.h>
#include <tutti/dtype.h>

typedef struct tti_matrix {
    tutti_dtype dtype; /* f32 or f64 */
    int64_t     rows, cols;
    int         k; /* columns of P and of Q */
} tti_matrix;

/** P = M Q. Reads M once. */
void tti_lowrank_left(const tti_matrix *of, const void *m, const void *q, void *p);
/** Q = M^T P. Reads M once. */
void tti_lowrank_right(const tti_matrix *of, const void *m, const void *p, void *q);
/** Row i of P Q^T: out is [cols]. */
void tti_lowrank_row(const tti_matrix *of, const void *p, const void *q, int64_t i, void *out);

/** x += y, and x -= y. */
void tti_lowrank_add(tutti_dtype dtype, void *x, const void *y, int64_t n);
void tti_lowrank_subtract(tutti_dtype dtype, void *x, const void *y, int64_t n);

/** Make the k columns of a, n elements each, orthonormal, from the first on, each divided by its length + epsilon. One
 * that depends on those before it, or is zero, becomes zero. */
void tti_lowrank_orthogonalise(tutti_dtype dtype, void *a, int64_t n, int k, double epsilon);

bool tti_lowrank_is_zero(tutti_dtype dtype, const void *x, int64_t n);
bool tti_lowrank_is_finite(tutti_dtype dtype, const void *x, int64_t n);

/** n numbers that are nearly normal, the same on every machine: of the stream key, from element first on. */
void tti_lowrank_draw(tutti_dtype dtype, void *out, int64_t n, uint64_t key, uint64_t first);
/** A stream for each seed, and for each two numbers. */
uint64_t tti_lowrank_key(uint64_t seed, uint64_t a, uint64_t b);

#endif
