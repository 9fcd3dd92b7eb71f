/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem_port.c - the baton, the clock and the streams of mem_port.h. */
#include "harness/mem_port.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { THREADS_MAX = 64, HOSTS_MAX = 64, HANDLES_MAX = 1024, NAME_MAX_BYTES = 32, MAIN = -1 };
enum { STREAM_ROOM = 256 * 1024 }; /* bytes on the way or unread, per direction */

#define DAY_NS (86400 * TTI_SECOND)

typedef enum wait_kind { WAIT_NONE, WAIT_TIME, WAIT_WORD, WAIT_POLL } wait_kind;

typedef struct mem_thread {
    struct tt_mem_world *world;
    pthread_t            id;
    pthread_cond_t       turn;
    char                 name[NAME_MAX_BYTES];
    void (*body)(void *arg);
    void *arg;
    bool  done;
    /* what it waits for */
    wait_kind               kind;
    int64_t                 deadline_ns;
    const _Atomic uint32_t *word;
    uint32_t                seen;
    bool                    woken;
    tti_poll               *set;
    int                     n_set;
} mem_thread;

typedef struct mem_host {
    tti_port             port; /* first: the two pointers convert both ways */
    struct tt_mem_world *world;
    char                 name[NAME_MAX_BYTES];
    int                  index;
    bool                 isolated;
    int64_t              cut_after; /* bytes; negative: never */
    uint16_t             next_port;
} mem_host;

/* Bytes, or the end of the stream, on their way. */
typedef struct segment {
    struct segment *next;
    int64_t         arrives_ns;
    bool            end;
    size_t          size, read;
    uint8_t         data[];
} segment;

typedef enum handle_kind { FREE, LISTENER, STREAM, BELL } handle_kind;

typedef struct mem_handle {
    handle_kind kind;
    mem_host   *host;
    tti_addr    addr; /* listener: where; stream: this end */
    tti_addr    far;  /* stream: the other end */
    /* listener: streams that wait to be accepted */
    tti_handle pending[128];
    int        n_pending;
    /* stream */
    int      peer; /* handle of the other end; TTI_NO_HANDLE: gone, or not there yet */
    bool     connecting;
    int64_t  connect_ns;
    int      error; /* errno that recv and send report; 0: none */
    segment *first, *last;
    size_t   queued; /* bytes of segments */
    bool     rung;   /* bell */
} mem_handle;

struct tt_mem_world {
    pthread_mutex_t lock; /* of turn */
    pthread_cond_t  main_turn;
    int             turn; /* whose baton: a thread, or MAIN */
    int64_t         now_ns;
    int64_t         latency_ns;
    uint64_t        dice;
    uint64_t        trace;
    mem_thread      threads[THREADS_MAX];
    int             n_threads;
    mem_host        hosts[HOSTS_MAX];
    int             n_hosts;
    mem_handle      handles[HANDLES_MAX];
};

static mem_host *host_of(tti_port *port)
{
    return (mem_host *)port;
}

