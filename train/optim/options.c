/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.c - options of a group, by name; optimizers by name; what is kept for a parameter.
 *
 * How     The values of a group are one row of numbers, in the order of the class's options; a pair takes
 *         two. A change is tried on a copy of the row and taken over if the whole row is legal. */
#include "optim/optim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

static const tti_optim_class *const classes[] = { &tti_sgd_class,      &tti_adam_class,
                                                  &tti_adamw_class,    &tti_adamax_class,
                                                  &tti_adagrad_class,  &tti_rmsprop_class,
                                                  &tti_adadelta_class, &tti_rprop_class };

enum { CLASSES = sizeof classes / sizeof classes[0] };

const tti_optim_class *tti_optim_class_find(const char *name)
{
    for (int k = 0; k < CLASSES; k++)
        if (strcmp(classes[k]->name, name) == 0)
            return classes[k];
    return NULL;
}

int tti_option_find(const tti_optim_class *cls, const char *name, const tti_option **option_out)
{
    int at = 0;

    for (int k = 0; k < cls->n_options; at += cls->options[k++].count) {
        if (strcmp(cls->options[k].name, name) == 0) {
            *option_out = &cls->options[k];
            return at;
        }
    }
    return -1;
}

int tti_option_values(const tti_optim_class *cls)
{
    int n = 0;

    for (int k = 0; k < cls->n_options; k++)
        n += cls->options[k].count;
    return n;
}

/* ---- ranges ----------------------------------------------------------------------------------- */

static bool in_range(tti_range range, double x)
{
    switch (range) {
    case TTI_NOT_NEGATIVE: return x >= 0.0;
    case TTI_BELOW_ONE: return x >= 0.0 && x < 1.0;
    case TTI_UNIT: return x >= 0.0 && x <= 1.0;
    case TTI_FLAG: return x == 0.0 || x == 1.0;
    default: return !isnan(x);
    }
}

static const char *range_words(tti_range range)
{
    switch (range) {
    case TTI_NOT_NEGATIVE: return "0 or more";
    case TTI_BELOW_ONE: return "at least 0 and below 1";
    case TTI_UNIT: return "0 to 1";
    case TTI_FLAG: return "0 or 1";
    default: return "a number";
    }
}

tutti_status tti_options_check(const tti_optim_class *cls, const double *value)
{
    int at = 0;

    for (int k = 0; k < cls->n_options; k++) {
        const tti_option *option = &cls->options[k];

        for (int i = 0; i < option->count; i++, at++)
            if (!in_range(option->range, value[at]))
                return tti_refuse(TUTTI_E_ARG, cls->name, "%s is %g, and must be %s", option->name,
                                  value[at], range_words(option->range));
    }
    return cls->check != NULL ? cls->check(cls->name, value) : TUTTI_OK;
}

/* ---- by name ---------------------------------------------------------------------------------- */

/* Names to choose from, in words. */
typedef struct choice {
    char s[256];
} choice;

static void add_name(choice *c, const char *name)
{
    const size_t n = strlen(c->s);

    snprintf(c->s + n, sizeof c->s - n, "%s%s", n > 0 ? ", " : "", name);
}

static choice optimizers(void)
{
    choice c = { "" };

    for (int k = 0; k < CLASSES; k++)
        add_name(&c, classes[k]->name);
    return c;
}

static choice options_of(const tti_optim_class *cls)
{
    choice c = { "" };

    for (int k = 0; k < cls->n_options; k++)
        add_name(&c, cls->options[k].name);
    return c;
}

/* Put n values of an option into a row. */
static tutti_status put(const tti_optim_class *cls, double *row, const char *name,
                        const double *value, int n)
{
    const tti_option *option = NULL;
    const int at = name != NULL ? tti_option_find(cls, name, &option) : -1;

    if (name == NULL)
        return tti_refuse(TUTTI_E_ARG, cls->name, "the name of an option is NULL");
    if (at < 0)
        return tti_refuse(TUTTI_E_ARG, cls->name, "has no option '%.100s', but %s", name,
                          options_of(cls).s);
    if (value == NULL || n != option->count)
        return tti_refuse(TUTTI_E_ARG, cls->name, "option '%s' has %d values, not %d", name,
                          option->count, value == NULL ? 0 : n);
    memcpy(row + at, value, (size_t)n * sizeof *row);
    return TUTTI_OK;
}

/* How many values an entry of tutti_optim_create() holds: what the option takes. */
static int count_of(const tti_optim_class *cls, const char *name)
{
    const tti_option *option = NULL;

    return name != NULL && tti_option_find(cls, name, &option) >= 0 ? option->count : 0;
}

