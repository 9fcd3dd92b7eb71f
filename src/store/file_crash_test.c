/* SPDX-License-Identifier: BSD-3-Clause
 *
 * file_crash_test.c
 * Goal    whatever moment a writer of a file store dies at, the others and the next ones find whole
 *         records: the old value or the new one, or a file that is named as left over.
 * Method  a child's limit on file sizes (RLIMIT_FSIZE) ends it with SIGXFSZ at a byte of our choosing,
 *         in the middle of its write, with locks held; all bytes are tried. Then every prefix of a
 *         log that a whole life wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store.h>
#include "base/thread.h"

static char dir[40];
static char path[64];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/tutti-crash-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/store", dir);
    return setenv("TUTTI_LOG", "error", 1); /* torn records are warned about: expected here */
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void set_text(tutti_store *store, const char *key, const char *text)
{
    assert_int_equal(tutti_store_set(store, key, text, strlen(text)), TUTTI_OK);
}

/* 1: the value is `text`; it must be one of the two. */
static int which(tutti_store *store, const char *key, const char *text, const char *other)
{
    tutti_bytes value = { .data = NULL };
    int         is;

    assert_int_equal(tutti_store_get(store, key, 5000, &value), TUTTI_OK);
    is = strcmp(value.data, text) == 0;
    if (!is)
        assert_string_equal(value.data, other);
    tutti_bytes_free(&value);
    return is;
}

