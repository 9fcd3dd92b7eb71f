/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_plot.c - a picture of rows: time over bytes, one curve for each number of ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench_files.h"
#include "bench_options.h"

/* Columns as bench_rank.c prints them. */
enum { RANKS = 2, BYTES = 7, P10 = 10, MEDIAN = 11, P90 = 12, COLUMNS = 18, ROW_MAX = 1024, NAME_BYTES = 1024 };

static const char *terminal_of(const char *file)
{
    const char *dot = strrchr(file, '.');

    if (dot != NULL && strcmp(dot, ".svg") == 0)
        return "svg size 900,600 enhanced background rgb 'white'";
    if (dot != NULL && strcmp(dot, ".png") == 0)
        return "pngcairo size 900,600";
    return NULL;
}

/* The rows of one number of ranks, as a block of data that gnuplot reads by name. */
static void copy_rows(FILE *rows, long from, int64_t ranks, FILE *script)
{
    char line[ROW_MAX], *fields[COLUMNS], *rest;
    int n;

    fseek(rows, from, SEEK_SET);
    fprintf(script, "$ranks%lld << END\n", (long long)ranks);
    while (fgets(line, sizeof line, rows) != NULL) {
        rest = line;
        for (n = 0; n < COLUMNS && (fields[n] = strsep(&rest, "\t\n")) != NULL; n++)
            ;
        if (n == COLUMNS && strtoll(fields[RANKS], NULL, 10) == ranks)
            fprintf(script, "%s %s %s %s\n", fields[BYTES], fields[MEDIAN], fields[P10], fields[P90]);
    }
    fprintf(script, "END\n");
}

void bench_begin_script(FILE *script, const char *plot)
{
    fprintf(script, "set terminal %s\nset output '%s'\nset logscale xy\nset grid\nset key left top\n", terminal_of(plot),
            plot);
}

static void write_script(const bench_options *o, FILE *rows, long from, FILE *script)
{
    const bench_cell *c = &o->cell;
    int i;

    bench_begin_script(script, o->plot);
    fprintf(script, "set title '%s, %s, %s, %s buffers: median, and 10%% to 90%%' noenhanced\n",
            bench_op_names[c->op], bench_dtype_names[c->dtype], c->async ? "async" : "blocking",
            c->cold ? "cold" : "warm");
    fprintf(script, "set xlabel 'bytes'\nset ylabel 'us'\nset format x '%%.0s%%c'\n");
    for (i = 0; i < o->n_ranks; i++)
        copy_rows(rows, from, o->ranks[i], script);
    fprintf(script, "plot");
    for (i = 0; i < o->n_ranks; i++)
        fprintf(script, "%s $ranks%lld using 1:2:3:4 with yerrorlines title '%lld ranks'", i > 0 ? "," : "",
                (long long)o->ranks[i], (long long)o->ranks[i]);
    fprintf(script, "\n");
}

int bench_run_gnuplot(char *script)
{
    static char gnuplot[] = "gnuplot";
    char *argv[] = { gnuplot, script, NULL };
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        execvp(argv[0], argv);
        fprintf(stderr,
                "tutti: cannot run gnuplot: %s\n"
                "  next: apt-get install gnuplot-nox, then gnuplot %s\n",
                strerror(errno), script);
        _exit(EXIT_FAILURE);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return EXIT_FAILURE;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The script that gnuplot is given stands beside the picture. */
static bool name_script(const char *plot, char name[NAME_BYTES])
{
    if (snprintf(name, NAME_BYTES, "%s.gp", plot) < NAME_BYTES && terminal_of(plot) != NULL)
        return true;
    fprintf(stderr, "tutti: '%.200s' is no .svg or .png\n", plot);
    return false;
}

bool bench_can_draw(const char *plot)
{
    char name[NAME_BYTES];

    return name_script(plot, name) && bench_can_write(name) && bench_can_write(plot);
}

int bench_draw(const bench_options *o, const char *rows, long from)
{
    char  name[NAME_BYTES];
    FILE *in, *script;

    if (!name_script(o->plot, name))
        return EXIT_FAILURE;
    in = fopen(rows, "re");
    if (in == NULL)
        return bench_cannot_write(rows);
    script = fopen(name, "we");
    if (script == NULL) {
        fclose(in);
        return bench_cannot_write(name);
    }
    write_script(o, in, from, script);
    fclose(in);
    if (fclose(script) != 0)
        return bench_cannot_write(name);
    return bench_run_gnuplot(name);
}
