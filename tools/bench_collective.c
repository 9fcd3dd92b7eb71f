/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_collective.c - `tutti bench OP`: collectives and messages, timed and verified.
 *
 * How     Started alone, the command launches itself as a job for each number of ranks asked for. Started as a
 *         rank, by that or by `tutti run tutti bench OP`, it joins and measures (bench_rank.c). What is done
 *         and how it is timed is bench/measure.h, which the comparison with others shares. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/host.h>
#include <tutti/launch.h>
#include "bench.h"
#include "bench_files.h"
#include "bench_line.h"
#include "bench_options.h"
#include "tool.h"

enum { BUDGET_MAX_MS = 3600000 };
#define BYTES_MAX (INT64_C(1) << 34)

/* ---- options ----------------------------------------------------------------------------------- */

static int print_help(FILE *out, int code)
{
    fprintf(out,
            "usage: tutti bench OP [options]\n"
            "       tutti run [options] tutti bench OP [options]\n\n"
            "OP is all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, barrier or send_recv;\n"
            "exchange16 or exchange64: messages to the next rank and from the one before, in a batch or one by one; or\n"
            "overlap: an all_reduce (of 25 MiB) that is begun, matrix products, and waiting for it, beside each alone.\n"
            "Rank r runs on core r, counted round. Results are verified before they are timed.\n\n"
            "  --sizes LIST      bytes of the whole tensor, or of a message; whole elements (4,8K,64K,512K,4M,32M)\n"
            "  --ranks LIST      a job for each; not under `tutti run` (2)\n"
            "  --dtype TYPE      f32, f64 or bf16 (f32)\n"
            "  --transport NAME  auto or tcp, as TUTTI_TRANSPORT\n"
            "  --async           begin each call, or message, then wait for it\n"
            "  --memory KIND     ordinary or registered, that is, from tutti_alloc() (ordinary)\n"
            "  --cold            other buffers in each call, so that they are not in the caches\n"
            "  --budget-ms N     for each size: warming up and both measures (1000)\n"
            "  --seed N          of the contents (1)\n"
            "  --tsv FILE        append rows\n"
            "  --plot FILE       draw them with gnuplot, as .svg or .png; not under `tutti run`\n\n"
            "bytes is what was measured: in all_gather, reduce_scatter and all_to_all each rank's part has as many\n"
            "whole elements, at least one. In an exchange bytes is one message, GB/s are of all that a rank sends.\n"
            "median and the like: all ranks leave a barrier, each times one call, the longest counts.\n"
            "back to back: calls without a barrier between them. The root goes round. GB/s are of the\n"
            "median, bus GB/s the same times 2(n-1)/n for all_reduce, (n-1)/n where each rank has a part.\n");
    return code;
}

/* "8K": a number with a unit. */
static bool read_number(const char *word, int64_t most, int64_t *out)
{
    char *end = NULL;
    const long long n = strtoll(word, &end, 10);
    const int shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : 0;

    end += shift > 0;
    if (end == word || *end != '\0' || n < 0 || n > most >> shift)
        return false;
    *out = (int64_t)n << shift;
    return true;
}

bool bench_read_list(const char *text, const char *option, int64_t least, int64_t most, int64_t *list,
                      int *n_out)
{
    char copy[256], *rest = copy, *word;
    int n = 0;

    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ",")) != NULL && n < BENCH_LIST_MAX) {
        if (!read_number(word, most, &list[n]) || list[n] < least)
            break;
        n++;
    }
    if (word == NULL && n > 0) {
        *n_out = n;
        return true;
    }
    fprintf(stderr, "tutti bench: --%s '%.60s' is not a list of numbers between %" PRId64 " and %" PRId64 "\n",
            option, text, least, most);
    return false;
}

static bool read_one(const char *text, const char *option, int64_t least, int64_t most, int64_t *out)
{
    int n = 0;
    int64_t list[BENCH_LIST_MAX];

    if (!bench_read_list(text, option, least, most, list, &n))
        return false;
    if (n > 1)
        fprintf(stderr, "tutti bench: --%s takes one number\n", option);
    *out = list[0];
    return n == 1;
}

static bool read_dtype(const char *text, bench_cell *cell)
{
    const int i = bench_find_name(bench_dtype_names, BENCH_DTYPES, text);

    if (i < 0) {
        fprintf(stderr, "tutti bench: --dtype '%.40s' is not f32, f64 or bf16\n", text);
        return false;
    }
    cell->dtype = (bench_dtype)i;
    return true;
}

static bool read_memory(const char *text, bench_cell *cell)
{
    const int i = bench_find_name(bench_memory_names, BENCH_MEMORIES, text);

    if (i < 0) {
        fprintf(stderr, "tutti bench: --memory '%.40s' is not ordinary or registered\n", text);
        return false;
    }
    cell->memory = (bench_memory)i;
    return true;
}

