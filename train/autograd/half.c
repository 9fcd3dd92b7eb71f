/* SPDX-License-Identifier: BSD-3-Clause
 *
 * half.c - tensors of 16 bits on their way through operations that know f32 and f64.
 *
 * True    Operands are widened, which is exact, and the result is rounded once. So is the gradient on its
 *         way back: conversions are recorded like everything else. */
#include "autograd/autograd.h"

tutti_tensor *tti_widened(tutti_tensor *x)
{
    return tti_has_half(x) ? tutti_tensor_to(x, TUTTI_F32) : x;
}

tutti_tensor *tti_rounded(tutti_tensor *y, tutti_dtype dtype)
{
    if (y != NULL)
        y = tutti_tensor_retain(tutti_tensor_to(y, dtype));
    tutti_scope_end();
    return tti_temp(y);
}
