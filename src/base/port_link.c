/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_link.c - what the link of an interface carries, as far as the kernel tells: the lower of what it is shaped to (shaper.h)
 * and the speed of the card.
 *
 * True    A speed counts only of a card, which has a device behind it, and of several that are bonded: a pair of virtual ones, or a
 *         bridge, says 10 Gb/s, whatever is let through. And only if /sys shows the devices of this network namespace, which its
 *         mount decides: the number and the hardware address of the interface must be the same there.
 * Cost    Two dumps at most, and four small files: the kernel answers while it is asked, nobody is waited for.
 * Fails   What cannot be read leaves it unknown. */
#include "base/port_system.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/shaper.h"

enum { INTERFACES_MAX = 256, PACKET_BYTES = 32 << 10, PACKETS_MAX = 4096, PATH_BYTES = 96, MBIT_MAX = 10 * 1000 * 1000 };

/* ---- its shaper -------------------------------------------------------------------------------------------------------- */

/* The whole answer to a question. */
static bool ask(int fd, tti_shaper *shaper, const uint8_t question[TTI_SHAPER_QUESTION_BYTES], void *packet)
{
    const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    struct sockaddr_nl       from;
    socklen_t                from_bytes;
    ssize_t                  got;
    int                      n;

    if (sendto(fd, question, TTI_SHAPER_QUESTION_BYTES, 0, (const struct sockaddr *)&kernel, sizeof kernel) < 0)
        return false;
    for (n = 0; n < PACKETS_MAX && !shaper->ended; n++) {
        from_bytes = sizeof from;
        memset(&from, 0, sizeof from);
        do
            got = recvfrom(fd, packet, PACKET_BYTES, MSG_TRUNC, (struct sockaddr *)&from, &from_bytes);
        while (got < 0 && errno == EINTR);
        if (got <= 0 || got > PACKET_BYTES)
            return false;
        if (from.nl_pid == 0 && !tti_shaper_read(shaper, packet, (size_t)got)) /* 0: the kernel */
            return false;
    }
    return shaper->ended;
}

static void read_shaper(tti_shaper *shaper)
{
    const struct timeval soon = { .tv_sec = 1 };
    uint8_t              question[TTI_SHAPER_QUESTION_BYTES];
    void                *packet = malloc(PACKET_BYTES);
    int                  fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    bool                 told = packet != NULL && fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0;

    if (told) {
        tti_shaper_ask_disciplines(shaper, question);
        told = ask(fd, shaper, question, packet);
    }
    if (told && tti_shaper_has_classes(shaper)) {
        tti_shaper_ask_classes(shaper, question);
        told = ask(fd, shaper, question, packet);
    }
    shaper->ended = shaper->ended && told;
    if (fd >= 0)
        close(fd);
    free(packet);
}

/* ---- the card ---------------------------------------------------------------------------------------------------------- */

static bool read_fact(const char *name, const char *fact, char *out, size_t bytes)
{
    char  path[PATH_BYTES];
    FILE *file;
    bool  got;

    snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, fact);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    got = fgets(out, (int)bytes, file) != NULL;
    fclose(file);
    return got;
}

static bool has_fact(const char *name, const char *fact)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, fact);
    return access(path, F_OK) == 0;
}

/* Whether /sys has the same interface under that name as this namespace. */
static bool is_the_same(const char *name, unsigned index)
{
    struct ifreq   asked;
    const uint8_t *own = (const uint8_t *)asked.ifr_hwaddr.sa_data;
    unsigned       there[6];
    char           text[64];
    int            fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), i;
    bool           same;

    memset(&asked, 0, sizeof asked);
    snprintf(asked.ifr_name, sizeof asked.ifr_name, "%.*s", (int)sizeof asked.ifr_name - 1, name);
    same = fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &asked) == 0 && read_fact(name, "ifindex", text, sizeof text) &&
           strtoul(text, NULL, 10) == index && read_fact(name, "address", text, sizeof text) &&
           sscanf(text, "%x:%x:%x:%x:%x:%x", &there[0], &there[1], &there[2], &there[3], &there[4], &there[5]) == 6;
    for (i = 0; same && i < 6; i++)
        same = own[i] == there[i];
    if (fd >= 0)
        close(fd);
    return same;
}

/* Mb/s; 0: it is no card, or does not know. */
static int64_t speed_of(const char *name, unsigned index)
{
    char    text[64];
    int64_t mbit;

    if ((!has_fact(name, "device") && !has_fact(name, "bonding")) || !is_the_same(name, index) ||
        !read_fact(name, "speed", text, sizeof text)) /* one that is down says EINVAL */
        return 0;
    mbit = strtoll(text, NULL, 10);
    return mbit > 0 && mbit <= MBIT_MAX ? mbit : 0;
}

/* ---- together ---------------------------------------------------------------------------------------------------------- */

static bool is_at(const tti_interface *face, const tti_addr *at)
{
    return face->addr.family == at->family && memcmp(face->addr.ip, at->ip, at->family == TTI_ADDR_IP4 ? 4 : 16) == 0 &&
           (at->scope == 0 || face->addr.scope == at->scope);
}

static void find_name(tti_port *port, const tti_addr *at, char name[TTI_INTERFACE_NAME_MAX])
{
    tti_interface *faces = calloc(INTERFACES_MAX, sizeof *faces);
    int            n = faces != NULL ? port->ops->interfaces(port, faces, INTERFACES_MAX) : 0;
    int            i;

    name[0] = '\0';
    for (i = 0; i < n && name[0] == '\0'; i++)
        if (is_at(&faces[i], at))
            memcpy(name, faces[i].name, TTI_INTERFACE_NAME_MAX);
    name[strcspn(name, ":")] = '\0'; /* "eth0:1" is a label of an address */
    free(faces);
}

int tti_socket_link_facts(tti_port *port, const tti_addr *at, tti_link_facts *facts_out)
{
    tti_link_facts facts = { .mbit = 0 };
    tti_shaper     shaper;
    int64_t        speed, shaped;

    find_name(port, at, facts.name);
    memset(&shaper, 0, sizeof shaper);
    shaper.interface = facts.name[0] != '\0' ? if_nametoindex(facts.name) : 0;
    if (shaper.interface == 0)
        return -ENODEV;
    read_shaper(&shaper);
    speed = speed_of(facts.name, shaper.interface);
    shaped = (int64_t)(tti_shaper_rate(&shaper) / (1000 * 1000 / 8));
    if (tti_shaper_rate(&shaper) > 0 && shaped == 0)
        shaped = 1;
    if (shaped > MBIT_MAX)
        shaped = 0;
    facts.mbit = speed > 0 && (shaped == 0 || speed < shaped) ? speed : shaped;
    if (facts.mbit > 0)
        snprintf(facts.source, sizeof facts.source, "%s", facts.mbit == shaped ? shaper.discipline : "speed");
    facts.burst = facts.mbit > 0 && facts.mbit == shaped ? (int64_t)tti_shaper_burst(&shaper) : 0;
    *facts_out = facts;
    return 0;
}
