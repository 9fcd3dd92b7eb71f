/* SPDX-License-Identifier: BSD-3-Clause
 *
 * curve.h - what a run has come to, step by step: tables that grow, and a picture of them. */
#ifndef CURVE_H
#define CURVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct curve {
    const char *dir; /* NULL: this rank writes nothing */
    FILE *losses, *held_out;
} curve;

/* Begin the tables losses.tsv and held_out.tsv in a folder, which is made if it is not there. After a checkpoint of
 * step (above 0) they go on: rows that come from later steps are cut off. *c is zeroed. */
bool curve_open(curve *c, const char *dir, int64_t step);

/* Mean loss of a step in nats, learning rate and norm of the gradient. */
bool curve_loss(curve *c, int64_t step, double loss, double lr, double norm);

/* Bits per held-out byte after so many steps, seconds of training and bytes learned from. */
bool curve_held_out(curve *c, int64_t step, double seconds, int64_t bytes, double bits);

/* Bring to disk what there is. */
bool curve_flush(curve *c);

/* curve.svg: both tables in bits per byte over steps, and a level to compare with. */
bool curve_draw(curve *c, double level, const char *level_name);

/* False if something could not be written. */
bool curve_close(curve *c);

#endif
