/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/partition.c - which samples belong to which rank.
 *
 * Why     Ranks must agree on disjoint slices without a word between them, and on the same slices
 *         as the tutorial's Python program, so that runs can be compared.
 * How     Shuffle 0..n-1 as CPython does: from the end, swap with a place at or before it; a
 *         number below m is drawn by throwing away those of m's bit length that are not.
 * True    Every rank's slice has floor((1.0 / ranks) * n) samples, in f64 as in Python. That is at
 *         most n / ranks, so all slices fit; where the product falls just short of a whole number,
 *         each slice has one less. */
#include <tutti/data.h>
#include <tutti/private.h>

#include "tensor/mt19937.h"

#include <stdlib.h>

/* A number of 0..m-1, for 1 <= m < 2^31. */
static uint32_t below(tti_mt19937 *mt, uint32_t m)
{
    int bits = 0;
    uint32_t drawn;

    while (bits < 32 && m >> bits != 0)
        bits++;
    do
        drawn = tti_mt19937_next(mt) >> (32 - bits);
    while (drawn >= m);
    return drawn;
}

static void shuffle(uint64_t seed, int64_t n, int64_t *index)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    tti_mt19937 mt;

    tti_mt19937_seed_array(&mt, key, key[1] != 0 ? 2 : 1);
    for (int64_t i = 0; i < n; i++)
        index[i] = i;
    for (int64_t i = n - 1; i >= 1; i--) {
        const uint32_t j = below(&mt, (uint32_t)i + 1);
        const int64_t kept = index[i];

        index[i] = index[j];
        index[j] = kept;
    }
}

tutti_status tutti_partition_length(int64_t n, int rank, int ranks, int64_t *length_out)
{
    if (n < 0 || n > TUTTI_PARTITION_MAX)
        return tti_fail(TUTTI_E_ARG, "cannot divide %lld samples: 0 to %d can be", (long long)n,
                        TUTTI_PARTITION_MAX);
    if (ranks < 1 || rank < 0 || rank >= ranks)
        return tti_fail(TUTTI_E_ARG, "rank %d of %d has no part of the samples", rank, ranks);
    *length_out = (int64_t)(1.0 / ranks * (double)n);
    return TUTTI_OK;
}

tutti_status tutti_partition(uint64_t seed, int64_t n, int rank, int ranks, int64_t *index_out)
{
    int64_t length = 0;
    int64_t *all;
    tutti_status st = tutti_partition_length(n, rank, ranks, &length);

    if (st != TUTTI_OK || length == 0)
        return st;
    if (index_out == NULL)
        return tti_fail(TUTTI_E_ARG, "no buffer for the %lld samples of rank %d", (long long)length,
                        rank);
    all = malloc((size_t)n * sizeof *all);
    if (all == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to shuffle %lld samples", (long long)n);
    shuffle(seed, n, all);
    for (int64_t i = 0; i < length; i++)
        index_out[i] = all[rank * length + i];
    free(all);
    return TUTTI_OK;
}
