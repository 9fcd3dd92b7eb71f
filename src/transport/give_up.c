/* SPDX-License-Identifier: BSD-3-Clause
 *
 * give_up.c - requests that cannot end well: a link is lost, a group is finished.
 *
 * True    A buffer is given back the moment its request ends: a send that has begun goes on from a copy,
 *         because the stream must stay whole, and a body that is arriving for nobody goes nowhere.
 * Cause   A rank that fails in a group tells the others with a notice before it leaves, so that they end
 *         with the cause ("rank 1 reported: ...") and not with the consequence ("rank 1 has left"). The
 *         first cause stays. */
#include "transport/messenger_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

void tti_end_list(tti_messenger *m, tti_request_list *list, int peer, tutti_status status)
{
    tti_request *request, *next;

    for (request = list->first; request != NULL; request = next) {
        next = request->next;
        if (peer >= 0 && request->parcel.peer != peer)
            continue;
        tti_request_remove(list, request);
        tti_request_end(request, status);
    }
    tti_event_signal(m->port, &m->changed);
}

/* The thread's last error says why; it becomes the words of everything that waited for the peer. */
void tti_lose_lane(tti_messenger *m, tti_lane *lane)
{
    tti_kept *kept = lane->kept;

    snprintf(lane->gone, sizeof lane->gone, "%s", tutti_last_error());
    lane->link->ops->close(lane->link);
    lane->link = NULL;
    if (lane->into != NULL)
        tti_request_end(lane->into, TUTTI_E_PEER);
    if (kept != NULL) {
        if (kept->wanted != NULL)
            tti_request_end(kept->wanted, TUTTI_E_PEER);
        tti_kept_free(&m->mailbox, kept);
    }
    lane->into = NULL;
    lane->kept = NULL;
    tti_end_list(m, &lane->queue, -1, TUTTI_E_PEER);
    tti_end_list(m, &m->mailbox.posted, lane->peer, TUTTI_E_PEER);
}

/* A send that has begun must finish, or the stream is broken: its data moves to a copy that nobody waits
 * for, and the request ends. */
static void give_up_send(tti_messenger *m, tti_lane *lane, tti_request *request, tutti_status status)
{
    tti_request *rest = NULL;

    if (request->sent > 0) {
        rest = malloc(sizeof *rest);
        if (rest != NULL && (rest->copy = malloc(request->parcel.bytes + 1)) == NULL) {
            free(rest);
            rest = NULL;
        }
        if (rest == NULL) {
            tti_lose_lane(m, lane);
            return;
        }
        memcpy(rest->copy, request->parcel.data, request->parcel.bytes);
        rest->is_send = true;
        rest->channel = request->channel;
        rest->parcel = request->parcel;
        rest->frame = request->frame;
        rest->sent = request->sent;
        rest->under_way = &m->under_way;
        atomic_init(&rest->refs, 1);
        atomic_init(&rest->ended, false);
    }
    tti_request_remove(&lane->queue, request);
    tti_request_end(request, status);
    if (rest != NULL) {
        m->under_way++;
        rest->next = lane->queue.first; /* only the first of a queue can have begun */
        rest->prev = NULL;
        if (lane->queue.first != NULL)
            lane->queue.first->prev = rest;
        else
            lane->queue.last = rest;
        lane->queue.first = rest;
    }
}

static void give_up_lane(tti_messenger *m, tti_lane *lane, uint32_t group, tutti_status status)
{
    tti_request *request, *next;

    for (request = lane->queue.first; request != NULL; request = next) {
        next = request->next;
        if (request->channel.group == group && request->copy == NULL)
            give_up_send(m, lane, request, status);
        if (lane->link == NULL)
            return;
    }
    if (lane->into != NULL && lane->into->channel.group == group) {
        tti_request_end(lane->into, status);
        lane->into = NULL; /* the rest of the body goes nowhere */
    }
    if (lane->kept != NULL && lane->kept->wanted != NULL && lane->kept->frame.group == group) {
        tti_request_end(lane->kept->wanted, status);
        lane->kept->wanted = NULL;
    }
}

