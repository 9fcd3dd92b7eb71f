/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shrink.c - a group goes on without some of its members.
 *
 * Why     After a rank has died its groups are finished on all others. Those that are left want to go
 *         on in the same processes, with the store they have.
 * How     The survivors, who all name the same excluded ranks, meet below the old group's keys, in a
 *         folder with the digest of their ranks, and there in one that they number as worlds of a
 *         store are (rendezvous/generation.c): so a repeated attempt meets nothing of a failed one.
 *         The new group makes connections and shared memory of its own: whatever an excluded rank
 *         still does, say after it was stopped for an hour, happens in memory and on streams that
 *         nobody reads any more.
 *             a world     becomes a new world, which NULL means where it meant the old one
 *             a subgroup  becomes a group of the same world, and a carrier
 *         Only when the new group is there the old one is destroyed, with the groups that use its
 *         connections.
 * Fails   The old group stays as it is, unless its works were to be aborted; the survivors may try
 *         again, and exclude more.
 * Source  torch.distributed.shrink_group. */
#include "group/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rendezvous/generation.h"
#include <tutti/private.h>
#include <tutti/regroup.h>

enum { NAMED_MAX = 8 }; /* ranks that a time-out names */

typedef struct survivors {
    int *ranks; /* [n] of the old group, ascending */
    int  n;
    int  rank; /* this one's place among them */
} survivors;

/* ---- checks ---- */

static tutti_status check_call(const tutti_group *old, const int *excluded, int n, unsigned flags)
{
    if (excluded == NULL || n <= 0)
        return tti_fail(TUTTI_E_ARG, "shrink_group on group '%s': there are no ranks to exclude (%d)",
                        old->name, n);
    if ((flags & ~(unsigned)TUTTI_SHRINK_ABORT) != 0)
        return tti_fail(TUTTI_E_ARG, "shrink_group on group '%s': flags are 0x%x\n"
                                     "  next: TUTTI_SHRINK_DEFAULT or TUTTI_SHRINK_ABORT",
                        old->name, flags);
    if (old->size <= 1)
        return tti_fail(TUTTI_E_ARG, "shrink_group: group '%s' has one member", old->name);
    if (n >= old->size)
        return tti_fail(TUTTI_E_ARG, "shrink_group: %d ranks to exclude would leave nobody of the %d in "
                                     "group '%s'", n, old->size, old->name);
    return TUTTI_OK;
}

static tutti_status mark_excluded(const tutti_group *old, const int *excluded, int n, bool *out)
{
    int i;

    for (i = 0; i < n; i++) {
        const int rank = excluded[i];

        if (rank < 0 || rank >= old->size)
            return tti_fail(TUTTI_E_ARG, "shrink_group on group '%s': rank %d is outside of 0 .. %d",
                            old->name, rank, old->size - 1);
        if (out[rank])
            return tti_fail(TUTTI_E_ARG, "shrink_group on group '%s': rank %d is there twice",
                            old->name, rank);
        out[rank] = true;
    }
    if (out[old->rank])
        return tti_fail(TUTTI_E_STATE, "shrink_group on group '%s': this rank, %d, is to be excluded\n"
                                       "  next: only those call it that go on",
                        old->name, old->rank);
    return TUTTI_OK;
}

