/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message_test.c
 * Goal    messages go to whom they are meant for, independent of collectives; works of messages
 *         wait, time out, fail and outlive their group; wrong arguments are named.
 * Method  ranks as threads over a backend that keeps messages in a list. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/debug.h>

enum { LONG_MS = 30000, SHORT_MS = 20 };

/* Around a ring, tags out of order, and the source reported as a global rank. */
static void ring(fake_rank *r)
{
    const int right = (r->rank + 1) % r->size;
    const int left = (r->rank + r->size - 1) % r->size;
    int32_t   out[2] = { 10 * r->rank, 10 * r->rank + 1 };
    int32_t   in[2] = { -1, -1 };
    int       source = -5;

    CHECK(tutti_send(TUTTI_SPAN(&out[0], 1), right, 0, NULL) == TUTTI_OK);
    CHECK(tutti_send(TUTTI_SPAN(&out[1], 1), right, 1, NULL) == TUTTI_OK);
    CHECK(tutti_recv(TUTTI_SPAN(&in[1], 1), left, 1, NULL, NULL) == TUTTI_OK);
    CHECK(tutti_recv(TUTTI_SPAN(&in[0], 1), TUTTI_ANY_SOURCE, 0, NULL, &source) == TUTTI_OK);
    CHECK(in[0] == 10 * left && in[1] == 10 * left + 1);
    CHECK(source == left);
}

static void test_ring(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, ring, NULL), 0);
}

/* Nobody could ever send: that is no reason to wait, nor to end the group. */
static void alone(fake_rank *r)
{
    tutti_work *work = NULL;
    int32_t     x = 0;

    (void)r;
    CHECK(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 0, NULL, NULL) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "in a group of 1") != NULL);
    CHECK(tutti_irecv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 0, NULL, &work) == TUTTI_E_ARG && work == NULL);
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
}

static void test_alone(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(1, alone, NULL), 0);
}

/* In the group {1, 2} peers are still global ranks. */
static void sub_group(fake_rank *r)
{
    const int    members[] = { 1, 2 };
    tutti_group *group = NULL;
    tutti_work  *work = NULL;
    int32_t      x = 40 + r->rank;

    CHECK(tutti_new_group(members, 2, NULL, &group) == TUTTI_OK);
    if (r->rank == 1) {
        CHECK(tutti_isend(TUTTI_SPAN(&x, 1), 2, 7, group, &work) == TUTTI_OK);
        CHECK(tutti_work_wait(work) == TUTTI_OK);
        CHECK(tutti_work_source_rank(work) == -1);
        CHECK(tutti_send(TUTTI_SPAN(&x, 1), 0, 7, group) == TUTTI_E_ARG);
    } else if (r->rank == 2) {
        CHECK(tutti_irecv(TUTTI_SPAN(&x, 1), 1, 7, group, &work) == TUTTI_OK);
        CHECK(tutti_work_wait(work) == TUTTI_OK);
        CHECK(x == 41);
        CHECK(tutti_work_source_rank(work) == 1);
    }
    tutti_work_free(work);
}

static void test_sub_group(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, sub_group, NULL), 0);
}

/* A wait that ends early leaves the message alone; a later one succeeds, on any thread. */
static void early_wait(fake_rank *r)
{
    tutti_work *work = NULL;
    int32_t     x = r->rank == 0 ? 5 : 0;

    if (r->rank == 1) {
        CHECK(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 3, NULL, &work) == TUTTI_OK);
        CHECK(!tutti_work_is_completed(work));
        CHECK(tutti_work_wait_for(work, SHORT_MS) == TUTTI_E_TIMEOUT);
        CHECK(strstr(tutti_last_error(), "irecv from rank 0, tag 3") != NULL);
    }
    CHECK(tutti_barrier(NULL) == TUTTI_OK); /* now rank 0 sends, and the group still works */
    if (r->rank == 0)
        CHECK(tutti_send(TUTTI_SPAN(&x, 1), 1, 3, NULL) == TUTTI_OK);
    else
        CHECK(tutti_work_wait(work) == TUTTI_OK && x == 5 && tutti_work_source_rank(work) == 0);
    tutti_work_free(work);
}

static void test_early_wait(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, early_wait, NULL), 0);
}

