/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checkpoint.c - a part of a graph that keeps its inputs only, and computes the rest again for backward.
 *
 * How     While the region runs, what its operations would save is counted and dropped: a node gets a
 *         number in place of a tensor (tti_save, record.c). When backward comes to the first such node, the
 *         region runs once more on the same inputs, cut off from the graph, with the generator as it
 *         stood; what is saved now is kept in a list under the same numbers, and each node takes its own.
 * True    The region saves the same things in the same order both times, or backward fails and says so.
 *         What was not dropped but belongs to someone else (a parameter, an input) must not have changed.
 * Nested  An inner region has a list of its own. Its inputs stay in memory as long as the outer graph
 *         does: nothing but what the outer region itself computes is dropped twice.
 * Shared  The region that runs on a thread is a thread-local variable; a list belongs to the graph, and is
 *         used by one thread at a time, as the graph is. */
#include "autograd/autograd.h"

#include <string.h>
#include <tutti/private.h>

/* What is known of something that was dropped. */
typedef struct dropped {
    tutti_dtype dtype;
    int nd;
    int64_t shape[TUTTI_MAX_DIMS];
    const tti_storage *st; /* whose memory it was, only compared */
    unsigned version;
} dropped;

struct tti_region {
    atomic_int refs; /* the call itself, and nodes with numbers */
    tutti_region_fn fn;
    void *ctx;
    void (*free_fn)(void *ctx);
    int n_in;
    tutti_tensor **in; /* counted */
    unsigned *in_version;
    void *generator; /* state of the thread's default one, when the region began */
    dropped *list;
    int n, cap;
    tutti_tensor **again; /* n of them, counted: what was computed again; NULL: not yet, or taken */
    int n_again;
    bool mismatch;
};

/* What tti_save does with what it is given. */
static _Thread_local struct {
    tti_region *dropping; /* the innermost region that runs for the first time */
    tti_region *filling;  /* or the one that runs again */
} mode;

void tti_region_release(tti_region *r)
{
    if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < r->n_in; i++)
        tutti_tensor_release(r->in[i]);
    for (int i = 0; r->again != NULL && i < r->n; i++)
        tutti_tensor_release(r->again[i]);
    if (r->free_fn != NULL)
        r->free_fn(r->ctx);
    tti_mem_free(r->in, (size_t)r->n_in * sizeof *r->in);
    tti_mem_free(r->in_version, (size_t)r->n_in * sizeof *r->in_version);
    tti_mem_free(r->generator, tutti_generator_state_bytes());
    tti_mem_free(r->list, (size_t)r->cap * sizeof *r->list);
    tti_mem_free(r->again, (size_t)r->n * sizeof *r->again);
    tti_mem_free(r, sizeof *r);
}

static tti_region *region_make(tutti_region_fn fn, tutti_tensor *const *in, int n, void *ctx)
{
    tti_region *r = tti_mem_zalloc(sizeof *r);
    bool ok = r != NULL;

    if (ok) {
        atomic_init(&r->refs, 1);
        r->fn = fn;
        r->ctx = ctx;
        r->n_in = n;
        r->in = tti_mem_zalloc((size_t)n * sizeof *r->in);
        r->in_version = tti_mem_zalloc((size_t)n * sizeof *r->in_version);
        r->generator = tti_mem_alloc(tutti_generator_state_bytes());
        ok = r->in != NULL && r->in_version != NULL && r->generator != NULL;
    }
    if (!ok) {
        if (r != NULL)
            r->n_in = r->in != NULL ? n : 0;
        tti_region_release(r);
        (void)tti_refuse(TUTTI_E_NOMEM, "checkpoint", "no memory to describe it");
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        r->in[i] = tutti_tensor_retain(in[i]);
        r->in_version[i] = tti_version_of(in[i]);
    }
    tutti_generator_get_state(NULL, r->generator);
    return r;
}

/* ---- the first time --------------------------------------------------------------------------- */

/* A number for t; -1 and kept when out of memory. */
static int number_for(tti_region *r, const tutti_tensor *t)
{
    dropped *d;

    if (r->n == r->cap) {
        const int cap = r->cap == 0 ? 32 : 2 * r->cap;
        dropped *list =
            tti_mem_grow(r->list, (size_t)r->cap * sizeof *list, (size_t)cap * sizeof *list);

        if (list == NULL) {
            (void)tti_refuse(TUTTI_E_NOMEM, "checkpoint", "no memory for a list of %d", cap);
            return -1;
        }
        r->list = list;
        r->cap = cap;
    }
    d = &r->list[r->n];
    *d = (dropped){ .dtype = t->dtype, .nd = t->nd, .st = t->st, .version = tti_version_of(t) };
    memcpy(d->shape, t->shape, sizeof d->shape);
    return r->n++;
}

static void keep_again(tti_region *r, tutti_tensor *t)
{
    const int k = r->n_again++;
    const dropped *d = &r->list[k];
    bool fits = k < r->n;

    fits = fits && d->dtype == t->dtype && d->nd == t->nd &&
           memcmp(d->shape, t->shape, (size_t)t->nd * sizeof d->shape[0]) == 0;
    if (!fits) {
        r->mismatch = true;
        return;
    }
    tutti_tensor_release(r->again[k]); /* of a run before */
    r->again[k] = tutti_tensor_retain(t);
}

