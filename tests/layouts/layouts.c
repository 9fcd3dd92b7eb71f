/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layouts.c - the table. */
#include "layouts.h"

#define JOINED "link set lo up\nlink add tt0 type veth peer name tt0 netns @1/\nlink set tt0 up\n"
#define OTHER "link set lo up\nlink set tt0 up\n"
#define IP4(n) "addr add 10.77.0." n "/24 dev tt0\n"
#define IP6(n) "addr add fd00:77::" n "/64 dev tt0 nodad\n"
#define LOCALHOST "127.0.0.1 localhost\n::1 localhost\n"
#define DOCKER "link add docker0 type bridge\nlink set docker0 up\naddr add 172.17.0.1/16 dev docker0\n"
#define ASIDE(n)                                                                                       \
    "link add aa0 type veth peer name aa1\nlink set aa0 up\nlink set aa1 up\n"                         \
    "addr add 10.88.0." n "/24 dev aa0\nroute add default via 10.88.0.254 dev aa0\n"
#define FIREWALL_WHICH(ends)                                                                           \
    "table inet f { chain in { type filter hook input priority 0; policy drop; iif lo accept; "        \
    "meta l4proto ipv6-icmp accept; ct state established,related accept; "                             \
    "tcp dport 20000-20049 accept; " ends "}\n }\n"
#define FIREWALL FIREWALL_WHICH("")
#define RESETS   FIREWALL_WHICH("meta l4proto tcp reject with tcp reset; ")
#define FORBIDS  FIREWALL_WHICH("reject with icmpx admin-prohibited; ")

/* Host 0 in a network of its own; the router shows it to the other as 10.77.0.1. */
#define BEHIND                                                                                         \
    "link set lo up\nlink add tt0 type veth peer name in netns @2/\nlink set tt0 up\n"                 \
    "addr add 192.168.5.2/24 dev tt0\n"
#define BEHIND_ROUTES                                                                                  \
    "link set lo up\nlink set in up\naddr add 192.168.5.1/24 dev in\n"                                 \
    "link add out type veth peer name tt0 netns @1/\nlink set out up\naddr add 10.77.0.1/24 dev out\n"
#define BEHIND_NAT                                                                                     \
    "table ip nat { chain pre { type nat hook prerouting priority -100; "                              \
    "iifname \"out\" tcp dport 20000-20049 dnat to 192.168.5.2; }\n"                                   \
    " chain post { type nat hook postrouting priority 100; oifname \"out\" masquerade; }\n }\n"

/* One that the other host has no way to. */
#define APART(n)                                                                                       \
    "link add ap0 type veth peer name ap1\nlink set ap0 up\nlink set ap1 up\naddr add 10.99." n ".1/24 dev ap0\n"

