/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window_make.c - windows: what all members do together, and their end.
 *
 * Register  Each member opens its part in the backend; an all_gather carries everybody's card: how opening went,
 *           what was registered, and what the backend needs to reach it. Whoever has all cards knows that all are
 *           open, attaches, and a second all_gather tells how that went. All members read the same cards, so all
 *           come to the same end.
 * End       Deregistering flushes what this rank has put, and meets the others: behind the barrier nobody writes any
 *           more, and the part can be closed as it is. Every other end closes it without that, and the backend cuts
 *           the others off.
 * True      A window belongs to its user; it stands in its group's list as long as there is the group, whose end
 *           closes the part and takes the group away from it. */
#include "group/asked.h"
#include "group/one_sided.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group/check.h"
#include "group/collective.h"
#include <tutti/private.h>

enum { CARD_WORDS = 400 };

/* Crosses processes and hosts: fixed size, little endian. */
typedef struct card {
    int32_t  status; /* of opening */
    uint32_t id;
    int64_t  count;
    int32_t  dtype;
    int32_t  zero;
    uint8_t  backend[TUTTI_WINDOW_CARD_BYTES];
    char     words[CARD_WORDS]; /* if status is a failure */
} card;

_Static_assert(sizeof(card) == 24 + TUTTI_WINDOW_CARD_BYTES + CARD_WORDS, "the card crosses processes and hosts");

/* A registration under way. */
typedef struct making {
    const char             *what;
    tutti_window           *window;
    tutti_group            *group;
    const tutti_window_ops *ops;
    card                    mine;
    card                   *cards;    /* [group size] */
    tutti_backend_window   *handle;   /* NULL: opening failed */
} making;

tutti_status tti_window_ops_of(const tutti_group *group, const char *what, const tutti_window_ops **ops_out)
{
    const tti_route *route = &group->routes[TUTTI_CPU];

    if (route->ops == NULL || route->ops->windows == NULL)
        return tti_fail(TUTTI_E_UNSUPPORTED, "%s on group '%s': its backend '%s' has no one-sided access\n"
                                             "  next: a group of the backend 'native'",
                        what, group->name, route->name);
    *ops_out = route->ops->windows;
    return TUTTI_OK;
}

/* ---- registering ----------------------------------------------------------------------------------- */

static void note_failure(card *c, tutti_status st)
{
    c->status = (int32_t)st;
    if (st != TUTTI_OK)
        snprintf(c->words, sizeof c->words, "%s", tutti_last_error());
}

static tutti_status check_part(const making *m, tutti_span buf)
{
    tutti_status st = tti_check_span(m->group, m->what, "buf", buf);

    if (st == TUTTI_OK && buf.device.type != TUTTI_CPU)
        st = tti_fail(TUTTI_E_UNSUPPORTED, "%s on group '%s': buf is not memory of the host", m->what, m->group->name);
    return st;
}

/* The handle is there on success alone. */
static tutti_status ask_open(making *m, tutti_span buf)
{
    const tti_route      *route = &m->group->routes[TUTTI_CPU];
    const size_t          bytes = (size_t)buf.count * tutti_dtype_size(buf.dtype);
    const uint32_t        said = tti_words_said();
    tutti_backend_window *handle = NULL;
    tutti_status          st = m->ops->open(route->backend, m->mine.id, buf.data, bytes, m->mine.backend, &handle);

    st = tti_asked_status(route->ops, "open", st, said);
    if (st == TUTTI_OK && handle == NULL)
        st = tti_foreign_broken("backend", route->ops->name, "open", "gives no window");
    m->handle = st == TUTTI_OK ? handle : NULL;
    return st;
}

static void open_part(making *m, tutti_span buf)
{
    tutti_status st = check_part(m, buf);

    tti_lock(&m->group->runner->lock);
    m->mine.id = m->group->n_windows++;
    tti_unlock(&m->group->runner->lock);
    m->mine.count = buf.count;
    m->mine.dtype = (int32_t)buf.dtype;
    if (st == TUTTI_OK)
        st = ask_open(m, buf);
    note_failure(&m->mine, st);
}

static tutti_status gather_cards(const making *m)
{
    const int64_t n = (int64_t)m->group->size;

    return tti_all_gather_into_span(m->what, m->group, tutti_span_of(m->cards, n * (int64_t)sizeof *m->cards, TUTTI_U8),
                                    tutti_span_of(&m->mine, (int64_t)sizeof m->mine, TUTTI_U8), tti_blocking());
}

/* The first member that failed, for all of them. */
static tutti_status compare_outcomes(const making *m)
{
    int i;

    for (i = 0; i < m->group->size; i++) {
        const card *c = &m->cards[i];

        if (c->status == TUTTI_OK)
            continue;
        return tti_fail(c->status > TUTTI_OK && c->status <= TUTTI_E_REMOTE ? (tutti_status)c->status : TUTTI_E_BACKEND,
                        "%s on group '%s': rank %d: %.*s", m->what, m->group->name, m->group->ranks[i], CARD_WORDS - 1,
                        c->words);
    }
    return TUTTI_OK;
}

