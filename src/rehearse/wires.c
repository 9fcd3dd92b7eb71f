/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wires.c - handles of the rehearsed world: streams and what is on its way in them, listeners, bells, signs of life.
 *
 * How     Hosts are 127.0.1.1, 127.0.2.1, ...: a loopback, so that no secret is asked for. What is sent arrives in the order
 *         of its stream, each piece after a time of its own, so that streams overtake each other. A stream takes so many bytes
 *         and no more. Between hosts that do not reach each other bytes are held back, and set out when they do; after
 *         UNHEARD_NS both ends hear that the connection is lost, as TCP tells them.
 * Ends    Closing says the end behind what was sent, or a reset, if something was not read; who sends to somebody gone
 *         hears a reset a round trip later. What came before a reset can be read. A killed process's streams end so, too;
 *         those of a host without power do not.
 * Sharing Handles that go to another process stand for the same thing. A descriptor of the machine's, below
 *         TTI_FIRST_HANDLE, is duplicated. */
#include "rehearse/world.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>

enum { SLOW = 50 };

static const int64_t LOCAL_NS = 3000;
static const int64_t UNHEARD_NS = 20 * TTI_SECOND;
static const int64_t RETRY_NS = 50 * TTI_MS;

/* ---- handles ----------------------------------------------------------------------------------------- */

static tti_thing *thing_at(tti_stage *stage, tti_handle handle)
{
    const int i = handle - TTI_FIRST_HANDLE;

    if (i < 0 || i >= stage->n_slots || stage->slots[i].thing == NULL) {
        fprintf(stderr, "rehearsal: '%s' of %s uses handle %d, which is not open\n",
                stage->running != NULL ? stage->running->name : "-",
                stage->running != NULL ? stage->running->process->name : "-", handle);
        abort();
    }
    return stage->slots[i].thing;
}

/* Who polls it may find it ready. What has several handles may be polled by any process of its host. */
static void note_change(tti_stage *stage, const tti_thing *thing)
{
    int i;

    thing->process->changes++;
    if (thing->refs <= 1)
        return;
    for (i = 0; i < stage->n_processes; i++)
        stage->processes[i]->changes += stage->processes[i]->host == thing->host;
}

void tti_wires_note_end(tti_stage *stage, const tti_process *process)
{
    int i;

    for (i = 0; i < stage->n_processes; i++)
        stage->processes[i]->changes += stage->processes[i]->host == process->host;
}

void tti_wires_unsettle(tti_stage *stage)
{
    stage->settle_ns = 0;
}

static tti_thing *new_thing(tti_stage *stage, tti_thing_kind kind, tti_process *process)
{
    tti_thing *thing = calloc(1, sizeof *thing);

    if (thing == NULL)
        return NULL;
    *thing = (tti_thing){ .kind = kind, .process = process, .host = process->host, .next = stage->things };
    if (stage->things != NULL)
        stage->things->prev = thing;
    stage->things = thing;
    return thing;
}

/* A handle of the process's for a thing, which it keeps alive; -1: no memory. */
static tti_handle open_handle(tti_stage *stage, tti_thing *thing, tti_process *process)
{
    tti_slot *more;
    int       i;

    for (i = 0; i < stage->n_slots && stage->slots[i].thing != NULL; i++)
        continue;
    if (i == stage->n_slots) {
        more = realloc(stage->slots, (size_t)(stage->n_slots * 2 + 64) * sizeof *more);
        if (more == NULL)
            return TTI_NO_HANDLE;
        stage->slots = more;
        stage->n_slots = stage->n_slots * 2 + 64;
        memset(&more[i], 0, (size_t)(stage->n_slots - i) * sizeof *more);
    }
    stage->slots[i] = (tti_slot){ .thing = thing, .owner = process->index };
    process->changes++;
    thing->refs++;
    return TTI_FIRST_HANDLE + i;
}

static void unref(tti_stage *stage, tti_thing *thing);

