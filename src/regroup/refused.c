/* SPDX-License-Identifier: BSD-3-Clause
 *
 * refused.c - a member that cannot go on as the others wish tells them, and they do not wait for it.
 *
 * Why     With a list all that it leaves must come. Whoever returns at once, as it has operations under way, comes to no meeting, and
 *         so the others would wait until time is up, and would not know why.
 * How     Who refuses leaves a word in the group's store, below "shrink", and then says that there is one:
 *             refused/RANK   why (watch/trouble.h); of status TUTTI_OK: not any more
 *             refusals       how many times anybody has refused
 *         Who waits has a thread that looks at the second now and then, from LOOK_MS on, which costs one request however many
 *         members there are, and at the first of each member only when it is there.
 * True    Refusing is no vote: who has refused is in no meeting, and a list is decided only by all that it leaves. A word that is read
 *         too late, as who left it has come since, counts for nothing: who meets knows that all have come to where it is
 *         (agreement.c), or asks whether that one has (by_store.c). So nothing that was agreed on is undone by what is read here.
 *         `found` is written by the looking thread, once, behind `words`, by release order. The others read `words` behind that.
 * Again   Who has refused, and calls it once more, takes its word back first. Who has read it before has returned, and calls it
 *         again, too: where it does so while the word is still there it reads it once more, LOOK_MS later.
 * Late    Nobody looks in the last moment before the call's time is up: it comes back in time also from a store that does not answer.
 * Fails   A store that does not answer, or is dead, says nothing against anybody: then they wait, as they did without. So does
 *         who is excluded: its word is not looked at. */
#include "regroup/refused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store.h"
#include "watch/trouble.h"

#define ANSWER_NS TTI_SECOND
#define LOOK_NS   (TTI_SECOND / 4) /* for the answer to a look: who has agreed waits for it */
#define COUNT_KEY "shrink/refusals"
#define WORD_KEY  "shrink/refused/%d"

enum { LOOK_MS = 200, LOOK_RANK_MS = 4, LOOK_MOST_MS = 2000, KEY_MAX = 40 };

struct tti_refused {
    const tutti_group *old;
    const bool        *excluded;
    tti_refused_counts *counts;
    void              *context;
    tti_port          *port;
    int64_t            deadline_ns;
    tti_thread         thread;
    tti_event          changed; /* over */
    _Atomic bool       over;
    _Atomic bool       found;
    char               words[TTI_TROUBLE_WORDS_MAX];
};

/* ---- who refuses ---- */

static tutti_status leave_word(tutti_group *old, const tti_trouble *word)
{
    const int64_t until_ns = tti_port_now(old->runner->port) + ANSWER_NS;
    char          key[KEY_MAX];
    int64_t       n = 0;
    tutti_status  st;

    snprintf(key, sizeof key, WORD_KEY, old->rank);
    st = tti_store_set_until(old->store, key, word, sizeof *word, until_ns);
    return st == TUTTI_OK && word->status != TUTTI_OK ? tti_store_add_until(old->store, COUNT_KEY, 1, until_ns, &n) : st;
}

void tti_refused_tell(tutti_group *old, tutti_status failure)
{
    tti_trouble word = { .status = (int32_t)failure };

    if (old->store == NULL || old->size < 2)
        return;
    snprintf(word.words, sizeof word.words, "%.*s", TTI_TROUBLE_WORDS_MAX - 1, tutti_last_error());
    if (leave_word(old, &word) != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "group '%s': the others do not hear why this rank does not shrink it: %s", old->name, tutti_last_error());
    else
        old->refuses = true;
    (void)tti_fail(failure, "%s", word.words);
}

void tti_refused_take_back(tutti_group *old)
{
    const tti_trouble none = { .status = TUTTI_OK };

    if (!old->refuses)
        return;
    old->refuses = false;
    if (leave_word(old, &none) != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "group '%s': that this rank shrinks it after all is not known: %s", old->name, tutti_last_error());
}

/* ---- who waits ---- */

static bool is_there(const tti_refused *r, const char *key)
{
    bool there = false;

    return tti_store_check_until(r->old->store, &key, 1, tti_port_now(r->port) + LOOK_NS, &there) == TUTTI_OK && there;
}

