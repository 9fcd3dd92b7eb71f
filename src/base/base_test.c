/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base_test.c - words, environment, deadlines, events, the system port's sockets, descriptors and bells. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "base/clip.h"
#include "base/env.h"
#include "base/port.h"
#include "base/thread.h"

static void words_are_kept_per_failure(void **state)
{
    (void)state;
    assert_int_equal(tti_fail(TUTTI_E_ARG, "rank %d of %d", 3, 2), TUTTI_E_ARG);
    assert_string_equal(tutti_last_error(), "rank 3 of 2");
    assert_int_equal(tti_fail(TUTTI_E_STATE, "was: %s", tutti_last_error()), TUTTI_E_STATE);
    assert_string_equal(tutti_last_error(), "was: rank 3 of 2");
    assert_int_equal(tti_fail_errno(ENOENT, "cannot open '%s'", "x"), TUTTI_E_IO);
    assert_string_equal(tutti_last_error(), "cannot open 'x': No such file or directory");
    assert_int_equal(tti_fail_errno(ECONNREFUSED, "x"), TUTTI_E_NETWORK);
    assert_int_equal(tti_fail_errno(ENOMEM, "x"), TUTTI_E_NOMEM);
    assert_string_equal(tutti_status_name(TUTTI_E_REMOTE), "TUTTI_E_REMOTE");
    assert_string_equal(tutti_status_name((tutti_status)99), "TUTTI_E_?");
}

static void what_is_too_long_keeps_its_next_step(void **state)
{
    char out[48], few[8];

    (void)state;
    tti_clip(out, sizeof out, "all of %d lines\n  next: %s", 2, "stay");
    assert_string_equal(out, "all of 2 lines\n  next: stay");
    tti_clip(out, sizeof out, "%s", "one\n  rank 2 is stopped\n  rank 3 is, too\n  next: a\n  rank 4: x\n  next: b");
    assert_string_equal(out, "one\n  rank 2 is stopped\n  rank 3 i...\n  next: b");
    tti_clip(out, sizeof out, "%s", "a first line of many words, which no room has\n  next: b");
    assert_string_equal(out, "a first line of many words, which ...\n  next: b");
    tti_clip(out, sizeof out, "%s", "a first line, and then behind it:\xe2\x82\xac, which is not cut\n  next: b");
    assert_string_equal(out, "a first line, and then behind it:...\n  next: b");
    tti_clip(out, sizeof out, "%s", "one\n  next: a step of more than half of what there is room for");
    assert_string_equal(out, "one\n  next: a step of more than half of what...");
    tti_clip(few, sizeof few, "%s", "no room for more");
    assert_string_equal(few, "no r...");
}

/* However often it was passed on: as much as a message between ranks has room for. */
static void what_is_too_long_keeps_whom_it_quotes(void **state)
{
    char out[64], message[448];

    (void)state;
    tti_clip(out, sizeof out, "%s", "a call of many words, in its piece 1, ended\n  rank 0: out of time on GPU 0\n  next: b");
    assert_string_equal(out, "a call of many word...\n  rank 0: out of time on GPU 0\n  next: b");
    tti_clip(out, sizeof out, "%s", "a call of many words, in its piece 1, ended\n  rank 0: a cause that has no room beside it\n  next: b");
    assert_string_equal(out, "a call of many w...\n  rank 0: a cause that has no ...\n  next: b");
    tti_clip(out, sizeof out, "%s", "a call of many words, in its piece 1, ended\n  next: a\n  rank 0: out of time on GPU 0");
    assert_string_equal(out, "a call of many words, in its piece 1, ended\n  next: a\n  rank...");
    tti_clip(out, sizeof out, "%s", "a call of many words\n  rank 1: which passed on this:\n  rank 0: a cause\n  next: b");
    assert_string_equal(out, "a call of many words\n  rank 1: w...\n  rank 0: a cause\n  next: b");
    tti_clip(out, sizeof out, "%s", "a call of many words, in its piece 1, ended\n  rank 0: of words beside it\n  next: of less than half");
    assert_non_null(strstr(out, "\n  next: of less than half"));
    tti_clip(message, sizeof message, "%s",
             "all_reduce #2 (5000007 f32 of GPU 0) on group '0', done in memory of the host, in its piece 1: all_reduce #2 (sum, 618448 "
             "f32): rank 0 (host 'vm', pid 19299) reported TUTTI_E_TIMEOUT; group '0' is finished\n  rank 0: all_reduce #2 (5000007 f32 "
             "of GPU 0) on group '0' timed out after 2000 ms on rank 0 of 3 members: GPU 0 is not through with what the stream of the "
             "call was given before it\n  next: see what that waits for, or give the group a longer time-out");
    assert_non_null(strstr(message, "\n  rank 0: all_reduce #2 (5000007 f32 of GPU 0) on group '0' timed out after 2000 ms on rank 0 of 3 "
                                    "members: GPU 0 is not through with what the stream of the call was given before it\n  next: see"));
}

