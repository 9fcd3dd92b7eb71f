/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zero_nets.h - parameters and gradients for tests of divided optimizers: by formulas, the same on all ranks. */
#ifndef ZERO_NETS_H
#define ZERO_NETS_H

#include "ddp_nets.h"

enum { SET = 7 };

/* Parameters of 10, 7, 7, 3, 2, 2 and 1 elements. */
typedef struct set {
    tutti_tensor *p[SET];
} set;

static const int64_t set_numel[SET] = { 10, 7, 7, 3, 2, 2, 1 };

static inline double formula(int64_t a, int64_t b, int64_t c)
{
    const uint32_t x = (uint32_t)(a * 7919 + b * 104729 + c * 1299709 + 17) * 2654435761u;

    return (double)(x >> 8) / (1 << 24) - 0.5;
}

/* Elements by the formula, rounded to the type. Owned by the scope. */
static inline tutti_tensor *set_elements(tutti_dtype dtype, int i, int step)
{
    tutti_tensor *t = tutti_tensor_zeros(TUTTI_F64, 1, &set_numel[i]);

    for (int64_t k = 0; k < set_numel[i]; k++)
        ((double *)tutti_tensor_data(t))[k] = formula(i, k, step);
    return tutti_tensor_to(t, dtype);
}

static inline void set_make(set *s, tutti_dtype dtype)
{
    tutti_scope_begin();
    for (int i = 0; i < SET; i++) {
        s->p[i] = tutti_tensor_retain(set_elements(dtype, i, -1));
        (void)tutti_tensor_requires_grad_(s->p[i], true);
    }
    tutti_scope_end();
    OK(tutti_tensor_check());
}

static inline void set_free(set *s)
{
    for (int i = 0; i < SET; i++)
        tutti_tensor_release(s->p[i]);
    OK(tutti_tensor_check());
}

/* Gradients of a step; each parameter has none now and then. */
static inline void set_gradients(set *s, int step)
{
    tutti_scope_begin();
    for (int i = 0; i < SET; i++)
        OK(tutti_tensor_set_grad(s->p[i], (step + i) % 5 == 3 ? NULL : set_elements(tutti_tensor_dtype(s->p[i]), i, step)));
    tutti_scope_end();
}

static inline bool same_bits(const tutti_tensor *a, const tutti_tensor *b)
{
    const size_t bytes = (size_t)tutti_tensor_numel(a) * tutti_dtype_size(tutti_tensor_dtype(a));

    return tutti_tensor_numel(a) == tutti_tensor_numel(b) && tutti_tensor_dtype(a) == tutti_tensor_dtype(b) &&
           (bytes == 0 || memcmp(tutti_tensor_data((tutti_tensor *)a), tutti_tensor_data((tutti_tensor *)b), bytes) == 0);
}

static inline void expect_same_set(const set *a, const set *b, int step)
{
    for (int i = 0; i < SET; i++)
        if (!same_bits(a->p[i], b->p[i]))
            fail_msg("step %d: parameter %d has other bits", step, i);
}

static inline void expect_same_state(const tutti_state_dict *a, const tutti_state_dict *b)
{
    assert_int_equal(tutti_state_dict_length(a), tutti_state_dict_length(b));
    for (int64_t i = 0; i < tutti_state_dict_length(a); i++) {
        assert_string_equal(tutti_state_dict_name(a, i), tutti_state_dict_name(b, i));
        if (!same_bits(tutti_state_dict_tensor(a, i), tutti_state_dict_tensor(b, i)))
            fail_msg("'%s' has other bits", tutti_state_dict_name(a, i));
    }
}

static inline tutti_optim *zero_of(tt_ctx *t, const char *name, tutti_tensor *const *params, int n,
                                   const tutti_optim_option *options, int n_options, bool views)
{
    tutti_zero_options opts = TUTTI_ZERO_OPTIONS;
    tutti_optim *zero = NULL;

    opts.group = t->group;
    opts.parameters_as_bucket_view = views;
    OK(tutti_zero_create(name, params, n, options, n_options, &opts, &zero));
    return zero;
}

/* ---- a small network --------------------------------------------------------------------------- */

enum { WIDE = 12, ROWS = 8 };

static inline tutti_module *make_net(void)
{
    tutti_module *net = tutti_sequential();

    tutti_manual_seed(7);
    tutti_module_add(net, "a", tutti_linear(5, WIDE, true));
    tutti_module_add(net, "b", tutti_gelu(true));
    tutti_module_add(net, "c", tutti_linear(WIDE, 3, true));
    OK(tutti_tensor_check());
    return net;
}

/* A backward of a step: inputs are this rank's. The gradients before are dropped if o is not NULL. */
static inline tutti_status net_backward(tt_ctx *t, tutti_ddp *ddp, tutti_optim *o, int step)
{
    tutti_tensor *x, *loss;
    tutti_status st;

    tutti_scope_begin();
    x = tutti_tensor_empty(TUTTI_F32, 2, SHAPE(ROWS, 5));
    for (int64_t k = 0; k < ROWS * 5; k++)
        ((float *)tutti_tensor_data(x))[k] = (float)formula(t->rank, k, step);
    loss = tutti_ddp_forward(ddp, x);
    loss = tutti_tensor_mean(tutti_tensor_mul(loss, loss), NULL, 0, false);
    if (o != NULL)
        tutti_optim_zero_grad(o);
    st = tutti_tensor_backward(loss);
    tutti_scope_end();
    return st;
}

/* ---- a hook --------------------------------------------------------------------------------------- */

/* A hook whose result lies elsewhere, in another type. */
static inline tutti_status elsewhere(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    const int64_t n = bucket->buffer.count;
    tutti_spans *spans = calloc(1, sizeof *spans + sizeof(tutti_span) + (size_t)n * sizeof(double));
    double *result;
    tutti_status st;

    (void)state;
    st = tutti_all_reduce(bucket->buffer, TUTTI_AVG, bucket->group);
    spans->at = (tutti_span *)(void *)(spans + 1);
    spans->n = 1;
    result = (double *)(void *)(spans->at + 1);
    for (int64_t i = 0; i < n; i++)
        result[i] = ((const float *)bucket->buffer.data)[i] * 0.5;
    spans->at[0] = TUTTI_SPAN(result, n);
    if (st == TUTTI_OK)
        st = tutti_future_create(future_out);
    return st == TUTTI_OK ? tutti_future_set_result(*future_out, spans, free) : st;
}

static const tutti_comm_hook elsewhere_hook = { .api = TUTTI_COMM_HOOK_API, .size = sizeof(tutti_comm_hook),
                                                .name = "elsewhere", .run = elsewhere };

#endif
