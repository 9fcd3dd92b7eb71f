/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gathering.c - who ends while a world is made beside another one is missed at once.
 *
 * Why     Who makes a world waits in a store for pieces of all others, with connections to none of them. One that is killed leaves
 *         nothing there, and nobody else sees it end.
 * How     Two signs, which the waits look at (transport/vigil.c):
 *             will   each process leaves one with the store, before others wait for it (store/store_will.c). It works among
 *                    strangers, and where the store is a tcp store
 *             known  members of the old world are asked after in that one, which is still there: it has connections to them.
 *                    It works in any store, and over backends that know who is alive
 *         A launcher's bulletin is not asked: it numbers the ranks as they were started.
 *         Whoever serves the store stays until the others have met, too (group/making.c).
 * True    An end counts only where somebody's piece is missing for ever: who has left all its pieces may be through (vigil.c).
 *         So nobody gives up a world that another member already has.
 *         All of it belongs to the thread that meets. */
#include "regroup/gathering.h"
#include "group/asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

static bool member_has_ended(const tutti_group *group, int rank)
{
    return rank != group->rank && group->ops->alive != NULL && tti_asked_alive(group->ops, group->backend, rank) == TUTTI_E_PEER;
}

static bool has_ended(const tti_gathering *m, int rank)
{
    return member_has_ended(m->old, m->ranks != NULL ? m->ranks[rank] : rank);
}

static bool is_listed(const tti_gathering *m, int rank)
{
    uint32_t i;

    for (i = 0; i < m->n_ended; i++)
        if (m->ended[i] == rank)
            return true;
    return false;
}

static bool read_ended(void *context, uint32_t i, int *rank_out)
{
    tti_gathering *m = context;
    int          r;

    for (r = 0; r < m->n && i >= m->n_ended; r++)
        if (!is_listed(m, r) && has_ended(m, r))
            m->ended[m->n_ended++] = r;
    if (i >= m->n_ended)
        return false;
    *rank_out = m->ended[i];
    return true;
}

/* As the old world says it. */
static bool describe(void *context, int rank, char *out, size_t bytes)
{
    const tti_gathering *m = context;

    if (!has_ended(m, rank))
        return false;
    snprintf(out, bytes, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
    return true;
}

tutti_status tti_gathering_begin(tti_gathering *m, tti_port *port, const tti_join *join, tutti_store *root, const char *key,
                                 tutti_group *old, const int *ranks, int n)
{
    *m = (tti_gathering){ .port = port, .old = old, .ranks = ranks, .n = n };
    if (old != NULL) {
        m->ended = malloc((size_t)n * sizeof *m->ended);
        if (m->ended == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory to watch over %d ranks", n);
        m->known = (tti_acquaintance){ .read = read_ended, .words = describe, .context = m };
        tti_acquaintance_heed(&m->known);
    }
    tti_making_begin(&m->making, port, root, key, join->rank, old);
    m->deadline_ns = join->deadline_ns;
    m->will = tti_world_leave_will(port, join, root, key);
    return TUTTI_OK;
}

void tti_gathering_end(tti_gathering *m, tutti_status st)
{
    if (m->known.context != NULL)
        tti_acquaintance_heed(NULL);
    tti_world_take_back_will(m->port, m->will, st);
    if (m->making.port != NULL)
        (void)tti_making_end(&m->making, m->made, m->deadline_ns, st);
    free(m->ended);
    *m = (tti_gathering){ .n = 0 };
}

tutti_status tti_members_check(const tutti_group *group, const char *what)
{
    char words[TTI_GROUP_WORDS_MAX];
    int  r;

    for (r = 0; r < group->size; r++) {
        if (!member_has_ended(group, r))
            continue;
        snprintf(words, sizeof words, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
        return tti_fail(TUTTI_E_PEER, "%s: %s\n  next: go on without it, by tutti_shrink_group()", what, words);
    }
    return TUTTI_OK;
}
