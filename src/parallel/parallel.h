/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parallel/parallel.h - what the files of this room share: the reducer and its buckets.
 *
 *   assign.c     which parameter goes into which bucket
 *   reducer.c    the object: its options, its parameters, its end
 *   verify.c     the same parameters on all ranks, or an error on all of them
 *   buckets.c    memory of buckets, places in them
 *   rebuild.c    once, in the order in which gradients came
 *   backward.c   from prepare to the last reduction that begins
 *   finish.c     from there to averages in their places
 *   account.c    ranks that could not finish tell the others
 *   words.c      what is said of parameters
 *   comm_hook.c  registering hooks; compress.c, quantize.c, those of the library, over hooks.h; builtin.c, by number
 *                and name; post_local_sgd.c and powersgd.c with its own files, those with options
 *                blockwise.c over tutti/compressed.h
 *   lowrank.c    a matrix as the product of two thin ones
 *   convert.c    from one floating dtype to another
 *   timing.c     when things happened; logging.c, telling it
 *   broadcast.c  the same values everywhere, to begin with
 *   join.c       ranks without inputs play along, of whatever kind; reducer_join.c, reducers do
 *
 * Who     lock guards what mark_ready() changes, which any thread may call: marks, counts, next, failure. What it
 *         copies, and the hooks, are outside of it: a parameter's slice is written by its one caller, before the
 *         count of its bucket goes down under the lock; whoever sees it at 0, under the lock, reads the bucket after.
 *         Buckets begin in order as only one thread at a time, with launching set, takes the next one.
 *         Everything else is changed by the thread that steps, while nobody is inside mark_ready(). */
#ifndef TTI_PARALLEL_PARALLEL_H
#define TTI_PARALLEL_PARALLEL_H

#include "base/thread.h"
#include "parallel/assign.h"
#include <tutti/join.h>
#include <tutti/parallel.h>

enum { TTI_REDUCER_WORDS_MAX = 1024 };

typedef struct tti_reducer_slot {
    char       *name; /* NULL: none */
    tutti_dtype dtype;
    int64_t     numel;
    size_t      bytes;
    int         ndim;
    int64_t    *sizes; /* [2 * ndim] sizes, then strides */
    void       *grad;  /* NULL: undefined */

    int     bucket; /* where its place is */
    int64_t offset; /* in elements */

    bool  ready;     /* in this step; lock */
    bool  unused;    /* it will not be marked in this step by this rank */
    bool  was_unused; /* in the step before */
    int   triggers;  /* static graph: marks of this rank's first step; lock */
    int   remaining; /* static graph: marks that are to come in this step; lock */
    void *kept;      /* [bytes] contents of a gradient in a bucket that nobody may have used; NULL: none yet */
    bool  is_kept;   /* in this step */
} tti_reducer_slot;

typedef struct tti_reducer_bucket {
    tutti_dtype   dtype;
    int           n;
    const int    *params;  /* [n] in the layout */
    int64_t      *offsets; /* [n] */
    int64_t      *counts;  /* [n] */
    int64_t       count;   /* elements; one more lies behind them: account.c */
    char         *data;
    bool          registered;
    int           pending; /* gradients that are to come; lock */
    bool          left_out; /* of this step, as nothing in it is used */
    tutti_work   *work;    /* under way */
    tutti_future *future;  /* the same of a hook */
} tti_reducer_bucket;

/** When things happened in the last step with sync, and how long they took over all. */
typedef struct tti_reducer_times {
    int64_t forward_start, backward_start, backward_end, comm_start, comm_end; /* ns; 0: not measured */
    int64_t forward, backward, comm, overlap;                                  /* ns, of the last step */
    double  avg_forward, avg_backward, avg_comm, avg_overlap;
    int64_t n;
} tti_reducer_times;

/** A reducer in a scope of uneven inputs. */
typedef struct tti_reducer_join {
    tutti_join       *scope; /* NULL: in none */
    bool              divide_by_active;
    const tutti_span *state; /* [n_state] */
    int               n_state;
    int32_t           flag; /* whether this rank averages in this step, to be added up */
    tutti_work       *flag_work;
} tti_reducer_join;

