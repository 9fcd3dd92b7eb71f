/* SPDX-License-Identifier: BSD-3-Clause
 *
 * told.c - why a group cannot be made: what its members tell each other, and are told.
 *
 * Why     Who knows that a group will not be made leaves, and is gone for those that still wait for it, or for others. They should
 *         read why, and not that somebody is gone, or that time is up.
 * How     What is known is looked for each time that a member that is awaited has not come yet (team.c), and "time-up" when all have:
 *           on the board      "mismatch"  members were given different lists, or choose differently; told and heard here
 *                             "time-up"   the number of one that gave up for want of time; told and heard here
 *                             "refused/"  and a rank: it could not make the group; told by group/world_create.c
 *           by the messenger              the group that this one is made in has failed
 *         On the board the first one stays. A world's first group has besides what transport/trouble.h and vigil.h tell.
 * Late    What a member leaves stays on the board when it gives up, and whoever comes after that finds all pieces there. So who gives up
 *         for want of time leaves a mark, the first one its number, and who has read all pieces looks for it. Who shares memory with all
 *         members finds their doors shut instead (host/channel.c). A mark that comes behind that look is too late: such a group is made
 *         for this rank, and its first call hears that the other is gone, or waits for it in vain.
 * True    The words of a failure that is told, or for which nobody has told a better reason, are the last error behind it, too. */
#include "coll/told.h"

#include <tutti/private.h>
#include "base/clip.h"
#include "transport/trouble.h"

enum { TOLD_MAX = TTI_MISMATCH_WORDS_MAX, REASON_MS = 1000, REASON_LOOK_MS = 5 };

#define TIME_UP_KEY "time-up"

/* ---- calls that differ ---- */

tutti_status tti_team_tell_mismatch(const tti_team *team, const tti_board *board)
{
    const int64_t deadline_ns = tti_board_grace(board, team->port);
    char          words[TOLD_MAX] = "";
    tti_words     kept = { .used = 0 };

    tti_words_add(&kept, "%s", tutti_last_error());
    tti_clip(words, sizeof words, "rank %d reported: %s", team->ranks[team->rank], kept.text);
    board->put(board->context, TTI_MISMATCH_KEY, words, sizeof words, deadline_ns); /* the first one stays */
    return tti_fail(TUTTI_E_MISMATCH, "%s", kept.text);
}

tutti_status tti_team_ask_for_mismatch(const tti_team *team, const tti_board *board, int64_t until_ns, bool *answered_out)
{
    const int64_t deadline_ns = tti_board_patience(board, team->port, until_ns);
    char          words[TOLD_MAX];
    bool          there = false;

    *answered_out = board->has(board->context, TTI_MISMATCH_KEY, deadline_ns, &there) == TUTTI_OK;
    if (!*answered_out || !there || board->get(board->context, TTI_MISMATCH_KEY, words, sizeof words, deadline_ns) != TUTTI_OK)
        return TUTTI_OK;
    words[sizeof words - 1] = '\0';
    return tti_fail(TUTTI_E_MISMATCH, "group '%s' on rank %d: %s", team->name, team->ranks[team->rank], words);
}

tutti_status tti_team_look_for_mismatch(const tti_team *team, const tti_board *board, int64_t until_ns)
{
    bool answered;

    return tti_team_ask_for_mismatch(team, board, until_ns, &answered);
}

/* ---- who gives up ---- */

/* Members that make a group in their first call, and a world that is founded, hear of it otherwise. */
static bool has_marks(const tti_team *team)
{
    return !team->founds && !team->lazy;
}

tutti_status tti_team_tell_time_up(const tti_team *team, const tti_board *board, int64_t deadline_ns, tutti_status st)
{
    const int32_t rank = team->ranks[team->rank];
    tti_words     kept = { .used = 0 };

    if (!has_marks(team))
        return st;
    tti_words_add(&kept, "%s", tutti_last_error());
    (void)board->put(board->context, TIME_UP_KEY, &rank, sizeof rank, tti_board_patience(board, team->port, deadline_ns));
    return tti_fail(st, "%s", kept.text);
}

