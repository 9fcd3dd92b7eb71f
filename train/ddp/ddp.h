/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp.h - what the files of this room share.
 *
 *   ddp.c        wrapping a module, and taking everything off again
 *   step.c       before and after the forward; hooks of parameters; the end of the backward
 *   gradients.c  where gradients are: telling the reducer, and moving into buckets
 *   sink.c       outputs that a loss may leave out
 *   mixed.c      parameters of f32 that compute in 16 bits
 *   buffers.c    the same values on all ranks
 *   bucket.c     for optimizers that step inside of a backward
 *   join.c       a rank that has run out of inputs
 *   tell.c       what is logged */
#ifndef TTI_TRAIN_DDP_DDP_H
#define TTI_TRAIN_DDP_DDP_H

#include <tutti/ddp.h>
#include "autograd/autograd.h"
#include "nn/nn.h"

/* A tensor in two types: which of them it has, and the other. */
typedef struct tti_ddp_twin {
    tutti_tensor *tensor; /* counted */
    tutti_tensor *other;  /* counted; NULL: it is as it always was */
} tti_ddp_twin;

/* Computing in 16 bits. */
typedef struct tti_ddp_mixed {
    tutti_mixed_precision o;
    tti_ddp_twin *params, *buffers; /* those that change */
    int n_params, n_buffers;
    bool recorded; /* a backward is to come, for parameters as they are */
} tti_ddp_mixed;

/* A parameter that requires gradients; its index is its place, as in the reducer. */
typedef struct tti_ddp_slot {
    tutti_ddp *ddp;
    int index;
    char *name;
    tutti_tensor *param; /* counted */
    int handle;          /* of its hook; 0: none */
    bool fired;          /* in this backward */
    tutti_tensor *bound; /* over its place in a bucket; counted; NULL: not yet */
    tti_ddp_twin *twin;  /* NULL: it computes as it is */
} tti_ddp_slot;

/* What outlives a ddp: graphs may hold nodes that want to tell it of a backward. */
typedef struct tti_ddp_link {
    atomic_int refs;
    tutti_ddp *ddp; /* NULL: it is gone */
} tti_ddp_link;

/* How far a step that averages has come on this rank. */
typedef enum tti_ddp_stage {
    TTI_DDP_BETWEEN, /* none has begun */
    TTI_DDP_FORWARD, /* it has begun: the module computes */
    TTI_DDP_BACKWARD /* gradients are awaited */
} tti_ddp_stage;

struct tutti_ddp {
    tutti_module *net;     /* NULL: freed with the wrapper by whoever owned that */
    tutti_module *wrapper; /* its parent */
    tutti_group *group;    /* NULL: there is none, and wrapping fails */
    tutti_reducer *reducer;
    tti_ddp_link *link;

    tti_ddp_slot *slots; /* [n] */
    int n;
    tutti_tensor **params; /* [n] of the slots */
    char **ignored;        /* [n_ignored] */
    int n_ignored;
    bool find_unused, static_graph, views, broadcast_buffers;

    tti_ddp_mixed *mixed; /* NULL: nothing changes */

    bool sync;        /* forwards average from now on */
    bool buffers_due; /* before the next forward, as the one before averaged */
    bool in_backward; /* its end is asked for */
    bool averages;    /* this backward does */
    tti_ddp_stage stage;
    tti_awaiting awaiting; /* a backward, while stage says so */
    bool rebuilt;     /* places in buckets stay where they are */
    const void *first_place; /* of parameter 0, before what may have rebuilt buckets */
    bool has_warned;  /* of gradients with strides of their own */
    bool has_told;    /* static_graph: what the first step did not use */

    bool *reached; /* [n] by the backward to come */
    int *unused;   /* [n] */
    int64_t steps; /* forwards that averaged */

    tutti_buffer_hook buffer_hook; /* NULL: rank 0's are sent */
    void *buffer_state;
    tutti_buffer_hook_place buffer_place;
    tutti_future *buffers_under_way; /* NULL: nothing is */

    tutti_join *join;        /* NULL: in no scope */
    tutti_joinable reducers; /* the reducer's part in it */
    bool is_joinable;        /* somebody may open one */
    bool steps_at_end;       /* an optimizer does at the end of backwards, and a rank without inputs has none */
};

