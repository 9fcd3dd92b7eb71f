/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buckets.c - the memory of buckets, and where parameters lie in it.
 *
 * How     A bucket is one piece of memory: its parameters one after the other, without gaps, and one element behind them
 *         (account.c). It is registered where there is registered memory left, so that a reduction inside a host is one
 *         pass, and ordinary else; ranks need not agree on that. */
#include "parallel/parallel.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/memory.h>
#include <tutti/private.h>

/* ---- layout ---- */

/* The buckets to begin with, in the order of reduction, or those in a known order of gradients. */
tutti_status tti_layout_for(const tutti_reducer *r, const int *order, tti_layout *layout_out)
{
    tti_sized     *items = calloc((size_t)r->n, sizeof *items);
    const int64_t *limits;
    int64_t        room[2];
    tti_layout     layout = { 0 };
    tutti_status   st;
    int            n_limits, i;

    if (items == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to sort %d parameters", r->n);
    for (i = 0; i < r->n; i++)
        items[i] = (tti_sized){ .dtype = r->slots[i].dtype, .bytes = (int64_t)r->slots[i].bytes };
    n_limits = order == NULL ? tti_initial_limits(&r->caps, room, &limits) : tti_rebuilt_limits(&r->caps, room, &limits);
    st = tti_assign_buckets(items, r->n, limits, n_limits, order, &layout);
    free(items);
    if (st == TUTTI_OK && order == NULL)
        st = tti_layout_reverse(&layout); /* backward begins at the end */
    if (st == TUTTI_OK)
        *layout_out = layout;
    else
        tti_layout_release(&layout);
    return st;
}

/* ---- memory ---- */

static tutti_status take(tti_reducer_bucket *b)
{
    const size_t bytes = ((size_t)b->count + 1) * tutti_dtype_size(b->dtype);
    void        *data = NULL;

    b->registered = tutti_alloc(bytes, &data) == TUTTI_OK;
    b->data = b->registered ? data : calloc(1, bytes);
    return b->data != NULL ? TUTTI_OK
                           : tti_fail(TUTTI_E_NOMEM, "no memory for a bucket of gradients of %zu bytes", bytes);
}

static tutti_status make(const tutti_reducer *r, const tti_layout *layout, int b, tti_reducer_bucket *bucket)
{
    int k;

    bucket->params = layout->params + layout->first[b];
    bucket->n = layout->first[b + 1] - layout->first[b];
    bucket->dtype = r->slots[bucket->params[0]].dtype;
    bucket->offsets = calloc((size_t)bucket->n, sizeof *bucket->offsets);
    bucket->counts = calloc((size_t)bucket->n, sizeof *bucket->counts);
    if (bucket->offsets == NULL || bucket->counts == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a bucket of %d parameters", bucket->n);
    for (k = 0; k < bucket->n; k++) {
        bucket->offsets[k] = bucket->count;
        bucket->counts[k] = r->slots[bucket->params[k]].numel;
        bucket->count += bucket->counts[k];
    }
    return take(bucket);
}

tutti_status tti_buckets_create(const tutti_reducer *r, const tti_layout *layout, tti_reducer_bucket **buckets_out)
{
    tti_reducer_bucket *buckets = calloc((size_t)layout->n_buckets, sizeof *buckets);
    tutti_status        st = TUTTI_OK;
    int                 b;

    if (buckets == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d buckets", layout->n_buckets);
    for (b = 0; b < layout->n_buckets && st == TUTTI_OK; b++)
        st = make(r, layout, b, &buckets[b]);
    if (st == TUTTI_OK)
        *buckets_out = buckets;
    else
        tti_buckets_free(buckets, layout->n_buckets);
    return st;
}

void tti_buckets_free(tti_reducer_bucket *buckets, int n)
{
    int b;

    for (b = 0; buckets != NULL && b < n; b++) {
        free(buckets[b].offsets);
        free(buckets[b].counts);
        if (buckets[b].registered)
            tutti_free(buckets[b].data);
        else
            free(buckets[b].data);
    }
    free(buckets);
}

/* Gradients that live in the old buckets move with their contents, also those that are only looked at there. */
static void move(tutti_reducer *r, int i, const tti_reducer_bucket *to, int k)
{
    tti_reducer_slot *s = &r->slots[i];
    char             *place = to->data + (size_t)to->offsets[k] * tutti_dtype_size(s->dtype);

    if (r->buckets == NULL || s->grad != tti_place(r, i))
        return;
    memcpy(place, s->grad, s->bytes);
    s->grad = place;
}

/* The new buckets in the place of the old ones. Both are there meanwhile. */
void tti_buckets_adopt(tutti_reducer *r, tti_layout *layout, tti_reducer_bucket *buckets)
{
    tti_layout          old_layout = r->layout;
    tti_reducer_bucket *old = r->buckets;
    int                 b, k;

    for (b = 0; b < layout->n_buckets; b++)
        for (k = 0; k < buckets[b].n; k++)
            move(r, buckets[b].params[k], &buckets[b], k);
    for (b = 0; b < layout->n_buckets; b++)
        for (k = 0; k < buckets[b].n; k++) {
            r->slots[buckets[b].params[k]].bucket = b;
            r->slots[buckets[b].params[k]].offset = buckets[b].offsets[k];
        }
    r->layout = *layout;
    r->buckets = buckets;
    *layout = (tti_layout){ 0 };
    tti_buckets_free(old, old_layout.n_buckets);
    tti_layout_release(&old_layout);
}

/* ---- looking at them ---- */

tutti_grad_bucket tti_bucket_for_hook(const tutti_reducer *r, int b)
{
    const tti_reducer_bucket *bucket = &r->buckets[b];

    return (tutti_grad_bucket){
        .size = sizeof(tutti_grad_bucket), .index = b,
        .is_last = b == r->layout.n_buckets - 1, .n_params = bucket->n,
        .params = bucket->params, .offsets = bucket->offsets, .counts = bucket->counts,
        .buffer = tutti_span_of(bucket->data, bucket->count, bucket->dtype), .group = r->group,
    };
}

int tutti_reducer_bucket_count(const tutti_reducer *reducer)
{
    return reducer != NULL ? reducer->layout.n_buckets : 0;
}

tutti_grad_bucket tutti_reducer_bucket(const tutti_reducer *reducer, int index)
{
    if (reducer == NULL || index < 0 || index >= reducer->layout.n_buckets)
        return (tutti_grad_bucket){ .size = sizeof(tutti_grad_bucket), .index = index };
    return tti_bucket_for_hook(reducer, index);
}

tutti_span tutti_reducer_bucket_view(const tutti_reducer *reducer, int index)
{
    if (reducer == NULL || index < 0 || index >= reducer->n)
        return tutti_span_of(NULL, 0, TUTTI_F32);
    return tutti_span_of(tti_place(reducer, index), reducer->slots[index].numel, reducer->slots[index].dtype);
}
