/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abort.c - ending what is under way in a group, at once, from any thread.
 *
 * Why     A thread that waits inside the library has no other way out before its time-out, and whoever ends
 *         the group waits for that thread.
 * How     The group is finished first, so that nothing begins any more, then queued works end, then the
 *         backends end what they run and tell the other members. A world's groups go before the world,
 *         whose connections they use.
 * True    Nothing is freed here and nobody is waited for: hooks and callbacks may call it.
 * Fails   Where there is no memory for the list of a world's groups nothing is ended. */
#include "group/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>

/* The groups made from a world, which the caller frees, and the world itself at the end. Lock held. */
static tutti_status list_all(tutti_group *group, tutti_group ***all_out, int *n_out)
{
    tutti_group **all;
    tutti_group  *child;
    int           n = 1;

    for (child = group->children; child != NULL; child = child->next)
        n++;
    all = malloc((size_t)n * sizeof *all);
    if (all == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d groups", n);
    all[n - 1] = group;
    *n_out = n;
    for (child = group->children, n = 0; child != NULL; child = child->next)
        all[n++] = child;
    *all_out = all;
    return TUTTI_OK;
}

tutti_status tutti_abort_process_group(tutti_group *group)
{
    tutti_group **all = NULL;
    tutti_group  *g = NULL;
    char          words[TTI_GROUP_WORDS_MAX];
    int           i, n = 0;
    tutti_status  st = tti_group_resolve(group, "tutti_abort_process_group", &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_lock(&g->runner->lock);
    st = list_all(g, &all, &n);
    for (i = 0; i < n; i++)
        tti_queue_abort(all[i]);
    tti_unlock(&g->runner->lock);
    for (i = 0; i < n; i++) /* hooks run without the lock */
        tti_hooks_abort(all[i], "tutti_abort_process_group", TUTTI_E_ABORTED);
    free(all);
    if (st == TUTTI_OK && words[0] != '\0')
        tti_fail(TUTTI_E_ABORTED, "%s", words); /* a call that succeeds leaves the words alone */
    return st;
}
