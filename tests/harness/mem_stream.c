/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem_stream.c - listeners, streams and bells of the world, and what can happen to them. */
#include "harness/mem_world.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

mem_handle *tt_mem_handle_at(tt_mem_world *w, tti_handle handle)
{
    assert(handle >= 0 && handle < HANDLES_MAX && w->handles[handle].kind != FREE);
    return &w->handles[handle];
}

static tti_handle tt_mem_new_handle(mem_host *host, handle_kind kind)
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

void tt_mem_drop_segments(mem_handle *h)
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

static mem_handle *tt_mem_find_listener(tt_mem_world *w, const tti_addr *addr)
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
    mem_handle *listener = tt_mem_find_listener(w, &h->far);
    mem_host   *far_host = host_at(w, &h->far);
    tti_handle  twin;

    if (h->host->isolated || (far_host != NULL && far_host->isolated) ||
        (listener != NULL && listener->n_pending == 128)) { /* a queue that is full drops what comes */
        h->connect_ns = TTI_FOREVER; /* no answer, ever: the caller gives up */
        return;
    }
    h->connecting = false;
    if (far_host != NULL && far_host->unrouted) {
        h->error = EHOSTUNREACH;
        tt_mem_note(w, 'u', handle, 0);
        return;
    }
    twin = listener != NULL ? tt_mem_new_handle(listener->host, STREAM) : TTI_NO_HANDLE;
    if (twin == TTI_NO_HANDLE) {
        h->error = ECONNREFUSED;
        tt_mem_note(w, 'x', handle, 0);
        return;
    }
    w->handles[twin].peer = handle;
    w->handles[twin].addr = h->far;
    w->handles[twin].far = h->addr;
    h->peer = twin;
    listener->pending[listener->n_pending++] = twin;
    tt_mem_note(w, 'c', handle, twin);
}

/* Do what is due by now, in order of handles. */
void tt_mem_settle(tt_mem_world *w)
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

    tt_mem_drop_segments(h);
    h->error = ECONNRESET;
    if (h->peer != TTI_NO_HANDLE) {
        w->handles[h->peer].peer = TTI_NO_HANDLE;
        w->handles[h->peer].error = ECONNRESET;
        tt_mem_drop_segments(&w->handles[h->peer]);
    }
    h->peer = TTI_NO_HANDLE;
    tt_mem_note(w, 'r', handle, 0);
}

static uint8_t tt_mem_events(tt_mem_world *w, const tti_poll *p)
{
    const mem_handle *h;
    uint8_t           got = 0;

    if (p->handle == TTI_NO_HANDLE)
        return 0;
    h = tt_mem_handle_at(w, p->handle);
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

int tt_mem_look(tt_mem_world *w, tti_poll *set, int n)
{
    int ready = 0, i;

    for (i = 0; i < n; i++) {
        set[i].got = tt_mem_events(w, &set[i]);
        ready += set[i].got != 0;
    }
    return ready;
}

tti_addr tt_mem_addr(const mem_host *host, uint16_t tcp_port)
{
    tti_addr at = { .family = TTI_ADDR_IP4, .ip = { 10, 0, 0, (uint8_t)(host->index + 1) } };

    if (host->place.family != TTI_ADDR_NONE)
        at = host->place;
    at.port = tcp_port;
    return at;
}

int tt_mem_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    mem_host  *host = host_of(port);
    tti_handle handle = tt_mem_new_handle(host, STREAM);

    if (to->family != TTI_ADDR_IP4)
        return -EAFNOSUPPORT;
    if (handle == TTI_NO_HANDLE)
        return -EMFILE;
    host->world->handles[handle].addr = tt_mem_addr(host, host->next_port++);
    host->world->handles[handle].far = *to;
    host->world->handles[handle].connecting = true;
    host->world->handles[handle].connect_ns = host->world->now_ns + 2 * host->world->latency_ns;
    tt_mem_note(host->world, 'C', handle, to->port);
    *handle_out = handle;
    return 0;
}

int tt_mem_connect_result(tti_port *port, tti_handle handle)
{
    const mem_handle *h = tt_mem_handle_at(host_of(port)->world, handle);

    return h->connecting ? -EINPROGRESS : -h->error;
}

int tt_mem_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                  tti_handle *handle_out)
{
    mem_host      *host = host_of(port);
    const tti_addr addr = tt_mem_addr(host, at->port != 0 ? at->port : host->next_port++);
    tti_handle     handle;

    (void)backlog;
    if (at->family != TTI_ADDR_IP4)
        return -EAFNOSUPPORT;
    if (tt_mem_find_listener(host->world, &addr) != NULL)
        return -EADDRINUSE;
    handle = tt_mem_new_handle(host, LISTENER);
    if (handle == TTI_NO_HANDLE)
        return -EMFILE;
    host->world->handles[handle].addr = addr;
    tt_mem_note(host->world, 'l', handle, addr.port);
    *bound_out = addr;
    *handle_out = handle;
    return 0;
}

