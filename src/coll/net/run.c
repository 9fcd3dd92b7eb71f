/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - a schedule's motion: post a phase's messages, wait for them, do its local steps.
 *
 * How     All receives of a phase are posted first, so that what arrives lands in its place; sends
 *         follow in the plan's order with at most SENDS_IN_FLIGHT under way. Sends never wait for
 *         the receiver's consent, so the window cannot close a circle. Tag: the phase's number;
 *         word: the call's.
 * Begun   An operation that is only begun has posted its first phase: that waits for nobody. Others may be begun
 *         behind it, each with a schedule and scratch memory of its own (coll.c).
 * True    A rank posts phase k of one operation before phase k of the next, for sends as for receives: first phases in
 *         the order of begins, later ones in the order of ends. Messages with equal keys arrive in the order sent: so
 *         the k-th phase of one operation cannot take a message of the next.
 * Fails   The first failure is worded and told to the caller; before that all messages of the group
 *         are aborted and waited for, because they borrow the caller's buffers. The group is
 *         finished then. */
#include "coll/net/run.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "coll/segments.h"

enum { SENDS_IN_FLIGHT = 8, SEQUENCE_SHIFT = 24 };

/* An operation of a group. */
typedef struct motion {
    tti_net        *net;
    const tti_team *team;
    tti_motion     *now; /* net's */
} motion;

void tti_net_release(tti_net *net)
{
    tti_schedule_release(&net->schedule);
    tti_pack_release(&net->pack);
    free(net->scratch);
    free(net->requests);
    *net = (tti_net){ .scratch = NULL };
}

static tutti_status grow_scratch(tti_net *net, size_t bytes)
{
    void *fresh;

    if (bytes <= net->scratch_bytes)
        return TUTTI_OK;
    fresh = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (fresh == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the %zu bytes that a collective works in",
                        bytes);
    free(net->scratch);
    net->scratch = fresh;
    net->scratch_bytes = bytes;
    return TUTTI_OK;
}

