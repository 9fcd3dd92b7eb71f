/* SPDX-License-Identifier: BSD-3-Clause
 *
 * control_test.c - equal calls have equal words, different ones differ and are quoted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "watch/control.h"

static tutti_call sample(uint64_t seq)
{
    return (tutti_call){ .kind = TUTTI_CALL_ALL_REDUCE, .seq = seq, .dtype = TUTTI_F32, .op = TUTTI_SUM,
                         .root = -1, .count = 1000 };
}

static void every_field_enters_the_word(void **state)
{
    const uint64_t word = tti_call_note_of(&(tutti_call){ .kind = TUTTI_CALL_REDUCE, .seq = 7,
                                                          .dtype = TUTTI_F32, .op = TUTTI_SUM, .root = 1,
                                                          .count = 10 }).word;
    tutti_call     call = { .kind = TUTTI_CALL_REDUCE, .seq = 7, .dtype = TUTTI_F32, .op = TUTTI_SUM,
                            .root = 1, .count = 10 };
    tutti_call     other;

    (void)state;
    assert_true(tti_call_note_of(&call).word == word);
    other = call, other.kind = TUTTI_CALL_ALL_REDUCE;
    assert_true(tti_call_note_of(&other).word != word);
    other = call, other.dtype = TUTTI_F64;
    assert_true(tti_call_note_of(&other).word != word);
    other = call, other.op = TUTTI_MAX;
    assert_true(tti_call_note_of(&other).word != word);
    other = call, other.root = 0;
    assert_true(tti_call_note_of(&other).word != word);
    other = call, other.count = 20000;
    assert_true(tti_call_note_of(&other).word != word);
    other = call, other.seq = 8;
    assert_true(tti_call_note_of(&other).word != word);
    /* a factor may differ between ranks, and a broadcast has no op */
    call.op = tutti_premul_sum(2.0);
    other = call, other.op = tutti_premul_sum(3.0);
    assert_true(tti_call_note_of(&other).word == tti_call_note_of(&call).word);
}

/* Uneven parts: the same sum in other parts is another call, and the texts tell them apart. What a rank
 * gives to another in all_to_all is its own affair. */
static void sizes_of_parts_enter_where_ranks_agree_on_them(void **state)
{
    const int64_t parts[] = { 1, 2, 3 }, others[] = { 3, 2, 1 };
    tutti_call    call = { .kind = TUTTI_CALL_REDUCE_SCATTER, .seq = 9, .dtype = TUTTI_F32, .op = TUTTI_SUM,
                           .root = -1, .count = 6, .n_parts = 3, .list_counts = parts };
    tutti_call    other = call;
    tti_call_note mine = tti_call_note_of(&call), theirs;
    char          one[TTI_CALL_TEXT_MAX], two[TTI_CALL_TEXT_MAX];

    (void)state;
    assert_true(tti_call_note_of(&other).word == mine.word);
    other.list_counts = others;
    theirs = tti_call_note_of(&other);
    assert_true(theirs.word != mine.word);
    tti_call_describe(&mine, one);
    tti_call_describe(&theirs, two);
    assert_non_null(strstr(one, "reduce_scatter #9 (sum, 6 f32 in parts that differ from rank to rank, list of counts "));
    assert_string_not_equal(one, two);
    other = call, other.n_parts = 0;
    assert_true(tti_call_note_of(&other).word != mine.word);
    call.kind = other.kind = TUTTI_CALL_ALL_TO_ALL;
    call.n_parts = other.n_parts = 3;
    call.count = other.count = 0;
    other.list_counts = others;
    mine = tti_call_note_of(&call);
    assert_true(tti_call_note_of(&other).word == mine.word);
    tti_call_describe(&mine, one);
    assert_string_equal(one, "all_to_all #9 (f32)");
}

/* Segments: the same elements in other buffers are another call, and so are they in one. */
static void sizes_of_segments_enter(void **state)
{
    const tutti_segment two[] = { { .count = 4 }, { .count = 6 } }, swapped[] = { { .count = 6 }, { .count = 4 } };
    tutti_call          call = sample(11), other;
    tti_call_note       mine, theirs;
    char                one[TTI_CALL_TEXT_MAX], another[TTI_CALL_TEXT_MAX];

    (void)state;
    call.count = 10;
    call.n_segments = 2;
    call.segments = two;
    mine = tti_call_note_of(&call);
    other = call, other.segments = swapped;
    theirs = tti_call_note_of(&other);
    assert_true(theirs.word != mine.word);
    tti_call_describe(&mine, one);
    tti_call_describe(&theirs, another);
    assert_non_null(strstr(one, "all_reduce #11 (sum, 10 f32 in segments, list of counts "));
    assert_string_not_equal(one, another);
    other = call, other.n_segments = 0;
    assert_true(tti_call_note_of(&other).word != mine.word);
    /* an all_gather of parts of these sizes is no all_gather of these segments */
    call.kind = TUTTI_CALL_ALL_GATHER;
    other = call, other.n_segments = 0;
    other.n_parts = 2;
    other.list_counts = (const int64_t[]){ 4, 6 };
    assert_true(tti_call_note_of(&other).word != tti_call_note_of(&call).word);
}

