/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/idx_source.c - the bytes of a file, inflated where it is gzip.
 *
 * Why     MNIST is handed around as gzip. zlib's own file functions accept garbage behind the end
 *         and do not bound what comes out; a hostile file needs both.
 * How     The file is read in blocks of IN_BYTES; with the two magic bytes of gzip in front they
 *         go through inflate(), which checks length and CRC at the end.
 * True    One gzip member, nothing behind it. Memory is constant, whatever the file says.
 * Bound   Deflate makes at most 1032 bytes of one (a 258-byte copy in 2 bits), so the size of the
 *         file bounds what can come out of it before anything is inflated.
 * Fails   Everything is TUTTI_E_IO with the file's name, memory apart. */
#include "data/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tutti/private.h>
#include <unistd.h>
#include <zlib.h>

enum { IN_BYTES = 64 * 1024, INFLATE_RATIO_MAX = 1032, GZIP_WINDOW = 16 + MAX_WBITS };

struct tti_idx_source {
    int fd;
    char *name;
    uint64_t file_bytes;
    bool gzip;
    bool inflating; /* zs is live */
    bool ended;     /* the gzip member is complete */
    z_stream zs;    /* next_in and avail_in: the unread part of in, for plain files too */
    uint8_t in[IN_BYTES];
};

/* An existing path, else path.gz; the descriptor goes to *fd_out, the name (to be freed) to
 * *name_out. O_NONBLOCK: a pipe of that name must be refused, not waited for. */
static tutti_status open_either(const char *path, int *fd_out, char **name_out)
{
    static const char *const suffix[] = { "", ".gz" };

    for (int i = 0; i < 2; i++) {
        char *name = NULL;
        int fd, err;

        if (asprintf(&name, "%s%s", path, suffix[i]) < 0)
            return tti_fail(TUTTI_E_NOMEM, "no memory for the name of '%s'", path);
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0) {
            *fd_out = fd;
            *name_out = name;
            return TUTTI_OK;
        }
        err = errno;
        free(name);
        if (err != ENOENT)
            return tti_fail_errno(err, "cannot open '%s%s'", path, suffix[i]);
    }
    return tti_fail(TUTTI_E_IO, "there is neither '%s' nor '%s.gz'", path, path);
}

/* Read the next block; at the end of the file nothing is left in zs. */
static tutti_status fill(tti_idx_source *source)
{
    ssize_t got;

    do
        got = read(source->fd, source->in, sizeof source->in);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return tti_fail_errno(errno, "cannot read '%s'", source->name);
    source->zs.next_in = source->in;
    source->zs.avail_in = (uInt)got;
    return TUTTI_OK;
}

static tutti_status begin(tti_idx_source *source)
{
    struct stat info;
    tutti_status st;

    if (fstat(source->fd, &info) != 0)
        return tti_fail_errno(errno, "cannot look at '%s'", source->name);
    if (!S_ISREG(info.st_mode))
        return tti_fail(TUTTI_E_IO, "'%s' is not a regular file", source->name);
    source->file_bytes = (uint64_t)info.st_size;
    st = fill(source);
    if (st != TUTTI_OK)
        return st;
    source->gzip = source->zs.avail_in >= 2 && source->in[0] == 0x1f && source->in[1] == 0x8b;
    if (source->gzip && source->zs.avail_in >= 3 && source->in[2] != Z_DEFLATED)
        return tti_fail(TUTTI_E_IO,
                        "'%s' is no gzip file: method %d behind its first bytes, not %d",
                        source->name, source->in[2], Z_DEFLATED);
    if (source->gzip) {
        if (inflateInit2(&source->zs, GZIP_WINDOW) != Z_OK)
            return tti_fail(TUTTI_E_NOMEM, "no memory to inflate '%s'", source->name);
        source->inflating = true;
    }
    return TUTTI_OK;
}

tutti_status tti_idx_source_open(const char *path, tti_idx_source **source_out)
{
    tutti_status st;
    tti_idx_source *source = malloc(sizeof *source);

    if (source == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to open '%s'", path);
    memset(source, 0, offsetof(tti_idx_source, in)); /* what is in in, zs says */
    source->fd = -1;
    st = open_either(path, &source->fd, &source->name);
    if (st == TUTTI_OK)
        st = begin(source);
    if (st != TUTTI_OK) {
        tti_idx_source_close(source);
        return st;
    }
    *source_out = source;
    return TUTTI_OK;
}

void tti_idx_source_close(tti_idx_source *source)
{
    if (source == NULL)
        return;
    if (source->inflating)
        inflateEnd(&source->zs);
    if (source->fd >= 0)
        close(source->fd);
    free(source->name);
    free(source);
}

const char *tti_idx_source_name(const tti_idx_source *source)
{
    return source->name;
}

uint64_t tti_idx_source_bytes_max(const tti_idx_source *source)
{
    return source->gzip ? source->file_bytes * INFLATE_RATIO_MAX : source->file_bytes;
}

bool tti_idx_source_is_gzip(const tti_idx_source *source)
{
    return source->gzip;
}

static void copy_some(tti_idx_source *source, uint8_t *out, size_t n, size_t *got)
{
    const size_t have = source->zs.avail_in < n - *got ? source->zs.avail_in : n - *got;

    memcpy(out + *got, source->zs.next_in, have);
    source->zs.next_in += have;
    source->zs.avail_in -= (uInt)have;
    *got += have;
}

/* Inflate what there is of input into what there is of room. */
static tutti_status inflate_some(tti_idx_source *source, uint8_t *out, size_t n, size_t *got)
{
    const size_t room = n - *got < IN_BYTES ? n - *got : IN_BYTES;
    int code;

    source->zs.next_out = out + *got;
    source->zs.avail_out = (uInt)room;
    code = inflate(&source->zs, Z_NO_FLUSH);
    *got += room - source->zs.avail_out;
    if (code == Z_STREAM_END) {
        source->ended = true;
        if (source->zs.avail_in > 0 || lseek(source->fd, 0, SEEK_CUR) < (off_t)source->file_bytes)
            return tti_fail(TUTTI_E_IO, "'%s' has bytes behind the end of its gzip data",
                            source->name);
        return TUTTI_OK;
    }
    if (code == Z_MEM_ERROR)
        return tti_fail(TUTTI_E_NOMEM, "no memory to inflate '%s'", source->name);
    if (code != Z_OK && code != Z_BUF_ERROR)
        return tti_fail(TUTTI_E_IO, "'%s' is damaged: gzip says \"%s\"", source->name,
                        source->zs.msg != NULL ? source->zs.msg : "unexpected data");
    return TUTTI_OK;
}

tutti_status tti_idx_source_read(tti_idx_source *source, void *buf, size_t n, size_t *got_out)
{
    tutti_status st = TUTTI_OK;
    size_t got = 0;

    while (got < n && !source->ended && st == TUTTI_OK) {
        if (source->zs.avail_in == 0) {
            st = fill(source);
            if (st == TUTTI_OK && source->zs.avail_in == 0) {
                if (source->gzip)
                    return tti_fail(TUTTI_E_IO,
                                    "'%s' is truncated: its gzip data ends after %llu bytes",
                                    source->name, (unsigned long long)source->file_bytes);
                break;
            }
        }
        if (st == TUTTI_OK && source->gzip)
            st = inflate_some(source, buf, n, &got);
        else if (st == TUTTI_OK)
            copy_some(source, buf, n, &got);
    }
    if (st == TUTTI_OK)
        *got_out = got;
    return st;
}
