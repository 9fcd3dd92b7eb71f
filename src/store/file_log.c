/* SPDX-License-Identifier: BSD-3-Clause
 *
 * file_log.c - reading, locking and appending; the design stands in file_log.h. */
#include "store/file_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/fork.h"
#include <tutti/store.h>
#include "wire/own_file.h"
#include "wire/secret.h"

enum {
    CHUNK_BYTES = 64 * 1024,
    FILE_KEY_MAX = TUTTI_STORE_KEY_MAX + 2, /* "-/" and the user's key */
};

/* The lock of all records is on what lies before this byte; the byte itself is locked, shared, by
 * everybody who has the file open. */
#define ALIVE_AT ((off_t)1 << 62)

static tutti_status io_failed(const tti_file_log *log, int err, const char *what)
{
    return tti_fail_errno_as(TUTTI_E_IO, err, "cannot %s store file '%s'", what, log->path);
}

/* What a record does to the copy. */
static tutti_status apply(tti_file_log *log, const char *key, size_t key_size, const void *val,
                          size_t val_size)
{
    if (key[0] == '-') {
        tti_map_delete(&log->map, key + 1, key_size - 1);
        return TUTTI_OK;
    }
    return tti_map_put(&log->map, key, key_size, val, val_size);
}

static uint32_t size_at(const uint8_t *at)
{
    uint32_t size;

    memcpy(&size, at, sizeof size);
    return size;
}

/* Apply the record at the front of pending; *taken false: it is not whole. */
static tutti_status take_record(tti_file_log *log, bool *taken)
{
    const uint8_t *at = tti_buffer_data(&log->pending);
    const size_t   have = log->pending.size;
    size_t         key_size, val_size = 0, bytes;
    tutti_status   st;

    *taken = false;
    if (have < 4)
        return TUTTI_OK;
    key_size = size_at(at);
    if (key_size <= FILE_KEY_MAX && have >= 4 + key_size + 4)
        val_size = size_at(at + 4 + key_size);
    if (key_size == 0 || key_size > FILE_KEY_MAX || val_size > TUTTI_STORE_VALUE_MAX)
        return tti_fail(TUTTI_E_IO,
                        "'%s' is no store file: a record at byte %lld has sizes %zu and %zu",
                        log->path, (long long)log->offset, key_size, val_size);
    bytes = 4 + key_size + 4 + val_size;
    if (have < bytes)
        return TUTTI_OK;
    st = apply(log, (const char *)at + 4, key_size, at + 8 + key_size, val_size);
    if (st != TUTTI_OK)
        return st;
    tti_buffer_consume(&log->pending, bytes);
    log->offset += (int64_t)bytes;
    *taken = true;
    return TUTTI_OK;
}

static tutti_status take_records(tti_file_log *log)
{
    bool         taken = true;
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && taken)
        st = take_record(log, &taken);
    return st;
}

