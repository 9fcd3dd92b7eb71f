/* SPDX-License-Identifier: BSD-3-Clause
 *
 * math_avx512.c - the loops for AVX-512 (F, BW, DQ, VL). */
#define TTI_MATH tti_math_avx512
#include "tensor/loops.h"
