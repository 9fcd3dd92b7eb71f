/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_server.c - libuv drives the engine: listeners, a thread, a loop of its own.
 *
 * How     Everything that touches the engine or the loop happens on the server's thread, save two
 *         calls: start() prepares loop and listeners before the thread exists, stop() rings `bell`
 *         (uv_async) and joins. Bytes are sent at once as far as the socket takes them; what is
 *         left waits in one write request per connection, with its own copy, since the engine's
 *         buffer moves.
 * True    No default loop, no uv_spawn, no uv_signal. A uv_tcp_t lives until its close callback,
 *         and with it the connection; the engine forgets the connection before that.
 * Fails   A port that is taken, an address that is not ours: store_listen.c says so. Later failures close
 *         one connection each. Where few descriptors are left, and more connections than half of those have not
 *         proved themselves, one of them goes for each that comes; while there is none at all, new ones are turned away.
 *         Without memory they wait. */
#include "store/store_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>
#include <tutti/private.h>
#include "base/fork.h"
#include "base/thread.h"
#include "store/store_needs.h"
#include "store/store_port_server.h"
#include "wire/addr.h"

enum { READ_BYTES = 64 * 1024, SPARE_FILES = 128, AGAIN_MS = 50 };

struct tutti_store_server {
    uv_loop_t   loop;
    uv_tcp_t    listeners[TTI_LISTEN_MAX];
    uv_async_t  bell;
    uv_timer_t  timer; /* of the next connection that is late to prove itself */
    uv_idle_t   taker; /* runs once where a listener has a connection */
    uv_timer_t  later; /* and again, where there was no memory to take it */
    bool        waits[TTI_LISTEN_MAX];
    bool        starved; /* of that, and has said so */
    size_t      conns_most; /* more connections leave too few descriptors; 0: nothing is known about that */
    tti_listen  at;    /* where it listens; the sockets belong to listeners */
    tti_engine *engine;
    tti_thread  thread;
    tti_port_server *on_port; /* where another port stands in for the machine: it does all, and nothing above is in use but at */
    tti_mutex   missed_lock; /* guards the two that follow; held during a call of missed() */
    void (*missed)(void *context, const void *key, size_t bytes);
    void       *missed_context;
    uint32_t    age;                   /* of the process whose thread it is (base/fork.h) */
    char        read_room[READ_BYTES]; /* of whichever connection reads just now */
};

typedef struct conn {
    uv_tcp_t            tcp;
    uv_write_t          write;
    tutti_store_server *server;
    tti_engine_conn    *engine_conn; /* NULL once the engine has forgotten it */
    char               *unsent;      /* copy that `write` is sending; NULL: none */
    size_t              unsent_bytes;
    bool                reading;
} conn;

static void flush_all(tutti_store_server *server);
static void on_taker(uv_idle_t *taker);

/* What libuv opened a child of fork() closes, as long as it is open. */
static void mark(const uv_handle_t *handle, bool ours)
{
    uv_os_fd_t fd;

    if (uv_fileno(handle, &fd) == 0)
        (ours ? tti_fork_own : tti_fork_disown)(fd);
}

static void on_closed(uv_handle_t *handle)
{
    conn *c = handle->data;

    free(c->unsent);
    free(c);
}

static void close_conn(conn *c)
{
    if (c->engine_conn != NULL)
        tti_engine_drop(c->server->engine, c->engine_conn);
    c->engine_conn = NULL;
    if (uv_is_closing((uv_handle_t *)&c->tcp))
        return;
    mark((uv_handle_t *)&c->tcp, false);
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    conn *c = handle->data;

    (void)suggested;
    *buf = uv_buf_init(c->server->read_room, READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    conn               *c = stream->data;
    tutti_store_server *server = c->server;

    if (got < 0)
        close_conn(c);
    else if (got > 0)
        tti_engine_input(server->engine, c->engine_conn, buf->base, (size_t)got);
    flush_all(server);
}

static void set_reading(conn *c, bool reading)
{
    if (reading == c->reading)
        return;
    c->reading = reading;
    if (!reading)
        uv_read_stop((uv_stream_t *)&c->tcp);
    else if (uv_read_start((uv_stream_t *)&c->tcp, give_room, on_read) != 0)
        close_conn(c);
}

static void on_written(uv_write_t *write, int status)
{
    conn               *c = write->data;
    tutti_store_server *server = c->server;

    free(c->unsent);
    c->unsent = NULL;
    if (c->engine_conn == NULL)
        return;
    if (status != 0)
        close_conn(c);
    else
        tti_engine_sent(server->engine, c->engine_conn, c->unsent_bytes);
    flush_all(server);
}

/* Leave the rest to libuv; it stays in the engine's count until it has gone. */
static void write_later(conn *c, const void *data, size_t bytes)
{
    uv_buf_t buf;

    c->unsent = malloc(bytes);
    if (c->unsent == NULL) {
        close_conn(c);
        return;
    }
    memcpy(c->unsent, data, bytes);
    c->unsent_bytes = bytes;
    c->write.data = c;
    buf = uv_buf_init(c->unsent, (unsigned)bytes);
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) != 0) {
        free(c->unsent);
        c->unsent = NULL;
        close_conn(c);
    }
}

