/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_test.c
 * Goal    `tutti bench store` counts right, collectives are verified on real ranks, rows are written, and what
 *         is wrong with a command line is said; nothing about speed.
 * Method  the built command, with few clients and small sizes. */
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
    char command[1024];
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

/* Two lines: what is wrong, and where the help is. */
static void is_short(const char *first, const char *next)
{
    const char *end = strchr(text, '\n');

    says(first);
    says(next);
    if (end == NULL || strchr(end + 1, '\n') == NULL || strchr(end + 1, '\n')[1] != '\0')
        fail_msg("not two lines: %s", text);
}

static int rows_of(const char *path, const char *start)
{
    char row[512];
    int rows = 0;
    FILE *tsv = fopen(path, "r");

    assert_non_null(tsv);
    while (fgets(row, sizeof row, tsv) != NULL)
        rows += strncmp(row, start, strlen(start)) == 0;
    fclose(tsv);
    return rows;
}

static void few_clients_count(void **state)
{
    char path[] = "/tmp/tutti-bench-XXXXXX";
    char args[128];
    int fd = mkstemp(path), rows;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(args, sizeof args, "bench store --clients 10 --adds 5 --processes 3 --rounds 2 --tsv %s",
             path);
    if (run(args) != 0)
        fail_msg("%s", text);
    says("10 clients in 3 processes, 5 adds each");
    rows = rows_of(path, "tutti\t");
    unlink(path);
    assert_int_equal(rows, 2);
}

/* Each operation, as a job for each number of ranks; a wrong result would fail the command. */
static void collectives_are_measured(void **state)
{
    static const char *const ops[] = { "all_reduce",     "broadcast",  "reduce",  "all_gather",
                                       "reduce_scatter", "all_to_all", "barrier", "send_recv",
                                       "exchange16",     "exchange64" };
    char path[] = "/tmp/tutti-bench-XXXXXX";
    char args[256], start[64];
    int fd = mkstemp(path);
    size_t i;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        snprintf(args, sizeof args, "bench %s --ranks 2,3 --sizes 4,1000 --budget-ms 4 --tsv %s", ops[i], path);
        if (run(args) != 0)
            fail_msg("%s", text);
        says("3 ranks on");
        snprintf(start, sizeof start, "%s\tf32\t3\t", ops[i]);
        assert_int_equal(rows_of(path, start), 2);
    }
    unlink(path);
}

/* What it writes is a table that a job takes; a broken one is refused by name. */
static void a_table_is_written_and_taken(void **state)
{
    char folder[] = "/tmp/tutti-bench-XXXXXX", path[64], args[256];
    FILE *table;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/table", folder);
    snprintf(args, sizeof args, "bench --tune %s --ranks 2,3 --sizes 4,20000 --budget-ms 1", path);
    if (run(args) != 0)
        fail_msg("%s", text);
    says("3 ranks on");
    says("s and more: ");
    says("table' is written when all has been measured");
    says("TUTTI_TUNE=");
    assert_int_equal(rows_of(path, "{ \"tutti_tune\": 1,"), 1);
    assert_int_equal(setenv("TUTTI_TUNE", path, 1), 0);
    if (run("bench all_reduce --ranks 2 --sizes 4 --budget-ms 2") != 0)
        fail_msg("%s", text);
    table = fopen(path, "a");
    assert_non_null(table);
    fputs("more\n", table);
    fclose(table);
    assert_int_not_equal(run("bench all_reduce --ranks 2 --sizes 4 --budget-ms 2"), 0);
    says(path);
    assert_int_equal(unsetenv("TUTTI_TUNE"), 0);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left there */
    assert_int_equal(run("bench --tune"), 2);
    assert_int_equal(run("bench --tune x --sizes 8,4"), 2);
}

/* A job that a signal ends, which its launcher passes on, writes nothing, and says so. */
static void an_end_in_between_is_told(void **state)
{
    char folder[] = "/tmp/tutti-bench-XXXXXX", path[64], args[512];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/table", folder);
    snprintf(args, sizeof args,
             "bench --tune %s --budget-ms 10000 > %s/out 2>&1 & pid=$!; "
             "until grep -q ' ranks on ' %s/out || ! kill -0 $pid; do sleep 0.05; done; kill -TERM $pid; wait $pid; code=$?; "
             "cat %s/out; rm %s/out; exit $code",
             path, folder, folder, folder, folder);
    assert_int_not_equal(run(args), 0);
    says("s and more: ");
    says("table' was not written");
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0);
}

