/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_store.c - the client of the tcp store.
 *
 * Why     A thread that waits for a key must not hold up another's set on the same handle, so a
 *         handle is a small pool of connections: an operation takes an idle one, or opens one more,
 *         and puts it back when its reply has come.
 * How     One request, one reply, per connection at a time (store_proto.h). User keys go with a '/'
 *         in front; "init/", where joiners are counted, has none. A wait whose time is up sends
 *         CANCEL and then still reads one reply: either the cancelled one or the real one, which
 *         crossed it and counts. So the connection stays usable.
 * True    Opening retries only while the handle is being made. Later a server that refuses is dead.
 * Fails   Closed or reset: TUTTI_E_NETWORK naming host and port, at once, whatever the deadline;
 *         all idle connections are then closed too, they lead to the same server. An operation may
 *         have been done although it failed: it is not tried again. */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "store/store_proto.h"
#include "wire/addr.h"
#include "wire/bytes.h"
#include "wire/hello.h"

enum { IDLE_MAX = 8, HELLO_MS = 10000, JOIN_POLL_MS = 10 };

#define CANCEL_GRACE_NS \
    (5 * TTI_SECOND) /* for the reply to a CANCEL: a server that is slower hangs */
#define JOIN_KEY "init/"

typedef struct tcp_store {
    tutti_store         base; /* first: the two pointers convert both ways */
    tti_port           *port;
    char                host[TTI_HOST_MAX];
    uint16_t            tcp_port;
    char                who[TTI_HOST_MAX + 32]; /* "store host:port", for words */
    tti_secret          secret;
    tutti_store_server *server; /* is_master; else NULL */
    tti_mutex           lock;   /* guards idle, n_idle, next_id */
    tti_handle          idle[IDLE_MAX];
    int                 n_idle;
    uint32_t            next_id;
} tcp_store;

/* One call: what is asked, until when, and where the reply goes. */
typedef struct tcp_call {
    tcp_store        *ts;
    tti_handle        handle;
    tti_store_request request;
    const char       *key; /* for words; NULL: none */
    int64_t           start_ns;
    int64_t           deadline_ns;
    tti_store_head    head; /* of the reply */
    tutti_bytes       body; /* of the reply */
} tcp_call;

static tutti_status open_connection(tcp_store *ts, bool patient, int64_t deadline_ns,
                                    tti_handle *handle_out)
{
    const tti_hello_config config = { .client = true,
                                      .purpose = TTI_PURPOSE_STORE,
                                      .rank = TTI_HELLO_NO_RANK,
                                      .secret = &ts->secret,
                                      .peer = ts->who };
    const int64_t          hello_until = tti_deadline(ts->port, HELLO_MS, 0);
    tti_handle             handle = TTI_NO_HANDLE;
    tutti_status           st;

    st = patient ? tti_connect(ts->port, ts->host, ts->tcp_port, deadline_ns, &handle)
                 : tti_connect_once(ts->port, ts->host, ts->tcp_port, deadline_ns, &handle);
    if (st != TUTTI_OK)
        return st;
    if (!patient && hello_until < deadline_ns)
        deadline_ns = hello_until; /* a live server answers at once */
    st = tti_hello_run(ts->port, handle, &config, deadline_ns, NULL);
    if (st != TUTTI_OK) {
        ts->port->ops->close(ts->port, handle);
        return st;
    }
    *handle_out = handle;
    return TUTTI_OK;
}

static tti_handle take_idle(tcp_store *ts, uint32_t *id_out)
{
    tti_handle handle = TTI_NO_HANDLE;

    tti_lock(&ts->lock);
    *id_out = ++ts->next_id;
    if (ts->n_idle > 0)
        handle = ts->idle[--ts->n_idle];
    tti_unlock(&ts->lock);
    return handle;
}

