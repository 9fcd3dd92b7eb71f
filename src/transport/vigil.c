/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vigil.c - signs that a world which is being made cannot be made any more.
 *
 * Why     Who joins waits for pieces that all others leave on the board, and has no connection to any of them. One that ends
 *         leaves nothing; one that gives up, because of the first, leaves nothing more; and those that wait for either see no
 *         difference.
 * How     bulletin   its launcher tells how a process has ended (watch/bulletin.h): that wakes who waits
 *         ended      without one, a tcp store tells that a process has ended (store/store_will.c): seen at the next look
 *         known      who was in a world with it before sees its end there (watch/acquaintance.h): seen at the next look
 *         trouble    who gives up leaves its words on the board (trouble.h): seen at the next look
 *         A process that has ended is nobody's loss if it was through: it had left the last piece that anybody waits for. At
 *         an earlier piece nobody can be through while one is missing. So an ending counts
 *             where the ended one's own piece is missing, or
 *             where another piece is still missing, asked for after the ending was known, and more is to follow
 * True    Of the last pieces all members see the same in the end: either all are there, and all go on, or one is missing, and
 *         nobody does. So nobody gives up for one that ended after it had left its own: others may be through.
 *         A process that ends by itself, or nobody knows how, may have done so because it had given up: then its words are on
 *         the board, and go before what its launcher says of it. One that a signal ended is a cause.
 * Fails   A board that does not answer says nothing against anybody. Of more endings than ENDED_MAX the store tells nothing. */
#include "transport/vigil.h"

#include <stdio.h>
#include <tutti/private.h>
#include "transport/trouble.h"
#include "watch/acquaintance.h"
#include "watch/bulletin.h"

enum { ENDED_MAX = 64, KNOWN_WORDS_MAX = 512 };

/* NULL: nobody tells. */
static const tti_bulletin *heeded(const tti_vigil *vigil)
{
    return vigil->board->heed_news != NULL ? tti_bulletin_heeded() : NULL;
}

void tti_vigil_begin(const tti_vigil *vigil)
{
    const tti_bulletin *bulletin = heeded(vigil);

    if (bulletin != NULL)
        vigil->board->heed_news(vigil->board->context, tti_bulletin_news(bulletin));
}

void tti_vigil_end(const tti_vigil *vigil)
{
    if (heeded(vigil) != NULL)
        vigil->board->heed_news(vigil->board->context, NULL);
}

static int64_t patience(const tti_vigil *vigil)
{
    return tti_board_patience(vigil->board, vigil->port, vigil->deadline_ns);
}

/* Whether the piece of rank is on the board. */
static tutti_status look_for_piece(const tti_vigil *vigil, int rank, bool *there_out)
{
    const tti_board *board = vigil->board;
    const tti_roll   roll = { .what = vigil->what };
    char             key[TTI_BOARD_KEY_BYTES];

    tti_roll_key(&roll, rank, key);
    return board->has(board->context, key, patience(vigil), there_out);
}

static bool is_missing(const tti_vigil *vigil, int rank)
{
    bool there = true;

    return look_for_piece(vigil, rank, &there) == TUTTI_OK && !there;
}

static bool is_member(const tti_vigil *vigil, const tti_ending *ending)
{
    return ending->rank >= 0 && ending->rank < vigil->n_ranks && ending->rank != vigil->rank;
}

/* Where endings come from: number i, from 0. False: there is none yet. */
typedef bool ending_reader(const void *source, uint32_t i, tti_ending *out);

/* Whether one of them leaves us waiting for ever. For each that was not looked at yet the board is asked, once; one that does
 * not answer says nothing, and is asked again at the next look. */
static bool find_loss(const tti_vigil *vigil, tti_endings *seen, ending_reader *read, const void *source, int awaited,
                      tti_ending *loss_out)
{
    tti_ending ending;
    bool       there = true;

    while (seen->ended == 0 && read(source, seen->n, &ending)) {
        const bool is_of_ours = is_member(vigil, &ending);

        if (is_of_ours && look_for_piece(vigil, ending.rank, &there) != TUTTI_OK)
            break;
        seen->n++;
        if (is_of_ours && !there)
            seen->ended = seen->n;
        else if (is_of_ours && seen->came == 0)
            seen->came = seen->n;
    }
    if (seen->ended == 0 && seen->came != 0 && !vigil->is_last && is_missing(vigil, awaited))
        seen->ended = seen->came;
    return seen->ended != 0 && read(source, seen->ended - 1, loss_out);
}

/* ---- what a launcher tells --------------------------------------------------------------------------- */

static bool read_bulletin(const void *source, uint32_t i, tti_ending *out)
{
    return tti_bulletin_read(source, i, out);
}

