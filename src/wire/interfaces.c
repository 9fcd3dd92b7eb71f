/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interfaces.c - choosing among this host's addresses.
 *
 * Why     A host has many: of networks that the others are not in, of bridges that every host has under
 *         the same number, of itself alone. Only one that the others reach is of use to them.
 * How     A list of rules is matched with what the kernel lists; what matches gets points, most points win,
 *         the first among equals. The rules are those that users of NCCL know: beginnings of names, '=' for
 *         whole names, '^' for exclusion. */
#include "wire/interfaces.h"

#include "base/env.h"
#include "wire/rails.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { INTERFACES_MAX = 256, RULES_MAX = TTI_NAMED_MAX, RULE_MAX = TTI_NAMED_BYTES, SHOWN_MAX = 200 };

typedef struct rule {
    char     text[RULE_MAX];
    bool     not;
    bool     whole;
    bool     numeric;
    tti_addr addr; /* numeric */
} rule;

typedef struct rules {
    const char *variable;
    const char *value;
    rule        list[RULES_MAX];
    int         n;
    bool        only_nots;
} rules;

/* ---- reading the list ---- */

static tutti_status bad_setting(const rules *all, const char *why)
{
    return tti_fail(TUTTI_E_ARG,
                    "%s is '%.100s': %s\n"
                    "  next: name interfaces ('eth,ib'), whole names ('=eth0'), exclusions ('^docker,lo') "
                    "or an address",
                    all->variable, all->value, why);
}

/* One entry of the list; marks of the first hold for all. */
static tutti_status read_rule(rules *all, const char *text, size_t length, bool whole_only)
{
    rule *r = &all->list[all->n];
    bool  seen[2] = { false, false }; /* '=' and '^' */

    if (all->n == RULES_MAX)
        return bad_setting(all, "that are too many entries");
    *r = (rule){ .whole = whole_only };
    if (all->n > 0) {
        r->not = all->list[0].not;
        r->whole = all->list[0].whole;
    }
    for (; length > 0 && (*text == '^' || *text == '='); text++, length--) {
        if (seen[*text == '^'])
            return bad_setting(all, *text == '^' ? "an entry has '^' twice" : "an entry has '=' twice");
        seen[*text == '^'] = true;
        *(*text == '^' ? &r->not : &r->whole) = true;
    }
    if (length == 0 || length >= sizeof r->text)
        return bad_setting(all, "an entry is empty or too long");
    memcpy(r->text, text, length);
    r->numeric = tti_addr_parse(r->text, 0, &r->addr) == TUTTI_OK;
    all->only_nots = all->only_nots && r->not;
    all->n++;
    return TUTTI_OK;
}

