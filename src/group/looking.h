/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/looking.h - a thread that looks at a store now and then, while another one waits for members that may have left word there
 * that they do not come. */
#ifndef TTI_GROUP_LOOKING_H
#define TTI_GROUP_LOOKING_H

#include "group/group.h"

/** Whether there is what is looked for. On the looking thread, whose waits in stores end with the looking. */
typedef bool tti_look_fn(void *context);

/** In the memory of who looks, and only there: its address is the thread's. */
typedef struct tti_looking {
    tti_port    *port;
    tti_look_fn *look;
    void        *context;
    int64_t      pause_ns; /* between two looks */
    int64_t      until_ns; /* nobody looks behind that; TTI_FOREVER */
    tti_thread   thread;
    tti_event    changed; /* over */
    _Atomic bool over;
    _Atomic bool found;
} tti_looking;

/** Have look(context) called now and then by a thread of that name until it says true; for a group of so many members, which
 * all look: the more they are, the seldomer each does. looking is zeroed.
 * @errors  as tti_thread_start(); nobody looks then, and nothing is to be ended */
tutti_status tti_looking_begin(tti_looking *looking, const char *name, tti_port *port, int n_members, int64_t until_ns,
                               tti_look_fn *look, void *context);
/** Whether it is too late to go on looking. For the looking thread, between two requests. */
bool tti_looking_is_over(const tti_looking *looking);
/** Whether it was found: then what look() has written before can be read. Never waits. */
bool tti_looking_found(const tti_looking *looking);
/** Look no more, and wait for the thread: for a request that it is at no longer than a store takes to heed that. */
void tti_looking_end(tti_looking *looking);

#endif
