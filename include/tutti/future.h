/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/future.h - values that come later: from an operation, or from whoever promises them.
 *
 * A future is completed once, with a value (a pointer, and what releases it) or with a failure (a status and
 * its words). Everybody who holds a reference may wait for it, read it, and attach functions to it. The value
 * belongs to the future: it is released with the last reference.
 *
 * Which thread runs functions: the one that completes the future; one attached to a future that is complete
 * already runs on the attaching thread, before the call returns. Functions of one future run in the order they
 * were attached. Never under a lock of the library. What becomes due while a function runs on the same thread
 * runs after it, not inside it, so that a chain of any length needs little stack; a wait inside a function runs
 * first what is due on its thread. Futures of works (tutti_work_get_future) are completed on the thread
 * that tutti_work_then() tells of.
 *
 * A future that nobody can complete any more, because the last reference is gone, is completed with
 * TUTTI_E_ABORTED for those who attached functions to it. */
#ifndef TUTTI_FUTURE_H
#define TUTTI_FUTURE_H

#include <tutti/group.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_future tutti_future;

/** Releases a value. NULL in its place: there is nothing to release. */
typedef void (*tutti_value_free_fn)(void *value);

/** Make a future that is not complete.
 * @param future_out  a new reference
 * @errors  TUTTI_E_NOMEM, TUTTI_E_ARG
 * @threads any
 * @source  torch.futures.Future */
TUTTI_API tutti_status tutti_future_create(tutti_future **future_out);

/** Another reference to the same future, which tutti_future_free() drops. NULL is fine.
 * @threads any
 * @source  ours */
TUTTI_API tutti_future *tutti_future_retain(tutti_future *future);

/** Drop a reference. NULL does nothing.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_future_free(tutti_future *future);

/** Complete a future with a value, and run what is attached.
 *
 * @param value    the future's from now on, if this succeeds; may be NULL
 * @param free_fn  releases it
 * @errors  TUTTI_E_STATE  it is complete already; value stays the caller's
 * @threads any; attached functions run on this one
 * @source  torch.futures.Future.set_result */
TUTTI_API tutti_status tutti_future_set_result(tutti_future *future, void *value, tutti_value_free_fn free_fn);

/** Complete a future with a failure, and run what is attached.
 *
 * @param status  not TUTTI_OK
 * @param words   copied: what tutti_last_error() tells those who ask the future; NULL: the status's name
 * @errors  TUTTI_E_STATE  it is complete already
 *          TUTTI_E_ARG    status is TUTTI_OK
 * @threads any; attached functions run on this one
 * @source  torch.futures.Future.set_exception */
TUTTI_API tutti_status tutti_future_set_error(tutti_future *future, tutti_status status, const char *words);

/** Whether a future is complete, well or not. Never blocks.
 * @threads any
 * @source  torch.futures.Future.done */
TUTTI_API bool tutti_future_is_done(const tutti_future *future);

/** Wait until a future is complete; its failure, words included, is returned.
 *
 * @errors  TUTTI_E_TIMEOUT  not complete in time; wait again
 *          whatever it was completed with, each time it is asked
 * @units   timeout_ms: ms; 0: TUTTI_TIMEOUT_MS (30 min), TUTTI_INFINITE none
 * @threads any, several at once
 * @source  torch.futures.Future.wait */
TUTTI_API tutti_status tutti_future_wait(tutti_future *future, int64_t timeout_ms);

/** The value of a complete future.
 *
 * @param value_out  borrowed: it lives as long as the future
 * @errors  TUTTI_E_STATE  not complete
 *          whatever it was completed with, each time it is asked
 * @threads any, several at once
 * @source  torch.futures.Future.value */
TUTTI_API tutti_status tutti_future_value(tutti_future *future, void **value_out);

/** What tutti_future_then() calls with a future that has a value: it fills in the value of the next one, and
 * what releases it; both are NULL at first. A status other than TUTTI_OK is the next one's failure, with
 * tutti_last_error() as its words. */
typedef tutti_status (*tutti_future_fn)(tutti_future *future, void *ctx, void **value_out,
                                        tutti_value_free_fn *free_out);

