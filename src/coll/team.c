/* SPDX-License-Identifier: BSD-3-Clause
 *
 * team.c - the members of a group, and their meeting on the board. Why they may not meet is in told.c. */
#include "coll/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/fnv.h"
#include "coll/absent.h"
#include "coll/handed.h"
#include "coll/told.h"
#include "transport/trouble.h"
#include "transport/vigil.h"

#define MEMBER "member"

tutti_status tti_team_init(tti_team *team, const tti_coll_config *config)
{
    const size_t bytes = (size_t)config->n_ranks * sizeof *team->ranks;

    *team = (tti_team){ .mesh = config->mesh, .messenger = config->messenger,
                        .port = tti_mesh_port(config->mesh), .group_id = config->group_id, .founds = config->founds,
                        .rank = config->rank, .n_ranks = config->n_ranks, .within = config->lazy ? NULL : config->within,
                        .has_queued = config->has_queued, .lazy = config->lazy };
    team->ranks = malloc(bytes);
    team->name = strdup(config->name);
    if (team->ranks == NULL || team->name == NULL) {
        tti_team_release(team);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a group of %d ranks", config->n_ranks);
    }
    memcpy(team->ranks, config->ranks, bytes);
    team->deed = tti_health_deed(tti_mesh_health(config->mesh));
    team->board = &team->own_board;
    return TUTTI_OK;
}

void tti_team_release(tti_team *team)
{
    tti_joins_let_go(team);
    free(team->ranks);
    free(team->name);
    team->ranks = NULL;
    team->name = NULL;
}

bool tti_team_on_one_host(const tti_team *team)
{
    const int host = tti_mesh_host(team->mesh, team->ranks[team->rank]);
    int       r;

    for (r = 0; r < team->n_ranks; r++)
        if (tti_mesh_host(team->mesh, team->ranks[r]) != host)
            return false;
    return true;
}

/* What a reader of the members' joins has at hand. */
typedef struct reader {
    const tti_team  *team;
    const tti_board *board;
    const tti_join  *mine;
    const tti_join  *all;
    int64_t          deadline_ns;
    bool             founds;   /* as in tti_coll_config */
    tti_vigil        vigil;    /* then */
    bool             answered; /* the board did, at the latest look */
    bool             has_left; /* who is awaited, at the latest look, if it is gone: nothing proves that it is dead */
    bool             crossed;  /* who is awaited waits for this rank, in a call of group `crossed_in` */
    uint32_t         crossed_in;
    tti_absent       absent;   /* who had not come when time was nearly up */
} reader;

static tti_roll roll_of(const tti_team *team, const tti_board *board)
{
    return (tti_roll){ .port = team->port, .board = board, .what = MEMBER, .n = team->n_ranks,
                       .bytes = sizeof(tti_join) };
}

static void key_of(const tti_team *team, const tti_board *board, int rank, char key_out[TTI_BOARD_KEY_BYTES])
{
    const tti_roll roll = roll_of(team, board);

    tti_roll_key(&roll, rank, key_out);
}

/* Whether a member that is dead may be one for which the others do not come. Those of a world come by themselves as far as
 * here, so that one that had come is missed by nobody before the first call. */
static bool is_missed(const reader *r, int rank)
{
    const tti_board *board = r->board;
    char             key[TTI_BOARD_KEY_BYTES];
    bool             there = false;

    if (!r->founds)
        return true;
    key_of(r->team, board, rank, key);
    return board->has(board->context, key, tti_board_patience(board, r->team->port, r->deadline_ns), &there) != TUTTI_OK || !there;
}

