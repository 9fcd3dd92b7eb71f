/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel/zeros.h - which blocks of a buffer have nothing in them but zeros. */
#ifndef TTI_KERNEL_ZEROS_H
#define TTI_KERNEL_ZEROS_H

#include <stdint.h>
#include <tutti/dtype.h>

typedef enum tti_zeros {
    TTI_ZEROS_NONE,    /* there is another number */
    TTI_ZEROS_SIGNED,  /* zeros, some of them negative */
    TTI_ZEROS_PLAIN    /* zeros of zero bits */
} tti_zeros;

/** What n numbers are. Of f16, bf16, f32 or f64; NaN is another number. */
tti_zeros tti_zeros_of(const void *in, tutti_dtype dtype, int64_t n);

#endif
