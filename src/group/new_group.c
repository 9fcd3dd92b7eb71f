/* SPDX-License-Identifier: BSD-3-Clause
 *
 * new_group.c - groups of some ranks of the world.
 *
 * Numbered  Every rank of the world makes them all, in one order, and counts: name and number need
 *           no talk. Making one waits for its members. A call that one rank refuses, for its arguments or for
 *           want of memory, counts, too: the next group has the same number everywhere. Those who wait for that rank
 *           find in the store who has refused, and why.
 *           A world that fails meanwhile ends that, as those who are told do not come. Where a call has
 *           said so before, those that are left have chosen to make the group.
 * Backends  Members that name backends for a group write them into its store, once: who finds others there tells so, to those who
 *           wait for it, too. Who names none has the world's, and asks nobody: that costs nothing. Who has another one than the
 *           world's leaves a word of that where it would be waited for otherwise. Who finds it fails, and tells the members.
 * Served    Who serves the store leaves last, also where the group cannot be made (making.c).
 * Local     Only the members make it: name and number are agreed (agreed.c), and making it waits
 *           for nobody, so that ranks may make several in any order. The first collective meets
 *           the others; messages may go at once. */
#include "group/make.h"
#include "group/recorded.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store.h"

enum { LARGEST_OPTIONS = 4096 }; /* beyond that the size was never set */

static tutti_status check_counts(const tutti_group *world, const int *ranks, int n_ranks)
{
    if (ranks == NULL && n_ranks != 0)
        return tti_fail(TUTTI_E_ARG, "new_group: ranks is NULL, but n_ranks is %d\n  next: NULL and 0 mean all ranks", n_ranks);
    if (ranks != NULL && n_ranks <= 0)
        return tti_fail(TUTTI_E_ARG,
                        "new_group: the list of ranks is empty (n_ranks is %d)\n"
                        "  next: NULL and 0 mean all ranks",
                        n_ranks);
    if (n_ranks > world->size)
        return tti_fail(TUTTI_E_ARG, "new_group: %d ranks, but the world has %d\n  next: name each member once", n_ranks,
                        world->size);
    return TUTTI_OK;
}

/* Fill sorted[n] (all ranks of the world when ranks is NULL) and check it. */
static tutti_status sort_ranks(const tutti_group *world, const int *ranks, int *sorted, int n)
{
    int i;

    for (i = 0; i < n; i++)
        sorted[i] = ranks != NULL ? ranks[i] : i;
    tti_ranks_sort(sorted, n);
    for (i = 0; i < n; i++) {
        if (sorted[i] < 0 || sorted[i] >= world->size)
            return tti_fail(TUTTI_E_ARG, "new_group: rank %d is outside of 0 .. %d\n  next: name ranks of the world", sorted[i],
                            world->size - 1);
        if (i > 0 && sorted[i] == sorted[i - 1])
            return tti_fail(TUTTI_E_ARG, "new_group: rank %d is there twice\n  next: name each member once", sorted[i]);
    }
    return TUTTI_OK;
}

uint32_t tti_group_take_number(tutti_group *world)
{
    uint32_t id;

    tti_lock(&world->runner->lock);
    id = world->numbers++;
    world->n_made++;
    tti_unlock(&world->runner->lock);
    return id;
}

tutti_status tti_group_take_numbers(tutti_group *world, int n, uint32_t *first_out)
{
    uint32_t first;
    bool     is_left;

    tti_lock(&world->runner->lock);
    first = world->numbers;
    is_left = first <= TTI_AGREED_FIRST - (uint32_t)n;
    if (is_left)
        world->numbers += (uint32_t)n;
    tti_unlock(&world->runner->lock);
    if (!is_left)
        return tti_fail(TUTTI_E_STATE, "a world of %d has given away the numbers of all groups that it can have: %u\n"
                                       "  next: make groups once, and use them again", world->size, TTI_AGREED_FIRST);
    *first_out = first;
    return TUTTI_OK;
}