static void files_are_asked_for_before_anything_is_measured(void **state)
{
    (void)state;
    assert_int_equal(run("bench all_reduce --budget-ms 3600000 --plot /nowhere/picture.svg"), 2);
    says("cannot write '/nowhere/picture.svg.gp'");
    assert_int_equal(run("bench all_reduce --budget-ms 3600000 --plot picture.jpg"), 2);
    is_short("'picture.jpg' is no .svg or .png\n", "\n  next: tutti bench all_reduce --help\n");
    assert_int_equal(run("bench --tune /nowhere/table --budget-ms 10000"), 1);
    says("cannot write '/nowhere/table'");
    assert_int_equal(run("bench --tune / --budget-ms 10000"), 1);
    says("cannot write '/'");
}

/* What every rank would say is said once, before there is any; where ranks say it, their numbers are right, and what to do next has a
 * line of its own. */
static void a_missing_table_is_told_of_once(void **state)
{
    char args[512];

    (void)state;
    assert_int_equal(setenv("TUTTI_TUNE", "/nowhere/table", 1), 0);
    assert_int_equal(run("bench all_reduce --sizes 4"), 1);
    is_short("tutti bench: cannot open the table of algorithms (TUTTI_TUNE) '/nowhere/table': No such file", "\n  next: name a file");
    snprintf(args, sizeof args, "run --standalone --nproc-per-node=2 %s/tutti bench all_reduce --sizes 4", TUTTI_BIN_DIR);
    assert_int_not_equal(run(args), 0);
    assert_int_equal(unsetenv("TUTTI_TUNE"), 0);
    says("tutti bench: rank 0: cannot open the table");
    says("]:  next: name a file");
}

static void ranks_of_a_job_measure_together(void **state)
{
    char args[512];

    (void)state;
    snprintf(args, sizeof args,
             "run --standalone --nproc-per-node=3 %s/tutti bench all_to_all --sizes 600 --budget-ms 4 "
             "--dtype bf16 --transport tcp --async --cold",
             TUTTI_BIN_DIR);
    if (run(args) != 0)
        fail_msg("%s", text);
    says("all_to_all, bf16, 3 ranks on");
    says("transport tcp, async, cold buffers");
}

static void registered_memory_is_measured(void **state)
{
    (void)state;
    if (run("bench reduce_scatter --sizes 4,64K --budget-ms 4 --memory registered --cold") != 0)
        fail_msg("%s", text);
    says("cold buffers, registered memory");
}

static void products_are_computed_behind_an_all_reduce(void **state)
{
    char path[] = "/tmp/tutti-bench-XXXXXX";
    char args[128];
    int fd = mkstemp(path), rows;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(args, sizeof args, "bench overlap --ranks 2,3 --sizes 4,64K --budget-ms 4 --tsv %s", path);
    if (run(args) != 0)
        fail_msg("%s", text);
    says("all_reduce behind matrix products, f32, 3 ranks on");
    rows = rows_of(path, "all_reduce\tf32\t2\t");
    unlink(path);
    assert_int_equal(rows, 2);
    assert_int_equal(run("bench overlap --cold"), 2);
    says("overlap takes no --plot and no --cold");
}

static void distance_of_cores_is_told(void **state)
{
    (void)state;
    if (run("bench near") != 0)
        fail_msg("%s", text);
    if (strstr(text, "near: two cores") == NULL && strstr(text, "far: two cores") == NULL)
        says("alone: ");
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
    assert_int_equal(run("bench all_reduce --help"), 0);
    says("--budget-ms");
    assert_int_equal(run("bench reduce --sizes 4,x"), 2);
    says("--sizes '4,x' is not a list of numbers");
    assert_int_equal(run("bench reduce --dtype f16"), 2);
    says("'f16' is not f32, f64 or bf16");
    assert_int_equal(run("bench reduce --memory lent"), 2);
    says("'lent' is not ordinary or registered");
    assert_int_equal(run("bench near me"), 2);
    says("takes no 'me'");
    assert_int_equal(run("bench reduce --ranks 1000"), 2);
    assert_int_equal(run("bench send_recv --ranks 1 --sizes 4"), 1);
    says("a message needs two ranks");
    assert_int_equal(run("bench barrier --tsv /nowhere/x"), 1);
    says("cannot write '/nowhere/x'");
    assert_int_equal(run("bench store --clients 0"), 2);
    says("'0' is not a number between 1 and");
    assert_int_equal(run("bench store word"), 2);
    says("'word' is no option");
    assert_int_equal(run("bench store --clients 2 --tsv /nowhere/x"), 1);
    says("cannot write '/nowhere/x'");
    assert_int_equal(run("bench store --clients 2 --rounds 1 --peer /nowhere/python"), 1);
    says("cannot run '/nowhere/python'");
}

