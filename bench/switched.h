/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switched.h - what a libtutti has that can do without its flight recorder, and without comparing calls: switched.c. */
#ifndef TUTTI_BENCH_SWITCHED_H
#define TUTTI_BENCH_SWITCHED_H

#include <stdbool.h>

/** From now on calls of this process are recorded, and are compared, or not. No call is under way, on any thread. */
void tutti_switch(bool recorder, bool checks);

#endif
