/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board_test.c
 * Goal    everybody's pieces are read in order and in few requests, whoever comes when; what is wrong with one of them is
 *         seen although others never come; who is missing is found.
 * Method  a board whose pieces come at set times of a clock that only waits move, and that counts what it is asked. */
#include "transport/board.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { RANKS = 600, LOOK_MS = 200, LOOK_MOST_MS = 800, GRACE_TRIPS = 4 };

static const int64_t NEAR_GRACE_NS = 40 * TTI_MS;

#define NEVER INT64_MAX

typedef struct fake {
    tti_port  port; /* first */
    int64_t   now;
    int64_t   comes[RANKS]; /* when */
    int64_t   cut_from, cut_until; /* it cannot be reached then */
    bool      refuses; /* instead of being silent */
    int64_t   trip_ns; /* how long an answer takes to come */
    int       n_requests, n_keys;
    /* what the reader saw */
    int          n_come, wrong; /* rank whose piece is wrong; -1: none */
    int          awaited, n_awaited, hopeless; /* the last that was; how often; whether it is in vain */
    tutti_status said;
} fake;

static int64_t fake_now(tti_port *port)
{
    return ((fake *)port)->now;
}

static const tti_port_ops clock_ops = { .now_ns = fake_now };

static int rank_of(const char *key)
{
    assert_memory_equal(key, "card/", 5);
    return atoi(key + 5);
}

/* Whether it is not reached until the deadline; time passes meanwhile. */
static bool is_cut_off(fake *f, int64_t deadline_ns)
{
    if (f->now < f->cut_from || f->now >= f->cut_until)
        return false;
    if (!f->refuses)
        f->now = deadline_ns < f->cut_until ? deadline_ns : f->cut_until;
    return f->refuses || f->now < f->cut_until;
}

static tutti_status fail_cut_off(fake *f)
{
    f->n_requests++;
    return tti_fail(TUTTI_E_NETWORK, "the board is not reached");
}

/* The answer's way takes time, and may take longer than there is. */
static bool takes_too_long(fake *f, int64_t deadline_ns)
{
    const int64_t comes_ns = f->now + f->trip_ns;

    f->now = comes_ns <= deadline_ns ? comes_ns : deadline_ns;
    return comes_ns > deadline_ns;
}

static int64_t fake_grace(void *context)
{
    const fake *f = context;

    return f->now + NEAR_GRACE_NS + GRACE_TRIPS * f->trip_ns;
}

/* All of n keys, which ask for one request. */
static tutti_status get_keys(fake *f, const char *const *keys, int n, char *out, size_t bytes, int64_t deadline_ns)
{
    int64_t last;
    int     i;

    if (is_cut_off(f, deadline_ns))
        return fail_cut_off(f);
    last = f->now;
    f->n_requests++;
    f->n_keys += n;
    for (i = 0; i < n; i++)
        if (f->comes[rank_of(keys[i])] > last)
            last = f->comes[rank_of(keys[i])];
    f->now = last <= deadline_ns ? last : deadline_ns > f->now ? deadline_ns : f->now;
    if (last > deadline_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "a key did not come");
    for (i = 0; i < n; i++) {
        const int32_t value = rank_of(keys[i]) * 3;

        assert_int_equal(bytes, sizeof value);
        memcpy(out + (size_t)i * bytes, &value, bytes);
    }
    return TUTTI_OK;
}

static tutti_status fake_get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    return get_keys(context, &key, 1, out, bytes, deadline_ns);
}

static tutti_status fake_get_all(void *context, const char *const *keys, int n, void *out, size_t bytes,
                                 int64_t deadline_ns)
{
    assert_in_range(n, 1, TTI_BOARD_KEYS_MAX);
    return get_keys(context, keys, n, out, bytes, deadline_ns);
}

static tutti_status fake_has_all(void *context, const char *const *keys, int n, int64_t deadline_ns, bool *all_out)
{
    fake *f = context;
    int   i;

    assert_in_range(n, 1, TTI_BOARD_KEYS_MAX);
    assert_true(f->now <= deadline_ns);
    if (is_cut_off(f, deadline_ns))
        return fail_cut_off(f);
    f->n_requests++;
    f->n_keys += n;
    if (takes_too_long(f, deadline_ns))
        return tti_fail(TUTTI_E_TIMEOUT, "the board did not answer in time");
    *all_out = true;
    for (i = 0; i < n; i++)
        *all_out = *all_out && f->comes[rank_of(keys[i])] <= f->now;
    return TUTTI_OK;
}

static tutti_status fake_has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    return fake_has_all(context, &key, 1, deadline_ns, there_out);
}

static tutti_status come(void *ctx, int rank)
{
    fake *f = ctx;

    assert_int_equal(rank, f->n_come++);
    return rank == f->wrong ? tti_fail(TUTTI_E_MISMATCH, "wrong") : TUTTI_OK;
}

