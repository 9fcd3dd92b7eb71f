/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unasked.c - replacements that have ended before they asked to come in, or before they were let in.
 *
 * Why     Such a one is in no number that rank 0 could wait for, or in one that it has passed over, and nobody comes in its place.
 *         Its launcher knows.
 * How     Rank 0 looks at its launcher's bulletin, where the endings of all hosts are. That of a replacement that is in none of the
 *         numbers which have been let in is one: a member that dies later is the world's to tell of. With each ending a launcher says how many replacements run there, or are about to
 *         be started: where more do, of all hosts, than have asked and live, somebody may still come, and nothing is said.
 * Once    Newcomers may be started by others, too: by hand, by a batch system. So a call that fails of this may be made again,
 *         and then waits; endings below `endings_told` have been told of, or others have come since.
 * True    How many run is said at the latest ending of each host. One that was started since took the place of one that ended, whose
 *         ending said that it was about to come: so it is in that number.
 *         Of who asks under another name nothing is seen: it runs, and has not asked here, so rank 0 waits as without a launcher.
 *         A store that was lost with its host, and is another one now, does not know who asked before: then more run than
 *         have asked, and rank 0 waits as without a launcher. */
#include "regroup/unasked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>

enum { ASKED_MAX = 1000000 };

/* A process, as launchers count. */
typedef struct process {
    int     node;
    int     local;
    int64_t number; /* the first by which it has asked */
} process;

/* Whose place number t has asked for. False: it has not asked, or no launcher has started it. */
static bool read_place(const tti_admission *to, int64_t t, int64_t deadline_ns, int *node_out, int *local_out)
{
    char        key[TTI_ADMISSION_KEY_MAX];
    const char *one = key;
    tutti_bytes place = { 0 };
    bool        there = false, read;

    snprintf(key, sizeof key, "ask/%" PRId64, t);
    if (tti_store_check_until(to->folder, &one, 1, deadline_ns, &there) != TUTTI_OK || !there)
        return false;
    read = tti_store_get_until(to->folder, key, deadline_ns, &place) == TUTTI_OK &&
           sscanf(place.data, "%d %d", node_out, local_out) == 2;
    tutti_bytes_free(&place);
    return read;
}

/* The first number by which a process has asked, if it is in one of the n places; 0: it is not. */
static int64_t number_of(const process *places, int64_t n, int node, int local)
{
    while (n-- > 0)
        if (places[n].node == node && places[n].local == local)
            return places[n].number;
    return 0;
}

/* The places that have asked under this name, each once: who was to ask anew has asked more than once. NULL: they are not known. */
static process *read_places(const tti_admission *to, int64_t deadline_ns, int64_t *n_out)
{
    int64_t  n = 0, t;
    process *places, p;

    *n_out = 0;
    if (tti_store_add_until(to->folder, "asked", 0, deadline_ns, &n) != TUTTI_OK || n < 0 || n > ASKED_MAX)
        return NULL;
    places = malloc(((size_t)n + 1) * sizeof *places);
    for (t = 1; places != NULL && t <= n; t++)
        if (read_place(to, t, deadline_ns, &p.node, &p.local) && number_of(places, *n_out, p.node, p.local) == 0) {
            p.number = t;
            places[(*n_out)++] = p;
        }
    return places;
}

/* By which number the process of an ending has asked first, 0 if by none, -1 if it is not known; *n_out: how many of all hosts have
 * asked, and live. */
static int64_t number_asked(const tti_bulletin *bulletin, const tti_admission *to, const tti_ending *ended, int64_t deadline_ns,
                            int *n_out)
{
    int64_t    n, i, number;
    process   *places = read_places(to, deadline_ns, &n);
    tti_ending other;

    *n_out = 0;
    if (places == NULL)
        return -1;
    for (i = 0; i < n; i++)
        *n_out += !tti_bulletin_find_at(bulletin, places[i].node, places[i].local, &other);
    number = number_of(places, n, ended->node, ended->local);
    free(places);
    return number;
}

static bool is_replacement(const tti_ending *ending)
{
    return ending->rank < 0 && ending->local >= 0 && ending->coming > 0 && (ending->flags & (TTI_ENDING_ASKED | TTI_ENDING_UNKNOWN)) == 0;
}

void tti_unasked_settle(tutti_group *world)
{
    if (world->bulletin != NULL)
        world->endings_told = atomic_load(tti_bulletin_news(world->bulletin));
}

/* Whether somebody has come for number t since it was looked for; also where that is not known. */
static bool is_taken(const tti_admission *to, int64_t t, int64_t deadline_ns)
{
    int64_t n = 0;

    return tti_store_add_until(to->folder, "asked", 0, deadline_ns, &n) != TUTTI_OK || n >= t;
}

bool tti_unasked_find(tutti_group *world, const tti_admission *to, int64_t admitted, int64_t t, int64_t deadline_ns,
                      tti_unasked *found_out)
{
    const tti_bulletin *bulletin = world->bulletin;
    tti_ending          ending;
    int64_t             number;
    uint32_t            i;
    int                 n_asked;

    for (i = world->endings_told; bulletin != NULL && tti_bulletin_read(bulletin, i, &ending); i++) {
        if (!is_replacement(&ending))
            continue;
        number = number_asked(bulletin, to, &ending, deadline_ns, &n_asked);
        if (number < 0 || (number > 0 && number <= admitted))
            continue; /* it is not known, or this one was let in */
        if (tti_bulletin_coming(bulletin) > n_asked || is_taken(to, t, deadline_ns))
            return false; /* somebody may still come, or is no more to come as it is here */
        tti_unasked_settle(world); /* the first one stands for those that ended like it */
        *found_out = (tti_unasked){ .ending = ending, .asked = number > 0 };
        return true;
    }
    return false;
}
