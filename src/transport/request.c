/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request.c - life of a request: lists, the outcome, references. */
#include "transport/request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

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

void tti_request_end(tti_request *request, tutti_status status)
{
    assert(!atomic_load_explicit(&request->ended, memory_order_relaxed));
    request->status = status;
    if (status != TUTTI_OK)
        snprintf(request->words, sizeof request->words, "%s", tutti_last_error());
    --*request->under_way;
    atomic_store_explicit(&request->ended, true, memory_order_release);
    tti_request_release(request);
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

void tti_request_release(tti_request *request)
{
    if (request == NULL || atomic_fetch_sub_explicit(&request->refs, 1, memory_order_acq_rel) > 1)
        return;
    free(request->copy);
    free(request);
}
