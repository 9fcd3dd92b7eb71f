/* SPDX-License-Identifier: BSD-3-Clause */
#include "errors.h"

#include <c10/util/Exception.h>

namespace tutti_torch {

void throw_as(tutti_status status, const std::string &words)
{
    switch (status) {
    case TUTTI_E_TIMEOUT:
    case TUTTI_E_PEER:
    case TUTTI_E_ABORTED:
    case TUTTI_E_BACKEND:
    case TUTTI_E_MISMATCH:
    case TUTTI_E_REMOTE:
    case TUTTI_E_IO:
        C10_THROW_ERROR(DistBackendError, words);
    case TUTTI_E_NETWORK:
    case TUTTI_E_AUTH:
        C10_THROW_ERROR(DistNetworkError, words);
    case TUTTI_E_STORE:
    case TUTTI_E_EMPTY:
        C10_THROW_ERROR(DistStoreError, words);
    case TUTTI_E_UNSUPPORTED:
        C10_THROW_ERROR(NotImplementedError, words);
    default:
        C10_THROW_ERROR(Error, words);
    }
}

static std::string words_of(tutti_status status, const char *what)
{
    const char *last = tutti_last_error();

    return std::string(what) + ": " + (*last != '\0' ? last : tutti_status_name(status));
}

void check(tutti_status status, const char *what)
{
    if (status != TUTTI_OK)
        throw_as(status, words_of(status, what));
}

std::exception_ptr as_exception(tutti_status status, const char *what)
{
    try {
        throw_as(status, words_of(status, what));
    } catch (...) {
        return std::current_exception();
    }
}

} // namespace tutti_torch
