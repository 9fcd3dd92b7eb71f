/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/tune.h - tables of algorithms for a machine, as TUTTI_TUNE names them. The format is told in
 * tutti/tune.h. Limits: a file of 1 MiB, 4096 rows; jansson's own 2048 lists inside each other. */
#ifndef TTI_COLL_TUNE_H
#define TTI_COLL_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

/** One row: for these calls of these groups this algorithm. No padding, so that memory can be compared. */
typedef struct tti_tune_row {
    int32_t kind;
    int32_t row; /* of tti_algorithms() */
    int32_t ranks_least, ranks_most;
    int64_t bytes_least, bytes_most; /* of one rank's part */
    int32_t one_host, many_hosts;    /* whether it is for such groups */
} tti_tune_row;

/** Zeroed memory is a table without rows. */
typedef struct tti_tune {
    tti_tune_row *rows;
    int           n;
} tti_tune;

/** Read the table in the file named path; NULL is an empty one. TUTTI_E_ARG says what is wrong in which line,
 * TUTTI_E_IO that it cannot be read. */
tutti_status tti_tune_read(const char *path, tti_tune *tune_out);
/** The same of a text; path is for the words of a failure. */
tutti_status tti_tune_parse(const char *path, const char *text, size_t bytes, tti_tune *tune_out);
void         tti_tune_release(tti_tune *tune);

/** Whether a row is about calls of kind and bytes, in groups of n_ranks on one host or several. */
bool tti_tune_fits(const tti_tune_row *row, int kind, int64_t bytes, int n_ranks, bool one_host);

#endif
