/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/join.h - training on inputs of different lengths: ranks that have run out play along until all have.
 *
 *     joinable = tutti_reducer_joinable(reducer, &opts);
 *     tutti_join_begin(&joinable, 1, NULL, &join);
 *     while (st == TUTTI_OK && there is an input)
 *         st = a step, as ever;
 *     st = tutti_join_end(join, st);
 *
 * A joinable is an object whose steps have collectives, and what to do in its place when this rank has no input any
 * more. Ranks that still have some tell so at the top of each step; those that have none hear it in tutti_join_end(),
 * and have every joinable issue what an active rank issues in a step. When nobody has any more, joinables put right what
 * ran apart. All members of the group make the scope; what else they do in steps has no collectives in this group. */
#ifndef TUTTI_JOIN_H
#define TUTTI_JOIN_H

#include <tutti/parallel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_join tutti_join;

/** An object that takes part. The struct is copied; what it points to must live as long as the scope. */
typedef struct tutti_joinable {
    tutti_group *group; /* NULL: the world. The same in all joinables of a scope */
    void        *object;

    /* Required. This rank has run out, and n_active others have not: issue exactly the collectives that one of them
     * issues in a step. */
    tutti_status (*main_hook)(void *object, int n_active);
    /* Optional. All have run out; is_last_joiner: this rank was among the last ones to. */
    tutti_status (*post_hook)(void *object, bool is_last_joiner);
    /* Optional. The scope begins; NULL: it is over. The first joinable calls tutti_join_notify() at the top of
     * each step. */
    void (*enter)(void *object, tutti_join *join);
} tutti_joinable;

/** Options of tutti_join_begin. Initialise with TUTTI_JOIN_OPTIONS; zero fields mean the default. */
typedef struct tutti_join_options {
    size_t size;
    bool   throw_on_early_termination; /* the first rank to run out ends it for all, as an error */
} tutti_join_options;

#define TUTTI_JOIN_OPTIONS                                                                             \
    {                                                                                                  \
        sizeof(tutti_join_options), 0                                                                  \
    }

/** Begin the scope. A local call.
 *
 * @param joinables  [n] copied; hooks are called in their order
 * @param join_out   ended by tutti_join_end(), whatever happens
 * @errors   TUTTI_E_ARG    there are none, one has no main_hook, or their groups differ
 *           TUTTI_E_STATE  this rank is not in the group
 * @threads  one
 * @source   torch.distributed.algorithms.Join */
TUTTI_API tutti_status tutti_join_begin(const tutti_joinable *joinables, int n, const tutti_join_options *opts,
                                        tutti_join **join_out);

/** Tell ranks that have run out that this one has not. For the first joinable of a scope; from others it does nothing.
 *
 * @param join    NULL does nothing
 * @param object  who calls
 * @errors   TUTTI_E_STATE  a rank has run out, with throw_on_early_termination
 *           what tutti_all_reduce fails with
 * @threads  one
 * @cost     one all_reduce of a number, not waited for; with throw_on_early_termination a second one, which is
 * @source   torch.distributed.algorithms.Join.notify_join_context */
TUTTI_API tutti_status tutti_join_notify(tutti_join *join, const void *object);

/** How many ranks are in the step that was notified last: waits for it.
 * @errors   TUTTI_E_STATE  none was
 *           what tutti_all_reduce fails with
 * @threads  any, one at a time
 * @source   ours */
TUTTI_API tutti_status tutti_join_active(tutti_join *join, int *n_out);

/** This rank has run out of inputs: play along until all have. The scope is over, whatever this returns.
 *
 * @param join    NULL does nothing
 * @param so_far  how the loop ended; if not TUTTI_OK it is returned, and nobody is played along with
 * @errors   TUTTI_E_STATE  throw_on_early_termination, and another rank has not run out
 *           what a hook fails with
 * @threads  one
 * @source   torch.distributed.algorithms.Join.__exit__ */
TUTTI_API tutti_status tutti_join_end(tutti_join *join, tutti_status so_far);

/** Options of tutti_reducer_joinable. Initialise with TUTTI_REDUCER_JOIN_OPTIONS; zero fields mean the default. */
typedef struct tutti_reducer_join_options {
    size_t            size;
    bool              divide_by_active;  /* averages are over the ranks that have inputs; else over all */
    const tutti_span *state;             /* [n_state] parameters and buffers, which all ranks have from the last */
    int               n_state;           /* joiner at the end; borrowed for the scope */
} tutti_reducer_join_options;

#define TUTTI_REDUCER_JOIN_OPTIONS                                                                     \
    {                                                                                                  \
        sizeof(tutti_reducer_join_options), 0, 0, 0                                                    \
    }

/** A reducer as a joinable. On a rank that has run out gradients count as zeros, and stay as they are. Communication
 * hooks run on zeros there.
 *
 * With static_graph the others may make the first step without a rank: that one counts its marks in the first step of its
 * own, which does not overlap. It must not use a parameter that nobody used in the first step: tutti_reducer_finish()
 * then fails with TUTTI_E_STATE, and on the others with TUTTI_E_REMOTE.
 *
 * @param opts  NULL: every default
 * @errors   TUTTI_E_ARG  opts make no sense
 * @threads  one
 * @source   torch.nn.parallel.DistributedDataParallel.join (whose divide_by_initial_world_size is the opposite of
 *           divide_by_active) */
TUTTI_API tutti_status tutti_reducer_joinable(tutti_reducer *reducer, const tutti_reducer_join_options *opts,
                                              tutti_joinable *joinable_out);

#ifdef __cplusplus
}
#endif
#endif