/* A message of another size fails its receive, and nothing else. */
static void mismatch(fake_rank *r)
{
    int32_t     x[2] = { 1, 2 };
    tutti_work *work = NULL;

    if (r->rank == 0) {
        CHECK(tutti_send(TUTTI_SPAN(x, 2), 1, 0, NULL) == TUTTI_OK);
        CHECK(tutti_send(TUTTI_SPAN(x, 2), 1, 1, NULL) == TUTTI_OK);
    } else {
        CHECK(tutti_recv(TUTTI_SPAN(x, 1), 0, 0, NULL, NULL) == TUTTI_E_MISMATCH);
        CHECK(tutti_irecv(TUTTI_SPAN(x, 1), 0, 1, NULL, &work) == TUTTI_OK);
        CHECK(tutti_work_wait(work) == TUTTI_E_MISMATCH);
        CHECK(tutti_work_wait(work) == TUTTI_E_MISMATCH);
        CHECK(strstr(tutti_last_error(), "tag 1") != NULL);
        tutti_work_free(work);
    }
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
}

static void test_mismatch(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, mismatch, NULL), 0);
}

typedef struct waiter {
    tutti_work  *work;
    tutti_status status;
    tti_thread   thread;
} waiter;

static void run_wait(void *arg)
{
    waiter *w = arg;

    w->status = tutti_work_wait(w->work);
}

/* Several threads wait for one message; all get its outcome. */
static void many_waiters(fake_rank *r)
{
    waiter      waiters[3] = { 0 };
    tutti_work *work = NULL;
    int32_t     x = r->rank;
    int         i;

    if (r->rank == 1)
        CHECK(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 0, NULL, &work) == TUTTI_OK);
    for (i = 0; i < 3 && r->rank == 1; i++) {
        waiters[i].work = work;
        CHECK(tti_thread_start(&waiters[i].thread, "waiter", run_wait, &waiters[i]) == TUTTI_OK);
    }
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
    if (r->rank == 0)
        CHECK(tutti_send(TUTTI_SPAN(&x, 1), 1, 0, NULL) == TUTTI_OK);
    for (i = 0; i < 3; i++) {
        tti_thread_join(&waiters[i].thread);
        CHECK(waiters[i].status == TUTTI_OK);
    }
    tutti_work_free(work);
    CHECK(r->world->messages == NULL);
}

static void test_many_waiters(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, many_waiters, NULL), 0);
}

/* A blocking receive that nobody answers ends the group, so that its buffer is the caller's. */
static void no_answer(fake_rank *r)
{
    int32_t x = 0;

    if (r->rank != 1)
        return;
    r->world->timeout_ms = SHORT_MS;
    CHECK(tutti_recv(TUTTI_SPAN(&x, 1), 0, 9, NULL, NULL) == TUTTI_E_TIMEOUT);
    CHECK(strstr(tutti_last_error(), "no message with tag 9") != NULL);
    CHECK(strstr(tutti_last_error(), "recv from rank 0, tag 9 on group '0' timed out after ") != NULL);
    CHECK(strstr(tutti_last_error(), " ms on rank 1: ") != NULL);
    CHECK(strstr(tutti_last_error(), "\n  next: ") != NULL);
    CHECK(tutti_barrier(NULL) == TUTTI_E_TIMEOUT);
    CHECK(strstr(tutti_last_error(), "recv from rank 0, tag 9") != NULL);
    CHECK(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, NULL) == TUTTI_E_TIMEOUT);
}

static void test_no_answer(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, no_answer, NULL), 0);
    assert_int_equal(fake_aborts(), 1);
}

/* Works outlive the group: one that had ended keeps its outcome, others are aborted. */
static void outlive(fake_rank *r)
{
    tutti_work   **works = (tutti_work **)r->arg;
    static int32_t x[3];

    if (r->rank == 0) {
        CHECK(tutti_isend(TUTTI_SPAN(&x[0], 1), 1, 0, NULL, &works[0]) == TUTTI_OK);
        CHECK(tutti_barrier(NULL) == TUTTI_OK);
        return;
    }
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
    CHECK(tutti_irecv(TUTTI_SPAN(&x[1], 1), 0, 0, NULL, &works[1]) == TUTTI_OK);
    CHECK(tutti_irecv(TUTTI_SPAN(&x[2], 1), 0, 1, NULL, &works[2]) == TUTTI_OK);
}

static void test_works_outlive_group(void **state)
{
    tutti_work *works[3] = { NULL };
    int         i;

    (void)state;
    assert_int_equal(fake_ranks(2, outlive, works), 0);
    for (i = 0; i < 3; i++)
        assert_true(tutti_work_is_completed(works[i]));
    assert_int_equal(tutti_work_wait(works[0]), TUTTI_OK);
    assert_int_equal(tutti_work_wait(works[1]), TUTTI_OK);
    assert_int_equal(tutti_work_source_rank(works[1]), 0);
    assert_int_equal(tutti_work_wait(works[2]), TUTTI_E_ABORTED);
    assert_non_null(strstr(tutti_last_error(), "irecv from rank 0, tag 1 on group '0'"));
    for (i = 0; i < 3; i++)
        tutti_work_free(works[i]);
}

