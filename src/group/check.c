/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check.c - what a span and a list of spans must be before anything is sent.
 *
 * Every call pays for this, so what is right is found right without words: an entry of a list has a name
 * only where it is wrong. */
#include "group/check.h"

#include <stdio.h>
#include <tutti/private.h>

tutti_status tti_refuse_span(const tutti_group *group, const char *what, const char *name, tutti_span span)
{
    const size_t item = tti_dtype_bytes(span.dtype);
    tutti_status st;

    if (item == 0)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has dtype %d, which is none\n"
                                     "  next: make it with TUTTI_SPAN() or tutti_span_of()",
                        what, group->name, name, (int)span.dtype);
    if (span.count < 0 || (uint64_t)span.count > (uint64_t)PTRDIFF_MAX / item)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has a count of %lld %s\n  next: count elements, not bytes, 0 or more",
                        what, group->name, name, (long long)span.count, tutti_dtype_name(span.dtype));
    st = tti_route_check(group, what, name, span.device.type);
    if (st != TUTTI_OK)
        return st;
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has no data for %lld %s\n  next: pass its memory, or a count of 0", what,
                    group->name, name, (long long)span.count, tutti_dtype_name(span.dtype));
}

/* "outs[3]". */
typedef struct entry_name {
    char text[48];
} entry_name;

static entry_name name_of(const char *name, int i)
{
    entry_name entry;

    snprintf(entry.text, sizeof entry.text, "%s[%d]", name, i);
    return entry;
}

/* Addresses [begin, end). */
typedef struct extent {
    uintptr_t begin;
    uintptr_t end;
} extent;

static extent extent_of(tutti_span span)
{
    const uintptr_t at = (uintptr_t)span.data;

    return (extent){ at, at + (uintptr_t)span.count * tti_dtype_bytes(span.dtype) };
}

static bool meet(extent a, extent b)
{
    return a.begin < a.end && b.begin < b.end && a.begin < b.end && b.begin < a.end;
}

static bool overlap(tutti_span a, tutti_span b)
{
    return meet(extent_of(a), extent_of(b));
}

bool tti_are_apart(tutti_span a, tutti_span b)
{
    return a.count > 0 && b.count > 0 && !overlap(a, b);
}

static tutti_status check_apart(const tutti_group *group, const char *what, const char *name,
                                const tutti_span *list, int i, tutti_span part)
{
    if (overlap(list[i], part) && !(i == group->rank && list[i].data == part.data))
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s overlaps this rank's part\n"
                        "  next: only its own entry [%d] may share memory with it, exactly",
                        what, group->name, name_of(name, i).text, group->rank);
    return TUTTI_OK;
}

static tutti_status fail_devices(const tutti_group *group, const char *what, const char *name,
                                 tutti_span span, tutti_span other)
{
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s is memory of '%s', other spans are of '%s'\n"
                                 "  next: let all spans of a call be of one device",
                    what, group->name, name, tti_device_name(span.device.type), tti_device_name(other.device.type));
}

/* Entry i is not as part is. */
static __attribute__((noinline, cold)) tutti_status refuse_entry(const tutti_group *group, const char *what,
                                                                 const char *name, const tutti_span *list,
                                                                 int i, tutti_span part)
{
    const entry_name entry = name_of(name, i);
    int64_t          bytes;

    if (!tti_measure(group, list[i], &bytes))
        return tti_refuse_span(group, what, entry.text, list[i]);
    if (list[i].count != part.count || list[i].dtype != part.dtype)
        return tti_fail(
            TUTTI_E_ARG, "%s on group '%s': %s is %lld %s, but this rank's part is %lld %s\n"
                         "  next: let all have the same count and dtype", what,
            group->name, entry.text, (long long)list[i].count, tutti_dtype_name(list[i].dtype),
            (long long)part.count, tutti_dtype_name(part.dtype));
    return fail_devices(group, what, entry.text, list[i], part);
}

static tutti_status check_entry(const tutti_group *group, const char *what, const char *name,
                                const tutti_span *list, int i, tutti_span part)
{
    int64_t bytes;

    if (!tti_measure(group, list[i], &bytes) || list[i].count != part.count ||
        list[i].dtype != part.dtype || list[i].device.type != part.device.type)
        return refuse_entry(group, what, name, list, i, part);
    return check_apart(group, what, name, list, i, part);
}

