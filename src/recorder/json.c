/* SPDX-License-Identifier: BSD-3-Clause
 *
 * json.c - a recorder in the form of PyTorch's flight recorder, so that what reads those dumps reads ours.
 *
 * How     Its keys first, with its spellings: a group is called by its name, states are "scheduled", "started" and
 *         "completed", dtypes "Float" and "Long", a message's name says between whom ("native:send 1->2", ranks of the
 *         group). An operation that failed is not "completed" there; "status" says with what. Sizes are one number,
 *         since spans have no shape. What that form has no place for follows under names of our own. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/options.h"
#include "recorder/read.h"
#include <tutti/private.h>

#define FORMAT "2.10"

static const char *const dtype_words[TUTTI_DTYPE_COUNT] = {
    [TUTTI_BOOL] = "Bool", [TUTTI_U8] = "Byte", [TUTTI_I8] = "Char", [TUTTI_U16] = "UInt16", [TUTTI_I16] = "Short",
    [TUTTI_U32] = "UInt32", [TUTTI_I32] = "Int", [TUTTI_U64] = "UInt64", [TUTTI_I64] = "Long", [TUTTI_F16] = "Half",
    [TUTTI_BF16] = "BFloat16", [TUTTI_F32] = "Float", [TUTTI_F64] = "Double", [TUTTI_F8E4M3FN] = "Float8_e4m3fn",
    [TUTTI_F8E5M2] = "Float8_e5m2", [TUTTI_C64] = "ComplexFloat", [TUTTI_C128] = "ComplexDouble",
};

static const char *const state_words[] = { "scheduled", "scheduled", "started", "completed", "started" };

static bool is_collective(const tutti_record *rec)
{
    return (unsigned)rec->kind < TUTTI_RECORD_SEND;
}

static bool is_message(const tutti_record *rec)
{
    return rec->kind == TUTTI_RECORD_SEND || rec->kind == TUTTI_RECORD_RECV;
}

static bool has_ended(const tutti_record *rec)
{
    return rec->state == TUTTI_RECORD_DONE || rec->state == TUTTI_RECORD_FAILED;
}

static json_int_t number(uint64_t n)
{
    return (json_int_t)(n & INT64_MAX);
}

/* ---- groups ---- */

/* "[0, 1, 2]": that form has the list as a text. */
static json_t *ranks_text(const tutti_recorder_group *g)
{
    char   *text = NULL;
    size_t  bytes = 0;
    FILE   *out = open_memstream(&text, &bytes);
    json_t *json;
    int     i;

    if (out == NULL)
        return NULL;
    fputc('[', out);
    for (i = 0; g->ranks != NULL && i < g->n_ranks; i++)
        fprintf(out, "%s%d", i > 0 ? ", " : "", g->ranks[i]);
    fputc(']', out);
    json = fclose(out) == 0 ? json_string(text) : NULL;
    free(text);
    return json;
}

static json_t *group_config(const tutti_recorder_group *g)
{
    return json_pack("{ss ss so ss si si sb sb}", "name", g->name, "desc", g->desc[0] != '\0' ? g->desc :
                     g->number == 0 ? "default_pg" : "undefined", "ranks", ranks_text(g), "backend_config", g->backend,
                     "rank", g->rank, "size", g->n_ranks, "is_there", (int)g->is_there, "has_failed", (int)g->has_failed);
}

static json_t *group_status(const tutti_recorder_group *g)
{
    return json_pack("{sI sI sI sI}", "last_enqueued_collective", number(g->issued), "last_started_collective",
                     number(g->began), "last_completed_collective", number(g->ended), "p2p_operations",
                     number(g->messages));
}

/* The newest of each name: an older one is gone, or of another world. */
static bool add_groups(const tutti_recorder *r, json_t *config, json_t *status)
{
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    int                  i;

    for (i = 0; i < tutti_recorder_count_groups(r); i++) {
        tutti_recorder_get_group(r, i, &g);
        if (json_object_set_new(config, g.name, group_config(&g)) != 0 ||
            json_object_set_new(status, g.name, group_status(&g)) != 0)
            return false;
    }
    return true;
}

/* ---- records ---- */

