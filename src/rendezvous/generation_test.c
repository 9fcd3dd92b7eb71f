/* SPDX-License-Identifier: BSD-3-Clause
 *
 * generation_test.c
 * Goal    a number is given out once, all ranks agree on it whoever came late or failed before, and a
 *         second process with the same rank is told so at once.
 * Method  ranks are calls on one store, in the order that the case is about; other processes are forked,
 *         and meet through a file. */
#include "rendezvous/generation.h"

#include "base/thread.h"
#include "store/store_front.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { LONG_MS = 20000, SHORT_MS = 50, MANY = 600 /* ranks */ };

static tti_join join_of(tutti_store *store, int rank, int size, int64_t timeout_ms)
{
    return (tti_join){ .store = store,
                       .rank = rank,
                       .world_size = size,
                       .timeout_ms = timeout_ms,
                       .deadline_ns = tti_deadline(tti_port_system(), timeout_ms, 0) };
}

static tutti_status try_join(tutti_store *store, int rank, int size, int64_t timeout_ms,
                             int64_t *n_out)
{
    const tti_join     join = join_of(store, rank, size, timeout_ms);
    const tutti_status st = tti_generation_join(tti_port_system(), &join, n_out);

    tti_generation_end(&join);
    return st;
}

static void joins(tutti_store *store, int rank, int64_t expected)
{
    int64_t n = 0;

    if (try_join(store, rank, 3, LONG_MS, &n) != TUTTI_OK)
        fail_msg("rank %d: %s", rank, tutti_last_error());
    assert_int_equal(n, expected);
}

static void assert_said(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void numbers_are_given_out_once(void **state)
{
    tutti_store *store = NULL;
    int64_t      n = -1;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    joins(store, 0, 1);
    joins(store, 1, 1);
    assert_int_equal(try_join(store, 1, 3, SHORT_MS, &n), TUTTI_E_TIMEOUT); /* 2 is not open */
    joins(store, 0, 2);
    joins(store, 2, 2); /* it never came to 1, which is over */
    joins(store, 1, 2);
    joins(store, 0, 3);
    joins(store, 0, 4);
    joins(store, 1, 4);
    assert_int_equal(n, -1);
    tutti_store_close(store);
}

/* Rank 0 was refused its port by a store whose rank 0 lived then, and has ended when it looks for its place there. */
static void no_world_is_opened_in_the_store_of_another(void **state)
{
    tutti_store *store = NULL;
    tti_join     join;
    int64_t      n = 0;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    joins(store, 0, 1); /* of this process, so it is over */
    join = join_of(store, 0, 3, LONG_MS);
    join.another_serves = true;
    assert_int_equal(tti_generation_join(tti_port_system(), &join, &n), TUTTI_E_NETWORK);
    tti_generation_end(&join);
    assert_said("its port is taken by a store whose rank 0 has ended");
    assert_int_equal(try_join(store, 1, 3, LONG_MS, &n), TUTTI_OK);
    assert_int_equal(n, 1); /* there is no other */
    tutti_store_close(store);
}

/* Rank 0 gave it up: who comes then does not go in, not even before the next number is open. */
static void a_failed_number_is_over(void **state)
{
    tutti_store *store = NULL;
    tti_join     join;
    int64_t      n = 0;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    joins(store, 0, 1);
    join = join_of(store, 1, 3, LONG_MS);
    tti_generation_fail(tti_port_system(), &join, 1); /* only rank 0 may say so */
    joins(store, 1, 1);
    join = join_of(store, 0, 3, LONG_MS);
    tti_generation_fail(tti_port_system(), &join, 1);
    assert_int_equal(try_join(store, 2, 3, SHORT_MS, &n), TUTTI_E_TIMEOUT);
    joins(store, 0, 2);
    joins(store, 2, 2);
    tutti_store_close(store);
}

static void sizes_are_compared(void **state)
{
    tutti_store *store = NULL;
    int64_t      n = 0;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    joins(store, 0, 1);
    assert_int_equal(try_join(store, 1, 4, LONG_MS, &n), TUTTI_E_MISMATCH);
    assert_said("rank 1 was started with world size 4, rank 0 with 3");
    tutti_store_close(store);
}

static tutti_status try_join_with(tutti_store *store, int rank, const char *backends, int64_t *refused_out)
{
    tti_join     join = join_of(store, rank, 3, LONG_MS);
    int64_t      n = 0;
    tutti_status st;

    join.refused_out = refused_out;
    snprintf(join.backends, sizeof join.backends, "%s", backends);
    st = tti_generation_join(tti_port_system(), &join, &n);
    tti_generation_end(&join);
    return st;
}

/* Who does not say what it has is not refused for it. */
static void backends_are_compared(void **state)
{
    tutti_store *store = NULL;
    int64_t      refused = 0;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    assert_int_equal(try_join_with(store, 0, "cpu:native,cuda:native", &refused), TUTTI_OK);
    assert_int_equal(try_join_with(store, 1, "cpu:mpi", &refused), TUTTI_E_MISMATCH);
    assert_said("rank 1 was started with backend 'cpu:mpi', rank 0 with 'cpu:native,cuda:native'");
    assert_int_equal(refused, 1);
    assert_int_equal(try_join_with(store, 2, "cpu:native,cuda:native", &refused), TUTTI_OK);
    tutti_store_close(store);
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    assert_int_equal(try_join_with(store, 0, "cpu:native", &refused), TUTTI_OK);
    assert_int_equal(try_join_with(store, 1, "", &refused), TUTTI_OK);
    tutti_store_close(store);
}

typedef struct late_rank {
    tutti_store *store;
    int64_t      n;
    tutti_status status;
} late_rank;

static void join_as_rank_1(void *arg)
{
    late_rank *late = arg;

    late->status = try_join(late->store, 1, 3, LONG_MS, &late->n);
}

static void rank_0_may_come_late(void **state)
{
    late_rank  late = { .n = 0 };
    tti_thread thread = { 0 };
    int64_t    n = 0;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&late.store), TUTTI_OK);
    assert_int_equal(try_join(late.store, 1, 3, SHORT_MS, &n), TUTTI_E_TIMEOUT);
    assert_said("rank 0 did not come");
    assert_int_equal(tti_thread_start(&thread, "late", join_as_rank_1, &late), TUTTI_OK);
    joins(late.store, 0, 1);
    tti_thread_join(&thread);
    assert_int_equal(late.status, TUTTI_OK);
    assert_int_equal(late.n, 1);
    tutti_store_close(late.store);
}

