/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/tune.h - which algorithm does a collective, and who says so. tutti.h includes it.
 *
 * Each collective has several algorithms. When a group is made, one is chosen for each collective, size of one rank's
 * part, and sort of numbers, for all members alike:
 *
 *   TUTTI_ALGO=op=name,...    one algorithm for all sizes, wherever it can serve the group at all, each operation once;
 *   TUTTI_TUNE=FILE           else a table, as `tutti bench --tune` writes it for a machine;
 *   the cost model            else the cheapest by what rank 0 of the group has measured: waits, copies and
 *                             reductions inside a host, a few milliseconds once per process; between hosts by usual
 *                             figures, which are of links with 8 Gb/s and more.
 *
 * Of a slower link the library knows what the kernel of rank 0's host tells of the interface that is used: what it is shaped to (TBF,
 * or the default class of an HTB, at its root), or the speed of the card, whichever is lower. TUTTI_LINK_MBIT=1000 says it instead, 0
 * that nothing is known. Algorithms that send fewer bytes are then taken from smaller sizes on. A rank other than 0 that was told of a
 * slow one in vain warns of it.
 *
 * Ranks with different values of TUTTI_ALGO, or different tables, cannot make a group: TUTTI_E_MISMATCH. No table is
 * looked for where TUTTI_TUNE is not set. TUTTI_LOG=debug shows what was measured and chosen. At info it says of a
 * name in TUTTI_ALGO that it can do no call of a group, as one for one host cannot between several.
 *
 * What is measured or stands in a table never changes a bit of a result. Integers and bool come out the same in any order of
 * adding, so they are done by whatever is cheapest. Of floating-point numbers the order is a rule of where the ranks
 * are, for all_reduce, reduce and reduce_scatter alike:
 *
 *   inside each host by rank, then the hosts      several hosts, with several ranks on one: hosts in the order of their
 *                                                 lowest ranks, as if each were a rank
 *   ranks 0, 1, ..., P-1, one after the other     all on one host; or up to 16 ranks on as many hosts
 *   a tree                                        more than 16 ranks on as many hosts, or more than 2048 on one:
 *                                                 neighbours two by two, those two by two, and so on. With 2^k + m ranks the
 *                                                 first 2m of them come together in pairs before, which leaves 2^k
 *
 * f16, bf16 and f8 are rounded once in rank order, and at each of the log2 P levels of the tree. "ring" and "chain" add around
 * the circle of ranks, rounding P - 1 times: they do floating-point numbers only where TUTTI_ALGO says so. As does any
 * other algorithm that TUTTI_ALGO names, in its own order; all ranks get the same bits all the same. Averages (AVG) of f16 and
 * f8 are made in rank order everywhere, whatever is asked for: a sum on the way may be too large where the average is not.
 *
 * TUTTI_REPRODUCIBLE=1 promises more than the same bits in every run with the same layout: sums are made in the
 * order of ranks 0 .. P-1 wherever the ranks are, so that other hosts, other numbers of ranks per host, other
 * tables and other machines do not change a bit. Algorithms with another order are then not taken for floating-point
 * numbers, not even where TUTTI_ALGO names one: on several hosts with several ranks on one, "two_level" and "leaders" (of
 * sums) among them. All ranks need the same value.
 *
 * A table is JSON. Of its rows the first that fits a call is taken, if its algorithm can serve the group:
 *
 *   { "tutti_tune": 1,
 *     "rows": [
 *       { "op": "all_reduce", "algorithm": "one_phase", "bytes": [0, 16384], "ranks": [2, 4], "hosts": "one" },
 *       { "op": "all_reduce", "algorithm": "sliced", "bytes": [16385, null] }
 *     ] }
 *
 *   op, algorithm   names, as in TUTTI_ALGO
 *   bytes           from and to, of one rank's part; null: any more. Sizes are told apart in quarters of a power of
 *                   two (..., 4096, 5120, 6144, 7168, 8192, ...): an end between two of them counts as the lower
 *   ranks           from and to, members of the group; or one number
 *   hosts           "one": all members are on one host; "many": they are not
 *
 * A row whose algorithm adds in another order than the call is passed over.
 * "fused" is no row's algorithm: it is taken by itself where the buffers of all members are registered.
 * What is left out is everything. Anything else in a table is an error, with the file, the line and the word. */
#ifndef TUTTI_TUNE_H
#define TUTTI_TUNE_H

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The i-th algorithm of a collective, as TUTTI_ALGO and tables name it; those for one host come first.
 *
 * @param op  "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all",
 *            "gather_v", "scatter_v" or "barrier"
 * @param i   from 0
 *
 * @errors   none: NULL behind the last one, and for names that no collective has. The name is a constant
 * @threads  any
 * @source   ours */
TUTTI_API const char *tutti_algorithm_name(const char *op, int i);

#ifdef __cplusplus
}
#endif
#endif
