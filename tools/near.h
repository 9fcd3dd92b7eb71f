/* SPDX-License-Identifier: BSD-3-Clause
 *
 * near.h - words that were probably meant by others. */
#ifndef TUTTI_NEAR_H
#define TUTTI_NEAR_H

enum { NEAR_WORD_MAX = 64 }; /* longer words are near to nothing */

/** How far a word is from a candidate: the letters to be changed, put in, left out or exchanged with the next
 * one; 0 if the candidate begins with it, for at least three letters. */
int near_distance(const char *word, const char *candidate);

/** Distances from this one on are none of a slip. */
int near_limit(const char *word);

#endif