tutti_status tti_check_list_shape(const tutti_group *group, const char *what, const char *name,
                                  const tutti_span *list, int n)
{
    if (n == group->size && list != NULL)
        return TUTTI_OK;
    if (n == group->size)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s is NULL, and the group has %d members\n  next: pass a span for each", what,
                        group->name, name, group->size);
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has %d entries, the group has %d members\n  next: pass a span for each", what,
                    group->name, name, n, group->size);
}

tutti_status tti_check_list(const tutti_group *group, const char *what, const char *name,
                            const tutti_span *list, int n, tutti_span part)
{
    tutti_status st = tti_check_list_shape(group, what, name, list, n);
    int          i;

    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = check_entry(group, what, name, list, i, part);
    return st;
}

tutti_status tti_check_dtypes(const tutti_group *group, const char *what, tutti_span out,
                              tutti_span in)
{
    if (out.device.type != in.device.type)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': out is memory of '%s', but in is of '%s'\n"
                                     "  next: let both be of one device", what,
                        group->name, tti_device_name(out.device.type), tti_device_name(in.device.type));
    if (out.dtype == in.dtype)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': out is %s, but in is %s\n  next: let both have the same dtype", what, group->name,
                    tutti_dtype_name(out.dtype), tutti_dtype_name(in.dtype));
}

/* ---- lists of different counts ---- */

/* Entry i is no part of a list of dtype that begins with list[0]. */
static __attribute__((noinline, cold)) tutti_status refuse_loose(const tutti_group *group, const char *what,
                                                                 const char *name, const tutti_span *list,
                                                                 int i, tutti_dtype dtype)
{
    const entry_name entry = name_of(name, i);
    int64_t          bytes;

    if (!tti_measure(group, list[i], &bytes))
        return tti_refuse_span(group, what, entry.text, list[i]);
    if (list[i].dtype != dtype)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s is %s, others are %s\n  next: let all have the same dtype", what, group->name,
                        entry.text, tutti_dtype_name(list[i].dtype), tutti_dtype_name(dtype));
    if (list[i].device.type != list[0].device.type)
        return fail_devices(group, what, entry.text, list[i], list[0]);
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': up to %s there are more bytes than memory\n  next: count elements, not bytes", what,
                    group->name, entry.text);
}

/* Entries of any counts. What all have, a line each for their ends included, must stay a number. */
static tutti_status check_loose_list(const tutti_group *group, const char *what, const char *name,
                                     const tutti_span *list, tutti_dtype dtype)
{
    int64_t room = PTRDIFF_MAX - (int64_t)group->size * 64;
    int64_t bytes;
    int     i;

    for (i = 0; i < group->size; i++) {
        if (!tti_measure(group, list[i], &bytes) || list[i].dtype != dtype || bytes > room ||
            list[i].device.type != list[0].device.type)
            return refuse_loose(group, what, name, list, i, dtype);
        room -= bytes;
    }
    return TUTTI_OK;
}

tutti_status tti_check_parts(const tutti_group *group, const char *what, const char *name,
                             const tutti_span *list, int n, tutti_span own)
{
    tutti_status st = tti_check_list_shape(group, what, name, list, n);
    int          i;

    if (st == TUTTI_OK)
        st = check_loose_list(group, what, name, list, own.dtype);
    if (st == TUTTI_OK && list[0].device.type != own.device.type)
        st = fail_devices(group, what, name, list[0], own);
    if (st == TUTTI_OK && list[group->rank].count != own.count)
        st = tti_fail(TUTTI_E_ARG,
                      "%s on group '%s': %s[%d] is %lld %s, but this rank's part is %lld\n"
                      "  next: give a rank's own entry the count of its part", what,
                      group->name, name, group->rank, (long long)list[group->rank].count,
                      tutti_dtype_name(own.dtype), (long long)own.count);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = check_apart(group, what, name, list, i, own);
    return st;
}