/* ---- other processes ---- */

/* A process that joins through path as rank 1, and then lives until it is killed. */
static pid_t start_rank_1(const char *path)
{
    tutti_store *store = NULL;
    int64_t      n;
    int          ready[2];
    char         byte = 0;
    pid_t        pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (tutti_file_store_open(path, 3, &store) == TUTTI_OK &&
            try_join(store, 1, 3, LONG_MS, &n) == TUTTI_OK && write(ready[1], "1", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_process(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_rank_is_one_process(void **state)
{
    char         dir[] = "/tmp/tutti-generation-XXXXXX";
    char         path[64];
    char         pid_text[32];
    tutti_store *store = NULL;
    int64_t      start;
    int64_t      n = 0;
    pid_t        other;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store", dir);
    assert_int_equal(tutti_file_store_open(path, 3, &store), TUTTI_OK);
    joins(store, 0, 1);
    other = start_rank_1(path);
    start = tti_now_ns();
    assert_int_equal(try_join(store, 1, 3, LONG_MS, &n), TUTTI_E_ARG);
    assert_true(tti_now_ns() - start < 5 * TTI_SECOND);
    snprintf(pid_text, sizeof pid_text, "pid %d on host", (int)other);
    assert_said(pid_text);
    assert_said("give every process a rank of its own");

    /* Killed, it leaves its place used up: whoever comes for it waits for the next world. */
    end_process(other);
    assert_int_equal(try_join(store, 1, 3, SHORT_MS, &n), TUTTI_E_TIMEOUT);
    joins(store, 0, 2);
    joins(store, 1, 2);
    joins(store, 2, 2);
    tutti_store_close(store);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

/* A place that a process of another machine holds: it may live. */
static void other_machines_are_not_judged(void **state)
{
    tutti_store *store = NULL;
    tutti_bytes  claim = { 0 };
    int64_t      n = 0;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    joins(store, 0, 1);
    assert_int_equal(tutti_store_get(store, "tutti/world/1/0", LONG_MS, &claim), TUTTI_OK);
    memset((char *)claim.data + 24, 'x', 36); /* the boot id */
    assert_int_equal(tutti_store_set(store, "tutti/world/1/0", claim.data, claim.size), TUTTI_OK);
    assert_int_equal(try_join(store, 0, 3, LONG_MS, &n), TUTTI_E_ARG);
    assert_said("use a fresh store");
    assert_int_equal(tutti_store_set(store, "tutti/world/1/0", claim.data, 7), TUTTI_OK);
    assert_int_equal(try_join(store, 0, 3, LONG_MS, &n), TUTTI_E_MISMATCH);
    memset((char *)claim.data, 0, 4); /* the magic */
    assert_int_equal(tutti_store_set(store, "tutti/world/1/0", claim.data, claim.size), TUTTI_OK);
    assert_int_equal(try_join(store, 0, 3, LONG_MS, &n), TUTTI_E_STORE);
    tutti_bytes_free(&claim);
    tutti_store_close(store);
}

/* ---- the end of joining ---- */

static void rank_0_stays_until_all_are_through(void **state)
{
    tti_port    *port = tti_port_system();
    tutti_store *store = NULL;
    tti_join     join;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    join = join_of(store, 1, 3, LONG_MS);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK);
    join = join_of(store, 0, 3, SHORT_MS);
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK); /* not its store */
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_E_TIMEOUT);
    assert_said("did not finish joining: 2\n");
    join = join_of(store, 2, 3, LONG_MS);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK);
    join = join_of(store, 0, 3, LONG_MS);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK);
    tutti_store_close(store);
}

