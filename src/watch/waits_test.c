/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits_test.c - what is shown of a wait is read as it was shown, or not at all; which waits are a circle; which calls need
 * everybody's part. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "watch/waits.h"

enum { SHOWN = 20000, READ = 2000 };

/* Every field tells the same number. */
static tti_wait wait_number(uint32_t i)
{
    tti_wait wait = { .note = { .word = i, .what = i, .count = i, .seq = i + 1 }, .group = i, .needs = (int32_t)(i % 7) - 1,
                      .alone = i % 2 == 0, .only = i % 3 == 0, .taken = i };
    int      k;

    for (k = 0; k < TTI_WAIT_ANSWERS; k++)
        wait.answers[k] = (tti_wait_answer){ .seq = i, .group = i, .rank = (int32_t)(i % 5000), .steps = (int)(i % 256), .sent = i };
    return wait;
}

static void assert_is(const tti_wait *wait, uint32_t i)
{
    const tti_wait want = wait_number(i);
    int            k;

    assert_true(wait->note.word == want.note.word && wait->note.what == want.note.what);
    assert_true(wait->note.count == want.note.count && wait->note.seq == want.note.seq);
    assert_true(wait->group == want.group && wait->needs == want.needs && wait->alone == want.alone);
    assert_true(wait->taken == want.taken && wait->only == want.only);
    for (k = 0; k < TTI_WAIT_ANSWERS; k++) {
        const tti_wait_answer *is = &wait->answers[k], *should = &want.answers[k];

        assert_true(is->seq == should->seq && is->group == should->group && is->rank == should->rank);
        assert_true(is->steps == should->steps && is->sent == should->sent);
    }
}

static void what_is_shown_is_read(void **state)
{
    tti_wait_board *board = calloc(1, sizeof *board);
    tti_wait        wait = wait_number(5), read;

    (void)state;
    assert_false(tti_wait_read(board, &read));
    tti_wait_show(board, &wait);
    assert_true(tti_wait_read(board, &read));
    assert_is(&read, 5);
    wait.group = UINT32_MAX;
    wait.needs = -1;
    tti_wait_show(board, &wait);
    assert_true(tti_wait_read(board, &read));
    assert_true(read.group == UINT32_MAX && read.needs == -1);
    tti_wait_hide(board);
    assert_false(tti_wait_read(board, &read));
    free(board);
}

static void *show_many(void *arg)
{
    uint32_t i;

    for (i = 0; i < SHOWN; i++) {
        const tti_wait wait = wait_number(i);

        tti_wait_show(arg, &wait);
    }
    return NULL;
}

/* One writes, one reads: what is read was shown as a whole. */
static void nothing_torn_is_read(void **state)
{
    tti_wait_board *board = calloc(1, sizeof *board);
    const tti_wait  first = wait_number(0);
    pthread_t       writer;
    int             n = 0;

    (void)state;
    tti_wait_show(board, &first);
    assert_int_equal(pthread_create(&writer, NULL, show_many, board), 0);
    while (n < READ) {
        tti_wait read;

        if (!tti_wait_read(board, &read))
            continue;
        assert_is(&read, read.group);
        n++;
    }
    pthread_join(writer, NULL);
    free(board);
}

enum { CALLS = 7, MESSAGES = 8, OTHERS = 9 /* groups */, ME = 0, YOU = 1, HE = 2 };

/* A call that needs the part of a rank. */
static tti_wait call_of(uint32_t group, uint64_t seq, int needs)
{
    return (tti_wait){ .note.seq = seq, .group = group, .needs = needs, .alone = true };
}

static tti_wait receive_of(uint64_t number, int needs, uint64_t taken)
{
    return (tti_wait){ .note.seq = TTI_WAIT_RECEIVE | number, .group = MESSAGES, .needs = needs, .alone = true, .taken = taken };
}

/* Over how many ranks own does not end before itself, by way of theirs. */
static int circle(const tti_wait *own, uint64_t sent, const tti_wait *theirs)
{
    return tti_wait_follows(theirs, own, sent) ? tti_wait_steps(own, ME, theirs) : 0;
}

static void two_calls_are_a_circle(void **state)
{
    tti_wait mine = call_of(CALLS, 4, YOU), yours = call_of(OTHERS, 9, ME);

    (void)state;
    assert_int_equal(circle(&mine, 3, &yours), 0); /* you have not said that you have not come to mine */
    tti_wait_answer_to(&yours, ME, &mine, 0);
    assert_int_equal(circle(&mine, 3, &yours), 1); /* messages say nothing of calls */
    assert_int_equal(tti_wait_steps(&mine, HE, &yours), 0);
    mine.note.seq = 5; /* that was another one */
    assert_int_equal(circle(&mine, 3, &yours), 0);
    mine = call_of(MESSAGES, 4, YOU);
    assert_int_equal(circle(&mine, 3, &yours), 0);
    mine = call_of(CALLS, 4, YOU);
    yours.alone = false;
    assert_int_equal(circle(&mine, 3, &yours), 0);
    yours.alone = true;
    mine.alone = false;
    assert_int_equal(circle(&mine, 3, &yours), 0);
}

