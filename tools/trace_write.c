/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_write.c - Chrome's trace events, which Perfetto reads: one event at a time, so that a large job needs no memory for
 * its text.
 *
 * A rank is a process of the trace. Each of its groups has a track, and a further one for each operation that runs beside
 * others: events of one track may only be nested. Ranges have a track for each thread. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "trace.h"

enum { LANES_MAX = 64, THREADS_MAX = 512, RANGE_TRACKS = 1 << 20 };

typedef struct writer {
    FILE *out;
    int64_t zero_ns; /* of the trace */
    bool first, ok;
} writer;

/* Write an event, and free it. */
static void put(writer *w, json_t *event)
{
    w->ok = w->ok && event != NULL && fputs(w->first ? "\n" : ",\n", w->out) >= 0 &&
            json_dumpf(event, w->out, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0;
    w->first = false;
    json_decref(event);
}

static double us(const writer *w, int64_t ns)
{
    return (double)(ns - w->zero_ns) / 1000;
}

/* ---- names of processes and tracks ------------------------------------------------------------- */

static void name_track(writer *w, int rank, int track, const char *name)
{
    put(w, json_pack("{ss ss si si s{so}}", "ph", "M", "name", "thread_name", "pid", rank, "tid", track, "args", "name", view_text(name)));
    put(w, json_pack("{ss ss si si s{si}}", "ph", "M", "name", "thread_sort_index", "pid", rank, "tid", track, "args", "sort_index",
                     track));
}

/* Whether ranks are of different jobs, as those of files and processes that somebody has named may be. */
static bool has_several_jobs(const job_view *view)
{
    int i = 1;

    while (i < view->n_ranks && strcmp(view->ranks[i].info.job, view->ranks[0].info.job) == 0)
        i++;
    return i < view->n_ranks;
}

/* with_job: as ranks of several jobs have the same numbers. */
static void name_rank(writer *w, const job_view *view, int number, bool with_job)
{
    const view_rank *r = &view->ranks[number];
    char name[384], before[48] = "", job[128] = "";

    if (with_job)
        snprintf(job, sizeof job, "job '%.100s', ", r->info.job);

    if (r->world >= 0 && view->worlds[r->world].is_past)
        snprintf(before, sizeof before, " of world %d", view->worlds[r->world].generation);
    else if (r->first_rank >= 0 && r->first_rank != r->rank)
        snprintf(before, sizeof before, ", rank %d at first", r->first_rank);
    if (r->rank >= 0)
        snprintf(name, sizeof name, "rank %d%s (%s%.100s, pid %lld)", r->rank, before, job, r->info.host, (long long)r->info.pid);
    else
        snprintf(name, sizeof name, "no rank yet (%s%.100s, pid %lld)", job, r->info.host, (long long)r->info.pid);
    put(w, json_pack("{ss ss si s{so}}", "ph", "M", "name", "process_name", "pid", number, "args", "name", view_text(name)));
    put(w, json_pack("{ss ss si s{si}}", "ph", "M", "name", "process_sort_index", "pid", number, "args", "sort_index", number));
}

/* ---- tracks ------------------------------------------------------------------------------------ */

/* The first lane of a group that is free when the span begins; the last one takes what no other can. */
static int free_lane(int64_t *lanes, int *n_lanes, const trace_span *span)
{
    int k = 0;

    while (k < *n_lanes && k < LANES_MAX - 1 && lanes[k] > span->begin_ns)
        k++;
    if (k == *n_lanes)
        (*n_lanes)++;
    lanes[k] = span->end_ns;
    return k;
}

/* "group 'dp'", and of which world, where there were several. */
static void name_group(const job_view *view, int group, bool beside, char *out, size_t bytes)
{
    const view_group *g = &view->groups[group];
    char world[32] = "";

    if (view->n_worlds > 1 && view->worlds[g->world].generation > 0)
        snprintf(world, sizeof world, " of world %d", view->worlds[g->world].generation);
    snprintf(out, bytes, "group '%.64s'%s%s", g->label, world, beside ? ", beside" : "");
}

static void lay_out_group(writer *w, const trace *t, int rank, int group)
{
    const view_rank *r = &t->view->ranks[rank];
    int64_t lanes[LANES_MAX]; /* until when each is taken */
    char name[128];
    int n_lanes = 0, k;

    if (r->own[group].name == NULL)
        return;
    for (k = 0; k < r->n_ops; k++)
        if (r->ops[k].group == group && r->ops[k].r.kind != TUTTI_RECORD_RANGE)
            t->spans[rank][k].track = 1 + group * LANES_MAX + free_lane(lanes, &n_lanes, &t->spans[rank][k]);
    for (k = 0; k < n_lanes; k++) {
        name_group(t->view, group, k > 0, name, sizeof name);
        name_track(w, rank, 1 + group * LANES_MAX + k, name);
    }
}

/* Which of the threads that have come so far; a new one is added. The last one stands for all that there is no room for. */
static int number_of(int64_t thread, int64_t threads[THREADS_MAX], int *n)
{
    int i = 0;

    while (i < *n && i < THREADS_MAX - 1 && threads[i] != thread)
        i++;
    if (i == *n)
        threads[(*n)++] = thread;
    return i;
}

/* Ranges, a track for each thread; the tracks are numbered in the order in which threads come. */
static void lay_out_ranges(writer *w, const trace *t, int rank)
{
    const view_rank *r = &t->view->ranks[rank];
    int64_t threads[THREADS_MAX];
    int n = 0, k;
    char name[64];

    for (k = 0; k < r->n_ops; k++)
        if (r->ops[k].r.kind == TUTTI_RECORD_RANGE)
            t->spans[rank][k].track = RANGE_TRACKS + number_of(r->ops[k].r.thread, threads, &n);
    for (k = 0; k < n; k++) {
        snprintf(name, sizeof name, "ranges of thread %lld%s", (long long)threads[k], k == THREADS_MAX - 1 ? " and others" : "");
        name_track(w, rank, RANGE_TRACKS + k, name);
    }
}

/* ---- events ------------------------------------------------------------------------------------ */

static const char *state_name(const tutti_record *r)
{
    switch (r->state) {
    case TUTTI_RECORD_ISSUED: return "issued";
    case TUTTI_RECORD_STARTED: return "started";
    case TUTTI_RECORD_FAILED: return tutti_status_name(r->status);
    default: return "done";
    }
}

static json_t *details(const trace *t, const view_op *op)
{
    const tutti_record *r = &op->r;
    json_t *args = json_pack("{sI ss sb}", "id", (json_int_t)r->id, "state", state_name(r), "async", r->is_async);

    if (r->kind == TUTTI_RECORD_RANGE || args == NULL)
        return args;
    json_object_set_new(args, "name", view_text(r->name));
    json_object_set_new(args, "group", view_text(op->group >= 0 ? t->view->groups[op->group].label : "?"));
    json_object_set_new(args, "seq", json_integer((json_int_t)r->seq));
    json_object_set_new(args, "count", json_integer(r->count));
    json_object_set_new(args, "dtype", json_string(tutti_dtype_name(r->dtype)));
    json_object_set_new(args, "in_bytes", json_integer((json_int_t)r->in_bytes));
    json_object_set_new(args, "out_bytes", json_integer((json_int_t)r->out_bytes));
    if (r->peer >= 0)
        json_object_set_new(args, view_is_collective(op) ? "root" : "peer", json_integer(r->peer));
    if (!view_is_collective(op))
        json_object_set_new(args, "tag", json_integer(r->tag));
    if (r->waited_ns > 0)
        json_object_set_new(args, "waited_us", json_real((double)r->waited_ns / 1000));
    if (r->late >= 0)
        json_object_set_new(args, "waited_for", json_integer(r->late));
    return args;
}

static const char *category(const view_op *op)
{
    if (op->r.kind == TUTTI_RECORD_RANGE || view_is_collective(op))
        return op->r.kind == TUTTI_RECORD_RANGE ? "range" : "collective";
    return view_is_regrouping(op) ? "group" : "message";
}

static void put_op(writer *w, const trace *t, int rank, int k)
{
    const view_op *op = &t->view->ranks[rank].ops[k];
    const trace_span *span = &t->spans[rank][k];
    char name[VIEW_TEXT_MAX];

    if (op->group < 0 && op->r.kind != TUTTI_RECORD_RANGE)
        return;
    if (op->r.kind == TUTTI_RECORD_RANGE || !view_is_collective(op))
        snprintf(name, sizeof name, "%s", op->r.kind == TUTTI_RECORD_RANGE ? op->r.name : op->r.op);
    else
        snprintf(name, sizeof name, "%s #%llu", op->r.op, (unsigned long long)op->r.seq);
    put(w, json_pack("{ss so ss sf sf si si so*}", "ph", "X", "name", view_text(name), "cat", category(op), "ts", us(w, span->begin_ns), "dur",
                     (double)(span->end_ns - span->begin_ns) / 1000, "pid", rank, "tid", span->track, "args", details(t, op)));
}

/* An arrow from where it was sent to where it had come. */
static void put_flow(writer *w, const trace *t, const trace_flow *f, int id)
{
    const trace_span *from = &t->spans[f->from_rank][f->from_op], *to = &t->spans[f->to_rank][f->to_op];

    put(w, json_pack("{ss ss ss si sf si si}", "ph", "s", "name", "message", "cat", "message", "id", id, "ts", us(w, from->begin_ns),
                     "pid", f->from_rank, "tid", from->track));
    put(w, json_pack("{ss ss ss ss si sf si si}", "ph", "f", "bp", "e", "name", "message", "cat", "message", "id", id, "ts",
                     us(w, to->end_ns), "pid", f->to_rank, "tid", to->track));
}

static int64_t earliest(const trace *t)
{
    int64_t zero_ns = INT64_MAX;
    int i, k;

    for (i = 0; i < t->view->n_ranks; i++)
        for (k = 0; k < t->view->ranks[i].n_ops; k++)
            if (t->spans[i][k].begin_ns < zero_ns)
                zero_ns = t->spans[i][k].begin_ns;
    return zero_ns == INT64_MAX ? 0 : zero_ns;
}

static json_t *about(const trace *t)
{
    json_t *hosts = json_array();
    int c;

    for (c = 0; c < t->n_clocks; c++)
        json_array_append_new(hosts, json_pack("{so sI sb}", "host", view_text(t->clocks[c].host), "moved_ns", (json_int_t)t->clocks[c].offset_ns,
                                               "by_operations",
                                               c == 0 || (t->clocks[c].least_ns != INT64_MIN && t->clocks[c].most_ns != INT64_MAX)));
    return json_pack("{ss si so}", "made_by", "tutti trace", "ranks", t->view->n_ranks, "hosts", hosts);
}

bool trace_write(const trace *t, const trace_flow *flows, int n_flows, FILE *out)
{
    writer w = { .out = out, .zero_ns = earliest(t), .first = true, .ok = true };
    json_t *other = about(t);
    const bool several_jobs = has_several_jobs(t->view);
    int i, k;

    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":", out);
    w.ok = other != NULL && json_dumpf(other, out, JSON_COMPACT) == 0;
    json_decref(other);
    fputs(",\"traceEvents\":[", out);
    for (i = 0; i < t->view->n_ranks; i++) {
        name_rank(&w, t->view, i, several_jobs);
        for (k = 0; k < t->view->n_groups; k++)
            lay_out_group(&w, t, i, k);
        lay_out_ranges(&w, t, i);
    }
    for (i = 0; i < t->view->n_ranks; i++)
        for (k = 0; k < t->view->ranks[i].n_ops; k++)
            put_op(&w, t, i, k);
    for (i = 0; i < n_flows; i++)
        put_flow(&w, t, &flows[i], i + 1);
    fputs("\n]}\n", out);
    return w.ok && fflush(out) == 0 && ferror(out) == 0;
}
