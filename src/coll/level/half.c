/* SPDX-License-Identifier: BSD-3-Clause
 *
 * half.c - collect and spread, in rounds of the host's channel.
 *
 * How     collect  a slot has a lane for each stream: every member stages its elements of all streams but its own;
 *                  whoever has a stream combines the lanes of all and its own elements
 *         spread   whoever has a stream stages it, a slot in each round; the others copy it to where it belongs
 *         Without a channel a rank has to do with its own elements alone: they are moved at once.
 * True    Contributions are combined by one kernel call, in rank order: the same bits whatever the rounds and lanes.
 *         Buffers are only read and written by their own rank. */
#include "coll/level/half.h"

#include <string.h>
#include "coll/host/staged.h"
#include "coll/pattern.h"
#include "kernel/kernel.h"

static size_t element_of(const tti_half *h)
{
    return tutti_dtype_size(h->call->dtype);
}

/* The stream that is this rank's, or -1. */
static int own_stream(const tti_half *h)
{
    const int stream = h->place - h->first;

    return stream >= 0 && stream < h->n_streams ? stream : -1;
}

static size_t lane_of(const tti_half *h)
{
    return h->collects ? h->channel->chunk / (size_t)h->n_streams & ~(size_t)63 : h->channel->chunk;
}

static int64_t longest(const tti_half *h)
{
    int64_t most = 0;
    int     i;

    for (i = 0; i < h->n_streams; i++) {
        const int64_t length = h->length(h, i);

        most = length > most ? length : most;
    }
    return most;
}

uint64_t tti_half_rounds(const tti_half *h)
{
    uint64_t rounds;

    if (h->channel == NULL || h->n_streams == 0)
        return 0;
    rounds = tti_staged_rounds(longest(h), (int64_t)(lane_of(h) / element_of(h)));
    return rounds == 0 && h->meets ? 1 : rounds;
}

/* ---- between bits and memory in one place ------------------------------------------------------- */

typedef enum direction { TO_BITS, FROM_BITS, FROM_BITS_SCALED } direction;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void move(const tti_half *h, tti_bit bit, char *place, int64_t count, direction way)
{
    const size_t bytes = (size_t)count * element_of(h);

    if (bit.at == NULL || bit.at == place)
        return;
    if (way == TO_BITS)
        memcpy(bit.at, place, bytes);
    else if (way == FROM_BITS)
        memcpy(place, bit.at, bytes);
    else
        tti_scale(place, bit.at, count, h->call->op.factor, h->call->dtype);
}

/* Elements [at, at + count) of a stream, or as many of them as there are, and place. */
static void move_all(const tti_half *h, int stream, int64_t at, int64_t count, char *place, direction way)
{
    const int64_t end = smaller(at + count, h->length(h, stream));

    while (at < end) {
        const tti_bit bit = h->bits(h, stream, at);
        const int64_t n = smaller(bit.count, end - at);

        move(h, bit, place, n, way);
        place += (size_t)n * element_of(h);
        at += n;
    }
}

static bool scales(const tti_half *h)
{
    return h->call->op.kind == TUTTI_OP_PREMUL_SUM;
}

/* ---- collect ------------------------------------------------------------------------------------- */

/* A round: so many elements of every stream. */
typedef struct window {
    int64_t at;
    int64_t count;
} window;

static char *lane_at(const tti_half *h, int rank, int stream)
{
    return tti_host_staging(h->channel, rank) + lane_of(h) * (size_t)stream;
}

static tutti_status stage_lanes(const tti_half *h, window w)
{
    const int    own = own_stream(h);
    tutti_status st = tti_host_room(h->channel);
    int          i;

    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < h->n_streams; i++) {
        const int stream = tti_shifted(h->place, i + 1, h->n_streams);

        if (stream != own || scales(h))
            move_all(h, stream, w.at, w.count, lane_at(h, h->place, stream),
                     scales(h) ? FROM_BITS_SCALED : FROM_BITS);
    }
    tti_host_post(h->channel, TTI_STAGED);
    return TUTTI_OK;
}

static const tti_reduce_kernel *kernel_of(const tti_half *h)
{
    const tutti_op_kind op = h->call->op.kind == TUTTI_OP_AVG ? TUTTI_OP_SUM : h->call->op.kind;

    return tti_reduce_kernel_for(op, h->call->dtype);
}

