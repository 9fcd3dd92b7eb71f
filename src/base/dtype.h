/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/dtype.h - the size of an element without a call: a small operation asks for it a dozen times. */
#ifndef TTI_BASE_DTYPE_H
#define TTI_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <tutti/dtype.h>

/** Bytes of an element, as tutti_dtype_size(); 0: it is no dtype. */
static inline size_t tti_dtype_bytes(tutti_dtype dtype)
{
    static const uint8_t bytes[TUTTI_DTYPE_COUNT] = {
        [TUTTI_BOOL] = 1, [TUTTI_U8] = 1,  [TUTTI_I8] = 1,       [TUTTI_U16] = 2,    [TUTTI_I16] = 2, [TUTTI_U32] = 4,
        [TUTTI_I32] = 4,  [TUTTI_U64] = 8, [TUTTI_I64] = 8,      [TUTTI_F16] = 2,    [TUTTI_BF16] = 2, [TUTTI_F32] = 4,
        [TUTTI_F64] = 8,  [TUTTI_C64] = 8, [TUTTI_F8E4M3FN] = 1, [TUTTI_F8E5M2] = 1, [TUTTI_C128] = 16,
    };

    return (unsigned)dtype < TUTTI_DTYPE_COUNT ? bytes[dtype] : 0;
}

#endif
