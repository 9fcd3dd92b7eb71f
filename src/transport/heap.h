/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/heap.h - memory that the processes of one host share.
 *
 * Each member of a world owns one heap: a sparse memfd of fixed, sealed size, without a name, whose
 * descriptor goes to the others once, at bootstrap. Regions of it are handed out by the owner; others know
 * them as offsets, which are checked against the heap's bounds before they become pointers. */
#ifndef TTI_TRANSPORT_HEAP_H
#define TTI_TRANSPORT_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>
#include "base/thread.h"
#include "watch/waits.h"

enum { TTI_TOKEN_BYTES = 16, TTI_LINE = 128 /* the adjacent-line prefetcher pairs 64-byte lines */ };

/** The first page of every heap: who owns it and whether it is still there. */
typedef struct tti_heap_head {
    uint32_t magic;
    uint32_t version;
    uint64_t size;
    uint8_t  token[TTI_TOKEN_BYTES]; /* the proof of "same host": read back through the mapping */
    /* Facts of the owner, set before it lends the heap. */
    uint32_t cores;               /* tti_running_cores(), tti_usable_cpus() */
    uint64_t cpus[TTI_CPU_WORDS];
    uint32_t fenced; /* not 0: the owner's process has joined fence_others() of its port */
    _Alignas(TTI_LINE) _Atomic uint32_t sleeping; /* the owner waits on its bell: ring it */
    _Alignas(TTI_LINE) _Atomic uint32_t closed;   /* the owner has left */
    _Alignas(TTI_LINE) tti_wait_board waits;      /* in what the owner has waited for long */
} tti_heap_head;

/** One mapping of one heap, the owner's or a peer's. */
typedef struct tti_heap tti_heap;

/** Make this rank's own heap, with directory_words atomic 64-bit words, zero, behind its head. */
tutti_status tti_heap_create(const uint8_t token[TTI_TOKEN_BYTES], size_t directory_words,
                             tti_heap **heap_out);

/** Map a peer's heap from its descriptor, which is taken over on success. TUTTI_E_AUTH if it is no heap of the
 * expected size with this token in it. A heap whose owner lives in this process shares its mapping. */
tutti_status tti_heap_map(int fd, const uint8_t token[TTI_TOKEN_BYTES], size_t directory_words,
                          tti_heap **heap_out);

/** Whether fd is memory without a name that has these seals, and small pages: in huge ones, of which the system may run
 * out, a mere look at memory that its owner has not touched ends the process that looks. */
bool tti_is_sealed_memory(int fd, int seals);

void           tti_heap_free(tti_heap *heap); /* NULL is fine */
int            tti_heap_fd(const tti_heap *heap);
/** Close the descriptor of a peer's heap; the mapping stays. */
void           tti_heap_drop_fd(tti_heap *heap);
tti_heap_head *tti_heap_head_of(tti_heap *heap);
_Atomic uint64_t *tti_heap_directory(tti_heap *heap);

/** Owner only: a zeroed region of at least bytes, its pages reserved, aligned to a page. */
tutti_status tti_heap_alloc(tti_heap *heap, size_t bytes, uint64_t *offset_out);
/** Owner only: give a region back; its pages return to the system. */
void tti_heap_release(tti_heap *heap, uint64_t offset);

/** Whether nobody will touch a retired region any more. Called with the heap's lock held. */
typedef bool tti_heap_unused(void *region, uint64_t arg);
/** Owner only: give a region back as soon as unused(its memory, arg) says so, which is asked now and
 * whenever a region is made or retired; at the latest it goes with the heap. */
void tti_heap_retire(tti_heap *heap, uint64_t offset, tti_heap_unused *unused, uint64_t arg);
/** Owner only: how many regions are handed out or retired. */
size_t tti_heap_regions(tti_heap *heap);

/** The memory at [offset, offset + bytes), or NULL if that is not inside the heap behind its directory, or
 * offset is not a multiple of TTI_LINE. The only way from an offset to a pointer. */
void *tti_heap_at(tti_heap *heap, uint64_t offset, size_t bytes);

#endif
