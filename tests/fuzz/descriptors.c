/* SPDX-License-Identifier: BSD-3-Clause
 *
 * descriptors.c - descriptors.h: a table of descriptors, and what each is open on.
 *
 * Memory  A file's bytes are an allocation of just their size, and a mapping of it is that allocation, so that a sanitizer sees a byte
 *         too far, where the kernel's pages would have shown zeros. They are there until nothing is open on them. */
#include "fuzz/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "fuzz/fuzz.h"

enum { REALS = 1024 };

/* What descriptors are open on. */
typedef struct thing {
    int           refs;
    int           real; /* the kernel's descriptor of it; -1: it is memory */
    int           seals; /* -1: it cannot have any */
    struct stat   about;
    struct statfs fs;
    uint8_t      *data;
} thing;

static thing *open_on[TT_FDS_MAX]; /* NULL: not open */
static int    first_free;          /* there is none below */
static int    n_open;

int            __real_open(const char *path, int flags, ...);
int            __wrap_open(const char *path, int flags, ...);
int            __real_close(int fd);
int            __wrap_close(int fd);
int            __real_fcntl(int fd, int what, ...);
int            __wrap_fcntl(int fd, int what, ...);
int            __real_fstat(int fd, struct stat *out);
int            __wrap_fstat(int fd, struct stat *out);
int            __real_fstatfs(int fd, struct statfs *out);
int            __wrap_fstatfs(int fd, struct statfs *out);
ssize_t        __real_pread(int fd, void *out, size_t bytes, off_t at);
ssize_t        __wrap_pread(int fd, void *out, size_t bytes, off_t at);
ssize_t        __wrap___pread_chk(int fd, void *out, size_t bytes, off_t at, size_t room);
void          *__real_mmap(void *at, size_t bytes, int may, int flags, int fd, off_t from);
void          *__wrap_mmap(void *at, size_t bytes, int may, int flags, int fd, off_t from);
int            __real_munmap(void *at, size_t bytes);
int            __wrap_munmap(void *at, size_t bytes);
FILE          *__real_fopen(const char *path, const char *how);
FILE          *__wrap_fopen(const char *path, const char *how);

/* ---- the table ---- */

static bool is_ours(int fd)
{
    return fd >= TT_FD_FIRST;
}

/* NULL, and errno: it is not open. */
TT_UNTRACED static thing *thing_of(int fd)
{
    thing *t = fd - TT_FD_FIRST < TT_FDS_MAX ? open_on[fd - TT_FD_FIRST] : NULL;

    if (t == NULL)
        errno = EBADF;
    return t;
}

TT_UNTRACED static int open_another(thing *t)
{
    while (first_free < TT_FDS_MAX && open_on[first_free] != NULL)
        first_free++;
    TT_MUST(first_free < TT_FDS_MAX);
    open_on[first_free] = t;
    t->refs++;
    n_open++;
    return TT_FD_FIRST + first_free;
}

TT_UNTRACED static void close_one(int fd)
{
    thing *t = thing_of(fd);

    TT_MUST(t != NULL);
    open_on[fd - TT_FD_FIRST] = NULL;
    n_open--;
    if (fd - TT_FD_FIRST < first_free)
        first_free = fd - TT_FD_FIRST;
    if (--t->refs > 0 || t->real >= 0)
        return;
    free(t->data);
    free(t);
}

int tt_fd_memory(const void *data, size_t bytes, int seals)
{
    static ino_t last;
    thing       *t = calloc(1, sizeof *t);

    TT_MUST(t != NULL);
    *t = (thing){ .real = -1, .seals = seals, .fs.f_type = TMPFS_MAGIC, .data = tt_copy(data, bytes),
                  .about = { .st_ino = ++last, .st_mode = S_IFREG | 0600, .st_uid = geteuid(), .st_size = (off_t)bytes } };
    return open_another(t);
}

int tt_fd_like(int real)
{
    static thing known[REALS];
    thing       *t = &known[real];

    TT_MUST(real >= 0 && real < REALS);
    if (t->about.st_mode == 0) {
        t->real = real;
        TT_MUST(__real_fstat(real, &t->about) == 0 && __real_fstatfs(real, &t->fs) == 0);
        t->seals = __real_fcntl(real, F_GET_SEALS);
    }
    return open_another(t);
}

void tt_fd_path(int fd, char path_out[TT_FD_PATH_BYTES])
{
    snprintf(path_out, TT_FD_PATH_BYTES, "/proc/self/fd/%d", fd);
}

