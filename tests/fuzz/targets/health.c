/* SPDX-License-Identifier: BSD-3-Clause
 *
 * health.c - what hosts tell each other of their ranks.
 *
 * How     A book of eight ranks on three hosts takes in digests out of the input, one behind the other, as from a stream; what is
 *         left is what a neighbour has written on its page.
 * Holds   A digest's size is known from its head and bounded by the world's; the book can be told on, and what is told on can be
 *         read by another book, which then tells the same. */
#include "fuzz/fuzz.h"

#include <tutti/private.h>
#include "transport/health/digest.h"

enum { RANKS = 8 };

static const int hosts[RANKS] = { 0, 0, 2, 2, 4, 4, 4, 2 };

static const char *whereabouts(void *context, int rank)
{
    (void)context;
    (void)rank;
    return "host 'x', pid 1";
}

static void changed(void *context, int rank, tti_life before)
{
    (void)context;
    TT_MUST(rank >= 0 && rank < RANKS && (unsigned)before <= TTI_LIFE_LEFT);
}

typedef struct witness {
    tti_health_page  *page;
    tti_health_member member;
    tti_book          book;
} witness;

static void begin(witness *w, int rank)
{
    tti_health_config config = { .port = tt_still_port(), .rank = rank, .n_ranks = RANKS, .hosts = hosts, .n_members = 1,
                                 .heartbeat_ms = 1000, .whereabouts = whereabouts };

    w->page = aligned_alloc(128, tti_health_page_bytes(RANKS));
    TT_MUST(w->page != NULL);
    memset(w->page, 0, tti_health_page_bytes(RANKS));
    w->member = (tti_health_member){ .rank = rank, .page = w->page, .life = TTI_NO_HANDLE };
    config.members = &w->member;
    TT_MUST(tti_book_init(&w->book, &config) == TUTTI_OK);
    w->book.changed = changed;
}

static void end(witness *w)
{
    tti_book_release(&w->book);
    free(w->page);
}

/* Whole digests at the front of what came; false: the stream is broken. */
static bool take(witness *w, tt_input *in)
{
    tti_digest_kind kind;
    int64_t         bytes;
    uint8_t        *copy;
    bool            sound;

    bytes = tti_digest_size(&w->book, in->at, in->left);
    if (bytes <= 0)
        return false;
    TT_MUST((size_t)bytes <= tti_digest_bytes_max(RANKS));
    if ((size_t)bytes > in->left)
        return false;
    copy = tt_copy(in->at, (size_t)bytes);
    sound = tti_digest_read(&w->book, copy, (size_t)bytes, &kind);
    free(copy);
    (void)tt_take_part(in, (size_t)bytes);
    TT_MUST(!sound || (kind >= TTI_DIGEST_BEAT && kind <= TTI_DIGEST_HANG_UP));
    return sound;
}

/* What another rank of this host has written into memory that is shared. */
static void merge(witness *w, tt_input *in)
{
    const size_t     bytes = tti_health_page_bytes(RANKS);
    tti_health_page *page = aligned_alloc(128, bytes);
    int              i;

    TT_MUST(page != NULL);
    memset(page, 0, bytes);
    for (i = 0; i < 3 * RANKS; i++)
        page->words[i] = tt_take(in, 8);
    tti_book_merge_page(&w->book, page);
    free(page);
}

/* Whatever is believed has words. */
static void look(witness *w)
{
    char text[TTI_HEALTH_TEXT_MAX];
    int  r;

    for (r = 0; r < RANKS; r++) {
        const tti_health_report report = tti_book_report(&w->book, r);

        TT_MUST((unsigned)report.life <= TTI_LIFE_LEFT);
        TT_MUST(strlen(tti_report_words(NULL, &report, 2 * TTI_SECOND, text)) < sizeof text);
        (void)tti_book_is_lost(&w->book, r);
    }
}

static void tell_on(witness *from)
{
    uint8_t        *first = malloc(tti_digest_bytes_max(RANKS)), *second = malloc(tti_digest_bytes_max(RANKS));
    tti_digest_kind kind;
    witness         to;
    size_t          n;

    TT_MUST(first != NULL && second != NULL);
    n = tti_digest_write(&from->book, TTI_DIGEST_BEAT, first);
    TT_MUST(n <= tti_digest_bytes_max(RANKS) && tti_digest_size(&from->book, first, n) == (int64_t)n);
    begin(&to, 0);
    TT_MUST(tti_digest_read(&to.book, first, n, &kind) && kind == TTI_DIGEST_BEAT);
    TT_MUST(tti_digest_write(&to.book, TTI_DIGEST_BEAT, second) == n && memcmp(first, second, n) == 0);
    end(&to);
    free(first);
    free(second);
}

/* How often signs of life are given, and for how long they may be missing, as variables say: the last bytes of the input. */
static void read_variables(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "TUTTI_SILENT_MS", "TUTTI_HEARTBEAT_MS" };
    const char *name = names[size % 2];
    char       *text = tt_text(data + size - (size < 8 ? size : 8), size < 8 ? size : 8);
    int64_t     heartbeat_ms = 0, silent_ms = -1;

    tt_set_env(name, text);
    if (tti_health_read_env(&heartbeat_ms, &silent_ms) == TUTTI_OK)
        TT_MUST(heartbeat_ms >= 10 && silent_ms >= 0);
    else
        TT_MUST(strstr(tutti_last_error(), name) != NULL);
    tt_set_env(name, NULL);
    free(text);
}

/* Who hangs up says so, and that is all. */
static void hang_up(witness *w)
{
    uint8_t         said[TTI_DIGEST_HEAD_BYTES];
    tti_digest_kind kind;

    tti_digest_hang_up(said);
    TT_MUST(tti_digest_size(&w->book, said, sizeof said) == sizeof said);
    TT_MUST(tti_digest_read(&w->book, said, sizeof said, &kind) && kind == TTI_DIGEST_HANG_UP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_input in = tt_input_of(data, size);
    int64_t  now_ns = TTI_SECOND;
    witness  w;
    int      host;

    begin(&w, 0);
    tti_book_tick(&w.book, now_ns);
    while (take(&w, &in)) {
        tti_book_tick(&w.book, now_ns += 700 * TTI_MS);
        for (host = 0; host < RANKS; host++)
            tti_book_judge_host(&w.book, hosts[host], (in.left & 1) != 0);
        look(&w);
    }
    look(&w);
    tell_on(&w);
    hang_up(&w);
    merge(&w, &in);
    look(&w);
    end(&w);
    read_variables(data, size);
    return 0;
}
