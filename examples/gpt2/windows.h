/* SPDX-License-Identifier: BSD-3-Clause
 *
 * windows.h - which pieces of the text this rank learns from, and in what order. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <tutti/data.h>
#include <tutti/tensor.h>

#include "text.h"

typedef struct windows {
    const text *text;
    tutti_distributed_sampler sampler;
    int64_t context;
    int64_t batch;   /* windows of a step, of this rank */
    int64_t steps;   /* of an epoch */
    int64_t *index;  /* this rank's windows of the epoch, in order */
    int64_t epoch;   /* these two are the place in the order: what is next */
    int64_t step;    /* of the epoch */
    int64_t loaded;  /* the epoch that index is of; -1: none */
    uint64_t seed;
} windows;

/* batch: windows of a step, all ranks together, a multiple of size. *w is zeroed; the text stays the caller's. */
bool windows_open(windows *w, const text *t, int64_t context, int64_t batch, uint64_t seed, int rank, int size);

/* The next bytes [batch, context] and the bytes that follow each [batch * context], i64, of the open scope. */
bool windows_next(windows *w, tutti_tensor **x_out, tutti_tensor **y_out);

void windows_close(windows *w);

#endif
