/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.c - store, secret, environments; then the supervisor; then nothing is left of it.
 *
 * How     signals are ours -> room for descriptors -> secret file -> store server (host 0)
 *         -> memory for recorders -> the herald -> argument and environment lists
 *         -> tti_supervise() -> all of it undone in reverse.
 * True    From the first thing that could be left behind on, a signal no longer ends this process: it
 *         waits in the pipe until the ranks run, and then ends the job in order. The store lives as
 *         long as the ranks of this host. fork() happens on the calling thread, which stays until the
 *         job's end, as the ranks' parent-death signal demands.
 * Fails   A port that is taken, no place for the secret, no memory: before any rank is started. */
#include "elastic/job.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "base/clip.h"
#include "base/port.h"
#include "elastic/files.h"
#include "elastic/herald.h"
#include "elastic/job_secret.h"
#include "elastic/recorders.h"
#include "elastic/signals.h"
#include "elastic/worker.h"
#include "wire/secret.h"

enum {
    NPROC_MAX = TTI_KEEPER_GROUPS_MAX,
    NNODES_MAX = 65536,
    SHUTDOWN_MS = 30000,
    RUN_ID_MAX = 24
};

#define TELL_LATE_NS (3 * TTI_SECOND) /* how long a host that has failed looks for a store that is not there yet */

static tutti_status check_sizes(const tutti_launch_options *o)
{
    if (o->nproc < 1 || o->nproc > NPROC_MAX)
        return tti_fail(TUTTI_E_ARG, "%d processes per host: must be 1 .. %d", o->nproc, NPROC_MAX);
    if (o->nnodes < 1 || o->nnodes > NNODES_MAX)
        return tti_fail(TUTTI_E_ARG, "%d hosts: must be 1 .. %d", o->nnodes, NNODES_MAX);
    if (o->node_rank < 0 || o->node_rank >= o->nnodes)
        return tti_fail(TUTTI_E_ARG, "host rank %d of %d hosts: must be 0 .. %d", o->node_rank,
                        o->nnodes, o->nnodes - 1);
    if (o->master_port < 0 || o->master_port > 65535)
        return tti_fail(TUTTI_E_ARG, "master port %d: must be 0 .. 65535", o->master_port);
    if (o->nnodes > 1 && o->master_port == 0)
        return tti_fail(TUTTI_E_ARG, "%d hosts need a master port that all of them know",
                        o->nnodes);
    if (o->replacements < 0 || o->replacements > NPROC_MAX - o->nproc)
        return tti_fail(TUTTI_E_ARG, "%d replacements: must be 0 .. %d", o->replacements, NPROC_MAX - o->nproc);
    if (o->replacements > 0 && !o->keep)
        return tti_fail(TUTTI_E_ARG, "replacements are for jobs whose ranks are kept when one fails, and keep is not set\n"
                                     "  next: run with --on-failure=keep, or set tutti_launch_options.keep");
    if (o->shutdown_ms < 0)
        return tti_fail(TUTTI_E_ARG, "shutdown time-out of %lld ms: must not be negative",
                        (long long)o->shutdown_ms);
    return TUTTI_OK;
}

tutti_status tti_job_options(const tutti_launch_options *opts, tutti_launch_options *out)
{
    tutti_launch_options o = { .size = sizeof o };

    if (opts == NULL || opts->size < sizeof(size_t) + sizeof(char *))
        return tti_fail(TUTTI_E_ARG, "launch options are missing, or were not initialised with "
                                     "TUTTI_LAUNCH_OPTIONS");
    memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
    if (o.argv == NULL || o.argv[0] == NULL)
        return tti_fail(TUTTI_E_ARG, "no program to launch");
    o.nproc = o.nproc == 0 ? 1 : o.nproc;
    o.nnodes = o.nnodes == 0 ? 1 : o.nnodes;
    o.master_addr = o.master_addr == NULL ? "127.0.0.1" : o.master_addr;
    o.shutdown_ms = o.shutdown_ms == 0 ? SHUTDOWN_MS : o.shutdown_ms;
    *out = o;
    return check_sizes(&o);
}

typedef struct job {
    const tti_job_program *program;
    const tutti_launch_options *opts;
    int signal_fd;
    struct rlimit files; /* the limit as it was */
    tti_job_secret secret;
    const char *secret_file; /* NULL: none */
    tutti_store_server *server;
    int port;
    char run_id[RUN_ID_MAX];
    int *recorders; /* [nproc + replacements] descriptors */
    tti_sight *sights; /* [the same] */
    tti_herald *herald; /* NULL: ranks are not told of each other's ends */
    char ***argvs;
    char ***envps;
} job;

