/* SPDX-License-Identifier: BSD-3-Clause
 *
 * feed_test.c
 * Goal    ranks that share batches go through one order, each sample on one rank, also when their
 *         generators part ways as dropout makes them; ranks with slices of their own get equal ones.
 * Method  four ranks, 101 digits, two epochs. Each rank draws another number of times after every
 *         batch. What a rank was given is told apart by its pixels: their sum over ranks and batches
 *         of an epoch must be that of the whole set. */
#include "harness/harness.h"

#include <tutti/autograd.h>
#include <tutti/group.h>

#include "feed.h"
#include "net.h"

enum { DIGITS = 101, BATCH = 20, EPOCHS = 2, PIXELS = NET_SIDE * NET_SIDE };

/* Whole numbers up to 255 for each pixel: a sum of them is exact in f64. */
static double ink(const batch *b)
{
    const float *x = tutti_tensor_data(b->x);
    double sum = 0.0;

    for (int64_t i = 0; i < b->n * PIXELS; i++)
        sum += (double)(int)((x[i] * 0.3081f + 0.1307f) * 255.0f + 0.5f);
    return sum;
}

static double ink_of_all(const tutti_dataset *ds)
{
    int64_t samples[DIGITS];
    double sum;
    batch b;

    for (int i = 0; i < DIGITS; i++)
        samples[i] = i;
    tutti_scope_begin();
    assert_true(feed_fetch(ds, samples, DIGITS, &b));
    sum = ink(&b);
    tutti_scope_end();
    return sum;
}

static double sum_over_ranks(double x)
{
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL), TUTTI_OK);
    return x;
}

/* One epoch: *ink_out and the samples that this rank was given. */
static int64_t epoch(tt_ctx *t, feed *f, double *ink_out)
{
    int64_t n = 0;
    bool more;
    batch b;

    assert_true(feed_shuffle(f));
    *ink_out = 0.0;
    for (;;) {
        tutti_scope_begin();
        assert_true(feed_next(f, &b, &more));
        if (!more)
            break;
        assert_true(sum_over_ranks((double)b.n) == (double)b.all);
        *ink_out += ink(&b);
        n += b.n;
        tutti_scope_end();
        for (int i = 0; i < t->rank; i++)
            (void)tutti_generator_random64(NULL);
    }
    tutti_scope_end();
    return n;
}

static void open_digits(tt_ctx *t, feed *f, bool shared)
{
    const options opts = {
        .data = t->dir, .epochs = EPOCHS, .batch = BATCH, .seed = 3, .global_batches = shared
    };

    if (t->rank == 0)
        assert_int_equal(tutti_digits_write(t->dir, 5, DIGITS, 1), TUTTI_OK);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    tutti_manual_seed(1234);
    assert_true(feed_open(f, &opts, t->rank, t->size));
}

static void shared_batches(tt_ctx *t)
{
    feed f = { 0 };
    double mine, before = -1.0;

    open_digits(t, &f, true);
    assert_int_equal(feed_samples(&f), DIGITS);
    for (int e = 0; e < EPOCHS; e++) {
        const int64_t n = epoch(t, &f, &mine);

        assert_true(sum_over_ranks((double)n) == DIGITS);
        assert_true(sum_over_ranks(mine) == ink_of_all(f.train));
        assert_true(mine != before); /* another order */
        before = mine;
    }
    feed_close(&f);
}

static void slices_of_their_own(tt_ctx *t)
{
    feed f = { 0 };
    double first, second;

    open_digits(t, &f, false);
    assert_int_equal(feed_samples(&f), DIGITS / t->size * t->size);
    assert_int_equal(f.loader.batch, BATCH / t->size);
    assert_int_equal(epoch(t, &f, &first), DIGITS / t->size);
    assert_int_equal(epoch(t, &f, &second), DIGITS / t->size);
    assert_true(first == second); /* the same slice */
    assert_true(sum_over_ranks(first) < ink_of_all(f.train));
    feed_close(&f);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(shared_batches, .ranks = 4, .threads = true),
        TT_TEST(slices_of_their_own, .ranks = 4),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
