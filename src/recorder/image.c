/* SPDX-License-Identifier: BSD-3-Clause
 *
 * image.c - copies a recorder, and checks that its tables lie within it.
 *
 * Why     The writer may be running, stopped in the middle of an entry, or long dead; a file may be anything. Whatever
 *         is answered has to be true or absent.
 * How     Memory whose size is sealed is mapped and copied entry by entry, as layout.h has it; one that is being
 *         written is read again, and left out if its writer stands still in it: its id is 0 in the copy then. Files, and
 *         memory that is not sealed, are read: a mapping of a file that shrinks would end the reader. What two writers
 *         have written into one place is found by its check, later, in either.
 * True    Sizes, counts and places are compared with the length before anything is looked at through them, without
 *         sums that could overflow: each is bounded first. */
#include "recorder/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "recorder/find.h"
#include <tutti/private.h>

/* As large as any that is written, and a few times more; tables that readers compare entry by entry are smaller. */
enum {
    TRIES = 16,
    ENTRY_MAX = 4096,
    HEAD_MAX = 65536,
    RECORDS_MOST = TTI_RECORDS_MAX,
    GROUPS_MOST = 1024,
    NAMES_MOST = 4096,
    RANKS_MOST = 1 << 17
};

/* What the first writers of this version had; later ones have more. */
enum {
    HEAD_LEAST = offsetof(tutti_recorder_head, saved_ns),
    GROUP_LEAST = offsetof(tutti_recorder_group_slot, world_id)
};

static const uint64_t TOTAL_MAX = UINT64_C(1) << 28;

/* ---- entries ---- */

/* Whether the first word of an entry, the copy's as well, was the same before and after. */
static bool copy_once(const uint64_t *shared, uint64_t *copy, size_t bytes)
{
    const uint64_t before = tti_word_get(&shared[0]);

    tti_words_get(copy, shared, bytes);
    copy[0] = before;
    return tti_word_get(&shared[0]) == before;
}

bool tti_record_copy(const void *at, void *out, size_t bytes)
{
    uint64_t *copy = out;
    int       i;

    for (i = 0; i < TRIES; i++)
        if (copy_once(at, copy, bytes) && copy[0] != 0)
            return true;
    copy[0] = 0;
    return false;
}

/* The same for entries whose first word is a turn. */
static void copy_turned(const void *at, void *out, size_t bytes)
{
    uint64_t *copy = out;
    int       i;

    for (i = 0; i < TRIES; i++)
        if (copy_once(at, copy, bytes) && (copy[0] & 1) == 0)
            return;
    copy[0] = 1; /* odd: it was being written */
}

/* ---- bounds ---- */

typedef struct bounds {
    uint64_t entry_least, count_most;
} bounds;

static bool table_fits(const tutti_recorder_head *head, uint64_t at, uint64_t entry, uint64_t count, bounds b)
{
    if (entry < b.entry_least || entry > ENTRY_MAX || entry % 8 != 0 || count > b.count_most)
        return false;
    return at % 8 == 0 && at >= head->head_bytes && at <= head->total_bytes && entry * count <= head->total_bytes - at;
}

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static bool fits(const tutti_recorder_head *head)
{
    const bounds records = { sizeof(tutti_recorder_slot), RECORDS_MOST }, groups = { GROUP_LEAST, GROUPS_MOST },
                 names = { sizeof(tutti_recorder_name_slot), NAMES_MOST }, ranks = { 8, RANKS_MOST / 2 };

    return head->total_bytes <= TOTAL_MAX && head->head_bytes >= HEAD_LEAST && head->head_bytes <= HEAD_MAX &&
           head->head_bytes % 8 == 0 && head->head_bytes <= head->total_bytes && is_power_of_two(head->record_count) &&
           table_fits(head, head->records_at, head->record_bytes, head->record_count, records) &&
           table_fits(head, head->groups_at, head->group_bytes, head->group_count, groups) &&
           table_fits(head, head->names_at, head->name_bytes, head->name_count, names) && head->rank_count % 2 == 0 &&
           table_fits(head, head->ranks_at, 8, head->rank_count / 2, ranks);
}

