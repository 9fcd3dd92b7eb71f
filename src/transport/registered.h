/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/registered.h - the heap of this process that tutti_alloc() takes from, and those of others. */
#ifndef TTI_TRANSPORT_REGISTERED_H
#define TTI_TRANSPORT_REGISTERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/memory.h>

/** Have a heap, so that its descriptor can be handed to others; it costs no memory before it is used. Every
 * success is paired with tti_registered_drop(). */
tutti_status tti_registered_hold(int *fd_out);
void         tti_registered_drop(void);
/** Whether fd is this process's own heap: whoever sent it is a thread of it. */
bool tti_registered_is(int fd);

/** Let others have [data, data + bytes), which must lie inside one piece that nobody has yet. The offset is
 * what they know it by.
 * @errors TUTTI_E_ARG    it is not registered memory
 *         TUTTI_E_STATE  the piece is lent already */
tutti_status tti_registered_lend(const void *data, size_t bytes, uint64_t *offset_out);
/** End that. agreed: nobody will write any more. Else others may be about to, and are cut off: behind data
 * lie other pages with the same contents when this returns. */
void tti_registered_take_back(const void *data, bool agreed);

/** Memory that the members of one collective may reach while it is under way. */
typedef struct tti_use {
    const void *data;
    size_t      bytes;  /* 0: none, data may be anything */
    uint64_t    offset; /* what the others know it by; set by use */
} tti_use;

/** Let the members reach uses[0 .. n). Any number of uses of a piece may be under way; while one is, it cannot be
 * freed or lent. False, and nothing is used: one of them is not inside one piece, stands in a window, or was
 * cut off. */
bool tti_registered_use(tti_use *uses, int n);
/** End that. cut: others may still be about to write, and are cut off from the pages. False: they have been cut
 * off meanwhile, by another use that ended so, and what they wrote is lost. */
bool tti_registered_used(const tti_use *uses, int n, bool cut);
/** A hint, without a lock: whether this process has ever taken registered memory. */
bool tti_registered_any(void);

/** The heap of a process of this host, mapped. */
typedef struct tti_foreign tti_foreign;

/** @errors TUTTI_E_AUTH  fd, which is borrowed, is no sealed heap */
tutti_status tti_foreign_map(int fd, tti_foreign **foreign_out);
void         tti_foreign_free(tti_foreign *foreign); /* NULL is fine */
/** Whether it is this process's own: a rank that is a thread. Then it is not mapped twice. */
bool tti_foreign_is_ours(const tti_foreign *foreign);
/** The memory at [offset, offset + bytes); NULL if that is not inside. The only way from an offset to a
 * pointer. */
void *tti_foreign_at(const tti_foreign *foreign, uint64_t offset, size_t bytes);

#endif
