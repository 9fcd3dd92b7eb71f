/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem_port.c - the table of the port in memory, and the hosts that have it. */
#include "harness/mem_world.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

static int64_t mem_now(tti_port *port)
{
    return host_of(port)->world->now_ns;
}

static void mem_sleep_until(tti_port *port, int64_t deadline_ns)
{
    tt_mem_world *w = host_of(port)->world;
    mem_thread   *t = tt_mem_self(w);

    t->kind = WAIT_TIME;
    t->deadline_ns = deadline_ns;
    tt_mem_wait_turn(w);
}

static void mem_random(tti_port *port, void *out, size_t bytes)
{
    uint8_t *at = out;
    size_t   i;

    for (i = 0; i < bytes; i++)
        at[i] = (uint8_t)tt_mem_dice(host_of(port)->world);
}

static void mem_yield(tti_port *port)
{
    mem_sleep_until(port, mem_now(port));
}

static void mem_wait_word(tti_port *port, const _Atomic uint32_t *word, uint32_t seen,
                          int64_t deadline_ns)
{
    tt_mem_world *w = host_of(port)->world;
    mem_thread   *t = tt_mem_self(w);

    t->kind = WAIT_WORD;
    t->deadline_ns = deadline_ns;
    t->word = word;
    t->seen = seen;
    t->woken = false;
    tt_mem_wait_turn(w);
}

static void mem_wake_word(tti_port *port, const _Atomic uint32_t *word)
{
    tt_mem_world *w = host_of(port)->world;
    int           i;

    for (i = 0; i < w->n_threads; i++)
        if (w->threads[i].kind == WAIT_WORD && w->threads[i].word == word)
            w->threads[i].woken = true;
}

static tutti_status mem_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out,
                                int max, int *n_out)
{
    tt_mem_world *w = host_of(port)->world;
    int           i;

    (void)max;
    for (i = 0; i < w->n_hosts; i++)
        if (strcmp(w->hosts[i].name, host) == 0) {
            out[0] = tt_mem_addr(&w->hosts[i], tcp_port);
            *n_out = 1;
            return TUTTI_OK;
        }
    return tti_fail(TUTTI_E_NETWORK, "cannot resolve host '%s': nobody in this world has that name",
                    host);
}

static int mem_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    tt_mem_world *w = host_of(port)->world;
    mem_thread   *t = tt_mem_self(w);

    t->kind = WAIT_POLL;
    t->deadline_ns = deadline_ns;
    t->set = set;
    t->n_set = n;
    tt_mem_wait_turn(w);
    return tt_mem_look(w, set, n);
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

static const tti_port_ops mem_ops = {
    .name = "memory",
    .now_ns = mem_now,
    .sleep_until = mem_sleep_until,
    .random = mem_random,
    .yield = mem_yield,
    .wait_word = mem_wait_word,
    .wake_word = mem_wake_word,
    .resolve = mem_resolve,
    .connect = tt_mem_connect,
    .connect_result = tt_mem_connect_result,
    .listen = tt_mem_listen,
    .accept = tt_mem_accept,
    .local_addr = tt_mem_local_addr,
    .send = tt_mem_send,
    .recv = tt_mem_recv,
    .poll = mem_poll,
    .close = tt_mem_close,
    .send_fds = mem_send_fds,
    .recv_fds = mem_recv_fds,
    .peer_cred = mem_peer_cred,
    .bell_create = tt_mem_bell_create,
    .bell_ring = tt_mem_bell_ring,
    .bell_clear = tt_mem_bell_clear,
};

tti_port *tt_mem_host(tt_mem_world *world, const char *name)
{
    mem_host *host = tt_mem_find_host(world, name);

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
