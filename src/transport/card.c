/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card.c - members find each other through the board.
 *
 * The host hint is the boot id, the network namespace and the user: members with equal hints try each
 * other's local socket, which the kernel scopes by network namespace, and prove there that they share
 * memory. A hint that cannot be read, or a member that wants TCP everywhere, becomes a random number,
 * which equals nobody's.
 *
 * The boot id alone says who shares this machine's cores, in whatever container: by it ranks decide how to wait.
 *
 * In large worlds the first rank of a host that comes is its clerk: it reads the cards for all who have its hint, and hands
 * them over with the memory (meet_cards.c). Who that is stands on the board, under the hint's number. A hint that another host's
 * clerk has taken, as two may have one number, has none. */
#include "transport/card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/fnv.h"
#include "base/machine.h"
#include "transport/scribe.h"
#include "transport/vigil.h"
#include "wire/addr.h"

enum {
    MISSING_TEXT_MAX = 256,
    MISSING_MOST = 64 /* ranks that such a text has room for */
};

#define CARD_MAGIC UINT32_C(0x64726163) /* "card" */
#define CARD       "card"

#define CLERK_MAGIC UINT32_C(0x6b726c63) /* "clrk" */
#define CLERK_KEY   "clerk/%llx"

static void make_hint(const tti_mesh_config *config, uint8_t hint[TTI_CARD_HINT_BYTES])
{
    char           boot_id[TTI_BOOT_ID_BYTES];
    struct stat    netns;
    const uint64_t user = geteuid();
    uint64_t       place;

    if (config->tcp_only || stat("/proc/self/ns/net", &netns) != 0 || !tti_boot_id(boot_id)) {
        config->port->ops->random(config->port, hint, TTI_CARD_HINT_BYTES);
        return;
    }
    place = (uint64_t)netns.st_ino;
    memcpy(hint, boot_id, 16);
    memcpy(hint + 16, &place, sizeof place);
    memcpy(hint + 24, &user, 4); /* Linux has 32 bits of it */
    memcpy(hint + 28, &config->as_host, sizeof config->as_host);
}

/* Of a host: others may have the same. */
static uint64_t number_of(const uint8_t hint[TTI_CARD_HINT_BYTES])
{
    return tti_fnv(TTI_FNV_BEGIN, hint, TTI_CARD_HINT_BYTES);
}

static void name_machine(tti_port *port, uint8_t machine[TTI_CARD_MACHINE_BYTES])
{
    char boot_id[TTI_BOOT_ID_BYTES];

    if (tti_boot_id(boot_id))
        memcpy(machine, boot_id, TTI_CARD_MACHINE_BYTES);
    else
        port->ops->random(port, machine, TTI_CARD_MACHINE_BYTES);
}

/* Which numbering of processes ours counts in; where that cannot be read, a number that another program hardly has. */
static uint64_t pid_space(void)
{
    static const char here;
    struct stat       space;

    return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t)space.st_ino : (uint64_t)(uintptr_t)&here;
}

bool tti_card_same_process(const tti_card *a, const tti_card *b)
{
    return a->pid == b->pid && a->pid_space == b->pid_space && memcmp(a->machine, b->machine, sizeof a->machine) == 0;
}

void tti_card_begin(tti_card *card, const tti_mesh_config *config)
{
    uint64_t name[2];

    memset(card, 0, sizeof *card);
    card->magic = CARD_MAGIC;
    card->version = TTI_CARD_VERSION;
    card->size = sizeof *card;
    card->rank = config->rank;
    card->n_ranks = config->n_ranks;
    card->tcp_only = config->tcp_only;
    card->pid = config->port->ops->process != NULL ? config->port->ops->process(config->port) : getpid();
    card->pid_space = pid_space();
    make_hint(config, card->host_hint);
    name_machine(config->port, card->machine);
    config->port->ops->random(config->port, card->token, sizeof card->token);
    if (config->rank == 0)
        config->port->ops->random(config->port, card->world, sizeof card->world);
    config->port->ops->random(config->port, name, sizeof name);
    snprintf(card->local_name, sizeof card->local_name, "tutti-%016llx%016llx",
             (unsigned long long)name[0], (unsigned long long)name[1]);
    if (gethostname(card->host_name, sizeof card->host_name - 1) != 0)
        snprintf(card->host_name, sizeof card->host_name, "?");
}

