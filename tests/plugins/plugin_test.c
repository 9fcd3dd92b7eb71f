/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plugin_test.c
 * Goal    a plug-in is found where the variable says and in that order, is loaded once, and works as a backend; one that is
 *         wrong in any way, or that others might have put there, is refused with words that name it.
 * Method  plug-ins that the build has made (variant.c) are copied into private directories, so that the build's place does not
 *         matter. Nothing is ever unloaded, so each that is to be refused has a name of its own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/backends.h>
#include <tutti/debug.h>
#include <tutti/tutti.h>
#include "backend/plugin/plugin.h"
#include "backend/registry.h"
#include "base/thread.h"

enum { THREADS = 8 };

static char first[PATH_MAX], second[PATH_MAX]; /* directories of this program */

/* ---- files ---- */

static void path_of(const char *directory, const char *name, char out[PATH_MAX])
{
    assert_true(snprintf(out, PATH_MAX, "%s/tutti-backend-%s.so", directory, name) < PATH_MAX);
}

static void copy(const char *from, const char *to)
{
    char    bytes[65536];
    ssize_t n;
    int     in = open(from, O_RDONLY | O_CLOEXEC);
    int     out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        assert_int_equal(write(out, bytes, (size_t)n), n);
    assert_int_equal(n, 0);
    close(in);
    close(out);
}

/* Put the plug-in that the build made as `built` into directory, called name. */
static void put(const char *built, const char *directory, const char *name, char path_out[PATH_MAX])
{
    char from[PATH_MAX];

    path_of(TT_PLUGINS, built, from);
    path_of(directory, name, path_out);
    copy(from, path_out);
}

static void search_in(const char *paths)
{
    assert_int_equal(setenv("TUTTI_PLUGIN_PATH", paths, 1), 0);
}

static void search_in_both(void)
{
    char both[2 * PATH_MAX + 4];

    snprintf(both, sizeof both, "%s::%s", first, second); /* nothing between colons is no directory */
    search_in(both);
}

