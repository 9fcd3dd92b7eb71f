/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meeting.c - a barrier before each collective, at which members compare what they are about to run.
 *
 * How     Before the n-th call member r writes a note of it to "n/r" (watch/control.h has the note), and reads the others'. What
 *         all must agree on has to be the same. Where the program has made the call stands behind the note, as text, for the words
 *         of all: only the one who calls can tell it. What one gives to each of ALL_TO_ALL stands behind that, and is compared
 *         with what is expected.
 * True    Who has read all notes of call n knows that all have come out of meeting n-1, so nobody reads its note of that any
 *         more: it takes that away. So a member has two keys at most, and of one that does not come the last note is still there.
 *         ended is set once, by any thread; who waits looks at it every LOOK_MS, since a store cannot be told to wake it.
 *         Who fails here has the backend inside fail with it (debug.c): that tells those who come later, or when this one has left.
 *         A note is somebody else's: its size is looked at first, and its words are only described. */
#include "backend/debug/meeting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"
#include "base/foreign.h"
#include "base/port.h"
#include "base/site.h"
#include "store/store.h"
#include "watch/advice.h"
#include "watch/control.h"

enum { KEY_BYTES = 64, LOOK_MS = 200, WORDS = TTI_LAST_ERROR_MAX, WAS_BYTES = TTI_CALL_TEXT_MAX + TTI_SITE_TEXT + 64 };

/* What stands in a key, before what is given. */
typedef struct told {
    tti_call_note note;
    char          site[TTI_SITE_TEXT]; /* "": it cannot be told */
} told;

void tti_meeting_end(tti_meeting *m)
{
    atomic_store_explicit(&m->ended, 1, memory_order_release);
}

static bool is_over(const tti_meeting *m)
{
    return atomic_load_explicit(&m->ended, memory_order_acquire) != 0;
}

static const char *key_of(uint64_t call, int rank, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "%" PRIu64 "/%d", call, rank);
    return key;
}

/* ---- notes ---- */

static size_t n_given(const tutti_call *call)
{
    return call->in_counts != NULL ? (size_t)call->n_parts : 0;
}

static told about(const tti_meeting *m, const tutti_call *call)
{
    told t;

    memset(&t, 0, sizeof t);
    t.note = tti_call_note_of(call);
    memcpy(t.site, m->site, sizeof t.site);
    return t;
}

static tutti_status tell(const tti_meeting *m, const tutti_call *call)
{
    const told   own = about(m, call);
    const size_t given = n_given(call) * sizeof call->in_counts[0];
    char        *value = malloc(sizeof own + given);
    char         key[KEY_BYTES];
    tutti_status st;

    if (value == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for what is told of a call");
    memcpy(value, &own, sizeof own);
    if (given > 0)
        memcpy(value + sizeof own, call->in_counts, given);
    st = tutti_store_set(m->store, key_of(m->calls, m->rank, key), value, sizeof own + given);
    free(value);
    return st;
}

/* Whether bytes can be a note; what stands behind it is for compare(). Of the text only what can be printed is taken. */
static bool read_note(const tutti_bytes *bytes, told *told_out)
{
    size_t i;

    if (bytes->size < sizeof *told_out)
        return false;
    memcpy(told_out, bytes->data, sizeof *told_out);
    told_out->site[sizeof told_out->site - 1] = '\0';
    for (i = 0; told_out->site[i] != '\0'; i++)
        if (told_out->site[i] < ' ' || told_out->site[i] > '~')
            told_out->site[i] = '?';
    return true;
}

/* "all_reduce #4 (sum, 3 f32) at train+0x1a2f (step+0x4f)". */
static const char *describe(const told *t, char out[WAS_BYTES])
{
    size_t used;

    tti_call_describe(&t->note, out);
    used = strlen(out);
    if (t->site[0] != '\0')
        snprintf(out + used, WAS_BYTES - used, " at %s", t->site);
    return out;
}

static tutti_status differ(const tti_meeting *m, const told *own, const told *other, int rank)
{
    char mine[WAS_BYTES], theirs[WAS_BYTES];

    return tti_fail(TUTTI_E_MISMATCH,
                    "ranks of group '%s' call different things: rank %d is about to run %s, rank %d %s; %s differ\n  next: have "
                    "all ranks make the group's calls in the same order",
                    m->group, m->global_ranks[m->rank], describe(own, mine), m->global_ranks[rank], describe(other, theirs),
                    tti_call_difference(&own->note, &other->note));
}

/* What member rank gives this one, behind its note. */
static tutti_status compare_amount(const tti_meeting *m, const tutti_call *call, const told *own, const told *other,
                                   const tutti_bytes *bytes, int rank)
{
    const int64_t want = call->list_counts[rank];
    int64_t       gives = -1;
    const size_t  at = sizeof(told) + (size_t)m->rank * sizeof gives;

    if (bytes->size >= at + sizeof gives)
        memcpy(&gives, (const char *)bytes->data + at, sizeof gives);
    if (gives == want)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_MISMATCH,
                    "%s #%" PRIu64 " on group '%s': rank %d gives rank %d %" PRId64 " elements, and %" PRId64 " are expected%s%s%s%s",
                    tti_call_kind_name(call->kind), call->seq, m->group, m->global_ranks[rank], m->global_ranks[m->rank], gives, want,
                    other->site[0] != '\0' ? "\n  given at " : "", other->site, own->site[0] != '\0' ? ", expected at " : "",
                    own->site);
}