bool tti_region_takes(tti_saved_tensor *slot, tutti_tensor *t)
{
    if (mode.filling != NULL) {
        keep_again(mode.filling, t);
        return true;
    }
    if (mode.dropping == NULL)
        return false;
    slot->number = number_for(mode.dropping, t);
    if (slot->number >= 0) {
        slot->region = mode.dropping;
        atomic_fetch_add_explicit(&mode.dropping->refs, 1, memory_order_relaxed);
    }
    return true;
}

/* ---- again ------------------------------------------------------------------------------------ */

/* Inside of a scope: the inputs, cut off; those that wanted gradients want them still. */
static tutti_status cut_off(const tti_region *r, tutti_tensor **in)
{
    for (int i = 0; i < r->n_in; i++) {
        if (tti_version_of(r->in[i]) != r->in_version[i])
            return tti_fail(TUTTI_E_STATE, "checkpoint: input %d was changed in place since", i);
        in[i] = tti_temp(tti_raw_detach(r->in[i]));
        if (in[i] != NULL && tutti_tensor_requires_grad(r->in[i]))
            in[i] = tutti_tensor_requires_grad_(in[i], true);
        if (in[i] == NULL)
            return tti_kept();
    }
    return TUTTI_OK;
}

/* The region on the same inputs, with the generator of then; it stands as it stands now afterwards. */
static tutti_status run_again(tti_region *r, tutti_tensor **in, void *now)
{
    const bool was = tutti_set_grad_enabled(true);
    tti_region *dropping = mode.dropping, *filling = mode.filling;
    tutti_status st;

    tutti_generator_get_state(NULL, now);
    st = tutti_generator_set_state(NULL, r->generator, tutti_generator_state_bytes());
    r->n_again = 0;
    r->mismatch = false;
    mode.dropping = NULL;
    mode.filling = r;
    if (st == TUTTI_OK && r->fn(in, r->n_in, r->ctx) == NULL)
        st = tti_kept();
    mode.dropping = dropping;
    mode.filling = filling;
    (void)tutti_generator_set_state(NULL, now, tutti_generator_state_bytes());
    tutti_set_grad_enabled(was);
    if (st == TUTTI_OK && (r->mismatch || r->n_again != r->n))
        st = tti_fail(TUTTI_E_STATE,
                      "checkpoint: computed again, the region saves other tensors: %d, %d before"
                      "\n  next: let it depend on its inputs and the default generator only",
                      r->n_again, r->n);
    return st;
}

static tutti_status fill(tti_region *r)
{
    tutti_tensor **in = tti_mem_zalloc((size_t)r->n_in * sizeof *in);
    void *now = tti_mem_alloc(tutti_generator_state_bytes());
    tutti_status st = TUTTI_OK;

    if (r->again == NULL)
        r->again = tti_mem_zalloc((size_t)r->n * sizeof *r->again);
    if (in == NULL || now == NULL || r->again == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "checkpoint: no memory to compute again");
    tutti_scope_begin();
    if (st == TUTTI_OK)
        st = cut_off(r, in);
    if (st == TUTTI_OK)
        st = run_again(r, in, now);
    tutti_scope_end();
    tti_mem_free(in, (size_t)r->n_in * sizeof *in);
    tti_mem_free(now, tutti_generator_state_bytes());
    return st;
}

tutti_status tti_region_restore(tti_saved_tensor *slot)
{
    tti_region *r = slot->region;
    const dropped *d = &r->list[slot->number];
    tutti_status st = TUTTI_OK;

    if (r->again == NULL || r->again[slot->number] == NULL)
        st = fill(r);
    if (st != TUTTI_OK)
        return st;
    slot->tensor = r->again[slot->number]; /* ours now */
    slot->version = tti_version_of(slot->tensor);
    r->again[slot->number] = NULL;
    slot->region = NULL;
    if (slot->tensor->st == d->st && slot->version != d->version)
        st = tti_fail(TUTTI_E_STATE,
                      "checkpoint: a tensor of shape %s that the region uses was changed in place: "
                      "version %u, %u when it ran",
                      tti_shape_str(d->nd, d->shape).s, slot->version, d->version);
    tti_region_release(r);
    return st;
}

/* ---- public ----------------------------------------------------------------------------------- */

tutti_tensor *tutti_checkpoint(tutti_region_fn fn, tutti_tensor *const *in, int n, void *ctx,
                               void (*free_fn)(void *ctx))
{
    tti_region *r, *outer = mode.dropping, *filling = mode.filling;
    tutti_tensor *y = NULL;

    for (int i = 0; i < n && fn != NULL; i++)
        if (in[i] == NULL)
            fn = NULL;
    if (fn == NULL)
        (void)tti_refuse_null("checkpoint");
    r = fn != NULL ? region_make(fn, in, n, ctx) : NULL;
    if (r == NULL) {
        if (free_fn != NULL)
            free_fn(ctx);
        return NULL;
    }
    r->free_fn = free_fn;
    mode.dropping = tutti_is_grad_enabled() ? r : NULL;
    mode.filling = NULL;
    tutti_scope_begin();
    y = tutti_tensor_retain(fn(in, n, ctx));
    tutti_scope_end();
    mode.dropping = outer;
    mode.filling = filling;
    tti_region_release(r);
    return tti_temp(y);
}
