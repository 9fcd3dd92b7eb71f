/* SPDX-License-Identifier: BSD-3-Clause
 *
 * descriptors_test.c
 * Goal    descriptors that the kernel knows nothing of are answered as the kernel answers its own, and those of the kernel go to it.
 * Method  the same calls on a memfd of the kernel's, on one more of what that is open on, and on a file in memory. */
#include "fuzz/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "fuzz/fuzz.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

static const char text[] = "what is in it";

/* What the kernel and the table have to say alike. */
static void answers(int fd)
{
    char          got[64] = "";
    struct stat   about;
    struct statfs fs;
    char         *map;

    assert_int_equal(fstat(fd, &about), 0);
    assert_true(S_ISREG(about.st_mode) && about.st_size == sizeof text && about.st_uid == geteuid());
    assert_int_equal(fstatfs(fd, &fs), 0);
    assert_int_equal(fcntl(fd, F_GET_SEALS), SEALS);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(pread(fd, got, sizeof got, 5), sizeof text - 5);
    assert_string_equal(got, text + 5);
    assert_int_equal(pread(fd, got, sizeof got, 100), 0);
    map = mmap(NULL, sizeof text, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_string_equal(map, text);
    assert_int_equal(munmap(map, sizeof text), 0);
}

static void closes(int fd)
{
    struct stat about;

    assert_int_equal(close(fd), 0);
    assert_int_equal(fstat(fd, &about), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
}

/* By its path, and by another number. */
static void opens_again(int fd)
{
    char      path[TT_FD_PATH_BYTES], got[sizeof text];
    FILE     *file;
    const int twin = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int       again;

    tt_fd_path(fd, path);
    again = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(twin >= 0 && again >= 0 && twin != fd && again != fd);
    answers(twin);
    answers(again);
    closes(twin);
    closes(again);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), sizeof text);
    assert_string_equal(got, text);
    fclose(file);
    answers(fd);
}

static void are_alike(void **state)
{
    const int real = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const int memory = tt_fd_memory(text, sizeof text, SEALS);
    int       like;

    (void)state;
    assert_true(real >= 0 && write(real, text, sizeof text) == sizeof text && fcntl(real, F_ADD_SEALS, SEALS) == 0);
    like = tt_fd_like(real);
    answers(real);
    answers(like);
    answers(memory);
    opens_again(real);
    opens_again(memory);
    assert_int_equal(tt_fds_open(), 2);
    closes(like);
    answers(real);
    closes(memory);
    answers(real); /* it stays open, as descriptors.h wants */
    assert_int_equal(tt_fds_open(), 0);
}

/* Who copies descriptors keeps what they are open on. */
static void the_last_one_counts(void **state)
{
    const int first = tt_fd_memory(text, sizeof text, SEALS), second = fcntl(first, F_DUPFD_CLOEXEC, 0);

    (void)state;
    closes(first);
    answers(second);
    closes(second);
}

/* One that is no file: of a device, without seals. */
static void others_have_no_seals(void **state)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC), like = tt_fd_like(nothing);

    (void)state;
    assert_int_equal(fcntl(nothing, F_GET_SEALS), -1);
    assert_int_equal(fcntl(like, F_GET_SEALS), -1);
    assert_int_equal(errno, EINVAL);
    closes(like);
}

static void twice_ends_the_process(void **state)
{
    const int fd = tt_fd_memory(text, sizeof text, 0);
    int       status = 0;
    pid_t     pid;

    (void)state;
    close(fd);
    pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        close(fd);
        _exit(0);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_alike),
        cmocka_unit_test(the_last_one_counts),
        cmocka_unit_test(others_have_no_seals),
        cmocka_unit_test(twice_ends_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
