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
 * A frame on the notice plane is no message: its body says that a peer has failed in a group. Nor is one on the call
 * plane, which says in which call a peer waits (waits.c), or on the window plane, whose body, if there is one, goes into the window (window_serve.c).
 *
 * True    A frame that was begun is always finished, and so is its body: giving up a send copies the rest.
 *         Nothing that nobody wants yet is taken out of shared memory, unless all is asked for: it waits where it
 *         is, and its sender with it, until a receive can have it without a copy being kept.
 *         Behind a large message of a collective a turn ends: who waits for it may ask for the next one before that is
 *         read, and has to be kept. */
#include "transport/window_core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum {
    DRAIN_BYTES_MAX = 4 << 20, /* in one turn, so that other lanes, and the other direction, get theirs */
    FLUSH_BYTES_MAX = 1 << 20,
    HAND_OVER_BYTES = 32 * 1024, /* messages of collectives from there on are handed over one by one */
    KEEP_BYTES = 4 << 20,        /* memory for a message that nobody wants yet, before more of it has come */
};

const char *tti_lane_describe(const tti_lane *lane, char out[TTI_WAY_TEXT_MAX])
{
    static const char label[] = "\n  connection: ";

    out[0] = '\0';
    if (lane->link == NULL || lane->link->ops->describe == NULL)
        return out;
    lane->link->ops->describe(lane->link, out + sizeof label - 1, TTI_WAY_TEXT_MAX - sizeof label + 1);
    if (out[sizeof label - 1] != '\0')
        memcpy(out, label, sizeof label - 1);
    return out;
}

/* A link that failed: what was known of it is in the log, too. */
static void log_broken(const tti_lane *lane, int64_t err)
{
    char text[TTI_WAY_TEXT_MAX], reason[64];

    if (tti_lane_describe(lane, text)[0] != '\0')
        tti_log(err == 0 ? TTI_LOG_DEBUG : TTI_LOG_INFO, "the connection to rank %d (%s) is over: %s%s", lane->peer, lane->where,
                err == 0 ? "closed by the peer" : strerror_r((int)-err, reason, sizeof reason), text);
}

/* err is -errno, or 0 for the end of the stream. */
static bool broken(const tti_lane *lane, int64_t err, tti_cause *why)
{
    char text[TTI_WAY_TEXT_MAX], reason[64];

    log_broken(lane, err);
    if (err == 0 || err == -ECONNRESET || err == -EPIPE) /* nobody can tell which from one end: health/watch.c asks. So it is
                                                          * the connection that is told of: the other end says the same of us */
        tti_cause_set(why, TUTTI_E_PEER, TTI_CONNECTION_TO "%s) was %s: that rank has left or died, or something on the way "
                      "did it%s", lane->peer, lane->where, err == 0 ? "closed" : "cut",
                      lane->link->ops->is_quiet != NULL && lane->link->ops->is_quiet(lane->link) ? tti_lane_describe(lane, text) : "");
    else if (err == -EPROTO)
        tti_cause_set(why, TUTTI_E_PEER, "rank %d (%s) wrote nonsense into its %s link", lane->peer,
                      lane->where, lane->link->ops->name);
    else
        tti_cause_set(why, err == -ENOMEM ? TUTTI_E_NOMEM : TUTTI_E_PEER, "the %s link to rank %d (%s) failed: %s%s",
                      lane->link->ops->name, lane->peer, lane->where, strerror_r((int)-err, reason, sizeof reason),
                      tti_lane_describe(lane, text));
    return false;
}

