/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_view.c - recorders in, ranks and groups out. */
#include "job_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which recorders --------------------------------------------------------------------------- */

static bool failed(const char *command)
{
    fprintf(stderr, "%s: %s\n", command, tutti_last_error());
    return false;
}

static bool no_memory(const char *command)
{
    fprintf(stderr, "%s: no memory\n", command);
    return false;
}

static tutti_recorder_info info_of(const tutti_recorder *recorder)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;

    (void)tutti_recorder_get_info(recorder, &info); /* neither is NULL, and info is set */
    return info;
}

/* Jobs that were found, a line for each. */
static void list_jobs(tutti_recorder **list, int n)
{
    int i, k;

    for (i = 0; i < n; i++) {
        const tutti_recorder_info a = info_of(list[i]);
        int same = 0, first = 1;

        for (k = 0; k < n; k++) {
            const tutti_recorder_info b = info_of(list[k]);

            same += strcmp(a.job, b.job) == 0;
            first = first && (k >= i || strcmp(a.job, b.job) != 0);
        }
        if (first)
            fprintf(stderr, "  --job %s%s%s   %d process%s of '%s'\n", a.job[0] != '\0' ? "" : "'", a.job, a.job[0] != '\0' ? "" : "'",
                    same, same == 1 ? "" : "es", a.program);
    }
}

static bool is_one_job(tutti_recorder **list, int n)
{
    int i;

    for (i = 1; i < n; i++)
        if (strcmp(info_of(list[0]).job, info_of(list[i]).job) != 0)
            return false;
    return true;
}

bool job_view_find(const char *command, const char *job, job_view *view)
{
    if (tutti_recorder_find(job, &view->recorders, &view->n_recorders) != TUTTI_OK)
        return failed(command);
    if (view->n_recorders == 0) {
        fprintf(stderr, "%s: no process of %s%s%s is found on this host\n  next: name processes (--pid), or files (--dumps)\n",
                command, job != NULL ? "job '" : "any job", job != NULL ? job : "", job != NULL ? "'" : "");
        return false;
    }
    if (job != NULL || is_one_job(view->recorders, view->n_recorders))
        return true;
    fprintf(stderr, "%s: there are several jobs on this host; choose one:\n", command);
    list_jobs(view->recorders, view->n_recorders);
    return false;
}

static bool make_list(const char *command, int n, job_view *view)
{
    view->recorders = calloc((size_t)n, sizeof(tutti_recorder *));
    return view->recorders != NULL || no_memory(command);
}

bool job_view_open_pids(const char *command, char *const *pids, int n, job_view *view)
{
    char *end = NULL;
    long pid;
    int i;

    if (!make_list(command, n, view))
        return false;
    for (i = 0; i < n; i++) {
        errno = 0;
        pid = strtol(pids[i], &end, 10);
        if (end == pids[i] || *end != '\0' || errno != 0 || pid <= 0) {
            fprintf(stderr, "%s: '%.100s' is no number of a process\n", command, pids[i]);
            return false;
        }
        if (tutti_recorder_open_pid(pid, &view->recorders[i]) != TUTTI_OK)
            return failed(command);
        view->n_recorders++;
    }
    return true;
}

bool job_view_open_files(const char *command, char *const *files, int n, job_view *view)
{
    int i;

    if (!make_list(command, n, view))
        return false;
    view->from_files = true;
    for (i = 0; i < n; i++) {
        if (tutti_recorder_open_file(files[i], &view->recorders[i]) != TUTTI_OK)
            return failed(command);
        view->n_recorders++;
    }
    return true;
}

void job_view_update(job_view *view)
{
    int i;

    for (i = 0; i < view->n_recorders && !view->from_files; i++)
        (void)tutti_recorder_update(view->recorders[i]); /* a process that is gone meanwhile keeps its last copy */
}

/* ---- groups ------------------------------------------------------------------------------------ */

static bool same_members(const tutti_recorder_group *a, const view_group *b)
{
    return a->n_ranks == b->n_ranks && (a->ranks == NULL || b->ranks == NULL ||
                                        memcmp(a->ranks, b->ranks, (size_t)a->n_ranks * sizeof *a->ranks) == 0);
}

/* The job's group that g is, made if it is new; -1: no memory. */
static int group_of(job_view *view, const tutti_recorder_group *g)
{
    view_group *more;
    int i;

    for (i = 0; i < view->n_groups; i++)
        if (strcmp(view->groups[i].name, g->name) == 0 && same_members(g, &view->groups[i]))
            return i;
    more = realloc(view->groups, (size_t)(view->n_groups + 1) * sizeof *more);
    if (more == NULL)
        return -1;
    view->groups = more;
    more[view->n_groups] = (view_group){ .name = g->name, .label = g->desc[0] != '\0' ? g->desc : g->name, .ranks = g->ranks,
                                          .n_ranks = g->n_ranks };
    return view->n_groups++;
}

