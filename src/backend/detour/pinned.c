/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pinned.c - pinned memory that is kept for later calls.
 *
 * Why     Pinning memory takes a device's driver milliseconds, and holds up what the device does meanwhile; so a call has to find some that
 *         is there. But nobody else on the host gets it while it is kept: so there is a limit.
 * How     One list of blocks for a world and its groups. A block is put back while its last copy may still run: its event says when
 *         that is over, and until then nobody gets it. Whoever puts one back lets go of others that are too much.
 * True    The list and `kept` are under the lock. The device is asked for events under it, which is short; it pins and unpins
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
    int64_t                 kept;
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

static tutti_status make_block(const tutti_device_ops *ops, int device, size_t bytes, tti_block **block_out)
{
    tti_block   *block = calloc(1, sizeof *block);
    void        *memory = NULL;
    tutti_status st;

    if (block == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for what is known of pinned memory");
    block->device = device;
    for (block->bytes = BLOCK_LEAST; block->bytes < bytes && block->bytes <= SIZE_MAX / 2; block->bytes *= 2)
        ;
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

/* Take those out of the list that are too much, and that the device is through with. Lock held. */
static tti_block *trim(tti_pinned *p)
{
    tti_block **link = &p->blocks, *gone = NULL, *block;

    while (*link != NULL && p->kept > p->most) {
        block = *link;
        if (!is_idle(p, block)) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        p->kept -= (int64_t)block->bytes;
        block->next = gone;
        gone = block;
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
    tti_block *block;

    tti_lock(&p->lock);
    p->ops = ops;
    block = find_block(p, device, bytes);
    tti_unlock(&p->lock);
    if (block == NULL)
        return make_block(ops, device, bytes, block_out);
    block->next = NULL;
    block->used = false;
    *block_out = block;
    return TUTTI_OK;
}

void tti_pinned_put(tti_pinned *p, tti_block *block)
{
    tti_block *gone;

    tti_lock(&p->lock);
    block->next = p->blocks;
    p->blocks = block;
    p->kept += (int64_t)block->bytes;
    gone = trim(p);
    tti_unlock(&p->lock);
    free_blocks(p->ops, gone);
}

/* Copies of a call that has failed may still be on their way. */
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
    for (block = p->blocks; block != NULL; block = next) {
        next = block->next;
        if (becomes_idle(p, block, until_ns))
            free_block(p->ops, block);
        else
            left += block->bytes;
    }
    if (left > 0)
        tti_log(TTI_LOG_WARN, "%zu bytes of pinned memory are never given back: a device is not through with them", left);
    tti_mutex_release(&p->lock);
    free(p);
}