static tutti_status grow_requests(tti_net *net, int n)
{
    tti_request **grown;

    if (n <= net->requests_room)
        return TUTTI_OK;
    grown = realloc(net->requests, (size_t)n * sizeof *grown);
    if (grown == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d messages of a collective", n);
    net->requests = grown;
    net->requests_room = n;
    return TUTTI_OK;
}

static int peer_of(const motion *m, int i)
{
    return i < m->now->n_recvs ? m->now->recvs[i].peer : m->now->sends[i - m->now->n_recvs].peer;
}

static tti_channel channel_of(const motion *m)
{
    return (tti_channel){ .group = m->team->group_id, .plane = TTI_PLANE_COLLECTIVE };
}

static tti_parcel parcel_of(const motion *m, const tti_transfer *transfer)
{
    return (tti_parcel){ .peer = m->team->ranks[transfer->peer], .tag = m->now->phase,
                         .dtype = (uint8_t)m->now->call->dtype, .word = m->now->note.word, .what = m->now->note.what,
                         .data = tti_block_at(&m->now->binding, &transfer->block),
                         .bytes = (size_t)transfer->block.bytes };
}

/* "; no connection to rank 5": which of the silent do not even take one, so that they are stopped or out of
 * reach, and not merely late. */
static void add_unreached(const motion *m, bool *silent, tti_words *words)
{
    const tti_team *team = m->team;
    bool            any = false;
    int             r;

    for (r = 0; r < team->n_ranks; r++) {
        silent[r] = silent[r] && !tti_messenger_connected(team->messenger, team->ranks[r]);
        any = any || silent[r];
    }
    if (!any)
        return;
    tti_words_add(words, "; no connection to ");
    tti_team_add_ranks(team, words, silent);
}

/* "ranks 2, 5": whose messages have not come, or, if i is a send, have not been taken. */
static void add_silent(const motion *m, int i, tti_words *words)
{
    const bool receiving = i < m->now->n_recvs;
    bool      *silent = calloc((size_t)m->team->n_ranks, sizeof *silent);
    int        k;

    if (silent == NULL)
        return;
    silent[peer_of(m, i)] = true;
    for (k = receiving ? 0 : m->now->n_recvs; k < (receiving ? m->now->n_recvs : m->now->n_posted); k++)
        if (!tti_request_ended(m->net->requests[k]))
            silent[peer_of(m, k)] = true;
    tti_words_add(words, receiving ? "no message from " : "message not taken by ");
    tti_team_add_ranks(m->team, words, silent);
    add_unreached(m, silent, words);
    free(silent);
}

/* The peer of transfer i may be silent because nothing leads to it: a firewall, say. */
static bool add_unconnected(const motion *m, int i, tti_words *words)
{
    const int peer = peer_of(m, i);
    char      text[TTI_LISTENS_TEXT_MAX];

    if (!tti_messenger_unconnected(m->team->messenger, m->team->ranks[peer], text, sizeof text))
        return false;
    tti_words_add(words, ", and no connection yet to rank %d at %s", m->team->ranks[peer], text);
    return true;
}

static tutti_status fail_timeout(const motion *m, int i)
{
    const tti_team *team = m->team;
    const int64_t   waited_ns = tti_port_now(team->port) - m->now->entered_ns;
    tti_words       words = { .used = 0 };
    char            call[TTI_CALL_TEXT_MAX];
    const char     *next;

    tti_team_describe(team, &m->now->note, call);
    add_silent(m, i, &words);
    next = add_unconnected(m, i, &words)
               ? "let that port through between the hosts, or set TUTTI_PORT_RANGE to ports that are"
           : tti_call_root(&m->now->note) >= 0
               ? "see what the ranks named do instead, and whether all name the same root; or give the "
                 "group a longer time-out"
               : "see what the ranks named do instead, or give the group a longer time-out";
    return tti_fail(TUTTI_E_TIMEOUT,
                    "%s on group '%s' timed out after %lld ms on rank %d of %d members\n"
                    "  %s (step %d of %d)\n"
                    "  next: %s",
                    call, team->name, (long long)(waited_ns / TTI_MS), team->ranks[team->rank],
                    team->n_ranks, words.text, m->now->phase + 1, m->net->schedule.phases.n, next);
}

/* The message was of another call. Of that its frame has all but the count, and 40 bits of the number. */
static tutti_status fail_mismatch(const motion *m, int i)
{
    const tti_team *team = m->team;
    const uint64_t  word = tti_request_word(m->net->requests[i]);
    const bool      counts = tti_request_what(m->net->requests[i]) == m->now->note.what;
    tti_call_note   other = { .word = word, .what = tti_request_what(m->net->requests[i]),
                              .count = TTI_CALL_COUNT_UNKNOWN, .seq = word >> SEQUENCE_SHIFT };
    char            call[TTI_CALL_TEXT_MAX], theirs[TTI_CALL_TEXT_MAX];

    if (word == 0 || word == m->now->note.word)
        return TUTTI_E_MISMATCH; /* size or type: the messenger has said it */
    tti_team_describe(team, &m->now->note, call);
    tti_team_describe(team, &other, theirs);
    return tti_fail(TUTTI_E_MISMATCH,
                    "ranks of group '%s' called different things\n  rank %d: %s\n"
                    "  rank %d: %s%s\n"
                    "  next: let all members make the group's calls in the same order, with equal "
                    "arguments",
                    team->name, team->ranks[team->rank], call, team->ranks[peer_of(m, i)], theirs,
                    other.seq != m->now->note.word >> SEQUENCE_SHIFT ? ", another of the group's calls"
                    : counts                                     ? " with other counts"
                                                                 : "");
}

/* Of another rank's time-out this thread's last error has the words; what it called here goes before them. */
static tutti_status fail_told(const motion *m)
{
    tti_words words = { .used = 0 };
    char      call[TTI_CALL_TEXT_MAX];

    tti_words_add(&words, "%s", tutti_last_error());
    tti_team_describe(m->team, &m->now->note, call);
    return tti_fail(TUTTI_E_TIMEOUT, "%s on rank %d: %s", call, m->team->ranks[m->team->rank], words.text);
}

/* A request may end with what a peer has failed with, a time-out too, in the peer's words. */
static tutti_status wait_for(const motion *m, int i)
{
    tti_request *request = m->net->requests[i];
    tutti_status st = tti_request_wait(request, m->now->deadline_ns);

    if (st == TUTTI_E_TIMEOUT && !tti_request_ended(request))
        return fail_timeout(m, i);
    if (st == TUTTI_E_TIMEOUT && tti_request_wait(request, 0) == TUTTI_E_TIMEOUT)
        return fail_told(m);
    return st == TUTTI_E_MISMATCH ? fail_mismatch(m, i) : st;
}

static tutti_status post_recvs(motion *m)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < m->now->n_recvs && st == TUTTI_OK; i++) {
        const tti_parcel parcel = parcel_of(m, &m->now->recvs[i]);

        st = tti_messenger_recv(m->team->messenger, channel_of(m), &parcel,
                                &m->net->requests[m->now->n_posted]);
        m->now->n_posted += st == TUTTI_OK;
    }
    return st;
}

