/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module.c - the tree of layers: names, parameters, training or not.
 *
 * How     A module has two lists in order of registration, parameters and children. What
 *         tutti_module_parameters() returns is collected once and kept with the module; every
 *         change below raises a revision, and a list of an older revision is collected anew.
 * True    A child has one parent, so the tree is a tree. Revisions only grow: the sum over a subtree
 *         is the same only if nothing in it changed. */
#include "nn/nn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct named_parameter {
    char *name;
    tutti_tensor *tensor;
} named_parameter;

typedef struct named_child {
    char *name;
    tutti_module *module;
} named_child;

/* The parameters of a whole subtree, collected. */
typedef struct listing {
    tutti_tensor **tensors;
    char **names;
    int n, cap;
    uint64_t revision; /* of the subtree, when it was collected; 0: never */
} listing;

struct tutti_module {
    char *kind;
    tutti_forward_fn forward;
    void *ctx;
    void (*free_fn)(void *ctx);
    tutti_module *parent;
    bool training;
    named_parameter *params;
    int n_params;
    named_child *children;
    int n_children;
    uint64_t revision; /* of this module alone, from 1 */
    listing list;
};

/* ---- making and freeing ----------------------------------------------------------------------- */

static tutti_tensor *one_after_another(tutti_module *m, tutti_tensor *x)
{
    for (int i = 0; i < m->n_children; i++)
        x = tutti_forward(m->children[i].module, x);
    return x;
}

tutti_module *tutti_module_create(const char *kind, tutti_forward_fn forward, void *ctx,
                                  void (*free_fn)(void *ctx))
{
    tutti_module *m = calloc(1, sizeof *m);

    if (m != NULL)
        m->kind = strdup(kind != NULL ? kind : "module");
    if (m == NULL || m->kind == NULL) {
        free(m);
        (void)tti_refuse(TUTTI_E_NOMEM, "module", "no memory for its description");
        return NULL;
    }
    m->forward = forward != NULL ? forward : one_after_another;
    m->ctx = ctx;
    m->free_fn = free_fn;
    m->training = true;
    m->revision = 1;
    return m;
}

static void listing_clear(listing *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->names[i]);
    free(l->names);
    free(l->tensors);
    *l = (listing){ 0 };
}

static void destroy(tutti_module *m)
{
    for (int i = 0; i < m->n_children; i++) {
        destroy(m->children[i].module);
        free(m->children[i].name);
    }
    for (int i = 0; i < m->n_params; i++) {
        tutti_tensor_release(m->params[i].tensor);
        free(m->params[i].name);
    }
    listing_clear(&m->list);
    if (m->free_fn != NULL)
        m->free_fn(m->ctx);
    free(m->children);
    free(m->params);
    free(m->kind);
    free(m);
}

void tutti_module_free(tutti_module *m)
{
    if (m != NULL && m->parent == NULL)
        destroy(m);
}

void *tutti_module_context(const tutti_module *m)
{
    return m != NULL ? m->ctx : NULL;
}

/* ---- the tree --------------------------------------------------------------------------------- */

static bool name_in_use(const tutti_module *m, const char *name)
{
    for (int i = 0; i < m->n_params; i++)
        if (strcmp(m->params[i].name, name) == 0)
            return true;
    return tutti_module_child(m, name) != NULL;
}

static tutti_status check_name(const tutti_module *m, const char *what, const char *name)
{
    if (name == NULL || name[0] == '\0' || strchr(name, '.') != NULL)
        return tti_refuse(TUTTI_E_ARG, m->kind, "'%s' is no name for a %s: not empty, and no dot",
                          name != NULL ? name : "(null)", what);
    if (name_in_use(m, name))
        return tti_refuse(TUTTI_E_ARG, m->kind, "the name '%s' is in use", name);
    return TUTTI_OK;
}

/* True if m is child, or below it. */
static bool is_within(const tutti_module *m, const tutti_module *child)
{
    for (; m != NULL; m = m->parent)
        if (m == child)
            return true;
    return false;
}

static tutti_status append_child(tutti_module *m, const char *name, tutti_module *child)
{
    named_child *children;
    char *copy;

    if (child->parent != NULL || is_within(m, child))
        return tti_refuse(TUTTI_E_ARG, m->kind, "'%s' has a parent already", child->kind);
    if (check_name(m, "child", name) != TUTTI_OK)
        return TUTTI_E_ARG;
    copy = strdup(name);
    children = realloc(m->children, (size_t)(m->n_children + 1) * sizeof *children);
    if (children != NULL)
        m->children = children;
    if (copy == NULL || children == NULL) {
        free(copy);
        return tti_refuse(TUTTI_E_NOMEM, m->kind, "no memory for child '%s'", name);
    }
    children[m->n_children++] = (named_child){ copy, child };
    child->parent = m;
    m->revision++;
    return TUTTI_OK;
}

tutti_module *tutti_module_add(tutti_module *m, const char *name, tutti_module *child)
{
    if (m == NULL || child == NULL) {
        (void)tti_refuse_null("module_add");
        tutti_module_free(child);
        return NULL;
    }
    if (append_child(m, name, child) != TUTTI_OK) {
        if (!is_within(m, child)) /* freeing what m is a part of would free m */
            tutti_module_free(child);
        return NULL;
    }
    return child;
}

