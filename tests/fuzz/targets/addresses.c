/* SPDX-License-Identifier: BSD-3-Clause
 *
 * addresses.c - addresses, init URLs and Slurm's lists of hosts.
 *
 * Holds   An address that was read and written is read again as itself; hosts, paths and numbers of what was read are within
 *         their bounds. */
#include "fuzz/fuzz.h"

#include "rendezvous/scheduler.h"
#include "rendezvous/url.h"

static void try_addr(const char *text)
{
    char     out[TTI_ADDR_TEXT_MAX], host[TTI_HOST_MAX];
    tti_addr addr, again;
    uint16_t port = 0;

    if (tti_addr_parse(text, 29500, &addr) != TUTTI_OK)
        return;
    tti_addr_format(&addr, out, sizeof out);
    TT_MUST(strlen(out) < sizeof out - 1);
    TT_MUST(tti_addr_split(out, false, host, &port) == TUTTI_OK && port == 29500);
    TT_MUST(tti_addr_parse(host, port, &again) == TUTTI_OK);
    TT_MUST(again.family == addr.family && again.scope == addr.scope && memcmp(again.ip, addr.ip, sizeof addr.ip) == 0);
    TT_MUST(tti_addr_is_loopback(&again) == tti_addr_is_loopback(&addr));
}

static void try_split(const char *text, bool zero_ok)
{
    char     host[TTI_HOST_MAX], again[TTI_HOST_MAX], whole[TTI_HOST_MAX + 16];
    uint16_t port = 0, port_again = 0;

    if (tti_addr_split(text, zero_ok, host, &port) != TUTTI_OK)
        return;
    TT_MUST(host[0] != '\0' && strlen(host) < sizeof host && (zero_ok || port > 0));
    snprintf(whole, sizeof whole, strchr(host, ':') != NULL || text[0] == '[' ? "[%s]:%u" : "%s:%u", host, port);
    TT_MUST(tti_addr_split(whole, zero_ok, again, &port_again) == TUTTI_OK);
    TT_MUST(port == port_again && strcmp(host, again) == 0);
}

static void try_url(const char *text)
{
    tti_url url;

    if (tti_url_parse(text, &url) != TUTTI_OK)
        return;
    TT_MUST(url.rank >= -1 && url.rank < TTI_WORLD_MAX && url.world_size >= 0 && url.world_size <= TTI_WORLD_MAX);
    if (url.scheme == TTI_URL_FILE)
        TT_MUST(url.path[0] == '/' && strlen(url.path) < sizeof url.path);
    if (url.scheme == TTI_URL_TCP || url.scheme == TTI_URL_TORCH)
        TT_MUST(url.host[0] != '\0' && strlen(url.host) < sizeof url.host);
}

static void try_hosts(const char *text)
{
    char host[TTI_HOST_MAX];

    if (tti_first_host(text, host))
        TT_MUST(host[0] != '\0' && strlen(host) < sizeof host);
    (void)tti_job_hash(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = tt_text(data, size);

    try_addr(text);
    try_split(text, false);
    try_split(text, true);
    try_url(text);
    try_hosts(text);
    free(text);
    return 0;
}
