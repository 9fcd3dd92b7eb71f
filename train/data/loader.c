/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/loader.c - the order of an epoch, cut into batches.
 *
 * How     Two 64-bit numbers are drawn for an epoch from the caller's generator: torch seeds its
 *         worker processes with the first, which we do not have, and a generator of its own with
 *         the second. That one walks from the front and swaps each place with one at or behind it.
 * True    A batch is a piece of order[], never copied. */
#include <tutti/data.h>
#include <tutti/private.h>

#include "tensor/mt19937.h"

tutti_status tutti_loader_init(tutti_loader *loader, const int64_t *index, int64_t n, int64_t batch,
                               int64_t *order)
{
    if (loader == NULL || (order == NULL && n > 0))
        return tti_fail(TUTTI_E_ARG, "a loader needs a place for the order of its samples");
    if (n < 0 || n > TUTTI_PARTITION_MAX)
        return tti_fail(TUTTI_E_ARG, "cannot load %lld samples: 0 to %d can be", (long long)n,
                        TUTTI_PARTITION_MAX);
    if (batch < 1)
        return tti_fail(TUTTI_E_ARG, "a batch of %lld samples is none", (long long)batch);
    *loader = (tutti_loader){ .index = index, .order = order, .n = n, .batch = batch, .at = n };
    return TUTTI_OK;
}

tutti_status tutti_loader_restart(tutti_loader *loader)
{
    if (loader == NULL)
        return tti_fail(TUTTI_E_ARG, "no loader to begin an epoch of");
    for (int64_t i = 0; i < loader->n; i++)
        loader->order[i] = loader->index != NULL ? loader->index[i] : i;
    loader->at = 0;
    return TUTTI_OK;
}

tutti_status tutti_loader_shuffle(tutti_loader *loader, tutti_random64_fn random64, void *ctx)
{
    tti_mt19937 mt;
    uint64_t seed;

    if (random64 == NULL)
        return tti_fail(TUTTI_E_ARG, "a loader cannot shuffle without a generator");
    if (tutti_loader_restart(loader) != TUTTI_OK)
        return TUTTI_E_ARG;
    (void)random64(ctx);
    seed = random64(ctx); /* torch clears bit 63, which is not among the 32 bits that seed */
    tti_mt19937_seed(&mt, (uint32_t)seed);
    tti_mt19937_permute(&mt, loader->n, loader->order);
    return TUTTI_OK;
}

int64_t tutti_loader_next(tutti_loader *loader, const int64_t **samples_out)
{
    const int64_t left = loader->n - loader->at;
    const int64_t count = left < loader->batch ? left : loader->batch;

    if (count == 0)
        return 0;
    *samples_out = loader->order + loader->at;
    loader->at += count;
    return count;
}

int64_t tutti_loader_batches(const tutti_loader *loader)
{
    return loader->n / loader->batch + (loader->n % loader->batch != 0);
}
