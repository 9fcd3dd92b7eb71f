/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/dtype.h - element types, devices, spans of memory, reduction operations.
 *
 * A span is a borrowed run of equal elements: pointer, count in elements, type, device. No call keeps one
 * longer than its doc block says. Zero elements are legal everywhere; data may then be NULL. */
#ifndef TUTTI_DTYPE_H
#define TUTTI_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. Values are part of the ABI and of the wire. */
typedef enum tutti_dtype {
    TUTTI_BOOL = 0, /* one byte, 0 or 1 */
    TUTTI_U8,
    TUTTI_I8,
    TUTTI_U16,
    TUTTI_I16,
    TUTTI_U32,
    TUTTI_I32,
    TUTTI_U64,
    TUTTI_I64,
    TUTTI_F16,    /* IEEE binary16 */
    TUTTI_BF16,   /* upper half of an f32 */
    TUTTI_F32,
    TUTTI_F64,
    TUTTI_F8E4M3FN, /* 4 exponent bits, no infinity, NaN is s.1111.111, largest 448 */
    TUTTI_F8E5M2,   /* 5 exponent bits, infinity and NaN as in IEEE, largest 57344 */
    TUTTI_C64,    /* two f32: real, imaginary */
    TUTTI_C128,   /* two f64 */
    TUTTI_DTYPE_COUNT
} tutti_dtype;

/** Bytes of one element; 0 for a value that is no dtype.
 * @threads any
 * @source torch.dtype.itemsize */
TUTTI_API size_t tutti_dtype_size(tutti_dtype dtype);

/** Short name: "f32", "i64", "bool"; "?" for a value that is no dtype. Constant, never NULL.
 * @threads any
 * @source ours */
TUTTI_API const char *tutti_dtype_name(tutti_dtype dtype);

/** Where memory lives. Zero is host memory. */
typedef enum tutti_device_type { TUTTI_CPU = 0, TUTTI_CUDA = 1 } tutti_device_type;
typedef struct tutti_device {
    tutti_device_type type;
    int               index; /* of several devices of the type; 0 for TUTTI_CPU */
} tutti_device;

/** Borrowed memory: count elements of dtype at data. */
typedef struct tutti_span {
    void        *data;
    int64_t      count; /* elements, not bytes */
    tutti_dtype  dtype;
    tutti_device device;
} tutti_span;

/** A span of host memory with the dtype given. Use it where the pointer's type does not say it
 * (f16, bf16, f8, bool kept as bytes).
 * @threads any
 * @source ours */
static inline tutti_span tutti_span_of(const void *data, int64_t count, tutti_dtype dtype)
{
    tutti_span span;

    /* A source span is only read, whatever its type says. */
#ifdef __cplusplus
    span.data = const_cast<void *>(data);
#else
    span.data = (void *)(uintptr_t)data;
#endif
    span.count = count;
    span.dtype = dtype;
    span.device.type = TUTTI_CPU;
    span.device.index = 0;
    return span;
}

/** What a reduction does to the elements of all ranks, in the order that tutti_all_reduce() tells.
 *
 * | op | dtypes | result |
 * |---|---|---|
 * | SUM, PRODUCT | all | integers wrap; bool: or, and; f16/bf16/f8 add in f32 and round once (on several hosts with several ranks on one: once in each host, and once at the end; of more than 16 along a tree: each level); complex: SUM only |
 * | AVG | f16 bf16 f8 f32 f64 c64 c128 | sum, then divided by the number of ranks |
 * | MIN, MAX | all but complex | NaN of any rank wins; bool: and, or |
 * | BAND, BOR, BXOR | bool and integers | bit by bit |
 * | PREMUL_SUM | f16 bf16 f8 f32 f64 c64 c128 | each element times its rank's factor, rounded to the dtype; then sum |
 *
 * Everything else is TUTTI_E_ARG before anything is sent. */
typedef enum tutti_op_kind {
    TUTTI_OP_SUM = 0,
    TUTTI_OP_AVG = 1,
    TUTTI_OP_PRODUCT = 2,
    TUTTI_OP_MIN = 3,
    TUTTI_OP_MAX = 4,
    TUTTI_OP_BAND = 5,
    TUTTI_OP_BOR = 6,
    TUTTI_OP_BXOR = 7,
    TUTTI_OP_PREMUL_SUM = 8,
    TUTTI_OP_COUNT
} tutti_op_kind;

typedef struct tutti_op {
    tutti_op_kind kind;
    double        factor; /* TUTTI_OP_PREMUL_SUM only */
} tutti_op;

/** Each rank's elements times factor before they are summed; factor may differ between ranks.
 * @threads any
 * @source torch.distributed._make_nccl_premul_sum */
