/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/recorded.h - what the room tells the flight recorder (recorder/), and when.
 *
 * A collective is recorded where it is handed to its backend (queue.c), which all of them pass, whichever thread runs
 * them; an asynchronous one when it gets its number (progress.c). A message is when it is posted (p2p.c). Works end in
 * one place (work.c). What is said here is a few stores; a group without a place, as under a port that is not the
 * machine's, pays one load. */
#ifndef TTI_GROUP_RECORDED_H
#define TTI_GROUP_RECORDED_H

#include "group/straggler.h"
#include "recorder/probe.h"

/* Elements of a collective that ends within some microseconds if nobody is waited for: its end is not timed. */
enum { TTI_SMALL_COUNT = 1024 };

/** Give a group whose backends are there its place, and take it back. */
void tti_recorded_group_begin(tutti_group *group);
void tti_recorded_group_end(tutti_group *group);

/** Its bytes, where count does not tell them. */
void tti_recorded_parts(const tutti_group *group, const tutti_call *call);

static inline uint64_t tti_recorded_call(tti_thread_facts *thread, const tutti_group *group, const tutti_call *call,
                                         uint64_t moment, unsigned flags, tutti_record_state state)
{
    tti_ring              *ring = tti_ring_now();
    const tti_record_facts facts = { .kind = call->kind, .dtype = call->dtype, .op = call->op.kind,
                                     .device = call->device, .name = thread->name, .seq = call->seq,
                                     .peer = call->root, .count = call->count };

    if (group->place.slot == NULL || ring == NULL)
        return 0;
    return tti_record_write_by(thread, ring, group->place.index, &facts, moment != 0 ? moment : tti_ticks(ring->counter), flags, state);
}

/** A collective that gets its number now and runs later. Lock held. */
static inline void tti_recorded_issue(const tutti_group *group, tutti_call *call)
{
    call->record = tti_recorded_call(tti_thread_facts_now(), group, call, 0, TUTTI_RECORD_ASYNC, TUTTI_RECORD_ISSUED);
    if (group->place.slot != NULL)
        tti_word_put(&group->place.slot->issued, call->seq);
    if (call->n_parts > 0)
        tti_recorded_parts(group, call);
}

/** A collective is handed to its backend by this thread, tti_thread_facts_now(). It was issued at moment; 0: now. */
static inline void tti_recorded_begin(tti_thread_facts *thread, const tutti_group *group, tutti_call *call, uint64_t moment)
{
    if (call->record == 0) {
        call->record = tti_recorded_call(thread, group, call, moment, 0, TUTTI_RECORD_STARTED);
        if (call->n_parts > 0)
            tti_recorded_parts(group, call);
    } else {
        tti_record_start(call->record);
    }
    if (group->place.slot != NULL)
        tti_word_put(&group->place.slot->began, call->seq);
    TTI_PROBE4(call_begin, group->name, call->seq, call->kind, call->count);
}

/** It has ended; blocking: nobody but this thread knows of it. */
static inline void tti_recorded_end(const tti_thread_facts *thread, tutti_group *group, const tutti_call *call, tutti_status st,
                                    bool blocking)
{
    if (thread->n_waits != 0)
        tti_straggler_look(group, call);
    if (blocking)
        tti_record_end_by(thread, call->record, call->n_parts > 0 ? TUTTI_RECORD_BYTES : 0, st,
                       call->count <= TTI_SMALL_COUNT && call->n_parts == 0);
    else
        tti_record_end_slowly(call->record, st);
    if (group->place.slot != NULL)
        tti_word_put(&group->place.slot->ended, call->seq);
    TTI_PROBE4(call_end, group->name, call->seq, call->kind, st);
}

/** A message is posted by this thread: its record. */
static inline uint64_t tti_recorded_message(tti_thread_facts *thread, const tutti_group *group, const tti_posting *p, unsigned flags)
{
    const tutti_message   *m = &p->message;
    tti_ring              *ring = tti_ring_now();
    tti_record_facts       facts = { .kind = m->is_send ? TUTTI_RECORD_SEND : TUTTI_RECORD_RECV, .dtype = m->dtype,
                                     .device = m->device, .name = thread->name, .peer = m->peer,
                                     .tag = m->tag, .count = m->count };

    TTI_PROBE4(message_begin, group->name, m->is_send, p->peer, m->count);
    if (group->place.slot == NULL || ring == NULL)
        return 0;
    facts.seq = __atomic_add_fetch(&group->place.slot->messages, 1, __ATOMIC_RELAXED);
    return tti_record_write_by(thread, ring, group->place.index, &facts, tti_ticks(ring->counter), flags, TUTTI_RECORD_STARTED);
}

/** Another operation of the group, without a number, begins: its record. buf is what it copies, if anything. */
static inline uint64_t tti_recorded_other(const tutti_group *group, tutti_record_kind kind, int peer, tutti_span buf,
                                          unsigned flags)
{
    tti_ring              *ring = tti_ring_now();
    tti_thread_facts      *thread = tti_thread_facts_now();
    const tti_record_facts facts = { .kind = (unsigned)kind, .dtype = buf.dtype, .device = buf.device.type,
                                     .name = thread->name, .peer = peer, .count = buf.count };

    if (group->place.slot == NULL || ring == NULL)
        return 0;
    return tti_record_write_by(thread, ring, group->place.index, &facts, tti_ticks(ring->counter), flags, TUTTI_RECORD_STARTED);
}

/** A call that makes a group of another one begins on it, and may be made of calls with records of their own: its record. count and
 * peer, a group rank or -1, are what the kind says. */
uint64_t tti_recorded_regrouping(const tutti_group *group, tutti_record_kind kind, int peer, int64_t count);
/** Of a shrink: whom its list leaves out, a bit for each group rank. */
void tti_recorded_left_out(uint64_t record, const uint64_t left_out[2]);
/** It has ended with st; the group may be gone. Nothing is dumped for that: the group goes on as a rule, and a failure of its own would
 * have no dump then. A step that ends the group has been. Returns st. */
tutti_status tti_recorded_regrouping_end(uint64_t record, tutti_status st);

/** A blocking message has ended. */
static inline void tti_recorded_message_end(const tti_thread_facts *thread, const tutti_group *group, const tti_posting *p,
                                            uint64_t record, tutti_status st)
{
    tti_record_end_by(thread, record, 0, st, p->message.count <= TTI_SMALL_COUNT);
    TTI_PROBE4(message_end, group->name, p->message.is_send, p->peer, st);
}

#endif
