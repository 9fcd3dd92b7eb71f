/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sample.h - statistics of measured times. */
#ifndef TUTTI_BENCH_SAMPLE_H
#define TUTTI_BENCH_SAMPLE_H

#include <stdint.h>

/** Sort values, ascending. */
void bench_sort(uint64_t *values, int n);

/** The q-quantile, 0 <= q <= 1, of n > 0 sorted values: between two of them by how near it is to each. */
double bench_quantile(const uint64_t *sorted, int n, double q);

#endif
