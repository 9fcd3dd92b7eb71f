/* SPDX-License-Identifier: BSD-3-Clause
 *
 * support.c - what the targets share.
 *
 * Kernel  The boot id and the namespaces of a process stay what they are while it lives, and asking for them took most of the time of
 *         some targets. Here they are asked for once: the linker puts __wrap_NAME in the place of NAME (CMakeLists.txt).
 * Memory  What an input gives back the next one takes: nothing of it goes to the kernel between them. Nor do pages of heaps: what is
 *         punched out of one is filled with zeros, as which it would be read. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/machine.h"

enum { SPACES = 2, KEPT_BYTES = 64 << 20, LARGE_BYTES = 16 << 20 };

bool __real_tti_boot_id(char out[TTI_BOOT_ID_BYTES]);
bool __wrap_tti_boot_id(char out[TTI_BOOT_ID_BYTES]);
int  __real_stat(const char *path, struct stat *out);
int  __wrap_stat(const char *path, struct stat *out);
int  __real_fallocate(int fd, int mode, off_t at, off_t bytes);
int  __wrap_fallocate(int fd, int mode, off_t at, off_t bytes);
int  __real_posix_fallocate(int fd, off_t at, off_t bytes);
int  __wrap_posix_fallocate(int fd, off_t at, off_t bytes);

/* Before main(). A sanitizer's allocator does not heed it. */
__attribute__((constructor)) static void keep_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

bool __wrap_tti_boot_id(char out[TTI_BOOT_ID_BYTES])
{
    static char known[TTI_BOOT_ID_BYTES];

    if (known[0] == '\0' && !__real_tti_boot_id(known))
        return __real_tti_boot_id(out);
    memcpy(out, known, sizeof known);
    return true;
}

/* Of the namespaces of this process; any other path is looked up. */
int __wrap_stat(const char *path, struct stat *out)
{
    static const char *const names[SPACES] = { "/proc/self/ns/net", "/proc/self/ns/pid" };
    static struct stat       known[SPACES];
    int                      i = 0;

    while (i < SPACES && strcmp(path, names[i]) != 0)
        i++;
    if (i == SPACES || (known[i].st_ino == 0 && __real_stat(path, &known[i]) != 0))
        return __real_stat(path, out);
    *out = known[i];
    return 0;
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t bytes)
{
    static const uint8_t zeros[1 << 16];
    size_t               n;

    if (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
        return __real_fallocate(fd, mode, at, bytes);
    for (; bytes > 0; at += (off_t)n, bytes -= (off_t)n) {
        n = bytes < (off_t)sizeof zeros ? (size_t)bytes : sizeof zeros;
        TT_MUST(pwrite(fd, zeros, n, at) == (ssize_t)n);
    }
    return 0;
}

/* Within a file pages come when they are touched; behind its end this is how it grows. */
int __wrap_posix_fallocate(int fd, off_t at, off_t bytes)
{
    struct stat about;

    return fstat(fd, &about) == 0 && at + bytes <= about.st_size ? 0 : __real_posix_fallocate(fd, at, bytes);
}

uint64_t tt_take(tt_input *in, size_t bytes)
{
    uint64_t number = 0;
    size_t   i;

    for (i = 0; i < bytes && in->left > 0; i++, in->at++, in->left--)
        number |= (uint64_t)*in->at << (8 * i);
    return number;
}

tt_input tt_take_part(tt_input *in, size_t most)
{
    const tt_input part = { .at = in->at, .left = most < in->left ? most : in->left };

    in->at += part.left;
    in->left -= part.left;
    return part;
}

tt_input tt_take_sized(tt_input *in)
{
    return tt_take_part(in, (size_t)tt_take(in, 2));
}

uint8_t *tt_copy(const void *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    TT_MUST(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *tt_text(const void *data, size_t size)
{
    char *text = malloc(size + 1);

    TT_MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

const char *tt_file(const void *data, size_t size)
{
    static char path[64];
    static int  fd = -1;
    struct stat about;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        TT_MUST(fd >= 0 && fchmod(fd, 0600) == 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    /* What is there is asked for: whoever had the path may have written more. To cut it each time would take longer. */
    TT_MUST(pwrite(fd, data, size, 0) == (ssize_t)size && fstat(fd, &about) == 0);
    TT_MUST(about.st_size <= (off_t)size || ftruncate(fd, (off_t)size) == 0);
    return path;
}

void tt_set_env(const char *name, const char *value)
{
    TT_MUST((value != NULL ? setenv(name, value, 1) : unsetenv(name)) == 0);
}

static int64_t still_now(tti_port *port)
{
    (void)port;
    return TTI_SECOND;
}

static void still_random(tti_port *port, void *out, size_t bytes)
{
    (void)port;
    memset(out, 0, bytes);
}

tti_port *tt_still_port(void)
{
    static const tti_port_ops ops = { .name = "still", .now_ns = still_now, .random = still_random };
    static tti_port           port = { &ops };

    return &port;
}
