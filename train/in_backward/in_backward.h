/* SPDX-License-Identifier: BSD-3-Clause
 *
 * in_backward.h - what the files of this room share.
 *
 *   attach.c  one process: hooks on the parameters
 *   fused.c   under a ddp: its communication hook */
#ifndef TTI_TRAIN_IN_BACKWARD_IN_BACKWARD_H
#define TTI_TRAIN_IN_BACKWARD_IN_BACKWARD_H

#include <tutti/in_backward.h>
#include "ddp/ddp.h"
#include "optim/optim.h"

#endif
