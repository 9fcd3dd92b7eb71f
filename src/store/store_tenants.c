/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_tenants.c - the list of servers that are shared; the design stands in store_tenants.h.
 *
 * State   `list` is per process, and must be: a TCP port is, and whoever shares knows nothing of the
 *         other but the port.
 * True    `lock` guards the list and the fields of its entries; `changed` is signalled after each
 *         entry has become ready or has left. An entry that is BUSY (its server starts or stops)
 *         belongs to the one thread that made it so. After fork() the child has entries without
 *         threads: it does not see those of another process. */
#include "store/store_tenants.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/fork.h"
#include "base/thread.h"

typedef enum tenancy_state { BUSY, READY } tenancy_state;

struct tti_tenancy {
    tti_tenancy        *next;
    tenancy_state       state;
    pid_t               pid;
    int                 users;
    tti_listen          at; /* where it listens, or is going to */
    tti_secret          secret;
    tutti_store_server *server;
};

static tti_mutex    lock = { .m = PTHREAD_MUTEX_INITIALIZER };
static tti_event    changed;
static tti_tenancy *list;

static void before_fork(void)
{
    tti_lock(&lock);
}

static void after_fork(bool in_child)
{
    (void)in_child; /* entries say whose they are */
    tti_unlock(&lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

static tti_tenancy *find_locked(const tti_listen *at)
{
    const pid_t  pid = getpid();
    tti_tenancy *t;

    for (t = list; t != NULL; t = t->next)
        if (t->pid == pid && tti_listen_clash(&t->at, at))
            return t;
    return NULL;
}

static void unlink_locked(const tti_tenancy *tenancy)
{
    tti_tenancy **at = &list;

    while (*at != tenancy)
        at = &(*at)->next;
    *at = tenancy->next;
}

static bool same_secret(const tti_secret *a, const tti_secret *b)
{
    return a->present == b->present && a->seal == b->seal &&
           (!a->present || memcmp(a->padded, b->padded, sizeof a->padded) == 0);
}

static tutti_status share_locked(tti_tenancy *tenancy, const tti_secret *secret)
{
    if (!same_secret(&tenancy->secret, secret))
        return tti_fail(TUTTI_E_AUTH,
                        "this process serves a store at port %d already, with another secret",
                        tti_tenancy_port(tenancy));
    tenancy->users++;
    return TUTTI_OK;
}

/* Out of the list, or, when the server runs, ready for others. */
static void settle(tti_tenancy *tenancy, tutti_store_server *server)
{
    tti_lock(&lock);
    if (server != NULL) {
        tenancy->server = server;
        tenancy->at = *tti_store_server_at(server);
        tenancy->state = READY;
    } else {
        unlink_locked(tenancy);
    }
    tti_unlock(&lock);
    tti_event_signal(tti_port_system(), &changed);
}

static void drop(tti_tenancy *tenancy)
{
    tti_secret_release(&tenancy->secret);
    free(tenancy);
}

/* The entry is in the list, BUSY and ours: start its server. */
static tutti_status start_server(tti_tenancy *tenancy, const tutti_store_server_options *options,
                                 const tti_listen *at)
{
    tutti_store_server *server = NULL;
    tutti_status        st;

    st = tti_store_server_start_at(options, at, &tenancy->secret, NULL, &server);
    settle(tenancy, server);
    if (st != TUTTI_OK)
        drop(tenancy);
    return st;
}

/* Wait until nobody is busy at `at`, then share what is there, or put fresh into the list. */
static tutti_status take_place(const tti_listen *at, const tti_secret *secret, tti_tenancy *fresh,
                               int64_t deadline_ns, tti_tenancy **tenancy_out)
{
    tti_port    *port = tti_port_system();
    tutti_status st = TUTTI_OK;

    tti_fork_guard(&fork_part);
    tti_lock(&lock);
    for (;;) {
        const uint32_t seen = tti_event_now(&changed);
        tti_tenancy   *found = find_locked(at);

        if (found == NULL) {
            fresh->next = list;
            list = fresh;
            *tenancy_out = fresh;
            break;
        }
        if (found->state == READY) {
            st = share_locked(found, secret);
            if (st == TUTTI_OK)
                *tenancy_out = found;
            break;
        }
        tti_unlock(&lock);
        if (tti_port_now(port) >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT,
                            "the server of this process at port %u is still starting or stopping",
                            at->at[0].port);
        tti_event_wait(port, &changed, seen, deadline_ns);
        tti_lock(&lock);
    }
    tti_unlock(&lock);
    return st;
}

tutti_status tti_tenancy_join(const tutti_store_server_options *options, const tti_secret *secret,
                              int64_t deadline_ns, tti_tenancy **tenancy_out)
{
    tti_tenancy *fresh, *tenancy = NULL;
    tti_listen   at;
    tutti_status st = tti_listen_find(options, &at);

    if (st != TUTTI_OK)
        return st;
    fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a store server");
    *fresh = (tti_tenancy){ .state = BUSY, .pid = getpid(), .users = 1, .at = at };
    fresh->secret = *secret;
    st = take_place(&at, secret, fresh, deadline_ns, &tenancy);
    if (tenancy != fresh)
        drop(fresh);
    else
        st = start_server(fresh, options, &at);
    if (st == TUTTI_OK)
        *tenancy_out = tenancy;
    return st;
}

tutti_store_server *tti_tenancy_server(const tti_tenancy *tenancy)
{
    return tenancy->server; /* constant once somebody has it */
}

void tti_tenancy_leave(tti_tenancy *tenancy, int64_t most_ms)
{
    bool last;

    if (tenancy == NULL)
        return;
    tti_lock(&lock);
    last = --tenancy->users == 0;
    if (last)
        tenancy->state = BUSY;
    tti_unlock(&lock);
    if (!last)
        return;
    tti_store_server_stop_in_time(tenancy->server, most_ms);
    settle(tenancy, NULL);
    drop(tenancy);
}

int tti_tenancy_port(const tti_tenancy *tenancy)
{
    return tenancy->at.at[0].port; /* constant once somebody has it */
}