void tti_group_count(tutti_group *world, int n)
{
    tti_lock(&world->runner->lock);
    world->n_made += (uint32_t)n;
    tti_unlock(&world->runner->lock);
}

/* Members of different backends would look for each other in different places. A store that cannot say does not keep the group from
 * being made. */
static tutti_status compare_backends(tutti_group *group, int64_t deadline_ns)
{
    const int64_t soon_ns = tti_port_now(group->runner->port) + TTI_SECOND;
    const char   *ours = group->backend_config;
    tutti_bytes   kept = { 0 };
    tutti_status  st = tti_store_compare_set_until(group->store, "backends", "", 0, ours, strlen(ours),
                                                   soon_ns < deadline_ns ? soon_ns : deadline_ns, &kept);

    if (st != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "group '%s': backends are not compared: %s", group->name, tutti_last_error());
    if (st == TUTTI_OK && (kept.size != strlen(ours) || memcmp(kept.data, ours, kept.size) != 0))
        st = tti_fail(TUTTI_E_MISMATCH,
                      "rank %d makes group '%s' with backend '%s', another member with '%.*s'\n"
                      "  next: give all members the same options.backend",
                      group->world->rank, group->name, ours, (int)(kept.size < TTI_DEVICE_MAP_TEXT ? kept.size : TTI_DEVICE_MAP_TEXT),
                      (const char *)kept.data);
    else
        st = TUTTI_OK;
    tutti_bytes_free(&kept);
    if (st != TUTTI_OK)
        tti_group_tell_members(group, st, st);
    else
        tti_group_tell_otherwise(group, deadline_ns);
    return st;
}

/* Whether somebody has named backends for a group, of which this rank has named none. */
static bool is_named(tutti_group *group)
{
    const char *key = "backends";
    bool        there = false;

    return tti_store_check_until(group->store, &key, 1, tti_port_now(group->runner->port) + TTI_SECOND, &there) == TUTTI_OK && there;
}

/* This rank has named no backends, and its waiting for the others has failed: those who named some do not know of this one. */
static tutti_status tell_who_named(tutti_group *group, tutti_status st)
{
    char words[TTI_GROUP_WORDS_MAX];
    bool named;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    named = is_named(group);
    tti_fail(st, "%s", words);
    if (named)
        tti_group_tell_members(group, st, st);
    return st;
}

/* Open a child whose ranks and name are there: eager, numbered by the world. named: its backends are. */
static tutti_status open_numbered(tutti_group *group, bool named, int64_t deadline_ns)
{
    const bool   knows = tti_group_is_finished(group->world);
    tutti_status st = tti_group_open_stores(group, group->name, group->world->store);
    uint64_t     record;

    if (st == TUTTI_OK && named && group->size > 1)
        st = compare_backends(group, deadline_ns);
    if (st != TUTTI_OK)
        return st;
    tti_recorded_group_begin(group); /* before anybody is waited for: who looks from outside sees for whom */
    record = tti_recorded_other(group, TUTTI_RECORD_NEW_GROUP, -1, (tutti_span){ .count = 0 }, 0);
    st = tti_group_open_backend(group, deadline_ns, knows ? TTI_OPEN_ALONE : TTI_OPEN_IN_WORLD);
    tti_record_end_slowly(record, st);
    return st == TUTTI_E_MISMATCH && !named && group->size > 1 ? tell_who_named(group, st) : st;
}

/* Only this rank knows of a failure, and others that make the group wait for it: what waits for others has been told of already,
 * or is told by its own time-out. */
static bool is_own(tutti_status st)
{
    return st == TUTTI_E_ARG || st == TUTTI_E_UNSUPPORTED || st == TUTTI_E_NOMEM || st == TUTTI_E_BACKEND || st == TUTTI_E_IO;
}

