/* SPDX-License-Identifier: BSD-3-Clause
 *
 * put_file.c - a file that appears under its name when it is whole and on the disk.
 *
 * How     Where the file system has files without a name (O_TMPFILE), everything is written into one: a writer that
 *         is killed leaves nothing. It is then given a name beside the target for a moment, because only rename
 *         replaces a file, and renamed. Elsewhere it has that name from the beginning.
 * True    The target is either the old file or the new one, also after a loss of power: the contents are on the disk
 *         before the rename, the folder after it. */
#include "state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tutti/private.h>
#include <unistd.h>

enum { MODE = 0666, NAMES_MAX = 100, WRITE_MAX = 1 << 30 };

/* The folder of path, opened. */
static int open_folder(const char *path, const char **base_out)
{
    const char *slash = strrchr(path, '/');
    char *folder;
    int fd;

    *base_out = slash != NULL ? slash + 1 : path;
    if (slash == NULL)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    folder = strndup(path, (size_t)(slash - path) + 1); /* with the slash: of "/x" it is "/" */
    if (folder == NULL)
        return -1;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    return fd;
}

/* A name beside the target for number k. */
static bool make_name(tti_put *put, int k)
{
    free(put->part);
    if (asprintf(&put->part, ".%.200s.%d.%llx.part", put->base, (int)getpid(),
                 (unsigned long long)tti_now_ns() + (unsigned long long)k) < 0)
        put->part = NULL;
    return put->part != NULL;
}

/* Open a file that did not exist, under a name beside the target. */
static int open_named(tti_put *put)
{
    int fd = -1;

    for (int k = 0; k < NAMES_MAX && fd < 0 && make_name(put, k); k++) {
        fd = openat(put->dir, put->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        free(put->part);
        put->part = NULL;
    }
    return fd;
}

tutti_status tti_put_begin(tti_put *put, const char *path)
{
    tutti_status st;

    *put = (tti_put){ .path = path, .dir = -1, .fd = -1 };
    errno = ENOMEM; /* what open_folder fails with where it does not come to open() */
    put->dir = open_folder(path, &put->base);
    if (put->dir < 0)
        return tti_fail_errno(errno, "cannot open the folder of '%s'", path);
    if (put->base[0] != '\0') {
        put->fd = openat(put->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, MODE);
        if (put->fd < 0)
            put->fd = open_named(put);
    } else {
        errno = EISDIR;
    }
    if (put->fd >= 0)
        return TUTTI_OK;
    st = tti_fail_errno(errno, "cannot make '%s'", path);
    close(put->dir);
    return st;
}

tutti_status tti_put_write(tti_put *put, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        const ssize_t n = write(put->fd, at, bytes < WRITE_MAX ? bytes : WRITE_MAX);

        if (n < 0 && errno != EINTR)
            return tti_fail_errno(errno, "cannot write to '%s'", put->path);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        }
    }
    return TUTTI_OK;
}

/* Give a file without a name one beside the target. */
static tutti_status give_name(tti_put *put)
{
    char self[40];

    snprintf(self, sizeof self, "/proc/self/fd/%d", put->fd);
    for (int k = 0; k < NAMES_MAX && make_name(put, k); k++) {
        if (linkat(AT_FDCWD, self, put->dir, put->part, AT_SYMLINK_FOLLOW) == 0)
            return TUTTI_OK;
        if (errno != EEXIST)
            break;
    }
    free(put->part);
    put->part = NULL;
    return tti_fail_errno(errno, "cannot give '%s' a name", put->path);
}

static tutti_status publish(tti_put *put)
{
    tutti_status st = TUTTI_OK;

    if (fsync(put->fd) != 0)
        return tti_fail_errno(errno, "cannot bring '%s' to the disk", put->path);
    if (put->part == NULL)
        st = give_name(put);
    if (st == TUTTI_OK && renameat(put->dir, put->part, put->dir, put->base) != 0)
        return tti_fail_errno(errno, "cannot put '%s' in place", put->path);
    if (st == TUTTI_OK) {
        free(put->part);
        put->part = NULL;
    }
    if (st == TUTTI_OK && fsync(put->dir) != 0 && errno != EINVAL)
        st = tti_fail_errno(errno, "cannot bring the folder of '%s' to the disk", put->path);
    return st;
}

tutti_status tti_put_end(tti_put *put, tutti_status st)
{
    if (st == TUTTI_OK)
        st = publish(put);
    if (put->part != NULL)
        (void)unlinkat(put->dir, put->part, 0);
    free(put->part);
    close(put->fd);
    close(put->dir);
    return st;
}
