/* SPDX-License-Identifier: BSD-3-Clause
 *
 * train.h - a run: everything between the first byte that is read and the last one that is made up. */
#ifndef TRAIN_H
#define TRAIN_H

#include <tutti/ddp.h>
#include <tutti/optim.h>

#include "curve.h"
#include "examples/common/progress.h"
#include "options.h"
#include "saved.h"
#include "text.h"
#include "windows.h"

typedef struct trainer {
    const options *opts;
    text text;
    windows windows;
    tutti_module *net;
    tutti_ddp *ddp;
    tutti_optim *adamw;
    tutti_lr_scheduler *schedule;
    saved saved;
    place at;
    curve curve;
    progress progress;
    char checkpoint[4096];
    double level;        /* bits per held-out byte of the 3-gram model; on rank 0 */
    double bits;         /* of the network, the last time it was measured; NaN: not in this run */
    double loss;         /* of the last step, all ranks */
    double began;        /* this run, and place.seconds, at that moment; monotonic, in s */
    double before;
    double eval_seconds; /* the last measurement took */
    double step_seconds; /* steps of this run, together */
    int64_t first;       /* the step that this run began with */
    int rank, size;
    int stopped;         /* by a signal: its number; 0: not */
    bool resume;         /* it goes on from the checkpoint */
    bool timed_out;      /* --minutes are over */
} trainer;

/* Take SIGTERM and SIGINT as the wish to stop after the step under way, from now on. */
void train_catch_signals(void);

/* Read the text, make or read the network; *t is zeroed. Every rank calls these. */
bool train_open(trainer *t, const options *opts);

/* All steps that are left, with measurements and checkpoints. */
bool train_run(trainer *t);

/* Free what there is. False if the tables could not be written. */
bool train_close(trainer *t);

#endif
