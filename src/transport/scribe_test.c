/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scribe_test.c
 * Goal    where one rank of a host reads for the others, these ask for nobody's piece, wake when it is through, and hear of what is
 *         wrong as who reads himself: who is missing, who is gone, what is wrong with a piece, that the scribe says nothing.
 * Method  a board whose pieces come at set times of a clock that only waits move, with the notes of a scribe that the test sets,
 *         or that a reading has left there. */
#include "transport/scribe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { RANKS = 600, LOOK_MS = 200, NOTES_MAX = 16, SCRIBE = 2, GRACE_MS = 50 };

#define NEVER INT64_MAX
#define PLACE UINT64_C(0xfedcba9876543210)
#define HAND  "hand/fedcba9876543210/"

typedef struct fake {
    tti_port        port; /* first */
    int64_t         now;
    int64_t         comes[RANKS]; /* when */
    tti_scribe_note notes[NOTES_MAX];
    int64_t         note_comes[NOTES_MAX];
    int             n_pieces, n_has; /* pieces that were read; questions whether one is there */
    int             n_come, wrong, hopeless;
    int             awaited; /* the last that was; -1: nobody */
    bool            leaves;  /* whoever is awaited is gone, and had left its piece just before */
} fake;

static int64_t fake_now(tti_port *port)
{
    return ((fake *)port)->now;
}

static const tti_port_ops clock_ops = { .now_ns = fake_now };

static bool is_piece(const char *key)
{
    return strncmp(key, "card/", 5) == 0;
}

/* hand/PLACE/3/0 */
static int note_of(const char *key)
{
    int i = -1, piece = -1;

    assert_memory_equal(key, HAND, strlen(HAND));
    assert_int_equal(sscanf(key + strlen(HAND), "%d/%d", &i, &piece), 2);
    assert_int_equal(piece, 0);
    assert_in_range(i, 0, NOTES_MAX - 1);
    return i;
}

static int64_t *time_of(fake *f, const char *key)
{
    return is_piece(key) ? &f->comes[atoi(key + 5)] : &f->note_comes[note_of(key)];
}

static tutti_status fake_put(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    fake     *f = context;
    const int i = note_of(key);

    (void)deadline_ns;
    if (f->note_comes[i] != NEVER)
        return tti_fail(TUTTI_E_STATE, "it is there");
    assert_int_equal(bytes, sizeof f->notes[0]);
    memcpy(&f->notes[i], data, bytes);
    f->note_comes[i] = f->now;
    return TUTTI_OK;
}

static tutti_status fake_get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    fake         *f = context;
    const int64_t comes = *time_of(f, key);
    const int32_t piece = is_piece(key) ? atoi(key + 5) : 0;

    if (comes > deadline_ns && deadline_ns > f->now)
        f->now = deadline_ns;
    if (comes > deadline_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "it did not come");
    if (comes > f->now)
        f->now = comes;
    f->n_pieces += is_piece(key);
    memcpy(out, is_piece(key) ? (const void *)&piece : &f->notes[note_of(key)], bytes);
    return TUTTI_OK;
}

static tutti_status fake_has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    fake *f = context;

    assert_true(f->now <= deadline_ns);
    f->n_has += is_piece(key);
    *there_out = *time_of(f, key) <= f->now;
    return TUTTI_OK;
}

static int64_t fake_grace(void *context)
{
    return ((fake *)context)->now + GRACE_MS * TTI_MS;
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

    assert_true(f->comes[rank] > f->now); /* who is named has not come */
    f->awaited = rank;
    if (f->leaves)
        f->comes[rank] = f->now;
    return f->leaves || f->hopeless == rank ? tti_fail(TUTTI_E_PEER, "rank %d is gone", rank) : TUTTI_OK;
}

static void begin(fake *f)
{
    int i;

    memset(f, 0, sizeof *f);
    f->port.ops = &clock_ops;
    f->now = TTI_SECOND;
    f->wrong = f->hopeless = f->awaited = -1;
    for (i = 0; i < NOTES_MAX; i++)
        f->note_comes[i] = NEVER;
}

static int64_t at_ms(int64_t ms)
{
    return TTI_SECOND + ms * TTI_MS;
}

static void comes(fake *f, int i, int64_t ms, tti_scribe_word word, int n)
{
    f->notes[i] = (tti_scribe_note){ .magic = UINT32_C(0x65746f6e), .version = 1, .word = (uint16_t)word, .n = n, .at = 4096,
                                     .nonce = 77 };
    f->note_comes[i] = at_ms(ms);
}

typedef struct reading {
    tutti_status    st;
    int             n;
    tti_scribe_note note;
    tti_scribe      scribe;
    int32_t         pieces[RANKS];
} reading;