static void a_last_error_keeps_its_next_step(void **state)
{
    char lines[3 * 800], words[TTI_LAST_ERROR_MAX];

    (void)state;
    memset(lines, 'x', sizeof lines - 1);
    lines[800] = lines[1600] = '\n';
    lines[sizeof lines - 1] = '\0';
    tti_fail(TUTTI_E_PEER, "%s\n  next: this", lines);
    assert_string_equal(tutti_last_error() + 2031, "...\n  next: this");
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_fail(TUTTI_E_PEER, "%s", words); /* said again, it is the same */
    assert_string_equal(tutti_last_error(), words);
}

static void environment_is_checked(void **state)
{
    int64_t value = -1;

    (void)state;
    unsetenv("RANK");
    assert_int_equal(tti_env_int("RANK", 0, 10, &value), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "RANK is not set"));
    setenv("RANK", "", 1);
    assert_null(tti_env("RANK"));
    setenv("RANK", "3x", 1);
    assert_int_equal(tti_env_int("RANK", 0, 10, &value), TUTTI_E_ARG);
    setenv("RANK", "11", 1);
    assert_int_equal(tti_env_int("RANK", 0, 10, &value), TUTTI_E_ARG);
    assert_int_equal(value, -1);
    setenv("RANK", "7", 1);
    assert_int_equal(tti_env_int("RANK", 0, 10, &value), TUTTI_OK);
    assert_int_equal(value, 7);
    unsetenv("RANK");
}

static void a_flag_is_yes_or_no(void **state)
{
    bool on = true;

    (void)state;
    unsetenv("TUTTI_AGENT_STORE");
    assert_int_equal(tti_env_flag("TUTTI_AGENT_STORE", &on), TUTTI_OK);
    assert_false(on);
    setenv("TUTTI_AGENT_STORE", "Yes", 1);
    assert_int_equal(tti_env_flag("TUTTI_AGENT_STORE", &on), TUTTI_OK);
    assert_true(on);
    setenv("TUTTI_AGENT_STORE", "maybe", 1);
    assert_int_equal(tti_env_flag("TUTTI_AGENT_STORE", &on), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "TUTTI_AGENT_STORE is 'maybe'"));
    assert_true(on);
    setenv("TUTTI_AGENT_STORE", "FALSE", 1);
    assert_int_equal(tti_env_flag("TUTTI_AGENT_STORE", &on), TUTTI_OK);
    assert_false(on);
    unsetenv("TUTTI_AGENT_STORE");
}

static void deadlines_do_not_overflow(void **state)
{
    tti_port *port = tti_port_system();
    int64_t   now = tti_port_now(port);

    (void)state;
    assert_true(tti_deadline(port, -1, 5) == TTI_FOREVER);
    assert_true(tti_deadline(port, 0, -1) == TTI_FOREVER);
    assert_true(tti_deadline(port, INT64_MAX, 0) == TTI_FOREVER);
    assert_true(tti_deadline(port, 1000, 0) >= now + TTI_SECOND);
    assert_int_equal(tti_left_ms(port, TTI_FOREVER), -1);
    assert_int_equal(tti_left_ms(port, now), 0);
}

typedef struct handoff {
    tti_event        event;
    _Atomic uint32_t value;
} handoff;

static void raise_value(void *arg)
{
    handoff *shared = arg;

    atomic_store(&shared->value, 42);
    tti_event_signal(tti_port_system(), &shared->event);
}

static void events_wake_sleepers(void **state)
{
    tti_port  *port = tti_port_system();
    int64_t    deadline = tti_deadline(port, 10000, 0);
    tti_thread thread = { .running = false };
    handoff    shared = { .value = 0 };

    (void)state;
    assert_int_equal(tti_thread_start(&thread, "raiser", raise_value, &shared), TUTTI_OK);
    for (;;) {
        uint32_t seen = tti_event_now(&shared.event);

        if (atomic_load(&shared.value) == 42)
            break;
        assert_true(tti_port_now(port) < deadline);
        tti_event_wait(port, &shared.event, seen, deadline);
    }
    tti_thread_join(&thread);
}

