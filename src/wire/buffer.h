/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/buffer.h - a queue of bytes: appended at the end, consumed from the front. Zeroed memory is
 * empty. */
#ifndef TTI_WIRE_BUFFER_H
#define TTI_WIRE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

typedef struct tti_buffer {
    uint8_t *memory;
    size_t   room;  /* bytes of memory */
    size_t   start; /* where the queue begins */
    size_t   size;  /* bytes in the queue */
} tti_buffer;

static inline const uint8_t *tti_buffer_data(const tti_buffer *buffer)
{
    return buffer->memory + buffer->start;
}

/** Room for so many more bytes at the end: where to write them, or NULL: no memory (worded). They
 * count once tti_buffer_commit() says so. */
uint8_t *tti_buffer_reserve(tti_buffer *buffer, size_t bytes);
void     tti_buffer_commit(tti_buffer *buffer, size_t bytes);
/** Append a copy.
 * @errors TUTTI_E_NOMEM  nothing was changed */
tutti_status tti_buffer_append(tti_buffer *buffer, const void *data, size_t bytes);
/** Forget bytes at the front. Memory beyond 64 KiB is given back when the queue becomes empty. */
void tti_buffer_consume(tti_buffer *buffer, size_t bytes);
/** Free all memory; empty afterwards. */
void tti_buffer_release(tti_buffer *buffer);

#endif
