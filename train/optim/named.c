/* SPDX-License-Identifier: BSD-3-Clause
 *
 * named.c - the state of an optimizer by the names of its parameters.
 *
 * How     A group has no name of its own: each parameter carries the options of its group, and those of one group must
 *         agree when they come back.
 * True    Loading compares everything before it copies the first tensor, and copies in place. */
#include "optim/optim.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

struct tutti_named_optim {
    tutti_optim *optim; /* borrowed */
    char **names;
    tutti_tensor **params; /* counted */
    int n;
};

static const char *name_of(const tutti_named_optim *named, const tutti_tensor *param)
{
    for (int i = 0; i < named->n; i++)
        if (named->params[i] == param)
            return named->names[i];
    return NULL;
}

static tutti_status check_name(const char *const *names, tutti_tensor *const *params, int i)
{
    if (names[i] == NULL || names[i][0] == '\0' || params[i] == NULL)
        return tti_fail(TUTTI_E_ARG, "named_optim: parameter %d or its name is NULL or empty", i);
    for (int j = 0; j < i; j++)
        if (strcmp(names[i], names[j]) == 0)
            return tti_fail(TUTTI_E_ARG, "named_optim: the name '%s' comes twice", names[i]);
    return TUTTI_OK;
}

static tutti_status fill(tutti_named_optim *named, const char *const *names,
                         tutti_tensor *const *params, int n)
{
    named->names = calloc((size_t)n + 1, sizeof *named->names);
    named->params = calloc((size_t)n + 1, sizeof *named->params);
    if (named->names == NULL || named->params == NULL)
        return tti_fail(TUTTI_E_NOMEM, "named_optim: no memory for %d names", n);
    for (int i = 0; i < n; i++) {
        const tutti_status st = check_name(names, params, i);

        if (st != TUTTI_OK)
            return st;
        named->names[i] = strdup(names[i]);
        if (named->names[i] == NULL)
            return tti_fail(TUTTI_E_NOMEM, "named_optim: no memory for %d names", n);
        named->params[i] = tutti_tensor_retain(params[i]);
        named->n++;
    }
    for (int i = 0; i < named->optim->n; i++)
        if (name_of(named, named->optim->params[i]) == NULL)
            return tti_fail(TUTTI_E_ARG, "named_optim: parameter %d of the optimizer has no name",
                            i);
    return TUTTI_OK;
}

tutti_status tutti_named_optim_create(tutti_optim *o, const char *const *names,
                                      tutti_tensor *const *params, int n,
                                      tutti_named_optim **named_out)
{
    tutti_named_optim *named;
    tutti_status st;

    if (o == NULL || n < 0 || (n > 0 && (names == NULL || params == NULL)))
        return tti_fail(TUTTI_E_ARG, "named_optim: the %s is NULL",
                        o == NULL ? "optimizer" : "list");
    named = calloc(1, sizeof *named);
    if (named == NULL)
        return tti_fail(TUTTI_E_NOMEM, "named_optim: no memory for %d names", n);
    named->optim = o;
    st = fill(named, names, params, n);
    if (st == TUTTI_OK)
        *named_out = named;
    else
        tutti_named_optim_free(named);
    return st;
}

void tutti_named_optim_free(tutti_named_optim *named)
{
    if (named == NULL)
        return;
    for (int i = 0; i < named->n; i++) {
        free(named->names[i]);
        tutti_tensor_release(named->params[i]);
    }
    free(named->names);
    free(named->params);
    free(named);
}

tutti_status tutti_named_optim_add_param_group(tutti_named_optim *named,
                                               tutti_tensor *const *params, int n, int *group_out)
{
    if (named == NULL)
        return tti_fail(TUTTI_E_ARG, "named_optim: there is none, but NULL");
    for (int i = 0; params != NULL && i < n; i++)
        if (params[i] != NULL && name_of(named, params[i]) == NULL)
            return tti_fail(TUTTI_E_ARG, "named_optim: parameter %d has no name", i);
    return tutti_optim_add_param_group(named->optim, params, n, group_out);
}

