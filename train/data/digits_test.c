/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/digits_test.c
 * Goal    the drawn digits are the same bytes everywhere, and a data set that our reader reads.
 * Method  A hash of the first digits of seed 1, taken once; properties; a round trip by files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tutti/data.h>
#include <unistd.h>

enum { SIDE = TUTTI_DIGITS_SIDE, PIXELS = SIDE * SIDE, COUNT = 500 };

/* FNV-1a, 64 bits. */
static uint64_t hash(uint64_t h, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void draw(uint64_t seed, int64_t first, int64_t count, uint8_t **images, uint8_t **labels)
{
    *images = malloc((size_t)count * PIXELS);
    *labels = malloc((size_t)count);
    assert_non_null(*images);
    assert_non_null(*labels);
    assert_int_equal(tutti_digits_draw(seed, first, count, *images, *labels), TUTTI_OK);
}

/* The golden numbers of tests/golden were made with these very bytes. */
static void test_same_bytes_everywhere(void **state)
{
    static const struct {
        int64_t first;
        uint64_t hash;
    } cases[] = {
        { 0, UINT64_C(0x0afc1c1008b3240d) },
        { TUTTI_DIGITS_TEST_FIRST, UINT64_C(0xb2f5cb080116cf00) },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *images, *labels;
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        draw(1, cases[i].first, COUNT, &images, &labels);
        h = hash(hash(h, images, COUNT * PIXELS), labels, COUNT);
        if (h != cases[i].hash)
            fail_msg("digits from %lld on: 0x%016llx", (long long)cases[i].first,
                     (unsigned long long)h);
        free(images);
        free(labels);
    }
}

static void test_each_digit_stands_alone(void **state)
{
    uint8_t *images, *labels, one[PIXELS], label;

    (void)state;
    draw(7, 0, 20, &images, &labels);
    assert_int_equal(tutti_digits_draw(7, 13, 1, one, &label), TUTTI_OK);
    assert_memory_equal(one, images + 13 * PIXELS, PIXELS);
    assert_int_equal(label, labels[13]);
    assert_int_equal(tutti_digits_draw(8, 13, 1, one, &label), TUTTI_OK); /* another seed */
    assert_memory_not_equal(one, images + 13 * PIXELS, PIXELS);
    assert_int_equal(tutti_digits_draw(7, 0, 0, NULL, NULL), TUTTI_OK);
    free(images);
    free(labels);
}

/* Every digit comes about as often, is dark enough to read, and leaves most of the paper white. */
static void test_digits_look_like_a_data_set(void **state)
{
    uint8_t *images, *labels;
    int of_label[10] = { 0 };

    (void)state;
    draw(3, 0, COUNT, &images, &labels);
    for (int i = 0; i < COUNT; i++) {
        int dark = 0;

        assert_in_range(labels[i], 0, 9);
        of_label[labels[i]]++;
        for (int k = 0; k < PIXELS; k++)
            dark += images[i * PIXELS + k] >= 150;
        assert_in_range(dark, 15, 250);
    }
    for (int digit = 0; digit < 10; digit++)
        assert_in_range(of_label[digit], COUNT / 20, COUNT / 5);
    free(images);
    free(labels);
}

static void remove_files(const char *dir)
{
    static const char *const names[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];

        assert_in_range(snprintf(path, sizeof path, "%s/%s", dir, names[i]), 1, PATH_MAX - 1);
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0); /* nothing else was left there */
}

static void check_part(const char *dir, tutti_dataset_part part, int64_t first, int64_t count)
{
    const int64_t last = count - 1;
    tutti_dataset *ds = NULL;
    uint8_t *images, *labels;
    float x[PIXELS];
    int64_t y;

    draw(5, first, count, &images, &labels);
    assert_int_equal(tutti_dataset_open(dir, part, &ds), TUTTI_OK);
    assert_int_equal(tutti_dataset_length(ds), count);
    assert_int_equal(tutti_dataset_rows(ds), SIDE);
    assert_int_equal(tutti_dataset_cols(ds), SIDE);
    assert_int_equal(tutti_dataset_fetch(ds, &last, 1, x, &y), TUTTI_OK);
    assert_int_equal(y, labels[last]);
    for (int k = 0; k < PIXELS; k++) {
        const float grey = (float)images[last * PIXELS + k] / 255.0f;

        assert_true(x[k] == (grey - 0.1307f) / 0.3081f);
    }
    tutti_dataset_free(ds);
    free(images);
    free(labels);
}

static void test_files(void **state)
{
    char outer[] = "/tmp/tutti-digits-XXXXXX", dir[PATH_MAX];

    (void)state;
    assert_non_null(mkdtemp(outer));
    snprintf(dir, sizeof dir, "%s/made", outer); /* absent: write makes it */
    for (int round = 0; round < 2; round++) {    /* and writes over what is there */
        assert_int_equal(tutti_digits_write(dir, 5, 30 + round, 20), TUTTI_OK);
        check_part(dir, TUTTI_DATASET_TRAIN, 0, 30 + round);
        check_part(dir, TUTTI_DATASET_TEST, TUTTI_DIGITS_TEST_FIRST, 20);
    }
    remove_files(dir);
    assert_int_equal(rmdir(outer), 0);
}

static void test_refusals(void **state)
{
    uint8_t one[PIXELS], label;

    (void)state;
    assert_int_equal(tutti_digits_draw(1, -1, 1, one, &label), TUTTI_E_ARG);
    assert_int_equal(tutti_digits_draw(1, 0, -1, one, &label), TUTTI_E_ARG);
    assert_int_equal(tutti_digits_draw(1, INT64_MAX, 1, one, &label), TUTTI_E_ARG);
    assert_int_equal(tutti_digits_draw(1, 0, 1, NULL, &label), TUTTI_E_ARG);
    assert_int_equal(tutti_digits_write("", 1, 1, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_digits_write("/tmp", 1, 0, 1), TUTTI_E_ARG);
    assert_int_equal(tutti_digits_write("/tmp", 1, 1, 10000000), TUTTI_E_ARG);
    assert_int_equal(tutti_digits_write("/proc/tutti-nowhere/digits", 1, 1, 1), TUTTI_E_IO);
    assert_non_null(strstr(tutti_last_error(), "'/proc/tutti-nowhere/digits'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes_everywhere),
        cmocka_unit_test(test_each_digit_stands_alone),
        cmocka_unit_test(test_digits_look_like_a_data_set),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests_name("digits", tests, NULL, NULL);
}
