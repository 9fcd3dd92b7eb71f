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
 * Numbers Each draws one from a counter of the carrier and proposes it; the first proposal stands (proposal.c). A number that was
 *         drawn in vain is not used. They are at or above 2^31, where the counter of numbered groups does not come.
 * Source  torch.distributed names groups with use_local_synchronization in the same way. */
#include "group/make.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store.h"
#include "wire/crypto.h"

enum { SHA1_BYTES = 20, HEX_MAX = TTI_DIGEST_MAX };

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

tutti_status tti_group_agree_number(tutti_group *group, int64_t deadline_ns)
{
    int64_t      n = 0;
    tutti_status st = tti_store_add_until(group->carrier->store, "tutti/agreed", 1, deadline_ns, &n);

    if (st != TUTTI_OK)
        return st;
    if (n < 1 || n > (int64_t)(UINT32_MAX - TTI_AGREED_FIRST))
        return tti_fail(TUTTI_E_STATE, "group '%s': the numbers of this world's groups are used up",
                        group->name);
    return tti_group_propose(group, TTI_AGREED_FIRST + (uint32_t)n, deadline_ns);
}
