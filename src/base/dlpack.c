/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dlpack.c - spans from and to DLPack's tensors; the table of element types.
 *
 * What a producer hands over is a pointer into this process, so it cannot be hostile, but it can be
 * wrong: shapes are checked for negative sizes and overflow before anything is computed with them. */
#include <stdbool.h>
#include <tutti/dlpack.h>
#include <tutti/private.h>

_Static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8, "the ABI of DLPack");
_Static_assert(offsetof(DLTensor, byte_offset) == 40 || sizeof(void *) != 8, "the ABI of DLPack");
_Static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32 || sizeof(void *) != 8,
               "the ABI of DLPack");

static const struct {
    uint8_t code;
    uint8_t align; /* of one element; bits are its size */
} types[TUTTI_DTYPE_COUNT] = {
    [TUTTI_BOOL] = { kDLBool, 1 },    [TUTTI_U8] = { kDLUInt, 1 },
    [TUTTI_I8] = { kDLInt, 1 },       [TUTTI_U16] = { kDLUInt, 2 },
    [TUTTI_I16] = { kDLInt, 2 },      [TUTTI_U32] = { kDLUInt, 4 },
    [TUTTI_I32] = { kDLInt, 4 },      [TUTTI_U64] = { kDLUInt, 8 },
    [TUTTI_I64] = { kDLInt, 8 },      [TUTTI_F16] = { kDLFloat, 2 },
    [TUTTI_BF16] = { kDLBfloat, 2 },  [TUTTI_F32] = { kDLFloat, 4 },
    [TUTTI_F64] = { kDLFloat, 8 },    [TUTTI_F8E4M3FN] = { kDLFloat8_e4m3fn, 1 },
    [TUTTI_C64] = { kDLComplex, 4 },  [TUTTI_F8E5M2] = { kDLFloat8_e5m2, 1 },
    [TUTTI_C128] = { kDLComplex, 8 },
};

tutti_status tutti_dtype_from_dlpack(DLDataType type, tutti_dtype *dtype_out)
{
    int i;

    if (dtype_out == NULL)
        return tti_fail(TUTTI_E_ARG, "dlpack: dtype_out is NULL");
    for (i = 0; i < TUTTI_DTYPE_COUNT && type.lanes == 1; i++) {
        if (types[i].code != type.code || 8 * tutti_dtype_size((tutti_dtype)i) != type.bits)
            continue;
        *dtype_out = (tutti_dtype)i;
        return TUTTI_OK;
    }
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "DLPack elements of code %d, %d bits, %d lanes have no dtype here",
                    (int)type.code, (int)type.bits, (int)type.lanes);
}

tutti_status tutti_dtype_to_dlpack(tutti_dtype dtype, DLDataType *type_out)
{
    if (type_out == NULL)
        return tti_fail(TUTTI_E_ARG, "dlpack: type_out is NULL");
    if (tutti_dtype_size(dtype) == 0)
        return tti_fail(TUTTI_E_ARG, "dlpack: %d is no dtype", (int)dtype);
    type_out->code = types[dtype].code;
    type_out->bits = (uint8_t)(8 * tutti_dtype_size(dtype));
    type_out->lanes = 1;
    return TUTTI_OK;
}

tutti_status tutti_device_from_dlpack(DLDevice device, tutti_device *device_out)
{
    if (device_out == NULL)
        return tti_fail(TUTTI_E_ARG, "dlpack: device_out is NULL");
    switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost: *device_out = (tutti_device){ .type = TUTTI_CPU }; return TUTTI_OK;
    case kDLCUDA:
        *device_out = (tutti_device){ .type = TUTTI_CUDA, .index = device.device_id };
        return TUTTI_OK;
    default:
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "DLPack memory of device type %d is not known here\n"
                        "  next: copy it to the host first",
                        (int)device.device_type);
    }
}

