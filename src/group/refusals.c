/* SPDX-License-Identifier: BSD-3-Clause
 *
 * refusals.c - a world or a group is refused by one member while the others wait for it in a backend that does not look for that.
 *
 * Why     Who cannot make a group says so in the store (new_group.c). The library's own backends look there while they wait. Of one
 *         that is a plug-in, or a program's own, only its create is known: it comes back when its members have met, or when
 *         its time is up.
 * How     Most of them meet in the group's store, on the thread that called them. So another thread looks there for refusals now and
 *         then (looking.c), and ends the waits of that thread when it has found one (tti_store_heed()). The backend fails
 *         of a wait that was too long, as it would have later, and the refusal is told in its place.
 * Usual   Who has the world's backend, as nearly all have, looks for members that have said they make the group with another one, too
 *         (new_group.c): they wait elsewhere. Who has named that other one finds fellows there, and does not look.
 * World   Who cannot be in a world leaves one word for all, not one for each rank (world_create.c).
 * True    A member that has refused a group never comes to it, so nobody is told so who could have had it. What others refuse is not
 *         looked at. If the backend was made all the same, it is.
 *         `trouble` is written by the looking thread, and read when that has been ended.
 *         The last second before the deadline is not looked in: who is waited for comes back in time also from a store that does
 *         not answer.
 *         A backend that waits in ways of its own may ask whether a wait would end: tutti_store_stops(), store_stops of a plug-in's host.
 * Fails   One that does not ask is told nothing, and ends when its time is up. A store that does not answer says nothing against
 *         anybody. Without memory, or a thread, nobody looks. */
#include "group/refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "group/looking.h"
#include "store/store.h"
#include "watch/trouble.h"

#define ANSWER_NS TTI_SECOND /* for one member */

enum { KEY_MAX = 32 };

struct tti_refusals {
    const tutti_group *group;
    tutti_store       *store; /* borrowed */
    bool               usual; /* this rank has the world's backend: whoever has another one does not come */
    tti_port          *port;
    tti_looking        looking;
    tti_trouble        trouble; /* when it is found */
};

static bool is_world(const tti_refusals *r)
{
    return r->group->world == r->group;
}

static bool find_at(tti_refusals *r, const char *key)
{
    const int64_t until_ns = tti_port_now(r->port) + ANSWER_NS;
    tutti_bytes   value = { 0 };
    bool          there = false, sound;

    if (tti_store_check_until(r->store, &key, 1, until_ns, &there) != TUTTI_OK || !there ||
        tti_store_get_until(r->store, key, until_ns, &value) != TUTTI_OK)
        return false;
    sound = value.size == sizeof r->trouble;
    if (sound)
        memcpy(&r->trouble, value.data, sizeof r->trouble);
    tutti_bytes_free(&value);
    r->trouble.words[sizeof r->trouble.words - 1] = '\0';
    return sound && r->trouble.status > TUTTI_OK && r->trouble.status <= TUTTI_E_REMOTE;
}

/* rank is a member's. */
static bool has_refused(tti_refusals *r, int rank)
{
    char key[KEY_MAX];

    snprintf(key, sizeof key, TTI_REFUSAL_KEY, rank);
    if (find_at(r, key))
        return true;
    snprintf(key, sizeof key, TTI_OTHERWISE_KEY, rank);
    return r->usual && find_at(r, key);
}

static bool find(void *context)
{
    tti_refusals      *r = context;
    const tutti_group *group = r->group;
    int                i;

    if (is_world(r)) /* everybody's words are in one place */
        return find_at(r, TTI_TROUBLE_KEY);
    for (i = 0; i < group->size && !tti_looking_is_over(&r->looking); i++)
        if (i != group->rank && has_refused(r, group->ranks[i]))
            return true;
    return false;
}

tti_refusals *tti_refusals_begin(const tutti_group *group, tutti_store *store, bool usual, int64_t timeout_ms)
{
    tti_refusals *r = group->size > 1 ? calloc(1, sizeof *r) : NULL;
    int64_t       until_ns;

    if (r == NULL)
        return NULL;
    r->group = group;
    r->store = store;
    r->usual = usual;
    r->port = group->runner->port;
    until_ns = tti_deadline(r->port, timeout_ms, -1);
    until_ns = until_ns == TTI_FOREVER ? TTI_FOREVER : until_ns - ANSWER_NS;
    if (tti_looking_begin(&r->looking, "tutti-refusals", r->port, group->size, until_ns, find, r) != TUTTI_OK) {
        tti_log(TTI_LOG_DEBUG, "group '%s': nobody looks for who refuses it: %s", group->name, tutti_last_error());
        free(r);
        return NULL;
    }
    tti_store_heed(&r->looking.found);
    return r;
}

tutti_status tti_refusals_end(tti_refusals *r, tutti_status st)
{
    if (r == NULL)
        return st;
    tti_store_heed(NULL);
    tti_looking_end(&r->looking);
    if (st != TUTTI_OK && tti_looking_found(&r->looking))
        st = tti_fail((tutti_status)r->trouble.status, "%s '%s' cannot be made on rank %d: %s", is_world(r) ? "world" : "group",
                      r->group->name, r->group->ranks[r->group->rank], r->trouble.words);
    free(r);
    return st;
}
