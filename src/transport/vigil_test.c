/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vigil_test.c
 * Goal    who waits for pieces of others gives up for an ending that leaves it waiting for ever, and for none else; and for
 *         what another has given up for, whose words go before what may have come of it.
 * Method  a board in memory, with what a store has seen, and a launcher's bulletin, on one thread: rank 0 of four looks while rank 1 is awaited. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "transport/trouble.h"
#include "transport/vigil.h"
#include "watch/acquaintance.h"
#include "watch/bulletin.h"

enum { RANKS = 4, AWAITED = 1, GAVE_UP = AWAITED, VICTIM = 3, KEYS_MAX = 8 };

typedef struct scene {
    struct {
        char        key[TTI_BOARD_KEY_BYTES];
        tti_trouble value;
    } entries[KEYS_MAX];
    int           n;
    int           n_caught_up;
    bool          dead; /* it answers no questions */
    tti_ending    ended[KEYS_MAX]; /* as the store has seen */
    size_t        n_ended;
    tti_bulletin *bulletin;
    tti_board     board;
    tti_vigil     vigil;
} scene;

static int find(const scene *s, const char *key)
{
    int i;

    for (i = 0; i < s->n && strcmp(s->entries[i].key, key) != 0; i++)
        continue;
    return i;
}

static tutti_status put(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    scene *s = context;

    (void)deadline_ns;
    if (find(s, key) < s->n)
        return tti_fail(TUTTI_E_STATE, "key '%s' is there", key);
    snprintf(s->entries[s->n].key, sizeof s->entries[0].key, "%s", key);
    memcpy(&s->entries[s->n++].value, data, bytes);
    return TUTTI_OK;
}

static tutti_status get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    scene    *s = context;
    const int at = find(s, key);

    (void)deadline_ns;
    if (at == s->n)
        return tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come", key);
    memcpy(out, &s->entries[at].value, bytes);
    return TUTTI_OK;
}

static tutti_status has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    scene *s = context;

    (void)deadline_ns;
    if (s->dead)
        return tti_fail(TUTTI_E_NETWORK, "the board does not answer");
    *there_out = strcmp(key, TTI_ENDED_KEY) == 0 ? s->n_ended > 0 : find(s, key) < s->n;
    return TUTTI_OK;
}

static tutti_status read_ended(void *context, const char *key, void *out, size_t most, int64_t deadline_ns, size_t *bytes_out)
{
    const scene *s = context;

    (void)deadline_ns;
    assert_string_equal(key, TTI_ENDED_KEY);
    *bytes_out = s->n_ended * sizeof s->ended[0];
    assert_true(*bytes_out <= most);
    memcpy(out, s->ended, *bytes_out);
    return TUTTI_OK;
}

static void heed_news(void *context, const _Atomic uint32_t *news)
{
    (void)context;
    (void)news;
}

static void catch_up(void *context)
{
    ((scene *)context)->n_caught_up++;
}

static int set_up(void **state)
{
    static scene s;
    int          fd = -1;

    memset(&s, 0, sizeof s);
    if (tti_bulletin_make(RANKS, RANKS, &s.bulletin, &fd) != TUTTI_OK)
        return -1;
    close(fd);
    s.board = (tti_board){ .context = &s, .put = put, .get = get, .has = has, .read = read_ended, .heed_news = heed_news, .catch_up = catch_up };
    s.vigil = (tti_vigil){ .port = tti_port_system(), .board = &s.board, .rank = 0, .n_ranks = RANKS, .what = "piece",
                           .deadline_ns = TTI_FOREVER };
    tti_bulletin_heed(s.bulletin);
    tti_vigil_begin(&s.vigil);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    scene *s = *state;

    tti_vigil_end(&s->vigil);
    tti_bulletin_heed(NULL);
    tti_bulletin_close(s->bulletin);
    return 0;
}

static void leave_piece(scene *s, int rank)
{
    const tti_roll roll = { .what = s->vigil.what };
    char           key[TTI_BOARD_KEY_BYTES];

    tti_roll_key(&roll, rank, key);
    assert_int_equal(put(s, key, "", 0, 0), TUTTI_OK);
}

