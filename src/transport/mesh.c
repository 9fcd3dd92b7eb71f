/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh.c - a world's members: opening the way to each, asking for their life, leaving.
 *
 * How     Listen; leave a card on the board and read everybody's (card.c); exchange memory inside the
 *         host (meet_local.c). Every step is bounded by one deadline, and a failure names the ranks it is
 *         about. To members of other hosts nothing is opened here: their addresses are kept, and the
 *         listener, for connections that are made when somebody needs them (connector.c).
 *         A second door stays open for as long as the mesh: for members that must agree without a store.
 * Fails   Who cannot go on leaves its words on the board before its doors close: others find nobody behind them.
 * True    After tti_mesh_open() the members, their hosts, heaps, bells, pidfds and addresses are constant,
 *         and so are the doors, so any thread may read them. Links belong to whoever took them. Registered memory
 *         is mapped under a lock when somebody asks for it, or with the rest where there are many peers, and constant
 *         from then on. */
#include "transport/mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/env.h"
#include "base/fnv.h"
#include "transport/meet.h"
#include "transport/mesh_links.h"
#include "transport/scribe.h"
#include "transport/shm/bulk_ring.h"
#include "transport/shm/pull.h"
#include "transport/shm/ring_link.h"
#include "transport/tcp/tcp_link.h"
#include "transport/trouble.h"
#include "wire/link_rate.h"
#include "wire/ports.h"

enum { BACKLOG = 512, SPARE_PORTS = 4 /* for each rank */, LOOK_MS = 500 /* whether rank 0 will come at all */ };

static tutti_status listen_local(tti_mesh *mesh, const tti_card *card)
{
    tti_addr at = { .family = TTI_ADDR_LOCAL };
    tti_addr bound;
    int      err;

    memcpy(at.name, card->local_name, sizeof at.name);
    err = mesh->port->ops->listen(mesh->port, &at, BACKLOG, &bound, &mesh->local_listener);
    if (err != 0)
        return tti_fail_errno_as(TUTTI_E_NETWORK, -err, "cannot listen on an abstract local socket");
    return TUTTI_OK;
}

tutti_status tti_mesh_check_env(const tutti_transport_ops *transport)
{
    tti_rails    rails;
    int          stripes;
    tti_ports    ports;
    bool         any;
    int64_t      heartbeat_ms, silent_ms;
    tutti_status st = TUTTI_OK;

    if (transport == NULL) /* as in tti_rails_find() */
        st = tti_rails_wanted(tti_port_system(), TTI_ADDR_IP4, &rails);
    if (st == TUTTI_OK && transport == NULL)
        st = tti_stripes_wanted(&rails, &stripes);
    if (st == TUTTI_OK)
        st = tti_ports_wanted(&ports);
    if (st == TUTTI_OK)
        st = tti_health_read_env(&heartbeat_ms, &silent_ms);
    return st == TUTTI_OK ? tti_listens_any(&any) : st;
}

tutti_status tti_mesh_check_transport(const tutti_transport_ops *transport)
{
    tti_seal     seal = TTI_SEAL_NONE;
    tutti_status st = transport != NULL ? tti_seal_wanted(&seal) : TUTTI_OK;

    if (st != TUTTI_OK || seal == TTI_SEAL_NONE)
        return st;
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "the transport '%s' sends in the clear, and TUTTI_TLS asks for encryption\n  next: unset TUTTI_TLS, or "
                    "TUTTI_TRANSPORT", transport->name);
}

/* Four bytes that tell transports apart; all 0: TCP. */
static void fingerprint(const tutti_transport_ops *transport, uint8_t out[4])
{
    uint64_t print;

    memset(out, 0, 4);
    if (transport == NULL)
        return;
    print = tti_fnv(TTI_FNV_BEGIN, transport->name, strlen(transport->name));
    memcpy(out, &print, 4);
    out[0] |= 1;
}

