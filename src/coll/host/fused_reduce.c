/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused_reduce.c - all_reduce, reduce and reduce_scatter on registered memory.
 *
 * How     Elements are loaded from the inputs of ranks 0..P-1 and their sum is stored to all outputs: S loaded and S
 *         stored per rank for all_reduce, which is what there is to do. A block of the result is made in the
 *         first output, and goes from the first-level cache to the others. */
#include <string.h>
#include "coll/host/fused_core.h"
#include "coll/segments.h"
#include "kernel/kernel.h"

enum { BLOCK = 8 * 1024 };

static const tti_reduce_kernel *kernel_of(const tti_fused_call *f)
{
    return tti_reduce_kernel_for(f->call->op.kind, f->call->dtype);
}

/* The own output is the first one: its lines are the likeliest to be here. */
static void *first_out(const tti_fused_call *f)
{
    return f->fused->outs[f->rank] != NULL ? f->fused->outs[f->rank] : f->fused->outs[f->call->root];
}

static void to_others(const tti_fused_call *f, const void *first, size_t at, size_t bytes)
{
    int i;

    for (i = 1; i < f->n_ranks; i++) {
        char *out = f->fused->outs[(f->rank + i) % f->n_ranks];

        if (out != NULL && out != first)
            memcpy(out + at, (const char *)first + at, bytes);
    }
}

static void combine(const tti_fused_call *f, tti_fused_piece piece)
{
    tti_host_channel *channel = f->channel;
    char             *first = first_out(f);
    const int64_t     block = (int64_t)(BLOCK / f->element);
    int64_t           at, n;
    int               r;

    for (at = piece.begin; at < piece.end; at += n) {
        const size_t offset = (size_t)at * f->element;

        n = piece.end - at < block ? piece.end - at : block;
        for (r = 0; r < f->n_ranks; r++)
            channel->reads[r] = (const char *)f->fused->ins[r] + offset;
        tti_reduce(kernel_of(f), first + offset, channel->reads, f->n_ranks, n, f->n_ranks);
        to_others(f, first, offset, (size_t)n * f->element);
    }
}

tutti_status tti_fused_all_reduce(tti_fused_call *f)
{
    return tti_fused_share(f, f->call->count, combine);
}

static void combine_own(const tti_fused_call *f, tti_fused_piece piece)
{
    tti_host_channel *channel = f->channel;
    const size_t      offset = (size_t)piece.begin * f->element;
    int               r;

    for (r = 0; r < f->n_ranks; r++)
        channel->reads[r] = (const char *)f->fused->ins[r] + offset;
    tti_reduce(kernel_of(f), (char *)f->call->out + offset, channel->reads, f->n_ranks, piece.end - piece.begin,
               f->n_ranks);
}

tutti_status tti_fused_reduce_scatter(tti_fused_call *f)
{
    return tti_fused_alone(f, tti_part_count(f->call, f->rank), combine_own);
}
