/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options.h - the command line of gpt2_train. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

typedef struct options {
    model_shape shape;
    int64_t batch;          /* windows of a step, all ranks together; 0: the default */
    double lr;              /* the highest learning rate */
    int64_t warmup;         /* steps until there */
    double weight_decay;    /* of matrices */
    double clip;            /* longest gradient; 0: any */
    double minutes;         /* time to train; 0: by steps */
    int64_t steps;          /* to train; 0: by time */
    uint64_t seed;          /* of everything that is random */
    int64_t eval_every;     /* steps between two measurements */
    int64_t save_every;     /* steps between two checkpoints */
    const char *out;        /* folder for curves, picture and sample */
    const char *checkpoint; /* file; NULL: in that folder */
    bool resume;            /* go on from the checkpoint */
    bool resume_if_there;   /* and begin where there is none */
    int64_t sample;         /* bytes to make up at the end */
    double temperature;     /* of them */
    char *const *texts;     /* [n_texts] files to learn from; none: the repository's own */
    int n_texts;
} options;

/* Read the command line into opts_out; words of it stay borrowed. Returns false where the program ends here,
 * with *exit_code_out: 0 after --help, 2 after a line on stderr that names the mistake, on rank 0 where there
 * are several. */
bool options_parse(int argc, char **argv, options *opts_out, int *exit_code_out);

#endif