static void flush(conn *c)
{
    size_t      bytes;
    const char *data = tti_engine_output(c->engine_conn, &bytes);
    uv_buf_t    buf;
    int         sent;

    buf = uv_buf_init((char *)(uintptr_t)data, (unsigned)bytes);
    if (tti_engine_closing(c->engine_conn)) {
        if (bytes > 0 && c->unsent == NULL)
            (void)uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
        close_conn(c);
        return;
    }
    if (bytes > 0 && c->unsent == NULL) {
        sent = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
        if (sent < 0 && sent != UV_EAGAIN) {
            close_conn(c);
            return;
        }
        if (sent < 0)
            sent = 0;
        if ((size_t)sent < bytes)
            write_later(c, data + sent, bytes - (size_t)sent);
        if (c->engine_conn != NULL && sent > 0)
            tti_engine_sent(c->server->engine, c->engine_conn, (size_t)sent);
    }
    if (c->engine_conn != NULL)
        set_reading(c, tti_engine_reads(c->engine_conn));
}

static void on_timer(uv_timer_t *timer)
{
    tutti_store_server *server = timer->data;

    tti_engine_tick(server->engine, tti_now_ns());
    flush_all(server);
}

static void set_timer(tutti_store_server *server)
{
    const int64_t deadline = tti_engine_deadline(server->engine);
    int64_t       left;

    if (deadline == TTI_FOREVER) {
        uv_timer_stop(&server->timer);
        return;
    }
    left = deadline - tti_now_ns();
    uv_timer_start(&server->timer, on_timer, left > 0 ? (uint64_t)(left / TTI_MS + 1) : 0, 0);
}

/* Everything that the engine wants done after a report. */
static void flush_all(tutti_store_server *server)
{
    tti_engine_conn *engine_conn;

    while ((engine_conn = tti_engine_next(server->engine)) != NULL)
        flush(tti_engine_owner(engine_conn));
    set_timer(server);
}

/* Where it came from, as words and as an address. */
static void look_at_peer(const uv_tcp_t *tcp, char *out, size_t bytes, tti_addr *at_out)
{
    struct sockaddr_storage name;
    int                     size = sizeof name;
    char                    ip[64] = "?";

    if (uv_tcp_getpeername(tcp, (struct sockaddr *)&name, &size) == 0)
        uv_ip_name((const struct sockaddr *)&name, ip, sizeof ip);
    snprintf(out, bytes, "the client at %s", ip);
    if (tti_addr_parse(ip, 0, at_out) != TUTTI_OK) /* it is gone already */
        *at_out = (tti_addr){ .family = TTI_ADDR_NONE };
}

static rlim_t spared(const struct rlimit *files)
{
    return files->rlim_cur / 4 < SPARE_FILES ? files->rlim_cur / 4 : SPARE_FILES;
}

/* Where descriptors are few: half of those that are spared are for whoever comes. Members that arrive together have not proved
 * themselves yet, either, and must not push each other out. */
static size_t unproven_that_may_stay(void)
{
    struct rlimit files;

    return getrlimit(RLIMIT_NOFILE, &files) == 0 ? (size_t)spared(&files) / 2 : 0;
}

/* Descriptors are given out from the lowest one on, so a high one tells that few are left: the rest is for those who belong
 * to the job, and for the program. */
static bool is_high(const uv_tcp_t *tcp)
{
    struct rlimit files;
    uv_os_fd_t    fd;
    rlim_t        spare;

    if (uv_fileno((const uv_handle_t *)tcp, &fd) != 0 || getrlimit(RLIMIT_NOFILE, &files) != 0)
        return false;
    spare = spared(&files);
    return (rlim_t)fd + spare >= files.rlim_cur;
}

