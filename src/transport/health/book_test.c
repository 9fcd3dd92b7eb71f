/* SPDX-License-Identifier: BSD-3-Clause
 *
 * book_test.c
 * Goal    silent, stopped, unreachable and dead are told apart, at the right moment, and nobody is accused by one who was
 *         not awake himself; what goes from host to host can come in any order, and twice.
 * Method  books of several ranks without a thread or a clock: beats, stamps and time are handed to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "transport/health/digest.h"
#include "transport/health/names.h"
#include "watch/control.h"

enum { RANKS = 4, BEAT_MS = 1000, TICK_MS = 100 };

#define START_NS (50 * TTI_SECOND)

/* Ranks 0 and 1 are on host 0, 2 and 3 on host 2. */
static const int hosts[RANKS] = { 0, 0, 2, 2 };

typedef struct rank_book {
    tti_book         book;
    tti_health_page *page;
    int              changes;
} rank_book;

static int64_t clock_ns; /* of a test: it runs one at a time */

static int64_t now_of(tti_port *port)
{
    (void)port;
    return clock_ns;
}

static const tti_port_ops clock_ops = { .name = "clock", .now_ns = now_of };
static tti_port           clock_port = { .ops = &clock_ops };

static void count_change(void *context, int rank, tti_life before)
{
    (void)rank, (void)before;
    ++*(int *)context;
}

static void open_book(rank_book *b, int rank, int64_t silent_ms)
{
    const size_t            bytes = tti_health_page_bytes(RANKS);
    tti_health_member       own = { .rank = rank };
    const tti_health_config config = { .port = &clock_port, .rank = rank, .n_ranks = RANKS, .hosts = hosts, .members = &own,
                                       .n_members = 1, .heartbeat_ms = BEAT_MS, .silent_ms = silent_ms };

    clock_ns = START_NS;
    b->changes = 0;
    b->page = own.page = aligned_alloc(128, bytes);
    assert_non_null(b->page);
    memset(b->page, 0, bytes);
    assert_int_equal(tti_book_init(&b->book, &config), TUTTI_OK);
    b->book.changed = count_change;
    b->book.context = &b->changes;
}

static void close_book(rank_book *b)
{
    tti_book_release(&b->book);
    free(b->page);
}

static tti_life life_of(const rank_book *b, int rank)
{
    return tti_book_report(&b->book, rank).life;
}

/* Let ms pass on rank 0 or 1, whose neighbour's beat moves, or not; the kernel calls it that. */
static void pass(rank_book *b, int ms, bool moves, char state)
{
    const int neighbour = b->book.rank ^ 1;
    int       at;

    for (at = 0; at < ms; at += TICK_MS) {
        clock_ns += TICK_MS * TTI_MS;
        tti_book_tick(&b->book, clock_ns);
        if (moves)
            tti_book_see_beat(&b->book, neighbour, (uint64_t)clock_ns);
        tti_book_judge(&b->book, neighbour, state);
        tti_book_lose_silent(&b->book);
    }
}

static void silent_after_three_beats_and_heard_again(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 0, 0);
    pass(&b, 5 * BEAT_MS, true, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_WELL);
    pass(&b, 3 * BEAT_MS - TICK_MS, false, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_WELL);
    pass(&b, TICK_MS, false, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_SILENT);
    assert_true(tti_book_report(&b.book, 1).since_ns == START_NS + 5 * BEAT_MS * TTI_MS);
    pass(&b, 60 * BEAT_MS, false, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_SILENT);
    assert_true(tti_book_report(&b.book, 1).since_ns == START_NS + 5 * BEAT_MS * TTI_MS);
    assert_false(tti_book_is_lost(&b.book, 1)); /* nobody said when silence is too long */
    assert_int_equal(b.changes, 1);
    pass(&b, TICK_MS, true, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_WELL);
    assert_int_equal(b.changes, 2);
    close_book(&b);
}

static void the_kernel_says_why(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 1, 0);
    pass(&b, 4 * BEAT_MS, false, 'T');
    assert_int_equal(life_of(&b, 0), TTI_LIFE_STOPPED);
    pass(&b, BEAT_MS, false, 't');
    assert_int_equal(life_of(&b, 0), TTI_LIFE_PAUSED);
    pass(&b, 4 * BEAT_MS, false, 0);
    assert_int_equal(life_of(&b, 0), TTI_LIFE_SILENT);
    close_book(&b);
}

