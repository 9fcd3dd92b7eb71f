/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_options.c - the command line of `tutti sim`. */
#include "sim_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tune.h>
#include "bench_files.h"
#include "bench_line.h"
#include "bench_options.h"

#define BYTES_MAX 0x1p36
#define CALLS_MAX 1e5

static const char *const all_ops[] = { "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter",
                                       "reduce_scatter", "all_to_all", "barrier" };
enum { N_ALL_OPS = sizeof all_ops / sizeof all_ops[0] };

int sim_print_help(FILE *out, int code)
{
    fprintf(out,
            "usage: tutti sim OP[,OP...] [options]\n"
            "       tutti sim --fit FILE [--gbit N]\n\n"
            "Predicts what a collective takes on a cluster that need not exist: what ranks would send is played in virtual\n"
            "time, message by message, by the library's own plans. OP is all_reduce, broadcast, reduce, all_gather, gather,\n"
            "scatter, reduce_scatter, all_to_all, barrier, or all. Lists are swept, each with each.\n\n"
            "  --hosts LIST       (2)\n"
            "  --per-host LIST    ranks of a host (1)\n"
            "  --sizes LIST       bytes of the whole tensor, elements of 4, as in `tutti bench` (4,1K,8K,64K,512K,4M,32M,256M)\n"
            "  --gbit LIST        line rate of a host's port, each way (what the figures say, usually 10)\n"
            "  --message-us LIST  half of the time of an empty message to another host and back (usually 30)\n"
            "  --cores N          of a host (one for each of its ranks)\n"
            "  --one-machine      hosts are network namespaces of one machine, which has so many cores in all\n"
            "  --messages-only    no memory is shared inside hosts, as with TUTTI_TRANSPORT=tcp\n"
            "  --rack N           so many hosts share a way to the others\n"
            "  --taper X          that way is so many times slower than their ports together (1)\n"
            "  --burst BYTES      that a port lets through at once after a rest, as shapers do (0)\n"
            "  --calls N          one after the other, roots taking turns: the median of the later half (1, after a rest); with --burst\n"
            "  --algorithm NAME   only this one (all that can serve)\n"
            "  --messages N       of one call; those with more are passed over, and marked with * (20M)\n"
            "  --figures FILE     what a host and its messages take (usual figures)\n"
            "  --tsv FILE         append rows, one for each algorithm; docs/scale.md tells their columns\n"
            "  --plot FILE        draw the best of the first OP with gnuplot, as .svg or .png\n"
            "  --fit FILE         write figures of this machine, from messages between two processes and from its memory\n\n"
            "Times are until the last rank has ended. best: of all algorithms that can serve and were played. taken: what the library takes,\n"
            "with its time over that of the best one that it may take unasked, which keeps the call's order of summation;\n"
            "between hosts it goes by usual figures, and by the rate of a port if that is low. knowing: what it would take if it\n"
            "knew what messages take. (unit): played by one host, as all do the same.\n"
            "Of two_level and leaders, for hosts with several ranks, what goes between hosts is played, and the rest reckoned.\n");
    return code;
}

/* ---- numbers ----------------------------------------------------------------------------------- */

/* "8K", "2.5": a number with a unit. */
static bool read_number(const char *word, double *out)
{
    char *end = NULL;
    const double n = strtod(word, &end);
    const char *unit = end != word && *end != '\0' ? strchr("KMG", *end) : NULL;

    if (end == word || (*end != '\0' && (unit == NULL || end[1] != '\0')))
        return false;
    *out = n * (unit == NULL ? 1 : *unit == 'K' ? 0x1p10 : *unit == 'M' ? 0x1p20 : 0x1p30);
    return true;
}

typedef struct range {
    const char *option;
    double least, most;
    bool whole;
} range;

static bool parse_list(const char *text, const range *r, sim_list *list)
{
    char copy[512], *rest = copy, *word;
    int n = 0;
    bool ok = snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy;

    while (ok && (word = strsep(&rest, ",")) != NULL) {
        ok = n < SIM_LIST_MAX && read_number(word, &list->values[n]) && list->values[n] >= r->least &&
             list->values[n] <= r->most && (!r->whole || floor(list->values[n]) == list->values[n]);
        n++;
    }
    list->n = n;
    return ok;
}

/* kind: "a list of at most 32 whole numbers". */
static bool is_not(const char *text, const range *r, const char *kind)
{
    const int digits = r->whole ? 17 : 10; /* whole numbers as such, without an exponent */

    fprintf(stderr, "tutti sim: --%s '%.60s' is not %s from %.*g to %.*g\n", r->option, text, kind, digits, r->least, digits,
            r->most);
    return false;
}

static bool read_list(const char *text, const range *r, sim_list *list)
{
    char kind[64];

    snprintf(kind, sizeof kind, "a list of at most %d %snumbers", SIM_LIST_MAX, r->whole ? "whole " : "");
    return parse_list(text, r, list) || is_not(text, r, kind);
}

