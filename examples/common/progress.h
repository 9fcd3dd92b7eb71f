/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.h - how far a program is, on stderr: a terminal gets one line that changes, a file or the launcher's pipe a
 * line now and then, by the clock, for whoever looks in. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <tutti/status.h>

typedef struct progress {
    bool speaks;  /* rank 0 */
    bool live;    /* stderr is a terminal */
    double shown; /* when there was a line; monotonic, in s */
} progress;

/* In s, monotonic. */
double progress_now(void);

void progress_open(progress *p, int rank);

/* Whether it is time for a line. */
bool progress_due(const progress *p);

/* A line, due or not, on rank 0. */
void progress_show(progress *p, const char *fmt, ...) TUTTI_PRINTF(2, 3);

/* Take the line off the terminal. */
void progress_clear(const progress *p);

#endif