/* As the scribe, or as another one. */
static void go(fake *f, bool as_scribe, int64_t limit_ms, reading *r)
{
    const tti_board board = { .context = f, .put = fake_put, .get = fake_get, .has = fake_has, .grace = fake_grace };
    const tti_roll  roll = { .port = &f->port, .board = &board, .what = "card", .n = RANKS, .bytes = sizeof(int32_t), .come = come,
                             .awaited = awaited, .ctx = f, .look_ms = LOOK_MS, .look_most_ms = LOOK_MS };

    *r = (reading){ .scribe = { .roll = &roll, .place = PLACE, .rank = SCRIBE }, .n = -2 };
    if (as_scribe)
        r->st = tti_scribe_read(&r->scribe, at_ms(limit_ms), r->pieces, &r->n);
    else
        r->st = tti_scribe_await(&r->scribe, at_ms(limit_ms), &r->note, &r->n);
    if (as_scribe && r->st == TUTTI_OK)
        tti_scribe_tell(&r->scribe, TTI_SCRIBE_DONE, 4096, 77);
    else if (!as_scribe && r->st == TUTTI_OK && r->note.word == TTI_SCRIBE_ALONE)
        r->st = tti_scribe_read_alone(&roll, at_ms(limit_ms), r->pieces, &r->n);
}

static void another_asks_for_no_piece(void **state)
{
    reading r;
    fake    f;

    (void)state;
    begin(&f);
    f.comes[17] = f.comes[400] = at_ms(150);
    comes(&f, 0, 150, TTI_SCRIBE_DONE, 0);
    go(&f, false, 10000, &r);
    assert_int_equal(r.st, TUTTI_OK);
    assert_int_equal(r.note.word, TTI_SCRIBE_DONE);
    assert_int_equal(r.note.at, 4096);
    assert_int_equal(r.note.nonce, 77);
    assert_int_equal(f.now, at_ms(150)); /* it woke when the note was left */
    assert_int_equal(f.n_pieces + f.n_has, 0);
}

/* What the scribe leaves is what the others follow. */
static void a_scribe_tells_how_far_it_has_come(void **state)
{
    static const int late[] = { 17, 300, 599 };
    reading          r;
    fake             f;
    int              i;

    (void)state;
    begin(&f);
    for (i = 0; i < 3; i++)
        f.comes[late[i]] = at_ms(500 + 500 * i);
    go(&f, true, 10000, &r);
    assert_int_equal(r.st, TUTTI_OK);
    assert_int_equal(r.n, RANKS);
    for (i = 0; i < RANKS; i++)
        assert_int_equal(r.pieces[i], i);
    assert_int_equal(f.now, at_ms(1500));
    for (i = 0; i < 3; i++) {
        assert_int_equal(f.notes[i].word, TTI_SCRIBE_AT);
        assert_int_equal(f.notes[i].n, late[i]);
        assert_true(f.note_comes[i] < f.comes[late[i]]);
    }
    assert_int_equal(f.notes[3].word, TTI_SCRIBE_DONE);
    assert_int_equal(f.note_comes[4], NEVER);
    /* Another one, at the same time. */
    f.now = TTI_SECOND;
    f.n_pieces = f.n_has = 0;
    f.awaited = -1;
    go(&f, false, 10000, &r);
    assert_int_equal(r.st, TUTTI_OK);
    assert_int_equal(r.note.word, TTI_SCRIBE_DONE);
    assert_int_equal(f.now, at_ms(1500));
    assert_int_equal(f.awaited, 599);
    assert_int_equal(f.n_pieces, 0);
    assert_true(f.n_has <= 4 * 1500 / LOOK_MS);
}

static void a_scribe_that_fails_says_so(void **state)
{
    reading r;
    fake    f;

    (void)state;
    begin(&f);
    f.comes[599] = NEVER;
    f.wrong = 300;
    go(&f, true, 10000, &r);
    assert_int_equal(r.st, TUTTI_E_MISMATCH);
    assert_string_equal(tutti_last_error(), "wrong");
    assert_int_equal(f.notes[0].word, TTI_SCRIBE_ALONE);
    /* Another one finds the same by itself. */
    f.n_come = 0;
    go(&f, false, 10000, &r);
    assert_int_equal(r.st, TUTTI_E_MISMATCH);
    assert_int_equal(r.n, 301);
    assert_true(f.now < at_ms(2 * LOOK_MS));
}

static void who_is_missing_is_known(void **state)
{
    reading r;
    fake    f;

    (void)state;
    begin(&f);
    f.comes[17] = at_ms(5000);
    f.comes[300] = NEVER;
    comes(&f, 0, 210, TTI_SCRIBE_AT, 17);
    go(&f, false, 5200, &r); /* the scribe has not said yet that 17 has come */
    assert_int_equal(r.st, TUTTI_E_TIMEOUT);
    assert_int_equal(r.n, 300);
    assert_int_equal(f.awaited, 17);
    assert_int_equal(f.now, at_ms(5200));
    assert_int_equal(f.n_pieces, 0);
}

