/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optim_state.c - what an optimizer remembers as named tensors, and going on from them.
 *
 * How     Loading builds new slots and new values beside the old ones, from what the state has, and exchanges them when
 *         all is there and sound. So a failure leaves the optimizer as it was, and nothing of the state's memory is
 *         kept, which may be a mapped file.
 * True    What counts its steps is saved from when it is there, with a step of 0 as well. A momentum, which has no count,
 *         is not saved before a step has seen it: its first step would not be a first step any more. */
#include "optim/optim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* ---- names ------------------------------------------------------------------------------------ */

int tti_kept_count(const tti_optim_class *cls)
{
    return cls->n_states + cls->counts;
}

const char *tti_kept_name(const tti_optim_class *cls, int k)
{
    if (cls->counts)
        return k == 0 ? "step" : cls->state[k - 1];
    return cls->state[k];
}

tutti_tensor **tti_kept_at(const tti_optim_class *cls, tti_slot *slot, int k)
{
    if (cls->counts)
        return k == 0 ? &slot->step : &slot->state[k - 1];
    return &slot->state[k];
}

static tutti_status no_memory(const char *word)
{
    return tti_fail(TUTTI_E_NOMEM, "optimizer state: no memory for '%.100s'", word);
}

tutti_status tti_state_named(const tutti_state_dict *sd, const char *word, const char *name,
                             tutti_tensor **t_out)
{
    char *key = NULL;

    if (asprintf(&key, "state.%s.%s", word, name) < 0)
        return no_memory(word);
    *t_out = tutti_state_dict_get(sd, key);
    free(key);
    return TUTTI_OK;
}

static tutti_status put(tutti_state_dict *sd, const char *part, const char *word, const char *name,
                        const tutti_tensor *t)
{
    char *key = NULL;
    tutti_status st;

    if (asprintf(&key, "%s.%s.%s", part, word, name) < 0)
        return no_memory(word);
    st = tutti_state_dict_set(sd, key, t);
    free(key);
    return st;
}

tutti_status tti_state_put(tutti_state_dict *sd, const char *word, const char *name,
                           const tutti_tensor *t)
{
    return put(sd, "state", word, name, t);
}

double tti_number_at(const tutti_tensor *t, int64_t i)
{
    tutti_tensor *flat = tti_raw_to(t, TUTTI_F64), *row = tti_raw_contiguous(flat);
    const double value = row != NULL ? ((const double *)tti_at(row))[i] : 0.0;

    tutti_tensor_release(flat);
    tutti_tensor_release(row);
    return value;
}

/* ---- options ---------------------------------------------------------------------------------- */

static tutti_tensor *option_tensor(const tti_option *option, const double *value)
{
    const tutti_dtype dtype = option->range == TTI_FLAG ? TUTTI_BOOL : TUTTI_F64;
    tutti_tensor *t = tti_raw_empty(dtype, option->count > 1, &(int64_t){ option->count });

    if (t == NULL)
        return NULL;
    if (dtype == TUTTI_BOOL)
        *(uint8_t *)tti_at(t) = value[0] != 0.0;
    else
        memcpy(tti_at(t), value, (size_t)option->count * sizeof *value);
    return t;
}

tutti_status tti_options_put(const tti_optim_class *cls, const double *value, const char *word,
                             tutti_state_dict *sd)
{
    tutti_status st = TUTTI_OK;

    for (int k = 0; k < cls->n_options && st == TUTTI_OK; value += cls->options[k++].count) {
        tutti_tensor *t = option_tensor(&cls->options[k], value);

        st = t != NULL ? put(sd, "param_groups", word, cls->options[k].name, t) : tti_refused();
        tutti_tensor_release(t);
    }
    return st;
}

/* Read one option over value, if it is there. */
static tutti_status option_get(const tti_option *option, const char *word,
                               const tutti_state_dict *sd, double *value, int *found)
{
    tutti_status st = TUTTI_OK;
    const tutti_tensor *t;
    char *key = NULL;

    if (asprintf(&key, "param_groups.%s.%s", word, option->name) < 0)
        return no_memory(word);
    t = tutti_state_dict_get(sd, key);
    if (t != NULL && t->numel != option->count)
        st = tti_fail(TUTTI_E_MISMATCH, "optimizer state: '%.100s' has %lld numbers, not %d", key,
                      (long long)t->numel, option->count);
    else if (t != NULL)
        st = tti_ready(t);
    for (int i = 0; t != NULL && st == TUTTI_OK && i < option->count; i++)
        value[i] = tti_number_at(t, i);
    *found += t != NULL;
    free(key);
    return st;
}

tutti_status tti_options_get(const tti_optim_class *cls, const char *word,
                             const tutti_state_dict *sd, double *value, int *found_out)
{
    tutti_status st = TUTTI_OK;
    double *at = value;
    int found = 0;

    for (int k = 0; k < cls->n_options && st == TUTTI_OK; at += cls->options[k++].count)
        st = option_get(&cls->options[k], word, sd, at, &found);
    if (st == TUTTI_OK)
        st = tti_options_check(cls, value);
    if (st == TUTTI_OK)
        *found_out = found;
    return st;
}

