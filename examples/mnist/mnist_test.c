/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mnist_test.c
 * Goal    mnist, and mnist_ddp, as their user meets them: mistakes are named, data is found, and with shared batches the
 *         curve of losses is the same however many ranks there are.
 * Method  the program itself, alone and under tutti run, on a few hundred drawn digits. 577 of them
 *         leave one sample for the last batch of 64: then most ranks have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tutti/data.h>
#include <unistd.h>

#include "harness/scratch.h"

enum { TRAIN = 577, TEST = 100, BATCH = 64, STEPS = 10, STEPS_MAX = 64 };

static char dir[256]; /* everything that is written is below; removed at the end */

typedef struct result {
    int code;
    size_t bytes;
    char text[16384]; /* stdout and stderr */
} result;

/* ---- running it ------------------------------------------------------------------------------- */

static result run(const char *program, const char *fmt, va_list args) TUTTI_PRINTF(2, 0);
static result mnist(const char *fmt, ...) TUTTI_PRINTF(1, 2);
static result ranks(int size, const char *transport, const char *fmt, ...) TUTTI_PRINTF(3, 4);

static result run(const char *program, const char *fmt, va_list args)
{
    char command[2048];
    const int head =
        snprintf(command, sizeof command, "exec 2>&1; cd '%s' && exec %s ", dir, program);
    result r = { 0 };
    FILE *pipe;
    int status;

    vsnprintf(command + head, sizeof command - (size_t)head, fmt, args);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    r.bytes = fread(r.text, 1, sizeof r.text - 1, pipe);
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    r.code = WEXITSTATUS(status);
    return r;
}

static result mnist(const char *fmt, ...)
{
    va_list args;
    result r;

    va_start(args, fmt);
    r = run(MNIST_PROGRAM, fmt, args);
    va_end(args);
    return r;
}

static const char *program_of_ranks = MNIST_PROGRAM;

static result ranks(int size, const char *transport, const char *fmt, ...)
{
    char program[1024];
    va_list args;
    result r;

    snprintf(program, sizeof program,
             "env TUTTI_TRANSPORT=%s %s run --standalone --nproc-per-node=%d %s", transport,
             TUTTI_PROGRAM, size, program_of_ranks);
    va_start(args, fmt);
    r = run(program, fmt, args);
    va_end(args);
    return r;
}

static void expect(const result *r, int code, const char *words)
{
    if (r->code != code || strstr(r->text, words) == NULL)
        fail_msg("exit code %d instead of %d, or no '%s' in:\n%s", r->code, code, words, r->text);
}

static int read_losses(const char *name, double losses[STEPS_MAX])
{
    char path[512];
    FILE *f;
    int n = 0;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "r");
    assert_non_null(f);
    while (n < STEPS_MAX && fscanf(f, "%lf\n", &losses[n]) == 1)
        n++;
    assert_true(feof(f));
    fclose(f);
    return n;
}

/* ---- mistakes --------------------------------------------------------------------------------- */

