/* SPDX-License-Identifier: BSD-3-Clause
 *
 * planes_base.c - vectors of four, which every processor has. */
#define LANES   4
#define OUTS    4
#define VECTORS 2
#define TILE    2
#define TAPS    5
#define TABLE   tti_planes_base
#include "nn/planes_loops.h"
