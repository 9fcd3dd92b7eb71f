/* SPDX-License-Identifier: BSD-3-Clause
 *
 * beacon.c - which port a store has got, told through an abstract socket named after the job.
 *
 * Why     mpirun and srun on one host give no port. A fixed one would collide with the next job, one
 *         computed from the job's name may be in use. So the kernel chooses, and this tells.
 * How     Rank 0 listens on the abstract socket "tutti-job-<user>-<hash of name>"; a thread answers every
 *         connection with a magic number and the port. The others connect until they are answered.
 * True    The name is the kernel's, scoped by network namespace: it ends with the process, also after
 *         kill -9, and nobody can have it twice. Both sides check that the other is the same user.
 * Races   The thread only reads what open() wrote before it was started; close() rings the bell, which
 *         it polls, and joins it before anything is freed. */
#include "rendezvous/beacon.h"

#include "base/thread.h"
#include "rendezvous/scheduler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>

#define FIRST_PAUSE_NS   (2 * TTI_MS)
#define LONGEST_PAUSE_NS (100 * TTI_MS)
#define ANSWER_NS        (5 * TTI_SECOND)

enum { BACKLOG = 1024 };

/** Crosses processes of one host. */
typedef struct answer {
    uint32_t magic;
    uint16_t version;
    uint16_t tcp_port;
} answer;

_Static_assert(sizeof(answer) == 8, "the answer crosses processes");

#define ANSWER_MAGIC UINT32_C(0x6e636162) /* "bacn" */

struct tti_beacon {
    tti_port  *port;
    tti_handle listener;
    tti_handle bell; /* rung: end */
    tti_thread thread;
    answer     answer;
};

static void name_of(const char *name, tti_addr *addr_out)
{
    memset(addr_out, 0, sizeof *addr_out);
    addr_out->family = TTI_ADDR_LOCAL;
    snprintf(addr_out->name, sizeof addr_out->name, "tutti-job-%lu-%016llx", (unsigned long)geteuid(),
             (unsigned long long)tti_job_hash(name));
}

static bool is_ours(tti_port *port, tti_handle stream)
{
    tti_peer_cred cred;

    return port->ops->peer_cred(port, stream, &cred) == 0 && cred.uid == (int64_t)geteuid();
}

/* Eight bytes always fit into a new socket. Whoever does not get them asks again. */
static void answer_all(tti_beacon *beacon)
{
    tti_port      *port = beacon->port;
    const tti_part part = { .data = &beacon->answer, .size = sizeof beacon->answer };
    tti_handle     stream;

    while ((stream = port->ops->accept(port, beacon->listener, NULL)) >= 0) {
        if (is_ours(port, stream))
            port->ops->send(port, stream, &part, 1);
        port->ops->close(port, stream);
    }
    if (stream != -EAGAIN) /* out of descriptors, say: let others give some back */
        port->ops->sleep_until(port, tti_port_now(port) + LONGEST_PAUSE_NS);
}

static void beacon_main(void *arg)
{
    tti_beacon *beacon = arg;
    tti_poll    polls[2] = { { .handle = beacon->listener, .want = TTI_READ },
                             { .handle = beacon->bell, .want = TTI_READ } };

    while (polls[1].got == 0) {
        beacon->port->ops->poll(beacon->port, polls, 2, TTI_FOREVER);
        if (polls[0].got != 0)
            answer_all(beacon);
    }
}

static tutti_status start(tti_beacon *beacon, const char *name)
{
    tti_port *port = beacon->port;
    tti_addr  at, bound;
    int       err;

    name_of(name, &at);
    err = port->ops->listen(port, &at, BACKLOG, &bound, &beacon->listener);
    if (err == -EADDRINUSE)
        return tti_fail(TUTTI_E_NETWORK,
                        "another rank 0 of job '%s' is on this host already\n"
                        "  next: set MASTER_ADDR and MASTER_PORT, to a port of each job's own",
                        name);
    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_NETWORK, -err, "cannot tell the port of job '%s' on this host", name);
    err = port->ops->bell_create(port, &beacon->bell);
    if (err != 0)
        return tti_fail_errno(-err, "cannot create a bell");
    return tti_thread_start(&beacon->thread, "tutti-beacon", beacon_main, beacon);
}