static tutti_status listen_tcp(tti_mesh *mesh, const char *host, tti_card *card)
{
    tti_addr     at, bound, told;
    int          stripes = 1;
    tutti_status st = tti_addr_parse(host, 0, &at);

    if (st == TUTTI_OK)
        mesh->at = at;
    if (st == TUTTI_OK)
        st = tti_rails_find(mesh, &at, &stripes);
    fingerprint(mesh->door.transport, card->transport);
    card->stripes = (uint8_t)stripes;
    card->rails = (uint8_t)mesh->door.rails.n;
    card->seal = (uint8_t)mesh->door.secret.seal;
    if (st == TUTTI_OK)
        st = tti_listen_tcp(mesh->port, &at, BACKLOG, &mesh->door.secret, &bound, &mesh->door.listener);
    if (st == TUTTI_OK)
        st = tti_advertised(mesh->port, &at, &bound, &told);
    if (st != TUTTI_OK)
        return st;
    card->family = told.family == TTI_ADDR_IP4 ? 4 : 6;
    card->tcp_port = told.port;
    card->scope = told.scope;
    memcpy(card->ip, told.ip, sizeof card->ip);
    return TUTTI_OK;
}

/* Of the ports that a firewall lets through the first ones are for messages, of this world and others. */
static bool has_spare_ports(const tti_mesh *mesh)
{
    tti_ports ports = { .first = 1, .last = UINT16_MAX };

    return tti_ports_wanted(&ports) == TUTTI_OK && ports.last - ports.first >= SPARE_PORTS * mesh->n_ranks;
}

/* A second listener, for agreeing when the store is gone. A world can do without: then it can shrink only while it has its
 * store. */
static void listen_for_assembly(tti_mesh *mesh, const char *host, tti_card *card)
{
    tti_addr at, bound;

    if (mesh->n_ranks == 1 || !has_spare_ports(mesh) || tti_addr_parse(host, 0, &at) != TUTTI_OK)
        return;
    if (tti_listen_tcp(mesh->port, &at, BACKLOG, &mesh->door.secret, &bound, &mesh->assembly_listener) == TUTTI_OK)
        card->assembly_port = bound.port;
    else
        tti_log(TTI_LOG_INFO, "rank %d has no second port: this world shrinks only while its store lives (%s)",
                mesh->rank, tutti_last_error());
}

/* The own memory, bell and sign of life, which the others will be lent. */
static tutti_status make_own_member(tti_mesh *mesh, const tti_card *card)
{
    tti_member    *own = &mesh->members[mesh->rank];
    tti_heap_head *head;
    tutti_status   st = tti_heap_create(card->token, tti_directory_words(mesh->n_ranks), &own->heap);
    int            err, fd = -1;

    if (st != TUTTI_OK)
        return st;
    head = tti_heap_head_of(own->heap);
    head->fenced = mesh->port->ops->fence_join != NULL && mesh->port->ops->fence_join(mesh->port);
    head->cores = (uint32_t)tti_running_cores();
    tti_usable_cpus(head->cpus);
    err = mesh->port->ops->bell_create(mesh->port, &own->bell);
    if (err != 0)
        return tti_fail_errno(-err, "cannot create a bell");
    err = mesh->port->ops->life_create(mesh->port, &own->pidfd);
    if (err != 0)
        return tti_fail_errno(-err, "cannot open a descriptor of this process");
    st = tti_registered_hold(&fd);
    if (st != TUTTI_OK)
        return st;
    mesh->holds_registered = true;
    own->registered_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own->registered_fd < 0)
        return tti_fail_errno(errno, "cannot lend the descriptor of registered memory");
    return TUTTI_OK;
}

