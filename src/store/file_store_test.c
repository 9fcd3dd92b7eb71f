/* SPDX-License-Identifier: BSD-3-Clause
 *
 * file_store_test.c - the file itself: its bytes, torn ends, foreign contents, several processes,
 * and who removes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store.h>

static char dir[40];
static char path[64];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/tutti-file-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/store", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static off_t file_size(void)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : -1;
}

static void append_bytes(const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, bytes), bytes);
    close(fd);
}

static void the_last_handle_removes_the_file(void **state)
{
    tutti_store *a = NULL, *b = NULL, *c = NULL;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, 3, &a), TUTTI_OK);
    assert_int_equal(tutti_file_store_open(path, 3, &b), TUTTI_OK);
    tutti_store_close(a);
    tutti_store_close(b); /* nobody is left, but only two of three have been here */
    assert_true(file_size() > 0);
    assert_int_equal(tutti_file_store_open(path, 3, &c), TUTTI_OK);
    tutti_store_close(c);
    assert_int_equal(file_size(), -1);
    assert_int_equal(tutti_file_store_open(path, -1, &a), TUTTI_OK);
    tutti_store_close(a);
    assert_true(file_size() > 0);
}

static void records_have_the_documented_bytes(void **state)
{
    /* refcount/ = 1, then /k = val, then the deletion of /k */
    static const char want[] = "\x09\0\0\0refcount/\x01\0\0\0"
                               "1"
                               "\x02\0\0\0/k\x03\0\0\0val"
                               "\x03\0\0\0-/k\0\0\0";
    char              have[128] = { 0 };
    tutti_store      *store = NULL;
    int               fd;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "k", "val", 3), TUTTI_OK);
    assert_int_equal(tutti_store_delete_key(store, "k", NULL), TUTTI_OK);
    fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, have, sizeof have), sizeof want);
    close(fd);
    assert_memory_equal(have, want, sizeof want);
    tutti_store_close(store);
}

/* Every possible torn end of a record: readers see what is whole, the next writer repairs. */
static void torn_records_are_dropped(void **state)
{
    static const char record[] = "\x02\0\0\0/t\x05\0\0\0tttt";
    const size_t      bytes = sizeof record - 1; /* one byte short, and less */
    tutti_store      *store = NULL;
    tutti_bytes       value = { .data = NULL };
    const char       *key = "t";
    bool              there = true;
    off_t             whole;
    size_t            n;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    whole = file_size();
    for (n = 1; n <= bytes; n++) {
        append_bytes(record, n);
        assert_int_equal(tutti_store_check(store, &key, 1, &there), TUTTI_OK);
        assert_false(there);
        assert_int_equal(tutti_store_delete_key(store, "k", NULL), TUTTI_OK);
        assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
        assert_int_equal(tutti_store_get(store, "k", 1000, &value), TUTTI_OK);
        assert_string_equal(value.data, "v");
        tutti_bytes_free(&value);
        whole += 4 + 3 + 4 + 4 + 2 + 4 + 1;
        assert_int_equal(file_size(), whole);
    }
    tutti_store_close(store);
}

static void foreign_files_are_refused(void **state)
{
    tutti_store *store = NULL;

    (void)state;
    append_bytes("#!/bin/sh\necho hello\n", 21);
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_E_IO);
    assert_non_null(strstr(tutti_last_error(), "is no store file"));
    assert_int_equal(file_size(), 21); /* untouched */
    unlink(path);
    append_bytes("\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_E_IO);
    unlink(path);
    append_bytes("\x01\0\0\0k\xff\xff\xff\xff", 9);
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_E_IO);
    assert_int_equal(tutti_file_store_open(dir, -1, &store), TUTTI_E_IO);
    assert_int_equal(tutti_file_store_open("/no/such/dir/x", -1, &store), TUTTI_E_IO);
    assert_int_equal(tutti_file_store_open("", -1, &store), TUTTI_E_ARG);
    assert_int_equal(tutti_file_store_open(path, 0, &store), TUTTI_E_ARG);
    assert_null(store);
}