static void event_wait_ends_at_its_deadline(void **state)
{
    tti_port *port = tti_port_system();
    tti_event event = { .count = 0 };
    int64_t   start = tti_port_now(port);

    (void)state;
    while (tti_port_now(port) < start + 20 * TTI_MS)
        tti_event_wait(port, &event, tti_event_now(&event), start + 20 * TTI_MS);
    assert_true(tti_port_now(port) < start + 5 * TTI_SECOND);
}

static void join_local(tti_port *port, tti_handle *a_out, tti_handle *b_out)
{
    tti_addr   at = { .family = TTI_ADDR_LOCAL };
    tti_addr   bound;
    tti_handle listener;
    tti_poll   wait;
    uint64_t   nonce;

    port->ops->random(port, &nonce, sizeof nonce);
    snprintf(at.name, sizeof at.name, "tutti-base-test-%016llx", (unsigned long long)nonce);
    assert_int_equal(port->ops->listen(port, &at, 4, &bound, &listener), 0);
    assert_int_equal(port->ops->connect(port, &bound, a_out), 0);
    wait = (tti_poll){ .handle = listener, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &wait, 1, tti_deadline(port, 5000, 0)), 1);
    *b_out = port->ops->accept(port, listener, NULL);
    assert_true(*b_out >= 0);
    port->ops->close(port, listener);
}

static void descriptors_travel(void **state)
{
    tti_port     *port = tti_port_system();
    tti_handle    a, b;
    tti_peer_cred cred;
    char          byte = 'x';
    int           fd = memfd_create("travels", MFD_CLOEXEC);
    int           fds[2];
    int           n = 0;

    (void)state;
    join_local(port, &a, &b);
    assert_int_equal(port->ops->peer_cred(port, b, &cred), 0);
    assert_int_equal(cred.pid, getpid());
    assert_int_equal(write(fd, "hello", 5), 5);
    assert_int_equal(port->ops->send_fds(port, a, &byte, 1, &fd, 1), 0);
    assert_int_equal(port->ops->recv_fds(port, b, &byte, 1, fds, 2, &n), 1);
    assert_int_equal(n, 1);
    {
        char text[6] = { 0 };

        assert_int_equal(pread(fds[0], text, 5, 0), 5);
        assert_string_equal(text, "hello");
    }
    /* More descriptors than wanted: refused, and none leaks (asan and the kernel's count would tell). */
    {
        int three[3] = { fd, fd, fd };

        assert_int_equal(port->ops->send_fds(port, a, &byte, 1, three, 3), 0);
        assert_int_equal(port->ops->recv_fds(port, b, &byte, 1, fds + 1, 1, &n), -EMSGSIZE);
    }
    close(fds[0]);
    close(fd);
    port->ops->close(port, a);
    assert_int_equal(port->ops->recv(port, b, &byte, 1), 0);
    port->ops->close(port, b);
}

static void bells_stay_rung_until_cleared(void **state)
{
    tti_port  *port = tti_port_system();
    tti_handle bell;
    tti_poll   wait;

    (void)state;
    assert_int_equal(port->ops->bell_create(port, &bell), 0);
    wait = (tti_poll){ .handle = bell, .want = TTI_READ };
    assert_int_equal(port->ops->poll(port, &wait, 1, 0), 0);
    port->ops->bell_ring(port, bell);
    port->ops->bell_ring(port, bell);
    assert_int_equal(port->ops->poll(port, &wait, 1, 0), 1);
    port->ops->bell_clear(port, bell);
    assert_int_equal(port->ops->poll(port, &wait, 1, 0), 0);
    port->ops->close(port, bell);
}

static void tcp_port_in_use_is_an_error(void **state)
{
    tti_port  *port = tti_port_system();
    tti_addr   at = { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } };
    tti_addr   bound, again;
    tti_handle first, second = TTI_NO_HANDLE;

    (void)state;
    assert_int_equal(port->ops->listen(port, &at, 4, &bound, &first), 0);
    assert_true(bound.port != 0);
    assert_int_equal(port->ops->listen(port, &bound, 4, &again, &second), -EADDRINUSE);
    assert_int_equal(second, TTI_NO_HANDLE);
    port->ops->close(port, first);
}

static long class_of_this_thread(void)
{
    return syscall(SYS_sched_getscheduler, 0);
}

