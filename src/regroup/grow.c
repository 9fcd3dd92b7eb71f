/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grow.c - processes that have just been started come into a world that is at work.
 *
 * Why     After a failure a job wants to be as large as before, without starting those anew that live.
 * How     Both sides meet in the store that the world was found with, in the folder "tutti/grow/<name>":
 *             "asked"      counts those that came: each one's number
 *             "ask/T"      written by number T behind it: "<host> <number there>" of a replacement that a launcher started
 *             "admitted"   numbers up to this one have been let in, or tried
 *             "attempts"   counts the calls of tutti_grow_group()
 *             "place/T"    "<attempt> <rank> <size> <generation>": what number T is to be
 *         Rank 0 takes the next numbers, waits until they have asked, tells them their places, and tells the
 *         members through the group, whose order the call is in. Then all found a world in the folder of the attempt:
 *         members first, newcomers behind them in the order in which they asked.
 * True    Until the new world is whole the old one is as it was. A number is used once: a newcomer that dies after it asked
 *         costs one attempt.
 * Fails   Who does not come is named by the world's own words. A replacement that waits for a place looks at its launcher's
 *         bulletin: when all ranks have ended, and all replacements that were let in, nobody is left to let it in. */
#include "group/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "rendezvous/url.h"
#include "store/store.h"
#include "watch/bulletin.h"
#include <tutti/private.h>
#include <tutti/regroup.h>

enum { KEY_MAX = 48, NAME_MAX_BYTES = 64, FIELDS = 3, PLACE_FIELDS = 4 };

/* What all that found the new world know. */
typedef struct admission {
    tutti_store *folder; /* tutti/grow/<name> */
    int64_t      attempt;
    int          size;
    uint32_t     generation;
} admission;

