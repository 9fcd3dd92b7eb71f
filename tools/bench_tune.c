/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_tune.c - `tutti bench --tune FILE`: which algorithm is the quickest here, as a table for TUTTI_TUNE.
 *
 * How     A job for each number of ranks. In it every algorithm of an operation has a group of its own, made while
 *         TUTTI_ALGO names it, and one more is chosen for as usual. For each size all of them are measured in
 *         turn, round after round, in another order each time; what counts are ratios inside a round, since a
 *         machine changes its speed between two. Rank 0 of each job leaves its rows in a file that the jobs
 *         share; the table is put together when all have ended, and takes its place in one step.
 * True    The usual choice stays where nothing else is clearly quicker (CLEARLY): noise makes no rows. An
 *         algorithm's row reaches to the middle between two sizes, as ratios go. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/tutti.h>
#include "bench.h"
#include "bench/measure.h"
#include "bench/sample.h"
#include "bench/tutti_side.h"
#include "bench_files.h"
#include "bench_line.h"
#include "bench_options.h"
#include "tool.h"

enum { ROUNDS = 5, WAYS_MAX = 16, BUDGET_MAX_MS = 10000, JOB_RANKS_MIN = 2, PATH_MAX_BYTES = 4096 };
#define BYTES_MAX (INT64_C(1) << 31)
#define CLEARLY 0.93 /* of the usual choice's time, and less than that time in all rounds but one */

static const bench_op tuned[] = { BENCH_ALL_REDUCE, BENCH_BROADCAST, BENCH_REDUCE, BENCH_ALL_GATHER,
                                  BENCH_REDUCE_SCATTER, BENCH_ALL_TO_ALL, BENCH_BARRIER };

/* One way to do an operation: an algorithm by its name, or the usual choice. */
typedef struct way {
    const char *name; /* NULL: the usual choice, always the first way */
    tutti_group *group;
    double ratio; /* to the usual choice: the median over rounds */
    double worst; /* the same, all rounds but one are below it */
} way;

typedef struct ways {
    bench_op op;
    int n;
    way all[WAYS_MAX];
} ways;

/* ---- options ----------------------------------------------------------------------------------- */

static int print_help(FILE *out, int code)
{
    fprintf(out, "usage: tutti bench --tune FILE [options]\n\n"
                 "Measures all algorithms of each collective in turn, and writes a table of those that are clearly\n"
                 "quicker than the usual choice, for TUTTI_TUNE=FILE. Rank r runs on core r, counted round.\n\n"
                 "  --ranks LIST     a job for each (2)\n"
                 "  --sizes LIST     bytes of the whole tensor (4,64,512,2K,8K,32K,128K,512K,2M,8M)\n"
                 "  --budget-ms N    for each algorithm, size and round (20)\n");
    return code;
}

typedef struct tune_options {
    bench_options bench;
    const char *file;
    const char *rows; /* set in a job: where its rank 0 leaves rows */
    bool help;
} tune_options;

