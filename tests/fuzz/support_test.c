/* SPDX-License-Identifier: BSD-3-Clause
 *
 * support_test.c
 * Goal    an input finds what it has itself brought, and nothing of those before it: a file has its bytes and no others.
 * Method  files of several lengths one after another, some of which a program writes to behind the target's back. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

static void has(const char *path, const char *text)
{
    char      got[64];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, got, sizeof got), strlen(text));
    assert_memory_equal(got, text, strlen(text));
    close(fd);
}

static void write_over(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void a_file_is_its_input(void **state)
{
    static const char *const texts[] = { "", "longest of all", "short", "", "longer", "longer", "x" };
    size_t                   i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
        has(tt_file(texts[i], strlen(texts[i])), texts[i]);
}

/* As tti_figures_write() does with an empty file that a target gives it. */
static void what_was_written_is_gone(void **state)
{
    (void)state;
    write_over(tt_file("", 0), "what a program has written");
    has(tt_file("short", 5), "short");
    write_over(tt_file("longest of all", 14), "s");
    has(tt_file("longer", 6), "longer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_its_input),
        cmocka_unit_test(what_was_written_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
