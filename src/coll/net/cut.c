/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cut.c - how a large call is cut into chunks.
 *
 * Why     In one piece a call sends, then combines, then sends: link and cores take turns, and what others sent waits
 *         in memory of its own, as large as the call. In chunks one is combined while the next arrives, and the memory
 *         is used again.
 * How     What costs is the message: it should carry MESSAGE bytes, so that what it costs by itself does not show.
 *         A plan that sends all it is given has a chunk of one message, and so has one that passes on what it gets; one that
 *         deals in slices, one for each rank; where there are blocks, the same range of all. So many chunks are under way as fill SCRATCH, and
 *         at least WINDOW_LEAST: one arrives, one is combined, one leaves. With many ranks messages become shorter first,
 *         then chunks larger.
 *         Calls that only move blocks gain nothing: what has come is where it belongs. They stay whole. But parts that go around
 *         the circle, some of them longer than others, go in chunks: a rank that waits for all of a long part before it passes
 *         that on has a link with nothing to do meanwhile, where short ones have passed. Chunks are so short that what the last
 *         one takes, from rank to rank, is little beside the part.
 *         A broadcast in slices sends twice, and combines nothing: what the last chunk takes from rank to rank, when the
 *         root's link is free already, is added to what the link takes. So it has several, also where they are short. A reduce
 *         in slices is the same the other way round: what the first chunk takes before the root has anything to receive.
 *         Where a byte is dear, the link is what a call waits for, and a message by itself costs little beside its bytes: it has
 *         as many of them as take MESSAGE_NS, and what is under way follows. So the first chunk is sooner on its way back, and the last
 *         one sooner there; a chain, of which every rank waits for one message of each before it, becomes what a broadcast takes. Over
 *         a long way as much is under way as a link carries in TRIPS round trips, for a chunk takes one at least, or SCRATCH. Elsewhere
 *         the cores are what it waits for, and more messages are more of their time.
 *         Of two ranks one has all slices. It has nobody to hand a broadcast on to, which stays whole; of a reduce it holds what
 *         comes and what it adds up, so that is cut as a call is of which every rank has a slice.
 * True    A pure function of what all ranks share: of the plan, kind, count and dtype, the number of ranks, and what rank 0 has told
 *         of the link. The window alone is a rank's own matter: who has more chunks under way than others is ahead of them, by messages
 *         that wait for their place. A ring of all_reduce, whose order of adding goes by the slices of each chunk, is cut the same way
 *         whatever the link is, and has the same bits in all runs. Those of other plans are not the cut's matter.
 *         Where ranks do not share counts (all_to_all and its kin) both ends of a block know its size, and chunks of a
 *         length that all share would meet; what is gained by that is nothing, so those stay whole, too. */
#include "coll/net/cut.h"

#include "coll/pattern.h"
#include "coll/segments.h"

enum {
    KIB = 1024,
    MESSAGE = 512 * KIB,
    MESSAGE_LEAST = 64 * KIB, /* where many ranks ask for more than there should be */
    CHUNK_LEAST = 512 * KIB,  /* of slices, and */
    CHUNK_MOST = 4 * 1024 * KIB,
    SCRATCH = 8 * 1024 * KIB,
    WINDOW_LEAST = 3,
    WINDOW_MOST = 16,
    SENDS = 8,
    MESSAGE_NS = 512 * 1024, /* where a byte is dear, and there */
    ROOTED_LEAST = 32 * KIB, /* of a message of a slice to or from a root, and */
    DEAR_WINDOW_LEAST = 4,   /* with fewer the link has nothing to do now and then */
    FAR_WINDOW_MOST = 128,   /* over a long way: pieces of 64 KiB fill SCRATCH, */
    TRIPS = 2,               /* of which bytes are under way there: some for what a chunk waits for besides */
    AROUND_CHUNKS = 4, /* of the longest part that goes around, for each rank that it goes to, at least, as above */
    ROOTED_CHUNKS = 8, /* in slices to or from a root, at least, of messages that are long enough */
};

#define DEAR 2.0 /* ns of a byte: ranks that share cores take about that for it */

