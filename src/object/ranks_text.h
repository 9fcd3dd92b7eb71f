/* SPDX-License-Identifier: BSD-3-Clause
 *
 * object/ranks_text.h - lists of ranks for people. */
#ifndef TTI_OBJECT_RANKS_TEXT_H
#define TTI_OBJECT_RANKS_TEXT_H

#include <stddef.h>

enum { TTI_RANKS_TEXT_EACH = 40 /* bytes that a rank needs at most */ };

/** Ascending ranks as "0:8:2, 9, 12:15:1": start, stop (not included) and step of those at equal distances.
 * Needs n * TTI_RANKS_TEXT_EACH bytes at out. */
void tti_ranks_text(const int *ranks, int n, char *out, size_t bytes);

#endif
