/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.c - blocks for tensors and graphs, kept per thread for the next of their size.
 *
 * Why     A training step makes and drops the same tensors every time. The C library gives blocks
 *         above 128 KiB back to the kernel at once, so each step would fault in (and the kernel
 *         clear) every page again: for the tutorial network more time than its arithmetic.
 *         Raising malloc's threshold instead would change the whole process behind its back.
 * How     Sizes are rounded up to classes, four to each doubling (at most a quarter is lost). A
 *         freed block goes on the list of its class in the freeing thread; the link stands in the
 *         block. A thread keeps at most what it ever had in use at once, or CACHE_BYTES if that is more:
 *         a step that needs as much as the one before finds it. The rest goes back to the C library.
 * True    Every block is aligned to 64 bytes. No lock: a list is touched by its thread alone. A
 *         block may be freed on another thread than the one that took it.
 * Memory  A thread's end gives its lists back; so does tutti_empty_cache(). Under the address
 *         sanitizer nothing is kept, so that uses after free are seen. */
#include "tensor/tensor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define CACHE_BYTES ((size_t)0)
#else
#define CACHE_BYTES ((size_t)256 << 20)
#endif

enum { ALIGN = 64, CLASSES = 4 * 40 };

typedef struct block {
    struct block *next;
} block;

typedef struct cache {
    block *list[CLASSES];
    size_t bytes;     /* kept now */
    int64_t in_use;   /* taken less given back here; what other threads free is not seen */
    int64_t peak;     /* of in_use */
    bool watched;     /* this thread's end will call at_thread_end() */
    bool thread_over; /* keep nothing any more */
    int64_t misses;   /* blocks that were not kept and came from the C library */
} cache;

static _Thread_local cache mine;
static pthread_key_t end_key; /* one per process: what pthreads offers to hear of a thread's end */
static bool have_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;

static void drop_all(cache *c)
{
    for (int k = 0; k < CLASSES; k++) {
        while (c->list[k] != NULL) {
            block *b = c->list[k];

            c->list[k] = b->next;
            free(b);
        }
    }
    c->bytes = 0;
}

static void at_thread_end(void *arg)
{
    cache *c = arg;

    c->thread_over = true;
    drop_all(c);
}

static void make_key(void)
{
    have_key = pthread_key_create(&end_key, at_thread_end) == 0;
}

static void watch_thread(cache *c)
{
    pthread_once(&end_once, make_key);
    if (!have_key || pthread_setspecific(end_key, c) != 0)
        c->thread_over = true; /* no notice of the end: keep nothing */
    c->watched = true;
}

/* The class of a size in bytes, and the size of that class. */
static int class_of(size_t bytes, size_t *class_bytes_out)
{
    const size_t units = bytes == 0 ? 1 : (bytes + ALIGN - 1) / ALIGN;
    size_t low, step, quarter;
    int e;

    if (units <= 4) {
        *class_bytes_out = units * ALIGN;
        return (int)units - 1;
    }
    e = 63 - __builtin_clzll(units - 1); /* units is in (2^e, 2^(e+1)], e >= 2 */
    low = (size_t)1 << e;
    step = low / 4;
    quarter = (units - 1 - low) / step;
    *class_bytes_out = (low + (quarter + 1) * step) * ALIGN;
    return 4 * (e - 1) + (int)quarter;
}

void *tti_mem_alloc(size_t bytes)
{
    cache *c = &mine;
    size_t class_bytes;
    int k;

    if (bytes > (size_t)1 << 44)
        return NULL;
    k = class_of(bytes, &class_bytes);
    c->in_use += (int64_t)class_bytes;
    c->peak = c->in_use > c->peak ? c->in_use : c->peak;
    if (c->list[k] != NULL) {
        block *b = c->list[k];

        c->list[k] = b->next;
        c->bytes -= class_bytes;
        return b;
    }
    c->misses++;
    return aligned_alloc(ALIGN, class_bytes);
}

void *tti_mem_zalloc(size_t bytes)
{
    void *data = tti_mem_alloc(bytes);

    if (data != NULL)
        memset(data, 0, bytes);
    return data;
}

void *tti_mem_grow(void *data, size_t bytes, size_t new_bytes)
{
    void *larger = tti_mem_alloc(new_bytes);

    if (larger != NULL && data != NULL)
        memcpy(larger, data, bytes);
    if (larger != NULL)
        tti_mem_free(data, bytes);
    return larger;
}

/* How much this thread may keep. */
static size_t limit_of(const cache *c)
{
    return CACHE_BYTES > 0 && (size_t)c->peak > CACHE_BYTES ? (size_t)c->peak : CACHE_BYTES;
}

void tti_mem_free(void *data, size_t bytes)
{
    cache *c = &mine;
    size_t class_bytes;
    int k;

    if (data == NULL)
        return;
    if (!c->watched)
        watch_thread(c);
    k = class_of(bytes, &class_bytes);
    c->in_use -= (int64_t)class_bytes;
    if (c->thread_over || c->bytes + class_bytes > limit_of(c)) {
        free(data);
        return;
    }
    ((block *)data)->next = c->list[k];
    c->list[k] = data;
    c->bytes += class_bytes;
}

int64_t tutti_cache_misses(void)
{
    return mine.misses;
}

void tutti_empty_cache(void)
{
    drop_all(&mine);
}
