/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_net.c - `tutti doctor host`: interfaces, the address that would be listened at, the own name, ports, TCP. */
#include "doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tutti/host.h>
#include <unistd.h>
#include "doctor_names.h"
#include "proc.h"

enum { NAME_BYTES = 256, ADDRS_BYTES = 512, QUICK_MBIT = 8000 /* tutti/tune.h: from there on links are alike */ };

#define SLOW_S 1.0

/* ---- interfaces -------------------------------------------------------------------------------- */

/* All addresses of the interface called name, with commas. */
static void addresses_of(const struct ifaddrs *all, const char *name, char out[ADDRS_BYTES])
{
    char one[INET6_ADDRSTRLEN];
    size_t used = 0;

    out[0] = '\0';
    for (; all != NULL; all = all->ifa_next)
        if (all->ifa_addr != NULL && strcmp(all->ifa_name, name) == 0 && name_of_address(all->ifa_addr, one) &&
            used + sizeof one + 2 < ADDRS_BYTES)
            used += (size_t)snprintf(out + used, ADDRS_BYTES - used, "%s%s", used > 0 ? ", " : "", one);
}

static void tell_interface(report *r, const struct ifaddrs *all, const char *name, unsigned flags)
{
    char path[128], addrs[ADDRS_BYTES], speed_text[48] = "";
    long long mtu = -1, speed = -1;

    addresses_of(all, name, addrs);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/mtu", name);
    proc_numbers(path, &mtu, 1);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/speed", name);
    if (proc_numbers(path, &speed, 1) == 1 && speed > 0)
        snprintf(speed_text, sizeof speed_text, ", %g Gb/s", (double)speed / 1000);
    if ((flags & IFF_LOOPBACK) != 0 && (flags & IFF_UP) == 0)
        report_add(r, FAILS, name, "ip link set lo up", "loopback is down: ranks of this host cannot meet");
    else if ((flags & IFF_UP) == 0)
        report_add(r, NOTE, name, NULL, "%s, is down: no rank is reached through it", addrs[0] != '\0' ? addrs : "no address");
    else
        report_add(r, FINE, name, NULL, "%s, MTU %lld%s", addrs[0] != '\0' ? addrs : "no address", mtu, speed_text);
}

static void look_interfaces(report *r)
{
    struct ifaddrs *all = NULL, *f, *before;
    bool loopback = false;

    if (getifaddrs(&all) != 0) {
        report_add(r, FAILS, "interfaces", NULL, "cannot be listed: %s", strerror(errno));
        return;
    }
    for (f = all; f != NULL; f = f->ifa_next) {
        for (before = all; before != f && strcmp(before->ifa_name, f->ifa_name) != 0;)
            before = before->ifa_next;
        if (before == f)
            tell_interface(r, all, f->ifa_name, f->ifa_flags);
        loopback = loopback || ((f->ifa_flags & IFF_LOOPBACK) != 0 && (f->ifa_flags & IFF_UP) != 0);
    }
    freeifaddrs(all);
    if (!loopback)
        report_add(r, FAILS, "loopback", "ip link set lo up", "there is no loopback interface that is up");
}

/* Whether an address that is asked for is this host's: tutti_listen_address() takes it as it is. */
static tutti_status check_asked_for(void)
{
    const char *first = getenv("TUTTI_SOCKET_IFNAME");

    return tutti_env_check(first != NULL && first[0] != '\0' ? "TUTTI_SOCKET_IFNAME" : "GLOO_SOCKET_IFNAME");
}

/* Whether two rates, of which 0 is not known, would lead to other choices: links of 8 Gb/s and more are all the same. */
static bool differ(long a, long b)
{
    const long x = a < QUICK_MBIT ? a : QUICK_MBIT, y = b < QUICK_MBIT ? b : QUICK_MBIT;

    return x > 0 && y > 0 && (x > 2 * y || y > 2 * x);
}

