/* SPDX-License-Identifier: BSD-3-Clause
 *
 * step.h - the innermost loops, and the table through which reduce.c finds them.
 *
 * Why     Machines differ only in how fast they combine runs of equal numbers. A file for one
 *         instruction set brings a table of the same shape and the same bits; everything else,
 *         order, blocks, widening and division, is said once, in reduce.c.
 * How     A step works on units: numbers that a machine adds (a component of a complex element, a
 *         byte of a bit-wise operation). The table is indexed by operation and unit type. */
#ifndef TTI_KERNEL_STEP_H
#define TTI_KERNEL_STEP_H

#include <stdint.h>
#include <tutti/dtype.h>

/* Most inputs that a step takes at once. */
enum { TTI_STEP_WIDTH_MAX = 8 };

/* out[i] = in[0][i] op in[1][i] op ... op in[width - 1][i], from left to right; width is 1, 2, 3, 4
 * or 8. out may be any of the inputs, at the same address. count is in units. */
typedef void tti_step_fn(void *out, const void *const *in, int width, int64_t count);

/* [operation][dtype of a unit]; NULL where there is none. AVG and PREMUL_SUM have empty rows: they
 * are SUM. */
typedef tti_step_fn *tti_step_table[TUTTI_OP_COUNT][TUTTI_DTYPE_COUNT];

/* In plain C, for every machine. */
extern const tti_step_table tti_steps_c;

/* Iterations do not depend on each other even where the compiler must fear it: out is an input or
 * apart from it, never shifted against it. */
#if defined(__clang__)
#define TTI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TTI_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