static int group_rank(const tutti_recorder_group *g, int rank)
{
    int i;

    for (i = 0; g->ranks != NULL && i < g->n_ranks; i++)
        if (g->ranks[i] == rank)
            return i;
    return -1;
}

/* "native:recv 1<-?"; of a collective what that form calls it. */
static void put_title(const tutti_record *rec, const tutti_recorder_group *g, char *out, size_t bytes)
{
    const char *backend = g->backend[0] != '\0' ? g->backend : "native";
    const char *op = rec->op;
    char        peer[16] = "?";

    if (rec->name[0] != '\0' && !is_message(rec)) {
        snprintf(out, bytes, "%s", rec->name);
        return;
    }
    if (strncmp(backend, "cpu:", 4) == 0)
        backend += 4; /* of "cpu:native,cuda:nccl" what works on the CPU */
    if (rec->peer >= 0)
        snprintf(peer, sizeof peer, "%d", group_rank(g, rec->peer));
    if (rec->kind == TUTTI_RECORD_GATHER_V)
        op = "gather";
    else if (rec->kind == TUTTI_RECORD_SCATTER_V)
        op = "scatter";
    if (is_message(rec))
        snprintf(out, bytes, "%.*s:%s %d%s%s", (int)strcspn(backend, ","), backend, op, g->rank,
                 rec->kind == TUTTI_RECORD_SEND ? "->" : "<-", peer);
    else
        snprintf(out, bytes, "%.*s:%s", (int)strcspn(backend, ","), backend, op);
}

/* Of a broadcast and a reduction to one that form has the buffer of every member, read or not. */
static json_t *sizes(uint64_t bytes, const tutti_record *rec)
{
    const size_t size = tutti_dtype_size(rec->dtype);

    if (rec->kind == TUTTI_RECORD_BROADCAST || rec->kind == TUTTI_RECORD_REDUCE)
        bytes = (uint64_t)rec->count * size;
    return json_pack("[[I]]", number(size != 0 ? bytes / size : 0));
}

/* What only we have. */
static int add_own(json_t *entry, const tutti_record *rec)
{
    return json_object_update_new(
        entry, json_pack("{ss ss sI sI sI sI si si si sb sI}", "op", rec->op, "status",
                         rec->state == TUTTI_RECORD_FAILED ? tutti_status_name(rec->status) : "", "count", number((uint64_t)rec->count),
                         "input_bytes", number(rec->in_bytes), "output_bytes", number(rec->out_bytes),
                         "waited_ns", (json_int_t)rec->waited_ns, "waited_for_rank", rec->late, "peer", rec->peer, "tag",
                         rec->tag, "async", (int)rec->is_async, "time_issued_mono_ns", (json_int_t)rec->issued_ns));
}

/* A time of that form: since the epoch; null where it is not known. */
static json_t *wall(int64_t ns, int64_t real_ns)
{
    return ns != 0 ? json_integer(ns + real_ns) : json_null();
}

