/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - totals for eyes: ranges since the process began, operations as far as the ring goes back. */
#include <stdio.h>
#include <stdlib.h>
#include "base/map.h"
#include "recorder/read.h"
#include <tutti/private.h>

/* A line; of operations those with times are fewer than all. */
typedef struct line {
    char     name[TUTTI_RECORDER_TEXT_MAX + 24];
    uint64_t calls;
    uint64_t timed;
    int64_t  total_ns;
    int64_t  most_ns;
} line;

typedef struct lines {
    line   *at;
    int     n;
    int     room;
    tti_map by_name; /* to the number of each */
} lines;

static void begin_lines(lines *all)
{
    *all = (lines){ .n = 0 };
    tti_map_init(&all->by_name, tti_port_system());
}

static void release_lines(lines *all)
{
    tti_map_release(&all->by_name);
    free(all->at);
}

static line *find_line(lines *all, const char *name)
{
    const void *known;
    line       *more;

    if (tti_map_get(&all->by_name, name, strlen(name), &known, NULL))
        return &all->at[*(const int *)known];
    if (tti_map_put(&all->by_name, name, strlen(name), &all->n, sizeof all->n) != TUTTI_OK)
        return NULL;
    if (all->n == all->room) {
        more = realloc(all->at, ((size_t)all->room * 2 + 16) * sizeof *more);
        if (more == NULL)
            return NULL;
        all->at = more;
        all->room = all->room * 2 + 16;
    }
    all->at[all->n] = (line){ .calls = 0 };
    snprintf(all->at[all->n].name, sizeof all->at[all->n].name, "%s", name);
    return &all->at[all->n++];
}

static bool add_ranges(const tutti_recorder *r, lines *all)
{
    tutti_range_total total = TUTTI_RANGE_TOTAL;
    line             *l;
    int               i;

    for (i = 0; i < tutti_recorder_count_ranges(r); i++) {
        tutti_recorder_get_range(r, i, &total);
        l = find_line(all, total.name);
        if (l == NULL)
            return false;
        *l = (line){ .calls = total.calls, .timed = total.calls, .total_ns = total.total_ns, .most_ns = total.most_ns };
        snprintf(l->name, sizeof l->name, "%s", total.name);
    }
    return true;
}

/* "native:all_reduce", or what the program called it. */
static void put_name(const tutti_recorder *r, const tutti_record *rec, char *out, size_t bytes)
{
    tutti_recorder_group g = TUTTI_RECORDER_GROUP;
    const char          *backend = "";

    if (rec->name[0] != '\0') {
        snprintf(out, bytes, "%s", rec->name);
        return;
    }
    if (rec->group >= 0 && tutti_recorder_get_group(r, rec->group, &g) == TUTTI_OK)
        backend = g.backend;
    if (strncmp(backend, "cpu:", 4) == 0)
        backend += 4;
    snprintf(out, bytes, "%.*s%s%s", (int)strcspn(backend, ","), backend, backend[0] != '\0' ? ":" : "", rec->op);
}

static bool add_operations(const tutti_recorder *r, lines *all)
{
    tutti_record rec = TUTTI_RECORD;
    char         name[sizeof((line *)NULL)->name];
    line        *l;
    int64_t      took;
    int          i;

    for (i = 0; i < tutti_recorder_count_records(r); i++) {
        tutti_recorder_get_record(r, i, &rec);
        if (rec.kind == TUTTI_RECORD_RANGE)
            continue;
        put_name(r, &rec, name, sizeof name);
        l = find_line(all, name);
        if (l == NULL)
            return false;
        l->calls++;
        if (rec.ended_ns == 0 || rec.began_ns == 0)
            continue;
        l->timed++;
        took = rec.ended_ns > rec.began_ns ? rec.ended_ns - rec.began_ns : 0; /* not so only of damaged ones, as is too much */
        l->total_ns = l->total_ns > INT64_MAX - took ? INT64_MAX : l->total_ns + took;
        if (took > l->most_ns)
            l->most_ns = took;
    }
    return true;
}

static int by_total(const void *a, const void *b)
{
    const line *x = a, *y = b;

    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void print(FILE *out, const char *title, lines *all)
{
    int i;

    if (all->n > 1)
        qsort(all->at, (size_t)all->n, sizeof *all->at, by_total);
    if (all->n > 0)
        fprintf(out, "%-40s %10s %10s %12s %12s %12s\n", title, "calls", "timed", "total ms", "mean us", "longest us");
    for (i = 0; i < all->n; i++) {
        const line *l = &all->at[i];

        fprintf(out, "%-40s %10llu %10llu %12.3f %12.3f %12.3f\n", l->name, (unsigned long long)l->calls,
                (unsigned long long)l->timed, (double)l->total_ns / 1e6,
                l->timed > 0 ? (double)l->total_ns / 1e3 / (double)l->timed : 0.0, (double)l->most_ns / 1e3);
    }
}

tutti_status tutti_recorder_table(const tutti_recorder *recorder, char **table_out)
{
    lines  ranges, operations;
    char  *text = NULL;
    size_t bytes = 0;
    FILE  *out = NULL;
    bool   fine;

    if (recorder == NULL || table_out == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_recorder_table: %s is NULL", recorder == NULL ? "recorder" : "table_out");
    begin_lines(&ranges);
    begin_lines(&operations);
    fine = add_ranges(recorder, &ranges) && add_operations(recorder, &operations);
    if (fine)
        out = open_memstream(&text, &bytes);
    if (out != NULL) {
        print(out, "range", &ranges);
        print(out, "operation", &operations);
        fine = fclose(out) == 0;
    }
    release_lines(&ranges);
    release_lines(&operations);
    if (out == NULL || !fine) {
        free(text);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a table of totals");
    }
    *table_out = text;
    return TUTTI_OK;
}
