/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bucket.c - what optimizers that step inside of a backward do with a bucket: begin its average, and see a gradient in it. */
#include "ddp/ddp.h"

#include <tutti/private.h>

tutti_status tti_ddp_begin_average(const tutti_comm_hook *hook, void *state, const tutti_grad_bucket *bucket,
                                   tutti_future **future_out)
{
    tutti_work *work = NULL;
    tutti_status st;

    if (hook != NULL) {
        st = hook->run(state, bucket, future_out);
        if (st == TUTTI_OK && *future_out == NULL)
            st = tti_fail(TUTTI_E_ARG, "communication hook '%s' gave no future for bucket %d",
                          hook->name != NULL ? hook->name : "without a name", bucket->index);
        return st;
    }
    st = tutti_all_reduce_async(bucket->buffer, TUTTI_AVG, bucket->group, &work);
    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    if (st != TUTTI_OK && work != NULL)
        (void)tutti_work_wait(work); /* the buffer is in use until then */
    tutti_work_free(work);
    return st;
}

tutti_tensor *tti_ddp_result(const tutti_tensor *p, void *data, tutti_dtype dtype, tutti_tensor **kept)
{
    tutti_tensor *wide, *narrow;

    if (dtype != p->dtype) {
        narrow = tti_raw_external("ddp", data, dtype, p->nd, p->shape, NULL);
        wide = narrow != NULL ? tti_raw_to(narrow, p->dtype) : NULL;
        tutti_tensor_release(narrow);
        return wide;
    }
    if (*kept == NULL || tti_at(*kept) != data) {
        tutti_tensor_release(*kept);
        *kept = tti_raw_external("ddp", data, dtype, p->nd, p->shape, NULL);
    }
    return tutti_tensor_retain(*kept);
}
