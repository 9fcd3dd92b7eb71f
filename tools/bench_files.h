/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_files.h - where `tutti bench` writes: asked before anything is measured, and gone afterwards. */
#ifndef TUTTI_BENCH_FILES_H
#define TUTTI_BENCH_FILES_H

#include <stdbool.h>

enum { BENCH_SCRATCH_MAX = 64 };

/** A file without a name, for rows of ranks: they open path as long as this process keeps the descriptor open, and
 * nothing is left of it however this process ends. -1 with the reason said. */
int bench_scratch(char path[BENCH_SCRATCH_MAX]);

/** Whether file can be written or made; says why not. */
bool bench_can_write(const char *file);

/** EXIT_FAILURE, with errno's reason said. */
int bench_cannot_write(const char *file);

#endif
