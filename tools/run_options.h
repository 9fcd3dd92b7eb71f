/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run_options.h - the command line of `tutti run`. */
#ifndef TUTTI_RUN_OPTIONS_H
#define TUTTI_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { RUN_WORDS_MAX = 512, RUN_ADDR_MAX = 256, RUN_OPTIONS_MAX = 64 };

typedef struct run_options {
    bool help;
    int nproc;
    int nnodes;
    int node_rank;
    const char *master_addr; /* NULL: the library's default */
    char bare_addr[RUN_ADDR_MAX]; /* what it points to if it was given in brackets; so the struct stays where it is */
    int master_port;         /* -1: not given */
    const char *rdzv_id;     /* NULL: a random one */
    bool standalone;
    bool no_python;
    int64_t shutdown_ms; /* 0: the library's default */
    bool keep;           /* the others, when a rank fails */
    int replacements;
    char **program;      /* the program and its arguments, NULL at the end */
    bool given[RUN_OPTIONS_MAX]; /* by the command line, in the order of the table */
    char words[RUN_WORDS_MAX];
} run_options;

/** Read the command line, argv[0] being the command, then the environment (PET_...) for the options that it does not give, unless
 * help is asked for. False: the words say what is wrong. */
bool run_options_read(run_options *o, int argc, char **argv);

void run_options_help(FILE *out);

#endif