/* What a message of a plan has. */
typedef enum plan_form {
    IN_SLICES,  /* a slice for one of the ranks, of what the call has */
    DEALT_OUT,  /* a slice for one of the ranks but the root, which they pass on to each other; or the way back */
    AS_A_WHOLE, /* all of it */
    PASSED_ON,  /* all of it, of which a rank keeps no more than a few at a time */
    IN_BLOCKS,  /* one of the blocks that the call has */
    AROUND,     /* one of parts of which all know how long they are, on its way around the circle */
    UNCUT,      /* nothing is gained by chunks */
} plan_form;

/* Of the plans that deal neither in slices nor in blocks. */
static const struct {
    tti_plan *plan;
    plan_form form;
} forms[] = {
    { tti_plan_all_reduce_one_shot, AS_A_WHOLE },  { tti_plan_all_reduce_one_shot_tree, AS_A_WHOLE },
    { tti_plan_all_reduce_bruck, AS_A_WHOLE },     { tti_plan_reduce_to_root, AS_A_WHOLE },
    { tti_plan_all_reduce_doubling, PASSED_ON },   { tti_plan_reduce_binomial, PASSED_ON },
    { tti_plan_reduce_knomial4, PASSED_ON },       { tti_plan_reduce_chain, PASSED_ON },
    { tti_plan_reduce_scatter_ring, PASSED_ON },   { tti_plan_broadcast_binomial, PASSED_ON },
    { tti_plan_broadcast_knomial4, PASSED_ON },    { tti_plan_broadcast_flat, PASSED_ON },
    { tti_plan_broadcast_chain, PASSED_ON },
};

static plan_form form_of(tti_plan *plan, const tutti_call *call)
{
    const tutti_call_kind kind = call->kind;
    size_t                i;

    for (i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].plan == plan)
            return forms[i].form;
    if (kind == TUTTI_CALL_REDUCE_SCATTER)
        return IN_BLOCKS;
    if (plan == tti_plan_all_gather_ring && call->list_counts != NULL)
        return AROUND;
    if (kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE)
        return DEALT_OUT;
    return kind == TUTTI_CALL_ALL_REDUCE ? IN_SLICES : UNCUT;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The longest range that there is to cut: as this rank knows it, where ranks do not share counts. */
static int64_t longest(const tutti_call *call, int n_ranks)
{
    int64_t most = tti_part_longest(call, n_ranks);
    int     r;

    for (r = 0; call->in_counts != NULL && r < n_ranks; r++)
        most = larger(most, call->in_counts[r]);
    return most;
}

/* Of two ranks, or one, a broadcast in slices is one message. A reduce of two is combined by the one that is not the root, which has
 * memory for all of a chunk; of one rank it is a copy. */
static plan_form form_among(plan_form form, tutti_call_kind kind, int n_ranks)
{
    if (n_ranks > 2 || (form != DEALT_OUT && kind != TUTTI_CALL_BROADCAST))
        return form;
    return kind == TUTTI_CALL_REDUCE && n_ranks == 2 ? IN_SLICES : UNCUT;
}

/* Whether a chunk keeps as much as its range has of every rank: a slice of each is its range once more. */
static bool keeps_all(plan_form form)
{
    return form == AS_A_WHOLE || form == IN_BLOCKS;
}

bool tti_wire_is_dear(double wire)
{
    return wire >= DEAR;
}

/* A message, by what a byte of it takes. */
static int64_t message_of(tti_plan *plan, double wire)
{
    return !tti_wire_is_dear(wire) || plan == tti_plan_all_reduce_ring ? MESSAGE : larger((int64_t)(MESSAGE_NS / wire), MESSAGE_LEAST);
}

static bool is_dear(int64_t message)
{
    return message < MESSAGE;
}

static int64_t range_in_slices(int64_t message, int n_ranks)
{
    return larger(smaller(message * n_ranks, CHUNK_MOST), larger((int64_t)MESSAGE_LEAST * n_ranks, CHUNK_LEAST));
}

