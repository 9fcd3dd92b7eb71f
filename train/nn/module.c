/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module.c - the tree of layers: names, parameters, training or not.
 *
 * How     A module has three lists in order of registration: parameters, buffers, children. What
 *         tutti_module_parameters() and tutti_module_buffers() return is collected once and kept with the
 *         module; every change below raises a revision, and a list of an older revision is collected anew.
 * True    A child has one parent, so the tree is a tree. Revisions only grow: the sum over a subtree
 *         is the same only if nothing in it changed. */
#include "nn/nn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct named_tensor {
    char *name;
    tutti_tensor *tensor;
    tti_entry_kind kind;
} named_tensor;

/* Parameters of a module, or its buffers. */
typedef struct tensor_list {
    named_tensor *at;
    int n;
} tensor_list;

typedef struct named_child {
    char *name;
    tutti_module *module;
} named_child;

/* The parameters or buffers of a whole subtree, collected. */
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
    tensor_list params, buffers;
    named_child *children;
    int n_children;
    uint64_t revision; /* of this module alone, from 1 */
    listing list[2];   /* parameters, buffers */
    tti_module_hooks *hooks;
};

tti_module_hooks **tti_module_hooks_of(tutti_module *m)
{
    return &m->hooks;
}

const char *tti_module_kind(const tutti_module *m)
{
    return m->kind;
}

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

tutti_module *tti_module_of(const char *kind, tutti_forward_fn forward, const void *what,
                            size_t bytes)
{
    void *copy = malloc(bytes);
    tutti_module *m;

    if (copy == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, kind, "no memory for its description");
        return NULL;
    }
    memcpy(copy, what, bytes);
    m = tutti_module_create(kind, forward, copy, free);
    if (m == NULL)
        free(copy);
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

static void tensors_free(tensor_list *list)
{
    for (int i = 0; i < list->n; i++) {
        tutti_tensor_release(list->at[i].tensor);
        free(list->at[i].name);
    }
    free(list->at);
}