/* Those that are left, as far as the window allows without waiting for one, or all. */
static tutti_status post_sends(motion *m, bool in_haste)
{
    tti_motion  *now = m->now;
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = now->n_posted - now->n_recvs; i < now->n_sends && st == TUTTI_OK; i++) {
        const tti_parcel parcel = parcel_of(m, &now->sends[i]);

        if (i - now->n_ended >= SENDS_IN_FLIGHT) {
            if (in_haste)
                return TUTTI_OK;
            st = wait_for(m, now->n_recvs + now->n_ended++);
        }
        if (st == TUTTI_OK) {
            st = tti_messenger_send(m->team->messenger, channel_of(m), &parcel,
                                    &m->net->requests[now->n_posted]);
            now->n_posted += st == TUTTI_OK;
        }
    }
    return st;
}

static tutti_status wait_all(motion *m)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < m->now->n_recvs && st == TUTTI_OK; i++)
        st = wait_for(m, i);
    for (; m->now->n_ended < m->now->n_sends && st == TUTTI_OK; m->now->n_ended++)
        st = wait_for(m, m->now->n_recvs + m->now->n_ended);
    return st;
}

static bool exchanges_sizes(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_ALL_TO_ALL || call->kind == TUTTI_CALL_GATHER_V ||
           call->kind == TUTTI_CALL_SCATTER_V;
}

/* What this rank tells the others of its blocks. Who tells it nothing agrees. */
static void write_sizes(const motion *m)
{
    const int        n = m->team->n_ranks;
    tti_block_sizes *sizes = m->now->binding.sizes;
    int              r;

    for (r = 0; r < n; r++) {
        sizes[r] = (tti_block_sizes){ .gives = m->now->call->in_counts[r],
                                      .wants = m->now->call->list_counts[r] };
        sizes[n + r] = (tti_block_sizes){ .gives = sizes[r].wants, .wants = sizes[r].gives };
    }
}

/* Both ranks of a pair have both sizes of both blocks, and come to the same end. */
static tutti_status compare_sizes(const motion *m)
{
    const tti_team        *team = m->team;
    const tti_block_sizes *mine = m->now->binding.sizes;
    const tti_block_sizes *theirs = mine + team->n_ranks;
    tutti_status           st = TUTTI_OK;
    int                    r;

    for (r = 0; r < team->n_ranks && st == TUTTI_OK; r++) {
        if (r == team->rank)
            continue;
        if (theirs[r].gives != mine[r].wants)
            st = tti_team_fail_block(team, &m->now->note, r, team->rank, theirs[r].gives, mine[r].wants);
        else if (theirs[r].wants != mine[r].gives)
            st = tti_team_fail_block(team, &m->now->note, team->rank, r, mine[r].gives, theirs[r].wants);
    }
    return st;
}

/* Take the buffers back and tell the others: ends what is under way, keeping the words of the
 * failure. */
static tutti_status abandon(const motion *m, tutti_status status)
{
    tti_words words = { .used = 0 };
    int       i;

    tti_words_add(&words, "%s", tutti_last_error());
    if (status == TUTTI_E_ABORTED && atomic_load_explicit(&m->team->aborted, memory_order_acquire))
        tti_messenger_abort(m->team->messenger, m->team->group_id); /* who aborted tells the others, or not */
    else
        tti_messenger_fail(m->team->messenger, m->team->group_id, status, m->team->ranks,
                           m->team->n_ranks);
    for (i = 0; i < m->now->n_posted; i++)
        (void)tti_request_wait(m->net->requests[i], TTI_FOREVER);
    return tti_fail(status, "%s", words.text);
}

