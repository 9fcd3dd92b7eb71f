/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_nets.h - the networks whose training steps are measured, and what they are trained on.
 *
 * Parameters and batches come from formulas that contender_ddp.py has, too, exact in f32: both engines begin with
 * the same numbers, so their losses can be compared. */
#ifndef TUTTI_BENCH_DDP_NETS_H
#define TUTTI_BENCH_DDP_NETS_H

#include <tutti/nn.h>
#include <tutti/optim.h>

enum { BENCH_BATCHES = 4 }; /* that a rank goes through in turn */

typedef struct bench_net {
    const char *name;
    /** The network, its parameters by formula. */
    tutti_module *(*make)(void);
    tutti_optim *(*optim)(tutti_tensor *const *params, int n);
    /** Batch number `number` of n samples: input and targets, in the open scope. */
    void (*batch)(int number, int64_t n, tutti_tensor **x_out, tutti_tensor **target_out);
    /** The mean loss of what the network made. */
    tutti_tensor *(*loss)(tutti_tensor *y, tutti_tensor *target);
} bench_net;

/** The network of that name, NULL if there is none: "mnist", "gpt". */
const bench_net *bench_net_of(const char *name);

#endif
