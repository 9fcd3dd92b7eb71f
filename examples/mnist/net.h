/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.h - the two networks that mnist trains. */
#ifndef NET_H
#define NET_H

#include <tutti/nn.h>

enum { NET_SIDE = 28 }; /* rows and columns of the pictures that they take */

/* The tutorial's network, or a linear softmax classifier. dropout false leaves the dropout layers
 * out. Draws its parameters from the thread's default generator. A failure is kept: ask
 * tutti_tensor_check(). */
tutti_module *net_create(bool linear, bool dropout);

#endif
