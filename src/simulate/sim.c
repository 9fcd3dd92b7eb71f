/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim.c - tutti/simulate.h: from a cluster and a call to a prediction.
 *
 * How     The table, the choice and the amounts are those of coll/choose.c and cost.c; the plans of coll/net are
 *         played (tape.c, motion.c). An algorithm in shared memory is no schedule: its time is that of its amounts
 *         (host.c).
 * Choice  As a group would: on one host by what the host takes, between hosts by usual figures, since nothing is
 *         measured there, or by those of hosts that are one machine, and by the rate of the ports if that is lower, of which the kernel
 *         tells a group (coll/choice.c); in two levels where hosts have several ranks (levels.c). Calls are cut by that, too.
 *         An informed choice knows besides what a message and its bytes take on the cluster.
 * Calls   Times of calls one after the other are what a benchmark sees, of ports that let bytes through at once after a rest:
 *         the first calls find full buckets, later ones what time has filled. */
#include <tutti/simulate.h>

#include <math.h>
#include <stdlib.h>
#include <tutti/private.h>
#include "base/options.h"
#include "coll/choose.h"
#include "coll/team.h"
#include "simulate/figures.h"
#include "simulate/host.h"
#include "simulate/motion.h"

enum { RANKS_MAX = 1 << 20, CORES_MAX = 1 << 16, MESSAGES_MAX = 20 * 1000 * 1000, CALLS_MAX = 100 * 1000 };
#define BYTES_MAX (INT64_C(1) << 50) /* of all ranks: times stay within 63 bits */
#define MESSAGES_LIMIT (INT64_C(1) << 30)

struct tutti_sim {
    tti_cluster  cluster;
    int64_t      messages_max;
    int          calls;
    tti_decision usual, informed; /* in two levels where the cluster has them, and then also */
    tti_decision usual_across, informed_across; /* of its hosts among themselves, and */
    tti_decision usual_alone, informed_alone;   /* where each of them has one carrier in a call */
    double       wire; /* ns that a byte takes between hosts, as a group takes it */
};

/* ---- the choice -------------------------------------------------------------------------------- */

static bool on_one_host(const tti_cluster *cluster)
{
    return cluster->hosts == 1 && !cluster->messages_only;
}

/* As level/levels.c sees it. */
static bool in_levels(const tti_cluster *cluster)
{
    return cluster->hosts > 1 && cluster->per_host > 1 && cluster->per_host <= TTI_HOST_RANKS_MAX &&
           !cluster->messages_only;
}

/* What the model goes by: of messages, what they take on this cluster. */
static tti_machine machine_of(const tti_cluster *cluster)
{
    const tti_tier *tier = cluster->hosts > 1 ? &cluster->figures.far : &cluster->figures.local;
    tti_machine     machine = cluster->figures.machine;
    const double    copies = tier->send_byte > tier->recv_byte ? tier->send_byte : tier->recv_byte;

    machine.message = tier->latency + 2 * tier->post;
    machine.post = tier->post;
    machine.wire = cluster->hosts > 1 && cluster->figures.port_byte > copies ? cluster->figures.port_byte : copies;
    return machine;
}

/* figures: room for those of the cluster's levels. wire: by which a group cuts its calls. */
static tti_question question_of(const tti_cluster *cluster, const tti_machine *machine, double wire, tti_level_figures *figures)
{
    static const tti_tune no_tune;
    const bool            one_host = on_one_host(cluster);

    *figures = tti_sim_level_figures(cluster);
    return (tti_question){ .tune = &no_tune, .machine = machine, .turns = one_host ? tti_cluster_turns(cluster) : 1,
                           .one_host = one_host, .n_ranks = tti_cluster_ranks(cluster), .wire = wire,
                           .levels = in_levels(cluster) ? figures : NULL };
}

/* And for what goes across, where there are levels. */
static void decide_by(const tti_cluster *cluster, const tti_machine *machine, double wire, const tti_wishes *wishes,
                      tti_decision *all_out, tti_decision *across_out, tti_decision *alone_out)
{
    tti_level_figures    figures;
    tti_machine          shared;
    tti_question         question = question_of(cluster, machine, wire, &figures), across;
    int                  n;
    const tti_algorithm *rows = tti_algorithms(&n);

    question.wishes = wishes;
    tti_decide(&question, rows, n, all_out);
    if (question.levels == NULL)
        return;
    across = tti_question_across(&question, &figures, &shared);
    tti_decide(&across, rows, n, across_out);
    figures.carriers = 1;
    across = tti_question_across(&question, &figures, &shared);
    tti_decide(&across, rows, n, alone_out);
}