/* How many elements the shape has; their bytes fit into memory. */
static tutti_status count_elements(const DLTensor *tensor, size_t item, int64_t *count_out)
{
    int64_t count = 1;
    bool too_many = false;
    int d;

    if (tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == NULL))
        return tti_fail(TUTTI_E_ARG, "dlpack: a tensor of %d dimensions%s", (int)tensor->ndim,
                        tensor->ndim > 0 ? " without a shape" : "");
    for (d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] < 0)
            return tti_fail(TUTTI_E_ARG, "dlpack: size %lld of dimension %d is negative",
                            (long long)tensor->shape[d], d);
        if (tensor->shape[d] == 0)
            count = 0;
    }
    for (d = 0; d < tensor->ndim && count > 0 && !too_many; d++)
        too_many = __builtin_mul_overflow(count, tensor->shape[d], &count) ||
                   (uint64_t)count > (uint64_t)PTRDIFF_MAX / item;
    if (too_many)
        return tti_fail(TUTTI_E_ARG, "dlpack: the shape has more elements than memory");
    *count_out = count;
    return TUTTI_OK;
}

/* The dimension whose stride is not that of a row-major tensor without gaps; -1: none. */
static int find_gap(const DLTensor *tensor, int64_t *wanted_out)
{
    int64_t step = 1;
    int d;

    for (d = tensor->ndim - 1; d >= 0 && tensor->strides != NULL; d--) {
        if (tensor->shape[d] != 1 && tensor->strides[d] != step) {
            *wanted_out = step;
            return d;
        }
        step *= tensor->shape[d];
    }
    return -1;
}

static tutti_status check_layout(const DLTensor *tensor, int64_t count, tutti_span span)
{
    int64_t wanted = 0;
    int d = count > 1 ? find_gap(tensor, &wanted) : -1;

    if (d >= 0)
        return tti_fail(TUTTI_E_ARG,
                        "dlpack: the tensor is not contiguous: dimension %d has stride %lld, "
                        "row-major is %lld\n  next: make a contiguous copy at the producer",
                        d, (long long)tensor->strides[d], (long long)wanted);
    if (tensor->data == NULL && count > 0)
        return tti_fail(TUTTI_E_ARG, "dlpack: no data for %lld elements", (long long)count);
    if (count > 0 && span.device.type == TUTTI_CPU &&
        (uintptr_t)span.data % types[span.dtype].align != 0)
        return tti_fail(TUTTI_E_ARG, "dlpack: %p is not aligned for %s", span.data,
                        tutti_dtype_name(span.dtype));
    return TUTTI_OK;
}

tutti_status tutti_span_from_dlpack(const DLTensor *tensor, tutti_span *span_out)
{
    tutti_span span = { 0 };
    tutti_status st;

    if (tensor == NULL || span_out == NULL)
        return tti_fail(TUTTI_E_ARG, "dlpack: %s is NULL", tensor == NULL ? "tensor" : "span_out");
    st = tutti_dtype_from_dlpack(tensor->dtype, &span.dtype);
    if (st == TUTTI_OK)
        st = tutti_device_from_dlpack(tensor->device, &span.device);
    if (st == TUTTI_OK)
        st = count_elements(tensor, tutti_dtype_size(span.dtype), &span.count);
    if (st != TUTTI_OK)
        return st;
    if (span.count > 0) /* without elements data may be anything */
        span.data = (void *)((uintptr_t)tensor->data + tensor->byte_offset);
    st = check_layout(tensor, span.count, span);
    if (st == TUTTI_OK)
        *span_out = span;
    return st;
}

tutti_status tutti_span_to_dlpack(tutti_span *span, DLTensor *tensor_out)
{
    static const int64_t one = 1; /* the stride of every span; the ABI's pointers lack a const */
    DLTensor tensor = { .ndim = 1, .strides = (int64_t *)(uintptr_t)&one };
    tutti_status st;

    if (span == NULL || tensor_out == NULL)
        return tti_fail(TUTTI_E_ARG, "dlpack: %s is NULL", span == NULL ? "span" : "tensor_out");
    st = tutti_dtype_to_dlpack(span->dtype, &tensor.dtype);
    if (st != TUTTI_OK)
        return st;
    if (span->count < 0 || (span->data == NULL && span->count > 0))
        return tti_fail(TUTTI_E_ARG, "dlpack: a span of %lld %s at %p", (long long)span->count,
                        tutti_dtype_name(span->dtype), span->data);
    tensor.data = span->data;
    tensor.shape = &span->count;
    tensor.device.device_type = span->device.type == TUTTI_CUDA ? kDLCUDA : kDLCPU;
    tensor.device.device_id = span->device.type == TUTTI_CUDA ? span->device.index : 0;
    *tensor_out = tensor;
    return TUTTI_OK;
}