/* What is named goes before what the kernel says. */
static void tell_named_link(report *r, const char *named, const tutti_link *link)
{
    const bool differs = differ(strtol(named, NULL, 10), link->mbit);

    report_add(r, differs ? WARN : FINE, "link",
               differs ? "unset TUTTI_LINK_MBIT, unless the kernel does not know what holds the link back" : NULL,
               "TUTTI_LINK_MBIT says %s; the kernel says: %s%s", named, link->words[0] != '\0' ? link->words : "nothing",
               differs ? ", and would not be asked" : "");
}

/* By which rate algorithms between hosts would be chosen if this process were rank 0. address: NULL: it is not known. A value that
 * cannot be read fails every rank, wherever it listens. */
static void tell_link(report *r, const char *address)
{
    const char *named = getenv("TUTTI_LINK_MBIT"), *next;
    tutti_link link = TUTTI_LINK;
    char words[DOCTOR_WORDS_MAX];

    if (tutti_env_check("TUTTI_LINK_MBIT") != TUTTI_OK) {
        next = doctor_split_error(words);
        report_add(r, FAILS, "link", next, "%s", words);
    } else if (address == NULL)
        report_add(r, NOTE, "link", NULL, "what it carries is not known, as where ranks would listen is not");
    else if (tutti_link_look(address, &link) != TUTTI_OK)
        report_add(r, FAILS, "link", NULL, "%s", tutti_last_error());
    else if (named != NULL && named[0] != '\0')
        tell_named_link(r, named, &link);
    else if (link.mbit > 0)
        report_add(r, FINE, "link", NULL, "the kernel says: %s", link.words);
    else
        report_add(r, FINE, "link", NULL, "the kernel does not tell what it carries (%s); where that is less than 8 Gb/s, "
                   "TUTTI_LINK_MBIT may", link.words[0] != '\0' ? link.words : "nothing");
}

static void look_listening(report *r)
{
    static const char far[] = "192.0.2.1"; /* nobody's: where the default route leaves from */
    const char *master = getenv("MASTER_ADDR");
    const bool given = master != NULL && master[0] != '\0';
    char address[TUTTI_ADDRESS_MAX];
    tutti_status st = check_asked_for();

    if (st == TUTTI_OK)
        st = tutti_listen_address(given ? master : far, address);
    if (st == TUTTI_OK && given)
        report_add(r, FINE, "listening", NULL, "ranks would listen at %s, which routes to MASTER_ADDR %s", address, master);
    else if (st == TUTTI_OK)
        report_add(r, FINE, "listening", NULL, "ranks of a job on several hosts would listen at %s", address);
    else if (given || st == TUTTI_E_ARG)
        report_add(r, FAILS, "listening", "see MASTER_ADDR and TUTTI_SOCKET_IFNAME", "%s", tutti_last_error());
    else
        report_add(r, NOTE, "listening", "set MASTER_ADDR to the host of rank 0, and look again",
                   "there is no default route: where ranks would listen depends on the way to MASTER_ADDR, which is not set");
    tell_link(r, st == TUTTI_OK ? address : NULL);
}

/* Until the limit nobody answered: that is no error of the connection, but what the system says of it. */
static const char *words_of(int err)
{
    return err == EINPROGRESS || err == EAGAIN ? "there was no answer within 2 s" : strerror(err);
}

/* A connection to oneself, as ranks of a host make them to the store. */
static void try_loopback(report *r)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = { .tv_sec = 2 };
    const bool ok = listener >= 0 && client >= 0 && bind(listener, (struct sockaddr *)&at, len) == 0 &&
                    listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0 &&
                    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
                    connect(client, (struct sockaddr *)&at, len) == 0;

    if (!ok)
        report_add(r, FAILS, "store", "see whether loopback is up (ip link), and whether a firewall stands in front of it",
                   "nobody can connect to 127.0.0.1: %s", words_of(errno));
    else
        report_add(r, FINE, "store", NULL, "a connection over loopback is made");
    if (client >= 0)
        close(client);
    if (listener >= 0)
        close(listener);
}

/* ---- names ------------------------------------------------------------------------------------- */