static void a_file_cut_by_others_is_an_error(void **state)
{
    tutti_store *store = NULL;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_E_IO);
    assert_non_null(strstr(tutti_last_error(), "was cut to 5 bytes"));
    tutti_store_close(store);
}

enum { PROCESSES = 4, ADDS = 50 };

/* 0: all went well. Runs in a child, where cmocka must not be used. */
static int child(int me)
{
    tutti_store *store = NULL;
    tutti_bytes  value = { .data = NULL };
    char         key[24];
    int          i, bad;

    if (tutti_file_store_open(path, -1, &store) != TUTTI_OK)
        return 1;
    for (i = 0; i < ADDS; i++)
        if (tutti_store_add(store, "sum", 1, NULL) != TUTTI_OK)
            return 2;
    snprintf(key, sizeof key, "done/%d", me);
    if (tutti_store_set(store, key, "x", 1) != TUTTI_OK)
        return 3;
    snprintf(key, sizeof key, "done/%d", (me + 1) % PROCESSES);
    bad = tutti_store_get(store, key, 20000, &value) != TUTTI_OK;
    tutti_bytes_free(&value);
    tutti_store_close(store);
    return bad ? 4 : 0;
}

static void processes_share_the_file(void **state)
{
    pid_t        pids[PROCESSES];
    tutti_store *store = NULL;
    int64_t      sum = 0;
    int          i, status;

    (void)state;
    for (i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(child(i));
    }
    for (i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    assert_int_equal(tutti_store_add(store, "sum", 0, &sum), TUTTI_OK);
    assert_int_equal(sum, PROCESSES * ADDS);
    tutti_store_close(store);
}

/* A process that dies with the lock takes it along. */
static void a_killed_writer_leaves_no_lock(void **state)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 << 20 };
    tutti_store *store = NULL;
    int          ready[2], fd, status;
    pid_t        pid;
    char         byte;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        fd = open(path, O_RDWR);
        if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &whole) == 0 && write(ready[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(tutti_store_set_timeout(store, 30), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_E_TIMEOUT);
    assert_non_null(strstr(tutti_last_error(), "stayed locked"));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(tutti_store_set_timeout(store, 10000), TUTTI_OK);
    assert_int_equal(tutti_store_set(store, "k", "v", 1), TUTTI_OK);
    close(ready[0]);
    close(ready[1]);
    tutti_store_close(store);
}

/* What a job that was killed leaves: a count of users, and nobody alive. Processes that still have
 * the file open, or closed it in order, make no left-over. */
static void left_over_files_are_named(void **state)
{
    tutti_store *store = NULL, *other = NULL;
    pid_t        pid = fork();
    int          status;

    (void)state;
    if (pid == 0)
        _exit(tutti_file_store_open(path, 2, &store) == TUTTI_OK ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(tutti_file_store_open(path, 2, &store), TUTTI_E_STATE);
    assert_non_null(strstr(tutti_last_error(), path));
    assert_non_null(strstr(tutti_last_error(), "is left over: 1 of its handles"));
    assert_null(store);
    setenv("TUTTI_LOG", "error", 1); /* the warning is expected */
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    unsetenv("TUTTI_LOG");
    assert_int_equal(tutti_file_store_open(path, 2, &other), TUTTI_OK); /* somebody is alive */
    tutti_store_close(other);
    tutti_store_close(store);
    unlink(path);
    assert_int_equal(tutti_file_store_open(path, 2, &store), TUTTI_OK);
    tutti_store_close(store); /* in order, and before the other comes */
    assert_int_equal(tutti_file_store_open(path, 2, &store), TUTTI_OK);
    tutti_store_close(store);
    assert_int_equal(file_size(), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_handle_removes_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(records_have_the_documented_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(torn_records_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_files_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_cut_by_others_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(processes_share_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_killed_writer_leaves_no_lock, setup, teardown),
        cmocka_unit_test_setup_teardown(left_over_files_are_named, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
