/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stage.c - the table of the port that stands in for the machine.
 *
 * Reading the clock takes a little time, so that a loop that looks at it comes to its end. Who sleeps on a word is woken
 * by whoever wakes it, by the deadline, and, now and then, by nobody, as the machine's are; not by a store alone, so that a
 * wake-up that was forgotten shows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <tutti/private.h>
#include "rehearse/world.h"

enum { CLOCK_NS = 40, FALSE_WAKE_ONE_IN = 64 };

static int64_t stage_now(tti_port *port)
{
    return tti_stage_of(port)->now_ns += CLOCK_NS;
}

static void stage_sleep_until(tti_port *port, int64_t deadline_ns)
{
    tti_stage *stage = tti_stage_of(port);

    stage->running->kind = TTI_WAITS_TIME;
    stage->running->deadline_ns = deadline_ns;
    tti_stage_wait(stage);
}

static void stage_random(tti_port *port, void *out, size_t bytes)
{
    uint8_t *at = out;
    uint64_t dice;
    size_t   n;

    for (; bytes > 0; at += n, bytes -= n) {
        n = bytes < sizeof dice ? bytes : sizeof dice;
        dice = tti_stage_dice(tti_stage_of(port));
        memcpy(at, &dice, n);
    }
}

static void stage_yield(tti_port *port)
{
    tti_stage_yield(tti_stage_of(port));
}

static void stage_wait_word(tti_port *port, const _Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    tti_stage  *stage = tti_stage_of(port);
    tti_player *player = stage->running;

    tti_stage_preempt(stage);
    if (atomic_load(word) != seen)
        return;
    player->kind = TTI_WAITS_WORD;
    player->word = word;
    player->deadline_ns = deadline_ns;
    player->woken = tti_stage_roll(stage, FALSE_WAKE_ONE_IN) == 0;
    tti_stage_wait(stage);
}

static void stage_wake_word(tti_port *port, const _Atomic uint32_t *word)
{
    tti_stage *stage = tti_stage_of(port);
    int        i;

    for (i = 0; i < stage->n_players; i++)
        if (stage->players[i]->kind == TTI_WAITS_WORD && stage->players[i]->word == word)
            stage->players[i]->woken = true;
}

static int stage_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    tti_stage *stage = tti_stage_of(port);
    int        ready;

    tti_stage_preempt(stage);
    ready = tti_wires_look(stage, set, n);
    if (ready > 0 || deadline_ns <= stage->now_ns)
        return ready;
    stage->running->kind = TTI_WAITS_POLL;
    stage->running->deadline_ns = deadline_ns;
    stage->running->set = set;
    stage->running->n_set = n;
    stage->running->look_ns = 0;
    tti_stage_wait(stage);
    return tti_wires_look(stage, set, n);
}

static tutti_status stage_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out, int max, int *n_out)
{
    tti_stage *stage = tti_stage_of(port);
    uint8_t    ip[4];
    int        i = -1;

    (void)max;
    if (inet_pton(AF_INET, host, ip) == 1) {
        out[0] = (tti_addr){ .family = TTI_ADDR_IP4, .port = tcp_port };
        memcpy(out[0].ip, ip, sizeof ip);
    } else if (strcmp(host, "localhost") == 0) {
        out[0] = tti_stage_addr(stage->running->process->host, tcp_port);
    } else if (sscanf(host, "host%d", &i) == 1 && i >= 0 && i < stage->n_hosts) {
        out[0] = tti_stage_addr(i, tcp_port);
    } else {
        return tti_fail(TUTTI_E_NETWORK, "cannot resolve host '%s': a rehearsal has 'host0' and so on", host);
    }
    *n_out = 1;
    return TUTTI_OK;
}

static int stage_route(tti_port *port, const tti_addr *to, tti_addr *local_out)
{
    if (to->family != TTI_ADDR_IP4 || to->ip[0] != 127)
        return -ENETUNREACH;
    *local_out = tti_stage_addr(tti_stage_of(port)->running->process->host, 0);
    return 0;
}

static int stage_interfaces(tti_port *port, tti_interface *out, int max)
{
    if (max < 1)
        return 0;
    out[0] = (tti_interface){ .name = "lo", .up = true, .loopback = true,
                              .addr = tti_stage_addr(tti_stage_of(port)->running->process->host, 0) };
    return 1;
}

static uint32_t stage_place(tti_port *port)
{
    return (uint32_t)tti_stage_of(port)->running->process->host + 1;
}

static int64_t stage_process(tti_port *port)
{
    return tti_stage_pid(tti_stage_of(port)->running->process);
}

static tutti_status stage_thread_start(tti_port *port, const char *name, void (*body)(void *arg), void *arg,
                                       void **thread_out)
{
    tti_stage   *stage = tti_stage_of(port);
    tti_player  *player = NULL;
    tutti_status st = tti_stage_add_player(stage, stage->running->process, name, body, arg, &player);

    if (st == TUTTI_OK)
        *thread_out = player;
    return st;
}

static void stage_thread_join(tti_port *port, void *thread)
{
    tti_stage  *stage = tti_stage_of(port);
    tti_player *other = thread;

    if (other->kind != TTI_HAS_ENDED) {
        stage->running->kind = TTI_WAITS_END;
        stage->running->other = other;
        tti_stage_wait(stage);
    }
    other->joined = true;
}

static void stage_preempt(tti_port *port)
{
    tti_stage_preempt(tti_stage_of(port));
}

const tti_port_ops tti_stage_ops = {
    .name = "rehearsal",
    .now_ns = stage_now,
    .sleep_until = stage_sleep_until,
    .random = stage_random,
    .yield = stage_yield,
    .wait_word = stage_wait_word,
    .wake_word = stage_wake_word,
    .resolve = stage_resolve,
    .connect = tti_wire_connect,
    .connect_result = tti_wire_connect_result,
    .listen = tti_wire_listen,
    .accept = tti_wire_accept,
    .local_addr = tti_wire_local_addr,
    .route = stage_route,
    .interfaces = stage_interfaces,
    .send = tti_wire_send,
    .recv = tti_wire_recv,
    .poll = stage_poll,
    .close = tti_wire_close,
    .send_fds = tti_wire_send_fds,
    .recv_fds = tti_wire_recv_fds,
    .peer_cred = tti_wire_peer_cred,
    .bell_create = tti_wire_bell_create,
    .bell_ring = tti_wire_bell_ring,
    .bell_clear = tti_wire_bell_clear,
    .life_create = tti_wire_life_create,
    .place = stage_place,
    .process = stage_process,
    .thread_start = stage_thread_start,
    .thread_join = stage_thread_join,
    .preempt = stage_preempt,
};
