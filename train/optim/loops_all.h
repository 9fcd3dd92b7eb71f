/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loops_all.h - loops.h for both types, and the table of all loops under the name LOOPS. */
#include <math.h>
#include "optim/optim.h"

#define T        float
#define SQRT     sqrtf
#define ABS      fabsf
#define FN(name) name##_f32
#include "optim/loops.h"
#undef T
#undef SQRT
#undef ABS
#undef FN

#define T        double
#define SQRT     sqrt
#define ABS      fabs
#define FN(name) name##_f64
#include "optim/loops.h"
#undef T
#undef SQRT
#undef ABS
#undef FN

#define BOTH(name)             \
    {                          \
        name##_f32, name##_f64 \
    }

const tti_loop_table LOOPS = {
    [TTI_LOOP_SGD] = BOTH(sgd),
    [TTI_LOOP_SGD_FIRST] = BOTH(sgd_first),
    [TTI_LOOP_SGD_MOMENTUM] = BOTH(sgd_momentum),
    [TTI_LOOP_SGD_FIRST_NESTEROV] = BOTH(sgd_first_nesterov),
    [TTI_LOOP_SGD_NESTEROV] = BOTH(sgd_nesterov),
    [TTI_LOOP_ADAM] = BOTH(adam),
    [TTI_LOOP_AMSGRAD] = BOTH(amsgrad),
    [TTI_LOOP_ADAMAX] = BOTH(adamax),
    [TTI_LOOP_ADAGRAD] = BOTH(adagrad),
    [TTI_LOOP_RMSPROP] = BOTH(rmsprop),
    [TTI_LOOP_RMSPROP_CENTERED] = BOTH(rmsprop_centered),
    [TTI_LOOP_RMSPROP_MOMENTUM] = BOTH(rmsprop_momentum),
    [TTI_LOOP_RMSPROP_CENTERED_MOMENTUM] = BOTH(rmsprop_centered_momentum),
    [TTI_LOOP_ADADELTA] = BOTH(adadelta),
    [TTI_LOOP_RPROP] = BOTH(rprop),
    [TTI_LOOP_SIGN] = BOTH(sign),
    [TTI_LOOP_GRADIENT] = BOTH(gradient),
};
