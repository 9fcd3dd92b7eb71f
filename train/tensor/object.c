/* SPDX-License-Identifier: BSD-3-Clause
 *
 * object.c - the tensor object: reference counts, creation, what can be asked of it.
 *
 * How     tensor -> storage (the bytes), tensor -> version (how often they were changed in place).
 *         A view is a new tensor over the same two. The hanger is autograd's; it is dropped before
 *         the memory, so that a graph never sees a half-dead tensor.
 * True    numel is the product of shape. Elements lie within the storage. A storage with data NULL
 *         belongs to a tensor without elements. A memory that something is still filling is settled
 *         on the way to its elements (tti_at), and before it is freed: no access can come too early. */
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

static bool offered(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_BOOL:
    case TUTTI_U8:
    case TUTTI_I32:
    case TUTTI_I64:
    case TUTTI_F16:
    case TUTTI_BF16:
    case TUTTI_F32:
    case TUTTI_F64: return true;
    default: return false;
    }
}

tutti_status tti_shape_check(const char *op, int nd, const int64_t *shape, int64_t *numel_out)
{
    int64_t numel = 1; /* of the sizes that are not 0: strides are products of them */
    bool empty = false;

    if (nd < 0 || nd > TUTTI_MAX_DIMS)
        return tti_refuse(TUTTI_E_ARG, op, "%d dimensions, 0 to %d are possible", nd,
                          TUTTI_MAX_DIMS);
    if (nd > 0 && shape == NULL)
        return tti_refuse(TUTTI_E_ARG, op, "the shape is NULL");
    for (int d = 0; d < nd; d++) {
        if (shape[d] < 0)
            return tti_refuse(TUTTI_E_ARG, op, "size %lld of dimension %d is negative",
                              (long long)shape[d], d);
        empty = empty || shape[d] == 0;
    }
    for (int d = 0; d < nd; d++)
        if (__builtin_mul_overflow(numel, shape[d] > 0 ? shape[d] : 1, &numel) ||
            numel > INT64_MAX / 16)
            return tti_refuse(TUTTI_E_ARG, op, "the sizes of shape %s are too large together",
                              tti_shape_str(nd, shape).s);
    *numel_out = empty ? 0 : numel;
    return TUTTI_OK;
}

void tti_contiguous_strides(int nd, const int64_t *shape, int64_t *stride_out)
{
    int64_t step = 1;

    for (int d = nd - 1; d >= 0; d--) {
        stride_out[d] = step;
        step *= shape[d] > 1 ? shape[d] : 1;
    }
}

tti_shape_text tti_shape_str(int nd, const int64_t *shape)
{
    tti_shape_text text;
    size_t at = 0;

    text.s[at++] = '[';
    for (int d = 0; d < nd; d++)
        at += (size_t)snprintf(text.s + at, sizeof text.s - at, d == 0 ? "%lld" : ", %lld",
                               (long long)shape[d]);
    text.s[at++] = ']';
    text.s[at] = '\0';
    return text;
}

static void storage_release(tti_storage *st)
{
    bool free_it;

    if (atomic_fetch_sub_explicit(&st->refs, 1, memory_order_acq_rel) != 1)
        return;
    /* Memory that is still written to is better lost than in other hands. */
    free_it = st->pending == NULL || st->pending->drop(st->pending);
    if (!st->external && free_it)
        tti_mem_free(st->data, st->bytes);
    else if (st->free_fn != NULL && free_it)
        st->free_fn(st->data, st->free_ctx);
    tti_mem_free(st, sizeof *st);
}

static void version_release(tti_version *ver)
{
    if (atomic_fetch_sub_explicit(&ver->refs, 1, memory_order_acq_rel) == 1)
        tti_mem_free(ver, sizeof *ver);
}

static void destroy(tutti_tensor *t)
{
    if (t->hanger != NULL)
        t->hanger->drop(t->hanger);
    storage_release(t->st);
    version_release(t->ver);
    tti_mem_free(t, sizeof *t);
}

