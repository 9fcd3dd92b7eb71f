/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous.c - env://, tcp://, file:// and an explicit store.
 *
 * Why     Everything above needs the same four facts, whoever started the process.
 * How     1. who: rank and size come from the options, else the URL's query, else (env://) RANK and
 *            WORLD_SIZE; options and query together are refused.
 *         2. where: tcp://'s host and port, or MASTER_ADDR and MASTER_PORT.
 *         3. rank 0 serves the tcp store and everybody connects; under `tutti run` the launcher
 *            serves it (TORCHELASTIC_USE_AGENT_STORE), every rank is a client, and the keys of one
 *            attempt stand below "/worker/attempt_N", so that a restart meets none of the last.
 * True    Nobody waits for ranks here: a backend's creation does, and can say who is missing.
 * Source  torch.distributed.rendezvous, whose variables and URLs these are. */
#include "rendezvous/rendezvous.h"

#include "base/env.h"
#include "rendezvous/listen.h"
#include "rendezvous/url.h"

#include <stdio.h>
#include <string.h>
#include <tutti/plugin/store.h>
#include <tutti/private.h>

static tutti_status find_timeout(int64_t wanted_ms, int64_t *timeout_out)
{
    const int64_t longest = TTI_FOREVER / TTI_MS;
    int64_t       ms = wanted_ms;
    tutti_status  st;

    if (wanted_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "timeout_ms is %lld\n  next: 0 for the default, -1 for none",
                        (long long)wanted_ms);
    if (ms == 0) {
        st = tti_env_int("TUTTI_TIMEOUT_MS", TUTTI_INFINITE, longest, &ms);
        if (st != TUTTI_OK)
            return st;
        if (ms == 0)
            return tti_fail(TUTTI_E_ARG, "environment variable TUTTI_TIMEOUT_MS is 0\n"
                                         "  next: a number of ms, or -1 for none");
    }
    *timeout_out = ms;
    return TUTTI_OK;
}

/* A variable that env:// cannot do without. */
static tutti_status need_variable(const char *name, int64_t min, int64_t max, int64_t *value_out)
{
    if (tti_env(name) == NULL)
        return tti_fail(TUTTI_E_ARG,
                        "init_method env:// needs the environment variable %s, which is not set\n"
                        "  next: start the program with 'tutti run', or set RANK, WORLD_SIZE, "
                        "MASTER_ADDR and MASTER_PORT",
                        name);
    return tti_env_int(name, min, max, value_out);
}

static tutti_status check_rank(int rank, int world_size)
{
    if (world_size > TTI_WORLD_MAX)
        return tti_fail(TUTTI_E_ARG, "world size %d is above %d", world_size, TTI_WORLD_MAX);
    if (rank < 0 || rank >= world_size)
        return tti_fail(TUTTI_E_ARG, "rank %d is outside of 0 .. %d (world size %d)", rank,
                        world_size - 1, world_size);
    return TUTTI_OK;
}

/* Fill join's rank and size from the options or the query; -1 and 0 where neither says. */
static tutti_status who_by_options(const tti_rendezvous_config *config, const tti_url *url,
                                   tti_join *join)
{
    if (config->world_size < 0)
        return tti_fail(TUTTI_E_ARG, "world size %d is below 0", config->world_size);
    if (config->world_size == 0) {
        join->rank = url->rank;
        join->world_size = url->world_size;
        return TUTTI_OK;
    }
    if (url->rank >= 0 || url->world_size > 0)
        return tti_fail(TUTTI_E_ARG,
                        "%s is given twice, by the options and by the init URL\n"
                        "  next: keep one of the two",
                        url->rank >= 0 ? "rank" : "world_size");
    join->rank = config->rank;
    join->world_size = config->world_size;
    return check_rank(join->rank, join->world_size);
}

static tutti_status who_by_env(tti_join *join)
{
    tutti_status st;
    int64_t      value = 0;

    if (join->rank < 0) {
        st = need_variable("RANK", 0, TTI_WORLD_MAX - 1, &value);
        if (st != TUTTI_OK)
            return st;
        join->rank = (int)value;
    }
    if (join->world_size == 0) {
        st = need_variable("WORLD_SIZE", 1, TTI_WORLD_MAX, &value);
        if (st != TUTTI_OK)
            return st;
        join->world_size = (int)value;
    }
    return TUTTI_OK;
}

static tutti_status find_who(const tti_rendezvous_config *config, const tti_url *url,
                             tti_join *join)
{
    tutti_status st = who_by_options(config, url, join);

    if (st == TUTTI_OK && url->scheme == TTI_URL_ENV)
        st = who_by_env(join);
    if (st != TUTTI_OK)
        return st;
    if (join->rank < 0 || join->world_size == 0)
        return tti_fail(TUTTI_E_ARG,
                        "the init URL has no %s\n  next: add ?rank=R&world_size=W, or "
                        "set rank and world_size of the options",
                        join->rank < 0 ? "rank" : "world_size");
    return check_rank(join->rank, join->world_size);
}

/* env:// becomes tcp:// with the host and port of the environment. */
static tutti_status find_master(tti_url *url)
{
    const char  *host = tti_env("MASTER_ADDR");
    int64_t      tcp_port = 0;
    tutti_status st;

    if (url->scheme != TTI_URL_ENV)
        return TUTTI_OK;
    if (host == NULL)
        return need_variable("MASTER_ADDR", 0, 0, &tcp_port);
    if (strlen(host) >= sizeof url->host)
        return tti_fail(TUTTI_E_ARG,
                        "environment variable MASTER_ADDR has %zu bytes, %zu is the "
                        "most",
                        strlen(host), sizeof url->host - 1);
    st = need_variable("MASTER_PORT", 0, UINT16_MAX, &tcp_port);
    if (st != TUTTI_OK)
        return st;
    memcpy(url->host, host, strlen(host) + 1);
    url->port = (uint16_t)tcp_port;
    return TUTTI_OK;
}

