/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantize.c - gradients of 8 bits: each rank rounds with a scale of its own, all gather all, each averages.
 *
 * How     With lo and hi the extremes of what is rounded, 0 included:
 *             scale = max((hi - lo) / 255, 2^-23);  zero = clamp(-round(lo / scale), 0, 255)
 *             code  = clamp(round(x / scale) + zero, 0, 255);  x' = (code - zero) * scale
 *         Scales and codes travel in two all_gathers, issued at once, as a rank's codes need nobody else's scale. When
 *         both are there the average of all x' is made in rank order. Per channel: rows of 512 elements with a scale
 *         each, the last one shorter; torch fills it up with zeros, which changes nothing, as 0 counts as an extreme.
 * Not     The arithmetic of kernel/quantize.h: that has no zero point, and blocks as they are sent, not as torch has them.
 * True    Every rank computes the same of the same codes: the same bits. Ties are rounded to even. Where an element is
 *         not finite the scale is NaN, and so is all that was rounded with it: nothing is hidden. */
#include "parallel/hooks.h"

#include <math.h>
#include <stdlib.h>
#include <tutti/private.h>

enum { CHANNEL = 512, STEPS = 255 };

/* One bucket. */
typedef struct coded {
    int             size;                        /* ranks, in this step: the reducer may get another group between two */
    int64_t         count, rows, row;            /* elements; rows of row elements, but the last one */
    tti_hook_buffer scales, codes;               /* [rows][2], [count] of this rank */
    tti_hook_buffer all_scales, all_codes, mean; /* of all ranks; [count] f32 */
} coded;

typedef struct quantizer {
    tutti_comm_hook hook;
    bool            per_channel;
    int             n;
    coded           buckets[]; /* [n] as many as there may be buckets */
} quantizer;

/* ---- numbers ---- */

/* NaN becomes 0. */
static float clamp(float x)
{
    return x > 0.0f ? x < STEPS ? x : STEPS : 0.0f;
}

static void encode(const float *x, int64_t n, float scale_zero[2], uint8_t *codes)
{
    float   lo = 0.0f, hi = 0.0f, scale, zero;
    bool    broken = false;
    int64_t k;

    for (k = 0; k < n; k++) {
        lo = x[k] < lo ? x[k] : lo;
        hi = x[k] > hi ? x[k] : hi;
        broken |= !isfinite(x[k]);
    }
    scale = (hi - lo) / STEPS;
    scale = broken ? NAN : scale > 0x1p-23f ? scale : 0x1p-23f;
    zero = clamp(-rintf(lo / scale));
    for (k = 0; k < n; k++)
        codes[k] = (uint8_t)clamp(rintf(x[k] / scale) + zero);
    scale_zero[0] = scale;
    scale_zero[1] = zero;
}

static void encode_all(const coded *c, const float *x)
{
    float   *scales = c->scales.data;
    uint8_t *codes = c->codes.data;
    int64_t  r, n;

    for (r = 0; r < c->rows; r++) {
        n = c->count - r * c->row < c->row ? c->count - r * c->row : c->row;
        encode(x + r * c->row, n, scales + 2 * r, codes + r * c->row);
    }
}

/* The average over ranks, in their order. */
static void decode_all(const coded *c)
{
    const float   *scales = c->all_scales.data;
    const uint8_t *codes = c->all_codes.data;
    float         *mean = c->mean.data, sum;
    int64_t        k, r;
    int            q;

    for (k = 0; k < c->count; k++) {
        r = k / c->row;
        for (sum = 0.0f, q = 0; q < c->size; q++)
            sum += ((float)codes[q * c->count + k] - scales[2 * (q * c->rows + r) + 1]) * scales[2 * (q * c->rows + r)];
        mean[k] = sum / (float)c->size;
    }
}

/* ---- the hook ---- */

/* Nothing of the step before is under way any more. */
static tutti_status fit(coded *c, bool per_channel, int size, int64_t count)
{
    const size_t ranks = (size_t)size;
    tutti_status st;

    c->size = size;
    c->count = count;
    c->row = per_channel ? CHANNEL : count > 0 ? count : 1;
    c->rows = (count + c->row - 1) / c->row;
    st = tti_hook_buffer_fit(&c->scales, (size_t)c->rows * 2 * sizeof(float));
    if (st == TUTTI_OK)
        st = tti_hook_buffer_fit(&c->codes, (size_t)count);
    if (st == TUTTI_OK)
        st = tti_hook_buffer_fit(&c->all_scales, ranks * (size_t)c->rows * 2 * sizeof(float));
    if (st == TUTTI_OK)
        st = tti_hook_buffer_fit(&c->all_codes, ranks * (size_t)count);
    return st == TUTTI_OK ? tti_hook_buffer_fit(&c->mean, (size_t)count * sizeof(float)) : st;
}

