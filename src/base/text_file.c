/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text_file.c - reading a file that somebody names. */
#include "base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>

static tutti_status cannot_open(int err, const char *what, const char *path)
{
    char reason[64];

    if (err != ENOENT && err != EACCES && err != ENOTDIR)
        return tti_fail_errno(err, "cannot open the %s '%s'", what, path);
    return tti_fail(TUTTI_E_IO,
                    "cannot open the %s '%s': %s\n"
                    "  next: name a file that is on this host, and that this user may read",
                    what, path, strerror_r(err, reason, sizeof reason));
}

/* A pipe or a device would be waited for, or have no end. */
static tutti_status open_file(const char *what, const char *path, size_t most, int *fd_out)
{
    const int   fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;

    if (fd < 0 || fstat(fd, &about) != 0) {
        const int err = errno;

        if (fd >= 0)
            close(fd);
        return cannot_open(err, what, path);
    }
    if (S_ISREG(about.st_mode) && about.st_size <= (off_t)most) {
        *fd_out = fd;
        return TUTTI_OK;
    }
    close(fd);
    return tti_fail(TUTTI_E_ARG, "'%s' is no file of at most %zu bytes, as a %s is", path, most, what);
}

tutti_status tti_text_file_read(const char *what, const char *path, size_t most, char **text_out, size_t *bytes_out)
{
    char        *text = NULL;
    size_t       bytes = 0;
    ssize_t      got = 1;
    int          fd = -1;
    tutti_status st = open_file(what, path, most, &fd);

    if (st != TUTTI_OK)
        return st;
    text = malloc(most);
    while (text != NULL && bytes < most && got > 0) {
        got = read(fd, text + bytes, most - bytes);
        bytes += got > 0 ? (size_t)got : 0;
    }
    if (text == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory to read the %s '%s'", what, path);
    else if (got < 0)
        st = tti_fail_errno(errno, "cannot read the %s '%s'", what, path);
    close(fd);
    if (st != TUTTI_OK) {
        free(text);
        return st;
    }
    *text_out = text;
    *bytes_out = bytes;
    return TUTTI_OK;
}
