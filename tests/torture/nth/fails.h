/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fails.h - the n-th call for memory, to the port or to the system fails, on one rank.
 *
 * How     Ranks are threads, and each has a side, which the threads that the library starts for it inherit
 *         (--wrap=pthread_create). Calls of malloc and its kin from the library's code come here (--wrap), and so do
 *         those of the port (port.c) and of mmap, memfd_create, fopen, opendir and pthread_create. Those on the side that
 *         is to fail are counted.
 *         Blocks that are there, mappings, descriptors and threads are counted, too: after a world has ended there
 *         must be as many as before it was made.
 * True    Calls of other libraries for themselves do not count: they are not the library's to handle. */
#ifndef TT_TORTURE_FAILS_H
#define TT_TORTURE_FAILS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tt_resource { TT_MEMORY, TT_PORT, TT_SYSTEM, TT_RESOURCES } tt_resource;

enum { TT_NOBODY = -1 };

const char *tt_resource_name(tt_resource what);

/** Whose thread this is; TT_NOBODY at first. */
void tt_be_side(int side);

/** From now on the n-th such call on that side fails, in a way that variant chooses; with on, all later ones, too.
 * 0: none, they are only counted. */
void tt_fail_at(tt_resource what, int side, int64_t n, int variant, bool on);
/** No more: how many there were. */
int64_t tt_fail_end(void);
/** Whether one has failed since tt_fail_at(). */
bool tt_has_failed(void);

/** Whether this call is to fail; *which_out: a number to choose the way with. Used by what replaces the calls. */
bool tt_is_to_fail(tt_resource what, int64_t *which_out);

/* memory.c */

/** Blocks and mappings of the library that are there. */
typedef struct tt_held {
    int64_t blocks, maps, descriptors, threads;
} tt_held;

tt_held tt_holds(void);
/** Print the blocks that were taken since mark, at most some. */
void     tt_print_blocks_since(uint64_t mark);
uint64_t tt_block_mark(void);

#endif
