/* SPDX-License-Identifier: BSD-3-Clause
 *
 * batch_test.c
 * Goal    a batch is checked as a whole, has one work per message, and cannot deadlock; waiting for
 *         all and for any of several works, and asking without waiting, tell what happened.
 * Method  ranks as threads over a backend that keeps messages in a list. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { LONG_MS = 30000, SHORT_MS = 20, RANKS = 3 };

static void free_all(tutti_work **works, int n)
{
    int i;

    for (i = 0; i < n; i++)
        tutti_work_free(works[i]);
}

static tutti_p2p_op make_op(bool is_send, int32_t *x, int peer, int tag)
{
    return (tutti_p2p_op){ is_send, TUTTI_SPAN(x, 1), peer, tag };
}

/* ---- batches ---- */

/* Everybody exchanges with everybody; every rank has its sends and receives in another order. */
static void exchange(fake_rank *r)
{
    tutti_p2p_op ops[2 * RANKS];
    tutti_work  *works[2 * RANKS];
    int32_t      out[RANKS], in[RANKS];
    int          i, peer, n = 0;

    for (i = 1; i < r->size; i++) {
        peer = (r->rank + i) % r->size;
        out[peer] = 10 * r->rank + peer;
        in[peer] = -1;
        ops[n++] = make_op(r->rank % 2 == 0, r->rank % 2 == 0 ? &out[peer] : &in[peer], peer, 4);
        ops[n++] = make_op(r->rank % 2 == 1, r->rank % 2 == 1 ? &out[peer] : &in[peer], peer, 4);
    }
    CHECK(tutti_batch_isend_irecv(ops, n, NULL, works) == TUTTI_OK);
    memset(ops, 0xff, sizeof ops); /* the array may go */
    CHECK(tutti_wait_all(works, n, 0) == TUTTI_OK);
    for (i = 1; i < r->size; i++) {
        peer = (r->rank + i) % r->size;
        CHECK(in[peer] == 10 * peer + r->rank);
    }
    for (i = 0; i < n; i++)
        CHECK(tutti_work_status(works[i]) == TUTTI_OK);
    free_all(works, n);
}

static void test_exchange(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(RANKS, exchange, NULL), 0);
}

static void wrong_ops(fake_rank *r)
{
    int32_t      x = 1, got = 0;
    tutti_p2p_op ops[2] = { make_op(true, &x, 1 - r->rank, 0), make_op(true, &x, r->rank, 0) };
    tutti_work  *works[2] = { NULL, NULL };

    CHECK(tutti_batch_isend_irecv(ops, 0, NULL, works) == TUTTI_E_ARG);
    CHECK(tutti_batch_isend_irecv(NULL, 1, NULL, works) == TUTTI_E_ARG);
    CHECK(tutti_batch_isend_irecv(ops, 2, NULL, NULL) == TUTTI_E_ARG);
    CHECK(tutti_batch_isend_irecv(ops, 2, NULL, works) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "ops[1], isend on group") != NULL);
    CHECK(strstr(tutti_last_error(), "is this rank itself") != NULL);
    ops[1] = make_op(false, &got, 1 - r->rank, -1);
    CHECK(tutti_batch_isend_irecv(ops, 2, NULL, works) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "ops[1], irecv on group") != NULL);
    CHECK(tutti_batch_isend_irecv(ops, 2, TUTTI_NO_GROUP, works) == TUTTI_E_STATE);
    CHECK(works[0] == NULL && works[1] == NULL);
    ops[0] = make_op(true, &x, 1 - r->rank, 7);
    ops[1] = make_op(false, &got, TUTTI_ANY_SOURCE, 7);
    CHECK(tutti_batch_isend_irecv(ops, 2, NULL, works) == TUTTI_OK);
    CHECK(tutti_wait_all(works, 2, LONG_MS) == TUTTI_OK && got == 1);
    CHECK(tutti_work_source_rank(works[1]) == 1 - r->rank);
    CHECK(tutti_barrier(NULL) == TUTTI_OK); /* nothing was sent before, and the group lives */
    free_all(works, 2);
}

static void test_wrong_ops(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, wrong_ops, NULL), 0);
}

