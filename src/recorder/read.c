/* SPDX-License-Identifier: BSD-3-Clause
 *
 * read.c - answers from a copied recorder: whose it is, its groups, its records, in order and in ns.
 *
 * How     The copy is decoded once: groups by age, records by id, texts with an end and without control characters.
 *         Ticks become ns by two moments at which both clocks were read: the writer's first, and a later one. Of memory
 *         that is the reader's own, of a file the one at which it was saved; where neither is known, as on another boot,
 *         the latest that the writer has noted.
 * True    What a record says of its group counts only if the group's place was its group's when it was made. */
#include "recorder/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/machine.h"
#include "recorder/clock.h"
#include "recorder/find.h"
#include "watch/control.h"
#include <tutti/private.h>

enum { PATH_SHOWN = 256 };

/* One moment on two clocks. */
typedef struct moment {
    uint64_t ticks;
    int64_t  ns;
} moment;

typedef struct group {
    tutti_recorder_group_slot slot;
    uint32_t                  place;
    const int32_t            *ranks; /* [slot.size]; NULL */
} group;

typedef struct range {
    tutti_recorder_name_slot slot;
} range;

struct tutti_recorder {
    int       fd;
    char      path[PATH_SHOWN];
    tti_image image;
    moment    first, last;
    int64_t   read_ns;
    int64_t   pid_here; /* of the process, as it is numbered here; 0: of a file, or it is gone */
    char      state;    /* of tutti_recorder_info */
    bool      is_dated; /* it is what somebody saw before, as is last */
    int       n_groups;
    group    *groups;
    int      *group_at; /* [image.head.group_count] which of groups is at a place; -1: none */
    int      *all; /* 0, 1, ..., of the largest group that has just these */
    int       n_records;
    tutti_recorder_slot *records;
    int       n_ranges;
    range    *ranges;
    char    (*names)[TUTTI_RECORDER_TEXT_MAX]; /* [image.head.name_count], cleaned */
};

/* ---- texts ---- */

/* Whether the second byte may follow the first: not in a form that is longer than needed, in a half of a pair (U+D800 ..
 * U+DFFF), or beyond the last character (U+10FFFF). Writers of JSON refuse these. */
static bool may_follow(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0: return second >= 0xa0;
    case 0xed: return second < 0xa0;
    case 0xf0: return second >= 0x90;
    case 0xf4: return second < 0x90;
    default: return first >= 0xc2 && first < 0xf5;
    }
}