static tutti_status find_survivors(const tutti_group *old, const int *excluded, int n,
                                   survivors *out)
{
    bool        *gone = calloc((size_t)old->size, sizeof *gone);
    int         *ranks = malloc((size_t)old->size * sizeof *ranks);
    tutti_status st;
    int          r;

    *out = (survivors){ .n = 0 };
    if (gone == NULL || ranks == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory to shrink a group of %d", old->size);
    else
        st = mark_excluded(old, excluded, n, gone);
    for (r = 0; r < old->size && st == TUTTI_OK; r++) {
        if (r == old->rank)
            out->rank = out->n;
        if (!gone[r])
            ranks[out->n++] = r;
    }
    free(gone);
    if (st == TUTTI_OK)
        out->ranks = ranks;
    else
        free(ranks);
    return st;
}

/* Works of a group that is finished end anyway. */
static tutti_status check_idle(tutti_group *old)
{
    tutti_status finished;

    tti_lock(&old->runner->lock);
    finished = old->finished;
    tti_unlock(&old->runner->lock);
    if (finished == TUTTI_OK && tti_group_is_busy(old))
        return tti_fail(TUTTI_E_STATE, "shrink_group on group '%s': operations are under way\n"
                                       "  next: wait for them, or pass TUTTI_SHRINK_ABORT",
                        old->name);
    return TUTTI_OK;
}

/* ---- the new group ---- */

/* Where the survivors meet. */
static tutti_status open_place(const tutti_group *old, const survivors *left, tutti_store **store_out)
{
    char         digest[TTI_DIGEST_MAX];
    char         prefix[TTI_DIGEST_MAX + 16];
    tutti_status st = tti_ranks_digest(left->ranks, left->n, digest);

    if (st != TUTTI_OK)
        return st;
    snprintf(prefix, sizeof prefix, "shrink/%s", digest);
    return tutti_prefix_store_open(prefix, old->store, store_out);
}

/* Time is up: which members of old did not come, as old numbers them. The words stay as they are where all came
 * and could not connect. */
static tutti_status name_the_missing(const tutti_group *old, const survivors *left, const tti_join *join)
{
    char  words[TTI_GROUP_WORDS_MAX];
    char  list[NAMED_MAX * 16] = "";
    bool *absent = calloc((size_t)left->n, sizeof *absent);
    size_t used = 0;
    int    n = 0;
    int    i;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (absent != NULL)
        tti_generation_absent(old->runner->port, join, *join->number_out, absent);
    for (i = 0; absent != NULL && i < left->n; i++)
        if (absent[i] && n++ < NAMED_MAX)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", n > 1 ? ", " : "", left->ranks[i]);
    free(absent);
    if (n == 0)
        return tti_fail(TUTTI_E_TIMEOUT, "%s", words);
    return tti_fail(TUTTI_E_TIMEOUT,
                    "shrink_group on group '%s': rank%s %s%s did not come to go on with, on rank %d within %lld ms\n"
                    "  next: check that all survivors pass the same ranks to exclude",
                    old->name, n == 1 ? "" : "s", list, n > NAMED_MAX ? ", ..." : "", old->rank,
                    (long long)join->timeout_ms);
}

static tti_join join_of(const tutti_group *old, const survivors *left, tutti_store *place,
                        const tutti_group_options *opts)
{
    tti_join join = { .store = place, .user_store = true, .rank = left->rank, .world_size = left->n,
                      .timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : old->timeout_ms };

    join.deadline_ns = tti_deadline(old->runner->port, join.timeout_ms, -1);
    snprintf(join.listen_host, sizeof join.listen_host, "%s", old->listen_host);
    return join;
}

static tutti_status make_world(tutti_group *old, const tti_join *join, const char *name,
                               const tutti_group_options *opts, tutti_group **group_out)
{
    const tti_backing backing = tti_backing_like(old, opts);
    tutti_group      *world = NULL;
    char             *desc = opts->desc != NULL ? strdup(opts->desc) : NULL;
    tutti_status      st;

    if (opts->desc != NULL && desc == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a group's name");
    st = tti_world_create_named(old->runner->port, &backing, join, name, &world);
    if (st != TUTTI_OK) {
        free(desc);
        return st;
    }
    world->desc = desc;
    tutti_store_close(world->root); /* strangers know the old one's */
    world->root = tutti_store_retain(old->root);
    *group_out = world;
    return TUTTI_OK;
}

/* A group of the same world with connections of its own, its keys below number n of place. */
static tutti_status open_carrier(tutti_group *group, tutti_group *old, const tti_join *join,
                                 const survivors *left, int64_t n, const char *name,
                                 const tutti_group_options *opts)
{
    char         key[32];
    tutti_status st = tti_group_inherit(group, old, opts);
    int          i;

    group->carrier = group;
    for (i = 0; i < left->n; i++)
        group->ranks[i] = old->ranks[left->ranks[i]];
    if (st == TUTTI_OK)
        st = tti_group_name_by_text(group, name);
    snprintf(key, sizeof key, "%lld", (long long)n);
    if (st == TUTTI_OK)
        st = tti_group_open_stores(group, key, join->store);
    return st == TUTTI_OK ? tti_group_open_backend(group, join->deadline_ns, false) : st;
}

static tutti_status make_subgroup(tutti_group *old, const tti_join *join, const survivors *left,
                                  const char *name, const tutti_group_options *opts,
                                  tutti_group **group_out)
{
    tti_port    *port = old->runner->port;
    tutti_group *group = NULL;
    char         words[TTI_GROUP_WORDS_MAX];
    int64_t      n = 0;
    tutti_status st = tti_generation_join(port, join, &n);

    if (st == TUTTI_OK)
        st = tti_group_alloc(left->rank, left->n, &group);
    if (st == TUTTI_OK)
        st = open_carrier(group, old, join, left, n, name, opts);
    tti_generation_end(join);
    if (st != TUTTI_OK) {
        snprintf(words, sizeof words, "%s", tutti_last_error());
        tti_generation_fail(port, join, n);
        tti_group_free(group);
        return tti_fail(st, "%s", words);
    }
    tti_group_link(group);
    *group_out = group;
    return TUTTI_OK;
}

static tutti_status make_successor(tutti_group *old, const survivors *left,
                                   const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_store *place = NULL;
    char         name[TTI_GROUP_NAME_MAX + 8];
    tti_join     join;
    int64_t      number = 0;
    tutti_status st = open_place(old, left, &place);

    if (st != TUTTI_OK)
        return st;
    join = join_of(old, left, place, opts);
    join.number_out = &number;
    snprintf(name, sizeof name, "%s:shrink", old->name);
    if (old->world == old)
        st = make_world(old, &join, name, opts, group_out);
    else
        st = make_subgroup(old, &join, left, name, opts, group_out);
    if (st == TUTTI_E_TIMEOUT)
        st = name_the_missing(old, left, &join);
    tutti_store_close(place);
    return st;
}

/* ---- the call ---- */

/* old is destroyed if this succeeds; left's ranks become the new group's. */
static tutti_status replace(tutti_group *old, survivors *left, unsigned flags,
                            const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_group *group = NULL;
    tutti_status st = TUTTI_OK;

    if ((flags & TUTTI_SHRINK_ABORT) != 0)
        tti_group_close_all(old);
    else
        st = check_idle(old);
    if (st == TUTTI_OK)
        st = make_successor(old, left, opts, &group);
    if (st != TUTTI_OK)
        return st;
    group->timed = old->timed || opts->enable_timing;
    group->former = left->ranks;
    left->ranks = NULL;
    if (old->world == old)
        tti_world_succeed(old, group);
    tti_group_destroy(old);
    *group_out = group;
    return TUTTI_OK;
}

static tutti_status shrink(const int *excluded, int n, tutti_group *group, unsigned flags,
                           const tutti_group_options *opts, tutti_group **group_out)
{
    const char         *what = "shrink_group";
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tti_backing         backing;
    tutti_group        *old = NULL;
    survivors           left = { .n = 0 };
    tutti_status        st = tti_group_resolve(group, what, &old);

    if (st == TUTTI_OK && old == NULL) {
        *group_out = TUTTI_NON_MEMBER;
        return TUTTI_OK;
    }
    if (st == TUTTI_OK)
        st = tti_joint_options_read(what, opts, &known);
    if (st == TUTTI_OK)
        st = check_call(old, excluded, n, flags);
    if (st == TUTTI_OK && tti_group_calls_us(old))
        st = tti_fail(TUTTI_E_STATE, "%s: called by a hook, or by a callback of the same world", what);
    if (st == TUTTI_OK) {
        backing = tti_backing_like(old, &known);
        st = tti_backing_check(&backing);
    }
    if (st == TUTTI_OK)
        st = find_survivors(old, excluded, n, &left);
    if (st == TUTTI_OK)
        st = replace(old, &left, flags, &known, group_out);
    free(left.ranks);
    return st;
}

tutti_status tutti_shrink_group(const int *ranks_to_exclude, int n_ranks, tutti_group *group,
                                unsigned flags, const tutti_group_options *opts,
                                tutti_group **group_out)
{
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "shrink_group: group_out is NULL");
    st = shrink(ranks_to_exclude, n_ranks, group, flags, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

int tutti_get_former_rank(const tutti_group *group, int group_rank)
{
    const tutti_group *g = tti_group_peek(group);

    if (g == NULL || g->former == NULL || group_rank < 0 || group_rank >= g->size)
        return -1;
    return g->former[group_rank];
}
