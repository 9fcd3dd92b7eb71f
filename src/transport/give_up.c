/* SPDX-License-Identifier: BSD-3-Clause
 *
 * give_up.c - requests that cannot end well: a link is lost, a group is finished.
 *
 * True    A buffer is given back the moment its request ends: a send that has begun goes on from a copy,
 *         because the stream must stay whole, and a body that is arriving for nobody goes nowhere.
 * Cause   A rank that fails in a group tells the others with a notice before it leaves, so that they end
 *         with the cause ("rank 1 reported: ...") and not with the consequence ("rank 1 has left"). Who was
 *         told tells the others too, at once and whatever it does just then: the first one may leave before its
 *         notice has reached everybody, or its connections to others may be what has failed.
 *         The first cause stays.
 * Reach   Between hosts not every two members are connected. Who fails first connects to every member it
 *         can: then all who wait are told, whomever they wait for, even if that rank does not listen. Who
 *         passes on what it was told does so over the links it has, and to the members 1, 2, 4, ... ranks
 *         away: should the first one die over it, the others still form a net in which each has many ways
 *         to each, and nobody makes n connections for a failure of somebody else's.
 * Sleep   Another thread may find a link broken while the driver sleeps on its socket. A descriptor that is closed under a poll
 *         stays open in it for up to a slice, so that the peer does not hear of the end, and its number may be somebody
 *         else's by then: so the link is set aside, and the driver, which is woken, closes it.
 * Alone   A notice stands behind what was queued before it, and may not fit at once. The rank that has failed
 *         may never call again: then the messenger's thread moves what is left. Where it cannot be started
 *         the notice goes with this rank's next call, or when it leaves. */
#include "transport/connector.h"
#include "transport/window_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"

void tti_end_list(tti_messenger *m, tti_request_list *list, int peer, const tti_cause *why)
{
    tti_request *request, *next;

    for (request = list->first; request != NULL; request = next) {
        next = request->next;
        if (peer >= 0 && request->parcel.peer != peer)
            continue;
        tti_request_remove(list, request);
        tti_request_end(request, why);
    }
    tti_tell_waiters(m);
}

bool tti_somebody_is_there(const tti_messenger *m, uint32_t group)
{
    const tti_known_group *known = tti_mailbox_group(&m->mailbox, group);
    const bool             told = known != NULL && known->n_ranks > 0;
    const int              n = told ? known->n_ranks : m->n_ranks;
    int                    i;

    for (i = 0; i < n; i++)
        if (m->lanes[told ? known->ranks[i] : i].way != TTI_WAY_LOST)
            return true;
    return false;
}

/* Receives from any source, in groups where nobody is left. */
static void end_hopeless(tti_messenger *m, const tti_cause *why)
{
    tti_request *request, *next;

    for (request = m->mailbox.posted.first; request != NULL; request = next) {
        next = request->next;
        if (request->parcel.peer >= 0 || tti_somebody_is_there(m, request->channel.group))
            continue;
        tti_request_remove(&m->mailbox.posted, request);
        tti_request_end(request, why);
    }
}

/* A lane that is lost stays lost: there is one link to be set aside at most. */
static void part_with(tti_messenger *m, tti_lane *lane)
{
    tti_link *link = lane->link;

    if (link == NULL)
        return;
    if (m->asleep && tti_lane_is_socket(lane)) {
        lane->parting = link;
        m->n_parting++;
        m->port->ops->bell_ring(m->port, m->bell);
    } else {
        link->ops->close(link);
    }
    lane->link = NULL;
}

void tti_close_parting(tti_messenger *m)
{
    int i;

    for (i = 0; m->n_parting > 0 && i < m->n_ranks; i++)
        if (m->lanes[i].parting != NULL) {
            m->lanes[i].parting->ops->close(m->lanes[i].parting);
            m->lanes[i].parting = NULL;
            m->n_parting--;
        }
}

void tti_lose_lane(tti_messenger *m, tti_lane *lane, const tti_cause *why)
{
    tti_kept *kept = lane->kept;

    lane->gone = *why;
    lane->way = TTI_WAY_LOST;
    lane->lost_stamp_ms = tti_health_stamp_ms(tti_mesh_health(m->mesh), lane->peer);
    part_with(m, lane);
    if (lane->into != NULL)
        tti_request_end(lane->into, why);
    if (kept != NULL) {
        if (kept->wanted != NULL)
            tti_request_end(kept->wanted, why);
        tti_kept_free(&m->mailbox, kept);
    }
    lane->into = NULL;
    lane->kept = NULL;
    lane->place = NULL;
    tti_end_list(m, &lane->queue, -1, why);
    tti_end_list(m, &m->mailbox.posted, lane->peer, why);
    tti_windows_lose(m, lane->peer, why);
    end_hopeless(m, why);
}