static void parts(tutti_store *store, int rank, int64_t timeout_ms, bool stays)
{
    tti_join join = join_of(store, rank, 3, timeout_ms);

    join.rank0_serves = true;
    tti_generation_part(tti_port_system(), &join, 1, stays);
}

/* Whose world cannot be made serves the store until the others have heard so, and no longer than it may; who need not stay does not. */
static void rank_0_stays_until_all_have_parted(void **state)
{
    tutti_store *store = NULL;
    int64_t      began_ns;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    parts(store, 1, LONG_MS, true);
    began_ns = tti_now_ns();
    parts(store, 0, SHORT_MS, true);
    assert_true(tti_now_ns() - began_ns >= SHORT_MS * TTI_MS);
    began_ns = tti_now_ns();
    parts(store, 0, LONG_MS, false);
    assert_true(tti_now_ns() - began_ns < LONG_MS * TTI_MS / 4);
    parts(store, 2, LONG_MS, true);
    began_ns = tti_now_ns();
    parts(store, 0, LONG_MS, true);
    assert_true(tti_now_ns() - began_ns < LONG_MS * TTI_MS / 4);
    tutti_store_close(store);
}

static bool is_the_third(void *context, int rank)
{
    ++*(int *)context;
    return rank == 2;
}

/* Of three others one has ended between meeting rank 0 and saying that it is through: it is not waited for, but who lives is. */
static void rank_0_does_not_wait_for_the_gone(void **state)
{
    tti_port         *port = tti_port_system();
    const int64_t     began_ns = tti_port_now(port);
    int               n_asked = 0;
    const tti_members members = { is_the_third, &n_asked };
    tutti_store      *store = NULL;
    tti_join          join;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    join = join_of(store, 1, 4, LONG_MS);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK);
    join = join_of(store, 0, 4, 500);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, &members), TUTTI_E_TIMEOUT);
    assert_said("did not finish joining: 2, 3\n");
    assert_true(n_asked > 0);
    join = join_of(store, 3, 4, LONG_MS);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK);
    join = join_of(store, 0, 4, 60000);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, &members), TUTTI_OK);
    assert_true(tti_port_now(port) - began_ns < 20 * TTI_SECOND); /* and not after the limit */
    tutti_store_close(store);
}

static tutti_status answers_nothing(tutti_store *store, const char *const *keys, size_t n, int64_t deadline_ns, bool *all_out)
{
    (void)store;
    (void)keys;
    (void)n;
    (void)deadline_ns;
    (void)all_out;
    return tti_fail(TUTTI_E_TIMEOUT, "no answer");
}

/* One is gone, one has not come, and the store says nothing to who asks: that is no word of the one that has not come. */
static void no_answer_is_no_arrival(void **state)
{
    tti_port         *port = tti_port_system();
    int               n_asked = 0;
    const tti_members members = { is_the_third, &n_asked };
    tutti_store      *store = NULL;
    tti_join          join;

    (void)state;
    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    store->front->ops.check = answers_nothing;
    join = join_of(store, 1, 4, LONG_MS);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK);
    join = join_of(store, 0, 4, 500);
    join.rank0_serves = true;
    assert_int_equal(tti_generation_arrive(port, &join, 1, &members), TUTTI_E_TIMEOUT);
    assert_true(n_asked > 0);
    tutti_store_close(store);
}

/* More than one question holds, all of whom are through but the third, who is gone; then the last one is not. */
static void many_are_asked_for(void **state)
{
    tti_port         *port = tti_port_system();
    int               n_asked = 0, size, rank;
    const tti_members members = { is_the_third, &n_asked };

    (void)state;
    for (size = MANY; size <= MANY + 1; size++) {
        tutti_store *store = NULL;
        tti_join     join;

        assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
        for (rank = 1; rank < MANY; rank++) {
            join = join_of(store, rank, size, LONG_MS);
            join.rank0_serves = true;
            if (rank != 2)
                assert_int_equal(tti_generation_arrive(port, &join, 1, NULL), TUTTI_OK);
        }
        join = join_of(store, 0, size, size == MANY ? 60000 : 500);
        join.rank0_serves = true;
        assert_int_equal(tti_generation_arrive(port, &join, 1, &members), size == MANY ? TUTTI_OK : TUTTI_E_TIMEOUT);
        tutti_store_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_given_out_once),
        cmocka_unit_test(no_world_is_opened_in_the_store_of_another),
        cmocka_unit_test(a_failed_number_is_over),
        cmocka_unit_test(sizes_are_compared),
        cmocka_unit_test(backends_are_compared),
        cmocka_unit_test(rank_0_may_come_late),
        cmocka_unit_test(a_rank_is_one_process),
        cmocka_unit_test(other_machines_are_not_judged),
        cmocka_unit_test(rank_0_stays_until_all_are_through),
        cmocka_unit_test(rank_0_stays_until_all_have_parted),
        cmocka_unit_test(rank_0_does_not_wait_for_the_gone),
        cmocka_unit_test(no_answer_is_no_arrival),
        cmocka_unit_test(many_are_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
