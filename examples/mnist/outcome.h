/* SPDX-License-Identifier: BSD-3-Clause
 *
 * outcome.h - what training came to. Every rank calls each of these, in the same order. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <tutti/data.h>
#include <tutti/nn.h>

#include "report.h"

/* Every rank's losses and rank 0's seconds, a row for each epoch, on rank 0's stdout. */
bool outcome_table(const report *r);

/* The part of the held-out samples that net takes for what they are. Each rank tests a share. */
bool outcome_accuracy(tutti_module *net, const tutti_dataset *test, double *percent_out);

#endif
