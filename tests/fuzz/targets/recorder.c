/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder.c - a recorder's memory that was saved, of whatever origin.
 *
 * How     The input is the file, or, if it has an odd length, memory that is sealed and is mapped; it is read, all that it holds
 *         is asked for, it is written as JSON, and read again. Memory of a process that may be here has the boot "here": that
 *         process lives if it began at an odd time, which also says how it is. The last byte says what goes wrong: 0 nothing,
 *         else so many of the library's calls that can fail do not, and the next one does.
 * Holds   Texts end and have no control characters; numbers of the tables are numbers of the tables; the JSON is JSON. Of memory:
 *         as a file that was saved it says the same. Without memory, or where reading fails, there is an error and no answer; what
 *         was read before stays. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <jansson.h>
#include "base/machine.h"
#include "recorder/find.h"
#include "recorder/read.h"
#include <tutti/recorder.h>

static size_t sum; /* of what came, so that reading it is not left out */

/* ---- what goes wrong ---- */

enum { EACH_UP_TO = 128, THEN_STEPS = 16 };

static struct {
    unsigned until; /* calls to the one that fails, which is among them; 0: none does */
    bool     has_failed;
} trouble;

void   *__real_malloc(size_t bytes);
void   *__wrap_malloc(size_t bytes);
void   *__real_calloc(size_t n, size_t bytes);
void   *__wrap_calloc(size_t n, size_t bytes);
int     __real_fcntl(int fd, int what, ...);
int     __wrap_fcntl(int fd, int what, ...);
int     __real_fstat(int fd, struct stat *out);
int     __wrap_fstat(int fd, struct stat *out);
void   *__real_mmap(void *at, size_t bytes, int may, int flags, int fd, off_t from);
void   *__wrap_mmap(void *at, size_t bytes, int may, int flags, int fd, off_t from);
ssize_t __real_pread(int fd, void *out, size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t bytes, off_t at);
ssize_t __wrap___pread_chk(int fd, void *out, size_t bytes, off_t at, size_t room);
int64_t __wrap_tti_process_seen_here(int64_t inner, uint64_t began, char *state_out);
char    __wrap_tti_process_letter(int64_t pid);

/* errno is why. */
static bool fails(int why)
{
    if (trouble.until == 0 || --trouble.until > 0)
        return false;
    trouble.has_failed = true;
    errno = why;
    return true;
}

/* What JSON is made of, too. */
void *__wrap_malloc(size_t bytes)
{
    return fails(ENOMEM) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return fails(ENOMEM) ? NULL : __real_calloc(n, bytes);
}

int __wrap_fcntl(int fd, int what, ...)
{
    va_list more;
    long    value;

    va_start(more, what);
    value = va_arg(more, long);
    va_end(more);
    return fails(EMFILE) ? -1 : __real_fcntl(fd, what, value);
}

int __wrap_fstat(int fd, struct stat *out)
{
    return fails(EIO) ? -1 : __real_fstat(fd, out);
}

void *__wrap_mmap(void *at, size_t bytes, int may, int flags, int fd, off_t from)
{
    return fails(ENOMEM) ? MAP_FAILED : __real_mmap(at, bytes, may, flags, fd, from);
}

/* Memory is still there when its head cannot be read; a file may have been made shorter. */
ssize_t __wrap_pread(int fd, void *out, size_t bytes, off_t at)
{
    if (fails(EIO))
        return at == 0 && bytes <= sizeof(tutti_recorder_head) ? -1 : 0;
    return __real_pread(fd, out, bytes, at);
}

ssize_t __wrap___pread_chk(int fd, void *out, size_t bytes, off_t at, size_t room)
{
    TT_MUST(bytes <= room);
    return __wrap_pread(fd, out, bytes, at);
}

static void begin_trouble(uint8_t last)
{
    trouble.until = last <= EACH_UP_TO ? last : EACH_UP_TO + (last - EACH_UP_TO) * THEN_STEPS;
    trouble.has_failed = false;
}

