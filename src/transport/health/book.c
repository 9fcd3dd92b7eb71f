/* SPDX-License-Identifier: BSD-3-Clause
 *
 * book.c - what one rank knows of all, and how it comes to know it.
 *
 * Why     A rank that does not answer may be dead, stopped, starved of a core, or cut off. The first is an error at
 *         once, the others are none for a while: so they are told apart, and only the first is final.
 * How     Each rank has a word on the page of each member of its host: what that member believes of it, with a stamp
 *         of its host's clock. Two words are joined by taking the one that is final, or the later one: an operation that
 *         does not care for order or repetition, so that words may come by any way, any number of times.
 *
 *           own host      the beat stands still for three heartbeats: SILENT, STOPPED or PAUSED, as the kernel says.
 *                         It moves again: WELL. Everybody judges for himself; ends are taken from each other
 *           other hosts   what was said there, by whoever could see it. Each host has a stamp, which grows while
 *                         anybody there speaks; it came by others if not directly. If it stands still for three
 *                         heartbeats: MUTE or UNREACHABLE, with a stamp just behind it, so that any later word from
 *                         there ends that. A host that has never spoken is silent from when the world was made: each
 *                         member watches by then
 *
 *         A claim on a rank of one's own host is renewed once a heartbeat; elsewhere one that is not renewed is void.
 * True    A page has one writer, its rank's watch thread; this book is that thread's, but for words, since_ns, lost and
 *         verdicts, which others read. A word is one atomic that says all there is; since_ns is stored before it
 *         (release), so whoever sees a life (acquire) has its beginning, or that of the next one. news is counted behind
 *         the words (release): whoever sees it (acquire) sees them.
 *         A beat carries nothing but that it moves, so no order matters for it.
 * Starved Silence is measured by the time that this rank was awake itself: a wake-up counts two ticks at most, however late
 *         it comes; and it is too long when this thread has found so, whatever the clock says to others. So a rank that
 *         was stopped, or had no core, accuses nobody when it comes back. Whoever is starved for longer than three heartbeats
 *         is silent, and well again with its next beat.
 * Held    Who was stopped, or held by a debugger, and is no more has not beaten yet: its beat is waited for as long as any
 *         silence takes, and it is called what it was meanwhile. */
#include "transport/health/book.h"

#include <stdlib.h>
#include <tutti/private.h>

enum {
    STAMP_SHIFT = 24,
    LIFE_SHIFT = 20,
    CAUSE_SHIFT = 16,
    TICKS_PER_BEAT = 10,
    TICK_MS_MAX = 100,
    BEATS_TO_SILENCE = 3,
    CLAIM_BEATS = 4, /* a claim from elsewhere that is not renewed for so long is void */
    BEATS_TO_GO_ON = 4, /* from its last sign of life to when those that go on without the silent do so */
};

#define DETAIL_MASK ((UINT64_C(1) << LIFE_SHIFT) - 1)
#define LIFE_MASK UINT64_C(0xf)
#define STAMP_MASK ((UINT64_C(1) << (64 - STAMP_SHIFT)) - 1)
#define TENTH_NS (100 * TTI_MS)

/* What the book remembers of a rank; of a host at its lowest rank. */
struct tti_sight {
    uint64_t         beat;
    int64_t          moved_ns; /* awake_ns when beat last changed */
    int64_t          held_ns;  /* awake_ns when it was last seen to be stopped, or held by a debugger */
    int64_t          spoke_ns; /* the same, of the host's stamp */
    int64_t          unwell_ns; /* and what since_ns was */
    _Atomic int64_t  since_ns; /* of the port's clock: since when it is not well */
    _Atomic bool     lost;     /* silent for too long */
    _Atomic bool     silent;   /* for so long that those that go on do so without it */
};

/* ---- words ----------------------------------------------------------------------------------------- */

