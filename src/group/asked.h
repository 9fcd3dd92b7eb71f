/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/asked.h - entries of a backend, and a look at what they come to.
 *
 * Why     A backend may be a plug-in's, or a program's own. What it promises in tutti/plugin/backend.h the group layer relies on: that a
 *         failure has words, that a status is one, that what was made is there. Where it does not hold the plug-in is named, with
 *         its entry, and the call has failed as of any reason.
 * How     base/foreign.h finds the words. Ours are not looked at: a call of theirs takes as long as before, and they end in our tests
 *         if they are wrong.
 * Not     What an entry that returns nothing does, and data that are wrong. */
#ifndef TTI_GROUP_ASKED_H
#define TTI_GROUP_ASKED_H

#include "base/foreign.h"
#include "group/group.h"

/* ---- statuses ---- */

/** What entry has failed with. said: tti_words_said() before it was called. */
tutti_status tti_asked_failed(const tutti_backend_ops *ops, const char *entry, tutti_status st, uint32_t said);

static inline tutti_status tti_asked_status(const tutti_backend_ops *ops, const char *entry, tutti_status st, uint32_t said)
{
    return st == TUTTI_OK ? st : tti_asked_failed(ops, entry, st, said);
}

static inline tutti_status tti_asked_run(const tti_route *route, const tutti_call *call)
{
    const uint32_t said = route->is_foreign ? tti_words_said() : 0;

    return tti_asked_status(route->ops, "run", route->ops->run(route->backend, call), said);
}

/** A wait that ended with st. What is still under way at the deadline needs no words of the backend's; who gives it up, and tells why
 * by this thread's last error, finds some there, and not those of an older failure. */
tutti_status tti_asked_waited(const tutti_backend_ops *ops, tutti_status st, uint32_t said);

static inline tutti_status tti_asked_wait(const tutti_backend_ops *ops, tutti_request *request, int64_t deadline_ns)
{
    const uint32_t     said = tti_words_said();
    const tutti_status st = ops->wait(request, deadline_ns);

    return st == TUTTI_OK ? st : tti_asked_waited(ops, st, said);
}

static inline tutti_status tti_asked_post(const tutti_backend_ops *ops, tutti_backend *backend, const tutti_message *message,
                                          tutti_request **request_out)
{
    const uint32_t said = tti_words_said();

    return tti_asked_status(ops, "post", ops->post(backend, message, request_out), said);
}

static inline tutti_status tti_asked_follow(const tutti_backend_ops *ops, tutti_ticket *ticket, void *stream)
{
    const uint32_t said = tti_words_said();

    return tti_asked_status(ops, "follow", ops->streams->follow(ticket, stream), said);
}

static inline tutti_status tti_asked_wait_ticket(const tutti_backend_ops *ops, tutti_ticket *ticket, int64_t deadline_ns)
{
    const uint32_t     said = tti_words_said();
    const tutti_status st = ops->streams->wait(ticket, deadline_ns);

    return st == TUTTI_OK ? st : tti_asked_waited(ops, st, said);
}

static inline tutti_status tti_asked_alive(const tutti_backend_ops *ops, tutti_backend *backend, int rank)
{
    const uint32_t said = tti_words_said();

    return tti_asked_status(ops, "alive", ops->alive(backend, rank), said);
}

/* ---- what is given ---- */

/** What a receive got is from a member, or from nobody who is known. */
static inline int tti_asked_member(int source, int n_ranks)
{
    return source >= 0 && source < n_ranks ? source : -1;
}

/** create; the backend is there on success alone. */
static inline tutti_status tti_asked_create(const tutti_backend_ops *ops, const tutti_backend_config *config, tutti_backend **backend_out)
{
    const uint32_t said = tti_words_said();
    tutti_backend *made = NULL;
    tutti_status   st = tti_asked_status(ops, "create", ops->create(config, &made), said);

    if (st == TUTTI_OK && (made == NULL || made->ops == NULL)) /* without its table it is not whole: nobody gives it back */
        st = tti_foreign_broken("backend", ops->name, "create", made == NULL ? "gives no backend" : "gives a backend without a table");
    if (st == TUTTI_OK)
        *backend_out = made;
    return st;
}

/** post_all: how many were begun is at most n, and fewer only with a reason. */
static inline tutti_status tti_asked_post_all(const tti_route *route, const tutti_message *messages, int n, tutti_request **requests_out,
                                              int *n_out)
{
    const uint32_t said = tti_words_said();
    tutti_status   st;

    *n_out = 0;
    st = tti_asked_status(route->ops, "post_all", route->ops->post_all(route->backend, messages, n, requests_out, n_out), said);
    if (*n_out >= 0 && *n_out <= n && (*n_out == n) == (st == TUTTI_OK))
        return st;
    *n_out = *n_out < 0 ? 0 : *n_out < n ? *n_out : n - 1; /* the next one is who is told */
    return tti_foreign_broken("backend", route->ops->name, "post_all", "begins another number of messages than its status says");
}

/** advance: how far it has come is something that there is, and a call whose turn has not come has not ended. */
static inline tutti_status tti_asked_advance(const tti_route *route, const tutti_call *call, bool in_turn, tutti_progress *progress_out)
{
    const uint32_t said = tti_words_said();
    tutti_status   st = tti_asked_status(route->ops, "advance", route->ops->advance(route->backend, call, progress_out), said);

    if (st == TUTTI_OK && (unsigned)*progress_out > (in_turn ? TUTTI_PROGRESS_DONE : TUTTI_PROGRESS_GIVEN))
        st = tti_foreign_broken("backend", route->ops->name, "advance", "tells of a progress that cannot be");
    if (st != TUTTI_OK && (unsigned)*progress_out > TUTTI_PROGRESS_GIVEN)
        *progress_out = TUTTI_PROGRESS_BEGUN;
    return st;
}

/** mark; the ticket is there on success. */
static inline tutti_status tti_asked_mark(const tti_route *route, const tutti_call *call, void *stream, tutti_ticket **ticket_out)
{
    const uint32_t said = tti_words_said();
    tutti_status   st = tti_asked_status(route->ops, "mark", route->ops->streams->mark(route->backend, call->device_index, stream, ticket_out),
                                         said);

    return st == TUTTI_OK && *ticket_out == NULL ? tti_foreign_broken("backend", route->ops->name, "mark", "gives no ticket") : st;
}

#endif
