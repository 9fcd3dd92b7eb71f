/* SPDX-License-Identifier: BSD-3-Clause
 *
 * p2p_test.c
 * Goal    point-to-point between real processes: order, tags, any source, large messages both ways at
 *         once, groups, and wrong uses that are refused before anything is sent.
 * Method  the same bodies over shared memory, TCP, threads and two hosts. */
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

static void order_and_tags(tt_ctx *t)
{
    int32_t x[3] = { 10, 20, 30 }, got = 0;
    int     src = -5;

    if (t->rank == 0) {
        OK(tutti_send(TUTTI_SPAN(&x[0], 1), 1, 7, t->group));
        OK(tutti_send(TUTTI_SPAN(&x[1], 1), 1, 9, t->group));
        OK(tutti_send(TUTTI_SPAN(&x[2], 1), 1, 7, t->group));
    } else if (t->rank == 1) {
        OK(tutti_recv(TUTTI_SPAN(&got, 1), 0, 9, t->group, &src));
        assert_int_equal(got, 20);
        assert_int_equal(src, 0);
        OK(tutti_recv(TUTTI_SPAN(&got, 1), 0, 7, t->group, NULL));
        assert_int_equal(got, 10);
        OK(tutti_recv(TUTTI_SPAN(&got, 1), TUTTI_ANY_SOURCE, 7, t->group, &src));
        assert_int_equal(got, 30);
        assert_int_equal(src, 0);
    }
    OK(tutti_barrier(t->group));
}

/* What is there when it is asked for may be done when the call returns: it is as if it had been waited for. */
static void asked_for_when_it_is_there(tt_ctx *t)
{
    int32_t     x[3] = { 10, 20, 30 }, got[3] = { 0 };
    tutti_work *works[3] = { NULL, NULL, NULL };
    int         i;

    if (t->rank == 0)
        for (i = 0; i < 3; i++)
            OK(tutti_isend(TUTTI_SPAN(&x[i], 1), 1, i == 1 ? 9 : 7, t->group, &works[i]));
    OK(tutti_barrier(t->group));
    if (t->rank == 1) {
        OK(tutti_irecv(TUTTI_SPAN(&got[1], 1), 0, 9, t->group, &works[1])); /* not the first one */
        OK(tutti_irecv(TUTTI_SPAN(&got[0], 1), 0, 7, t->group, &works[0]));
        OK(tutti_irecv(TUTTI_SPAN(&got[2], 1), TUTTI_ANY_SOURCE, 7, t->group, &works[2]));
    }
    OK(tutti_wait_all(works, 3, 0));
    for (i = 0; i < 3 && t->rank < 2; i++) {
        assert_true(tutti_work_is_completed(works[i]));
        assert_int_equal(tutti_work_source_rank(works[i]), t->rank == 0 ? -1 : 0);
        assert_true(t->rank == 0 || got[i] == x[i]);
        tutti_work_free(works[i]);
    }
    OK(tutti_barrier(t->group));
}

static void large_messages_cross(tt_ctx *t)
{
    const int64_t n = 1 << 20;
    const int     right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;
    float        *out = tt_floats(t, (size_t)n, (float)t->rank), *in = tt_floats(t, (size_t)n, -1.0f);
    tutti_work   *sent = NULL, *received = NULL;
    int64_t       i;

    OK(tutti_isend(TUTTI_SPAN(out, n), right, 0, t->group, &sent));
    OK(tutti_irecv(TUTTI_SPAN(in, n), left, 0, t->group, &received));
    OK(tutti_work_wait(received));
    OK(tutti_work_wait(sent));
    assert_int_equal(tutti_work_source_rank(received), left);
    for (i = 0; i < n; i++)
        assert_true(in[i] == (float)left);
    tutti_work_free(sent);
    tutti_work_free(received);
}