/* A tensor over st, which it takes over on success. ver NULL: a new counter. */
static tutti_tensor *object_make(tti_storage *st, tti_version *ver, tutti_dtype dtype, int nd,
                                 const int64_t *shape, int64_t numel)
{
    tutti_tensor *t = tti_mem_zalloc(sizeof *t);

    if (t != NULL && ver == NULL) {
        ver = tti_mem_zalloc(sizeof *ver);
        if (ver != NULL)
            atomic_init(&ver->refs, 1);
    }
    if (t == NULL || ver == NULL) {
        tti_mem_free(t, sizeof *t);
        return tti_poison(TUTTI_E_NOMEM, "tensor", "no memory for its description");
    }
    atomic_init(&t->refs, 1);
    t->dtype = dtype;
    t->nd = nd;
    t->numel = numel;
    t->st = st;
    t->ver = ver;
    if (nd > 0)
        memcpy(t->shape, shape, (size_t)nd * sizeof *shape);
    tti_contiguous_strides(nd, shape, t->stride);
    return t;
}

static tti_storage *storage_make(void)
{
    tti_storage *st = tti_mem_zalloc(sizeof *st);

    if (st == NULL)
        (void)tti_refuse(TUTTI_E_NOMEM, "tensor", "no memory for its description");
    else
        atomic_init(&st->refs, 1);
    return st;
}

static tutti_status type_check(const char *op, tutti_dtype dtype)
{
    if (offered(dtype))
        return TUTTI_OK;
    return tti_refuse(TUTTI_E_UNSUPPORTED, op, "elements of type '%s' are not offered",
                      tutti_dtype_name(dtype));
}

tutti_tensor *tti_raw_empty(tutti_dtype dtype, int nd, const int64_t *shape)
{
    tutti_tensor *t = NULL;
    tti_storage *st = NULL;
    int64_t numel;

    if (type_check("tensor", dtype) != TUTTI_OK ||
        tti_shape_check("tensor", nd, shape, &numel) != TUTTI_OK)
        return NULL;
    st = storage_make();
    if (st == NULL)
        return NULL;
    st->bytes = (size_t)numel * tutti_dtype_size(dtype);
    st->data = tti_mem_alloc(st->bytes);
    if (st->data == NULL)
        (void)tti_refuse(TUTTI_E_NOMEM, "tensor", "no memory for shape %s of %s, %zu bytes",
                         tti_shape_str(nd, shape).s, tutti_dtype_name(dtype), st->bytes);
    else
        t = object_make(st, NULL, dtype, nd, shape, numel);
    if (t == NULL)
        storage_release(st);
    return t;
}

tutti_tensor *tti_raw_zeros(tutti_dtype dtype, int nd, const int64_t *shape)
{
    tutti_tensor *t = tti_raw_empty(dtype, nd, shape);

    if (t != NULL)
        memset(t->st->data, 0, t->st->bytes);
    return t;
}

tutti_tensor *tti_raw_full(tutti_dtype dtype, int nd, const int64_t *shape, double value)
{
    tutti_tensor *t = tti_raw_empty(dtype, nd, shape);

    if (t != NULL)
        (void)tti_raw_fill_(t, value);
    return t;
}

tutti_tensor *tti_raw_external(const char *op, void *data, tutti_dtype dtype, int nd,
                               const int64_t *shape, const int64_t *stride)
{
    tutti_tensor *t;
    tti_storage *st;
    int64_t numel;

    if (type_check(op, dtype) != TUTTI_OK || tti_shape_check(op, nd, shape, &numel) != TUTTI_OK)
        return NULL;
    if (data == NULL && numel > 0)
        return tti_poison(TUTTI_E_ARG, op, "data is NULL for %lld elements", (long long)numel);
    if ((uintptr_t)data % tutti_dtype_size(dtype) != 0)
        return tti_poison(TUTTI_E_ARG, op, "%p is not aligned for %s", data,
                          tutti_dtype_name(dtype));
    st = storage_make();
    if (st == NULL)
        return NULL;
    st->external = true;
    st->data = data;
    st->bytes = (size_t)numel * tutti_dtype_size(dtype);
    t = object_make(st, NULL, dtype, nd, shape, numel);
    if (t == NULL)
        storage_release(st);
    else if (stride != NULL && nd > 0)
        memcpy(t->stride, stride, (size_t)nd * sizeof *stride);
    return t;
}

