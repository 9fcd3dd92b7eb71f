/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - a call by messages: its chunks, several of them under way, each at a phase of its own.
 *
 *   chunk 0   | send | combine | send |
 *   chunk 1          | send | combine | send |          a link carries one chunk while a core combines another;
 *   chunk 2                 | send | combine | send |   chunk 3 takes the place, and the memory, of chunk 0
 *
 * Why     In one piece a call has its link and its cores take turns, and holds as much memory as others have to send.
 * How     cut.c says into what a call is cut. Up to cut.window chunks are under way, begun in their order. Whoever looks
 *         at the call moves every chunk as far as that waits for nobody (motion.c); whoever waits for its end waits
 *         until any message has ended, and looks again.
 *         Where blocks' sizes are told first, other chunks begin when those have been compared: nothing
 *         that a rank did not expect is written.
 * Begun   An operation that is only begun has posted the first phases of its first chunks: that waits for nobody. Whoever
 *         looks moves it on. When it has given all, others may be begun behind it, each with memory of its own (coll.c).
 * True    A message is matched by lane, chunk (of 256) and phase. Within a call: chunks that are under way together have
 *         different numbers, for windows are smaller than 256, and of two with equal ones, on every rank, the
 *         second has its messages posted after the first has ended; phases are posted in their order. Of two calls in
 *         one lane, on every rank, the second is begun when all of the first is posted, for sends as for receives: it
 *         has ended, or tti_net_has_given(). Messages with equal keys arrive in the order sent: so nothing of a call can be
 *         taken by the next. Calls in different lanes know nothing of each other.
 *         A rank is at most its window of chunks ahead of what others have given it, and one that is given nothing, as the root of a
 *         chain, of what sockets take; windows may differ. What comes before it is asked for
 *         is kept by the messenger: so it is asked for early, whole windows of chunks and a phase ahead (motion.c).
 * Fails   The first failure is worded and told to the caller; before that all messages of the group
 *         are aborted and waited for, because they borrow the caller's buffers. The group is
 *         finished then. */
#include "coll/net/run.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "coll/net/motion.h"

enum {
    WAITS_TO_LOOK = 256, /* from one look at the clock to the next, while messages come */
    TELL_MS = 100, /* what takes longer may be a mistake */
};

void tti_net_release(tti_net *net)
{
    int i;

    for (i = 0; i < net->chunks_room; i++)
        tti_chunk_release(&net->chunks[i]);
    free(net->chunks);
    *net = (tti_net){ .chunks = NULL };
}

static tti_chunk *chunk_at(const tti_net *net, int k)
{
    return &net->chunks[k % net->cut.window];
}

