/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pulled_reduce.c - reduce_scatter and all_reduce by members that read each other's buffers.
 *
 * How     Block by block, the others' contributions to the own part are read into the memory of the own result slots,
 *         which stays in a near cache, and combined with the own one straight into the output. In all_reduce a part is
 *         a slice of everybody's buffer; after `result` of its owner the others read it from the owner's output.
 * True    Contributions are combined in rank order 0..P-1 by one kernel call: the same bits as the other forms give.
 *         in and out may be one buffer. Slice q of a buffer is read by q only, before q sets result, and written by
 *         its rank only after that, or by q itself in the call that reads it.
 *         Result slots can be used so once all have staged something of this call: nobody reads anything of an
 *         earlier one then. */
#include "coll/host/past.h"
#include "coll/host/pull.h"
#include "coll/host/pulled.h"
#include "coll/pattern.h"
#include "coll/segments.h"
#include "kernel/kernel.h"

enum {
    BLOCKS_BYTES = 512 * 1024,  /* of all others' blocks together, about: half of a second-level cache */
    BLOCK_BYTES = 128 * 1024,
    BLOCK_BYTES_MIN = 512,
};

_Static_assert(TTI_HOST_RANKS_MAX * BLOCK_BYTES_MIN <= TTI_HOST_SLOTS, "a block of each fits");

/* A part of everybody's buffers that this rank combines. */
typedef struct part {
    tti_host_channel *channel;
    const tutti_call *call;
    size_t            element;
    int               shown; /* which of the addresses that each member shows */
    int64_t           first; /* element behind that address */
    int64_t           count;
    const char       *in;    /* the own contribution */
    char             *out;
    bool              past; /* out goes past the caches */
} part;

static size_t block_bytes(int n_others)
{
    const size_t fair = (size_t)(BLOCKS_BYTES / n_others) & ~(size_t)(BLOCK_BYTES_MIN - 1);

    return fair > BLOCK_BYTES ? BLOCK_BYTES : fair < BLOCK_BYTES_MIN ? BLOCK_BYTES_MIN : fair;
}

/* Read count elements from element `at` of the part on, of all others, and combine them. */
static tutti_status combine_block(const part *p, int64_t at, int64_t count)
{
    tti_host_channel *channel = p->channel;
    const tti_team   *team = channel->team;
    const size_t      room = block_bytes(team->n_ranks - 1);
    const size_t      bytes = (size_t)count * p->element;
    char             *scratch = channel->members[team->rank].slots + TTI_HOST_SLOTS;
    tutti_status      st = TUTTI_OK;
    uint64_t          from;
    int               i;

    channel->reads[team->rank] = p->in + (size_t)at * p->element;
    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++) {
        const int giver = tti_shifted(team->rank, i, team->n_ranks);
        char     *to = scratch + (size_t)(i - 1) * room;

        channel->reads[giver] = to;
        st = tti_host_pull_shown(channel, giver, p->shown, &from);
        if (st == TUTTI_OK)
            st = tti_host_pull(channel, giver, from + (uint64_t)(p->first + at) * p->element, to, bytes);
    }
    if (st == TUTTI_OK)
        tti_host_sum(tti_reduce_kernel_for(p->call->op.kind, p->call->dtype), p->out + (size_t)at * p->element,
                     channel->reads, team->n_ranks, count, p->past);
    return st;
}

static tutti_status combine(const part *p)
{
    const int64_t block = (int64_t)(block_bytes(p->channel->team->n_ranks - 1) / p->element);
    tutti_status  st = tti_host_await_all(p->channel, TTI_STAGED);
    int64_t       at;

    for (at = 0; at < p->count && st == TUTTI_OK; at += block)
        st = combine_block(p, at, p->count - at < block ? p->count - at : block);
    return st;
}

/* A member's factor is applied by itself, to a copy: then there is one anyway. */
static tutti_status start(tti_host_channel *channel, const tutti_call *call, bool *here_out)
{
    tutti_status st = TUTTI_OK;

    *here_out = false;
    if (call->n_segments == 0 && call->op.kind != TUTTI_OP_PREMUL_SUM)
        st = tti_host_pull_ready(channel, here_out);
    if (st == TUTTI_OK && *here_out)
        st = tti_host_begin(channel, TTI_HOST_PULL_ROUNDS);
    return st;
}

tutti_status tti_pulled_reduce_scatter(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    bool            here;
    tutti_status    st = start(channel, call, &here);
    const part      p = { .channel = channel, .call = call, .element = tutti_dtype_size(call->dtype),
                          .shown = team->rank, .count = tti_part_count(call, team->rank),
                          .in = here && st == TUTTI_OK ? call->list[team->rank] : NULL, .out = call->out,
                          .past = call->out != call->list[team->rank] && tti_host_past_caches(channel, call) };

    if (st != TUTTI_OK || !here)
        return st != TUTTI_OK ? st : tti_staged_reduce_scatter(channel, call);
    st = tti_host_pull_show(channel, (const void *const *)call->list, team->n_ranks);
    if (st == TUTTI_OK)
        st = combine(&p);
    return st == TUTTI_OK ? tti_host_pull_end(channel, -1) : st;
}

/* Read owner's slice from its output, once it is there. */
static tutti_status take_slice(tti_host_channel *channel, const tutti_call *call, int owner)
{
    const size_t    element = tutti_dtype_size(call->dtype);
    const tti_slice slice = tti_slice_of(call->count, element, channel->team->n_ranks, owner);
    const size_t    begin = (size_t)slice.begin * element;
    const size_t    bytes = (size_t)(slice.end - slice.begin) * element;
    uint64_t        from;
    tutti_status    st = tti_host_await(channel, TTI_RESULT, owner);

    if (st == TUTTI_OK)
        st = tti_host_pull_shown(channel, owner, 1, &from);
    return st == TUTTI_OK ? tti_host_pull(channel, owner, from + begin, (char *)call->out + begin, bytes) : st;
}

tutti_status tti_pulled_all_reduce(tti_host_channel *channel, const tutti_call *call)
{
    const tti_team *team = channel->team;
    const size_t    element = tutti_dtype_size(call->dtype);
    const tti_slice own = tti_slice_of(call->count, element, team->n_ranks, team->rank);
    const void     *shown[] = { call->in, call->out };
    bool            here;
    tutti_status    st = start(channel, call, &here);
    const part      p = { .channel = channel, .call = call, .element = element, .first = own.begin,
                          .count = own.end - own.begin, .in = (const char *)call->in + (size_t)own.begin * element,
                          .out = (char *)call->out + (size_t)own.begin * element };
    int             i;

    if (st != TUTTI_OK || !here)
        return st != TUTTI_OK ? st : tti_staged_all_reduce_sliced(channel, call);
    st = tti_host_pull_show(channel, shown, 2);
    if (st == TUTTI_OK)
        st = combine(&p);
    if (st == TUTTI_OK)
        tti_host_post(channel, TTI_RESULT);
    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++)
        st = take_slice(channel, call, tti_shifted(team->rank, i, team->n_ranks));
    return st == TUTTI_OK ? tti_host_pull_end(channel, -1) : st;
}