/* Backwards from what describe() has made. */
static double gbit_of(const tti_cluster *c)
{
    return 8 / (c->figures.port_byte * (c->one_machine ? TTI_SHARE_OF_SHAPER : TTI_SHARE_OF_LINE));
}

/* What a group goes by that measures nothing between hosts, and is told what a port carries: coll/choice.c. */
static tti_machine usual_machine(const tti_cluster *cluster, const tti_machine *informed)
{
    tti_machine machine = tti_machine_default;

    if (on_one_host(cluster))
        return *informed;
    if (cluster->one_machine && tti_cluster_ranks(cluster) <= TTI_HOSTS_HERE_MOST)
        machine = tti_machine_of_hosts((double)tti_cluster_ranks(cluster) / cluster->cores);
    if (cluster->hosts > 1)
        tti_machine_know_link(&machine, 8 / gbit_of(cluster), cluster->burst);
    return machine;
}

static tutti_status decide(tutti_sim *sim)
{
    const tti_machine informed = machine_of(&sim->cluster), usual = usual_machine(&sim->cluster, &informed);
    tti_wishes        wishes;
    tutti_status      st = tti_wishes_parse(NULL, &wishes);

    if (st != TUTTI_OK)
        return st;
    sim->wire = usual.wire;
    decide_by(&sim->cluster, &informed, usual.wire, &wishes, &sim->informed, &sim->informed_across, &sim->informed_alone);
    decide_by(&sim->cluster, &usual, usual.wire, &wishes, &sim->usual, &sim->usual_across, &sim->usual_alone);
    return TUTTI_OK;
}

/* ---- a cluster --------------------------------------------------------------------------------- */

static tutti_status fail_option(const char *name, double value, double least, double most)
{
    return tti_fail(TUTTI_E_ARG, "%s of a simulation is %.10g, not a number from %.10g to %.10g", name, value, least, most);
}

