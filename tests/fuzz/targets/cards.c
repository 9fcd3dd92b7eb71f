/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cards.c - what members leave on the board for each other before they can talk.
 *
 * How     The store behind the board holds the input: cards of four members, whole or not, and a note of somebody who could not join.
 *         A card may be an honest one of which some bytes were changed. Time passes with every wait. The input's size says whether a
 *         launcher tells that somebody has ended, whether the board goes away, whether this rank has been here before, and whether
 *         the ranks of a host read together: then the input also has what a clerk of its host has left, and the notes of its scribe.
 * Holds   Cards that were exchanged have names that end, and are of the rank and the world that they say. A clerk has a name that ends, and is another
 *         rank of this host. */
#include "fuzz/fuzz.h"

#include <unistd.h>
#include <tutti/private.h>
#include "transport/card.h"
#include "transport/scribe.h"
#include "watch/bulletin.h"
#include "watch/trouble.h"

enum { RANKS = 4, RANK = 1, NOTES = 3 };

typedef struct shelf {
    tti_port port; /* first */
    int64_t  now_ns;
    uint32_t dice;
    uint8_t  cards[RANKS][sizeof(tti_card)];
    size_t   bytes[RANKS]; /* of each, 0: it has not come */
    uint8_t  trouble[sizeof(tti_trouble)];
    bool     has_trouble;
    uint8_t  clerk[sizeof(tti_clerk)];
    size_t   clerk_bytes; /* 0: this rank is it */
    uint8_t  notes[NOTES][sizeof(tti_scribe_note)];
    int      n_notes;
    bool     is_ours_taken, goes_away;
} shelf;

static int64_t shelf_now(tti_port *port)
{
    return ((shelf *)port)->now_ns;
}

static void shelf_random(tti_port *port, void *out, size_t bytes)
{
    shelf   *s = (shelf *)port;
    uint8_t *at = out;

    for (; bytes > 0; bytes--)
        *at++ = (uint8_t)(s->dice = s->dice * 1103515245 + 12345) >> 8;
}

static const tti_port_ops shelf_ops = { .name = "shelf", .now_ns = shelf_now, .random = shelf_random };

static tutti_status put(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    const shelf *s = context;
    const bool   is_card = strncmp(key, "card/", 5) == 0, is_clerk = strncmp(key, "clerk/", 6) == 0;

    (void)data;
    (void)deadline_ns;
    TT_MUST(strlen(key) < TTI_BOARD_KEY_BYTES);
    TT_MUST(bytes == (is_card ? sizeof(tti_card) : is_clerk ? sizeof(tti_clerk) : sizeof(tti_scribe_note)));
    return (is_card && s->is_ours_taken) || (is_clerk && s->clerk_bytes > 0) ? tti_fail(TUTTI_E_STATE, "'%s' is there", key) : TUTTI_OK;
}

/* Which piece a key names: its bytes; NULL: it has not come. */
static const uint8_t *find(const shelf *s, const char *key, size_t *bytes_out)
{
    const char *slash = strrchr(key, '/');
    const int   rank = slash != NULL ? atoi(slash + 1) : 0;

    if (strcmp(key, TTI_TROUBLE_KEY) == 0) {
        *bytes_out = sizeof s->trouble;
        return s->has_trouble ? s->trouble : NULL;
    }
    if (strncmp(key, "clerk/", 6) == 0) {
        *bytes_out = s->clerk_bytes;
        return s->clerk;
    }
    if (strncmp(key, "hand/", 5) == 0) {
        const int i = atoi(strchr(key + 5, '/') + 1);

        *bytes_out = sizeof s->notes[0];
        return i < s->n_notes ? s->notes[i] : NULL;
    }
    TT_MUST(slash != NULL && rank >= 0 && rank < RANKS);
    *bytes_out = s->bytes[rank];
    return s->bytes[rank] > 0 ? s->cards[rank] : NULL;
}

