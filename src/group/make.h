/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/make.h - what the files that make groups share. Each fills an object that tti_group_alloc()
 * gave, opens its stores and its backend, and links it to its world. */
#ifndef TTI_GROUP_MAKE_H
#define TTI_GROUP_MAKE_H

#include "group/group.h"

/** A group without stores and backend: free it with tti_group_free(). */
tutti_status tti_group_alloc(int rank, int size, tutti_group **group_out);
/** Free the object and its stores; there is no backend any more. NULL is fine. */
void tti_group_free(tutti_group *group);
/** Fill group's two stores, below parent. */
tutti_status tti_group_open_stores(tutti_group *group, tutti_store *parent);
/** Make group's backend; waits for the members, until deadline_ns. */
tutti_status tti_group_open_backend(tutti_group *group, int64_t deadline_ns);
/** A child is whole: its world knows it from now on. */
void tti_group_link(tutti_group *group);

void tti_ranks_sort(int *ranks, int n);
/** Where rank stands in sorted[n], -1: nowhere. */
int tti_rank_find(const int *sorted, int n, int rank);

#endif
