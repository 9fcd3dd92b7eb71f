/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_arrange.c - from recorders to worlds, ranks, groups and operations.
 *
 * Why     A number says who a rank is in one world only. After a death the others go on in another world under other numbers,
 *         and their recorders have both: whoever mixes them accuses the wrong one.
 * How     1. Worlds. Groups of two recorders are of one world if they carry its number; where backends have none, if job, age and
 *            size are the same. A world is past when another one has taken its place in some process, or when nobody who lives
 *            has it any more and others of its job have a younger one.
 *         2. Ranks. Each world of a recorder is one, and each object of it, as ranks may be threads. Where whole lives are
 *            wanted (a time line), a world goes on in the row of the one that it follows.
 *         3. Groups, of one world and one name and the same members, and the operations of each rank in them.
 * True    Costs grow with the square of the number of groups that recorders have, which readers bound, and with nothing else's. */
#include "job_view.h"

#include <stdlib.h>
#include <string.h>

/* A recorder's groups while it is looked at. */
typedef struct table {
    tutti_recorder *recorder;
    tutti_recorder_info info;
    tutti_recorder_group *groups; /* [n] */
    int *world;                   /* [n] which of the job's */
    int *group;                   /* [n] which of the job's */
    int *row;                     /* [n] which of the job's ranks; -1: none */
    int n;
} table;

/* ---- worlds ------------------------------------------------------------------------------------ */

static bool is_world(const view_world *w, const tutti_recorder_group *g, const char *job)
{
    if (w->id != 0 || g->world_id != 0)
        return w->id == g->world_id;
    return w->generation == g->generation && w->size == g->world_size && strcmp(w->job, job) == 0;
}

static int world_of(job_view *view, const tutti_recorder_group *g, const char *job)
{
    view_world *more;
    int i;

    for (i = 0; i < view->n_worlds; i++)
        if (is_world(&view->worlds[i], g, job)) {
            if (g->generation > view->worlds[i].generation) /* who came from elsewhere has counted less */
                view->worlds[i].generation = g->generation;
            return i;
        }
    more = realloc(view->worlds, (size_t)(view->n_worlds + 1) * sizeof *more);
    if (more == NULL)
        return -1;
    view->worlds = more;
    more[view->n_worlds] = (view_world){ .id = g->world_id, .job = job, .generation = g->generation, .size = g->world_size };
    return view->n_worlds++;
}

/* Whether its process may go on: of files it is not always known. */
static bool may_live(const tutti_recorder_info *info)
{
    return !info->has_left && (info->is_alive || (info->is_file && info->state == '\0'));
}

static void count_living(job_view *view, const table *t)
{
    int k;

    for (k = 0; k < t->n; k++)
        if (t->groups[k].is_there && may_live(&t->info))
            view->worlds[t->world[k]].n_living++;
}

/* Worlds whose place another one took, in this process: it says so, or a younger one was made when it was gone. */
static void find_past(job_view *view, const table *t)
{
    int k, i;

    for (k = 0; k < t->n; k++) {
        if (t->groups[k].follows >= 0)
            view->worlds[t->world[t->groups[k].follows]].is_past = true;
        for (i = 0; i < k; i++)
            if (!t->groups[i].is_there && t->groups[i].generation < t->groups[k].generation)
                view->worlds[t->world[i]].is_past = true;
    }
}

/* Whether somebody lives in a younger world of the same job. */
static bool is_forsaken_for_another(const job_view *view, const view_world *w)
{
    int i;

    for (i = 0; i < view->n_worlds; i++)
        if (view->worlds[i].n_living > 0 && view->worlds[i].generation > w->generation && strcmp(view->worlds[i].job, w->job) == 0)
            return true;
    return false;
}

static void find_forsaken(job_view *view)
{
    int i;

    for (i = 0; i < view->n_worlds; i++)
        if (view->worlds[i].n_living == 0 && is_forsaken_for_another(view, &view->worlds[i]))
            view->worlds[i].is_past = true;
}

/* ---- groups ------------------------------------------------------------------------------------ */

static bool same_members(const tutti_recorder_group *a, const view_group *b)
{
    return a->n_ranks == b->n_ranks && (a->ranks == NULL || b->ranks == NULL ||
                                        memcmp(a->ranks, b->ranks, (size_t)a->n_ranks * sizeof *a->ranks) == 0);
}