/* Rings to the members of this host. */
static tutti_status open_links(tti_mesh *mesh)
{
    tti_ring_ends ends = { .port = mesh->port, .own = mesh->members[mesh->rank].heap, .own_rank = mesh->rank,
                           .bulk_size = tti_bulk_size(mesh->n_ranks),
                           .pulled = tti_pull_sizes_of(tti_mesh_has_own_cores(mesh), tti_bulk_size(mesh->n_ranks)) };
    tutti_status  st = TUTTI_OK;
    int           rank;

    for (rank = 0; st == TUTTI_OK && rank < mesh->n_ranks; rank++) {
        tti_member *member = &mesh->members[rank];

        if (rank == mesh->rank || member->heap == NULL)
            continue;
        ends.peer = member->heap;
        ends.peer_rank = rank;
        ends.peer_bell = member->bell;
        ends.peer_pidfd = member->pidfd;
        st = tti_ring_link_open(&ends, &member->link);
    }
    return st;
}

static tti_mesh *make_mesh(const tti_mesh_config *config)
{
    const size_t n = (size_t)config->n_ranks;
    tti_mesh    *mesh = calloc(1, sizeof *mesh);
    size_t       i;

    if (mesh == NULL)
        return NULL;
    *mesh = (tti_mesh){ .port = config->port, .rank = config->rank, .n_ranks = config->n_ranks,
                        .together_from = config->together_from > 0 ? config->together_from : TTI_SCRIBE_FROM,
                        .local_listener = TTI_NO_HANDLE, .assembly_listener = TTI_NO_HANDLE,
                        .clerk = { .rank = -1 }, .clerk_stream = TTI_NO_HANDLE,
                        .door = { .listener = TTI_NO_HANDLE }, .link_mbit = -1 };
    mesh->members = calloc(n, sizeof *mesh->members);
    mesh->cards = calloc(n, sizeof *mesh->cards);
    if (mesh->members == NULL || mesh->cards == NULL) {
        free(mesh->members);
        free(mesh->cards);
        free(mesh);
        return NULL;
    }
    for (i = 0; i < n; i++) {
        mesh->members[i].bell = TTI_NO_HANDLE;
        mesh->members[i].pidfd = -1;
        mesh->members[i].registered_fd = -1;
    }
    for (i = 0; i < TTI_RAILS_MAX; i++)
        mesh->door.rail_listeners[i] = TTI_NO_HANDLE;
    tti_mutex_init(&mesh->registered_lock);
    return mesh;
}

/* What leads to members of other hosts. */
static void close_door(tti_mesh *mesh)
{
    mesh->port->ops->close(mesh->port, mesh->door.listener);
    mesh->door.listener = TTI_NO_HANDLE;
    tti_rails_close(mesh);
    mesh->port->ops->close(mesh->port, mesh->assembly_listener);
    mesh->assembly_listener = TTI_NO_HANDLE;
}

/* What only the bootstrap needs. */
static void end_bootstrap(tti_mesh *mesh)
{
    mesh->port->ops->close(mesh->port, mesh->clerk_stream);
    mesh->clerk_stream = TTI_NO_HANDLE;
    free(mesh->cards);
    mesh->cards = NULL;
}

/* Rank 0's piece, unless rank 0 is known to have ended, or somebody to have given up. */
static tutti_status await_secret(const tti_mesh_config *config, const char *key, uint8_t fresh[TTI_SECRET_BYTES])
{
    const tti_board *board = config->board;
    tti_vigil        vigil = tti_card_vigil(config);
    tutti_status     st = TUTTI_E_TIMEOUT, why = TUTTI_OK;

    tti_vigil_begin(&vigil);
    while (st == TUTTI_E_TIMEOUT && why == TUTTI_OK) {
        const int64_t look_ns = tti_port_now(config->port) + LOOK_MS * TTI_MS;
        const bool    last = look_ns >= config->deadline_ns;

        st = board->get(board->context, key, fresh, TTI_SECRET_BYTES, last ? config->deadline_ns : look_ns);
        if (st == TUTTI_E_TIMEOUT && tti_port_now(config->port) >= config->deadline_ns)
            break;
        if (st == TUTTI_E_TIMEOUT)
            why = tti_vigil_look(&vigil, 0);
    }
    tti_vigil_end(&vigil);
    return why != TUTTI_OK ? why : st;
}

