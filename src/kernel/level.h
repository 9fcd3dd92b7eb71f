/* SPDX-License-Identifier: BSD-3-Clause
 *
 * level.h - the seam between what a reduction is (reduce.c) and the loops for one set of instructions.
 *
 * Why     One library runs on machines that differ in what they can do at once. Which loops it takes is
 *         decided when it runs; all of them give the same bits. */
#ifndef TTI_KERNEL_LEVEL_H
#define TTI_KERNEL_LEVEL_H

#include <stdbool.h>
#include <stdint.h>
#include <tutti/dtype.h>

/* What happens to a finished number before it is rounded to its format. */
typedef enum tti_last_step {
    TTI_LAST_NONE,
    TTI_LAST_DIVIDE,   /* by .by: AVG */
    TTI_LAST_MULTIPLY, /* by .by: the scaling of PREMUL_SUM */
} tti_last_step;

/* One pass: elements from .. to - 1 of all inputs, combined, into all outputs. */
typedef struct tti_pass {
    void *const *outs;
    const void *const *in;
    int64_t from, to; /* in units: a complex element is two of them */
    double by;
    int n_outs, n_in;
    tti_last_step last;
    bool past_caches;
} tti_pass;

typedef void tti_loop(const tti_pass *pass);

/* [operation][dtype of a unit]; NULL where there is none. AVG and PREMUL_SUM have empty rows: they are
 * SUM. Bit-wise operations are listed for u8 and bool only, sums and products of integers as unsigned. */
typedef tti_loop *tti_loop_table[TUTTI_OP_COUNT][TUTTI_DTYPE_COUNT];

/* Of the files of that name. */
extern const tti_loop_table tti_loops_sse2, tti_loops_avx2, tti_loops_avx512, tti_loops_neon;

/* Sets of instructions, from what every machine of its kind has upwards. */
typedef enum tti_level {
    TTI_LEVEL_BASE,   /* SSE2, or NEON */
    TTI_LEVEL_AVX2,   /* and F16C */
    TTI_LEVEL_AVX512, /* F, BW, DQ, VL */
    TTI_LEVEL_COUNT
} tti_level;

/** Its name in TUTTI_ISA. */
const char *tti_level_name(tti_level level);

/** Whether processor and kernel can do it. */
bool tti_level_works(tti_level level);

/** The level in use: the highest that works, or the one in TUTTI_ISA. Decided at the first call. */
tti_level tti_level_now(void);

/** Use another one from now on, for tests of all of them in one process; it must work. */
void tti_level_use(tti_level level);

/** The loops of the level in use; a constant. */
const tti_loop_table *tti_loops(void);

#endif