/* The name is there. */
static tutti_status open_named(tutti_group *group, bool named, int64_t deadline_ns)
{
    tutti_status st = tti_group_open_stores(group, group->name, group->world->store);

    if (st == TUTTI_OK && named && group->size > 1)
        st = compare_backends(group, deadline_ns);
    if (st == TUTTI_OK)
        st = tti_group_agree_number(group, deadline_ns);
    if (st != TUTTI_OK)
        return st;
    st = tti_group_open_backend(group, deadline_ns, TTI_OPEN_LAZILY);
    if (is_own(st) && group->size > 1) /* those who can make it look there in their first call */
        tti_group_tell_members(group, tti_refused_as(st), st);
    return st;
}

/* The same as open_numbered() for one of which non-members know nothing. */
static tutti_status open_local(tutti_group *group, bool named, int64_t deadline_ns)
{
    tutti_group *world = group->world;
    tti_making   making;
    tutti_status st = tti_group_name_by_ranks(group);

    if (st != TUTTI_OK)
        return st;
    tti_making_begin(&making, world->runner->port, world->store, group->name, world->rank, world);
    st = open_named(group, named, deadline_ns);
    return tti_making_end(&making, st == TUTTI_OK ? TTI_MADE_ALONE : tti_made_by(group), deadline_ns, st);
}

/* The rest of a child whose ranks are known to be good; id counts if it is not local. */
static tutti_status open_child(tutti_group *group, tutti_group *world, uint32_t id,
                               const tutti_group_options *opts)
{
    tutti_status st = tti_group_inherit(group, world, opts);
    int64_t      deadline_ns;

    if (st != TUTTI_OK)
        return st;
    deadline_ns = tti_deadline(world->runner->port, group->timeout_ms, group->timeout_ms);
    if (opts->use_local_synchronization)
        return open_local(group, opts->backend != NULL, deadline_ns);
    group->id = id;
    snprintf(group->name, sizeof group->name, "%u", id);
    return open_numbered(group, opts->backend != NULL, deadline_ns);
}

/* A rank of world comes to group number id. */
static void begin_numbered(tti_making *making, tutti_group *world, uint32_t id)
{
    char folder[16];

    snprintf(folder, sizeof folder, "%u", id);
    tti_making_begin(making, world->runner->port, world->store, folder, world->rank, world);
}

void tti_group_refuse(tutti_group *world, const char *folder, tutti_status st)
{
    if (is_own(st) && world->size > 1 && world->store != NULL)
        tti_group_tell_in(world, folder, tti_refused_as(st), st);
}

/* This rank cannot make group number id. Those who can are told; st stays. */
static tutti_status refuse(tutti_group *world, uint32_t id, tutti_status st)
{
    char folder[16];

    snprintf(folder, sizeof folder, "%u", id);
    tti_group_refuse(world, folder, st);
    return st;
}

static tutti_status refuse_unless_ok(tutti_group *world, uint32_t id, tutti_status st)
{
    return st == TUTTI_OK ? st : refuse(world, id, st);
}

void tti_group_tell_left_out(tutti_group *world, uint32_t id, tutti_status failure)
{
    const bool is_wrong = failure == TUTTI_E_ARG || failure == TUTTI_E_UNSUPPORTED || failure == TUTTI_E_MISMATCH;

    if (failure != TUTTI_E_NETWORK && world->size > 1 && world->store != NULL) /* it may be the store that is lost */
        tti_group_tell_why(world, id, is_wrong ? TUTTI_E_MISMATCH : TUTTI_E_REMOTE, failure);
}

/* What options that cannot be taken say of that, as far as they are of that size: nobody else counts a local group. */
static bool is_local(const tutti_group_options *opts)
{
    return opts->size >= sizeof *opts && opts->size <= LARGEST_OPTIONS && opts->use_local_synchronization;
}

