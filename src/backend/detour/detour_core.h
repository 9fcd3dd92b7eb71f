/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/detour/detour_core.h - what the files of this room share.
 *
 * Locking  detour->lock guards the lanes' list, spare tickets, host, status and words. It is held for moments only, and never
 *          around a call of the device or of the backend that may take long. Of a lane all is constant but `last`, which belongs to
 *          whoever is inside run. run is one thread at a time.
 * Life     A detour is counted: the backend beside it, and each ticket. Events of tickets stay valid after close, as the device's
 *          table is never unloaded. */
#ifndef TTI_BACKEND_DETOUR_CORE_H
#define TTI_BACKEND_DETOUR_CORE_H

#include <stdatomic.h>
#include "backend/detour/detour.h"
#include "backend/detour/pieces.h"
#include "base/clip.h"
#include "base/thread.h"

enum {
    TTI_DETOUR_DEPTH = 3,            /* pieces under way: one comes, one is worked on, one goes */
    TTI_DETOUR_SPARE = 16,           /* tickets that are kept for later calls */
    TTI_DETOUR_WORDS = TTI_LAST_ERROR_MAX,
    TTI_DETOUR_TEXT = 192            /* of "all_reduce #7 (3000000 f32) on group 'dp'" */
};

/* ---- pinned.c ---- */

/** A block of pinned memory. */
typedef struct tti_block {
    struct tti_block *next; /* of those that nobody has */
    char             *memory;
    size_t            bytes;
    int               device; /* whose stream its event is recorded on */
    void             *event;  /* the last copy with it */
    bool              used;   /* the event was recorded */
    bool              unsure; /* put back by a call that had not ended well: the device may never come to it */
    bool              stays;  /* of the end: a device is not through with it, or with another one of its own */
} tti_block;

/** Blocks that are kept for later calls, of a world and its groups: when a call has ended so many bytes as TUTTI_PINNED_MAX says, and
 * what a device still works on then. Counted. */
typedef struct tti_pinned tti_pinned;

tutti_status tti_pinned_create(void (*idle)(uint32_t *rounds, bool in_background), tti_pinned **pinned_out);
tti_pinned *tti_pinned_hold(tti_pinned *pinned);
/** The last one waits a moment for a device that still works on a block; then all that it has is left to it. */
void tti_pinned_drop(tti_pinned *pinned);
/** A block of at least so many bytes that no device works on. */
tutti_status tti_pinned_take(tti_pinned *pinned, const tutti_device_ops *ops, int device, size_t bytes, tti_block **block_out);
/** Its event is recorded behind the last copy with it. Waits for nothing. */
void tti_pinned_put(tti_pinned *pinned, tti_block *block, bool unsure);
/** Let go of what is too much, now that a call has ended well. It may wait for all that a device does. */
void tti_pinned_trim(tti_pinned *pinned);
/** What a block that is made for so many bytes has: powers of two as long as a piece of a call may need them, as pieces of many sizes
 * share blocks; then little more than is asked for. */
size_t tti_pinned_size(size_t bytes);

/* ---- detour.c ---- */

typedef struct tti_lane {
    struct tti_lane *next;
    int              device;
    void            *in, *out; /* streams: to the host, and back */
    void            *last;     /* event: behind all copies of the last call */
    bool             used;     /* it was recorded */
} tti_lane;

struct tti_detour {
    _Atomic int refs;

    /* Constant from creation on; what is borrowed is there until close. */
    int                     rank, n_ranks;
    const int              *global_ranks; /* [n_ranks], borrowed, as are store and beside */
    char                   *name;
    tutti_store            *store;
    tutti_backend          *beside;
    const tutti_backend_ops *ops; /* of beside, and of host */
    uint32_t                group_id;
    bool                    has_queued;
    tti_pinned             *pinned;
    tutti_status (*find)(const tutti_device_ops **ops_out);
    void (*idle)(uint32_t *rounds, bool in_background);

    /* Written once, by the first mark, under the lock; constant once there is a lane. */
    const tutti_device_ops *dev;

    /* Of whoever is inside run. */
    uint64_t     seq;       /* of host's calls */
    tutti_store *own_store; /* the part of store that is host's */
    const void **places;    /* of the pieces' parts: for each, [n_ranks] of ins and [n_ranks] of list; NULL: no call yet */
    int64_t      deadline_ns; /* of the last call */

    tti_mutex      lock;
    tti_lane      *lanes;
    tutti_ticket  *spare;
    int            n_spare;
    tutti_backend *host; /* NULL: no call has come yet */
    _Atomic int    status; /* what it has failed with: written under the lock, after words */
    char           words[TTI_DETOUR_WORDS];
};

struct tutti_ticket {
    tutti_ticket *next; /* among spare ones */
    tti_detour   *detour;
    tti_lane     *lane;   /* NULL: of a call without buffers */
    void         *before; /* event: how far the caller's stream had come; NULL: as lane */
    void         *after;  /* event: the end of the call, once run has begun it */
    bool          begun;  /* written inside run, read by those who have seen run end */
};

/** Words that it has failed, and its status. */
tutti_status tti_detour_say(tti_detour *detour);
/** The detour fails with this thread's last error, its own backend, too; the first time counts. Gives status. */
tutti_status tti_detour_end(tti_detour *detour, tutti_status status);
/** Make the detour's own backend, with all members, if it is not there. */
tutti_status tti_detour_meet(tti_detour *detour, int64_t timeout_ms);
void tti_detour_drop(tti_detour *detour);
/** Look at an event until it has come, or the deadline has passed: then *late_out, and TUTTI_OK. */
tutti_status tti_detour_await(tti_detour *detour, int device, void *event, int64_t deadline_ns, bool in_background, bool *late_out);

/* ---- ticket.c ---- */

/** A ticket whose place nobody has marked; with a lane it has events. */
tutti_status tti_detour_ticket_new(tti_detour *detour, tti_lane *lane, tutti_ticket **ticket_out);
void tti_detour_tickets_free(tti_detour *detour);
/** The lane of a device, made if it is the first call on it. */
tutti_status tti_detour_lane(tti_detour *detour, int device, tti_lane **lane_out);

#endif
