/* SPDX-License-Identifier: BSD-3-Clause
 *
 * outcome_test.c
 * Goal    parameters that differ in one bit on one rank are found; the accuracy is the same whoever
 *         tests which part.
 * Method  four ranks with the same network; rank 2 changes the sign of a zero, then puts it back.
 *         Accuracy over 103 digits, which four does not divide, against one rank's own count. */
#include "harness/harness.h"

#include <string.h>
#include <tutti/group.h>

#include "examples/common/differing.h"
#include "feed.h"
#include "net.h"
#include "outcome.h"

enum { TEST_DIGITS = 103 };

static int differing(tutti_module *net)
{
    int ranks = -1;

    assert_true(differing_ranks(net, &ranks));
    return ranks;
}

static void one_bit_is_found(tt_ctx *t)
{
    tutti_module *net;
    float *bias;

    tutti_manual_seed(1);
    net = net_create(false, true);
    bias = tutti_tensor_data(tutti_module_parameter(net, "fc2.bias"));
    bias[9] = 0.0f;
    assert_int_equal(differing(net), 0);
    if (t->rank == 2)
        bias[9] = -0.0f;
    assert_int_equal(differing(net), 1);
    if (t->rank == 0) /* now rank 0 and 2 are alike, and the others are not */
        bias[9] = -0.0f;
    assert_int_equal(differing(net), 2);
    bias[9] = 0.0f;
    assert_int_equal(differing(net), 0);
    tutti_module_free(net);
}

/* What one rank alone finds. */
static double percent_right(tutti_module *net, const tutti_dataset *test)
{
    int64_t samples[TEST_DIGITS], right = 0;
    tutti_tensor *guess;
    batch b;

    for (int i = 0; i < TEST_DIGITS; i++)
        samples[i] = i;
    tutti_scope_begin();
    assert_true(feed_fetch(test, samples, TEST_DIGITS, &b));
    guess = tutti_tensor_argmax(tutti_forward(net, b.x), 1, false);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    for (int i = 0; i < TEST_DIGITS; i++)
        right += ((int64_t *)tutti_tensor_data(guess))[i] == ((int64_t *)tutti_tensor_data(b.y))[i];
    tutti_scope_end();
    return 100.0 * (double)right / TEST_DIGITS;
}

static void shares_make_up_the_whole(tt_ctx *t)
{
    tutti_dataset *test = NULL;
    tutti_module *net;
    double percent = -1.0, alone;

    if (t->rank == 0)
        assert_int_equal(tutti_digits_write(t->dir, 5, 1, TEST_DIGITS), TUTTI_OK);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tutti_dataset_open(t->dir, TUTTI_DATASET_TEST, &test), TUTTI_OK);
    tutti_manual_seed(1);
    net = net_create(true, false);
    assert_true(outcome_accuracy(net, test, &percent));
    alone = percent_right(net, test);
    assert_true(alone > 0.0 && alone < 100.0);
    assert_true(percent == alone);
    assert_true(tutti_is_grad_enabled());
    tutti_module_free(net);
    tutti_dataset_free(test);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(one_bit_is_found, .ranks = 4, .transports = "shm,tcp", .threads = true),
        TT_TEST(shares_make_up_the_whole, .ranks = 4),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