/* A low one tells nothing: it may be one that a stranger who had to go has left behind, while all above are in use. So how many
 * connections were too many is remembered for as long as there are strangers. */
static bool is_short_of_files(tutti_store_server *server, const uv_tcp_t *tcp)
{
    const size_t n = tti_engine_n_conns(server->engine);

    if (tti_engine_n_unproven(server->engine) < 2) /* the newcomer */
        server->conns_most = 0;
    if (is_high(tcp) && (server->conns_most == 0 || n <= server->conns_most))
        server->conns_most = n - 1;
    return server->conns_most > 0 && n > server->conns_most;
}

/* Where there is no secret. */
static bool is_of_user(const tutti_store_server *server, const uv_tcp_t *tcp, const char *from)
{
    uv_os_fd_t fd;

    if (uv_fileno((const uv_handle_t *)tcp, &fd) != 0)
        return false;
    if (tti_secret_check_user(tti_engine_secret(server->engine), tti_port_system(), fd, from) == TUTTI_OK)
        return true;
    tti_log(TTI_LOG_INFO, "store: closing %s: %s", from, tutti_last_error());
    return false;
}

static conn *make_conn(tutti_store_server *server)
{
    conn *c = calloc(1, sizeof *c);

    if (c == NULL || uv_tcp_init(&server->loop, &c->tcp) != 0) {
        free(c);
        return NULL;
    }
    c->server = server;
    c->tcp.data = c;
    return c;
}

/* False: there is no memory for it, and it waits. */
static bool take_connection(uv_stream_t *listener)
{
    tutti_store_server *server = listener->data;
    conn               *c = make_conn(server);
    char                from[96];
    tti_addr            at;

    if (c == NULL)
        return false;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0) {
        close_conn(c);
        return true;
    }
    mark((uv_handle_t *)&c->tcp, true);
    uv_tcp_nodelay(&c->tcp, 1);
    uv_tcp_keepalive(&c->tcp, 1, 30);
    look_at_peer(&c->tcp, from, sizeof from, &at);
    if (is_of_user(server, &c->tcp, from))
        c->engine_conn = tti_engine_accept(server->engine, tti_now_ns(), from, &at, c);
    if (c->engine_conn == NULL)
        close_conn(c);
    else
        set_reading(c, true);
    if (is_short_of_files(server, &c->tcp))
        tti_engine_relieve(server->engine, tti_now_ns(), unproven_that_may_stay());
    flush_all(server);
    return true;
}

/* libuv would accept for as long as there is somebody, and a flood always is: who came before would have to go before it was
 * heard once; it also sleeps a while after each. So one is taken in each turn of the loop: until then libuv accepts no more. */
static void on_connection(uv_stream_t *listener, int status)
{
    tutti_store_server *server = listener->data;

    if (status != 0)
        return;
    server->waits[(uv_tcp_t *)listener - server->listeners] = true;
    uv_idle_start(&server->taker, on_taker);
}

static void on_later(uv_timer_t *later)
{
    tutti_store_server *server = later->data;

    uv_idle_start(&server->taker, on_taker);
}

/* A connection that is not taken would be the last: libuv accepts none of that listener until it is. */
static void try_later(tutti_store_server *server)
{
    if (!server->starved)
        tti_log(TTI_LOG_WARN, "store: no memory for a connection; trying again");
    server->starved = true;
    uv_timer_start(&server->later, on_later, AGAIN_MS, 0);
}

static void on_taker(uv_idle_t *taker)
{
    tutti_store_server *server = taker->data;
    bool                left = false;
    int                 i;

    uv_idle_stop(taker);
    for (i = 0; i < server->at.n; i++)
        if (server->waits[i]) {
            server->waits[i] = !take_connection((uv_stream_t *)&server->listeners[i]);
            left = left || server->waits[i];
        }
    if (left)
        try_later(server);
    else
        server->starved = false;
}

static void close_walked(uv_handle_t *handle, void *arg)
{
    tutti_store_server *server = arg;

    if (uv_is_closing(handle))
        return;
    if (handle->data != server) {
        close_conn(handle->data);
        return;
    }
    if (handle->type == UV_TCP)
        mark(handle, false);
    uv_close(handle, NULL);
}

