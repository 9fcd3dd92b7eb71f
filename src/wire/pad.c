/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pad.c - what keys are combined with while they lie in memory.
 *
 * Why     Whoever finds a core, a swap file or the memory of a forked child must not find the job's secret there. It is
 *         kept by stores, servers and meshes for as long as they live: too many places for each to have pages of its own.
 * How     One page per process has a random pad. It is left out of cores, is empty in a child, and is kept from swap
 *         where the limits allow. A key is combined with it bit by bit; without the page what is left is as random as the
 *         pad is.
 * True    The page is made once and never freed, so that any thread may read it at any time: it belongs to the process, as
 *         its cores do. A child of fork() finds it empty, and makes another one: what it inherited is worth nothing to it,
 *         and it reads the secret anew. Two threads that come first at once make two pages, of which one stays.
 *         The bytes come from the system, not from a port: nothing that a port stands in for depends on them. */
#include "wire/pad.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>

enum { PAGE = 4096, MARK_AT = TTI_PAD_BYTES };

static _Atomic(volatile uint8_t *) page_of_process;

static volatile uint8_t *make_page(void)
{
    uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int      err;

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, PAGE, MADV_DONTDUMP) != 0 || madvise(page, PAGE, MADV_WIPEONFORK) != 0 ||
        getrandom(page, TTI_PAD_BYTES, 0) != TTI_PAD_BYTES) {
        err = errno;
        munmap(page, PAGE);
        errno = err;
        return NULL;
    }
    (void)mlock(page, PAGE);
    page[MARK_AT] = 1;
    return page;
}

const volatile uint8_t *tti_pad(void)
{
    volatile uint8_t *page = atomic_load_explicit(&page_of_process, memory_order_acquire);
    volatile uint8_t *fresh;

    if (page != NULL && page[MARK_AT] != 0)
        return page;
    fresh = make_page();
    if (fresh == NULL || atomic_compare_exchange_strong(&page_of_process, &page, fresh))
        return fresh;
    munmap((void *)(uintptr_t)fresh, PAGE);
    return page; /* another thread's */
}