/* ---- saving ----------------------------------------------------------------------------------- */

static tutti_status put_param(const tutti_named_optim *named, int i, tutti_state_dict *sd)
{
    const tutti_optim *o = named->optim;
    const char *name = name_of(named, o->params[i]);
    tutti_status st;

    if (name == NULL) /* came in by tutti_optim_add_param_group() */
        return tti_fail(TUTTI_E_ARG, "named_optim: parameter %d of the optimizer has no name", i);
    st = tti_options_put(o->cls, tti_group_of(o, i)->value, name, sd);
    for (int k = 0; k < tti_kept_count(o->cls) && st == TUTTI_OK; k++) {
        const tutti_tensor *t = *tti_kept_at(o->cls, &o->slots[i], k);

        if (t != NULL)
            st = tti_state_put(sd, name, tti_kept_name(o->cls, k), t);
    }
    return st;
}

tutti_status tutti_named_optim_state_dict(const tutti_named_optim *named, tutti_state_dict **sd_out)
{
    const tutti_status before = tti_kept();
    tutti_state_dict *sd = NULL;
    tutti_status st;

    if (named == NULL)
        return tti_fail(TUTTI_E_ARG, "named_optim: there is none, but NULL");
    st = tutti_state_dict_create(&sd);
    for (int i = 0; i < named->optim->n && st == TUTTI_OK; i++)
        st = put_param(named, i, sd);
    if (st == TUTTI_OK)
        *sd_out = sd;
    else
        tutti_state_dict_free(sd);
    return tti_unkeep(before, st);
}

/* ---- loading ---------------------------------------------------------------------------------- */

/* How many of the tensors of parameter i the state has; each of the right shape. */
static tutti_status compare_param(const tutti_named_optim *named, int i, const tutti_state_dict *sd,
                                  int *found_out)
{
    const tutti_optim *o = named->optim;
    const char *name = name_of(named, o->params[i]);
    tutti_status st = TUTTI_OK;

    for (int k = 0; k < tti_kept_count(o->cls) && st == TUTTI_OK; k++) {
        const tutti_tensor *mine = *tti_kept_at(o->cls, &o->slots[i], k);
        tutti_tensor *from = NULL;

        st = tti_state_named(sd, name, tti_kept_name(o->cls, k), &from);
        if (st == TUTTI_OK && from != NULL)
            st = tti_ready(from);
        if (st == TUTTI_OK && from != NULL && (mine == NULL || !tti_same_shape(mine, from)))
            st = tti_fail(TUTTI_E_MISMATCH, "named_optim: '%s' of '%s' has shape %s, and here %s",
                          tti_kept_name(o->cls, k), name, tti_shape_str(from->nd, from->shape).s,
                          mine != NULL ? tti_shape_str(mine->nd, mine->shape).s : "is none");
        *found_out += from != NULL;
    }
    return st;
}

/* Parameter i has state, and the state names all of it or nothing. */
static tutti_status check_param(const tutti_named_optim *named, int i, const tutti_state_dict *sd)
{
    const tutti_optim *o = named->optim;
    const char *name = name_of(named, o->params[i]);
    int found = 0, kept = 0;
    tutti_status st;

    if (name == NULL)
        return tti_fail(TUTTI_E_ARG, "named_optim: parameter %d of the optimizer has no name", i);
    if (!tti_is_mine(o, i))
        return TUTTI_OK;
    for (int k = 0; k < tti_kept_count(o->cls); k++)
        kept += *tti_kept_at(o->cls, &o->slots[i], k) != NULL;
    if (kept == 0 && (o->cls->wants == NULL || o->cls->wants(tti_group_of(o, i)->value) != 0))
        return tti_fail(TUTTI_E_STATE,
                        "named_optim: '%s' has no state yet\n  next: tutti_optim_init_state()",
                        name);
    st = compare_param(named, i, sd, &found);
    if (st == TUTTI_OK && found != 0 && found != kept)
        st = tti_fail(TUTTI_E_MISMATCH, "named_optim: '%s' keeps %d tensors, in the state %d", name,
                      kept, found);
    return st;
}

