/* SPDX-License-Identifier: BSD-3-Clause
 *
 * feed.h - which pictures this rank trains on, and in what order. */
#ifndef FEED_H
#define FEED_H

#include <tutti/data.h>
#include <tutti/tensor.h>

#include "options.h"

typedef struct feed {
    tutti_dataset *train;
    tutti_dataset *test;
    tutti_loader loader;    /* over this rank's samples, or over all where batches are shared */
    int64_t *memory;        /* the loader's: samples, then their order */
    tutti_generator *order; /* what shuffles; NULL: the thread's default generator */
    bool shared;            /* batches are one order's, and each rank takes a part of each */
    int rank, size;
} feed;

/* Pictures [n, 1, 28, 28] and labels [n], as tensors of the open scope. */
typedef struct batch {
    tutti_tensor *x, *y;
    int64_t n;   /* samples of this rank; 0 is possible where batches are shared */
    int64_t all; /* samples of all ranks */
} batch;

/* Open the data and cut it for rank of size; *f is zeroed. Draws nothing from generators. */
bool feed_open(feed *f, const options *opts, int rank, int size);

/* Begin an epoch in a new order. */
bool feed_shuffle(feed *f);

/* The next batch of the epoch; after the last one *more_out is false. */
bool feed_next(feed *f, batch *batch_out, bool *more_out);

/* n samples by number. */
bool feed_fetch(const tutti_dataset *ds, const int64_t *samples, int64_t n, batch *batch_out);

/* Cut n into size parts, as equal as whole numbers can be. Returns how many are part number rank;
 * they begin at *first_out. */
int64_t feed_part(int64_t n, int rank, int size, int64_t *first_out);

/* Samples of one epoch, all ranks together. */
int64_t feed_samples(const feed *f);

/* Free what there is. */
void feed_close(feed *f);

#endif
