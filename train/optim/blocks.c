/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks.c - one step of one parameter, a block of elements after the other.
 *
 * Why     A step is bound by memory: each array should pass once, whatever the options. Sign and decay are
 *         common to all optimizers but would double the number of loops for each.
 * How     Where the gradient needs a sign or a decay, or does not lie row by row, a block of it is made on
 *         the stack, in the first-level cache, and the loop of the optimizer reads that. Otherwise, and for
 *         parameter and states, the loop works on the tensors' own memory; a parameter of other strides is
 *         gathered and scattered.
 *         Parameters of f16 and bf16 step block by block in f32, with states that are f32 throughout, and are rounded
 *         once.
 * True    No memory is taken. States are row-major, as they were made. Blocks do not change the bits. */
#include "optim/optim.h"

#include <string.h>
#include "tensor/half.h"

enum { BLOCK = 512 };

typedef union block {
    float f32[BLOCK];
    double f64[BLOCK];
} block;

/* Where the next element in row-major order lies. */
typedef struct cursor {
    const tutti_tensor *t;
    int64_t index[TUTTI_MAX_DIMS];
    char *at;
    size_t element;
} cursor;

static const tti_loop_table *table(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return &tti_optim_loops_avx2;
#endif
    return &tti_optim_loops_plain;
}

static cursor cursor_of(const tutti_tensor *t)
{
    return (cursor){ .t = t, .at = tti_at(t), .element = tutti_dtype_size(t->dtype) };
}

static void cursor_next(cursor *c)
{
    for (int d = c->t->nd - 1; d >= 0; d--) {
        const int64_t bytes = c->t->stride[d] * (int64_t)c->element;

        c->at += bytes;
        if (++c->index[d] < c->t->shape[d])
            return;
        c->at -= bytes * c->t->shape[d];
        c->index[d] = 0;
    }
}

static void gather(cursor *c, int64_t n, void *out)
{
    for (int64_t i = 0; i < n; i++, cursor_next(c))
        memcpy((char *)out + (size_t)i * c->element, c->at, c->element);
}

static void scatter(cursor *c, int64_t n, const void *in)
{
    for (int64_t i = 0; i < n; i++, cursor_next(c))
        memcpy(c->at, (const char *)in + (size_t)i * c->element, c->element);
}

/* Elements from..from+n-1 of a row-major tensor. */
static void *part(const tutti_tensor *t, int64_t from)
{
    return (char *)tti_at(t) + (size_t)from * tutti_dtype_size(t->dtype);
}

