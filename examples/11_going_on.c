/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 11_going_on.c - training that loses a rank and goes on, in the same processes; a new one takes the place.
 *
 * The model and the reducer are those of 09_reducer.c. At a certain step rank 1 kills itself in the middle of the backward.
 * The others get an error that names it, agree that they are those that are left, and go on with what rank 0
 * has: parameters change only when all gradients of a step are there, so everybody's are those after some whole step.
 * With the argument "replace" they then wait for one more process, which gets the parameters from them.
 *
 * Ranks: 3 or more.
 *
 *     cc 11_going_on.c transformer.c -o 11_going_on $(pkg-config --cflags --libs tutti) -lm
 *     tutti run --standalone --nproc-per-node=3 --on-failure=keep ./11_going_on
 *     tutti run --standalone --nproc-per-node=3 --on-failure=keep --replace=1 ./11_going_on replace */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>
#include <unistd.h>
#include "transformer.h"

#define TRY(call)                                                                                  \
    if ((call) != TUTTI_OK)                                                                        \
    return tutti_last_error()

enum { BATCH = 2, STEPS = 40, LAST_STEP_OF_RANK_1 = 12, ROW = CONTEXT + 1 };

static const float LEARNING_RATE = 0.3f;

typedef struct training {
    transformer   *model;
    tutti_reducer *reducer; /* of the present world */
    int64_t        step;    /* whole ones that were made */
    float          loss;    /* of the last one, on this rank's part */
    bool           dies;    /* this is rank 1 */
    bool           breaks;  /* a gradient could not be handed over */
} training;

/* ---- one step, as in 09_reducer.c ---- */

static void draw(uint8_t *bytes, int64_t step, int rank)
{
    static const char text[] = "each rank has a part of the batch, and makes gradients of it; when one of them is gone, "
                               "the others agree that they are those that are left, and go on with what they know; "
                               "a new one may come and take the place, and learns from them what they know.";
    int               s;

    for (s = 0; s < BATCH; s++)
        memcpy(bytes + s * ROW, text + (step * 37 + (rank * BATCH + s) * 61) % ((int)sizeof text - ROW), ROW);
}

static void gradient_is_ready(void *ctx, int i)
{
    training *t = ctx;

    if (t->dies && t->step == LAST_STEP_OF_RANK_1 && i == N_PARAMS / 2)
        kill(getpid(), SIGKILL); /* as if the machine had done it */
    if (tutti_reducer_mark_ready(t->reducer, i) != TUTTI_OK)
        t->breaks = true;
}

static tutti_status make_step(training *t)
{
    parameter *p = transformer_parameters(t->model);
    uint8_t    bytes[BATCH * ROW];
    float     *grads[N_PARAMS];
    int64_t    k;
    int        i;

    t->breaks = false;
    if (tutti_reducer_prepare_for_forward(t->reducer) != TUTTI_OK)
        return TUTTI_E_STATE;
    for (i = 0; i < N_PARAMS; i++) {
        grads[i] = tutti_reducer_grad(t->reducer, i);
        memset(grads[i], 0, (size_t)p[i].numel * sizeof(float));
    }
    draw(bytes, t->step, tutti_get_rank(NULL));
    t->loss = transformer_forward(t->model, bytes);
    if (tutti_reducer_prepare_for_backward(t->reducer, NULL, 0) != TUTTI_OK)
        return TUTTI_E_STATE;
    transformer_backward(t->model, grads, gradient_is_ready, t);
    if (tutti_reducer_finish(t->reducer) != TUTTI_OK || t->breaks)
        return TUTTI_E_STATE;
    for (i = 0; i < N_PARAMS; i++)
        for (k = 0; k < p[i].numel; k++)
            p[i].value[k] -= LEARNING_RATE * grads[i][k];
    t->step++;
    return TUTTI_OK;
}

/* ---- a world, old or new ---- */

/* Everybody gets what rank 0 has, and a reducer for this world. */
static const char *settle(training *t)
{
    parameter            *p = transformer_parameters(t->model);
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[N_PARAMS] = { { 0 } };
    tutti_span            spans[N_PARAMS];
    int                   i;

    opts.gradient_as_bucket_view = true;
    for (i = 0; i < N_PARAMS; i++) {
        params[i].name = p[i].name;
        params[i].dtype = TUTTI_F32;
        params[i].numel = p[i].numel;
        params[i].ndim = 2;
        params[i].sizes = p[i].sizes;
        spans[i] = TUTTI_SPAN(p[i].value, p[i].numel);
    }
    TRY(tutti_broadcast(TUTTI_SPAN(&t->step, 1), 0, NULL));
    TRY(tutti_broadcast_coalesced(spans, N_PARAMS, 0, 0, NULL));
    TRY(tutti_reducer_create(params, N_PARAMS, &opts, &t->reducer));
    return NULL;
}

/* A rank is gone: without it, and then perhaps with another one. */
static const char *go_on(training *t, bool replaced)
{
    tutti_group *world;

    fprintf(stderr, "rank %d at step %d: %s\n", tutti_get_rank(NULL), (int)t->step, tutti_last_error());
    tutti_reducer_free(t->reducer);
    t->reducer = NULL;
    TRY(tutti_shrink_group(NULL, 0, NULL, TUTTI_SHRINK_ABORT, NULL, &world));
    if (replaced && tutti_grow_group(NULL, NULL, 1, NULL, &world) != TUTTI_OK)
        return tutti_last_error();
    return settle(t);
}

static const char *train(training *t, bool replaced, bool is_new)
{
    float       at_loss = t->loss;
    const char *failure = settle(t);
    bool        lost_one = is_new;

    while (failure == NULL && t->step < STEPS) {
        if (make_step(t) == TUTTI_OK)
            continue;
        if (lost_one)
            return tutti_last_error(); /* one at most was to die */
        lost_one = true;
        at_loss = t->loss;
        failure = go_on(t, replaced);
    }
    if (failure != NULL)
        return failure;
    if (!lost_one || (!is_new && t->loss >= 0.9f * at_loss))
        return "the loss did not go on falling";
    printf("%s with %d rank%s, and the loss went on falling\n", is_new ? "came in, went on" : "went on",
           tutti_get_world_size(NULL), tutti_get_world_size(NULL) == 1 ? "" : "s");
    return NULL;
}

static const char *run(bool replaced)
{
    const bool   is_new = getenv("TUTTI_REPLACEMENT") != NULL;
    training     t = { .step = 0 };
    tutti_group *world;
    const char  *failure;

    TRY(is_new ? tutti_join_group(NULL, NULL, &world) : tutti_init_process_group(NULL));
    t.dies = !is_new && tutti_get_rank(NULL) == 1;
    t.model = transformer_create(BATCH, 1);
    if (t.model == NULL)
        return "no memory for the model";
    failure = train(&t, replaced, is_new);
    if (failure != NULL)
        return failure;
    tutti_reducer_free(t.reducer);
    transformer_free(t.model);
    TRY(tutti_destroy_process_group(NULL));
    return NULL;
}

int main(int argc, char **argv)
{
    const char *failure = run(argc > 1 && strcmp(argv[1], "replace") == 0);

    if (failure != NULL)
        fprintf(stderr, "%s\n", failure);
    return failure != NULL;
}
