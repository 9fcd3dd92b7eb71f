/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/health/health.h - how every rank of a world is, as far as this one knows.
 *
 * A watch thread keeps it up to date (watch.c): about ten times a second it counts a word of its own rank, looks at
 * those of its host, and at descriptors that tell of a death; one rank of each host speaks with those of others. What it
 * finds lies in words that any thread may read at any time: they cost a load each, and no lock.
 *
 * Dead is proved, by the descriptor of the process, or as proof.h says of one of another host, and stays. Silent is only that
 * nothing moves: a rank that is stopped, starved of a core, or out of reach; it may be heard again. */
#ifndef TTI_TRANSPORT_HEALTH_HEALTH_H
#define TTI_TRANSPORT_HEALTH_HEALTH_H

#include "base/port.h"

/** The order counts: from TTI_LIFE_DEAD on it is final, and the higher one is believed. */
typedef enum tti_life {
    TTI_LIFE_WELL,
    TTI_LIFE_SILENT,      /* its process lives, and does not run: its beat stands still */
    TTI_LIFE_STOPPED,     /* the kernel says that a signal stopped it */
    TTI_LIFE_PAUSED,      /* a debugger holds it: no reason to give it up */
    TTI_LIFE_MUTE,        /* its host answers, but nobody speaks for the ranks there */
    TTI_LIFE_UNREACHABLE, /* nothing comes from its host */
    TTI_LIFE_DEAD,        /* its process has ended without leaving */
    TTI_LIFE_LEFT         /* it has left the world */
} tti_life;

/** What is known of an end. */
typedef enum tti_cause_kind {
    TTI_CAUSE_UNKNOWN,
    TTI_CAUSE_STREAM, /* its connection ended without a goodbye; value: a tti_stream_end */
    TTI_CAUSE_EXIT,   /* value: the exit code */
    TTI_CAUSE_SIGNAL  /* value: the signal */
} tti_cause_kind;

/** How that was proved. The order counts: of two the more certain one is believed. */
typedef enum tti_stream_end {
    TTI_STREAM_CUT,         /* nothing answers where it was */
    TTI_STREAM_TURNED_AWAY, /* what comes there is reset, as its kernel does then, or a firewall */
    TTI_STREAM_REFUSED      /* it was closed by its kernel, and nobody listens where it did */
} tti_stream_end;

typedef struct tti_end_cause {
    tti_cause_kind kind;
    int            value;
} tti_end_cause;

typedef struct tti_health_report {
    tti_life      life;
    int64_t       since_ns; /* of the port's clock; of those that are well 0 */
    tti_end_cause cause;    /* of the dead */
    uint64_t      deed;     /* what it did last, of those that are not well; 0: unknown, or nothing */
    bool          nobody_heard; /* it is unreachable, and so is everybody else on another host */
} tti_health_report;

typedef struct tti_health tti_health;

/** Any thread, any time, until tti_health_close(). Of a NULL health everybody is well. */
tti_health_report tti_health_of(const tti_health *health, int rank);

/** Grows when somebody is given up: what waits look at. 0: nobody is. */
uint32_t tti_health_verdicts(const tti_health *health);
/** Whether rank is given up: dead, or silent for longer than TUTTI_SILENT_MS allows, if that is set. Who has left is not:
 * what it sent before may be on its way. */
bool tti_health_is_lost(const tti_health *health, int rank);
/** Whether nothing has come from rank for four heartbeats, and one second at least, or for TUTTI_SILENT_MS, if that is set, in
 * which this rank was awake itself: its process is stopped or gets no core, or it is out of reach. Not of one that is known to
 * be dead or gone, or is held by a debugger. */
bool tti_health_is_silent(const tti_health *health, int rank);

/** That time. Of a NULL health that of the default heartbeat. */
int64_t tti_health_silence_ns(const tti_health *health);

/** When rank's host has last spoken, by its own clock, as far as that has come here. */
int64_t tti_health_stamp_ms(const tti_health *health, int rank);
/** Whether rank's host has spoken again since stamp_ms, for a heartbeat at least, and says nothing of an end of rank: what rank did
 * last before that stamp would be known by now. False without a health. */
bool tti_health_has_outlived(const tti_health *health, int rank, int64_t stamp_ms);

