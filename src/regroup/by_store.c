/* SPDX-License-Identifier: BSD-3-Clause
 *
 * by_store.c - survivors who all name the same excluded ranks meet in the store that they have.
 *
 * Why     A backend of others has no way to talk when its group is finished.
 * How     They meet below the old group's keys, in a folder with the digest of their ranks, and there in one that they
 *         number as worlds of a store are (rendezvous/generation.c): so a repeated attempt meets nothing of a failed one.
 * Fails   Whoever has another list does not come: the others run out of time, and name him. */
#include "regroup/gathering.h"
#include "regroup/successor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rendezvous/generation.h"
#include <tutti/private.h>

enum { NAMED_MAX = 8 }; /* ranks that a time-out names */

/* Where the survivors meet. */
static tutti_status open_place(const tti_successor_plan *plan, tutti_store **store_out)
{
    char         digest[TTI_DIGEST_MAX];
    char         prefix[TTI_DIGEST_MAX + 16];
    tutti_status st = tti_ranks_digest(plan->ranks, plan->n, digest);

    if (st != TUTTI_OK)
        return st;
    snprintf(prefix, sizeof prefix, "shrink/%s", digest);
    return tutti_prefix_store_open(prefix, plan->old->store, store_out);
}

/* Time is up: which members of old did not come, as old numbers them. The words stay as they are where all came
 * and could not connect. */
static tutti_status name_the_missing(const tti_successor_plan *plan, const tti_join *join, int64_t number)
{
    char   words[TTI_GROUP_WORDS_MAX];
    char   list[NAMED_MAX * 16] = "";
    bool  *absent = calloc((size_t)plan->n, sizeof *absent);
    size_t used = 0;
    int    n = 0;
    int    i;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (absent != NULL)
        tti_generation_absent(plan->old->runner->port, join, number, absent);
    for (i = 0; absent != NULL && i < plan->n; i++)
        if (absent[i] && n++ < NAMED_MAX)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", n > 1 ? ", " : "", plan->ranks[i]);
    free(absent);
    if (n == 0)
        return tti_fail(TUTTI_E_TIMEOUT, "%s", words);
    return tti_fail(TUTTI_E_TIMEOUT,
                    "shrink_group on group '%s': rank%s %s%s did not come to go on with, on rank %d within %lld ms\n"
                    "  next: check that all survivors pass the same ranks to exclude",
                    plan->old->name, n == 1 ? "" : "s", list, n > NAMED_MAX ? ", ..." : "", plan->old->rank,
                    (long long)join->timeout_ms);
}

/* Take this rank's place in a number that nobody has used, and make the successor below it. */
static tutti_status meet(tti_successor_plan *plan, tutti_store *place, tutti_group **group_out)
{
    tti_port    *port = plan->old->runner->port;
    int64_t      number = 0, seen = 0;
    tti_join     join = { .store = place, .user_store = true, .rank = plan->rank, .world_size = plan->n,
                          .timeout_ms = plan->timeout_ms, .deadline_ns = plan->deadline_ns, .number_out = &seen };
    char         key[32];
    char         words[TTI_GROUP_WORDS_MAX];
    tti_gathering gathering = { .n = 0 };
    tutti_status st = tti_generation_join(port, &join, &number);

    snprintf(key, sizeof key, "%lld", (long long)number);
    if (st == TUTTI_OK)
        st = tutti_prefix_store_open(key, place, &plan->store);
    if (st == TUTTI_OK)
        st = tti_gathering_begin(&gathering, port, &join, plan->store, "0", plan->old, plan->ranks, plan->n);
    if (st == TUTTI_OK)
        st = tti_successor_make(plan, group_out);
    gathering.made = st == TUTTI_OK ? tti_made_by(*group_out) : gathering.made;
    tti_gathering_end(&gathering, st);
    tti_generation_end(&join);
    tutti_store_close(plan->store);
    if (st == TUTTI_OK)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_generation_fail(port, &join, number);
    (void)tti_fail(st, "%s", words);
    return st == TUTTI_E_TIMEOUT ? name_the_missing(plan, &join, seen) : st;
}

/* Who is left. */
static int *list_left(const tutti_group *old, const bool *excluded, tti_successor_plan *plan)
{
    int *ranks = malloc((size_t)old->size * sizeof *ranks);
    int  r;

    for (r = 0; ranks != NULL && r < old->size; r++) {
        if (r == old->rank)
            plan->rank = plan->n;
        if (!excluded[r])
            ranks[plan->n++] = r;
    }
    return ranks;
}

tutti_status tti_survivors_by_store(tutti_group *old, const bool *excluded, const tutti_group_options *opts,
                                    tutti_group **group_out, int **former_out)
{
    tti_successor_plan plan = { .old = old, .opts = opts, .listen_host = old->listen_host,
                                .timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : old->timeout_ms };
    tutti_store       *place = NULL;
    int               *ranks = list_left(old, excluded, &plan);
    tutti_status       st;

    if (ranks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to shrink a group of %d", old->size);
    plan.ranks = ranks;
    plan.deadline_ns = tti_deadline(old->runner->port, plan.timeout_ms, -1);
    st = open_place(&plan, &place);
    if (st == TUTTI_OK)
        st = meet(&plan, place, group_out);
    tutti_store_close(place);
    if (st == TUTTI_OK)
        *former_out = ranks;
    else
        free(ranks);
    return st;
}