/* A send that nobody has received yet does not hold up the collectives of its group. */
static void messages_and_collectives_mix(tt_ctx *t)
{
    const int64_t n = 1 << 20;
    float        *big = tt_floats(t, (size_t)n, 3.0f);
    float         x = 1.0f;
    tutti_work   *work = NULL;

    if (t->rank == 0)
        OK(tutti_isend(TUTTI_SPAN(big, n), 1, 0, t->group, &work));
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group));
    assert_true(x == (float)t->size);
    if (t->rank == 1) {
        memset(big, 0, (size_t)n * sizeof *big);
        OK(tutti_recv(TUTTI_SPAN(big, n), 0, 0, t->group, NULL));
        assert_true(big[n - 1] == 3.0f);
    }
    if (work != NULL)
        OK(tutti_work_wait(work));
    tutti_work_free(work);
    OK(tutti_barrier(t->group));
}

/* Each tag is a queue of its own, whichever is asked first, and collectives in between change nothing. */
static void tags_are_queues_while_collectives_run(tt_ctx *t)
{
    enum { TAGS = 3, EACH = 16 };
    int32_t     out[EACH][TAGS], got = -1;
    float       sums[EACH];
    tutti_work *sums_work[EACH], *sent[EACH][TAGS];
    int         i, tag;

    for (i = 0; i < EACH; i++) {
        sums[i] = (float)i;
        OK(tutti_all_reduce_async(TUTTI_SPAN(&sums[i], 1), TUTTI_SUM, t->group, &sums_work[i]));
        for (tag = 0; tag < TAGS && t->rank == 0; tag++) {
            out[i][tag] = 100 * tag + i;
            OK(tutti_isend(TUTTI_SPAN(&out[i][tag], 1), 1, tag, t->group, &sent[i][tag]));
        }
    }
    for (tag = TAGS - 1; tag >= 0 && t->rank == 1; tag--)
        for (i = 0; i < EACH; i++) {
            OK(tutti_recv(TUTTI_SPAN(&got, 1), i % 2 == 0 ? 0 : TUTTI_ANY_SOURCE, tag, t->group, NULL));
            assert_int_equal(got, 100 * tag + i);
        }
    for (i = 0; i < EACH; i++) {
        OK(tutti_work_wait(sums_work[i]));
        assert_true(sums[i] == (float)(i * t->size));
        tutti_work_free(sums_work[i]);
        for (tag = 0; tag < TAGS && t->rank == 0; tag++) {
            OK(tutti_work_wait(sent[i][tag]));
            tutti_work_free(sent[i][tag]);
        }
    }
}

/* In a subgroup, however the receive is written, the sender is told by its number in the world. */
static void senders_are_global_ranks(tt_ctx *t)
{
    const int    members[] = { 1, 3 }; /* group ranks 0, 1 */
    tutti_group *pair = NULL;
    tutti_work  *works[2] = { NULL };
    int32_t      x = 7;
    int          i, src = -5;

    OK(tutti_new_group(members, 2, NULL, &pair));
    for (i = 0; i < 5 && t->rank == 3; i++)
        OK(tutti_send(TUTTI_SPAN(&x, 1), 1, i, pair));
    if (t->rank == 1) {
        OK(tutti_recv(TUTTI_SPAN(&x, 1), 3, 0, pair, &src));
        assert_int_equal(src, 3);
        OK(tutti_recv_in_group(TUTTI_SPAN(&x, 1), 1, 1, pair, &src));
        assert_int_equal(src, 3);
        OK(tutti_recv_in_group(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 2, pair, &src));
        assert_int_equal(src, 3);
        OK(tutti_irecv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 3, pair, &works[0]));
        OK(tutti_irecv_in_group(TUTTI_SPAN(&x, 1), 1, 4, pair, &works[1]));
        for (i = 0; i < 2; i++) {
            OK(tutti_work_wait(works[i]));
            assert_int_equal(tutti_work_source_rank(works[i]), 3);
            tutti_work_free(works[i]);
        }
    }
    if (t->rank == 0) { /* no member: warned, nothing touched, -1 */
        OK(tutti_recv(TUTTI_SPAN(&x, 1), 3, 0, pair, &src));
        assert_true(x == 7 && src == -1);
    }
    OK(tutti_barrier(t->group));
}