const tt_layout tt_layouts[] = {
    { .name = "ip4", .what = "IPv4 only", .ip = { JOINED IP4("1"), OTHER IP4("2") }, .no_ip6 = true,
      .master = "10.77.0.1" },
    { .name = "ip6", .what = "IPv6 only", .master = "n0",
      .ip = { JOINED IP6("1") "addr del 127.0.0.1/8 dev lo\n", OTHER IP6("2") "addr del 127.0.0.1/8 dev lo\n" },
      .hosts_file = { LOCALHOST "fd00:77::1 n0\n", LOCALHOST "fd00:77::1 n0\n" } },
    { .name = "both", .what = "IPv4 and IPv6, a name for both", .master = "n0",
      .ip = { JOINED IP4("1") IP6("1"), OTHER IP4("2") IP6("2") },
      .hosts_file = { LOCALHOST "fd00:77::1 n0\n10.77.0.1 n0\n",
                      LOCALHOST "fd00:77::1 n0\n10.77.0.1 n0\n" } },
    { .name = "no_dns", .what = "no DNS, no names; addresses", .ip = { JOINED IP4("1"), OTHER IP4("2") },
      .hosts_file = { "\n", "\n" }, .master = "10.77.0.1" },
    { .name = "no_dns_name", .what = "no DNS, but MASTER_ADDR is a name", .master = "n0",
      .ip = { JOINED IP4("1"), OTHER IP4("2") }, .hosts_file = { "\n", "\n" },
      .says = "cannot resolve host 'n0'", .next = "MASTER_ADDR" },
    { .name = "debian_name", .what = "own host name is 127.0.1.1", .master = "n0",
      .ip = { JOINED IP4("1"), OTHER IP4("2") },
      .hosts_file = { LOCALHOST "127.0.1.1 n0\n10.77.0.2 n1\n", LOCALHOST "127.0.1.1 n1\n10.77.0.1 n0\n" } },
    { .name = "two_interfaces", .master = "n0",
      .what = "a second interface, with the default route, leads nowhere",
      .ip = { JOINED IP4("1") ASIDE("1"), OTHER IP4("2") ASIDE("2") },
      .hosts_file = { LOCALHOST "10.77.0.1 n0\n", LOCALHOST "10.77.0.1 n0\n" } },
    { .name = "bridge", .what = "docker0 is 172.17.0.1 on both", .master = "10.77.0.1",
      .ip = { JOINED IP4("1") DOCKER, OTHER IP4("2") DOCKER } },
    { .name = "bridge_as_master", .what = "the same, and MASTER_ADDR is 172.17.0.1", .master = "172.17.0.1",
      .ip = { JOINED IP4("1") DOCKER, OTHER IP4("2") DOCKER },
      .env = { "TUTTI_TIMEOUT_MS=4000" }, .says = "that is this host itself", .next = "MASTER_ADDR" },
    { .name = "bridge_in_name", .what = "the master's name has both; TUTTI_SOCKET_IFNAME=^docker", .master = "n0",
      .ip = { JOINED IP4("1") DOCKER, OTHER IP4("2") DOCKER },
      .hosts_file = { LOCALHOST "172.17.0.1 n0\n10.77.0.1 n0\n", LOCALHOST "172.17.0.1 n0\n10.77.0.1 n0\n" },
      .env = { "TUTTI_SOCKET_IFNAME=^docker" } },
    { .name = "port_range", .what = "a firewall with 50 open ports", .master = "10.77.0.1",
      .ip = { JOINED IP4("1"), OTHER IP4("2") }, .nft = { FIREWALL, FIREWALL },
      .env = { "TUTTI_PORT_RANGE=20000-20049" } },
    { .name = "port_range_unsaid", .what = "the same without TUTTI_PORT_RANGE", .master = "10.77.0.1",
      .ip = { JOINED IP4("1"), OTHER IP4("2") }, .nft = { FIREWALL, FIREWALL },
      .env = { "TUTTI_TIMEOUT_MS=4000" }, .says = "no connection yet to rank", .next = "TUTTI_PORT_RANGE" },
    { .name = "port_reset", .what = "the same, and the firewall resets", .master = "10.77.0.1",
      .ip = { JOINED IP4("1"), OTHER IP4("2") }, .nft = { RESETS, RESETS },
      .says = "nobody listens at 10.77.0.", .next = "TUTTI_PORT_RANGE" },
    { .name = "port_forbidden", .what = "the same, and the firewall says so", .master = "10.77.0.1",
      .ip = { JOINED IP4("1"), OTHER IP4("2") }, .nft = { FORBIDS, FORBIDS },
      .says = "No route to host", .next = "TUTTI_PORT_RANGE" },
    { .name = "two_addresses", .what = "the master's name has a dead address first", .master = "n0",
      .ip = { JOINED IP4("1"), OTHER IP4("2") },
      .hosts_file = { LOCALHOST "10.77.0.99 n0\n10.77.0.1 n0\n", LOCALHOST "10.77.0.99 n0\n10.77.0.1 n0\n" } },
    { .name = "service", .what = "MASTER_ADDR is a NAT's, in front of rank 0", .master = "10.77.0.1",
      .ip = { BEHIND, "link set lo up\n", BEHIND_ROUTES }, .nft = { NULL, NULL, BEHIND_NAT },
      .env = { "TUTTI_PORT_RANGE=20000-20049" },
      .env0 = { "TUTTI_LISTEN=any", "TUTTI_ADVERTISE=10.77.0.1" } },
    { .name = "service_unsaid", .what = "the same without TUTTI_LISTEN=any", .master = "10.77.0.1",
      .ip = { BEHIND, "link set lo up\n", BEHIND_ROUTES }, .nft = { NULL, NULL, BEHIND_NAT },
      .env = { "TUTTI_PORT_RANGE=20000-20049" }, .says = "this host has no such address",
      .next = "TUTTI_LISTEN=any" },
    { .name = "no_loopback", .what = "loopback is down on both", .master = "10.77.0.1",
      .ip = { "link add tt0 type veth peer name tt0 netns @1/\nlink set tt0 up\n" IP4("1"),
              "link set tt0 up\n" IP4("2") },
      .says = "its loopback interface is down", .next = "ip link set lo up" },
    { .name = "late", .what = "rank 0's interface comes up late", .master = "10.77.0.1",
      .ip = { "link set lo up\nlink add tt0 type veth peer name tt0 netns @1/\n", OTHER IP4("2") },
      .late = "link set tt0 up\n" IP4("1") },
    { .name = "never", .what = "rank 0's interface never comes up", .master = "10.77.0.1",
      .ip = { "link set lo up\nlink add tt0 type veth peer name tt0 netns @1/\n", OTHER IP4("2") },
      .says = "this host has no such address", .next = "MASTER_ADDR" },
    { .name = "loopback", .what = "TUTTI_SOCKET_IFNAME=lo on one host", .master = "10.77.0.1",
      .ip = { JOINED IP4("1"), OTHER IP4("2") }, .env0 = { "TUTTI_SOCKET_IFNAME=lo" },
      .says = "which is its own loopback", .next = "TUTTI_SOCKET_IFNAME" },
    { .name = "unrouted", .what = "TUTTI_SOCKET_IFNAME names one that leads nowhere", .master = "10.77.0.1",
      .ip = { JOINED IP4("1") APART("1"), OTHER IP4("2") APART("2") }, .env = { "TUTTI_SOCKET_IFNAME=ap0" },
      .says = "at 10.99.", .next = "TUTTI_SOCKET_IFNAME" },
    { .name = "mtu", .what = "MTU 1280", .master = "10.77.0.1",
      .ip = { JOINED IP4("1") "link set tt0 mtu 1280\n", OTHER IP4("2") "link set tt0 mtu 1280\n" } },
};

const int tt_n_layouts = sizeof tt_layouts / sizeof tt_layouts[0];
