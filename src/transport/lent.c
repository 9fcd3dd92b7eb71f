/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lent.c - who else may reach a piece of registered memory, and how that ends.
 *
 * Why     A window lends a piece to its group until it is closed; a collective uses parts of pieces while it is under
 *         way. Both end well, or with a member that may still be about to write: then the memory must be out of
 *         its reach before the call that failed returns.
 * True    A piece is free to be handed out again only when nobody else can still write to its pages:
 *
 *           owned  --- lend --->  lent  --- take back, agreed --->  owned  --- free --->  (zeroed, reused)
 *            ^  |                  |
 *         used  use                +--- take back, not agreed --->  cut off  --- free --->  buried
 *            |  v                                                    ^
 *         in use, by one or more  --- used, cut -------------------->+
 *
 *         Cut off: private pages with a copy of the contents are moved over the old ones by mremap, in one step.
 *         A stopped process that goes on later writes into the old pages, which nobody reads. Its range of the
 *         heap is never used again (buried); the range is address space, not memory, and ends with the heap.
 *         What stands in a window is not used, and what is used is not lent: so whoever cuts off knows who else
 *         is concerned. Other uses of the same piece may be: of other tensors, whose pages are left alone, or of
 *         the same pages by other groups. Those still read what is right, for the old pages keep their contents
 *         until the piece is freed; what is written to them is lost, and their end is told so.
 *         The system call itself is made, not the C library's function: UCX puts one of its own in its place when it is
 *         loaded, which (in 1.13) forgets where to, so that the contents were gone.
 * Fails   Without memory for the copy the pages stay as they are, and their range is never used again either. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <tutti/private.h>
#include "transport/registered_core.h"

/* ---- windows --------------------------------------------------------------------------------------- */

static tutti_status lend(const void *data, size_t bytes, uint64_t *offset_out)
{
    piece *p = tti_piece_find(data, bytes);

    if (p == NULL || p->state == PIECE_CUT_OFF)
        return tti_fail(TUTTI_E_ARG, "the %zu bytes at %p are not registered memory%s", bytes, data,
                        p != NULL ? " any more: they were given to a group that failed"
                                  : "\n  next: take them from tutti_alloc()");
    if (p->state == PIECE_LENT)
        return tti_fail(TUTTI_E_STATE, "the memory at %p stands in a window already", data);
    if (p->users > 0)
        return tti_fail(TUTTI_E_STATE, "a collective is under way on the memory at %p\n  next: wait for it", data);
    p->state = PIECE_LENT;
    *offset_out = (uint64_t)((const uint8_t *)data - tti_registered.base);
    return TUTTI_OK;
}

tutti_status tti_registered_lend(const void *data, size_t bytes, uint64_t *offset_out)
{
    tutti_status st;

    pthread_mutex_lock(&tti_registered_lock);
    st = lend(data, bytes, offset_out);
    pthread_mutex_unlock(&tti_registered_lock);
    return st;
}

/* Stores that other threads of this process make between copy and move are lost: the group has failed, and
 * what was under way on its memory is undefined. */
static bool replace_pages(uint64_t offset, uint64_t bytes)
{
    uint8_t *at = tti_registered.base + offset;
    void    *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (fresh == MAP_FAILED) {
        tti_log(TTI_LOG_WARN, "no memory to cut other ranks off from %llu bytes at %p", (unsigned long long)bytes,
                (void *)at);
        return false;
    }
    memcpy(fresh, at, bytes);
    if (syscall(SYS_mremap, fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == -1) {
        tti_log(TTI_LOG_WARN, "cannot cut other ranks off from %llu bytes at %p: %s", (unsigned long long)bytes,
                (void *)at, strerror(errno));
        munmap(fresh, bytes);
        return false;
    }
    return true;
}

void tti_registered_take_back(const void *data, bool agreed)
{
    piece *p;

    pthread_mutex_lock(&tti_registered_lock);
    p = tti_piece_find(data, 1);
    if (p != NULL && p->state == PIECE_LENT) {
        p->state = agreed ? PIECE_OWNED : PIECE_CUT_OFF; /* whatever happens: others may still write there */
        if (!agreed && replace_pages(p->offset, p->bytes))
            tti_registered_punch(p->offset, p->bytes);
    }
    pthread_mutex_unlock(&tti_registered_lock);
}

/* ---- collectives ----------------------------------------------------------------------------------- */

static bool lies_in(const piece *p, uint64_t offset, size_t bytes)
{
    return offset >= p->offset && bytes <= p->bytes && offset - p->offset <= p->bytes - bytes;
}

/* The piece of what is used, which is often the one of the use before. */
static piece *piece_of(const tti_use *use, piece *before)
{
    const uint64_t offset = (uint64_t)((uintptr_t)use->data - (uintptr_t)tti_registered.base);

    return before != NULL && lies_in(before, offset, use->bytes) ? before : tti_piece_find(use->data, use->bytes);
}

/* How many of uses could be used. */
static int use_some(tti_use *uses, int n)
{
    piece *p = NULL;
    int    i;

    for (i = 0; i < n; i++) {
        if (uses[i].bytes == 0)
            continue;
        p = piece_of(&uses[i], p);
        if (p == NULL || p->state != PIECE_OWNED)
            return i;
        p->users++;
        uses[i].offset = (uint64_t)((const uint8_t *)uses[i].data - tti_registered.base);
    }
    return n;
}

/* Pages that [offset, offset + bytes) lies on. */
static uint64_t first_page(uint64_t offset)
{
    return offset / TTI_REGISTERED_PAGE * TTI_REGISTERED_PAGE;
}

static uint64_t end_page(uint64_t offset, uint64_t bytes)
{
    return first_page(offset + bytes + TTI_REGISTERED_PAGE - 1);
}

static void cut_pages(piece *p, const tti_use *use)
{
    const uint64_t begin = first_page(use->offset);
    const uint64_t end = end_page(use->offset, use->bytes);

    if (!replace_pages(begin, end - begin))
        return;
    p->cut_begin = p->cut_end == 0 || begin < p->cut_begin ? begin : p->cut_begin;
    p->cut_end = end > p->cut_end ? end : p->cut_end;
}

/* Whether the pages of all uses were in the others' reach up to here. */
static bool end_uses(const tti_use *uses, int n, bool cut)
{
    piece *p = NULL;
    bool   whole = true;
    int    i;

    for (i = 0; i < n; i++) {
        if (uses[i].bytes == 0)
            continue;
        p = piece_of(&uses[i], p);
        whole = whole && (uses[i].offset >= p->cut_end || uses[i].offset + uses[i].bytes <= p->cut_begin);
        if (cut) {
            p->state = PIECE_CUT_OFF;
            cut_pages(p, &uses[i]);
        }
        p->users--;
    }
    return whole;
}

bool tti_registered_use(tti_use *uses, int n)
{
    int used;

    pthread_mutex_lock(&tti_registered_lock);
    used = use_some(uses, n);
    if (used < n)
        end_uses(uses, used, false);
    pthread_mutex_unlock(&tti_registered_lock);
    return used == n;
}

bool tti_registered_used(const tti_use *uses, int n, bool cut)
{
    bool whole;

    pthread_mutex_lock(&tti_registered_lock);
    whole = end_uses(uses, n, cut);
    pthread_mutex_unlock(&tti_registered_lock);
    return whole;
}