/* ---- saving ----------------------------------------------------------------------------------- */

bool tti_slot_is_saved(const tutti_optim *o, int i)
{
    const tti_slot *s = &o->slots[i];

    return o->cls->counts ? s->step != NULL : s->fresh == 0;
}

static tutti_status put_slot(const tutti_optim *o, int i, tutti_state_dict *sd)
{
    const tti_optim_class *cls = o->cls;
    tti_slot *s = &o->slots[i];
    tutti_status st = TUTTI_OK;
    char word[16];

    if (!tti_slot_is_saved(o, i))
        return TUTTI_OK;
    snprintf(word, sizeof word, "%d", i);
    for (int k = 0; k < tti_kept_count(cls) && st == TUTTI_OK; k++)
        if (*tti_kept_at(cls, s, k) != NULL)
            st = tti_state_put(sd, word, tti_kept_name(cls, k), *tti_kept_at(cls, s, k));
    return st;
}

tutti_status tti_group_put(const tutti_optim *o, int g, tutti_state_dict *sd)
{
    const tti_optim_group *group = &o->groups[g];
    tutti_tensor *numbers;
    tutti_status st;
    char word[16];

    snprintf(word, sizeof word, "%d", g);
    st = tti_options_put(o->cls, group->value, word, sd);
    if (st != TUTTI_OK)
        return st;
    numbers = tti_raw_empty(TUTTI_I64, 1, &(int64_t){ group->n });
    for (int i = 0; numbers != NULL && i < group->n; i++)
        ((int64_t *)tti_at(numbers))[i] = group->first + i;
    st = numbers != NULL ? put(sd, "param_groups", word, "params", numbers) : tti_refused();
    tutti_tensor_release(numbers);
    return st;
}

tutti_status tutti_optim_state_dict(const tutti_optim *o, tutti_state_dict **sd_out)
{
    const tutti_status before = tti_kept();
    tutti_state_dict *sd = NULL;
    tutti_status st;

    if (o == NULL)
        return tti_fail(TUTTI_E_ARG, "optim_state_dict: the optimizer is NULL");
    st = tutti_state_dict_create(&sd);
    for (int i = 0; i < o->n && st == TUTTI_OK; i++)
        st = put_slot(o, i, sd);
    for (int g = 0; g < o->n_groups && st == TUTTI_OK; g++)
        st = tti_group_put(o, g, sd);
    if (st == TUTTI_OK)
        *sd_out = sd;
    else
        tutti_state_dict_free(sd);
    return tti_unkeep(before, st);
}

tutti_status tutti_optim_init_state(tutti_optim *o)
{
    const tutti_status before = tti_kept();
    tutti_status st = TUTTI_OK;

    if (o == NULL)
        return tti_fail(TUTTI_E_ARG, "init_state: the optimizer is NULL");
    for (int i = 0; i < o->n && st == TUTTI_OK; i++)
        if (tti_is_mine(o, i))
            st = tti_slot_fill(o, i);
    return tti_unkeep(before, st);
}

/* ---- loading ---------------------------------------------------------------------------------- */

/* What the optimizer is to become. */
typedef struct loading {
    tutti_optim *o;
    const tutti_state_dict *sd;
    tti_slot *slots;
    double (*value)[TTI_OPTIM_VALUES]; /* of groups */
    int64_t *number;                   /* of each parameter in the state */
} loading;

static const tutti_tensor *group_params(const tutti_state_dict *sd, int g)
{
    char key[48];

    snprintf(key, sizeof key, "param_groups.%d.params", g);
    return tutti_state_dict_get(sd, key);
}

static tutti_status load_group(loading *l, int g)
{
    const tti_optim_group *group = &l->o->groups[g];
    const tutti_tensor *params = group_params(l->sd, g);
    tutti_tensor *row;
    char word[16];
    int found;

    if (params == NULL || params->dtype != TUTTI_I64 || params->numel != group->n)
        return tti_fail(
            TUTTI_E_MISMATCH,
            "optim_load_state_dict: group %d of %s has %d parameters, in the state %lld", g,
            l->o->cls->name, group->n, params != NULL ? (long long)params->numel : 0LL);
    row = tti_raw_contiguous(params);
    if (row == NULL)
        return tti_refused();
    memcpy(l->number + group->first, tti_at(row), (size_t)group->n * sizeof *l->number);
    tutti_tensor_release(row);
    memcpy(l->value[g], group->value, sizeof l->value[g]);
    snprintf(word, sizeof word, "%d", g);
    return tti_options_get(l->o->cls, word, l->sd, l->value[g], &found);
}

