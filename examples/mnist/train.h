/* SPDX-License-Identifier: BSD-3-Clause
 *
 * train.h - one network, one optimizer, and the steps that all ranks make together. */
#ifndef TRAIN_H
#define TRAIN_H

#include <tutti/nn.h>
#include <tutti/optim.h>

#include "feed.h"
#include "report.h"

typedef struct trainer {
    const options *opts;
    feed feed;
    report report;
    tutti_module *net;
    tutti_optim *sgd;
    int size; /* of the world */
} trainer;

/* Seed, open the data, make the network; *t is zeroed. Every rank calls it. */
bool train_open(trainer *t, const options *opts);

/* One epoch. Every rank calls it. */
bool train_epoch(trainer *t);

/* Free what there is. False if the losses could not be written. */
bool train_close(trainer *t);

#endif
