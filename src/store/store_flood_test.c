/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_flood_test.c
 * Goal    strangers who say nothing, many more than the server's process may have files, neither keep a client out nor each
 *         other: one goes for each that comes, and nobody is turned away.
 * Method  another process opens connections, then is a client. The server has taken them in that order, so that the last
 *         strangers must still be there when the client has been served. Nobody goes because his time is up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "base/port.h"
#include "store/store_server.h"

enum { FILES = 256, STRANGERS = 700, LAST = 50, CLIENT_MS = 20000 };
enum { ALL_WELL, TOO_FEW_FILES, NOT_CONNECTED, NOT_SERVED, TURNED_AWAY };

static int dial(int tcp_port)
{
    const struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)tcp_port) };
    const int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 ? fd : -1;
}

static bool is_served(int tcp_port)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    bool                    ok;

    options.host = "127.0.0.1";
    options.port = tcp_port;
    options.timeout_ms = CLIENT_MS;
    ok = tutti_tcp_store_open(&options, &store) == TUTTI_OK && tutti_store_set(store, "key", "value", 5) == TUTTI_OK;
    if (!ok)
        fprintf(stderr, "%s\n", tutti_last_error());
    tutti_store_close(store);
    return ok;
}

static int come_in_crowds(int tcp_port)
{
    struct rlimit files;
    int           fds[STRANGERS], i;
    char          byte;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max < STRANGERS + 64)
        return TOO_FEW_FILES;
    files.rlim_cur = STRANGERS + 64;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        return TOO_FEW_FILES;
    for (i = 0; i < STRANGERS; i++)
        if ((fds[i] = dial(tcp_port)) < 0)
            return NOT_CONNECTED;
    if (!is_served(tcp_port))
        return NOT_SERVED;
    for (i = STRANGERS - LAST; i < STRANGERS; i++)
        if (recv(fds[i], &byte, 1, MSG_DONTWAIT) >= 0) /* nothing is said to them: it is the end */
            return TURNED_AWAY;
    return ALL_WELL;
}

/* It is forked before there is a server, whose threads a child would not have. */
static pid_t start_crowd(int *tell_out)
{
    int   tell[2], tcp_port = 0;
    pid_t pid;

    assert_int_equal(pipe(tell), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(tell[1]);
        _exit(read(tell[0], &tcp_port, sizeof tcp_port) == sizeof tcp_port ? come_in_crowds(tcp_port) : NOT_CONNECTED);
    }
    close(tell[0]);
    *tell_out = tell[1];
    return pid;
}

static void more_strangers_than_files(void **state)
{
    const tti_engine_limits limits = { .hello_ns = 600 * TTI_SECOND };
    tutti_store_server     *server = NULL;
    struct rlimit           before, few;
    int                     tell, tcp_port, status = -1;
    pid_t                   crowd;

    (void)state;
    unsetenv("TUTTI_SECRET_FILE");
    crowd = start_crowd(&tell);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){ .rlim_cur = FILES, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(tti_store_server_start_limited(NULL, &limits, &server), TUTTI_OK);
    tcp_port = tutti_store_server_port(server);
    assert_int_equal(write(tell, &tcp_port, sizeof tcp_port), sizeof tcp_port);
    close(tell);
    assert_int_equal(waitpid(crowd, &status, 0), crowd);
    tutti_store_server_stop(server);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == TOO_FEW_FILES)
        skip();
    assert_int_equal(WEXITSTATUS(status), ALL_WELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(more_strangers_than_files) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
