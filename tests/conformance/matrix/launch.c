/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"

enum { TRIES_MAX = 3, LIMIT_MS = 4 * 3600 * 1000 };

/* ---- a rank -------------------------------------------------------------------------------------- */

/* One rank's way through the cells. */
typedef struct runner {
    tutti_group *group;
    int          rank, size; /* in the group; on the board, too */
    int          world;      /* its ranks */
    uint32_t     barriers;   /* of which it was part */
    tt_try      *tries;      /* [TRIES_MAX] */
    bool         broken;     /* a call failed: the group is finished */
    bool         refused;    /* in this cell: the backend has no such call */
} runner;

static int tries_of(const tt_cell *cell, uint64_t seed)
{
    const int64_t count = tt_sizes[cell->at[TT_AXIS_SIZE]];
    const int     most = count <= 1000 ? TRIES_MAX : count <= 100000 ? 2 : 1;

    return 1 + (int)(tt_mix(seed ^ 1) % (uint64_t)most);
}

static bool is_async(const tt_cell *cell, uint64_t seed)
{
    const tt_op_row *row = &tt_ops[cell->at[TT_AXIS_OP]];

    if (row->block == NULL || row->start == NULL)
        return row->block == NULL;
    if (cell->at[TT_AXIS_MODE] == TT_THREADS)
        return tt_mix(seed ^ 2) % 2 == 1;
    return cell->at[TT_AXIS_MODE] == TT_ASYNC;
}

static bool prepare(runner *me, int k, int number, uint64_t seed)
{
    const tt_cell *cell = &tt_the_board->cells[k];
    tt_try        *t = &me->tries[number];

    memset(t, 0, sizeof *t);
    t->row = &tt_ops[cell->at[TT_AXIS_OP]];
    t->group = me->group;
    t->rank = me->rank;
    t->size = me->size;
    t->world = me->world;
    t->hosts = cell->at[TT_AXIS_TRANSPORT] == TT_HOSTS ? 2 : 1;
    t->dtype = (tutti_dtype)cell->at[TT_AXIS_DTYPE];
    t->red = cell->at[TT_AXIS_RED] == TT_RED_NONE ? TUTTI_OP_SUM : (tutti_op_kind)cell->at[TT_AXIS_RED];
    t->count = tt_cell_count(cell);
    t->seed = tt_mix(seed + 16 + (uint64_t)number);
    t->tag = tt_untagged ? 0 : (k * TRIES_MAX + number) * TT_TAGS;
    t->may_refuse = tt_the_board->may_refuse;
    if ((t->row->traits & TT_NO_DATA) != 0) {
        t->arrivals = &tt_the_board->arrivals;
        t->arrivals_due = ++me->barriers * (uint32_t)me->size;
    }
    return tt_try_prepare(t);
}

/* What a step of try t came to. false: it has come to its end; unless it was refused, so has the group. */
static bool goes_on(runner *me, const tt_try *t, bool ok)
{
    me->refused = me->refused || t->refused;
    me->broken = me->broken || (!ok && !t->refused);
    return ok;
}

/* Each to its end before the next begins. */
static bool run_blocking(runner *me, int n)
{
    bool ok = true;
    int  i;

    for (i = 0; i < n && !me->broken; i++)
        if (goes_on(me, &me->tries[i], tt_try_block(&me->tries[i])))
            ok = tt_try_check(&me->tries[i]) && ok;
    return ok && !me->broken;
}

/* All begun before one is waited for. */
static bool run_async(runner *me, int n)
{
    const int first = tt_roll_own(&me->tries[0], 4, n);
    bool      ok = true;
    int       i;

    for (i = 0; i < n && !me->broken; i++)
        goes_on(me, &me->tries[i], tt_try_start(&me->tries[i]));
    for (i = 0; i < n && !me->broken; i++)
        goes_on(me, &me->tries[(first + i) % n], tt_try_wait(&me->tries[(first + i) % n]));
    for (i = 0; i < n && !me->broken; i++)
        ok = (me->tries[i].refused || tt_try_check(&me->tries[i])) && ok;
    return ok && !me->broken;
}

/* Why an operation was refused, for the first of its cells. */
static void note_refusal(const runner *me, int op)
{
    char *words = tt_the_board->refusals[op];
    int   i;

    if (me->rank != 0)
        return;
    for (i = 0; i < TRIES_MAX && words[0] == '\0'; i++)
        if (me->tries[i].refused)
            snprintf(words, TT_WORDS, "%s", me->tries[i].words);
}