static tutti_status awaited(void *ctx, int rank)
{
    fake *f = ctx;

    assert_int_equal(rank, f->n_come);
    f->awaited = rank;
    f->n_awaited++;
    return f->hopeless == rank ? tti_fail(TUTTI_E_PEER, "it is gone") : TUTTI_OK;
}

static void begin(fake *f)
{
    *f = (fake){ .port = { .ops = &clock_ops }, .now = TTI_SECOND, .wrong = -1, .hopeless = -1, .awaited = -1 };
}

/* Read n pieces until deadline_ms from now, with or without lists. */
static int read_roll(fake *f, int n, int64_t deadline_ms, bool lists)
{
    const tti_board board = { .context = f, .get = fake_get, .has = fake_has, .get_all = lists ? fake_get_all : NULL,
                              .has_all = lists ? fake_has_all : NULL, .grace = fake_grace };
    const tti_roll  roll = { .port = &f->port, .board = &board, .what = "card", .n = n, .bytes = sizeof(int32_t),
                             .come = come, .awaited = awaited, .ctx = f, .look_ms = LOOK_MS,
                             .look_most_ms = LOOK_MOST_MS };
    int32_t         out[RANKS];
    int             n_read = -1, i;

    f->said = tti_roll_read(&roll, f->now + deadline_ms * TTI_MS, out, &n_read);
    for (i = 0; i < n_read - (f->said == TUTTI_E_MISMATCH); i++)
        assert_int_equal(out[i], i * 3);
    assert_int_equal(n_read, f->n_come);
    return n_read;
}

static void a_request_is_for_256(void **state)
{
    static const struct { int n, requests; } of[] = { { 1, 1 }, { 2, 1 }, { 256, 1 }, { 257, 2 }, { RANKS, 3 } };
    size_t i;
    fake   f;

    (void)state;
    for (i = 0; i < sizeof of / sizeof of[0]; i++) {
        begin(&f);
        assert_int_equal(read_roll(&f, of[i].n, 1000, true), of[i].n);
        assert_int_equal(f.said, TUTTI_OK);
        assert_int_equal(f.n_requests, of[i].requests);
    }
    begin(&f);
    assert_int_equal(read_roll(&f, 40, 1000, false), 40);
    assert_int_equal(f.n_requests, 40);
}

/* Whoever comes late, and in whatever order: nothing is asked for more than a few times. */
static void late_ones_are_waited_for(void **state)
{
    int  round, i;
    fake f;

    (void)state;
    srand(7);
    for (round = 0; round < 50; round++) {
        begin(&f);
        for (i = 0; i < RANKS; i++)
            f.comes[i] = f.now + (int64_t)(rand() % 1500) * TTI_MS;
        assert_int_equal(read_roll(&f, RANKS, 5000, round % 2 == 0), RANKS);
        assert_int_equal(f.said, TUTTI_OK);
        assert_true(f.now <= TTI_SECOND + 1500 * TTI_MS + TTI_MS);
        if (round % 2 == 0)
            assert_true(f.n_requests < 100);
    }
}

static void what_is_there_is_seen_before_the_end(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.comes[599] = f.comes[300] = NEVER;
    f.wrong = 299;
    assert_int_equal(read_roll(&f, RANKS, 60000, true), 300);
    assert_int_equal(f.said, TUTTI_E_MISMATCH);
    assert_true(f.now <= TTI_SECOND + (LOOK_MS + 1) * TTI_MS);
}

static void the_first_that_is_missing_is_known(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.comes[17] = NEVER;
    assert_int_equal(read_roll(&f, RANKS, 10000, true), 17);
    assert_int_equal(f.said, TUTTI_E_TIMEOUT);
    assert_int_equal(f.now, TTI_SECOND + 10000 * TTI_MS);
    assert_int_equal(f.awaited, 17);
    assert_in_range(f.n_awaited, 10000 / LOOK_MOST_MS, 10000 / LOOK_MOST_MS + 4); /* looks became rarer */
    assert_true(f.n_requests < 40);
}

static void who_is_gone_is_given_up(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.comes[17] = NEVER;
    f.hopeless = 17;
    assert_int_equal(read_roll(&f, 20, 10000, true), 17);
    assert_int_equal(f.said, TUTTI_E_PEER);
    assert_true(f.now < TTI_SECOND + 1000 * TTI_MS);
    /* It may have left its piece just before. */
    begin(&f);
    f.comes[17] = TTI_SECOND + (LOOK_MS + 1) * TTI_MS;
    f.hopeless = 17;
    assert_int_equal(read_roll(&f, 20, 10000, true), 20);
    assert_int_equal(f.said, TUTTI_OK);
    assert_int_equal(f.n_awaited, 1);
}

