/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_names.c - the resolver, with a watch. How long it took is told, as a name server that does not answer is what a
 * job that hangs in its beginning most often waits for. */
#include "doctor_names.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>

enum { NAME_BYTES = 256 };

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool name_of_address(const struct sockaddr *addr, char out[INET6_ADDRSTRLEN])
{
    const void *ip = addr->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)addr)->sin_addr
                                                : (const void *)&((const struct sockaddr_in6 *)addr)->sin6_addr;

    return (addr->sa_family == AF_INET || addr->sa_family == AF_INET6) &&
           inet_ntop(addr->sa_family, ip, out, INET6_ADDRSTRLEN) != NULL;
}

static bool is_loopback(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24) == 127;
    return addr->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static bool is_own(const struct ifaddrs *all, const struct sockaddr *addr)
{
    char wanted[INET6_ADDRSTRLEN], one[INET6_ADDRSTRLEN];

    if (is_loopback(addr) || !name_of_address(addr, wanted))
        return true;
    for (; all != NULL; all = all->ifa_next)
        if (all->ifa_addr != NULL && name_of_address(all->ifa_addr, one) && strcmp(one, wanted) == 0)
            return true;
    return false;
}

/* "[fd99::10]", as an address is written before a port, without its brackets, as the library takes it (MASTER_ADDR). */
static const char *without_brackets(const char *name, char out[NAME_BYTES])
{
    const size_t n = strlen(name);

    if (n < 3 || n > NAME_BYTES || name[0] != '[' || name[n - 1] != ']' || strchr(name, ':') == NULL)
        return name;
    memcpy(out, name + 1, n - 2);
    out[n - 2] = '\0';
    return out;
}

name_found name_look(const char *name)
{
    char bare[NAME_BYTES];
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL, *a;
    struct ifaddrs *all = NULL;
    const double begin = now_s();
    const int err = getaddrinfo(without_brackets(name, bare), NULL, &hints, &found);
    name_found f = { .error = err != 0 ? gai_strerror(err) : NULL, .loopback = true, .took_s = now_s() - begin };

    if (err != 0)
        return f;
    (void)name_of_address(found->ai_addr, f.first);
    if (getifaddrs(&all) != 0)
        f.own = true; /* not known to be another's */
    for (a = found; a != NULL; a = a->ai_next) {
        f.own = f.own || is_own(all, a->ai_addr);
        f.loopback = f.loopback && is_loopback(a->ai_addr);
    }
    freeifaddrs(all);
    freeaddrinfo(found);
    return f;
}
