/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_view.c - which recorders are looked at, and words for what is in them. */
#include "job_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "process.h"

enum { PATH_BYTES = 4096, PIDS_SHOWN = 8, LIST_BYTES = 96 };

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

/* The job runs here, and nothing of it is recorded: why. */
static void say_unrecorded(const char *command, const char *job, const pid_t *pids, int n)
{
    char why[PROCESS_WORD_MAX];
    int i;

    fprintf(stderr, "%s: job '%s' has %d process%s here (pid", command, job, n, n == 1 ? "" : "es");
    for (i = 0; i < n && i < PIDS_SHOWN; i++)
        fprintf(stderr, "%s %ld", i > 0 ? "," : "", (long)pids[i]);
    if (process_records_nothing(pids[0], why))
        fprintf(stderr, "%s), and no recorder: they were started with %s\n  next: start it without that; until then gdb -p %ld\n",
                n > PIDS_SHOWN ? ", ..." : "", why, (long)pids[0]);
    else
        fprintf(stderr, "%s), and no recorder: none has made a world yet, or this user may not look\n"
                        "  next: see what they do: gdb -p %ld; or ask as their user\n",
                n > PIDS_SHOWN ? ", ..." : "", (long)pids[0]);
}

static bool say_none(const char *command, const char *job)
{
    pid_t *pids = calloc(VIEW_RANKS_MAX, sizeof *pids);
    int *ranks = calloc(VIEW_RANKS_MAX, sizeof *ranks);
    const int n = job != NULL && pids != NULL && ranks != NULL ? process_find(job, pids, ranks, VIEW_RANKS_MAX) : 0;

    if (n > 0)
        say_unrecorded(command, job, pids, n);
    else
        fprintf(stderr, "%s: no process of %s%s%s is found on this host\n"
                        "  next: name processes (--pid), or files (--dumps); those of another user are seen by that user, and by root\n",
                command, job != NULL ? "job '" : "any job", job != NULL ? job : "", job != NULL ? "'" : "");
    free(pids);
    free(ranks);
    return false;
}