static bool read_transport(const char *text, bench_options *o)
{
    o->transport = text;
    if (strcmp(text, "auto") == 0 || strcmp(text, "tcp") == 0)
        return true;
    fprintf(stderr, "tutti bench: --transport '%.40s' is not auto or tcp\n", text);
    return false;
}

static bool read_option(int option, bench_options *o)
{
    int64_t number = 0;
    bool ok = true;

    switch (option) {
    case 's':
        o->sizes_given = true;
        return bench_read_list(optarg, "sizes", 0, BYTES_MAX, o->sizes, &o->n_sizes);
    case 'n':
        o->ranks_given = true;
        return bench_read_list(optarg, "ranks", 1, BENCH_RANKS_MAX, o->ranks, &o->n_ranks);
    case 'd': return read_dtype(optarg, &o->cell);
    case 't': return read_transport(optarg, o);
    case 'm': return read_memory(optarg, &o->cell);
    case 'a': o->cell.async = true; return true;
    case 'c': o->cell.cold = true; return true;
    case 'b':
        ok = read_one(optarg, "budget-ms", 1, BUDGET_MAX_MS, &number);
        o->cell.budget_ms = (int)number;
        return ok;
    case 'e':
        ok = read_one(optarg, "seed", 0, INT64_MAX, &number);
        o->cell.seed = (uint64_t)number;
        return ok;
    case 'r': o->tsv = optarg; return true;
    case 'p': o->plot = optarg; return true;
    case 'l': o->launched = true; return true;
    case 'h': o->help = true; return true;
    default: return false;
    }
}

/* "--sizes 3" of f32 is refused, not rounded: who asks for it measures something else than is thought. The
 * default sizes begin with one element. */
static bool check_sizes(bench_options *o, const char *word)
{
    const int64_t element = (int64_t)bench_dtype_size(o->cell.dtype);
    int i;

    if (o->cell.op == BENCH_BARRIER)
        return true;
    if (!o->sizes_given && o->sizes[0] < element)
        o->sizes[0] = element;
    for (i = 0; i < o->n_sizes; i++)
        if (o->sizes[i] < element || o->sizes[i] % element != 0) {
            fprintf(stderr,
                    "tutti bench %s: --sizes: %" PRId64 " bytes are no whole number of %s elements, of %" PRId64
                    " bytes each\n",
                    word, o->sizes[i], bench_dtype_names[o->cell.dtype], element);
            return false;
        }
    return true;
}

/* What needs a launcher of its own is refused under another, not passed over. */
static bool check_launcher(const bench_options *o, const char *word)
{
    if (o->launched || getenv("RANK") == NULL || getenv("WORLD_SIZE") == NULL)
        return true;
    if (o->plot != NULL)
        fprintf(stderr, "tutti bench %s: no --plot under a launcher: take --tsv here, or `tutti bench %s` alone\n",
                word, word);
    else if (o->ranks_given)
        fprintf(stderr, "tutti bench %s: no --ranks under a launcher, whose ranks are measured\n", word);
    return o->plot == NULL && !o->ranks_given;
}

static bool check_plot(const bench_options *o)
{
    return o->plot == NULL || o->launched || bench_can_draw(o->plot);
}

static bool read_options(int argc, char **argv, bench_options *o)
{
    static const struct option names[] = {
        { "sizes", required_argument, NULL, 's' },     { "ranks", required_argument, NULL, 'n' },
        { "dtype", required_argument, NULL, 'd' },     { "transport", required_argument, NULL, 't' },
        { "async", no_argument, NULL, 'a' },           { "cold", no_argument, NULL, 'c' },
        { "budget-ms", required_argument, NULL, 'b' }, { "seed", required_argument, NULL, 'e' },
        { "tsv", required_argument, NULL, 'r' },       { "plot", required_argument, NULL, 'p' },
        { "memory", required_argument, NULL, 'm' },    { "help", no_argument, NULL, 'h' },
        { "launched", no_argument, NULL, 'l' }, /* by run_jobs() */
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = bench_next_option(argc, argv, names)) >= 0)
        if (!read_option(option, o))
            return false;
    if (optind < argc)
        fprintf(stderr, "tutti bench %s: '%.200s' is no option\n", argv[0], argv[optind]);
    return optind == argc && (o->help || (check_sizes(o, argv[0]) && check_launcher(o, argv[0]) && check_plot(o)));
}

static void set_defaults(bench_options *o, bench_op op, bool overlap)
{
    static const int64_t sizes[] = { 4, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20 };

    memset(o, 0, sizeof *o);
    o->cell.op = op;
    o->cell.budget_ms = 1000;
    o->cell.seed = 1;
    o->n_sizes = op == BENCH_BARRIER ? 1 : sizeof sizes / sizeof sizes[0];
    if (op != BENCH_BARRIER)
        memcpy(o->sizes, sizes, sizeof sizes);
    if (overlap) {
        o->cell.async = true;
        o->sizes[0] = 25 << 20;
        o->n_sizes = 1;
    }
    o->overlap = overlap;
    o->ranks[0] = 2;
    o->n_ranks = 1;
}

