/* SPDX-License-Identifier: BSD-3-Clause
 *
 * environment.c - what variables of the environment say.
 *
 * How     Each line NAME=value of the input sets a variable; names that the table does not know are only looked at. A line may begin
 *         with a number instead, which stands for a name of the table.
 * Holds   Numbers are within the bounds that were asked for; rank and size that come out make a world; the host's own address is one
 *         of its interfaces', or the one that is named. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <unistd.h>
#include "base/env.h"
#include "rendezvous/scheduler.h"
#include "rendezvous/who.h"
#include "transport/health/health.h"
#include "wire/interfaces.h"
#include "wire/ports.h"
#include <tutti/private.h>

enum { ROUND = 32 };

/* Variables that this input has set, perhaps more than once. */
static struct {
    const char *names[ROUND];
    int         n;
} given;

/* Three interfaces, with addresses of both families. */
static int some_interfaces(tti_port *port, tti_interface *out, int max)
{
    static const struct {
        const char *name, *addr;
    } have[] = { { "lo", "127.0.0.1" }, { "eth0", "10.0.0.7" }, { "eth0", "fe80::1" }, { "ib0", "192.168.1.2" } };
    int i;

    (void)port;
    for (i = 0; i < 4 && i < max; i++) {
        out[i] = (tti_interface){ .up = true, .loopback = i == 0 };
        snprintf(out[i].name, sizeof out[i].name, "%s", have[i].name);
        TT_MUST(tti_addr_parse(have[i].addr, 0, &out[i].addr) == TUTTI_OK);
    }
    return i;
}

/* Ways lead from the first address of the family. */
static int some_route(tti_port *port, const tti_addr *to, tti_addr *local_out)
{
    (void)port;
    return tti_addr_parse(to->family == TTI_ADDR_IP4 ? "10.0.0.7" : "fe80::1", 0, local_out) == TUTTI_OK ? 0 : -ENETUNREACH;
}

/* The launcher is at the other end of descriptors with even numbers. */
static int some_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out)
{
    (void)port;
    *cred_out = (tti_peer_cred){ .pid = handle % 4 == 0 ? getpid() : INT32_MAX, .uid = geteuid() };
    return handle % 2 == 0 ? 0 : -ENOTSOCK;
}

