/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gpt2_test.c
 * Goal    gpt2_train as its user meets it: mistakes are named, ranks learn, and a run that was killed or stopped goes
 *         on from its checkpoint as if nothing had been: the same losses, bit by bit, and the same text at the end.
 * Method  the program itself, alone and under tutti run, with a tiny network on a text of a few words. Losses are
 *         written with all digits, so that tables are compared as files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tutti/status.h>
#include <unistd.h>

#include "harness/scratch.h"

enum { STEPS = 400, TEXT_BYTES = 16384, FILE_MAX = 1 << 20, ATTEMPTS = 5 };

/* Long enough to be stopped in the middle; dropout, so that random numbers matter. */
#define SMALL "--layers 2 --heads 2 --width 16 --context 16 --batch 6 --lr 0.01 --dropout 0.1 --sample 40 "
#define WHOLE SMALL "--steps 400 --save-every 40 --eval-every 100 "

/* Mean loss, in nats, of the last steps: a guess has 5.5, the frequencies of the text's 19 letters 2.7. */
static const double LEARNED = 2.2;

static char dir[256]; /* everything that is written is below; removed at the end */

typedef struct result {
    int code; /* 128 + n: ended by signal n */
    size_t bytes;
    char output[16384]; /* stdout and stderr */
} result;

/* A program under way. */
typedef struct job {
    pid_t pid;
    FILE *output;
} job;

/* ---- running it ------------------------------------------------------------------------------- */


static job start_words(char *command)
{
    char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, command, NULL };
    job j = { 0 };
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    j.pid = fork();
    assert_true(j.pid >= 0);
    if (j.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv("/bin/sh", argv);
        _exit(127);
    }
    close(ends[1]);
    j.output = fdopen(ends[0], "r");
    assert_non_null(j.output);
    return j;
}

/* So many ranks under the launcher, or with 0 the program alone. */
static job start(int ranks, const char *args)
{
    char command[2048];
    int head = snprintf(command, sizeof command, "cd '%s' && exec ", dir);

    if (ranks > 0)
        head += snprintf(command + head, sizeof command - (size_t)head,
                         "%s run --standalone --nproc-per-node=%d ", TUTTI_PROGRAM, ranks);
    snprintf(command + head, sizeof command - (size_t)head, "%s %s", GPT2_PROGRAM, args);
    return start_words(command);
}

static result finish(job j)
{
    result r = { 0 };
    int status;

    r.bytes = fread(r.output, 1, sizeof r.output - 1, j.output);
    while (fgetc(j.output) != EOF)
        ;
    fclose(j.output);
    assert_int_equal(waitpid(j.pid, &status, 0), j.pid);
    r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return r;
}

static result run(int ranks, const char *args)
{
    return finish(start(ranks, args));
}

static void expect(const result *r, int code, const char *words)
{
    if (r->code != code || strstr(r->output, words) == NULL)
        fail_msg("exit code %d instead of %d, or no '%s' in:\n%s", r->code, code, words, r->output);
}

/* ---- files ------------------------------------------------------------------------------------ */