/* The second message of three cannot be posted: the first and the third go their way. */
static void half_posted(fake_rank *r)
{
    int32_t      x[3] = { 5, 6, 7 }, got = 0;
    tutti_p2p_op ops[3] = { make_op(true, &x[0], 1, 0), make_op(true, &x[1], 1, 1),
                            make_op(true, &x[2], 1, 2) };
    tutti_work  *works[3];

    if (r->rank == 0) {
        fake_fail_post(2, TUTTI_E_NOMEM);
        CHECK(tutti_batch_isend_irecv(ops, 3, NULL, works) == TUTTI_OK);
        CHECK(tutti_barrier(NULL) == TUTTI_OK); /* the posts of both ranks are counted together */
        CHECK(tutti_wait_all(works, 3, 0) == TUTTI_E_NOMEM);
        CHECK(strstr(tutti_last_error(), "told not to post") != NULL);
        CHECK(tutti_work_status(works[0]) == TUTTI_OK);
        CHECK(tutti_work_status(works[1]) == TUTTI_E_NOMEM);
        CHECK(tutti_work_status(works[2]) == TUTTI_OK);
        free_all(works, 3);
    } else {
        CHECK(tutti_barrier(NULL) == TUTTI_OK);
        CHECK(tutti_recv(TUTTI_SPAN(&got, 1), 0, 2, NULL, NULL) == TUTTI_OK && got == 7);
        CHECK(tutti_recv(TUTTI_SPAN(&got, 1), 0, 0, NULL, NULL) == TUTTI_OK && got == 5);
    }
}

static void test_half_posted(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, half_posted, NULL), 0);
}

static void non_member(fake_rank *r)
{
    const int    members[] = { 0 };
    tutti_group *group = NULL;
    int32_t      x = 1;
    tutti_p2p_op op = make_op(true, &x, 0, 0);
    tutti_work  *work = NULL;
    int          index = -5;

    CHECK(tutti_new_group(members, 1, NULL, &group) == TUTTI_OK);
    if (r->rank == 1) {
        CHECK(tutti_batch_isend_irecv(&op, 1, group, &work) == TUTTI_OK);
        CHECK(tutti_work_status(work) == TUTTI_OK);
        CHECK(tutti_wait_all(&work, 1, SHORT_MS) == TUTTI_OK);
        CHECK(tutti_wait_any(&work, 1, SHORT_MS, &index) == TUTTI_OK && index == 0);
        tutti_work_free(work);
    }
}

static void test_non_member(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, non_member, NULL), 0);
}

/* ---- waiting for several ---- */

/* Rank 0 sends tag 1, then, when told so, tag 0; rank 1 hears of them in that order. */
static void any_message(fake_rank *r)
{
    int32_t     x[2] = { -1, -1 }, y = 3;
    tutti_work *works[3] = { NULL, NULL, NULL };
    int         index = -5;

    if (r->rank == 0) {
        CHECK(tutti_send(TUTTI_SPAN(&y, 1), 1, 1, NULL) == TUTTI_OK);
        CHECK(tutti_barrier(NULL) == TUTTI_OK);
        CHECK(tutti_send(TUTTI_SPAN(&y, 1), 1, 0, NULL) == TUTTI_OK);
        return;
    }
    CHECK(tutti_wait_any(works, 3, LONG_MS, &index) == TUTTI_OK && index == -1);
    CHECK(tutti_irecv(TUTTI_SPAN(&x[0], 1), 0, 0, NULL, &works[1]) == TUTTI_OK);
    CHECK(tutti_irecv(TUTTI_SPAN(&x[1], 1), 0, 1, NULL, &works[2]) == TUTTI_OK);
    CHECK(tutti_wait_any(works, 3, LONG_MS, &index) == TUTTI_OK && index == 2);
    CHECK(tutti_work_status(works[2]) == TUTTI_OK && x[1] == 3);
    tutti_work_free(works[2]);
    works[2] = NULL;
    CHECK(tutti_work_status(works[1]) == TUTTI_E_STATE);
    CHECK(tutti_wait_any(works, 3, SHORT_MS, &index) == TUTTI_E_TIMEOUT && index == 2);
    CHECK(tutti_wait_all(works, 3, SHORT_MS) == TUTTI_E_TIMEOUT);
    CHECK(strstr(tutti_last_error(), "irecv from rank 0, tag 0") != NULL);
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
    CHECK(tutti_wait_any(works, 3, 0, &index) == TUTTI_OK && index == 1);
    CHECK(tutti_wait_all(works, 3, TUTTI_INFINITE) == TUTTI_OK && x[0] == 3);
    free_all(works, 3);
}

