/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - a schedule's motion: post a phase's messages, wait for them, do its local steps.
 *
 * How     All receives of a phase are posted first, so that what arrives lands in its place; sends
 *         follow in the plan's order with at most SENDS_IN_FLIGHT under way. Sends never wait for
 *         the receiver's consent, so the window cannot close a circle. Tag: the phase's number;
 *         word: the call's.
 * True    A rank is in one operation at a time, and messages with equal keys arrive in the order
 *         sent: the k-th phase of one operation cannot take a message of the next.
 * Fails   The first failure is worded and told to the caller; before that all messages of the group
 *         are aborted and waited for, because they borrow the caller's buffers. The group is
 *         finished then. */
#include "coll/net/run.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "coll/segments.h"

enum { SENDS_IN_FLIGHT = 8, SEQUENCE_SHIFT = 24 };

/* An operation under way. */
typedef struct motion {
    tti_net             *net;
    const tti_team      *team;
    const tutti_call    *call;
    const tti_call_note *note;
    tti_binding          binding;
    int64_t              entered_ns;
    int64_t              deadline_ns;

    int                 phase;
    const tti_transfer *recvs;
    const tti_transfer *sends;
    int                 n_recvs;
    int                 n_sends;
    int                 n_posted; /* requests that exist: receives, then sends */
    int                 n_ended;  /* sends that have been waited for */
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
    return i < m->n_recvs ? m->recvs[i].peer : m->sends[i - m->n_recvs].peer;
}

static tti_channel channel_of(const motion *m)
{
    return (tti_channel){ .group = m->team->group_id, .plane = TTI_PLANE_COLLECTIVE };
}

static tti_parcel parcel_of(const motion *m, const tti_transfer *transfer)
{
    return (tti_parcel){ .peer = m->team->ranks[transfer->peer], .tag = m->phase,
                         .dtype = (uint8_t)m->call->dtype, .word = m->note->word, .what = m->note->what,
                         .data = tti_block_at(&m->binding, &transfer->block),
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
    const bool receiving = i < m->n_recvs;
    bool      *silent = calloc((size_t)m->team->n_ranks, sizeof *silent);
    int        k;

    if (silent == NULL)
        return;
    silent[peer_of(m, i)] = true;
    for (k = receiving ? 0 : m->n_recvs; k < (receiving ? m->n_recvs : m->n_posted); k++)
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
    const int64_t   waited_ns = tti_port_now(team->port) - m->entered_ns;
    tti_words       words = { .used = 0 };
    char            call[TTI_CALL_TEXT_MAX];
    const char     *next;

    tti_team_describe(team, m->note, call);
    add_silent(m, i, &words);
    next = add_unconnected(m, i, &words)
               ? "let that port through between the hosts, or set TUTTI_PORT_RANGE to ports that are"
           : tti_call_root(m->note) >= 0
               ? "see what the ranks named do instead, and whether all name the same root; or give the "
                 "group a longer time-out"
               : "see what the ranks named do instead, or give the group a longer time-out";
    return tti_fail(TUTTI_E_TIMEOUT,
                    "%s on group '%s' timed out after %lld ms on rank %d of %d members\n"
                    "  %s (step %d of %d)\n"
                    "  next: %s",
                    call, team->name, (long long)(waited_ns / TTI_MS), team->ranks[team->rank],
                    team->n_ranks, words.text, m->phase + 1, m->net->schedule.phases.n, next);
}

/* The message was of another call. Of that its frame has all but the count, and 40 bits of the number. */
static tutti_status fail_mismatch(const motion *m, int i)
{
    const tti_team *team = m->team;
    const uint64_t  word = tti_request_word(m->net->requests[i]);
    const bool      counts = tti_request_what(m->net->requests[i]) == m->note->what;
    tti_call_note   other = { .word = word, .what = tti_request_what(m->net->requests[i]),
                              .count = TTI_CALL_COUNT_UNKNOWN, .seq = word >> SEQUENCE_SHIFT };
    char            call[TTI_CALL_TEXT_MAX], theirs[TTI_CALL_TEXT_MAX];

    if (word == 0 || word == m->note->word)
        return TUTTI_E_MISMATCH; /* size or type: the messenger has said it */
    tti_team_describe(team, m->note, call);
    tti_team_describe(team, &other, theirs);
    return tti_fail(TUTTI_E_MISMATCH,
                    "ranks of group '%s' called different things\n  rank %d: %s\n"
                    "  rank %d: %s%s\n"
                    "  next: let all members make the group's calls in the same order, with equal "
                    "arguments",
                    team->name, team->ranks[team->rank], call, team->ranks[peer_of(m, i)], theirs,
                    other.seq != m->note->word >> SEQUENCE_SHIFT ? ", another of the group's calls"
                    : counts                                     ? " with other counts"
                                                                 : "");
}

/* Of another rank's time-out this thread's last error has the words; what it called here goes before them. */
static tutti_status fail_told(const motion *m)
{
    tti_words words = { .used = 0 };
    char      call[TTI_CALL_TEXT_MAX];

    tti_words_add(&words, "%s", tutti_last_error());
    tti_team_describe(m->team, m->note, call);
    return tti_fail(TUTTI_E_TIMEOUT, "%s on rank %d: %s", call, m->team->ranks[m->team->rank], words.text);
}

/* A request may end with what a peer has failed with, a time-out too, in the peer's words. */
static tutti_status wait_for(const motion *m, int i)
{
    tti_request *request = m->net->requests[i];
    tutti_status st = tti_request_wait(request, m->deadline_ns);

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

    for (i = 0; i < m->n_recvs && st == TUTTI_OK; i++) {
        const tti_parcel parcel = parcel_of(m, &m->recvs[i]);

        st = tti_messenger_recv(m->team->messenger, channel_of(m), &parcel,
                                &m->net->requests[m->n_posted]);
        m->n_posted += st == TUTTI_OK;
    }
    return st;
}

static tutti_status post_sends(motion *m)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < m->n_sends && st == TUTTI_OK; i++) {
        const tti_parcel parcel = parcel_of(m, &m->sends[i]);

        if (i - m->n_ended >= SENDS_IN_FLIGHT)
            st = wait_for(m, m->n_recvs + m->n_ended++);
        if (st == TUTTI_OK) {
            st = tti_messenger_send(m->team->messenger, channel_of(m), &parcel,
                                    &m->net->requests[m->n_posted]);
            m->n_posted += st == TUTTI_OK;
        }
    }
    return st;
}