int tt_mem_accept(tti_port *port, tti_handle listener, tti_addr *from_out)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h = tt_mem_handle_at(w, listener);
    tti_handle    handle;

    if (h->n_pending == 0)
        return -EAGAIN;
    handle = h->pending[0];
    memmove(h->pending, h->pending + 1, (size_t)--h->n_pending * sizeof h->pending[0]);
    if (from_out != NULL)
        *from_out = w->handles[handle].far;
    tt_mem_note(w, 'a', listener, handle);
    return handle;
}

int tt_mem_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    *addr_out = tt_mem_handle_at(host_of(port)->world, handle)->addr;
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

int64_t tt_mem_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h = tt_mem_handle_at(w, handle);
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
    tt_mem_note(w, 's', handle, (int64_t)sent);
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
    tt_mem_note(w, 'v', (int64_t)(h - w->handles), (int64_t)n);
    return (int64_t)n;
}

int64_t tt_mem_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h = tt_mem_handle_at(w, handle);

    if (h->error != 0)
        return -h->error;
    if (h->connecting || !arrived(w, h))
        return -EAGAIN;
    return take_segment(w, h, out, bytes);
}

void tt_mem_close(tti_port *port, tti_handle handle)
{
    tt_mem_world *w = host_of(port)->world;
    mem_handle   *h;

    if (handle == TTI_NO_HANDLE)
        return;
    h = tt_mem_handle_at(w, handle);
    tt_mem_note(w, 'z', handle, 0);
    while (h->kind == LISTENER && h->n_pending > 0)
        tt_mem_close(port, h->pending[--h->n_pending]);
    if (h->kind == STREAM && h->peer != TTI_NO_HANDLE) {
        mem_handle *peer = &w->handles[h->peer];

        peer->peer = TTI_NO_HANDLE;
        if (h->queued > 0)
            peer->error = ECONNRESET; /* what it had sent was never read */
        else
            post(w, h, peer, NULL, 0);
    }
    tt_mem_drop_segments(h);
    h->kind = FREE;
}

int tt_mem_bell_create(tti_port *port, tti_handle *bell_out)
{
    tti_handle handle = tt_mem_new_handle(host_of(port), BELL);

    if (handle == TTI_NO_HANDLE)
        return -EMFILE;
    *bell_out = handle;
    return 0;
}

void tt_mem_bell_ring(tti_port *port, tti_handle bell)
{
    tt_mem_handle_at(host_of(port)->world, bell)->rung = true;
    tt_mem_note(host_of(port)->world, 'b', bell, 1);
}

void tt_mem_bell_clear(tti_port *port, tti_handle bell)
{
    tt_mem_handle_at(host_of(port)->world, bell)->rung = false;
}

void tt_mem_latency(tt_mem_world *world, int64_t latency_ns)
{
    world->latency_ns = latency_ns;
    tt_mem_note(world, 'L', latency_ns, 0);
}

void tt_mem_cut(tt_mem_world *world, const char *host)
{
    const mem_host *which = tt_mem_find_host(world, host);
    tti_handle      i;

    for (i = 0; i < HANDLES_MAX; i++)
        if (world->handles[i].kind == STREAM && world->handles[i].host == which &&
            !world->handles[i].connecting && world->handles[i].error == 0)
            reset_stream(world, i);
}

void tt_mem_cut_after(tt_mem_world *world, const char *host, int64_t bytes)
{
    mem_host *which = tt_mem_find_host(world, host);

    assert(which != NULL && bytes > 0);
    which->cut_after = bytes;
}

void tt_mem_place(tt_mem_world *world, const char *name, const tti_addr *at)
{
    mem_host *host = tt_mem_find_host(world, name);

    assert(host != NULL);
    host->place = *at;
}

void tt_mem_isolate(tt_mem_world *world, const char *host, bool on)
{
    mem_host  *which = tt_mem_find_host(world, host);
    tti_handle i;
    segment   *s;

    assert(which != NULL);
    which->isolated = on;
    tt_mem_note(world, 'i', which->index, on);
    if (on)
        return;
    /* Healed: what was held back sets out now, in its order. */
    for (i = 0; i < HANDLES_MAX; i++)
        for (s = world->handles[i].kind == STREAM ? world->handles[i].first : NULL; s != NULL;
             s = s->next)
            if (s->arrives_ns == TTI_FOREVER)
                s->arrives_ns = world->now_ns + world->latency_ns;
}

void tt_mem_unroute(tt_mem_world *world, const char *host, bool on)
{
    mem_host *which = tt_mem_find_host(world, host);

    assert(which != NULL);
    which->unrouted = on;
    tt_mem_note(world, 'n', which->index, on);
}
