/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.c - layers in the order in which they compute. Names and order of construction are the
 * tutorial's: the same seed gives the parameters that PyTorch has. */
#include "net.h"

static void convolve(tutti_module *net, bool dropout)
{
    tutti_module_add(net, "conv1", tutti_conv2d(1, 10, 5, 5, NULL)); /* [N, 10, 24, 24] */
    tutti_module_add(net, "pool1", tutti_max_pool2d(2));             /* [N, 10, 12, 12] */
    tutti_module_add(net, "relu1", tutti_relu());
    tutti_module_add(net, "conv2", tutti_conv2d(10, 20, 5, 5, NULL)); /* [N, 20, 8, 8] */
    if (dropout)
        tutti_module_add(net, "conv2_drop", tutti_dropout2d(0.5));
    tutti_module_add(net, "pool2", tutti_max_pool2d(2)); /* [N, 20, 4, 4] */
    tutti_module_add(net, "relu2", tutti_relu());
    tutti_module_add(net, "flatten", tutti_flatten()); /* [N, 320] */
}

static void classify(tutti_module *net, bool dropout)
{
    tutti_module_add(net, "fc1", tutti_linear(320, 50, true));
    tutti_module_add(net, "relu3", tutti_relu());
    if (dropout)
        tutti_module_add(net, "fc1_drop", tutti_dropout(0.5));
    tutti_module_add(net, "fc2", tutti_linear(50, 10, true));
}

tutti_module *net_create(bool linear, bool dropout)
{
    tutti_module *net = tutti_sequential();

    if (linear) {
        tutti_module_add(net, "flatten", tutti_flatten());
        tutti_module_add(net, "fc", tutti_linear(NET_SIDE * NET_SIDE, 10, true));
    } else {
        convolve(net, dropout);
        classify(net, dropout);
    }
    tutti_module_add(net, "log_softmax", tutti_log_softmax(1));
    return net;
}