static uint64_t next_dice(tt_mem_world *w)
{
    uint64_t z = (w->dice += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* One event into the hash: FNV-1a over its numbers. */
static void note(tt_mem_world *w, char what, int64_t a, int64_t b)
{
    const int64_t parts[] = { w->now_ns, w->turn, what, a, b };
    size_t        i, byte;

    for (i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (byte = 0; byte < 8; byte++)
            w->trace =
                (w->trace ^ (uint8_t)((uint64_t)parts[i] >> (8 * byte))) * UINT64_C(0x100000001b3);
}

/* ---- streams ---- */

static mem_handle *handle_at(tt_mem_world *w, tti_handle handle)
{
    assert(handle >= 0 && handle < HANDLES_MAX && w->handles[handle].kind != FREE);
    return &w->handles[handle];
}

static tti_handle new_handle(mem_host *host, handle_kind kind)
{
    tt_mem_world *w = host->world;
    tti_handle    i;

    for (i = 0; i < HANDLES_MAX; i++)
        if (w->handles[i].kind == FREE) {
            w->handles[i] = (mem_handle){ .kind = kind, .host = host, .peer = TTI_NO_HANDLE };
            return i;
        }
    return TTI_NO_HANDLE;
}

static bool held(const mem_handle *a, const mem_handle *b)
{
    return a->host->isolated || b->host->isolated;
}

/* Bytes, or the end, towards h; they wait on the way while either side is isolated. */
static void post(tt_mem_world *w, mem_handle *from, mem_handle *to, const tti_part *part,
                 size_t size)
{
    segment *s = calloc(1, sizeof *s + size);

    if (s == NULL)
        abort();
    s->arrives_ns = held(from, to) ? TTI_FOREVER : w->now_ns + w->latency_ns;
    s->end = part == NULL;
    s->size = size;
    if (size > 0)
        memcpy(s->data, part->data, size);
    *(to->last != NULL ? &to->last->next : &to->first) = s;
    to->last = s;
    to->queued += size;
}

static void drop_segments(mem_handle *h)
{
    segment *s;

    while ((s = h->first) != NULL) {
        h->first = s->next;
        free(s);
    }
    h->last = NULL;
    h->queued = 0;
}

static bool arrived(const tt_mem_world *w, const mem_handle *h)
{
    return h->first != NULL && h->first->arrives_ns <= w->now_ns;
}

static mem_handle *find_listener(tt_mem_world *w, const tti_addr *addr)
{
    int i;

    for (i = 0; i < HANDLES_MAX; i++)
        if (w->handles[i].kind == LISTENER && w->handles[i].addr.port == addr->port &&
            memcmp(w->handles[i].addr.ip, addr->ip, 4) == 0)
            return &w->handles[i];
    return NULL;
}

static mem_host *host_at(tt_mem_world *w, const tti_addr *addr)
{
    const int index = addr->ip[3] - 1;

    return addr->ip[0] == 10 && index >= 0 && index < w->n_hosts ? &w->hosts[index] : NULL;
}

/* The round trip of a connect is over: make both ends, or refuse. */
static void connect_ends(tt_mem_world *w, tti_handle handle)
{
    mem_handle *h = &w->handles[handle];
    mem_handle *listener = find_listener(w, &h->far);
    mem_host   *far_host = host_at(w, &h->far);
    tti_handle  twin;

    if (h->host->isolated || (far_host != NULL && far_host->isolated)) {
        h->connect_ns = TTI_FOREVER; /* no answer, ever: the caller gives up */
        return;
    }
    h->connecting = false;
    twin = listener != NULL && listener->n_pending < 128 ? new_handle(listener->host, STREAM)
                                                         : TTI_NO_HANDLE;
    if (twin == TTI_NO_HANDLE) {
        h->error = ECONNREFUSED;
        note(w, 'x', handle, 0);
        return;
    }
    w->handles[twin].peer = handle;
    w->handles[twin].addr = h->far;
    w->handles[twin].far = h->addr;
    h->peer = twin;
    listener->pending[listener->n_pending++] = twin;
    note(w, 'c', handle, twin);
}

/* Do what is due by now, in order of handles. */
static void settle(tt_mem_world *w)
{
    tti_handle i;

    for (i = 0; i < HANDLES_MAX; i++)
        if (w->handles[i].kind == STREAM && w->handles[i].connecting &&
            w->handles[i].connect_ns <= w->now_ns)
            connect_ends(w, i);
}

static void reset_stream(tt_mem_world *w, tti_handle handle)
{
    mem_handle *h = &w->handles[handle];

    drop_segments(h);
    h->error = ECONNRESET;
    if (h->peer != TTI_NO_HANDLE) {
        w->handles[h->peer].peer = TTI_NO_HANDLE;
        w->handles[h->peer].error = ECONNRESET;
        drop_segments(&w->handles[h->peer]);
    }
    h->peer = TTI_NO_HANDLE;
    note(w, 'r', handle, 0);
}

/* ---- the baton ---- */

static uint8_t events_of(tt_mem_world *w, const tti_poll *p)
{
    const mem_handle *h;
    uint8_t           got = 0;

    if (p->handle == TTI_NO_HANDLE)
        return 0;
    h = handle_at(w, p->handle);
    if (h->kind == LISTENER)
        return h->n_pending > 0 ? p->want & TTI_READ : 0;
    if (h->kind == BELL)
        return h->rung ? p->want & TTI_READ : 0;
    if (h->connecting)
        return 0;
    if (h->error != 0)
        return TTI_READ | TTI_WRITE | TTI_HANGUP;
    if (arrived(w, h))
        got |= TTI_READ;
    if (h->peer == TTI_NO_HANDLE || w->handles[h->peer].queued < STREAM_ROOM)
        got |= TTI_WRITE;
    return got & p->want;
}

static int look(tt_mem_world *w, tti_poll *set, int n)
{
    int ready = 0, i;

    for (i = 0; i < n; i++) {
        set[i].got = events_of(w, &set[i]);
        ready += set[i].got != 0;
    }
    return ready;
}

static bool can_go_on(tt_mem_world *w, mem_thread *t)
{
    if (t->done)
        return false;
    if (t->kind == WAIT_NONE || w->now_ns >= t->deadline_ns)
        return true;
    if (t->kind == WAIT_WORD)
        return t->woken || atomic_load(t->word) != t->seen;
    return t->kind == WAIT_POLL && look(w, t->set, t->n_set) > 0;
}

static int64_t sooner(int64_t best, int64_t at, int64_t now)
{
    return at > now && at < best ? at : best;
}

/* When something can happen next. */
static int64_t next_moment(const tt_mem_world *w)
{
    int64_t best = TTI_FOREVER;
    int     i;

    for (i = 0; i < w->n_threads; i++)
        if (!w->threads[i].done && w->threads[i].kind != WAIT_NONE)
            best = sooner(best, w->threads[i].deadline_ns, w->now_ns);
    for (i = 0; i < HANDLES_MAX; i++) {
        const mem_handle *h = &w->handles[i];

        if (h->kind != STREAM)
            continue;
        if (h->connecting)
            best = sooner(best, h->connect_ns, w->now_ns);
        if (h->first != NULL)
            best = sooner(best, h->first->arrives_ns, w->now_ns);
    }
    return best;
}

static void give_up(const tt_mem_world *w)
{
    static const char *const kinds[] = { "nothing", "a time", "a word", "a poll" };
    int                      i;

    fprintf(stderr, "mem_port: nobody can go on at %" PRId64 " ms\n", w->now_ns / TTI_MS);
    for (i = 0; i < w->n_threads; i++)
        if (!w->threads[i].done)
            fprintf(stderr, "  '%s' waits for %s\n", w->threads[i].name, kinds[w->threads[i].kind]);
    abort();
}

/* Who runs next; MAIN when all are done. The clock moves only here. */
static int pick(tt_mem_world *w)
{
    for (;;) {
        int able[THREADS_MAX], n_able = 0, left = 0, i;

        settle(w);
        for (i = 0; i < w->n_threads; i++) {
            left += !w->threads[i].done;
            if (can_go_on(w, &w->threads[i]))
                able[n_able++] = i;
        }
        if (left == 0)
            return MAIN;
        if (n_able > 0)
            return able[next_dice(w) % (uint64_t)n_able];
        w->now_ns = next_moment(w);
        if (w->now_ns > DAY_NS)
            give_up(w);
    }
}

static pthread_cond_t *turn_of(tt_mem_world *w, int who)
{
    return who == MAIN ? &w->main_turn : &w->threads[who].turn;
}

/* Hand the baton to who; if `me` is not MAIN's end or a finished thread, come back when it returns. */
static void hand_over(tt_mem_world *w, int me, int who, bool come_back)
{
    if (who == me)
        return;
    pthread_mutex_lock(&w->lock);
    w->turn = who;
    pthread_cond_signal(turn_of(w, who));
    while (come_back && w->turn != me)
        pthread_cond_wait(turn_of(w, me), &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* The running thread has filled in what it waits for. */
static void wait_turn(tt_mem_world *w)
{
    const int me = w->turn;
    const int who = pick(w);

    assert(me != MAIN); /* only programs of the world wait */
    note(w, '>', who, 0);
    hand_over(w, me, who, true);
    w->threads[me].kind = WAIT_NONE;
}

static mem_thread *self(tt_mem_world *w)
{
    assert(w->turn != MAIN);
    return &w->threads[w->turn];
}

static void *thread_main(void *arg)
{
    mem_thread   *t = arg;
    tt_mem_world *w = t->world;
    const int     me = (int)(t - w->threads);

    pthread_mutex_lock(&w->lock);
    while (w->turn != me)
        pthread_cond_wait(&t->turn, &w->lock);
    pthread_mutex_unlock(&w->lock);
    t->kind = WAIT_NONE;
    t->body(t->arg);
    t->done = true;
    note(w, 'd', me, 0);
    hand_over(w, me, pick(w), false);
    return NULL;
}

void tt_mem_spawn(tt_mem_world *world, const char *name, int64_t start_ns, void (*body)(void *arg),
                  void *arg)
{
    mem_thread *t = &world->threads[world->n_threads];

    assert(world->n_threads < THREADS_MAX && world->turn == MAIN);
    *t = (mem_thread){
        .world = world, .body = body, .arg = arg, .kind = WAIT_TIME, .deadline_ns = start_ns
    };
    snprintf(t->name, sizeof t->name, "%s", name);
    pthread_cond_init(&t->turn, NULL);
    world->n_threads++;
}

void tt_mem_run(tt_mem_world *world)
{
    int i;

    for (i = 0; i < world->n_threads; i++)
        if (pthread_create(&world->threads[i].id, NULL, thread_main, &world->threads[i]) != 0)
            abort();
    hand_over(world, MAIN, pick(world), true);
    for (i = 0; i < world->n_threads; i++)
        pthread_join(world->threads[i].id, NULL);
}

/* ---- the port ---- */

static int64_t mem_now(tti_port *port)
{
    return host_of(port)->world->now_ns;
}

static void mem_sleep_until(tti_port *port, int64_t deadline_ns)
{
    tt_mem_world *w = host_of(port)->world;
    mem_thread   *t = self(w);

    t->kind = WAIT_TIME;
    t->deadline_ns = deadline_ns;
    wait_turn(w);
}

static void mem_random(tti_port *port, void *out, size_t bytes)
{
    uint8_t *at = out;
    size_t   i;

    for (i = 0; i < bytes; i++)
        at[i] = (uint8_t)next_dice(host_of(port)->world);
}

static void mem_yield(tti_port *port)
{
    mem_sleep_until(port, mem_now(port));
}

static void mem_wait_word(tti_port *port, const _Atomic uint32_t *word, uint32_t seen,
                          int64_t deadline_ns)
{
    tt_mem_world *w = host_of(port)->world;
    mem_thread   *t = self(w);

    t->kind = WAIT_WORD;
    t->deadline_ns = deadline_ns;
    t->word = word;
    t->seen = seen;
    t->woken = false;
    wait_turn(w);
}

static void mem_wake_word(tti_port *port, const _Atomic uint32_t *word)
{
    tt_mem_world *w = host_of(port)->world;
    int           i;

    for (i = 0; i < w->n_threads; i++)
        if (w->threads[i].kind == WAIT_WORD && w->threads[i].word == word)
            w->threads[i].woken = true;
}

static tti_addr addr_of(const mem_host *host, uint16_t tcp_port)
{
    return (tti_addr){ .family = TTI_ADDR_IP4,
                       .port = tcp_port,
                       .ip = { 10, 0, 0, (uint8_t)(host->index + 1) } };
}

static tutti_status mem_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out,
                                int max, int *n_out)
{
    tt_mem_world *w = host_of(port)->world;
    int           i;

    (void)max;
    for (i = 0; i < w->n_hosts; i++)
        if (strcmp(w->hosts[i].name, host) == 0) {
            out[0] = addr_of(&w->hosts[i], tcp_port);
            *n_out = 1;
            return TUTTI_OK;
        }
    return tti_fail(TUTTI_E_NETWORK, "cannot resolve host '%s': nobody in this world has that name",
                    host);
}

static int mem_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    mem_host  *host = host_of(port);
    tti_handle handle = new_handle(host, STREAM);

    if (to->family != TTI_ADDR_IP4)
        return -EAFNOSUPPORT;
    if (handle == TTI_NO_HANDLE)
        return -EMFILE;
    host->world->handles[handle].addr = addr_of(host, host->next_port++);
    host->world->handles[handle].far = *to;
    host->world->handles[handle].connecting = true;
    host->world->handles[handle].connect_ns = host->world->now_ns + 2 * host->world->latency_ns;
    note(host->world, 'C', handle, to->port);
    *handle_out = handle;
    return 0;
}

static int mem_connect_result(tti_port *port, tti_handle handle)
{
    const mem_handle *h = handle_at(host_of(port)->world, handle);

    return h->connecting ? -EINPROGRESS : -h->error;
}

static int mem_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                      tti_handle *handle_out)
{
    mem_host      *host = host_of(port);
    const tti_addr addr = addr_of(host, at->port != 0 ? at->port : host->next_port++);
    tti_handle     handle;

    (void)backlog;
    if (at->family != TTI_ADDR_IP4)
        return -EAFNOSUPPORT;
    if (find_listener(host->world, &addr) != NULL)
        return -EADDRINUSE;
    handle = new_handle(host, LISTENER);
    if (handle == TTI_NO_HANDLE)
        return -EMFILE;
    host->world->handles[handle].addr = addr;
    note(host->world, 'l', handle, addr.port);
    *bound_out = addr;
    *handle_out = handle;
    return 0;
}

static int mem_accept(tti_port *port, tti_handle listener, tti_addr *from_out)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h = handle_at(w, listener);
    tti_handle    handle;

    if (h->n_pending == 0)
        return -EAGAIN;
    handle = h->pending[0];
    memmove(h->pending, h->pending + 1, (size_t)--h->n_pending * sizeof h->pending[0]);
    if (from_out != NULL)
        *from_out = w->handles[handle].far;
    note(w, 'a', listener, handle);
    return handle;
}

static int mem_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    *addr_out = handle_at(host_of(port)->world, handle)->addr;
    return 0;
}

