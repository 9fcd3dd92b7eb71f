/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops.c - the table. A new row goes at the end. */
#include "ops.h"

#define BOTH(op) tt_##op##_prepare, tt_##op##_block, tt_##op##_start

const tt_op_row tt_ops[] = {
    { "all_reduce", TT_REDUCES | TT_SAME_BITS, BOTH(all_reduce), NULL },
    { "reduce", TT_REDUCES, BOTH(reduce), NULL },
    { "reduce_scatter", TT_REDUCES | TT_WIDE, BOTH(reduce_scatter), NULL },
    { "reduce_scatter_tensor", TT_REDUCES | TT_WIDE, BOTH(reduce_scatter_tensor), NULL },
    { "broadcast", 0, BOTH(broadcast), NULL },
    { "all_gather", TT_WIDE, BOTH(all_gather), NULL },
    { "all_gather_into_tensor", TT_WIDE, BOTH(all_gather_into_tensor), NULL },
    { "gather", TT_WIDE, BOTH(gather), NULL },
    { "scatter", TT_WIDE, BOTH(scatter), NULL },
    { "all_to_all", TT_WIDE, BOTH(all_to_all), NULL },
    { "all_to_all_single", TT_WIDE, BOTH(all_to_all_single), NULL },
    { "barrier", TT_NO_DATA, BOTH(barrier), tt_barrier_settle },
    { "send_recv", TT_PEERS, tt_send_recv_prepare, tt_send_recv_block, NULL, NULL },
    { "isend_irecv", TT_PEERS | TT_WIDE, tt_messages_prepare, NULL, tt_isend_irecv_start, NULL },
    { "batch_isend_irecv", TT_PEERS | TT_WIDE, tt_messages_prepare, NULL, tt_batch_start, NULL },
    { "any_source", TT_PEERS | TT_WIDE, BOTH(any_source), tt_any_source_settle },
};

const int tt_n_ops = sizeof tt_ops / sizeof tt_ops[0];

_Static_assert(sizeof tt_ops / sizeof tt_ops[0] <= TT_OPS_MAX, "raise TT_OPS_MAX");
