/* SPDX-License-Identifier: BSD-3-Clause
 *
 * profile.c - ranges: what a thread of the program was at, in the ring and in totals by name.
 *
 * How     A range is a record that is written when it begins and changed when it ends, and kept on a stack of its
 *         thread's. Totals stand with the name, in shared memory, added up atomically: ranges of one name may end on
 *         several threads at once. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fork.h"
#include "base/port.h"
#include "recorder/memory.h"
#include "recorder/probe.h"
#include <tutti/private.h>

typedef struct open_range {
    uint64_t id;    /* 0: it is not recorded */
    uint64_t began;
    unsigned name;
    uint32_t age; /* of the process: what a parent has begun is in the parent's ring */
    char     text[TUTTI_RECORDER_TEXT_MAX];
} open_range;

static _Thread_local struct {
    int        n;
    uint64_t   thread; /* 0: not asked for yet */
    uint32_t   age;    /* of the process that asked */
    open_range ranges[TUTTI_PROFILE_DEPTH_MAX];
} stack;

static uint64_t thread_number(void)
{
    if (stack.thread == 0 || tti_is_inherited(stack.age)) {
        stack.thread = (uint64_t)syscall(SYS_gettid);
        stack.age = tti_fork_age();
    }
    return stack.thread;
}

static void begin(tti_ring *ring, open_range *range)
{
    tutti_recorder_slot *slot;

    range->name = tti_record_name(range->text);
    range->id = tti_record_write(ring, TTI_NO_PLACE,
                                 &(tti_record_facts){ .kind = TUTTI_RECORD_RANGE, .name = range->name, .peer = -1 }, 0,
                                 TUTTI_RECORD_STARTED);
    slot = tti_record_slot(ring, range->id);
    tti_word_set(&slot->thread, thread_number());
    range->began = tti_word_peek(&slot->began);
}

tutti_status tutti_profile_push(const char *name)
{
    open_range  *range;
    tti_ring    *ring;
    tutti_status st;

    if (name == NULL || name[0] == '\0' || strlen(name) >= TUTTI_RECORDER_TEXT_MAX)
        return tti_fail(TUTTI_E_ARG, "tutti_profile_push: a name has 1 to %d bytes", TUTTI_RECORDER_TEXT_MAX - 1);
    if (stack.n == TUTTI_PROFILE_DEPTH_MAX)
        return tti_fail(TUTTI_E_STATE, "tutti_profile_push: '%s' would be range %d, one inside of the other", name,
                        stack.n + 1);
    st = tti_recorder_start(-1, 0);
    if (st != TUTTI_OK)
        return st;
    range = &stack.ranges[stack.n++];
    memcpy(range->text, name, strlen(name) + 1);
    range->id = 0;
    range->age = tti_fork_age();
    ring = tti_port_stand_in() == NULL ? tti_ring_now() : NULL;
    if (ring != NULL)
        begin(ring, range);
    TTI_PROBE2(range_begin, range->text, range->id);
    return TUTTI_OK;
}

/* The longest so far; another thread may be at it, too. */
static void raise_most(uint64_t *most, uint64_t took)
{
    uint64_t seen = tti_word_peek(most);

    while (seen < took && !__atomic_compare_exchange_n(most, &seen, took, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

static void add_up(tti_ring *ring, const open_range *range)
{
    tutti_recorder_name_slot *name = &ring->names[range->name - 1];
    const uint64_t            took = tti_ticks(ring->counter) - range->began;

    __atomic_fetch_add(&name->ticks_total, took, __ATOMIC_RELAXED);
    raise_most(&name->ticks_most, took);
    __atomic_fetch_add(&name->ranges, 1, __ATOMIC_RELEASE);
}

tutti_status tutti_profile_pop(void)
{
    tti_ring   *ring = tti_ring_now();
    open_range *range;

    if (stack.n == 0)
        return tti_fail(TUTTI_E_STATE, "tutti_profile_pop: this thread has no range open");
    range = &stack.ranges[--stack.n];
    if (ring != NULL && range->id != 0 && !tti_is_inherited(range->age)) {
        tti_record_mark_end(range->id);
        add_up(ring, range);
    }
    TTI_PROBE2(range_end, range->text, range->id);
    return TUTTI_OK;
}