static void drop_piece(tti_stage *stage, tti_piece *piece)
{
    int i;

    for (i = 0; piece->passed != NULL && i < piece->passed->n; i++)
        if (piece->passed->things[i] != NULL)
            unref(stage, piece->passed->things[i]);
        else
            close(piece->passed->fds[i]);
    free(piece->passed);
    free(piece);
}

static void drop_pieces(tti_stage *stage, tti_thing *thing)
{
    tti_piece *piece;

    while ((piece = thing->first) != NULL) {
        thing->first = piece->next;
        drop_piece(stage, piece);
    }
    thing->last = NULL;
    thing->queued = 0;
}

/* ---- ways between hosts -------------------------------------------------------------------------------- */

static bool is_parted(const tti_stage *stage, int a, int b)
{
    return a != b && (stage->parted_until[a] > stage->now_ns || stage->parted_until[b] > stage->now_ns);
}

static int64_t way_ns(tti_stage *stage, int a, int b)
{
    const bool slow = stage->slow_until[a] > stage->now_ns || stage->slow_until[b] > stage->now_ns;
    int64_t    ns = stage->latency_ns + (int64_t)tti_stage_roll(stage, (uint64_t)stage->jitter_ns);

    if (a == b)
        return LOCAL_NS + (int64_t)tti_stage_roll(stage, LOCAL_NS);
    return slow ? ns * SLOW : ns;
}

/* When something that sets out now arrives. */
static int64_t arrival(tti_stage *stage, int a, int b)
{
    int64_t at = stage->now_ns + way_ns(stage, a, b);
    int64_t clear = stage->clogged_until[a] > stage->clogged_until[b] ? stage->clogged_until[a] : stage->clogged_until[b];

    if (is_parted(stage, a, b))
        return TTI_FOREVER;
    if (a != b && clear > at)
        at = clear + (int64_t)tti_stage_roll(stage, 2 * TTI_MS); /* each stream when it happens to */
    return at;
}

/* Put it behind what is on its way to `to`, from the host. */
static void post(tti_stage *stage, int from_host, tti_thing *to, tti_piece *piece)
{
    piece->arrives_ns = arrival(stage, from_host, to->host);
    if (to->last != NULL && piece->arrives_ns < to->last->arrives_ns)
        piece->arrives_ns = to->last->arrives_ns;
    *(to->last != NULL ? &to->last->next : &to->first) = piece;
    to->last = piece;
    to->queued += piece->size;
    note_change(stage, to);
}

static bool post_bytes(tti_stage *stage, int from_host, tti_thing *to, const void *data, size_t bytes, tti_passed *passed)
{
    tti_piece *piece = malloc(sizeof *piece + bytes);

    if (piece == NULL)
        return false;
    *piece = (tti_piece){ .size = bytes, .end = bytes == 0, .passed = passed };
    if (bytes > 0)
        memcpy(piece->data, data, bytes);
    post(stage, from_host, to, piece);
    return true;
}

/* `to` hears, behind what is on its way, that its other end is gone. */
static void post_reset(tti_stage *stage, int from_host, tti_thing *to)
{
    int64_t at = arrival(stage, from_host, to->host);

    if (to->last != NULL && at < to->last->arrives_ns)
        at = to->last->arrives_ns;
    if (to->reset_ns == 0)
        to->reset_ns = at;
    note_change(stage, to);
}

static bool is_reset(const tti_stage *stage, const tti_thing *thing)
{
    return thing->reset_ns != 0 && thing->reset_ns <= stage->now_ns;
}

static bool has_arrived(const tti_stage *stage, const tti_thing *thing)
{
    return thing->first != NULL && thing->first->arrives_ns <= stage->now_ns;
}

/* This end does not listen any more. */
static void part_ends(tti_stage *stage, tti_thing *thing)
{
    tti_thing *peer = thing->peer;

    thing->connecting = false;
    thing->peer = NULL;
    note_change(stage, thing);
    if (peer != NULL) {
        peer->peer = NULL;
        note_change(stage, peer);
        if (thing->queued > 0 || !post_bytes(stage, thing->host, peer, NULL, 0, NULL))
            post_reset(stage, thing->host, peer);
    }
    drop_pieces(stage, thing);
}

