/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous.c - env://, tcp://, torch-tcp://, file:// and an explicit store.
 *
 * Why     Everything above needs the same four facts, whoever started the process.
 * How     1. who and where: rank, size, host and port, from options, URL, environment or scheduler (who.c).
 *         2. rank 0 serves the tcp store and everybody connects, a second rank 0, too, to be told that it is
 *            one; under `tutti run` the launcher serves it (TORCHELASTIC_USE_AGENT_STORE), every rank
 *            is a client, and the keys of one attempt stand below "/worker/attempt_N", so that a
 *            restart meets none of the last.
 *            Where the launcher is PyTorch's, its store is met in its own protocol, as with
 *            torch-tcp://.
 * True    Nobody waits for ranks here: a backend's creation does, and can say who is missing.
 * Source  torch.distributed.rendezvous, whose variables and URLs these are. */
#include "rendezvous/rendezvous.h"

#include "base/clip.h"
#include "base/doubt.h"
#include "base/env.h"
#include "rendezvous/beacon.h"
#include "rendezvous/generation.h"
#include "rendezvous/listen.h"
#include "rendezvous/who.h"

#include <stdio.h>
#include <string.h>
#include <tutti/plugin/store.h>
#include <tutti/private.h>
#include "store/store.h"
#include "watch/bulletin.h"
#include "wire/addr.h"

enum { SECOND_LOOK_MS = 1000, CLAIM_MS = 10000, OWN_WORDS_MAX = TTI_LAST_ERROR_MAX };

static tutti_status find_timeout(int64_t wanted_ms, int64_t *timeout_out)
{
    if (wanted_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "timeout_ms is %lld\n  next: 0 for the default, -1 for none",
                        (long long)wanted_ms);
    if (wanted_ms == 0)
        return tti_env_timeout(timeout_out);
    *timeout_out = wanted_ms;
    return TUTTI_OK;
}

/* Whether a launcher serves the store at url: always with env://, and when tcp:// says the same. */
static bool launcher_serves(const tti_url *url)
{
    const char *use = tti_env("TORCHELASTIC_USE_AGENT_STORE");
    const char *host = tti_env("MASTER_ADDR");
    const char *tcp_port = tti_env("MASTER_PORT");
    char        ours[8], bare[TTI_HOST_MAX];

    if (use == NULL || strcmp(use, "True") != 0)
        return false;
    if (url->scheme == TTI_URL_ENV)
        return true;
    snprintf(ours, sizeof ours, "%u", url->port);
    return host != NULL && strcmp(tti_host_bare(host, bare), url->host) == 0 && tcp_port != NULL &&
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

/* A program's store may be a part of the one that has a way. */
static void note_way(tutti_store *store, tti_join *join)
{
    if (!tti_tcp_store_way(tutti_store_underlying_non_prefix(store), &join->way))
        join->way.family = TTI_ADDR_NONE;
}

/* Where the port was computed, another job's store may be at it: under this prefix nobody meets that
 * job's keys. Takes over the reference. */
static tutti_status below_job(const char *job_name, tutti_store *store, tutti_store **store_out)
{
    char         prefix[TTI_JOB_NAME_MAX + 8];
    tutti_status st;

    snprintf(prefix, sizeof prefix, "/job/%s", job_name);
    st = tutti_prefix_store_open(prefix, store, store_out);
    tutti_store_close(store);
    return st;
}

/* Under a scheduler on one host: rank 0 takes any free port and tells it, the others ask. */
static tutti_status open_by_beacon(tti_port *port, const tti_who *who, tti_join *join)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    const char             *name = who->scheduler.job_name;
    uint16_t                tcp_port = 0;
    tutti_status            st = TUTTI_OK;

    options.host = who->url.host;
    options.world_size = join->world_size;
    options.is_master = join->rank == 0;
    options.timeout_ms = join->timeout_ms;
    if (!options.is_master)
        st = tti_beacon_ask(port, name, join->deadline_ns, &tcp_port);
    if (st != TUTTI_OK)
        return st;
    options.port = tcp_port;
    st = tutti_tcp_store_open(&options, &join->store);
    if (st == TUTTI_OK)
        note_way(join->store, join);
    if (st == TUTTI_OK && options.is_master)
        st = tti_beacon_open(port, name, (uint16_t)tutti_tcp_store_port(join->store), &join->beacon);
    join->rank0_serves = true;
    return st;
}