/* The rest of a send that has begun, from a copy of its data; NULL without memory. */
static tti_request *copy_of_rest(tti_messenger *m, const tti_request *request)
{
    tti_request *rest = calloc(1, sizeof *rest);

    if (rest == NULL || (rest->copy = malloc(request->parcel.bytes + 1)) == NULL) {
        free(rest);
        return NULL;
    }
    if (request->parcel.bytes > 0)
        memcpy(rest->copy, request->parcel.data, request->parcel.bytes);
    rest->is_send = true;
    rest->channel = request->channel;
    rest->parcel = request->parcel;
    rest->frame = request->frame;
    rest->sent = request->sent;
    rest->under_way = &m->under_way;
    atomic_init(&rest->refs, 1);
    atomic_init(&rest->ended, false);
    return rest;
}

/* Only the first of a queue can have begun, so the rest of it goes first. */
static void put_first(tti_request_list *queue, tti_request *request)
{
    request->prev = NULL;
    request->next = queue->first;
    if (queue->first != NULL)
        queue->first->prev = request;
    else
        queue->last = request;
    queue->first = request;
}

/* A send that has begun must finish, or the stream is broken: its data moves to a copy that nobody waits
 * for, and the request ends. */
static void give_up_send(tti_messenger *m, tti_lane *lane, tti_request *request, const tti_cause *why)
{
    tti_request *rest = request->sent > 0 ? copy_of_rest(m, request) : NULL;

    if (request->sent > 0 && lane->link->ops->retract != NULL)
        lane->link->ops->retract(lane->link);
    if (request->sent > 0 && rest == NULL) {
        tti_lose_lane(m, lane, why);
        return;
    }
    tti_request_remove(&lane->queue, request);
    tti_request_end(request, why);
    m->cut_short = true;
    if (rest != NULL) {
        m->under_way++;
        put_first(&lane->queue, rest);
    }
}

static void give_up_lane(tti_messenger *m, tti_lane *lane, uint32_t group, const tti_cause *why)
{
    tti_request *request, *next;

    for (request = lane->queue.first; request != NULL; request = next) {
        next = request->next;
        if (request->channel.group == group && request->copy == NULL)
            give_up_send(m, lane, request, why);
        if (lane->way == TTI_WAY_LOST)
            return;
    }
    if (lane->into != NULL && lane->into->channel.group == group) {
        tti_request_end(lane->into, why);
        lane->into = NULL; /* the rest of the body goes nowhere */
        m->cut_short = true;
    }
    if (lane->kept != NULL && lane->kept->wanted != NULL && lane->kept->frame.group == group) {
        tti_request_end(lane->kept->wanted, why);
        lane->kept->wanted = NULL;
        m->cut_short = true;
    }
}

static void give_up_posted(tti_messenger *m, uint32_t group, const tti_cause *why)
{
    tti_request *request, *next;

    for (request = m->mailbox.posted.first; request != NULL; request = next) {
        next = request->next;
        if (request->channel.group != group)
            continue;
        tti_request_remove(&m->mailbox.posted, request);
        tti_request_end(request, why);
        m->cut_short = true;
    }
}

tti_known_group *tti_know_group(tti_mailbox *mailbox, uint32_t group)
{
    tti_known_group *known = tti_mailbox_group(mailbox, group);

    if (known != NULL)
        return known;
    known = realloc(mailbox->groups, (mailbox->n_groups + 1) * sizeof *known);
    if (known == NULL)
        return NULL;
    mailbox->groups = known;
    known = &known[mailbox->n_groups++];
    *known = (tti_known_group){ .group = group };
    return known;
}

void tti_finish_group(tti_messenger *m, uint32_t group, const tti_cause *why)
{
    tti_known_group *known = tti_know_group(&m->mailbox, group);
    int              i;

    if (known != NULL)
        tti_end_doubt(m, known);
    if (known != NULL && known->compared && !why->quiet)
        atomic_store_explicit(known->comparer.finished, true, memory_order_release);
    if (known == NULL)
        tti_log(TTI_LOG_WARN, "no memory to remember that group %u is finished", group);
    else if (known->finished.status == TUTTI_OK)
        known->finished = *why; /* the first cause stays */
    give_up_posted(m, group, why);
    tti_windows_finish(m, group, why);
    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].way != TTI_WAY_LOST)
            give_up_lane(m, &m->lanes[i], group, why);
    tti_mailbox_drop_group(&m->mailbox, group);
    tti_want_less(m);
    tti_tell_waiters(m);
}

