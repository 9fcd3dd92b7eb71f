/* SPDX-License-Identifier: BSD-3-Clause
 *
 * asked.c - what entries of a backend have failed with, if it is not the library's own. */
#include "group/asked.h"

#include "backend/registry.h"

tutti_status tti_asked_failed(const tutti_backend_ops *ops, const char *entry, tutti_status st, uint32_t said)
{
    return tti_backend_is_own(ops) ? st : tti_foreign_status("backend", ops->name, entry, st, said);
}
