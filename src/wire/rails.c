/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rails.c - names of interfaces to their addresses; the design stands in rails.h. */
#include "wire/rails.h"

#include "base/env.h"
#include "wire/interfaces.h"
#include "wire/ports.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { INTERFACES_MAX = 256, SHOWN_MAX = 240, WHY_MAX = 400 };

__attribute__((format(printf, 2, 3))) static tutti_status bad_names(const tti_named *named, const char *format, ...)
{
    char    why[WHY_MAX];
    va_list list;

    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    return tti_fail(TUTTI_E_ARG, "%s is '%.100s', which is a connection by each of %d interfaces: %s\n"
                                 "  next: name those that are there and up, in the same order on all hosts, or only one",
                    named->variable, named->value, named->n, why);
}

/* What has one address for all leaves none for each. */
static tutti_status check_alone(const tti_named *named)
{
    bool         any = false;
    tutti_status st = tti_listens_any(&any);

    if (st == TUTTI_OK && (any || tti_env("TUTTI_ADVERTISE") != NULL))
        return bad_names(named, "others are told an address for each, and %s says one for all",
                         any ? "TUTTI_LISTEN=any" : "TUTTI_ADVERTISE");
    return st;
}

static tutti_status check_names(const tti_named *named)
{
    int i, k;

    if (named->n > TTI_RAILS_MAX)
        return bad_names(named, "there may be %d", TTI_RAILS_MAX);
    for (i = 0; i < named->n; i++)
        for (k = 0; k < i; k++)
            if (strcmp(named->name[i], named->name[k]) == 0)
                return bad_names(named, "'%s' is named twice", named->name[i]);
    return TUTTI_OK;
}

/* How good an address is; 0: it is none of an interface of that name that is up. */
static int points_of(const tti_interface *face, const char *name, tti_addr_family family)
{
    if (strcmp(face->name, name) != 0 || !face->up)
        return 0;
    return 1 + (face->addr.family == family ? 2 : 0) + !tti_addr_is_link_local(&face->addr);
}

static tutti_status find_rail(const tti_named *named, int i, const tti_interface *faces, int n, tti_addr_family family,
                              tti_rail *rail_out)
{
    const char *name = named->name[i];
    char        shown[SHOWN_MAX];
    bool        is_there = false;
    int         k, points, most = 0;

    for (k = 0; k < n; k++) {
        is_there = is_there || strcmp(faces[k].name, name) == 0;
        points = points_of(&faces[k], name, family);
        if (points <= most)
            continue;
        most = points;
        memcpy(rail_out->name, faces[k].name, sizeof rail_out->name);
        rail_out->addr = faces[k].addr;
    }
    if (most > 0)
        return TUTTI_OK;
    if (is_there)
        return bad_names(named, "interface '%s' is down", name);
    return bad_names(named, "no interface with an address is called '%s'; there are: %s", name,
                     tti_interfaces_text(faces, n, shown, sizeof shown));
}

tutti_status tti_rails_wanted(tti_port *port, tti_addr_family family, tti_rails *rails_out)
{
    tti_interface faces[INTERFACES_MAX];
    tti_named     named;
    tti_rails     rails = { .n = 0 };
    tutti_status  st = tti_interfaces_named(&named);
    int           n = 0;

    *rails_out = rails;
    if (st != TUTTI_OK || named.n == 0 || port->ops->interfaces == NULL)
        return st;
    st = check_names(&named);
    if (st == TUTTI_OK)
        st = check_alone(&named);
    if (st == TUTTI_OK && (n = port->ops->interfaces(port, faces, INTERFACES_MAX)) < 0)
        st = tti_fail_errno_as(TUTTI_E_NETWORK, -n, "cannot list the interfaces of this host");
    for (; st == TUTTI_OK && rails.n < named.n; rails.n++)
        st = find_rail(&named, rails.n, faces, n, family, &rails.rail[rails.n]);
    if (st == TUTTI_OK)
        *rails_out = rails;
    return st;
}

const char *tti_rails_text(const tti_rails *rails, char out[TTI_RAILS_TEXT_MAX])
{
    size_t used = 0;
    int    i;

    out[0] = '\0';
    for (i = 0; i < rails->n; i++)
        used += (size_t)snprintf(out + used, TTI_RAILS_TEXT_MAX - used, "%s%s", i > 0 ? ", " : "", rails->rail[i].name);
    return out;
}
