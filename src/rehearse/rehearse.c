/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rehearse.c - a rehearsal from its options to its report.
 *
 * Each rank is a process of the rehearsed world: it reaches the store as a client by TCP, makes the world, calls the program
 * and leaves. The store is served by a process of its own, with the engine that serves every job. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "base/fnv.h"
#include "base/options.h"
#include "rehearse/world.h"

enum {
    STORE_PORT = 29500,
    RANKS_MAX = 64, /* of report.lost */
    HOSTS_MAX = 32,
    TURNS_FOR_A_RANK = 300,
    TURNS_MAX = 5000000,
};

/* ---- the processes ---------------------------------------------------------------------------------------- */

typedef struct show show;

typedef struct rank_part {
    show           *show;
    tutti_rehearsed me;
} rank_part;

struct show {
    tti_stage                     stage;
    tutti_rehearse_options        options;
    tutti_rehearsed_program      *program;
    void                         *arg;
    int                           n_ranks;
    rank_part                    *ranks;
};

static void serve(void *arg)
{
    show                      *s = arg;
    tti_port                  *port = &s->stage.port;
    tutti_store_server_options options = TUTTI_STORE_SERVER_OPTIONS;
    tutti_store_server        *server = NULL;

    options.host = "host0";
    options.port = STORE_PORT;
    if (tutti_store_server_start(&options, &server) != TUTTI_OK)
        tti_log(TTI_LOG_ERROR, "%s", tutti_last_error());
    while (atomic_load(&s->stage.over) == 0)
        port->ops->wait_word(port, &s->stage.over, 0, TTI_FOREVER);
    tutti_store_server_stop(server);
}

static tutti_status enter(rank_part *part)
{
    const tutti_rehearse_options *o = &part->show->options;
    tutti_tcp_store_options       tcp = TUTTI_TCP_STORE_OPTIONS;
    tutti_init_options            init = TUTTI_INIT_OPTIONS;
    tutti_status                  st;

    tcp.host = "host0";
    tcp.port = STORE_PORT;
    tcp.timeout_ms = o->timeout_ms;
    st = tutti_tcp_store_open(&tcp, &part->me.store);
    if (st != TUTTI_OK)
        return st;
    init.store = part->me.store;
    init.rank = part->me.rank;
    init.world_size = part->me.n_ranks;
    init.timeout_ms = o->timeout_ms;
    return tutti_create_process_group(&init, &part->me.world);
}

static void play_rank(void *arg)
{
    rank_part   *part = arg;
    tutti_group *left;

    tutti_use_group(NULL);
    part->me.made = enter(part);
    tutti_use_group(part->me.world);
    part->show->program(&part->me, part->show->arg);
    left = tutti_current_group();
    if (left != NULL)
        tutti_destroy_process_group(left);
    tutti_use_group(NULL);
    tutti_store_close(part->me.store);
}

static tutti_status add_process(show *s, const char *name, int host, int rank, void (*body)(void *arg), void *arg)
{
    tti_process *process = NULL;
    tti_player  *player = NULL;
    tutti_status st = tti_stage_add_process(&s->stage, name, host, rank, &process);

    return st == TUTTI_OK ? tti_stage_add_player(&s->stage, process, "main", body, arg, &player) : st;
}

static tutti_status add_all(show *s)
{
    char         name[TTI_STAGE_NAME_MAX];
    tutti_status st = add_process(s, "store", 0, -1, serve, s);
    int          i;

    for (i = 0; i < s->n_ranks && st == TUTTI_OK; i++) {
        s->ranks[i] = (rank_part){ .show = s, .me = { .rank = i, .n_ranks = s->n_ranks,
                                                      .host = i / s->options.ranks_per_host } };
        snprintf(name, sizeof name, "rank %d", i);
        st = add_process(s, name, s->ranks[i].me.host, i, play_rank, &s->ranks[i]);
    }
    return st;
}

/* ---- the run ---------------------------------------------------------------------------------------------- */

/* What differs from seed to seed besides the faults. */
static void set_scene(tti_stage *stage, const tutti_rehearse_options *o)
{
    static const int64_t latencies[] = { 10000, 50000, 200000, 1000000 };
    static const int     preempts[] = { 4, 16, 64, 1000 };
    static const size_t  rooms[] = { 4096, 65536, 262144 };

    *stage = (tti_stage){ .port = { &tti_stage_ops }, .dice = o->seed, .trace = TTI_FNV_BEGIN, .tells = o->tells,
                          .now_ns = TTI_SECOND, .next_port = 30000, .n_hosts = o->hosts,
                          .n_ranks = o->hosts * o->ranks_per_host, .steps_max = TURNS_MAX };
    stage->limit_ns = stage->now_ns + o->limit_ms * TTI_MS;
    stage->preempt_every = preempts[tti_stage_roll(stage, 4)];
    stage->room = rooms[tti_stage_roll(stage, 3)];
    stage->latency_ns = latencies[tti_stage_roll(stage, 4)];
    stage->jitter_ns = 1 + stage->latency_ns * (int64_t)tti_stage_roll(stage, 8);
    stage->crumbles = tti_stage_roll(stage, 2) == 0;
}

static void report(const tti_stage *stage, tutti_rehearse_report *out)
{
    int i;

    *out = (tutti_rehearse_report){ .virtual_ms = (stage->now_ns - TTI_SECOND) / TTI_MS, .turns = (int64_t)stage->steps,
                                    .trace = stage->trace, .longest_ms = stage->longest_ns / TTI_MS, .lost = stage->lost };
    for (i = 0; i < TUTTI_FAULT_KINDS; i++)
        out->faults[i] = stage->n_done[i];
}

