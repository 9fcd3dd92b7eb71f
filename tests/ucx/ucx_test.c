/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ucx_test.c
 * Goal    what is special where the transport "ucx" carries the bytes: it does carry them; what was sent before a rank left
 *         arrives; a rank that is killed is named in time, whatever it was sent and had not taken; strangers at UCX's ports
 *         change nothing; one that UCX has no way to is told of in UCX's words; and what cannot go together is refused on all
 *         ranks.
 * Method  real processes; which networks UCX takes is UCX_TLS's, as CMakeLists.txt says. Other tests run over it, too
 *         (TT_CARRIED). */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { VICTIM = 1, LEFT = 1, BEGUN = 2, TIMEOUT_MS = 700, FDS = 1024 };

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

static void all_have_begun(tt_ctx *t)
{
    assert_int_equal(tutti_barrier(t->group), TUTTI_OK);
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

/* What is known of a connection stands in the text of a time-out. */
static void texts_tell_what_carries(tt_ctx *t)
{
    float x = 0.0f;

    all_have_begun(t); /* with all the time that it takes */
    if (t->rank == 0) {
        assert_int_equal(tutti_set_timeout(t->group, TIMEOUT_MS), TUTTI_OK);
        assert_int_equal(tutti_recv(TUTTI_SPAN(&x, 1), 1, 5, t->group, NULL), TUTTI_E_TIMEOUT);
        expect_words("connection: by 'ucx', ");
        expect_words(" bytes of ");
        tt_post(t, 0);
        return;
    }
    tt_await(t, 0, 1);
}

/* It fits into what a receiver keeps; who has sent it destroys its world and ends, before anybody receives. */
static void what_was_sent_arrives(tt_ctx *t)
{
    const int64_t count = 200000;
    float        *x = tt_floats(t, (size_t)count, t->rank == 0 ? 7.0f : 0.0f);
    int64_t       i;

    if (t->rank == 0) {
        assert_int_equal(tutti_send(TUTTI_SPAN(x, count), 1, 3, t->group), TUTTI_OK);
        assert_int_equal(tutti_destroy_process_group(t->group), TUTTI_OK);
        tt_post(t, LEFT);
        return;
    }
    tt_await(t, LEFT, 1);
    assert_int_equal(tutti_recv(TUTTI_SPAN(x, count), 0, 3, t->group, NULL), TUTTI_OK);
    for (i = 0; i < count; i++)
        assert_true(x[i] == 7.0f);
}

/* Rank 0 sends it more than it takes; rank 2 waits for it to send. It is killed in no call of the library's. */
static void a_killed_rank_is_named(tt_ctx *t)
{
    const int64_t count = 4 << 20;
    float        *x = tt_floats(t, (size_t)count, 1.0f);
    tutti_work   *work = NULL;
    int64_t       start;

    all_have_begun(t);
    if (t->rank == VICTIM) {
        tt_await(t, 0, 2);
        raise(SIGKILL);
    }
    if (t->rank == 0)
        assert_int_equal(tutti_isend(TUTTI_SPAN(x, count), VICTIM, 0, t->group, &work), TUTTI_OK);
    else
        assert_int_equal(tutti_irecv(TUTTI_SPAN(x, count), VICTIM, 0, t->group, &work), TUTTI_OK);
    tt_post(t, 0);
    tt_await(t, 0, 2);
    start = now_ms();
    assert_int_equal(tutti_work_wait_for(work, TUTTI_INFINITE), TUTTI_E_PEER);
    assert_true(now_ms() - start < 1000);
    expect_words("rank 1 (");
    tutti_work_free(work);
}

/* ---- strangers ---- */

/* Connect to whatever this process listens at, write nonsense, and see it closed or not: nobody answers with data of ours. */
static int disturb_own_ports(void)
{
    char nonsense[4096];
    int  fd, n = 0;

    memset(nonsense, 0x5a, sizeof nonsense);
    for (fd = 3; fd < FDS; fd++) {
        struct sockaddr_storage at;
        socklen_t               bytes = sizeof at, flag_bytes = sizeof(int);
        int                     listens = 0, visitor;

        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_bytes) != 0 || listens == 0 ||
            getsockname(fd, (struct sockaddr *)&at, &bytes) != 0 || at.ss_family != AF_INET)
            continue;
        if (((struct sockaddr_in *)&at)->sin_addr.s_addr == htonl(INADDR_ANY))
            ((struct sockaddr_in *)&at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        visitor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(visitor >= 0);
        if (connect(visitor, (struct sockaddr *)&at, bytes) == 0 && send(visitor, nonsense, sizeof nonsense, MSG_NOSIGNAL) > 0)
            n++;
        close(visitor);
    }
    return n;
}

