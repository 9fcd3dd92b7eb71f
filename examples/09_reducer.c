/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 09_reducer.c - data-parallel training of a transformer that knows nothing of it: DDP's reducer, no tensor library.
 *
 * transformer.c is a language model in plain C with a backward of its own. What it needs to be trained on many ranks
 * stands here: a table of its parameters, their gradients in the reducer's memory, one call when a gradient is complete.
 * Each rank has a part of the batch. At the end every rank trains a second model on the whole batch alone, and compares.
 *
 * Ranks: any number.
 *
 *     cc 09_reducer.c transformer.c -o 09_reducer $(pkg-config --cflags --libs tutti) -lm
 *     tutti run --standalone --nproc-per-node=2 ./09_reducer */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>
#include "transformer.h"

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return tutti_last_error()

enum { BATCH = 2, STEPS = 20, ROW = CONTEXT + 1 };

static const float LEARNING_RATE = 0.3f;

/* The sequences of a step, of which a rank takes its part. */
static void draw(uint8_t *bytes, int step, int first, int n)
{
    static const char text[] = "each rank has a part of the batch, and makes gradients of it; the reducer puts them "
                               "into buckets, and as soon as a bucket is full its average begins to be made while "
                               "the backward goes on; at the end all ranks have the same gradients, and make the "
                               "same step.";
    int               s;

    for (s = 0; s < n; s++)
        memcpy(bytes + s * ROW, text + (step * 37 + (first + s) * 61) % ((int)sizeof text - ROW), ROW);
}

/* The optimizer: plain descent. */
static void descend(parameter *p, float *const *grads)
{
    int64_t k;
    int     i;

    for (i = 0; i < N_PARAMS; i++)
        for (k = 0; k < p[i].numel; k++)
            p[i].value[k] -= LEARNING_RATE * grads[i][k];
}

/* ---- on all ranks: this is the glue ---- */

typedef struct job {
    tutti_reducer *reducer;
    tutti_status   st; /* of the first mark that failed */
} job;

static tutti_status create_reducer(const parameter *p, tutti_reducer **reducer_out)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[N_PARAMS] = { { 0 } };
    int                   i;

    opts.gradient_as_bucket_view = true;
    opts.bucket_cap_bytes = 64 << 10; /* small, as the model is */
    for (i = 0; i < N_PARAMS; i++) {
        params[i].name = p[i].name;
        params[i].dtype = TUTTI_F32;
        params[i].numel = p[i].numel;
        params[i].ndim = 2;
        params[i].sizes = p[i].sizes;
    }
    return tutti_reducer_create(params, N_PARAMS, &opts, reducer_out);
}

static tutti_status same_values(const parameter *p)
{
    tutti_span spans[N_PARAMS];
    int        i;

    for (i = 0; i < N_PARAMS; i++)
        spans[i] = TUTTI_SPAN(p[i].value, p[i].numel);
    return tutti_broadcast_coalesced(spans, N_PARAMS, 0, 0, NULL);
}

static void gradient_is_ready(void *ctx, int i)
{
    job *j = ctx;

    if (tutti_reducer_mark_ready(j->reducer, i) != TUTTI_OK)
        j->st = TUTTI_E_STATE;
}

static const char *train(transformer *model, int rank, float *loss_out)
{
    parameter *p = transformer_parameters(model);
    job        j = { NULL, TUTTI_OK };
    uint8_t    bytes[BATCH * ROW];
    float     *grads[N_PARAMS];
    int        step, i;

    TRY(create_reducer(p, &j.reducer));
    TRY(same_values(p));
    for (step = 0; step < STEPS; step++) {
        TRY(tutti_reducer_prepare_for_forward(j.reducer));
        for (i = 0; i < N_PARAMS; i++) { /* their places, which move once */
            grads[i] = tutti_reducer_grad(j.reducer, i);
            memset(grads[i], 0, (size_t)p[i].numel * sizeof(float));
        }
        draw(bytes, step, rank * BATCH, BATCH);
        *loss_out = transformer_forward(model, bytes);
        TRY(tutti_reducer_prepare_for_backward(j.reducer, NULL, 0));
        transformer_backward(model, grads, gradient_is_ready, &j);
        TRY(tutti_reducer_finish(j.reducer));
        descend(p, grads);
    }
    tutti_reducer_free(j.reducer);
    return tutti_all_reduce(TUTTI_SPAN(loss_out, 1), TUTTI_AVG, NULL) == TUTTI_OK ? NULL : tutti_last_error();
}

/* ---- the same by one rank alone ---- */

static void nobody_waits(void *ctx, int i)
{
    (void)ctx;
    (void)i;
}

static int train_alone(transformer *model, int batch, float *first_out, float *last_out)
{
    parameter *p = transformer_parameters(model);
    uint8_t   *bytes = malloc((size_t)batch * ROW);
    float     *grads[N_PARAMS];
    int        step, i, good = bytes != NULL;

    for (i = 0; i < N_PARAMS; i++)
        good &= (grads[i] = malloc((size_t)p[i].numel * sizeof(float))) != NULL;
    for (step = 0; good && step < STEPS; step++) {
        for (i = 0; i < N_PARAMS; i++)
            memset(grads[i], 0, (size_t)p[i].numel * sizeof(float));
        draw(bytes, step, 0, batch);
        *last_out = transformer_forward(model, bytes);
        *first_out = step == 0 ? *last_out : *first_out;
        transformer_backward(model, grads, nobody_waits, NULL);
        descend(p, grads);
    }
    for (i = 0; i < N_PARAMS; i++)
        free(grads[i]);
    free(bytes);
    return good;
}

static float difference(const parameter *a, const parameter *b)
{
    float   most = 0.0f;
    int64_t k;
    int     i;

    for (i = 0; i < N_PARAMS; i++)
        for (k = 0; k < a[i].numel; k++)
            most = fmaxf(most, fabsf(a[i].value[k] - b[i].value[k]));
    return most;
}

static const char *run(void)
{
    transformer *model, *alone;
    float        loss = 0.0f, first = 0.0f, last = 0.0f, off;
    const char  *failure;
    int          rank, size;

    TRY(tutti_init_process_group(NULL));
    rank = tutti_get_rank(NULL);
    size = tutti_get_world_size(NULL);
    model = transformer_create(BATCH, 1 + (unsigned)rank); /* rank 0's values will be everybody's */
    alone = transformer_create(BATCH * size, 1);
    if (model == NULL || alone == NULL)
        return "no memory for the models";
    if ((failure = train(model, rank, &loss)) != NULL)
        return failure;
    if (!train_alone(alone, BATCH * size, &first, &last))
        return "no memory for gradients";
    off = difference(transformer_parameters(model), transformer_parameters(alone));
    if (rank == 0)
        printf("loss %.4f -> %.4f, alone %.4f; parameters differ by %.1e at most\n", (double)first, (double)loss,
               (double)last, (double)off);
    if (off > 1e-4f || fabsf(loss - last) > 1e-4f || !(last < 0.8f * first))
        return "the model is not what one rank alone has trained";
    printf("rank %d: the model is as if trained alone\n", rank);
    transformer_free(model);
    transformer_free(alone);
    TRY(tutti_destroy_process_group(NULL));
    return NULL;
}

int main(void)
{
    const char *failure = run();

    if (failure != NULL)
        fprintf(stderr, "%s\n", failure);
    return failure != NULL;
}