static void forget_door(tti_stage *stage, const tti_thing *door)
{
    tti_thing *thing;

    for (thing = stage->things; thing != NULL; thing = thing->next)
        if (thing->door == door)
            thing->door = NULL;
}

static void unref(tti_stage *stage, tti_thing *thing)
{
    if (--thing->refs > 0)
        return;
    if (thing->kind == TTI_THING_LISTENER)
        forget_door(stage, thing);
    while (thing->n_pending > 0)
        unref(stage, thing->pending[--thing->n_pending]);
    if (thing->kind == TTI_THING_STREAM)
        part_ends(stage, thing);
    if (thing->prev != NULL)
        thing->prev->next = thing->next;
    else
        stage->things = thing->next;
    if (thing->next != NULL)
        thing->next->prev = thing->prev;
    free(thing);
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

tti_addr tti_stage_addr(int host, uint16_t tcp_port)
{
    return (tti_addr){ .family = TTI_ADDR_IP4, .port = tcp_port, .ip = { 127, 0, (uint8_t)(host + 1), 1 } };
}

static int host_at(const tti_stage *stage, const tti_addr *addr, int own)
{
    const int host = addr->ip[2] == 0 ? own : addr->ip[2] - 1;

    return addr->family == TTI_ADDR_LOCAL ? own : addr->ip[0] == 127 && host < stage->n_hosts ? host : -1;
}

static bool listens_at(const tti_thing *thing, const tti_addr *addr, int host)
{
    if (thing->kind != TTI_THING_LISTENER || thing->host != host || thing->process->dead || thing->addr.family != addr->family)
        return false;
    return addr->family == TTI_ADDR_LOCAL ? strcmp(thing->addr.name, addr->name) == 0 : thing->addr.port == addr->port;
}

static tti_thing *listener_at(tti_stage *stage, const tti_addr *addr, int host)
{
    tti_thing *thing;

    for (thing = stage->things; thing != NULL && !listens_at(thing, addr, host); thing = thing->next)
        continue;
    return thing;
}

/* The end at the listener; NULL: refused. */
static tti_thing *arrive_at(tti_stage *stage, tti_thing *listener, const tti_addr *from)
{
    tti_thing *twin = listener->n_pending < TTI_PENDING_MAX ? new_thing(stage, TTI_THING_STREAM, listener->process) : NULL;

    if (twin == NULL)
        return NULL;
    twin->addr = listener->addr;
    twin->far = *from;
    twin->refs = 1;
    listener->pending[listener->n_pending++] = twin;
    note_change(stage, listener);
    tti_wires_unsettle(stage);
    return twin;
}

/* The round trip is over. */
static void connect_ends(tti_stage *stage, tti_thing *thing)
{
    const int  host = host_at(stage, &thing->far, thing->host);
    tti_thing *listener = host >= 0 ? listener_at(stage, &thing->far, host) : NULL;

    if (host >= 0 && is_parted(stage, thing->host, host)) {
        thing->connect_ns = TTI_FOREVER; /* until they reach each other */
        return;
    }
    thing->connecting = false;
    note_change(stage, thing);
    thing->peer = listener != NULL ? arrive_at(stage, listener, &thing->addr) : NULL;
    if (thing->peer == NULL) {
        thing->error = ECONNREFUSED;
        tti_stage_note(stage, "xrefused", thing->far.port, 0);
        return;
    }
    thing->peer->peer = thing;
    thing->whose = listener->process;
    thing->peer->whose = thing->process;
    thing->door = listener;
    tti_stage_note(stage, "connected", thing->addr.port, thing->far.port);
}

int tti_wire_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    tti_stage   *stage = tti_stage_of(port);
    tti_process *process = stage->running->process;
    tti_thing   *thing;
    tti_handle   handle;

    if (to->family != TTI_ADDR_IP4 && to->family != TTI_ADDR_LOCAL)
        return -EAFNOSUPPORT;
    if (process->dead)
        return -ENETUNREACH;
    if (to->family == TTI_ADDR_LOCAL && listener_at(stage, to, process->host) == NULL)
        return -ECONNREFUSED; /* as Unix sockets say at once */
    thing = new_thing(stage, TTI_THING_STREAM, process);
    handle = thing != NULL ? open_handle(stage, thing, process) : TTI_NO_HANDLE;
    if (handle == TTI_NO_HANDLE)
        return -ENOMEM;
    thing->addr = tti_stage_addr(process->host, stage->next_port++);
    thing->far = *to;
    thing->connecting = true;
    tti_wires_unsettle(stage);
    thing->connect_ns = stage->now_ns + 2 * way_ns(stage, process->host, host_at(stage, to, process->host) < 0
                                                                             ? process->host
                                                                             : host_at(stage, to, process->host));
    if (to->family == TTI_ADDR_LOCAL)
        connect_ends(stage, thing);
    *handle_out = handle;
    return 0;
}

