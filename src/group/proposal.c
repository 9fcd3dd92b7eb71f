/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proposal.c - the number of a group that only its members make: the first one proposes it, and the others take it.
 *
 * How     Each member sets its own proposal in the group's store, if there is none yet, and takes what stands there then.
 * Lists   Beside the number stands who proposed it, and of which members: who has others for that name fails, and takes the number
 *         back, which is 0 from there on, so that all that come later fail alike. Those that have it, and wait for others, are
 *         told on the board (coll/told.c). Who has met all others by then has the group. */
#include "group/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/fnv.h"
#include "store/store.h"

enum { LISTED_MAX = 8, MEMBERS_MAX = 144, LISTS_MAX = 2 * MEMBERS_MAX + 48, PROPOSAL_MAX = LISTS_MAX + 64 };

#define NUMBER_KEY "number"

/* Of the members, so that ranks which took different ones for a group of one name find out. */
static uint64_t hash_members(const tutti_group *group)
{
    return tti_fnv(TTI_FNV_BEGIN, group->ranks, (size_t)group->size * sizeof *group->ranks);
}

/* "ranks 2, 3", or "ranks 0, 1 and 30 more". */
static const char *list_members(const tutti_group *group, char out[MEMBERS_MAX])
{
    const int n = group->size < LISTED_MAX ? group->size : LISTED_MAX;
    size_t    used = (size_t)snprintf(out, MEMBERS_MAX, group->size == 1 ? "rank " : "ranks ");
    int       i;

    for (i = 0; i < n; i++)
        used += (size_t)snprintf(out + used, MEMBERS_MAX - used, "%s%d", i > 0 ? ", " : "", group->ranks[i]);
    if (n < group->size)
        snprintf(out + used, MEMBERS_MAX - used, " and %d more", group->size - n);
    return out;
}

/* "2147483649 <hash> rank 0 made it of ranks 0, 1": the number that stands, and who proposed it for which members. 0: it stands no
 * more, as another has others, which the text tells, too. */
typedef struct proposal {
    uint64_t n, members;
    char     lists[LISTS_MAX];
} proposal;

static bool read_proposal(const tutti_bytes *text, proposal *out)
{
    int at = 0;

    if (text->size == 0 || text->size >= PROPOSAL_MAX ||
        sscanf(text->data, "%" SCNu64 " %" SCNx64 " %n", &out->n, &out->members, &at) != 2 ||
        (out->n != 0 && out->n < TTI_AGREED_FIRST) || out->n > UINT32_MAX)
        return false;
    snprintf(out->lists, sizeof out->lists, "%.*s", (int)sizeof out->lists - 1, (const char *)text->data + at);
    return true;
}

static void write_proposal(const proposal *p, char out[PROPOSAL_MAX])
{
    snprintf(out, PROPOSAL_MAX, "%" PRIu64 " %" PRIx64 " %s", p->n, p->members, p->lists);
}

static int64_t soon(const tutti_group *group)
{
    return tti_port_now(group->runner->port) + TTI_SECOND;
}

static tutti_status fail_lists(const tutti_group *group, const proposal *p)
{
    return tti_fail(TUTTI_E_MISMATCH,
                    "group '%s': %s\n"
                    "  next: give all ranks the same lists, in the same order",
                    group->name, p->lists);
}

/* This rank is the first that has other members than those of the proposal, which was read as `text`. */
static tutti_status dispute(tutti_group *group, const tutti_bytes *text, proposal *p)
{
    const size_t used = strlen(p->lists);
    tutti_bytes  kept = { 0 };
    char         mine[MEMBERS_MAX], taken_back[PROPOSAL_MAX];

    snprintf(p->lists + used, sizeof p->lists - used, ", and rank %d makes it of %s", group->world->rank, list_members(group, mine));
    p->n = 0;
    write_proposal(p, taken_back);
    if (tti_store_compare_set_until(group->store, NUMBER_KEY, text->data, text->size, taken_back, strlen(taken_back), soon(group),
                                    &kept) == TUTTI_OK)
        tutti_bytes_free(&kept);
    fail_lists(group, p);
    tti_group_tell_mismatch(group);
    return TUTTI_E_MISMATCH;
}

static tutti_status take_proposal(tutti_group *group, const tutti_bytes *text)
{
    proposal p;

    if (!read_proposal(text, &p))
        return tti_fail(TUTTI_E_STORE, "the number of group '%s' in the store is damaged", group->name);
    if (p.n == 0)
        return fail_lists(group, &p);
    if (p.members != hash_members(group))
        return dispute(group, text, &p);
    group->id = (uint32_t)p.n;
    return TUTTI_OK;
}

tutti_status tti_group_propose(tutti_group *group, uint32_t number, int64_t deadline_ns)
{
    proposal     mine = { .n = number, .members = hash_members(group) };
    tutti_bytes  kept = { 0 };
    char         text[PROPOSAL_MAX], members[MEMBERS_MAX];
    tutti_status st;

    snprintf(mine.lists, sizeof mine.lists, "rank %d made it of %s", group->world->rank, list_members(group, members));
    write_proposal(&mine, text);
    st = tti_store_compare_set_until(group->store, NUMBER_KEY, "", 0, text, strlen(text), deadline_ns, &kept);
    if (st == TUTTI_OK)
        st = take_proposal(group, &kept);
    tutti_bytes_free(&kept);
    return st;
}

bool tti_group_is_disputed(tutti_group *group, tutti_status st)
{
    tutti_bytes kept = { 0 };
    proposal    p = { .n = 1 };
    char        words[TTI_GROUP_WORDS_MAX];
    bool        disputed = false;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (tti_store_get_until(group->store, NUMBER_KEY, soon(group), &kept) == TUTTI_OK) {
        disputed = read_proposal(&kept, &p) && p.n == 0;
        tutti_bytes_free(&kept);
    }
    tti_fail(st, "%s", words);
    return disputed;
}