static tutti_status check_head(const tutti_recorder_head *head, uint64_t bytes, const char *name)
{
    if (bytes < HEAD_LEAST || memcmp(head->magic, TUTTI_RECORDER_MAGIC, sizeof head->magic) != 0)
        return tti_fail(TUTTI_E_IO, "'%s' is no recorder: it does not begin with '%s'", name, TUTTI_RECORDER_MAGIC);
    if (head->version != TUTTI_RECORDER_VERSION)
        return tti_fail(TUTTI_E_IO, "recorder '%s' has version %u, and this is a reader of version %d", name, head->version,
                        TUTTI_RECORDER_VERSION);
    if (!fits(head) || head->total_bytes > bytes)
        return tti_fail(TUTTI_E_IO, "recorder '%s' is damaged: its tables do not lie within its %llu bytes", name,
                        (unsigned long long)bytes);
    return TUTTI_OK;
}

/* ---- copying ---- */

static tutti_status read_all(int fd, const char *name, uint8_t *to, uint64_t bytes)
{
    uint64_t done = 0;
    ssize_t  got = 1;

    while (done < bytes && got > 0) {
        got = pread(fd, to + done, bytes - done, (off_t)done);
        done += got > 0 ? (uint64_t)got : 0;
    }
    if (got < 0)
        return tti_fail_errno(errno, "cannot read recorder '%s'", name);
    if (done < bytes)
        return tti_fail(TUTTI_E_IO, "recorder '%s' has ended after %llu of %llu bytes", name, (unsigned long long)done,
                        (unsigned long long)bytes);
    return TUTTI_OK;
}

static void copy_table(const uint8_t *from, uint8_t *to, uint64_t at, uint64_t entry, uint64_t count, bool is_turned)
{
    uint64_t i;

    for (i = 0; i < count; i++, at += entry)
        if (is_turned)
            copy_turned(from + at, to + at, entry);
        else
            tti_record_copy(from + at, to + at, entry);
}

/* A list that moved while lists were copied has changed its group's turn: it is not what the group's copy points to. */
static void forget_moved(const tutti_recorder_head *head, const uint8_t *from, uint8_t *to)
{
    uint64_t at = head->groups_at;
    uint32_t i;

    for (i = 0; i < head->group_count; i++, at += head->group_bytes) {
        tutti_recorder_group_slot *copy = (void *)(to + at);

        if (tti_word_get((const void *)(from + at)) != copy->turn && copy->ranks_at >= 0)
            copy->ranks_at = TTI_RANKS_LOST;
    }
}

/* All of memory that is written meanwhile. Records before groups: a group that is made in between is younger than the
 * records of its place, and is seen to be none of theirs. Lists of members last, each word with acquire
 * order, so that the turns are looked at after them: see forget_moved(). */
static void copy_shared(const tutti_recorder_head *head, const uint8_t *from, uint8_t *to)
{
    tti_words_get(to, from, head->head_bytes / 8 * 8);
    copy_table(from, to, head->records_at, head->record_bytes, head->record_count, false);
    tti_words_get(to + head->names_at, from + head->names_at, (size_t)head->name_bytes * head->name_count);
    copy_table(from, to, head->groups_at, head->group_bytes, head->group_count, true);
    tti_words_get(to + head->ranks_at, from + head->ranks_at, head->rank_count / 2 * sizeof(uint64_t));
    forget_moved(head, from, to);
}

