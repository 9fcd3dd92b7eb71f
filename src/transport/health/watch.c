/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch.c - the watch thread: one for each rank, awake about ten times a second.
 *
 * How     Inside a host each watch thread counts a word of its own and looks at those of the others. It sleeps in poll, on
 *         what tells of the death of its nearest living neighbours, four on either side, and finds what the others have
 *         found on their pages: so a death is known to the whole host within a wake-up, and nobody holds more than
 *         a few descriptors in his poll set.
 *
 *           host 0        speaker ==== digests, twice a heartbeat ====> hosts 1, 2, 4, ... further on
 *                        /   |   \                                      (and what they tell comes back)
 *                    pages of the others
 *
 *         Between hosts one rank of each speaks: the lowest whose beat moves. It has a stream to a living rank of the
 *         hosts 1, 2, 4, ... further on, so that each host has O(log hosts) of them, and any may fall silent without
 *         cutting the others off. A digest has all that is known. Every change of a life goes out at once, be it an end, a
 *         silence or that one is well again, and each that hears of it for the first time passes it on at once: it is
 *         everywhere after as many hops as there are powers of two.
 *         A speaker that dies or stops is followed by the next one within a heartbeat and a half, before anybody
 *         else takes its silence for its host's. Two that speak for one host do no harm.
 *         Whether the kernel of a silent host answers is seen by who has a stream to there, or connects to it: the speaker.
 *         The others wait for its word, and so does the next one with its own, for a heartbeat in which it has connected, or
 *         tried to.
 * True    This thread alone writes the book, the own page, and the talks; the lock guards what is handed to it. It
 *         touches no buffer of a user's, and makes nothing but the buffers of a new stream.
 *         Who leaves says goodbye, closes its door after that, and stays until the others have hung up, for a socket that
 *         is closed with unread bytes would take that back.
 * Proof   A stream that ends without a goodbye makes its rank a suspect, no more. What proves its death stands in proof.c.
 * Fails   Whoever cannot be connected to is tried again, another rank of its host first, once a heartbeat. Without memory
 *         for a stream there is none: what it would have told comes later, by another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "transport/health/names.h"
#include "transport/health/suspects.h"
#include "transport/health/talk.h"

enum {
    TALKS_MAX = 64,
    NEIGHBOURS = 4,    /* on either side, whose lives are polled */
    KNOCKS_MAX = TTI_SUSPECTS_MAX * TTI_KNOCKS_MAX,
    POLLS_MAX = 1 + 2 * NEIGHBOURS + KNOCKS_MAX + TALKS_MAX,
    DISTANCES_MAX = 31,
    ALL_AT_ONCE = 64,  /* ranks of a host that are looked at every time; of more each time a part */
    SLOW_TICKS = 4,    /* from one look at what changes slowly to the next */
    GOODBYE_MS = 50,
    SHUT_MAX = 2 * DISTANCES_MAX, /* each is of a dial of this thread's, which takes them all when it wakes up */
    AGAIN_MS = 100,    /* from what a door said to the next knock */
    UNHEARD_MS = 250,  /* from the first to the second knock at a door that nobody has come out of yet */
    REACH_BEATS = 3,   /* so long that a kernel has taken a connection counts as its answer: as long as silence takes */
    TOLD_BEATS = 5,    /* of silence, in which who speaks here is to say what it means */
    FIRST_BEATS = 4,   /* after the first stream: a word takes half of one for each of the log2(hosts) hops */
};

#define NOT_SPEAKING INT64_C(-1)
#define NOT_YET INT64_C(-1)

typedef struct arrival {
    int        rank;
    tti_handle stream;
} arrival;

struct tti_health {
    tti_book           book;
    tti_health_config  config; /* its lists are the caller's: not used after the beginning */
    tti_port          *port;
    tti_health_member *members;   /* [n_members] */
    uint64_t          *news_seen; /* [n_members] */
    int                n_members, own; /* which of them is this rank */
    int               *far;       /* [n_far] the lowest ranks of all hosts, rising */
    int                n_far, own_far;
    tti_talk           talks[TALKS_MAX];
    int                n_talks;
    bool              *met; /* [n_ranks] whether there ever was one with a host, at its lowest rank */
    int64_t            met_ns; /* when the first of them came, of the time that this thread was awake; NOT_YET */
    tti_suspects       suspects;
    tti_poll           set[POLLS_MAX]; /* bell, lives, knocks, talks */
    int                polled[2 * NEIGHBOURS]; /* whose lives are in it, from set[1] on */
    int                n_polled;
    unsigned           ticks;
    bool               looks_far; /* the others are to be judged */
    bool               was_late;  /* the last wake-up was */
    int64_t            speaks_ns; /* since when this rank speaks for its host, of the time that it was awake; NOT_SPEAKING */
    int64_t           *reached_ns; /* [n_ranks] when the kernel of a host, at its lowest rank, was last seen to take one; of that
                                      time; 0: never */
    _Atomic bool      *is_reached; /* [n_ranks] that it was, and this thread has not noted it yet */
    int64_t            next_tick_ns;
    int64_t            dial_ns[DISTANCES_MAX];   /* not before */
    int                dial_turn[DISTANCES_MAX]; /* which of the host's ranks is next */
    tti_handle         bell;
    tti_thread         thread;
    _Atomic bool       closing;
    _Atomic bool       complete; /* tti_health_complete() was called */
    tti_deed_names    *names;    /* has a lock of its own */

