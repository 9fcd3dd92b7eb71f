/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registered.c - memory that its owner may lend to other processes of the host: the heap, its pieces.
 *
 * Why     A peer can write straight into memory that it has mapped, so memory meant for that comes from a place
 *         that peers can map: one sparse memfd per process, sealed in size, without a name.
 * How     Descriptors are exchanged when a world is made (meet_local.c), which costs nothing yet; the owner
 *         maps its heap with the first tutti_alloc(), others map it with the first window or collective that
 *         needs it (foreign.c). Who may reach a piece, and until when, is lent.c's. The
 *         list of pieces is the owner's private memory: nothing that a peer writes can confuse it.
 *         Ranks that are threads share the one heap and its one mapping, so that a race detector sees
 *         through it.
 * True    The heap is state per process, because tutti_alloc() is a local call whose memory serves all worlds of the
 *         process. Its lock guards all of it; nothing is left of it when neither a world nor a piece is.
 * Fork    A child inherits the pages, not the list: what it allocates comes from a heap of its own. */
#include "transport/registered_core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/fork.h"

pthread_mutex_t tti_registered_lock = PTHREAD_MUTEX_INITIALIZER;
registered_heap tti_registered;

static void before_fork(void)
{
    pthread_mutex_lock(&tti_registered_lock);
}

