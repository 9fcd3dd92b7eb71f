/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/registered_core.h - the heap of registered memory as registered.c, lent.c and foreign.c see it. */
#ifndef TTI_TRANSPORT_REGISTERED_CORE_H
#define TTI_TRANSPORT_REGISTERED_CORE_H

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "transport/registered.h"

enum { TTI_REGISTERED_PAGE = 4096, TTI_REGISTERED_LARGE = 2 << 20 };

#define TTI_REGISTERED_BYTES_MIN (UINT64_C(4) << 30)
#define TTI_REGISTERED_BYTES_MAX (UINT64_C(1) << 40)
#define TTI_REGISTERED_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

typedef enum piece_state { PIECE_OWNED, PIECE_LENT, PIECE_CUT_OFF, PIECE_BURIED } piece_state;

typedef struct piece {
    uint64_t    offset;
    uint64_t    bytes; /* whole pages */
    piece_state state;
    uint32_t    users; /* uses by collectives under way */
    uint64_t    cut_begin, cut_end; /* offsets in the heap: what was cut off lies between them */
} piece;

typedef struct registered_heap {
    volatile uint8_t *mine; /* a page that says 1, and is empty in a forked child */
    int      refs; /* worlds, and pieces that are not buried; 0: there is none */
    int      fd;
    uint64_t bytes;
    uint8_t *base; /* NULL: not mapped yet */
    piece   *pieces; /* [n], by offset */
    size_t   n, max;
} registered_heap;

extern pthread_mutex_t tti_registered_lock; /* guards the heap */
extern registered_heap tti_registered;

/* With the lock held: */

/** The piece with [data, data + bytes) in it; NULL: none. */
piece *tti_piece_find(const void *data, size_t bytes);
/** Have the pages at [offset, offset + bytes), zeroed; the heap is mapped. Returns an errno. */
int tti_registered_reserve(uint64_t offset, uint64_t bytes);
/** They are of no more use to anybody. */
void tti_registered_punch(uint64_t offset, uint64_t bytes);
/** Whether info is that of the heap's descriptor. */
bool tti_registered_is_own(const struct stat *info);
/** Map the heap, if it is not. */
tutti_status tti_registered_map(void);

/** All of fd, at a multiple of TTI_REGISTERED_LARGE; MAP_FAILED, and errno. No core has it. */
void *tti_registered_map_large(int fd, uint64_t bytes);
/** Whether a core is to have a part of the own heap. */
void tti_registered_dump(uint64_t offset, uint64_t bytes, bool on);

#endif