/* Bytes of a UTF-8 character at s, of at most n; 0: it is none. */
static size_t character(const unsigned char *s, size_t n)
{
    const size_t need = s[0] < 0x80 ? 1 : (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
    size_t       i;

    if (need == 0 || need > n || (need > 1 && !may_follow(s[0], s[1])))
        return 0;
    for (i = 1; i < need; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return need;
}

/* End a text, and take out what a terminal or a parser would not like. Line ends of words stay. */
static void clean(char *text, size_t bytes)
{
    unsigned char *s = (unsigned char *)text;
    size_t         i, n;

    text[bytes - 1] = '\0';
    for (i = 0; s[i] != '\0'; i += n) {
        n = character(s + i, bytes - 1 - i);
        if (n <= 1 && (n == 0 || (s[i] < 0x20 && s[i] != '\n') || s[i] == 0x7f)) {
            s[i] = '?';
            n = 1;
        }
    }
}

static void clean_head(tutti_recorder_head *head)
{
    clean(head->job, sizeof head->job);
    clean(head->host, sizeof head->host);
    clean(head->program, sizeof head->program);
    clean(head->boot, sizeof head->boot);
    clean(head->failed_words, sizeof head->failed_words);
}

/* ---- times ---- */

static bool is_here(const tutti_recorder_head *head)
{
    char boot[TTI_BOOT_ID_BYTES];

    return tti_boot_id(boot) && strncmp(boot, head->boot, sizeof head->boot) == 0;
}

/* Times of damaged recorders, too, may be added and subtracted: a machine runs for 36 years at most, and the year is at most
 * 2116. */
static const int64_t MONO_MOST = INT64_MAX / 8, REAL_MOST = INT64_MAX / 2;

static int64_t within_ns(int64_t ns, int64_t most)
{
    return ns < 0 ? 0 : ns > most ? most : ns;
}

static void set_clocks(tutti_recorder *r)
{
    tutti_recorder_head *head = &r->image.head;

    head->mono_first_ns = within_ns(head->mono_first_ns, MONO_MOST);
    head->mono_last_ns = within_ns(head->mono_last_ns, MONO_MOST);
    head->real_first_ns = within_ns(head->real_first_ns, REAL_MOST);
    head->saved_ns = within_ns(head->saved_ns, MONO_MOST);
    r->first = (moment){ head->ticks_first, head->mono_first_ns };
    r->last = (moment){ head->ticks_last, head->mono_last_ns };
    if (head->saved_ns != 0 && !r->image.is_shared)
        r->last = (moment){ head->saved_ticks, head->saved_ns };
    else if (r->image.is_shared && is_here(head))
        r->last = (moment){ tti_ticks(head->clock == TUTTI_CLOCK_COUNTER && tti_counter_is_steady()),
                            tti_clock_read(CLOCK_MONOTONIC) };
    r->read_ns = r->last.ns;
}

/* 0 stays 0. */
static int64_t to_ns(const tutti_recorder *r, uint64_t ticks)
{
    const double span = (double)(r->last.ticks - r->first.ticks);
    double       pace = 1, behind;

    if (ticks == 0)
        return 0;
    if (r->image.head.clock == TUTTI_CLOCK_MONOTONIC)
        return within_ns((int64_t)(ticks & INT64_MAX), MONO_MOST);
    if (span > 0 && r->last.ns > r->first.ns)
        pace = (double)(r->last.ns - r->first.ns) / span;
    behind = (double)(int64_t)(ticks - r->first.ticks) * pace;
    if (behind > (double)MONO_MOST || behind < -(double)MONO_MOST)
        return behind > 0 ? MONO_MOST : 0;
    return within_ns(r->first.ns + (int64_t)behind, MONO_MOST);
}

static int64_t span_ns(const tutti_recorder *r, uint64_t ticks)
{
    return ticks == 0 ? 0 : to_ns(r, r->first.ticks + ticks) - to_ns(r, r->first.ticks);
}

/* ---- decoding ---- */

static int by_age(const void *a, const void *b)
{
    const group *x = a, *y = b;

    return x->slot.made < y->slot.made ? -1 : x->slot.made > y->slot.made;
}

enum { SIZE_MAX_LISTED = 1 << 16 };

static bool has_all(const group *g)
{
    return g->slot.ranks_at == TTI_RANKS_ALL && g->slot.size <= SIZE_MAX_LISTED;
}

/* The members of groups that are 0 .. size-1: one list for all of them, as damaged ones may be many, and large. Without
 * memory they have no list. */
static void list_all(tutti_recorder *r)
{
    int most = 0, i;

    for (i = 0; i < r->n_groups; i++)
        if (has_all(&r->groups[i]) && r->groups[i].slot.size > most)
            most = r->groups[i].slot.size;
    r->all = most > 0 ? malloc((size_t)most * sizeof *r->all) : NULL;
    for (i = 0; r->all != NULL && i < most; i++)
        r->all[i] = i;
    for (i = 0; i < r->n_groups; i++)
        if (has_all(&r->groups[i]))
            r->groups[i].ranks = r->all;
}

static void decode_group(const tutti_recorder *r, group *g)
{
    clean(g->slot.name, sizeof g->slot.name);
    clean(g->slot.desc, sizeof g->slot.desc);
    clean(g->slot.backend, sizeof g->slot.backend);
    clean(g->slot.world, sizeof g->slot.world);
    g->ranks = tti_image_ranks(&r->image, &g->slot);
}

static tutti_status decode_groups(tutti_recorder *r)
{
    const uint32_t n = r->image.head.group_count;
    uint32_t       i;

    r->groups = calloc(n > 0 ? n : 1, sizeof *r->groups);
    r->group_at = calloc(n > 0 ? n : 1, sizeof *r->group_at);
    if (r->groups == NULL || r->group_at == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the groups of recorder '%s'", r->path);
    for (i = 0; i < n; i++) {
        group *g = &r->groups[r->n_groups];

        if (!tti_image_group(&r->image, i, &g->slot))
            continue;
        g->place = i;
        decode_group(r, g);
        r->n_groups++;
    }
    qsort(r->groups, (size_t)r->n_groups, sizeof *r->groups, by_age);
    for (i = 0; i < n; i++)
        r->group_at[i] = -1;
    for (i = 0; i < (uint32_t)r->n_groups; i++)
        r->group_at[r->groups[i].place] = (int)i;
    list_all(r);
    return TUTTI_OK;
}

static int by_time(const void *a, const void *b)
{
    const tutti_recorder_slot *x = a, *y = b;

    if (x->began != y->began)
        return x->began < y->began ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Whether an id can be of the latest: a writer that stood still while others went around the ring leaves an old one, and
 * some were issued while the copy was made. */
static bool is_recent(const tutti_recorder_head *head, uint64_t id)
{
    return id <= head->issued + head->record_count && head->issued <= id + 2 * (uint64_t)head->record_count;
}

static tutti_status decode_records(tutti_recorder *r)
{
    const tutti_recorder_head *head = &r->image.head;
    uint32_t                   i;

    r->records = calloc(head->record_count, sizeof *r->records);
    if (r->records == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the records of recorder '%s'", r->path);
    for (i = 0; i < head->record_count; i++)
        if (tti_image_record(&r->image, i, &r->records[r->n_records]) && is_recent(head, r->records[r->n_records].id))
            r->n_records++;
    qsort(r->records, (size_t)r->n_records, sizeof *r->records, by_time); /* each thread has ids of its own */
    return TUTTI_OK;
}

static tutti_status decode_names(tutti_recorder *r)
{
    const uint32_t           n = r->image.head.name_count;
    tutti_recorder_name_slot slot;
    uint32_t                 i;

    r->names = calloc(n > 0 ? n : 1, sizeof *r->names);
    r->ranges = calloc(n > 0 ? n : 1, sizeof *r->ranges);
    if (r->names == NULL || r->ranges == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the names of recorder '%s'", r->path);
    for (i = 0; tti_image_name(&r->image, i, &slot); i++) {
        clean(slot.text, sizeof slot.text);
        memcpy(r->names[i], slot.text, sizeof slot.text);
        if (slot.ranges > 0)
            r->ranges[r->n_ranges++].slot = slot;
    }
    return TUTTI_OK;
}

static void forget(tutti_recorder *r)
{
    free(r->groups);
    free(r->group_at);
    free(r->all);
    free(r->records);
    free(r->ranges);
    free(r->names);
    tti_image_release(&r->image);
}

/* Memory is held here: its process is here, or gone. */
static void look_at_process(tutti_recorder *r, const tutti_recorder_head *head)
{
    r->pid_here = 0;
    r->state = (char)(head->saved_state < 0x7f && head->saved_state >= 'A' ? head->saved_state : 0);
    if (!r->image.is_shared || !is_here(head))
        return;
    r->state = 'X';
    r->pid_here = tti_process_seen_here(head->pid, head->pid_began, &r->state);
    if (r->state == 'Z')
        r->pid_here = 0; /* nobody has collected it yet */
}

static bool is_alive(const tutti_recorder *r)
{
    return r->pid_here != 0 || ((!r->image.is_shared || r->is_dated) && r->state != '\0' && strchr("XxZ", r->state) == NULL);
}

void tti_sight_take(int64_t pid, tti_sight *sight_out)
{
    const bool counts = tti_counter_is_steady();

    *sight_out = (tti_sight){ .counter = counts ? tti_ticks(true) : 0, .ns = tti_clock_read(CLOCK_MONOTONIC),
                              .state = tti_process_letter(pid) };
}

void tti_recorder_date(tutti_recorder *recorder, const tti_sight *sight)
{
    const bool counts = recorder->image.head.clock == TUTTI_CLOCK_COUNTER;

    if (!recorder->image.is_shared || sight->ns == 0 || (counts && sight->counter == 0))
        return;
    recorder->last = (moment){ counts ? sight->counter : (uint64_t)sight->ns, sight->ns };
    recorder->read_ns = sight->ns;
    recorder->state = sight->state;
    recorder->is_dated = true;
}

void tti_recorder_sign_file(const tutti_recorder *recorder, tutti_recorder_head *head)
{
    if (!recorder->image.is_shared)
        return;
    head->saved_ns = recorder->last.ns;
    head->saved_ticks = recorder->last.ticks;
    head->saved_state = (uint64_t)(unsigned char)recorder->state;
    head->saved_for = recorder->image.head.saved_for;
}

void tti_recorder_save_for(tutti_recorder *recorder, uint64_t id)
{
    recorder->image.head.saved_for = id;
}

static tutti_status decode(tutti_recorder *r)
{
    const tutti_recorder_head *head = &r->image.head;
    tutti_status               st;

    clean_head(&r->image.head);
    set_clocks(r);
    st = decode_names(r);
    if (st == TUTTI_OK)
        st = decode_groups(r);
    if (st == TUTTI_OK)
        st = decode_records(r);
    if (st == TUTTI_OK)
        look_at_process(r, head);
    return st;
}

static tutti_status read_again(tutti_recorder *r)
{
    tutti_recorder fresh = { .fd = r->fd };
    tutti_status   st = tti_image_take(r->fd, r->path, &fresh.image);

    memcpy(fresh.path, r->path, sizeof fresh.path);
    if (st == TUTTI_OK)
        st = decode(&fresh);
    if (st != TUTTI_OK) {
        forget(&fresh);
        return st;
    }
    forget(r);
    *r = fresh;
    return TUTTI_OK;
}

/* ---- opening ---- */

tutti_status tti_recorder_read_fd(int fd, const char *path, tutti_recorder **recorder_out)
{
    tutti_recorder *r = calloc(1, sizeof *r);
    tutti_status    st;

    if (r == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for recorder '%s'", path);
    snprintf(r->path, sizeof r->path, "%s", path);
    r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    st = r->fd >= 0 ? read_again(r) : tti_fail_errno(errno, "cannot keep recorder '%s' open", path);
    if (st == TUTTI_OK)
        *recorder_out = r;
    else
        tutti_recorder_close(r);
    return st;
}

tutti_status tutti_recorder_open_file(const char *path, tutti_recorder **recorder_out)
{
    struct stat  about;
    tutti_status st;
    int          fd;

    if (path == NULL || recorder_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_recorder_open_file: %s is NULL", path == NULL ? "path" : "recorder_out");
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tti_fail_errno_as(TUTTI_E_IO, errno, "cannot open recorder '%s'", path);
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        st = tti_fail(TUTTI_E_ARG, "'%s' is no regular file", path);
    else
        st = tti_recorder_read_fd(fd, path, recorder_out);
    close(fd);
    return st;
}

tutti_status tutti_recorder_update(tutti_recorder *recorder)
{
    if (recorder == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_recorder_update: recorder is NULL");
    return read_again(recorder);
}

void tutti_recorder_close(tutti_recorder *recorder)
{
    if (recorder == NULL)
        return;
    forget(recorder);
    if (recorder->fd >= 0)
        close(recorder->fd);
    free(recorder);
}

bool tti_recorder_reads_same(const tutti_recorder *recorder, int fd)
{
    struct stat a, b;

    return fstat(recorder->fd, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

const tutti_recorder_head *tti_recorder_head_of(const tutti_recorder *recorder)
{
    return &recorder->image.head;
}

const tti_image *tti_recorder_image_of(const tutti_recorder *recorder)
{
    return &recorder->image;
}

/* ---- answers ---- */

/* The caller's struct has at least its size, which was set; newer callers' further fields are left as they are. */
static tutti_status check_out(const char *what, const tutti_recorder *recorder, const size_t *size, size_t known)
{
    if (recorder == NULL || size == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: %s is NULL", what, recorder == NULL ? "recorder" : "the output");
    if (*size < sizeof(size_t) || *size > 65536)
        return tti_fail(TUTTI_E_ARG, "%s: the output's size is %zu\n  next: set it with its macro first", what, *size);
    (void)known;
    return TUTTI_OK;
}

/* Give as much of mine as the caller knows. */
static void hand_out(void *out, size_t size, void *mine, size_t known)
{
    *(size_t *)mine = size;
    memcpy(out, mine, size < known ? size : known);
}

static tutti_status no_entry(const char *what, int i, int n)
{
    return tti_fail(TUTTI_E_ARG, "%s: there is no number %d among %d", what, i, n);
}

tutti_status tutti_recorder_get_info(const tutti_recorder *recorder, tutti_recorder_info *info)
{
    const tutti_recorder_head *head;
    tutti_recorder_info        mine;
    tutti_status               st = check_out("tutti_recorder_get_info", recorder, info != NULL ? &info->size : NULL,
                                              sizeof mine);

    if (st != TUTTI_OK)
        return st;
    head = &recorder->image.head;
    mine = (tutti_recorder_info){
        .pid = recorder->pid_here != 0 ? recorder->pid_here : head->pid, .is_alive = is_alive(recorder), .has_left = head->use == TUTTI_RECORDER_LEFT,
        .rank = head->rank, .world_size = head->world_size, .job = head->job, .host = head->host,
        .program = head->program, .issued = head->issued, .failures = head->failures, .failed_id = head->failed_id,
        .failed_words = head->failed_id != 0 ? head->failed_words : "", .read_ns = recorder->read_ns,
        .real_ns = (int64_t)((uint64_t)head->real_first_ns - (uint64_t)head->mono_first_ns),
        .is_file = !recorder->image.is_shared, .state = recorder->state, .saved_for = head->saved_for,
        .pid_began = head->pid_began, .boot = head->boot,
    };
    hand_out(info, info->size, &mine, sizeof mine);
    return TUTTI_OK;
}

int tutti_recorder_count_groups(const tutti_recorder *recorder)
{
    return recorder != NULL ? recorder->n_groups : 0;
}

/* Groups are sorted by it; -1: it is none of theirs, or 0. */
static int find_made(const tutti_recorder *r, uint64_t made)
{
    int low = 0, high = r->n_groups, at;

    while (low < high) {
        at = low + (high - low) / 2;
        if (r->groups[at].slot.made < made)
            low = at + 1;
        else
            high = at;
    }
    return made != 0 && low < r->n_groups && r->groups[low].slot.made == made ? low : -1;
}

tutti_status tutti_recorder_get_group(const tutti_recorder *recorder, int i, tutti_recorder_group *out)
{
    const tutti_recorder_group_slot *slot;
    tutti_recorder_group             mine;
    tutti_status st = check_out("tutti_recorder_get_group", recorder, out != NULL ? &out->size : NULL, sizeof mine);

    if (st != TUTTI_OK)
        return st;
    if (i < 0 || i >= recorder->n_groups)
        return no_entry("tutti_recorder_get_group", i, recorder->n_groups);
    slot = &recorder->groups[i].slot;
    mine = (tutti_recorder_group){
        .name = slot->name, .desc = slot->desc, .backend = slot->backend, .world = slot->world, .number = slot->number,
        .is_there = (slot->flags & TTI_GROUP_THERE) != 0, .has_failed = (slot->flags & TTI_GROUP_FAILED) != 0,
        .rank = slot->rank, .world_rank = slot->world_rank, .n_ranks = slot->size, .ranks = recorder->groups[i].ranks,
        .issued = slot->issued > slot->began ? slot->issued : slot->began, .began = slot->began, .ended = slot->ended, .messages = slot->messages,
        .world_id = slot->world_id, .generation = (int)(slot->generation & INT32_MAX),
        .world_size = (int)(slot->world_size & INT32_MAX), .follows = find_made(recorder, slot->follows),
    };
    hand_out(out, out->size, &mine, sizeof mine);
    return TUTTI_OK;
}

uint64_t tti_recorder_made_by(const tutti_recorder *recorder)
{
    uint64_t most = 0;
    int      i;

    for (i = 0; i < recorder->n_groups; i++)
        if (recorder->groups[i].slot.made > most)
            most = recorder->groups[i].slot.made;
    return most;
}

/* ---- records ---- */

const char *tti_record_kind_name(unsigned kind)
{
    switch (kind) {
    case TUTTI_RECORD_SEND: return "send";
    case TUTTI_RECORD_RECV: return "recv";
    case TUTTI_RECORD_MONITORED_BARRIER: return "monitored_barrier";
    case TUTTI_RECORD_NEW_GROUP: return "new_group";
    case TUTTI_RECORD_SPLIT_GROUP: return "split_group";
    case TUTTI_RECORD_SHRINK_GROUP: return "shrink_group";
    case TUTTI_RECORD_GROW_GROUP: return "grow_group";
    case TUTTI_RECORD_MERGE_GROUP: return "merge_remote_group";
    case TUTTI_RECORD_PUT: return "window_put";
    case TUTTI_RECORD_GET: return "window_get";
    case TUTTI_RECORD_SIGNAL: return "window_signal";
    case TUTTI_RECORD_WAIT_SIGNAL: return "window_wait_signal";
    case TUTTI_RECORD_FLUSH: return "window_flush";
    case TUTTI_RECORD_RECONFIGURE: return "reconfigure";
    case TUTTI_RECORD_RANGE: return "range";
    default: return tti_call_kind_name((tutti_call_kind)kind);
    }
}

/* Which group a record is of; NULL: it is not known. */
static const group *group_of(const tutti_recorder *r, const tutti_recorder_slot *s, int *index_out)
{
    const uint32_t place = (uint32_t)(s->call >> 32 & 0xffff);
    int            i;

    *index_out = -1;
    if ((s->call & 0xff) == TUTTI_RECORD_RANGE || place >= r->image.head.group_count)
        return NULL;
    i = r->group_at[place];
    if (i < 0 || s->began < r->groups[i].slot.made_ticks)
        return NULL;
    *index_out = i;
    return &r->groups[i];
}

static int global_rank(const group *g, uint64_t rank_above)
{
    const uint64_t rank = rank_above - 1;

    if (rank_above == 0 || g == NULL || g->ranks == NULL || rank >= (uint64_t)g->slot.size)
        return -1;
    return g->ranks[rank];
}

/* What this process reads and writes, where the record does not say: of n bytes, one member's part. */
static void derive_bytes(const tutti_recorder_slot *s, const group *g, tutti_record *out)
{
    const uint64_t n = s->count * tutti_dtype_size(out->dtype);
    const uint64_t all = g != NULL ? n * (uint64_t)g->slot.size : 0;
    const bool     is_root = g != NULL && (s->place & UINT32_MAX) == (uint64_t)g->slot.rank + 1;

    switch ((unsigned)out->kind) {
    case TUTTI_RECORD_ALL_REDUCE: out->in_bytes = out->out_bytes = n; break;
    case TUTTI_RECORD_BROADCAST: *(is_root ? &out->in_bytes : &out->out_bytes) = n; break;
    case TUTTI_RECORD_REDUCE: out->in_bytes = n; out->out_bytes = is_root ? n : 0; break;
    case TUTTI_RECORD_ALL_GATHER: out->in_bytes = n; out->out_bytes = all; break;
    case TUTTI_RECORD_GATHER: out->in_bytes = n; out->out_bytes = is_root ? all : 0; break;
    case TUTTI_RECORD_SCATTER: out->in_bytes = is_root ? all : 0; out->out_bytes = n; break;
    case TUTTI_RECORD_REDUCE_SCATTER: out->in_bytes = all; out->out_bytes = n; break;
    case TUTTI_RECORD_SEND:
    case TUTTI_RECORD_PUT: out->in_bytes = n; break;
    case TUTTI_RECORD_RECV:
    case TUTTI_RECORD_GET: out->out_bytes = n; break;
    default: break;
    }
}

static const char *name_of(const tutti_recorder *r, const tutti_recorder_slot *s)
{
    const uint64_t above = s->call >> 48;

    return above != 0 && above <= r->image.head.name_count ? r->names[above - 1] : "";
}

/* A number of the table; out of range is what 0 is. */
static unsigned within(uint64_t value, unsigned count)
{
    return value < count ? (unsigned)value : 0;
}

static void decode_call(const tutti_recorder *r, const tutti_recorder_slot *s, const group *g, tutti_record *out)
{
    out->id = s->id;
    out->kind = (tutti_record_kind)(s->call & 0xff);
    out->op = tti_record_kind_name(s->call & 0xff);
    out->name = name_of(r, s);
    out->dtype = (tutti_dtype)within(s->call >> 8 & 0xff, TUTTI_DTYPE_COUNT);
    out->reduce = (tutti_op_kind)within(s->call >> 16 & 0xff, TUTTI_OP_COUNT);
    out->seq = s->seq & TTI_SEQ_MASK;
    out->peer = global_rank(g, s->place & UINT32_MAX);
    out->tag = (int)(s->place >> 32 & INT32_MAX);
    out->count = (int64_t)(s->count & INT64_MAX);
    out->thread = out->kind == TUTTI_RECORD_RANGE ? (int64_t)(s->thread & INT64_MAX) : 0;
}

static void decode_times(const tutti_recorder *r, const tutti_recorder_slot *s, tutti_record *out)
{
    const unsigned flags = (unsigned)(s->state >> 16 & 0xffff);

    out->is_async = (flags & TUTTI_RECORD_ASYNC) != 0;
    out->is_quick = (flags & TUTTI_RECORD_QUICK) != 0;
    out->issued_ns = to_ns(r, s->began);
    if ((flags & TUTTI_RECORD_RAN) != 0)
        out->began_ns = to_ns(r, s->ran);
    else if (out->state != TUTTI_RECORD_ISSUED)
        out->began_ns = out->issued_ns;
    if (out->state == TUTTI_RECORD_DONE || out->state == TUTTI_RECORD_FAILED)
        out->ended_ns = out->is_quick ? 0 : to_ns(r, s->ended);
}

static void decode_record(const tutti_recorder *r, const tutti_recorder_slot *s, tutti_record *out)
{
    const unsigned flags = (unsigned)(s->state >> 16 & 0xffff);
    const group   *g;

    *out = (tutti_record){ .late = -1 };
    g = group_of(r, s, &out->group);
    decode_call(r, s, g, out);
    out->state = (tutti_record_state)within(s->state & 0xff, TUTTI_RECORD_FAILED + 1);
    if ((unsigned)out->state == 0)
        out->state = TUTTI_RECORD_ISSUED;
    out->status = (tutti_status)(s->state >> 8 & 0xff);
    decode_times(r, s, out);
    if ((flags & TUTTI_RECORD_BYTES) != 0) {
        out->in_bytes = s->in_bytes;
        out->out_bytes = s->out_bytes;
    } else {
        derive_bytes(s, g, out);
    }
    if ((flags & TUTTI_RECORD_WAITED) != 0) {
        out->late = global_rank(g, s->late);
        out->waited_ns = (int64_t)(s->waited_ns & INT64_MAX);
    }
    if ((flags & TUTTI_RECORD_LISTED) != 0) {
        out->is_listed = true;
        out->left_out[0] = s->left_out[0];
        out->left_out[1] = s->left_out[1];
    }
}

int tutti_recorder_count_records(const tutti_recorder *recorder)
{
    return recorder != NULL ? recorder->n_records : 0;
}

tutti_status tutti_recorder_get_record(const tutti_recorder *recorder, int i, tutti_record *out)
{
    tutti_record mine;
    tutti_status st = check_out("tutti_recorder_get_record", recorder, out != NULL ? &out->size : NULL, sizeof mine);

    if (st != TUTTI_OK)
        return st;
    if (i < 0 || i >= recorder->n_records)
        return no_entry("tutti_recorder_get_record", i, recorder->n_records);
    decode_record(recorder, &recorder->records[i], &mine);
    hand_out(out, out->size, &mine, sizeof mine);
    return TUTTI_OK;
}

/* ---- ranges ---- */

int tutti_recorder_count_ranges(const tutti_recorder *recorder)
{
    return recorder != NULL ? recorder->n_ranges : 0;
}

tutti_status tutti_recorder_get_range(const tutti_recorder *recorder, int i, tutti_range_total *out)
{
    tutti_range_total mine;
    tutti_status st = check_out("tutti_recorder_get_range", recorder, out != NULL ? &out->size : NULL, sizeof mine);

    if (st != TUTTI_OK)
        return st;
    if (i < 0 || i >= recorder->n_ranges)
        return no_entry("tutti_recorder_get_range", i, recorder->n_ranges);
    mine = (tutti_range_total){
        .name = recorder->ranges[i].slot.text,
        .calls = recorder->ranges[i].slot.ranges,
        .total_ns = span_ns(recorder, recorder->ranges[i].slot.ticks_total),
        .most_ns = span_ns(recorder, recorder->ranges[i].slot.ticks_most),
    };
    hand_out(out, out->size, &mine, sizeof mine);
    return TUTTI_OK;
}