tutti_status tti_team_look_who_gave_up(const tti_team *team, const tti_board *board, int64_t deadline_ns)
{
    const int64_t until_ns = tti_board_patience(board, team->port, deadline_ns);
    int32_t       rank = -1;
    bool          there = false;
    tutti_status  st;

    if (!has_marks(team) || board->has(board->context, TIME_UP_KEY, until_ns, &there) != TUTTI_OK || !there ||
        board->get(board->context, TIME_UP_KEY, &rank, sizeof rank, until_ns) != TUTTI_OK || rank < 0 || rank >= tti_mesh_size(team->mesh))
        return TUTTI_OK;
    st = tti_team_look_for_mismatch(team, board, until_ns);
    if (st != TUTTI_OK)
        return st;
    return tti_fail(TUTTI_E_PEER, TTI_GAVE_UP_WORDS, team->name, (int)rank, tti_mesh_whereabouts(team->mesh, (int)rank), (int)rank);
}

/* ---- who never comes ---- */

tutti_status tti_team_look_for_refusal(const tti_team *team, const tti_board *board, int rank, int64_t deadline_ns)
{
    tti_trouble trouble;

    if (!tti_refusal_find(board, team->ranks[rank], tti_board_patience(board, team->port, deadline_ns), &trouble))
        return TUTTI_OK;
    return tti_fail((tutti_status)trouble.status, "group '%s' cannot be made on rank %d: %s", team->name, team->ranks[team->rank],
                    trouble.words);
}

tutti_status tti_team_unless_told(const tti_team *team, const tti_board *board, int rank, int64_t deadline_ns, tutti_status st)
{
    tti_words    kept = { .used = 0 };
    tutti_status told;

    tti_words_add(&kept, "%s", tutti_last_error());
    told = tti_team_look_for_mismatch(team, board, deadline_ns);
    if (told == TUTTI_OK)
        told = tti_team_look_for_refusal(team, board, rank, deadline_ns);
    return told != TUTTI_OK ? told : tti_fail(st, "%s", kept.text);
}

/* ---- the group that this one is made in ---- */

/* How it has failed; TUTTI_OK: it has not. */
static tutti_status look_outside(const tti_team *team)
{
    tti_words          words = { .used = 0 };
    const tutti_status st =
        team->within != NULL && team->messenger != NULL ? tti_messenger_heard(team->messenger, *team->within) : TUTTI_OK;

    if (st == TUTTI_OK)
        return TUTTI_OK;
    tti_words_add(&words, "%s", tutti_last_error());
    return tti_fail(st, "group '%s' cannot be made: %s", team->name, words.text);
}

tutti_status tti_team_look_within(const tti_team *team)
{
    const tutti_status st = look_outside(team);

    return st == TUTTI_E_MISMATCH ? TUTTI_OK : st;
}

/* Whether the board is lost: st says so, or tells of somebody who has left, perhaps with it. The last error stays. */
static bool is_lost(const tti_team *team, const tti_board *board, tutti_status st, bool has_left)
{
    tti_words kept = { .used = 0 };
    bool      there = false, lost;

    if (st != TUTTI_E_PEER || !has_left)
        return st == TUTTI_E_NETWORK;
    tti_words_add(&kept, "%s", tutti_last_error());
    lost = board->has(board->context, TTI_MISMATCH_KEY, tti_board_grace(board, team->port), &there) == TUTTI_E_NETWORK;
    tti_fail(st, "%s", kept.text);
    return lost;
}

tutti_status tti_team_hear_why(const tti_team *team, const tti_board *board, tutti_status st, bool has_left, int64_t deadline_ns)
{
    tti_port     *port = team->port;
    const int64_t reason_ns = tti_port_now(port) + REASON_MS * TTI_MS;
    const int64_t until_ns = reason_ns < deadline_ns ? reason_ns : deadline_ns;
    tti_words     kept = { .used = 0 };
    tutti_status  why;

    if (team->within == NULL || team->messenger == NULL || !is_lost(team, board, st, has_left))
        return st;
    tti_words_add(&kept, "%s", tutti_last_error());
    while ((why = look_outside(team)) == TUTTI_OK && tti_port_now(port) < until_ns &&
           !atomic_load_explicit(&team->aborted, memory_order_acquire))
        port->ops->sleep_until(port, tti_port_now(port) + REASON_LOOK_MS * TTI_MS);
    return why != TUTTI_OK ? why : tti_fail(st, "%s", kept.text);
}
