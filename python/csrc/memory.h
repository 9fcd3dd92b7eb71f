/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.h - PyTorch's tensors in registered memory. */
#ifndef TUTTI_TORCH_MEMORY_H
#define TUTTI_TORCH_MEMORY_H

#include <cstddef>

namespace tutti_torch {

/** From now on this process's tensors on the CPU lie in registered memory if they have from_bytes and more; 0: none do.
 * @return what it was before  @throws c10::Error if another allocator does not let ours take its place
 * @threads any; it holds for all */
size_t use_registered_memory(size_t from_bytes);

} // namespace tutti_torch
#endif
