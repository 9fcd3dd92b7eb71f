/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nn.h - what the files of this room share. */
#ifndef TTI_TRAIN_NN_NN_H
#define TTI_TRAIN_NN_NN_H

#include <tutti/nn.h>
#include "autograd/autograd.h"

/* The caller's options, or the defaults; false and kept under op if size was not set. */
bool tti_conv2d_options_get(const char *op, const tutti_conv2d_options *opts,
                            tutti_conv2d_options *full_out);

/* How often a window fits: floor((n + 2 pad - dil (k - 1) - 1) / stride) + 1, or 0. */
static inline int64_t tti_windows(int64_t n, int64_t k, int64_t stride, int64_t pad, int64_t dil)
{
    const int64_t room = n + 2 * pad - dil * (k - 1) - 1;

    return room < 0 ? 0 : room / stride + 1;
}

#endif