int tti_wire_connect_result(tti_port *port, tti_handle handle)
{
    const tti_thing *thing = thing_at(tti_stage_of(port), handle);

    return thing->connecting ? -EINPROGRESS : -thing->error;
}

int tti_wire_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out, tti_handle *handle_out)
{
    tti_stage   *stage = tti_stage_of(port);
    tti_process *process = stage->running->process;
    tti_addr     addr = *at;
    tti_thing   *thing;
    tti_handle   handle;

    (void)backlog;
    if (at->family != TTI_ADDR_IP4 && at->family != TTI_ADDR_LOCAL)
        return -EAFNOSUPPORT;
    if (host_at(stage, at, process->host) != process->host)
        return -EADDRNOTAVAIL;
    if (at->family == TTI_ADDR_IP4 && addr.port == 0)
        addr.port = stage->next_port++;
    if (listener_at(stage, &addr, process->host) != NULL)
        return -EADDRINUSE;
    thing = new_thing(stage, TTI_THING_LISTENER, process);
    handle = thing != NULL ? open_handle(stage, thing, process) : TTI_NO_HANDLE;
    if (handle == TTI_NO_HANDLE)
        return -ENOMEM;
    thing->addr = addr;
    tti_stage_note(stage, "listens", addr.port, 0);
    *bound_out = addr;
    *handle_out = handle;
    return 0;
}

int tti_wire_accept(tti_port *port, tti_handle listener, tti_addr *from_out)
{
    tti_stage *stage = tti_stage_of(port);
    tti_thing *thing = thing_at(stage, listener);
    tti_thing *first;
    tti_handle handle;

    if (thing->n_pending == 0)
        return -EAGAIN;
    first = thing->pending[0];
    handle = open_handle(stage, first, stage->running->process);
    if (handle == TTI_NO_HANDLE)
        return -ENOMEM;
    memmove(thing->pending, thing->pending + 1, (size_t)--thing->n_pending * sizeof thing->pending[0]);
    first->refs--; /* the listener's */
    if (from_out != NULL)
        *from_out = first->far;
    tti_stage_note(stage, "accepts", first->addr.port, first->far.port);
    return handle;
}

int tti_wire_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    *addr_out = thing_at(tti_stage_of(port), handle)->addr;
    return 0;
}

/* ---- bytes ------------------------------------------------------------------------------------------------ */

/* 0: it may be sent to; else -errno. */
static int check_sending(const tti_stage *stage, const tti_thing *thing)
{
    if (thing->error != 0)
        return -thing->error;
    if (is_reset(stage, thing))
        return -ECONNRESET;
    return thing->connecting ? -EAGAIN : 0;
}

/* Keep what somebody who connected says first: it may be said twice. */
static void overhear(tti_thing *thing, const tti_part *part)
{
    tti_thing   *door = thing->door;
    const size_t n = part->size < TTI_HEARD_MAX ? part->size : TTI_HEARD_MAX;

    if (door == NULL || part->size == 0)
        return;
    memcpy(door->heard, part->data, n);
    door->n_heard = n;
    thing->door = NULL;
}