static void assert_said(const char *word)
{
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

static void assert_refused(const char *name, tutti_status status, const char *word)
{
    const tutti_backend_ops *ops = NULL;

    assert_int_equal(tti_backend_find(name, &ops), status);
    assert_null(ops);
    assert_said(word);
    assert_said("\n  next: ");
}

/* The plug-in `built` alone, under its own name. */
static void assert_file_refused(const char *built, tutti_status status, const char *word)
{
    char path[PATH_MAX];

    put(built, first, built, path);
    assert_refused(built, status, word);
    assert_said(path); /* and which file it is */
    assert_false(tutti_is_backend_available(built));
    assert_int_equal(unlink(path), 0);
}

/* ---- what is wrong with files ---- */

static void test_broken(void **state)
{
    (void)state;
    search_in(first);
    assert_file_refused("too-old", TUTTI_E_UNSUPPORTED, "too old: it is of version 0");
    assert_file_refused("too-new", TUTTI_E_UNSUPPORTED, "too new: it is of version 99");
    assert_file_refused("wrong-size", TUTTI_E_BACKEND, "has 16 bytes");
    assert_file_refused("no-device", TUTTI_E_BACKEND, "devices 0x0");
    assert_file_refused("no-table", TUTTI_E_BACKEND, "has no table");
    assert_file_refused("no-init", TUTTI_E_BACKEND, "has no init");
    assert_file_refused("old-table", TUTTI_E_UNSUPPORTED, "version 0, which is too old");
    assert_file_refused("new-table", TUTTI_E_UNSUPPORTED, "version 99, which is too new");
    assert_file_refused("short-table", TUTTI_E_BACKEND, "with 64 bytes");
    assert_file_refused("no-run", TUTTI_E_BACKEND, "has no entry 'run'");
    assert_file_refused("half-messages", TUTTI_E_BACKEND, "not 'wait'");
    assert_file_refused("misnamed", TUTTI_E_BACKEND, "called 'somebody'");
    assert_file_refused("empty", TUTTI_E_BACKEND, "is no plug-in");
}

static void test_no_object(void **state)
{
    char  path[PATH_MAX];
    FILE *file;

    (void)state;
    search_in(first);
    path_of(first, "text", path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("this is no shared object\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_refused("text", TUTTI_E_BACKEND, "cannot be loaded");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused("text", TUTTI_E_AUTH, "not a regular file");
    assert_int_equal(rmdir(path), 0);
}

/* What a full disk, or a copy that was ended, leaves of a plug-in: to load it would end this process by SIGBUS. */
static void test_cut_off(void **state)
{
    char        path[PATH_MAX], words[64];
    const char *told;
    long        needed;

    (void)state;
    search_in(first);
    put("other", first, "cut", path);
    assert_int_equal(truncate(path, 5000), 0);
    assert_refused("cut", TUTTI_E_BACKEND, "is cut off: 5000 bytes of at least ");
    assert_said(path);
    told = strstr(tutti_last_error(), "at least ");
    needed = strtol(told + strlen("at least "), NULL, 10);
    put("other", first, "cut", path);
    assert_int_equal(truncate(path, needed - 1), 0);
    snprintf(words, sizeof words, "is cut off: %ld bytes of at least %ld are there", needed - 1, needed);
    assert_refused("cut", TUTTI_E_BACKEND, words);
    put("other", first, "cut", path);
    assert_int_equal(truncate(path, needed), 0); /* what is behind it is for debuggers, and nobody loads it */
    assert_refused("cut", TUTTI_E_BACKEND, "called 'other'");
    assert_int_equal(truncate(path, 100), 0); /* dlopen() sees itself that headers are missing */
    assert_refused("cut", TUTTI_E_BACKEND, "cannot be loaded");
    assert_int_equal(unlink(path), 0);
}

/* One whose init fails is asked again the next time. */
static void test_shy(void **state)
{
    const tutti_backend_ops *ops = NULL;

    (void)state;
    search_in(first);
    setenv("VARIANT_IS_SHY", "1", 1);
    assert_file_refused("shy", TUTTI_E_IO, "cannot be used: the library below is not there");
    setenv("VARIANT_IS_MUTE", "1", 1); /* it has no words: those of before are not its own */
    assert_file_refused("shy", TUTTI_E_NETWORK, "cannot be used: its init failed with TUTTI_E_NETWORK and no words");
    unsetenv("VARIANT_IS_MUTE");
    setenv("VARIANT_IS_ODD", "1", 1); /* there is no such status */
    assert_file_refused("shy", TUTTI_E_BACKEND, "cannot be used: its init gave 4711, which is no status, and said: the library below is new");
    unsetenv("VARIANT_IS_ODD");
    unsetenv("VARIANT_IS_SHY");
    assert_refused("shy", TUTTI_E_ARG, "there is no backend 'shy'"); /* the file is gone by now */
    put("shy", first, "shy", (char[PATH_MAX]){ "" });
    assert_int_equal(tti_backend_find("shy", &ops), TUTTI_OK);
}

/* ---- whose files they are ---- */

static void test_trust(void **state)
{
    char path[PATH_MAX], link[PATH_MAX];

    (void)state;
    search_in(first);
    put("other", first, "trusted", path);
    assert_int_equal(chmod(path, 0702), 0);
    assert_refused("trusted", TUTTI_E_AUTH, "mode 0702, so others may write to it");
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(chmod(first, 0703), 0);
    assert_refused("trusted", TUTTI_E_AUTH, "has mode 0703");
    assert_int_equal(chmod(first, 0700), 0);
    assert_refused("trusted", TUTTI_E_BACKEND, "called 'other'"); /* what is left is its name */

    path_of(first, "linked", link); /* what a link leads to is looked at, not the link alone */
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(chmod(path, 0720 | 02), 0);
    assert_refused("linked", TUTTI_E_AUTH, path);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
}

/* A primary group, which others may be in, too: "users". */
static void test_group(void **state)
{
    const gid_t was = getegid();
    char        path[PATH_MAX];

    (void)state;
    if (geteuid() != 0)
        skip(); /* who is not root cannot take another group */
    search_in(first);
    put("other", first, "shared", path);
    assert_int_equal(setegid(100), 0);
    assert_int_equal(chown(path, 0, 100), 0);
    assert_int_equal(chmod(path, 0720), 0);
    assert_refused("shared", TUTTI_E_AUTH, "mode 0720, so others may write to it");
    assert_int_equal(chmod(path, 0740), 0);
    assert_refused("shared", TUTTI_E_BACKEND, "called 'other'");
    assert_int_equal(setegid(was), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_other_owner(void **state)
{
    char path[PATH_MAX], link[PATH_MAX];

    (void)state;
    if (geteuid() != 0)
        skip(); /* who is not root cannot give files away */
    search_in(first);
    put("other", first, "foreign", path);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_refused("foreign", TUTTI_E_AUTH, "belongs to user 65534");
    assert_int_equal(chown(path, 0, 0), 0);
    path_of(first, "led", link); /* somebody else has chosen where it leads */
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(lchown(link, 65534, 65534), 0);
    assert_refused("led", TUTTI_E_AUTH, "belongs to user 65534");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(chown(first, 65534, 65534), 0);
    assert_refused("foreign", TUTTI_E_AUTH, "belongs to user 65534");
    assert_int_equal(chown(first, 0, 0), 0);
    assert_int_equal(unlink(path), 0);
}

/* ---- where they are looked for ---- */

static void test_places(void **state)
{
    char path[PATH_MAX];

    (void)state;
    search_in_both();
    assert_refused("nowhere", TUTTI_E_ARG, "there is no backend 'nowhere'");
    assert_said(first);
    assert_said(second);
    assert_said("/tutti'"); /* the library's own directory */
    search_in("relative/path");
    assert_refused("nowhere", TUTTI_E_ARG, "not absolute");
    assert_refused("../nowhere", TUTTI_E_ARG, "there is no backend '../nowhere'\n");

    search_in_both(); /* the first one counts, whatever is behind it */
    put("empty", first, "order", path);
    put("good", second, "order", path);
    assert_refused("order", TUTTI_E_BACKEND, "is no plug-in");
    assert_said(first);
    path_of(first, "order", path);
    assert_int_equal(unlink(path), 0);
    assert_refused("order", TUTTI_E_BACKEND, "called 'good'");
    assert_said(second);
    path_of(second, "order", path);
    assert_int_equal(unlink(path), 0);
}

/* One for each library that it may be built with: which one fits only the user knows, so they are named. */
static void test_below(void **state)
{
    static const char *const folders[] = { "one", "another", "empty" };
    char                     folder[PATH_MAX], path[PATH_MAX], words[2 * PATH_MAX + 64];
    size_t                   i;

    (void)state;
    search_in(first);
    for (i = 0; i < 3; i++) {
        assert_true(snprintf(folder, sizeof folder, "%s/%s", first, folders[i]) < PATH_MAX);
        assert_int_equal(mkdir(folder, 0700), 0);
        if (i < 2)
            put("empty", folder, "mpi", path);
    }
    snprintf(words, sizeof words, ", but below, in '%s/another', '%s/one'", first, first);
    assert_refused("mpi", TUTTI_E_UNSUPPORTED, words);
    assert_said("next: set TUTTI_PLUGIN_PATH to the one of these");
    assert_null(strstr(tutti_last_error(), "/empty'"));
    for (i = 0; i < 3; i++) {
        assert_true(snprintf(folder, sizeof folder, "%s/%s", first, folders[i]) < PATH_MAX);
        path_of(folder, "mpi", path);
        unlink(path);
        assert_int_equal(rmdir(folder), 0);
    }
}

/* ---- one that works ---- */

static void *find_it(void *arg)
{
    const tutti_backend_ops *ops = NULL;

    (void)arg;
    return tti_backend_find("other", &ops) == TUTTI_OK ? (void *)(uintptr_t)ops : NULL;
}

/* Many threads ask for one that is not loaded yet: one loads it, and all have the same. */
static void test_once(void **state)
{
    const tutti_backend_ops *ops = NULL;
    pthread_t                threads[THREADS];
    void                    *found[THREADS];
    int                      i;

    (void)state;
    search_in(second);
    put("other", second, "other", (char[PATH_MAX]){ "" });
    for (i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_it, NULL), 0);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], &found[i]);
    assert_int_equal(tti_backend_find("other", &ops), TUTTI_OK);
    for (i = 0; i < THREADS; i++)
        assert_ptr_equal(found[i], ops);
    assert_int_equal(ops->world_id(NULL), 1);
}

/* xccl is reserved: what memory it takes only its plug-in knows. */
static void test_reserved(void **state)
{
    unsigned devices = 0;

    (void)state;
    search_in(second);
    assert_false(tutti_is_xccl_available());
    put("xccl", second, "xccl", (char[PATH_MAX]){ "" });
    assert_true(tutti_is_xccl_available());
    assert_int_equal(tti_backend_devices("xccl", &devices), TUTTI_OK);
    assert_int_equal(devices, 1u << TUTTI_CPU);
}

/* A group on it: what it has, what the library does without it, and what is refused without ending the group. */
static void test_world(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;
    tutti_work        *work = NULL;
    float              x = 1.0f;

    (void)state;
    search_in_both();
    put("good", second, "good", (char[PATH_MAX]){ "" });
    opts.backend = "Good";
    opts.rank = 1;
    opts.world_size = 3;
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_OK);
    assert_string_equal(tutti_get_backend(world), "good");
    assert_string_equal(tutti_get_backend_config(world), "cpu:good");
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, world), TUTTI_E_UNSUPPORTED);
    assert_said("barriers only");
    assert_int_equal(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_E_UNSUPPORTED);
    tutti_work_free(work);
    assert_int_equal(tutti_send(TUTTI_SPAN(&x, 1), 0, 0, world), TUTTI_E_UNSUPPORTED);
    assert_said("backend 'good' has no messages");
    assert_int_equal(tutti_irecv(TUTTI_SPAN(&x, 1), 0, 0, world, &work), TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_monitored_barrier(world, 0, false), TUTTI_E_UNSUPPORTED);
    assert_int_equal(tutti_barrier(world), TUTTI_OK); /* it is as it was */
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

