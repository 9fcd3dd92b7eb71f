/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_server.c - one thread, one poll set. Waiting connections are looked through after every
 * request: slow, and plainly right. */
#include "torch_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "base/thread.h"
#include "store/store_queue.h"
#include "store/store_value.h"
#include "wire/buffer.h"
#include "wire/bytes.h"

enum { CONNS_MAX = 64, KEY_MAX = 8192, VALUE_MAX = 8 << 20, WAIT_KEYS_MAX = 131072 };

typedef struct text {
    const uint8_t *data;
    size_t         size;
} text;

/* What the map calls a key. */
static const char *name(text key)
{
    return (const char *)key.data;
}

typedef struct conn {
    int        fd; /* -1: free */
    bool       valid, waiting;
    tti_buffer in, out, keys; /* keys: what is waited for, as it came */
    uint64_t   n_keys;
} conn;

struct tt_torch_server {
    tt_torch_behaviour how;
    int                listener, stop[2];
    int                port;
    _Atomic int        accepted;
    pid_t                 victim; /* written before key_end is */
    _Atomic(const char *) key_end; /* NULL: nobody is to be killed */
    tti_map            map;
    tti_store_queues   queues;
    conn               conns[CONNS_MAX];
    tti_thread         thread;
};

/* ---- reading ---- */

/* A request being taken apart: ok false once something is missing, bad once something is wrong. */
typedef struct cursor {
    const uint8_t *at, *end;
    bool           ok, bad;
} cursor;

static uint64_t number(cursor *c, size_t bytes)
{
    uint64_t value = 0;

    if ((size_t)(c->end - c->at) < bytes) {
        c->ok = false;
        return 0;
    }
    value = tti_get_uint(c->at, bytes);
    c->at += bytes;
    return value;
}

static text piece(cursor *c, uint64_t max)
{
    const uint64_t size = number(c, 8);
    text           t = { .data = c->at };

    if (!c->ok)
        return t;
    if (size > max) {
        c->bad = true;
        c->ok = false;
    } else if ((uint64_t)(c->end - c->at) < size) {
        c->ok = false;
    } else {
        t.size = (size_t)size;
        c->at += size;
    }
    return t;
}

/* ---- answering ---- */

static void say(conn *c, const void *data, size_t bytes)
{
    if (tti_buffer_append(&c->out, data, bytes) != TUTTI_OK)
        abort();
}

static void say_number(conn *c, uint64_t value, size_t bytes)
{
    uint8_t raw[8];

    tti_put_uint(raw, value, bytes);
    say(c, raw, bytes);
}

static void say_text(conn *c, const void *data, size_t size)
{
    say_number(c, size, 8);
    say(c, data, size);
}

static void put(tt_torch_server *s, text key, text value)
{
    if (tti_map_put(&s->map, key.data, key.size, value.data, value.size) != TUTTI_OK)
        abort();
}

static bool exists(const tt_torch_server *s, text key)
{
    return tti_map_get(&s->map, key.data, key.size, NULL, NULL) ||
           tti_store_queues_len(&s->queues, key.data, key.size) > 0;
}

/* keys are n lengths and texts. */
static bool all_exist(const tt_torch_server *s, const uint8_t *keys, size_t bytes, uint64_t n)
{
    cursor   c = { .at = keys, .end = keys + bytes, .ok = true };
    uint64_t i;

    for (i = 0; i < n; i++)
        if (!exists(s, piece(&c, KEY_MAX)))
            return false;
    return true;
}

static bool compare_set(tt_torch_server *s, conn *c, text key, text expected, text desired)
{
    const void *now = NULL;
    size_t      size = 0;
    bool        changed;

    if (tti_store_map_compare_set(&s->map, name(key), key.size, expected.data, expected.size,
                                  desired.data, desired.size, &now, &size, &changed) != TUTTI_OK)
        abort();
    say_text(c, now, size);
    return true;
}

static bool add(tt_torch_server *s, conn *c, text key, int64_t delta)
{
    int64_t sum = 0;

    if (tti_store_map_add(&s->map, name(key), key.size, delta, "x", &sum) != TUTTI_OK)
        return false; /* the real one closes the connection, too */
    say_number(c, (uint64_t)sum, 8);
    return true;
}

static void pop(tt_torch_server *s, conn *c, text key)
{
    const void *value = NULL;
    size_t      size = 0;

    say_number(c, (uint64_t)tti_store_queues_len(&s->queues, key.data, key.size), 8);
    if (!tti_store_queues_front(&s->queues, key.data, key.size, &value, &size))
        return;
    say_text(c, value, size);
    tti_store_queues_drop(&s->queues, key.data, key.size);
}

static bool list_one(void *arg, const void *key, size_t key_size, const void *val, size_t val_size)
{
    (void)val;
    (void)val_size;
    say_text(arg, key, key_size);
    return true;
}

static void cancel(tt_torch_server *s, conn *c)
{
    const uint8_t bytes[] = { 0, 1 };

    if (s->how.crosses && c->waiting)
        say(c, bytes, 2);
    else
        say(c, bytes + 1, 1);
    c->waiting = false;
}

