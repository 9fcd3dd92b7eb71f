/* SPDX-License-Identifier: BSD-3-Clause
 *
 * route.c - which backend the spans of a device go to.
 *
 * How     A group has a row for each kind of device: a name, and what was found for it. Rows of one table
 *         share one backend. The first row that has a name, the CPU's if it has one, is that of the control
 *         traffic: barriers and whatever has no span.
 * True    The backend of the control traffic is there, or there is no group. Others may be plug-ins that
 *         are missing: that is an error when a span of their device comes, so that a program that names
 *         backends for all devices runs where only some are.
 *         Rows are written while a group is made, and only read after.
 * Divided A backend may make the parts of a group out of what that has, if all members come to it: each to create, or to sit_out.
 *         So whoever fails on the way to create says so there, also if it has not come as far as a group. What comes to create says
 *         it by itself. */
#include "group/asked.h"
#include "group/make.h"
#include "group/refusals.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "backend/registry.h"
#include "base/last.h"
#include <tutti/backends.h>
#include <tutti/private.h>

/* ---- finding ---- */

static void write_texts(tutti_group *group, const char *text)
{
    tti_device_map map;
    size_t         i;

    for (i = 0; i < TTI_DEVICES; i++)
        memcpy(map.names[i], group->routes[i].name, sizeof map.names[i]);
    tti_device_map_write(&map, group->backend_config);
    for (i = 0; text[i] != '\0' && i + 1 < sizeof group->backend_text; i++)
        group->backend_text[i] = (char)tolower((unsigned char)text[i]);
    group->backend_text[i] = '\0';
}

/* Look up every row's table; the first one that has a name must be there. */
static tutti_status look_up(tutti_group *group)
{
    tti_route   *route;
    tutti_status st;
    int          i;

    for (i = 0; i < TTI_DEVICES; i++) {
        route = &group->routes[i];
        if (route->name[0] == '\0')
            continue;
        st = tti_backend_find(route->name, &route->ops);
        if (group->ops == NULL && st != TUTTI_OK)
            return st;
        if (group->ops == NULL)
            group->ops = route->ops;
    }
    return TUTTI_OK;
}

static void take_ops(tutti_group *group, const tutti_backend_ops *ops)
{
    snprintf(group->routes[TUTTI_CPU].name, TTI_BACKEND_NAME_MAX, "%s", ops->name);
    group->routes[TUTTI_CPU].ops = group->ops = ops;
    write_texts(group, ops->name);
}

static void take_from(tutti_group *group, const tutti_group *like)
{
    int i;

    for (i = 0; i < TTI_DEVICES; i++) {
        group->routes[i] = like->routes[i];
        group->routes[i].backend = NULL;
        group->routes[i].store = NULL;
    }
    group->ops = like->ops;
    memcpy(group->backend_text, like->backend_text, sizeof group->backend_text);
    memcpy(group->backend_config, like->backend_config, sizeof group->backend_config);
}

tutti_status tti_routes_find(tutti_group *group, const tti_backing *backing)
{
    tti_device_map map;
    tutti_status   st;
    int            i;

    if (backing->like != NULL || backing->ops != NULL) {
        if (backing->like != NULL)
            take_from(group, backing->like);
        else
            take_ops(group, backing->ops);
        return TUTTI_OK;
    }
    st = tti_device_map_parse(backing->text, &map);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < TTI_DEVICES; i++)
        memcpy(group->routes[i].name, map.names[i], sizeof map.names[i]);
    write_texts(group, backing->text != NULL ? backing->text : TTI_BACKEND_DEFAULT);
    return look_up(group);
}

tti_backing tti_backing_like(const tutti_group *like, const tutti_group_options *opts)
{
    return (tti_backing){ .like = opts->backend == NULL ? like : NULL, .text = opts->backend };
}

tutti_status tti_backing_check(const tti_backing *backing)
{
    tutti_group probe = { .size = 0 };

    return tti_routes_find(&probe, backing);
}

tutti_status tti_routes_check_env(const tutti_group *group, tutti_store *store)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < TTI_DEVICES && st == TUTTI_OK; i++)
        if (group->routes[i].ops != NULL)
            st = tti_backend_check_env(group->routes[i].ops, store);
    return st;
}

tutti_status tti_backing_check_env(const tti_backing *backing, tutti_store *store)
{
    tutti_group  probe = { .size = 0 };
    tutti_status st = tti_routes_find(&probe, backing);

    return st == TUTTI_OK ? tti_routes_check_env(&probe, store) : st;
}