/* A device's row may name it, and it is told from memory that it does not take. */
static void test_devices(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;

    (void)state;
    search_in(second);
    put("on-cuda", second, "on-cuda", (char[PATH_MAX]){ "" });
    opts.rank = 0;
    opts.world_size = 1;
    opts.backend = "cpu:on-cuda";
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_E_ARG);
    assert_said("does not take memory of 'cpu'");
    opts.backend = "cpu:fake,cuda:on-cuda";
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_OK);
    assert_string_equal(tutti_get_backend_config(world), "cpu:fake,cuda:on-cuda");
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

/* ---- what it is given ---- */

static void test_host(void **state)
{
    const tutti_plugin_host *host = &tti_plugin_host;
    const size_t             n_entries = (sizeof *host - offsetof(tutti_plugin_host, version)) / sizeof(void *);
    const float              a[] = { 1.0f, 2.0f }, b[] = { 10.0f, 20.0f };
    const void              *in[] = { a, b };
    float                    out[2] = { 0.0f, 0.0f };
    void                    *entries[sizeof *host / sizeof(void *)];
    uint32_t                 rounds = 0;
    int64_t                  before_ns;
    size_t                   i;

    (void)state;
    memcpy(entries, (const char *)host + offsetof(tutti_plugin_host, version), n_entries * sizeof(void *));
    for (i = 0; i < n_entries; i++)
        assert_non_null(entries[i]); /* all of them, those that nobody has thought of here, too */
    assert_int_equal((host->fail)(TUTTI_E_IO, "file %d", 7), TUTTI_E_IO); /* cmocka has a macro of that name */
    assert_string_equal(host->last_error(), "file 7");
    host->reduce(TUTTI_OP_AVG, TUTTI_F32, out, in, 2, 2, 2);
    assert_true(out[0] == 5.5f && out[1] == 11.0f);
    host->scale(TUTTI_F32, out, out, 2, 2.0);
    assert_true(out[0] == 11.0f && out[1] == 22.0f);
    before_ns = host->now_ns();
    for (i = 0; i < 400; i++)
        host->idle(&rounds, true);
    assert_int_equal(rounds, 400);
    assert_true(host->now_ns() - before_ns >= 1000000); /* it has begun to sleep */
}

