/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_many.c - waiting for all or any of several works.
 *
 * All     is one wait after the other: each helps to run what it waits for.
 * Any     looks at all and sleeps until something changes. A collective that ends says so through
 *         its world's event, and a message does if its backend tells. One event is all that a
 *         thread can sleep on: with works of two worlds, or a backend that cannot tell, it looks
 *         every LOOK_NS. It runs nothing itself, because that could take longer than what ends
 *         first. */
#include "group/group.h"

#include <stdio.h>
#include <tutti/private.h>

static const int64_t LOOK_NS = TTI_MS;

static tutti_status check_list(const char *what, tutti_work *const *works, int n_works,
                               int64_t timeout_ms)
{
    int i;

    if (n_works < 0 || (works == NULL && n_works > 0))
        return tti_fail(TUTTI_E_ARG, "%s: %d works%s", what, n_works,
                        works == NULL ? " at NULL" : "");
    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG,
                        "%s: timeout_ms is %lld\n"
                        "  next: 0 for the group's, -1 for none",
                        what, (long long)timeout_ms);
    for (i = 0; i < n_works; i++)
        if (works[i] != NULL && tti_work_is_inherited(works[i]))
            return tti_fail_inherited(what, "work", works[i]->what);
    return TUTTI_OK;
}

/* The first work that is an operation of a group; NULL: none. */
static tutti_work *first_real(tutti_work *const *works, int n_works)
{
    int i;

    for (i = 0; i < n_works; i++)
        if (works[i] != NULL && !works[i]->is_nothing)
            return works[i];
    return NULL;
}

/* ---- all ---- */

/* What is left of timeout_ms for work, rounded up; one that has ended needs no time. */
static int64_t ms_left(tutti_work *work, int64_t timeout_ms, int64_t deadline_ns)
{
    int64_t left_ns;

    if (timeout_ms <= 0 || work->is_nothing)
        return timeout_ms;
    left_ns = deadline_ns - tti_port_now(work->runner->port);
    return left_ns > 0 ? (left_ns + TTI_MS - 1) / TTI_MS : 1;
}

tutti_status tutti_wait_all(tutti_work *const *works, int n_works, int64_t timeout_ms)
{
    char         words[TTI_GROUP_WORDS_MAX];
    tutti_status first = TUTTI_OK;
    int64_t      deadline_ns = TTI_FOREVER;
    tutti_work  *real;
    tutti_status st;
    int          i;

    st = check_list("tutti_wait_all", works, n_works, timeout_ms);
    if (st != TUTTI_OK)
        return st;
    real = first_real(works, n_works);
    if (real != NULL && timeout_ms > 0)
        deadline_ns = tti_deadline(real->runner->port, timeout_ms, timeout_ms);
    for (i = 0; i < n_works; i++) {
        if (works[i] == NULL)
            continue;
        st = tutti_work_wait_for(works[i], ms_left(works[i], timeout_ms, deadline_ns));
        if (st == TUTTI_E_TIMEOUT && !tutti_work_is_completed(works[i]))
            return st; /* not the operation's time-out, but ours */
        if (st == TUTTI_E_TIMEOUT)
            st = tutti_work_status(works[i]); /* its own, or it ended at the last moment */
        if (st != TUTTI_OK && first == TUTTI_OK) {
            first = st;
            snprintf(words, sizeof words, "%s", tutti_last_error());
        }
    }
    return first == TUTTI_OK ? TUTTI_OK : tti_fail(first, "%s", words);
}

/* ---- any ---- */

static int find_ended(tutti_work *const *works, int n_works)
{
    int i;

    for (i = 0; i < n_works; i++)
        if (works[i] != NULL && tutti_work_is_completed(works[i]))
            return i;
    return -1;
}

/* From here on the event of runner is signalled: whether it tells of every work's end. */
static bool listen_to(tti_runner *runner, tutti_work *const *works, int n_works)
{
    bool told = true;
    int  i;

    tti_lock(&runner->lock);
    runner->n_listening++;
    for (i = 0; told && i < n_works; i++)
        if (works[i] != NULL && !works[i]->is_nothing)
            told = works[i]->runner == runner && tti_work_hear(works[i]);
    tti_unlock(&runner->lock);
    return told;
}

static void stop_listening(tti_runner *runner)
{
    tti_lock(&runner->lock);
    runner->n_listening--;
    tti_unlock(&runner->lock);
}

static tutti_status none_ended(const tti_runner *runner, int n_works, int64_t began_ns)
{
    const int64_t waited_ms = (tti_port_now(runner->port) - began_ns) / TTI_MS;

    return tti_fail(TUTTI_E_TIMEOUT,
                    "tutti_wait_any: none of %d works has ended after %lld ms; they go on\n"
                    "  next: wait again, or destroy the group",
                    n_works, (long long)waited_ms);
}

/* A work whose scope this caller may have to end himself. */
static tutti_status check_issued(tutti_work *const *works, int n_works)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < n_works && st == TUTTI_OK; i++)
        if (works[i] != NULL && !works[i]->is_nothing)
            st = tti_work_check_issued(works[i]);
    return st;
}

/* Wait on the port and the event of real's world, which is signalled. */
static tutti_status await_any(const tutti_work *real, tutti_work *const *works, int n_works, bool told,
                              int64_t timeout_ms, int *index_out)
{
    tti_runner   *runner = real->runner;
    const int64_t began_ns = tti_port_now(runner->port);
    const int64_t deadline_ns = tti_deadline(runner->port, timeout_ms, real->timeout_ms);
    int64_t       until_ns;
    tutti_status  st;
    uint32_t      seen;
    int           i;

    for (;;) {
        seen = tti_event_now(&runner->changed);
        i = find_ended(works, n_works);
        if (i >= 0)
            break;
        st = check_issued(works, n_works);
        if (st != TUTTI_OK)
            return st;
        until_ns = tti_port_now(runner->port);
        if (until_ns >= deadline_ns)
            return none_ended(runner, n_works, began_ns);
        until_ns = told || deadline_ns - until_ns < LOOK_NS ? deadline_ns : until_ns + LOOK_NS;
        tti_event_wait(runner->port, &runner->changed, seen, until_ns);
    }
    *index_out = i;
    return TUTTI_OK;
}

static tutti_status wait_any(const tutti_work *real, tutti_work *const *works, int n_works, int64_t timeout_ms,
                             int *index_out)
{
    tti_runner  *runner = real->runner;
    const bool   told = listen_to(runner, works, n_works);
    tutti_status st = await_any(real, works, n_works, told, timeout_ms, index_out);

    stop_listening(runner);
    return st;
}

tutti_status tutti_wait_any(tutti_work *const *works, int n_works, int64_t timeout_ms,
                            int *index_out)
{
    tutti_work  *real;
    tutti_status st;

    st = check_list("tutti_wait_any", works, n_works, timeout_ms);
    if (st == TUTTI_OK && index_out == NULL)
        st = tti_fail(TUTTI_E_ARG, "tutti_wait_any: index_out is NULL");
    if (st != TUTTI_OK)
        return st;
    real = first_real(works, n_works);
    if (real != NULL)
        return wait_any(real, works, n_works, timeout_ms, index_out);
    *index_out = find_ended(works, n_works);
    return TUTTI_OK;
}
