/* SPDX-License-Identifier: BSD-3-Clause
 *
 * differing.h - whether all ranks have learned the same. */
#ifndef DIFFERING_H
#define DIFFERING_H

#include <stdbool.h>
#include <tutti/nn.h>

/* Compare the parameters of each rank with rank 0's, byte by byte. *ranks_out: how many differ. Every rank calls it. */
bool differing_ranks(tutti_module *net, int *ranks_out);

#endif