static bool read_one(const char *text, const range *r, double *out)
{
    sim_list list = { .n = 0 };

    if (!parse_list(text, r, &list))
        return is_not(text, r, r->whole ? "a whole number" : "a number");
    if (list.n != 1)
        fprintf(stderr, "tutti sim: --%s takes one number\n", r->option);
    *out = list.values[0];
    return list.n == 1;
}

static bool read_int(const char *text, const char *option, double most, int *out)
{
    const range r = { option, 1, most, true };
    double value = 0;
    const bool ok = read_one(text, &r, &value);

    *out = (int)value;
    return ok;
}

/* ---- operations -------------------------------------------------------------------------------- */

static bool add_op(sim_options *o, const char *name)
{
    int i = 0;

    while (i < N_ALL_OPS && strcmp(all_ops[i], name) != 0)
        i++;
    if (i == N_ALL_OPS || o->n_ops == SIM_OPS_MAX) {
        fprintf(stderr, "tutti sim: '%.60s' is no operation that is simulated\n", name);
        return false;
    }
    snprintf(o->ops[o->n_ops++], SIM_NAME_MAX, "%s", name);
    return true;
}

static bool read_ops(sim_options *o, const char *text)
{
    char copy[512], *rest = copy, *word;
    bool ok = snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy;
    int i;

    if (strcmp(text, "all") == 0) {
        for (i = 0; i < N_ALL_OPS; i++)
            add_op(o, all_ops[i]);
        return true;
    }
    while (ok && (word = strsep(&rest, ",")) != NULL)
        ok = add_op(o, word);
    return ok;
}

static bool has_algorithm(const char *op, const char *name)
{
    const char *known;
    int i;

    for (i = 0; (known = tutti_algorithm_name(op, i)) != NULL; i++)
        if (strcmp(known, name) == 0)
            return true;
    return false;
}

static void list_algorithms(const char *op)
{
    const char *known;
    int i;

    for (i = 0; (known = tutti_algorithm_name(op, i)) != NULL; i++)
        fprintf(stderr, "%s%s", i > 0 ? ", " : "", known);
    fputc('\n', stderr);
}

static bool check_algorithm(const sim_options *o)
{
    int i;

    for (i = 0; i < o->n_ops && o->algorithm != NULL; i++)
        if (!has_algorithm(o->ops[i], o->algorithm)) {
            fprintf(stderr, "tutti sim: %s has no algorithm '%.60s'\n  next: take one of ", o->ops[i], o->algorithm);
            list_algorithms(o->ops[i]);
            return false;
        }
    return true;
}

/* ---- the line ---------------------------------------------------------------------------------- */

static bool read_option(int option, sim_options *o)
{
    static const range hosts = { "hosts", 1, 1 << 20, true }, per_host = { "per-host", 1, 1 << 20, true },
                       sizes = { "sizes", 0, BYTES_MAX, true }, gbit = { "gbit", 0.001, 1e6, false },
                       message = { "message-us", 0.001, 1e8, false }, taper = { "taper", 1, 1e6, false },
                       burst = { "burst", 0, 1e12, true },
                       messages = { "messages", 1, 0x1p30, true };
    double number = 0;
    bool ok = true;

    switch (option) {
    case 'H': return read_list(optarg, &hosts, &o->hosts);
    case 'n': return read_list(optarg, &per_host, &o->per_host);
    case 's': return read_list(optarg, &sizes, &o->sizes);
    case 'g': return read_list(optarg, &gbit, &o->gbit);
    case 'u': return read_list(optarg, &message, &o->message_us);
    case 'c': return read_int(optarg, "cores", 1 << 16, &o->cores);
    case 'r': return read_int(optarg, "rack", 1 << 20, &o->rack);
    case 'x': return read_one(optarg, &taper, &o->taper);
    case 'b': return read_one(optarg, &burst, &o->burst);
    case 'k': return read_int(optarg, "calls", CALLS_MAX, &o->calls);
    case 'm':
        ok = read_one(optarg, &messages, &number);
        o->messages_max = (int64_t)number;
        return ok;
    case 'o': o->one_machine = true; return true;
    case 'y': o->messages_only = true; return true;
    case 'a': o->algorithm = optarg; return true;
    case 'i': o->figures = optarg; return true;
    case 't': o->tsv = optarg; return true;
    case 'p': o->plot = optarg; return true;
    case 'f': o->fit = optarg; return true;
    case 'h': o->help = true; return true;
    default: return false;
    }
}

/* What calls leave to those behind them is in the ports' buckets. */
static bool check_calls(const sim_options *o)
{
    if (o->calls <= 1 || o->burst >= 0)
        return true;
    fprintf(stderr, "tutti sim: --calls %d changes nothing without --burst: ports that let no burst through take as long for each of them\n",
            o->calls);
    return false;
}

static bool check_taper(const sim_options *o)
{
    if (o->taper <= 1 || o->rack > 0)
        return true;
    fprintf(stderr, "tutti sim: --taper %g changes nothing without --rack: all ports are on one switch\n", o->taper);
    return false;
}