/* The rest of the job sees this process through a store that asks nobody for a secret. */
static void warn_of_foreign_store(const tti_url *url, const tti_join *join)
{
    if (join->rank == 0)
        tti_log(TTI_LOG_WARN,
                "this job meets through PyTorch's store at %s port %u, and has its secret from there: "
                "it is as safe as that store, which asks nobody for one",
                url->host, url->port);
}

/* Whether the launcher's rank n is rank n here. */
static bool is_as_launched(const tti_join *join)
{
    int64_t rank = -1, size = -1;

    return tti_env("RANK") != NULL && tti_env("WORLD_SIZE") != NULL &&
           tti_env_int("RANK", 0, TTI_WORLD_MAX - 1, &rank) == TUTTI_OK &&
           tti_env_int("WORLD_SIZE", 1, TTI_WORLD_MAX, &size) == TUTTI_OK && rank == join->rank && size == join->world_size;
}

/* PyTorch serves the store: every rank is a client. */
static tutti_status open_torch(tti_port *port, const tti_url *url, bool agent, tti_join *join)
{
    tutti_torch_store_options options = TUTTI_TORCH_STORE_OPTIONS;
    tutti_store              *store = NULL;
    tutti_status              st;

    options.host = url->host;
    options.port = url->port;
    options.join = true;
    options.timeout_ms = join->timeout_ms;
    st = tti_torch_store_open_on(port, &options, &store);
    if (st != TUTTI_OK)
        return st;
    warn_of_foreign_store(url, join);
    if (agent)
        return below_attempt(store, &join->store);
    join->store = store;
    return TUTTI_OK;
}

/* Rank 0 could not serve its store, with st. If a rank 0 is there that serves it, this process is one too many: as its client
 * it is told so (generation.c), and so is whoever waits there for the rank that this one should have been. Who serves takes its
 * place soon after; on a crowded machine that is not at once. */
