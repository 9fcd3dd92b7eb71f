/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/host/channel.h - the shared memory that the members of a group on one host meet in.
 *
 * Every member has a region in its own heap: its board, some counters, and slots for data. Work
 * goes in rounds, numbered over the channel's life; all members take part in every round, whatever
 * its operation. What is written and read when, and why that is enough, stands in channel.c. */
#ifndef TTI_COLL_HOST_CHANNEL_H
#define TTI_COLL_HOST_CHANNEL_H

#include "base/company.h"
#include "coll/team.h"

enum {
    TTI_HOST_SLOTS = 1024 * 1024, /* bytes of all slots of a sort */
    TTI_HOST_CHUNK = 128 * 1024,  /* bytes of a slot, or a multiple: tti_host_channel.chunk */
    TTI_HOST_RANKS_MAX = TTI_HOST_CHUNK / 64, /* a slot has a line for each member */
    TTI_HOST_WORDS_MAX = 892,                 /* of a failure, cut off beyond */
    TTI_HOST_PLACES = 16, /* that calls take by turns */
    TTI_HOST_AHEAD = TTI_HOST_PLACES - 1, /* calls that a member may be ahead of the others, where it needs nothing of them */
    TTI_HOST_TURNS = 2, /* blocks, and cards: who writes to one is one call ahead at most */
    TTI_LINES_BYTES = 64 * 1024, /* of a member, in a call that goes through lines */
    TTI_LINES_SHORT = 56,        /* and beside the word, */
    TTI_LINES_MIDDLE = 1024      /* and in a packet */
};

typedef enum tti_counter_kind {
    TTI_STAGED, /* my staging slot of this round is filled */
    TTI_RESULT, /* my result slot is filled */
    TTI_DONE,   /* I have read all that I need of this round */
    TTI_ENTERED, /* counts calls, not rounds: the number of the last one I have entered */
    TTI_FINISHED, /* and of the last one I have come to the end of */
    TTI_COUNTERS,
    TTI_PLACED = TTI_COUNTERS, /* no counter, but the word of my place for the call */
    TTI_CARDED                 /* nor this: the word of my card for the call */
} tti_counter_kind;

/** What others wait for. */
typedef union tti_host_word {
    _Atomic uint64_t value;
    _Atomic uint32_t half[2]; /* only to sleep on, never read */
} tti_host_word;

/** The number of the last round in which the owner got this far, plus one. It only grows. */
typedef struct tti_counter {
    _Alignas(TTI_LINE) tti_host_word at;
    _Atomic uint64_t word;    /* of the call it was last moved in (channel.c); written before `at` */
    _Atomic uint32_t waiters; /* who sleep on it; written by them */
} tti_counter;

/** Where a member puts what it gives in a small call: lines.h. */
typedef struct tti_host_place {
    char          line[TTI_LINES_SHORT];
    tti_host_word word; /* of the call it is of; behind all of it */
    char          apart[TTI_LINE - 64]; /* the next line is not fetched with this one */
} tti_host_place;

/** And what does not fit into a line: every place has a packet. */
typedef struct tti_host_packet {
    char bytes[TTI_LINES_MIDDLE];
} tti_host_packet;

/** Nor into a packet. */
typedef struct tti_host_block {
    char bytes[TTI_LINES_BYTES];
} tti_host_block;

/** What a member shows of its registered memory: fused_cards.c. A line, as that of a place is. */
typedef struct tti_host_card {
    _Alignas(TTI_LINE) uint64_t ready; /* all buffers that others need lie there */
    uint64_t      in;   /* their offsets */
    uint64_t      out;
    int64_t       gives; /* elements in all, where members need not agree on them */
    uint64_t      zero[3];
    tti_host_word word; /* of the call it is of; behind all of it */
} tti_host_card;

/** What a failure is about, in the words of the member that saw it first. */
typedef struct tti_host_report {
    _Alignas(TTI_LINE) int32_t origin; /* that member */
    char words[TTI_HOST_WORDS_MAX];    /* empty: there are none */
} tti_host_report;

/** The head of a member's region. Written by its owner only, but for the counters' waiters. All processes of the group have
 * it mapped, and any of them could write anything there: no word of it is an index, a size or a pointer before it was
 * copied and checked. */