    tti_mutex lock; /* guards what follows */
    arrival   arrivals[TALKS_MAX];
    int       n_arrivals;
    int       shut[SHUT_MAX]; /* ranks whose doors are */
    int       n_shut;
    void (*dial)(void *context, int rank);
    void *dial_context;
    uint32_t (*data_ms)(void *context, int rank);
    void *data_context;
};

/* ---- words for the log ----------------------------------------------------------------------------- */

/* One rank of its host warns; the others know it, and say so at level info. */
static tti_log_level level_for(const tti_health *h, int rank, tti_life life)
{
    const bool near = h->book.hosts[rank] == h->book.hosts[h->book.rank];
    const bool seen_from_here = near || life == TTI_LIFE_MUTE || life == TTI_LIFE_UNREACHABLE;

    return seen_from_here && !tti_life_is_final(life) && tti_book_speaker(&h->book) == h->book.rank ? TTI_LOG_WARN
                                                                                                    : TTI_LOG_INFO;
}

static void log_change(void *context, int rank, tti_life before)
{
    const tti_health *h = context;
    const tti_life    life = tti_book_report(&h->book, rank).life;
    const char       *where = h->config.whereabouts(h->config.context, rank);
    char              text[TTI_HEALTH_TEXT_MAX];

    if (rank == h->book.rank)
        return;
    if (life == TTI_LIFE_WELL)
        tti_log(level_for(h, rank, before), "rank %d (%s) is heard again, after %.1f s", rank, where,
                (double)(h->book.now_ns - tti_book_since(&h->book, rank)) / (double)TTI_SECOND);
    else
        tti_log(level_for(h, rank, life), "rank %d (%s) %s", rank, where, tti_health_describe(h, rank, text));
}

/* ---- this host ------------------------------------------------------------------------------------- */

static bool has_ended(const tti_health *h, int rank)
{
    return tti_life_is_final(tti_said_life(tti_book_said(&h->book, rank)));
}

static bool has_closed(const tti_health_member *member)
{
    return atomic_load_explicit(member->closed, memory_order_acquire) != 0;
}

static void note_deed(tti_health *h, const tti_health_member *member)
{
    tti_book_note_deed(&h->book, member->rank, tti_page_deed(member->page));
}

static void look_at_member(tti_health *h, int i, bool slowly)
{
    const tti_health_member *member = &h->members[i];
    const uint64_t           news = atomic_load_explicit(&member->page->news, memory_order_acquire);

    if (news != h->news_seen[i]) {
        h->news_seen[i] = news;
        tti_book_merge_page(&h->book, member->page);
    }
    if (has_ended(h, member->rank))
        return;
    if (has_closed(member)) {
        tti_book_has_left(&h->book, member->rank);
        return;
    }
    tti_book_see_beat(&h->book, member->rank, atomic_load_explicit(&member->page->beat, memory_order_relaxed));
    if (!tti_book_is_quiet(&h->book, member->rank)) {
        tti_book_judge(&h->book, member->rank, 0);
        return;
    }
    note_deed(h, member);
    if (slowly) /* to ask costs a few system calls */
        tti_book_judge(&h->book, member->rank, h->config.state_of(h->config.context, member->life));
}

/* The end of a process, as its descriptor tells. */
static void end_member(tti_health *h, int i)
{
    const tti_health_member *member = &h->members[i];

    if (has_ended(h, member->rank))
        return;
    note_deed(h, member);
    if (has_closed(member))
        tti_book_has_left(&h->book, member->rank);
    else
        tti_book_has_died(&h->book, member->rank, h->config.cause_of(h->config.context, member->life));
}

/* ---- other hosts ----------------------------------------------------------------------------------- */

static bool is_closing(const tti_health *h)
{
    return atomic_load_explicit(&h->closing, memory_order_acquire);
}

static void end_talk(tti_health *h, int i)
{
    tti_talk_release(&h->talks[i], h->port);
    h->talks[i] = h->talks[--h->n_talks];
}

static bool is_fresh(const tti_health *h, const tti_talk *talk)
{
    return h->book.awake_ns - talk->heard_ns < 2 * h->book.heartbeat_ns;
}

/* Whether there is a stream with a rank of that host by which something comes. */
static bool talks_with(const tti_health *h, int host)
{
    int i;

    for (i = 0; i < h->n_talks; i++)
        if (h->book.hosts[h->talks[i].rank] == host && is_fresh(h, &h->talks[i]))
            return true;
    return false;
}

static void want_stream(tti_health *h, int rank)
{
    tti_lock(&h->lock);
    if (h->dial != NULL)
        h->dial(h->dial_context, rank);
    tti_unlock(&h->lock);
}

/* ---- suspects -------------------------------------------------------------------------------------- */

/* Who leaves has nothing to say about others: of a rank that cut itself off, all that it would say is wrong. */
static bool may_accuse(tti_health *h)
{
    bool stays;

    tti_lock(&h->lock);
    stays = h->dial != NULL;
    tti_unlock(&h->lock);
    return stays && !is_closing(h);
}

static bool is_out_of_reach(tti_life life)
{
    return life == TTI_LIFE_UNREACHABLE || life == TTI_LIFE_MUTE;
}

/* Its host's own word is that the process is there. */
static bool is_held(tti_life life)
{
    return life == TTI_LIFE_SILENT || life == TTI_LIFE_STOPPED || life == TTI_LIFE_PAUSED;
}

