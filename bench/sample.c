/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sample.c - order statistics. */
#include "sample.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void bench_sort(uint64_t *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
}

double bench_quantile(const uint64_t *sorted, int n, double q)
{
    const double at = q * (n - 1);
    const int below = (int)at;
    const int above = below + 1 < n ? below + 1 : below;

    return (double)sorted[below] + (at - below) * ((double)sorted[above] - (double)sorted[below]);
}