static void put_idle(tcp_store *ts, tti_handle handle)
{
    tti_lock(&ts->lock);
    if (ts->n_idle < IDLE_MAX) {
        ts->idle[ts->n_idle++] = handle;
        handle = TTI_NO_HANDLE;
    }
    tti_unlock(&ts->lock);
    ts->port->ops->close(ts->port, handle);
}

static void close_idle(tcp_store *ts)
{
    tti_handle handles[IDLE_MAX];
    int        n, i;

    tti_lock(&ts->lock);
    n = ts->n_idle;
    memcpy(handles, ts->idle, sizeof handles);
    ts->n_idle = 0;
    tti_unlock(&ts->lock);
    for (i = 0; i < n; i++)
        ts->port->ops->close(ts->port, handles[i]);
}

/* Send a request, or the CANCEL of one. */
static tutti_status send_request(tcp_call *call, const tti_store_request *request,
                                 int64_t deadline_ns)
{
    tti_buffer   frame = { .memory = NULL };
    tutti_status st = tti_store_request_write(request, &frame);

    if (st == TUTTI_OK)
        st = tti_io_send_all(call->ts->port, call->handle, tti_buffer_data(&frame), frame.size,
                             call->ts->who, deadline_ns);
    tti_buffer_release(&frame);
    return st;
}

/* Wait for the first byte of the reply, or the end of the stream. False: neither came in time. */
static bool reply_begins(tcp_call *call, int64_t deadline_ns)
{
    tti_port *port = call->ts->port;
    tti_poll  set = { .handle = call->handle, .want = TTI_READ };

    while (port->ops->poll(port, &set, 1, deadline_ns) == 0)
        if (tti_port_now(port) >= deadline_ns)
            return false;
    return true;
}

static bool fits(const tcp_call *call)
{
    return call->head.op == call->request.op && call->head.id == call->request.id;
}

