/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tune.c - reads a table of algorithms.
 *
 * True    A table is somebody's file: its size and its rows have limits, names must be known, numbers in
 *         range, and members that mean nothing here are errors, since a slip in "algorithm" must not pass
 *         for a row that fits all. On any failure there is no table, rather than half of one.
 * Fails   With the file, the line and the word: the parser tells lines of what is no JSON; for rows they
 *         are counted in the text, which is known to be JSON by then. */
#include "coll/tune.h"

#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/text_file.h"
#include "coll/choose.h"

enum { FILE_MAX = 1024 * 1024, ROWS_MAX = 4096, VERSION = 1, SHOWN_MAX = 40 };

/* ---- where, and what is wrong there ------------------------------------------------------------ */

/* Of the n-th entry of the only list in the outermost object. */
static int line_of_row(const char *text, size_t bytes, int n)
{
    int    line = 1, depth = 0;
    bool   quoted = false;
    size_t i;

    for (i = 0; i < bytes; i++) {
        const char c = text[i];

        line += c == '\n';
        if (depth == 2 && n == 0 && !isspace((unsigned char)c))
            return line;
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == ',' && depth == 2) {
            n--;
        }
    }
    return line;
}

/* A row on its way from JSON. */
typedef struct reading {
    const char *path;
    const char *text;
    size_t      bytes;
    int         index; /* of the row */
} reading;

static tutti_status TUTTI_PRINTF(2, 3) fail_row(const reading *r, const char *fmt, ...);

static tutti_status fail_row(const reading *r, const char *fmt, ...)
{
    char    what[768];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return tti_fail(TUTTI_E_ARG, "table of algorithms '%s' (TUTTI_TUNE), line %d: %s", r->path,
                    line_of_row(r->text, r->bytes, r->index), what);
}

static tutti_status fail_table(const char *path, const char *what)
{
    return tti_fail(TUTTI_E_ARG,
                    "table of algorithms '%s' (TUTTI_TUNE): %s\n"
                    "  next: write one with `tutti bench --tune`, or as tutti/tune.h tells",
                    path, what);
}

/* ---- members of a row -------------------------------------------------------------------------- */

static tutti_status read_names(const reading *r, const json_t *op, const json_t *name, tti_tune_row *row)
{
    tti_words words = { .used = 0 };
    int       n;

    if (!json_is_string(op) || !json_is_string(name))
        return fail_row(r, "a row needs \"op\" and \"algorithm\", both words");
    row->kind = (int32_t)tti_kind_named(json_string_value(op));
    if (row->kind == TUTTI_CALL_KIND_COUNT) {
        tti_add_kinds(&words);
        return fail_row(r, "no operation is called '%.*s'\n  next: take one of %s", SHOWN_MAX,
                        json_string_value(op), words.text);
    }
    row->row = tti_algorithm_named((tutti_call_kind)row->kind, json_string_value(name));
    if (row->row < 0) {
        tti_add_algorithms(&words, (tutti_call_kind)row->kind);
        return fail_row(r, "%s has no algorithm '%.*s'\n  next: take one of %s", json_string_value(op),
                        SHOWN_MAX, json_string_value(name), words.text);
    }
    if (tti_is_fused(&tti_algorithms(&n)[row->row]))
        return fail_row(r, "'%s' is taken by itself where all buffers are registered", json_string_value(name));
    return TUTTI_OK;
}

/* [from, to], where to may be null; or one number, if there may be. */
static tutti_status read_range(const reading *r, const char *what, const json_t *value, int64_t most,
                               int64_t *from, int64_t *to)
{
    const json_t *first = value, *last = value;

    *from = 0;
    *to = most;
    if (value == NULL)
        return TUTTI_OK;
    if (json_is_array(value) && json_array_size(value) == 2) {
        first = json_array_get(value, 0);
        last = json_array_get(value, 1);
    }
    if (!json_is_integer(first) || !(json_is_integer(last) || (last != value && json_is_null(last))))
        return fail_row(r, "\"%s\" is not [from, to], whole numbers", what);
    *from = json_integer_value(first);
    if (json_is_integer(last))
        *to = json_integer_value(last);
    if (*from < 0 || *to < *from || *to > most)
        return fail_row(r, "\"%s\" from %lld to %lld is no range between 0 and %lld", what,
                        (long long)*from, (long long)*to, (long long)most);
    return TUTTI_OK;
}

static tutti_status read_hosts(const reading *r, const json_t *value, tti_tune_row *row)
{
    const char *text = value == NULL ? "" : json_string_value(value);

    row->one_host = value == NULL || (text != NULL && strcmp(text, "one") == 0);
    row->many_hosts = value == NULL || (text != NULL && strcmp(text, "many") == 0);
    if (row->one_host || row->many_hosts)
        return TUTTI_OK;
    return fail_row(r, "\"hosts\" is not \"one\" or \"many\"");
}

