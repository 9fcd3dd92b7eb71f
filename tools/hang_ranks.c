/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_ranks.c - who is who in a world, and what each is at.
 *
 * How     A rank is a process that has that number in this world; who joins one is the rank that its launcher made it. What it is
 *         at is its process's state, and the oldest operation that it is in and was in at the first look; an asynchronous
 *         one counts if the process does nothing else meanwhile.
 *         Files that ranks wrote because they had failed tell of the moment before: what failed was under way then.
 * True    Numbers are copies of what the ranks wrote while they went on, so two ranks may have been read some
 *         milliseconds apart: what moves between the two looks is left out. */
#include "hang_find.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDLE_SHARE 0.2

enum { JOBS_MAX = 8 };

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- two looks --------------------------------------------------------------------------------- */

static tutti_recorder_info info_of(const tutti_recorder *recorder)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;

    (void)tutti_recorder_get_info(recorder, &info); /* neither is NULL, and info is set */
    return info;
}

bool hang_look_begin(const job_view *view, hang_look *look)
{
    int i;

    *look = (hang_look){ .at_ns = now_ns() };
    look->cpu_s = calloc((size_t)view->n_recorders + 1, sizeof *look->cpu_s);
    for (i = 0; i < view->n_recorders && look->cpu_s != NULL; i++) {
        const tutti_recorder_info info = info_of(view->recorders[i]);

        look->cpu_s[i] = info.is_alive ? process_look((pid_t)info.pid).cpu_s : 0;
    }
    return look->cpu_s != NULL;
}

void hang_look_release(hang_look *look)
{
    free(look->cpu_s);
    *look = (hang_look){ .cpu_s = NULL };
}

/* ---- what a rank is at ------------------------------------------------------------------------- */

static int recorder_index(const job_view *view, const tutti_recorder *recorder)
{
    int i = 0;

    while (i < view->n_recorders && view->recorders[i] != recorder)
        i++;
    return i;
}

static void look_at_process(const job_view *view, const hang_look *look, hang_rank *r)
{
    const int at = recorder_index(view, r->seen->recorder);
    const double took_s = 1e-9 * (double)(now_ns() - look->at_ns);

    r->pid = r->seen->info.pid;
    r->cpu_share = -1;
    if (r->seen->info.is_alive && !view->from_files) {
        r->now = process_look((pid_t)r->pid);
        r->cpu_share = took_s > 0.05 ? (r->now.cpu_s - look->cpu_s[at]) / took_s : -1;
    }
}

static hang_at by_life(process_life life)
{
    switch (life) {
    case PROCESS_GONE: return HANG_DEAD;
    case PROCESS_STOPPED: return HANG_STOPPED;
    case PROCESS_TRACED: return HANG_TRACED;
    case PROCESS_FROZEN: return HANG_FROZEN;
    default: return HANG_BUSY;
    }
}

/* What it was when its file was written, if that says so. */
static hang_at by_letter(char state)
{
    switch (state) {
    case 'X':
    case 'x':
    case 'Z': return HANG_DEAD;
    case 'T': return HANG_STOPPED;
    case 't': return HANG_TRACED;
    default: return HANG_BUSY;
    }
}

static hang_at by_process(const job_view *view, const hang_rank *r)
{
    if (r->seen->info.has_left)
        return HANG_LEFT;
    if (view->from_files)
        return by_letter(r->seen->info.state);
    return r->seen->info.is_alive ? by_life(r->now.life) : HANG_DEAD;
}

/* Whether the rank has issued anything since the first look. */
static bool has_moved(const hang_look *look, const hang_rank *r)
{
    return r->seen->n_ops > 0 && r->seen->ops[r->seen->n_ops - 1].r.issued_ns > look->at_ns;
}

/* Whether the rank may be in this operation, and nowhere else. */
static bool counts(const job_view *view, const hang_look *look, const hang_rank *r, const view_op *op)
{
    if (!view_was_open(op) || op->r.kind == TUTTI_RECORD_RANGE)
        return false;
    if (view->from_files)
        return true;
    if (op->r.issued_ns > look->at_ns)
        return false; /* it came between the looks */
    return !op->r.is_async || (!has_moved(look, r) && r->cpu_share < IDLE_SHARE);
}

