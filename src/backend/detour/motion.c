/* SPDX-License-Identifier: BSD-3-Clause
 *
 * motion.c - one call: pieces come to the host, are worked on, and go back.
 *
 * How     A lane has two streams, as a device copies both ways at once. For each piece:
 *
 *           in    copy to a pinned block, record the block's event
 *           here  wait until that has come; the detour's backend does the piece, in the block
 *           out   copy back, record the block's event
 *
 *         Up to TTI_DETOUR_DEPTH pieces are under way: the copies of later ones are given to `in` before an earlier one is worked
 *         on, and those back are not waited for. Each has a block; the next piece that takes it lets `in` wait for its event
 *         first.
 * Order   Both streams begin behind `before`, the mark of the caller's stream: `in` would read what is not written yet, and `out`
 *         write what the caller's stream still reads. What is not copied in is waited for on this thread instead, before run
 *         ends: a deadline is then run's alone. `after` stands behind all copies back; the caller's stream follows it.
 * True    A block is the device's from the copy in until its event has come, this thread's then, and the device's again from
 *         the copy back on. Where nothing is copied in, this thread waits for the event of the copy back before it writes
 *         there again. Blocks are put back with their last event, which whoever takes them next looks at. */
#include "backend/detour/detour_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>
#include "base/port.h"
#include "watch/control.h"

/* One piece under way. */
typedef struct berth {
    tti_block  *block; /* NULL: none was needed yet */
    tti_piece   piece;
    tutti_call  on_host;
} berth;

typedef struct motion {
    tti_detour       *d;
    const tutti_call *call;
    tutti_ticket     *ticket;
    tti_lane         *lane;
    tti_pieces        pieces;
    bool              gives;
    bool              waited; /* something came in, so the caller's stream was waited for */
    int64_t           begun_ns;
    int64_t           deadline_ns;
    uint64_t          n_begun, n_done; /* pieces */
    berth             berths[TTI_DETOUR_DEPTH];
} motion;

/* ---- waiting for the device ---- */

tutti_status tti_detour_await(tti_detour *d, int device, void *event, int64_t deadline_ns, bool in_background, bool *late_out)
{
    uint32_t     rounds = 0;
    bool         come = false;
    tutti_status st;

    *late_out = false;
    for (;;) {
        st = d->dev->has_come(device, event, &come);
        if (st != TUTTI_OK || come)
            return st;
        if (atomic_load_explicit(&d->status, memory_order_acquire) != TUTTI_OK)
            return tti_detour_say(d);
        if (tti_now_ns() >= deadline_ns) {
            *late_out = true;
            return TUTTI_OK;
        }
        d->idle(&rounds, in_background);
    }
}

static void describe(const motion *m, char text[TTI_DETOUR_TEXT])
{
    char count[24] = ""; /* what is a rank's own is not told */

    if (m->call->in_counts == NULL)
        snprintf(count, sizeof count, "%lld ", (long long)m->call->count);
    snprintf(text, TTI_DETOUR_TEXT, "%s #%llu (%s%s of GPU %d) on group '%s'", tti_call_kind_name(m->call->kind),
             (unsigned long long)m->call->seq, count, tutti_dtype_name(m->call->dtype), m->lane->device, m->d->name);
}

static tutti_status await_event(const motion *m, void *event)
{
    const tti_detour *d = m->d;
    char              what[TTI_DETOUR_TEXT];
    bool              late;
    tutti_status      st = tti_detour_await(m->d, m->lane->device, event, m->deadline_ns, m->call->in_background, &late);

    if (st != TUTTI_OK || !late)
        return st;
    describe(m, what);
    return tti_fail(TUTTI_E_TIMEOUT,
                    "%s timed out after %lld ms on rank %d of %d members: GPU %d is not through with what the stream of the call was "
                    "given before it\n  next: see what that waits for, or give the group a longer time-out",
                    what, (long long)((tti_now_ns() - m->begun_ns) / TTI_MS), d->global_ranks[d->rank], d->n_ranks, m->lane->device);
}

/* ---- copies ---- */

static tutti_status copy_in(void *context, void *to, const void *from, size_t bytes)
{
    const motion *m = context;

    return m->d->dev->copy(m->lane->device, m->lane->in, to, from, bytes);
}

static tutti_status copy_out(void *context, void *to, const void *from, size_t bytes)
{
    const motion *m = context;

    return m->d->dev->copy(m->lane->device, m->lane->out, to, from, bytes);
}

