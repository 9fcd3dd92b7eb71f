/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_ops.h - an operation of a cell as plain loads and stores. */
#ifndef TUTTI_BENCH_LIMIT_OPS_H
#define TUTTI_BENCH_LIMIT_OPS_H

#include "side.h"

/** What a cell takes in its form, which is not BENCH_PLAIN; NULL if there is no such thing. */
bench_op_fn limit_op(const bench_cell *cell);

#endif
