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

/** Ranks as a power of two of seats. As many of the first ranks as are too many share one with their right neighbour:
 * (0, 1), (2, 3), ...; the others have one each. Seats are in the order of ranks. */
typedef struct tti_seats {
    int n;       /* a power of two */
    int n_pairs; /* the first so many have two ranks */
    int steps;   /* log2 n */
} tti_seats;

tti_seats tti_seats_of(int n_ranks);
int       tti_seat_of(const tti_seats *seats, int rank);
/** The first rank of a seat. */
int tti_sitting(const tti_seats *seats, int seat);
/** Who shares rank's seat, or -1. */
int tti_pair_of(const tti_seats *seats, int rank);

/** The low bits of number in reverse. */
int tti_reversed(int number, int bits);

/** Tree of a radix, 2 or more: in step k the ranks less than radix^k away from the root hand on to those 1, 2, ...,
 * radix - 1 times radix^k further. Steps after which it has reached all. */
int tti_radix_steps(int n_ranks, int radix);
/** Parent of rank, and the step it hears from it in; -1 for the root. */
int tti_radix_parent(int rank, int root, int n_ranks, int radix, int *step_out);
/** The i-th child, 1 <= i < radix, that rank hands on to in step, or -1. */
int tti_radix_child(int rank, int root, int n_ranks, int radix, int step, int i);

#endif