/* Silence is measured by it, also between two ticks. */
static int64_t awake_now(const tti_health *h)
{
    return tti_book_awake_ns(&h->book, tti_port_now(h->port));
}

/* Whether nobody has ever spoken for the host of a rank, and nobody is about to: who has a stream to here says how it ends by it. */
static bool is_unheard(const tti_health *h, int rank)
{
    const int host = h->book.hosts[rank];

    return tti_book_stamp_ms(&h->book, host) == 0 && !talks_with(h, host);
}

static tti_standing standing_of(const tti_health *h, int rank)
{
    const tti_suspect *suspect = tti_suspects_find(&h->suspects, rank);
    const tti_life     life = tti_said_life(tti_book_said(&h->book, rank));

    if (suspect != NULL && suspect->unheard)
        return is_unheard(h, rank) ? TTI_STANDING_DOUBTED : TTI_STANDING_HEARD;
    if (suspect != NULL)
        return suspect->in_time && !suspect->answered && !is_held(life) ? TTI_STANDING_CUT : TTI_STANDING_DOUBTED;
    if (h->book.is_complete && is_unheard(h, rank))
        return TTI_STANDING_UNHEARD;
    if (!is_out_of_reach(life))
        return TTI_STANDING_HEARD;
    return tti_book_is_behind(&h->book, rank) ? TTI_STANDING_BEHIND : TTI_STANDING_AWAY;
}

/* What a refusal of rank is called: proof.c, "Wall". */
static tti_stream_end how_refused(const tti_health *h, int rank)
{
    const tti_suspect *suspect = tti_suspects_find(&h->suspects, rank);

    return suspect != NULL && suspect->closed ? TTI_STREAM_REFUSED : TTI_STREAM_TURNED_AWAY;
}

/* Rank's door says something. */
static void take_sign(tti_health *h, int rank, tti_sign sign)
{
    const tti_end_cause cut = { .kind = TTI_CAUSE_STREAM, .value = TTI_STREAM_CUT };
    const tti_end_cause refused = { .kind = TTI_CAUSE_STREAM, .value = how_refused(h, rank) };
    const tti_ruling    ruling = has_ended(h, rank) || !may_accuse(h) ? TTI_RULING_CLEAR : tti_rule(standing_of(h, rank), sign);

    switch (ruling) {
    case TTI_RULING_NOTHING: break;
    case TTI_RULING_CLEAR: break;
    case TTI_RULING_AGAIN: tti_suspects_again(&h->suspects, rank, awake_now(h) + AGAIN_MS * TTI_MS); return;
    case TTI_RULING_DOUBT: (void)tti_suspects_doubt(&h->suspects, rank, awake_now(h) + UNHEARD_MS * TTI_MS); return;
    case TTI_RULING_LEFT: tti_book_has_left(&h->book, rank); break;
    case TTI_RULING_DEAD_REFUSED: tti_book_has_died(&h->book, rank, refused); break;
    case TTI_RULING_DEAD_SILENT: tti_book_has_died(&h->book, rank, cut); break;
    }
    tti_suspects_drop(&h->suspects, rank);
}

static bool is_doubted_unheard(const tti_health *h, int rank)
{
    const tti_suspect *suspect = tti_suspects_find(&h->suspects, rank);

    return suspect != NULL && suspect->unheard;
}

/* Doors that were found shut since the last time: how many. */
static int take_shut_doors(tti_health *h, int taken[SHUT_MAX])
{
    int n;

    tti_lock(&h->lock);
    n = h->n_shut;
    memcpy(taken, h->shut, (size_t)n * sizeof *taken);
    h->n_shut = 0;
    tti_unlock(&h->lock);
    return n;
}

static void take_shut(tti_health *h)
{
    int       taken[SHUT_MAX];
    const int n = take_shut_doors(h, taken);
    int       i;

    for (i = 0; i < n; i++)
        if (!is_doubted_unheard(h, taken[i])) /* its knock is due later, and decides */
            take_sign(h, taken[i], TTI_SIGN_REFUSED);
}

static void see_to_suspects(tti_health *h)
{
    const int64_t now_ns = awake_now(h);
    tti_sign      sign;
    int           rank;

    while ((rank = tti_suspects_turn(&h->suspects, now_ns, &sign)) >= 0)
        take_sign(h, rank, sign);
}

static bool is_far(const tti_health *h, const tti_talk *talk)
{
    tti_stream_facts facts;

    return h->port->ops->stream_facts != NULL && h->port->ops->stream_facts(h->port, talk->stream, &facts) == 0 &&
           facts.round_trip_us > TTI_KNOCK_WAY_MS * 1000;
}

/* A net that comes back resets what the other end gave up meanwhile: then silence proves nothing. */
static void conclude_talk(tti_health *h, int i, tti_talk_end end)
{
    const int  rank = h->talks[i].rank;
    const bool was_well = end == TTI_TALK_CUT || !is_out_of_reach(tti_said_life(tti_book_said(&h->book, rank)));
    const bool in_time = was_well && !is_far(h, &h->talks[i]);

    end_talk(h, i);
    if (end == TTI_TALK_GOODBYE)
        tti_book_has_left(&h->book, rank);
    else if ((end == TTI_TALK_CUT || end == TTI_TALK_RESET) && !has_ended(h, rank) && may_accuse(h))
        (void)tti_suspects_add(&h->suspects, rank, in_time, awake_now(h)); /* without room: others find it, or it is out of reach
                                                                              after a while */
    if (end == TTI_TALK_CUT)
        tti_suspects_note_closed(&h->suspects, rank);
}