static void *stand_back_and_forth(void *arg)
{
    tti_port                *port = tti_port_system();
    const struct sched_param none = { .sched_priority = 0 };

    (void)arg;
    assert_int_equal(class_of_this_thread(), SCHED_OTHER);
    assert_false(port->ops->stand_back(port, false)); /* it has not stood back */
    assert_true(port->ops->stand_back(port, true));
    assert_int_equal(class_of_this_thread(), SCHED_BATCH);
    assert_false(port->ops->stand_back(port, true)); /* whoever has, is the one to step forward again */
    assert_true(port->ops->stand_back(port, false));
    assert_int_equal(class_of_this_thread(), SCHED_OTHER);
    assert_int_equal(syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &none), 0);
    assert_false(port->ops->stand_back(port, true)); /* somebody has chosen */
    assert_int_equal(class_of_this_thread(), SCHED_IDLE);
    return NULL;
}

static void who_stands_back_waits_for_his_turn(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, stand_back_and_forth, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(class_of_this_thread(), SCHED_OTHER); /* it is a matter of the thread */
}

static int size_of_queue(tti_handle stream)
{
    int       size = 0;
    socklen_t bytes = sizeof size;

    assert_int_equal(getsockopt(stream, SOL_SOCKET, SO_SNDBUF, &size, &bytes), 0);
    return size;
}

static void a_stream_has_more_room_but_not_for_good(void **state)
{
    enum { ROOM = 64 << 10, LOCKS = 72 }; /* SO_BUF_LOCK, where headers are older than it */
    tti_port  *port = tti_port_system();
    const int  stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int        locks = -1;
    socklen_t  bytes = sizeof locks;

    (void)state;
    assert_true(stream >= 0);
    if (getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes) != 0) {
        close(stream);
        skip();
    }
    assert_true(size_of_queue(stream) < 2 * ROOM); /* else it is no test */
    port->ops->make_room(port, stream, ROOM);
    assert_int_equal(size_of_queue(stream), 2 * ROOM); /* the kernel counts what it needs besides */
    assert_int_equal(getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes), 0);
    assert_int_equal(locks, 0); /* it still grows by itself */
    port->ops->make_room(port, stream, ROOM / 2);
    assert_int_equal(size_of_queue(stream), 2 * ROOM); /* and does not become smaller */
    close(stream);
}

/* Who sends with others to one has little on the way for a while, however the kernel would have it; then it grows again. */
static void a_bound_holds_until_more_is_asked_for(void **state)
{
    enum { ROOM = 64 << 10, BOUND = 32 << 10, LOCKS = 72 };
    tti_port  *port = tti_port_system();
    const int  stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int        locks = -1;
    socklen_t  bytes = sizeof locks;

    (void)state;
    assert_true(stream >= 0);
    if (getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes) != 0) {
        close(stream);
        skip();
    }
    port->ops->make_room(port, stream, ROOM);
    port->ops->bound_room(port, stream, BOUND);
    assert_int_equal(size_of_queue(stream), 2 * BOUND);
    assert_int_equal(getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes), 0);
    assert_int_equal(locks, 1);
    port->ops->make_room(port, stream, ROOM);
    assert_int_equal(size_of_queue(stream), 2 * ROOM);
    assert_int_equal(getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes), 0);
    assert_int_equal(locks, 0);
    close(stream);
}

/* Also where what is asked for is there already, or is more than anybody is granted. */
static void a_bound_ends_though_there_is_no_more_room(void **state)
{
    enum { BOUND = 32 << 10, MOST = 1 << 30, LOCKS = 72 };
    static const int asked[] = { BOUND / 2, BOUND, MOST };
    tti_port        *port = tti_port_system();
    const int        stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int              locks = -1, had;
    socklen_t        bytes = sizeof locks;
    size_t           i;

    (void)state;
    assert_true(stream >= 0);
    if (getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes) != 0) {
        close(stream);
        skip();
    }
    for (i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        port->ops->bound_room(port, stream, asked[i] == MOST ? MOST : BOUND);
        had = size_of_queue(stream);
        assert_int_equal(getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes), 0);
        assert_int_equal(locks, 1);
        port->ops->make_room(port, stream, asked[i]);
        assert_int_equal(getsockopt(stream, SOL_SOCKET, LOCKS, &locks, &bytes), 0);
        assert_int_equal(locks, 0);
        assert_int_equal(size_of_queue(stream), had);
    }
    close(stream);
}

