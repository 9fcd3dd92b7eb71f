/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - tables of backends that others have made.
 *
 * Why     The group layer drives one table, of this version and whole. A plug-in's may be older, and so shorter, and may
 *         leave entries out.
 * How     A table is copied into one of this version; what it does not have yet is NULL there, as is what it leaves
 *         out. Messages are the only entries that the group layer does not ask for before it calls them: where there are
 *         none, ours stand in, which refuse. So it is with its tables of streams and of windows, each by its own size.
 *         What stands in arrays cannot be widened, as its size is the stride: it never changes, which the compiler sees to.
 * True    The list only grows, at its head, by compare and swap with release order; an entry is whole before it is in
 *         it, and never changes. So readers need no lock: an acquire load of the head, and on by next. */
#include "backend/plugin/table.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <tutti/private.h>

/* Bytes of the table of each version that is driven, the oldest first. */
static const uint32_t version_bytes[] = { offsetof(tutti_backend_ops, sit_out), offsetof(tutti_backend_ops, usable),
                                          offsetof(tutti_backend_ops, usable), /* the third: the table of windows has its size */
                                          sizeof(tutti_backend_ops) };

enum {
    N_VERSIONS = sizeof version_bytes / sizeof version_bytes[0],
    OLDEST = TUTTI_BACKEND_API - N_VERSIONS + 1,
    SIZED_WINDOWS = 3 /* the first version whose tables of windows say their size */
};

/* Of machines with pointers of 8 bytes, which is where plug-ins are. Who comes here with an error: see TUTTI_BACKEND_API. */
_Static_assert(sizeof(void *) != 8 || sizeof(tutti_segment) == 24, "calls have arrays of it: it never grows");
_Static_assert(sizeof(void *) != 8 || sizeof(tutti_message) == 48, "post_all has arrays of it: it never grows");
_Static_assert(sizeof(void *) != 8 || sizeof(tutti_op) == 16, "calls have it in their midst: it never grows");

static _Atomic(tti_adopted *) adopted;

/* ---- looking ---- */

typedef struct entry {
    const char *name;
    bool        there;
} entry;

/* The first entry that is missing; NULL: none is. */
static const char *first_missing(const entry *entries, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (!entries[i].there)
            return entries[i].name;
    return NULL;
}

/* Bytes of the first version of the table of windows that says its size. */
enum { WINDOW_BYTES_LEAST = offsetof(tutti_window_ops, bytes) + sizeof(((tutti_window_ops *)0)->bytes) };

/* The table of windows of ops, which may be shorter than ours, or begin with its first entry. */
static tutti_window_ops widened_windows(const tutti_backend_ops *ops)
{
    const size_t     head = offsetof(tutti_window_ops, open);
    tutti_window_ops wide = { .size = 0 };

    if (ops->api < SIZED_WINDOWS)
        memcpy((char *)&wide + head, (const void *)ops->windows, WINDOW_BYTES_LEAST - head);
    else
        memcpy(&wide, ops->windows, ops->windows->size < sizeof wide ? ops->windows->size : sizeof wide);
    wide.size = sizeof wide;
    return wide;
}

static const char *missing_window_entry(const tutti_window_ops *ops)
{
    const entry required[] = {
        { "open", ops->open != NULL },
        { "attach", ops->attach != NULL },
        { "put", ops->put != NULL },
        { "get", ops->get != NULL },
        { "signal", ops->signal != NULL },
        { "wait_signal", ops->wait_signal != NULL },
        { "cancel", ops->cancel != NULL },
        { "flush", ops->flush != NULL },
        { "is_direct", ops->is_direct != NULL },
        { "memory", ops->memory != NULL },
        { "close", ops->close != NULL },
        { "bytes", ops->bytes != NULL },
    };

    return first_missing(required, sizeof required / sizeof required[0]);
}

/* Bytes of the first version of the table of streams. */
enum { STREAM_BYTES_LEAST = offsetof(tutti_stream_ops, release) + sizeof(((tutti_stream_ops *)0)->release) };

static const char *missing_stream_entry(const tutti_stream_ops *ops)
{
    const entry required[] = {
        { "mark", ops->mark != NULL },
        { "follow", ops->follow != NULL },
        { "test", ops->test != NULL },
        { "wait", ops->wait != NULL },
        { "release", ops->release != NULL },
    };

    return first_missing(required, sizeof required / sizeof required[0]);
}