static void look_own_name(report *r)
{
    char name[NAME_BYTES] = "";
    name_found f;

    gethostname(name, sizeof name - 1);
    f = name_look(name);
    if (f.error != NULL)
        report_add(r, WARN, "own name", "add it to /etc/hosts, or give MASTER_ADDR as an address",
                   "'%s' does not resolve: %s (%.1f s)", name, f.error, f.took_s);
    else if (!f.own)
        report_add(r, WARN, "own name", "correct /etc/hosts or the name server: as MASTER_ADDR it leads elsewhere",
                   "'%s' means %s, which is no address of this host", name, f.first);
    else if (f.took_s > SLOW_S)
        report_add(r, WARN, "own name", "put it into /etc/hosts: every rank waits so long in its beginning",
                   "'%s' means %s, and looking that up took %.1f s", name, f.first, f.took_s);
    else if (f.loopback)
        report_add(r, NOTE, "own name", NULL, "'%s' means %s here; with a job secret tutti takes the address that others know",
                   name, f.first);
    else
        report_add(r, FINE, "own name", NULL, "'%s' means %s (%.0f ms)", name, f.first, 1000 * f.took_s);
}

/* ---- ports and TCP ----------------------------------------------------------------------------- */

static void look_ports(report *r)
{
    const char *fixed = getenv("MASTER_PORT");
    const long given = fixed != NULL ? strtol(fixed, NULL, 10) : 29500;
    long long range[2];

    if (proc_numbers("/proc/sys/net/ipv4/ip_local_port_range", range, 2) != 2)
        return;
    report_add(r, range[1] - range[0] < 1000 ? WARN : FINE, "ports",
               range[1] - range[0] < 1000 ? "sysctl net.ipv4.ip_local_port_range='32768 60999'" : NULL,
               "the kernel hands out %lld to %lld", range[0], range[1]);
    if (given >= range[0] && given <= range[1])
        report_add(r, NOTE, "store's port", NULL,
                   "%ld is one of these: some other connection may happen to have it when the job starts", given);
}

static void look_backlog(report *r)
{
    long long most = 0;

    if (proc_numbers("/proc/sys/net/core/somaxconn", &most, 1) == 1)
        report_add(r, most < 512 ? WARN : FINE, "backlog", most < 512 ? "sysctl net.core.somaxconn=4096" : NULL,
                   "%lld connections may wait to be accepted%s", most, most < 512 ? ": a large job knocks again and again" : "");
}

static void look_tcp(report *r)
{
    char congestion[64] = "?";
    long long in[3] = { 0 }, out[3] = { 0 }, slow = 0, probes = 0;

    proc_line("/proc/sys/net/ipv4/tcp_congestion_control", congestion, sizeof congestion);
    report_add(r, FINE, "congestion", NULL, "%s, where TUTTI_TCP_CONGESTION does not say otherwise", congestion);
    if (proc_numbers("/proc/sys/net/ipv4/tcp_rmem", in, 3) == 3 && proc_numbers("/proc/sys/net/ipv4/tcp_wmem", out, 3) == 3)
        report_add(r, in[2] < 4 << 20 || out[2] < 4 << 20 ? NOTE : FINE, "TCP buffers",
                   in[2] < 4 << 20 || out[2] < 4 << 20 ? "raise net.ipv4.tcp_rmem and tcp_wmem if hosts are far from each other" : NULL,
                   "grow to %.1f MiB for reading, %.1f MiB for writing", (double)in[2] / (1 << 20), (double)out[2] / (1 << 20));
    if (proc_numbers("/proc/sys/net/ipv4/tcp_slow_start_after_idle", &slow, 1) == 1 && slow != 0)
        report_add(r, NOTE, "TCP pauses", NULL,
                   "after a pause connections begin slowly again; matters between far hosts (net.ipv4.tcp_slow_start_after_idle=0)");
    if (proc_numbers("/proc/sys/net/ipv4/tcp_keepalive_time", &probes, 1) == 1)
        report_add(r, FINE, "keepalive", NULL, "the system's begins after %lld s; tutti sets its own on its connections", probes);
}

void doctor_net(report *r)
{
    look_interfaces(r);
    look_listening(r);
    try_loopback(r);
    look_own_name(r);
    look_ports(r);
    look_backlog(r);
    look_tcp(r);
}
