/* SPDX-License-Identifier: BSD-3-Clause
 *
 * planes_avx2.c - vectors of eight, 16 registers. */
#define LANES   8
#define OUTS    4
#define VECTORS 3
#define TILE    2
#define TAPS    5
#define TABLE   tti_planes_avx2
#include "nn/planes_loops.h"