static void a_mistake_is_named_in_one_line(void **state)
{
    static const struct {
        const char *args, *words;
    } wrong[] = {
        { "", "'--data' is missing" },
        { "--frob", "'--frob' is no option" },
        { "--frob=1", "'--frob=1' is no option" },
        { "-x", "'-x' is no option" },
        { "--data d stray", "'stray' is no option" },
        { "--data", "'--data' needs a value" },
        { "--data d --losses", "'--losses' needs a value" },
        { "--data d --no-dropout=1", "'--no-dropout=1' is no option" },
        { "--data d --epochs=0",
          "'0' is no value for --epochs, which takes a whole number, 1 .. 1000000" },
        { "--data d --epochs 1x", "'1x' is no value for --epochs" },
        { "--data d --epochs -1", "'-1' is no value for --epochs" },
        { "--data d --batch=", "'' is no value for --batch" },
        { "--data d --batch 99999999999999999999", "is no value for --batch" },
        { "--data d --seed ' 1'", "' 1' is no value for --seed" },
        { "--data d --lr nan", "'nan' is no value for --lr" },
        { "--data d --lr inf", "'inf' is no value for --lr" },
        { "--data d --lr -0.1", "'-0.1' is no value for --lr" },
        { "--data d --momentum 1",
          "'1' is no value for --momentum, which takes a number, 0 or more and below 1" },
        { "--data d --model tree",
          "'tree' is no value for --model, which takes 'cnn' or 'linear'" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const result r = mnist("%s", wrong[i].args);

        expect(&r, 2, wrong[i].words);
        assert_ptr_equal(strchr(r.text, '\n'), r.text + r.bytes - 1);
    }
}

static int count(const char *text, const char *words)
{
    int n = 0;

    for (text = strstr(text, words); text != NULL; text = strstr(text + 1, words))
        n++;
    return n;
}

static void ranks_name_a_mistake_once(void **state)
{
    result r = ranks(4, "auto", "--data data --epochs 0");

    (void)state;
    expect(&r, 2, "is no value for --epochs");
    assert_int_equal(count(r.text, "mnist: "), 1);
    r = ranks(4, "auto", "--data data --batch 63");
    expect(&r, 2, "cannot be shared equally by 4 ranks");
    assert_int_equal(count(r.text, "mnist: "), 1);
    r = ranks(4, "auto", "--data nowhere");
    expect(&r, 1, "the data directory 'nowhere' does not exist");
    assert_int_equal(count(r.text, "mnist: "), 1);
    r = ranks(4, "auto", "--help");
    expect(&r, 0, "usage: mnist");
    assert_int_equal(count(r.text, "usage: mnist"), 1);
}

static void help_is_no_mistake(void **state)
{
    const result r = mnist("--help");

    (void)state;
    expect(&r, 0, "--global-batches");
}

static void a_batch_that_cannot_be_shared(void **state)
{
    const result r = ranks(2, "auto", "--data data --batch 63");

    (void)state;
    expect(&r, 2, "--batch: 63 samples cannot be shared equally by 2 ranks");
}

static void half_an_environment(void **state)
{
    result r;

    (void)state;
    setenv("WORLD_SIZE", "2", 1);
    r = mnist("--data data");
    unsetenv("WORLD_SIZE");
    expect(&r, 1, "RANK");
}

static void data_that_is_none(void **state)
{
    char path[512];
    uint8_t pixels[10 * 10] = { 0 }, label = 3;
    result r;

    (void)state;
    r = mnist("--data nowhere");
    expect(&r, 1, "the data directory 'nowhere' does not exist");
    r = mnist("--data /dev/null");
    expect(&r, 1, "'/dev/null' is no directory");

    snprintf(path, sizeof path, "%s/short", dir);
    assert_int_equal(tutti_digits_write(path, 1, 20, 20), TUTTI_OK);
    snprintf(path, sizeof path, "%s/short/train-images-idx3-ubyte", dir);
    assert_int_equal(truncate(path, 1000), 0);
    r = mnist("--data short");
    expect(&r, 1, "train-images-idx3-ubyte");

    snprintf(path, sizeof path, "%s/short/train-images-idx3-ubyte", dir);
    assert_int_equal(tutti_idx_write_images(path, pixels, 1, 10, 10), TUTTI_OK);
    snprintf(path, sizeof path, "%s/short/train-labels-idx1-ubyte", dir);
    assert_int_equal(tutti_idx_write_labels(path, &label, 1), TUTTI_OK);
    r = mnist("--data short");
    expect(&r, 1, "10 x 10 pixels, and the network takes 28 x 28");
}

static void losses_that_cannot_be_written(void **state)
{
    result r;

    (void)state;
    r = mnist("--data data --losses nowhere/losses");
    expect(&r, 1, "cannot write 'nowhere/losses'");
    r = mnist("--data data --model linear --epochs 1 --losses /dev/full");
    expect(&r, 1, "cannot write the losses");
}

/* ---- training --------------------------------------------------------------------------------- */

static double mean(const double losses[STEPS])
{
    double sum = 0.0;

    for (int i = 0; i < STEPS; i++)
        sum += losses[i];
    return sum / STEPS;
}

static void alone_it_ends_with_the_accuracy(void **state)
{
    double a[STEPS_MAX], b[STEPS_MAX];
    double percent = -1.0;
    int end = 0;
    result r;

    (void)state;
    r = mnist("--data=data --epochs=4 --batch=%d --lr=0.01 --model=linear --losses=a", BATCH);
    expect(&r, 0, "parameters are bitwise equal on all ranks (1)\n");
    assert_int_equal(
        sscanf(strstr(r.text, "test accuracy"), "test accuracy %lf %%%n", &percent, &end), 1);
    assert_ptr_equal(strstr(r.text, "test accuracy") + end, r.text + r.bytes - 1);
    assert_true(percent > 20.0 && percent <= 100.0); /* guessing gets 10 */
    assert_int_equal(read_losses("a", a), 4 * STEPS);
    assert_true(mean(a + 3 * STEPS) < 0.8 * mean(a));

    r = mnist("--data data --epochs 4 --batch %d --lr 0.01 --model linear --losses b", BATCH);
    assert_int_equal(read_losses("b", b), 4 * STEPS);
    assert_memory_equal(a, b, 4 * STEPS * sizeof a[0]);
}

/* 100 test digits without training files: 90 and 10. */
static void test_files_alone_are_split(void **state)
{
    static const char *const names[] = { "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" };
    double losses[STEPS_MAX];
    char from[512], to[512];
    result r;

    (void)state;
    snprintf(to, sizeof to, "%s/split", dir);
    assert_int_equal(mkdir(to, 0700), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/data/%s", dir, names[i]);
        snprintf(to, sizeof to, "%s/split/%s", dir, names[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    r = mnist("--data split --epochs 1 --batch 10 --losses split.losses");
    expect(&r, 0, "0.0 %\n"); /* of ten: a multiple of ten */
    assert_int_equal(read_losses("split.losses", losses), 9);
}

static void check_curve(const char *model, int size, const char *transport, const double *want)
{
    double got[STEPS_MAX];
    const result r =
        ranks(size, transport,
              "--data data --epochs 2 --batch %d --model %s --no-dropout --global-batches "
              "--losses curve",
              BATCH, model);

    expect(&r, 0, "parameters are bitwise equal on all ranks");
    assert_int_equal(read_losses("curve", got), 2 * STEPS);
    for (int i = 0; i < 2 * STEPS; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-5 * want[i]))
            fail_msg("%s, %d ranks over %s, step %d: %.9g instead of %.9g", model, size, transport,
                     i, got[i], want[i]);
}

static void curve_of_any_world(const char *model)
{
    double own[STEPS_MAX], one[STEPS_MAX];
    result r;

    r = mnist("--data data --epochs 2 --batch %d --model %s --no-dropout --losses own", BATCH,
              model);
    expect(&r, 0, "(1)");
    r = mnist(
        "--data data --epochs 2 --batch %d --model %s --no-dropout --global-batches --losses one",
        BATCH, model);
    expect(&r, 0, "(1)");
    assert_int_equal(read_losses("own", own), 2 * STEPS);
    assert_int_equal(read_losses("one", one), 2 * STEPS);
    for (int i = 0; i < 2 * STEPS; i++) /* one rank's own order is the one that is shared */
        assert_true(fabs(own[i] - one[i]) <= 1e-5 * one[i]);
    for (int size = 2; size <= 4; size += 2) {
        check_curve(model, size, "auto", one);
        check_curve(model, size, "tcp", one);
    }
}

static void curves_agree_cnn(void **state)
{
    (void)state;
    curve_of_any_world("cnn");
}

static void curves_agree_linear(void **state)
{
    (void)state;
    curve_of_any_world("linear");
}

static void dropout_leaves_ranks_equal(void **state)
{
    double losses[STEPS_MAX];
    result r;

    (void)state;
    r = ranks(2, "auto", "--data data --epochs 2 --batch %d --losses own", BATCH);
    expect(&r, 0, "parameters are bitwise equal on all ranks (2)");
    assert_int_equal(read_losses("own", losses), 2 * 9); /* 288 of 577 samples by 32 */
    r = ranks(3, "auto", "--data data --epochs 2 --losses own");
    expect(&r, 0, "parameters are bitwise equal on all ranks (3)");
    assert_int_equal(read_losses("own", losses), 2 * 5); /* 192 samples by 128 / 3 */
    r = ranks(4, "auto", "--data data --epochs 2 --batch %d --global-batches --losses shared",
              BATCH);
    expect(&r, 0, "parameters are bitwise equal on all ranks (4)");
    assert_int_equal(read_losses("shared", losses), 2 * STEPS);
}

/* mnist_ddp averages in buckets, and comes to the same losses. */
static void a_ddp_goes_the_same_way(void **state)
{
    double one[STEPS_MAX], losses[STEPS_MAX];
    result r;

    (void)state;
    r = mnist("--data data --epochs 2 --batch %d --no-dropout --global-batches --losses one", BATCH);
    expect(&r, 0, "(1)");
    assert_int_equal(read_losses("one", one), 2 * STEPS);
    program_of_ranks = MNIST_DDP_PROGRAM;
    check_curve("cnn", 2, "auto", one);
    check_curve("cnn", 3, "tcp", one);
    r = ranks(2, "auto", "--data data --epochs 2 --losses own"); /* dropout, an order for each rank */
    expect(&r, 0, "parameters are bitwise equal on all ranks (2)");
    assert_int_equal(read_losses("own", losses), 2 * 5); /* 288 samples by 64 */
    r = ranks(2, "auto", "--data data --batch 63");
    expect(&r, 1, "63 samples cannot be shared equally by 2 ranks");
    program_of_ranks = MNIST_PROGRAM;
}

/* ---- around ----------------------------------------------------------------------------------- */

static int begin(void **state)
{
    char data[512];

    (void)state;
    tt_env_clear();
    if (!tt_dir_make(dir, sizeof dir))
        return -1;
    snprintf(data, sizeof data, "%s/data", dir);
    return tutti_digits_write(data, 7, TRAIN, TEST) == TUTTI_OK ? 0 : -1;
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
        cmocka_unit_test(ranks_name_a_mistake_once),
        cmocka_unit_test(help_is_no_mistake),
        cmocka_unit_test(a_batch_that_cannot_be_shared),
        cmocka_unit_test(half_an_environment),
        cmocka_unit_test(data_that_is_none),
        cmocka_unit_test(losses_that_cannot_be_written),
        cmocka_unit_test(alone_it_ends_with_the_accuracy),
        cmocka_unit_test(test_files_alone_are_split),
        cmocka_unit_test(curves_agree_cnn),
        cmocka_unit_test(curves_agree_linear),
        cmocka_unit_test(dropout_leaves_ranks_equal),
        cmocka_unit_test(a_ddp_goes_the_same_way),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