static tti_port *host_port(void)
{
    static tti_port_ops ops;
    static tti_port     port = { &ops };

    if (ops.name == NULL) {
        ops = *tt_still_port()->ops;
        ops.interfaces = some_interfaces;
        ops.route = some_route;
        ops.peer_cred = some_cred;
    }
    return &port;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the table in their order, and how many there are. */
TT_UNTRACED static const char *const *sorted(size_t *n_out)
{
    static const char  **names;
    static size_t        n;
    const tti_env_entry *table;
    size_t               i;

    if (names == NULL) {
        table = tti_env_table(&n);
        names = calloc(n, sizeof *names);
        TT_MUST(names != NULL);
        for (i = 0; i < n; i++)
            names[i] = table[i].name;
        qsort(names, n, sizeof *names, by_name);
    }
    *n_out = n;
    return names;
}

/* Of the table; NULL: the name is to stay what it was, as others read it. */
TT_UNTRACED static const char *variable(const char *name)
{
    static const char *const left[] = { "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "TUTTI_LOG", "TORCH_CPP_LOG_LEVEL", "TUTTI_DEBUG",
                                        "TORCH_DISTRIBUTED_DEBUG" };
    size_t                   n, i;
    const char *const       *names = sorted(&n);
    const char *const       *found = bsearch(&name, names, n, sizeof *names, by_name);

    for (i = 0; i < sizeof left / sizeof left[0] && found != NULL; i++)
        if (strcmp(name, left[i]) == 0)
            return NULL;
    return found != NULL ? *found : NULL;
}

static const char *numbered(const char *text)
{
    const tti_env_entry *table;
    char                *end = NULL;
    size_t               n;
    const unsigned long  i = strtoul(text, &end, 10);

    table = tti_env_table(&n);
    return end != text && *end == '\0' ? variable(table[i % n].name) : NULL;
}

static void take_line(char *line)
{
    const char *near = NULL;
    const char *name;
    char       *equals;

    if (tti_env_is_unknown(line, &near) && near != NULL)
        TT_MUST(strncmp(near, "TUTTI_", 6) == 0);
    equals = strchr(line, '=');
    if (equals == NULL)
        return;
    *equals = '\0';
    name = variable(line);
    if (name == NULL)
        name = numbered(line);
    if (name == NULL)
        return;
    tt_set_env(name, equals + 1);
    given.names[given.n++] = name; /* a round has no more lines */
}

/* What the input has set; at first what the process was given, too. */
TT_UNTRACED static void forget_all(void)
{
    static bool        begun;
    size_t             n, i;
    const char *const *names = sorted(&n);

    for (i = 0; i < n && !begun; i++)
        if (variable(names[i]) != NULL)
            tt_set_env(names[i], NULL);
    begun = true;
    while (given.n > 0)
        tt_set_env(given.names[--given.n], NULL);
}

static void ask_numbers(void)
{
    int64_t number = 0, other = 0;
    bool    flag = false;

    if (tti_env_int("TUTTI_TCP_STRIPES", 1, 8, &number) == TUTTI_OK)
        TT_MUST(number >= 1 && number <= 8);
    if (tti_env_int("TUTTI_OBJECT_MAX", INT64_MIN, INT64_MAX, &number) != TUTTI_OK)
        TT_MUST(strstr(tutti_last_error(), "TUTTI_OBJECT_MAX") != NULL);
    if (tti_env_timeout(&number) == TUTTI_OK)
        TT_MUST(number == -1 || number > 0);
    (void)tti_env_flag("TUTTI_REPRODUCIBLE", &flag);
    if (tti_health_read_env(&number, &other) == TUTTI_OK)
        TT_MUST(number >= 10 && other >= 0);
}

/* A host of which less is known. */
static tti_port *bare_port(void)
{
    static tti_port_ops ops;
    static tti_port     port = { &ops };

    if (ops.name == NULL)
        ops = *tt_still_port()->ops;
    return &port;
}

static int no_interfaces(tti_port *port, tti_interface *out, int max)
{
    (void)port;
    (void)out;
    (void)max;
    return -EACCES;
}

/* Containers, and an address that is of this link only, come before the one that others can reach. */
static int many_interfaces(tti_port *port, tti_interface *out, int max)
{
    static const struct {
        const char *name, *addr;
    } have[] = { { "lo", "127.0.0.1" }, { "docker0", "172.17.0.1" }, { "eth0", "fe80::1" }, { "eth0", "10.0.0.7" } };
    int i;

    (void)port;
    for (i = 0; i < 4 && i < max; i++) {
        out[i] = (tti_interface){ .up = true, .loopback = i == 0 };
        snprintf(out[i].name, sizeof out[i].name, "%s", have[i].name);
        TT_MUST(tti_addr_parse(have[i].addr, 0, &out[i].addr) == TUTTI_OK);
    }
    return i;
}

/* What is not known, or not allowed, is said, or taken as it is meant for those who know nothing. */
static void ask_lesser_hosts(void)
{
    tti_port_ops silent = *bare_port()->ops, unrouted = *bare_port()->ops;
    tti_port     ports[] = { { bare_port()->ops }, { &silent }, { &unrouted } };
    tti_addr     addr, loopback;
    bool         set = false;
    size_t       i;

    silent.interfaces = no_interfaces;
    unrouted.interfaces = many_interfaces;
    TT_MUST(tti_addr_parse("127.0.1.1", 1, &loopback) == TUTTI_OK);
    for (i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        if (tti_interface_wanted(&ports[i], NULL, &set, &addr) != TUTTI_OK)
            TT_MUST(strlen(tutti_last_error()) > 0);
        if (tti_own_addr(&ports[i], &addr))
            TT_MUST(addr.family != TTI_ADDR_NONE);
        TT_MUST(tti_loopback_is_up(&ports[i]));
        if (tti_addr_beyond_loopback(&ports[i], "n1", &loopback, 1, &addr))
            TT_MUST(!tti_addr_is_loopback(&addr) && addr.port == 1);
    }
    (void)tti_addr_beyond_loopback(&ports[2], "localhost", &loopback, 1, &addr);
}

/* Whether a setting names an address by itself, which is taken as it is: listening there tells whether it is this host's. */
static bool is_address_of_setting(const tti_addr *addr)
{
    const char *value = tti_env("TUTTI_SOCKET_IFNAME") != NULL ? tti_env("TUTTI_SOCKET_IFNAME") : tti_env("GLOO_SOCKET_IFNAME");
    tti_addr    named;

    return value != NULL && tti_addr_parse(value + strspn(value, "="), 0, &named) == TUTTI_OK && named.family == addr->family &&
           memcmp(named.ip, addr->ip, sizeof named.ip) == 0;
}

static void ask_places(void)
{
    tti_ports ports = { .first = 0 };
    tti_addr  addr, to;
    bool      set = false, any = false;

    if (tti_ports_wanted(&ports) == TUTTI_OK && ports.last != 0)
        TT_MUST(ports.first >= 1 && ports.first <= ports.last);
    (void)tti_listens_any(&any);
    TT_MUST(tti_addr_parse("10.0.0.1", 1, &to) == TUTTI_OK);
    if (tti_interface_wanted(host_port(), NULL, &set, &addr) == TUTTI_OK && set)
        TT_MUST(addr.family != TTI_ADDR_NONE);
    (void)tti_interface_wanted(host_port(), &to, &set, &addr);
    TT_MUST(tti_own_addr(host_port(), &addr) && (tti_addr_is_own(host_port(), &addr) || is_address_of_setting(&addr)));
    (void)tti_addr_beyond_loopback(host_port(), "host", &to, 1, &addr);
}

/* Once for each process; two more than the input has. */
static void tell_unknown(void)
{
    tt_set_env("TUTTI_TIMEOUT_MSS", "1");
    tt_set_env("TUTTI_QQQQQQQQQQQQ", "1");
    tti_env_tell_unknown();
    tt_set_env("TUTTI_TIMEOUT_MSS", NULL);
    tt_set_env("TUTTI_QQQQQQQQQQQQ", NULL);
}

static void ask_who(const char *url, int rank, int world_size)
{
    const tti_rendezvous_config config = { .port = host_port(), .url = url, .rank = rank, .world_size = world_size };
    char                        master[TTI_HOST_MAX];
    tti_scheduler               scheduler;
    tti_who                     who;

    if (tti_scheduler_find(host_port(), &scheduler) == TUTTI_OK && scheduler.name != NULL) {
        TT_MUST(strlen(scheduler.job_name) < sizeof scheduler.job_name);
        if (tti_scheduler_master(&scheduler, master) == TUTTI_OK)
            TT_MUST(memchr(master, '\0', sizeof master) != NULL);
    }
    TT_MUST(tti_scheduler_advice() != NULL);
    if (tti_who_find(&config, &who) == TUTTI_OK)
        TT_MUST(who.rank >= 0 && who.rank < who.world_size && who.world_size <= TTI_WORLD_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = tt_text(data, size);
    char *rest = text, *line;
    int   n = 0;

    forget_all();
    while (n++ < ROUND && (line = strsep(&rest, "\n")) != NULL)
        take_line(line);
    ask_numbers();
    ask_places();
    ask_lesser_hosts();
    tell_unknown();
    ask_who(NULL, -1, 0);
    ask_who("env://", (int)(size % 5) - 1, (int)(size % 9) - 1);
    ask_who("env://", 1, TTI_WORLD_MAX + 1);
    if (rest != NULL) {
        ask_who(rest, -1, 0);
        ask_who(rest, (int)(size % 5), (int)(size % 7) - 1);
    }
    forget_all();
    free(text);
    return 0;
}