/* It runs again, and has a core a little later: by the time it was held that is no silence. */
static void who_goes_on_is_waited_for(void **state)
{
    static const char     states[] = { 'T', 't' };
    static const tti_life lives[] = { TTI_LIFE_STOPPED, TTI_LIFE_PAUSED };
    rank_book             b;
    int                   i;

    (void)state;
    for (i = 0; i < 2; i++) {
        open_book(&b, 1, 0);
        pass(&b, 10 * BEAT_MS, false, states[i]);
        assert_int_equal(life_of(&b, 0), lives[i]);
        pass(&b, 3 * BEAT_MS - TICK_MS, false, 'S');
        assert_int_equal(life_of(&b, 0), lives[i]);
        pass(&b, TICK_MS, true, 'S');
        assert_int_equal(life_of(&b, 0), TTI_LIFE_WELL);
        assert_int_equal(b.changes, 2);
        pass(&b, 10 * BEAT_MS, false, states[i]);
        pass(&b, 3 * BEAT_MS, false, 'S'); /* by then it hangs */
        assert_int_equal(life_of(&b, 0), TTI_LIFE_SILENT);
        close_book(&b);
    }
}

static void who_was_not_awake_accuses_nobody(void **state)
{
    rank_book b;
    int       i;

    (void)state;
    open_book(&b, 0, 0);
    pass(&b, BEAT_MS, true, 'S');
    for (i = 0; i < 10; i++) { /* a wake-up each 20 s, and the neighbour does no better */
        clock_ns += 20 * TTI_SECOND;
        tti_book_tick(&b.book, clock_ns);
        tti_book_judge(&b.book, 1, 'R');
    }
    assert_int_equal(life_of(&b, 1), TTI_LIFE_WELL);
    close_book(&b);
}

static void who_was_not_awake_gives_nobody_up(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 0, 10 * BEAT_MS);
    pass(&b, 5 * BEAT_MS, false, 'T');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_STOPPED);
    clock_ns += 60 * TTI_SECOND; /* the whole job stands still */
    pass(&b, BEAT_MS, false, 'T');
    assert_false(tti_book_is_lost(&b.book, 1));
    pass(&b, 5 * BEAT_MS, false, 'T');
    assert_true(tti_book_is_lost(&b.book, 1));
    close_book(&b);
}

static void too_long_a_silence_is_a_loss(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 0, 10 * BEAT_MS);
    pass(&b, 9 * BEAT_MS, false, 'T');
    assert_false(tti_book_is_lost(&b.book, 1));
    assert_int_equal(atomic_load(&b.book.verdicts), 0);
    pass(&b, 2 * BEAT_MS, false, 'T');
    assert_true(tti_book_is_lost(&b.book, 1));
    assert_int_equal(atomic_load(&b.book.verdicts), 1);
    pass(&b, TICK_MS, true, 'S');
    assert_false(tti_book_is_lost(&b.book, 1));
    pass(&b, 60 * BEAT_MS, false, 't'); /* a debugger has all the time in the world */
    assert_false(tti_book_is_lost(&b.book, 1));
    close_book(&b);
}

static void who_is_silent_for_four_beats_is_gone_on_without(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 0, 0);
    pass(&b, 4 * BEAT_MS - TICK_MS, false, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_SILENT);
    assert_false(tti_book_is_silent(&b.book, 1));
    pass(&b, TICK_MS, false, 'S');
    assert_true(tti_book_is_silent(&b.book, 1));
    assert_false(tti_book_is_lost(&b.book, 1));
    pass(&b, TICK_MS, false, 't');
    assert_false(tti_book_is_silent(&b.book, 1)); /* a debugger has it */
    pass(&b, TICK_MS, false, 'T');
    assert_true(tti_book_is_silent(&b.book, 1));
    pass(&b, TICK_MS, true, 'S');
    assert_false(tti_book_is_silent(&b.book, 1));
    pass(&b, 3 * BEAT_MS, false, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_SILENT);
    assert_false(tti_book_is_silent(&b.book, 1)); /* the silence before is over */
    close_book(&b);
}

