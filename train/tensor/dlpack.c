/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dlpack.c - tensors from and to other libraries, without a copy.
 *
 * How     In: a tensor over the producer's memory, whose storage calls the deleter when it goes.
 *         Out: one block with the struct, its shape and strides, and a reference to the tensor,
 *         which the deleter drops.
 * True    A deleter is called once for what was taken over, and never for what was refused: it is
 *         noted in the last step that can fail. What may not be written is copied, because
 *         nothing here asks before it writes. */
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/dlpack.h>

/* ---- in --------------------------------------------------------------------------------------- */

static tutti_status check_import(const DLTensor *dl, tutti_dtype *dtype_out)
{
    tutti_device device;

    if (tutti_dtype_from_dlpack(dl->dtype, dtype_out) != TUTTI_OK ||
        tutti_device_from_dlpack(dl->device, &device) != TUTTI_OK)
        return tti_refuse(TUTTI_E_UNSUPPORTED, "from_dlpack", "%s", tutti_last_error());
    if (device.type != TUTTI_CPU)
        return tti_refuse(TUTTI_E_UNSUPPORTED, "from_dlpack",
                          "tensors lie in host memory, this one on a device"
                          "\n  next: copy it to the host first");
    for (int d = 0; d < dl->ndim && d < TUTTI_MAX_DIMS && dl->strides != NULL; d++)
        if (dl->strides[d] < 0)
            return tti_refuse(TUTTI_E_ARG, "from_dlpack",
                              "stride %lld of dimension %d is below 0"
                              "\n  next: make a contiguous copy at the producer",
                              (long long)dl->strides[d], d);
    return TUTTI_OK;
}

static bool has_elements(const DLTensor *dl)
{
    for (int d = 0; d < dl->ndim && dl->shape != NULL; d++)
        if (dl->shape[d] == 0)
            return false;
    return true;
}

/* A tensor over dl's memory, owned by the caller, for tti_lend(). */
static tutti_tensor *import_raw(const DLTensor *dl)
{
    tutti_dtype dtype;
    void *data = NULL; /* without elements a producer's address may be anything */

    if (check_import(dl, &dtype) != TUTTI_OK)
        return NULL;
    if (dl->data != NULL && has_elements(dl))
        data = (void *)((uintptr_t)dl->data + dl->byte_offset);
    return tti_raw_external("from_dlpack", data, dtype, dl->ndim, dl->shape, dl->strides);
}

static void give_back(void *data, void *ctx)
{
    DLManagedTensor *managed = ctx;

    (void)data;
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

static void give_back_versioned(void *data, void *ctx)
{
    DLManagedTensorVersioned *managed = ctx;

    (void)data;
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

tutti_tensor *tutti_tensor_from_dlpack(struct DLManagedTensor *managed)
{
    if (managed == NULL)
        return tti_poison(TUTTI_E_ARG, "from_dlpack", "the struct is NULL");
    return tti_lend(import_raw(&managed->dl_tensor), give_back, managed);
}

static tutti_tensor *import_copy(DLManagedTensorVersioned *managed)
{
    tutti_tensor *seen = import_raw(&managed->dl_tensor);
    tutti_tensor *copy;

    if (seen == NULL)
        return NULL;
    copy = tti_temp(tti_raw_clone(seen));
    tutti_tensor_release(seen);
    if (copy != NULL)
        give_back_versioned(NULL, managed);
    return copy;
}

tutti_tensor *tutti_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed)
{
    if (managed == NULL)
        return tti_poison(TUTTI_E_ARG, "from_dlpack", "the struct is NULL");
    if (managed->version.major != 1)
        return tti_poison(TUTTI_E_UNSUPPORTED, "from_dlpack",
                          "the producer speaks DLPack %u.%u, 1.x is understood"
                          "\n  next: ask it for version 1, and call the deleter of this one",
                          (unsigned)managed->version.major, (unsigned)managed->version.minor);
    if (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)
        return import_copy(managed);
    return tti_lend(import_raw(&managed->dl_tensor), give_back_versioned, managed);
}

/* ---- out -------------------------------------------------------------------------------------- */

/* What leaves, in one block: ours is manager_ctx. */
typedef struct lent {
    union {
        DLManagedTensor plain;
        DLManagedTensorVersioned versioned;
    } managed;
    tutti_tensor *t;
    int64_t shape[TUTTI_MAX_DIMS];
    int64_t strides[TUTTI_MAX_DIMS];
} lent;

static void take_back(lent *l)
{
    tutti_tensor_release(l->t);
    free(l);
}

static void delete_plain(DLManagedTensor *managed)
{
    take_back(managed->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
    take_back(managed->manager_ctx);
}

static void describe(lent *l, DLTensor *dl)
{
    tutti_tensor *t = l->t;

    memcpy(l->shape, t->shape, sizeof l->shape);
    memcpy(l->strides, t->stride, sizeof l->strides);
    *dl = (DLTensor){ .data = t->numel > 0 ? tti_at(t) : NULL,
                      .device = { .device_type = kDLCPU },
                      .ndim = t->nd,
                      .shape = l->shape,
                      .strides = l->strides };
    (void)tutti_dtype_to_dlpack(t->dtype, &dl->dtype); /* every tensor has a dtype */
}

static tutti_status lend(tutti_tensor *t, lent **lent_out)
{
    lent *l;

    if (t == NULL)
        return tti_refuse_null("to_dlpack");
    if (t->hanger != NULL)
        return tti_refuse(TUTTI_E_STATE, "to_dlpack",
                          "the tensor takes part in gradients, which others would not see"
                          "\n  next: pass tutti_tensor_detach() of it");
    if (tti_ready(t) != TUTTI_OK)
        return tti_refused();
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return tti_refuse(TUTTI_E_NOMEM, "to_dlpack", "no memory for the description");
    l->t = tutti_tensor_retain(t);
    *lent_out = l;
    return TUTTI_OK;
}

tutti_status tutti_tensor_to_dlpack(tutti_tensor *t, struct DLManagedTensor **managed_out)
{
    lent *l = NULL;
    tutti_status st = lend(t, &l);

    if (st != TUTTI_OK)
        return st;
    l->managed.plain.manager_ctx = l;
    l->managed.plain.deleter = delete_plain;
    describe(l, &l->managed.plain.dl_tensor);
    *managed_out = &l->managed.plain;
    return TUTTI_OK;
}

tutti_status tutti_tensor_to_dlpack_versioned(tutti_tensor *t,
                                              struct DLManagedTensorVersioned **managed_out)
{
    lent *l = NULL;
    tutti_status st = lend(t, &l);

    if (st != TUTTI_OK)
        return st;
    l->managed.versioned.version = (DLPackVersion){ .major = 1, .minor = 1 };
    l->managed.versioned.manager_ctx = l;
    l->managed.versioned.deleter = delete_versioned;
    describe(l, &l->managed.versioned.dl_tensor);
    *managed_out = &l->managed.versioned;
    return TUTTI_OK;
}
