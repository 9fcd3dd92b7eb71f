/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random_test.c
 * Goal    equal seeds give the numbers that PyTorch and CPython give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/autograd.h>

#include "tensor/mt19937.h"
#include "tensor/checks.h"

static void check_values(const tutti_tensor *t, const double *want, int n, double tolerance)
{
    const float *got = tutti_tensor_data(t);

    assert_non_null(got);
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tolerance))
            fail_msg("element %d is %.8g instead of %.8g", i, (double)got[i], want[i]);
}

static tutti_tensor *uniform(int64_t n)
{
    return tutti_tensor_rand(TUTTI_F32, 1, &n, NULL);
}

static tutti_tensor *normal(int64_t n)
{
    return tutti_tensor_randn(TUTTI_F32, 1, &n, NULL);
}

static void raw_outputs(void **state)
{
    static const uint32_t want[4] = { 822569775u, 2137449171u, 2671936806u, 3512589365u };
    tti_mt19937 mt;

    (void)state;
    tti_mt19937_seed(&mt, 1234);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tti_mt19937_next(&mt), want[i]);
    tutti_manual_seed(1234);
    assert_true(tutti_generator_random64(NULL) == ((uint64_t)want[0] << 32 | want[1]));
    tutti_manual_seed(1234 + (UINT64_C(1) << 40)); /* only the low half of a seed counts */
    assert_true(tutti_generator_random64(NULL) == ((uint64_t)want[0] << 32 | want[1]));
}

/* Python's random.shuffle with random.seed(1234). */
static void shuffle(int *a, int n)
{
    const uint32_t key = 1234;
    tti_mt19937 mt;

    for (int i = 0; i < n; i++)
        a[i] = i;
    tti_mt19937_seed_array(&mt, &key, 1);
    for (int i = n - 1; i >= 1; i--) {
        const int bits = 32 - __builtin_clz((unsigned)i + 1);
        uint32_t j;
        int held;

        do
            j = tti_mt19937_next(&mt) >> (32 - bits);
        while (j > (uint32_t)i);
        held = a[i];
        a[i] = a[j];
        a[j] = held;
    }
}

static void shuffles_as_python(void **state)
{
    static const int ten[10] = { 2, 8, 3, 5, 6, 4, 9, 0, 1, 7 };
    static const int first[8] = { 33712, 36159, 45528, 25849, 53734, 40353, 32418, 55928 };
    static const int later[4] = { 31044, 14995, 40895, 20295 };
    int *a = malloc(60000 * sizeof *a);

    (void)state;
    assert_non_null(a);
    shuffle(a, 10);
    assert_memory_equal(a, ten, sizeof ten);
    shuffle(a, 60000);
    assert_memory_equal(a, first, sizeof first);
    assert_memory_equal(a + 30000, later, sizeof later);
    free(a);
}

static void uniform_numbers(void **state)
{
    (void)state;
    tutti_manual_seed(0);
    check_values(uniform(6), (const double[]){ 0.4963, 0.7682, 0.0885, 0.1320, 0.3074, 0.6341 }, 6,
                 5.1e-5);
    tutti_manual_seed(1234);
    check_values(uniform(4), (const double[]){ 0.028979, 0.401899, 0.259844, 0.366641 }, 4, 5.1e-7);
}

static void normal_numbers(void **state)
{
    static const double sixteen[16] = { -1.1258, -1.1524, -0.2506, -0.4339, 0.8487, 0.6920,
                                        -0.3160, -2.1152, 0.3223,  -1.2633, 0.3500, 0.3081,
                                        0.1198,  1.2377,  1.1168,  -0.2473 };

    (void)state;
    tutti_manual_seed(0);
    check_values(normal(5), (const double[]){ 1.5410, -0.2934, -2.1788, 0.5684, -1.0845 }, 5,
                 5.1e-5);
    tutti_manual_seed(0);
    check_values(normal(16), sixteen, 16, 5.1e-5);
    tutti_manual_seed(1234);
    check_values(normal(4), (const double[]){ 0.04613, 0.402403, -1.011529, 0.216738 }, 4, 5.1e-7);
    tutti_manual_seed(1234);
    check_values(normal(16), (const double[]){ -0.111719, -0.49659, 0.163074, -0.881688 }, 4,
                 5.1e-7);
}

/* The second number of a pair waits for the next call, and a seed forgets it. */
static void kept_normal_number(void **state)
{
    static const double five[5] = { 1.5410, -0.2934, -2.1788, 0.5684, -1.0845 };

    (void)state;
    tutti_manual_seed(0);
    check_values(normal(3), five, 3, 5.1e-5);
    check_values(normal(2), five + 3, 2, 5.1e-5);
    tutti_manual_seed(0);
    (void)normal(1);
    tutti_manual_seed(0);
    check_values(normal(1), five, 1, 5.1e-5);
}

