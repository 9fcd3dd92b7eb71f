/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/idx_test.c
 * Goal    IDX files are read as they are, and every damaged one is refused with its own words.
 * Method  A sound pair of 3 pictures of 2 x 2 pixels, changed in one place per case. */
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
#include <zlib.h>

enum { IMAGES_BYTES = 28, LABELS_BYTES = 11, ROOM = 256 };

static const uint8_t sound_images[IMAGES_BYTES] = { 0,  0,  8,  3,  0,  0,  0,  3,  0,  0,
                                                    0,  2,  0,  0,  0,  2,  10, 11, 12, 13,
                                                    20, 21, 22, 23, 30, 31, 32, 255 };
static const uint8_t sound_labels[LABELS_BYTES] = { 0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9 };

/* A private directory with the two names in it. */
typedef struct place {
    char dir[64];
    char images[PATH_MAX], labels[PATH_MAX];
} place;

static int setup(void **state)
{
    place *p = calloc(1, sizeof *p);

    assert_non_null(p);
    strcpy(p->dir, "/tmp/tutti-idx-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->images, sizeof p->images, "%s/images", p->dir);
    snprintf(p->labels, sizeof p->labels, "%s/labels", p->dir);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = { "images", "images.gz", "labels", "labels.gz" };
    place *p = *state;
    int rc;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/%s", p->dir, names[i]);
        unlink(path);
    }
    rc = rmdir(p->dir);
    free(p);
    return rc; /* a file that nobody expected is a failure */
}