bool tti_keep_copy(tutti_tensor *t)
{
    tti_storage *st = t->st;
    void *copy;

    if (!st->external)
        return true;
    copy = tti_mem_alloc(st->bytes);
    if (copy == NULL)
        return false;
    if (st->bytes > 0)
        memcpy(copy, st->data, st->bytes);
    st->data = copy;
    st->external = false;
    st->free_fn = NULL;
    return true;
}

void tti_repoint(tutti_tensor *t, const tutti_tensor *by, int64_t offset)
{
    tti_storage *old = t->st;

    atomic_fetch_add_explicit(&by->st->refs, 1, memory_order_relaxed);
    t->st = by->st;
    t->offset = offset;
    tti_contiguous_strides(t->nd, t->shape, t->stride);
    storage_release(old);
}

tutti_tensor *tti_lend(tutti_tensor *t, void (*free_fn)(void *data, void *ctx), void *ctx)
{
    t = tti_temp(t);
    if (t != NULL) {
        t->st->free_fn = free_fn;
        t->st->free_ctx = ctx;
    }
    return t;
}

tutti_tensor *tti_raw_alias(const tutti_tensor *x, int nd, const int64_t *shape,
                            const int64_t *stride, int64_t offset)
{
    tutti_tensor *t;
    int64_t numel = 1;

    for (int d = 0; d < nd; d++)
        numel *= shape[d];
    t = object_make(x->st, x->ver, x->dtype, nd, shape, numel);
    if (t == NULL)
        return NULL;
    atomic_fetch_add_explicit(&x->st->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&x->ver->refs, 1, memory_order_relaxed);
    if (nd > 0)
        memcpy(t->stride, stride, (size_t)nd * sizeof *stride);
    t->offset = offset;
    return t;
}

void tti_await(tutti_tensor *t, tti_pending *pending)
{
    t->st->pending = pending;
    atomic_store_explicit(&t->st->unsettled, true, memory_order_release);
}

/* Several threads may come at once: pending sorts them. What it wrote is seen by whoever reads
 * unsettled as false. */
tutti_status tti_settle(tti_storage *st)
{
    const tutti_status status = st->pending->settle(st->pending);

    if (status == TUTTI_OK)
        atomic_store_explicit(&st->unsettled, false, memory_order_release);
    return status;
}

unsigned tti_version_of(const tutti_tensor *t)
{
    return atomic_load_explicit(&t->ver->count, memory_order_relaxed);
}

void tti_version_bump(tutti_tensor *t)
{
    atomic_fetch_add_explicit(&t->ver->count, 1, memory_order_relaxed);
}

void tti_swap_elements(tutti_tensor *a, tutti_tensor *b)
{
    const tutti_tensor old = *a;

    a->dtype = b->dtype;
    a->offset = b->offset;
    memcpy(a->stride, b->stride, sizeof a->stride);
    a->st = b->st;
    b->dtype = old.dtype;
    b->offset = old.offset;
    memcpy(b->stride, old.stride, sizeof b->stride);
    b->st = old.st;
}

bool tti_is_sole(const tutti_tensor *t)
{
    return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&t->st->refs, memory_order_acquire) == 1 && !t->st->external;
}

bool tti_same_shape(const tutti_tensor *a, const tutti_tensor *b)
{
    return a->nd == b->nd &&
           (a->nd == 0 || memcmp(a->shape, b->shape, (size_t)a->nd * sizeof a->shape[0]) == 0);
}

bool tti_same_layout(const tutti_tensor *a, const tutti_tensor *b)
{
    if (!tti_same_shape(a, b))
        return false;
    for (int d = 0; d < a->nd; d++)
        if (a->shape[d] > 1 && a->stride[d] != b->stride[d])
            return false;
    return true;
}

bool tti_repeats_elements(const tutti_tensor *t)
{
    for (int d = 0; d < t->nd; d++)
        if (t->shape[d] > 1 && t->stride[d] == 0)
            return true;
    return false;
}

/* ---- public -----------------------------------------------------------------------------------
 */

