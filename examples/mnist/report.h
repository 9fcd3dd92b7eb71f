/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.h - what a run says while it trains: a line of progress, the loss of every step. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "examples/common/progress.h"
#include "options.h"

typedef struct report {
    progress progress;
    FILE *losses;    /* --losses, on rank 0 */
    double *loss;    /* [epochs], of this rank */
    double *seconds; /* [epochs] */
    int64_t epochs;  /* to train */
    int64_t epoch;   /* that are done */
    int64_t samples; /* of an epoch, all ranks together */
    int64_t seen;    /* in this epoch */
    double began;    /* the run; monotonic, in s, as all of these */
    double epoch_began;
} report;

/* Begin; *r is zeroed. samples: of one epoch, all ranks together. */
bool report_open(report *r, const options *opts, int rank, int64_t samples);

/* A step over all ranks' samples. */
void report_step(report *r, int64_t samples);

/* The mean loss of a step over all ranks, for --losses. */
bool report_loss(report *r, double loss);

/* An epoch is over; loss is this rank's mean. */
void report_epoch(report *r, double loss);

/* The last epoch is over: take the line off the terminal. */
void report_end(report *r);

/* Free what there is. False if the losses could not be written. */
bool report_close(report *r);

#endif