static void put(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void put_sound(const place *p)
{
    put(p->images, sound_images, IMAGES_BYTES);
    put(p->labels, sound_labels, LABELS_BYTES);
}

static void expect_sound(const char *images, const char *labels)
{
    static const int64_t all[] = { 0, 1, 2 };
    tutti_dataset *ds = NULL;
    float x[12];
    int64_t y[3];

    assert_int_equal(tutti_dataset_open_files(images, labels, &ds), TUTTI_OK);
    assert_int_equal(tutti_dataset_length(ds), 3);
    assert_int_equal(tutti_dataset_rows(ds), 2);
    assert_int_equal(tutti_dataset_cols(ds), 2);
    assert_int_equal(tutti_dataset_fetch(ds, all, 3, x, y), TUTTI_OK);
    assert_true(x[11] == (1.0f - 0.1307f) / 0.3081f);
    assert_int_equal(y[0], 7);
    assert_int_equal(y[2], 9);
    tutti_dataset_free(ds);
}

static void expect_refused(const place *p, const char *words)
{
    tutti_dataset *ds = (tutti_dataset *)(uintptr_t)1;

    assert_int_equal(tutti_dataset_open_files(p->images, p->labels, &ds), TUTTI_E_IO);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", tutti_last_error(), words);
    if (strstr(tutti_last_error(), p->dir) == NULL)
        fail_msg("\"%s\" does not name the file", tutti_last_error());
    assert_ptr_equal(ds, (void *)(uintptr_t)1); /* outputs are written only on success */
}

/* Squeeze bytes into a gzip member; returns its size. */
static size_t gzip(const void *bytes, size_t n, uint8_t *out, size_t room)
{
    z_stream zs = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n };

    assert_int_equal(deflateInit2(&zs, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    zs.next_out = out;
    zs.avail_out = (uInt)room;
    assert_int_equal(deflate(&zs, Z_FINISH), Z_STREAM_END);
    n = zs.total_out;
    deflateEnd(&zs);
    return n;
}

static void test_plain_and_gzip(void **state)
{
    place *p = *state;
    uint8_t gz[ROOM];
    char gz_name[PATH_MAX + 4];

    put_sound(p);
    expect_sound(p->images, p->labels);
    put(p->images, gz, gzip(sound_images, IMAGES_BYTES, gz, ROOM)); /* gzip under a plain name */
    expect_sound(p->images, p->labels);
    assert_int_equal(unlink(p->images), 0);
    snprintf(gz_name, sizeof gz_name, "%s.gz", p->images);
    put(gz_name, gz, gzip(sound_images, IMAGES_BYTES, gz, ROOM)); /* ".gz" is tried */
    expect_sound(p->images, p->labels);
    expect_sound(gz_name, p->labels);
}

/* One change of one byte, or another length. */
typedef struct corruption {
    int in_labels;
    int length; /* of the file; 0: unchanged */
    int at;     /* -1: change nothing */
    uint8_t value;
    const char *words;
} corruption;

static const corruption corruptions[] = {
    { 0, 27, -1, 0, "truncated: its header accounts for 28 bytes, it holds 27" },
    { 0, 15, -1, 0, "truncated: 15 bytes, and its header alone has 16" },
    { 0, 3, -1, 0, "truncated: 3 bytes" },
    { 0, 29, -1, 0, "has bytes behind the 28" },
    { 0, 0, 3, 1, "begins with 0x00000801, not 0x00000803" },
    { 0, 0, 0, 0x80, "no IDX file of pictures" },
    { 0, 0, 4, 0x80, "claims 2147483651 pictures: 1 to 16777216 can be read" },
    { 0, 0, 5, 0x80, "truncated: its header accounts for 33554460 bytes" },
    { 0, 0, 7, 0, "claims 0 pictures" },
    { 0, 0, 8, 0xff, "claims 4278190082 rows: 1 to 4096 can be read" },
    { 0, 0, 11, 0, "claims 0 rows" },
    { 0, 0, 12, 0xff, "columns: 1 to 4096 can be read" },
    { 0, 0, 15, 0, "claims 0 columns" },
    { 0, 0, 15, 1, "has bytes behind the 22" },
    { 1, 10, -1, 0, "truncated: its header accounts for 11 bytes, it holds 10" },
    { 1, 7, -1, 0, "truncated: 7 bytes, and its header alone has 8" },
    { 1, 12, -1, 0, "has bytes behind the 11" },
    { 1, 0, 3, 3, "no IDX file of labels" },
    { 1, 0, 4, 1, "claims 16777219 labels" },
    { 1, 0, 7, 0, "claims 0 labels" },
    { 1, 0, 9, 10, "has label 10 at position 1: labels are 0 to 9" },
    { 1, 0, 8, 255, "has label 255 at position 0" },
};

static void put_corrupt(const place *p, const corruption *c)
{
    const char *path = c->in_labels ? p->labels : p->images;
    uint8_t bytes[ROOM] = { 0 };
    size_t n = c->in_labels ? LABELS_BYTES : IMAGES_BYTES;

    memcpy(bytes, c->in_labels ? sound_labels : sound_images, n);
    if (c->length > 0)
        n = (size_t)c->length;
    if (c->at >= 0)
        bytes[c->at] = c->value;
    put_sound(p);
    put(path, bytes, n);
}

static void test_every_corruption(void **state)
{
    place *p = *state;

    for (size_t i = 0; i < sizeof corruptions / sizeof *corruptions; i++) {
        put_corrupt(p, &corruptions[i]);
        expect_refused(p, corruptions[i].words);
    }
    put(p->images, "", 0);
    expect_refused(p, "truncated: 0 bytes");
}

/* Whichever bit of a header is wrong, the file is refused. */
static void test_every_bit_of_the_headers(void **state)
{
    place *p = *state;

    for (int bit = 0; bit < 8 * (16 + 8); bit++) {
        const int in_labels = bit >= 8 * 16;
        const int at = bit / 8 - 16 * in_labels;
        const uint8_t was = (in_labels ? sound_labels : sound_images)[at];
        const corruption c = { in_labels, 0, at, (uint8_t)(was ^ 1 << bit % 8), "" };

        put_corrupt(p, &c);
        expect_refused(p, c.words);
    }
}

/* Whichever bit of a gzip file is wrong: refused, or one that does not matter (a time stamp). */
static void test_every_bit_of_gzip(void **state)
{
    place *p = *state;
    uint8_t gz[ROOM];
    const size_t n = gzip(sound_images, IMAGES_BYTES, gz, ROOM);
    int refused = 0;

    put_sound(p);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        tutti_dataset *ds = NULL;

        gz[bit / 8] ^= (uint8_t)(1 << bit % 8);
        put(p->images, gz, n);
        gz[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (tutti_dataset_open_files(p->images, p->labels, &ds) != TUTTI_OK) {
            refused++;
            continue;
        }
        tutti_dataset_free(ds);
        expect_sound(p->images, p->labels);
    }
    assert_in_range(refused, 8 * (n - 10), 8 * n); /* everything behind the gzip header */
}

static void test_product_above_the_limit(void **state)
{
    static const uint8_t header[16] = { 0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 16, 0, 0, 0, 16, 0 };
    place *p = *state;

    put_sound(p);
    put(p->images, header, sizeof header);
    expect_refused(p, "claims 65536 pictures of 4096 x 4096 pixels: at most 1073741824 bytes");
}

static void test_unequal_counts(void **state)
{
    static const uint8_t two[] = { 0, 0, 8, 1, 0, 0, 0, 2, 7, 0 };
    place *p = *state;

    put_sound(p);
    put(p->labels, two, sizeof two);
    expect_refused(p, "has 3 pictures");
    expect_refused(p, "has 2 labels");
}

static void test_names_that_are_no_files(void **state)
{
    place *p = *state;

    put_sound(p);
    assert_int_equal(unlink(p->labels), 0);
    expect_refused(p, "there is neither");
    expect_refused(p, "labels.gz'");
    assert_int_equal(mkdir(p->labels, 0700), 0);
    expect_refused(p, "is not a regular file");
    assert_int_equal(rmdir(p->labels), 0);
    assert_int_equal(mkfifo(p->labels, 0600), 0);
    expect_refused(p, "is not a regular file"); /* and does not wait for a writer */
}

static void test_wrong_arguments(void **state)
{
    place *p = *state;
    tutti_dataset *ds = NULL;

    assert_int_equal(tutti_dataset_open_files(NULL, p->labels, &ds), TUTTI_E_ARG);
    assert_int_equal(tutti_dataset_open_files(p->images, "", &ds), TUTTI_E_ARG);
    assert_int_equal(tutti_dataset_open(NULL, TUTTI_DATASET_TRAIN, &ds), TUTTI_E_ARG);
    assert_int_equal(tutti_dataset_open(p->dir, (tutti_dataset_part)2, &ds), TUTTI_E_ARG);
    assert_null(ds);
}

static void test_damaged_gzip(void **state)
{
    place *p = *state;
    uint8_t gz[ROOM];
    const size_t n = gzip(sound_images, IMAGES_BYTES, gz, ROOM - 2);

    put_sound(p);
    for (size_t cut = 2; cut < n; cut++) { /* whatever the place: never sound */
        put(p->images, gz, cut);
        expect_refused(p, "truncated");
    }
    gz[n] = 0;
    put(p->images, gz, n + 1);
    expect_refused(p, "has bytes behind the end of its gzip data");
    gz[n - 5] ^= 1; /* the checksum */
    put(p->images, gz, n);
    expect_refused(p, "is damaged: gzip says");
    gz[n - 5] ^= 1;
    gz[2] = 9; /* the method */
    put(p->images, gz, n);
    expect_refused(p, "is no gzip file: method 9 behind its first bytes, not 8");
    gz[2] = 8;
    gz[3] = 0xe0; /* flags that nobody has defined */
    put(p->images, gz, n);
    expect_refused(p, "is damaged: gzip says");
}

/* The name promises gzip, the bytes are neither that nor IDX. */
static void test_no_gzip_under_its_name(void **state)
{
    place *p = *state;
    char gz_name[sizeof p->images + 4];

    put_sound(p);
    snprintf(gz_name, sizeof gz_name, "%s.gz", p->images);
    assert_int_equal(unlink(p->images), 0);
    put(gz_name, "<html>not found</html>", 22);
    expect_refused(p,
                   ".gz' is no gzip file, and no IDX file of pictures: it begins with 0x3c68746d");
    assert_int_equal(unlink(gz_name), 0);
}

static void test_gzip_length_is_not_the_header_s(void **state)
{
    place *p = *state;
    uint8_t gz[ROOM], bytes[IMAGES_BYTES + 1] = { 0 };

    put_sound(p);
    put(p->images, gz, gzip(sound_images, IMAGES_BYTES - 1, gz, ROOM));
    expect_refused(p, "truncated: its header accounts for 28 bytes, it holds 27");
    memcpy(bytes, sound_images, IMAGES_BYTES);
    put(p->images, gz, gzip(bytes, IMAGES_BYTES + 1, gz, ROOM));
    expect_refused(p, "has bytes behind the 28");
}

/* A header that claims 512 MiB, over a stream that could hold at most a few KiB: refused before any
 * of it is allocated. And a stream far longer than its header says: read no further than one byte
 * too many. */
static void test_gzip_bomb(void **state)
{
    enum { BOMB = 64 << 20 };
    static const uint8_t huge[16] = { 0, 0, 8, 3, 0, 0, 0, 32, 0, 0, 16, 0, 0, 0, 16, 0 };
    place *p = *state;
    uint8_t gz[ROOM], *bomb = calloc(1, BOMB), *small = malloc(BOMB / 500);

    assert_non_null(bomb);
    assert_non_null(small);
    put_sound(p);
    put(p->images, gz, gzip(huge, sizeof huge, gz, ROOM));
    expect_refused(p, "accounts for 536870928 bytes, it holds at most");
    memcpy(bomb, sound_images, IMAGES_BYTES);
    put(p->images, small, gzip(bomb, BOMB, small, BOMB / 500));
    expect_refused(p, "has bytes behind the 28");
    free(bomb);
    free(small);
}

static void test_write_and_read_back(void **state)
{
    place *p = *state;
    uint8_t bytes[IMAGES_BYTES + 1];
    FILE *file;

    assert_int_equal(tutti_idx_write_images(p->images, sound_images + 16, 3, 2, 2), TUTTI_OK);
    assert_int_equal(tutti_idx_write_labels(p->labels, sound_labels + 8, 3), TUTTI_OK);
    expect_sound(p->images, p->labels);
    file = fopen(p->images, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), IMAGES_BYTES);
    assert_memory_equal(bytes, sound_images, IMAGES_BYTES);
    fclose(file);
}

static void test_write_refuses(void **state)
{
    static const uint8_t bytes[4] = { 0, 1, 2, 10 };
    place *p = *state;
    char nowhere[PATH_MAX + 8];

    snprintf(nowhere, sizeof nowhere, "%s/x/images", p->dir);
    assert_int_equal(tutti_idx_write_images(nowhere, bytes, 1, 2, 2), TUTTI_E_IO);
    assert_int_equal(tutti_idx_write_images(p->images, bytes, 0, 2, 2), TUTTI_E_ARG);
    assert_int_equal(tutti_idx_write_images(p->images, bytes, 1, 0, 2), TUTTI_E_ARG);
    assert_int_equal(tutti_idx_write_images(p->images, bytes, 1, 2, INT64_MAX), TUTTI_E_ARG);
    assert_int_equal(tutti_idx_write_images(p->images, bytes, 1 << 24, 4096, 4096), TUTTI_E_ARG);
    assert_int_equal(tutti_idx_write_images(p->images, NULL, 1, 2, 2), TUTTI_E_ARG);
    assert_int_equal(tutti_idx_write_labels(p->labels, bytes, 4), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "label 10 at position 3"));
    assert_int_equal(access(p->images, F_OK), -1);
    assert_int_equal(mkdir(p->images, 0700), 0); /* the rename fails: the part must not stay */
    assert_int_equal(tutti_idx_write_images(p->images, bytes, 1, 2, 2), TUTTI_E_IO);
    assert_int_equal(rmdir(p->images), 0);
}

