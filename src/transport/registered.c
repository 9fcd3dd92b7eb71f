/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registered.c - memory that its owner may lend to other processes of the host.
 *
 * Why     A peer can write straight into memory that it has mapped, so memory meant for that comes from a place
 *         that peers can map: one sparse memfd per process, sealed in size, without a name.
 * How     Descriptors are exchanged when a world is made (meet_local.c), which costs nothing yet; the owner
 *         maps its heap with the first tutti_alloc(), others map it with the first window that needs it. The
 *         list of pieces is the owner's private memory: nothing that a peer writes can confuse it.
 *         Ranks that are threads share the one heap and its one mapping, so that a race detector sees
 *         through it.
 * True    `own` is state per process, because tutti_alloc() is a local call whose memory serves all worlds of the
 *         process. Its lock guards all of it; nothing is left of it when neither a world nor a piece is.
 *         A piece is free to be handed out again only when nobody else can still write to its pages:
 *
 *           owned  --- lend --->  lent  --- take back, agreed --->  owned  --- free --->  (zeroed, reused)
 *                                  |
 *                                  +--- take back, not agreed --->  cut off  --- free --->  buried
 *
 *         Cut off: private pages with a copy of the contents are moved over the piece by mremap, in one step.
 *         A stopped process that goes on later writes into the old pages, which nobody reads. Its range of the
 *         heap is never used again (buried); the range is address space, not memory, and ends with the heap.
 * Fails   Without memory for the copy the piece stays as it is, and its range is never used again either.
 * Fork    A child inherits the pages, not the list: what it allocates comes from a heap of its own. */
#include "transport/registered.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/thread.h"

enum { PAGE = 4096, LARGE = 2 << 20, TRIES = 1000 };

#define BYTES_MIN (UINT64_C(4) << 30)
#define BYTES_MAX (UINT64_C(1) << 40)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

typedef enum piece_state { PIECE_OWNED, PIECE_LENT, PIECE_CUT_OFF, PIECE_BURIED } piece_state;

typedef struct piece {
    uint64_t    offset;
    uint64_t    bytes; /* whole pages */
    piece_state state;
} piece;

typedef struct heap {
    pid_t    pid; /* who made it */
    int      refs; /* worlds, and pieces that are not buried; 0: there is none */
    int      fd;
    uint64_t bytes;
    uint8_t *base; /* NULL: not mapped yet */
    piece   *pieces; /* [n], by offset */
    size_t   n, max;
} heap;

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER; /* guards own */
static heap            own;

struct tti_foreign {
    uint8_t *base;
    uint64_t bytes;
    bool     ours;
};

/* ---- the heap -------------------------------------------------------------------------------------- */

/* As much as the machine has memory: it is only address space. */
static uint64_t heap_bytes(void)
{
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t       bytes = BYTES_MIN;

    while (bytes < memory && bytes < BYTES_MAX)
        bytes *= 2;
    return bytes;
}

static tutti_status make_heap(void)
{
    const uint64_t bytes = heap_bytes();
    const int      fd = memfd_create("tutti-registered", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int            err;

    if (fd < 0)
        return tti_fail_errno(errno, "cannot create a heap of registered memory");
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        err = errno;
        close(fd);
        return tti_fail_errno(err, "cannot make a heap of registered memory of %llu GiB",
                              (unsigned long long)(bytes >> 30));
    }
    own = (heap){ .pid = getpid(), .fd = fd, .bytes = bytes };
    return TUTTI_OK;
}

/* Lock held, also below. A forked child begins anew; the pages it inherited stay where they are. */
static tutti_status hold(void)
{
    tutti_status st;

    if (own.refs > 0 && own.pid != getpid()) {
        close(own.fd);
        free(own.pieces);
        own = (heap){ .refs = 0 };
    }
    if (own.refs == 0) {
        st = make_heap();
        if (st != TUTTI_OK)
            return st;
    }
    own.refs++;
    return TUTTI_OK;
}

static void drop(void)
{
    if (own.refs == 0 || own.pid != getpid() || --own.refs > 0)
        return;
    if (own.base != NULL)
        munmap(own.base, own.bytes);
    close(own.fd);
    free(own.pieces);
    own = (heap){ .refs = 0 };
}