static void path_of(const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *bytes, size_t n)
{
    char path[512];
    FILE *f;

    path_of(name, path);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static size_t read_file(const char *name, char *bytes)
{
    char path[512];
    size_t n;
    FILE *f;

    path_of(name, path);
    f = fopen(path, "r");
    if (f == NULL)
        fail_msg("'%s' is not there", path);
    n = fread(bytes, 1, FILE_MAX - 1, f);
    bytes[n] = '\0';
    fclose(f);
    return n;
}

/* Sentences of few words, in an order that a seed gives. */
static void write_text(const char *name, size_t n, uint32_t seed)
{
    static const char *const words[] = { "the ", "cat ", "sat on ", "a mat, ", "dog ", "saw ", "it and ran.\n" };
    static char bytes[TEXT_BYTES + 16];
    size_t at = 0;

    while (at < n) {
        seed = seed * 1664525u + 1013904223u;
        at += (size_t)snprintf(bytes + at, sizeof bytes - at, "%s", words[(seed >> 16) % 7]);
    }
    write_file(name, bytes, n);
}

static char one[FILE_MAX], other[FILE_MAX];

static void same_files(const char *a, const char *b)
{
    const size_t n = read_file(a, one), m = read_file(b, other);

    assert_true(n > 0);
    if (n != m || memcmp(one, other, n) != 0)
        fail_msg("'%s' and '%s' differ:\n%.2000s\n----\n%.2000s", a, b, one, other);
}

/* Rows of losses.tsv, and the mean loss of the last of them. */
static int read_losses(const char *name, int last, double *mean_out)
{
    const char *row;
    double sum = 0.0, loss;
    int n = 0, step, rows = 0;

    (void)read_file(name, one);
    for (row = strchr(one, '\n') + 1; *row != '\0'; row = strchr(row, '\n') + 1)
        rows++;
    for (row = strchr(one, '\n') + 1; *row != '\0'; row = strchr(row, '\n') + 1) {
        assert_int_equal(sscanf(row, "%d\t%lf", &step, &loss), 2);
        assert_int_equal(step, ++n);
        sum += n > rows - last ? loss : 0.0;
    }
    *mean_out = sum / last;
    return n;
}

/* ---- mistakes --------------------------------------------------------------------------------- */

static void a_mistake_is_named_in_one_line(void **state)
{
    static const struct {
        const char *args, *words;
    } wrong[] = {
        { "--frob", "'--frob' is no option" },
        { "--layers", "'--layers' needs a value" },
        { "--layers 0", "'0' is no value for --layers, which takes a whole number, 1 .. 1000000" },
        { "--context 12x", "'12x' is no value for --context" },
        { "--lr nan", "'nan' is no value for --lr" },
        { "--dropout 1", "'1' is no value for --dropout, which takes a number, 0 or more and below 1" },
        { "--resume=yes", "'--resume=yes' is no option" },
        { "--width 30 --heads 4", "--width: 30 is no multiple of 4 heads" },
        { "--minutes 1 --steps 5", "--minutes and --steps: one of them" },
        { "--minutes 0", "nothing to do in 0 minutes" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const result r = run(0, wrong[i].args);

        expect(&r, 2, wrong[i].words);
        assert_ptr_equal(strchr(r.output, '\n'), r.output + r.bytes - 1);
    }
}

static int count(const char *output, const char *words)
{
    int n = 0;

    for (output = strstr(output, words); output != NULL; output = strstr(output + 1, words))
        n++;
    return n;
}

static void texts_that_are_none(void **state)
{
    static const char *const empty = "'empty' is empty";
    result r;

    (void)state;
    write_file("empty", "", 0);
    write_text("short", 100, 1);
    r = run(0, SMALL "--steps 5 nowhere");
    expect(&r, 1, "cannot open 'nowhere': No such file or directory");
    r = run(0, SMALL "--steps 5 words empty");
    expect(&r, 1, empty);
    r = run(0, SMALL "--steps 5 .");
    expect(&r, 1, "cannot read '.': Is a directory");
    r = run(0, SMALL "--steps 5 short");
    expect(&r, 1, "the text is too short: a step takes 6 windows of 16 bytes, and of 100 bytes 90");
    r = run(2, SMALL "--steps 5 empty");
    expect(&r, 1, empty);
    assert_int_equal(count(r.output, "gpt2_train: "), 1);
    r = run(4, SMALL "--steps 5 words");
    expect(&r, 2, "--batch: 6 windows cannot be shared equally by 4 ranks");
    assert_int_equal(count(r.output, "gpt2_train: "), 1);
}

static void places_that_cannot_be_written(void **state)
{
    result r;

    (void)state;
    r = run(0, SMALL "--steps 5 --out words/out words");
    expect(&r, 1, "cannot make the folder 'words/out'");
    r = run(0, SMALL "--steps 5 --checkpoint nowhere/c words");
    expect(&r, 1, "nowhere");
    r = run(2, SMALL "--steps 5 --out words/out words");
    expect(&r, 1, "cannot make the folder 'words/out'");
    r = run(2, SMALL "--steps 5 --checkpoint words words"); /* whatever it is */
    expect(&r, 1, "'words' is there already\n");
    assert_int_equal(count(r.output, "gpt2_train: "), 1);
}

/* ---- training --------------------------------------------------------------------------------- */

static void two_ranks_learn(void **state)
{
    double mean;
    result r;

    (void)state;
    r = run(2, WHOLE "--out whole words");
    expect(&r, 0, "parameters are bitwise equal on all ranks (2)");
    expect(&r, 0, "bits per held-out byte; 3-gram model, Kneser-Ney: ");
    expect(&r, 0, "40 bytes made up at temperature 0.7");
    assert_int_equal(read_losses("whole/losses.tsv", 20, &mean), STEPS);
    if (!(mean < LEARNED))
        fail_msg("the last losses are %g in the mean", mean);
    assert_int_equal(read_file("whole/sample.txt", one), 40);
    (void)read_file("whole/curve.svg", one);
    assert_non_null(strstr(one, "</svg>\n"));
    (void)read_file("whole/held_out.tsv", one);
    assert_int_equal(count(one, "\n"), 1 + 5); /* a header; 0, 100, .. 400 steps */
}

/* A world of one, the same windows: other roundings, and without dropout the same curve. */
static void alone_it_learns_the_same(void **state)
{
    double two, single;
    result r;

    (void)state;
    r = run(2, SMALL "--dropout 0 --steps 30 --out two words");
    expect(&r, 0, "(2)");
    r = run(0, SMALL "--dropout 0 --steps 30 --out single words");
    expect(&r, 0, "(1)");
    (void)read_losses("two/losses.tsv", 30, &two);
    (void)read_losses("single/losses.tsv", 30, &single);
    assert_true(two - single < 1e-4 * single && single - two < 1e-4 * single);
}

static void by_the_clock(void **state)
{
    const result r = run(2, SMALL "--minutes 0.02 --out clock words");
    double mean;

    (void)state;
    expect(&r, 0, "bits per held-out byte");
    assert_true(read_losses("clock/losses.tsv", 1, &mean) > 0);
}

/* ---- going on --------------------------------------------------------------------------------- */

/* Read what the job says until it says so. False if it has ended before. */
static bool await_words(job *j, const char *words)
{
    char row[1024];

    while (fgets(row, sizeof row, j->output) != NULL)
        if (strstr(row, words) != NULL)
            return true;
    return false;
}

enum { RANKS_MAX = 8 };

/* Send a signal to n ranks that the launcher has started: false if there are not so many any more. All are found before the first has
 * it, as the launcher ends the others then. */
static bool signal_ranks(pid_t launcher, int number, int n)
{
    DIR *proc = opendir("/proc");
    pid_t found[RANKS_MAX];
    int n_found = 0, n_told = 0, i;

    assert_non_null(proc);
    assert_true(n <= RANKS_MAX);
    for (struct dirent *e; n_found < n && (e = readdir(proc)) != NULL;) {
        char path[300], name[64];
        int pid, parent;
        FILE *f;

        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        if (atoi(e->d_name) == 0 || (f = fopen(path, "r")) == NULL)
            continue;
        if (fscanf(f, "%d (%63[^)]) %*c %d", &pid, name, &parent) == 3 && parent == launcher &&
            strcmp(name, "gpt2_train") == 0)
            found[n_found++] = pid;
        fclose(f);
    }
    closedir(proc);
    for (i = 0; i < n_found && n_found == n; i++)
        n_told += kill(found[i], number) == 0;
    return n_told == n;
}

enum { KILLED, STOPPED, ONE_STOPPED };

/* False: it was over before. */
static bool strike(pid_t launcher, int ranks, int how)
{
    if (how == KILLED)
        return signal_ranks(launcher, SIGKILL, ranks);
    if (how == ONE_STOPPED)
        return signal_ranks(launcher, SIGTERM, 1);
    assert_int_equal(kill(launcher, SIGTERM), 0);
    return true;
}

/* A run that is killed, or told to stop, all of it or one of its ranks, somewhere behind its second checkpoint. Nobody
 * takes it for one that has come to its end. */
static void interrupted(int ranks, const char *args, const char *checkpoint, int how)
{
    char path[512];

    path_of(checkpoint, path);
    for (int i = 0; i < ATTEMPTS; i++, (void)unlink(path)) {
        job j = start(ranks, args);
        bool in_time;
        result r;

        assert_true(await_words(&j, "step 80 is in "));
        in_time = strike(j.pid, ranks, how);
        r = finish(j);
        if (!in_time)
            continue;
        if (how != KILLED && strstr(r.output, "--resume goes on") != NULL)
            expect(&r, 128 + SIGTERM, "stopped behind step ");
        if (r.code != 0)
            return;
    }
    fail_msg("the run ended before it could be stopped, %d times", ATTEMPTS);
}

static void killed_it_goes_on(void **state)
{
    result r;

    (void)state;
    interrupted(2, WHOLE "--out killed words", "killed/checkpoint.safetensors", KILLED);
    r = run(2, WHOLE "--out killed --resume words");
    expect(&r, 0, "goes on from step ");
    same_files("whole/losses.tsv", "killed/losses.tsv");
    same_files("whole/sample.txt", "killed/sample.txt");
}

static void stopped_it_goes_on(void **state)
{
    result r = run(3, WHOLE "--out three words");

    (void)state;
    expect(&r, 0, "(3)");
    interrupted(3, WHOLE "--out stopped --resume-if-there words", "stopped/checkpoint.safetensors", STOPPED);
    r = run(3, WHOLE "--out stopped --resume-if-there words");
    expect(&r, 0, "goes on from step ");
    same_files("three/losses.tsv", "stopped/losses.tsv");
    same_files("three/sample.txt", "stopped/sample.txt");
    r = run(3, WHOLE "--out stopped --resume words"); /* nothing is left to do, and nothing changes */
    expect(&r, 0, "goes on from step 400");
    same_files("three/losses.tsv", "stopped/losses.tsv");
}

/* What is held out is measured at step 0 and at the end: a run that goes on, and is stopped again, does not know it. */
static void one_rank_that_is_stopped_stops_all(void **state)
{
    static char saved[FILE_MAX];
    result r = { 0 };
    size_t n;

    (void)state;
    interrupted(2, WHOLE "--out one words", "one/checkpoint.safetensors", ONE_STOPPED);
    n = read_file("one/checkpoint.safetensors", saved);
    for (int i = 0; i < ATTEMPTS && r.code != 128 + SIGTERM; i++) {
        job j;

        write_file("one/checkpoint.safetensors", saved, n);
        j = start(2, WHOLE "--eval-every 1000 --out one --resume words");
        assert_true(await_words(&j, " is in "));
        (void)strike(j.pid, 2, ONE_STOPPED); /* too late: once more */
        r = finish(j);
    }
    expect(&r, 128 + SIGTERM, "held out not measured yet");
    assert_null(strstr(r.output, "held out 0.000"));
}

/* The step of the epoch that a checkpoint of n bytes says it goes on from. */
static void change_window(char *bytes, size_t n, int64_t window)
{
    const char *place = strstr(bytes + 8, "\"place\""), *offsets; /* behind the length of the header */
    uint64_t header;
    size_t at;

    assert_non_null(place);
    offsets = strstr(place, "\"data_offsets\":[");
    assert_non_null(offsets);
    memcpy(&header, bytes, sizeof header);
    at = sizeof header + header + strtoull(strchr(offsets, '[') + 1, NULL, 10) + 3 * sizeof window;
    assert_true(at + sizeof window <= n);
    memcpy(bytes + at, &window, sizeof window);
}

static void checkpoints_of_others(void **state)
{
    size_t n;
    result r;

    (void)state;
    write_text("others", 10000, 2);
    r = run(2, WHOLE "--out none --resume words");
    expect(&r, 1, "'none/checkpoint.safetensors' is not there: nothing to go on from");
    assert_non_null(strstr(r.output, "  next: begin without --resume"));
    assert_int_equal(count(r.output, "gpt2_train: "), 1);
    r = run(2, WHOLE "--width 24 --out whole --resume words");
    expect(&r, 1, "'whole/checkpoint.safetensors' cannot be gone on from: its width is 16, and here it is 24");
    assert_int_equal(count(r.output, "gpt2_train: "), 1);
    r = run(2, WHOLE "--lr 0.02 --out whole --resume words");
    expect(&r, 1, "its lr is 0.01");
    r = run(2, WHOLE "--out whole --resume others");
    expect(&r, 1, "its text is 16384 bytes, checksum ");
    r = run(3, WHOLE "--out whole --resume words");
    expect(&r, 1, "its ranks is 2, and here it is 3");

    n = read_file("whole/checkpoint.safetensors", one);
    write_file("half.safetensors", one, n / 2);
    r = run(2, WHOLE "--out whole --checkpoint half.safetensors --resume words");
    expect(&r, 1, "'half.safetensors'");
    change_window(one, n, 1000000);
    write_file("half.safetensors", one, n);
    r = run(2, WHOLE "--out whole --checkpoint half.safetensors --resume words");
    expect(&r, 1, "'half.safetensors' goes on from step 1000000 of an epoch, which has");
    assert_int_equal(count(r.output, "gpt2_train: "), 1);
    write_file("half.safetensors", "words of no meaning", 19);
    r = run(2, WHOLE "--out whole --checkpoint half.safetensors --resume words");
    expect(&r, 1, "'half.safetensors'");
}

/* ---- around ----------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    tt_env_clear();
    if (!tt_dir_make(dir, sizeof dir))
        return -1;
    write_text("words", TEXT_BYTES, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tt_dir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_named_in_one_line),
        cmocka_unit_test(texts_that_are_none),
        cmocka_unit_test(places_that_cannot_be_written),
        cmocka_unit_test(two_ranks_learn),
        cmocka_unit_test(alone_it_learns_the_same),
        cmocka_unit_test(by_the_clock),
        cmocka_unit_test(killed_it_goes_on),
        cmocka_unit_test(stopped_it_goes_on),
        cmocka_unit_test(one_rank_that_is_stopped_stops_all),
        cmocka_unit_test(checkpoints_of_others),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
