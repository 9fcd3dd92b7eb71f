/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/segments.h"

void tti_segments_init(tti_segments *segments, const tutti_call *call)
{
    segments->own = (tutti_segment){ .count = call->count, .in = call->in, .out = call->out };
    segments->all = call->n_segments > 0 ? call->segments : &segments->own;
    segments->n = call->n_segments > 0 ? call->n_segments : 1;
    segments->low = 0;
    segments->low_begin = 0;
}

void tti_segments_advance(tti_segments *segments, int64_t first)
{
    while (segments->low < segments->n &&
           segments->low_begin + segments->all[segments->low].count <= first)
        segments->low_begin += segments->all[segments->low++].count;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

tti_stretch tti_stretch_in(const tti_segments *segments, int i, int64_t first, int64_t at, int64_t left)
{
    while (left > 0 && i < segments->n && segments->all[i].count <= first)
        first -= segments->all[i++].count;
    if (left <= 0 || i == segments->n)
        return (tti_stretch){ .count = 0 };
    return (tti_stretch){ .segment = i, .first = first, .at = at, .left = left,
                          .count = smaller(left, segments->all[i].count - first) };
}

int64_t tti_part_longest(const tutti_call *call, int n_ranks)
{
    int64_t longest = 0;
    int     r;

    if (call->n_parts == 0)
        return tti_part_count(call, 0);
    for (r = 0; r < n_ranks; r++)
        if (tti_part_count(call, r) > longest)
            longest = tti_part_count(call, r);
    return longest;
}
