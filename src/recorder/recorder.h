/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/recorder.h - what writes the flight recorder: how a process gets its memory, and the few stores that an
 * operation pays.
 *
 * Whoever runs operations holds a tti_ring_place for its group, and for each operation an id:
 *
 *     id = tti_record_begin(place, kind, ...);        0: nothing is recorded
 *     ... the operation ...
 *     tti_record_end(id, status, quick);
 *
 * A thread takes ids by an atomic addition, TTI_ID_BLOCK at a time, for one costs as much as all stores of a record; what
 * follows is plain stores into the id's entry, so any thread may record. It leaves what it has taken when others have come
 * half around the ring since. A thread that stands still in between while they go once around it writes into an entry that
 * is another's by then: the check in the record tells (layout.h). What an operation changes later is the one word that
 * has its id in it, so a late change of an entry that is another's is seen as such. */
#ifndef TTI_RECORDER_RECORDER_H
#define TTI_RECORDER_RECORDER_H

#include <stdatomic.h>
#include "recorder/clock.h"
#include "recorder/layout.h"

/** The memory of this process, as it writes it. */
typedef struct tti_ring {
    tutti_recorder_head       *head;
    tutti_recorder_slot       *records;
    tutti_recorder_group_slot *groups;
    tutti_recorder_name_slot  *names;
    int32_t                   *ranks;
    uint64_t                   mask; /* record_count - 1 */
    bool                       counter;
    int                        fd;
    bool                       is_held; /* by a launcher */
    _Atomic uint64_t           failed; /* the record that failed first; 0: none */
} tti_ring;

/** The ring, or NULL: none yet, none wanted, or this is a child of fork(). One for the process: that is what a reader
 * looks for. Set once, after all of it is there (release); a reader of the pointer that finds it (consume, as acquire)
 * finds the rest. */
extern _Atomic(tti_ring *) tti_ring_of_process;

static inline tti_ring *tti_ring_now(void)
{
    return atomic_load_explicit(&tti_ring_of_process, memory_order_acquire);
}

/** A group's place in the table of groups. */
typedef struct tti_ring_place {
    tutti_recorder_group_slot *slot; /* NULL: the group is not recorded */
    unsigned                   index;
} tti_ring_place;

/** What a thread knows that its next record says. */
typedef struct tti_thread_facts {
    unsigned name;      /* what the program calls its operations now: tti_record_name(); 0: nothing */
    uint32_t n_waits;   /* long ones, since its last record ended; whoever waits notes them */
    int32_t  late;      /* rank in the group that the last one was for; -1: nobody is known */
    int64_t  waited_ns; /* all of them */
    uint64_t next_id;   /* of those that it has taken */
    uint64_t end_id;
    uint64_t failed;    /* of its records the last that it ended as failed; 0: one has ended well, with a moment, since */
} tti_thread_facts;

/* Not in the static memory of threads: dlopen() has little of that to give. */
extern _Thread_local tti_thread_facts tti_facts_of_thread;

/** Those of this thread. To ask where a thread's variables are is a call in a shared object, and compilers do it at each use:
 * who records asks once, when an operation begins, and keeps the answer until it ends. */
static inline tti_thread_facts *tti_thread_facts_now(void)
{
    tti_thread_facts *facts = &tti_facts_of_thread;

    __asm__("" : "+r"(facts)); /* so that it is kept, not asked for again */
    return facts;
}

/** This thread has waited for rank late of the group whose operation it is in. */
static inline void tti_record_waited(int late, int64_t waited_ns)
{
    tti_facts_of_thread.n_waits++;
    tti_facts_of_thread.late = late;
    tti_facts_of_thread.waited_ns += waited_ns;
}