static void post(scene *s, int rank, int signal, int exit_code)
{
    const tti_ending ending = { .version = TTI_ENDING_VERSION, .rank = rank, .local = rank, .pid = 4710 + rank,
                                .signal = signal, .exit_code = exit_code, .host = "n1" };

    tti_bulletin_post(s->bulletin, &ending);
}

/* What is expected of a look: a status, and words where it is not TUTTI_OK. */
static void expect_look(scene *s, int awaited, tutti_status wanted, const char *words)
{
    const tutti_status st = tti_vigil_look(&s->vigil, awaited);

    assert_int_equal(st, wanted);
    if (words != NULL && strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void nothing_is_known_of_those_that_may_come(void **state)
{
    scene *s = *state;

    expect_look(s, AWAITED, TUTTI_OK, NULL);
    post(s, RANKS, SIGKILL, 0); /* no member */
    post(s, -1, SIGKILL, 0);
    post(s, 0, 0, 0); /* that is this one */
    expect_look(s, AWAITED, TUTTI_OK, NULL);
    assert_true(s->n_caught_up > 0);
}

static void who_ended_without_its_piece_is_named(void **state)
{
    scene *s = *state;

    expect_look(s, AWAITED, TUTTI_OK, NULL);
    post(s, VICTIM, SIGKILL, 0);
    expect_look(s, AWAITED, TUTTI_E_PEER, "rank 3 (host 'n1', pid 4713) was ended by signal 9");
    expect_look(s, AWAITED, TUTTI_E_PEER, "rank 3 ("); /* as often as it is asked */
}

/* Nobody can be through while somebody is missing. */
static void who_ended_behind_its_piece_is_named_while_another_is_missing(void **state)
{
    scene *s = *state;

    leave_piece(s, VICTIM);
    leave_piece(s, AWAITED);
    post(s, VICTIM, SIGKILL, 0);
    expect_look(s, AWAITED, TUTTI_OK, NULL); /* which has come since */
    expect_look(s, 2, TUTTI_E_PEER, "rank 3 (host 'n1', pid 4713)");
}

/* Others may be through with the last pieces, so that nobody may give up for it. */
static void who_ended_behind_the_last_piece_is_nobodys_loss(void **state)
{
    scene *s = *state;

    s->vigil.is_last = true;
    leave_piece(s, VICTIM);
    post(s, VICTIM, SIGKILL, 0);
    expect_look(s, AWAITED, TUTTI_OK, NULL);
    post(s, 2, SIGKILL, 0);
    expect_look(s, AWAITED, TUTTI_E_PEER, "rank 2 (");
}

/* ---- those who are known from before ---- */

static bool read_victim(void *context, uint32_t i, int *rank_out)
{
    *rank_out = VICTIM;
    return i == 0 && *(bool *)context;
}

static bool describe_victim(void *context, int rank, char *out, size_t bytes)
{
    (void)context;
    snprintf(out, bytes, "rank %d (host 'n1', pid 4713) was ended by signal 9", rank);
    return true;
}

/* As with what a launcher says: a piece that is missing counts, also another one's, but for the last. */
static void an_acquaintance_that_ended_is_named(void **state)
{
    scene                 *s = *state;
    bool                   ended = false;
    const tti_acquaintance known = { .read = read_victim, .words = describe_victim, .context = &ended };

    tti_acquaintance_heed(&known);
    expect_look(s, AWAITED, TUTTI_OK, NULL);
    ended = true;
    expect_look(s, AWAITED, TUTTI_E_PEER, "cannot be made: rank 3 (host 'n1', pid 4713) was ended by signal 9");
    s->vigil.known = (tti_endings){ .n = 0 };
    leave_piece(s, VICTIM);
    s->vigil.is_last = true;
    expect_look(s, AWAITED, TUTTI_OK, NULL);
    s->vigil.is_last = false;
    expect_look(s, AWAITED, TUTTI_E_PEER, "rank 3 (");
    tti_acquaintance_heed(NULL);
}

static void leave_trouble_of(scene *s, int rank, const char *words)
{
    tti_fail(TUTTI_E_PEER, "%s", words);
    tti_trouble_leave(&s->board, tti_port_system(), rank, TUTTI_E_PEER);
    assert_string_equal(tutti_last_error(), words);
}

static void leave_trouble(scene *s, const char *words)
{
    leave_trouble_of(s, GAVE_UP, words);
}

static void who_gave_up_has_said_why(void **state)
{
    scene *s = *state;

    leave_trouble(s, "rank 3 (host 'n1', pid 4713) is gone");
    leave_trouble(s, "rank 2 (host 'n1', pid 4712) is gone"); /* the first words stay */
    expect_look(s, AWAITED, TUTTI_E_PEER, "rank 3 (host 'n1', pid 4713) is gone");
}

/* Rank 1 ends by itself because it has given up; who is killed is a cause, whatever others say. */
static void what_was_given_up_for_goes_before_who_gave_up(void **state)
{
    scene *s = *state;

    leave_trouble(s, "rank 3 (host 'n1', pid 4713) is gone");
    post(s, AWAITED, 0, 1);
    expect_look(s, AWAITED, TUTTI_E_PEER, "reported: rank 3 (host 'n1', pid 4713) is gone");
}

static void a_signal_is_a_cause(void **state)
{
    scene *s = *state;

    leave_trouble(s, "rank 3 (host 'n1', pid 4713) is gone");
    post(s, AWAITED, SIGSEGV, 0);
    expect_look(s, AWAITED, TUTTI_E_PEER, "rank 1 (host 'n1', pid 4711) was ended by signal 11");
}

/* Of one process there are not two stories. */
static void what_others_say_of_the_same_one_adds_nothing(void **state)
{
    scene *s = *state;

    leave_trouble(s, "rank 3 (host 'n1', pid 4713) is gone");
    tti_fail(TUTTI_E_PEER, "rank 3 (host 'n1', pid 4713) has left");
    assert_int_equal(tti_trouble_explain(&s->board, tti_port_system(), TUTTI_E_PEER), TUTTI_E_PEER);
    assert_string_equal(tutti_last_error(), "rank 3 (host 'n1', pid 4713) has left");
    tti_fail(TUTTI_E_PEER, "rank 3 (host 'n1', pid 471) has left"); /* another */
    assert_int_equal(tti_trouble_explain(&s->board, tti_port_system(), TUTTI_E_PEER), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "pid 4713) is gone"));
    assert_non_null(strstr(tutti_last_error(), "seen here: rank 3 (host 'n1', pid 471) has left"));
}

/* Who gave up is gone because of what it said, and is not accused of that. */
static void who_gave_up_is_not_told_of_as_lost(void **state)
{
    scene *s = *state;

    leave_trouble(s, "rank 3 (host 'n1', pid 4713) is gone");
    tti_fail(TUTTI_E_PEER, "rank 1 left while shared memory was exchanged");
    assert_int_equal(tti_trouble_explain(&s->board, tti_port_system(), TUTTI_E_PEER), TUTTI_E_PEER);
    assert_string_equal(tutti_last_error(), "rank 1 has given up, and reported: rank 3 (host 'n1', pid 4713) is gone");
    tti_fail(TUTTI_E_PEER, "rank 12 left while shared memory was exchanged"); /* another */
    assert_int_equal(tti_trouble_explain(&s->board, tti_port_system(), TUTTI_E_PEER), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "seen here: rank 12 left"));
}