static void destroy(tutti_module *m)
{
    for (int i = 0; i < m->n_children; i++) {
        destroy(m->children[i].module);
        free(m->children[i].name);
    }
    tensors_free(&m->params);
    tensors_free(&m->buffers);
    listing_clear(&m->list[0]);
    listing_clear(&m->list[1]);
    tti_module_hooks_free(m->hooks);
    if (m->free_fn != NULL)
        m->free_fn(m->ctx);
    free(m->children);
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

static tutti_tensor *tensor_named(const tensor_list *list, const char *name, size_t length)
{
    for (int i = 0; i < list->n; i++)
        if (strncmp(list->at[i].name, name, length) == 0 && list->at[i].name[length] == '\0')
            return list->at[i].tensor;
    return NULL;
}

static bool name_in_use(const tutti_module *m, const char *name)
{
    const size_t length = strlen(name);

    return tensor_named(&m->params, name, length) != NULL ||
           tensor_named(&m->buffers, name, length) != NULL || tutti_module_child(m, name) != NULL;
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

static tutti_status append_tensor(tutti_module *m, tensor_list *list, const char *name,
                                  tutti_tensor *t, tti_entry_kind kind)
{
    named_tensor *at = realloc(list->at, (size_t)(list->n + 1) * sizeof *at);
    char *copy = strdup(name);

    if (at != NULL)
        list->at = at;
    if (copy == NULL || at == NULL) {
        free(copy);
        return tti_refuse(TUTTI_E_NOMEM, m->kind, "no memory for the tensor '%s'", name);
    }
    at[list->n++] = (named_tensor){ copy, tutti_tensor_retain(t), kind };
    m->revision++;
    return TUTTI_OK;
}

tutti_status tutti_module_register_parameter(tutti_module *m, const char *name, tutti_tensor *t)
{
    if (m == NULL || t == NULL)
        return tti_refuse_null("register_parameter");
    if (check_name(m, "parameter", name) != TUTTI_OK)
        return TUTTI_E_ARG;
    if (!tutti_tensor_is_leaf(t) || !tti_is_floating(t->dtype))
        return tti_refuse(TUTTI_E_ARG, m->kind, "parameter '%s' must be a leaf of f32, f64, f16 or bf16",
                          name);
    if (tutti_tensor_requires_grad_(t, true) == NULL)
        return tti_refused();
    return append_tensor(m, &m->params, name, t, TTI_PARAMETER);
}

tutti_status tutti_module_register_buffer(tutti_module *m, const char *name, tutti_tensor *t,
                                          bool persistent)
{
    if (m == NULL || t == NULL)
        return tti_refuse_null("register_buffer");
    if (check_name(m, "buffer", name) != TUTTI_OK)
        return TUTTI_E_ARG;
    if (tutti_tensor_requires_grad(t))
        return tti_refuse(TUTTI_E_ARG, m->kind,
                          "buffer '%s' requires gradients"
                          "\n  next: tutti_module_register_parameter()",
                          name);
    return append_tensor(m, &m->buffers, name, t,
                         persistent ? TTI_PERSISTENT_BUFFER : TTI_PASSING_BUFFER);
}

tutti_module *tutti_module_child(const tutti_module *m, const char *name)
{
    for (int i = 0; m != NULL && name != NULL && i < m->n_children; i++)
        if (strcmp(m->children[i].name, name) == 0)
            return m->children[i].module;
    return NULL;
}

/* ---- all tensors --------------------------------------------------------------------------- */

static uint64_t subtree_revision(const tutti_module *m)
{
    uint64_t sum = m->revision;

    for (int i = 0; i < m->n_children; i++)
        sum += subtree_revision(m->children[i].module);
    return sum;
}

tutti_status tti_module_put_in(tutti_module *m, const char *name, tutti_module *child)
{
    return append_child(m, name, child);
}

tutti_module *tti_module_parent(const tutti_module *m)
{
    return m->parent;
}

void tti_module_take_out(tutti_module *child)
{
    tutti_module *m = child->parent;
    int kept = 0;

    if (m == NULL)
        return;
    for (int i = 0; i < m->n_children; i++) {
        if (m->children[i].module == child)
            free(m->children[i].name);
        else
            m->children[kept++] = m->children[i];
    }
    m->n_children = kept;
    m->revision += subtree_revision(child) + 1; /* so that the sum over m's subtree grows */
    child->parent = NULL;
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

static bool visit_all(const tensor_list *list, const char *prefix, tti_module_visit visit,
                      void *ctx)
{
    bool ok = true;

    for (int i = 0; i < list->n && ok; i++) {
        char *name = NULL;

        ok = asprintf(&name, "%s%s", prefix, list->at[i].name) >= 0;
        if (ok) {
            ok = visit(ctx, name, list->at[i].tensor, list->at[i].kind);
            free(name);
        }
    }
    return ok;
}

static bool walk(const tutti_module *m, const char *prefix, tti_module_visit visit, void *ctx)
{
    bool ok =
        visit_all(&m->params, prefix, visit, ctx) && visit_all(&m->buffers, prefix, visit, ctx);

    for (int i = 0; i < m->n_children && ok; i++) {
        char *below = NULL;

        ok = asprintf(&below, "%s%s.", prefix, m->children[i].name) >= 0;
        if (ok) {
            ok = walk(m->children[i].module, below, visit, ctx);
            free(below);
        }
    }
    return ok;
}

bool tti_module_walk(const tutti_module *m, tti_module_visit visit, void *ctx)
{
    return walk(m, "", visit, ctx);
}

/* A tied tensor keeps its first name. */
static bool listing_add(listing *l, const char *name, tutti_tensor *t)
{
    char *copy;

    for (int i = 0; i < l->n; i++)
        if (l->tensors[i] == t)
            return true;
    copy = listing_grow(l) ? strdup(name) : NULL;
    if (copy == NULL)
        return false;
    l->tensors[l->n] = t;
    l->names[l->n++] = copy;
    return true;
}

static bool add_to_either(void *ctx, const char *name, tutti_tensor *t, tti_entry_kind kind)
{
    return listing_add((listing *)ctx + (kind != TTI_PARAMETER), name, t);
}

/* The list of m, of today: its parameters, or its buffers. NULL and kept when out of memory. */
static const listing *current(tutti_module *m, bool buffers)
{
    const uint64_t revision = subtree_revision(m);

    if (m->list[0].revision != revision) {
        listing_clear(&m->list[0]);
        listing_clear(&m->list[1]);
        if (!tti_module_walk(m, add_to_either, m->list)) {
            (void)tti_refuse(TUTTI_E_NOMEM, m->kind, "no memory for the list of its tensors");
            return NULL;
        }
        m->list[0].revision = revision;
    }
    return &m->list[buffers];
}

/* The same for a call: how many, and NULL with 0 after a failure. */
static const listing *listed(const char *op, tutti_module *m, bool buffers, int *n_out)
{
    const listing *l = NULL;

    if (m == NULL)
        (void)tti_refuse_null(op);
    else
        l = current(m, buffers);
    *n_out = l != NULL ? l->n : 0;
    return l;
}

tutti_tensor *const *tutti_module_parameters(tutti_module *m, int *n_out)
{
    const listing *l = listed("parameters", m, false, n_out);

    return l != NULL ? l->tensors : NULL;
}

const char *const *tutti_module_parameter_names(tutti_module *m, int *n_out)
{
    const listing *l = listed("parameter_names", m, false, n_out);

    return l != NULL ? (const char *const *)l->names : NULL;
}

tutti_tensor *const *tutti_module_buffers(tutti_module *m, int *n_out)
{
    const listing *l = listed("buffers", m, true, n_out);

    return l != NULL ? l->tensors : NULL;
}

const char *const *tutti_module_buffer_names(tutti_module *m, int *n_out)
{
    const listing *l = listed("buffer_names", m, true, n_out);

    return l != NULL ? (const char *const *)l->names : NULL;
}

/* The module that a dotted name leads to, and the last word of the name; NULL if there is none. */
static const tutti_module *owner_of(const tutti_module *m, const char *name, const char **word_out)
{
    for (const char *dot; m != NULL && (dot = strchr(name, '.')) != NULL; name = dot + 1) {
        const tutti_module *child = NULL;

        for (int i = 0; i < m->n_children && child == NULL; i++)
            if (strncmp(m->children[i].name, name, (size_t)(dot - name)) == 0 &&
                m->children[i].name[dot - name] == '\0')
                child = m->children[i].module;
        m = child;
    }
    *word_out = name;
    return m;
}

tutti_tensor *tutti_module_parameter(tutti_module *m, const char *name)
{
    const char *word = NULL;
    const tutti_module *owner = name != NULL ? owner_of(m, name, &word) : NULL;

    return owner != NULL ? tensor_named(&owner->params, word, strlen(word)) : NULL;
}

tutti_tensor *tutti_module_buffer(tutti_module *m, const char *name)
{
    const char *word = NULL;
    const tutti_module *owner = name != NULL ? owner_of(m, name, &word) : NULL;

    return owner != NULL ? tensor_named(&owner->buffers, word, strlen(word)) : NULL;
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
    for (int i = 0; i < m->params.n; i++)
        (void)tutti_tensor_set_grad(m->params.at[i].tensor, NULL);
    for (int i = 0; i < m->n_children; i++)
        tutti_module_zero_grad(m->children[i].module);
}

tutti_tensor *tutti_forward(tutti_module *m, tutti_tensor *x)
{
    if (m == NULL || x == NULL)
        return tti_poisoned(m != NULL ? m->kind : "forward");
    return m->hooks != NULL ? tti_forward_hooked(m, x, m->forward) : m->forward(m, x);
}

static tutti_tensor *forward_region(tutti_tensor *const *in, int n, void *ctx)
{
    (void)n;
    return tutti_forward(ctx, in[0]);
}

tutti_tensor *tutti_checkpoint_forward(tutti_module *m, tutti_tensor *x)
{
    if (m == NULL || x == NULL)
        return tti_poisoned(m != NULL ? m->kind : "checkpoint");
    return tutti_checkpoint(forward_region, &x, 1, m, NULL);
}