static void find_operations(const job_view *view, const hang_look *look, double least_s, hang_rank *r)
{
    const double now_s = 1e-9 * (double)r->seen->info.read_ns;
    int i;

    r->last_s = -1;
    for (i = r->seen->n_ops - 1; i >= 0; i--) {
        const view_op *op = &r->seen->ops[i];
        const double since_s = now_s - 1e-9 * (double)op->r.issued_ns;

        if (view_was_open(op) && op->r.kind != TUTTI_RECORD_RANGE)
            r->oldest = op;
        if (r->last != NULL && view_is_step_of(r->last, op))
            r->last = NULL; /* nobody has called that */
        if (counts(view, look, r, op) && (since_s >= least_s || op->until_saved)) {
            r->wait = op;
            r->since_s = since_s;
        } else if (r->last == NULL && !view_was_open(op) && op->r.kind != TUTTI_RECORD_RANGE) {
            r->last = op;
            r->last_s = op->r.ended_ns != 0 ? now_s - 1e-9 * (double)op->r.ended_ns : since_s;
        }
    }
}

static bool is_first_world(const hang *h)
{
    return h->world < 0 || h->view->worlds[h->world].generation <= 1;
}

/* A process has one rank here and one there, as a rule: is it in an operation there? Ranks that are threads are not told apart. */
static void look_elsewhere(const job_view *view, const hang_look *look, double least_s, hang_rank *r)
{
    int i, k, same = 0;

    for (i = 0; i < view->n_ranks; i++)
        same += view->ranks[i].recorder == r->seen->recorder && view->ranks[i].world == r->seen->world;
    for (i = 0; i < view->n_ranks && same == 1; i++) {
        const view_rank *there = &view->ranks[i];

        if (there->recorder != r->seen->recorder || there == r->seen)
            continue;
        for (k = there->n_ops - 1; k >= 0; k--) {
            const double since_s = 1e-9 * (double)(there->info.read_ns - there->ops[k].r.issued_ns);

            if (counts(view, look, r, &there->ops[k]) && since_s >= least_s) {
                r->elsewhere = &there->ops[k];
                r->elsewhere_s = since_s;
            }
        }
    }
}

static bool has_world(const view_rank *r)
{
    int k;
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;

    for (k = 0; k < tutti_recorder_count_groups(r->recorder); k++)
        if (tutti_recorder_get_group(r->recorder, k, &g) == TUTTI_OK && g.is_there)
            return true;
    return false;
}

static void look_at_rank(const job_view *view, const hang_look *look, double least_s, hang_rank *r)
{
    look_at_process(view, look, r);
    r->at = by_process(view, r);
    find_operations(view, look, least_s, r);
    if (r->at == HANG_BUSY && r->wait != NULL)
        r->at = HANG_WAITS;
    else if (r->at == HANG_BUSY && tutti_recorder_count_groups(r->seen->recorder) == 0)
        r->at = HANG_JOINS;
    else if (r->at == HANG_BUSY && !has_world(r->seen))
        r->at = HANG_PARTED;
    if (r->at == HANG_BUSY)
        look_elsewhere(view, look, least_s, r);
}

static void look_at_unseen(const job_view *view, hang_rank *r, pid_t pid)
{
    r->pid = pid;
    r->now = process_look(pid);
    r->at = by_life(r->now.life);
    if (r->at == HANG_BUSY && view->from_pids)
        r->at = HANG_UNNAMED;
    else if (r->at == HANG_BUSY)
        r->at = process_records_nothing(pid, r->why) ? HANG_UNRECORDED : HANG_NOT_JOINED;
}

/* Ranks of which nothing was read: does a process of theirs run here? Numbers that the launcher gave are those of the first
 * world only. */
static void look_for_unseen(hang *h)
{
    pid_t *pids = calloc((size_t)VIEW_RANKS_MAX, sizeof *pids);
    int *ranks = calloc((size_t)VIEW_RANKS_MAX, sizeof *ranks);
    int n = 0, i;

    if (pids != NULL && ranks != NULL && h->job[0] != '\0' && !h->view->from_files && is_first_world(h))
        n = process_find(h->job, pids, ranks, VIEW_RANKS_MAX);
    for (i = 0; i < n; i++)
        if (ranks[i] < h->n && h->ranks[ranks[i]].seen == NULL && (pid_t)h->ranks[ranks[i]].pid < pids[i])
            look_at_unseen(h->view, &h->ranks[ranks[i]], pids[i]);
    free(pids);
    free(ranks);
}

void hang_look_at_ranks(hang *h, const hang_look *look, double least_s)
{
    int i;

    for (i = 0; i < h->n; i++)
        if (h->ranks[i].seen != NULL)
            look_at_rank(h->view, look, least_s, &h->ranks[i]);
    for (i = 0; i < h->n_others; i++)
        look_at_rank(h->view, look, least_s, &h->others[i]);
    look_for_unseen(h);
}

/* ---- who is who --------------------------------------------------------------------------------- */