/* Nor who gave up behind it, whose words are not there: the first ones stay. */
static void who_gave_up_later_is_not_told_of_as_lost(void **state)
{
    scene *s = *state;

    leave_trouble(s, "rank 3 (host 'n1', pid 4713) is gone");
    tti_fail(TUTTI_E_PEER, "cannot receive shared memory from rank 2: Connection reset by peer");
    assert_int_equal(tti_trouble_explain(&s->board, tti_port_system(), TUTTI_E_PEER), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "seen here: cannot receive shared memory from rank 2"));
    leave_trouble_of(s, 2, "rank 3 has ended before it came to the others of this host");
    tti_fail(TUTTI_E_PEER, "cannot receive shared memory from rank 2: Connection reset by peer");
    assert_int_equal(tti_trouble_explain(&s->board, tti_port_system(), TUTTI_E_PEER), TUTTI_E_PEER);
    assert_string_equal(tutti_last_error(), "rank 1 has given up, and reported: rank 3 (host 'n1', pid 4713) is gone");
    tti_fail(TUTTI_E_PEER, "rank 21 left while shared memory was exchanged"); /* another, and one that is none */
    assert_int_equal(tti_trouble_explain(&s->board, tti_port_system(), TUTTI_E_PEER), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "seen here: rank 21 left"));
}