static void count_cut(mem_host *host, size_t bytes)
{
    if (host->cut_after < 0)
        return;
    host->cut_after -= (int64_t)bytes;
    if (host->cut_after > 0)
        return;
    host->cut_after = -1;
    tt_mem_cut(host->world, host->name);
}

static int64_t mem_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h = handle_at(w, handle);
    size_t        sent = 0;
    int           i;

    if (h->error != 0)
        return -h->error;
    if (h->connecting)
        return -EAGAIN;
    if (h->peer == TTI_NO_HANDLE)
        return -EPIPE;
    for (i = 0; i < n_parts; i++) {
        mem_handle *to = &w->handles[h->peer];
        tti_part    part = parts[i];

        if (to->queued >= STREAM_ROOM)
            break;
        if (part.size > STREAM_ROOM - to->queued)
            part.size = STREAM_ROOM - to->queued;
        if (part.size > 0)
            post(w, h, to, &part, part.size);
        sent += part.size;
        if (part.size < parts[i].size)
            break;
    }
    note(w, 's', handle, (int64_t)sent);
    count_cut(h->host, sent);
    return sent > 0 ? (int64_t)sent : -EAGAIN;
}

/* Up to bytes of the first segment that has arrived. */
static int64_t take_segment(tt_mem_world *w, mem_handle *h, void *out, size_t bytes)
{
    segment *s = h->first;
    size_t   n = s->size - s->read;

    if (s->end)
        return 0; /* it stays: the end is the end for every later recv */
    if (n > bytes)
        n = bytes;
    memcpy(out, s->data + s->read, n);
    s->read += n;
    h->queued -= n;
    if (s->read == s->size) {
        h->first = s->next;
        if (h->first == NULL)
            h->last = NULL;
        free(s);
    }
    note(w, 'v', (int64_t)(h - w->handles), (int64_t)n);
    return (int64_t)n;
}