typedef struct tti_host_lines {
    _Atomic uint64_t door; /* tti_join.nonce, and who came and left: channel.c */
    uint64_t         region_bytes;
    uint32_t         version;
    _Atomic uint32_t failed; /* status | (rank it is about + 1) << 8, once the owner has failed */
    _Atomic uint32_t pulls;  /* whether the owner can read all others' memory: pull.c */
    _Atomic uint32_t spare;
    _Alignas(TTI_LINE) tti_call_board board;
    tti_counter      counters[TTI_COUNTERS];
    _Alignas(TTI_LINE) _Atomic uint32_t place_waiters; /* who sleep on a place's word, or a card's */
    _Alignas(TTI_LINE) _Atomic uint64_t registered_from; /* first call that may be on registered memory; 0: none */
    tti_host_card    cards[TTI_HOST_TURNS];
    _Alignas(TTI_LINE) _Atomic uint32_t in_piece; /* a thread that writes to others' buffers: fused.c */
    tti_host_report  report; /* behind failed */
} tti_host_lines;

typedef struct tti_host_member {
    tti_host_lines *lines;  /* NULL: not found */
    tti_host_place *places; /* TTI_HOST_PLACES */
    tti_host_packet *packets; /* TTI_HOST_PLACES */
    tti_host_block *blocks; /* TTI_HOST_TURNS */
    char           *slots;  /* for staging, then as many for results */
    uint64_t        nonce;
    uint64_t        pid;
    uint64_t        agreed; /* the last call up to which it is known to have called the same */
} tti_host_member;

/** A call that this rank has entered. */
typedef struct tti_host_entry {
    tti_call_note note;
    uint64_t      word; /* of it and all before: channel.c */
} tti_host_entry;

/** How a member waits: wait.c. */
typedef struct tti_host_patience {
    int glances; /* looks at what is awaited, first of all, without a pause between */
    int checks; /* then with one, before a wait is a long one */
    int bursts; /* of as many looks again */
    int yields; /* then: times that the core is given away, before the member sleeps */
} tti_host_patience;

typedef struct tti_fused tti_fused; /* calls on registered memory: fused.h */

/** No status of an operation, and none that a caller of the library sees: it would have had to wait. */
#define TTI_NOT_YET ((tutti_status)-1)

typedef struct tti_host_channel {
    tti_team        *team;
    tti_heap        *heap;
    uint64_t         region;  /* of this rank, in heap */
    tti_host_member *members; /* [n_ranks] */
    const void     **reads;   /* [n_ranks] inputs of a reduction */
    uint64_t        *begins;  /* [n_ranks] where others' blocks for this rank begin */
    tti_fused       *fused;
    uint64_t         round;
    size_t           chunk;     /* bytes of a slot */
    uint64_t         depth;     /* slots of each sort: rounds that may be under way */
    int              turns;     /* ranks that share a core, at least 1 */
    tti_machine      machine;   /* as rank 0 has measured it */
    bool             crowded;   /* the host's ranks are more than cores: all members say the same */
    uint64_t         all_agreed; /* as agreed, of all members: their agreed may be less */
    uint64_t         calls;      /* entered: the same number on all members, while those of calls may have gaps */
    tti_host_entry   past[TTI_HOST_PLACES]; /* the last of them, that of number c at c % TTI_HOST_PLACES */
    uint64_t         unread;    /* all have read all they need of the rounds before this one */
    bool             fenced;    /* sleepers use the port's fence_others(), which reaches all members */
    uint32_t         pulls;     /* what all members' `pulls` come to; 0: not known yet */
    tti_host_patience patience; /* checks 0: not settled yet */
    tti_host_patience settled;  /* in background: what patience is else */
    bool              in_background;
    tti_company       company;  /* of whoever waits here */
    _Atomic uint64_t  hurried; /* the call that somebody was last known to wait for; a hint, so in no order */
    _Atomic bool      failing;    /* whether a thread of this rank writes the report, or has */
    _Atomic bool      has_failed; /* and `failed` behind it: what waits asks this one, which no other process can change */
    _Atomic bool      connected; /* all members were found; stored, with release order, after that */

    /* The operation under way, for those who wait. */
    tti_call_note note;
    uint64_t      word;
    unsigned      place;    /* of every member, in it: the next one in each call that is entered */
    unsigned      turn;     /* the same of blocks and cards */
    bool          given;    /* this rank has given all that it gives in it, through lines */
    bool          in_haste; /* who would have to wait there returns TTI_NOT_YET */
    uint64_t      entering; /* the call that all must have entered before this rank goes on; 0: they have */
    int64_t       timeout_ms;
    int64_t       deadline_ns; /* 0: no wait has asked yet */
    uint64_t      begin;      /* its first round */
    uint64_t      end;        /* its last round, plus one; 0: it has come to none yet */
    int64_t       waiting_ns; /* since when this rank has waited in it; 0: not yet */
    int64_t       looked_ns;  /* when it last asked whether the others live */
    int64_t       told_ns;    /* when it last told that it waits; 0: not in this wait */
} tti_host_channel;