/* The whole host had no core, or this rank alone, while the other ran again: its own clock says that the silence was long. */
static void who_was_not_awake_goes_on_without_no_one(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 0, 0);
    pass(&b, 3 * BEAT_MS, false, 'S');
    assert_int_equal(life_of(&b, 1), TTI_LIFE_SILENT);
    clock_ns += 60 * TTI_SECOND;
    assert_false(tti_book_is_silent(&b.book, 1)); /* as somebody asks before the watch thread has woken up */
    pass(&b, TICK_MS, false, 'S');
    assert_false(tti_book_is_silent(&b.book, 1));
    pass(&b, TICK_MS, true, 'S');
    assert_false(tti_book_is_silent(&b.book, 1));
    close_book(&b);
}

static void the_lowest_whose_beat_moves_speaks(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 1, 0);
    pass(&b, BEAT_MS, true, 'S');
    assert_int_equal(tti_book_speaker(&b.book), 0);
    pass(&b, 2 * BEAT_MS, false, 'S'); /* before it is called silent, so that others hear of this host in time */
    assert_int_equal(life_of(&b, 0), TTI_LIFE_WELL);
    assert_int_equal(tti_book_speaker(&b.book), 1);
    pass(&b, TICK_MS, true, 'S');
    assert_int_equal(tti_book_speaker(&b.book), 0);
    tti_book_has_died(&b.book, 0, (tti_end_cause){ TTI_CAUSE_SIGNAL, 9 });
    assert_int_equal(tti_book_speaker(&b.book), 1);
    close_book(&b);
}

/* ---- words ---- */

static void joining_does_not_care_for_order(void **state)
{
    const tti_said words[] = {
        0, tti_said_of(10, TTI_LIFE_WELL, 0), tti_said_of(10, TTI_LIFE_STOPPED, 7), tti_said_of(12, TTI_LIFE_WELL, 0),
        tti_said_of(11, TTI_LIFE_MUTE, 30), tti_said_of(5, TTI_LIFE_DEAD, 0), tti_said_of(3, TTI_LIFE_DEAD, 3 << 16 | 9),
        tti_said_of(1, TTI_LIFE_LEFT, 0), tti_said_of(99, TTI_LIFE_SILENT, 1),
    };
    enum { N = sizeof words / sizeof words[0] };
    int a, b, c;

    (void)state;
    for (a = 0; a < N; a++)
        for (b = 0; b < N; b++) {
            const tti_said both = tti_said_join(words[a], words[b]);

            assert_true(both == words[a] || both == words[b]);
            assert_true(both == tti_said_join(words[b], words[a]));
            assert_true(tti_said_join(words[a], words[a]) == words[a]);
            assert_true(!tti_life_is_final(tti_said_life(words[a])) || tti_life_is_final(tti_said_life(both)));
            for (c = 0; c < N; c++)
                assert_true(tti_said_join(both, words[c]) == tti_said_join(words[a], tti_said_join(words[b], words[c])));
        }
}

static void an_end_stays_and_the_better_word_of_it(void **state)
{
    rank_book b;

    (void)state;
    open_book(&b, 0, 0);
    tti_book_has_died(&b.book, 2, (tti_end_cause){ .kind = TTI_CAUSE_STREAM });
    assert_int_equal(atomic_load(&b.book.verdicts), 1);
    tti_book_hear_said(&b.book, 2, tti_said_of(1, TTI_LIFE_DEAD, TTI_CAUSE_SIGNAL << 16 | 9));
    assert_int_equal(tti_book_report(&b.book, 2).cause.kind, TTI_CAUSE_SIGNAL);
    assert_int_equal(tti_book_report(&b.book, 2).cause.value, 9);
    tti_book_hear_said(&b.book, 2, tti_said_of(INT32_MAX, TTI_LIFE_WELL, 0));
    assert_int_equal(life_of(&b, 2), TTI_LIFE_DEAD);
    assert_int_equal(atomic_load(&b.book.verdicts), 1);
    tti_book_hear_said(&b.book, 2, tti_said_of(1, TTI_LIFE_LEFT, 0)); /* it had said goodbye to somebody */
    assert_int_equal(life_of(&b, 2), TTI_LIFE_LEFT);
    assert_false(tti_book_is_lost(&b.book, 2));
    tti_book_hear_said(&b.book, 1, tti_said_of(1, TTI_LIFE_DEAD, 0)); /* nobody knows that better from afar */
    assert_int_equal(life_of(&b, 1), TTI_LIFE_WELL);
    close_book(&b);
}