/* Keys would be made of what everybody can read who reads what goes to the store. */
static tutti_status check_plain(const tti_secret *secret)
{
    if (secret->seal != TTI_SEAL_KEY || secret->present)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "TUTTI_TLS is 1, but its keys would be made of a secret that rank 0 leaves in a store which is the program's own or "
                    "PyTorch's, and may send it in plain\n"
                    "  next: set TUTTI_SECRET_FILE to a file of mode 0600 with 64 hex digits, the same on all hosts; "
                    "or TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA");
}

tutti_status tti_mesh_check_plain_board(void)
{
    tti_secret   secret = { .present = false };
    tutti_status st = tti_secret_load(NULL, &secret);

    if (st == TUTTI_OK)
        st = check_plain(&secret);
    tti_secret_release(&secret);
    return st;
}

/* The job's secret. Where it comes from the board, it is this world's alone, and as secret as the
 * board. */
static tutti_status find_secret(tti_mesh *mesh, const tti_mesh_config *config)
{
    static const char key[] = "secret";
    tti_secret       *secret = &mesh->door.secret;
    const tti_board  *board = config->board;
    uint8_t           fresh[TTI_SECRET_BYTES];
    tutti_status      st = tti_secret_load(NULL, secret);
    const tti_seal    seal = secret->seal;

    if (st != TUTTI_OK || secret->present || !config->fresh_secret)
        return st;
    if (config->fresh_in_plain && config->n_ranks > 1)
        st = check_plain(secret);
    if (st != TUTTI_OK)
        return st;
    if (config->rank == 0) {
        config->port->ops->random(config->port, fresh, sizeof fresh);
        st = board->put(board->context, key, fresh, sizeof fresh, config->deadline_ns);
    } else {
        st = await_secret(config, key, fresh);
    }
    if (st == TUTTI_OK)
        st = tti_secret_make(fresh, secret);
    secret->seal = seal;
    explicit_bzero(fresh, sizeof fresh);
    return st;
}

/* Both ends of a way must count on as many connections. */
static tutti_status check_stripes(const tti_mesh *mesh)
{
    const int own = mesh->door.n_stripes / (mesh->door.rails.n > 0 ? mesh->door.rails.n : 1);
    int       rank;

    for (rank = 0; rank < mesh->n_ranks; rank++)
        if (mesh->cards[rank].stripes != own)
            return tti_fail(TUTTI_E_ARG,
                            "rank %d was started with TUTTI_TCP_STRIPES=%u, rank %d with %d\n"
                            "  next: give all ranks the same number",
                            rank, mesh->cards[rank].stripes, mesh->rank, own);
    return TUTTI_OK;
}

static tutti_status check_transports(const tti_mesh *mesh)
{
    static const uint8_t tcp[4];
    const char          *own = mesh->door.transport != NULL ? mesh->door.transport->name : "TCP";
    int                  rank;

    for (rank = 0; rank < mesh->n_ranks; rank++)
        if (memcmp(mesh->cards[rank].transport, mesh->cards[mesh->rank].transport, sizeof tcp) != 0)
            return tti_fail(TUTTI_E_ARG,
                            "rank %d was started with a TUTTI_TRANSPORT that takes %s between hosts, rank %d with one that "
                            "takes %s\n  next: give all ranks the same",
                            rank, memcmp(mesh->cards[rank].transport, tcp, sizeof tcp) == 0 ? "TCP" : "another transport",
                            mesh->rank, own);
    return TUTTI_OK;
}

static const char *seal_setting(uint8_t seal)
{
    return seal == TTI_SEAL_NONE ? "without TUTTI_TLS" : seal == TTI_SEAL_KEY ? "with TUTTI_TLS=1" : "with TUTTI_TLS_CERT";
}

