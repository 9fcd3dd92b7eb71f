/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.c - the rehearsed world: its dice and its trace, who goes on next, and the clock.
 *
 * How     Players are fibers. One goes on until it waits, yields, or loses its turn (tti_stage_preempt); then one of those
 *         that can go on, chosen by the dice, does. Each turn takes a little time. If nobody can go on, the clock jumps to
 *         the next moment at which somebody can: a deadline, bytes that arrive, the end of a fault.
 *         Who polls is looked at again when something has changed that its process may poll, or time has come for it.
 *         Who yields is left alone for a while, longer each time in a row, so that a loop of yields lets the clock move.
 * True    A run is a function of its seed: the machine's clock and dice are not looked at.
 * Dead    A process that was killed does not go on, its streams end, its sign of life is given. When all ranks that are
 *         left have returned it goes on as a ghost, alone with what it had, so that it gives back its memory: who is dead
 *         and who was stopped for very long differ only in what the others see.
 * Fails   When nobody can go on, ever, or the world has lasted too long, it ends there, with words that tell what each
 *         player waits for. Its memory is lost then. */
#include "rehearse/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { TURN_NS = 200, TURN_MORE_NS = 1000, YIELD_NS = 1000, YIELD_DOUBLES = 12 };

/* splitmix64 */
uint64_t tti_stage_dice(tti_stage *stage)
{
    uint64_t z = (stage->dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t tti_stage_roll(tti_stage *stage, uint64_t n)
{
    return tti_stage_dice(stage) % n;
}

void tti_stage_note(tti_stage *stage, const char *what, int64_t a, int64_t b)
{
    const int64_t parts[] = { stage->now_ns, stage->running != NULL ? stage->running->index : -1, what[0], a, b };
    size_t        i;

    for (i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        stage->trace = (stage->trace ^ (uint64_t)parts[i]) * UINT64_C(0xff51afd7ed558ccd);
        stage->trace ^= stage->trace >> 32;
    }
    if (stage->tells)
        fprintf(stderr, "%12.6f ms %-10s %-16s %s %" PRId64 " %" PRId64 "\n", (double)stage->now_ns / 1e6,
                stage->running != NULL ? stage->running->process->name : "-",
                stage->running != NULL ? stage->running->name : "-", what, a, b);
}

/* ---- processes and players -------------------------------------------------------------------------- */

tutti_status tti_stage_add_process(tti_stage *stage, const char *name, int host, int rank, tti_process **process_out)
{
    tti_process **more = realloc(stage->processes, (size_t)(stage->n_processes + 1) * sizeof(tti_process *));
    tti_process  *process = calloc(1, sizeof *process);

    if (more != NULL)
        stage->processes = more;
    if (more == NULL || process == NULL) {
        free(process);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a process of a rehearsal");
    }
    *process = (tti_process){ .index = stage->n_processes, .host = host, .rank = rank };
    snprintf(process->name, sizeof process->name, "%s", name);
    stage->processes[stage->n_processes++] = process;
    stage->n_ranks_left += rank >= 0;
    *process_out = process;
    return TUTTI_OK;
}

/* The first player of a process has returned. */
static void process_done(tti_stage *stage, tti_process *process)
{
    process->done = true;
    if (process->rank >= 0 && !process->dead)
        stage->n_ranks_left--;
}

static void player_main(void *arg)
{
    tti_player *player = arg;
    tti_stage  *stage = player->stage;

    player->body(player->arg);
    player->kind = TTI_HAS_ENDED;
    tti_stage_note(stage, "ends", player->index, 0);
    if (player->is_first)
        process_done(stage, player->process);
    stage->n_live--;
    if (--player->process->n_fibers == 0 && !player->process->dead)
        tti_wires_end_process(stage, player->process);
    tti_wires_note_end(stage, player->process);
}

tutti_status tti_stage_add_player(tti_stage *stage, tti_process *process, const char *name, void (*body)(void *arg),
                                  void *arg, tti_player **player_out)
{
    tti_player  *player = calloc(1, sizeof *player);
    tti_player **more;
    tutti_status st;

    if (stage->n_players == stage->room_players) {
        more = realloc(stage->players, (size_t)(stage->room_players + 32) * sizeof(tti_player *));
        if (more != NULL) {
            stage->players = more;
            stage->room_players += 32;
        }
    }
    if (player == NULL || stage->n_players == stage->room_players) {
        free(player);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a thread of a rehearsal");
    }
    *player = (tti_player){ .stage = stage, .process = process, .body = body, .arg = arg,
                            .index = stage->next_index++, .is_first = process->n_fibers == 0 && !process->done };
    snprintf(player->name, sizeof player->name, "%s", name);
    st = tti_fiber_create(&stage->crew, player_main, player, &player->fiber);
    if (st != TUTTI_OK) {
        free(player);
        return st;
    }
    process->n_fibers++;
    stage->n_live++;
    stage->players[stage->n_players++] = player;
    tti_stage_note(stage, "starts", player->index, process->index);
    *player_out = player;
    return TUTTI_OK;
}

/* Forget those that have ended and that nobody will join, or has. */
static void sweep(tti_stage *stage)
{
    int i, n = 0;

    for (i = 0; i < stage->n_players; i++) {
        tti_player *player = stage->players[i];

        if (player->kind == TTI_HAS_ENDED && (player->joined || player->is_first)) {
            tti_fiber_destroy(player->fiber);
            free(player);
        } else {
            stage->players[n++] = player;
        }
    }
    stage->n_players = n;
}

/* ---- turns ---------------------------------------------------------------------------------------------- */

static bool may_go_on(const tti_stage *stage, const tti_process *process)
{
    return (!process->dead || process->ghost) && process->stopped_until_ns <= stage->now_ns;
}

/* Whether what it polls is ready, or time is up. Remembers that it is not. */
static bool poll_ends(tti_stage *stage, tti_player *player)
{
    if (player->looked == player->process->changes && stage->now_ns < player->look_ns)
        return false;
    if (tti_wires_look(stage, player->set, player->n_set) > 0 || stage->now_ns >= player->deadline_ns)
        return true;
    player->looked = player->process->changes;
    player->look_ns = tti_wires_due(stage, player->set, player->n_set);
    if (player->deadline_ns < player->look_ns)
        player->look_ns = player->deadline_ns;
    return false;
}

static bool can_go_on(tti_stage *stage, tti_player *player)
{
    if (player->kind == TTI_HAS_ENDED || !may_go_on(stage, player->process))
        return false;
    switch (player->kind) {
    case TTI_GOES_ON: return true;
    case TTI_WAITS_END: return player->other->kind == TTI_HAS_ENDED;
    case TTI_WAITS_WORD:
        if (player->woken)
            return true;
        break;
    case TTI_WAITS_POLL: return poll_ends(stage, player);
    case TTI_WAITS_TIME:
    case TTI_HAS_ENDED: break;
    }
    return stage->now_ns >= player->deadline_ns;
}

static int64_t sooner(int64_t best, int64_t at, int64_t now)
{
    return at > now && at < best ? at : best;
}

/* When a player could go on by the clock alone; who is stopped may have something to go on with by then. */
static int64_t alarm_of(const tti_stage *stage, const tti_player *player)
{
    const tti_process *process = player->process;

    if (player->kind == TTI_HAS_ENDED || (process->dead && !process->ghost))
        return TTI_FOREVER;
    if (process->stopped_until_ns > stage->now_ns)
        return process->stopped_until_ns;
    if (player->kind == TTI_WAITS_POLL)
        return player->look_ns;
    return player->kind == TTI_WAITS_TIME || player->kind == TTI_WAITS_WORD ? player->deadline_ns : TTI_FOREVER;
}

static int64_t next_moment(const tti_stage *stage)
{
    int64_t best = sooner(stage->settle_ns, tti_faults_next(stage), stage->now_ns);
    int     i;

    for (i = 0; i < stage->n_players; i++)
        best = sooner(best, alarm_of(stage, stage->players[i]), stage->now_ns);
    return best;
}

/* Who goes on next; NULL: nobody ever can. The clock jumps only here. */
static tti_player *choose(tti_stage *stage)
{
    for (;;) {
        tti_player *chosen = NULL;
        uint64_t    n = 0;
        int64_t     next;
        int         i;

        tti_wires_settle(stage);
        for (i = 0; i < stage->n_players; i++)
            if (can_go_on(stage, stage->players[i]) && tti_stage_roll(stage, ++n) == 0)
                chosen = stage->players[i];
        if (chosen != NULL)
            return chosen;
        next = next_moment(stage);
        if (next == TTI_FOREVER)
            return NULL;
        stage->now_ns = next;
        tti_faults_do(stage);
    }
}

static const char *describe(const tti_stage *stage, const tti_player *player, char out[96])
{
    static const char *const kinds[] = { "a turn", "a time", "a word", "a poll", "the end of another", "" };
    const char *state = player->process->dead                                ? " (dead)"
                        : player->process->stopped_until_ns > stage->now_ns ? " (stopped)"
                                                                             : "";

    if (player->kind == TTI_WAITS_END || player->kind == TTI_GOES_ON || player->deadline_ns == TTI_FOREVER)
        snprintf(out, 96, "%s%s", kinds[player->kind], state);
    else
        snprintf(out, 96, "%s, until %" PRId64 " ms%s", kinds[player->kind], player->deadline_ns / TTI_MS, state);
    return out;
}

static tutti_status fail_stuck(tti_stage *stage, const char *why)
{
    char   lines[1500];
    char   text[96];
    size_t used = 0;
    int    i;

    tti_crew_home(&stage->crew);
    lines[0] = '\0';
    for (i = 0; i < stage->n_players && used < sizeof lines - 160; i++) {
        const tti_player *player = stage->players[i];

        if (player->kind != TTI_HAS_ENDED)
            used += (size_t)snprintf(lines + used, sizeof lines - used, "\n  %s, '%s' waits for %s", player->process->name,
                                     player->name, describe(stage, player, text));
    }
    return tti_fail(TUTTI_E_TIMEOUT, "the rehearsal %s: %" PRId64 " ms, %" PRIu64 " turns%s", why, stage->now_ns / TTI_MS,
                    stage->steps, lines);
}

/* One turn of one player. */
static tutti_status take_turn(tti_stage *stage)
{
    tti_player *player;

    tti_faults_do(stage);
    player = choose(stage);
    if (player == NULL && stage->n_ranks_left == 0 && atomic_load(&stage->over) == 0)
        return TUTTI_OK; /* the last ones were lost while nobody could go on */
    if (player == NULL)
        return fail_stuck(stage, "came to where nobody can go on");
    if (stage->now_ns > stage->limit_ns || stage->steps >= stage->steps_max)
        return fail_stuck(stage, "did not come to its end");
    stage->steps++;
    player->process->turns++;
    stage->now_ns += TURN_NS + (int64_t)tti_stage_roll(stage, TURN_MORE_NS);
    stage->running = player;
    tti_stage_note(stage, ">", player->kind, 0);
    player->kind = TTI_GOES_ON;
    tti_fiber_run(player->fiber);
    stage->running = NULL;
    if (player->kind == TTI_HAS_ENDED)
        sweep(stage);
    return TUTTI_OK;
}

static void let_ghosts_go(tti_stage *stage)
{
    int i;

    for (i = 0; i < stage->n_processes; i++)
        stage->processes[i]->ghost = stage->processes[i]->dead;
    atomic_store(&stage->over, 1);
    stage->port.ops->wake_word(&stage->port, &stage->over);
}

tutti_status tti_stage_play(tti_stage *stage)
{
    tutti_status st = TUTTI_OK;

    while (st == TUTTI_OK && stage->n_ranks_left > 0)
        st = take_turn(stage);
    stage->n_faults = 0; /* no more */
    stage->limit_ns += stage->now_ns;
    stage->steps_max += stage->steps;
    if (st == TUTTI_OK)
        let_ghosts_go(stage);
    while (st == TUTTI_OK && stage->n_live > 0)
        st = take_turn(stage);
    tti_crew_home(&stage->crew);
    return st;
}

/* ---- what players do ------------------------------------------------------------------------------------- */

void tti_stage_wait(tti_stage *stage)
{
    tti_player *player = stage->running;

    assert(player != NULL); /* only players wait */
    if (player->kind != TTI_WAITS_TIME)
        player->yields = 0;
    tti_fiber_pause(player->fiber);
}

void tti_stage_preempt(tti_stage *stage)
{
    if (stage->running == NULL || tti_stage_roll(stage, (uint64_t)stage->preempt_every) != 0)
        return;
    stage->running->kind = TTI_GOES_ON;
    tti_fiber_pause(stage->running->fiber);
}

void tti_stage_yield(tti_stage *stage)
{
    tti_player *player = stage->running;
    const int   doubled = player->yields < YIELD_DOUBLES ? player->yields : YIELD_DOUBLES;

    player->yields++;
    player->kind = TTI_WAITS_TIME;
    player->deadline_ns = stage->now_ns + ((int64_t)YIELD_NS << doubled) / 4;
    tti_fiber_pause(player->fiber);
}

void tti_stage_free(tti_stage *stage)
{
    int i;

    for (i = 0; i < stage->n_players; i++) {
        tti_fiber_destroy(stage->players[i]->fiber);
        free(stage->players[i]);
    }
    tti_wires_free(stage);
    for (i = 0; i < stage->n_processes; i++)
        free(stage->processes[i]);
    free(stage->players);
    free(stage->processes);
    tti_crew_end(&stage->crew);
}