static void begin_wait(conn *c, const uint8_t *keys, size_t bytes, uint64_t n)
{
    tti_buffer_consume(&c->keys, c->keys.size);
    if (tti_buffer_append(&c->keys, keys, bytes) != TUTTI_OK)
        abort();
    c->n_keys = n;
    c->waiting = true;
}

/* count and keys; CHECK answers, WAIT begins. */
static void several(tt_torch_server *s, conn *c, cursor *cur, bool wait)
{
    const uint64_t n = number(cur, 8);
    const uint8_t *keys = cur->at;
    uint64_t       i;

    cur->bad = cur->bad || n > WAIT_KEYS_MAX;
    for (i = 0; i < n && cur->ok && !cur->bad; i++)
        piece(cur, KEY_MAX);
    if (!cur->ok || cur->bad)
        return;
    if (wait)
        begin_wait(c, keys, (size_t)(cur->at - keys), n);
    else
        say_number(c, all_exist(s, keys, (size_t)(cur->at - keys), n) ? 0 : 1, 1);
}

static void multi_set(tt_torch_server *s, cursor *cur)
{
    const uint64_t n = number(cur, 8);
    const cursor   start = *cur;
    cursor         again = start;
    uint64_t       i;

    for (i = 0; i < n && cur->ok; i++) {
        piece(cur, KEY_MAX);
        piece(cur, VALUE_MAX);
    }
    for (i = 0; i < n && cur->ok; i++) {
        const text key = piece(&again, KEY_MAX);

        put(s, key, piece(&again, VALUE_MAX));
    }
}

/* Whether somebody is killed over that key. */
static bool kills(tt_torch_server *s, text key)
{
    const char  *end = atomic_load(&s->key_end);
    const size_t n = end != NULL ? strlen(end) : 0;

    if (end == NULL || key.size < n || memcmp(key.data + key.size - n, end, n) != 0)
        return false;
    atomic_store(&s->key_end, NULL);
    if (s->victim > 0)
        kill(s->victim, SIGKILL);
    return true;
}

void tt_torch_server_kill_over(tt_torch_server *s, const char *key_end, pid_t victim)
{
    s->victim = victim;
    atomic_store(&s->key_end, key_end);
}

/* One request behind its code; false: close the connection. */
static bool serve(tt_torch_server *s, conn *c, int code, cursor *cur)
{
    text key = { .size = 0 }, a = { .size = 0 }, b = { .size = 0 };

    if (code == 0) {
        c->valid = number(cur, 4) == 0x3C85F7CE;
        return c->valid || !cur->ok;
    }
    if (!c->valid || (s->how.old && code >= 14) || code >= 18)
        return false;
    switch (code) {
    case 5: several(s, c, cur, false); return true;
    case 6: several(s, c, cur, true); return true;
    case 7: say_number(c, s->map.count, 8); return true;
    case 11: multi_set(s, cur); return true;
    case 12: cancel(s, c); return true;
    case 13: {
        const uint64_t nonce = number(cur, 4);

        if (cur->ok)
            say_number(c, nonce, 4);
        return true;
    }
    case 17:
        say_number(c, s->map.count, 8);
        tti_map_each(&s->map, list_one, c);
        return true;
    default: break;
    }
    key = piece(cur, KEY_MAX);
    if (code == 4) {
        const int64_t delta = (int64_t)number(cur, 8);

        return !cur->ok || add(s, c, key, delta);
    }
    if (cur->ok && (code == 1 || code == 2 || code == 9 || code == 14))
        a = piece(cur, VALUE_MAX);
    if (cur->ok && code == 2)
        b = piece(cur, VALUE_MAX);
    if (!cur->ok)
        return true;
    switch (code) {
    case 1: put(s, key, a); return true;
    case 2: return !kills(s, key) && compare_set(s, c, key, a, b);
    case 8: say_number(c, tti_map_delete(&s->map, key.data, key.size), 8); return true;
    case 9:
        return tti_store_map_append(&s->map, name(key), key.size, a.data, a.size, "x") == TUTTI_OK;
    case 14:
        return tti_store_queues_push(&s->queues, key.data, key.size, a.data, a.size) == TUTTI_OK;
    case 15: pop(s, c, key); return true;
    case 16:
        say_number(c, (uint64_t)tti_store_queues_len(&s->queues, key.data, key.size), 8);
        return true;
    default: return false;
    }
}

/* ---- connections ---- */

static void drop(conn *c)
{
    close(c->fd);
    tti_buffer_release(&c->in);
    tti_buffer_release(&c->out);
    tti_buffer_release(&c->keys);
    *c = (conn){ .fd = -1 };
}

