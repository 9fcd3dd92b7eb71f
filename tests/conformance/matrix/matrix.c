/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conformance_matrix - collectives and messages, every cell of the product against a plain loop.
 *
 * Why     A fault hides where nobody looked: one dtype, in place, three ranks, over TCP.
 * How     --core runs a set of cells that has every pair of values; without it every selected cell is run.
 *         --tls encrypts what goes by TCP, --stripes has two ranks have so many connections.
 *         --backend NAME has all of it done by that backend, which --plugins DIR may have as a plug-in: what it
 *         refuses (TUTTI_E_UNSUPPORTED) is skipped, and told at the end with the reason.
 *         --device cuda has the buffers on a device; --untagged is for backends whose messages have no tags.
 *         --carried NAME has that transport carry what would go by TCP; its plug-in may be in --plugins DIR, too.
 *         --launched FILE is for backends whose ranks somebody else has to start, as mpirun does: this process is one
 *         of them, and runs the cells of a world of that size; FILE is new, and the same for all.
 *         --append FILE keeps the results and leaves out what has passed before; small sizes and small
 *         worlds come first. Data come from the seed, which is printed; a failed cell is printed with the
 *         command that runs it again, on the same data.
 * Fails   Exit code 0: all cells passed; 1: one failed; 77: none failed, and the machine refused some. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "device.h"
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
    const char  *launched; /* NULL: the ranks are ours to start */
    bool         says_transport, says_seed;
} options;

static int usage(const char *wrong)
{
    int axis;

    fprintf(stderr, "conformance_matrix: %s\n", wrong);
    fprintf(stderr, "usage: conformance_matrix [--core] [--tls] [--stripes N] [--seed N] [--timeout-s N] [--count]\n"
                    "           [--backend NAME] [--carried NAME] [--plugins DIR] [--device cpu|cuda] [--untagged] [--launched FILE]\n"
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
        o->says_transport = o->says_transport || axis == TT_AXIS_TRANSPORT;
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

    if (strcmp(name, "--seed") == 0) {
        o->says_seed = true;
        return number(value, &o->seed);
    }
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
    if (strcmp(name, "--device") == 0)
        return tt_device_open(value);
    if (strcmp(name, "--backend") == 0)
        o->wires.backend = value;
    else if (strcmp(name, "--carried") == 0)
        o->wires.carried = value;
    else if (strcmp(name, "--plugins") == 0)
        o->wires.plugins = value;
    else if (strcmp(name, "--launched") == 0)
        o->launched = value;
    else if (strcmp(name, "--append") == 0)
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
        else if (strcmp(argv[i], "--untagged") == 0)
            tt_untagged = true;
        else if (strcmp(argv[i], "--count") == 0)
            o->count_only = true;
        else if (i + 1 == argc || !take_option(o, argv[i], argv[i + 1]))
            return argv[i];
        else
            i++;
    }
    if (o->append != NULL && (o->wires.tls || o->wires.stripes != 0 || o->wires.backend != NULL || o->wires.carried != NULL))
        return "--append is for the default backend, with connections as they are when nothing is said";
    if (o->launched != NULL && (o->wires.tls || o->wires.stripes != 0 || o->wires.carried != NULL || o->append != NULL))
        return "--launched goes with a backend and with axes alone";
    if (o->wires.backend != NULL && !o->says_transport) /* it has its own; this is the one that says nothing */
        tt_select(&o->selection, TT_AXIS_TRANSPORT, "shm", NULL);
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

static bool run_all(const options *o, tt_results *results, const tt_cell *cells, int n, tt_tally by_op[TT_OPS_MAX])
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
            tt_tally_add(&by_op[op], &tallies[op]);
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
    static tt_tally by_op[TT_OPS_MAX];
    tt_tally        sum = { 0 };
    int             n = 0, op;
    tt_cell        *cells = cells_of(o, &n);
    bool            ok;

    if (cells == NULL || !tt_board_open()) {
        fprintf(stderr, "conformance_matrix: no memory\n");
        free(cells);
        return TT_FAILED;
    }
    tt_values_init();
    tt_the_board->seed = o->seed;
    tt_the_board->may_refuse = o->wires.backend != NULL;
    ok = run_all(o, results, cells, n, by_op);
    free(cells);
    for (op = 0; op < tt_n_ops; op++)
        tt_tally_add(&sum, &by_op[op]);
    tt_print_sum(o->core ? "core" : "this run", &sum);
    if (o->wires.backend != NULL)
        tt_print_backend(o->wires.backend, by_op);
    if (o->wires.backend != NULL && sum.passed == 0)
        ok = false; /* a backend that refuses everything is none */
    if (!ok || sum.failed > 0)
        return TT_FAILED;
    return sum.skipped > 0 ? TT_SKIPPED : TT_PASSED;
}

/* ---- ranks that somebody else has started ------------------------------------------------------- */

/* Whether there are cells for a world of so many ranks, which are selected then. */
static bool select_world(options *o, int size)
{
    int world;

    for (world = 0; world < TT_WORLD_GROUP; world++)
        if (tt_worlds[world] == size)
            return tt_select(&o->selection, TT_AXIS_WORLD, tt_value_name(TT_AXIS_WORLD, world), NULL);
    fprintf(stderr, "conformance_matrix: there are no cells for %d ranks\n", size);
    return false;
}

static tutti_status join(const options *o)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.backend = o->wires.backend;
    opts.timeout_ms = o->timeout_s * 1000;
    return tutti_init_process_group(&opts);
}

/* Every rank finds the same cells, from the same seed; the first of them says what they came to. */
static int run_launched(options *o)
{
    static tt_tally by_op[TT_OPS_MAX];
    tt_cell        *cells;
    int             n = 0, op;
    bool            ok;

    if (!o->says_seed)
        o->seed = 1;
    if (o->wires.plugins != NULL)
        setenv("TUTTI_PLUGIN_PATH", o->wires.plugins, 1);
    if (join(o) != TUTTI_OK) {
        fprintf(stderr, "conformance_matrix: cannot join: %s\n", tutti_last_error());
        return TT_FAILED;
    }
    tt_values_init();
    tt_select(&o->selection, TT_AXIS_MODE, "blocking,async", NULL);
    if (!select_world(o, tutti_get_world_size(NULL)) || !tt_board_open_file(o->launched) ||
        (cells = cells_of(o, &n)) == NULL)
        return TT_FAILED;
    tt_the_board->may_refuse = o->wires.backend != NULL;
    tt_the_board->seed = o->seed;
    ok = tt_run_launched(cells, n, by_op);
    free(cells);
    if (tutti_get_rank(NULL) == 0)
        tt_print_backend(tutti_get_backend(NULL), by_op);
    for (op = 0; op < tt_n_ops; op++)
        ok = ok && by_op[op].failed == 0;
    ok = tutti_destroy_process_group(NULL) == TUTTI_OK && ok;
    return ok ? TT_PASSED : TT_FAILED;
}

int main(int argc, char **argv)
{
    static tt_results results;
    options           o = { .selection = tt_select_all(), .seed = seed_of_now(), .timeout_s = 60, .commit = "-" };
    const char       *wrong = parse(&o, argc, argv);

    if (wrong != NULL)
        return usage(wrong);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (o.launched != NULL)
        return run_launched(&o);
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
