/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_options.h - what `tutti sim` was asked for, and its parts. */
#ifndef TUTTI_SIM_TOOL_OPTIONS_H
#define TUTTI_SIM_TOOL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tutti/simulate.h>

enum { SIM_LIST_MAX = 32, SIM_OPS_MAX = 16, SIM_ALGORITHMS_MAX = 32, SIM_NAME_MAX = 32 };

typedef struct sim_list {
    double values[SIM_LIST_MAX];
    int n;
} sim_list;

typedef struct sim_options {
    char ops[SIM_OPS_MAX][SIM_NAME_MAX];
    int n_ops;
    sim_list hosts, per_host, gbit, message_us, sizes;
    const char *algorithm; /* NULL: all of them */
    int cores;
    bool one_machine, messages_only;
    int rack;
    double taper;
    double burst; /* below 0: it was not given, and there is none */
    int calls;
    int64_t messages_max;
    const char *figures;
    const char *tsv;
    const char *plot;
    const char *fit; /* the file to write; NULL: simulate */
    const char *only_simulating; /* the last option given that means nothing to --fit */
    bool help;
} sim_options;

/** Read the words behind `tutti sim`; says what is wrong. */
bool sim_read_options(int argc, char **argv, sim_options *o);
int sim_print_help(FILE *out, int code);

/** One cluster of those asked for. */
typedef struct sim_cluster {
    int hosts, per_host;
    double gbit, message_us; /* 0: what the figures say */
} sim_cluster;

int sim_n_clusters(const sim_options *o);
sim_cluster sim_cluster_at(const sim_options *o, int i);
/** "16 hosts of 8 ranks, 10 Gb/s". */
void sim_name_cluster(const sim_cluster *c, char *text, size_t bytes);

/** What was found best for a size. */
typedef struct sim_best {
    int64_t bytes; /* of the whole tensor */
    double us;
    char algorithm[SIM_NAME_MAX]; /* empty: nothing could be simulated */
} sim_best;

/** Draw op's best times, clusters in their order with sizes in theirs, into o->plot, with gnuplot. Returns an exit code. */
int sim_draw(const sim_options *o, const char *op, const sim_best *best);

/** Measure messages and memory here, and write o->fit. Returns an exit code. */
int sim_fit(const sim_options *o);

#endif
