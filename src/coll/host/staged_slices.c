/* SPDX-License-Identifier: BSD-3-Clause
 *
 * staged_slices.c - all_reduce and reduce of large buffers on one host.
 *
 * Why     Loads and stores are what it costs. A rank loads and stores two thirds of what it would if it staged
 *         all and copied all results: nobody else needs its own slice, so that goes straight from its buffer
 *         into the sum, and the sum straight to its place.
 * How     Round t moves the t-th piece of the buffer, which has a slice for each rank:
 *           stage    copy the slices of all others into the own slot; set staged
 *           combine  wait for staged of all; the own slice of all slots and of the own buffer goes to the own
 *                    output, and to the own result slot; set result
 *           copy     wait for result of each; its slice goes to the own output; set done
 *         With a core for each rank a round lies between one step and the next, in the order stage t, combine t-1,
 *         copy t-2: what a rank waits for was begun by the others at least a step ago. Where ranks share cores
 *         others run while one waits, and each round is done to its end.
 * True    Each element is added up once, by one kernel call, in the order of ranks 0..P-1: the same bits on all
 *         ranks, and as the one-phase form gives them. in and out may be one buffer: others' slices of a piece
 *         are staged before they are overwritten, the own ones are overwritten by the call that reads them.
 *         PREMUL_SUM stages the own slice too, scaled.
 *         Segments are one long buffer, as in staged_reduce.c. */
#include <string.h>
#include "coll/host/staged.h"
#include "coll/pattern.h"
#include "coll/segments.h"
#include "kernel/kernel.h"

enum {
    BLOCK = 8 * 1024, /* bytes that are in the first-level cache after they were combined */
    LAG_OWN_CORE = 1,
};

/* A slot is filled again only after its rank has left the round, 2*LAG rounds later. */
_Static_assert(TTI_HOST_SLOTS / TTI_HOST_CHUNK > 2 * LAG_OWN_CORE, "nobody waits for itself");

typedef struct flow {
    tti_host_channel        *channel;
    const tutti_call        *call;
    const tti_reduce_kernel *kernel;
    size_t                   element;
    bool                     scales;
    bool                     takes; /* this rank has an output */
    bool                     shows; /* and others read its slice */
    tti_segments             segments;
    int64_t                  per_round;
    uint64_t                 n_rounds;
    uint64_t                 begin; /* the channel's number of the first */
} flow;

/* One round's piece of the buffer. */
typedef struct piece {
    int64_t first;
    int64_t count;
} piece;

static piece piece_of(const flow *f, uint64_t round)
{
    const int64_t first = (int64_t)round * f->per_round;
    const int64_t left = f->call->count - first;

    return (piece){ first, left < f->per_round ? left : f->per_round };
}

static tti_slice slice_of(const flow *f, piece p, int rank)
{
    return tti_slice_of(p.count, f->element, f->channel->team->n_ranks, rank);
}

static const char *in_at(const flow *f, tti_stretch s)
{
    return (const char *)f->segments.all[s.segment].in + (size_t)s.first * f->element;
}

static char *out_at(const flow *f, tti_stretch s)
{
    return (char *)f->segments.all[s.segment].out + (size_t)s.first * f->element;
}

/* ---- stage ---- */

static void stage_slice(const flow *f, piece p, tti_slice slice)
{
    char *slot = tti_host_staging(f->channel, f->channel->team->rank) + (size_t)slice.begin * f->element;

    TTI_EACH_STRETCH (s, &f->segments, p.first + slice.begin, slice.end - slice.begin) {
        char *to = slot + (size_t)s.at * f->element;

        if (f->scales)
            tti_scale(to, in_at(f, s), s.count, f->call->op.factor, f->call->dtype);
        else
            memcpy(to, in_at(f, s), (size_t)s.count * f->element);
    }
}

static tutti_status stage(const flow *f, uint64_t round)
{
    const piece     p = piece_of(f, round);
    const tti_slice own = slice_of(f, p, f->channel->team->rank);
    tutti_status    st;

    tti_host_turn(f->channel, f->begin + round);
    st = tti_host_room(f->channel);
    if (st != TUTTI_OK)
        return st;
    if (f->scales) {
        stage_slice(f, p, (tti_slice){ 0, p.count });
    } else {
        stage_slice(f, p, (tti_slice){ 0, own.begin });
        stage_slice(f, p, (tti_slice){ own.end, p.count });
    }
    tti_host_post(f->channel, TTI_STAGED);
    return TUTTI_OK;
}

/* ---- combine ---- */

