/* SPDX-License-Identifier: BSD-3-Clause
 *
 * by_store.c - survivors who all name the same excluded ranks meet in the store that they have.
 *
 * Why     A backend of others has no way to talk when its group is finished.
 * How     They meet below the old group's keys, in a folder with the digest of their ranks, and there in one that they
 *         number as worlds of a store are (rendezvous/generation.c): so a repeated attempt meets nothing of a failed one.
 * Refuses Who is to stay and refuses leaves word of that (refused.c), which is looked for while this member waits: for rank 0 to open
 *         the number, and then in the number. A backend of others is told there as it is of any member that cannot make a group
 *         (refusals.c): by words where it waits, which whoever has read the refusal leaves for all.
 * True    Who refused may have taken its word back and come, and then some may have the group that others give up. So who reads
 *         a refusal in a number first leaves a mark there for that member, and then looks whether its place is free; and whoever
 *         takes a place looks for its mark before it does anything else there. One of the two is seen: either the place is free,
 *         and its member will find the mark, and come no further, so that nobody has the group; or the word counts for nothing.
 *         Who finds its mark tells all: whoever has left it may be waiting.
 * Lists   Whoever has another list goes elsewhere. So each says which it has, and who waits looks at those of the members that it needs:
 *         of two that differ the later one sees it, and so does the other when it looks again. It is taken like a refusal.
 * Fails   Two that exclude each other do not see that: the caller answers for a list. */
#include "regroup/gathering.h"
#include "regroup/refused.h"
#include "regroup/successor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rendezvous/generation.h"
#include <tutti/private.h>

#define MARK_KEY "refused/%d" /* in a number; the rank in old. "<status> <words>" */

enum { NAMED_MAX = 8 /* ranks that a time-out names */, KEY_MAX = 32, MARK_MAX = TTI_GROUP_WORDS_MAX + 16 };

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

/* ---- who refuses ---- */

/* A number that this member has come to. All of it was written before the thread that looks for refusals began. */
typedef struct attempt {
    const tti_successor_plan *plan; /* its store is the attempt's */
    const tti_join           *join;
    int64_t                   number;
} attempt;

/* Nobody can be in this attempt's group, as words say: all that wait in it end. rank: of old, whom they wait for. */
static void call_off(const tti_successor_plan *plan, int rank, tutti_status st, const char *words)
{
    tti_port *port = plan->old->runner->port;

    (void)tti_fail(st, "%s", words);
    tti_world_tell_why(port, plan->store, st);
    if (plan->old->world != plan->old)
        tti_group_tell_of(port, plan->store, plan->old->ranks[rank], st);
}

/* Whether it does not come to this attempt, whatever it does from now on. */
static bool stays_away(void *context, int rank, tutti_status st, const char *words)
{
    const attempt *a = context;
    tti_port      *port = a->plan->old->runner->port;
    char           key[KEY_MAX], mark[MARK_MAX];

    snprintf(key, sizeof key, MARK_KEY, rank);
    snprintf(mark, sizeof mark, "%d %s", (int)st, words);
    if (tti_store_set_until(a->plan->store, key, mark, strlen(mark), tti_port_now(port) + TTI_SECOND) != TUTTI_OK ||
        !tti_generation_is_free(port, a->join, a->number, tti_rank_find(a->plan->ranks, a->plan->n, rank)))
        return false;
    call_off(a->plan, rank, st, words);
    return true;
}

