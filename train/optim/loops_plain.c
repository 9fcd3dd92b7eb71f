/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loops_plain.c - the loops for every processor. */
#define LOOPS tti_optim_loops_plain
#include "optim/loops_all.h"
