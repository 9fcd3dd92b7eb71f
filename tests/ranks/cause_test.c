/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cause_test.c - a rank of another host has died, and the end of its connection is seen before the watch threads tell of it: who words that for
 * a blocking call waits for the cause (transport/learn.c).
 *
 * Not run over "ucx", as others of failures are: UCX 1.13 may end a process whose peer dies while much is on its way (docs/ucx.md). */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { VICTIM = 2, TOLD = 0, BEGUN = TT_MARKS - 1, ALL_DONE = TT_MARKS - 2 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void expect_words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

/* The world works, and nobody is inside the barrier any more that showed it. */
static void all_have_begun(tt_ctx *t)
{
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

/* What a call says that began at start_ms and lost a connection: that the process has ended, and not only its connection; it may wait
 * for the watch threads for so long, and no longer. */
static bool tells_the_cause(int64_t start_ms)
{
    enum { LEARN_MS = 500 };

    if (strstr(tutti_last_error(), "left or died") != NULL) {
        assert_true(now_ms() - start_ms >= LEARN_MS);
        print_message("the watch threads got no core: %s\n", tutti_last_error());
        return false;
    }
    expect_words("is gone: its process has ended (");
    return true;
}

/* The connection has ended before the watch threads know of a death: who waits for the words has them all the same. */
static void the_cause_of_a_lost_connection_is_told(tt_ctx *t)
{
    const int victim = t->size - 1; /* of the other host */
    float     x = 1.0f;
    int64_t   start;

    all_have_begun(t);
    if (t->rank == 0) /* so that there is a connection, which ends at once */
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), victim, 4, t->group, NULL), TUTTI_OK);
    if (t->rank == victim)
        assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 4, t->group), TUTTI_OK);
    tt_post(t, ALL_DONE);
    tt_await(t, ALL_DONE, (uint32_t)t->size);
    if (t->rank == victim)
        tt_die();
    if (t->rank != 0) { /* if all of its host left before it has ended, it would be taken for one that has left with them */
        tt_await(t, TOLD, 1);
        return;
    }
    start = now_ms();
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), victim, 5, t->group, NULL), TUTTI_E_PEER);
    assert_true(now_ms() - start < 3000); /* it dies when it gets a core */
    expect_words("recv from rank 3, tag 5 on group '");
    if (tells_the_cause(start))
        expect_words("it last began to send to rank 0, in the group called '");
    tt_post(t, TOLD);
}

/* The same of a call in two levels that finds the connection lost at its first look, before it waits for anybody. An asynchronous
 * message has found that, in another group, and nobody waited for more words there. */
static void a_call_in_two_levels_tells_the_cause(tt_ctx *t)
{
    const int64_t count = 1 << 20;
    float        *x = tt_floats(t, (size_t)count, 1.0f);
    tutti_group  *second = NULL;
    tutti_work   *work = NULL;
    int64_t       start;

    all_have_begun(t);
    assert_int_equal(setenv("TUTTI_ALGO", "all_reduce=two_level", 1), 0);
    assert_int_equal(tutti_new_group(NULL, 0, NULL, &second), TUTTI_OK);
    if (t->rank == 0) /* so that there is a connection */
        assert_int_equal(tutti_recv(TUTTI_SPAN(x, 1), VICTIM, 4, t->group, NULL), TUTTI_OK);
    if (t->rank == VICTIM)
        assert_int_equal(tutti_send(TUTTI_SPAN(x, 1), 0, 4, t->group), TUTTI_OK);
    tt_post(t, ALL_DONE);
    tt_await(t, ALL_DONE, (uint32_t)t->size);
    if (t->rank == VICTIM)
        tt_die();
    if (t->rank == 3) { /* in the call it would tell the others what it sees of the one beside it */
        tt_await(t, TOLD, 2);
        return;
    }
    if (t->rank == 0) {
        assert_int_equal(tutti_irecv(TUTTI_SPAN(x, 1), VICTIM, 5, t->group, &work), TUTTI_OK);
        assert_int_equal(tutti_work_wait_for(work, TUTTI_INFINITE), TUTTI_E_PEER);
        tutti_work_free(work);
    }
    start = now_ms();
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, second), TUTTI_E_PEER);
    if (t->rank == 0)
        (void)tells_the_cause(start);
    tt_post(t, TOLD);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(the_cause_of_a_lost_connection_is_told, .ranks = 4, .hosts = 2, .dies = 3),
        TT_TEST(a_call_in_two_levels_tells_the_cause, .ranks = 4, .hosts = 2, .dies = VICTIM),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