static tutti_status check(const tutti_sim_options *o)
{
    const struct {
        const char *name;
        double      value, least, most;
    } limits[] = {
        { "hosts", o->hosts, 0, RANKS_MAX },
        { "ranks_per_host", o->ranks_per_host, 0, RANKS_MAX },
        { "cores", o->cores, 0, CORES_MAX },
        { "gbit_per_s", o->gbit_per_s, 0, 1e6 },
        { "message_us", o->message_us, 0, 1e8 },
        { "rack_hosts", o->rack_hosts, 0, RANKS_MAX },
        { "taper", o->taper, 0, 1e6 },
        { "messages_max", (double)o->messages_max, 0, (double)MESSAGES_LIMIT },
        { "burst_bytes", o->burst_bytes, 0, 1e12 },
        { "calls", o->calls, 0, CALLS_MAX },
    };
    size_t i;

    for (i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (!(limits[i].value >= limits[i].least && limits[i].value <= limits[i].most))
            return fail_option(limits[i].name, limits[i].value, limits[i].least, limits[i].most);
    if (o->taper != 0 && o->taper < 1)
        return fail_option("taper", o->taper, 1, 1e6);
    return TUTTI_OK;
}

static void take_message_us(double us, tti_tier *far)
{
    const double uneven = far->uneven, bulk = far->bulk_byte;

    *far = tti_tier_of(us, far->post / 1000, far->send_byte, far->recv_byte);
    far->uneven = uneven < far->post ? uneven : far->post;
    far->bulk_byte = bulk;
}

static tutti_status describe(const tutti_sim_options *o, tti_cluster *c)
{
    tti_figures *f = &c->figures;

    *c = (tti_cluster){ .hosts = o->hosts > 0 ? o->hosts : 1, .per_host = o->ranks_per_host > 0 ? o->ranks_per_host : 1,
                        .one_machine = o->one_machine, .messages_only = o->messages_only, .burst = o->burst_bytes,
                        .rack_hosts = o->rack_hosts, .taper = o->taper > 0 ? o->taper : 1, .figures = tti_figures_default };
    if ((int64_t)c->hosts * c->per_host > RANKS_MAX)
        return fail_option("the number of ranks", (double)c->hosts * c->per_host, 1, RANKS_MAX);
    if (c->rack_hosts > 0 && c->hosts % c->rack_hosts != 0)
        return tti_fail(TUTTI_E_ARG, "%d hosts are no whole number of racks of %d", c->hosts, c->rack_hosts);
    c->cores = o->one_machine ? tti_cluster_ranks(c) : c->per_host;
    if (o->cores > 0 && o->cores < c->cores) /* others have nothing to do */
        c->cores = o->cores;
    if (o->figures != NULL) {
        const tutti_status st = tti_figures_read(o->figures, f);

        if (st != TUTTI_OK)
            return st;
    }
    if (o->gbit_per_s > 0)
        f->port_byte = tti_port_byte(o->gbit_per_s);
    if (o->one_machine)
        f->port_byte *= TTI_SHARE_OF_LINE / TTI_SHARE_OF_SHAPER;
    if (o->message_us > 0)
        take_message_us(o->message_us, &f->far);
    return TUTTI_OK;
}

tutti_status tutti_sim_open(const tutti_sim_options *options, tutti_sim **sim_out)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *sim;
    tutti_status      st = tti_options_read(&o, sizeof o, options, "TUTTI_SIM_OPTIONS");

    if (st == TUTTI_OK)
        st = check(&o);
    if (st != TUTTI_OK)
        return st;
    sim = calloc(1, sizeof *sim);
    if (sim == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a simulation");
    sim->messages_max = o.messages_max > 0 ? o.messages_max : MESSAGES_MAX;
    sim->calls = o.calls > 0 ? o.calls : 1;
    st = describe(&o, &sim->cluster);
    if (st == TUTTI_OK)
        st = decide(sim);
    if (st == TUTTI_OK)
        *sim_out = sim;
    else
        free(sim);
    return st;
}

tutti_status tutti_sim_get_options(const tutti_sim *sim, tutti_sim_options *options_out)
{
    const tti_cluster *c = &sim->cluster;

    if (options_out == NULL || options_out->size < sizeof *options_out)
        return tti_fail(TUTTI_E_ARG,
                        "tutti_sim_get_options: options_out is NULL, or was not initialised with TUTTI_SIM_OPTIONS");
    *options_out = (tutti_sim_options){ .size = options_out->size, .hosts = c->hosts, .ranks_per_host = c->per_host,
                                        .cores = c->cores, .one_machine = c->one_machine,
                                        .messages_only = c->messages_only, .gbit_per_s = gbit_of(c),
                                        .message_us = (c->figures.far.latency + 2 * c->figures.far.post) / 1000,
                                        .rack_hosts = c->rack_hosts, .taper = c->taper,
                                        .messages_max = sim->messages_max, .burst_bytes = c->burst, .calls = sim->calls };
    return TUTTI_OK;
}

void tutti_sim_close(tutti_sim *sim)
{
    free(sim);
}

/* ---- a call ------------------------------------------------------------------------------------ */

static tutti_status find_kind(const tutti_sim_call *call, tutti_call_kind *kind_out)
{
    const tutti_call_kind kind = call->op != NULL ? tti_kind_named(call->op) : TUTTI_CALL_KIND_COUNT;
    tti_words             words = { .used = 0 };

    if (kind == TUTTI_CALL_KIND_COUNT) {
        tti_add_kinds(&words);
        return tti_fail(TUTTI_E_ARG, "no operation is called '%.40s'\n  next: take one of %s",
                        call->op != NULL ? call->op : "", words.text);
    }
    if (kind == TUTTI_CALL_GATHER_V || kind == TUTTI_CALL_SCATTER_V)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "blocks of different sizes, as %s has, are not simulated\n  next: take gather or scatter",
                        call->op);
    *kind_out = kind;
    return TUTTI_OK;
}

static tutti_status check_bytes(const tutti_sim_call *call, int n_ranks, int64_t *count_out)
{
    const size_t element = tutti_dtype_size(call->dtype);

    if (element == 0)
        return tti_fail(TUTTI_E_ARG, "%d is no dtype", (int)call->dtype);
    if (call->bytes < 0 || call->bytes > BYTES_MAX / n_ranks || call->bytes % (int64_t)element != 0)
        return tti_fail(TUTTI_E_ARG, "%lld bytes are no whole number of elements of %zu bytes, of at most %lld bytes",
                        (long long)call->bytes, element, (long long)(BYTES_MAX / n_ranks));
    *count_out = call->bytes / (int64_t)element;
    return TUTTI_OK;
}

static tutti_status find_row(const tutti_sim *sim, const tutti_sim_call *call, tutti_call_kind kind,
                             const tti_algorithm **row_out)
{
    tti_words words = { .used = 0 };
    int       n, row;

    if (call->algorithm == NULL) {
        const tutti_call chosen = { .kind = kind, .dtype = call->dtype,
                                    .count = call->bytes / (int64_t)tutti_dtype_size(call->dtype) };

        *row_out = tti_choose_for(call->informed ? &sim->informed : &sim->usual, &chosen);
        return TUTTI_OK;
    }
    row = tti_algorithm_named(kind, call->algorithm);
    if (row < 0) {
        tti_add_algorithms(&words, kind);
        return tti_fail(TUTTI_E_ARG, "%s has no algorithm '%.40s'\n  next: take one of %s", call->op, call->algorithm,
                        words.text);
    }
    *row_out = &tti_algorithms(&n)[row];
    return TUTTI_OK;
}