static void widen(tutti_dtype dtype, int64_t n, const uint16_t *in, float *out)
{
    if (dtype == TUTTI_BF16)
        for (int64_t i = 0; i < n; i++)
            out[i] = tti_bf16_read(in[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = tti_f16_read(in[i]);
}

static void round_to(tutti_dtype dtype, int64_t n, const float *in, uint16_t *out)
{
    if (dtype == TUTTI_BF16)
        for (int64_t i = 0; i < n; i++)
            out[i] = tti_bf16_write(in[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = tti_f16_write(in[i]);
}

/* What the loops of a step go over. */
typedef struct pass {
    const tti_step *step;
    const tti_step_loop loop, gradient;
    tutti_tensor *param;
    const tutti_tensor *grad;
    tutti_tensor *const *state;
    int n_states;
    bool plain_param, plain_grad; /* row-major */
    cursor read_param, write_param, read_grad;
} pass;

static void run_block(pass *w, int64_t from, int64_t n)
{
    const bool as_is = w->step->sign == 1.0 && w->step->decay == 0.0;
    void *state[TTI_OPTIM_STATES] = { NULL };
    const void *g;
    block param, grad;
    void *p = &param;

    for (int k = 0; k < w->n_states; k++)
        state[k] = w->state[k] != NULL ? part(w->state[k], from) : NULL;
    if (w->plain_param)
        p = part(w->param, from);
    else
        gather(&w->read_param, n, p);
    g = w->plain_grad ? part(w->grad, from) : &grad;
    if (!w->plain_grad)
        gather(&w->read_grad, n, &grad);
    if (!as_is) {
        w->gradient(n, &grad, g, &p, (const double[]){ w->step->sign, w->step->decay });
        g = &grad;
    }
    w->loop(n, p, g, state, w->step->c);
    if (!w->plain_param)
        scatter(&w->write_param, n, p);
}

/* n elements of 16 bits, from number `from` on, in f32. */
static void read_half(cursor *c, bool plain, int64_t from, int64_t n, float *out)
{
    uint16_t raw[BLOCK];

    if (!plain)
        gather(c, n, raw);
    widen(c->t->dtype, n, plain ? part(c->t, from) : raw, out);
}

static void write_half(cursor *c, bool plain, int64_t from, int64_t n, const float *in)
{
    uint16_t raw[BLOCK];

    round_to(c->t->dtype, n, in, plain ? part(c->t, from) : raw);
    if (!plain)
        scatter(c, n, raw);
}

static void run_half_block(pass *w, int64_t from, int64_t n)
{
    void *state[TTI_OPTIM_STATES] = { NULL };
    float param[BLOCK], grad[BLOCK];
    void *p = param;

    for (int k = 0; k < w->n_states; k++)
        state[k] = w->state[k] != NULL ? part(w->state[k], from) : NULL;
    read_half(&w->read_param, w->plain_param, from, n, param);
    read_half(&w->read_grad, w->plain_grad, from, n, grad);
    if (w->step->sign != 1.0 || w->step->decay != 0.0)
        w->gradient(n, grad, grad, &p, (const double[]){ w->step->sign, w->step->decay });
    w->loop(n, param, grad, state, w->step->c);
    write_half(&w->write_param, w->plain_param, from, n, param);
}

void tti_step_run(const tti_step *step, tutti_tensor *param, const tutti_tensor *grad,
                  tutti_tensor *const *state, int n_states)
{
    const tti_loop_table *loops = table();
    const int type = param->dtype == TUTTI_F64;
    pass w = { .step = step,
               .loop = (*loops)[step->loop][type],
               .gradient = (*loops)[step->decay != 0.0 ? TTI_LOOP_GRADIENT : TTI_LOOP_SIGN][type],
               .param = param,
               .grad = grad,
               .state = state,
               .n_states = n_states,
               .plain_param = tutti_tensor_is_contiguous(param),
               .plain_grad = tutti_tensor_is_contiguous(grad),
               .read_param = cursor_of(param),
               .write_param = cursor_of(param),
               .read_grad = cursor_of(grad) };
    const bool half = tti_is_half(param->dtype);
    const bool whole = !half && w.plain_param && w.plain_grad && step->sign == 1.0 && step->decay == 0.0;
    const int64_t size = whole ? param->numel : BLOCK;

    for (int64_t from = 0; from < param->numel; from += size)
        (half ? run_half_block : run_block)(&w, from, param->numel - from < size ? param->numel - from : size);
    tti_version_bump(param);
}

static void visit_half(tutti_tensor *t, bool change, tti_block_fn fn, void *ctx)
{
    const bool plain = tutti_tensor_is_contiguous(t);
    cursor read = cursor_of(t), write = cursor_of(t);
    float b[BLOCK];

    for (int64_t from = 0; from < t->numel; from += BLOCK) {
        const int64_t n = t->numel - from < BLOCK ? t->numel - from : BLOCK;

        read_half(&read, plain, from, n, b);
        fn(ctx, n, b, TUTTI_F32);
        if (change)
            write_half(&write, plain, from, n, b);
    }
}

void tti_blocks_visit(tutti_tensor *t, bool change, tti_block_fn fn, void *ctx)
{
    cursor read = cursor_of(t), write = cursor_of(t);
    block b;

    if (tti_is_half(t->dtype)) {
        visit_half(t, change, fn, ctx);
    } else if (t->numel > 0 && tutti_tensor_is_contiguous(t)) {
        fn(ctx, t->numel, tti_at(t), t->dtype);
    } else {
        for (int64_t from = 0; from < t->numel; from += BLOCK) {
            const int64_t n = t->numel - from < BLOCK ? t->numel - from : BLOCK;

            gather(&read, n, &b);
            fn(ctx, n, &b, t->dtype);
            if (change)
                scatter(&write, n, &b);
        }
    }
    if (change)
        tti_version_bump(t);
}
