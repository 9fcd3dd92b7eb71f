/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pinned.c - pinned memory that is kept for later calls.
 *
 * Why     Pinning memory takes a device's driver milliseconds, and holds up what the device does meanwhile; so a call has to find some that
 *         is there. But nobody else on the host gets it while it is kept: so there is a limit.
 * How     One list of blocks for a world and its groups. A block is put back while its last copy may still run: its event says when
 *         that is over, and until then nobody gets it. The end of a call that went well lets go of what is too much, the largest
 *         first; what a copy still runs on waits for the next such end.
 * Waits   Letting go of a block may wait for all that the GPU does, for ever if something on it is stuck. So it is not done in a call: the
 *         caller's stream may be what is stuck, and the call has a deadline. Nor while another call is under way, nor where a call
 *         has failed and a GPU is not through with its blocks. At the end of all a GPU that is not through with one keeps all of its.
 * True    The list, `kept` and `n_taken` are under the lock. The device is asked for events under it, which is short; it pins and unpins
 *         without it. A block that the device never gets through with is never let go: its memory would be written to. */
#include "backend/detour/detour_core.h"

#include <stdlib.h>
#include <tutti/private.h>
#include "base/env.h"
#include "base/port.h"

enum { BLOCK_LEAST = 64 << 10 };

static const int64_t LEAVE_NS = 1000 * TTI_MS; /* what a device gets to be through with what is left, at the end */

struct tti_pinned {
    _Atomic int             refs;
    int64_t                 most; /* bytes that are kept */
    tti_mutex               lock;
    const tutti_device_ops *ops; /* NULL: no block was made yet */
    tti_block              *blocks;
    int64_t                 kept;    /* bytes of blocks */
    int64_t                 n_taken; /* by calls; what the device takes nothing for any more is never put back, and counts on */
    void (*idle)(uint32_t *rounds, bool in_background);
};

tutti_status tti_pinned_create(void (*idle)(uint32_t *rounds, bool in_background), tti_pinned **pinned_out)
{
    tti_pinned  *p;
    int64_t      most = 0;
    tutti_status st = tti_env_int("TUTTI_PINNED_MAX", 0, INT64_MAX, &most);

    if (st != TUTTI_OK)
        return st;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of pinned memory");
    atomic_init(&p->refs, 1);
    p->most = most;
    p->idle = idle;
    tti_mutex_init(&p->lock);
    *pinned_out = p;
    return TUTTI_OK;
}

