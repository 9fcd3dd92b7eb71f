/* SPDX-License-Identifier: BSD-3-Clause
 *
 * errors.h - a status of libtutti as an exception of PyTorch's.
 *
 * | status | in Python |
 * |---|---|
 * | TIMEOUT, PEER, ABORTED, BACKEND, MISMATCH, REMOTE, IO | torch.distributed.DistBackendError |
 * | NETWORK, AUTH | torch.distributed.DistNetworkError |
 * | STORE, EMPTY | torch.distributed.DistStoreError |
 * | UNSUPPORTED | NotImplementedError |
 * | ARG, STATE, NOMEM | RuntimeError, of which the others are kinds, as of backends in PyTorch's own tree |
 *
 * The words are the library's. They are kept per thread, so they are read on the thread that saw the status. */
#ifndef TUTTI_TORCH_ERRORS_H
#define TUTTI_TORCH_ERRORS_H

#include <exception>
#include <string>
#include <tutti/status.h>

namespace tutti_torch {

/** Throw what status is, with words. @threads any */
[[noreturn]] void throw_as(tutti_status status, const std::string &words);

/** Throw unless status is TUTTI_OK, with this thread's last words. what is said first. @threads any */
void check(tutti_status status, const char *what);

/** The same exception, not thrown. @threads any */
std::exception_ptr as_exception(tutti_status status, const char *what);

} // namespace tutti_torch
#endif
