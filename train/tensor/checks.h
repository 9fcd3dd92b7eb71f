/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks.h - what tests of these rooms begin and end with. Behind cmocka.h. */
#ifndef TTI_TRAIN_TENSOR_CHECKS_H
#define TTI_TRAIN_TENSOR_CHECKS_H

#include <math.h>
#include <tutti/tensor.h>

/* The same random numbers in every test. */
static inline int begin(void **state)
{
    (void)state;
    tutti_scope_begin();
    tutti_manual_seed(7);
    return 0;
}

/* No failure is left over that the test has not taken. */
static inline int end(void **state)
{
    (void)state;
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static inline double item(const tutti_tensor *t)
{
    double v = NAN;

    assert_int_equal(tutti_tensor_item(t, &v), TUTTI_OK);
    return v;
}

#endif
