/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_test.c
 * Goal    `tutti bench store` counts right, writes its rows, and says what is wrong with its command
 *         line; nothing about speed.
 * Method  the built command, with few clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char text[8192]; /* of the last command, both streams */

static int run(const char *args)
{
    char command[512];
    FILE *out;
    size_t n;

    snprintf(command, sizeof command, "%s/tutti %s 2>&1", TUTTI_BIN_DIR, args);
    out = popen(command, "r");
    assert_non_null(out);
    n = fread(text, 1, sizeof text - 1, out);
    text[n] = '\0';
    return WEXITSTATUS(pclose(out));
}

static void says(const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
}

static void few_clients_count(void **state)
{
    char path[] = "/tmp/tutti-bench-XXXXXX";
    char args[128], row[256] = "";
    int fd = mkstemp(path), rows = 0;
    FILE *tsv;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(args, sizeof args, "bench store --clients 10 --adds 5 --processes 3 --rounds 2 --tsv %s",
             path);
    if (run(args) != 0)
        fail_msg("%s", text);
    says("10 clients in 3 processes, 5 adds each");
    tsv = fopen(path, "r");
    assert_non_null(tsv);
    while (fgets(row, sizeof row, tsv) != NULL)
        rows += strncmp(row, "tutti\t", 6) == 0;
    fclose(tsv);
    unlink(path);
    assert_int_equal(rows, 2);
}

static void wrong_lines_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run("bench"), 2);
    says("store");
    assert_int_equal(run("bench nothing"), 2);
    says("unknown word 'nothing'");
    assert_int_equal(run("bench --help"), 0);
    assert_int_equal(run("bench store --help"), 0);
    says("--clients");
    assert_int_equal(run("bench store --clients 0"), 2);
    says("'0' is not a number between 1 and");
    assert_int_equal(run("bench store word"), 2);
    says("'word' is no option");
    assert_int_equal(run("bench store --clients 2 --tsv /nowhere/x"), 1);
    says("cannot write '/nowhere/x'");
    assert_int_equal(run("bench store --clients 2 --rounds 1 --peer /nowhere/python"), 1);
    says("cannot run '/nowhere/python'");
}

/* In a shell of its own, with a hard limit that no server of so many could live with. */
static void too_few_descriptors_are_named(void **state)
{
    char command[512];
    FILE *out;
    size_t n;

    (void)state;
    snprintf(command, sizeof command, "ulimit -n 200; %s/tutti bench store --clients 500 2>&1",
             TUTTI_BIN_DIR);
    out = popen(command, "r");
    assert_non_null(out);
    n = fread(text, 1, sizeof text - 1, out);
    text[n] = '\0';
    assert_int_equal(WEXITSTATUS(pclose(out)), 1);
    says("500 clients need 564 open files, the hard limit is 200");
    says("--clients 136");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_clients_count),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(too_few_descriptors_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