static tutti_status get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    shelf         *s = context;
    size_t         have = 0;
    const uint8_t *piece = find(s, key, &have);

    if (piece == NULL) {
        s->now_ns = deadline_ns > s->now_ns ? deadline_ns : s->now_ns;
        if (s->goes_away)
            return tti_fail(TUTTI_E_NETWORK, "the board is gone");
        return tti_fail(TUTTI_E_TIMEOUT, "'%s' did not come", key);
    }
    if (have != bytes)
        return tti_fail(TUTTI_E_STORE, "'%s' has %zu bytes", key, have);
    memcpy(out, piece, bytes);
    return TUTTI_OK;
}

static tutti_status has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    size_t bytes;

    (void)deadline_ns;
    *there_out = find(context, key, &bytes) != NULL;
    return TUTTI_OK;
}

static tutti_status get_all(void *context, const char *const *keys, int n, void *out, size_t bytes, int64_t deadline_ns)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = get(context, keys[i], (uint8_t *)out + (size_t)i * bytes, bytes, deadline_ns);
    return st;
}

static tutti_status has_all(void *context, const char *const *keys, int n, int64_t deadline_ns, bool *all_out)
{
    int i;

    *all_out = true;
    for (i = 0; i < n && *all_out; i++)
        (void)has(context, keys[i], deadline_ns, all_out);
    return TUTTI_OK;
}

static void heed_news(void *context, const _Atomic uint32_t *news)
{
    (void)context;
    (void)news;
}

static void catch_up(void *context)
{
    (void)context;
}

/* What a launcher tells: that a rank has ended. NULL: nothing. */
static const tti_bulletin *bulletin_of(int which)
{
    static tti_bulletin *pages[RANKS];
    const tti_ending     ending = { .version = TTI_ENDING_VERSION, .rank = which, .signal = 9, .pid = 4711, .host = "host" };
    int                  fd = -1;

    if (which >= RANKS)
        return NULL;
    if (pages[which] == NULL) {
        TT_MUST(tti_bulletin_make(RANKS, RANKS, &pages[which], &fd) == TUTTI_OK);
        close(fd);
        tti_bulletin_post(pages[which], &ending);
    }
    return pages[which];
}

/* An honest card of rank, then some of its bytes changed; or whatever comes. */
static void make_card(shelf *s, int rank, tt_input *in, const tti_mesh_config *config)
{
    const uint8_t   how = (uint8_t)tt_take(in, 1);
    tti_mesh_config theirs = *config;
    tti_card        card;
    tt_input        part;
    int             n;

    theirs.rank = rank;
    s->bytes[rank] = sizeof card;
    if (how == 0xff) {
        s->bytes[rank] = 0;
        return;
    }
    if (how >= 0xf0) {
        part = tt_take_part(in, sizeof card);
        memcpy(s->cards[rank], part.at, part.left);
        s->bytes[rank] = how == 0xfe ? part.left : sizeof card;
        return;
    }
    tti_card_begin(&card, &theirs);
    memcpy(s->cards[rank], &card, sizeof card);
    for (n = 0; n < (how & 7); n++) {
        const size_t at = (size_t)tt_take(in, 2) % sizeof card;

        s->cards[rank][at] = (uint8_t)tt_take(in, 1);
    }
}

