/* SPDX-License-Identifier: BSD-3-Clause
 *
 * who.c - who this process is and where the store stands, from whoever says so.
 *
 * How     Rank and size: the options, else the URL's query, else (env://) RANK and WORLD_SIZE, else what a
 *         scheduler says; options and query together are refused. With RANK the schedulers are not asked:
 *         torchrun under srun leaves both.
 *         Store: tcp://'s host and port, or MASTER_ADDR and MASTER_PORT. Without them, under a scheduler:
 *
 *           all ranks on one host   loopback, a port that the kernel chooses, told by a beacon
 *           several hosts, Slurm    the first host of its list, a port made of job and step
 *           several hosts, mpirun   an error that says how to pass MASTER_ADDR
 *
 * True    A port made of a name may be in use, so the store's keys then stand below that name. */
#include "rendezvous/who.h"

#include "base/env.h"
#include "wire/ports.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { CHOSEN_FIRST = 20000, CHOSEN_LAST = 29999 }; /* below the ports that Linux hands out by itself */

/* A RANK that was left over, as in a shell that has exported it, keeps what mpirun tells from being read. */
static tutti_status need_variable(const tti_who *who, const char *name, int64_t min, int64_t max, int64_t *value_out)
{
    const char *passed_over = who->rank_by_variable ? tti_scheduler_here() : NULL;

    if (tti_env(name) == NULL && passed_over != NULL)
        return tti_fail(TUTTI_E_ARG,
                        "init_method env:// needs the environment variable %s, which is not set: RANK is set, so %s's own "
                        "variables are not asked\n  next: unset RANK, or set WORLD_SIZE, MASTER_ADDR and MASTER_PORT, too",
                        name, passed_over);
    if (tti_env(name) == NULL)
        return tti_fail(TUTTI_E_ARG,
                        "init_method env:// needs the environment variable %s, which is not set\n"
                        "  next: %s",
                        name, tti_scheduler_advice());
    return tti_env_int(name, min, max, value_out);
}

tutti_status tti_who_check(int rank, int world_size)
{
    if (world_size > TTI_WORLD_MAX)
        return tti_fail(TUTTI_E_ARG, "world size %d is above %d", world_size, TTI_WORLD_MAX);
    if (rank < 0 || rank >= world_size)
        return tti_fail(TUTTI_E_ARG, "rank %d is outside of 0 .. %d (world size %d)", rank,
                        world_size - 1, world_size);
    return TUTTI_OK;
}

/* Fill in rank and size from the options or the query; -1 and 0 where neither says. */
static tutti_status who_by_options(const tti_rendezvous_config *config, tti_who *who)
{
    const tti_url *url = &who->url;

    if (config->world_size < 0)
        return tti_fail(TUTTI_E_ARG, "world size %d is below 0", config->world_size);
    if (config->world_size == 0) {
        who->rank = url->rank;
        who->world_size = url->world_size;
        return TUTTI_OK;
    }
    if (!config->is_newcomer && (url->rank >= 0 || url->world_size > 0))
        return tti_fail(TUTTI_E_ARG,
                        "%s is given twice, by the options and by the init URL\n"
                        "  next: keep one of the two",
                        url->rank >= 0 ? "rank" : "world_size");
    who->rank = config->rank;
    who->world_size = config->world_size;
    return tti_who_check(who->rank, who->world_size);
}

/* Rank and size as the scheduler says; WORLD_SIZE, where set, must agree. */
static tutti_status who_by_scheduler(tti_who *who)
{
    const tti_scheduler *s = &who->scheduler;
    int64_t              size = s->world_size;
    tutti_status         st = TUTTI_OK;

    if (tti_env("WORLD_SIZE") != NULL)
        st = tti_env_int("WORLD_SIZE", 1, TTI_WORLD_MAX, &size);
    if (st != TUTTI_OK)
        return st;
    if (size != s->world_size)
        return tti_fail(TUTTI_E_ARG,
                        "WORLD_SIZE is %lld, but %s has started %d ranks, and RANK is not set\n"
                        "  next: unset WORLD_SIZE, or set RANK, too",
                        (long long)size, s->name, s->world_size);
    who->rank = s->rank;
    who->world_size = s->world_size;
    return TUTTI_OK;
}

/* One that was started in the place of a rank that had failed has none, whatever a scheduler around its launcher says. */
static tutti_status refuse_replacement(void)
{
    return tti_fail(TUTTI_E_ARG,
                    "this process is replacement %.16s of a job that is at work, and has no rank: it cannot be there when the "
                    "world begins\n"
                    "  next: where TUTTI_REPLACEMENT is set, call tutti_join_group(), and tutti_grow_group() on the others",
                    tti_env("TUTTI_REPLACEMENT"));
}

