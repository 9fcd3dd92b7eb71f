/* SPDX-License-Identifier: BSD-3-Clause
 *
 * channel.c - regions, rounds and slots: how the members of one host hand data to each other.
 *
 * Why     Data goes through the sender's own region and is copied out by those who need it: nobody
 *         ever writes to a buffer of another process, and what a round costs is two copies and one
 *         line per flag.
 * How     Round t uses slot t % K (K = TTI_HOST_DEPTH) of every member. In it member r
 *           room    waits until done[q] >= t-K+1 for all q
 *           stage   fills its staging slot, sets staged[r] = t+1
 *           read    waits for staged[q] >= t+1, reads q's staging slot; sliced operations then fill
 *                   the result slot, set result[r] = t+1, wait for result[q] >= t+1, read q's
 *                   result slot
 *           next    sets done[r] = t+1, and goes on to round t+1
 *         An operation leaves out what it has no use for, never `next`. Round 0 is the connecting:
 *         after it a member has found all regions.
 * True    Counters are set by their owner with release order (at least) and read with acquire
 *         order.
 *         1. A slot is not overwritten while it is read. r writes slot t % K only after done[q] >=
 *            t-K+1 of all q; q sets that after its last read in round t-K, the round that used the
 *            slot before.
 *         2. A reader gets round t's data. It reads q's slot after staged[q] >= t+1 (result
 *            likewise), so after q filled it; q fills it again in round t+K at the earliest, where
 *            it waits for the reader's done >= t+1, which the reader sets after reading.
 *         3. Nobody waits in a circle. In round t a member waits only for done of t-K, staged of t,
 *            then result of t, each of which its owner sets after waits that come earlier in this
 *            order.
 *         4. None of this asks what operation a round belongs to, only that all members count the
 *            same rounds. Operations of different kinds follow each other without anything between
 *            them, and a counter that an operation does not set catches up with the next that does.
 *         A root that only writes may run ahead of the others by K rounds, no more.
 * Fails   Members that call different things count different rounds. Whoever reads a staging slot
 *         compares the control word beside the counter with its own; whoever waits compares boards
 *         (trouble.c). A member that fails says so in `failed`; the others see it when they wait.
 *         An operation that failed may leave readers behind: the region is then not given back. */
#include "coll/host/channel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "coll/host/wait.h"

enum {
    VERSION = 1,
    SLOTS = 2 * TTI_HOST_DEPTH,
    /* Slots of different members begin in different sets of a first-level cache (64 sets of 64
     * bytes): 65 lines further for each rank, around after 64. */
    STAGGER = 65 * 64,
    STAGGER_AROUND = 64,
};

_Static_assert(sizeof(tti_counter) == TTI_LINE, "a counter has a line of its own");
_Static_assert(sizeof(tti_host_lines) % TTI_LINE == 0, "slots begin on a line");

static size_t slots_at(int rank)
{
    return sizeof(tti_host_lines) + (size_t)(rank % STAGGER_AROUND) * STAGGER;
}

static size_t region_bytes(int rank)
{
    return slots_at(rank) + (size_t)SLOTS * TTI_HOST_CHUNK;
}

static void adopt(tti_host_channel *channel, int rank, void *region, uint64_t nonce)
{
    channel->members[rank] = (tti_host_member){ .lines = region, .nonce = nonce,
                                                .slots = (char *)region + slots_at(rank) };
}

static tutti_status make_region(tti_host_channel *channel)
{
    tti_team       *team = channel->team;
    tti_host_lines *lines;
    uint64_t        nonce, offset;
    tutti_status    st;

    channel->heap = tti_mesh_heap(team->mesh, team->ranks[team->rank]);
    assert(channel->heap != NULL); /* one's own host is one's own */
    st = tti_heap_alloc(channel->heap, region_bytes(team->rank), &offset);
    if (st != TUTTI_OK)
        return st;
    channel->region = offset;
    lines = tti_heap_at(channel->heap, offset, region_bytes(team->rank));
    team->port->ops->random(team->port, &nonce, sizeof nonce);
    nonce |= 1; /* fresh memory is zero */
    adopt(channel, team->rank, lines, nonce);
    lines->version = VERSION;
    lines->region_bytes = region_bytes(team->rank);
    atomic_store_explicit(&lines->nonce, nonce, memory_order_release);
    return TUTTI_OK;
}