tutti_status tutti_module_register_parameter(tutti_module *m, const char *name, tutti_tensor *t)
{
    named_parameter *params;
    char *copy;

    if (m == NULL || t == NULL)
        return tti_refuse_null("register_parameter");
    if (check_name(m, "parameter", name) != TUTTI_OK)
        return TUTTI_E_ARG;
    if (!tutti_tensor_is_leaf(t) || !tti_is_real(t->dtype))
        return tti_refuse(TUTTI_E_ARG, m->kind, "parameter '%s' must be a leaf of f32 or f64",
                          name);
    if (tutti_tensor_requires_grad_(t, true) == NULL)
        return tti_refused();
    copy = strdup(name);
    params = realloc(m->params, (size_t)(m->n_params + 1) * sizeof *params);
    if (params != NULL)
        m->params = params;
    if (copy == NULL || params == NULL) {
        free(copy);
        return tti_refuse(TUTTI_E_NOMEM, m->kind, "no memory for parameter '%s'", name);
    }
    params[m->n_params++] = (named_parameter){ copy, tutti_tensor_retain(t) };
    m->revision++;
    return TUTTI_OK;
}

tutti_module *tutti_module_child(const tutti_module *m, const char *name)
{
    for (int i = 0; m != NULL && name != NULL && i < m->n_children; i++)
        if (strcmp(m->children[i].name, name) == 0)
            return m->children[i].module;
    return NULL;
}

/* ---- all parameters --------------------------------------------------------------------------- */

static uint64_t subtree_revision(const tutti_module *m)
{
    uint64_t sum = m->revision;

    for (int i = 0; i < m->n_children; i++)
        sum += subtree_revision(m->children[i].module);
    return sum;
}

/* Room for one more. */
static bool listing_grow(listing *l)
{
    const int cap = l->cap == 0 ? 16 : 2 * l->cap;
    tutti_tensor **tensors;
    char **names;

    if (l->n < l->cap)
        return true;
    tensors = realloc(l->tensors, (size_t)cap * sizeof *tensors);
    if (tensors != NULL)
        l->tensors = tensors;
    names = realloc(l->names, (size_t)cap * sizeof *names);
    if (names != NULL)
        l->names = names;
    if (tensors == NULL || names == NULL)
        return false;
    l->cap = cap;
    return true;
}

static bool listing_add(listing *l, const char *prefix, const named_parameter *p)
{
    char *name = NULL;

    for (int i = 0; i < l->n; i++)
        if (l->tensors[i] == p->tensor)
            return true; /* tied: it keeps its first name */
    if (!listing_grow(l) || asprintf(&name, "%s%s", prefix, p->name) < 0)
        return false;
    l->tensors[l->n] = p->tensor;
    l->names[l->n++] = name;
    return true;
}

static bool collect(const tutti_module *m, const char *prefix, listing *l)
{
    bool ok = true;

    for (int i = 0; i < m->n_params && ok; i++)
        ok = listing_add(l, prefix, &m->params[i]);
    for (int i = 0; i < m->n_children && ok; i++) {
        char *below = NULL;

        ok = asprintf(&below, "%s%s.", prefix, m->children[i].name) >= 0;
        if (ok) {
            ok = collect(m->children[i].module, below, l);
            free(below);
        }
    }
    return ok;
}

/* The list of m, of today. NULL and kept when out of memory. */
static const listing *current(tutti_module *m)
{
    const uint64_t revision = subtree_revision(m);

    if (m->list.revision == revision)
        return &m->list;
    listing_clear(&m->list);
    if (!collect(m, "", &m->list)) {
        listing_clear(&m->list);
        (void)tti_refuse(TUTTI_E_NOMEM, m->kind, "no memory for the list of its parameters");
        return NULL;
    }
    m->list.revision = revision;
    return &m->list;
}

tutti_tensor *const *tutti_module_parameters(tutti_module *m, int *n_out)
{
    const listing *l = NULL;

    if (m == NULL)
        (void)tti_refuse_null("parameters");
    else
        l = current(m);
    *n_out = l != NULL ? l->n : 0;
    return l != NULL ? l->tensors : NULL;
}

const char *const *tutti_module_parameter_names(tutti_module *m, int *n_out)
{
    const listing *l = NULL;

    if (m == NULL)
        (void)tti_refuse_null("parameter_names");
    else
        l = current(m);
    *n_out = l != NULL ? l->n : 0;
    return l != NULL ? (const char *const *)l->names : NULL;
}

tutti_tensor *tutti_module_parameter(tutti_module *m, const char *name)
{
    const char *dot = name != NULL ? strchr(name, '.') : NULL;

    if (m == NULL || name == NULL)
        return NULL;
    for (int i = 0; i < m->n_params && dot == NULL; i++)
        if (strcmp(m->params[i].name, name) == 0)
            return m->params[i].tensor;
    for (int i = 0; i < m->n_children && dot != NULL; i++)
        if (strncmp(m->children[i].name, name, (size_t)(dot - name)) == 0 &&
            m->children[i].name[dot - name] == '\0')
            return tutti_module_parameter(m->children[i].module, dot + 1);
    return NULL;
}

/* ---- running ---------------------------------------------------------------------------------- */

void tutti_module_train(tutti_module *m, bool on)
{
    if (m == NULL)
        return;
    m->training = on;
    for (int i = 0; i < m->n_children; i++)
        tutti_module_train(m->children[i].module, on);
}

bool tutti_module_is_training(const tutti_module *m)
{
    return m != NULL && m->training;
}

void tutti_module_zero_grad(tutti_module *m)
{
    if (m == NULL)
        return;
    for (int i = 0; i < m->n_params; i++)
        (void)tutti_tensor_set_grad(m->params[i].tensor, NULL);
    for (int i = 0; i < m->n_children; i++)
        tutti_module_zero_grad(m->children[i].module);
}

tutti_tensor *tutti_forward(tutti_module *m, tutti_tensor *x)
{
    if (m == NULL || x == NULL)
        return tti_poisoned(m != NULL ? m->kind : "forward");
    return m->forward(m, x);
}
