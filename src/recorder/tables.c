/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tables.c - the groups and the names that records point to.
 *
 * How     A place is found, and its words are written while its turn is odd; a reader that finds it odd, or changed,
 *         leaves it out. Places of groups that are gone are used again, the one that is gone longest first, so that
 *         records of a destroyed group keep its name for a while; first_id tells records of the place's former
 *         group from those of the present one. Lists of members stand one behind the other; when there is no room
 *         the lists of groups that are gone are closed up. Names stay.
 * True    Writers of the tables are ordered by a lock; what operations write into a group's place (numbers) are single
 *         words, each with one writer at a time: whoever has the group's turn, or its lock. */
#include <pthread.h>
#include <stdio.h>
#include "base/fork.h"
#include "recorder/memory.h"

/* Of the process, like the ring: it guards the shared tables against its threads. */
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t n_made; /* groups so far; guarded by tables_lock */

static void before_fork(void)
{
    pthread_mutex_lock(&tables_lock);
}

static void after_fork(bool in_child)
{
    if (in_child)
        n_made = 0; /* it has other tables, if any */
    pthread_mutex_unlock(&tables_lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

/* ---- lists of members ---- */

static bool is_there(const tutti_recorder_group_slot *slot)
{
    return (slot->flags & TTI_GROUP_THERE) != 0;
}

/* Numbers in the table of ranks that lists use. */
static int32_t end_of_lists(const tti_ring *ring)
{
    int32_t end = 0;
    int     i;

    for (i = 0; i < TTI_RECORDED_GROUPS; i++) {
        const tutti_recorder_group_slot *slot = &ring->groups[i];

        if (slot->turn != 0 && slot->ranks_at >= 0 && slot->ranks_at + slot->size > end)
            end = slot->ranks_at + slot->size;
    }
    return end;
}

static void turn_begin(tutti_recorder_group_slot *slot)
{
    tti_word_put(&slot->turn, slot->turn + 1);
}

static void turn_end(tutti_recorder_group_slot *slot)
{
    tti_word_set(&slot->turn, slot->turn + 1);
}

static void set_int(int32_t *to, int32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/* The living group with the first list at or behind `from`. */
static tutti_recorder_group_slot *first_list(tti_ring *ring, int32_t from)
{
    tutti_recorder_group_slot *found = NULL;
    int                        i;

    for (i = 0; i < TTI_RECORDED_GROUPS; i++) {
        tutti_recorder_group_slot *slot = &ring->groups[i];

        if (is_there(slot) && slot->ranks_at >= from && (found == NULL || slot->ranks_at < found->ranks_at))
            found = slot;
    }
    return found;
}

/* Take the room of groups that are gone. */
static void close_up(tti_ring *ring)
{
    tutti_recorder_group_slot *slot;
    int32_t                    from = 0, to = 0, i;

    for (i = 0; i < TTI_RECORDED_GROUPS; i++) {
        slot = &ring->groups[i];
        if (slot->turn == 0 || is_there(slot) || slot->ranks_at < 0)
            continue;
        turn_begin(slot);
        set_int(&slot->ranks_at, TTI_RANKS_LOST);
        turn_end(slot);
    }
    while ((slot = first_list(ring, from)) != NULL) {
        from = slot->ranks_at + slot->size;
        turn_begin(slot);
        for (i = 0; i < slot->size; i++)
            set_int(&ring->ranks[to + i], ring->ranks[slot->ranks_at + i]);
        set_int(&slot->ranks_at, to);
        turn_end(slot);
        to += slot->size;
    }
}

static bool is_all(const tti_group_facts *facts)
{
    int i;

    for (i = 0; facts->ranks != NULL && i < facts->size; i++)
        if (facts->ranks[i] != i)
            return false;
    return true;
}

/* Keep the list of a group: where it stands. */
static int32_t keep_ranks(tti_ring *ring, const tti_group_facts *facts)
{
    int32_t at = end_of_lists(ring);
    int     i;

    if (is_all(facts))
        return TTI_RANKS_ALL;
    if (facts->size > TTI_RECORDED_RANKS - at) {
        close_up(ring);
        at = end_of_lists(ring);
    }
    if (facts->size > TTI_RECORDED_RANKS - at)
        return TTI_RANKS_LOST;
    for (i = 0; i < facts->size; i++)
        set_int(&ring->ranks[at + i], facts->ranks[i]);
    return at;
}

/* ---- groups ---- */

/* A place that nobody has; of those that somebody had, the one that is oldest. */
static tutti_recorder_group_slot *find_place(tti_ring *ring)
{
    tutti_recorder_group_slot *found = NULL;
    int                        i;

    for (i = 0; i < TTI_RECORDED_GROUPS; i++) {
        tutti_recorder_group_slot *slot = &ring->groups[i];

        if (slot->turn == 0)
            return slot;
        if (!is_there(slot) && (found == NULL || slot->made < found->made))
            found = slot;
    }
    return found;
}

static void put_text(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text != NULL ? text : "");
}

static void fill(tti_ring *ring, tutti_recorder_group_slot *slot, const tti_group_facts *facts)
{
    tutti_recorder_group_slot mine = {
        .number = facts->number, .flags = TTI_GROUP_THERE, .rank = facts->rank, .size = facts->size,
        .world_rank = facts->world_rank, .made = ++n_made, .made_ticks = tti_ticks(ring->counter),
        .world_id = facts->world_id, .generation = facts->generation, .world_size = (uint32_t)facts->world_size,
        .follows = facts->follows,
    };

    put_text(mine.name, sizeof mine.name, facts->name);
    put_text(mine.desc, sizeof mine.desc, facts->desc);
    put_text(mine.backend, sizeof mine.backend, facts->backend);
    put_text(mine.world, sizeof mine.world, facts->world);
    turn_begin(slot);
    set_int(&slot->ranks_at, TTI_RANKS_LOST); /* its own room is free from here on */
    mine.ranks_at = keep_ranks(ring, facts);
    tti_words_set(&slot->number, &mine.number, sizeof mine - offsetof(tutti_recorder_group_slot, number));
    turn_end(slot);
}

tti_ring_place tti_recorder_add_group(const tti_group_facts *facts)
{
    tti_ring *ring = tti_ring_now();
    tti_ring_place place = { .slot = NULL };

    if (ring == NULL)
        return place;
    tti_fork_guard(&fork_part);
    pthread_mutex_lock(&tables_lock);
    place.slot = find_place(ring);
    if (place.slot != NULL) {
        place.index = (unsigned)(place.slot - ring->groups);
        fill(ring, place.slot, facts);
    }
    pthread_mutex_unlock(&tables_lock);
    tti_recorder_note_clock(ring);
    return place;
}

uint64_t tti_recorder_n_made(void)
{
    uint64_t n;

    pthread_mutex_lock(&tables_lock);
    n = n_made;
    pthread_mutex_unlock(&tables_lock);
    return n;
}

uint64_t tti_recorder_made_of(uint64_t id)
{
    const tti_ring            *ring = tti_ring_now();
    const tutti_recorder_slot *slot = ring != NULL && id != 0 ? tti_record_slot(ring, id) : NULL;
    const bool                 is_there = slot != NULL && tti_word_get(&slot->id) == id;
    const uint64_t             index = is_there ? tti_word_get(&slot->call) >> 32 & 0xffff : TTI_RECORDED_GROUPS;
    uint64_t                   made;

    if (index >= TTI_RECORDED_GROUPS)
        return tti_recorder_n_made();
    pthread_mutex_lock(&tables_lock);
    made = tti_word_peek(&ring->groups[index].made);
    pthread_mutex_unlock(&tables_lock);
    return made;
}

static void set_flags(tutti_recorder_group_slot *slot, uint32_t flags)
{
    turn_begin(slot);
    __atomic_store_n(&slot->flags, flags, __ATOMIC_RELEASE);
    turn_end(slot);
}

void tti_recorder_drop_group(tti_ring_place *place)
{
    if (place->slot == NULL || tti_ring_now() == NULL)
        return;
    pthread_mutex_lock(&tables_lock);
    set_flags(place->slot, place->slot->flags & ~(uint32_t)TTI_GROUP_THERE);
    pthread_mutex_unlock(&tables_lock);
    place->slot = NULL;
}

void tti_recorder_succeed(const tti_ring_place *former, const tti_ring_place *place)
{
    if (former->slot == NULL || place->slot == NULL || tti_ring_now() == NULL)
        return;
    pthread_mutex_lock(&tables_lock);
    turn_begin(place->slot);
    tti_word_set(&place->slot->follows, former->slot->made);
    turn_end(place->slot);
    pthread_mutex_unlock(&tables_lock);
}

/* The words of the first failure. Lock held. */
static void keep_words(tti_ring *ring, const char *words)
{
    tutti_recorder_head *head = ring->head;
    char                 text[TUTTI_RECORDER_WORDS_MAX] = "";
    uint64_t             id = atomic_load(&ring->failed);

    if (tti_word_peek(&head->failed_id) != 0)
        return;
    snprintf(text, sizeof text, "%s", words);
    tti_words_set(head->failed_words, text, sizeof text);
    tti_word_set(&head->failed_id, id != 0 ? id : tti_word_peek(&head->issued));
}

void tti_recorder_keep_words(const char *words)
{
    tti_ring *ring = tti_ring_now();

    if (ring == NULL)
        return;
    pthread_mutex_lock(&tables_lock);
    keep_words(ring, words);
    pthread_mutex_unlock(&tables_lock);
}

void tti_recorder_fail_group(const tti_ring_place *place, tutti_status status, const char *words)
{
    tti_ring *ring = tti_ring_now();

    if (place->slot == NULL || ring == NULL)
        return;
    pthread_mutex_lock(&tables_lock);
    set_flags(place->slot, place->slot->flags | TTI_GROUP_FAILED);
    if (status != TUTTI_E_ABORTED) /* that was the program's own wish, here or elsewhere */
        keep_words(ring, words);
    pthread_mutex_unlock(&tables_lock);
}

/* ---- names ---- */

static bool has_text(const tutti_recorder_name_slot *slot, const char *text)
{
    return tti_word_get(&slot->used) != 0 && strcmp(slot->text, text) == 0;
}

/* Where the name is: its place, the first free one, or none. Only a free place has names behind it that are not
 * looked at, and there are none. */
static unsigned look_up(const tti_ring *ring, const char *text, bool *found_out)
{
    unsigned i;

    for (i = 0; i < TTI_RECORDED_NAMES && tti_word_get(&ring->names[i].used) != 0; i++)
        if (has_text(&ring->names[i], text)) {
            *found_out = true;
            return i;
        }
    *found_out = false;
    return i;
}

static unsigned add_name(tti_ring *ring, const char *text)
{
    char     mine[TUTTI_RECORDER_TEXT_MAX] = "";
    bool     found;
    unsigned at;

    tti_fork_guard(&fork_part);
    pthread_mutex_lock(&tables_lock);
    at = look_up(ring, text, &found);
    if (!found && at == TTI_RECORDED_NAMES - 1)
        text = "?"; /* the last one is for all that come now */
    if (!found && at < TTI_RECORDED_NAMES) {
        snprintf(mine, sizeof mine, "%s", text);
        tti_words_set(ring->names[at].text, mine, sizeof mine);
        tti_word_set(&ring->names[at].used, 1);
    }
    pthread_mutex_unlock(&tables_lock);
    return (at < TTI_RECORDED_NAMES ? at : TTI_RECORDED_NAMES - 1) + 1;
}

unsigned tti_record_name(const char *text)
{
    tti_ring *ring = tti_ring_now();
    bool      found;
    unsigned  at;

    if (ring == NULL || text == NULL || text[0] == '\0')
        return 0;
    at = look_up(ring, text, &found);
    return found ? at + 1 : add_name(ring, text);
}