/* "1, 2, 5": the ranks that are marked, as many as fit into out. True: these are all of them. */
static bool list_marked(const bool *marked, int n_ranks, char out[MISSING_TEXT_MAX], int *n_out)
{
    size_t used = 0;
    int    rank;

    out[0] = '\0';
    for (rank = 0, *n_out = 0; rank < n_ranks; rank++) {
        if (!marked[rank])
            continue;
        if (used >= MISSING_TEXT_MAX - 24)
            return false;
        used += (size_t)snprintf(out + used, MISSING_TEXT_MAX - used, "%s%d", *n_out > 0 ? ", " : "", rank);
        ++*n_out;
    }
    return true;
}

/* The same of ranks whose card is not on the board. */
static bool list_the_missing(const tti_roll *roll, char out[MISSING_TEXT_MAX], int *n_out)
{
    const int64_t deadline_ns = tti_board_grace(roll->board, roll->port);
    bool         *missing = malloc((size_t)roll->n * sizeof *missing);
    bool          all;

    out[0] = '\0';
    *n_out = 0;
    if (missing == NULL)
        return false;
    all = tti_roll_missing(roll, 0, MISSING_MOST, deadline_ns, missing);
    all = list_marked(missing, roll->n, out, n_out) && all;
    free(missing);
    return all;
}

/* awaited: one that was known not to have come when it was looked for, -1 for none: for where the board does not tell any more. */
static tutti_status name_the_missing(const tti_mesh_config *config, const tti_roll *roll, int awaited, int64_t waited_ms)
{
    char       text[MISSING_TEXT_MAX];
    char       here[64] = "";
    int        n = 0;
    const bool all = list_the_missing(roll, text, &n);

    if (!all && n == 0 && awaited >= 0) {
        snprintf(text, sizeof text, "%d", awaited);
        n = 1;
    }
    if (all)
        snprintf(here, sizeof here, " (%d of %d here)", config->n_ranks - n, config->n_ranks);
    return tti_fail(TUTTI_E_TIMEOUT,
                    "rank %d waited %lld ms for the world of %d: rank%s %s%s did not come%s\n"
                    "  next: check that all were started with world size %d and the same store",
                    config->rank, (long long)waited_ms, config->n_ranks,
                    n == 1 && here[0] != '\0' ? "" : "s", n > 0 ? text : "not known by number",
                    here[0] != '\0' ? "" : " and perhaps others", here, config->n_ranks);
}

/* What a reader of cards has at hand. */
typedef struct reader {
    const tti_mesh_config *config;
    const tti_card        *cards;
    tti_vigil              vigil;
    int                    awaited; /* the latest that was known not to have come; -1: none */
} reader;

static tutti_status check_card(void *ctx, int rank)
{
    const reader          *r = ctx;
    const tti_mesh_config *config = r->config;
    const tti_card        *card = &r->cards[rank];

    if (card->magic != CARD_MAGIC || card->version != TTI_CARD_VERSION || card->size != sizeof *card)
        return tti_fail(TUTTI_E_MISMATCH,
                        "rank %d runs another version of tutti (card version %u of %u bytes, here %d of %zu)",
                        rank, card->version, card->size, TTI_CARD_VERSION, sizeof *card);
    if (card->n_ranks != config->n_ranks)
        return tti_fail(TUTTI_E_ARG,
                        "world size mismatch: rank %d was started with world size %d, rank %d with %d", rank,
                        card->n_ranks, config->rank, config->n_ranks);
    if (card->rank != rank || memchr(card->local_name, '\0', sizeof card->local_name) == NULL ||
        memchr(card->host_name, '\0', sizeof card->host_name) == NULL)
        return tti_fail(TUTTI_E_STORE, "the card of rank %d is damaged", rank);
    return TUTTI_OK;
}

/* Whether the board says that its card is not there: one that does not answer says nothing. */
static bool is_known_missing(const reader *r, int rank)
{
    const tti_board *board = r->config->board;
    const tti_roll   roll = { .what = CARD };
    char             key[TTI_BOARD_KEY_BYTES];
    bool             there = true;

    tti_roll_key(&roll, rank, key);
    return board->has(board->context, key, tti_board_patience(board, r->config->port, r->config->deadline_ns), &there) == TUTTI_OK &&
           !there;
}

static tutti_status look_why(void *ctx, int rank)
{
    reader *r = ctx;

    if (r->awaited != rank && is_known_missing(r, rank)) /* once for each */
        r->awaited = rank;
    return tti_vigil_look(&r->vigil, rank);
}

static reader reader_of(const tti_mesh_config *config, const tti_card *cards)
{
    return (reader){ .config = config, .cards = cards, .vigil = tti_card_vigil(config), .awaited = -1 };
}

