/* SPDX-License-Identifier: BSD-3-Clause
 *
 * types.h - element types, operations and time-outs of PyTorch's as libtutti's. */
#ifndef TUTTI_TORCH_TYPES_H
#define TUTTI_TORCH_TYPES_H

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <tutti/dtype.h>

namespace tutti_torch {

/** The type to move elements as: their own, or one of as many bytes where the library has none of that name, so that
 * every type of 1, 2, 4, 8 or 16 bytes can be moved.
 * @throws NotImplementedError  for a type of another size */
tutti_dtype moved_as(c10::ScalarType type);

/** The type to compute with.
 * @throws NotImplementedError  for a type that the library has no arithmetic for; the text names it, and what helps */
tutti_dtype reduced_as(c10::ScalarType type);

/** The operation, with its factor.
 * @throws RuntimeError  for one that is none, or a factor that is not one number */
tutti_op op_of(const c10d::ReduceOp &op);

/** A time-out as the library has it: less than 0 is PyTorch's "not given" and gives fallback, 0 its "for ever". */
int64_t timeout_of(std::chrono::milliseconds timeout, int64_t fallback_ms);

} // namespace tutti_torch
#endif