/* From the first byte of any to the last. */
static extent extent_of_all(const tutti_span *list, int n)
{
    extent all = { UINTPTR_MAX, 0 };
    int    i;

    for (i = 0; i < n; i++) {
        const extent one = extent_of(list[i]);

        if (one.begin == one.end)
            continue;
        all.begin = one.begin < all.begin ? one.begin : all.begin;
        all.end = one.end > all.end ? one.end : all.end;
    }
    return all;
}

static tutti_status check_pair_apart(const tutti_group *group, const char *what,
                                     const char *outs_name, const tutti_span *outs,
                                     const char *ins_name, const tutti_span *ins)
{
    int i, j;

    if (!meet(extent_of_all(outs, group->size), extent_of_all(ins, group->size)))
        return TUTTI_OK; /* the usual case: two buffers */
    for (i = 0; i < group->size; i++)
        for (j = 0; j < group->size; j++)
            if (overlap(outs[i], ins[j]) &&
                !(i == group->rank && j == i && outs[i].data == ins[j].data))
                return tti_fail(TUTTI_E_ARG,
                                "%s on group '%s': %s[%d] overlaps %s[%d]\n"
                                "  next: only the own entries [%d] may share memory, exactly",
                                what, group->name, outs_name, i, ins_name, j, group->rank);
    return TUTTI_OK;
}

tutti_status tti_check_pair(const tutti_group *group, const char *what, const char *outs_name,
                            const tutti_span *outs, const char *ins_name, const tutti_span *ins)
{
    const int    own = group->rank;
    tutti_status st = check_loose_list(group, what, outs_name, outs, outs[0].dtype);

    if (st == TUTTI_OK)
        st = check_loose_list(group, what, ins_name, ins, outs[0].dtype);
    if (st == TUTTI_OK && outs[0].device.type != ins[0].device.type)
        st = fail_devices(group, what, outs_name, outs[0], ins[0]);
    if (st == TUTTI_OK && outs[own].count != ins[own].count)
        st = tti_fail(TUTTI_E_ARG,
                      "%s on group '%s': %s[%d] is %lld %s, but %s[%d], this rank's own, is %lld\n"
                      "  next: give both the same count",
                      what, group->name, outs_name, own, (long long)outs[own].count,
                      tutti_dtype_name(outs[own].dtype), ins_name, own,
                      (long long)ins[own].count);
    return st == TUTTI_OK ? check_pair_apart(group, what, outs_name, outs, ins_name, ins) : st;
}

/* ---- collectives with a root, and parts of one span ---- */

static tutti_status check_no_list(const tutti_group *group, const char *what, const char *name,
                                  const tutti_span *list, int n)
{
    if (n != 0)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s has %d entries on a rank that is not the root\n"
                        "  next: pass NULL and 0 there",
                        what, group->name, name, n);
    if (list != NULL)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': %s is given on a rank that is not the root\n"
                        "  next: pass NULL and 0 there",
                        what, group->name, name);
    return TUTTI_OK;
}

tutti_status tti_check_rooted(const tutti_group *group, const char *what, const char *name,
                              const tutti_span *list, int n, tutti_span part, int root,
                              tti_list_check *check)
{
    return root == group->rank ? check(group, what, name, list, n, part)
                               : check_no_list(group, what, name, list, n);
}

tutti_status tti_check_cut(const tutti_group *group, const char *what, tutti_span out, tutti_span in,
                           bool cuts_in)
{
    const tutti_span whole = cuts_in ? in : out;
    const tutti_span part = cuts_in ? out : in;
    tutti_status     st = tti_check_span(group, what, "out", out);

    if (st == TUTTI_OK)
        st = tti_check_span(group, what, "in", in);
    if (st == TUTTI_OK)
        st = tti_check_dtypes(group, what, out, in);
    if (st == TUTTI_OK && (whole.count / group->size != part.count || whole.count % group->size != 0))
        st = tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has %lld elements, not %d times the %lld of %s\n"
                                   "  next: let the larger one have a part for each member", what,
                      group->name, cuts_in ? "in" : "out", (long long)whole.count, group->size,
                      (long long)part.count, cuts_in ? "out" : "in");
    return st;
}
