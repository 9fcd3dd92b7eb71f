/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parallel/hooks.h - what hooks of the library have in common: a table of their own, buffers from step to step. */
#ifndef TTI_PARALLEL_HOOKS_H
#define TTI_PARALLEL_HOOKS_H

#include "parallel/parallel.h"

/** Memory of a hook for a bucket, registered as far as there is some. Zeroed: none. */
typedef struct tti_hook_buffer {
    void  *data;
    bool   registered;
    size_t bytes;
} tti_hook_buffer;

/** Make it bytes large; what is in it is lost if it was not.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_hook_buffer_fit(tti_hook_buffer *buffer, size_t bytes);
void         tti_hook_buffer_release(tti_hook_buffer *buffer);

/** Steps, as a hook sees them: buckets come in their order, and some may be left out. */
typedef struct tti_hook_steps {
    int64_t n;    /* that were begun */
    int     last; /* the bucket that came last; TTI_STEP_OVER: the next one begins a step */
} tti_hook_steps;

enum { TTI_STEP_OVER = INT32_MAX };

/** Note a bucket: the first one of a step counts it. */
void tti_hook_steps_note(tti_hook_steps *steps, const tutti_grad_bucket *bucket);

/** The average of a span, as a future of it. */
tutti_status tti_hook_average(tutti_span span, tutti_group *group, tutti_future **future_out);
/** A value for futures of hooks: one span. free() releases it.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_hook_value(tutti_span span, void **value_out);

/** Whether every parameter can become dtype.
 * @errors TUTTI_E_UNSUPPORTED */
tutti_status tti_hook_check_dtypes(const tutti_reducer *r, const char *name, tutti_dtype dtype);

/** A hook that averages 16 bits: of f16 or bf16.
 * @errors TUTTI_E_NOMEM, TUTTI_E_UNSUPPORTED */
tutti_status tti_compress_hook_create(const tutti_reducer *r, tutti_dtype dtype, const tutti_comm_hook **hook_out,
                                      void **state_out);

/** A hook that rounds to uint8 with a scale for each rank, or for each rank and 512 elements.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_quantize_hook_create(const tutti_reducer *r, bool per_channel, const tutti_comm_hook **hook_out,
                                      void **state_out);

#endif