/* I receive, and have taken 5 of your messages; you are in a call that needs me. */
static void a_message_that_was_sent_is_no_circle(void **state)
{
    tti_wait mine = receive_of(2, YOU, 5), yours = call_of(CALLS, 9, ME);

    (void)state;
    tti_wait_answer_to(&yours, ME, &mine, 6); /* one is on its way, or lost with a connection */
    assert_int_equal(circle(&mine, 0, &yours), 0);
    mine.taken = 6; /* it has come, and was for another receive */
    assert_int_equal(circle(&mine, 0, &yours), 1);
    mine.note.seq++; /* it was for the receive before this one */
    assert_int_equal(circle(&mine, 0, &yours), 0);
}

/* You receive, and had taken 5 of my messages when you said so. */
static void a_message_that_has_not_come_is_no_circle(void **state)
{
    tti_wait mine = call_of(CALLS, 4, YOU), yours = receive_of(2, ME, 5);

    (void)state;
    tti_wait_answer_to(&yours, ME, &mine, 0);
    assert_int_equal(circle(&mine, 5, &yours), 1);
    assert_int_equal(circle(&mine, 6, &yours), 0); /* I had sent one that you had not seen then */
    assert_int_equal(circle(&mine, 4, &yours), 0);
}

/* I wait for you, you for him, and he for me. */
static void three_waits_are_a_circle(void **state)
{
    tti_wait mine = call_of(CALLS, 4, YOU), yours = call_of(OTHERS, 9, HE), his = call_of(MESSAGES, 2, ME);

    (void)state;
    tti_wait_answer_to(&yours, ME, &mine, 0);
    assert_int_equal(circle(&mine, 0, &his), 0); /* what you have said has not come to him */
    tti_wait_answer_to(&his, YOU, &yours, 0);
    assert_int_equal(circle(&mine, 0, &his), 2);
    assert_int_equal(tti_wait_steps(&yours, YOU, &his), 1);
    mine.note.seq = 5;
    assert_int_equal(circle(&mine, 0, &his), 0);
}

/* The same, but you receive from him. */
static void a_message_in_a_circle_counts(void **state)
{
    tti_wait mine = call_of(CALLS, 4, YOU), yours = receive_of(1, HE, 5), his = call_of(OTHERS, 2, ME);

    (void)state;
    tti_wait_answer_to(&yours, ME, &mine, 0);
    tti_wait_answer_to(&his, YOU, &yours, 6); /* he has sent one that you had not taken: you may come to mine */
    assert_int_equal(circle(&mine, 0, &his), 0);
    his = call_of(OTHERS, 2, ME);
    yours.taken = 6;
    tti_wait_answer_to(&his, YOU, &yours, 6);
    assert_int_equal(circle(&mine, 0, &his), 2);
}

static void answers_have_little_room(void **state)
{
    tti_wait mine = call_of(CALLS, 4, YOU);
    int      rank;

    (void)state;
    for (rank = 1; rank <= 2 * TTI_WAIT_ANSWERS; rank++) {
        tti_wait theirs = call_of(OTHERS, 1, ME);

        tti_wait_answer_to(&mine, rank, &theirs, 0);
        tti_wait_answer_to(&mine, rank, &theirs, 0); /* once is enough */
    }
    for (rank = 0; rank < TTI_WAIT_ANSWERS; rank++)
        assert_int_equal(mine.answers[rank].rank, rank + 1);
}

static bool needs_all(tutti_call_kind kind, int64_t count, int n_parts)
{
    const int64_t       parts[] = { 0, count };
    const tutti_call    call = { .kind = kind, .seq = 3, .dtype = TUTTI_F32, .op = TUTTI_SUM, .root = -1, .count = count,
                                 .n_parts = n_parts, .list_counts = parts };
    const tti_call_note note = tti_call_note_of(&call);

    return tti_call_needs_all(&note);
}

static void some_calls_need_everybody(void **state)
{
    (void)state;
    assert_true(needs_all(TUTTI_CALL_BARRIER, 0, 0));
    assert_true(needs_all(TUTTI_CALL_ALL_REDUCE, 1, 0));
    assert_false(needs_all(TUTTI_CALL_ALL_REDUCE, 0, 0));
    assert_true(needs_all(TUTTI_CALL_REDUCE_SCATTER, 4, 0));
    assert_false(needs_all(TUTTI_CALL_REDUCE_SCATTER, 4, 2)); /* a part is empty */
    assert_false(needs_all(TUTTI_CALL_BROADCAST, 4, 0));
    assert_false(needs_all(TUTTI_CALL_ALL_TO_ALL, 4, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_is_read),
        cmocka_unit_test(nothing_torn_is_read),
        cmocka_unit_test(two_calls_are_a_circle),
        cmocka_unit_test(a_message_that_was_sent_is_no_circle),
        cmocka_unit_test(a_message_that_has_not_come_is_no_circle),
        cmocka_unit_test(three_waits_are_a_circle),
        cmocka_unit_test(a_message_in_a_circle_counts),
        cmocka_unit_test(answers_have_little_room),
        cmocka_unit_test(some_calls_need_everybody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
