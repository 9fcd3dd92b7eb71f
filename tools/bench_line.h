/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_line.h - the options of `tutti bench WORD`, read one by one; what is wrong is said in one line. */
#ifndef TUTTI_BENCH_LINE_H
#define TUTTI_BENCH_LINE_H

#include <getopt.h>

enum { BENCH_LINE_WRONG = '?' };

/** As getopt_long(), with -h; command, as "tutti sim", begins the lines that say what is wrong. BENCH_LINE_WRONG: it
 * has. */
int tool_next_option(const char *command, int argc, char **argv, const struct option *names);
/** The same for `tutti bench`, argv[0] being the word. */
int bench_next_option(int argc, char **argv, const struct option *names);

/** Where to read on, below what was said to be wrong; returns the exit code of a wrong line. */
int bench_see_help(const char *word);

#endif
