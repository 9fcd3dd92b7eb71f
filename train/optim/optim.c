/* SPDX-License-Identifier: BSD-3-Clause
 *
 * optim.c - the optimizer that all classes share: parameters in groups, what is kept for each, steps.
 *
 * How     Parameters stand in one array, group after group, their slots beside them. A step goes over them
 *         twice: first everything that can fail (gradients that are still under way, tensors to keep), then
 *         the arithmetic. The forms of stepping differ only in where a gradient comes from.
 * True    Parameters without a gradient do not move, do not decay, and get no state. A step that failed has
 *         moved nothing. After the first step of a parameter its next ones take no memory.
 *         Gradients are read only, because others (reducers) may look at their memory. */
#include "optim/optim.h"

#include <math.h>
#include <stdlib.h>
#include <tutti/private.h>

/* ---- parameters ------------------------------------------------------------------------------- */

const tti_optim_group *tti_group_of(const tutti_optim *o, int i)
{
    int g = o->n_groups - 1;

    while (o->groups[g].first > i)
        g--;
    return &o->groups[g];
}

static tutti_status check_params(const tutti_optim *o, tutti_tensor *const *params, int n)
{
    const char *op = o->cls->name;

    for (int i = 0; i < n; i++) {
        if (params[i] == NULL)
            return tti_refuse_null(op);
        if (!tutti_tensor_is_leaf(params[i]) || !tutti_tensor_requires_grad(params[i]))
            return tti_refuse(TUTTI_E_ARG, op, "parameter %d is no leaf that requires gradients",
                              i);
        if (!tti_is_floating(params[i]->dtype))
            return tti_refuse(TUTTI_E_UNSUPPORTED, op,
                              "parameter %d is %s, f16, bf16, f32 and f64 are offered", i,
                              tutti_dtype_name(params[i]->dtype));
        if (tti_repeats_elements(params[i]))
            return tti_refuse(TUTTI_E_ARG, op, "parameter %d repeats elements, as an expanded view",
                              i);
        if (tti_optim_find(o, params[i]) >= 0)
            return tti_refuse(TUTTI_E_ARG, op,
                              "parameter %d is in a group of the optimizer already", i);
        for (int j = 0; j < i; j++)
            if (params[j] == params[i])
                return tti_refuse(TUTTI_E_ARG, op, "parameters %d and %d are the same", j, i);
    }
    return TUTTI_OK;
}

/* Room for n more parameters. */
static tutti_status grow(tutti_optim *o, int n)
{
    const size_t all = (size_t)o->n + (size_t)n;
    tutti_tensor **params = realloc(o->params, (all + 1) * sizeof *params);
    tti_slot *slots;

    if (params != NULL)
        o->params = params;
    slots = realloc(o->slots, (all + 1) * sizeof *slots);
    if (slots != NULL)
        o->slots = slots;
    if (params == NULL || slots == NULL || !tti_optim_reserve(o, all))
        return tti_refuse(TUTTI_E_NOMEM, o->cls->name, "no memory for %zu parameters", all);
    return TUTTI_OK;
}

/* At the end, hence into the last group. */
static tutti_status append(tutti_optim *o, tutti_tensor *const *params, int n)
{
    tutti_status st = check_params(o, params, n);

    if (st == TUTTI_OK)
        st = grow(o, n);
    if (st != TUTTI_OK)
        return st;
    for (int i = 0; i < n; i++) {
        o->params[o->n] = tutti_tensor_retain(params[i]);
        o->slots[o->n] = (tti_slot){ 0 };
        tti_optim_note(o, o->n++);
    }
    o->groups[o->n_groups - 1].n += n;
    return TUTTI_OK;
}