static int64_t mem_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h = handle_at(w, handle);

    if (h->error != 0)
        return -h->error;
    if (h->connecting || !arrived(w, h))
        return -EAGAIN;
    return take_segment(w, h, out, bytes);
}

static int mem_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    tt_mem_world *w = host_of(port)->world;
    mem_thread   *t = self(w);

    t->kind = WAIT_POLL;
    t->deadline_ns = deadline_ns;
    t->set = set;
    t->n_set = n;
    wait_turn(w);
    return look(w, set, n);
}

static void mem_close(tti_port *port, tti_handle handle)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h;

    if (handle == TTI_NO_HANDLE)
        return;
    h = handle_at(w, handle);
    note(w, 'z', handle, 0);
    while (h->kind == LISTENER && h->n_pending > 0)
        mem_close(port, h->pending[--h->n_pending]);
    if (h->kind == STREAM && h->peer != TTI_NO_HANDLE) {
        mem_handle *peer = &w->handles[h->peer];

        peer->peer = TTI_NO_HANDLE;
        if (h->queued > 0)
            peer->error = ECONNRESET; /* what it had sent was never read */
        else
            post(w, h, peer, NULL, 0);
    }
    drop_segments(h);
    h->kind = FREE;
}

static int mem_send_fds(tti_port *port, tti_handle handle, const void *data, size_t bytes,
                        const int *fds, int n_fds)
{
    (void)port, (void)handle, (void)data, (void)bytes, (void)fds, (void)n_fds;
    return -EOPNOTSUPP; /* descriptors belong to the machine; worlds have none */
}

