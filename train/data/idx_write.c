/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/idx_write.c - plain IDX files.
 *
 * True    The name never shows half a file: everything goes to "path.part", which is renamed when
 *         it is whole. A writer that is killed leaves the part, and the next writes over it. */
#include "data/idx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>
#include <unistd.h>

static void put_big_endian(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 24);
    p[1] = (uint8_t)(value >> 16);
    p[2] = (uint8_t)(value >> 8);
    p[3] = (uint8_t)value;
}

static tutti_status write_part(const char *part, const uint32_t *word, size_t n_words,
                               const uint8_t *bytes, size_t n)
{
    FILE *file = fopen(part, "wbe");
    uint8_t header[16];
    tutti_status st = TUTTI_OK;
    int err = 0;

    if (file == NULL)
        return tti_fail_errno(errno, "cannot make '%s'", part);
    for (size_t i = 0; i < n_words; i++)
        put_big_endian(header + 4 * i, word[i]);
    errno = 0; /* C promises no errno for a short write */
    if (fwrite(header, 4, n_words, file) != n_words || fwrite(bytes, 1, n, file) != n)
        err = errno != 0 ? errno : EIO;
    if (fclose(file) != 0 && err == 0)
        err = errno != 0 ? errno : EIO;
    if (err != 0)
        st = tti_fail_errno(err, "cannot write %zu bytes to '%s'", 4 * n_words + n, part);
    return st;
}

static tutti_status write_file(const char *path, const uint32_t *word, size_t n_words,
                               const uint8_t *bytes, size_t n)
{
    char *part = NULL;
    tutti_status st;

    if (asprintf(&part, "%s.part", path) < 0)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the name of '%s'", path);
    st = write_part(part, word, n_words, bytes, n);
    if (st == TUTTI_OK && rename(part, path) != 0)
        st = tti_fail_errno(errno, "cannot rename '%s' to '%s'", part, path);
    if (st != TUTTI_OK)
        unlink(part);
    free(part);
    return st;
}

static tutti_status check_count(const void *path, const void *bytes, int64_t count)
{
    if (path == NULL || bytes == NULL)
        return tti_fail(TUTTI_E_ARG, "an IDX file needs a name and contents, not NULL");
    if (count < 1 || count > TUTTI_IDX_COUNT_MAX)
        return tti_fail(TUTTI_E_ARG, "cannot write %lld samples to an IDX file: 1 to %d fit",
                        (long long)count, TUTTI_IDX_COUNT_MAX);
    return TUTTI_OK;
}

tutti_status tutti_idx_write_images(const char *path, const uint8_t *pixels, int64_t count,
                                    int64_t rows, int64_t cols)
{
    tutti_status st = check_count(path, pixels, count);

    if (st != TUTTI_OK)
        return st;
    if (rows < 1 || cols < 1 || rows > TUTTI_IDX_SIDE_MAX || cols > TUTTI_IDX_SIDE_MAX ||
        count * rows * cols > TUTTI_IDX_BYTES_MAX)
        return tti_fail(TUTTI_E_ARG,
                        "cannot write %lld pictures of %lld x %lld pixels to an IDX file:"
                        " sides of 1 to %d and %d bytes fit",
                        (long long)count, (long long)rows, (long long)cols, TUTTI_IDX_SIDE_MAX,
                        TUTTI_IDX_BYTES_MAX);
    return write_file(
        path, (const uint32_t[]){ TTI_IDX_IMAGES, (uint32_t)count, (uint32_t)rows, (uint32_t)cols },
        4, pixels, (size_t)(count * rows * cols));
}

tutti_status tutti_idx_write_labels(const char *path, const uint8_t *labels, int64_t count)
{
    tutti_status st = check_count(path, labels, count);

    if (st != TUTTI_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        if (labels[i] >= TUTTI_DATASET_CLASSES)
            return tti_fail(TUTTI_E_ARG,
                            "cannot write label %d at position %lld: labels are 0 to %d", labels[i],
                            (long long)i, TUTTI_DATASET_CLASSES - 1);
    }
    return write_file(path, (const uint32_t[]){ TTI_IDX_LABELS, (uint32_t)count }, 2, labels,
                      (size_t)count);
}
