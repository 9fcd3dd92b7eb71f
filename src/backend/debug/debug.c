/* SPDX-License-Identifier: BSD-3-Clause
 *
 * debug.c - the backend "debug-NAME": the one called NAME, with a meeting before each collective.
 *
 * Why     "native" tells ranks that call different things, and names who has not come. Others cannot, or do it badly: an MPI library
 *         hangs, or writes beyond a buffer.
 * How     A table is made around that of the other backend. What takes a backend is a function here, which does what there is to
 *         do and hands on; what takes a request, or a window, is the other's own entry, as those are its own. What the other does
 *         not have this one does not have either.
 *         Which backend it is for an instance learns from the table that created it (tutti_backend_config.ops): that is
 *         the first member of an `around`.
 * True    Tables are kept in a list that only grows, at its head, under no lock: readers take the head with acquire order,
 *         writers put a whole one there by compare and swap, and look again before each try: there is one for a backend.
 *         A parent is a backend of the inner table: groups with a meeting and without one share connections.
 * Not     advance, hasten and late deadlines: a call begins with the meeting, in run. */
#include "backend/debug/debug.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "backend/debug/meeting.h"
#include "base/foreign.h"

enum { NAME_BYTES = 48 };

typedef struct around {
    tutti_backend_ops        ops; /* first: the two pointers convert both ways */
    tutti_window_ops         windows;
    tutti_stream_ops         streams;
    const tutti_backend_ops *inner;
    char                     name[NAME_BYTES];
    struct around           *next;
} around;

typedef struct debug_backend {
    tutti_backend  base;
    tutti_backend *inner;
    tutti_store   *own_store, *inner_store; /* parts of the group's */
    tti_meeting    meeting;
    char          *group;
    int            global_ranks[];
} debug_backend;

static _Atomic(around *) all;

static const tutti_backend_ops *inner_of(const tutti_backend_ops *ops)
{
    return ((const around *)ops)->inner;
}

static debug_backend *of(tutti_backend *backend)
{
    return (debug_backend *)backend;
}

/* ---- its life ---- */

static void debug_destroy(tutti_backend *backend)
{
    debug_backend *d = of(backend);

    if (d->inner != NULL)
        inner_of(d->base.ops)->destroy(d->inner);
    tutti_store_close(d->inner_store);
    tutti_store_close(d->own_store);
    free(d->group);
    free(d);
}

static tutti_status open_inner(debug_backend *d, const tutti_backend_config *config)
{
    tutti_backend_config its = *config;
    tutti_backend       *made = NULL;
    tutti_status         st = tutti_prefix_store_open("debug/", config->store, &d->own_store);

    if (st == TUTTI_OK)
        st = tutti_prefix_store_open("inner/", config->store, &d->inner_store);
    if (st != TUTTI_OK)
        return st;
    its.ops = inner_of(config->ops);
    its.store = d->inner_store;
    st = its.ops->create(&its, &made);
    if (st == TUTTI_OK && made == NULL)
        st = tti_foreign_broken("backend", its.ops->name, "create", "gives no backend");
    if (st == TUTTI_OK)
        d->inner = made;
    return st;
}

static tutti_status debug_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    const size_t   ranks = (size_t)config->n_ranks * sizeof(int);
    debug_backend *d = calloc(1, sizeof *d + ranks);
    tutti_status   st = TUTTI_OK;

    if (d == NULL || (d->group = strdup(config->name)) == NULL) {
        free(d);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a backend of %d ranks", config->n_ranks);
    }
    d->base.ops = config->ops;
    memcpy(d->global_ranks, config->global_ranks, ranks);
    st = open_inner(d, config);
    if (st != TUTTI_OK) {
        debug_destroy(&d->base);
        return st;
    }
    d->meeting = (tti_meeting){ .store = d->own_store, .inner = d->inner, .inner_ops = inner_of(config->ops),
                                .group = d->group, .rank = config->rank, .n_ranks = config->n_ranks,
                                .global_ranks = d->global_ranks };
    *backend_out = &d->base;
    return TUTTI_OK;
}

/* ---- what is done ---- */

/* The inner backend is not run any more, and tells the others why, if it can: who comes when this member has left hears it from
 * there. Its words stay this thread's. Where it cannot, their time runs out. */
static tutti_status fail_inner(debug_backend *d, tutti_status st)
{
    if (inner_of(d->base.ops)->fail != NULL)
        inner_of(d->base.ops)->fail(d->inner, st);
    return st;
}

static tutti_status debug_run(tutti_backend *backend, const tutti_call *call)
{
    debug_backend *d = of(backend);
    tutti_status   st = TUTTI_OK;
    uint32_t       said;

    if (!inner_of(d->base.ops)->needs_no_peers) /* else there may be nobody to meet */
        st = tti_meeting_hold(&d->meeting, call);
    if (st != TUTTI_OK)
        return fail_inner(d, st);
    said = tti_words_said(); /* a look of the meeting that found nothing has been worded, too, and is no reason of a failure here */
    return tti_foreign_status("backend", inner_of(d->base.ops)->name, "run", inner_of(d->base.ops)->run(d->inner, call), said);
}