static int64_t mem_recv_fds(tti_port *port, tti_handle handle, void *out, size_t bytes,
                            int *fds_out, int n_fds_max, int *n_fds_out)
{
    (void)port, (void)handle, (void)out, (void)bytes, (void)fds_out, (void)n_fds_max,
        (void)n_fds_out;
    return -EOPNOTSUPP;
}

static int mem_peer_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    (void)port, (void)handle, (void)cred_out;
    return -EOPNOTSUPP;
}

static int mem_bell_create(tti_port *port, tti_handle *bell_out)
{
    tti_handle handle = new_handle(host_of(port), BELL);

    if (handle == TTI_NO_HANDLE)
        return -EMFILE;
    *bell_out = handle;
    return 0;
}

static void mem_bell_ring(tti_port *port, tti_handle bell)
{
    handle_at(host_of(port)->world, bell)->rung = true;
    note(host_of(port)->world, 'b', bell, 1);
}

static void mem_bell_clear(tti_port *port, tti_handle bell)
{
    handle_at(host_of(port)->world, bell)->rung = false;
}

static const tti_port_ops mem_ops = {
    .name = "memory",
    .now_ns = mem_now,
    .sleep_until = mem_sleep_until,
    .random = mem_random,
    .yield = mem_yield,
    .wait_word = mem_wait_word,
    .wake_word = mem_wake_word,
    .resolve = mem_resolve,
    .connect = mem_connect,
    .connect_result = mem_connect_result,
    .listen = mem_listen,
    .accept = mem_accept,
    .local_addr = mem_local_addr,
    .send = mem_send,
    .recv = mem_recv,
    .poll = mem_poll,
    .close = mem_close,
    .send_fds = mem_send_fds,
    .recv_fds = mem_recv_fds,
    .peer_cred = mem_peer_cred,
    .bell_create = mem_bell_create,
    .bell_ring = mem_bell_ring,
    .bell_clear = mem_bell_clear,
};

