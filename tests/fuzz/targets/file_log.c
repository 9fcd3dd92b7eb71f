/* SPDX-License-Identifier: BSD-3-Clause
 *
 * file_log.c - the log of a file store.
 *
 * How     The input is the file, found by who opens it; then some records are appended, of which the front of the input chooses.
 *         Others have it locked, it may not grow, or somebody cuts it.
 * Holds   What opens can be written to, and who opens it after that finds the same records; what was torn is gone then. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <tutti/status.h>
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

/* Another process holds the lock, as far as the kernel is concerned: the one of an open file. */
static void wait_for_others(tti_file_log *log, tti_file_log *other)
{
    tti_file_log late;
    bool         locked = false;

    TT_MUST(tti_file_log_try_lock(other, true, &locked) == TUTTI_OK && locked);
    TT_MUST(tti_file_log_try_lock(log, true, &locked) == TUTTI_OK && !locked);
    TT_MUST(tti_file_log_open(&late, tt_still_port(), path, 0) == TUTTI_E_TIMEOUT && strstr(tutti_last_error(), "stayed locked") != NULL);
    tti_file_log_unlock(other);
}

/* No room for one more record: what there was stays. */
static void write_too_much(tti_file_log *log, uint8_t room)
{
    const int64_t before = log->offset;
    struct rlimit whole, small;
    bool          locked = false;

    signal(SIGXFSZ, SIG_IGN);
    TT_MUST(tti_file_log_try_lock(log, true, &locked) == TUTTI_OK && locked && getrlimit(RLIMIT_FSIZE, &whole) == 0);
    small = (struct rlimit){ .rlim_cur = (rlim_t)before + room % 8, .rlim_max = whole.rlim_max };
    TT_MUST(setrlimit(RLIMIT_FSIZE, &small) == 0);
    TT_MUST(tti_file_log_put(log, "/large", "more than there is room for", 27) != TUTTI_OK);
    TT_MUST(setrlimit(RLIMIT_FSIZE, &whole) == 0 && log->offset == before && !tti_file_log_grew(log));
    tti_file_log_unlock(log);
}

/* Somebody cuts what has been read. */
static void be_cut(tti_file_log *log)
{
    bool locked = false;

    if (log->offset == 0)
        return;
    TT_MUST(truncate(path, log->offset - 1) == 0);
    TT_MUST(tti_file_log_try_lock(log, true, &locked) == TUTTI_E_IO && strstr(tutti_last_error(), "was cut") != NULL);
}

static void use(uint8_t what)
{
    tti_file_log log, again;
    bool         locked = false;

    if (tti_file_log_open(&log, tt_still_port(), path, 0) != TUTTI_OK)
        return;
    tti_file_log_unlock(&log);
    write_some(&log, what);
    TT_MUST(!tti_file_log_grew(&log) && !tti_file_log_removed(&log));
    TT_MUST(tti_file_log_open(&again, tt_still_port(), path, 0) == TUTTI_OK);
    TT_MUST(!again.alone && again.offset == log.offset && again.pending.size == 0);
    TT_MUST(digest_of(&again).sum == digest_of(&log).sum);
    tti_file_log_unlock(&again);
    wait_for_others(&log, &again);
    if (what & 16)
        write_too_much(&log, what >> 5);
    if ((what & 40) == 32)
        be_cut(&log);
    if (what & 8) {
        TT_MUST(tti_file_log_try_lock(&again, true, &locked) == TUTTI_OK && locked);
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