static inline tutti_op tutti_premul_sum(double factor)
{
    tutti_op op;

    op.kind = TUTTI_OP_PREMUL_SUM;
    op.factor = factor;
    return op;
}

/** TUTTI_OK if op is defined for dtype by the table above, else TUTTI_E_ARG with the words.
 * @errors TUTTI_E_ARG  op or dtype out of range, or not defined together
 * @threads any
 * @source ours */
TUTTI_API tutti_status tutti_op_check(tutti_op op, tutti_dtype dtype);

/** "sum", "avg", ...; "?" for a value that is no operation.
 * @threads any
 * @source ours */
TUTTI_API const char *tutti_op_name(tutti_op_kind kind);

#ifdef __cplusplus
}

#define TUTTI_SUM (tutti_op{TUTTI_OP_SUM, 0.0})
#define TUTTI_AVG (tutti_op{TUTTI_OP_AVG, 0.0})
#define TUTTI_PRODUCT (tutti_op{TUTTI_OP_PRODUCT, 0.0})
#define TUTTI_MIN (tutti_op{TUTTI_OP_MIN, 0.0})
#define TUTTI_MAX (tutti_op{TUTTI_OP_MAX, 0.0})
#define TUTTI_BAND (tutti_op{TUTTI_OP_BAND, 0.0})
#define TUTTI_BOR (tutti_op{TUTTI_OP_BOR, 0.0})
#define TUTTI_BXOR (tutti_op{TUTTI_OP_BXOR, 0.0})

/* The C++ twin of TUTTI_SPAN: one overload for each type that has a dtype. */
#define TUTTI_SPAN_OVERLOAD(type, dtype)                                                               \
    static inline tutti_span TUTTI_SPAN(const type *data, int64_t count)                               \
    {                                                                                                  \
        return tutti_span_of(data, count, dtype);                                                      \
    }
TUTTI_SPAN_OVERLOAD(bool, TUTTI_BOOL)
TUTTI_SPAN_OVERLOAD(uint8_t, TUTTI_U8)
TUTTI_SPAN_OVERLOAD(int8_t, TUTTI_I8)
TUTTI_SPAN_OVERLOAD(uint16_t, TUTTI_U16)
TUTTI_SPAN_OVERLOAD(int16_t, TUTTI_I16)
TUTTI_SPAN_OVERLOAD(uint32_t, TUTTI_U32)
TUTTI_SPAN_OVERLOAD(int32_t, TUTTI_I32)
TUTTI_SPAN_OVERLOAD(uint64_t, TUTTI_U64)
TUTTI_SPAN_OVERLOAD(int64_t, TUTTI_I64)
TUTTI_SPAN_OVERLOAD(float, TUTTI_F32)
TUTTI_SPAN_OVERLOAD(double, TUTTI_F64)
#undef TUTTI_SPAN_OVERLOAD
#else
#define TUTTI_SUM ((tutti_op){ .kind = TUTTI_OP_SUM })
#define TUTTI_AVG ((tutti_op){ .kind = TUTTI_OP_AVG })
#define TUTTI_PRODUCT ((tutti_op){ .kind = TUTTI_OP_PRODUCT })
#define TUTTI_MIN ((tutti_op){ .kind = TUTTI_OP_MIN })
#define TUTTI_MAX ((tutti_op){ .kind = TUTTI_OP_MAX })
#define TUTTI_BAND ((tutti_op){ .kind = TUTTI_OP_BAND })
#define TUTTI_BOR ((tutti_op){ .kind = TUTTI_OP_BOR })
#define TUTTI_BXOR ((tutti_op){ .kind = TUTTI_OP_BXOR })

/* A span whose dtype follows from the pointer: TUTTI_SPAN(x, 10) of float *x is 10 f32. A pointer to
 * anything else does not compile: use tutti_span_of(). */
#define TUTTI_SPAN(ptr, n)                                                                             \
    tutti_span_of((ptr), (n),                                                                          \
                  _Generic(*(ptr),                                                                     \
                      _Bool: TUTTI_BOOL,                                                               \
                      uint8_t: TUTTI_U8,                                                               \
                      int8_t: TUTTI_I8,                                                                \
                      uint16_t: TUTTI_U16,                                                             \
                      int16_t: TUTTI_I16,                                                              \
                      uint32_t: TUTTI_U32,                                                             \
                      int32_t: TUTTI_I32,                                                              \
                      uint64_t: TUTTI_U64,                                                             \
                      int64_t: TUTTI_I64,                                                              \
                      float: TUTTI_F32,                                                                \
                      double: TUTTI_F64,                                                               \
                      float _Complex: TUTTI_C64,                                                       \
                      double _Complex: TUTTI_C128))
#endif
#endif