static bool has_any_message_entry(const tutti_backend_ops *ops)
{
    return ops->post != NULL || ops->wait != NULL || ops->test != NULL || ops->source != NULL || ops->release != NULL;
}

static const char *missing_message_entry(const tutti_backend_ops *ops)
{
    const entry required[] = {
        { "post", ops->post != NULL },       { "wait", ops->wait != NULL },
        { "test", ops->test != NULL },       { "source", ops->source != NULL },
        { "release", ops->release != NULL },
    };

    return first_missing(required, sizeof required / sizeof required[0]);
}

static tutti_status check_windows(const char *whose, const tutti_backend_ops *ops)
{
    tutti_window_ops wide;
    const char      *missing;

    if (ops->api >= SIZED_WINDOWS && ops->windows->size < WINDOW_BYTES_LEAST)
        return tti_fail(TUTTI_E_ARG, "the table of windows of %s has %u bytes, and its first version has %d\n  next: say its size, "
                        "sizeof(tutti_window_ops)", whose, ops->windows->size, (int)WINDOW_BYTES_LEAST);
    wide = widened_windows(ops);
    missing = missing_window_entry(&wide);
    if (missing != NULL)
        return tti_fail(TUTTI_E_ARG, "the table of windows of %s has no entry '%s'\n  next: fill that in, or set 'windows' to NULL", whose,
                        missing);
    return TUTTI_OK;
}

static tutti_status check_entries(const char *whose, const tutti_backend_ops *ops)
{
    const entry required[] = {
        { "create", ops->create != NULL },
        { "run", ops->run != NULL },
        { "abort", ops->abort != NULL },
        { "destroy", ops->destroy != NULL },
    };
    const char *missing = first_missing(required, sizeof required / sizeof required[0]);

    if (missing != NULL)
        return tti_fail(TUTTI_E_ARG, "the table of %s has no entry '%s'\n  next: fill that in; tutti/plugin/backend.h says what it is to do", whose,
                        missing);
    missing = has_any_message_entry(ops) || ops->windows != NULL ? missing_message_entry(ops) : NULL;
    if (missing != NULL)
        return tti_fail(TUTTI_E_ARG, "the table of %s has some entries of messages, but not '%s'\n  next: fill in post, wait, "
                        "test, source and release, or none of them and no windows", whose, missing);
    if (ops->advance != NULL && !ops->takes_segments)
        return tti_fail(TUTTI_E_ARG, "the table of %s has the entry 'advance', but does not take segments\n  next: take them, or "
                        "leave 'advance' out", whose);
    if (ops->streams != NULL && !ops->takes_segments)
        return tti_fail(TUTTI_E_ARG, "the table of %s has 'streams', but does not take segments\n  next: take them, or leave "
                        "'streams' out", whose);
    if (ops->streams != NULL && ops->streams->size < STREAM_BYTES_LEAST)
        return tti_fail(TUTTI_E_ARG, "the table of streams of %s has %u bytes, and its first version has %d\n  next: say its size, "
                        "sizeof(tutti_stream_ops)", whose, ops->streams->size, (int)STREAM_BYTES_LEAST);
    missing = ops->streams != NULL ? missing_stream_entry(ops->streams) : NULL;
    if (missing != NULL)
        return tti_fail(TUTTI_E_ARG, "the table of streams of %s has no entry '%s'\n  next: fill that in, or set 'streams' to NULL", whose,
                        missing);
    return ops->windows != NULL ? check_windows(whose, ops) : TUTTI_OK;
}

/* ops is as large as its version says: what comes behind its first two members may be looked at only then. */
static tutti_status check_version(const char *whose, const tutti_backend_ops *ops)
{
    if (ops->api < OLDEST || ops->api > TUTTI_BACKEND_API)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "%s has a table of version %u, which is too %s: this library drives versions %d to %d\n  next: "
                        "build it with the headers of this library",
                        whose, ops->api, ops->api < OLDEST ? "old" : "new", (int)OLDEST, (int)TUTTI_BACKEND_API);
    if (ops->size != version_bytes[ops->api - OLDEST])
        return tti_fail(TUTTI_E_ARG,
                        "%s has a table of version %u with %u bytes, and that version has %u\n  next: build it again, with "
                        "headers of one release only",
                        whose, ops->api, ops->size, version_bytes[ops->api - OLDEST]);
    return TUTTI_OK;
}

