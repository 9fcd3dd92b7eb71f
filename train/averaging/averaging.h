/* SPDX-License-Identifier: BSD-3-Clause
 *
 * averaging.h - what the files of this room share.
 *
 *   average.c         parameters become averages over a group
 *   averager.c        when to, and over which ranks
 *   post_local_sgd.c  an optimizer with an averager behind it
 *   ema.c             averages over time */
#ifndef TTI_TRAIN_AVERAGING_AVERAGING_H
#define TTI_TRAIN_AVERAGING_AVERAGING_H

#include <tutti/averaging.h>
#include "optim/optim.h"

#endif
