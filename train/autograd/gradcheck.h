/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gradcheck.h - for tests: gradients against differences of function values, in f64. */
#ifndef TT_TRAIN_AUTOGRAD_GRADCHECK_H
#define TT_TRAIN_AUTOGRAD_GRADCHECK_H

#include <tutti/autograd.h>

/* The function to check: any tensor out of n inputs. Called inside of a scope. */
typedef tutti_tensor *(*tt_function)(tutti_tensor *const *in, const void *ctx);

/* Check the gradients of f at n inputs, f64 leaves that require gradients, contiguous. The result is
 * weighted with fixed numbers and summed; each element of each input is moved by 1e-5 both ways, and
 * the difference must match backward to 1e-6 relative. Asserts. */
void tt_gradcheck(const char *what, tt_function f, const void *ctx, tutti_tensor *const *in, int n);

/* A leaf of f64 with uniform numbers in [low, high) that requires gradients. */
tutti_tensor *tt_leaf(double low, double high, int nd, const int64_t *shape);

#endif
