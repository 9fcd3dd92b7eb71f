/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rehearse/fiber.h - threads that one thread of the machine runs in turns. */
#ifndef TTI_REHEARSE_FIBER_H
#define TTI_REHEARSE_FIBER_H

#include <stddef.h>
#include <tutti/status.h>

typedef struct tti_fiber tti_fiber;

/** The fibers of a thread, and that thread, between which its thread-local variables go from hand to hand. */
typedef struct tti_crew {
    void      *at; /* the variables of whoever ran last */
    size_t     bytes;
    void      *own;  /* the thread's, while a fiber's are there */
    tti_fiber *here; /* whose are there; NULL: the thread's */
} tti_crew;

/** On the thread that all of it happens on.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_crew_begin(tti_crew *crew);
/** The thread's own variables are there again: before it uses any, outside of fibers. */
void tti_crew_home(tti_crew *crew);
/** Its fibers are destroyed. One that was not begun is fine. */
void tti_crew_end(tti_crew *crew);

/** A stack and a place to go on from; body(arg) begins with the first tti_fiber_run(). It has thread-local variables of its
 * own, which begin as the caller's are now.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_fiber_create(tti_crew *crew, void (*body)(void *arg), void *arg, tti_fiber **fiber_out);
/** Not the running one. NULL is fine. */
void tti_fiber_destroy(tti_fiber *fiber);
/** Outside of fibers: go on with it until it pauses, or body has returned, after which it must not be run again. Its
 * variables stay until another's, or tti_crew_home(). */
void tti_fiber_run(tti_fiber *fiber);
/** Inside of it: back to whoever runs it. */
void tti_fiber_pause(tti_fiber *fiber);

#endif