/* A stream may have more than who asks is granted: what it begins with has a limit of its own (net.ipv4.tcp_wmem). */
static void what_a_stream_has_is_not_taken(void **state)
{
    enum { LOCKS = 72, MOST = 1 << 30 };
    tti_port  *port = tti_port_system();
    const int  stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), no_locks = 0, most = MOST;
    int        granted, more;
    socklen_t  bytes = sizeof no_locks;

    (void)state;
    assert_true(stream >= 0);
    assert_int_equal(setsockopt(stream, SOL_SOCKET, SO_SNDBUF, &most, sizeof most), 0);
    granted = size_of_queue(stream) / 2;
    more = granted + (granted >> 2);
    if (granted > MOST / 4 || setsockopt(stream, SOL_SOCKET, SO_SNDBUFFORCE, &more, bytes) != 0 ||
        setsockopt(stream, SOL_SOCKET, LOCKS, &no_locks, bytes) != 0) {
        close(stream); /* hardly a limit, not allowed to go beyond it, or an older kernel */
        skip();
    }
    assert_int_equal(size_of_queue(stream), 2 * more);
    port->ops->make_room(port, stream, 2 * more);
    assert_int_equal(size_of_queue(stream), 2 * more);
    close(stream);
}

/* What is lost at the end of a message is sent again soon, where the kernel can be told; and it is never told to wait for longer. */
static void a_stream_sends_again_soon(void **state)
{
    enum { RTO_MIN_US = 45, MS = 20, SHORTER_US = 8000 }; /* TCP_RTO_MIN_US, where headers are older than it */
    tti_port  *port = tti_port_system();
    const int  stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), shorter = SHORTER_US;
    int        us = -1, before;
    socklen_t  bytes = sizeof us;

    (void)state;
    assert_true(stream >= 0);
    if (getsockopt(stream, IPPROTO_TCP, RTO_MIN_US, &us, &bytes) != 0) {
        port->ops->resend_after(port, stream, MS); /* no harm */
        close(stream);
        skip();
    }
    if (us <= 2000 * MS) { /* this system has as short a time-out for all (net.ipv4.tcp_rto_min_us): there is nothing to ask for */
        close(stream);
        skip();
    }
    port->ops->resend_after(port, stream, MS);
    assert_int_equal(getsockopt(stream, IPPROTO_TCP, RTO_MIN_US, &us, &bytes), 0);
    assert_in_range(us, 1000 * MS, 2000 * MS); /* the kernel counts in ticks */
    assert_int_equal(setsockopt(stream, IPPROTO_TCP, RTO_MIN_US, &shorter, sizeof shorter), 0);
    assert_int_equal(getsockopt(stream, IPPROTO_TCP, RTO_MIN_US, &before, &bytes), 0);
    port->ops->resend_after(port, stream, MS);
    assert_int_equal(getsockopt(stream, IPPROTO_TCP, RTO_MIN_US, &us, &bytes), 0);
    assert_int_equal(us, before);
    close(stream);
}

/* What one round trip took is the shortest, too; where the kernel does not tell, it is unknown. */
static void the_shortest_trip_is_known(void **state)
{
    tti_port          *port = tti_port_system();
    const int          listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t          bytes = sizeof at;
    tti_stream_facts   facts;

    (void)state;
    assert_true(listener >= 0 && stream >= 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(port->ops->stream_facts(port, stream, &facts), 0);
    assert_int_equal(facts.least_trip_us, 0); /* nothing was measured */
    assert_int_equal(connect(stream, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(port->ops->stream_facts(port, stream, &facts), 0);
    close(stream);
    close(listener);
    if (facts.least_trip_us == 0)
        skip();
    assert_in_range(facts.least_trip_us, 1, facts.round_trip_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_kept_per_failure),
        cmocka_unit_test(what_is_too_long_keeps_its_next_step),
        cmocka_unit_test(what_is_too_long_keeps_whom_it_quotes),
        cmocka_unit_test(a_last_error_keeps_its_next_step), cmocka_unit_test(environment_is_checked),
        cmocka_unit_test(a_flag_is_yes_or_no),
        cmocka_unit_test(deadlines_do_not_overflow),  cmocka_unit_test(events_wake_sleepers),
        cmocka_unit_test(event_wait_ends_at_its_deadline), cmocka_unit_test(descriptors_travel),
        cmocka_unit_test(bells_stay_rung_until_cleared),   cmocka_unit_test(tcp_port_in_use_is_an_error),
        cmocka_unit_test(who_stands_back_waits_for_his_turn), cmocka_unit_test(a_stream_has_more_room_but_not_for_good),
        cmocka_unit_test(a_bound_holds_until_more_is_asked_for), cmocka_unit_test(a_bound_ends_though_there_is_no_more_room),
        cmocka_unit_test(what_a_stream_has_is_not_taken),
        cmocka_unit_test(a_stream_sends_again_soon), cmocka_unit_test(the_shortest_trip_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
