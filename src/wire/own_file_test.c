/* SPDX-License-Identifier: BSD-3-Clause
 *
 * own_file_test.c - files and links of others are refused, wherever they lie. Those of another user are made by root only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "wire/own_file.h"

enum { SOMEBODY = 12345 };

static char dir[] = "/tmp/tutti-own-XXXXXX";
static char path[64], link_path[64];

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    snprintf(link_path, sizeof link_path, "%s/link", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    unlink(link_path);
    return rmdir(dir);
}

static void make_file(mode_t mode)
{
    int fd;

    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void opens(const char *name, tti_own_rule rule)
{
    int fd = -1;

    if (tti_own_file_open(name, O_RDWR, 0, rule, "test file", &fd) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_true(fd >= 0);
    close(fd);
}

static void refused(const char *name, tti_own_rule rule, const char *words)
{
    int fd = -1;

    assert_int_equal(tti_own_file_open(name, O_RDWR, 0, rule, "test file", &fd), TUTTI_E_AUTH);
    assert_int_equal(fd, -1);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
}

static void modes_are_looked_at(void **state)
{
    (void)state;
    make_file(0600);
    opens(path, TTI_OWN_PRIVATE);
    opens(path, TTI_OWN_WRITTEN);
    make_file(0644);
    refused(path, TTI_OWN_PRIVATE, "has mode 0644");
    opens(path, TTI_OWN_WRITTEN);
    make_file(0660);
    refused(path, TTI_OWN_WRITTEN, "others may write to it");
    make_file(0602);
    refused(path, TTI_OWN_WRITTEN, "has mode 0602");
    opens(path, TTI_OWN_ANYBODY);
}

/* What root gives out others use, as long as only root can write to it; its private files are none of theirs. */
static void roots_files_may_be_given(void **state)
{
    uid_t was = geteuid();
    int   fd = -1;

    (void)state;
    if (was != 0)
        skip();
    make_file(0644);
    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(seteuid(SOMEBODY), 0);
    assert_int_equal(tti_own_file_open(path, O_RDONLY, 0, TTI_OWN_GIVEN, "test file", &fd), TUTTI_OK);
    close(fd);
    assert_int_equal(tti_own_file_open(path, O_RDONLY, 0, TTI_OWN_WRITTEN, "test file", &fd), TUTTI_E_AUTH);
    assert_int_equal(seteuid(was), 0);
    make_file(0664);
    refused(path, TTI_OWN_GIVEN, "others may write to it");
    assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
    refused(path, TTI_OWN_GIVEN, "belongs to user 12345");
}

static void own_links_are_followed(void **state)
{
    int fd;

    (void)state;
    make_file(0600);
    assert_int_equal(symlink("file", link_path), 0);
    opens(link_path, TTI_OWN_PRIVATE);
    unlink(path);
    assert_int_equal(tti_own_file_open(link_path, O_RDWR, 0, TTI_OWN_PRIVATE, "test file", &fd), TUTTI_E_IO);
    unlink(link_path);
    assert_int_equal(tti_own_file_open(dir, O_RDONLY, 0, TTI_OWN_PRIVATE, "test file", &fd), TUTTI_E_AUTH);
}

/* What is said, and the step after it. */
static void opening_fails(const char *name, int flags, const char *words, const char *step)
{
    int fd = -1;

    assert_int_not_equal(tti_own_file_open(name, flags, 0600, TTI_OWN_PRIVATE, "test file", &fd), TUTTI_OK);
    assert_int_equal(fd, -1);
    if (strstr(tutti_last_error(), words) == NULL || strstr(tutti_last_error(), step) == NULL)
        fail_msg("'%s' does not say '%s' and '%s'", tutti_last_error(), words, step);
}

static void what_to_do_is_said(void **state)
{
    char below[80];

    (void)state;
    snprintf(below, sizeof below, "%s/none/file", dir);
    unlink(path);
    opening_fails(path, O_RDONLY, "No such file", "\n  next: check its path");
    opening_fails(below, O_RDWR | O_CREAT, "No such file", "\n  next: make the folder");
    opening_fails(dir, O_RDONLY, "is a folder", "\n  next: name a file in it");
    opening_fails(dir, O_RDWR, "Is a directory", "\n  next: name a file in it");
    opening_fails("/dev/null", O_RDONLY, "is not a regular file", "\n  next: name a file on a disk");
}

static void others_are_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    make_file(0600);
    assert_int_equal(symlink("file", link_path), 0);
    assert_int_equal(lchown(link_path, SOMEBODY, SOMEBODY), 0);
    refused(link_path, TTI_OWN_PRIVATE, "a symbolic link of somebody else's");
    refused(link_path, TTI_OWN_WRITTEN, "a symbolic link of somebody else's");
    opens(link_path, TTI_OWN_ANYBODY);
    assert_int_equal(lchown(link_path, 0, 0), 0);
    assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
    refused(link_path, TTI_OWN_PRIVATE, "belongs to user 12345");
    refused(path, TTI_OWN_WRITTEN, "belongs to user 12345");
    opens(path, TTI_OWN_ANYBODY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_are_looked_at),
        cmocka_unit_test(roots_files_may_be_given),
        cmocka_unit_test(own_links_are_followed),
        cmocka_unit_test(what_to_do_is_said),
        cmocka_unit_test(others_are_refused),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
