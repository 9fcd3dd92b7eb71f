/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zeros.c - one reading of a block, eight bytes a time, which compilers make as wide as the machine is.
 *
 * How     Bits of all numbers are collected, those of the signs apart. A block that has something mostly has it near its
 *         beginning, so that it is looked for in pieces. */
#include "kernel/zeros.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { PIECE = 512 }; /* bytes */

static uint64_t signs_of(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F16:
    case TUTTI_BF16: return UINT64_C(0x8000800080008000);
    case TUTTI_F32: return UINT64_C(0x8000000080000000);
    default: return UINT64_C(0x8000000000000000);
    }
}

/* All bits that are set somewhere in bytes, which are 8 or a multiple of it, or fewer. */
static uint64_t bits_of(const unsigned char *p, size_t bytes)
{
    uint64_t all = 0, word;
    size_t   i;

    for (i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        all |= word;
    }
    word = 0;
    memcpy(&word, p + i, bytes - i);
    return all | word;
}

tti_zeros tti_zeros_of(const void *in, tutti_dtype dtype, int64_t n)
{
    const unsigned char *p = in;
    const uint64_t       signs = signs_of(dtype);
    size_t               left = (size_t)n * tutti_dtype_size(dtype);
    uint64_t             all = 0;

    assert(dtype == TUTTI_F16 || dtype == TUTTI_BF16 || dtype == TUTTI_F32 || dtype == TUTTI_F64);
    while (left > 0) {
        const size_t bytes = left < PIECE ? left : PIECE;

        all |= bits_of(p, bytes);
        if ((all & ~signs) != 0)
            return TTI_ZEROS_NONE;
        p += bytes;
        left -= bytes;
    }
    return all != 0 ? TTI_ZEROS_SIGNED : TTI_ZEROS_PLAIN;
}
