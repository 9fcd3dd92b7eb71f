/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heap.c - one sealed memfd per member, mapped by all members of the host.
 *
 * Layout  page 0: tti_heap_head; then the directory (64-bit words, whoever made the heap says what they
 *         mean); then, from the next page on, regions.
 * Regions Only the owner hands them out, from a sorted list of extents in its private memory: nothing a
 *         peer writes can confuse it. Pages are reserved when a region is made (a shortage is an error
 *         there, not a killed process later) and punched out when it is given back, so a region starts
 *         with zeroes. A retired region waits in the list until its last reader has left.
 * Sharing Two mappings of one memfd inside one process would hide every race from a race detector, and
 *         ranks may be threads. Mappings are therefore shared per process, found by the inode. This list
 *         is the only state per process of the transport; it is guarded by its lock and holds nothing
 *         once all heaps are freed.
 * Gone    kill -9 leaves nothing: the memory has no name. */
#include "transport/heap.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/fork.h"
#include "base/thread.h"

enum { HEAP_VERSION = 4, PAGE = 4096 };

#define HEAP_MAGIC UINT32_C(0x70616574) /* "teap" */
#define HEAP_BYTES (UINT64_C(1) << 30) /* of address space: some 400 groups. Memory is what its regions take */
#define HEAP_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

_Static_assert(sizeof(tti_heap_head) <= PAGE, "the head fits the first page");

typedef struct mapping {
    struct mapping *next;
    dev_t           dev;
    ino_t           ino;
    uint8_t        *base;
    int             refs;
} mapping;

typedef struct extent {
    uint64_t         offset;
    uint64_t         bytes;
    tti_heap_unused *unused; /* NULL: not retired */
    uint64_t         arg;    /* of unused */
} extent;

struct tti_heap {
    int       fd;
    mapping  *map;
    uint64_t  regions_at; /* offset of the first byte behind the directory */
    bool      owner;
    tti_mutex lock; /* guards the extents */
    extent   *extents;
    size_t    n_extents;
    size_t    extents_max;
};

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER; /* guards mappings and every refs */
static mapping        *mappings;

static void before_fork(void)
{
    pthread_mutex_lock(&mappings_lock);
}