/* ddp.c: whether a name stands in the list of those left alone. */
bool tti_ddp_ignores(const tutti_ddp *ddp, const char *name);

/* step.c: a backward has come to this ddp. */
tutti_status tti_ddp_in_backward(tutti_ddp *ddp);
/* step.c: the hook of a parameter; ctx is its slot. */
tutti_status tti_ddp_on_gradient(tutti_tensor *param, void *ctx);
/* step.c: gradients are awaited no more. */
void tti_ddp_stand_down(tutti_ddp *ddp);

/* gradients.c */
/* Tell the reducer where the gradient of a parameter is. */
tutti_status tti_ddp_point(tti_ddp_slot *s);
tutti_status tti_ddp_point_all(tutti_ddp *ddp);
/* A gradient has been handed in: with views it lives in its place now. */
tutti_status tti_ddp_settle(tti_ddp_slot *s);
/* Averages are there: take over those of parameters that had no gradient. */
tutti_status tti_ddp_take_results(tutti_ddp *ddp);
/* Buckets may go: gradients move out of them. False: no memory for one, which is dropped. */
bool tti_ddp_move_out(tutti_ddp *ddp);
/* Buckets may be rebuilt by what comes next: move out if so. */
tutti_status tti_ddp_before_rebuild(tutti_ddp *ddp);
void tti_ddp_after_rebuild(tutti_ddp *ddp);

/* mixed.c: nothing without options. */
tutti_status tti_ddp_mixed_make(tutti_ddp *ddp, const tutti_mixed_precision *opts);
/* Nothing can fail any more: buffers change. */
void tti_ddp_mixed_begin(tutti_ddp *ddp);
void tti_ddp_mixed_free(tutti_ddp *ddp);
/* Parameters become what the module computes with, unless they are. */
tutti_status tti_ddp_lower(tutti_ddp *ddp);
/* A forward is over, of which a graph has parameters as they are; or one of which nothing is recorded. */
void tti_ddp_recorded(tutti_ddp *ddp);
tutti_status tti_ddp_raise_unrecorded(tutti_ddp *ddp);
/* One of them, or all, become themselves again, with gradients of their type; nothing if they are. */
tutti_status tti_ddp_raise(tti_ddp_slot *s);
tutti_status tti_ddp_raise_all(tutti_ddp *ddp);

/* sink.c: route outputs, n of them, through nodes that tell of every backward. */
tutti_status tti_ddp_sink(tutti_ddp *ddp, tutti_tensor **outputs, int n);
tti_ddp_link *tti_ddp_link_make(tutti_ddp *ddp);
void tti_ddp_link_release(tti_ddp_link *link);

/* buffers.c */
/* Give all ranks all parameters and buffers of one, a global rank. */
tutti_status tti_ddp_give_state(tutti_ddp *ddp, int src);
/* Before a forward. active: this rank has an input. */
tutti_status tti_ddp_sync_buffers(tutti_ddp *ddp, bool active, bool recording);
/* After it: what a hook is asked to do then. */
tutti_status tti_ddp_buffers_after(tutti_ddp *ddp);
/* Wait for what a buffer hook has begun. */
tutti_status tti_ddp_await_buffers(tutti_ddp *ddp);

/* bucket.c */
/* Begin the average of a bucket, by an inner hook if there is one.
 * @errors TUTTI_E_ARG the hook gave no future; what the hook or the all_reduce ends with */
tutti_status tti_ddp_begin_average(const tutti_comm_hook *hook, void *state, const tutti_grad_bucket *bucket,
                                   tutti_future **future_out);
/* The averaged gradient of p, which lies at data: in p's type. A reference of the caller's, or NULL: a failure is kept.
 * What has that type already is kept from step to step, in *kept, counted. */
tutti_tensor *tti_ddp_result(const tutti_tensor *p, void *data, tutti_dtype dtype, tutti_tensor **kept);

/* join.c: nothing outside of a scope. */
tutti_status tti_ddp_notify(tutti_ddp *ddp);
void tti_ddp_join_free(tutti_ddp *ddp);

/* tell.c */
void tti_ddp_tell_step(tutti_ddp *ddp);
void tti_ddp_tell_unused(const tutti_ddp *ddp);
void tti_ddp_tell_missing(const tutti_ddp *ddp);

#endif
