/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conformance_matrix - collectives and messages, every cell of the product against a plain loop.
 *
 * Why     A fault hides where nobody looked: one dtype, in place, three ranks, over TCP.
 * How     --core runs a set of cells that has every pair of values; without it every selected cell is run.
 *         --tls encrypts what goes by TCP, --stripes has two ranks have so many connections.
 *         --append FILE keeps the results and leaves out what has passed before; small sizes and small
 *         worlds come first. Data come from the seed, which is printed; a failed cell is printed with the
 *         command that runs it again, on the same data.
 * Fails   Exit code 0: all cells passed; 1: one failed; 77: none failed, and the machine refused some. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "harness/harness.h"
#include "results.h"

typedef struct options {
    tt_selection selection;
    bool         narrowed; /* to some values of operations' own axes */
    bool         core, count_only;
    tt_wires     wires;
    uint64_t     seed;
    int          timeout_s;
    const char  *append, *report, *commit;
} options;

static int usage(const char *wrong)
{
    int axis;

    fprintf(stderr, "conformance_matrix: %s\n", wrong);
    fprintf(stderr, "usage: conformance_matrix [--core] [--tls] [--stripes N] [--seed N] [--timeout-s N] [--count]\n"
                    "           [--append FILE --commit WORD] [--report FILE] [--AXIS NAME,NAME...]...\n");
    for (axis = 0; axis < TT_AXES; axis++) {
        int value;

        fprintf(stderr, "  --%-10s", tt_axis_name((tt_axis)axis));
        for (value = 0; value < tt_axis_size((tt_axis)axis); value++)
            fprintf(stderr, " %s", tt_value_name((tt_axis)axis, value));
        fprintf(stderr, "\n");
    }
    return 2;
}

static bool take_axis(options *o, const char *name, const char *values)
{
    const char *bad;
    int         axis;

    for (axis = 0; axis < TT_AXES; axis++) {
        if (strcmp(name + 2, tt_axis_name((tt_axis)axis)) != 0)
            continue;
        if (axis == TT_AXIS_RED || axis == TT_AXIS_DTYPE || axis == TT_AXIS_SIZE)
            o->narrowed = true;
        return tt_select(&o->selection, (tt_axis)axis, values, &bad);
    }
    return false;
}

/* A positive number of at most 64 bits. */
static bool number(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text != '-';
}

static bool take_option(options *o, const char *name, const char *value)
{
    uint64_t n;

    if (strcmp(name, "--seed") == 0)
        return number(value, &o->seed);
    if (strcmp(name, "--timeout-s") == 0) {
        if (!number(value, &n) || n < 1 || n > 86400)
            return false;
        o->timeout_s = (int)n;
        return true;
    }
    if (strcmp(name, "--stripes") == 0) {
        if (!number(value, &n) || n < 1 || n > 8)
            return false;
        o->wires.stripes = (int)n;
        return true;
    }
    if (strcmp(name, "--append") == 0)
        o->append = value;
    else if (strcmp(name, "--report") == 0)
        o->report = value;
    else if (strcmp(name, "--commit") == 0)
        o->commit = value;
    else
        return take_axis(o, name, value);
    return true;
}

/* NULL: understood. */
static const char *parse(options *o, int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            return argv[i];
        if (strcmp(argv[i], "--core") == 0)
            o->core = true;
        else if (strcmp(argv[i], "--tls") == 0)
            o->wires.tls = true;
        else if (strcmp(argv[i], "--count") == 0)
            o->count_only = true;
        else if (i + 1 == argc || !take_option(o, argv[i], argv[i + 1]))
            return argv[i];
        else
            i++;
    }
    if (o->append != NULL && (o->wires.tls || o->wires.stripes != 0))
        return "--append is for connections as they are when nothing is said";
    if (o->append != NULL && (o->narrowed || o->core))
        return "--append is for all cells of an operation";
    return NULL;
}

/* ---- which cells -------------------------------------------------------------------------------- */