/* Whether a launcher serves the store at url: always with env://, and when tcp:// says the same. */
static bool launcher_serves(const tti_url *url)
{
    const char *use = tti_env("TORCHELASTIC_USE_AGENT_STORE");
    const char *host = tti_env("MASTER_ADDR");
    const char *tcp_port = tti_env("MASTER_PORT");
    char        ours[8];

    if (use == NULL || strcmp(use, "True") != 0)
        return false;
    if (url->scheme == TTI_URL_ENV)
        return true;
    snprintf(ours, sizeof ours, "%u", url->port);
    return host != NULL && strcmp(host, url->host) == 0 && tcp_port != NULL &&
           strcmp(tcp_port, ours) == 0;
}

/* The view of the launcher's store that belongs to this attempt; takes over the reference. */
static tutti_status below_attempt(tutti_store *store, tutti_store **store_out)
{
    char         prefix[64];
    int64_t      attempt = 0;
    tutti_status st;

    st = tti_env_int("TORCHELASTIC_RESTART_COUNT", 0, INT32_MAX, &attempt);
    if (st == TUTTI_OK) {
        snprintf(prefix, sizeof prefix, "/worker/attempt_%lld", (long long)attempt);
        st = tutti_prefix_store_open(prefix, store, store_out);
    }
    tutti_store_close(store);
    return st;
}

static tutti_status open_tcp(const tti_url *url, tti_join *join)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    const bool              agent = launcher_serves(url);
    tutti_store            *store = NULL;
    tutti_status            st;

    if (agent && !tti_env_flag("TUTTI_AGENT_STORE"))
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "TORCHELASTIC_USE_AGENT_STORE is True, but the store of that launcher at "
                        "%s:%u speaks a protocol that is not spoken here\n"
                        "  next: launch with 'tutti run'",
                        url->host, url->port);
    if (url->port == 0 && (agent || join->world_size > 1))
        return tti_fail(TUTTI_E_ARG, "port 0 (any free one) is for a world of one: other ranks "
                                     "could not know which port it became\n"
                                     "  next: give all ranks the same port, 1 .. 65535");
    options.host = url->host;
    options.port = url->port;
    options.world_size = join->world_size;
    options.is_master = !agent && join->rank == 0;
    options.timeout_ms = join->timeout_ms;
    st = tutti_tcp_store_open(&options, &store);
    if (st != TUTTI_OK)
        return st;
    if (agent)
        return below_attempt(store, &join->store);
    join->store = store;
    join->rank0_serves = join->world_size > 1;
    return TUTTI_OK;
}

static tutti_status open_file(const tti_url *url, tti_join *join)
{
    tutti_store *store = NULL;
    tutti_status st;

    st = tutti_file_store_open(url->path, join->world_size, &store);
    if (st != TUTTI_OK)
        return st;
    st = tutti_store_set_timeout(store, join->timeout_ms);
    if (st != TUTTI_OK) {
        tutti_store_close(store);
        return st;
    }
    join->store = store;
    return TUTTI_OK;
}

static tutti_status join_by_url(const tti_rendezvous_config *config, tti_join *join)
{
    tti_url      url;
    tutti_status st;

    st = tti_url_parse(config->url != NULL ? config->url : "env://", &url);
    if (st == TUTTI_OK)
        st = find_who(config, &url, join);
    if (st == TUTTI_OK)
        st = find_master(&url);
    if (st != TUTTI_OK)
        return st;
    if (url.scheme == TTI_URL_FILE)
        st = open_file(&url, join);
    else
        st = open_tcp(&url, join);
    if (st != TUTTI_OK)
        return st;
    return tti_listen_host(config->port, url.scheme == TTI_URL_FILE ? NULL : url.host,
                           join->listen_host);
}

/* An explicit store does not say where it stands. A tcp one may join hosts: then MASTER_ADDR, where
 * it is set, tells the way to the others. */
static tutti_status join_by_store(const tti_rendezvous_config *config, tti_join *join)
{
    const char  *scheme = config->store->ops->scheme;
    const bool   inside = strcmp(scheme, "hash") == 0 || strcmp(scheme, "file") == 0;
    tutti_status st;

    if (config->url != NULL)
        return tti_fail(TUTTI_E_ARG, "both a store and an init URL are given\n"
                                     "  next: keep one of the two");
    if (config->world_size <= 0)
        return tti_fail(TUTTI_E_ARG, "a store is given without world_size (and rank)");
    st = check_rank(config->rank, config->world_size);
    if (st == TUTTI_OK)
        st = tti_listen_host(config->port, inside ? NULL : tti_env("MASTER_ADDR"),
                             join->listen_host);
    if (st != TUTTI_OK)
        return st;
    join->rank = config->rank;
    join->world_size = config->world_size;
    join->user_store = true;
    join->store = tutti_store_retain(config->store);
    return TUTTI_OK;
}

tutti_status tti_rendezvous(const tti_rendezvous_config *config, tti_join *join_out)
{
    tti_join     join = { .rank = -1 };
    tutti_status st;

    st = find_timeout(config->timeout_ms, &join.timeout_ms);
    if (st != TUTTI_OK)
        return st;
    join.deadline_ns = tti_deadline(config->port, join.timeout_ms, join.timeout_ms);
    if (config->store != NULL)
        st = join_by_store(config, &join);
    else
        st = join_by_url(config, &join);
    if (st == TUTTI_OK)
        *join_out = join;
    else
        tti_join_release(&join);
    return st;
}

void tti_join_release(tti_join *join)
{
    tutti_store_close(join->store);
    *join = (tti_join){ 0 };
}