/* A part of an element is not sent. A barrier has no size. */
static bool check_sizes(const sim_options *o)
{
    const double element = sizeof(float);
    const bool none_fits = o->n_ops == 1 && strcmp(o->ops[0], "barrier") == 0;
    int i;

    for (i = 0; i < o->sizes.n && !none_fits; i++)
        if (o->sizes.values[i] < element || fmod(o->sizes.values[i], element) != 0) {
            fprintf(stderr, "tutti sim: --sizes has %.17g, and tensors here are whole elements of f32, of %g bytes each\n",
                    o->sizes.values[i], element);
            return false;
        }
    return true;
}

/* It measures one machine, and takes of the line what its port says. */
static bool check_fit(const sim_options *o)
{
    if (o->fit == NULL)
        return true;
    if (o->only_simulating != NULL) {
        fprintf(stderr, "tutti sim: --%s changes nothing about what --fit measures, which takes --gbit alone\n", o->only_simulating);
        return false;
    }
    if (o->gbit.n > 1) {
        fprintf(stderr, "tutti sim: --fit takes one --gbit: a file of figures is of one port\n");
        return false;
    }
    return true;
}

static bool check_words(sim_options *o, int argc, char **argv)
{
    if (o->help)
        return true;
    if (o->fit == NULL && optind == argc) {
        fprintf(stderr, "tutti sim: the operation is missing\n");
        return false;
    }
    if (o->fit == NULL && !read_ops(o, argv[optind++]))
        return false;
    if (optind < argc) {
        fprintf(stderr, "tutti sim: '%.200s' is one word too many\n", argv[optind]);
        return false;
    }
    return check_fit(o) && check_sizes(o) && check_taper(o) && check_calls(o) && check_algorithm(o) &&
           (o->plot == NULL || bench_can_draw(o->plot)) &&
           (o->tsv == NULL || bench_can_write(o->tsv)) && (o->fit == NULL || bench_can_write(o->fit));
}

static void set_defaults(sim_options *o)
{
    static const double sizes[] = { 4, 0x1p10, 0x1p13, 0x1p16, 0x1p19, 0x1p22, 0x1p25, 0x1p28 };

    memset(o, 0, sizeof *o);
    o->hosts = (sim_list){ { 2 }, 1 };
    o->per_host = (sim_list){ { 1 }, 1 };
    o->gbit = o->message_us = (sim_list){ { 0 }, 1 };
    o->sizes.n = sizeof sizes / sizeof sizes[0];
    memcpy(o->sizes.values, sizes, sizeof sizes);
    o->taper = 1;
    o->burst = -1;
}

bool sim_read_options(int argc, char **argv, sim_options *o)
{
    static const struct option names[] = {
        { "hosts", required_argument, NULL, 'H' },      { "per-host", required_argument, NULL, 'n' },
        { "sizes", required_argument, NULL, 's' },      { "gbit", required_argument, NULL, 'g' },
        { "message-us", required_argument, NULL, 'u' }, { "cores", required_argument, NULL, 'c' },
        { "one-machine", no_argument, NULL, 'o' },      { "messages-only", no_argument, NULL, 'y' },
        { "rack", required_argument, NULL, 'r' },       { "taper", required_argument, NULL, 'x' },
        { "burst", required_argument, NULL, 'b' },      { "calls", required_argument, NULL, 'k' },
        { "algorithm", required_argument, NULL, 'a' },  { "messages", required_argument, NULL, 'm' },
        { "figures", required_argument, NULL, 'i' },    { "tsv", required_argument, NULL, 't' },
        { "plot", required_argument, NULL, 'p' },       { "fit", required_argument, NULL, 'f' },
        { "help", no_argument, NULL, 'h' },             { NULL, 0, NULL, 0 },
    };
    int option, i;

    set_defaults(o);
    while ((option = tool_next_option("tutti sim", argc, argv, names)) >= 0) {
        if (!read_option(option, o))
            return false;
        for (i = 0; names[i].name != NULL && strchr("fgh", option) == NULL; i++)
            if (names[i].val == option)
                o->only_simulating = names[i].name;
    }
    return check_words(o, argc, argv);
}

/* ---- clusters ---------------------------------------------------------------------------------- */

int sim_n_clusters(const sim_options *o)
{
    return o->hosts.n * o->per_host.n * o->gbit.n * o->message_us.n;
}

sim_cluster sim_cluster_at(const sim_options *o, int i)
{
    sim_cluster c;

    c.hosts = (int)o->hosts.values[i % o->hosts.n];
    i /= o->hosts.n;
    c.per_host = (int)o->per_host.values[i % o->per_host.n];
    i /= o->per_host.n;
    c.gbit = o->gbit.values[i % o->gbit.n];
    c.message_us = o->message_us.values[i / o->gbit.n];
    return c;
}

void sim_name_cluster(const sim_cluster *c, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%d host%s of %d rank%s", c->hosts, c->hosts == 1 ? "" : "s", c->per_host,
                                   c->per_host == 1 ? "" : "s");

    if (c->gbit > 0)
        used += (size_t)snprintf(text + used, bytes - used, ", %g Gb/s", c->gbit);
    if (c->message_us > 0)
        snprintf(text + used, bytes - used, ", %g us a message", c->message_us);
}