static tutti_status compare_cards(const making *m)
{
    const card *first = &m->cards[0];
    int         i;

    for (i = 1; i < m->group->size; i++) {
        const card *c = &m->cards[i];

        if (c->dtype != first->dtype)
            return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': rank %d registers %s, rank %d %s", m->what,
                            m->group->name, m->group->ranks[i], tutti_dtype_name((tutti_dtype)c->dtype),
                            m->group->ranks[0], tutti_dtype_name((tutti_dtype)first->dtype));
        if (c->id != first->id)
            return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': it is window %u on rank %d, %u on rank %d", m->what,
                            m->group->name, c->id, m->group->ranks[i], first->id, m->group->ranks[0]);
    }
    return TUTTI_OK;
}

/* Puts and gets are checked against counts, so a count has to be that of the memory behind it. */
static tutti_status check_counts(const making *m)
{
    const int64_t item = (int64_t)tutti_dtype_size((tutti_dtype)m->mine.dtype);
    int           i;

    for (i = 0; i < m->group->size; i++) {
        const int64_t count = m->cards[i].count;
        const size_t  bytes = m->ops->bytes(m->handle, i);

        if (count < 0 || count > INT64_MAX / item || (size_t)(count * item) != bytes)
            return tti_fail(TUTTI_E_AUTH, "rank %d announces %lld elements, and memory of %zu bytes",
                            m->group->ranks[i], (long long)count, bytes);
    }
    return TUTTI_OK;
}

