/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watchdog.c - the thread that looks for calls that are late, and errors that come by themselves.
 *
 * Why     A program whose streams wait looks at nothing. NCCL's kernels wait for other ranks for ever, and tell nobody for whom.
 * How     One thread for each group. While calls or messages are under way it looks every TICK_NS: which have ended, whether NCCL
 *         has an error to tell, whether a deadline has passed. It sleeps for good while there is nothing.
 *         Which call a member has begun last it puts into the store when it has begun no other for REPORT_NS: a job that goes on
 *         says nothing, and one that hangs says so once.
 *         When a call is late, what the members have put there says who has not come, once REPORT_NS has passed again, in which
 *         all have had time to say where they are. A call that ends meanwhile has ended well.
 *         A group that fails here says so in the store, with its words. Who has waited for HEED_NS looks there as often, and
 *         ends with the same words, long before its own deadline.
 * True    The store is asked without the lock. It stays until destroy, which waits for this thread first. Whatever is the matter
 *         with it, one question takes no longer than ASK_NS, and after one without an answer none is asked for as long: deadlines
 *         are met, and destroy ends, by that much later. */
#include "nccl_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 32, NAMED_MOST = 8 };

static const int64_t MS = 1000000;
static const int64_t TICK_NS = 20 * 1000000, SOON_NS = 1000000, REPORT_NS = 500 * 1000000, HEED_NS = 1000 * 1000000;
static const int64_t ASK_NS = 1000 * 1000000; /* long enough to connect again, on a machine that has too much to do */

static const char ended_key[] = "nccl/ended";

typedef struct watch {
    tnccl_backend *b;
    uint64_t       seen_seq, reported_seq; /* of calls that were begun */
    int64_t        seen_ns;                /* when seen_seq was new */
    int64_t        next_heed_ns;
} watch;

/* ---- asking the store ---- */

/* After a question; it had an answer. */
static bool had_answer(tnccl_backend *b, bool answered)
{
    b->store_rests_ns = answered ? 0 : tnccl_host->now_ns() + ASK_NS;
    return answered;
}

static bool rests(const tnccl_backend *b)
{
    return b->store_rests_ns != 0 && tnccl_host->now_ns() < b->store_rests_ns;
}

bool tnccl_store_put(tnccl_backend *b, const char *key, const void *data, size_t bytes)
{
    return !rests(b) &&
           had_answer(b, tnccl_host->store_set_until(b->store, key, data, bytes, tnccl_host->now_ns() + ASK_NS) == TUTTI_OK);
}

tutti_status tnccl_store_look(tnccl_backend *b, const char *key, tutti_bytes *found_out)
{
    bool there = false;

    if (rests(b) ||
        !had_answer(b, tnccl_host->store_check_until(b->store, &key, 1, tnccl_host->now_ns() + ASK_NS, &there) == TUTTI_OK))
        return TUTTI_E_NETWORK;
    if (!there)
        return TUTTI_E_TIMEOUT;
    return had_answer(b, tnccl_host->store_get(b->store, key, ASK_NS / MS, found_out) == TUTTI_OK) ? TUTTI_OK : TUTTI_E_NETWORK;
}

/* ---- what members tell each other ---- */

static void at_key(int member, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "nccl/at/%d", member);
}

/* Lock held, also on return, and released in between. True: there is more to report later. */
static bool report(watch *w, int64_t now)
{
    tnccl_backend *b = w->b;
    char           text[TNCCL_WHAT + 24], key[KEY_BYTES];
    const uint64_t seq = b->begun_seq;
    bool           put;

    if (seq == w->reported_seq)
        return false;
    if (seq != w->seen_seq) {
        w->seen_seq = seq;
        w->seen_ns = now;
    }
    if (now - w->seen_ns < REPORT_NS)
        return true;
    snprintf(text, sizeof text, "%llu %s", (unsigned long long)seq, b->begun);
    at_key(b->rank, key);
    pthread_mutex_unlock(&b->lock);
    put = tnccl_store_put(b, key, text, strlen(text) + 1); /* until it is there others do not know, and say that */
    pthread_mutex_lock(&b->lock);
    if (put)
        w->reported_seq = seq;
    return b->begun_seq != w->reported_seq;
}

