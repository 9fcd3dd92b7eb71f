/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loops_avx2.c - the same loops, compiled for AVX2 (CMakeLists.txt); blocks.c asks the processor. */
#define LOOPS tti_optim_loops_avx2
#include "optim/loops_all.h"
