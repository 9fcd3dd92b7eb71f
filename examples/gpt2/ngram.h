/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ngram.h - what to measure a network against: a model of three bytes, counted. */
#ifndef NGRAM_H
#define NGRAM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ngram ngram;

/* Count n bytes of text. NULL: no memory. */
ngram *ngram_create(const uint8_t *text, int64_t n);

/* The probability of byte c behind a, b; above 0, and 1 in sum over all c. */
double ngram_probability(const ngram *g, uint8_t a, uint8_t b, uint8_t c);

/* The mean of -log2 of the probabilities of text[first .. n - 1], each behind the two bytes before it; first >= 2. */
double ngram_bits(const ngram *g, const uint8_t *text, int64_t first, int64_t n);

void ngram_free(ngram *g);

#endif