/* Without the lock: what member has begun last, "": nothing that is known. False: the store does not answer. */
static bool ask_where(tnccl_backend *b, int member, uint64_t *seq_out, char what[TNCCL_WHAT])
{
    tutti_bytes  said = { 0 };
    uint64_t     seq = 0;
    char         key[KEY_BYTES], *rest = NULL;
    tutti_status st;

    what[0] = '\0';
    *seq_out = 0;
    at_key(member, key);
    st = tnccl_store_look(b, key, &said);
    if (st != TUTTI_OK)
        return st == TUTTI_E_TIMEOUT;
    if (said.size > 0 && ((const char *)said.data)[said.size - 1] == '\0') {
        seq = strtoull((const char *)said.data, &rest, 10);
        snprintf(what, TNCCL_WHAT, "%s", rest[0] == ' ' ? rest + 1 : rest);
    }
    tnccl_host->bytes_free(&said);
    *seq_out = seq;
    return true;
}

/* "not arrived: rank 2 (last in all_reduce #6 (...)), rank 3 (not heard of)". */
static void name_missing(tnccl_backend *b, uint64_t seq, char *text, size_t bytes)
{
    char     what[TNCCL_WHAT];
    size_t   used = 0;
    uint64_t at;
    int      i, n = 0;
    bool     answers = true;

    b->store_rests_ns = 0; /* it is asked once, whatever it was like before */
    for (i = 0; i < b->n_ranks && n < NAMED_MOST && used < bytes && answers; i++) {
        if (i == b->rank)
            continue;
        answers = ask_where(b, i, &at, what);
        if (!answers || at >= seq)
            continue;
        used += (size_t)snprintf(text + used, bytes - used, "%srank %d (%s%s)", n++ > 0 ? ", " : "not arrived: ", b->global_ranks[i],
                                 what[0] != '\0' ? "last in " : "not heard of", what);
    }
    if (n == 0)
        snprintf(text, bytes, "%s", answers ? "all ranks have begun it, and NCCL is not through"
                                            : "the store does not answer who has come");
}

static void tell_end(tnccl_backend *b)
{
    char words[TNCCL_WORDS];
    bool told;

    snprintf(words, sizeof words, "%d %.*s", (int)b->status, TNCCL_WORDS - 16, b->words);
    pthread_mutex_unlock(&b->lock);
    told = tnccl_store_put(b, ended_key, words, strlen(words) + 1);
    pthread_mutex_lock(&b->lock);
    b->is_told = told;
}

/* What another member has put there: its status, and its words. Lock held. */
static void end_with(tnccl_backend *b, const tutti_bytes *told)
{
    const char *text = (const char *)told->data;
    char        words[TNCCL_WORDS], *rest = NULL;
    long        status;

    if (told->size == 0 || text[told->size - 1] != '\0' || b->status != TUTTI_OK)
        return;
    status = strtol(text, &rest, 10);
    if (status != TUTTI_E_TIMEOUT && status != TUTTI_E_PEER && status != TUTTI_E_BACKEND)
        status = TUTTI_E_ABORTED;
    snprintf(words, sizeof words, "another rank has ended group '%s': %.*s", b->name, TNCCL_WORDS - TNCCL_NAME - 48, rest + (rest[0] == ' '));
    b->is_told = true;
    tnccl_finish(b, (tutti_status)status, words);
}

/* Lock held, also on return, and released in between: whether another member has ended the group. */
static void heed_others(watch *w, int64_t now)
{
    tnccl_backend *b = w->b;
    tutti_bytes    words = { 0 };
    bool           there;

    if (now < w->next_heed_ns)
        return;
    w->next_heed_ns = now + HEED_NS;
    pthread_mutex_unlock(&b->lock);
    there = tnccl_store_look(b, ended_key, &words) == TUTTI_OK;
    pthread_mutex_lock(&b->lock);
    if (there)
        end_with(b, &words);
    tnccl_host->bytes_free(&words);
}

/* ---- what is late ---- */

/* One that is under way, or that NCCL is about to take, which it may not do before another rank comes. */
typedef struct late_call {
    uint64_t seq;
    int64_t  began_ns;
    char     what[TNCCL_WHAT];
} late_call;

static bool find_late(const tnccl_backend *b, int64_t now, late_call *late_out)
{
    const tutti_ticket *t, *late = NULL;

    for (t = b->under_way; t != NULL; t = t->next) /* the oldest is the last */
        if (now >= t->deadline_ns)
            late = t;
    if (late != NULL) {
        late_out->seq = late->seq;
        late_out->began_ns = late->began_ns;
        snprintf(late_out->what, TNCCL_WHAT, "%s", late->what);
    } else if (b->taking_ns != 0 && now >= b->taking_deadline_ns) {
        late_out->seq = b->begun_seq;
        late_out->began_ns = b->taking_ns;
        snprintf(late_out->what, TNCCL_WHAT, "%s", b->begun);
    } else {
        return false;
    }
    return true;
}