/* ---- streams to other hosts ------------------------------------------------------------------------ */

/* Whether the kernel there acknowledges what is sent, twice in a heartbeat. Where the own link is down nothing is sent at all,
 * and nothing waits for an answer: so it must have come lately. */
static bool acknowledges(const tti_health *h, const tti_talk *talk)
{
    tti_stream_facts facts;

    return h->port->ops->stream_facts(h->port, talk->stream, &facts) == 0 && facts.in_a_row == 0 &&
           (int64_t)facts.heard_ms * TTI_MS < 2 * h->book.heartbeat_ns;
}

/* Also one whose process does not run takes a connection, and has no stream with this rank then. */
static bool was_reached(const tti_health *h, int host)
{
    return h->reached_ns[host] != 0 && h->book.awake_ns - h->reached_ns[host] < REACH_BEATS * h->book.heartbeat_ns;
}

static bool answers(const tti_health *h, int host)
{
    int i;

    if (was_reached(h, host))
        return true;
    for (i = 0; i < h->n_talks && h->port->ops->stream_facts != NULL; i++)
        if (h->book.hosts[h->talks[i].rank] == host && acknowledges(h, &h->talks[i]))
            return true;
    return false;
}

/* The turn-th rank of a host that may be connected to; -1: none is left. Those that are well come first. */
static int candidate(const tti_health *h, int host, int turn)
{
    int n_well = 0, n = 0, pass, r, k = 0;

    for (r = host; r < h->book.n_ranks; r++)
        if (h->book.hosts[r] == host && !has_ended(h, r)) {
            n++;
            n_well += tti_said_life(tti_book_said(&h->book, r)) == TTI_LIFE_WELL;
        }
    if (n == 0)
        return -1;
    turn %= n_well > 0 ? n_well : n;
    for (pass = n_well > 0 ? 0 : 1; pass < 2; pass++)
        for (r = host; r < h->book.n_ranks; r++)
            if (h->book.hosts[r] == host && !has_ended(h, r) &&
                (pass == 1 || tti_said_life(tti_book_said(&h->book, r)) == TTI_LIFE_WELL) && k++ == turn)
                return r;
    return -1;
}

/* The first host from there on that has a rank left, in the order of all, round behind the last. */
static int living_host(const tti_health *h, int at)
{
    int i;

    for (i = 0; i < h->n_far; i++) {
        const int host = h->far[(at + i) % h->n_far];

        if (candidate(h, host, 0) >= 0)
            return host;
    }
    return h->far[h->own_far];
}

static void dial_one(tti_health *h, int k)
{
    const int host = living_host(h, h->own_far + (1 << k));
    int       rank;

    if (host == h->far[h->own_far] || talks_with(h, host) || h->book.now_ns < h->dial_ns[k])
        return;
    rank = candidate(h, host, h->dial_turn[k]++);
    h->dial_ns[k] = h->book.now_ns + h->book.heartbeat_ns;
    if (rank >= 0)
        want_stream(h, rank);
}

/* Connect to those further on that nothing comes from. */
static void dial_others(tti_health *h)
{
    int k;

    if (tti_book_speaker(&h->book) != h->book.rank)
        return;
    for (k = 0; k < DISTANCES_MAX && (1 << k) < h->n_far; k++)
        dial_one(h, k);
}

static void note_reached(tti_health *h)
{
    int i;

    for (i = 0; i < h->n_far; i++)
        if (atomic_exchange_explicit(&h->is_reached[h->far[i]], false, memory_order_relaxed))
            h->reached_ns[h->far[i]] = h->book.awake_ns;
}

/* True: it speaks for its host from now on. */
static bool begins_to_speak(tti_health *h)
{
    const bool speaks = tti_book_speaker(&h->book) == h->book.rank;
    const bool spoke = h->speaks_ns != NOT_SPEAKING;

    if (speaks != spoke)
        h->speaks_ns = speaks ? h->book.awake_ns : NOT_SPEAKING;
    return speaks && !spoke;
}

/* Whether this rank would have seen by now if the kernel of a silent host answered. */
static bool has_looked(const tti_health *h)
{
    return h->speaks_ns != NOT_SPEAKING && h->book.awake_ns - h->speaks_ns >= h->book.heartbeat_ns;
}

/* Data of its ranks: where the way is slow, what its speaker says waits behind that. Of a process that is stopped there comes what
 * its kernel had taken before, and no more. */
static void see_data(tti_health *h, int host)
{
    uint32_t least = UINT32_MAX, ms;
    int      r;

    tti_lock(&h->lock);
    for (r = host; r < h->book.n_ranks && h->data_ms != NULL; r++)
        if (h->book.hosts[r] == host && (ms = h->data_ms(h->data_context, r)) < least)
            least = ms;
    tti_unlock(&h->lock);
    if (least != UINT32_MAX)
        tti_book_see_data(&h->book, host, least * TTI_MS);
}

static void judge_other(tti_health *h, int host)
{
    bool answering, knows;

    if (tti_book_host_is_quiet(&h->book, host, 0))
        see_data(h, host);
    knows = (answering = answers(h, host)) || has_looked(h) || !tti_book_host_is_quiet(&h->book, host, 0);
    if (knows || tti_book_host_is_quiet(&h->book, host, TOLD_BEATS * h->book.heartbeat_ns))
        tti_book_judge_host(&h->book, host, answering);
}

