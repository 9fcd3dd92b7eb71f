/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/pattern.h - who owns which slice and who talks to whom: arithmetic without state.
 *
 * Ranks are group ranks, 0 .. n_ranks-1. All members compute the same answers. */
#ifndef TTI_COLL_PATTERN_H
#define TTI_COLL_PATTERN_H

#include <stddef.h>
#include <stdint.h>

enum { TTI_SLICE_ALIGN = 64 /* bytes: a slice begins on a cache line of its buffer */ };

/** Elements [begin, end) of a buffer; begin == end is an empty slice. */
typedef struct tti_slice {
    int64_t begin;
    int64_t end;
} tti_slice;

/** The part-th of n_parts slices of count elements. Slices follow each other without gaps, begin at
 * multiples of 64 bytes, and differ by at most 64 bytes, the longer ones first.
 *
 * @param element  bytes of one, a divisor of 64 */
tti_slice tti_slice_of(int64_t count, size_t element, int n_parts, int part);

/** Steps after which something that doubles in each has reached all: ceil(log2 n_ranks). */
int tti_doubling_steps(int n_ranks);

/** The peer i ranks further to the right (negative: left), around the circle. */
int tti_shifted(int rank, int by, int n_ranks);

/** Binomial tree: in step k the ranks less than 2^k away from the root hand on to those 2^k
 * further. Parent of rank, and the step it hears from it in; -1 for the root. */
int tti_tree_parent(int rank, int root, int n_ranks, int *step_out);
/** The child that rank hands on to in step, or -1. */
int tti_tree_child(int rank, int root, int n_ranks, int step);

#endif
