/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_memory.c - one piece of memory without a name.
 *
 * Each rank's pieces begin on a page of their own, shifted by 65 lines from those of the rank before: streams
 * of all ranks that began at the same place of a page would fall into the same few lines of a cache. */
#include "limit_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "side.h"

enum { PAGE = 4096, SHIFT = 65 * 64, LINE = 128 };

/* The cell's memory: a contender measures one cell at a time. */
static struct {
    char *at;
    size_t bytes, of_rank, in, out; /* in and out: sizes, rounded up to pages */
    size_t half;                    /* where in a stage it begins: 0, or its middle */
    uint64_t turn;                  /* of limit_meet() */
    bool crowded;                   /* more ranks than cores */
} memory;

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool make(uint64_t *key_out, int *fd_out)
{
    const int fd = memfd_create("tutti-bench-limit", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)memory.bytes) != 0)
        return bench_fail("cannot make %zu bytes of shared memory: %s", memory.bytes, strerror(errno));
    *key_out = (uint64_t)getpid() << 32 | (uint64_t)fd;
    *fd_out = fd;
    return true;
}

static bool find(uint64_t key, int *fd_out)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/fd/%u", (unsigned)(key >> 32), (unsigned)key);
    *fd_out = open(path, O_RDWR | O_CLOEXEC);
    return *fd_out >= 0 || bench_fail("cannot open '%s': %s", path, strerror(errno));
}

static bool map(int fd)
{
    memory.at = mmap(NULL, memory.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory.at != MAP_FAILED)
        return true;
    memory.at = NULL;
    return bench_fail("cannot map %zu bytes of shared memory: %s", memory.bytes, strerror(errno));
}

bool limit_take(const bench_cell *cell, bench_board *board, size_t in_bytes, size_t out_bytes, char **in_out,
                char **out_out)
{
    const bool first = board->rank == 0;
    uint64_t key = 0;
    int fd = -1;
    bool ok;

    (void)cell;
    memory.in = pages(in_bytes);
    memory.out = pages(out_bytes);
    memory.of_rank = memory.in + memory.out + 2 * (size_t)LIMIT_STAGE_BYTES + pages(SHIFT * BENCH_RANKS_MAX);
    memory.bytes = PAGE + memory.of_rank * (size_t)board->ranks;
    memory.turn = 0;
    memory.half = 0;
    memory.crowded = board->crowded;
    ok = !first || make(&key, &fd);
    if (!bench_board_tell(board, key, &key))
        ok = bench_fail("another rank did not come to the barrier within two minutes");
    if (ok && !first)
        ok = key == 0 ? bench_fail("rank 0 has no shared memory") : find(key, &fd);
    ok = ok && map(fd);
    if (!bench_board_barrier(board)) /* rank 0 closes what others open */
        ok = bench_fail("another rank did not come to the barrier within two minutes");
    if (fd >= 0)
        close(fd);
    if (!ok)
        return false;
    *in_out = in_bytes > 0 ? limit_in(board->rank) : NULL;
    *out_out = out_bytes > 0 ? limit_out(board->rank) : NULL;
    return true;
}

void limit_give(const bench_cell *cell, char *in, size_t in_bytes, char *out, size_t out_bytes)
{
    (void)cell, (void)in, (void)in_bytes, (void)out, (void)out_bytes;
    if (memory.at != NULL)
        munmap(memory.at, memory.bytes);
    memory.at = NULL;
}

char *limit_in(int rank)
{
    return memory.at + PAGE + (size_t)rank * memory.of_rank + (size_t)rank * SHIFT;
}

char *limit_out(int rank)
{
    return limit_in(rank) + memory.in;
}

char *limit_stage(int rank)
{
    return limit_out(rank) + memory.out + memory.half;
}

char *limit_result(int rank)
{
    return limit_stage(rank) + LIMIT_STAGE_BYTES;
}

void limit_turn_stages(void)
{
    memory.half = LIMIT_STAGE_BYTES / 2 - memory.half;
}

static _Atomic uint64_t *line_of(int rank)
{
    return (_Atomic uint64_t *)(void *)(memory.at + (ptrdiff_t)rank * LINE);
}

void limit_meet(int rank, int ranks)
{
    int q;

    memory.turn++;
    atomic_store_explicit(line_of(rank), memory.turn, memory_order_release);
    for (q = 0; q < ranks; q++)
        while (atomic_load_explicit(line_of(q), memory_order_acquire) < memory.turn)
            if (memory.crowded)
                sched_yield();
}