/* What this program does by itself goes well. */
static unsigned pause_trouble(void)
{
    const unsigned left = trouble.until;

    trouble.until = 0;
    return left;
}

/* ---- processes, in place of recorder/find.c's ---- */

static const char letters[] = "RSDTtXZS";

int64_t __wrap_tti_process_seen_here(int64_t inner, uint64_t began, char *state_out)
{
    if ((began & 1) == 0 || inner <= 0)
        return 0;
    *state_out = letters[began >> 1 & 7];
    return *state_out == 'X' ? 0 : inner;
}

char __wrap_tti_process_letter(int64_t pid)
{
    return letters[pid & 7];
}

/* Its writer is a process of this machine, since it was started. */
static void bring_here(uint8_t *data, size_t size)
{
    tutti_recorder_head head;
    char                boot[TTI_BOOT_ID_BYTES];

    if (size < sizeof head)
        return;
    memcpy(&head, data, sizeof head);
    if (strncmp(head.boot, "here", sizeof head.boot) != 0 || !tti_boot_id(boot))
        return;
    memcpy(head.boot, boot, sizeof boot);
    memcpy(data, &head, sizeof head);
}

/* ---- what it says ---- */

static void check_text(const char *text)
{
    for (; *text != '\0'; text++)
        TT_MUST((unsigned char)*text >= 0x20 || *text == '\n');
}

static void look_at_groups(const tutti_recorder *r)
{
    tutti_recorder_group g;
    int                  i, k;

    g.size = sizeof g;
    for (i = 0; i < tutti_recorder_count_groups(r); i++) {
        TT_MUST(tutti_recorder_get_group(r, i, &g) == TUTTI_OK);
        check_text(g.name);
        check_text(g.desc);
        check_text(g.backend);
        TT_MUST(g.n_ranks > 0 && g.rank >= 0 && g.rank < g.n_ranks);
        for (k = 0; g.ranks != NULL && k < g.n_ranks; k++)
            sum += (size_t)g.ranks[k];
    }
    TT_MUST(tutti_recorder_get_group(r, i, &g) == TUTTI_E_ARG);
}

static void look_at_records(const tutti_recorder *r)
{
    tutti_record      record;
    tutti_range_total range;
    int               i;

    record.size = sizeof record;
    for (i = 0; i < tutti_recorder_count_records(r); i++) {
        TT_MUST(tutti_recorder_get_record(r, i, &record) == TUTTI_OK);
        TT_MUST(record.id != 0 && record.group >= -1 && record.group < tutti_recorder_count_groups(r));
        TT_MUST((unsigned)record.dtype < TUTTI_DTYPE_COUNT && (unsigned)record.reduce < TUTTI_OP_COUNT);
        TT_MUST(record.state >= TUTTI_RECORD_ISSUED && record.state <= TUTTI_RECORD_FAILED);
        check_text(record.op);
        check_text(record.name);
    }
    range.size = sizeof range;
    for (i = 0; i < tutti_recorder_count_ranges(r); i++) {
        TT_MUST(tutti_recorder_get_range(r, i, &range) == TUTTI_OK);
        check_text(range.name);
    }
}

/* To free; NULL: something failed. */
static char *json_of(const tutti_recorder *r)
{
    char              *text = NULL;
    const tutti_status st = tutti_recorder_json(r, NULL, &text);
    const unsigned     left = pause_trouble();
    json_t            *json;

    TT_MUST(st == TUTTI_OK || (trouble.has_failed && st == TUTTI_E_NOMEM && text == NULL));
    if (st == TUTTI_OK) {
        json = json_loads(text, 0, NULL);
        TT_MUST(json != NULL);
        json_decref(json);
    }
    trouble.until = left;
    return text;
}

