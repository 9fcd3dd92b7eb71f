/* SPDX-License-Identifier: BSD-3-Clause
 *
 * motion.c - the messages of a chunk: post those of a phase, see them end, do its local steps, go on.
 *
 * How     All receives of a phase are posted first, so that what arrives lands in its place; sends follow in the plan's
 *         order with at most cut.sends under way. Sends never wait for the receiver's consent, so the window
 *         cannot close a circle. Nothing here waits: whoever does (run.c) comes back when a message has ended.
 *         Messages are seen to have ended in the order of the schedule's rows, each once.
 *         Tag: lane, chunk and phase; word: the call's.
 * Ahead   Others may be a phase ahead, and what comes before it is asked for is kept, and copied. So what the next phase
 *         needs is asked for as soon as this one's sends are under way, where its place is free: nothing that
 *         this phase reads or writes, but for what it sends to the very rank that the message comes from. That rank
 *         sends it when its own part of this phase is over, and so has what it was sent: the place has been
 *         read by then. */
#include "coll/net/motion.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { PHASE_BITS = 20, CHUNK_BITS = 8, AHEAD_MOST = 4096 };

_Static_assert(TTI_LANES == 1 << (31 - PHASE_BITS - CHUNK_BITS), "a tag has lane, chunk and phase, and is not negative");

static tti_channel channel_of(const tti_net *net)
{
    return (tti_channel){ .group = net->team->group_id, .plane = TTI_PLANE_COLLECTIVE };
}

static int tag_of(const tti_net *net, const tti_chunk *chunk, int phase)
{
    const int k = chunk->number & ((1 << CHUNK_BITS) - 1);

    return (net->lane << CHUNK_BITS | k) << PHASE_BITS | phase;
}

static tti_parcel parcel_of(const tti_net *net, const tti_chunk *chunk, int phase, const tti_transfer *transfer)
{
    return (tti_parcel){ .peer = net->team->ranks[transfer->peer], .tag = tag_of(net, chunk, phase),
                         .dtype = (uint8_t)chunk->call.dtype, .word = net->note.word, .what = net->note.what,
                         .data = tti_block_at(&chunk->binding, &transfer->block),
                         .bytes = (size_t)transfer->block.bytes, .at_most = transfer->at_most,
                         .beside = transfer->beside };
}

static const tti_phase *phase_of(const tti_chunk *chunk)
{
    return (const tti_phase *)chunk->schedule.phases.items + chunk->phase;
}

int tti_motion_recvs_end(const tti_chunk *chunk)
{
    return tti_motion_is_over(chunk) ? chunk->schedule.recvs.n : phase_of(chunk)->recvs_end;
}

/* The i-th receive of the schedule, which is phase's. */
static tutti_status post_recv(const tti_net *net, tti_chunk *chunk, int phase, int i)
{
    const tti_transfer *recv = (const tti_transfer *)chunk->schedule.recvs.items + i;
    const tti_parcel    parcel = parcel_of(net, chunk, phase, recv);

    return tti_messenger_recv(net->team->messenger, channel_of(net), &parcel, &chunk->recvs[i]);
}

/* Those that were not posted when the phase before was under way. */
static tutti_status post_recvs(const tti_net *net, tti_chunk *chunk)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = chunk->n_received; i < phase_of(chunk)->recvs_end && st == TUTTI_OK; i++)
        if (chunk->recvs[i] == NULL)
            st = post_recv(net, chunk, chunk->phase, i);
    return st;
}

static bool overlap(const tti_binding *binding, const tti_block *a, const tti_block *b)
{
    const char *at, *bt;

    if ((a->place == TTI_PLACE_SCRATCH) != (b->place == TTI_PLACE_SCRATCH))
        return false; /* a look at numbers is enough for nearly all; buffers may be one memory */
    at = tti_block_at(binding, a);
    bt = tti_block_at(binding, b);
    return at != NULL && bt != NULL && at < bt + b->bytes && bt < at + a->bytes;
}

static bool is_in_steps(const tti_chunk *chunk, const tti_block *place)
{
    const tti_step  *steps = chunk->schedule.steps.items;
    const tti_block *inputs = chunk->schedule.inputs.items;
    int              i, j;

    for (i = chunk->phase > 0 ? phase_of(chunk)[-1].steps_end : 0; i < phase_of(chunk)->steps_end; i++) {
        if (overlap(&chunk->binding, &steps[i].to, place))
            return true;
        for (j = 0; j < steps[i].n; j++)
            if (overlap(&chunk->binding, &inputs[steps[i].first + j], place))
                return true;
    }
    return false;
}