static void on_bell(uv_async_t *bell)
{
    tutti_store_server *server = bell->data;

    tti_engine_ends(server->engine);
    uv_walk(&server->loop, close_walked, server);
}

static void server_main(void *arg)
{
    tutti_store_server *server = arg;

    uv_run(&server->loop, UV_RUN_DEFAULT); /* ends when all handles are closed: after the bell */
}

/* Hand the sockets over to libuv, which closes them from now on. */
static tutti_status watch_listeners(tutti_store_server *server, tti_listen *at)
{
    int err = 0, i;

    server->at = *at;
    for (i = 0; i < at->n && err == 0; i++) {
        uv_tcp_t *listener = &server->listeners[i];

        err = uv_tcp_init(&server->loop, listener);
        if (err != 0)
            break;
        listener->data = server;
        err = uv_tcp_open(listener, at->fds[i]);
        if (err != 0)
            break;
        at->fds[i] = -1;
        err = uv_listen((uv_stream_t *)listener, TTI_LISTEN_BACKLOG, on_connection);
    }
    if (err != 0)
        return tti_fail(TUTTI_E_NETWORK, "cannot watch the sockets of a store server: %s",
                        uv_strerror(err));
    return TUTTI_OK;
}

/* Timers and bell; without them the loop can still be closed. */
static tutti_status open_handles(tutti_store_server *server)
{
    int err = uv_timer_init(&server->loop, &server->timer);

    server->timer.data = server;
    if (err == 0)
        err = uv_idle_init(&server->loop, &server->taker);
    server->taker.data = server;
    if (err == 0)
        err = uv_timer_init(&server->loop, &server->later);
    server->later.data = server;
    if (err == 0)
        err = uv_async_init(&server->loop, &server->bell, on_bell);
    server->bell.data = server;
    if (err != 0)
        return tti_fail(TUTTI_E_NOMEM, "cannot start a store server: %s", uv_strerror(err));
    return TUTTI_OK;
}

/* Without a thread: close what there is, then let the loop see it. */
static void close_loop(tutti_store_server *server)
{
    uv_walk(&server->loop, close_walked, server);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    uv_loop_close(&server->loop);
}

/* A client that waited is gone, on the server's thread. Keys of users come with a '/' in front (tcp_store.c). */
static void on_dropped(void *context, const void *key, size_t bytes)
{
    tutti_store_server *server = context;
    const char         *text = key;

    if (bytes == 0 || text[0] != '/')
        return;
    tti_lock(&server->missed_lock);
    if (server->missed != NULL)
        server->missed(server->missed_context, text + 1, bytes - 1);
    tti_unlock(&server->missed_lock);
}

void tti_store_server_tell_missed(tutti_store_server *server, void (*missed)(void *context, const void *key, size_t bytes),
                                  void *context)
{
    tti_lock(&server->missed_lock);
    server->missed = missed;
    server->missed_context = context;
    tti_unlock(&server->missed_lock);
}