static bool read_options(int argc, char **argv, tune_options *o)
{
    static const int64_t sizes[] = { 4,         64,         512,        2 << 10, 8 << 10,
                                     32 << 10,  128 << 10,  512 << 10,  2 << 20, 8 << 20 };
    static const struct option names[] = {
        { "ranks", required_argument, NULL, 'n' }, { "sizes", required_argument, NULL, 's' },
        { "budget-ms", required_argument, NULL, 'b' }, { "tsv", required_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
    };
    int64_t budget = 20;
    int option, n = 0;
    bool ok = true;

    *o = (tune_options){ .bench = { .n_ranks = 1, .n_sizes = sizeof sizes / sizeof sizes[0] } };
    o->bench.ranks[0] = 2;
    memcpy(o->bench.sizes, sizes, sizeof sizes);
    while (ok && (option = bench_next_option(argc, argv, names)) >= 0)
        switch (option) {
        case 'n':
            ok = bench_read_list(optarg, "ranks", JOB_RANKS_MIN, BENCH_RANKS_MAX, o->bench.ranks, &o->bench.n_ranks);
            break;
        case 's': ok = bench_read_list(optarg, "sizes", 0, BYTES_MAX, o->bench.sizes, &o->bench.n_sizes); break;
        case 'b': ok = bench_read_list(optarg, "budget-ms", 1, BUDGET_MAX_MS, &budget, &n) && n == 1; break;
        case 'r': o->rows = optarg; break;
        case 'h': o->help = true; break;
        default: ok = false;
        }
    for (n = 1; ok && n < o->bench.n_sizes; n++)
        if (o->bench.sizes[n] <= o->bench.sizes[n - 1])
            ok = fprintf(stderr, "tutti bench: --sizes: each has to be larger than the one before it\n") < 0;
    o->bench.cell = (bench_cell){ .budget_ms = (int)budget, .seed = 1 };
    if (ok && optind < argc)
        o->file = argv[optind++];
    if (!ok || o->help)
        return ok;
    if (o->file == NULL)
        fprintf(stderr, "tutti bench --tune: the file to write is missing\n");
    else if (optind < argc)
        fprintf(stderr, "tutti bench --tune: '%.200s' is one word too many\n", argv[optind]);
    return o->file != NULL && optind == argc;
}

/* ---- the ways of an operation ------------------------------------------------------------------ */

static bool make_group(const char *wish, tutti_group **group_out)
{
    tutti_status st;

    if (wish != NULL)
        setenv("TUTTI_ALGO", wish, 1);
    else
        unsetenv("TUTTI_ALGO");
    st = tutti_new_group(NULL, 0, NULL, group_out);
    unsetenv("TUTTI_ALGO");
    return st == TUTTI_OK || bench_fail("%s", tutti_last_error());
}

/* "fused" is no row's algorithm (tutti/tune.h); two levels are of several hosts, and this is one. */
static bool is_for_tables(const char *name)
{
    return strcmp(name, "fused") != 0 && strcmp(name, "two_level") != 0 && strcmp(name, "leaders") != 0;
}

static bool make_ways(bench_op op, ways *w)
{
    const char *name;
    char wish[128];
    bool ok;
    int i;

    *w = (ways){ .op = op, .n = 1 };
    ok = make_group(NULL, &w->all[0].group);
    for (i = 0; ok && w->n < WAYS_MAX && (name = tutti_algorithm_name(bench_op_names[op], i)) != NULL; i++) {
        if (!is_for_tables(name))
            continue;
        snprintf(wish, sizeof wish, "%s=%s", bench_op_names[op], name);
        w->all[w->n].name = name;
        ok = make_group(wish, &w->all[w->n].group);
        w->n += ok;
    }
    return ok;
}

static void drop_ways(ways *w)
{
    int i;

    for (i = 0; i < w->n; i++)
        if (w->all[i].group != NULL)
            tutti_destroy_process_group(w->all[i].group);
    bench_tutti_group = NULL;
}

/* ---- measuring --------------------------------------------------------------------------------- */

/* One size, all ways in turn. On rank 0 their ratios to the usual choice. */
static bool measure_ways(ways *w, const bench_cell *cell, bench_board *board)
{
    uint64_t ratios[WAYS_MAX][ROUNDS]; /* in millionths */
    double us[WAYS_MAX];
    int round, i;

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < w->n; i++) {
            const int turn = (i + round) % w->n;
            bench_figures figures;

            bench_tutti_group = w->all[turn].group;
            if (!bench_measure(&bench_tutti_side, cell, board, &figures))
                return false;
            us[turn] = figures.median;
        }
        for (i = 0; i < w->n; i++)
            ratios[i][round] = us[0] > 0 ? (uint64_t)(us[i] / us[0] * 1e6) : 1000000;
    }
    for (i = 0; i < w->n; i++) {
        bench_sort(ratios[i], ROUNDS);
        w->all[i].ratio = bench_quantile(ratios[i], ROUNDS, 0.5) / 1e6;
        w->all[i].worst = (double)ratios[i][ROUNDS - 2] / 1e6;
    }
    return true;
}

/* The quickest way, if it is clearly quicker than the usual choice; else that, 0. */
static int quickest(const ways *w)
{
    int i, best = 0;

    for (i = 1; i < w->n; i++)
        if (w->all[i].worst < 1 && w->all[i].ratio < (best == 0 ? CLEARLY : w->all[best].ratio))
            best = i;
    return best;
}

static void print_ways(const ways *w, int64_t bytes, int best)
{
    int i;

    printf("%-15s %10" PRId64, bench_op_names[w->op], bytes);
    for (i = 1; i < w->n; i++)
        printf("  %s %.2f%s", w->all[i].name, w->all[i].ratio, i == best ? "*" : "");
    printf("\n");
    fflush(stdout);
}

/* ---- rows -------------------------------------------------------------------------------------- */

