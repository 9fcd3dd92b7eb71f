/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_parallel.c - gradients that are averaged during a backward, and inputs of different lengths. */
#include "scenarios.h"

enum { N = TT_FEW };

static tutti_status make(tt_actor *a, float *grads, tutti_reducer **reducer_out)
{
    tutti_reducer_param   params[2] = { { .name = "a", .dtype = TUTTI_F32, .numel = N, .grad = grads },
                                        { .name = "b", .dtype = TUTTI_F32, .numel = N, .grad = grads + N } };
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;

    opts.group = a->group;
    opts.bucket_cap_bytes = N * sizeof(float);
    return tutti_reducer_create(params, 2, &opts, reducer_out);
}

/* A step up to its last gradient. */
static bool backward(tt_actor *a, tutti_reducer *reducer, float *grads)
{
    tt_fill(a, grads, 2 * N);
    return THEN(tutti_reducer_prepare_for_forward(reducer)) && TRY(tutti_reducer_prepare_for_backward(reducer, NULL, 0)) &&
           TRY(tutti_reducer_mark_ready(reducer, 1)) && TRY(tutti_reducer_mark_ready(reducer, 0));
}

static void reducers(tt_actor *a)
{
    float         *grads = tt_room(a, 2 * N);
    tutti_reducer *reducer = NULL;

    if (TRY(make(a, grads, &reducer)) && backward(a, reducer, grads) && TRY(tutti_reducer_finish(reducer)))
        tt_must_be(a, tt_all_are(grads, N, tt_sum_of(a) / (float)a->size), "a wrong average");
    tutti_reducer_free(reducer);
}

/* Each hook on gradients of its own; what it makes of them is about the average. */
static void hooks(tt_actor *a)
{
    static const tutti_builtin_comm_hook all[] = { TUTTI_HOOK_ALLREDUCE, TUTTI_HOOK_FP16_COMPRESS, TUTTI_HOOK_POWER_SGD,
                                                   TUTTI_HOOK_QUANTIZE_PER_TENSOR };
    const float average = tt_sum_of(a) / (float)a->size;
    size_t      i;

    for (i = 0; i < sizeof all / sizeof all[0] && !a->failed; i++) {
        float         *grads = tt_room(a, 2 * N);
        tutti_reducer *reducer = NULL;

        if (TRY(make(a, grads, &reducer)) && TRY(tutti_reducer_register_builtin_comm_hook(reducer, all[i])) &&
            backward(a, reducer, grads) && TRY(tutti_reducer_finish(reducer)))
            tt_must_be(a, grads[0] > average - 0.1f && grads[0] < average + 0.1f, "a wrong average of a hook");
        tutti_reducer_free(reducer);
    }
}

/* A step that is given up, two more, whose second has other buckets, and one in another group. */
static void reducers_again(tt_actor *a)
{
    const float    average = tt_sum_of(a) / (float)a->size;
    float         *grads = tt_room(a, 2 * N);
    tutti_reducer *reducer = NULL;
    tutti_group   *group = NULL;
    int            i;

    (void)THEN(make(a, grads, &reducer));
    if (backward(a, reducer, grads))
        (void)THEN(tutti_reducer_reset_state(reducer));
    for (i = 0; i < 2; i++)
        if (backward(a, reducer, grads) && TRY(tutti_reducer_finish(reducer)))
            tt_must_be(a, tt_all_are(grads, 2 * N, average), "a wrong average in a later step");
    (void)THEN(tutti_split_group_by_color(a->group, 0, NULL, &group));
    (void)THEN(tutti_reducer_update_process_group(reducer, group));
    if (backward(a, reducer, grads) && TRY(tutti_reducer_finish(reducer)))
        tt_must_be(a, tt_all_are(grads, 2 * N, average), "a wrong average in another group");
    tutti_reducer_free(reducer);
}

/* Rank 1 cannot make the step: all are told, and the next one is made by all. */
static void a_step_fails(tt_actor *a)
{
    float         *grads = tt_room(a, 2 * N);
    tutti_reducer *reducer = NULL;

    (void)THEN(make(a, grads, &reducer));
    if (a->rank == 1 && !a->failed) {
        (void)tutti_reducer_fail(reducer, TUTTI_E_IO, "no input");
        tt_must_be(a, tutti_reducer_finish(reducer) != TUTTI_OK, "a step that has failed has ended well");
    }
    if (a->rank != 1 && backward(a, reducer, grads))
        tt_must_be(a, tutti_reducer_finish(reducer) != TUTTI_OK, "a step that another rank has failed in has ended well");
    (void)THEN(tutti_reducer_reset_state(reducer));
    if (backward(a, reducer, grads) && TRY(tutti_reducer_finish(reducer)))
        tt_must_be(a, tt_all_are(grads, 2 * N, tt_sum_of(a) / (float)a->size), "a wrong average after a failure");
    tutti_reducer_free(reducer);
}

static void beginnings(tt_actor *a)
{
    float           *x = tt_room(a, N), *y = tt_room(a, N);
    const tutti_span spans[2] = { TUTTI_SPAN(x, N), TUTTI_SPAN(y, N) };

    tt_fill(a, x, N);
    tt_fill(a, y, N);
    if (TRY(tutti_broadcast_coalesced(spans, 2, N * sizeof(float), 0, a->group)))
        tt_must_be(a, tt_all_are(x, N, 1.0f) && tt_all_are(y, N, 1.0f), "wrong values to begin with");
}

/* Rank r has r + 1 inputs. */
static void uneven(tt_actor *a)
{
    float         *grads = tt_room(a, 2 * N);
    tutti_reducer *reducer = NULL;
    tutti_joinable joinable;
    tutti_join    *join = NULL;
    int            i, n = 0;

    if (!TRY(make(a, grads, &reducer)) || !TRY(tutti_reducer_joinable(reducer, NULL, &joinable)) ||
        !TRY(tutti_join_begin(&joinable, 1, NULL, &join))) {
        tutti_reducer_free(reducer);
        return;
    }
    for (i = 0; i <= a->rank && !a->failed; i++)
        if (backward(a, reducer, grads) && TRY(tutti_join_active(join, &n)) && TRY(tutti_reducer_finish(reducer)))
            tt_must_be(a, n == a->size - i, "a wrong number of ranks that have inputs");
    TRY(tutti_join_end(join, a->failed ? a->st : TUTTI_OK));
    tutti_reducer_free(reducer);
}

static const tt_scenario scenarios[] = {
    TT_PLAY("reducers", 2, reducers),
    TT_PLAY("hooks of reducers", 2, hooks),
    TT_PLAY("reducers again", 2, reducers_again),
    TT_PLAY("a step fails", 2, a_step_fails),
    TT_PLAY("beginnings", 2, beginnings),
    TT_PLAY("uneven inputs", 2, uneven),
};

TT_FAMILY(tt_parallel_calls, "parallel", scenarios);