static bool gather_groups(job_view *view)
{
    int i, k;

    for (i = 0; i < view->n_recorders; i++)
        for (k = 0; k < tutti_recorder_count_groups(view->recorders[i]); k++) {
            tutti_recorder_group g = TUTTI_RECORDER_GROUP;

            if (tutti_recorder_get_group(view->recorders[i], k, &g) == TUTTI_OK && group_of(view, &g) < 0)
                return false;
        }
    return true;
}

/* ---- ranks ------------------------------------------------------------------------------------- */

/* A rank of the view, with room for what it will have. */
static view_rank *add_rank(job_view *view, tutti_recorder *recorder, const char *world, int rank)
{
    const int most = tutti_recorder_count_records(recorder);
    view_rank *more = realloc(view->ranks, (size_t)(view->n_ranks + 1) * sizeof *more), *r;

    if (more == NULL)
        return NULL;
    view->ranks = more;
    r = &more[view->n_ranks];
    *r = (view_rank){ .recorder = recorder, .info = info_of(recorder), .world = world, .rank = rank };
    r->ops = calloc((size_t)most + 1, sizeof *r->ops);
    r->own = calloc((size_t)view->n_groups + 1, sizeof *r->own);
    view->n_ranks++;
    return r->ops != NULL && r->own != NULL ? r : NULL;
}

/* Whether a group of the process belongs to the rank: by its world, or by the number it has there. */
static bool is_of(const view_rank *r, const tutti_recorder_group *g)
{
    return r->world != NULL ? strcmp(g->world, r->world) == 0 : g->world_rank == r->rank;
}

static void take_groups(job_view *view, view_rank *r)
{
    int k, at;

    for (k = 0; k < tutti_recorder_count_groups(r->recorder); k++) {
        tutti_recorder_group g = TUTTI_RECORDER_GROUP;

        if (tutti_recorder_get_group(r->recorder, k, &g) != TUTTI_OK || !is_of(r, &g))
            continue;
        at = group_of(view, &g); /* it is there */
        if (r->own[at].name == NULL || !r->own[at].is_there || g.is_there)
            r->own[at] = g;
    }
}

static void take_ops(job_view *view, view_rank *r, bool ranges)
{
    int i;

    for (i = 0; i < tutti_recorder_count_records(r->recorder); i++) {
        view_op op = { .r = TUTTI_RECORD, .group = -1 };
        tutti_recorder_group g = TUTTI_RECORDER_GROUP;

        if (tutti_recorder_get_record(r->recorder, i, &op.r) != TUTTI_OK)
            continue;
        if (op.r.group >= 0 && tutti_recorder_get_group(r->recorder, op.r.group, &g) == TUTTI_OK) {
            if (!is_of(r, &g))
                continue;
            op.group = group_of(view, &g);
        } else if (!ranges) {
            continue;
        }
        r->ops[r->n_ops++] = op;
    }
}

/* Whether some rank of the view is that world of the recorder (world NULL: that number). */
static bool is_taken(const job_view *view, const tutti_recorder *recorder, const char *world, int rank)
{
    int i;

    for (i = 0; i < view->n_ranks; i++)
        if (view->ranks[i].recorder == recorder &&
            (world != NULL ? strcmp(view->ranks[i].world, world) == 0 : view->ranks[i].rank == rank))
            return true;
    return false;
}

/* Of one recorder: a rank for each world that is there, or for each number that it had. */
static bool add_worlds(job_view *view, tutti_recorder *recorder, bool separate)
{
    const int before = view->n_ranks;
    int k;

    for (k = 0; k < tutti_recorder_count_groups(recorder); k++) {
        tutti_recorder_group g = TUTTI_RECORDER_GROUP;

        if (tutti_recorder_get_group(recorder, k, &g) != TUTTI_OK || (separate && !g.is_there) ||
            is_taken(view, recorder, separate ? g.world : NULL, g.world_rank))
            continue;
        if (add_rank(view, recorder, separate ? g.world : NULL, g.world_rank) == NULL)
            return false;
    }
    return view->n_ranks > before || add_rank(view, recorder, NULL, info_of(recorder).rank) != NULL;
}

/* Ranges are of threads, not of worlds: the first rank of a process has them. */
static bool is_first(const job_view *view, int at)
{
    int i;

    for (i = 0; i < at; i++)
        if (view->ranks[i].recorder == view->ranks[at].recorder)
            return false;
    return true;
}

static int by_rank(const void *a, const void *b)
{
    const view_rank *x = a, *y = b;

    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : (x->info.pid > y->info.pid) - (x->info.pid < y->info.pid);
}

static void release_ranks(job_view *view)
{
    int i;

    for (i = 0; i < view->n_ranks; i++) {
        free(view->ranks[i].ops);
        free(view->ranks[i].own);
    }
    free(view->ranks);
    free(view->groups);
    view->ranks = NULL;
    view->groups = NULL;
    view->n_ranks = view->n_groups = 0;
}