/** What a record says besides its ring's part. */
typedef struct tti_record_facts {
    unsigned    kind; /* tutti_record_kind */
    tutti_dtype dtype;
    unsigned    op;
    unsigned    device;
    unsigned    name; /* tti_record_name(); 0: none was given */
    uint64_t    seq;
    int         peer; /* group rank; -1 */
    int         tag;
    int64_t     count;
} tti_record_facts;

static inline tutti_recorder_slot *tti_record_slot(const tti_ring *ring, uint64_t id)
{
    return &ring->records[(id - 1) & ring->mask];
}

/** More ids for this thread: the first of them. */
uint64_t tti_record_take_ids(tti_ring *ring);

static inline uint64_t tti_record_new_id(tti_ring *ring, tti_thread_facts *thread)
{
    if (thread->next_id == thread->end_id || tti_word_peek(&ring->head->issued) - thread->next_id > ring->mask / 2)
        return tti_record_take_ids(ring);
    return thread->next_id++;
}

/** Write one record of what was issued at began, tti_ticks(), in state: its id. thread: tti_thread_facts_now(). */
static inline uint64_t tti_record_write_by(tti_thread_facts *thread, tti_ring *ring, unsigned group, const tti_record_facts *facts,
                                           uint64_t began, unsigned flags, tutti_record_state state)
{
    const uint64_t       id = tti_record_new_id(ring, thread);
    const uint64_t       call = tti_record_call(facts->kind, facts->dtype, facts->op, facts->device, group, facts->name);
    const uint64_t       place = (uint64_t)(uint32_t)(facts->peer + 1) | (uint64_t)(uint32_t)facts->tag << 32;
    const uint64_t       seq = facts->seq & TTI_SEQ_MASK;
    const uint64_t       count = (uint64_t)facts->count;
    tutti_recorder_slot *slot = tti_record_slot(ring, id);

    tti_word_put(&slot->id, 0);
    tti_word_set(&slot->state, tti_record_state_word(id, flags, TUTTI_OK, state));
    tti_word_set(&slot->call, call);
    tti_word_set(&slot->seq, seq | tti_record_check(id, call, seq, place, count, began) << TTI_SEQ_BITS);
    tti_word_set(&slot->place, place);
    tti_word_set(&slot->count, count);
    tti_word_set(&slot->began, began);
    tti_word_set(&slot->ended, 0);
    tti_word_set(&slot->id, id);
    __builtin_prefetch(tti_record_slot(ring, id + 1), 1); /* what is stored behind a record waits for its line */
    return id;
}

/** The moment for a record that is written soon; 0: nothing is recorded. To read the counter takes longer than all stores of
 * a record: before a locked instruction, for which the processor waits anyway, that costs less. */
static inline uint64_t tti_record_moment(void)
{
    const tti_ring *ring = tti_ring_now();

    return ring != NULL ? tti_ticks(ring->counter) : 0;
}

static inline uint64_t tti_record_write(tti_ring *ring, unsigned group, const tti_record_facts *facts, unsigned flags,
                                        tutti_record_state state)
{
    return tti_record_write_by(tti_thread_facts_now(), ring, group, facts, tti_ticks(ring->counter), flags, state);
}

/** Give an id's entry a new state; flags are added. */
void tti_record_change(uint64_t id, unsigned flags, tutti_status status, tutti_record_state state);

/** It begins to run now, later than it was issued; nothing if it has begun before. */
void tti_record_start(uint64_t id);

/** Of a shrink: whom its list leaves out, a bit for each group rank. */
void tti_record_left_out(uint64_t id, const uint64_t left_out[2]);

/** Its bytes, where they do not follow from kind and count. */
void tti_record_bytes(uint64_t id, uint64_t in_bytes, uint64_t out_bytes);

/** It has ended well, now; on any thread, whatever that one slept for. */
void tti_record_mark_end(uint64_t id);

/** It has ended, and took its time, waited long, or failed: with the moment, and what it waited for. Nothing if it has
 * ended before. */
void tti_record_end_slowly(uint64_t id, tutti_status status);

