/* SPDX-License-Identifier: BSD-3-Clause
 *
 * planes_avx512.c - vectors of sixteen, 32 registers. */
#define LANES   16
#define OUTS    6
#define VECTORS 4
#define TILE    5
#define TAPS    5
#define TABLE   tti_planes_avx512
#include "nn/planes_loops.h"
