/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/collective_utils.h - what ranks make and tell each other in one step, failures included.
 *
 * A stage is a name for people. A rank whose function fails comes all the same: every rank returns an error then,
 * the one that failed its own, the others TUTTI_E_REMOTE with its rank, status and words. Stages with different
 * names on different ranks are TUTTI_E_MISMATCH on all ranks. In all these cases the group goes on. Values are
 * objects: the rules and limits of tutti/object.h hold, the value and its stage together being one. With group
 * NULL and no world only the caller runs. */
#ifndef TUTTI_COLLECTIVE_UTILS_H
#define TUTTI_COLLECTIVE_UTILS_H

#include <tutti/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a value: bytes from malloc, which the library frees. With a status other than TUTTI_OK
 * tutti_last_error() has the words, if it was a call of this library that failed. */
typedef tutti_status (*tutti_result_fn)(void *ctx, tutti_bytes *value_out);

/** Run fn on src, and give every rank its result.
 *
 * @param stage      its name, the same on all ranks
 * @param fn         counts on src; NULL: ctx points to a tutti_bytes that is the value
 * @param value_out  on all ranks, src included; the caller frees it with tutti_bytes_free()
 *
 * @errors   TUTTI_E_REMOTE    fn failed on src: its words
 *           TUTTI_E_MISMATCH  the names of the stage differ
 *           and what tutti_all_gather_object fails with; on src what fn failed with
 * @threads  one per group; fn runs on the caller's
 * @cost     as tutti_all_gather_object
 * @source   torch.distributed.collective_utils.broadcast */
TUTTI_API tutti_status tutti_broadcast_result(const char *stage, tutti_result_fn fn, void *ctx, int src,
                                              tutti_group *group, tutti_bytes *value_out);

/** Run fn on every rank, and give every rank all results.
 *
 * @param stage       its name, the same on all ranks
 * @param fn          NULL: ctx points to a tutti_bytes that is the value
 * @param values_out  one per rank, in group order
 *
 * @errors   as tutti_broadcast_result, of any rank; several are listed, with the words of the first
 * @threads  one per group; fn runs on the caller's
 * @cost     as tutti_all_gather_object
 * @source   torch.distributed.collective_utils.all_gather */
TUTTI_API tutti_status tutti_all_gather_results(const char *stage, tutti_result_fn fn, void *ctx,
                                                tutti_group *group, tutti_objects *values_out);

/** tutti_all_gather_object of objects that have to be of one type.
 *
 * @param type  the program's name for it
 *
 * @errors   TUTTI_E_MISMATCH  a type differs from the first rank's; the text names the first such index
 *           and what tutti_all_gather_object fails with
 * @threads  one per group
 * @source   torch.distributed.collective_utils.all_gather_object_enforce_type */
TUTTI_API tutti_status tutti_all_gather_object_enforce_type(const void *data, size_t size, const char *type,
                                                            tutti_group *group, tutti_objects *objects_out);

/** Compare the states of random generators, or any other bytes that ranks should have in common.
 *
 * @param report_out  empty where all are the same; else a text, the same on all ranks, of a line per state, the
 *                    most frequent one first: the beginning of its SHA-256 and its ranks as start:stop:step. The
 *                    caller frees it with tutti_bytes_free()
 *
 * @errors   TUTTI_E_MISMATCH  a rank makes another call
 *           and what tutti_all_gather_object fails with
 * @threads  one per group
 * @cost     as tutti_all_gather_object of 32 bytes
 * @source   torch.distributed.collective_utils._check_rng_sync */
TUTTI_API tutti_status tutti_report_random_states(const void *state, size_t size, tutti_group *group,
                                                  tutti_bytes *report_out);

#ifdef __cplusplus
}
#endif
#endif
