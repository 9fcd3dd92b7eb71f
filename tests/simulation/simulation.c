/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulation.c - many rehearsals: seed after seed, what is wrong with any of them, and how to see it again.
 *
 *   simulation --seeds 1..2000          run them; exits with 1 if one is wrong
 *   simulation --seed 17 --trace        one, with all that happens
 *   simulation --agreements --seeds 1..2000   the ranks do nothing but agree who goes on, while things go wrong
 *   simulation --seeds 1..10000 --must-fail   succeeds if one is wrong, and says which: for mutants
 *   simulation --seeds 1..100000 --rows seeds.tsv --commit 1234567 --jobs 2 --for 60
 *                                       those that the table has no row for yet, in blocks
 *   simulation --again once_wrong.txt   those that a file names: the first word of each line that begins with a number */
#include "simulation/seeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 500, JOBS_MAX = 64, AGAIN_MAX = 1000 };

static void summarise(const tt_options *o, const tt_tally *t, double took_s)
{
    const uint64_t n = t->next - o->from;
    int            i;

    printf("%" PRIu64 " seeds from %" PRIu64 " in %.1f s: %.0f a second, %" PRIu64 " turns each\n", n, o->from, took_s,
           (double)n / took_s, n > 0 ? t->turns / n : 0);
    printf("faults:");
    for (i = 0; i < TUTTI_FAULT_KINDS; i++)
        printf(" %" PRIu64 " %s", t->faults[i], tutti_fault_name((tutti_fault_kind)i));
    printf("; %" PRIu64 " seeds had nothing that may make a call fail\n", t->harmless);
    printf("%" PRIu64 " calls with the right result, %" PRIu64 " ranks with an error, %" PRIu64 " went on in a smaller world; wrong: %" PRIu64
           " seeds\n", t->results, t->errors, t->shrunk, t->wrong);
    if (o->must_fail && t->wrong > 0)
        printf("found by seed %" PRIu64 "\n", t->wrong_seeds[0]);
}

static int usage(void)
{
    fprintf(stderr, "simulation --seeds FROM..TO | --seed N  [--agreements] [--trace] [--must-fail] [--for SECONDS]\n"
                    "           [--rows FILE [--commit WORD] [--block SEEDS] [--jobs N]]\n"
                    "simulation --again FILE\n");
    return 2;
}

static bool read_value(const char *name, const char *value, tt_options *o)
{
    if (strcmp(name, "--seeds") == 0)
        return sscanf(value, "%" SCNu64 "..%" SCNu64, &o->from, &o->to) == 2;
    if (strcmp(name, "--for") == 0)
        return sscanf(value, "%" SCNd64, &o->for_s) == 1;
    if (strcmp(name, "--block") == 0)
        return sscanf(value, "%" SCNu64, &o->block) == 1;
    if (strcmp(name, "--jobs") == 0)
        return sscanf(value, "%d", &o->jobs) == 1;
    if (strcmp(name, "--rows") == 0)
        o->rows = value;
    else if (strcmp(name, "--again") == 0)
        o->again = value;
    else if (strcmp(name, "--commit") == 0)
        o->commit = value;
    else if (strcmp(name, "--seed") == 0 && sscanf(value, "%" SCNu64, &o->from) == 1)
        o->to = o->from;
    else
        return false;
    return true;
}

static bool read_options(int argc, char **argv, tt_options *o)
{
    int i;

    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--trace") == 0)
            o->trace = true;
        else if (strcmp(argv[i], "--must-fail") == 0)
            o->must_fail = true;
        else if (strcmp(argv[i], "--agreements") == 0)
            o->agreements = true;
        else if (i + 1 == argc || !read_value(argv[i], argv[i + 1], o))
            return false;
        else
            i++;
    if (o->again != NULL)
        return o->from == 0 && o->rows == NULL && !o->trace && !o->must_fail && !o->agreements;
    return o->from > 0 && o->to >= o->from && o->block > 0 && o->jobs > 0 && o->jobs <= JOBS_MAX &&
           !(o->rows != NULL && (o->trace || o->must_fail || o->agreements)) && !(o->trace && o->from != o->to);
}

static int run_rows(const tt_options *o, double began)
{
    uint64_t n = 0, wrong = 0;

    if (!tt_run_blocks(o, began, &n, &wrong))
        return 2;
    printf("%" PRIu64 " seeds in %.1f s: %.0f a second; wrong: %" PRIu64 " seeds; '%s' has the rows\n", n,
           tt_seconds() - began, (double)n / (tt_seconds() - began), wrong, o->rows);
    return wrong > 0;
}

/* The seeds that a file names, at most AGAIN_MAX; -1: it cannot be read. */
static int read_seeds(const char *path, uint64_t *seeds)
{
    FILE *file = fopen(path, "r");
    char  line[256];
    int   n = 0;

    if (file == NULL) {
        perror(path);
        return -1;
    }
    while (n < AGAIN_MAX && fgets(line, sizeof line, file) != NULL)
        n += sscanf(line, "%" SCNu64, &seeds[n]) == 1;
    fclose(file);
    return n;
}

/* Seeds that found something once, and should find nothing any more. */
static int run_again(const tt_options *o)
{
    uint64_t  seeds[AGAIN_MAX];
    const int n = read_seeds(o->again, seeds);
    tt_tally *t = tt_tally_make(0);
    bool      wrong;
    int       i;

    for (i = 0; i < n; i++) {
        t->next = seeds[i];
        tt_run_seeds(seeds[i], 0, o, t);
    }
    wrong = n <= 0 || t->wrong > 0;
    printf("%d seeds of '%s'; wrong: %" PRIu64 "\n", n, o->again, t->wrong);
    tt_tally_free(t);
    return wrong;
}

int main(int argc, char **argv)
{
    tt_options   o = { .self = argv[0], .commit = "-", .block = BLOCK, .jobs = 1 };
    const double began = tt_seconds();
    tt_tally    *t;
    bool         found;

    if (!read_options(argc, argv, &o))
        return usage();
    if (!o.trace)
        tutti_log_set_sink("stderr", NULL, NULL);
    if (o.again != NULL)
        return run_again(&o);
    if (o.rows != NULL)
        return run_rows(&o, began);
    t = tt_tally_make(o.from);
    if (o.trace) {
        (void)tt_run_one(o.from, &o, t);
        t->next++;
    } else {
        tt_run_seeds(o.to, o.for_s > 0 ? began + (double)o.for_s : 0, &o, t);
    }
    summarise(&o, t, tt_seconds() - began);
    found = t->wrong > 0;
    tt_tally_free(t);
    return found == o.must_fail ? 0 : 1;
}