/** Chain: when future has a value, the next one has what fn makes of it. A failure passes by fn, status and
 * words as they are.
 *
 * @param next_out  a new reference
 * @errors  TUTTI_E_NOMEM  fn is never called
 *          TUTTI_E_ARG
 * @threads any; see the top for the one that runs fn
 * @source  torch.futures.Future.then (which calls fn for failures, too: tutti_future_add_done_callback) */
TUTTI_API tutti_status tutti_future_then(tutti_future *future, tutti_future_fn fn, void *ctx,
                                         tutti_future **next_out);

/** What is called when a future is complete, well or not: future is borrowed for the call. */
typedef void (*tutti_future_done_fn)(tutti_future *future, void *ctx);

/** Have fn called once when future is complete, well or not.
 *
 * @errors  TUTTI_E_NOMEM  fn is never called
 *          TUTTI_E_ARG
 * @threads any; see the top for the one that runs fn
 * @source  torch.futures.Future.add_done_callback */
TUTTI_API tutti_status tutti_future_add_done_callback(tutti_future *future, tutti_future_done_fn fn, void *ctx);

/** Several futures: the value of tutti_collect_all(). */
typedef struct tutti_futures {
    tutti_future **at; /* [n], references of the value */
    int            n;
} tutti_futures;

/** A future that is complete when all of several are, well or not; its value is a tutti_futures with them, in
 * their order, each complete.
 *
 * @param futures  may go when the call returns; 0 of them are complete
 * @errors  TUTTI_E_NOMEM
 *          TUTTI_E_ARG    an entry is NULL
 * @threads any
 * @source  torch.futures.collect_all */
TUTTI_API tutti_status tutti_collect_all(tutti_future *const *futures, int n, tutti_future **all_out);

/** A future that is complete when one of several is, well or not; its value is an int, the index of the first.
 *
 * @param futures  1 or more; may go when the call returns
 * @errors  TUTTI_E_NOMEM
 *          TUTTI_E_ARG    none, or an entry is NULL
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_collect_any(tutti_future *const *futures, int n, tutti_future **any_out);

/** Wait until all futures are complete, whatever each came to.
 *
 * @errors  TUTTI_E_TIMEOUT  one was not complete in time, the text says which
 *          else what the first one that failed, in their order, failed with
 * @units   timeout_ms: ms, for all of them together; 0: TUTTI_TIMEOUT_MS, TUTTI_INFINITE none
 * @threads any, several at once
 * @source  torch.futures.wait_all */
TUTTI_API tutti_status tutti_future_wait_all(tutti_future *const *futures, int n, int64_t timeout_ms);

/* ---- works ---------------------------------------------------------------------------------------- */

/** Several spans: the value of tutti_work_get_future(). */
typedef struct tutti_spans {
    tutti_span *at; /* [n] */
    int         n;
} tutti_spans;

/** The spans that a work that has ended well has written: the result of a reduction, a rank's part, or one part
 * per rank in group order, also where they lie in one span; of several buffers one after the other. None for
 * a barrier, a send, and a root's operation whose result is elsewhere. The broadcaster's own span counts.
 *
 * @param spans_out  [max] the first max of them; NULL with max 0 asks for their number alone
 * @param n_out      how many there are
 * @errors  TUTTI_E_STATE        the work has not ended
 *          TUTTI_E_UNSUPPORTED  it was recorded in a coalescing scope: ask the scope's work
 *          anything the operation failed with, each time it is asked
 * @threads any
 * @source  torch.distributed.Work.result */
TUTTI_API tutti_status tutti_work_result(tutti_work *work, tutti_span *spans_out, int max, int *n_out);

/** A future that completes as work does: with a tutti_spans of its tutti_work_result() (none for one that was
 * recorded in a coalescing scope), or its failure.
 *
 * @param future_out  a new reference; the work may be freed
 * @errors  TUTTI_E_ARG    an argument is NULL
 *          TUTTI_E_NOMEM
 * @threads any; functions attached to it run as tutti_work_then() tells
 * @source  torch.distributed.Work.get_future */
TUTTI_API tutti_status tutti_work_get_future(tutti_work *work, tutti_future **future_out);

#ifdef __cplusplus
}
#endif
#endif