static tutti_status compare(const tti_meeting *m, const tutti_call *call, const tutti_bytes *bytes, int rank)
{
    const told own = about(m, call);
    told       other;

    if (!read_note(bytes, &other))
        return tti_fail(TUTTI_E_STORE, "what rank %d of group '%s' has told of its call has %zu bytes, and is none",
                        m->global_ranks[rank], m->group, bytes->size);
    if (own.note.word != other.note.word)
        return differ(m, &own, &other, rank);
    return n_given(call) > 0 ? compare_amount(m, call, &own, &other, bytes, rank) : TUTTI_OK;
}

/* ---- waiting ---- */

/* What a member came to the meeting before for: that note is still there, if the store can be asked. */
static bool find_last(const tti_meeting *m, int rank, told *last_out)
{
    tutti_bytes bytes = { NULL, 0 };
    char        key[KEY_BYTES];
    const bool  found = m->calls > 1 &&
                       tti_store_look(m->store, key_of(m->calls - 1, rank, key), LOOK_MS, &bytes) == TUTTI_OK &&
                       read_note(&bytes, last_out);

    tutti_bytes_free(&bytes);
    return found;
}

/* Whether a member is gone, in words of this call: who tells of it words it anew, and the group layer hears those. */
static tutti_status ask_alive(const tti_meeting *m, int rank)
{
    const uint32_t said = tti_words_said();

    if (m->inner_ops->alive == NULL)
        return TUTTI_OK;
    return tti_foreign_status("backend", m->inner_ops->name, "alive", m->inner_ops->alive(m->inner, rank), said);
}

/* A member will not come, as this thread's last error says. */
static tutti_status fail_gone(const tti_meeting *m, const tutti_call *call, int rank, tutti_status st)
{
    const told  own = about(m, call);
    char        words[WORDS], mine[WAS_BYTES], was[WAS_BYTES];
    const char *next;
    told        last;
    bool        found;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    next = strstr(words, "\n  next: ");
    found = find_last(m, rank, &last);
    return tti_fail(st, "%s on group '%s' did not begin: %.*s%s%s%s", describe(&own, mine), m->group, (int)strcspn(words, "\n"),
                    words, found ? "; its last call was " : "", found ? describe(&last, was) : "",
                    next != NULL ? next : tti_advice_of_loss(words));
}