static void test_any_message(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, any_message, NULL), 0);
}

/* While collectives are held none has ended; afterwards the first is found. */
static void any_collective(fake_rank *r)
{
    int32_t     x[2] = { 1, 1 }, done = 1;
    tutti_work *works[2];
    int         index = -5;

    CHECK(tutti_all_reduce_async(TUTTI_SPAN(&x[0], 1), TUTTI_SUM, NULL, &works[0]) == TUTTI_OK);
    CHECK(tutti_all_reduce_async(TUTTI_SPAN(&x[1], 1), TUTTI_SUM, NULL, &works[1]) == TUTTI_OK);
    CHECK(tutti_wait_any(works, 2, SHORT_MS, &index) == TUTTI_E_TIMEOUT);
    CHECK(strstr(tutti_last_error(), "none of 2 works") != NULL);
    CHECK(tutti_work_status(works[0]) == TUTTI_E_STATE);
    CHECK(strstr(tutti_last_error(), "all_reduce #1 on group") != NULL);
    if (r->rank == 1) {
        CHECK(tutti_send(TUTTI_SPAN(&done, 1), 0, 0, NULL) == TUTTI_OK);
    } else {
        CHECK(tutti_recv(TUTTI_SPAN(&done, 1), 1, 0, NULL, NULL) == TUTTI_OK);
        fake_hold(false);
    }
    CHECK(tutti_wait_any(works, 2, LONG_MS, &index) == TUTTI_OK && index == 0 && x[0] == r->size);
    CHECK(tutti_wait_all(works, 2, LONG_MS) == TUTTI_OK && x[1] == r->size);
    free_all(works, 2);
}

static void test_any_collective(void **state)
{
    (void)state;
    fake_hold(true);
    assert_int_equal(fake_ranks(2, any_collective, NULL), 0);
}

/* The first failure in the order of works is told, after all have ended. */
static void first_failure(fake_rank *r)
{
    int32_t     x[3] = { 1, 1, 1 };
    tutti_work *works[3];
    int         i;

    for (i = 0; i < 3; i++)
        CHECK(tutti_all_reduce_async(TUTTI_SPAN(&x[i], 1), TUTTI_SUM, NULL, &works[i]) == TUTTI_OK);
    CHECK(tutti_wait_all(works, 3, 0) == TUTTI_E_BACKEND);
    CHECK(strstr(tutti_last_error(), "fake: told to fail at 2") != NULL);
    CHECK(strstr(tutti_last_error(), "finished") == NULL); /* not what the third one says */
    CHECK(tutti_work_status(works[0]) == TUTTI_OK && x[0] == r->size);
    CHECK(tutti_work_status(works[2]) == TUTTI_E_BACKEND);
    free_all(works, 3);
}

static void test_first_failure(void **state)
{
    (void)state;
    fake_fail_at(2, TUTTI_E_BACKEND);
    assert_int_equal(fake_ranks(2, first_failure, NULL), 0);
}

static void test_wrong_lists(void **state)
{
    tutti_work *work = NULL;
    int         index = 3;

    (void)state;
    assert_int_equal(tutti_wait_all(NULL, 1, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_wait_all(&work, -1, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_wait_all(&work, 1, -2), TUTTI_E_ARG);
    assert_int_equal(tutti_wait_all(NULL, 0, 0), TUTTI_OK);
    assert_int_equal(tutti_wait_any(&work, 1, -2, &index), TUTTI_E_ARG);
    assert_int_equal(tutti_wait_any(&work, 1, 0, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_work_status(NULL), TUTTI_E_ARG);
    assert_int_equal(index, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_exchange, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_ops, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_half_posted, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_non_member, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_any_message, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_any_collective, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_first_failure, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_lists, fake_setup, fake_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