int tt_fds_open(void)
{
    return n_open;
}

/* What a path of tt_fd_path() is of; NULL: it is none. */
TT_UNTRACED static thing *thing_at(const char *path)
{
    static const char folder[] = "/proc/self/fd/";
    char             *end;
    long              fd;

    if (strncmp(path, folder, sizeof folder - 1) != 0)
        return NULL;
    fd = strtol(path + sizeof folder - 1, &end, 10);
    return *end == '\0' && fd >= TT_FD_FIRST && fd < TT_FD_FIRST + TT_FDS_MAX ? open_on[fd - TT_FD_FIRST] : NULL;
}

/* ---- calls ---- */

int __wrap_open(const char *path, int flags, ...)
{
    thing  *t = thing_at(path);
    va_list more;
    mode_t  mode;

    if (t != NULL && (flags & O_ACCMODE) == O_RDONLY)
        return open_another(t);
    va_start(more, flags);
    mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *how)
{
    thing *t = thing_at(path);

    if (t == NULL || t->data == NULL || how[0] != 'r')
        return __real_fopen(path, how);
    return fmemopen(t->data, (size_t)t->about.st_size, "r");
}

int __wrap_close(int fd)
{
    if (!is_ours(fd))
        return __real_close(fd);
    close_one(fd);
    return 0;
}

int __wrap_fcntl(int fd, int what, ...)
{
    va_list more;
    long    number;
    thing  *t;

    va_start(more, what);
    number = what == F_GETFD || what == F_GETFL || what == F_GET_SEALS ? 0 : va_arg(more, long);
    va_end(more);
    if (!is_ours(fd))
        return __real_fcntl(fd, what, number);
    t = thing_of(fd);
    if (t == NULL)
        return -1;
    switch (what) {
    case F_GETFD: return FD_CLOEXEC;
    case F_DUPFD_CLOEXEC: return open_another(t);
    case F_GET_SEALS:
        if (t->seals >= 0)
            return t->seals;
    }
    errno = EINVAL;
    return -1;
}

int __wrap_fstat(int fd, struct stat *out)
{
    const thing *t;

    if (!is_ours(fd))
        return __real_fstat(fd, out);
    t = thing_of(fd);
    if (t != NULL)
        *out = t->about;
    return t != NULL ? 0 : -1;
}

int __wrap_fstatfs(int fd, struct statfs *out)
{
    const thing *t;

    if (!is_ours(fd))
        return __real_fstatfs(fd, out);
    t = thing_of(fd);
    if (t != NULL)
        *out = t->fs;
    return t != NULL ? 0 : -1;
}

ssize_t __wrap_pread(int fd, void *out, size_t bytes, off_t at)
{
    const thing *t;

    if (!is_ours(fd))
        return __real_pread(fd, out, bytes, at);
    t = thing_of(fd);
    if (t == NULL)
        return -1;
    if (t->real >= 0)
        return __real_pread(t->real, out, bytes, at);
    if (at >= t->about.st_size)
        return 0;
    if (bytes > (size_t)(t->about.st_size - at))
        bytes = (size_t)(t->about.st_size - at);
    memcpy(out, t->data + at, bytes);
    return (ssize_t)bytes;
}

/* What a fortified build makes of it. */
ssize_t __wrap___pread_chk(int fd, void *out, size_t bytes, off_t at, size_t room)
{
    TT_MUST(bytes <= room);
    return __wrap_pread(fd, out, bytes, at);
}

/* Of memory: all of it, to read. */
void *__wrap_mmap(void *at, size_t bytes, int may, int flags, int fd, off_t from)
{
    const thing *t;

    if (!is_ours(fd))
        return __real_mmap(at, bytes, may, flags, fd, from);
    t = thing_of(fd);
    if (t == NULL)
        return MAP_FAILED;
    if (t->real >= 0)
        return __real_mmap(at, bytes, may, flags, t->real, from);
    TT_MUST(from == 0 && may == PROT_READ && bytes <= (size_t)t->about.st_size);
    return t->data;
}

int __wrap_munmap(void *at, size_t bytes)
{
    int i, seen = 0;

    for (i = 0; seen < n_open; i++) {
        seen += open_on[i] != NULL;
        if (open_on[i] != NULL && open_on[i]->data == at && at != NULL)
            return 0;
    }
    return __real_munmap(at, bytes);
}