tti_pinned *tti_pinned_hold(tti_pinned *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

/* ---- blocks ---- */

/* Whether the device is through with it. One whose event cannot be asked may still be worked on. */
static bool is_idle(const tti_pinned *p, const tti_block *block)
{
    bool come = !block->used;

    return come || (p->ops->has_come(block->device, block->event, &come) == TUTTI_OK && come);
}

static void free_block(const tutti_device_ops *ops, tti_block *block)
{
    if (block->memory != NULL)
        ops->unpin(block->device, block->memory);
    if (block->event != NULL)
        ops->event_drop(block->device, block->event);
    free(block);
}

size_t tti_pinned_size(size_t bytes)
{
    size_t size = BLOCK_LEAST;

    if (bytes > TTI_PIECE_BYTES)
        return bytes <= SIZE_MAX - TTI_PIECE_BYTES ? (bytes + TTI_PIECE_BYTES - 1) / TTI_PIECE_BYTES * TTI_PIECE_BYTES : bytes;
    while (size < bytes)
        size *= 2;
    return size;
}

static tutti_status make_block(const tutti_device_ops *ops, int device, size_t bytes, tti_block **block_out)
{
    tti_block   *block = calloc(1, sizeof *block);
    void        *memory = NULL;
    tutti_status st;

    if (block == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for what is known of pinned memory");
    block->device = device;
    block->bytes = tti_pinned_size(bytes);
    st = ops->event_make(device, &block->event);
    if (st == TUTTI_OK)
        st = ops->pin(device, block->bytes, &memory);
    block->memory = memory;
    if (st != TUTTI_OK) {
        free_block(ops, block);
        return st;
    }
    *block_out = block;
    return TUTTI_OK;
}

/* Take the smallest one that fits out of the list; NULL: there is none. Lock held. */
static tti_block *find_block(tti_pinned *p, int device, size_t bytes)
{
    tti_block **link, **best = NULL, *found;

    for (link = &p->blocks; *link != NULL; link = &(*link)->next)
        if ((*link)->device == device && (*link)->bytes >= bytes && (best == NULL || (*link)->bytes < (*best)->bytes) &&
            is_idle(p, *link))
            best = link;
    if (best == NULL)
        return NULL;
    found = *best;
    *best = found->next;
    p->kept -= (int64_t)found->bytes;
    return found;
}

/* Whether a device is not through with a block of its own, of those in the list. Nobody else has the list. */
static bool has_busy(const tti_pinned *p, int device)
{
    const tti_block *block;

    for (block = p->blocks; block != NULL; block = block->next)
        if (block->device == device && !is_idle(p, block))
            return true;
    return false;
}

/* Whether a device may never come to a block. Lock held. */
static bool may_be_stuck(const tti_pinned *p)
{
    const tti_block *block;

    for (block = p->blocks; block != NULL; block = block->next)
        if (block->unsure && !is_idle(p, block))
            return true;
    return false;
}

/* Take the largest one out of the list. Lock held. */
static tti_block *take_largest(tti_pinned *p)
{
    tti_block **link, **largest = &p->blocks, *block;

    for (link = &p->blocks; *link != NULL; link = &(*link)->next)
        if ((*link)->bytes > (*largest)->bytes)
            largest = link;
    block = *largest;
    if (block != NULL)
        *largest = block->next;
    return block;
}

static void push(tti_block **list, tti_block *block)
{
    block->next = *list;
    *list = block;
}

/* Take those out of the list that are too much. A busy one that is too much goes another time: smaller ones do not go in its place.
 * Lock held. */
static tti_block *take_excess(tti_pinned *p)
{
    tti_block *gone = NULL, *stay = NULL, *block;
    int64_t    would_be = p->kept;

    while (would_be > p->most && (block = take_largest(p)) != NULL) {
        would_be -= (int64_t)block->bytes;
        push(is_idle(p, block) ? &gone : &stay, block);
    }
    p->kept = would_be;
    while ((block = stay) != NULL) {
        stay = block->next;
        push(&p->blocks, block);
        p->kept += (int64_t)block->bytes;
    }
    return gone;
}

static void free_blocks(const tutti_device_ops *ops, tti_block *block)
{
    tti_block *next;

    for (; block != NULL; block = next) {
        next = block->next;
        free_block(ops, block);
    }
}

/* ---- taking and putting back ---- */

tutti_status tti_pinned_take(tti_pinned *p, const tutti_device_ops *ops, int device, size_t bytes, tti_block **block_out)
{
    tti_block   *block;
    tutti_status st;

    tti_lock(&p->lock);
    p->ops = ops;
    block = find_block(p, device, bytes);
    p->n_taken++;
    tti_unlock(&p->lock);
    if (block == NULL && (st = make_block(ops, device, bytes, &block)) != TUTTI_OK) {
        tti_lock(&p->lock);
        p->n_taken--;
        tti_unlock(&p->lock);
        return st;
    }
    block->next = NULL;
    block->used = block->unsure = false;
    *block_out = block;
    return TUTTI_OK;
}

void tti_pinned_put(tti_pinned *p, tti_block *block, bool unsure)
{
    tti_lock(&p->lock);
    block->unsure = unsure;
    push(&p->blocks, block);
    p->kept += (int64_t)block->bytes;
    p->n_taken--;
    tti_unlock(&p->lock);
}

void tti_pinned_trim(tti_pinned *p)
{
    tti_block *gone = NULL;

    tti_lock(&p->lock);
    if (p->n_taken == 0 && !may_be_stuck(p))
        gone = take_excess(p);
    tti_unlock(&p->lock);
    free_blocks(p->ops, gone);
}

/* Copies of the last calls may still be on their way. */
static bool becomes_idle(const tti_pinned *p, const tti_block *block, int64_t until_ns)
{
    uint32_t rounds = 0;

    while (!is_idle(p, block)) {
        if (tti_now_ns() >= until_ns)
            return false;
        p->idle(&rounds, true);
    }
    return true;
}

void tti_pinned_drop(tti_pinned *p)
{
    const int64_t until_ns = tti_now_ns() + LEAVE_NS;
    tti_block    *block, *next;
    size_t        left = 0;

    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (block = p->blocks; block != NULL; block = block->next)
        (void)becomes_idle(p, block, until_ns);
    for (block = p->blocks; block != NULL; block = block->next)
        block->stays = has_busy(p, block->device);
    for (block = p->blocks; block != NULL; block = next) {
        next = block->next;
        if (block->stays)
            left += block->bytes;
        else
            free_block(p->ops, block);
    }
    if (left > 0)
        tti_log(TTI_LOG_WARN, "%zu bytes of pinned memory are never given back: a device is not through with them", left);
    tti_mutex_release(&p->lock);
    free(p);
}