/* Where only some encrypt no connection would be made, of which one end alone would tell. */
static tutti_status check_seals(const tti_mesh *mesh)
{
    const uint8_t own = (uint8_t)mesh->door.secret.seal;
    int           rank;

    for (rank = 0; rank < mesh->n_ranks; rank++)
        if (mesh->cards[rank].seal != own)
            return tti_fail(TUTTI_E_MISMATCH,
                            "rank %d was started %s, rank %d %s: connections are encrypted by both ends or by none\n"
                            "  next: set it for all ranks, or for none",
                            rank, seal_setting(mesh->cards[rank].seal), mesh->rank, seal_setting(own));
    return TUTTI_OK;
}

static const char *transport_setting(const tti_card *card)
{
    static const uint8_t none[sizeof card->transport];

    if (memcmp(card->transport, none, sizeof none) != 0) /* which one is the same on all */
        return card->tcp_only != 0 ? "only:NAME" : "NAME";
    return card->tcp_only != 0 ? "tcp" : "auto";
}

/* Works, and is slower than it looks: who says tcp shares no memory with anybody. Rank 0 tells for all. */
static void warn_of_transports(const tti_mesh *mesh)
{
    const tti_card *cards = mesh->cards;
    int             n = 0, first = 0, rank;

    for (rank = mesh->n_ranks - 1; rank > 0; rank--)
        if ((cards[rank].tcp_only != 0) != (cards[0].tcp_only != 0)) {
            first = rank;
            n++;
        }
    if (n > 0 && mesh->rank == 0)
        tti_log(TTI_LOG_WARN,
                "TUTTI_TRANSPORT is '%s' on rank 0 (host '%s', pid %lld), '%s' on rank %d (host '%s', pid %lld), and differs on %d "
                "more: ranks with 'tcp' or 'only:' share no memory with others of their host\n"
                "  next: give all ranks the same",
                transport_setting(&cards[0]), cards[0].host_name, (long long)cards[0].pid, transport_setting(&cards[first]), first,
                cards[first].host_name, (long long)cards[first].pid, n - 1);
}

/* Members of this host by their local socket, which no network can take away. */
static tti_addr assembly_of(const tti_mesh *mesh, int rank)
{
    const tti_card *card = &mesh->cards[rank];
    tti_addr        at = { .family = TTI_ADDR_LOCAL };

    if (mesh->members[rank].heap != NULL) {
        memcpy(at.name, card->local_name, sizeof at.name);
        return at;
    }
    at = tti_card_addr(card);
    at.port = card->assembly_port;
    return at;
}

static void find_assembly(tti_mesh *mesh)
{
    bool one_host = true, ports = true;
    int  rank;

    for (rank = 0; rank < mesh->n_ranks; rank++) {
        mesh->members[rank].assembly = assembly_of(mesh, rank);
        one_host = one_host && mesh->members[rank].heap != NULL;
        ports = ports && mesh->cards[rank].assembly_port != 0;
    }
    mesh->can_assemble = one_host || ports;
}

