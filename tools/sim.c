/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim.c - `tutti sim`: what collectives would take on clusters that need not exist, as tables, rows and a picture.
 *
 * How     Every algorithm of an operation is simulated on every cluster and with every size asked for, sizes being those
 *         of the whole tensor. Beside the best stand the others, with what they take in multiples of it, what the library
 *         takes by itself, and what it would take if it knew what messages take. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>
#include "bench_files.h"
#include "bench_line.h"
#include "sim_options.h"
#include "tool.h"

#define NEAR_BEST 1.05

enum { WHY_MAX = 200, MANY_RANKS = 10 * 1000 };

/* Of one cluster, operation and size: every algorithm that could be simulated, the best first. */
typedef struct cell {
    const char *op;
    sim_cluster cluster;
    int64_t bytes; /* of the whole tensor, and of one rank's part */
    int64_t part;
    tutti_sim_result results[SIM_ALGORITHMS_MAX];
    int n;
    const char *unplayed[SIM_ALGORITHMS_MAX]; /* those that send more messages than are played */
    int n_unplayed;
    const char *taken, *knowing; /* algorithms; NULL: not among those asked for */
    char why[WHY_MAX];           /* that none could be simulated */
} cell;

/* Over all cells: how the library's choice compares with the best that it may take, and that one with the best of all. */
typedef struct score {
    int cells, usual, knowing; /* near the best */
    double worst;
    int passed_over; /* cells in which one that it may not take is clearly quicker */
    double most;     /* by so many times */
    int simulated;     /* cells with anything */
    int incomplete;    /* of them, those in which one was not played for its messages */
    char why[WHY_MAX]; /* of the last cell that has nothing */
} score;

/* ---- one cell ---------------------------------------------------------------------------------- */

static bool has_parts(const char *op)
{
    return strcmp(op, "all_gather") == 0 || strcmp(op, "reduce_scatter") == 0 || strcmp(op, "all_to_all") == 0 ||
           strcmp(op, "gather") == 0 || strcmp(op, "scatter") == 0;
}

/* Whole elements, at least one, as in `tutti bench`. */
static int64_t part_of(const char *op, int64_t bytes, int ranks)
{
    const int64_t element = (int64_t)sizeof(float);
    const int64_t elements = bytes / element / (has_parts(op) ? ranks : 1);

    return strcmp(op, "barrier") == 0 ? 0 : element * (elements > 0 ? elements : 1);
}

static int by_time(const void *a, const void *b)
{
    const tutti_sim_result *x = a, *y = b;

    return (x->us > y->us) - (x->us < y->us);
}

/* What the choice falls on, among the algorithms of the cell. */
static tutti_status choose(tutti_sim *sim, cell *c, bool informed, const char **name_out)
{
    const tutti_sim_call call = { .op = c->op, .bytes = c->part, .dtype = TUTTI_F32, .informed = informed };

    return tutti_sim_choose(sim, &call, name_out);
}

/* Why an algorithm could not be simulated: the first line of what it said. */
static void note_why(tutti_sim *sim, const char *name, cell *c)
{
    const tutti_sim_call call = { .op = c->op, .algorithm = name, .bytes = c->part, .dtype = TUTTI_F32 };
    tutti_sim_result r;

    if (tutti_sim_run(sim, &call, &r) != TUTTI_OK)
        snprintf(c->why, sizeof c->why, "%.*s", (int)strcspn(tutti_last_error(), "\n"), tutti_last_error());
}

static int64_t ranks_of(const sim_cluster *c)
{
    return (int64_t)c->hosts * c->per_host;
}

/* With so many ranks an algorithm may take minutes: which one does is told. */
static void say_playing(const cell *c, const char *name)
{
    if (ranks_of(&c->cluster) > MANY_RANKS)
        fprintf(stderr, "tutti sim: trying '%s', %s of %" PRId64 " bytes among %" PRId64 " ranks\n", name, c->op, c->bytes,
                ranks_of(&c->cluster));
}

/* Before the first of them: what it will take. */
static void say_what_it_costs(const sim_options *o)
{
    int64_t most = 0;
    int i;

    for (i = 0; i < sim_n_clusters(o); i++) {
        const sim_cluster c = sim_cluster_at(o, i);

        most = ranks_of(&c) > most ? ranks_of(&c) : most;
    }
    if (most > MANY_RANKS)
        fprintf(stderr,
                "tutti sim: %" PRId64 " ranks are more than the %d that simulations are made for: each algorithm may take minutes\n"
                "  next: pass over those with many messages (--messages 400K), or take one (--algorithm NAME)\n",
                most, MANY_RANKS);
}

