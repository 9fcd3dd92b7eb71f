/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compress.c - the average of 16 bits as a hook, and any hook on 16 bits.
 *
 * How     Compressing rounds a bucket into a buffer of its own, kept from step to step, and averages that, or hands it
 *         to an inner hook in the place of the bucket. A sum of 16 bits is made in f32 and rounded once, so that it
 *         needs no division before. The future's value is the buffer: finish() widens it where it copies it to the
 *         gradients, one pass for both. What an inner hook gives in memory of its own is copied into the buffer first. */
#include "parallel/hooks.h"

#include <stdlib.h>
#include <tutti/private.h>

typedef struct compressor compressor;

/* One bucket of it. */
typedef struct small {
    compressor     *of;
    tti_hook_buffer buffer;
    int64_t         count;
} small;

struct compressor {
    tutti_comm_hook        hook;
    tutti_dtype            dtype;
    const tutti_comm_hook *inner; /* NULL: the average */
    void                  *inner_state;
    int                    n;
    small                  smalls[]; /* [n] as many as there may be buckets */
};

/* ---- compressing ---- */

static void free_compressor(void *state)
{
    compressor *c = state;
    int         k;

    if (c->inner != NULL && c->inner->free_state != NULL)
        c->inner->free_state(c->inner_state);
    for (k = 0; k < c->n; k++)
        tti_hook_buffer_release(&c->smalls[k].buffer);
    free(c);
}

static void tell_inner(void *state)
{
    const compressor *c = state;

    tti_comm_hook_tell_group(c->inner, c->inner_state);
}

/* The inner hook's result, in the 16 bits where finish() looks for it. */
static tutti_status take_result(tutti_future *future, void *ctx, void **value_out, tutti_value_free_fn *free_out)
{
    const small *s = ctx;
    tutti_spans *spans = NULL;
    tutti_status st = tutti_future_value(future, (void **)&spans);

    if (st == TUTTI_OK && spans != NULL && spans->n > 0) {
        if (spans->at[0].count != s->count || !tti_can_convert(s->of->dtype, spans->at[0].dtype))
            return tti_fail(TUTTI_E_ARG, "%s: the inner hook gave %lld elements of %s for %lld of %s", s->of->hook.name,
                            (long long)spans->at[0].count, tutti_dtype_name(spans->at[0].dtype), (long long)s->count,
                            tutti_dtype_name(s->of->dtype));
        tti_convert(s->buffer.data, s->of->dtype, spans->at[0].data, spans->at[0].dtype, s->count);
    }
    if (st == TUTTI_OK)
        st = tti_hook_value(tutti_span_of(s->buffer.data, s->count, s->of->dtype), value_out);
    *free_out = free;
    return st;
}

static tutti_status run_inner(small *s, tutti_grad_bucket bucket, tutti_future **future_out)
{
    tutti_future *future = NULL;
    tutti_status  st = s->of->inner->run(s->of->inner_state, &bucket, &future);

    if (st != TUTTI_OK)
        return st;
    if (future == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: the inner hook gave no future for bucket %d", s->of->hook.name, bucket.index);
    st = tutti_future_then(future, take_result, s, future_out);
    tutti_future_free(future);
    return st;
}

static tutti_status run_compress(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    compressor       *c = state;
    small            *s = &c->smalls[bucket->index];
    tutti_grad_bucket narrow = *bucket;
    tutti_status      st;

    s->of = c;
    s->count = bucket->buffer.count;
    st = tti_hook_buffer_fit(&s->buffer, (size_t)s->count * tutti_dtype_size(c->dtype));
    if (st != TUTTI_OK)
        return st;
    tti_convert(s->buffer.data, c->dtype, bucket->buffer.data, bucket->buffer.dtype, s->count);
    narrow.buffer = tutti_span_of(s->buffer.data, s->count, c->dtype);
    return c->inner != NULL ? run_inner(s, narrow, future_out)
                            : tti_hook_average(narrow.buffer, bucket->group, future_out);
}

tutti_status tti_hook_check_dtypes(const tutti_reducer *r, const char *name, tutti_dtype dtype)
{
    char text[256];
    int  i;

    for (i = 0; i < r->n; i++)
        if (!tti_can_convert(dtype, r->slots[i].dtype))
            return tti_fail(TUTTI_E_UNSUPPORTED, "%s: %s is %s, which does not fit into %s", name,
                            tti_param_text(r, i, text, sizeof text), tutti_dtype_name(r->slots[i].dtype),
                            tutti_dtype_name(dtype));
    return TUTTI_OK;
}

static tutti_status create(const tutti_reducer *r, const char *name, tutti_dtype dtype, compressor **compressor_out)
{
    tutti_status st = tti_hook_check_dtypes(r, name, dtype);
    compressor  *c;

    if (st != TUTTI_OK)
        return st;
    c = calloc(1, sizeof *c + (size_t)r->n * sizeof c->smalls[0]);
    if (c == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %s", name);
    c->hook = (tutti_comm_hook){ .api = TUTTI_COMM_HOOK_API, .size = sizeof c->hook, .name = name,
                                 .run = run_compress, .free_state = free_compressor, .group_changed = tell_inner };
    c->dtype = dtype;
    c->n = r->n;
    *compressor_out = c;
    return TUTTI_OK;
}

tutti_status tutti_reducer_register_compressed_comm_hook(tutti_reducer *reducer, tutti_dtype dtype,
                                                         const tutti_comm_hook *hook, void *state)
{
    compressor  *c = NULL;
    tutti_status st;

    if (reducer == NULL || (dtype != TUTTI_F16 && dtype != TUTTI_BF16))
        return tti_fail(TUTTI_E_ARG, "reducer_register_compressed_comm_hook: %s",
                        reducer == NULL ? "the reducer is NULL" : "the dtype is neither f16 nor bf16");
    st = tti_comm_hook_check(hook);
    if (st == TUTTI_OK)
        st = create(reducer, dtype == TUTTI_F16 ? "fp16_compress_wrapper" : "bf16_compress_wrapper", dtype, &c);
    if (st != TUTTI_OK)
        return st;
    st = tutti_reducer_register_comm_hook(reducer, &c->hook, c);
    if (st != TUTTI_OK) {
        free_compressor(c);
        return st;
    }
    c->inner = hook;
    c->inner_state = state;
    return TUTTI_OK;
}

tutti_status tti_compress_hook_create(const tutti_reducer *r, tutti_dtype dtype, const tutti_comm_hook **hook_out,
                                      void **state_out)
{
    compressor  *c = NULL;
    tutti_status st = create(r, dtype == TUTTI_F16 ? "fp16_compress_hook" : "bf16_compress_hook", dtype, &c);

    if (st != TUTTI_OK)
        return st;
    *hook_out = &c->hook;
    *state_out = c;
    return TUTTI_OK;
}
