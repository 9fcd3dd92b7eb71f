/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti_side.h - tutti as a contender: the world that the environment describes. */
#ifndef TUTTI_BENCH_TUTTI_SIDE_H
#define TUTTI_BENCH_TUTTI_SIDE_H

#include "side.h"

extern const bench_side bench_tutti_side;

#endif