static bool has_parts(bench_op op)
{
    return op == BENCH_ALL_GATHER || op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_TO_ALL;
}

/* Half-way from a size to the next, as ratios go; no limit behind the last. */
static int64_t reach(const bench_options *o, int i, int parts)
{
    return i + 1 == o->n_sizes ? -1
                               : (int64_t)sqrt((double)o->sizes[i] * (double)o->sizes[i + 1]) / parts;
}

static void write_row(FILE *rows, const ways *w, int best, int ranks, int64_t from, int64_t to)
{
    fprintf(rows, "    { \"op\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %d, \"hosts\": \"one\"", bench_op_names[w->op],
            w->all[best].name, ranks);
    if (from > 0 || to >= 0) {
        fprintf(rows, ", \"bytes\": [%" PRId64 ", ", from);
        fprintf(rows, to >= 0 ? "%" PRId64 "]" : "null]", to);
    }
    fprintf(rows, " }\n");
}

/* Neighbours of one winner become one row. The sizes of all_to_all are each rank's own, so that it has one
 * algorithm for all: the one that is the quickest in most. */
static void write_rows(FILE *rows, const ways *w, const bench_options *o, const int *best, int ranks)
{
    const int parts = has_parts(w->op) ? ranks : 1;
    int64_t from = 0;
    int i, first, wins[WAYS_MAX] = { 0 }, most = 0;

    if (w->op == BENCH_ALL_TO_ALL || w->op == BENCH_BARRIER) {
        for (i = 0; i < o->n_sizes; i++)
            if (++wins[best[i]] > wins[most])
                most = best[i];
        if (most > 0)
            write_row(rows, w, most, ranks, 0, -1);
        return;
    }
    for (i = first = 0; i < o->n_sizes; i++) {
        if (i + 1 < o->n_sizes && best[i + 1] == best[first])
            continue;
        if (best[first] > 0 && (i + 1 == o->n_sizes || reach(o, i, parts) >= from))
            write_row(rows, w, best[first], ranks, from, reach(o, i, parts));
        from = reach(o, i, parts) + 1;
        first = i + 1;
    }
}

static bool tune_op(const tune_options *o, bench_op op, bench_board *board, FILE *rows)
{
    const bool has_sizes = op != BENCH_BARRIER;
    bench_options options = o->bench;
    int best[BENCH_LIST_MAX], i;
    ways w;
    bool ok = make_ways(op, &w);

    options.n_sizes = has_sizes ? options.n_sizes : 1;
    for (i = 0; i < options.n_sizes && ok; i++) {
        bench_cell cell = o->bench.cell;

        cell.op = op;
        cell.bytes = has_sizes ? options.sizes[i] : 0;
        ok = measure_ways(&w, &cell, board);
        best[i] = ok ? quickest(&w) : 0;
        if (ok && board->rank == 0)
            print_ways(&w, cell.bytes, best[i]);
    }
    if (ok && rows != NULL)
        write_rows(rows, &w, &options, best, board->ranks);
    drop_ways(&w);
    return ok;
}

static bool tune_all(const tune_options *o, int rank, int ranks)
{
    bench_board board = { .shared = NULL };
    FILE *rows = rank == 0 ? fopen(o->rows, "ae") : NULL;
    bool ok = rank != 0 || rows != NULL || bench_fail("cannot write '%s': %s", o->rows, strerror(errno));
    size_t i;

    if (rank == 0) {
        printf("%d ranks on %d cores; times of each algorithm over those of the usual choice, * taken\n", ranks,
               bench_cores());
        fflush(stdout); /* the first line of figures may be long in coming */
    }
    ok = bench_open_board(&board, rank, ranks) && ok;
    for (i = 0; i < sizeof tuned / sizeof tuned[0] && ok; i++)
        ok = tune_op(o, tuned[i], &board, rows);
    bench_board_close(&board);
    if (rows != NULL && fclose(rows) != 0)
        ok = bench_fail("cannot write '%s': %s", o->rows, strerror(errno));
    return ok;
}

static int tune_rank(const tune_options *o)
{
    const int local = tutti_get_node_local_rank(0);
    int rank = -1, ranks = 0;
    bool ok;

    bench_cores();
    unsetenv("TUTTI_ALGO"); /* the usual choice is what there is without either */
    unsetenv("TUTTI_TUNE");
    ok = local < 0 ? bench_fail("%s", tutti_last_error())
                   : bench_pin(local) || bench_fail("cannot pin: %s", strerror(errno));
    if (ok && bench_tutti_side.join(&rank, &ranks)) {
        ok = tune_all(o, rank, ranks);
        bench_tutti_side.leave();
    } else {
        ok = false;
    }
    return ok ? EXIT_SUCCESS : bench_say_failed(rank);
}

