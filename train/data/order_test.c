/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/order_test.c
 * Goal    slices and epochs are those of CPython and PyTorch for the same seeds.
 * Method  Numbers that Python 3.11 and PyTorch 1.13 gave, and properties for odd sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <tutti/data.h>

#include "tensor/mt19937.h"

/* Numbers that the tutorial's network draws for its parameters, one 32-bit output each. */
enum { MNIST = 60000, NET_DRAWS = 250 + 10 + 5000 + 20 + 16000 + 50 + 500 + 10 };

static int64_t *numbers(int64_t n)
{
    int64_t *p = calloc((size_t)n, sizeof *p);

    assert_non_null(p);
    return p;
}

static void test_python_shuffle(void **state)
{
    static const int64_t ten[] = { 2, 8, 3, 5, 6, 4, 9, 0, 1, 7 };
    static const int64_t first[] = { 33712, 36159, 45528, 25849, 53734, 40353, 32418, 55928 };
    static const int64_t middle[] = { 31044, 14995, 40895, 20295 };
    int64_t *index = numbers(MNIST);

    (void)state;
    assert_int_equal(tutti_partition(1234, 10, 0, 1, index), TUTTI_OK);
    assert_memory_equal(index, ten, sizeof ten);
    assert_int_equal(tutti_partition(1234, MNIST, 0, 1, index), TUTTI_OK);
    assert_memory_equal(index, first, sizeof first);
    assert_memory_equal(index + 30000, middle, sizeof middle);
    assert_int_equal(tutti_partition(1234, MNIST, 1, 2, index), TUTTI_OK);
    assert_memory_equal(index, middle, sizeof middle); /* rank 1 of 2 begins in the middle */
    free(index);
}

static void test_python_seeds(void **state)
{
    static const int64_t zero[] = { 7, 8, 1, 5, 3, 4, 2, 0, 9, 6 }; /* Random(0) */
    static const int64_t wide[] = { 1, 2, 3, 6, 7, 0, 5, 4, 9, 8 }; /* Random(2**40 + 5) */
    int64_t index[10];

    (void)state;
    assert_int_equal(tutti_partition(0, 10, 0, 1, index), TUTTI_OK);
    assert_memory_equal(index, zero, sizeof zero);
    assert_int_equal(tutti_partition((UINT64_C(1) << 40) + 5, 10, 0, 1, index), TUTTI_OK);
    assert_memory_equal(index, wide, sizeof wide);
}

static void test_lengths_are_python_s(void **state)
{
    static const struct {
        int64_t n;
        int ranks;
        int64_t length;
    } cases[] = {
        { 60000, 1, 60000 }, { 60000, 2, 30000 }, { 60000, 7, 8571 }, { 10, 3, 3 },
        { 3, 4, 0 },         { 0, 5, 0 },         { 49, 49, 0 }, /* 1/49 * 49 is below 1 in f64 */
        { 14000, 3, 4666 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t length = -1;

        assert_int_equal(tutti_partition_length(cases[i].n, 0, cases[i].ranks, &length), TUTTI_OK);
        assert_int_equal(length, cases[i].length);
    }
}

static void test_slices_are_disjoint(void **state)
{
    enum { N = 1000, RANKS = 7 };
    char seen[N] = { 0 };
    int64_t index[N], length = 0;

    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(tutti_partition_length(N, rank, RANKS, &length), TUTTI_OK);
        assert_int_equal(tutti_partition(5, N, rank, RANKS, index), TUTTI_OK);
        for (int64_t i = 0; i < length; i++) {
            assert_in_range(index[i], 0, N - 1);
            assert_int_equal(seen[index[i]]++, 0);
        }
    }
    assert_int_equal(length, 142);
}