/* ---- two hosts ---- */

static void tell(rank_book *from, rank_book *to)
{
    uint8_t         bytes[TTI_DIGEST_HEAD_BYTES + 3 * RANKS * TTI_DIGEST_RECORD_BYTES];
    tti_digest_kind kind = TTI_DIGEST_GOODBYE;
    size_t          size;

    tti_book_speak(&from->book);
    size = tti_digest_write(&from->book, TTI_DIGEST_BEAT, bytes);
    assert_true(size <= tti_digest_bytes_max(RANKS));
    assert_int_equal(tti_digest_size(&to->book, bytes, size), (int64_t)size);
    assert_true(tti_digest_read(&to->book, bytes, size, &kind));
    assert_int_equal(kind, TTI_DIGEST_BEAT);
}

static void what_a_host_knows_is_known_elsewhere(void **state)
{
    rank_book near, far;

    (void)state;
    open_book(&near, 0, 0);
    open_book(&far, 2, 0);
    pass(&near, 4 * BEAT_MS, false, 'T');
    tti_book_has_died(&near.book, 3, (tti_end_cause){ TTI_CAUSE_EXIT, 3 }); /* of another host, and it is told, too */
    tell(&near, &far);
    assert_int_equal(life_of(&far, 1), TTI_LIFE_STOPPED);
    assert_int_equal(life_of(&far, 0), TTI_LIFE_WELL);
    assert_int_equal(life_of(&far, 3), TTI_LIFE_WELL); /* it is there to see for itself */
    pass(&near, TICK_MS, true, 'S');
    tell(&near, &far);
    assert_int_equal(life_of(&far, 1), TTI_LIFE_WELL);
    tti_book_has_left(&near.book, 1);
    tell(&near, &far);
    assert_int_equal(life_of(&far, 1), TTI_LIFE_LEFT);
    close_book(&near);
    close_book(&far);
}

/* Rank 2 says that it leaves, rank 3 of its host nothing, at first. What rank 0's clock shows does not count. */
static void who_is_behind_has_not_spoken_since(void **state)
{
    rank_book far, leaver, stayer;

    (void)state;
    open_book(&far, 0, 0);
    open_book(&leaver, 2, 0);
    open_book(&stayer, 3, 0);
    tell(&stayer, &far);
    assert_false(tti_book_is_behind(&far.book, 3));
    pass(&leaver, BEAT_MS, true, 'S');
    tti_book_has_left(&leaver.book, 2);
    tell(&leaver, &far);
    pass(&far, 20 * BEAT_MS, true, 'S');
    tti_book_has_left(&far.book, 2);
    assert_true(tti_book_is_behind(&far.book, 3));
    assert_false(tti_book_is_behind(&far.book, 1));
    tti_book_tick(&stayer.book, START_NS + 3 * BEAT_MS * TTI_MS);
    tell(&stayer, &far);
    assert_false(tti_book_is_behind(&far.book, 3));
    close_book(&far);
    close_book(&leaver);
    close_book(&stayer);
}

static void pages_of_one_host_are_joined(void **state)
{
    rank_book speaker, other, far;

    (void)state;
    open_book(&far, 2, 0);
    open_book(&speaker, 0, 0);
    open_book(&other, 1, 0);
    tti_book_has_died(&far.book, 3, (tti_end_cause){ TTI_CAUSE_SIGNAL, 11 });
    tell(&far, &speaker);
    tti_book_merge_page(&other.book, speaker.page);
    assert_int_equal(life_of(&other, 3), TTI_LIFE_DEAD);
    assert_int_equal(tti_book_report(&other.book, 3).cause.value, 11);
    assert_true(tti_book_stamp_ms(&other.book, 2) == tti_book_stamp_ms(&speaker.book, 2));
    tti_book_has_left(&speaker.book, 0);
    tti_book_merge_page(&other.book, speaker.page);
    assert_int_equal(life_of(&other, 0), TTI_LIFE_LEFT);
    close_book(&speaker);
    close_book(&other);
    close_book(&far);
}