static void release_requests(tti_net *net)
{
    int i;

    for (i = 0; i < net->motion.n_posted; i++)
        tti_request_release(net->requests[i]);
    net->motion.n_posted = 0;
}

/* After a failure. */
static tutti_status give_up(const motion *m, tutti_status st)
{
    st = abandon(m, st);
    release_requests(m->net);
    return st;
}

/* Post the messages of phase k, of the sends as many as the window has room for. */
static tutti_status begin_phase(motion *m, int k)
{
    tti_motion  *now = m->now;
    tutti_status st;

    now->phase = k;
    now->recvs = tti_phase_recvs(&m->net->schedule, k, &now->n_recvs);
    now->sends = tti_phase_sends(&m->net->schedule, k, &now->n_sends);
    now->n_posted = now->n_ended = 0;
    st = grow_requests(m->net, now->n_recvs + now->n_sends);
    if (st == TUTTI_OK)
        st = post_recvs(m);
    return st == TUTTI_OK ? post_sends(m, true) : st;
}

static tutti_status end_phase(motion *m)
{
    tutti_status st = post_sends(m, false);

    if (st == TUTTI_OK)
        st = wait_all(m);
    if (st == TUTTI_OK && exchanges_sizes(m->now->call) && m->now->phase == TTI_PHASE_OF_SIZES)
        st = compare_sizes(m);
    if (st != TUTTI_OK)
        return st;
    release_requests(m->net);
    tti_phase_steps(&m->net->schedule, m->now->phase, &m->now->binding);
    return TUTTI_OK;
}

static bool reduces(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_ALL_REDUCE || call->kind == TUTTI_CALL_REDUCE ||
           call->kind == TUTTI_CALL_REDUCE_SCATTER;
}

static size_t lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* What PREMUL_SUM needs behind the schedule's scratch memory: all of this rank's elements times its
 * factor; where those are a list, first the pointers to its entries. */
static size_t scaled_bytes(const motion *m)
{
    const tutti_call *call = m->now->call;
    const size_t      element = tutti_dtype_size(call->dtype);
    size_t            bytes;
    int               r;

    if (!reduces(call) || call->op.kind != TUTTI_OP_PREMUL_SUM || call->n_segments > 0)
        return 0;
    if (call->kind != TUTTI_CALL_REDUCE_SCATTER)
        return (size_t)call->count * element;
    bytes = lines((size_t)m->team->n_ranks * sizeof(void *));
    for (r = 0; r < m->team->n_ranks; r++)
        bytes += (size_t)tti_part_count(call, r) * element;
    return bytes;
}

static void scale_list(motion *m, char *room)
{
    const tutti_call *call = m->now->call;
    void            **list = (void **)(void *)room;
    char             *to = room + lines((size_t)m->team->n_ranks * sizeof *list);
    int               r;

    for (r = 0; r < m->team->n_ranks; r++) {
        const int64_t count = tti_part_count(call, r);

        if (count > 0)
            tti_scale(to, call->list[r], count, call->op.factor, call->dtype);
        list[r] = to;
        to += (size_t)count * m->now->binding.element;
    }
    m->now->binding.list = list;
}

/* The schedule reads the scaled elements as its input. */
static void scale(motion *m, char *room)
{
    const tutti_call *call = m->now->call;

    if (call->kind == TUTTI_CALL_REDUCE_SCATTER) {
        scale_list(m, room);
    } else if (call->count > 0) {
        tti_scale(room, call->in, call->count, call->op.factor, call->dtype);
        m->now->binding.in = room;
    }
}

