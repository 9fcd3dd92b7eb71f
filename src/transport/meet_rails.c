/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_rails.c - the interfaces that the connections of two members are dealt to.
 *
 * Why     Hosts with several links carry more by all of them than by one (wire/rails.h). A way is a stream that is dealt to
 *         its connections in pieces (tcp/tcp_link.c), so it is enough that connection k is on rail k % n at both ends: then
 *         even one message goes over all of them, and the order of messages is what it was.
 * How     A member that has rails listens on each, and leaves on the board, before its card, where. Its card says how many:
 *         who has read all cards knows whether all have as many, and reads the rest if so. A world without rails leaves
 *         and reads nothing.
 * True    What is found here is constant once the mesh is open. Names may differ from host to host, what counts is the order.
 * Fails   Members that have not as many say so with both lists, each on its own: all have read all cards, and so does every
 *         pair that differs. */
#include "transport/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/env.h"
#include "transport/tcp/tcp_link.h"
#include "wire/ports.h"

#define RAILS_MAGIC UINT32_C(0x6c696172) /* "rail" */
#define RAILS       "rails"

enum { RAILS_VERSION = 1, BACKLOG = 512 };

_Static_assert((int)TTI_RAILS_MAX <= (int)TTI_TCP_STRIPES_MAX, "each rail has a connection at least");

/* What a member leaves. Crosses processes and hosts: fixed size, little endian, versioned. */
typedef struct rails_card {
    uint32_t magic;
    uint16_t version;
    uint16_t size;
    int32_t  rank;
    int32_t  n;
    struct {
        char     name[TTI_INTERFACE_NAME_MAX];
        uint8_t  ip[16];
        uint32_t scope;
        uint16_t tcp_port;
        uint8_t  family; /* 4 or 6 */
        uint8_t  unused;
    } rail[TTI_RAILS_MAX];
} rails_card;

_Static_assert(sizeof(rails_card) == 16 + TTI_RAILS_MAX * (TTI_INTERFACE_NAME_MAX + 24), "it crosses processes and hosts");

tutti_status tti_stripes_wanted(const tti_rails *rails, int *stripes_out)
{
    const int    n = rails->n > 0 ? rails->n : 1;
    char         text[TTI_RAILS_TEXT_MAX];
    int64_t      stripes = 1;
    tutti_status st = tti_env_int("TUTTI_TCP_STRIPES", 1, TTI_TCP_STRIPES_MAX, &stripes);

    if (st == TUTTI_OK && stripes * n > TTI_TCP_STRIPES_MAX)
        return tti_fail(TUTTI_E_ARG,
                        "TUTTI_TCP_STRIPES is %d on each of %d interfaces (%s): that are %d connections between two ranks, and "
                        "there may be %d\n  next: set it to %d at most, or name fewer interfaces",
                        (int)stripes, n, tti_rails_text(rails, text), (int)stripes * n, TTI_TCP_STRIPES_MAX, TTI_TCP_STRIPES_MAX / n);
    if (st == TUTTI_OK)
        *stripes_out = (int)stripes;
    return st;
}

tutti_status tti_rails_find(tti_mesh *mesh, const tti_addr *at, int *stripes_out)
{
    tti_door    *door = &mesh->door;
    tutti_status st = TUTTI_OK;

    *stripes_out = 1;
    if (door->transport == NULL) /* what would be divided goes by TCP */
        st = tti_rails_wanted(mesh->port, at->family, &door->rails);
    if (st == TUTTI_OK && door->transport == NULL)
        st = tti_stripes_wanted(&door->rails, stripes_out);
    if (door->rails.n > 0)
        door->rails.rail[0].addr = *at;
    door->n_stripes = *stripes_out * (door->rails.n > 0 ? door->rails.n : 1);
    return st;
}

static void write_rail(rails_card *card, int i, const tti_rail *rail, uint16_t tcp_port)
{
    memcpy(card->rail[i].name, rail->name, sizeof card->rail[i].name);
    memcpy(card->rail[i].ip, rail->addr.ip, sizeof card->rail[i].ip);
    card->rail[i].scope = rail->addr.scope;
    card->rail[i].tcp_port = tcp_port;
    card->rail[i].family = rail->addr.family == TTI_ADDR_IP4 ? 4 : 6;
}

