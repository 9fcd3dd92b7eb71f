/* SPDX-License-Identifier: BSD-3-Clause
 *
 * two_level.c - a call in pieces: what is collected on a host goes across while the next piece is collected.
 *
 * Why     Between hosts every byte goes once each way, and is carried by as many ranks as a host has cores for: where
 *         all ranks talked to all, a host's link would carry each local rank's copy of everything.
 * How     All members of a host go through the same steps, of which those that are a carrier's own are in brackets:
 *
 *           step s   before(s)   [begin across(s)]   [end across(s-LAG)]   after(s-LAG)
 *
 *         so that LAG pieces are on the link while one is combined. What a piece needs beside the caller's buffers is
 *         kept in a flight, of which there are LAG + 1.
 * True    1. Nobody waits in a circle. A step of a host waits for its members in the same step; across(s) is ended after
 *            step s, and needs the counterparts to have begun, and to end, the same one. All go through one order of
 *            steps: whoever is behind waits for nobody who is ahead.
 *         2. A flight's memory is used again by the piece LAG + 1 later, whose before() comes after this one's after().
 *         3. Pieces overlap in the caller's buffers neither in what they read nor in what they write: in and out may be
 *            the same.
 *         4. Which pieces, carriers and rounds there are is arithmetic of what all members share.
 * Fails   In whatever step: the group's messages are ended, on all members that can be told, the flights' buffers are
 *         given back, and coll.c raises the failure on the channel, where members that wait for this rank look. Whoever
 *         is told by a message only looks for that while it waits for its host (tti_messenger_heard). */
#include <assert.h>
#include <tutti/private.h>
#include "coll/host/wait.h"
#include "coll/level/shapes.h"

enum {
    PIECE_MOST = 1024 * 1024, /* bytes of a call: larger ones leave the link idle for longer at both ends */
    PIECE_LEAST = 256 * 1024, /* smaller ones cost more in meetings than they hide */
    PIECES = 8,               /* of a call between these */
    ALIGN = 64,               /* elements: slices and parts begin on lines then */
};

static tti_flight *flight_of(const tti_flow *f, int64_t piece)
{
    return &f->levels->flights[piece % TTI_LEVEL_FLIGHTS];
}

static int64_t pieces_of(const tti_flow *f)
{
    return f->range > 0 ? (f->range + f->per_piece - 1) / f->per_piece : f->call->kind == TUTTI_CALL_BARRIER;
}

static bool carries(const tti_flow *f)
{
    return f->levels->place < f->carriers;
}

/* Piece number `number` of the call takes its flight. */
static tti_piece board(tti_flow *f, int64_t number)
{
    tti_piece p = { .flow = f, .flight = flight_of(f, number) };

    p.flight->first = number * f->per_piece;
    p.flight->count = f->range - p.flight->first;
    if (p.flight->count > f->per_piece)
        p.flight->count = f->per_piece;
    return p;
}

int64_t tti_level_piece(int64_t range, size_t element, int parts)
{
    const int64_t unit = (int64_t)element * parts;
    int64_t       bytes = range * unit / PIECES;

    bytes = bytes < PIECE_LEAST ? PIECE_LEAST : bytes > PIECE_MOST ? PIECE_MOST : bytes;
    return (bytes / unit + ALIGN) / ALIGN * ALIGN;
}

static void start(tti_flow *f, tti_levels *levels, const tutti_call *call, int carriers)
{
    const tti_hosts *layout = &levels->layout;

    *f = (tti_flow){ .levels = levels, .call = call, .carriers = carriers, .root_host = -1,
                     .element = tutti_dtype_size(call->dtype) };
    if (call->root >= 0)
        f->root_host = layout->host[call->root];
    tti_segments_init(&f->segments, call);
    f->range = tti_part_longest(call, layout->n_ranks);
    f->per_piece = tti_level_piece(f->range, f->element, tti_shape_of(call->kind)->parts(f));
}

/* ---- memory and rounds ---------------------------------------------------------------------------- */

static size_t lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* The first piece is the longest, in every part of it. */
static tutti_status make_room(tti_flow *f, const tti_shape *shape)
{
    tti_levels     *levels = f->levels;
    const tti_piece p = board(f, 0);
    const size_t    each = carries(f) ? lines(shape->scratch(&p)) : 0;
    tutti_status    st = tti_levels_room(levels, each * TTI_LEVEL_FLIGHTS);
    int             i;

    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < TTI_LEVEL_FLIGHTS; i++)
        levels->flights[i].scratch = each > 0 ? levels->scratch + each * (size_t)i : NULL;
    return TUTTI_OK;
}

static uint64_t rounds_of(tti_flow *f, const tti_shape *shape)
{
    uint64_t rounds = 0;
    int64_t  i;

    for (i = 0; i < pieces_of(f); i++) {
        const tti_piece p = board(f, i);
        tti_half        before, after;

        shape->before(&p, &before);
        shape->after(&p, &after);
        rounds += tti_half_rounds(&before) + tti_half_rounds(&after);
    }
    return rounds;
}