static void look_at(const tutti_recorder *r)
{
    tutti_recorder_info info;

    info.size = sizeof info;
    TT_MUST(tutti_recorder_get_info(r, &info) == TUTTI_OK);
    check_text(info.job);
    check_text(info.host);
    check_text(info.program);
    check_text(info.failed_words);
    look_at_groups(r);
    look_at_records(r);
    free(json_of(r));
}

/* What is the writer's is there anew, or all is as it was. */
static void look_again(tutti_recorder *r)
{
    const int    n_records = tutti_recorder_count_records(r);
    tutti_status st = tutti_recorder_update(r);

    TT_MUST(st == TUTTI_OK || trouble.has_failed);
    TT_MUST(tutti_recorder_count_records(r) == n_records);
    look_at_records(r);
}

/* A process that was seen last at some moment, and how it was then. False: no such moment is known on the writer's clock. */
static bool date(tutti_recorder *r)
{
    tutti_recorder_info info;
    tti_sight           sight;

    info.size = sizeof info;
    tti_sight_take(tti_recorder_head_of(r)->pid, &sight);
    TT_MUST(sight.ns > 0 && sight.state == letters[tti_recorder_head_of(r)->pid & 7]);
    tti_recorder_date(r, &sight);
    TT_MUST(tutti_recorder_get_info(r, &info) == TUTTI_OK);
    TT_MUST(info.read_ns != sight.ns || info.state == sight.state);
    return info.read_ns == sight.ns;
}

/* The bytes of a file that it is saved as (recorder/dump.c): its head says when that was, and how the process was. */
static uint8_t *file_of(const tutti_recorder *r, size_t *bytes_out)
{
    const tti_image    *image = tti_recorder_image_of(r);
    uint8_t            *file = tt_copy(image->bytes, image->head.total_bytes);
    tutti_recorder_head head;

    memcpy(&head, file, sizeof head);
    tti_recorder_sign_file(r, &head);
    memcpy(file, &head, sizeof head);
    *bytes_out = image->head.total_bytes;
    return file;
}

/* Saved, and read again. Older writers' heads have no place for what is signed. */
static void save(tutti_recorder *r)
{
    tutti_recorder *again = NULL;
    uint8_t        *file;
    char           *was, *is;
    size_t          bytes;

    if (tti_recorder_head_of(r)->head_bytes < sizeof(tutti_recorder_head))
        return;
    tti_recorder_save_for(r, 1);
    file = file_of(r, &bytes);
    TT_MUST(tutti_recorder_open_file(tt_file(file, bytes), &again) == TUTTI_OK);
    TT_MUST(tti_recorder_head_of(again)->saved_for == 1);
    was = json_of(r);
    is = json_of(again);
    TT_MUST(strcmp(was, is) == 0);
    free(was);
    free(is);
    free(file);
    tutti_recorder_close(again);
}

static void look(const char *path, bool is_memory)
{
    tutti_recorder *r = NULL;

    if (tutti_recorder_open_file(path, &r) == TUTTI_OK) {
        look_at(r);
        look_again(r);
        (void)pause_trouble();
        if (is_memory && tti_recorder_image_of(r)->is_shared && date(r))
            save(r);
    }
    (void)pause_trouble();
    tutti_recorder_close(r);
}

/* The same as memory of a process, which is mapped. */
static void look_at_memory(const uint8_t *data, size_t size)
{
    const uint8_t what = data[size - 1];
    uint8_t      *copy = tt_copy(data, size);
    char          path[64];
    const int     fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    bring_here(copy, size);
    TT_MUST(fd >= 0 && pwrite(fd, copy, size, 0) == (ssize_t)size && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    free(copy);
    begin_trouble(what);
    look(path, true);
    close(fd);
}

static void look_at_file(const uint8_t *data, size_t size)
{
    const char *path = tt_file(data, size);

    begin_trouble(size > 0 ? data[size - 1] : 0);
    look(path, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_set_alloc_funcs(__wrap_malloc, free);
    if (size % 2 == 0)
        look_at_file(data, size);
    else
        look_at_memory(data, size);
    return 0;
}