static void give_up_posted(tti_messenger *m, uint32_t group, tutti_status status)
{
    tti_request *request, *next;

    for (request = m->mailbox.posted.first; request != NULL; request = next) {
        next = request->next;
        if (request->channel.group != group)
            continue;
        tti_request_remove(&m->mailbox.posted, request);
        tti_request_end(request, status);
    }
}

static void remember_dead(tti_mailbox *mailbox, uint32_t group, tutti_status status)
{
    tti_dead_group *grown;

    if (tti_mailbox_dead(mailbox, group) != NULL)
        return; /* the first cause stays */
    grown = realloc(mailbox->dead, (mailbox->n_dead + 1) * sizeof *grown);
    if (grown == NULL) {
        tti_log(TTI_LOG_WARN, "no memory to remember that group %u is finished", group);
        return;
    }
    mailbox->dead = grown;
    grown = &grown[mailbox->n_dead++];
    grown->group = group;
    grown->status = status;
    snprintf(grown->words, sizeof grown->words, "%s", tutti_last_error());
}

/* The thread's last error says why. */
void tti_finish_group(tti_messenger *m, uint32_t group, tutti_status status)
{
    int i;

    remember_dead(&m->mailbox, group, status);
    give_up_posted(m, group, status);
    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].link != NULL)
            give_up_lane(m, &m->lanes[i], group, status);
    tti_mailbox_drop_group(&m->mailbox, group);
    tti_event_signal(m->port, &m->changed);
}

void tti_messenger_abort(tti_messenger *m, uint32_t group)
{
    tti_lock(&m->lock);
    tti_fail(TUTTI_E_ABORTED, "the group was aborted or destroyed while a message was under way");
    tti_finish_group(m, group, TUTTI_E_ABORTED);
    tti_unlock(&m->lock);
    m->port->ops->bell_ring(m->port, m->bell);
}

/* A send of the messenger's own: its data is a copy, and nobody waits for it. */
static void queue_notice(tti_messenger *m, tti_lane *lane, uint32_t group, tutti_status status,
                         const char *words)
{
    tti_request *request = calloc(1, sizeof *request);
    const size_t bytes = strnlen(words, TTI_NOTICE_MAX - 1);

    if (request == NULL || (request->copy = malloc(bytes + 1)) == NULL) {
        free(request);
        return;
    }
    memcpy(request->copy, words, bytes);
    request->is_send = true;
    request->under_way = &m->under_way;
    request->channel.group = group;
    request->parcel = (tti_parcel){ .peer = lane->peer, .bytes = bytes };
    request->frame = (tti_frame){ .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION,
                                  .size = sizeof(tti_frame), .plane = TTI_PLANE_NOTICE, .group = group,
                                  .tag = (int32_t)status, .bytes = bytes };
    atomic_init(&request->refs, 1);
    atomic_init(&request->ended, false);
    m->under_way++;
    tti_request_append(&lane->queue, request);
}

void tti_messenger_fail(tti_messenger *m, uint32_t group, tutti_status status, const int *peers,
                        int n_peers)
{
    char words[TTI_NOTICE_MAX];
    int  i;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_lock(&m->lock);
    if (tti_mailbox_dead(&m->mailbox, group) == NULL) { /* else the others know, or are told already */
        tti_finish_group(m, group, status);
        for (i = 0; i < n_peers; i++)
            if (m->lanes[peers[i]].link != NULL)
                queue_notice(m, &m->lanes[peers[i]], group, status, words);
        (void)tti_messenger_turn(m, false);
    }
    tti_unlock(&m->lock);
    m->port->ops->bell_ring(m->port, m->bell);
    tti_fail(status, "%s", words);
}
