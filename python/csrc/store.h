/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store.h - the store that PyTorch hands over, as a store of libtutti's. */
#ifndef TUTTI_TORCH_STORE_H
#define TUTTI_TORCH_STORE_H

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <tutti/store.h>

namespace tutti_torch {

/** A handle on store with one reference, to be dropped by tutti_store_close(). It keeps store alive.
 * @throws as check() where the library refuses it
 * @threads any */
tutti_store *wrap_store(const c10::intrusive_ptr<c10d::Store> &store);

} // namespace tutti_torch
#endif