/* NCCL may have taken it meanwhile. */
static bool is_under_way(const tnccl_backend *b, uint64_t seq)
{
    const tutti_ticket *t;

    for (t = b->under_way; t != NULL; t = t->next)
        if (t->seq == seq)
            return true;
    return b->taking_ns != 0 && b->begun_seq == seq;
}

/* Lock held, also on return, and released in between. */
static void time_is_up(watch *w, const late_call *late)
{
    tnccl_backend *b = w->b;
    const int64_t  until = tnccl_host->now_ns() + REPORT_NS + 5 * TICK_NS;
    char           missing[320], words[TNCCL_WORDS];
    uint32_t       seen = b->news;

    pthread_mutex_unlock(&b->lock);
    while (tnccl_host->now_ns() < until && !b->ends) { /* others have as much time to say where they are */
        tnccl_host->wait_word(&b->news, seen, until);
        seen = b->news;
    }
    name_missing(b, late->seq, missing, sizeof missing);
    pthread_mutex_lock(&b->lock);
    tnccl_tickets_look(b);
    if (b->status != TUTTI_OK || !is_under_way(b, late->seq))
        return;
    snprintf(words, sizeof words, "%s on group '%s' timed out after %lld ms on rank %d of %d members\n"
                                  "  %s\n"
                                  "  next: see what the ranks named do instead, or give the group a longer time-out",
             late->what, b->name, (long long)((tnccl_host->now_ns() - late->began_ns) / MS), b->global_ranks[b->rank], b->n_ranks, missing);
    tnccl_finish(b, TUTTI_E_TIMEOUT, words);
}

/* ---- the thread ---- */

/* Whether something waits for so long that others may have ended the group. */
static bool has_waited(const tnccl_backend *b, int64_t now)
{
    const tutti_ticket *t, *oldest = NULL;

    for (t = b->under_way; t != NULL; t = t->next)
        oldest = t;
    return (oldest != NULL && now - oldest->began_ns >= HEED_NS) || (b->taking_ns != 0 && now - b->taking_ns >= HEED_NS);
}

/* One look at everything: how long to sleep then. Lock held, also on return, and released in between. */
static int64_t look(watch *w)
{
    tnccl_backend *b = w->b;
    const int64_t  now = tnccl_host->now_ns();
    late_call      late;
    bool           soon, busy, more;

    tnccl_tickets_look(b);
    if (b->status == TUTTI_OK && find_late(b, now, &late))
        time_is_up(w, &late);
    soon = !tnccl_lanes_meet(b);
    soon = tnccl_lanes_advance(b) || soon;
    busy = b->under_way != NULL || b->taking_ns != 0 || soon;
    if (b->status == TUTTI_OK && (soon || has_waited(b, now)))
        heed_others(w, now);
    more = b->status == TUTTI_OK && report(w, now);
    if (b->status != TUTTI_OK && !b->is_told)
        tell_end(b);
    if (soon)
        return SOON_NS;
    if (busy || more)
        return TICK_NS;
    return b->status != TUTTI_OK && !b->is_told ? REPORT_NS : INT64_MAX; /* it is told again */
}

static void watch_group(void *arg)
{
    watch     w = { .b = arg };
    const int device = tnccl_enter(w.b);
    uint32_t  seen;
    int64_t   pause_ns, now;

    w.next_heed_ns = tnccl_host->now_ns() + HEED_NS;
    pthread_mutex_lock(&w.b->lock);
    while (!w.b->ends) {
        seen = w.b->news;
        pause_ns = look(&w);
        pthread_mutex_unlock(&w.b->lock);
        now = tnccl_host->now_ns();
        tnccl_host->wait_word(&w.b->news, seen, pause_ns == INT64_MAX ? INT64_MAX : now + pause_ns);
        pthread_mutex_lock(&w.b->lock);
    }
    w.b->store_rests_ns = 0;
    if (w.b->status != TUTTI_OK && !w.b->is_told)
        tell_end(w.b);
    pthread_mutex_unlock(&w.b->lock);
    tnccl_leave(device);
}

tutti_status tnccl_watch(tnccl_backend *b)
{
    return tnccl_host->thread_start("tutti-nccl", watch_group, b, &b->watchdog);
}

void tnccl_watch_end(tnccl_backend *b)
{
    if (b->watchdog == NULL)
        return;
    tnccl_news(b);
    tnccl_host->thread_join(b->watchdog);
    b->watchdog = NULL;
}
