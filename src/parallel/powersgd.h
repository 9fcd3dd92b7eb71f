/* SPDX-License-Identifier: BSD-3-Clause
 *
 * powersgd.h - what the files of PowerSGD share.
 *
 *   powersgd.c           the object: options, its end, what it tells
 *   powersgd_meet.c      the ranks of a group agree before the first step
 *   powersgd_step.c      a bucket's way through its two reductions, and in which order they are issued
 *   powersgd_matrices.c  what is computed before, between and after them
 *   powersgd_state.c     all that is kept, as bytes
 *
 * What is kept from step to step belongs to parameters, not to buckets, so that those may be rebuilt. The square
 * matrix of the batched form is the bucket's: its errors are kept by parameter all the same. */
#ifndef TTI_PARALLEL_POWERSGD_H
#define TTI_PARALLEL_POWERSGD_H

#include "parallel/hooks.h"
#include "parallel/lowrank.h"
#include <tutti/comm_hooks.h>

/** Columns from the step before. */
typedef struct tti_columns {
    void       *data;  /* [k][cols] of the matrix; NULL: no memory yet */
    tutti_dtype dtype;
    bool        valid; /* there are some */
} tti_columns;

typedef struct tti_powersgd_param {
    int64_t     numel;
    int64_t     rows, cols;
    int         k;       /* 0: it is sent whole */
    void       *m;       /* [numel] error, and the matrix in a step; without error feedback f16 and bf16 in f32 */
    tutti_dtype m_dtype;
    tti_columns q;
} tti_powersgd_param;

typedef struct tti_powersgd_bucket {
    tutti_powersgd *of;
    int             index;
    /* Of the step. */
    tutti_span      buffer;
    int             n_params;
    const int      *params; /* [n_params] */
    const int64_t  *offsets;
    tutti_dtype     dtype;   /* of what is computed: f32, or f64 where the bucket is */
    int             n_matrices;
    int64_t         n_whole; /* elements that are sent whole */
    int64_t         n_first, n_second; /* elements of the two messages */
    tti_hook_buffer first;   /* [n_whole], then every P */
    tti_hook_buffer second;  /* every Q */
    void           *row;     /* of a result */
    size_t          row_bytes;
    bool            arrived; /* the first message; the hook's lock */
    tutti_status    status;  /* and how; with its words */
    char            words[TTI_REDUCER_WORDS_MAX];
    tutti_future   *done;    /* a reference, until it is completed */
    /* Batched: all of it as a square, in every step, and what is kept. */
    int64_t         side;
    void           *square;  /* [side][side] */
    size_t          square_bytes;
    void           *tail;    /* [n_tail] error, from the bucket's end on; NULL: none */
    tti_columns     q;
    uint64_t        list;    /* fingerprint of the params that tail and q are of, */
    int64_t         n_tail;  /* what they lack to a square, */
    tutti_dtype     kept_dtype; /* and of what dtype */
} tti_powersgd_bucket;

struct tutti_powersgd {
    tutti_comm_hook        hook;
    tutti_powersgd_options opts; /* as they hold */
    int                    rank, size; /* of the group, once it has met */
    tutti_group           *follow;     /* second messages; NULL: not made yet */
    bool                   owns_follow;
    int                    n;
    tti_powersgd_param    *params;  /* [n] */
    tti_powersgd_bucket   *buckets; /* [n] as many as there may be */

    /* Who runs the hook, one at a time. */
    tti_hook_steps steps;
    bool           has_met; /* the ranks have compared what they have, */
    bool           moved;   /* for the first time, or in another group */
    int64_t        n_before, n_after, next_report;

    tti_mutex             lock;
    tti_powersgd_bucket **order;   /* [n] those that were begun in this step; lock, as is */
    int                   n_begun;
    int                   turn;    /* whose second message is the next one */
    bool                  driving; /* a thread is at it */
    tutti_status          failed;  /* once and for all, with words */
    char                  words[TTI_REDUCER_WORDS_MAX];
};

/** A matrix of a bucket, and where its parts are. Zeroed before the first. */
typedef struct tti_powersgd_view {
    tti_matrix   of;
    int          id;     /* of the parameter; batched: of the bucket */
    void        *m;
    void        *p, *q;  /* in the messages */
    tti_columns *kept;
    int64_t      offset; /* in the bucket */
    int          at;     /* where to go on */
    int64_t      p_at, q_at;
} tti_powersgd_view;

/* powersgd_matrices.c */
/** Look at a bucket: which matrices it has, how long its messages are; memory for the first one.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_powersgd_fit(tti_powersgd_bucket *b, const tutti_grad_bucket *bucket);
/** Before the first message: memory for the rest, and fill it.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_powersgd_fill_first(tti_powersgd_bucket *b, int64_t iter);
/** Between the two: what was whole is there; fill the second one. */
void tti_powersgd_fill_second(tti_powersgd_bucket *b);
/** After it: results into the bucket, errors and columns for the next step. */
void tti_powersgd_finish(tti_powersgd_bucket *b);
void tti_powersgd_bucket_release(tti_powersgd_bucket *b);
/** Nothing is kept of a parameter. */
void tti_powersgd_param_forget(tti_powersgd_param *p);
bool tti_powersgd_next(tti_powersgd_bucket *b, tti_powersgd_view *v);

/* powersgd_meet.c */
/** Compare options and steps with all ranks, and make the follow group: once, and when they may have changed. */
tutti_status tti_powersgd_meet(tutti_powersgd *s, tutti_group *group);
/** The reducer has another group. */
void tti_powersgd_move(void *state);

/* powersgd_step.c */
tutti_status tti_powersgd_run(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out);

#endif