static void after_fork(bool in_child)
{
    if (in_child)
        tti_registered.fd = -1; /* it was closed; is_mine() tells that the rest is the parent's */
    pthread_mutex_unlock(&tti_registered_lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

/* Whether there was ever a piece: a hint for who asks often, without the lock. */
static _Atomic bool ever;

/* ---- the heap -------------------------------------------------------------------------------------- */

/* As much as the machine has memory: it is only address space. */
static uint64_t heap_bytes(void)
{
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t       bytes = TTI_REGISTERED_BYTES_MIN;

    while (bytes < memory && bytes < TTI_REGISTERED_BYTES_MAX)
        bytes *= 2;
    return bytes;
}

/* Whether there is a heap, and it is this process's, not that of one that it was forked from. Asked in every
 * collective on registered memory: a load, where getpid() is a system call. */
static bool is_mine(void)
{
    return tti_registered.refs > 0 && *tti_registered.mine != 0;
}

static tutti_status make_mark(volatile uint8_t **mark_out)
{
    uint8_t *page = mmap(NULL, TTI_REGISTERED_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int      err;

    if (page == MAP_FAILED)
        return tti_fail_errno(errno, "no memory for a heap of registered memory");
    if (madvise(page, TTI_REGISTERED_PAGE, MADV_WIPEONFORK) != 0) {
        err = errno;
        munmap(page, TTI_REGISTERED_PAGE);
        return tti_fail_errno(err, "cannot mark a heap of registered memory as this process's own");
    }
    *page = 1;
    *mark_out = page;
    return TUTTI_OK;
}

static tutti_status make_heap(void)
{
    const uint64_t bytes = heap_bytes();
    const int      fd = memfd_create("tutti-registered", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    volatile uint8_t *mark = NULL;
    tutti_status   st;
    int            err;

    if (fd < 0)
        return tti_fail_errno(errno, "cannot create a heap of registered memory");
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, TTI_REGISTERED_SEALS) != 0) {
        err = errno;
        close(fd);
        return tti_fail_errno(err, "cannot make a heap of registered memory of %llu GiB",
                              (unsigned long long)(bytes >> 30));
    }
    st = make_mark(&mark);
    if (st != TUTTI_OK) {
        close(fd);
        return st;
    }
    tti_registered = (registered_heap){ .mine = mark, .fd = fd, .bytes = bytes };
    tti_fork_own(fd); /* a child would keep all of the heap's pages */
    return TUTTI_OK;
}

static void forget(void)
{
    munmap((void *)(uintptr_t)tti_registered.mine, TTI_REGISTERED_PAGE);
    tti_fork_disown(tti_registered.fd);
    if (tti_registered.fd >= 0)
        close(tti_registered.fd);
    free(tti_registered.pieces);
    tti_registered = (registered_heap){ .refs = 0 };
}

/* Lock held, also below. A forked child begins anew; the pages it inherited stay where they are. */
static tutti_status hold(void)
{
    tutti_status st;

    tti_fork_guard(&fork_part);
    if (tti_registered.refs > 0 && !is_mine())
        forget();
    if (tti_registered.refs == 0) {
        st = make_heap();
        if (st != TUTTI_OK)
            return st;
    }
    tti_registered.refs++;
    return TUTTI_OK;
}

static void drop(void)
{
    if (!is_mine() || --tti_registered.refs > 0)
        return;
    if (tti_registered.base != NULL)
        munmap(tti_registered.base, tti_registered.bytes);
    forget();
}

tutti_status tti_registered_map(void)
{
    void *base;

    if (tti_registered.base != NULL)
        return TUTTI_OK;
    base = tti_registered_map_large(tti_registered.fd, tti_registered.bytes);
    if (base == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map a heap of registered memory: %llu GiB of address space",
                              (unsigned long long)(tti_registered.bytes >> 30));
    tti_registered.base = base;
    return TUTTI_OK;
}

tutti_status tti_registered_hold(int *fd_out)
{
    tutti_status st;

    pthread_mutex_lock(&tti_registered_lock);
    st = hold();
    if (st == TUTTI_OK)
        *fd_out = tti_registered.fd;
    pthread_mutex_unlock(&tti_registered_lock);
    return st;
}

void tti_registered_drop(void)
{
    pthread_mutex_lock(&tti_registered_lock);
    drop();
    pthread_mutex_unlock(&tti_registered_lock);
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

/* The piece with [data, data + bytes) in it; NULL: none. Lock held, also below. */
piece *tti_piece_find(const void *data, size_t bytes)
{
    const uintptr_t base = (uintptr_t)tti_registered.base;
    const uintptr_t at = (uintptr_t)data;
    size_t          low = 0, high = tti_registered.n;

    if (!is_mine() || tti_registered.base == NULL || at < base || at - base >= tti_registered.bytes)
        return NULL;
    while (low < high) { /* the last piece that begins at or before it */
        const size_t middle = (low + high) / 2;

        if (tti_registered.pieces[middle].offset <= at - base)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || bytes > tti_registered.pieces[low - 1].bytes ||
        at - base - tti_registered.pieces[low - 1].offset > tti_registered.pieces[low - 1].bytes - bytes)
        return NULL;
    return tti_registered.pieces[low - 1].state != PIECE_BURIED ? &tti_registered.pieces[low - 1] : NULL;
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

    for (i = 0; i < tti_registered.n; i++) {
        if (tti_registered.pieces[i].offset >= at && tti_registered.pieces[i].offset - at >= bytes)
            break;
        at = round_up(tti_registered.pieces[i].offset + tti_registered.pieces[i].bytes, align);
    }
    if (at > tti_registered.bytes || tti_registered.bytes - at < bytes)
        return false;
    *offset_out = at;
    *index_out = i;
    return true;
}

static tutti_status no_room(size_t bytes)
{
    uint64_t used = 0;
    size_t   i;

    for (i = 0; i < tti_registered.n; i++)
        used += tti_registered.pieces[i].bytes;
    return tti_fail(TUTTI_E_NOMEM,
                    "no room for %zu bytes of registered memory: the heap has %llu MiB, %zu pieces use %llu MiB",
                    bytes, (unsigned long long)(tti_registered.bytes >> 20), tti_registered.n,
                    (unsigned long long)(used >> 20));
}

static tutti_status add_piece(size_t bytes, uint64_t rounded, uint64_t *offset_out)
{
    uint64_t offset = 0;
    size_t   i = 0;
    piece   *grown;

    if (tti_registered.n == tti_registered.max) {
        grown = realloc(tti_registered.pieces, (tti_registered.max * 2 + 16) * sizeof *grown);
        if (grown == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for the list of registered memory");
        tti_registered.pieces = grown;
        tti_registered.max = tti_registered.max * 2 + 16;
    }
    if (!find_gap(rounded, rounded >= TTI_REGISTERED_LARGE ? TTI_REGISTERED_LARGE : TTI_REGISTERED_PAGE, &offset, &i))
        return no_room(bytes);
    memmove(&tti_registered.pieces[i + 1], &tti_registered.pieces[i],
            (tti_registered.n - i) * sizeof *tti_registered.pieces);
    tti_registered.pieces[i] = (piece){ .offset = offset, .bytes = rounded, .state = PIECE_OWNED };
    tti_registered.n++;
    atomic_store_explicit(&ever, true, memory_order_relaxed);
    *offset_out = offset;
    return TUTTI_OK;
}

static void remove_piece(piece *p)
{
    tti_registered_dump(p->offset, p->bytes, false);
    tti_registered_punch(p->offset, p->bytes);
    memmove(p, p + 1, (size_t)(tti_registered.pieces + tti_registered.n - (p + 1)) * sizeof *p);
    tti_registered.n--;
}

/* Its addresses stay taken, its memory goes. */
static void bury(piece *p)
{
    mmap(tti_registered.base + p->offset, p->bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    tti_registered_punch(p->offset, p->bytes);
    p->state = PIECE_BURIED;
}

static tutti_status take(size_t bytes, void **ptr_out)
{
    uint64_t     rounded = round_up(bytes, TTI_REGISTERED_PAGE);
    uint64_t     offset = 0;
    tutti_status st = tti_registered_map();
    int          err;

    if (st == TUTTI_OK && bytes > tti_registered.bytes)
        st = no_room(bytes);
    if (st == TUTTI_OK)
        st = add_piece(bytes, rounded, &offset);
    if (st != TUTTI_OK)
        return st;
    err = tti_registered_reserve(offset, rounded);
    if (err != 0) {
        remove_piece(tti_piece_find(tti_registered.base + offset, 1));
        return tti_fail_errno_as(TUTTI_E_NOMEM, err, "cannot reserve %zu bytes of registered memory", bytes);
    }
    tti_registered_dump(offset, rounded, true);
    *ptr_out = tti_registered.base + offset;
    return TUTTI_OK;
}

tutti_status tutti_alloc(size_t bytes, void **ptr_out)
{
    tutti_status st;

    if (bytes == 0 || ptr_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_alloc: %s", bytes == 0 ? "bytes is 0" : "ptr_out is NULL");
    pthread_mutex_lock(&tti_registered_lock);
    st = hold();
    if (st == TUTTI_OK) {
        st = take(bytes, ptr_out);
        if (st != TUTTI_OK)
            drop();
    }
    pthread_mutex_unlock(&tti_registered_lock);
    return st;
}

static tutti_status free_piece(void *ptr)
{
    piece *p = tti_piece_find(ptr, 1);

    if (p == NULL || tti_registered.base + p->offset != ptr)
        return tti_fail(TUTTI_E_ARG, "tutti_free: %p is not what tutti_alloc() gave, or was freed already", ptr);
    if (p->users > 0)
        return tti_fail(TUTTI_E_STATE,
                        "tutti_free: a collective is under way on the memory at %p\n  next: wait for it", ptr);
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
    pthread_mutex_lock(&tti_registered_lock);
    st = free_piece(ptr);
    pthread_mutex_unlock(&tti_registered_lock);
    return st;
}

bool tutti_is_registered(const void *ptr, size_t bytes)
{
    const piece *p;
    bool         yes;

    pthread_mutex_lock(&tti_registered_lock);
    p = tti_piece_find(ptr, bytes);
    yes = p != NULL && p->state != PIECE_CUT_OFF;
    pthread_mutex_unlock(&tti_registered_lock);
    return yes;
}

bool tti_registered_is_own(const struct stat *info)
{
    struct stat mine;

    return is_mine() && fstat(tti_registered.fd, &mine) == 0 && mine.st_dev == info->st_dev &&
           mine.st_ino == info->st_ino;
}

bool tti_registered_any(void)
{
    return atomic_load_explicit(&ever, memory_order_relaxed);
}

bool tti_registered_is(int fd)
{
    struct stat info;
    bool        yes;

    pthread_mutex_lock(&tti_registered_lock);
    yes = fstat(fd, &info) == 0 && tti_registered_is_own(&info);
    pthread_mutex_unlock(&tti_registered_lock);
    return yes;
}
