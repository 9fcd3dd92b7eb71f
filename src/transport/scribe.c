/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scribe.c - a roll is read once for each host.
 *
 * Why     Where everybody reads everybody's piece the server of the board sends the square of their number: of 10,000 ranks 2.8
 *         MB to each. The ranks of a host can hand them to each other, and then it sends that to each host.
 * How     One rank of a host is its scribe; which one is known to those ranks before, and how they get from it what it has
 *         read is their matter. It reads the roll as everybody would. Where others are awaited long it leaves a note, "so
 *         many have come", and a last one when all have. The notes of a place are numbered: hand/PLACE/0, 1, 2, ...
 *         The others wait for the notes, each with a wait on the board as for a piece: so they wake, look around and fail as
 *         who reads himself, and hear of the same things.
 *
 *             scribe   read ---------- look: AT 17 ---------- look: AT 40 -------- all: DONE
 *             another  await note 0 -------- note 1: has 17 come? no: awaited(17) ---- note 2: ask the scribe
 *
 *         Whom they ask for at a look is the one that the latest note calls missing, if the board says that it is: so a text names
 *         somebody who has not come, and that takes one small request.
 * Fails   A scribe that fails says so, and everybody reads by himself, and finds the same, in words of his own. One that
 *         says nothing at two looks of another one, while neither who was missing is nor the scribe's own piece, is given
 *         up: it may be stopped, or dead, or slow. That costs what it cost without a scribe.
 * True    A note is left once and stays. Pieces that have come stay, so that a note is never wrong later, only late.
 *         What is in a note is a number from another process: it is a piece to ask the board for, if it is one of the roll's. */
#include "transport/scribe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"

#define NOTE_MAGIC UINT32_C(0x65746f6e) /* "note" */

enum { NOTE_VERSION = 1, NOTES_MOST = 100000 /* their numbers must fit into a key */, BEHIND_MOST = 2, WORDS_MAX = TTI_LAST_ERROR_MAX };

typedef char note_name[TTI_BOARD_KEY_BYTES];

/* hand/0123456789abcdef/12345: with /0 behind it, as of the one piece of a roll. */
static void name_note(const tti_scribe *scribe, int i, note_name out)
{
    snprintf(out, sizeof(note_name), "hand/%llx/%d", (unsigned long long)scribe->place, i);
}

/* ---- the scribe ------------------------------------------------------------------------------------- */

static void leave_note(tti_scribe *scribe, const tti_scribe_note *note)
{
    const tti_roll *roll = scribe->roll;
    tutti_status    st = TUTTI_E_STATE;
    int             tries;

    /* one that was left although we were told that it was not has its number */
    for (tries = 0; tries < 2 && st == TUTTI_E_STATE; tries++) {
        note_name what;
        char      key[TTI_BOARD_KEY_BYTES];

        name_note(scribe, scribe->n_notes++, what);
        tti_roll_key(&(tti_roll){ .what = what }, 0, key);
        st = roll->board->put(roll->board->context, key, note, sizeof *note, tti_board_grace(roll->board, roll->port));
    }
    if (st != TUTTI_OK && st != TUTTI_E_STATE)
        scribe->n_notes--; /* it may not be there: the next one is tried in its place first */
}

void tti_scribe_tell(tti_scribe *scribe, tti_scribe_word word, uint64_t at, uint64_t nonce)
{
    const tti_scribe_note note = { .magic = NOTE_MAGIC, .version = NOTE_VERSION, .word = (uint16_t)word, .n = scribe->told,
                                   .at = at, .nonce = nonce };
    char                  kept[WORDS_MAX];

    snprintf(kept, sizeof kept, "%s", tutti_last_error());
    leave_note(scribe, &note);
    if (kept[0] != '\0')
        tti_fail(TUTTI_E_STATE, "%s", kept);
}

static tutti_status scribe_come(void *ctx, int rank)
{
    const tti_scribe *scribe = ctx;

    return scribe->roll->come(scribe->roll->ctx, rank);
}

/* At a look, once for each that is missing for that long. */
static tutti_status scribe_awaited(void *ctx, int rank)
{
    tti_scribe *scribe = ctx;

    if (rank > scribe->told && scribe->n_notes < NOTES_MOST) {
        scribe->told = rank;
        tti_scribe_tell(scribe, TTI_SCRIBE_AT, 0, 0);
    }
    return scribe->roll->awaited(scribe->roll->ctx, rank);
}

tutti_status tti_scribe_read(tti_scribe *scribe, int64_t deadline_ns, void *out, int *n_out)
{
    tti_roll     roll = *scribe->roll;
    tutti_status st;

    roll.come = scribe_come;
    roll.awaited = scribe_awaited;
    roll.ctx = scribe;
    scribe->told = scribe->n_notes = 0;
    st = tti_roll_read(&roll, deadline_ns, out, n_out);
    if (st != TUTTI_OK)
        tti_scribe_tell(scribe, TTI_SCRIBE_ALONE, 0, 0);
    return st;
}

/* ---- the others ------------------------------------------------------------------------------------- */

typedef struct waiter {
    const tti_scribe *scribe;
    int               known;  /* those before it have come */
    int               behind; /* looks at which the scribe could have said more */
    bool              alone;  /* it is given up */
    int64_t           deadline_ns;
} waiter;

