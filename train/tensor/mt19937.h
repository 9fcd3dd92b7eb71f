/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mt19937.h - the Mersenne Twister, seeded in the two ways that our references seed it. */
#ifndef TTI_TRAIN_TENSOR_MT19937_H
#define TTI_TRAIN_TENSOR_MT19937_H

#include <stdint.h>

enum { TTI_MT_WORDS = 624 };

/* 19937 bits of state. pos counts the words already handed out; TTI_MT_WORDS means "twist first".
 */
typedef struct tti_mt19937 {
    uint32_t word[TTI_MT_WORDS];
    int pos;
} tti_mt19937;

/* Seed from one word, as torch.manual_seed does with the low half of its seed. */
void tti_mt19937_seed(tti_mt19937 *mt, uint32_t seed);

/* Seed from n >= 1 words, least significant first, as CPython's random.seed(int) does: the key is
 * the integer's absolute value in base 2^32. */
void tti_mt19937_seed_array(tti_mt19937 *mt, const uint32_t *key, int n);

/* The next output, uniform over 0 .. 2^32-1. */
uint32_t tti_mt19937_next(tti_mt19937 *mt);

/* From so many elements on torch.randperm draws 64 bits for each, the first word on top, and goes about it in another
 * way. */
#define TTI_MT_WIDE (INT64_C(0xffffffff) / 20)

/* Put the n numbers of a into the order of torch.randperm: each place from the front is swapped with one at or
 * behind it; of a very long row with one at or before it. */
void tti_mt19937_permute(tti_mt19937 *mt, int64_t n, int64_t *a);

#endif
