/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_kernel.h - the loads and stores of the limits: sums and copies of plain memory. */
#ifndef TUTTI_BENCH_LIMIT_KERNEL_H
#define TUTTI_BENCH_LIMIT_KERNEL_H

#include "cell.h"

/** outs[0..m-1][i] = ins[0][i] + ... + ins[k-1][i]: k loads, m stores, one pass. An output may be an input.
 * @param bypass  store past the caches, where the machine can and a buffer is aligned to 16 bytes */
void limit_sum(char *const *outs, int m, const char *const *ins, int k, int64_t count, bench_dtype dtype,
               bool bypass);

/** Copy bytes from one place to m others, loading them once. */
void limit_copy(char *const *outs, int m, const char *in, size_t bytes, bool bypass);

#endif