static tutti_status read_reply(tcp_call *call, int64_t deadline_ns)
{
    tcp_store   *ts = call->ts;
    uint8_t      head[TTI_STORE_HEAD_BYTES];
    char        *body;
    tutti_status st;

    st = tti_io_recv_all(ts->port, call->handle, head, sizeof head, ts->who, deadline_ns);
    if (st == TUTTI_OK)
        st = tti_store_head_read(head, false, &call->head);
    if (st == TUTTI_OK && !fits(call))
        st = tti_fail(TUTTI_E_STORE, "%s answered '%s' #%u with '%s' #%u", ts->who,
                      tti_store_op_name(call->request.op), call->request.id,
                      tti_store_op_name(call->head.op), call->head.id);
    if (st != TUTTI_OK)
        return st;
    body = malloc((size_t)call->head.size + 1);
    if (body == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a reply of %u bytes", call->head.size);
    st = tti_io_recv_all(ts->port, call->handle, body, call->head.size, ts->who, deadline_ns);
    if (st != TUTTI_OK) {
        free(body);
        return st;
    }
    body[call->head.size] = '\0';
    call->body = (tutti_bytes){ .data = body, .size = call->head.size };
    return TUTTI_OK;
}

static bool waits(const tcp_call *call)
{
    return call->request.op == TTI_STORE_GET || call->request.op == TTI_STORE_WAIT;
}

/* The time of a GET or WAIT is up. Afterwards call->head has the one reply that comes in any case.
 */
static tutti_status cancel(tcp_call *call)
{
    const tti_store_request request = { .op = TTI_STORE_CANCEL, .id = call->request.id };
    const int64_t           until = tti_port_now(call->ts->port) + CANCEL_GRACE_NS;
    tutti_status            st = send_request(call, &request, until);

    if (st != TUTTI_OK)
        return st;
    if (!reply_begins(call, until))
        return tti_fail(TUTTI_E_TIMEOUT, "%s stopped answering during '%s'", call->ts->who,
                        tti_store_op_name(call->request.op));
    return read_reply(call, until);
}

static int64_t ms_since_start(const tcp_call *call)
{
    return (tti_port_now(call->ts->port) - call->start_ns) / TTI_MS;
}

static tutti_status exchange(tcp_call *call)
{
    tutti_status st = send_request(call, &call->request, call->deadline_ns);

    if (st != TUTTI_OK)
        return st;
    if (!reply_begins(call, call->deadline_ns)) {
        if (waits(call))
            return cancel(call);
        return tti_fail(TUTTI_E_TIMEOUT, "%s did not answer '%s' within %" PRId64 " ms",
                        call->ts->who, tti_store_op_name(call->request.op), ms_since_start(call));
    }
    /* A reply that has begun comes whole, or the connection is lost. */
    return read_reply(call, tti_deadline(call->ts->port, TUTTI_STORE_TIMEOUT_MS, 0));
}

/* What the server said went wrong, on a connection that is fine. */
static tutti_status refused(const tcp_call *call)
{
    const tutti_status st = (tutti_status)call->head.status;

    if (st == TUTTI_E_TIMEOUT)
        return tti_fail(st, "key '%s' did not come within %" PRId64 " ms (%s)", call->key,
                        ms_since_start(call), call->ts->who);
    return tti_fail(st == TUTTI_E_NOMEM ? st : TUTTI_E_STORE, "%s: %s", call->ts->who,
                    (const char *)call->body.data);
}

/* Run a call whose request is filled but for its id. On TUTTI_OK the caller frees call->body. */
static tutti_status run(tcp_call *call)
{
    tcp_store   *ts = call->ts;
    tutti_status st = TUTTI_OK;

    call->handle = take_idle(ts, &call->request.id);
    if (call->handle == TTI_NO_HANDLE)
        st = open_connection(ts, false, call->deadline_ns, &call->handle);
    if (st != TUTTI_OK)
        return st;
    st = exchange(call);
    if (st != TUTTI_OK) {
        ts->port->ops->close(ts->port, call->handle);
        close_idle(ts);
        return st;
    }
    put_idle(ts, call->handle);
    if (call->head.status != TUTTI_OK) {
        st = refused(call);
        tutti_bytes_free(&call->body);
    }
    return st;
}

static void begin(tcp_call *call, tcp_store *ts, tti_store_op op, const char *key,
                  int64_t deadline_ns)
{
    call->ts = ts;
    call->key = key;
    call->start_ns = tti_port_now(ts->port);
    call->deadline_ns = deadline_ns;
    call->body = (tutti_bytes){ .data = NULL };
    call->request.op = op;
    call->request.n_keys = 0;
    call->request.delta = 0;
    call->request.value = call->request.expected = (tti_slice){ .size = 0 };
}

/* A key as it goes over the wire. */
typedef struct wire_key {
    char text[TTI_STORE_WIRE_KEY_MAX];
} wire_key;

static void add_key(tcp_call *call, const char *key, wire_key *room)
{
    const size_t size = strlen(key);

    room->text[0] = '/';
    memcpy(room->text + 1, key, size);
    call->request.keys[call->request.n_keys++] =
        (tti_slice){ .data = room->text, .size = size + 1 };
}

/* Run a call whose reply has at most 8 bytes: a number. */
static tutti_status run_number(tcp_call *call, size_t bytes, int64_t *out)
{
    tutti_status st = run(call);

    if (st != TUTTI_OK)
        return st;
    if (call->body.size != bytes)
        st = tti_fail(TUTTI_E_STORE, "%s answered '%s' with %zu bytes instead of %zu",
                      call->ts->who, tti_store_op_name(call->request.op), call->body.size, bytes);
    else if (out != NULL)
        *out = (int64_t)tti_get_uint(call->body.data, bytes);
    tutti_bytes_free(&call->body);
    return st;
}

static tutti_status tcp_set(tutti_store *store, const char *key, const void *val, size_t len,
                            int64_t deadline_ns)
{
    tcp_call call;
    wire_key room;

    begin(&call, (tcp_store *)store, TTI_STORE_SET, key, deadline_ns);
    add_key(&call, key, &room);
    call.request.value = (tti_slice){ .data = val, .size = len };
    return run_number(&call, 0, NULL);
}

static tutti_status tcp_get(tutti_store *store, const char *key, int64_t deadline_ns,
                            tutti_bytes *val_out)
{
    tcp_call     call;
    wire_key     room;
    tutti_status st;

    begin(&call, (tcp_store *)store, TTI_STORE_GET, key, deadline_ns);
    add_key(&call, key, &room);
    st = run(&call);
    if (st == TUTTI_OK)
        *val_out = call.body;
    return st;
}

/* WAIT or CHECK of at most TTI_STORE_KEYS_MAX keys. */
static tutti_status ask_some(tcp_store *ts, tti_store_op op, const char *const *keys, size_t n_keys,
                             int64_t deadline_ns, int64_t *out)
{
    wire_key    *rooms = malloc(n_keys * sizeof *rooms);
    tcp_call     call;
    tutti_status st;
    size_t       i;

    if (rooms == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %zu store keys", n_keys);
    begin(&call, ts, op, keys[0], deadline_ns);
    for (i = 0; i < n_keys; i++)
        add_key(&call, keys[i], &rooms[i]);
    st = run_number(&call, op == TTI_STORE_CHECK ? 1 : 0, out);
    free(rooms);
    return st;
}

/* In portions; *all_out false: one was missing at a CHECK. */
static tutti_status ask_all(tcp_store *ts, tti_store_op op, const char *const *keys, size_t n_keys,
                            int64_t deadline_ns, bool *all_out)
{
    tutti_status st = TUTTI_OK;
    int64_t      yes = 1;
    size_t       at, n;

    for (at = 0; at < n_keys && st == TUTTI_OK && yes != 0; at += n) {
        n = n_keys - at < TTI_STORE_KEYS_MAX ? n_keys - at : TTI_STORE_KEYS_MAX;
        st = ask_some(ts, op, keys + at, n, deadline_ns, op == TTI_STORE_CHECK ? &yes : NULL);
    }
    if (st == TUTTI_OK && all_out != NULL)
        *all_out = yes != 0;
    return st;
}

/* After a time-out of several keys: name one that is missing, if the server still answers. */
static void name_missing(tcp_store *ts, const char *const *keys, size_t n_keys, int64_t start_ns)
{
    const int64_t until = tti_port_now(ts->port) + CANCEL_GRACE_NS;
    bool          there = true;
    size_t        i;

    for (i = 0; i < n_keys; i++)
        if (ask_all(ts, TTI_STORE_CHECK, keys + i, 1, until, &there) != TUTTI_OK || !there)
            break;
    tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come within %" PRId64 " ms (%s)",
             keys[i < n_keys ? i : 0], (until - CANCEL_GRACE_NS - start_ns) / TTI_MS, ts->who);
}

static tutti_status tcp_wait_all(tutti_store *store, const char *const *keys, size_t n_keys,
                                 int64_t deadline_ns)
{
    tcp_store    *ts = (tcp_store *)store;
    const int64_t start = tti_port_now(ts->port);
    tutti_status  st = ask_all(ts, TTI_STORE_WAIT, keys, n_keys, deadline_ns, NULL);

    if (st == TUTTI_E_TIMEOUT && n_keys > 1)
        name_missing(ts, keys, n_keys, start);
    return st;
}

static tutti_status tcp_check(tutti_store *store, const char *const *keys, size_t n_keys,
                              int64_t deadline_ns, bool *all_out)
{
    return ask_all((tcp_store *)store, TTI_STORE_CHECK, keys, n_keys, deadline_ns, all_out);
}

static tutti_status tcp_compare_set(tutti_store *store, const char *key, const void *expected,
                                    size_t expected_len, const void *desired, size_t desired_len,
                                    int64_t deadline_ns, tutti_bytes *val_out)
{
    tcp_call     call;
    wire_key     room;
    tutti_status st;

    begin(&call, (tcp_store *)store, TTI_STORE_COMPARE_SET, key, deadline_ns);
    add_key(&call, key, &room);
    call.request.expected = (tti_slice){ .data = expected, .size = expected_len };
    call.request.value = (tti_slice){ .data = desired, .size = desired_len };
    st = run(&call);
    if (st == TUTTI_OK)
        *val_out = call.body;
    return st;
}

static tutti_status tcp_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns,
                            int64_t *sum_out)
{
    tcp_call call;
    wire_key room;

    begin(&call, (tcp_store *)store, TTI_STORE_ADD, key, deadline_ns);
    add_key(&call, key, &room);
    call.request.delta = delta;
    return run_number(&call, 8, sum_out);
}