/* A member behind the one that is awaited, which may never come because of that: the first that is dead. */
static tutti_status look_behind(const reader *r, int rank)
{
    const tti_team *team = r->team;
    char            words[256];
    int             i;

    for (i = rank + 1; i < team->n_ranks; i++)
        if (tti_health_is_lost(tti_mesh_health(team->mesh), team->ranks[i]) &&
            !tti_mesh_is_alive(team->mesh, team->ranks[i], words, sizeof words) && is_missed(r, i))
            return tti_fail(TUTTI_E_PEER, "group '%s' cannot be made: %s", team->name, words);
    return TUTTI_OK;
}

/* Who has left the world comes to no group of it any more. If it had come to this one before, it is read, and not asked about. */
static tutti_status look_for_who_left(const reader *r, int rank)
{
    const tti_team *team = r->team;
    const int       global = team->ranks[rank];

    if (r->founds || tti_health_of(tti_mesh_health(team->mesh), global).life != TTI_LIFE_LEFT)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_PEER, "group '%s' cannot be made: rank %d has not joined, and rank %d (%s) has left the world", team->name,
                    global, global, tti_mesh_whereabouts(team->mesh, global));
}

/* Who is known to be gone: rank, which is awaited, or one behind it. */
static tutti_status look_for_the_gone(reader *r, int rank)
{
    const tti_team *team = r->team;
    char            words[256];
    tutti_status    st;

    r->has_left = tti_health_of(tti_mesh_health(team->mesh), team->ranks[rank]).life != TTI_LIFE_DEAD;
    if (tti_mesh_is_alive(team->mesh, team->ranks[rank], words, sizeof words)) {
        st = look_for_who_left(r, rank);
        return st == TUTTI_OK ? look_behind(r, rank) : st;
    }
    return tti_fail(TUTTI_E_PEER, "group '%s' cannot be made: rank %d has not joined, and %s", team->name, team->ranks[rank],
                    words);
}

/* The one that is awaited does something else: it has refused, or waits for this rank elsewhere. */
static tutti_status look_elsewhere(reader *r, int rank)
{
    const tti_team *team = r->team;
    tutti_status    st = tti_team_look_for_refusal(team, r->board, rank, r->deadline_ns);

    if (st != TUTTI_OK || team->within == NULL || team->messenger == NULL || team->has_queued)
        return st;
    st = tti_messenger_look_crossed(team->messenger, team->ranks[rank], team->group_id, team->name, &r->crossed_in);
    r->crossed = st != TUTTI_OK;
    return st;
}

/* Why waiting for rank, which has not come yet, is pointless; TUTTI_OK: it may still come. */
static tutti_status look_at(void *ctx, int rank)
{
    reader         *r = ctx;
    const tti_team *team = r->team;
    tutti_status    st;

    if (atomic_load_explicit(&team->aborted, memory_order_acquire))
        return tti_fail(TUTTI_E_ABORTED, "group '%s' was aborted on rank %d before all had joined it",
                        team->name, team->ranks[team->rank]);
    st = look_for_the_gone(r, rank);
    if (st == TUTTI_E_PEER && r->founds) /* it may have given up, for another */
        st = tti_trouble_explain(r->board, team->port, st);
    else if (st == TUTTI_E_PEER)
        st = tti_team_unless_told(team, r->board, rank, r->deadline_ns, st);
    if (st == TUTTI_OK && r->founds)
        st = tti_vigil_look(&r->vigil, rank);
    if (st == TUTTI_OK)
        st = tti_team_look_within(team);
    if (st == TUTTI_OK)
        st = tti_team_ask_for_mismatch(team, r->board, r->deadline_ns, &r->answered);
    r->crossed = false;
    if (st == TUTTI_OK && r->founds)
        tti_absent_keep(&r->absent, rank, r->deadline_ns);
    return st == TUTTI_OK && !r->founds ? look_elsewhere(r, rank) : st;
}

/* "ranks 0, 1, 2": what this rank takes for the members. */
static void add_members(const tti_team *team, tti_words *words)
{
    bool *all = malloc((size_t)team->n_ranks * sizeof *all);

    if (all == NULL) {
        tti_words_add(words, "%d members", team->n_ranks);
        return;
    }
    memset(all, true, (size_t)team->n_ranks * sizeof *all);
    tti_team_add_ranks(team, words, all);
    free(all);
}

