/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dtype.c - names and sizes of element types; which operation is defined for which of them.
 *
 * The table of tutti/dtype.h stands here once, as a set of dtypes per operation; the words of a
 * refusal are made from the same sets, so they cannot disagree with it. */
#include <stdio.h>
#include <string.h>
#include <tutti/dtype.h>
#include <tutti/private.h>
#include "base/dtype.h"

#define BIT(dtype) (1u << (dtype))

enum {
    BYTES_AND_INTS = BIT(TUTTI_BOOL) | BIT(TUTTI_U8) | BIT(TUTTI_I8) | BIT(TUTTI_U16) |
                     BIT(TUTTI_I16) | BIT(TUTTI_U32) | BIT(TUTTI_I32) | BIT(TUTTI_U64) |
                     BIT(TUTTI_I64),
    REALS = BIT(TUTTI_F16) | BIT(TUTTI_BF16) | BIT(TUTTI_F32) | BIT(TUTTI_F64) |
            BIT(TUTTI_F8E4M3FN) | BIT(TUTTI_F8E5M2),
    COMPLEX = BIT(TUTTI_C64) | BIT(TUTTI_C128)
};

static const char *const dtype_names[TUTTI_DTYPE_COUNT] = {
    [TUTTI_BOOL] = "bool", [TUTTI_U8] = "u8",   [TUTTI_I8] = "i8",             [TUTTI_U16] = "u16",
    [TUTTI_I16] = "i16",   [TUTTI_U32] = "u32", [TUTTI_I32] = "i32",           [TUTTI_U64] = "u64",
    [TUTTI_I64] = "i64",   [TUTTI_F16] = "f16", [TUTTI_BF16] = "bf16",         [TUTTI_F32] = "f32",
    [TUTTI_F64] = "f64",   [TUTTI_C64] = "c64", [TUTTI_F8E4M3FN] = "f8e4m3fn", [TUTTI_F8E5M2] = "f8e5m2",
    [TUTTI_C128] = "c128",
};

static const struct {
    const char *name;
    unsigned defined_for;
} ops[TUTTI_OP_COUNT] = {
    [TUTTI_OP_SUM] = { "sum", BYTES_AND_INTS | REALS | COMPLEX },
    [TUTTI_OP_AVG] = { "avg", REALS | COMPLEX },
    [TUTTI_OP_PRODUCT] = { "product", BYTES_AND_INTS | REALS },
    [TUTTI_OP_MIN] = { "min", BYTES_AND_INTS | REALS },
    [TUTTI_OP_MAX] = { "max", BYTES_AND_INTS | REALS },
    [TUTTI_OP_BAND] = { "band", BYTES_AND_INTS },
    [TUTTI_OP_BOR] = { "bor", BYTES_AND_INTS },
    [TUTTI_OP_BXOR] = { "bxor", BYTES_AND_INTS },
    [TUTTI_OP_PREMUL_SUM] = { "premul_sum", REALS | COMPLEX },
};

/* Room for every name with a comma; the longest list, all ops, needs 58 bytes. */
typedef struct name_list {
    char text[96];
    size_t len;
} name_list;

static int is_dtype(tutti_dtype dtype)
{
    return (unsigned)dtype < TUTTI_DTYPE_COUNT;
}

static int is_op(tutti_op_kind kind)
{
    return (unsigned)kind < TUTTI_OP_COUNT;
}

static void append(name_list *list, const char *name)
{
    const int n = snprintf(list->text + list->len, sizeof list->text - list->len, "%s%s",
                           list->len == 0 ? "" : ", ", name);

    if (n > 0 && (size_t)n < sizeof list->text - list->len)
        list->len += (size_t)n;
}

/* The operations that are defined for dtype: "sum, product, min". */
static name_list ops_for(tutti_dtype dtype)
{
    name_list list = { .len = 0 };

    for (int kind = 0; kind < TUTTI_OP_COUNT; kind++)
        if (ops[kind].defined_for & BIT(dtype))
            append(&list, ops[kind].name);
    return list;
}

/* The dtypes that an operation is defined for: "bool, u8, i8". */
static name_list dtypes_for(tutti_op_kind kind)
{
    name_list list = { .len = 0 };

    for (int dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++)
        if (ops[kind].defined_for & BIT(dtype))
            append(&list, dtype_names[dtype]);
    return list;
}

size_t tutti_dtype_size(tutti_dtype dtype)
{
    return tti_dtype_bytes(dtype);
}

const char *tutti_dtype_name(tutti_dtype dtype)
{
    return is_dtype(dtype) ? dtype_names[dtype] : "?";
}

const char *tutti_op_name(tutti_op_kind kind)
{
    return is_op(kind) ? ops[kind].name : "?";
}

tutti_status tutti_op_check(tutti_op op, tutti_dtype dtype)
{
    if (!is_op(op.kind))
        return tti_fail(TUTTI_E_ARG,
                        "%d is no reduction operation\n"
                        "  next: use TUTTI_SUM, TUTTI_AVG, ... or tutti_premul_sum(factor)",
                        (int)op.kind);
    if (!is_dtype(dtype))
        return tti_fail(TUTTI_E_ARG,
                        "%d is no dtype\n"
                        "  next: use TUTTI_F32, TUTTI_I64, ... of tutti/dtype.h",
                        (int)dtype);
    if (!(ops[op.kind].defined_for & BIT(dtype)))
        return tti_fail(TUTTI_E_ARG,
                        "op '%s' is not defined for dtype '%s', only for %s\n"
                        "  next: reduce '%s' with one of %s",
                        ops[op.kind].name, dtype_names[dtype], dtypes_for(op.kind).text,
                        dtype_names[dtype], ops_for(dtype).text);
    return TUTTI_OK;
}