static tutti_status wait_all(motion *m)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < m->n_recvs && st == TUTTI_OK; i++)
        st = wait_for(m, i);
    for (; m->n_ended < m->n_sends && st == TUTTI_OK; m->n_ended++)
        st = wait_for(m, m->n_recvs + m->n_ended);
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
    tti_block_sizes *sizes = m->binding.sizes;
    int              r;

    for (r = 0; r < n; r++) {
        sizes[r] = (tti_block_sizes){ .gives = m->call->in_counts[r],
                                      .wants = m->call->list_counts[r] };
        sizes[n + r] = (tti_block_sizes){ .gives = sizes[r].wants, .wants = sizes[r].gives };
    }
}

/* Both ranks of a pair have both sizes of both blocks, and come to the same end. */
static tutti_status compare_sizes(const motion *m)
{
    const tti_team        *team = m->team;
    const tti_block_sizes *mine = m->binding.sizes;
    const tti_block_sizes *theirs = mine + team->n_ranks;
    tutti_status           st = TUTTI_OK;
    int                    r;

    for (r = 0; r < team->n_ranks && st == TUTTI_OK; r++) {
        if (r == team->rank)
            continue;
        if (theirs[r].gives != mine[r].wants)
            st = tti_team_fail_block(team, m->note, r, team->rank, theirs[r].gives, mine[r].wants);
        else if (theirs[r].wants != mine[r].gives)
            st = tti_team_fail_block(team, m->note, team->rank, r, mine[r].gives, theirs[r].wants);
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
    for (i = 0; i < m->n_posted; i++)
        (void)tti_request_wait(m->net->requests[i], TTI_FOREVER);
    return tti_fail(status, "%s", words.text);
}

static tutti_status run_phase(motion *m, int k)
{
    tutti_status st;
    int          i;

    m->phase = k;
    m->recvs = tti_phase_recvs(&m->net->schedule, k, &m->n_recvs);
    m->sends = tti_phase_sends(&m->net->schedule, k, &m->n_sends);
    m->n_posted = m->n_ended = 0;
    st = grow_requests(m->net, m->n_recvs + m->n_sends);
    if (st == TUTTI_OK)
        st = post_recvs(m);
    if (st == TUTTI_OK)
        st = post_sends(m);
    if (st == TUTTI_OK)
        st = wait_all(m);
    if (st == TUTTI_OK && exchanges_sizes(m->call) && k == TTI_PHASE_OF_SIZES)
        st = compare_sizes(m);
    if (st != TUTTI_OK)
        st = abandon(m, st);
    for (i = 0; i < m->n_posted; i++)
        tti_request_release(m->net->requests[i]);
    if (st == TUTTI_OK)
        tti_phase_steps(&m->net->schedule, k, &m->binding);
    return st;
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
    const tutti_call *call = m->call;
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
    const tutti_call *call = m->call;
    void            **list = (void **)(void *)room;
    char             *to = room + lines((size_t)m->team->n_ranks * sizeof *list);
    int               r;

    for (r = 0; r < m->team->n_ranks; r++) {
        const int64_t count = tti_part_count(call, r);

        if (count > 0)
            tti_scale(to, call->list[r], count, call->op.factor, call->dtype);
        list[r] = to;
        to += (size_t)count * m->binding.element;
    }
    m->binding.list = list;
}

/* The schedule reads the scaled elements as its input. */
static void scale(motion *m, char *room)
{
    const tutti_call *call = m->call;

    if (call->kind == TUTTI_CALL_REDUCE_SCATTER) {
        scale_list(m, room);
    } else if (call->count > 0) {
        tti_scale(room, call->in, call->count, call->op.factor, call->dtype);
        m->binding.in = room;
    }
}

static tutti_status bind(motion *m)
{
    const tutti_call *call = m->call;
    const size_t      planned = (size_t)m->net->schedule.scratch_bytes; /* whole lines */
    const size_t      scaled = scaled_bytes(m);
    const size_t      sizes = exchanges_sizes(call)
                                  ? 2 * (size_t)m->team->n_ranks * sizeof(tti_block_sizes)
                                  : 0;
    const size_t      packed = call->n_segments > 0 ? tti_pack_bytes(&m->net->pack) : 0;
    tutti_status      st = grow_scratch(m->net, planned + scaled + sizes + packed);

    if (st != TUTTI_OK)
        return st;
    m->binding = (tti_binding){ .in = call->in, .out = call->out, .list = call->list,
                                .ins = call->ins, .scratch = m->net->scratch,
                                .element = tutti_dtype_size(call->dtype),
                                .sizes = m->net->scratch + planned,
                                .n_ranks = m->team->n_ranks };
    if (sizes > 0)
        write_sizes(m);
    if (reduces(call))
        m->binding.kernel = tti_reduce_kernel_for(call->op.kind, call->dtype);
    if (scaled > 0)
        scale(m, m->net->scratch + planned);
    if (call->n_segments > 0) {
        tti_pack_fill(&m->net->pack, m->net->scratch + planned);
        m->binding.parts = m->net->pack.bounds;
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

tutti_status tti_net_run(tti_net *net, const tti_team *team, tti_plan *plan, const tutti_call *call,
                         const tti_call_note *note)
{
    const tti_plan_input input = { .n_ranks = team->n_ranks, .rank = team->rank, .root = call->root,
                                   .count = call->count, .element = tutti_dtype_size(call->dtype),
                                   .list_counts = call->list_counts, .in_counts = call->in_counts };
    motion       m = { .net = net, .team = team, .call = call, .note = note,
                       .entered_ns = tti_port_now(team->port) };
    tutti_status st;
    int          k;

    m.deadline_ns = tti_call_deadline(call, m.entered_ns);
    st = make_schedule(net, plan, &input, call);
    if (st == TUTTI_OK)
        st = bind(&m);
    if (st != TUTTI_OK)
        return abandon(&m, st); /* nothing is under way here, but others wait for this rank */
    for (k = 0; k < net->schedule.phases.n && st == TUTTI_OK; k++)
        st = run_phase(&m, k);
    if (st == TUTTI_OK && call->n_segments > 0)
        tti_pack_empty(&net->pack);
    return st;
}
