/* SPDX-License-Identifier: BSD-3-Clause
 *
 * last_to_leave_test.c
 * Goal    rank 0, which serves the store and is the last one to come to a group, ends its world at once, and those that have come
 *         before have their group all the same, or hear why there is none.
 * Method  rank 1 is held right before it asks the store for what all members have left: this program has a sendmsg() of its own
 *         in front of the system's, which looks for that request. Then rank 0 comes to the group, and ends its world. Rank 1
 *         goes on when rank 0 is gone, or, as it should not be, a while later. Too short a while would let a mistake
 *         pass; it finds none where there is none. */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { HELD, LEFT }; /* marks */
enum { WHILE_MS = 700, OP_AT = 5, MULTI_GET = 11 /* store/store_proto.h */ };

static tt_ctx           *held; /* the rank whose next request for the members' pieces is held; NULL: none */
static _Thread_local bool is_maker;

static bool asks_for_members(const struct msghdr *msg)
{
    static const char word[] = "member/";
    const struct iovec *part = msg->msg_iov;

    return msg->msg_iovlen > 0 && part->iov_len > OP_AT && ((const unsigned char *)part->iov_base)[OP_AT] == MULTI_GET &&
           memmem(part->iov_base, part->iov_len, word, sizeof word - 1) != NULL;
}

static void hold(tt_ctx *t)
{
    const struct timespec most = { .tv_nsec = WHILE_MS * 1000000L };

    held = NULL;
    tt_post(t, HELD);
    if (atomic_load(&t->marks[LEFT]) == 0)
        (void)syscall(SYS_futex, &t->marks[LEFT], FUTEX_WAIT, 0, &most, NULL, 0);
}

/* The library's calls of it come here. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    if (is_maker && held != NULL && asks_for_members(msg))
        hold(held);
    return syscall(SYS_sendmsg, fd, msg, flags);
}

typedef tutti_status maker(tt_ctx *t, tutti_group **group_out);

static void join(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               url[128];

    snprintf(url, sizeof url, "tcp://%s:%d?rank=%d&world_size=%d", t->addr, t->port, t->rank, t->size);
    opts.init_method = url; /* rank 0 serves the store, on one host, too */
    assert_int_equal(tutti_init_process_group(&opts), TUTTI_OK);
}

/* Rank 0 is the last to come; wanted: what the others have of it. */
static void make_and_leave(tt_ctx *t, maker *make, tutti_status wanted0, tutti_status wanted)
{
    tutti_group *group = NULL;
    tutti_status st;

    join(t);
    if (t->rank == 0) {
        tt_await(t, HELD, 1);
        assert_int_equal(make(t, &group), wanted0);
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
        tt_post(t, LEFT);
        return;
    }
    held = t->rank == 1 ? t : NULL;
    is_maker = true;
    st = make(t, &group);
    is_maker = false;
    if (st != wanted)
        fail_msg("%s, and not %s: %s", tutti_status_name(st), tutti_status_name(wanted), tutti_last_error());
    assert_null(held); /* it was held */
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
}

static tutti_status make_group(tt_ctx *t, tutti_group **group_out)
{
    (void)t;
    return tutti_new_group(NULL, 0, NULL, group_out);
}

static void a_new_group(tt_ctx *t)
{
    make_and_leave(t, make_group, TUTTI_OK, TUTTI_OK);
}

static tutti_status split(tt_ctx *t, tutti_group **group_out)
{
    const int        all[] = { 0, 1 }, n[] = { 2 };
    const int *const lists[] = { all };

    (void)t;
    return tutti_split_group(NULL, lists, n, 1, NULL, group_out);
}

static void a_split(tt_ctx *t)
{
    make_and_leave(t, split, TUTTI_OK, TUTTI_OK);
}

static tutti_status make_wrong(tt_ctx *t, tutti_group **group_out)
{
    const int twice[] = { 0, 0 };

    return tutti_new_group(t->rank == 0 ? twice : NULL, t->rank == 0 ? 2 : 0, NULL, group_out);
}

/* Rank 0 refuses what it is given, and goes: the other one hears of that. */
static void a_group_that_is_refused(tt_ctx *t)
{
    make_and_leave(t, make_wrong, TUTTI_E_ARG, TUTTI_E_MISMATCH);
}

static tutti_status split_wrong(tt_ctx *t, tutti_group **group_out)
{
    const int        all[] = { 0, 1 }, n[] = { 2 };
    const int *const lists[] = { all };

    return tutti_split_group(NULL, t->rank == 0 ? NULL : lists, n, 1, NULL, group_out);
}

/* The same, and it does not know for which part the other one waits. */
static void a_split_that_is_refused(tt_ctx *t)
{
    make_and_leave(t, split_wrong, TUTTI_E_ARG, TUTTI_E_MISMATCH);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(a_new_group, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_new_group, .ranks = 4, .hosts = 2, .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_split, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_group_that_is_refused, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
        TT_TEST(a_split_that_is_refused, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000, .init = TT_INIT_NONE, .waits = true),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
