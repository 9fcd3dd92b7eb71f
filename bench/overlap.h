/* SPDX-License-Identifier: BSD-3-Clause
 *
 * overlap.h - an all_reduce that goes on while every rank computes.
 *
 * Three times, taken in turn, all ranks leaving a barrier, the longest of them counting: the operation alone,
 * begun and waited for; products alone, as many as take half as long again, or as the cell says; both, the operation begun, the
 * products computed, the operation waited for. What the products took in the third shows who was slowed down. What is
 * compared with products is compared with those of the same turn. Who is compared with others computes as much as they do:
 * their numbers are asked for before, and one of them is in the cells of all. */
#ifndef TUTTI_BENCH_OVERLAP_H
#define TUTTI_BENCH_OVERLAP_H

#include "side.h"

/* Times in microseconds, medians over rounds; rank 0's only. */
typedef struct bench_overlapped {
    int rounds, products; /* products in each */
    double alone;         /* the operation */
    double product;       /* the products */
    double both;
    double beside; /* the products, while the operation went on */
    double hidden; /* share of the operation's time that both together do not show: 1 - (both - product of that turn) / alone */
    double slowed; /* beside / product of that turn */
    int64_t bytes;
} bench_overlapped;

/** Every rank calls it with the same cell, whose operation is all_reduce; the side has begin and finish. The result of
 * an operation behind which something was computed is verified first, and so is what was computed. False:
 * bench_words() says why. */
bool bench_overlap(const bench_side *side, const bench_cell *cell, bench_board *board, bench_overlapped *out);

/** The same, but only how many products take half as long again as the operation: what bench_overlap() finds for itself where
 * the cell says nothing. All ranks get the same number. */
bool bench_overlap_products(const bench_side *side, const bench_cell *cell, bench_board *board, int *products_out);

#endif
