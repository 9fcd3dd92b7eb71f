/* SPDX-License-Identifier: BSD-3-Clause
 *
 * carrier.c - an instance of a transport, and who drives it.
 *
 * Why     A kernel moves the bytes of its sockets by itself. A transport moves only while somebody calls it: also what this
 *         rank has sent before it computes for an hour, and what others send it meanwhile.
 * How     Whoever uses a link moves the transport, on his own thread and with no other between: so the fast way has no
 *         hop. A thread of the carrier's looks after it when nobody does. It sleeps on the transport's handle, the
 *         connections and a bell. While others use links (uses changes) it leaves the transport alone and looks again after
 *         LOOK_MS: also at what somebody leaves behind that the transport still reads (n_flying), who rings for that. Who goes to
 *         sleep says so (wanted): then the thread looks after it at once. What comes rings the bell of a link that somebody
 *         sleeps on.
 * True    armed says that the thread is on its way into poll, or in it, with the handle in its set and the transport armed:
 *         set and cleared under the lock. Who sees it not set, and needs the thread, rings. A handle that was armed stays
 *         readable after the first thing that happens; should a transport break that, SLICE_MS bounds what it costs.
 *         A parcel belongs to the link whose token it has; the rank in it only says which link to look at.
 * Part    A link that is closed stays in the list until the peer has all that was sent, or it is known that
 *         it never will. The thread alone frees links, and polls what they own.
 * Fails   An instance that cannot be opened is the messenger's failure; what goes wrong later is a link's. */
#include "transport/carried/carried.h"
#include "base/foreign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "wire/bytes.h"

enum { LOOK_MS = 1, SLICE_MS = 50, NAP_US = 100, MOVES_MOST = 256, PART_MS = 2000, WARN_MS = 10000 };

/* ---- what the transport tells, from within its entries: lock held ---- */

/* Of all 16 bytes, in a time that does not tell how many are right. Where no token was drawn yet none is right. */
static bool is_token(const uint8_t told[TTI_CARRIED_TOKEN], const uint8_t drawn[TTI_CARRIED_TOKEN])
{
    uint8_t differ = 0, any = 0;
    int     i;

    for (i = 0; i < TTI_CARRIED_TOKEN; i++) {
        differ |= (uint8_t)(told[i] ^ drawn[i]);
        any |= drawn[i];
    }
    return differ == 0 && any != 0;
}

static bool stranger(tti_carrier *c)
{
    const int64_t now_ns = tti_port_now(c->port);

    c->n_strange++;
    if (now_ns < c->warn_ns)
        return false;
    c->warn_ns = now_ns + WARN_MS * TTI_MS;
    tti_log(TTI_LOG_WARN, "what came by '%s' has no token of this job, and was dropped; so were %u parcels in all", c->ops->name,
            c->n_strange);
    return false;
}

static bool arrived(void *context, const void *parcel, size_t bytes, void *loan)
{
    tti_carrier   *c = context;
    const uint8_t *at = parcel;
    uint32_t       from;

    if (bytes < TTI_PARCEL_HEAD || bytes > TTI_PARCEL_BYTES)
        return stranger(c);
    from = tti_get_u32(at + TTI_CARRIED_TOKEN);
    if (from >= (uint32_t)c->n_ranks || !is_token(at, c->tokens[from]))
        return stranger(c);
    if (c->by_rank[from] == NULL) /* a peer that has not heard yet that the link is closed */
        return false;
    return tti_carried_take(c->by_rank[from], at, bytes, loan);
}

static void sent(void *context, void *cookie)
{
    ((tti_carrier *)context)->n_flying--;
    free(cookie);
}

static void broken(void *context, void *peer, int err, const char *words)
{
    tti_carried *link = peer;

    (void)context;
    if (link->err == 0)
        link->may_be_dead = true;
    tti_carried_break(link, err > 0 ? err : EIO, words);
}

void tti_carrier_move(tti_carrier *c)
{
    (void)c->ops->progress(c->transport);
}

void tti_carrier_call(tti_carrier *c)
{
    if (c->called)
        return;
    c->called = true;
    c->port->ops->bell_ring(c->port, c->bell);
}

/* ---- links ---- */

void tti_carrier_free_link(tti_carrier *c, tti_carried *link)
{
    tti_carried **at = &c->links;

    while (*at != link)
        at = &(*at)->next_link;
    *at = link->next_link;
    c->n_links--;
    c->by_rank[link->peer] = NULL;
    if (link->way != NULL)
        c->ops->disconnect(link->way);
    tti_carried_drop_arrivals(link);
    c->port->ops->close(c->port, link->stream);
    c->port->ops->close(c->port, link->bell);
    free(link->card);
    free(link->address);
    free(link);
}

