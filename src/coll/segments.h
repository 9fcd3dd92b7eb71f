/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/segments.h - the buffers of a call as one long one: windows of it, and the stretches of
 * single buffers that a window is made of.
 *
 * A call without segments is one of its own, so that whoever stages or packs knows one way only. */
#ifndef TTI_COLL_SEGMENTS_H
#define TTI_COLL_SEGMENTS_H

#include <tutti/plugin/backend.h>
#include "base/dtype.h"

typedef struct tti_segments {
    const tutti_segment *all;
    int                  n;
    int                  low;       /* the first one that later windows may touch */
    int64_t              low_begin; /* its first element, in the long buffer */
    tutti_segment        own;       /* what all points to where the call has none */
} tti_segments;

/** Elements [first, first + count) of one segment, which are [at, at + count) of the window. */
typedef struct tti_stretch {
    int     segment;
    int64_t first;
    int64_t count; /* 0: the window has no more */
    int64_t at;
    int64_t left; /* of the window, this stretch included */
} tti_stretch;

/** segments is not to be moved; call is borrowed. */
void tti_segments_init(tti_segments *segments, const tutti_call *call);
/** No later window begins before element first. */
void tti_segments_advance(tti_segments *segments, int64_t first);

/** From element first of segment i on, or of the next one that has any. */
tti_stretch tti_stretch_in(const tti_segments *segments, int i, int64_t first, int64_t at, int64_t left);

/** The stretches of the window of count elements from first on, in order. One segment is what nearly all calls have:
 * its only stretch stays in registers. */
static inline tti_stretch tti_stretch_first(const tti_segments *segments, int64_t first, int64_t count)
{
    const int64_t rest = segments->all[0].count - first;

    if (segments->n > 1)
        return tti_stretch_in(segments, segments->low, first - segments->low_begin, 0, count);
    return (tti_stretch){ .first = first, .left = count, .count = rest <= 0 ? 0 : rest < count ? rest : count };
}

static inline tti_stretch tti_stretch_next(const tti_segments *segments, tti_stretch last)
{
    if (segments->n == 1)
        return (tti_stretch){ .count = 0 };
    return tti_stretch_in(segments, last.segment, last.first + last.count, last.at + last.count, last.left - last.count);
}

/** For every stretch of a window. */
#define TTI_EACH_STRETCH(s, segments, from, n)                                                     \
    for (tti_stretch s = tti_stretch_first((segments), (from), (n)); s.count > 0;                  \
         s = tti_stretch_next((segments), s))

/** Elements of rank's part: of all segments, or of its own size. */
static inline int64_t tti_part_count(const tutti_call *call, int rank)
{
    return call->n_parts > 0 ? call->list_counts[rank] : call->count;
}

/** The longest part of n_ranks. */
int64_t tti_part_longest(const tutti_call *call, int n_ranks);

/** Rank's entry of a segment's list, from element first on. */
static inline char *tti_entry_at(const tutti_call *call, int n_ranks, int rank, tti_stretch s)
{
    return (char *)call->list[s.segment * n_ranks + rank] +
           (size_t)s.first * tti_dtype_bytes(call->dtype);
}

#endif