/* The rank that a process was started as; -1: unknown. */
static int rank_by_launcher(const view_rank *r)
{
    char text[16];

    if (r->info.rank >= 0)
        return r->info.rank < VIEW_RANKS_MAX ? r->info.rank : -1;
    if (!r->info.is_alive || r->info.is_file || !process_variable((pid_t)r->info.pid, "RANK", text, sizeof text))
        return -1;
    return atoi(text) >= 0 && atoi(text) < VIEW_RANKS_MAX ? atoi(text) : -1;
}

/* Which rank of the world this one is: -1: none of them. Who joins is one of its job's first world only. */
static int rank_in(const hang *h, const view_rank *r)
{
    if (r->world >= 0 || r->is_left)
        return r->world >= 0 && r->world == h->world && r->rank >= 0 && r->rank < VIEW_RANKS_MAX ? r->rank : -1;
    return is_first_world(h) && strcmp(r->info.job, h->job) == 0 ? rank_by_launcher(r) : -1;
}

static int size_of(const hang *h)
{
    int n = h->world >= 0 ? h->view->worlds[h->world].size : 0, i;

    for (i = 0; i < h->view->n_ranks; i++) {
        const view_rank *r = &h->view->ranks[i];

        if (rank_in(h, r) < 0)
            continue;
        if (is_first_world(h) && (h->world < 0 || h->view->worlds[h->world].size == 0) && r->info.world_size > n)
            n = r->info.world_size;
        if (rank_in(h, r) >= n && (r->world >= 0 || h->world < 0))
            n = rank_in(h, r) + 1;
    }
    return n < VIEW_RANKS_MAX ? n : VIEW_RANKS_MAX;
}

int hang_jobs(const hang *h, const char **jobs, int max)
{
    int n = 0, i, k;

    for (i = 0; i < h->n; i++) {
        const char *job = h->ranks[i].seen != NULL ? h->ranks[i].seen->info.job : h->job;

        for (k = 0; k < n && strcmp(jobs[k], job) != 0;)
            k++;
        if (k == n && n < max)
            jobs[n++] = job;
    }
    return n;
}

/* Whether a process is of a job that has ranks in this world, or of the world's own. Asked when the ranks are in their places. */
static bool is_of_its_jobs(const hang *h, const view_rank *r)
{
    const char *jobs[JOBS_MAX];
    const int n = hang_jobs(h, jobs, JOBS_MAX);
    int k;

    for (k = 0; k < n; k++)
        if (strcmp(jobs[k], r->info.job) == 0)
            return true;
    return strcmp(h->job, r->info.job) == 0;
}

/* Whether a process that is not in this world is in no other one either, and is to be told of with this one. */
static bool is_outside(const hang *h, const view_rank *r)
{
    int i;

    if (!is_of_its_jobs(h, r))
        return false;
    for (i = 0; i < h->view->n_ranks; i++)
        if (h->view->ranks[i].recorder == r->recorder && h->view->ranks[i].world >= 0)
            return false;
    return true;
}

/* Give each of the view's ranks its place. */
static void place_ranks(hang *h)
{
    int i, rank;

    for (i = h->view->n_ranks - 1; i >= 0; i--) { /* members last: who joins under a number that is taken, joins elsewhere */
        rank = rank_in(h, &h->view->ranks[i]);
        if (rank >= 0 && rank < h->n && h->view->ranks[i].world < 0)
            h->ranks[rank].seen = &h->view->ranks[i];
    }
    for (i = h->view->n_ranks - 1; i >= 0; i--) {
        rank = rank_in(h, &h->view->ranks[i]);
        if (rank >= 0 && rank < h->n && h->view->ranks[i].world >= 0)
            h->ranks[rank].seen = &h->view->ranks[i];
    }
    for (i = 0; i < h->view->n_ranks; i++) {
        rank = rank_in(h, &h->view->ranks[i]);
        if ((rank < 0 || rank >= h->n || h->ranks[rank].seen != &h->view->ranks[i]) && is_outside(h, &h->view->ranks[i]))
            h->others[h->n_others++] = (hang_rank){ .seen = &h->view->ranks[i], .rank = h->view->ranks[i].rank, .last_s = -1 };
    }
}

bool hang_place_ranks(hang *h)
{
    int i;

    h->n = size_of(h);
    h->ranks = calloc((size_t)h->n + 1, sizeof *h->ranks);
    h->others = calloc((size_t)h->view->n_ranks + 1, sizeof *h->others);
    if (h->ranks == NULL || h->others == NULL)
        return false;
    for (i = 0; i < h->n; i++)
        h->ranks[i] = (hang_rank){ .rank = i, .at = HANG_UNSEEN, .last_s = -1, .cpu_share = -1 };
    place_ranks(h);
    return true;
}
