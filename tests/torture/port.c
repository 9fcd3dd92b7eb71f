/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port.c - the system port with a point before each call that leaves the process. Clocks, randomness and yielding
 * are not points: they neither show anything to others nor fail. */
#include "torture/points.h"

#include <errno.h>
#include <pthread.h>

_Atomic(tt_point_fn) tt_at_point;

tti_port *__real_tti_port_system(void);
tti_port *__wrap_tti_port_system(void);

static const tti_port_ops *ops; /* the machine's; they look at no port */
static tti_port           *real;

const char *tt_point_name(tt_point at)
{
    static const char *const names[TT_POINTS] = { "resolve", "listen", "connect", "connected", "accept",
                                                  "send",    "recv",   "send_fds", "recv_fds", "ask",
                                                  "bell",    "poll",   "wait",     "wake",     "store" };

    return names[at];
}

static tutti_status point_resolve(tti_port *port, const char *host, uint16_t tcp_port, tti_addr *out, int max,
                                  int *n_out)
{
    (void)port;
    tt_pass(TT_AT_RESOLVE, TTI_NO_HANDLE);
    return ops->resolve(real, host, tcp_port, out, max, n_out);
}

static int point_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out)
{
    const int err = tt_pass(TT_AT_CONNECT, TTI_NO_HANDLE);

    (void)port;
    return err > 0 ? -err : ops->connect(real, to, handle_out);
}

static int point_connect_result(tti_port *port, tti_handle handle)
{
    const int err = tt_pass(TT_AT_CONNECT_RESULT, handle);

    (void)port;
    return err > 0 ? -err : ops->connect_result(real, handle);
}

static int point_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out, tti_handle *handle_out)
{
    const int err = tt_pass(TT_AT_LISTEN, TTI_NO_HANDLE);

    (void)port;
    return err > 0 ? -err : ops->listen(real, at, backlog, bound_out, handle_out);
}

static int point_accept(tti_port *port, tti_handle listener, tti_addr *from_out)
{
    const int err = tt_pass(TT_AT_ACCEPT, listener);

    (void)port;
    return err > 0 ? -err : ops->accept(real, listener, from_out);
}

static int point_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out)
{
    const int err = tt_pass(TT_AT_ASK, handle);

    (void)port;
    return err > 0 ? -err : ops->local_addr(real, handle, addr_out);
}

static int point_route(tti_port *port, const tti_addr *to, tti_addr *local_out)
{
    const int err = tt_pass(TT_AT_ASK, TTI_NO_HANDLE);

    (void)port;
    return err > 0 ? -err : ops->route(real, to, local_out);
}

static int point_interfaces(tti_port *port, tti_interface *out, int max)
{
    const int err = tt_pass(TT_AT_ASK, TTI_NO_HANDLE);

    (void)port;
    return err > 0 ? -err : ops->interfaces(real, out, max);
}

static int64_t send_one_byte(tti_handle handle, const tti_part *parts, int n_parts)
{
    int i;

    for (i = 0; i < n_parts; i++)
        if (parts[i].size > 0)
            return ops->send(real, handle, &(tti_part){ parts[i].data, 1 }, 1);
    return ops->send(real, handle, parts, n_parts);
}

static int64_t point_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    const int err = tt_pass(TT_AT_SEND, handle);

    (void)port;
    if (err == TT_SHORT)
        return send_one_byte(handle, parts, n_parts);
    return err > 0 ? -err : ops->send(real, handle, parts, n_parts);
}

static int64_t point_recv(tti_port *port, tti_handle handle, void *out, size_t bytes)
{
    const int err = tt_pass(TT_AT_RECV, handle);

    (void)port;
    return err > 0 ? -err : ops->recv(real, handle, out, err == TT_SHORT && bytes > 0 ? 1 : bytes);
}

/* One that fails looks like one whose deadline has come early, which is what the system's does for want of memory. */
static int point_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    const int err = tt_pass(TT_AT_POLL, TTI_NO_HANDLE);
    int       i;

    (void)port;
    if (err == 0)
        return ops->poll(real, set, n, deadline_ns);
    for (i = 0; i < n; i++)
        set[i].got = 0;
    return 0;
}

static int point_send_fds(tti_port *port, tti_handle handle, const void *data, size_t bytes, const int *fds, int n_fds)
{
    const int err = tt_pass(TT_AT_SEND_FDS, handle);

    (void)port;
    return err > 0 ? -err : ops->send_fds(real, handle, data, bytes, fds, n_fds);
}

static int64_t point_recv_fds(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds_out,
                              int n_fds_max, int *n_fds_out)
{
    const int err = tt_pass(TT_AT_RECV_FDS, handle);

    (void)port;
    return err > 0 ? -err : ops->recv_fds(real, handle, out, bytes, fds_out, n_fds_max, n_fds_out);
}

static int point_peer_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    const int err = tt_pass(TT_AT_ASK, handle);

    (void)port;
    return err > 0 ? -err : ops->peer_cred(real, handle, cred_out);
}

static int point_bell_create(tti_port *port, tti_handle *bell_out)
{
    const int err = tt_pass(TT_AT_BELL, TTI_NO_HANDLE);

    (void)port;
    return err > 0 ? -err : ops->bell_create(real, bell_out);
}

static int point_life_create(tti_port *port, tti_handle *life_out)
{
    const int err = tt_pass(TT_AT_BELL, TTI_NO_HANDLE);

    (void)port;
    return err > 0 ? -err : ops->life_create(real, life_out);
}

static void point_bell_ring(tti_port *port, tti_handle bell)
{
    (void)port;
    tt_pass(TT_AT_BELL, bell);
    ops->bell_ring(real, bell);
}

static void point_wait_word(tti_port *port, const _Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    (void)port;
    if (tt_pass(TT_AT_WAIT, TTI_NO_HANDLE) == 0) /* else it has returned early, for no reason */
        ops->wait_word(real, word, seen, deadline_ns);
}

static void point_wake_word(tti_port *port, const _Atomic uint32_t *word)
{
    (void)port;
    tt_pass(TT_AT_WAKE, TTI_NO_HANDLE);
    ops->wake_word(real, word);
}

static tti_port_ops   point_ops;
static tti_port       point_port = { .ops = &point_ops };
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What is not here is the machine's: it looks at no port. */
static void make_port(void)
{
    real = __real_tti_port_system();
    ops = real->ops;
    point_ops = *ops;
    point_ops.resolve = point_resolve;
    point_ops.connect = point_connect;
    point_ops.connect_result = point_connect_result;
    point_ops.listen = point_listen;
    point_ops.accept = point_accept;
    point_ops.local_addr = point_local_addr;
    point_ops.route = point_route;
    point_ops.interfaces = point_interfaces;
    point_ops.send = point_send;
    point_ops.recv = point_recv;
    point_ops.poll = point_poll;
    point_ops.send_fds = point_send_fds;
    point_ops.recv_fds = point_recv_fds;
    point_ops.peer_cred = point_peer_cred;
    point_ops.bell_create = point_bell_create;
    point_ops.life_create = point_life_create;
    point_ops.bell_ring = point_bell_ring;
    point_ops.wait_word = point_wait_word;
    point_ops.wake_word = point_wake_word;
}

tti_port *__wrap_tti_port_system(void)
{
    pthread_once(&once, make_port);
    return &point_port;
}