/* TT_CELL_PASSED, _FAILED or _REFUSED. */
static unsigned char run_cell(runner *me, int k)
{
    const tt_cell *cell = &tt_the_board->cells[k];
    const uint64_t seed = tt_cell_seed(cell, tt_the_board->seed);
    const int      n = tries_of(cell, seed);
    bool           ok = true;
    int            i;

    me->refused = false;
    for (i = 0; i < TRIES_MAX; i++)
        me->tries[i].refused = false;
    for (i = 0; i < n && !me->broken; i++)
        me->broken = !prepare(me, k, i, seed);
    if (!me->broken)
        ok = is_async(cell, seed) ? run_async(me, n) : run_blocking(me, n);
    for (i = 0; i < n; i++) {
        tt_the_board->bits[k][me->rank] = tt_mix(tt_the_board->bits[k][me->rank] ^ me->tries[i].bits);
        if (me->tries[i].words[0] != '\0' && !me->tries[i].refused)
            tt_board_note(k, me->rank, me->tries[i].words);
    }
    if (me->refused)
        note_refusal(me, cell->at[TT_AXIS_OP]);
    for (i = 0; i < n; i++)
        tt_try_release(&me->tries[i]);
    if (!ok || me->broken)
        return TT_CELL_FAILED;
    return me->refused ? TT_CELL_REFUSED : TT_CELL_PASSED;
}

/* The world, or the group that its cells run on. */
static tutti_group *group_of(tt_ctx *t)
{
    tutti_group *group = t->group;

    if (tt_the_board->cells[0].at[TT_AXIS_WORLD] == TT_WORLD_GROUP &&
        tutti_new_group(tt_group_ranks, TT_GROUP_MEMBERS, NULL, &group) != TUTTI_OK)
        fail_msg("new_group: %s", tutti_last_error());
    return group;
}

/* All cells. false: a call failed, and words_out says where. */
static bool go_through(tutti_group *group, int world, tt_try *tries, char words_out[TT_WORDS])
{
    runner       me = { .group = group, .rank = tutti_get_rank(group), .size = tutti_get_world_size(group),
                        .world = world, .tries = tries };
    tutti_status st;
    int          k;

    for (k = 0; k < tt_the_board->n_cells; k++) {
        tt_the_board->begun[me.rank] = k + 1;
        tt_the_board->state[k][me.rank] = run_cell(&me, k);
        if (me.broken) {
            snprintf(words_out, TT_WORDS, "cell %d: %s", k, tutti_last_error());
            return false;
        }
    }
    st = tutti_barrier(group);
    if (st != TUTTI_OK && !(st == TUTTI_E_UNSUPPORTED && tt_the_board->may_refuse)) {
        snprintf(words_out, TT_WORDS, "barrier after the last cell: %s", tutti_last_error());
        return false;
    }
    tt_the_board->left[me.rank] = true;
    return true;
}

static void take_part(tt_ctx *t, tutti_group *group)
{
    char words[TT_WORDS];

    if (!go_through(group, t->size, tt_alloc(t, TRIES_MAX * sizeof(tt_try)), words))
        fail_msg("%s", words);
}

/* Ranks that take no part stay, so that the others are not alone: for as long as it lasts, which may be
 * longer than any operation's time. */
static void body(tt_ctx *t)
{
    tutti_group *group = group_of(t);

    if (group != TUTTI_NON_MEMBER)
        take_part(t, group);
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size);
}

/* ---- the parent ---------------------------------------------------------------------------------- */

static void say_failed(int k, const char *why)
{
    const tt_cell *cell = &tt_the_board->cells[k];
    char           text[256];
    int            notes = atomic_load(&tt_the_board->n_notes);
    int            i;

    tt_cell_text(cell, text, sizeof text);
    printf("FAILED %s: %s\n", text, why);
    for (i = 0; i < notes && i < TT_NOTES; i++)
        if (tt_the_board->notes[i].cell == k)
            printf("  rank %d: %s\n", tt_the_board->notes[i].rank, tt_the_board->notes[i].words);
    printf("  again: conformance_matrix --seed %llu %s\n", (unsigned long long)tt_the_board->seed, text);
}

/* One rank is enough: others may have had nothing to do, and what one refuses no other can end. */
static bool was_refused(int k, int world)
{
    int r;

    for (r = 0; r < world; r++)
        if (tt_the_board->state[k][r] == TT_CELL_REFUSED)
            return true;
    return false;
}

/* Why a cell that all ranks were through with has failed; NULL: it has not. */
static const char *why_failed(int k, int world)
{
    const bool same = (tt_ops[tt_the_board->cells[k].at[TT_AXIS_OP]].traits & TT_SAME_BITS) != 0;
    int        r;

    for (r = 0; r < world; r++)
        if (tt_the_board->state[k][r] == TT_CELL_FAILED)
            return "not what it must be";
    for (r = 1; same && !was_refused(k, world) && r < world; r++)
        if (tt_the_board->bits[k][r] != tt_the_board->bits[k][0])
            return "ranks have different bits";
    return NULL;
}

static bool all_were_through(int k, int world)
{
    int r;

    for (r = 0; r < world; r++)
        if (tt_the_board->state[k][r] == TT_NOT_RUN)
            return false;
    return true;
}

static bool any_began(int k, int world)
{
    int r;

    for (r = 0; r < world; r++)
        if (tt_the_board->begun[r] > k)
            return true;
    return false;
}

