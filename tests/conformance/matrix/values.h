/* SPDX-License-Identifier: BSD-3-Clause
 *
 * values.h - the elements that the matrix sends, and what a reduction of them must give.
 *
 * Why     The library's arithmetic cannot be its own judge. Here is a second one, written to be read: one
 *         loop over the elements, one over the ranks, and conversions of its own.
 * How     Element i of a content is a function of (dtype, seed, i): whole numbers are random bits; real
 *         ones have random signs and mantissas, exponents that are near enough to each other for every
 *         bit to count, and now and then a NaN, an infinity, a zero of either sign, a subnormal or the
 *         largest number. bool has bytes other than 0 and 1, too, which mean true.
 * True    The contract is bitwise: rank order on each host, then the hosts by their lowest ranks; formats below f32
 *         combined in f32 and rounded once on each host that has several, and once at the end; averages of formats
 *         with a small range in rank order all along. PREMUL_SUM is rounded to the dtype before it is summed. What tutti/dtype.h leaves open, and
 *         nothing else, is accepted: which NaN a NaN is, and which zero MIN and MAX give of -0 and +0. */
#ifndef TT_VALUES_H
#define TT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/dtype.h>

/** Spread the bits of a number: the source of all that is random here. */
uint64_t tt_mix(uint64_t x);

/** The same for a text, continued from a number. */
uint64_t tt_mix_text(uint64_t seed, const char *text);

/** The same for bytes. */
uint64_t tt_mix_bytes(uint64_t seed, const void *data, size_t bytes);

/** Make the tables of the formats below f32. Once, before there are threads. */
void tt_values_init(void);

/** Elements first .. first + n - 1 of the content with that seed. */
void tt_elements(void *out, tutti_dtype dtype, uint64_t seed, int64_t first, int64_t n);

/** out[i] = rows[0][i] op rows[1][i] op ..., n elements, the rows of each host first; factors[r] belongs to row r, which
 * is of host_of[r]. */
void tt_fold(void *out, tutti_dtype dtype, tutti_op_kind op, const void *const *rows,
             const double *factors, const int *host_of, int n_rows, int64_t n);

/** The first of n elements that is not as wanted, -1 if there is none. exact: every bit counts. */
int64_t tt_first_wrong(const void *got, const void *want, tutti_dtype dtype, tutti_op_kind op,
                       bool exact, int64_t n);

/** An element for people: its bytes, and its value where it has one. */
void tt_element_text(char *out, size_t bytes, tutti_dtype dtype, const void *element);

/** What f32 becomes in a format below it, and back. */
uint32_t tt_small_code(tutti_dtype dtype, float x);
float    tt_small_value(tutti_dtype dtype, uint32_t code);

#endif