/* How much of what fits goes this time. */
static size_t crumb(tti_stage *stage, const tti_thing *thing, size_t bytes)
{
    if (!stage->crumbles || bytes < 2 || thing->far.family == TTI_ADDR_LOCAL || thing->addr.family == TTI_ADDR_LOCAL ||
        tti_stage_roll(stage, 4) != 0)
        return bytes;
    return 1 + tti_stage_roll(stage, bytes);
}

int64_t tti_wire_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    tti_stage *stage = tti_stage_of(port);
    tti_thing *thing;
    int        err, i;
    size_t     sent = 0;

    tti_stage_preempt(stage); /* before the handle is looked at: another thread may close it */
    thing = thing_at(stage, handle);
    err = check_sending(stage, thing);
    if (err != 0)
        return err;
    for (i = 0; i < n_parts; i++) {
        const size_t room = thing->peer == NULL ? parts[i].size
                            : thing->peer->queued < stage->room ? stage->room - thing->peer->queued
                                                                 : 0;
        const size_t fits = parts[i].size < room ? parts[i].size : room;
        const size_t bytes = crumb(stage, thing, fits);

        overhear(thing, &parts[i]);
        if (thing->peer != NULL && bytes > 0 && !post_bytes(stage, thing->host, thing->peer, parts[i].data, bytes, NULL))
            return -ENOMEM;
        sent += bytes;
        if (bytes < parts[i].size)
            break;
    }
    if (thing->peer == NULL && sent > 0)
        post_reset(stage, host_at(stage, &thing->far, thing->host), thing);
    tti_stage_note(stage, "sends", thing->far.port, (int64_t)sent);
    if (sent > 0)
        stage->running->yields = 0;
    return sent > 0 ? (int64_t)sent : -EAGAIN;
}

static tti_handle adopt(tti_stage *stage, tti_passed *passed, int i)
{
    tti_handle handle;

    if (passed->things[i] == NULL)
        return passed->fds[i];
    handle = open_handle(stage, passed->things[i], stage->running->process);
    unref(stage, passed->things[i]);
    return handle;
}

/* Up to bytes of the first piece. */
static int64_t take(tti_stage *stage, tti_thing *thing, void *out, size_t bytes)
{
    tti_piece *piece = thing->first;
    size_t     n = piece->size - piece->read;

    if (piece->end)
        return 0; /* it stays */
    n = crumb(stage, thing, n < bytes ? n : bytes);
    memcpy(out, piece->data + piece->read, n);
    piece->read += n;
    thing->queued -= n;
    if (thing->peer != NULL)
        note_change(stage, thing->peer); /* there is room again */
    if (piece->read == piece->size) {
        thing->first = piece->next;
        if (thing->first == NULL)
            thing->last = NULL;
        drop_piece(stage, piece);
    }
    stage->running->yields = 0;
    tti_stage_note(stage, "receives", thing->addr.port, (int64_t)n);
    return (int64_t)n;
}

/* 0: there is something to take; else -errno. */
static int check_receiving(const tti_stage *stage, const tti_thing *thing)
{
    if (thing->error != 0)
        return -thing->error;
    if (has_arrived(stage, thing))
        return 0;
    return is_reset(stage, thing) ? -ECONNRESET : -EAGAIN;
}

int64_t tti_wire_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    tti_stage *stage = tti_stage_of(port);
    tti_thing *thing;
    int        err;
    uint8_t   *at = out;
    int64_t    n, got = 0;

    tti_stage_preempt(stage);
    thing = thing_at(stage, handle);
    err = check_receiving(stage, thing);
    if (err != 0)
        return err;
    do { /* a stream has no pieces */
        n = take(stage, thing, at + got, bytes - (size_t)got);
        got += n;
    } while (n > 0 && (size_t)got < bytes && check_receiving(stage, thing) == 0 && !thing->first->end &&
             thing->first->passed == NULL);
    return got;
}

