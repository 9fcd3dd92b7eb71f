/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card.c - members find each other through the board.
 *
 * The host hint is the boot id, the network namespace and the user: members with equal hints try each
 * other's local socket, which the kernel scopes by network namespace, and prove there that they share
 * memory. A hint that cannot be read, or a member that wants TCP everywhere, becomes a random number,
 * which equals nobody's.
 *
 * The boot id alone says who shares this machine's cores, in whatever container: by it ranks decide how to wait. */
#include "transport/card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/machine.h"
#include "watch/bulletin.h"
#include "watch/trouble.h"

enum {
    MISSING_TEXT_MAX = 256,
    MISSING_MOST = 64, /* ranks that such a text has room for */
    LOOK_MS = 1000,    /* for a card that contradicts ours, while others are awaited: starting hundreds takes as long */
    LOOK_MOST_MS = 8000
};

#define CARD_MAGIC UINT32_C(0x64726163) /* "card" */
#define CARD       "card"

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

static tutti_status name_the_missing(const tti_mesh_config *config, const tti_roll *roll, int64_t waited_ms)
{
    char text[MISSING_TEXT_MAX];
    char here[64] = "";
    int  n = 0;

    if (list_the_missing(roll, text, &n))
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
    uint32_t               n_endings; /* of the launcher's, that were looked at */
    int                    ended;     /* the one that leaves us waiting for ever; -1: none */
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

/* Whether somebody who could not join has said why. */
static tutti_status look_for_trouble(const tti_mesh_config *config, int rank)
{
    const tti_board       *board = config->board;
    const int64_t          deadline_ns = tti_board_patience(board, config->port, config->deadline_ns);
    tti_trouble            trouble;
    bool                   there = false;

    if (board->has(board->context, TTI_TROUBLE_KEY, deadline_ns, &there) != TUTTI_OK || !there ||
        board->get(board->context, TTI_TROUBLE_KEY, &trouble, sizeof trouble, deadline_ns) != TUTTI_OK ||
        trouble.status <= TUTTI_OK || trouble.status > TUTTI_E_REMOTE)
        return TUTTI_OK;
    trouble.words[sizeof trouble.words - 1] = '\0';
    return tti_fail((tutti_status)trouble.status, "rank %d waits for rank %d, which has not come; another process reported: %s",
                    config->rank, rank, trouble.words);
}

/* Whether the card of somebody who has ended is there: one that is not will not come. */
static bool has_card(const tti_mesh_config *config, int rank)
{
    const tti_board *board = config->board;
    const tti_roll   roll = { .what = CARD };
    char             key[TTI_BOARD_KEY_BYTES];
    bool             there = false;

    tti_roll_key(&roll, rank, key);
    return board->has(board->context, key, tti_board_patience(board, config->port, config->deadline_ns), &there) != TUTTI_OK ||
           there; /* a board that does not answer says nothing */
}

/* Whether a launcher knows that somebody has ended who has not come. Those whose ends are told ask the board, once each. */
static tutti_status look_for_the_ended(reader *r)
{
    const tti_mesh_config *config = r->config;
    const tti_bulletin    *bulletin = tti_bulletin_heeded();
    tti_ending             ending;

    if (bulletin == NULL || config->board->heed_news == NULL)
        return TUTTI_OK;
    config->board->catch_up(config->board->context); /* first: what is put up from here on ends the next wait */
    while (r->ended < 0 && tti_bulletin_read(bulletin, r->n_endings, &ending)) {
        if (ending.rank >= 0 && ending.rank < config->n_ranks && !has_card(config, ending.rank))
            r->ended = (int)r->n_endings;
        r->n_endings++;
    }
    return r->ended >= 0 && tti_bulletin_read(bulletin, (uint32_t)r->ended, &ending)
               ? tti_bulletin_fail(bulletin, &ending, config->rank, config->n_ranks)
               : TUTTI_OK;
}

static tutti_status look_why(void *ctx, int rank)
{
    reader      *r = ctx;
    tutti_status st = look_for_the_ended(r);

    return st == TUTTI_OK ? look_for_trouble(r->config, rank) : st;
}

/* The board is gone, as its host ended before this rank had heard why: somebody who had not come, as far as is known here. */
static tutti_status name_the_ended(const tti_mesh_config *config, const tti_bulletin *bulletin, int n_come, tutti_status st)
{
    tti_ending ending;
    uint32_t   i;

    for (i = 0; tti_bulletin_read(bulletin, i, &ending); i++)
        if (ending.rank >= n_come && ending.rank < config->n_ranks && ending.rank != config->rank)
            return tti_bulletin_fail(bulletin, &ending, config->rank, config->n_ranks);
    return st;
}

/* Read everybody's cards, and end when somebody is known to have ended without leaving one. */
static tutti_status read_cards(const tti_mesh_config *config, const tti_roll *roll, tti_card *cards, int *n_out)
{
    const tti_bulletin *bulletin = tti_bulletin_heeded();
    const tti_board    *board = roll->board;
    const bool          heeds = bulletin != NULL && board->heed_news != NULL;
    tutti_status        st;

    if (heeds)
        board->heed_news(board->context, tti_bulletin_news(bulletin));
    st = tti_roll_read(roll, config->deadline_ns, cards, n_out);
    if (!heeds)
        return st;
    board->heed_news(board->context, NULL);
    return st == TUTTI_E_NETWORK ? name_the_ended(config, bulletin, *n_out, st) : st;
}

tutti_status tti_cards_exchange(const tti_mesh_config *config, const tti_card *own, tti_card *cards)
{
    const int64_t  start = tti_port_now(config->port);
    reader         r = { .config = config, .cards = cards, .ended = -1 };
    const tti_roll roll = { .port = config->port, .board = config->board, .what = CARD, .n = config->n_ranks,
                            .bytes = sizeof *cards, .come = check_card, .awaited = look_why, .ctx = &r, .look_ms = LOOK_MS,
                            .look_most_ms = LOOK_MOST_MS };
    char           key[TTI_BOARD_KEY_BYTES];
    tutti_status   st;
    int            n = 0;

    tti_roll_key(&roll, config->rank, key);
    st = config->board->put(config->board->context, key, own, sizeof *own, config->deadline_ns);
    if (st == TUTTI_E_STATE)
        return tti_fail(TUTTI_E_ARG,
                        "rank %d has joined this world already\n"
                        "  next: give every process a rank of its own; with file://, remove a left-over file",
                        config->rank);
    if (st == TUTTI_OK)
        st = read_cards(config, &roll, cards, &n);
    if (st == TUTTI_E_TIMEOUT)
        return name_the_missing(config, &roll, (tti_port_now(config->port) - start) / TTI_MS);
    return st;
}

tti_addr tti_card_addr(const tti_card *card)
{
    tti_addr addr = { .family = card->family == 4 ? TTI_ADDR_IP4 : TTI_ADDR_IP6, .port = card->tcp_port,
                      .scope = card->scope };

    memcpy(addr.ip, card->ip, sizeof addr.ip);
    return addr;
}
