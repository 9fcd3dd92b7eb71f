/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused_reduce.c - all_reduce, reduce and reduce_scatter on registered memory.
 *
 * How     Elements are loaded from the inputs of ranks 0..P-1 and their sum is stored to all outputs: S loaded and S
 *         stored per rank for all_reduce, which is what there is to do. */
#include "coll/host/fused_core.h"
#include "coll/host/past.h"
#include "coll/pattern.h"
#include "coll/segments.h"
#include "kernel/kernel.h"

static const tti_reduce_kernel *kernel_of(const tti_fused_call *f)
{
    return tti_reduce_kernel_for(f->call->op.kind, f->call->dtype);
}

/* The places of element first in all outputs, the own one first; how many there are. */
static int outs_at(const tti_fused_call *f, int64_t first)
{
    int i, n = 0;

    for (i = 0; i < f->n_ranks; i++) {
        char *out = f->fused->outs[tti_shifted(f->rank, i, f->n_ranks)];

        if (out != NULL)
            f->fused->places[n++] = out + (size_t)first * f->element;
    }
    return n;
}

static void ins_at(const tti_fused_call *f, int64_t first)
{
    int r;

    for (r = 0; r < f->n_ranks; r++)
        f->channel->reads[r] = (const char *)f->fused->ins[r] + (size_t)first * f->element;
}

static void combine(const tti_fused_call *f, tti_fused_piece piece)
{
    const int n_outs = outs_at(f, piece.begin);

    ins_at(f, piece.begin);
    tti_reduce_to(kernel_of(f), f->fused->places, n_outs, f->channel->reads, f->n_ranks, piece.end - piece.begin,
                  f->n_ranks);
}

tutti_status tti_fused_all_reduce(tti_fused_call *f)
{
    return tti_fused_share(f, f->call->count, combine);
}

static void combine_own(const tti_fused_call *f, tti_fused_piece piece)
{
    void *const out = (char *)f->call->out + (size_t)piece.begin * f->element;

    ins_at(f, piece.begin);
    tti_host_sum(kernel_of(f), out, f->channel->reads, f->n_ranks, piece.end - piece.begin,
                 f->past && f->call->out != f->call->list[f->rank]);
}

tutti_status tti_fused_reduce_scatter(tti_fused_call *f)
{
    return tti_fused_alone(f, tti_part_count(f->call, f->rank), combine_own);
}