struct tutti_reducer {
    tutti_group *group;
    int          rank, size;
    tti_port    *port;
    char        *name;
    tti_caps     caps;
    int64_t     *cap_list; /* caps.list */
    bool         views, skips;

    tti_reducer_slot   *slots; /* [n] */
    int                 n;
    tti_layout          layout;
    tti_reducer_bucket *buckets; /* [layout.n_buckets] */

    const tutti_comm_hook *hook; /* NULL: the average */
    void                  *hook_state;

    tti_mutex lock;

    /* lock, while a step is under way. */
    bool         expect;        /* marks are awaited */
    bool         begun;         /* a mark has come */
    bool         closed;        /* no more will come: everything has begun */
    bool         unused_marked;
    bool         launching;
    int          next;          /* the bucket to begin next */
    int          n_ready;
    tutti_status failure;       /* the first one of this step: finish() tells it */
    char         failure_words[TTI_REDUCER_WORDS_MAX];
    bool         lost;          /* a reduction could not begin: others wait for another one than this rank */
    int32_t     *used;          /* [n] by this rank, since the last finish(); lock */
    int         *arrived;       /* [n] the order of this step */
    int          n_arrived;
    int         *recorded;      /* [n] the order for rebuilding */
    int          n_recorded;

    /* The thread that steps. */
    int32_t    *used_sum;   /* [n + 1] by all ranks; [n]: ranks that fail */
    tutti_work *used_work;  /* under way */
    bool        used_known; /* used_sum is complete */
    bool        sync;
    bool        has_warned; /* that find_unused is needless */
    bool        varies;     /* parameters were unused in one step, and used in the next */
    bool        forward;    /* prepare_for_forward() has been called for the step to come */
    bool        first_done; /* static graph: the first step is over, on all ranks */
    bool        counted;    /* static graph: so is the first one of this rank's own, later where it had no input before */
    bool        may_rebuild, has_rebuilt;
    int         divisor;    /* what a sum is divided by */
    int64_t     iterations; /* steps with sync */
    int        *order_before; /* [n] the order of the step before, for people */
    int         n_order_before;

    void       *reports;    /* [size + 1] account.c */
    bool        shadow;     /* a step of others: gradients count as zeros, and stay */

    tti_reducer_join join;

    tti_reducer_times times;
    bool              has_error; /* logging data; the words stay */
    char              error[TTI_REDUCER_WORDS_MAX];
    int64_t           n_reduced; /* buckets in the step before */
};

/** static_graph, and its first step is not over: what is used is told in it. The same on all ranks. */
static inline bool tti_is_first_static(const tutti_reducer *r)
{
    return r->caps.static_graph && !r->first_done;
}

/** static_graph, and this rank has made no step of its own: marks are counted, and nothing is begun before finish(). */
static inline bool tti_counts_marks(const tutti_reducer *r)
{
    return r->caps.static_graph && !r->counted;
}

/** Parameters may be unused, and every step tells which. */
static inline bool tti_is_dynamic(const tutti_reducer *r)
{
    return r->caps.find_unused && !r->caps.static_graph;
}

/** used_sum is made in this step. */
static inline bool tti_sums_used(const tutti_reducer *r)
{
    return tti_is_dynamic(r) || tti_is_first_static(r);
}

/** Where parameter i lies in its bucket. */
static inline void *tti_place(const tutti_reducer *r, int i)
{
    return r->buckets[r->slots[i].bucket].data + (size_t)r->slots[i].offset * tutti_dtype_size(r->slots[i].dtype);
}

/** What the hook is called. */
static inline const char *tti_hook_name(const tutti_reducer *r)
{
    return r->hook->name != NULL ? r->hook->name : "without a name";
}

/* verify.c */
tutti_status tti_reducer_verify(tutti_reducer *r, tutti_status ours);

