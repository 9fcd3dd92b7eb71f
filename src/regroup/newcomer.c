/* SPDX-License-Identifier: BSD-3-Clause
 *
 * newcomer.c - a process that has just been started comes into a world that is at work.
 *
 * How     It asks, waits for a place, says that it is here, and founds the new world with the others (admission.h, grow.c).
 *         Who was passed over while it took its turn takes another one.
 * Fails   A replacement that waits for a place looks at its launcher's bulletin: when all ranks have ended, and all replacements
 *         that were let in, nobody is left to let it in. */
#include "regroup/admission.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "rendezvous/url.h"
#include "watch/bulletin.h"
#include <tutti/private.h>
#include <tutti/regroup.h>

enum { KEY_MAX = TTI_ADMISSION_KEY_MAX, PLACE_FIELDS = 4 };

/* Which process this is, for its launcher; never empty: an empty one could be written over. */
static void name_own_place(char *out, size_t bytes)
{
    int64_t node = 0, local = 0;

    snprintf(out, bytes, "newcomer");
    if (tti_env("TUTTI_REPLACEMENT") != NULL && tti_env_int("GROUP_RANK", 0, INT32_MAX, &node) == TUTTI_OK &&
        tti_env_int("LOCAL_RANK", 0, INT32_MAX, &local) == TUTTI_OK)
        snprintf(out, bytes, "%d %d", (int)node, (int)local);
}

/* Whether number t, which was let in or passed over, has ended, or goes by another number. */
static bool has_ended(const tti_bulletin *bulletin, const tti_admission *to, int64_t t)
{
    tutti_bytes place = { 0 };
    tti_ending  ending;
    char        key[KEY_MAX];
    int         node, local;
    bool        ended;

    snprintf(key, sizeof key, "ask/%" PRId64, t);
    ended = tti_store_get_until(to->folder, key, tti_store_grace(to->folder), &place) == TUTTI_OK &&
            (tti_is_passed_over(&place) ||
             (sscanf(place.data, "%d %d", &node, &local) == 2 && tti_bulletin_find_at(bulletin, node, local, &ending)));
    tutti_bytes_free(&place);
    return ended;
}

/* Whether there is nobody any more who could let number own, this process, in. */
static bool is_nobody_left(const tti_admission *to, int64_t own, int64_t deadline_ns)
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
static tutti_status await_place(tti_port *port, const tti_join *join, const tti_admission *to, int64_t own, tutti_bytes *place_out)
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

/* Write under key that this process asks; *passed_out: rank 0 was there first. A store that cannot compare_set lets rank 0 pass nobody
 * over, either. */
static tutti_status write_asking(const tti_admission *to, const char *key, bool *passed_out)
{
    const int64_t deadline_ns = to->join.deadline_ns;
    tutti_bytes   kept = { 0 };
    char          own[32];
    tutti_status  st;

    name_own_place(own, sizeof own);
    st = tti_store_compare_set_until(to->folder, key, "", 0, own, strlen(own), deadline_ns, &kept);
    *passed_out = st == TUTTI_OK && tti_is_passed_over(&kept);
    tutti_bytes_free(&kept);
    return st == TUTTI_E_UNSUPPORTED ? tti_store_set_until(to->folder, key, own, strlen(own), deadline_ns) : st;
}

/* Take a number, and ask by it; *will_out tells of this process's end from then on. */
static tutti_status take_turn(tti_admission *to, int64_t *number_out, tti_store_will **will_out)
{
    const int64_t deadline_ns = to->join.deadline_ns;
    char          key[KEY_MAX];
    bool          passed = false;
    tutti_status  st;

    do {
        tti_world_take_back_will(to->port, *will_out, TUTTI_OK);
        *will_out = NULL;
        st = tti_store_add_until(to->folder, "asked", 1, deadline_ns, number_out);
        if (st != TUTTI_OK)
            return st;
        snprintf(key, sizeof key, "gone/%" PRId64, *number_out);
        *will_out = tti_world_leave_ending(to->port, to->folder, key, -1, deadline_ns);
        snprintf(key, sizeof key, "ask/%" PRId64, *number_out);
        st = write_asking(to, key, &passed);
    } while (st == TUTTI_OK && passed);
    return st;
}

