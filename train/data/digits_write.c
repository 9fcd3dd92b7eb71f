/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/digits_write.c - drawn digits as the four files of a data set. */
#include <tutti/data.h>
#include <tutti/private.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { PIXELS = TUTTI_DIGITS_SIDE * TUTTI_DIGITS_SIDE };

static tutti_status write_pair(const char *dir, const char *part, const uint8_t *images,
                               const uint8_t *labels, int64_t count)
{
    char *name = NULL;
    tutti_status st;

    if (asprintf(&name, "%s/%s-images-idx3-ubyte", dir, part) < 0)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the names of the files in '%s'", dir);
    st = tutti_idx_write_images(name, images, count, TUTTI_DIGITS_SIDE, TUTTI_DIGITS_SIDE);
    free(name);
    if (st != TUTTI_OK)
        return st;
    if (asprintf(&name, "%s/%s-labels-idx1-ubyte", dir, part) < 0)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the names of the files in '%s'", dir);
    st = tutti_idx_write_labels(name, labels, count);
    free(name);
    return st;
}

static tutti_status make_pair(const char *dir, const char *part, uint64_t seed, int64_t first,
                              int64_t count)
{
    uint8_t *images = malloc((size_t)count * PIXELS);
    uint8_t *labels = malloc((size_t)count);
    tutti_status st;

    if (images != NULL && labels != NULL)
        st = tutti_digits_draw(seed, first, count, images, labels);
    else
        st = tti_fail(TUTTI_E_NOMEM, "no memory for %lld digits", (long long)count);
    if (st == TUTTI_OK)
        st = write_pair(dir, part, images, labels, count);
    free(images);
    free(labels);
    return st;
}

static tutti_status check_count(const char *part, int64_t count)
{
    if (count >= 1 && count <= TUTTI_IDX_BYTES_MAX / PIXELS)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "cannot write %lld %s digits: 1 to %d fit in a file",
                    (long long)count, part, TUTTI_IDX_BYTES_MAX / PIXELS);
}

tutti_status tutti_digits_write(const char *dir, uint64_t seed, int64_t train, int64_t test)
{
    tutti_status st = check_count("training", train);

    if (st == TUTTI_OK)
        st = check_count("test", test);
    if (st != TUTTI_OK)
        return st;
    if (dir == NULL || dir[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a data set needs the name of its directory");
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return tti_fail_errno(errno, "cannot make the directory '%s'", dir);
    st = make_pair(dir, "train", seed, 0, train);
    if (st == TUTTI_OK)
        st = make_pair(dir, "t10k", seed, TUTTI_DIGITS_TEST_FIRST, test);
    return st;
}