/* buckets.c: layout becomes the buckets', on success. */
tutti_status tti_buckets_create(const tutti_reducer *r, const tti_layout *layout, tti_reducer_bucket **buckets_out);
void         tti_buckets_free(tti_reducer_bucket *buckets, int n);
void         tti_buckets_adopt(tutti_reducer *r, tti_layout *layout, tti_reducer_bucket *buckets);
tutti_status tti_layout_for(const tutti_reducer *r, const int *order, tti_layout *layout_out);
tutti_grad_bucket tti_bucket_for_hook(const tutti_reducer *r, int b);

/* rebuild.c */
tutti_status tti_reducer_rebuild(tutti_reducer *r);

/* backward.c. The lock is held where it says so, and let go of meanwhile. */
tutti_status tti_mark_locked(tutti_reducer *r, int i);
void         tti_mark_unused_locked(tutti_reducer *r);
void         tti_begin_locked(tutti_reducer *r, const int *unused, int n_unused);
/** Gradients are awaited, if this step has sync; n_unused parameters, which there are, are not. */
tutti_status tti_reducer_prepare(tutti_reducer *r, const int *unused, int n_unused);
/** Keep a failure of this step, with the words of the calling thread, unless there is one. Locked. */
void tti_reducer_fail_locked(tutti_reducer *r, tutti_status st);
/** Keep words for the logging data. */
void tti_reducer_keep_error(tutti_reducer *r);

/* finish.c */
/** Wait for everything that was begun, whatever it comes to. */
tutti_status tti_reducer_drain(tutti_reducer *r);
/** No more marks will come: begin what has not begun. Once a step. */
void tti_reducer_close(tutti_reducer *r);
/** The end of a step, when every parameter was marked. */
tutti_status tti_reducer_complete(tutti_reducer *r);

/* reducer_join.c: nothing outside of a scope. */
tutti_status tti_join_step(tutti_reducer *r);
tutti_status tti_join_tell_sync(tutti_reducer *r);
/** Over how many ranks this step averages, if not over all. */
tutti_status tti_join_divisor(tutti_reducer *r);

/* account.c */
size_t       tti_tail_bytes(const tti_reducer_bucket *bucket);
void         tti_tail_set(const tti_reducer_bucket *bucket, bool failed);
bool         tti_tail_says(const tti_reducer_bucket *bucket);
/** Somebody has failed: who, and how. Returns this rank's own failure, or that of the first that has one. */
tutti_status tti_reducer_account(tutti_reducer *r);
/** What r->reports has to have room for. */
size_t tti_reports_bytes(int size);

/* words.c */
tutti_status tti_fail_unfinished(const tutti_reducer *r);
tutti_status tti_fail_twice(const tutti_reducer *r, int i);
tutti_status tti_fail_changed(const tutti_reducer *r, int i);
tutti_status tti_fail_unknown(const tutti_reducer *r, int i);
/** "parameter 3 ('fc.weight')" */
const char *tti_param_text(const tutti_reducer *r, int i, char *out, size_t size);

/* comm_hook.c */
/** Whether it is a table of this version. */
tutti_status tti_comm_hook_check(const tutti_comm_hook *hook);
/** The reducer has another group. NULL: there is no hook. */
void tti_comm_hook_tell_group(const tutti_comm_hook *hook, void *state);
/** Whether a hook can be registered now. */
tutti_status tti_comm_hook_check_place(const tutti_reducer *r);

/* convert.c */
/** Whether elements of one dtype can become those of the other. */
bool tti_can_convert(tutti_dtype to, tutti_dtype from);
/** out[i] = in[i], rounded once; no overlap, but the same address where the dtypes are the same. */
void tti_convert(void *out, tutti_dtype to, const void *in, tutti_dtype from, int64_t count);

/* timing.c */
void tti_times_forward(tutti_reducer *r);
void tti_times_backward(tutti_reducer *r);
void tti_times_comm_start(tutti_reducer *r);
void tti_times_backward_end(tutti_reducer *r);
void tti_times_comm_end(tutti_reducer *r);

#endif