static tutti_status start(tti_listen *at, const tti_secret *secret, const tti_engine_limits *limits,
                          tutti_store_server **server_out)
{
    tutti_store_server *server = calloc(1, sizeof *server);
    tutti_status        st;
    int                 err;

    if (server == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a store server");
    tti_fork_watch();
    server->age = tti_fork_age();
    err = uv_loop_init(&server->loop);
    if (err != 0) {
        free(server);
        return tti_fail(TUTTI_E_NOMEM, "cannot start a store server: %s", uv_strerror(err));
    }
    tti_mutex_init(&server->missed_lock);
    st = tti_engine_create(tti_port_system(), secret, limits, &server->engine);
    if (st == TUTTI_OK) {
        tti_engine_tell_dropped(server->engine, on_dropped, server);
        st = open_handles(server);
    }
    if (st == TUTTI_OK)
        st = watch_listeners(server, at);
    if (st == TUTTI_OK)
        st = tti_thread_start(&server->thread, "tutti-store", server_main, server);
    if (st != TUTTI_OK) {
        close_loop(server);
        tti_engine_destroy(server->engine);
        tti_mutex_release(&server->missed_lock);
        free(server);
        return st;
    }
    *server_out = server;
    return TUTTI_OK;
}

/* The same server without libuv. */
static tutti_status start_on(tti_port *port, const tti_listen *at, const tti_secret *secret, const tti_engine_limits *limits,
                             tutti_store_server **server_out)
{
    tutti_store_server *server = calloc(1, sizeof *server);
    tti_listen          theirs = *at;
    tutti_status        st;

    if (server == NULL) {
        tti_listen_close(&theirs);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a store server");
    }
    server->age = tti_fork_age();
    tti_mutex_init(&server->missed_lock);
    server->at = *at;
    st = tti_port_server_start(port, at, secret, limits, &server->on_port);
    if (st != TUTTI_OK) {
        tti_mutex_release(&server->missed_lock);
        free(server);
        return st;
    }
    *server_out = server;
    return TUTTI_OK;
}

static void close_rest(tti_listen *at)
{
    int i;

    for (i = 0; i < at->n; i++)
        tti_port_system()->ops->close(tti_port_system(), at->fds[i]);
}

tutti_status tti_store_server_start_at(const tutti_store_server_options *options,
                                       const tti_listen *at, const tti_secret *secret,
                                       const tti_engine_limits *limits,
                                       tutti_store_server     **server_out)
{
    tti_listen   mine = *at;
    tutti_status st = tti_listen_open(options, secret, &mine);

    if (st != TUTTI_OK)
        return st;
    if (tti_port_stand_in() != NULL)
        return start_on(tti_port_stand_in(), &mine, secret, limits, server_out);
    st = start(&mine, secret, limits, server_out);
    close_rest(&mine); /* those that libuv did not take */
    return st;
}

tutti_status tti_store_server_start_limited(const tutti_store_server_options *options,
                                            const tti_engine_limits          *limits,
                                            tutti_store_server              **server_out)
{
    tutti_store_server_options opts = TUTTI_STORE_SERVER_OPTIONS;
    tti_secret                 secret = { .present = false };
    tti_listen                 at;
    tutti_status               st;

    if (server_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a store server needs server_out\n  next: pass where to put it");
    if (options != NULL)
        memcpy(&opts, options, options->size < sizeof opts ? options->size : sizeof opts);
    st = tti_listen_find(&opts, &at);
    if (st == TUTTI_OK)
        st = tti_secret_load(opts.secret_file, &secret);
    if (st == TUTTI_OK)
        st = tti_store_server_start_at(&opts, &at, &secret, limits, server_out);
    tti_secret_release(&secret);
    return st;
}

tutti_status tutti_store_server_start(const tutti_store_server_options *options,
                                      tutti_store_server              **server_out)
{
    return tti_store_server_start_limited(options, NULL, server_out);
}

const tti_listen *tti_store_server_at(const tutti_store_server *server)
{
    return &server->at;
}

int tutti_store_server_port(const tutti_store_server *server)
{
    return server != NULL ? server->at.at[0].port : 0;
}

static void log_counts(const tutti_store_server *server)
{
    const tti_engine_counts n = tti_engine_counted(server->engine);

    tti_log(TTI_LOG_INFO, "store: served %" PRIu64 " requests of %" PRIu64 " connections: %" PRIu64 " bytes came, %" PRIu64
                          " went", n.requests, n.conns, n.came, n.went);
}

void tutti_store_server_stop(tutti_store_server *server)
{
    if (server == NULL || tti_is_inherited(server->age))
        return; /* in a child of fork() its thread is not there */
    if (server->on_port != NULL) {
        tti_port_server_stop(server->on_port);
        tti_mutex_release(&server->missed_lock);
        free(server);
        return;
    }
    uv_async_send(&server->bell);
    tti_thread_join(&server->thread);
    uv_loop_close(&server->loop);
    log_counts(server);
    tti_engine_destroy(server->engine);
    tti_mutex_release(&server->missed_lock);
    free(server);
}

bool tti_store_server_await_unneeded(tutti_store_server *server, const void *below, size_t bytes, int64_t until_ns)
{
    tti_engine *engine;

    if (tti_is_inherited(server->age))
        return true;
    engine = server->on_port != NULL ? tti_port_server_engine(server->on_port) : server->engine;
    return tti_store_needs_await(tti_engine_needs(engine), below, bytes, until_ns);
}

void tti_store_server_stop_in_time(tutti_store_server *server, int64_t most_ms)
{
    tti_port *port = tti_port_system();

    if (server != NULL && !tti_store_server_await_unneeded(server, "", 0, tti_port_now(port) + most_ms * TTI_MS))
        tti_log(TTI_LOG_INFO, "store: ended while clients still needed it for a group that they make");
    tutti_store_server_stop(server);
}