/* Everything that has come whole; what a request said is taken back if it was not whole. */
static bool serve_all(tt_torch_server *s, conn *c)
{
    while (c->in.size > 0 && !(c->waiting && *tti_buffer_data(&c->in) != 12)) {
        const uint8_t *data = tti_buffer_data(&c->in);
        const size_t   said = c->out.size;
        cursor         cur = { .at = data + 1, .end = data + c->in.size, .ok = true };
        const int      code = data[0];

        if (!serve(s, c, code, &cur) || cur.bad)
            return false;
        if (!cur.ok)
            return true;
        if (code < TT_TORCH_CODES && s->how.say[code].bytes != NULL) {
            c->out.size = said;
            say(c, s->how.say[code].bytes, s->how.say[code].n);
        }
        tti_buffer_consume(&c->in, (size_t)(cur.at - data));
    }
    return true;
}

static void end_waits(tt_torch_server *s)
{
    int i;

    for (i = 0; i < CONNS_MAX; i++) {
        conn *c = &s->conns[i];

        if (c->fd < 0 || !c->waiting ||
            !all_exist(s, tti_buffer_data(&c->keys), c->keys.size, c->n_keys))
            continue;
        c->waiting = false;
        say_number(c, 0, 1);
        if (!serve_all(s, c))
            drop(c);
    }
}

static bool receive(conn *c)
{
    uint8_t      *room = tti_buffer_reserve(&c->in, 65536);
    const ssize_t n = room != NULL ? recv(c->fd, room, 65536, MSG_DONTWAIT) : -1;

    if (n > 0)
        tti_buffer_commit(&c->in, (size_t)n);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

static bool flush(conn *c)
{
    while (c->out.size > 0) {
        const ssize_t n =
            send(c->fd, tti_buffer_data(&c->out), c->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN;
        tti_buffer_consume(&c->out, (size_t)n);
    }
    return true;
}

static void take_conn(tt_torch_server *s)
{
    const int one = 1;
    int       fd = accept(s->listener, NULL, NULL);
    int       i;

    for (i = 0; fd >= 0 && i < CONNS_MAX; i++)
        if (s->conns[i].fd < 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            s->conns[i].fd = fd;
            atomic_fetch_add(&s->accepted, 1);
            return;
        }
    if (fd >= 0)
        close(fd);
}

static void serve_ready(tt_torch_server *s, const struct pollfd *set)
{
    int i;

    for (i = 0; i < CONNS_MAX; i++) {
        conn *c = &s->conns[i];

        if (c->fd < 0 || set[i].fd != c->fd || set[i].revents == 0)
            continue;
        if (((set[i].revents & POLLOUT) == 0 && !receive(c)) || !serve_all(s, c))
            drop(c);
    }
    end_waits(s);
    for (i = 0; i < CONNS_MAX; i++)
        if (s->conns[i].fd >= 0 && !flush(&s->conns[i]))
            drop(&s->conns[i]);
}

static void server_main(void *arg)
{
    tt_torch_server *s = arg;
    struct pollfd    set[CONNS_MAX + 2];
    int              i;

    for (;;) {
        for (i = 0; i < CONNS_MAX; i++)
            set[i] = (struct pollfd){ .fd = s->conns[i].fd,
                                      .events = s->conns[i].out.size > 0 ? POLLOUT : POLLIN };
        set[i] = (struct pollfd){ .fd = s->listener, .events = POLLIN };
        set[i + 1] = (struct pollfd){ .fd = s->stop[0], .events = POLLIN };
        poll(set, CONNS_MAX + 2, -1);
        if (set[i + 1].revents != 0)
            return;
        serve_ready(s, set);
        if (set[i].revents != 0)
            take_conn(s);
    }
}

static bool open_listener(tt_torch_server *s)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          size = sizeof at;

    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(s->listener, CONNS_MAX) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&at, &size) != 0)
        return false;
    s->port = ntohs(at.sin_port);
    return pipe(s->stop) == 0;
}

tt_torch_server *tt_torch_server_start(const tt_torch_behaviour *how)
{
    tt_torch_server *s = calloc(1, sizeof *s);
    int              i;

    if (s == NULL)
        return NULL;
    if (how != NULL)
        s->how = *how;
    for (i = 0; i < CONNS_MAX; i++)
        s->conns[i].fd = -1;
    tti_map_init(&s->map, tti_port_system());
    tti_store_queues_init(&s->queues, tti_port_system());
    if (!open_listener(s) ||
        tti_thread_start(&s->thread, "torch-server", server_main, s) != TUTTI_OK) {
        free(s);
        return NULL;
    }
    return s;
}

int tt_torch_server_port(const tt_torch_server *s)
{
    return s->port;
}

int tt_torch_server_accepted(const tt_torch_server *s)
{
    return atomic_load(&s->accepted);
}

void tt_torch_server_stop(tt_torch_server *s)
{
    int i;

    if (s == NULL)
        return;
    if (write(s->stop[1], "x", 1) != 1)
        abort();
    tti_thread_join(&s->thread);
    for (i = 0; i < CONNS_MAX; i++)
        if (s->conns[i].fd >= 0)
            drop(&s->conns[i]);
    close(s->listener);
    close(s->stop[0]);
    close(s->stop[1]);
    tti_map_release(&s->map);
    tti_store_queues_release(&s->queues);
    free(s);
}