/* A child has none of them: MADV_DONTFORK. */
static void after_fork(bool in_child)
{
    if (in_child)
        mappings = NULL;
    pthread_mutex_unlock(&mappings_lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

bool tti_is_sealed_memory(int fd, int seals)
{
    struct statfs fs;
    const int     have = fcntl(fd, F_GET_SEALS);

    return have >= 0 && (have & seals) == seals && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static mapping *find_mapping(const struct stat *info)
{
    mapping *map;

    for (map = mappings; map != NULL; map = map->next)
        if (map->dev == info->st_dev && map->ino == info->st_ino)
            return map;
    return NULL;
}

static tutti_status add_mapping(int fd, const struct stat *info, mapping **map_out)
{
    mapping *map = calloc(1, sizeof *map);

    if (map == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the handle of a shared heap");
    map->base = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (map->base == MAP_FAILED) {
        free(map);
        return tti_fail_errno(errno, "cannot map a shared heap of %llu MiB",
                              (unsigned long long)(HEAP_BYTES >> 20));
    }
    (void)madvise(map->base, HEAP_BYTES, MADV_DONTFORK); /* what a child wrote there its parent's peers would read */
    (void)madvise(map->base, HEAP_BYTES, MADV_DONTDUMP); /* for a core the kernel would make every page that nobody ever touched */
    map->dev = info->st_dev;
    map->ino = info->st_ino;
    map->next = mappings;
    mappings = map;
    *map_out = map;
    return TUTTI_OK;
}

static tutti_status take_mapping(int fd, mapping **map_out)
{
    tutti_status st = TUTTI_OK;
    struct stat  info;
    mapping     *map;

    if (fstat(fd, &info) != 0)
        return tti_fail_errno(errno, "cannot look at the descriptor of a shared heap");
    if ((uint64_t)info.st_size != HEAP_BYTES || !tti_is_sealed_memory(fd, HEAP_SEALS))
        return tti_fail(TUTTI_E_AUTH,
                        "a peer sent a descriptor that is no sealed heap of %llu bytes (it has %lld)",
                        (unsigned long long)HEAP_BYTES, (long long)info.st_size);
    tti_fork_guard(&fork_part);
    pthread_mutex_lock(&mappings_lock);
    map = find_mapping(&info);
    if (map == NULL)
        st = add_mapping(fd, &info, &map);
    if (st == TUTTI_OK) {
        map->refs++;
        *map_out = map;
    }
    pthread_mutex_unlock(&mappings_lock);
    return st;
}

static void drop_mapping(mapping *map)
{
    mapping **at;

    pthread_mutex_lock(&mappings_lock);
    if (--map->refs == 0) {
        for (at = &mappings; *at != map; at = &(*at)->next)
            continue;
        *at = map->next;
        munmap(map->base, HEAP_BYTES);
        free(map);
    }
    pthread_mutex_unlock(&mappings_lock);
}

static tutti_status wrap(int fd, size_t directory_words, bool owner, tti_heap **heap_out)
{
    tti_heap    *heap = calloc(1, sizeof *heap);
    tutti_status st;

    if (heap == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the handle of a shared heap");
    heap->fd = -1;
    st = take_mapping(fd, &heap->map);
    if (st != TUTTI_OK) {
        free(heap);
        return st;
    }
    heap->owner = owner;
    heap->regions_at = PAGE + ((directory_words * sizeof(uint64_t) + PAGE - 1) / PAGE) * PAGE;
    tti_mutex_init(&heap->lock);
    *heap_out = heap;
    return TUTTI_OK;
}

/* Have the pages: an errno. A signal ends that, and the kernel undoes it, so that a program's timer would end it again
 * and again: they come afterwards. In a rehearsal, whose hosts are all on this machine and most of whose pages nobody
 * touches, they come when they are touched. */
static int reserve(int fd, uint64_t offset, uint64_t bytes)
{
    sigset_t all, before;
    int      err;

    if (tti_port_stand_in() != NULL)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    err = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

static tutti_status make_memfd(uint64_t first_bytes, int *fd_out)
{
    int fd = memfd_create("tutti-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int err;

    if (fd < 0)
        return tti_fail_errno(errno, "cannot create a shared heap");
    err = ftruncate(fd, (off_t)HEAP_BYTES) != 0 ? errno : reserve(fd, 0, first_bytes);
    if (err == 0 && fcntl(fd, F_ADD_SEALS, HEAP_SEALS) != 0)
        err = errno;
    if (err != 0) {
        close(fd);
        return tti_fail_errno(err, "cannot reserve a shared heap");
    }
    *fd_out = fd;
    return TUTTI_OK;
}

tutti_status tti_heap_create(const uint8_t token[TTI_TOKEN_BYTES], size_t directory_words,
                             tti_heap **heap_out)
{
    const uint64_t first_bytes = PAGE + directory_words * sizeof(uint64_t);
    tti_heap      *heap = NULL;
    tti_heap_head *head;
    tutti_status   st;
    int            fd = -1;

    st = make_memfd(first_bytes, &fd);
    if (st != TUTTI_OK)
        return st;
    st = wrap(fd, directory_words, true, &heap);
    if (st != TUTTI_OK) {
        close(fd);
        return st;
    }
    heap->fd = fd;
    tti_fork_own(fd);
    head = tti_heap_head_of(heap);
    head->magic = HEAP_MAGIC;
    head->version = HEAP_VERSION;
    head->size = HEAP_BYTES;
    memcpy(head->token, token, TTI_TOKEN_BYTES);
    *heap_out = heap;
    return TUTTI_OK;
}

tutti_status tti_heap_map(int fd, const uint8_t token[TTI_TOKEN_BYTES], size_t directory_words,
                          tti_heap **heap_out)
{
    const tti_heap_head *head;
    tti_heap            *heap = NULL;
    tutti_status         st = wrap(fd, directory_words, false, &heap);

    if (st != TUTTI_OK)
        return st;
    head = tti_heap_head_of(heap);
    if (head->magic != HEAP_MAGIC || head->version != HEAP_VERSION ||
        memcmp(head->token, token, TTI_TOKEN_BYTES) != 0) {
        tti_heap_free(heap);
        return tti_fail(TUTTI_E_AUTH, "the memory that a peer sent does not hold its token");
    }
    heap->fd = fd;
    *heap_out = heap;
    return TUTTI_OK;
}

void tti_heap_free(tti_heap *heap)
{
    if (heap == NULL)
        return;
    drop_mapping(heap->map);
    tti_fork_disown(heap->fd);
    if (heap->fd >= 0)
        close(heap->fd);
    tti_mutex_release(&heap->lock);
    free(heap->extents);
    free(heap);
}

int tti_heap_fd(const tti_heap *heap)
{
    return heap->fd;
}

void tti_heap_drop_fd(tti_heap *heap)
{
    assert(!heap->owner);
    tti_fork_disown(heap->fd);
    close(heap->fd);
    heap->fd = -1;
}

tti_heap_head *tti_heap_head_of(tti_heap *heap)
{
    return (tti_heap_head *)heap->map->base;
}

_Atomic uint64_t *tti_heap_directory(tti_heap *heap)
{
    return (_Atomic uint64_t *)(heap->map->base + PAGE);
}

void *tti_heap_at(tti_heap *heap, uint64_t offset, size_t bytes)
{
    if (offset < heap->regions_at || offset > HEAP_BYTES || bytes > HEAP_BYTES - offset ||
        offset % TTI_LINE != 0)
        return NULL;
    return heap->map->base + offset;
}

/* First fit between the extents, which are sorted by offset. */
static bool find_gap(const tti_heap *heap, uint64_t bytes, uint64_t *offset_out, size_t *index_out)
{
    uint64_t at = heap->regions_at;
    size_t   i;

    for (i = 0; i < heap->n_extents; i++) {
        if (heap->extents[i].offset - at >= bytes)
            break;
        at = heap->extents[i].offset + heap->extents[i].bytes;
    }
    if (at > HEAP_BYTES || HEAP_BYTES - at < bytes)
        return false;
    *offset_out = at;
    *index_out = i;
    return true;
}

static tutti_status insert_extent(tti_heap *heap, uint64_t bytes, uint64_t *offset_out)
{
    uint64_t offset;
    size_t   i;
    extent  *grown;

    if (heap->n_extents == heap->extents_max) {
        grown = realloc(heap->extents, (heap->extents_max * 2 + 8) * sizeof *grown);
        if (grown == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for the list of shared regions");
        heap->extents = grown;
        heap->extents_max = heap->extents_max * 2 + 8;
    }
    if (!find_gap(heap, bytes, &offset, &i))
        return tti_fail(TUTTI_E_NOMEM,
                        "the shared heap of %llu MiB has no room for a region of %llu bytes (%zu in use)"
                        "\n  next: destroy groups that are no longer needed",
                        (unsigned long long)(HEAP_BYTES >> 20), (unsigned long long)bytes,
                        heap->n_extents);
    memmove(&heap->extents[i + 1], &heap->extents[i], (heap->n_extents - i) * sizeof *heap->extents);
    heap->extents[i] = (extent){ .offset = offset, .bytes = bytes };
    heap->n_extents++;
    *offset_out = offset;
    return TUTTI_OK;
}

/* Punched under the lock: nobody is handed this range before it is zero again. */
static void remove_extent(tti_heap *heap, size_t i)
{
    fallocate(heap->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)heap->extents[i].offset,
              (off_t)heap->extents[i].bytes);
    memmove(&heap->extents[i], &heap->extents[i + 1],
            (heap->n_extents - i - 1) * sizeof *heap->extents);
    heap->n_extents--;
}

/* Give back what is retired and unused. Lock held. */
static void sweep(tti_heap *heap)
{
    size_t i = heap->n_extents;

    while (i-- > 0) {
        const extent *e = &heap->extents[i];

        if (e->unused != NULL && e->unused(heap->map->base + e->offset, e->arg))
            remove_extent(heap, i);
    }
}

/* Its index, or n_extents. Lock held. */
static size_t find_extent(const tti_heap *heap, uint64_t offset)
{
    size_t i;

    for (i = 0; i < heap->n_extents && heap->extents[i].offset != offset; i++)
        continue;
    return i;
}

tutti_status tti_heap_alloc(tti_heap *heap, size_t bytes, uint64_t *offset_out)
{
    tutti_status st;
    uint64_t     rounded;
    uint64_t     offset = 0;
    int          err;

    if (bytes == 0 || bytes > HEAP_BYTES)
        return tti_fail(TUTTI_E_NOMEM, "a shared region of %zu bytes does not fit the heap", bytes);
    rounded = (bytes + PAGE - 1) / PAGE * PAGE;
    tti_lock(&heap->lock);
    sweep(heap);
    st = insert_extent(heap, rounded, &offset);
    tti_unlock(&heap->lock);
    if (st != TUTTI_OK)
        return st;
    err = reserve(heap->fd, offset, rounded);
    if (err != 0) {
        tti_heap_release(heap, offset);
        return tti_fail_errno(err, "cannot reserve %llu bytes of shared memory",
                              (unsigned long long)rounded);
    }
    *offset_out = offset;
    return TUTTI_OK;
}

void tti_heap_release(tti_heap *heap, uint64_t offset)
{
    size_t i;

    tti_lock(&heap->lock);
    i = find_extent(heap, offset);
    if (i < heap->n_extents)
        remove_extent(heap, i);
    tti_unlock(&heap->lock);
}

void tti_heap_retire(tti_heap *heap, uint64_t offset, tti_heap_unused *unused, uint64_t arg)
{
    size_t i;

    tti_lock(&heap->lock);
    i = find_extent(heap, offset);
    if (i < heap->n_extents) {
        heap->extents[i].unused = unused;
        heap->extents[i].arg = arg;
    }
    sweep(heap);
    tti_unlock(&heap->lock);
}

size_t tti_heap_regions(tti_heap *heap)
{
    size_t n;

    tti_lock(&heap->lock);
    n = heap->n_extents;
    tti_unlock(&heap->lock);
    return n;
}
