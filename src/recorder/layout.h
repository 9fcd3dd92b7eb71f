/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/layout.h - what writers and readers of the memory share: its words, their order, its bounds.
 *
 * Order   The words of tutti/recorder.h are plain numbers there, for readers in other languages; here they are only
 *         touched through these atomics. A writer stores 0 to an entry's id, then the fields, each with release order,
 *         then the id with release order. A reader loads the id, the fields, each with acquire order, and the id again.
 *         If it got a field of a later writing, that store happened after the 0, so the second load finds the 0 or what
 *         came after it: another id. Texts are read and written word by word in the same way. */
#ifndef TTI_RECORDER_LAYOUT_H
#define TTI_RECORDER_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tutti/recorder.h>

enum {
    TTI_RECORDS_DEFAULT = 2048,
    TTI_RECORDS_MIN = 64,
    TTI_ID_BLOCK = 16, /* ids that a thread takes at a time */
    TTI_RECORDS_MAX = 1 << 20,
    TTI_RECORDED_GROUPS = 256,
    TTI_RECORDED_NAMES = 512,
    TTI_RECORDED_RANKS = 16384,
    TTI_RANKS_ALL = -1,
    TTI_RANKS_LOST = -2,
    TTI_GROUP_THERE = 1,
    TTI_GROUP_FAILED = 2,
    TTI_NO_PLACE = 0xffff
};

_Static_assert(sizeof(tutti_recorder_slot) == 128, "two lines, of which most operations touch one");
_Static_assert(offsetof(tutti_recorder_slot, ran) == 64, "the first line has what every operation writes");
_Static_assert(sizeof(tutti_recorder_group_slot) % 8 == 0, "copied by words");
_Static_assert(sizeof(tutti_recorder_name_slot) % 8 == 0, "copied by words");
_Static_assert(sizeof(tutti_recorder_head) % 8 == 0, "copied by words");
_Static_assert(sizeof(tutti_recorder_head) <= 4096, "tables begin at the second page");

static inline uint64_t tti_word_get(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void tti_word_set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/** For numbers that stand for themselves. */
static inline uint64_t tti_word_peek(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void tti_word_put(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/** Copy whole words from, or to, shared memory. */
static inline void tti_words_get(void *to, const void *from, size_t bytes)
{
    const uint64_t *word = from;
    uint64_t       *out = to;
    size_t          i;

    for (i = 0; i < bytes / 8; i++)
        out[i] = tti_word_get(&word[i]);
}

static inline void tti_words_set(void *to, const void *from, size_t bytes)
{
    const uint64_t *word = from;
    uint64_t       *out = to;
    size_t          i;

    for (i = 0; i < bytes / 8; i++)
        tti_word_set(&out[i], word[i]);
}

/* ---- a record's words ---- */

enum { TTI_SEQ_BITS = 48 };

#define TTI_SEQ_MASK ((UINT64_C(1) << TTI_SEQ_BITS) - 1)

static inline uint64_t tti_record_call(unsigned kind, unsigned dtype, unsigned op, unsigned device, unsigned group,
                                       unsigned name)
{
    return (uint64_t)kind | (uint64_t)dtype << 8 | (uint64_t)op << 16 | (uint64_t)device << 24 | (uint64_t)group << 32 |
           (uint64_t)name << 48;
}

static inline uint64_t tti_record_state_word(uint64_t id, unsigned flags, tutti_status status, tutti_record_state state)
{
    return id << 32 | (uint64_t)flags << 16 | (uint64_t)status << 8 | (uint64_t)state;
}

/** What stands above a record's number: two that were written into one place do not pass for one. */
static inline uint64_t tti_record_check(uint64_t id, uint64_t call, uint64_t seq, uint64_t place, uint64_t count,
                                        uint64_t began)
{
    uint64_t x = id ^ call ^ (seq & TTI_SEQ_MASK) ^ place ^ count ^ began;

    x ^= x >> 32;
    return (x ^ x >> 16) & 0xffff;
}

#endif
