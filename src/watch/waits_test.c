/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits_test.c - what is shown of a wait is read as it was shown, or not at all; which two waits are a circle; which calls need
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
    return (tti_wait){ .note = { .word = i, .what = i, .count = i, .seq = i + 1 }, .group = i, .needs = (int32_t)(i % 7) - 1,
                       .alone = i % 2 == 0, .answers_group = i, .answers_seq = i, .sent = i, .taken = i };
}

static void assert_is(const tti_wait *wait, uint32_t i)
{
    const tti_wait want = wait_number(i);

    assert_true(wait->note.word == want.note.word && wait->note.what == want.note.what);
    assert_true(wait->note.count == want.note.count && wait->note.seq == want.note.seq);
    assert_true(wait->group == want.group && wait->needs == want.needs && wait->alone == want.alone);
    assert_true(wait->answers_group == want.answers_group && wait->answers_seq == want.answers_seq);
    assert_true(wait->sent == want.sent && wait->taken == want.taken);
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

enum { CALLS = 7, MESSAGES = 8 /* groups */ };

/* I am in call 4 of a group, and you, as you said, in call 9 of another one; you have not come to mine. */
static tti_wait my_call(void)
{
    return (tti_wait){ .note.seq = 4, .group = CALLS, .needs = 1, .alone = true };
}

static tti_wait your_call(void)
{
    return (tti_wait){ .note.seq = 9, .group = MESSAGES, .needs = 0, .alone = true, .answers_group = CALLS, .answers_seq = 4 };
}

static void two_calls_are_a_circle(void **state)
{
    tti_wait mine = my_call(), yours = your_call();

    (void)state;
    assert_true(tti_waits_close(&mine, 3, &yours)); /* messages say nothing of calls */
    yours.answers_seq = 3;
    assert_false(tti_waits_close(&mine, 3, &yours)); /* you have come to mine since, or I was in another one */
    yours = your_call();
    yours.answers_group = MESSAGES;
    assert_false(tti_waits_close(&mine, 3, &yours));
    yours = your_call();
    yours.alone = false;
    assert_false(tti_waits_close(&mine, 3, &yours));
    yours.alone = true;
    mine.alone = false;
    assert_false(tti_waits_close(&mine, 3, &yours));
}

/* I receive, and have taken 5 of your messages; you have sent as many as you say. */
static void a_message_that_was_sent_is_no_circle(void **state)
{
    tti_wait mine = { .note.seq = TTI_WAIT_RECEIVE | 2, .group = MESSAGES, .needs = 1, .alone = true, .taken = 5 };
    tti_wait yours = { .note.seq = 9, .group = CALLS, .needs = 0, .alone = true, .answers_group = MESSAGES,
                       .answers_seq = TTI_WAIT_RECEIVE | 2, .sent = 5 };

    (void)state;
    assert_true(tti_waits_close(&mine, 0, &yours));
    yours.sent = 6; /* one is on its way, or lost with a connection */
    assert_false(tti_waits_close(&mine, 0, &yours));
    mine.taken = 6; /* it has come, and was for another receive */
    assert_true(tti_waits_close(&mine, 0, &yours));
    yours.answers_seq = TTI_WAIT_RECEIVE | 1; /* it was for the receive before this one */
    assert_false(tti_waits_close(&mine, 0, &yours));
}

/* You receive, and had taken 5 of my messages when you said so. */
static void a_message_that_has_not_come_is_no_circle(void **state)
{
    tti_wait mine = my_call();
    tti_wait yours = { .note.seq = TTI_WAIT_RECEIVE | 2, .group = MESSAGES, .needs = 0, .alone = true,
                       .answers_group = CALLS, .answers_seq = 4, .taken = 5 };

    (void)state;
    assert_true(tti_waits_close(&mine, 5, &yours));
    assert_false(tti_waits_close(&mine, 6, &yours)); /* I had sent one that you had not seen then */
    assert_false(tti_waits_close(&mine, 4, &yours));
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
        cmocka_unit_test(some_calls_need_everybody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
