/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model.h - GPT-2 over bytes. */
#ifndef MODEL_H
#define MODEL_H

#include <tutti/nn.h>

enum { MODEL_BYTES = 256 }; /* what a token can be */

typedef struct model_shape {
    int64_t layers, heads, width, context;
    double dropout;
} model_shape;

/* From tokens, i64 [B, T], T <= context, to scores of what follows each, [B * T, MODEL_BYTES]. Parameters are drawn
 * from the thread's default generator. A failure is kept: ask tutti_tensor_check(). */
tutti_module *model_create(const model_shape *shape);

#endif
