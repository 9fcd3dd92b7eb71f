/* SPDX-License-Identifier: BSD-3-Clause
 *
 * product.h - something to compute: products of two square matrices of f32.
 *
 * Plain C in blocks, compiled like everything else and linked to no library: it keeps a core busy, and its three
 * matrices of 256 KiB in the second cache, as a step of training does. It need not be the fastest of its kind,
 * because what is asked is how much slower it becomes. */
#ifndef TUTTI_BENCH_PRODUCT_H
#define TUTTI_BENCH_PRODUCT_H

#include <stdbool.h>

/** Compute the same product n times. */
void bench_product(int n);

/** Whether the last product was right, some elements of it. */
bool bench_product_is_right(void);

#endif