/* Once, and not by each rank. */
static tutti_status check_secret(const char *file)
{
    tti_secret secret;
    tutti_status st = tti_secret_load(file, &secret);

    if (st == TUTTI_OK)
        tti_secret_release(&secret);
    return st;
}

/* Several hosts without a secret: only where everybody who reaches a port may come in. */
static tutti_status do_without_secret(job *j)
{
    bool         wanted = true;
    tutti_status st = tti_auth_wanted(&wanted);

    if (st != TUTTI_OK)
        return st;
    if (wanted)
        return tti_fail(TUTTI_E_AUTH,
                        "a job on %d hosts needs a secret that all of them know: TUTTI_SECRET_FILE "
                        "is not set\n  next: copy a file with 64 random hex digits, mode 0600, to "
                        "every host and name it in TUTTI_SECRET_FILE",
                        j->opts->nnodes);
    return tti_keeper_start("", "", &j->secret.keeper);
}

/* Ranks of one host get a secret of their own. Those of several have to be given the same one. */
static tutti_status choose_secret(job *j)
{
    tutti_status st;

    if (j->opts->nnodes == 1) {
        st = tti_job_secret_make(&j->secret);
        if (st == TUTTI_OK)
            j->secret_file = j->secret.file;
        return st;
    }
    j->secret_file = tti_env("TUTTI_SECRET_FILE");
    if (j->secret_file == NULL)
        return do_without_secret(j);
    st = check_secret(j->secret_file);
    return st == TUTTI_OK ? tti_keeper_start("", "", &j->secret.keeper) : st; /* that file is not ours to remove */
}

/* Two hosts that are both said to be host 0 look like this on the one that is not. */
static tutti_status ask_which_host(const job *j, tutti_status st)
{
    static const char next[] = "\n  next: ";
    char              words[TTI_LAST_ERROR_MAX];
    const char       *step;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    step = strstr(words, next);
    if (j->opts->nnodes < 2 || step == NULL || strstr(words, "this host has no such address") == NULL)
        return st;
    return tti_fail(st, "%.*s%ssee whether --node-rank 0 is right here: only the host that has that address is host 0; if it is, %s",
                    (int)(step - words), words, next, step + strlen(next));
}

static tutti_status serve_store(job *j)
{
    tutti_store_server_options o = TUTTI_STORE_SERVER_OPTIONS;
    tutti_status st;

    j->port = j->opts->master_port;
    if (j->opts->node_rank != 0)
        return TUTTI_OK;
    o.host = j->opts->master_addr;
    o.port = j->opts->master_port;
    o.secret_file = j->secret_file;
    st = tutti_store_server_start(&o, &j->server);
    if (st == TUTTI_OK)
        j->port = tutti_store_server_port(j->server);
    return st == TUTTI_E_NETWORK ? ask_which_host(j, st) : st;
}

/* A job can do without. */
static void begin_telling(job *j)
{
    const tutti_launch_options *o = j->opts;
    const tti_herald_config config = { .nproc = o->nproc,
                                       .spares = o->replacements,
                                       .nnodes = o->nnodes,
                                       .node = o->node_rank,
                                       .store_host = o->master_addr,
                                       .store_port = j->port,
                                       .secret_file = j->secret_file,
                                       .keep = o->keep,
                                       .run_id = o->run_id,
                                       .server = j->server };

    if (tti_herald_begin(&config, &j->herald) != TUTTI_OK)
        tti_log(TTI_LOG_WARN, "ranks that wait for one that has ended are not told: %s", tutti_last_error());
}

static const char *name_run(job *j)
{
    tti_port *port = tti_port_system();
    uint64_t number;

    if (j->opts->run_id != NULL)
        return j->opts->run_id;
    port->ops->random(port, &number, sizeof number);
    snprintf(j->run_id, sizeof j->run_id, "%016llx", (unsigned long long)number);
    return j->run_id;
}

