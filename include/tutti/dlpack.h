/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/dlpack.h - spans as DLPack: memory that numpy, torch, JAX, CuPy and others hand each other.
 *
 * Why     Programs with arrays of their own should need no copy to communicate them.
 * How     The DLPack ABI (version 1, and the unversioned struct before it) is declared here from its
 *         published description, under its own names. A program that has the real dlpack.h includes it
 *         first: this header then takes its declarations and adds only what an old one lacks. Included
 *         first, this header stands for the real one. tutti/tutti.h leaves it out because of its names.
 * Where   Spans here, in libtutti; tensors in tutti/tensor.h (tutti_tensor_from_dlpack, _to_dlpack). */
#ifndef TUTTI_DLPACK_H
#define TUTTI_DLPACK_H

#include <stddef.h>
#include <stdint.h>
#include <tutti/dtype.h>

#ifdef __cplusplus
extern "C" {
#define TUTTI_DLPACK_INT32 : int32_t
#else
#define TUTTI_DLPACK_INT32
#endif

#ifdef DLPACK_DLPACK_H_
#if defined(DLPACK_MAJOR_VERSION)
#if DLPACK_MAJOR_VERSION != 1
#error "tutti/dlpack.h knows major version 1 of DLPack"
#endif
#define TUTTI_DLPACK_IS_WHOLE
#elif !defined(DLPACK_VERSION) || DLPACK_VERSION < 50
#error "the dlpack.h that was included first is older than 0.5"
#endif
#else
#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

/** Kinds of memory. tutti takes the first three and kDLROCMHost. */
typedef enum TUTTI_DLPACK_INT32 {
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3, /* host memory, pinned */
    kDLOpenCL = 4,
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11, /* host memory, pinned */
    kDLExtDev = 12,
    kDLCUDAManaged = 13,
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17
} DLDeviceType;

typedef struct {
    DLDeviceType device_type;
    int32_t      device_id; /* of several of the type; 0 for host memory */
} DLDevice;

/** Families of element types; bits tells the member. */
typedef enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2, /* IEEE */
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5, /* bits of both parts together */
    kDLBool = 6,
    kDLFloat8_e3m4 = 7,
    kDLFloat8_e4m3 = 8,
    kDLFloat8_e4m3b11fnuz = 9,
    kDLFloat8_e4m3fn = 10,
    kDLFloat8_e4m3fnuz = 11,
    kDLFloat8_e5m2 = 12,
    kDLFloat8_e5m2fnuz = 13,
    kDLFloat8_e8m0fnu = 14,
    kDLFloat6_e2m3fn = 15,
    kDLFloat6_e3m2fn = 16,
    kDLFloat4_e2m1fn = 17
} DLDataTypeCode;

typedef struct {
    uint8_t  code;  /* DLDataTypeCode */
    uint8_t  bits;  /* of one lane */
    uint16_t lanes; /* more than 1: short vectors as elements */
} DLDataType;

/** Borrowed memory with a shape. The first element lies byte_offset behind data. */
typedef struct {
    void      *data;
    DLDevice   device;
    int32_t    ndim;
    DLDataType dtype;
    int64_t   *shape;
    int64_t   *strides; /* in elements; NULL (producers before 1.2): row-major without gaps */
    uint64_t   byte_offset;
} DLTensor;

/** The same with an owner: who takes it over calls deleter(self), if it is not NULL, exactly once. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void    *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#endif

#ifndef TUTTI_DLPACK_IS_WHOLE
#define DLPACK_FLAG_BITMASK_READ_ONLY              (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED              (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

/** Another major version means another layout behind version, manager_ctx and deleter. */
typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

/** What DLManagedTensor became in version 1. */
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void         *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags; /* DLPACK_FLAG_BITMASK_... */
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

/** The dtype of a DLPack element type.
 *
 * | code | bits |
 * |---|---|
 * | kDLBool | 8 |
 * | kDLInt, kDLUInt | 8 16 32 64 |
 * | kDLFloat | 16 32 64 |
 * | kDLBfloat | 16 |
 * | kDLFloat8_e4m3fn, kDLFloat8_e5m2 | 8 |
 * | kDLComplex | 64 128 |
 *
 * @errors  TUTTI_E_UNSUPPORTED  anything else, and more than one lane
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_dtype_from_dlpack(DLDataType type, tutti_dtype *dtype_out);

/** The DLPack element type of a dtype; every dtype has one.
 *
 * @errors  TUTTI_E_ARG  no dtype
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_dtype_to_dlpack(tutti_dtype dtype, DLDataType *type_out);

/** Where a tensor lies: kDLCPU, kDLCUDAHost and kDLROCMHost are TUTTI_CPU, kDLCUDA is TUTTI_CUDA.
 *
 * @errors  TUTTI_E_UNSUPPORTED  another device
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_device_from_dlpack(DLDevice device, tutti_device *device_out);

/** The elements of a tensor as a span, byte_offset included. Nothing is copied: the span is good as long
 * as the tensor's memory is, and the caller sees to that. What may not be written (a versioned tensor with
 * DLPACK_FLAG_BITMASK_READ_ONLY) may only be sent from.
 *
 * @param tensor  any number of dimensions; row-major without gaps
 *
 * @errors  TUTTI_E_ARG          NULL, a broken shape, not contiguous, or host memory that is not
 *                               aligned for the dtype
 *          TUTTI_E_UNSUPPORTED  as tutti_dtype_from_dlpack() and tutti_device_from_dlpack()
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_span_from_dlpack(const DLTensor *tensor, tutti_span *span_out);

/** A span as a tensor of one dimension. Nothing is copied: shape points to span->count, so the struct
 * *span must stay in place and unchanged as long as the tensor is used. strides is never NULL.
 *
 * @shapes  count -> [count]
 * @errors  TUTTI_E_ARG  NULL, no dtype, count below 0, or no data for count > 0
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_span_to_dlpack(tutti_span *span, DLTensor *tensor_out);

#undef TUTTI_DLPACK_INT32
#ifdef __cplusplus
}
#endif
#endif