/* Who is awaited may wait for the one that was given up for, and is not told of beside it. */
static void who_is_awaited_is_not_named_where_a_reason_is_known(void **state)
{
    scene *s = *state;

    leave_trouble_of(s, 2, "rank 3 of this host did not come to the local socket of rank 2");
    expect_look(s, AWAITED, TUTTI_E_PEER, "which cannot be made: rank 2 reported: rank 3 of this host did not come");
    assert_null(strstr(tutti_last_error(), "rank 1"));
}

/* Without a launcher the store tells; how they ended it does not know. */
static void what_the_store_has_seen_counts_as_well(void **state)
{
    scene           *s = *state;
    const tti_ending ending = { .version = TTI_ENDING_VERSION, .flags = TTI_ENDING_UNKNOWN, .rank = VICTIM, .local = VICTIM,
                                .pid = 4713, .host = "n1" };

    s->ended[0] = s->ended[1] = ending;
    s->ended[0].rank = AWAITED;
    s->ended[0].pid = 4711;
    s->vigil.is_last = true;
    leave_piece(s, AWAITED);
    s->n_ended = 1;
    expect_look(s, 2, TUTTI_OK, NULL); /* it had come */
    s->n_ended = 2;
    expect_look(s, 2, TUTTI_E_PEER, "rank 3 (host 'n1', pid 4713) has ended, or lost its way to the store, before it joined");
    leave_trouble(s, "rank 7 (host 'n1', pid 4717) is gone"); /* for which rank 3 had given up */
    expect_look(s, 2, TUTTI_E_PEER, "reported: rank 7 (host 'n1', pid 4717) is gone");
}

static void an_ending_of_another_version_is_not_read(void **state)
{
    scene *s = *state;

    s->ended[0] = (tti_ending){ .version = TTI_ENDING_VERSION + 1, .rank = VICTIM };
    s->n_ended = 1;
    expect_look(s, AWAITED, TUTTI_OK, NULL);
}

static void a_board_that_does_not_answer_accuses_nobody(void **state)
{
    scene *s = *state;

    s->dead = true;
    post(s, VICTIM, SIGKILL, 0);
    expect_look(s, AWAITED, TUTTI_OK, NULL);
}

static void with_the_board_gone_the_ended_are_named(void **state)
{
    scene *s = *state;

    assert_int_equal(tti_vigil_name_the_ended(&s->vigil, 2, TUTTI_E_NETWORK), TUTTI_E_NETWORK);
    post(s, AWAITED, SIGKILL, 0); /* had come */
    assert_int_equal(tti_vigil_name_the_ended(&s->vigil, 2, TUTTI_E_NETWORK), TUTTI_E_NETWORK);
    post(s, VICTIM, SIGKILL, 0);
    assert_int_equal(tti_vigil_name_the_ended(&s->vigil, 2, TUTTI_E_NETWORK), TUTTI_E_PEER);
    assert_non_null(strstr(tutti_last_error(), "rank 3 ("));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_known_of_those_that_may_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_ended_without_its_piece_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_ended_behind_its_piece_is_named_while_another_is_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_ended_behind_the_last_piece_is_nobodys_loss, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_acquaintance_that_ended_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_gave_up_has_said_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_given_up_for_goes_before_who_gave_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_signal_is_a_cause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_others_say_of_the_same_one_adds_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_gave_up_is_not_told_of_as_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_gave_up_later_is_not_told_of_as_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_awaited_is_not_named_where_a_reason_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_store_has_seen_counts_as_well, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_ending_of_another_version_is_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_board_that_does_not_answer_accuses_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_the_board_gone_the_ended_are_named, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("vigil", tests, NULL, NULL);
}
