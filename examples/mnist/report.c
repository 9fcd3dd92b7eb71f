/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.c - progress goes to stderr, results to stdout. A terminal gets one line that changes; a file or
 * the launcher's pipe gets a line now and then, by the clock, for whoever looks in. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

static const double LIVE_S = 0.1, LINES_S = 5.0; /* at least, between two looks at the progress */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool report_open(report *r, const options *opts, int rank, int64_t samples)
{
    r->speaks = rank == 0;
    r->live = isatty(STDERR_FILENO) == 1;
    r->epochs = opts->epochs;
    r->samples = samples;
    r->loss = calloc((size_t)r->epochs, sizeof *r->loss);
    r->seconds = calloc((size_t)r->epochs, sizeof *r->seconds);
    if (r->loss == NULL || r->seconds == NULL)
        return say("no memory for the losses of %" PRId64 " epochs", r->epochs);
    if (r->speaks && opts->losses != NULL && (r->losses = fopen(opts->losses, "w")) == NULL)
        return say("cannot write '%s': %s", opts->losses, strerror(errno));
    r->began = r->epoch_began = r->shown = now();
    return true;
}

static void show(report *r, double at, const char *end)
{
    const double done = (double)(r->epoch * r->samples + r->seen);
    const double left = (double)(r->epochs * r->samples) - done;
    const double elapsed = at - r->began;

    fprintf(stderr, "%sepoch %" PRId64 "/%" PRId64 "  %3.0f %%  %.0f images/s  ETA %.0f s%s",
            r->live ? "\r" : "", r->epoch + 1, r->epochs,
            100.0 * (double)r->seen / (double)r->samples,
            (double)r->seen / (at - r->epoch_began + 1e-9), elapsed * left / done, end);
    r->shown = at;
}

void report_step(report *r, int64_t samples)
{
    const double at = now();

    r->seen += samples;
    if (r->speaks && at - r->shown >= (r->live ? LIVE_S : LINES_S))
        show(r, at, r->live ? "  " : "\n");
}

bool report_loss(report *r, double loss)
{
    return r->losses == NULL || fprintf(r->losses, "%.9g\n", loss) > 0 ||
           say("cannot write the losses: %s", strerror(errno));
}

void report_epoch(report *r, double loss)
{
    const double at = now();

    if (r->speaks)
        show(r, at, r->live ? "  " : "\n");
    r->loss[r->epoch] = loss;
    r->seconds[r->epoch] = at - r->epoch_began;
    r->epoch++;
    r->seen = 0;
    r->epoch_began = at;
}

void report_end(report *r)
{
    if (r->speaks && r->live)
        fprintf(stderr, "\r%60s\r", "");
}

bool report_close(report *r)
{
    const bool written = r->losses == NULL || fclose(r->losses) == 0;

    free(r->loss);
    free(r->seconds);
    return written || say("cannot write the losses: %s", strerror(errno));
}