size_t tti_health_page_bytes(int n_ranks)
{
    const size_t bytes = sizeof(tti_health_page) + 3 * (size_t)n_ranks * sizeof(uint64_t);

    return (bytes + 127) / 128 * 128;
}

tti_said tti_said_of(int64_t stamp_ms, tti_life life, uint32_t detail)
{
    return ((uint64_t)stamp_ms & STAMP_MASK) << STAMP_SHIFT | (uint64_t)life << LIFE_SHIFT |
           (detail < DETAIL_MASK ? detail : DETAIL_MASK);
}

tti_life tti_said_life(tti_said said)
{
    return (tti_life)(said >> LIFE_SHIFT & LIFE_MASK);
}

int64_t tti_said_stamp_ms(tti_said said)
{
    return (int64_t)(said >> STAMP_SHIFT);
}

tti_end_cause tti_said_cause(tti_said said)
{
    const uint32_t detail = (uint32_t)(said & DETAIL_MASK);

    if (tti_said_life(said) != TTI_LIFE_DEAD || detail >> CAUSE_SHIFT > TTI_CAUSE_SIGNAL)
        return (tti_end_cause){ .kind = TTI_CAUSE_UNKNOWN };
    return (tti_end_cause){ .kind = (tti_cause_kind)(detail >> CAUSE_SHIFT), .value = (int)(detail & 0xffff) };
}

tti_said tti_said_join(tti_said a, tti_said b)
{
    const uint64_t what = (LIFE_MASK << LIFE_SHIFT) | DETAIL_MASK;
    const bool     a_final = tti_life_is_final(tti_said_life(a)), b_final = tti_life_is_final(tti_said_life(b));

    if (a_final != b_final)
        return a_final ? a : b;
    if (a_final && (a & what) != (b & what))
        return (a & what) > (b & what) ? a : b;
    return a >= b ? a : b;
}

/* ---- life ------------------------------------------------------------------------------------------ */

tutti_status tti_book_init(tti_book *book, const tti_health_config *config)
{
    const size_t n = (size_t)config->n_ranks;
    int64_t      tick_ms = config->heartbeat_ms / TICKS_PER_BEAT;
    int          i;

    if (tick_ms > TICK_MS_MAX)
        tick_ms = TICK_MS_MAX;
    *book = (tti_book){ .rank = config->rank, .n_ranks = config->n_ranks, .heartbeat_ns = config->heartbeat_ms * TTI_MS,
                        .silent_ns = config->silent_ms * TTI_MS, .tick_ns = (tick_ms > 0 ? tick_ms : 1) * TTI_MS };
    book->hosts = malloc(n * sizeof *book->hosts);
    book->sights = calloc(n, sizeof *book->sights);
    if (book->hosts == NULL || book->sights == NULL) {
        tti_book_release(book);
        return tti_fail(TUTTI_E_NOMEM, "no memory to watch over %d ranks", config->n_ranks);
    }
    for (i = 0; i < config->n_ranks; i++)
        book->hosts[i] = config->hosts[i];
    for (i = 0; i < config->n_members; i++)
        if (config->members[i].rank == config->rank)
            book->page = config->members[i].page;
    book->now_ns = tti_port_now(config->port);
    return TUTTI_OK;
}

void tti_book_release(tti_book *book)
{
    free(book->hosts);
    free(book->sights);
    book->hosts = NULL;
    book->sights = NULL;
}

/* ---- reading and writing --------------------------------------------------------------------------- */

/* Every process of the host has the pages mapped, this rank's own included: a word that nobody can have meant counts as
 * none. */
static tti_said sound(tti_said said)
{
    return tti_said_life(said) <= TTI_LIFE_LEFT ? said : 0;
}

tti_said tti_book_said(const tti_book *book, int rank)
{
    return sound(atomic_load_explicit(&book->page->words[rank], memory_order_acquire));
}

int64_t tti_book_stamp_ms(const tti_book *book, int host)
{
    return (int64_t)atomic_load_explicit(&book->page->words[book->n_ranks + host], memory_order_relaxed);
}

