/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mourn.c - groups of which a member was given up, or cut off, while everybody here waits for somebody else.
 *
 * Why     Who waits for a dead rank learns it from the link to it. Who waits for one that waits for it, or for nobody in
 *         particular, learns it from the watch thread, which hears of every death in the world.
 * How     A wait looks at the number of verdicts, as often as it asks the members of its host for signs of life. When it
 *         has grown, groups with a member that is lost are finished here, with its name and what is known of its end;
 *         every other member does so by itself.
 * True    What the dead has sent before is still on its way, from the hands of others too, and a call that it has done its
 *         part of may end well. So nothing is finished while bytes move: only when none has for QUIET_MS, or when
 *         PATIENCE_MS have passed all the same: for those who wait for nobody that is dead, while others keep bytes moving.
 *         Everybody has to know within a second of a death. Of that the watch thread takes two wake-ups at most inside a
 *         host, or two round trips between hosts, before there is a verdict, and a look comes every 50 ms: a quarter of it
 *         is left for those. What still moves after PATIENCE_MS belongs to a call that can end well without the dead, and
 *         does not: it is the price of the second, and paid by a group that is finished anyway.
 *         Groups that are entered with a member that is lost already are finished at the next look.
 * Cut     One whose connection was lost may live, and have sent what was lost with the connection: nobody will send it again.
 *         Who waits for that one alone was told when the way was lost; who waits for anybody is told here. Members that are
 *         done close their ways, too, and others may still send then: so it is told only when the host of that one has
 *         spoken for a heartbeat beyond the loss, and does not know that it has left, or died. */
#include "transport/connector.h"

#include <tutti/private.h>

enum { QUIET_MS = 200, PATIENCE_MS = 700 };

/* The first of a group's members that is lost; -1: none is. */
static int lost_member(const tti_messenger *m, const tti_known_group *known)
{
    int i;

    for (i = 0; i < known->n_ranks; i++)
        if (tti_health_is_lost(tti_mesh_health(m->mesh), known->ranks[i]))
            return known->ranks[i];
    return -1;
}

static void finish_groups(tti_messenger *m)
{
    char      how[TTI_HEALTH_TEXT_MAX];
    tti_cause why;
    size_t    i;
    int       lost;

    for (i = 0; i < m->mailbox.n_groups; i++) {
        const tti_known_group *known = &m->mailbox.groups[i];

        if (known->finished.status != TUTTI_OK || (lost = lost_member(m, known)) < 0)
            continue;
        tti_cause_set(&why, TUTTI_E_PEER, "rank %d (%s) %s", lost, tti_mesh_whereabouts(m->mesh, lost),
                      tti_health_describe(tti_mesh_health(m->mesh), lost, how));
        tti_finish_group(m, known->group, &why);
    }
}

/* Receives from anybody for which peer may have sent what was lost. */
static void end_waits_for(tti_messenger *m, const tti_lane *lane)
{
    tti_request *request, *next;

    for (request = m->mailbox.posted.first; request != NULL; request = next) {
        next = request->next;
        if (request->parcel.peer >= 0 || !tti_may_send(m, request, lane->peer))
            continue;
        tti_request_remove(&m->mailbox.posted, request);
        tti_request_end(request, &lane->gone);
    }
    tti_tell_waiters(m);
}

void tti_messenger_miss(tti_messenger *m)
{
    int i;

    if (m->mailbox.posted.first == NULL)
        return;
    for (i = 0; i < m->n_ranks; i++)
        if (i != tti_mesh_rank(m->mesh) && m->lanes[i].way == TTI_WAY_LOST && /* there is none to oneself */
            tti_health_has_outlived(tti_mesh_health(m->mesh), i, m->lanes[i].lost_stamp_ms))
            end_waits_for(m, &m->lanes[i]);
}

void tti_messenger_mourn(tti_messenger *m, int64_t now_ns)
{
    tti_mourning  *mourning = &m->mourning;
    const uint32_t verdicts = tti_health_verdicts(tti_mesh_health(m->mesh));

    if (verdicts == mourning->verdicts)
        return;
    if (verdicts != mourning->known) {
        mourning->known = verdicts;
        mourning->known_ns = mourning->moved_ns = now_ns;
    }
    if (mourning->moves != mourning->seen_moves) {
        mourning->seen_moves = mourning->moves;
        mourning->moved_ns = now_ns;
    }
    if (now_ns - mourning->moved_ns < QUIET_MS * TTI_MS && now_ns - mourning->known_ns < PATIENCE_MS * TTI_MS)
        return;
    mourning->verdicts = verdicts;
    finish_groups(m);
}