/* Whether there is nothing to wait for any more. */
static bool has_parted(const tti_carrier *c, const tti_carried *link, int64_t now_ns)
{
    if (link->state != TTI_CARRIED_PARTS)
        return false;
    return link->n_sent == 0 || link->is_taken || link->is_cut || link->err != 0 || now_ns >= link->part_ns + PART_MS * TTI_MS ||
           (c->ending && now_ns >= c->ending_ns);
}

static void free_parted(tti_carrier *c, int64_t now_ns)
{
    tti_carried *link, *next;

    for (link = c->links; link != NULL; link = next) {
        next = link->next_link;
        if (has_parted(c, link, now_ns))
            tti_carrier_free_link(c, link);
    }
}

tutti_status tti_carrier_link(tti_carrier *c, int peer, tti_handle stream, tti_link **link_out)
{
    tti_carried *link = calloc(1, sizeof *link);
    tutti_status st = TUTTI_OK;
    int          err;

    if (link == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the link to rank %d", peer);
    link->base.ops = &c->link_ops;
    link->carrier = c;
    link->peer = peer;
    link->stream = stream;
    err = c->port->ops->bell_create(c->port, &link->bell);
    if (err != 0) {
        free(link);
        return tti_fail_errno(-err, "cannot create a bell");
    }
    tti_lock(&c->lock);
    st = tti_pact_begin(link);
    if (st == TUTTI_OK) {
        link->next_link = c->links;
        c->links = link;
        c->n_links++;
        c->by_rank[peer] = link;
        memcpy(c->tokens[peer], link->token_in, TTI_CARRIED_TOKEN);
        tti_carrier_call(c);
    }
    tti_unlock(&c->lock);
    if (st != TUTTI_OK) {
        c->port->ops->close(c->port, link->bell);
        free(link);
        return st;
    }
    *link_out = &link->base;
    return TUTTI_OK;
}

/* ---- the thread ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When a link is to be looked at, whatever happens. */
static int64_t next_look(const tti_carrier *c, const tti_carried *link, int64_t now_ns)
{
    int64_t at_ns = TTI_FOREVER;

    if (link->state == TTI_CARRIED_PARTS)
        at_ns = sooner(link->part_ns + PART_MS * TTI_MS, c->ending ? c->ending_ns : TTI_FOREVER);
    else if (link->is_cut && link->cut_ns + TTI_CARRIED_GRACE_MS * TTI_MS > now_ns)
        at_ns = link->cut_ns + TTI_CARRIED_GRACE_MS * TTI_MS;
    else if (link->may_be_dead && link->err_ns + TTI_CARRIED_GRACE_MS * TTI_MS > now_ns)
        at_ns = link->err_ns + TTI_CARRIED_GRACE_MS * TTI_MS;
    return at_ns;
}

/* Bell, streams: how many, and until when at most. */
static int fill(tti_carrier *c, int64_t now_ns, int64_t *until_ns)
{
    tti_carried *link;
    int          n = 1;

    c->set[0] = (tti_poll){ .handle = c->bell, .want = TTI_READ };
    for (link = c->links; link != NULL; link = link->next_link) {
        const uint8_t want = tti_pact_wants(link);

        link->polled = want != 0 ? n : -1;
        if (want != 0)
            c->set[n++] = (tti_poll){ .handle = link->stream, .want = want };
        *until_ns = sooner(*until_ns, next_look(c, link, now_ns));
    }
    return n;
}

/* Whether to sleep on the transport's handle; else until when to nap. */
static bool settle(tti_carrier *c, int64_t now_ns, int64_t *until_ns)
{
    int i;

    for (i = 0; i < MOVES_MOST && c->ops->progress(c->transport); i++)
        continue;
    if (c->ops->handle == NULL || c->ops->handle(c->transport) < 0) {
        *until_ns = now_ns + LOOK_MS * TTI_MS;
        return false;
    }
    *until_ns = now_ns + SLICE_MS * TTI_MS;
    if (c->ops->arm(c->transport))
        return true;
    *until_ns = now_ns + NAP_US * 1000;
    return false;
}

static void tell_all(tti_carrier *c)
{
    tti_carried *link;

    for (link = c->links; link != NULL; link = link->next_link) {
        tti_carried_tell_taken(link);
        tti_carried_tell(link);
    }
}

/* Sleep, and turn over what has told something. Lock held; not meanwhile. */
static void sleep_and_turn(tti_carrier *c, bool others, int64_t now_ns)
{
    int64_t      until_ns = now_ns + LOOK_MS * TTI_MS;
    const bool   armed = (!others || c->n_links == 0) && settle(c, now_ns, &until_ns);
    tti_carried *link;
    int          n;

    if (armed && c->n_links == 0) /* nobody sends, and who connects rings */
        until_ns = TTI_FOREVER;
    n = fill(c, now_ns, &until_ns);
    if (armed)
        c->set[n] = (tti_poll){ .handle = c->ops->handle(c->transport), .want = TTI_READ };
    c->armed = armed;
    if (c->called) /* since the thread last woke up */
        until_ns = now_ns;
    tti_unlock(&c->lock);
    c->port->ops->poll(c->port, c->set, n + armed, until_ns);
    tti_lock(&c->lock);
    c->armed = false;
    c->called = false;
    if (c->set[0].got != 0)
        c->port->ops->bell_clear(c->port, c->bell);
    for (link = c->links; link != NULL; link = link->next_link)
        if (link->polled > 0 && link->polled < n && c->set[link->polled].handle == link->stream && c->set[link->polled].got != 0)
            tti_pact_turn(link);
    tell_all(c);
}

static void thread_main(void *arg)
{
    tti_carrier *c = arg;
    uint32_t     seen = 0;

    tti_lock(&c->lock);
    for (;;) {
        const int64_t now_ns = tti_port_now(c->port);
        const bool    others = c->uses != seen && !c->wanted;

        seen = c->uses;
        c->wanted = false;
        free_parted(c, now_ns);
        if (c->ending && c->links == NULL)
            break;
        sleep_and_turn(c, others, now_ns);
    }
    tti_unlock(&c->lock);
}

/* ---- life ---- */

tutti_transport_hooks tti_carrier_hooks(tti_carrier *c)
{
    return (tutti_transport_hooks){ .size = sizeof(tutti_transport_hooks), .context = c, .arrived = arrived, .sent = sent,
                                    .broken = broken };
}

static tutti_status open_transport(tti_carrier *c)
{
    const tutti_transport_config config = { .size = sizeof config, .rank = c->rank, .n_ranks = c->n_ranks,
                                            .parcel_bytes = TTI_PARCEL_BYTES, .hooks = &c->hooks };
    tutti_transport *made = NULL;
    const uint32_t   said = tti_words_said();
    tutti_status     st = tti_foreign_status("transport", c->ops->name, "open", c->ops->open(&config, &made), said);

    if (st == TUTTI_OK && made == NULL)
        st = tti_foreign_broken("transport", c->ops->name, "open", "gives no instance");
    if (st == TUTTI_OK)
        c->transport = made;
    return st;
}

static void free_carrier(tti_carrier *c)
{
    if (c->transport != NULL)
        c->ops->close(c->transport);
    c->port->ops->close(c->port, c->bell);
    tti_mutex_release(&c->lock);
    free(c->by_rank);
    free(c->tokens);
    free(c->set);
    free(c);
}

static tutti_status start(tti_carrier *c)
{
    const int err = c->port->ops->bell_create(c->port, &c->bell);

    if (err != 0)
        return tti_fail_errno(-err, "cannot create a bell");
    c->by_rank = calloc((size_t)c->n_ranks, sizeof *c->by_rank);
    c->tokens = calloc((size_t)c->n_ranks, sizeof *c->tokens);
    c->set = calloc((size_t)c->n_ranks + 2, sizeof *c->set);
    if (c->by_rank == NULL || c->tokens == NULL || c->set == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the ways to %d ranks", c->n_ranks);
    return open_transport(c);
}

tutti_status tti_carrier_open(tti_port *port, const tutti_transport_ops *ops, int rank, int n_ranks,
                              tti_carrier **carrier_out)
{
    tti_carrier *c = calloc(1, sizeof *c);
    tutti_status st;

    if (c == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the transport '%s'", ops->name);
    *c = (tti_carrier){ .port = port, .ops = ops, .link_ops = tti_carried_ops, .rank = rank, .n_ranks = n_ranks,
                        .bell = TTI_NO_HANDLE };
    c->link_ops.name = ops->name;
    c->hooks = tti_carrier_hooks(c);
    tti_mutex_init(&c->lock);
    st = start(c);
    if (st == TUTTI_OK)
        st = tti_thread_start(&c->thread, "tutti-carrier", thread_main, c);
    if (st != TUTTI_OK) {
        free_carrier(c);
        return st;
    }
    *carrier_out = c;
    return TUTTI_OK;
}

void tti_carrier_close(tti_carrier *c, int64_t wait_ms)
{
    if (c == NULL)
        return;
    tti_lock(&c->lock);
    c->ending = true;
    c->ending_ns = tti_port_now(c->port) + wait_ms * TTI_MS;
    tti_carrier_call(c);
    tti_unlock(&c->lock);
    tti_thread_join(&c->thread);
    free_carrier(c);
}
