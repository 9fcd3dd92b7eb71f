/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_peer_test.c - the kernel tells whose process is at the other end of loopback: of another user's, and after it has gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/port.h"

enum { SOMEBODY = 12345 };

static const tti_addr loopbacks[] = {
    { .family = TTI_ADDR_IP4, .ip = { 127, 0, 0, 1 } },
    { .family = TTI_ADDR_IP6, .ip = { [15] = 1 } },
};

/* Connect, and stay until told to end. */
static _Noreturn void client_main(const tti_addr *to, uid_t user, int until)
{
    tti_port  *port = tti_port_system();
    tti_handle stream = TTI_NO_HANDLE;
    char       byte;

    if (user != geteuid() && setuid(user) != 0)
        _exit(1);
    if (port->ops->connect(port, to, &stream) != 0)
        _exit(2);
    _exit(read(until, &byte, 1) == 0 ? 0 : 3);
}

static tti_handle accept_one(tti_handle listener)
{
    tti_port *port = tti_port_system();
    tti_poll  poll = { .handle = listener, .want = TTI_READ };

    assert_int_equal(port->ops->poll(port, &poll, 1, tti_port_now(port) + 20 * TTI_SECOND), 1);
    return port->ops->accept(port, listener, NULL);
}

static void tells(const tti_addr *at, uid_t user)
{
    tti_port     *port = tti_port_system();
    tti_handle    listener = TTI_NO_HANDLE, stream;
    tti_peer_cred cred = { .uid = -1 };
    tti_addr      bound;
    int           ends[2], status = -1;
    pid_t         child;

    if (port->ops->listen(port, at, 4, &bound, &listener) != 0)
        return; /* a host without IPv6 */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        client_main(&bound, user, ends[0]);
    }
    stream = accept_one(listener);
    assert_true(stream >= 0);
    assert_int_equal(port->ops->peer_cred(port, stream, &cred), 0);
    assert_int_equal(cred.uid, user);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_not_equal(port->ops->peer_cred(port, stream, &cred), 0); /* nobody's any more */
    port->ops->close(port, stream);
    port->ops->close(port, listener);
}

static void own_processes_are_told(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof loopbacks / sizeof loopbacks[0]; i++)
        tells(&loopbacks[i], geteuid());
}

static void those_of_others_are_told(void **state)
{
    size_t i;

    (void)state;
    if (geteuid() != 0)
        skip();
    for (i = 0; i < sizeof loopbacks / sizeof loopbacks[0]; i++)
        tells(&loopbacks[i], SOMEBODY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_processes_are_told),
        cmocka_unit_test(those_of_others_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