static tutti_status gather(tutti_span all, tutti_span ours, tutti_group *group, tutti_future **future_out)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_gather_into_tensor_async(all, ours, group, &work);

    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    if (st != TUTTI_OK && work != NULL)
        tutti_work_wait(work);
    tutti_work_free(work);
    return st;
}

/* Both are there, or one has failed. */
static tutti_status take_all(tutti_future *future, void *ctx, void **value_out, tutti_value_free_fn *free_out)
{
    const coded   *c = ctx;
    tutti_futures *both = NULL;
    tutti_status   st = tutti_future_value(future, (void **)&both);

    if (st == TUTTI_OK)
        st = tutti_future_wait_all(both->at, both->n, 0);
    if (st != TUTTI_OK)
        return st;
    decode_all(c);
    *free_out = free;
    return tti_hook_value(tutti_span_of(c->mean.data, c->count, TUTTI_F32), value_out);
}

static tutti_status exchange(coded *c, tutti_group *group, tutti_future **future_out)
{
    tutti_future *parts[2] = { NULL, NULL }, *both = NULL;
    tutti_status  st;
    int           k;

    st = gather(tutti_span_of(c->all_scales.data, 2 * c->rows * c->size, TUTTI_F32),
                tutti_span_of(c->scales.data, 2 * c->rows, TUTTI_F32), group, &parts[0]);
    if (st == TUTTI_OK)
        st = gather(tutti_span_of(c->all_codes.data, c->count * c->size, TUTTI_U8),
                    tutti_span_of(c->codes.data, c->count, TUTTI_U8), group, &parts[1]);
    if (st == TUTTI_OK)
        st = tutti_collect_all(parts, 2, &both);
    if (st == TUTTI_OK)
        st = tutti_future_then(both, take_all, c, future_out);
    for (k = 0; k < 2 && st != TUTTI_OK; k++)
        if (parts[k] != NULL)
            tutti_future_wait(parts[k], 0); /* our buffers are in use until then */
    tutti_future_free(parts[0]);
    tutti_future_free(parts[1]);
    tutti_future_free(both);
    return st;
}

static tutti_status run(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    quantizer   *z = state;
    coded       *c = &z->buckets[bucket->index];
    const int    size = tutti_get_world_size(bucket->group);
    tutti_status st = fit(c, z->per_channel, size > 0 ? size : 1, bucket->buffer.count); /* of a group that is gone the calls tell */
    const float *x = bucket->buffer.data;

    if (st != TUTTI_OK)
        return st;
    if (bucket->buffer.dtype != TUTTI_F32) {
        tti_convert(c->mean.data, TUTTI_F32, bucket->buffer.data, bucket->buffer.dtype, c->count);
        x = c->mean.data;
    }
    encode_all(c, x);
    return exchange(c, bucket->group, future_out);
}

static void free_quantizer(void *state)
{
    quantizer *z = state;
    int        k;

    for (k = 0; k < z->n; k++) {
        tti_hook_buffer_release(&z->buckets[k].scales);
        tti_hook_buffer_release(&z->buckets[k].codes);
        tti_hook_buffer_release(&z->buckets[k].all_scales);
        tti_hook_buffer_release(&z->buckets[k].all_codes);
        tti_hook_buffer_release(&z->buckets[k].mean);
    }
    free(z);
}

tutti_status tti_quantize_hook_create(const tutti_reducer *r, bool per_channel, const tutti_comm_hook **hook_out,
                                      void **state_out)
{
    quantizer *z = calloc(1, sizeof *z + (size_t)r->n * sizeof z->buckets[0]);

    if (z == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a quantization hook");
    z->hook = (tutti_comm_hook){ .api = TUTTI_COMM_HOOK_API, .size = sizeof z->hook,
                                 .name = per_channel ? "quantization_perchannel_hook" : "quantization_pertensor_hook",
                                 .run = run, .free_state = free_quantizer };
    z->per_channel = per_channel;
    z->n = r->n;
    *hook_out = &z->hook;
    *state_out = z;
    return TUTTI_OK;
}