#define NEXT_SAME_MEMBERS "\n  next: give all ranks the same lists of members, and make groups in the same order everywhere"

/* Another rank has left its own card in this rank's place. */
static tutti_status fail_place(const tti_team *team)
{
    tti_words words = { .used = 0 };

    add_members(team, &words);
    return tti_fail(TUTTI_E_MISMATCH,
                    "group '%s': rank %d takes itself for number %d of %s, and so does another rank in a list of its "
                    "own" NEXT_SAME_MEMBERS,
                    team->name, team->ranks[team->rank], team->rank, words.text);
}

/* Time is up while the group is made, as words say; and who is not well: of among[n], for which it was not made, or, where the board does
 * not answer, among is NULL, and it is of all, as one that is no member may serve it. Of who has come nothing is said: one that gives up
 * for the same reason, a moment before this rank, has left. */
static tutti_status fail_in_time(const tti_team *team, const char *words, const int *among, int n)
{
    const char *same_groups = team->founds ? "check that these ranks make the same groups in the same order"
                                           : "check that these ranks make the same groups in the same order, and of the same lists of members";
    const char *otherwise =
        among != NULL ? same_groups : "see whether the process that serves the store is stopped, or out of reach";
    tti_words   unwell = { .used = 0 };
    char        step[TTI_NEXT_TEXT_MAX];

    n = among != NULL ? n : tti_mesh_size(team->mesh);
    tti_team_add_unwell_among(team, &unwell, among, n);
    if (!team->founds) { /* another may have been given another list, and looks for others under another name */
        tti_words_add(&unwell, "\n  its members, as rank %d has them: ", team->ranks[team->rank]);
        add_members(team, &unwell);
    }
    return tti_fail(TUTTI_E_TIMEOUT, "group '%s' timed out on rank %d of %d members while it was made%s%s\n  next: %s", team->name,
                    team->ranks[team->rank], team->n_ranks, words, unwell.text,
                    tti_team_next_step_among(team, among, n, otherwise, step));
}

/* This rank could not leave its own piece in time. */
static tutti_status fail_unannounced(const tti_team *team)
{
    tti_words words = { .used = 0 };

    tti_words_add(&words, "\n  %.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
    return fail_in_time(team, words.text, NULL, 0);
}

tutti_status tti_team_announce(const tti_team *team, const tti_board *board, int64_t deadline_ns, tti_join *mine)
{
    char         key[TTI_BOARD_KEY_BYTES];
    tutti_status st;

    mine->n_members = (uint64_t)team->n_ranks;
    mine->members = tti_fnv(TTI_FNV_BEGIN, team->ranks, (size_t)team->n_ranks * sizeof *team->ranks);
    key_of(team, board, team->rank, key);
    st = board->put(board->context, key, mine, sizeof *mine, deadline_ns);
    if (st == TUTTI_E_TIMEOUT)
        return fail_unannounced(team);
    if (st != TUTTI_E_STATE) /* there is one already */
        return tti_team_hear_why(team, board, st, false, deadline_ns);
    fail_place(team);
    return tti_team_tell_mismatch(team, board);
}

/* Both make the same group. Whoever stands in place rank may be another than this rank's list says. */
static tutti_status compare_members(const tti_team *team, const tti_join *mine, const tti_join *other, int rank)
{
    tti_words words = { .used = 0 };

    if (mine->n_members == other->n_members && mine->members == other->members)
        return TUTTI_OK;
    add_members(team, &words);
    return tti_fail(TUTTI_E_MISMATCH,
                    "group '%s' is of %s on rank %d; who came as number %d has another list, of %llu" NEXT_SAME_MEMBERS,
                    team->name, words.text, team->ranks[team->rank], rank, (unsigned long long)other->n_members);
}

tutti_status tti_team_look_around(const tti_team *team, const tti_board *board, const tti_join *mine)
{
    const int64_t deadline_ns = tti_board_grace(board, team->port);
    const int     next = team->n_ranks; /* the first place that only longer lists have */
    tti_join      other;
    char          key[TTI_BOARD_KEY_BYTES];
    bool          there = false;

    key_of(team, board, next, key);
    if (board->has(board->context, key, deadline_ns, &there) == TUTTI_OK && there &&
        board->get(board->context, key, &other, sizeof other, deadline_ns) == TUTTI_OK &&
        compare_members(team, mine, &other, next) != TUTTI_OK)
        return tti_team_tell_mismatch(team, board);
    return tti_team_look_for_mismatch(team, board, tti_port_now(team->port));
}

/* Both choose alike. */
static tutti_status compare(const tti_team *team, const tti_join *mine, const tti_join *other, int rank)
{
    const char *what = mine->algorithms != other->algorithms       ? "TUTTI_ALGO the same value"
                       : mine->tune != other->tune                 ? "TUTTI_TUNE the same table"
                       : mine->reproducible != other->reproducible ? "TUTTI_REPRODUCIBLE the same value"
                                                                   : NULL;

    if (what == NULL)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_MISMATCH,
                    "group '%s': ranks %d and %d were told to take different algorithms\n"
                    "  next: give %s on all ranks",
                    team->name, team->ranks[team->rank], team->ranks[rank], what);
}

