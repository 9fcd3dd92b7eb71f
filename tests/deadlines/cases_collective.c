/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases_collective.c - collectives, each in its blocking form, and in its asynchronous one, which is waited for. */
#include "deadlines.h"

#define BOTH(name, ...)                                                                                \
    TT_CASE(tutti_##name)                                                                              \
    {                                                                                                  \
        return tutti_##name(__VA_ARGS__);                                                              \
    }                                                                                                  \
    TT_CASE(tutti_##name##_async)                                                                      \
    {                                                                                                  \
        tutti_work  *work = NULL;                                                                      \
        tutti_status st = tutti_##name##_async(__VA_ARGS__, &work);                                    \
                                                                                                       \
        return tt_wait(st, work);                                                                      \
    }

BOTH(all_reduce, TT_X, TUTTI_SUM, c->group)
BOTH(broadcast, TT_X, c->peer, c->group)
BOTH(reduce, TT_X, c->me, TUTTI_SUM, c->group)
BOTH(all_gather, c->parts_y, 2, TT_X, c->group)
BOTH(all_gather_into_tensor, TT_Y2, TT_X, c->group)
BOTH(all_gather_into_tensor_v, TT_Y2, TT_X, c->counts, c->group)
BOTH(gather, c->parts_y, 2, TT_X, c->me, c->group)
BOTH(scatter, TT_X, NULL, 0, c->peer, c->group)
BOTH(gather_v, c->parts_y, 2, TT_X, c->me, c->group)
BOTH(scatter_v, TT_X, NULL, 0, c->peer, c->group)
BOTH(reduce_scatter, TT_Y, c->parts_x, 2, TUTTI_SUM, c->group)
BOTH(reduce_scatter_tensor, TT_Y, TT_X2, TUTTI_SUM, c->group)
BOTH(reduce_scatter_tensor_v, TT_Y, TT_X2, c->counts, TUTTI_SUM, c->group)
BOTH(all_to_all, c->parts_y, 2, c->parts_x, 2, c->group)
BOTH(all_to_all_single, TT_Y2, TT_X2, NULL, NULL, c->group)
BOTH(barrier, c->group)
BOTH(broadcast_in_group, TT_X, c->peer, c->group)
BOTH(reduce_in_group, TT_X, c->me, TUTTI_SUM, c->group)
BOTH(gather_in_group, c->parts_y, 2, TT_X, c->me, c->group)
BOTH(scatter_in_group, TT_X, NULL, 0, c->peer, c->group)
BOTH(gather_v_in_group, c->parts_y, 2, TT_X, c->me, c->group)
BOTH(scatter_v_in_group, TT_X, NULL, 0, c->peer, c->group)
BOTH(all_reduce_coalesced, c->parts_x, 2, TUTTI_SUM, c->group)
BOTH(all_gather_into_tensor_coalesced, &c->whole_y, &c->parts_x[0], 1, c->group)
BOTH(reduce_scatter_tensor_coalesced, &c->parts_y[0], &c->whole_x, 1, TUTTI_SUM, c->group)
BOTH(all_reduce_quantized, TT_X, TUTTI_SUM, NULL, c->group)
BOTH(all_reduce_block_sparse, TT_X, TUTTI_SUM, NULL, c->group)

/* ---- lists of lists ---- */

TT_CASE(tutti_all_gather_coalesced)
{
    const tutti_span *outs[2] = { &c->parts_y[0], &c->parts_y[1] };

    return tutti_all_gather_coalesced(outs, 2, &c->parts_x[0], 1, c->group);
}

TT_CASE(tutti_all_gather_coalesced_async)
{
    const tutti_span *outs[2] = { &c->parts_y[0], &c->parts_y[1] };
    tutti_work       *work = NULL;
    tutti_status      st = tutti_all_gather_coalesced_async(outs, 2, &c->parts_x[0], 1, c->group, &work);

    return tt_wait(st, work);
}

TT_CASE(tutti_coalescing_end)
{
    tutti_work  *inner = NULL;
    tutti_status st = tutti_coalescing_begin(c->group);

    if (st == TUTTI_OK)
        st = tutti_all_reduce_async(TT_X, TUTTI_SUM, c->group, &inner);
    if (st == TUTTI_OK)
        st = tutti_coalescing_end(c->group, NULL);
    tutti_work_free(inner);
    return st;
}

TT_CASE(tutti_sparse_all_reduce)
{
    static const int64_t at[2] = { 1, 3 };
    const tutti_sparse_coo in = { .sparse_dim = 1, .sizes = { 8 }, .nnz = 2, .indices = at,
                                  .values = TUTTI_SPAN(c->x, 2) };
    tutti_sparse_coo       out = { .owned = NULL };
    const tutti_status     st = tutti_sparse_all_reduce(&in, TUTTI_SUM, c->group, &out);

    tutti_sparse_free(&out);
    return st;
}

TT_CASE(tutti_monitored_barrier)
{
    return tutti_monitored_barrier(c->group, 0, true);
}
