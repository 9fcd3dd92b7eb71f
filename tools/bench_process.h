/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_process.h - helpers of a benchmark: processes that do a step for each line they are sent, and
 * answer with a line. A helper ends when its standard input does. Failures are worded on standard
 * error, here or by the helper. */
#ifndef TUTTI_BENCH_PROCESS_H
#define TUTTI_BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { BENCH_LINE_MAX = 64 };

typedef struct bench_process {
    pid_t pid; /* 0: none */
    int to, from;
} bench_process;

/** A process of this program that runs body(arg) on pipes as its standard input and output. */
bool bench_fork(bench_process *p, int (*body)(void *arg), void *arg);
/** The same for another program; argv ends with NULL. */
bool bench_exec(bench_process *p, char *const argv[]);

/** Send a line, "word\n". */
bool bench_tell(const bench_process *p, const char *word);
/** Its next line, without the newline; false: it has ended, or is silent for five minutes. */
bool bench_hear(const bench_process *p, char line[BENCH_LINE_MAX]);
/** Let it end, after five seconds by force, and wait for it. One that is none is fine. */
void bench_end(bench_process *p);

#endif
