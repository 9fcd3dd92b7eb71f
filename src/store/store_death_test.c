/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_death_test.c
 * Goal    every wait on a tcp store ends within its bound when the server's process is killed or
 *         stopped, also one without a limit; a client that is killed harms nobody, and what it left as its will is said.
 * Method  real processes: the server is a child, killed with SIGKILL or stopped with SIGSTOP. The
 *         waits are threads of this process, forked before there are any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store_collectives.h>
#include "base/doubt.h"
#include "base/thread.h"
#include "store/store.h"

enum { BOUND_MS = 5000, LONG_MS = 20000 }; /* the kernel says it at once: the first is for a busy machine */

typedef struct server_process {
    pid_t pid;
    int   port;
} server_process;

static server_process start_server(void)
{
    server_process p = { .pid = -1 };
    int            pipes[2];

    assert_int_equal(pipe(pipes), 0);
    p.pid = fork();
    assert_true(p.pid >= 0);
    if (p.pid == 0) {
        tutti_store_server *server = NULL;
        int                 port;

        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        if (tutti_store_server_start(NULL, &server) != TUTTI_OK)
            _exit(1);
        port = tutti_store_server_port(server);
        if (write(pipes[1], &port, sizeof port) != (ssize_t)sizeof port)
            _exit(1);
        for (;;)
            pause();
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &p.port, sizeof p.port), sizeof p.port);
    close(pipes[0]);
    return p;
}

static void end_server(const server_process *p)
{
    int status = 0;

    assert_int_equal(kill(p->pid, SIGKILL), 0);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
}

static tutti_status open_client(const server_process *p, tutti_store **store_out)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;

    options.host = "127.0.0.1";
    options.port = p->port;
    options.timeout_ms = 20000;
    return tutti_tcp_store_open(&options, store_out);
}

static tutti_store *client_of(const server_process *p)
{
    tutti_store *store = NULL;

    if (open_client(p, &store) != TUTTI_OK)
        fail_msg("cannot open: %s", tutti_last_error());
    return store;
}

static int64_t now_ms(void)
{
    return tti_port_now(tti_port_system()) / TTI_MS;
}

/* ---- every kind of wait, without a limit ---- */

static tutti_status wait_by_get(tutti_store *store)
{
    tutti_bytes value = { .data = NULL };

    return tutti_store_get(store, "never", TUTTI_INFINITE, &value);
}

static tutti_status wait_by_wait(tutti_store *store)
{
    const char *keys[] = { "never", "neither" };

    return tutti_store_wait(store, keys, 2, TUTTI_INFINITE);
}

static tutti_status wait_by_multi_get(tutti_store *store)
{
    const char *keys[] = { "here", "never" };
    tutti_bytes values[2] = { { .data = NULL } };

    return tutti_store_multi_get(store, keys, 2, TUTTI_INFINITE, values);
}

static tutti_status wait_by_pop(tutti_store *store)
{
    tutti_bytes value = { .data = NULL };

    return tutti_store_queue_pop(store, "queue", true, TUTTI_INFINITE, &value);
}

static tutti_status wait_by_barrier(tutti_store *store)
{
    return tutti_store_barrier(store, "gate", 2, TUTTI_INFINITE);
}

static tutti_status wait_by_view(tutti_store *store)
{
    tutti_bytes  value = { .data = NULL };
    tutti_store *view = NULL;
    tutti_status st = tutti_prefix_store_open("p", store, &view);

    if (st == TUTTI_OK)
        st = tutti_store_get(view, "never", TUTTI_INFINITE, &value);
    tutti_store_close(view);
    return st;
}

static tutti_status wait_by_collective(tutti_store *store)
{
    tutti_store_collectives *c = NULL;
    int64_t                  sum;
    tutti_status             st = tutti_store_collectives_create(store, 0, 2, &c);

    if (st == TUTTI_OK)
        st = tutti_store_collectives_all_sum(c, "sum", 1, TUTTI_INFINITE, &sum);
    tutti_store_collectives_free(c);
    return st;
}

/* The server is asked all the time: the next question fails too. */
static tutti_status wait_by_asking(tutti_store *store)
{
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK)
        st = tutti_store_add(store, "n", 1, NULL);
    return st;
}

typedef struct waiter {
    tti_thread  thread;
    const char *name;
    tutti_status (*wait)(tutti_store *store);
    tutti_store     *store;
    _Atomic uint32_t runs;
    tutti_status     st;
    int64_t          ended_ms;
    char             words[256];
} waiter;

static void run_waiter(void *arg)
{
    waiter *w = arg;

    atomic_store(&w->runs, 1);
    w->st = w->wait(w->store);
    w->ended_ms = now_ms();
    snprintf(w->words, sizeof w->words, "%s", tutti_last_error());
}