/* The last error: of those that an algorithm is refused for, the one that more messages would mend. */
static bool sends_too_many(void)
{
    return strstr(tutti_last_error(), "messages that are simulated") != NULL;
}

static bool fill(tutti_sim *sim, const char *only, cell *c)
{
    const char *name;
    tutti_status st = TUTTI_OK;
    int i;

    for (i = 0; st == TUTTI_OK && c->n < SIM_ALGORITHMS_MAX && (name = tutti_algorithm_name(c->op, i)) != NULL; i++) {
        const tutti_sim_call call = { .op = c->op, .algorithm = name, .bytes = c->part, .dtype = TUTTI_F32 };

        if (only != NULL && strcmp(only, name) != 0)
            continue;
        say_playing(c, name);
        st = tutti_sim_run(sim, &call, &c->results[c->n]);
        c->n += st == TUTTI_OK;
        if (st == TUTTI_E_UNSUPPORTED && sends_too_many() && c->n_unplayed < SIM_ALGORITHMS_MAX)
            c->unplayed[c->n_unplayed++] = name;
        if (st == TUTTI_E_UNSUPPORTED)
            st = TUTTI_OK; /* it cannot serve these ranks, or sends too much */
    }
    if (st == TUTTI_OK)
        st = choose(sim, c, false, &c->taken);
    if (st == TUTTI_OK)
        st = choose(sim, c, true, &c->knowing);
    if (st != TUTTI_OK)
        fprintf(stderr, "tutti sim: %s\n", tutti_last_error());
    else if (c->n == 0)
        note_why(sim, only != NULL ? only : c->taken, c);
    qsort(c->results, (size_t)c->n, sizeof c->results[0], by_time);
    return st == TUTTI_OK;
}

static const tutti_sim_result *find(const cell *c, const char *name)
{
    int i;

    for (i = 0; i < c->n; i++)
        if (strcmp(c->results[i].algorithm, name) == 0)
            return &c->results[i];
    return NULL;
}

/* The best that the library may take without being asked to. */
static const tutti_sim_result *best_candidate(const cell *c)
{
    int i;

    for (i = 0; i < c->n; i++)
        if (c->results[i].candidate)
            return &c->results[i];
    return NULL;
}

/* An algorithm's time over that of the best candidate; 0: not both are known. */
static double over_best(const cell *c, const char *name)
{
    const tutti_sim_result *r = find(c, name), *best = best_candidate(c);

    return r != NULL && best != NULL && best->us > 0 ? r->us / best->us : 0;
}

static void count(const cell *c, score *s)
{
    const double usual = over_best(c, c->taken), knowing = over_best(c, c->knowing);

    const tutti_sim_result *best = best_candidate(c);
    const double ahead = best != NULL && c->results[0].us > 0 ? best->us / c->results[0].us : 1;

    s->simulated += c->n > 0;
    s->incomplete += c->n > 0 && c->n_unplayed > 0;
    if (c->n == 0)
        snprintf(s->why, sizeof s->why, "%s", c->why);
    if (usual == 0 || knowing == 0)
        return;
    s->cells++;
    s->passed_over += ahead > NEAR_BEST;
    s->most = ahead > s->most ? ahead : s->most;
    s->usual += usual <= NEAR_BEST;
    s->knowing += knowing <= NEAR_BEST;
    s->worst = knowing > s->worst ? knowing : s->worst;
}

/* ---- what is printed --------------------------------------------------------------------------- */

static const char *const way_names[] = { [TUTTI_SIM_AMOUNTS] = "reckoned", [TUTTI_SIM_ALL] = "all",
                                         [TUTTI_SIM_UNIT] = "unit" };

static void print_head(const char *op, const sim_cluster *cluster)
{
    char name[128];

    sim_name_cluster(cluster, name, sizeof name);
    printf("%s, f32, %s; us, and the others' times over the best one's; of taken and knowing, over that of the best that may be "
           "taken unasked\n",
           op, name);
    printf("%12s %12s  %-16s%-22s%-22s%s\n", "bytes", "us", "best", "taken", "knowing", "others");
}

static bool is_unplayed(const cell *c, const char *name)
{
    int i;

    for (i = 0; i < c->n_unplayed; i++)
        if (strcmp(c->unplayed[i], name) == 0)
            return true;
    return false;
}

static void print_choice(const cell *c, const char *name)
{
    const double ratio = over_best(c, name);
    char text[64];

    if (ratio > 0)
        snprintf(text, sizeof text, "%s %.2f", name, ratio);
    else
        snprintf(text, sizeof text, "%s%s", name, is_unplayed(c, name) ? " *" : "");
    printf("%-22s", text);
}