static tutti_status copy_mapped(int fd, const char *name, const tutti_recorder_head *head, uint8_t *to)
{
    const uint8_t *at = mmap(NULL, head->total_bytes, PROT_READ, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map recorder '%s'", name);
    copy_shared(head, at, to);
    munmap((void *)(uintptr_t)at, head->total_bytes);
    return TUTTI_OK;
}

/* What is beyond the writer's head is none of it. */
static void cut_head(tutti_recorder_head *head)
{
    if (head->head_bytes >= HEAD_LEAST && head->head_bytes < sizeof *head)
        memset((char *)head + head->head_bytes, 0, sizeof *head - head->head_bytes);
}

static tutti_status read_head(int fd, uint64_t bytes, const char *name, tutti_recorder_head *head)
{
    tutti_status st;

    memset(head, 0, sizeof *head);
    st = read_all(fd, name, (uint8_t *)head, bytes < sizeof *head ? bytes : sizeof *head);
    cut_head(head);
    return st == TUTTI_OK ? check_head(head, bytes, name) : st;
}

/* That of the copy, of the same moment as the rest. It may be another one by now: what was copied is no longer for it. */
static tutti_status take_head(tti_image *image, const char *name)
{
    const uint64_t taken = image->head.total_bytes;

    memset(&image->head, 0, sizeof image->head);
    memcpy(&image->head, image->bytes, taken < sizeof image->head ? taken : sizeof image->head);
    cut_head(&image->head);
    return check_head(&image->head, taken, name);
}

tutti_status tti_image_take(int fd, const char *name, tti_image *image_out)
{
    tti_image    image = { .bytes = NULL };
    struct stat  about;
    tutti_status st;

    image.is_shared = tti_recorder_is_memory(fd); /* before its size is looked at: it cannot shrink after this */
    if (fstat(fd, &about) != 0)
        return tti_fail_errno(errno, "cannot look at recorder '%s'", name);
    if (about.st_size < HEAD_LEAST)
        return tti_fail(TUTTI_E_IO, "'%s' is no recorder: it has %lld bytes", name, (long long)about.st_size);
    st = read_head(fd, (uint64_t)about.st_size, name, &image.head);
    if (st != TUTTI_OK)
        return st;
    image.bytes = calloc(1, image.head.total_bytes);
    if (image.bytes == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %llu bytes of recorder '%s'",
                        (unsigned long long)image.head.total_bytes, name);
    st = image.is_shared ? copy_mapped(fd, name, &image.head, image.bytes)
                         : read_all(fd, name, image.bytes, image.head.total_bytes);
    if (st == TUTTI_OK)
        st = take_head(&image, name);
    if (st == TUTTI_OK)
        *image_out = image;
    else
        free(image.bytes);
    return st;
}

void tti_image_release(tti_image *image)
{
    free(image->bytes);
    image->bytes = NULL;
}

/* ---- its entries ---- */

bool tti_image_record(const tti_image *image, uint32_t i, tutti_recorder_slot *slot_out)
{
    const tutti_recorder_head *head = &image->head;
    tutti_recorder_slot        s;

    memcpy(&s, image->bytes + head->records_at + (uint64_t)i * head->record_bytes, sizeof s);
    if (s.id == 0 || (s.id - 1) % head->record_count != i || s.state >> 32 != (s.id & UINT32_MAX) ||
        s.seq >> TTI_SEQ_BITS != tti_record_check(s.id, s.call, s.seq, s.place, s.count, s.began))
        return false;
    *slot_out = s;
    return true;
}

bool tti_image_group(const tti_image *image, uint32_t i, tutti_recorder_group_slot *slot_out)
{
    const tutti_recorder_head *head = &image->head;
    tutti_recorder_group_slot  s = { .turn = 0 };

    memcpy(&s, image->bytes + head->groups_at + (uint64_t)i * head->group_bytes,
           head->group_bytes < sizeof s ? head->group_bytes : sizeof s);
    if (s.turn == 0 || (s.turn & 1) != 0 || s.size <= 0 || s.rank < 0 || s.rank >= s.size)
        return false;
    *slot_out = s;
    return true;
}

bool tti_image_name(const tti_image *image, uint32_t i, tutti_recorder_name_slot *slot_out)
{
    const tutti_recorder_head *head = &image->head;

    if (i >= head->name_count)
        return false;
    memcpy(slot_out, image->bytes + head->names_at + (uint64_t)i * head->name_bytes, sizeof *slot_out);
    return slot_out->used != 0;
}

const int32_t *tti_image_ranks(const tti_image *image, const tutti_recorder_group_slot *group)
{
    const tutti_recorder_head *head = &image->head;

    if (group->ranks_at < 0 || (uint32_t)group->ranks_at > head->rank_count ||
        (uint32_t)group->size > head->rank_count - (uint32_t)group->ranks_at)
        return NULL;
    return (const int32_t *)(const void *)(image->bytes + head->ranks_at) + group->ranks_at;
}
