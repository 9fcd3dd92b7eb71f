/* SPDX-License-Identifier: BSD-3-Clause
 *
 * asked.c - what entries of a backend have failed with, if it is not the library's own. */
#include "group/asked.h"

#include <tutti/private.h>
#include "backend/registry.h"

tutti_status tti_asked_failed(const tutti_backend_ops *ops, const char *entry, tutti_status st, uint32_t said)
{
    return tti_backend_is_own(ops) ? st : tti_foreign_status("backend", ops->name, entry, st, said);
}

tutti_status tti_asked_waited(const tutti_backend_ops *ops, tutti_status st, uint32_t said)
{
    if (st != TUTTI_E_TIMEOUT)
        return tti_asked_failed(ops, "wait", st, said);
    return tti_words_said() != said ? st : tti_fail(st, "backend '%s' had not ended it by then", ops->name);
}