tutti_status tti_rails_leave(tti_mesh *mesh, const tti_mesh_config *config)
{
    tti_door    *door = &mesh->door;
    rails_card   card = { .magic = RAILS_MAGIC, .version = RAILS_VERSION, .size = sizeof card, .rank = mesh->rank, .n = door->rails.n };
    tti_addr     bound = { .port = 0 };
    char         key[TTI_BOARD_KEY_BYTES];
    tutti_status st = TUTTI_OK;
    int          i;

    if (door->rails.n == 0)
        return TUTTI_OK;
    for (i = 0; st == TUTTI_OK && i < door->rails.n; i++) {
        if (i > 0)
            st = tti_listen_tcp(mesh->port, &door->rails.rail[i].addr, BACKLOG, &door->secret, &bound, &door->rail_listeners[i]);
        write_rail(&card, i, &door->rails.rail[i], bound.port); /* of the first the card has it */
    }
    tti_roll_key(&(tti_roll){ .what = RAILS }, mesh->rank, key);
    return st == TUTTI_OK ? config->board->put(config->board->context, key, &card, sizeof card, config->deadline_ns) : st;
}

void tti_rails_close(tti_mesh *mesh)
{
    int i;

    for (i = 0; i < TTI_RAILS_MAX; i++) {
        mesh->port->ops->close(mesh->port, mesh->door.rail_listeners[i]);
        mesh->door.rail_listeners[i] = TTI_NO_HANDLE;
    }
}

/* ---- those of all ---- */

static tutti_status check_rails_card(const tti_mesh *mesh, const rails_card *card, int rank)
{
    bool good = card->magic == RAILS_MAGIC && card->version == RAILS_VERSION && card->size == sizeof *card && card->rank == rank &&
                card->n == mesh->cards[rank].rails && card->n <= TTI_RAILS_MAX;
    int  i;

    for (i = 0; good && i < card->n; i++)
        good = memchr(card->rail[i].name, '\0', sizeof card->rail[i].name) != NULL &&
               (card->rail[i].family == 4 || card->rail[i].family == 6);
    return good ? TUTTI_OK : tti_fail(TUTTI_E_STORE, "what rank %d has left of its interfaces is damaged", rank);
}

/* What a rank has left, for a text. False: it cannot be read. */
static bool fetch_rails(const tti_mesh *mesh, const tti_mesh_config *config, int rank, tti_rails *rails_out)
{
    rails_card card;
    char       key[TTI_BOARD_KEY_BYTES];
    int        i;

    tti_roll_key(&(tti_roll){ .what = RAILS }, rank, key);
    if (config->board->get(config->board->context, key, &card, sizeof card, config->deadline_ns) != TUTTI_OK ||
        check_rails_card(mesh, &card, rank) != TUTTI_OK)
        return false;
    rails_out->n = card.n;
    for (i = 0; i < card.n; i++)
        memcpy(rails_out->rail[i].name, card.rail[i].name, sizeof rails_out->rail[i].name);
    return true;
}

/* "2 interfaces (eth0, ib0)". */
static const char *rails_of(const tti_mesh *mesh, const tti_mesh_config *config, int rank, char *out, size_t bytes)
{
    const int n = rank == mesh->rank ? mesh->door.rails.n : mesh->cards[rank].rails;
    tti_rails rails = mesh->door.rails;
    tti_addr  addr = tti_card_addr(&mesh->cards[rank]);
    char      text[TTI_RAILS_TEXT_MAX];

    addr.port = 0;
    if (n == 0)
        snprintf(out, bytes, "one address (%s)", tti_addr_format(&addr, text, sizeof text));
    else if (rank == mesh->rank || fetch_rails(mesh, config, rank, &rails))
        snprintf(out, bytes, "%d interfaces (%s)", n, tti_rails_text(&rails, text));
    else
        snprintf(out, bytes, "%d interfaces", n);
    return out;
}