static int make_directories(void **state)
{
    (void)state;
    snprintf(first, sizeof first, "/tmp/tutti-plugins-XXXXXX");
    snprintf(second, sizeof second, "/tmp/tutti-plugins-XXXXXX");
    return mkdtemp(first) != NULL && mkdtemp(second) != NULL ? 0 : -1;
}

/* Of what tests put there these are left: each is loaded. */
static int remove_directories(void **state)
{
    static const char *const left[] = { "good", "other", "xccl", "on-cuda", "shy" };
    char                     path[PATH_MAX];
    size_t                   i;

    (void)state;
    for (i = 0; i < sizeof left / sizeof left[0]; i++) {
        path_of(first, left[i], path);
        unlink(path);
        path_of(second, left[i], path);
        unlink(path);
    }
    return rmdir(first) == 0 && rmdir(second) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken),      cmocka_unit_test(test_no_object), cmocka_unit_test(test_shy),
        cmocka_unit_test(test_trust),       cmocka_unit_test(test_other_owner), cmocka_unit_test(test_places),
        cmocka_unit_test(test_once),        cmocka_unit_test(test_reserved),  cmocka_unit_test(test_world),
        cmocka_unit_test(test_devices),     cmocka_unit_test(test_host),      cmocka_unit_test(test_group),
        cmocka_unit_test(test_cut_off),     cmocka_unit_test(test_below),
    };

    return cmocka_run_group_tests(tests, make_directories, remove_directories);
}
