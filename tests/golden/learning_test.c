/* SPDX-License-Identifier: BSD-3-Clause
 *
 * learning_test.c
 * Goal    the drawn digits need a convolution: a linear softmax classifier, however long it learns,
 *         stays below 92 % on them; the tutorial's network is past that bound after a short while.
 * Method  one process, no group; the digits of `make demo`, of which more are drawn to test on. The
 *         linear classifier learns in ever smaller steps, of each size until it gets no better; its
 *         best accuracy on the test set counts, which favours it (twice the digits to learn from
 *         would bring it to 92 %). The network sees the digits twice; its bound lies well below what
 *         `make demo` reaches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <tutti/data.h>
#include <tutti/nn.h>
#include <tutti/optim.h>

#include "harness/scratch.h"
#include "net.h"

enum { TRAIN = 15000, TEST = 10000, BATCH = 64, PATIENCE = 8 };

#define LINEAR_MAX  92.0 /* percent */
#define LINEAR_MIN  86.0 /* less than this has not learned */
#define NETWORK_MIN 95.0

typedef struct digits {
    char dir[256];
    tutti_dataset *train, *test;
    int64_t *order; /* 0, 1, ... and room for them shuffled */
} digits;

static tutti_tensor *pictures(const tutti_dataset *ds, const int64_t *samples, int64_t n,
                              tutti_tensor **labels_out)
{
    tutti_tensor *x = tutti_tensor_empty(TUTTI_F32, 4, (int64_t[]){ n, 1, NET_SIDE, NET_SIDE });

    *labels_out = tutti_tensor_empty(TUTTI_I64, 1, &n);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    assert_int_equal(
        tutti_dataset_fetch(ds, samples, n, tutti_tensor_data(x), tutti_tensor_data(*labels_out)),
        TUTTI_OK);
    return x;
}

static uint64_t draw(void *ctx)
{
    (void)ctx;
    return tutti_generator_random64(NULL);
}

/* One epoch. */
static void learn(tutti_module *net, tutti_optim *sgd, const digits *d)
{
    const int64_t *samples;
    tutti_loader loader;
    int64_t n;

    assert_int_equal(tutti_loader_init(&loader, d->order, TRAIN, BATCH, d->order + TRAIN),
                     TUTTI_OK);
    assert_int_equal(tutti_loader_shuffle(&loader, draw, NULL), TUTTI_OK);
    while ((n = tutti_loader_next(&loader, &samples)) > 0) {
        tutti_tensor *x, *y;

        tutti_scope_begin();
        x = pictures(d->train, samples, n, &y);
        tutti_optim_zero_grad(sgd);
        assert_int_equal(
            tutti_tensor_backward(tutti_tensor_nll_loss(tutti_forward(net, x), y, NULL)), TUTTI_OK);
        assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
        tutti_scope_end();
    }
}

/* Percent of the test set. */
static double accuracy(tutti_module *net, const digits *d)
{
    const bool was = tutti_set_grad_enabled(false);
    int right = 0;

    tutti_module_train(net, false);
    for (int64_t first = 0; first < TEST; first += BATCH) {
        const int64_t n = TEST - first < BATCH ? TEST - first : BATCH;
        tutti_tensor *x, *y, *found;

        tutti_scope_begin();
        x = pictures(d->test, d->order + first, n, &y);
        found = tutti_tensor_argmax(tutti_forward(net, x), 1, false);
        assert_int_equal(tutti_tensor_check(), TUTTI_OK);
        for (int64_t i = 0; i < n; i++)
            right += ((const int64_t *)tutti_tensor_data(found))[i] ==
                     ((const int64_t *)tutti_tensor_data(y))[i];
        tutti_scope_end();
    }
    tutti_module_train(net, true);
    tutti_set_grad_enabled(was);
    return 100.0 * right / TEST;
}

static tutti_optim *optimizer(tutti_module *net, double lr)
{
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    tutti_optim *sgd;
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);

    opts.lr = lr;
    opts.momentum = 0.5;
    sgd = tutti_sgd(params, n, &opts);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    return sgd;
}

static double learn_until_best(tutti_module *net, const digits *d)
{
    tutti_optim *sgd = optimizer(net, 0.03);
    double best = 0.0;

    for (double lr = 0.03; lr > 0.001; lr /= 3.0) {
        assert_int_equal(tutti_optim_set_lr(sgd, lr), TUTTI_OK);
        for (int since = 0; since < PATIENCE;) {
            double now;

            learn(net, sgd, d);
            now = accuracy(net, d);
            since = now > best ? 0 : since + 1;
            best = now > best ? now : best;
        }
    }
    tutti_optim_free(sgd);
    return best;
}

static void a_linear_classifier_stays_below(void **state)
{
    tutti_module *net;
    double best;

    tutti_manual_seed(1);
    net = net_create(true, false);
    best = learn_until_best(net, *state);
    tutti_module_free(net);
    print_message("linear classifier: %.2f %%\n", best);
    assert_true(best > LINEAR_MIN && best < LINEAR_MAX);
}

static void the_network_gets_past(void **state)
{
    tutti_module *net;
    tutti_optim *sgd;
    double got;

    tutti_manual_seed(1);
    net = net_create(false, false);
    sgd = optimizer(net, 0.05);
    for (int epoch = 0; epoch < 2; epoch++)
        learn(net, sgd, *state);
    got = accuracy(net, *state);
    tutti_optim_free(sgd);
    tutti_module_free(net);
    print_message("network: %.2f %%\n", got);
    assert_true(got > NETWORK_MIN);
}

static int make_digits(void **state)
{
    digits *d = calloc(1, sizeof *d);

    if (d == NULL || !tt_dir_make(d->dir, sizeof d->dir))
        return -1;
    *state = d;
    d->order = malloc(2 * TRAIN * sizeof *d->order);
    for (int64_t i = 0; d->order != NULL && i < TRAIN; i++)
        d->order[i] = i;
    return d->order != NULL && tutti_digits_write(d->dir, 1, TRAIN, TEST) == TUTTI_OK &&
                   tutti_dataset_open(d->dir, TUTTI_DATASET_TRAIN, &d->train) == TUTTI_OK &&
                   tutti_dataset_open(d->dir, TUTTI_DATASET_TEST, &d->test) == TUTTI_OK
               ? 0
               : -1;
}

static int remove_digits(void **state)
{
    digits *d = *state;

    tutti_dataset_free(d->train);
    tutti_dataset_free(d->test);
    tt_dir_remove(d->dir);
    free(d->order);
    free(d);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_classifier_stays_below),
        cmocka_unit_test(the_network_gets_past),
    };

    return cmocka_run_group_tests(tests, make_digits, remove_digits);
}
