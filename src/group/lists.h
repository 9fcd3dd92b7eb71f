/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/lists.h - the arrays that a call points to, and one span as a list of parts. Small ones
 * stand on the caller's stack. */
#ifndef TTI_GROUP_LISTS_H
#define TTI_GROUP_LISTS_H

#include "group/collective.h"

/** What a call points to. */
typedef struct tti_arrays {
    void       **list;
    const void **ins;
    int64_t     *list_counts;
    int64_t     *in_counts;
    void        *heap; /* NULL: none */
    void        *few_list[TTI_LIST_ON_STACK];
    const void  *few_ins[TTI_LIST_ON_STACK];
    int64_t      few_list_counts[TTI_LIST_ON_STACK];
    int64_t      few_in_counts[TTI_LIST_ON_STACK];
} tti_arrays;

/** Room for n entries each. */
tutti_status tti_arrays_init(tti_arrays *arrays, int n);
void         tti_arrays_release(tti_arrays *arrays);

/** One span as one part for each member. */
typedef struct tti_parts {
    tutti_span *spans;
    tutti_span  few[TTI_LIST_ON_STACK];
} tti_parts;

/** Cut whole: as splits say, or (NULL) into equal parts. On failure there is nothing to release. */
tutti_status tti_parts_init(tti_parts *parts, const tutti_group *group, tutti_span whole,
                            const int64_t *splits);
void         tti_parts_release(tti_parts *parts);

/** Whether splits, one for each member, are sizes that add up to whole's count. NULL: whether whole can be
 * cut into equal parts. splits_name is the argument's, for words.
 * @errors TUTTI_E_ARG */
tutti_status tti_check_splits(const tutti_group *group, const char *what, const char *name,
                              tutti_span whole, const char *splits_name, const int64_t *splits);

/** Let call have spans as its list, whose counts ranks agree on: if they are not all equal, count is
 * their sum, and the call has them. */
void tti_call_take_list(tutti_call *call, tti_arrays *arrays, const tutti_span *spans, int n);

/** The same of whole, which n cut into equal parts, none of them empty; part_bytes is the size of one. */
void tti_call_take_whole(tutti_call *call, tti_arrays *arrays, tutti_span whole, int n, size_t part_bytes);

#endif
