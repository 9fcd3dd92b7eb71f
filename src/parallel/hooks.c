/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hooks.c - what hooks of the library have in common. */
#include "parallel/hooks.h"

#include <stdlib.h>
#include <tutti/memory.h>
#include <tutti/private.h>

void tti_hook_buffer_release(tti_hook_buffer *buffer)
{
    if (buffer->registered)
        tutti_free(buffer->data);
    else
        free(buffer->data);
    *buffer = (tti_hook_buffer){ 0 };
}

tutti_status tti_hook_buffer_fit(tti_hook_buffer *buffer, size_t bytes)
{
    const size_t room = bytes > 0 ? bytes : 1;

    if (buffer->data != NULL && buffer->bytes == bytes)
        return TUTTI_OK;
    tti_hook_buffer_release(buffer);
    buffer->registered = tutti_alloc(room, &buffer->data) == TUTTI_OK;
    if (!buffer->registered)
        buffer->data = calloc(1, room);
    if (buffer->data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a communication hook: %zu bytes", room);
    buffer->bytes = bytes;
    return TUTTI_OK;
}

void tti_hook_steps_note(tti_hook_steps *steps, const tutti_grad_bucket *bucket)
{
    steps->n += bucket->index <= steps->last;
    steps->last = bucket->is_last ? TTI_STEP_OVER : bucket->index;
}

tutti_status tti_hook_average(tutti_span span, tutti_group *group, tutti_future **future_out)
{
    tutti_work  *work = NULL;
    tutti_status st = tutti_all_reduce_async(span, TUTTI_AVG, group, &work);

    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    if (st != TUTTI_OK && work != NULL)
        tutti_work_wait(work); /* the span is in use until then */
    tutti_work_free(work);
    return st;
}

tutti_status tti_hook_value(tutti_span span, void **value_out)
{
    tutti_spans *spans = malloc(sizeof *spans + sizeof span);

    if (spans == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the result of a communication hook");
    *spans = (tutti_spans){ .at = (tutti_span *)(void *)(spans + 1), .n = 1 };
    spans->at[0] = span;
    *value_out = spans;
    return TUTTI_OK;
}