/* The root of gather_v is everybody's business, sizes are only the pairs'. */
static void uneven_calls_with_a_root_agree_on_it(void **state)
{
    const int64_t parts[] = { 1, 2, 3 }, others[] = { 0, 2, 0 };
    tutti_call    call = { .kind = TUTTI_CALL_GATHER_V, .seq = 5, .dtype = TUTTI_I32, .root = 2, .n_parts = 3,
                           .list_counts = parts, .in_counts = others };
    tutti_call    other = call;
    tti_call_note mine = tti_call_note_of(&call);
    char          text[TTI_CALL_TEXT_MAX];

    (void)state;
    other.list_counts = others;
    other.in_counts = parts;
    assert_true(tti_call_note_of(&other).word == mine.word);
    other.root = 1;
    assert_true(tti_call_note_of(&other).word != mine.word);
    tti_call_describe(&mine, text);
    assert_string_equal(text, "gather_v #5 (i32, root 2)");
    other = call, other.kind = TUTTI_CALL_SCATTER_V;
    assert_true(tti_call_note_of(&other).word != mine.word);
}

/* What ranks tell each other of blocks is no number of the caller's. */
static void bits_of_blocks_have_their_name(void **state)
{
    tutti_call    call = sample(7);
    tti_call_note note;
    char          text[TTI_CALL_TEXT_MAX];

    (void)state;
    call.kind = TUTTI_CALL_ALL_REDUCE;
    call.root = -1;
    call.op = TUTTI_BOR;
    call.dtype = TUTTI_U64;
    call.count = 130;
    call.whole = TUTTI_WHOLE_BLOCK_SPARSE;
    note = tti_call_note_of(&call);
    tti_call_describe(&note, text);
    assert_string_equal(text, "all_reduce #7 (bor, 130 u64, a bit for each block) of all_reduce_block_sparse");
}

/* A step of grow_group is called by that: how many newcomers are awaited is told, and is not compared. */
static void growing_has_its_name(void **state)
{
    tutti_call    call = sample(6), other;
    tti_call_note mine, theirs;
    char          text[TTI_CALL_TEXT_MAX];

    (void)state;
    call.op = (tutti_op){ .kind = TUTTI_OP_MAX, .factor = 2 };
    call.whole = TUTTI_WHOLE_GROW;
    mine = tti_call_note_of(&call);
    tti_call_describe(&mine, text);
    assert_string_equal(text, "grow_group #6 (2 newcomers)");
    assert_int_equal(tti_call_root(&mine), -1);
    other = call, other.op.factor = 0;
    assert_true(tti_call_note_of(&other).word == mine.word);
    mine = tti_call_note_of(&other);
    tti_call_describe(&mine, text);
    assert_string_equal(text, "grow_group #6 (those that have asked)");
    other.op.factor = INT32_MAX; /* more than a note can tell */
    mine = tti_call_note_of(&other);
    tti_call_describe(&mine, text);
    assert_string_equal(text, "grow_group #6");
    other = call, other.whole = TUTTI_WHOLE_CALL;
    theirs = tti_call_note_of(&other);
    assert_true(theirs.word != mine.word);
    assert_string_equal(tti_call_difference(&theirs, &mine), "the kinds of call");
}

static void words_keep_40_bits_of_sequence(void **state)
{
    tutti_call call = sample((UINT64_C(1) << 40) + 5);
    tutti_call low = sample(5);

    (void)state;
    assert_true(tti_call_note_of(&call).word >> 24 == 5);
    assert_true(tti_call_note_of(&call).word == tti_call_note_of(&low).word);
}

static void mismatches_are_found_and_quoted(void **state)
{
    tti_call_board *board = calloc(1, sizeof *board);
    tutti_call      call = sample(3);
    tti_call_note   mine = tti_call_note_of(&call);
    tti_call_note   other;
    char            text[TTI_CALL_TEXT_MAX];

    (void)state;
    assert_false(tti_call_differs(board, &mine, &other)); /* it has not come yet */
    tti_call_publish(board, &mine);
    assert_false(tti_call_differs(board, &mine, &other));
    call.count = 20000;
    other = tti_call_note_of(&call);
    tti_call_publish(board, &other);
    memset(&other, 0, sizeof other);
    assert_true(tti_call_differs(board, &mine, &other));
    tti_call_describe(&other, text);
    assert_string_equal(text, "all_reduce #3 (sum, 20000 f32)");
    tti_call_describe(&mine, text);
    assert_string_equal(text, "all_reduce #3 (sum, 1000 f32)");
    /* the owner is further on: the ring still has the call */
    call = sample(4);
    other = tti_call_note_of(&call);
    tti_call_publish(board, &other);
    assert_true(tti_call_differs(board, &mine, &other));
    free(board);
}

/* The last calls are there, whatever their numbers; those before them are not, nor those to come. */
static void numbers_may_have_gaps(void **state)
{
    enum { CALLS = 3 * TTI_CALL_RING, GAP = TTI_CALL_RING };
    tti_call_board *board = calloc(1, sizeof *board);
    tti_call_note   note;
    int             i, k;

    (void)state;
    for (i = 1; i <= CALLS; i++) {
        const tutti_call call = sample((uint64_t)i * GAP);

        note = tti_call_note_of(&call);
        tti_call_publish(board, &note);
        for (k = 1; k <= CALLS; k++)
            assert_true(tti_call_find(board, (uint64_t)k * GAP, &note) == (k <= i && k > i - TTI_CALL_RING));
        assert_false(tti_call_find(board, (uint64_t)i * GAP - 1, &note));
    }
    free(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_may_have_gaps),
        cmocka_unit_test(every_field_enters_the_word),
        cmocka_unit_test(sizes_of_parts_enter_where_ranks_agree_on_them),
        cmocka_unit_test(sizes_of_segments_enter),
        cmocka_unit_test(uneven_calls_with_a_root_agree_on_it),
        cmocka_unit_test(growing_has_its_name),
        cmocka_unit_test(bits_of_blocks_have_their_name),
        cmocka_unit_test(words_keep_40_bits_of_sequence),
        cmocka_unit_test(mismatches_are_found_and_quoted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