static tutti_status take_chunks(tti_net *net)
{
    const int  n = net->cut.window;
    tti_chunk *grown;

    if (n <= net->chunks_room)
        return TUTTI_OK;
    grown = realloc(net->chunks, (size_t)n * sizeof *grown);
    if (grown == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d chunks of a collective", n);
    memset(grown + net->chunks_room, 0, (size_t)(n - net->chunks_room) * sizeof *grown);
    net->chunks = grown;
    net->chunks_room = n;
    return TUTTI_OK;
}

static void let_go(tti_net *net)
{
    int i;

    for (i = 0; i < net->chunks_room; i++)
        tti_motion_let_go(&net->chunks[i]);
    net->n_over = net->n_begun = net->cut.n_chunks;
}

/* Take the buffers back and tell the others: ends what is under way, keeping the words of the
 * failure. */
static tutti_status give_up(tti_net *net, tutti_status status)
{
    const tti_team *team = net->team;
    tti_words       words = { .used = 0 };

    tti_words_add(&words, "%s", tutti_last_error());
    if (status == TUTTI_E_ABORTED && atomic_load_explicit(&team->aborted, memory_order_acquire))
        tti_messenger_abort(team->messenger, team->group_id); /* who aborted tells the others, or not */
    else
        tti_messenger_fail(team->messenger, team->group_id, status, tti_team_whole(team)->ranks,
                           tti_team_whole(team)->n_ranks);
    let_go(net);
    return tti_fail(status, "%s", words.text);
}

/* Whether the next chunk has a place, and may begin. */
static bool may_begin(const tti_net *net)
{
    return net->n_begun < net->cut.n_chunks && net->n_begun < net->n_over + net->cut.window &&
           (net->n_begun == 0 || net->sizes_known);
}

/* Those that may begin. They ask before any of them gives: what others have sent already is not read before it has a
 * place. */
static tutti_status begin_chunks(tti_net *net)
{
    tutti_status st = TUTTI_OK;
    int          k = net->n_begun;

    while (st == TUTTI_OK && may_begin(net)) {
        tti_chunk *chunk = chunk_at(net, net->n_begun);

        st = tti_chunk_make(chunk, net->team, net->plan, net->call, &net->cut, net->n_begun);
        if (st == TUTTI_OK) {
            net->n_begun++;
            st = tti_motion_begin(net, chunk);
        }
    }
    for (; k < net->n_begun && st == TUTTI_OK; k++)
        st = tti_motion_go_on(net, chunk_at(net, k));
    return st;
}

/* Those that are over, from the oldest on; and whether sizes are known now. */
static void pass_over(tti_net *net)
{
    while (net->n_over < net->n_begun && tti_motion_is_over(chunk_at(net, net->n_over)))
        net->n_over++;
    net->sizes_known = net->sizes_known || net->n_over > 0 || chunk_at(net, 0)->phase > chunk_at(net, 0)->schedule.sizes_phase;
}

/* Move all chunks as far as nobody has to be waited for. */
static tutti_status move(tti_net *net)
{
    tutti_status st = TUTTI_OK;
    int          k;

    for (k = net->n_over; k < net->n_begun && st == TUTTI_OK; k++)
        st = tti_motion_go_on(net, chunk_at(net, k));
    while (st == TUTTI_OK) {
        pass_over(net);
        if (!may_begin(net))
            break;
        st = begin_chunks(net);
    }
    return st;
}

tutti_status tti_net_begin_cut(tti_net *net, const tti_team *team, int lane, tti_plan *plan, const tutti_call *call,
                               const tti_call_note *note, const tti_cut *cut)
{
    tutti_status st;

    net->lane = lane;
    net->team = team;
    net->call = call;
    net->note = *note;
    net->plan = plan;
    net->cut = *cut;
    net->n_begun = net->n_over = 0;
    net->sizes_known = !tti_exchanges_sizes(call);
    st = take_chunks(net);
    if (st == TUTTI_OK)
        st = begin_chunks(net);
    return st == TUTTI_OK ? TUTTI_OK : give_up(net, st); /* others wait for this rank */
}

/* How far others are is asked only where it may count. */
static tti_cut cut_of(const tti_team *team, tti_plan *plan, const tutti_call *call)
{
    const tti_cut cut = tti_cut_of(plan, call, team->n_ranks, team->wire);

    if (cut.n_chunks <= cut.window || !tti_wire_is_dear(team->wire))
        return cut;
    return tti_cut_over(plan, call, team->n_ranks, team->wire, 1e3 * tti_messenger_trip_us(team->messenger, team->ranks, team->n_ranks));
}

tutti_status tti_net_begin(tti_net *net, const tti_team *team, int lane, tti_plan *plan, const tutti_call *call,
                           const tti_call_note *note)
{
    const tti_cut cut = cut_of(team, plan, call);

    return tti_net_begin_cut(net, team, lane, plan, call, note, &cut);
}

tutti_status tti_net_advance(tti_net *net, const tti_team *team)
{
    tutti_status st;

    st = move(net);
    if (st == TUTTI_OK && !tti_net_may_end(net)) {
        tti_messenger_advance(team->messenger);
        st = move(net);
    }
    return st == TUTTI_OK ? TUTTI_OK : give_up(net, st);
}

bool tti_net_has_given(const tti_net *net)
{
    int k;

    if (net->n_begun < net->cut.n_chunks)
        return false;
    for (k = net->n_over; k < net->n_begun; k++)
        if (!tti_motion_has_given(chunk_at(net, k)))
            return false;
    return true;
}

bool tti_net_may_end(const tti_net *net)
{
    return net->n_over == net->cut.n_chunks;
}

/* Messages that go on and on make no call longer than it may be; who only comes late may take what is there. */
static bool is_too_late(tti_net *net)
{
    return ++net->n_waits % WAITS_TO_LOOK == 0 && tti_port_now(net->team->port) >= net->deadline_ns;
}

/* Beside what the program computes, a large call waits asleep: bytes come all the time, and to look for them takes the
 * core away. A small one is over sooner than whoever sleeps is awake. */
static bool lies_down(const tti_net *net)
{
    return net->call->in_background && net->cut.n_chunks > 1;
}

/* peer: a member without whose message the call does not end; -1: none. */
static void tell_wait(tti_net *net, int peer)
{
    const tti_team *team = net->team;
    const int       needs = tti_call_needs_all(&net->note) ? TTI_NEEDS_ANY : peer >= 0 ? team->ranks[peer] : TTI_NEEDS_NOBODY;

    net->told = true;
    net->tell_ns = tti_port_now(team->port) + TELL_MS * TTI_MS;
    tti_messenger_tell_wait(team->messenger, team->group_id, &net->note, needs);
}

/* Wait until a message of any chunk has ended, or any other since as many had as seen says. */
static tutti_status wait_for_some(tti_net *net, uint32_t seen)
{
    const int64_t until_ns = net->tell_ns < net->deadline_ns ? net->tell_ns : net->deadline_ns;
    tti_request  *request = NULL;
    bool          in_time;
    int           k, peer = -1;

    for (k = net->n_over; k < net->n_begun && request == NULL; k++) {
        request = tti_motion_pending(chunk_at(net, k));
        peer = request != NULL ? tti_motion_awaited(chunk_at(net, k)) : -1;
    }
    if (request == NULL)
        return TUTTI_OK;
    in_time = tti_request_wait_any(request, seen, until_ns, lies_down(net));
    if ((!in_time && until_ns == net->deadline_ns) || is_too_late(net))
        return tti_net_fail_timeout(net);
    if (!in_time)
        tell_wait(net, peer);
    return TUTTI_OK;
}

tutti_status tti_net_learn(const tti_team *team, int64_t deadline_ns, tutti_status st)
{
    return tti_messenger_learn(team->messenger, team->group_id, &team->aborted, deadline_ns, st);
}

tutti_status tti_net_end(tti_net *net, const tti_team *team)
{
    tutti_status st = TUTTI_OK;

    net->entered_ns = tti_port_now(team->port);
    net->deadline_ns = tti_call_deadline(net->call, net->entered_ns);
    net->tell_ns = net->entered_ns + TELL_MS * TTI_MS;
    net->told = false;
    net->n_waits = 0;
    for (;;) {
        const uint32_t seen = tti_messenger_ended(team->messenger);

        st = move(net);
        if (st != TUTTI_OK || tti_net_may_end(net))
            break;
        st = wait_for_some(net, seen);
        if (st != TUTTI_OK)
            break;
    }
    if (net->told)
        tti_messenger_wait_over(team->messenger, team->group_id, net->note.seq);
    return st == TUTTI_OK ? TUTTI_OK : tti_net_learn(team, net->deadline_ns, give_up(net, st));
}

void tti_net_let_go(tti_net *net)
{
    let_go(net);
}

tutti_status tti_net_run(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                         const tti_call_note *note)
{
    const tutti_status st = tti_net_begin(net, team, 0, plan, call, note);

    return st == TUTTI_OK ? tti_net_end(net, team) : tti_net_learn(team, tti_call_deadline(call, tti_port_now(team->port)), st);
}