static tutti_status check(const tutti_rehearse_options *o)
{
    if (o->hosts < 1 || o->hosts > HOSTS_MAX || o->ranks_per_host < 1 || o->ranks_per_host > RANKS_MAX / o->hosts)
        return tti_fail(TUTTI_E_ARG, "a rehearsal of %d hosts with %d ranks each: 1 to %d hosts and %d ranks in all can be",
                        o->hosts, o->ranks_per_host, HOSTS_MAX, RANKS_MAX);
    if (o->faults_max > TTI_STAGE_FAULTS_MAX || (o->faults & ~TUTTI_FAULTS_ALL) != 0 || o->turns < 1 || o->lasts_ms < 1 ||
        o->timeout_ms < 1 || o->limit_ms < 1)
        return tti_fail(TUTTI_E_ARG, "a rehearsal with faults 0x%x, %d at most, in %" PRId64 " turns, of %" PRId64
                                     " ms, and time-outs of %" PRId64 " and %" PRId64 " ms cannot be",
                        o->faults, o->faults_max, o->turns, o->lasts_ms, o->timeout_ms, o->limit_ms);
    return TUTTI_OK;
}

static tutti_status read_options(const tutti_rehearse_options *given, tutti_rehearse_options *o)
{
    tutti_status st = given != NULL ? tti_options_read(o, sizeof *o, given, "TUTTI_REHEARSE_OPTIONS") : TUTTI_OK;

    if (st != TUTTI_OK)
        return st;
    o->hosts = o->hosts != 0 ? o->hosts : 2;
    o->ranks_per_host = o->ranks_per_host != 0 ? o->ranks_per_host : 2;
    o->faults = o->faults != 0 ? o->faults : TUTTI_FAULTS_ALL;
    o->faults_max = o->faults_max != 0 ? o->faults_max : 3;
    o->turns = o->turns != 0 ? o->turns : (int64_t)TURNS_FOR_A_RANK * o->hosts * o->ranks_per_host;
    o->lasts_ms = o->lasts_ms != 0 ? o->lasts_ms : 3000;
    o->timeout_ms = o->timeout_ms != 0 ? o->timeout_ms : 5000;
    o->limit_ms = o->limit_ms != 0 ? o->limit_ms : 3600 * 1000;
    return check(o);
}

static tutti_status play(show *s)
{
    tutti_status st = tti_crew_begin(&s->stage.crew);

    if (st != TUTTI_OK)
        return st;
    tti_port_let_stand_in(&s->stage.port);
    st = add_all(s);
    if (st == TUTTI_OK) {
        tti_faults_draw(&s->stage, &s->options);
        st = tti_stage_play(&s->stage);
    }
    tti_port_let_stand_in(NULL);
    return st;
}

tutti_status tutti_rehearse(tutti_rehearsed_program *program, void *arg, const tutti_rehearse_options *options,
                            tutti_rehearse_report *report_out)
{
    tutti_rehearse_options o = TUTTI_REHEARSE_OPTIONS;
    show                  *s;
    tutti_status           st = read_options(options, &o);

    if (st != TUTTI_OK)
        return st;
    if (program == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_rehearse: program is NULL");
    if (tti_port_stand_in() != NULL)
        return tti_fail(TUTTI_E_STATE, "this thread rehearses already");
    s = calloc(1, sizeof *s);
    if (s != NULL)
        s->ranks = calloc((size_t)(o.hosts * o.ranks_per_host), sizeof *s->ranks);
    if (s == NULL || s->ranks == NULL) {
        free(s);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a rehearsal of %d ranks", o.hosts * o.ranks_per_host);
    }
    s->options = o;
    s->program = program;
    s->arg = arg;
    s->n_ranks = o.hosts * o.ranks_per_host;
    set_scene(&s->stage, &o);
    st = play(s);
    if (report_out != NULL)
        report(&s->stage, report_out);
    tti_stage_free(&s->stage);
    free(s->ranks);
    free(s);
    return st;
}

/* Of the rehearsal that this thread is in; NULL: none. */
static tti_stage *stage_here(void)
{
    tti_port *port = tti_port_stand_in();

    return port != NULL && port->ops == &tti_stage_ops ? tti_stage_of(port) : NULL;
}

int64_t tutti_rehearsed_ns(void)
{
    const tti_stage *stage = stage_here();

    return stage != NULL ? stage->now_ns : 0;
}

void tutti_rehearsed_sleep(int64_t ms)
{
    tti_stage *stage = stage_here();

    if (stage != NULL)
        stage->port.ops->sleep_until(&stage->port, tti_later(stage->now_ns, ms > 0 ? ms : 0));
}

uint64_t tutti_rehearsed_lost(void)
{
    const tti_stage *stage = stage_here();

    return stage != NULL ? stage->lost : 0;
}

tutti_status tutti_rehearsed_fault(tutti_fault_kind kind, int target, int64_t in_turns, int64_t lasts_ms)
{
    tti_stage *stage = stage_here();

    if (stage == NULL)
        return tti_fail(TUTTI_E_STATE, "rehearsed_fault: this thread rehearses nothing");
    if ((unsigned)kind >= TUTTI_FAULT_KINDS || target < 0 ||
        target >= (tti_fault_is_of_host(kind) ? stage->n_hosts : stage->n_ranks) || in_turns < 1 || lasts_ms < 0)
        return tti_fail(TUTTI_E_ARG, "rehearsed_fault: kind %d at %d, in %" PRId64 " turns, for %" PRId64 " ms cannot be", (int)kind,
                        target, in_turns, lasts_ms);
    if (!tti_faults_add(stage, kind, target, in_turns, lasts_ms * TTI_MS))
        return tti_fail(TUTTI_E_STATE, "rehearsed_fault: a run has %d faults at most", TTI_STAGE_FAULTS_ROOM);
    return TUTTI_OK;
}