static tutti_status refuse_create(const char *name, tutti_tensor *const *params, int n)
{
    static const char op[] = "optim_create";

    if (name == NULL)
        return tti_refuse(TUTTI_E_ARG, op, "the name is NULL\n  next: one of %s", optimizers().s);
    if (tti_optim_class_find(name) == NULL)
        return tti_refuse(TUTTI_E_ARG, op, "there is no optimizer '%.100s', but %s", name,
                          optimizers().s);
    if (n < 0)
        return tti_refuse(TUTTI_E_ARG, op, "'%s' of %d parameters", name, n);
    return tti_refuse(TUTTI_E_ARG, op, "'%s' with a NULL for its list of %s", name,
                      params == NULL && n > 0 ? "parameters" : "options");
}

tutti_optim *tutti_optim_create(const char *name, tutti_tensor *const *params, int n,
                                const tutti_optim_option *options, int n_options)
{
    const tti_optim_class *cls = name != NULL ? tti_optim_class_find(name) : NULL;
    double row[TTI_OPTIM_VALUES];

    if (cls == NULL || n < 0 || (params == NULL && n > 0) || (options == NULL && n_options > 0)) {
        (void)refuse_create(name, params, n);
        return NULL;
    }
    memcpy(row, cls->defaults, sizeof row);
    for (int k = 0; k < n_options; k++)
        if (put(cls, row, options[k].name, options[k].value, count_of(cls, options[k].name)) !=
            TUTTI_OK)
            return NULL;
    return tti_optim_make(cls, params, n, row);
}

/* ---- groups ----------------------------------------------------------------------------------- */

const char *tutti_optim_name(const tutti_optim *o)
{
    return o != NULL ? o->cls->name : NULL;
}

int tutti_optim_n_groups(const tutti_optim *o)
{
    return o != NULL ? o->n_groups : 0;
}

tutti_tensor *const *tutti_optim_parameters(const tutti_optim *o, int group, int *n_out)
{
    if (o == NULL || group < -1 || group >= o->n_groups) {
        *n_out = 0;
        return NULL;
    }
    *n_out = group < 0 ? o->n : o->groups[group].n;
    return o->params + (group < 0 ? 0 : o->groups[group].first);
}

/* A group to read or change options of; worded under op. */
static tutti_status check_group(const char *op, const tutti_optim *o, int group)
{
    if (o == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: the optimizer is NULL", op);
    if (group < 0 || group >= o->n_groups)
        return tti_fail(TUTTI_E_ARG, "%s: %s has no group %d of %d", op, o->cls->name, group,
                        o->n_groups);
    return TUTTI_OK;
}

tutti_status tutti_optim_get_option(const tutti_optim *o, int group, const char *name, int i,
                                    double *value_out)
{
    const tti_option *option = NULL;
    tutti_status st = check_group("get_option", o, group);
    int at;

    if (st != TUTTI_OK)
        return st;
    if (name == NULL)
        return tti_fail(TUTTI_E_ARG, "get_option: the name of an option is NULL");
    at = tti_option_find(o->cls, name, &option);
    if (at < 0)
        return tti_fail(TUTTI_E_ARG, "get_option: %s has no option '%.100s', but %s", o->cls->name,
                        name, options_of(o->cls).s);
    if (i < 0 || i >= option->count)
        return tti_fail(TUTTI_E_ARG, "get_option: option '%s' of %s has %d values, and no value %d",
                        name, o->cls->name, option->count, i);
    *value_out = o->groups[group].value[at + i];
    return TUTTI_OK;
}

tutti_status tutti_optim_set_option(tutti_optim *o, int group, const char *name,
                                    const double *value, int n)
{
    const tutti_status before = tti_kept();
    double row[TTI_OPTIM_VALUES];
    tutti_status st = check_group("set_option", o, group);

    if (st != TUTTI_OK)
        return st;
    memcpy(row, o->groups[group].value, sizeof row);
    st = put(o->cls, row, name, value, n);
    if (st == TUTTI_OK)
        st = tti_options_check(o->cls, row);
    if (st != TUTTI_OK)
        return tti_unkeep(before, st);
    memcpy(o->groups[group].value, row, sizeof row);
    return TUTTI_OK;
}

double tutti_optim_lr(const tutti_optim *o)
{
    return o != NULL ? o->groups[0].value[0] : NAN;
}

tutti_status tutti_optim_set_lr(tutti_optim *o, double lr)
{
    if (o == NULL)
        return tti_fail(TUTTI_E_ARG, "set_lr: the optimizer is NULL");
    if (!(lr >= 0.0))
        return tti_fail(TUTTI_E_ARG, "set_lr: a learning rate of %g", lr);
    for (int g = 0; g < o->n_groups; g++)
        o->groups[g].value[0] = lr;
    return TUTTI_OK;
}

/* ---- state ------------------------------------------------------------------------------------ */

tutti_tensor *tutti_optim_state(const tutti_optim *o, const tutti_tensor *param, const char *name)
{
    const int i = o != NULL && param != NULL && name != NULL ? tti_optim_find(o, param) : -1;

    if (i < 0)
        return NULL;
    if (strcmp(name, "step") == 0)
        return o->slots[i].step;
    for (int k = 0; k < o->cls->n_states; k++)
        if (strcmp(name, o->cls->state[k]) == 0)
            return o->slots[i].state[k];
    return NULL;
}