/* ---- the world ---- */

tt_mem_world *tt_mem_world_new(uint64_t seed)
{
    tt_mem_world *w = calloc(1, sizeof *w);

    if (w == NULL)
        abort();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->main_turn, NULL);
    w->turn = MAIN;
    w->now_ns = TTI_SECOND;
    w->latency_ns = TTI_MS / 10;
    w->dice = seed;
    w->trace = UINT64_C(0xcbf29ce484222325);
    return w;
}

void tt_mem_world_free(tt_mem_world *world)
{
    int i;

    for (i = 0; i < HANDLES_MAX; i++)
        drop_segments(&world->handles[i]);
    for (i = 0; i < world->n_threads; i++)
        pthread_cond_destroy(&world->threads[i].turn);
    pthread_cond_destroy(&world->main_turn);
    pthread_mutex_destroy(&world->lock);
    free(world);
}

static mem_host *find_host(tt_mem_world *w, const char *name)
{
    int i;

    for (i = 0; i < w->n_hosts; i++)
        if (strcmp(w->hosts[i].name, name) == 0)
            return &w->hosts[i];
    return NULL;
}

tti_port *tt_mem_host(tt_mem_world *world, const char *name)
{
    mem_host *host = find_host(world, name);

    if (host != NULL)
        return &host->port;
    assert(world->n_hosts < HOSTS_MAX);
    host = &world->hosts[world->n_hosts];
    *host = (mem_host){ .port = { .ops = &mem_ops },
                        .world = world,
                        .index = world->n_hosts++,
                        .cut_after = -1,
                        .next_port = 40000 };
    snprintf(host->name, sizeof host->name, "%s", name);
    return &host->port;
}