/* All of fd, at a multiple of LARGE. */
static void *map_large(int fd, uint64_t bytes)
{
    uint8_t *room = mmap(NULL, bytes + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *base;

    if (room == MAP_FAILED)
        return MAP_FAILED;
    base = room + (LARGE - (uintptr_t)room % LARGE) % LARGE;
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(room, bytes + LARGE);
        return MAP_FAILED;
    }
    if (base > room)
        munmap(room, (size_t)(base - room));
    if (base < room + LARGE)
        munmap(base + bytes, (size_t)(room + LARGE - base));
    return base;
}

static tutti_status map_own(void)
{
    void *base;

    if (own.base != NULL)
        return TUTTI_OK;
    base = map_large(own.fd, own.bytes);
    if (base == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map a heap of registered memory: %llu GiB of address space",
                              (unsigned long long)(own.bytes >> 30));
    own.base = base;
    return TUTTI_OK;
}

tutti_status tti_registered_hold(int *fd_out)
{
    tutti_status st;

    pthread_mutex_lock(&own_lock);
    st = hold();
    if (st == TUTTI_OK)
        *fd_out = own.fd;
    pthread_mutex_unlock(&own_lock);
    return st;
}

void tti_registered_drop(void)
{
    pthread_mutex_lock(&own_lock);
    drop();
    pthread_mutex_unlock(&own_lock);
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

/* The piece with [data, data + bytes) in it; NULL: none. Lock held, also below. */
static piece *find_piece(const void *data, size_t bytes)
{
    const uintptr_t base = (uintptr_t)own.base;
    const uintptr_t at = (uintptr_t)data;
    size_t          low = 0, high = own.n;

    if (own.refs == 0 || own.pid != getpid() || own.base == NULL || at < base || at - base >= own.bytes)
        return NULL;
    while (low < high) { /* the last piece that begins at or before it */
        const size_t middle = (low + high) / 2;

        if (own.pieces[middle].offset <= at - base)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || bytes > own.pieces[low - 1].bytes ||
        at - base - own.pieces[low - 1].offset > own.pieces[low - 1].bytes - bytes)
        return NULL;
    return own.pieces[low - 1].state != PIECE_BURIED ? &own.pieces[low - 1] : NULL;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* The first gap that is large enough. */
static bool find_gap(uint64_t bytes, uint64_t align, uint64_t *offset_out, size_t *index_out)
{
    uint64_t at = 0;
    size_t   i;

    for (i = 0; i < own.n; i++) {
        if (own.pieces[i].offset >= at && own.pieces[i].offset - at >= bytes)
            break;
        at = round_up(own.pieces[i].offset + own.pieces[i].bytes, align);
    }
    if (at > own.bytes || own.bytes - at < bytes)
        return false;
    *offset_out = at;
    *index_out = i;
    return true;
}

static tutti_status no_room(size_t bytes)
{
    uint64_t used = 0;
    size_t   i;

    for (i = 0; i < own.n; i++)
        used += own.pieces[i].bytes;
    return tti_fail(TUTTI_E_NOMEM,
                    "no room for %zu bytes of registered memory: the heap has %llu MiB, %zu pieces use %llu MiB",
                    bytes, (unsigned long long)(own.bytes >> 20), own.n, (unsigned long long)(used >> 20));
}

static tutti_status add_piece(size_t bytes, uint64_t rounded, uint64_t *offset_out)
{
    uint64_t offset = 0;
    size_t   i = 0;
    piece   *grown;

    if (own.n == own.max) {
        grown = realloc(own.pieces, (own.max * 2 + 16) * sizeof *grown);
        if (grown == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for the list of registered memory");
        own.pieces = grown;
        own.max = own.max * 2 + 16;
    }
    if (!find_gap(rounded, rounded >= LARGE ? LARGE : PAGE, &offset, &i))
        return no_room(bytes);
    memmove(&own.pieces[i + 1], &own.pieces[i], (own.n - i) * sizeof *own.pieces);
    own.pieces[i] = (piece){ .offset = offset, .bytes = rounded, .state = PIECE_OWNED };
    own.n++;
    *offset_out = offset;
    return TUTTI_OK;
}

static void give_pages_back(const piece *p)
{
    fallocate(own.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->offset, (off_t)p->bytes);
}

static void remove_piece(piece *p)
{
    give_pages_back(p);
    memmove(p, p + 1, (size_t)(own.pieces + own.n - (p + 1)) * sizeof *p);
    own.n--;
}

/* Its addresses stay taken, its memory goes. */
static void bury(piece *p)
{
    mmap(own.base + p->offset, p->bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    give_pages_back(p);
    p->state = PIECE_BURIED;
}

/* A signal interrupts a reservation, which the kernel then undoes: so it is made in small steps, each tried
 * again, and timers that tick faster than a step end it after TRIES. Returns an errno. */
static int reserve(uint64_t offset, uint64_t bytes)
{
    const uint64_t end = offset + bytes;
    uint64_t       step;
    int            tries = 0, err = 0;

    while (offset < end && err == 0) {
        step = end - offset < LARGE ? end - offset : LARGE;
        err = posix_fallocate(own.fd, (off_t)offset, (off_t)step);
        if (err == 0) {
            offset += step;
            tries = 0;
        } else if (err == EINTR && ++tries < TRIES) {
            err = 0;
        }
    }
    return err;
}

static tutti_status take(size_t bytes, void **ptr_out)
{
    uint64_t     rounded = round_up(bytes, PAGE);
    uint64_t     offset = 0;
    tutti_status st = map_own();
    int          err;

    if (st == TUTTI_OK && bytes > own.bytes)
        st = no_room(bytes);
    if (st == TUTTI_OK)
        st = add_piece(bytes, rounded, &offset);
    if (st != TUTTI_OK)
        return st;
    err = reserve(offset, rounded);
    if (err != 0) {
        remove_piece(find_piece(own.base + offset, 1));
        return tti_fail_errno_as(TUTTI_E_NOMEM, err, "cannot reserve %zu bytes of registered memory", bytes);
    }
    *ptr_out = own.base + offset;
    return TUTTI_OK;
}

tutti_status tutti_alloc(size_t bytes, void **ptr_out)
{
    tutti_status st;

    if (bytes == 0 || ptr_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_alloc: %s", bytes == 0 ? "bytes is 0" : "ptr_out is NULL");
    pthread_mutex_lock(&own_lock);
    st = hold();
    if (st == TUTTI_OK) {
        st = take(bytes, ptr_out);
        if (st != TUTTI_OK)
            drop();
    }
    pthread_mutex_unlock(&own_lock);
    return st;
}

static tutti_status free_piece(void *ptr)
{
    piece *p = find_piece(ptr, 1);

    if (p == NULL || own.base + p->offset != ptr)
        return tti_fail(TUTTI_E_ARG, "tutti_free: %p is not what tutti_alloc() gave, or was freed already", ptr);
    if (p->state == PIECE_LENT)
        return tti_fail(TUTTI_E_STATE,
                        "tutti_free: the memory at %p stands in a window\n  next: tutti_window_deregister()", ptr);
    if (p->state == PIECE_CUT_OFF)
        bury(p);
    else
        remove_piece(p);
    drop();
    return TUTTI_OK;
}

tutti_status tutti_free(void *ptr)
{
    tutti_status st;

    if (ptr == NULL)
        return TUTTI_OK;
    pthread_mutex_lock(&own_lock);
    st = free_piece(ptr);
    pthread_mutex_unlock(&own_lock);
    return st;
}

bool tutti_is_registered(const void *ptr, size_t bytes)
{
    const piece *p;
    bool         yes;

    pthread_mutex_lock(&own_lock);
    p = find_piece(ptr, bytes);
    yes = p != NULL && p->state != PIECE_CUT_OFF;
    pthread_mutex_unlock(&own_lock);
    return yes;
}

/* ---- lending --------------------------------------------------------------------------------------- */

static tutti_status lend(const void *data, size_t bytes, uint64_t *offset_out)
{
    piece *p = find_piece(data, bytes);

    if (p == NULL || p->state == PIECE_CUT_OFF)
        return tti_fail(TUTTI_E_ARG, "the %zu bytes at %p are not registered memory%s", bytes, data,
                        p != NULL ? " any more: they stood in a window whose group failed"
                                  : "\n  next: take them from tutti_alloc()");
    if (p->state == PIECE_LENT)
        return tti_fail(TUTTI_E_STATE, "the memory at %p stands in a window already", data);
    p->state = PIECE_LENT;
    *offset_out = (uint64_t)((const uint8_t *)data - own.base);
    return TUTTI_OK;
}

tutti_status tti_registered_lend(const void *data, size_t bytes, uint64_t *offset_out)
{
    tutti_status st;

    pthread_mutex_lock(&own_lock);
    st = lend(data, bytes, offset_out);
    pthread_mutex_unlock(&own_lock);
    return st;
}

/* Stores that other threads of this process make between copy and move are lost: the group has failed, and
 * what was under way on its memory is undefined. */
static void cut_off(piece *p)
{
    uint8_t *at = own.base + p->offset;
    void    *fresh = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    p->state = PIECE_CUT_OFF; /* whatever happens: others may still write there */
    if (fresh == MAP_FAILED) {
        tti_log(TTI_LOG_WARN, "no memory to cut other ranks off from %llu bytes at %p",
                (unsigned long long)p->bytes, (void *)at);
        return;
    }
    memcpy(fresh, at, p->bytes);
    if (mremap(fresh, p->bytes, p->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
        tti_log(TTI_LOG_WARN, "cannot cut other ranks off from %llu bytes at %p: %s",
                (unsigned long long)p->bytes, (void *)at, strerror(errno));
        munmap(fresh, p->bytes);
        return;
    }
    give_pages_back(p);
}

void tti_registered_take_back(const void *data, bool agreed)
{
    piece *p;

    pthread_mutex_lock(&own_lock);
    p = find_piece(data, 1);
    if (p != NULL && p->state == PIECE_LENT) {
        if (agreed)
            p->state = PIECE_OWNED;
        else
            cut_off(p);
    }
    pthread_mutex_unlock(&own_lock);
}

/* ---- others' heaps --------------------------------------------------------------------------------- */

/* Lock held. */
static bool is_own(const struct stat *info)
{
    struct stat mine;

    return own.refs > 0 && own.pid == getpid() && fstat(own.fd, &mine) == 0 && mine.st_dev == info->st_dev &&
           mine.st_ino == info->st_ino;
}

bool tti_registered_is(int fd)
{
    struct stat info;
    bool        yes;

    pthread_mutex_lock(&own_lock);
    yes = fstat(fd, &info) == 0 && is_own(&info);
    pthread_mutex_unlock(&own_lock);
    return yes;
}

static tutti_status check_heap(int fd, struct stat *info_out)
{
    if (fstat(fd, info_out) != 0)
        return tti_fail_errno(errno, "cannot look at the descriptor of registered memory");
    if (info_out->st_size < (off_t)BYTES_MIN || info_out->st_size > (off_t)BYTES_MAX ||
        info_out->st_size % LARGE != 0 || (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
        return tti_fail(TUTTI_E_AUTH, "a peer sent a descriptor that is no sealed heap of registered memory");
    return TUTTI_OK;
}

static tutti_status map_foreign(int fd, const struct stat *info, tti_foreign *foreign)
{
    tutti_status st = TUTTI_OK;
    void        *base;

    foreign->bytes = (uint64_t)info->st_size;
    pthread_mutex_lock(&own_lock);
    foreign->ours = is_own(info);
    if (foreign->ours) {
        st = map_own();
        foreign->base = own.base;
    }
    pthread_mutex_unlock(&own_lock);
    if (foreign->ours)
        return st;
    base = map_large(fd, foreign->bytes);
    if (base == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map a peer's registered memory: %llu GiB of address space",
                              (unsigned long long)(foreign->bytes >> 30));
    foreign->base = base;
    return TUTTI_OK;
}

tutti_status tti_foreign_map(int fd, tti_foreign **foreign_out)
{
    tti_foreign *foreign;
    struct stat  info;
    tutti_status st = check_heap(fd, &info);

    if (st != TUTTI_OK)
        return st;
    foreign = calloc(1, sizeof *foreign);
    if (foreign == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the handle of a peer's registered memory");
    st = map_foreign(fd, &info, foreign);
    if (st != TUTTI_OK) {
        free(foreign);
        return st;
    }
    *foreign_out = foreign;
    return TUTTI_OK;
}

void tti_foreign_free(tti_foreign *foreign)
{
    if (foreign != NULL && !foreign->ours)
        munmap(foreign->base, foreign->bytes);
    free(foreign);
}

bool tti_foreign_is_ours(const tti_foreign *foreign)
{
    return foreign->ours;
}

void *tti_foreign_at(const tti_foreign *foreign, uint64_t offset, size_t bytes)
{
    if (offset > foreign->bytes || bytes > foreign->bytes - offset)
        return NULL;
    return foreign->base + offset;
}
