/* SPDX-License-Identifier: BSD-3-Clause
 *
 * last_word_test.c
 * Goal    what a rank has sent before it leaves its world arrives, also where the connection for it was still being made; a call goes on
 *         without a member that has left with its part done, however slow the others are, and ends soon without one that never came.
 * Method  ranks over TCP. Rank 0 waits for a message, and its connection is held right behind the word that it is welcome: this program has a
 *         sendmsg() and a recv() of its own in front of the system's, which look for that. It goes on when rank 1 has sent its message
 *         over it, and is gone. In the other tests one rank is stopped, for longer than a call in which nothing moves lasts when a member
 *         has died, or until another one has been told. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "gone.h"
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { HELD, LEFT, GO }; /* marks */
enum { SLOW_MS = 600 };
enum { HELLO_BYTES = 72, PURPOSE_AT = 8, PEER = 2, STRIPE_AT = 15, WELCOME_BYTES = 8 /* wire/hello.h, transport/tcp/handshake.h */ };

static tt_ctx     *held;         /* the rank whose next connection is held; NULL: none */
static _Atomic int held_fd = -1; /* it */

static bool begins_a_way(const struct msghdr *msg)
{
    const unsigned char *hello = msg->msg_iovlen == 1 ? msg->msg_iov->iov_base : NULL;

    return hello != NULL && msg->msg_iov->iov_len == HELLO_BYTES && memcmp(hello, "TUTI", 4) == 0 && hello[PURPOSE_AT] == PEER &&
           hello[STRIPE_AT] == 0;
}

/* The library's calls of these come here. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    if (held != NULL && begins_a_way(msg))
        atomic_store(&held_fd, fd);
    return syscall(SYS_sendmsg, fd, msg, flags);
}

ssize_t recv(int fd, void *out, size_t bytes, int flags)
{
    const ssize_t n = syscall(SYS_recvfrom, fd, out, bytes, flags, NULL, NULL);
    int           wanted = fd;

    if (n == WELCOME_BYTES && bytes == WELCOME_BYTES && atomic_compare_exchange_strong(&held_fd, &wanted, -1)) {
        tt_post(held, HELD);
        tt_await(held, LEFT, 1);
    }
    return n;
}

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static void leave(tt_ctx *t)
{
    must(tutti_destroy_process_group(NULL));
    tt_post(t, LEFT);
}

/* By a store that everybody can read: the job has no secret. */
static void join(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               url[128];

    snprintf(url, sizeof url, "tcp://%s:%d?rank=%d&world_size=%d", t->addr, t->port, t->rank, t->size);
    opts.init_method = url;
    must(tutti_init_process_group(&opts));
}

static void a_message_comes_from_one_that_has_left(tt_ctx *t)
{
    int32_t x = 7 * t->rank;

    join(t);
    if (t->rank == 1) {
        tt_await(t, HELD, 1);
        must(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, NULL));
        leave(t);
        return;
    }
    held = t;
    must(tutti_recv(TUTTI_SPAN(&x, 1), 1, 0, NULL, NULL));
    assert_int_equal(x, 7);
    assert_int_equal(atomic_load(&t->marks[HELD]), 1); /* it was held */
    held = NULL;
    must(tutti_destroy_process_group(NULL));
}

/* Rank 1 stands still until GO. */
static void stand_still(tt_ctx *t)
{
    const pid_t helper = tt_wake_later(t, GO, 1);

    assert_true(helper > 0);
    kill(getpid(), SIGSTOP);
    assert_int_equal(waitpid(helper, NULL, 0), helper);
}

static tutti_status gather_at_2(tt_ctx *t, int32_t all[3])
{
    const tutti_span outs[3] = { TUTTI_SPAN(all, 1), TUTTI_SPAN(all + 1, 1), TUTTI_SPAN(all + 2, 1) };
    int32_t          x = 10 + t->rank;

    return tutti_gather(t->rank == 2 ? outs : NULL, t->rank == 2 ? 3 : 0, TUTTI_SPAN(&x, 1), 2, NULL);
}

static void a_call_goes_on_without_one_that_has_left(tt_ctx *t)
{
    const struct timespec slow = { .tv_nsec = SLOW_MS * 1000000L };
    int32_t               all[3] = { 0 };

    if (t->rank == 1)
        stand_still(t);
    must(gather_at_2(t, all));
    if (t->rank == 0) {
        leave(t);
        nanosleep(&slow, NULL);
        tt_post(t, GO);
    }
    if (t->rank == 2) {
        assert_int_equal(all[0], 10);
        assert_int_equal(all[1], 11);
        assert_int_equal(all[2], 12);
    }
}

static void a_call_ends_without_one_that_did_not_come(tt_ctx *t)
{
    int32_t all[3] = { 0 };

    if (t->rank == 0) {
        leave(t);
        return;
    }
    if (t->rank == 1) { /* for all that rank 2 hears it may come yet */
        stand_still(t);
        return;
    }
    tt_await(t, LEFT, 1);
    assert_int_equal(gather_at_2(t, all), TUTTI_E_PEER);
    if (strstr(tutti_last_error(), "rank 0 (") == NULL || strstr(tutti_last_error(), "has left") == NULL)
        fail_msg("%s", tutti_last_error());
    tt_post(t, GO);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(a_message_comes_from_one_that_has_left, .transports = "tcp", .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_call_goes_on_without_one_that_has_left, .ranks = 3, .transports = "tcp", .waits = true),
        TT_TEST(a_call_ends_without_one_that_did_not_come, .ranks = 3, .transports = "tcp", .waits = true),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
