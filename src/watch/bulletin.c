/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulletin.c - a page of endings in memory without a name.
 *
 * How     head | endings, in the order in which they became known here
 *         The launcher maps it, and then forbids all further mappings that can be written: what a rank reads comes from its
 *         launcher. Ranks find the descriptor's number in TUTTI_LAUNCHER_FD, and look whether it is such memory: a program
 *         in between may have closed it, and given the number to something else.
 * True    Only the launcher writes. An ending is whole before `n` counts it (release), and never changes then; a reader that has
 *         seen the number (acquire) may copy it as it is. `first` is stored after the ending that it names, and `left` before
 *         `n`, so that who sees the last ending sees that it is the last.
 * Limits  ROOM_MAX endings; more are counted, each rank once, but not told. */
#include "watch/bulletin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define MAGIC UINT32_C(0x6c6c7562) /* "bull" */
#define NAME  "tutti-launcher"

enum { VERSION = 1, ROOM_MAX = 8192, CAUSE_TEXT_MAX = TTI_ENDING_TEXT_MAX + 80, OWN_TEXT_MAX = 512 };

typedef struct page {
    uint32_t         magic;
    uint16_t         version;
    uint16_t         ending_bytes;
    uint32_t         room;
    _Atomic uint32_t n;     /* endings that can be read */
    _Atomic uint32_t first; /* one more than the number of the first reason; 0: none */
    _Atomic uint32_t left;  /* ranks that have not ended */
    uint32_t         spare[2];
    tti_ending       endings[];
} page;

_Static_assert(offsetof(page, endings) == 32, "the page crosses processes");

struct tti_bulletin {
    page    *page;
    size_t   bytes;
    uint8_t *ended; /* [n_ranks] a launcher's: those that `left` does not count any more */
    int32_t  n_ranks;
};

static size_t bytes_of(uint32_t room)
{
    return sizeof(page) + (size_t)room * sizeof(tti_ending);
}

bool tti_ending_is_gone(const tti_ending *ending)
{
    return (ending->flags & TTI_ENDING_LAUNCHER) != 0 && ending->signal == 0;
}

const char *tti_ending_words(const tti_ending *ending, char out[TTI_ENDING_TEXT_MAX])
{
    const char *name = sigdescr_np(ending->signal);
    char        who[32];

    if (ending->rank >= 0)
        snprintf(who, sizeof who, "rank %d", ending->rank);
    else
        snprintf(who, sizeof who, "%s", (ending->flags & TTI_ENDING_LAUNCHER) != 0 ? "the launcher" : "a replacement");
    if (tti_ending_is_gone(ending))
        snprintf(out, TTI_ENDING_TEXT_MAX,
                 "%s (host '%.63s', pid %lld) is gone without a word, or out of reach, and its ranks with it", who, ending->host,
                 (long long)ending->pid);
    else if ((ending->flags & TTI_ENDING_LAUNCHER) != 0)
        snprintf(out, TTI_ENDING_TEXT_MAX, "%s (host '%.63s', pid %lld) got signal %d (%s), and ends its ranks", who, ending->host,
                 (long long)ending->pid, ending->signal, name != NULL ? name : "unknown");
    else if ((ending->flags & TTI_ENDING_UNKNOWN) != 0)
        snprintf(out, TTI_ENDING_TEXT_MAX, "%s (host '%.63s', pid %lld) has ended, or lost its way to the store,", who, ending->host,
                 (long long)ending->pid);
    else if (ending->signal != 0)
        snprintf(out, TTI_ENDING_TEXT_MAX, "%s (host '%.63s', pid %lld) was ended by signal %d (%s)", who, ending->host,
                 (long long)ending->pid, ending->signal, name != NULL ? name : "unknown");
    else
        snprintf(out, TTI_ENDING_TEXT_MAX, "%s (host '%.63s', pid %lld) ended with exit code %d", who, ending->host,
                 (long long)ending->pid, ending->exit_code);
    return out;
}

static tti_bulletin *bulletin_of(void *at, size_t bytes)
{
    tti_bulletin *bulletin = malloc(sizeof *bulletin);

    if (bulletin == NULL)
        munmap(at, bytes);
    else
        *bulletin = (tti_bulletin){ .page = at, .bytes = bytes };
    return bulletin;
}

void tti_bulletin_close(tti_bulletin *bulletin)
{
    if (bulletin == NULL)
        return;
    munmap(bulletin->page, bulletin->bytes);
    free(bulletin->ended);
    free(bulletin);
}

/* ---- of a rank ---- */

static bool is_named(int fd)
{
    static const char name[] = "/memfd:" NAME;
    char              link[40], target[64];
    ssize_t           got;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    got = readlink(link, target, sizeof target);
    return got >= (ssize_t)sizeof name - 1 && memcmp(target, name, sizeof name - 1) == 0;
}