/** An operation that was recorded with flags has ended on this thread. small: without waiting it takes some
 * microseconds at most, and its end is not stamped. */
static inline void tti_record_end_by(const tti_thread_facts *thread, uint64_t id, unsigned flags, tutti_status status, bool small)
{
    tti_ring            *ring = tti_ring_now();
    tutti_recorder_slot *slot;

    if (id == 0 || ring == NULL)
        return;
    if (status != TUTTI_OK || thread->n_waits != 0) {
        tti_record_end_slowly(id, status);
        return;
    }
    slot = tti_record_slot(ring, id);
    if (small)
        flags |= TUTTI_RECORD_QUICK;
    else
        tti_word_set(&slot->ended, tti_ticks(ring->counter));
    tti_word_set(&slot->state, tti_record_state_word(id, flags, TUTTI_OK, TUTTI_RECORD_DONE));
}

static inline void tti_record_end(uint64_t id, unsigned flags, tutti_status status, bool small)
{
    tti_record_end_by(tti_thread_facts_now(), id, flags, status, small);
}

/* memory.c */

/** Make the memory of this process, or take what its launcher has made, unless there is one. Whatever fails, but for
 * variables, is logged, and nothing is recorded then.
 * @errors TUTTI_E_ARG  a variable is wrong */
tutti_status tti_recorder_start(int rank, int world_size);

/* find.c */

/** What a neighbour needs to hold the memory of this process; 0: there is none, or a launcher holds it. */
uint64_t tti_recorder_to_hold(void);
/** Hold the memory of process pid, which has told that number: a descriptor, -1 if it cannot be had. */
int tti_recorder_hold(int64_t pid, uint64_t number);
/** Hold it no longer. -1 is fine. */
void tti_recorder_let_go(int fd);

/* tables.c */

/** What the table has of a group. ranks may be NULL: 0 .. size-1. */
typedef struct tti_group_facts {
    const char *name;
    const char *desc;
    const char *backend;
    const char *world;
    uint32_t    number;
    int         rank;
    int         world_rank;
    int         size;
    const int  *ranks;
    uint64_t    world_id; /* of its world, as are the next two */
    uint32_t    generation;
    int         world_size;
    uint64_t    follows; /* made of the group whose place this one takes: tti_recorder_age(); 0 */
} tti_group_facts;

/** Give a group a place; none if there is no recorder, or no place is left. */
tti_ring_place tti_recorder_add_group(const tti_group_facts *facts);
/** It is gone. */
void tti_recorder_drop_group(tti_ring_place *place);
/** A world goes on in the place of a former one. Both are there. */
void tti_recorder_succeed(const tti_ring_place *former, const tti_ring_place *place);
/** What a group is called as the former of another one; 0: it is not recorded. */
static inline uint64_t tti_recorder_age(const tti_ring_place *place)
{
    return place->slot != NULL ? place->slot->made : 0;
}
/** It has failed with status and words. Those of the first group of the process to fail, by itself, are kept, with the
 * record that failed first. */
void tti_recorder_fail_group(const tti_ring_place *place, tutti_status status, const char *words);

/** Those of a failure that a dump is about to be made for: kept in the same way, before its group has failed of it. */
void tti_recorder_keep_words(const char *words);

/** The number of a name among those that are kept; 0: "". A name that there is no room for is "?". Never fails. */
unsigned tti_record_name(const char *text);

/** How many groups the process has made. */
uint64_t tti_recorder_n_made(void);
/** Which of them record id is of, counted from 1; the last one where that is not known. */
uint64_t tti_recorder_made_of(uint64_t id);

/* dump.c */

/** After a failure with st, of which this thread has the words: if TUTTI_TRACE_FILE is set, and st is such that others may
 * be to blame, write the dump, unless the group was there already when the last one was written, and add to the words where it
 * is. Returns st. */
tutti_status tti_recorder_dump_failure(tutti_status st);

#endif
