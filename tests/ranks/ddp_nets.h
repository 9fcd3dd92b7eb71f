/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_nets.h - small modules for tests of ddps: four numbers whose gradients can be told in advance, and a network. */
#ifndef DDP_NETS_H
#define DDP_NETS_H

#include "harness/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/train.h>
#include <tutti/tutti.h>

#define OK(call)                                           \
    do {                                                   \
        if ((call) != TUTTI_OK)                            \
            fail_msg("%s: %s", #call, tutti_last_error()); \
    } while (0)
/* A call that has to fail, in words with this one among them. */
#define REFUSED(call, st, word)                                                                 \
    do {                                                                                        \
        const tutti_status got_ = (call);                                                       \
        if (got_ != (st) || strstr(tutti_last_error(), (word)) == NULL)                         \
            fail_msg("%s: %s instead of %s with '%s': %s", #call, tutti_status_name(got_),       \
                     tutti_status_name(st), (word), tutti_last_error());                        \
    } while (0)
#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { NUMBERS = 4 };

/* A module of four parameters "a" to "d", of one element each, that computes nothing by itself. */
typedef struct numbers {
    tt_ctx *t;
    tutti_module *m;
    tutti_tensor *p[NUMBERS];
    tutti_ddp *ddp;
} numbers;

static inline void numbers_make(numbers *n, tt_ctx *t)
{
    static const char *const names[NUMBERS] = { "a", "b", "c", "d" };

    *n = (numbers){ .t = t, .m = tutti_module_create("numbers", NULL, NULL, NULL) };
    tutti_scope_begin();
    for (int i = 0; i < NUMBERS; i++) {
        n->p[i] = tutti_tensor_full(TUTTI_F32, 1, SHAPE(1), (double)(100 * t->rank + i + 1));
        OK(tutti_module_register_parameter(n->m, names[i], n->p[i]));
    }
    tutti_scope_end();
    OK(tutti_tensor_check());
}

static inline void numbers_wrap(numbers *n, tt_ctx *t, const tutti_ddp_options *opts)
{
    tutti_ddp_options o = TUTTI_DDP_OPTIONS;

    numbers_make(n, t);
    if (opts != NULL)
        o = *opts;
    o.group = t->group;
    OK(tutti_ddp_create(n->m, &o, &n->ddp));
}

static inline void numbers_free(numbers *n)
{
    tutti_ddp_free(n->ddp);
    tutti_module_free(n->m);
    OK(tutti_tensor_check());
}

static inline double value_of(const tutti_tensor *t)
{
    double value = NAN;

    OK(tutti_tensor_item(t, &value));
    return value;
}

/* The gradient of number i; NAN: it has none. */
static inline double grad_of(const numbers *n, int i)
{
    const tutti_tensor *grad = tutti_tensor_grad(n->p[i]);

    return grad != NULL ? value_of(grad) : NAN;
}

static inline void expect_grad(const numbers *n, int i, double want)
{
    const double got = grad_of(n, i);

    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-6 * (1.0 + fabs(want))))
        fail_msg("rank %d: the gradient of '%c' is %g, not %g", n->t->rank, 'a' + i, got, want);
}

/* The sum over k of factors[k] times number k; a factor of 0 leaves the number out. */
static inline tutti_tensor *weighted(const numbers *n, const double factors[NUMBERS])
{
    tutti_tensor *y = NULL, *term;

    for (int i = 0; i < NUMBERS; i++) {
        if (factors[i] == 0.0)
            continue;
        term = tutti_tensor_mul_scalar(n->p[i], factors[i]);
        y = y == NULL ? term : tutti_tensor_add(y, term);
    }
    return y;
}

/* The forward of a step. Inside a scope. */
static inline tutti_tensor *ahead(numbers *n, const double factors[NUMBERS])
{
    tutti_tensor *y;

    OK(tutti_ddp_before_forward(n->ddp));
    y = weighted(n, factors);
    OK(tutti_ddp_after_forward(n->ddp, &y, 1));
    return y;
}

/* A step: gradients of this rank are the factors, added to what is there. */
static inline tutti_status numbers_step(numbers *n, const double factors[NUMBERS])
{
    tutti_status st;

    tutti_scope_begin();
    st = tutti_tensor_backward(ahead(n, factors));
    tutti_scope_end();
    return st;
}

/* The victim goes on when all ranks have come here: none of them is in an earlier operation with it any more. */
static inline void await_all(tt_ctx *t, int victim)
{
    tt_post(t, 0);
    if (t->rank == victim)
        tt_await(t, 0, (uint32_t)t->size);
}

static inline tutti_status die_with_company(tutti_tensor *leaf, void *ctx)
{
    tt_ctx *t = ctx;

    (void)leaf;
    tt_await(t, 0, (uint32_t)t->size);
    tt_die();
}

/* A step in whose backward the victim dies, at the gradient of number 1, when all ranks have come to theirs: none of them
 * is in an earlier operation with it any more. */
static inline tutti_status step_with_a_death(numbers *n, int victim)
{
    tutti_tensor *y;
    tutti_status st;
    int handle;

    if (n->t->rank == victim)
        OK(tutti_tensor_register_post_accumulate_grad_hook(n->p[1], die_with_company, n->t, &handle));
    tutti_scope_begin();
    y = ahead(n, (double[]){ 1, 2, 3, 4 });
    tt_post(n->t, 0);
    st = tutti_tensor_backward(y);
    tutti_scope_end();
    return st;
}

/* Elements are the same on all ranks, to the last bit. */
static inline void expect_same_bits(tt_ctx *t, const tutti_tensor *x)
{
    const size_t bytes = (size_t)tutti_tensor_numel(x) * tutti_dtype_size(tutti_tensor_dtype(x));
    uint8_t *copy = tt_alloc(t, bytes + 1);

    if (bytes > 0)
        memcpy(copy, tutti_tensor_data(x), bytes);
    OK(tutti_broadcast_in_group(TUTTI_SPAN(copy, (int64_t)bytes), 0, t->group));
    if (bytes > 0)
        assert_memory_equal(copy, tutti_tensor_data(x), bytes);
}

#endif