/* What rank says, if it refuses. */
static bool read_word(tti_refused *r, int rank)
{
    tutti_bytes value = { 0 };
    tti_trouble word = { .status = TUTTI_OK };
    char        key[KEY_MAX];

    snprintf(key, sizeof key, WORD_KEY, rank);
    if (!is_there(r, key) || tti_store_get_until(r->old->store, key, tti_port_now(r->port) + LOOK_NS, &value) != TUTTI_OK)
        return false;
    if (value.size == sizeof word)
        memcpy(&word, value.data, sizeof word);
    tutti_bytes_free(&value);
    word.words[sizeof word.words - 1] = '\0';
    if (word.status == TUTTI_OK)
        return false;
    snprintf(r->words, sizeof r->words, "shrink_group on group '%.64s': rank %d, which is to stay, refuses it: %.360s", r->old->name, rank,
             word.words);
    return true;
}

static bool is_over(const tti_refused *r)
{
    return atomic_load(&r->over) || (r->deadline_ns != TTI_FOREVER && tti_port_now(r->port) + 2 * LOOK_NS >= r->deadline_ns);
}

static bool find(tti_refused *r)
{
    int rank;

    if (!is_there(r, COUNT_KEY))
        return false;
    for (rank = 0; rank < r->old->size && !is_over(r); rank++)
        if (rank != r->old->rank && !r->excluded[rank] && read_word(r, rank) &&
            (r->counts == NULL || r->counts(r->context, rank, r->words)))
            return true;
    return false;
}

static void look(void *arg)
{
    tti_refused  *r = arg;
    const int64_t most_ms = LOOK_MS + (int64_t)LOOK_RANK_MS * r->old->size;
    const int64_t pause_ns = (most_ms < LOOK_MOST_MS ? most_ms : LOOK_MOST_MS) * TTI_MS;
    int64_t       next_ns = tti_port_now(r->port) + pause_ns;

    tti_store_heed(&r->over); /* who has agreed does not wait for a store that is slow */
    while (!atomic_load(&r->over)) {
        const uint32_t seen = tti_event_now(&r->changed);

        if (tti_port_now(r->port) < next_ns) {
            if (!atomic_load(&r->over))
                tti_event_wait(r->port, &r->changed, seen, next_ns);
            continue;
        }
        if (is_over(r))
            break;
        if (find(r)) {
            atomic_store_explicit(&r->found, true, memory_order_release);
            break;
        }
        next_ns = tti_port_now(r->port) + pause_ns;
    }
    tti_store_heed(NULL);
}

tti_refused *tti_refused_begin(tutti_group *old, const bool *excluded, int64_t deadline_ns, tti_refused_counts *counts, void *context)
{
    tti_refused *r = old->store != NULL ? calloc(1, sizeof *r) : NULL;

    if (r == NULL)
        return NULL;
    r->old = old;
    r->excluded = excluded;
    r->deadline_ns = deadline_ns;
    r->counts = counts;
    r->context = context;
    r->port = old->runner->port;
    if (tti_thread_start(&r->thread, "tutti-refused", look, r) == TUTTI_OK)
        return r;
    tti_log(TTI_LOG_DEBUG, "group '%s': nobody looks for who refuses to shrink it: %s", old->name, tutti_last_error());
    free(r);
    return NULL;
}

bool tti_refused_found(const tti_refused *r, const char **words_out)
{
    if (r == NULL || !atomic_load_explicit(&r->found, memory_order_acquire))
        return false;
    *words_out = r->words;
    return true;
}

const _Atomic bool *tti_refused_flag(const tti_refused *r)
{
    return r != NULL ? &r->found : NULL;
}

static void stop(tti_refused *r)
{
    atomic_store(&r->over, true);
    tti_event_signal(r->port, &r->changed);
    tti_thread_join(&r->thread);
}

void tti_refused_end(tti_refused *r)
{
    if (r == NULL)
        return;
    stop(r);
    free(r);
}

tutti_status tti_refused_conclude(tti_refused *r, tutti_status st)
{
    const char *words;

    if (r == NULL)
        return st;
    stop(r);
    if (st != TUTTI_OK && tti_refused_found(r, &words))
        st = tti_fail(TUTTI_E_REMOTE, "%s", words);
    free(r);
    return st;
}
