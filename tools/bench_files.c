/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_files.c - places to write to. */
#include "bench_files.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int bench_scratch(char path[BENCH_SCRATCH_MAX])
{
    const int fd = memfd_create("tutti-bench", MFD_CLOEXEC);

    if (fd < 0)
        fprintf(stderr, "tutti: cannot make a file in memory: %s\n", strerror(errno));
    else
        snprintf(path, BENCH_SCRATCH_MAX, "/proc/%ld/fd/%d", (long)getpid(), fd);
    return fd;
}

int bench_cannot_write(const char *file)
{
    fprintf(stderr, "tutti: cannot write '%s': %s\n", file, strerror(errno));
    return EXIT_FAILURE;
}

bool bench_can_write(const char *file)
{
    struct stat info;
    char        copy[PATH_MAX];
    int         err = 0;

    if (stat(file, &info) == 0)
        err = S_ISDIR(info.st_mode) ? EISDIR : access(file, W_OK) != 0 ? errno : 0;
    else if (snprintf(copy, sizeof copy, "%s", file) >= (int)sizeof copy)
        err = ENAMETOOLONG;
    else if (access(dirname(copy), W_OK | X_OK) != 0)
        err = errno;
    errno = err;
    if (err != 0)
        (void)bench_cannot_write(file);
    return err == 0;
}
