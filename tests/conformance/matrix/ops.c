/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops.c - the table. A new row goes at the end. */
#include "ops.h"

#define AS(op)              tt_##op##_block, tt_##op##_start
#define BOTH(op)            tt_##op##_prepare, AS(op)
#define OBJECT(prepare, op) tt_##prepare##_prepare, tt_##op##_block, NULL, tt_objects_settle

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
    { "gather_v", TT_WIDE, BOTH(gather_v), NULL },
    { "scatter_v", TT_WIDE, BOTH(scatter_v), NULL },
    { "all_gather_uneven", TT_WIDE, tt_all_gather_uneven_prepare, AS(all_gather), NULL },
    { "all_gather_into_tensor_v", TT_WIDE, BOTH(all_gather_into_tensor_v), NULL },
    { "reduce_scatter_tensor_v", TT_REDUCES | TT_WIDE, BOTH(reduce_scatter_tensor_v), NULL },
    { "all_reduce_coalesced", TT_REDUCES | TT_SAME_BITS, BOTH(all_reduce_coalesced), NULL },
    { "all_gather_coalesced", TT_WIDE, BOTH(all_gather_coalesced), NULL },
    { "all_gather_into_tensor_coalesced", TT_WIDE, BOTH(all_gather_into_tensor_coalesced), NULL },
    { "reduce_scatter_tensor_coalesced", TT_REDUCES | TT_WIDE,
      BOTH(reduce_scatter_tensor_coalesced), NULL },
    { "scope_all_reduce", TT_REDUCES | TT_SAME_BITS, tt_all_reduce_coalesced_prepare,
      AS(all_reduce_scope), NULL },
    { "scope_all_gather_into_tensor", TT_WIDE, tt_all_gather_into_tensor_coalesced_prepare,
      AS(all_gather_scope), NULL },
    { "scope_reduce_scatter_tensor", TT_REDUCES | TT_WIDE,
      tt_reduce_scatter_tensor_coalesced_prepare, AS(reduce_scatter_scope), NULL },
    { "broadcast_in_group", TT_IN_GROUP, tt_broadcast_prepare, AS(broadcast_in_group), NULL },
    { "reduce_in_group", TT_IN_GROUP | TT_REDUCES, tt_reduce_prepare, AS(reduce_in_group), NULL },
    { "gather_in_group", TT_IN_GROUP | TT_WIDE, tt_gather_prepare, AS(gather_in_group), NULL },
    { "scatter_in_group", TT_IN_GROUP | TT_WIDE, tt_scatter_prepare, AS(scatter_in_group), NULL },
    { "send_recv_in_group", TT_IN_GROUP | TT_PEERS, tt_send_recv_prepare,
      tt_send_recv_in_group_block, NULL, NULL },
    { "isend_irecv_in_group", TT_IN_GROUP | TT_PEERS | TT_WIDE, tt_messages_prepare, NULL,
      tt_isend_irecv_in_group_start, NULL },
    { "any_source_in_group", TT_IN_GROUP | TT_PEERS | TT_WIDE, tt_any_source_prepare,
      AS(any_source_in_group), tt_any_source_settle },
    { "all_gather_object", TT_BYTES | TT_WIDE, OBJECT(all_gather_object, all_gather_object) },
    { "gather_object", TT_BYTES | TT_WIDE, OBJECT(gather_object, gather_object) },
    { "gather_object_in_group", TT_IN_GROUP | TT_BYTES | TT_WIDE,
      OBJECT(gather_object, gather_object_in_group) },
    { "broadcast_object_list", TT_BYTES | TT_WIDE,
      OBJECT(broadcast_object_list, broadcast_object_list) },
    { "broadcast_object_list_in_group", TT_IN_GROUP | TT_BYTES | TT_WIDE,
      OBJECT(broadcast_object_list, broadcast_object_list_in_group) },
    { "scatter_object_list", TT_BYTES | TT_WIDE, OBJECT(scatter_object_list, scatter_object_list) },
    { "scatter_object_list_in_group", TT_IN_GROUP | TT_BYTES | TT_WIDE,
      OBJECT(scatter_object_list, scatter_object_list_in_group) },
    { "send_recv_object_list", TT_BYTES | TT_PEERS | TT_WIDE,
      OBJECT(send_recv_object_list, send_recv_object_list) },
    { "send_recv_object_list_in_group", TT_IN_GROUP | TT_BYTES | TT_PEERS | TT_WIDE,
      OBJECT(send_recv_object_list, send_recv_object_list_in_group) },
    { "sparse_all_reduce", TT_SUMS | TT_WIDE | TT_SAME_BITS, tt_sparse_all_reduce_prepare,
      tt_sparse_all_reduce_block, NULL, tt_sparse_all_reduce_settle },
};

const int tt_n_ops = sizeof tt_ops / sizeof tt_ops[0];

_Static_assert(sizeof tt_ops / sizeof tt_ops[0] <= TT_OPS_MAX, "raise TT_OPS_MAX");

tutti_dtype tt_row_dtype(const tt_op_row *row, tutti_dtype dtype)
{
    return (row->traits & TT_BYTES) != 0 ? TUTTI_U8 : dtype;
}

tutti_op_kind tt_row_red(const tt_op_row *row, tutti_op_kind red)
{
    return (row->traits & TT_SUMS) != 0 ? TUTTI_OP_SUM : red;
}