/* The own stream in this window, bit by bit of the own elements. */
static void combine(const tti_half *h, window w)
{
    tti_host_channel *channel = h->channel;
    const int         own = own_stream(h), me = h->place, n_ranks = channel->team->n_ranks;
    const int64_t     end = smaller(w.at + w.count, h->length(h, own));
    int64_t           at, n;
    int               r;

    for (at = w.at; at < end; at += n) {
        const tti_bit bit = h->bits(h, own, at);
        const size_t  in_lane = (size_t)(at - w.at) * element_of(h);

        n = smaller(bit.count, end - at);
        for (r = 0; r < n_ranks; r++)
            channel->reads[r] = r == me && !scales(h) ? bit.at : lane_at(h, r, own) + in_lane;
        tti_reduce(kernel_of(h), h->own + (size_t)at * element_of(h), channel->reads, n_ranks, n, n_ranks);
    }
}

static tutti_status collect(const tti_half *h, window w)
{
    const int    own = own_stream(h);
    tutti_status st = stage_lanes(h, w);

    if (st != TUTTI_OK || own < 0 || (!h->meets && h->length(h, own) <= w.at))
        return st;
    st = tti_host_await_all(h->channel, TTI_STAGED);
    if (st == TUTTI_OK)
        combine(h, w);
    return st;
}

/* ---- spread -------------------------------------------------------------------------------------- */

static tutti_status give(const tti_half *h, window w)
{
    const int    own = own_stream(h);
    tutti_status st = tti_host_room(h->channel);
    char        *slot;

    if (st != TUTTI_OK)
        return st;
    slot = tti_host_staging(h->channel, h->place);
    if (h->own == NULL)
        move_all(h, own, w.at, w.count, slot, FROM_BITS);
    else
        memcpy(slot, h->own + (size_t)w.at * element_of(h),
               (size_t)smaller(w.count, h->length(h, own) - w.at) * element_of(h));
    tti_host_post(h->channel, TTI_STAGED);
    return TUTTI_OK;
}

static bool has_elements(const tti_half *h, int stream, window w)
{
    return h->meets || h->length(h, stream) > w.at;
}

static tutti_status take(const tti_half *h, int stream, window w)
{
    const tutti_status st = tti_host_await(h->channel, TTI_STAGED, h->first + stream);

    if (st == TUTTI_OK)
        move_all(h, stream, w.at, w.count, tti_host_staging(h->channel, h->first + stream), TO_BITS);
    return st;
}

static tutti_status spread(const tti_half *h, window w)
{
    const int    own = own_stream(h);
    tutti_status st = own >= 0 && has_elements(h, own, w) ? give(h, w) : TUTTI_OK;
    int          i;

    if (st == TUTTI_OK && own >= 0 && h->own != NULL && h->takes)
        move_all(h, own, w.at, w.count, h->own + (size_t)w.at * element_of(h), TO_BITS);
    for (i = 0; i < h->n_streams && h->takes && st == TUTTI_OK; i++) {
        const int stream = tti_shifted(h->place, i + 1, h->n_streams);

        if (stream != own && has_elements(h, stream, w))
            st = take(h, stream, w);
    }
    return st;
}

/* ---- */

/* Nobody else contributes, or takes. */
static void do_alone(const tti_half *h)
{
    const int own = own_stream(h);

    if (own < 0 || h->own == NULL)
        return;
    if (h->collects)
        move_all(h, own, 0, h->length(h, own), h->own, scales(h) ? FROM_BITS_SCALED : FROM_BITS);
    else if (h->takes)
        move_all(h, own, 0, h->length(h, own), h->own, TO_BITS);
}

tutti_status tti_half_do(const tti_half *h)
{
    const uint64_t n = tti_half_rounds(h);
    window         w = { 0 };
    tutti_status   st = TUTTI_OK;
    uint64_t       t;

    if (h->channel == NULL) {
        do_alone(h);
        return TUTTI_OK;
    }
    if (n > 0)
        w.count = (int64_t)(lane_of(h) / element_of(h));
    for (t = 0; t < n && st == TUTTI_OK; t++, w.at += w.count) {
        st = h->collects ? collect(h, w) : spread(h, w);
        if (st == TUTTI_OK)
            tti_host_next(h->channel);
    }
    return st;
}
