/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim.cpp - all of it, as one translation unit: PyTorch's headers take far longer to compile than what is here. */
#include "backend.cpp"
#include "collectives.cpp"
#include "errors.cpp"
#include "memory.cpp"
#include "module.cpp"
#include "operation.cpp"
#include "recorder.cpp"
#include "regroup.cpp"
#include "store.cpp"
#include "types.cpp"
#include "work.cpp"