/* Take a number, and wait for a place; *will_out tells of this process's end meanwhile. */
static tutti_status ask(tti_admission *to, int64_t *number_out, tti_store_will **will_out)
{
    tutti_bytes   place = { 0 };
    tutti_status  st = take_turn(to, number_out, will_out);
    const int64_t number = *number_out;

    if (st == TUTTI_OK)
        st = await_place(to->port, &to->join, to, number, &place);
    if (st == TUTTI_OK && sscanf(place.data, "%" SCNd64 " %d %d %" SCNu32, &to->attempt, &to->join.rank, &to->size,
                                 &to->generation) != PLACE_FIELDS)
        st = tti_fail(TUTTI_E_STORE, "join_group: the place of number %" PRId64 " is damaged\n"
                                     "  next: see who else writes into this store below tutti/grow", number);
    if (st == TUTTI_OK && to->size == 0)
        st = tti_fail(TUTTI_E_REMOTE, "join_group: the members could not give this process a place: their call has failed\n"
                                      "  next: call it again when they call tutti_grow_group() again; rank 0 was told why");
    if (st == TUTTI_OK && (to->join.rank < 1 || to->join.rank >= to->size || to->size > TTI_WORLD_MAX))
        st = tti_fail(TUTTI_E_STORE, "join_group: a place as rank %d of %d is none\n"
                                     "  next: see who else writes into this store below tutti/grow", to->join.rank, to->size);
    tutti_bytes_free(&place);
    return st;
}

/* The same, with an eye on whether there is somebody to wait for. */
static tutti_status ask_the_living(tti_admission *to, int64_t *number_out, tti_store_will **will_out)
{
    tti_bulletin *bulletin = tti_env("TUTTI_REPLACEMENT") != NULL ? tti_bulletin_open() : NULL;
    tutti_status  st;

    tti_bulletin_heed(bulletin);
    tti_store_heed_news(bulletin != NULL ? tti_bulletin_news(bulletin) : NULL);
    st = ask(to, number_out, will_out);
    tti_store_heed_news(NULL);
    tti_bulletin_heed(NULL);
    tti_bulletin_close(bulletin);
    return st;
}

/* From here on the members wait for this process. */
static tutti_status say_here(tti_admission *to, int64_t number)
{
    char         key[KEY_MAX];
    tutti_status st = tti_admission_meet(to, NULL);

    snprintf(key, sizeof key, "here/%" PRId64, number);
    return st == TUTTI_OK ? tti_store_set_until(to->folder, key, "", 0, to->join.deadline_ns) : st;
}

/* This process comes no more, with st: nobody need give its number a place. Its last error stays. */
static void step_back(tti_admission *to, int64_t number, tutti_status st)
{
    char words[TTI_GROUP_WORDS_MAX];
    char key[KEY_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    snprintf(key, sizeof key, "gone/%" PRId64, number);
    (void)tti_store_set_until(to->folder, key, "", 0, tti_store_grace(to->folder));
    tti_fail(st, "%s", words);
}

static tutti_status come_in(tti_admission *to, const char *name, const char *backend, tutti_group **group_out)
{
    const tti_backing backing = { .text = backend };
    tti_store_will   *will = NULL;
    int64_t           number = 0;
    tutti_status      st = tti_admission_open("join_group", to->join.store, name, to);

    if (st == TUTTI_OK)
        st = ask_the_living(to, &number, &will);
    to->join.generation = to->generation;
    if (st == TUTTI_OK)
        st = say_here(to, number);
    if (st != TUTTI_OK && number > 0)
        step_back(to, number, st);
    tti_world_take_back_will(to->port, will, st);
    if (st == TUTTI_OK)
        st = tti_admission_found(to, &backing, group_out);
    tti_admission_close(to, st);
    return st;
}

/* Whether the backend can let anybody in, before anybody is looked for. */
static tutti_status check_backend(const char *backend)
{
    const tti_backing backing = { .text = backend };
    tutti_status      st = tti_backing_check_env(&backing, NULL);

    return st == TUTTI_OK ? tti_backing_check_members("join_group", &backing, TTI_NAME_ANOTHER) : st;
}

tutti_status tutti_join_group(const tutti_init_options *opts, const char *name, tutti_group **group_out)
{
    tutti_init_options    known = TUTTI_INIT_OPTIONS;
    tti_rendezvous_config config = { .port = tti_port_system(), .rank = 1, .world_size = 2, .is_newcomer = true };
    tti_admission         to = { .port = config.port };
    tutti_status          st = TUTTI_OK;

    if (group_out == NULL)
        return tti_fail(TUTTI_E_ARG, "join_group: group_out is NULL\n  next: pass where to put the group");
    if (opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_INIT_OPTIONS");
    config.url = known.init_method;
    config.store = known.store;
    config.store_host = known.store_host;
    config.timeout_ms = known.timeout_ms;
    if (st == TUTTI_OK)
        st = check_backend(known.backend);
    if (st == TUTTI_OK)
        st = tti_rendezvous(&config, &to.join);
    if (st != TUTTI_OK) {
        *group_out = TUTTI_NO_GROUP;
        return st;
    }
    st = come_in(&to, name, known.backend, group_out);
    tti_join_release(&to.join);
    if (st != TUTTI_OK) {
        *group_out = TUTTI_NO_GROUP;
        return st;
    }
    (*group_out)->timed = known.enable_timing;
    (*group_out)->bulletin = tti_env("TUTTI_REPLACEMENT") != NULL ? tti_bulletin_open() : NULL;
    (*group_out)->renumbered = true;
    tti_world_adopt(*group_out);
    return TUTTI_OK;
}
