/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compress.c - the hooks of the library: the average as a hook, rounded to 16 bits, and none at all.
 *
 * How     Compressing rounds a bucket into a buffer of its own, kept from step to step, and averages that: the sum is
 *         made in f32 and rounded once, so that it needs no division before. The future's value is the buffer: finish()
 *         widens it where it copies it to the gradients, one pass for both. */
#include "parallel/parallel.h"

#include <stdlib.h>
#include <tutti/memory.h>
#include <tutti/private.h>

typedef struct small {
    void   *data;
    bool    registered;
    int64_t count;
} small;

typedef struct builtin {
    tutti_comm_hook hook;
    tutti_dtype     dtype;  /* of what travels, when compressed */
    small          *smalls; /* [n] by bucket */
    int             n;
} builtin;

/* ---- buffers ---- */

static void drop(small *s)
{
    if (s->registered)
        tutti_free(s->data);
    else
        free(s->data);
    *s = (small){ 0 };
}

static tutti_status grow(builtin *b, int n)
{
    small *more;

    if (n <= b->n)
        return TUTTI_OK;
    more = realloc(b->smalls, (size_t)n * sizeof *more);
    if (more == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to compress %d buckets", n);
    for (b->smalls = more; b->n < n; b->n++)
        b->smalls[b->n] = (small){ 0 };
    return TUTTI_OK;
}

/* The buffer of a bucket, made anew where buckets were. */
static tutti_status buffer_for(builtin *b, int index, int64_t count, small **small_out)
{
    const size_t bytes = (size_t)(count > 0 ? count : 1) * tutti_dtype_size(b->dtype);
    tutti_status st = grow(b, index + 1);
    small       *s;

    if (st != TUTTI_OK)
        return st;
    s = &b->smalls[index];
    if (s->data == NULL || s->count != count) {
        drop(s);
        s->registered = tutti_alloc(bytes, &s->data) == TUTTI_OK;
        if (!s->registered)
            s->data = malloc(bytes);
        if (s->data == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for a compressed bucket of %zu bytes", bytes);
        s->count = count;
    }
    *small_out = s;
    return TUTTI_OK;
}

static void free_builtin(void *state)
{
    builtin *b = state;
    int      k;

    for (k = 0; k < b->n; k++)
        drop(&b->smalls[k]);
    free(b->smalls);
    free(b);
}

/* ---- hooks ---- */

static tutti_status average(tutti_span span, tutti_group *group, tutti_future **future_out)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(span, TUTTI_AVG, group, &work);

    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    tutti_work_free(work);
    return st;
}

static tutti_status run_allreduce(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    (void)state;
    return average(bucket->buffer, bucket->group, future_out);
}

static tutti_status run_compress(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    builtin     *b = state;
    small       *s = NULL;
    tutti_status st = buffer_for(b, bucket->index, bucket->buffer.count, &s);

    if (st != TUTTI_OK)
        return st;
    tti_convert(s->data, b->dtype, bucket->buffer.data, bucket->buffer.dtype, bucket->buffer.count);
    return average(tutti_span_of(s->data, bucket->buffer.count, b->dtype), bucket->group, future_out);
}

static tutti_status run_noop(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_future *future = NULL;
    tutti_status  st = tutti_future_create(&future);

    (void)state;
    (void)bucket;
    if (st == TUTTI_OK)
        st = tutti_future_set_result(future, NULL, NULL);
    if (st == TUTTI_OK)
        *future_out = future;
    return st;
}

typedef struct kind {
    const char *name;
    tutti_dtype dtype; /* TUTTI_DTYPE_COUNT: not compressed */
    tutti_status (*run)(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out);
} kind;

static const kind kinds[] = {
    [TUTTI_HOOK_ALLREDUCE] = { "allreduce_hook", TUTTI_DTYPE_COUNT, run_allreduce },
    [TUTTI_HOOK_FP16_COMPRESS] = { "fp16_compress_hook", TUTTI_F16, run_compress },
    [TUTTI_HOOK_BF16_COMPRESS] = { "bf16_compress_hook", TUTTI_BF16, run_compress },
    [TUTTI_HOOK_NOOP] = { "noop_hook", TUTTI_DTYPE_COUNT, run_noop },
};

static tutti_status check_dtypes(const tutti_reducer *r, const kind *k)
{
    char text[256];
    int  i;

    for (i = 0; i < r->n && k->dtype != TUTTI_DTYPE_COUNT; i++)
        if (!tti_can_convert(k->dtype, r->slots[i].dtype))
            return tti_fail(TUTTI_E_UNSUPPORTED, "%s: %s is %s, which does not fit into %s", k->name,
                            tti_param_text(r, i, text, sizeof text), tutti_dtype_name(r->slots[i].dtype),
                            tutti_dtype_name(k->dtype));
    return TUTTI_OK;
}

tutti_status tutti_reducer_register_builtin_comm_hook(tutti_reducer *reducer, tutti_builtin_comm_hook which)
{
    const kind  *k;
    builtin     *b;
    tutti_status st;

    if (reducer == NULL || (int)which < 0 || (size_t)which >= sizeof kinds / sizeof kinds[0])
        return tti_fail(TUTTI_E_ARG, "reducer_register_builtin_comm_hook: %s %d",
                        reducer == NULL ? "no reducer for hook" : "there is no hook", (int)which);
    k = &kinds[which];
    st = check_dtypes(reducer, k);
    if (st != TUTTI_OK)
        return st;
    b = calloc(1, sizeof *b);
    if (b == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %s", k->name);
    b->hook = (tutti_comm_hook){ .api = TUTTI_COMM_HOOK_API, .size = sizeof b->hook, .name = k->name, .run = k->run,
                                 .free_state = free_builtin };
    b->dtype = k->dtype;
    st = tutti_reducer_register_comm_hook(reducer, &b->hook, b);
    if (st != TUTTI_OK)
        free_builtin(b);
    return st;
}
