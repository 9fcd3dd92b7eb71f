/* SPDX-License-Identifier: BSD-3-Clause
 *
 * whole.c - whether all of a plug-in's file is there.
 *
 * Why     dlopen() maps what the file's program headers tell, and does not compare it with the file's size. Of a file that was cut
 *         off, by a full disk or a copy that was ended, it maps pages that have nothing behind them, and the first look at one
 *         ends the process by SIGBUS.
 * How     The headers are read, and the end of the furthest segment is compared with the size. Whatever else is wrong with the
 *         file, as that it is no ELF, or of another machine, dlopen() finds and words itself.
 * True    A file that somebody cuts off after the look is not caught: only root and this user could (trust.c). */
#include "backend/plugin/search.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>

static bool read_at(int fd, uint64_t offset, void *out, size_t bytes)
{
    return offset <= INT64_MAX && pread(fd, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Whether these headers are of the kind that this process maps; another kind dlopen() refuses. */
static bool is_ours(const ElfW(Ehdr) * head)
{
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) && head->e_phentsize == sizeof(ElfW(Phdr));
}

/* How many bytes a file of `size` has to have for its headers and segments; size where they do not tell more. */
static uint64_t bytes_needed(int fd, uint64_t size)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    uint64_t   needed = size, end;
    unsigned   i;

    if (!read_at(fd, 0, &head, sizeof head) || !is_ours(&head))
        return size;
    for (i = 0; i < head.e_phnum; i++) {
        if (!read_at(fd, head.e_phoff + (uint64_t)i * sizeof part, &part, sizeof part))
            return size; /* dlopen() reads them, too, and says so */
        if (part.p_type == PT_LOAD && !__builtin_add_overflow(part.p_offset, part.p_filesz, &end) && end > needed)
            needed = end;
    }
    return needed;
}

tutti_status tti_plugin_whole(const char *path)
{
    const int   fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    uint64_t    size, needed;

    if (fd < 0)
        return tti_fail_errno_as(TUTTI_E_BACKEND, errno, "cannot read the plug-in '%s'", path);
    size = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX; /* not told: nothing is missed */
    needed = bytes_needed(fd, size);
    close(fd);
    if (needed == size)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_BACKEND,
                    "the plug-in '%s' is cut off: %llu bytes of at least %llu are there\n  next: install or copy it again", path,
                    (unsigned long long)size, (unsigned long long)needed);
}