static tutti_status make_lists(job *j)
{
    const tutti_launch_options *o = j->opts;
    const int n = o->nproc + o->replacements;
    tti_place place = { .nproc = o->nproc,
                        .nnodes = o->nnodes,
                        .node_rank = o->node_rank,
                        .master_addr = o->master_addr,
                        .master_port = j->port,
                        .run_id = name_run(j),
                        .secret_file = j->secret_file,
                        .bulletin_fd = tti_herald_fd(j->herald),
                        .spawn_name = j->program->spawn_name,
                        .spawn_arg = j->program->spawn_arg };
    tutti_status st = TUTTI_OK;
    int i;

    j->argvs = calloc((size_t)n, sizeof *j->argvs);
    j->envps = calloc((size_t)n, sizeof *j->envps);
    if (j->argvs == NULL || j->envps == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to prepare %d ranks", o->nproc);
    for (i = 0; i < n && st == TUTTI_OK; i++) {
        place.recorder_fd = j->recorders[i];
        st = tti_worker_args(j->program->argv, i, &j->argvs[i]);
        if (st == TUTTI_OK)
            st = tti_worker_env(&place, i, &j->envps[i]);
    }
    return st;
}

static tutti_status supervise(job *j, tti_job_result *result_out)
{
    const tutti_launch_options *o = j->opts;
    tti_job what = { .n_ranks = o->nproc,
                     .n_spares = o->replacements,
                     .keep = o->keep,
                     .path = j->program->path,
                     .argvs = (char *const *const *)j->argvs,
                     .envps = (char *const *const *)j->envps,
                     .plain_output = o->plain_output,
                     .shutdown_ns = o->shutdown_ms * TTI_MS,
                     .signal_fd = j->signal_fd,
                     .files = &j->files,
                     .keeper = &j->secret.keeper,
                     .recorders = j->recorders,
                     .sights = j->sights,
                     .first_rank = o->node_rank * o->nproc,
                     .herald = j->herald };
    tutti_status st = tti_supervise(&what, result_out);

    if (st == TUTTI_OK && result_out->exit_code != 0 && result_out->signal == 0) {
        tti_herald_finish(j->herald, tti_now_ns() + TELL_LATE_NS);
        result_out->elsewhere = tti_herald_first_elsewhere(j->herald, &result_out->origin);
    }
    if (st == TUTTI_OK && o->keep)
        result_out->n_gone = tti_herald_gone(j->herald, &result_out->gone);
    if (st == TUTTI_OK && (result_out->exit_code != 0 || result_out->kept))
        tti_recorders_dump(j->recorders, j->sights, o->nproc + o->replacements);
    return st;
}

static tutti_status make_sights(job *j)
{
    const int n = j->opts->nproc + j->opts->replacements;

    j->sights = calloc((size_t)n, sizeof *j->sights);
    return j->sights != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for what %d ranks were at", n);
}

/* On host 0 every rank of the job is a client of the store, and three threads of each launcher. */
static tutti_status reserve_files(job *j)
{
    const tutti_launch_options *o = j->opts;
    const int n = o->nproc + o->replacements;
    int64_t n_clients = o->node_rank == 0 ? (int64_t)o->nnodes * (n + 3) : 0;

    return tti_files_reserve(n, n_clients, &j->files);
}

static void undo(job *j)
{
    int i;

    for (i = 0; i < j->opts->nproc + j->opts->replacements; i++) {
        if (j->envps != NULL)
            tti_strings_free(j->envps[i]);
        if (j->argvs != NULL)
            tti_strings_free(j->argvs[i]);
    }
    free(j->envps);
    free(j->argvs);
    tti_recorders_close(j->recorders, j->opts->nproc + j->opts->replacements);
    free(j->recorders);
    free(j->sights);
    tti_herald_end(j->herald);
    tutti_store_server_stop(j->server);
    tti_job_secret_remove(&j->secret);
    tti_files_restore(&j->files);
    tti_signals_give_back(j->signal_fd);
}

tutti_status tti_job_run(const tti_job_program *program, const tutti_launch_options *opts,
                         tti_job_result *result_out)
{
    job j = { .program = program, .opts = opts };
    tutti_status st = tti_signals_take(&j.signal_fd);

    if (st != TUTTI_OK)
        return st;
    st = reserve_files(&j);
    if (st != TUTTI_OK) {
        tti_signals_give_back(j.signal_fd);
        return st;
    }
    st = choose_secret(&j);
    if (st == TUTTI_OK)
        st = serve_store(&j);
    if (st == TUTTI_OK)
        st = tti_recorders_make(opts->nproc + opts->replacements, &j.recorders);
    if (st == TUTTI_OK)
        st = make_sights(&j);
    if (st == TUTTI_OK)
        begin_telling(&j);
    if (st == TUTTI_OK)
        st = make_lists(&j);
    if (st == TUTTI_OK)
        st = supervise(&j, result_out);
    undo(&j);
    return st;
}