static tutti_status who_by_env(tti_port *port, tti_who *who)
{
    tutti_status st;
    int64_t      value = 0;

    if (who->rank < 0 && tti_env("RANK") == NULL && tti_env("TUTTI_REPLACEMENT") != NULL)
        return refuse_replacement();
    if (tti_env("RANK") == NULL && who->rank < 0 && who->world_size == 0) {
        st = tti_scheduler_find(port, &who->scheduler);
        if (st != TUTTI_OK)
            return st;
        if (who->scheduler.name != NULL)
            return who_by_scheduler(who);
    }
    if (who->rank < 0) {
        st = need_variable(who, "RANK", 0, TTI_WORLD_MAX - 1, &value);
        if (st != TUTTI_OK)
            return st;
        who->rank = (int)value;
        who->rank_by_variable = true;
    }
    if (who->world_size == 0) {
        st = need_variable(who, "WORLD_SIZE", 1, TTI_WORLD_MAX, &value);
        if (st != TUTTI_OK)
            return st;
        who->world_size = (int)value;
    }
    return TUTTI_OK;
}

static tutti_status find_rank(const tti_rendezvous_config *config, tti_who *who)
{
    tutti_status st = who_by_options(config, who);

    if (st == TUTTI_OK && who->url.scheme == TTI_URL_ENV)
        st = who_by_env(config->port, who);
    if (st != TUTTI_OK)
        return st;
    if (who->rank < 0 || who->world_size == 0)
        return tti_fail(TUTTI_E_ARG,
                        "the init URL has no %s\n  next: add ?rank=R&world_size=W, or "
                        "set rank and world_size of the options",
                        who->rank < 0 ? "rank" : "world_size");
    return tti_who_check(who->rank, who->world_size);
}

/* ---- the store ---- */

static tutti_status host_by_scheduler(tti_who *who)
{
    const tti_scheduler *s = &who->scheduler;
    tutti_status         st = TUTTI_OK;

    if (s->one_host)
        snprintf(who->url.host, sizeof who->url.host, "127.0.0.1");
    else
        st = tti_scheduler_master(s, who->url.host);
    if (st == TUTTI_OK && who->url.host[0] == '\0')
        return tti_fail(TUTTI_E_ARG,
                        "%s has started ranks, and tells neither that all are on this host nor where rank 0 is, and "
                        "MASTER_ADDR is not set\n  next: %s",
                        s->name, s->pass);
    return st;
}

static tutti_status find_host(tti_who *who)
{
    const char *host = tti_env("MASTER_ADDR");
    int64_t     unused = 0;

    if (host == NULL && who->scheduler.name != NULL)
        return host_by_scheduler(who);
    if (host == NULL)
        return need_variable(who, "MASTER_ADDR", 0, 0, &unused);
    if (strlen(host) >= sizeof who->url.host)
        return tti_fail(TUTTI_E_ARG,
                        "environment variable MASTER_ADDR has %zu bytes, %zu is the "
                        "most",
                        strlen(host), sizeof who->url.host - 1);
    (void)tti_host_bare(host, who->url.host);
    return TUTTI_OK;
}

/* A port that all ranks compute from the job's name. */
static tutti_status choose_port(tti_who *who)
{
    tti_ports    ports = { .first = CHOSEN_FIRST, .last = CHOSEN_LAST };
    tutti_status st = tti_ports_wanted(&ports);

    if (st != TUTTI_OK)
        return st;
    who->url.port =
        (uint16_t)(ports.first + tti_job_hash(who->scheduler.job_name) % (ports.last - ports.first + 1U));
    who->port_chosen = true;
    return TUTTI_OK;
}

static tutti_status find_port(tti_who *who)
{
    const tti_scheduler *s = &who->scheduler;
    int64_t              tcp_port = 0;
    tutti_status         st;

    if (tti_env("MASTER_PORT") == NULL && s->job_name[0] != '\0') {
        if (s->one_host && tti_env("MASTER_ADDR") == NULL) {
            who->beacon = who->world_size > 1;
            return TUTTI_OK;
        }
        if (s->named_everywhere)
            return choose_port(who);
    }
    if (tti_env("MASTER_PORT") == NULL && s->name != NULL && who->world_size == 1)
        return TUTTI_OK; /* any will do */
    if (tti_env("MASTER_PORT") == NULL && s->name != NULL)
        return tti_fail(TUTTI_E_ARG,
                        "%s gives this job no name to make a port of, and MASTER_PORT is not set\n"
                        "  next: %s",
                        s->name, s->pass);
    st = need_variable(who, "MASTER_PORT", 0, UINT16_MAX, &tcp_port);
    who->url.port = (uint16_t)tcp_port;
    return st;
}

tutti_status tti_who_find(const tti_rendezvous_config *config, tti_who *out)
{
    tti_who      who = { .rank = -1 };
    tutti_status st;

    st = tti_url_parse(config->url != NULL ? config->url : "env://", &who.url);
    if (st == TUTTI_OK)
        st = find_rank(config, &who);
    if (st == TUTTI_OK && who.url.scheme == TTI_URL_ENV)
        st = find_host(&who);
    if (st == TUTTI_OK && who.url.scheme == TTI_URL_ENV)
        st = find_port(&who);
    if (st == TUTTI_OK)
        *out = who;
    return st;
}
