/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_in_group.c - calls that take a rank of the group, on the buffers of those that take a global one. */
#include "ops.h"

/* ---- collectives ---- */

tutti_status tt_broadcast_in_group_block(tt_try *t)
{
    return tutti_broadcast_in_group(t->outs[0], t->root, t->group);
}

tutti_status tt_broadcast_in_group_start(tt_try *t)
{
    return tt_begun(t, tutti_broadcast_in_group_async(t->outs[0], t->root, t->group, tt_work(t)));
}

tutti_status tt_reduce_in_group_block(tt_try *t)
{
    return tutti_reduce_in_group(t->outs[0], t->root, t->op, t->group);
}

tutti_status tt_reduce_in_group_start(tt_try *t)
{
    return tt_begun(t,
                    tutti_reduce_in_group_async(t->outs[0], t->root, t->op, t->group, tt_work(t)));
}

static const tutti_span *lists(const tt_try *t, const tutti_span *spans)
{
    return tt_is_root(t) ? spans : NULL;
}

static int n_lists(const tt_try *t)
{
    return tt_is_root(t) ? t->size : 0;
}

tutti_status tt_gather_in_group_block(tt_try *t)
{
    return tutti_gather_in_group(lists(t, t->outs), n_lists(t), t->ins[0], t->root, t->group);
}

tutti_status tt_gather_in_group_start(tt_try *t)
{
    return tt_begun(t, tutti_gather_in_group_async(lists(t, t->outs), n_lists(t), t->ins[0],
                                                   t->root, t->group, tt_work(t)));
}

tutti_status tt_scatter_in_group_block(tt_try *t)
{
    return tutti_scatter_in_group(t->outs[0], lists(t, t->ins), n_lists(t), t->root, t->group);
}

tutti_status tt_scatter_in_group_start(tt_try *t)
{
    return tt_begun(t, tutti_scatter_in_group_async(t->outs[0], lists(t, t->ins), n_lists(t),
                                                    t->root, t->group, tt_work(t)));
}

/* ---- messages: prepared with global ranks, which is also what a receive reports ---- */

static int peer_in_group(const tt_try *t, const tutti_p2p_op *m)
{
    return m->peer == TUTTI_ANY_SOURCE ? TUTTI_ANY_SOURCE : tutti_get_group_rank(t->group, m->peer);
}

tutti_status tt_send_recv_in_group_block(tt_try *t)
{
    tutti_status st = TUTTI_OK;
    int source;
    int i;

    for (i = 0; i < t->n_messages && st == TUTTI_OK; i++) {
        const tutti_p2p_op *m = &t->messages[i];
        const int peer = peer_in_group(t, m);

        if (m->is_send) {
            st = tutti_send_in_group(m->span, peer, m->tag, t->group);
            continue;
        }
        st = tutti_recv_in_group(m->span, peer, m->tag, t->group, &source);
        if (st == TUTTI_OK && m->peer != TUTTI_ANY_SOURCE && source != m->peer)
            tt_wrong(t, "a message from rank %d came from rank %d", m->peer, source);
        if (st == TUTTI_OK)
            t->sources[i] = tutti_get_group_rank(t->group, source);
    }
    return st;
}

tutti_status tt_isend_irecv_in_group_start(tt_try *t)
{
    tutti_status st = TUTTI_OK;
    int i;

    for (i = 0; i < t->n_messages && st == TUTTI_OK; i++) {
        const tutti_p2p_op *m = &t->messages[i];
        const int peer = peer_in_group(t, m);

        st = tt_begun(t, m->is_send
                             ? tutti_isend_in_group(m->span, peer, m->tag, t->group, tt_work(t))
                             : tutti_irecv_in_group(m->span, peer, m->tag, t->group, tt_work(t)));
    }
    return st;
}

tutti_status tt_any_source_in_group_block(tt_try *t)
{
    return tt_send_recv_in_group_block(t);
}

tutti_status tt_any_source_in_group_start(tt_try *t)
{
    return tt_isend_irecv_in_group_start(t);
}