int tti_wire_send_fds(tti_port *port, tti_handle handle, const void *data, size_t bytes, const int *fds, int n_fds)
{
    tti_stage  *stage = tti_stage_of(port);
    tti_thing  *thing;
    tti_passed *passed;
    int         err, i;

    tti_stage_preempt(stage);
    thing = thing_at(stage, handle);
    err = check_sending(stage, thing);
    if (err != 0)
        return err;
    if (thing->peer == NULL)
        return -EPIPE;
    passed = calloc(1, sizeof *passed);
    if (passed == NULL)
        return -ENOMEM;
    for (i = 0; i < n_fds; i++) {
        if (fds[i] >= TTI_FIRST_HANDLE) {
            passed->things[i] = thing_at(stage, fds[i]);
            passed->things[i]->refs++;
        } else {
            passed->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        }
        passed->n++;
    }
    return post_bytes(stage, thing->host, thing->peer, data, bytes, passed) ? 0 : -ENOMEM;
}

int64_t tti_wire_recv_fds(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds_out, int n_fds_max,
                          int *n_fds_out)
{
    tti_stage  *stage = tti_stage_of(port);
    tti_thing  *thing = thing_at(stage, handle);
    int         err = check_receiving(stage, thing);
    tti_passed *passed;
    int         i;

    if (err != 0)
        return err;
    passed = thing->first->passed;
    if (passed != NULL && passed->n > n_fds_max)
        return -EMSGSIZE;
    *n_fds_out = passed != NULL ? passed->n : 0;
    for (i = 0; passed != NULL && i < passed->n; i++)
        fds_out[i] = adopt(stage, passed, i);
    thing->first->passed = NULL;
    free(passed);
    return take(stage, thing, out, bytes);
}

int tti_wire_peer_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    const tti_thing *thing = thing_at(tti_stage_of(port), handle);

    if (thing->whose == NULL)
        return -ENOTCONN;
    *cred_out = (tti_peer_cred){ .pid = tti_stage_pid(thing->whose), .uid = (int64_t)geteuid() };
    return 0;
}

void tti_wire_close(tti_port *port, tti_handle handle)
{
    tti_stage *stage = tti_stage_of(port);
    tti_thing *thing;

    if (handle < TTI_FIRST_HANDLE) {
        if (handle >= 0)
            close(handle);
        return;
    }
    thing = thing_at(stage, handle);
    stage->processes[stage->slots[handle - TTI_FIRST_HANDLE].owner]->changes++;
    stage->slots[handle - TTI_FIRST_HANDLE].thing = NULL;
    tti_stage_note(stage, "zcloses", thing->kind, thing->addr.port);
    unref(stage, thing);
}

/* ---- bells and signs of life --------------------------------------------------------------------------- */

static int make_sign(tti_stage *stage, tti_thing_kind kind, tti_handle *handle_out)
{
    tti_thing       *thing = new_thing(stage, kind, stage->running->process);
    const tti_handle handle = thing != NULL ? open_handle(stage, thing, stage->running->process) : TTI_NO_HANDLE;

    if (handle == TTI_NO_HANDLE)
        return -ENOMEM;
    *handle_out = handle;
    return 0;
}

int tti_wire_bell_create(tti_port *port, tti_handle *bell_out)
{
    return make_sign(tti_stage_of(port), TTI_THING_BELL, bell_out);
}

int tti_wire_life_create(tti_port *port, tti_handle *life_out)
{
    return make_sign(tti_stage_of(port), TTI_THING_LIFE, life_out);
}

void tti_wire_bell_ring(tti_port *port, tti_handle bell)
{
    tti_stage *stage = tti_stage_of(port);
    tti_thing *thing = thing_at(stage, bell);

    if (!thing->rung)
        note_change(stage, thing);
    thing->rung = true;
    tti_stage_note(stage, "bell", bell, 0);
}

void tti_wire_bell_clear(tti_port *port, tti_handle bell)
{
    thing_at(tti_stage_of(port), bell)->rung = false;
}

/* ---- looking ----------------------------------------------------------------------------------------------- */