/* What the table has, and NULL where its version has nothing yet. */
static tutti_backend_ops widened(const tutti_backend_ops *ops)
{
    tutti_backend_ops wide = { .api = 0 };

    memcpy(&wide, ops, ops->size);
    return wide;
}

tutti_status tti_backend_check(const char *whose, const tutti_backend_ops *ops)
{
    tutti_backend_ops wide;
    tutti_status      st = check_version(whose, ops);

    if (st != TUTTI_OK)
        return st;
    wide = widened(ops);
    if (wide.name == NULL || wide.name[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "the table of %s has no name\n  next: set its 'name'", whose);
    return check_entries(whose, &wide);
}

/* ---- no messages ---- */

static tutti_status no_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    char peer[32] = "any rank";

    (void)request_out;
    if (message->peer >= 0)
        snprintf(peer, sizeof peer, "rank %d", message->peer);
    return tti_fail(TUTTI_E_UNSUPPORTED, "backend '%s' has no messages, so none can be %s %s of its group\n  next: use another "
                    "backend for it", backend->ops->name, message->is_send ? "sent to" : "received from", peer);
}

/* There is no request, so nobody calls these. */

static tutti_status no_wait(tutti_request *request, int64_t deadline_ns)
{
    (void)request;
    (void)deadline_ns;
    return tti_fail(TUTTI_E_UNSUPPORTED, "this backend has no messages");
}

static bool no_test(tutti_request *request)
{
    (void)request;
    return true;
}

static int no_source(const tutti_request *request)
{
    (void)request;
    return -1;
}

static void no_release(tutti_request *request)
{
    (void)request;
}

bool tti_table_has_messages(const tutti_backend_ops *ops)
{
    return ops->post != no_post;
}

/* ---- those that are known ---- */

bool tti_backend_is_name(const char *name)
{
    size_t i;

    for (i = 0; name[i] != '\0' && i < TTI_ADOPTED_NAME_MAX; i++)
        if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9') && name[i] != '_' && name[i] != '-')
            return false;
    return i > 0 && i < TTI_ADOPTED_NAME_MAX;
}

/* As the table itself: it may be older, and shorter. */
static void fill_streams(tti_adopted *a)
{
    const tutti_stream_ops *given = a->ops.streams;

    if (given == NULL)
        return;
    memcpy(&a->streams, given, given->size < sizeof a->streams ? given->size : sizeof a->streams);
    a->streams.size = sizeof a->streams;
    a->ops.streams = &a->streams;
}

static void fill_windows(tti_adopted *a)
{
    if (a->ops.windows == NULL)
        return;
    a->windows = widened_windows(&a->ops);
    a->ops.windows = &a->windows;
}

static void fill(tti_adopted *a, const char *name, unsigned devices, const tutti_backend_ops *ops)
{
    a->ops = widened(ops);
    fill_streams(a);
    fill_windows(a); /* by the version that the table has come with */
    a->devices = devices;
    snprintf(a->name, sizeof a->name, "%s", name);
    a->ops.name = a->name;
    a->ops.api = TUTTI_BACKEND_API;
    a->ops.size = sizeof a->ops;
    if (a->ops.post != NULL)
        return;
    a->ops.post = no_post;
    a->ops.wait = no_wait;
    a->ops.test = no_test;
    a->ops.source = no_source;
    a->ops.release = no_release;
    a->ops.transfer = NULL;
    a->ops.post_all = NULL;
}

static const tti_adopted *find_from(const tti_adopted *a, const char *name)
{
    for (; a != NULL; a = a->next)
        if (strcasecmp(a->name, name) == 0)
            return a;
    return NULL;
}

tutti_status tti_adopt(const char *name, unsigned devices, const tutti_backend_ops *ops)
{
    tti_adopted *a = calloc(1, sizeof *a);

    if (a == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the table of backend '%s'", name);
    fill(a, name, devices, ops);
    a->next = atomic_load_explicit(&adopted, memory_order_acquire);
    do {
        if (find_from(a->next, name) != NULL) {
            free(a);
            return tti_fail(TUTTI_E_STATE, "there is a backend '%s' already", name);
        }
    } while (!atomic_compare_exchange_weak_explicit(&adopted, &a->next, a, memory_order_acq_rel, memory_order_acquire));
    return TUTTI_OK;
}

const tti_adopted *tti_adopted_all(void)
{
    return atomic_load_explicit(&adopted, memory_order_acquire);
}

const tti_adopted *tti_adopted_find(const char *name)
{
    return find_from(tti_adopted_all(), name);
}