/* An honest clerk of this host, some of its bytes changed, and notes, of which the first bytes may be right. */
static void make_clerk(shelf *s, tt_input *in, const tti_card *own)
{
    const uint8_t   how = (uint8_t)tt_take(in, 1);
    tti_clerk       clerk = { .magic = UINT32_C(0x6b726c63), .version = TTI_CARD_VERSION, .size = sizeof clerk,
                              .rank = (int32_t)(how % RANKS), .local_name = "tutti-clerk" };
    tti_scribe_note note = { .magic = UINT32_C(0x65746f6e), .version = 1 };
    int             n;

    memcpy(clerk.host_hint, own->host_hint, sizeof clerk.host_hint);
    memcpy(s->clerk, &clerk, sizeof clerk);
    s->clerk_bytes = how >= 0xf0 ? how - 0xf0u : sizeof clerk;
    for (n = 0; n < (how >> 2 & 3); n++) {
        const size_t at = (size_t)tt_take(in, 2) % sizeof clerk;

        s->clerk[at] = (uint8_t)tt_take(in, 1);
    }
    for (s->n_notes = 0; s->n_notes < NOTES && in->left > 0; s->n_notes++) {
        tt_input part;

        note.word = (uint16_t)tt_take(in, 1);
        note.n = (int32_t)(int8_t)tt_take(in, 1);
        memcpy(s->notes[s->n_notes], &note, sizeof note);
        part = tt_take_part(in, note.word >= 8 ? sizeof note : 0);
        memcpy(s->notes[s->n_notes], part.at, part.left);
    }
}

static void check_clerk(const tti_clerk *clerk, const tti_card *own, bool unread)
{
    TT_MUST(clerk->rank >= -1 && clerk->rank < RANKS);
    TT_MUST(!unread || (clerk->rank >= 0 && clerk->rank != RANK));
    if (clerk->rank < 0)
        return;
    TT_MUST(memchr(clerk->local_name, '\0', sizeof clerk->local_name) != NULL);
    TT_MUST(memcmp(clerk->host_hint, own->host_hint, sizeof own->host_hint) == 0);
}

static void check(const tti_card *cards)
{
    int r;

    for (r = 0; r < RANKS; r++) {
        const tti_addr addr = tti_card_addr(&cards[r]);

        TT_MUST(cards[r].rank == r && cards[r].n_ranks == RANKS && cards[r].size == sizeof(tti_card));
        TT_MUST(memchr(cards[r].local_name, '\0', sizeof cards[r].local_name) != NULL);
        TT_MUST(memchr(cards[r].host_name, '\0', sizeof cards[r].host_name) != NULL);
        TT_MUST(addr.family == TTI_ADDR_IP4 || addr.family == TTI_ADDR_IP6);
        (void)tti_card_same_process(&cards[0], &cards[r]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input        in = tt_input_of(data, size);
    shelf           s = { .port = { &shelf_ops }, .now_ns = TTI_SECOND, .dice = 1, .goes_away = size / 4 % 3 == 1, .is_ours_taken = size % 61 == 60 };
    const bool      at_once = size % 4 >= 2;
    const tti_board board = { .context = &s, .put = put, .get = get, .has = has, .get_all = at_once ? get_all : NULL,
                              .has_all = at_once ? has_all : NULL, .heed_news = heed_news, .catch_up = catch_up };
    tti_mesh_config config = { .port = &s.port, .board = &board, .rank = RANK, .n_ranks = RANKS, .listen_host = "127.0.0.1",
                               .tcp_only = size % 2 == 1, .together_from = size % 5 == 4 ? 2 : RANKS + 1,
                               .deadline_ns = 60 * TTI_SECOND };
    tti_card        own, cards[RANKS];
    tti_clerk       clerk;
    bool            unread = false;
    int             r;

    tti_card_begin(&own, &config);
    for (r = 0; r < RANKS; r++)
        make_card(&s, r, &in, &config);
    if (config.together_from <= RANKS)
        make_clerk(&s, &in, &own);
    s.has_trouble = in.left > 0;
    if (s.has_trouble)
        memcpy(s.trouble, in.at, in.left < sizeof s.trouble ? in.left : sizeof s.trouble);
    tti_bulletin_heed(bulletin_of((int)(size / 3 % (RANKS + 2))));
    if (tti_cards_exchange(&config, &own, cards, &clerk, &unread) == TUTTI_OK) {
        check_clerk(&clerk, &own, unread);
        if (!unread)
            check(cards);
    } else {
        TT_MUST(strlen(tutti_last_error()) > 0);
    }
    tti_bulletin_heed(NULL);
    return 0;
}