tutti_status tti_optim_append_group(tutti_optim *o, tutti_tensor *const *params, int n)
{
    tti_optim_group *groups = realloc(o->groups, (size_t)(o->n_groups + 1) * sizeof *groups);
    tti_optim_group *group;
    tutti_status st;

    if (groups == NULL)
        return tti_refuse(TUTTI_E_NOMEM, o->cls->name, "no memory for group %d", o->n_groups);
    o->groups = groups;
    group = &groups[o->n_groups++];
    *group = (tti_optim_group){ .first = o->n };
    for (int k = 0; k < TTI_OPTIM_VALUES; k++)
        group->value[k] = o->defaults[k];
    st = append(o, params, n);
    if (st != TUTTI_OK)
        o->n_groups--;
    return st;
}

static void drop_slot(tutti_optim *o, int i)
{
    tutti_tensor_release(o->params[i]);
    tutti_tensor_release(o->slots[i].step);
    for (int k = 0; k < TTI_OPTIM_STATES; k++)
        tutti_tensor_release(o->slots[i].state[k]);
}

void tti_optim_pop_group(tutti_optim *o)
{
    const tti_optim_group *last = &o->groups[--o->n_groups];

    while (o->n > last->first)
        drop_slot(o, --o->n);
    tti_optim_note_all(o);
}

tutti_status tti_unkeep(tutti_status before, tutti_status st)
{
    if (st != TUTTI_OK && before == TUTTI_OK)
        (void)tti_take_kept();
    return st;
}

/* ---- making and freeing ----------------------------------------------------------------------- */

tutti_status tti_optim_size_refused(const char *op, size_t size, const char *initialiser)
{
    return tti_refuse(TUTTI_E_ARG, op, "options of %zu bytes\n  next: begin with %s", size,
                      initialiser);
}

tutti_optim *tti_optim_make(const tti_optim_class *cls, tutti_tensor *const *params, int n,
                            const double *value)
{
    tutti_optim *o;

    if (tti_options_check(cls, value) != TUTTI_OK)
        return NULL;
    o = calloc(1, sizeof *o);
    if (o == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, cls->name, "no memory for the optimizer");
        return NULL;
    }
    o->cls = cls;
    o->adopts = n == 0;
    for (int k = 0; k < TTI_OPTIM_VALUES; k++)
        o->defaults[k] = value[k];
    if (tti_optim_append_group(o, params, n) != TUTTI_OK) {
        tutti_optim_free(o);
        return NULL;
    }
    return o;
}

tutti_optim *tti_optim_new(const tti_optim_class *cls, tutti_tensor *const *params, int n,
                           const double *value)
{
    if (n >= 1 && params != NULL)
        return tti_optim_make(cls, params, n, value);
    (void)tti_refuse(TUTTI_E_ARG, cls->name, "no parameters");
    return NULL;
}

void tutti_optim_free(tutti_optim *o)
{
    if (o == NULL)
        return;
    if (o->part != NULL)
        o->part->end(o->part->ctx);
    for (int i = 0; i < o->n; i++)
        drop_slot(o, i);
    free(o->params);
    free(o->table);
    free(o->slots);
    free(o->groups);
    free(o);
}

tutti_status tutti_optim_add_param_group(tutti_optim *o, tutti_tensor *const *params, int n,
                                         int *group_out)
{
    const tutti_status before = tti_kept();
    tutti_status st;

    if (o == NULL)
        return tti_fail(TUTTI_E_ARG, "add_param_group: the optimizer is NULL");
    if (o->part != NULL)
        return o->part->add_group(o->part->ctx, params, n, group_out);
    if (n < 1 || params == NULL)
        return tti_fail(TUTTI_E_ARG, "add_param_group: no parameters");
    st = tti_optim_append_group(o, params, n);
    if (st == TUTTI_OK && group_out != NULL)
        *group_out = o->n_groups - 1;
    return tti_unkeep(before, st);
}

/* ---- what is kept for a parameter ------------------------------------------------------------- */

static tutti_status make_state(tutti_optim *o, int i, int k)
{
    const tti_optim_class *cls = o->cls;
    const tutti_tensor *p = o->params[i];
    const double first = cls->initial != NULL ? cls->initial(k, tti_group_of(o, i)->value) : 0.0;

    o->slots[i].state[k] = tti_raw_full(tti_state_dtype(p), p->nd, p->shape, first);
    o->slots[i].fresh |= 1u << k;
    return o->slots[i].state[k] != NULL ? TUTTI_OK : tti_refused();
}

