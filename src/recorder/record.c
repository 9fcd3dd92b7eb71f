/* SPDX-License-Identifier: BSD-3-Clause
 *
 * record.c - the rest of a record, where there is more to say than that an operation has ended well and at once. */
#include "recorder/memory.h"

static const uint64_t NOTE_EVERY = 1024; /* ids, between two notes of the clock */

uint64_t tti_record_take_ids(tti_ring *ring)
{
    const uint64_t before = __atomic_fetch_add(&ring->head->issued, TTI_ID_BLOCK, __ATOMIC_RELAXED);

    tti_facts_of_thread.next_id = before + 2;
    tti_facts_of_thread.end_id = before + TTI_ID_BLOCK + 1;
    if (before % NOTE_EVERY == 0)
        tti_recorder_note_clock(ring);
    return before + 1;
}

/* The entry of id, unless it is another's by now. */
static tutti_recorder_slot *entry_of(const tti_ring *ring, uint64_t id)
{
    tutti_recorder_slot *slot;

    if (ring == NULL || id == 0)
        return NULL;
    slot = tti_record_slot(ring, id);
    return tti_word_peek(&slot->id) == id ? slot : NULL;
}

static unsigned flags_of(const tutti_recorder_slot *slot)
{
    return (unsigned)(tti_word_peek(&slot->state) >> 16 & 0xffff);
}

static tutti_record_state state_of(const tutti_recorder_slot *slot)
{
    return (tutti_record_state)(tti_word_peek(&slot->state) & 0xff);
}

static void change(tutti_recorder_slot *slot, uint64_t id, unsigned flags, tutti_status status, tutti_record_state state)
{
    tti_word_set(&slot->state, tti_record_state_word(id, flags_of(slot) | flags, status, state));
}

void tti_record_change(uint64_t id, unsigned flags, tutti_status status, tutti_record_state state)
{
    tutti_recorder_slot *slot = entry_of(tti_ring_now(), id);

    if (slot != NULL)
        change(slot, id, flags, status, state);
}

void tti_record_start(uint64_t id)
{
    tti_ring            *ring = tti_ring_now();
    tutti_recorder_slot *slot = entry_of(ring, id);

    if (slot == NULL || state_of(slot) != TUTTI_RECORD_ISSUED)
        return;
    tti_word_set(&slot->ran, tti_ticks(ring->counter));
    change(slot, id, TUTTI_RECORD_RAN, TUTTI_OK, TUTTI_RECORD_STARTED);
}

void tti_record_bytes(uint64_t id, uint64_t in_bytes, uint64_t out_bytes)
{
    tutti_recorder_slot *slot = entry_of(tti_ring_now(), id);

    if (slot == NULL)
        return;
    tti_word_set(&slot->in_bytes, in_bytes);
    tti_word_set(&slot->out_bytes, out_bytes);
    change(slot, id, TUTTI_RECORD_BYTES, TUTTI_OK, state_of(slot));
}

void tti_record_left_out(uint64_t id, const uint64_t left_out[2])
{
    tutti_recorder_slot *slot = entry_of(tti_ring_now(), id);

    if (slot == NULL)
        return;
    tti_word_set(&slot->left_out[0], left_out[0]);
    tti_word_set(&slot->left_out[1], left_out[1]);
    change(slot, id, TUTTI_RECORD_LISTED, TUTTI_OK, state_of(slot));
}

void tti_record_mark_end(uint64_t id)
{
    tti_ring            *ring = tti_ring_now();
    tutti_recorder_slot *slot = entry_of(ring, id);

    if (slot == NULL)
        return;
    tti_word_set(&slot->ended, tti_ticks(ring->counter));
    change(slot, id, 0, TUTTI_OK, TUTTI_RECORD_DONE);
}

/* What this thread waited for belongs to the record that ends now, if to any. */
static unsigned note_waits(tutti_recorder_slot *slot)
{
    const tti_thread_facts *thread = &tti_facts_of_thread;

    if (thread->n_waits == 0)
        return 0;
    tti_word_set(&slot->late, (uint64_t)(thread->late + 1));
    tti_word_set(&slot->waited_ns, (uint64_t)thread->waited_ns);
    return TUTTI_RECORD_WAITED;
}

static void end(tti_ring *ring, tutti_recorder_slot *slot, uint64_t id, tutti_status status)
{
    const unsigned flags = note_waits(slot);

    tti_word_set(&slot->ended, tti_ticks(ring->counter));
    change(slot, id, flags, status, status == TUTTI_OK ? TUTTI_RECORD_DONE : TUTTI_RECORD_FAILED);
}

static void count_failure(tti_ring *ring, uint64_t id)
{
    uint64_t none = 0;

    __atomic_fetch_add(&ring->head->failures, 1, __ATOMIC_RELAXED);
    atomic_compare_exchange_strong(&ring->failed, &none, id);
}

void tti_record_end_slowly(uint64_t id, tutti_status status)
{
    tti_ring            *ring = tti_ring_now();
    tutti_recorder_slot *slot = entry_of(ring, id);

    if (slot != NULL && state_of(slot) < TUTTI_RECORD_DONE)
        end(ring, slot, id, status);
    else if (slot != NULL)
        status = TUTTI_OK; /* it was counted then */
    if (ring != NULL && id != 0 && status != TUTTI_OK)
        count_failure(ring, id);
    if (ring != NULL && status != TUTTI_OK)
        tti_recorder_note_clock(ring);
    tti_facts_of_thread.failed = status != TUTTI_OK ? id : 0;
    tti_facts_of_thread.n_waits = 0;
    tti_facts_of_thread.waited_ns = 0;
}
