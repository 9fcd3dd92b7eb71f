/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registered_pages.c - where the pages of registered memory come from, and where they go.
 *
 * Why     Each process that maps a piece faults its pages in, one by one, and whoever works on the buffers of eight
 *         ranks goes through more pages than a core has translations for. With pages of 2 MiB there is one fault where
 *         there were 512, and taking memory is several times as fast.
 * How     Pieces of 2 MiB and more begin at a multiple of that, in the file and in every mapping. The system gives a
 *         file such pages unasked only where its administrator says so; but whoever has mapped it may ask for them
 *         (MADV_COLLAPSE, Linux 6.1). It takes a page for each 2 MiB that has any, so one small page of each is
 *         reserved first. Whatever became of that, all is reserved afterwards: what is still missing comes in small pages.
 * True    A shortage of memory is an error of the reservation. Nobody touches a page before it is there. */
#include <errno.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include "transport/registered_core.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { TRIES = 1000 };

void *tti_registered_map_large(int fd, uint64_t bytes)
{
    uint8_t *room = mmap(NULL, bytes + TTI_REGISTERED_LARGE, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *base;

    if (room == MAP_FAILED)
        return MAP_FAILED;
    base = room + (TTI_REGISTERED_LARGE - (uintptr_t)room % TTI_REGISTERED_LARGE) % TTI_REGISTERED_LARGE;
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(room, bytes + TTI_REGISTERED_LARGE);
        return MAP_FAILED;
    }
    if (base > room)
        munmap(room, (size_t)(base - room));
    if (base < room + TTI_REGISTERED_LARGE)
        munmap(base + bytes, (size_t)(room + TTI_REGISTERED_LARGE - base));
    (void)madvise(base, bytes, MADV_DONTDUMP);
    return base;
}

/* For a core the kernel makes every page of shared memory that nobody ever touched, and writes it: of a heap as large as the
 * machine's memory that would be all of the memory there is. So a core has what was handed out, and nothing of others. */
void tti_registered_dump(uint64_t offset, uint64_t bytes, bool on)
{
    (void)madvise(tti_registered.base + offset, bytes, on ? MADV_DODUMP : MADV_DONTDUMP);
}

void tti_registered_punch(uint64_t offset, uint64_t bytes)
{
    fallocate(tti_registered.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

/* A signal interrupts a reservation, which the kernel then undoes: so it is made in small steps, each tried
 * again, and timers that tick faster than a step end it after TRIES. Returns an errno. */
static int reserve_each(uint64_t offset, uint64_t bytes)
{
    const uint64_t end = offset + bytes;
    uint64_t       step;
    int            tries = 0, err = 0;

    while (offset < end && err == 0) {
        step = end - offset < TTI_REGISTERED_LARGE ? end - offset : TTI_REGISTERED_LARGE;
        err = posix_fallocate(tti_registered.fd, (off_t)offset, (off_t)step);
        if (err == 0) {
            offset += step;
            tries = 0;
        } else if (err == EINTR && ++tries < TRIES) {
            err = 0;
        }
    }
    return err;
}

/* Ask for large pages where whole ones fit. */
static void collapse(uint64_t offset, uint64_t bytes)
{
    const uint64_t whole = bytes / TTI_REGISTERED_LARGE * TTI_REGISTERED_LARGE;
    uint64_t       at;
    int            err = 0;

    if (offset % TTI_REGISTERED_LARGE != 0)
        return;
    for (at = offset; at < offset + whole && err == 0; at += TTI_REGISTERED_LARGE)
        err = reserve_each(at, TTI_REGISTERED_PAGE);
    if (whole > 0 && err == 0)
        (void)madvise(tti_registered.base + offset, whole, MADV_COLLAPSE);
}

int tti_registered_reserve(uint64_t offset, uint64_t bytes)
{
    collapse(offset, bytes);
    return reserve_each(offset, bytes);
}