static tutti_status record(const motion *m, tti_block *block, void *stream)
{
    block->used = true;
    return m->d->dev->record(m->lane->device, block->event, stream);
}

/* A block that is large enough: the one of an earlier piece, whose copies the piece comes behind, or another one. */
static tutti_status have_block(motion *m, berth *b)
{
    const size_t bytes = tti_piece_bytes(&m->pieces, &b->piece);

    if (b->block != NULL && b->block->bytes < bytes) {
        tti_pinned_put(m->d->pinned, b->block, true);
        b->block = NULL;
    }
    return b->block != NULL ? TUTTI_OK
                            : tti_pinned_take(m->d->pinned, m->d->dev, m->lane->device, bytes, &b->block);
}

/* ---- pieces ---- */

static berth *berth_of(motion *m, uint64_t piece)
{
    return &m->berths[piece % TTI_DETOUR_DEPTH];
}

/* Let the next piece come; false in *more_out: there is none. */
static tutti_status begin_piece(motion *m, bool *more_out)
{
    const tutti_device_ops *dev = m->d->dev;
    const size_t            k = m->n_begun % TTI_DETOUR_DEPTH, n = (size_t)m->d->n_ranks;
    berth                  *b = berth_of(m, m->n_begun);
    const void            **places = m->d->places + k * 2 * n;
    tutti_status            st;

    *more_out = tti_pieces_next(&m->pieces, &b->piece);
    if (!*more_out)
        return TUTTI_OK;
    m->n_begun++;
    st = have_block(m, b);
    if (st != TUTTI_OK)
        return st;
    b->on_host = tti_piece_call(&m->pieces, &b->piece, b->block->memory, places, (void **)(uintptr_t)(places + n));
    if (!m->gives)
        return TUTTI_OK;
    if (b->block->used)
        st = dev->stream_wait(m->lane->device, m->lane->in, b->block->event);
    if (st == TUTTI_OK)
        st = tti_piece_fetch(&m->pieces, &b->piece, &b->on_host, copy_in, m);
    return st == TUTTI_OK ? record(m, b->block, m->lane->in) : st;
}

/* The members' words are of a piece, with a number of its own; whose it is they cannot know. */
static tutti_status name_call(const motion *m, tutti_status st)
{
    char what[TTI_DETOUR_TEXT], words[TTI_DETOUR_WORDS];

    describe(m, what);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(st, "%s, done in memory of the host, in its piece %llu: %s", what, (unsigned long long)m->n_done + 1, words);
}

/* What the wait for the caller's stream has left of the call's time; 0 would be a default. */
static int64_t left_ms(const motion *m)
{
    const int64_t left = tti_left_ms(tti_port_system(), m->deadline_ns);

    return left != 0 ? left : 1;
}

static tutti_status do_on_host(motion *m, berth *b)
{
    tti_detour  *d = m->d;
    tutti_status st = tti_detour_meet(d, left_ms(m));

    if (st == TUTTI_OK) {
        d->seq = d->seq + 1 > m->call->seq ? d->seq + 1 : m->call->seq;
        b->on_host.seq = d->seq;
        b->on_host.deadline_ns = m->deadline_ns;
        st = d->ops->run(d->host, &b->on_host);
    }
    return st == TUTTI_OK ? st : name_call(m, st);
}

static tutti_status end_piece(motion *m)
{
    berth       *b = berth_of(m, m->n_done);
    tutti_status st = TUTTI_OK;

    if (b->block->used) { /* a copy in, of this piece, or else a copy back, of an earlier one */
        st = await_event(m, b->block->event);
        m->waited = m->waited || m->gives;
    }
    if (st == TUTTI_OK)
        st = do_on_host(m, b);
    if (st == TUTTI_OK)
        st = tti_piece_return(&m->pieces, &b->piece, &b->on_host, copy_out, m);
    m->n_done++;
    return st == TUTTI_OK ? record(m, b->block, m->lane->out) : st;
}

static tutti_status move_pieces(motion *m)
{
    bool         more = true;
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && (more || m->n_done < m->n_begun)) {
        while (more && st == TUTTI_OK && m->n_begun < m->n_done + TTI_DETOUR_DEPTH)
            st = begin_piece(m, &more);
        if (st == TUTTI_OK && m->n_done < m->n_begun)
            st = end_piece(m);
    }
    return st;
}