/* ---- the table --------------------------------------------------------------------------------- */

/* Lines of rows to a table: how many. */
static bool write_table(const char *rows_path, FILE *out, int *n_out)
{
    FILE *rows = fopen(rows_path, "re");
    char line[512];
    int n = 0;

    if (rows == NULL)
        return false;
    fprintf(out, "{ \"tutti_tune\": 1,\n  \"rows\": [\n");
    while (fgets(line, sizeof line, rows) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        fprintf(out, "%s%s", n++ > 0 ? ",\n" : "", line);
    }
    fprintf(out, "%s  ] }\n", n > 0 ? "\n" : "");
    fclose(rows);
    *n_out = n;
    return ferror(out) == 0;
}

static int put_in_place(const char *rows_path, const char *file)
{
    char fresh[PATH_MAX_BYTES];
    FILE *out = NULL;
    int n_rows = 0;
    bool ok = snprintf(fresh, sizeof fresh, "%s.new", file) < (int)sizeof fresh;

    if (!ok)
        errno = ENAMETOOLONG;
    else
        out = fopen(fresh, "we");
    ok = out != NULL && write_table(rows_path, out, &n_rows);
    if (out != NULL && fclose(out) != 0)
        ok = false;
    if (ok && rename(fresh, file) == 0) {
        if (n_rows == 0)
            printf("no algorithm was clearly quicker than the usual choice: the table has no rows, and changes nothing\n");
        printf("TUTTI_TUNE=%s\n", file);
        return EXIT_SUCCESS;
    }
    (void)bench_cannot_write(file);
    if (out != NULL)
        unlink(fresh);
    return EXIT_FAILURE;
}

/* Measurements of one job: each way of each operation and size. */
static int count_cells(const bench_options *o)
{
    const char *name;
    int n = 0;
    size_t i;
    int k;

    for (i = 0; i < sizeof tuned / sizeof tuned[0]; i++) {
        int here = 1;

        for (k = 0; (name = tutti_algorithm_name(bench_op_names[tuned[i]], k)) != NULL; k++)
            here += is_for_tables(name);
        n += here * (tuned[i] == BENCH_BARRIER ? 1 : o->n_sizes);
    }
    return n;
}

/* Before anything is measured: a first try with every default is for long. */
static void tell_how_long(const tune_options *o)
{
    const double s = (double)count_cells(&o->bench) * ROUNDS * o->bench.cell.budget_ms / 1000 * o->bench.n_ranks;

    printf("takes %.0f s and more: %d measurements, %d times each, of %d ms, for each number of ranks; fewer --sizes, or a smaller "
           "--budget-ms, take less\n'%s' is written when all has been measured\n",
           s, count_cells(&o->bench), ROUNDS, o->bench.cell.budget_ms, o->file);
    fflush(stdout);
}

static int run_jobs(const tune_options *o, int argc, char **argv)
{
    char scratch[BENCH_SCRATCH_MAX];
    int  i, fd, code = EXIT_SUCCESS;

    if (!bench_can_write(o->file) || (fd = bench_scratch(scratch)) < 0)
        return EXIT_FAILURE;
    tell_how_long(o);
    for (i = 0; i < o->bench.n_ranks && code == EXIT_SUCCESS; i++)
        code = bench_launch(argc, argv, o->bench.ranks[i], scratch);
    if (code == EXIT_SUCCESS)
        code = put_in_place(scratch, o->file);
    else
        fprintf(stderr, "tutti bench: not all was measured: '%s' was not written\n", o->file);
    close(fd);
    return code;
}

int bench_tune(int argc, char **argv)
{
    char *words[BENCH_ARGS_MAX];
    tune_options o;
    int i;

    for (i = 0; i < argc && i < BENCH_ARGS_MAX; i++)
        words[i] = argv[i]; /* getopt_long() moves them about */
    if (!read_options(argc, argv, &o))
        return bench_see_help(argv[0]);
    if (o.help)
        return print_help(stdout, EXIT_SUCCESS);
    setenv("OMP_NUM_THREADS", "1", 0); /* else the launcher does, and says so */
    return o.rows != NULL ? tune_rank(&o) : run_jobs(&o, argc, words);
}