tutti_status tti_host_channel_create(tti_team *team, tti_host_channel **channel_out)
{
    const size_t      n = (size_t)team->n_ranks;
    tti_host_channel *channel = calloc(1, sizeof *channel);
    tutti_status      st = TUTTI_OK;

    if (channel == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the shared channel of group '%s'",
                        team->name);
    channel->team = team;
    channel->members = calloc(n, sizeof *channel->members);
    channel->reads = calloc(n, sizeof *channel->reads);
    channel->begins = calloc(n, sizeof *channel->begins);
    if (channel->members == NULL || channel->reads == NULL || channel->begins == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for %zu members of group '%s'", n, team->name);
    if (st == TUTTI_OK)
        st = make_region(channel);
    if (st != TUTTI_OK) {
        tti_host_channel_close(channel);
        return st;
    }
    channel->checks = tti_host_checks(team);
    team->board = &channel->members[team->rank].lines->board;
    *channel_out = channel;
    return TUTTI_OK;
}

static tutti_status find_region(tti_host_channel *channel, int rank, const tti_join *join)
{
    const tti_team *team = channel->team;
    tti_heap       *heap = tti_mesh_heap(team->mesh, team->ranks[rank]);
    tti_host_lines *lines = NULL;

    if (heap != NULL)
        lines = tti_heap_at(heap, join->region, region_bytes(rank));
    if (lines == NULL)
        return tti_fail(TUTTI_E_BACKEND, "group '%s': rank %d named memory that is not in its heap",
                        team->name, rank);
    if (atomic_load_explicit(&lines->nonce, memory_order_acquire) != join->nonce ||
        lines->version != VERSION || lines->region_bytes != region_bytes(rank))
        return tti_fail(TUTTI_E_BACKEND,
                        "group '%s': the shared memory of rank %d is of another kind\n"
                        "  next: run the same version of tutti on all ranks", team->name, rank);
    adopt(channel, rank, lines, join->nonce);
    return TUTTI_OK;
}

tutti_status tti_host_channel_connect(tti_host_channel *channel, const tti_join *joins)
{
    tutti_status st = TUTTI_OK;
    int          r;

    for (r = 0; r < channel->team->n_ranks && st == TUTTI_OK; r++)
        if (r != channel->team->rank)
            st = find_region(channel, r, &joins[r]);
    if (st == TUTTI_OK)
        tti_host_next(channel);
    return st;
}

/* Whether a member will read nothing more of what this rank has written: it has done all rounds, or
 * has given its own region back, which it does after them. */
static bool has_finished(const tti_host_channel *channel, const tti_host_member *member)
{
    if (member->lines == NULL)
        return false; /* it was never found, and may still look for this rank's region */
    return atomic_load_explicit(&member->lines->counters[TTI_DONE].value, memory_order_acquire) >=
               channel->round ||
           atomic_load_explicit(&member->lines->nonce, memory_order_acquire) != member->nonce;
}

static bool may_release(const tti_host_channel *channel)
{
    const tti_host_lines *own = channel->members[channel->team->rank].lines;
    bool                  finished;
    int                   r;

    finished = channel->round > 0 &&
               atomic_load_explicit(&own->failed, memory_order_acquire) == TUTTI_OK;
    for (r = 0; r < channel->team->n_ranks && finished; r++)
        finished = has_finished(channel, &channel->members[r]);
    return finished;
}

void tti_host_channel_close(tti_host_channel *channel)
{
    tti_team *team;

    if (channel == NULL)
        return;
    team = channel->team;
    if (channel->region != 0) {
        team->board = &team->own_board;
        if (may_release(channel))
            tti_heap_release(channel->heap, channel->region);
    }
    free(channel->members);
    free(channel->reads);
    free(channel->begins);
    free(channel);
}

void tti_host_raise(tti_host_channel *channel, tutti_status status, int culprit)
{
    const tti_team *team = channel->team;
    tti_host_lines *own = channel->members[team->rank].lines;
    uint32_t        none = TUTTI_OK;
    int             r, kind;

    atomic_compare_exchange_strong(&own->failed, &none,
                                   (uint32_t)status | (uint32_t)(culprit + 1) << 8);
    for (r = 0; r < team->n_ranks; r++)
        for (kind = 0; kind < TTI_COUNTERS; kind++)
            tti_counter_wake(team->port, &channel->members[r].lines->counters[kind]);
}

void tti_host_begin(tti_host_channel *channel, const tutti_call *call, const tti_call_note *note,
                    uint64_t n_rounds)
{
    channel->note = *note;
    channel->deadline_ns = call->deadline_ns;
    channel->end = channel->round + n_rounds;
    channel->waiting_ns = 0;
}

void tti_host_go_on(tti_host_channel *channel, uint64_t n_rounds)
{
    channel->end = channel->round + n_rounds;
}

tutti_status tti_host_room(tti_host_channel *channel)
{
    tutti_status st = TUTTI_OK;
    int          r;

    if (channel->round < TTI_HOST_DEPTH)
        return TUTTI_OK;
    for (r = 0; r < channel->team->n_ranks && st == TUTTI_OK; r++)
        st = tti_host_wait(channel, r, TTI_DONE, channel->round - TTI_HOST_DEPTH + 1);
    return st;
}

void tti_host_post(tti_host_channel *channel, tti_counter_kind kind)
{
    tti_host_lines *own = channel->members[channel->team->rank].lines;

    tti_counter_move(channel->team->port, &own->counters[kind], channel->note.word,
                     channel->round + 1);
}

tutti_status tti_host_await(tti_host_channel *channel, tti_counter_kind kind, int rank)
{
    const tti_counter *counter = &channel->members[rank].lines->counters[kind];
    tutti_status       st = tti_host_wait(channel, rank, kind, channel->round + 1);

    /* The word is of this call or a later one; where it is not ours, the board knows which. */
    if (st == TUTTI_OK &&
        atomic_load_explicit(&counter->word, memory_order_relaxed) != channel->note.word)
        st = tti_host_compare_with(channel, rank);
    return st;
}

tutti_status tti_host_await_all(tti_host_channel *channel, tti_counter_kind kind)
{
    const tti_team *team = channel->team;
    tutti_status    st = TUTTI_OK;
    int             i;

    for (i = 1; i < team->n_ranks && st == TUTTI_OK; i++)
        st = tti_host_await(channel, kind, (team->rank + i) % team->n_ranks);
    return st;
}

void tti_host_next(tti_host_channel *channel)
{
    tti_host_post(channel, TTI_DONE);
    channel->round++;
}

static char *slot(const tti_host_channel *channel, int rank, uint64_t first)
{
    return channel->members[rank].slots +
           (first + channel->round % TTI_HOST_DEPTH) * (uint64_t)TTI_HOST_CHUNK;
}

char *tti_host_staging(const tti_host_channel *channel, int rank)
{
    return slot(channel, rank, 0);
}

char *tti_host_result(const tti_host_channel *channel, int rank)
{
    return slot(channel, rank, TTI_HOST_DEPTH);
}