/** As tti_health_of(), and of one that is believed to be well what the kernel says just now, if it is of this host: before three
 * heartbeats nobody is silent. Costs some system calls. */
tti_health_report tti_health_now(const tti_health *health, int rank);

enum { TTI_HEALTH_TEXT_MAX = 288 };

/** How a rank is now, as the end of a sentence about it: "has been stopped by a signal for 3.2 s; it last entered barrier #4 of
 * the group called '0'"; "" of one that is well. */
const char *tti_health_describe(const tti_health *health, int rank, char out[TTI_HEALTH_TEXT_MAX]);

/** The same of a report, at now_ns of the port's clock, without what the rank did last. */
const char *tti_health_words(const tti_health_report *report, int64_t now_ns, char out[TTI_HEALTH_TEXT_MAX]);
/** And with that; health, which may be NULL, knows what its group is called. */
const char *tti_report_words(const tti_health *health, const tti_health_report *report, int64_t now_ns, char out[TTI_HEALTH_TEXT_MAX]);

/* ---- for the mesh and the connector --------------------------------------------------------------------- */

/** A rank's part of its heap: written by its watch thread only, read by those of its host. All zero at first. */
typedef struct tti_health_page {
    _Alignas(128) _Atomic uint64_t beat; /* grows with each wake-up */
    _Alignas(128) _Atomic uint64_t news; /* grows when words have changed */
    _Alignas(128) _Atomic uint64_t deed; /* what the rank did last: its calls' threads write it */
    _Atomic uint64_t whole; /* the call that it is in, where that is made of others, which are deeds; 0: in none such */
    _Alignas(128) _Atomic uint64_t words[]; /* [3 * n_ranks]: of each rank; of each host at its lowest rank; deeds; book.h */
} tti_health_page;

/** Where this rank notes what it does, with one store: tti_deed_of(). NULL: nobody watches. */
_Atomic uint64_t *tti_health_deed(tti_health *health);

/* A deed, one word that is never 0:
 *
 *      63         56 55             40 39                    0
 *     | kind, and 1 | short of a group | number of the call, or rank of the peer, and 1 (0: any) |
 *
 * The kind is a tutti_call_kind, or one of two for messages, or of calls that make a group of another one, which have no number.
 * Of a group's number as much is there as tells those of one time apart. */
enum {
    TTI_DEED_SEND = 0xf0,
    TTI_DEED_RECV = 0xf1,
    TTI_DEED_SPLIT_GROUP = 0xf2,
    TTI_DEED_SHRINK_GROUP = 0xf3,
    TTI_DEED_GROW_GROUP = 0xf4,
    TTI_DEED_MERGE_GROUP = 0xf5,
    TTI_DEED_RECONFIGURE = 0xf6,
    TTI_DEED_WHICH_BITS = 40,
    TTI_DEED_GROUP_BITS = 16
};

/** What a deed has of a group's number: one bit tells whether only its members count it. */
static inline unsigned tti_deed_group(uint32_t group)
{
    return (group >> 31) << (TTI_DEED_GROUP_BITS - 1) | (group & ((1u << (TTI_DEED_GROUP_BITS - 1)) - 1));
}

static inline uint64_t tti_deed_of(unsigned kind, uint32_t group, uint64_t which)
{
    return (uint64_t)(kind + 1) << 56 | (uint64_t)tti_deed_group(group) << TTI_DEED_WHICH_BITS |
           (which & ((UINT64_C(1) << TTI_DEED_WHICH_BITS) - 1));
}

/** This rank is in a call that is made of others: a deed, and 0 at its end, when it is the last that the rank did. NULL is fine.
 * Any thread; of two at once the last one counts. */
void tti_health_note_whole(tti_health *health, uint64_t deed);

/** What a rank of this host is in, or did last, as its page says. Steps of a call that is made of them are not told of: at its end
 * deed is written before whole, so that who finds none has the call. */
static inline uint64_t tti_page_deed(const tti_health_page *page)
{
    const uint64_t whole = atomic_load_explicit(&page->whole, memory_order_acquire);

    return whole != 0 ? whole : atomic_load_explicit(&page->deed, memory_order_relaxed);
}