static void debug_abort(tutti_backend *backend)
{
    debug_backend *d = of(backend);

    tti_meeting_end(&d->meeting);
    inner_of(d->base.ops)->abort(d->inner);
}

static void debug_fail(tutti_backend *backend, tutti_status status)
{
    debug_backend *d = of(backend);

    tti_meeting_end(&d->meeting);
    inner_of(d->base.ops)->fail(d->inner, status);
}

/* ---- what is handed on ---- */

static tutti_status debug_mark(tutti_backend *backend, int device_index, void *stream, tutti_ticket **ticket_out)
{
    return inner_of(backend->ops)->streams->mark(of(backend)->inner, device_index, stream, ticket_out);
}

static tutti_status debug_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    return inner_of(backend->ops)->post(of(backend)->inner, message, request_out);
}

static tutti_status debug_post_all(tutti_backend *backend, const tutti_message *messages, int n,
                                   tutti_request **requests_out, int *n_out)
{
    return inner_of(backend->ops)->post_all(of(backend)->inner, messages, n, requests_out, n_out);
}

static tutti_status debug_transfer(tutti_backend *backend, const tutti_message *message, int64_t timeout_ms,
                                   void (*expired)(void *ctx, int64_t waited_ns), void *ctx, int *source_out)
{
    return inner_of(backend->ops)->transfer(of(backend)->inner, message, timeout_ms, expired, ctx, source_out);
}

static tutti_status debug_alive(tutti_backend *backend, int rank)
{
    return inner_of(backend->ops)->alive(of(backend)->inner, rank);
}

static uint64_t debug_world_id(tutti_backend *backend)
{
    return inner_of(backend->ops)->world_id(of(backend)->inner);
}

static tutti_status debug_open(tutti_backend *backend, uint32_t id, void *data, size_t bytes,
                               uint8_t card_out[TUTTI_WINDOW_CARD_BYTES], tutti_backend_window **window_out)
{
    return inner_of(backend->ops)->windows->open(of(backend)->inner, id, data, bytes, card_out, window_out);
}

/* ---- tables ---- */

static void fill(around *a, const tutti_backend_ops *inner)
{
    a->inner = inner;
    snprintf(a->name, sizeof a->name, TTI_DEBUG_PREFIX "%s", inner->name);
    a->ops = (tutti_backend_ops){
        .api = TUTTI_BACKEND_API,
        .size = sizeof a->ops,
        .name = a->name,
        .create = debug_create,
        .run = debug_run,
        .post = debug_post,
        .wait = inner->wait,
        .test = inner->test,
        .source = inner->source,
        .release = inner->release,
        .abort = debug_abort,
        .destroy = debug_destroy,
        .fail = inner->fail != NULL ? debug_fail : NULL,
        .notify = inner->notify,
        .needs_no_peers = inner->needs_no_peers,
        .alive = inner->alive != NULL ? debug_alive : NULL,
        .transfer = inner->transfer != NULL ? debug_transfer : NULL,
        .post_all = inner->post_all != NULL ? debug_post_all : NULL,
        .world_id = inner->world_id != NULL ? debug_world_id : NULL,
        .takes_segments = inner->takes_segments,
    };
    if (inner->windows != NULL) {
        a->windows = *inner->windows;
        a->windows.open = debug_open;
        a->ops.windows = &a->windows;
    }
    if (inner->streams != NULL) {
        a->streams = *inner->streams;
        a->streams.mark = debug_mark;
        a->ops.streams = &a->streams;
    }
}

const tutti_backend_ops *tti_debug_inside(const tutti_backend_ops *ops)
{
    return ops->create == debug_create ? inner_of(ops) : ops;
}

tutti_backend *tti_debug_inner_backend(const tutti_backend_ops *ops, tutti_backend *backend)
{
    return backend != NULL && ops->create == debug_create ? of(backend)->inner : backend;
}

/* From a on. */
static around *find_around(around *a, const tutti_backend_ops *inner)
{
    while (a != NULL && a->inner != inner)
        a = a->next;
    return a;
}

tutti_status tti_debug_around(const tutti_backend_ops *inner, const tutti_backend_ops **ops_out)
{
    around *first = atomic_load_explicit(&all, memory_order_acquire);
    around *found = find_around(first, inner), *made;

    if (found != NULL) {
        *ops_out = &found->ops;
        return TUTTI_OK;
    }
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a table around backend '%s'", inner->name);
    fill(made, inner);
    do {
        made->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&all, &first, made, memory_order_acq_rel, memory_order_acquire) &&
             (found = find_around(first, inner)) == NULL);
    if (found != NULL)
        free(made);
    *ops_out = found != NULL ? &found->ops : &made->ops;
    return TUTTI_OK;
}
