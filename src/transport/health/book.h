/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/book.h - what one rank knows of all: a state machine without I/O. book.c has the rules. */
#ifndef TTI_TRANSPORT_HEALTH_BOOK_H
#define TTI_TRANSPORT_HEALTH_BOOK_H

#include "transport/health/health.h"

/** What somebody has said of a rank, in one word:
 *
 *     63           24 23  20 19        0
 *    | stamp in ms   | life | detail    |
 *
 * The stamp is the clock of the rank's host; 0 in all: nobody has said anything. Detail: of the dead cause << 16 | value,
 * of others since how many tenths of a second before the stamp. */
typedef uint64_t tti_said;

tti_said      tti_said_of(int64_t stamp_ms, tti_life life, uint32_t detail);
tti_life      tti_said_life(tti_said said);
int64_t       tti_said_stamp_ms(tti_said said);
tti_end_cause tti_said_cause(tti_said said);
/** Which of two to believe: what is final, else the later one. */
tti_said tti_said_join(tti_said a, tti_said b);

typedef struct tti_sight tti_sight;

typedef struct tti_book {
    int              rank, n_ranks;
    int             *hosts; /* [n_ranks] */
    int64_t          heartbeat_ns, silent_ns;
    tti_health_page *page;   /* this rank's */
    tti_sight       *sights; /* [n_ranks] */
    int64_t          tick_ns;
    int64_t          now_ns;  /* of the last tick */
    int64_t          awake_ns; /* how long this rank has been awake: what silence is measured by */
    bool             is_complete; /* every member watches */
    bool             has_change; /* of somebody's life, which has not been told yet */
    _Atomic uint32_t verdicts;
    void (*changed)(void *context, int rank, tti_life before);
    void *context;
} tti_book;

tutti_status tti_book_init(tti_book *book, const tti_health_config *config);
void         tti_book_release(tti_book *book);

/** It is now_ns: count the own beat. Once for each wake-up. */
void tti_book_tick(tti_book *book, int64_t now_ns);

/** Every member watches by now: a host that has never spoken is silent from here on. */
void tti_book_complete(tti_book *book);

/** The beat of a rank of this host, as it is now. */
void tti_book_see_beat(tti_book *book, int rank, uint64_t beat);
/** Whether that has stood still for three heartbeats, so that tti_book_judge() wants the state of the process. */
bool tti_book_is_quiet(const tti_book *book, int rank);
/** Judge a rank of this host by its beat, and by the state of its process if it is quiet. */
void tti_book_judge(tti_book *book, int rank, char state);
/** Data of another host's ranks has come, so long ago, which is a sign of life as good as a word of its speaker. */
void tti_book_see_data(tti_book *book, int host, int64_t ago_ns);
/** The same for the ranks of another host, by what came from there. answers: its kernel acknowledges what is sent. */
void tti_book_judge_host(tti_book *book, int host, bool answers);
/** Whether nothing has come from another host for as long as silence takes, or for ns, if that is longer. */
bool tti_book_host_is_quiet(const tti_book *book, int host, int64_t ns);

void tti_book_has_died(tti_book *book, int rank, tti_end_cause cause);
void tti_book_has_left(tti_book *book, int rank);
/** Whether another of rank's host has left, and nobody there has spoken since. */
bool tti_book_is_behind(const tti_book *book, int rank);

/** What another rank of this host has written. */
void tti_book_merge_page(tti_book *book, const tti_health_page *page);
/** What came from another host: of a rank, and when a host last spoke, by its own clock. */
void tti_book_hear_said(tti_book *book, int rank, tti_said said);
void tti_book_hear_stamp(tti_book *book, int host, int64_t stamp_ms);
void tti_book_hear_deed(tti_book *book, int rank, uint64_t deed);
/** Give up those that have been silent for too long. Behind what a wake-up has found. */
void tti_book_lose_silent(tti_book *book);

/** The rank that speaks for a host as seen from there: the lowest whose beat moves. */
int tti_book_speaker(const tti_book *book);
/** This host speaks: its stamp is now. */
void tti_book_speak(tti_book *book);

/** What rank did last, as it is told to others while it is not well. */
void              tti_book_note_deed(tti_book *book, int rank, uint64_t deed);
uint64_t          tti_book_deed(const tti_book *book, int rank);
tti_said          tti_book_said(const tti_book *book, int rank);
int64_t           tti_book_stamp_ms(const tti_book *book, int host);
tti_health_report tti_book_report(const tti_book *book, int rank);
/** Since when it is not well, or when that last began. */
int64_t           tti_book_since(const tti_book *book, int rank);
/** How long this rank has been awake at now_ns, also between two ticks. */
int64_t           tti_book_awake_ns(const tti_book *book, int64_t now_ns);
bool              tti_book_is_lost(const tti_book *book, int rank);
/** As tti_health_silence_ns(). */
int64_t           tti_book_silence_ns(const tti_book *book);
/** As tti_health_is_silent(). */
bool              tti_book_is_silent(const tti_book *book, int rank);
static inline bool tti_life_is_final(tti_life life)
{
    return life >= TTI_LIFE_DEAD;
}

#endif
