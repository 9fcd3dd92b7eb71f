/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.c - a line that replaces the one before, or follows it. */
#include "examples/common/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double LIVE_S = 0.1, LINES_S = 5.0; /* at least, between two lines */

double progress_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_open(progress *p, int rank)
{
    p->speaks = rank == 0;
    p->live = isatty(STDERR_FILENO) == 1;
    p->shown = progress_now();
}

bool progress_due(const progress *p)
{
    return p->speaks && progress_now() - p->shown >= (p->live ? LIVE_S : LINES_S);
}

void progress_show(progress *p, const char *fmt, ...)
{
    va_list args;

    if (!p->speaks)
        return;
    if (p->live)
        fputc('\r', stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputs(p->live ? "\033[K" : "\n", stderr); /* what an older, longer line has more */
    p->shown = progress_now();
}

void progress_clear(const progress *p)
{
    if (p->speaks && p->live)
        fputs("\r\033[K", stderr);
}
