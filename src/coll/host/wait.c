/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait.c - waiting for another member: look, give the core away, sleep.
 *
 * Why     With a core for each rank, whoever is awaited comes within a cache miss or computes for long; to give
 *         the core away costs more than the wait. With fewer cores than ranks, whoever is awaited may need ours.
 * How     patience    glances   looks     bursts of looks   then yields   then
 *         own core    512       1024      8, 100-200 us     16            sleep on the low half of the word,
 *         shared      a few     one       none              32            at most 50 ms at a time
 *         beside      none      64        none              none          A thread of the library's, beside what the
 *                                                                         program computes: a look costs that its
 *                                                                         time, and a yield a whole slice of it
 *                                                                         (until a thread of it comes to wait, too)
 *         Where the core comes back late, since somebody who computes had it for his slice of time, nobody gives it away
 *         for a while, but sleeps at once (base/company.h); what the yields of a wait took is measured as a whole, by a
 *         clock that is read at its end anyway.
 *         Looks have a pause between, glances have none: a pause is as long as two transfers of a line on some
 *         processors, and where ranks share a core, whoever is awaited may be waiting for it.
 *         Between two bursts, after a number of yields and after each sleep the member looks around (trouble.c):
 *         deadline, abort, failed, dead or mistaken members. No clock is read before.
 * True    No wake-up is lost. The poster stores value and then reads waiters; the sleeper raises waiters and then
 *         reads value. If each did so in an order that all agree on, at least one would see the other: the poster
 *         wakes, or the sleeper does not go to sleep. But a store waits in the poster's store buffer while later
 *         loads overtake it, so both could read old values:
 *
 *             poster   value = 7  (buffered)      waiters -> 0
 *             sleeper                  waiters = 1            value -> 6, sleeps
 *
 *         Draining that buffer in every post costs a transfer of the line, and posts are what a call is made of.
 *         So the poster only keeps the order in its instructions (the compiler may not swap them), and the sleeper,
 *         who has time, makes every thread of every member go through a barrier between its two steps, by
 *         fence_others() of the port. The poster's barrier falls somewhere in its instructions:
 *           before its read of waiters   the read comes after the raise: it sees it, and wakes
 *           after its read               the store of value is before the barrier: the sleeper reads it, and stays
 *         A poster that is not on a core has gone through one when it left it. Where ranks share cores, they sleep
 *         often, and a barrier for all interrupts those who run; where the port has none, or a member could not join
 *         it, there is none: then all four accesses are sequentially consistent on all members, which share
 *         the choice (channel.c). Where it has come to be refused the sleeper sleeps a millisecond at a time.
 *         If value moves after the sleeper's read, the low half differs from what it read, and the port does not
 *         sleep at all. A counter cannot move so far; a control word can, to one that differs in its high half alone
 *         (from the same call 256 numbers ago): then the sleeper sleeps a millisecond at a time, too. */
#include "coll/host/wait.h"

#include "base/thread.h"
#include "recorder/recorder.h"

