/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder.c - a recorder's memory that was saved, of whatever origin.
 *
 * How     The input is the file, or, if it has an odd length, memory that is sealed and is mapped; it is read, all that it holds
 *         is asked for, and it is written as JSON.
 * Holds   Texts end and have no control characters; numbers of the tables are numbers of the tables; the JSON is JSON; saved and
 *         read again it is the same. */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <jansson.h>
#include <tutti/recorder.h>

static size_t sum; /* of what came, so that reading it is not left out */

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

static void look_at_json(const tutti_recorder *r)
{
    char   *text = NULL;
    json_t *json;

    TT_MUST(tutti_recorder_json(r, NULL, &text) == TUTTI_OK);
    json = json_loads(text, 0, NULL);
    TT_MUST(json != NULL);
    json_decref(json);
    free(text);
}

static void look(const char *path)
{
    tutti_recorder     *r = NULL;
    tutti_recorder_info info;

    if (tutti_recorder_open_file(path, &r) != TUTTI_OK)
        return;
    info.size = sizeof info;
    TT_MUST(tutti_recorder_get_info(r, &info) == TUTTI_OK);
    check_text(info.job);
    check_text(info.host);
    check_text(info.program);
    check_text(info.failed_words);
    look_at_groups(r);
    look_at_records(r);
    look_at_json(r);
    TT_MUST(tutti_recorder_update(r) == TUTTI_OK);
    look_at_records(r);
    tutti_recorder_close(r);
}

/* The same as memory of a process, which is mapped. */
static void look_at_memory(const uint8_t *data, size_t size)
{
    char      path[64];
    const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    TT_MUST(fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    look(path);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size % 2 == 0)
        look(tt_file(data, size));
    else
        look_at_memory(data, size);
    return 0;
}