static tutti_status note_has_come(void *ctx, int rank)
{
    (void)rank;
    ((waiter *)ctx)->behind = 0;
    return TUTTI_OK;
}

static tutti_status ask_for(const waiter *w, int rank, bool *there_out)
{
    const tti_roll *roll = w->scribe->roll;
    char            key[TTI_BOARD_KEY_BYTES];

    tti_roll_key(roll, rank, key);
    return roll->board->has(roll->board->context, key, tti_board_patience(roll->board, roll->port, w->deadline_ns), there_out);
}

/* As far as the board says. */
static bool is_missing(const waiter *w, int rank)
{
    bool there = true;

    return ask_for(w, rank, &there) == TUTTI_OK && !there;
}

/* Somebody whom this rank waits for. -1: nobody, but the scribe's word. */
static int somebody_missing(const waiter *w)
{
    return is_missing(w, w->known) ? w->known : is_missing(w, w->scribe->rank) ? w->scribe->rank : -1;
}

/* It is no use to wait for rank, as st and this thread's last error say: but its piece may have come just before that was so. Who
 * reads himself looks once more for the same rank; here the next look may be about another one. */
static tutti_status unless_it_has_come(const waiter *w, int rank, tutti_status st)
{
    char kept[WORDS_MAX];
    bool there = false;

    snprintf(kept, sizeof kept, "%s", tutti_last_error());
    return ask_for(w, rank, &there) == TUTTI_OK && there ? TUTTI_OK : tti_fail(st, "%s", kept);
}

/* No new note within the time of a look. */
static tutti_status look(void *ctx, int rank)
{
    waiter         *w = ctx;
    const tti_roll *roll = w->scribe->roll;
    const int       missing = somebody_missing(w);
    tutti_status    st;

    (void)rank;
    w->behind = missing < 0 ? w->behind + 1 : 0;
    w->alone = w->behind >= BEHIND_MOST;
    if (w->alone)
        return tti_fail(TUTTI_E_STATE, "nothing is heard of rank %d, which reads for this one", w->scribe->rank);
    st = missing >= 0 ? roll->awaited(roll->ctx, missing) : TUTTI_OK;
    return st == TUTTI_OK ? TUTTI_OK : unless_it_has_come(w, missing, st);
}

static tutti_status await_note(waiter *w, int i, tti_scribe_note *note_out)
{
    note_name what;
    tti_roll  roll = *w->scribe->roll;
    int       n;

    name_note(w->scribe, i, what);
    roll.what = what;
    roll.n = 1;
    roll.bytes = sizeof *note_out;
    roll.come = note_has_come;
    roll.awaited = look;
    roll.ctx = w;
    return tti_roll_read(&roll, w->deadline_ns, note_out, &n);
}

static bool makes_sense(const waiter *w, const tti_scribe_note *note)
{
    return note->magic == NOTE_MAGIC && note->version == NOTE_VERSION &&
           (note->word == TTI_SCRIBE_DONE ||
            (note->word == TTI_SCRIBE_AT && note->n > w->known && note->n < w->scribe->roll->n));
}

/* Time is up: the first that has not come, from the one that the last note named. -1: none, as far as can be told. */
static int first_missing(const waiter *w)
{
    const tti_roll *roll = w->scribe->roll;
    bool           *missing = malloc((size_t)roll->n * sizeof *missing);
    int             rank = w->known;
    bool            all;

    if (missing == NULL)
        return w->known;
    memset(missing, false, (size_t)roll->n * sizeof *missing);
    all = tti_roll_missing(roll, w->known, 1, tti_board_grace(roll->board, roll->port), missing);
    while (rank < roll->n && !missing[rank])
        rank++;
    free(missing);
    return rank < roll->n ? rank : all ? -1 : w->known;
}

tutti_status tti_scribe_await(const tti_scribe *scribe, int64_t deadline_ns, tti_scribe_note *note_out, int *n_out)
{
    static const tti_scribe_note alone = { .magic = NOTE_MAGIC, .version = NOTE_VERSION, .word = TTI_SCRIBE_ALONE };
    waiter          w = { .scribe = scribe, .deadline_ns = deadline_ns };
    tti_scribe_note note = alone;
    tutti_status    st = TUTTI_OK;
    int             i;

    for (i = 0; st == TUTTI_OK; i++) {
        st = await_note(&w, i, &note);
        if (st != TUTTI_OK || !makes_sense(&w, &note) || note.word != TTI_SCRIBE_AT)
            break;
        w.known = note.n;
    }
    *n_out = st == TUTTI_E_TIMEOUT && !w.alone ? first_missing(&w) : w.known;
    if (w.alone || *n_out < 0 || (st == TUTTI_OK && !makes_sense(&w, &note))) {
        note = alone;
        st = TUTTI_OK;
    }
    if (st == TUTTI_OK)
        *note_out = note;
    return st;
}

tutti_status tti_scribe_read_alone(const tti_roll *roll, int64_t deadline_ns, void *out, int *n_out)
{
    const int64_t grace_ns = tti_board_grace(roll->board, roll->port);

    return tti_roll_read(roll, deadline_ns > grace_ns ? deadline_ns : grace_ns, out, n_out);
}