static tutti_status bind(motion *m)
{
    const tutti_call *call = m->now->call;
    const size_t      planned = (size_t)m->net->schedule.scratch_bytes; /* whole lines */
    const size_t      scaled = scaled_bytes(m);
    const size_t      sizes = exchanges_sizes(call)
                                  ? 2 * (size_t)m->team->n_ranks * sizeof(tti_block_sizes)
                                  : 0;
    const size_t      packed = call->n_segments > 0 ? tti_pack_bytes(&m->net->pack) : 0;
    tutti_status      st = grow_scratch(m->net, planned + scaled + sizes + packed);

    if (st != TUTTI_OK)
        return st;
    m->now->binding = (tti_binding){ .in = call->in, .out = call->out, .list = call->list,
                                .ins = call->ins, .scratch = m->net->scratch,
                                .element = tutti_dtype_size(call->dtype),
                                .sizes = m->net->scratch + planned,
                                .n_ranks = m->team->n_ranks };
    if (sizes > 0)
        write_sizes(m);
    if (reduces(call))
        m->now->binding.kernel = tti_reduce_kernel_for(call->op.kind, call->dtype);
    if (scaled > 0)
        scale(m, m->net->scratch + planned);
    if (call->n_segments > 0) {
        tti_pack_fill(&m->net->pack, m->net->scratch + planned);
        m->now->binding.parts = m->net->pack.bounds;
    }
    return TUTTI_OK;
}

static tutti_status make_schedule(tti_net *net, tti_plan *plan, const tti_plan_input *input,
                                  const tutti_call *call)
{
    tutti_status st = TUTTI_OK;

    tti_schedule_clear(&net->schedule);
    if (call->n_segments > 0)
        st = tti_pack_plan(&net->pack, call, input, plan, &net->schedule);
    else
        plan(input, &net->schedule);
    if (st == TUTTI_OK && net->schedule.full)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for the schedule of a collective of %d ranks",
                      input->n_ranks);
    return st;
}

tutti_status tti_net_begin(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                           const tti_call_note *note)
{
    const tti_plan_input input = { .n_ranks = team->n_ranks, .rank = team->rank, .root = call->root,
                                   .count = call->count, .element = tutti_dtype_size(call->dtype),
                                   .list_counts = call->list_counts, .in_counts = call->in_counts };
    motion               m = { .net = net, .team = team, .now = &net->motion };
    tutti_status         st = make_schedule(net, plan, &input, call);

    net->motion = (tti_motion){ .call = call, .note = *note };
    if (st == TUTTI_OK)
        st = bind(&m);
    if (st == TUTTI_OK && net->schedule.phases.n > 0)
        st = begin_phase(&m, 0);
    return st == TUTTI_OK ? TUTTI_OK : give_up(&m, st); /* others wait for this rank */
}

static bool have_ended(const tti_net *net, int first, int end)
{
    int i;

    for (i = first; i < end; i++)
        if (!tti_request_ended(net->requests[i]))
            return false;
    return true;
}

bool tti_net_has_given(const tti_net *net)
{
    const tti_motion *now = &net->motion;
    const int         n = now->n_recvs + now->n_sends;

    return net->schedule.phases.n <= 1 && now->n_posted == n && have_ended(net, now->n_recvs, n);
}

bool tti_net_may_end(const tti_net *net)
{
    return tti_net_has_given(net) && have_ended(net, 0, net->motion.n_recvs);
}

tutti_status tti_net_end(tti_net *net, const tti_team *team)
{
    tti_motion  *now = &net->motion;
    motion       m = { .net = net, .team = team, .now = now };
    tutti_status st = TUTTI_OK;
    int          k;

    now->entered_ns = tti_port_now(team->port);
    now->deadline_ns = tti_call_deadline(now->call, now->entered_ns);
    for (k = 0; k < net->schedule.phases.n && st == TUTTI_OK; k++) {
        if (k > 0)
            st = begin_phase(&m, k);
        if (st == TUTTI_OK)
            st = end_phase(&m);
    }
    if (st != TUTTI_OK)
        return give_up(&m, st);
    if (now->call->n_segments > 0)
        tti_pack_empty(&net->pack);
    return TUTTI_OK;
}

void tti_net_let_go(tti_net *net)
{
    int i;

    for (i = 0; i < net->motion.n_posted; i++)
        (void)tti_request_wait(net->requests[i], TTI_FOREVER);
    release_requests(net);
}

tutti_status tti_net_run(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                         const tti_call_note *note)
{
    const tutti_status st = tti_net_begin(net, team, plan, call, note);

    return st == TUTTI_OK ? tti_net_end(net, team) : st;
}
