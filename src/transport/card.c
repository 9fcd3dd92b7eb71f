/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card.c - members find each other through the board.
 *
 * The host hint is the boot id, the network namespace and the user: members with equal hints try each
 * other's local socket, which the kernel scopes by network namespace, and prove there that they share
 * memory. A hint that cannot be read, or a member that wants TCP everywhere, becomes a random number,
 * which equals nobody's. */
#include "transport/card.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/machine.h"

enum { KEY_MAX = 32, MISSING_TEXT_MAX = 256 };

#define CARD_MAGIC UINT32_C(0x64726163) /* "card" */

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
    memcpy(hint + 24, &user, sizeof user);
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
    card->pid = getpid();
    make_hint(config, card->host_hint);
    config->port->ops->random(config->port, card->token, sizeof card->token);
    config->port->ops->random(config->port, name, sizeof name);
    snprintf(card->local_name, sizeof card->local_name, "tutti-%016llx%016llx",
             (unsigned long long)name[0], (unsigned long long)name[1]);
    if (gethostname(card->host_name, sizeof card->host_name - 1) != 0)
        snprintf(card->host_name, sizeof card->host_name, "?");
}

static void card_key(char key[KEY_MAX], int rank)
{
    snprintf(key, KEY_MAX, "card/%d", rank);
}

/* List ranks whose card is not on the board, as many as fit into out. True: these are all of them. */
static bool list_the_missing(const tti_mesh_config *config, char out[MISSING_TEXT_MAX], int *n_out)
{
    const int64_t deadline_ns = tti_port_now(config->port) + TTI_BOARD_GRACE_NS;
    char          key[KEY_MAX];
    size_t        used = 0;
    int           rank;

    out[0] = '\0';
    for (rank = 0, *n_out = 0; rank < config->n_ranks; rank++) {
        bool there = false;

        if (used >= MISSING_TEXT_MAX - 24)
            return false;
        card_key(key, rank);
        if (config->board->has(config->board->context, key, deadline_ns, &there) != TUTTI_OK)
            return false;
        if (there)
            continue;
        used += (size_t)snprintf(out + used, MISSING_TEXT_MAX - used, "%s%d", *n_out > 0 ? ", " : "", rank);
        ++*n_out;
    }
    return true;
}

static tutti_status name_the_missing(const tti_mesh_config *config, int64_t waited_ms)
{
    char text[MISSING_TEXT_MAX];
    char here[64] = "";
    int  n = 0;

    if (list_the_missing(config, text, &n))
        snprintf(here, sizeof here, " (%d of %d here)", config->n_ranks - n, config->n_ranks);
    return tti_fail(TUTTI_E_TIMEOUT,
                    "rank %d waited %lld ms for the world of %d: rank%s %s%s did not come%s\n"
                    "  next: check that all were started with world size %d and the same store",
                    config->rank, (long long)waited_ms, config->n_ranks,
                    n == 1 && here[0] != '\0' ? "" : "s", n > 0 ? text : "not known by number",
                    here[0] != '\0' ? "" : " and perhaps others", here, config->n_ranks);
}

static tutti_status check_card(const tti_mesh_config *config, const tti_card *card, int rank)
{
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

tutti_status tti_cards_exchange(const tti_mesh_config *config, const tti_card *own, tti_card *cards)
{
    const tti_board *board = config->board;
    const int64_t    start = tti_port_now(config->port);
    char             key[KEY_MAX];
    tutti_status     st;
    int              rank;

    card_key(key, config->rank);
    st = board->put(board->context, key, own, sizeof *own, config->deadline_ns);
    if (st == TUTTI_E_STATE)
        return tti_fail(TUTTI_E_ARG,
                        "rank %d has joined this world already\n"
                        "  next: give every process a rank of its own; with file://, remove a left-over file",
                        config->rank);
    for (rank = 0; st == TUTTI_OK && rank < config->n_ranks; rank++) {
        card_key(key, rank);
        st = board->get(board->context, key, &cards[rank], sizeof *cards, config->deadline_ns);
        if (st == TUTTI_E_TIMEOUT)
            return name_the_missing(config, (tti_port_now(config->port) - start) / TTI_MS);
        if (st == TUTTI_OK)
            st = check_card(config, &cards[rank], rank);
    }
    return st;
}

tutti_status tti_scope_agree(const tti_mesh_config *config, uint8_t scope_out[TTI_HELLO_SCOPE_BYTES])
{
    const tti_board *board = config->board;
    uint8_t          fresh[TTI_HELLO_SCOPE_BYTES];
    tutti_status     st;

    if (config->rank == 0) {
        config->port->ops->random(config->port, fresh, sizeof fresh);
        st = board->put(board->context, "scope", fresh, sizeof fresh, config->deadline_ns);
        if (st != TUTTI_OK)
            return st;
    }
    return board->get(board->context, "scope", scope_out, TTI_HELLO_SCOPE_BYTES, config->deadline_ns);
}

tti_addr tti_card_addr(const tti_card *card)
{
    tti_addr addr = { .family = card->family == 4 ? TTI_ADDR_IP4 : TTI_ADDR_IP6, .port = card->tcp_port,
                      .scope = card->scope };

    memcpy(addr.ip, card->ip, sizeof addr.ip);
    return addr;
}