/* What the launcher says it has made; -1: nothing, or it is not there. */
static int find_inherited(void)
{
    const char *text = tti_env("TUTTI_LAUNCHER_FD");
    char       *end = NULL;
    long        fd;

    if (text == NULL)
        return -1;
    fd = strtol(text, &end, 10);
    return end != text && *end == '\0' && fd > STDERR_FILENO && fd <= 1 << 20 && is_named((int)fd) ? (int)fd : -1;
}

tti_bulletin *tti_bulletin_open(void)
{
    const int   fd = find_inherited();
    struct stat about;
    page        head;
    void       *at;

    if (fd < 0 || fstat(fd, &about) != 0 || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return NULL;
    if (head.magic != MAGIC || head.version != VERSION || head.ending_bytes != sizeof(tti_ending) || head.room > ROOM_MAX ||
        about.st_size != (off_t)bytes_of(head.room))
        return NULL;
    at = mmap(NULL, bytes_of(head.room), PROT_READ, MAP_SHARED, fd, 0);
    return at != MAP_FAILED ? bulletin_of(at, bytes_of(head.room)) : NULL;
}

const _Atomic uint32_t *tti_bulletin_news(const tti_bulletin *bulletin)
{
    return &bulletin->page->n;
}

bool tti_bulletin_read(const tti_bulletin *bulletin, uint32_t i, tti_ending *out)
{
    const page *p = bulletin->page;

    if (i >= p->room || i >= atomic_load_explicit(&p->n, memory_order_acquire))
        return false;
    *out = p->endings[i];
    out->host[sizeof out->host - 1] = '\0';
    return true;
}

bool tti_bulletin_find_at(const tti_bulletin *bulletin, int node, int local, tti_ending *out)
{
    tti_ending ending;
    uint32_t   i;

    for (i = 0; tti_bulletin_read(bulletin, i, &ending); i++)
        if (ending.node == node && ending.local == local) {
            *out = ending;
            return true;
        }
    return false;
}

bool tti_bulletin_find(const tti_bulletin *bulletin, int rank, tti_ending *out)
{
    tti_ending ending;
    uint32_t   i;

    for (i = 0; tti_bulletin_read(bulletin, i, &ending); i++)
        if (rank >= 0 && ending.rank == rank) {
            *out = ending;
            return true;
        }
    return false;
}

bool tti_bulletin_first(const tti_bulletin *bulletin, tti_ending *out)
{
    const uint32_t first = atomic_load_explicit(&bulletin->page->first, memory_order_acquire);

    return first != 0 && tti_bulletin_read(bulletin, first - 1, out);
}

/* Why nobody need wait for the one that has ended so, and what to do. */
static void explain(const tti_bulletin *bulletin, const tti_ending *ending, char out[CAUSE_TEXT_MAX], const char **next_out)
{
    char       words[TTI_ENDING_TEXT_MAX];
    tti_ending first;

    if ((ending->flags & TTI_ENDING_ASKED) != 0 && tti_bulletin_first(bulletin, &first)) {
        snprintf(out, CAUSE_TEXT_MAX,
                 tti_ending_is_gone(&first) ? "%s, before rank %d joined"
                                            : "%s; because of that its launcher ended rank %d before it joined",
                 tti_ending_words(&first, words), ending->rank);
        *next_out = "see what the first of them wrote";
    } else {
        snprintf(out, CAUSE_TEXT_MAX, "%s before it joined, as its launcher reports", tti_ending_words(ending, words));
        *next_out = "see what that rank wrote; every rank has to call tutti_init_process_group()";
    }
}

tutti_status tti_bulletin_fail(const tti_bulletin *bulletin, const tti_ending *ending, int rank, int n_ranks)
{
    char        cause[CAUSE_TEXT_MAX];
    const char *next;

    explain(bulletin, ending, cause, &next);
    return tti_fail(TUTTI_E_PEER, "rank %d waits for the world of %d, which cannot be made: %s\n  next: %s", rank, n_ranks, cause,
                    next);
}

tutti_status tti_bulletin_fail_besides(const tti_bulletin *bulletin, const tti_ending *ending, int rank, int n_ranks)
{
    char        own[OWN_TEXT_MAX], cause[CAUSE_TEXT_MAX];
    const char *next;

    snprintf(own, sizeof own, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
    explain(bulletin, ending, cause, &next);
    return tti_fail(TUTTI_E_PEER,
                    "rank %d waits for the world of %d, which cannot be made: %s; and %s\n"
                    "  next: see which of the two came first: the one may be why the other happened",
                    rank, n_ranks, own, cause);
}

int tti_bulletin_left(const tti_bulletin *bulletin)
{
    return (int)atomic_load_explicit(&bulletin->page->left, memory_order_acquire);
}

/* Whether ending number i is the last of its host that says how many replacements there are. */
static bool is_latest(const tti_bulletin *bulletin, uint32_t i, int node)
{
    tti_ending later;

    while (tti_bulletin_read(bulletin, ++i, &later))
        if (later.node == node && later.coming > 0)
            return false;
    return true;
}

int tti_bulletin_coming(const tti_bulletin *bulletin)
{
    tti_ending ending;
    uint32_t   i;
    int        n = 0;

    for (i = 0; tti_bulletin_read(bulletin, i, &ending); i++)
        if (ending.coming > 1 && is_latest(bulletin, i, ending.node))
            n += ending.coming - 1;
    return n;
}

bool tti_bulletin_last(const tti_bulletin *bulletin, tti_ending *out)
{
    uint32_t i = atomic_load_explicit(&bulletin->page->n, memory_order_acquire);

    while (i-- > 0)
        if (tti_bulletin_read(bulletin, i, out) && (out->flags & TTI_ENDING_LAUNCHER) == 0)
            return true;
    return false;
}

/* Of the thread, because a wait is: the calls between who knows of a bulletin and who waits for a rank are a backend's. */
static _Thread_local const tti_bulletin *heeded;

void tti_bulletin_heed(const tti_bulletin *bulletin)
{
    heeded = bulletin;
}

const tti_bulletin *tti_bulletin_heeded(void)
{
    return heeded;
}

/* ---- of a launcher ---- */

static void *map_for_writing(int fd, size_t bytes)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    void     *at;

    errno = posix_fallocate(fd, 0, (off_t)bytes); /* pages now: a shortage later would kill the process */
    if (errno != 0)
        return NULL;
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (fcntl(fd, F_ADD_SEALS, seals) == 0)
        return at;
    (void)munmap(at, bytes); /* which leaves errno as it is */
    return NULL;
}

tutti_status tti_bulletin_make(int n_ranks, int n_processes, tti_bulletin **bulletin_out, int *fd_out)
{
    const uint32_t room = n_processes < ROOM_MAX ? (uint32_t)n_processes : ROOM_MAX;
    const size_t   bytes = bytes_of(room);
    const int      fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    page          *at = fd >= 0 ? map_for_writing(fd, bytes) : NULL;
    tti_bulletin  *bulletin;

    if (at == NULL) {
        if (fd >= 0)
            close(fd);
        return tti_fail_errno(errno, "cannot make %zu bytes of memory for the ends of ranks", bytes);
    }
    at->version = VERSION;
    at->ending_bytes = sizeof(tti_ending);
    at->room = room;
    atomic_init(&at->left, (uint32_t)n_ranks);
    at->magic = MAGIC;
    bulletin = bulletin_of(at, bytes);
    if (bulletin != NULL) {
        bulletin->n_ranks = n_ranks;
        bulletin->ended = calloc((size_t)n_ranks, sizeof *bulletin->ended);
    }
    if (bulletin == NULL || bulletin->ended == NULL) {
        tti_bulletin_close(bulletin);
        close(fd);
        return tti_fail(TUTTI_E_NOMEM, "no memory for the ends of ranks");
    }
    *bulletin_out = bulletin;
    *fd_out = fd;
    return TUTTI_OK;
}

/* One more than the number of what is known of that place; 0: nothing. */
static uint32_t known_at(const page *p, const tti_ending *ending)
{
    const uint32_t n = atomic_load_explicit(&p->n, memory_order_relaxed); /* ours */
    uint32_t       i;

    for (i = 0; i < n; i++)
        if (p->endings[i].node == ending->node && p->endings[i].local == ending->local)
            return i + 1;
    return 0;
}

/* Of a rank that had not ended yet: one less is left. Whoever was told of without room comes here again, as unknown. */
static void count(tti_bulletin *bulletin, int32_t rank)
{
    if (rank < 0 || rank >= bulletin->n_ranks || bulletin->ended[rank])
        return;
    bulletin->ended[rank] = 1;
    atomic_fetch_sub_explicit(&bulletin->page->left, 1, memory_order_release);
}

static uint32_t add(page *p, const tti_ending *ending)
{
    const uint32_t n = atomic_load_explicit(&p->n, memory_order_relaxed);

    if (n == p->room)
        return 0;
    p->endings[n] = *ending;
    atomic_store_explicit(&p->n, n + 1, memory_order_release);
    return n + 1;
}

void tti_bulletin_post(tti_bulletin *bulletin, const tti_ending *ending)
{
    page    *p = bulletin->page;
    uint32_t at = known_at(p, ending);

    count(bulletin, ending->rank);
    if (at == 0)
        at = add(p, ending);
    if ((ending->flags & TTI_ENDING_FIRST) != 0 && at != 0 && atomic_load_explicit(&p->first, memory_order_relaxed) == 0)
        atomic_store_explicit(&p->first, at, memory_order_release);
}
