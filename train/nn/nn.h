/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nn.h - what the files of this room share. */
#ifndef TTI_TRAIN_NN_NN_H
#define TTI_TRAIN_NN_NN_H

#include <tutti/nn.h>
#include "autograd/autograd.h"

/* The caller's options, or the defaults; false and kept under op if size was not set. */
bool tti_conv2d_options_get(const char *op, const tutti_conv2d_options *opts,
                            tutti_conv2d_options *full_out);

/* Hooks of a module (module_hooks.c); those of m, NULL while it has none. */
typedef struct tti_module_hooks tti_module_hooks;
tti_module_hooks **tti_module_hooks_of(tutti_module *m);
const char *tti_module_kind(const tutti_module *m);
void tti_module_hooks_free(tti_module_hooks *hooks);
/* forward between the hooks of m. */
tutti_tensor *tti_forward_hooked(tutti_module *m, tutti_tensor *x, tutti_forward_fn forward);

/* What losses over classes share (loss_options.c). The caller's options, or the defaults, with
 * ignore_index filled in; false and kept under op if they are no options. */
bool tti_loss_options_get(const char *op, const tutti_loss_options *opts,
                          tutti_loss_options *full_out);
/* Scores x, targets t and class weights w (may be NULL) fit to one another. */
tutti_status tti_loss_check(const char *op, const tutti_tensor *x, const tutti_tensor *t,
                            const tutti_tensor *w);
/* Every target, i64 and contiguous, is a class or ignored. */
tutti_status tti_targets_check(const char *op, const tutti_tensor *t, int64_t classes,
                               int64_t ignored);
static inline int tti_class_dim(const tutti_tensor *x)
{
    return x->nd == 1 ? 0 : 1;
}

/* 1 where attention keeps a probability that dropout p might drop, else 0: for n of them from number
 * `first` on, which counts batch, query and key. */
void tti_attention_keep(uint64_t seed, uint64_t first, int64_t n, double p, uint8_t *keep_out);

/* How often a window fits: floor((n + 2 pad - dil (k - 1) - 1) / stride) + 1, or 0. */
static inline int64_t tti_windows(int64_t n, int64_t k, int64_t stride, int64_t pad, int64_t dil)
{
    const int64_t room = n + 2 * pad - dil * (k - 1) - 1;

    return room < 0 ? 0 : room / stride + 1;
}

/* ---- module.c: a module with a copy of what it is, of so many bytes, for context; freed with it. */
tutti_module *tti_module_of(const char *kind, tutti_forward_fn forward, const void *what,
                            size_t bytes);

/* Everything with a name, in order: for each module its parameters, its buffers, its children.
 * Tensors that stand in several places come with each of their names. */
typedef enum tti_entry_kind {
    TTI_PARAMETER,
    TTI_PERSISTENT_BUFFER,
    TTI_PASSING_BUFFER /* is not part of the state */
} tti_entry_kind;
typedef bool (*tti_module_visit)(void *ctx, const char *name, tutti_tensor *t, tti_entry_kind kind);
/* False: visit returned false, or there was no memory for a name. */
bool tti_module_walk(const tutti_module *m, tti_module_visit visit, void *ctx);
/* tutti_module_add() that leaves child as it was, and its owner's, if it fails. */
tutti_status tti_module_put_in(tutti_module *m, const char *name, tutti_module *child);
/* Whose child m is; NULL: nobody's. */
tutti_module *tti_module_parent(const tutti_module *m);
/* Have child, if it has a parent, be nobody's again, and be freed by nobody but its owner. */
void tti_module_take_out(tutti_module *child);

#endif