/* The cells to run, in the order of the product. The caller frees them; NULL: no memory. */
static tt_cell *cells_of(const options *o, int *n_out)
{
    tt_cell  cell = { { 0 } };
    tt_cell *cells = NULL;
    int      n = 0, room = 0, rule, pairs;

    if (o->core) {
        cells = tt_cover(&o->selection, o->seed, n_out, &pairs);
        printf("core: %d cells have all %d pairs of values\n", cells != NULL ? *n_out : 0, pairs);
        return cells;
    }
    do {
        if (!tt_selected(&o->selection, &cell) || tt_cell_rule(&cell, &rule) != NULL)
            continue;
        if (n == room) {
            tt_cell *more = realloc(cells, (size_t)(room = 2 * room + 1024) * sizeof *cells);

            if (more == NULL) {
                free(cells);
                return NULL;
            }
            cells = more;
        }
        cells[n++] = cell;
    } while (tt_cell_next(&cell));
    *n_out = n;
    return cells != NULL ? cells : calloc(1, sizeof *cells);
}

/* Which launch a cell belongs to, in the order that they run. */
static int launch_of(const options *o, const tt_cell *cell)
{
    const int phase = o->core ? 0 : tt_phase_of(cell);

    return ((phase * TT_WORLDS + cell->at[TT_AXIS_WORLD]) * TT_TRANSPORTS + cell->at[TT_AXIS_TRANSPORT]) *
               TT_MODES +
           cell->at[TT_AXIS_MODE];
}

enum { LAUNCHES = TT_PHASES * TT_WORLDS * TT_TRANSPORTS * TT_MODES };

/* ---- running ------------------------------------------------------------------------------------ */

/* The cells of one launch that are still to be run. */
static int collect(const options *o, tt_results *results, const tt_cell *cells, int n, int launch, tt_cell *out)
{
    int found = 0;
    int i;

    for (i = 0; i < n; i++)
        if (launch_of(o, &cells[i]) == launch &&
            (results->path == NULL || !tt_results_done(results, &cells[i])))
            out[found++] = cells[i];
    return found;
}

static bool run_all(const options *o, tt_results *results, const tt_cell *cells, int n, tt_tally *sum)
{
    tt_cell *mine = calloc((size_t)n + 1, sizeof *mine);
    bool     ok = mine != NULL;
    int      launch, op, m;

    for (launch = 0; mine != NULL && launch < LAUNCHES; launch++) {
        tt_tally tallies[TT_OPS_MAX] = { { 0 } };

        m = collect(o, results, cells, n, launch, mine);
        if (m == 0)
            continue;
        ok = tt_launch(mine, m, o->timeout_s, o->wires, tallies) && ok;
        for (op = 0; op < tt_n_ops; op++)
            tt_tally_add(sum, &tallies[op]);
        if (results->path != NULL)
            ok = tt_results_add(results, &mine[0], tallies) && ok;
    }
    free(mine);
    return ok;
}

static uint64_t seed_of_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return tt_mix((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) % 1000000000u;
}

static int run(const options *o, tt_results *results)
{
    tt_tally sum = { 0 };
    int      n = 0;
    tt_cell *cells = cells_of(o, &n);
    bool     ok;

    if (cells == NULL || !tt_board_open()) {
        fprintf(stderr, "conformance_matrix: no memory\n");
        free(cells);
        return TT_FAILED;
    }
    tt_values_init();
    tt_the_board->seed = o->seed;
    ok = run_all(o, results, cells, n, &sum);
    free(cells);
    tt_print_sum(o->core ? "core" : "this run", &sum);
    if (!ok || sum.failed > 0)
        return TT_FAILED;
    return sum.skipped > 0 ? TT_SKIPPED : TT_PASSED;
}

int main(int argc, char **argv)
{
    static tt_results results;
    options           o = { .selection = tt_select_all(), .seed = seed_of_now(), .timeout_s = 60, .commit = "-" };
    const char       *wrong = parse(&o, argc, argv);

    if (wrong != NULL)
        return usage(wrong);
    setvbuf(stdout, NULL, _IOLBF, 0);
    results.path = o.report != NULL ? o.report : o.append;
    results.commit = o.commit;
    results.seed = o.seed;
    if (results.path != NULL && !tt_results_read(&results))
        return TT_FAILED;
    if (o.report != NULL) {
        tt_results_report(&results);
        return TT_PASSED;
    }
    printf("seed %llu\n", (unsigned long long)o.seed);
    tt_print_product(&o.selection);
    return o.count_only ? TT_PASSED : run(&o, &results);
}