/* What the root deals out, or gets, at a time, of most bytes: the smaller messages are, the more chunks there are. */
static int64_t range_dealt_out(int64_t message, int64_t most, int n_ranks)
{
    const int64_t least = is_dear(message) ? ROOTED_LEAST : MESSAGE_LEAST;

    return larger(smaller(most / (ROOTED_CHUNKS * (MESSAGE / message)), range_in_slices(message, n_ranks)), least * (n_ranks - 1));
}

/* Bytes of a chunk's range, where there are so many at most. */
static int64_t range_of(plan_form form, int64_t message, int64_t most, int n_ranks)
{
    if (form == DEALT_OUT)
        return range_dealt_out(message, most, n_ranks);
    if (form == IN_SLICES)
        return range_in_slices(message, n_ranks);
    if (form == AROUND)
        return larger(smaller(most / AROUND_CHUNKS / n_ranks, MESSAGE), MESSAGE_LEAST);
    if (keeps_all(form))
        return larger(smaller(SCRATCH / WINDOW_LEAST / n_ranks, MESSAGE), MESSAGE_LEAST);
    return message;
}

/* How many chunks of such a range are under way. */
static int window_of(plan_form form, int64_t message, int64_t range, int n_ranks)
{
    const int64_t scratch = keeps_all(form) ? range * n_ranks : range;

    if (is_dear(message) && !keeps_all(form))
        return (int)smaller(larger(SCRATCH / (MESSAGE / message) / scratch, DEAR_WINDOW_LEAST), WINDOW_MOST);
    return (int)smaller(larger(SCRATCH / scratch, WINDOW_LEAST), WINDOW_MOST);
}

/* How many of so many bytes fill a way. */
static int window_over(int64_t bytes, double wire, double trip_ns)
{
    const int64_t way = tti_wire_is_dear(wire) ? smaller((int64_t)(TRIPS * trip_ns / wire), SCRATCH) : 0;

    return (int)smaller((way + bytes - 1) / bytes, FAR_WINDOW_MOST);
}

/* Whole lines, so that what begins on one in a buffer does so in every chunk. */
static int64_t in_lines(int64_t elements, size_t element)
{
    const int64_t per_line = (int64_t)(TTI_SLICE_ALIGN / element);

    return (elements + per_line - 1) / per_line * per_line;
}

tti_cut tti_cut_into(const tutti_call *call, int n_ranks, int64_t elements, int window)
{
    const int64_t most = longest(call, n_ranks);
    const int64_t n = elements > 0 ? (most + elements - 1) / elements : 1;

    return (tti_cut){ .elements = elements, .n_chunks = (int)larger(n, 1), .window = window, .sends = SENDS };
}

tti_cut tti_cut_of(tti_plan *plan, const tutti_call *call, int n_ranks, double wire)
{
    return tti_cut_over(plan, call, n_ranks, wire, 0);
}

tti_cut tti_cut_over(tti_plan *plan, const tutti_call *call, int n_ranks, double wire, double trip_ns)
{
    const int64_t   message = message_of(plan, wire);
    const plan_form form = form_among(form_of(plan, call), call->kind, n_ranks);
    const size_t    element = tutti_dtype_size(call->dtype);
    const int64_t   most = longest(call, n_ranks);
    const int64_t   range = range_of(form, message, most * (int64_t)element, n_ranks);
    const int64_t   fit = range / (int64_t)element;
    tti_cut         cut;

    if (form == UNCUT || most < 2 * fit)
        return tti_cut_into(call, n_ranks, most, 1);
    /* Of equal size, that none is nearly empty. */
    cut = tti_cut_into(call, n_ranks, in_lines((most + most / fit - 1) / (most / fit), element), 1);
    cut.window = window_of(form, message, range, n_ranks);
    if (!keeps_all(form))
        cut.window = (int)larger(cut.window, window_over(cut.elements * (int64_t)element, wire, trip_ns));
    return cut;
}

int64_t tti_cut_count(const tti_cut *cut, int64_t count, int k)
{
    return larger(smaller(count - k * cut->elements, cut->elements), 0);
}
