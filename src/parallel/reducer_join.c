/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reducer_join.c - a reducer whose rank has run out of inputs.
 *
 * How     A step of others is a step of this reducer in which every gradient counts as zeros and is put back as it
 *         was. So all that a step does happens here, too: rebuilding, hooks, the map of used parameters, mistakes of
 *         others. Before it one number says whether the others average gradients in this step at all.
 *         With static_graph it may be the first step that is one of others: the map of used parameters is made in it, and
 *         the rank counts its marks in the first step of its own (backward.c). What it alone uses then is not in the map:
 *         that is refused (finish.c). */
#include "parallel/parallel.h"

#include <string.h>
#include "base/options.h"
#include <tutti/private.h>

/* ---- active ranks ---- */

static tutti_status settle(tutti_reducer *r)
{
    tutti_status st = r->join.flag_work != NULL ? tutti_work_wait(r->join.flag_work) : TUTTI_OK;

    tutti_work_free(r->join.flag_work);
    r->join.flag_work = NULL;
    return st;
}

tutti_status tti_join_step(tutti_reducer *r)
{
    return r->join.scope != NULL ? tutti_join_notify(r->join.scope, r) : TUTTI_OK;
}

tutti_status tti_join_tell_sync(tutti_reducer *r)
{
    tutti_status st;

    if (r->join.scope == NULL)
        return TUTTI_OK;
    st = settle(r);
    if (st != TUTTI_OK)
        return st;
    r->join.flag = r->sync;
    return tutti_all_reduce_async(TUTTI_SPAN(&r->join.flag, 1), TUTTI_SUM, r->group, &r->join.flag_work);
}

tutti_status tti_join_divisor(tutti_reducer *r)
{
    if (r->join.scope == NULL || !r->join.divide_by_active || r->shadow)
        return TUTTI_OK;
    return tutti_join_active(r->join.scope, &r->divisor);
}

/* ---- ranks that have run out ---- */

static tutti_status shadow_step(tutti_reducer *r, int n_active)
{
    tutti_status st;
    int          i;

    r->iterations++;
    r->shadow = true;
    tti_lock(&r->lock);
    tti_begin_locked(r, NULL, 0);
    r->divisor = r->join.divide_by_active ? n_active : r->size;
    r->unused_marked = true;
    for (i = 0; i < r->n; i++) {
        r->slots[i].unused = false;
        r->arrived[r->n_arrived++] = i; /* rank 0 may be this one: its order is as good as any */
    }
    for (i = 0; i < r->n; i++)
        tti_mark_locked(r, i);
    tti_unlock(&r->lock);
    st = tti_reducer_complete(r);
    r->shadow = false;
    return st;
}

static tutti_status main_hook(void *object, int n_active)
{
    tutti_reducer *r = object;
    int32_t        syncs = 0;
    tutti_status   st = settle(r);

    if (st == TUTTI_OK && r->may_rebuild && !r->has_rebuilt)
        st = tti_reducer_rebuild(r);
    if (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(&syncs, 1), TUTTI_SUM, r->group);
    return st == TUTTI_OK && syncs != 0 ? shadow_step(r, n_active) : st;
}

/* The last joiners have made all steps: what they have is right. The highest of them speaks. */
static tutti_status post_hook(void *object, bool is_last_joiner)
{
    tutti_reducer *r = object;
    int32_t        speaker = is_last_joiner ? r->rank : -1;
    tutti_status   st = settle(r);

    if (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN(&speaker, 1), TUTTI_MAX, r->group);
    if (st == TUTTI_OK && speaker < 0)
        st = tti_fail(TUTTI_E_STATE, "no rank was the last one to run out of inputs: they are in different scopes");
    if (st != TUTTI_OK)
        return st;
    return tutti_broadcast_coalesced(r->join.state, r->join.n_state, 0, tutti_get_global_rank(r->group, speaker),
                                     r->group);
}

static void enter(void *object, tutti_join *join)
{
    tutti_reducer *r = object;

    settle(r);
    r->join.scope = join;
}

tutti_status tutti_reducer_joinable(tutti_reducer *reducer, const tutti_reducer_join_options *opts,
                                    tutti_joinable *joinable_out)
{
    tutti_reducer_join_options known = TUTTI_REDUCER_JOIN_OPTIONS;
    tutti_status               st = TUTTI_OK;

    if (reducer == NULL || joinable_out == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_joinable: the %s is NULL", reducer == NULL ? "reducer" : "output");
    if (opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_REDUCER_JOIN_OPTIONS");
    if (st == TUTTI_OK && (known.n_state < 0 || (known.n_state > 0 && known.state == NULL)))
        st = tti_fail(TUTTI_E_ARG, "reducer_joinable: a state of %d spans%s", known.n_state,
                      known.state == NULL ? " at NULL" : "");
    if (st == TUTTI_OK && reducer->skips)
        st = tti_fail(TUTTI_E_UNSUPPORTED, "reducer_joinable: with skip_all_reduce_unused_params a rank without inputs cannot "
                                           "know which buckets the others leave out");
    if (st != TUTTI_OK)
        return st;
    reducer->join.divide_by_active = known.divide_by_active;
    reducer->join.state = known.state;
    reducer->join.n_state = known.n_state;
    *joinable_out = (tutti_joinable){ .group = reducer->group, .object = reducer, .main_hook = main_hook,
                                      .post_hook = post_hook, .enter = enter };
    return TUTTI_OK;
}
