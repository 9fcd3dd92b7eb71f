/* SPDX-License-Identifier: BSD-3-Clause
 *
 * testing.c - see testing.h. */
#include "elastic/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/status.h>

void tt_capture_begin(tt_capture *c)
{
    int i;

    fflush(NULL);
    *c = (tt_capture){ .out = NULL };
    for (i = 0; i < 2; i++) {
        c->saved[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 20);
        c->fd[i] = memfd_create("captured", MFD_CLOEXEC);
        assert_true(c->saved[i] >= 0 && c->fd[i] >= 0);
        assert_true(dup2(c->fd[i], STDOUT_FILENO + i) >= 0);
    }
}

static char *read_all(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);

    assert_non_null(text);
    assert_true(pread(fd, text, (size_t)size, 0) == size);
    text[size] = '\0';
    return text;
}

void tt_capture_end(tt_capture *c)
{
    int i;

    fflush(NULL);
    for (i = 0; i < 2; i++) {
        dup2(c->saved[i], STDOUT_FILENO + i);
        close(c->saved[i]);
    }
    c->out = read_all(c->fd[0]);
    c->err = read_all(c->fd[1]);
    close(c->fd[0]);
    close(c->fd[1]);
}

void tt_capture_free(tt_capture *c)
{
    free(c->out);
    free(c->err);
}

tt_outcome tt_launch(tutti_launch_options o, char *const *argv)
{
    tt_outcome r = { .code = -1 };

    o.argv = argv;
    tt_capture_begin(&r.text);
    r.status = tutti_launch(&o, &r.code);
    tt_capture_end(&r.text);
    return r;
}

int tt_count_lines(const char *text, const char *prefix)
{
    int n = 0;

    while (*text != '\0') {
        n += strncmp(text, prefix, strlen(prefix)) == 0;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return n;
}

void tt_say_error(int rank, bool is_soon, const char *more)
{
    char words[2048], *at;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    for (at = words; *at != '\0'; at++)
        if (*at == '\n')
            *at = ' ';
    printf("rank %d: %s; %s%s\n", rank, words, is_soon ? "soon" : "late", more);
    fflush(stdout);
}

long tt_number_after(const char *text, const char *word)
{
    const char *found = strstr(text, word);

    return found != NULL ? strtol(found + strlen(word), NULL, 10) : -1;
}

bool tt_gone_within(pid_t pid, int ms)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    int n;

    if (fd < 0)
        return errno == ESRCH;
    n = poll(&wait, 1, ms);
    close(fd);
    return n == 1;
}

static void put_null(int at)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    if (fd == at)
        return;
    assert_int_equal(dup3(fd, at, O_CLOEXEC), at);
    close(fd);
}

void tt_marks_reserve(void)
{
    put_null(TT_WAIT_FD);
    put_null(TT_MARK_FD);
}

int tt_marks_open(void)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[0], TT_WAIT_FD), TT_WAIT_FD);
    assert_int_equal(dup2(ends[1], TT_MARK_FD), TT_MARK_FD);
    close(ends[1]);
    return ends[0];
}

void tt_marks_close(int fd)
{
    close(fd);
    tt_marks_reserve();
}

void tt_marks_wait(int fd, int n, char line[64])
{
    size_t len = 0;
    char c;

    while (n > 0 && read(fd, &c, 1) == 1) {
        if (c == '\n') {
            line[len] = '\0';
            len = 0;
            n--;
        } else if (len < 63) {
            line[len++] = c;
        }
    }
}