static uint8_t stream_events(const tti_stage *stage, const tti_thing *thing, uint8_t want)
{
    uint8_t got = 0;

    if (thing->connecting)
        return 0;
    if (thing->error != 0 || is_reset(stage, thing))
        return TTI_READ | TTI_WRITE | TTI_HANGUP;
    if (has_arrived(stage, thing))
        got |= TTI_READ;
    if (thing->peer == NULL || thing->peer->queued < stage->room)
        got |= TTI_WRITE;
    return got & want;
}

static uint8_t events(tti_stage *stage, const tti_poll *p)
{
    const tti_thing *thing;

    if (p->handle < TTI_FIRST_HANDLE)
        return 0;
    thing = thing_at(stage, p->handle);
    switch (thing->kind) {
    case TTI_THING_LISTENER: return thing->n_pending > 0 ? p->want & TTI_READ : 0;
    case TTI_THING_BELL: return thing->rung ? p->want & TTI_READ : 0;
    case TTI_THING_LIFE:
        return thing->process->dead || (thing->process->done && thing->process->n_fibers == 0) ? p->want & TTI_READ : 0;
    case TTI_THING_STREAM: break;
    }
    return stream_events(stage, thing, p->want);
}

int tti_wires_look(tti_stage *stage, tti_poll *set, int n)
{
    int ready = 0, i;

    for (i = 0; i < n; i++) {
        set[i].got = events(stage, &set[i]);
        ready += set[i].got != 0;
    }
    return ready;
}

/* ---- what time brings ---------------------------------------------------------------------------------------- */

static int far_host(const tti_stage *stage, const tti_thing *thing)
{
    const int host = host_at(stage, &thing->far, thing->host);

    return host >= 0 ? host : thing->host;
}

/* A stream whose ends have not heard of each other for long. */
static void lose_unheard(tti_stage *stage, tti_thing *thing)
{
    if (!is_parted(stage, thing->host, far_host(stage, thing)))
        thing->parted_ns = 0;
    else if (thing->parted_ns == 0)
        thing->parted_ns = stage->now_ns;
    else if (stage->now_ns - thing->parted_ns >= UNHEARD_NS && thing->error == 0) {
        thing->error = ETIMEDOUT;
        note_change(stage, thing);
        tti_stage_note(stage, "unheard", thing->addr.port, thing->far.port);
    }
}

static int64_t sooner(int64_t best, int64_t at)
{
    return at < best ? at : best;
}

/* When there is something to do about a stream. */
static int64_t settles_ns(const tti_thing *thing)
{
    int64_t at = thing->connecting ? thing->connect_ns : TTI_FOREVER;

    if (thing->parted_ns != 0 && thing->error == 0)
        at = sooner(at, thing->parted_ns + UNHEARD_NS);
    return at;
}

void tti_wires_settle(tti_stage *stage)
{
    tti_thing *thing, *next;
    int64_t    at;

    while (stage->now_ns >= stage->settle_ns) { /* who is connected to is there only then */
        stage->settle_ns = TTI_FOREVER;
        for (thing = stage->things, at = TTI_FOREVER; thing != NULL; thing = next) {
            next = thing->next;
            if (thing->kind != TTI_THING_STREAM)
                continue;
            if (thing->connecting && thing->connect_ns <= stage->now_ns)
                connect_ends(stage, thing);
            lose_unheard(stage, thing);
            at = sooner(at, settles_ns(thing));
        }
        stage->settle_ns = sooner(stage->settle_ns, at);
    }
}

int64_t tti_wires_due(tti_stage *stage, const tti_poll *set, int n)
{
    int64_t best = TTI_FOREVER;
    int     i;

    for (i = 0; i < n; i++) {
        const tti_thing *thing = set[i].handle >= TTI_FIRST_HANDLE ? thing_at(stage, set[i].handle) : NULL;

        if (thing == NULL || thing->kind != TTI_THING_STREAM)
            continue;
        if (thing->first != NULL && thing->first->arrives_ns > stage->now_ns)
            best = sooner(best, thing->first->arrives_ns);
        if (thing->reset_ns != 0 && thing->reset_ns > stage->now_ns)
            best = sooner(best, thing->reset_ns);
    }
    return best;
}

