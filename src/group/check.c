/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check.c - what a span and a list of spans must be before anything is sent. */
#include "group/check.h"

#include <stdio.h>
#include <tutti/private.h>

tutti_status tti_check_span(const tutti_group *group, const char *what, const char *name,
                            tutti_span span)
{
    const size_t item = tutti_dtype_size(span.dtype);

    if (item == 0)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has dtype %d, which is none", what,
                        group->name, name, (int)span.dtype);
    if (span.count < 0 || (uint64_t)span.count > (uint64_t)PTRDIFF_MAX / item)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has a count of %lld %s", what,
                        group->name, name, (long long)span.count, tutti_dtype_name(span.dtype));
    if (span.device.type != TUTTI_CPU)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "%s on group '%s': %s is memory of a device, backend '%s' takes host "
                        "memory\n  next: copy it to the host first",
                        what, group->name, name, group->ops->name);
    if (span.data == NULL && span.count > 0)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has no data for %lld %s", what,
                        group->name, name, (long long)span.count, tutti_dtype_name(span.dtype));
    return TUTTI_OK;
}

static bool overlap(tutti_span a, tutti_span b)
{
    const uintptr_t a_at = (uintptr_t)a.data;
    const uintptr_t b_at = (uintptr_t)b.data;
    const uintptr_t bytes = (uintptr_t)a.count * tutti_dtype_size(a.dtype);

    return bytes > 0 && a_at < b_at + bytes && b_at < a_at + bytes; /* both have that many */
}

static tutti_status check_entry(const tutti_group *group, const char *what, const char *name,
                                const tutti_span *list, int i, tutti_span part)
{
    char         entry[32];
    tutti_status st;

    snprintf(entry, sizeof entry, "%s[%d]", name, i);
    st = tti_check_span(group, what, entry, list[i]);
    if (st != TUTTI_OK)
        return st;
    if (list[i].count != part.count || list[i].dtype != part.dtype)
        return tti_fail(
            TUTTI_E_ARG, "%s on group '%s': %s is %lld %s, but this rank's part is %lld %s", what,
            group->name, entry, (long long)list[i].count, tutti_dtype_name(list[i].dtype),
            (long long)part.count, tutti_dtype_name(part.dtype));
    if (overlap(list[i], part) && !(i == group->rank && list[i].data == part.data))
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s overlaps this rank's part\n"
                        "  next: only its own entry [%d] may share memory with it, exactly",
                        what, group->name, entry, group->rank);
    return TUTTI_OK;
}

tutti_status tti_check_list(const tutti_group *group, const char *what, const char *name,
                            const tutti_span *list, int n, tutti_span part)
{
    tutti_status st = TUTTI_OK;
    int          i;

    if (n != group->size || list == NULL)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s has %d entries%s, the group has %d members", what,
                        group->name, name, n, list == NULL ? " (NULL)" : "", group->size);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = check_entry(group, what, name, list, i, part);
    return st;
}
