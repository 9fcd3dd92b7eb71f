/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantized_test.c
 * Goal    the tutorial's network learns with gradients of 8 bits as it does with whole ones: after as many steps its loss is
 *         within a tenth of a nat, which is a fifth of what it has learned at least, and ranks have the same bits.
 * Method  two ranks, drawn digits, the same digits and parameters for all three: whole gradients, 8 bits, 8 bits with what
 *         they leave out fed back. Losses are means of the last steps, over both ranks. */
#include "harness/harness.h"

#include <math.h>
#include <string.h>
#include <tutti/comm_hooks.h>
#include <tutti/data.h>
#include <tutti/ddp.h>
#include <tutti/optim.h>

#include "examples/common/differing.h"
#include "feed.h"
#include "net.h"

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { DIGITS = 1024, BATCH = 32, STEPS = 60, LAST = 10 };

typedef enum mode { WHOLE, EIGHT_BITS, FED_BACK } mode;

static void use_hook(tutti_ddp *ddp, mode how)
{
    tutti_quantized_hook_options opts = TUTTI_QUANTIZED_HOOK_OPTIONS;
    tutti_quantized_hook        *hook = NULL;

    if (how == WHOLE)
        return;
    opts.error_feedback = how == FED_BACK;
    OK(tutti_quantized_hook_create(tutti_ddp_reducer(ddp), &opts, &hook));
    OK(tutti_reducer_register_comm_hook(tutti_ddp_reducer(ddp), tutti_quantized_hook_table(hook), hook));
}

/* One step on this rank's digits: its loss. */
static double step(tutti_ddp *ddp, tutti_optim *sgd, const tutti_dataset *digits, int number, const tt_ctx *t)
{
    int64_t       samples[BATCH];
    tutti_tensor *loss;
    double        value = NAN;
    batch         b;

    for (int i = 0; i < BATCH; i++)
        samples[i] = ((int64_t)number * BATCH * t->size + t->rank * BATCH + i) % DIGITS;
    tutti_scope_begin();
    assert_true(feed_fetch(digits, samples, BATCH, &b));
    loss = tutti_tensor_nll_loss(tutti_ddp_forward(ddp, b.x), b.y, NULL);
    tutti_optim_zero_grad(sgd);
    OK(tutti_tensor_backward(loss));
    OK(tutti_tensor_item(loss, &value));
    OK(tutti_optim_step(sgd));
    tutti_scope_end();
    return value;
}

static double train(const tt_ctx *t, const tutti_dataset *digits, mode how)
{
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    tutti_ddp        *ddp = NULL;
    tutti_module     *net;
    tutti_optim      *sgd;
    double            last = 0.0;
    int               n, ranks = -1;
    tutti_tensor *const *parameters;

    tutti_manual_seed(3);
    net = net_create(false, false);
    OK(tutti_ddp_create(net, NULL, &ddp));
    use_hook(ddp, how);
    opts.lr = 0.02;
    opts.momentum = 0.5;
    parameters = tutti_module_parameters(net, &n); /* sets n before the next call reads it */
    sgd = tutti_sgd(parameters, n, &opts);
    for (int number = 0; number < STEPS; number++) {
        const double loss = step(ddp, sgd, digits, number, t);

        last += number >= STEPS - LAST ? loss / LAST : 0.0;
    }
    assert_true(differing_ranks(net, &ranks));
    assert_int_equal(ranks, 0);
    OK(tutti_all_reduce(TUTTI_SPAN(&last, 1), TUTTI_AVG, NULL));
    tutti_optim_free(sgd);
    tutti_ddp_free(ddp);
    tutti_module_free(net);
    return last;
}

static void eight_bits_are_enough(tt_ctx *t)
{
    tutti_dataset *digits = NULL;
    double         whole, eight, fed;

    if (t->rank == 0)
        assert_int_equal(tutti_digits_write(t->dir, 5, DIGITS, 1), TUTTI_OK);
    OK(tutti_barrier(NULL));
    OK(tutti_dataset_open(t->dir, TUTTI_DATASET_TRAIN, &digits));
    whole = train(t, digits, WHOLE);
    eight = train(t, digits, EIGHT_BITS);
    fed = train(t, digits, FED_BACK);
    print_message("loss %g; with 8 bits %g, fed back %g\n", whole, eight, fed);
    assert_true(whole < log(10.0) - 0.5); /* it learns */
    assert_true(eight != whole && fed != whole && eight != fed);
    assert_true(fabs(eight - whole) < 0.1);
    assert_true(fabs(fed - whole) < 0.1);
    tutti_dataset_free(digits);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(eight_bits_are_enough, .ranks = 2, .transports = "shm,tcp", .limit_ms = 120000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