static tutti_status open_folder(const char *what, tutti_store *root, const char *name, tutti_store **folder_out)
{
    const char *known = name != NULL ? name : "default";
    char        prefix[NAME_MAX_BYTES + 16];

    if (known[0] == '\0' || strnlen(known, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return tti_fail(TUTTI_E_ARG, "%s: name is empty, or longer than %d bytes", what, NAME_MAX_BYTES);
    snprintf(prefix, sizeof prefix, "tutti/grow/%s", known);
    return tutti_prefix_store_open(prefix, root, folder_out);
}

/* Found the world of an attempt. */
static tutti_status found(tti_port *port, const tti_backing *backing, tti_join *join, const admission *to,
                          tutti_group **group_out)
{
    tutti_store *part = NULL;
    char         key[KEY_MAX];
    tutti_status st;

    join->world_size = to->size;
    snprintf(key, sizeof key, "%" PRId64, to->attempt);
    st = tutti_prefix_store_open(key, to->folder, &part);
    if (st == TUTTI_OK)
        st = tti_world_found(port, backing, join, "0:grow", "0", part, group_out);
    tutti_store_close(part);
    return st;
}

/* ---- members ---- */

/* How many to let in now: all that have asked, if n is 0. */
static tutti_status await_newcomers(const admission *to, int64_t first, int64_t deadline_ns, int *n)
{
    char         key[KEY_MAX];
    const char  *one = key;
    int64_t      asked = 0;
    tutti_status st = tti_store_add_until(to->folder, "asked", 0, deadline_ns, &asked);

    if (st != TUTTI_OK)
        return st;
    if (*n == 0)
        *n = asked > first ? (int)(asked - first) : 0;
    if (*n == 0)
        return TUTTI_OK;
    snprintf(key, sizeof key, "ask/%" PRId64, first + *n);
    st = tti_store_wait_until(to->folder, &one, 1, deadline_ns);
    if (st != TUTTI_E_TIMEOUT)
        return st;
    (void)tti_store_add_until(to->folder, "asked", 0, deadline_ns + TTI_SECOND, &asked);
    return tti_fail(TUTTI_E_TIMEOUT, "grow_group: %" PRId64 " of %d newcomers have asked to come in\n"
                                     "  next: check that they call tutti_join_group() with this store and name",
                    asked > first ? asked - first : 0, *n);
}

/* Rank 0's: who comes in, and where; size 0: nobody. */
static tutti_status admit(const tutti_group *group, admission *to, int n, int64_t deadline_ns)
{
    char         key[KEY_MAX], value[64];
    int64_t      first = 0;
    int          i;
    tutti_status st = tti_store_add_until(to->folder, "admitted", 0, deadline_ns, &first);

    if (st == TUTTI_OK)
        st = await_newcomers(to, first, deadline_ns, &n);
    if (st == TUTTI_OK && n > 0)
        st = tti_store_add_until(to->folder, "attempts", 1, deadline_ns, &to->attempt);
    if (st == TUTTI_OK && n > 0)
        st = tti_store_add_until(to->folder, "admitted", n, deadline_ns, &first);
    to->size = n > 0 ? group->size + n : 0;
    for (i = 0; i < n && st == TUTTI_OK; i++) {
        snprintf(key, sizeof key, "place/%" PRId64, first - n + 1 + i);
        snprintf(value, sizeof value, "%" PRId64 " %d %d %" PRIu32, to->attempt, group->size + i, to->size,
                 group->generation + 1);
        st = tti_store_set_until(to->folder, key, value, strlen(value), deadline_ns);
    }
    return st;
}

/* Rank 0 may take as long as this call's time-out says, not the group's: nothing else is under way there. */
static tutti_status broadcast_within(tutti_group *group, int64_t told[FIELDS], int64_t timeout_ms)
{
    const int64_t before_ms = atomic_exchange(&group->timeout_ms, timeout_ms);
    tutti_status  st = tutti_broadcast_in_group(TUTTI_SPAN(told, FIELDS), 0, group);

    (void)atomic_compare_exchange_strong(&group->timeout_ms, &timeout_ms, before_ms); /* unless it was set meanwhile */
    return st;
}

/* Rank 0 tells the others, also when it failed. */
static tutti_status agree(tutti_group *group, admission *to, int n, int64_t timeout_ms, int64_t deadline_ns)
{
    int64_t      told[FIELDS] = { 0, 0, 0 };
    char         words[TTI_GROUP_WORDS_MAX] = "";
    tutti_status st = TUTTI_OK, told_st;

    if (group->rank == 0) {
        st = admit(group, to, n, deadline_ns);
        if (st != TUTTI_OK)
            snprintf(words, sizeof words, "%s", tutti_last_error());
        told[0] = (int64_t)st;
        told[1] = to->attempt;
        told[2] = to->size;
    }
    told_st = broadcast_within(group, told, timeout_ms);
    if (st != TUTTI_OK)
        return tti_fail(st, "%s", words);
    if (told_st != TUTTI_OK)
        return told_st;
    to->attempt = told[1];
    to->size = (int)told[2];
    if (told[0] != (int64_t)TUTTI_OK)
        return tti_fail((tutti_status)told[0], "grow_group: rank 0 could not let anybody in, and says why");
    return TUTTI_OK;
}

static tutti_status check_grow(const tutti_group *group, int n_new)
{
    if (group->world != group)
        return tti_fail(TUTTI_E_UNSUPPORTED, "grow_group: group '%s' is no world\n"
                                             "  next: let them into the world, and make the group anew", group->name);
    if (n_new < 0)
        return tti_fail(TUTTI_E_ARG, "grow_group: n_new is %d", n_new);
    if (tti_group_calls_us(group))
        return tti_fail(TUTTI_E_STATE, "grow_group: called by a hook, or by a callback of the same world");
    if (tti_group_is_busy((tutti_group *)(uintptr_t)group))
        return tti_fail(TUTTI_E_STATE, "grow_group on group '%s': operations are under way\n  next: wait for them",
                        group->name);
    return TUTTI_OK;
}

/* The new world in the place of the old one. */
static void replace(tutti_group *old, tutti_group *group, const tutti_group_options *opts)
{
    group->timed = old->timed || opts->enable_timing;
    tutti_store_close(group->root);
    group->root = tutti_store_retain(old->root);
    group->root_server = tutti_store_retain(old->root_server);
    tti_world_succeed(old, group);
    tti_group_destroy(old);
}

/* The others wait for rank 0 in a broadcast: it must be back before they lose patience. */
static int64_t waits_until(tti_port *port, int64_t deadline_ns)
{
    const int64_t now_ns = tti_port_now(port);

    return deadline_ns == TTI_FOREVER ? deadline_ns : now_ns + (deadline_ns - now_ns) / 4 * 3;
}

static tutti_status grow(tutti_group *old, const char *name, int n_new, const tutti_group_options *opts,
                         tutti_group **group_out)
{
    const tti_backing backing = tti_backing_like(old, opts);
    tti_join          join = { .store = old->root, .user_store = true, .rank = old->rank,
                               .timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : old->timeout_ms,
                               .generation = old->generation + 1 };
    tti_port         *port = old->runner->port;
    admission         to = { .size = 0 };
    tutti_group      *group = NULL;
    tutti_status      st = open_folder("grow_group", old->root, name, &to.folder);

    join.deadline_ns = tti_deadline(port, join.timeout_ms, -1);
    snprintf(join.listen_host, sizeof join.listen_host, "%s", old->listen_host);
    if (st == TUTTI_OK)
        st = agree(old, &to, n_new, join.timeout_ms, waits_until(port, join.deadline_ns));
    if (st == TUTTI_OK && to.size > 0)
        st = found(port, &backing, &join, &to, &group);
    tutti_store_close(to.folder);
    if (st != TUTTI_OK)
        return st;
    if (group != NULL)
        replace(old, group, opts);
    *group_out = group != NULL ? group : old;
    return TUTTI_OK;
}

tutti_status tutti_grow_group(tutti_group *group, const char *name, int n_new, const tutti_group_options *opts,
                              tutti_group **group_out)
{
    tutti_group_options known = TUTTI_GROUP_OPTIONS;
    tutti_group        *old = NULL;
    tutti_status        st;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "grow_group: group_out is NULL");
    st = tti_group_resolve(group, "grow_group", &old);
    if (st == TUTTI_OK && old == NULL) {
        *group_out = TUTTI_NON_MEMBER;
        return TUTTI_OK;
    }
    if (st == TUTTI_OK)
        st = tti_joint_options_read("grow_group", opts, &known);
    if (st == TUTTI_OK)
        st = check_grow(old, n_new);
    if (st == TUTTI_OK)
        st = grow(old, name, n_new, &known, group_out);
    if (st != TUTTI_OK)
        *group_out = TUTTI_NO_GROUP;
    return st;
}

/* ---- newcomers ---- */

/* Which process this is, for its launcher; "" if it is no replacement. */
static void name_own_place(char *out, size_t bytes)
{
    int64_t node = 0, local = 0;

    out[0] = '\0';
    if (tti_env("TUTTI_REPLACEMENT") != NULL && tti_env_int("GROUP_RANK", 0, INT32_MAX, &node) == TUTTI_OK &&
        tti_env_int("LOCAL_RANK", 0, INT32_MAX, &local) == TUTTI_OK)
        snprintf(out, bytes, "%d %d", (int)node, (int)local);
}

/* Whether number t, which was let in, has ended. */
static bool has_ended(const tti_bulletin *bulletin, const admission *to, int64_t t)
{
    tutti_bytes place = { 0 };
    tti_ending  ending;
    char        key[KEY_MAX];
    int         node, local;
    bool        ended;

    snprintf(key, sizeof key, "ask/%" PRId64, t);
    ended = tti_store_get_until(to->folder, key, tti_store_grace(to->folder), &place) == TUTTI_OK &&
            sscanf(place.data, "%d %d", &node, &local) == 2 && tti_bulletin_find_at(bulletin, node, local, &ending);
    tutti_bytes_free(&place);
    return ended;
}

/* Whether there is nobody any more who could let number own, this process, in. */
static bool is_nobody_left(const admission *to, int64_t own, int64_t deadline_ns)
{
    const tti_bulletin *bulletin = tti_bulletin_heeded();
    int64_t             n = 0, t;

    (void)tti_store_catch_up(); /* before looking: what is put up from here on ends the next wait */
    if (bulletin == NULL || !tti_bulletin_all_ended(bulletin) ||
        tti_store_add_until(to->folder, "admitted", 0, deadline_ns, &n) != TUTTI_OK)
        return false;
    for (t = 1; t <= n; t++)
        if (t != own && !has_ended(bulletin, to, t))
            return false;
    return true;
}

/* Wait for the place of number own. */
static tutti_status await_place(tti_port *port, const tti_join *join, const admission *to, int64_t own, tutti_bytes *place_out)
{
    const int64_t began_ns = tti_port_now(port);
    bool          over = false;
    char          key[KEY_MAX];
    tutti_status  st;

    snprintf(key, sizeof key, "place/%" PRId64, own);
    while ((st = tti_store_get_until(to->folder, key, join->deadline_ns, place_out)) == TUTTI_E_TIMEOUT &&
           tti_port_now(port) < join->deadline_ns) {
        if (over) /* it was not there when nobody was left to put it there */
            return tti_fail(TUTTI_E_PEER, "join_group: all members of the job have ended, its launcher reports, and nobody has let "
                                          "this process in\n"
                                          "  next: call tutti_grow_group() on the members, or start no replacements");
        over = is_nobody_left(to, own, join->deadline_ns);
        if (over)
            tti_store_heed_news(tti_bulletin_news(tti_bulletin_heeded())); /* from the beginning: the next wait is a look */
    }
    if (st == TUTTI_E_TIMEOUT)
        return tti_fail(TUTTI_E_TIMEOUT, "join_group: nobody has let this process in within %" PRId64 " ms\n"
                                         "  next: check that the members call tutti_grow_group() with this name",
                        (tti_port_now(port) - began_ns) / TTI_MS);
    return st;
}

/* Take a number, and wait for a place. */
static tutti_status ask(tti_port *port, const tti_join *join, admission *to, int *rank_out)
{
    tutti_bytes   place = { 0 };
    char          key[KEY_MAX], own[32];
    int64_t       number = 0;
    tutti_status  st = tti_store_add_until(to->folder, "asked", 1, join->deadline_ns, &number);

    name_own_place(own, sizeof own);
    snprintf(key, sizeof key, "ask/%" PRId64, number);
    if (st == TUTTI_OK)
        st = tti_store_set_until(to->folder, key, own, strlen(own), join->deadline_ns);
    if (st == TUTTI_OK)
        st = await_place(port, join, to, number, &place);
    if (st == TUTTI_OK && sscanf(place.data, "%" SCNd64 " %d %d %" SCNu32, &to->attempt, rank_out, &to->size,
                                 &to->generation) != PLACE_FIELDS)
        st = tti_fail(TUTTI_E_STORE, "join_group: the place of number %" PRId64 " is damaged", number);
    if (st == TUTTI_OK && (*rank_out < 1 || *rank_out >= to->size || to->size > TTI_WORLD_MAX))
        st = tti_fail(TUTTI_E_STORE, "join_group: a place as rank %d of %d is none", *rank_out, to->size);
    tutti_bytes_free(&place);
    return st;
}

/* The same, with an eye on whether there is somebody to wait for. */
static tutti_status ask_the_living(tti_port *port, const tti_join *join, admission *to, int *rank_out)
{
    tti_bulletin *bulletin = tti_env("TUTTI_REPLACEMENT") != NULL ? tti_bulletin_open() : NULL;
    tutti_status  st;

    tti_bulletin_heed(bulletin);
    tti_store_heed_news(bulletin != NULL ? tti_bulletin_news(bulletin) : NULL);
    st = ask(port, join, to, rank_out);
    tti_store_heed_news(NULL);
    tti_bulletin_heed(NULL);
    tti_bulletin_close(bulletin);
    return st;
}

static tutti_status come_in(tti_port *port, tti_join *join, const char *name, const char *backend, tutti_group **group_out)
{
    const tti_backing backing = { .text = backend };
    admission         to = { .size = 0 };
    tutti_status      st = tti_backing_check(&backing);

    if (st == TUTTI_OK)
        st = open_folder("join_group", join->store, name, &to.folder);
    if (st == TUTTI_OK)
        st = ask_the_living(port, join, &to, &join->rank);
    join->generation = to.generation;
    if (st == TUTTI_OK)
        st = found(port, &backing, join, &to, group_out);
    tutti_store_close(to.folder);
    return st;
}

tutti_status tutti_join_group(const tutti_init_options *opts, const char *name, tutti_group **group_out)
{
    tutti_init_options    known = TUTTI_INIT_OPTIONS;
    tti_rendezvous_config config = { .port = tti_port_system(), .rank = 1, .world_size = 2 }; /* somebody that serves nothing */
    tti_join              join;
    tutti_status          st = TUTTI_OK;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "join_group: group_out is NULL");
    if (opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_INIT_OPTIONS");
    config.url = known.init_method;
    config.store = known.store;
    config.timeout_ms = known.timeout_ms;
    if (st == TUTTI_OK)
        st = tti_rendezvous(&config, &join);
    if (st != TUTTI_OK) {
        *group_out = TUTTI_NO_GROUP;
        return st;
    }
    st = come_in(config.port, &join, name, known.backend, group_out);
    tti_join_release(&join);
    if (st != TUTTI_OK) {
        *group_out = TUTTI_NO_GROUP;
        return st;
    }
    (*group_out)->timed = known.enable_timing;
    tti_world_adopt(*group_out);
    return TUTTI_OK;
}