/* Whether a message of the next phase may come while this one is under way. */
static bool is_free(const tti_chunk *chunk, const tti_transfer *next)
{
    int                 n_sends, n_recvs, i;
    const tti_transfer *sends = tti_phase_sends(&chunk->schedule, chunk->phase, &n_sends);
    const tti_transfer *recvs = tti_phase_recvs(&chunk->schedule, chunk->phase, &n_recvs);

    for (i = 0; i < n_sends; i++)
        if (sends[i].peer != next->peer && overlap(&chunk->binding, &sends[i].block, &next->block))
            return false;
    for (i = 0; i < n_recvs; i++)
        if (overlap(&chunk->binding, &recvs[i].block, &next->block))
            return false;
    return !is_in_steps(chunk, &next->block);
}

/* Of many ranks it would take long to find out what may come ahead. */
static bool has_few_blocks(const tti_chunk *chunk, int n_next)
{
    const int begin = chunk->phase > 0 ? phase_of(chunk)[-1].steps_end : 0;
    int       n_sends, n_recvs;

    (void)tti_phase_sends(&chunk->schedule, chunk->phase, &n_sends);
    (void)tti_phase_recvs(&chunk->schedule, chunk->phase, &n_recvs);
    return (int64_t)n_next * (n_sends + n_recvs + phase_of(chunk)->steps_end - begin) <= AHEAD_MOST;
}

/* Ask for what the next phase needs, once in a phase; up to the first that may not come yet: of several messages from one
 * rank each is taken by whoever asked first. */
static tutti_status post_ahead(const tti_net *net, tti_chunk *chunk)
{
    const int    phase = chunk->phase + 1;
    int          n_next, i;
    tutti_status st = TUTTI_OK;

    if (phase >= chunk->schedule.phases.n || chunk->n_ahead == phase)
        return TUTTI_OK;
    chunk->n_ahead = phase;
    (void)tti_phase_recvs(&chunk->schedule, phase, &n_next);
    if (!has_few_blocks(chunk, n_next))
        return TUTTI_OK;
    for (i = phase_of(chunk)->recvs_end; i < phase_of(chunk)->recvs_end + n_next && st == TUTTI_OK; i++) {
        if (!is_free(chunk, (const tti_transfer *)chunk->schedule.recvs.items + i))
            break;
        st = post_recv(net, chunk, phase, i);
    }
    return st;
}

/* Take what came of a message that has ended. */
static tutti_status take(const tti_net *net, tti_request **request, int peer)
{
    tutti_status st = tti_request_wait(*request, 0);

    if (st != TUTTI_OK)
        return tti_net_fail_message(net, *request, peer, st);
    tti_request_release(*request);
    *request = NULL;
    return TUTTI_OK;
}

static tutti_status take_received(const tti_net *net, tti_chunk *chunk)
{
    const tti_transfer *recvs = chunk->schedule.recvs.items;
    tutti_status        st = TUTTI_OK;

    while (chunk->n_received < phase_of(chunk)->recvs_end && tti_request_ended(chunk->recvs[chunk->n_received])) {
        st = take(net, &chunk->recvs[chunk->n_received], recvs[chunk->n_received].peer);
        if (st != TUTTI_OK)
            return st;
        chunk->n_received++;
    }
    return TUTTI_OK;
}

static tutti_status take_sent(const tti_net *net, tti_chunk *chunk)
{
    const tti_transfer *sends = chunk->schedule.sends.items;
    tutti_status        st = TUTTI_OK;

    while (chunk->n_sent < chunk->n_sending && tti_request_ended(chunk->sends[chunk->n_sent])) {
        st = take(net, &chunk->sends[chunk->n_sent], sends[chunk->n_sent].peer);
        if (st != TUTTI_OK)
            return st;
        chunk->n_sent++;
    }
    return TUTTI_OK;
}