/** This rank has a group of that number and name, until it has it no more. Any thread. */
void tti_health_name_group(tti_health *health, uint32_t group, const char *name);
void tti_health_forget_group(tti_health *health, uint32_t group);
/** What the group of a deed is called here; false: this rank has none of that number. */
bool tti_health_group_name(const tti_health *health, unsigned short_group, char *out, size_t bytes);

/** Bytes of it: a multiple of 128. */
size_t tti_health_page_bytes(int n_ranks);

/** A rank of this host, this one included. */
typedef struct tti_health_member {
    int                     rank;
    tti_health_page        *page;
    const _Atomic uint32_t *closed; /* not 0: it has left */
    tti_handle              life;   /* becomes readable when its process has ended; TTI_NO_HANDLE: nothing tells */
} tti_health_member;

typedef struct tti_health_config {
    tti_port                *port;
    int                      rank, n_ranks;
    const int               *hosts;   /* [n_ranks] the lowest rank on each one's host; copied */
    const tti_health_member *members; /* [n_members] rising; copied */
    int                      n_members;
    int64_t                  heartbeat_ms;
    int64_t                  silent_ms; /* 0: silence alone gives nobody up */
    const char *(*whereabouts)(void *context, int rank); /* "host 'n2', pid 40112" */
    const tti_addr *(*addr_of)(const void *context, int rank); /* of a rank of another host: where its door is */
    /* What the kernel calls the state of the process behind a member's life: 'T', 't', 'R', ...; 0: unknown. */
    char (*state_of)(void *context, tti_handle life);
    /* How that process ended. */
    tti_end_cause (*cause_of)(void *context, tti_handle life);
    void *context;
} tti_health_config;

/** TUTTI_HEARTBEAT_MS and TUTTI_SILENT_MS.
 * @errors TUTTI_E_ARG */
tutti_status tti_health_read_env(int64_t *heartbeat_ms_out, int64_t *silent_ms_out);

/** Handles and pages are borrowed until tti_health_close(). Nothing runs yet. */
tutti_status tti_health_make(const tti_health_config *config, tti_health **health_out);
/** Start the thread. */
tutti_status tti_health_start(tti_health *health);
/** What the thread does, until tti_health_stop(), and the goodbyes to those of other hosts: for a caller that has a
 * thread of his own for it. */
void tti_health_run(tti_health *health);
void tti_health_stop(tti_health *health);
/** The world is made, and so every member watches: from here on one that was never heard of is silent, or dead if nobody holds
 * its door. Before, it may have given up joining. Any thread; NULL is fine. */
void tti_health_complete(tti_health *health);
/** Stop the thread, and wait until it has said goodbye to others, for which it may need the dialer. NULL is fine. */
void tti_health_leave(tti_health *health);
/** Stop, wait for the thread's end, and free everything. NULL is fine. */
void tti_health_close(tti_health *health);

/** What makes a stream to a member of another host, which comes by tti_health_adopt(), or, if its door is shut,
 * tti_health_is_shut() tells that, or nothing comes; tti_health_is_reached() may tell more before. Must not block.
 * NULL: nobody does from here on; when this returns it is not being called. */
void tti_health_set_dialer(tti_health *health, void (*dial)(void *context, int rank), void *context);
/** What tells how long ago, in ms, bytes last came from a rank of another host by streams that are not the watch threads';
 * UINT32_MAX: unknown. Must not block. NULL: nobody does from here on; when this returns it is not being called. */
void tti_health_set_ear(tti_health *health, uint32_t (*data_ms)(void *context, int rank), void *context);
/** Such an attempt was refused: nobody listens where rank did. Any thread. */
void tti_health_is_shut(tti_health *health, int rank);
/** Such an attempt has got as far as rank's kernel, which has taken the connection; whether its process does is not known yet. Any
 * thread. */
void tti_health_is_reached(tti_health *health, int rank);
/** A stream to or from rank's watch thread, which is this one's from here on. Any thread. */
void tti_health_adopt(tti_health *health, int rank, tti_handle stream);
/** Close such a stream that nobody wants, so that the other end does not take it for a death. */
void tti_health_refuse(tti_port *port, tti_handle stream);

/** What the system's kernel tells of a process by its pidfd: for state_of and cause_of. */
char          tti_kernel_state_of(tti_handle pidfd);
tti_end_cause tti_kernel_cause_of(tti_handle pidfd);

#endif
