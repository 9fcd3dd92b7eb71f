/* SPDX-License-Identifier: BSD-3-Clause
 *
 * saved.h - checkpoints: all that a run needs to go on as if it had never stopped. */
#ifndef SAVED_H
#define SAVED_H

#include <tutti/nn.h>
#include <tutti/optim.h>

#include "options.h"
#include "text.h"

/* Where a run is. */
typedef struct place {
    int64_t step;    /* that are done */
    int64_t planned; /* to do in all; 0: not yet known */
    int64_t epoch;   /* these two: of the order of windows */
    int64_t window;
    double seconds;  /* spent */
} place;

/* Whose it is; all borrowed. */
typedef struct saved {
    const char *path;
    const options *opts;
    const text *text;
    tutti_module *net;
    tutti_optim *optim;
    int rank, size;
} saved;

/* Write it, as a whole or not at all. Every rank calls it. */
bool saved_write(const saved *s, const place *at);

/* Go on from it: network, optimizer, random numbers of this rank, place. Every rank calls it. Rank 0 reads; the
 * others get all from it but the network, which a ddp hands on when it is made. */
bool saved_read(const saved *s, place *at_out);

#endif