/* Rank's join has come. */
static tutti_status come(void *ctx, int rank)
{
    reader      *r = ctx;
    tutti_status st = compare_members(r->team, r->mine, &r->all[rank], rank);

    r->crossed = false; /* it has come, wherever it waited */
    if (st == TUTTI_OK)
        st = compare(r->team, r->mine, &r->all[rank], rank);
    return st == TUTTI_E_MISMATCH ? tti_team_tell_mismatch(r->team, r->board) : st;
}

/* For this rank and the others of its host, which take the joins from its memory. */
static tutti_status read_for_host(tti_team *team, tti_scribe *scribe, int64_t deadline_ns, tti_join *all_out, int *n_out)
{
    uint64_t     at = 0, nonce = 0;
    tutti_status st = tti_scribe_read(scribe, deadline_ns, all_out, n_out);

    if (st != TUTTI_OK)
        return st;
    if (tti_joins_hand(team, all_out, &at, &nonce))
        tti_scribe_tell(scribe, TTI_SCRIBE_DONE, at, nonce);
    else
        tti_scribe_tell(scribe, TTI_SCRIBE_ALONE, 0, 0);
    return TUTTI_OK;
}

/* From the memory of who reads for this host; where that cannot be, from the board. */
static tutti_status read_from(const tti_team *team, const tti_scribe *scribe, int64_t deadline_ns, tti_join *all_out, int *n_out)
{
    const tti_roll *roll = scribe->roll;
    tti_scribe_note note;
    tutti_status    st = tti_scribe_await(scribe, deadline_ns, &note, n_out);

    if (st != TUTTI_OK)
        return st;
    if (note.word != TTI_SCRIBE_DONE || !tti_joins_take(team, scribe->rank, &note, all_out))
        return tti_scribe_read_alone(roll, deadline_ns, all_out, n_out);
    for (*n_out = 0; *n_out < team->n_ranks && st == TUTTI_OK; ++*n_out)
        st = roll->come(roll->ctx, *n_out);
    return st;
}

static tutti_status read_joins(tti_team *team, const tti_roll *roll, int64_t deadline_ns, tti_join *all_out, int *n_out)
{
    const int  scribe_rank = tti_team_scribe(team);
    tti_scribe scribe = { .roll = roll, .rank = scribe_rank };

    if (scribe_rank < 0)
        return tti_roll_read(roll, deadline_ns, all_out, n_out);
    scribe.place = (uint64_t)team->ranks[scribe_rank];
    return scribe_rank == team->rank ? read_for_host(team, &scribe, deadline_ns, all_out, n_out)
                                     : read_from(team, &scribe, deadline_ns, all_out, n_out);
}

