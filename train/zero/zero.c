/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zero.c - an optimizer of which each rank keeps and steps a part: making it, stepping, more groups, the end.
 *
 * How     It is one optimizer over all parameters on every rank; the others' are only never stepped, and so nothing is
 *         kept for them. Groups and options are the same objects for all, numbers of parameters too.
 * True    A step is the same operations on all ranks, whatever it comes to on each: a rank that fails tells the others.
 *         What is made is the same on all ranks, or is made on none. */
#include "zero/zero.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

tti_zero_words tti_zero_keep_words(void)
{
    tti_zero_words words;

    strncpy(words.text, tutti_last_error(), sizeof words.text - 1);
    words.text[sizeof words.text - 1] = '\0';
    return words;
}

tti_zero *tti_zero_of(const tutti_optim *o, const char *op)
{
    if (o != NULL && o->part != NULL)
        return o->part->ctx;
    (void)tti_fail(TUTTI_E_ARG, "%s: the optimizer is %s", op, o == NULL ? "NULL" : "not divided\n  next: tutti_zero_create()");
    return NULL;
}

/* ---- parameters ------------------------------------------------------------------------------- */

static bool grow(void *array, size_t n, size_t element)
{
    void **at = array;
    void *larger = realloc(*at, n * element);

    if (larger != NULL)
        *at = larger;
    return larger != NULL;
}

tutti_status tti_zero_fit(tti_zero *z, int n)
{
    const size_t room = (size_t)n + 2;

    if (n <= z->room)
        return TUTTI_OK;
    if (!grow(&z->owner, room, sizeof *z->owner) || !grow(&z->mine, room, sizeof *z->mine) ||
        !grow(&z->rests, room, sizeof *z->rests) || !grow(&z->order, room, sizeof *z->order) ||
        !grow(&z->works, room, sizeof *z->works) || !grow(&z->rows, room, sizeof *z->rows))
        return tti_fail(TUTTI_E_NOMEM, "zero: no memory for %d parameters", n);
    for (int i = z->room; i < n; i++) {
        z->rows[i] = NULL;
        z->order[i] = i;
        z->rests[i] = z->mine[i] = false;
    }
    z->room = n;
    z->part.mine = z->mine;
    z->part.rests = z->rests;
    return TUTTI_OK;
}

tutti_status tti_zero_own(tti_zero *z)
{
    for (int r = 0; r < z->size; r++)
        z->load[r] = 0;
    for (int i = 0; i < z->o->n; i++) {
        z->load[z->owner[i]] += z->o->params[i]->numel;
        z->mine[i] = z->owner[i] == z->rank;
    }
    return z->views ? tti_flat_build(z) : TUTTI_OK;
}

/* Parameters from the first on get owners. */
static tutti_status divide(tti_zero *z, int first)
{
    const int n = z->o->n - first;
    int64_t *numel;
    bool ok;

    for (int i = first; i < z->o->n; i++)
        if (z->o->params[i]->dtype != z->o->params[0]->dtype)
            return tti_fail(TUTTI_E_ARG, "zero: parameter %d is %s, and the first one %s: they must be of one type", i,
                            tutti_dtype_name(z->o->params[i]->dtype), tutti_dtype_name(z->o->params[0]->dtype));
    numel = malloc(((size_t)n + 1) * sizeof *numel);
    if (numel == NULL || tti_zero_fit(z, z->o->n) != TUTTI_OK) {
        free(numel);
        return tti_fail(TUTTI_E_NOMEM, "zero: no memory for %d parameters", z->o->n);
    }
    for (int i = 0; i < n; i++)
        numel[i] = z->o->params[first + i]->numel;
    ok = tti_zero_partition(numel, n, z->size, z->load, z->owner + first);
    free(numel);
    return ok ? tti_zero_own(z) : tti_fail(TUTTI_E_NOMEM, "zero: no memory for %d parameters", z->o->n);
}

/* ---- what the optimizer asks ------------------------------------------------------------------- */

static tutti_status step(void *ctx, tutti_tensor *const *grads, tutti_status st)
{
    tti_zero *z = ctx;
    const tti_zero_words words = tti_zero_keep_words();
    tutti_status told;

    if (z->overlap != NULL)
        return tti_overlap_no_step(z->overlap, st);
    told = tutti_join_notify(z->join, z);
    if (told != TUTTI_OK)
        return told;
    if (st != TUTTI_OK)
        (void)tti_fail(st, "%s", words.text);
    if (z->views) {
        told = tti_flat_follow(z);
        if (told != TUTTI_OK)
            return told;
        if (st != TUTTI_OK)
            (void)tti_fail(st, "%s", words.text);
    }
    if (st == TUTTI_OK)
        st = tti_optim_step_own(z->o, grads);
    return tti_zero_share(z, st);
}

static tutti_status add_group(void *ctx, tutti_tensor *const *params, int n, int *group_out)
{
    tti_zero *z = ctx;
    const tutti_status before = tti_kept();
    const int first = z->o->n;
    tutti_status st = TUTTI_OK;

    if (z->overlap != NULL)
        return tti_fail(TUTTI_E_STATE, "add_param_group: the optimizer steps inside of the backward: its parameters stay");
    if (n < 1 || params == NULL)
        st = tti_fail(TUTTI_E_ARG, "add_param_group: no parameters");
    else
        st = tti_unkeep(before, tti_optim_append_group(z->o, params, n));
    if (st == TUTTI_OK) {
        st = divide(z, first);
        st = tti_zero_agree(z, "add_param_group", st, first, n);
        if (st != TUTTI_OK) {
            tti_optim_pop_group(z->o);
            (void)tti_zero_own(z);
        }
    } else {
        st = tti_zero_agree(z, "add_param_group", st, first, 0);
    }
    if (st == TUTTI_OK && group_out != NULL)
        *group_out = z->o->n_groups - 1;
    return st;
}

