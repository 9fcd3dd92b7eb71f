/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/stopped.h - a job whose last ranks do not run: somebody has to be told. */
#ifndef TTI_ELASTIC_STOPPED_H
#define TTI_ELASTIC_STOPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Zeroed: nobody is stopped. */
typedef struct tti_stopped {
    int64_t looked_ns; /* when all that are left were last seen so; 0: they were not */
    int64_t for_ns;    /* for how long they have been, as far as somebody looked */
    int64_t said_ns;   /* how long that was when it was said last */
} tti_stopped;

/** A process that has not ended, for the words. */
typedef struct tti_left {
    pid_t pid;
    int   rank; /* -1: a replacement */
} tti_left;

enum { TTI_STOPPED_LOOK_MS = 1000 };

/** Look at those that are left, now and then, once others have ended: every 10 s it is said who is stopped by a signal, if all
 * of them are. A debugger's stop does not count.
 * @param limit_ns  for the words: when they are ended; 0: they are not
 * @return how long they have been stopped, ns, of which a launcher that did not run itself counts little; 0: they are not */
int64_t tti_stopped_look(tti_stopped *stopped, const tti_left *left, int n, int64_t now_ns, int64_t limit_ns);

#endif
