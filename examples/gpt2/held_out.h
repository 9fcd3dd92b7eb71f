/* SPDX-License-Identifier: BSD-3-Clause
 *
 * held_out.h - how well a network foretells what it has not learned from. */
#ifndef HELD_OUT_H
#define HELD_OUT_H

#include <tutti/nn.h>

#include "text.h"

/* The mean of -log2 of the probabilities that net gives to the bytes held out, each behind at least half a context of
 * what stands before it. Every rank calls it and measures a share. */
bool held_out_bits(tutti_module *net, const text *t, int64_t context, double *bits_out);

#endif
