/* SPDX-License-Identifier: BSD-3-Clause
 *
 * autograd.h - what rooms above need to write an operation with a gradient.
 *
 *     tutti_tensor *y = the arithmetic, owned by us, or NULL;
 *     tti_node *node = tti_record(&y, &my_class, n, inputs);
 *     if (node != NULL) {              recording, and an input requires gradients
 *         tti_save(node, 0, input);    what apply will need
 *         node->number[0] = ...;
 *     }
 *     return tti_temp(y);
 *
 * and in my_class.apply: for each input i with tti_wants(node, i), write an owned gradient, of the
 * input's shape or one that it broadcasts to, to grad_out[i]; leave NULL for "zero". apply runs
 * inside a scope of its own with recording off; a failure is a poisoned expression. */
#ifndef TTI_TRAIN_AUTOGRAD_AUTOGRAD_H
#define TTI_TRAIN_AUTOGRAD_AUTOGRAD_H

#include <tutti/autograd.h>
#include "tensor/tensor.h"

enum { TTI_SAVED = 6, TTI_NUMBERS = 12 };

typedef struct tti_node tti_node;

typedef struct tti_node_class {
    const char *name; /* of the operation, for error texts */
    /* grad is the gradient of the operation's result: never NULL, of its shape and type, borrowed.
     * grad_out has one entry per input, all NULL at first. */
    void (*apply)(tti_node *node, tutti_tensor *grad, tutti_tensor **grad_out);
    void (*release)(tti_node *node); /* the node goes; NULL: nothing to do */
} tti_node_class;

/* Where the gradient of an input goes: to the node that made the input, or to a leaf. */
typedef struct tti_edge {
    tti_node *node; /* counted; NULL: the input wants none */
    /* Of the input, to fit the gradient to it. */
    tutti_dtype dtype;
    int nd;
    int64_t shape[TUTTI_MAX_DIMS];
} tti_edge;

/* A region of a checkpoint (checkpoint.c). */
typedef struct tti_region tti_region;

typedef struct tti_saved_tensor {
    tutti_tensor *tensor; /* counted; NULL: freed, dropped, or never saved */
    unsigned version;     /* of tensor, when it was saved */
    int number;           /* in region */
    tti_region *region;   /* counted; that dropped it; NULL: none did */
} tti_saved_tensor;

/* Functions that want to know of a gradient (hooks.c). */
typedef enum tti_hook_kind {
    TTI_HOOK_TENSOR,     /* before the gradient goes on; may replace it */
    TTI_HOOK_ACCUMULATE, /* after a leaf has collected a gradient */
    TTI_HOOK_STEP,       /* after those: the leaf follows its gradient */
    TTI_HOOK_PASSED      /* after a backward is done with a leaf, gradient or not */
} tti_hook_kind;

typedef struct tti_hook {
    tti_hook_kind kind;
    union {
        tutti_tensor_hook tensor;
        tutti_grad_hook leaf;
    } fn;
    void *ctx;
    int handle;
} tti_hook;

typedef struct tti_hooks {
    tti_hook *list;
    int n, last_handle;
} tti_hooks;

struct tti_node {
    const tti_node_class *cls;
    atomic_int refs;
    bool freed;   /* what it saved is gone */
    uint64_t seq; /* larger is later; leaves have UINT64_MAX */
    tti_saved_tensor saved[TTI_SAVED];
    int64_t number[TTI_NUMBERS]; /* parameters of the operation, as its class likes */
    double real[2];
    tutti_tensor *leaf;               /* of an accumulator: counted; otherwise NULL */
    tti_hooks hooks;                  /* of the tensor that it computed */
    struct tti_grad_info *keeps_grad; /* of that tensor, if it keeps its gradient; not counted */
    tti_node *free_next;              /* while being freed */
    int n_edges;
    tti_edge edge[];
};

/* What hangs on a tensor that has to do with gradients. */
typedef struct tti_grad_info {
    tti_hanger hanger; /* first: the tensor room drops us through it */
    bool requires_grad;
    tti_node *grad_fn;     /* counted; NULL: a leaf */
    struct tti_leaf *leaf; /* what only leaves have: gradient, accumulator, hooks */
} tti_grad_info;

/* ---- record.c */
/* Make the node of an operation that computed *y from the inputs (NULL inputs are skipped), and hang
 * it on *y. NULL if nothing is to be recorded. Out of memory: *y is released and becomes NULL. */
tti_node *tti_record(tutti_tensor **y, const tti_node_class *cls, int n,
                     tutti_tensor *const *inputs);
/* Keep an input, or with tti_save_result() the result, for apply. */
void tti_save(tti_node *node, int slot, tutti_tensor *t);
void tti_save_result(tti_node *node, int slot, tutti_tensor *y);
/* What was saved, borrowed. */
static inline tutti_tensor *tti_saved(const tti_node *node, int slot)
{
    return node->saved[slot].tensor;
}
static inline bool tti_wants(const tti_node *node, int input)
{
    return input < node->n_edges && node->edge[input].node != NULL;
}
tti_node *tti_node_make(const tti_node_class *cls, int n_edges);
tti_node *tti_node_retain(tti_node *node);
void tti_node_release(tti_node *node);
void tti_node_free_saved(tti_node *node);