/* The job's group that g is, made if it is new; -1: no memory. */
static int group_of(job_view *view, int world, const tutti_recorder_group *g)
{
    view_group *more;
    int i;

    for (i = 0; i < view->n_groups; i++)
        if (view->groups[i].world == world && strcmp(view->groups[i].name, g->name) == 0 && same_members(g, &view->groups[i]))
            return i;
    more = realloc(view->groups, (size_t)(view->n_groups + 1) * sizeof *more);
    if (more == NULL)
        return -1;
    view->groups = more;
    more[view->n_groups] = (view_group){ .name = g->name, .label = g->desc[0] != '\0' ? g->desc : g->name, .ranks = g->ranks,
                                          .n_ranks = g->n_ranks, .world = world };
    return view->n_groups++;
}

/* ---- a recorder's table ------------------------------------------------------------------------ */

static bool read_table(job_view *view, tutti_recorder *recorder, table *t)
{
    const size_t n = (size_t)tutti_recorder_count_groups(recorder);
    int k;

    *t = (table){ .recorder = recorder, .info = TUTTI_RECORDER_INFO };
    (void)tutti_recorder_get_info(recorder, &t->info); /* neither is NULL, and info is set */
    t->groups = calloc(n + 1, sizeof *t->groups);
    t->world = calloc(n + 1, sizeof *t->world);
    t->group = calloc(n + 1, sizeof *t->group);
    t->row = calloc(n + 1, sizeof *t->row);
    if (t->groups == NULL || t->world == NULL || t->group == NULL || t->row == NULL)
        return false;
    for (t->n = 0; t->n < (int)n; t->n++) {
        k = t->n;
        t->groups[k] = (tutti_recorder_group)TUTTI_RECORDER_GROUP;
        (void)tutti_recorder_get_group(recorder, k, &t->groups[k]); /* it is there */
        t->world[k] = world_of(view, &t->groups[k], t->info.job);
        t->group[k] = t->world[k] >= 0 ? group_of(view, t->world[k], &t->groups[k]) : -1;
        t->row[k] = -1;
        if (t->group[k] < 0)
            return false;
    }
    return true;
}

static void release_table(table *t)
{
    free(t->groups);
    free(t->world);
    free(t->group);
    free(t->row);
}

/* ---- ranks ------------------------------------------------------------------------------------- */

static int add_rank(job_view *view, const table *t, int world, int rank)
{
    view_rank *more = realloc(view->ranks, (size_t)(view->n_ranks + 1) * sizeof *more);

    if (more == NULL)
        return -1;
    view->ranks = more;
    more[view->n_ranks] = (view_rank){ .recorder = t->recorder, .info = t->info, .world = world, .rank = rank, .first_rank = rank };
    return view->n_ranks++;
}

static bool same_object(const table *t, int a, int b)
{
    return t->world[a] == t->world[b] && strcmp(t->groups[a].world, t->groups[b].world) == 0;
}

/* The row of a group that came before, and that this one belongs to; -1: it is the first of its row. */
static int row_of(const table *t, int k, bool separate)
{
    int i;

    for (i = 0; i < k; i++)
        if (same_object(t, i, k))
            return t->row[i];
    if (separate)
        return -1;
    if (t->groups[k].follows >= 0 && t->groups[k].follows < k)
        return t->row[t->groups[k].follows];
    for (i = k - 1; i >= 0; i--) /* made anew: the same number in a world that is gone */
        if (!t->groups[i].is_there && t->groups[i].world_rank == t->groups[k].world_rank)
            return t->row[i];
    return -1;
}

/* Give each group of a recorder a row: of its world, or of the whole life that it is part of. */
static bool add_rows(job_view *view, table *t, bool separate)
{
    const int before = view->n_ranks;
    int k;

    for (k = 0; k < t->n; k++) {
        if (separate && view->worlds[t->world[k]].is_past)
            continue;
        t->row[k] = row_of(t, k, separate);
        if (t->row[k] < 0)
            t->row[k] = add_rank(view, t, t->world[k], t->groups[k].world_rank);
        if (t->row[k] < 0)
            return false;
        if (t->world[k] != view->ranks[t->row[k]].world) { /* groups are by age: the youngest world counts */
            view->ranks[t->row[k]].world = t->world[k];
            view->ranks[t->row[k]].rank = t->groups[k].world_rank;
        }
    }
    if (view->n_ranks > before)
        return true;
    k = add_rank(view, t, -1, t->info.rank);
    if (k >= 0 && t->n > 0) { /* all of its worlds are past: the youngest of them */
        view->ranks[k].left = t->world[t->n - 1];
        view->ranks[k].rank = t->groups[t->n - 1].world_rank;
        view->ranks[k].is_left = true;
    }
    return k >= 0;
}

/* ---- what they did ----------------------------------------------------------------------------- */

