/* SPDX-License-Identifier: BSD-3-Clause
 *
 * straggler.c - says in one line of the log who is always the last to come.
 *
 * Why     One slow rank makes all wait, and none of them shows it: each of their calls takes a little longer. Who waits
 *         knows for whom.
 * How     Whoever waits long in a collective notes for which member that had not entered it (coll/host/wait.c). Calls
 *         are looked at TTI_STRAGGLER_CALLS at a time, when the first wait behind them comes: so calls without waits cost
 *         nothing. A member is a straggler when it was the last in three quarters of them, the waits for it took a fifth
 *         of the time, and that has gone on for PERSISTENT_MS: two that share a core wait for each other in turns, and
 *         a core that is taken away is given back. It is one no more when it was the last in less than a quarter.
 *         Between these nothing is said, and somebody who stays one is not named again.
 *         All others find the same. The lowest of them says it.
 * True    A member is counted late only if it had not entered the call: one that waits for another itself is not.
 * Limits  Members on other hosts are not known to be late: what is awaited from there may have been awaited there. */
#include "group/straggler.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { MANY = TTI_STRAGGLER_CALLS * 3 / 4, FEW = TTI_STRAGGLER_CALLS / 4, SHARE = 5, PERSISTENT_MS = 500 };

static void begin_window(tti_straggler *s, int size, uint64_t seq, int64_t now_ns)
{
    s->from = seq;
    s->began_ns = now_ns;
    memset(s->late, 0, (size_t)size * sizeof s->late[0]);
}

static int latest(const tti_straggler *s, int size)
{
    int most = 0;
    int r;

    for (r = 1; r < size; r++)
        if (s->late[r].calls > s->late[most].calls)
            most = r;
    return most;
}

/* Whether the window shows a member that is late; whom, and since when it does, is kept. */
static bool suspects(tti_straggler *s, int size, int64_t window_ns, bool is_followed)
{
    const int rank = latest(s, size);

    if (s->late[rank].calls < MANY || s->late[rank].waited_ns < window_ns / SHARE) {
        s->suspect = -1;
        return false;
    }
    if (s->suspect != rank || !is_followed)
        s->since_ns = s->began_ns;
    s->suspect = rank;
    return true;
}

/* The window is over: whether it shows a straggler who was none before. is_followed: the next one begins behind it. */
static bool judge(tti_straggler *s, int size, int64_t window_ns, bool is_followed, int *rank_out)
{
    if (s->named >= 0 && (!is_followed || s->late[s->named].calls < FEW))
        s->named = -1;
    if (!suspects(s, size, window_ns, is_followed) || s->named == s->suspect ||
        s->began_ns + window_ns - s->since_ns < PERSISTENT_MS * TTI_MS)
        return false;
    s->named = s->suspect;
    *rank_out = s->named;
    return true;
}

bool tti_straggler_note(tti_straggler *s, int size, uint64_t seq, int late, int64_t waited_ns, int64_t now_ns,
                        int *rank_out, uint32_t *calls_out, int64_t *waited_ns_out, int64_t *window_ns_out)
{
    const uint64_t end = s->from + TTI_STRAGGLER_CALLS;
    const int64_t  window_ns = now_ns - waited_ns - s->began_ns;
    bool           found = false;

    if (s->from != 0 && seq >= end) {
        found = judge(s, size, window_ns, seq < end + TTI_STRAGGLER_CALLS, rank_out);
        if (found) {
            *calls_out = s->late[*rank_out].calls;
            *waited_ns_out = s->late[*rank_out].waited_ns;
            *window_ns_out = window_ns;
        }
    }
    if (s->from == 0 || seq >= end)
        begin_window(s, size, seq, now_ns - waited_ns);
    if (late >= 0 && late < size) {
        s->late[late].calls++;
        s->late[late].waited_ns += waited_ns;
    }
    return found;
}

static tti_straggler *straggler_of(tutti_group *group)
{
    tti_straggler *s = group->straggler;

    if (s == NULL)
        s = group->straggler = calloc(1, sizeof *s + (size_t)group->size * sizeof s->late[0]);
    if (s != NULL && s->from == 0)
        s->named = s->suspect = -1;
    return s; /* without memory nobody is named */
}

static void say(const tutti_group *group, uint64_t seq, int rank, uint32_t calls, int64_t waited_ns, int64_t window_ns)
{
    tti_log(TTI_LOG_WARN,
            "rank %d comes late: it was the last in %u of %d calls of group '%s' up to #%llu, by %.3f ms each, which is "
            "%lld %% of the time\n  next: see what it does between calls; tutti_profile_push() shows it",
            group->ranks[rank], calls, TTI_STRAGGLER_CALLS, group->name, (unsigned long long)seq - 1,
            (double)waited_ns / 1e6 / calls, (long long)(100 * waited_ns / (window_ns > 0 ? window_ns : 1)));
}

void tti_straggler_look(tutti_group *group, const tutti_call *call)
{
    tti_thread_facts *thread = &tti_facts_of_thread;
    tti_straggler    *s = straggler_of(group);
    int               rank;
    uint32_t          calls;
    int64_t           waited_ns, window_ns;

    if (s != NULL &&
        tti_straggler_note(s, group->size, call->seq, thread->late, thread->waited_ns,
                           tti_port_now(group->runner->port), &rank, &calls, &waited_ns, &window_ns) &&
        group->rank == (rank == 0 ? 1 : 0))
        say(group, call->seq, rank, calls, waited_ns, window_ns);
    if (call->record == 0) {
        thread->n_waits = 0;
        thread->waited_ns = 0;
    }
}
