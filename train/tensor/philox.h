/* SPDX-License-Identifier: BSD-3-Clause
 *
 * philox.h - random numbers by counting: number i of a stream without those before it.
 *
 * Source  Salmon, Moraes, Dror & Shaw 2011: Philox4x32 with 10 rounds; its known answers are in
 *         random_test.c. */
#ifndef TTI_TRAIN_TENSOR_PHILOX_H
#define TTI_TRAIN_TENSOR_PHILOX_H

#include <stdint.h>

/* Four numbers out of the counter c[4] and the key k. */
static inline void tti_philox(const uint32_t *c, uint64_t k, uint32_t *out)
{
    uint32_t c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
    uint32_t k0 = (uint32_t)k, k1 = (uint32_t)(k >> 32);

    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)c0 * 0xD2511F53u, p1 = (uint64_t)c2 * 0xCD9E8D57u;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

#endif
