/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_server_test.c
 * Goal    where the server's process has few descriptors left, or no memory for a moment, members get in all the same.
 * Method  a real server; clients that go through their hello step by step. The server's calls for memory can be made to
 *         fail: the linker gives calloc() another body (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <pthread.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "store/store_proto.h"
#include "wire/addr.h"
#include "wire/hello.h"

enum { LIMIT_MS = 20000, FILES = 256, SPARE = FILES / 4, MEMBERS = 8 };

static pthread_t   tester;
static _Atomic int n_to_fail; /* calls of the server's thread */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    if (atomic_load(&n_to_fail) > 0 && !pthread_equal(pthread_self(), tester)) {
        atomic_fetch_sub(&n_to_fail, 1);
        return NULL;
    }
    return __real_calloc(n, size);
}

static int64_t limit(void)
{
    return tti_deadline(tti_port_system(), LIMIT_MS, 0);
}

typedef struct member {
    tti_handle stream;
    tti_hello  hello;
} member;

/* As far as the server's hello: it knows of this one now, which has not proved itself. */
static void begin_hello(member *m, const tutti_store_server *server)
{
    const tti_hello_config config = { .client = true, .purpose = TTI_PURPOSE_STORE, .rank = TTI_HELLO_NO_RANK };
    tti_port              *port = tti_port_system();
    uint8_t                in[TTI_HELLO_SERVER_BYTES];
    const void            *data;
    size_t                 bytes;

    assert_int_equal(tti_connect(port, "127.0.0.1", (uint16_t)tutti_store_server_port(server), limit(), &m->stream), TUTTI_OK);
    tti_hello_begin(&m->hello, port, &config);
    data = tti_hello_output(&m->hello, &bytes);
    assert_int_equal(tti_io_send_all(port, m->stream, data, bytes, "the store", limit()), TUTTI_OK);
    tti_hello_sent(&m->hello, bytes);
    assert_int_equal(tti_io_recv_all(port, m->stream, in, sizeof in, "the store", limit()), TUTTI_OK);
    assert_int_equal(tti_hello_feed(&m->hello, in, sizeof in), TUTTI_OK);
}

/* The proof, and a question: whether it is answered. */
static bool end_hello(member *m)
{
    const tti_store_request request = { .op = TTI_STORE_NUM_KEYS, .id = 1 };
    tti_port               *port = tti_port_system();
    tti_buffer              frame = { .memory = NULL };
    uint8_t                 reply[TTI_STORE_HEAD_BYTES + 8];
    const void             *data;
    size_t                  bytes;
    bool                    ok;

    data = tti_hello_output(&m->hello, &bytes);
    assert_int_equal(tti_store_request_write(&request, &frame), TUTTI_OK);
    ok = tti_io_send_all(port, m->stream, data, bytes, "the store", limit()) == TUTTI_OK &&
         tti_io_send_all(port, m->stream, tti_buffer_data(&frame), frame.size, "the store", limit()) == TUTTI_OK &&
         tti_io_recv_all(port, m->stream, reply, sizeof reply, "the store", limit()) == TUTTI_OK;
    tti_buffer_release(&frame);
    tti_hello_release(&m->hello);
    port->ops->close(port, m->stream);
    return ok;
}

/* Descriptors up to where the server takes itself to be short of them: how many. */
static int use_up_files(int fds[FILES])
{
    int n = 0;

    do
        assert_true((fds[n] = dup(STDERR_FILENO)) >= 0);
    while (fds[n++] < FILES - SPARE);
    return n;
}

/* Nobody attacks: members that come at the same time do not push each other out. */
static void few_files_do_not_set_members_against_each_other(void **state)
{
    struct rlimit       before, few;
    tutti_store_server *server = NULL;
    member              members[MEMBERS];
    int                 fds[FILES], n, i;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){ .rlim_cur = FILES, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    n = use_up_files(fds);
    assert_int_equal(tutti_store_server_start(NULL, &server), TUTTI_OK);
    for (i = 0; i < MEMBERS; i++)
        begin_hello(&members[i], server);
    for (i = 0; i < MEMBERS; i++)
        assert_true(end_hello(&members[i]));
    tutti_store_server_stop(server);
    while (n > 0)
        close(fds[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A connection for which there is no memory is taken later, and so are those behind it. */
static void a_lack_of_memory_passes(void **state)
{
    tutti_store_server *server = NULL;
    member              members[2];

    (void)state;
    assert_int_equal(tutti_store_server_start(NULL, &server), TUTTI_OK);
    atomic_store(&n_to_fail, 2);
    begin_hello(&members[0], server);
    assert_int_equal(atomic_load(&n_to_fail), 0);
    begin_hello(&members[1], server);
    assert_true(end_hello(&members[0]));
    assert_true(end_hello(&members[1]));
    tutti_store_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_files_do_not_set_members_against_each_other),
        cmocka_unit_test(a_lack_of_memory_passes),
    };

    tester = pthread_self();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
