/* SPDX-License-Identifier: BSD-3-Clause
 *
 * making.c - whoever serves the store in which a group is made is the last one to leave the making.
 *
 * Why     Members meet in a store. Without a launcher rank 0 serves it, or, after a failure, another member. The last one to come finds
 *         all there is at once, and may end its world, and the store with it, while the others still ask for it: they came,
 *         and would be told that the store is gone.
 * How     Each member says that it needs the store in front of the first thing that it asks there, and takes that back when it has
 *         its group, or will not have it (store/store_need.c). The one that serves waits then for all that are not through. That is
 *         a look into its own memory; nobody makes a round trip for it, and where a launcher serves nobody waits.
 * True    A member that serves has read what all others have left, so it knows of all that still ask. A member that has ended needs
 *         nothing any more. Nobody waits for a member that has not come.
 * Bounds  A member that has come and is stopped is waited for as long as it needs to be told, WHOLE_MS at most, and never beyond the
 *         call's time. Where a backend that is not the library's own has made the group it may need this rank's calls to
 *         make it on the others: SOON_MS. Who cannot make the group, and serves, stays until those that wait for it have looked
 *         (refusals.c, coll/told.c), and have heard why: for TOLD_MS, or GONE_MS where they see as much themselves. Where the group is not waited for, or this rank is no
 *         member, its end of the store waits (tcp_store.c): for 40 ms, as destroying a group is to return soon.
 * Fails   What a store cannot tell is not waited for. */
#include "group/make.h"

#include <stdio.h>
#include <tutti/private.h>

enum { WHOLE_MS = 5000, SOON_MS = 200, TOLD_MS = 3000, GONE_MS = 500, SLICE_MS = 50 };

static const char folder_of_needs[] = "needed/";

void tti_making_begin(tti_making *making, tti_port *port, tutti_store *store, const char *folder, int rank, tutti_group *world)
{
    char key[sizeof making->below + 16];

    *making = (tti_making){ .port = port, .store = store, .world = world, .heeds = world != NULL && !tti_group_is_finished(world) };
    snprintf(making->below, sizeof making->below, "%s/%s", folder, folder_of_needs);
    snprintf(key, sizeof key, "%s%d", making->below, rank);
    making->need = tti_store_need_begin(store, key);
}

/* How long those that are not through are waited for. */
static int64_t patience_ms(tti_made made, tutti_status st)
{
    if (st == TUTTI_OK)
        return made == TTI_MADE_BY_OURS ? WHOLE_MS : made == TTI_MADE_BY_OTHERS ? SOON_MS : 0;
    if (st == TUTTI_E_NETWORK || st == TUTTI_E_ABORTED)
        return 0;
    return st == TUTTI_E_PEER ? GONE_MS : TOLD_MS;
}

/* A world that fails, or is aborted, meanwhile tells the others itself. */
static void await_others(const tti_making *making, int64_t until_ns, bool heeds)
{
    tutti_store *server = making->world != NULL ? making->world->root_server : NULL;
    int64_t      now_ns;

    while ((now_ns = tti_port_now(making->port)) < until_ns && !(heeds && tti_group_is_finished(making->world))) {
        const int64_t slice_ns = now_ns + SLICE_MS * TTI_MS;

        if (tti_store_await_unneeded(making->store, server, making->below, slice_ns < until_ns ? slice_ns : until_ns))
            return;
    }
}

tutti_status tti_making_end(tti_making *making, tti_made made, int64_t deadline_ns, tutti_status st)
{
    const int64_t until_ns = tti_port_now(making->port) + patience_ms(made, st) * TTI_MS;
    char          words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_store_need_end(making->need);
    making->need = NULL;
    await_others(making, until_ns < deadline_ns ? until_ns : deadline_ns, st == TUTTI_OK && making->heeds);
    return st == TUTTI_OK ? st : tti_fail(st, "%s", words);
}

tti_made tti_made_by(const tutti_group *group)
{
    return tti_group_has_foreign(group) ? TTI_MADE_BY_OTHERS : TTI_MADE_BY_OURS;
}