/* Read everything from offset to the end; pending ends up with a torn record, or empty. */
static tutti_status replay(tti_file_log *log)
{
    tutti_status st = TUTTI_OK;

    tti_buffer_consume(&log->pending, log->pending.size);
    while (st == TUTTI_OK) {
        const off_t from = (off_t)log->offset + (off_t)log->pending.size;
        uint8_t    *room = tti_buffer_reserve(&log->pending, CHUNK_BYTES);
        ssize_t     got;

        if (room == NULL)
            return TUTTI_E_NOMEM;
        got = pread(log->fd, room, CHUNK_BYTES, from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return io_failed(log, errno, "read");
        if (got == 0)
            break;
        tti_buffer_commit(&log->pending, (size_t)got);
        st = take_records(log);
    }
    return st;
}

/* Under the lock: nobody may have shortened what we have read. */
static tutti_status check_length(const tti_file_log *log)
{
    struct stat st;

    if (fstat(log->fd, &st) != 0)
        return io_failed(log, errno, "look at");
    if (st.st_size < log->offset)
        return tti_fail(TUTTI_E_IO, "store file '%s' was cut to %lld bytes, %lld had been read",
                        log->path, (long long)st.st_size, (long long)log->offset);
    return TUTTI_OK;
}

/* Cut off what a dead writer left behind the last whole record. */
static tutti_status cut_torn(tti_file_log *log)
{
    if (log->pending.size == 0)
        return TUTTI_OK;
    tti_log(TTI_LOG_WARN, "store file '%s': dropping %zu bytes of a record that was torn",
            log->path, log->pending.size);
    tti_buffer_consume(&log->pending, log->pending.size);
    return ftruncate(log->fd, (off_t)log->offset) == 0 ? TUTTI_OK : io_failed(log, errno, "cut");
}

static int set_lock(const tti_file_log *log, short type)
{
    struct flock whole = { .l_type = type, .l_whence = SEEK_SET, .l_len = ALIVE_AT };

    return fcntl(log->fd, F_OFD_SETLK, &whole) == 0 ? 0 : errno;
}

tutti_status tti_file_log_try_lock(tti_file_log *log, bool exclusive, bool *locked_out)
{
    const int    err = set_lock(log, exclusive ? F_WRLCK : F_RDLCK);
    tutti_status st;

    *locked_out = false;
    if (err == EAGAIN || err == EACCES || err == EINTR)
        return TUTTI_OK;
    if (err != 0)
        return io_failed(log, err, "lock");
    st = check_length(log);
    if (st == TUTTI_OK)
        st = replay(log);
    if (st == TUTTI_OK && exclusive)
        st = cut_torn(log);
    if (st != TUTTI_OK) {
        tti_file_log_unlock(log);
        return st;
    }
    *locked_out = true;
    return TUTTI_OK;
}

void tti_file_log_unlock(tti_file_log *log)
{
    set_lock(log, F_UNLCK);
}

bool tti_file_log_grew(const tti_file_log *log)
{
    struct stat st;

    return fstat(log->fd, &st) != 0 || st.st_size != log->offset || st.st_nlink == 0;
}

bool tti_file_log_removed(const tti_file_log *log)
{
    struct stat st;

    return fstat(log->fd, &st) == 0 && st.st_nlink == 0;
}

void tti_file_log_unlink(const tti_file_log *log)
{
    struct stat named, ours;

    if (stat(log->path, &named) == 0 && fstat(log->fd, &ours) == 0 &&
        named.st_dev == ours.st_dev && named.st_ino == ours.st_ino)
        unlink(log->path);
}

/* All of data at the end; a part that was written before a failure is cut off again. */
static tutti_status append(tti_file_log *log, const uint8_t *data, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t n = pwrite(log->fd, data + done, bytes - done, (off_t)log->offset + (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            const int err = errno;

            if (ftruncate(log->fd, (off_t)log->offset) != 0)
                tti_log(TTI_LOG_WARN, "store file '%s' keeps part of a record", log->path);
            return io_failed(log, err, "write to");
        }
        done += (size_t)n;
    }
    log->offset += (int64_t)bytes;
    return TUTTI_OK;
}

static tutti_status put_string(tti_buffer *record, const void *data, size_t size)
{
    const uint32_t head = (uint32_t)size;
    tutti_status   st = tti_buffer_append(record, &head, sizeof head);

    return st == TUTTI_OK ? tti_buffer_append(record, data, size) : st;
}

static tutti_status write_record(tti_file_log *log, const char *key, size_t key_size,
                                 const void *val, size_t size)
{
    tti_buffer   record = { .memory = NULL };
    tutti_status st = put_string(&record, key, key_size);

    if (st == TUTTI_OK)
        st = put_string(&record, val, size);
    if (st == TUTTI_OK)
        st = append(log, tti_buffer_data(&record), record.size);
    tti_buffer_release(&record);
    return st == TUTTI_OK ? apply(log, key, key_size, val, size) : st;
}

tutti_status tti_file_log_put(tti_file_log *log, const char *key, const void *val, size_t size)
{
    return write_record(log, key, strlen(key), val, size);
}

tutti_status tti_file_log_delete(tti_file_log *log, const char *key)
{
    char         deletion[FILE_KEY_MAX];
    const size_t size = strlen(key);

    deletion[0] = '-';
    memcpy(deletion + 1, key, size);
    return write_record(log, deletion, size + 1, NULL, 0);
}

static tutti_status open_file(tti_file_log *log, const char *path)
{
    bool         wanted = true;
    tutti_status st = tti_auth_wanted(&wanted);

    if (st != TUTTI_OK)
        return st;
    log->path = strdup(path);
    if (log->path == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a file name");
    st = tti_own_file_open(path, O_RDWR | O_CREAT, 0600, wanted ? TTI_OWN_WRITTEN : TTI_OWN_ANYBODY, "store file", &log->fd);
    if (st != TUTTI_OK)
        return st;
    tti_fork_own(log->fd); /* locks last as long as any process has it open */
    free(log->path); /* absolute from here on: the program may change its directory */
    log->path = realpath(path, NULL);
    if (log->path == NULL) {
        log->path = strdup(path);
        if (log->path == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for a file name");
    }
    return TUTTI_OK;
}

/* Look who else is alive, and be counted among them. Under the exclusive lock. */
static tutti_status come_alive(tti_file_log *log)
{
    struct flock others = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = ALIVE_AT, .l_len = 1
    };
    struct flock mine = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = ALIVE_AT, .l_len = 1
    };

    if (fcntl(log->fd, F_OFD_GETLK, &others) != 0 || fcntl(log->fd, F_OFD_SETLK, &mine) != 0)
        return io_failed(log, errno, "lock");
    log->alone = others.l_type == F_UNLCK;
    return TUTTI_OK;
}

static tutti_status lock_by(tti_file_log *log, int64_t deadline_ns)
{
    bool         locked = false;
    tutti_status st;

    for (;;) {
        st = tti_file_log_try_lock(log, true, &locked);
        if (st != TUTTI_OK || locked)
            return st;
        if (tti_port_now(log->port) >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT, "store file '%s' stayed locked by others", log->path);
        log->port->ops->sleep_until(log->port, tti_port_now(log->port) + TTI_MS);
    }
}

tutti_status tti_file_log_open(tti_file_log *log, tti_port *port, const char *path,
                               int64_t deadline_ns)
{
    tutti_status st;

    for (;;) {
        *log = (tti_file_log){ .port = port, .fd = -1 };
        tti_map_init(&log->map, port);
        st = open_file(log, path);
        if (st == TUTTI_OK)
            st = lock_by(log, deadline_ns);
        /* The last user may have removed the file between our open and our lock: again. */
        if (st == TUTTI_OK && !tti_file_log_removed(log)) {
            st = come_alive(log);
            if (st == TUTTI_OK)
                return TUTTI_OK;
        }
        tti_file_log_close(log);
        if (st != TUTTI_OK)
            return st;
    }
}

void tti_file_log_close(tti_file_log *log)
{
    tti_fork_disown(log->fd);
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
    tti_map_release(&log->map);
    tti_buffer_release(&log->pending);
    free(log->path);
    log->path = NULL;
}