static tutti_status tcp_delete_key(tutti_store *store, const char *key, int64_t deadline_ns,
                                   bool *deleted_out)
{
    tcp_call     call;
    wire_key     room;
    int64_t      deleted = 0;
    tutti_status st;

    begin(&call, (tcp_store *)store, TTI_STORE_DELETE, key, deadline_ns);
    add_key(&call, key, &room);
    st = run_number(&call, 1, &deleted);
    if (st == TUTTI_OK)
        *deleted_out = deleted != 0;
    return st;
}

static tutti_status tcp_num_keys(tutti_store *store, int64_t deadline_ns, int64_t *n_out)
{
    tcp_call call;

    begin(&call, (tcp_store *)store, TTI_STORE_NUM_KEYS, NULL, deadline_ns);
    return run_number(&call, 8, n_out);
}

static void tcp_close(tutti_store *store)
{
    tcp_store *ts = (tcp_store *)store;

    close_idle(ts);
    tutti_store_server_stop(ts->server);
    tti_mutex_release(&ts->lock);
    tti_secret_release(&ts->secret);
    free(ts);
}

static const tutti_store_ops tcp_ops = {
    .api = TUTTI_STORE_API,
    .size = sizeof(tutti_store_ops),
    .scheme = "tcp",
    .set = tcp_set,
    .get = tcp_get,
    .close = tcp_close,
    .wait_all = tcp_wait_all,
    .check = tcp_check,
    .compare_set = tcp_compare_set,
    .add = tcp_add,
    .delete_key = tcp_delete_key,
    .num_keys = tcp_num_keys,
};

