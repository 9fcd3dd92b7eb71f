/* SPDX-License-Identifier: BSD-3-Clause
 *
 * living.c - whether anybody is left who could let a process in.
 *
 * Why     Only a member can let somebody in. Who asks when all members have ended waits for nobody.
 * How     A launcher knows how many of its processes live, and not which of them are members. But who asks is none, and says who it is. So
 *         nobody is left when as many are asking, or have asked in vain, as live: ranks that were left out, and replacements.
 *         How many live is on the launcher's bulletin: of ranks, how many have not ended; of replacements, what each launcher has
 *         said at its latest ending (tti_bulletin_coming()).
 * True    Who has asked by a number that is not admitted is no member: it has lost its world, or never had one. Each counts once,
 *         by whatever many numbers it has asked.
 *         Replacements that were let in elsewhere, in a store that was given up since, are among those that live, and do not ask.
 * Limits  One that lives, and neither asks nor is a member any more, may be one: it is waited for. So is who was let in and came by hand,
 *         of whom no launcher knows, unless the store has told of its end. Who has asked in vain counts for as long as it lives, also if it
 *         has been let in since in a store that this one knows nothing of: then who asks here is told that nobody is left. */
#include "regroup/living.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "group/make.h"
#include <tutti/private.h>

enum { KEY_MAX = TTI_ADMISSION_KEY_MAX, ASKED_MAX = 1000000 };

typedef char asker[TTI_ASKER_MAX];

#define BY_HAND "newcomer"

void tti_living_name(char out[TTI_ASKER_MAX])
{
    const int rank = tti_world_launched_rank();
    int64_t   node = 0, local = 0;

    snprintf(out, TTI_ASKER_MAX, BY_HAND);
    if (tti_env("TUTTI_REPLACEMENT") != NULL && tti_env_int("GROUP_RANK", 0, INT32_MAX, &node) == TUTTI_OK &&
        tti_env_int("LOCAL_RANK", 0, INT32_MAX, &local) == TUTTI_OK)
        snprintf(out, TTI_ASKER_MAX, "%d %d", (int)node, (int)local);
    else if (rank >= 0)
        snprintf(out, TTI_ASKER_MAX, "rank %d", rank);
}

tti_bulletin *tti_living_bulletin(void)
{
    return tti_env("TUTTI_REPLACEMENT") != NULL || tti_world_launched_rank() >= 0 ? tti_bulletin_open() : NULL;
}

/* Who asks by number t; "": nobody that is to be counted. */
static void read_asker(const tti_admission *to, int64_t t, int64_t deadline_ns, asker out)
{
    char        key[KEY_MAX];
    const char *one = key;
    tutti_bytes text = { 0 };
    bool        there = false;

    out[0] = '\0';
    snprintf(key, sizeof key, "ask/%" PRId64, t);
    if (tti_store_check_until(to->folder, &one, 1, deadline_ns, &there) != TUTTI_OK || !there ||
        tti_store_get_until(to->folder, key, deadline_ns, &text) != TUTTI_OK)
        return;
    if (!tti_is_passed_over(&text))
        snprintf(out, TTI_ASKER_MAX, "%.*s", (int)text.size, (const char *)text.data);
    tutti_bytes_free(&text);
}

/* Whether a launcher has started it, and it has not ended. */
static bool lives(const tti_bulletin *bulletin, const char *who)
{
    tti_ending ending;
    int        node, local, rank;

    if (sscanf(who, "rank %d", &rank) == 1)
        return !tti_bulletin_find(bulletin, rank, &ending);
    return sscanf(who, "%d %d", &node, &local) == 2 && !tti_bulletin_find_at(bulletin, node, local, &ending);
}

static bool is_among(const asker *askers, int64_t n, const char *who)
{
    while (n-- > 0)
        if (strcmp(askers[n], who) == 0)
            return true;
    return false;
}

/* How many processes of launchers live and ask, own among them, by the numbers behind admitted. */
static int64_t count_asking(const tti_bulletin *bulletin, const tti_admission *to, const char *own, int64_t admitted, int64_t asked,
                            int64_t deadline_ns)
{
    asker  *askers = malloc((size_t)(asked - admitted + 1) * sizeof *askers);
    int64_t n = 0, t;

    if (askers == NULL)
        return 0; /* nobody is known to ask: the wait goes on */
    if (lives(bulletin, own))
        snprintf(askers[n++], sizeof *askers, "%s", own);
    for (t = admitted + 1; t <= asked; t++) {
        read_asker(to, t, deadline_ns, askers[n]);
        if (lives(bulletin, askers[n]) && !is_among((const asker *)askers, n, askers[n]))
            n++;
    }
    free(askers);
    return n;
}

/* Whether one that came by hand has been let in, and the store has not told of its end. */
static bool may_have_others(const tti_admission *to, int64_t admitted, int64_t deadline_ns)
{
    char        key[KEY_MAX];
    const char *one = key;
    asker       who;
    bool        gone;
    int64_t     t;

    for (t = 1; t <= admitted; t++) {
        read_asker(to, t, deadline_ns, who);
        snprintf(key, sizeof key, "gone/%" PRId64, t);
        if (strcmp(who, BY_HAND) == 0 &&
            (tti_store_check_until(to->folder, &one, 1, deadline_ns, &gone) != TUTTI_OK || !gone))
            return true;
    }
    return false;
}

bool tti_living_none(const tti_bulletin *bulletin, const tti_admission *to, const char *own, int64_t deadline_ns)
{
    int64_t asked = 0, admitted = 0, living;

    if (bulletin == NULL || tti_store_add_until(to->folder, "asked", 0, deadline_ns, &asked) != TUTTI_OK ||
        tti_store_add_until(to->folder, "admitted", 0, deadline_ns, &admitted) != TUTTI_OK)
        return false;
    living = tti_bulletin_left(bulletin) + tti_bulletin_coming(bulletin);
    if (asked > ASKED_MAX || asked < admitted || admitted < 0 || living > asked - admitted)
        return false;
    return count_asking(bulletin, to, own, admitted, asked, deadline_ns) >= living && !may_have_others(to, admitted, deadline_ns);
}