tutti_status tti_messenger_enter(tti_messenger *m, uint32_t group, const int *ranks, int n_ranks)
{
    const size_t     bytes = (size_t)n_ranks * sizeof *ranks;
    int             *copy = malloc(bytes);
    tti_known_group *known;

    tti_lock(&m->lock);
    known = copy != NULL ? tti_know_group(&m->mailbox, group) : NULL;
    if (known != NULL) {
        memcpy(copy, ranks, bytes);
        known->ranks = copy;
        known->n_ranks = n_ranks;
        m->mourning.verdicts = 0; /* a member may be lost already */
        if (group < TTI_GROUP_ANY_ORDER && (int64_t)group > m->mailbox.last_entered)
            m->mailbox.last_entered = group;
    }
    tti_unlock(&m->lock);
    if (known != NULL)
        return TUTTI_OK;
    free(copy);
    return tti_fail(TUTTI_E_NOMEM, "no memory for the members of a group of %d ranks", n_ranks);
}

void tti_messenger_abort(tti_messenger *m, uint32_t group)
{
    static const tti_cause why = { TUTTI_E_ABORTED, 0, 0,
                                   "the group was aborted or destroyed while a message was under way", true };
    tti_known_group *known;

    tti_lock(&m->lock);
    tti_finish_group(m, group, &why);
    known = tti_mailbox_group(&m->mailbox, group);
    if (known != NULL)
        known->aborted = true;
    tti_unlock(&m->lock);
    m->port->ops->bell_ring(m->port, m->bell);
}

void tti_messenger_leave(tti_messenger *m, uint32_t group)
{
    tti_known_group *known;

    tti_messenger_abort(m, group);
    tti_lock(&m->lock);
    known = tti_mailbox_group(&m->mailbox, group);
    /* Without memory to note a number its whole entry stays, and says the same. */
    if (known != NULL && (group < TTI_GROUP_ANY_ORDER || tti_mailbox_note_left(&m->mailbox, group))) {
        free(known->ranks);
        *known = m->mailbox.groups[--m->mailbox.n_groups];
    }
    tti_unlock(&m->lock);
}

bool tti_queue_own(tti_messenger *m, tti_lane *lane, const tti_frame *frame, const void *data)
{
    tti_request *request = calloc(1, sizeof *request);

    if (request == NULL || (request->copy = malloc(frame->bytes + 1)) == NULL) {
        free(request);
        return false;
    }
    memcpy(request->copy, data, frame->bytes);
    request->is_send = true;
    request->under_way = &m->under_way;
    request->channel.group = frame->group;
    request->parcel = (tti_parcel){ .peer = lane->peer, .bytes = frame->bytes };
    request->frame = *frame;
    atomic_init(&request->refs, 1);
    atomic_init(&request->ended, false);
    m->under_way++;
    tti_request_append(&lane->queue, request);
    return true;
}

static void queue_notice(tti_messenger *m, tti_lane *lane, uint32_t group, const tti_cause *why)
{
    tti_frame frame = { .magic = TTI_FRAME_MAGIC, .version = TTI_FRAME_VERSION, .size = sizeof(tti_frame),
                        .plane = TTI_PLANE_NOTICE, .group = group, .tag = (int32_t)why->status,
                        .word = (uint64_t)(why->origin != 0 ? why->origin : tti_mesh_rank(m->mesh) + 1) };
    char      words[TTI_NOTICE_MAX];

    tti_clip(words, sizeof words, "%s", why->words + why->own_at);
    frame.bytes = strlen(words);
    if (!tti_queue_own(m, lane, &frame, words))
        return;
    lane->told = true;
    m->told_ns = tti_port_now(m->port);
}

static bool has_notice(const tti_lane *lane, uint32_t group)
{
    const tti_request *request = lane->queue.first;

    while (request != NULL && (request->frame.plane != TTI_PLANE_NOTICE || request->channel.group != group))
        request = request->next;
    return request != NULL;
}

int tti_index_of(const int *ranks, int n, int rank)
{
    int i;

    for (i = 0; i < n && ranks[i] != rank; i++)
        continue;
    return i;
}