/* ---- what goes wrong ------------------------------------------------------------------------------------------ */

void tti_wires_end_process(tti_stage *stage, const tti_process *process)
{
    int i;

    for (i = 0; i < stage->n_slots; i++) {
        tti_thing *thing = stage->slots[i].thing;

        if (thing == NULL || stage->slots[i].owner != process->index || thing->kind != TTI_THING_STREAM)
            continue;
        part_ends(stage, thing);
        thing->error = ECONNRESET;
        note_change(stage, thing);
    }
}

static void set_out_again(tti_stage *stage, tti_thing *thing, int from)
{
    int64_t    at = stage->now_ns + way_ns(stage, from, thing->host) + (int64_t)tti_stage_roll(stage, (uint64_t)RETRY_NS);
    tti_piece *piece;

    for (piece = thing->first; piece != NULL; piece = piece->next)
        if (piece->arrives_ns == TTI_FOREVER)
            piece->arrives_ns = at;
        else if (piece->arrives_ns > at)
            at = piece->arrives_ns;
    if (thing->reset_ns == TTI_FOREVER)
        thing->reset_ns = at;
    if (thing->connecting && thing->connect_ns == TTI_FOREVER)
        thing->connect_ns = at;
    note_change(stage, thing);
}

void tti_wires_release(tti_stage *stage, int host)
{
    tti_thing *thing;

    tti_wires_unsettle(stage);
    for (thing = stage->things; thing != NULL; thing = thing->next) {
        const int far = thing->kind == TTI_THING_STREAM ? far_host(stage, thing) : -1;

        if (far >= 0 && (far == host || thing->host == host) && !is_parted(stage, thing->host, far))
            set_out_again(stage, thing, far);
    }
}

bool tti_wires_reset_one(tti_stage *stage, int rank)
{
    tti_thing *thing, *chosen = NULL;
    uint64_t   n = 0;

    for (thing = stage->things; thing != NULL; thing = thing->next)
        if (thing->kind == TTI_THING_STREAM && thing->peer != NULL && thing->process->rank == rank &&
            thing->addr.family == TTI_ADDR_IP4 && thing->peer->process->rank >= 0 && tti_stage_roll(stage, ++n) == 0)
            chosen = thing;
    if (chosen == NULL)
        return false;
    chosen->reset_ns = chosen->peer->reset_ns = stage->now_ns;
    note_change(stage, chosen);
    note_change(stage, chosen->peer);
    tti_stage_note(stage, "reset", chosen->addr.port, chosen->far.port);
    return true;
}

bool tti_wires_double_one(tti_stage *stage, int rank)
{
    const tti_addr nobody = tti_stage_addr(0, stage->next_port);
    tti_thing     *thing, *chosen = NULL, *twin;
    uint64_t       n = 0;

    for (thing = stage->things; thing != NULL; thing = thing->next)
        if (thing->kind == TTI_THING_LISTENER && thing->addr.family == TTI_ADDR_IP4 && thing->process->rank == rank &&
            !thing->process->dead && tti_stage_roll(stage, ++n) == 0)
            chosen = thing;
    twin = chosen != NULL ? arrive_at(stage, chosen, &nobody) : NULL;
    if (twin == NULL)
        return false;
    stage->next_port++;
    if (chosen->n_heard > 0)
        post_bytes(stage, twin->host, twin, chosen->heard, chosen->n_heard, NULL);
    post_bytes(stage, twin->host, twin, NULL, 0, NULL);
    twin->last->arrives_ns += (int64_t)tti_stage_roll(stage, TTI_SECOND); /* nobody has looked at it yet */
    tti_stage_note(stage, "doubled", chosen->addr.port, (int64_t)chosen->n_heard);
    return true;
}

void tti_wires_free(tti_stage *stage)
{
    int i;

    for (i = 0; i < stage->n_slots; i++)
        if (stage->slots[i].thing != NULL)
            unref(stage, stage->slots[i].thing);
    free(stage->slots);
}
