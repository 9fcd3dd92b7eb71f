/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/level/shapes.h - what each kind of call is made of: what a host collects, what goes across, what is spread. */
#ifndef TTI_COLL_LEVEL_SHAPES_H
#define TTI_COLL_LEVEL_SHAPES_H

#include "coll/level/half.h"
#include "coll/level/levels.h"
#include "coll/segments.h"

/** A call under way. */
typedef struct tti_flow {
    tti_levels       *levels;
    const tutti_call *call;
    int               carriers; /* in this call */
    int               root_host; /* -1: no root */
    size_t            element;
    tti_segments      segments;
    int64_t           range;     /* elements of the call, or of its longest part */
    int64_t           per_piece; /* of them */
} tti_flow;

/** Context of a half. */
typedef struct tti_piece {
    tti_flow   *flow;
    tti_flight *flight;
} tti_piece;

typedef struct tti_shape {
    /** Parts of the call in which a piece has its elements: one, or one for each member. */
    int (*parts)(const tti_flow *flow);
    /** Bytes that a carrier works in, for a piece. */
    size_t (*scratch)(const tti_piece *piece);
    /** What the members of this host do for each other before, and after, something goes across. Pure. */
    void (*before)(const tti_piece *piece, tti_half *half);
    void (*after)(const tti_piece *piece, tti_half *half);
    /** What this rank does with its own elements first; NULL: nothing. */
    void (*keep)(const tti_piece *piece);
    /** The call between the carriers of one place; moves what has to lie together. Of carriers only. */
    void (*across)(const tti_piece *piece, tutti_call *call);
} tti_shape;

extern const tti_shape tti_gather_shape, tti_scatter_shape;

static inline const tti_piece *tti_piece_of(const tti_half *half)
{
    return half->context;
}

/** A half of as many streams as there are carriers, in which all take. */
void tti_half_among_carriers(const tti_piece *p, tti_half *half, bool collects, tti_length *length, tti_bits *bits);
/** One in which nobody does anything. */
void tti_half_nothing(const tti_piece *p, tti_half *half);

/** NULL: calls of this kind have no two levels. */
const tti_shape *tti_shape_of(tutti_call_kind kind);

#endif
