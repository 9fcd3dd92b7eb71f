/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.h - the command line of mnist. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct options {
    const char *data;    /* directory with the IDX files */
    const char *losses;  /* file for the loss of every step, or NULL */
    int64_t epochs;      /* 1 or more */
    int64_t batch;       /* samples of a step, all ranks together; 0: the default */
    uint64_t seed;       /* of parameters, partition, order and dropout */
    double lr;           /* learning rate */
    double momentum;     /* 0 or more, below 1 */
    bool linear;         /* a softmax classifier instead of the tutorial's network */
    bool dropout;        /* leave parts of the network out at random while training */
    bool global_batches; /* ranks share batches of one order instead of having an order each */
} options;

/* Read the command line into opts_out; words of it stay borrowed. Returns false where the program
 * ends here, with *exit_code_out: 0 after --help, 2 after a line on stderr that names the mistake,
 * on rank 0 where there are several. */
bool options_parse(int argc, char **argv, options *opts_out, int *exit_code_out);

#endif
