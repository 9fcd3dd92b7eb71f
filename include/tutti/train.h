/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/train.h - all of libtutti_train: tensors, gradients, collectives on them, layers, optimizers, data,
 * state and files of it, data-parallel training. */
#ifndef TUTTI_TRAIN_H
#define TUTTI_TRAIN_H

#include <tutti/tensor.h>
#include <tutti/autograd.h>
#include <tutti/state.h>
#include <tutti/comm.h>
#include <tutti/nn.h>
#include <tutti/optim.h>
#include <tutti/data.h>
#include <tutti/ddp.h>
#include <tutti/in_backward.h>
#include <tutti/zero.h>
#include <tutti/averaging.h>

#endif