tutti_status tti_backing_check_members(const char *what, const tti_backing *backing, const char *next)
{
    tutti_group  probe = { .size = 0 };
    tutti_status st = tti_routes_find(&probe, backing);
    int          i;

    for (i = 0; i < TTI_DEVICES && st == TUTTI_OK; i++)
        if (probe.routes[i].ops != NULL && tti_backend_is_fixed(probe.routes[i].ops))
            st = tti_fail(TUTTI_E_UNSUPPORTED,
                          "%s: backend '%s' has worlds of all ranks that the job was started with, and no others\n  next: %s", what,
                          probe.routes[i].ops->name, next);
    return st;
}

/* ---- dividing ---- */

/* The backend of this row, if parts of the group may be split from it; NULL: there is none. */
static tutti_backend *splittable(const tutti_group *from, int device)
{
    const tti_route *route = &from->routes[device];

    if (route->ops == NULL || tti_backend_inside(route->ops)->sit_out == NULL)
        return NULL;
    return tti_backend_inner(route->ops, route->backend);
}

/* The backend that the one of this row may be split from; NULL: there is none. */
static tutti_backend *splits_from(const tutti_group *group, int device)
{
    const tutti_group       *from = group->division.from;
    const tutti_backend_ops *ops = group->routes[device].ops;

    if (from == NULL || ops == NULL || from->routes[device].ops == NULL ||
        tti_backend_inside(ops) != tti_backend_inside(from->routes[device].ops))
        return NULL;
    return splittable(from, device);
}

bool tti_routes_divide(const tutti_group *from)
{
    int i;

    for (i = 0; i < TTI_DEVICES; i++)
        if (splittable(from, i) != NULL)
            return true;
    return false;
}

/* The first row with the same table. */
static int first_like(const tutti_group *group, int device)
{
    int i = 0;

    while (group->routes[i].ops != group->routes[device].ops)
        i++;
    return i;
}

/* From a row on. All are told, whatever one says. */
static tutti_status sit_out_from(const tutti_group *group, int first, int64_t timeout_ms, bool has_failed)
{
    const tutti_backend_ops *ops;
    tutti_backend           *from;
    tutti_status             st = TUTTI_OK, one;
    uint32_t                 said;
    int                      i;

    for (i = first; i < TTI_DEVICES; i++) {
        from = splits_from(group, i);
        if (from == NULL || first_like(group, i) != i)
            continue;
        ops = tti_backend_inside(group->routes[i].ops);
        said = tti_words_said();
        one = tti_asked_status(ops, "sit_out", ops->sit_out(from, group->division.step, timeout_ms, has_failed), said);
        st = st == TUTTI_OK ? one : st;
    }
    return st;
}

static void leave_division(const tutti_group *group, int first)
{
    char words[TTI_GROUP_WORDS_MAX];

    if (group->division.from == NULL || !tti_routes_divide(group->division.from))
        return;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    (void)sit_out_from(group, first, 0, true);
    tti_fail(TUTTI_E_STATE, "%s", words); /* the words that count, whatever the backends have said */
}

void tti_routes_leave(tutti_group *from, uint32_t step)
{
    tutti_group nobody = { .division = { .from = from, .step = step } }; /* a part with the same backends, and no members */

    take_from(&nobody, from);
    leave_division(&nobody, 0);
}

tutti_status tti_routes_sit_out(tutti_group *group, int64_t timeout_ms, bool has_failed)
{
    tutti_status st = TUTTI_OK;

    if (has_failed)
        leave_division(group, 0);
    else
        st = sit_out_from(group, 0, timeout_ms, false);
    group->division.from = NULL;
    return st;
}

/* Whether asynchronous calls have our threads run code of the program's, or of a plug-in's. */
static bool lends(const tti_route *route)
{
    return !tti_backend_is_own(route->ops);
}

static tutti_status create(tti_route *route, const tutti_backend_config *config)
{
    tutti_status st;

    if (lends(route))
        tti_lending_begins();
    st = tti_asked_create(route->ops, config, &route->backend);
    if (st != TUTTI_OK && lends(route))
        tti_lending_ends();
    return st;
}

static void destroy(tti_route *route)
{
    route->ops->destroy(route->backend);
    if (lends(route))
        tti_lending_ends();
}