bool job_view_arrange(job_view *view, bool separate)
{
    bool ok;
    int i;

    release_ranks(view);
    ok = gather_groups(view);
    for (i = 0; i < view->n_recorders && ok; i++)
        ok = add_worlds(view, view->recorders[i], separate);
    for (i = 0; i < view->n_ranks && ok; i++) {
        take_groups(view, &view->ranks[i]);
        take_ops(view, &view->ranks[i], is_first(view, i));
    }
    if (ok && view->n_ranks > 0)
        qsort(view->ranks, (size_t)view->n_ranks, sizeof *view->ranks, by_rank);
    return ok;
}

void job_view_release(job_view *view)
{
    release_ranks(view);
    tutti_recorder_list_free(view->recorders, view->n_recorders);
    *view = (job_view){ .recorders = NULL };
}

/* ---- looking ----------------------------------------------------------------------------------- */

const view_rank *view_find_rank(const job_view *view, int rank, int group)
{
    const view_rank *any = NULL;
    int i;

    for (i = 0; i < view->n_ranks; i++)
        if (view->ranks[i].rank == rank) {
            if (view->ranks[i].own[group].name != NULL)
                return &view->ranks[i];
            any = &view->ranks[i];
        }
    return any;
}

const view_op *view_find_op(const view_rank *rank, int group, uint64_t seq)
{
    int i;

    for (i = rank->n_ops - 1; i >= 0; i--)
        if (rank->ops[i].group == group && rank->ops[i].r.seq == seq && view_is_collective(&rank->ops[i]))
            return &rank->ops[i];
    return NULL;
}

bool view_is_collective(const view_op *op)
{
    return (int)op->r.kind < TUTTI_RECORD_SEND;
}

bool view_is_open(const view_op *op)
{
    return op->r.state == TUTTI_RECORD_ISSUED || op->r.state == TUTTI_RECORD_STARTED;
}

/* ---- words ------------------------------------------------------------------------------------- */

static bool adds_up(tutti_record_kind kind)
{
    return kind == TUTTI_RECORD_ALL_REDUCE || kind == TUTTI_RECORD_REDUCE || kind == TUTTI_RECORD_REDUCE_SCATTER;
}

/* "(sum, 1000 f32)". */
static void describe_data(const tutti_record *r, char *out, size_t bytes)
{
    out[0] = '\0';
    if (r->kind == TUTTI_RECORD_BARRIER || r->kind == TUTTI_RECORD_MONITORED_BARRIER)
        return;
    snprintf(out, bytes, " (%s%s%lld %s)", adds_up(r->kind) ? tutti_op_name(r->reduce) : "", adds_up(r->kind) ? ", " : "",
             (long long)r->count, tutti_dtype_name(r->dtype));
}

void view_describe(const view_op *op, char out[VIEW_TEXT_MAX])
{
    const tutti_record *r = &op->r;
    char data[64], peer[32];

    describe_data(r, data, sizeof data);
    snprintf(peer, sizeof peer, r->peer < 0 ? "any rank" : "rank %d", r->peer);
    if (r->kind == TUTTI_RECORD_SEND || r->kind == TUTTI_RECORD_RECV)
        snprintf(out, VIEW_TEXT_MAX, "%s %s %s, tag %d%s", r->op, r->kind == TUTTI_RECORD_SEND ? "to" : "from", peer, r->tag, data);
    else if (r->kind == TUTTI_RECORD_RANGE || !view_is_collective(op))
        snprintf(out, VIEW_TEXT_MAX, "%s%s", r->kind == TUTTI_RECORD_RANGE ? r->name : r->op, data);
    else if (r->peer >= 0)
        snprintf(out, VIEW_TEXT_MAX, "%s #%llu, root %s%s", r->op, (unsigned long long)r->seq, peer, data);
    else
        snprintf(out, VIEW_TEXT_MAX, "%s #%llu%s", r->op, (unsigned long long)r->seq, data);
}

json_t *view_text(const char *text)
{
    json_t *value = json_string(text);

    return value != NULL ? value : json_string("?");
}

void view_write_ranks(const int *ranks, int n, char *out, size_t bytes)
{
    size_t used = 0;
    int i = 0, last;

    out[0] = '\0';
    while (i < n) {
        for (last = i; last + 1 < n && ranks[last + 1] == ranks[last] + 1;)
            last++;
        if (used + 32 > bytes) {
            snprintf(out + used, bytes - used, ", ...");
            return;
        }
        used += (size_t)snprintf(out + used, bytes - used, "%s%d", used > 0 ? ", " : "", ranks[i]);
        if (last > i)
            used += (size_t)snprintf(out + used, bytes - used, "%s%d", last == i + 1 ? ", " : "-", ranks[last]);
        i = last + 1;
    }
}
