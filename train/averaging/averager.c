/* SPDX-License-Identifier: BSD-3-Clause
 *
 * averager.c - when parameters are averaged, and over which ranks.
 *
 * How     An averager is a list of levels, each a period and a group; a periodic one has a single level.
 *         Ranks compare their settings once: where levels are made, or before the first average.
 * True    Which level a step takes follows from the step and the settings alone, the same on all ranks. The last level's
 *         group is that of all ranks. */
#include "averaging/averaging.h"

#include <stdlib.h>
#include <tutti/private.h>
#include <tutti/regroup.h>

typedef struct level {
    int64_t period;
    tutti_group *group;
    bool is_ours; /* we made it */
} level;

struct tutti_model_averager {
    int64_t step, warmup;
    bool counts_from_warmup; /* a period does, not from step 0 */
    bool compared;           /* with the settings of the other ranks */
    int n;
    level levels[];
};

static tutti_status make(int n, int64_t warmup, tutti_group **group, tutti_model_averager **averager_out)
{
    tutti_model_averager *a;

    if (warmup < 0)
        return tti_fail(TUTTI_E_ARG, "model averager: %lld warm-up steps", (long long)warmup);
    if (*group == NULL)
        *group = tutti_current_group();
    if (*group == NULL)
        return tti_fail(TUTTI_E_STATE, "model averager: there is no group\n  next: tutti_init_process_group()");
    a = calloc(1, sizeof *a + (size_t)n * sizeof a->levels[0]);
    if (a == NULL)
        return tti_fail(TUTTI_E_NOMEM, "model averager: no memory for %d levels", n);
    a->warmup = warmup;
    a->n = n;
    *averager_out = a;
    return TUTTI_OK;
}

/* ---- settings that must be the same ----------------------------------------------------------- */

enum { LEVELS_MAX = 31 }; /* sizes at least double */

typedef struct settings {
    int64_t hierarchical, n, warmup, step;
    int64_t levels[LEVELS_MAX][2]; /* period and ranks */
} settings;

enum { SETTINGS = sizeof(settings) / sizeof(int64_t) };

static tutti_status tell_levels(const settings *a, const settings *b, int rank)
{
    for (int64_t k = 0; k < a->n && k < LEVELS_MAX; k++)
        if (a->levels[k][0] != b->levels[k][0] || a->levels[k][1] != b->levels[k][1])
            return tti_fail(TUTTI_E_MISMATCH,
                            "model averager: level %lld has a period of %lld for %lld ranks on rank 0, and of %lld for %lld on "
                            "rank %d",
                            (long long)k, (long long)a->levels[k][0], (long long)a->levels[k][1],
                            (long long)b->levels[k][0], (long long)b->levels[k][1], rank);
    return TUTTI_OK;
}

/* a: rank 0's. */
static tutti_status compare_two(const settings *a, const settings *b, int rank)
{
    if (a->hierarchical != b->hierarchical)
        return tti_fail(TUTTI_E_MISMATCH, "model averager: it is %s on rank 0, and %s on rank %d",
                        a->hierarchical ? "hierarchical" : "periodic", b->hierarchical ? "hierarchical" : "periodic", rank);
    if (a->n != b->n)
        return tti_fail(TUTTI_E_MISMATCH, "model averager: %lld levels on rank 0, and %lld on rank %d", (long long)a->n,
                        (long long)b->n, rank);
    if (a->warmup != b->warmup)
        return tti_fail(TUTTI_E_MISMATCH, "model averager: %lld warm-up steps on rank 0, and %lld on rank %d",
                        (long long)a->warmup, (long long)b->warmup, rank);
    if (!a->hierarchical && a->levels[0][0] != b->levels[0][0])
        return tti_fail(TUTTI_E_MISMATCH, "model averager: a period of %lld on rank 0, and of %lld on rank %d",
                        (long long)a->levels[0][0], (long long)b->levels[0][0], rank);
    if (a->step != b->step)
        return tti_fail(TUTTI_E_MISMATCH, "model averager: the first average is at step %lld on rank 0, and at %lld on rank %d",
                        (long long)a->step, (long long)b->step, rank);
    return tell_levels(a, b, rank);
}

