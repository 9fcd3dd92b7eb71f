/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress_test.c
 * Goal    a terminal gets one line that changes, everybody else a line each time; ranks but 0 say nothing.
 * Method  stderr is a pseudo terminal, then a file in memory; instead of waiting, the time of the last line is moved
 *         back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "examples/common/progress.h"

/* Two lines, the first one longer, with stderr at fd. */
static void two_lines(int rank, int fd, bool live)
{
    const int saved = dup(STDERR_FILENO);
    progress p;

    assert_true(saved >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    progress_open(&p, rank);
    progress_show(&p, "%s", "one hundred");
    if (progress_due(&p)) /* not before its time, for which this program may have had no core */
        assert_true(progress_now() - p.shown >= (live ? 0.1 : 5.0));
    p.shown -= 60.0;
    if (progress_due(&p))
        progress_show(&p, "%d", 2);
    progress_clear(&p);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    assert_int_equal(p.live, live);
}

static void a_terminal_has_one_line(void **state)
{
    static const char expected[] = "\rone hundred\033[K\r2\033[K\r\033[K";
    const int own = posix_openpt(O_RDWR | O_NOCTTY);
    struct termios raw;
    char said[256] = "";
    size_t have = 0;
    int terminal;

    (void)state;
    if (own < 0 || grantpt(own) != 0 || unlockpt(own) != 0)
        skip(); /* no pseudo terminals here */
    terminal = open(ptsname(own), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && tcgetattr(terminal, &raw) == 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(terminal, TCSANOW, &raw), 0);
    two_lines(0, terminal, true);
    while (have < sizeof expected - 1) { /* it comes in as many pieces as the terminal likes */
        const ssize_t got = read(own, said + have, sizeof said - 1 - have);

        assert_true(got > 0);
        have += (size_t)got;
    }
    assert_string_equal(said, expected);
    close(terminal);
    close(own);
}

static void a_file_has_lines(void **state)
{
    char said[256] = "";
    int fd = memfd_create("stderr", MFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    two_lines(0, fd, false);
    assert_true(pread(fd, said, sizeof said - 1, 0) > 0);
    assert_string_equal(said, "one hundred\n2\n");
    close(fd);
}

static void others_say_nothing(void **state)
{
    int fd = memfd_create("stderr", MFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    two_lines(1, fd, false);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_has_one_line),
        cmocka_unit_test(a_file_has_lines),
        cmocka_unit_test(others_say_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
