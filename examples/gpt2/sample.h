/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sample.h - text that a network makes up. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <tutti/nn.h>

typedef struct sample_options {
    int64_t context;
    double temperature; /* 0: always the likeliest byte; 1: as likely as the network has it */
    uint64_t seed;
} sample_options;

/* Go on behind text[prompt - 1] up to text[n - 1]; prompt >= 1. One rank may do it alone. */
bool sample_text(tutti_module *net, const sample_options *opts, uint8_t *text, int64_t prompt, int64_t n);

#endif
