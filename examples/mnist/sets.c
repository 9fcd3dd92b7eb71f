/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sets.c - which files of the directory are what. */
#include "sets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "examples/common/say.h"
#include "net.h"

static bool is_there(const char *dir, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* One file of the pair is enough: that the other one is missing must be said, not hidden. */
static bool has_training_files(const char *dir)
{
    return is_there(dir, "train-images-idx3-ubyte") || is_there(dir, "train-labels-idx1-ubyte") ||
           is_there(dir, "train-images-idx3-ubyte.gz") ||
           is_there(dir, "train-labels-idx1-ubyte.gz");
}

static bool split(const tutti_dataset *all, tutti_dataset **train_out, tutti_dataset **test_out)
{
    const int64_t n = tutti_dataset_length(all);
    const int64_t first = n * 9 / 10;

    TRY(tutti_dataset_view(all, 0, first, train_out));
    TRY(tutti_dataset_view(all, first, n - first, test_out));
    return true;
}

static bool open_and_split(const char *dir, tutti_dataset **train_out, tutti_dataset **test_out)
{
    tutti_dataset *all = NULL;
    bool ok;

    TRY(tutti_dataset_open(dir, TUTTI_DATASET_TEST, &all));
    ok = split(all, train_out, test_out);
    tutti_dataset_free(all);
    return ok;
}

static bool fits(const char *dir, const char *what, const tutti_dataset *ds)
{
    const int64_t rows = tutti_dataset_rows(ds), cols = tutti_dataset_cols(ds);

    return (rows == NET_SIDE && cols == NET_SIDE) ||
           say("the %s pictures of '%s' have %" PRId64 " x %" PRId64
               " pixels, and the network takes %d x %d",
               what, dir, rows, cols, NET_SIDE, NET_SIDE);
}

static bool is_directory(const char *dir)
{
    struct stat st;

    if (stat(dir, &st) != 0)
        return errno == ENOENT ? say("the data directory '%s' does not exist", dir)
                               : say("cannot look into '%s': %s", dir, strerror(errno));
    return S_ISDIR(st.st_mode) || say("'%s' is no directory", dir);
}

bool sets_open(const char *dir, tutti_dataset **train_out, tutti_dataset **test_out)
{
    if (!is_directory(dir))
        return false;
    if (has_training_files(dir)) {
        TRY(tutti_dataset_open(dir, TUTTI_DATASET_TRAIN, train_out));
        TRY(tutti_dataset_open(dir, TUTTI_DATASET_TEST, test_out));
    } else if (!open_and_split(dir, train_out, test_out)) {
        return false;
    }
    return fits(dir, "training", *train_out) && fits(dir, "test", *test_out);
}
