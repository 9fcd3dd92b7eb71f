/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases_message.c - messages, works, futures, windows. A send ends well as long as the peer takes in what comes. */
#include "deadlines.h"

/* ---- messages ---- */

TT_CASE(tutti_send, .may_end = true)
{
    return tutti_send(tt_large(), c->peer, 0, c->group);
}

TT_CASE(tutti_send_in_group, .may_end = true)
{
    return tutti_send_in_group(tt_large(), c->peer, 0, c->group);
}

TT_CASE(tutti_recv)
{
    return tutti_recv(TT_X, c->peer, 0, c->group, NULL);
}

TT_CASE(tutti_recv_in_group)
{
    return tutti_recv_in_group(TT_X, c->peer, 0, c->group, NULL);
}

TT_CASE(tutti_isend, .may_end = true)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_isend(tt_large(), c->peer, 0, c->group, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_isend_in_group, .may_end = true)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_isend_in_group(tt_large(), c->peer, 0, c->group, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_irecv)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_irecv(TT_X, c->peer, 0, c->group, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_irecv_in_group)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_irecv_in_group(TT_X, c->peer, 0, c->group, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_batch_isend_irecv)
{
    const tutti_p2p_op ops[2] = { { .is_send = true, .span = TT_X, .peer = c->peer },
                                  { .span = TT_Y, .peer = c->peer } };
    tutti_work        *works[2] = { NULL };
    tutti_status       st = tutti_batch_isend_irecv(ops, 2, c->group, works);

    if (st == TUTTI_OK)
        st = tutti_wait_all(works, 2, 0);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    return st;
}

/* ---- works ---- */

TT_CASE(tutti_work_wait)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(TT_X, TUTTI_SUM, c->group, &work);

    return tt_wait(st, work);
}

/* Shorter than the group's: it only waits. */
TT_CASE(tutti_work_wait_for, .names_nobody = true)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_set_timeout(c->group, 30000);

    if (st == TUTTI_OK)
        st = tutti_all_reduce_async(TT_X, TUTTI_SUM, c->group, &work);
    if (st == TUTTI_OK)
        st = tutti_work_wait_for(work, TT_DEADLINE_MS);
    tutti_work_free(work);
    return st;
}

TT_CASE(tutti_wait_all)
{
    tutti_work  *works[2] = { NULL };
    tutti_status st = tutti_irecv(TT_X, c->peer, 0, c->group, &works[0]);

    if (st == TUTTI_OK)
        st = tutti_irecv(TT_Y, c->peer, 1, c->group, &works[1]);
    if (st == TUTTI_OK)
        st = tutti_wait_all(works, 2, TT_DEADLINE_MS);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    return st;
}

TT_CASE(tutti_wait_any, .names_nobody = true)
{
    tutti_work  *works[2] = { NULL };
    int          index = -1;
    tutti_status st = tutti_irecv(TT_X, c->peer, 0, c->group, &works[0]);

    if (st == TUTTI_OK)
        st = tutti_all_reduce_async(TT_Y, TUTTI_SUM, c->group, &works[1]);
    if (st == TUTTI_OK)
        st = tutti_wait_any(works, 2, TT_DEADLINE_MS, &index);
    if (st == TUTTI_OK)
        st = tutti_work_status(works[index]);
    tutti_work_free(works[0]);
    tutti_work_free(works[1]);
    return st;
}

static tutti_status future_of(tt_cell *c, tutti_future **future_out)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(TT_X, TUTTI_SUM, c->group, &work);

    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    tutti_work_free(work);
    return st;
}

TT_CASE(tutti_future_wait, .names_nobody = true)
{
    tutti_future *future = NULL;
    tutti_status  st = future_of(c, &future);

    if (st == TUTTI_OK)
        st = tutti_future_wait(future, TT_DEADLINE_MS);
    tutti_future_free(future);
    return st;
}

TT_CASE(tutti_future_wait_all, .names_nobody = true)
{
    tutti_future *future = NULL;
    tutti_status  st = future_of(c, &future);

    if (st == TUTTI_OK)
        st = tutti_future_wait_all(&future, 1, TT_DEADLINE_MS);
    tutti_future_free(future);
    return st;
}

/* ---- windows ---- */

/* A window over registered memory, or over nothing yet; more is the memory. */
static tutti_status make_window(tt_cell *c, bool registered)
{
    tutti_window *window = NULL;
    tutti_span    span = TT_X2;
    tutti_status  st = tutti_alloc(8 * sizeof c->x[0], &c->more);

    span.data = c->more;
    if (st == TUTTI_OK)
        st = tutti_window_create(registered ? &span : NULL, c->group, &window);
    c->made = window;
    return st;
}

static tutti_status make_full_window(tt_cell *c)
{
    return make_window(c, true);
}

static tutti_status make_empty_window(tt_cell *c)
{
    return make_window(c, false);
}

TT_CASE(tutti_window_create)
{
    return make_window(c, true);
}

TT_CASE(tutti_window_register, .prepare = make_empty_window)
{
    tutti_span span = TT_X2;

    span.data = c->more;
    return tutti_window_register(c->made, span);
}

TT_CASE(tutti_window_deregister, .prepare = make_full_window)
{
    return tutti_window_deregister(c->made);
}

TT_CASE(tutti_window_free, .prepare = make_full_window)
{
    return tutti_window_free(c->made);
}

TT_CASE(tutti_window_put, .prepare = make_full_window, .may_end = true)
{
    return tutti_window_put(c->made, TT_X, c->peer, 0);
}

TT_CASE(tutti_window_put_async, .prepare = make_full_window, .may_end = true)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_window_put_async(c->made, TT_X, c->peer, 0, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_window_get, .prepare = make_full_window, .may_end = true)
{
    return tutti_window_get(c->made, TT_X, c->peer, 0);
}

TT_CASE(tutti_window_get_async, .prepare = make_full_window, .may_end = true)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_window_get_async(c->made, TT_X, c->peer, 0, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_window_signal, .prepare = make_full_window, .may_end = true)
{
    return tutti_window_signal(c->made, c->peer);
}

TT_CASE(tutti_window_wait_signal, .prepare = make_full_window)
{
    return tutti_window_wait_signal(c->made, c->peer, 0);
}

TT_CASE(tutti_window_wait_signal_async, .prepare = make_full_window)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_window_wait_signal_async(c->made, c->peer, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_window_flush, .prepare = make_full_window, .may_end = true)
{
    tutti_status st = tutti_window_put(c->made, TT_X, c->peer, 0);

    return st == TUTTI_OK ? tutti_window_flush(c->made, c->peer) : st;
}
