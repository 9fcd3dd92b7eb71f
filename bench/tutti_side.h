/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti_side.h - tutti as a contender: the world that the environment describes. */
#ifndef TUTTI_BENCH_TUTTI_SIDE_H
#define TUTTI_BENCH_TUTTI_SIDE_H

#include <tutti/group.h>
#include "side.h"

extern const bench_side bench_tutti_side;

/** Whose calls are measured; NULL, as it is at first: the world. It has the world's ranks. A contender's process
 * is one thread of calls, so that this is nobody else's. */
extern tutti_group *bench_tutti_group;

#endif
