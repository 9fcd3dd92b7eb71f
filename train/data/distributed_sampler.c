/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/distributed_sampler.c - which samples a rank has in an epoch.
 *
 * How     Every rank makes the same order of all samples from seed + epoch, and takes those at rank, rank + replicas,
 *         ... of it. What is missing at the end for all ranks to have as many comes from the front again, as often as
 *         it takes; with drop_last the rest is left out.
 * True    The order does not depend on the rank, so the ranks' samples are disjoint but for what comes twice. */
#include <tutti/data.h>
#include <tutti/private.h>

#include "tensor/mt19937.h"

#include <stdlib.h>

tutti_status tutti_distributed_sampler_init(tutti_distributed_sampler *sampler, int64_t n,
                                            int replicas, int rank,
                                            const tutti_distributed_sampler_options *opts)
{
    tutti_distributed_sampler_options o = TUTTI_DISTRIBUTED_SAMPLER_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (sampler == NULL || o.size != sizeof o)
        return tti_fail(TUTTI_E_ARG,
                        sampler == NULL ? "no sampler to prepare"
                                        : "options of %zu bytes for a sampler"
                                          "\n  next: begin with "
                                          "TUTTI_DISTRIBUTED_SAMPLER_OPTIONS",
                        o.size);
    if (n < 0 || n > TUTTI_PARTITION_MAX)
        return tti_fail(TUTTI_E_ARG, "cannot sample from %lld samples: 0 to %d can be",
                        (long long)n, TUTTI_PARTITION_MAX);
    if (replicas < 1 || rank < 0 || rank >= replicas)
        return tti_fail(TUTTI_E_ARG, "rank %d of %d has no samples: 0 to %d have", rank, replicas,
                        replicas - 1);
    *sampler = (tutti_distributed_sampler){ .n = n,
                                            .replicas = replicas,
                                            .rank = rank,
                                            .seed = o.seed,
                                            .in_order = o.in_order,
                                            .drop_last = o.drop_last };
    return TUTTI_OK;
}

int64_t tutti_distributed_sampler_length(const tutti_distributed_sampler *sampler)
{
    return sampler->n / sampler->replicas +
           (sampler->n % sampler->replicas != 0 && !sampler->drop_last);
}

void tutti_distributed_sampler_set_epoch(tutti_distributed_sampler *sampler, uint64_t epoch)
{
    sampler->epoch = epoch;
}

tutti_status tutti_distributed_sampler_indices(const tutti_distributed_sampler *sampler,
                                               int64_t *index_out)
{
    const int64_t length = sampler != NULL ? tutti_distributed_sampler_length(sampler) : 0;
    tti_mt19937 mt;
    int64_t *all;

    if (sampler == NULL || (index_out == NULL && length > 0))
        return tti_fail(TUTTI_E_ARG, "no %s for the samples of a rank",
                        sampler == NULL ? "sampler" : "buffer");
    all = malloc((size_t)sampler->n * sizeof *all + 1);
    if (all == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to shuffle %lld samples", (long long)sampler->n);
    for (int64_t i = 0; i < sampler->n; i++)
        all[i] = i;
    if (!sampler->in_order) {
        tti_mt19937_seed(&mt, (uint32_t)(sampler->seed + sampler->epoch));
        tti_mt19937_permute(&mt, sampler->n, all);
    }
    for (int64_t k = 0; k < length; k++)
        index_out[k] = all[(sampler->rank + k * sampler->replicas) % sampler->n];
    free(all);
    return TUTTI_OK;
}