bool tti_lane_is_cut(const tti_lane *lane, tti_cause *why)
{
    return lane->link != NULL && lane->link->ops->is_cut != NULL && lane->link->ops->is_cut(lane->link) &&
           !broken(lane, -ETIMEDOUT, why);
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

bool tti_lane_flush(tti_lane *lane, bool *moved, tti_cause *why)
{
    tti_request *request;
    tti_part     parts[2];
    size_t       total = 0;
    int64_t      taken;

    while ((request = lane->queue.first) != NULL && total < FLUSH_BYTES_MAX) {
        if (request->sent == 0 && lane->link->ops->share != NULL)
            lane->link->ops->share(lane->link, request->parcel.beside + 1);
        taken = lane->link->ops->send(lane->link, parts, parts_left(request, parts));
        if (taken == -EAGAIN)
            return true;
        if (taken < 0)
            return broken(lane, taken, why);
        *moved = true;
        total += (size_t)taken;
        request->sent += (size_t)taken;
        if (request->sent == sizeof(tti_frame) + request->parcel.bytes) {
            tti_request_remove(&lane->queue, request);
            tti_request_end(request, NULL);
        }
    }
    return true;
}

/* The kept message becomes so large; NULL: it must not, or there is no memory. */
static tti_kept *resize_kept(const tti_lane *lane, tti_mailbox *mailbox, tti_kept *kept, size_t room, tti_cause *why)
{
    const size_t more = kept != NULL ? room - kept->room : sizeof *kept + room;
    tti_kept    *larger;
    char         what[80];

    snprintf(what, sizeof what, "a message of %llu bytes that nobody has asked for", (unsigned long long)lane->frame.bytes);
    if (!tti_hold(&mailbox->held, lane->peer, more, what, why))
        return NULL;
    larger = realloc(kept, sizeof *kept + room);
    if (larger == NULL) {
        tti_let_go(&mailbox->held, more);
        tti_cause_set(why, TUTTI_E_NOMEM, "no memory to keep %s, from rank %d", what, lane->peer);
    }
    return larger;
}

static bool keep(tti_lane *lane, tti_mailbox *mailbox, tti_cause *why)
{
    const size_t room = lane->frame.bytes < KEEP_BYTES ? lane->frame.bytes : KEEP_BYTES;
    tti_kept    *kept = resize_kept(lane, mailbox, NULL, room, why);

    if (kept == NULL)
        return false;
    *kept = (tti_kept){ .prev = mailbox->last, .peer = lane->peer, .frame = lane->frame, .room = room };
    if (mailbox->last != NULL)
        mailbox->last->next = kept;
    else
        mailbox->first = kept;
    mailbox->last = kept;
    lane->kept = kept;
    return true;
}

/* Room for more of what is being kept: twice as much as has come. */
static bool keep_more(tti_lane *lane, tti_mailbox *mailbox, tti_cause *why)
{
    tti_kept *kept = lane->kept;
    size_t    room;

    if (kept == NULL || kept->have < kept->room || kept->room == lane->frame.bytes)
        return true;
    room = lane->frame.bytes - kept->room > kept->room ? 2 * kept->room : lane->frame.bytes;
    kept = resize_kept(lane, mailbox, kept, room, why);
    if (kept == NULL)
        return false;
    kept->room = room;
    *(kept->prev != NULL ? &kept->prev->next : &mailbox->first) = kept;
    *(kept->next != NULL ? &kept->next->prev : &mailbox->last) = kept;
    lane->kept = kept;
    return true;
}

/* What members of a group say to each other: it comes as a whole, into the lane. */
static bool is_told(const tti_lane *lane)
{
    return lane->frame.plane == TTI_PLANE_NOTICE || lane->frame.plane == TTI_PLANE_CALL;
}

static uint64_t most_bytes(const tti_frame *frame)
{
    return frame->plane == TTI_PLANE_NOTICE ? TTI_NOTICE_MAX - 1
           : frame->plane == TTI_PLANE_CALL ? TTI_WAIT_WORDS * sizeof(uint64_t)
                                            : TTI_FRAME_BYTES_MAX;
}

static bool is_too_short(const tti_frame *frame)
{
    return frame->plane == TTI_PLANE_CALL && frame->bytes < TTI_WAIT_WORDS * sizeof(uint64_t);
}

/* A peer has failed: leave it for the messenger, which ends the group here. */
static void end_notice(tti_lane *lane, tti_mailbox *mailbox)
{
    const int32_t  status = lane->frame.tag;
    const uint64_t word = lane->frame.word; /* a rank that is none says nothing: then it is the peer's own */
    const int      origin = word >= 1 && word <= (uint64_t)mailbox->m->n_ranks ? (int)word : lane->peer + 1;

    lane->notice[lane->frame.bytes] = '\0';
    mailbox->has_notice = true;
    mailbox->notice_is_ours = false;
    mailbox->notice_group = lane->frame.group;
    tti_cause_set(&mailbox->notice,
                  status > TUTTI_OK && status <= TUTTI_E_REMOTE ? (tutti_status)status : TUTTI_E_ABORTED,
                  "rank %d reported: %s", origin - 1, lane->notice);
    mailbox->notice.origin = origin;
    mailbox->notice.own_at = (int)(strlen(mailbox->notice.words) - strlen(lane->notice));
}

static bool begin_body(tti_lane *lane, tti_mailbox *mailbox, tti_cause *why)
{
    const tti_frame *frame = &lane->frame;
    tti_request     *request;

    if (!tti_frame_is_sound(frame) || frame->bytes > most_bytes(frame) || is_too_short(frame))
        return broken(lane, -EPROTO, why);
    lane->into = NULL;
    lane->kept = NULL;
    lane->place = NULL;
    lane->body_have = 0;
    if (is_told(lane) || tti_mailbox_finished(mailbox, frame->group) != NULL)
        return true;
    if (frame->plane == TTI_PLANE_WINDOW)
        return tti_window_take_frame(mailbox->m, lane, why);
    if (frame->plane == TTI_PLANE_COLLECTIVE && tti_is_in_doubt(mailbox->m, frame->group))
        return true;
    request = tti_mailbox_find(mailbox, lane->peer, frame);
    if (frame->plane == TTI_PLANE_COLLECTIVE && (request == NULL || request->parcel.word != frame->word) &&
        tti_compare_frame(mailbox->m, lane->peer, frame, request != NULL))
        return true; /* it goes nowhere; a receive ends with the group, which is about to */
    if (request == NULL)
        return keep(lane, mailbox, why);
    tti_request_remove(&mailbox->posted, request);
    if (tti_accept_match(request, lane->peer, frame))
        lane->into = request;
    return true;
}

static void end_body(tti_lane *lane, tti_mailbox *mailbox)
{
    tti_request *wanted;

    lane->n_taken += lane->frame.plane == TTI_PLANE_P2P;
    if (lane->frame.plane == TTI_PLANE_NOTICE)
        end_notice(lane, mailbox);
    if (lane->frame.plane == TTI_PLANE_CALL) {
        tti_take_wait(mailbox->m, lane);
        lane->hands_over = true; /* to look_at_lane(), which takes one at a time */
    }
    if (lane->into != NULL) {
        lane->hands_over = lane->frame.plane == TTI_PLANE_COLLECTIVE && lane->frame.bytes >= HAND_OVER_BYTES;
        tti_request_end(lane->into, NULL);
    }
    if (lane->kept != NULL && (wanted = lane->kept->wanted) != NULL) {
        if (lane->frame.bytes > 0)
            memcpy(wanted->parcel.data, lane->kept->data, lane->frame.bytes);
        tti_kept_free(mailbox, lane->kept);
        tti_request_end(wanted, NULL);
    } else if (lane->kept != NULL && lane->kept->given_up) {
        tti_kept_free(mailbox, lane->kept);
    }
    lane->into = NULL;
    lane->kept = NULL;
    lane->place = NULL;
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
    if (is_told(lane))
        return lane->notice + lane->body_have;
    if (lane->into != NULL)
        return (uint8_t *)lane->into->parcel.data + lane->body_have;
    if (lane->kept != NULL) {
        *bytes_out = lane->kept->room - lane->kept->have;
        return lane->kept->data + lane->kept->have;
    }
    if (lane->place != NULL)
        return lane->place + lane->body_have;
    if (*bytes_out > nowhere_bytes)
        *bytes_out = nowhere_bytes;
    return nowhere;
}

static bool took(tti_lane *lane, tti_mailbox *mailbox, size_t bytes, tti_cause *why)
{
    if (lane->frame_have < sizeof lane->frame) {
        lane->frame_have += bytes;
        if (lane->frame_have < sizeof lane->frame)
            return true;
        if (!begin_body(lane, mailbox, why))
            return false;
    } else {
        lane->body_have += bytes;
        if (lane->kept != NULL)
            lane->kept->have += bytes;
    }
    if (lane->body_have == lane->frame.bytes)
        end_body(lane, mailbox);
    return keep_more(lane, mailbox, why);
}

/* Whether the rest can stay in shared memory. A socket is read as far as it goes: it costs its peer nothing, and
 * what follows may be a notice. */
static bool is_done(const tti_lane *lane, const tti_mailbox *mailbox)
{
    return lane->frame_have == 0 && !tti_lane_is_socket(lane) && !tti_mailbox_wants(mailbox, lane->peer);
}

bool tti_lane_drain(tti_lane *lane, tti_mailbox *mailbox, bool all, bool *moved, tti_cause *why)
{
    uint8_t nowhere[4096];
    size_t  total = 0;
    size_t  bytes;
    int64_t got;

    lane->hands_over = false;
    while (total < DRAIN_BYTES_MAX && !mailbox->has_notice && !lane->hands_over) {
        void *place = next_place(lane, nowhere, sizeof nowhere, &bytes);

        if (!all && is_done(lane, mailbox))
            return true;
        got = lane->link->ops->recv(lane->link, place, bytes);
        if (got == -EAGAIN)
            return true;
        if (got == 0 && !tti_mesh_is_alive(mailbox->m->mesh, lane->peer, why->words, sizeof why->words)) {
            why->status = TUTTI_E_PEER;
            return false;
        }
        if (got <= 0)
            return broken(lane, got, why);
        *moved = true;
        total += (size_t)got;
        if (!took(lane, mailbox, (size_t)got, why))
            return false;
    }
    return true;
}
