/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blame.c - a lost peer is named together with what it was lost for.
 *
 * Why     When a rank fails, its launcher ends the others of its host. On other hosts the connections of all of them end
 *         within a few milliseconds, and who was ended for another's sake may be met first.
 * How     A launcher says why before it ends anybody, and waits until the launchers of other hosts know it (elastic/herald.c).
 *         So who loses a peer by it finds the reason in the bulletin, and puts it before what it has seen.
 * True    Costs a load, and only where a peer was lost. Without a launcher, or under --on-failure=keep, which ends nobody,
 *         words stay as they are; likewise where they name the process that failed first.
 *         A world that followed on another one, smaller or larger, has its launcher's words, too (tti_world_succeed), but
 *         ranks of its own: then whose rank is meant is said. */
#include "group/group.h"

#include <stdio.h>
#include <string.h>
#include "watch/bulletin.h"
#include <tutti/private.h>

/* Everybody's words have the process of whom they speak as "pid 4711)". */
static bool is_named(const tti_ending *ending)
{
    char text[40];

    snprintf(text, sizeof text, "pid %lld)", (long long)ending->pid);
    return strstr(tutti_last_error(), text) != NULL;
}

tutti_status tti_group_blame(const tutti_group *group, tutti_status st)
{
    const tti_bulletin *bulletin = group->world->bulletin;
    char                words[TTI_GROUP_WORDS_MAX], who[TTI_ENDING_TEXT_MAX];
    tti_ending          first;

    if (bulletin == NULL || (st != TUTTI_E_PEER && st != TUTTI_E_NETWORK) || !tti_bulletin_first(bulletin, &first) ||
        is_named(&first))
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(st, "%s%s%s; seen here: %s", tti_ending_words(&first, who),
                    group->world->renumbered && first.rank >= 0 ? ", as its launcher counts ranks" : "",
                    (first.flags & TTI_ENDING_LAUNCHER) != 0 ? "" : ", and its launcher ends the others of that host because of it",
                    words);
}