/* The way to the board is cut for a while, at any moment of the reading: all of it is read. */
static void a_board_that_is_cut_off_is_asked_again(void **state)
{
    int64_t from_ms, lasts_ms;
    fake    f;
    int     i;

    (void)state;
    for (from_ms = 0; from_ms < 1600; from_ms += 50)
        for (lasts_ms = 100; lasts_ms <= 3100; lasts_ms += 600) {
            begin(&f);
            for (i = 0; i < 40; i++)
                f.comes[i] = f.now + (int64_t)(i % 15) * 100 * TTI_MS;
            f.cut_from = f.now + from_ms * TTI_MS;
            f.cut_until = f.cut_from + lasts_ms * TTI_MS;
            assert_int_equal(read_roll(&f, 40, 6000, from_ms % 100 == 0), 40);
            assert_int_equal(f.said, TUTTI_OK);
        }
}

/* One that stays away is what is told of when time is up; one that refuses is told of at once. */
static void a_board_that_is_lost_is_told_of(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.comes[3] = NEVER;
    f.cut_from = f.now + 1000 * TTI_MS;
    f.cut_until = NEVER;
    assert_int_equal(read_roll(&f, 20, 5000, true), 3);
    assert_int_equal(f.said, TUTTI_E_NETWORK);
    assert_int_equal(f.now, TTI_SECOND + 5000 * TTI_MS);
    begin(&f);
    f.cut_until = NEVER;
    f.refuses = true;
    assert_int_equal(read_roll(&f, 20, 5000, true), 0);
    assert_int_equal(f.said, TUTTI_E_NETWORK);
    assert_int_equal(f.now, TTI_SECOND);
}

/* Whoever serves the board goes because of the one that is gone, and others are about to look for it once more. */
static void why_it_was_awaited_in_vain_goes_before_a_lost_board(void **state)
{
    fake f;

    (void)state;
    begin(&f);
    f.comes[17] = NEVER;
    f.hopeless = 17;
    f.cut_from = f.now + (LOOK_MS + 1) * TTI_MS;
    f.cut_until = NEVER;
    f.refuses = true;
    assert_int_equal(read_roll(&f, 20, 10000, true), 17);
    assert_int_equal(f.said, TUTTI_E_PEER);
    assert_int_equal(f.n_awaited, 2);
}

/* Every answer takes so long that after the deadline only a few questions fit into the grace: those are asked, and no more, however
 * many it would take to know all that has come. */
static void a_board_that_is_far_has_one_grace(void **state)
{
    const int64_t deadline_ns = TTI_SECOND + 2000 * TTI_MS;
    int64_t       trip_ms;
    fake          f;

    (void)state;
    for (trip_ms = 10; trip_ms <= 400; trip_ms += 30) {
        begin(&f);
        f.comes[199] = NEVER;
        f.trip_ns = trip_ms * TTI_MS;
        assert_in_range(read_roll(&f, 200, 2000, true), 0, 199);
        assert_int_equal(f.said, TUTTI_E_TIMEOUT);
        assert_true(f.now <= deadline_ns + GRACE_TRIPS * f.trip_ns + 2 * NEAR_GRACE_NS);
    }
}

static void those_that_are_missing_are_marked(void **state)
{
    static const int gone[] = { 3, 4, 255, 256, 599 };
    fake             f;
    const tti_board  board = { .context = &f, .has = fake_has, .has_all = fake_has_all };
    const tti_roll   roll = { .port = &f.port, .board = &board, .what = "card", .n = RANKS, .bytes = 4 };
    bool             missing[RANKS];
    size_t           i;
    int              n = 0;

    (void)state;
    begin(&f);
    for (i = 0; i < sizeof gone / sizeof gone[0]; i++)
        f.comes[gone[i]] = NEVER;
    assert_true(tti_roll_missing(&roll, 0, 64, f.now + TTI_SECOND, missing));
    for (i = 0; i < RANKS; i++)
        n += missing[i];
    assert_int_equal(n, 5);
    for (i = 0; i < 5; i++)
        assert_true(missing[gone[i]]);
    assert_true(f.n_requests <= 3 + 5 * 2 * 8);
    /* No more than asked for. */
    assert_false(tti_roll_missing(&roll, 4, 2, f.now + TTI_SECOND, missing));
    assert_true(missing[4] && missing[255] && !missing[256]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_for_256),
        cmocka_unit_test(late_ones_are_waited_for),
        cmocka_unit_test(what_is_there_is_seen_before_the_end),
        cmocka_unit_test(the_first_that_is_missing_is_known),
        cmocka_unit_test(who_is_gone_is_given_up),
        cmocka_unit_test(a_board_that_is_cut_off_is_asked_again),
        cmocka_unit_test(a_board_that_is_lost_is_told_of),
        cmocka_unit_test(why_it_was_awaited_in_vain_goes_before_a_lost_board),
        cmocka_unit_test(a_board_that_is_far_has_one_grace),
        cmocka_unit_test(those_that_are_missing_are_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
