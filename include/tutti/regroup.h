/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/regroup.h - groups out of groups: divided into parts.
 *
 * What tutti/group.h says of groups holds here. Functions that make a group give TUTTI_NO_GROUP on failure
 * and TUTTI_NON_MEMBER to a rank that is not in it, and to one whose own group is TUTTI_NON_MEMBER. */
#ifndef TUTTI_REGROUP_H
#define TUTTI_REGROUP_H

#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Divide a group into groups. All members of parent call it with the same lists, and nobody else.
 *
 * @param parent       any group; its connections are used, and it stays as it is
 * @param split_ranks  [n_lists] lists of ranks of parent (not global ones), of which no two have a rank in
 *                     common; their order does not matter, groups are in the order of parent
 * @param n_ranks      [n_lists] how many each list has
 * @param opts         of every part; NULL: every default, which are parent's time-out and a description
 *                     "<parent>:split:<n>" in the n-th split
 * @param group_out    the part that this rank is in, or TUTTI_NON_MEMBER
 *
 * @errors   TUTTI_E_ARG      no lists, an empty list, a rank out of range, twice, or in two lists; found
 *                            before anything is made
 *           TUTTI_E_STATE    there is no world
 *           TUTTI_E_TIMEOUT  a member of the part did not come; the text names it
 *           TUTTI_E_PEER     one of this host is gone, and had not come
 *           TUTTI_E_MISMATCH another rank has other members in this part
 *           what finished parent, if it is finished
 * @threads  one at a time per parent
 * @source   torch.distributed.split_group (which needs a group bound to a device, and checks no list beyond
 *           the caller's own) */
TUTTI_API tutti_status tutti_split_group(tutti_group *parent, const int *const *split_ranks,
                                         const int *n_ranks, int n_lists, const tutti_group_options *opts,
                                         tutti_group **group_out);

/** The same with one number instead of lists: ranks that give the same color become a group, in the order of
 * parent. The colors are exchanged, so this is also a collective of parent, in its turn.
 *
 * @param color  below 0: in no group
 * @errors   as tutti_split_group, and tutti_all_gather_into_tensor on parent
 * @threads  one at a time per parent
 * @source   ours (MPI has it with a key) */
TUTTI_API tutti_status tutti_split_group_by_color(tutti_group *parent, int32_t color,
                                                  const tutti_group_options *opts,
                                                  tutti_group **group_out);

#ifdef __cplusplus
}
#endif
#endif