static void test_fetch_and_view(void **state)
{
    static const int64_t pick[] = { 1, 0, 1 };
    static const int64_t bad[] = { 0, 2 };
    place *p = *state;
    tutti_dataset *ds = NULL, *view = NULL, *inner = NULL;
    float x[12];
    int64_t y[3] = { -1, -1, -1 };

    put_sound(p);
    assert_int_equal(tutti_dataset_open_files(p->images, p->labels, &ds), TUTTI_OK);
    assert_int_equal(tutti_dataset_view(ds, 1, 2, &view), TUTTI_OK);
    tutti_dataset_free(ds); /* the view keeps the pictures */
    assert_int_equal(tutti_dataset_length(view), 2);
    assert_int_equal(tutti_dataset_fetch(view, bad, 2, NULL, y), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "no sample 2 in a data set of 2"));
    assert_int_equal(y[0], -1); /* nothing was written */
    assert_int_equal(tutti_dataset_fetch(view, NULL, 1, x, y), TUTTI_E_ARG);
    assert_int_equal(tutti_dataset_fetch(view, NULL, 0, NULL, NULL), TUTTI_OK);
    assert_int_equal(tutti_dataset_fetch(view, pick, 3, x, y), TUTTI_OK);
    assert_int_equal(y[0], 9);
    assert_int_equal(y[1], 0);
    assert_true(x[4] == (20.0f / 255.0f - 0.1307f) / 0.3081f);
    assert_memory_equal(x, x + 8, 4 * sizeof *x);
    assert_int_equal(tutti_dataset_view(view, 1, 2, &inner), TUTTI_E_ARG);
    assert_int_equal(tutti_dataset_view(view, -1, 1, &inner), TUTTI_E_ARG);
    assert_int_equal(tutti_dataset_view(view, 1, INT64_MAX, &inner), TUTTI_E_ARG);
    assert_int_equal(tutti_dataset_view(view, 1, 1, &inner), TUTTI_OK); /* a view of a view */
    assert_int_equal(tutti_dataset_fetch(inner, pick + 1, 1, NULL, y), TUTTI_OK);
    assert_int_equal(y[0], 9);
    tutti_dataset_free(inner);
    tutti_dataset_free(view);
    tutti_dataset_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain_and_gzip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_corruption, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_bit_of_the_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_bit_of_gzip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_product_above_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unequal_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_that_are_no_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_gzip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_gzip_under_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gzip_length_is_not_the_header_s, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gzip_bomb, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_and_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fetch_and_view, setup, teardown),
    };

    return cmocka_run_group_tests_name("idx", tests, NULL, NULL);
}