static void strangers_change_nothing(tt_ctx *t)
{
    const char   *nets = getenv("UCX_TLS");
    const int     least = nets != NULL && strstr(nets, "tcp") != NULL ? 2 : 1;
    const int64_t count = 100000;
    float        *x = tt_floats(t, (size_t)count, 1.0f);
    int           round;
    int64_t       i;

    all_have_begun(t);
    for (round = 0; round < 5; round++) {
        assert_true(disturb_own_ports() >= least); /* ours, and UCX's */
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group), TUTTI_OK);
    }
    for (i = 0; i < count; i++)
        assert_true(x[i] == 32.0f);
}

/* ---- what does not go together ---- */

static void join(tt_ctx *t, tutti_status status, const char *first, const char *second)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.init_method = t->init_method;
    opts.timeout_ms = 10000;
    assert_int_equal(tutti_init_process_group(&opts), status);
    expect_words(first);
    expect_words(second);
}

static void encryption_is_refused(tt_ctx *t)
{
    setenv("TUTTI_TLS", "1", 1);
    join(t, TUTTI_E_UNSUPPORTED, "the transport 'ucx' sends in the clear, and TUTTI_TLS asks for encryption", "\n  next: ");
}

static void ranks_have_one_transport(tt_ctx *t)
{
    if (t->rank == 1)
        setenv("TUTTI_TRANSPORT", "tcp", 1);
    join(t, TUTTI_E_ARG, "was started with a TUTTI_TRANSPORT that takes", "\n  next: give all ranks the same");
}

/* UCX is told to use a device that is not there: what it says of that is in the words of the first call. */
static void a_peer_out_of_reach_is_told_of(tt_ctx *t)
{
    float x = 1.0f;

    setenv("UCX_TLS", "tcp,self", 1);
    setenv("UCX_NET_DEVICES", "nosuch0", 1);
    join(t, TUTTI_OK, "", "");
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, 2); /* nobody makes the world any more, which ends with the first call */
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_E_PEER);
    expect_words("UCX has no way to it: ");
    expect_words("'nosuch0' is not available");
    expect_words("\n  next: look at UCX_TLS and UCX_NET_DEVICES");
    assert_null(strstr(tutti_last_error(), "why that rank ended"));
    tt_post(t, LEFT);
    tt_await(t, LEFT, 2); /* each has its own words: that the other one has left would be others */
    (void)tutti_destroy_process_group(NULL);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(texts_tell_what_carries, .transports = "tcp", .carried = "ucx"),
        TT_TEST(what_was_sent_arrives, .transports = "tcp", .carried = "ucx"),
        TT_TEST(a_killed_rank_is_named, .ranks = 3, .transports = "tcp", .carried = "ucx", .dies = VICTIM),
        TT_TEST(strangers_change_nothing, .transports = "tcp", .carried = "ucx"),
        TT_TEST(encryption_is_refused, .transports = "tcp", .carried = "ucx", .init = TT_INIT_NONE),
        TT_TEST(a_peer_out_of_reach_is_told_of, .transports = "tcp", .carried = "ucx", .init = TT_INIT_NONE),
        TT_TEST(ranks_have_one_transport, .transports = "tcp", .carried = "ucx", .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
