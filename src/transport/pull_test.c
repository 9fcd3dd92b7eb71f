/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pull_test.c
 * Goal    both ends of an offer agree about every byte, however it ends.
 * Method  both ends in this process, whose own memory is read; every order of their steps that matters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "transport/shm/bulk_ring.h"
#include "transport/shm/pull.h"

enum { BYTES = 3 * 512 * 1024 + 5000, PIECE = 512 * 1024 };

typedef struct ends {
    tti_offer_word word;
    tti_offerer    sender;
    tti_puller     receiver;
    uint8_t       *from, *to;
    uint8_t        token[16];
    tti_proof      proof;
} ends;

static void begin(ends *e)
{
    size_t i;

    memset(e, 0, sizeof *e);
    memset(e->token, 7, sizeof e->token);
    e->sender.word = e->receiver.word = &e->word;
    e->receiver.pid = getpid();
    e->proof = (tti_proof){ (uint64_t)(uintptr_t)e->token, e->token, sizeof e->token };
    e->from = malloc(BYTES);
    e->to = calloc(1, BYTES);
    assert_non_null(e->from);
    assert_non_null(e->to);
    for (i = 0; i < BYTES; i++)
        e->from[i] = (uint8_t)(i * 31 + (i >> 12));
}

static void end(ends *e)
{
    free(e->from);
    free(e->to);
}

static void offer(ends *e)
{
    tti_offer_begin(&e->sender, BYTES);
    tti_pull_begin(&e->receiver, (uint64_t)(uintptr_t)e->from, &e->proof);
}

static void all_is_taken(void **state)
{
    size_t   at = 0;
    uint64_t told = 0;
    ends     e;
    int      round;

    (void)state;
    begin(&e);
    for (round = 0; round < 3; round++) {
        offer(&e);
        assert_true(e.receiver.open);
        for (at = told = 0; at < BYTES;) {
            const int64_t got = tti_pull(&e.receiver, e.to + at, BYTES - at);

            assert_true(got > 0 && got <= PIECE);
            at += (size_t)got;
            told += tti_offer_progress(&e.sender);
            assert_int_equal(told, at);
        }
        assert_false(e.sender.open);
        assert_memory_equal(e.from, e.to, BYTES);
        memset(e.to, 0, BYTES);
    }
    end(&e);
}

static void what_is_withdrawn_is_not_counted(void **state)
{
    uint64_t told;
    ends     e;

    (void)state;
    begin(&e);
    offer(&e);
    assert_int_equal(tti_pull(&e.receiver, e.to, BYTES), PIECE);
    tti_offer_retract(&e.sender);
    memset(e.from, 0, BYTES); /* its user has it back */
    assert_int_equal(tti_pull(&e.receiver, e.to + PIECE, BYTES - PIECE), 0);
    assert_false(e.receiver.open);
    told = tti_offer_progress(&e.sender);
    assert_int_equal(told, PIECE);
    assert_int_equal(tti_offer_progress(&e.sender), 0);
    end(&e);
}

/* The receiver is still at the old offer when the next one stands. */
static void a_late_step_leaves_the_next_offer_alone(void **state)
{
    ends e;

    (void)state;
    begin(&e);
    offer(&e);
    tti_offer_retract(&e.sender);
    tti_offer_begin(&e.sender, BYTES);
    assert_int_equal(tti_pull(&e.receiver, e.to, BYTES), 0);
    assert_int_equal(tti_offer_progress(&e.sender), 0);
    assert_true(e.sender.open);
    tti_pull_begin(&e.receiver, (uint64_t)(uintptr_t)e.from, &e.proof);
    assert_int_equal(tti_pull(&e.receiver, e.to, BYTES), PIECE);
    assert_int_equal(tti_offer_progress(&e.sender), PIECE);
    end(&e);
}

static void an_offer_that_nobody_was_told_of_does_not_count(void **state)
{
    ends e;
    int  i;

    (void)state;
    begin(&e);
    for (i = 0; i < 3; i++) {
        tti_offer_begin(&e.sender, BYTES);
        tti_offer_undo(&e.sender);
    }
    offer(&e);
    assert_int_equal(tti_pull(&e.receiver, e.to, BYTES), PIECE);
    assert_int_equal(tti_offer_progress(&e.sender), PIECE);
    end(&e);
}

static void refused(ends *e)
{
    assert_false(e->receiver.open);
    assert_int_equal(tti_offer_progress(&e->sender), 0);
    assert_false(e->sender.open);
    assert_true(e->sender.refused);
}

static void who_cannot_be_proved_is_not_read(void **state)
{
    uint8_t other[16] = { 1 };
    ends    e;

    (void)state;
    begin(&e);
    e.proof.expected = other;
    offer(&e);
    refused(&e);
    end(&e);
    begin(&e);
    e.receiver.pid = 0;
    offer(&e);
    refused(&e);
    end(&e);
}

static void memory_that_is_not_there_is_refused(void **state)
{
    ends e;

    (void)state;
    begin(&e);
    tti_offer_begin(&e.sender, BYTES);
    tti_pull_begin(&e.receiver, 4096, &e.proof);
    assert_true(e.receiver.open);
    assert_int_equal(tti_pull(&e.receiver, e.to, BYTES), 0);
    refused(&e);
    end(&e);
}

/* On shared cores a sender has better things to do than to wait for whoever pulls, as long as the ring has room for all. */
static void what_fits_into_a_ring_is_not_waited_for(void **state)
{
    const size_t         ring = tti_bulk_size(8), least = tti_bulk_size(1024);
    const tti_pull_sizes shared = tti_pull_sizes_of(false, ring), crowd = tti_pull_sizes_of(false, least);

    (void)state;
    assert_true(shared.min > ring && shared.max > shared.min);
    assert_true(crowd.min > least && crowd.min < shared.min);
    assert_true(tti_pull_sizes_of(true, ring).min < ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_into_a_ring_is_not_waited_for),
        cmocka_unit_test(all_is_taken),
        cmocka_unit_test(what_is_withdrawn_is_not_counted),
        cmocka_unit_test(a_late_step_leaves_the_next_offer_alone),
        cmocka_unit_test(an_offer_that_nobody_was_told_of_does_not_count),
        cmocka_unit_test(who_cannot_be_proved_is_not_read),
        cmocka_unit_test(memory_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