bool job_view_find(const char *command, const char *job, job_view *view)
{
    if (tutti_recorder_find(job, &view->recorders, &view->n_recorders) != TUTTI_OK)
        return failed(command);
    if (view->n_recorders == 0)
        return say_none(command, job);
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

/* ---- once each --------------------------------------------------------------------------------- */

static bool same_process(const tutti_recorder_info *a, const tutti_recorder_info *b)
{
    return a->pid == b->pid && a->pid_began == b->pid_began && strcmp(a->boot, b->boot) == 0 && strcmp(a->host, b->host) == 0;
}

/* Whether recorder i of n is of a process that has a later one, or the same one once more behind it. */
static bool is_outdated(const tutti_recorder_info *info, int n, int i)
{
    int k;

    for (k = 0; k < n; k++)
        if (k != i && same_process(&info[i], &info[k]) &&
            (info[k].read_ns > info[i].read_ns || (info[k].read_ns == info[i].read_ns && k > i)))
            return true;
    return false;
}

/* A process counts once, with what is known last of it: folders that were saved one after the other may be read together. */
static bool keep_latest(const char *command, job_view *view)
{
    const int n = view->n_recorders;
    tutti_recorder_info *info = calloc((size_t)n + 1, sizeof *info); /* words in it are the recorders' */
    tutti_recorder **outdated = calloc((size_t)n + 1, sizeof *outdated);
    bool ok = info != NULL && outdated != NULL;
    int i, kept = 0;

    for (i = 0; i < n && ok; i++)
        info[i] = info_of(view->recorders[i]);
    for (i = 0; i < n && ok; i++)
        if (is_outdated(info, n, i))
            outdated[i - kept] = view->recorders[i];
        else
            view->recorders[kept++] = view->recorders[i];
    for (i = 0; i < n - kept && ok; i++)
        tutti_recorder_close(outdated[i]);
    if (ok)
        view->n_recorders = kept;
    if (ok && kept < n)
        fprintf(stderr, "%s: %d of these %s of processes that are there more than once: the latest of each counts\n", command,
                n - kept, n - kept == 1 ? "is" : "are");
    free(info);
    free(outdated);
    return ok || no_memory(command);
}

bool job_view_open_pids(const char *command, char *const *pids, int n, job_view *view)
{
    char *end = NULL;
    long pid;
    int i;

    if (!make_list(command, n, view))
        return false;
    view->from_pids = true;
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
    return keep_latest(command, view);
}

/* Whether a file has what TUTTI_TRACE_FILE writes for other tools: the recorder itself stands beside it. */
static bool is_json(const char *path)
{
    FILE *file = fopen(path, "re");
    int c = ' ';

    while (file != NULL && (c == ' ' || c == '\n'))
        c = fgetc(file);
    if (file != NULL)
        fclose(file);
    return c == '{';
}

static bool is_among(const char *path, char *const *files, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (strcmp(files[i], path) == 0)
            return true;
    return false;
}

static bool say_json(const char *command, const char *file, const char *beside)
{
    fprintf(stderr, "%s: '%.500s' is JSON, for other tools, and '%.500s' is not beside it\n"
                    "  next: bring that, too; or recorders that --save, TUTTI_TRACE_SIGNAL or tutti_recorder_save() has written\n",
            command, file, beside);
    return false;
}

/* One of files; in the place of JSON what stands beside it, unless that is among them, too. */
static bool open_file(const char *command, char *const *files, int n, int i, job_view *view)
{
    tutti_recorder **at = &view->recorders[view->n_recorders];
    char beside[PATH_BYTES];
    tutti_status st = tutti_recorder_open_file(files[i], at);

    snprintf(beside, sizeof beside, "%s.rec", files[i]);
    if (st == TUTTI_E_IO && is_json(files[i])) {
        if (is_among(beside, files, n))
            return true;
        st = tutti_recorder_open_file(beside, at);
        if (st != TUTTI_OK)
            return say_json(command, files[i], beside);
    }
    view->n_recorders += st == TUTTI_OK;
    return st == TUTTI_OK || failed(command);
}

/* Whose files were probably meant. */
static bool say_folder(const char *command, const char *folder)
{
    fprintf(stderr, "%s: '%.500s' is a folder\n  next: name the files in it: %.500s/*.rec\n", command, folder, folder);
    return false;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool job_view_open_files(const char *command, char *const *files, int n, job_view *view)
{
    int i;

    if (!make_list(command, n, view))
        return false;
    view->from_files = true;
    for (i = 0; i < n; i++)
        if (is_folder(files[i]))
            return say_folder(command, files[i]);
        else if (!open_file(command, files, n, i, view))
            return false;
    return keep_latest(command, view);
}

void job_view_update(job_view *view)
{
    int i;

    for (i = 0; i < view->n_recorders && !view->from_files; i++)
        (void)tutti_recorder_update(view->recorders[i]); /* a process that is gone meanwhile keeps its last copy */
}

void job_view_release(job_view *view)
{
    job_view_forget(view);
    tutti_recorder_list_free(view->recorders, view->n_recorders);
    *view = (job_view){ .recorders = NULL };
}

/* ---- looking ----------------------------------------------------------------------------------- */

int view_rank_in(const view_rank *rank, int group)
{
    return group >= 0 && rank->own[group].name != NULL ? rank->own[group].world_rank : -1;
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

bool view_is_regrouping(const view_op *op)
{
    const tutti_record_kind kind = op->r.kind;

    return (kind >= TUTTI_RECORD_NEW_GROUP && kind <= TUTTI_RECORD_MERGE_GROUP) || kind == TUTTI_RECORD_RECONFIGURE;
}

bool view_is_left_out(const view_op *op, int place)
{
    return op->r.is_listed && place >= 0 && place < 128 && (op->r.left_out[place / 64] >> place % 64 & 1) != 0;
}

bool view_is_step_of(const view_op *step, const view_op *whole)
{
    return view_is_regrouping(whole) && step != whole && step->group == whole->group && step->r.issued_ns >= whole->r.issued_ns &&
           (whole->r.ended_ns == 0 || step->r.issued_ns <= whole->r.ended_ns);
}

bool view_is_open(const view_op *op)
{
    return op->r.state == TUTTI_RECORD_ISSUED || op->r.state == TUTTI_RECORD_STARTED;
}

bool view_was_open(const view_op *op)
{
    return view_is_open(op) || op->until_saved;
}

/* ---- words ------------------------------------------------------------------------------------- */

static bool adds_up(tutti_record_kind kind)
{
    return kind == TUTTI_RECORD_ALL_REDUCE || kind == TUTTI_RECORD_REDUCE || kind == TUTTI_RECORD_REDUCE_SCATTER;
}

/* " (without ranks 3, 5-7)", of a list that is known. */
static void describe_left_out(const job_view *view, const view_op *op, char *out, size_t bytes)
{
    const view_group *g = op->group >= 0 ? &view->groups[op->group] : NULL;
    int ranks[128], n = 0, i;
    char list[LIST_BYTES];

    for (i = 0; i < 128; i++)
        if (view_is_left_out(op, i))
            ranks[n++] = g != NULL && g->ranks != NULL && i < g->n_ranks ? g->ranks[i] : i;
    view_write_ranks(ranks, n, list, sizeof list);
    snprintf(out, bytes, " (without rank%s %s)", n == 1 ? "" : "s", list);
}

/* "(2 newcomers)", "(without rank 3)"; nothing where nothing was given. */
static void describe_regrouping(const job_view *view, const view_op *op, char *out, size_t bytes)
{
    const tutti_record *r = &op->r;

    if (r->kind == TUTTI_RECORD_GROW_GROUP && r->count == 0)
        snprintf(out, bytes, " (those that have asked)");
    else if (r->kind == TUTTI_RECORD_GROW_GROUP)
        snprintf(out, bytes, " (%lld newcomer%s)", (long long)r->count, r->count == 1 ? "" : "s");
    else if (r->kind == TUTTI_RECORD_SHRINK_GROUP && r->peer >= 0)
        snprintf(out, bytes, " (without rank %d)", r->peer);
    else if (r->kind == TUTTI_RECORD_SHRINK_GROUP && r->is_listed && r->count > 0)
        describe_left_out(view, op, out, bytes);
    else if (r->kind == TUTTI_RECORD_SHRINK_GROUP && r->count > 0)
        snprintf(out, bytes, " (without %lld ranks)", (long long)r->count);
    else if (r->kind == TUTTI_RECORD_MERGE_GROUP || r->kind == TUTTI_RECORD_RECONFIGURE)
        snprintf(out, bytes, " (to be %lld)", (long long)r->count);
}

/* "(sum, 1000 f32)". */
static void describe_data(const job_view *view, const view_op *op, char *out, size_t bytes)
{
    const tutti_record *r = &op->r;

    out[0] = '\0';
    if (view_is_regrouping(op))
        describe_regrouping(view, op, out, bytes);
    if (r->kind == TUTTI_RECORD_BARRIER || r->kind == TUTTI_RECORD_MONITORED_BARRIER || view_is_regrouping(op))
        return;
    snprintf(out, bytes, " (%s%s%lld %s)", adds_up(r->kind) ? tutti_op_name(r->reduce) : "", adds_up(r->kind) ? ", " : "",
             (long long)r->count, tutti_dtype_name(r->dtype));
}

void view_describe(const job_view *view, const view_op *op, char out[VIEW_TEXT_MAX])
{
    const tutti_record *r = &op->r;
    char data[LIST_BYTES + 32], peer[32];

    describe_data(view, op, data, sizeof data);
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
