/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutorial_test.c
 * Goal    the tutorial's network starts, computes and learns as it does in PyTorch.
 * Method  golden values: initial parameters for seed 1234; loss, log-probabilities and gradients of
 *         one made-up batch without dropout; the loss after each of three steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <tutti/nn.h>
#include <tutti/optim.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { PARAMS = 8 };

static const char *const names[PARAMS] = { "conv1.weight", "conv1.bias", "conv2.weight",
                                           "conv2.bias",   "fc1.weight", "fc1.bias",
                                           "fc2.weight",   "fc2.bias" };

static tutti_module *tutorial_net(void)
{
    tutti_module *net = tutti_sequential();

    tutti_module_add(net, "conv1", tutti_conv2d(1, 10, 5, 5, NULL));
    tutti_module_add(net, "pool1", tutti_max_pool2d(2));
    tutti_module_add(net, "relu1", tutti_relu());
    tutti_module_add(net, "conv2", tutti_conv2d(10, 20, 5, 5, NULL));
    tutti_module_add(net, "conv2_drop", tutti_dropout2d(0.5));
    tutti_module_add(net, "pool2", tutti_max_pool2d(2));
    tutti_module_add(net, "relu2", tutti_relu());
    tutti_module_add(net, "flatten", tutti_flatten());
    tutti_module_add(net, "fc1", tutti_linear(320, 50, true));
    tutti_module_add(net, "relu3", tutti_relu());
    tutti_module_add(net, "drop", tutti_dropout(0.5));
    tutti_module_add(net, "fc2", tutti_linear(50, 10, true));
    tutti_module_add(net, "log_softmax", tutti_log_softmax(1));
    return net;
}

/* x[n, 0, i, j] = ((28 i + j + 7 n) mod 17) / 17 - 0.5 */
static tutti_tensor *batch(void)
{
    tutti_tensor *x = tutti_tensor_empty(TUTTI_F32, 4, SHAPE(4, 1, 28, 28));
    float *at = tutti_tensor_data(x);

    for (int n = 0; n < 4; n++)
        for (int k = 0; k < 784; k++)
            at[n * 784 + k] = (float)((k + 7 * n) % 17 / 17.0 - 0.5);
    return x;
}

static tutti_tensor *targets(void)
{
    return tutti_tensor_from_data((const int64_t[]){ 3, 7, 0, 9 }, TUTTI_I64, 1, SHAPE(4));
}

static int begin(void **state)
{
    tutti_scope_begin();
    tutti_manual_seed(1234);
    *state = tutorial_net();
    return *state != NULL ? 0 : -1;
}

