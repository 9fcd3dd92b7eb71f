/* SPDX-License-Identifier: BSD-3-Clause
 *
 * math_avx2.c - the loops for AVX2. */
#define TTI_MATH tti_math_avx2
#include "tensor/loops.h"