static tutti_status check_row(const tti_cluster *cluster, const tti_algorithm *row)
{
    const int n = tti_cluster_ranks(cluster);

    if (tti_is_fused(row))
        return tti_fail(TUTTI_E_UNSUPPORTED, "calls on registered memory are not simulated");
    if (row->level != NULL && !in_levels(cluster))
        return tti_fail(TUTTI_E_UNSUPPORTED, "'%s' needs several hosts, with several ranks that share memory on each",
                        row->name);
    if (n > row->ranks_max)
        return tti_fail(TUTTI_E_UNSUPPORTED, "'%s' serves at most %d ranks, not %d", row->name, row->ranks_max, n);
    if (row->staged != NULL && !on_one_host(cluster))
        return tti_fail(TUTTI_E_UNSUPPORTED, "'%s' needs all ranks on one host", row->name);
    return TUTTI_OK;
}

/* By so much as cost.c knows, on this cluster. */
static double reckon(const tutti_sim *sim, const tti_algorithm *row, int64_t bytes)
{
    const tti_machine  machine = machine_of(&sim->cluster);
    tti_level_figures  figures;
    const tti_question question = question_of(&sim->cluster, &machine, sim->wire, &figures);

    return tti_believed_cost(&question, row, bytes) / 1000;
}

static bool has_parts(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_GATHER || kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER ||
           kind == TUTTI_CALL_REDUCE_SCATTER || kind == TUTTI_CALL_ALL_TO_ALL;
}

/* Whether the buffers of a core's ranks outgrow its caches. */
static bool is_bulk(const tti_cluster *cluster, tutti_call_kind kind, int64_t bytes)
{
    const int    n = tti_cluster_ranks(cluster);
    const double whole = has_parts(kind) ? (double)bytes * n : (double)bytes;

    return n > 1 && 2 * whole * tti_cluster_turns(cluster) > cluster->figures.machine.near_bytes;
}

static bool has_root(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_GATHER ||
           kind == TUTTI_CALL_SCATTER;
}

/* As many as there are numbers for. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The time of a call among others: the median of the later half, when buckets are as calls leave them. */
static int64_t settled_ps(tti_calls *calls)
{
    const int first = calls->n / 2, n = calls->n - first;

    qsort(calls->each_ps + first, (size_t)n, sizeof *calls->each_ps, by_time);
    return calls->each_ps[first + n / 2];
}

/* Ranks meet between two calls of a benchmark, in memory of the machine that they are on. */
static int64_t gap_ps(const tti_cluster *c)
{
    const tti_amounts meeting = { .meets = 1 };

    if (!c->one_machine)
        return 0;
    return tti_ps(tti_cost(&meeting, &c->figures.machine, tti_cluster_turns(c), tti_cluster_ranks(c), 0));
}

static void take_bulk(tti_tier *tier)
{
    tier->send_byte = fmax(tier->send_byte, tier->bulk_byte);
    tier->recv_byte = fmax(tier->recv_byte, tier->bulk_byte);
}

