/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/solo.h"

#include <string.h>
#include "kernel/kernel.h"

/* Through the kernel, not around it: bool comes out as 0 or 1 whatever went in, as with more
 * ranks. */
static void combine(const tutti_call *call, const void *in)
{
    const tti_reduce_kernel *kernel = tti_reduce_kernel_for(call->op.kind, call->dtype);

    if (call->count == 0)
        return;
    if (call->op.kind == TUTTI_OP_PREMUL_SUM) {
        tti_scale(call->out, in, call->count, call->op.factor, call->dtype);
        in = call->out;
    }
    tti_reduce(kernel, call->out, &in, 1, call->count, 1);
}

static void copy(const tutti_call *call, int64_t count, void *to, const void *from)
{
    if (count > 0 && to != from)
        memmove(to, from, (size_t)count * tutti_dtype_size(call->dtype));
}

static void run_one(const tutti_call *call)
{
    switch (call->kind) {
    case TUTTI_CALL_ALL_REDUCE:
    case TUTTI_CALL_REDUCE: combine(call, call->in); break;
    case TUTTI_CALL_REDUCE_SCATTER: combine(call, call->list[0]); break;
    case TUTTI_CALL_ALL_GATHER:
    case TUTTI_CALL_GATHER: copy(call, call->count, call->list[0], call->in); break;
    case TUTTI_CALL_SCATTER: copy(call, call->count, call->out, call->list[0]); break;
    case TUTTI_CALL_ALL_TO_ALL:
    case TUTTI_CALL_GATHER_V:
    case TUTTI_CALL_SCATTER_V:
        copy(call, call->in_counts[0], call->list[0], call->ins[0]);
        break;
    case TUTTI_CALL_BROADCAST:
    case TUTTI_CALL_BARRIER:
    case TUTTI_CALL_KIND_COUNT: break; /* the root has it; nobody to wait for */
    }
}

void tti_solo_run(const tutti_call *call)
{
    tutti_call one = *call;
    int        i;

    if (call->n_segments == 0)
        run_one(call);
    for (i = 0; i < call->n_segments; i++) {
        one.count = call->segments[i].count;
        one.in = call->segments[i].in;
        one.out = call->segments[i].out;
        one.list = call->list != NULL ? call->list + i : NULL;
        run_one(&one);
    }
}