tutti_status tti_slot_fill(tutti_optim *o, int i)
{
    const tti_optim_class *cls = o->cls;
    const unsigned wanted = cls->wants != NULL ? cls->wants(tti_group_of(o, i)->value) : ~0u;
    tti_slot *s = &o->slots[i];
    tutti_status st = TUTTI_OK;

    if (cls->counts && s->step == NULL) {
        s->step = tti_raw_zeros(TUTTI_F32, 0, NULL);
        st = s->step != NULL ? TUTTI_OK : tti_refused();
    }
    for (int k = 0; k < cls->n_states && st == TUTTI_OK; k++)
        if (s->state[k] == NULL && (wanted >> k & 1u) != 0)
            st = make_state(o, i, k);
    return st;
}

/* ---- steps ------------------------------------------------------------------------------------ */

/* Everything that can fail of the step of parameter i. */
static tutti_status prepare(tutti_optim *o, int i, const tutti_tensor *g)
{
    const tutti_tensor *p = o->params[i];
    tutti_status st;

    if (p->dtype != g->dtype || !tti_same_shape(p, g))
        return tti_refuse(TUTTI_E_ARG, o->cls->name,
                          "gradient %d is %s of shape %s, its parameter %s of shape %s", i,
                          tutti_dtype_name(g->dtype), tti_shape_str(g->nd, g->shape).s,
                          tutti_dtype_name(p->dtype), tti_shape_str(p->nd, p->shape).s);
    st = tti_ready(g);
    if (st == TUTTI_OK)
        st = tti_ready(p);
    return st == TUTTI_OK ? tti_slot_fill(o, i) : st;
}

static void move(tutti_optim *o, int i, const tutti_tensor *g)
{
    tti_slot *s = &o->slots[i];
    double t = 0.0;
    tti_step step;

    if (s->step != NULL)
        t = (double)(*(float *)tti_at(s->step) += 1.0f);
    o->cls->prepare(tti_group_of(o, i)->value, t, s->fresh, &step);
    tti_step_run(&step, o->params[i], g, s->state, o->cls->n_states);
    s->fresh = 0;
}

/* The gradient of parameter i: of the list, or its own where there is no list; NULL: it has none, or is not stepped
 * here. */
static tutti_tensor *gradient(const tutti_optim *o, tutti_tensor *const *grads, int i)
{
    if (o->part != NULL && (!o->part->mine[i] || o->part->rests[i]))
        return NULL;
    return grads != NULL ? grads[i] : tutti_tensor_grad(o->params[i]);
}

tutti_status tti_optim_step_own(tutti_optim *o, tutti_tensor *const *grads)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < o->n && st == TUTTI_OK; i++)
        if (gradient(o, grads, i) != NULL)
            st = prepare(o, i, gradient(o, grads, i));
    if (st != TUTTI_OK)
        return tti_unkeep(TUTTI_OK, st);
    for (int i = 0; i < o->n; i++)
        if (gradient(o, grads, i) != NULL)
            move(o, i, gradient(o, grads, i));
    return TUTTI_OK;
}

/* A step, if all was well before it. Where other ranks wait it is they who hear of what was not. */
static tutti_status step_after(tutti_optim *o, tutti_tensor *const *grads, tutti_status st)
{
    if (o != NULL && o->part != NULL)
        return o->part->step(o->part->ctx, grads, st);
    return st == TUTTI_OK ? tti_optim_step_own(o, grads) : st;
}

tutti_status tutti_optim_step(tutti_optim *o)
{
    const tutti_status st = tti_take_kept();

    if (o == NULL)
        return st != TUTTI_OK ? st : tti_fail(TUTTI_E_ARG, "optim_step: the optimizer is NULL");
    return step_after(o, NULL, st);
}

