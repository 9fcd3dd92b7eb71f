/* SPDX-License-Identifier: BSD-3-Clause
 *
 * newcomer.c - a process that has just been started comes into a world that is at work.
 *
 * How     It asks, waits for a place, says that it is here, and founds the new world with the others (admission.h, grow.c).
 *         Who was passed over while it took its turn takes another one.
 * Moved   The store that it was given may have been given up by the members, as its host was stopped: it says where they are now
 *         (store/store_moved.c). Who comes looks there first, and every LOOK_NS while it waits, and asks anew where it is sent.
 * Fails   Whoever a launcher has started looks at its bulletin while it waits: when nobody lives any more but those that ask, as this one
 *         does, nobody is left to let it in (living.c). */
#include "regroup/admission.h"
#include "regroup/living.h"
#include "regroup/unasked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "rendezvous/url.h"
#include "store/store_moved.h"
#include "watch/bulletin.h"
#include <tutti/private.h>
#include <tutti/regroup.h>

#define LOOK_NS (500 * TTI_MS)

enum { KEY_MAX = TTI_ADMISSION_KEY_MAX, PLACE_FIELDS = 4 };

/* Nobody is left who could let this process in. */
static tutti_status fail_alone(const tti_bulletin *bulletin)
{
    char       words[TTI_ENDING_TEXT_MAX] = "?";
    tti_ending last;

    if (tti_bulletin_last(bulletin, &last))
        tti_ending_words(&last, words);
    return tti_fail(TUTTI_E_PEER, "join_group: all members of the job have ended, its launcher reports, and nobody has let this process "
                                  "in; the last that has ended: %s\n"
                                  "  next: call tutti_grow_group() on the members before they end, or do not ask to come in any more",
                    words);
}

static tutti_status fail_late(const tti_admission *to, int64_t began_ns)
{
    return tti_fail(TUTTI_E_TIMEOUT, "join_group: nobody has let this process in within %" PRId64 " ms\n"
                                     "  next: check that the members call tutti_grow_group() with this name",
                    (tti_port_now(to->port) - began_ns) / TTI_MS);
}

/* Wait for the place of number own. *moved_out: the members are in another store now, and this one leads there. */
static tutti_status await_place(const tti_admission *to, int64_t own, tutti_bytes *place_out, bool *moved_out)
{
    const tti_bulletin *bulletin = tti_bulletin_heeded();
    const int64_t       deadline_ns = to->join.deadline_ns, began_ns = tti_port_now(to->port);
    bool                over = false;
    char                key[KEY_MAX], name[TTI_ASKER_MAX];
    int64_t             until_ns;
    tutti_status        st;

    snprintf(key, sizeof key, "place/%" PRId64, own);
    tti_living_name(name);
    *moved_out = false;
    for (;;) {
        until_ns = over ? tti_store_grace(to->folder) : tti_port_now(to->port) + LOOK_NS;
        st = tti_store_get_until(to->folder, key, until_ns < deadline_ns ? until_ns : deadline_ns, place_out);
        if (st != TUTTI_E_TIMEOUT)
            return st;
        if (over) /* it was not there when nobody was left to put it there */
            return fail_alone(bulletin);
        if (tti_port_now(to->port) >= deadline_ns)
            return fail_late(to, began_ns);
        (void)tti_store_catch_up(); /* before looking: what is put up from here on ends the next wait */
        st = tti_store_follow(to->join.store, deadline_ns, moved_out);
        if ((st != TUTTI_OK && st != TUTTI_E_TIMEOUT) || *moved_out)
            return st;
        over = tti_living_none(bulletin, to, name, deadline_ns);
    }
}

/* Write under key that this process asks; *passed_out: rank 0 was there first. A store that cannot compare_set lets rank 0 pass nobody
 * over, either. */
static tutti_status write_asking(const tti_admission *to, const char *key, bool *passed_out)
{
    const int64_t deadline_ns = to->join.deadline_ns;
    tutti_bytes   kept = { 0 };
    char          own[TTI_ASKER_MAX];
    tutti_status  st;

    tti_living_name(own);
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
    tutti_bytes  place = { 0 };
    bool         moved = false;
    int64_t      number;
    tutti_status st;

    do {
        st = take_turn(to, number_out, will_out);
        number = *number_out;
        if (st == TUTTI_OK)
            st = await_place(to, number, &place, &moved);
    } while (st == TUTTI_OK && moved);
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
    tti_bulletin *bulletin = tti_living_bulletin();
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
    bool              moved;
    tutti_status      st = tti_admission_open("join_group", to->join.store, name, to);

    if (st == TUTTI_OK)
        st = tti_store_follow(to->join.store, to->join.deadline_ns, &moved);
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
    tti_unasked_settle(*group_out);
    (*group_out)->renumbered = true;
    tti_world_adopt(*group_out);
    return TUTTI_OK;
}
