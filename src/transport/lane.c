/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lane.c - framing and matching: a state machine over one link.
 *
 *   frame  --- 40 bytes complete --->  match: a posted receive  -> body into its buffer
 *                                             nobody            -> body into a kept message
 *                                             finished group,
 *                                             or wrong size     -> body nowhere
 *   body   --- all bytes here ------>  end the receive, back to frame
 *
 * A frame on the notice plane is no message: its body says that a peer has failed in a group.
 *
 * True    A frame that was begun is always finished, and so is its body: giving up a send copies the rest.
 *         Messages with equal (channel, sender, tag) are matched in order: posted receives are searched
 *         from the oldest, and so are kept messages; a kept message that a receive has taken while it
 *         was still arriving is not offered again. */
#include "transport/lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { DRAIN_BYTES_MAX = 4 << 20 /* in one turn, so that other lanes get theirs */ };

static tutti_status broken(const tti_lane *lane, int64_t err)
{
    if (err == 0)
        return tti_fail(TUTTI_E_PEER, "rank %d (%s) has closed its connection", lane->peer,
                        lane->where);
    if (err == -EPROTO)
        return tti_fail(TUTTI_E_PEER, "rank %d (%s) wrote nonsense into its %s link", lane->peer,
                        lane->where, lane->link->ops->name);
    return tti_fail_errno_as(err == -ENOMEM ? TUTTI_E_NOMEM : TUTTI_E_PEER, (int)-err,
                             "the %s link to rank %d (%s) failed", lane->link->ops->name, lane->peer,
                             lane->where);
}

/* What is left of a send: the rest of its frame, then the rest of its data. */
static int parts_left(const tti_request *request, tti_part parts[2])
{
    const uint8_t *data = request->copy != NULL ? request->copy : request->parcel.data;
    int            n = 0;
    size_t         in_data = 0;

    if (request->sent < sizeof(tti_frame))
        parts[n++] = (tti_part){ (const uint8_t *)&request->frame + request->sent,
                                 sizeof(tti_frame) - request->sent };
    else
        in_data = request->sent - sizeof(tti_frame);
    if (request->parcel.bytes > in_data)
        parts[n++] = (tti_part){ data + in_data, request->parcel.bytes - in_data };
    return n;
}

tutti_status tti_lane_flush(tti_lane *lane, bool *moved)
{
    tti_request *request;
    tti_part     parts[2];
    int64_t      taken;

    while ((request = lane->queue.first) != NULL) {
        taken = lane->link->ops->send(lane->link, parts, parts_left(request, parts));
        if (taken == -EAGAIN)
            return TUTTI_OK;
        if (taken < 0)
            return broken(lane, taken);
        *moved = true;
        request->sent += (size_t)taken;
        if (request->sent == sizeof(tti_frame) + request->parcel.bytes) {
            tti_request_remove(&lane->queue, request);
            tti_request_end(request, TUTTI_OK);
        }
    }
    return TUTTI_OK;
}

static bool matches(const tti_request *receive, int peer, const tti_frame *frame)
{
    return receive->channel.group == frame->group && (uint8_t)receive->channel.plane == frame->plane &&
           receive->parcel.tag == frame->tag &&
           (receive->parcel.peer < 0 || receive->parcel.peer == peer);
}

/* What a receive asked for must be what has come; says what differs. */
static tutti_status agrees(const tti_request *receive, int peer, const tti_frame *frame)
{
    const tti_parcel *want = &receive->parcel;

    if (want->word != frame->word)
        return tti_fail(TUTTI_E_MISMATCH, "rank %d is in another call of the same group", peer);
    if (want->bytes != frame->bytes || want->dtype != frame->dtype)
        return tti_fail(TUTTI_E_MISMATCH,
                        "a message from rank %d with tag %d has %llu bytes of %s, the receive is for %zu "
                        "bytes of %s",
                        peer, frame->tag, (unsigned long long)frame->bytes,
                        tutti_dtype_name((tutti_dtype)frame->dtype), want->bytes,
                        tutti_dtype_name((tutti_dtype)want->dtype));
    return TUTTI_OK;
}

static tti_request *find_posted(tti_mailbox *mailbox, int peer, const tti_frame *frame)
{
    tti_request *request;

    for (request = mailbox->posted.first; request != NULL; request = request->next)
        if (matches(request, peer, frame))
            return request;
    return NULL;
}

/* A receive takes a message on: it leaves the posted list, and fails here if it asked for something else. */
static bool accept_match(tti_request *request, int peer, const tti_frame *frame)
{
    request->frame = *frame;
    request->parcel.peer = peer;
    if (agrees(request, peer, frame) == TUTTI_OK)
        return true;
    tti_request_end(request, TUTTI_E_MISMATCH);
    return false;
}

static tutti_status keep(tti_lane *lane, tti_mailbox *mailbox)
{
    tti_kept *kept = malloc(sizeof *kept + lane->frame.bytes);

    if (kept == NULL)
        return tti_fail(TUTTI_E_NOMEM,
                        "no memory to keep a message of %llu bytes from rank %d that nobody has asked for",
                        (unsigned long long)lane->frame.bytes, lane->peer);
    *kept = (tti_kept){ .prev = mailbox->last, .peer = lane->peer, .frame = lane->frame };
    if (mailbox->last != NULL)
        mailbox->last->next = kept;
    else
        mailbox->first = kept;
    mailbox->last = kept;
    lane->kept = kept;
    return TUTTI_OK;
}

static bool is_notice(const tti_lane *lane)
{
    return lane->frame.plane == TTI_PLANE_NOTICE;
}