static void print_cell(const cell *c)
{
    int i;

    printf("%12" PRId64 " ", c->bytes);
    if (c->n == 0) {
        printf("%12s  none could be simulated: %s\n", "-", c->why);
        return;
    }
    printf("%12.1f  %-16s", c->results[0].us, c->results[0].algorithm);
    print_choice(c, c->taken);
    print_choice(c, c->knowing);
    for (i = 1; i < c->n; i++)
        printf("%s%s %.3g%s", i > 1 ? ", " : "", c->results[i].algorithm,
               c->results[0].us > 0 ? c->results[i].us / c->results[0].us : 1,
               c->results[i].way == TUTTI_SIM_UNIT ? " (unit)" : "");
    for (i = 0; i < c->n_unplayed; i++)
        printf("%s%s *", i > 0 || c->n > 1 ? ", " : "", c->unplayed[i]);
    printf("\n");
    fflush(stdout);
}

/* o: what the simulation says of itself, so that a row does not depend on what was usual when it was written. */
static void print_row(FILE *tsv, const tutti_sim_options *o, const cell *c, int i)
{
    const tutti_sim_result *r = &c->results[i];

    fprintf(tsv, "%s\t%d\t%d\t%d\t%g\t%g\t%d\t%g\t%d\t%d\t", c->op, o->hosts, o->ranks_per_host, o->cores,
            o->gbit_per_s, o->message_us, o->rack_hosts, o->taper, o->one_machine, o->messages_only);
    fprintf(tsv, "%" PRId64 "\t%" PRId64 "\t%s\t%s\t%.3f\t%.3f\t%d\t%d\t%d\t%d\t", c->bytes, c->part, r->algorithm,
            way_names[r->way], r->us, r->model_us, i + 1, r->candidate, strcmp(r->algorithm, c->taken) == 0,
            strcmp(r->algorithm, c->knowing) == 0);
    fprintf(tsv, "%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t", r->messages,
            r->far, r->bytes, r->bytes_far, r->port_bytes, r->uplink_bytes, r->events);
    fprintf(tsv, "%.0f\t%d\n", o->burst_bytes, o->calls);
}

#define COLUMNS                                                                                                       \
    "op\thosts\tper_host\tcores\tgbit\tmessage_us\track\ttaper\tone_machine\tmessages_only\tbytes\tpart\t"              \
    "algorithm\tway\tus\tmodel_us\tplace\tcandidate\ttaken\tknowing\tmessages\tfar\tsent\tsent_far\t"                  \
    "port_bytes\tuplink_bytes\tevents\tburst\tcalls\n"

/* Whether the file, in which rows are, has the columns of this version; says so if not. */
static bool has_our_columns(const char *path)
{
    FILE *rows = fopen(path, "re");
    char head[sizeof COLUMNS + 1] = "";
    const bool same = rows != NULL && fgets(head, sizeof head, rows) != NULL && strcmp(head, COLUMNS) == 0;

    if (rows != NULL)
        fclose(rows);
    if (!same)
        fprintf(stderr, "tutti sim: the rows of '%s' have other columns than this version's\n  next: choose another file\n", path);
    return same;
}

/* The file to append rows to. NULL: it cannot be written, or has rows of another kind. */
static FILE *open_rows(const char *path)
{
    FILE *tsv = fopen(path, "ae");

    if (tsv == NULL) {
        bench_cannot_write(path);
        return NULL;
    }
    if (ftell(tsv) == 0)
        fputs(COLUMNS, tsv);
    else if (ftell(tsv) > 0 && !has_our_columns(path)) {
        fclose(tsv);
        return NULL;
    }
    return tsv;
}

static void print_incomplete(const score *s)
{
    if (s->incomplete > 0)
        printf("\n* not played in %d of %d cells, for more messages than --messages allows: the best is that of those that were "
               "played\n",
               s->incomplete, s->simulated);
}

static void print_score(const score *s)
{
    if (s->cells == 0)
        return;
    printf("\nof %d cells the library takes an algorithm within 5%% of the best that it may take unasked in %.0f%%; knowing the "
           "links in %.0f%%, at worst %.2f times it\n",
           s->cells, 100.0 * s->usual / s->cells, 100.0 * s->knowing / s->cells, s->worst);
    if (s->passed_over > 0)
        printf("in %d of them another one is quicker, up to %.2f times, which it takes only if asked (TUTTI_ALGO): it sums in "
               "another order, or is meant for fewer ranks or bytes\n",
               s->passed_over, s->most);
}

/* ---- the sweep --------------------------------------------------------------------------------- */

static double burst_of(const sim_options *o)
{
    return o->burst > 0 ? o->burst : 0;
}

