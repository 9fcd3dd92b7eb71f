/* SPDX-License-Identifier: BSD-3-Clause
 *
 * join.c - ranks that have run out of inputs play along until all have.
 *
 * How     At the top of each step all ranks add up a one of each that has an input and a zero of each that has not. The
 *         former do not wait for the sum; the latter wait for it in tutti_join_end(): while it is not zero they have
 *         their joinables issue what the others issue in the step.
 * True    The ranks that never had to play along are those that ran out last. */
#include <stdlib.h>
#include <string.h>
#include "base/options.h"
#include <tutti/join.h>
#include <tutti/private.h>

enum { MANY = 1000 };

struct tutti_join {
    tutti_joinable *of; /* [n] */
    int             n;
    tutti_group    *group;
    int             rank;
    bool            throws;
    int32_t         active; /* sum of the step that was notified last */
    tutti_work     *work;   /* of it; NULL: there was none, or it is complete */
    tutti_status    outcome; /* of the last one that is complete */
    bool            notified;
};

static tutti_status check(const tutti_joinable *joinables, int n)
{
    int i;

    if (joinables == NULL || n < 1)
        return tti_fail(TUTTI_E_ARG, "join_begin: a scope needs a joinable, and has %d", n);
    for (i = 0; i < n; i++)
        if (joinables[i].main_hook == NULL)
            return tti_fail(TUTTI_E_ARG, "join_begin: joinable %d has no main_hook", i);
    for (i = 1; i < n; i++)
        if (joinables[i].group != joinables[0].group)
            return tti_fail(TUTTI_E_ARG, "join_begin: joinable %d is of another group than the first one", i);
    return TUTTI_OK;
}

static void destroy(tutti_join *join)
{
    if (join == NULL)
        return;
    tutti_work_free(join->work);
    free(join->of);
    free(join);
}

tutti_status tutti_join_begin(const tutti_joinable *joinables, int n, const tutti_join_options *opts,
                              tutti_join **join_out)
{
    tutti_join_options known = TUTTI_JOIN_OPTIONS;
    tutti_join        *join = NULL;
    tutti_status       st = check(joinables, n);
    int                i;

    if (st == TUTTI_OK && join_out == NULL)
        st = tti_fail(TUTTI_E_ARG, "join_begin: join_out is NULL");
    if (st == TUTTI_OK && opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_JOIN_OPTIONS");
    if (st != TUTTI_OK)
        return st;
    join = calloc(1, sizeof *join);
    if (join != NULL)
        join->of = calloc((size_t)n, sizeof *join->of);
    if (join == NULL || join->of == NULL) {
        destroy(join);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a scope of %d joinables", n);
    }
    memcpy(join->of, joinables, (size_t)n * sizeof *joinables);
    join->n = n;
    join->throws = known.throw_on_early_termination;
    join->group = joinables[0].group != NULL ? joinables[0].group : tutti_current_group();
    join->rank = join->group != NULL ? tutti_get_rank(join->group) : -1;
    if (join->rank < 0) {
        destroy(join);
        return tti_fail(TUTTI_E_STATE, "join_begin: this rank is not in the group, or there is none");
    }
    for (i = 0; i < n; i++)
        if (join->of[i].enter != NULL)
            join->of[i].enter(join->of[i].object, join);
    *join_out = join;
    return TUTTI_OK;
}

/* ---- active ranks ---- */

static tutti_status settle(tutti_join *join)
{
    if (join->work == NULL)
        return join->outcome;
    join->outcome = tutti_work_wait(join->work);
    tutti_work_free(join->work);
    join->work = NULL;
    return join->outcome;
}

static tutti_status sum(const tutti_join *join, int32_t ours, int32_t *sum_out)
{
    *sum_out = ours;
    return tutti_all_reduce(TUTTI_SPAN(sum_out, 1), TUTTI_SUM, join->group);
}

tutti_status tutti_join_notify(tutti_join *join, const void *object)
{
    int32_t      ended = 0;
    tutti_status st;

    if (join == NULL || object != join->of[0].object)
        return TUTTI_OK;
    st = settle(join); /* the number is used again */
    if (st != TUTTI_OK)
        return st;
    join->active = 1;
    join->notified = true;
    st = tutti_all_reduce_async(TUTTI_SPAN(&join->active, 1), TUTTI_SUM, join->group, &join->work);
    if (st == TUTTI_OK && join->throws)
        st = sum(join, 0, &ended);
    if (st == TUTTI_OK && ended != 0)
        st = tti_fail(TUTTI_E_STATE,
                      "Detected at least one rank that exhausted inputs: %d, on rank %d, which has some\n"
                      "  next: give all ranks as many, or do not set throw_on_early_termination",
                      (int)ended, join->rank);
    return st;
}

tutti_status tutti_join_active(tutti_join *join, int *n_out)
{
    tutti_status st;

    if (join == NULL || n_out == NULL || !join->notified)
        return tti_fail(TUTTI_E_STATE, "join_active: no step was notified");
    st = settle(join);
    if (st == TUTTI_OK)
        *n_out = join->active;
    return st;
}

/* ---- ranks that have run out ---- */

/* One step of the others; none if there are none. */
static tutti_status shadow(tutti_join *join, int32_t *active_out)
{
    int32_t      ended;
    tutti_status st = sum(join, 0, active_out);
    int          i;

    if (st != TUTTI_OK || *active_out == 0)
        return st;
    if (join->throws) {
        st = sum(join, 1, &ended);
        return st != TUTTI_OK ? st
                              : tti_fail(TUTTI_E_STATE, "Rank %d exhausted all inputs, and %d ranks have not", join->rank,
                                         (int)*active_out);
    }
    for (i = 0; i < join->n && st == TUTTI_OK; i++)
        st = join->of[i].main_hook(join->of[i].object, *active_out);
    return st;
}

static tutti_status play_along(tutti_join *join)
{
    int32_t      active = 1;
    int          n = -1, i;
    tutti_status st = settle(join);

    while (st == TUTTI_OK && active != 0) {
        st = shadow(join, &active);
        if (++n == MANY)
            tti_log(TTI_LOG_WARN, "join: rank %d has played along for %d steps after its inputs were exhausted; inputs "
                                  "that are so uneven cost time on all ranks", join->rank, MANY);
    }
    for (i = 0; i < join->n && st == TUTTI_OK; i++)
        if (join->of[i].post_hook != NULL)
            st = join->of[i].post_hook(join->of[i].object, n == 0);
    return st;
}

tutti_status tutti_join_end(tutti_join *join, tutti_status so_far)
{
    tutti_status st = so_far;
    int          i;

    if (join == NULL)
        return so_far;
    if (st == TUTTI_OK)
        st = play_along(join);
    for (i = 0; i < join->n; i++)
        if (join->of[i].enter != NULL)
            join->of[i].enter(join->of[i].object, NULL);
    destroy(join);
    return st;
}