tutti_status tutti_optim_step_closure(tutti_optim *o, tutti_closure closure, void *ctx,
                                      double *loss_out)
{
    double loss = NAN;
    bool recorded;
    tutti_status st;

    if (o == NULL || closure == NULL)
        return tti_fail(TUTTI_E_ARG, "optim_step: the %s is NULL",
                        o == NULL ? "optimizer" : "closure");
    recorded = tutti_set_grad_enabled(true);
    st = closure(ctx, &loss);
    (void)tutti_set_grad_enabled(recorded);
    if (st == TUTTI_OK)
        st = tti_take_kept();
    st = step_after(o, NULL, st);
    if (st == TUTTI_OK && loss_out != NULL)
        *loss_out = loss;
    return st;
}

static tutti_status check_list(const tutti_optim *o, tutti_tensor *const *grads, int n)
{
    if (grads == NULL && n > 0)
        return tti_fail(TUTTI_E_ARG, "step_grads: the list of gradients is NULL");
    if (n != o->n)
        return tti_fail(TUTTI_E_ARG,
                        "step_grads: %d gradients for %d parameters"
                        "\n  next: give NULL for a parameter that has none",
                        n, o->n);
    return TUTTI_OK;
}

tutti_status tutti_optim_step_grads(tutti_optim *o, tutti_tensor *const *grads, int n)
{
    static tutti_tensor *const none[1] = { NULL };
    tutti_status st = tti_take_kept();

    if (o == NULL)
        return st != TUTTI_OK ? st : tti_fail(TUTTI_E_ARG, "step_grads: the optimizer is NULL");
    if (st == TUTTI_OK)
        st = check_list(o, grads, n);
    return step_after(o, grads != NULL ? grads : none, st);
}

tutti_status tti_optim_step_at(tutti_optim *o, int i, const tutti_tensor *grad)
{
    const tutti_status st = prepare(o, i, grad);

    if (st != TUTTI_OK)
        return tti_unkeep(TUTTI_OK, st);
    move(o, i, grad);
    return TUTTI_OK;
}

tutti_status tutti_optim_step_param(tutti_optim *o, tutti_tensor *param, tutti_tensor *grad)
{
    tutti_status st = tti_take_kept();
    int i;

    if (st != TUTTI_OK)
        return st;
    if (o == NULL || param == NULL)
        return tti_fail(TUTTI_E_ARG, "step_param: the %s is NULL",
                        o == NULL ? "optimizer" : "parameter");
    if (o->part != NULL)
        return tti_fail(TUTTI_E_STATE, "step_param: the optimizer is divided among ranks\n  next: tutti_optim_step()");
    if (grad == NULL)
        return TUTTI_OK;
    i = tti_optim_find(o, param);
    if (i < 0 && !o->adopts)
        return tti_fail(TUTTI_E_ARG,
                        "step_param: the parameter is none of the %d of the optimizer"
                        "\n  next: tutti_optim_add_param_group()",
                        o->n);
    if (i < 0) {
        st = append(o, &param, 1);
        i = o->n - 1;
    }
    return st == TUTTI_OK ? tti_optim_step_at(o, i, grad) : tti_unkeep(TUTTI_OK, st);
}

/* ---- gradients -------------------------------------------------------------------------------- */

void tutti_optim_zero_grad(tutti_optim *o)
{
    for (int i = 0; o != NULL && i < o->n; i++)
        (void)tutti_tensor_set_grad(o->params[i], NULL);
}

tutti_status tutti_optim_zero_grad_in_place(tutti_optim *o)
{
    const tutti_status before = tti_kept();
    tutti_status st = TUTTI_OK;

    if (o == NULL)
        return tti_fail(TUTTI_E_ARG, "zero_grad: the optimizer is NULL");
    for (int i = 0; i < o->n && st == TUTTI_OK; i++) {
        tutti_tensor *g = tutti_tensor_grad(o->params[i]);

        if (g != NULL)
            st = tti_ready(g);
        if (g != NULL && st == TUTTI_OK)
            st = tti_raw_fill_(g, 0.0);
    }
    return tti_unkeep(before, st);
}
