/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/bundle.h - calls that become the segments of one. */
#ifndef TTI_GROUP_BUNDLE_H
#define TTI_GROUP_BUNDLE_H

#include "group/collective.h"

enum { TTI_BUNDLE_ON_STACK = 16 };

/** Filled by tti_bundle_add(); not to be moved. A small one needs no allocation. */
typedef struct tti_bundle {
    tutti_group   *group;
    tutti_call     like; /* the first call: kind, dtype and op are everybody's; count is the sum */
    int            n;
    tutti_segment *segments; /* [n] */
    void         **list;     /* [n * group->size], of kinds that have one */
    int            segments_room;
    int            list_room;
    tutti_segment  few_segments[TTI_BUNDLE_ON_STACK];
    void          *few_list[TTI_LIST_ON_STACK];
} tti_bundle;

void tti_bundle_init(tti_bundle *bundle, tutti_group *group);
void tti_bundle_release(tti_bundle *bundle);

/** Take a checked call, whose list has n_list entries, as the next segment. what is its name, for words.
 * @errors TUTTI_E_ARG    it does not go with those before it, has parts of different sizes, or is one too many
 *         TUTTI_E_NOMEM */
tutti_status tti_bundle_add(tti_bundle *bundle, const char *what, const tutti_call *call, int n_list);

/** Run or queue what the bundle has, which is not nothing. If it was run, like.seq is its number then. */
tutti_status tti_bundle_issue(tti_bundle *bundle, tti_how how);

#endif
