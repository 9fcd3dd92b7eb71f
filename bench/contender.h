/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contender.h - the main() of every contender. */
#ifndef TUTTI_BENCH_CONTENDER_H
#define TUTTI_BENCH_CONTENDER_H

#include "side.h"

/** Serve peers.py until it hangs up; the arguments are main()'s, the result is an exit code. */
int bench_contender(const bench_side *side, int argc, char **argv);

#endif