static void start_waiter(waiter *w, tutti_store *store)
{
    w->store = store;
    assert_int_equal(tti_thread_start(&w->thread, "waiter", run_waiter, w), TUTTI_OK);
    while (atomic_load(&w->runs) == 0)
        tti_port_system()->ops->yield(tti_port_system());
}

static void every_wait_ends_when_the_server_is_killed(void **state)
{
    const server_process server = start_server();
    tutti_store         *store = client_of(&server), *other = client_of(&server), *twin = NULL;
    waiter               waiters[] = {
        { .name = "get", .wait = wait_by_get },
        { .name = "wait", .wait = wait_by_wait },
        { .name = "multi_get", .wait = wait_by_multi_get },
        { .name = "queue_pop", .wait = wait_by_pop },
        { .name = "barrier", .wait = wait_by_barrier },
        { .name = "view", .wait = wait_by_view },
        { .name = "all_sum", .wait = wait_by_collective },
        { .name = "add", .wait = wait_by_asking },
    };
    enum { WAITERS = sizeof waiters / sizeof waiters[0] };
    const char *marks[] = { "gate/num_members", "sum/came" };
    int64_t     killed_ms;
    size_t      i;

    (void)state;
    assert_int_equal(tutti_store_set(store, "here", "x", 1), TUTTI_OK);
    for (i = 0; i < WAITERS; i++)
        start_waiter(&waiters[i], i % 2 == 0 ? store : other);
    /* Two of them can be seen to be inside. */
    assert_int_equal(tutti_store_wait(other, marks, 2, 20000), TUTTI_OK);
    killed_ms = now_ms();
    end_server(&server);
    for (i = 0; i < WAITERS; i++) {
        waiter *w = &waiters[i];

        tti_thread_join(&w->thread);
        if (w->st != TUTTI_E_NETWORK || w->ended_ms - killed_ms > BOUND_MS ||
            strstr(w->words, "127.0.0.1") == NULL)
            fail_msg("%s: %s after %lld ms: %s", w->name, tutti_status_name(w->st),
                     (long long)(w->ended_ms - killed_ms), w->words);
    }
    assert_int_equal(wait_by_get(store), TUTTI_E_NETWORK); /* and those that begin later */
    assert_int_equal(tutti_store_set_timeout(store, TUTTI_INFINITE), TUTTI_OK);
    assert_int_equal(tutti_store_clone(store, &twin), TUTTI_E_NETWORK);
    assert_null(twin);
    assert_true(now_ms() - killed_ms < 2 * BOUND_MS);
    tutti_store_close(other);
    tutti_store_close(store);
}

/* A server that is stopped is not dead: time-outs count, and afterwards all goes on. */
static void a_stopped_server_is_waited_for_until_the_time_out(void **state)
{
    const server_process server = start_server();
    tutti_store         *store = client_of(&server);
    const char          *keys[] = { "never", "nor this one" };
    tutti_bytes          value = { .data = NULL };
    int64_t              start, sum = 0;

    (void)state;
    assert_int_equal(tutti_store_add(store, "n", 1, NULL), TUTTI_OK);
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    start = now_ms();
    assert_int_equal(tutti_store_get(store, "never", 100, &value), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "stopped answering"));
    assert_true(now_ms() - start >= 100);
    assert_true(now_ms() - start < 100 + 2 * BOUND_MS); /* the server had 5 s for the cancel */
    start = now_ms();
    assert_int_equal(tutti_store_wait(store, keys, 2, 100), TUTTI_E_TIMEOUT); /* which is missing is not asked for long */
    assert_true(now_ms() - start < 100 + BOUND_MS);
    assert_int_equal(tutti_store_set_timeout(store, 100), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_E_TIMEOUT);
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    assert_int_equal(tutti_store_set_timeout(store, 20000), TUTTI_OK);
    assert_int_equal(tutti_store_add(store, "n", 1, &sum), TUTTI_OK);
    assert_int_equal(sum, 2);
    tutti_store_close(store);
    end_server(&server);
}

static bool asked_often(void *context)
{
    int *asked = context;

    return ++*asked > 5;
}

/* Who knows from elsewhere that it is stopped does not wait, in whatever call, however much time there is. */
static void a_stopped_server_is_not_waited_for_in_vain(void **state)
{
    const server_process server = start_server();
    tutti_store         *store = client_of(&server), *another = NULL;
    int                  asked = 0;
    const tti_doubt      doubt = { .is_vain = asked_often, .context = &asked };
    tutti_bytes          value = { .data = NULL };
    int64_t              sum = 0;

    (void)state;
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    tti_doubt_waits(&doubt);
    assert_int_equal(tti_store_get_until(store, "never", TTI_FOREVER, &value), TUTTI_E_NETWORK); /* or it hangs */
    assert_non_null(strstr(tutti_last_error(), "not waited for any more"));
    asked = 0;
    assert_int_equal(tti_store_add_until(store, "n", 1, TTI_FOREVER, &sum), TUTTI_E_NETWORK); /* on a fresh connection */
    asked = 0;
    assert_int_equal(tti_tcp_store_reach(tti_port_system(), "127.0.0.1", (uint16_t)server.port, TUTTI_INFINITE, TTI_FOREVER,
                                         &another), TUTTI_E_NETWORK);
    tti_doubt_waits(NULL);
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    assert_int_equal(tutti_store_add(store, "n", 1, &sum), TUTTI_OK);
    tutti_store_close(store);
    end_server(&server);
}