static tutti_status compare_settings(tutti_model_averager *a, const settings *mine, tutti_group *group)
{
    const int size = tutti_get_world_size(group);
    settings *all = calloc((size_t)size, sizeof *all);
    tutti_status st;

    if (all == NULL) {
        (void)tutti_abort_process_group(group); /* the others wait for it */
        return tti_fail(TUTTI_E_NOMEM, "model averager: no memory to compare %d ranks", size);
    }
    st = tutti_all_gather_into_tensor(TUTTI_SPAN((int64_t *)all, (int64_t)SETTINGS * size),
                                      TUTTI_SPAN((int64_t *)mine, SETTINGS), group);
    for (int r = 1; r < size && st == TUTTI_OK; r++)
        st = compare_two(&all[0], &all[r], r);
    free(all);
    a->compared = st == TUTTI_OK;
    return st;
}

tutti_status tutti_periodic_model_averager(int64_t period, int64_t warmup_steps, tutti_group *group,
                                           tutti_model_averager **averager_out)
{
    tutti_model_averager *a = NULL;
    tutti_status st;

    if (averager_out == NULL || period < 1)
        return averager_out == NULL ? tti_fail(TUTTI_E_ARG, "model averager: averager_out is NULL")
                                    : tti_fail(TUTTI_E_ARG, "model averager: a period of %lld", (long long)period);
    st = make(1, warmup_steps, &group, &a);
    if (st != TUTTI_OK)
        return st;
    if (period == 1)
        tti_log(TTI_LOG_WARN, "model averager: a period of 1 averages in every step; averaging gradients, as a ddp does "
                              "while the backward goes on, costs less");
    a->counts_from_warmup = true;
    a->levels[0] = (level){ .period = period, .group = group };
    *averager_out = a;
    return TUTTI_OK;
}

/* ---- levels ----------------------------------------------------------------------------------- */

static tutti_status check_levels(const tutti_averaging_level *levels, int n, int size)
{
    if (n < 1 || levels == NULL)
        return tti_fail(TUTTI_E_ARG, "model averager: %d levels%s", n, levels == NULL ? " at NULL" : "");
    if (levels[0].period < 1)
        return tti_fail(TUTTI_E_ARG, "model averager: a period of %lld", (long long)levels[0].period);
    for (int k = 0; k < n; k++) {
        if (levels[k].group_size < 1 || size % levels[k].group_size != 0)
            return tti_fail(TUTTI_E_ARG, "model averager: level %d has groups of %d of %d ranks", k,
                            levels[k].group_size, size);
        if (k > 0 && (levels[k].period <= levels[k - 1].period || levels[k].group_size <= levels[k - 1].group_size))
            return tti_fail(TUTTI_E_ARG,
                            "model averager: period %lld for %d ranks comes after period %lld for %d: both must grow",
                            (long long)levels[k].period, levels[k].group_size, (long long)levels[k - 1].period,
                            levels[k - 1].group_size);
    }
    if (levels[n - 1].group_size != size)
        return tti_fail(TUTTI_E_ARG, "model averager: the last level has %d ranks, the group %d",
                        levels[n - 1].group_size, size);
    return TUTTI_OK;
}

static tutti_status compare_levels(tutti_model_averager *a, const tutti_averaging_level *levels, tutti_group *group)
{
    settings mine = { .hierarchical = 1, .n = a->n, .warmup = a->warmup };

    for (int k = 0; k < a->n && k < LEVELS_MAX; k++) {
        mine.levels[k][0] = levels[k].period;
        mine.levels[k][1] = levels[k].group_size;
    }
    return compare_settings(a, &mine, group);
}