static void wrong_sizes_are_refused(tt_ctx *t)
{
    float   x[2] = { 1.0f, 2.0f };
    double  d = 9.0;
    int64_t n = 5;

    if (t->rank == 0) {
        OK(tutti_send(TUTTI_SPAN(x, 2), 1, 0, t->group));
        OK(tutti_send(TUTTI_SPAN(&n, 1), 1, 0, t->group));
        OK(tutti_send(TUTTI_SPAN(x, 1), 1, 0, t->group));
    } else {
        x[0] = 0.0f;
        assert_int_equal(tutti_recv(TUTTI_SPAN(x, 1), 0, 0, t->group, NULL), TUTTI_E_MISMATCH);
        assert_non_null(strstr(tutti_last_error(), "has 2 f32, the receive is for 1 f32"));
        assert_int_equal(tutti_recv(TUTTI_SPAN(&d, 1), 0, 0, t->group, NULL), TUTTI_E_MISMATCH);
        assert_non_null(strstr(tutti_last_error(), "i64"));
        assert_true(d == 9.0);
        OK(tutti_recv(TUTTI_SPAN(x, 1), 0, 0, t->group, NULL)); /* the group goes on */
        assert_true(x[0] == 1.0f);
    }
    OK(tutti_barrier(t->group));
}

static void wrong_peers_are_refused(tt_ctx *t)
{
    float       x = 0.0f;
    tutti_work *work = NULL;

    assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), t->rank, 0, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), t->rank, 0, t->group, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_isend(TUTTI_SPAN(&x, 1), t->rank, 0, t->group, &work), TUTTI_E_ARG);
    assert_int_equal(tutti_irecv(TUTTI_SPAN(&x, 1), t->rank, 0, t->group, &work), TUTTI_E_ARG);
    assert_int_equal(tutti_isend(TUTTI_SPAN(&x, 1), t->size, 0, t->group, &work), TUTTI_E_ARG);
    assert_int_equal(tutti_irecv(TUTTI_SPAN(&x, 1), (t->rank + 1) % t->size, -1, t->group, &work),
                     TUTTI_E_ARG);
    assert_null(work);
    OK(tutti_barrier(t->group));
}

static void a_group_has_messages_of_its_own(tt_ctx *t)
{
    const int    pair_ranks[] = { 1, 2 };
    tutti_group *pair = NULL;
    float        x = (float)t->rank, y = -1.0f;
    int          src = -1;

    OK(tutti_new_group(pair_ranks, 2, NULL, &pair));
    if (t->rank == 2) {
        float z = 50.0f;

        OK(tutti_send(TUTTI_SPAN(&z, 1), 1, 0, t->group));
        OK(tutti_send(TUTTI_SPAN(&x, 1), 1, 0, pair)); /* a global rank, in the group too */
    } else if (t->rank == 1) {
        OK(tutti_recv(TUTTI_SPAN(&y, 1), TUTTI_ANY_SOURCE, 0, pair, &src));
        assert_true(y == 2.0f && src == 2);
        OK(tutti_recv(TUTTI_SPAN(&y, 1), 2, 0, t->group, NULL));
        assert_true(y == 50.0f);
    }
    OK(tutti_barrier(t->group));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(order_and_tags, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(asked_for_when_it_is_there, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(large_messages_cross, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(large_messages_cross, .ranks = 4, .hosts = 2),
        TT_TEST(large_messages_cross, .name = "large_messages_cross_with_tls", .ranks = 3, .transports = "tcp,threads-tcp", .tls = true),
        TT_TEST(messages_and_collectives_mix, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(tags_are_queues_while_collectives_run, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(tags_are_queues_while_collectives_run, .ranks = 2, .hosts = 2),
        TT_TEST(senders_are_global_ranks, .ranks = 4, .transports = "shm,tcp,threads"),
        TT_TEST(wrong_sizes_are_refused, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(wrong_peers_are_refused, .ranks = 2, .transports = "shm"),
        TT_TEST(a_group_has_messages_of_its_own, .ranks = 3, .transports = "shm,tcp,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
