/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench.h - the words of `tutti bench`: argv[0] is the word, the result an exit code. */
#ifndef TUTTI_BENCH_H
#define TUTTI_BENCH_H

int bench_collective(int argc, char **argv);
int bench_near(int argc, char **argv);
int bench_store(int argc, char **argv);
int bench_tune(int argc, char **argv);

#endif