/* From here on this process may write `bytes` more to the file. */
static bool limit_writes(rlim_t bytes)
{
    const struct rlimit no_core = { 0, 0 };
    struct rlimit       limit;
    struct stat         st;

    if (stat(path, &st) != 0 || setrlimit(RLIMIT_CORE, &no_core) != 0)
        return false;
    limit.rlim_cur = limit.rlim_max = (rlim_t)st.st_size + bytes;
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static const char *const keys[] = { "first", "second" };

/* In a child: two records, killed behind `bytes` bytes of them. */
static int write_two(rlim_t bytes)
{
    const tutti_bytes values[] = { { .data = (char[]){ "new" }, .size = 3 },
                                   { .data = (char[]){ "newer" }, .size = 5 } };
    tutti_store      *store = NULL;

    if (tutti_file_store_open(path, -1, &store) != TUTTI_OK || !limit_writes(bytes))
        return 1;
    return tutti_store_multi_set(store, keys, values, 2) == TUTTI_OK ? 0 : 2;
}

static int run_child(rlim_t bytes)
{
    int   status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(write_two(bytes));
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_writer_killed_at_any_byte_leaves_whole_records(void **state)
{
    const rlim_t first = 4 + 1 + 5 + 4 + 3, both = first + 4 + 1 + 6 + 4 + 5;
    tutti_store *store = NULL, *fresh = NULL;
    rlim_t       n;
    int          status, done[2];

    (void)state;
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    for (n = 0; n <= both; n++) {
        set_text(store, "first", "old");
        set_text(store, "second", "older");
        status = run_child(n);
        if (n < both)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        done[0] = which(store, "first", "new", "old"); /* a reader, before anybody repairs */
        done[1] = which(store, "second", "newer", "older");
        assert_int_equal(done[0], n >= first);
        assert_int_equal(done[1], n >= both);
        set_text(store, "after", "x"); /* no lock was left; this one cuts what is torn */
        assert_int_equal(tutti_file_store_open(path, -1, &fresh), TUTTI_OK);
        assert_int_equal(which(fresh, "first", "new", "old"), done[0]);
        assert_int_equal(which(fresh, "after", "x", "x"), 1);
        tutti_store_close(fresh);
    }
    tutti_store_close(store);
}

/* The same without a death: the write fails, and the record is taken back at once. */
static int write_without_room(rlim_t bytes)
{
    tutti_store *store = NULL;
    struct stat  before, after;

    signal(SIGXFSZ, SIG_IGN);
    if (tutti_file_store_open(path, -1, &store) != TUTTI_OK || stat(path, &before) != 0 ||
        !limit_writes(bytes))
        return 1;
    if (tutti_store_set(store, "first", "new", 3) != TUTTI_E_IO ||
        strstr(tutti_last_error(), "cannot write to store file") == NULL)
        return 2;
    return stat(path, &after) == 0 && after.st_size == before.st_size ? 0 : 3;
}

static void a_write_that_fails_is_taken_back(void **state)
{
    tutti_store *store = NULL;
    rlim_t       n;
    int          status = 0;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
    set_text(store, "first", "old");
    for (n = 0; n < 4 + 6 + 4 + 3; n += 4) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(write_without_room(n));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(which(store, "first", "old", "old"), 1);
    }
    tutti_store_close(store);
}

enum { LOG_MAX = 4096 };

/* The bytes of a life: two handles come, write, and one leaves. */
static size_t record_a_life(char log[LOG_MAX])
{
    tutti_store *a = NULL, *b = NULL;
    FILE        *file;
    size_t       bytes;

    assert_int_equal(tutti_file_store_open(path, 3, &a), TUTTI_OK);
    assert_int_equal(tutti_file_store_open(path, 3, &b), TUTTI_OK);
    set_text(a, "k", "one");
    set_text(b, "k", "another");
    assert_int_equal(tutti_store_add(b, "n", 41, NULL), TUTTI_OK);
    assert_int_equal(tutti_store_delete_key(a, "k", NULL), TUTTI_OK);
    tutti_store_close(a);
    tutti_store_close(b);
    file = fopen(path, "rb");
    assert_non_null(file);
    bytes = fread(log, 1, LOG_MAX, file);
    fclose(file);
    assert_true(bytes > 0 && bytes < LOG_MAX);
    return bytes;
}

static void write_prefix(const char *log, size_t bytes)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(log, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* A machine that went down: nobody is alive, and the log ends anywhere. With a world_size it is left
 * over, unless nobody was in; without one it can be read and written. */
static void every_prefix_of_a_log_is_named_or_read(void **state)
{
    char         log[LOG_MAX];
    const size_t bytes = record_a_life(log), in = 4 + 9 + 4 + 1;
    tutti_store *store = NULL;
    size_t       n, clean = 0;

    (void)state;
    for (n = 0; n <= bytes; n++) {
        tutti_status st;

        write_prefix(log, n);
        st = tutti_file_store_open(path, 3, &store);
        if (st == TUTTI_OK) {
            clean++;
            assert_true(n < in || n == bytes); /* nobody had come yet, or all had left */
            tutti_store_close(store);
        } else {
            assert_int_equal(st, TUTTI_E_STATE);
            assert_non_null(strstr(tutti_last_error(), "is left over"));
        }
        write_prefix(log, n);
        assert_int_equal(tutti_file_store_open(path, -1, &store), TUTTI_OK);
        set_text(store, "k", "here");
        assert_int_equal(which(store, "k", "here", "here"), 1);
        tutti_store_close(store);
    }
    assert_int_equal(clean, in + 1);
}

/* ---- locks and names --------------------------------------------------------------------------- */

/* Closing a descriptor drops all classic locks of its process on the file. Ours belong to an opening. */
static void closing_a_handle_keeps_the_locks_of_another(void **state)
{
    tutti_store *a = NULL, *b = NULL;
    int          status = 0, fd;
    pid_t        pid;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, 3, &a), TUTTI_OK);
    assert_int_equal(tutti_file_store_open(path, 3, &b), TUTTI_OK);
    tutti_store_close(b);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
    pid = fork();
    if (pid == 0) { /* finds somebody alive: no left-over */
        tutti_store *c = NULL;

        _exit(tutti_file_store_open(path, 3, &c) == TUTTI_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tutti_store_close(a);
}

typedef struct getter {
    tti_thread       thread;
    tutti_store     *store;
    _Atomic uint32_t runs;
    tutti_status     st;
    char             words[256];
} getter;

static void get_never(void *arg)
{
    getter     *g = arg;
    tutti_bytes value = { .data = NULL };

    atomic_store(&g->runs, 1);
    g->st = tutti_store_get(g->store, "never", TUTTI_INFINITE, &value);
    snprintf(g->words, sizeof g->words, "%s", tutti_last_error());
}

/* Who opens it later would be in another store: nobody goes on as if nothing had been. */
static void a_removed_file_ends_waits(void **state)
{
    getter       g = { .st = TUTTI_OK };
    tutti_store *later = NULL;

    (void)state;
    assert_int_equal(tutti_file_store_open(path, -1, &g.store), TUTTI_OK);
    assert_int_equal(tti_thread_start(&g.thread, "getter", get_never, &g), TUTTI_OK);
    while (atomic_load(&g.runs) == 0)
        tti_port_system()->ops->yield(tti_port_system());
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tutti_file_store_open(path, -1, &later), TUTTI_OK);
    tti_thread_join(&g.thread);
    assert_int_equal(g.st, TUTTI_E_IO);
    assert_non_null(strstr(g.words, "was removed while it was in use"));
    assert_int_equal(tutti_store_set(g.store, "k", "v", 1), TUTTI_E_IO);
    set_text(later, "k", "x");
    tutti_store_close(g.store); /* and it does not remove the other one */
    assert_int_equal(which(later, "k", "x", "x"), 1);
    tutti_store_close(later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_writer_killed_at_any_byte_leaves_whole_records, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_write_that_fails_is_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(every_prefix_of_a_log_is_named_or_read, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_a_handle_keeps_the_locks_of_another, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_removed_file_ends_waits, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