static tutti_status attach(making *m)
{
    uint8_t(*cards)[TUTTI_WINDOW_CARD_BYTES] = malloc((size_t)m->group->size * sizeof *cards);
    tutti_status st;
    uint32_t     said;
    int          i;

    if (cards == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a window of %d ranks", m->group->size);
    for (i = 0; i < m->group->size; i++)
        memcpy(cards[i], m->cards[i].backend, sizeof cards[i]);
    said = tti_words_said();
    st = tti_asked_status(m->group->routes[TUTTI_CPU].ops, "attach",
                          m->ops->attach(m->handle, (const uint8_t(*)[TUTTI_WINDOW_CARD_BYTES])cards), said);
    free(cards);
    return st == TUTTI_OK ? check_counts(m) : st;
}

/* All members open, exchange, attach, and agree that they did. */
static tutti_status agree(making *m)
{
    tutti_status st = gather_cards(m);

    if (st == TUTTI_OK)
        st = compare_outcomes(m);
    if (st == TUTTI_OK)
        st = compare_cards(m);
    if (st != TUTTI_OK)
        return st;
    note_failure(&m->mine, attach(m));
    st = gather_cards(m);
    return st == TUTTI_OK ? compare_outcomes(m) : st;
}

static tutti_status keep_parts(making *m)
{
    tti_window_part *parts = malloc((size_t)m->group->size * sizeof *parts);
    int              i;

    if (parts == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a window of %d ranks", m->group->size);
    for (i = 0; i < m->group->size; i++)
        parts[i] = (tti_window_part){ m->cards[i].count, (tutti_dtype)m->cards[i].dtype };
    free(m->window->parts);
    m->window->parts = parts;
    m->window->handle = m->handle;
    return TUTTI_OK;
}

static tutti_status register_part(making *m, tutti_span buf)
{
    const size_t n = (size_t)m->group->size;
    tutti_status st;

    m->cards = calloc(n, sizeof *m->cards);
    if (m->cards == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a window of %d ranks", m->group->size);
    open_part(m, buf);
    st = agree(m);
    if (st == TUTTI_OK)
        st = keep_parts(m);
    if (st != TUTTI_OK && m->handle != NULL)
        m->ops->close(m->handle, !tti_group_finishes(st)); /* nobody has written: register has not returned anywhere */
    free(m->cards);
    return st;
}

static tutti_status register_in(tutti_window *window, const char *what, tutti_span buf)
{
    making       m = { .what = what, .window = window };
    tutti_status st = tti_window_enter(window, what, false, &m.group);

    if (st != TUTTI_OK)
        return st;
    st = tti_window_ops_of(m.group, what, &m.ops);
    if (st == TUTTI_OK && window->handle != NULL)
        st = tti_fail(TUTTI_E_STATE, "%s on group '%s': the window has memory already\n"
                                     "  next: tutti_window_deregister() on all members", what, m.group->name);
    if (st == TUTTI_OK)
        st = register_part(&m, buf);
    tti_group_leave(m.group, what, TUTTI_OK); /* a collective that failed has told */
    return st;
}

tutti_status tutti_window_register(tutti_window *window, tutti_span buf)
{
    return register_in(window, "window_register", buf);
}

/* ---- deregistering --------------------------------------------------------------------------------- */

static void close_part(tutti_window *window, const tutti_window_ops *ops, bool agreed)
{
    if (window->handle != NULL)
        ops->close(window->handle, agreed);
    window->handle = NULL;
}

/* The backend hears that the group has failed before the part is closed: what others send to it is dropped from then on. What
 * comes for a part that is not there, in a group that goes on, would be nonsense, and cost them the connection, by which they are
 * to be told why. */
static void fail_first(tutti_group *group, const char *what, tutti_status st)
{
    tti_lock(&group->runner->lock);
    tti_group_fail(group, what, st, tutti_last_error());
    tti_unlock(&group->runner->lock);
}

static tutti_status deregister(tutti_window *window, const char *what)
{
    const tutti_window_ops *ops = NULL;
    tutti_group            *group = NULL;
    tutti_status            st = tti_window_enter(window, what, true, &group);

    if (st != TUTTI_OK)
        return st;
    st = tti_window_ops_of(group, what, &ops);
    if (st == TUTTI_OK) {
        st = tti_window_flush_peers(window, group, what, -1);
        if (st == TUTTI_OK)
            st = tutti_barrier(group);
        if (st != TUTTI_OK)
            fail_first(group, what, st);
        close_part(window, ops, st == TUTTI_OK);
    }
    tti_group_leave(group, what, st);
    return st;
}

tutti_status tutti_window_deregister(tutti_window *window)
{
    return deregister(window, "window_deregister");
}

/* ---- life ------------------------------------------------------------------------------------------ */

static tutti_window *make_window(tutti_group *group)
{
    tutti_window *window = calloc(1, sizeof *window);

    if (window == NULL)
        return NULL;
    window->runner = tti_runner_retain(group->runner);
    window->group = group;
    memcpy(window->group_name, group->name, sizeof window->group_name);
    tti_lock(&group->runner->lock);
    window->next = group->windows;
    group->windows = window;
    tti_unlock(&group->runner->lock);
    return window;
}

static void free_window(tutti_window *window)
{
    const tutti_window_ops *ops = NULL;
    tutti_window          **at;
    tutti_group            *group;

    tti_lock(&window->runner->lock);
    group = window->group;
    if (group != NULL) {
        for (at = &group->windows; *at != window; at = &(*at)->next)
            continue;
        *at = window->next;
    }
    tti_unlock(&window->runner->lock);
    if (group != NULL && tti_window_ops_of(group, "window_free", &ops) == TUTTI_OK)
        close_part(window, ops, false);
    tti_runner_drop(window->runner);
    free(window->parts);
    free(window);
}

tutti_status tutti_window_create(const tutti_span *buf, tutti_group *group, tutti_window **window_out)
{
    const char             *what = "window_create";
    const tutti_window_ops *ops = NULL;
    tutti_window           *window = NULL;
    tutti_group            *g = NULL;
    tutti_status            st;

    if (window_out == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: window_out is NULL", what);
    st = tti_group_resolve(group, what, &g);
    if (st == TUTTI_OK && g == NULL)
        *window_out = NULL;
    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_window_ops_of(g, what, &ops);
    if (st != TUTTI_OK)
        return st;
    window = make_window(g);
    if (window == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a window");
    if (buf != NULL)
        st = register_in(window, what, *buf);
    if (st != TUTTI_OK) {
        free_window(window);
        return st;
    }
    *window_out = window;
    return TUTTI_OK;
}

/* Whether the others can still be met. */
static bool is_alive(tutti_window *window)
{
    bool alive;

    tti_lock(&window->runner->lock);
    alive = window->group != NULL && window->group->finished == TUTTI_OK;
    tti_unlock(&window->runner->lock);
    return alive;
}

tutti_status tutti_window_free(tutti_window *window)
{
    tutti_status st = TUTTI_OK;

    if (window == NULL)
        return TUTTI_OK;
    if (tti_is_inherited(window->runner->age))
        return tti_fail_inherited("window_free", "a window of group", window->group_name);
    if (window->handle != NULL && is_alive(window))
        st = deregister(window, "window_free");
    free_window(window);
    return st;
}

void tti_windows_end(tutti_group *group)
{
    const tutti_window_ops *ops = NULL;
    tutti_window           *window;

    if (group->windows == NULL || tti_window_ops_of(group, "destroy_process_group", &ops) != TUTTI_OK)
        return;
    tti_lock(&group->runner->lock);
    while ((window = group->windows) != NULL) {
        group->windows = window->next;
        window->next = NULL;
        window->group = NULL;
        close_part(window, ops, false);
    }
    tti_unlock(&group->runner->lock);
}
