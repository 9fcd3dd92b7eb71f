/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreed.c - names and numbers of groups that only their members make.
 *
 * Why     Other ranks of the world do not hear of such a group, so nobody can count it. Still its
 *         members must use one name, for its keys, and one number, for its messages, which no
 *         other group has.
 * Names   The SHA-1 of the ranks, "0_2_5", in hexadecimal: all members know it. When the same ranks
 *         make another one it is the SHA-1 of the last name and "_", also if the earlier group is
 *         gone: keys of an earlier group are never read. The world remembers the last name for
 *         each list of ranks; members make their common groups in one order, so all remember alike.
 * Numbers Whoever comes first draws one from a counter of the carrier and proposes it with
 *         compare_set; the first proposal stands. A number that was drawn in vain is not used.
 *         They are at or above 2^31, where the counter of numbered groups does not come.
 * Lists   Beside the number stands who proposed it, and of which members: who has others for that name fails, and takes the number
 *         back, which is 0 from there on, so that all that come later fail alike. Those that have it, and wait for
 *         others, are told on the board. Who has met all others by then has the group.
 * Source  torch.distributed names groups with use_local_synchronization in the same way. */
#include "group/make.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fnv.h"
#include "store/store.h"
#include <tutti/private.h>
#include "wire/crypto.h"

enum { SHA1_BYTES = 20, HEX_MAX = TTI_DIGEST_MAX, LISTED_MAX = 8, MEMBERS_MAX = 144, LISTS_MAX = 2 * MEMBERS_MAX + 48,
       PROPOSAL_MAX = LISTS_MAX + 64 };

#define NUMBER_KEY "number"

_Static_assert((int)HEX_MAX == 2 * SHA1_BYTES + 1, "two digits for a byte, and NUL");

_Static_assert((int)HEX_MAX <= (int)TTI_GROUP_NAME_MAX, "a group's name has room for a digest");

struct tti_local_name {
    tti_local_name *next;
    char            first[HEX_MAX]; /* of the ranks alone */
    char            last[HEX_MAX];  /* the latest given */
};

/* ---- names ---- */

tutti_status tti_digest(const void *data, size_t bytes, char hex_out[TTI_DIGEST_MAX])
{
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned      n = 0;
    unsigned      i;

    tti_crypto_begin();
    if (EVP_Digest(data, bytes, md, &n, EVP_sha1(), NULL) != 1 || n != SHA1_BYTES)
        return tti_fail(TUTTI_E_BACKEND, "libcrypto cannot compute a SHA-1 for a group's name");
    for (i = 0; i < n; i++)
        snprintf(hex_out + 2 * i, 3, "%02x", md[i]);
    return TUTTI_OK;
}

tutti_status tti_ranks_digest(const int *ranks, int n, char hex_out[TTI_DIGEST_MAX])
{
    const size_t max = (size_t)n * 12 + 1;
    char        *text = malloc(max);
    size_t       used = 0;
    tutti_status st;
    int          i;

    if (text == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the name of a group of %d", n);
    for (i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, max - used, "%s%d", i > 0 ? "_" : "", ranks[i]);
    st = tti_digest(text, used, hex_out);
    free(text);
    return st;
}

/* The entry of a list of ranks; NULL: it has none. Lock held. */
static tti_local_name *find_name(const tutti_group *world, const char *first)
{
    tti_local_name *entry = world->local_names;

    while (entry != NULL && strcmp(entry->first, first) != 0)
        entry = entry->next;
    return entry;
}

static tutti_status add_name(tutti_group *world, const char *first)
{
    tti_local_name *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a group's name");
    snprintf(entry->first, sizeof entry->first, "%s", first);
    snprintf(entry->last, sizeof entry->last, "%s", first);
    entry->next = world->local_names;
    world->local_names = entry;
    return TUTTI_OK;
}

static tutti_status step_name(tti_local_name *entry)
{
    char text[HEX_MAX + 1];

    snprintf(text, sizeof text, "%s_", entry->last);
    return tti_digest(text, strlen(text), entry->last);
}

tutti_status tti_group_name_by_ranks(tutti_group *group)
{
    tutti_group    *world = group->world;
    tti_local_name *entry;
    char            first[HEX_MAX];
    tutti_status    st = tti_ranks_digest(group->ranks, group->size, first);

    if (st != TUTTI_OK)
        return st;
    tti_lock(&world->runner->lock);
    entry = find_name(world, first);
    st = entry != NULL ? step_name(entry) : add_name(world, first);
    if (st == TUTTI_OK)
        snprintf(group->name, sizeof group->name, "%s", entry != NULL ? entry->last : first);
    tti_unlock(&world->runner->lock);
    return st;
}

tutti_status tti_group_name_by_text(tutti_group *group, const char *text)
{
    if (strlen(text) >= sizeof group->name)
        return tti_digest(text, strlen(text), group->name);
    snprintf(group->name, sizeof group->name, "%s", text);
    return TUTTI_OK;
}

void tti_local_names_free(tti_local_name *first)
{
    tti_local_name *next;

    for (; first != NULL; first = next) {
        next = first->next;
        free(first);
    }
}

/* ---- numbers ---- */

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

tutti_status tti_group_agree_number(tutti_group *group, int64_t deadline_ns)
{
    tutti_bytes  kept = { 0 };
    proposal     mine = { .members = hash_members(group) };
    char         text[PROPOSAL_MAX], members[MEMBERS_MAX];
    int64_t      n = 0;
    tutti_status st;

    st = tti_store_add_until(group->carrier->store, "tutti/agreed", 1, deadline_ns, &n);
    if (st != TUTTI_OK)
        return st;
    if (n < 1 || n > (int64_t)(UINT32_MAX - TTI_AGREED_FIRST))
        return tti_fail(TUTTI_E_STATE, "group '%s': the numbers of this world's groups are used up",
                        group->name);
    mine.n = TTI_AGREED_FIRST + (uint64_t)n;
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