static tutti_status check_counts(const tti_mesh *mesh, const tti_mesh_config *config)
{
    char here[TTI_RAILS_TEXT_MAX + 32], there[TTI_RAILS_TEXT_MAX + 32];
    int  rank;

    for (rank = 0; rank < mesh->n_ranks; rank++)
        if (mesh->cards[rank].rails != mesh->door.rails.n)
            return tti_fail(TUTTI_E_MISMATCH,
                            "rank %d has connections by %s, rank %d by %s: both ends of a connection count on as many\n"
                            "  next: have TUTTI_SOCKET_IFNAME, or GLOO_SOCKET_IFNAME, name as many on all hosts",
                            rank, rails_of(mesh, config, rank, there, sizeof there), mesh->rank,
                            rails_of(mesh, config, mesh->rank, here, sizeof here));
    return TUTTI_OK;
}

static tutti_status fail_family(const tti_mesh *mesh, const rails_card *card, int rank, int i)
{
    return tti_fail(TUTTI_E_MISMATCH,
                    "rank %d has an IPv%d address on its interface '%s', rank %d an IPv%d one on '%s', by which they are to be "
                    "connected\n  next: give both one of the same kind, or name interfaces that have",
                    rank, card->rail[i].family, card->rail[i].name, mesh->rank, card->rail[i].family == 4 ? 6 : 4,
                    mesh->door.rails.rail[i].name);
}

/* Where a member listens; the number of an interface of a link-local address is ours. */
static tutti_status take_rails(tti_mesh *mesh, const rails_card *card, int rank)
{
    tti_addr *addrs = &mesh->rail_addrs[(size_t)rank * (size_t)mesh->door.rails.n];
    int       i;

    for (i = 0; i < card->n; i++) {
        const tti_addr *own = &mesh->door.rails.rail[i].addr;

        addrs[i] = (tti_addr){ .family = card->rail[i].family == 4 ? TTI_ADDR_IP4 : TTI_ADDR_IP6, .port = card->rail[i].tcp_port,
                               .scope = own->scope };
        memcpy(addrs[i].ip, card->rail[i].ip, sizeof addrs[i].ip);
        if (addrs[i].family != own->family)
            return fail_family(mesh, card, rank, i);
    }
    return TUTTI_OK;
}

/* What tti_roll_read() calls. */
typedef struct reader {
    tti_mesh   *mesh;
    rails_card *cards;
} reader;

static tutti_status come(void *ctx, int rank)
{
    const reader *r = ctx;
    tutti_status  st = check_rails_card(r->mesh, &r->cards[rank], rank);

    return st == TUTTI_OK ? take_rails(r->mesh, &r->cards[rank], rank) : st;
}

tutti_status tti_rails_meet(tti_mesh *mesh, const tti_mesh_config *config)
{
    const size_t   n = (size_t)mesh->n_ranks;
    const int      look_ms = tti_roll_look_ms(mesh->n_ranks);
    reader         r = { .mesh = mesh };
    const tti_roll roll = { .port = mesh->port, .board = config->board, .what = RAILS, .n = mesh->n_ranks, .bytes = sizeof *r.cards,
                            .come = come, .ctx = &r, .look_ms = look_ms, .look_most_ms = look_ms };
    tutti_status   st = check_counts(mesh, config);
    int            have = 0;

    if (st != TUTTI_OK || mesh->door.rails.n == 0)
        return st;
    r.cards = malloc(n * sizeof *r.cards);
    mesh->rail_addrs = calloc(n * (size_t)mesh->door.rails.n, sizeof *mesh->rail_addrs);
    if (r.cards == NULL || mesh->rail_addrs == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for the interfaces of %d ranks", mesh->n_ranks);
    else
        st = tti_roll_read(&roll, config->deadline_ns, r.cards, &have);
    free(r.cards);
    if (st == TUTTI_E_TIMEOUT)
        return tti_fail(st, "rank %d has learnt in time the interfaces of %d of %d ranks only\n"
                            "  next: see whether the store is slow", mesh->rank, have, mesh->n_ranks);
    return st;
}