/* ---- the jobs ---------------------------------------------------------------------------------- */

/* This command once more, as the program of a job; rows go to the file given. */
int bench_launch(int argc, char **argv, int64_t ranks, char *rows)
{
    static char bench[] = "bench", tsv[] = "--tsv", self[4096];
    tutti_launch_options l = TUTTI_LAUNCH_OPTIONS;
    char *words[BENCH_ARGS_MAX + 5] = { self, bench };
    const ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    int i, n = 2, code = EXIT_FAILURE;

    if (len < 0 || argc > BENCH_ARGS_MAX) {
        fprintf(stderr, "tutti bench: cannot start itself with %d words: %s\n", argc, strerror(errno));
        return EXIT_FAILURE;
    }
    self[len] = '\0';
    for (i = 0; i < argc; i++)
        words[n++] = argv[i];
    if (rows != NULL) {
        words[n++] = tsv;
        words[n++] = rows;
    }
    l.argv = words;
    l.nproc = (int)ranks;
    l.plain_output = true;
    if (tutti_launch(&l, &code) == TUTTI_OK)
        return code;
    fprintf(stderr, "tutti bench: %s\n", tutti_last_error());
    return EXIT_FAILURE;
}

/* What each rank would refuse to begin with is said once, and not by each of them. */
static bool check_choice(void)
{
    static const char *const names[] = { "TUTTI_TUNE", "TUTTI_ALGO", "TUTTI_LINK_MBIT" };
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tutti_env_check(names[i]) != TUTTI_OK) {
            fprintf(stderr, "tutti bench: %s\n", tutti_last_error());
            return false;
        }
    return true;
}

static int run_jobs(const bench_options *o, int argc, char **argv, char *rows)
{
    static char launched[] = "--launched";
    char *words[BENCH_ARGS_MAX + 1] = { argv[0], launched };
    int i, code = EXIT_SUCCESS;

    for (i = 1; i < argc && i < BENCH_ARGS_MAX; i++)
        words[i + 1] = argv[i];
    for (i = 0; i < o->n_ranks && code == EXIT_SUCCESS; i++)
        code = bench_launch(argc + 1, words, o->ranks[i], rows);
    return code;
}

static long size_of(const char *path)
{
    FILE *file = fopen(path, "re");
    long size = 0;

    if (file != NULL) {
        fseek(file, 0, SEEK_END);
        size = ftell(file);
        fclose(file);
    }
    return size;
}

/* All jobs, then the picture, which needs rows: without --tsv they go to a file that does not stay. */
static int run_and_draw(const bench_options *o, int argc, char **argv)
{
    char       scratch[BENCH_SCRATCH_MAX];
    const long from = o->tsv != NULL ? size_of(o->tsv) : 0;
    int        code, fd = -1;

    if (!check_choice())
        return EXIT_FAILURE;
    if (o->plot == NULL)
        return run_jobs(o, argc, argv, NULL);
    if (o->tsv == NULL && (fd = bench_scratch(scratch)) < 0)
        return EXIT_FAILURE;
    code = run_jobs(o, argc, argv, o->tsv == NULL ? scratch : NULL);
    if (code == EXIT_SUCCESS)
        code = bench_draw(o, o->tsv != NULL ? o->tsv : scratch, from);
    if (fd >= 0)
        close(fd);
    return code;
}

int bench_collective(int argc, char **argv)
{
    const bool is_rank = getenv("RANK") != NULL && getenv("WORLD_SIZE") != NULL;
    const bool overlap = strcmp(argv[0], "overlap") == 0;
    const int op = overlap ? BENCH_ALL_REDUCE : bench_find_name(bench_op_names, BENCH_OPS, argv[0]);
    char *words[BENCH_ARGS_MAX];
    bench_options o;
    int i;

    for (i = 0; i < argc && i < BENCH_ARGS_MAX; i++)
        words[i] = argv[i]; /* getopt_long() moves them about */
    set_defaults(&o, (bench_op)op, overlap);
    if (!read_options(argc, argv, &o))
        return bench_see_help(argv[0]);
    if (overlap && (o.plot != NULL || o.cell.cold)) {
        fprintf(stderr, "tutti bench: overlap takes no --plot and no --cold\n");
        return bench_see_help(argv[0]);
    }
    if (o.help)
        return print_help(stdout, EXIT_SUCCESS);
    if (o.transport != NULL)
        setenv("TUTTI_TRANSPORT", o.transport, 1);
    setenv("OMP_NUM_THREADS", "1", 0); /* else the launcher does, and says so */
    return is_rank ? bench_rank(&o) : run_and_draw(&o, argc, words);
}