static tutti_status meet(tti_mesh *mesh, const tti_mesh_config *config)
{
    tti_card     card;
    bool         unread = false;
    tutti_status st;
    int          rank;

    tti_card_begin(&card, config);
    mesh->door.transport = config->transport;
    st = find_secret(mesh, config);
    if (st == TUTTI_OK)
        st = tti_mesh_check_transport(config->transport);
    if (st == TUTTI_OK)
        st = make_own_member(mesh, &card);
    if (st == TUTTI_OK)
        st = listen_local(mesh, &card);
    if (st == TUTTI_OK)
        st = listen_tcp(mesh, config->listen_host, &card);
    if (st == TUTTI_OK)
        listen_for_assembly(mesh, config->listen_host, &card);
    if (st == TUTTI_OK)
        st = tti_rails_leave(mesh, config);
    if (st == TUTTI_OK)
        st = tti_cards_exchange(config, &card, mesh->cards, &mesh->clerk, &unread);
    if (st == TUTTI_OK && unread)
        st = tti_meet_clerk(mesh, config);
    if (st == TUTTI_OK)
        st = check_stripes(mesh);
    if (st == TUTTI_OK)
        st = check_seals(mesh);
    if (st == TUTTI_OK)
        st = check_transports(mesh);
    if (st == TUTTI_OK)
        st = tti_cards_check_addresses(mesh->cards, mesh->n_ranks);
    if (st == TUTTI_OK)
        st = tti_rails_meet(mesh, config);
    if (st != TUTTI_OK)
        return st;
    warn_of_transports(mesh);
    memcpy(mesh->door.scope, mesh->cards[0].world, sizeof mesh->door.scope);
    for (rank = 0; rank < mesh->n_ranks; rank++) {
        mesh->members[rank].addr = tti_card_addr(&mesh->cards[rank]);
        mesh->on_machine += memcmp(mesh->cards[rank].machine, mesh->cards[mesh->rank].machine,
                                   TTI_CARD_MACHINE_BYTES) == 0;
        snprintf(mesh->members[rank].where, sizeof mesh->members[rank].where, "host '%s', pid %lld",
                 mesh->cards[rank].host_name, (long long)mesh->cards[rank].pid);
    }
    st = tti_meet_local(mesh, config);
    if (st == TUTTI_OK)
        find_assembly(mesh);
    return st == TUTTI_OK ? open_links(mesh) : st;
}

static void log_members(const tti_mesh *mesh)
{
    char far[TTI_RAILS_TEXT_MAX + 64], rails[TTI_RAILS_TEXT_MAX];
    int  rank, here = 0, hosts = 0;

    snprintf(far, sizeof far, "%s%s%s", mesh->door.transport != NULL ? mesh->door.transport->name : "TCP",
             mesh->door.rails.n > 0 ? " over " : "", tti_rails_text(&mesh->door.rails, rails));
    for (rank = 0; rank < mesh->n_ranks; rank++) {
        here += mesh->members[rank].heap != NULL;
        hosts += mesh->members[rank].host == rank;
    }
    tti_log(TTI_LOG_INFO, "world of %d on %d hosts: %d through shared memory (this rank included), %d by %s",
            mesh->n_ranks, hosts, here, mesh->n_ranks - here, far);
    for (rank = 0; rank < mesh->n_ranks; rank++)
        tti_log(TTI_LOG_DEBUG, "rank %d: %s, %s", rank, mesh->members[rank].where,
                rank == mesh->rank                 ? "this rank"
                : mesh->members[rank].heap != NULL ? "shared memory"
                                                   : far);
}

