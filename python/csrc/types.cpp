/* SPDX-License-Identifier: BSD-3-Clause */
#include "types.h"

#include "errors.h"

#include <ATen/ATen.h>
#include <tutti/store.h>

namespace tutti_torch {

/* TUTTI_DTYPE_COUNT: the library has no such type. */
static tutti_dtype same_type(c10::ScalarType type)
{
    switch (type) {
    case c10::ScalarType::Bool:
        return TUTTI_BOOL;
    case c10::ScalarType::Byte:
        return TUTTI_U8;
    case c10::ScalarType::Char:
        return TUTTI_I8;
    case c10::ScalarType::UInt16:
        return TUTTI_U16;
    case c10::ScalarType::Short:
        return TUTTI_I16;
    case c10::ScalarType::UInt32:
        return TUTTI_U32;
    case c10::ScalarType::Int:
        return TUTTI_I32;
    case c10::ScalarType::UInt64:
        return TUTTI_U64;
    case c10::ScalarType::Long:
        return TUTTI_I64;
    case c10::ScalarType::Half:
        return TUTTI_F16;
    case c10::ScalarType::BFloat16:
        return TUTTI_BF16;
    case c10::ScalarType::Float:
        return TUTTI_F32;
    case c10::ScalarType::Double:
        return TUTTI_F64;
    case c10::ScalarType::Float8_e4m3fn:
        return TUTTI_F8E4M3FN;
    case c10::ScalarType::Float8_e5m2:
        return TUTTI_F8E5M2;
    case c10::ScalarType::ComplexFloat:
        return TUTTI_C64;
    case c10::ScalarType::ComplexDouble:
        return TUTTI_C128;
    default:
        return TUTTI_DTYPE_COUNT;
    }
}

tutti_dtype moved_as(c10::ScalarType type)
{
    const tutti_dtype same = same_type(type);

    if (same != TUTTI_DTYPE_COUNT)
        return same;
    switch (c10::elementSize(type)) {
    case 1:
        return TUTTI_U8;
    case 2:
        return TUTTI_U16;
    case 4:
        return TUTTI_U32;
    case 8:
        return TUTTI_U64;
    case 16:
        return TUTTI_C128;
    default:
        throw_as(TUTTI_E_UNSUPPORTED, std::string("tutti cannot move elements of dtype ") + c10::toString(type) + ", of " +
                                          std::to_string(c10::elementSize(type)) +
                                          " bytes\n  next: view(torch.uint8)");
    }
}

tutti_dtype reduced_as(c10::ScalarType type)
{
    const tutti_dtype same = same_type(type);

    if (same == TUTTI_DTYPE_COUNT)
        throw_as(TUTTI_E_UNSUPPORTED, std::string("tutti cannot reduce elements of dtype ") + c10::toString(type) +
                                          "\n  next: to(torch.float32), or another type that it has arithmetic for: bool, "
                                          "integers of 8 to 64 bits, float8_e4m3fn, float8_e5m2, float16, bfloat16, "
                                          "float32, float64, complex64, complex128");
    return same;
}

static tutti_op premultiplied(const c10d::ReduceOp &op)
{
    const auto *with = dynamic_cast<const c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());

    TORCH_CHECK(with != nullptr, "PREMUL_SUM without a factor\n  next: torch.distributed._make_nccl_premul_sum(factor)");
    return tutti_premul_sum(with->tensor_factor.defined() ? with->tensor_factor.item<double>() : with->double_factor);
}

tutti_op op_of(const c10d::ReduceOp &op)
{
    switch (op.op_) {
    case c10d::ReduceOp::SUM:
        return TUTTI_SUM;
    case c10d::ReduceOp::AVG:
        return TUTTI_AVG;
    case c10d::ReduceOp::PRODUCT:
        return TUTTI_PRODUCT;
    case c10d::ReduceOp::MIN:
        return TUTTI_MIN;
    case c10d::ReduceOp::MAX:
        return TUTTI_MAX;
    case c10d::ReduceOp::BAND:
        return TUTTI_BAND;
    case c10d::ReduceOp::BOR:
        return TUTTI_BOR;
    case c10d::ReduceOp::BXOR:
        return TUTTI_BXOR;
    case c10d::ReduceOp::PREMUL_SUM:
        return premultiplied(op);
    default:
        TORCH_CHECK(false, "reduce operation ", static_cast<int>(op.op_), " is none that tutti knows");
    }
}

int64_t timeout_of(std::chrono::milliseconds timeout, int64_t fallback_ms)
{
    if (timeout.count() < 0)
        return fallback_ms;
    return timeout.count() == 0 ? TUTTI_INFINITE : timeout.count();
}

} // namespace tutti_torch