static void end(void *ctx)
{
    tti_zero *z = ctx;

    tti_overlap_leave(z->overlap);
    tutti_state_dict_free(z->whole);
    tutti_tensor_release(z->flat);
    free(z->owner);
    free(z->mine);
    free(z->rests);
    free(z->order);
    free(z->load);
    free(z->counts);
    free(z->works);
    free(z->rows);
    free(z);
}

/* ---- making it -------------------------------------------------------------------------------- */

static tutti_status make(tti_zero **z_out, const tutti_zero_options *opts)
{
    tutti_group *group = opts->group != NULL ? opts->group : tutti_current_group();
    tti_zero *z;

    if (group == NULL || tutti_get_rank(group) < 0)
        return tti_fail(TUTTI_E_STATE, "zero: %s", group == NULL ? "there is no group\n  next: tutti_init_process_group()"
                                                                 : "this rank is not in the group");
    z = calloc(1, sizeof *z);
    if (z == NULL)
        return tti_fail(TUTTI_E_NOMEM, "zero: no memory");
    z->group = group;
    z->rank = tutti_get_rank(group);
    z->size = tutti_get_world_size(group);
    z->views = opts->parameters_as_bucket_view;
    z->load = calloc((size_t)z->size, sizeof *z->load);
    z->counts = calloc((size_t)z->size, sizeof *z->counts);
    if (z->load == NULL || z->counts == NULL) {
        end(z);
        return tti_fail(TUTTI_E_NOMEM, "zero: no memory for %d ranks", tutti_get_world_size(group));
    }
    z->part = (tti_optim_part){ .step = step, .add_group = add_group, .end = end, .ctx = z };
    *z_out = z;
    return TUTTI_OK;
}

/* Everything that this rank does by itself. */
static tutti_status fill(tti_zero *z, const char *optimizer, tutti_tensor *const *params, int n,
                         const tutti_optim_option *options, int n_options)
{
    const tutti_status before = tti_kept();

    if (n < 1 || params == NULL)
        return tti_fail(TUTTI_E_ARG, "zero: no parameters");
    z->o = tutti_optim_create(optimizer, params, n, options, n_options);
    if (z->o == NULL)
        return before == TUTTI_OK ? tti_take_kept() : tti_fail(TUTTI_E_ARG, "zero: the optimizer could not be made");
    return divide(z, 0);
}

tutti_status tutti_zero_create(const char *optimizer, tutti_tensor *const *params, int n,
                               const tutti_optim_option *options, int n_options, const tutti_zero_options *opts,
                               tutti_optim **optim_out)
{
    const tutti_zero_options none = TUTTI_ZERO_OPTIONS;
    tti_zero *z = NULL;
    tutti_status st;

    if (optim_out == NULL || (opts != NULL && opts->size != sizeof *opts))
        return tti_fail(TUTTI_E_ARG, "zero: %s",
                        optim_out == NULL ? "optim_out is NULL" : "no options\n  next: begin with TUTTI_ZERO_OPTIONS");
    st = make(&z, opts != NULL ? opts : &none);
    if (st != TUTTI_OK)
        return st;
    st = fill(z, optimizer, params, n, options, n_options);
    st = tti_zero_agree(z, "zero", st, 0, n);
    if (z->o != NULL)
        z->o->part = &z->part;
    if (st == TUTTI_OK)
        *optim_out = z->o;
    else if (z->o != NULL)
        tutti_optim_free(z->o);
    else
        end(z);
    return st;
}

int tutti_zero_owner(const tutti_optim *optim, const tutti_tensor *param)
{
    const tti_zero *z = tti_zero_of(optim, "zero_owner");
    const int i = z != NULL && param != NULL ? tti_optim_find(optim, param) : -1;

    return i >= 0 ? z->owner[i] : -1;
}

/* ---- inputs of different lengths ---------------------------------------------------------------- */

static tutti_status main_hook(void *object, int n_active)
{
    tti_zero *z = object;
    tutti_join *scope = z->join;
    tutti_status st;

    (void)n_active;
    z->join = NULL; /* this is no step of a rank with inputs */
    st = tutti_optim_step(z->o);
    z->join = scope;
    return st;
}

static void enter(void *object, tutti_join *join)
{
    ((tti_zero *)object)->join = join;
}

tutti_status tutti_zero_joinable(tutti_optim *optim, tutti_joinable *joinable_out)
{
    tti_zero *z = tti_zero_of(optim, "zero_joinable");

    if (z == NULL || joinable_out == NULL)
        return z == NULL ? TUTTI_E_ARG : tti_fail(TUTTI_E_ARG, "zero_joinable: joinable_out is NULL");
    *joinable_out = (tutti_joinable){ .group = z->group, .object = z, .main_hook = main_hook, .enter = enter };
    return TUTTI_OK;
}