static json_t *make_entry(const tutti_record *rec, const tutti_recorder_group *g, const tutti_recorder_info *info)
{
    const char *dtype = dtype_words[rec->dtype];
    char        title[2 * TUTTI_RECORDER_TEXT_MAX];
    json_t     *entry;
    double      ms = rec->ended_ns != 0 && rec->began_ns != 0 ? (double)(rec->ended_ns - rec->began_ns) / 1e6 : -1;

    put_title(rec, g, title, sizeof title);
    entry = json_pack(
        "{sI sI s[ss] sI sI sI ss so so so so so s[s] so s[s] ss sb sb sn}", "record_id", number(rec->id), "pg_id",
        (json_int_t)g->number, "process_group", g->name,
        g->desc[0] != '\0' ? g->desc : g->number == 0 ? "default_pg" : "undefined", "collective_seq_id",
        is_collective(rec) ? number(rec->seq) : 0, "p2p_seq_id", is_message(rec) ? number(rec->seq) : 0, "op_id",
        number(rec->id), "profiling_name", title, "time_created_ns", wall(rec->issued_ns, info->real_ns),
        "time_discovered_started_ns", wall(rec->began_ns, info->real_ns), "time_discovered_completed_ns",
        wall(rec->ended_ns, info->real_ns), "duration_ms", ms >= 0 ? json_real(ms) : json_null(), "input_sizes",
        sizes(rec->in_bytes, rec), "input_dtypes", dtype, "output_sizes", sizes(rec->out_bytes, rec), "output_dtypes",
        dtype, "state", state_words[rec->state], "is_p2p", (int)is_message(rec), "retired", (int)has_ended(rec),
        "timeout_ms");
    if (entry != NULL && add_own(entry, rec) != 0) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

static bool is_wanted(const tutti_record *rec, const tutti_dump_options *opts)
{
    return rec->kind != TUTTI_RECORD_RANGE && !(opts->only_active && has_ended(rec));
}

static bool add_entries(const tutti_recorder *r, const tutti_recorder_info *info, const tutti_dump_options *opts,
                        json_t *entries)
{
    static const tutti_recorder_group unknown = { .name = "?", .desc = "", .backend = "", .rank = -1 };
    tutti_recorder_group              g = TUTTI_RECORDER_GROUP;
    tutti_record                      rec = TUTTI_RECORD;
    int                               i;

    for (i = 0; i < tutti_recorder_count_records(r); i++) {
        tutti_recorder_get_record(r, i, &rec);
        if (!is_wanted(&rec, opts))
            continue;
        if (rec.group >= 0)
            tutti_recorder_get_group(r, rec.group, &g);
        if (json_array_append_new(entries, make_entry(&rec, rec.group >= 0 ? &g : &unknown, info)) != 0)
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static json_t *make_root(const tutti_recorder_info *info)
{
    return json_pack("{ss ss sI sI si si ss ss ss sb sb sI sI ss sI}", "version", FORMAT, "comm_lib_version", "tutti",
                     "pid", (json_int_t)info->pid, "recorder_version", (json_int_t)TUTTI_RECORDER_VERSION, "rank",
                     info->rank, "world_size", info->world_size, "host", info->host, "program", info->program, "job",
                     info->job, "alive", (int)info->is_alive, "left", (int)info->has_left, "issued",
                     number(info->issued), "failures", number(info->failures), "first_failure", info->failed_words,
                     "time_read_ns", (json_int_t)(info->read_ns + info->real_ns));
}

/* Into memory of just its size. jansson's own way, json_dumps(), lets its text grow, and where there is no memory for that in the
 * middle of a key it leaves the key out, goes on, and says that all is well (2.14). */
static char *text_of(const json_t *root)
{
    const size_t bytes = json_dumpb(root, NULL, 0, JSON_INDENT(1));
    char        *text = bytes > 0 ? malloc(bytes + 1) : NULL;

    if (text != NULL && json_dumpb(root, text, bytes, JSON_INDENT(1)) != bytes) {
        free(text);
        return NULL;
    }
    if (text != NULL)
        text[bytes] = '\0';
    return text;
}

static char *write_json(const tutti_recorder *r, const tutti_dump_options *opts)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;
    json_t             *root, *config = json_object(), *status = json_object(), *entries = json_array();
    char               *text = NULL;
    bool                fine;

    tutti_recorder_get_info(r, &info);
    root = make_root(&info);
    fine = root != NULL && config != NULL && status != NULL && entries != NULL && add_groups(r, config, status) &&
           (opts->no_collectives || add_entries(r, &info, opts, entries));
    if (fine && json_object_set(root, "pg_config", config) == 0 && json_object_set(root, "pg_status", status) == 0 &&
        (opts->no_collectives || json_object_set(root, "entries", entries) == 0))
        text = text_of(root);
    json_decref(config);
    json_decref(status);
    json_decref(entries);
    json_decref(root);
    return text;
}

tutti_status tutti_recorder_json(const tutti_recorder *recorder, const tutti_dump_options *opts, char **json_out)
{
    tutti_dump_options known = TUTTI_DUMP_OPTIONS;
    tutti_status       st = TUTTI_OK;
    char              *text;

    if (recorder == NULL || json_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_recorder_json: %s is NULL", recorder == NULL ? "recorder" : "json_out");
    if (opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_DUMP_OPTIONS");
    if (st != TUTTI_OK)
        return st;
    text = write_json(recorder, &known);
    if (text == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a recorder as JSON");
    *json_out = text;
    return TUTTI_OK;
}
