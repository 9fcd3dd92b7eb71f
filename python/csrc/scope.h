/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scope.h - what has to be undone when a scope ends, also where something is thrown. */
#ifndef TUTTI_TORCH_SCOPE_H
#define TUTTI_TORCH_SCOPE_H

#include <utility>

namespace tutti_torch {

/** Calls what it was given, which throws nothing, at the end of its scope. @threads that of the scope */
template <typename F> class AtEnd {
public:
    explicit AtEnd(F undo) : undo_(std::move(undo)) {}
    ~AtEnd() { undo_(); }
    AtEnd(const AtEnd &) = delete;
    AtEnd &operator=(const AtEnd &) = delete;

private:
    F undo_;
};

} // namespace tutti_torch
#endif
