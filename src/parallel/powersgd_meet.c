/* SPDX-License-Identifier: BSD-3-Clause
 *
 * powersgd_meet.c - the ranks of a group agree on what they do, before the first bucket.
 *
 * Why     Ranks that compress differently, or draw other columns, would add up numbers that mean different things, and not
 *         always notice. States may have been loaded, the group may be what a death has left of another.
 * How     All tell each other a fingerprint of their options and how many steps they have begun; each compares all with
 *         rank 0, so that all come to the same verdict. In another group ranks may be a step apart, as the one before
 *         ended for them at different moments: they go on from the largest number, and draw columns anew.
 *         It happens in the first bucket of a step, which is in the same place on all ranks. */
#include "parallel/powersgd.h"

#include <stdlib.h>
#include "base/fnv.h"
#include <tutti/private.h>
#include <tutti/regroup.h>

/* What a rank tells. */
typedef struct report {
    int64_t  steps;
    uint64_t options; /* fingerprint */
} report;

enum { WORDS = sizeof(report) / sizeof(int64_t) };

static uint64_t fingerprint(const tutti_powersgd_options *o)
{
    const uint64_t flags = o->no_error_feedback | o->no_warm_start << 1 | o->batched << 2 | (o->draw != NULL) << 3;
    uint64_t       print = TTI_FNV_BEGIN;

    print = tti_fnv(print, &o->matrix_approximation_rank, sizeof o->matrix_approximation_rank);
    print = tti_fnv(print, &o->start_iter, sizeof o->start_iter);
    print = tti_fnv(print, &o->min_compression_rate, sizeof o->min_compression_rate);
    print = tti_fnv(print, &o->orthogonalization_epsilon, sizeof o->orthogonalization_epsilon);
    print = tti_fnv(print, &o->random_seed, sizeof o->random_seed);
    return tti_fnv(print, &flags, sizeof flags);
}

static tutti_status compare(tutti_powersgd *s, const report *all)
{
    int64_t most = all[0].steps;
    int     q;

    for (q = 1; q < s->size; q++) {
        if (all[q].options != all[0].options)
            return tti_fail(TUTTI_E_MISMATCH, "powersgd: rank %d of the group has other options than rank 0", q);
        if (all[q].steps != all[0].steps && !s->moved)
            return tti_fail(TUTTI_E_MISMATCH,
                            "powersgd: rank %d of the group has begun %lld steps, and rank 0 %lld\n"
                            "  next: load what all ranks have saved after the same step",
                            q, (long long)all[q].steps, (long long)all[0].steps);
        most = all[q].steps > most ? all[q].steps : most;
    }
    s->steps.n = most;
    return TUTTI_OK;
}

static tutti_status exchange(tutti_powersgd *s, tutti_group *group)
{
    report       mine = { .steps = s->steps.n, .options = fingerprint(&s->opts) };
    report      *all = calloc((size_t)s->size, sizeof *all);
    tutti_status st;

    if (all == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for what %d ranks have", s->size);
    st = tutti_all_gather_into_tensor(TUTTI_SPAN((int64_t *)all, (int64_t)s->size * WORDS),
                                      TUTTI_SPAN((int64_t *)&mine, WORDS), group);
    if (st == TUTTI_OK)
        st = compare(s, all);
    free(all);
    return st;
}

/* One rank alone waits for nobody. */
static tutti_status make_follow(tutti_powersgd *s, tutti_group *group)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *follow = NULL;
    tutti_status        st;

    if (s->size == 1) {
        s->follow = group;
        return TUTTI_OK;
    }
    opts.desc = "powersgd";
    st = tutti_split_group_by_color(group, 0, &opts, &follow);
    if (st != TUTTI_OK)
        return st;
    s->follow = follow;
    s->owns_follow = true;
    return TUTTI_OK;
}

tutti_status tti_powersgd_meet(tutti_powersgd *s, tutti_group *group)
{
    tutti_status st;

    s->rank = tutti_get_rank(group);
    s->size = tutti_get_world_size(group);
    st = exchange(s, group);
    if (st == TUTTI_OK && s->follow == NULL)
        st = make_follow(s, group);
    s->has_met = st == TUTTI_OK;
    s->moved = s->moved && st != TUTTI_OK;
    return st;
}

void tti_powersgd_move(void *state)
{
    tutti_powersgd *s = state;
    int             i;

    s->follow = NULL; /* it is gone with the group that it was made from, or goes with its world */
    s->owns_follow = s->has_met = false;
    s->moved = true;
    s->steps.last = TTI_STEP_OVER;
    s->failed = TUTTI_OK; /* no step is under way: nobody else looks */
    for (i = 0; i < s->n; i++)
        s->params[i].q.valid = s->buckets[i].q.valid = false;
}
