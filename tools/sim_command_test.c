/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_command_test.c
 * Goal    `tutti sim` sweeps what it is asked for, writes a row for each algorithm, draws, and says what is wrong with a
 *         line; --fit writes figures that it reads.
 * Method  the built command on small clusters; nothing about how good predictions are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char text[16384]; /* of the last command, both streams */
static char folder[] = "/tmp/tutti-sim-XXXXXX";

static int run(const char *args)
{
    char command[1024];
    FILE *out;
    size_t n;

    snprintf(command, sizeof command, "cd %s && %s/tutti %s 2>&1", folder, TUTTI_BIN_DIR, args);
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

static void runs(const char *args)
{
    if (run(args) != 0)
        fail_msg("%s: %s", args, text);
}

/* Rows of a file in the folder that begin with start. */
static int rows_of(const char *name, const char *start)
{
    char path[256], row[1024];
    int rows = 0;
    FILE *tsv;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    tsv = fopen(path, "r");
    assert_non_null(tsv);
    while (fgets(row, sizeof row, tsv) != NULL)
        rows += strncmp(row, start, strlen(start)) == 0;
    fclose(tsv);
    return rows;
}

static void write_file(const char *name, const char *words)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(words, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void every_algorithm_has_a_row(void **state)
{
    (void)state;
    runs("sim all_reduce --hosts 2,4 --gbit 1,10 --sizes 4,1M --tsv rows.tsv");
    says("all_reduce, f32, 2 hosts of 1 rank, 1 Gb/s");
    says("all_reduce, f32, 4 hosts of 1 rank, 10 Gb/s");
    says("of 8 cells the library takes an algorithm within 5% of the best that it may take unasked in ");
    assert_int_equal(rows_of("rows.tsv", "op\thosts\t"), 1);
    assert_true(rows_of("rows.tsv", "all_reduce\t4\t1\t") >= 2 * 2 * 2);
    runs("sim all_reduce --hosts 2 --sizes 4 --tsv rows.tsv");
    assert_int_equal(rows_of("rows.tsv", "op\thosts\t"), 1);
}

/* A row tells what it was made with: without that two of them, which differ in their times, would look alike. */
static void rows_tell_of_bursts_and_calls(void **state)
{
    char path[256], row[1024];
    FILE *tsv;

    (void)state;
    runs("sim all_reduce --hosts 2 --gbit 1 --sizes 64K --algorithm direct --burst 80K --calls 20 --tsv bursts.tsv");
    runs("sim all_reduce --hosts 2 --gbit 1 --sizes 64K --algorithm direct --tsv bursts.tsv");
    snprintf(path, sizeof path, "%s/bursts.tsv", folder);
    tsv = fopen(path, "r");
    assert_non_null(tsv);
    assert_non_null(fgets(row, sizeof row, tsv));
    assert_non_null(strstr(row, "\tevents\tburst\tcalls\n"));
    assert_non_null(fgets(row, sizeof row, tsv));
    assert_non_null(strstr(row, "\t81920\t20\n"));
    assert_non_null(fgets(row, sizeof row, tsv));
    assert_non_null(strstr(row, "\t0\t1\n"));
    assert_null(fgets(row, sizeof row, tsv));
    fclose(tsv);
}

/* Field number at (from 0) of the first row of a file. */
static const char *field_of(const char *name, int at)
{
    static char row[1024];
    char path[256], *rest = row, *field = NULL;
    FILE *tsv;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    tsv = fopen(path, "r");
    assert_non_null(tsv);
    assert_non_null(fgets(row, sizeof row, tsv));
    assert_non_null(fgets(row, sizeof row, tsv));
    fclose(tsv);
    for (; at >= 0; at--)
        field = strsep(&rest, "\t\n");
    assert_non_null(field);
    return field;
}

/* What was left to what is usual stands in a row with its number, as that may be another one in a later version. */
static void rows_tell_what_was_simulated(void **state)
{
    (void)state;
    runs("sim all_reduce --hosts 2 --per-host 3 --sizes 4 --algorithm ring --tsv usual.tsv");
    assert_string_equal(field_of("usual.tsv", 3), "3");  /* cores */
    assert_string_equal(field_of("usual.tsv", 4), "10"); /* gbit */
    assert_string_equal(field_of("usual.tsv", 5), "30"); /* message_us */
    write_file("far.json", "{\"tutti_figures\": 1, \"far\": {\"message_us\": 12, \"gbit_per_s\": 40}}");
    runs("sim all_reduce --hosts 2 --cores 1 --sizes 4 --algorithm ring --figures far.json --tsv far.tsv");
    assert_string_equal(field_of("far.tsv", 4), "40");
    assert_string_equal(field_of("far.tsv", 5), "12");
}

/* Among hosts with few cores the best of all sums in another order than the library does: the table has it first, and so the
 * last line must not say that the library takes the best. */
static void what_is_passed_over_is_counted(void **state)
{
    (void)state;
    runs("sim all_reduce --hosts 4 --per-host 8 --cores 2 --sizes 1M");
    says("within 5% of the best that it may take unasked in ");
    says("in 1 of them another one is quicker, up to ");
    runs("sim all_reduce --hosts 2 --gbit 1 --sizes 4");
    assert_null(strstr(text, "another one is quicker"));
}

static void rows_of_other_columns_are_left_alone(void **state)
{
    (void)state;
    write_file("older.tsv", "op\thosts\nall_reduce\t2\n");
    assert_int_equal(run("sim all_reduce --hosts 2 --sizes 4 --tsv older.tsv"), 1);
    says("the rows of 'older.tsv' have other columns");
    says("next: choose another file");
    assert_int_equal(rows_of("older.tsv", "all_reduce"), 1);
}

static void every_operation_is_simulated(void **state)
{
    (void)state;
    runs("sim all --hosts 3 --sizes 4K");
    says("all_to_all, f32");
    says("scatter, f32");
    says("barrier, f32");
    assert_null(strstr(text, "none could be simulated"));
}

static void one_algorithm_can_be_asked_for(void **state)
{
    (void)state;
    runs("sim all_reduce --hosts 5 --sizes 1M --algorithm direct --tsv one.tsv");
    assert_int_equal(rows_of("one.tsv", "all_reduce\t"), 1);
    assert_int_equal(run("sim all_reduce --algorithm magic"), 2);
    says("all_reduce has no algorithm 'magic'\n  next: take one of ");
    says("direct");
}

static void what_cannot_be_simulated_is_said(void **state)
{
    (void)state;
    assert_int_equal(run("sim all_reduce --hosts 5 --rack 5 --sizes 1M --messages 1"), 1);
    says("none could be simulated: ");
    says("tutti sim: nothing could be simulated: ");
    says("messages");
    assert_int_equal(run("sim all_reduce --hosts 1 --sizes 1M --algorithm ring"), 1);
    says("one rank sends nothing");
    runs("sim all_reduce --hosts 1,2 --sizes 1M");
    says("one rank sends nothing");
    says("all_reduce, f32, 2 hosts of 1 rank");
}

/* The best, and what the choice is compared with, are of those that were played: who was not stands in the row, with a mark that is
 * told of below. */
static void what_is_not_played_is_marked(void **state)
{
    (void)state;
    runs("sim all_reduce --hosts 16 --messages 10 --sizes 4,64K");
    says("bruck           one_shot *            one_shot *            ");
    says("ring *");
    says("\n* not played in 2 of 2 cells, for more messages than --messages allows: the best is that of those that were played\n");
    runs("sim all_reduce --hosts 16 --sizes 4,64K");
    assert_null(strstr(text, " *"));
    assert_null(strstr(text, "* not played"));
}

/* What may take minutes says so before it begins, and which algorithm it is at. */
static void many_ranks_are_warned_of(void **state)
{
    (void)state;
    runs("sim broadcast --hosts 100000 --sizes 4 --algorithm flat");
    if (strncmp(text, "tutti sim: 100000 ranks are more than the 10000 that simulations are made for", 70) != 0)
        fail_msg("it does not begin with what it costs: %s", text);
    says("next: pass over those with many messages (--messages 400K)");
    says("tutti sim: trying 'flat', broadcast of 4 bytes among 100000 ranks");
    runs("sim broadcast --hosts 10000 --sizes 4 --algorithm flat");
    assert_null(strstr(text, "tutti sim: "));
}

static void the_same_comes_out_again(void **state)
{
    static char first[sizeof text];

    (void)state;
    runs("sim all_reduce,all_to_all --hosts 7 --per-host 2 --cores 1 --sizes 4,100K --gbit 25");
    memcpy(first, text, sizeof text);
    runs("sim all_reduce,all_to_all --hosts 7 --per-host 2 --cores 1 --sizes 4,100K --gbit 25");
    assert_string_equal(first, text);
}

static void wrong_lines_are_refused(void **state)
{
    static const struct {
        const char *args, *words;
    } lines[] = {
        { "sim", "the operation is missing" },
        { "sim all_reduc", "'all_reduc' is no operation that is simulated" },
        { "sim all_reduce broadcast", "'broadcast' is one word too many" },
        { "sim all_reduce --cores 0", "--cores '0' is not a whole number from 1 to 65536" },
        { "sim all_reduce --taper 0", "--taper '0' is not a number from 1 to" },
        { "sim all_reduce --calls 0", "--calls '0' is not a whole number from 1 to 100000" },
        { "sim all_reduce --burst -1", "--burst '-1' is not a whole number from 0 to" },
        { "sim all_reduce --messages 0", "--messages '0' is not a whole number from 1 to" },
        { "sim all_reduce --sizes 1T", "--sizes '1T' is not a list of at most 32 whole numbers from 0 to 68719476736" },
        { "sim all_reduce --host 2x", "--hosts '2x' is not a list" },
        { "sim all_reduce --hosts 0", "--hosts '0' is not a list" },
        { "sim all_reduce --hosts 1.5", "whole numbers" },
        { "sim all_reduce --sizes -4", "--sizes '-4' is not a list" },
        { "sim all_reduce --sizes nan", "--sizes 'nan' is not a list of at most 32 whole numbers from 0 to 68719476736" },
        { "sim all_reduce --gbit 0", "--gbit '0' is not a list of at most 32 numbers from 0.001 to" },
        { "sim all_reduce --cores 1,2", "--cores takes one number" },
        { "sim all_reduce --bandwidth 2", "unknown option '--bandwidth'" },
        { "sim all_reduce --sizes 4,6", "--sizes has 6, and tensors here are whole elements of f32, of 4 bytes each" },
        { "sim all_reduce --sizes 0", "--sizes has 0, " },
        { "sim all_reduce --taper 0.5", "--taper '0.5'" },
        { "sim all_reduce --hosts 8 --taper 4", "--taper 4 changes nothing without --rack" },
        { "sim --fit figures.json --hosts 3", "--hosts changes nothing about what --fit measures" },
        { "sim --fit figures.json --one-machine", "--one-machine changes nothing about what --fit measures" },
        { "sim --fit figures.json --gbit 1,2", "--fit takes one --gbit" },
        { "sim all_reduce --calls 20", "--calls 20 changes nothing without --burst" },
        { "sim all_reduce --plot x.gif", "is no .svg or .png" },
        { "sim all_reduce --tsv /nowhere/x.tsv", "cannot write" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(run(lines[i].args), 2);
        says(lines[i].words);
        says("next: tutti sim --help");
    }
    assert_int_equal(run("sim all_reduce --hosts 6 --rack 4"), 1);
    says("6 hosts are no whole number of racks of 4");
    assert_int_equal(run("sim all_reduce --figures nowhere.json"), 1);
    says("cannot open the file of figures 'nowhere.json'");
}

static void figures_are_fitted_and_taken(void **state)
{
    (void)state;
    runs("sim --fit figures.json --gbit 1");
    says("over TCP: ");
    says("\nfigures.json: written\n");
    assert_null(strstr(text, "OMP_NUM_THREADS"));
    runs("sim --fit figures.json --gbit 1");
    says("\nfigures.json: written, in the place of the one that was there\n");
    runs("sim barrier --hosts 4 --figures figures.json");
    runs("sim barrier --hosts 4 --sizes 0"); /* as rows of a barrier have it */
    assert_int_equal(run("sim --fit /nowhere/figures.json"), 2);
    says("cannot write");
}

static void a_picture_is_drawn(void **state)
{
    (void)state;
    if (system("command -v gnuplot > /dev/null") != 0)
        skip();
    runs("sim all_reduce --hosts 2,16 --sizes 4,64K,16M --plot best.svg");
    assert_int_equal(rows_of("best.svg", "<svg"), 1);
    assert_true(rows_of("best.svg.gp", "$cluster1 << END") == 1);
    runs("sim all_reduce --hosts 2,16 --sizes 64K --plot one.svg");
    assert_null(strstr(text, "arning"));
    assert_int_equal(rows_of("one.svg", "<svg"), 1);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int drop_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_has_a_row),
        cmocka_unit_test(rows_tell_of_bursts_and_calls),
        cmocka_unit_test(rows_tell_what_was_simulated),
        cmocka_unit_test(what_is_passed_over_is_counted),
        cmocka_unit_test(rows_of_other_columns_are_left_alone),
        cmocka_unit_test(every_operation_is_simulated),
        cmocka_unit_test(one_algorithm_can_be_asked_for),
        cmocka_unit_test(what_cannot_be_simulated_is_said),
        cmocka_unit_test(what_is_not_played_is_marked),
        cmocka_unit_test(many_ranks_are_warned_of),
        cmocka_unit_test(the_same_comes_out_again),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(figures_are_fitted_and_taken),
        cmocka_unit_test(a_picture_is_drawn),
    };

    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
