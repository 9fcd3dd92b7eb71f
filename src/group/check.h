/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/check.h - checks of arguments that collectives and messages share. what is the call's name
 * and name the argument's, for words. */
#ifndef TTI_GROUP_CHECK_H
#define TTI_GROUP_CHECK_H

#include "base/dtype.h"
#include "group/group.h"

/** How many bytes a span has: false if it is none, or none that the group takes. */
static inline bool tti_measure(const tutti_group *group, tutti_span span, int64_t *bytes_out)
{
    const int64_t item = (int64_t)tti_dtype_bytes(span.dtype);

    return item != 0 && span.count >= 0 && !__builtin_mul_overflow(span.count, item, bytes_out) &&
           (unsigned)span.device.type < TTI_DEVICES && group->routes[span.device.type].ops != NULL &&
           (span.data != NULL || span.count == 0);
}

/** Say what tti_measure() has found. */
tutti_status tti_refuse_span(const tutti_group *group, const char *what, const char *name, tutti_span span)
    __attribute__((cold));

/** @errors TUTTI_E_ARG          count below 0 or beyond memory, no data, or no dtype
 *          TUTTI_E_UNSUPPORTED  memory of a device */
static inline tutti_status tti_check_span(const tutti_group *group, const char *what, const char *name,
                                          tutti_span span)
{
    int64_t bytes;

    return tti_measure(group, span, &bytes) ? TUTTI_OK : tti_refuse_span(group, what, name, span);
}

/** @errors TUTTI_E_ARG  the dtypes or devices differ */
tutti_status tti_check_dtypes(const tutti_group *group, const char *what, tutti_span out,
                              tutti_span in);

/** list has one checked span for each member, all like part in count and dtype. Each is apart from
 * part, or is part exactly and this rank's entry.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
tutti_status tti_check_list(const tutti_group *group, const char *what, const char *name,
                            const tutti_span *list, int n, tutti_span part);

/** list is there and has one entry for each member.
 * @errors TUTTI_E_ARG */
tutti_status tti_check_list_shape(const tutti_group *group, const char *what, const char *name,
                                  const tutti_span *list, int n);

/** list has one checked span for each member, of any counts that memory has room for in all; this
 * rank's entry is like own, the others have its dtype. Each is apart from own, or is own exactly
 * and this rank's entry.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
tutti_status tti_check_parts(const tutti_group *group, const char *what, const char *name,
                             const tutti_span *list, int n, tutti_span own);

/** outs and ins have one checked span for each member, of one dtype and any counts that memory has
 * room for in all; this rank's entries have one count. An entry of outs is apart from all of ins,
 * or is this rank's in both, exactly.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
tutti_status tti_check_pair(const tutti_group *group, const char *what, const char *outs_name,
                            const tutti_span *outs, const char *ins_name, const tutti_span *ins);

/** The list of a collective with a root, given as a group rank: the root's is what check says, the others
 * have none. check is tti_check_list or tti_check_parts.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
typedef tutti_status tti_list_check(const tutti_group *group, const char *what, const char *name,
                                    const tutti_span *list, int n, tutti_span part);
tutti_status tti_check_rooted(const tutti_group *group, const char *what, const char *name,
                              const tutti_span *list, int n, tutti_span part, int root,
                              tti_list_check *check);

/** out and in are checked spans of one dtype and device; one is cut into as many parts as the group has
 * members, each as large as the other: in if cuts_in, else out.
 * @errors TUTTI_E_ARG, TUTTI_E_UNSUPPORTED */
tutti_status tti_check_cut(const tutti_group *group, const char *what, tutti_span out, tutti_span in,
                           bool cuts_in);

/** Whether two checked spans have no byte in common, and both have bytes: then no part that either is cut into lies where
 * it may not, and parts need not be looked at one by one. */
bool tti_are_apart(tutti_span a, tutti_span b);

#endif
