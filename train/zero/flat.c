/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flat.c - parameters that live side by side, so that those of a rank travel as one.
 *
 * How     One piece of registered memory has those of rank 0, then those of rank 1, and so on. Parameters are pointed
 *         into it; their tensors stay the same objects. What requires no gradients does not take part: it gets memory of
 *         its own.
 * True    Everything that can fail is done before the first parameter moves. The piece lives as long as anybody looks at
 *         it: parameters outlive the optimizer. */
#include "zero/zero.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/memory.h>
#include <tutti/private.h>

static void give_back(void *data, void *ctx)
{
    (void)ctx;
    if (tutti_free(data) != TUTTI_OK)
        tti_log(TTI_LOG_WARN, "zero: memory of parameters is lost: %s", tutti_last_error());
}

static tutti_tensor *make_flat(tutti_dtype dtype, int64_t count)
{
    tutti_tensor *flat;
    void *data = NULL;

    if (count == 0 || tutti_alloc((size_t)count * tutti_dtype_size(dtype), &data) != TUTTI_OK)
        return tti_raw_zeros(dtype, 1, &count); /* without the speed of the other */
    flat = tti_raw_external("zero", data, dtype, 1, &count, NULL);
    if (flat == NULL)
        (void)tutti_free(data);
    else
        flat->st->free_fn = give_back;
    return flat;
}

/* Copies of those that lie in the flat and are to leave it. */
static tutti_status copy_resting(const tti_zero *z, tutti_tensor **copies)
{
    for (int i = 0; i < z->o->n; i++) {
        if (!z->rests[i] || z->flat == NULL || z->o->params[i]->st != z->flat->st)
            continue;
        copies[i] = tti_raw_clone(z->o->params[i]);
        if (copies[i] == NULL)
            return tti_take_kept();
    }
    return TUTTI_OK;
}

/* A tensor over the place of parameter i, to copy into. */
static tutti_status enter(tti_zero *z, int i, tutti_tensor *flat, int64_t offset)
{
    tutti_tensor *p = z->o->params[i];
    int64_t stride[TUTTI_MAX_DIMS];
    tutti_tensor *place;
    tutti_status st;

    tti_contiguous_strides(p->nd, p->shape, stride);
    place = tti_raw_alias(flat, p->nd, p->shape, stride, offset);
    if (place == NULL)
        return tti_take_kept();
    st = tti_raw_copy_(place, p);
    tutti_tensor_release(place);
    return st == TUTTI_OK ? TUTTI_OK : tti_take_kept();
}

/* Walk over the places; move: point parameters at them, else copy into them. */
static tutti_status lay_out(tti_zero *z, tutti_tensor *flat, int64_t *counts, bool move)
{
    tutti_status st = TUTTI_OK;
    int64_t at = 0;

    for (int r = 0; r < z->size; r++) {
        counts[r] = 0;
        for (int k = 0; k < z->o->n && st == TUTTI_OK; k++) {
            const int i = z->order[k];

            if (z->owner[i] != r || z->rests[i])
                continue;
            if (move)
                tti_repoint(z->o->params[i], flat, at);
            else
                st = enter(z, i, flat, at);
            counts[r] += z->o->params[i]->numel;
            at += z->o->params[i]->numel;
        }
    }
    return st;
}

tutti_status tti_flat_build(tti_zero *z)
{
    tutti_tensor **copies = calloc((size_t)z->o->n + 1, sizeof(tutti_tensor *));
    tutti_tensor *flat = NULL;
    tutti_status st = TUTTI_OK;
    int64_t count = 0;

    if (copies == NULL)
        return tti_fail(TUTTI_E_NOMEM, "zero: no memory for %d places", z->o->n);
    for (int i = 0; i < z->o->n && st == TUTTI_OK; i++) {
        count += z->rests[i] ? 0 : z->o->params[i]->numel;
        st = tti_ready(z->o->params[i]) == TUTTI_OK ? TUTTI_OK : tti_take_kept();
    }
    if (st == TUTTI_OK)
        st = copy_resting(z, copies);
    if (st == TUTTI_OK && (flat = make_flat(z->o->params[0]->dtype, count)) == NULL)
        st = tti_take_kept();
    if (st == TUTTI_OK)
        st = lay_out(z, flat, z->counts, false);
    if (st == TUTTI_OK) {
        (void)lay_out(z, flat, z->counts, true);
        for (int i = 0; i < z->o->n; i++)
            if (copies[i] != NULL)
                tti_repoint(z->o->params[i], copies[i], 0);
        tutti_tensor_release(z->flat);
        z->flat = tutti_tensor_retain(flat);
    }
    tutti_tensor_release(flat);
    for (int i = 0; i < z->o->n; i++)
        tutti_tensor_release(copies[i]);
    free(copies);
    return st;
}

tutti_status tti_flat_follow(tti_zero *z)
{
    bool has_changed = false;
    tutti_status st;

    for (int i = 0; i < z->o->n; i++) {
        const bool rests = !tutti_tensor_requires_grad(z->o->params[i]);

        has_changed = has_changed || rests != z->rests[i];
        z->rests[i] = rests;
    }
    if (!has_changed)
        return TUTTI_OK;
    tti_log(TTI_LOG_WARN, "zero: other parameters require gradients than in the step before: they move");
    st = tti_flat_build(z);
    if (st != TUTTI_OK)
        (void)tutti_abort_process_group(z->group); /* the others have gone on */
    return st;
}