static void count(tt_tally *tally, const char *why, int k, bool refused)
{
    tally->run++;
    if (why == NULL && refused) {
        tally->refused++;
        if (tally->reason[0] == '\0')
            snprintf(tally->reason, sizeof tally->reason, "%s", tt_the_board->refusals[tt_the_board->cells[k].at[TT_AXIS_OP]]);
    } else if (why == NULL) {
        tally->passed++;
    } else {
        tally->failed++;
        say_failed(k, why);
    }
}

/* Judge what was run; how many cells that is. A cell that some rank did not come out of is the last. */
static int judge(int world, tt_tally tallies[TT_OPS_MAX])
{
    bool refused;
    int  k;

    for (k = 0; k < tt_the_board->n_cells; k++) {
        tt_tally *tally = &tallies[tt_the_board->cells[k].at[TT_AXIS_OP]];

        if (!all_were_through(k, world)) {
            if (!any_began(k, world))
                return k;
            count(tally, "a rank did not come out of it", k, false);
            return k + 1;
        }
        refused = was_refused(k, world);
        count(tally, why_failed(k, world), k, refused);
    }
    return k;
}

static int start(const tt_cell *cell, int timeout_s, tt_wires wires)
{
    const int   transport = cell->at[TT_AXIS_TRANSPORT];
    const bool  threads = cell->at[TT_AXIS_MODE] == TT_THREADS;
    const char *words[2][2] = { { "shm", "tcp" }, { "threads", "threads-tcp" } };
    char        name[96];
    const tt_test test = { .name = name,
                           .body = body,
                           .ranks = tt_worlds[cell->at[TT_AXIS_WORLD]],
                           .transports = words[threads][transport == TT_TCP],
                           .limit_ms = LIMIT_MS,
                           .timeout_ms = timeout_s * 1000,
                           .dies = -1,
                           .hosts = transport == TT_HOSTS ? 2 : 1,
                           .tls = wires.tls,
                           .stripes = wires.stripes,
                           .backend = wires.backend,
                           .plugins = wires.plugins,
                           .carried = wires.carried };

    snprintf(name, sizeof name, "%d cells, %s", tt_the_board->n_cells,
             tt_value_name(TT_AXIS_MODE, cell->at[TT_AXIS_MODE]));
    return tt_main(&test, 1);
}

static void pass_over(const tt_cell *cells, int n, tt_tally tallies[TT_OPS_MAX])
{
    int k;

    for (k = 0; k < n; k++)
        tallies[cells[k].at[TT_AXIS_OP]].skipped++;
}

static bool everybody_left(int world)
{
    int r;

    for (r = 0; r < world; r++)
        if (!tt_the_board->left[r])
            return false;
    return true;
}

bool tt_launch(const tt_cell *cells, int n, int timeout_s, tt_wires wires, tt_tally tallies[TT_OPS_MAX])
{
    const int world = tt_members[cells[0].at[TT_AXIS_WORLD]];
    int       done = 0;
    int       k;

    for (k = 0; k < n; k++)
        tallies[cells[k].at[TT_AXIS_OP]].cells++;
    while (done < n) {
        int result, through;

        tt_board_clear();
        tt_the_board->n_cells = n - done < TT_CELLS_MAX ? n - done : TT_CELLS_MAX;
        memcpy(tt_the_board->cells, cells + done, (size_t)tt_the_board->n_cells * sizeof *cells);
        result = start(cells, timeout_s, wires);
        if (result == TT_SKIPPED) {
            pass_over(cells + done, n - done, tallies);
            return true;
        }
        through = judge(world, tallies);
        done += through;
        if (through == 0 || (result == TT_FAILED && everybody_left(world))) {
            printf("FAILED outside of any cell, after %d of %d\n", done, n);
            pass_over(cells + done, n - done, tallies);
            return false;
        }
    }
    return true;
}

bool tt_run_launched(const tt_cell *cells, int n, tt_tally tallies[TT_OPS_MAX])
{
    const int size = tutti_get_world_size(NULL);
    tt_try   *tries = calloc(TRIES_MAX, sizeof *tries);
    char      words[TT_WORDS] = "";
    bool      ok;
    int       k;

    if (tries == NULL || n > TT_CELLS_MAX) {
        fprintf(stderr, "conformance_matrix: %d cells are more than %d, or there is no memory\n", n, TT_CELLS_MAX);
        free(tries);
        return false;
    }
    tt_the_board->n_cells = n;
    memcpy(tt_the_board->cells, cells, (size_t)n * sizeof *cells);
    ok = go_through(NULL, size, tries, words);
    free(tries);
    if (!ok)
        fprintf(stderr, "conformance_matrix, rank %d: %s\n", tutti_get_rank(NULL), words);
    if (tutti_get_rank(NULL) != 0)
        return ok;
    for (k = 0; k < n; k++)
        tallies[cells[k].at[TT_AXIS_OP]].cells++;
    judge(size, tallies);
    return ok;
}
