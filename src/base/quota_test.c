/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quota_test.c
 * Goal    a quota of processor time is found wherever a control group, or one around it, has it.
 * Method  trees of files like those of a machine, in a folder of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <ftw.h>
#include <sys/stat.h>
#include "base/quota.h"

enum { NAME_MAX_BYTES = 512 };

static char top[] = "/tmp/tutti-quota-XXXXXX";

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)type;
    (void)where;
    return remove(path);
}

static void name_of(const char *path, char out[NAME_MAX_BYTES])
{
    snprintf(out, NAME_MAX_BYTES, "%s/%s", top, path);
}

static void make_folder(const char *path)
{
    char name[NAME_MAX_BYTES];

    name_of(path, name);
    assert_int_equal(mkdir(name, 0700), 0);
}

static void make_file(const char *path, const char *text)
{
    char  name[NAME_MAX_BYTES];
    FILE *file;

    name_of(path, name);
    file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static uint64_t quota_of(const char *membership)
{
    char name[NAME_MAX_BYTES];

    make_file("membership", membership);
    name_of("membership", name);
    return tti_cpu_quota(name, top);
}

static int begin(void **state)
{
    (void)state;
    strcpy(top + strlen(top) - 6, "XXXXXX");
    return mkdtemp(top) == NULL;
}

static int end(void **state)
{
    (void)state;
    return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void version_2_takes_the_tightest(void **state)
{
    (void)state;
    make_folder("pods");
    make_folder("pods/one");
    make_file("pods/cpu.max", "250000 100000\n");
    make_file("pods/one/cpu.max", "max 100000\n");
    assert_int_equal(quota_of("0::/pods/one\n"), 3);
    make_file("pods/one/cpu.max", "50000 100000\n");
    assert_int_equal(quota_of("0::/pods/one\n"), 1);
    assert_int_equal(quota_of("0::/pods/two\n"), 3); /* not to be seen from here; those around it are */
    assert_int_equal(quota_of("0::/\n"), 0);
}

static void version_1_has_a_tree_for_it(void **state)
{
    (void)state;
    make_folder("cpu,cpuacct");
    make_folder("cpu,cpuacct/job");
    make_file("cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
    make_file("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota_of("5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/\n"), 4);
    assert_int_equal(quota_of("5:cpuset:/job\n"), 0); /* which cores, not how much of them */
    make_file("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(quota_of("4:cpu,cpuacct:/job\n"), 0);
}

static void nothing_to_read_is_no_quota(void **state)
{
    (void)state;
    assert_int_equal(tti_cpu_quota("/nonexistent/file", top), 0);
    assert_int_equal(quota_of(""), 0);
    assert_int_equal(quota_of("no colon\n:\n::\n0::/a/b\n"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2_takes_the_tightest, begin, end),
        cmocka_unit_test_setup_teardown(version_1_has_a_tree_for_it, begin, end),
        cmocka_unit_test_setup_teardown(nothing_to_read_is_no_quota, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
