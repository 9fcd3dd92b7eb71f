/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm.h - the inside of this room: results under way, and collectives without gradients.
 *
 * A collective is written so:
 *
 *     tti_deferred *d = tti_deferred_make("all_reduce", 0);
 *     tutti_tensor *y = memory for the result, owned, or NULL;
 *     if (d == NULL || y == NULL)
 *         return tti_deferred_give_up(d, y);
 *     return tti_deferred_end(d, tutti_X_async(..., &d->work), y);
 *
 * and y can be used at once: whoever looks at its elements waits for the work. */
#ifndef TTI_TRAIN_COMM_COMM_H
#define TTI_TRAIN_COMM_COMM_H

#include <pthread.h>
#include <tutti/comm.h>
#include "tensor/tensor.h"

/* Blocks that a work leaves in one order and a result has in another. */
typedef struct tti_blocks {
    void *to; /* NULL: nothing to be done */
    const void *from;
    int64_t outer, parts; /* to has outer x parts blocks, from parts x outer */
    size_t bytes;         /* of a block */
} tti_blocks;

/* A work, and what has to stay until it is done. */
typedef struct tti_deferred {
    tti_pending pending;  /* first: the tensor room calls us through it */
    atomic_int refs;      /* each result's memory, and whoever makes it */
    const char *what;     /* the operation, for error texts */
    pthread_mutex_t lock; /* guards what follows, once there are results */
    bool landed;          /* the work is complete, the result in place, inputs let go */
    tutti_work *work;
    tti_blocks blocks;
    int n_keep;
    tutti_tensor *keep[]; /* owned; what the work reads or writes besides the results */
} tti_deferred;

/* A collective of libtutti has failed: keep its words as those of what, which is not said twice. */
tutti_status tti_refuse_collective(tutti_status status, const char *what);

/* ---- deferred.c */
/* One reference, with room for n_keep tensors. NULL: kept under what. */
tti_deferred *tti_deferred_make(const char *what, int n_keep);
/* The work was begun with status (else d->work is not there): hang d on y, both of which are handed
 * over. Returns y, or NULL where it was not begun. */
tutti_tensor *tti_deferred_end(tti_deferred *d, tutti_status status, tutti_tensor *y);
/* The same for n results. On failure all are released, and NULL in the list. */
tutti_status tti_deferred_end_list(tti_deferred *d, tutti_status status, tutti_tensor **ys, int n);
/* Release what was prepared, either of which may be NULL. Returns NULL. */
tutti_tensor *tti_deferred_give_up(tti_deferred *d, tutti_tensor *y);

/* ---- functional.c: results are owned, inputs only read and free to change when the call returns */
/* The caller's place in a group. False, and kept under what: it is no member. */
typedef struct tti_team {
    int size, rank;
} tti_team;
bool tti_team_of(const char *what, tutti_group *group, tti_team *team_out);
/* Another tensor over a contiguous one: part r, of a shape. */
tutti_tensor *tti_part(const tutti_tensor *whole, int64_t r, int nd, const int64_t *shape);

tutti_tensor *tti_raw_broadcast(const tutti_tensor *x, int src, tutti_group *group);
tutti_tensor *tti_raw_all_reduce(const tutti_tensor *x, tutti_op op, tutti_group *group);
/* Ranks other than dst get zeros. */
tutti_tensor *tti_raw_reduce(const tutti_tensor *x, int dst, tutti_op op, tutti_group *group);
/* Ranks one after the other along dim. */
tutti_tensor *tti_raw_all_gather(const tutti_tensor *x, int dim, tutti_group *group);
tutti_tensor *tti_raw_reduce_scatter(const tutti_tensor *x, tutti_op op, int dim,
                                     tutti_group *group);
/* [..] -> [P, ..] on dst, zeros elsewhere, and back: [P, ..] of src -> [..]. */
tutti_tensor *tti_raw_gather(const tutti_tensor *x, int dst, tutti_group *group);
tutti_tensor *tti_raw_scatter(const tutti_tensor *x, int src, tutti_group *group);
/* splits: [P] rows of dimension 0, or both NULL. */
tutti_tensor *tti_raw_all_to_all(const tutti_tensor *x, const int64_t *out_splits,
                                 const int64_t *in_splits, tutti_group *group);

/* The memory of reduce_scatter's input: part r of [P, part] is what rank r gets. */
tutti_tensor *tti_scatter_parts(const tutti_tensor *x, int dim, int parts);
/* Check that dim divides by parts; the shape of a part. nd_out is at least 1. */
bool tti_part_shape(const char *what, const tutti_tensor *x, int *dim, int parts, int *nd_out,
                    int64_t *shape_out);

#endif