/* This member has its place, and nothing else of it is there yet: has somebody given up the attempt for what it said before? */
static tutti_status look_for_mark(const tti_successor_plan *plan)
{
    char         own[KEY_MAX];
    const char  *key = own;
    char         mark[MARK_MAX];
    const char  *words;
    tutti_bytes  text = { 0 };
    bool         there = false;
    tutti_status st, why;

    snprintf(own, sizeof own, MARK_KEY, plan->old->rank);
    st = tti_store_check_until(plan->store, &key, 1, plan->deadline_ns, &there);
    if (st == TUTTI_OK && there)
        st = tti_store_get_until(plan->store, key, plan->deadline_ns, &text);
    if (st != TUTTI_OK || !there)
        return st;
    snprintf(mark, sizeof mark, "%.*s", (int)text.size, (const char *)text.data);
    tutti_bytes_free(&text);
    why = strtol(mark, NULL, 10) == TUTTI_E_MISMATCH ? TUTTI_E_MISMATCH : TUTTI_E_REMOTE;
    words = strchr(mark, ' ') != NULL ? strchr(mark, ' ') + 1 : mark;
    call_off(plan, plan->old->rank, why, words);
    return tti_fail(why, "%s", words);
}

/* ---- the meeting ---- */

/* Take this rank's place in a number that nobody has used. */
static tutti_status take_place(const tti_successor_plan *plan, const bool *excluded, tti_join *join, int64_t *number_out)
{
    tti_refused *refused = tti_refused_begin(plan->old, excluded, true, plan->deadline_ns, NULL, NULL);
    tutti_status st;

    join->stop = tti_refused_flag(refused);
    st = tti_generation_join(plan->old->runner->port, join, number_out);
    join->stop = NULL;
    return tti_refused_conclude(refused, st);
}

static tutti_status make(const tti_successor_plan *plan, const bool *excluded, const tti_join *join, int64_t number,
                         tutti_group **group_out)
{
    attempt      here = { .plan = plan, .join = join, .number = number };
    tti_refused *refused;
    tutti_status st = look_for_mark(plan);

    if (st != TUTTI_OK)
        return st;
    refused = tti_refused_begin(plan->old, excluded, true, plan->deadline_ns, stays_away, &here);
    return tti_refused_conclude(refused, tti_successor_make(plan, group_out));
}

/* Take this rank's place, and make the successor below it. */
static tutti_status meet(tti_successor_plan *plan, const bool *excluded, tutti_store *place, tutti_group **group_out)
{
    tti_port    *port = plan->old->runner->port;
    int64_t      number = 0, seen = 0;
    tti_join     join = { .store = place, .user_store = true, .rank = plan->rank, .world_size = plan->n,
                          .timeout_ms = plan->timeout_ms, .deadline_ns = plan->deadline_ns, .number_out = &seen };
    char         key[KEY_MAX];
    char         words[TTI_GROUP_WORDS_MAX];
    tti_gathering gathering = { .n = 0 };
    tutti_status st = take_place(plan, excluded, &join, &number);

    snprintf(key, sizeof key, "%lld", (long long)number);
    if (st == TUTTI_OK)
        st = tutti_prefix_store_open(key, place, &plan->store);
    if (st == TUTTI_OK)
        st = tti_gathering_begin(&gathering, port, &join, plan->store, "0", plan->old, plan->ranks, plan->n);
    if (st == TUTTI_OK)
        st = make(plan, excluded, &join, number, group_out);
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

/* It has failed: the list that it passed is nobody's any more. Who comes later may need nobody else of those whose lists differ. The word
 * comes first, so that at any time one of the two is there. */
static tutti_status part(tutti_group *old, tutti_status st, int64_t deadline_ns)
{
    char words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (st == TUTTI_E_MISMATCH)
        tti_refused_tell(old, st, true, deadline_ns); /* all have lists here, and heed it whatever it is of */
    tti_refused_pass_no_more(old, deadline_ns);
    return tti_fail(st, "%s", words);
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
        st = tti_refused_pass(old, excluded, plan.deadline_ns);
    if (st == TUTTI_OK)
        st = meet(&plan, excluded, place, group_out);
    tutti_store_close(place);
    if (st != TUTTI_OK) {
        free(ranks);
        return part(old, st, plan.deadline_ns);
    }
    *former_out = ranks;
    return TUTTI_OK;
}
