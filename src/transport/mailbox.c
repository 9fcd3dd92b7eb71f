/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mailbox.c - matching: receives that were posted, messages that were kept, groups that are known.
 *
 * True    Messages with equal (channel, sender, tag) are matched in order: posted receives are searched
 *         from the oldest, and so are kept messages; a kept message that a receive has taken while it
 *         was still arriving is not offered again. */
#include "transport/window_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { SIZE_TEXT_MAX = 48 };

/* For the program's own messages: a call's have no tag that it could change. */
#define NEXT_EQUAL "\n  next: let a send and its receive be of the same count and dtype; other tags keep messages apart"

static bool matches(const tti_request *receive, int peer, const tti_frame *frame)
{
    return receive->channel.group == frame->group && (uint8_t)receive->channel.plane == frame->plane &&
           receive->parcel.tag == frame->tag &&
           (receive->parcel.peer < 0 || receive->parcel.peer == peer);
}

static bool has_room(const tti_parcel *want, const tti_frame *frame)
{
    return want->at_most ? frame->bytes <= want->bytes : frame->bytes == want->bytes;
}

/* "1000 f32", as collectives count. Messages that are no program's own may end within an element. */
static const char *word_size(uint64_t bytes, uint8_t dtype, char out[SIZE_TEXT_MAX])
{
    const size_t item = tutti_dtype_size((tutti_dtype)dtype);
    const char  *name = tutti_dtype_name((tutti_dtype)dtype);

    if (item > 0 && bytes % item == 0)
        snprintf(out, SIZE_TEXT_MAX, "%llu %s", (unsigned long long)(bytes / item), name);
    else
        snprintf(out, SIZE_TEXT_MAX, "%llu bytes of %s", (unsigned long long)bytes, name);
    return out;
}

/* What a receive asked for must be what has come; says what differs. */
static bool agrees(const tti_request *receive, int peer, const tti_frame *frame, tti_cause *why)
{
    const tti_parcel *want = &receive->parcel;
    char              has[SIZE_TEXT_MAX], wants[SIZE_TEXT_MAX];

    if (want->word != frame->word)
        tti_cause_set(why, TUTTI_E_MISMATCH, "rank %d is in another call of the same group", peer);
    else if (!has_room(want, frame) || want->dtype != frame->dtype)
        tti_cause_set(why, TUTTI_E_MISMATCH, "a message from rank %d with tag %d has %s, the receive is for %s%s%s", peer,
                      frame->tag, word_size(frame->bytes, frame->dtype, has), want->at_most ? "at most " : "",
                      word_size(want->bytes, want->dtype, wants), receive->channel.plane == TTI_PLANE_P2P ? NEXT_EQUAL : "");
    else
        return true;
    return false;
}

tti_request *tti_mailbox_find(const tti_mailbox *mailbox, int peer, const tti_frame *frame)
{
    tti_request *request;

    for (request = mailbox->posted.first; request != NULL; request = request->next)
        if (matches(request, peer, frame))
            return request;
    return NULL;
}

bool tti_mailbox_wants(const tti_mailbox *mailbox, int peer)
{
    const tti_request *request;

    for (request = mailbox->posted.first; request != NULL; request = request->next)
        if (request->parcel.peer < 0 || request->parcel.peer == peer)
            return true;
    return mailbox->m->n_serving > 0;
}

bool tti_accept_match(tti_request *request, int peer, const tti_frame *frame)
{
    tti_cause why;

    request->frame = *frame;
    request->parcel.peer = peer;
    if (agrees(request, peer, frame, &why))
        return true;
    tti_request_end(request, &why);
    return false;
}

/* Whether a message that nobody has taken is of a call that receive's is, or comes behind, and another one. */
static bool is_of_another(const tti_request *receive, const tti_frame *frame)
{
    return frame->plane == TTI_PLANE_COLLECTIVE && receive->channel.plane == TTI_PLANE_COLLECTIVE &&
           frame->group == receive->channel.group && frame->word != receive->parcel.word &&
           !tti_call_is_later(frame->word, receive->parcel.word);
}

static bool is_worthless(const tti_mailbox *mailbox, const tti_request *receive)
{
    return receive->channel.plane == TTI_PLANE_COLLECTIVE && tti_is_in_doubt(mailbox->m, receive->channel.group);
}

