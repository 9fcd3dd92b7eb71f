/* SPDX-License-Identifier: BSD-3-Clause
 *
 * one_phase.c - which calls are done in one phase: those whose parts fit the places. all_to_all is not among them,
 * for only what others tell says whether it goes on in rounds. */
#include "coll/host/one_phase.h"

#include "coll/segments.h"

/* Elements that a place has to hold. */
static int64_t most_given(const tutti_call *call, int n_ranks)
{
    switch (call->kind) {
    case TUTTI_CALL_ALL_GATHER: return tti_part_longest(call, n_ranks);
    case TUTTI_CALL_SCATTER: return call->count * n_ranks;
    case TUTTI_CALL_REDUCE_SCATTER: return call->n_parts == 0 ? call->count * n_ranks : call->count;
    default: return call->count;
    }
}

static bool is_form_of(tti_staged *form, tutti_call_kind kind)
{
    switch (kind) {
    case TUTTI_CALL_BARRIER: return form == tti_one_phase_barrier;
    case TUTTI_CALL_ALL_REDUCE: return form == tti_one_phase_all_reduce;
    case TUTTI_CALL_REDUCE: return form == tti_one_phase_reduce;
    case TUTTI_CALL_BROADCAST: return form == tti_one_phase_broadcast;
    case TUTTI_CALL_ALL_GATHER: return form == tti_one_phase_all_gather;
    case TUTTI_CALL_GATHER: return form == tti_one_phase_gather;
    case TUTTI_CALL_SCATTER: return form == tti_one_phase_scatter;
    case TUTTI_CALL_REDUCE_SCATTER: return form == tti_one_phase_reduce_scatter;
    default: return false;
    }
}

bool tti_one_phase_does(tti_staged *form, const tutti_call *call, int n_ranks)
{
    const int64_t room = (int64_t)(TTI_LINES_BYTES / tti_dtype_bytes(call->dtype));

    return call->count <= room && is_form_of(form, call->kind) && most_given(call, n_ranks) <= room;
}
