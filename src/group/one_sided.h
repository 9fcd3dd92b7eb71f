/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/one_sided.h - a window as the files of one-sided access see it.
 *
 *   window.c       puts, gets, signals: one rank's calls
 *   window_make.c  what all members do together, and the end */
#ifndef TTI_GROUP_ONE_SIDED_H
#define TTI_GROUP_ONE_SIDED_H

#include "group/group.h"
#include <tutti/window.h>

/** What a member registered. */
typedef struct tti_window_part {
    int64_t     count;
    tutti_dtype dtype;
} tti_window_part;

struct tutti_window {
    tti_runner   *runner;
    char          group_name[TTI_GROUP_NAME_MAX];
    tutti_group  *group; /* guarded by runner->lock; NULL: it was destroyed */
    tutti_window *next;  /* among the group's; guarded by runner->lock */
    /* Written by what all members do together, while no other thread uses the window. */
    tutti_backend_window *handle; /* NULL: nothing is registered */
    tti_window_part      *parts;  /* [group size], by group rank; while there is a handle */
};

/** The table of what a group's windows run on.
 * @errors TUTTI_E_UNSUPPORTED  its backend has none */
tutti_status tti_window_ops_of(const tutti_group *group, const char *what, const tutti_window_ops **ops_out);
/** The group of a window, which the caller may use until it leaves it. needs_part: something is registered.
 * @errors TUTTI_E_ARG, TUTTI_E_STATE, or what finished the group */
tutti_status tti_window_enter(tutti_window *window, const char *what, bool needs_part, tutti_group **group_out);
/** tutti_window_flush() of a group that the caller is inside of; peer is a group rank, -1: all. */
tutti_status tti_window_flush_peers(tutti_window *window, tutti_group *group, const char *what, int peer);

#endif