/* A receive that finds its message kept already. */
static void serve_kept(tti_mailbox *mailbox, tti_request *request, tti_kept *kept)
{
    if (kept->frame.word != request->parcel.word && tti_compare_frame(mailbox->m, kept->peer, &kept->frame, true)) {
        tti_request_append(&mailbox->posted, request); /* it ends with the group, which is about to */
        return;
    }
    if (!tti_accept_match(request, kept->peer, &kept->frame)) {
        /* Consumed: later receives of the key get the next message. One still arriving is drained. */
        kept->given_up = true;
        if (kept->have == kept->frame.bytes)
            tti_kept_free(mailbox, kept);
        return;
    }
    if (kept->have < kept->frame.bytes) {
        kept->wanted = request;
        return;
    }
    if (kept->have > 0)
        memcpy(request->parcel.data, kept->data, kept->have);
    tti_kept_free(mailbox, kept);
    tti_request_end(request, NULL);
}

void tti_mailbox_post(tti_mailbox *mailbox, tti_request *request)
{
    tti_kept *kept;

    for (kept = mailbox->first; kept != NULL && !is_worthless(mailbox, request); kept = kept->next) {
        if (kept->wanted != NULL || kept->given_up)
            continue;
        if (matches(request, kept->peer, &kept->frame)) {
            serve_kept(mailbox, request, kept);
            return;
        }
        if (is_of_another(request, &kept->frame))
            (void)tti_compare_frame(mailbox->m, kept->peer, &kept->frame, false);
    }
    tti_request_append(&mailbox->posted, request);
}

tti_known_group *tti_mailbox_group(const tti_mailbox *mailbox, uint32_t group)
{
    size_t i;

    for (i = 0; i < mailbox->n_groups; i++)
        if (mailbox->groups[i].group == group)
            return &mailbox->groups[i];
    return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

const tti_cause *tti_mailbox_finished(const tti_mailbox *mailbox, uint32_t group)
{
    static const tti_cause left = { TUTTI_E_ABORTED, 0, 0, "the group was destroyed", true };
    const tti_known_group *known = tti_mailbox_group(mailbox, group);

    if (known != NULL)
        return known->finished.status != TUTTI_OK ? &known->finished : NULL;
    if (group >= TTI_GROUP_ANY_ORDER)
        return bsearch(&group, mailbox->left, mailbox->n_left, sizeof group, compare_numbers) != NULL ? &left
                                                                                                      : NULL;
    /* Entered in growing order: a low one that is not known has left, a high one will come. */
    return (int64_t)group <= mailbox->last_entered ? &left : NULL;
}

bool tti_mailbox_note_left(tti_mailbox *mailbox, uint32_t group)
{
    uint32_t *numbers = realloc(mailbox->left, (mailbox->n_left + 1) * sizeof *numbers);
    size_t    at = mailbox->n_left;

    if (numbers == NULL)
        return false;
    mailbox->left = numbers;
    for (; at > 0 && numbers[at - 1] > group; at--)
        numbers[at] = numbers[at - 1];
    numbers[at] = group;
    mailbox->n_left++;
    return true;
}

void tti_kept_free(tti_mailbox *mailbox, tti_kept *kept)
{
    if (kept->prev != NULL)
        kept->prev->next = kept->next;
    else
        mailbox->first = kept->next;
    if (kept->next != NULL)
        kept->next->prev = kept->prev;
    else
        mailbox->last = kept->prev;
    tti_let_go(&mailbox->held, sizeof *kept + kept->room);
    free(kept);
}

void tti_mailbox_drop_group(tti_mailbox *mailbox, uint32_t group)
{
    tti_kept *kept, *next;

    for (kept = mailbox->first; kept != NULL; kept = next) {
        next = kept->next;
        if (kept->frame.group != group)
            continue;
        if (kept->have == kept->frame.bytes)
            tti_kept_free(mailbox, kept);
        else
            kept->given_up = true; /* freed when the rest has come */
    }
}

void tti_mailbox_release(tti_mailbox *mailbox)
{
    size_t i;

    while (mailbox->first != NULL)
        tti_kept_free(mailbox, mailbox->first);
    for (i = 0; i < mailbox->n_groups; i++) {
        free(mailbox->groups[i].ranks);
        free(mailbox->groups[i].doubt);
    }
    free(mailbox->groups);
    free(mailbox->left);
}
