/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mt19937.c - the Mersenne Twister, 32-bit outputs, period 2^19937 - 1.
 *
 * Why     Default initialisers, dropout masks, loaders and the data partitioner must draw the
 *         numbers that the same seed gives in PyTorch and in CPython.
 * How     A ring of 624 words; after every 624 outputs the whole ring is mixed once ("twist"),
 *         then words are handed out in order, each passed through an invertible scramble.
 * True    word[] is never all zero: both seeders guarantee it, so the sequence cannot get stuck.
 * Source  Matsumoto & Nishimura, ACM TOMACS 8(1), 1998, and their seeding note of 2002. */
#include "tensor/mt19937.h"

#include <assert.h>

enum { MIDDLE = 397 };

void tti_mt19937_seed(tti_mt19937 *mt, uint32_t seed)
{
    mt->word[0] = seed;
    for (uint32_t i = 1; i < TTI_MT_WORDS; i++) {
        const uint32_t before = mt->word[i - 1];

        mt->word[i] = 1812433253u * (before ^ (before >> 30)) + i;
    }
    mt->pos = TTI_MT_WORDS;
}

/* Step to the next ring position; position 0 is re-entered as a copy of the last word. */
static uint32_t ring_step(tti_mt19937 *mt, uint32_t i)
{
    i++;
    if (i < TTI_MT_WORDS)
        return i;
    mt->word[0] = mt->word[TTI_MT_WORDS - 1];
    return 1;
}

static uint32_t carried(const tti_mt19937 *mt, uint32_t i, uint32_t factor)
{
    const uint32_t before = mt->word[i - 1];

    return mt->word[i] ^ ((before ^ (before >> 30)) * factor);
}

void tti_mt19937_seed_array(tti_mt19937 *mt, const uint32_t *key, int n)
{
    const int rounds = n > TTI_MT_WORDS ? n : TTI_MT_WORDS;
    uint32_t i = 1;

    assert(n >= 1);
    tti_mt19937_seed(mt, 19650218u);
    for (int k = 0; k < rounds; k++) {
        const int j = k % n;

        mt->word[i] = carried(mt, i, 1664525u) + key[j] + (uint32_t)j;
        i = ring_step(mt, i);
    }
    for (int k = 1; k < TTI_MT_WORDS; k++) {
        mt->word[i] = carried(mt, i, 1566083941u) - i;
        i = ring_step(mt, i);
    }
    mt->word[0] = 0x80000000u;
}

static void twist(tti_mt19937 *mt)
{
    uint32_t *w = mt->word;

    for (int i = 0; i < TTI_MT_WORDS; i++) {
        const uint32_t low = w[(i + 1) % TTI_MT_WORDS];
        const uint32_t joined = (w[i] & 0x80000000u) | (low & 0x7fffffffu);

        w[i] = w[(i + MIDDLE) % TTI_MT_WORDS] ^ (joined >> 1) ^ ((low & 1) ? 0x9908b0dfu : 0);
    }
    mt->pos = 0;
}

uint32_t tti_mt19937_next(tti_mt19937 *mt)
{
    uint32_t y;

    if (mt->pos >= TTI_MT_WORDS)
        twist(mt);
    y = mt->word[mt->pos++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static void swap(int64_t *a, int64_t *b)
{
    const int64_t held = *a;

    *a = *b;
    *b = held;
}

/* From the front, each place with one at or before it. */
static void permute_wide(tti_mt19937 *mt, int64_t n, int64_t *a)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t high = tti_mt19937_next(mt);
        const uint64_t drawn = high << 32 | tti_mt19937_next(mt);

        swap(&a[i], &a[drawn % (uint64_t)(i + 1)]);
    }
}

void tti_mt19937_permute(tti_mt19937 *mt, int64_t n, int64_t *a)
{
    if (n >= TTI_MT_WIDE) {
        permute_wide(mt, n, a);
        return;
    }
    for (int64_t i = 0; i + 1 < n; i++)
        swap(&a[i], &a[i + (int64_t)(tti_mt19937_next(mt) % (uint64_t)(n - i))]);
}