/* ---- half.c: operations that know f32 and f64 only, of tensors of 16 bits:
 *
 *     if (tti_has_half(x)) {
 *         tutti_scope_begin();
 *         return tti_rounded(operation(tti_widened(x)), x->dtype);    which ends the scope
 *     }
 */
static inline bool tti_has_half(const tutti_tensor *x)
{
    return x != NULL && tti_is_half(x->dtype);
}
/* x, recorded, in f32 if it has 16 bits; else x itself. */
tutti_tensor *tti_widened(tutti_tensor *x);
/* y, recorded, in dtype; ends the scope that y was made in. */
tutti_tensor *tti_rounded(tutti_tensor *y, tutti_dtype dtype);

/* ---- checkpoint.c */
/* Whether a region that runs takes care of t, which slot was to keep. */
bool tti_region_takes(tti_saved_tensor *slot, tutti_tensor *t);
/* Compute again what slot's region dropped. */
tutti_status tti_region_restore(tti_saved_tensor *slot);
void tti_region_release(tti_region *region);

/* ---- hooks.c */
tutti_status tti_hooks_add(tti_hooks *hooks, const tti_hook *hook, int *handle_out);
void tti_hooks_remove(tti_hooks *hooks, int handle);
void tti_hooks_free(tti_hooks *hooks);
/* The hook of a kind registered next after handle; NULL if that was the last. */
const tti_hook *tti_hooks_after(const tti_hooks *hooks, tti_hook_kind kind, int handle);
/* What a hook has returned: a failure without words, said being what tti_words_said() was before it ran, gets some. */
tutti_status tti_hook_said(tutti_status st, uint32_t said);
/* Run the hooks of kind TENSOR; *grad, a reference of ours, becomes what they make of it. */
tutti_status tti_hooks_replace(const tti_hooks *hooks, tutti_tensor **grad);

/* ---- leaf.c */
/* The autograd part of t; make: create it if there is none (NULL and kept when out of memory). */
tti_grad_info *tti_info(const tutti_tensor *t);
tti_grad_info *tti_info_make(tutti_tensor *t);
/* The node that takes the gradient of t: its grad_fn, or the accumulator of a leaf. A new
 * reference; NULL if t requires none, or out of memory, which is kept. */
tti_node *tti_gradient_node(tutti_tensor *t);
/* A backward has come to the leaf with grad, one reference of which is handed over, or with nothing:
 * run its hooks, and add grad to its gradient in between. */
tutti_status tti_accumulate(tutti_tensor *leaf, tutti_tensor *grad);
/* Keep grad, borrowed, as the gradient of a tensor that is no leaf. */
tutti_status tti_keep_grad(tti_grad_info *info, tutti_tensor *grad);
/* Hooks of leaves, of any kind: to be removed by tutti_tensor_remove_hook(). */
tutti_status tti_leaf_add_hook(tutti_tensor *t, tti_hook_kind kind, tutti_grad_hook fn, void *ctx,
                               int *handle_out);
/* Whether t has a hook of a kind that is fn; NULL: any. */
bool tti_leaf_has_hook(const tutti_tensor *t, tti_hook_kind kind, tutti_grad_hook fn);
/* The accumulator of t if a graph has one now, not counted; else NULL. */
const tti_node *tti_accumulator_of(const tutti_tensor *t);
/* The accumulator is about to be freed: forget it. */
void tti_leaf_forget(tutti_tensor *leaf, tti_node *accumulator);

/* ---- ends.c */
/* so_far: what the backward came to. What is returned counts if that was TUTTI_OK. */
typedef tutti_status (*tti_backward_end_fn)(tutti_status so_far, void *ctx);
/* From inside a hook, or an apply: have fn called once when the outermost backward of this thread is over, also
 * after a failure. TUTTI_E_STATE if none is running. */
tutti_status tti_backward_at_end(tti_backward_end_fn fn, void *ctx);
/* Whether a backward is running on this thread. */
bool tti_backward_is_running(void);
/* Around every backward. */
void tti_backward_begins(void);
tutti_status tti_backward_ends(tutti_status st);
/* A backward to come. */
typedef struct tti_awaiting {
    tti_backward_end_fn fn;
    void (*then)(void *ctx);
    void *ctx;
    uint64_t thread;
    struct tti_awaiting *next;
} tti_awaiting;
/* Have fn called if a backward of this thread fails before it begins, as its roots could not be computed, and then,
 * when all who await it have heard, `then`; in which nobody may await another one. w stays where it is until that, or
 * until it is awaited no more, by any thread; both may be said again. */
void tti_backward_await(tti_awaiting *w, tti_backward_end_fn fn, void (*then)(void *ctx), void *ctx);
void tti_backward_unawait(tti_awaiting *w);
/* A backward could not begin: tell those who await one, the latest first. Returns st, with its words. */
tutti_status tti_backward_missed(tutti_status st);

#endif