/* Looks are for a card that contradicts ours, and for who has given up, while others are awaited. */
static tti_roll roll_of(reader *r)
{
    const tti_mesh_config *config = r->config;
    const int              look_ms = tti_roll_look_ms(config->n_ranks);

    return (tti_roll){ .port = config->port, .board = config->board, .what = CARD, .n = config->n_ranks,
                       .bytes = sizeof *r->cards, .come = check_card, .awaited = look_why, .ctx = r,
                       .look_ms = look_ms, .look_most_ms = look_ms };
}

/* What a reading that ended with st has come to, n having come. */
static tutti_status explain(reader *r, const tti_roll *roll, tutti_status st, int n, int64_t began_ns)
{
    if (st == TUTTI_E_TIMEOUT)
        return name_the_missing(r->config, roll, r->awaited == n ? n : -1, (tti_port_now(r->config->port) - began_ns) / TTI_MS);
    return st == TUTTI_E_NETWORK ? tti_vigil_name_the_ended(&r->vigil, n, st) : st;
}

/* Read everybody's cards, and end when somebody is known to have ended, or to have given up. clerk: of whose host this rank
 * is; NULL: it reads for nobody else. */
static tutti_status read_cards(const tti_mesh_config *config, tti_card *cards, const tti_clerk *clerk, bool *unread_out)
{
    const int64_t   began_ns = tti_port_now(config->port);
    reader          r = reader_of(config, cards);
    const tti_roll  roll = roll_of(&r);
    tti_scribe      scribe = { .roll = &roll };
    tti_scribe_note note = { .word = TTI_SCRIBE_ALONE };
    tutti_status    st = TUTTI_OK;
    int             n = 0;

    if (clerk != NULL) {
        scribe.place = number_of(clerk->host_hint);
        scribe.rank = clerk->rank;
    }
    tti_vigil_begin(&r.vigil);
    if (clerk != NULL && clerk->rank == config->rank)
        st = tti_scribe_read(&scribe, config->deadline_ns, cards, &n);
    else if (clerk != NULL)
        st = tti_scribe_await(&scribe, config->deadline_ns, &note, &n);
    *unread_out = clerk != NULL && clerk->rank != config->rank && note.word == TTI_SCRIBE_DONE;
    if (st == TUTTI_OK && clerk == NULL)
        st = tti_roll_read(&roll, config->deadline_ns, cards, &n);
    else if (st == TUTTI_OK && n < config->n_ranks && !*unread_out)
        st = tti_scribe_read_alone(&roll, config->deadline_ns, cards, &n);
    tti_vigil_end(&r.vigil);
    if (st == TUTTI_OK && clerk != NULL && clerk->rank == config->rank)
        tti_scribe_tell(&scribe, TTI_SCRIBE_DONE, 0, 0);
    return st == TUTTI_OK ? st : explain(&r, &roll, st, n, began_ns);
}

tti_vigil tti_card_vigil(const tti_mesh_config *config)
{
    return (tti_vigil){ .port = config->port, .board = config->board, .rank = config->rank, .n_ranks = config->n_ranks,
                        .what = CARD, .deadline_ns = config->deadline_ns };
}

/* ---- the clerk of a host ---------------------------------------------------------------------------- */

static bool is_clerk(const tti_mesh_config *config, const tti_clerk *found, const tti_clerk *own)
{
    return found->magic == CLERK_MAGIC && found->version == own->version && found->size == own->size && found->rank >= 0 &&
           found->rank < config->n_ranks && found->rank != config->rank &&
           memcmp(found->host_hint, own->host_hint, sizeof own->host_hint) == 0 &&
           memchr(found->local_name, '\0', sizeof found->local_name) != NULL;
}

/* Be it, unless another rank of this host is. */
static tutti_status find_clerk(const tti_mesh_config *config, const tti_card *card, tti_clerk *clerk_out)
{
    const tti_board *board = config->board;
    tti_clerk        own = { .magic = CLERK_MAGIC, .version = TTI_CARD_VERSION, .size = sizeof own, .rank = config->rank };
    char             key[TTI_BOARD_KEY_BYTES];
    tutti_status     st;

    memcpy(own.host_hint, card->host_hint, sizeof own.host_hint);
    memcpy(own.local_name, card->local_name, sizeof own.local_name);
    config->port->ops->random(config->port, own.scope, sizeof own.scope);
    snprintf(key, sizeof key, CLERK_KEY, (unsigned long long)number_of(card->host_hint));
    st = board->put(board->context, key, &own, sizeof own, config->deadline_ns);
    *clerk_out = own;
    if (st != TUTTI_E_STATE)
        return st;
    st = board->get(board->context, key, clerk_out, sizeof *clerk_out, config->deadline_ns);
    if (st == TUTTI_E_STORE || (st == TUTTI_OK && !is_clerk(config, clerk_out, &own)))
        clerk_out->rank = -1; /* another version's: cards tell */
    return st == TUTTI_E_STORE ? TUTTI_OK : st;
}