static void judge_others(tti_health *h)
{
    int i;

    note_reached(h);
    for (i = 0; i < h->n_far; i++)
        if (i != h->own_far)
            judge_other(h, h->far[i]);
}

/* Streams that were handed over. */
static void take_arrivals(tti_health *h)
{
    arrival taken[TALKS_MAX];
    int     i, n;

    tti_lock(&h->lock);
    n = h->n_arrivals;
    memcpy(taken, h->arrivals, (size_t)n * sizeof *taken);
    h->n_arrivals = 0;
    tti_unlock(&h->lock);
    for (i = 0; i < n; i++) {
        if (h->port->ops->let_wait != NULL) /* a rank that is stopped reads nothing for as long as it is */
            h->port->ops->let_wait(h->port, taken[i].stream);
        if (h->n_talks < TALKS_MAX && tti_talk_begin(&h->talks[h->n_talks], &h->book, taken[i].rank, taken[i].stream)) {
            h->n_talks++;
            h->met[h->book.hosts[taken[i].rank]] = true;
            h->met_ns = h->met_ns == NOT_YET ? h->book.awake_ns : h->met_ns;
            tti_suspects_drop(&h->suspects, taken[i].rank); /* its process has just proved itself */
        } else {
            tti_health_refuse(h->port, taken[i].stream);
        }
    }
}

/* What a rank said before it was cut off counts: a goodbye above all. */
static void send_all(tti_health *h)
{
    const bool has_change = h->book.has_change;
    int        i;

    if (h->n_talks == 0)
        return;
    h->book.has_change = false; /* one that is found on the way has not been told to all: it goes with the next wake-up */
    tti_book_speak(&h->book);
    for (i = h->n_talks - 1; i >= 0; i--) {
        tti_talk_end end, last;

        h->talks[i].urgent = h->talks[i].urgent || has_change;
        end = tti_talk_send(&h->talks[i], h->port, &h->book);
        if (end == TTI_TALK_GOES_ON)
            continue;
        last = tti_talk_receive(&h->talks[i], h->port, &h->book); /* its end says nothing: the failure was told already */
        conclude_talk(h, i, last == TTI_TALK_GOODBYE || last == TTI_TALK_HUNG_UP ? last : end);
    }
}

/* ---- the thread ------------------------------------------------------------------------------------ */

static void wake_up(tti_health *h, int64_t now_ns)
{
    const bool slowly = ++h->ticks % SLOW_TICKS == 2; /* soon after the beginning, too */
    const bool is_late = now_ns - h->book.now_ns > 2 * h->book.tick_ns;
    const bool is_back = is_late && !h->was_late; /* from somewhere, and has not read what came meanwhile */
    const bool many = h->n_members > ALL_AT_ONCE;
    int        i;

    tti_book_tick(&h->book, now_ns);
    if (!h->book.is_complete && atomic_load_explicit(&h->complete, memory_order_relaxed))
        tti_book_complete(&h->book);
    h->next_tick_ns = now_ns + h->book.tick_ns;
    for (i = 0; i < h->n_members; i++)
        if (i != h->own && (!many || ((unsigned)i + h->ticks) % SLOW_TICKS == 0))
            look_at_member(h, i, slowly || many);
    h->looks_far = begins_to_speak(h) || h->looks_far || slowly;
    if (h->looks_far && h->n_far > 1) {
        h->looks_far = is_back; /* who was late the last time has read what came up to then */
        if (!h->looks_far)
            judge_others(h);
        dial_others(h);
    }
    h->was_late = is_late;
    if (!is_back)
        tti_book_lose_silent(&h->book);
}

/* The nearest living neighbours on one side. */
static int fill_lives(tti_health *h, int step, int n)
{
    int i, found = 0;

    for (i = 1; i < h->n_members && found < NEIGHBOURS; i++) {
        const int at = (h->own + step * i + h->n_members * NEIGHBOURS) % h->n_members;

        if (2 * i > h->n_members && step > 0) /* the other side has them */
            break;
        if (2 * i >= h->n_members && step < 0)
            break;
        if (has_ended(h, h->members[at].rank) || h->members[at].life == TTI_NO_HANDLE)
            continue;
        h->polled[n - 1] = at;
        h->set[n++] = (tti_poll){ .handle = h->members[at].life, .want = TTI_READ };
        found++;
    }
    return n;
}

static int fill_talks(const tti_health *h, tti_poll *set)
{
    int i;

    for (i = 0; i < h->n_talks; i++)
        set[i] = (tti_poll){ .handle = h->talks[i].stream,
                             .want = (uint8_t)(TTI_READ | (tti_talk_is_stuck(&h->talks[i]) ? TTI_WRITE : 0)) };
    return h->n_talks;
}

static void turn_talks(tti_health *h, const tti_poll *set)
{
    tti_talk_end end;
    int          i;

    for (i = h->n_talks - 1; i >= 0; i--) {
        if ((set[i].got & (TTI_READ | TTI_HANGUP)) == 0)
            continue;
        end = tti_talk_receive(&h->talks[i], h->port, &h->book);
        if (end != TTI_TALK_GOES_ON)
            conclude_talk(h, i, end);
    }
}

/* When to wake up at the latest. */
static int64_t next_ns(const tti_health *h)
{
    const int64_t now_ns = tti_port_now(h->port), due_ns = tti_suspects_next_ns(&h->suspects);
    const int64_t in_ns = due_ns - tti_book_awake_ns(&h->book, now_ns);

    return due_ns == TTI_FOREVER || in_ns > h->next_tick_ns - now_ns ? h->next_tick_ns : now_ns + in_ns;
}