/* 20 normal numbers: the last 16 are made of fresh draws, the first 4 belong to the first block. */
static void rest_of_a_block(void **state)
{
    tutti_tensor *some, *fresh;
    const float *x;

    (void)state;
    tutti_manual_seed(0);
    some = normal(20);
    tutti_manual_seed(0);
    (void)uniform(20);
    fresh = normal(16);
    x = tutti_tensor_data(some);
    check_values(some, (const double[]){ -1.1258, -1.1524, -0.2506, -0.4339 }, 4, 5.1e-5);
    assert_memory_equal(x + 4, tutti_tensor_data(fresh), 16 * sizeof *x);
}

static void permutations(void **state)
{
    static const int64_t ten[10] = { 4, 1, 7, 5, 3, 9, 0, 8, 6, 2 };
    static const int64_t many[8] = { 29135, 4070, 14128, 13214, 6506, 23802, 17130, 18 };
    tutti_generator *gen = tutti_generator_create(1152698320790270343u);

    (void)state;
    tutti_manual_seed(0);
    assert_memory_equal(tutti_tensor_data(tutti_tensor_randperm(10, NULL)), ten, sizeof ten);
    assert_memory_equal(tutti_tensor_data(tutti_tensor_randperm(30000, gen)), many, sizeof many);
    assert_int_equal(tutti_tensor_numel(tutti_tensor_randperm(0, gen)), 0);
    tutti_generator_free(gen);
}

static void saved_state(void **state)
{
    void *saved = malloc(tutti_generator_state_bytes());
    tutti_tensor *a, *b;

    (void)state;
    assert_non_null(saved);
    tutti_manual_seed(3);
    (void)normal(5); /* leaves half a pair behind */
    tutti_generator_get_state(NULL, saved);
    a = normal(7);
    assert_int_equal(tutti_generator_set_state(NULL, saved, tutti_generator_state_bytes()),
                     TUTTI_OK);
    b = normal(7);
    assert_true(tutti_tensor_equal(a, b));
    assert_int_equal(tutti_generator_set_state(NULL, saved, 8), TUTTI_E_ARG);
    memset(saved, 0, tutti_generator_state_bytes());
    assert_int_equal(tutti_generator_set_state(NULL, saved, tutti_generator_state_bytes()),
                     TUTTI_E_ARG);
    free(saved);
}

static void bernoulli_draws_64_bits_each(void **state)
{
    const int64_t n = 100;
    tutti_tensor *t = tutti_tensor_empty(TUTTI_F32, 1, &n);
    const float *x = tutti_tensor_data(t);

    (void)state;
    tutti_manual_seed(11);
    assert_int_equal(tutti_tensor_bernoulli_(t, 0.3, NULL), TUTTI_OK);
    tutti_manual_seed(11);
    for (int i = 0; i < n; i++) {
        const double u = (double)(tutti_generator_random64(NULL) & 0x1fffffffffffff) * 0x1p-53;

        assert_true(x[i] == (u < 0.3 ? 1.0f : 0.0f));
    }
}

static void whole_numbers_stay_in_range(void **state)
{
    const int64_t n = 200;
    const int64_t *x = tutti_tensor_data(tutti_tensor_randint(-3, 4, 1, &n, NULL));
    const int64_t *wide = tutti_tensor_data(tutti_tensor_randint(0, INT64_C(1) << 40, 1, &n, NULL));
    bool high = false;
    unsigned seen = 0;

    (void)state;
    for (int i = 0; i < n; i++) {
        assert_true(x[i] >= -3 && x[i] < 4 && wide[i] >= 0 && wide[i] < INT64_C(1) << 40);
        seen |= 1u << (x[i] + 3);
        high = high || wide[i] > UINT32_MAX;
    }
    assert_int_equal(seen, 0x7f);
    assert_true(high);
    assert_null(tutti_tensor_randint(4, 4, 1, &n, NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(raw_outputs, begin, end),
        cmocka_unit_test_setup_teardown(shuffles_as_python, begin, end),
        cmocka_unit_test_setup_teardown(uniform_numbers, begin, end),
        cmocka_unit_test_setup_teardown(normal_numbers, begin, end),
        cmocka_unit_test_setup_teardown(kept_normal_number, begin, end),
        cmocka_unit_test_setup_teardown(rest_of_a_block, begin, end),
        cmocka_unit_test_setup_teardown(permutations, begin, end),
        cmocka_unit_test_setup_teardown(saved_state, begin, end),
        cmocka_unit_test_setup_teardown(bernoulli_draws_64_bits_each, begin, end),
        cmocka_unit_test_setup_teardown(whole_numbers_stay_in_range, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
