/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_world.c - how worlds begin, change and end. */
#include "scenarios.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 8 };

static void nothing(tt_actor *a)
{
    (void)a;
}

static void a_sum(tt_actor *a, tutti_group *group, const char *wrong)
{
    float *x = tt_room(a, FEW);

    tt_fill(a, x, FEW);
    if (THEN(tutti_all_reduce(TUTTI_SPAN(x, FEW), TUTTI_SUM, group)))
        tt_must_be(a, tt_all_are(x, FEW, tt_sum_of(a)), wrong);
}

static void sums(tt_actor *a)
{
    a_sum(a, a->group, "wrong sum before the end");
    a_sum(a, a->group, "wrong second sum before the end");
}

static tutti_init_options options_of(const tt_actor *a, tutti_store *store)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.store = store;
    opts.rank = a->rank;
    opts.world_size = a->size;
    opts.timeout_ms = a->timeout_ms;
    return opts;
}

/* A group that was made takes the place of the actor's world; one that was not leaves it. */
static bool goes_on_with(tt_actor *a, bool made, tutti_group *const *group)
{
    if (made)
        a->group = *group;
    return made;
}

/* ---- the world of the process ---- */

/* Rank 0 has it, and calls mean it by NULL. */
static void of_the_process(tt_actor *a)
{
    const tutti_init_options opts = options_of(a, a->store);
    tutti_group             *group = NULL;

    if (a->rank != 0) {
        if (goes_on_with(a, TRY(tutti_create_process_group(&opts, &group)), &group))
            a_sum(a, group, "wrong sum beside the process's world");
        return;
    }
    if (!TRY(tutti_init_process_group(&opts)))
        return;
    a_sum(a, NULL, "wrong sum in the process's world");
    if (tutti_destroy_process_group(NULL) != TUTTI_OK)
        tt_must_be(a, false, "the process's world could not be destroyed");
    tt_must_be(a, !tutti_is_initialized(), "the process's world is there after its end");
}

/* ---- more and other members ---- */

static void growing(tt_actor *a)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *group = NULL;
    bool               made;

    opts.store = a->store;
    opts.timeout_ms = a->timeout_ms;
    if (a->group != NULL)
        made = TRY(tutti_grow_group(a->group, "more", 1, NULL, &group));
    else
        made = TRY(tutti_join_group(&opts, "more", &group));
    if (!goes_on_with(a, made, &group))
        return;
    tt_must_be(a, tutti_get_rank(group) == a->rank && tutti_get_world_size(group) == a->size, "a wrong place after growing");
    a_sum(a, group, "wrong sum after growing");
}

/* Worlds of one rank, each of a store of its own, become one; ranks are in the order of arrival. */
static void merging(tt_actor *a)
{
    tutti_init_options opts = options_of(a, NULL);
    tutti_store       *alone = NULL;
    tutti_group       *both = NULL;

    if (!TRY(tutti_hash_store_open(&alone)))
        return;
    opts.store = alone;
    opts.rank = 0;
    opts.world_size = 1;
    if (TRY(tutti_create_process_group(&opts, &a->group)) &&
        TRY(tutti_merge_remote_group(a->group, a->store, a->size, NULL, &both))) {
        a_sum(a, both, "wrong sum after merging");
        TRY(tutti_destroy_process_group(both));
    }
    if (a->group == TUTTI_NO_GROUP)
        a->group = NULL;
    tutti_store_close(alone);
}

static tutti_status reconfigure(tt_actor *a, int64_t uuid, bool turned)
{
    tutti_reconfigure_options opts = TUTTI_RECONFIGURE_OPTIONS;
    const char               *handles[TT_SCENARIO_RANKS];
    int                       r;

    for (r = 0; r < a->size; r++)
        handles[turned ? a->size - 1 - r : r] = a->all[r].handle;
    opts.uuid = uuid;
    opts.handles = handles;
    opts.n_handles = a->size;
    return tutti_reconfigure(a->group, &opts);
}