/* The goodbye of a rank comes before its door is shut: so knocks are polled before talks, and looked at behind them. */
static void sleep_and_turn(tti_health *h)
{
    int n, i, knocks;

    h->set[0] = (tti_poll){ .handle = h->bell, .want = TTI_READ };
    n = fill_lives(h, 1, 1);
    n = fill_lives(h, -1, n);
    h->n_polled = n - 1;
    knocks = n;
    n += tti_suspects_fill(&h->suspects, h->set + n);
    h->port->ops->poll(h->port, h->set, n + fill_talks(h, h->set + n), next_ns(h));
    tti_suspects_note(&h->suspects, h->set + knocks);
    if (h->set[0].got != 0)
        h->port->ops->bell_clear(h->port, h->bell);
    for (i = 0; i < h->n_polled; i++)
        if (h->set[1 + i].got != 0)
            end_member(h, h->polled[i]);
    turn_talks(h, h->set + n);
}

/* Want a stream with the first living host from there on, if there was none yet and none is wanted with it: how many are. */
static int want_host(tti_health *h, int at, int *wanted, int n)
{
    const int host = living_host(h, at);
    int       i;

    for (i = 0; i < n && wanted[i] != host; i++)
        continue;
    if (host == h->far[h->own_far] || h->met[host] || i < n)
        return n;
    want_stream(h, candidate(h, host, 0));
    wanted[n] = host;
    return n + 1;
}

/* Want streams with those that this rank would speak with, and those that would speak with it, who would find its door shut: how
 * many. */
static int want_all(tti_health *h, int wanted[2 * DISTANCES_MAX])
{
    int k, n = 0;

    for (k = 0; k < DISTANCES_MAX && (1 << k) < h->n_far; k++) {
        n = want_host(h, h->own_far + (1 << k), wanted, n);
        n = want_host(h, h->own_far + h->n_far - (1 << k), wanted, n);
    }
    return n;
}

/* Of the hosts that streams are wanted with, those that none is there with, and that have not shut their door: how many. One host
 * may have two streams, where both ends made one: so hosts are counted, not streams. */
static int keep_awaited(tti_health *h, int *wanted, int n)
{
    int       shut[SHUT_MAX];
    const int n_shut = take_shut_doors(h, shut);
    int       i, k, kept = 0;

    for (i = 0; i < n; i++) {
        for (k = 0; k < n_shut && h->book.hosts[shut[k]] != wanted[i]; k++)
            continue;
        if (k == n_shut && !h->met[wanted[i]])
            wanted[kept++] = wanted[i];
    }
    return kept;
}

/* Have streams to say goodbye by, with each host that there was none with. */
static void meet_at_last(tti_health *h, int64_t until_ns)
{
    int wanted[2 * DISTANCES_MAX];
    int earlier[SHUT_MAX];
    int n;

    (void)take_shut_doors(h, earlier);
    n = want_all(h, wanted);
    while (n > 0 && tti_port_now(h->port) < until_ns) {
        tti_poll bell = { .handle = h->bell, .want = TTI_READ };

        h->port->ops->poll(h->port, &bell, 1, until_ns);
        h->port->ops->bell_clear(h->port, h->bell);
        take_arrivals(h);
        n = keep_awaited(h, wanted, n);
    }
}

/* Whether there may be hosts that have never heard of this one: they take a shut door for a death (proof.c). */
static bool is_early(const tti_health *h)
{
    return h->met_ns == NOT_YET || awake_now(h) - h->met_ns < FIRST_BEATS * h->book.heartbeat_ns;
}

/* Whoever of this host has ended, and this thread has not been told of: with it goes perhaps the last one that could tell the
 * other hosts of it, and to them who is refused after a goodbye has left, too (proof.c). */
static void look_at_lives(tti_health *h)
{
    int i;

    for (i = 0; i < h->n_members; i++) {
        tti_poll life = { .handle = h->members[i].life, .want = TTI_READ };

        if (i != h->own && life.handle != TTI_NO_HANDLE && !has_ended(h, h->members[i].rank) &&
            h->port->ops->poll(h->port, &life, 1, 0) > 0)
            end_member(h, i);
    }
}

/* Say goodbye, for those of the host that leave as well, too, and wait until those who were told hang up. */
static void leave(tti_health *h)
{
    const int64_t until_ns = tti_port_now(h->port) + GOODBYE_MS * TTI_MS;
    int           i;

    tti_suspects_drop_all(&h->suspects);
    look_at_lives(h); /* by that this rank may be the one that speaks */
    if (is_early(h) && h->n_far > 1 && atomic_load_explicit(&h->complete, memory_order_relaxed) &&
        tti_book_speaker(&h->book) == h->book.rank)
        meet_at_last(h, until_ns);
    look_at_lives(h); /* that took a while, in which nobody looked */
    tti_book_speak(&h->book); /* who has not spoken before says it here: by that ranks of this host are behind it (proof.c) */
    tti_book_has_left(&h->book, h->book.rank);
    for (i = 0; i < h->n_members; i++)
        if (!has_ended(h, h->members[i].rank) && has_closed(&h->members[i]))
            tti_book_has_left(&h->book, h->members[i].rank);
    for (i = h->n_talks - 1; i >= 0; i--)
        if (!tti_talk_say_last(&h->talks[i], h->port, &h->book, TTI_DIGEST_GOODBYE))
            end_talk(h, i);
    while (h->n_talks > 0 && tti_port_now(h->port) < until_ns) {
        h->port->ops->poll(h->port, h->set, fill_talks(h, h->set), until_ns);
        turn_talks(h, h->set);
    }
    while (h->n_talks > 0)
        end_talk(h, 0);
}