static tutti_status check_members(const reading *r, const json_t *row)
{
    static const char *const known[] = { "op", "algorithm", "bytes", "ranks", "hosts" };
    const char              *key;
    json_t                  *value;
    size_t                   i;

    if (!json_is_object(row))
        return fail_row(r, "a row is not { ... }");
    json_object_foreach ((json_t *)(uintptr_t)row, key, value) {
        for (i = 0; i < sizeof known / sizeof known[0] && strcmp(key, known[i]) != 0; i++)
            ;
        if (i == sizeof known / sizeof known[0])
            return fail_row(r, "a row has no '%.*s'\n  next: take op, algorithm, bytes, ranks and hosts",
                            SHOWN_MAX, key);
    }
    return TUTTI_OK;
}

static tutti_status read_row(const reading *r, const json_t *json, tti_tune_row *row)
{
    int64_t      from = 0, to = 0;
    tutti_status st = check_members(r, json);

    if (st == TUTTI_OK)
        st = read_names(r, json_object_get(json, "op"), json_object_get(json, "algorithm"), row);
    if (st == TUTTI_OK)
        st = read_range(r, "bytes", json_object_get(json, "bytes"), INT64_MAX, &row->bytes_least,
                        &row->bytes_most);
    if (st == TUTTI_OK)
        st = read_range(r, "ranks", json_object_get(json, "ranks"), INT32_MAX, &from, &to);
    row->ranks_least = (int32_t)from;
    row->ranks_most = (int32_t)to;
    return st == TUTTI_OK ? read_hosts(r, json_object_get(json, "hosts"), row) : st;
}

/* ---- the table --------------------------------------------------------------------------------- */

static tutti_status read_rows(reading *r, const json_t *list, tti_tune *tune)
{
    const size_t n = json_array_size(list);
    tutti_status st = TUTTI_OK;

    if (n > ROWS_MAX)
        return tti_fail(TUTTI_E_ARG, "table of algorithms '%s' has %zu rows, more than %d", r->path, n,
                        ROWS_MAX);
    tune->rows = calloc(n > 0 ? n : 1, sizeof *tune->rows);
    if (tune->rows == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %zu rows of '%s'", n, r->path);
    for (; tune->n < (int)n && st == TUTTI_OK; tune->n++) {
        r->index = tune->n;
        st = read_row(r, json_array_get(list, (size_t)tune->n), &tune->rows[tune->n]);
    }
    return st;
}

static tutti_status check_table(const char *path, const json_t *json)
{
    const json_t *version = json_object_get(json, "tutti_tune");

    if (!json_is_object(json) || !json_is_integer(version))
        return fail_table(path, "it is not { \"tutti_tune\": 1, \"rows\": [ ... ] }");
    if (json_integer_value(version) != VERSION)
        return fail_table(path, "it is of another version of tutti");
    if (!json_is_array(json_object_get(json, "rows")) || json_object_size(json) != 2)
        return fail_table(path, "beside its version it has something else than \"rows\": [ ... ]");
    return TUTTI_OK;
}

static tutti_status fail_json(const char *path, const json_error_t *error)
{
    char what[JSON_ERROR_TEXT_LENGTH + 32];

    snprintf(what, sizeof what, "line %d is no JSON: %s", error->line, error->text);
    return fail_table(path, what);
}

tutti_status tti_tune_parse(const char *path, const char *text, size_t bytes, tti_tune *tune_out)
{
    reading      r = { .path = path, .text = text, .bytes = bytes };
    tti_tune     tune = { .n = 0 };
    json_error_t error;
    json_t      *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    tutti_status st;

    if (json == NULL)
        return fail_json(path, &error);
    st = check_table(path, json);
    if (st == TUTTI_OK)
        st = read_rows(&r, json_object_get(json, "rows"), &tune);
    json_decref(json);
    if (st == TUTTI_OK)
        *tune_out = tune;
    else
        tti_tune_release(&tune);
    return st;
}

tutti_status tti_tune_read(const char *path, tti_tune *tune_out)
{
    char        *text = NULL;
    size_t       bytes = 0;
    tutti_status st;

    *tune_out = (tti_tune){ .n = 0 };
    if (path == NULL)
        return TUTTI_OK;
    st = tti_text_file_read("table of algorithms (TUTTI_TUNE)", path, FILE_MAX, &text, &bytes);
    if (st == TUTTI_OK)
        st = tti_tune_parse(path, text, bytes, tune_out);
    free(text);
    return st;
}

void tti_tune_release(tti_tune *tune)
{
    free(tune->rows);
    *tune = (tti_tune){ .n = 0 };
}

bool tti_tune_fits(const tti_tune_row *row, int kind, int64_t bytes, int n_ranks, bool one_host)
{
    return row->kind == kind && bytes >= row->bytes_least && bytes <= row->bytes_most &&
           n_ranks >= row->ranks_least && n_ranks <= row->ranks_most &&
           (one_host ? row->one_host : row->many_hosts);
}
