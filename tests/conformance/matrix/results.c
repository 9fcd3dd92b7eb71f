/* SPDX-License-Identifier: BSD-3-Clause */
#include "results.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 512, WORDS = 12, TITLE_LINES = 1 };

const char *const tt_phase_names[TT_PHASES] = { "0-65537", "1048577" };

static const char title[] = "commit\tseed\tsizes\tworld\ttransport\tmode\top\tcells\trun\tpassed\tfailed\tskipped\n";

int tt_phase_of(const tt_cell *cell)
{
    return cell->at[TT_AXIS_SIZE] == TT_SIZE_LARGE ? TT_LARGE : TT_SMALL;
}

static tt_tally *at(tt_results *results, int phase, const tt_cell *cell)
{
    return &results->last[phase][cell->at[TT_AXIS_WORLD]][cell->at[TT_AXIS_TRANSPORT]][cell->at[TT_AXIS_MODE]]
                         [cell->at[TT_AXIS_OP]];
}

tt_tally *tt_results_at(tt_results *results, const tt_cell *cell)
{
    return at(results, tt_phase_of(cell), cell);
}

bool tt_results_done(tt_results *results, const tt_cell *cell)
{
    const tt_tally *tally = tt_results_at(results, cell);

    return tally->cells > 0 && tally->passed == tally->cells;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int index_of(tt_axis axis, const char *name)
{
    int value;

    for (value = 0; value < tt_axis_size(axis); value++)
        if (strcmp(tt_value_name(axis, value), name) == 0)
            return value;
    return -1;
}

/* A line about an operation that no longer exists is fine, and left out. */
static bool take_line(tt_results *results, char *line)
{
    static const tt_axis axes[] = { TT_AXIS_WORLD, TT_AXIS_TRANSPORT, TT_AXIS_MODE, TT_AXIS_OP };
    char                *words[WORDS];
    char                *rest = line;
    tt_cell              cell = { { 0 } };
    tt_tally             tally;
    int                  n = 0;
    int                  phase, i;

    line[strcspn(line, "\n")] = '\0';
    while (n < WORDS && (words[n] = strsep(&rest, "\t")) != NULL)
        n++;
    if (n < WORDS || rest != NULL)
        return false;
    phase = strcmp(words[2], tt_phase_names[TT_LARGE]) == 0 ? TT_LARGE : TT_SMALL;
    for (i = 0; i < 4; i++) {
        const int value = index_of(axes[i], words[3 + i]);

        if (value < 0)
            return axes[i] == TT_AXIS_OP;
        cell.at[axes[i]] = (unsigned char)value;
    }
    if (sscanf(words[7], "%ld", &tally.cells) != 1 || sscanf(words[8], "%ld", &tally.run) != 1 ||
        sscanf(words[9], "%ld", &tally.passed) != 1 || sscanf(words[10], "%ld", &tally.failed) != 1 ||
        sscanf(words[11], "%ld", &tally.skipped) != 1)
        return false;
    *at(results, phase, &cell) = tally;
    return true;
}

bool tt_results_read(tt_results *results)
{
    FILE *file = fopen(results->path, "r");
    char  line[LINE];
    int   number = 0;
    bool  ok = true;

    if (file == NULL) {
        if (errno != ENOENT)
            fprintf(stderr, "cannot read %s: %s\n", results->path, strerror(errno));
        return errno == ENOENT;
    }
    while (ok && fgets(line, sizeof line, file) != NULL)
        ok = ++number <= TITLE_LINES || take_line(results, line);
    if (!ok)
        fprintf(stderr, "%s: line %d is not a result\n", results->path, number);
    fclose(file);
    return ok;
}

/* ---- adding ------------------------------------------------------------------------------------- */

bool tt_results_add(tt_results *results, const tt_cell *cell, const tt_tally tallies[TT_OPS_MAX])
{
    FILE   *file = fopen(results->path, "a");
    tt_cell row = *cell;
    int     op;

    if (file == NULL) {
        fprintf(stderr, "cannot write %s: %s\n", results->path, strerror(errno));
        return false;
    }
    if (fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0)
        fputs(title, file);
    for (op = 0; op < tt_n_ops; op++) {
        const tt_tally *tally = &tallies[op];

        if (tally->cells == 0)
            continue;
        row.at[TT_AXIS_OP] = (unsigned char)op;
        *tt_results_at(results, &row) = *tally;
        fprintf(file, "%s\t%" PRIu64 "\t%s\t%s\t%s\t%s\t%s\t%ld\t%ld\t%ld\t%ld\t%ld\n", results->commit,
                results->seed, tt_phase_names[tt_phase_of(cell)],
                tt_value_name(TT_AXIS_WORLD, cell->at[TT_AXIS_WORLD]),
                tt_value_name(TT_AXIS_TRANSPORT, cell->at[TT_AXIS_TRANSPORT]),
                tt_value_name(TT_AXIS_MODE, cell->at[TT_AXIS_MODE]), tt_ops[op].name, tally->cells, tally->run,
                tally->passed, tally->failed, tally->skipped);
    }
    return fclose(file) == 0;
}

/* ---- printing ----------------------------------------------------------------------------------- */

void tt_tally_add(tt_tally *sum, const tt_tally *more)
{
    sum->cells += more->cells;
    sum->run += more->run;
    sum->passed += more->passed;
    sum->failed += more->failed;
    sum->skipped += more->skipped;
    sum->refused += more->refused;
    if (sum->reason[0] == '\0')
        memcpy(sum->reason, more->reason, sizeof sum->reason);
}

void tt_print_sum(const char *what, const tt_tally *sum)
{
    printf("%s: %ld cells: %ld run, %ld passed, %ld failed, %ld skipped, %ld not run yet\n", what, sum->cells,
           sum->run - sum->refused, sum->passed, sum->failed, sum->skipped + sum->refused, sum->cells - sum->run - sum->skipped);
}

/* The first line of words. */
static int first_line(const char *words)
{
    return (int)strcspn(words, "\n");
}

void tt_print_backend(const char *backend, const tt_tally by_op[TT_OPS_MAX])
{
    tt_tally sum = { 0 };
    int      op;

    for (op = 0; op < tt_n_ops; op++)
        tt_tally_add(&sum, &by_op[op]);
    printf("backend '%s': run %ld, passed %ld, failed %ld, skipped %ld\n", backend, sum.run - sum.refused, sum.passed,
           sum.failed, sum.refused + sum.skipped);
    for (op = 0; op < tt_n_ops; op++)
        if (by_op[op].refused > 0)
            printf("  skipped %4ld of %4ld %s: %.*s\n", by_op[op].refused, by_op[op].cells, tt_ops[op].name,
                   first_line(by_op[op].reason), by_op[op].reason);
}

void tt_print_product(const tt_selection *selection)
{
    long        by_rule[TT_RULES] = { 0 };
    const char *texts[TT_RULES] = { NULL };
    long        total = 0, apply = 0;
    tt_cell     cell = { { 0 } };
    int         rule;

    do {
        const char *text;

        if (!tt_selected(selection, &cell))
            continue;
        text = tt_cell_rule(&cell, &rule);
        if (text != NULL && rule == TT_RULE_RED)
            continue; /* no cell: the axis of reductions is one of the operations that have one */
        total++;
        if (text == NULL) {
            apply++;
        } else {
            by_rule[rule]++;
            texts[rule] = text;
        }
    } while (tt_cell_next(&cell));
    printf("product: %ld cells\n", total);
    for (rule = 0; rule < TT_RULES; rule++)
        if (by_rule[rule] > 0)
            printf("  %8ld do not apply: %s\n", by_rule[rule], texts[rule]);
    printf("  %8ld apply\n", apply);
}

/* All cells of each launch and operation, whether a line has them or not. */
static void count_cells(tt_results *results)
{
    static tt_tally zero;
    tt_cell         cell = { { 0 } };
    int             rule, i;
    tt_tally       *all = &results->last[0][0][0][0][0];

    for (i = 0; i < (int)(sizeof results->last / sizeof *all); i++)
        all[i].cells = zero.cells;
    do {
        if (tt_cell_rule(&cell, &rule) == NULL)
            tt_results_at(results, &cell)->cells++;
    } while (tt_cell_next(&cell));
}

static void print_op(tt_results *results, int op)
{
    tt_tally row = { 0 };
    int      phase, world, transport, mode;

    printf("%-33s", tt_ops[op].name);
    for (transport = 0; transport < TT_TRANSPORTS; transport++)
        for (mode = 0; mode < TT_MODES; mode++) {
            tt_tally sum = { 0 };
            char     text[32];

            for (phase = 0; phase < TT_PHASES; phase++)
                for (world = 0; world < TT_WORLDS; world++)
                    tt_tally_add(&sum, &results->last[phase][world][transport][mode][op]);
            tt_tally_add(&row, &sum);
            if (transport == TT_HOSTS && mode == TT_THREADS)
                continue;
            snprintf(text, sizeof text, "%ld/%ld", sum.passed, sum.cells);
            printf(" %14s", sum.cells == 0 ? "-" : text);
        }
    printf(" %9ld\n", row.failed);
}

void tt_results_report(tt_results *results)
{
    const tt_selection all = tt_select_all();
    tt_tally           sum = { 0 };
    const tt_tally    *each = &results->last[0][0][0][0][0];
    int                transport, mode, op, i;

    tt_print_product(&all);
    count_cells(results);
    for (i = 0; i < (int)(sizeof results->last / sizeof *each); i++)
        tt_tally_add(&sum, &each[i]);
    printf("\n%-33s", "passed/cells");
    for (transport = 0; transport < TT_TRANSPORTS; transport++)
        for (mode = 0; mode < TT_MODES; mode++) {
            char text[32];

            snprintf(text, sizeof text, "%s,%s", tt_value_name(TT_AXIS_TRANSPORT, transport),
                     tt_value_name(TT_AXIS_MODE, mode));
            if (transport != TT_HOSTS || mode != TT_THREADS)
                printf(" %14s", text);
        }
    printf(" %9s\n", "failed");
    for (op = 0; op < tt_n_ops; op++)
        print_op(results, op);
    printf("\n");
    tt_print_sum("full product", &sum);
}
