/* SPDX-License-Identifier: BSD-3-Clause
 *
 * addr.c - addresses as text and back. */
#include "wire/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

const char *tti_addr_format(const tti_addr *addr, char *out, size_t bytes)
{
    char ip[INET6_ADDRSTRLEN];

    switch (addr->family) {
    case TTI_ADDR_IP4:
        snprintf(out, bytes, "%s:%u", inet_ntop(AF_INET, addr->ip, ip, sizeof ip), addr->port);
        break;
    case TTI_ADDR_IP6:
        inet_ntop(AF_INET6, addr->ip, ip, sizeof ip);
        if (addr->scope != 0)
            snprintf(out, bytes, "[%s%%%u]:%u", ip, addr->scope, addr->port);
        else
            snprintf(out, bytes, "[%s]:%u", ip, addr->port);
        break;
    case TTI_ADDR_LOCAL: snprintf(out, bytes, "local:%s", addr->name); break;
    case TTI_ADDR_NONE: snprintf(out, bytes, "no address"); break;
    }
    return out;
}

/* A whole decimal number within [min, max]. */
static bool read_number(const char *text, unsigned long min, unsigned long max, unsigned long *out)
{
    char         *end = NULL;
    unsigned long value;

    if (text[0] < '0' || text[0] > '9')
        return false;
    value = strtoul(text, &end, 10);
    if (*end != '\0' || value < min || value > max)
        return false;
    *out = value;
    return true;
}

static bool parse_ip6(const char *host, tti_addr *addr)
{
    char          ip[INET6_ADDRSTRLEN];
    const char   *percent = strchr(host, '%');
    const size_t  length = percent != NULL ? (size_t)(percent - host) : strlen(host);
    unsigned long scope = 0;

    if (length >= sizeof ip)
        return false;
    if (percent != NULL && !read_number(percent + 1, 1, UINT32_MAX, &scope))
        return false;
    memcpy(ip, host, length);
    ip[length] = '\0';
    addr->family = TTI_ADDR_IP6;
    addr->scope = (uint32_t)scope;
    return inet_pton(AF_INET6, ip, addr->ip) == 1;
}

tutti_status tti_addr_parse(const char *host, uint16_t tcp_port, tti_addr *out)
{
    tti_addr addr = { .family = TTI_ADDR_IP4, .port = tcp_port };

    if (inet_pton(AF_INET, host, addr.ip) != 1 && !parse_ip6(host, &addr))
        return tti_fail(TUTTI_E_ARG, "'%s' is not a numeric address", host);
    *out = addr;
    return TUTTI_OK;
}

bool tti_addr_is_loopback(const tti_addr *addr)
{
    static const uint8_t ip6[16] = { [15] = 1 };
    static const uint8_t mapped[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };

    switch (addr->family) {
    case TTI_ADDR_IP4: return addr->ip[0] == 127;
    case TTI_ADDR_IP6:
        return memcmp(addr->ip, ip6, sizeof ip6) == 0 ||
               memcmp(addr->ip, mapped, sizeof mapped) == 0;
    case TTI_ADDR_LOCAL: return true;
    case TTI_ADDR_NONE: break;
    }
    return false;
}

/* The colon before the port, and what the host is; NULL: there is no such colon. */
static const char *find_colon(const char *text, const char **host, size_t *host_size)
{
    const char *end;

    if (text[0] == '[') {
        end = strchr(text, ']');
        if (end == NULL || end[1] != ':')
            return NULL;
        *host = text + 1;
        *host_size = (size_t)(end - text - 1);
        return end + 1;
    }
    end = strchr(text, ':');
    if (end == NULL)
        return NULL;
    *host = text;
    *host_size = (size_t)(end - text);
    return end;
}

tutti_status tti_addr_split(const char *text, bool zero_ok, char host_out[TTI_HOST_MAX],
                            uint16_t *port_out)
{
    const char   *host = NULL;
    size_t        host_size = 0;
    const char   *colon = find_colon(text, &host, &host_size);
    unsigned long number;

    if (colon == NULL)
        return tti_fail(TUTTI_E_ARG, "'%s' has no port\n  next: write host:port or [address]:port",
                        text);
    if (text[0] != '[' && strchr(colon + 1, ':') != NULL)
        return tti_fail(TUTTI_E_ARG, "'%s' has several colons\n  next: write [address]:port", text);
    if (host_size == 0)
        return tti_fail(TUTTI_E_ARG, "'%s' has no host before the port", text);
    if (host_size >= TTI_HOST_MAX)
        return tti_fail(TUTTI_E_ARG, "a host name of %zu bytes is too long, %d is the most",
                        host_size, TTI_HOST_MAX - 1);
    if (!read_number(colon + 1, zero_ok ? 0 : 1, 65535, &number))
        return tti_fail(TUTTI_E_ARG, "'%s': '%s' is not a port between %d and 65535", text,
                        colon + 1, zero_ok ? 0 : 1);
    memcpy(host_out, host, host_size);
    host_out[host_size] = '\0';
    *port_out = (uint16_t)number;
    return TUTTI_OK;
}

const char *tti_host_bare(const char *host, char out[TTI_HOST_MAX])
{
    const size_t length = strlen(host);
    const bool   bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']' && strchr(host, ':') != NULL;

    snprintf(out, TTI_HOST_MAX, "%.*s", (int)(bracketed ? length - 2 : length), host + bracketed);
    return out;
}