static void who_is_gone_is_given_up(void **state)
{
    reading r;
    fake    f;

    (void)state;
    begin(&f);
    f.comes[300] = NEVER;
    f.hopeless = 300;
    comes(&f, 0, 210, TTI_SCRIBE_AT, 300);
    go(&f, false, 60000, &r);
    assert_int_equal(r.st, TUTTI_E_PEER);
    assert_string_equal(tutti_last_error(), "rank 300 is gone");
    assert_true(f.now <= at_ms(210 + 2 * LOOK_MS));
    /* The scribe itself has not come: nobody else is asked for. */
    begin(&f);
    f.comes[SCRIBE] = NEVER;
    f.hopeless = SCRIBE;
    go(&f, false, 60000, &r);
    assert_int_equal(r.st, TUTTI_E_PEER);
    assert_int_equal(f.awaited, SCRIBE);
}

/* One after the other is found to be gone, and has left its piece before: nobody is missing, and the scribe is silent. */
static void who_has_left_a_piece_may_be_gone(void **state)
{
    reading r;
    fake    f;

    (void)state;
    begin(&f);
    f.comes[17] = f.comes[SCRIBE] = NEVER;
    f.leaves = true;
    comes(&f, 0, LOOK_MS / 2, TTI_SCRIBE_AT, 17); /* before a look for anybody else */
    go(&f, false, 60000, &r);
    assert_int_equal(f.awaited, SCRIBE);
    assert_int_equal(r.st, TUTTI_OK);
    assert_int_equal(r.n, RANKS);
    assert_in_range(f.now, at_ms(2 * LOOK_MS), at_ms(8 * LOOK_MS));
}

/* A late one, or a long wait for somebody who is missing, is no reason; silence is, when all that was missing has come. */
static void a_silent_scribe_is_given_up(void **state)
{
    reading r;
    fake    f;

    (void)state;
    begin(&f);
    f.comes[SCRIBE] = at_ms(3000);
    comes(&f, 0, 3010, TTI_SCRIBE_DONE, 0);
    go(&f, false, 60000, &r);
    assert_int_equal(r.note.word, TTI_SCRIBE_DONE);
    assert_int_equal(f.n_pieces, 0);
    begin(&f);
    f.comes[17] = at_ms(3000);
    comes(&f, 0, 210, TTI_SCRIBE_AT, 17);
    go(&f, false, 60000, &r);
    assert_int_equal(r.st, TUTTI_OK);
    assert_int_equal(r.note.word, TTI_SCRIBE_ALONE);
    assert_int_equal(r.n, RANKS);
    assert_int_equal(f.n_pieces, RANKS);
    assert_in_range(f.now, at_ms(3000 + LOOK_MS), at_ms(3000 + 4 * LOOK_MS));
}

/* With time up, all there and the scribe silent, there is still a reading. */
static void all_that_was_there_in_time_is_read(void **state)
{
    reading r;
    fake    f;

    (void)state;
    begin(&f);
    f.comes[17] = at_ms(250);
    comes(&f, 0, 210, TTI_SCRIBE_AT, 17);
    go(&f, false, 300, &r);
    assert_int_equal(r.st, TUTTI_OK);
    assert_int_equal(r.n, RANKS);
    assert_true(f.now <= at_ms(300 + GRACE_MS));
}

/* Numbers of another process: none of them is used where it makes no sense. */
static void notes_that_make_no_sense_are_not_followed(void **state)
{
    static const int wrong[] = { -1, 0, RANKS, INT32_MAX, INT32_MIN };
    reading          r;
    fake             f;
    size_t           i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        begin(&f);
        comes(&f, 0, 10, TTI_SCRIBE_AT, wrong[i]);
        go(&f, false, 10000, &r);
        assert_int_equal(r.st, TUTTI_OK);
        assert_int_equal(r.note.word, TTI_SCRIBE_ALONE);
        assert_int_equal(r.n, RANKS);
    }
    for (i = 0; i < 3; i++) {
        begin(&f);
        comes(&f, 0, 10, i == 0 ? (tti_scribe_word)9 : TTI_SCRIBE_DONE, 0);
        f.notes[0].magic += i == 1;
        f.notes[0].version += i == 2;
        go(&f, false, 10000, &r);
        assert_int_equal(r.note.word, TTI_SCRIBE_ALONE);
        assert_int_equal(r.n, RANKS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_asks_for_no_piece),
        cmocka_unit_test(a_scribe_tells_how_far_it_has_come),
        cmocka_unit_test(a_scribe_that_fails_says_so),
        cmocka_unit_test(who_is_missing_is_known),
        cmocka_unit_test(who_is_gone_is_given_up),
        cmocka_unit_test(who_has_left_a_piece_may_be_gone),
        cmocka_unit_test(a_silent_scribe_is_given_up),
        cmocka_unit_test(all_that_was_there_in_time_is_read),
        cmocka_unit_test(notes_that_make_no_sense_are_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