static void pass_afar(rank_book *b, int ms, bool answers)
{
    int at;

    for (at = 0; at < ms; at += TICK_MS) {
        clock_ns += TICK_MS * TTI_MS;
        tti_book_tick(&b->book, clock_ns);
        tti_book_judge_host(&b->book, 0, answers);
        tti_book_judge_host(&b->book, 2, answers);
    }
}

static void a_host_that_speaks_no_more_is_unreachable(void **state)
{
    tti_health_report report;
    char              words[TTI_HEALTH_TEXT_MAX];
    rank_book         near, far;

    (void)state;
    open_book(&near, 0, 0);
    open_book(&far, 2, 0);
    pass_afar(&near, 10 * BEAT_MS, false);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_WELL); /* nobody ever heard of it: it may be on its way */
    tti_book_complete(&near.book);
    pass_afar(&near, 3 * BEAT_MS - TICK_MS, false);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_WELL);
    pass_afar(&near, TICK_MS, false);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_UNREACHABLE); /* no more */
    tti_book_tick(&far.book, clock_ns);
    tell(&far, &near);
    pass_afar(&near, TICK_MS, false);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_WELL);
    pass_afar(&near, 3 * BEAT_MS - 2 * TICK_MS, false);
    assert_int_equal(life_of(&near, 2), TTI_LIFE_WELL);
    pass_afar(&near, TICK_MS, false);
    assert_int_equal(life_of(&near, 2), TTI_LIFE_UNREACHABLE);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_UNREACHABLE);
    report = tti_book_report(&near.book, 3);
    assert_non_null(strstr(tti_health_words(&report, clock_ns, words), "it may be this one that is cut off"));
    pass_afar(&near, TICK_MS, true); /* its kernel answers, after all */
    assert_int_equal(life_of(&near, 3), TTI_LIFE_MUTE);
    report = tti_book_report(&near.book, 3);
    assert_false(report.nobody_heard);
    tti_book_tick(&far.book, clock_ns);
    tell(&far, &near);
    pass_afar(&near, TICK_MS, true);
    assert_int_equal(life_of(&near, 2), TTI_LIFE_WELL);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_WELL);
    close_book(&near);
    close_book(&far);
}

/* Its words wait behind its data, where the way is slow. */
static void data_is_a_sign_of_life(void **state)
{
    rank_book near, far;
    int       i;

    (void)state;
    open_book(&near, 0, 0);
    open_book(&far, 2, 0);
    tti_book_complete(&near.book);
    tti_book_tick(&far.book, clock_ns);
    tell(&far, &near);
    for (i = 0; i < 10; i++) {
        pass_afar(&near, BEAT_MS, true);
        tti_book_see_data(&near.book, 2, BEAT_MS / 2 * TTI_MS);
        assert_int_equal(life_of(&near, 3), TTI_LIFE_WELL);
    }
    tti_book_see_data(&near.book, 2, 100 * BEAT_MS * TTI_MS); /* what is older says nothing */
    pass_afar(&near, 3 * BEAT_MS - BEAT_MS / 2 - TICK_MS, true);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_WELL);
    pass_afar(&near, TICK_MS, true);
    assert_int_equal(life_of(&near, 3), TTI_LIFE_MUTE); /* no more */
    close_book(&near);
    close_book(&far);
}

static void a_claim_that_nobody_renews_is_void(void **state)
{
    rank_book near, far;
    int       i;

    (void)state;
    open_book(&near, 0, 0);
    open_book(&far, 2, 0);
    pass(&near, 4 * BEAT_MS, false, 'T');
    tell(&near, &far);
    assert_int_equal(life_of(&far, 1), TTI_LIFE_STOPPED);
    for (i = 0; i < 6; i++) { /* rank 0 speaks, but has lost its memory of rank 1 */
        atomic_store(&near.page->words[1], 0);
        clock_ns += BEAT_MS * TTI_MS;
        tti_book_tick(&near.book, clock_ns);
        tti_book_tick(&far.book, clock_ns);
        tell(&near, &far);
        tti_book_judge_host(&far.book, 0, true);
    }
    assert_int_equal(life_of(&far, 1), TTI_LIFE_WELL);
    close_book(&near);
    close_book(&far);
}

/* ---- nonsense ---- */