static tutti_status join_count(tcp_store *ts, int64_t delta, int64_t deadline_ns, int64_t *n_out)
{
    tcp_call call;

    begin(&call, ts, TTI_STORE_ADD, JOIN_KEY, deadline_ns);
    call.request.keys[call.request.n_keys++] =
        (tti_slice){ .data = JOIN_KEY, .size = sizeof JOIN_KEY - 1 };
    call.request.delta = delta;
    return run_number(&call, 8, n_out);
}

/* Count ourselves; the master then looks until everybody has. */
static tutti_status join(tcp_store *ts, const tutti_tcp_store_options *opts, int64_t deadline_ns)
{
    const int64_t start = tti_port_now(ts->port);
    int64_t       joined = 0;
    tutti_status  st = join_count(ts, 1, deadline_ns, &joined);

    while (st == TUTTI_OK && opts->is_master && joined < opts->world_size) {
        const int64_t now = tti_port_now(ts->port);

        if (now >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT,
                            "%s: %" PRId64 " of %d processes joined within %" PRId64 " ms", ts->who,
                            joined, opts->world_size, (now - start) / TTI_MS);
        ts->port->ops->sleep_until(ts->port, now + JOIN_POLL_MS * TTI_MS);
        st = join_count(ts, 0, tti_deadline(ts->port, HELLO_MS, 0), &joined);
    }
    return st;
}

