/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card_test.c
 * Goal    who waits for cards learns from its launcher who will not come: also where the board was slow to say who had; and
 *         where the board itself is lost, that is not left out.
 * Method  a board in this process, of which a test says how it answers, with a clock that only waits move; and a bulletin whose
 *         launcher is this process, too. */
#include "transport/card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "watch/bulletin.h"

enum { RANKS = 3, OWN = 0, MISSING = 2, LIMIT_MS = 60000, SOON_MS = 20000 };

typedef struct fake {
    tti_port      port; /* first */
    int64_t       now;
    tti_card      cards[RANKS]; /* on the board where magic is set */
    int           n_asked;      /* whether a card is there */
    int           n_slow;       /* how many of the first such questions are not answered */
    bool          lost;         /* the board is gone with the next wait */
    tti_bulletin *launcher, *rank;
    int           fd;
} fake;

static int64_t fake_now(tti_port *port)
{
    return ((fake *)port)->now;
}

static void fake_random(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, 7, bytes);
}

static const tti_port_ops clock_ops = { .now_ns = fake_now, .random = fake_random };

/* -1: another key than a card's. */
static int rank_of(const char *key)
{
    return strncmp(key, "card/", 5) == 0 ? atoi(key + 5) : -1;
}

static bool has_card(const fake *f, int rank)
{
    return rank >= 0 && f->cards[rank].magic != 0;
}

static tutti_status wait_in_vain(fake *f, int64_t deadline_ns)
{
    if (f->now < deadline_ns)
        f->now = deadline_ns;
    return tti_fail(TUTTI_E_TIMEOUT, "the board does not answer");
}

static tutti_status fake_put(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    fake *f = context;

    (void)deadline_ns;
    assert_int_equal(bytes, sizeof f->cards[0]);
    memcpy(&f->cards[rank_of(key)], data, bytes);
    return TUTTI_OK;
}

static tutti_status fake_get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    fake *f = context;

    if (f->lost)
        return tti_fail(TUTTI_E_NETWORK, "the board hung up\n  next: look for it");
    if (!has_card(f, rank_of(key)))
        return wait_in_vain(f, deadline_ns);
    memcpy(out, &f->cards[rank_of(key)], bytes);
    return TUTTI_OK;
}

static tutti_status fake_has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    fake *f = context;

    if (rank_of(key) == MISSING && f->n_asked++ < f->n_slow)
        return wait_in_vain(f, deadline_ns);
    *there_out = has_card(f, rank_of(key));
    return TUTTI_OK;
}

static void fake_heed_news(void *context, const _Atomic uint32_t *news)
{
    (void)context, (void)news;
}

static void fake_catch_up(void *context)
{
    (void)context;
}

static tti_mesh_config config_of(fake *f, const tti_board *board)
{
    return (tti_mesh_config){ .port = &f->port, .board = board, .rank = OWN, .n_ranks = RANKS, .tcp_only = true,
                              .deadline_ns = f->now + LIMIT_MS * TTI_MS };
}

/* All ranks but one have left their cards. */
static void begin(fake *f)
{
    tti_mesh_config config;
    char            text[16];
    int             rank;

    *f = (fake){ .port = { .ops = &clock_ops }, .now = TTI_SECOND };
    config = config_of(f, NULL);
    for (rank = 0; rank < RANKS; rank++) {
        config.rank = rank;
        if (rank != MISSING)
            tti_card_begin(&f->cards[rank], &config);
    }
    assert_int_equal(tti_bulletin_make(RANKS, RANKS, &f->launcher, &f->fd), TUTTI_OK);
    snprintf(text, sizeof text, "%d", f->fd);
    setenv("TUTTI_LAUNCHER_FD", text, 1);
    f->rank = tti_bulletin_open();
    assert_non_null(f->rank);
}

static void tell(fake *f, int rank, int exit_code)
{
    const tti_ending ending = { .version = TTI_ENDING_VERSION, .rank = rank, .local = rank, .exit_code = exit_code, .pid = 100 + rank,
                                .host = "n1" };

    tti_bulletin_post(f->launcher, &ending);
}

static tutti_status exchange(fake *f)
{
    const tti_board       board = { .context = f, .put = fake_put, .get = fake_get, .has = fake_has,
                                    .heed_news = fake_heed_news, .catch_up = fake_catch_up };
    const tti_mesh_config config = config_of(f, &board);
    const tti_card        own = f->cards[OWN];
    tti_card              cards[RANKS];
    tti_clerk             clerk;
    bool                  unread = false;
    tutti_status          st;

    tti_bulletin_heed(f->rank);
    st = tti_cards_exchange(&config, &own, cards, &clerk, &unread);
    tti_bulletin_heed(NULL);
    return st;
}

static void free_all(fake *f)
{
    unsetenv("TUTTI_LAUNCHER_FD");
    tti_bulletin_close(f->rank);
    tti_bulletin_close(f->launcher);
    close(f->fd);
}

static void assert_said(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void who_has_ended_is_named(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    tell(&f, MISSING, 4);
    assert_int_equal(exchange(&f), TUTTI_E_PEER);
    assert_said("rank 2 (host 'n1', pid 102) ended with exit code 4 before it joined");
    assert_true(f.now < TTI_SECOND + SOON_MS * TTI_MS);
    free_all(&f);
}

/* The board has a bad moment when it is asked, and is fine later. */
static void a_slow_board_is_asked_again(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.n_slow = 2;
    tell(&f, MISSING, 4);
    assert_int_equal(exchange(&f), TUTTI_E_PEER);
    assert_true(f.n_asked > f.n_slow);
    assert_said("rank 2 (host 'n1', pid 102) ended with exit code 4 before it joined");
    assert_true(f.now < TTI_SECOND + SOON_MS * TTI_MS);
    free_all(&f);
}

/* Rank 2 may have failed for the same reason as this one. */
static void a_lost_board_is_said_beside_the_ended(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.lost = true;
    tell(&f, MISSING, 1);
    assert_int_equal(exchange(&f), TUTTI_E_PEER);
    assert_said("the board hung up; and rank 2 (host 'n1', pid 102) ended with exit code 1");
    free_all(&f);
}

/* Who is of another job has not ended this one. */
static void a_lost_board_alone_is_said(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.lost = true;
    tell(&f, RANKS, 1);
    assert_int_equal(exchange(&f), TUTTI_E_NETWORK);
    assert_said("the board hung up\n  next: look for it");
    free_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_ended_is_named),
        cmocka_unit_test(a_slow_board_is_asked_again),
        cmocka_unit_test(a_lost_board_is_said_beside_the_ended),
        cmocka_unit_test(a_lost_board_alone_is_said),
    };

    return cmocka_run_group_tests_name("card", tests, NULL, NULL);
}
