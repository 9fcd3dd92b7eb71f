/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transformer.h - a small language model over bytes in plain C: no library, hand-written gradients.
 *
 * It is what somebody has who comes with an engine of his own: arrays of parameters, arrays of gradients, and a backward
 * that knows when each gradient is complete. 09_reducer.c trains it on several ranks. */
#ifndef TRANSFORMER_H
#define TRANSFORMER_H

#include <stdint.h>

enum { VOCAB = 128, CONTEXT = 32, WIDTH = 48, HEADS = 4, LAYERS = 2, PER_LAYER = 12, N_PARAMS = 5 + LAYERS * PER_LAYER };

typedef struct parameter {
    char    name[32];
    int64_t sizes[2]; /* rows, columns; 1 row: a vector */
    int64_t numel;
    float  *value;
} parameter;

typedef struct transformer transformer;

/* A model for batches of that many sequences; the same parameters for the same seed. NULL: no memory. */
transformer *transformer_create(int batch, unsigned seed);
void         transformer_free(transformer *model);
/* [N_PARAMS], in the order of the forward. */
parameter *transformer_parameters(transformer *model);

/* The mean loss of predicting bytes[s][1 ..] from bytes[s][0 ..], s < batch, each sequence CONTEXT + 1 long. */
float transformer_forward(transformer *model, const uint8_t *bytes);
/* Add the gradients of the last forward to grads[i]; ready(ctx, i) is called when grads[i] is complete. */
void transformer_backward(transformer *model, float *const *grads, void (*ready)(void *ctx, int i), void *ctx);

#endif
