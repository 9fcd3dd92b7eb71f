/* SPDX-License-Identifier: BSD-3-Clause
 *
 * points.h - places inside the library at which a test may let something happen.
 *
 * Why     A rank that dies "some time during a call" dies at the same few places nearly always: where calls wait.
 *         To die, stop or fail between any two of the things that others can see, these must be counted.
 * How     A program linked with
 *             port.c    passes a point before each call of the system port that leaves the process: the linker
 *                       gives tti_port_system() another body (--wrap)
 *             stores.c  passes one before each store to memory that processes share: the rooms that write there are
 *                       compiled once more, as for the thread sanitizer, whose functions this file has. Copies into
 *                       such memory pass another one when they are half done
 *         What happens at a point is the business of the function that watches.
 * True    Nothing of the library knows of it, and its sources are the ones that are shipped. */
#ifndef TT_TORTURE_POINTS_H
#define TT_TORTURE_POINTS_H

#include <stdatomic.h>
#include <stdint.h>
#include "base/port.h"

typedef enum tt_point {
    TT_AT_RESOLVE,
    TT_AT_LISTEN,
    TT_AT_CONNECT,
    TT_AT_CONNECT_RESULT,
    TT_AT_ACCEPT,
    TT_AT_SEND,
    TT_AT_RECV,
    TT_AT_SEND_FDS,
    TT_AT_RECV_FDS,
    TT_AT_ASK,  /* the kernel, about a stream or the machine */
    TT_AT_BELL, /* one is made, or rung; or a sign of life is made */
    TT_AT_POLL,
    TT_AT_WAIT, /* on a word of memory */
    TT_AT_WAKE,
    TT_AT_STORE, /* to shared memory */
    TT_POINTS
} tt_point;

#define TT_POINT_BIT(at) (1u << (at))
#define TT_POINTS_ALL ((1u << TT_POINTS) - 1)

enum { TT_SHORT = -1 };

/** At a point, before what is done there. 0: go on; TT_SHORT: a send or recv moves one byte; else the errno that the
 * call fails with, where it can fail. Points are passed by all threads. */
typedef int (*tt_point_fn)(tt_point at, tti_handle handle);

/** Who watches; NULL: nobody. */
extern _Atomic(tt_point_fn) tt_at_point;

const char *tt_point_name(tt_point at);

static inline int tt_pass(tt_point at, tti_handle handle)
{
    const tt_point_fn fn = atomic_load_explicit(&tt_at_point, memory_order_acquire);

    return fn == NULL ? 0 : fn(at, handle);
}

#endif