/* Elements [from, from + count) of a slot, the stretch's from element `of` on. */
static void combine_block(const flow *f, tti_stretch s, int64_t of, int64_t from, int64_t count)
{
    tti_host_channel *channel = f->channel;
    const tti_team   *team = channel->team;
    const size_t      at = (size_t)from * f->element;
    const size_t      in_stretch = (size_t)of * f->element;
    char             *result = tti_host_result(channel, team->rank) + at;
    char             *to = f->takes ? out_at(f, s) + in_stretch : result;
    int               r;

    for (r = 0; r < team->n_ranks; r++)
        channel->reads[r] = r == team->rank && !f->scales ? in_at(f, s) + in_stretch
                                                          : tti_host_staging(channel, r) + at;
    tti_reduce(f->kernel, to, channel->reads, team->n_ranks, count, team->n_ranks);
    if (f->shows && to != result)
        memcpy(result, to, (size_t)count * f->element);
}

static tutti_status combine(const flow *f, uint64_t round)
{
    const piece     p = piece_of(f, round);
    const tti_slice own = slice_of(f, p, f->channel->team->rank);
    const int64_t   block = (int64_t)(BLOCK / f->element);
    tutti_status    st;
    int64_t         of;

    tti_host_turn(f->channel, f->begin + round);
    st = tti_host_await_all(f->channel, TTI_STAGED);
    if (st != TUTTI_OK)
        return st;
    TTI_EACH_STRETCH (s, &f->segments, p.first + own.begin, own.end - own.begin)
        for (of = 0; of < s.count; of += block)
            combine_block(f, s, of, own.begin + s.at + of, s.count - of < block ? s.count - of : block);
    tti_host_post(f->channel, TTI_RESULT);
    return TUTTI_OK;
}

/* ---- copy ---- */

static tutti_status copy_slice(const flow *f, piece p, int owner)
{
    const tti_slice slice = slice_of(f, p, owner);
    const char     *from = tti_host_result(f->channel, owner) + (size_t)slice.begin * f->element;
    tutti_status    st = tti_host_await(f->channel, TTI_RESULT, owner);

    if (st != TUTTI_OK)
        return st;
    TTI_EACH_STRETCH (s, &f->segments, p.first + slice.begin, slice.end - slice.begin)
        memcpy(out_at(f, s), from + (size_t)s.at * f->element, (size_t)s.count * f->element);
    return TUTTI_OK;
}

static tutti_status copy(flow *f, uint64_t round)
{
    const tti_team *team = f->channel->team;
    const piece     p = piece_of(f, round);
    tutti_status    st = TUTTI_OK;
    int             i;

    tti_host_turn(f->channel, f->begin + round);
    for (i = 1; i < team->n_ranks && f->takes && st == TUTTI_OK; i++)
        st = copy_slice(f, p, tti_shifted(team->rank, i, team->n_ranks));
    if (st == TUTTI_OK) {
        tti_host_next(f->channel);
        tti_segments_advance(&f->segments, p.first + p.count);
    }
    return st;
}

/* ---- */

static tutti_status run(flow *f)
{
    const uint64_t lag = f->channel->crowded ? 0 : LAG_OWN_CORE;
    const uint64_t n = f->n_rounds;
    tutti_status   st = tti_host_begin(f->channel, n);
    uint64_t       t;

    f->begin = f->channel->round;
    for (t = 0; t < n + 2 * lag && st == TUTTI_OK; t++) {
        if (t < n)
            st = stage(f, t);
        if (st == TUTTI_OK && t >= lag && t - lag < n)
            st = combine(f, t - lag);
        if (st == TUTTI_OK && t >= 2 * lag)
            st = copy(f, t - 2 * lag);
    }
    return st;
}

static tutti_status start(tti_host_channel *channel, const tutti_call *call, bool takes, bool shows)
{
    flow f = { .channel = channel, .call = call, .takes = takes, .shows = shows,
               .kernel = tti_reduce_kernel_for(call->op.kind, call->dtype),
               .scales = call->op.kind == TUTTI_OP_PREMUL_SUM,
               .element = tutti_dtype_size(call->dtype) };

    f.per_round = tti_staged_per_round(call, (int64_t)channel->chunk);
    f.n_rounds = tti_staged_rounds(call->count, f.per_round);
    tti_segments_init(&f.segments, call);
    return run(&f);
}

tutti_status tti_staged_all_reduce_sliced(tti_host_channel *channel, const tutti_call *call)
{
    return start(channel, call, true, true);
}

tutti_status tti_staged_reduce_sliced(tti_host_channel *channel, const tutti_call *call)
{
    const bool is_root = call->root == channel->team->rank;

    return start(channel, call, is_root, !is_root);
}