static tutti_sim *open_cluster(const sim_options *o, const sim_cluster *c)
{
    tutti_sim_options options = TUTTI_SIM_OPTIONS;
    tutti_sim *sim = NULL;

    options.hosts = c->hosts;
    options.ranks_per_host = c->per_host;
    options.gbit_per_s = c->gbit;
    options.message_us = c->message_us;
    options.cores = o->cores;
    options.one_machine = o->one_machine;
    options.messages_only = o->messages_only;
    options.rack_hosts = o->rack;
    options.taper = o->taper;
    options.figures = o->figures;
    options.messages_max = o->messages_max;
    options.burst_bytes = burst_of(o);
    options.calls = o->calls;
    if (tutti_sim_open(&options, &sim) != TUTTI_OK)
        fprintf(stderr, "tutti sim: %s\n", tutti_last_error());
    return sim;
}

/* best: a place for each size, or NULL. */
static bool sweep_sizes(const sim_options *o, tutti_sim *sim, const char *op, const sim_cluster *cluster, FILE *tsv,
                        sim_best *best, score *s)
{
    const int n_sizes = strcmp(op, "barrier") == 0 ? 1 : o->sizes.n;
    tutti_sim_options told = TUTTI_SIM_OPTIONS;
    bool ok = tutti_sim_get_options(sim, &told) == TUTTI_OK;
    int i, k;

    print_head(op, cluster);
    for (i = 0; i < n_sizes && ok; i++) {
        cell c = { .op = op, .cluster = *cluster, .bytes = (int64_t)o->sizes.values[i] };

        c.part = part_of(op, c.bytes, cluster->hosts * cluster->per_host);
        ok = fill(sim, o->algorithm, &c);
        if (!ok)
            break;
        print_cell(&c);
        for (k = 0; k < c.n && tsv != NULL; k++)
            print_row(tsv, &told, &c, k);
        if (tsv != NULL)
            fflush(tsv);
        count(&c, s);
        if (best == NULL)
            continue;
        best[i] = (sim_best){ .bytes = c.bytes, .us = c.n > 0 ? c.results[0].us : 0 };
        snprintf(best[i].algorithm, SIM_NAME_MAX, "%s", c.n > 0 ? c.results[0].algorithm : "");
    }
    return ok;
}

static bool has_one_rank(const sim_cluster *c)
{
    return c->hosts == 1 && c->per_host == 1;
}

static bool sweep(const sim_options *o, FILE *tsv, sim_best *best)
{
    const int n = sim_n_clusters(o);
    score s = { .worst = 1 };
    bool ok = true;
    int op, i;

    for (op = 0; op < o->n_ops && ok; op++)
        for (i = 0; i < n && ok; i++) {
            const sim_cluster cluster = sim_cluster_at(o, i);
            tutti_sim *sim;

            if (op > 0 || i > 0)
                printf("\n");
            if (has_one_rank(&cluster)) {
                printf("%s, 1 host of 1 rank: one rank sends nothing, so there is nothing to predict\n", o->ops[op]);
                continue;
            }
            sim = open_cluster(o, &cluster);
            ok = sim != NULL &&
                 sweep_sizes(o, sim, o->ops[op], &cluster, tsv, op == 0 ? best + i * o->sizes.n : NULL, &s);
            tutti_sim_close(sim);
        }
    if (ok) {
        print_incomplete(&s);
        print_score(&s);
    }
    if (ok && s.simulated == 0)
        fprintf(stderr, "tutti sim: nothing could be simulated%s%s\n", s.why[0] != '\0' ? ": " : "", s.why);
    return ok && s.simulated > 0;
}

static int simulate(const sim_options *o)
{
    sim_best *best = calloc((size_t)(sim_n_clusters(o) * o->sizes.n), sizeof *best);
    FILE *tsv = o->tsv != NULL ? open_rows(o->tsv) : NULL;
    int code = EXIT_FAILURE;

    if (o->tsv != NULL && tsv == NULL) {
        free(best);
        return EXIT_FAILURE;
    }
    say_what_it_costs(o);
    if (best != NULL && sweep(o, tsv, best))
        code = o->plot != NULL ? sim_draw(o, o->ops[0], best) : EXIT_SUCCESS;
    if (tsv != NULL && fclose(tsv) != 0)
        code = bench_cannot_write(o->tsv);
    free(best);
    return code;
}

int tool_sim(int argc, char **argv)
{
    sim_options o;

    if (!sim_read_options(argc, argv, &o)) {
        fprintf(stderr, "  next: tutti sim --help\n");
        return TOOL_USAGE;
    }
    if (o.help)
        return sim_print_help(stdout, EXIT_SUCCESS);
    return o.fit != NULL ? sim_fit(&o) : simulate(&o);
}