static tutti_status make_groups(tutti_model_averager *a, const tutti_averaging_level *levels, tutti_group *whole)
{
    tutti_status st = TUTTI_OK;

    for (int k = 0; k < a->n && st == TUTTI_OK; k++) {
        level *l = &a->levels[k];

        l->period = levels[k].period;
        l->group = whole;
        if (k == a->n - 1)
            break;
        l->group = NULL;
        st = tutti_split_group_by_color(whole, tutti_get_rank(whole) / levels[k].group_size, NULL, &l->group);
        l->is_ours = st == TUTTI_OK;
    }
    return st;
}

tutti_status tutti_hierarchical_model_averager(const tutti_averaging_level *levels, int n, int64_t warmup_steps,
                                               tutti_group *group, tutti_model_averager **averager_out)
{
    tutti_model_averager *a = NULL;
    tutti_status st;

    if (averager_out == NULL)
        return tti_fail(TUTTI_E_ARG, "model averager: averager_out is NULL");
    st = make(n > 0 ? n : 1, warmup_steps, &group, &a);
    if (st != TUTTI_OK)
        return st;
    if (tutti_get_rank(group) < 0)
        st = tti_fail(TUTTI_E_STATE, "model averager: this rank is not in the group");
    if (st == TUTTI_OK)
        st = check_levels(levels, n, tutti_get_world_size(group));
    if (st == TUTTI_OK)
        st = compare_levels(a, levels, group);
    if (st == TUTTI_OK)
        st = make_groups(a, levels, group);
    if (st == TUTTI_OK)
        *averager_out = a;
    else
        tutti_model_averager_free(a);
    return st;
}

void tutti_model_averager_free(tutti_model_averager *averager)
{
    if (averager == NULL)
        return;
    for (int k = 0; k < averager->n; k++)
        if (averager->levels[k].is_ours)
            (void)tutti_destroy_process_group(averager->levels[k].group);
    free(averager);
}

/* ---- steps ------------------------------------------------------------------------------------ */

/* The level that this step takes; NULL: none. */
static const level *due(const tutti_model_averager *a)
{
    const int64_t step = a->counts_from_warmup ? a->step - a->warmup : a->step;

    if (a->step < a->warmup)
        return NULL;
    for (int k = a->n - 1; k >= 0; k--)
        if (step % a->levels[k].period == 0)
            return &a->levels[k];
    return NULL;
}

/* Before the first average of a periodic one: it is the first on all ranks, whatever their settings are. */
static tutti_status compare_period(tutti_model_averager *a)
{
    const settings mine = { .n = 1, .warmup = a->warmup, .step = a->step, .levels = { { a->levels[0].period } } };

    if (tutti_get_rank(a->levels[0].group) < 0) /* no member: nothing is averaged */
        return TUTTI_OK;
    return compare_settings(a, &mine, a->levels[0].group);
}

tutti_status tutti_model_averager_average_parameters(tutti_model_averager *averager, tutti_tensor *const *params, int n)
{
    tutti_status st = TUTTI_OK;
    const level *l;

    if (averager == NULL)
        return tti_fail(TUTTI_E_ARG, "model averager: it is NULL");
    l = due(averager);
    if (l != NULL && !averager->compared)
        st = compare_period(averager);
    if (l != NULL && st == TUTTI_OK)
        st = tutti_average_parameters(params, n, l->group);
    if (st == TUTTI_OK)
        averager->step++;
    return st;
}

int64_t tutti_model_averager_step(const tutti_model_averager *averager)
{
    return averager != NULL ? averager->step : 0;
}

tutti_status tutti_model_averager_set_step(tutti_model_averager *averager, int64_t step)
{
    if (averager == NULL || step < 0)
        return averager == NULL ? tti_fail(TUTTI_E_ARG, "model averager: it is NULL")
                                : tti_fail(TUTTI_E_ARG, "model averager: step %lld", (long long)step);
    averager->step = step;
    return TUTTI_OK;
}

int tutti_model_averager_next_size(const tutti_model_averager *averager)
{
    const level *l = averager != NULL ? due(averager) : NULL;

    return l != NULL ? tutti_get_world_size(l->group) : 0;
}
