/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases_parallel.c - the reducer, its hooks, and uneven inputs. */
#include "deadlines.h"

static tutti_status make_reducer(tt_cell *c)
{
    const tutti_reducer_param param = { .name = "w", .dtype = TUTTI_F32, .numel = TT_FEW, .grad = c->x };
    tutti_reducer_options     opts = TUTTI_REDUCER_OPTIONS;

    opts.group = c->group;
    return tutti_reducer_create(&param, 1, &opts, (tutti_reducer **)&c->made);
}

TT_CASE(tutti_reducer_create)
{
    return make_reducer(c);
}

static tutti_status backward(tutti_reducer *reducer)
{
    tutti_status st = tutti_reducer_prepare_for_forward(reducer);

    if (st == TUTTI_OK)
        st = tutti_reducer_prepare_for_backward(reducer, NULL, 0);
    if (st == TUTTI_OK)
        st = tutti_reducer_mark_ready(reducer, 0);
    return st;
}

TT_CASE(tutti_reducer_finish, .prepare = make_reducer)
{
    const tutti_status st = backward(c->made);

    return st == TUTTI_OK ? tutti_reducer_finish(c->made) : st;
}

TT_CASE(tutti_broadcast_coalesced)
{
    return tutti_broadcast_coalesced(&c->whole_x, 1, 1 << 20, c->peer, c->group);
}

static tutti_status begin_join(tt_cell *c)
{
    tutti_joinable joinable;
    tutti_status   st = make_reducer(c);

    if (st == TUTTI_OK)
        st = tutti_reducer_joinable(c->made, NULL, &joinable);
    if (st == TUTTI_OK)
        st = tutti_join_begin(&joinable, 1, NULL, (tutti_join **)&c->more);
    return st;
}

/* Who has been notified is counted when the number is asked for. */
TT_CASE(tutti_join_active, .prepare = begin_join)
{
    tutti_status st = tutti_join_notify(c->more, c->made);
    int          n = 0;

    return st == TUTTI_OK ? tutti_join_active(c->more, &n) : st;
}

TT_CASE(tutti_join_end, .prepare = begin_join)
{
    return tutti_join_end(c->more, TUTTI_OK);
}
