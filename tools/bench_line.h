/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_line.h - the options of `tutti bench WORD`, read one by one; what is wrong is said in one line. */
#ifndef TUTTI_BENCH_LINE_H
#define TUTTI_BENCH_LINE_H

#include <getopt.h>

enum { BENCH_LINE_WRONG = '?' };

/** As getopt_long(), for argv[0] the word and with -h. BENCH_LINE_WRONG: it has said what is wrong. */
int bench_next_option(int argc, char **argv, const struct option *names);

/** Where to read on, below what was said to be wrong; returns the exit code of a wrong line. */
int bench_see_help(const char *word);

#endif