/* The note of a member, until the deadline; one look at least, and the last one is long enough to connect for. */
static tutti_status await(const tti_meeting *m, const tutti_call *call, int rank, tutti_bytes *bytes_out)
{
    tti_port    *port = tti_port_system();
    char         key[KEY_BYTES];
    tutti_status st;

    key_of(m->calls, rank, key);
    for (;;) {
        const int64_t left_ms = tti_left_ms(port, call->deadline_ns);

        if (is_over(m))
            return tti_fail(TUTTI_E_ABORTED, "%s #%" PRIu64 " on group '%s' was aborted", tti_call_kind_name(call->kind),
                            call->seq, m->group);
        st = tti_store_look(m->store, key, left_ms > 0 && left_ms < LOOK_MS ? left_ms : LOOK_MS, bytes_out);
        if (st != TUTTI_E_TIMEOUT || left_ms == 0)
            return st;
        st = ask_alive(m, rank);
        if (st != TUTTI_OK)
            return fail_gone(m, call, rank, st);
    }
}

/* "rank 3, last at all_reduce #4 (sum, 3 f32)". */
static void say_where(const tti_meeting *m, int rank, char out[2 * WAS_BYTES])
{
    char was[WAS_BYTES];
    told last;

    if (find_last(m, rank, &last))
        snprintf(out, 2 * WAS_BYTES, "rank %d, last at %s", m->global_ranks[rank], describe(&last, was));
    else
        snprintf(out, 2 * WAS_BYTES, "rank %d%s", m->global_ranks[rank], m->calls > 1 ? "" : ", which has called nothing yet");
}

/* Time is up, and nobody has seen first come: who is not there now? */
static tutti_status say_missing(const tti_meeting *m, const tutti_call *call, int first)
{
    tti_port           *port = tti_port_system();
    const told          own = about(m, call);
    char                words[WORDS], was[2 * WAS_BYTES], mine[WAS_BYTES], key[KEY_BYTES];
    const char         *keys[] = { key }, *what = "not arrived: ", *next = "see what those ranks do instead";
    tutti_status        st = TUTTI_OK;
    size_t              used = 0;
    bool                is_there;
    int                 r;

    words[0] = '\0';
    for (r = first; r < m->n_ranks && used < sizeof words && st == TUTTI_OK; r++) {
        key_of(m->calls, r, key);
        is_there = false;
        st = tti_store_check_until(m->store, keys, 1, tti_port_now(port) + LOOK_MS * TTI_MS, &is_there);
        if (st != TUTTI_OK || is_there)
            continue;
        say_where(m, r, was);
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used > 0 ? "; " : "", was);
    }
    if (used == 0) {
        what = st == TUTTI_OK ? "all have come by now" : "the store did not say who has not arrived";
        next = st == TUTTI_OK ? "give the group a longer time-out" : "see whether the store's host can be reached";
    }
    return tti_fail(TUTTI_E_TIMEOUT, "%s on group '%s' timed out after %" PRId64 " ms before it began: %s%s\n  next: %s",
                    describe(&own, mine), m->group, call->timeout_ms, what, words, next);
}

static tutti_status meet_member(const tti_meeting *m, const tutti_call *call, int rank)
{
    tutti_bytes  bytes = { NULL, 0 };
    tutti_status st = await(m, call, rank, &bytes);

    if (st == TUTTI_E_TIMEOUT)
        return say_missing(m, call, rank);
    if (st == TUTTI_OK)
        st = compare(m, call, &bytes, rank);
    tutti_bytes_free(&bytes);
    return st;
}

tutti_status tti_meeting_hold(tti_meeting *m, const tutti_call *call)
{
    char         key[KEY_BYTES];
    tutti_status st;
    int          r;

    m->calls++;
    /* A call that was issued to run later has its place; on a thread of the library's there is nothing else to be found. */
    tti_site_describe(call->site != NULL || call->in_background ? call->site : tti_site_now(), m->site);
    st = tell(m, call);
    for (r = 0; r < m->n_ranks && st == TUTTI_OK; r++)
        if (r != m->rank)
            st = meet_member(m, call, r);
    if (st == TUTTI_OK && m->calls > 1) /* a store that cannot delete keeps it, which does no harm */
        (void)tutti_store_delete_key(m->store, key_of(m->calls - 1, m->rank, key), NULL);
    return st;
}
