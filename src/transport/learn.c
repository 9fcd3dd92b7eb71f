/* SPDX-License-Identifier: BSD-3-Clause
 *
 * learn.c - who was lost with a connection, and why.
 *
 * Why     The end of a connection is found the moment it comes, and says only that it ended. The watch threads know a little later
 *         whether its rank has died, of what, and what it did last.
 * How     Whoever words the failure for the program waits for that, LEARN_MS at most, and has their words in the place of its own.
 *         Threads that drive connections never do: they move the bytes of others.
 * True    Everybody has to know of a death within a second. The watch threads need two round trips and some of their wake-ups, 0.1 s
 *         where others of that host live, and 0.35 s where nobody does, and the other members hear of it from theirs: so nobody
 *         is told later because of this, but of connections that end while their rank lives, by LEARN_MS. In a collective the others
 *         are told before. A call's deadline is not passed, and an abort ends the wait. */
#include "transport/connector.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { LEARN_MS = 500, STEP_MS = 5 };

/* Of whom the last error says that the connection to it has ended; -1: of nobody. */
static int rank_of_connection(const tti_messenger *m)
{
    int rank = -1;

    if (sscanf(tutti_last_error(), TTI_CONNECTION_TO, &rank) != 1)
        (void)sscanf(tutti_last_error(), TTI_NEW_CONNECTION_TO, &rank);
    return rank >= 0 && rank < m->n_ranks ? rank : -1;
}

/* Words for what has become of rank; false: nothing is known yet. */
static bool find_end(const tti_messenger *m, int rank, char *words, size_t bytes)
{
    if (tti_mesh_has_left(m->mesh, rank)) {
        snprintf(words, bytes, "rank %d (%s) has left", rank, tti_mesh_whereabouts(m->mesh, rank));
        return true;
    }
    return !tti_mesh_is_alive(m->mesh, rank, words, bytes);
}

static bool is_aborted(tti_messenger *m, uint32_t group, const _Atomic bool *aborted)
{
    const tti_known_group *known;
    bool                   is;

    if (aborted != NULL)
        return atomic_load_explicit(aborted, memory_order_acquire);
    tti_lock(&m->lock);
    known = tti_mailbox_group(&m->mailbox, group);
    is = m->closing || known == NULL || known->aborted || known->finished.status == TUTTI_E_ABORTED;
    tti_unlock(&m->lock);
    return is;
}

tutti_status tti_messenger_learn(tti_messenger *m, uint32_t group, const _Atomic bool *aborted, int64_t deadline_ns, tutti_status st)
{
    const int rank = st == TUTTI_E_PEER ? rank_of_connection(m) : -1;
    char      own[TTI_WORDS_MAX], known[TTI_WORDS_MAX];
    int64_t   now_ns, next_ns, until_ns;

    if (rank < 0)
        return st;
    snprintf(own, sizeof own, "%s", tutti_last_error());
    now_ns = tti_port_now(m->port);
    until_ns = now_ns + LEARN_MS * TTI_MS < deadline_ns ? now_ns + LEARN_MS * TTI_MS : deadline_ns;
    while (!find_end(m, rank, known, sizeof known)) {
        if (now_ns >= until_ns || is_aborted(m, group, aborted))
            return tti_fail(st, "%s", own);
        next_ns = now_ns + STEP_MS * TTI_MS;
        m->port->ops->sleep_until(m->port, next_ns < until_ns ? next_ns : until_ns);
        now_ns = tti_port_now(m->port);
    }
    return tti_fail(st, "%s", known);
}
