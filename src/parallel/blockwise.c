/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blockwise.c - averages of 8 bits in blocks as a hook: tutti_all_reduce_quantized() of a bucket.
 *
 * How     A bucket is averaged where it lies, so the future of the work is that of the hook. Errors belong to places in
 *         buckets: where a bucket has other parameters, or other places for them, than in the step before (buckets are rebuilt
 *         after the first one), they begin anew.
 * True    An operation of a group in its order: buckets are begun in it, on all ranks. Errors of a bucket are read and
 *         written by its operation alone, which has ended before the bucket comes again. */
#include "parallel/hooks.h"

#include <stdlib.h>
#include "base/fnv.h"
#include "base/options.h"
#include <tutti/comm_hooks.h>
#include <tutti/compressed.h>
#include <tutti/private.h>

/* One bucket's errors. */
typedef struct remainder {
    float   *error; /* [count] */
    int64_t  count;
    uint64_t layout; /* a number that tells layouts apart */
} remainder;

struct tutti_quantized_hook {
    tutti_comm_hook hook;
    int             block;
    bool            feeds_back;
    int             n;
    remainder       buckets[]; /* [n] as many as there may be */
};

/* Of parameters and places. */
static uint64_t layout_of(const tutti_grad_bucket *bucket)
{
    const size_t n = (size_t)bucket->n_params;

    return tti_fnv(tti_fnv(TTI_FNV_BEGIN, bucket->params, n * sizeof *bucket->params), bucket->offsets,
                   n * sizeof *bucket->offsets);
}

static tutti_status fit(remainder *r, const tutti_grad_bucket *bucket)
{
    const uint64_t layout = layout_of(bucket);
    const int64_t  count = bucket->buffer.count;

    if (r->error != NULL && r->count == count && r->layout == layout)
        return TUTTI_OK;
    free(r->error);
    r->error = calloc((size_t)count + 1, sizeof *r->error);
    if (r->error == NULL)
        return tti_fail(TUTTI_E_NOMEM, "quantized_hook: no memory for the errors of %lld elements", (long long)count);
    r->count = count;
    r->layout = layout;
    return TUTTI_OK;
}

static tutti_status run(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_quantized_hook  *s = state;
    remainder             *r = &s->buckets[bucket->index];
    tutti_quantize_options opts = TUTTI_QUANTIZE_OPTIONS;
    tutti_work            *work = NULL;
    tutti_status           st = s->feeds_back ? fit(r, bucket) : TUTTI_OK;

    opts.block = s->block;
    opts.error = s->feeds_back ? r->error : NULL;
    if (st == TUTTI_OK)
        st = tutti_all_reduce_quantized_async(bucket->buffer, TUTTI_AVG, &opts, bucket->group, &work);
    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    if (st != TUTTI_OK && work != NULL)
        tutti_work_wait(work); /* the bucket is in use until then */
    tutti_work_free(work);
    return st;
}

static void free_hook(void *state)
{
    tutti_quantized_hook *s = state;
    int                   k;

    for (k = 0; k < s->n; k++)
        free(s->buckets[k].error);
    free(s);
}

static tutti_status check(const tutti_reducer *r)
{
    char text[256];
    int  i;

    for (i = 0; i < r->n; i++)
        if (r->slots[i].dtype != TUTTI_F32 && r->slots[i].dtype != TUTTI_F16 && r->slots[i].dtype != TUTTI_BF16)
            return tti_fail(TUTTI_E_UNSUPPORTED, "quantized_hook: %s is %s, which is none of f32, f16, bf16",
                            tti_param_text(r, i, text, sizeof text), tutti_dtype_name(r->slots[i].dtype));
    return TUTTI_OK;
}

static tutti_status read_options(const tutti_quantized_hook_options *opts, tutti_quantized_hook_options *known)
{
    tutti_status st = opts != NULL ? tti_options_read(known, sizeof *known, opts, "TUTTI_QUANTIZED_HOOK_OPTIONS")
                                   : TUTTI_OK;

    if (st == TUTTI_OK && known->block != 0 &&
        (known->block < 64 || known->block > 1024 || (known->block & (known->block - 1)) != 0))
        st = tti_fail(TUTTI_E_ARG, "quantized_hook: block is %d\n  next: 64, 128, 256, 512 or 1024", known->block);
    return st;
}

tutti_status tutti_quantized_hook_create(const tutti_reducer *reducer, const tutti_quantized_hook_options *opts,
                                         tutti_quantized_hook **state_out)
{
    tutti_quantized_hook_options known = TUTTI_QUANTIZED_HOOK_OPTIONS;
    tutti_quantized_hook        *s;
    tutti_status                 st;

    if (reducer == NULL || state_out == NULL)
        return tti_fail(TUTTI_E_ARG, "quantized_hook_create: the %s is NULL", reducer == NULL ? "reducer" : "output");
    st = read_options(opts, &known);
    if (st == TUTTI_OK)
        st = check(reducer);
    if (st != TUTTI_OK)
        return st;
    s = calloc(1, sizeof *s + (size_t)reducer->n * sizeof s->buckets[0]);
    if (s == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a hook of 8 bits");
    s->hook = (tutti_comm_hook){ .api = TUTTI_COMM_HOOK_API, .size = sizeof s->hook, .name = "quantized_hook",
                                 .run = run, .free_state = free_hook };
    s->block = known.block;
    s->feeds_back = known.error_feedback;
    s->n = reducer->n;
    *state_out = s;
    return TUTTI_OK;
}

const tutti_comm_hook *tutti_quantized_hook_table(const tutti_quantized_hook *state)
{
    return state != NULL ? &state->hook : NULL;
}

void tutti_quantized_hook_free(tutti_quantized_hook *state)
{
    if (state != NULL)
        free_hook(state);
}
