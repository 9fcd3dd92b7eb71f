/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gradients.h - gradients against a file of PyTorch's, tensor by tensor: norm(ours - theirs) <= 1e-4 norm(theirs).
 * What the file has and nobody asked for fails, too. */
#ifndef GOLDEN_GRADIENTS_H
#define GOLDEN_GRADIENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <tutti/autograd.h>
#include <tutti/nn.h>
#include <tutti/state.h>

#define GRADIENTS_BOUND 1e-4

typedef struct gradients {
    tutti_state_dict *want; /* those not compared yet */
    double worst;           /* norm(ours - theirs) / norm(theirs) */
    char worst_name[64];
} gradients;

static inline void gradients_open(gradients *g, const char *path)
{
    *g = (gradients){ 0 };
    if (tutti_safetensors_load(path, &g->want) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

/* How far apart two tensors of doubles are, in lengths of the second. */
static inline double gradients_distance(tutti_tensor *ours, tutti_tensor *theirs)
{
    const double *a = tutti_tensor_data(ours), *b = tutti_tensor_data(theirs);
    double apart = 0.0, length = 0.0;

    assert_non_null(a);
    assert_non_null(b);
    for (int64_t i = 0; i < tutti_tensor_numel(theirs); i++) {
        apart += (a[i] - b[i]) * (a[i] - b[i]);
        length += b[i] * b[i];
    }
    assert_true(length > 0.0);
    return sqrt(apart / length);
}

/* The gradient of a parameter of that name; who asks, for the words of a failure. */
static inline void gradients_compare(gradients *g, const char *who, const char *name, const tutti_tensor *param)
{
    tutti_tensor *ours = tutti_tensor_grad(param), *theirs = tutti_state_dict_get(g->want, name);
    double off;

    if (ours == NULL || theirs == NULL)
        fail_msg("%s: no gradient of %s %s", who, name, ours == NULL ? "here" : "in the file");
    assert_int_equal(tutti_tensor_dim(ours), tutti_tensor_dim(theirs));
    for (int d = 0; d < tutti_tensor_dim(theirs); d++)
        assert_int_equal(tutti_tensor_size(ours, d), tutti_tensor_size(theirs, d));
    tutti_scope_begin();
    off = gradients_distance(tutti_tensor_contiguous(tutti_tensor_to(ours, TUTTI_F64)),
                             tutti_tensor_contiguous(tutti_tensor_to(theirs, TUTTI_F64)));
    tutti_scope_end();
    if (!(off <= GRADIENTS_BOUND))
        fail_msg("%s: the gradient of %s is %.2e of its length away from PyTorch's", who, name, off);
    if (off >= g->worst) {
        g->worst = off;
        snprintf(g->worst_name, sizeof g->worst_name, "%s", name);
    }
    assert_true(tutti_state_dict_remove(g->want, name));
}

/* Nothing is left; tell: say which was the worst. */
static inline void gradients_close(gradients *g, const char *who, bool tell)
{
    if (tutti_state_dict_length(g->want) != 0)
        fail_msg("%s: no gradient of %s was compared", who, tutti_state_dict_name(g->want, 0));
    tutti_state_dict_free(g->want);
    if (tell)
        print_message("%s: gradients are within %.1e of PyTorch's, norm-wise: %s\n", who, g->worst, g->worst_name);
}

/* All of a module's, under its parameters' names. */
static inline void gradients_check_module(tutti_module *m, const char *path, const char *who, bool tell)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(m, &n);
    const char *const *names = tutti_module_parameter_names(m, &n);
    gradients g;

    gradients_open(&g, path);
    for (int i = 0; i < n; i++)
        gradients_compare(&g, who, names[i], params[i]);
    gradients_close(&g, who, tell);
}

#endif