/* An object with the ranks in it, once the arguments are known to be good. */
static tutti_status read_ranks(const tutti_group *world, const int *ranks, int n_ranks, tutti_group **group_out)
{
    const int    n = ranks != NULL ? n_ranks : world->size;
    tutti_group *group = NULL;
    tutti_status st = check_counts(world, ranks, n_ranks);

    if (st == TUTTI_OK)
        st = tti_group_alloc(-1, n, &group);
    if (st == TUTTI_OK)
        st = sort_ranks(world, ranks, group->ranks, n);
    if (st == TUTTI_OK)
        *group_out = group;
    else
        tti_group_free(group);
    return st;
}

/* This rank is given what cannot be a group. The others may wait for it in one. */
static tutti_status refuse_arguments(tutti_group *world, uint32_t id, tutti_status st)
{
    const int64_t deadline_ns = tti_deadline(world->runner->port, world->timeout_ms, world->timeout_ms);
    tti_making    making;

    if (world->store == NULL)
        return st;
    begin_numbered(&making, world, id);
    st = refuse(world, id, st);
    return tti_making_end(&making, TTI_MADE_BY_OURS, deadline_ns, st);
}

/* A numbered child whose ranks are known to be good, with those that wait for this one told where it cannot be. */
static tutti_status make_numbered(tutti_group *group, tutti_group *world, uint32_t id, const tutti_group_options *known)
{
    const int64_t timeout_ms = known->timeout_ms != 0 ? known->timeout_ms : world->timeout_ms;
    const int64_t deadline_ns = tti_deadline(world->runner->port, timeout_ms, world->timeout_ms);
    tti_making    making;
    tutti_status  st;

    if (world->store == NULL || group->size == 1)
        return refuse_unless_ok(world, id, open_child(group, world, id, known));
    begin_numbered(&making, world, id);
    st = refuse_unless_ok(world, id, open_child(group, world, id, known));
    return tti_making_end(&making, tti_made_by(group), deadline_ns, st);
}

/* A group with options that are known, st being what came of reading them; id counts if it is not local. */
static tutti_status create(tutti_group *world, uint32_t id, const int *ranks, int n_ranks, const tutti_group_options *known,
                           tutti_status st, tutti_group **group_out)
{
    tutti_group *group = NULL;

    if (st == TUTTI_OK)
        st = read_ranks(world, ranks, n_ranks, &group);
    if (st != TUTTI_OK)
        return known->use_local_synchronization ? st : refuse_arguments(world, id, st);
    group->rank = tti_group_find(group, world->rank);
    if (group->rank < 0) {
        tti_non_member_begins();
        *group_out = TUTTI_NON_MEMBER;
        goto out;
    }
    st = known->use_local_synchronization ? open_child(group, world, id, known) : make_numbered(group, world, id, known);
    if (st != TUTTI_OK)
        goto out;
    tti_group_link(group);
    *group_out = group;
    return TUTTI_OK;

out:
    tti_group_free(group);
    return st;
}

tutti_status tti_group_create(tutti_group *world, const int *ranks, int n_ranks,
                              const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    uint32_t            id = 0;
    tutti_status        st = tti_group_options_read("new_group", opts, &known);

    if (st != TUTTI_OK && opts != NULL && is_local(opts))
        known.use_local_synchronization = true;
    if (!known.use_local_synchronization) /* also if nothing comes of it */
        id = tti_group_take_number(world);
    return create(world, id, ranks, n_ranks, &known, st, group_out);
}

tutti_status tti_group_create_numbered(tutti_group *world, uint32_t id, const int *ranks, int n_ranks,
                                       const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    const tutti_status  st = tti_joint_options_read("new_group", opts, &known);

    return create(world, id, ranks, n_ranks, &known, st, group_out);
}

tutti_status tutti_new_group(const int *ranks, int n_ranks, const tutti_group_options *opts,
                             tutti_group **group_out)
{
    tutti_group *world = NULL;
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "new_group: group_out is NULL\n  next: pass where to put the group");
    st = tti_group_world("new_group", &world);
    if (st == TUTTI_OK)
        st = tti_group_create(world, ranks, n_ranks, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}
