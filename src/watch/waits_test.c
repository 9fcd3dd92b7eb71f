/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits_test.c - what is shown of a wait is read as it was shown, or not at all; which calls need everybody's part. */
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
                       .alone = i % 2 == 0, .answers_group = i, .answers_seq = i };
}

static void assert_is(const tti_wait *wait, uint32_t i)
{
    const tti_wait want = wait_number(i);

    assert_true(wait->note.word == want.note.word && wait->note.what == want.note.what);
    assert_true(wait->note.count == want.note.count && wait->note.seq == want.note.seq);
    assert_true(wait->group == want.group && wait->needs == want.needs && wait->alone == want.alone);
    assert_true(wait->answers_group == want.answers_group && wait->answers_seq == want.answers_seq);
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
        cmocka_unit_test(some_calls_need_everybody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
