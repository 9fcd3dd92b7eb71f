/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dump.c - when a recorder is written to a file: because somebody asks, because something failed, because a signal came.
 *
 * How     The file's name is TUTTI_TRACE_FILE with the rank behind it, as PyTorch's, whose form it has; beside it stands
 *         the memory itself, under that name and ".rec", for `tutti doctor` and `tutti trace`. The signal's handler writes the
 *         memory only: it reads clocks, opens, writes and closes, so it works whatever the threads are at, and needs none of
 *         their locks.
 *         In files the head says when that was, so that what was under way then is not taken for what is under way now.
 *         A dump after a failure has the failed operation in it, and its words; the head says which one that is, so that
 *         readers see the hang that it was part of, and not a rank that is in no operation.
 * Often   One failure ends many groups, and many calls; one dump has them all. So a failure is dumped by the thread that comes
 *         first, and then only that of a group which was made later: the process has gone on, or begun anew. The n-th has ".n"
 *         behind the rank, so that none is written over; TTI_DUMPS_MAX of them fill no disk.
 * True    Files are made with mode 0600 and are not followed through links: a name in a shared folder is not a way to
 *         write over what is somebody else's. Nothing but a regular file is written to: a pipe that nobody reads would hold the call
 *         that has failed, or end the process by SIGPIPE. So opening waits for nobody, and what it gets is looked at first.
 *         `dumps` of the head is written by this process only, by whoever holds the turn; `last_made` is the turn: it is
 *         taken by a compare and swap from what was read, so of two threads that fail at once one dumps. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/env.h"
#include "recorder/dump.h"
#include "recorder/read.h"
#include <tutti/private.h>

enum { PATH_LIMIT = 512 };

/* Of the process, as a signal is; path is written before the handler is set. */
static struct {
    char path[PATH_LIMIT];
} on_signal;

/* After failures. */
static _Atomic uint64_t last_made; /* how many groups there had been at the last one, and 1; 0: there was none */
static _Atomic uint64_t n_dumps;

/* Also in the handler of a signal. -1, with errno ENXIO: it is no regular file; of a pipe that nobody reads open() says the same. */
static int open_to_write(const char *path)
{
    const int   fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat what;

    if (fd < 0)
        return -1;
    errno = ENXIO;
    if (fstat(fd, &what) == 0 && S_ISREG(what.st_mode) && ftruncate(fd, 0) == 0)
        return fd;
    close(fd); /* which leaves errno as it is: nothing was written */
    return -1;
}

/* Also in the handler of a signal. */
static bool write_all(int fd, const void *data, size_t bytes)
{
    size_t  done = 0;
    ssize_t n = 1;

    while (done < bytes && n > 0) {
        n = write(fd, (const char *)data + done, bytes - done);
        done += n > 0 ? (size_t)n : 0;
    }
    if (n == 0)
        errno = EIO;
    return done == bytes;
}

/* One piece behind the other. */
static tutti_status write_file(const char *path, const void *first, size_t first_bytes, const void *rest, size_t rest_bytes)
{
    const int    fd = open_to_write(path);
    tutti_status st = TUTTI_OK;

    if (fd < 0 && errno == ENXIO)
        return tti_fail(TUTTI_E_IO, "cannot write '%s': it is no regular file", path);
    if (fd < 0)
        return tti_fail_errno_as(TUTTI_E_IO, errno, "cannot write '%s'", path);
    if (!write_all(fd, first, first_bytes) || !write_all(fd, rest, rest_bytes))
        st = tti_fail_errno_as(TUTTI_E_IO, errno, "cannot write '%s'", path);
    close(fd);
    return st;
}