static int end(void **state)
{
    tutti_module_free(*state);
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static void check_near(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: %.10g instead of %.10g", what, got, want);
}

static double sum_of(const tutti_tensor *t)
{
    const float *x = tutti_tensor_data(t);
    double sum = 0.0;

    for (int64_t i = 0; i < tutti_tensor_numel(t); i++)
        sum += (double)x[i];
    return sum;
}

static double norm_of(const tutti_tensor *t)
{
    const float *x = tutti_tensor_data(t);
    double sum = 0.0;

    for (int64_t i = 0; i < tutti_tensor_numel(t); i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void starts_as_in_pytorch(void **state)
{
    static const double first[PARAMS][3] = {
        { -0.18840830, -0.03924057, -0.09606232 }, { 0.10287525, -0.12257943, 0.12188523 },
        { 0.03008864, -0.03464969, -0.04258417 },  { 0.03363754, -0.01351839, -0.03454095 },
        { 0.04977547, -0.03522468, 0.03173944 },   { 0.01698985, 0.04364046, 0.02796726 },
        { -0.00839491, 0.08282827, -0.02381037 },  { -0.04671977, 0.05576375, 0.03706199 },
    };
    static const double weight_sum[PARAMS / 2] = { -0.312308, -1.293711, 3.765503, -0.967663 };
    int n, n_names;
    tutti_tensor *const *params = tutti_module_parameters(*state, &n);
    const char *const *got = tutti_module_parameter_names(*state, &n_names);

    assert_int_equal(n, PARAMS);
    assert_int_equal(n_names, PARAMS);
    for (int i = 0; i < PARAMS; i++) {
        assert_string_equal(got[i], names[i]);
        for (int k = 0; k < 3; k++)
            check_near(names[i], ((const float *)tutti_tensor_data(params[i]))[k], first[i][k],
                       6e-9);
        if (i % 2 == 0)
            check_near("sum", sum_of(params[i]), weight_sum[i / 2], 1e-6);
    }
}

static void computes_as_in_pytorch(void **state)
{
    static const double logp[10] = { -2.343227, -2.300769, -2.216041, -2.209721, -2.336521,
                                     -2.210596, -2.258806, -2.453704, -2.326678, -2.400618 };
    static const double grad_sum[PARAMS] = { 0.0305481, -0.009518, 5.6651431, 0.1219744,
                                             4.3663132, 0.1605785, 0.0,       0.0 };
    static const double grad_norm[PARAMS] = { 0.0800493, 0.0593308, 0.3232347, 0.0862696,
                                              0.4087220, 0.1743293, 0.1355132, 0.3995424 };
    tutti_tensor *y, *loss;
    double value = NAN;

    tutti_module_train(*state, false);
    y = tutti_forward(*state, batch());
    loss = tutti_tensor_nll_loss(y, targets(), NULL);
    assert_int_equal(tutti_tensor_item(loss, &value), TUTTI_OK);
    check_near("loss", value, 2.3495001286, 2.3e-6);
    for (int k = 0; k < 10; k++)
        check_near("logp", ((const float *)tutti_tensor_data(y))[k], logp[k], 2e-6);
    assert_int_equal(tutti_tensor_backward(loss), TUTTI_OK);
    for (int i = 0; i < PARAMS; i++) {
        const tutti_tensor *g = tutti_tensor_grad(tutti_module_parameter(*state, names[i]));

        assert_non_null(g);
        check_near(names[i], norm_of(g), grad_norm[i], 1e-5 * grad_norm[i]);
        check_near(names[i], sum_of(g), grad_sum[i], 1e-5);
    }
}

static double train_step(tutti_module *net, tutti_optim *sgd)
{
    double value = NAN;
    tutti_tensor *loss;

    tutti_scope_begin();
    tutti_optim_zero_grad(sgd);
    loss = tutti_tensor_nll_loss(tutti_forward(net, batch()), targets(), NULL);
    assert_int_equal(tutti_tensor_item(loss, &value), TUTTI_OK);
    assert_int_equal(tutti_tensor_backward(loss), TUTTI_OK);
    assert_int_equal(tutti_optim_step(sgd), TUTTI_OK);
    tutti_scope_end();
    return value;
}

static void learns_as_in_pytorch(void **state)
{
    static const double losses[4] = { 2.3495001286, 2.3447558765, 2.3380557711, 2.3308349239 };
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    tutti_optim *sgd;
    int n;
    tutti_tensor *const *params = tutti_module_parameters(*state, &n);

    opts.lr = 0.01;
    opts.momentum = 0.5;
    sgd = tutti_sgd(params, n, &opts);
    tutti_module_train(*state, false);
    for (int i = 0; i < 4; i++)
        check_near("loss", train_step(*state, sgd), losses[i], 2.3e-6);
    tutti_optim_free(sgd);
}

/* With dropout on, two networks of one seed stay bitwise equal, and differ from one of another. */
static void same_seed_same_bits(void **state)
{
    tutti_module *twin[3] = { NULL };
    int n;

    (void)state;
    for (int k = 0; k < 3; k++) {
        tutti_optim *sgd;

        tutti_manual_seed(1234);
        twin[k] = tutorial_net();
        tutti_manual_seed(k < 2 ? 5 : 6);
        sgd = tutti_sgd(tutti_module_parameters(twin[k], &n), PARAMS, NULL);
        for (int i = 0; i < 3; i++)
            (void)train_step(twin[k], sgd);
        tutti_optim_free(sgd);
    }
    for (int i = 0; i < PARAMS; i++) {
        const tutti_tensor *a = tutti_module_parameter(twin[0], names[i]);

        assert_true(tutti_tensor_equal(a, tutti_module_parameter(twin[1], names[i])));
        assert_false(tutti_tensor_equal(a, tutti_module_parameter(twin[2], names[i])));
    }
    for (int k = 0; k < 3; k++)
        tutti_module_free(twin[k]);
}

/* What the first epoch draws after the network: a base seed, then the seed of the sampler. */
static void first_epoch_is_shuffled_as_in_pytorch(void **state)
{
    static const int64_t want[8] = { 29135, 4070, 14128, 13214, 6506, 23802, 17130, 18 };
    const uint64_t base = tutti_generator_random64(NULL) & INT64_MAX;
    const uint64_t seed = tutti_generator_random64(NULL) & INT64_MAX;
    tutti_generator *sampler = tutti_generator_create(seed);

    (void)state;
    assert_true(base == UINT64_C(8852516249283040140));
    assert_true(seed == UINT64_C(1152698320790270343));
    assert_memory_equal(tutti_tensor_data(tutti_tensor_randperm(30000, sampler)), want,
                        sizeof want);
    tutti_generator_free(sampler);
}

/* Threads can be ranks: each has its own generator, scopes, recording and memory. */
static void *train_alone(void *arg)
{
    tutti_module **net_out = arg;
    tutti_optim *sgd;
    int n;

    tutti_manual_seed(1234);
    *net_out = tutorial_net();
    sgd = tutti_sgd(tutti_module_parameters(*net_out, &n), PARAMS, NULL);
    for (int i = 0; i < 5; i++)
        (void)train_step(*net_out, sgd);
    tutti_optim_free(sgd);
    return NULL;
}

static void threads_train_side_by_side(void **state)
{
    tutti_module *net[3] = { NULL };
    pthread_t thread[2];

    (void)state;
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, train_alone, &net[k]), 0);
    train_alone(&net[2]);
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_join(thread[k], NULL), 0);
    for (int i = 0; i < PARAMS; i++)
        for (int k = 0; k < 2; k++)
            assert_true(tutti_tensor_equal(tutti_module_parameter(net[k], names[i]),
                                           tutti_module_parameter(net[2], names[i])));
    for (int k = 0; k < 3; k++)
        tutti_module_free(net[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_epoch_is_shuffled_as_in_pytorch, begin, end),
        cmocka_unit_test_setup_teardown(threads_train_side_by_side, begin, end),
        cmocka_unit_test_setup_teardown(starts_as_in_pytorch, begin, end),
        cmocka_unit_test_setup_teardown(computes_as_in_pytorch, begin, end),
        cmocka_unit_test_setup_teardown(learns_as_in_pytorch, begin, end),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
