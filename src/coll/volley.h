/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/volley.h - a number that two threads raise in turn, for who measures what passes between two cores.
 *
 * True    Whoever awaits a turn sees, with acquire order, what the other has written before it raised the number, with release
 *         order. The number has a line to itself. */
#ifndef TTI_COLL_VOLLEY_H
#define TTI_COLL_VOLLEY_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "transport/heap.h"

typedef struct tti_volley {
    _Alignas(TTI_LINE) _Atomic uint32_t turn;
    _Alignas(TTI_LINE) _Atomic bool over; /* given up; either may say so */
    int64_t deadline_ns;
} tti_volley;

/** Wait until it is that turn; yields: the core is given away meanwhile. False: the other one gave up, or it is too late. */
static inline bool tti_volley_await(tti_volley *v, uint32_t turn, bool yields)
{
    uint32_t looks;

    for (looks = 1; atomic_load_explicit(&v->turn, memory_order_acquire) != turn; looks++) {
        if (yields)
            sched_yield();
        else
            tti_pause();
        if (looks % 1024 != 0)
            continue;
        if (tti_port_now(tti_port_system()) > v->deadline_ns)
            atomic_store_explicit(&v->over, true, memory_order_relaxed);
        if (atomic_load_explicit(&v->over, memory_order_relaxed))
            return false;
    }
    return true;
}

#endif