static void nonsense_is_no_digest(void **state)
{
    uint8_t         bytes[TTI_DIGEST_HEAD_BYTES + 4 * TTI_DIGEST_RECORD_BYTES];
    tti_digest_kind kind;
    rank_book       b;
    size_t          size, i;
    int             seen = 0;

    (void)state;
    open_book(&b, 0, 0);
    tti_book_has_died(&b.book, 2, (tti_end_cause){ .kind = TTI_CAUSE_UNKNOWN });
    tti_book_tick(&b.book, clock_ns);
    tti_book_speak(&b.book);
    size = tti_digest_write(&b.book, TTI_DIGEST_BEAT, bytes);
    assert_int_equal(size, TTI_DIGEST_HEAD_BYTES + 2 * TTI_DIGEST_RECORD_BYTES);
    assert_int_equal(tti_digest_size(&b.book, bytes, TTI_DIGEST_HEAD_BYTES - 1), 0);
    for (i = 0; i < TTI_DIGEST_HEAD_BYTES; i++) { /* every byte of the head is looked at */
        bytes[i] ^= 0x80;
        seen += tti_digest_size(&b.book, bytes, size) != (int64_t)size;
        bytes[i] ^= 0x80;
    }
    assert_int_equal(seen, TTI_DIGEST_HEAD_BYTES);
    bytes[TTI_DIGEST_HEAD_BYTES] = RANKS; /* a rank that is none */
    assert_false(tti_digest_read(&b.book, bytes, size, &kind));
    bytes[TTI_DIGEST_HEAD_BYTES] = 0;
    bytes[size - 8 + 2] |= 0xf0; /* a life that is none is not believed */
    bytes[size - TTI_DIGEST_RECORD_BYTES] = 3;
    assert_true(tti_digest_read(&b.book, bytes, size, &kind));
    assert_int_equal(life_of(&b, 3), TTI_LIFE_WELL);
    close_book(&b);
}

static void words_tell_what_is_known(void **state)
{
    const tti_health_report dead = { .life = TTI_LIFE_DEAD, .since_ns = 1, .cause = { TTI_CAUSE_SIGNAL, 9 } };
    const tti_health_report stopped = { .life = TTI_LIFE_STOPPED, .since_ns = TTI_SECOND };
    const tti_health_report well = { .life = TTI_LIFE_WELL };
    const tti_health_report closed = { .life = TTI_LIFE_DEAD, .since_ns = 1, .cause = { TTI_CAUSE_STREAM, TTI_STREAM_REFUSED } };
    const tti_health_report reset = { .life = TTI_LIFE_DEAD, .since_ns = 1, .cause = { TTI_CAUSE_STREAM, TTI_STREAM_TURNED_AWAY } };
    tti_health_report       did = stopped;
    char                    text[TTI_HEALTH_TEXT_MAX];

    (void)state;
    assert_string_equal(tti_health_words(&dead, 2, text), "is gone: its process has ended (signal 9 (Killed))");
    assert_string_equal(tti_health_words(&stopped, 4 * TTI_SECOND, text),
                        "has been stopped by a signal for 3.0 s; kill -CONT lets it go on");
    assert_string_equal(tti_health_words(&closed, 2, text),
                        "is gone: its process has ended (nobody listens where it did, cause unknown)");
    assert_string_equal(tti_health_words(&reset, 2, text), "is gone: its process has ended, or a firewall there resets what comes "
                                                           "(nobody listens where it did, cause unknown)");
    assert_string_equal(tti_health_words(&well, 4 * TTI_SECOND, text), "");
    did.deed = tti_deed_of(TUTTI_CALL_ALL_REDUCE, 0x80000007, 12);
    assert_non_null(strstr(tti_report_words(NULL, &did, 4 * TTI_SECOND, text), "; it last entered all_reduce #12 of a group that is not here"));
    did.deed = tti_deed_of(TTI_DEED_GROW_GROUP, 1, 0);
    assert_non_null(strstr(tti_report_words(NULL, &did, 0, text), "; it last entered grow_group of a group that is not here"));
    did.deed = tti_deed_of(TTI_DEED_SEND, 1, 1 + 65535);
    assert_non_null(strstr(tti_report_words(NULL, &did, 4 * TTI_SECOND, text), "; it last began to send to rank 65535, in a group"));
    did.deed = tti_deed_of(TTI_DEED_RECV, 1, 0);
    assert_non_null(strstr(tti_report_words(NULL, &did, 4 * TTI_SECOND, text), "; it last began to receive from any rank, in a group"));
    assert_int_equal(tti_said_cause(tti_said_of(1, TTI_LIFE_DEAD, 0xf0000)).kind, TTI_CAUSE_UNKNOWN); /* no cause there is */
}

