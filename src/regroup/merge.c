/* SPDX-License-Identifier: BSD-3-Clause
 *
 * merge.c - processes of different worlds meet over a store and become one.
 *
 * How     Whoever comes takes the next number of a counter in the store, from 0: that is its rank, in
 *         order of arrival. The result is a world of its own, with connections of its own, whose keys
 *         stand in the folder "merge" of that store; the groups that were merged stay as they are.
 * Fails   A number is never given back, so a store serves one merging: who comes when all have come is
 *         told so, and who does not come lets the others run out of time. Who has its number and ends does not, where the
 *         store can tell (gathering.h).
 * Source  torch.distributed.ProcessGroup.merge_remote_group: counter, ranks and names are its. */
#include "regroup/gathering.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group/recorded.h"
#include "regroup/deed.h"
#include "store/store.h"
#include <tutti/private.h>
#include <tutti/regroup.h>

static tutti_status check_merge(const tutti_group *group, const tutti_store *store, int size)
{
    if (store == NULL)
        return tti_fail(TUTTI_E_ARG, "merge_remote_group: store is NULL\n  next: pass the one in which all meet");
    if (size < 1 || size < group->size)
        return tti_fail(TUTTI_E_ARG, "merge_remote_group: size is %d, but group '%s' alone has %d\n"
                                     "  next: pass how many members all groups have together",
                        size, group->name, group->size);
    return TUTTI_OK;
}

/* Take the next place. */
static tutti_status take_rank(tti_join *join)
{
    int64_t      n = 0;
    tutti_status st = tti_store_add_until(join->store, "mergeGroupRank", 1, join->deadline_ns, &n);

    if (st == TUTTI_OK && (n < 1 || n > join->world_size))
        st = tti_fail(TUTTI_E_ARG,
                      "merge_remote_group: this store has seen all %d members before this rank came\n"
                      "  next: give every merging a store, or a prefix, of its own",
                      join->world_size);
    if (st == TUTTI_OK)
        join->rank = (int)n - 1;
    return st;
}

static tutti_status meet(const tutti_group *group, tutti_store *store, int size,
                         const tutti_group_options *opts, tutti_group **group_out)
{
    tti_join     join = { .store = store, .user_store = true, .world_size = size,
                          .timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : group->timeout_ms };
    const tti_backing backing = tti_backing_like(group, opts);
    tti_port    *port = group->runner->port;
    char         name[TTI_GROUP_NAME_MAX + 8];
    tti_gathering gathering = { .n = 0 };
    tutti_status st;

    join.deadline_ns = tti_deadline(port, join.timeout_ms, -1);
    snprintf(join.listen_host, sizeof join.listen_host, "%s", group->listen_host);
    snprintf(name, sizeof name, "%s:merge", group->name);
    st = tti_backing_check(&backing);
    if (st == TUTTI_OK)
        st = tti_backing_check_members("merge_remote_group", &backing, TTI_NAME_ANOTHER);
    if (st == TUTTI_OK)
        st = take_rank(&join);
    if (st == TUTTI_OK) /* only the store tells of ends: in order of arrival nobody knows who is who */
        st = tti_gathering_begin(&gathering, port, &join, store, "merge", NULL, NULL, 0);
    if (st == TUTTI_OK)
        st = tti_world_found(port, &backing, &join, name, "merge", store, group_out);
    gathering.made = st == TUTTI_OK ? tti_made_by(*group_out) : gathering.made;
    tti_gathering_end(&gathering, st);
    if (st == TUTTI_OK)
        (*group_out)->timed = opts->enable_timing;
    return st;
}

/* The same, as the flight recorder has it. */
static tutti_status meet_recorded(tutti_group *group, tutti_store *store, int size, const tutti_group_options *opts,
                                  tutti_group **group_out)
{
    const uint64_t record = tti_recorded_regrouping(group, TUTTI_RECORD_MERGE_GROUP, -1, size);
    tutti_status   st;

    tti_regroup_begins(group, TTI_DEED_MERGE_GROUP);
    st = meet(group, store, size, opts, group_out);
    tti_regroup_ends(group);
    return tti_recorded_regrouping_end(record, st);
}

static tutti_status merge(tutti_group *group, tutti_store *store, int size,
                          const tutti_group_options *opts, tutti_group **group_out)
{
    const char         *what = "merge_remote_group";
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *g = NULL;
    char               *desc = NULL;
    tutti_status        st = tti_group_resolve(group, what, &g);

    if (st == TUTTI_OK && g == NULL) {
        tti_non_member_begins();
        *group_out = TUTTI_NON_MEMBER;
        return TUTTI_OK;
    }
    if (st == TUTTI_OK)
        st = tti_joint_options_read(what, opts, &known);
    if (st == TUTTI_OK)
        st = check_merge(g, store, size);
    if (st == TUTTI_OK && known.desc != NULL && (desc = strdup(known.desc)) == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for a group's name");
    if (st == TUTTI_OK)
        st = meet_recorded(g, store, size, &known, group_out);
    if (st == TUTTI_OK)
        (*group_out)->desc = desc;
    else
        free(desc);
    return st;
}

tutti_status tutti_merge_remote_group(tutti_group *group, tutti_store *store, int size,
                                      const tutti_group_options *opts, tutti_group **group_out)
{
    tutti_status st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "merge_remote_group: group_out is NULL\n  next: pass where to put the group");
    st = merge(group, store, size, opts, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}