/* The options of group g out of the state, if its parameters are there. */
static tutti_status read_group(const tutti_named_optim *named, int g, const tutti_state_dict *sd,
                               double *value_out)
{
    const tutti_optim *o = named->optim;
    const tti_optim_group *group = &o->groups[g];
    tutti_status st = TUTTI_OK;
    int first = -1;

    memcpy(value_out, group->value, sizeof group->value);
    for (int i = 0; i < group->n && st == TUTTI_OK; i++) {
        const char *name = name_of(named, o->params[group->first + i]);
        double value[TTI_OPTIM_VALUES];
        int found = 0;

        memcpy(value, group->value, sizeof value);
        st = tti_options_get(o->cls, name, sd, value, &found);
        if (st == TUTTI_OK && found != 0 && found != o->cls->n_options)
            st = tti_fail(TUTTI_E_MISMATCH,
                          "named_optim: the state has %d of the %d options of '%s'", found,
                          o->cls->n_options, name);
        else if (st == TUTTI_OK && i > 0 && first != found)
            st = tti_fail(
                TUTTI_E_MISMATCH,
                "named_optim: the state has some of the parameters of group %d, and not '%s'", g,
                found == 0 ? name : name_of(named, o->params[group->first]));
        else if (st == TUTTI_OK && i > 0 &&
                 memcmp(value, value_out, (size_t)tti_option_values(o->cls) * sizeof *value) != 0)
            st = tti_fail(
                TUTTI_E_MISMATCH,
                "named_optim: '%s' has other options in the state than the first of group %d", name,
                g);
        first = found;
        memcpy(value_out, value, sizeof value);
    }
    return st;
}

static tutti_status copy_param(const tutti_named_optim *named, int i, const tutti_state_dict *sd)
{
    tutti_optim *o = named->optim;
    tutti_status st = TUTTI_OK;
    bool any = false;

    for (int k = 0; k < tti_kept_count(o->cls) && st == TUTTI_OK; k++) {
        tutti_tensor *from = NULL;

        st = tti_state_named(sd, name_of(named, o->params[i]), tti_kept_name(o->cls, k), &from);
        if (st == TUTTI_OK && from != NULL)
            st = tti_raw_copy_(*tti_kept_at(o->cls, &o->slots[i], k), from);
        any = any || from != NULL;
    }
    if (any)
        o->slots[i].fresh = 0;
    return st;
}

tutti_status tutti_named_optim_load_state_dict(tutti_named_optim *named, const tutti_state_dict *sd)
{
    const tutti_status before = tti_kept();
    double(*value)[TTI_OPTIM_VALUES];
    tutti_status st = TUTTI_OK;
    tutti_optim *o;

    if (named == NULL || sd == NULL)
        return tti_fail(TUTTI_E_ARG, "named_optim: the %s is NULL",
                        sd == NULL ? "state" : "optimizer");
    o = named->optim;
    value = calloc((size_t)o->n_groups, sizeof *value);
    if (value == NULL)
        return tti_fail(TUTTI_E_NOMEM, "named_optim: no memory for %d groups", o->n_groups);
    for (int i = 0; i < o->n && st == TUTTI_OK; i++)
        st = check_param(named, i, sd);
    for (int g = 0; g < o->n_groups && st == TUTTI_OK; g++)
        st = read_group(named, g, sd, value[g]);
    for (int i = 0; i < o->n && st == TUTTI_OK; i++)
        if (tti_is_mine(o, i))
            st = copy_param(named, i, sd);
    for (int g = 0; g < o->n_groups && st == TUTTI_OK; g++)
        memcpy(o->groups[g].value, value[g], sizeof value[g]);
    free(value);
    return tti_unkeep(before, st);
}