tutti_status tti_beacon_open(tti_port *port, const char *name, uint16_t tcp_port, tti_beacon **beacon_out)
{
    tti_beacon  *beacon = calloc(1, sizeof *beacon);
    tutti_status st;

    if (beacon == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to tell the port of a store");
    *beacon = (tti_beacon){ .port = port, .listener = TTI_NO_HANDLE, .bell = TTI_NO_HANDLE,
                            .answer = { .magic = ANSWER_MAGIC, .version = 1, .tcp_port = tcp_port } };
    st = start(beacon, name);
    if (st == TUTTI_OK)
        *beacon_out = beacon;
    else
        tti_beacon_close(beacon);
    return st;
}

void tti_beacon_close(tti_beacon *beacon)
{
    if (beacon == NULL)
        return;
    if (beacon->thread.running)
        beacon->port->ops->bell_ring(beacon->port, beacon->bell);
    tti_thread_join(&beacon->thread);
    beacon->port->ops->close(beacon->port, beacon->listener);
    beacon->port->ops->close(beacon->port, beacon->bell);
    free(beacon);
}

/* ---- asking ---- */

/* One question. TUTTI_E_NETWORK: worth another. */
static tutti_status ask_once(tti_port *port, const tti_addr *at, int64_t deadline_ns, uint16_t *tcp_port_out)
{
    const int64_t now = tti_port_now(port);
    const int64_t until = deadline_ns - now < ANSWER_NS ? deadline_ns : now + ANSWER_NS;
    tti_handle    stream = TTI_NO_HANDLE;
    answer        got;
    tutti_status  st;
    int           err = port->ops->connect(port, at, &stream);

    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_NETWORK, -err, "nobody tells");
    if (!is_ours(port, stream))
        st = tti_fail(TUTTI_E_AUTH, "the abstract socket '%s' of this job belongs to another user", at->name);
    else
        st = tti_io_recv_all(port, stream, &got, sizeof got, "rank 0 of this host", until);
    port->ops->close(port, stream);
    if (st == TUTTI_E_TIMEOUT)
        return TUTTI_E_NETWORK;
    if (st != TUTTI_OK)
        return st;
    if (got.magic != ANSWER_MAGIC || got.version != 1)
        return tti_fail(TUTTI_E_MISMATCH, "rank 0 of this host runs another version of tutti");
    *tcp_port_out = got.tcp_port;
    return TUTTI_OK;
}

tutti_status tti_beacon_ask(tti_port *port, const char *name, int64_t deadline_ns, uint16_t *tcp_port_out)
{
    const int64_t start_ns = tti_port_now(port);
    int64_t       pause_ns = FIRST_PAUSE_NS;
    tti_addr      at;
    tutti_status  st;

    name_of(name, &at);
    while ((st = ask_once(port, &at, deadline_ns, tcp_port_out)) == TUTTI_E_NETWORK) {
        const int64_t now = tti_port_now(port);

        if (now >= deadline_ns)
            return tti_fail(TUTTI_E_NETWORK,
                            "rank 0 of job '%s' did not come to this host within %lld ms\n"
                            "  next: if it is on another host, or in another container, set MASTER_ADDR and "
                            "MASTER_PORT",
                            name, (long long)((now - start_ns) / TTI_MS));
        port->ops->sleep_until(port, deadline_ns - now < pause_ns ? deadline_ns : now + pause_ns);
        pause_ns = pause_ns * 2 < LONGEST_PAUSE_NS ? pause_ns * 2 : LONGEST_PAUSE_NS;
    }
    return st;
}
