/* SPDX-License-Identifier: BSD-3-Clause
 *
 * file_log.c - the log of a file store.
 *
 * How     The input is the file, found by who opens it; then some records are appended, of which the front of the input chooses.
 * Holds   What opens can be written to, and who opens it after that finds the same records; what was torn is gone then. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>
#include "store/file_log.h"

static char path[64];

/* By name: a log that nobody can find any more counts as removed. */
static int open_file(void)
{
    int fd;

    if (path[0] == '\0')
        snprintf(path, sizeof path, "%s/tutti-fuzz-log-%ld", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                 (long)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    TT_MUST(fd >= 0);
    return fd;
}

typedef struct digest {
    uint64_t sum;
} digest;

static bool add_record(void *arg, const void *key, size_t key_size, const void *val, size_t val_size)
{
    digest  *d = arg;
    uint64_t x = UINT64_C(0xcbf29ce484222325);
    size_t   i;

    for (i = 0; i < key_size; i++)
        x = (x ^ ((const uint8_t *)key)[i]) * UINT64_C(0x100000001b3);
    x = (x ^ 0x1ff) * UINT64_C(0x100000001b3);
    for (i = 0; i < val_size; i++)
        x = (x ^ ((const uint8_t *)val)[i]) * UINT64_C(0x100000001b3);
    d->sum += x; /* in any order */
    return true;
}

static digest digest_of(const tti_file_log *log)
{
    digest d = { .sum = log->map.count };

    tti_map_each(&log->map, add_record, &d);
    return d;
}

static void write_some(tti_file_log *log, uint8_t what)
{
    bool locked = false;

    TT_MUST(tti_file_log_try_lock(log, true, &locked) == TUTTI_OK && locked);
    if (what & 1)
        TT_MUST(tti_file_log_put(log, "/a", "value", 5) == TUTTI_OK);
    if (what & 2)
        TT_MUST(tti_file_log_put(log, "/b", "", 0) == TUTTI_OK);
    if (what & 4)
        TT_MUST(tti_file_log_delete(log, "/a") == TUTTI_OK);
    tti_file_log_unlock(log);
}

static void use(uint8_t what)
{
    tti_file_log log, again;

    if (tti_file_log_open(&log, tt_still_port(), path, 0) != TUTTI_OK)
        return;
    tti_file_log_unlock(&log);
    write_some(&log, what);
    TT_MUST(!tti_file_log_grew(&log) && !tti_file_log_removed(&log));
    TT_MUST(tti_file_log_open(&again, tt_still_port(), path, 0) == TUTTI_OK);
    TT_MUST(!again.alone && again.offset == log.offset && again.pending.size == 0);
    TT_MUST(digest_of(&again).sum == digest_of(&log).sum);
    if (what & 8) {
        tti_file_log_unlink(&again);
        TT_MUST(tti_file_log_removed(&log));
    }
    tti_file_log_close(&again);
    tti_file_log_close(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input      in = tt_input_of(data, size);
    const uint8_t what = (uint8_t)tt_take(&in, 1);
    const int     fd = open_file();

    TT_MUST(write(fd, in.at, in.left) == (ssize_t)in.left);
    close(fd);
    use(what);
    unlink(path);
    return 0;
}
