/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agree.c - whether the members of a group are in the same calls, where they know of each other by messages alone.
 *
 * Why     Who has called something else sends other messages, to others or none, and so does not what those who wait for
 *         it wait for. All of them, and it too, are to know within a second which calls differ.
 * How     Frames  A message of a collective says of which call it is. One that no receive has asked for is compared with
 *                 this rank's call of that number: when it comes, when a receive of that call or a later one is posted,
 *                 and when one comes in the place of another.
 *         Told    Who has waited for long in a call tells it to the others, as a whole: waits.c.
 *         Doubt   A frame has no count. Who finds by one that calls differ tells its own call to the sender, which then
 *                 has both; if nothing has come of that DOUBT_MS later, it says what it knows itself. Until then no
 *                 receive of a collective of the group is served: what comes may be anything's.
 *         Idle    A rank whose part was done may be outside of all calls for long, or in others that need nothing of who
 *                 called something else. The connector's thread sees to what stands first in each connection, ten times
 *                 a second, unless somebody drives.
 * True    Nothing is compared on the way of a message that was asked for and fits.
 *         A receive of call n+1 is posted when all of call n are (coll/net/run.c): so what is kept of n then, or comes
 *         for it later, and that no receive has taken, was sent by somebody in another call.
 *         Whoever finds it tells all members (give_up.c), and the group is finished. The first cause stays. */
#include "transport/connector.h"
#include "transport/window_core.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { DOUBT_MS = 600 /* who does not wait looks ten times a second */, IDLE_FRAMES_MAX = 16 };

tti_known_group *tti_compared_group(tti_messenger *m, uint32_t group)
{
    tti_known_group *known = tti_mailbox_group(&m->mailbox, group);

    return known != NULL && known->compared && known->finished.status == TUTTI_OK ? known : NULL;
}

/* ---- frames ---------------------------------------------------------------------------------------- */

static void begin_doubt(tti_messenger *m, tti_known_group *known, int peer, const tti_cause *why,
                        const tti_call_note *ours)
{
    const tti_wait told = { .note = *ours, .group = known->group, .needs = peer };

    if (known->doubt != NULL)
        return;
    known->doubt = malloc(sizeof *known->doubt);
    if (known->doubt == NULL)
        return; /* what this rank waits for does not come: it tells its call later */
    m->n_doubts++;
    *known->doubt = *why;
    known->doubt_ns = tti_port_now(m->port) + DOUBT_MS * TTI_MS;
    tti_queue_wait(m, &m->lanes[peer], &told);
    tti_want_lane(m, &m->lanes[peer], 0);
}

bool tti_compare_frame(tti_messenger *m, int peer, const tti_frame *frame, bool in_place)
{
    tti_known_group    *known = frame->word != 0 ? tti_compared_group(m, frame->group) : NULL;
    const tti_call_note theirs = { .word = frame->word, .what = frame->what, .count = TTI_CALL_COUNT_UNKNOWN,
                                   .seq = tti_call_number_of(frame->word) };
    tti_cause           why = { .status = TUTTI_E_MISMATCH };
    tti_call_note       ours;

    if (known == NULL ||
        !known->comparer.differs(known->comparer.ctx, peer, &theirs, in_place, &ours, why.words, sizeof why.words))
        return false;
    begin_doubt(m, known, peer, &why, &ours);
    return true;
}

bool tti_is_in_doubt(const tti_messenger *m, uint32_t group)
{
    const tti_known_group *known = m->n_doubts > 0 ? tti_mailbox_group(&m->mailbox, group) : NULL;

    return known != NULL && known->doubt != NULL;
}

void tti_end_doubt(tti_messenger *m, tti_known_group *known)
{
    if (known->doubt == NULL)
        return;
    free(known->doubt);
    known->doubt = NULL;
    m->n_doubts--;
}

void tti_look_at_doubts(tti_messenger *m, int64_t now_ns)
{
    size_t i;

    for (i = 0; m->n_doubts > 0 && i < m->mailbox.n_groups; i++) {
        const tti_known_group *known = &m->mailbox.groups[i];
        tti_cause              why;

        if (known->doubt == NULL || now_ns < known->doubt_ns)
            continue;
        why = *known->doubt;
        tti_fail_group(m, known->group, &why);
    }
}

/* ---- what members tell ----------------------------------------------------------------------------- */

/* What stands first in a connection: notices, and calls that are told, are taken; a message is only looked at. */
static void look_at_lane(tti_messenger *m, tti_lane *lane)
{
    const tti_frame *frame;
    int              n;

    for (n = 0; n < IDLE_FRAMES_MAX && lane->link != NULL && lane->frame_have == 0 && !m->mailbox.has_notice; n++) {
        frame = lane->link->ops->next != NULL ? lane->link->ops->next(lane->link) : NULL;
        if (frame == NULL || !tti_frame_is_sound(frame))
            return;
        if (frame->plane == TTI_PLANE_COLLECTIVE)
            (void)tti_compare_frame(m, lane->peer, frame, false);
        if (frame->plane != TTI_PLANE_NOTICE && frame->plane != TTI_PLANE_CALL)
            return;
        tti_messenger_drain_one(m, lane);
    }
}

static void look_at_lanes(tti_messenger *m, bool near)
{
    int i;

    for (i = 0; i < m->n_ranks; i++)
        if (m->lanes[i].link != NULL && (near || tti_lane_is_socket(&m->lanes[i])))
            look_at_lane(m, &m->lanes[i]);
}

void tti_messenger_look_idle(tti_messenger *m)
{
    if (m->driving) /* whoever does sees to all that comes */
        return;
    look_at_lanes(m, false);
    tti_look_at_doubts(m, tti_port_now(m->port));
    (void)tti_messenger_turn(m, false);
}

tutti_status tti_messenger_listen(tti_messenger *m, uint32_t group)
{
    tti_lock(&m->lock);
    look_at_lanes(m, true);
    return tti_messenger_end_look(m, group);
}

/* ---- who compares ---------------------------------------------------------------------------------- */

tutti_status tti_messenger_compare(tti_messenger *m, uint32_t group, const tti_comparer *comparer)
{
    tti_known_group *known;

    tti_lock(&m->lock);
    known = comparer != NULL ? tti_know_group(&m->mailbox, group) : tti_mailbox_group(&m->mailbox, group);
    if (known != NULL) {
        known->compared = comparer != NULL;
        if (comparer != NULL)
            known->comparer = *comparer;
    }
    tti_unlock(&m->lock);
    return known != NULL || comparer == NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for a group of messages");
}
