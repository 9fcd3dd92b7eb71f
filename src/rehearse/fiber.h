/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rehearse/fiber.h - threads that one thread of the machine runs in turns. */
#ifndef TTI_REHEARSE_FIBER_H
#define TTI_REHEARSE_FIBER_H

#include <tutti/status.h>

typedef struct tti_fiber tti_fiber;

/** A stack and a place to go on from; body(arg) begins with the first tti_fiber_run(). It has thread-local variables of its
 * own, which begin as the caller's are now.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_fiber_create(void (*body)(void *arg), void *arg, tti_fiber **fiber_out);
/** Not the running one. NULL is fine. */
void tti_fiber_destroy(tti_fiber *fiber);
/** On the thread that made it, outside of fibers: go on with it until it pauses, or body has returned, after which it must not
 * be run again. */
void tti_fiber_run(tti_fiber *fiber);
/** Inside of it: back to whoever runs it. */
void tti_fiber_pause(tti_fiber *fiber);

#endif