/* ---- steps ----------------------------------------------------------------------------------------- */

static tutti_status begin_across(const tti_piece *p, const tti_shape *shape, const tti_call_note *note)
{
    const tti_flow   *f = p->flow;
    tti_flight       *flight = p->flight;
    const tutti_call *call = f->call;
    tti_plan         *plan;
    tutti_status      st;

    flight->across = (tutti_call){ .kind = call->kind, .seq = call->seq, .dtype = call->dtype, .op = call->op,
                                   .root = f->root_host, .deadline_ns = call->deadline_ns,
                                   .timeout_ms = call->timeout_ms, .in_background = call->in_background };
    shape->across(p, &flight->across);
    plan = tti_choose_across(f->carriers > 1 ? &f->levels->decision : &f->levels->alone, &flight->across);
    /* Pieces under way have a lane each. */
    st = tti_net_begin(&flight->net, &f->levels->across, (int)(flight - f->levels->flights), plan, &flight->across, note);
    flight->begun = st == TUTTI_OK;
    return tti_net_learn(&f->levels->across, call->deadline_ns, st);
}

/* What can be moved of the pieces that are under way, from number `first` on, is moved. */
static tutti_status advance_from(tti_flow *f, int64_t first)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < TTI_LEVEL_FLIGHTS && st == TUTTI_OK; i++) {
        tti_flight *flight = flight_of(f, first + i);

        if (!flight->begun)
            continue;
        st = tti_net_advance(&flight->net, &f->levels->across);
        flight->begun = st == TUTTI_OK;
        st = tti_net_learn(&f->levels->across, f->call->deadline_ns, st);
    }
    return st;
}

static tutti_status first_half(tti_flow *f, const tti_shape *shape, int64_t number, const tti_call_note *note)
{
    const tti_piece p = board(f, number);
    tti_half        half;
    tutti_status    st;

    if (shape->keep != NULL)
        shape->keep(&p);
    shape->before(&p, &half);
    st = tti_half_do(&half);
    return st == TUTTI_OK && carries(f) ? begin_across(&p, shape, note) : st;
}

static tutti_status second_half(tti_flow *f, const tti_shape *shape, int64_t number)
{
    const tti_piece p = board(f, number);
    tti_half        half;
    tutti_status    st = TUTTI_OK;

    if (carries(f)) {
        p.flight->begun = false; /* ended, one way or the other */
        st = tti_net_end(&p.flight->net, &f->levels->across);
    }
    if (st != TUTTI_OK)
        return st;
    shape->after(&p, &half);
    st = tti_half_do(&half);
    tti_segments_advance(&f->segments, p.flight->first);
    return st;
}

static tutti_status run_pieces(tti_flow *f, const tti_shape *shape, const tti_call_note *note)
{
    const int64_t n = pieces_of(f);
    tutti_status  st = TUTTI_OK;
    int64_t       s;

    for (s = 0; s < n + TTI_LEVEL_LAG && st == TUTTI_OK; s++) {
        if (s < n)
            st = first_half(f, shape, s, note);
        if (st == TUTTI_OK)
            st = advance_from(f, s > TTI_LEVEL_LAG ? s - TTI_LEVEL_LAG : 0);
        if (st == TUTTI_OK && s >= TTI_LEVEL_LAG && s - TTI_LEVEL_LAG < n)
            st = second_half(f, shape, s - TTI_LEVEL_LAG);
    }
    return st;
}

/* ---- */

/* All members of the host have called the same, as far as they have come. */
static tutti_status enter(tti_flow *f, const tti_shape *shape, const tti_call_note *note)
{
    tti_host_channel *channel = f->levels->channel;
    tutti_status      st;

    if (channel == NULL)
        return TUTTI_OK;
    tti_host_wait_in_background(channel, f->call->in_background);
    st = tti_host_enter(channel, f->call, note);
    return st == TUTTI_OK ? tti_host_begin(channel, rounds_of(f, shape)) : st;
}

static tutti_status run(tti_levels *levels, const tutti_call *call, const tti_call_note *note, int carriers)
{
    const tti_shape *shape = tti_shape_of(call->kind);
    tutti_call       timed = *call;
    tti_flow         flow;
    tutti_status     st;

    timed.deadline_ns = tti_call_deadline(call, tti_port_now(levels->whole->port));
    start(&flow, levels, &timed, carriers);
    st = make_room(&flow, shape);
    if (st == TUTTI_OK)
        st = enter(&flow, shape, note);
    if (st == TUTTI_OK)
        st = run_pieces(&flow, shape, note);
    if (st != TUTTI_OK)
        return tti_levels_give_up(levels, st);
    if (levels->channel != NULL)
        tti_host_finish(levels->channel);
    return TUTTI_OK;
}

tutti_status tti_two_level(tti_levels *levels, const tutti_call *call, const tti_call_note *note)
{
    return run(levels, call, note, levels->carriers);
}

tutti_status tti_leaders(tti_levels *levels, const tutti_call *call, const tti_call_note *note)
{
    return run(levels, call, note, 1);
}