uint64_t tt_mem_trace(const tt_mem_world *world)
{
    return world->trace;
}

int64_t tt_mem_now(const tt_mem_world *world)
{
    return world->now_ns;
}

void tt_mem_latency(tt_mem_world *world, int64_t latency_ns)
{
    world->latency_ns = latency_ns;
    note(world, 'L', latency_ns, 0);
}

void tt_mem_cut(tt_mem_world *world, const char *host)
{
    const mem_host *which = find_host(world, host);
    tti_handle      i;

    for (i = 0; i < HANDLES_MAX; i++)
        if (world->handles[i].kind == STREAM && world->handles[i].host == which &&
            !world->handles[i].connecting && world->handles[i].error == 0)
            reset_stream(world, i);
}

void tt_mem_cut_after(tt_mem_world *world, const char *host, int64_t bytes)
{
    mem_host *which = find_host(world, host);

    assert(which != NULL && bytes > 0);
    which->cut_after = bytes;
}

void tt_mem_isolate(tt_mem_world *world, const char *host, bool on)
{
    mem_host  *which = find_host(world, host);
    tti_handle i;
    segment   *s;

    assert(which != NULL);
    which->isolated = on;
    note(world, 'i', which->index, on);
    if (on)
        return;
    /* Healed: what was held back sets out now, in its order. */
    for (i = 0; i < HANDLES_MAX; i++)
        for (s = world->handles[i].kind == STREAM ? world->handles[i].first : NULL; s != NULL;
             s = s->next)
            if (s->arrives_ns == TTI_FOREVER)
                s->arrives_ns = world->now_ns + world->latency_ns;
}