void tti_health_run(tti_health *h)
{
    int64_t now_ns;

    while (!is_closing(h)) {
        now_ns = tti_port_now(h->port);
        if (now_ns >= h->next_tick_ns)
            wake_up(h, now_ns);
        take_arrivals(h);
        take_shut(h);
        see_to_suspects(h);
        send_all(h);
        sleep_and_turn(h);
    }
    take_arrivals(h);
    leave(h);
}

static void thread_main(void *arg)
{
    tti_health_run(arg);
}

/* ---- what others ask ------------------------------------------------------------------------------- */

tti_health_report tti_health_of(const tti_health *h, int rank)
{
    if (h == NULL)
        return (tti_health_report){ .life = TTI_LIFE_WELL };
    return tti_book_report(&h->book, rank);
}

uint32_t tti_health_verdicts(const tti_health *h)
{
    return h != NULL ? atomic_load_explicit(&h->book.verdicts, memory_order_acquire) : 0;
}

bool tti_health_is_lost(const tti_health *h, int rank)
{
    return h != NULL && tti_book_is_lost(&h->book, rank);
}

int64_t tti_health_silence_ns(const tti_health *h)
{
    return h != NULL ? tti_book_silence_ns(&h->book) : 4 * TTI_SECOND;
}

bool tti_health_is_silent(const tti_health *h, int rank)
{
    return h != NULL && tti_book_is_silent(&h->book, rank);
}

int64_t tti_health_stamp_ms(const tti_health *h, int rank)
{
    return h != NULL ? tti_book_stamp_ms(&h->book, h->book.hosts[rank]) : 0;
}

bool tti_health_has_outlived(const tti_health *h, int rank, int64_t stamp_ms)
{
    return h != NULL && !tti_life_is_final(tti_health_of(h, rank).life) &&
           tti_health_stamp_ms(h, rank) - stamp_ms >= h->book.heartbeat_ns / TTI_MS;
}

_Atomic uint64_t *tti_health_deed(tti_health *h)
{
    return h != NULL ? &h->book.page->deed : NULL;
}

void tti_health_note_whole(tti_health *h, uint64_t deed)
{
    tti_health_page *page = h != NULL ? h->book.page : NULL;
    uint64_t         was;

    if (page == NULL)
        return;
    was = atomic_load_explicit(&page->whole, memory_order_relaxed);
    if (deed == 0 && was != 0)
        atomic_store_explicit(&page->deed, was, memory_order_relaxed);
    atomic_store_explicit(&page->whole, deed, memory_order_release);
}

/* Another rank of this host; NULL for those of others. */
static const tti_health_member *neighbour(const tti_health *h, int rank)
{
    int i;

    for (i = 0; i < h->n_members; i++)
        if (h->members[i].rank == rank && i != h->own)
            return &h->members[i];
    return NULL;
}

tti_health_report tti_health_now(const tti_health *h, int rank)
{
    tti_health_report        report = tti_health_of(h, rank);
    const tti_health_member *member = h != NULL ? neighbour(h, rank) : NULL;
    char                     state;

    if (member == NULL)
        return report;
    if (report.life == TTI_LIFE_WELL && member->life != TTI_NO_HANDLE) {
        state = h->config.state_of(h->config.context, member->life);
        report.life = state == 'T' ? TTI_LIFE_STOPPED : state == 't' ? TTI_LIFE_PAUSED : TTI_LIFE_WELL;
    }
    report.deed = tti_page_deed(member->page);
    return report;
}

const char *tti_health_describe(const tti_health *h, int rank, char out[TTI_HEALTH_TEXT_MAX])
{
    const tti_health_report report = tti_health_now(h, rank);

    out[0] = '\0';
    return h != NULL ? tti_report_words(h, &report, tti_port_now(h->port), out) : out;
}

void tti_health_name_group(tti_health *h, uint32_t group, const char *name)
{
    if (h != NULL)
        tti_deed_names_add(h->names, group, name);
}

void tti_health_forget_group(tti_health *h, uint32_t group)
{
    if (h != NULL)
        tti_deed_names_remove(h->names, group);
}

bool tti_health_group_name(const tti_health *h, unsigned short_group, char *out, size_t bytes)
{
    return h != NULL && tti_deed_names_find(h->names, short_group, out, bytes);
}

/* ---- life ------------------------------------------------------------------------------------------ */