tutti_status tti_mesh_open(const tti_mesh_config *config, tti_mesh **mesh_out)
{
    tti_mesh    *mesh = make_mesh(config);
    tutti_status st;

    if (mesh == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a world of %d ranks", config->n_ranks);
    st = meet(mesh, config);
    if (st == TUTTI_OK)
        st = tti_mesh_begin_watch(mesh);
    if (st != TUTTI_OK) {
        tti_trouble_leave(config->board, config->port, mesh->rank, st);
        tti_mesh_close(mesh);
        return st;
    }
    end_bootstrap(mesh);
    if (tti_mesh_door(mesh) == NULL)
        close_door(mesh);
    log_members(mesh);
    *mesh_out = mesh;
    return TUTTI_OK;
}

/* Tell those who wait for this rank that it will not come any more. */
static void say_goodbye(tti_mesh *mesh)
{
    const tti_member *own = &mesh->members[mesh->rank];
    int               rank;

    if (own->heap == NULL)
        return;
    atomic_store(&tti_heap_head_of(own->heap)->closed, 1);
    for (rank = 0; rank < mesh->n_ranks; rank++)
        if (rank != mesh->rank && mesh->members[rank].heap != NULL)
            mesh->port->ops->bell_ring(mesh->port, mesh->members[rank].bell);
}

void tti_mesh_close(tti_mesh *mesh)
{
    int rank;

    if (mesh == NULL)
        return;
    say_goodbye(mesh);
    tti_health_close(mesh->health);
    end_bootstrap(mesh);
    close_door(mesh);
    mesh->port->ops->close(mesh->port, mesh->local_listener);
    tti_secret_release(&mesh->door.secret);
    for (rank = 0; rank < mesh->n_ranks; rank++) {
        tti_member *member = &mesh->members[rank];

        if (member->link != NULL)
            member->link->ops->close(member->link);
        tti_heap_free(member->heap);
        mesh->port->ops->close(mesh->port, member->bell);
        mesh->port->ops->close(mesh->port, member->pidfd);
        tti_foreign_free(member->registered);
        mesh->port->ops->close(mesh->port, member->registered_fd);
    }
    if (mesh->holds_registered)
        tti_registered_drop();
    tti_mutex_release(&mesh->registered_lock);
    free(mesh->rail_addrs);
    free(mesh->members);
    free(mesh);
}

int tti_mesh_rank(const tti_mesh *mesh)
{
    return mesh->rank;
}

int tti_mesh_size(const tti_mesh *mesh)
{
    return mesh->n_ranks;
}

tti_port *tti_mesh_port(const tti_mesh *mesh)
{
    return mesh->port;
}

bool tti_mesh_reads_together(const tti_mesh *mesh, int n)
{
    return n >= mesh->together_from && n > 1;
}

int tti_mesh_host(const tti_mesh *mesh, int rank)
{
    return mesh->members[rank].host;
}

tti_heap *tti_mesh_heap(const tti_mesh *mesh, int rank)
{
    return mesh->members[rank].heap;
}

tutti_status tti_mesh_registered(tti_mesh *mesh, int rank, const tti_foreign **foreign_out)
{
    tti_member  *member = &mesh->members[rank];
    const int    own_fd = mesh->members[mesh->rank].registered_fd;
    tutti_status st = TUTTI_OK;

    tti_lock(&mesh->registered_lock);
    if (member->registered == NULL)
        st = tti_foreign_map(member->registered_fd >= 0 ? member->registered_fd : own_fd, &member->registered);
    if (st == TUTTI_OK)
        *foreign_out = member->registered;
    tti_unlock(&mesh->registered_lock);
    return st;
}

tti_handle tti_mesh_bell(const tti_mesh *mesh)
{
    return mesh->members[mesh->rank].bell;
}

tti_handle tti_mesh_bell_of(const tti_mesh *mesh, int rank)
{
    return mesh->members[rank].bell;
}

const tti_addr *tti_mesh_addr(const tti_mesh *mesh, int rank)
{
    return mesh->members[rank].heap == NULL ? &mesh->members[rank].addr : NULL;
}

const tti_addr *tti_mesh_rail_addr(const tti_mesh *mesh, int rank, int rail)
{
    if (mesh->members[rank].heap != NULL || rail == 0)
        return tti_mesh_addr(mesh, rank);
    return &mesh->rail_addrs[(size_t)rank * (size_t)mesh->door.rails.n + (size_t)rail];
}

int64_t tti_mesh_link(tti_mesh *mesh, int64_t *burst_out)
{
    int64_t       mbit = atomic_load_explicit(&mesh->link_mbit, memory_order_acquire);
    tti_link_rate rate;

    *burst_out = atomic_load_explicit(&mesh->link_burst, memory_order_relaxed);
    if (mbit >= 0)
        return mbit;
    if (mesh->door.transport != NULL)
        rate = (tti_link_rate){ .mbit = 0 };
    else
        tti_link_rate_of(mesh->port, &mesh->at, &mesh->door.rails, &rate);
    tti_log(TTI_LOG_DEBUG, "what the link of this host carries: %s", rate.text[0] != '\0' ? rate.text : "unknown");
    *burst_out = rate.burst;
    atomic_store_explicit(&mesh->link_burst, rate.burst, memory_order_relaxed);
    atomic_store_explicit(&mesh->link_mbit, rate.mbit, memory_order_release); /* two who ask at once come to the same */
    return rate.mbit;
}

const tti_door *tti_mesh_door(const tti_mesh *mesh)
{
    int rank;

    for (rank = 0; rank < mesh->n_ranks; rank++)
        if (mesh->members[rank].heap == NULL)
            return &mesh->door;
    return NULL;
}

/* Of what every connection carries: a fingerprint, as that is longer. */
uint64_t tti_mesh_world_id(const tti_mesh *mesh)
{
    return tti_fnv(TTI_FNV_BEGIN, mesh->door.scope, TTI_HELLO_SCOPE_BYTES);
}

tti_assembly_door tti_mesh_assembly_door(const tti_mesh *mesh)
{
    return (tti_assembly_door){ .local = mesh->local_listener, .tcp = mesh->assembly_listener,
                                .secret = &mesh->door.secret, .scope = mesh->door.scope };
}

bool tti_mesh_can_assemble(const tti_mesh *mesh)
{
    return mesh->can_assemble;
}

const tti_addr *tti_mesh_assembly_addr(const tti_mesh *mesh, int rank)
{
    return &mesh->members[rank].assembly;
}

tti_link *tti_mesh_take_link(tti_mesh *mesh, int rank)
{
    tti_link *link = mesh->members[rank].link;

    mesh->members[rank].link = NULL;
    return link;
}

const char *tti_mesh_whereabouts(const tti_mesh *mesh, int rank)
{
    return mesh->members[rank].where;
}

tti_health *tti_mesh_health(const tti_mesh *mesh)
{
    return mesh->health;
}

/* Whether the process of a member of this host has ended: a pidfd is readable then. */
static bool has_ended(const tti_mesh *mesh, const tti_member *member)
{
    tti_poll poll = { .handle = member->pidfd, .want = TTI_READ };

    return member->heap != NULL && mesh->port->ops->poll(mesh->port, &poll, 1, 0) != 0;
}

/* Of this host its own memory tells, before the watch threads do. */
bool tti_mesh_has_left(const tti_mesh *mesh, int rank)
{
    const tti_member *member = &mesh->members[rank];

    return rank != mesh->rank && ((member->heap != NULL && atomic_load(&tti_heap_head_of(member->heap)->closed) != 0) ||
                                  tti_health_of(mesh->health, rank).life == TTI_LIFE_LEFT);
}

bool tti_mesh_is_alive(tti_mesh *mesh, int rank, char *words_out, size_t bytes)
{
    const tti_member *member = &mesh->members[rank];
    tti_health_report report;
    char              how[TTI_HEALTH_TEXT_MAX];

    if (rank == mesh->rank)
        return true;
    if (member->heap != NULL && atomic_load(&tti_heap_head_of(member->heap)->closed) != 0) {
        snprintf(words_out, bytes, "rank %d (%s) has left", rank, member->where);
        return false;
    }
    if (has_ended(mesh, member)) {
        report = tti_health_now(mesh->health, rank);
        report.life = TTI_LIFE_DEAD;
        report.cause = tti_mesh_cause_of(mesh, member->pidfd);
    } else if (!tti_health_is_lost(mesh->health, rank)) {
        return true;
    } else {
        report = tti_health_of(mesh->health, rank); /* behind the verdict: what was read before it says nothing of it */
    }
    snprintf(words_out, bytes, "rank %d (%s) %s", rank, member->where,
             tti_report_words(mesh->health, &report, tti_port_now(mesh->port), how));
    return false;
}

tutti_status tti_mesh_alive(tti_mesh *mesh, int rank)
{
    char words[TTI_CARD_HOST_MAX + 128 + TTI_HEALTH_TEXT_MAX];

    if (tti_mesh_is_alive(mesh, rank, words, sizeof words))
        return TUTTI_OK;
    return tti_fail(TUTTI_E_PEER, "%s", words);
}