static void test_partition_refuses(void **state)
{
    int64_t index[4], length = -1;

    (void)state;
    assert_int_equal(tutti_partition_length(-1, 0, 1, &length), TUTTI_E_ARG);
    assert_int_equal(tutti_partition_length(INT64_C(1) << 31, 0, 1, &length), TUTTI_E_ARG);
    assert_int_equal(tutti_partition_length(4, 2, 2, &length), TUTTI_E_ARG);
    assert_int_equal(tutti_partition_length(4, -1, 2, &length), TUTTI_E_ARG);
    assert_int_equal(tutti_partition_length(4, 0, 0, &length), TUTTI_E_ARG);
    assert_int_equal(tutti_partition(1, 4, 0, 1, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_partition(1, 4, 5, 1, index), TUTTI_E_ARG);
    assert_int_equal(length, -1);
}

typedef struct generator {
    tti_mt19937 mt;
    int draws;
    uint64_t drawn[2];
} generator;

static uint64_t random64(void *ctx)
{
    generator *g = ctx;
    const uint64_t high = tti_mt19937_next(&g->mt);
    const uint64_t both = high << 32 | tti_mt19937_next(&g->mt);

    g->drawn[g->draws++ % 2] = both;
    return both;
}

static void seed_generator(generator *g, uint32_t seed, int skip)
{
    memset(g, 0, sizeof *g);
    tti_mt19937_seed(&g->mt, seed);
    for (int i = 0; i < skip; i++)
        (void)tti_mt19937_next(&g->mt);
}

static uint64_t constant64(void *ctx)
{
    return *(const uint64_t *)ctx;
}

/* The whole path of rank 0 of 2 in the tutorial: partition, network, first epoch. */
static void test_tutorial_first_epoch(void **state)
{
    static const int64_t expected[] = { 8541, 12150, 24279, 59672, 20723, 17746, 19786, 58610 };
    const uint64_t clear = ~(UINT64_C(1) << 63);
    int64_t *index = numbers(MNIST / 2), *order = numbers(MNIST / 2);
    const int64_t *samples = NULL;
    tutti_loader loader;
    generator g;

    (void)state;
    seed_generator(&g, 1234, NET_DRAWS);
    assert_int_equal(tutti_partition(1234, MNIST, 0, 2, index), TUTTI_OK);
    assert_int_equal(tutti_loader_init(&loader, index, MNIST / 2, 64, order), TUTTI_OK);
    assert_int_equal(tutti_loader_shuffle(&loader, random64, &g), TUTTI_OK);
    assert_int_equal(g.draws, 2);
    assert_true((g.drawn[0] & clear) == UINT64_C(8852516249283040140));
    assert_true((g.drawn[1] & clear) == UINT64_C(1152698320790270343));
    assert_int_equal(tutti_loader_next(&loader, &samples), 64);
    assert_memory_equal(samples, expected, sizeof expected);
    free(index);
    free(order);
}

static void test_permutations(void **state)
{
    static const int64_t big[] = { 29135, 4070, 14128, 13214, 6506, 23802, 17130, 18 };
    static const int64_t ten[] = { 4, 1, 7, 5, 3, 9, 0, 8, 6, 2 }; /* randperm(10), seed 0 */
    const uint64_t sampler = UINT64_C(1152698320790270343);
    const uint64_t zero = UINT64_C(7) << 32; /* only the low 32 bits seed */
    int64_t *order = numbers(MNIST / 2);
    const int64_t *samples = NULL;
    tutti_loader loader;

    (void)state;
    assert_int_equal(tutti_loader_init(&loader, NULL, MNIST / 2, 8, order), TUTTI_OK);
    assert_int_equal(tutti_loader_shuffle(&loader, constant64, (void *)(uintptr_t)&sampler),
                     TUTTI_OK);
    assert_int_equal(tutti_loader_next(&loader, &samples), 8);
    assert_memory_equal(samples, big, sizeof big);
    assert_int_equal(tutti_loader_init(&loader, NULL, 10, 10, order), TUTTI_OK);
    assert_int_equal(tutti_loader_shuffle(&loader, constant64, (void *)(uintptr_t)&zero), TUTTI_OK);
    assert_int_equal(tutti_loader_next(&loader, &samples), 10);
    assert_memory_equal(samples, ten, sizeof ten);
    free(order);
}

static void test_batches_cover_every_epoch(void **state)
{
    static const int64_t index[] = { 10, 11, 12, 13, 14, 15, 16 };
    int64_t order[7], counts[2][7] = { { 0 } }, n;
    const int64_t *samples = NULL;
    tutti_loader loader;
    generator g;

    (void)state;
    seed_generator(&g, 3, 0);
    assert_int_equal(tutti_loader_init(&loader, index, 7, 3, order), TUTTI_OK);
    assert_int_equal(tutti_loader_batches(&loader), 3);
    assert_int_equal(tutti_loader_next(&loader, &samples), 0); /* no epoch has begun */
    for (int epoch = 0; epoch < 2; epoch++) {
        int64_t sizes[4], batches = 0;

        assert_int_equal(tutti_loader_shuffle(&loader, random64, &g), TUTTI_OK);
        while ((n = tutti_loader_next(&loader, &samples)) > 0) {
            sizes[batches++] = n;
            for (int64_t i = 0; i < n; i++)
                counts[epoch][samples[i] - 10]++;
        }
        assert_int_equal(batches, 3);
        assert_int_equal(sizes[2], 1); /* the last batch is smaller */
        for (int i = 0; i < 7; i++)
            assert_int_equal(counts[epoch][i], 1);
    }
    assert_int_equal(g.draws, 4);
    assert_int_equal(tutti_loader_restart(&loader), TUTTI_OK);
    assert_int_equal(tutti_loader_next(&loader, &samples), 3);
    assert_memory_equal(samples, index, 3 * sizeof *index);
}

static void test_loader_refuses(void **state)
{
    int64_t order[1];
    tutti_loader loader;

    (void)state;
    assert_int_equal(tutti_loader_init(NULL, NULL, 1, 1, order), TUTTI_E_ARG);
    assert_int_equal(tutti_loader_init(&loader, NULL, 1, 1, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_loader_init(&loader, NULL, 1, 0, order), TUTTI_E_ARG);
    assert_int_equal(tutti_loader_init(&loader, NULL, -1, 1, order), TUTTI_E_ARG);
    assert_int_equal(tutti_loader_init(&loader, NULL, INT64_C(1) << 31, 1, order), TUTTI_E_ARG);
    assert_int_equal(tutti_loader_init(&loader, NULL, 0, 5, NULL), TUTTI_OK); /* an empty part */
    assert_int_equal(tutti_loader_batches(&loader), 0);
    assert_int_equal(tutti_loader_shuffle(&loader, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_loader_shuffle(NULL, constant64, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_loader_restart(NULL), TUTTI_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python_shuffle),
        cmocka_unit_test(test_python_seeds),
        cmocka_unit_test(test_lengths_are_python_s),
        cmocka_unit_test(test_slices_are_disjoint),
        cmocka_unit_test(test_partition_refuses),
        cmocka_unit_test(test_tutorial_first_epoch),
        cmocka_unit_test(test_permutations),
        cmocka_unit_test(test_batches_cover_every_epoch),
        cmocka_unit_test(test_loader_refuses),
    };

    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
