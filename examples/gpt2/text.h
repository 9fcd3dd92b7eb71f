/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text.h - the bytes to learn from, and those held out. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct text {
    uint8_t *bytes;
    int64_t n;
    int64_t train; /* the first so many are learned from; the rest, a tenth, is held out */
    int64_t files; /* that it is made of; on rank 0 */
    uint64_t sum;  /* a checksum of all */
} text;

/* Read files, one behind the other; none: the pages and headers of this repository, by name. Rank 0 reads, the others
 * get what it has read. Every rank calls it; *t is zeroed. */
bool text_open(text *t, char *const *files, int n_files, int rank);

void text_close(text *t);

#endif