static bool take_groups(job_view *view, const table *t, int first)
{
    int i, k;

    for (i = first; i < view->n_ranks; i++) {
        view->ranks[i].own = calloc((size_t)view->n_groups + 1, sizeof *view->ranks[i].own);
        if (view->ranks[i].own == NULL)
            return false;
    }
    for (k = 0; k < t->n; k++) {
        tutti_recorder_group *own = t->row[k] >= 0 ? &view->ranks[t->row[k]].own[t->group[k]] : NULL;

        if (own != NULL && (own->name == NULL || !own->is_there || t->groups[k].is_there))
            *own = t->groups[k];
    }
    return true;
}

/* Which row a record is of; ranges are of threads, not of worlds: the first row of a process has them. -1: none of them. */
static int row_of_record(const table *t, const tutti_record *r, int first)
{
    if (r->group >= 0 && r->group < t->n)
        return t->row[r->group];
    return first;
}

/* Counted first: of many rows most have few. */
static bool make_room(job_view *view, const table *t, int first)
{
    int i, row;

    for (i = 0; i < tutti_recorder_count_records(t->recorder); i++) {
        tutti_record r = TUTTI_RECORD;

        if (tutti_recorder_get_record(t->recorder, i, &r) == TUTTI_OK && (row = row_of_record(t, &r, first)) >= 0)
            view->ranks[row].n_ops++;
    }
    for (i = first; i < view->n_ranks; i++) {
        view->ranks[i].ops = calloc((size_t)view->ranks[i].n_ops + 1, sizeof *view->ranks[i].ops);
        view->ranks[i].n_ops = 0;
        if (view->ranks[i].ops == NULL)
            return false;
    }
    return true;
}

/* What has dumps written. */
static bool is_others_fault(tutti_status st)
{
    return st == TUTTI_E_TIMEOUT || st == TUTTI_E_PEER || st == TUTTI_E_MISMATCH || st == TUTTI_E_NETWORK;
}

static bool take_ops(job_view *view, const table *t, int first)
{
    int i, row;

    if (!make_room(view, t, first))
        return false;
    for (i = 0; i < tutti_recorder_count_records(t->recorder); i++) {
        view_op op = { .r = TUTTI_RECORD, .group = -1 };

        if (tutti_recorder_get_record(t->recorder, i, &op.r) != TUTTI_OK || (row = row_of_record(t, &op.r, first)) < 0)
            continue;
        op.group = op.r.group >= 0 && op.r.group < t->n ? t->group[op.r.group] : -1;
        op.until_saved = op.r.id == t->info.saved_for && op.r.state == TUTTI_RECORD_FAILED && is_others_fault(op.r.status);
        view->ranks[row].ops[view->ranks[row].n_ops++] = op;
    }
    return true;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const view_rank *x = a, *y = b;

    if (x->is_left != y->is_left)
        return x->is_left ? 1 : -1;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : (x->info.pid > y->info.pid) - (x->info.pid < y->info.pid);
}

void job_view_forget(job_view *view)
{
    int i;

    for (i = 0; i < view->n_ranks; i++) {
        free(view->ranks[i].ops);
        free(view->ranks[i].own);
    }
    free(view->ranks);
    free(view->groups);
    free(view->worlds);
    view->ranks = NULL;
    view->groups = NULL;
    view->worlds = NULL;
    view->n_ranks = view->n_groups = view->n_worlds = 0;
}

static bool read_tables(job_view *view, table *tables)
{
    int i;

    for (i = 0; i < view->n_recorders; i++)
        if (!read_table(view, view->recorders[i], &tables[i]))
            return false;
    for (i = 0; i < view->n_recorders; i++) {
        count_living(view, &tables[i]);
        find_past(view, &tables[i]);
    }
    find_forsaken(view);
    return true;
}

bool job_view_arrange(job_view *view, bool separate)
{
    table *tables = calloc((size_t)view->n_recorders + 1, sizeof *tables);
    bool ok;
    int i, first;

    job_view_forget(view);
    ok = tables != NULL && read_tables(view, tables);
    for (i = 0; i < view->n_recorders && ok; i++) {
        first = view->n_ranks;
        ok = add_rows(view, &tables[i], separate) && take_groups(view, &tables[i], first) && take_ops(view, &tables[i], first);
    }
    if (ok && view->n_ranks > 1)
        qsort(view->ranks, (size_t)view->n_ranks, sizeof *view->ranks, by_rank);
    for (i = 0; i < view->n_recorders && tables != NULL; i++)
        release_table(&tables[i]);
    free(tables);
    return ok;
}
