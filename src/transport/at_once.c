/* SPDX-License-Identifier: BSD-3-Clause
 *
 * at_once.c - messages that can go, or have come, when they are asked for.
 *
 * Why     Of messages that follow each other most find room, or what they ask for: they need no request, no list and
 *         nobody who drives. What is left is a frame and the payload.
 * How     A send goes at once if nothing waits in its lane before it. A receive from one member takes the next message
 *         of its link if no other receive is posted and no message kept, so that no other has a
 *         claim to it, and none of its key came before. All else is for a request: the rest of what has begun, and
 *         what finds another message there, which stays in the link.
 *         Who posts a message and goes on gets no request for one that is done: that is tried only where it is
 *         done as a whole or not begun.
 * True    What is taken out of a link here stands where tti_lane_drain() would have put it. A link that is broken is
 *         found so again by whoever looks next, who words it. */
#include "transport/messenger_core.h"

static tti_lane *open_lane(tti_messenger *m, tti_channel channel, int peer)
{
    tti_lane *lane = peer >= 0 ? &m->lanes[peer] : NULL;

    if (lane == NULL || lane->link == NULL || tti_mailbox_finished(&m->mailbox, channel.group) != NULL)
        return NULL;
    return lane;
}

size_t tti_send_at_once(tti_messenger *m, tti_channel channel, const tti_parcel *parcel)
{
    tti_lane       *lane = open_lane(m, channel, parcel->peer);
    const tti_frame frame = tti_frame_of(channel, parcel);
    const tti_part  parts[2] = { { &frame, sizeof frame }, { parcel->data, parcel->bytes } };
    int64_t         taken;

    if (lane == NULL || lane->queue.first != NULL)
        return 0;
    if (lane->link->ops->share != NULL)
        lane->link->ops->share(lane->link, parcel->beside + 1);
    taken = lane->link->ops->send(lane->link, parts, parcel->bytes > 0 ? 2 : 1);
    if (taken <= 0)
        return 0;
    lane->n_sent += channel.plane == TTI_PLANE_P2P;
    return (size_t)taken;
}

static bool is_asked_for(const tti_frame *frame, tti_channel channel, const tti_parcel *parcel)
{
    return tti_frame_is_sound(frame) && frame->group == channel.group && frame->plane == (uint8_t)channel.plane &&
           frame->tag == parcel->tag && frame->bytes == parcel->bytes && frame->dtype == parcel->dtype &&
           frame->word == parcel->word;
}

/* The lane goes on with a message that was taken in part. */
static void begin_body(tti_lane *lane, const tti_frame *frame, size_t have)
{
    lane->frame = *frame;
    lane->frame_have = sizeof *frame;
    lane->body_have = have;
    lane->kept = NULL;
    lane->place = NULL;
}

tti_at_once tti_recv_at_once(tti_messenger *m, tti_channel channel, const tti_parcel *parcel)
{
    const tti_mailbox *mailbox = &m->mailbox;
    tti_lane          *lane = open_lane(m, channel, parcel->peer);
    const tti_frame   *frame;
    int64_t            got;

    if (lane == NULL || lane->link->ops->next == NULL || lane->frame_have > 0 || mailbox->posted.first != NULL ||
        mailbox->first != NULL || mailbox->has_notice)
        return TTI_NOT_THERE;
    frame = lane->link->ops->next(lane->link);
    if (frame == NULL)
        return TTI_NOTHING_THERE;
    if (!is_asked_for(frame, channel, parcel))
        return TTI_NOT_THERE; /* another one is found, and kept, by the lane */
    got = lane->link->ops->body(lane->link, parcel->data, parcel->bytes);
    if (got == (int64_t)parcel->bytes) {
        lane->n_taken += channel.plane == TTI_PLANE_P2P;
        return TTI_TAKEN;
    }
    begin_body(lane, frame, got > 0 ? (size_t)got : 0);
    return TTI_TAKEN_IN_PART;
}

bool tti_post_at_once(tti_messenger *m, tti_channel channel, const tti_parcel *parcel, bool is_send)
{
    const tti_lane *lane = open_lane(m, channel, parcel->peer);
    const size_t    most = lane != NULL ? lane->link->ops->whole_max : 0;

    if (most == 0 || parcel->bytes > most) /* 0: a frame alone may go in pieces, too */
        return false;
    if (is_send)
        return tti_send_at_once(m, channel, parcel) > 0;
    return tti_recv_at_once(m, channel, parcel) == TTI_TAKEN;
}
