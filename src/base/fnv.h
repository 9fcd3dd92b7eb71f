/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/fnv.h - FNV-1a: fingerprints of what needs no protection from anybody. */
#ifndef TTI_BASE_FNV_H
#define TTI_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define TTI_FNV_BEGIN UINT64_C(0xcbf29ce484222325)

/** Go on with a fingerprint, TTI_FNV_BEGIN at first. */
static inline uint64_t tti_fnv(uint64_t print, const void *data, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)data;
    size_t         i;

    for (i = 0; i < bytes; i++)
        print = (print ^ at[i]) * UINT64_C(0x100000001b3);
    return print;
}

#endif