/* Those that are left, as far as the window allows. */
static tutti_status post_sends(const tti_net *net, tti_chunk *chunk)
{
    const tti_transfer *sends = chunk->schedule.sends.items;
    tutti_status        st = take_sent(net, chunk);

    while (st == TUTTI_OK && chunk->n_sending < phase_of(chunk)->sends_end &&
           chunk->n_sending - chunk->n_sent < net->cut.sends) {
        const tti_parcel parcel = parcel_of(net, chunk, chunk->phase, &sends[chunk->n_sending]);

        st = tti_messenger_send(net->team->messenger, channel_of(net), &parcel, &chunk->sends[chunk->n_sending]);
        if (st != TUTTI_OK)
            return st;
        chunk->n_sending++;
        st = take_sent(net, chunk);
    }
    return st;
}

static bool phase_is_over(const tti_chunk *chunk)
{
    const tti_phase *phase = phase_of(chunk);

    return chunk->n_received == phase->recvs_end && chunk->n_sent == phase->sends_end;
}

static tutti_status end_phase(const tti_net *net, tti_chunk *chunk)
{
    tutti_status st = TUTTI_OK;

    tti_phase_steps(&chunk->schedule, chunk->phase, &chunk->binding);
    if (chunk->binding.sizes != NULL && chunk->phase == chunk->schedule.sizes_phase)
        st = tti_chunk_compare_sizes(chunk, net->team, &net->note);
    if (st != TUTTI_OK)
        return st;
    chunk->phase++;
    if (!tti_motion_is_over(chunk))
        return post_recvs(net, chunk);
    tti_chunk_finish(chunk);
    return TUTTI_OK;
}

tutti_status tti_motion_go_on(const tti_net *net, tti_chunk *chunk)
{
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && !tti_motion_is_over(chunk)) {
        st = post_sends(net, chunk);
        if (st == TUTTI_OK)
            st = post_ahead(net, chunk);
        if (st == TUTTI_OK)
            st = take_received(net, chunk);
        if (st != TUTTI_OK || !phase_is_over(chunk))
            break;
        st = end_phase(net, chunk);
    }
    return st;
}

static tutti_status take_requests(tti_chunk *chunk)
{
    const int     n = chunk->schedule.recvs.n + chunk->schedule.sends.n;
    tti_request **grown;

    chunk->n_requests = 0;
    if (n > chunk->requests_room) {
        grown = realloc(chunk->recvs, (size_t)n * sizeof *grown);
        if (grown == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for %d messages of a collective", n);
        chunk->recvs = grown;
        chunk->requests_room = n;
    }
    if (n > 0) {
        memset(chunk->recvs, 0, (size_t)n * sizeof *chunk->recvs);
        chunk->sends = chunk->recvs + chunk->schedule.recvs.n;
    }
    chunk->n_requests = n;
    return TUTTI_OK;
}

tutti_status tti_motion_begin(const tti_net *net, tti_chunk *chunk)
{
    tutti_status st = take_requests(chunk);

    chunk->phase = chunk->n_received = chunk->n_sent = chunk->n_sending = chunk->n_ahead = 0;
    return st == TUTTI_OK && !tti_motion_is_over(chunk) ? post_recvs(net, chunk) : st;
}

bool tti_motion_is_over(const tti_chunk *chunk)
{
    return chunk->phase == chunk->schedule.phases.n;
}

bool tti_motion_has_given(const tti_chunk *chunk)
{
    return tti_motion_is_over(chunk) ||
           (chunk->phase == chunk->schedule.phases.n - 1 && chunk->n_sent == chunk->schedule.sends.n);
}

tti_request *tti_motion_pending(const tti_chunk *chunk)
{
    if (chunk->n_received < tti_motion_recvs_end(chunk))
        return chunk->recvs[chunk->n_received];
    return chunk->n_sent < chunk->n_sending ? chunk->sends[chunk->n_sent] : NULL;
}

int tti_motion_awaited(const tti_chunk *chunk)
{
    const tti_transfer *recvs = chunk->schedule.recvs.items;

    return chunk->n_received < tti_motion_recvs_end(chunk) ? recvs[chunk->n_received].peer : -1;
}

void tti_motion_let_go(tti_chunk *chunk)
{
    int i;

    for (i = 0; i < chunk->n_requests; i++) {
        if (chunk->recvs[i] == NULL)
            continue;
        (void)tti_request_wait(chunk->recvs[i], TTI_FOREVER);
        tti_request_release(chunk->recvs[i]);
        chunk->recvs[i] = NULL;
    }
}
