/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scale.c - one buffer times a number, and zeros.
 *
 * Scaling is the sum of one input whose end is a product: the loops of reduce.c, with their rounding. */
#include <assert.h>
#include <string.h>
#include "kernel/fp_mode.h"
#include "kernel/kernel.h"
#include "kernel/level.h"

void tti_scale(void *out, const void *in, int64_t count, double factor, tutti_dtype dtype)
{
    const bool pairs = dtype == TUTTI_C64 || dtype == TUTTI_C128;
    const tutti_dtype unit = dtype == TUTTI_C64    ? TUTTI_F32
                             : dtype == TUTTI_C128 ? TUTTI_F64
                                                   : dtype;
    const tti_pass pass = { .outs = &out,
                            .n_outs = 1,
                            .in = &in,
                            .n_in = 1,
                            .to = pairs ? 2 * count : count,
                            .last = TTI_LAST_MULTIPLY,
                            .by = factor };
    uint64_t mode;

    assert(count >= 0);
    if (count == 0)
        return;
    mode = tti_fp_enter();
    (*tti_loops())[TUTTI_OP_SUM][unit](&pass);
    tti_fp_leave(mode);
}

void tti_fill_zero(void *out, int64_t count, tutti_dtype dtype)
{
    if (count > 0)
        memset(out, 0, (size_t)count * tutti_dtype_size(dtype)); /* zero bits are zero everywhere */
}
