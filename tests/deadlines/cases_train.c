/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases_train.c - collectives on tensors, and what trains over them. */
#include "deadlines.h"

#include <tutti/train.h>

static tutti_tensor *rows(int64_t n)
{
    return tutti_tensor_ones(TUTTI_F32, 2, (int64_t[]){ n, 4 });
}

/* ---- expressions: whoever looks at the result waits ---- */

#define EXPRESSION(name, ...)                                                                          \
    TT_CASE(tutti_tensor_##name)                                                                       \
    {                                                                                                  \
        tutti_scope_begin();                                                                           \
        (void)tutti_wait_tensor(tutti_tensor_##name(rows(2), __VA_ARGS__));                            \
        tutti_scope_end();                                                                             \
        return tutti_tensor_check();                                                                   \
    }

EXPRESSION(all_reduce, TUTTI_SUM, c->group)
EXPRESSION(broadcast, c->peer, c->group)
EXPRESSION(reduce, c->me, TUTTI_SUM, c->group)
EXPRESSION(all_gather_tensor, 0, c->group)
EXPRESSION(all_gather, c->group)
EXPRESSION(reduce_scatter_tensor, TUTTI_SUM, 0, c->group)
EXPRESSION(reduce_scatter, TUTTI_SUM, c->group)
EXPRESSION(gather, c->me, c->group)
EXPRESSION(scatter, c->peer, c->group)
EXPRESSION(all_to_all_single, NULL, NULL, c->group)
EXPRESSION(permute_tensor, ((int[]){ 1, 0 }), c->group)

TT_CASE(tutti_wait_tensor)
{
    tutti_scope_begin();
    (void)tutti_wait_tensor(tutti_tensor_all_reduce(rows(2), TUTTI_SUM, c->group));
    tutti_scope_end();
    return tutti_tensor_check();
}

#define EXPRESSIONS(name, ...)                                                                         \
    TT_CASE(tutti_tensor_##name)                                                                       \
    {                                                                                                  \
        tutti_tensor *xs[1], *ys[1] = { NULL };                                                        \
                                                                                                       \
        tutti_scope_begin();                                                                           \
        xs[0] = rows(2);                                                                               \
        if (tutti_tensor_##name(xs, 1, __VA_ARGS__, ys) == TUTTI_OK)                                   \
            (void)tutti_wait_tensor(ys[0]);                                                            \
        tutti_scope_end();                                                                             \
        return tutti_tensor_check();                                                                   \
    }

EXPRESSIONS(all_reduce_coalesced, TUTTI_SUM, c->group)
EXPRESSIONS(all_gather_into_tensor_coalesced, c->group)
EXPRESSIONS(reduce_scatter_tensor_coalesced, TUTTI_SUM, ((int[]){ 0 }), c->group)

/* ---- in place ---- */

/* Tensors of one, two and four rows, and lists of two of them. */
#define IN_PLACE(name, ...) IN_PLACE_THAT(name, .may_end = false, __VA_ARGS__)
#define IN_PLACE_THAT(name, may, ...)                                                                  \
    TT_CASE(tutti_tensor_##name, may)                                                                  \
    {                                                                                                  \
        tutti_tensor *one, *two, *four, *outs[2], *ins[2];                                             \
        tutti_status  st;                                                                              \
                                                                                                       \
        tutti_scope_begin();                                                                           \
        one = rows(1);                                                                                 \
        two = rows(2);                                                                                 \
        four = rows(4);                                                                                \
        outs[0] = rows(2);                                                                             \
        outs[1] = rows(2);                                                                             \
        ins[0] = rows(2);                                                                              \
        ins[1] = rows(2);                                                                              \
        st = tutti_tensor_##name(__VA_ARGS__);                                                         \
        (void)one, (void)two, (void)four, (void)outs[0], (void)ins[0];                                 \
        tutti_scope_end();                                                                             \
        (void)tutti_tensor_check();                                                                    \
        return st;                                                                                     \
    }

IN_PLACE(all_reduce_, two, TUTTI_SUM, c->group)
IN_PLACE(broadcast_, two, c->peer, c->group)
IN_PLACE(reduce_, two, c->me, TUTTI_SUM, c->group)
IN_PLACE(all_gather_, outs, 2, two, c->group)
IN_PLACE(all_gather_into_tensor_, four, two, c->group)
IN_PLACE(gather_, outs, 2, two, c->me, c->group)
IN_PLACE(scatter_, two, NULL, 0, c->peer, c->group)
IN_PLACE(reduce_scatter_, two, ins, 2, TUTTI_SUM, c->group)
IN_PLACE(reduce_scatter_tensor_, one, two, TUTTI_SUM, c->group)
IN_PLACE(all_to_all_, outs, 2, ins, 2, c->group)
IN_PLACE(all_to_all_single_, outs[0], two, NULL, NULL, c->group)
IN_PLACE(recv_, two, c->peer, 0, c->group, NULL)
IN_PLACE_THAT(send, .may_end = true, two, c->peer, 0, c->group)

/* ---- training ---- */

static tutti_tensor *parameter(tt_cell *c)
{
    if (c->more == NULL)
        c->more = tutti_tensor_requires_grad_(rows(2), true);
    return c->more;
}

TT_CASE(tutti_average_parameters)
{
    return tutti_average_parameters(&(tutti_tensor *){ parameter(c) }, 1, c->group);
}

TT_CASE(tutti_model_averager_average_parameters)
{
    tutti_model_averager *averager = NULL;
    tutti_status          st = tutti_periodic_model_averager(1, 0, c->group, &averager);

    if (st == TUTTI_OK)
        st = tutti_model_averager_average_parameters(averager, &(tutti_tensor *){ parameter(c) }, 1);
    tutti_model_averager_free(averager);
    return st;
}

TT_CASE(tutti_ddp_create)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module     *module = tutti_linear(2, 2, true);
    tutti_ddp        *ddp = NULL;
    tutti_status      st;

    opts.group = c->group;
    st = tutti_ddp_create(module, &opts, &ddp);
    if (st == TUTTI_OK)
        tutti_ddp_free(ddp);
    else
        tutti_module_free(module);
    return st;
}

static tutti_status make_zero(tt_cell *c)
{
    tutti_zero_options opts = TUTTI_ZERO_OPTIONS;

    opts.group = c->group;
    return tutti_zero_create("sgd", &(tutti_tensor *){ parameter(c) }, 1, NULL, 0, &opts, (tutti_optim **)&c->made);
}

TT_CASE(tutti_zero_create)
{
    return make_zero(c);
}

TT_CASE(tutti_zero_consolidate_state_dict, .prepare = make_zero)
{
    return tutti_zero_consolidate_state_dict(c->made, c->me);
}