static tutti_status read_rules(rules *all)
{
    const bool   gloo = strcmp(all->variable, "GLOO_SOCKET_IFNAME") == 0;
    const char  *at = all->value;
    tutti_status st = TUTTI_OK;

    all->only_nots = true;
    while (st == TUTTI_OK) {
        const size_t length = strcspn(at, ",");

        st = read_rule(all, at, length, gloo);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return st;
}

/* ---- matching ---- */

static bool same_ip(const tti_addr *a, const tti_addr *b)
{
    return a->family == b->family && memcmp(a->ip, b->ip, a->family == TTI_ADDR_IP4 ? 4 : 16) == 0;
}

static bool matches(const rule *r, const tti_interface *face)
{
    if (r->numeric)
        return same_ip(&r->addr, &face->addr);
    if (r->whole)
        return strcmp(r->text, face->name) == 0;
    return strncmp(r->text, face->name, strlen(r->text)) == 0;
}

bool tti_addr_is_link_local(const tti_addr *addr)
{
    if (addr->family == TTI_ADDR_IP4)
        return addr->ip[0] == 169 && addr->ip[1] == 254;
    return addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80;
}

/* How well the rules like it: 0 not at all; whole names more than beginnings, early rules more than late. */
static int points_by_rules(const rules *all, const tti_interface *face)
{
    int points = all->only_nots && !face->loopback ? 1 : 0;
    int i;

    for (i = 0; i < all->n; i++) {
        const rule *r = &all->list[i];
        const bool  named = r->numeric || strcmp(r->text, face->name) == 0;

        if (!matches(r, face))
            continue;
        if (r->not)
            return 0;
        if (points == 0 && (named || !face->loopback))
            points = 2 * (RULES_MAX - i) + named;
    }
    return points;
}

/* to, local: where packets are to go and the address that they would leave from; NULL: not known. */
static int points_of(const rules *all, const tti_interface *face, const tti_addr *to, const tti_addr *local)
{
    const tti_addr_family family = to != NULL ? to->family : TTI_ADDR_IP4;
    int                   points = points_by_rules(all, face);

    if (points == 0 || !face->up)
        return 0;
    points = points * 4 + (face->addr.family == family ? 2 : 0) + !tti_addr_is_link_local(&face->addr);
    return local != NULL && same_ip(local, &face->addr) ? points + 100000 : points;
}

/* Whether face i is the first of its name: the system lists one for each address, by family. */
static bool is_new(const tti_interface *faces, int i)
{
    int earlier = 0;

    while (earlier < i && strcmp(faces[earlier].name, faces[i].name) != 0)
        earlier++;
    return earlier == i;
}

const char *tti_interfaces_text(const tti_interface *faces, int n, char *out, size_t bytes)
{
    size_t used = 0;
    int    i;

    out[0] = '\0';
    for (i = 0; i < n && used + TTI_INTERFACE_NAME_MAX + sizeof ",  (down)" < bytes; i++)
        if (is_new(faces, i))
            used += (size_t)snprintf(out + used, bytes - used, "%s%s%s", used > 0 ? ", " : "", faces[i].name,
                                     faces[i].up ? "" : " (down)");
    return out;
}

static tutti_status nothing_remains(const rules *all, const tti_interface *faces, int n)
{
    char shown[SHOWN_MAX + 48];
    char why[SHOWN_MAX + 128];

    snprintf(why, sizeof why, "no interface with an address matches; there are: %s",
             tti_interfaces_text(faces, n, shown, sizeof shown));
    return bad_setting(all, why);
}

/* What is set, and read. value NULL: nothing is. */
static tutti_status find_rules(rules *all)
{
    *all = (rules){ .variable = "TUTTI_SOCKET_IFNAME", .value = tti_env("TUTTI_SOCKET_IFNAME") };
    if (all->value == NULL)
        *all = (rules){ .variable = "GLOO_SOCKET_IFNAME", .value = tti_env("GLOO_SOCKET_IFNAME") };
    return all->value != NULL ? read_rules(all) : TUTTI_OK;
}

tutti_status tti_interfaces_named(tti_named *named_out)
{
    rules        all;
    bool         one_by_one = true;
    tutti_status st = find_rules(&all);
    int          i;

    *named_out = (tti_named){ .variable = all.variable, .value = all.value };
    for (i = 0; i < all.n; i++)
        one_by_one = one_by_one && all.list[i].whole && !all.list[i].not && !all.list[i].numeric;
    if (st != TUTTI_OK || all.n < 2 || !one_by_one)
        return st;
    named_out->n = all.n;
    for (i = 0; i < all.n; i++)
        memcpy(named_out->name[i], all.list[i].text, sizeof named_out->name[i]);
    return TUTTI_OK;
}

tutti_status tti_interface_wanted(tti_port *port, const tti_addr *to, bool *set_out, tti_addr *addr_out)
{
    tti_interface faces[INTERFACES_MAX];
    rules         all;
    tti_rails     rails = { .n = 0 };
    tti_addr      local;
    bool          routed;
    int           n, i, points, most = 0, best = 0;
    tutti_status  st = find_rules(&all);

    *set_out = all.value != NULL;
    if (st == TUTTI_OK)
        st = tti_rails_wanted(port, to != NULL ? to->family : TTI_ADDR_IP4, &rails);
    if (st != TUTTI_OK || !*set_out)
        return st;
    if (rails.n > 0) {
        *addr_out = rails.rail[0].addr;
        return TUTTI_OK;
    }
    if (all.n == 1 && all.list[0].numeric && !all.list[0].not) {
        *addr_out = all.list[0].addr; /* listening there will tell whether it is ours */
        return TUTTI_OK;
    }
    if (port->ops->interfaces == NULL)
        return tti_fail(TUTTI_E_UNSUPPORTED, "port '%s' knows no interfaces", port->ops->name);
    n = port->ops->interfaces(port, faces, INTERFACES_MAX);
    if (n < 0)
        return tti_fail_errno_as(TUTTI_E_NETWORK, -n, "cannot list the interfaces of this host");
    routed = to != NULL && port->ops->route != NULL && port->ops->route(port, to, &local) == 0;
    for (i = 0; i < n; i++) {
        points = points_of(&all, &faces[i], to, routed ? &local : NULL);
        if (points > most) {
            most = points;
            best = i;
        }
    }
    if (most == 0)
        return nothing_remains(&all, faces, n);
    *addr_out = faces[best].addr;
    return TUTTI_OK;
}

tutti_status tti_interface_absent(tti_port *port, const tti_addr *addr)
{
    tti_interface faces[INTERFACES_MAX];
    rules         all = { .variable = "TUTTI_SOCKET_IFNAME", .value = tti_env("TUTTI_SOCKET_IFNAME") };
    int           n = 0;

    if (all.value == NULL)
        all = (rules){ .variable = "GLOO_SOCKET_IFNAME", .value = tti_env("GLOO_SOCKET_IFNAME") };
    if (all.value == NULL || read_rules(&all) != TUTTI_OK || all.n != 1 || !all.list[0].numeric || all.list[0].not ||
        !same_ip(&all.list[0].addr, addr))
        return TUTTI_OK;
    if (port->ops->interfaces != NULL)
        n = port->ops->interfaces(port, faces, INTERFACES_MAX);
    return nothing_remains(&all, faces, n);
}

/* ---- this host's own ---- */

/* Where default routes leave from: the route to an address that nobody has (RFC 5737, RFC 3849). */
static bool by_default_route(tti_port *port, tti_addr *addr_out)
{
    static const tti_addr far[] = {
        { .family = TTI_ADDR_IP4, .ip = { 192, 0, 2, 1 } },
        { .family = TTI_ADDR_IP6, .ip = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
    };
    size_t i;

    for (i = 0; port->ops->route != NULL && i < sizeof far / sizeof far[0]; i++)
        if (port->ops->route(port, &far[i], addr_out) == 0 && !tti_addr_is_loopback(addr_out))
            return true;
    return false;
}

static bool is_of_containers(const char *name)
{
    static const char *const starts[] = { "docker", "br-", "virbr", "veth", "cni", "podman", "lxc" };
    size_t                   i;

    for (i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

bool tti_own_addr(tti_port *port, tti_addr *addr_out)
{
    tti_interface faces[INTERFACES_MAX];
    bool          set = false;
    int           n, i;

    if (tti_interface_wanted(port, NULL, &set, addr_out) == TUTTI_OK && set)
        return true;
    if (by_default_route(port, addr_out))
        return true;
    n = port->ops->interfaces != NULL ? port->ops->interfaces(port, faces, INTERFACES_MAX) : 0;
    for (i = 0; i < n; i++)
        if (faces[i].up && !faces[i].loopback && !is_of_containers(faces[i].name) &&
            !tti_addr_is_link_local(&faces[i].addr)) {
            *addr_out = faces[i].addr;
            return true;
        }
    return false;
}

bool tti_addr_is_own(tti_port *port, const tti_addr *addr)
{
    tti_interface faces[INTERFACES_MAX];
    int           n, i;

    if (tti_addr_is_loopback(addr))
        return true;
    n = port->ops->interfaces != NULL ? port->ops->interfaces(port, faces, INTERFACES_MAX) : 0;
    for (i = 0; i < n; i++)
        if (same_ip(addr, &faces[i].addr))
            return true;
    return false;
}

/* One that is down has no address, and is not in the list. */
bool tti_loopback_is_up(tti_port *port)
{
    tti_interface faces[INTERFACES_MAX];
    int           n = port->ops->interfaces != NULL ? port->ops->interfaces(port, faces, INTERFACES_MAX) : -1;
    int           i;

    for (i = 0; i < n; i++)
        if (faces[i].loopback && faces[i].up)
            return true;
    return n < 0;
}

/* Whether ranks elsewhere are possible at all: without a secret nobody gets in from there. */
static bool may_span_hosts(void)
{
    const char *local = tti_env("LOCAL_WORLD_SIZE"), *all = tti_env("WORLD_SIZE");

    if (local != NULL && all != NULL && strcmp(local, all) == 0)
        return false;
    return tti_env("TUTTI_SECRET_FILE") != NULL || strcmp(tti_env("TUTTI_AUTH"), "none") == 0;
}

bool tti_addr_beyond_loopback(tti_port *port, const char *host, const tti_addr *addrs, int n,
                              tti_addr *addr_out)
{
    tti_addr addr;
    int      i;

    if (strncmp(host, "localhost", strlen("localhost")) == 0 || tti_addr_parse(host, 0, &addr) == TUTTI_OK ||
        !may_span_hosts())
        return false;
    for (i = 0; i < n; i++)
        if (!tti_addr_is_loopback(&addrs[i]))
            return false;
    if (!tti_own_addr(port, &addr) || tti_addr_is_loopback(&addr))
        return false;
    addr.port = addrs[0].port;
    *addr_out = addr;
    return true;
}
