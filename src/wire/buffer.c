/* SPDX-License-Identifier: BSD-3-Clause
 *
 * buffer.c - the byte queue. It grows by doubling, and moves its bytes to the front before it
 * grows. */
#include "wire/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { FIRST_ROOM = 256, KEPT_ROOM = 64 * 1024 };

static uint8_t *grow(tti_buffer *buffer, size_t needed)
{
    size_t   room = buffer->room > 0 ? buffer->room : FIRST_ROOM;
    uint8_t *memory;

    while (room < needed && room <= SIZE_MAX / 2)
        room *= 2;
    memory = room >= needed ? realloc(buffer->memory, room) : NULL;
    if (memory == NULL) {
        tti_fail(TUTTI_E_NOMEM, "no memory for a buffer of %zu bytes", needed);
        return NULL;
    }
    buffer->memory = memory;
    buffer->room = room;
    return memory;
}

uint8_t *tti_buffer_reserve(tti_buffer *buffer, size_t bytes)
{
    if (bytes > SIZE_MAX - buffer->size) {
        tti_fail(TUTTI_E_NOMEM, "no memory for a buffer of %zu bytes more", bytes);
        return NULL;
    }
    if (buffer->memory != NULL && bytes <= buffer->room - buffer->start - buffer->size)
        return buffer->memory + buffer->start + buffer->size;
    if (buffer->start > 0) {
        memmove(buffer->memory, buffer->memory + buffer->start, buffer->size);
        buffer->start = 0;
    }
    if ((buffer->memory == NULL || buffer->size + bytes > buffer->room) &&
        grow(buffer, buffer->size + bytes) == NULL)
        return NULL;
    return buffer->memory + buffer->size;
}

void tti_buffer_commit(tti_buffer *buffer, size_t bytes)
{
    assert(bytes <= buffer->room - buffer->start - buffer->size);
    buffer->size += bytes;
}

tutti_status tti_buffer_append(tti_buffer *buffer, const void *data, size_t bytes)
{
    uint8_t *at;

    if (bytes == 0)
        return TUTTI_OK;
    at = tti_buffer_reserve(buffer, bytes);
    if (at == NULL)
        return TUTTI_E_NOMEM;
    memcpy(at, data, bytes);
    tti_buffer_commit(buffer, bytes);
    return TUTTI_OK;
}

void tti_buffer_consume(tti_buffer *buffer, size_t bytes)
{
    assert(bytes <= buffer->size);
    buffer->start += bytes;
    buffer->size -= bytes;
    if (buffer->size > 0)
        return;
    buffer->start = 0;
    if (buffer->room > KEPT_ROOM)
        tti_buffer_release(buffer);
}

void tti_buffer_release(tti_buffer *buffer)
{
    free(buffer->memory);
    *buffer = (tti_buffer){ .memory = NULL };
}
