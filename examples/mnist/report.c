/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.c - progress goes to stderr, results to stdout. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/say.h"

bool report_open(report *r, const options *opts, int rank, int64_t samples)
{
    progress_open(&r->progress, rank);
    r->epochs = opts->epochs;
    r->samples = samples;
    r->loss = calloc((size_t)r->epochs, sizeof *r->loss);
    r->seconds = calloc((size_t)r->epochs, sizeof *r->seconds);
    if (r->loss == NULL || r->seconds == NULL)
        return say("no memory for the losses of %" PRId64 " epochs", r->epochs);
    if (r->progress.speaks && opts->losses != NULL && (r->losses = fopen(opts->losses, "w")) == NULL)
        return say("cannot write '%s': %s", opts->losses, strerror(errno));
    r->began = r->epoch_began = progress_now();
    return true;
}

static void show(report *r, double at)
{
    const double done = (double)(r->epoch * r->samples + r->seen);
    const double left = (double)(r->epochs * r->samples) - done;
    const double elapsed = at - r->began;

    progress_show(&r->progress, "epoch %" PRId64 "/%" PRId64 "  %3.0f %%  %.0f images/s  ETA %.0f s", r->epoch + 1,
                  r->epochs, 100.0 * (double)r->seen / (double)r->samples,
                  (double)r->seen / (at - r->epoch_began + 1e-9), elapsed * left / done);
}

void report_step(report *r, int64_t samples)
{
    r->seen += samples;
    if (progress_due(&r->progress))
        show(r, progress_now());
}

bool report_loss(report *r, double loss)
{
    return r->losses == NULL || fprintf(r->losses, "%.9g\n", loss) > 0 ||
           say("cannot write the losses: %s", strerror(errno));
}

void report_epoch(report *r, double loss)
{
    const double at = progress_now();

    show(r, at);
    r->loss[r->epoch] = loss;
    r->seconds[r->epoch] = at - r->epoch_began;
    r->epoch++;
    r->seen = 0;
    r->epoch_began = at;
}

void report_end(report *r)
{
    progress_clear(&r->progress);
}

bool report_close(report *r)
{
    const bool written = r->losses == NULL || fclose(r->losses) == 0;

    free(r->loss);
    free(r->seconds);
    return written || say("cannot write the losses: %s", strerror(errno));
}