/** Allocate this rank's region; its offset goes to the others as tti_join.region. patience NULL: as the cores that
 * members tell ask for. */
tutti_status tti_host_channel_create(tti_team *team, const tti_host_patience *patience,
                                     tti_host_channel **channel_out);
/** Map the others' regions. TUTTI_E_PEER: one of them gave up while the group was made. */
tutti_status tti_host_channel_connect(tti_host_channel *channel, const tti_join *joins);
/** Waits for nobody. The region is given back when the others have closed their ends, too. NULL is
 * fine. */
void tti_host_channel_close(tti_host_channel *channel);

/** Tell the others that this rank has failed, about rank culprit or -1; the first cause stays. report:
 * whose words they are to read; NULL: none. Any thread. */
void tti_host_raise(tti_host_channel *channel, tutti_status status, int culprit,
                    const tti_host_report *report);
/** The same, about what this thread's last error says. */
void tti_host_raise_own(tti_host_channel *channel, tutti_status status, int culprit);

/** Enter a call, which the board shows by now: until all have entered the one TTI_HOST_AHEAD before it, and
 * TUTTI_E_MISMATCH if it was another one there. Fails as a member has that does not come to this call's
 * end any more. */
tutti_status tti_host_enter(tti_host_channel *channel, const tutti_call *call,
                            const tti_call_note *note);
/** Whether to enter the next call would wait for nobody. */
bool tti_host_may_enter(tti_host_channel *channel);
/** Until all have entered the call before the entered one, and so have left all that came earlier. Before anything but
 * a place is written. */
tutti_status tti_host_catch_up(tti_host_channel *channel);
/** Whether that waits for nobody. */
bool tti_host_has_caught_up(tti_host_channel *channel);
/** The entered call has come to its end here. */
void tti_host_finish(tti_host_channel *channel);
/** Begin the entered call's operation, of n_rounds, a number that all members compute alike; catches up. */
tutti_status tti_host_begin(tti_host_channel *channel, uint64_t n_rounds);
/** The operation has n_rounds more from here on; all members have come to the same number. */
void tti_host_go_on(tti_host_channel *channel, uint64_t n_rounds);

/** Before this rank writes to its slots: until all have read what was in them. */
tutti_status tti_host_room(tti_host_channel *channel);
/** Say that this rank has got this far in the round. */
void tti_host_post(tti_host_channel *channel, tti_counter_kind kind);
/** Until rank has, or all have. A member in another call is TUTTI_E_MISMATCH. */
tutti_status tti_host_await(tti_host_channel *channel, tti_counter_kind kind, int rank);
tutti_status tti_host_await_all(tti_host_channel *channel, tti_counter_kind kind);
/** This rank is done with the round; on to the next. */
void tti_host_next(tti_host_channel *channel);
/** What is said of "the round" is about this one, from here on. Whoever has several under way goes to and fro between
 * them, posts in each in the order of rounds, and ends the last one with next. */
void tti_host_turn(tti_host_channel *channel, uint64_t round);

/** A number that another process has written: loaded once, so that what was checked is what is used. */
static inline uint64_t tti_host_read_u64(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline int64_t tti_host_read_i64(const int64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/** The slots of rank for this round. */
char *tti_host_staging(const tti_host_channel *channel, int rank);
char *tti_host_result(const tti_host_channel *channel, int rank);

#endif