void tti_tell_failures(tti_messenger *m, tti_lane *lane)
{
    size_t i;

    for (i = 0; i < m->mailbox.n_groups; i++) {
        const tti_known_group *known = &m->mailbox.groups[i];

        if (known->finished.status != TUTTI_OK && !known->finished.quiet &&
            lane->peer + 1 != known->finished.origin && !has_notice(lane, known->group) &&
            tti_index_of(known->ranks, known->n_ranks, lane->peer) < known->n_ranks)
            queue_notice(m, lane, known->group, &known->finished);
    }
}

bool tti_are_neighbours(int i, int j, int n)
{
    const int apart = i < j ? j - i : i - j;

    return (apart & (apart - 1)) == 0 || ((n - apart) & (n - apart - 1)) == 0;
}

static void tell(tti_messenger *m, uint32_t group, const tti_cause *why, const int *peers, int n_peers)
{
    const int own = tti_index_of(peers, n_peers, tti_mesh_rank(m->mesh));
    int       i;

    for (i = 0; i < n_peers; i++) {
        tti_lane *lane = &m->lanes[peers[i]];

        if (lane->way == TTI_WAY_LOST || peers[i] + 1 == why->origin)
            continue;
        if (lane->link == NULL && why->origin != 0 && !tti_are_neighbours(own, i, n_peers))
            continue;
        queue_notice(m, lane, group, why);
        tti_want_lane(m, lane, 0);
    }
}

static bool has_untold(const tti_messenger *m)
{
    int i;

    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].told && m->lanes[i].queue.first != NULL)
            return true;
    return false;
}

/* Let the notices that are still queued go without this rank's calls. cause is this thread's last error. */
static void tell_later(tti_messenger *m, const tti_cause *cause)
{
    if (!has_untold(m))
        return;
    if (tti_need_driver(m) != TUTTI_OK) {
        tti_log(TTI_LOG_WARN, "others may hear late of a failure here: %s", tutti_last_error());
        tti_fail(cause->status, "%s", cause->words);
    }
    tti_leave_to_others(m);
}

void tti_fail_group(tti_messenger *m, uint32_t group, const tti_cause *why)
{
    tti_known_group *known;

    tti_finish_group(m, group, why);
    known = tti_mailbox_group(&m->mailbox, group);
    if (known == NULL || known->told || known->n_ranks == 0)
        return; /* of one that was not entered the members are not known here */
    known->told = true;
    tell(m, group, why, known->ranks, known->n_ranks);
    tell_later(m, why);
}

void tti_hear_failure(tti_messenger *m, uint32_t group, const tti_cause *why)
{
    const tti_cause *before = tti_mailbox_finished(&m->mailbox, group);

    if (before != NULL && before->quiet)
        tti_finish_group(m, group, why);
    else
        tti_fail_group(m, group, why);
}

void tti_messenger_fail(tti_messenger *m, uint32_t group, tutti_status status, const int *peers,
                        int n_peers)
{
    tti_known_group *known;
    tti_cause        why, own;

    tti_cause_set(&own, status, "%s", tutti_last_error());
    tti_lock(&m->lock);
    if (tti_mailbox_finished(&m->mailbox, group) == NULL)
        tti_finish_group(m, group, &own);
    known = tti_mailbox_group(&m->mailbox, group);
    if (known != NULL && known->finished.quiet)
        known->finished = own; /* a call of this rank ended before it could be told why */
    if (known != NULL && !known->told) {
        known->told = true;
        why = known->finished; /* the first cause, passed on as its member worded it */
        tell(m, group, &why, peers, n_peers);
    }
    if (has_untold(m)) {
        (void)tti_messenger_turn(m, false);
        tell_later(m, &own);
    }
    tti_unlock(&m->lock);
    m->port->ops->bell_ring(m->port, m->bell);
}

tutti_status tti_messenger_end_look(tti_messenger *m, uint32_t group)
{
    const tti_cause *finished;
    tti_cause        why = { .status = TUTTI_OK };

    if (m->n_doubts > 0)
        tti_look_at_doubts(m, tti_port_now(m->port));
    finished = tti_mailbox_finished(&m->mailbox, group);
    if (finished != NULL)
        why = *finished;
    tti_unlock(&m->lock);
    return why.status == TUTTI_OK ? TUTTI_OK : tti_fail(why.status, "%s", why.words);
}

tutti_status tti_messenger_heard(tti_messenger *m, uint32_t group)
{
    tti_lock(&m->lock);
    (void)tti_messenger_turn(m, true);
    tti_messenger_mourn(m, tti_port_now(m->port));
    return tti_messenger_end_look(m, group);
}