tutti_status tutti_recorder_save(const tutti_recorder *recorder, const char *path)
{
    tutti_recorder_head head;
    const tti_image    *image;
    size_t              head_bytes;

    if (recorder == NULL || path == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_recorder_save: %s is NULL", recorder == NULL ? "recorder" : "path");
    image = tti_recorder_image_of(recorder);
    head_bytes = image->head.head_bytes < sizeof head ? image->head.head_bytes : sizeof head;
    memcpy(&head, image->bytes, head_bytes); /* as it was written: that of the image was cleaned for eyes */
    tti_recorder_sign_file(recorder, &head);
    return write_file(path, &head, head_bytes, image->bytes + head_bytes, image->head.total_bytes - head_bytes);
}

const char *tti_trace_prefix(void)
{
    const char *prefix = tti_env("TUTTI_TRACE_FILE");

    if (prefix == NULL)
        prefix = tti_env("TORCH_FR_DUMP_TEMP_FILE");
    return prefix != NULL ? prefix : tti_env("TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
}

bool tti_trace_path(int rank, uint64_t nth, const char *suffix, char *path, size_t bytes)
{
    const char *prefix = tti_trace_prefix();
    char        again[24] = "";
    int         n = -1;

    if (nth > 1)
        snprintf(again, sizeof again, ".%llu", (unsigned long long)nth);
    if (prefix != NULL)
        n = snprintf(path, bytes, "%s%d%s%s", prefix, rank < 0 ? 0 : rank, again, suffix);
    return n > 0 && (size_t)n < bytes;
}

static tutti_status dump_to(const tutti_recorder *recorder, const char *path)
{
    char        *json = NULL;
    tutti_status st = tutti_recorder_json(recorder, NULL, &json);

    if (st == TUTTI_OK)
        st = write_file(path, json, strlen(json), NULL, 0);
    free(json);
    return st;
}

tutti_status tti_recorder_dump_of(const tutti_recorder *recorder, uint64_t n, char *path_out, size_t bytes)
{
    const int    rank = tti_recorder_head_of(recorder)->rank;
    char         as_it_is[PATH_LIMIT];
    tutti_status st;

    if (!tti_trace_path(rank, n, "", path_out, bytes) || !tti_trace_path(rank, n, ".rec", as_it_is, sizeof as_it_is))
        return tti_fail(TUTTI_E_ARG, "there is no name for a dump of the recorder\n  next: set TUTTI_TRACE_FILE");
    st = dump_to(recorder, path_out);
    if (st == TUTTI_OK && tutti_recorder_save(recorder, as_it_is) != TUTTI_OK)
        tti_log(TTI_LOG_WARN, "the recorder was dumped as JSON only: %s", tutti_last_error());
    return st;
}

/* The own ring, read as others read it. */
static tutti_status open_own(tutti_recorder **recorder_out)
{
    const tti_ring *ring = tti_ring_now();

    if (ring == NULL)
        return tti_fail(TUTTI_E_STATE, "this process has no recorder: it has made no world, or TUTTI_RECORDER is 0");
    return tti_recorder_read_fd(ring->fd, "of this process", recorder_out);
}

tutti_status tutti_recorder_dump(const char *path)
{
    tutti_recorder *own = NULL;
    char            made[PATH_LIMIT];
    tutti_status    st = open_own(&own);

    if (st != TUTTI_OK)
        return st;
    st = path != NULL ? dump_to(own, path) : tti_recorder_dump_of(own, 1, made, sizeof made);
    tutti_recorder_close(own);
    return st;
}

void tti_dump_begin_anew(void)
{
    atomic_store(&last_made, 0);
    atomic_store(&n_dumps, 0);
}

static bool is_others_fault(tutti_status st)
{
    return st == TUTTI_E_TIMEOUT || st == TUTTI_E_PEER || st == TUTTI_E_MISMATCH || st == TUTTI_E_NETWORK;
}

/* Which dump the failure of record id is to have; 0: none. */
static uint64_t take_turn(uint64_t id)
{
    uint64_t before = atomic_load(&last_made);

    if (atomic_load(&n_dumps) >= TTI_DUMPS_MAX || (before != 0 && tti_recorder_made_of(id) < before) ||
        !atomic_compare_exchange_strong(&last_made, &before, tti_recorder_n_made() + 1))
        return 0;
    return atomic_fetch_add(&n_dumps, 1) + 1;
}

tutti_status tti_recorder_dump_failure(tutti_status st)
{
    char            words[2 * TUTTI_RECORDER_WORDS_MAX], path[PATH_LIMIT];
    tutti_recorder *own = NULL;
    tutti_status    dumped;
    uint64_t        n;

    if (!is_others_fault(st) || tti_trace_prefix() == NULL || tti_ring_now() == NULL ||
        (n = take_turn(tti_facts_of_thread.failed)) == 0)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_recorder_keep_words(words);
    dumped = open_own(&own);
    if (dumped == TUTTI_OK)
        tti_recorder_save_for(own, tti_facts_of_thread.failed);
    if (dumped == TUTTI_OK)
        dumped = tti_recorder_dump_of(own, n, path, sizeof path);
    tutti_recorder_close(own);
    if (dumped == TUTTI_OK)
        tti_word_set(&tti_ring_now()->head->dumps, n);
    if (dumped == TUTTI_OK)
        return tti_fail(st, "%s\n  recorder: '%s'", words, path);
    tti_log(TTI_LOG_WARN, "the recorder could not be dumped: %s", tutti_last_error());
    return tti_fail(st, "%s", words);
}

/* ---- by signal ---- */

static void save_memory(int number)
{
    const int           kept = errno;
    const tti_ring     *ring = tti_ring_now();
    tutti_recorder_head head;
    int                 fd;

    (void)number;
    if (ring == NULL)
        return;
    tti_words_get(&head, ring->head, sizeof head);
    head.saved_ticks = tti_ticks(ring->counter);
    head.saved_ns = tti_clock_read(CLOCK_MONOTONIC);
    head.saved_state = 'R'; /* it is writing this */
    fd = open_to_write(on_signal.path);
    if (fd >= 0 && write_all(fd, &head, sizeof head))
        write_all(fd, (const char *)ring->head + sizeof head, ring->head->total_bytes - sizeof head);
    if (fd >= 0)
        close(fd);
    errno = kept;
}

tutti_status tti_recorder_listen(int rank)
{
    const char      *text = tti_env("TUTTI_TRACE_SIGNAL");
    struct sigaction act = { .sa_handler = save_memory, .sa_flags = SA_RESTART };
    struct sigaction before;
    int              number = 0;
    tutti_status     st = tti_env_signal("TUTTI_TRACE_SIGNAL", &number);

    if (st != TUTTI_OK || number == 0)
        return st;
    if (!tti_trace_path(rank, 1, ".rec", on_signal.path, sizeof on_signal.path))
        return tti_fail(TUTTI_E_ARG, "TUTTI_TRACE_SIGNAL is set, and TUTTI_TRACE_FILE is not\n"
                                     "  next: set TUTTI_TRACE_FILE");
    sigemptyset(&act.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN &&
        before.sa_handler != save_memory) {
        tti_log(TTI_LOG_WARN, "signal %s has a handler of the program's: it does not save the recorder", text);
        return TUTTI_OK;
    }
    if (sigaction(number, &act, NULL) != 0)
        return tti_fail_errno(errno, "cannot have signal %s save the recorder", text);
    return TUTTI_OK;
}