static void wrong_options_take_two_lines(void **state)
{
    (void)state;
    assert_int_equal(run("bench all_reduce --sise 4"), 2);
    is_short("tutti bench all_reduce: unknown option '--sise', did you mean '--sizes'?",
             "\n  next: tutti bench all_reduce --help\n");
    assert_int_equal(run("bench all_reduce --qwertzuiop=7"), 2);
    is_short("tutti bench all_reduce: unknown option '--qwertzuiop=7'\n", "\n  next: ");
    assert_int_equal(run("bench all_reduce -x"), 2);
    is_short("tutti bench all_reduce: unknown option '-x'\n", "\n  next: ");
    assert_int_equal(run("bench all_reduce --cold=yes"), 2);
    is_short("option '--cold' takes no value\n", "\n  next: ");
    assert_int_equal(run("bench all_reduce --sizes"), 2);
    is_short("option '--sizes' needs a value\n", "\n  next: ");
    assert_int_equal(run("bench all_reduce --sizes 4,x"), 2);
    is_short("--sizes '4,x' is not a list of numbers", "\n  next: ");
    assert_int_equal(run("bench store --client=4x"), 2);
    is_short("'4x' is not a number between 1 and", "\n  next: tutti bench store --help\n");
    assert_int_equal(run("bench --tune"), 2);
    is_short("the file to write is missing", "\n  next: tutti bench --tune --help\n");
}

static void sizes_are_whole_elements(void **state)
{
    (void)state;
    assert_int_equal(run("bench all_reduce --sizes 3"), 2);
    is_short("3 bytes are no whole number of f32 elements, of 4 bytes each", "\n  next: ");
    assert_int_equal(run("bench send_recv --dtype f64 --sizes 8,12"), 2);
    is_short("12 bytes are no whole number of f64 elements, of 8 bytes each", "\n  next: ");
    assert_int_equal(run("bench broadcast --sizes 0"), 2);
    if (run("bench all_reduce --sizes 6 --dtype bf16 --budget-ms 2") != 0)
        fail_msg("%s", text);
}

/* The column has what --sizes asks for: one message. */
static void an_exchange_shows_a_message(void **state)
{
    (void)state;
    if (run("bench exchange16 --sizes 1000 --budget-ms 4") != 0)
        fail_msg("%s", text);
    says("\n        1000 ");
}

static void a_launcher_draws_nothing(void **state)
{
    char args[512];

    (void)state;
    snprintf(args, sizeof args,
             "run --standalone --nproc-per-node=2 %s/tutti bench all_reduce --sizes 4 --plot /tmp/x.svg", TUTTI_BIN_DIR);
    assert_int_not_equal(run(args), 0);
    says("no --plot under a launcher");
    snprintf(args, sizeof args,
             "run --standalone --nproc-per-node=2 %s/tutti bench all_reduce --sizes 4 --ranks 3", TUTTI_BIN_DIR);
    assert_int_not_equal(run(args), 0);
    says("no --ranks under a launcher");
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
        cmocka_unit_test(collectives_are_measured),
        cmocka_unit_test(a_table_is_written_and_taken),
        cmocka_unit_test(an_end_in_between_is_told),
        cmocka_unit_test(files_are_asked_for_before_anything_is_measured),
        cmocka_unit_test(a_missing_table_is_told_of_once),
        cmocka_unit_test(ranks_of_a_job_measure_together),
        cmocka_unit_test(registered_memory_is_measured),
        cmocka_unit_test(products_are_computed_behind_an_all_reduce),
        cmocka_unit_test(distance_of_cores_is_told),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(wrong_options_take_two_lines),
        cmocka_unit_test(sizes_are_whole_elements),
        cmocka_unit_test(an_exchange_shows_a_message),
        cmocka_unit_test(a_launcher_draws_nothing),
        cmocka_unit_test(too_few_descriptors_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
