/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_port_server.c - the engine of the tcp store's server, driven over a port.
 *
 * Why     libuv has descriptors of the machine and a clock of its own. Where another port stands in for the machine the
 *         same engine is driven by this loop, so that clients meet the real server in a rehearsed world.
 * How     One thread: poll the listeners, the bell and every connection; hand what came to the engine; send what it
 *         wants sent. A connection that takes no more is polled for room, and asked again then.
 * True    Everything but the bell belongs to the thread from start to stop. */
#include "store/store_port_server.h"

#include <errno.h>
#include <stdlib.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "wire/addr.h"

enum { CHUNK = 16 * 1024 };

typedef struct conn {
    tti_handle       handle;
    tti_engine_conn *engine_conn;
    bool             full; /* it took less than there was */
    int              at;   /* its place among conns */
} conn;

struct tti_port_server {
    tti_port   *port;
    tti_engine *engine;
    tti_listen  at;
    tti_handle  bell; /* rung: end */
    tti_thread  thread;
    conn      **conns; /* [n_conns] of room */
    int         n_conns, room;
    tti_poll   *set;   /* [room + TTI_LISTEN_MAX + 1] */
    char        chunk[CHUNK];
};

static void drop(tti_port_server *s, conn *c)
{
    tti_engine_drop(s->engine, c->engine_conn);
    s->port->ops->close(s->port, c->handle);
    s->conns[c->at] = s->conns[--s->n_conns];
    s->conns[c->at]->at = c->at;
    free(c);
}

/* Send what there is of one connection's, and close it if that is wanted. */
static void flush(tti_port_server *s, conn *c)
{
    tti_part part;
    int64_t  n = 0;

    part.data = tti_engine_output(c->engine_conn, &part.size);
    if (part.size > 0 && !c->full)
        n = s->port->ops->send(s->port, c->handle, &part, 1);
    if (tti_engine_closing(c->engine_conn) || (n < 0 && n != -EAGAIN)) {
        drop(s, c);
        return;
    }
    c->full = c->full || n == -EAGAIN || (n > 0 && (size_t)n < part.size);
    if (n > 0)
        tti_engine_sent(s->engine, c->engine_conn, (size_t)n);
}

static void flush_all(tti_port_server *s)
{
    tti_engine_conn *engine_conn;

    while ((engine_conn = tti_engine_next(s->engine)) != NULL)
        flush(s, tti_engine_owner(engine_conn));
}

static bool make_room(tti_port_server *s)
{
    const int room = s->room * 2 + 16;
    conn    **conns = realloc(s->conns, (size_t)room * sizeof(conn *));
    tti_poll *set;

    if (conns == NULL)
        return false;
    s->conns = conns;
    set = realloc(s->set, ((size_t)room + TTI_LISTEN_MAX + 1) * sizeof *set);
    if (set == NULL)
        return false;
    s->set = set;
    s->room = room;
    return true;
}

/* False: it is refused. */
static bool take_in(tti_port_server *s, tti_handle handle, const tti_addr *from)
{
    tti_addr address = *from;
    char     text[TTI_ADDR_TEXT_MAX];
    conn    *c;

    if (s->n_conns == s->room && !make_room(s))
        return false;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return false;
    c->handle = handle;
    c->at = s->n_conns;
    if (tti_secret_check_user(tti_engine_secret(s->engine), s->port, handle, "a client") != TUTTI_OK) {
        free(c);
        return false;
    }
    address.port = 0; /* all connections of a process are from one */
    c->engine_conn = tti_engine_accept(s->engine, tti_port_now(s->port), tti_addr_format(&address, text, sizeof text), from, c);
    if (c->engine_conn == NULL) {
        free(c);
        return false;
    }
    s->conns[s->n_conns++] = c;
    return true;
}

static void accept_all(tti_port_server *s, tti_handle listener)
{
    tti_addr   from;
    tti_handle handle;

    while ((handle = s->port->ops->accept(s->port, listener, &from)) >= 0)
        if (!take_in(s, handle, &from))
            s->port->ops->close(s->port, handle);
}

