/* SPDX-License-Identifier: BSD-3-Clause
 *
 * number.h - words of a command line as numbers; false where a word is none. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* min .. max. */
bool number_whole(const char *word, uint64_t min, uint64_t max, uint64_t *value_out);

/* 1 .. 1000000. */
bool number_count(const char *word, int64_t *value_out);

/* 0 or more, below limit. */
bool number_real(const char *word, double limit, double *value_out);

#endif
