/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request.c - life of a request: lists, the outcome, references. */
#include "transport/messenger_core.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clip.h"

void tti_request_append(tti_request_list *list, tti_request *request)
{
    request->next = NULL;
    request->prev = list->last;
    if (list->last != NULL)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
}

void tti_request_remove(tti_request_list *list, tti_request *request)
{
    if (request->prev != NULL)
        request->prev->next = request->next;
    else
        list->first = request->next;
    if (request->next != NULL)
        request->next->prev = request->prev;
    else
        list->last = request->prev;
    request->prev = request->next = NULL;
}

void tti_cause_set(tti_cause *cause, tutti_status status, const char *fmt, ...)
{
    va_list args;

    cause->status = status;
    cause->origin = cause->own_at = 0;
    cause->quiet = false;
    va_start(args, fmt);
    tti_clip_args(cause->words, sizeof cause->words, fmt, args);
    va_end(args);
}

void tti_cause_set_errno(tti_cause *cause, tutti_status status, int err, const char *fmt, ...)
{
    char    text[128];
    size_t  used;
    va_list args;

    cause->status = status;
    cause->origin = cause->own_at = 0;
    cause->quiet = false;
    va_start(args, fmt);
    vsnprintf(cause->words, sizeof cause->words, fmt, args);
    va_end(args);
    used = strlen(cause->words);
    snprintf(cause->words + used, sizeof cause->words - used, ": %s",
             strerror_r(err, text, sizeof text));
}

void tti_request_init(tti_request *request, tti_messenger *m, tti_channel channel, const tti_parcel *parcel,
                      bool is_send)
{
    request->messenger = m;
    request->under_way = &m->under_way;
    request->prev = request->next = NULL;
    request->is_send = is_send;
    request->channel = channel;
    request->window = NULL;
    request->parcel = *parcel;
    request->frame = tti_frame_of(channel, parcel);
    if (!is_send)
        request->frame.word = request->frame.what = 0; /* of the message it is matched with, once it is */
    request->sent = 0;
    request->copy = NULL;
    request->on_end = NULL;
    request->on_end_ctx = NULL;
    request->on_stack = false;
    request->block = NULL;
    atomic_init(&request->refs, 2);
    atomic_init(&request->ended, false);
    request->cause.status = TUTTI_OK; /* its words are written when there are any */
}

void tti_request_end(tti_request *request, const tti_cause *why)
{
    assert(!atomic_load_explicit(&request->ended, memory_order_relaxed));
    if (why != NULL)
        request->cause = *why;
    --*request->under_way;
    atomic_store_explicit(&request->ended, true, memory_order_release);
    if (request->messenger != NULL) /* notices have none */
        tti_count_end(request->messenger);
    if (request->on_end != NULL)
        request->on_end(request->on_end_ctx);
    if (!request->on_stack)
        tti_request_release(request);
}

void *tti_request_room(tti_request *request)
{
    return request->room;
}

bool tti_request_ended(tti_request *request)
{
    return atomic_load_explicit(&request->ended, memory_order_acquire);
}

int tti_request_peer(const tti_request *request)
{
    return request->parcel.peer;
}

uint64_t tti_request_word(const tti_request *request)
{
    return request->frame.word;
}

uint64_t tti_request_what(const tti_request *request)
{
    return request->frame.what;
}

void tti_request_block_drop(tti_request_block *block)
{
    if (block != NULL && atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) == 1)
        free(block);
}

void tti_request_release(tti_request *request)
{
    if (request == NULL)
        return;
    /* Who has the last one need not take it off. */
    if (atomic_load_explicit(&request->refs, memory_order_acquire) > 1 &&
        atomic_fetch_sub_explicit(&request->refs, 1, memory_order_acq_rel) > 1)
        return;
    free(request->copy);
    if (request->block == NULL)
        free(request);
    else
        tti_request_block_drop(request->block);
}