static tutti_status look_at_bulletin(tti_vigil *vigil, int awaited)
{
    const tti_bulletin *bulletin = heeded(vigil);
    tti_ending          ending;
    tutti_status        st;

    if (bulletin == NULL)
        return TUTTI_OK;
    vigil->board->catch_up(vigil->board->context); /* first: what is put up from here on ends the next wait */
    if (!find_loss(vigil, &vigil->launchers, read_bulletin, bulletin, awaited, &ending))
        return TUTTI_OK;
    st = tti_bulletin_fail(bulletin, &ending, vigil->rank, vigil->n_ranks);
    return ending.signal != 0 ? st : tti_trouble_explain(vigil->board, vigil->port, st);
}

/* ---- what the store tells ---------------------------------------------------------------------------- */

typedef struct list {
    tti_ending endings[ENDED_MAX];
    size_t     n;
} list;

static bool read_list(const void *source, uint32_t i, tti_ending *out)
{
    const list *l = source;

    if (i >= l->n || l->endings[i].version != TTI_ENDING_VERSION)
        return false;
    *out = l->endings[i];
    out->host[sizeof out->host - 1] = '\0';
    return true;
}

static bool get_list(const tti_vigil *vigil, list *out)
{
    const tti_board *board = vigil->board;
    size_t           bytes = 0;
    bool             there = false;

    if (board->read == NULL || board->has(board->context, TTI_ENDED_KEY, patience(vigil), &there) != TUTTI_OK || !there ||
        board->read(board->context, TTI_ENDED_KEY, out->endings, sizeof out->endings, patience(vigil), &bytes) != TUTTI_OK)
        return false;
    out->n = bytes / sizeof out->endings[0];
    return out->n > 0;
}

/* Who has ended so may have given up: then its words are there, too. */
static tutti_status fail_for(const tti_vigil *vigil, const char *who, const char *when)
{
    tti_fail(TUTTI_E_PEER,
             "rank %d waits for the world of %d, which cannot be made: %s%s\n"
             "  next: see what that process wrote; those that are left may try again without it",
             vigil->rank, vigil->n_ranks, who, when);
    return tti_trouble_explain(vigil->board, vigil->port, TUTTI_E_PEER);
}

static tutti_status look_at_store(tti_vigil *vigil, int awaited)
{
    char       words[TTI_ENDING_TEXT_MAX];
    tti_ending ending;
    list       l;

    if (!get_list(vigil, &l) || !find_loss(vigil, &vigil->stores, read_list, &l, awaited, &ending))
        return TUTTI_OK;
    return fail_for(vigil, tti_ending_words(&ending, words), " before it joined");
}

/* ---- what this process knows itself ------------------------------------------------------------------ */

static bool read_known(const void *source, uint32_t i, tti_ending *out)
{
    const tti_acquaintance *known = source;

    *out = (tti_ending){ .version = TTI_ENDING_VERSION };
    return known->read(known->context, i, &out->rank);
}

static tutti_status look_at_known(tti_vigil *vigil, int awaited)
{
    const tti_acquaintance *known = tti_acquaintance_heeded();
    char                    words[KNOWN_WORDS_MAX];
    tti_ending              ending;

    if (known == NULL || !find_loss(vigil, &vigil->known, read_known, known, awaited, &ending))
        return TUTTI_OK;
    if (!known->words(known->context, ending.rank, words, sizeof words))
        snprintf(words, sizeof words, "rank %d has ended", ending.rank);
    return fail_for(vigil, words, "");
}

/* ---- what others tell -------------------------------------------------------------------------------- */

/* Who is awaited here is not named: it may wait for the same one, in its host, or have given up as well. */
static tutti_status look_for_trouble(const tti_vigil *vigil)
{
    char        who[32] = "another process";
    tti_trouble trouble;

    if (!tti_trouble_find(vigil->board, patience(vigil), &trouble))
        return TUTTI_OK;
    if (trouble.who > 0)
        snprintf(who, sizeof who, "rank %d", trouble.who - 1);
    return tti_fail((tutti_status)trouble.status, "rank %d waits for the world of %d, which cannot be made: %s reported: %s",
                    vigil->rank, vigil->n_ranks, who, trouble.words);
}

tutti_status tti_vigil_look(tti_vigil *vigil, int rank)
{
    tutti_status st = look_at_bulletin(vigil, rank);

    if (st == TUTTI_OK)
        st = look_at_store(vigil, rank);
    if (st == TUTTI_OK)
        st = look_at_known(vigil, rank);
    return st == TUTTI_OK ? look_for_trouble(vigil) : st;
}

/* Did the board's host end because of that, before this rank had heard why? Or has that one, too, lost the board, and failed a
 * little sooner? Both are said. */
tutti_status tti_vigil_name_the_ended(const tti_vigil *vigil, int n_come, tutti_status st)
{
    const tti_bulletin *bulletin = heeded(vigil);
    tti_ending          ending;
    uint32_t            i;

    for (i = 0; bulletin != NULL && tti_bulletin_read(bulletin, i, &ending); i++)
        if (ending.rank >= n_come && is_member(vigil, &ending))
            return tti_bulletin_fail_besides(bulletin, &ending, vigil->rank, vigil->n_ranks);
    return st;
}