/* A peer has failed: leave it for the messenger, which ends the group here. */
static void end_notice(tti_lane *lane, tti_mailbox *mailbox)
{
    const int32_t status = lane->frame.tag;

    lane->notice[lane->frame.bytes] = '\0';
    mailbox->has_notice = true;
    mailbox->notice.group = lane->frame.group;
    mailbox->notice.status =
        status > TUTTI_OK && status <= TUTTI_E_REMOTE ? (tutti_status)status : TUTTI_E_ABORTED;
    snprintf(mailbox->notice.words, sizeof mailbox->notice.words, "rank %d reported: %s", lane->peer,
             lane->notice);
}

static tutti_status begin_body(tti_lane *lane, tti_mailbox *mailbox)
{
    const tti_frame *frame = &lane->frame;
    tti_request     *request;

    if (frame->magic != TTI_FRAME_MAGIC || frame->version != TTI_FRAME_VERSION ||
        frame->size != sizeof *frame ||
        frame->bytes > (is_notice(lane) ? sizeof lane->notice - 1 : TTI_FRAME_BYTES_MAX))
        return broken(lane, -EPROTO);
    lane->into = NULL;
    lane->kept = NULL;
    lane->body_have = 0;
    if (is_notice(lane) || tti_mailbox_dead(mailbox, frame->group) != NULL)
        return TUTTI_OK;
    request = find_posted(mailbox, lane->peer, frame);
    if (request == NULL)
        return keep(lane, mailbox);
    tti_request_remove(&mailbox->posted, request);
    if (accept_match(request, lane->peer, frame))
        lane->into = request;
    return TUTTI_OK;
}

static void end_body(tti_lane *lane, tti_mailbox *mailbox)
{
    tti_request *wanted;

    if (is_notice(lane))
        end_notice(lane, mailbox);
    if (lane->into != NULL)
        tti_request_end(lane->into, TUTTI_OK);
    if (lane->kept != NULL && (wanted = lane->kept->wanted) != NULL) {
        if (lane->frame.bytes > 0)
            memcpy(wanted->parcel.data, lane->kept->data, lane->frame.bytes);
        tti_kept_free(mailbox, lane->kept);
        tti_request_end(wanted, TUTTI_OK);
    } else if (lane->kept != NULL && lane->kept->given_up) {
        tti_kept_free(mailbox, lane->kept);
    }
    lane->into = NULL;
    lane->kept = NULL;
    lane->frame_have = 0;
}

/* Where the next bytes of the stream belong. */
static void *next_place(tti_lane *lane, uint8_t *nowhere, size_t nowhere_bytes, size_t *bytes_out)
{
    if (lane->frame_have < sizeof lane->frame) {
        *bytes_out = sizeof lane->frame - lane->frame_have;
        return (uint8_t *)&lane->frame + lane->frame_have;
    }
    *bytes_out = lane->frame.bytes - lane->body_have;
    if (is_notice(lane))
        return lane->notice + lane->body_have;
    if (lane->into != NULL)
        return (uint8_t *)lane->into->parcel.data + lane->body_have;
    if (lane->kept != NULL)
        return lane->kept->data + lane->body_have;
    if (*bytes_out > nowhere_bytes)
        *bytes_out = nowhere_bytes;
    return nowhere;
}

static tutti_status took(tti_lane *lane, tti_mailbox *mailbox, size_t bytes)
{
    tutti_status st;

    if (lane->frame_have < sizeof lane->frame) {
        lane->frame_have += bytes;
        if (lane->frame_have < sizeof lane->frame)
            return TUTTI_OK;
        st = begin_body(lane, mailbox);
        if (st != TUTTI_OK)
            return st;
    } else {
        lane->body_have += bytes;
        if (lane->kept != NULL)
            lane->kept->have += bytes;
    }
    if (lane->body_have == lane->frame.bytes)
        end_body(lane, mailbox);
    return TUTTI_OK;
}

tutti_status tti_lane_drain(tti_lane *lane, tti_mailbox *mailbox, tti_mesh *mesh, bool *moved)
{
    uint8_t      nowhere[4096];
    size_t       total = 0;
    size_t       bytes;
    int64_t      got;
    tutti_status st;

    while (total < DRAIN_BYTES_MAX && !mailbox->has_notice) {
        void *place = next_place(lane, nowhere, sizeof nowhere, &bytes);

        got = lane->link->ops->recv(lane->link, place, bytes);
        if (got == -EAGAIN)
            return TUTTI_OK;
        if (got <= 0) {
            if (got == 0 && (st = tti_mesh_alive(mesh, lane->peer)) != TUTTI_OK)
                return st;
            return broken(lane, got);
        }
        *moved = true;
        total += (size_t)got;
        st = took(lane, mailbox, (size_t)got);
        if (st != TUTTI_OK)
            return st;
    }
    return TUTTI_OK;
}

/* A receive that finds its message kept already. */
static void serve_kept(tti_mailbox *mailbox, tti_request *request, tti_kept *kept)
{
    if (!accept_match(request, kept->peer, &kept->frame)) {
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
    tti_request_end(request, TUTTI_OK);
}

void tti_mailbox_post(tti_mailbox *mailbox, tti_request *request)
{
    tti_kept *kept;

    for (kept = mailbox->first; kept != NULL; kept = kept->next)
        if (kept->wanted == NULL && !kept->given_up && matches(request, kept->peer, &kept->frame)) {
            serve_kept(mailbox, request, kept);
            return;
        }
    tti_request_append(&mailbox->posted, request);
}

const tti_dead_group *tti_mailbox_dead(const tti_mailbox *mailbox, uint32_t group)
{
    size_t i;

    for (i = 0; i < mailbox->n_dead; i++)
        if (mailbox->dead[i].group == group)
            return &mailbox->dead[i];
    return NULL;
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
    while (mailbox->first != NULL)
        tti_kept_free(mailbox, mailbox->first);
    free(mailbox->dead);
}
