/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops.h - the operations of the matrix: one row each.
 *
 * A new operation is a prepare(), which makes its buffers and says what becomes of them, a block() and a
 * start(), which call it, and a row in ops.c. Cells, covering, checks, counts, results and the soak follow
 * from the row. */
#ifndef TT_OPS_H
#define TT_OPS_H

#include "try.h"

enum {
    TT_REDUCES = 1,   /* has a reduction operation */
    TT_NO_DATA = 2,   /* neither dtype nor size matter */
    TT_WIDE = 4,      /* has spans of P parts: the largest size is that of all parts together */
    TT_PEERS = 8,     /* needs a second rank */
    TT_SAME_BITS = 16, /* what is combined is the same, bit for bit, on all ranks */
    TT_IN_GROUP = 32,  /* says ranks of the group: to be run where they are not those of the world */
    TT_SUMS = 64,      /* has a reduction, and it is SUM */
    TT_BYTES = 128     /* the elements are bytes: one dtype stands for all */
};

struct tt_op_row {
    const char *name;
    unsigned    traits;
    void (*prepare)(tt_try *t);
    tutti_status (*block)(tt_try *t); /* NULL: there is no blocking form */
    tutti_status (*start)(tt_try *t); /* NULL: there is no asynchronous form */
    bool (*settle)(tt_try *t);        /* optional: what is known only afterwards, before the check */
};

enum { TT_OPS_MAX = 64 };

extern const tt_op_row tt_ops[];
extern const int       tt_n_ops;

/* A dtype or a reduction that a row cannot have, as the one that it has. */
tutti_dtype   tt_row_dtype(const tt_op_row *row, tutti_dtype dtype);
tutti_op_kind tt_row_red(const tt_op_row *row, tutti_op_kind red);

/* Rows stand in ops.c, the functions by subject in ops_*.c. */
#define TT_OP_FUNCTIONS(name)                                                                          \
    void         tt_##name##_prepare(tt_try *t);                                                       \
    tutti_status tt_##name##_block(tt_try *t);                                                         \
    tutti_status tt_##name##_start(tt_try *t)

TT_OP_FUNCTIONS(all_reduce);
TT_OP_FUNCTIONS(reduce);
TT_OP_FUNCTIONS(reduce_scatter);
TT_OP_FUNCTIONS(reduce_scatter_tensor);
TT_OP_FUNCTIONS(broadcast);
TT_OP_FUNCTIONS(all_gather);
TT_OP_FUNCTIONS(all_gather_into_tensor);
TT_OP_FUNCTIONS(gather);
TT_OP_FUNCTIONS(scatter);
TT_OP_FUNCTIONS(all_to_all);
TT_OP_FUNCTIONS(all_to_all_single);
TT_OP_FUNCTIONS(barrier);
TT_OP_FUNCTIONS(any_source);
TT_OP_FUNCTIONS(gather_v);
TT_OP_FUNCTIONS(scatter_v);
TT_OP_FUNCTIONS(all_gather_into_tensor_v);
TT_OP_FUNCTIONS(reduce_scatter_tensor_v);
TT_OP_FUNCTIONS(all_reduce_coalesced);
TT_OP_FUNCTIONS(all_gather_coalesced);
TT_OP_FUNCTIONS(all_gather_into_tensor_coalesced);
TT_OP_FUNCTIONS(reduce_scatter_tensor_coalesced);
void         tt_all_gather_uneven_prepare(tt_try *t);
tutti_status tt_all_reduce_scope_block(tt_try *t);
tutti_status tt_all_reduce_scope_start(tt_try *t);
tutti_status tt_all_gather_scope_block(tt_try *t);
tutti_status tt_all_gather_scope_start(tt_try *t);
tutti_status tt_reduce_scatter_scope_block(tt_try *t);
tutti_status tt_reduce_scatter_scope_start(tt_try *t);
tutti_status tt_broadcast_in_group_block(tt_try *t);
tutti_status tt_broadcast_in_group_start(tt_try *t);
tutti_status tt_reduce_in_group_block(tt_try *t);
tutti_status tt_reduce_in_group_start(tt_try *t);
tutti_status tt_gather_in_group_block(tt_try *t);
tutti_status tt_gather_in_group_start(tt_try *t);
tutti_status tt_scatter_in_group_block(tt_try *t);
tutti_status tt_scatter_in_group_start(tt_try *t);
tutti_status tt_send_recv_in_group_block(tt_try *t);
tutti_status tt_isend_irecv_in_group_start(tt_try *t);
tutti_status tt_any_source_in_group_block(tt_try *t);
tutti_status tt_any_source_in_group_start(tt_try *t);
void         tt_gather_object_prepare(tt_try *t);
void         tt_all_gather_object_prepare(tt_try *t);
void         tt_broadcast_object_list_prepare(tt_try *t);
void         tt_scatter_object_list_prepare(tt_try *t);
void         tt_send_recv_object_list_prepare(tt_try *t);
tutti_status tt_all_gather_object_block(tt_try *t);
tutti_status tt_gather_object_block(tt_try *t);
tutti_status tt_gather_object_in_group_block(tt_try *t);
tutti_status tt_broadcast_object_list_block(tt_try *t);
tutti_status tt_broadcast_object_list_in_group_block(tt_try *t);
tutti_status tt_scatter_object_list_block(tt_try *t);
tutti_status tt_scatter_object_list_in_group_block(tt_try *t);
tutti_status tt_send_recv_object_list_block(tt_try *t);
tutti_status tt_send_recv_object_list_in_group_block(tt_try *t);
bool         tt_objects_settle(tt_try *t);
void         tt_sparse_all_reduce_prepare(tt_try *t);
tutti_status tt_sparse_all_reduce_block(tt_try *t);
bool         tt_sparse_all_reduce_settle(tt_try *t);
void         tt_send_recv_prepare(tt_try *t);
tutti_status tt_send_recv_block(tt_try *t);
void         tt_messages_prepare(tt_try *t);
tutti_status tt_isend_irecv_start(tt_try *t);
tutti_status tt_batch_start(tt_try *t);
bool         tt_barrier_settle(tt_try *t);
bool         tt_any_source_settle(tt_try *t);

#endif