static tutti_status copy_lists(tti_health *h, const tti_health_config *config)
{
    const size_t n = (size_t)config->n_members, n_ranks = (size_t)config->n_ranks;
    int          r;

    h->members = malloc(n * sizeof *h->members);
    h->news_seen = calloc(n, sizeof *h->news_seen);
    h->far = malloc(n_ranks * sizeof *h->far);
    h->reached_ns = calloc(n_ranks, sizeof *h->reached_ns);
    h->is_reached = calloc(n_ranks, sizeof *h->is_reached);
    h->met = calloc(n_ranks, sizeof *h->met);
    h->names = malloc(sizeof *h->names);
    if (h->names != NULL)
        tti_deed_names_init(h->names);
    if (h->members == NULL || h->news_seen == NULL || h->far == NULL || h->reached_ns == NULL || h->is_reached == NULL ||
        h->met == NULL || h->names == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to watch over %d ranks", config->n_ranks);
    memcpy(h->members, config->members, n * sizeof *h->members);
    h->n_members = config->n_members;
    for (r = 0; r < h->n_members; r++)
        if (h->members[r].rank == config->rank)
            h->own = r;
    for (r = 0; r < config->n_ranks; r++)
        if (config->hosts[r] == r) {
            if (r == config->hosts[config->rank])
                h->own_far = h->n_far;
            h->far[h->n_far++] = r;
        }
    return TUTTI_OK;
}

static const tti_addr *addr_of(const void *context, int rank)
{
    const tti_health *h = context;

    return h->config.addr_of(h->config.context, rank);
}

static tutti_status prepare(tti_health *h, const tti_health_config *config)
{
    tutti_status st = tti_book_init(&h->book, config);
    int          err;

    if (st == TUTTI_OK)
        st = copy_lists(h, config);
    if (st != TUTTI_OK)
        return st;
    if (tti_book_speaker(&h->book) != h->book.rank)
        h->speaks_ns = NOT_SPEAKING;
    h->book.changed = log_change;
    h->book.context = h;
    h->suspects.port = h->port;
    h->suspects.context = h;
    h->suspects.addr_of = addr_of;
    err = h->port->ops->bell_create(h->port, &h->bell);
    return err == 0 ? TUTTI_OK : tti_fail_errno(-err, "cannot create a bell");
}

tutti_status tti_health_make(const tti_health_config *config, tti_health **health_out)
{
    tti_health  *h = calloc(1, sizeof *h);
    tutti_status st;

    if (h == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to watch over %d ranks", config->n_ranks);
    h->config = *config;
    h->port = config->port;
    h->bell = TTI_NO_HANDLE;
    h->met_ns = NOT_YET;
    tti_mutex_init(&h->lock);
    st = prepare(h, config);
    if (st != TUTTI_OK) {
        tti_health_close(h);
        return st;
    }
    *health_out = h;
    return TUTTI_OK;
}

tutti_status tti_health_start(tti_health *h)
{
    return tti_thread_start(&h->thread, "tutti-watch", thread_main, h);
}

void tti_health_set_dialer(tti_health *h, void (*dial)(void *context, int rank), void *context)
{
    if (h == NULL)
        return;
    tti_lock(&h->lock);
    h->dial = dial;
    h->dial_context = context;
    tti_unlock(&h->lock);
}

void tti_health_set_ear(tti_health *h, uint32_t (*data_ms)(void *context, int rank), void *context)
{
    if (h == NULL)
        return;
    tti_lock(&h->lock);
    h->data_ms = data_ms;
    h->data_context = context;
    tti_unlock(&h->lock);
}

void tti_health_adopt(tti_health *h, int rank, tti_handle stream)
{
    bool taken;

    tti_lock(&h->lock);
    taken = h->n_arrivals < TALKS_MAX;
    if (taken)
        h->arrivals[h->n_arrivals++] = (arrival){ rank, stream };
    tti_unlock(&h->lock);
    if (taken)
        h->port->ops->bell_ring(h->port, h->bell);
    else
        tti_health_refuse(h->port, stream);
}

void tti_health_is_shut(tti_health *h, int rank)
{
    tti_lock(&h->lock);
    if (h->n_shut < SHUT_MAX)
        h->shut[h->n_shut++] = rank;
    tti_unlock(&h->lock);
    h->port->ops->bell_ring(h->port, h->bell);
}

void tti_health_is_reached(tti_health *h, int rank)
{
    atomic_store_explicit(&h->is_reached[h->book.hosts[rank]], true, memory_order_relaxed); /* says all there is; read now and then */
}

void tti_health_refuse(tti_port *port, tti_handle stream)
{
    uint8_t  last[TTI_DIGEST_HEAD_BYTES];
    tti_part rest = { last, sizeof last };
    int64_t  n;

    tti_digest_hang_up(last);
    while (rest.size > 0 && (n = port->ops->send(port, stream, &rest, 1)) > 0) /* a part of it would say that it was cut */
        rest = (tti_part){ (const uint8_t *)rest.data + n, rest.size - (size_t)n };
    port->ops->close(port, stream);
}

void tti_health_stop(tti_health *h)
{
    atomic_store_explicit(&h->closing, true, memory_order_release);
    h->port->ops->bell_ring(h->port, h->bell);
}

void tti_health_complete(tti_health *h)
{
    if (h != NULL)
        atomic_store_explicit(&h->complete, true, memory_order_relaxed);
}

void tti_health_leave(tti_health *h)
{
    if (h == NULL)
        return;
    if (h->bell != TTI_NO_HANDLE)
        tti_health_stop(h);
    tti_thread_join(&h->thread);
}

void tti_health_close(tti_health *h)
{
    int i;

    if (h == NULL)
        return;
    tti_health_leave(h);
    for (i = 0; i < h->n_arrivals; i++)
        tti_health_refuse(h->port, h->arrivals[i].stream);
    h->port->ops->close(h->port, h->bell);
    tti_mutex_release(&h->lock);
    if (h->names != NULL)
        tti_deed_names_release(h->names);
    free(h->names);
    tti_book_release(&h->book);
    free(h->members);
    free(h->news_seen);
    free(h->far);
    free(h->reached_ns);
    free(h->met);
    free(h->is_reached);
    free(h);
}
