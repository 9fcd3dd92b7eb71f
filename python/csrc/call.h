/* SPDX-License-Identifier: BSD-3-Clause
 *
 * call.h - what handing a call over takes; for backend.cpp and collectives.cpp. */
#ifndef TUTTI_TORCH_CALL_H
#define TUTTI_TORCH_CALL_H

#include "backend.h"

namespace tutti_torch {

struct TuttiBackend::Call {
    c10d::OpType              type;
    const char               *title; /* "tutti:all_reduce": what a profiler shows, and what failures begin with */
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    bool                      is_message = false;
};

} // namespace tutti_torch
#endif