/* The deadline passed while rank was awaited: look who else has not come, and who is not well. */
static tutti_status fail_not_joined(const reader *r, int rank)
{
    const tti_team *team = r->team;
    int            *absent = malloc((size_t)team->n_ranks * sizeof *absent), n = 0;
    tti_words       words = { .used = 0 };
    bool            answered = r->answered;
    tutti_status    st;

    if (absent != NULL && tti_absent_add(&r->absent, rank, r->founds, &answered, &words, absent, &n))
        st = fail_in_time(team, words.text, answered ? absent : NULL, n);
    else
        st = tti_fail(TUTTI_E_TIMEOUT, "group '%s': rank %d has not joined in time", team->name, team->ranks[rank]);
    free(absent);
    return st;
}

tutti_status tti_team_meet(tti_team *team, const tti_board *board, int64_t deadline_ns, const tti_join *mine,
                           tti_join *all_out)
{
    reader       r = { .team = team, .board = board, .mine = mine, .all = all_out, .deadline_ns = deadline_ns,
                       .founds = team->founds, .answered = true, /* it has taken this rank's own */
                       .vigil = { .port = team->port, .board = board, .rank = team->rank, .n_ranks = team->n_ranks,
                                  .what = MEMBER, .is_last = true, .deadline_ns = deadline_ns } };
    tti_roll     roll = roll_of(team, board);
    const tti_roll asked = roll;
    tutti_status st;
    int          n = 0;

    r.absent = (tti_absent){ .team = team, .roll = &asked };
    roll.come = come;
    roll.awaited = look_at;
    roll.ctx = &r;
    roll.look_ms = tti_roll_look_ms(team->n_ranks);
    roll.look_most_ms = roll.look_ms;
    if (board->heed != NULL)
        board->heed(board->context, &team->aborted);
    if (r.founds)
        tti_vigil_begin(&r.vigil);
    st = read_joins(team, &roll, deadline_ns, all_out, &n);
    if (r.founds)
        tti_vigil_end(&r.vigil);
    if (board->heed != NULL)
        board->heed(board->context, NULL);
    if (st == TUTTI_E_MISMATCH && r.crossed) { /* the other one has not come, and never will */
        tti_team_tell_mismatch(team, board);   /* first: it may serve the board, and end */
        tti_messenger_end_crossed(team->messenger, r.crossed_in);
    }
    st = st == TUTTI_E_TIMEOUT ? tti_team_tell_time_up(team, board, deadline_ns, fail_not_joined(&r, n))
                               : tti_team_hear_why(team, board, st, r.has_left, deadline_ns);
    tti_absent_release(&r.absent);
    return st;
}

void tti_team_describe(const tti_team *part, const tti_call_note *note, char out[TTI_CALL_TEXT_MAX])
{
    const tti_team     *team = tti_team_whole(part);
    const int           root = tti_call_root(note);
    const tti_call_note global =
        root >= 0 && root < team->n_ranks ? tti_call_with_root(note, team->ranks[root]) : *note;

    tti_call_describe(&global, out);
}

tutti_status tti_team_fail_block(const tti_team *team, const tti_call_note *note, int giver,
                                 int taker, int64_t gives, int64_t wants)
{
    char call[TTI_CALL_TEXT_MAX];

    tti_team_describe(team, note, call);
    return tti_fail(TUTTI_E_MISMATCH,
                    "%s on group '%s': rank %d gives rank %d %lld elements, which expects %lld\n"
                    "  next: let what one rank gives be what the other expects",
                    call, team->name, team->ranks[giver], team->ranks[taker], (long long)gives, (long long)wants);
}
