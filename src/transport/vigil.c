/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vigil.c - signs that a world which is being made cannot be made any more.
 *
 * Why     Who joins waits for pieces that all others leave on the board, and has no connection to any of them. One that ends
 *         leaves nothing; one that gives up, because of the first, leaves nothing more; and those that wait for either see no
 *         difference.
 * How     bulletin   its launcher tells how a process has ended (watch/bulletin.h): that wakes who waits
 *         trouble    who gives up leaves its words on the board (trouble.h): seen at the next look
 *         A process that has ended is nobody's loss if it was through: it had left the last piece that anybody waits for. At
 *         an earlier piece nobody can be through while one is missing. So an ending counts
 *             where the ended one's own piece is missing, or
 *             where another piece is still missing, asked for after the ending was known, and more is to follow
 * True    Of the last pieces all members see the same in the end: either all are there, and all go on, or one is missing, and
 *         nobody does. So nobody gives up for one that ended after it had left its own: others may be through.
 *         A process that ends by itself may have done so because it had given up: then its words are on the board, and go before
 *         what its launcher says of it. One that a signal ended is a cause.
 * Fails   A board that does not answer says nothing against anybody. */
#include "transport/vigil.h"

#include <tutti/private.h>
#include "transport/trouble.h"
#include "watch/bulletin.h"

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

static bool is_missing(const tti_vigil *vigil, int rank)
{
    const tti_board *board = vigil->board;
    const tti_roll   roll = { .what = vigil->what };
    char             key[TTI_BOARD_KEY_BYTES];
    bool             there = true;

    tti_roll_key(&roll, rank, key);
    return board->has(board->context, key, patience(vigil), &there) == TUTTI_OK && !there;
}

static bool is_member(const tti_vigil *vigil, const tti_ending *ending)
{
    return ending->rank >= 0 && ending->rank < vigil->n_ranks && ending->rank != vigil->rank;
}

/* Endings that were not looked at yet: each asks the board once. */
static void read_endings(tti_vigil *vigil, const tti_bulletin *bulletin)
{
    tti_ending ending;

    vigil->board->catch_up(vigil->board->context); /* first: what is put up from here on ends the next wait */
    while (vigil->ended == 0 && tti_bulletin_read(bulletin, vigil->n_endings, &ending)) {
        vigil->n_endings++;
        if (!is_member(vigil, &ending))
            continue;
        if (is_missing(vigil, ending.rank))
            vigil->ended = vigil->n_endings;
        else if (vigil->came == 0)
            vigil->came = vigil->n_endings;
    }
}

static tutti_status look_at_endings(tti_vigil *vigil, int awaited)
{
    const tti_bulletin *bulletin = heeded(vigil);
    tti_ending          ending;
    tutti_status        st;

    if (bulletin == NULL)
        return TUTTI_OK;
    read_endings(vigil, bulletin);
    if (vigil->ended == 0 && vigil->came != 0 && !vigil->is_last && is_missing(vigil, awaited))
        vigil->ended = vigil->came;
    if (vigil->ended == 0 || !tti_bulletin_read(bulletin, vigil->ended - 1, &ending))
        return TUTTI_OK;
    st = tti_bulletin_fail(bulletin, &ending, vigil->rank, vigil->n_ranks);
    return ending.signal != 0 ? st : tti_trouble_explain(vigil->board, vigil->port, st);
}

static tutti_status look_for_trouble(const tti_vigil *vigil, int awaited)
{
    tti_trouble trouble;

    if (!tti_trouble_find(vigil->board, patience(vigil), &trouble))
        return TUTTI_OK;
    return tti_fail((tutti_status)trouble.status, "rank %d waits for rank %d, which has not come; another process reported: %s",
                    vigil->rank, awaited, trouble.words);
}

tutti_status tti_vigil_look(tti_vigil *vigil, int rank)
{
    tutti_status st = look_at_endings(vigil, rank);

    return st == TUTTI_OK ? look_for_trouble(vigil, rank) : st;
}

tutti_status tti_vigil_name_the_ended(const tti_vigil *vigil, int n_come, tutti_status st)
{
    const tti_bulletin *bulletin = heeded(vigil);
    tti_ending          ending;
    uint32_t            i;

    for (i = 0; bulletin != NULL && tti_bulletin_read(bulletin, i, &ending); i++)
        if (ending.rank >= n_come && is_member(vigil, &ending))
            return tti_bulletin_fail(bulletin, &ending, vigil->rank, vigil->n_ranks);
    return st;
}