tutti_tensor *tutti_tensor_retain(tutti_tensor *t)
{
    if (t != NULL)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void tutti_tensor_release(tutti_tensor *t)
{
    if (t != NULL && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
        destroy(t);
}

tutti_tensor *tutti_tensor_empty(tutti_dtype dtype, int nd, const int64_t *shape)
{
    return tti_temp(tti_raw_empty(dtype, nd, shape));
}

tutti_tensor *tutti_tensor_zeros(tutti_dtype dtype, int nd, const int64_t *shape)
{
    return tti_temp(tti_raw_zeros(dtype, nd, shape));
}

tutti_tensor *tutti_tensor_ones(tutti_dtype dtype, int nd, const int64_t *shape)
{
    return tti_temp(tti_raw_full(dtype, nd, shape, 1.0));
}

tutti_tensor *tutti_tensor_full(tutti_dtype dtype, int nd, const int64_t *shape, double value)
{
    return tti_temp(tti_raw_full(dtype, nd, shape, value));
}

tutti_tensor *tutti_tensor_scalar(tutti_dtype dtype, double value)
{
    return tti_temp(tti_raw_full(dtype, 0, NULL, value));
}

tutti_tensor *tutti_tensor_from_data(const void *data, tutti_dtype dtype, int nd,
                                     const int64_t *shape)
{
    tutti_tensor *t = tti_raw_empty(dtype, nd, shape);

    if (t != NULL && t->numel > 0) {
        if (data == NULL) {
            tutti_tensor_release(t);
            return tti_poison(TUTTI_E_ARG, "from_data", "data is NULL for %lld elements",
                              (long long)t->numel);
        }
        memcpy(t->st->data, data, t->st->bytes);
    }
    return tti_temp(t);
}

tutti_tensor *tutti_tensor_from_ptr(void *data, tutti_dtype dtype, int nd, const int64_t *shape,
                                    void (*free_fn)(void *data, void *ctx), void *ctx)
{
    return tti_lend(tti_raw_external("from_ptr", data, dtype, nd, shape, NULL), free_fn, ctx);
}

tutti_dtype tutti_tensor_dtype(const tutti_tensor *t)
{
    return t != NULL ? t->dtype : TUTTI_DTYPE_COUNT;
}

int tutti_tensor_dim(const tutti_tensor *t)
{
    return t != NULL ? t->nd : -1;
}

int64_t tutti_tensor_size(const tutti_tensor *t, int d)
{
    if (t == NULL || d < -t->nd || d >= t->nd)
        return -1;
    return t->shape[d < 0 ? d + t->nd : d];
}

int64_t tutti_tensor_stride(const tutti_tensor *t, int d)
{
    if (t == NULL || d < -t->nd || d >= t->nd)
        return -1;
    return t->stride[d < 0 ? d + t->nd : d];
}

int64_t tutti_tensor_numel(const tutti_tensor *t)
{
    return t != NULL ? t->numel : -1;
}

bool tutti_tensor_is_contiguous(const tutti_tensor *t)
{
    int64_t step = 1;

    if (t == NULL)
        return false;
    for (int d = t->nd - 1; d >= 0 && t->numel > 1; d--) {
        if (t->shape[d] != 1 && t->stride[d] != step)
            return false;
        step *= t->shape[d];
    }
    return true;
}

void *tutti_tensor_data(const tutti_tensor *t)
{
    return t != NULL && tti_ready(t) == TUTTI_OK ? tti_at(t) : NULL;
}

tutti_span tutti_tensor_span(const tutti_tensor *t)
{
    const bool ready = t != NULL && tti_ready(t) == TUTTI_OK;

    if (ready && tutti_tensor_is_contiguous(t))
        return tutti_span_of(tti_at(t), t->numel, t->dtype);
    if (t == NULL)
        (void)tti_refuse_null("span");
    else if (ready)
        (void)tti_refuse(TUTTI_E_ARG, "span",
                         "the tensor of shape %s is not contiguous"
                         "\n  next: pass tutti_tensor_contiguous() of it",
                         tti_shape_str(t->nd, t->shape).s);
    return tutti_span_of(NULL, -1, TUTTI_U8);
}