static tutti_status check_options(const tutti_tcp_store_options *opts)
{
    if (opts->host == NULL || opts->host[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a tcp store needs a host");
    if (strlen(opts->host) >= TTI_HOST_MAX)
        return tti_fail(TUTTI_E_ARG, "a host name of %zu bytes is too long, %d is the most",
                        strlen(opts->host), TTI_HOST_MAX - 1);
    if (opts->port < 0 || opts->port > 65535 || (opts->port == 0 && !opts->is_master))
        return tti_fail(TUTTI_E_ARG, "a tcp store's port is %d, not between 1 and 65535",
                        opts->port);
    if (opts->world_size < 0)
        return tti_fail(TUTTI_E_ARG, "a tcp store's world_size is %d", opts->world_size);
    if (opts->timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "a tcp store's timeout_ms is %" PRId64, opts->timeout_ms);
    return TUTTI_OK;
}

static tutti_status serve_here(tcp_store *ts, const tutti_tcp_store_options *opts)
{
    tutti_store_server_options server = TUTTI_STORE_SERVER_OPTIONS;
    tutti_status               st;

    if (ts->port != tti_port_system())
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "a tcp store is served on the machine's own sockets only");
    server.host = opts->listen != NULL ? opts->listen : opts->host;
    server.port = opts->port;
    server.secret_file = opts->secret_file;
    st = tutti_store_server_start(&server, &ts->server);
    if (st == TUTTI_OK)
        ts->tcp_port = (uint16_t)tutti_store_server_port(ts->server);
    return st;
}

/* Serve, connect, join. */
static tutti_status go_online(tcp_store *ts, const tutti_tcp_store_options *opts)
{
    const int64_t deadline = tti_deadline(ts->port, opts->timeout_ms, TUTTI_STORE_TIMEOUT_MS);
    tti_handle    handle = TTI_NO_HANDLE;
    tutti_status  st = tti_secret_load(opts->secret_file, &ts->secret);

    if (st == TUTTI_OK && opts->is_master)
        st = serve_here(ts, opts);
    if (st != TUTTI_OK)
        return st;
    snprintf(ts->who, sizeof ts->who, "store %s:%u", ts->host, ts->tcp_port);
    st = open_connection(ts, true, deadline, &handle);
    if (st != TUTTI_OK)
        return st;
    put_idle(ts, handle);
    if (opts->wait_for_workers && opts->world_size > 0)
        st = join(ts, opts, deadline);
    return st;
}

tutti_status tti_tcp_store_open_on(tti_port *port, const tutti_tcp_store_options *options,
                                   tutti_store **store_out)
{
    tutti_tcp_store_options opts = TUTTI_TCP_STORE_OPTIONS;
    tcp_store              *ts;
    tutti_status            st;

    if (options == NULL || store_out == NULL)
        return tti_fail(TUTTI_E_ARG, "a tcp store needs options and store_out");
    memcpy(&opts, options, options->size < sizeof opts ? options->size : sizeof opts);
    st = check_options(&opts);
    if (st != TUTTI_OK)
        return st;
    ts = calloc(1, sizeof *ts);
    if (ts == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a tcp store");
    ts->base.ops = &tcp_ops;
    ts->port = port;
    ts->tcp_port = (uint16_t)opts.port;
    snprintf(ts->host, sizeof ts->host, "%s", opts.host);
    tti_mutex_init(&ts->lock);
    st = tti_store_init(&ts->base, port, opts.timeout_ms, NULL);
    if (st == TUTTI_OK)
        st = go_online(ts, &opts);
    if (st != TUTTI_OK) {
        tti_store_uninit(&ts->base);
        tcp_close(&ts->base);
        return st;
    }
    *store_out = &ts->base;
    return TUTTI_OK;
}

tutti_status tutti_tcp_store_open(const tutti_tcp_store_options *options, tutti_store **store_out)
{
    return tti_tcp_store_open_on(tti_port_system(), options, store_out);
}

int tutti_tcp_store_port(const tutti_store *store)
{
    return store != NULL && store->ops == &tcp_ops ? ((const tcp_store *)store)->tcp_port : 0;
}