/* A copy of a tensor of the state, for parameter i. */
static tutti_status load_tensor(loading *l, int i, int k, const tutti_tensor *from)
{
    const tutti_tensor *p = l->o->params[i];
    const char *name = tti_kept_name(l->o->cls, k);
    const bool is_step = l->o->cls->counts && k == 0;
    tutti_status st = tti_ready(from);
    tutti_tensor *to;

    if (st != TUTTI_OK)
        return st;
    if (is_step ? from->numel != 1 : !tti_same_shape(from, p))
        return tti_fail(
            TUTTI_E_MISMATCH,
            "optim_load_state_dict: '%s' of parameter %d has shape %s, the parameter %s", name, i,
            tti_shape_str(from->nd, from->shape).s, tti_shape_str(p->nd, p->shape).s);
    to = is_step ? tti_raw_zeros(TUTTI_F32, 0, NULL) : tti_raw_empty(tti_state_dtype(p), p->nd, p->shape);
    if (to == NULL)
        return tti_refused();
    *tti_kept_at(l->o->cls, &l->slots[i], k) = to;
    if (is_step)
        *(float *)tti_at(to) = (float)tti_number_at(from, 0);
    else
        st = tti_raw_copy_(to, from);
    return st;
}

static tutti_status load_slot(loading *l, int i)
{
    tutti_status st = TUTTI_OK;
    char word[24];

    snprintf(word, sizeof word, "%lld", (long long)l->number[i]);
    for (int k = 0; k < tti_kept_count(l->o->cls) && st == TUTTI_OK; k++) {
        tutti_tensor *from = NULL;

        st = tti_state_named(l->sd, word, tti_kept_name(l->o->cls, k), &from);
        if (st == TUTTI_OK && from != NULL)
            st = load_tensor(l, i, k, from);
    }
    return st;
}

static bool is_kept(const tti_optim_class *cls, const char *name)
{
    for (int k = 0; k < tti_kept_count(cls); k++)
        if (strcmp(name, tti_kept_name(cls, k)) == 0)
            return true;
    return false;
}

/* Every "state.<number>.<name>" is of a parameter of a group, and something that this optimizer keeps. */
static tutti_status check_names(const loading *l)
{
    for (int64_t i = 0; i < tutti_state_dict_length(l->sd); i++) {
        const char *name = tutti_state_dict_name(l->sd, i);
        bool known = false;
        long long number;
        char *end;

        if (strncmp(name, "state.", 6) != 0)
            continue;
        number = strtoll(name + 6, &end, 10);
        for (int k = 0; k < l->o->n && !known; k++)
            known = l->number[k] == number;
        if (!known || *end != '.' || !is_kept(l->o->cls, end + 1))
            return tti_fail(
                TUTTI_E_MISMATCH,
                "optim_load_state_dict: '%.100s' is nothing that %s keeps for its %d parameters",
                name, l->o->cls->name, l->o->n);
    }
    return TUTTI_OK;
}

static void slots_free(const tti_optim_class *cls, tti_slot *slots, int n)
{
    for (int i = 0; slots != NULL && i < n; i++)
        for (int k = 0; k < tti_kept_count(cls); k++)
            tutti_tensor_release(*tti_kept_at(cls, &slots[i], k));
    free(slots);
}

static tutti_status load(loading *l)
{
    tutti_optim *o = l->o;
    tutti_status st = TUTTI_OK;

    if (l->slots == NULL || l->value == NULL || l->number == NULL)
        return no_memory(o->cls->name);
    if (group_params(l->sd, o->n_groups) != NULL)
        return tti_fail(TUTTI_E_MISMATCH,
                        "optim_load_state_dict: the state has more than %d groups", o->n_groups);
    for (int g = 0; g < o->n_groups && st == TUTTI_OK; g++)
        st = load_group(l, g);
    if (st == TUTTI_OK)
        st = check_names(l);
    for (int i = 0; i < o->n && st == TUTTI_OK; i++)
        if (tti_is_mine(o, i))
            st = load_slot(l, i);
    return st;
}

tutti_status tutti_optim_load_state_dict(tutti_optim *o, const tutti_state_dict *sd)
{
    const tutti_status before = tti_kept();
    loading l = { .o = o, .sd = sd };
    tutti_status st;

    if (o == NULL || sd == NULL)
        return tti_fail(TUTTI_E_ARG, "optim_load_state_dict: the %s is NULL",
                        o == NULL ? "optimizer" : "state");
    l.slots = calloc((size_t)o->n + 1, sizeof *l.slots);
    l.value = calloc((size_t)o->n_groups, sizeof *l.value);
    l.number = calloc((size_t)o->n + 1, sizeof *l.number);
    st = load(&l);
    if (st == TUTTI_OK) {
        tti_slot *old = o->slots;

        o->slots = l.slots;
        l.slots = old;
        for (int g = 0; g < o->n_groups; g++)
            memcpy(o->groups[g].value, l.value[g], sizeof l.value[g]);
    }
    slots_free(o->cls, l.slots, o->n);
    free(l.value);
    free(l.number);
    return tti_unkeep(before, st);
}
