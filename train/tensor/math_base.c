/* SPDX-License-Identifier: BSD-3-Clause
 *
 * math_base.c - the loops for what every processor of its kind can do (SSE2, NEON). */
#define TTI_MATH tti_math_base
#include "tensor/loops.h"