/* In a child, where cmocka must not be used: wait for a key and for a queue at once, until killed. */
static void wait_in_child(const server_process *server, int ready)
{
    waiter w = { .wait = wait_by_pop };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (open_client(server, &w.store) != TUTTI_OK ||
        tti_thread_start(&w.thread, "waiter", run_waiter, &w) != TUTTI_OK ||
        tutti_store_set(w.store, "child", "here", 4) != TUTTI_OK || write(ready, "x", 1) != 1)
        _exit(1);
    wait_by_get(w.store);
    _exit(1);
}

static void a_killed_client_harms_nobody(void **state)
{
    const server_process server = start_server();
    server_process       child;
    tutti_store         *store;
    tutti_bytes          value = { .data = NULL };
    const char          *key = "child";
    int                  pipes[2];
    char                 byte;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0)
        wait_in_child(&server, pipes[1]);
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    close(pipes[0]);
    end_server(&child);
    store = client_of(&server);
    assert_int_equal(tutti_store_wait(store, &key, 1, 20000), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "never", "came", 4), TUTTI_OK);
    assert_int_equal(tutti_store_get(store, "never", 20000, &value), TUTTI_OK);
    assert_string_equal(value.data, "came");
    tutti_bytes_free(&value);
    tutti_store_close(store);
    end_server(&server);
}

static void a_killed_master_frees_its_port(void **state)
{
    const server_process       server = start_server();
    tutti_store_server_options options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *next = NULL;
    tutti_store               *store = client_of(&server);

    (void)state;
    end_server(&server);
    options.port = server.port; /* though a connection to it is still open here */
    assert_int_equal(tutti_store_server_start(&options, &next), TUTTI_OK);
    tutti_store_server_stop(next);
    tutti_store_close(store);
}

/* A client that says what its will is, and whether it takes that back; then it waits to be killed. */
static pid_t start_testator(const server_process *server, bool takes_back)
{
    int   said[2];
    char  byte;
    pid_t pid;

    assert_int_equal(pipe(said), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tutti_store    *store = NULL, *part = NULL;
        tti_store_will *will = NULL;
        const int64_t   until = tti_deadline(tti_port_system(), LONG_MS, 0);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (open_client(server, &store) != TUTTI_OK || tutti_prefix_store_open("part", store, &part) != TUTTI_OK ||
            tti_store_will_leave(part, "gone", takes_back ? "no." : "yes.", takes_back ? 3 : 4, until, &will) != TUTTI_OK)
            _exit(1);
        if (takes_back)
            tti_store_will_take_back(will, until);
        if (write(said[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(said[1]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    close(said[0]);
    return pid;
}

static void kill_client(pid_t pid)
{
    int status = 0;

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void the_will_of_a_killed_client_is_said(void **state)
{
    const server_process server = start_server();
    const pid_t          fickle = start_testator(&server, true), victim = start_testator(&server, false);
    tutti_store         *store = client_of(&server), *files = NULL;
    tti_store_will      *will = NULL;
    tutti_bytes          value = { .data = NULL };
    const char          *key = "part/gone";
    bool                 there = true;

    (void)state;
    assert_int_equal(tutti_store_check(store, &key, 1, &there), TUTTI_OK);
    assert_false(there);
    kill_client(fickle);
    kill_client(victim);
    assert_int_equal(tutti_store_get(store, key, LONG_MS, &value), TUTTI_OK);
    assert_string_equal(value.data, "yes.");
    tutti_bytes_free(&value);
    assert_int_equal(tutti_hash_store_open(&files), TUTTI_OK);
    assert_int_equal(tti_store_will_leave(files, "gone", "x", 1, TTI_FOREVER, &will), TUTTI_E_UNSUPPORTED);
    tutti_store_close(files);
    tutti_store_close(store);
    end_server(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wait_ends_when_the_server_is_killed),
        cmocka_unit_test(a_stopped_server_is_waited_for_until_the_time_out),
        cmocka_unit_test(a_stopped_server_is_not_waited_for_in_vain),
        cmocka_unit_test(a_killed_client_harms_nobody),
        cmocka_unit_test(a_killed_master_frees_its_port),
        cmocka_unit_test(the_will_of_a_killed_client_is_said),
    };

    unsetenv("TUTTI_SECRET_FILE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
