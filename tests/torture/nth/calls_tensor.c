/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls_tensor.c - collectives on tensors. Two ranks; the elements of rank r are r + 1. */
#include "scenarios.h"

#include <tutti/train.h>

static tutti_tensor *rows(const tt_actor *a, int64_t n)
{
    return tutti_tensor_full(TUTTI_F32, 2, (int64_t[]){ n, 4 }, a->rank + 1);
}

static void must_begin_with(tt_actor *a, const tutti_tensor *t, float want, const char *call)
{
    const float *data = tutti_tensor_data(t);

    if (tt_went_well(a, tutti_tensor_check(), call))
        tt_must_be(a, data[0] == want, call);
}

/* What an expression gives is waited for. */
#define GIVES(want, expression)                                                                        \
    do {                                                                                               \
        tutti_tensor *given_ = a->failed ? NULL : (expression);                                        \
        if (!a->failed) {                                                                              \
            (void)tutti_wait_tensor(given_);                                                           \
            must_begin_with(a, given_, (want), #expression);                                           \
        }                                                                                              \
    } while (0)

/* A call in place, and the tensor that it writes. */
#define MAKES(want, t, call)                                                                           \
    do {                                                                                               \
        if (THEN(call))                                                                                \
            must_begin_with(a, t, (want), #call);                                                      \
    } while (0)

static void expressions(tt_actor *a)
{
    const float mine = (float)(a->rank + 1), others = (float)(2 - a->rank), sum = tt_sum_of(a);
    const bool  root = a->rank == 0;

    tutti_scope_begin();
    GIVES(sum, tutti_tensor_all_reduce(rows(a, 2), TUTTI_SUM, a->group));
    GIVES(2.0f, tutti_tensor_broadcast(rows(a, 2), 1, a->group));
    GIVES(root ? sum : 0.0f, tutti_tensor_reduce(rows(a, 2), 0, TUTTI_SUM, a->group));
    GIVES(1.0f, tutti_tensor_all_gather_tensor(rows(a, 2), 0, a->group));
    GIVES(1.0f, tutti_tensor_all_gather(rows(a, 2), a->group));
    GIVES(sum, tutti_tensor_reduce_scatter_tensor(rows(a, 2), TUTTI_SUM, 0, a->group));
    GIVES(sum, tutti_tensor_reduce_scatter(rows(a, 2), TUTTI_SUM, a->group));
    GIVES(root ? mine : 0.0f, tutti_tensor_gather(rows(a, 2), 0, a->group));
    GIVES(1.0f, tutti_tensor_scatter(rows(a, 2), 0, a->group));
    GIVES(1.0f, tutti_tensor_all_to_all_single(rows(a, 2), NULL, NULL, a->group));
    GIVES(others, tutti_tensor_permute_tensor(rows(a, 2), (int[]){ 1, 0 }, a->group));
    tutti_scope_end();
}

static void lists(tt_actor *a)
{
    tutti_tensor *x, *y = NULL;

    tutti_scope_begin();
    x = rows(a, 2);
    MAKES(tt_sum_of(a), y, tutti_tensor_all_reduce_coalesced(&x, 1, TUTTI_SUM, a->group, &y));
    MAKES(1.0f, y, tutti_tensor_all_gather_into_tensor_coalesced(&x, 1, a->group, &y));
    MAKES(tt_sum_of(a), y, tutti_tensor_reduce_scatter_tensor_coalesced(&x, 1, TUTTI_SUM, (int[]){ 0 }, a->group, &y));
    tutti_scope_end();
}

static void in_place(tt_actor *a)
{
    const float   sum = tt_sum_of(a);
    const bool    root = a->rank == 0;
    tutti_tensor *two, *one, *four, *ins[2], *outs[2];

    tutti_scope_begin();
    one = rows(a, 1);
    two = rows(a, 2);
    four = rows(a, 4);
    ins[0] = rows(a, 2);
    ins[1] = rows(a, 2);
    outs[0] = rows(a, 2);
    outs[1] = rows(a, 2);
    (void)THEN(tutti_tensor_check());
    MAKES(sum, two, tutti_tensor_all_reduce_(two, TUTTI_SUM, a->group));
    MAKES(2.0f, ins[0], tutti_tensor_broadcast_(ins[0], 1, a->group));
    if (THEN(tutti_tensor_reduce_(four, 0, TUTTI_SUM, a->group)) && root)
        must_begin_with(a, four, sum, "a wrong sum at the root");
    MAKES(1.0f, outs[0], tutti_tensor_all_gather_(outs, 2, ins[1], a->group));
    MAKES(1.0f, four, tutti_tensor_all_gather_into_tensor_(four, ins[1], a->group));
    MAKES(1.0f, outs[0], tutti_tensor_gather_(root ? outs : NULL, root ? 2 : 0, ins[1], 0, a->group));
    MAKES((float)(a->rank + 1), two, tutti_tensor_scatter_(two, root ? outs : NULL, root ? 2 : 0, 0, a->group));
    MAKES(root ? 4.0f : 3.0f, two, tutti_tensor_reduce_scatter_(two, ins, 2, TUTTI_SUM, a->group));
    MAKES(7.0f, one, tutti_tensor_reduce_scatter_tensor_(one, two, TUTTI_SUM, a->group));
    MAKES(root ? 2.0f : 1.0f, outs[0], tutti_tensor_all_to_all_(outs, 2, ins, 2, a->group));
    MAKES(1.0f, two, tutti_tensor_all_to_all_single_(two, ins[1], NULL, NULL, a->group));
    tutti_scope_end();
}

static void messages(tt_actor *a)
{
    tutti_tensor *two;

    tutti_scope_begin();
    two = rows(a, 2);
    (void)THEN(tutti_tensor_check());
    if (a->rank == 0)
        (void)THEN(tutti_tensor_send(two, 1, 0, a->group));
    else
        MAKES(1.0f, two, tutti_tensor_recv_(two, 0, 0, a->group, NULL));
    tutti_scope_end();
}

/* A sum over the ranks of what is 2 x: its gradient is 2 on each rank, times as many as there are. */
static void gradients(tt_actor *a)
{
    tutti_tensor *x, *y;
    double        value = 0.0;

    tutti_scope_begin();
    x = tutti_tensor_requires_grad_(rows(a, 2), true);
    y = tutti_tensor_sum(tutti_tensor_all_reduce(tutti_tensor_add(x, x), TUTTI_SUM, a->group), NULL, 0, false);
    if (THEN(tutti_tensor_item(y, &value)) && TRY(tutti_tensor_check())) /* that a collective failed is kept */
        tt_must_be(a, value == 2.0 * 8.0 * (double)tt_sum_of(a), "a wrong element of a sum");
    if (THEN(tutti_tensor_backward(y)))
        must_begin_with(a, tutti_tensor_grad(x), 2.0f * (float)a->size, "a wrong gradient");
    y = a->failed ? NULL : tutti_tensor_sum(tutti_tensor_all_gather_tensor(x, 0, a->group), NULL, 0, false);
    if (THEN(tutti_backward(&y, NULL, 1, 0)))
        must_begin_with(a, tutti_tensor_grad(x), 3.0f * (float)a->size, "a wrong sum of gradients");
    tutti_scope_end();
}

static const tt_scenario scenarios[] = {
    TT_PLAY("expressions", 2, expressions),
    TT_PLAY("lists of tensors", 2, lists),
    TT_PLAY("tensors in place", 2, in_place),
    TT_PLAY("tensors in messages", 2, messages),
    TT_PLAY("gradients of sums", 2, gradients),
};

TT_FAMILY(tt_tensor_calls, "tensors", scenarios);