static bool has_clerks(const tti_mesh_config *config)
{
    const int from = config->together_from > 0 ? config->together_from : TTI_SCRIBE_FROM;

    return config->n_ranks >= from && config->n_ranks > 1 && !config->tcp_only;
}

tutti_status tti_cards_exchange(const tti_mesh_config *config, const tti_card *own, tti_card *cards, tti_clerk *clerk_out,
                                bool *unread_out)
{
    const int64_t  began_ns = tti_port_now(config->port);
    reader         r = reader_of(config, cards);
    const tti_roll roll = roll_of(&r);
    char           key[TTI_BOARD_KEY_BYTES];
    tutti_status   st;

    clerk_out->rank = -1;
    tti_roll_key(&roll, config->rank, key);
    st = config->board->put(config->board->context, key, own, sizeof *own, config->deadline_ns);
    if (st == TUTTI_E_STATE)
        return tti_fail(TUTTI_E_ARG,
                        "rank %d has joined this world already\n"
                        "  next: give every process a rank of its own; with file://, remove a left-over file",
                        config->rank);
    if (st == TUTTI_OK && has_clerks(config))
        st = find_clerk(config, own, clerk_out);
    if (st == TUTTI_E_TIMEOUT)
        return name_the_missing(config, &roll, -1, (tti_port_now(config->port) - began_ns) / TTI_MS);
    return st == TUTTI_OK ? read_cards(config, cards, clerk_out->rank >= 0 ? clerk_out : NULL, unread_out) : st;
}

tutti_status tti_cards_read_alone(const tti_mesh_config *config, tti_card *cards)
{
    bool unread;

    return read_cards(config, cards, NULL, &unread);
}

tutti_status tti_cards_check(const tti_mesh_config *config, const tti_card *cards)
{
    reader       r = reader_of(config, cards);
    tutti_status st = TUTTI_OK;
    int          rank;

    for (rank = 0; rank < config->n_ranks && st == TUTTI_OK; rank++)
        st = check_card(&r, rank);
    return st;
}

/* Whether its hint is of a place, and no random number. */
static bool has_place(const tti_card *card)
{
    return card->tcp_only == 0 && memcmp(card->host_hint, card->machine, sizeof card->machine) == 0;
}

bool tti_card_is_elsewhere(const tti_card *a, const tti_card *b)
{
    enum { PLACE_BYTES = TTI_CARD_MACHINE_BYTES + sizeof(uint64_t) }; /* of make_hint(), without the user */

    return has_place(a) && has_place(b) && memcmp(a->host_hint, b->host_hint, PLACE_BYTES) != 0;
}

static tutti_status fail_loopback(const tti_card *card, const tti_addr *addr, const tti_card *far)
{
    char text[TTI_ADDR_TEXT_MAX];

    return tti_fail(TUTTI_E_ARG,
                    "rank %d (host '%s', pid %lld) is to be found at %s, which is its own loopback: rank %d on host '%s' cannot reach it\n"
                    "  next: let rank %d name an interface that the other hosts reach (TUTTI_SOCKET_IFNAME), or an address "
                    "(TUTTI_ADVERTISE); unset, the one that leads to the store is taken",
                    card->rank, card->host_name, (long long)card->pid, tti_addr_format(addr, text, sizeof text), far->rank,
                    far->host_name, card->rank);
}

tutti_status tti_cards_check_addresses(const tti_card *cards, int n_ranks)
{
    int r, other;

    for (r = 0; r < n_ranks; r++) {
        const tti_addr addr = tti_card_addr(&cards[r]);

        if (!tti_addr_is_loopback(&addr))
            continue;
        for (other = 0; other < n_ranks; other++)
            if (tti_card_is_elsewhere(&cards[r], &cards[other]))
                return fail_loopback(&cards[r], &addr, &cards[other]);
    }
    return TUTTI_OK;
}

tti_addr tti_card_addr(const tti_card *card)
{
    tti_addr addr = { .family = card->family == 4 ? TTI_ADDR_IP4 : TTI_ADDR_IP6, .port = card->tcp_port,
                      .scope = card->scope };

    memcpy(addr.ip, card->ip, sizeof addr.ip);
    return addr;
}