/* us of the sim's calls of what the tape says. */
static tutti_status play_calls(const tutti_sim *sim, const tti_tape *tape, bool rooted, bool bulk, double *us_out, tti_played *p)
{
    tti_calls    calls = { .n = sim->calls, .gap_ps = gap_ps(&sim->cluster), .every = rooted ? sim->cluster.per_host : 0 };
    tti_cluster  cluster = sim->cluster;
    tutti_status st;

    if (bulk) {
        take_bulk(&cluster.figures.far);
        take_bulk(&cluster.figures.local);
    }

    calls.each_ps = calloc((size_t)calls.n, sizeof *calls.each_ps);
    if (calls.each_ps == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the times of %d calls", calls.n);
    st = tti_motion_play_calls(&cluster, tape, &calls, p);
    if (st == TUTTI_OK)
        *us_out = (double)settled_ps(&calls) / 1e6;
    free(calls.each_ps);
    return st;
}

static const tti_decision *across_of(const tutti_sim *sim, const tti_algorithm *row, bool informed)
{
    const tti_level_figures figures = tti_sim_level_figures(&sim->cluster);

    if (tti_sim_carriers_of(row, &figures) > 1)
        return informed ? &sim->informed_across : &sim->usual_across;
    return informed ? &sim->informed_alone : &sim->usual_alone;
}

static tutti_status play(const tutti_sim *sim, const tti_algorithm *row, const tutti_sim_call *call, int64_t count,
                         tutti_sim_result *r)
{
    tti_sim_levels  levels = { .counts = NULL };
    tti_tape_call   played = { .plan = row->plan, .kind = row->kind, .root = has_root(row->kind) ? 0 : -1,
                               .count = count, .dtype = call->dtype, .wire = sim->wire };
    const tti_tape_limits limits = { .full = TTI_TAPE_FULL, .most = sim->messages_max };
    const int           n = tti_cluster_ranks(&sim->cluster);
    tti_tape            tape = { .n_ranks = 0 };
    tti_played          p = { .end_ps = 0 };
    int64_t             units;
    double              us = 0;
    tutti_status        st = TUTTI_OK;

    if (row->level != NULL) {
        played.levels = &levels;
        st = tti_sim_levels_make(&sim->cluster, row, across_of(sim, row, call->informed), count, call->dtype, &levels);
    }
    if (st == TUTTI_OK)
        st = tti_tape_make(&sim->cluster, &played, &limits, &tape);
    if (st == TUTTI_OK)
        st = play_calls(sim, &tape, played.root >= 0, is_bulk(&sim->cluster, row->kind, call->bytes), &us, &p);
    if (st == TUTTI_OK) {
        units = n / tape.n_ranks;
        r->way = units > 1 ? TUTTI_SIM_UNIT : TUTTI_SIM_ALL;
        r->us = us;
        r->messages = times(p.messages, units);
        r->far = times(p.messages_far, units);
        r->bytes = times(p.bytes, units);
        r->bytes_far = times(p.bytes_far, units);
        r->port_bytes = p.port_bytes;
        r->uplink_bytes = p.uplink_bytes;
        r->events = p.events;
    }
    tti_tape_release(&tape);
    tti_sim_levels_release(&levels);
    return st;
}

/* Whether the choice may come to it for some figures. */
static bool may_be_taken(const tti_cluster *cluster, const tti_algorithm *row, const tutti_sim_call *call)
{
    const bool one_host = on_one_host(cluster);
    const int  n = tti_cluster_ranks(cluster);

    return call->bytes <= row->bytes_best && (row->staged != NULL || !one_host) &&
           (row->ranks_best == 0 || n <= row->ranks_best) &&
           (tti_numbers_of(call->dtype) == TTI_EXACT ||
            row->order == (in_levels(cluster) ? tti_order_in_levels(row->kind)
                                              : tti_order_of(row->kind, call->bytes, one_host, n)));
}

static tutti_status look_up(const tutti_sim *sim, const tutti_sim_call *call, int64_t *count_out,
                            const tti_algorithm **row_out)
{
    tutti_call_kind kind = TUTTI_CALL_BARRIER;
    tutti_status    st = find_kind(call, &kind);

    if (st == TUTTI_OK)
        st = check_bytes(call, tti_cluster_ranks(&sim->cluster), count_out);
    return st == TUTTI_OK ? find_row(sim, call, kind, row_out) : st;
}

tutti_status tutti_sim_choose(const tutti_sim *sim, const tutti_sim_call *call, const char **name_out)
{
    tutti_sim_call       chosen = *call;
    const tti_algorithm *row = NULL;
    int64_t              count = 0;
    tutti_status         st;

    chosen.algorithm = NULL;
    st = look_up(sim, &chosen, &count, &row);
    if (st == TUTTI_OK)
        *name_out = row->name;
    return st;
}

tutti_status tutti_sim_run(tutti_sim *sim, const tutti_sim_call *call, tutti_sim_result *result_out)
{
    const tti_algorithm *row = NULL;
    int64_t              count = 0;
    tutti_sim_result     r = { .way = TUTTI_SIM_AMOUNTS };
    tutti_status         st = look_up(sim, call, &count, &row);

    if (st == TUTTI_OK)
        st = check_row(&sim->cluster, row);
    if (st != TUTTI_OK)
        return st;
    r.algorithm = row->name;
    r.candidate = may_be_taken(&sim->cluster, row, call);
    if (tti_cluster_ranks(&sim->cluster) > 1) {
        r.model_us = reckon(sim, row, call->bytes);
        r.us = row->staged != NULL ? tti_sim_host_time(&sim->cluster, row, call->bytes) / 1000 : 0;
    }
    if (row->staged == NULL)
        st = play(sim, row, call, count, &r);
    if (st == TUTTI_OK)
        *result_out = r;
    return st;
}