static void reconfiguring(tt_actor *a)
{
    tutti_init_options opts = options_of(a, a->store);
    tutti_group       *group = NULL;
    bool               all = true;
    int                r;

    opts.enable_reconfigure = true;
    if (goes_on_with(a, TRY(tutti_create_process_group(&opts, &group)), &group))
        snprintf(a->handle, sizeof a->handle, "%s", tutti_get_reconfigure_handle(group));
    tt_meet(a);
    for (r = 0; r < a->size; r++)
        all = all && a->all[r].handle[0] != '\0';
    if (!all || !TRY(reconfigure(a, 1, false)))
        return;
    tt_must_be(a, tutti_get_rank(a->group) == a->rank, "a wrong place after reconfiguring");
    a_sum(a, a->group, "wrong sum after reconfiguring");
    if (THEN(reconfigure(a, 2, true)))
        tt_must_be(a, tutti_get_rank(a->group) == a->size - 1 - a->rank, "a wrong place after a second time");
    a_sum(a, a->group, "wrong sum after a second time");
}

/* ---- fewer members ---- */

static void shrunk(tt_actor *a, bool made, tutti_group *const *left)
{
    float *x = tt_room(a, 1);

    if (!goes_on_with(a, made, left))
        return;
    *x = 1.0f;
    if (TRY(tutti_all_reduce(TUTTI_SPAN(x, 1), TUTTI_SUM, *left)))
        tt_must_be(a, *x == (float)(a->size - 1), "wrong sum after shrinking");
}

static void shrinking(tt_actor *a)
{
    const int    last = a->size - 1;
    tutti_group *left = NULL;

    if (a->rank != last)
        shrunk(a, TRY(tutti_shrink_group(&last, 1, a->group, TUTTI_SHRINK_ABORT, NULL, &left)), &left);
}

/* The last one leaves; the others hear of it in a call, and agree. */
static void agreeing(tt_actor *a)
{
    tutti_group *left = NULL;

    if (a->rank == a->size - 1)
        return;
    (void)tutti_barrier(a->group); /* fails, with one gone */
    shrunk(a, TRY(tutti_shrink_group(NULL, 0, a->group, TUTTI_SHRINK_DEFAULT, NULL, &left)), &left);
}

/* ---- who has come, and who ends it ---- */

static void monitored(tt_actor *a)
{
    (void)THEN(tutti_monitored_barrier(a->group, 0, false));
    (void)THEN(tutti_monitored_barrier(a->group, 0, true));
    a_sum(a, a->group, "wrong sum after a monitored barrier");
}

/* Rank 1 ends what rank 0 waits in. */
static void aborting(tt_actor *a)
{
    tutti_status st;

    if (a->rank == 1) {
        (void)TRY(tutti_abort_process_group(a->group));
        return;
    }
    st = tutti_barrier(a->group);
    tt_must_be(a, st != TUTTI_OK, "a barrier without all has ended well");
    tt_must_be(a, tutti_last_error()[0] != '\0', "a call was ended without words");
}

static const tt_scenario scenarios[] = {
    TT_PLAY("init", 2, nothing, .when = TT_IN_ALL),
    TT_PLAY("init by a file", 2, nothing, .when = TT_IN_ALL, .found = TT_BY_FILE),
    TT_PLAY("init by tcp", 2, nothing, .when = TT_IN_ALL, .found = TT_BY_TCP),
    TT_PLAY("init of the process", 2, of_the_process, .own = true),
    TT_PLAY("destroy", 2, sums, .when = TT_IN_END),
    TT_PLAY("growing", 3, growing, .late = 1),
    TT_PLAY("merging", 2, merging, .own = true),
    TT_PLAY("reconfiguring", 2, reconfiguring, .own = true),
    TT_PLAY("shrinking", 3, shrinking),
    TT_PLAY("agreeing", 3, agreeing),
    TT_PLAY("monitored barrier", 3, monitored),
    TT_PLAY("aborting", 2, aborting),
};

TT_FAMILY(tt_world_calls, "worlds", scenarios);