/* ---- a call ---- */

static tutti_status begin_behind(const motion *m)
{
    const tutti_device_ops *dev = m->d->dev;
    tutti_status            st = dev->stream_wait(m->lane->device, m->lane->in, m->ticket->before);

    return st == TUTTI_OK ? dev->stream_wait(m->lane->device, m->lane->out, m->ticket->before) : st;
}

static tutti_status end_call(const motion *m)
{
    const tutti_device_ops *dev = m->d->dev;
    tutti_status            st = m->waited ? TUTTI_OK : await_event(m, m->ticket->before);

    if (st == TUTTI_OK)
        st = dev->record(m->lane->device, m->ticket->after, m->lane->out);
    m->ticket->begun = st == TUTTI_OK;
    if (st == TUTTI_OK)
        st = dev->record(m->lane->device, m->lane->last, m->lane->out);
    m->lane->used = true;
    return st;
}

/* After a failure: whatever either stream was given of it is before its event. False: the device does not even take that. */
static bool stands_behind_all(const motion *m, tti_block *block)
{
    return record(m, block, m->lane->in) == TUTTI_OK &&
           m->d->dev->stream_wait(m->lane->device, m->lane->out, block->event) == TUTTI_OK &&
           record(m, block, m->lane->out) == TUTTI_OK;
}

/* A block whose event nobody can say anything of stays with the device for ever. */
static void give_blocks_back(motion *m, bool failed)
{
    tti_block *block;
    int        k;

    for (k = 0; k < TTI_DETOUR_DEPTH; k++) {
        block = m->berths[k].block;
        if (block != NULL && (!failed || stands_behind_all(m, block)))
            tti_pinned_put(m->d->pinned, block, failed);
    }
}

static tutti_status have_places(tti_detour *d)
{
    if (d->places == NULL)
        d->places = malloc((size_t)d->n_ranks * (TTI_DETOUR_DEPTH * 2) * sizeof *d->places);
    return d->places != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for a call of %d ranks", d->n_ranks);
}

static tutti_status run_marked(tti_detour *d, const tutti_call *call, tutti_ticket *ticket)
{
    const int64_t now_ns = tti_now_ns();
    motion        m = { .d = d, .call = call, .ticket = ticket, .lane = ticket->lane, .begun_ns = now_ns,
                        .pieces = tti_pieces_of(call, d->rank, d->n_ranks) };
    tutti_status  st;

    m.gives = tti_pieces_give(&m.pieces);
    m.deadline_ns = d->deadline_ns = call->deadline_ns != 0 ? call->deadline_ns : tti_later(now_ns, call->timeout_ms);
    st = have_places(d);
    if (st == TUTTI_OK)
        st = begin_behind(&m);
    if (st == TUTTI_OK)
        st = move_pieces(&m);
    if (st == TUTTI_OK)
        st = end_call(&m);
    if (st == TUTTI_OK || st == TUTTI_E_UNSUPPORTED) { /* refused by all members alike: the group goes on */
        give_blocks_back(&m, st != TUTTI_OK);
        if (st == TUTTI_OK)
            tti_pinned_trim(d->pinned);
        return st;
    }
    (void)tti_detour_end(d, st); /* keeps the words, which what follows may change */
    give_blocks_back(&m, true);
    return tti_detour_say(d);
}

/* Nobody has marked a place in a stream: behind the default one, and through when this returns. */
static tutti_status run_unmarked(tti_detour *d, const tutti_call *call)
{
    tutti_ticket *ticket = NULL;
    tutti_status  st = tti_detour_mark(d, call->device_index, NULL, &ticket);

    if (st != TUTTI_OK)
        return st;
    st = run_marked(d, call, ticket);
    if (st == TUTTI_OK)
        st = tti_detour_wait(ticket, d->deadline_ns);
    tti_detour_release(ticket);
    return st;
}

tutti_status tti_detour_run(tti_detour *d, const tutti_call *call)
{
    if (atomic_load_explicit(&d->status, memory_order_acquire) != TUTTI_OK)
        return tti_detour_say(d);
    if (call->device_index < 0)
        return tti_fail(TUTTI_E_UNSUPPORTED, "%s on group '%s': a span of a GPU does not say of which\n  next: set device.index",
                        tti_call_kind_name(call->kind), d->name);
    return call->ticket != NULL ? run_marked(d, call, call->ticket) : run_unmarked(d, call);
}