enum {
    GLANCES_OWN_CORE = 512,
    LOOKS_OWN_CORE = 1024,
    BURSTS_OWN_CORE = 8,
    YIELDS_OWN_CORE = 16,
    GLANCES_SHARED_CORE = 16,
    LOOKS_SHARED_CORE = 1,
    LOOKS_IN_BACKGROUND = 64,
    YIELDS_SHARED_CORE = 32,
    YIELDS_A_LOOK = 16, /* at trouble: it reads lines of all members */
    SLEEP_MS_MAX = 50,
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { LOW_HALF = 0 };
#else
enum { LOW_HALF = 1 };
#endif

tti_host_patience tti_host_patience_of(bool crowded)
{
    if (crowded)
        return (tti_host_patience){ GLANCES_SHARED_CORE, LOOKS_SHARED_CORE, 0, YIELDS_SHARED_CORE };
    return (tti_host_patience){ GLANCES_OWN_CORE, LOOKS_OWN_CORE, BURSTS_OWN_CORE, YIELDS_OWN_CORE };
}

/* What is polled, and slept on. */
typedef struct watched {
    tti_host_word    *word;
    _Atomic uint32_t *waiters;
    bool              exact; /* must be the value, not at least */
} watched;

static watched watched_of(const tti_host_channel *channel, int rank, tti_counter_kind kind)
{
    const tti_host_member *member = &channel->members[rank];

    if (kind == TTI_PLACED)
        return (watched){ .word = &member->places[channel->place].word,
                          .waiters = &member->lines->place_waiters, .exact = true };
    if (kind == TTI_CARDED)
        return (watched){ .word = &member->lines->cards[channel->turn].word,
                          .waiters = &member->lines->place_waiters, .exact = true };
    return (watched){ .word = &member->lines->counters[kind].at,
                      .waiters = &member->lines->counters[kind].waiters };
}

void tti_host_wait_in_background(tti_host_channel *channel, bool in_background)
{
    if (channel->in_background == in_background)
        return;
    channel->in_background = in_background;
    if (in_background)
        channel->settled = channel->patience;
    channel->patience = in_background ? (tti_host_patience){ 0, LOOKS_IN_BACKGROUND, 0, 0 } : channel->settled;
}

static bool satisfies(const watched *w, uint64_t seen, uint64_t value)
{
    return w->exact ? seen == value : seen >= value;
}

static bool has_come(const watched *w, uint64_t value)
{
    return satisfies(w, atomic_load_explicit(&w->word->value, memory_order_acquire), value);
}

bool tti_host_has_come(const tti_host_channel *channel, int rank, tti_counter_kind kind, uint64_t value)
{
    const watched w = watched_of(channel, rank, kind);

    return has_come(&w, value);
}

static bool comes_soon(const watched *w, uint64_t value, int checks)
{
    int i;

    for (i = 0; i < checks; i++) {
        if (has_come(w, value))
            return true;
        tti_pause();
    }
    return false;
}

static bool comes_at_once(const watched *w, uint64_t value, int glances)
{
    int i;

    for (i = 0; i < glances; i++)
        if (has_come(w, value))
            return true;
    return false;
}

static void sleep_on(tti_host_channel *channel, const watched *w, uint64_t value)
{
    tti_port *port = channel->team->port;
    int64_t   until = tti_port_now(port);
    uint64_t  seen;
    bool      sure = true;

    atomic_fetch_add(w->waiters, 1);
    if (channel->fenced)
        sure = port->ops->fence_others(port);
    seen = atomic_load(&w->word->value);
    sure = sure && (uint32_t)seen != (uint32_t)value;
    until += (sure ? SLEEP_MS_MAX : 1) * TTI_MS;
    if (channel->deadline_ns != 0 && until > channel->deadline_ns)
        until = channel->deadline_ns;
    if (!satisfies(w, seen, value))
        port->ops->wait_word(port, &w->word->half[LOW_HALF], (uint32_t)seen, until);
    atomic_fetch_sub(w->waiters, 1);
}

/* ---- who is waited for ---- */

static uint64_t entered_of(const tti_host_channel *channel, int rank)
{
    return atomic_load_explicit(&channel->members[rank].lines->counters[TTI_ENTERED].at.value, memory_order_acquire);
}

/* The one that is furthest behind, of equals the awaited one; -1: all have entered the call. Whoever is awaited may itself
 * wait for another, but never for one that is further on. */
static int find_late(const tti_host_channel *channel, int rank)
{
    uint64_t least = entered_of(channel, rank);
    int      late = rank;
    int      r;

    for (r = 0; r < channel->team->n_ranks; r++)
        if (entered_of(channel, r) < least) {
            least = entered_of(channel, r);
            late = r;
        }
    return least < channel->note.seq ? late : -1;
}

/* Tell the recorder: late is a rank of the channel, which may have some of the group's members. */
static void note_wait(const tti_host_channel *channel, int late, int64_t took_ns)
{
    const tti_team *team = channel->team;
    const tti_team *whole = tti_team_whole(team);
    int             r = late;

    if (late >= 0 && whole != team)
        for (r = whole->n_ranks - 1; r >= 0 && whole->ranks[r] != team->ranks[late]; r--)
            continue;
    tti_record_waited(r, took_ns);
}

/* Who came last, of whom late was known: the next one that has not come, if late has. */
static int still_late(const tti_host_channel *channel, int rank, int late)
{
    int other;

    if (late < 0 || !tti_host_entered(channel, late, channel->note.seq))
        return late;
    other = find_late(channel, rank);
    return other >= 0 ? other : late;
}

/* The core was given away since then, and hardly anything else was done: before the first sleep of a wait. */
static void note_given(tti_host_channel *channel, int *n_given, int64_t began_ns)
{
    if (*n_given > 0)
        (void)tti_company_gave(&channel->company, *n_given, began_ns, tti_port_now(channel->team->port));
    *n_given = 0;
}

/* A wait that is not over soon. */
static tutti_status wait_long(tti_host_channel *channel, int rank, tti_counter_kind kind,
                              uint64_t value)
{
    tti_host_patience patience;
    const watched w = watched_of(channel, rank, kind);
    tti_port     *port = channel->team->port;
    const int64_t began_ns = tti_port_now(port);
    tutti_status  st = TUTTI_OK;
    int64_t       ended_ns;
    int           late = find_late(channel, rank);
    int           n_given = 0; /* times that the core was, before the first sleep */
    bool          sleeps = false;
    int           turn;

    if (channel->in_background && atomic_load_explicit(&channel->hurried, memory_order_relaxed) >= channel->note.seq)
        tti_host_wait_in_background(channel, false);
    patience = channel->patience;
    if (channel->deadline_ns == 0 && patience.bursts == 0 && !has_come(&w, value) &&
        (patience.yields == 0 || tti_company_is_here(&channel->company, port)))
        st = tti_host_look(channel, rank, kind, value); /* time counts from here, not from the end of the first sleep */
    for (turn = 0; turn < patience.bursts && st == TUTTI_OK; turn++) {
        st = tti_host_look(channel, rank, kind, value);
        if (st == TUTTI_OK && comes_soon(&w, value, patience.checks)) {
            note_wait(channel, late, tti_port_now(port) - began_ns);
            tti_host_end_wait(channel);
            return TUTTI_OK;
        }
    }
    for (turn = 1; !has_come(&w, value) && st == TUTTI_OK; turn++) {
        sleeps = sleeps || turn > patience.yields || tti_company_is_here(&channel->company, port);
        if (!sleeps) {
            port->ops->yield(port);
            n_given++;
        } else {
            note_given(channel, &n_given, began_ns);
            sleep_on(channel, &w, value);
        }
        late = still_late(channel, rank, late);
        if ((sleeps || turn % YIELDS_A_LOOK == 0) && !has_come(&w, value))
            st = tti_host_look(channel, rank, kind, value);
    }
    ended_ns = tti_port_now(port);
    (void)tti_company_gave(&channel->company, n_given, began_ns, ended_ns);
    note_wait(channel, late, ended_ns - began_ns);
    tti_host_end_wait(channel);
    return st;
}

tutti_status tti_host_wait(tti_host_channel *channel, int rank, tti_counter_kind kind,
                           uint64_t value)
{
    const watched w = watched_of(channel, rank, kind);

    if (comes_at_once(&w, value, channel->patience.glances))
        return TUTTI_OK;
    if (comes_soon(&w, value, channel->patience.checks))
        return TUTTI_OK;
    return wait_long(channel, rank, kind, value);
}

static void wake(tti_port *port, tti_host_word *word, _Atomic uint32_t *waiters)
{
    if (atomic_load(waiters) != 0)
        port->ops->wake_word(port, &word->half[LOW_HALF]);
}

void tti_host_wake(tti_host_channel *channel, int rank)
{
    const tti_host_member *member = &channel->members[rank];
    int                    i;

    for (i = 0; i < TTI_COUNTERS; i++)
        wake(channel->team->port, &member->lines->counters[i].at, &member->lines->counters[i].waiters);
    for (i = 0; i < TTI_HOST_PLACES; i++)
        wake(channel->team->port, &member->places[i].word, &member->lines->place_waiters);
    for (i = 0; i < TTI_HOST_TURNS; i++)
        wake(channel->team->port, &member->lines->cards[i].word, &member->lines->place_waiters);
}

void tti_host_store(const tti_host_channel *channel, tti_host_word *word, _Atomic uint32_t *waiters,
                    uint64_t value)
{
    tti_port *port = channel->team->port;
    uint32_t  n;

    if (channel->fenced) {
        atomic_store_explicit(&word->value, value, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst); /* of the compiler only: the processor's is the sleeper's */
        n = atomic_load_explicit(waiters, memory_order_relaxed);
    } else {
        atomic_store(&word->value, value);
        n = atomic_load(waiters);
    }
    if (n != 0)
        port->ops->wake_word(port, &word->half[LOW_HALF]);
}