/* Every process of the host can write to every page, this rank's own included. */
static void impossible_words_count_as_none(void **state)
{
    char      text[TTI_HEALTH_TEXT_MAX];
    rank_book b, other;
    int       life;

    (void)state;
    open_book(&b, 0, 0);
    open_book(&other, 1, 0);
    for (life = TTI_LIFE_LEFT + 1; life < 16; life++) {
        const tti_said nonsense = UINT64_MAX << 24 | (uint64_t)life << 20 | 0xfffff;
        tti_health_report report;

        atomic_store(&b.page->words[1], nonsense);
        atomic_store(&other.page->words[1], nonsense);
        atomic_store(&other.page->words[3], nonsense);
        tti_book_merge_page(&b.book, other.page);
        report = tti_book_report(&b.book, 1);
        assert_int_equal(report.life, TTI_LIFE_WELL);
        assert_string_equal(tti_report_words(NULL, &report, clock_ns, text), "");
        assert_int_equal(tti_book_report(&b.book, 3).life, TTI_LIFE_WELL);
    }
    assert_int_equal(b.changes, 0);
    close_book(&other);
    close_book(&b);
}

/* Groups of one name, of one short number, and those that are gone. */
static void groups_have_names(void **state)
{
    const unsigned local = tti_deed_group(UINT32_C(0x80000001));
    tti_deed_names names;
    char           text[4];

    (void)state;
    tti_deed_names_init(&names);
    tti_deed_names_add(&names, 1, "one");
    tti_deed_names_add(&names, UINT32_C(0x80000001), "local");
    assert_int_not_equal(local, tti_deed_group(1));
    assert_true(tti_deed_names_find(&names, local, text, sizeof text));
    assert_string_equal(text, "loc");
    tti_deed_names_add(&names, 1 + 0x8000, "new");
    assert_true(tti_deed_names_find(&names, tti_deed_group(1), text, sizeof text));
    assert_string_equal(text, "new");
    tti_deed_names_remove(&names, 1 + 0x8000);
    assert_true(tti_deed_names_find(&names, tti_deed_group(1), text, sizeof text));
    assert_string_equal(text, "one");
    tti_deed_names_remove(&names, 1);
    tti_deed_names_remove(&names, 1);
    assert_false(tti_deed_names_find(&names, tti_deed_group(1), text, sizeof text));
    tti_deed_names_release(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_after_three_beats_and_heard_again),
        cmocka_unit_test(who_is_silent_for_four_beats_is_gone_on_without),
        cmocka_unit_test(who_was_not_awake_goes_on_without_no_one),
        cmocka_unit_test(the_kernel_says_why),
        cmocka_unit_test(who_goes_on_is_waited_for),
        cmocka_unit_test(who_was_not_awake_accuses_nobody),
        cmocka_unit_test(who_was_not_awake_gives_nobody_up),
        cmocka_unit_test(too_long_a_silence_is_a_loss),
        cmocka_unit_test(the_lowest_whose_beat_moves_speaks),
        cmocka_unit_test(joining_does_not_care_for_order),
        cmocka_unit_test(an_end_stays_and_the_better_word_of_it),
        cmocka_unit_test(what_a_host_knows_is_known_elsewhere),
        cmocka_unit_test(who_is_behind_has_not_spoken_since),
        cmocka_unit_test(pages_of_one_host_are_joined),
        cmocka_unit_test(a_host_that_speaks_no_more_is_unreachable),
        cmocka_unit_test(data_is_a_sign_of_life),
        cmocka_unit_test(a_claim_that_nobody_renews_is_void),
        cmocka_unit_test(nonsense_is_no_digest),
        cmocka_unit_test(words_tell_what_is_known), cmocka_unit_test(groups_have_names),
        cmocka_unit_test(impossible_words_count_as_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