static tutti_status open_behind_another(tti_port *port, const tutti_tcp_store_options *own, tti_join *join, tutti_status st,
                                        tutti_store **store_out)
{
    const int64_t           claim_ns = tti_port_now(port) + CLAIM_MS * TTI_MS;
    tutti_tcp_store_options options = *own;
    tutti_store            *store = NULL;
    char                    words[OWN_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    options.is_master = options.multi_tenant = false;
    options.timeout_ms = SECOND_LOOK_MS;
    if (tutti_tcp_store_open(&options, &store) == TUTTI_OK &&
        tti_generation_has_rank0(port, store, claim_ns < join->deadline_ns ? claim_ns : join->deadline_ns) &&
        tutti_store_set_timeout(store, join->timeout_ms) == TUTTI_OK) {
        join->another_serves = true;
        *store_out = store;
        return TUTTI_OK;
    }
    tutti_store_close(store);
    return tti_fail(st, "%s", words);
}

static bool has_job_failed(void *bulletin)
{
    tti_ending first;

    return tti_bulletin_first(bulletin, &first);
}

/* The store of `tutti run`. Its launcher ends with the job: who comes after another host's failure would try until time is up,
 * though the launcher here has heard of that. */
static tutti_status open_of_launcher(const tutti_tcp_store_options *options, const tti_join *join, tutti_store **store_out)
{
    tti_bulletin   *bulletin = is_as_launched(join) ? tti_bulletin_open() : NULL;
    const tti_doubt doubt = { .is_vain = has_job_failed, .context = bulletin };
    char            words[TTI_ENDING_TEXT_MAX];
    tti_ending      first;
    tutti_status    st;

    tti_doubt_waits(bulletin != NULL ? &doubt : NULL);
    st = tutti_tcp_store_open(options, store_out);
    tti_doubt_waits(NULL);
    if (st == TUTTI_E_NETWORK && bulletin != NULL && tti_bulletin_first(bulletin, &first))
        st = tti_fail(TUTTI_E_PEER,
                      "rank %d cannot join the world of %d: the job ends, because %s\n"
                      "  next: see what the first that failed wrote",
                      join->rank, join->world_size, tti_ending_words(&first, words));
    tti_bulletin_close(bulletin);
    return st;
}

static tutti_status open_tcp(tti_port *port, const tti_who *who, tti_join *join)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    const tti_url          *url = &who->url;
    const bool              agent = launcher_serves(url);
    tutti_store            *store = NULL;
    bool                    ours = false;
    tutti_status            st = tti_env_flag("TUTTI_AGENT_STORE", &ours);

    if (st != TUTTI_OK)
        return st;
    if (url->scheme == TTI_URL_TORCH || (agent && !ours))
        return open_torch(port, url, agent, join);
    if (url->port == 0 && (agent || join->world_size > 1))
        return tti_fail(TUTTI_E_ARG, "port 0 (any free one) is for a world of one: other ranks "
                                     "could not know which port it became\n"
                                     "  next: give all ranks the same port, 1 .. 65535");
    options.host = url->host;
    options.port = url->port;
    options.world_size = join->world_size;
    options.is_master = !agent && join->rank == 0;
    options.multi_tenant = options.is_master; /* two worlds of one process may name one port */
    options.timeout_ms = join->timeout_ms;
    st = agent ? open_of_launcher(&options, join, &store) : tutti_tcp_store_open(&options, &store);
    if (st == TUTTI_E_NETWORK && options.is_master && join->world_size > 1)
        st = open_behind_another(port, &options, join, st, &store);
    if (st != TUTTI_OK)
        return st;
    note_way(store, join);
    join->launched = agent && is_as_launched(join);
    if (agent)
        return below_attempt(store, &join->store);
    join->rank0_serves = join->world_size > 1;
    if (who->port_chosen)
        return below_job(who->scheduler.job_name, store, &join->store);
    join->store = store;
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
    tti_who      who;
    tutti_status st = tti_who_find(config, &who);

    if (st != TUTTI_OK)
        return st;
    join->rank = who.rank;
    join->world_size = who.world_size;
    if (who.url.scheme == TTI_URL_FILE)
        st = open_file(&who.url, join);
    else if (who.beacon)
        st = open_by_beacon(config->port, &who, join);
    else
        st = open_tcp(config->port, &who, join);
    if (st != TUTTI_OK)
        return st;
    return tti_listen_host(config->port, who.url.scheme == TTI_URL_FILE ? NULL : who.url.host,
                           join->way.family != TTI_ADDR_NONE ? &join->way : NULL, join->listen_host);
}

/* An explicit store does not say where it stands. One that may join hosts has the way to the others told by MASTER_ADDR,
 * or else by the options. NULL: by neither. */
static const char *master_of(const tti_rendezvous_config *config, char out[TTI_HOST_MAX])
{
    const char *scheme = config->store->ops->scheme;
    const char *told;

    if (strcmp(scheme, "hash") == 0 || strcmp(scheme, "file") == 0)
        return NULL;
    told = tti_env("MASTER_ADDR");
    if (told == NULL)
        told = config->store_host;
    return told != NULL ? tti_host_bare(told, out) : NULL;
}

static tutti_status join_by_store(const tti_rendezvous_config *config, tti_join *join)
{
    char         master[TTI_HOST_MAX];
    tutti_status st;

    if (config->url != NULL)
        return tti_fail(TUTTI_E_ARG, "both a store and an init URL are given\n"
                                     "  next: keep one of the two");
    if (config->world_size <= 0)
        return tti_fail(TUTTI_E_ARG, "a store is given without world_size\n"
                                     "  next: set world_size, and rank to 0 .. world_size - 1");
    st = tti_who_check(config->rank, config->world_size);
    if (st != TUTTI_OK)
        return st;
    note_way(config->store, join);
    st = tti_listen_host(config->port, master_of(config, master), join->way.family != TTI_ADDR_NONE ? &join->way : NULL,
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
        st = tti_store_check_own(config->store);
    if (st == TUTTI_OK && config->store != NULL)
        st = join_by_store(config, &join);
    else if (st == TUTTI_OK)
        st = join_by_url(config, &join);
    if (st == TUTTI_OK)
        *join_out = join;
    else
        tti_join_release(&join);
    return st;
}

void tti_join_release(tti_join *join)
{
    tti_beacon_close(join->beacon);
    tutti_store_close(join->store);
    *join = (tti_join){ 0 };
}
