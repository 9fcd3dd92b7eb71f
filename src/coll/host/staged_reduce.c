/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staged_reduce.c - all_reduce and reduce on one host, in one phase.
 *
 * True    Whoever combines, combines the staged contributions of ranks 0..P-1 in this order with
 *         one kernel call: the same bits as in the sliced form (staged_slices.c), on all ranks.
 *         PREMUL_SUM is applied by each rank to its own elements on their way into the slot. in and
 *         out may be one buffer: a round's elements are staged before any of them is written.
 *         Segments are one long buffer, which the slots pack and the copies out of them spread:
 *         small ones share a round, and none costs a copy or a synchronisation of its own. */
#include <string.h>
#include "coll/host/staged.h"
#include "coll/pattern.h"
#include "coll/segments.h"
#include "kernel/kernel.h"

/* One round's share of an operation. */
typedef struct portion {
    tti_host_channel        *channel;
    const tutti_call        *call;
    const tti_reduce_kernel *kernel;
    size_t                   element;
    tti_segments             segments;
    int64_t                  first; /* element of the buffer */
    int64_t                  count;
} portion;

typedef tutti_status round_body(const portion *p);

static void stage(const portion *p)
{
    char *slot = tti_host_staging(p->channel, p->channel->team->rank);

    TTI_EACH_STRETCH (s, &p->segments, p->first, p->count) {
        const char *from = (const char *)p->segments.all[s.segment].in +
                           (size_t)s.first * p->element;
        char       *to = slot + (size_t)s.at * p->element;

        if (p->call->op.kind == TUTTI_OP_PREMUL_SUM)
            tti_scale(to, from, s.count, p->call->op.factor, p->call->dtype);
        else
            memcpy(to, from, (size_t)s.count * p->element);
    }
    tti_host_post(p->channel, TTI_STAGED);
}

/* Combine a slice of what all have staged. */
static void combine(const portion *p, tti_slice slice, void *to)
{
    tti_host_channel *channel = p->channel;
    int               r;

    if (slice.begin == slice.end)
        return;
    for (r = 0; r < channel->team->n_ranks; r++)
        channel->reads[r] = tti_host_staging(channel, r) + (size_t)slice.begin * p->element;
    tti_reduce(p->kernel, to, channel->reads, channel->team->n_ranks, slice.end - slice.begin,
               channel->team->n_ranks);
}

static char *out_at(const portion *p, tti_stretch s)
{
    return (char *)p->segments.all[s.segment].out + (size_t)s.first * p->element;
}

static tutti_status all_reduce_one_phase(const portion *p)
{
    tutti_status st = tti_host_await_all(p->channel, TTI_STAGED);

    if (st != TUTTI_OK)
        return st;
    TTI_EACH_STRETCH (s, &p->segments, p->first, p->count)
        combine(p, (tti_slice){ s.at, s.at + s.count }, out_at(p, s));
    return TUTTI_OK;
}

static tutti_status reduce_one_phase(const portion *p)
{
    return p->call->root == p->channel->team->rank ? all_reduce_one_phase(p) : TUTTI_OK;
}

static tutti_status in_rounds(tti_host_channel *channel, const tutti_call *call, round_body *body)
{
    const int64_t per_round = tti_staged_per_round(call, (int64_t)channel->chunk);
    portion       p = { .channel = channel, .call = call,
                        .kernel = tti_reduce_kernel_for(call->op.kind, call->dtype),
                        .element = tutti_dtype_size(call->dtype) };
    tutti_status  st = tti_host_begin(channel, tti_staged_rounds(call->count, per_round));

    tti_segments_init(&p.segments, call);
    for (; p.first < call->count && st == TUTTI_OK; p.first += p.count) {
        p.count = call->count - p.first < per_round ? call->count - p.first : per_round;
        tti_segments_advance(&p.segments, p.first);
        st = tti_host_room(channel);
        if (st == TUTTI_OK) {
            stage(&p);
            st = body(&p);
        }
        if (st == TUTTI_OK)
            tti_host_next(channel);
    }
    return st;
}

tutti_status tti_staged_all_reduce_one_phase(tti_host_channel *channel, const tutti_call *call)
{
    return in_rounds(channel, call, all_reduce_one_phase);
}

tutti_status tti_staged_reduce_one_phase(tti_host_channel *channel, const tutti_call *call)
{
    return in_rounds(channel, call, reduce_one_phase);
}
