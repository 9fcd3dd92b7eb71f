/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_options.h - what `tutti bench OP` was asked for, and its two halves. */
#ifndef TUTTI_BENCH_OPTIONS_H
#define TUTTI_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "bench/board.h"
#include "bench/cell.h"

enum { BENCH_LIST_MAX = 32 };

typedef struct bench_options {
    bench_cell cell; /* bytes: each of sizes in turn */
    int64_t sizes[BENCH_LIST_MAX];
    int n_sizes;
    int64_t ranks[BENCH_LIST_MAX];
    int n_ranks;
    const char *transport; /* NULL: as the environment says */
    const char *tsv;       /* NULL: no rows */
    const char *plot;      /* NULL: no picture */
    bool help;
    bool sizes_given, ranks_given;
    bool launched; /* by this command itself, which draws, and not by `tutti run` */
    bool overlap; /* `tutti bench overlap`: an all_reduce behind something that is computed */
} bench_options;

/** "4,8K,1M" to numbers between least and most, *n_out of them; option is for the words of a failure. */
bool bench_read_list(const char *text, const char *option, int64_t least, int64_t most, int64_t *list, int *n_out);

enum { BENCH_ARGS_MAX = 64 };

/** `tutti bench ARGV...` once more, as the program of a job of so many ranks on this host; rows: NULL, or a file that
 * is given to it with --tsv. Returns an exit code. */
int bench_launch(int argc, char **argv, int64_t ranks, char *rows);

/** Open what the ranks share while they measure; all call it. */
bool bench_open_board(bench_board *board, int rank, int ranks);

/** Say on stderr why this rank failed, its number behind it (below 0: what RANK says), and what to do next on a line of its own.
 * Returns an exit code. */
int bench_say_failed(int rank);

/** Be one rank of a job that was started: measure all sizes; rank 0 prints the table and appends the rows.
 * Returns an exit code. */
int bench_rank(const bench_options *o);

/** Whether plot can be drawn as far as its name and its folder go; says why not. */
bool bench_can_draw(const char *plot);

/** Begin a script of gnuplot for a picture of times over bytes, and let gnuplot draw it: an exit code. */
void bench_begin_script(FILE *script, const char *plot);
int  bench_run_gnuplot(char *script);

/** Draw the rows that stand in the file `rows` from byte `from` on into o->plot, an .svg or .png, with
 * gnuplot; its commands stay beside it as FILE.gp. Returns an exit code. */
int bench_draw(const bench_options *o, const char *rows, long from);

#endif