/* A thread waits for a message when the group ends. */
static void end_under_waiter(fake_rank *r)
{
    waiter        *w = r->arg;
    static int32_t x;

    if (r->rank != 0)
        return;
    CHECK(tutti_irecv(TUTTI_SPAN(&x, 1), 1, 0, NULL, &w->work) == TUTTI_OK);
    CHECK(tti_thread_start(&w->thread, "waiter", run_wait, w) == TUTTI_OK);
}

static void test_end_under_waiter(void **state)
{
    waiter w = { 0 };

    (void)state;
    assert_int_equal(fake_ranks(2, end_under_waiter, &w), 0);
    tti_thread_join(&w.thread);
    assert_int_equal(w.status, TUTTI_E_ABORTED);
    tutti_work_free(w.work);
}

/* Works that nobody holds go when later messages are posted. */
static void abandoned(fake_rank *r)
{
    tutti_work *work = NULL;
    int32_t     x = 1;
    int         i;

    if (r->rank != 0)
        return;
    for (i = 0; i < 100; i++) {
        CHECK(tutti_isend(TUTTI_SPAN(&x, 1), 1, 0, NULL, &work) == TUTTI_OK);
        tutti_work_free(work);
    }
    CHECK(r->world->messages != NULL && r->world->messages->next == NULL);
}

static void test_abandoned(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, abandoned, NULL), 0);
}

static void assert_refused(tutti_status got, const char *word)
{
    CHECK(got == TUTTI_E_ARG);
    if (!CHECK(strstr(tutti_last_error(), word) != NULL))
        fprintf(stderr, "  wanted: %s\n", word);
}

static void arguments(fake_rank *r)
{
    int32_t     x = 1;
    tutti_span  s = TUTTI_SPAN(&x, 1);
    tutti_span  none = tutti_span_of(NULL, 2, TUTTI_F64);
    tutti_work *work = NULL;

    if (r->rank != 0)
        return;
    assert_refused(tutti_send(s, 2, 0, NULL), "send on group '0': rank 2 is not in the group of 2");
    assert_refused(tutti_send(s, TUTTI_ANY_SOURCE, 0, NULL), "rank -1");
    assert_refused(tutti_recv(s, -2, 0, NULL, NULL), "rank -2");
    assert_refused(tutti_isend(s, 5, 0, NULL, &work), "rank 5");
    assert_refused(tutti_irecv(s, 5, 0, NULL, &work), "rank 5");
    assert_refused(tutti_send(s, 0, 0, NULL), "this rank itself");
    assert_refused(tutti_recv(s, 0, 0, NULL, NULL), "this rank itself");
    assert_refused(tutti_isend(s, 0, 0, NULL, &work), "this rank itself");
    assert_refused(tutti_irecv(s, 0, 0, NULL, &work), "this rank itself");
    assert_refused(tutti_send(s, 1, -1, NULL), "tag -1");
    assert_refused(tutti_recv(s, 1, -1, NULL, NULL), "tag -1");
    assert_refused(tutti_isend(s, 1, -3, NULL, &work), "tag -3");
    assert_refused(tutti_irecv(s, 1, -3, NULL, &work), "tag -3");
    assert_refused(tutti_send(none, 1, 0, NULL), "no data for 2 f64");
    assert_refused(tutti_irecv(none, 1, 0, NULL, &work), "no data for 2 f64");
    CHECK(work == NULL);
}

static void test_arguments(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, arguments, NULL), 0);
}

/* The late one's word comes behind the last wait for it, while rank 0 looks whether somebody is gone. */
static void comes_while_looked_at(fake_rank *r)
{
    if (r->rank == 1)
        fake_await_look();
    CHECK(tutti_monitored_barrier(NULL, LONG_MS, false) == TUTTI_OK);
}

static void test_barrier_of_a_late_one(void **state)
{
    (void)state;
    fake_look_long();
    assert_int_equal(fake_ranks(2, comes_while_looked_at, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ring),
        TEST(test_alone),
        TEST(test_sub_group),
        TEST(test_early_wait),
        TEST(test_mismatch),
        TEST(test_many_waiters),
        TEST(test_no_answer),
        TEST(test_works_outlive_group),
        TEST(test_end_under_waiter),
        TEST(test_abandoned),
        TEST(test_arguments),
        TEST(test_barrier_of_a_late_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