/* Make the backend of one row, with keys below "cpu/". n_asked_out: of the rows, written when the backend hears of it. */
static tutti_status open_one(tutti_group *group, int device, tutti_backend_config *config, int *n_asked_out)
{
    const tutti_group *carrier = group->carrier;
    const tti_route   *carrying = &carrier->routes[device];
    tti_route         *route = &group->routes[device];
    tti_refusals      *refusals = NULL;
    char               prefix[16];
    tutti_status       st;

    snprintf(prefix, sizeof prefix, "%s/", tti_device_name((tutti_device_type)device));
    st = tutti_prefix_store_open(prefix, group->store, &route->store);
    if (st != TUTTI_OK)
        return st;
    config->store = route->store;
    route->compares = tti_backend_inside(route->ops) != route->ops;
    config->ops = route->ops;
    config->parent = NULL;
    config->split_from = splits_from(group, device);
    config->split_step = group->division.step;
    config->split_color = group->division.color;
    if (carrier != group && carrying->ops != NULL && tti_backend_inside(carrying->ops) == tti_backend_inside(route->ops))
        config->parent = tti_backend_inner(carrying->ops, carrying->backend);
    if (!config->lazy && !tti_backend_is_own(route->ops))
        refusals = tti_refusals_begin(group, route->store, route->ops == carrying->ops, config->timeout_ms);
    *n_asked_out = device + 1;
    return tti_refusals_end(refusals, create(route, config));
}

tutti_status tti_routes_open(tutti_group *group, tutti_backend_config *config)
{
    tutti_status st = TUTTI_OK;
    int          i, like, n_asked = 0;

    for (i = 0; i < TTI_DEVICES && st == TUTTI_OK; i++) {
        if (group->routes[i].ops == NULL)
            continue;
        group->routes[i].is_foreign = lends(&group->routes[i]);
        like = first_like(group, i);
        if (like == i)
            st = open_one(group, i, config, &n_asked);
        else
            group->routes[i].backend = group->routes[like].backend;
        if (group->routes[i].ops == group->ops)
            group->backend = group->routes[i].backend;
    }
    if (st != TUTTI_OK) {
        leave_division(group, n_asked); /* a backend that was asked has said by itself that it failed */
        tti_routes_close(group);
    }
    group->division.from = NULL;
    return st;
}

/* Whether a row has a backend, and no earlier one has the same. */
static bool owns(const tutti_group *group, int device)
{
    return group->routes[device].backend != NULL && first_like(group, device) == device;
}

void tti_routes_close(tutti_group *group)
{
    int i;

    for (i = TTI_DEVICES - 1; i >= 0; i--) { /* a row that shares lies behind the one that owns */
        if (owns(group, i))
            destroy(&group->routes[i]);
        group->routes[i].backend = NULL;
        tutti_store_close(group->routes[i].store);
        group->routes[i].store = NULL;
    }
    group->backend = NULL;
}

void tti_routes_end(const tutti_group *group, tutti_status st)
{
    const tti_route *route;
    int              i;

    for (i = 0; i < TTI_DEVICES; i++) {
        route = &group->routes[i];
        if (!owns(group, i))
            continue;
        if (st != TUTTI_OK && route->ops->fail != NULL)
            route->ops->fail(route->backend, st);
        else
            route->ops->abort(route->backend);
    }
}

/* ---- asking ---- */

tutti_device_type tti_control_device(const tutti_group *group)
{
    int i = 0;

    while (group->routes[i].ops != group->ops)
        i++;
    return (tutti_device_type)i;
}

tutti_status tti_route_check(const tutti_group *group, const char *what, const char *name,
                             tutti_device_type device)
{
    const tti_route         *route;
    const tutti_backend_ops *ops;

    if ((unsigned)device >= TTI_DEVICES)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s has device type %d, which is none", what,
                        group->name, name, (int)device);
    route = &group->routes[device];
    if (route->ops != NULL)
        return TUTTI_OK;
    if (route->name[0] != '\0')
        return tti_backend_find(route->name, &ops); /* says which plug-in is missing */
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "%s on group '%s': %s is memory of '%s', and the group has no backend for '%s' (%s)\n"
                    "  next: copy it to the host first, or name a backend when the group is made",
                    what, group->name, name, tti_device_name(device), tti_device_name(device),
                    group->backend_config);
}

tutti_status tti_messages_check(const tutti_group *group, const char *what, tutti_device_type device)
{
    const tutti_backend_ops *ops = group->routes[device].ops;

    if (tti_backend_has_messages(ops))
        return TUTTI_OK;
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "%s on group '%s': it is made of messages, and backend '%s' has none\n  next: use another backend for it",
                    what, group->name, ops->name);
}

const char *tutti_get_backend(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->backend_text : NULL;
}

const char *tutti_get_backend_config(const tutti_group *group)
{
    const tutti_group *g = tti_group_peek(group);

    return g != NULL ? g->backend_config : NULL;
}