void tti_book_note_deed(tti_book *book, int rank, uint64_t deed)
{
    atomic_store_explicit(&book->page->words[2 * book->n_ranks + rank], deed, memory_order_relaxed);
}

uint64_t tti_book_deed(const tti_book *book, int rank)
{
    return atomic_load_explicit(&book->page->words[2 * book->n_ranks + rank], memory_order_relaxed);
}

static int64_t stamp_now(const tti_book *book)
{
    return book->now_ns / TTI_MS;
}

static bool is_near(const tti_book *book, int rank)
{
    return book->hosts[rank] == book->hosts[book->rank];
}

static void count_news(tti_book *book)
{
    atomic_store_explicit(&book->page->news, atomic_load_explicit(&book->page->news, memory_order_relaxed) + 1,
                          memory_order_release);
}

static void count_verdict(tti_book *book)
{
    atomic_store_explicit(&book->verdicts, atomic_load_explicit(&book->verdicts, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* From here on this is believed of rank, and has been so since then. */
static void put(tti_book *book, int rank, tti_said said, int64_t since_ns)
{
    const tti_life before = tti_said_life(tti_book_said(book, rank)), life = tti_said_life(said);
    tti_sight     *sight = &book->sights[rank];

    if (life != before && (before == TTI_LIFE_WELL || tti_life_is_final(life))) {
        atomic_store_explicit(&sight->since_ns, since_ns, memory_order_relaxed);
        sight->unwell_ns = book->awake_ns - (book->now_ns - since_ns);
    }
    if (life == TTI_LIFE_WELL) {
        atomic_store_explicit(&sight->lost, false, memory_order_relaxed);
        atomic_store_explicit(&sight->silent, false, memory_order_relaxed);
    }
    atomic_store_explicit(&book->page->words[rank], said, memory_order_release);
    count_news(book);
    if (life == before)
        return;
    book->has_change = true;
    if (life == TTI_LIFE_DEAD)
        count_verdict(book);
    if (book->changed != NULL)
        book->changed(book->context, rank, before);
}

int64_t tti_book_awake_ns(const tti_book *book, int64_t now_ns)
{
    const int64_t gap_ns = now_ns - book->now_ns;

    return book->awake_ns + (gap_ns < 2 * book->tick_ns ? gap_ns : 2 * book->tick_ns);
}

void tti_book_tick(tti_book *book, int64_t now_ns)
{
    book->awake_ns = tti_book_awake_ns(book, now_ns);
    book->now_ns = now_ns;
    atomic_store_explicit(&book->page->beat, atomic_load_explicit(&book->page->beat, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void tti_book_complete(tti_book *book)
{
    int r;

    book->is_complete = true;
    for (r = 0; r < book->n_ranks; r++)
        if (book->hosts[r] == r && tti_book_stamp_ms(book, r) == 0)
            book->sights[r].spoke_ns = book->awake_ns;
}

/* ---- this host ------------------------------------------------------------------------------------- */

void tti_book_see_beat(tti_book *book, int rank, uint64_t beat)
{
    tti_sight *sight = &book->sights[rank];

    if (beat == sight->beat)
        return;
    sight->beat = beat;
    sight->moved_ns = book->awake_ns;
}

static int64_t quiet_ns(const tti_book *book, int rank)
{
    return rank == book->rank ? 0 : book->awake_ns - book->sights[rank].moved_ns;
}

bool tti_book_is_quiet(const tti_book *book, int rank)
{
    return quiet_ns(book, rank) >= BEATS_TO_SILENCE * book->heartbeat_ns;
}

static tti_life life_of_state(char state)
{
    return state == 'T' ? TTI_LIFE_STOPPED : state == 't' ? TTI_LIFE_PAUSED : TTI_LIFE_SILENT;
}

/* What a rank whose beat stands still is called now. */
static tti_life judge_quiet(tti_book *book, int rank, tti_life before, char state)
{
    tti_sight     *sight = &book->sights[rank];
    const tti_life life = life_of_state(state);

    if (life != TTI_LIFE_SILENT)
        sight->held_ns = book->awake_ns;
    else if ((before == TTI_LIFE_STOPPED || before == TTI_LIFE_PAUSED) &&
             book->awake_ns - sight->held_ns < BEATS_TO_SILENCE * book->heartbeat_ns)
        return before;
    return life;
}

void tti_book_judge(tti_book *book, int rank, char state)
{
    const tti_said said = tti_book_said(book, rank);
    const tti_life before = tti_said_life(said);
    const tti_life life = tti_book_is_quiet(book, rank) ? judge_quiet(book, rank, before, state) : TTI_LIFE_WELL;
    const int64_t  quiet = quiet_ns(book, rank);

    if (tti_life_is_final(before) || (life == TTI_LIFE_WELL && before == TTI_LIFE_WELL))
        return;
    if (life == before && stamp_now(book) - tti_said_stamp_ms(said) < book->heartbeat_ns / TTI_MS)
        return;
    put(book, rank, tti_said_of(stamp_now(book), life, life == TTI_LIFE_WELL ? 0 : (uint32_t)(quiet / TENTH_NS)),
        book->now_ns - quiet);
}

int tti_book_speaker(const tti_book *book)
{
    int r;

    for (r = book->hosts[book->rank]; r < book->rank; r++)
        if (is_near(book, r) && !tti_life_is_final(tti_said_life(tti_book_said(book, r))) &&
            quiet_ns(book, r) < book->heartbeat_ns * 3 / 2)
            return r;
    return book->rank;
}

void tti_book_speak(tti_book *book)
{
    const int host = book->hosts[book->rank];

    atomic_store_explicit(&book->page->words[book->n_ranks + host], (uint64_t)stamp_now(book), memory_order_relaxed);
}

/* ---- ends ------------------------------------------------------------------------------------------ */

static void finish(tti_book *book, int rank, tti_said said)
{
    const tti_said before = tti_book_said(book, rank), joined = tti_said_join(before, said);

    if (joined != before)
        put(book, rank, joined, book->now_ns);
}

void tti_book_has_died(tti_book *book, int rank, tti_end_cause cause)
{
    finish(book, rank,
           tti_said_of(stamp_now(book), TTI_LIFE_DEAD, (uint32_t)cause.kind << CAUSE_SHIFT | ((uint32_t)cause.value & 0xffff)));
}

/* Who has said so itself has said when, by its host's clock: that stays. */
void tti_book_has_left(tti_book *book, int rank)
{
    if (tti_said_life(tti_book_said(book, rank)) != TTI_LIFE_LEFT)
        finish(book, rank, tti_said_of(stamp_now(book), TTI_LIFE_LEFT, 0));
}

/* The host's stamp and those of its ranks that left are of one clock. */
bool tti_book_is_behind(const tti_book *book, int rank)
{
    const int host = book->hosts[rank];
    int64_t   left_ms = 0;
    int       r;

    for (r = host; r < book->n_ranks; r++) {
        const tti_said said = tti_book_said(book, r);

        if (book->hosts[r] == host && tti_said_life(said) == TTI_LIFE_LEFT && tti_said_stamp_ms(said) > left_ms)
            left_ms = tti_said_stamp_ms(said);
    }
    return left_ms > 0 && tti_book_stamp_ms(book, host) <= left_ms;
}

/* ---- what others say ------------------------------------------------------------------------------- */

/* Of a rank elsewhere: whoever said it could see it. */
static void believe(tti_book *book, int rank, tti_said said)
{
    const tti_said before = tti_book_said(book, rank), joined = tti_said_join(before, said);
    const bool     is_final = tti_life_is_final(tti_said_life(joined));

    if (joined != before)
        put(book, rank, joined, book->now_ns - (is_final ? 0 : (int64_t)(joined & DETAIL_MASK) * TENTH_NS));
}

void tti_book_hear_said(tti_book *book, int rank, tti_said said)
{
    if (said != 0 && !is_near(book, rank) && tti_said_life(said) <= TTI_LIFE_LEFT)
        believe(book, rank, said);
}

void tti_book_hear_stamp(tti_book *book, int host, int64_t stamp_ms)
{
    if (is_near(book, host) || book->hosts[host] != host || stamp_ms <= tti_book_stamp_ms(book, host))
        return;
    atomic_store_explicit(&book->page->words[book->n_ranks + host], (uint64_t)stamp_ms, memory_order_relaxed);
    book->sights[host].spoke_ns = book->awake_ns;
    count_news(book);
}

void tti_book_hear_deed(tti_book *book, int rank, uint64_t deed)
{
    if (is_near(book, rank) || deed == 0 || deed == tti_book_deed(book, rank))
        return;
    tti_book_note_deed(book, rank, deed);
    count_news(book);
}

void tti_book_merge_page(tti_book *book, const tti_health_page *page)
{
    int r;

    for (r = 0; r < book->n_ranks; r++) {
        const tti_said said = sound(atomic_load_explicit(&page->words[r], memory_order_relaxed));

        if (book->hosts[r] == r)
            tti_book_hear_stamp(book, r,
                                (int64_t)atomic_load_explicit(&page->words[book->n_ranks + r], memory_order_relaxed));
        tti_book_hear_deed(book, r,
                           atomic_load_explicit(&page->words[2 * book->n_ranks + r], memory_order_relaxed));
        if (!is_near(book, r))
            tti_book_hear_said(book, r, said);
        else if (r != book->rank && tti_life_is_final(tti_said_life(said)) && tti_said_life(said) <= TTI_LIFE_LEFT)
            finish(book, r, said);
    }
}

static bool is_claim_from_afar(tti_life life)
{
    return life == TTI_LIFE_MUTE || life == TTI_LIFE_UNREACHABLE;
}

/* A rank of a host that speaks. */
static void judge_heard(tti_book *book, int rank, int64_t stamp_ms)
{
    const tti_said said = tti_book_said(book, rank);
    const tti_life life = tti_said_life(said);
    const int64_t  age_ms = stamp_ms - tti_said_stamp_ms(said);

    if (life == TTI_LIFE_WELL || tti_life_is_final(life))
        return;
    if (age_ms > (is_claim_from_afar(life) ? 1 : CLAIM_BEATS * book->heartbeat_ns / TTI_MS))
        put(book, rank, tti_said_of(stamp_ms, TTI_LIFE_WELL, 0), 0);
}

/* A rank of a host that has fallen silent. Who has seen that the host's kernel answers knows more than who has not. */
static void judge_unheard(tti_book *book, int rank, int64_t stamp_ms, int64_t quiet, bool answers)
{
    const tti_life before = tti_said_life(tti_book_said(book, rank));
    const tti_life life = answers ? TTI_LIFE_MUTE : TTI_LIFE_UNREACHABLE;

    if (before == TTI_LIFE_WELL || (before == TTI_LIFE_UNREACHABLE && answers))
        put(book, rank, tti_said_of(stamp_ms + (answers ? 1 : 0), life, (uint32_t)(quiet / TENTH_NS)), book->now_ns - quiet);
}

static int64_t host_quiet_ns(const tti_book *book, int host)
{
    return book->awake_ns - book->sights[host].spoke_ns;
}

bool tti_book_host_is_quiet(const tti_book *book, int host, int64_t ns)
{
    const int64_t quiet = host_quiet_ns(book, host);

    return quiet >= BEATS_TO_SILENCE * book->heartbeat_ns && quiet >= ns;
}

void tti_book_see_data(tti_book *book, int host, int64_t ago_ns)
{
    const int64_t at_ns = book->awake_ns - ago_ns;

    if (at_ns > book->sights[host].spoke_ns)
        book->sights[host].spoke_ns = at_ns;
}

void tti_book_judge_host(tti_book *book, int host, bool answers)
{
    const int64_t stamp_ms = tti_book_stamp_ms(book, host);
    int           r;

    if (is_near(book, host) || (stamp_ms == 0 && !book->is_complete)) /* it may be on its way, or have given up joining */
        return;
    for (r = host; r < book->n_ranks; r++) {
        if (book->hosts[r] != host)
            continue;
        if (tti_book_host_is_quiet(book, host, 0))
            judge_unheard(book, r, stamp_ms, host_quiet_ns(book, host), answers);
        else
            judge_heard(book, r, stamp_ms);
    }
}

/* ---- verdicts -------------------------------------------------------------------------------------- */

static bool counts_as_silence(tti_life life)
{
    return life != TTI_LIFE_WELL && life != TTI_LIFE_PAUSED && !tti_life_is_final(life);
}

/* How long those that go on wait for a silent one. */
int64_t tti_book_silence_ns(const tti_book *book)
{
    const int64_t beats_ns = BEATS_TO_GO_ON * book->heartbeat_ns;

    if (book->silent_ns > 0)
        return book->silent_ns;
    return beats_ns > TTI_SECOND ? beats_ns : TTI_SECOND;
}

void tti_book_lose_silent(tti_book *book)
{
    const int64_t most_ns = tti_book_silence_ns(book);
    int           r;

    for (r = 0; r < book->n_ranks; r++) {
        tti_sight *sight = &book->sights[r];
        const bool silent = counts_as_silence(tti_said_life(tti_book_said(book, r))) &&
                            book->awake_ns - sight->unwell_ns >= most_ns;

        if (silent != atomic_load_explicit(&sight->silent, memory_order_relaxed))
            atomic_store_explicit(&sight->silent, silent, memory_order_relaxed);
        if (!silent || book->silent_ns == 0 || atomic_load_explicit(&sight->lost, memory_order_relaxed))
            continue;
        atomic_store_explicit(&sight->lost, true, memory_order_relaxed);
        count_verdict(book);
    }
}

bool tti_book_is_silent(const tti_book *book, int rank)
{
    return counts_as_silence(tti_said_life(tti_book_said(book, rank))) &&
           atomic_load_explicit(&book->sights[rank].silent, memory_order_relaxed);
}

bool tti_book_is_lost(const tti_book *book, int rank)
{
    const tti_life life = tti_said_life(tti_book_said(book, rank));

    return life == TTI_LIFE_DEAD ||
           (counts_as_silence(life) && atomic_load_explicit(&book->sights[rank].lost, memory_order_relaxed));
}

int64_t tti_book_since(const tti_book *book, int rank)
{
    return atomic_load_explicit(&book->sights[rank].since_ns, memory_order_relaxed);
}

/* Whether all of those on other hosts that have not ended are out of reach. */
static bool hears_nobody(const tti_book *book)
{
    int r;

    for (r = 0; r < book->n_ranks; r++) {
        const tti_life life = tti_said_life(tti_book_said(book, r));

        if (!is_near(book, r) && life != TTI_LIFE_UNREACHABLE && !tti_life_is_final(life))
            return false;
    }
    return true;
}

tti_health_report tti_book_report(const tti_book *book, int rank)
{
    const tti_said said = tti_book_said(book, rank);
    const tti_life life = tti_said_life(said);

    return (tti_health_report){
        .life = life,
        .since_ns = life == TTI_LIFE_WELL ? 0 : tti_book_since(book, rank),
        .cause = tti_said_cause(said),
        .deed = life == TTI_LIFE_WELL ? 0 : tti_book_deed(book, rank),
        .nobody_heard = life == TTI_LIFE_UNREACHABLE && hears_nobody(book),
    };
}