static void serve(tti_port_server *s, conn *c, uint8_t got)
{
    int64_t n;

    if ((got & TTI_WRITE) != 0 && c->full) {
        c->full = false;
        tti_engine_sent(s->engine, c->engine_conn, 0); /* it is among those to be flushed again */
    }
    if ((got & (TTI_READ | TTI_HANGUP)) == 0)
        return;
    n = s->port->ops->recv(s->port, c->handle, s->chunk, sizeof s->chunk);
    if (n > 0)
        tti_engine_input(s->engine, c->engine_conn, s->chunk, (size_t)n);
    else if (n != -EAGAIN)
        drop(s, c);
}

static int fill(tti_port_server *s)
{
    int n, i;

    for (n = 0; n < s->n_conns; n++)
        s->set[n] = (tti_poll){ .handle = s->conns[n]->handle,
                                .want = (uint8_t)((tti_engine_reads(s->conns[n]->engine_conn) ? TTI_READ : 0) |
                                                  (s->conns[n]->full ? TTI_WRITE : 0)) };
    for (i = 0; i < s->at.n; i++)
        s->set[n++] = (tti_poll){ .handle = s->at.fds[i], .want = TTI_READ };
    s->set[n++] = (tti_poll){ .handle = s->bell, .want = TTI_READ };
    return n;
}

/* One round; false: the bell has rung. */
static bool round_of(tti_port_server *s)
{
    const int n_conns = s->n_conns;
    const int n = fill(s);
    int       i;

    s->port->ops->poll(s->port, s->set, n, tti_engine_deadline(s->engine));
    tti_engine_tick(s->engine, tti_port_now(s->port));
    for (i = n_conns - 1; i >= 0; i--) /* whoever goes is replaced by one that was looked at */
        serve(s, s->conns[i], s->set[i].got);
    for (i = 0; i < s->at.n; i++)
        if (s->set[n_conns + i].got != 0)
            accept_all(s, s->at.fds[i]);
    flush_all(s);
    return s->set[n - 1].got == 0;
}

static void server_main(void *arg)
{
    tti_port_server *s = arg;

    while (round_of(s))
        continue;
}

static void release(tti_port_server *s)
{
    int i;

    tti_engine_ends(s->engine);
    while (s->n_conns > 0)
        drop(s, s->conns[s->n_conns - 1]);
    for (i = 0; i < s->at.n; i++)
        s->port->ops->close(s->port, s->at.fds[i]);
    s->port->ops->close(s->port, s->bell);
    tti_engine_destroy(s->engine);
    free(s->conns);
    free(s->set);
    free(s);
}

tutti_status tti_port_server_start(tti_port *port, const tti_listen *at, const tti_secret *secret,
                                   const tti_engine_limits *limits, tti_port_server **server_out)
{
    tti_port_server *s = calloc(1, sizeof *s);
    tti_listen       theirs = *at;
    tutti_status     st;
    int              err;

    if (s == NULL) {
        tti_listen_close(&theirs);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a store server");
    }
    *s = (tti_port_server){ .port = port, .at = *at, .bell = TTI_NO_HANDLE };
    err = port->ops->bell_create(port, &s->bell);
    st = err != 0        ? tti_fail_errno(-err, "cannot create the bell of a store server")
         : make_room(s) ? tti_engine_create(port, secret, limits, &s->engine)
                         : tti_fail(TUTTI_E_NOMEM, "no memory for the connections of a store server");
    if (st == TUTTI_OK)
        st = tti_thread_start(&s->thread, "tutti-store", server_main, s);
    if (st != TUTTI_OK) {
        release(s);
        return st;
    }
    *server_out = s;
    return TUTTI_OK;
}

tti_engine *tti_port_server_engine(const tti_port_server *server)
{
    return server->engine;
}

void tti_port_server_stop(tti_port_server *server)
{
    if (server == NULL)
        return;
    server->port->ops->bell_ring(server->port, server->bell);
    tti_thread_join(&server->thread);
    release(server);
}
